//! Whether files can be read: by the marks that their format puts at their ends. A writer that was stopped leaves them
//! out.

use futures::{StreamExt, TryStreamExt, stream};

use super::unreferenced::{FileRole, StrayFile};
use crate::error::Result;
use crate::file::FileFormat;
use crate::storage::Storage;

/// Files looked at side by side.
const PARALLEL: usize = 16;

/// Bytes of a mark: what ends a Parquet file is the length of its footer and four letters.
const MARK: u64 = 8;

/// Of each file whether it has the marks of its format; None of files whose format has none, and of those that vanished.
///
/// Cost: a read of a few bytes for each file.
///
/// # Errors
/// Storage that does not answer.
pub async fn readable(storage: &Storage, files: &[StrayFile]) -> Result<Vec<Option<bool>>> {
    let reads: Vec<_> = files.iter().map(|stray| one(storage, stray)).collect();
    stream::iter(reads).buffered(PARALLEL).try_collect().await
}

async fn one(storage: &Storage, stray: &StrayFile) -> Result<Option<bool>> {
    let format = match stray.role {
        FileRole::Data | FileRole::Changelog => FileFormat::of_file(&stray.file.name).ok(),
        FileRole::Manifest | FileRole::ManifestList | FileRole::IndexManifest => {
            Some(FileFormat::of_file(&stray.file.name).unwrap_or(FileFormat::Avro))
        }
        FileRole::Index | FileRole::Statistics | FileRole::Other => None,
    };
    let Some(format) = format else { return Ok(None) };
    let size = stray.file.size;
    if size < MARK {
        return Ok(Some(false));
    }
    let range = match format {
        FileFormat::Avro => 0..MARK,
        FileFormat::Parquet | FileFormat::Orc => size - MARK..size,
    };
    let read = storage.read_range_opt(&stray.file.location, range).await?;
    Ok(read.map(|bytes| is_marked(format, &bytes, size)))
}

/// `mark`: the first or the last bytes of a file of so many.
fn is_marked(format: FileFormat, mark: &[u8], size: u64) -> bool {
    match (format, mark) {
        (FileFormat::Avro, [b'O', b'b', b'j', 1, ..]) => true,
        (FileFormat::Parquet, [a, b, c, d, b'P', b'A', b'R', b'1']) => {
            let footer = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
            footer > 0 && footer + MARK <= size
        }
        // the postscript ends in its name, and the last byte is its length
        (FileFormat::Orc, [.., b'O', b'R', b'C', length]) => *length > 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_cut_short_has_no_mark() {
        let parquet = [9, 0, 0, 0, b'P', b'A', b'R', b'1'];
        for (format, mark, size, expected) in [
            (FileFormat::Parquet, &parquet[..], 100, true),
            (FileFormat::Parquet, &parquet[..], 16, false),
            (FileFormat::Parquet, &b"12345678"[..], 100, false),
            (FileFormat::Orc, &b"1234ORC\x17"[..], 100, true),
            (FileFormat::Orc, &parquet[..], 100, false),
            (FileFormat::Avro, &b"Obj\x01abcd"[..], 100, true),
            (FileFormat::Avro, &b"{\"a\": 1}"[..], 100, false),
        ] {
            assert_eq!(is_marked(format, mark, size), expected, "{format:?} {mark:?}");
        }
    }
}
