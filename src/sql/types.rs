//! Column types as users read them.

use arrow::datatypes::{DataType as ArrowType, Field, TimeUnit};

use crate::spec::{DataType, FieldType};

/// The canonical writing of a type.
pub(crate) fn text(field_type: &FieldType) -> String {
    field_type.to_string()
}

/// A column's type that no table declares (of system tables, views and functions), in the words of those that do; Arrow's
/// own where there are none.
pub(crate) fn arrow_text(data_type: &ArrowType) -> String {
    let plain = |data_type| text(&FieldType { data_type, nullable: true });
    let digits = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    match data_type {
        ArrowType::Boolean => plain(DataType::Boolean),
        ArrowType::Int8 => plain(DataType::TinyInt),
        ArrowType::Int16 => plain(DataType::SmallInt),
        ArrowType::Int32 => plain(DataType::Int),
        ArrowType::Int64 => plain(DataType::BigInt),
        ArrowType::Float32 => plain(DataType::Float),
        ArrowType::Float64 => plain(DataType::Double),
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => plain(DataType::STRING),
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => plain(DataType::BYTES),
        ArrowType::Date32 => plain(DataType::Date),
        ArrowType::Time32(unit) | ArrowType::Time64(unit) => plain(DataType::Time(digits(unit))),
        ArrowType::Timestamp(unit, None) => plain(DataType::Timestamp(digits(unit))),
        ArrowType::Timestamp(unit, Some(_)) => plain(DataType::TimestampLtz(digits(unit))),
        ArrowType::Decimal128(precision, scale) => match u8::try_from(*scale) {
            Ok(scale) => plain(DataType::Decimal(*precision, scale)),
            Err(_) => data_type.to_string(),
        },
        ArrowType::Dictionary(_, values) => arrow_text(values),
        ArrowType::List(item) => format!("ARRAY<{}>", nested(item)),
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(parts) if parts.len() == 2 => {
                format!("MAP<{}, {}>", nested(&parts[0]), nested(&parts[1]))
            }
            _ => data_type.to_string(),
        },
        ArrowType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|f| format!("`{}` {}", f.name().replace('`', "``"), nested(f))).collect();
            format!("ROW<{}>", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn nested(field: &Field) -> String {
    let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
    arrow_text(field.data_type()) + not_null
}

/// Whether a type has a map somewhere, which cannot be grouped by as it is.
pub(crate) fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) | DataType::Multiset(_) => true,
        DataType::Array(element) | DataType::Vector(element, _) => has_map(&element.data_type),
        DataType::Row(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DataField;
    use crate::spec::arrow_types::arrow_field;

    #[test]
    fn types_of_columns_without_a_table_are_named_as_those_of_tables() {
        for name in [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "STRING",
            "BYTES",
            "DATE",
            "DECIMAL(12, 2)",
            "TIMESTAMP(3)",
            "ARRAY<INT NOT NULL>",
            "MAP<STRING NOT NULL, ARRAY<BIGINT>>",
            "ROW<`a` INT NOT NULL, `b ``` STRING>",
        ] {
            let field_type = FieldType::parse(name).unwrap();
            let field = DataField {
                id: 0,
                name: "c".to_string(),
                field_type,
                description: None,
                default_value: None,
                sums: false,
            };
            assert_eq!(arrow_text(arrow_field(&field).data_type()), name);
        }
        assert_eq!(arrow_text(&ArrowType::UInt64), "UInt64");
    }
}
