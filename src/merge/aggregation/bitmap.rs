//! `rbm32`: union of serialized 32-bit roaring bitmaps.

use roaring::RoaringBitmap;

use super::{AggregateFunction, FoldState, Spec};
use crate::error::{Error, Result};
use crate::merge::cell::{Cell, Column, Value};
use crate::spec::DataType;

#[derive(Debug)]
struct Rbm32;

pub(super) fn rbm32(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    if !matches!(spec.field.data_type(), DataType::Varbinary(_)) {
        return Err(spec.wrong_type("VARBINARY"));
    }
    Ok(Box::new(Rbm32))
}

fn decode(bytes: &[u8], column: &Column<'_>) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| {
        Error::corrupt("not a 32-bit roaring bitmap").with_context("column", column.name).with_source(error)
    })
}

impl AggregateFunction for Rbm32 {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let (old, new) = match (column.bytes(&acc)?, column.bytes(&input)?) {
            (_, None) => return Ok(acc),
            (None, _) => return Ok(input),
            (Some(old), Some(new)) => (old, new),
        };
        let mut bitmap = decode(old, column)? | decode(new, column)?;
        bitmap.optimize();
        let mut bytes = Vec::with_capacity(bitmap.serialized_size());
        bitmap
            .serialize_into(&mut bytes)
            .map_err(|error| Error::internal("a bitmap cannot be written to memory").with_source(error))?;
        Ok(Cell::Value(Value::Bytes(bytes)))
    }
}
