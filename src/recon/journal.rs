//! The read journal: which state of which tables each statement read, and when. It is kept outside of the tables, a line
//! of JSON for each statement, and answers later what a reconciliation had read while commits went on.
//!
//! The text of a statement is not kept: it may hold secrets.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::{Fingerprint, Pin, SnapshotFingerprint, Table};
use crate::spec::Snapshot;
use crate::storage::env::new_id;

/// Bytes after which the journal begins anew; the one before is kept beside it.
const FULL: u64 = 32 << 20;

/// Statements that are given back at most, the newest.
const NEWEST: usize = 1_000_000;

/// What one statement read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When it began, epoch milliseconds.
    pub time_millis: i64,
    /// From then until its last row was given, milliseconds.
    pub duration_millis: u64,
    /// The session that ran it.
    pub session: String,
    /// Its first word: `SELECT`, `RECONCILE`, `WAIT` …
    pub statement: String,
    /// How it ended.
    pub outcome: String,
    /// Rows given.
    pub rows: u64,
    /// The states that it read; of a gate those it opened at, or the newest that it saw.
    pub tables: Vec<ReadState>,
}

/// [`Reading::outcome`] of a statement whose rows were all given.
pub const COMPLETE: &str = "complete";

/// [`Reading::outcome`] of a statement that was given up before its last row.
pub const CANCELLED: &str = "cancelled";

/// The state of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadState {
    /// `database.table`.
    pub table: String,
    /// Its folder.
    pub location: String,
    /// Branch.
    pub branch: String,
    /// Snapshot and what tells it from another of the same number; None: the table had none.
    pub snapshot: Option<ReadSnapshot>,
}

/// A snapshot as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSnapshot {
    /// Number.
    pub id: i64,
    /// Identity, newest writers only.
    pub uuid: Option<String>,
    /// Who committed.
    pub user: String,
    /// Which change.
    pub identifier: i64,
    /// What the commit did.
    pub kind: String,
    /// Commit time, epoch milliseconds.
    pub time_millis: i64,
    /// Watermark, epoch milliseconds.
    pub watermark: Option<i64>,
    /// Schema.
    pub schema_id: i64,
    /// Name of the base manifest list.
    pub base_manifest_list: String,
    /// Name of the delta manifest list.
    pub delta_manifest_list: String,
}

impl ReadState {
    /// A snapshot of a table that was looked at without being pinned; None: it has none.
    pub fn of(table: &Table, snapshot: Option<&Snapshot>) -> Self {
        let fingerprint = snapshot.map(SnapshotFingerprint::from);
        let watermark = snapshot.and_then(|snapshot| snapshot.watermark);
        Self {
            table: table.name(),
            location: table.root().to_string(),
            branch: table.ident().branch.clone(),
            snapshot: fingerprint.map(|of| ReadSnapshot::of(&of, watermark)),
        }
    }
}

impl ReadSnapshot {
    fn of(of: &SnapshotFingerprint, watermark: Option<i64>) -> Self {
        Self {
            id: of.id.0,
            uuid: of.uuid.clone(),
            user: of.commit_user.clone(),
            identifier: of.commit_identifier,
            kind: of.commit_kind.as_str().to_string(),
            time_millis: of.time_millis,
            watermark,
            schema_id: of.schema_id.0,
            base_manifest_list: of.base_manifest_list.clone(),
            delta_manifest_list: of.delta_manifest_list.clone(),
        }
    }
}

impl From<&Pin> for ReadState {
    fn from(pin: &Pin) -> Self {
        let Fingerprint { location, branch, snapshot } = &pin.fingerprint;
        Self {
            table: pin.table.name(),
            location: location.to_string(),
            branch: branch.clone(),
            snapshot: snapshot
                .as_ref()
                .map(|of| ReadSnapshot::of(of, pin.snapshot.as_ref().and_then(|snapshot| snapshot.watermark))),
        }
    }
}

/// What a journal holds.
#[derive(Debug, Default)]
pub struct Kept {
    /// Readings, oldest first.
    pub readings: Vec<Reading>,
    /// Lines that are none: cut by a full disk, or written by a newer version.
    pub unread: usize,
    /// Whether older ones were left out.
    pub cut: bool,
}

/// The journal of one session: a file that several sessions may write.
#[derive(Debug, Clone)]
pub struct Journal {
    path: PathBuf,
    session: String,
}

