//! What a plan is made of.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use roaring::RoaringBitmap;

use super::common::CommonFiles;
use super::key_range::KeyInterval;
use super::manifests::ManifestCache;
use super::progress::ScanProgress;
use super::rule::Rule;
use crate::notice::Notice;
use crate::snapshot::Pin;
use crate::spec::{Bucket, Datum, ManifestEntry, SnapshotId, TableSchema};
use crate::storage::{Location, Storage};

/// Snapshots whose changes are read: those after the first, up to and with the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangeRange {
    /// Exclusive start; one before the earliest snapshot is allowed.
    pub after: SnapshotId,
    /// Inclusive end.
    pub upto: SnapshotId,
}

/// What is read of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ScanKind {
    /// The final rows of the pinned snapshot.
    #[default]
    Full,
    /// `t$ro`: rows of the top level only.
    ReadOptimized,
    /// `t$audit_log`: final rows with their kind, keys whose last record deletes included.
    FullWithDeletes,
    /// Rows of the files that APPEND snapshots added, unmerged, each with its kind.
    Delta(ChangeRange),
    /// Rows of the changelog files of snapshots, unmerged, each with its kind.
    Changelog(ChangeRange),
}

impl ScanKind {
    /// Whether rows that take back others are part of the result.
    pub fn keeps_deletes(self) -> bool {
        !matches!(self, Self::Full | Self::ReadOptimized)
    }

    /// Whether rows come as they lie in the files, several of one key possible.
    pub fn is_unmerged(self) -> bool {
        matches!(self, Self::Delta(_) | Self::Changelog(_))
    }
}

/// What to plan.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// Conditions that all hold for the rows wanted, over the table's columns, types already coerced.
    pub filters: Vec<Expr>,
    /// Columns of the schema that are read, by their place there, those that filters use among them; None: all.
    pub columns: Option<Vec<usize>>,
    /// Any so many rows are enough. Honoured only where counts are proven.
    pub limit: Option<usize>,
    /// What is read.
    pub kind: ScanKind,
    /// Whether [`ScanPlan::decisions`] is filled.
    pub explain: bool,
    /// Settings of the session (its time zone), for functions over partition columns.
    pub config: Option<Arc<ConfigOptions>>,
    /// Told what has been read.
    pub progress: Arc<ScanProgress>,
    /// Files that a comparison with another state need not read.
    pub without: Option<Arc<CommonFiles>>,
    /// Only these files, as if the state had no others; where changes are read, of all levels and buckets.
    pub of: Option<Arc<[Arc<ManifestEntry>]>>,
}

/// How the rows of a section are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum SectionClass {
    /// Every physical row that no deletion vector names is a row of the result. Kinds need not be read.
    Raw,
    /// As raw, but a row whose kind takes back (`-U`, `-D`) is none; each key occurs once.
    KindOnly,
    /// Versions of a key compete; one physical row of each key is the result (deduplicate, first-row).
    Select,
    /// Versions of a key are combined (partial-update, aggregation).
    Combine,
}

impl SectionClass {
    /// As shown in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::KindOnly => "kind-only",
            Self::Select => "select",
            Self::Combine => "combine",
        }
    }

    /// Whether versions of a key meet.
    pub fn is_merge(self) -> bool {
        matches!(self, Self::Select | Self::Combine)
    }
}

/// Where the deletion vector of a data file lies.
#[derive(Debug, Clone)]
pub struct DeletionFile {
    /// The index file.
    pub location: Location,
    /// Where it is stored.
    pub storage: Arc<Storage>,
    /// Offset of the record's length word.
    pub offset: i32,
    /// Length as the index manifest has it.
    pub length: i32,
    /// Deleted rows, when the index manifest says.
    pub cardinality: Option<u64>,
}

/// One data file to read.
#[derive(Debug, Clone)]
pub struct PlannedFile {
    /// Its manifest entry.
    pub entry: Arc<ManifestEntry>,
    /// The file.
    pub location: Location,
    /// Where it is stored.
    pub storage: Arc<Storage>,
    /// Rows deleted from it.
    pub deletion: Option<DeletionFile>,
    /// Rows that can match the filters by the file's index, physical positions; None: any row can. Always an
    /// over-approximation: the filters still have to be applied.
    pub index_rows: Option<Arc<RoaringBitmap>>,
    /// Schema the file was written with.
    pub file_schema: Arc<TableSchema>,
    /// Values of the partition columns, in the order of the partition keys.
    pub partition: Arc<[Datum]>,
    /// Smallest trimmed primary key, in the table's types; empty for append tables.
    pub min_key: Arc<[Datum]>,
    /// Largest trimmed primary key.
    pub max_key: Arc<[Datum]>,
    /// Change reads: the snapshot that brought the file.
    pub snapshot: Option<SnapshotId>,
}

