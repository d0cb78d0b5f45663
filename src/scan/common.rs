//! What two plans of one table have in common: files whose rows are rows of the result on both sides, the same ones.
//! A comparison need not read them.
//!
//! | section on both sides | what is common |
//! |---|---|
//! | raw, kind-only | each file that both have under the same deletion vector: its live rows stand for themselves, whatever its level |
//! | select, combine | all of its files, when both sides merge exactly these, on the same levels, under the same vectors |
//!
//! A merged section holds all versions of its keys, so what remains on either side holds none of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::plan::{PlannedFile, ScanPlan, Section};
use crate::spec::{BinaryRow, Bucket, ManifestEntry};

/// Files that give the same rows of the result in two states of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommonFiles {
    files: HashSet<Place>,
}

/// Where a file is: its partition as manifests have it, its bucket, its name.
type Place = (BinaryRow, Bucket, String);

impl CommonFiles {
    /// The files that two whole plans of final rows have in common. Both must be made without filters and limit, of the
    /// same table under the same options.
    pub fn of(one: &ScanPlan, other: &ScanPlan) -> Self {
        let mut there: HashMap<Place, (&Section, &Arc<PlannedFile>)> = HashMap::new();
        for (_, section) in other.sections() {
            there.extend(section.files().map(|file| (place(&file.entry), (section, file))));
        }
        let mut files = HashSet::new();
        for (_, section) in one.sections() {
            if section.class.is_merge() {
                files.extend(whole_section(section, &there).into_iter().flatten());
                continue;
            }
            for file in section.files() {
                let place = place(&file.entry);
                let same = there
                    .get(&place)
                    .is_some_and(|(section, twin)| !section.class.is_merge() && vector(file) == vector(twin));
                if same {
                    files.insert(place);
                }
            }
        }
        Self { files }
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether the two states have nothing in common.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether a file is one of them.
    pub(crate) fn has(&self, entry: &ManifestEntry) -> bool {
        !self.is_empty() && self.files.contains(&place(entry))
    }
}

/// The files of a merged section, when the other side merges exactly the same.
fn whole_section(section: &Section, there: &HashMap<Place, (&Section, &Arc<PlannedFile>)>) -> Option<Vec<Place>> {
    let (twin, _) = there.get(&place(&section.files().next()?.entry))?;
    if twin.class != section.class || twin.files().count() != section.files().count() {
        return None;
    }
    section
        .files()
        .map(|file| {
            let place = place(&file.entry);
            let (other, found) = there.get(&place)?;
            let same = std::ptr::eq(*other, *twin)
                && found.entry.file.level == file.entry.file.level
                && vector(found) == vector(file);
            same.then_some(place)
        })
        .collect()
}

fn place(entry: &ManifestEntry) -> Place {
    (entry.partition.clone(), entry.bucket, entry.file.file_name.clone())
}

/// What tells a deletion vector from another one of the same file.
fn vector(file: &PlannedFile) -> Option<(String, i32, i32)> {
    file.deletion.as_ref().map(|vector| (vector.location.to_string(), vector.offset, vector.length))
}
