//! Conditions as PostgreSQL is sent them.
//!
//! | type | `=`, IN | `<>`, `<`, `<=`, `>`, `>=` | IS NULL |
//! |---|---|---|---|
//! | integers | as here | as here | as here |
//! | numeric with a precision, date, timestamps | as here | as here | no: what no type holds is NULL here alone |
//! | text, varchar, char of a database in UTF-8 | by the collation, which takes more for equal | byte by byte | no |
//! | all others | no | no | no |
//!
//! IS NOT NULL keeps at least what is not NULL here, whatever the type.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::super::SourceOrder;
use super::super::bounds::{Bounds, Term};
use super::super::filter::{LISTED, Operator, Test, is_common_time};
use super::columns::{Kind, PgColumn, quoted};
use super::values::key_text;

/// The condition in SQL; None: the database would look at it in another way, or refuse it.
pub(super) fn filtered(
    bounds: &mut Bounds<Option<String>>,
    column: &PgColumn,
    test: &Test,
    is_utf8: bool,
) -> Option<String> {
    let of_values = column.source.order == SourceOrder::Values && column.cast.is_empty();
    let is_int = of_values && matches!(column.kind, Kind::Int2 | Kind::Int4 | Kind::Int8);
    let is_plain = is_int || of_values && matches!(column.kind, Kind::Numeric | Kind::Date | Kind::Timestamp);
    let is_text = is_utf8
        && column.cast.is_empty()
        && column.source.order != SourceOrder::Other
        && matches!(column.kind, Kind::Text | Kind::Padded);
    if !(is_text || is_plain) && *test != Test::IsNotNull {
        return None;
    }
    let is_zoned = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, Some(_)));
    let name = quoted(&column.source.name);
    let term = |value: &ScalarValue, bytes: bool| -> Option<Term<Option<String>>> {
        let same_zone = is_zoned(&value.data_type()) == is_zoned(&column.source.data_type);
        let value = Some(value).filter(|value| same_zone && is_common_time(value))?;
        let value = key_text(&column.source, value).ok()??;
        // a text has none of these there
        let value = Some(Some(value).filter(|value| !value.contains('\0')));
        let value = value.filter(Option::is_some)?;
        let (expression, around) = match (is_text, bytes) {
            (true, true) => (format!("{name}::text COLLATE \"C\""), (String::new(), "::text".to_string())),
            (true, false) => (name.clone(), (String::new(), format!("::text::{}", column.base))),
            (false, _) => (name.clone(), column.around(is_utf8)),
        };
        Some(Term { expression, around, value: Some(value), nullable: column.source.nullable })
    };
    match test {
        Test::IsNull => is_int.then(|| format!("{name} IS NULL")),
        Test::IsNotNull => Some(format!("{name} IS NOT NULL")),
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