impl PlannedFile {
    /// Physical rows, those deleted by kind or vector included.
    pub fn physical_rows(&self) -> u64 {
        u64::try_from(self.entry.file.row_count).unwrap_or(0)
    }

    /// Rows that no deletion vector names; None when a vector does not tell its size.
    pub fn rows_after_vector(&self) -> Option<u64> {
        match &self.deletion {
            None => Some(self.physical_rows()),
            // no writer keeps a vector that names no row: who says so has not counted
            Some(deletion) => self.physical_rows().checked_sub(deletion.cardinality.filter(|rows| *rows > 0)?),
        }
    }
}

/// A stretch of keys that no file straddles, with the files that hold its versions.
#[derive(Debug, Clone)]
pub struct Section {
    /// How its rows are found.
    pub class: SectionClass,
    /// Runs of files; the files of a run do not overlap and stand in key order. Under the classes raw and kind-only
    /// every file stands for itself.
    pub runs: Vec<Vec<Arc<PlannedFile>>>,
}

impl Section {
    /// All files, run by run.
    pub fn files(&self) -> impl Iterator<Item = &Arc<PlannedFile>> {
        self.runs.iter().flatten()
    }

    /// The number of result rows, when metadata proves it.
    pub fn exact_rows(&self) -> Option<u64> {
        if self.class != SectionClass::Raw {
            return None;
        }
        self.files().try_fold(0u64, |sum, file| sum.checked_add(file.rows_after_vector()?))
    }
}

/// The sections of one bucket of one partition.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Values of the partition columns.
    pub partition: Arc<[Datum]>,
    /// Bucket.
    pub bucket: Bucket,
    /// Bucket count in force for its files.
    pub total_buckets: i32,
    /// Branch the files come from, when it is the fallback branch.
    pub branch: Option<String>,
    /// Sections in key order.
    pub sections: Vec<Section>,
}

impl Unit {
    /// The order of units in a plan: by partition, then by bucket.
    pub(super) fn place_cmp(&self, other: &Self) -> Ordering {
        let values = self.partition.iter().zip(other.partition.iter()).map(|(one, other)| one.total_cmp(other));
        values.fold(Ordering::Equal, Ordering::then).then(self.bucket.cmp(&other.bucket))
    }
}

/// The step of planning that left a file out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The filter does not want its partition, or another branch has that partition.
    Partition,
    /// Readers of this kind do not see its level or bucket before it is compacted.
    Level,
    /// The filter's keys are in other buckets, or one bucket was asked for.
    Bucket,
    /// It holds only columns that are not read.
    Column,
    /// Its keys do not meet the filter.
    Key,
    /// Its values do not meet the filter.
    Value,
    /// Its file index knows no row that meets the filter.
    Index,
    /// Its deletion vector names every row.
    Vector,
    /// A comparison has the same rows of it on the other side.
    Comparison,
    /// The limit is reached without it.
    Limit,
}

impl Stage {
    /// Counts a file left out here.
    pub(crate) fn count(self, stages: &mut Stages) {
        *match self {
            Self::Partition => &mut stages.by_partition,
            Self::Level => &mut stages.by_level,
            Self::Bucket => &mut stages.by_bucket,
            Self::Column => &mut stages.by_column,
            Self::Key => &mut stages.by_key,
            Self::Value => &mut stages.by_value,
            Self::Index => &mut stages.by_index,
            Self::Vector => &mut stages.by_vector,
            Self::Comparison => &mut stages.by_comparison,
            Self::Limit => &mut stages.by_limit,
        } += 1;
    }
}

/// How a file is read, or that it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRead {
    /// Not at all, since this step.
    Dropped(Stage),
    /// In a section of this class.
    In(SectionClass),
    /// Not opened: metadata tells its rows.
    Told,
    /// Not opened: an earlier statement found its live rows.
    Remembered,
}

