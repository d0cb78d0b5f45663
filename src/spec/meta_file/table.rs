//! What columns a kind of metadata file has.

/// Columns of a file or of a nested record, in the order of the reference implementation.
#[derive(Debug)]
pub struct Table {
    /// Columns.
    pub fields: &'static [Field],
}

/// A column.
#[derive(Debug)]
pub struct Field {
    /// Name, by which it is found.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Whether it may be null; such a column may also be missing.
    pub nullable: bool,
}

/// Type of a column.
#[derive(Debug)]
pub enum Kind {
    /// 32-bit number.
    Int,
    /// 64-bit number.
    Long,
    /// Milliseconds since the epoch.
    Millis,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// List of elements.
    List(&'static Element),
    /// Record.
    Record(&'static Table),
}

/// Element of a list.
#[derive(Debug)]
pub struct Element {
    /// Type.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
}

impl Kind {
    /// The kind in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Int | Self::Long => "number",
            Self::Millis => "timestamp",
            Self::Text => "text",
            Self::Bytes => "byte string",
            Self::List(_) => "list",
            Self::Record(_) => "record",
        }
    }

    /// List of texts.
    pub const TEXTS: Self = Self::List(&Element { kind: Self::Text, nullable: false });
    /// List of 32-bit numbers.
    pub const INTS: Self = Self::List(&Element { kind: Self::Int, nullable: false });
    /// List of 64-bit numbers.
    pub const LONGS: Self = Self::List(&Element { kind: Self::Long, nullable: false });
    /// List of 64-bit numbers and nulls.
    pub const NULLABLE_LONGS: Self = Self::List(&Element { kind: Self::Long, nullable: true });
}

impl Field {
    /// A column without nulls.
    pub const fn required(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: false }
    }

    /// A column with nulls.
    pub const fn nullable(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: true }
    }
}
