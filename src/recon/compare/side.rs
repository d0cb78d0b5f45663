//! A side of a comparison: what is read, at which state, and its rows in key order.

mod source;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, new_null_array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Column as PlanColumn, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use futures::{StreamExt, stream};
use twox_hash::XxHash64;

use self::source::SourceTable;
use super::convert::{Manner, convert, folded, keeps_order, may_fail, shown};
use super::files::FileState;
use super::pairs::{Column, CommonType, Pair, Pairs};
use super::pool::Share;
use super::unsure::{UNSURE, bounds};
use crate::error::{Error, Result};
use crate::query::{Work, yielding};
use crate::recon::source::{Source, SourceOrder, SourceRead, SourceWork, UNREADABLE, Unreadable, unreadable_of};
use crate::snapshot::Pin;

/// Name of a side's relation in its plans.
const RELATION: &str = "side";

/// Where the rows of a side come from.
#[derive(Clone)]
pub enum SideRows {
    /// A plan of the session: a table at its pin, a query, a file.
    Plan(LogicalPlan),
    /// A database.
    Source(Arc<dyn Source>),
}

/// What is looked at again when all rows are compared.
#[derive(Debug, Clone)]
pub enum Guard {
    /// A pin: its snapshot has to be there still.
    Pin(Arc<Pin>),
    /// A file: its bytes have to be the same.
    File(FileState),
}

impl Guard {
    async fn check(&self) -> Result<()> {
        match self {
            Self::Pin(pin) => pin.verify().await,
            Self::File(file) => file.verify().await,
        }
    }
}

/// One side.
#[derive(Clone)]
pub struct Side {
    /// What it is, for people, without secrets.
    pub name: String,
    /// The state that is read: pins, the position of a database, the hash of a file.
    pub position: String,
    /// Whether one position is one state: what is read at it again is the same. Only then a comparison goes on from
    /// what is done.
    pub state_known: bool,
    /// What is read at that state, where the name does not say it: the text of a query.
    pub what: Option<String>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: SideRows,
    /// Rows of interest, by its own columns; None: all.
    pub condition: Option<Expr>,
    /// What must not have changed in the end.
    pub guards: Vec<Guard>,
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").field("name", &self.name).field("position", &self.position).finish_non_exhaustive()
    }
}

/// Texts of these declared types are values that their Arrow type does not hold.
const DECLARED_VALUES: &[&str] = &[
    "date",
    "datetime",
    "timestamp",
    "timestamptz",
    "time",
    "year",
    "decimal",
    "numeric",
    "float",
    "double",
    "real",
    "int",
    "integer",
    "bigint",
    "smallint",
    "mediumint",
    "tinyint",
    "bool",
    "boolean",
];

impl Side {
    /// The side that a database is.
    pub fn of_source(source: Arc<dyn Source>) -> Self {
        let column = |column: &crate::recon::source::SourceColumn| {
            let base = column.declared.split([' ', '(']).next().unwrap_or_default().to_lowercase();
            let text = matches!(column.data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            Column {
                name: column.name.clone(),
                data_type: column.data_type.clone(),
                declared: Some(column.declared.clone()),
                untyped: text && DECLARED_VALUES.contains(&base.as_str()),
                collation: column.collation(),
            }
        };
        Self {
            name: source.name(),
            position: source.position().to_string(),
            state_known: source.position().is_state,
            what: None,
            columns: source.columns().iter().map(column).collect(),
            rows: SideRows::Source(source),
            condition: None,
            guards: Vec::new(),
        }
    }

    /// Looks again at what must not have changed.
    ///
    /// # Errors
    /// `SnapshotExpired`, `PinLost`, `FileChanged`.
    pub async fn check(&self) -> Result<()> {
        for guard in &self.guards {
            guard.check().await?;
        }
        Ok(())
    }

    /// What is to be known of the state that is read.
    pub fn caveats(&self) -> Vec<String> {
        let SideRows::Source(source) = &self.rows else { return Vec::new() };
        let position = source.position();
        let lag = position.lag_millis.map(|lag| format!("a replica that is {lag} ms behind"));
        position.caveats.iter().cloned().chain(lag).collect()
    }

    /// What its database did so far.
    pub fn source_work(&self) -> Option<SourceWork> {
        match &self.rows {
            SideRows::Source(source) => Some(source.work()),
            SideRows::Plan(_) => None,
        }
    }
}

/// What of a side is read.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Only rows that meet the side's condition.
    pub filtered: bool,
    /// Only keys beyond this one, as bytes of [`Form::keys`].
    pub after: Option<Vec<u8>>,
    /// Only rows that meet this too, by the side's own columns.
    pub also: Option<Expr>,
    /// In a database: only these keys.
    pub keys: Vec<Vec<ScalarValue>>,
    /// The part of the keys that is looked at, of a million; None: all.
    pub sample: Option<u32>,
    /// Other rows of the side are looked up before the last of these came.
    pub beside: bool,
    /// No row: all are done.
    pub nothing: bool,
}

