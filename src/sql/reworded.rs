//! Forms that DataFusion plans and then fails on, in others of the same meaning.
//!
//! - `x IS TRUE` and its like are never NULL, but are computed by a comparison that is typed as if it might be: an
//!   aggregate above finds two types for one column. Outside of filters they are written as that comparison.
//! - `RANGE` frames without distances, the default of `OVER (ORDER BY x)`, go from row to row of the same `x`. They are
//!   refused for a TIME or BINARY `x`, which has no distances; as `GROUPS` they are the same frames.
//! - `RANGE` frames with distances: see [`super::frames`].
//! - `lag(x, 1, y)` gives `y` in the type of `x`, with fewer digits if need be. Here both have a type for both.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Operator, WindowFrame, WindowFrameBound, WindowFrameUnits, binary_expr, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::frames::Wider;

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
            let wider = Wider::of(&node, &schema);
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let reworded = expr.transform_up(|expr| Ok(reworded(expr, &schema)))?;
                let reworded = match &wider {
                    Some(wider) => reworded.transform_data(|expr| expr.transform_up(|expr| Ok(wider.widened(expr))))?,
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
            let framed = with_one_type(&mut function, schema) | framed;
            let expr = Expr::WindowFunction(function);
            return if framed { Transformed::yes(expr) } else { Transformed::no(expr) };
        }
        other => return Transformed::no(other),
    };
    Transformed::yes(binary_expr(*tested, op, lit(ScalarValue::Boolean(value))))
}

/// Gives the value of another row, and the one in the place of a row that is not there, a type that holds both.
fn with_one_type(function: &mut WindowFunction, schema: &DFSchema) -> bool {
    if !matches!(function.fun.name(), "lag" | "lead") {
        return false;
    }
    let [value, _, other] = function.params.args.as_mut_slice() else { return false };
    let (Ok(found), Ok(given)) = (value.get_type(schema), other.get_type(schema)) else { return false };
    let Some(both) = type_union_resolution(&[found.clone(), given]) else { return false };
    // a text in the place of a number or a time is read as one
    if both == found || both.is_string() {
        return false;
    }
    *value = cast(std::mem::take(value), both);
    true
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
