//! Forms that DataFusion plans and then fails on, in others of the same meaning.
//!
//! - `x IS TRUE` and its like are never NULL, but are computed by a comparison that is typed as if it might be: an
//!   aggregate above finds two types for one column. Outside of filters they are written as that comparison.
//! - `RANGE` frames without distances, the default of `OVER (ORDER BY x)`, go from row to row of the same `x`. They are
//!   refused for a TIME or BINARY `x`, which has no distances; as `GROUPS` they are the same frames.
//! - `RANGE` frames with distances end where `x` plus the distance does. Where that is beyond the type of `x`, the engine
//!   takes the end of the partition, rows of NULL included. In a wider type there is room for the sum.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Operator, WindowFrame, WindowFrameBound, WindowFrameUnits, binary_expr, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;

/// See the module.
#[derive(Debug)]
pub(crate) struct Reworded;

impl Reworded {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "reworded";
}

impl AnalyzerRule for Reworded {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            // conditions are pruned by, and nobody looks at the type of one
            if matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
                return Ok(Transformed::no(node));
            }
            let names = NamePreserver::new(&node);
            let schema = merge_schema(&node.inputs());
            let keys = wider_keys(&node, &schema);
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let reworded = expr.transform_up(|expr| Ok(reworded(expr, &schema)))?;
                let reworded = match &keys {
                    Some((key, wide)) => {
                        reworded.transform_data(|expr| expr.transform_up(|expr| Ok(widened(expr, key, wide))))?
                    }
                    None => reworded,
                };
                Ok(reworded.update_data(|expr| name.restore(expr)))
            })?;
            if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

fn reworded(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (tested, op, value) = match expr {
        Expr::IsTrue(tested) => (tested, Operator::IsNotDistinctFrom, Some(true)),
        Expr::IsFalse(tested) => (tested, Operator::IsNotDistinctFrom, Some(false)),
        Expr::IsUnknown(tested) => (tested, Operator::IsNotDistinctFrom, None),
        Expr::IsNotTrue(tested) => (tested, Operator::IsDistinctFrom, Some(true)),
        Expr::IsNotFalse(tested) => (tested, Operator::IsDistinctFrom, Some(false)),
        Expr::IsNotUnknown(tested) => (tested, Operator::IsDistinctFrom, None),
        Expr::WindowFunction(mut function) => {
            let framed = is_without_distance(&function, schema);
            if framed {
                let WindowFrame { start_bound, end_bound, .. } = &function.params.window_frame;
                function.params.window_frame =
                    WindowFrame::new_bounds(WindowFrameUnits::Groups, start_bound.clone(), end_bound.clone());
            }
            let expr = Expr::WindowFunction(function);
            return if framed { Transformed::yes(expr) } else { Transformed::no(expr) };
        }
        other => return Transformed::no(other),
    };
    Transformed::yes(binary_expr(*tested, op, lit(ScalarValue::Boolean(value))))
}

/// The key of frames with distances in a window node, and the type that holds all sums of it and a distance.
///
/// The functions of a node share their order, so all of them get the key of that type.
fn wider_keys(node: &LogicalPlan, schema: &DFSchema) -> Option<(Expr, DataType)> {
    let LogicalPlan::Window(window) = node else { return None };
    let mut found = None;
    for expr in &window.window_expr {
        let _ = expr.apply(|expr| {
            if let Expr::WindowFunction(function) = expr
                && let Some(wider) = wider_key(function, schema)
                && found.as_ref().is_none_or(|(_, wide)| *wide == DataType::Int64)
            {
                found = Some(wider);
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    found
}

fn wider_key(function: &WindowFunction, schema: &DFSchema) -> Option<(Expr, DataType)> {
    let WindowFrame { units: WindowFrameUnits::Range, start_bound, end_bound, .. } = &function.params.window_frame
    else {
        return None;
    };
    let [Sort { expr, .. }] = function.params.order_by.as_slice() else { return None };
    let found = expr.get_type(schema).ok()?;
    let mut some = false;
    let mut wide = !matches!(found, DataType::Int64 | DataType::UInt64);
    for bound in [start_bound, end_bound] {
        let (WindowFrameBound::Preceding(far) | WindowFrameBound::Following(far)) = bound else { continue };
        if !far.is_null() {
            some = true;
            // what is no number of its kind is refused as ever
            let far: i128 = far.try_as_str().flatten()?.trim().parse().ok()?;
            wide &= i32::try_from(far).is_ok();
        }
    }
    let wide = if wide { DataType::Int64 } else { DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0) };
    (some && found.is_integer()).then(|| (expr.clone(), wide))
}

/// A function of a window with its key in a wider type.
fn widened(expr: Expr, key: &Expr, wide: &DataType) -> Transformed<Expr> {
    let Expr::WindowFunction(mut function) = expr else { return Transformed::no(expr) };
    for sort in &mut function.params.order_by {
        if sort.expr == *key {
            sort.expr = cast(std::mem::take(&mut sort.expr), wide.clone());
        }
    }
    Transformed::yes(Expr::WindowFunction(function))
}

/// Whether a RANGE frame goes from row to row, over values that have no distance.
fn is_without_distance(function: &WindowFunction, schema: &DFSchema) -> bool {
    let WindowFrame { units, start_bound, end_bound, .. } = &function.params.window_frame;
    let distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(far) | WindowFrameBound::Following(far) => !far.is_null(),
    };
    let none = |found: DataType| {
        matches!(found, DataType::Time32(_) | DataType::Time64(_)) || found.is_binary() || found.is_nested()
    };
    let mut ordered = function.params.order_by.iter().filter_map(|sort| sort.expr.get_type(schema).ok());
    *units == WindowFrameUnits::Range && !distance(start_bound) && !distance(end_bound) && ordered.any(none)
}
