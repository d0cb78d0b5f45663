//! From a task to batches.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int8Array, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{filter, is_not_null, take};
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::access::Access;
use super::avro;
use super::decode::{Request, Stored, StoredBatch};
use super::evolve::{can_cast, cast_array};
use super::format::FileFormat;
#[cfg(feature = "orc")]
use super::orc;
use super::parquet;
use super::physical::{to_declared, within_precision};
use super::task::{FileEnv, FileTask, KEY_PREFIX, OutputColumn, SEQUENCE_NUMBER, VALUE_KIND};
use crate::error::{Error, Result};
use crate::spec::arrow_types::{arrow_type, datums_to_array};
use crate::spec::{DataType, Datum, FieldType, RowKind};

/// Opens a file and streams the wanted rows in file order, batches of the task's schema of at most the batch size.
/// Dropping the stream stops all reading. Nothing is read before the footer, which is read here.
///
/// # Errors
/// `DataFileMissing` when the file is gone; Corrupt, naming the file, when it cannot be decoded or does not hold what
/// the manifest says; Unsupported for formats, shredded variants and casts that do not exist.
pub async fn open(env: &Arc<FileEnv>, task: &FileTask) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let rows = open_once(env, task, false).await?;
    let asks_for_keys = |column: &OutputColumn| matches!(column, OutputColumn::Field(f) if task.keys.contains(&f.id));
    if !task.columns.iter().any(asks_for_keys) {
        return Ok(rows);
    }
    let first = Reading { rows, given: 0, again: Some((Arc::clone(env), task.clone())) };
    Ok(stream::try_unfold(first, |mut reading| async move { Ok(reading.next().await?.map(|batch| (batch, reading))) })
        .boxed())
}

/// The rows of a file that is read once more, with its `_KEY_` columns, from the first key on that is missing.
struct Reading {
    rows: BoxStream<'static, Result<RecordBatch>>,
    /// Rows given out.
    given: usize,
    /// What to read again; None: it is read again.
    again: Option<(Arc<FileEnv>, FileTask)>,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let error = match self.rows.next().await.transpose() {
            Ok(batch) => {
                self.given += batch.as_ref().map_or(0, RecordBatch::num_rows);
                return Ok(batch);
            }
            Err(error) => error,
        };
        let again = self.again.take().filter(|_| error.code() == NULL_IN_NOT_NULL);
        let Some((env, task)) = again else { return Err(error) };
        self.rows = open_once(&env, &task, true).await?;
        let mut passed = 0;
        while let Some(batch) = self.rows.next().await.transpose()? {
            let known = self.given.saturating_sub(passed).min(batch.num_rows());
            passed += batch.num_rows();
            if known < batch.num_rows() {
                self.given = passed;
                return Ok(Some(batch.slice(known, batch.num_rows() - known)));
            }
        }
        Ok(None)
    }
}

async fn open_once(env: &FileEnv, task: &FileTask, with_keys: bool) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let access = Access::new(task);
    let format = FileFormat::of_file(&task.location.to_string())?;
    let (columns, stored_names) = resolve(task, with_keys).map_err(|e| access.locate(e))?;
    let request =
        Request { columns: stored_names, live: task.live.clone(), batch_size: task.options.batch_size.max(1) };
    let stored = match format {
        FileFormat::Parquet => parquet::open(env, &access, request).await,
        #[cfg(feature = "orc")]
        FileFormat::Orc => orc::open(&access, request).await,
        #[cfg(not(feature = "orc"))]
        FileFormat::Orc => {
            return Err(access.locate(
                Error::unsupported("this build does not read ORC")
                    .with_code("UnsupportedFileFormat")
                    .with_hint("build with the feature 'orc'"),
            ));
        }
        FileFormat::Avro => avro::open(&access, request, &task.budget).await,
    };
    let stored = match stored {
        Ok(stored) => stored,
        Err(error) => return Err(access.or_of_entry(error).await),
    };
    if let Some(rows) = stored.rows {
        check_rows(task, &access, rows)?;
    }
    Ok(Rows::new(task, access, format, columns, stored).into_stream())
}

