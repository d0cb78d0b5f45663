//! What is done of a comparison, in a file: it goes on from there, while both sides are as they were.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::side::{Form, Side};
use super::tally::Tally;
use crate::error::{Error, Result};

/// Keys of a segment.
pub const SEGMENT: u64 = 50_000;

/// What is compared: two runs go on from each other only where all of this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The left side.
    pub left: SideIdentity,
    /// The right side.
    pub right: SideIdentity,
    /// What is compared of them, and how.
    pub asked: String,
}

/// A side, and what of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideIdentity {
    /// What it is.
    pub name: String,
    /// The state that is read.
    pub position: String,
    /// What is read at that state: the text of a query.
    pub what: Option<String>,
}

impl SideIdentity {
    /// Of a side whose state is one.
    ///
    /// # Errors
    /// `StateNotKnown` for one that may be another when it is read again.
    pub fn of(side: &Side, which: &str) -> Result<Self> {
        if !side.state_known {
            let caveats = side.caveats();
            let why = if caveats.is_empty() { String::new() } else { format!(": {}", caveats.join("; ")) };
            return Err(Error::invalid(format!(
                "a comparison cannot go on from what is done: nothing says that the {which} side, {} ({}), is the same \
                 when it is read again{why}",
                side.name, side.position
            ))
            .with_code("StateNotKnown")
            .with_hint(
                "compare without PROGRESS; it needs a table at a snapshot, a query of such tables alone, a file, or a \
                 database that says its position: a user with the right BINLOG MONITOR or REPLICATION CLIENT",
            ));
        }
        Ok(Self { name: side.name.clone(), position: side.position.clone(), what: side.what.clone() })
    }

    /// How another side differs from this one, for people.
    fn told(&self, now: &Self, which: &str) -> String {
        if (&self.name, &self.position) == (&now.name, &now.position) {
            return format!("the {which} side, {}, is read by another query", now.name);
        }
        format!("the {which} side was {} ({}), now it is {} ({})", self.name, self.position, now.name, now.position)
    }
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
    /// The last key, as bytes in hexadecimal digits; no column of it is NULL but in the last segment of all.
    pub upto: String,
}

/// What is done so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Progress {
    /// Of what.
    pub identity: Identity,
    /// In the order of keys.
    pub segments: Vec<Segment>,
    /// Whether these are all.
    pub complete: bool,
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
            was.left.told(&is.left, "left")
        } else if was.right != is.right {
            was.right.told(&is.right, "right")
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

    /// What is done, for people.
    ///
    /// # Errors
    /// A key that is none.
    pub fn told(&self, form: &Form, path: Option<&Path>) -> Result<String> {
        let [left, right] = self.tally.rows;
        let file = path.map(|path| format!(" {}", path.display())).unwrap_or_default();
        let upto = match self.last_key() {
            Some(key) if !self.complete => format!(", up to the key {}", form.key_text(&key)?),
            _ => String::new(),
        };
        Ok(format!(
            "resumed from{file}: the comparison went on behind {} segments done before, {left} rows on the left and \
             {right} on the right{upto}",
            self.segments.len()
        ))
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
