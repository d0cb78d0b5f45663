//! The verdict as data. Its JSON is the same model, and stays as it is: members are only added, and `format` counts what
//! would break a reader.
//!
//! ```text
//! format            1
//! summary           outcome, layer, layers, line, differences, stopped, explained
//! lake              what was read of the table, and how far it has come since; null: the left side is no table
//! source            name, position, rows
//! counts            R, H, V, X, T, N at the pin; changelog rows; rows appended
//! money             a sum for each side and number column
//! classes           findings and rows of each class
//! notes             what else is to be known of the comparison
//! causes            clusters: layer, reason, pattern, findings, proof, what to do next
//! count_test        a count of the other side, and what it is equal to
//! keys              examples with both values, their commits and their history
//! keys_left_out     findings that are not among the keys
//! anomalies         detector, severity, layer, snapshots, users, evidence
//! conflicts         pairs of commits that met in the window
//! undetermined      what cannot be said, and why
//! commits, accounting, partitions    series for charts
//! ```
//!
//! Counts are rows or keys; times are epoch milliseconds (`_ms`) and texts in the session's zone.

use serde::Serialize;

use crate::recon::compare::{Cell, Class};
use crate::recon::lookup::Confidence;

/// The version of the JSON.
pub const FORMAT: u32 = 1;

/// Who is responsible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Our own engine: two readings of one state differ.
    Engine,
    /// Which state was read: rows are not there yet, not visible yet, or newer than the source.
    Visibility,
    /// The other side counts something else than final rows.
    CountingRule,
    /// Keys, values and filters stand for different things on both sides.
    BusinessMapping,
    /// What the source has never came, or comes late.
    Upstream,
    /// It was written, and its commit is not there.
    CommitProtocol,
    /// Two writers, and the order of their commits is not that of their rows.
    CoWriting,
    /// Somebody overwrote, dropped, deleted or rolled back.
    OperationOnTable,
    /// One commit twice, two committers as one, a snapshot that was overwritten.
    CommitIdentity,
    /// Files or metadata are not what they should be.
    Storage,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Engine,
        Self::Visibility,
        Self::CountingRule,
        Self::BusinessMapping,
        Self::Upstream,
        Self::CommitProtocol,
        Self::CoWriting,
        Self::OperationOnTable,
        Self::CommitIdentity,
        Self::Storage,
    ];
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// [`FORMAT`].
    pub format: u32,
    /// The answer.
    pub summary: Summary,
    /// What was read of the table.
    pub lake: Option<LakeState>,
    /// What it was compared with; None: with a count alone.
    pub source: Option<SourceState>,
    /// Rows of the table at the pin.
    pub counts: Option<Counts>,
    /// Sums.
    pub money: Vec<Money>,
    /// Classes of findings.
    pub classes: Vec<ClassCount>,
    /// What else is to be known of the comparison: a sample, a horizon, columns that were left out.
    pub notes: Vec<String>,
    /// Why, those with the most findings first.
    pub causes: Vec<Cause>,
    /// The count of the other side.
    pub count_test: Option<CountTest>,
    /// Examples.
    pub keys: Vec<KeyCase>,
    /// Findings beside them.
    pub keys_left_out: u64,
    /// What is wrong in the table's history.
    pub anomalies: Vec<Anomaly>,
    /// Pairs of commits that met in the window.
    pub conflicts: Vec<ConflictLine>,
    /// What cannot be said.
    pub undetermined: Vec<Limit>,
    /// Commits up to the newest, ascending; the newest [`super::COMMITS`] of them.
    pub commits: Vec<CommitRef>,
    /// Rows at some snapshots, ascending.
    pub accounting: Vec<AccountingPoint>,
    /// Findings by partition and class, of those looked through.
    pub partitions: Vec<PartitionCount>,
}

/// The outcome where the count of the other side could not be tested.
pub(super) const NOT_DETERMINED: &str = "COUNT_NOT_DETERMINED";

/// The answer in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// As the comparison ended: `EQUAL`, `DIFFERENT` and their like; `COUNT_EQUAL`, `COUNT_DIFFERENT`,
    /// `COUNT_NOT_DETERMINED` without one, and where its rows are equal and the count of the other side is not known to be;
    /// `UNSOUND` where no difference was found and `sound` is false.
    pub outcome: String,
    /// Whether nothing differs of what was looked at, and what was read can be relied on: a count that could not be tested
    /// is not clean.
    pub clean: bool,
    /// Whether two readings of the pins were the same, as far as they were tried, and the rows at the pin add up.
    pub sound: bool,
    /// The layer of every explained finding; None: several, or none.
    pub layer: Option<Layer>,
    /// Layers with their findings, those with the most first.
    pub layers: Vec<LayerCount>,
    /// One line.
    pub line: String,
    /// Findings that make the sides different.
    pub differences: u64,
    /// Whether there may be more of them: the comparison was ended early.
    pub stopped: bool,
    /// Those that were looked at one by one.
    pub looked_at: u64,
    /// Those of them with a layer.
    pub explained: u64,
}

