//! What a stored row means for its key.

/// Kind of a row, as stored in `_VALUE_KIND`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum RowKind {
    /// `+I`
    Insert = 0,
    /// `-U`
    UpdateBefore = 1,
    /// `+U`
    UpdateAfter = 2,
    /// `-D`
    Delete = 3,
}

impl RowKind {
    /// The kind for a stored byte; None for a byte that is none.
    pub fn from_byte(byte: i8) -> Option<Self> {
        Some(match byte {
            0 => Self::Insert,
            1 => Self::UpdateBefore,
            2 => Self::UpdateAfter,
            3 => Self::Delete,
            _ => return None,
        })
    }

    /// Whether the row takes its value back (`-U`, `-D`).
    pub fn is_retract(self) -> bool {
        matches!(self, Self::UpdateBefore | Self::Delete)
    }

    /// `+I`, `-U`, `+U` or `-D`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "+I",
            Self::UpdateBefore => "-U",
            Self::UpdateAfter => "+U",
            Self::Delete => "-D",
        }
    }
}
