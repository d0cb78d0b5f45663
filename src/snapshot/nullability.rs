//! Which columns may hold NULL. NOT NULL binds writers from the schema on that says it: files written before hold what
//! they hold, and a column that came later is NULL in all of them. So it can be promised to readers only where every
//! schema that a file may have been written with says it too:
//!
//! | schema 0 | schema 1 | read with schema 1 |
//! |---|---|---|
//! | `v INT NOT NULL` | `v INT NOT NULL` | NOT NULL |
//! | `v INT` | `v INT NOT NULL` | may be NULL |
//! | – | `v INT NOT NULL` | may be NULL |
//! | `v STRING NOT NULL` | `v INT NOT NULL` | may be NULL: not every value has a cast |
//!
//! The same goes for elements, map values and fields of rows. Keys have NOT NULL from the first schema to the last.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::table::Table;
use crate::error::{ErrorKind, Result};
use crate::spec::{DataField, DataType, FieldType, SchemaId, TableSchema};

/// Schemas read, at most; where there are more nothing is promised.
const SCHEMAS_LOOKED_AT: usize = 256;

/// Schemas read at once.
const AT_ONCE: usize = 16;

/// `schema` with NOT NULL only where files of all schemas up to `newest` keep it.
///
/// Cost: the older schemas, once; nothing where only keys are NOT NULL, or where there is no other schema.
///
/// # Errors
/// Storage that does not answer. A schema that is not there or cannot be read promises nothing.
pub(super) async fn kept_by_files(
    table: &Table,
    schema: &Arc<TableSchema>,
    newest: SchemaId,
) -> Result<Arc<TableSchema>> {
    if newest.0 == 0 || !schema.fields.iter().any(|field| is_promise(schema, field)) {
        return Ok(Arc::clone(schema));
    }
    let listed = table.listed_schemas(newest);
    let all = usize::try_from(newest.0).is_ok_and(|newest| listed.len() == newest + 1);
    if !all || listed.len() > SCHEMAS_LOOKED_AT {
        return Ok(without_promises(schema));
    }
    let read = stream::iter(listed.into_iter().filter(|id| *id != schema.id))
        .map(|id| table.schema(id))
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await;
    let others = match read {
        Ok(others) => others,
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Unsupported) => {
            return Ok(without_promises(schema));
        }
        Err(error) => return Err(error),
    };
    let mut fields = schema.fields.clone();
    for other in &others {
        fields = widened(&fields, &other.fields, &|one, other| one.id == other.id);
    }
    Ok(with_fields(schema, fields))
}

/// `schema` with NOT NULL only where the files of a branch keep it too, whose columns are found by name.
pub(super) fn kept_by_branch(schema: &Arc<TableSchema>, branch: &TableSchema) -> Arc<TableSchema> {
    with_fields(schema, widened(&schema.fields, &branch.fields, &|one, other| one.name == other.name))
}

fn with_fields(schema: &Arc<TableSchema>, fields: Vec<DataField>) -> Arc<TableSchema> {
    if fields == schema.fields {
        return Arc::clone(schema);
    }
    Arc::new(TableSchema { fields, ..schema.as_ref().clone() })
}

fn without_promises(schema: &Arc<TableSchema>) -> Arc<TableSchema> {
    let fields = schema.fields.iter().map(|field| match is_promise(schema, field) {
        true => DataField { field_type: all_nullable(&field.field_type), ..field.clone() },
        false => field.clone(),
    });
    with_fields(schema, fields.collect())
}

/// Whether a column that is no key is NOT NULL, or something in it.
fn is_promise(schema: &TableSchema, field: &DataField) -> bool {
    !schema.primary_keys.contains(&field.name) && field.field_type != all_nullable(&field.field_type)
}

/// The type with NULL wherever it can be. Keys of maps are never null.
fn all_nullable(of: &FieldType) -> FieldType {
    let boxed = |of: &FieldType| Box::new(all_nullable(of));
    let data_type = match &of.data_type {
        DataType::Row(fields) => DataType::Row(
            fields
                .iter()
                .map(|field| DataField { field_type: all_nullable(&field.field_type), ..field.clone() })
                .collect(),
        ),
        DataType::Array(element) => DataType::Array(boxed(element)),
        DataType::Vector(element, length) => DataType::Vector(boxed(element), *length),
        DataType::Map(key, value) => DataType::Map(key.clone(), boxed(value)),
        other => other.clone(),
    };
    data_type.nullable()
}

/// Fields with NULL where `others` have it, or do not know them.
fn widened(
    fields: &[DataField],
    others: &[DataField],
    is_same: &dyn Fn(&DataField, &DataField) -> bool,
) -> Vec<DataField> {
    fields
        .iter()
        .map(|field| {
            let field_type = match others.iter().find(|other| is_same(field, other)) {
                Some(other) => widened_type(&field.field_type, &other.field_type, is_same),
                None => FieldType { nullable: true, ..field.field_type.clone() },
            };
            DataField { field_type, ..field.clone() }
        })
        .collect()
}

fn widened_type(of: &FieldType, other: &FieldType, is_same: &dyn Fn(&DataField, &DataField) -> bool) -> FieldType {
    let part = |of: &FieldType, other: &FieldType| Box::new(widened_type(of, other, is_same));
    let (data_type, alike) = match (&of.data_type, &other.data_type) {
        (DataType::Row(fields), DataType::Row(others)) => (DataType::Row(widened(fields, others, is_same)), true),
        (DataType::Array(element), DataType::Array(other)) => (DataType::Array(part(element, other)), true),
        (DataType::Vector(element, length), DataType::Vector(other, _)) => {
            (DataType::Vector(part(element, other), *length), true)
        }
        (DataType::Map(key, value), DataType::Map(_, other)) => (DataType::Map(key.clone(), part(value, other)), true),
        (DataType::Multiset(_), DataType::Multiset(_)) => (of.data_type.clone(), true),
        (one, other) => (one.clone(), one == other),
    };
    FieldType { data_type, nullable: of.nullable || other.nullable || !alike }
}
