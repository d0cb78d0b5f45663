//! A database as a relation, and what it is sent of the conditions on it.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, Operator as Op, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{TryStreamExt, stream};
use parking_lot::Mutex;

use crate::recon::source::{Filter, Operator, Source, SourceRead, Test, UNREADABLE, unreadable_field, widens};

/// Conditions on single columns that hold wherever all of this one does; there may be none.
fn filters_of(condition: &Expr, schema: &Schema) -> Vec<Filter> {
    let compared = |column: &Expr, operator, value: &Expr| {
        let (column, value) = (column_of(column, schema)?, value_of(value)?);
        Some(Filter { column, test: Test::Compare(operator, value) })
    };
    let found = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Op::And, right }) => {
            return [filters_of(left, schema), filters_of(right, schema)].concat();
        }
        Expr::BinaryExpr(BinaryExpr { op: Op::Or, .. }) | Expr::InList(_) => {
            one_of(condition, schema).map(|(column, values)| Filter { column, test: Test::In(values) })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => operator_of(*op)
            .and_then(|operator| compared(left, operator, right).or_else(|| compared(right, operator.flipped(), left))),
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let low = compared(expr, Operator::GreaterOrEqual, low);
            return low.into_iter().chain(compared(expr, Operator::LessOrEqual, high)).collect();
        }
        Expr::IsNull(expr) => bare_column(expr).map(|column| Filter { column, test: Test::IsNull }),
        Expr::IsNotNull(expr) => bare_column(expr).map(|column| Filter { column, test: Test::IsNotNull }),
        _ => None,
    };
    found.into_iter().collect()
}

fn operator_of(op: Op) -> Option<Operator> {
    Some(match op {
        Op::Eq => Operator::Equal,
        Op::NotEq => Operator::NotEqual,
        Op::Lt => Operator::Less,
        Op::LtEq => Operator::LessOrEqual,
        Op::Gt => Operator::Greater,
        Op::GtEq => Operator::GreaterOrEqual,
        _ => return None,
    })
}

/// A column and values of which it has to have one: `a IN (1, 2)`, `a = 1 OR a = 2`.
fn one_of(condition: &Expr, schema: &Schema) -> Option<(String, Vec<ScalarValue>)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Op::Eq, right }) => {
            let own = column_of(left, schema).zip(value_of(right));
            let (column, value) = own.or_else(|| column_of(right, schema).zip(value_of(left)))?;
            Some((column, vec![value]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Op::Or, right }) => {
            let (column, values) = one_of(left, schema)?;
            let (other, more) = one_of(right, schema)?;
            (column == other).then(|| (column, [values, more].concat()))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let values: Option<Vec<ScalarValue>> = list.iter().map(value_of).collect();
            Some((column_of(expr, schema)?, values?))
        }
        _ => None,
    }
}

fn bare_column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    }
}

/// The column that an expression is, or is but for a type that holds all of its values.
fn column_of(expr: &Expr, schema: &Schema) -> Option<String> {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            let name = bare_column(expr)?;
            let own = schema.field_with_name(&name).ok()?;
            widens(own.data_type(), field.data_type()).then_some(name)
        }
        expr => bare_column(expr),
    }
}

fn value_of(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value.clone()),
        _ => None,
    }
}

/// A database's rows as a relation, so that conditions on them are planned as all others are.
#[derive(Debug)]
pub(super) struct SourceTable {
    source: Arc<dyn Source>,
    read: SourceRead,
    schema: SchemaRef,
    /// What of the conditions it was sent.
    sent: Mutex<Vec<Filter>>,
}

impl SourceTable {
    /// All columns of a database, read as is said.
    pub(super) fn new(source: Arc<dyn Source>, read: SourceRead) -> Self {
        let fields = source.columns().iter().map(|column| Field::new(&column.name, column.data_type.clone(), true));
        // behind the others, as a read gives it
        let fields = fields.chain([unreadable_field()]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { source, read, schema, sent: Mutex::default() }
    }

    /// The conditions that the database is sent, known when the plan is made.
    pub(super) fn sent(&self) -> Vec<String> {
        self.sent.lock().iter().map(Filter::to_string).collect()
    }

    /// What the database can look at of a condition; the rest of it, and this too, is looked at behind it.
    fn taken(&self, condition: &Expr) -> Vec<Filter> {
        let filters = filters_of(condition, &self.schema);
        filters.into_iter().filter(|filter| self.source.takes(filter)).collect()
    }
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        let kind = |filter: &&Expr| match self.taken(filter).is_empty() {
            true => TableProviderFilterPushDown::Unsupported,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(kind).collect())
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let names = schema.fields().iter().map(|field| field.name().clone());
        let (told, columns): (Vec<String>, Vec<String>) = names.partition(|name| name == UNREADABLE);
        let mut taken: Vec<Filter> = Vec::new();
        for filter in filters.iter().flat_map(|filter| self.taken(filter)) {
            if !taken.contains(&filter) {
                taken.push(filter);
            }
        }
        self.sent.lock().clone_from(&taken);
        let read = SourceRead { columns, unreadable: !told.is_empty(), filters: taken, ..self.read.clone() };
        let partition =
            Arc::new(SourcePartition { source: Arc::clone(&self.source), read, schema: Arc::clone(&schema) });
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![partition], None, Vec::new(), false, None)?))
    }
}

#[derive(Debug)]
struct SourcePartition {
    source: Arc<dyn Source>,
    read: SourceRead,
    schema: SchemaRef,
}

impl PartitionStream for SourcePartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (source, read) = (Arc::clone(&self.source), self.read.clone());
        let rows = stream::once(async move { source.read(read).await.map_err(DataFusionError::from) }).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, TimeUnit};
    use datafusion::common::DFSchema;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn conditions_are_taken_apart_and_what_is_not_known_is_left_out() {
        let fields = [
            ("a", DataType::Int32),
            ("s", DataType::Utf8),
            ("d", DataType::Decimal128(10, 2)),
            ("t", DataType::Timestamp(TimeUnit::Millisecond, None)),
        ];
        let schema = Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec());
        let columns = DFSchema::try_from(schema.clone()).unwrap();
        let told = |condition: &str| {
            let parsed = SessionContext::new().parse_sql_expr(condition, &columns).unwrap();
            filters_of(&parsed, &schema).iter().map(Filter::to_string).collect::<Vec<_>>().join(" AND ")
        };
        for (condition, expected) in [
            ("a = 5 AND s <> 'x'", "a = 5 AND s <> 'x'"),
            ("5 < a", "a > 5"),
            ("a = 1 OR a IN (2, 3) OR 4 = a", "a IN (1, 2, 3, 4)"),
            ("a BETWEEN 1 AND 9", "a >= 1 AND a <= 9"),
            ("s IS NULL AND d IS NOT NULL", "s IS NULL AND d IS NOT NULL"),
            ("CAST(a AS BIGINT) = 5 AND CAST(a AS SMALLINT) = 5", "a = 5"),
            ("a > 1 AND abs(a) > 2", "a > 1"),
            // each of these holds where the other column decides
            ("a = 1 OR s = 'x'", ""),
            ("a = 1 OR s IS NULL", ""),
            ("a NOT IN (1, 2)", ""),
            ("a NOT BETWEEN 1 AND 2", ""),
            ("NOT (a = 1)", ""),
            ("a = NULL", ""),
            ("a IN (1, NULL)", ""),
            ("a = a + 1", ""),
            ("s LIKE 'x%'", ""),
            ("(a = 1) IS NULL", ""),
        ] {
            assert_eq!(told(condition), expected, "{condition}");
        }
    }
}
