//! Values of findings: from the text that an example shows back to the value that was compared, and from there to what the
//! left side holds.
//!
//! Both sides are compared in a common type, which may not be that of the left column: an instant beside a clock time, three
//! digits of a second beside six. A text of an example is of the common type, so it is no value of the table by itself.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::convert::{Manner, convert, one_double, one_float, shown};
use super::judge::units_of;
use super::numbers::{at_scale, parse_decimal};
use super::pairs::{CommonType, Pair, Pairs, Role};
use crate::snapshot::SessionZone;

/// How values of both sides of a comparison became comparable.
#[derive(Debug, Clone)]
pub struct Common {
    pairs: Arc<Pairs>,
    manner: Manner,
}

/// The value of the left side that a compared one stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Own {
    /// In the type of the left column.
    pub value: ScalarValue,
    /// The same text with blanks up to the declared length, as some databases give it.
    pub padded: Option<ScalarValue>,
    /// Which other values of that type are compared as the same one.
    pub others: Others,
}

/// Values that are compared as the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    /// There are none.
    None,
    /// Those with other blanks at their end.
    Blanks,
    /// Those that differ in digits that are not compared.
    Digits,
}

impl Common {
    pub(super) fn new(pairs: &Arc<Pairs>, manner: Manner) -> Self {
        Self { pairs: Arc::clone(pairs), manner }
    }

    fn pair(&self, column: &str) -> Option<&Pair> {
        self.pairs.all.iter().find(|pair| pair.name() == column)
    }

    /// Columns that were compared besides the key, by their names on the left.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.pairs.all.iter().filter(|pair| pair.role == Role::Compared).map(Pair::name)
    }

    /// A text of an example as the value that was compared; None: it could not be read as one, or is nested.
    pub fn compared(&self, column: &str, text: Option<&str>) -> Option<ScalarValue> {
        let pair = self.pair(column)?;
        match text {
            None => ScalarValue::try_from(&pair.common.data_type()).ok(),
            Some(text) => parsed(text, &pair.common),
        }
    }

    /// The first value of a left column as it is compared; None: it has no counterpart there.
    pub fn of_left(&self, column: &str, values: &ArrayRef) -> Option<ScalarValue> {
        let pair = self.pair(column).filter(|_| !values.is_empty())?;
        // what cannot be converted was not compared either: there is no finding of it
        let converted = convert(&values.slice(0, 1), pair, false, &self.manner).ok()?;
        let value = ScalarValue::try_from_array(&converted.values, 0).ok()?;
        (value.is_null() == values.is_null(0)).then_some(value)
    }

    /// The value of a left column that a compared one stands for; None: the column holds none.
    pub fn own(&self, column: &str, compared: &ScalarValue) -> Option<Own> {
        let pair = self.pair(column)?;
        let to = &pair.left.data_type;
        let is_clock = matches!(to, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64);
        let value = match &pair.common {
            CommonType::Timestamp { zoned: true, .. } if is_clock => {
                on_clock(compared, &self.manner.zone)?.cast_to(to).ok()?
            }
            _ => compared.cast_to(to).ok()?,
        };
        let back = self.of_left(column, &value.to_array().ok()?)?;
        if back != *compared {
            return None;
        }
        let others = others(pair);
        let padded = value.try_as_str().flatten().filter(|_| others == Others::Blanks).and_then(|text| {
            let length = pair.left.declared_digits().or(pair.right.declared_digits())?;
            let length = usize::try_from(length).ok().filter(|length| *length > text.chars().count())?;
            Some(ScalarValue::Utf8(Some(format!("{text:<length$}"))))
        });
        Some(Own { value, padded, others })
    }
}

