//! Conditions as MySQL is sent them.
//!
//! | type | `=`, IN | `<>`, `<`, `<=`, `>`, `>=` | IS NULL |
//! |---|---|---|---|
//! | integers | as here | as here | as here |
//! | decimals, DATE, DATETIME | as here | as here | no: what no type holds is NULL here alone |
//! | texts | by the collation, which takes more for equal | byte by byte | no |
//! | all others | no | no | no |
//!
//! YEAR takes numbers of two digits for others, and a TIMESTAMP does not compare with times that it does not hold. IS NOT
//! NULL keeps at least what is not NULL here, whatever the type.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use mysql_async::Value;

use super::super::SourceOrder;
use super::super::bounds::{Bounds, Term};
use super::super::filter::{LISTED, Operator, Test, is_common_time};
use super::columns::{Kind, MyColumn, bytes_of};
use super::values::{around, key_param};

/// The condition in SQL; None: the database would look at it in another way.
pub(super) fn filtered(bounds: &mut Bounds<Value>, column: &MyColumn, test: &Test) -> Option<String> {
    let is_text = column.kind == Kind::Text && column.source.order != SourceOrder::Other;
    let is_int = column.kind == Kind::Int && !column.source.declared.starts_with("year");
    let is_plain = is_int
        || column.kind == Kind::Decimal && column.source.order == SourceOrder::Values
        || column.kind == Kind::Date
        || matches!(column.source.data_type, DataType::Timestamp(_, None));
    if !(is_text || is_plain) && *test != Test::IsNotNull {
        return None;
    }
    let term = |value: &ScalarValue, bytes: bool| -> Option<Term<Value>> {
        let zoneless = !matches!(value.data_type(), DataType::Timestamp(_, Some(_)));
        let value = Some(value).filter(|value| zoneless && is_common_time(value) && !has_nul(value))?;
        let value = Some(key_param(column, value).ok()??);
        let (expression, around) = match bytes {
            true => {
                let around = bytes_of("?").split_once('?').map(|(a, b)| (a.into(), b.into())).unwrap_or_default();
                (bytes_of(&column.quoted()), around)
            }
            false => (column.quoted(), around(column)),
        };
        Some(Term { expression, around, value, nullable: column.source.nullable })
    };
    match test {
        Test::IsNull => is_int.then(|| format!("{} IS NULL", column.quoted())),
        Test::IsNotNull => Some(format!("{} IS NOT NULL", column.quoted())),
        Test::Compare(operator, value) => {
            let term = term(value, is_text && *operator != Operator::Equal)?;
            Some(bounds.compared(&term, operator.as_str()))
        }
        Test::In(values) if values.len() <= LISTED => {
            let terms = values.iter().map(|value| term(value, false)).collect::<Option<Vec<_>>>()?;
            bounds.listed(&terms)
        }
        Test::In(_) => None,
    }
}

fn has_nul(value: &ScalarValue) -> bool {
    value.try_as_str().flatten().is_some_and(|text| text.contains('\0'))
}
