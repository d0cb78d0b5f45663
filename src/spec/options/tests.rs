use std::collections::BTreeMap;

use super::changing::CHANGING;
use super::{BucketFunction, ChangelogProducer, CoreOptions, MergeEngine};
use crate::error::{ErrorKind, Result};
use crate::spec::data_type::{DataField, FieldType};
use crate::spec::schema::{SchemaId, TableSchema};

fn map(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn parse(options: &[(&str, &str)]) -> Result<CoreOptions> {
    CoreOptions::parse(&map(options))
}

fn schema(options: &[(&str, &str)]) -> TableSchema {
    let field = |id, name: &str, text: &str| DataField {
        id,
        name: name.to_string(),
        field_type: FieldType::parse(text).unwrap(),
        description: None,
        default_value: None,
        sums: false,
    };
    TableSchema {
        version: 3,
        id: SchemaId(0),
        fields: vec![
            field(0, "k", "INT NOT NULL"),
            field(1, "v", "BYTES"),
            field(2, "b", "BLOB"),
            field(3, "m", "MAP<STRING, INT>"),
            field(4, "e", "VECTOR<FLOAT, 2>"),
        ],
        highest_field_id: 4,
        partition_keys: vec![],
        primary_keys: vec!["k".into()],
        options: map(options),
        comment: None,
        time_millis: 0,
    }
}

fn refused_columns(options: &[(&str, &str)]) -> Vec<String> {
    let schema = schema(options);
    let parsed = CoreOptions::parse(&schema.options).unwrap();
    parsed.check_readable(&schema).unwrap();
    let refused = schema.fields.iter().filter(|field| parsed.check_column(field).is_err());
    refused.map(|field| field.name.clone()).collect()
}

#[test]
fn defaults_are_those_of_the_format() {
    let options = parse(&[]).unwrap();
    assert_eq!(options.bucket, -1);
    assert_eq!(options.bucket_function, BucketFunction::Default);
    assert_eq!(options.merge_engine, MergeEngine::Deduplicate);
    assert_eq!(options.changelog_producer, ChangelogProducer::None);
    assert_eq!(options.partition_default_name, "__DEFAULT_PARTITION__");
    assert!(options.partition_legacy_name && options.file_index_read_enabled);
    assert_eq!(options.max_level, 5);
}

#[test]
fn enums_and_booleans_are_free_in_case() {
    let options = parse(&[
        ("merge-engine", "Partial-Update"),
        ("changelog-producer", "LOOKUP"),
        ("deletion-vectors.enabled", "TRUE"),
        ("sequence.field", "a, b"),
        ("sequence.field.sort-order", "Descending"),
        ("bucket-function.type", "MOD"),
        ("scan.mode", "Latest-Full"),
        ("num-levels", "4"),
        ("bucket-key", "a, b"),
    ])
    .unwrap();
    assert_eq!(options.merge_engine, MergeEngine::PartialUpdate);
    assert_eq!(options.sequence_fields, ["a", "b"]);
    assert!(options.sequence_descending && options.deletion_vectors_enabled);
    assert_eq!(options.bucket_function, BucketFunction::Mod);
    assert_eq!(options.scan.mode.as_deref(), Some("latest-full"));
    assert_eq!(options.max_level, 3);
    assert_eq!(options.bucket_key.unwrap(), ["a", " b"]);
}

#[test]
fn top_level_follows_the_compaction_trigger_when_levels_are_not_given() {
    assert_eq!(parse(&[("num-sorted-run.compaction-trigger", "2")]).unwrap().max_level, 2);
    assert_eq!(parse(&[("num-sorted-run.compaction-trigger", "2"), ("num-levels", "6")]).unwrap().max_level, 5);
}

#[test]
fn old_names_of_ignore_delete_count_unless_the_new_one_is_set() {
    for name in
        ["ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete", "first-row.ignore-delete"]
    {
        assert!(parse(&[(name, "true")]).unwrap().ignore_delete, "{name}");
    }
    assert!(!parse(&[("ignore-delete", "false"), ("deduplicate.ignore-delete", "true")]).unwrap().ignore_delete);
}

#[test]
fn unusable_values_name_option_value_and_what_is_accepted() {
    for (option, value, kind, telling) in [
        (
            "merge-engine",
            "partial_update",
            ErrorKind::Unsupported,
            "deduplicate, partial-update, aggregation, first-row",
        ),
        ("changelog-producer", "full_compaction", ErrorKind::Unsupported, "full-compaction"),
        ("sequence.field.sort-order", "up", ErrorKind::Unsupported, "ascending, descending"),
        ("deletion-vectors.enabled", "yes", ErrorKind::Invalid, "true and false"),
        ("bucket", "0", ErrorKind::Invalid, "counts from 1"),
        ("bucket", "many", ErrorKind::Invalid, "whole number"),
        ("scan.snapshot-id", "1.5", ErrorKind::Invalid, "whole number"),
        ("scan.mode", "from_snapshot", ErrorKind::Unsupported, "from-snapshot"),
    ] {
        let error = parse(&[(option, value)]).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(option) && text.contains(value) && text.contains(telling), "{text}");
    }
}

