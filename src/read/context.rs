//! What a read needs, and what it counted.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use bytes::Bytes;

use super::flight::OnceFlight;
use super::kept::SelectionId;
use super::parts::SectionSamples;
use super::section::is_merged;
use crate::error::{Error, Result};
use crate::file::FileEnv;
use crate::memory::MemoryBudget;
use crate::merge::{MergeRules, SectionSelection};
use crate::scan::{KeyInterval, PlannedFile, ScanKind, Section, Unit};
use crate::snapshot::Pin;
use crate::spec::arrow_types::arrow_field;
use crate::spec::zone::Zone;
use crate::spec::{Bucket, Datum};
use crate::storage::RequestMeter;
use crate::storage::cache::ByteLimitedCache;

/// One column of a read's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ReadColumn {
    /// A column of the pin's schema, by its place there.
    Field(usize),
    /// `_SEQUENCE_NUMBER`: of the row, or of the last record of a merge; of a row-tracked append table, of the row's
    /// last change.
    SequenceNumber,
    /// `_VALUE_KIND`: 0 `+I`, 1 `-U`, 2 `+U`, 3 `-D`.
    ValueKind,
    /// `_ROW_ID` of a row-tracked append table.
    RowId,
}

impl ReadColumn {
    /// Its number in the pin's schema, when it is a column of it.
    pub fn field(self) -> Option<usize> {
        match self {
            Self::Field(index) => Some(index),
            Self::SequenceNumber | Self::ValueKind | Self::RowId => None,
        }
    }
}

/// How to read.
#[derive(Clone)]
pub struct ReadOptions {
    /// Rows of a batch.
    pub batch_size: usize,
    /// Files read at the same time within one section.
    pub parallelism: usize,
    /// The session's zone, for casts between local and absolute times.
    pub zone: Zone,
    /// Memory.
    pub budget: Arc<dyn MemoryBudget>,
    /// Whether selections are taken from those that are kept, and kept.
    pub keep_selections: bool,
}

impl fmt::Debug for ReadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("batch_size", &self.batch_size)
            .field("parallelism", &self.parallelism)
            .field("zone", &self.zone)
            .field("keep_selections", &self.keep_selections)
            .finish_non_exhaustive()
    }
}

/// What reads share between statements. The files behind it never change under their names.
#[derive(Debug)]
pub struct ReadCaches {
    /// Footers of data files.
    pub files: Arc<FileEnv>,
    /// Whole index files (deletion vectors) by path.
    pub index_files: ByteLimitedCache<String, Bytes>,
    /// Live rows of sections: a bit a row.
    pub selections: ByteLimitedCache<SelectionId, Arc<SectionSelection>>,
}

impl ReadCaches {
    /// Keeps at most so many bytes of footers, of index files and of selections; 0 keeps none.
    pub fn new(footer_bytes: usize, index_file_bytes: usize, selection_bytes: usize) -> Self {
        Self {
            files: FileEnv::new(footer_bytes),
            index_files: ByteLimitedCache::new(index_file_bytes),
            selections: ByteLimitedCache::new(selection_bytes),
        }
    }
}

impl Default for ReadCaches {
    fn default() -> Self {
        Self::new(FOOTER_CACHE_BYTES, INDEX_FILE_CACHE_BYTES, SELECTION_CACHE_BYTES)
    }
}

/// Bytes of footers kept by default.
pub const FOOTER_CACHE_BYTES: usize = 64 << 20;

/// Bytes of index files kept by default.
pub const INDEX_FILE_CACHE_BYTES: usize = 64 << 20;

/// Bytes of selections kept by default: two thousand million rows.
pub const SELECTION_CACHE_BYTES: usize = 256 << 20;

/// What was read so far.
#[derive(Debug, Default)]
pub struct ReadCounters {
    files: AtomicU64,
    key_files: AtomicU64,
    selections: AtomicU64,
    recalled: AtomicU64,
    rows: AtomicU64,
    vector_deleted: AtomicU64,
    superseded: AtomicU64,
    tombstones: AtomicU64,
    select_nanos: AtomicU64,
    streamed: AtomicU64,
    resumes: AtomicU64,
    meter: RequestMeter,
}

