//! What is done of a comparison, in a file: it goes on from there, while both sides are as they were.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::side::{Form, Side};
use super::tally::Tally;
use crate::error::{Error, Result};

/// Keys of a segment.
pub const SEGMENT: u64 = 50_000;

/// The form of keys and counts in the file. It changes with the bytes of a key, which are those of Arrow's rows.
pub const FORMAT: u32 = 2;

/// What is compared: two runs go on from each other only where all of this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The form of the file.
    #[serde(default)]
    pub format: u32,
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
    /// SHA-256 of all this with an empty sum, in hexadecimal digits: what is done is told of and not looked at again.
    #[serde(default)]
    pub sum: String,
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
        let refused = |what: &str| {
            Error::invalid(what)
                .with_code("OtherComparison")
                .with_context("file", path.display())
                .with_hint("name another file: this one is not written over")
        };
        let found: Self = serde_json::from_str(&text)
            .map_err(|error| refused("the file holds no progress of a comparison").with_source(error))?;
        let (was, is) = (&found.identity, identity);
        if was.format != is.format {
            return Err(refused("the file holds progress as another release of this program writes it"));
        }
        if found.sum != found.digest()? {
            return Err(refused("the file is damaged, or was changed: what it says is done cannot be relied on"));
        }
        if found.identity == *identity {
            return Ok(Some(found));
        }
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

    fn json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::internal("progress has no JSON").with_source(error))
    }

    fn digest(&self) -> Result<String> {
        let plain = Self { sum: String::new(), ..self.clone() };
        Ok(hex(&Sha256::digest(plain.json()?.as_bytes())))
    }

    /// Writes it aside, then in its place. It holds values of both sides: nobody else may read it.
    ///
    /// # Errors
    /// Of the file system.
    pub fn write(&mut self, path: &Path) -> Result<()> {
        self.sum = self.digest()?;
        let text = self.json()?;
        // two runs may keep theirs in one file: the later one stands, whole
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}.{}.new", std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
        let aside = PathBuf::from(aside);
        let written = write_new(&aside, text.as_bytes()).and_then(|()| std::fs::rename(&aside, path));
        written.map_err(|error| {
            let _ = std::fs::remove_file(&aside);
            failed(path, error)
        })
    }

    /// What is done, for people.
    ///
    /// # Errors
    /// A key that is none.
    pub fn told(&self, form: &Form, path: Option<&Path>) -> Result<String> {
        let [left, right] = self.tally.rows;
        let file = path.map(|path| format!(" {}", path.display())).unwrap_or_default();
        let upto = match self.last_key()? {
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
    ///
    /// # Errors
    /// A key that is none: from the beginning, what is done would be counted twice.
    pub fn last_key(&self) -> Result<Option<Vec<u8>>> {
        let Some(segment) = self.segments.last() else { return Ok(None) };
        let hex = &segment.upto;
        let bytes = (0..hex.len().div_ceil(2)).map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok());
        let key: Option<Vec<u8>> = bytes.collect();
        key.map(Some).ok_or_else(|| Error::internal("the last key of the progress is none"))
    }
}

/// A file that nobody else may read, on disk when this returns.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
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
