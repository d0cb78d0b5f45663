//! Conditions on one column that a database may be sent. It has to keep at least the rows that they hold for here: whoever
//! reads looks at them once more.

use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;

/// How a column's values are compared with one that is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Operator {
    /// In SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The one that says the same with its sides changed.
    pub fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

/// What has to hold for a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// It is NULL.
    IsNull,
    /// It is not NULL.
    IsNotNull,
    /// It compares so with this one, which is not NULL.
    Compare(Operator, ScalarValue),
    /// It is one of these, none of which is NULL.
    In(Vec<ScalarValue>),
}

/// A condition on a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The column, by its name.
    pub column: String,
    /// What has to hold for its values.
    pub test: Test,
}

/// Values that stand in a list, at most: longer ones stay here.
pub(super) const LISTED: usize = 500;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &ScalarValue| match value {
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                format!("'{}'", text.replace('\'', "''"))
            }
            value => value.to_string(),
        };
        let name = &self.column;
        match &self.test {
            Test::IsNull => write!(f, "{name} IS NULL"),
            Test::IsNotNull => write!(f, "{name} IS NOT NULL"),
            Test::Compare(operator, value) => write!(f, "{name} {} {}", operator.as_str(), shown(value)),
            Test::In(values) => write!(f, "{name} IN ({})", values.iter().map(shown).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Whether a time lies in the years 1 to 9999, which every database has.
pub(super) fn is_common_time(value: &ScalarValue) -> bool {
    const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
    let days = match value {
        ScalarValue::Date32(Some(days)) => i64::from(*days),
        ScalarValue::TimestampSecond(Some(time), _) => time.div_euclid(86_400),
        ScalarValue::TimestampMillisecond(Some(time), _) => time.div_euclid(86_400_000),
        ScalarValue::TimestampMicrosecond(Some(time), _) => time.div_euclid(86_400_000_000),
        ScalarValue::TimestampNanosecond(Some(time), _) => time.div_euclid(86_400_000_000_000),
        _ => return true,
    };
    DAYS.contains(&days)
}

/// Whether a column's values, brought to another type, compare as they do in their own.
pub fn widens(from: &DataType, to: &DataType) -> bool {
    let rank = |unit: TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    let whole = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
    match (from, to) {
        (from, to) if from == to => true,
        (DataType::Utf8, DataType::LargeUtf8 | DataType::Utf8View) => true,
        (DataType::Timestamp(one, zone), DataType::Timestamp(other, other_zone)) => {
            zone == other_zone && rank(*one) <= rank(*other)
        }
        (from, DataType::Int64) => from.is_integer() && *from != DataType::UInt64,
        (from, DataType::Decimal128(p, s) | DataType::Decimal256(p, s)) if from.is_integer() => whole(*p, *s) >= 20,
        (
            DataType::Decimal128(p, s) | DataType::Decimal256(p, s),
            DataType::Decimal128(q, t) | DataType::Decimal256(q, t),
        ) => s <= t && whole(*p, *s) <= whole(*q, *t),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_type_keeps_order_and_a_narrower_one_does_not() {
        let time = |unit| DataType::Timestamp(unit, None);
        for (from, to, expected) in [
            (DataType::Int32, DataType::Int64, true),
            (DataType::UInt64, DataType::Int64, false),
            (DataType::Int64, DataType::Int32, false),
            (DataType::UInt64, DataType::Decimal128(20, 0), true),
            (DataType::Int64, DataType::Decimal128(20, 2), false),
            (DataType::Decimal128(10, 2), DataType::Decimal128(12, 4), true),
            (DataType::Decimal128(10, 2), DataType::Decimal128(10, 3), false),
            (DataType::Decimal128(10, 2), DataType::Decimal128(10, 1), false),
            (time(TimeUnit::Millisecond), time(TimeUnit::Nanosecond), true),
            (time(TimeUnit::Microsecond), time(TimeUnit::Millisecond), false),
            (DataType::Int32, DataType::Float64, false),
            (DataType::Utf8, DataType::Int64, false),
        ] {
            assert_eq!(widens(&from, &to), expected, "{from} to {to}");
        }
        assert!(is_common_time(&ScalarValue::Date32(Some(2_932_896))));
        assert!(!is_common_time(&ScalarValue::Date32(Some(2_932_897))));
        assert!(!is_common_time(&ScalarValue::TimestampSecond(Some(-62_135_596_801), None)));
        let filter = Filter { column: "a".into(), test: Test::In(vec!["it's".into(), ScalarValue::Int64(Some(5))]) };
        assert_eq!(filter.to_string(), "a IN ('it''s', 5)");
    }
}
