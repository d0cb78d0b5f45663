//! Types and literals of times that DataFusion does not take as they are written: `TIME(3)`, and a TIMESTAMP outside of the
//! years 1677 to 2262, where its nanoseconds end (`valid_to < TIMESTAMP '9999-12-31 00:00:00'`).

use std::sync::Arc;

use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use chrono::{Timelike, Utc};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, TimezoneInfo, TypedString, Value};

/// Whether a text is a time that microseconds hold exactly.
pub(crate) fn is_of_micros(text: &str) -> bool {
    string_to_datetime(&Utc, text).is_ok_and(|time| time.nanosecond() % 1000 == 0)
}

/// Whether a text is a time that microseconds hold and nanoseconds do not.
pub(crate) fn is_beyond_nanos(text: &str) -> bool {
    is_of_micros(text) && string_to_datetime(&Utc, text).is_ok_and(|time| time.timestamp_nanos_opt().is_none())
}

/// Makes a TIMESTAMP that nanoseconds do not hold a `TIMESTAMP(6)`.
pub(crate) fn widen(expr: &mut Expr) {
    let (data_type, value) = match expr {
        Expr::TypedString(TypedString { data_type, value, .. }) => (data_type, &*value),
        Expr::Cast { expr, data_type, .. } => match &**expr {
            Expr::Value(value) => (data_type, value),
            _ => return,
        },
        _ => return,
    };
    if let (SqlType::Timestamp(digits @ None, _), Value::SingleQuotedString(text)) = (data_type, &value.value)
        && is_beyond_nanos(text)
    {
        *digits = Some(6);
    }
}

/// Plans `TIME(p)` for as many digits as `TIMESTAMP(p)` may have; all else is for the planner that was there before.
#[derive(Debug)]
pub(crate) struct TimeTypes(pub(crate) Option<Arc<dyn TypePlanner>>);

impl TypePlanner for TimeTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> DfResult<Option<FieldRef>> {
        let time = match sql_type {
            SqlType::Time(Some(digits), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => match digits {
                0 => Some(DataType::Time32(TimeUnit::Second)),
                3 => Some(DataType::Time32(TimeUnit::Millisecond)),
                6 => Some(DataType::Time64(TimeUnit::Microsecond)),
                9 => Some(DataType::Time64(TimeUnit::Nanosecond)),
                _ => None,
            },
            _ => None,
        };
        match (time, &self.0) {
            (Some(time), _) => Ok(Some(Arc::new(Field::new("", time, true)))),
            (None, Some(before)) => before.plan_type_field(sql_type),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_nanoseconds_are_told_from_others() {
        let cases = [
            ("9999-12-31 23:59:59", true),
            ("9999-12-31", true),
            ("0001-01-01T00:00:00.123456Z", true),
            // no unit holds it
            ("9999-12-31 23:59:59.999999999", false),
            ("2262-01-01 00:00:00", false),
            ("noon", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_beyond_nanos(text), expected, "{text}");
        }
    }
}
