//! Logical data types and fields of a table.

use std::fmt;

use crate::error::{Error, Result};

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
}

impl DataField {
    /// The type without nullability.
    pub fn data_type(&self) -> &DataType {
        &self.field_type.data_type
    }
}

impl FieldType {
    /// Reads a type string of a schema file.
    pub fn parse(text: &str) -> Result<Self> {
        let _ = text;
        Err(Error::internal("not built yet"))
    }

    /// Reads a type as it stands in a schema file: a string, or an object for nested types.
    pub fn from_json(value: &serde_json::Value) -> Result<Self> {
        let _ = value;
        Err(Error::internal("not built yet"))
    }

    /// The type as a schema file writes it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.data_type)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