#[test]
fn a_read_starts_from_one_place() {
    let error = parse(&[("scan.snapshot-id", "1"), ("scan.tag-name", "t")]).unwrap_err().to_string();
    assert!(error.contains("'scan.snapshot-id' and 'scan.tag-name' exclude each other"), "{error}");
    assert_eq!(parse(&[("scan.snapshot-id", " 7 ")]).unwrap().scan.snapshot_id, Some(7));
}

#[test]
fn tables_that_would_be_read_wrongly_are_refused_by_option() {
    for (option, value) in [
        ("type", "format-table"),
        ("type", "iceberg-table"),
        ("chain-table.enabled", "true"),
        ("scan.fallback-snapshot-branch", "a"),
        ("scan.fallback-delta-branch", "a"),
        ("batch-scan-mode", "compact"),
        ("stream-scan-mode", "compact-bucket-table"),
        ("key-value.sequence_number.enabled", "true"),
        ("query-auth.enabled", "true"),
        ("postpone.merge-on-read", "true"),
        ("incremental-to-auto-tag", "t"),
        ("pk-clustering-override", "true"),
    ] {
        let schema = schema(&[(option, value)]);
        let error = CoreOptions::parse(&schema.options).unwrap().check_readable(&schema).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "UnsupportedOption"));
        assert!(error.to_string().contains(&format!("'{option}' = '{value}'")), "{error}");
    }
    for (option, value) in [
        ("type", "TABLE"),
        ("type", "materialized-table"),
        ("batch-scan-mode", "none"),
        ("query-auth.enabled", "False"),
        ("data-evolution.enabled", "true"),
        ("some.new.option", "x"),
    ] {
        let schema = schema(&[(option, value)]);
        assert!(CoreOptions::parse(&schema.options).unwrap().check_readable(&schema).is_ok(), "{option}");
    }
}

#[test]
fn columns_in_a_form_of_their_own_are_refused_alone() {
    assert_eq!(refused_columns(&[]), Vec::<String>::new());
    assert_eq!(refused_columns(&[("blob-field", "b")]), ["b"]);
    assert_eq!(refused_columns(&[("data-evolution.enabled", "true")]), ["b"]);
    assert_eq!(refused_columns(&[("vector-field", "x, e")]), ["e"]);
    assert_eq!(refused_columns(&[("vector.file.format", "lance")]), ["e"]);
    assert_eq!(refused_columns(&[("fields.m.map.storage-layout", "shared-shredding")]), ["m"]);
    assert_eq!(refused_columns(&[("fields.m.map.storage-layout", "Default")]), Vec::<String>::new());
}

#[test]
fn what_is_not_honoured_is_said() {
    let schema = schema(&[
        ("fields.v.default-value", "x"),
        ("fields.gone.default-value", "x"),
        ("scan.ignore-lost-files", "true"),
    ]);
    let options = CoreOptions::parse(&schema.options).unwrap();
    let notices = options.notices(&schema);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].contains("fields.v.default-value"));
    assert!(notices[1].contains("scan.ignore-lost-files"));
}

#[test]
fn every_option_that_changes_rows_is_read_refused_or_told() {
    let read = |options: &[(&str, &str)]| CoreOptions { raw: BTreeMap::new(), ..parse(options).unwrap() };
    for (option, value) in CHANGING {
        let given = [(*option, *value)];
        let schema = schema(&given);
        let options = CoreOptions::parse(&schema.options).unwrap();
        let refused = options.check_readable(&schema).is_err()
            || schema.fields.iter().any(|field| options.check_column(field).is_err());
        let told = !options.notices(&schema).is_empty();
        assert!(refused || told || read(&given) != read(&[]), "'{option}' = '{value}' changes nothing");
    }
}