impl Summary {
    /// Whether it says of the sides that they are the same, or that they are not.
    pub fn is_decided(&self) -> bool {
        self.sound && self.outcome != NOT_DETERMINED
    }
}

/// Findings of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerCount {
    /// Which.
    pub layer: Layer,
    /// How many.
    pub findings: u64,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitRef {
    /// Snapshot.
    pub snapshot: i64,
    /// Commit user.
    pub user: String,
    /// Commit identifier; `batch` for those of jobs without numbers.
    pub identifier: String,
    /// APPEND, COMPACT, OVERWRITE, ANALYZE.
    pub kind: String,
    /// Epoch milliseconds.
    pub time_ms: i64,
    /// In the session's zone.
    pub time: String,
    /// Epoch milliseconds.
    pub watermark_ms: Option<i64>,
    /// By how much the raw rows changed.
    pub delta_rows: Option<i64>,
}

/// What was read of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LakeState {
    /// Database and table, with the branch.
    pub table: String,
    /// The pin, for people.
    pub position: String,
    /// The snapshot that was read.
    pub at: CommitRef,
    /// The newest snapshot.
    pub newest: CommitRef,
    /// Snapshots after the pin.
    pub newer_snapshots: u64,
    /// The watermark in force at the pin, in the session's zone.
    pub watermark: Option<String>,
    /// Commit time minus watermark, milliseconds: how far the table is behind its events, as its writers say.
    pub watermark_lag_ms: Option<i64>,
    /// The newest commit of each user up to the pin.
    pub users: Vec<CommitRef>,
    /// How far history reaches.
    pub history: String,
    /// Whether the first snapshot ever is kept.
    pub history_whole: bool,
}

/// The other side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceState {
    /// What it is, without secrets.
    pub name: String,
    /// Its state.
    pub position: String,
    /// Rows that were compared.
    pub rows: u64,
    /// Rows of the left side that were compared.
    pub lake_rows: u64,
    /// Whether the sides were compared twice, and what came of it.
    pub rerun: Rerun,
}

/// A second comparison at the same pins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result", content = "why")]
pub enum Rerun {
    /// The same counts and sums.
    Same,
    /// Others: a fault of ours.
    Differs(String),
    /// There was none, and why.
    NotTried(String),
}

/// Rows of the table at the pin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// R.
    pub raw_rows: u64,
    /// H.
    pub hidden_rows: u64,
    /// V.
    pub vector_deleted: u64,
    /// X.
    pub superseded: u64,
    /// T.
    pub tombstoned: u64,
    /// N.
    pub final_rows: u64,
    /// Rows of changelogs up to the pin, as snapshots tell; None where one does not.
    pub changelog_rows: Option<u64>,
    /// Rows of all APPEND commits that are kept up to the pin.
    pub appended_rows: u64,
    /// Where `R = H + V + X + T + N` fails.
    pub violations: Vec<String>,
}

/// A sum of both sides, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Money {
    /// Column.
    pub column: String,
    /// Of the lake.
    pub left: String,
    /// Of the source.
    pub right: String,
    /// Lake minus source.
    pub delta: Option<String>,
    /// Findings in which it differs.
    pub mismatches: u64,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// Which.
    pub class: Class,
    /// Findings.
    pub findings: u64,
    /// Rows of the lake.
    pub left_rows: u64,
    /// Rows of the source.
    pub right_rows: u64,
}

/// A pattern that the values of both sides show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pattern {
    /// One code stands for another.
    Code {
        /// Column.
        column: String,
        /// In the lake.
        left: String,
        /// In the source.
        right: String,
    },
    /// Lake = source × ratio.
    Ratio {
        /// Column.
        column: String,
        /// `100`, `1/100`.
        ratio: String,
    },
    /// Lake = source + so many minutes.
    Shift {
        /// Column.
        column: String,
        /// Minutes.
        minutes: i64,
    },
    /// A change was added twice.
    Twice {
        /// Column.
        column: String,
        /// What was added.
        delta: String,
    },
    /// The row lies in another partition.
    OtherPartition,
}

/// Findings with one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Who is responsible; None: it cannot be said.
    pub layer: Option<Layer>,
    /// Why, as `paimon_explain_key` names it; None: no key was looked up.
    pub reason: Option<String>,
    /// What the values show.
    pub pattern: Option<Pattern>,
    /// Findings that were looked at and have it.
    pub findings: u64,
    /// By class.
    pub classes: Vec<(Class, u64)>,
    /// In words.
    pub text: String,
    /// How sure the least sure of them is.
    pub confidence: Confidence,
    /// What it stands on.
    pub proof: Proof,
    /// What to do.
    pub next: Vec<String>,
}

