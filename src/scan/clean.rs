//! Which files are known to hold no row that takes back another.

use super::plan::PlannedFile;
use crate::spec::options::top_level;
use crate::spec::{CoreOptions, DataFileMeta, FileSource, TableSchema};

/// Whether it is certain that no row of a file takes back another, so that its kinds need not be read and its rows can
/// be counted from metadata.
///
/// A count of zero proves nothing alone: some writers put it whatever the file holds, and a file of theirs can be
/// lifted to any level without a look inside. A compaction counts truly, and it leaves deletes out where nothing older
/// lies below. Which levels had files when it ran is not known, so only the top one counts: `top` by the table's options,
/// and the top by those the file was written under, for the number of levels may have changed in between.
pub(crate) fn is_clean(file: &DataFileMeta, written_under: &TableSchema, top: i32) -> bool {
    file.delete_row_count == Some(0)
        && file.file_source == Some(FileSource::Compact)
        && file.level > 0
        && file.level >= top
        && top_level(&written_under.options).is_ok_and(|own_top| file.level >= own_top)
}

impl PlannedFile {
    /// Whether it is certain that no row of it takes back another, under the options of the table it is read from.
    pub fn is_clean(&self, options: &CoreOptions) -> bool {
        is_clean(&self.entry.file, &self.file_schema, options.max_level)
    }
}