/// What became of one file and why.
#[derive(Debug, Clone)]
pub struct FileDecision {
    /// Bare name.
    pub file: String,
    /// Values of the partition columns.
    pub partition: Arc<[Datum]>,
    /// Bucket.
    pub bucket: Bucket,
    /// Bucket count in force when the file was written.
    pub total_buckets: i32,
    /// Level.
    pub level: i32,
    /// Physical rows.
    pub rows: i64,
    /// Bytes.
    pub bytes: u64,
    /// Smallest key, empty for append tables.
    pub min_key: Vec<Datum>,
    /// Largest key.
    pub max_key: Vec<Datum>,
    /// Smallest sequence number.
    pub min_sequence: i64,
    /// Largest sequence number.
    pub max_sequence: i64,
    /// Whether the file is read.
    pub kept: bool,
    /// Branch it comes from, when that is not the one asked for.
    pub branch: Option<String>,
    /// The snapshot it belongs to: of that branch, or of the table; for changes, the one that brought it.
    pub snapshot: Option<SnapshotId>,
    /// Number of its section within the plan, when kept.
    pub section: Option<usize>,
    /// How it is read.
    pub read: FileRead,
    /// The rule that decided.
    pub rule: Rule,
}

/// Counts of one planning, stage by stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Stages {
    /// Manifest lists read.
    pub manifest_lists: u64,
    /// Manifests named by them.
    pub manifests: u64,
    /// Manifests left out by partition, bucket or level ranges.
    pub manifests_pruned: u64,
    /// Manifests that came from the cache.
    pub manifests_cached: u64,
    /// Entries in the manifests read.
    pub entries: u64,
    /// Live files after folding.
    pub files: u64,
    /// Rows in them.
    pub rows: u64,
    /// Files left out by partition.
    pub by_partition: u64,
    /// Files left out by bucket.
    pub by_bucket: u64,
    /// Files hidden by level (level 0, or below the top level).
    pub by_level: u64,
    /// Files left out because they hold only columns that are not read.
    pub by_column: u64,
    /// Files left out by key statistics.
    pub by_key: u64,
    /// Files left out by value statistics.
    pub by_value: u64,
    /// Files left out by a file index.
    pub by_index: u64,
    /// Files left out because the limit is reached without them.
    pub by_limit: u64,
    /// Files whose rows are all deleted by vectors.
    pub by_vector: u64,
    /// Files left out because the other side of a comparison has them too.
    pub by_comparison: u64,
    /// Files kept.
    pub kept_files: u64,
    /// Physical rows in them.
    pub kept_rows: u64,
    /// Bytes in them.
    pub kept_bytes: u64,
    /// Partitions they belong to.
    pub kept_partitions: u64,
    /// Sections by class: raw, kind-only, select, combine.
    pub sections: [u64; 4],
}

impl Stages {
    /// The same with no file kept.
    pub(crate) fn without_kept(self) -> Self {
        Self { kept_files: 0, kept_rows: 0, kept_bytes: 0, kept_partitions: 0, sections: [0; 4], ..self }
    }
}

/// What is read, decided from metadata alone.
#[derive(Debug, Clone)]
pub struct ScanPlan {
    /// The pin.
    pub pin: Arc<Pin>,
    /// What was asked for.
    pub kind: ScanKind,
    /// Buckets with their sections.
    pub units: Vec<Unit>,
    /// Counts.
    pub stages: Stages,
    /// Every file considered, when asked for.
    pub decisions: Vec<FileDecision>,
    /// For each filter of the request: whether every row of the plan is known to satisfy it.
    pub exact_filters: Vec<bool>,
    /// What the filters say of the first column of the key.
    pub key_interval: Option<KeyInterval>,
    /// Rows of the result, when metadata proves them.
    pub exact_row_count: Option<u64>,
    /// What the reader of the result should know (rows hidden by design, options ignored).
    pub notices: Vec<Notice>,
}

impl ScanPlan {
    /// All sections, unit by unit.
    pub fn sections(&self) -> impl Iterator<Item = (&Unit, &Section)> {
        self.units.iter().flat_map(|unit| unit.sections.iter().map(move |section| (unit, section)))
    }

    /// All files to read.
    pub fn files(&self) -> impl Iterator<Item = &Arc<PlannedFile>> {
        self.sections().flat_map(|(_, section)| section.files())
    }
}

/// What planning shares between statements: caches and how wide it reads.
#[derive(Debug, Clone)]
pub struct ScanEnv {
    /// Manifests, schemas and indexes read at the same time.
    pub concurrency: usize,
    /// Decoded manifests.
    pub cache: Arc<ManifestCache>,
}

/// Metadata files that one scan reads at the same time by default.
pub const REQUESTS_AT_ONCE: usize = 16;

impl Default for ScanEnv {
    fn default() -> Self {
        Self { concurrency: REQUESTS_AT_ONCE, cache: Arc::new(ManifestCache::default()) }
    }
}
