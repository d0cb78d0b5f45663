//! What is done of a comparison, in a file: it goes on from there, while both sides are as they were.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::error::{Error, Result};

/// Keys of a segment.
pub const SEGMENT: u64 = 50_000;

/// What is compared: two runs go on from each other only where all of this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The left side, and its state.
    pub left: (String, String),
    /// The right side, and its state.
    pub right: (String, String),
    /// What is compared of them, and how.
    pub asked: String,
}

/// Keys that are done, up to one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Rows of the left side.
    pub left_rows: u64,
    /// Rows of the right side.
    pub right_rows: u64,
    /// Findings that make them different.
    pub differences: u64,
    /// The last key, as bytes in hexadecimal digits.
    pub upto: String,
}

/// What is done so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Progress {
    /// Of what.
    pub identity: Identity,
    /// In the order of keys.
    pub segments: Vec<Segment>,
    /// Counts over all of them.
    pub tally: Tally,
    /// Rows looked up besides, by side.
    pub looked_up: [u64; 2],
    /// Values that lost digits, by side and pair.
    pub cut: [Vec<u64>; 2],
    /// Values of the right side that MAP has, by pair.
    pub mapped: Vec<u64>,
}

impl Progress {
    /// Reads what a run before left; None where there was none.
    ///
    /// # Errors
    /// `OtherComparison` where it is of something else.
    pub fn read(path: &Path, identity: &Identity) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, error)),
        };
        let found: Self = serde_json::from_str(&text).map_err(|error| {
            Error::invalid("the file holds no progress of a comparison")
                .with_code("OtherComparison")
                .with_context("file", path.display())
                .with_hint("name another file: this one is not written over")
                .with_source(error)
        })?;
        if found.identity == *identity {
            return Ok(Some(found));
        }
        let (was, is) = (&found.identity, identity);
        let what = if was.left != is.left {
            format!("the left side was {} ({}), now it is {} ({})", was.left.0, was.left.1, is.left.0, is.left.1)
        } else if was.right != is.right {
            format!("the right side was {} ({}), now it is {} ({})", was.right.0, was.right.1, is.right.0, is.right.1)
        } else {
            "columns, condition, horizon, tolerances or sample are others".to_string()
        };
        Err(Error::invalid(format!("the progress is of another comparison: {what}"))
            .with_code("OtherComparison")
            .with_context("file", path.display())
            .with_hint("compare what was compared before, or name another file"))
    }

    /// Writes it aside, then in its place.
    ///
    /// # Errors
    /// Of the file system.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text =
            serde_json::to_string(self).map_err(|error| Error::internal("progress has no JSON").with_source(error))?;
        let mut aside = path.as_os_str().to_owned();
        aside.push(".new");
        std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path)).map_err(|error| failed(path, error))
    }

    /// The last key that is done.
    pub fn last_key(&self) -> Option<Vec<u8>> {
        let hex = &self.segments.last()?.upto;
        (0..hex.len() / 2).map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()).collect()
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::unavailable("the progress of the comparison cannot be kept there")
        .with_code("Storage")
        .with_context("file", path.display())
        .with_source(error)
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
