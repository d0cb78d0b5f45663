//! The live files that a system table lists, with the branch they are read from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Source;
use super::entries::texts_of;
use crate::error::Result;
use crate::notice::{HiddenRows, NoticeKind};
use crate::recon::entry_texts::EntryTexts;
use crate::scan::{BranchFiles, files_of_branches, why_unseen};
use crate::spec::ManifestEntry;

/// Files of one branch.
pub(super) struct Listed {
    /// The source with the branch's pin.
    pub(super) source: Source,
    pub(super) texts: EntryTexts,
    pub(super) files: Vec<Arc<ManifestEntry>>,
}

/// All live files; those of the branch that completes the pin, in the partitions it gives.
pub(super) async fn live(source: &Source) -> Result<Vec<Listed>> {
    let mut all = Vec::new();
    for BranchFiles { pin, files } in files_of_branches(source.pin()?, &source.env.scan).await? {
        let source = Source { pin: Some(pin), ..source.clone() };
        let texts = texts_of(&source, &files).await?;
        all.push(Listed { source, texts, files });
    }
    Ok(all)
}

/// The live files that a batch read sees. How many others there are is told.
pub(super) async fn seen(source: &Source) -> Result<Vec<Listed>> {
    let mut all = live(source).await?;
    for listed in &mut all {
        let pin = Arc::clone(listed.source.pin()?);
        let mut unseen: BTreeMap<HiddenRows, (u64, u64)> = BTreeMap::new();
        let mut seen = Vec::with_capacity(listed.files.len());
        for entry in std::mem::take(&mut listed.files) {
            match why_unseen(&pin, &entry, listed.texts.schema_of(&entry)?) {
                None => seen.push(entry),
                Some(which) => {
                    let (files, rows) = unseen.entry(which).or_default();
                    *files += 1;
                    // the rows of all live files have a sum
                    *rows += u64::try_from(entry.file.row_count).unwrap_or(0);
                }
            }
        }
        listed.files = seen;
        for (which, (files, rows)) in unseen {
            source.notice(NoticeKind::Hidden { which, files, rows });
        }
    }
    Ok(all)
}
