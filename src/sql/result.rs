//! What a statement answers: rows or a word, and the pins it was computed on.

use std::fmt;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;

use super::statement::Used;
use crate::error::Error;
use crate::notice::{Notice, NoticeKind};
use crate::recon::retention::{Hold, Reason};
use crate::scan::Rule;

/// What kind of answer a statement has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    /// Rows to show, possibly none.
    Rows,
    /// Nothing to show but this line (`SET`, `USE`, `PIN`, `CREATE VIEW` …).
    Done(String),
}

/// One table reading of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct PinLine {
    /// `database.table`, with `$branch_x` when it is not the main branch.
    pub table: String,
    /// None: the table has no snapshot yet.
    pub snapshot_id: Option<i64>,
    /// Commit time, epoch milliseconds.
    pub commit_time_millis: Option<i64>,
    /// Commit user.
    pub user: Option<String>,
    /// Commit identifier.
    pub identifier: Option<i64>,
    /// `APPEND`, `COMPACT`, `OVERWRITE` or `ANALYZE`.
    pub kind: Option<String>,
    /// Watermark.
    pub watermark: Option<i64>,
    /// Schema the columns come from.
    pub schema_id: i64,
    /// Tag the snapshot was found through.
    pub tag: Option<String>,
    /// Whether the table is pinned by the session (`PIN TABLE`, `SET`) rather than by the statement.
    pub session: bool,
    /// When the changes up to the snapshot were read and not its rows: the snapshot after which they begin.
    pub changes_after: Option<i64>,
    /// The line to print: id, commit time with zone, user, identifier, kind, watermark, schema id.
    pub text: String,
    /// What else the line says.
    pub details: Box<PinDetails>,
}

/// What the line of a pin says besides, as values: for who tells it in other words.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PinDetails {
    /// Commit time in the session's zone.
    pub commit_time: Option<String>,
    /// Watermark in the session's zone.
    pub watermark_time: Option<String>,
    /// Schema the snapshot was written with.
    pub written_schema_id: i64,
    /// The newest schema of the table.
    pub latest_schema_id: i64,
    /// The branch that gives partitions this pin lacks.
    pub fallback: Option<PinLine>,
    /// The branch that partitions are read from before this pin is asked.
    pub primary: Option<PinLine>,
    /// Where changes were found whose last snapshot is gone but for its changelog.
    pub found_at: Option<PinLine>,
    /// What becomes of the snapshot, told of a new pin of the session.
    pub outlook: Option<Outlook>,
}

/// What a new pin is told with beside its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// Records its commit added.
    pub added_records: Option<i64>,
    /// What becomes of it.
    pub end: OutlookEnd,
}

/// When a snapshot will be gone.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OutlookEnd {
    /// The next commit may expire it.
    NextCommit,
    /// It may be expired about this time, in the session's zone.
    About(String),
    /// As long as something keeps it.
    HeldBy(Vec<Hold>),
    /// That cannot be said.
    NotKnown,
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(added) = self.added_records {
            write!(f, ", {added:+} records")?;
        }
        match &self.end {
            OutlookEnd::NextCommit => f.write_str(", may be expired at the next commit"),
            OutlookEnd::About(time) => write!(f, ", may be expired about {time}"),
            OutlookEnd::HeldBy(holds) => {
                let holds: Vec<String> = holds.iter().map(Hold::to_string).collect();
                write!(f, ", held by {}", holds.join(", "))
            }
            OutlookEnd::NotKnown => Ok(()),
        }
    }
}

/// What is known of each pin of a session: the rows of `SHOW PINS`, and what their last columns say, as values.
#[derive(Debug)]
pub struct ShownPins {
    /// The rows.
    pub rows: RecordBatch,
    /// What holds each of them (`retained_by`), and more about it (`note`).
    pub told: Vec<(Vec<Hold>, PinNote)>,
}

/// More about a pin of a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum PinNote {
    /// Why its end is not known, or what that stands on.
    Forecast(Vec<Reason>),
    /// Its snapshot is gone, or cannot be asked about.
    Gone(Error),
}

impl PinNote {
    /// In words; None when there is nothing to say.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Gone(error) => Some(error.message().to_string()),
            Self::Forecast(reasons) if reasons.is_empty() => None,
            Self::Forecast(reasons) => Some(reasons.iter().map(Reason::to_string).collect::<Vec<_>>().join("; ")),
        }
    }
}

/// What `SET 'paimon.…'` chooses in place of the latest snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChoice {
    /// `database.table`, its parts quoted where they must be; None: every table.
    pub table: Option<String>,
    /// The option, as `scan.snapshot-id`.
    pub option: String,
    /// Its value.
    pub value: String,
}

impl SessionChoice {
    /// The name that `SET` and `RESET` take: `paimon.[database.table.]option`.
    pub fn name(&self) -> String {
        match &self.table {
            Some(table) => format!("paimon.{table}.{}", self.option),
            None => format!("paimon.{}", self.option),
        }
    }

    /// That it chooses beside pins.
    pub fn notice(&self) -> Notice {
        NoticeKind::AlsoChosen { name: self.name(), value: self.value.clone() }.into()
    }
}

/// Where the time went until the stream was handed over; reading goes on while it is polled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Parsing the statement and resolving its pins.
    pub resolve: Duration,
    /// Planning, without manifests.
    pub plan: Duration,
    /// Reading manifests and pruning files.
    pub manifests: Duration,
}

/// What the scans of a statement read, as planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Partitions with files to read, summed over tables.
    pub partitions: u64,
    /// Data files to read.
    pub files: u64,
    /// Live data files of the tables.
    pub live_files: u64,
    /// Bytes of the files to read.
    pub bytes: u64,
    /// Files that readers of this view do not see by design: level 0 where only compacted rows are final.
    pub hidden_files: u64,
    /// Whether a `t$ro` view is among what is read: rows of compacted files only.
    pub read_optimized: bool,
}

/// The states of tables that a statement read, as it read them; [`Session::keep`](super::Session::keep) pins them.
#[derive(Clone, Default)]
pub struct Readings(pub(super) Vec<Used>);

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|used| &used.pin.fingerprint)).finish()
    }
}

/// The answer to one statement.
pub struct StatementResult {
    /// Rows or a word.
    pub kind: StatementKind,
    /// Columns of the rows.
    pub schema: SchemaRef,
    /// The rows; dropping it cancels the statement.
    pub stream: SendableRecordBatchStream,
    /// The tables read and their pins, in order of first mention.
    pub pins: Vec<PinLine>,
    /// The same, to be kept.
    pub readings: Readings,
    /// What the reader of the rows should know.
    pub notices: Vec<Notice>,
    /// Where the time went.
    pub timing: Timing,
    /// What is read; None when no table of the warehouse is.
    pub scanned: Option<Scanned>,
    /// `EXPLAIN FILES`: what decided about the file of each row.
    pub rules: Vec<Rule>,
    /// Digits of a second that columns with times declare where they are columns of tables, or values of such columns, one
    /// item a column; None: those of the column's unit. Empty for answers without a plan.
    pub digits: Vec<Option<u8>>,
    /// The physical plan behind the stream, for its metrics; None for answers without a plan.
    pub plan: Option<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
    /// Of a comparison or verdict that found differences: its line. The rows tell of it all the same.
    pub different: Option<String>,
}

impl fmt::Debug for StatementResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementResult")
            .field("kind", &self.kind)
            .field("pins", &self.pins)
            .field("notices", &self.notices)
            .finish_non_exhaustive()
    }
}