/// The file must hold what the manifest and the mask say.
fn check_rows(task: &FileTask, access: &Access, rows: u64) -> Result<()> {
    if let Some(told) = task.row_count.filter(|told| *told != rows) {
        return Err(access.damaged(format!("it holds {rows} rows where the manifest says {told}")));
    }
    if let Some(live) = task.live.as_ref().filter(|live| live.len() as u64 != rows) {
        return Err(Error::internal(format!("a mask of {} rows for a file of {rows}", live.len()))
            .with_context("file", access.location()));
    }
    Ok(())
}

const NULL_IN_NOT_NULL: &str = "NullInNotNull";

/// A file holds NULL in a column that is NOT NULL.
pub(crate) fn holds_nulls(column: &str) -> Error {
    Error::corrupt("the column is NOT NULL, but the file holds nulls")
        .with_code(NULL_IN_NOT_NULL)
        .with_context("column", column)
}

/// Where an output column comes from.
#[derive(Debug, Clone)]
enum Source {
    /// The same value in all rows.
    Constant(Datum),
    /// Not known to the file's schema.
    Missing,
    /// A stored column, by its place in the request, and its type in the file's schema: as declared, and as its values
    /// may be. `key` is the place of the key's own column.
    Stored { at: usize, key: Option<usize>, declared: FieldType, stored: FieldType },
    /// A stored column of the system, which must be there.
    System { at: usize, declared: FieldType },
    /// Counted here.
    Position,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    /// Declared type.
    target: FieldType,
    /// Type to give out: wider than the declared one where sums are not checked.
    given: FieldType,
    source: Source,
}

impl Column {
    /// A column of the system, which is NOT NULL.
    fn plain(name: &str, data_type: DataType, source: Source) -> Self {
        let target = FieldType { data_type, nullable: false };
        Self { name: name.to_string(), given: target.clone(), target, source }
    }
}

/// Output columns and the names they need from the file; `with_keys`: also those of the key's own columns.
fn resolve(task: &FileTask, with_keys: bool) -> Result<(Vec<Column>, Vec<String>)> {
    let mut names: Vec<String> = Vec::new();
    let mut place = |name: &str| match names.iter().position(|known| known == name) {
        Some(at) => at,
        None => {
            names.push(name.to_string());
            names.len() - 1
        }
    };
    let plain = |data_type| FieldType { data_type, nullable: false };
    let mut columns = Vec::with_capacity(task.columns.len());
    for column in &task.columns {
        columns.push(match column {
            OutputColumn::SequenceNumber => {
                let source = Source::System { at: place(SEQUENCE_NUMBER), declared: plain(DataType::BigInt) };
                Column::plain(SEQUENCE_NUMBER, DataType::BigInt, source)
            }
            OutputColumn::ValueKind => {
                let source = Source::System { at: place(VALUE_KIND), declared: plain(DataType::TinyInt) };
                Column::plain(VALUE_KIND, DataType::TinyInt, source)
            }
            OutputColumn::RowPosition => Column::plain(super::task::ROW_POSITION, DataType::BigInt, Source::Position),
            OutputColumn::Field(field) => {
                let source = if let Some(value) = task.constants.get(&field.id) {
                    Source::Constant(value.clone())
                } else if let Some(old) = task.file_schema.fields.iter().find(|old| old.id == field.id) {
                    can_cast(&old.field_type, &field.field_type).map_err(|e| e.with_context("column", &field.name))?;
                    let is_key = with_keys && task.keys.contains(&field.id);
                    Source::Stored {
                        at: place(&old.name),
                        key: is_key.then(|| place(&format!("{KEY_PREFIX}{}", old.name))),
                        declared: old.field_type.clone(),
                        stored: old.value_type(),
                    }
                } else {
                    Source::Missing
                };
                let (target, given) = (field.field_type.clone(), field.value_type());
                Column { name: field.name.clone(), target, given, source }
            }
        });
    }
    Ok((columns, names))
}

