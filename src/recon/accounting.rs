//! Row accounting: every physical row of a snapshot is hidden, deleted by a vector, superseded, a tombstone or final.
//!
//! Raw, hidden and vector-deleted rows come from metadata, the others from reading the files; that both sides meet is
//! checked, unit by unit, and never rounded.

mod audit;
mod bounds;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int8Type;
use arrow::row::{RowConverter, SortField};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use futures::TryStreamExt;

pub use self::audit::audit;
use self::bounds::bounds;
use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::merge::canonical_keys;
use crate::notice::{Notice, NoticeKind};
use crate::query::QueryEnv;
use crate::read::{Held, ReadColumn, ReadContext, ReadOptions, SectionHandle, section, selection};
use crate::scan::{FileRead, Rule, ScanKind, ScanPlan, ScanRequest, Section, SectionClass, Stage, Unit};
use crate::snapshot::Pin;
use crate::spec::text::datum_text_in;
use crate::spec::{CoreOptions, DataField, DataType, Datum, RowKind, Zone};

/// The values of a partition, as a key in a total order: different partitions may have the same text, NULL and the default
/// name for one.
#[derive(Debug, Clone, Default)]
pub struct PartitionValues(Arc<[Datum]>);

impl From<Arc<[Datum]>> for PartitionValues {
    fn from(values: Arc<[Datum]>) -> Self {
        Self(values)
    }
}

impl From<Vec<Datum>> for PartitionValues {
    fn from(values: Vec<Datum>) -> Self {
        Self(values.into())
    }
}

