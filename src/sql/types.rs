//! Column types as users read them.

use crate::spec::{DataType, FieldType};

/// The canonical writing of a type.
pub(crate) fn text(field_type: &FieldType) -> String {
    field_type.to_string()
}

/// Whether a type has a map somewhere, which cannot be grouped by as it is.
pub(crate) fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) | DataType::Multiset(_) => true,
        DataType::Array(element) | DataType::Vector(element, _) => has_map(&element.data_type),
        DataType::Row(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}
