//! Table options that change what a reader returns, parsed once.
//!
//! Unknown options are ignored; an option that must be honoured and cannot be parsed is an error that names it.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

use given::{Given, lower};

mod given;
mod readable;
mod reading;
mod retention;

pub(crate) use reading::{chooses, choosing_options, is_position, is_reading_option, reading_options};
pub use retention::RetentionOptions;

/// Rule that folds the rows of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MergeEngine {
    /// The last row wins.
    Deduplicate,
    /// Non-null fields overwrite.
    PartialUpdate,
    /// Each column has an aggregate function.
    Aggregation,
    /// The first row wins.
    FirstRow,
}

/// How changes are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangelogProducer {
    /// No changelog files.
    None,
    /// The input rows as given.
    Input,
    /// Old and new top level compared.
    FullCompaction,
    /// Before and after compared at compaction of level 0.
    Lookup,
}

/// `bucket-function.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketFunction {
    /// Murmur of the binary row.
    Default,
    /// Remainder of one integer key.
    Mod,
    /// Hive's hash.
    Hive,
    /// A name we do not know: never prune by bucket.
    Unknown,
}

/// Bounds that start a read in the past, as written in `scan.*` options. At most one is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScanOptions {
    /// `scan.mode`, lower case; None when absent.
    pub mode: Option<String>,
    /// `scan.snapshot-id`
    pub snapshot_id: Option<i64>,
    /// `scan.tag-name`
    pub tag_name: Option<String>,
    /// `scan.timestamp-millis`
    pub timestamp_millis: Option<i64>,
    /// `scan.timestamp`, as text (zone of the session)
    pub timestamp: Option<String>,
    /// `scan.watermark`
    pub watermark: Option<i64>,
    /// `scan.version`
    pub version: Option<String>,
    /// `scan.file-creation-time-millis`
    pub file_creation_time_millis: Option<i64>,
    /// `scan.creation-time-millis`
    pub creation_time_millis: Option<i64>,
    /// `incremental-between`
    pub incremental_between: Option<String>,
    /// `incremental-between-timestamp`
    pub incremental_between_timestamp: Option<String>,
    /// `scan.bucket`
    pub bucket: Option<i32>,
    /// `scan.fallback-branch`
    pub fallback_branch: Option<String>,
    /// `scan.primary-branch`
    pub primary_branch: Option<String>,
}

/// The options that a reader honours. `raw` keeps everything.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreOptions {
    /// All options as text.
    pub raw: BTreeMap<String, String>,
    /// `bucket` (mode only; hashing uses each entry's total buckets).
    pub bucket: i32,
    /// `bucket-key`, split at commas, not trimmed; None when absent.
    pub bucket_key: Option<Vec<String>>,
    /// `bucket-function.type`
    pub bucket_function: BucketFunction,
    /// `partition.default-name`
    pub partition_default_name: String,
    /// `partition.legacy-name`
    pub partition_legacy_name: bool,
    /// `data-file.path-directory`
    pub data_file_path_directory: Option<String>,
    /// `index-file-in-data-file-dir`
    pub index_file_in_data_file_dir: bool,
    /// `file-index.read.enabled`
    pub file_index_read_enabled: bool,
    /// `merge-engine`
    pub merge_engine: MergeEngine,
    /// `sequence.field`, trimmed names.
    pub sequence_fields: Vec<String>,
    /// `sequence.field.sort-order` = descending
    pub sequence_descending: bool,
    /// `sequence.snapshot-ordering`
    pub sequence_snapshot_ordering: bool,
    /// `ignore-delete`, or one of its prefixed old names
    pub ignore_delete: bool,
    /// `partial-update.remove-record-on-delete`
    pub partial_update_remove_record_on_delete: bool,
    /// `partial-update.remove-record-on-sequence-group`: sequence column names
    pub partial_update_remove_record_on_sequence_group: Vec<String>,
    /// `aggregation.remove-record-on-delete`
    pub aggregation_remove_record_on_delete: bool,
    /// `changelog-producer`
    pub changelog_producer: ChangelogProducer,
    /// `force-lookup`
    pub force_lookup: bool,
    /// `deletion-vectors.enabled`
    pub deletion_vectors_enabled: bool,
    /// `deletion-vectors.merge-on-read`
    pub deletion_vectors_merge_on_read: bool,
    /// Top level of the LSM tree: `num-levels` - 1, or from `num-sorted-run.compaction-trigger`; default 5.
    pub max_level: i32,
    /// `pk-clustering-override`
    pub pk_clustering_override: bool,
    /// `row-tracking.enabled`
    pub row_tracking_enabled: bool,
    /// `data-evolution.enabled`
    pub data_evolution_enabled: bool,
    /// `table-read.sequence-number.enabled`
    pub table_read_sequence_number: bool,
    /// `full-compaction.delta-commits`
    pub full_compaction_delta_commits: Option<i64>,
    /// `scan.*` and `incremental-*`
    pub scan: ScanOptions,
}

