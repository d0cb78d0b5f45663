//! Types and fields as JSON, as they stand in schema files.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::data_type::{DataField, DataType, FieldType};
use super::json::Object;
use super::type_text::{self, MAX_DEPTH};
use crate::error::{Error, Result};

/// Ids of ROW fields: all given, as in table files, or all assigned, as for documents of a REST service.
#[derive(Debug, Default)]
pub(super) struct FieldIds {
    assigned: i32,
    given: bool,
    required: bool,
}

impl FieldIds {
    /// For table files, where a missing id is damage: a guessed one could read another column.
    pub(super) fn required() -> Self {
        Self { required: true, ..Self::default() }
    }

    /// The id of the next field.
    pub(super) fn resolve(&mut self, id: Option<i32>) -> Result<i32> {
        match id {
            Some(id) if self.assigned == 0 => {
                self.given = true;
                Ok(id)
            }
            None if !self.given && !self.required => {
                let id = self.assigned;
                self.assigned = self.assigned.saturating_add(1);
                Ok(id)
            }
            None if self.required => Err(Error::corrupt("a field lacks 'id'").with_context("key", "id")),
            _ => Err(Error::corrupt("some fields have an id and some have none").with_context("key", "id")),
        }
    }
}

/// Reads a type.
pub(super) fn field_type(value: &Value) -> Result<FieldType> {
    nested_type(value, 0, &mut FieldIds::default())
}

/// Reads the columns of a schema file.
pub(super) fn columns(values: &[Value]) -> Result<Vec<DataField>> {
    row_fields(values, 0, &mut FieldIds::required())
}

fn nested_type(value: &Value, depth: usize, ids: &mut FieldIds) -> Result<FieldType> {
    if depth > MAX_DEPTH {
        return Err(Error::corrupt(format!("a type nests deeper than {MAX_DEPTH} levels")).with_code("MalformedType"));
    }
    if let Value::String(text) = value {
        return type_text::parse_nested(text, depth, ids);
    }
    let object = Object::new(value, "type")?;
    let keyword = object.str("type")?.trim().to_ascii_uppercase();
    let mut part = |key: &str| nested_type(object.required(key)?, depth + 1, ids);
    let data_type = if keyword.starts_with("ARRAY") {
        DataType::Array(Box::new(part("element")?))
    } else if keyword.starts_with("MULTISET") {
        DataType::Multiset(Box::new(part("element")?))
    } else if keyword.starts_with("MAP") {
        DataType::Map(Box::new(part("key")?), Box::new(part("value")?))
    } else if keyword.starts_with("VECTOR") {
        let element = part("element")?;
        let length = object.i32("length")?;
        match u32::try_from(length) {
            Ok(length) if length > 0 => DataType::Vector(Box::new(element), length),
            _ => return Err(Error::corrupt(format!("a VECTOR has the impossible length {length}"))),
        }
    } else if keyword.starts_with("ROW") {
        DataType::Row(row_fields(object.array("fields")?, depth + 1, ids)?)
    } else {
        return Err(Error::unsupported(format!("the nested type '{keyword}' is not known")).with_code("UnknownType"));
    };
    Ok(FieldType { data_type, nullable: !keyword.contains("NOT NULL") })
}

/// Fields of one level, whose names and ids must differ: a column is found by them.
fn row_fields(values: &[Value], depth: usize, ids: &mut FieldIds) -> Result<Vec<DataField>> {
    let mut fields: Vec<DataField> = Vec::new();
    let mut names = std::collections::HashSet::new();
    let mut numbers = std::collections::HashSet::new();
    for value in values {
        let object = Object::new(value, "field")?;
        let name = object.str("name")?;
        let in_field = |error: Error| error.with_context("column", name);
        let id = object.opt_i32("id").and_then(|id| ids.resolve(id)).map_err(in_field)?;
        let field_type = nested_type(object.required("type").map_err(in_field)?, depth, ids).map_err(in_field)?;
        if !names.insert(name) {
            return Err(in_field(Error::corrupt(format!("two fields have the name '{name}'"))));
        }
        if !numbers.insert(id) {
            let first = fields.iter().find(|field| field.id == id).map(|field| field.name.as_str()).unwrap_or_default();
            return Err(in_field(Error::corrupt(format!("the fields '{first}' and '{name}' both have the id {id}"))));
        }
        fields.push(DataField {
            id,
            name: name.to_string(),
            field_type,
            description: object.opt_string("description").map_err(in_field)?,
            default_value: object.opt_string("defaultValue").map_err(in_field)?,
            sums: false,
        });
    }
    Ok(fields)
}

