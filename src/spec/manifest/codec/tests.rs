use super::*;

fn some_stats() -> SimpleStats {
    SimpleStats {
        min_values: BinaryRow(Bytes::from_static(b"\0\0\0\x01\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0")),
        max_values: BinaryRow(Bytes::from_static(b"\0\0\0\x01\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0")),
        null_counts: vec![Some(0), None],
    }
}

fn entries() -> Vec<ManifestEntry> {
    let old = DataFileMeta {
        file_name: "data-1.parquet".to_string(),
        file_size: 1234,
        row_count: 10,
        min_key: BinaryRow::empty(),
        max_key: BinaryRow::empty(),
        key_stats: SimpleStats { min_values: BinaryRow::empty(), max_values: BinaryRow::empty(), null_counts: vec![] },
        value_stats: some_stats(),
        min_sequence_number: 0,
        max_sequence_number: 9,
        schema_id: SchemaId(0),
        level: 5,
        extra_files: vec![],
        creation_time_millis: None,
        delete_row_count: None,
        embedded_index: None,
        file_source: None,
        value_stats_cols: None,
        external_path: None,
        first_row_id: None,
        write_cols: None,
        write_cols_sequences: None,
    };
    let new = DataFileMeta {
        extra_files: vec!["data-1.parquet.index".to_string()],
        creation_time_millis: Some(1_700_000_000_123),
        delete_row_count: Some(3),
        embedded_index: Some(Bytes::from_static(b"index")),
        file_source: Some(FileSource::Compact),
        value_stats_cols: Some(vec![]),
        external_path: Some("s3://b/ü".to_string()),
        first_row_id: Some(100),
        write_cols: Some(vec!["a".to_string(), "b".to_string()]),
        write_cols_sequences: Some(vec![1, -2]),
        ..old.clone()
    };
    let entry = |kind, file| ManifestEntry {
        kind,
        partition: BinaryRow(Bytes::from_static(b"\0\0\0\x01\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0")),
        bucket: Bucket(-2),
        total_buckets: -2,
        file,
    };
    vec![entry(FileKind::Add, old), entry(FileKind::Delete, new)]
}

#[test]
fn entries_of_old_and_new_writers_come_back() {
    let bytes = encode_manifest(&entries()).unwrap();
    assert_eq!(decode_manifest(&bytes, "manifest-1").unwrap(), entries());
}

#[test]
fn many_blocks_come_back_and_decode_to_shared_partitions() {
    let many: Vec<_> = entries().into_iter().cycle().take(3000).collect();
    let bytes = encode_manifest(&many).unwrap();
    let decoded = decode_manifest(&bytes, "manifest-1").unwrap();
    assert_eq!(decoded[0].partition.0.as_ptr(), decoded[2999].partition.0.as_ptr());
    assert_eq!(decoded, many);
}

#[test]
fn manifest_list_comes_back_and_its_unknown_bounds_stay_unknown() {
    let old = ManifestFileMeta {
        file_name: "manifest-1".to_string(),
        file_size: 7,
        num_added_files: 2,
        num_deleted_files: 1,
        partition_stats: some_stats(),
        schema_id: SchemaId(3),
        min_bucket: None,
        max_bucket: None,
        min_level: None,
        max_level: None,
        min_row_id: None,
        max_row_id: None,
        total_buckets: None,
    };
    let new = ManifestFileMeta {
        min_bucket: Some(-2),
        max_bucket: Some(9),
        min_level: Some(0),
        max_level: Some(5),
        min_row_id: Some(0),
        max_row_id: Some(i64::MAX),
        total_buckets: Some(12),
        ..old.clone()
    };
    let bytes = encode_manifest_list(&[old.clone(), new.clone()]).unwrap();
    assert_eq!(decode_manifest_list(&bytes, "manifest-list-1").unwrap(), [old, new]);
}

#[test]
fn a_list_cut_between_two_blocks_may_go_on_and_a_whole_one_does_not() {
    let metas: Vec<ManifestFileMeta> = (0..2000i64)
        .map(|number| ManifestFileMeta {
            file_name: format!("manifest-0d5c1c9a-5be7-4b6c-a5ab-8f7d4ee0a1f3-{number}"),
            file_size: 7,
            num_added_files: number,
            num_deleted_files: 1,
            partition_stats: some_stats(),
            schema_id: SchemaId(3),
            min_bucket: None,
            max_bucket: None,
            min_level: None,
            max_level: None,
            min_row_id: None,
            max_row_id: None,
            total_buckets: None,
        })
        .collect();
    let open = |bytes: &[u8]| decode_whole_list(bytes, "list").unwrap().may_be_cut;
    let whole = encode_manifest_list(&metas).unwrap();
    // the mark stands behind the header and behind every block
    let mark = &whole[whole.len() - 16..];
    let ends: Vec<usize> = (16..=whole.len()).filter(|end| &whole[end - 16..*end] == mark).collect();
    assert!(ends.len() > 4, "{} blocks", ends.len() - 1);
    for end in &ends {
        let list = decode_whole_list(&whole[..*end], "list").unwrap();
        assert_eq!(list.may_be_cut, *end != whole.len(), "cut after {} of {} bytes", end, whole.len());
        assert_eq!(list.manifests, metas[..list.manifests.len()]);
    }
    for few in [1, 2, 30, 200] {
        assert!(!open(&encode_manifest_list(&metas[..few]).unwrap()), "{few}");
    }
    assert!(open(&encode_manifest_list(&[]).unwrap()));
}

/// A manifest list of one row whose `_VERSION` is another.
fn list_of_version(version: i64) -> Vec<u8> {
    let values = move |meta| {
        let mut values = manifest_file_values(meta);
        values[0] = Value::Long(version);
        values
    };
    let bytes = encode_manifest_list(&[]).unwrap();
    assert_eq!(decode_manifest_list(&bytes, "empty").unwrap(), []);
    let meta = ManifestFileMeta {
        file_name: "m".to_string(),
        file_size: 0,
        num_added_files: 0,
        num_deleted_files: 0,
        partition_stats: SimpleStats::default(),
        schema_id: SchemaId(0),
        min_bucket: None,
        max_bucket: None,
        min_level: None,
        max_level: None,
        min_row_id: None,
        max_row_id: None,
        total_buckets: None,
    };
    meta_file::encode(&MANIFEST_LIST, &[meta], values).unwrap()
}

#[test]
fn ancient_manifest_is_refused_with_the_way_out() {
    let error = decode_manifest_list(&list_of_version(1), "manifest-list-7").unwrap_err();
    assert_eq!(error.code(), "ManifestVersion");
    assert!(error.to_string().contains("file: manifest-list-7"));
    assert!(error.hint().unwrap().contains("recreate the table"));
    let error = decode_manifest_list(&list_of_version(3), "manifest-list-7").unwrap_err();
    assert_eq!(error.code(), "ManifestVersion");
    assert!(error.hint().unwrap().contains("newer release"), "{error}");
}

#[test]
fn what_is_no_metadata_file_is_refused_by_name() {
    for bytes in [&b""[..], b"{}", b"Obj\x01", b"PAR1PAR1", b"ORC"] {
        let error = decode_manifest(bytes, "manifest-9").unwrap_err();
        assert!(error.to_string().contains("manifest-9"), "{error}");
    }
}
