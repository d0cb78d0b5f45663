//! Casts to CHAR and VARCHAR, and to bytes.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BinaryBuilder, StringArray, StringBuilder};

use super::{downcast, is_number, is_text, strings};
use crate::error::{Error, Result};
use crate::spec::DataType;
use crate::spec::text::array_text;
use crate::spec::zone::Zone;

/// Text of every value. Only text, numbers and BOOLEAN are cut to the target's length and padded.
pub(super) fn to_text(array: &ArrayRef, from: &DataType, to: &DataType, zone: &Zone) -> Result<ArrayRef> {
    let text = if is_text(from) { strings(array)?.clone() } else { array_text(array, from, zone)? };
    let (length, pad) = match to {
        DataType::Char(n) => (*n, true),
        DataType::Varchar(n) => (*n, false),
        other => return Err(Error::internal(format!("{other:?} is no text"))),
    };
    let sized = is_text(from) || is_number(from) || matches!(from, DataType::Boolean);
    if !sized || (!pad && length > i32::MAX.unsigned_abs() - 1) {
        return Ok(Arc::new(text));
    }
    Ok(Arc::new(resize(&text, length, pad)))
}

/// Cut to `length` characters; padded with blanks up to it.
fn resize(text: &StringArray, length: u32, pad: bool) -> StringArray {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let mut builder = StringBuilder::with_capacity(text.len(), text.value_data().len());
    for value in text {
        builder.append_option(value.map(|v| sized(v, length, pad)));
    }
    builder.finish()
}

fn sized(value: &str, length: usize, pad: bool) -> Cow<'_, str> {
    // never more characters than bytes
    if !pad && value.len() <= length {
        return Cow::Borrowed(value);
    }
    match value.char_indices().nth(length) {
        Some((end, _)) => Cow::Borrowed(value.get(..end).unwrap_or(value)),
        None if pad => {
            let missing = length - value.chars().count();
            Cow::Owned(format!("{value}{}", " ".repeat(missing)))
        }
        None => Cow::Borrowed(value),
    }
}

/// Bytes of text or of bytes, cut to the target's length; BINARY(n) is padded with zeros.
pub(super) fn to_bytes(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    let (length, pad) = match to {
        DataType::Binary(n) => (*n, true),
        DataType::Varbinary(n) => (*n, false),
        other => return Err(Error::internal(format!("{other:?} is no binary type"))),
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let bytes: BinaryArray = if is_text(from) {
        BinaryArray::from(strings(array)?.clone())
    } else {
        downcast::<BinaryArray>(array)?.clone()
    };
    if !pad && length >= i32::MAX as usize {
        return Ok(Arc::new(bytes));
    }
    let mut builder = BinaryBuilder::with_capacity(bytes.len(), bytes.value_data().len());
    for value in &bytes {
        match value {
            None => builder.append_null(),
            Some(value) if value.len() > length => builder.append_value(value.get(..length).unwrap_or(value)),
            Some(value) if pad && value.len() < length => {
                let mut padded = value.to_vec();
                padded.resize(length, 0);
                builder.append_value(padded);
            }
            Some(value) => builder.append_value(value),
        }
    }
    Ok(Arc::new(builder.finish()))
}
