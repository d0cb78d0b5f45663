//! One NaN: all are equal, and greater than all numbers.
//!
//! Arithmetic gives a NaN with a sign on some machines (`0.0 / 0`), which is another one for DataFusion, and less than all
//! numbers. So what may give one is followed by [`one_nan`](crate::query::one_nan), which gives the NaN without a sign;
//! arithmetic that takes the result does not look at its sign and comes before.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::query::arithmetic::is_checked;
use crate::query::one_nan::{is_ours, with_one_nan};

/// See the module. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct OneNan;

impl OneNan {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "one_nan";
}

impl AnalyzerRule for OneNan {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let schema = merge_schema(&node.inputs());
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                Ok(one_nan(expr, &schema)?.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(plan.data)
    }
}

fn one_nan(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    expr.transform_down(|part| {
        if matches!(&part, Expr::ScalarFunction(function) if is_ours(&function.func)) {
            return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
        }
        if !may_give_nan(&part) || !is_float(&part, schema) {
            return Ok(Transformed::no(part));
        }
        let inside = part.map_children(|operand| in_operand(operand, schema))?.data;
        Ok(Transformed::new(with_one_nan(inside), true, TreeNodeRecursion::Jump))
    })
}

/// An operand of what is followed by `one_nan` itself.
fn in_operand(operand: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if is_arithmetic(&operand) {
        return operand.map_children(|operand| in_operand(operand, schema));
    }
    one_nan(operand, schema)
}

fn is_arithmetic(expr: &Expr) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(expr, Expr::Negative(_))
        || matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Plus | Minus | Multiply | Divide | Modulo, .. }))
}

/// Functions that give a value they were given.
const GIVING: [&str; 15] = [
    "array_element",
    "array_max",
    "array_min",
    "arrow_cast",
    "coalesce",
    "get_field",
    "greatest",
    "least",
    "map_extract",
    "nullif",
    "nvl",
    "nvl2",
    "perhaps",
    "pi",
    "random",
];

/// Whether an expression may give a NaN that none of its parts is.
fn may_give_nan(expr: &Expr) -> bool {
    match expr {
        Expr::Negative(of) => !matches!(**of, Expr::Literal(..)) || is_nan(of),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => match expr.as_ref() {
            Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text), _) => {
                text.as_ref().is_some_and(|text| text.to_ascii_lowercase().contains("nan"))
            }
            Expr::Literal(..) => false,
            _ => true,
        },
        // checked functions are of whole numbers and decimals, and chains of them long
        Expr::ScalarFunction(ScalarFunction { func, .. }) => !is_checked(func) && !GIVING.contains(&func.name()),
        other => is_arithmetic(other),
    }
}

fn is_nan(literal: &Expr) -> bool {
    match literal {
        Expr::Literal(ScalarValue::Float32(number), _) => number.is_some_and(f32::is_nan),
        Expr::Literal(ScalarValue::Float64(number), _) => number.is_some_and(f64::is_nan),
        _ => false,
    }
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    if let Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) = expr {
        // other numbers are no NaN, and one of the other width has the sign it had
        return field.data_type().is_floating() && matches!(expr.get_type(schema), Ok(from) if from.is_string());
    }
    matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}