/// A text that an example shows as a value of the common type.
fn parsed(text: &str, common: &CommonType) -> Option<ScalarValue> {
    match common {
        CommonType::Text { .. } => Some(ScalarValue::Utf8(Some(text.to_string()))),
        CommonType::Binary => bytes(text).map(|bytes| ScalarValue::Binary(Some(bytes))),
        CommonType::Float => f32::from_str(text).ok().map(|value| ScalarValue::Float32(Some(one_float(value)))),
        CommonType::Double => f64::from_str(text).ok().map(|value| ScalarValue::Float64(Some(one_double(value)))),
        CommonType::Integer | CommonType::Decimal(..) => {
            let scale = if let CommonType::Decimal(_, scale) = common { *scale } else { 0 };
            let units = units_of(common, at_scale(parse_decimal(text)?, scale)?)?;
            ScalarValue::try_from_array(&units, 0).ok()
        }
        CommonType::Boolean | CommonType::Date | CommonType::Time(_) | CommonType::Timestamp { .. } => {
            let value = ScalarValue::Utf8(Some(text.to_string())).cast_to(&common.data_type()).ok()?;
            let is_text = shown(&value.to_array().ok()?, 0).ok()? == text;
            is_text.then_some(value)
        }
        CommonType::Nested(_) => None,
    }
}

/// Bytes from their hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// The time that a clock of the zone shows at an instant.
fn on_clock(instant: &ScalarValue, zone: &SessionZone) -> Option<ScalarValue> {
    let local = |value: i64, per_second: i64| {
        let millis = value.div_euclid(per_second).checked_mul(1_000)?;
        value.checked_add(i64::from(zone.offset_seconds(millis)).checked_mul(per_second)?)
    };
    Some(match instant {
        ScalarValue::TimestampSecond(Some(value), _) => ScalarValue::TimestampSecond(Some(local(*value, 1)?), None),
        ScalarValue::TimestampMillisecond(Some(value), _) => {
            ScalarValue::TimestampMillisecond(Some(local(*value, 1_000)?), None)
        }
        ScalarValue::TimestampMicrosecond(Some(value), _) => {
            ScalarValue::TimestampMicrosecond(Some(local(*value, 1_000_000)?), None)
        }
        ScalarValue::TimestampNanosecond(Some(value), _) => {
            ScalarValue::TimestampNanosecond(Some(local(*value, 1_000_000_000)?), None)
        }
        _ => return None,
    })
}

