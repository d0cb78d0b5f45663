//! Row accounting: every physical row of a snapshot is hidden, deleted by a vector, superseded, a tombstone or final.
//!
//! Raw, hidden and vector-deleted rows come from metadata, the others from reading the files; that both sides meet is
//! checked, unit by unit, and never rounded.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int8Type;
use arrow::row::{RowConverter, SortField};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use futures::TryStreamExt;

use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::merge::canonical_keys;
use crate::notice::{Notice, NoticeKind};
use crate::query::QueryEnv;
use crate::read::{Held, ReadColumn, ReadContext, ReadOptions, SectionHandle, section, selection};
use crate::scan::{FileRead, ScanKind, ScanPlan, ScanRequest, Section, SectionClass, Stage, Unit};
use crate::snapshot::Pin;
use crate::spec::text::datum_text_in;
use crate::spec::{DataField, DataType, Datum, RowKind, Zone};

/// Counts of one partition or unit, or of the whole table. For primary-key tables
/// `raw = hidden + vector_deleted + superseded + tombstoned + final`; for append tables `raw = vector_deleted + final`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountingRow {
    /// Partition as `dt=2026-04-16/h=1`; empty for tables without partitions and for the total.
    pub partition: String,
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
    /// One row per partition, sorted.
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

    fn start(partition: String, bucket: Option<i32>) -> Self {
        Self { partition, bucket, retract_rows: Some(0), ..Self::default() }
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
    let mut units: BTreeMap<(String, i32), AccountingRow> = BTreeMap::new();
    let mut accounting = Accounting {
        primary_key,
        exact: options.exact,
        snapshot_total: pin.snapshot.as_ref().and_then(|s| s.total_record_count),
        notices: plan.notices.clone(),
        restricted,
        ..Accounting::default()
    };
    let named = |partition: &[Datum]| partition_text(pin, partition, &options.zone);
    let mut column_rows = 0;
    for decision in &plan.decisions {
        if decision.read == FileRead::Dropped(Stage::Column) {
            column_rows += u64::try_from(decision.rows).unwrap_or(0);
        }
        // another partition or bucket was asked for, or another branch has its partition: its rows are not of this read
        if matches!(decision.read, FileRead::Dropped(stage) if !matches!(stage, Stage::Level | Stage::Vector)) {
            continue;
        }
        let key = (named(&decision.partition)?, decision.bucket.0);
        let row = units.entry(key.clone()).or_insert_with(|| AccountingRow::start(key.0, Some(key.1)));
        let rows = u64::try_from(decision.rows).map_err(|_| Error::corrupt("a file has a negative row count"))?;
        row.files += 1;
        row.raw_rows += rows;
        match decision.read {
            FileRead::Dropped(Stage::Level) => row.hidden_rows += rows,
            FileRead::Dropped(_) => row.vector_deleted += rows,
            FileRead::In(_) => {}
        }
    }
    let reader = Reader::new(pin, env, options)?;
    for unit in &plan.units {
        let key = (named(&unit.partition)?, unit.bucket.0);
        let row = units.entry(key.clone()).or_insert_with(|| AccountingRow::start(key.0, Some(key.1)));
        for section in &unit.sections {
            reader.count(unit, section, row, &mut accounting.violations).await?;
        }
    }
    if column_rows > 0 {
        accounting.notices.push(NoticeKind::ColumnRows { rows: column_rows }.into());
    }
    check_totals(&plan, &units, column_rows, &mut accounting);
    let mut partitions: BTreeMap<String, AccountingRow> = BTreeMap::new();
    let mut total = AccountingRow::start(String::new(), None);
    for row in units.values() {
        partitions
            .entry(row.partition.clone())
            .or_insert_with(|| AccountingRow::start(row.partition.clone(), None))
            .add(row);
        total.add(row);
    }
    accounting.units = units.into_values().collect();
    accounting.partitions = partitions.into_values().collect();
    accounting.total = total;
    Ok(accounting)
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

fn check_totals(
    plan: &ScanPlan,
    units: &BTreeMap<(String, i32), AccountingRow>,
    column_rows: u64,
    accounting: &mut Accounting,
) {
    let raw: u64 = units.values().map(|row| row.raw_rows).sum();
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
    for row in units.values().filter(|row| !row.identity_holds()) {
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
        let read_options =
            ReadOptions { batch_size: 8192, parallelism: 4, zone: options.zone, budget: Arc::clone(&options.budget) };
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
        let (low, high) = bounds(section, vectors);
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

/// What metadata alone says of the final rows of a section.
fn bounds(section: &Section, vectors: Option<u64>) -> (u64, u64) {
    if let Some(exact) = section.exact_rows() {
        return (exact, exact);
    }
    let physical: u64 = section.files().map(|f| f.physical_rows()).sum();
    let high = physical - vectors.unwrap_or(0).min(physical);
    (0, high)
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
mod tests {
    use std::path::Path;

    use arrow::array::{Float64Array, Int8Array, Int32Array, Int64Array};
    use arrow::compute::cast;
    use arrow::datatypes::DataType as ArrowType;
    use serde_json::json;

    use super::*;
    use crate::catalog::{Catalog, FilesystemCatalog};
    use crate::memory::Unbounded;
    use crate::snapshot::PinRequest;
    use crate::spec::CommitKind;
    use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};
    use crate::testing::golden;

    /// Counts the latest snapshot under some options.
    async fn counted(warehouse: &Path, database: &str, table: &str, options: &[(&str, &str)]) -> Accounting {
        let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await.unwrap();
        let table = catalog.table(database, table).await.unwrap();
        let options = options.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
        let pin = Pin::resolve(&table, PinRequest::Latest, &options).await.unwrap();
        let options = AccountingOptions {
            exact: true,
            zone: Zone::UTC,
            budget: Arc::new(Unbounded),
            partitions: Vec::new(),
            config: None,
        };
        account(&pin, &QueryEnv::new(), &options).await.unwrap()
    }

    /// Raw, hidden, deleted by vectors, final.
    fn parts(row: &AccountingRow) -> [u64; 4] {
        [row.raw_rows, row.hidden_rows, row.vector_deleted, row.final_rows]
    }

    #[tokio::test]
    async fn files_that_are_not_read_are_counted_for_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")])
            .primary_key(&["id"])
            .option("bucket", "2")
            .option("deletion-vectors.enabled", "true");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        let rows: Vec<_> = (0..40).map(|id| json!({"id": id, "v": id})).collect();
        table.commit().file(FileSpec::rows(&rows).level(5)).kind(CommitKind::Compact).publish().unwrap();
        let all = table.live_files().unwrap();
        let (gone, half) = (&all[0].file, &all[1].file);
        table
            .commit()
            .delete_positions(&gone.file_name, &(0..gone.row_count as u64).collect::<Vec<_>>())
            .delete_positions(&half.file_name, &[0, 1])
            .kind(CommitKind::Compact)
            .publish()
            .unwrap();
        table.append(&[json!({"id": 1000, "v": 1})]).unwrap();
        let counts = counted(dir.path(), "d", "t", &[]).await;
        let gone = gone.row_count as u64;
        assert_eq!(parts(&counts.total), [41, 1, gone + 2, 38 - gone]);
        assert_eq!(counts.violations, Vec::<String>::new());
        // one bucket asked for: the other's files are no deleted rows
        let mut sums = [0; 4];
        for bucket in ["0", "1"] {
            let counts = counted(dir.path(), "d", "t", &[("scan.bucket", bucket)]).await;
            assert_eq!(counts.violations, Vec::<String>::new());
            assert_eq!(counts.units.len(), 1);
            sums.iter_mut().zip(parts(&counts.total)).for_each(|(sum, part)| *sum += part);
        }
        assert_eq!(sums, parts(&counts.total));
    }

    #[tokio::test]
    async fn both_zeros_and_all_nans_are_one_key_each() {
        for (text, of) in [("DOUBLE", ArrowType::Float64), ("FLOAT", ArrowType::Float32)] {
            let dir = tempfile::tempdir().unwrap();
            let spec = TableSpec::new(&[("k", &format!("{text} NOT NULL")), ("v", "INT")])
                .primary_key(&["k"])
                .option("bucket", "1")
                .option("merge-engine", "aggregation")
                .option("fields.v.aggregate-function", "sum");
            let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
            let other_nan = if of == ArrowType::Float64 {
                f64::from_bits(0xfff8_0000_0000_0001)
            } else {
                f64::from(f32::from_bits(0xffc0_0001))
            };
            for keys in [[0.0, 1.0, f64::NAN], [-0.0, 1.0, other_nan]] {
                let keys = cast(&Float64Array::from(keys.to_vec()), &of).unwrap();
                let columns: Vec<(&str, ArrayRef)> = vec![
                    ("k", keys),
                    ("v", Arc::new(Int32Array::from(vec![1, 2, 3]))),
                    ("_SEQUENCE_NUMBER", Arc::new(Int64Array::from(vec![1, 2, 3]))),
                    ("_VALUE_KIND", Arc::new(Int8Array::from(vec![0, 0, 0]))),
                ];
                let batch = RecordBatch::try_from_iter(columns).unwrap();
                table.commit().file(FileSpec::batches(vec![batch])).publish().unwrap();
            }
            let counts = counted(dir.path(), "d", "t", &[]).await;
            let total = &counts.total;
            assert_eq!([total.raw_rows, total.superseded, total.tombstoned, total.final_rows], [6, 3, 0, 3], "{text}");
        }
    }

    #[tokio::test]
    async fn partitions_of_another_branch_are_no_deleted_rows() {
        // partition b is in both branches
        let counts = counted(&golden::java_warehouse().unwrap(), "golden", "fallback_branch", &[]).await;
        assert_eq!(parts(&counts.total), [3, 0, 0, 3]);
        assert!(counts.partitions.iter().all(|row| parts(row) == [1, 0, 0, 1]), "{:?}", counts.partitions);
    }

    /// As `count(*)`, which reads no column at all.
    #[tokio::test]
    async fn columns_in_files_of_their_own_add_no_rows() {
        let counts = counted(&golden::python_warehouse().unwrap(), "golden", "append_blob", &[]).await;
        let rows = counts.total.final_rows;
        assert!(rows > 0);
        assert_eq!(parts(&counts.total), [rows, 0, 0, rows]);
        assert_eq!(counts.violations, Vec::<String>::new());
        assert!(counts.notices.iter().any(|notice| notice.contains("only hold columns")), "{:?}", counts.notices);
    }

    #[test]
    fn the_identity_is_checked_to_the_row() {
        let row = AccountingRow {
            raw_rows: 10,
            hidden_rows: 1,
            vector_deleted: 2,
            superseded: 3,
            tombstoned: 1,
            final_rows: 3,
            ..AccountingRow::default()
        };
        assert!(row.identity_holds());
        assert!(!AccountingRow { final_rows: 4, ..row.clone() }.identity_holds());
    }

    #[test]
    fn an_unknown_retract_count_stays_unknown_in_the_sum() {
        let mut total = AccountingRow::start(String::new(), None);
        total.add(&AccountingRow { retract_rows: Some(2), ..AccountingRow::default() });
        assert_eq!(total.retract_rows, Some(2));
        total.add(&AccountingRow { retract_rows: None, ..AccountingRow::default() });
        assert_eq!(total.retract_rows, None);
    }
}
