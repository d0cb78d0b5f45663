//! Decimals beyond what Arrow's kernels do: read from texts exactly, summed without overflow, shown.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Int64Type, i256};

use crate::error::{Error, Result};

/// The digits of a number, and how many of them stand behind the point; none of those at the end is 0.
pub fn parse_decimal(text: &str) -> Option<(i256, i32)> {
    let (negative, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = [whole, part].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_end_matches('0');
    let dropped = i32::try_from(digits.len() - kept.len()).ok()?;
    let scale = i32::try_from(part.len()).ok()?.checked_sub(dropped)?.checked_sub(exponent)?;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some((i256::ZERO, 0));
    }
    if kept.len() > 76 {
        return None;
    }
    let value = i256::from_string(kept)?;
    Some((if negative { value.checked_neg()? } else { value }, scale))
}

/// 10 to the power of `exponent`, up to 76.
pub fn power(exponent: u32) -> Option<i256> {
    i256::from_i128(10).checked_pow(exponent)
}

/// A number in units of `scale`; None where it has more digits than that, or is too large.
pub fn at_scale((value, own): (i256, i32), scale: i8) -> Option<i256> {
    if value == i256::ZERO {
        return Some(value);
    }
    let more = u32::try_from(i32::from(scale) - own).ok().filter(|more| *more <= 76)?;
    value.checked_mul(power(more)?)
}

/// The largest number of units of `scale` that is not above a number; None where it is too large.
pub fn floor_at((value, own): (i256, i32), scale: i8) -> Option<i256> {
    let finer = own.checked_sub(i32::from(scale))?;
    if finer <= 0 {
        return at_scale((value, own), scale);
    }
    let floor = if value.is_negative() { i256::MINUS_ONE } else { i256::ZERO };
    // beyond all digits there is nothing of it left
    let Some(step) = u32::try_from(finer).ok().filter(|finer| *finer <= 76).and_then(power) else { return Some(floor) };
    let whole = value.checked_div(step)?;
    let exact = whole.checked_mul(step)? == value;
    if exact { Some(whole) } else { whole.checked_add(floor) }
}

/// Digits of a decimal's text from the first to the last that is not 0.
pub fn significant_digits(text: &str) -> usize {
    let number = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

/// A decimal as text, without zeros at the end of its fraction.
pub fn shown(value: i256, scale: i8) -> String {
    shown_with(value, scale, 0)
}

/// A decimal as text, with at least so many digits behind the point: as a column of that scale shows it.
pub fn shown_with(value: i256, scale: i8, least: i8) -> String {
    let text = value.to_string();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let scale = usize::try_from(scale).unwrap_or(0);
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    let least = usize::try_from(least).unwrap_or(0).min(part.len());
    let kept = part.trim_end_matches('0').len().max(least);
    match part.get(..kept).unwrap_or_default() {
        "" => format!("{sign}{whole}"),
        part => format!("{sign}{whole}.{part}"),
    }
}

/// The value of a row of integers or decimals; None for NULL.
pub fn number(array: &dyn Array, row: usize) -> Option<i256> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Int64 => Some(i256::from_i128(array.as_primitive::<Int64Type>().value(row).into())),
        DataType::Decimal128(..) => Some(i256::from_i128(array.as_primitive::<Decimal128Type>().value(row))),
        DataType::Decimal256(..) => Some(array.as_primitive::<Decimal256Type>().value(row)),
        _ => None,
    }
}

/// The sum of integers or decimals.
///
/// # Errors
/// A sum of more than 76 digits.
pub fn sum(array: &dyn Array) -> Result<i256> {
    let too_large = || Error::exhausted("a sum of a column has more than 76 digits").with_code("SumOverflow");
    match array.data_type() {
        // 2^63 of the largest fit into 128 bits
        DataType::Int64 => {
            let total: i128 = array.as_primitive::<Int64Type>().iter().flatten().map(i128::from).sum();
            Ok(i256::from_i128(total))
        }
        _ => {
            let mut total = i256::ZERO;
            for row in 0..array.len() {
                if let Some(value) = number(array, row) {
                    total = total.checked_add(value).ok_or_else(too_large)?;
                }
            }
            Ok(total)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_by_value() {
        let of = |text: &str| parse_decimal(text).and_then(|number| at_scale(number, 4)).map(|n| shown(n, 4));
        for (text, expected) in [
            ("1.50", Some("1.5")),
            ("-0.0", Some("0")),
            ("+007", Some("7")),
            (".5", Some("0.5")),
            ("1e2", Some("100")),
            ("12.3456", Some("12.3456")),
            ("12.34567", None),
            ("-1.2e-3", Some("-0.0012")),
            ("", None),
            ("1,5", None),
            ("0x1", None),
            ("e5", None),
            (".", None),
        ] {
            assert_eq!(of(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn bounds_go_down_to_the_next_unit_and_zeros_stay_where_they_are_wanted() {
        for (text, scale, expected) in [
            ("5.7", 0, "5"),
            ("-5.7", 0, "-6"),
            ("-5", 0, "-5"),
            ("5.005", 2, "5"),
            ("1e-90", 0, "0"),
            ("-1e-90", 0, "-1"),
        ] {
            let floor = parse_decimal(text).and_then(|number| floor_at(number, scale)).map(|n| shown(n, scale));
            assert_eq!(floor.as_deref(), Some(expected), "{text}");
        }
        let cents = i256::from_i128(500);
        assert_eq!([shown_with(cents, 2, 2), shown_with(cents, 2, 9), shown(cents, 2)], ["5.00", "5.00", "5"]);
        for (text, digits) in [("0.00120", 2), ("1000000", 1), ("1234.5e300", 5), ("-0", 0)] {
            assert_eq!(significant_digits(text), digits, "{text}");
        }
    }
}
