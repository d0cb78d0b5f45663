//! Made filters: for every column of a golden table, comparisons with values that it holds. What they leave is what a plain
//! DataFusion table of the expected rows leaves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{concat_batches, sort};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use lakepin::arrow;
use lakepin::datafusion::datasource::MemTable;
use lakepin::datafusion::prelude::{SessionConfig, SessionContext};

use super::explained;
use super::reads::{Answer, Reader, Source, difference, quoted};
use super::rows::of_batches;

/// Compares every made filter; `answer` is the whole table, already found equal to the expected rows.
pub async fn check(reader: &Reader, source: &Source, answer: &Answer) -> Result<(), String> {
    let rows = concat_batches(&answer.schema, &answer.batches).map_err(|e| e.to_string())?;
    if rows.num_rows() == 0 {
        return Ok(());
    }
    let filters = filters(&rows)?;
    let memory = memory(rows.clone())?;
    let loose = explained::as_sets(reader.side, &reader.table);
    let first = quoted(rows.schema_ref().field(0).name());
    for (n, condition) in filters.iter().enumerate() {
        // by turns, so that columns are filtered that are read and that are not
        let columns = if n % 2 == 0 { "*" } else { &first };
        let plain = format!("SELECT {columns} FROM expected WHERE {condition}");
        let right = async { memory.sql(&plain).await?.collect().await }.await.map_err(|e| format!("{plain}\n  {e}"))?;
        let sql = source.filtered(columns, condition);
        let read = reader.ask(&sql).await.map_err(|e| format!("{sql}\n  {e:?}"))?;
        let (right, read) = (of_batches(&right, loose), of_batches(&read.batches, loose));
        if right != read {
            return Err(format!(
                "expected {} rows, read {}; missing {:?}, extra {:?}\n  {sql}",
                right.len(),
                read.len(),
                difference(&right, &read).first(),
                difference(&read, &right).first()
            ));
        }
        if !right.is_empty() && right.len() < rows.num_rows() {
            reader.telling.fetch_add(1, Ordering::Relaxed);
        }
        reader.filters.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The rows as a table of DataFusion's own, with literals read as ours are.
fn memory(rows: RecordBatch) -> Result<SessionContext, String> {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    config.options_mut().execution.time_zone = Some("UTC".into());
    let context = SessionContext::new_with_config(config);
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).map_err(|e| e.to_string())?;
    context.register_table("expected", Arc::new(table)).map_err(|e| e.to_string())?;
    Ok(context)
}

/// A column's name in SQL and, where its type can be compared, its lowest, middle and highest value as literals.
struct Column {
    name: String,
    literals: Option<[String; 3]>,
    text: Option<String>,
}

fn filters(rows: &RecordBatch) -> Result<Vec<String>, String> {
    let columns: Result<Vec<Column>, String> =
        rows.schema_ref().fields().iter().zip(rows.columns()).map(|(f, c)| Column::new(f.name(), c)).collect();
    let columns = columns?;
    let mut all = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let of_column =
            column.filters(columns.iter().cycle().skip(at + 1).take(columns.len()).find_map(Column::equals));
        // wide tables by turns
        let step = columns.len().div_ceil(WIDE);
        all.extend(of_column.into_iter().enumerate().filter(|(n, _)| (n + at) % step == 0).map(|(_, filter)| filter));
    }
    Ok(all)
}

/// A table of at most so many columns has all filters of all columns.
const WIDE: usize = 8;

impl Column {
    fn new(name: &str, values: &ArrayRef) -> Result<Self, String> {
        let mut column = Self { name: quoted(name), literals: None, text: None };
        if values.data_type().is_nested() {
            return Ok(column);
        }
        let sorted = sort(values, None).map_err(|e| e.to_string())?;
        let options = FormatOptions::default();
        let texts = ArrayFormatter::try_new(sorted.as_ref(), &options).map_err(|e| e.to_string())?;
        let mut seen = BTreeSet::new();
        let valid = (0..sorted.len()).filter(|row| sorted.is_valid(*row)).map(|row| texts.value(row).to_string());
        let distinct: Vec<String> = valid.filter(|text| seen.insert(text.clone())).collect();
        let (Some(low), Some(middle), Some(high)) =
            (distinct.first(), distinct.get(distinct.len() / 2), distinct.last())
        else {
            return Ok(column);
        };
        column.literals = Some([low, middle, high].map(|text| literal(text, values.data_type())));
        if values.data_type() == &DataType::Utf8 {
            column.text = distinct.into_iter().find(|text| !text.is_empty() && !text.contains(['%', '_', '\\', '\'']));
        }
        Ok(column)
    }

    fn equals(&self) -> Option<String> {
        self.literals.as_ref().map(|[_, middle, _]| format!("{} = {middle}", self.name))
    }

    /// Conditions on this column; `other` is one on another.
    fn filters(&self, other: Option<String>) -> Vec<String> {
        let c = &self.name;
        let mut filters = vec![format!("{c} IS NULL"), format!("{c} IS NOT NULL")];
        let Some([low, middle, high]) = &self.literals else { return filters };
        filters.extend([
            format!("{c} = {middle}"),
            format!("{c} <> {middle}"),
            format!("{c} IN ({low}, {high})"),
            format!("{c} NOT IN ({low}, {middle})"),
            format!("{c} = {low} OR {c} = {high}"),
            format!("NOT ({c} <= {middle})"),
            format!("{c} BETWEEN {low} AND {middle}"),
            format!("{c} NOT BETWEEN {middle} AND {high}"),
            format!("{c} >= {middle}"),
            format!("{high} > {c}"),
            format!("{c} IS NULL OR {c} = {middle}"),
        ]);
        if let Some(other) = other {
            filters.push(format!("{c} <> {low} OR {other}"));
            filters.push(format!("{c} >= {middle} AND NOT ({other})"));
        }
        if let Some(text) = &self.text {
            let characters: Vec<char> = text.chars().collect();
            let part = characters.len().div_ceil(2);
            let (head, tail): (String, String) =
                (characters[..part].iter().collect(), characters[characters.len() - part..].iter().collect());
            filters.extend([
                format!("{c} LIKE '{head}%'"),
                format!("{c} NOT LIKE '{head}%'"),
                format!("{c} LIKE '%{tail}'"),
                format!("{c} LIKE '{text}'"),
            ]);
        }
        filters
    }
}

/// A value, as Arrow prints it, as a literal of its type.
fn literal(text: &str, data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 => format!("'{}'", text.replace('\'', "''")),
        DataType::Binary => format!("X'{text}'"),
        DataType::Date32 => format!("DATE '{text}'"),
        DataType::Boolean | DataType::Decimal128(..) => text.to_string(),
        // the lowest of a type is no number behind a sign
        data_type if data_type.is_integer() && text != i64::MIN.to_string() => text.to_string(),
        // NaN, times before 1677 and the like
        data_type => format!("arrow_cast('{text}', '{data_type}')"),
    }
}
