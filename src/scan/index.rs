//! File indexes at planning: bloom filters and bitmaps, embedded in the manifest entry or in the file beside the data.

use std::sync::Arc;

use bytes::Bytes;

use super::condition::{CompareOp, Condition};
use super::literal::scalar_to_datum;
use super::manifests::run_blocking;
use super::plan::PlannedFile;
use super::stats::{integer, widens};
use crate::error::{Error, Result};
use crate::snapshot::Pin;
use crate::spec::file_index::{FileIndex, IndexOp, IndexPredicate, IndexVerdict};
use crate::spec::{DataField, DataType, Datum, TableSchema};

/// The condition in the names and types of a file's own schema. What cannot be carried over exactly is unknown.
pub(crate) fn index_predicate(
    condition: &Condition,
    schema: &TableSchema,
    file_schema: &TableSchema,
    orc: bool,
    partition: &dyn Fn(usize) -> Option<bool>,
) -> IndexPredicate {
    let each = |parts: &[Condition]| -> Vec<IndexPredicate> {
        parts.iter().map(|part| index_predicate(part, schema, file_schema, orc, partition)).collect()
    };
    match condition {
        Condition::Unknown | Condition::Never | Condition::Partition(_) => IndexPredicate::Unknown,
        Condition::And(parts) => {
            let known: Vec<_> = each(parts).into_iter().filter(|part| *part != IndexPredicate::Unknown).collect();
            if known.is_empty() { IndexPredicate::Unknown } else { IndexPredicate::And(known) }
        }
        Condition::Or(parts) => {
            let possible: Vec<Condition> = parts
                .iter()
                .filter(|part| !matches!(part, Condition::Partition(number) if partition(*number) == Some(false)))
                .cloned()
                .collect();
            let branches = each(&possible);
            if branches.is_empty() || branches.contains(&IndexPredicate::Unknown) {
                IndexPredicate::Unknown
            } else {
                IndexPredicate::Or(branches)
            }
        }
        Condition::Compare { column, cast: None, op, literal } => {
            let op = match op {
                CompareOp::Eq => IndexOp::Eq,
                CompareOp::NotEq => IndexOp::NotEq,
                CompareOp::Lt => IndexOp::Lt,
                CompareOp::LtEq => IndexOp::LtEq,
                CompareOp::Gt => IndexOp::Gt,
                CompareOp::GtEq => IndexOp::GtEq,
            };
            leaf(*column, op, std::slice::from_ref(literal), schema, file_schema, orc)
        }
        Condition::OneOf { column, cast: None, literals, negated } => {
            let op = if *negated { IndexOp::NotIn } else { IndexOp::In };
            leaf(*column, op, literals, schema, file_schema, orc)
        }
        Condition::Null { column, negated } => {
            let op = if *negated { IndexOp::IsNotNull } else { IndexOp::IsNull };
            leaf(*column, op, &[], schema, file_schema, orc)
        }
        _ => IndexPredicate::Unknown,
    }
}

fn leaf(
    column: usize,
    op: IndexOp,
    literals: &[datafusion::common::ScalarValue],
    schema: &TableSchema,
    file_schema: &TableSchema,
    orc: bool,
) -> IndexPredicate {
    let Some(field) = schema.fields.get(column) else { return IndexPredicate::Unknown };
    let Some(file_field) = file_schema.field_by_id(field.id) else { return IndexPredicate::Unknown };
    let (to, from) = (field.data_type(), file_field.data_type());
    if matches!(to, DataType::Char(_)) || (to != from && !widens(from, to)) {
        return IndexPredicate::Unknown;
    }
    let mut values = Vec::with_capacity(literals.len());
    for literal in literals {
        let Ok(Some(value)) = scalar_to_datum(literal, to) else { return IndexPredicate::Unknown };
        match file_value(value, from, orc) {
            Some(value) => values.push(value),
            None => return IndexPredicate::Unknown,
        }
    }
    IndexPredicate::Leaf { column: file_field.name.clone(), op, literals: values, data_type: from.clone() }
}