impl ReadCounters {
    /// Counts the requests for data files.
    pub fn meter(&self) -> &RequestMeter {
        &self.meter
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $add:ident;)*) => {
        impl ReadCounters {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> u64 {
                    self.$name.load(Ordering::Relaxed)
                }

                pub(super) fn $add(&self, count: u64) {
                    self.$name.fetch_add(count, Ordering::Relaxed);
                }
            )*
        }
    };
}

counters! {
    /// Data files opened for their rows.
    files, add_files;
    /// Data files opened for their keys.
    key_files, add_key_files;
    /// Selections computed.
    selections, add_selections;
    /// Selections found among those that are kept.
    recalled, add_recalled;
    /// Rows whose keys were read for a selection.
    rows, add_rows;
    /// Rows deleted by vectors, of the sections selected.
    vector_deleted, add_vector_deleted;
    /// Rows that a newer version supersedes, of the sections selected.
    superseded, add_superseded;
    /// Keys that end deleted, of the sections selected.
    tombstones, add_tombstones;
    /// Time spent selecting, waiting for keys included, in nanoseconds.
    select_nanos, add_select_nanos;
    /// Selections made out of a merge of batches of keys: all keys at once did not fit into memory.
    streamed, add_streamed;
    /// Merges of rows begun again behind the last row given out, in less memory.
    resumes, add_resumes;
}

/// A section on its way to rows, shared by all who read it. What is found out about it, its selection or where to cut
/// it into parts, is found out once and kept here.
#[derive(Debug)]
pub struct SectionHandle {
    /// Partition values.
    pub partition: Arc<[Datum]>,
    /// Bucket.
    pub bucket: Bucket,
    /// Branch of its files, when that is the fallback branch.
    pub branch: Option<String>,
    /// The section.
    pub section: Section,
    /// Keys that are wanted: rows of others may be taken for dead.
    pub wanted: Option<KeyInterval>,
    pub(super) selection: OnceFlight<SectionSelection>,
    /// Whether its selection is one that was kept, which no read has told of yet.
    pub(super) recalled: AtomicBool,
    pub(super) samples: OnceFlight<SectionSamples>,
}

impl SectionHandle {
    /// A section of `unit`.
    pub fn new(unit: &Unit, section: Section) -> Arc<Self> {
        Self::within(unit, section, None)
    }

    /// A section of `unit` for a reader that wants no other keys than those.
    pub fn within(unit: &Unit, section: Section, wanted: Option<KeyInterval>) -> Arc<Self> {
        Arc::new(Self {
            partition: Arc::clone(&unit.partition),
            bucket: unit.bucket,
            branch: unit.branch.clone(),
            section,
            wanted,
            selection: OnceFlight::default(),
            recalled: AtomicBool::new(false),
            samples: OnceFlight::default(),
        })
    }

    /// A file of the section by its run and its place there.
    ///
    /// # Errors
    /// There is no such file: a fault of ours.
    pub fn file(&self, run: usize, at: usize) -> Result<&Arc<PlannedFile>> {
        let files = self.section.runs.get(run);
        files.and_then(|files| files.get(at)).ok_or_else(|| Error::internal("the section has no such file"))
    }

    /// Its selection, when that has been computed.
    pub fn selected(&self) -> Option<&Arc<SectionSelection>> {
        self.selection.get()
    }
}

/// What all sections of one read have in common.
#[derive(Debug)]
pub struct ReadContext {
    /// The pin.
    pub pin: Arc<Pin>,
    /// What is read.
    pub kind: ScanKind,
    /// Whether rows that take others back are given out.
    pub keep_deletes: bool,
    /// Columns of the result, in order.
    pub columns: Arc<[ReadColumn]>,
    /// How to read.
    pub options: ReadOptions,
    /// Footers and index files.
    pub caches: Arc<ReadCaches>,
    /// What was counted.
    pub counters: Arc<ReadCounters>,
    schema: SchemaRef,
    rules: Option<Arc<MergeRules>>,
    branch_rules: Option<Arc<MergeRules>>,
}

