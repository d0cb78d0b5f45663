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
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    lit, not,
};

use crate::recon::source::Source;

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
pub fn bounds(condition: &Expr, told: &Expr, source: &dyn Source) -> Bounds {
    let unsure = match unread(condition, told, source) {
        Some(unread) => unread.and(Expr::IsNotTrue(Box::new(bound(condition, told, source, false)))),
        None => lit(false),
    };
    Bounds { may: bound(condition, told, source, true), unsure }
}

/// The condition with each part that depends on an unreadable value taken for true, or for false: `most` where it may
/// hold. What is below AND, OR and NOT is one part, as IS NULL and functions make something else of NULL.
fn bound(expr: &Expr, told: &Expr, source: &dyn Source, most: bool) -> Expr {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let [left, right] = [left, right].map(|side| Box::new(bound(side, told, source, most)));
            Expr::BinaryExpr(BinaryExpr::new(left, *op, right))
        }
        Expr::Not(inner) => not(bound(inner, told, source, !most)),
        Expr::Alias(alias) => bound(&alias.expr, told, source, most),
        // as it is, it may be sent to the database
        part => match unread(part, told, source) {
            None => part.clone(),
            Some(unread) if most => unread.or(part.clone()),
            Some(unread) => not(unread).and(part.clone()),
        },
    }
}

/// Whether a value of a column that an expression names could not be read; None: all of them can be.
fn unread(expr: &Expr, told: &Expr, source: &dyn Source) -> Option<Expr> {
    let columns = expr.column_refs().into_iter().map(|column| column.name.clone());
    let columns: BTreeSet<String> = columns.filter(|name| source.may_be_unreadable(name)).collect();
    if columns.is_empty() {
        return None;
    }
    let function = Tells { columns, signature: Signature::any(1, Volatility::Immutable) };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![told.clone()])))
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
