//! Views of a table: which rows, and which columns beside the table's.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType as ArrowType, Field, Int8Type, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::read::ReadColumn;
use crate::scan::{ChangeRange, ScanKind};
use crate::snapshot::Pin;
use crate::spec::RowKind;
use crate::spec::arrow_types::arrow_schema;

/// Which rows and columns of a pinned table are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum LakeView {
    /// The table: its final rows.
    #[default]
    Rows,
    /// `t$ro`: rows of the top level.
    ReadOptimized,
    /// `t$audit_log`: `rowkind` STRING, then (`table-read.sequence-number.enabled`) `_SEQUENCE_NUMBER`, then the table's
    /// columns; final rows and keys whose last record deletes.
    AuditLog,
    /// `t$row_tracking`: the table's columns, then `_ROW_ID` and `_SEQUENCE_NUMBER`.
    RowTracking,
    /// Rows added by the APPEND snapshots of a range, unmerged; with kinds as in `AuditLog` (all rows), or without
    /// (`+I` and `+U` only).
    Delta {
        /// Snapshots.
        range: ChangeRange,
        /// Whether `rowkind` (and `_SEQUENCE_NUMBER`) come first and retracts are kept.
        kinds: bool,
    },
    /// Rows of the changelog files of a range, likewise.
    Changelog {
        /// Snapshots.
        range: ChangeRange,
        /// Whether `rowkind` (and `_SEQUENCE_NUMBER`) come first and retracts are kept.
        kinds: bool,
    },
}

impl LakeView {
    /// What to plan.
    pub fn scan_kind(self) -> ScanKind {
        match self {
            Self::Rows | Self::RowTracking => ScanKind::Full,
            Self::ReadOptimized => ScanKind::ReadOptimized,
            Self::AuditLog => ScanKind::FullWithDeletes,
            Self::Delta { range, .. } => ScanKind::Delta(range),
            Self::Changelog { range, .. } => ScanKind::Changelog(range),
        }
    }

    /// Whether rows that take others back are seen, with their kinds.
    pub fn shows_kinds(self) -> bool {
        match self {
            Self::Rows | Self::RowTracking | Self::ReadOptimized => false,
            Self::AuditLog => true,
            Self::Delta { kinds, .. } | Self::Changelog { kinds, .. } => kinds,
        }
    }

    /// As shown in plans; empty for the table itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rows => "",
            Self::ReadOptimized => "ro",
            Self::AuditLog => "audit_log",
            Self::RowTracking => "row_tracking",
            Self::Delta { .. } => "delta",
            Self::Changelog { .. } => "changelog",
        }
    }

    /// Refuses a table with columns of the names that the view adds: nobody could tell them apart.
    fn refuse_own_names(self, pin: &Pin) -> Result<()> {
        let added: &[&str] = match self {
            Self::RowTracking => &["_ROW_ID", "_SEQUENCE_NUMBER"],
            _ if !self.shows_kinds() => &[],
            _ if pin.options.table_read_sequence_number && pin.schema.is_primary_key_table() => {
                &["rowkind", "_SEQUENCE_NUMBER"]
            }
            _ => &["rowkind"],
        };
        let Some(own) = pin.schema.fields.iter().find(|field| added.contains(&field.name.as_str())) else {
            return Ok(());
        };
        Err(Error::unsupported(format!("the table has a column '{}' of its own, and this view adds one", own.name))
            .with_code("ColumnOfView")
            .with_context("table", pin.table.name())
            .with_context("column", &own.name)
            .with_hint(match self {
                Self::RowTracking => "read the table itself",
                _ => "read the table itself, and what changed with paimon_diff('t', from => 1, to => 2)",
            }))
    }

    /// Columns and schema of the view.
    pub(super) fn columns(self, pin: &Pin) -> Result<(Arc<[ReadColumn]>, SchemaRef)> {
        if self == Self::RowTracking && !pin.options.row_tracking_enabled {
            return Err(Error::invalid("the table does not track rows")
                .with_code("NoRowTracking")
                .with_context("table", pin.table.name())
                .with_context("option", "row-tracking.enabled"));
        }
        self.refuse_own_names(pin)?;
        let table = arrow_schema(&pin.schema);
        let mut columns = Vec::new();
        let mut fields: Vec<Arc<Field>> = Vec::new();
        let number = |name: &str| Arc::new(Field::new(name, ArrowType::Int64, false));
        if self.shows_kinds() {
            columns.push(ReadColumn::ValueKind);
            fields.push(Arc::new(Field::new("rowkind", ArrowType::Utf8, true)));
            if pin.options.table_read_sequence_number && pin.schema.is_primary_key_table() {
                columns.push(ReadColumn::SequenceNumber);
                fields.push(number("_SEQUENCE_NUMBER"));
            }
        }
        columns.extend((0..pin.schema.fields.len()).map(ReadColumn::Field));
        fields.extend(table.fields().iter().cloned());
        if self == Self::RowTracking {
            columns.extend([ReadColumn::RowId, ReadColumn::SequenceNumber]);
            fields.extend([number("_ROW_ID"), number("_SEQUENCE_NUMBER")]);
        }
        Ok((columns.into(), Arc::new(Schema::new(fields))))
    }
}

/// Kinds as text: `+I`, `-U`, `+U`, `-D`.
pub(super) fn kinds_as_text(kinds: &ArrayRef) -> Result<ArrayRef> {
    let kinds = kinds.as_primitive_opt::<Int8Type>().ok_or_else(|| Error::internal("row kinds are not TINYINT"))?;
    let texts = kinds
        .values()
        .iter()
        .map(|byte| {
            RowKind::from_byte(*byte)
                .map(RowKind::as_str)
                .ok_or_else(|| Error::corrupt(format!("{byte} is no row kind")))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StringArray::from(texts)))
}
