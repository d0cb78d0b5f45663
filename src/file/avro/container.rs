//! The blocks of a file, fetched one after the other.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use super::super::access::Access;
use super::super::format::FileFormat;
use super::allowance::Meter;
use crate::error::{ErrorKind, Result};
use crate::memory::MemoryBudget;
use crate::spec::avro::{Header, Input, MARK, Stop, decompress};

/// Bytes fetched at once.
const WINDOW: u64 = 1 << 20;
/// A header is not larger than this.
const MAX_HEADER: u64 = 64 << 20;
/// Longest start of a block: two numbers.
const BLOCK_START: u64 = 20;
/// A block is not larger than this when decompressed. Writers cut blocks at some 64 KiB; only a row that is larger makes
/// a larger one.
const MAX_BLOCK: usize = 512 << 20;

/// An open container, in front of its next block.
pub(super) struct Container {
    pub(super) header: Header,
    /// Where `held` begins in the file.
    offset: u64,
    held: Bytes,
    /// The block given out last.
    meter: Meter,
}

/// Decompressed rows.
pub(super) struct Block {
    pub(super) rows: u64,
    pub(super) bytes: Bytes,
}

impl Container {
    pub(super) async fn open(access: &Access, budget: &Arc<dyn MemoryBudget>) -> Result<Self> {
        let mut window = WINDOW.min(access.size());
        loop {
            let held = access.read(0..window).await?;
            if !FileFormat::Avro.matches_magic(&held) {
                return Err(access.damaged("it does not begin as an Avro file"));
            }
            match Header::parse(&held) {
                Ok(header) => {
                    let mut held = held;
                    held.advance(header.length);
                    return Ok(Self { offset: header.length as u64, header, held, meter: Meter::new(budget) });
                }
                // the header may go on behind the window
                Err(Stop::TooShort(_)) if window < access.size() && window < MAX_HEADER => {
                    window = window.saturating_mul(4).min(access.size());
                }
                Err(Stop::TooShort(error) | Stop::Bad(error)) => return Err(access.locate(error)),
            }
        }
    }

    /// The next block; None at the end of the file.
    pub(super) async fn next_block(&mut self, access: &Access) -> Result<Option<Block>> {
        let offset = self.offset;
        let left = access.size().saturating_sub(offset);
        if left == 0 {
            return Ok(None);
        }
        self.read_block(access, left).await.map(Some).map_err(|error| error.with_context("offset", offset))
    }

    async fn read_block(&mut self, access: &Access, left: u64) -> Result<Block> {
        self.hold(access, BLOCK_START.min(left)).await?;
        let mut input = Input::new(&self.held);
        let before = input.left();
        let (rows, length) = input.long().and_then(|rows| Ok((rows, input.long()?))).map_err(|e| access.locate(e))?;
        let start = (before - input.left()) as u64;
        let (Ok(rows), Ok(length)) = (u64::try_from(rows), u64::try_from(length)) else {
            return Err(access.damaged(format!("a block of {rows} rows in {length} bytes")));
        };
        let whole = start.checked_add(length).and_then(|n| n.checked_add(MARK as u64)).filter(|whole| *whole <= left);
        let Some(whole) = whole else {
            return Err(access.damaged(format!("a block of {length} bytes where {left} are left: the file is cut off")));
        };
        self.meter.grow(usize::try_from(whole).unwrap_or(usize::MAX)).map_err(|e| access.locate(e))?;
        self.hold(access, whole).await?;
        let mut block = self.held.split_to(usize::try_from(whole).unwrap_or(usize::MAX).min(self.held.len()));
        self.offset += whole;
        block.advance(usize::try_from(start).unwrap_or(usize::MAX).min(block.len()));
        let rows_bytes = block.split_to(usize::try_from(length).unwrap_or(usize::MAX).min(block.len()));
        if block.as_ref() != self.header.mark.as_slice() {
            return Err(access.damaged("a block does not end with the file's mark"));
        }
        let meter = &mut self.meter;
        let made = decompress(self.header.codec, &rows_bytes, MAX_BLOCK, &mut |bytes| meter.grow(bytes));
        let bytes = match made {
            Ok(Cow::Owned(bytes)) => bytes.into(),
            Ok(Cow::Borrowed(_)) => rows_bytes,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return Err(access.damaged(error.message()).with_source(error));
            }
            Err(error) => return Err(access.locate(error)),
        };
        Ok(Block { rows, bytes })
    }

    /// The last block is no longer held.
    pub(super) fn forget_block(&mut self) {
        self.meter.clear();
    }

    /// Makes at least `length` bytes at hand; the caller has checked that the file has them.
    async fn hold(&mut self, access: &Access, length: u64) -> Result<()> {
        let held = self.held.len() as u64;
        if held >= length {
            return Ok(());
        }
        let from = self.offset + held;
        let to = (self.offset + length.max(WINDOW)).min(access.size());
        let more = access.read(from..to).await?;
        if self.held.is_empty() {
            self.held = more;
        } else {
            let mut joined = BytesMut::with_capacity(self.held.len() + more.len());
            joined.extend_from_slice(&self.held);
            joined.extend_from_slice(&more);
            self.held = joined.freeze();
        }
        Ok(())
    }
}
