//! A file's tail as the decoder gets to see it: every timestamp column is a BIGINT of seconds.
//!
//! The decoder's own timestamps go wrong for a file whose nanoseconds are negative, as ORC's C++ library writes them for
//! Arrow (and so Python) before 1970: it takes them for huge positive numbers. Seconds alone it decodes right. The tail
//! is rewritten in memory: the type of each timestamp becomes `LONG`, a change of one byte that keeps all lengths.

use std::collections::BTreeMap;

use orc_rust::reader::metadata::FileMetadata;

use super::WindowReader;
use crate::error::Result;
use crate::spec::orc_footer::{FieldValue, Fields, Postscript};

const KIND_LONG: u8 = 4;
const KIND_TIMESTAMP: u64 = 9;
const KIND_TIMESTAMP_INSTANT: u64 = 18;

/// What a timestamp column stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// The wall clock of the writer's zone.
    Wall,
    /// An instant.
    Instant,
}

/// The metadata with seconds in place of timestamps.
pub(super) struct Tail {
    pub(super) metadata: FileMetadata,
    /// Timestamp columns by column index.
    pub(super) clocks: BTreeMap<usize, Clock>,
}

/// Reads the tail.
pub(super) async fn read(reader: &mut WindowReader) -> Result<Tail> {
    let size = reader.size();
    let guess = size.min(16 * 1024);
    let script = Postscript::parse(&reader.get(size - guess, guess).await?)?;
    let range = script.footer_range(size)?;
    let stored = reader.get(range.start, range.end - range.start).await?;
    let mut footer = script.footer(stored)?;
    let clocks = replace_kinds(&mut footer)?;
    let metadata = script.metadata(&footer)?;
    Ok(Tail { metadata, clocks })
}

/// Turns timestamps into longs and tells which columns they were.
fn replace_kinds(footer: &mut [u8]) -> Result<BTreeMap<usize, Clock>> {
    let mut clocks = BTreeMap::new();
    let mut changes = Vec::new();
    let mut column = 0;
    for field in Fields::new(footer) {
        let field = field?;
        let (4, FieldValue::Bytes { start, end }) = (field.number, field.value) else { continue };
        let message = footer.get(start..end).unwrap_or_default();
        for inner in Fields::new(message) {
            let inner = inner?;
            let (1, FieldValue::Varint(kind)) = (inner.number, inner.value) else { continue };
            let clock = match kind {
                KIND_TIMESTAMP => Clock::Wall,
                KIND_TIMESTAMP_INSTANT => Clock::Instant,
                _ => continue,
            };
            clocks.insert(column, clock);
            // both kinds take one byte, the last of the field
            changes.push(start + inner.end - 1);
        }
        column += 1;
    }
    for at in changes {
        if let Some(byte) = footer.get_mut(at) {
            *byte = KIND_LONG;
        }
    }
    Ok(clocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::orc_footer::tests::footer;

    #[test]
    fn timestamps_become_longs_and_keep_their_clock() {
        let mut types = footer(&[(12, &[1, 2, 3]), (9, &[]), (4, &[]), (18, &[])]);
        let clocks = replace_kinds(&mut types).unwrap();
        assert_eq!(clocks, BTreeMap::from([(1, Clock::Wall), (3, Clock::Instant)]));
        assert_eq!(types, footer(&[(12, &[1, 2, 3]), (4, &[]), (4, &[]), (4, &[])]));
    }
}