/// The rows of an open file on their way out.
struct Rows {
    access: Access,
    format: FileFormat,
    columns: Vec<Column>,
    schema: SchemaRef,
    task: FileTask,
    masked: bool,
    known_rows: Option<u64>,
    batches: BoxStream<'static, Result<StoredBatch>>,
    /// Physical rows passed by.
    passed: usize,
    /// Rows that came out of the mask.
    wanted: usize,
}

impl Rows {
    fn new(task: &FileTask, access: Access, format: FileFormat, columns: Vec<Column>, stored: Stored) -> Self {
        Self {
            access,
            format,
            columns,
            schema: task.schema(),
            task: task.clone(),
            masked: stored.masked,
            known_rows: stored.rows,
            batches: stored.batches,
            passed: 0,
            wanted: 0,
        }
    }

    fn into_stream(self) -> BoxStream<'static, Result<RecordBatch>> {
        stream::try_unfold(Some(self), |state| async move {
            let Some(mut rows) = state else { return Ok(None) };
            loop {
                match rows.batches.next().await {
                    Some(batch) => {
                        let batch = rows.finish(batch?).map_err(|e| rows.access.locate(e))?;
                        if batch.num_rows() > 0 {
                            return Ok(Some((batch, Some(rows))));
                        }
                    }
                    None => {
                        rows.check_end()?;
                        return Ok(None);
                    }
                }
            }
        })
        .boxed()
    }

    /// No row may be missing at the end.
    fn check_end(&self) -> Result<()> {
        let rows = match self.known_rows {
            Some(rows) => rows,
            // only now is it known
            None => {
                check_rows(&self.task, &self.access, self.passed as u64)?;
                self.passed as u64
            }
        };
        let expected = match &self.task.live {
            Some(live) => live.count_set_bits() as u64,
            None => rows,
        };
        if self.wanted as u64 != expected {
            return Err(self.access.damaged(format!("{} of its {expected} rows could be read", self.wanted)));
        }
        Ok(())
    }

    fn finish(&mut self, batch: StoredBatch) -> Result<RecordBatch> {
        let (batch, positions) = self.mask(batch)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let array = self.column(column, &batch, &positions).map_err(|e| e.with_context("column", &column.name))?;
            if !column.target.nullable && array.null_count() > 0 {
                return Err(self.access.locate(holds_nulls(&column.name)));
            }
            arrays.push(array);
        }
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|e| Error::internal("columns do not fit their schema").with_source(e))
    }

    /// Leaves out dead rows; gives the position of each row that stays.
    fn mask(&mut self, batch: StoredBatch) -> Result<(StoredBatch, Positions)> {
        let rows = batch.rows;
        let Some(live) = &self.task.live else {
            let positions = Positions::Range(self.passed);
            self.passed += rows;
            self.wanted += rows;
            // at once: rows without bytes could go on without end
            if let Some(told) = self.task.row_count.filter(|told| *told < self.passed as u64) {
                return Err(self.access.damaged(format!("it holds more than the {told} rows the manifest says")));
            }
            return Ok((batch, positions));
        };
        if self.masked {
            // live rows come in order: the next ones of the mask
            let positions = next_set(live, self.passed, rows)
                .ok_or_else(|| self.access.damaged("it holds more rows than it says"))?;
            self.passed = positions.last().map_or(self.passed, |last| last + 1);
            self.wanted += rows;
            return Ok((batch, Positions::List(positions)));
        }
        if self.passed + rows > live.len() {
            return Err(self.access.damaged(format!("it holds more than the {} rows the manifest says", live.len())));
        }
        let part = live.slice(self.passed, rows);
        let positions: Vec<usize> = part.set_indices().map(|i| self.passed + i).collect();
        self.passed += rows;
        self.wanted += positions.len();
        if positions.len() == rows {
            return Ok((batch, Positions::List(positions)));
        }
        let keep = BooleanArray::new(part, None);
        let mut columns = Vec::with_capacity(batch.columns.len());
        for column in batch.columns {
            columns.push(match column {
                Some(column) => Some(filter(&column, &keep)?),
                None => None,
            });
        }
        Ok((StoredBatch { columns, rows: positions.len() }, Positions::List(positions)))
    }

    fn column(&self, column: &Column, batch: &StoredBatch, positions: &Positions) -> Result<ArrayRef> {
        let (target, given) = (&column.target, arrow_type(&column.given.data_type));
        match &column.source {
            Source::Constant(Datum::Null) | Source::Missing => Ok(new_null_array(&given, batch.rows)),
            Source::Constant(value) => {
                let one = datums_to_array(std::slice::from_ref(value), &target.data_type)?;
                Ok(take(&one, &UInt32Array::from(vec![0; batch.rows]), None)?)
            }
            Source::Position => Ok(Arc::new(positions.to_array(batch.rows)?)),
            Source::Stored { at, key, declared, stored } => match stored_column(batch, *at) {
                None => Ok(new_null_array(&given, batch.rows)),
                Some(array) => {
                    let mut values = to_declared(array, stored, self.format)?;
                    if let Some(key) = key.and_then(|key| stored_column(batch, key)).filter(|_| values.null_count() > 0)
                    {
                        let key = to_declared(key, stored, self.format)?;
                        values = zip(&is_not_null(&values)?, &values, &key)?;
                    }
                    // an unchanged type keeps sums whole, a cast looks at the digits of the declared one
                    let values = match (&declared.data_type, &target.data_type) {
                        (from @ DataType::Decimal(..), to) if from == to => values,
                        _ => cast_array(&values, declared, target, &self.task.options.zone)?,
                    };
                    within_precision(values, &given)
                }
            },
            Source::System { at, declared } => match stored_column(batch, *at) {
                None => Err(Error::corrupt("the file of a table with primary key lacks a system column")),
                Some(stored) => {
                    let values = to_declared(stored, declared, self.format)?;
                    if column.name == VALUE_KIND {
                        check_kinds(&values)?;
                    }
                    Ok(values)
                }
            },
        }
    }
}

