//! The type that holds the values of two others, for columns of two tables.

use crate::spec::{DataField, DataType, FieldType};

/// A type to which values of both can be cast without loss of whole numbers and digits; None: there is none. Floats
/// hold what an ALTER TABLE would make of a number.
pub(super) fn wider(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Array, Date, Decimal, Double, Float, Map, Row, Timestamp, TimestampLtz};
    Some(match (a, b) {
        _ if a == b => a.clone(),
        _ if is_text(a) && is_text(b) => DataType::STRING,
        _ if is_bytes(a) && is_bytes(b) => DataType::BYTES,
        (text, other) | (other, text) if is_text(text) && (digits(other).is_some() || *other == Date) => {
            DataType::STRING
        }
        (Decimal(p, s), Decimal(q, t)) => decimal((p - s).max(q - t), *s.max(t))?,
        (Decimal(p, s), other) | (other, Decimal(p, s)) if digits(other).is_some() => {
            decimal((p - s).max(digits(other)?), *s)?
        }
        (Float | Double, other) | (other, Float | Double) if is_number(other) => Double,
        _ if digits(a).is_some() && digits(b).is_some() => (if digits(a) > digits(b) { a } else { b }).clone(),
        (Timestamp(p), Timestamp(q)) => Timestamp(*p.max(q)),
        (TimestampLtz(p), TimestampLtz(q)) => TimestampLtz(*p.max(q)),
        (Date, Timestamp(p)) | (Timestamp(p), Date) => Timestamp(*p),
        (DataType::Time(p), DataType::Time(q)) => DataType::Time(*p.max(q)),
        (Array(a), Array(b)) => Array(Box::new(wider_field(a, b)?)),
        (Map(k, v), Map(l, w)) if k.data_type == l.data_type => Map(k.clone(), Box::new(wider_field(v, w)?)),
        (Row(a), Row(b)) if a.len() == b.len() => {
            let both = a.iter().zip(b).map(|(a, b)| {
                let field_type = wider_field(&a.field_type, &b.field_type).filter(|_| a.name == b.name)?;
                Some(DataField { field_type, ..a.clone() })
            });
            Row(both.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn wider_field(a: &FieldType, b: &FieldType) -> Option<FieldType> {
    Some(FieldType { data_type: wider(&a.data_type, &b.data_type)?, nullable: a.nullable || b.nullable })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Char(_) | DataType::Varchar(_))
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary(_) | DataType::Varbinary(_))
}

/// The digits of an integer type.
fn digits(data_type: &DataType) -> Option<u8> {
    Some(match data_type {
        DataType::TinyInt => 3,
        DataType::SmallInt => 5,
        DataType::Int => 10,
        DataType::BigInt => 19,
        _ => return None,
    })
}

fn is_number(data_type: &DataType) -> bool {
    digits(data_type).is_some() || matches!(data_type, DataType::Float | DataType::Double | DataType::Decimal(..))
}

/// The decimal of so many digits before and behind the point.
fn decimal(before: u8, scale: u8) -> Option<DataType> {
    let precision = before.checked_add(scale)?;
    (precision <= 38).then_some(DataType::Decimal(precision.max(1), scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wider_of_two_types_holds_both() {
        for (a, b, wanted) in [
            ("INT", "BIGINT", Some("BIGINT")),
            ("TINYINT", "SMALLINT", Some("SMALLINT")),
            ("BIGINT", "DECIMAL(12, 2)", Some("DECIMAL(21, 2)")),
            ("DECIMAL(5, 2)", "DECIMAL(6, 4)", Some("DECIMAL(7, 4)")),
            ("DECIMAL(38, 0)", "DECIMAL(38, 10)", None),
            ("FLOAT", "INT", Some("DOUBLE")),
            ("CHAR(3)", "VARCHAR(9)", Some("STRING")),
            ("INT", "STRING", Some("STRING")),
            ("DOUBLE", "STRING", None),
            ("DATE", "TIMESTAMP(6)", Some("TIMESTAMP(6)")),
            ("TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", None),
            ("ARRAY<INT>", "ARRAY<BIGINT NOT NULL>", Some("ARRAY<BIGINT>")),
            ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", Some("MAP<STRING, BIGINT>")),
            ("BOOLEAN", "INT", None),
        ] {
            let parse = |text: &str| FieldType::parse(text).unwrap().data_type;
            let found = wider(&parse(a), &parse(b));
            assert_eq!(found, wanted.map(parse), "{a} and {b}");
            assert_eq!(wider(&parse(b), &parse(a)), found, "{b} and {a}");
        }
    }
}
