//! Which Parquet files DataFusion's own source may read: those whose columns it finds by name and type, after a
//! renaming by field id.
//!
//! A column that every schema calls NOT NULL and whose file holds nulls is an error as soon as the column is read. What
//! nobody can tell is `IS NULL` on such a column: DataFusion takes it for FALSE by the table's schema and drops the scan
//! before a provider is asked, so that no file and no manifest is looked at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};

use super::stored::Stored;
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
        Ok(Arc::new(Adapter::new(self, logical_file_schema, physical_file_schema, true)))
    }
}

/// The mapping for a reader that checks values itself, once it knows which rows count.
#[derive(Debug, Clone)]
pub struct Unchecked(pub Mapping);

impl PhysicalExprAdapterFactory for Unchecked {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> DfResult<Arc<dyn PhysicalExprAdapter>> {
        Ok(Arc::new(Adapter::new(&self.0, logical_file_schema, physical_file_schema, false)))
    }
}

/// Rewrites expressions over table columns to one file's columns.
struct Adapter {
    mapping: Mapping,
    logical: SchemaRef,
    physical: SchemaRef,
    /// Whether values are checked that are given out.
    checks: bool,
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DfResult<Arc<dyn PhysicalExpr>> {
        // conditions are also what row groups are pruned by, for which they must be over bare columns
        let is_condition = expr.data_type(&self.logical).is_ok_and(|data_type| data_type == ArrowType::Boolean);
        let checked = self.checks && (expr.downcast_ref::<Column>().is_some() || !is_condition);
        expr.transform(|expr| match expr.downcast_ref::<Column>() {
            Some(column) => Ok(Transformed::yes(self.column(column, checked)?)),
            None => Ok(Transformed::no(expr)),
        })
        .data()
    }
}

impl Adapter {
    fn new(mapping: &Mapping, logical: SchemaRef, physical: SchemaRef, checks: bool) -> Self {
        Self { mapping: mapping.clone(), logical, physical, checks }
    }

    /// The values of a column as the file has them; `checked`: an error where it holds nulls and must not.
    fn column(&self, column: &Column, checked: bool) -> DfResult<Arc<dyn PhysicalExpr>> {
        let wanted = self.logical.field_with_name(column.name())?;
        let Some(mapped) = self.mapping.columns.get(column.name()) else {
            return Err(Error::internal(format!("column '{}' is not mapped to the file", column.name())).into());
        };
        let found = mapped.as_ref().and_then(|name| self.physical.column_with_name(name));
        let wants_check = checked && !wanted.is_nullable();
        let (read, nullable): (Arc<dyn PhysicalExpr>, bool) = match found {
            None => (Arc::new(Literal::new(ScalarValue::try_new_null(wanted.data_type())?)), true),
            Some((at, held)) => {
                let read: Arc<dyn PhysicalExpr> = Arc::new(Column::new(held.name(), at));
                let read = match (held.data_type(), wanted.data_type()) {
                    (from, to) if from == to => read,
                    (from, to) if is_same_value(from, to) => {
                        let target = Arc::new(Field::new(wanted.name(), to.clone(), true));
                        Arc::new(CastExpr::new_with_target_field(read, target, None))
                    }
                    (ArrowType::Timestamp(..), ArrowType::Timestamp(..))
                    | (ArrowType::Time64(_), ArrowType::Time32(_)) => {
                        let unchecked = wanted.clone().with_nullable(true);
                        Arc::new(Stored::new(read, Arc::new(unchecked)))
                    }
                    _ => return Err(refused(held, wanted)),
                };
                (read, held.is_nullable())
            }
        };
        // what came out of a sum may be longer than its type
        let may_be_long = checked && matches!(wanted.data_type(), ArrowType::Decimal128(..)) && found.is_some();
        if may_be_long || (wants_check && nullable) {
            return Ok(Arc::new(Stored::new(read, Arc::new(wanted.clone()))));
        }
        Ok(read)
    }
}

fn refused(held: &Field, wanted: &Field) -> DataFusionError {
    let error = Error::unsupported(format!(
        "column '{}' is stored as {}, where {} is expected",
        wanted.name(),
        held.data_type(),
        wanted.data_type()
    ))
    .with_code("UnexpectedFileType")
    .with_context("column", wanted.name());
    match is_read_otherwise(held.data_type(), wanted.data_type()) {
        true => error.with_hint("SET lakepin.merge_source = false reads it another way").into(),
        false => error.into(),
    }
}

/// Whether the reader of files that are no Parquet takes values of one type for those of the other, where they fit.
fn is_read_otherwise(from: &ArrowType, to: &ArrowType) -> bool {
    let is_decimal = |of: &ArrowType| matches!(of, ArrowType::Decimal128(..) | ArrowType::Decimal256(..));
    match (from, to) {
        (ArrowType::List(from) | ArrowType::LargeList(from), ArrowType::List(to)) => {
            from.data_type() == to.data_type() || is_read_otherwise(from.data_type(), to.data_type())
        }
        _ if from.is_integer() => to.is_integer(),
        _ if from.is_floating() => to.is_floating() && from.primitive_width() < to.primitive_width(),
        _ => is_decimal(from) && is_decimal(to),
    }
}

/// Whether a cast only changes the form of values.
fn is_same_value(from: &ArrowType, to: &ArrowType) -> bool {
    match (from, to) {
        (ArrowType::Timestamp(from, zone), ArrowType::Timestamp(to, _)) => {
            // a cast to a coarser unit cuts towards zero, one from a zone moves the clock
            let utc = zone.as_deref().is_none_or(|zone| zone == "UTC" || zone == "+00:00");
            utc && from <= to
        }
        (ArrowType::LargeUtf8 | ArrowType::Utf8View, ArrowType::Utf8)
        | (ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_), ArrowType::Binary) => true,
        (ArrowType::Dictionary(_, value), to) => value.as_ref() == to,
        // sums are given out wider than they are stored
        (ArrowType::Decimal128(from, scale), ArrowType::Decimal128(to, wanted)) => scale == wanted && from <= to,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_way_is_offered_only_where_it_reads_the_values() {
        let hint = |from: ArrowType, to: ArrowType| {
            let error = refused(&Field::new("v", from, true), &Field::new("v", to, true));
            Error::from_datafusion(error).hint().map(str::to_string)
        };
        let offered = Some("SET lakepin.merge_source = false reads it another way".to_string());
        assert_eq!(hint(ArrowType::Int32, ArrowType::Int64), offered);
        assert_eq!(hint(ArrowType::Float32, ArrowType::Float64), offered);
        assert_eq!(hint(ArrowType::Utf8, ArrowType::Int32), None);
        assert_eq!(hint(ArrowType::Float64, ArrowType::Float32), None);
        assert_eq!(hint(ArrowType::Int32, ArrowType::Utf8), None);
    }
}