fn stored_column(batch: &StoredBatch, at: usize) -> Option<&ArrayRef> {
    batch.columns.get(at).and_then(Option::as_ref)
}

/// Positions of the rows of a batch.
enum Positions {
    /// All rows from one on.
    Range(usize),
    /// One by one.
    List(Vec<usize>),
}

impl Positions {
    fn to_array(&self, rows: usize) -> Result<Int64Array> {
        let number = |p: usize| i64::try_from(p).map_err(|_| Error::internal("a row number above i64"));
        match self {
            Self::Range(first) => (*first..*first + rows).map(number).collect::<Result<Vec<_>>>().map(Int64Array::from),
            Self::List(all) => all.iter().map(|p| number(*p)).collect::<Result<Vec<_>>>().map(Int64Array::from),
        }
    }
}

/// The next `count` set positions of a mask from `start` on; None when there are fewer.
fn next_set(live: &BooleanBuffer, start: usize, count: usize) -> Option<Vec<usize>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let rest = live.len().checked_sub(start)?;
    let found: Vec<usize> = live.slice(start, rest).set_indices().take(count).map(|i| start + i).collect();
    (found.len() == count).then_some(found)
}

fn check_kinds(kinds: &ArrayRef) -> Result<()> {
    let Some(kinds) = kinds.as_any().downcast_ref::<Int8Array>() else {
        return Err(Error::internal("row kinds are no bytes"));
    };
    match kinds.iter().flatten().find(|kind| RowKind::from_byte(*kind).is_none()) {
        None => Ok(()),
        Some(kind) => Err(Error::corrupt(format!("{kind} is no row kind"))),
    }
}

#[cfg(test)]
mod tests;
