//! Small tables and batches for the tests of this room.

use std::collections::BTreeMap;

use crate::spec::{CoreOptions, DataField, DataType, FieldType, SchemaId, TableSchema};

/// A schema of columns with types; key columns are NOT NULL.
pub(super) fn typed_schema(columns: &[(&str, DataType)], key: &[&str]) -> TableSchema {
    let fields = columns
        .iter()
        .zip(0..)
        .map(|((name, data_type), id)| DataField {
            id,
            name: (*name).to_string(),
            field_type: FieldType { data_type: data_type.clone(), nullable: !key.contains(name) },
            description: None,
            default_value: None,
        })
        .collect();
    TableSchema {
        version: 3,
        id: SchemaId(0),
        fields,
        highest_field_id: 100,
        partition_keys: vec![],
        primary_keys: key.iter().map(|name| (*name).to_string()).collect(),
        options: BTreeMap::new(),
        comment: None,
        time_millis: 0,
    }
}

/// A schema of INT columns.
pub(super) fn schema(columns: &[&str], key: &[&str]) -> TableSchema {
    let columns: Vec<_> = columns.iter().map(|name| (*name, DataType::Int)).collect();
    typed_schema(&columns, key)
}

/// Options as a table has them.
pub(super) fn options(pairs: &[(&str, &str)]) -> CoreOptions {
    let options: BTreeMap<String, String> =
        pairs.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
    CoreOptions::parse(&options).unwrap()
}
