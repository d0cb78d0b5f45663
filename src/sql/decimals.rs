//! Decimals compared with numbers that have more digits than their type, or that are written in quotes.
//!
//! DataFusion brings both sides to a decimal of at most 38 digits, where one of them may have no place: the comparison
//! fails, although it has an answer. Quoted numbers are rounded to the column's type first: 1.24 equals '1.239'.
//!
//! Here a literal gets the fewest digits that tell it from all values of the columns beside it: beyond them it is the
//! first number that none of them can be, and between two of them a number between the two. Where 38 digits do not do,
//! both sides have 76. So they do beside a text column, whose numbers may have any digits.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DECIMAL256_MAX_PRECISION, DataType, i256};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, cast, lit};

/// What holds all digits of a decimal, and of a text up to 38 behind the point.
pub(super) const WIDEST: DataType = DataType::Decimal256(DECIMAL256_MAX_PRECISION, DECIMAL128_MAX_SCALE);

/// Prepares operands that are compared with each other; whether one was changed.
pub(super) fn exact(operands: Vec<&mut Expr>, types: &[Option<DataType>]) -> bool {
    let numbers: Vec<Option<Number>> = operands.iter().map(|operand| Number::of(operand)).collect();
    let mut columns = Digits::default();
    let mut declared = Digits::default();
    let mut quoted = false;
    for (number, found) in numbers.iter().zip(types) {
        match (number, found) {
            (_, None | Some(DataType::Null)) => {}
            (Some(_), Some(found)) => match Digits::of(found) {
                Some(digits) => declared = declared.both(digits),
                None => quoted = true,
            },
            (None, Some(found)) => {
                let Some(digits) = Digits::of(found).or_else(|| Digits::of_text(found)) else { return false };
                columns = columns.both(digits);
            }
        }
    }
    if !quoted && columns.both(declared).count() <= i16::from(DECIMAL128_MAX_PRECISION) {
        return false;
    }
    let is_column = |(number, found): (&Option<Number>, &Option<DataType>)| {
        number.is_none() && found.as_ref().is_some_and(|found| *found != DataType::Null)
    };
    let has_columns = numbers.iter().zip(types).any(is_column);
    // the first is compared with each other one, so a literal there may meet a literal
    let literals_meet = matches!(numbers.as_slice(), [Some(_), others @ ..] if others.iter().any(Option::is_some));
    let from_columns = has_columns && !literals_meet;
    let told: Vec<Option<Number>> = numbers
        .into_iter()
        .map(|number| number.map(|number| if from_columns { number.told_from(columns) } else { number.shortest() }))
        .collect();
    let needed = told.iter().flatten().fold(columns, |needed, number| needed.both(number.digits()));
    if needed.count() > i16::from(DECIMAL256_MAX_PRECISION) {
        return false;
    }
    let wide = (needed.count() > i16::from(DECIMAL128_MAX_PRECISION)).then(|| needed.decimal256());
    let mut changed = false;
    for ((operand, number), found) in operands.into_iter().zip(told).zip(types) {
        let exact = match (number, &wide, found) {
            (Some(number), Some(_), _) => number.literal(needed),
            (Some(number), None, _) => number.literal(number.digits()),
            (None, Some(wide), Some(found)) if *found != DataType::Null => {
                Some(cast(std::mem::take(operand), wide.clone()))
            }
            _ => None,
        };
        if let Some(exact) = exact {
            *operand = exact;
            changed = true;
        }
    }
    changed
}

/// Digits before and behind the point.
#[derive(Debug, Clone, Copy, Default)]
struct Digits {
    whole: i16,
    behind: i16,
}

impl Digits {
    /// Of all values of a type; None: it is neither an integer nor a decimal.
    fn of(data_type: &DataType) -> Option<Self> {
        let whole = match data_type {
            DataType::Int8 | DataType::UInt8 => 3,
            DataType::Int16 | DataType::UInt16 => 5,
            DataType::Int32 | DataType::UInt32 => 10,
            // as many as DataFusion gives them
            DataType::Int64 | DataType::UInt64 => 20,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                let behind = i16::from(*scale);
                return (behind >= 0).then(|| Self { whole: i16::from(*precision) - behind, behind });
            }
            _ => return None,
        };
        Some(Self { whole, behind: 0 })
    }

    /// Of all numbers of a text column that [`WIDEST`] holds.
    fn of_text(data_type: &DataType) -> Option<Self> {
        let half = i16::from(DECIMAL128_MAX_SCALE);
        data_type.is_string().then_some(Self { whole: half, behind: half })
    }

    fn both(self, other: Self) -> Self {
        Self { whole: self.whole.max(other.whole), behind: self.behind.max(other.behind) }
    }

    fn count(self) -> i16 {
        self.whole + self.behind
    }

    fn decimal256(self) -> DataType {
        DataType::Decimal256(DECIMAL256_MAX_PRECISION, i8::try_from(self.behind).unwrap_or_default())
    }
}

/// A literal: `value` of which the last `behind` digits are behind the point.
#[derive(Debug, Clone, Copy)]
struct Number {
    value: i256,
    behind: i16,
}

