//! Logical data types and fields of a table.
//!
//! The text of a type is read in `type_text`, its JSON form in `type_json`.

use std::fmt;

use crate::error::Result;

use super::type_json;
use super::type_text;

/// Length of `STRING` and `BYTES`, the longest that a type can declare.
pub const MAX_LENGTH: u32 = 2_147_483_647;

/// Digits of the largest 64-bit number.
const SUM_DIGITS: u8 = 19;

/// Largest precision of a DECIMAL whose sums are 64-bit numbers and not checked.
pub(super) const UNCHECKED_DIGITS: u8 = 18;

/// A Paimon logical type without its nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// Fixed-length text of n characters.
    Char(u32),
    /// Text of at most n characters; `VARCHAR(2147483647)` is written `STRING`.
    Varchar(u32),
    /// True or false.
    Boolean,
    /// Fixed-length bytes.
    Binary(u32),
    /// At most n bytes; `VARBINARY(2147483647)` is written `BYTES`.
    Varbinary(u32),
    /// Exact number of precision 1..=38 and scale 0..=precision.
    Decimal(u8, u8),
    /// 8-bit signed integer.
    TinyInt,
    /// 16-bit signed integer.
    SmallInt,
    /// 32-bit signed integer.
    Int,
    /// 64-bit signed integer.
    BigInt,
    /// 32-bit float.
    Float,
    /// 64-bit float.
    Double,
    /// Days since 1970-01-01.
    Date,
    /// Milliseconds of the day; the precision 0..=9 is only declared.
    Time(u8),
    /// Wall-clock time of precision 0..=9.
    Timestamp(u8),
    /// Instant of precision 0..=9.
    TimestampLtz(u8),
    /// Semi-structured value: two binaries, `value` and `metadata`.
    Variant,
    /// Large binary.
    Blob,
    /// WKB geometry with its parameters as written.
    Geometry(String),
    /// WKB geography with its parameters as written.
    Geography(String),
    /// List.
    Array(Box<FieldType>),
    /// Map from key to value.
    Map(Box<FieldType>, Box<FieldType>),
    /// Bag: element to count.
    Multiset(Box<FieldType>),
    /// Struct.
    Row(Vec<DataField>),
    /// Fixed-length list.
    Vector(Box<FieldType>, u32),
}

/// A type with its nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldType {
    /// The type.
    pub data_type: DataType,
    /// Whether NULL is a value.
    pub nullable: bool,
}

/// A column, or a field of a ROW.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataField {
    /// Identity across renames; never reused.
    pub id: i32,
    /// Name in this schema.
    pub name: String,
    /// Type and nullability.
    pub field_type: FieldType,
    /// Comment.
    pub description: Option<String>,
    /// Default of a missing value when writing, in string form. Never applied when reading.
    pub default_value: Option<String>,
    /// Whether the column holds sums that no writer checks against the precision of its DECIMAL: those of `sum` up to
    /// 18 digits. Not stored; [`TableSchema`](super::TableSchema) tells it from the options.
    pub sums: bool,
}

impl DataField {
    /// The type without nullability.
    pub fn data_type(&self) -> &DataType {
        &self.field_type.data_type
    }

    /// The type that every value of the column fits: DECIMAL(19, s) for unchecked sums, which are 64-bit numbers.
    pub fn value_type(&self) -> FieldType {
        let data_type = match self.data_type() {
            DataType::Decimal(precision, scale) if self.sums => DataType::Decimal(SUM_DIGITS.max(*precision), *scale),
            declared => declared.clone(),
        };
        FieldType { data_type, nullable: self.field_type.nullable }
    }
}

impl DataType {
    /// `STRING`.
    pub const STRING: Self = Self::Varchar(MAX_LENGTH);
    /// `BYTES`.
    pub const BYTES: Self = Self::Varbinary(MAX_LENGTH);

    /// The type, with NULL as a value.
    pub fn nullable(self) -> FieldType {
        FieldType { data_type: self, nullable: true }
    }

    /// The type, without NULL.
    pub fn not_null(self) -> FieldType {
        FieldType { data_type: self, nullable: false }
    }

    /// Whether values have parts: lists, maps, structs, vectors and variants.
    pub fn is_nested(&self) -> bool {
        matches!(
            self,
            Self::Array(_) | Self::Map(..) | Self::Multiset(_) | Self::Row(_) | Self::Vector(..) | Self::Variant
        )
    }

    /// Whether values have an order, so that metadata can hold bounds of them.
    pub fn is_ordered(&self) -> bool {
        !self.is_nested() && !matches!(self, Self::Blob | Self::Geometry(_) | Self::Geography(_))
    }
}

impl FieldType {
    /// Reads a type string of a schema file: `INT NOT NULL`, `DECIMAL(10, 2)`, `TIMESTAMP(3) WITH LOCAL TIME ZONE`,
    /// `INT ARRAY`, also `MAP<STRING, INT>`. Keywords are free in case and spacing. Fields of a `ROW<…>` get ids from 0,
    /// outer before inner.
    pub fn parse(text: &str) -> Result<Self> {
        type_text::parse(text)
    }

    /// Reads a type as it stands in a schema file: a string, or an object for nested types. Fields of a ROW have all
    /// their ids, or none; then they get ids from 0, outer before inner.
    pub fn from_json(value: &serde_json::Value) -> Result<Self> {
        type_json::field_type(value)
    }

    /// The type as a schema file writes it.
    pub fn to_json(&self) -> serde_json::Value {
        // a type has no map keys but literals, so this cannot fail
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.data_type.fmt(f)?;
        if !self.nullable {
            f.write_str(" NOT NULL")?;
        }
        Ok(())
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::Varchar(MAX_LENGTH) => f.write_str("STRING"),
            Self::Varchar(length) => write!(f, "VARCHAR({length})"),
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::Binary(length) => write!(f, "BINARY({length})"),
            Self::Varbinary(MAX_LENGTH) => f.write_str("BYTES"),
            Self::Varbinary(length) => write!(f, "VARBINARY({length})"),
            Self::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Date => f.write_str("DATE"),
            Self::Time(precision) => write!(f, "TIME({precision})"),
            Self::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            Self::TimestampLtz(precision) => write!(f, "TIMESTAMP({precision}) WITH LOCAL TIME ZONE"),
            Self::Variant => f.write_str("VARIANT"),
            Self::Blob => f.write_str("BLOB"),
            Self::Geometry(parameters) => spatial(f, "GEOMETRY", parameters),
            Self::Geography(parameters) => spatial(f, "GEOGRAPHY", parameters),
            Self::Array(element) => write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            Self::Multiset(element) => write!(f, "MULTISET<{element}>"),
            Self::Vector(element, length) => write!(f, "VECTOR<{element}, {length}>"),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                for (i, field) in fields.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}`{}` {}", field.name.replace('`', "``"), field.field_type)?;
                }
                f.write_str(">")
            }
        }
    }
}

fn spatial(f: &mut fmt::Formatter<'_>, keyword: &str, parameters: &str) -> fmt::Result {
    if parameters.is_empty() { f.write_str(keyword) } else { write!(f, "{keyword}({parameters})") }
}
