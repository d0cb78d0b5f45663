//! A column of a file as the table's type, by the rules of the room `file`: a timestamp of finer units is floored, not cut
//! towards zero; NULL in a NOT NULL column, or a decimal longer than its type, is an error that says so.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType as ArrowType, FieldRef, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use crate::error::Error;
use crate::file::{FileFormat, holds_nulls, to_declared, within_precision};
use crate::spec::{DataType, FieldType};

/// The values of `read` as the field `wanted`.
#[derive(Debug, Clone, Eq)]
pub(super) struct Stored {
    read: Arc<dyn PhysicalExpr>,
    wanted: FieldRef,
}

impl Stored {
    pub(super) fn new(read: Arc<dyn PhysicalExpr>, wanted: FieldRef) -> Self {
        Self { read, wanted }
    }
}

// derived equality does not compile over `Arc<dyn …>`
impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.read.eq(&other.read) && self.wanted == other.wanted
    }
}

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.read.hash(state);
        self.wanted.hash(state);
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.read, self.wanted.data_type())
    }
}

impl PhysicalExpr for Stored {
    fn data_type(&self, _schema: &Schema) -> DfResult<ArrowType> {
        Ok(self.wanted.data_type().clone())
    }

    fn nullable(&self, _schema: &Schema) -> DfResult<bool> {
        Ok(self.wanted.is_nullable())
    }

    fn evaluate(&self, batch: &RecordBatch) -> DfResult<ColumnarValue> {
        let mut values = self.read.evaluate(batch)?.into_array(batch.num_rows())?;
        if values.data_type() != self.wanted.data_type() {
            let declared = FieldType { data_type: declared(self.wanted.data_type())?, nullable: true };
            let named = |error: Error| error.with_context("column", self.wanted.name());
            values = to_declared(&values, &declared, FileFormat::Parquet).map_err(named)?;
        }
        values = within_precision(values, self.wanted.data_type())
            .map_err(|error| error.with_context("column", self.wanted.name()))?;
        if !self.wanted.is_nullable() && values.null_count() > 0 {
            return Err(holds_nulls(self.wanted.name()).into());
        }
        Ok(ColumnarValue::Array(values))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.read]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> DfResult<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(read), true) => Ok(Arc::new(Self::new(read, Arc::clone(&self.wanted)))),
            _ => Err(Error::internal("a stored column is made of one expression").into()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read.fmt_sql(f)
    }
}

/// The type of the format that is kept as this one.
fn declared(kept: &ArrowType) -> Result<DataType, Error> {
    let precision = |unit: &TimeUnit| match unit {
        TimeUnit::Second | TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    match kept {
        ArrowType::Timestamp(unit, None) => Ok(DataType::Timestamp(precision(unit))),
        ArrowType::Timestamp(unit, Some(_)) => Ok(DataType::TimestampLtz(precision(unit))),
        ArrowType::Time32(unit) => Ok(DataType::Time(precision(unit))),
        other => Err(Error::internal(format!("no column is read as {other} by its form"))),
    }
}