impl Ord for PartitionValues {
    fn cmp(&self, other: &Self) -> Ordering {
        let pairs = self.0.iter().zip(other.0.iter());
        let different = pairs.map(|(one, other)| one.total_cmp(other)).find(|order| order.is_ne());
        different.unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

impl PartialOrd for PartitionValues {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PartitionValues {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PartitionValues {}

/// Counts of one partition or unit, or of the whole table. For primary-key tables
/// `raw = hidden + vector_deleted + superseded + tombstoned + final`; for append tables `raw = vector_deleted + final`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountingRow {
    /// Partition as `dt=2026-04-16/h=1`; empty for tables without partitions and for the total.
    pub partition: String,
    /// Its values; empty likewise.
    pub values: PartitionValues,
    /// Bucket, None for sums over buckets.
    pub bucket: Option<i32>,
    /// Live files.
    pub files: u64,
    /// Sorted runs, summed over sections.
    pub runs: u64,
    /// R: rows of all live files.
    pub raw_rows: u64,
    /// D: rows that take something back in the files readers see, None when a file does not say.
    pub retract_rows: Option<u64>,
    /// H: rows of files that readers skip by design.
    pub hidden_rows: u64,
    /// V: rows deleted by vectors.
    pub vector_deleted: u64,
    /// X: versions beyond one per key.
    pub superseded: u64,
    /// T: keys whose result is a retract or nothing.
    pub tombstoned: u64,
    /// N: rows a reader gets.
    pub final_rows: u64,
    /// Bounds of N that metadata alone gives.
    pub final_bounds: (u64, u64),
    /// Final rows that meet the condition asked for; None without one, or when it chose the partitions.
    pub matching: Option<u64>,
}

/// The accounting of one pin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounting {
    /// Whether the table has a primary key.
    pub primary_key: bool,
    /// Whether files were read; else only raw, hidden and vector-deleted rows and the bounds are known.
    pub exact: bool,
    /// One row per partition, sorted; several may have the same text.
    pub partitions: Vec<AccountingRow>,
    /// One row per partition and bucket, sorted.
    pub units: Vec<AccountingRow>,
    /// The whole table.
    pub total: AccountingRow,
    /// `totalRecordCount` of the snapshot.
    pub snapshot_total: Option<i64>,
    /// Whether a condition on partition columns left partitions out: nothing here speaks of those.
    pub restricted: bool,
    /// Where the identity fails, in words; empty when it holds.
    pub violations: Vec<String>,
    /// What planning the read had to say.
    pub notices: Vec<Notice>,
}

impl AccountingRow {
    /// Whether raw rows equal the sum of the parts.
    pub fn identity_holds(&self) -> bool {
        self.raw_rows == self.hidden_rows + self.vector_deleted + self.superseded + self.tombstoned + self.final_rows
    }

    /// The files of a plan add up to numbers that there are (`scan` refuses others), and these are counts of their rows.
    /// What files say of their retracts is bounded by nothing: too many are told as not known.
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.runs += other.runs;
        self.raw_rows += other.raw_rows;
        self.retract_rows = self.retract_rows.zip(other.retract_rows).and_then(|(a, b)| a.checked_add(b));
        self.hidden_rows += other.hidden_rows;
        self.vector_deleted += other.vector_deleted;
        self.superseded += other.superseded;
        self.tombstoned += other.tombstoned;
        self.final_rows += other.final_rows;
        self.final_bounds.0 += other.final_bounds.0;
        self.final_bounds.1 += other.final_bounds.1;
    }

    fn start(partition: String, values: PartitionValues, bucket: Option<i32>) -> Self {
        Self { partition, values, bucket, retract_rows: Some(0), ..Self::default() }
    }
}

/// How to count.
#[derive(Clone)]
pub struct AccountingOptions {
    /// Whether to read the files; else metadata only.
    pub exact: bool,
    /// Zone of partition values that are instants.
    pub zone: Zone,
    /// Memory.
    pub budget: Arc<dyn MemoryBudget>,
    /// Conditions on partition columns alone: partitions that do not meet them are not counted.
    pub partitions: Vec<Expr>,
    /// Settings of the session, for functions in those conditions.
    pub config: Option<Arc<ConfigOptions>>,
}

/// Counts a pin.
///
/// # Errors
/// What planning and reading refuse; a file that is gone.
pub async fn account(pin: &Arc<Pin>, env: &Arc<QueryEnv>, options: &AccountingOptions) -> Result<Accounting> {
    let primary_key = pin.schema.is_primary_key_table();
    let restricted = !options.partitions.is_empty();
    let request = ScanRequest {
        explain: true,
        filters: options.partitions.clone(),
        config: options.config.clone(),
        ..counting(pin)?
    };
    let plan = crate::scan::plan(pin, &request, &env.scan).await?;
    let mut units = Units { rows: BTreeMap::new(), pin, zone: options.zone };
    let mut accounting = Accounting {
        primary_key,
        exact: options.exact,
        snapshot_total: pin.snapshot.as_ref().and_then(|s| s.total_record_count),
        notices: plan.notices.clone(),
        restricted,
        ..Accounting::default()
    };
    let mut column_rows = 0;
    // what the other branch gives, and what is not read of this one for it
    let (mut given, mut unread) = (0, 0);
    for decision in &plan.decisions {
        if decision.read == FileRead::Dropped(Stage::Column) {
            column_rows += u64::try_from(decision.rows).unwrap_or(0);
        }
        match (&decision.branch, &decision.read) {
            (None, FileRead::Dropped(Stage::Partition)) if decision.rule == Rule::OtherBranch => {
                unread += u64::try_from(decision.rows).unwrap_or(0);
            }
            (None, _) | (_, FileRead::Dropped(Stage::Partition)) => {}
            (Some(_), _) => given += u64::try_from(decision.rows).unwrap_or(0),
        }
        // another partition or bucket was asked for, or another branch has its partition: its rows are not of this read
        if matches!(decision.read, FileRead::Dropped(stage) if !matches!(stage, Stage::Level | Stage::Vector)) {
            continue;
        }
        let row = units.of(&decision.partition, decision.bucket.0)?;
        let rows = u64::try_from(decision.rows).map_err(|_| Error::corrupt("a file has a negative row count"))?;
        row.files += 1;
        row.raw_rows += rows;
        match decision.read {
            FileRead::Dropped(Stage::Level) => row.hidden_rows += rows,
            FileRead::Dropped(_) => row.vector_deleted += rows,
            FileRead::In(_) | FileRead::Told | FileRead::Remembered => {}
        }
    }
    let reader = Reader::new(pin, env, options)?;
    for unit in &plan.units {
        let row = units.of(&unit.partition, unit.bucket.0)?;
        for section in &unit.sections {
            reader.count(unit, section, row, &mut accounting.violations).await?;
        }
    }
    accounting.notices.extend(expiring_rows(pin).map(Notice::from));
    if column_rows > 0 {
        accounting.notices.push(NoticeKind::ColumnRows { rows: column_rows }.into());
    }
    if let Some(other) = pin.fallback.as_ref().or(pin.primary.as_ref())
        && given + unread > 0
    {
        let (table, branch) = (pin.table.name(), other.table.ident().branch.clone());
        accounting.notices.push(NoticeKind::OtherBranchRows { table, branch, rows: given, unread }.into());
    }
    accounting.units = units.rows.into_values().collect();
    check_totals(&plan, column_rows, &mut accounting);
    let mut partitions: BTreeMap<(&str, &PartitionValues), AccountingRow> = BTreeMap::new();
    let mut total = AccountingRow::start(String::new(), PartitionValues::default(), None);
    for row in &accounting.units {
        partitions
            .entry((&row.partition, &row.values))
            .or_insert_with(|| AccountingRow::start(row.partition.clone(), row.values.clone(), None))
            .add(row);
        total.add(row);
    }
    accounting.partitions = partitions.into_values().collect();
    accounting.total = total;
    Ok(accounting)
}

/// Option that lets compactions drop rows by their age.
pub const RECORD_EXPIRY: &str = "record-level.expire-time";

/// That rows which have expired may be among the final ones: readers give them until a compaction drops them.
pub fn expiring_rows(pin: &Pin) -> Option<NoticeKind> {
    let after = pin.options.raw.get(RECORD_EXPIRY)?.trim().to_string();
    let keyed = pin.schema.is_primary_key_table();
    keyed.then(|| NoticeKind::ExpiringRows { table: pin.table.name(), after })
}

/// Rows of partitions and buckets, in the order in which they are shown.
struct Units<'a> {
    rows: BTreeMap<(String, PartitionValues, i32), AccountingRow>,
    pin: &'a Arc<Pin>,
    zone: Zone,
}

