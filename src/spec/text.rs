//! Values as text: casts to STRING, as Java writes them.

use arrow::array::{ArrayRef, StringArray};

use super::data_type::DataType;
use super::datum::Datum;
use super::zone::Zone;
use crate::error::{Error, Result};

/// An atomic value as cast to STRING, LTZ in UTC; None for NULL.
pub fn datum_text(datum: &Datum, data_type: &DataType) -> Option<String> {
    datum_text_in(datum, data_type, &Zone::UTC)
}

/// An atomic value as cast to STRING, LTZ in a zone; None for NULL.
pub fn datum_text_in(datum: &Datum, data_type: &DataType, zone: &Zone) -> Option<String> {
    let _ = (datum, data_type, zone);
    None
}

/// Every value of an array as cast to STRING, nested types included; LTZ in a zone.
pub fn array_text(array: &ArrayRef, data_type: &DataType, zone: &Zone) -> Result<StringArray> {
    let _ = (array, data_type, zone);
    Err(Error::internal("not built yet"))
}

/// `Double.toString` of Java.
pub fn java_double(value: f64) -> String {
    value.to_string()
}

/// `Float.toString` of Java.
pub fn java_float(value: f32) -> String {
    value.to_string()
}
