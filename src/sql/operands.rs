//! Operands that DataFusion would bring to one type with loss.
//!
//! - Our numbers with a point are decimals, so that money is compared exactly. FLOAT and DOUBLE beside a decimal would be
//!   compared as DECIMAL(14, 7) and DECIMAL(30, 15): small numbers become equal to zero, and large ones, NaN and
//!   infinities fail. Here the decimal becomes a DOUBLE first, as in Java, Flink and Spark.
//! - DATE beside a TIMESTAMP would be compared in nanoseconds, which end in 2262: `valid_to > now()` fails on 9999-12-31.
//!   Here the date becomes a timestamp in microseconds first; a literal beside it is then brought to that unit.
//! - A TIMESTAMP that is written may lie beyond that year too, `BETWEEN '2024-01-01' AND '9999-12-31'`. Then all that are
//!   written beside it are in microseconds.
//! - Beside times that are only given, as in `coalesce(valid_to, TIMESTAMP '2024-01-01 00:00:00')`, they are so wherever
//!   that is exact: in nanoseconds the columns would have to end in 2262.
//! - TIME columns are in milliseconds, TIME literals in nanoseconds, and both together would be refused; a text beside a
//!   column would lose its digits below. Here all of them become nanoseconds.
//! - BOOLEAN beside 0, 1 or a text would be refused. Here they are TRUE and FALSE.
//! - A decimal that is compared with a number of more digits: see [`super::decimals`].
//! - Rows, and keys of maps: see [`super::row_values`] and [`super::map_keys`].

use std::sync::Arc;

use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, DecimalType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList, InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Subquery, Union, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::coerce_union_schema;

use super::decimals::{self, WIDEST};
use super::map_keys::to_key_type;
use super::row_values::by_columns;
use super::times::{is_beyond_nanos, is_of_micros};

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
        // a CASE, a function or a UNION may have another type now, and so may all that stands above it
        let mut retyped = false;
        let plan = plan.transform_up_with_subqueries(|node| {
            let node = if retyped { node.recompute_schema()? } else { node };
            let names = NamePreserver::new(&node);
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&scan.projected_schema);
            }
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let by_columns = expr.transform_down(|expr| match &expr {
                    Expr::ScalarFunction(function) => {
                        Ok(as_case(function).map_or_else(|| Transformed::no(expr), Transformed::yes))
                    }
                    _ => by_columns(expr),
                })?;
                let lossless = by_columns.transform_data(|expr| expr.transform_up(|expr| lossless(expr, &schema)))?;
                Ok(lossless.update_data(|expr| name.restore(expr)))
            })?;
            let node = node.transform_data(|node| inputs(node, &schema))?;
            retyped |= node.transformed;
            if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

/// Functions that bring their arguments to one type; others take each as it is, or are [`as_case`].
const OF_ONE_TYPE: [&str; 5] = ["coalesce", "greatest", "least", "make_array", "nvl"];

