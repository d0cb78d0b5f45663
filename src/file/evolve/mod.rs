//! From the type a file was written with to the type of the table.

use arrow::array::ArrayRef;

use crate::error::{Error, Result};
use crate::spec::FieldType;
use crate::spec::zone::Zone;

/// Whether values of one type can be read as another.
///
/// # Errors
/// A pair that `ALTER TABLE` cannot produce, naming both types.
pub fn can_cast(from: &FieldType, to: &FieldType) -> Result<()> {
    let _ = (from, to);
    Err(Error::internal("not built yet"))
}

/// Values of one type as another; both arrays have exactly the Arrow type of their Paimon type.
///
/// # Errors
/// A pair that cannot be cast, or a value that has no cast (text that is no number, for example).
pub fn cast_array(array: &ArrayRef, from: &FieldType, to: &FieldType, zone: &Zone) -> Result<ArrayRef> {
    let _ = (array, zone);
    can_cast(from, to)?;
    Err(Error::internal("not built yet"))
}
