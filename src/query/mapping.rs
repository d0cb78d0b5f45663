//! Which Parquet files DataFusion's own source may read: those whose columns it finds by name and type, after a
//! renaming by field id.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, SchemaRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};

use crate::error::Error;
use crate::spec::{DataType, TableSchema};

/// Columns of the table to columns of a file of one schema: the file's name, or None where the file has no such column
/// (NULL).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mapping {
    columns: BTreeMap<String, Option<String>>,
}

impl Mapping {
    /// A mapping as it was taken apart.
    pub fn from_columns(columns: BTreeMap<String, Option<String>>) -> Self {
        Self { columns }
    }

    /// Table column to file column.
    pub fn columns(&self) -> &BTreeMap<String, Option<String>> {
        &self.columns
    }

    /// The mapping of the columns `projected` (places in `table`) for files of `file`, when DataFusion's source gives
    /// exactly what the table's types ask for; None when it might not: casts, nested columns, types that Parquet has
    /// several forms of, names that changed places.
    pub fn of(table: &TableSchema, file: &TableSchema, projected: &[usize]) -> Option<Self> {
        let mut columns = BTreeMap::new();
        for index in projected {
            let field = table.fields.get(*index)?;
            if !is_plain(field.data_type()) {
                return None;
            }
            let name = match file.fields.iter().find(|old| old.id == field.id) {
                Some(old) if old.data_type() == field.data_type() => Some(old.name.clone()),
                Some(_) => return None,
                None => None,
            };
            // another column of that name in the file: the source looks at names before it asks us
            let stranger = file.fields.iter().any(|old| old.name == field.name && old.id != field.id);
            if stranger {
                return None;
            }
            columns.insert(field.name.clone(), name);
        }
        Some(Self { columns })
    }
}

/// Types whose Parquet form has one meaning.
fn is_plain(data_type: &DataType) -> bool {
    match data_type {
        DataType::Boolean
        | DataType::TinyInt
        | DataType::SmallInt
        | DataType::Int
        | DataType::BigInt
        | DataType::Float
        | DataType::Double
        | DataType::Decimal(..)
        | DataType::Date
        | DataType::Time(_)
        | DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Binary(_)
        | DataType::Varbinary(_) => true,
        // above, writers use INT96
        DataType::Timestamp(precision) | DataType::TimestampLtz(precision) => *precision <= 6,
        _ => false,
    }
}

impl PhysicalExprAdapterFactory for Mapping {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> DfResult<Arc<dyn PhysicalExprAdapter>> {
        Ok(Arc::new(Adapter { mapping: self.clone(), logical: logical_file_schema, physical: physical_file_schema }))
    }
}

/// Rewrites expressions over table columns to one file's columns.
struct Adapter {
    mapping: Mapping,
    logical: SchemaRef,
    physical: SchemaRef,
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DfResult<Arc<dyn PhysicalExpr>> {
        expr.transform(|expr| match expr.downcast_ref::<Column>() {
            Some(column) => Ok(Transformed::yes(self.column(column)?)),
            None => Ok(Transformed::no(expr)),
        })
        .data()
    }
}

impl Adapter {
    fn column(&self, column: &Column) -> DfResult<Arc<dyn PhysicalExpr>> {
        let wanted = self.logical.field_with_name(column.name())?;
        let Some(mapped) = self.mapping.columns.get(column.name()) else {
            return Err(Error::internal(format!("column '{}' is not mapped to the file", column.name())).into());
        };
        let found = mapped.as_ref().and_then(|name| self.physical.column_with_name(name));
        let Some((at, held)) = found else {
            return Ok(Arc::new(Literal::new(ScalarValue::try_new_null(wanted.data_type())?)));
        };
        let read: Arc<dyn PhysicalExpr> = Arc::new(Column::new(held.name(), at));
        if held.data_type() == wanted.data_type() {
            return Ok(read);
        }
        if !is_same_value(held.data_type(), wanted.data_type()) {
            return Err(refused(held, wanted));
        }
        let target = Arc::new(Field::new(wanted.name(), wanted.data_type().clone(), true));
        Ok(Arc::new(CastExpr::new_with_target_field(read, target, None)))
    }
}

fn refused(held: &Field, wanted: &Field) -> DataFusionError {
    Error::unsupported(format!(
        "column '{}' is stored as {}, where {} is expected",
        wanted.name(),
        held.data_type(),
        wanted.data_type()
    ))
    .with_code("UnexpectedFileType")
    .with_context("column", wanted.name())
    .with_hint("SET lakepin.merge_source = false reads it another way")
    .into()
}

/// Whether a cast only changes the form of values.
fn is_same_value(from: &ArrowType, to: &ArrowType) -> bool {
    match (from, to) {
        (ArrowType::Timestamp(from, _), ArrowType::Timestamp(to, _)) => {
            // a finer form of a coarser column holds no finer values
            from == to || *from == TimeUnit::Millisecond || *to != TimeUnit::Nanosecond
        }
        (ArrowType::Time64(_), ArrowType::Time32(TimeUnit::Millisecond))
        | (ArrowType::LargeUtf8 | ArrowType::Utf8View, ArrowType::Utf8)
        | (ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_), ArrowType::Binary) => true,
        (ArrowType::Dictionary(_, value), to) => value.as_ref() == to,
        _ => false,
    }
}