/// Top level of the LSM tree under some options, as [`CoreOptions::max_level`].
///
/// # Errors
/// An option that is no number.
pub fn top_level(options: &BTreeMap<String, String>) -> Result<i32> {
    let given = Given(options);
    Ok(match given.int("num-levels")? {
        Some(levels) => levels.saturating_sub(1),
        None => given.int("num-sorted-run.compaction-trigger")?.unwrap_or(5),
    })
}

impl CoreOptions {
    /// Reads the options that must be honoured; others stay in `raw`. Options of which the caller sets some for one
    /// read are merged before.
    ///
    /// An error names the option, its value and what is accepted.
    pub fn parse(options: &BTreeMap<String, String>) -> Result<Self> {
        let given = Given(options);
        let parsed = Self {
            bucket: given.bucket()?,
            bucket_key: given
                .get("bucket-key")
                .filter(|text| !text.trim().is_empty())
                .map(|text| text.split(',').map(str::to_string).collect()),
            bucket_function: match given.get("bucket-function.type").map(lower).as_deref() {
                None | Some("default") => BucketFunction::Default,
                Some("mod") => BucketFunction::Mod,
                Some("hive") => BucketFunction::Hive,
                Some(_) => BucketFunction::Unknown,
            },
            partition_default_name: given.get("partition.default-name").unwrap_or("__DEFAULT_PARTITION__").to_string(),
            partition_legacy_name: given.bool("partition.legacy-name", true)?,
            data_file_path_directory: given
                .get("data-file.path-directory")
                .map(|directory| directory.trim_matches('/').to_string())
                .filter(|directory| !directory.is_empty()),
            index_file_in_data_file_dir: given.bool("index-file-in-data-file-dir", false)?,
            file_index_read_enabled: given.bool("file-index.read.enabled", true)?,
            merge_engine: given.one_of("merge-engine", MERGE_ENGINES)?.unwrap_or(MergeEngine::Deduplicate),
            sequence_fields: given.names("sequence.field"),
            sequence_descending: given.one_of("sequence.field.sort-order", SORT_ORDERS)?.unwrap_or(false),
            sequence_snapshot_ordering: given.bool("sequence.snapshot-ordering", false)?,
            ignore_delete: given.first_bool(IGNORE_DELETE, false)?,
            partial_update_remove_record_on_delete: given.bool("partial-update.remove-record-on-delete", false)?,
            partial_update_remove_record_on_sequence_group: given
                .names("partial-update.remove-record-on-sequence-group"),
            aggregation_remove_record_on_delete: given.bool("aggregation.remove-record-on-delete", false)?,
            changelog_producer: given
                .one_of("changelog-producer", CHANGELOG_PRODUCERS)?
                .unwrap_or(ChangelogProducer::None),
            force_lookup: given.bool("force-lookup", false)?,
            deletion_vectors_enabled: given.bool("deletion-vectors.enabled", false)?,
            deletion_vectors_merge_on_read: given.bool("deletion-vectors.merge-on-read", false)?,
            max_level: top_level(options)?,
            pk_clustering_override: given.bool("pk-clustering-override", false)?,
            row_tracking_enabled: given.bool("row-tracking.enabled", false)?,
            data_evolution_enabled: given.bool("data-evolution.enabled", false)?,
            table_read_sequence_number: given.bool("table-read.sequence-number.enabled", false)?,
            full_compaction_delta_commits: given.long("full-compaction.delta-commits")?,
            scan: ScanOptions::parse(&given)?,
            raw: options.clone(),
        };
        Ok(parsed)
    }
}