impl ReadContext {
    /// A read of `columns` of `pin`.
    ///
    /// # Errors
    /// A column the schema does not have; merge options that contradict the schema.
    pub fn try_new(
        pin: Arc<Pin>,
        kind: ScanKind,
        keep_deletes: bool,
        columns: impl Into<Arc<[ReadColumn]>>,
        options: ReadOptions,
        caches: Arc<ReadCaches>,
    ) -> Result<Arc<Self>> {
        let columns = columns.into();
        let schema = result_schema(&pin, &columns)?;
        let (rules, branch_rules) = rules_of(&pin)?;
        Ok(Arc::new(Self {
            pin,
            kind,
            keep_deletes,
            columns,
            options,
            caches,
            counters: Arc::default(),
            schema,
            rules,
            branch_rules,
        }))
    }

    /// Schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How the rows of a key are folded.
    pub(super) fn rules(&self, handle: &SectionHandle) -> Result<&Arc<MergeRules>> {
        let branch = handle.branch.as_ref().and(self.branch_rules.as_ref());
        branch.or(self.rules.as_ref()).ok_or_else(|| Error::internal("an append table has no versions to merge"))
    }

    /// Whether the table's files hold kinds and sequence numbers.
    pub(super) fn has_kinds(&self) -> bool {
        self.pin.schema.is_primary_key_table()
    }
}

/// How the rows of a key are folded: in the table, and in the branch that completes it, which folds by its own options;
/// its columns are the same.
type RulesOfBranches = (Option<Arc<MergeRules>>, Option<Arc<MergeRules>>);

pub(super) fn rules_of(pin: &Pin) -> Result<RulesOfBranches> {
    if !pin.schema.is_primary_key_table() {
        return Ok((None, None));
    }
    let rules = |of: &Pin| {
        let found = MergeRules::try_new(&pin.schema, &of.options);
        found.map(Arc::new).map_err(|error| error.with_context("table", of.table.name()))
    };
    let other = pin.fallback.as_ref().or(pin.primary.as_ref());
    Ok((Some(rules(pin)?), other.map(|other| rules(other)).transpose()?))
}

/// Refuses, before anything is opened, what a read of `columns` of these sections would refuse: merge options that
/// contradict the schema, columns whose aggregate function is not known.
pub fn check_rules<'a>(
    pin: &Pin,
    columns: &[ReadColumn],
    keep_deletes: bool,
    sections: impl IntoIterator<Item = (Option<&'a str>, &'a Section)>,
) -> Result<()> {
    let mut sections = sections.into_iter().peekable();
    if sections.peek().is_none() {
        return Ok(());
    }
    let (rules, branch_rules) = rules_of(pin)?;
    let projection: Vec<usize> = columns.iter().filter_map(|column| column.field()).collect();
    let merged: BTreeSet<bool> = sections
        .filter(|(_, section)| is_merged(section, keep_deletes))
        .map(|(branch, _)| branch.is_some() && branch_rules.is_some())
        .collect();
    for of_branch in merged {
        let rules = if of_branch { &branch_rules } else { &rules };
        if let Some(rules) = rules {
            rules.required_columns(&projection).map_err(|error| error.with_context("table", pin.table.name()))?;
        }
    }
    Ok(())
}

/// Arrow schema of `columns`.
pub(super) fn result_schema(pin: &Pin, columns: &[ReadColumn]) -> Result<SchemaRef> {
    let fields = columns
        .iter()
        .map(|column| {
            Ok(match column {
                ReadColumn::Field(index) => arrow_field(
                    pin.schema
                        .fields
                        .get(*index)
                        .ok_or_else(|| Error::internal(format!("the schema has no column number {index}")))?,
                ),
                ReadColumn::SequenceNumber => Field::new("_SEQUENCE_NUMBER", ArrowType::Int64, false),
                ReadColumn::ValueKind => Field::new("_VALUE_KIND", ArrowType::Int8, false),
                ReadColumn::RowId => Field::new("_ROW_ID", ArrowType::Int64, false),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}