/// Which values of the left column are the same in the common type.
fn others(pair: &Pair) -> Others {
    let own = &pair.left.data_type;
    let is_day = matches!(own, DataType::Date32 | DataType::Date64);
    let keeps_apart = match &pair.common {
        // letters of another case are the same text too
        CommonType::Text { trimmed, folded } if *trimmed || *folded => return Others::Blanks,
        CommonType::Timestamp { digits, .. } | CommonType::Time(digits) => is_day || pair.left.precision() <= *digits,
        CommonType::Float => matches!(own, DataType::Float16 | DataType::Float32),
        CommonType::Double => {
            own.is_floating() || own.is_integer() && !matches!(own, DataType::Int64 | DataType::UInt64)
        }
        CommonType::Date => !matches!(own, DataType::Date64),
        CommonType::Text { .. }
        | CommonType::Boolean
        | CommonType::Integer
        | CommonType::Decimal(..)
        | CommonType::Binary => true,
        CommonType::Nested(_) => false,
    };
    if keeps_apart { Others::None } else { Others::Digits }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::super::pairs::{Column, Wanted, pair};
    use super::*;

    fn common(left: Column, right: Column, zone: Option<&str>) -> Common {
        let wanted = Wanted { key: vec!["k".to_string()], zone_stated: zone.is_some(), ..Wanted::default() };
        let pairs = pair(&[left], &[right], &wanted).unwrap();
        let zone = SessionZone::parse(zone.unwrap_or("UTC")).unwrap();
        Common::new(&Arc::new(pairs), Manner { zone, ..Manner::default() })
    }

    fn column(data_type: DataType, declared: Option<&str>) -> Column {
        Column { declared: declared.map(str::to_string), ..Column::new("k", data_type) }
    }

    fn time(unit: TimeUnit, zoned: bool) -> DataType {
        DataType::Timestamp(unit, zoned.then(|| Arc::from("UTC")))
    }

    /// The left value that a text stands for, and which others do.
    fn own(common: &Common, text: &str) -> Option<(String, Others)> {
        let own = common.own("k", &common.compared("k", Some(text))?)?;
        Some((shown(&own.value.to_array().unwrap(), 0).unwrap(), own.others))
    }

    #[test]
    fn texts_of_examples_lead_back_to_values_of_the_left_side() {
        use TimeUnit::{Microsecond, Millisecond};
        let plain = |data_type: DataType| column(data_type, None);
        let only = |text: &str| Some((text.to_string(), Others::None));
        let several = |text: &str| Some((text.to_string(), Others::Digits));
        // a clock beside instants
        let zoned = common(plain(time(Millisecond, false)), plain(time(Millisecond, true)), Some("+08:00"));
        assert_eq!(own(&zoned, "2026-04-16T02:00:00.120Z"), only("2026-04-16T10:00:00.120"));
        assert_eq!(own(&zoned, "2026-04-16T02:00:00"), None);
        // an hour that is there twice comes back as no instant
        let berlin = common(plain(time(Millisecond, false)), plain(time(Millisecond, true)), Some("Europe/Berlin"));
        assert_eq!(own(&berlin, "2026-10-25T00:30:00Z"), None);
        assert_eq!(own(&berlin, "2026-10-25T12:00:00Z"), only("2026-10-25T13:00:00"));
        // instants on the left
        let instants = common(plain(time(Millisecond, true)), plain(time(Microsecond, true)), None);
        assert_eq!(own(&instants, "2026-04-16T02:00:00.120Z"), only("2026-04-16T02:00:00.120Z"));
        // more digits on the left than are compared
        let digits =
            common(plain(time(Microsecond, false)), column(time(Microsecond, false), Some("datetime(3)")), None);
        assert_eq!(own(&digits, "2026-04-16T10:00:00.123"), several("2026-04-16T10:00:00.123"));
        let day = common(plain(DataType::Date32), plain(time(Millisecond, false)), None);
        assert_eq!((own(&day, "2026-04-16T00:00:00"), own(&day, "2026-04-16T10:00:00")), (only("2026-04-16"), None));
        // blanks at the end
        let padded = common(plain(DataType::Utf8), column(DataType::Utf8, Some("char(8)")), None);
        assert_eq!(own(&padded, "it's"), Some(("it's".to_string(), Others::Blanks)));
        let found = padded.own("k", &padded.compared("k", Some("支付")).unwrap()).unwrap();
        assert_eq!(found.padded, Some(ScalarValue::Utf8(Some("支付      ".to_string()))));
        assert_eq!(own(&common(plain(DataType::Utf8), plain(DataType::Utf8), None), "a, b"), only("a, b"));
        let bytes = common(plain(DataType::Binary), plain(DataType::Binary), None);
        assert_eq!((own(&bytes, "00ff"), own(&bytes, "0")), (only("00ff"), None));
        let money = common(plain(DataType::Decimal128(10, 2)), plain(DataType::Decimal128(20, 4)), None);
        assert_eq!((own(&money, "5"), own(&money, "5.001")), (only("5.00"), None));
        let number = common(plain(DataType::Int32), plain(DataType::Decimal128(20, 4)), None);
        assert_eq!((own(&number, "-7"), own(&number, "7.5"), own(&number, "3000000000")), (only("-7"), None, None));
        let double = common(plain(DataType::Int64), plain(DataType::Float64), None);
        assert_eq!(own(&double, "7"), several("7"));
    }

    #[test]
    fn values_of_the_left_side_are_what_they_were_compared_as() {
        let zoned = common(
            column(time(TimeUnit::Microsecond, false), None),
            column(time(TimeUnit::Millisecond, true), None),
            Some("+08:00"),
        );
        // 10:00:00.123456 on the clock
        let micros: i64 = 1_776_333_600_123_456;
        let values = ScalarValue::TimestampMicrosecond(Some(micros), None).to_array().unwrap();
        let expected = ScalarValue::TimestampMillisecond(Some(micros / 1_000 - 8 * 3_600_000), Some("UTC".into()));
        assert_eq!(zoned.of_left("k", &values), Some(expected.clone()));
        assert_eq!(zoned.compared("k", Some("2026-04-16T02:00:00.123Z")), Some(expected));
        let null = ScalarValue::TimestampMicrosecond(None, None).to_array().unwrap();
        assert_eq!(zoned.of_left("k", &null), zoned.compared("k", None));
    }
}