/// What was found out while rows were brought to their common form.
#[derive(Debug, Default)]
pub struct Found {
    /// Rows that came.
    pub rows: AtomicU64,
    /// Values that lost digits, by pair.
    cut: Vec<AtomicU64>,
    /// Values of the right side that MAP has, by pair.
    mapped: Vec<AtomicU64>,
}

impl Found {
    fn new(pairs: usize) -> Arc<Self> {
        let zeros = || (0..pairs).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { rows: AtomicU64::new(0), cut: zeros(), mapped: zeros() })
    }

    /// Values of a pair that lost digits.
    pub fn cut(&self, pair: usize) -> u64 {
        self.cut.get(pair).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Values of a pair that stood for others.
    pub fn mapped(&self, pair: usize) -> u64 {
        self.mapped.get(pair).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// The form in which rows of one side are compared: a column for each pair, then one for what could not be read of each
/// pair where that can be, then one that tells where it is not known whether the row meets the condition.
#[derive(Debug)]
pub struct Form {
    pairs: Arc<Pairs>,
    right: bool,
    manner: Manner,
    /// Columns.
    pub schema: SchemaRef,
    /// By pair, the column of what could not be read.
    pub unread: Vec<Option<usize>>,
    /// The column that is not NULL where it is not known whether the row meets the condition.
    pub unsure: Option<usize>,
    /// By pair, the column of the texts as they were, where they are compared in lower case.
    written: Vec<Option<usize>>,
    /// The order of keys.
    pub keys: Arc<RowConverter>,
    /// What was found out so far.
    pub found: Arc<Found>,
}

impl Form {
    /// The form of the left or the right side.
    pub fn new(pairs: &Arc<Pairs>, right: bool, side: &Side, manner: Manner) -> Result<Arc<Self>> {
        let is_source = matches!(side.rows, SideRows::Source(_));
        let mut fields: Vec<Field> = pairs
            .all
            .iter()
            .enumerate()
            .map(|(at, pair)| Field::new(format!("c{at}"), pair.common.data_type(), true))
            .collect();
        let mut unread = Vec::new();
        for (at, pair) in pairs.all.iter().enumerate() {
            let column = if right { &pair.right } else { &pair.left };
            // a database may hold what no type of ours does: a date of zeros, a number that is none
            let fails = is_source || may_fail(column, &pair.common, pair.map.is_some());
            unread.push(fails.then_some(fields.len()));
            if fails {
                fields.push(Field::new(format!("u{at}"), DataType::Utf8, true));
            }
        }
        let unsure = (is_source && side.condition.is_some()).then_some(fields.len());
        if unsure.is_some() {
            fields.push(Field::new("w", DataType::Boolean, true));
        }
        let mut written = Vec::new();
        for (at, pair) in pairs.all.iter().enumerate() {
            let is_folded = matches!(pair.common, CommonType::Text { folded: true, .. });
            written.push(is_folded.then_some(fields.len()));
            if is_folded {
                fields.push(Field::new(format!("w{at}"), DataType::Utf8, true));
            }
        }
        let keys = pairs.all.iter().take(pairs.keys).map(|pair| SortField::new(pair.common.data_type()));
        Ok(Arc::new(Self {
            keys: Arc::new(RowConverter::new(keys.collect())?),
            found: Found::new(pairs.all.len()),
            pairs: Arc::clone(pairs),
            right,
            manner,
            schema: Arc::new(Schema::new(fields)),
            unread,
            unsure,
            written,
        }))
    }

    /// The column that shows the values of a pair as they were.
    pub fn shown_at(&self, pair: usize) -> usize {
        self.written.get(pair).copied().flatten().unwrap_or(pair)
    }

    fn column<'a>(&self, pair: &'a Pair) -> &'a Column {
        if self.right { &pair.right } else { &pair.left }
    }

    /// Names of the columns that are read, each once.
    fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for pair in &self.pairs.all {
            let name = &self.column(pair).name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Columns of the key, by their names in the side.
    pub fn key_columns(&self) -> Vec<String> {
        self.pairs.all.iter().take(self.pairs.keys).map(|pair| self.column(pair).name.clone()).collect()
    }

    /// A key for people.
    pub fn key_text(&self, key: &[u8]) -> Result<String> {
        let arrays = self.keys.convert_rows([self.keys.parser().parse(key)])?;
        let pairs = self.pairs.all.iter().zip(&arrays);
        let parts = pairs.map(|(pair, array)| Ok(format!("{} = {}", pair.name(), shown(array, 0)?)));
        Ok(parts.collect::<Result<Vec<_>>>()?.join(", "))
    }

    /// A key in the types of the side itself; None where they do not hold it exactly: another one would stand elsewhere
    /// in the order of keys.
    fn raw_key(&self, key: &[u8]) -> Result<Option<Vec<ScalarValue>>> {
        let parser = self.keys.parser();
        let arrays = self.keys.convert_rows([parser.parse(key)])?;
        let mut values = Vec::with_capacity(arrays.len());
        for (array, pair) in arrays.iter().zip(self.pairs.all.iter().take(self.pairs.keys)) {
            let value = ScalarValue::try_from_array(array, 0)?;
            let own = value.cast_to(&self.column(pair).data_type).ok();
            let own = own.filter(|own| own.cast_to(&value.data_type()).is_ok_and(|back| back == value));
            let Some(own) = own else { return Ok(None) };
            values.push(own);
        }
        Ok(Some(values))
    }

    /// Whether a source may have a key: its columns can hold all values of it.
    pub fn is_held(&self, source: &dyn Source, key: &[ScalarValue]) -> bool {
        self.key_columns().iter().zip(key).all(|(column, value)| source.holds(column, value))
    }

    /// Keys of rows in common form in the types of the side itself, where those types hold them exactly.
    pub fn raw_keys(&self, batch: &RecordBatch) -> Result<Option<Vec<Vec<ScalarValue>>>> {
        let pairs = self.pairs.all.iter().take(self.pairs.keys);
        let mut columns = Vec::new();
        for (pair, array) in pairs.zip(batch.columns()) {
            let column = self.column(pair);
            // a condition on the column finds the value in this form only where the column has no other form of it
            if !keeps_order(column, &pair.common, pair.map.is_some()) {
                return Ok(None);
            }
            let options = arrow::compute::CastOptions { safe: true, ..arrow::compute::CastOptions::default() };
            let cast = |array: &ArrayRef, to: &DataType| arrow::compute::cast_with_options(array, to, &options);
            let own = cast(array, &column.data_type)?;
            let other = arrow::compute::kernels::cmp::distinct(&cast(&own, array.data_type())?, array)?;
            columns.push(arrow::compute::nullif(&own, &other)?);
        }
        let mut keys = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let key = columns.iter().map(|array| Ok(ScalarValue::try_from_array(array, row)?));
            let key: Vec<ScalarValue> = key.collect::<Result<_>>()?;
            // one that the side cannot hold is not there
            if !key.iter().any(ScalarValue::is_null) {
                keys.push(key);
            }
        }
        Ok(Some(keys))
    }

    fn batch(&self, batch: &RecordBatch, asked: &Asked) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        let mut unread: Vec<Option<StringArray>> = Vec::new();
        let mut written: Vec<ArrayRef> = Vec::new();
        let told = match batch.column_by_name(UNREADABLE) {
            Some(_) => unreadable_of(batch)?.1,
            None => Vec::new(),
        };
        for (at, pair) in self.pairs.all.iter().enumerate() {
            let name = &self.column(pair).name;
            let array =
                batch.column_by_name(name).ok_or_else(|| Error::internal(format!("column {name} did not come")))?;
            let converted = convert(array, pair, self.right, &self.manner)?;
            let count = |counts: &[AtomicU64], more: u64| {
                if let Some(count) = counts.get(at).filter(|_| more > 0) {
                    count.fetch_add(more, Ordering::Relaxed);
                }
            };
            count(&self.found.cut, converted.cut);
            count(&self.found.mapped, converted.mapped);
            columns.push(match pair.common {
                CommonType::Text { folded: true, .. } => {
                    let lower = folded(&converted.values);
                    written.push(converted.values);
                    lower
                }
                _ => converted.values,
            });
            unread.push(with_told(converted.unread, told.iter().filter(|one| one.column == *name), rows));
        }
        for (at, unread) in unread.into_iter().enumerate() {
            match (self.unread.get(at).copied().flatten(), unread) {
                (Some(_), Some(texts)) => columns.push(Arc::new(texts)),
                (Some(_), None) => columns.push(new_null_array(&DataType::Utf8, rows)),
                (None, None) => {}
                (None, Some(texts)) => {
                    let text = texts.iter().flatten().next().unwrap_or_default().to_string();
                    return Err(Error::internal(format!("'{text}' was not thought to be unreadable")));
                }
            }
        }
        if self.unsure.is_some() {
            columns.push(match batch.column_by_name(UNSURE).and_then(|bits| bits.as_boolean_opt()) {
                Some(bits) => {
                    let sure = arrow::compute::not(bits)?;
                    arrow::compute::nullif(bits, &sure)?
                }
                None => new_null_array(&DataType::Boolean, rows),
            });
        }
        columns.extend(written);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        self.found.rows.fetch_add(rows as u64, Ordering::Relaxed);
        if asked.after.is_none() && asked.sample.is_none() {
            return Ok(batch);
        }
        let keys = self.keys.convert_columns(batch.columns().get(..self.pairs.keys).unwrap_or_default())?;
        let wanted = keys.iter().map(|key| {
            let bytes = key.data();
            let beyond = asked.after.as_deref().is_none_or(|after| bytes > after);
            beyond && asked.sample.is_none_or(|part| XxHash64::oneshot(0, bytes) % 1_000_000 < u64::from(part))
        });
        let wanted: BooleanArray = wanted.map(Some).collect();
        Ok(filter_record_batch(&batch, &wanted)?)
    }
}