/// `nullif(x, y)`, `nvl(x, y)` and `nvl2(x, y, z)` as CASE, which has the type of what it gives. As functions they bring what is only
/// looked at to one type with that.
fn as_case(function: &ScalarFunction) -> Option<Expr> {
    if function.args.iter().any(Expr::is_volatile) {
        return None;
    }
    let (when, then, otherwise) = match (function.name(), function.args.as_slice()) {
        ("nullif", [value, other]) => (value.clone().eq(other.clone()), lit(ScalarValue::Null), value),
        ("nvl", [value, other]) => (value.clone().is_not_null(), value.clone(), other),
        ("nvl2", [tested, then, otherwise]) => (tested.clone().is_not_null(), then.clone(), otherwise),
        _ => return None,
    };
    let branches = vec![(Box::new(when), Box::new(then))];
    Some(Expr::Case(Case { expr: None, when_then_expr: branches, else_expr: Some(Box::new(otherwise.clone())) }))
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
            changed |= together(results.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect(), false, schema);
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            changed | of_one_number(results.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect(), schema)
        }
        Expr::ScalarFunction(function) => {
            let of_one_type = OF_ONE_TYPE.contains(&function.name());
            to_key_type(function, schema)
                | (of_one_type && together(function.args.iter_mut().collect(), false, schema))
                | (of_one_type && of_one_number(function.args.iter_mut().collect(), schema))
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => beside_rows(expr, subquery, schema)?,
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Prepares a value and the rows of a subquery that it is compared with; whether one was changed.
fn beside_rows(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> DfResult<bool> {
    let Ok(found) = value.get_type(schema) else { return Ok(false) };
    let Some(column) = rows.subquery.schema().fields().first().map(|column| column.data_type().clone()) else {
        return Ok(false);
    };
    let times = is_time(&found) && is_time(&column) && found != column;
    if found.is_floating() || times {
        let wanted = if times { FINEST_TIME } else { DataType::Float64 };
        let brought = brought(&rows.subquery, &[(0, wanted)])?;
        let changed = brought.is_some();
        if let Some(plan) = brought {
            rows.subquery = plan;
        }
        if times && found != FINEST_TIME {
            *value = cast(std::mem::take(value), FINEST_TIME);
            return Ok(true);
        }
        return Ok(changed);
    }
    if found.is_decimal() && column.is_string() {
        let Some(plan) = brought(&rows.subquery, &[(0, WIDEST)])? else { return Ok(false) };
        rows.subquery = plan;
        *value = cast(std::mem::take(value), WIDEST);
        return Ok(true);
    }
    let changed = found.is_decimal() && column.is_floating();
    if changed {
        *value = cast(std::mem::take(value), DataType::Float64);
    }
    Ok(changed)
}

/// A plan with decimals among these columns as doubles, texts as decimals and times in another unit; None when there are
/// none.
fn brought(plan: &Arc<LogicalPlan>, columns: &[(usize, DataType)]) -> DfResult<Option<Arc<LogicalPlan>>> {
    let mut fields: Vec<_> = plan.schema().iter().map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
    let mut changed = false;
    for (column, wanted) in columns {
        let Some((_, field)) = fields.get_mut(*column) else { continue };
        let from = match wanted {
            DataType::Float64 => field.data_type().is_decimal() || *field.data_type() == DataType::UInt64,
            DataType::Decimal256(..) => field.data_type().is_string(),
            _ => is_time(field.data_type()),
        };
        if from && field.data_type() != wanted {
            *field = Arc::new(field.as_ref().clone().with_data_type(wanted.clone()));
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
            let wanted = |column: usize| {
                let mut types = union.inputs.iter().filter_map(|input| input.schema().fields().get(column));
                let types: Vec<&DataType> = types.by_ref().map(|field| field.data_type()).collect();
                let mixed = types.iter().all(|found| is_time(found)) && types.windows(2).any(|pair| pair[0] != pair[1]);
                let float = types.iter().any(|found| found.is_floating()).then_some(DataType::Float64);
                mixed.then_some(FINEST_TIME).or(float).map(|wanted| (column, wanted))
            };
            let wanted: Vec<_> = (0..union.schema.fields().len()).filter_map(wanted).collect();
            for input in &mut union.inputs {
                if let Some(plan) = brought(input, &wanted)? {
                    *input = plan;
                }
            }
            of_one_schema(union)
        }
        node => Ok(Transformed::no(node)),
    }
}

/// A UNION whose inputs have the types of its columns. Left to DataFusion, what stands above is judged by the types of the
/// first input.
fn of_one_schema(union: Union) -> DfResult<Transformed<LogicalPlan>> {
    // what cannot be brought together is for the engine to refuse
    let Ok(schema) = coerce_union_schema(&union.inputs) else { return Ok(Transformed::no(LogicalPlan::Union(union))) };
    let types = |schema: &DFSchema| schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
    let mut changed = types(&union.schema) != types(&schema);
    let mut inputs = Vec::new();
    for input in union.inputs {
        if types(input.schema()) == types(&schema) {
            inputs.push(input);
            continue;
        }
        changed = true;
        let columns = input.schema().iter().zip(schema.fields()).map(|((table, field), wanted)| {
            let column = Expr::Column(Column::from((table, field)));
            let typed =
                if field.data_type() == wanted.data_type() { column } else { cast(column, wanted.data_type().clone()) };
            typed.alias(wanted.name())
        });
        let columns = columns.collect();
        inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)));
    }
    let union = LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) });
    Ok(if changed { Transformed::yes(union) } else { Transformed::no(union) })
}