impl ScanOptions {
    fn parse(given: &Given<'_>) -> Result<Self> {
        let scan = Self {
            mode: given.word_of(&["scan.mode", "log.scan"], SCAN_MODES)?,
            snapshot_id: given.long("scan.snapshot-id")?,
            tag_name: given.text("scan.tag-name"),
            timestamp_millis: match given.long("scan.timestamp-millis")? {
                None => given.long("log.scan.timestamp-millis")?,
                some => some,
            },
            timestamp: given.text("scan.timestamp"),
            watermark: given.long("scan.watermark")?,
            version: given.text("scan.version"),
            file_creation_time_millis: given.long("scan.file-creation-time-millis")?,
            creation_time_millis: given.long("scan.creation-time-millis")?,
            incremental_between: given.text("incremental-between"),
            incremental_between_timestamp: given.text("incremental-between-timestamp"),
            bucket: given.int("scan.bucket")?,
            fallback_branch: given.text("scan.fallback-branch"),
            primary_branch: given.text("scan.primary-branch"),
        };
        let places = [
            ("scan.snapshot-id", scan.snapshot_id.is_some()),
            ("scan.tag-name", scan.tag_name.is_some()),
            ("scan.watermark", scan.watermark.is_some()),
            ("scan.timestamp", scan.timestamp.is_some()),
            ("scan.timestamp-millis", scan.timestamp_millis.is_some()),
        ];
        let set: Vec<&str> = places.into_iter().filter(|(_, set)| *set).map(|(option, _)| option).collect();
        if let [first, second, ..] = set[..] {
            return Err(Error::invalid(format!("options '{first}' and '{second}' exclude each other"))
                .with_code("InvalidOption")
                .with_context("option", second)
                .with_hint("keep one of them: a read starts from one place"));
        }
        Ok(scan)
    }
}

const MERGE_ENGINES: &[(&str, MergeEngine)] = &[
    ("deduplicate", MergeEngine::Deduplicate),
    ("partial-update", MergeEngine::PartialUpdate),
    ("aggregation", MergeEngine::Aggregation),
    ("first-row", MergeEngine::FirstRow),
];

const CHANGELOG_PRODUCERS: &[(&str, ChangelogProducer)] = &[
    ("none", ChangelogProducer::None),
    ("input", ChangelogProducer::Input),
    ("full-compaction", ChangelogProducer::FullCompaction),
    ("lookup", ChangelogProducer::Lookup),
];

const SORT_ORDERS: &[(&str, bool)] = &[("ascending", false), ("descending", true)];

/// The name and its prefixed old ones; the first that is set decides.
const IGNORE_DELETE: &[&str] =
    &["ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"];

const SCAN_MODES: &[&str] = &[
    "default",
    "latest-full",
    "full",
    "latest",
    "latest-delta",
    "compacted-full",
    "from-timestamp",
    "from-snapshot",
    "from-snapshot-full",
    "from-creation-timestamp",
    "from-file-creation-time",
    "incremental",
];

#[cfg(test)]
pub(crate) mod changing;
#[cfg(test)]
mod tests;
