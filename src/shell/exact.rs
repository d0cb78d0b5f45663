//! Numbers as they are shown, compared and subtracted without a loss.

use arrow::datatypes::i256;

/// Digits a number may have here; those of DECIMAL and its difference fit.
const DIGITS: usize = 76;

/// `-12.50`, `3`, `1.5e3`: digits and how many of them stand behind the point.
fn parts(text: &str) -> Option<(i256, usize)> {
    let text = text.trim();
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let mut scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    // zeros that say nothing do not count
    while scale > 0 && digits.len() > 1 && digits.ends_with('0') {
        digits.pop();
        scale -= 1;
    }
    if scale < 0 {
        let zeros = usize::try_from(scale.unsigned_abs()).ok().filter(|zeros| *zeros <= DIGITS)?;
        digits.push_str(&"0".repeat(zeros));
        scale = 0;
    }
    let scale = usize::try_from(scale).ok().filter(|scale| *scale <= DIGITS)?;
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS {
        return None;
    }
    Some((i256::from_string(&format!("{sign}{}", if digits.is_empty() { "0" } else { digits }))?, scale))
}

/// Both numbers in units of the smaller of their last places, and how many places those are.
fn aligned(a: &str, b: &str) -> Option<(i256, i256, usize)> {
    let ((a, a_scale), (b, b_scale)) = (parts(a)?, parts(b)?);
    let scale = a_scale.max(b_scale);
    let scaled = |number: i256, by: usize| {
        i256::from_i128(10).checked_pow(u32::try_from(by).ok()?).and_then(|factor| number.checked_mul(factor))
    };
    Some((scaled(a, scale - a_scale)?, scaled(b, scale - b_scale)?, scale))
}

/// Whether two texts are the same number; None: one of them is none.
pub fn same(a: &str, b: &str) -> Option<bool> {
    let (a, b, _) = aligned(a, b)?;
    Some(a == b)
}

/// `now - before` with its sign; None when one is no number that can be subtracted without a loss.
pub fn difference(before: &str, now: &str) -> Option<String> {
    let (before, now, scale) = aligned(before, now)?;
    let text = now.checked_sub(before)?.to_string();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', text.as_str()),
    };
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_lose_nothing() {
        let cases = [
            ("98232.11", "97550.80", Some("-681.31")),
            ("12345678901234567890.07", "12345678901234567890.08", Some("+0.01")),
            ("3", "5", Some("+2")),
            ("-0.5", "1", Some("+1.5")),
            ("1.50", "1.5", Some("+0.0")),
            ("9223372036854775807", "-9223372036854775808", Some("-18446744073709551615")),
            ("1e3", "1500", Some("+500")),
            ("99999999999999999999999999999999999999", "-1", Some("-100000000000000000000000000000000000000")),
            ("0.1", "0.3", Some("+0.2")),
            ("1e300", "1", None),
            ("a", "1", None),
            ("", "1", None),
            ("NaN", "1", None),
            (".", "1", None),
        ];
        for (before, now, expected) in cases {
            assert_eq!(difference(before, now).as_deref(), expected, "{before} {now}");
        }
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        for (a, b) in [("97550.80", "97550.8"), ("214", "214.0"), ("1e3", "1000.00"), ("-0", "0.0"), ("0.0", "0e5")] {
            assert_eq!(same(a, b), Some(true), "{a} {b}");
        }
        assert_eq!(same("12345678901234567890.07", "12345678901234567890.08"), Some(false));
        assert_eq!(same("x", "1"), None);
    }
}