/// A literal as the file's writer indexed it; None when several values read as this one.
fn file_value(value: Datum, from: &DataType, orc: bool) -> Option<Datum> {
    match value {
        Datum::Float(number) if number.is_nan() || number == 0.0 => None,
        Datum::Double(number) if number.is_nan() || number == 0.0 => None,
        Datum::Timestamp(millis, _) if orc && (-1000..1000).contains(&millis) => None,
        Datum::TinyInt(number) => integer(i64::from(number), from),
        Datum::SmallInt(number) => integer(i64::from(number), from),
        Datum::Int(number) => integer(i64::from(number), from),
        Datum::BigInt(number) => integer(number, from),
        other => Some(other),
    }
}

/// Whether the schema's options say that files of it carry an index on a column the predicate names.
fn may_be_indexed(predicate: &IndexPredicate, fields: &[DataField], options: &[&TableSchema]) -> bool {
    let mut names: Vec<&str> = Vec::new();
    leaf_columns(predicate, &mut names);
    options.iter().flat_map(|schema| schema.options.iter()).any(|(key, value)| {
        key.starts_with("file-index.")
            && key.ends_with(".columns")
            && value.split(',').any(|column| {
                let column = column.trim().split('[').next().unwrap_or_default();
                names.contains(&column) && fields.iter().any(|field| field.name == column)
            })
    })
}

fn leaf_columns<'a>(predicate: &'a IndexPredicate, into: &mut Vec<&'a str>) {
    match predicate {
        IndexPredicate::And(parts) | IndexPredicate::Or(parts) => {
            parts.iter().for_each(|part| leaf_columns(part, into));
        }
        IndexPredicate::Leaf { column, .. } => into.push(column),
        IndexPredicate::Unknown => {}
    }
}

/// Asks a file's index. Reads the `.index` file only where the options promise an index on a wanted column.
pub(crate) async fn ask(pin: &Arc<Pin>, file: &PlannedFile, predicate: &IndexPredicate) -> Result<IndexVerdict> {
    if *predicate == IndexPredicate::Unknown {
        return Ok(IndexVerdict::Remain);
    }
    let meta = &file.entry.file;
    let mut beside = None;
    let bytes: Bytes = match &meta.embedded_index {
        Some(embedded) => embedded.clone(),
        None => {
            let names: Vec<&String> = meta.extra_files.iter().filter(|name| name.ends_with(".index")).collect();
            let name = match names.as_slice() {
                [] => return Ok(IndexVerdict::Remain),
                [name] => name,
                _ => {
                    return Err(Error::corrupt("a data file has more than one index file")
                        .with_code("FileIndexCorrupt")
                        .with_context("table", pin.table.name())
                        .with_context("file", &file.location)
                        .with_hint(format!("restore the table's metadata, or do without: {}", without_indexes(pin))));
                }
            };
            if !may_be_indexed(predicate, &file.file_schema.fields, &[&file.file_schema, &pin.schema]) {
                return Ok(IndexVerdict::Remain);
            }
            let folder = file.location.parent().ok_or_else(|| Error::internal("a data file lies in no folder"))?;
            let location = folder.join(name)?;
            beside = Some(location.clone());
            match file.storage.read_opt(&location).await? {
                Some(bytes) => bytes,
                None => {
                    let lost = pin.missing_file(&location).await;
                    return Err(match lost.code() {
                        "FileLost" => {
                            lost.with_hint(format!("restore the index file, or do without: {}", without_indexes(pin)))
                        }
                        _ => lost,
                    });
                }
            }
        }
    };
    let rows = file.physical_rows();
    let predicate = predicate.clone();
    let verdict = run_blocking(move || FileIndex::parse(bytes)?.evaluate(&predicate, rows)).await;
    verdict.map_err(|error| {
        let error = match &beside {
            Some(damaged) => error.with_context("file", damaged),
            // which manifest holds the entry, and so the index, the caller knows
            None => error.with_context("data file", &file.location),
        };
        let hint = format!("its file index cannot be read; to do without: {}", without_indexes(pin));
        error.with_context("table", pin.table.name()).with_hint(hint)
    })
}

/// The statement after which no file index of a pin's table is read.
fn without_indexes(pin: &Pin) -> String {
    let ident = pin.table.ident();
    // as SET takes names: a dot in one would part it
    let quoted = |name: &str| match name.contains(['.', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    };
    let name = format!("paimon.{}.{}.file-index.read.enabled", quoted(&ident.database), quoted(&ident.table));
    format!("SET '{}' = 'false'", name.replace('\'', "''"))
}
