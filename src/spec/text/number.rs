//! Numbers as Java writes them.

/// `Double.toString` of Java, in the shortest form (JDK 19 and later).
pub fn java_double(value: f64) -> String {
    match special(value) {
        Some(text) => text.to_string(),
        None => lay_out(&two_digits_at_least(format!("{value:e}"), format!("{value:.1e}"), |text| {
            text.parse::<f64>().is_ok_and(|back| back == value)
        })),
    }
}

/// `Float.toString` of Java, in the shortest form (JDK 19 and later).
pub fn java_float(value: f32) -> String {
    match special(f64::from(value)) {
        Some(text) => text.to_string(),
        None => lay_out(&two_digits_at_least(format!("{value:e}"), format!("{value:.1e}"), |text| {
            text.parse::<f32>().is_ok_and(|back| back == value)
        })),
    }
}

/// A decimal in plain notation with all digits of its scale.
pub fn decimal(unscaled: i128, scale: i16) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let sign = if unscaled < 0 { "-" } else { "" };
    let Ok(scale) = usize::try_from(scale) else {
        // a negative scale stands for zeros at the end
        let zeros = if unscaled == 0 { String::new() } else { "0".repeat(usize::from(scale.unsigned_abs())) };
        return format!("{sign}{digits}{zeros}");
    };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else if value == 0.0 {
        Some(if value.is_sign_negative() { "-0.0" } else { "0.0" })
    } else {
        None
    }
}

/// Java looks for the nearest text of at least two digits: 4.9E-324, although 5E-324 would be the shortest.
fn two_digits_at_least(shortest: String, two_digits: String, same: impl Fn(&str) -> bool) -> String {
    let one_digit = shortest.split('e').next().is_some_and(|mantissa| !mantissa.contains('.'));
    if one_digit && same(&two_digits) { two_digits } else { shortest }
}

/// Turns `-1.2345e3` into Java's form: plain from 10^-3 to 10^7, otherwise with `E`.
fn lay_out(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let rest = rest.trim_end_matches('0');
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let or_zero = |digits: &str| if digits.is_empty() { "0".to_string() } else { digits.to_string() };
    match exponent {
        -3..=-1 => {
            let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
            format!("{sign}0.{zeros}{first}{rest}")
        }
        0..=6 => {
            let whole_digits = usize::try_from(exponent).unwrap_or(0);
            let padded = format!("{rest:0<whole_digits$}");
            let (whole, fraction) = padded.split_at(whole_digits);
            format!("{sign}{first}{whole}.{}", or_zero(fraction))
        }
        _ => format!("{sign}{first}.{}E{exponent}", or_zero(rest)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{decimal, java_double, java_float};

    #[test]
    fn doubles_are_written_as_java_does() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (0.1, "0.1"),
            (0.001, "0.001"),
            (0.002, "0.002"),
            (9.999e-4, "9.999E-4"),
            (0.00012, "1.2E-4"),
            (1_234_567.0, "1234567.0"),
            (9_999_999.999, "9999999.999"),
            (1e7, "1.0E7"),
            (1.23456789e8, "1.23456789E8"),
            (1e10, "1.0E10"),
            (1e21, "1.0E21"),
            (1e23, "1.0E23"),
            (2e23, "2.0E23"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (5e-324, "4.9E-324"),
            (0.3, "0.3"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::from(3.4028235e38_f32), "3.4028234663852886E38"),
        ] {
            assert_eq!(java_double(value), text);
        }
    }

    #[test]
    fn floats_are_written_as_java_does() {
        for (value, text) in [
            (1.1, "1.1"),
            (f32::MAX, "3.4028235E38"),
            (1.4e-45, "1.4E-45"),
            (1.234_567_9e8, "1.2345679E8"),
            (1e10, "1.0E10"),
            (16_777_216.0, "1.6777216E7"),
            (-0.0, "-0.0"),
            (f32::NAN, "NaN"),
            (0.001, "0.001"),
        ] {
            assert_eq!(java_float(value), text);
        }
    }

    #[test]
    fn decimals_are_plain() {
        for (unscaled, scale, text) in [
            (0, 0, "0"),
            (0, 3, "0.000"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (-4000, 3, "-4.000"),
            (12_345, 2, "123.45"),
            (12, -2, "1200"),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ] {
            assert_eq!(decimal(unscaled, scale), text);
        }
    }

    proptest! {
        #[test]
        fn texts_of_floats_give_the_value_back(bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            let text = java_double(double);
            prop_assert!(double.is_nan() || text.replace("Infinity", "inf").parse::<f64>().unwrap() == double, "{}", text);
            #[expect(clippy::cast_possible_truncation, reason = "the low half is as random as the whole")]
            let float = f32::from_bits(bits as u32);
            let text = java_float(float);
            prop_assert!(float.is_nan() || text.replace("Infinity", "inf").parse::<f32>().unwrap() == float, "{}", text);
        }
    }
}