impl Journal {
    /// The journal in a file, for a new session. The file is made when the first statement is recorded.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let session = new_id();
        // sessions of one journal are told apart by less
        let session = session.split('-').next().unwrap_or_default().to_string();
        Self { path: path.into(), session }
    }

    /// The name of this session in it.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Adds a line. Whole lines of several sessions do not mix: each is one write at the end of the file.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn record(&self, reading: &Reading) -> Result<()> {
        let mut line =
            serde_json::to_vec(reading).map_err(|e| Error::internal("a reading is no JSON").with_source(e))?;
        line.push(b'\n');
        self.append(&line).map_err(|e| self.failed("written", e))
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        if self.is_full() {
            self.begin_anew()?;
        }
        self.open(&self.path)?.write_all(line)
    }

    fn is_full(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.is_file() && found.len() >= FULL)
    }

    /// Moves a full journal aside.
    ///
    /// Another session may have done so since this one saw it full: moving what is there now would put the few lines of the
    /// new journal over all of the old one. So it is looked at again under a lock, which ends with its process.
    fn begin_anew(&self) -> io::Result<()> {
        let lock = self.open(&self.beside(".lock"))?;
        match lock.lock() {
            // a folder that cannot be locked lets the journal grow
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Ok(()),
            locked => locked?,
        }
        if self.is_full() {
            fs::rename(&self.path, self.before())?;
        }
        Ok(())
    }

    /// Opens a file to add to it, readable by its owner alone.
    fn open(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    }

    /// The journal before this one.
    fn before(&self) -> PathBuf {
        self.beside(".1")
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    /// What was recorded by any session, the newest million of statements.
    ///
    /// # Errors
    /// A file that is there and cannot be read.
    pub fn read(&self) -> Result<Kept> {
        let mut readings = VecDeque::new();
        let mut kept = Kept::default();
        for path in [self.before(), self.path.clone()] {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(self.failed("read", e)),
            };
            for line in BufReader::new(file).split(b'\n') {
                let line = line.map_err(|e| self.failed("read", e))?;
                if line.is_empty() {
                    continue;
                }
                let Ok(reading) = serde_json::from_slice::<Reading>(&line) else {
                    kept.unread += 1;
                    continue;
                };
                if readings.len() == NEWEST {
                    readings.pop_front();
                    kept.cut = true;
                }
                readings.push_back(reading);
            }
        }
        kept.readings = readings.into();
        kept.readings.sort_by_key(|reading| reading.time_millis);
        Ok(kept)
    }

    fn failed(&self, what: &str, cause: io::Error) -> Error {
        Error::new(ErrorKind::Unavailable, format!("the read journal cannot be {what}: {cause}"))
            .with_code("JournalFailed")
            .with_context("file", self.path.display().to_string())
            .with_hint("LAKEPIN_JOURNAL names another file; empty, none is kept")
            .with_source(cause)
    }
}

impl Reading {
    /// Whether it was at work at some instant from one to another, epoch milliseconds, both included.
    pub fn was_during(&self, since: i64, until: i64) -> bool {
        let duration = i64::try_from(self.duration_millis).unwrap_or(i64::MAX);
        self.time_millis <= until && self.time_millis.saturating_add(duration) >= since
    }

    /// What it read of a table on a branch.
    pub fn of<'a>(&'a self, location: &'a str, branch: &'a str) -> impl Iterator<Item = &'a ReadSnapshot> + 'a {
        let same = move |state: &&ReadState| state.location == location && state.branch == branch;
        self.tables.iter().filter(same).filter_map(|state| state.snapshot.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(time_millis: i64) -> Reading {
        Reading {
            time_millis,
            duration_millis: 10,
            session: "s".into(),
            statement: "SELECT".into(),
            outcome: COMPLETE.into(),
            rows: 3,
            tables: vec![ReadState {
                table: "pay.t".into(),
                location: "file:///w/pay.db/t".into(),
                branch: "main".into(),
                snapshot: None,
            }],
        }
    }

    #[test]
    fn what_is_recorded_is_read_in_order_and_broken_lines_hide_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/reads.ndjson");
        let (one, other) = (Journal::new(&path), Journal::new(&path));
        assert_ne!(one.session(), other.session());
        assert!(one.read().unwrap().readings.is_empty());
        one.record(&reading(20)).unwrap();
        other.record(&reading(10)).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"{\"time_mi\n\xff\n").unwrap();
        one.record(&reading(30)).unwrap();
        let kept = one.read().unwrap();
        assert_eq!(kept.readings, [reading(10), reading(20), reading(30)]);
        assert_eq!((kept.unread, kept.cut), (2, false));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_full_journal_begins_anew_and_keeps_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path().join("reads.ndjson"));
        journal.record(&reading(1)).unwrap();
        File::options().write(true).open(&journal.path).unwrap().set_len(FULL).unwrap();
        journal.record(&reading(2)).unwrap();
        journal.record(&reading(3)).unwrap();
        assert_eq!(fs::read_to_string(&journal.path).unwrap().lines().count(), 2);
        let kept = journal.read().unwrap();
        assert_eq!(kept.readings, [reading(1), reading(2), reading(3)]);
    }

    #[test]
    fn sessions_that_see_a_journal_full_at_the_same_time_move_it_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reads.ndjson");
        let (one, other) = (Journal::new(&path), Journal::new(&path));
        one.record(&reading(1)).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(FULL).unwrap();
        assert!(one.is_full() && other.is_full());
        // both have seen it full; the second one gets there when the first has written to the new journal
        one.record(&reading(2)).unwrap();
        other.begin_anew().unwrap();
        other.record(&reading(3)).unwrap();
        assert_eq!(one.read().unwrap().readings, [reading(1), reading(2), reading(3)]);
        // and while many write none is lost
        File::options().write(true).open(&path).unwrap().set_len(FULL - 1_000).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"\n").unwrap();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let journal = Journal::new(path);
                    (0..50).for_each(|at| journal.record(&reading(100 + writer * 50 + at)).unwrap());
                });
            }
        });
        let mut kept: Vec<i64> = one.read().unwrap().readings.iter().map(|reading| reading.time_millis).collect();
        kept.retain(|time| *time >= 100);
        assert_eq!(kept, (100..500).collect::<Vec<_>>());
    }

    #[test]
    fn a_journal_that_cannot_be_kept_says_how_to_do_without() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let error = journal.record(&reading(1)).unwrap_err();
        assert_eq!(error.code(), "JournalFailed");
        assert!(error.hint().is_some_and(|hint| hint.contains("LAKEPIN_JOURNAL")), "{error:?}");
    }

    #[test]
    fn a_reading_is_at_work_from_its_begin_to_its_last_row() {
        let read = reading(100);
        for (since, until, was) in
            [(0, 99, false), (0, 100, true), (110, 120, true), (111, 120, false), (104, 105, true)]
        {
            assert_eq!(read.was_during(since, until), was, "{since} {until}");
        }
    }
}