impl Units<'_> {
    fn of(&mut self, partition: &Arc<[Datum]>, bucket: i32) -> Result<&mut AccountingRow> {
        let shown = partition_text(self.pin, partition, &self.zone)?;
        let values = PartitionValues::from(Arc::clone(partition));
        let start = || AccountingRow::start(shown.clone(), values.clone(), Some(bucket));
        Ok(self.rows.entry((shown.clone(), values.clone(), bucket)).or_insert_with(start))
    }
}

/// What counting asks of a scan: no column that is kept in files of its own.
///
/// # Errors
/// A partition key that is no column.
pub fn counting(pin: &Pin) -> Result<ScanRequest> {
    let columns =
        if pin.schema.is_primary_key_table() { None } else { Some(stored_column(pin)?.into_iter().collect()) };
    Ok(ScanRequest { columns, ..ScanRequest::default() })
}

/// The first column that makes the files be opened: partition values are known without them, and BLOBs and vectors may be
/// in files of their own.
fn stored_column(pin: &Pin) -> Result<Option<usize>> {
    const APART: &[&str] = &["blob-field", "blob-descriptor-field", "blob-view-field", "vector-field"];
    let partition = pin.schema.partition_indices()?;
    let lists = |option: &str, name: &str| {
        pin.options.raw.get(option).is_some_and(|names| names.split(',').any(|listed| listed.trim() == name))
    };
    let is_apart = |field: &DataField| {
        matches!(field.data_type(), DataType::Blob) || APART.iter().any(|option| lists(option, &field.name))
    };
    let mut columns = pin.schema.fields.iter().enumerate();
    Ok(columns.find(|(index, field)| !partition.contains(index) && !is_apart(field)).map(|(index, _)| index))
}

fn check_totals(plan: &ScanPlan, column_rows: u64, accounting: &mut Accounting) {
    let raw: u64 = accounting.units.iter().map(|row| row.raw_rows).sum();
    if let Some(total) = accounting.snapshot_total
        && !accounting.restricted
        && plan.pin.fallback.is_none()
        && plan.pin.primary.is_none()
        && plan.pin.options.scan.bucket.is_none()
        && u64::try_from(total).ok() != Some(raw + column_rows)
    {
        accounting.violations.push(format!("the live files have {raw} rows, the snapshot says {total}"));
    }
    if !accounting.exact {
        return;
    }
    for row in accounting.units.iter().filter(|row| !row.identity_holds()) {
        let place = match (row.partition.as_str(), row.bucket) {
            ("", Some(bucket)) => format!("bucket {bucket}"),
            (partition, Some(bucket)) => format!("{partition}, bucket {bucket}"),
            (partition, None) => partition.to_string(),
        };
        accounting.violations.push(format!(
            "{place}: {} raw rows are not {} hidden + {} vector-deleted + {} superseded + {} tombstoned + {} final",
            row.raw_rows, row.hidden_rows, row.vector_deleted, row.superseded, row.tombstoned, row.final_rows
        ));
    }
}