impl Serialize for FieldType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keyword = |word: &str| if self.nullable { word.to_string() } else { format!("{word} NOT NULL") };
        let mut map;
        match &self.data_type {
            DataType::Array(element) => {
                map = serializer.serialize_map(None)?;
                map.serialize_entry("type", &keyword("ARRAY"))?;
                map.serialize_entry("element", element)?;
            }
            DataType::Multiset(element) => {
                map = serializer.serialize_map(None)?;
                map.serialize_entry("type", &keyword("MULTISET"))?;
                map.serialize_entry("element", element)?;
            }
            DataType::Vector(element, length) => {
                map = serializer.serialize_map(None)?;
                map.serialize_entry("type", &keyword("VECTOR"))?;
                map.serialize_entry("element", element)?;
                map.serialize_entry("length", length)?;
            }
            DataType::Map(key, value) => {
                map = serializer.serialize_map(None)?;
                map.serialize_entry("type", &keyword("MAP"))?;
                map.serialize_entry("key", key)?;
                map.serialize_entry("value", value)?;
            }
            DataType::Row(fields) => {
                map = serializer.serialize_map(None)?;
                map.serialize_entry("type", &keyword("ROW"))?;
                map.serialize_entry("fields", fields)?;
            }
            _ => return serializer.collect_str(self),
        }
        map.end()
    }
}