/// What could not be read of a column: what the database told of it beside what was found out here.
fn with_told<'a>(
    found: Option<StringArray>,
    told: impl Iterator<Item = &'a Unreadable>,
    rows: usize,
) -> Option<StringArray> {
    let mut told = told.peekable();
    if told.peek().is_none() {
        return found;
    }
    let mut texts: Vec<Option<String>> = match &found {
        Some(found) => found.iter().map(|text| text.map(str::to_string)).collect(),
        None => vec![None; rows],
    };
    for one in told {
        if let Some(text) = texts.get_mut(one.row) {
            *text = Some(one.text.clone());
        }
    }
    Some(texts.into_iter().collect())
}

/// The plan that gives a side's rows in their common form, in key order; made before anything is read.
#[derive(Debug, Clone)]
pub struct Ordered {
    plan: Arc<dyn ExecutionPlan>,
    /// What is read of files.
    pub work: Work,
    /// Whether rows come in order by themselves.
    pub streamed: bool,
    /// Conditions that a database is sent.
    pub sent: Vec<String>,
}

/// Plans a side.
///
/// # Errors
/// Those of planning.
pub async fn ordered(side: &Side, form: &Arc<Form>, asked: Asked, state: &SessionState) -> Result<Ordered> {
    if asked.nothing {
        let plan: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::clone(&form.schema)));
        return Ok(Ordered { work: Work::of(&plan), plan, streamed: false, sent: Vec::new() });
    }
    let streamed = match &side.rows {
        SideRows::Source(source) => {
            comes_in_order(source, form).await?
                && (!asked.beside || source.shares_connection(&form.key_columns()).await?)
        }
        SideRows::Plan(_) => false,
    };
    let (mut own, mut asked_of) = (None, None);
    let (base, state) = match &side.rows {
        SideRows::Plan(plan) => (LogicalPlanBuilder::from(plan.clone()), state),
        SideRows::Source(source) => {
            let after = asked.after.as_deref().filter(|_| streamed).map(|after| form.raw_key(after)).transpose()?;
            let read = SourceRead {
                // a list of keys is of the columns that it is ordered by
                ordered_by: if streamed || !asked.keys.is_empty() { form.key_columns() } else { Vec::new() },
                after: after.flatten().filter(|key| form.is_held(source.as_ref(), key)),
                keys: asked.keys.clone(),
                ..SourceRead::default()
            };
            let table = Arc::new(SourceTable::new(Arc::clone(source), read));
            asked_of = Some(Arc::clone(&table));
            // more partitions would mix its rows
            let mut alone = state.clone();
            alone.config_mut().options_mut().execution.target_partitions = 1;
            let table = provider_as_source(table);
            (LogicalPlanBuilder::scan(RELATION, table, None)?, &*own.insert(alone))
        }
    };
    let mut plan = base.alias(RELATION)?;
    let column = |name: &str| Expr::Column(PlanColumn::new(Some(RELATION), name));
    let mut projected: Vec<Expr> = form.columns().iter().map(|name| column(name)).collect();
    if let Some(condition) = side.condition.as_ref().filter(|_| asked.filtered) {
        plan = match &side.rows {
            // NULL for what could not be read must not make a row vanish
            SideRows::Source(source) => {
                let bounds = bounds(condition, &column(UNREADABLE), source.as_ref());
                projected.push(bounds.unsure.alias(UNSURE));
                plan.filter(bounds.may)?
            }
            SideRows::Plan(_) => plan.filter(condition.clone())?,
        };
    }
    if let Some(condition) = &asked.also {
        plan = plan.filter(condition.clone())?;
    }
    // behind the others, as a read gives it
    projected.extend(matches!(side.rows, SideRows::Source(_)).then(|| column(UNREADABLE)));
    let plan = plan.project(projected)?.build()?;
    let physical = yielding(state.create_physical_plan(&plan).await?)?;
    let work = Work::of(&physical);
    let sent = asked_of.map(|table| table.sent()).unwrap_or_default();
    let partitions = physical.output_partitioning().partition_count();
    let asked = Arc::new(asked);
    let streams = (0..partitions).map(|partition| -> Arc<dyn PartitionStream> {
        let (input, form, asked) = (Arc::clone(&physical), Arc::clone(form), Arc::clone(&asked));
        Arc::new(Converting { input, partition, form, asked })
    });
    let schema = Arc::clone(&form.schema);
    let converted: Arc<dyn ExecutionPlan> =
        Arc::new(StreamingTableExec::try_new(schema, streams.collect(), None, Vec::new(), false, None)?);
    if streamed && partitions == 1 {
        return Ok(Ordered { plan: converted, work, streamed, sent });
    }
    let by = (0..form.pairs.keys).map(|at| {
        PhysicalSortExpr::new_default(Arc::new(PhysicalColumn::new(&format!("c{at}"), at))).nulls_first().asc()
    });
    let order = LexOrdering::new(by).ok_or_else(|| Error::internal("a key has no columns"))?;
    // one sort: merging the spills of several takes all memory there is from the merge above them
    let together: Arc<dyn ExecutionPlan> =
        if partitions > 1 { Arc::new(CoalescePartitionsExec::new(converted)) } else { converted };
    let plan: Arc<dyn ExecutionPlan> = Arc::new(SortExec::new(order, together));
    Ok(Ordered { plan, work, streamed: false, sent })
}

