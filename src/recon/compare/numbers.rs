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

/// A decimal as text, without zeros at the end of its fraction.
pub fn shown(value: i256, scale: i8) -> String {
    let text = value.to_string();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let scale = usize::try_from(scale).unwrap_or(0);
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    match part.trim_end_matches('0') {
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
}
