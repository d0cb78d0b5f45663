//! What can fail for some rows.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, Case, Cast, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};

use crate::query::arithmetic::is_checked;

/// Parts of an expression whose type is asked for: what is more takes long, and is not guarded.
const MOST_PARTS: usize = 200;

/// Whether an expression has a part that can fail, subqueries apart.
pub(super) fn can_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let mut found = false;
    let _ = expr.apply(|part| {
        if is_query(part) {
            return Ok(TreeNodeRecursion::Jump);
        }
        found |= fails(part, schema);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

pub(super) fn is_query(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Whether a CASE is a condition made of conditions.
pub(super) fn gives_truth(case: &Case, schema: &DFSchema) -> bool {
    let first = case.when_then_expr.first();
    case.expr.is_none() && first.is_some_and(|(_, then)| found(then, schema) == DataType::Boolean)
}

/// Functions that fail for some values of their types.
const FAILING: [&str; 24] = [
    "abs",
    "array_element",
    "arrow_cast",
    "chr",
    "date_bin",
    "decode",
    "factorial",
    "from_unixtime",
    "gcd",
    "generate_series",
    "lcm",
    "make_date",
    "power",
    "range",
    "repeat",
    "sqrt",
    "to_date",
    "to_local_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
];

/// Functions that fail for some values of one argument only, and the place of that.
const FAILING_BY: [(&str, usize); 7] = [
    ("regexp_count", 1),
    ("regexp_instr", 1),
    ("regexp_like", 1),
    ("regexp_match", 1),
    ("regexp_replace", 1),
    ("split_part", 2),
    ("substr", 2),
];

/// Whether a node of an expression fails for some rows. One without columns is computed while the statement is planned.
pub(super) fn fails(part: &Expr, schema: &DFSchema) -> bool {
    let fails = match part {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide | Operator::Modulo, right }) => {
            let counts = |of: &Expr| {
                let found = found(of, schema);
                found.is_integer() || found.is_decimal()
            };
            !is_harmless(right) && counts(right) && counts(left)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let by = FAILING_BY.iter().find(|(name, _)| *name == func.name()).and_then(|(_, at)| args.get(*at));
            is_checked(func)
                || FAILING.contains(&func.name())
                || by.is_some_and(|argument| !matches!(argument, Expr::Literal(..)))
        }
        Expr::Cast(Cast { expr, field }) => !holds(field.data_type(), &found(expr, schema)),
        _ => false,
    };
    fails && part.any_column_refs()
}

fn found(of: &Expr, schema: &DFSchema) -> DataType {
    let mut parts = 0;
    let _ = of.apply(|_| {
        parts += 1;
        Ok(if parts > MOST_PARTS { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    if parts > MOST_PARTS { DataType::Null } else { of.get_type(schema).unwrap_or(DataType::Null) }
}

/// Whether nothing fails that is divided by this.
fn is_harmless(divisor: &Expr) -> bool {
    let Expr::Literal(value, _) = divisor else { return false };
    let number = value.cast_to(&DataType::Float64);
    value.is_null() || matches!(number, Ok(ScalarValue::Float64(Some(number))) if number != 0.0 && number != -1.0)
}

/// Whether a type has a place for all values of another.
fn holds(wide: &DataType, of: &DataType) -> bool {
    use DataType::{Date32, Date64, Null, Timestamp};
    let digits = |integer: &DataType| match integer {
        DataType::Int8 | DataType::UInt8 => Some(3),
        DataType::Int16 | DataType::UInt16 => Some(5),
        DataType::Int32 | DataType::UInt32 => Some(10),
        DataType::Int64 => Some(19),
        DataType::UInt64 => Some(20),
        _ => None,
    };
    let places = |decimal: &DataType| match decimal {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Some((i16::from(*precision) - i16::from(*scale), *scale))
        }
        other => digits(other).map(|digits| (digits, 0)),
    };
    if wide == of || wide.is_string() || matches!(of, Null | DataType::Boolean) || wide.is_floating() && !of.is_string()
    {
        return true;
    }
    match (wide, of) {
        (Timestamp(TimeUnit::Nanosecond, _), Date32 | Date64) => false,
        // a TIMESTAMP beyond nanoseconds is rare, and pruning by times is not
        (Timestamp(..) | Date32 | Date64, Timestamp(..) | Date32 | Date64) => true,
        (wide, of) if wide.is_integer() && of.is_integer() => {
            let signs = wide.is_signed_integer() || !of.is_signed_integer();
            let wider = wide.primitive_width() > of.primitive_width();
            signs
                && (wider
                    || wide.is_signed_integer() == of.is_signed_integer()
                        && wide.primitive_width() == of.primitive_width())
        }
        (wide, of) if wide.is_decimal() => match (places(wide), places(of)) {
            (Some((before, behind)), Some((needed, given))) => before >= needed && behind >= given,
            _ => false,
        },
        // lists, maps and rows: what is inside is told by nobody
        (wide, of) => !(wide.is_primitive() && (of.is_primitive() || of.is_string())) && *wide != DataType::Boolean,
    }
}
