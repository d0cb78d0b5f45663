//! Selections that are kept between statements. What a selection says is a fact about data files that never change, not
//! about a snapshot: buckets in which nothing happened share theirs across snapshots.

use sha2::{Digest, Sha256};

use super::context::{ReadContext, SectionHandle};
use crate::error::Result;
use crate::merge::{MergeRules, SectionSelection};
use crate::scan::PlannedFile;
use crate::spec::zone::Zone;

/// What a selection is about: the files in their order, with all that ranks their rows, their deletion vectors, and how
/// the table folds the rows of a key. Two that are equal give the same live rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SelectionId([u8; 32]);

impl SelectionId {
    /// Of a section of class select.
    ///
    /// # Errors
    /// An append table, which has no versions.
    pub fn of(context: &ReadContext, handle: &SectionHandle) -> Result<Self> {
        let clean = |file: &PlannedFile| file.is_clean(&context.pin.options);
        Ok(Self::by(context.rules(handle)?, &context.options.zone, handle, clean))
    }

    fn by(rules: &MergeRules, zone: &Zone, handle: &SectionHandle, is_clean: impl Fn(&PlannedFile) -> bool) -> Self {
        let mut bytes = Fields(Sha256::new());
        bytes.text(&rules.of_selection());
        // casts between clocks and instants, where a column of the order changed its type
        bytes.text(&format!("{zone:?}"));
        for run in &handle.section.runs {
            bytes.number(run.len() as i64);
            for file in run {
                let meta = &file.entry.file;
                bytes.text(&file.location.to_string());
                let clean = i64::from(is_clean(file));
                let source = meta.file_source.map_or(-1, |source| source as i64);
                for number in [
                    meta.row_count,
                    i64::from(meta.level),
                    meta.min_sequence_number,
                    meta.max_sequence_number,
                    meta.schema_id.0,
                    source,
                    clean,
                ] {
                    bytes.number(number);
                }
                match &file.deletion {
                    None => bytes.number(-1),
                    Some(vector) => {
                        bytes.number(i64::from(vector.offset));
                        bytes.number(i64::from(vector.length));
                        bytes.text(&vector.location.to_string());
                    }
                }
            }
        }
        Self(bytes.0.finalize().into())
    }
}

/// Values one after the other, none of which can be taken for a part of another.
struct Fields(Sha256);

impl Fields {
    fn number(&mut self, number: i64) {
        self.0.update(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(i64::try_from(text.len()).unwrap_or(i64::MAX));
        self.0.update(text.as_bytes());
    }
}

/// Bytes that a selection takes, about.
pub fn bytes_of(selection: &SectionSelection) -> usize {
    const A_MASK: usize = 128;
    let masks = selection.files.iter().flatten();
    masks.map(|mask| mask.len() / 8 + A_MASK).sum::<usize>() + A_MASK
}