/// Reads sections to count them.
struct Reader {
    primary_key: bool,
    options: Arc<CoreOptions>,
    exact: bool,
    keys: Vec<usize>,
    /// Rows as a reader gets them.
    result: Arc<ReadContext>,
    /// All rows with their kinds.
    kinds: Arc<ReadContext>,
    /// All rows with their keys and kinds.
    keyed: Arc<ReadContext>,
    budget: Arc<dyn MemoryBudget>,
}

impl Reader {
    fn new(pin: &Arc<Pin>, env: &Arc<QueryEnv>, options: &AccountingOptions) -> Result<Self> {
        let primary_key = pin.schema.is_primary_key_table();
        let read_options = ReadOptions {
            batch_size: 8192,
            parallelism: 4,
            zone: options.zone,
            budget: Arc::clone(&options.budget),
            keep_selections: false,
        };
        let keys = if primary_key { pin.schema.trimmed_primary_key()? } else { Vec::new() };
        let stored = stored_column(pin)?.map(ReadColumn::Field);
        let context = |keep_deletes: bool, columns: Vec<ReadColumn>| {
            let kind = if keep_deletes { ScanKind::FullWithDeletes } else { ScanKind::Full };
            let caches = Arc::clone(&env.read);
            ReadContext::try_new(Arc::clone(pin), kind, keep_deletes, columns, read_options.clone(), caches)
        };
        let counted = |keep: bool| -> Result<Arc<ReadContext>> {
            let column = if primary_key { Some(ReadColumn::ValueKind) } else { stored };
            context(keep, column.into_iter().collect())
        };
        let mut keyed: Vec<ReadColumn> = keys.iter().map(|index| ReadColumn::Field(*index)).collect();
        keyed.push(ReadColumn::ValueKind);
        Ok(Self {
            primary_key,
            options: Arc::clone(&pin.options),
            exact: options.exact,
            keys,
            result: counted(false)?,
            kinds: counted(true)?,
            keyed: context(true, keyed)?,
            budget: Arc::clone(&options.budget),
        })
    }

    async fn count(
        &self,
        unit: &Unit,
        section: &Section,
        row: &mut AccountingRow,
        violations: &mut Vec<String>,
    ) -> Result<()> {
        row.runs += section.runs.len() as u64;
        for file in section.files() {
            let retracts = file.entry.file.delete_row_count.and_then(|n| u64::try_from(n).ok());
            row.retract_rows = row.retract_rows.zip(retracts).and_then(|(a, b)| a.checked_add(b));
        }
        let physical: u64 = section.files().map(|f| f.physical_rows()).sum();
        let vectors =
            section.files().map(|f| f.rows_after_vector().map(|left| f.physical_rows() - left)).sum::<Option<u64>>();
        let (low, high) = bounds(section, self.primary_key, &self.options);
        row.final_bounds.0 += low;
        row.final_bounds.1 += high;
        if !self.exact {
            row.vector_deleted += vectors.unwrap_or(0);
            return Ok(());
        }
        let handle = SectionHandle::new(unit, section.clone());
        let mut found = Found::default();
        match section.class {
            SectionClass::Raw | SectionClass::KindOnly if !self.primary_key => {
                found.finals = rows(&self.result, &handle).await?.0;
                found.physical = found.finals;
            }
            SectionClass::Raw => {
                // every row counts, whatever its kind: that is what raw promises
                found.finals = rows(&self.result, &handle).await?.0;
                found.physical = found.finals;
            }
            SectionClass::KindOnly => {
                let (all, retracts) = rows(&self.kinds, &handle).await?;
                found = Found { physical: all, superseded: 0, tombstoned: retracts, finals: all - retracts, ..found };
            }
            SectionClass::Select => {
                let selected = selection(&self.result, &handle).await?;
                let stats = selected.stats;
                found = Found {
                    physical: stats.rows - stats.vector_deleted,
                    superseded: stats.superseded,
                    tombstoned: stats.tombstones,
                    finals: stats.live,
                    vectors: Some(stats.vector_deleted),
                };
            }
            SectionClass::Combine => {
                // the same files as if nothing were combined: all their rows, and how many keys they have
                let raw = SectionHandle::new(unit, Section { class: SectionClass::KindOnly, ..section.clone() });
                let (all, keys) = self.distinct(&raw).await?;
                let finals = rows(&self.result, &handle).await?.0;
                let tombstoned = keys.checked_sub(finals).ok_or_else(|| {
                    Error::corrupt(format!("a section has {keys} keys and {finals} final rows"))
                        .with_context("bucket", unit.bucket)
                })?;
                found = Found { physical: all, superseded: all - keys, tombstoned, finals, ..found };
            }
        }
        // a vector that does not tell its size is what the rows read are short of
        let vectors = vectors.or(found.vectors).unwrap_or_else(|| physical.saturating_sub(found.physical));
        row.vector_deleted += vectors;
        if physical != vectors + found.physical {
            violations.push(format!(
                "bucket {}: files have {physical} rows and {vectors} deleted by vectors, {} were read",
                unit.bucket, found.physical
            ));
        }
        row.superseded += found.superseded;
        row.tombstoned += found.tombstoned;
        row.final_rows += found.finals;
        Ok(())
    }