/// What a cause stands on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Proof {
    /// Commits responsible, with their findings; the first [`super::SHOWN`].
    pub commits: Vec<(CommitRef, u64)>,
    /// More commits.
    pub more_commits: u64,
    /// Users of all of them.
    pub users: Vec<String>,
    /// Files, below the table; the first [`super::SHOWN`].
    pub files: Vec<String>,
    /// Keys; the first [`super::SHOWN`].
    pub keys: Vec<String>,
    /// The snapshot at which all of them are as the source has them.
    pub clean_at: Option<i64>,
    /// Detectors that fired about these commits.
    pub detectors: Vec<String>,
}

/// A count of the other side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountTest {
    /// What they count.
    pub theirs: u64,
    /// Final rows at the pin.
    pub ours: u64,
    /// What it was compared with.
    pub candidates: Vec<CountCandidate>,
    /// None: it is equal to ours, or to nothing known.
    pub layer: Option<Layer>,
    /// How sure.
    pub confidence: Confidence,
    /// The arithmetic, in words.
    pub text: String,
}

/// A number that a count can be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountCandidate {
    /// `R`, `N at snapshot 7`.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// How it comes about: `501 + 2`.
    pub arithmetic: String,
    /// What it would mean; None: it is our own count.
    pub layer: Option<Layer>,
    /// Whether it is theirs.
    pub equal: bool,
}

/// One finding that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyCase {
    /// Class.
    pub class: Class,
    /// Key, by column.
    pub key: Vec<(String, Option<String>)>,
    /// Values that differ; of single rows all.
    pub cells: Vec<Cell>,
    /// Who is responsible.
    pub layer: Option<Layer>,
    /// Why.
    pub reason: Option<String>,
    /// What the values show.
    pub pattern: Option<Pattern>,
    /// In words.
    pub sentence: String,
    /// The commits responsible, the first above all.
    pub commits: Vec<CommitRef>,
    /// File that shows it.
    pub file: Option<String>,
    /// Sequence number of the version that shows it.
    pub sequence: Option<i64>,
    /// How sure.
    pub confidence: Confidence,
    /// The first state after the pin in which it is as the source has it.
    pub clean_at: Option<i64>,
    /// The last state before the pin in which it was as the source has it.
    pub clean_until: Option<i64>,
    /// Its versions, oldest first; the newest [`super::VERSIONS`], and only of some keys.
    pub versions: Vec<VersionLine>,
}

impl KeyCase {
    /// Whether the lake, and whether the source has a row of it.
    pub fn sides(&self) -> (bool, bool) {
        (self.class != Class::MissingInLake, self.class != Class::ExtraInLake)
    }

    /// `dt=2026-04-16, pay_id=P1`.
    pub fn key_text(&self) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_string());
        let parts: Vec<String> = self.key.iter().map(|(name, text)| format!("{name}={}", value(text))).collect();
        parts.join(", ")
    }
}

/// A version of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionLine {
    /// The commit that added its file.
    pub commit: Option<CommitRef>,
    /// APPEND, COMPACT, UNCOMMITTED.
    pub written: String,
    /// Row kind.
    pub row_kind: String,
    /// Sequence number.
    pub sequence: i64,
    /// Level.
    pub level: i32,
    /// Values of the compared columns.
    pub values: Vec<(String, Option<String>)>,
    /// First state in which readers got it.
    pub visible_from: Option<i64>,
    /// Last; None with a first: it goes on.
    pub visible_to: Option<i64>,
    /// What became of it.
    pub note: String,
}

/// Something wrong in the table's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Anomaly {
    /// `D-1` to `D-20`.
    pub detector: String,
    /// `error`, `warning`, `info`.
    pub severity: String,
    /// Whose it is.
    pub layer: Option<Layer>,
    /// Snapshots.
    pub snapshots: Vec<i64>,
    /// Users.
    pub users: Vec<String>,
    /// Partition and bucket.
    pub unit: Option<String>,
    /// What it means.
    pub explanation: String,
    /// What was seen.
    pub evidence: String,
    /// How sure.
    pub confidence: Confidence,
}

/// Two commits that met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictLine {
    /// The later.
    pub commit: CommitRef,
    /// The earlier.
    pub opponent: CommitRef,
    /// How.
    pub relation: String,
    /// Where.
    pub units: Vec<String>,
    /// What it means.
    pub verdict: String,
    /// How sure.
    pub confidence: Confidence,
}

/// What cannot be said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Rows at a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountingPoint {
    /// Which.
    pub snapshot: i64,
    /// R.
    pub raw_rows: u64,
    /// X; None: not read.
    pub superseded: Option<u64>,
    /// N; None: not read.
    pub final_rows: Option<u64>,
}

/// Findings of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionCount {
    /// `dt=2026-04-16`; empty: the table has none.
    pub partition: String,
    /// By class.
    pub classes: Vec<(Class, u64)>,
    /// In all.
    pub findings: u64,
}