/// Whether an operator compares values, NULL included.
pub(super) fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Prepares operands that will get one type; whether one was changed.
fn together(operands: Vec<&mut Expr>, compared: bool, schema: &DFSchema) -> bool {
    // what has no type yet, a parameter, is coerced later
    let types: Vec<Option<DataType>> = operands.iter().map(|operand| operand.get_type(schema).ok()).collect();
    let floats = types.iter().flatten().any(|found| matches!(found, DataType::Float32 | DataType::Float64));
    let booleans = compared && types.contains(&Some(DataType::Boolean));
    let zone = types.iter().flatten().find_map(|found| match found {
        DataType::Timestamp(_, zone) => Some(zone),
        _ => None,
    });
    if !compared && zone.is_some() {
        return given_times(operands, &types);
    }
    if compared && !floats && types.iter().flatten().any(DataType::is_decimal) {
        return decimals::exact(operands, &types);
    }
    let far = zone.is_some() && operands.iter().any(|operand| written_time(operand).is_some_and(is_beyond_nanos));
    let beside_times = |found: &DataType| *found != FINEST_TIME && (is_time(found) || compared && found.is_string());
    // to bring both to one integer DataFusion takes a decimal, and that to a double's side
    let mixed_signs = floats && types.contains(&Some(DataType::UInt64));
    let mut of_times = types.iter().flatten().filter(|found| is_time(found));
    let text = compared && types.iter().flatten().any(DataType::is_string);
    let times = of_times.next().is_some_and(|first| text || of_times.any(|other| other != first));
    let mut changed = false;
    for (operand, found) in operands.into_iter().zip(&types) {
        let Some(found) = found else { continue };
        let written = || written_time(operand).filter(|text| is_of_micros(text));
        let wanted = match zone {
            _ if floats && found.is_decimal() || mixed_signs && found.is_integer() => DataType::Float64,
            _ if times && beside_times(found) => FINEST_TIME,
            _ if booleans && is_truth(operand) => DataType::Boolean,
            Some(zone) if matches!(found, DataType::Date32 | DataType::Date64) => in_micros(zone),
            // one unit for all that is written, or they would be brought to nanoseconds again
            Some(zone) if far && written().is_some() => match found {
                DataType::Timestamp(_, own) => in_micros(own),
                _ => in_micros(zone),
            },
            _ => continue,
        };
        let given = match std::mem::take(operand) {
            Expr::Cast(Cast { expr, field }) if matches!(field.data_type(), DataType::Timestamp(..)) && far => *expr,
            given => given,
        };
        *operand = nearest(&given).unwrap_or_else(|| cast(given, wanted));
        changed = true;
    }
    changed
}

/// Brings numbers that are given side by side to the type they will have; whether one was changed. Before they have it, what
/// is given is taken for the first of them: a double that is compared then, for a whole number.
fn of_one_number(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Option<Vec<DataType>> = operands.iter().map(|operand| operand.get_type(schema).ok()).collect();
    let known = |types: &[DataType]| types.iter().filter(|found| !found.is_null()).cloned().collect::<Vec<_>>();
    let Some(known) = types.as_deref().map(known) else { return false };
    let Some(wanted) = type_union_resolution(&known).filter(DataType::is_numeric) else { return false };
    if !known.iter().all(DataType::is_numeric) {
        return false;
    }
    let mut changed = false;
    for (operand, found) in operands.into_iter().zip(types.into_iter().flatten()) {
        if !found.is_null() && found != wanted {
            *operand = cast(std::mem::take(operand), wanted.clone());
            changed = true;
        }
    }
    changed
}

/// Prepares times that are given side by side: in microseconds where none of them has more digits.
fn given_times(operands: Vec<&mut Expr>, types: &[Option<DataType>]) -> bool {
    let is_date = |found: &DataType| matches!(found, DataType::Date32 | DataType::Date64);
    let is_now = |operand: &Expr| matches!(operand, Expr::ScalarFunction(function) if function.name() == "now");
    let is_written = |operand: &Expr| written_time(operand).is_some_and(is_of_micros) || is_now(operand);
    let in_nanos = |found: &DataType| matches!(found, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let all = || operands.iter().zip(types).filter_map(|(operand, found)| Some((&**operand, found.as_ref()?)));
    let mut known = all().map(|(_, found)| found).filter(|found| **found != DataType::Null);
    let first = known.next();
    let same = known.all(|found| Some(found) == first);
    if same || all().any(|(operand, found)| in_nanos(found) && !is_written(operand)) {
        return false;
    }
    let zone = all().find_map(|(_, found)| match found {
        DataType::Timestamp(_, zone) => Some(zone.clone()),
        _ => None,
    });
    let mut changed = false;
    for (operand, found) in operands.into_iter().zip(types) {
        let wanted = match (found, &zone) {
            (Some(found), Some(zone)) if is_date(found) => in_micros(zone),
            (Some(DataType::Timestamp(TimeUnit::Nanosecond, own)), _) => in_micros(own),
            _ => continue,
        };
        // not by way of nanoseconds
        let given = match std::mem::take(operand) {
            Expr::Cast(Cast { expr, field }) if matches!(field.data_type(), DataType::Timestamp(..)) => *expr,
            given => given,
        };
        *operand = cast(given, wanted);
        changed = true;
    }
    changed
}

const FINEST_TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);

fn is_time(found: &DataType) -> bool {
    matches!(found, DataType::Time32(_) | DataType::Time64(_))
}

fn in_micros(zone: &Option<Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
}

/// The text of a time as it is written: by itself, or as a TIMESTAMP.
fn written_time(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        Expr::Cast(Cast { expr, field }) if matches!(field.data_type(), DataType::Timestamp(..)) => match expr.as_ref()
        {
            Expr::Literal(value, _) => value.try_as_str().flatten(),
            _ => None,
        },
        _ => None,
    }
}

/// What a BOOLEAN may be written as, besides TRUE and FALSE: 0, 1 or a text.
fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(0 | 1)), _) => true,
        Expr::Literal(value @ ScalarValue::Utf8(Some(_)), _) => value.cast_to(&DataType::Boolean).is_ok(),
        _ => false,
    }
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
