//! Conditions on rows of which a value could not be read. Such a value is NULL there, and stands for one that is not
//! known: whether its row meets the condition is not known either, where the condition depends on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::utils::take_function_args;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, not,
};

/// The column that tells of a row whether it is not known that it meets the condition.
pub const UNSURE: &str = "__unsure";

/// What a condition says of rows with unreadable values.
#[derive(Debug)]
pub struct Bounds {
    /// Whether a row meets the condition, or may.
    pub may: Expr,
    /// Whether it is not known that a row meets the condition that may.
    pub unsure: Expr,
}

/// Of a condition on the columns of a source; `told` is the column that tells its unreadable values.
pub fn bounds(condition: &Expr, told: &Expr) -> Bounds {
    let unread = unread(condition, told);
    let is_sure = bound(condition, told, false);
    Bounds { may: bound(condition, told, true), unsure: unread.and(Expr::IsNotTrue(Box::new(is_sure))) }
}

/// The condition with each part that depends on an unreadable value taken for true, or for false: `most` where it may
/// hold. What is below AND, OR and NOT is one part, as IS NULL and functions make something else of NULL.
fn bound(expr: &Expr, told: &Expr, most: bool) -> Expr {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let [left, right] = [left, right].map(|side| Box::new(bound(side, told, most)));
            Expr::BinaryExpr(BinaryExpr::new(left, *op, right))
        }
        Expr::Not(inner) => not(bound(inner, told, !most)),
        Expr::Alias(alias) => bound(&alias.expr, told, most),
        part if part.column_refs().is_empty() => part.clone(),
        part if most => unread(part, told).or(part.clone()),
        part => not(unread(part, told)).and(part.clone()),
    }
}

/// Whether a value of a column that an expression names could not be read.
fn unread(expr: &Expr, told: &Expr) -> Expr {
    let columns: BTreeSet<String> = expr.column_refs().into_iter().map(|column| column.name.clone()).collect();
    let function = Tells { columns, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![told.clone()]))
}

/// Whether what could not be read of a row is of one of these columns. No SQL can call it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Tells {
    columns: BTreeSet<String>,
    signature: Signature,
}

impl ScalarUDFImpl for Tells {
    fn name(&self) -> &'static str {
        "tells_unreadable"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [told] = take_function_args(self.name(), ColumnarValue::values_to_arrays(&args.args)?)?;
        // most batches have none
        if told.null_count() == told.len() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(false))));
        }
        Ok(ColumnarValue::Array(Arc::new(self.rows(&told)?)))
    }
}

impl Tells {
    fn rows(&self, told: &ArrayRef) -> DfResult<BooleanArray> {
        let wrong = || DataFusionError::Internal("a source tells what is unreadable in another form".into());
        let lists = told.as_list_opt::<i32>().ok_or_else(wrong)?;
        let mut found = Vec::with_capacity(lists.len());
        for row in 0..lists.len() {
            if lists.is_null(row) {
                found.push(false);
                continue;
            }
            let told = lists.value(row);
            let columns = told.as_struct_opt().and_then(|told| told.columns().first()?.as_string_opt::<i32>());
            let columns = columns.ok_or_else(wrong)?;
            found.push(columns.iter().flatten().any(|name| self.columns.contains(name)));
        }
        Ok(found.into())
    }
}
