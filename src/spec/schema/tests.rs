use std::collections::BTreeMap;

use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use super::{BucketMode, TableSchema};
use crate::spec::data_type::DataType;
use crate::spec::options::CoreOptions;

/// As Java 0.9 writes it.
const JAVA: &str = r#"{
  "version" : 3,
  "id" : 0,
  "fields" : [ {
    "id" : 0,
    "name" : "dt",
    "type" : "STRING NOT NULL"
  }, {
    "id" : 1,
    "name" : "k",
    "type" : "INT NOT NULL",
    "description" : "the key"
  }, {
    "id" : 2,
    "name" : "tags",
    "type" : {
      "type" : "ARRAY",
      "element" : "STRING"
    }
  } ],
  "highestFieldId" : 3,
  "partitionKeys" : [ "dt" ],
  "primaryKeys" : [ "dt", "k" ],
  "options" : {
    "bucket" : "2",
    "file.format" : "parquet"
  },
  "comment" : "",
  "timeMillis" : 1795953846289
}"#;

fn edited(from: &str, to: &str) -> crate::Result<TableSchema> {
    assert!(JAVA.contains(from), "{from}");
    TableSchema::from_json(JAVA.replace(from, to).as_bytes())
}

fn options(schema: &TableSchema) -> CoreOptions {
    CoreOptions::parse(&schema.options).unwrap()
}

#[test]
fn java_schema_is_read_and_written_back() {
    let schema = TableSchema::from_json(JAVA.as_bytes()).unwrap();
    assert_eq!(schema.fields[1].description.as_deref(), Some("the key"));
    assert!(matches!(schema.fields[2].data_type(), DataType::Array(_)));
    assert_eq!(schema.trimmed_primary_key().unwrap(), [1]);
    assert_eq!(schema.partition_indices().unwrap(), [0]);
    assert_eq!(schema.bucket_key_indices(&options(&schema)).unwrap(), [1]);
    assert_eq!(schema.bucket_mode(&options(&schema)), BucketMode::Fixed(2));
    assert!(!schema.cross_partition_update());
    assert_eq!(TableSchema::from_json(schema.to_json().as_bytes()).unwrap(), schema);
}

#[test]
fn old_versions_imply_options_unless_they_are_given() {
    let implied = |version: &str, rest: &str| {
        let text = JAVA.replace("\"version\" : 3,", version).replace("\"bucket\" : \"2\",", rest);
        TableSchema::from_json(text.replace("\"file.format\" : \"parquet\"", "\"a\" : \"b\"").as_bytes()).unwrap()
    };
    let of = |schema: &TableSchema, key: &str| schema.options.get(key).cloned();
    let first = implied("", "");
    assert_eq!(
        (first.version, of(&first, "bucket"), of(&first, "file.format")),
        (1, Some("1".into()), Some("orc".into()))
    );
    let second = implied("\"version\" : 2,", "");
    assert_eq!((of(&second, "bucket"), of(&second, "file.format")), (None, Some("orc".into())));
    let third = implied("\"version\" : 3,", "");
    assert_eq!((of(&third, "bucket"), of(&third, "file.format")), (None, None));
    let given = implied("\"version\" : 1,", "\"bucket\" : \"7\",");
    assert_eq!(of(&given, "bucket"), Some("7".into()));
}

#[test]
fn damage_is_named_by_key() {
    for (from, to, telling) in [
        ("\"version\" : 3", "\"version\" : 4", "newer one is never guessed"),
        ("\"version\" : 3", "\"version\" : \"3\"", "'version'"),
        ("\"id\" : 0,\n  \"fields\"", "\"id\" : -1, \"fields\"", "impossible id -1"),
        ("\"fields\"", "\"columns\"", "lacks 'fields'"),
        ("\"id\" : 2,", "", "lacks 'id'"),
        ("\"id\" : 2,", "\"id\" : 1,", "both have the id 1"),
        ("\"name\" : \"tags\"", "\"name\" : \"k\"", "two fields have the name 'k'"),
        ("\"INT NOT NULL\"", "\"INTERVAL\"", "column: k"),
        ("[ \"dt\" ]", "\"dt\"", "'partitionKeys'"),
        ("[ \"dt\" ]", "[ \"day\" ]", "names 'day', which is no column"),
        ("[ \"dt\", \"k\" ]", "[ \"k\", \"k\" ]", "twice"),
        ("[ \"dt\", \"k\" ]", "[ \"dt\" ]", "partition columns only"),
        ("\"highestFieldId\"", "\"x\"", "highestFieldId"),
        ("\"options\"", "\"x\"", "lacks 'options'"),
        ("\"bucket\" : \"2\"", "\"bucket\" : {}", "options.bucket"),
    ] {
        let error = edited(from, to).unwrap_err().to_string();
        assert!(error.contains(telling), "{to}: {error}");
    }
    assert!(edited("\"comment\" : \"\"", "\"comment\" : null").unwrap().comment.is_none());
    assert_eq!(edited(",\n  \"timeMillis\" : 1795953846289", "").unwrap().time_millis, 0);
    assert!(edited("\"comment\"", "\"surprise\" : [1], \"comment\"").is_ok());
}

#[test]
fn bucket_modes_follow_keys_and_option() {
    let mut schema = TableSchema::from_json(JAVA.as_bytes()).unwrap();
    let mut mode = |primary_keys: &[&str], bucket: &str| {
        schema.primary_keys = primary_keys.iter().map(ToString::to_string).collect();
        schema.options = BTreeMap::from([("bucket".to_string(), bucket.to_string())]);
        schema.bucket_mode(&options(&schema))
    };
    assert_eq!(mode(&["dt", "k"], "-1"), BucketMode::HashDynamic);
    assert_eq!(mode(&["k"], "-1"), BucketMode::KeyDynamic);
    assert_eq!(mode(&["k"], "-2"), BucketMode::Postpone);
    assert_eq!(mode(&["k"], "3"), BucketMode::Fixed(3));
    assert_eq!(mode(&[], "-1"), BucketMode::Unaware);
    assert_eq!(mode(&[], "3"), BucketMode::Fixed(3));
}

#[test]
fn bucket_key_is_split_but_not_trimmed() {
    let mut schema = TableSchema::from_json(JAVA.as_bytes()).unwrap();
    schema.options.insert("bucket-key".into(), "k,dt".into());
    assert_eq!(schema.bucket_key_indices(&options(&schema)).unwrap(), [1, 0]);
    schema.options.insert("bucket-key".into(), "k, dt".into());
    let error = schema.bucket_key_indices(&options(&schema)).unwrap_err().to_string();
    assert!(error.contains("' dt'") && error.contains("columns are: dt, k, tags"), "{error}");
}

proptest! {
    #![proptest_config(crate::spec::hostile::cases(256))]

    #[test]
    fn mutated_schemas_never_panic(at in any::<prop::sample::Index>(), with in any::<Vec<u8>>(), cut in 0_usize..40) {
        let mut bytes = JAVA.as_bytes().to_vec();
        let start = at.index(bytes.len());
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, with);
        if let Ok(schema) = TableSchema::from_json(&bytes) {
            prop_assert_eq!(&TableSchema::from_json(schema.to_json().as_bytes()).unwrap(), &schema);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        let _ = TableSchema::from_json(&bytes);
    }
}