impl Serialize for DataField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("type", &self.field_type)?;
        if let Some(description) = &self.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(default_value) = &self.default_value {
            map.serialize_entry("defaultValue", default_value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use serde_json::json;

    use super::super::data_type::{DataField, DataType, FieldType};
    use super::columns;

    #[test]
    fn nested_objects_are_read_and_written_alike() {
        for value in [
            json!({"type": "ARRAY NOT NULL", "element": "INT"}),
            json!({"type": "MAP", "key": "STRING NOT NULL", "value": {"type": "ARRAY", "element": "BIGINT"}}),
            json!({"type": "MULTISET", "element": "STRING"}),
            json!({"type": "VECTOR", "element": "FLOAT", "length": 128}),
            json!({"type": "ROW", "fields": [
                {"id": 7, "name": "a", "type": "INT NOT NULL", "description": "x"},
                {"id": 8, "name": "b", "type": "STRING", "defaultValue": "y"}]}),
        ] {
            let parsed = FieldType::from_json(&value).unwrap();
            assert_eq!(parsed.to_json(), value);
        }
    }

    #[test]
    fn missing_ids_are_assigned_depth_first_but_not_in_table_files() {
        let fields = json!([
            {"name": "a", "type": {"type": "ROW", "fields": [{"name": "b", "type": "INT"}]}},
            {"name": "c", "type": "INT"}]);
        let parsed = FieldType::from_json(&json!({"type": "ROW", "fields": fields})).unwrap();
        let DataType::Row(row) = parsed.data_type else { panic!("a row") };
        assert_eq!((row[0].id, row[1].id), (0, 2));
        let error = columns(fields.as_array().unwrap()).unwrap_err();
        assert!(error.to_string().contains("lacks 'id'") && error.to_string().contains("column: a"), "{error}");
        let mixed =
            json!({"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "INT"}, {"name": "b", "type": "INT"}]});
        assert!(FieldType::from_json(&mixed).is_err());
    }

    #[test]
    fn broken_objects_are_errors() {
        for value in [
            json!(5),
            json!({"element": "INT"}),
            json!({"type": "ARRAY"}),
            json!({"type": "STRUCT", "fields": []}),
            json!({"type": "VECTOR", "element": "FLOAT", "length": -1}),
            json!({"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "INT"}]}),
            json!({"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "a", "type": "INT"}]}),
            json!({"type": "ROW", "fields": [{"id": 1, "name": 3, "type": "INT"}]}),
        ] {
            assert!(FieldType::from_json(&value).is_err(), "{value}");
        }
        let mut deep = json!("INT");
        for _ in 0..200 {
            deep = json!({"type": "ARRAY", "element": deep});
        }
        assert!(FieldType::from_json(&deep).is_err());
    }

    fn atomic() -> impl Strategy<Value = DataType> {
        let length = 1_u32..=2_147_483_647;
        prop_oneof![
            length.clone().prop_map(DataType::Char),
            length.clone().prop_map(DataType::Varchar),
            length.clone().prop_map(DataType::Binary),
            length.prop_map(DataType::Varbinary),
            (1_u8..=38).prop_flat_map(|p| (Just(p), 0..=p)).prop_map(|(p, s)| DataType::Decimal(p, s)),
            (0_u8..=9).prop_map(DataType::Time),
            (0_u8..=9).prop_map(DataType::Timestamp),
            (0_u8..=9).prop_map(DataType::TimestampLtz),
            prop_oneof![
                Just(DataType::STRING),
                Just(DataType::BYTES),
                Just(DataType::Boolean),
                Just(DataType::TinyInt),
                Just(DataType::SmallInt),
                Just(DataType::Int),
                Just(DataType::BigInt),
                Just(DataType::Float),
                Just(DataType::Double),
                Just(DataType::Date),
                Just(DataType::Variant),
                Just(DataType::Blob),
                Just(DataType::Geometry(String::new())),
                Just(DataType::Geography("OGC:CRS84, spherical".to_string())),
            ],
        ]
    }

    fn any_type() -> impl Strategy<Value = FieldType> {
        let leaf = (atomic(), any::<bool>()).prop_map(|(data_type, nullable)| FieldType { data_type, nullable });
        leaf.prop_recursive(4, 24, 4, |inner| {
            let boxed = inner.clone().prop_map(Box::new);
            let nested = prop_oneof![
                boxed.clone().prop_map(DataType::Array),
                boxed.clone().prop_map(DataType::Multiset),
                (boxed.clone(), boxed.clone()).prop_map(|(key, value)| DataType::Map(key, value)),
                (boxed, 1_u32..100).prop_map(|(element, length)| DataType::Vector(element, length)),
                proptest::collection::vec((any::<char>(), inner), 0..4).prop_map(|parts| {
                    let field = |(i, (c, field_type)): (usize, (char, FieldType))| DataField {
                        id: i32::try_from(i).unwrap(),
                        name: format!("{c}{i}"),
                        field_type,
                        description: None,
                        default_value: None,
                        sums: false,
                    };
                    DataType::Row(parts.into_iter().enumerate().map(field).collect())
                }),
            ];
            (nested, any::<bool>()).prop_map(|(data_type, nullable)| FieldType { data_type, nullable })
        })
    }

    proptest! {
        #[test]
        fn any_type_survives_json_and_text(field_type in any_type()) {
            prop_assert_eq!(&FieldType::from_json(&field_type.to_json()).unwrap(), &field_type);
            // ids of ROW fields are not in the text, so only the text itself comes back
            let text = field_type.to_string();
            prop_assert_eq!(FieldType::parse(&text).unwrap().to_string(), text);
        }

        #[test]
        fn any_text_is_a_type_or_an_error(text in "(?s)(INT|ARRAY|<|>|,|\\(|ROW|`|NOT NULL|[0-9]{1,12}|.){0,12}") {
            let _ = FieldType::parse(&text);
        }
    }
}