impl Number {
    fn of(expr: &Expr) -> Option<Self> {
        let whole = |value: i128| Some(Self { value: i256::from_i128(value), behind: 0 });
        let value = match expr {
            Expr::Negative(inner) => {
                let number = Self::of(inner)?;
                return Some(Self { value: number.value.checked_neg()?, ..number });
            }
            Expr::Literal(value, _) => value,
            _ => return None,
        };
        match value {
            ScalarValue::Int8(Some(value)) => whole((*value).into()),
            ScalarValue::Int16(Some(value)) => whole((*value).into()),
            ScalarValue::Int32(Some(value)) => whole((*value).into()),
            ScalarValue::Int64(Some(value)) => whole((*value).into()),
            ScalarValue::UInt8(Some(value)) => whole((*value).into()),
            ScalarValue::UInt16(Some(value)) => whole((*value).into()),
            ScalarValue::UInt32(Some(value)) => whole((*value).into()),
            ScalarValue::UInt64(Some(value)) => whole((*value).into()),
            ScalarValue::Decimal32(Some(value), _, scale) => Self::scaled(i256::from_i128((*value).into()), *scale),
            ScalarValue::Decimal64(Some(value), _, scale) => Self::scaled(i256::from_i128((*value).into()), *scale),
            ScalarValue::Decimal128(Some(value), _, scale) => Self::scaled(i256::from_i128(*value), *scale),
            ScalarValue::Decimal256(Some(value), _, scale) => Self::scaled(*value, *scale),
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                Self::parse(text)
            }
            _ => None,
        }
    }

    fn scaled(value: i256, scale: i8) -> Option<Self> {
        (scale >= 0).then(|| Self { value, behind: scale.into() })
    }

    /// A number as SQL writes it, with a sign before it, without an exponent.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{behind}");
        if all.is_empty()
            || all.len() > usize::from(DECIMAL256_MAX_PRECISION)
            || !all.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let value = i256::from_string(&all)?;
        let value = if text.starts_with('-') { value.checked_neg()? } else { value };
        Some(Self { value, behind: i16::try_from(behind.len()).ok()? })
    }

    /// Without zeros at its end behind the point.
    fn shortest(self) -> Self {
        let mut number = self;
        while number.behind > 0
            && let (Some(value), Some(digit)) = (number.value.checked_div(TEN), number.value.checked_rem(TEN))
            && digit == i256::ZERO
        {
            number = Self { value, behind: number.behind - 1 };
        }
        number
    }

    /// A number that is less than, equal to or greater than the same numbers of so many digits.
    fn told_from(self, columns: Digits) -> Self {
        let number = self.shortest();
        let sign = if number.value < i256::ZERO { i256::MINUS_ONE } else { i256::ONE };
        let beyond = Self { value: power(columns.whole).wrapping_mul(sign), behind: 0 };
        if number.digits().whole > columns.whole {
            return beyond;
        }
        let more = number.behind - columns.behind;
        if more <= 0 {
            return number;
        }
        // not the shortest number if its further digits were zeros
        let cut = number.value.checked_div(power(more)).unwrap_or_default();
        let five = i256::from_i128(5).wrapping_mul(sign);
        Self { value: cut.wrapping_mul(TEN).wrapping_add(five), behind: columns.behind + 1 }
    }

    fn digits(self) -> Digits {
        let all = (0..=i16::from(DECIMAL256_MAX_PRECISION)).find(|count| self.value.wrapping_abs() < power(*count));
        let all = all.unwrap_or_else(|| i16::from(DECIMAL256_MAX_PRECISION) + 1);
        Digits { whole: (all - self.behind).max(0), behind: self.behind }
    }

    /// With room for so many digits.
    fn literal(self, digits: Digits) -> Option<Expr> {
        let value = self.value.checked_mul(power(digits.behind - self.behind))?;
        let scale = i8::try_from(digits.behind).ok()?;
        let precision = u8::try_from(digits.count().max(1)).ok()?;
        Some(lit(if digits.count() > i16::from(DECIMAL128_MAX_PRECISION) {
            ScalarValue::Decimal256(Some(value), DECIMAL256_MAX_PRECISION, scale)
        } else {
            ScalarValue::Decimal128(Some(value.to_i128()?), precision, scale)
        }))
    }
}

const TEN: i256 = i256::from_i128(10);

/// A power of ten; a column's type has no more digits than there are powers.
fn power(of: i16) -> i256 {
    (0..of).fold(i256::ONE, |power, _| power.wrapping_mul(TEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a literal becomes beside a column of `precision` and `scale`: its digits, and how many are behind the point.
    fn beside(text: &str, precision: i16, scale: i16) -> (String, i16) {
        let number = Number::parse(text).unwrap().told_from(Digits { whole: precision - scale, behind: scale });
        (number.value.to_string(), number.behind)
    }

    #[test]
    fn a_literal_keeps_its_place_among_the_values_of_a_column() {
        assert_eq!(beside("1.24", 10, 2), ("124".to_string(), 2));
        assert_eq!(beside("1.239", 10, 2), ("1235".to_string(), 3));
        assert_eq!(beside("-1.239", 10, 2), ("-1235".to_string(), 3));
        assert_eq!(beside("1.2300000", 10, 2), ("123".to_string(), 2));
        assert_eq!(beside("-0.001", 10, 2), ("-5".to_string(), 3));
        assert_eq!(beside("99999999.999", 10, 2), ("99999999995".to_string(), 3));
        assert_eq!(beside("100000000", 10, 2), ("100000000".to_string(), 0));
        assert_eq!(beside("-123456789012345.67", 10, 2), ("-100000000".to_string(), 0));
        assert_eq!(beside(&"9".repeat(76), 38, 10), (format!("1{}", "0".repeat(28)), 0));
    }

    #[test]
    fn only_plain_numbers_are_numbers() {
        for text in ["", ".", "-", "1e3", "1.2.3", "0x1", "1 2", "١", "NaN"] {
            assert!(Number::parse(text).is_none(), "{text}");
        }
        for (text, value, behind) in
            [(" 1.50 ", "150", 2), (".5", "5", 1), ("5.", "5", 0), ("+7", "7", 0), ("-0", "0", 0)]
        {
            let number = Number::parse(text).unwrap();
            assert_eq!((number.value.to_string().as_str(), number.behind), (value, behind), "{text}");
        }
    }
}