/// Whether a database gives its rows in the order of the common key, and by an index.
async fn comes_in_order(source: &Arc<dyn Source>, form: &Form) -> Result<bool> {
    let columns = source.columns();
    let same = form.pairs.all.iter().take(form.pairs.keys).all(|pair| {
        let column = form.column(pair);
        let known = columns.iter().find(|known| known.name == column.name);
        // where NULL comes first or last differs between databases
        let plain = known.is_some_and(|known| known.order == SourceOrder::Values && !known.nullable);
        plain && keeps_order(column, &pair.common, pair.map.is_some())
    });
    Ok(same && source.is_indexed(&form.key_columns()).await?)
}

impl Ordered {
    /// Begins to read; each side has its half of the session's memory.
    ///
    /// # Errors
    /// Those of the nodes.
    pub fn begin(&self, state: &SessionState) -> Result<SendableRecordBatchStream> {
        let runtime = Arc::clone(state.runtime_env());
        let pool = Share::of(&runtime.memory_pool, 2);
        let mut config = state.config().clone();
        if let datafusion::execution::memory_pool::MemoryLimit::Finite(bytes) = pool.memory_limit() {
            let sort = &mut config.options_mut().execution;
            // a sort sets so much aside before it begins
            sort.sort_spill_reservation_bytes = sort.sort_spill_reservation_bytes.min(bytes / 8);
        }
        let runtime = RuntimeEnvBuilder::from_runtime_env(&runtime).with_memory_pool(pool).build_arc()?;
        let task = TaskContext::from(state).with_runtime(runtime).with_session_config(config);
        Ok(execute_stream(Arc::clone(&self.plan), Arc::new(task))?)
    }
}

/// One partition of a side, in its common form.
struct Converting {
    input: Arc<dyn ExecutionPlan>,
    partition: usize,
    form: Arc<Form>,
    asked: Arc<Asked>,
}

impl fmt::Debug for Converting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converting").field("partition", &self.partition).finish_non_exhaustive()
    }
}

impl PartitionStream for Converting {
    fn schema(&self) -> &SchemaRef {
        &self.form.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.form.schema);
        let rows = match self.input.execute(self.partition, task) {
            Ok(rows) => rows,
            Err(error) => return Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Err(error)]))),
        };
        let (form, asked) = (Arc::clone(&self.form), Arc::clone(&self.asked));
        let converted = rows.map(move |batch| form.batch(&batch?, &asked).map_err(DataFusionError::from));
        Box::pin(RecordBatchStreamAdapter::new(schema, converted))
    }
}