    /// Rows of a section and their distinct keys.
    async fn distinct(&self, handle: &Arc<SectionHandle>) -> Result<(u64, u64)> {
        let mut held = Held::new(&self.budget);
        let mut keys: HashSet<Box<[u8]>> = HashSet::new();
        let mut all = 0u64;
        let mut converter: Option<RowConverter> = None;
        let mut batches = section(&self.keyed, handle);
        while let Some(batch) = batches.try_next().await? {
            all += batch.num_rows() as u64;
            // as the merge tells keys apart
            let columns: Vec<ArrayRef> = batch.columns().iter().take(self.keys.len()).map(canonical_keys).collect();
            let converter = match &mut converter {
                Some(converter) => converter,
                None => {
                    let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
                    converter.insert(RowConverter::new(fields)?)
                }
            };
            let rows = converter.convert_columns(&columns)?;
            for row in &rows {
                let bytes: &[u8] = row.as_ref();
                if !keys.contains(bytes) {
                    held.grow(bytes.len() + 48)?;
                    keys.insert(bytes.into());
                }
            }
        }
        Ok((all, keys.len() as u64))
    }
}

#[derive(Debug, Default)]
struct Found {
    /// Rows read, deleted ones left out.
    physical: u64,
    superseded: u64,
    tombstoned: u64,
    finals: u64,
    vectors: Option<u64>,
}

/// Rows of a section, and how many of them take back.
async fn rows(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> Result<(u64, u64)> {
    let (mut all, mut retracts) = (0u64, 0u64);
    let mut batches = section(context, handle);
    while let Some(batch) = batches.try_next().await? {
        all += batch.num_rows() as u64;
        retracts += retracts_of(context, &batch)?;
    }
    Ok((all, retracts))
}

fn retracts_of(context: &ReadContext, batch: &RecordBatch) -> Result<u64> {
    if context.columns.first() != Some(&ReadColumn::ValueKind) {
        return Ok(0);
    }
    let kinds = batch
        .columns()
        .first()
        .and_then(|column| column.as_primitive_opt::<Int8Type>())
        .ok_or_else(|| Error::internal("row kinds are no bytes"))?;
    let mut retracts = 0;
    for kind in kinds.values() {
        let kind = RowKind::from_byte(*kind).ok_or_else(|| Error::corrupt(format!("{kind} is no row kind")))?;
        retracts += u64::from(kind.is_retract());
    }
    Ok(retracts)
}

/// `dt=2024-01-02/h=1` for partition values of a pin, with the default name for NULL; empty without partitions.
pub fn partition_text(pin: &Pin, values: &[Datum], zone: &Zone) -> Result<String> {
    let fields: Vec<&DataField> = pin
        .schema
        .partition_indices()?
        .into_iter()
        .map(|index| pin.schema.fields.get(index).ok_or_else(|| Error::corrupt("a partition key is no column")))
        .collect::<Result<_>>()?;
    let parts: Vec<String> = fields
        .iter()
        .zip(values)
        .map(|(field, value)| {
            let text = datum_text_in(value, field.data_type(), zone);
            format!("{}={}", field.name, text.unwrap_or_else(|| pin.options.partition_default_name.clone()))
        })
        .collect();
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests;
