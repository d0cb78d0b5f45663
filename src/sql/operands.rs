//! Operands that DataFusion would bring to one type with loss.
//!
//! - Our numbers with a point are decimals, so that money is compared exactly. FLOAT and DOUBLE beside a decimal would be
//!   compared as DECIMAL(14, 7) and DECIMAL(30, 15): small numbers become equal to zero, and large ones, NaN and
//!   infinities fail. Here the decimal becomes a DOUBLE first, as in Java, Flink and Spark.
//! - DATE beside a timestamp would be compared in nanoseconds, which end in 2262: `valid_to > now()` fails on 9999-12-31.
//!   Here the date becomes a timestamp in microseconds first; a literal beside it is then brought to that unit.

use std::sync::Arc;

use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, DecimalType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, Subquery, cast, lit};
use datafusion::optimizer::AnalyzerRule;

/// See the module. Runs before types are coerced.
#[derive(Debug)]
pub(crate) struct LosslessOperands;

impl LosslessOperands {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "lossless_operands";
}

impl AnalyzerRule for LosslessOperands {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&scan.projected_schema);
            }
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let lossless = expr.transform_up(|expr| lossless(expr, &schema))?;
                Ok(lossless.update_data(|expr| name.restore(expr)))
            })?;
            let node = node.transform_data(|node| inputs(node, &schema))?;
            // a CASE may have another type now
            if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

fn lossless(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut expr = expr;
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => together(vec![left, right], compares(*op), schema),
        Expr::Between(Between { expr, low, high, .. }) => together(vec![expr, low, high], true, schema),
        Expr::InList(InList { expr, list, .. }) => {
            together(std::iter::once(expr.as_mut()).chain(list.iter_mut()).collect(), true, schema)
        }
        Expr::Case(case) => {
            let mut changed = false;
            if let Some(tested) = &mut case.expr {
                let values = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                changed |= together(std::iter::once(tested.as_mut()).chain(values).collect(), true, schema);
            }
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            changed | together(results.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect(), false, schema)
        }
        Expr::ScalarFunction(function) => together(function.args.iter_mut().collect(), false, schema),
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => beside_rows(expr, subquery, schema)?,
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Prepares a value and the rows of a subquery that it is compared with; whether one was changed.
fn beside_rows(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> DfResult<bool> {
    let Ok(found) = value.get_type(schema) else { return Ok(false) };
    let Some(column) = rows.subquery.schema().fields().first() else { return Ok(false) };
    if found.is_floating() {
        let Some(doubles) = in_doubles(&rows.subquery, &[0])? else { return Ok(false) };
        rows.subquery = doubles;
        return Ok(true);
    }
    let changed = found.is_decimal() && column.data_type().is_floating();
    if changed {
        *value = cast(std::mem::take(value), DataType::Float64);
    }
    Ok(changed)
}

/// A plan with the decimals among these columns as doubles; None when there are none.
fn in_doubles(plan: &Arc<LogicalPlan>, columns: &[usize]) -> DfResult<Option<Arc<LogicalPlan>>> {
    let mut fields: Vec<_> = plan.schema().iter().map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
    let mut changed = false;
    for column in columns {
        if let Some((_, field)) = fields.get_mut(*column).filter(|(_, field)| field.data_type().is_decimal()) {
            *field = Arc::new(field.as_ref().clone().with_data_type(DataType::Float64));
            changed = true;
        }
    }
    if !changed {
        return Ok(None);
    }
    let wanted = DFSchema::new_with_metadata(fields, plan.schema().metadata().clone())?;
    Ok(Some(Arc::new(coerce_plan_expr_for_schema(plan.as_ref().clone(), &wanted)?)))
}

/// What a node compares or brings together of its inputs: keys of a join, columns of a UNION.
fn inputs(node: LogicalPlan, schema: &DFSchema) -> DfResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                changed |= together(vec![left, right], true, schema);
            }
            let join = LogicalPlan::Join(join);
            Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
        }
        LogicalPlan::Union(mut union) => {
            let columns = union.schema.fields().len();
            let is_float = |column: &usize| {
                let types = union.inputs.iter().filter_map(|input| input.schema().fields().get(*column));
                types.into_iter().any(|field| field.data_type().is_floating())
            };
            let floats: Vec<usize> = (0..columns).filter(is_float).collect();
            let mut changed = false;
            for input in &mut union.inputs {
                if let Some(doubles) = in_doubles(input, &floats)? {
                    *input = doubles;
                    changed = true;
                }
            }
            let union = LogicalPlan::Union(union);
            Ok(if changed { Transformed::yes(union) } else { Transformed::no(union) })
        }
        node => Ok(Transformed::no(node)),
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Prepares operands that will get one type; whether one was changed.
fn together(operands: Vec<&mut Expr>, compared: bool, schema: &DFSchema) -> bool {
    // what has no type yet, a parameter, is coerced later
    let types: Vec<Option<DataType>> = operands.iter().map(|operand| operand.get_type(schema).ok()).collect();
    let floats = types.iter().flatten().any(|found| matches!(found, DataType::Float32 | DataType::Float64));
    let nanoseconds = types.iter().flatten().find_map(|found| match found {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if compared => Some(zone),
        _ => None,
    });
    let mut changed = false;
    for (operand, found) in operands.into_iter().zip(&types) {
        let wanted = match (found, nanoseconds) {
            (Some(found), _) if floats && found.is_decimal() => DataType::Float64,
            (Some(DataType::Date32 | DataType::Date64), Some(zone)) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            _ => continue,
        };
        let given = std::mem::take(operand);
        *operand = nearest(&given).unwrap_or_else(|| cast(given, wanted));
        changed = true;
    }
    changed
}

/// The DOUBLE nearest to a decimal literal.
fn nearest(expr: &Expr) -> Option<Expr> {
    let text = match expr {
        Expr::Literal(ScalarValue::Decimal128(value, precision, scale), _) => {
            value.map(|value| Decimal128Type::format_decimal(value, *precision, *scale))
        }
        Expr::Literal(ScalarValue::Decimal256(value, precision, scale), _) => {
            value.map(|value| Decimal256Type::format_decimal(value, *precision, *scale))
        }
        _ => return None,
    };
    Some(lit(ScalarValue::Float64(text.and_then(|text| text.parse().ok()))))
}
