//! Partitions and files as system tables tell them: two of one text are two, what reads do not see is not among the files,
//! and the branch that completes a table is told with it.

use super::*;
use crate::spec::binary_row::RowForm;
use crate::spec::{BinaryRow, DataType, Datum, ManifestEntry};

#[tokio::test]
async fn partitions_of_one_text_are_not_one() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "INT"), ("p", "STRING")]).partitioned_by(&["p"]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let values = [json!(null), json!("__DEFAULT_PARTITION__"), json!(""), json!("null"), json!("x")];
    let all: Vec<_> = values.iter().enumerate().map(|(k, p)| json!({"k": k, "p": p})).collect();
    table.append(&all).unwrap();
    table.append(&[json!({"k": 9, "p": null})]).unwrap();
    let session = session_of(&dir).await;
    let default = "p=__DEFAULT_PARTITION__";
    let expected = ["p=,1,1".to_string(), format!("{default},1,1"), format!("{default},2,2")];
    let listed = rows(&session, "SELECT partition, record_count, file_count FROM t$partitions").await;
    assert_eq!((listed.len(), &listed[..3]), (5, &expected[..]), "{listed:?}");
    assert_eq!(rows(&session, "SHOW PARTITIONS t").await.len(), 5);
    assert_eq!(rows(&session, "SELECT count(*) FROM sys.partitions WHERE table_name = 't'").await, ["5"]);
    let buckets = rows(&session, "SELECT partition, bucket, record_count FROM t$buckets").await;
    assert_eq!(buckets, ["{__DEFAULT_PARTITION__},0,1", "{null},0,1", "{null},0,2", "{x},0,1", "{},0,1"]);
    for level in ["partition", "unit"] {
        let sql = format!("SELECT partition, final_rows FROM paimon_row_accounting('t', level => '{level}')");
        let counted = rows(&session, &sql).await;
        assert_eq!(
            (counted.len(), &counted[1..3]),
            (5, &[format!("{default},1"), format!("{default},2")][..]),
            "{level}"
        );
    }
    let (_, counts) = session.counts("t", Some("k > 0")).await.unwrap();
    let found: Vec<_> = counts.partitions.iter().map(|row| (row.partition.as_str(), row.matching)).collect();
    let two = [(default, Some(1)), (default, Some(1))];
    assert_eq!((found.len(), &found[1..3]), (5, &two[..]), "{found:?}");
    assert_eq!((found[0], counts.total.matching), (("p=", Some(1)), Some(5)));
}

#[tokio::test]
async fn files_are_those_that_a_read_sees() {
    let dir = tempfile::tempdir().unwrap();
    let keyed = |name: &str, options: &[(&str, &str)]| {
        let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")]).primary_key(&["k"]);
        let spec = options.iter().fold(spec, |spec, (key, value)| spec.option(key, value));
        TableBuilder::create(dir.path(), "pay", name, &spec).unwrap()
    };
    let row = |k: i64| json!({"k": k, "v": k});
    let hiding = [
        ("dv", &[("bucket", "1"), ("deletion-vectors.enabled", "true")][..]),
        ("first", &[("bucket", "1"), ("merge-engine", "first-row")][..]),
    ];
    for (name, options) in hiding {
        let mut table = keyed(name, options);
        let top = FileSpec::rows(&[row(1), row(2)]).level(5);
        table.commit().file(top).kind(CommitKind::Compact).publish().unwrap();
        table.append(&[row(3)]).unwrap();
        let session = session_of(&dir).await;
        for system in ["files", "file_key_ranges"] {
            let sql = format!("SELECT level, record_count FROM {name}${system}");
            let result = session.run_one(&sql).await.unwrap();
            let notices = result.notices.clone();
            assert_eq!(all(result).await.0, [["5", "2"]], "{sql}");
            assert!(notices.iter().any(|n| n.contains("1 file, 1 row not read")), "{sql}: {notices:?}");
        }
        let sums = format!("SELECT record_count, file_count FROM {name}$buckets");
        assert_eq!(rows(&session, &sums).await, ["3,2"], "{name}");
    }
    // a read of what was merged by hand sees level 0
    keyed("plain", &[("bucket", "1")]).append(&[row(1)]).unwrap();
    let mut postponed = keyed("postponed", &[("bucket", "-2")]);
    postponed.commit().file(FileSpec::rows(&[row(1)]).bucket(-2)).publish().unwrap();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT level FROM plain$files").await, ["0"]);
    assert!(rows(&session, "SELECT * FROM postponed$files").await.is_empty());
    assert_eq!(rows(&session, "SELECT file_count FROM postponed$buckets").await, ["1"]);
}

#[tokio::test]
async fn the_branch_that_fills_partitions_is_told_with_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("p", "STRING NOT NULL"), ("k", "INT NOT NULL")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "k"])
        .option("bucket", "1");
    let filled = spec.clone().option("scan.fallback-branch", "b");
    let mut main = TableBuilder::create(dir.path(), "pay", "t", &filled).unwrap();
    main.append(&[json!({"p": "both", "k": 1})]).unwrap();
    let mut other = TableBuilder::create(dir.path(), "pay", "other", &spec).unwrap();
    other.append(&[json!({"p": "both", "k": 2}), json!({"p": "b", "k": 3}), json!({"p": "b", "k": 4})]).unwrap();
    make_branch(&main, &other, "b");
    let session = session_of(&dir).await;
    let read = rows(&session, "SELECT 'p=' || p, count(*) FROM t GROUP BY p").await;
    assert_eq!(read, ["p=b,2", "p=both,1"]);
    assert_eq!(rows(&session, "SELECT partition, record_count FROM t$partitions").await, read);
    let shown = rows(&session, "SHOW PARTITIONS t").await;
    assert!(shown.len() == 2 && shown[0].starts_with("p=b,2,"), "{shown:?}");
    assert_eq!(rows(&session, "SELECT partition, record_count FROM t$files").await, ["{both},1", "{b},2"]);
    assert_eq!(rows(&session, "SELECT partition, record_count FROM t$buckets").await, ["{both},1", "{b},2"]);
    // the other way round the branch comes first
    let mut first = TableBuilder::create(dir.path(), "pay", "f", &spec.option("scan.primary-branch", "b")).unwrap();
    first.append(&[json!({"p": "both", "k": 1}), json!({"p": "main", "k": 1})]).unwrap();
    make_branch(&first, &other, "b");
    let session = session_of(&dir).await;
    let listed = rows(&session, "SELECT partition, record_count FROM f$partitions").await;
    assert_eq!(listed, ["p=b,2", "p=both,1", "p=main,1"]);
    assert_eq!(rows(&session, "SELECT k FROM f WHERE p = 'both'").await, ["2"]);
    let path = rows(&session, "SELECT file_path FROM f$files WHERE partition = '{both}'").await;
    let of_branch = rows(&session, "SELECT file_path FROM f$branch_b$files WHERE partition = '{both}'").await;
    assert_eq!(path, of_branch);
}

/// A table with a partition of the year 1, which nanoseconds do not hold, and one of NULL.
fn far_partition() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "INT"), ("p", "TIMESTAMP(9)")]).partitioned_by(&["p"]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"k": 1, "p": "2020-01-01T00:00:00"})]).unwrap();
    let entry = table.live_files().unwrap().remove(0);
    let name = entry.file.file_name.clone();
    let folder = std::fs::read_dir(table.root()).unwrap().flatten().map(|folder| folder.path().join("bucket-0"));
    let path = folder.map(|folder| folder.join(&name)).find(|path| path.exists()).unwrap();
    let year_1 = Datum::Timestamp(-62_135_596_800_000, 0);
    let mut far = ManifestEntry {
        partition: BinaryRow::encode(&[(&year_1, &DataType::Timestamp(9))], RowForm::Projected).unwrap(),
        ..entry
    };
    far.file.external_path = Some(path.to_string_lossy().into_owned());
    let null = FileSpec::rows(&[json!({"k": 2, "p": null})]);
    table.commit().remove(&name).entry(far).file(null).publish().unwrap();
    dir
}

#[tokio::test]
async fn a_time_that_no_type_holds_is_in_nobodys_way() {
    let dir = far_partition();
    let session = session_of(&dir).await;
    for merge_source in [true, false] {
        rows(&session, &format!("SET lakepin.merge_source = {merge_source}")).await;
        for (sql, right) in [
            ("SELECT k FROM t", vec!["1", "2"]),
            ("SELECT k FROM t WHERE p IS NULL", vec!["2"]),
            ("SELECT k FROM t WHERE p IS NOT NULL AND k < 9", vec!["1"]),
            ("SELECT count(*) FROM t", vec!["2"]),
        ] {
            assert_eq!(rows(&session, sql).await, right, "{sql}");
        }
        for sql in [
            "SELECT p FROM t",
            "SELECT k, p FROM t",
            "SELECT k FROM t WHERE p < TIMESTAMP '2021-01-01 00:00:00'",
            // every time of the type is after the year 1000 and before the year 9999; that of the year 1 is not
            "SELECT k FROM t WHERE p >= TIMESTAMP '1000-01-01 00:00:00'",
            "SELECT k FROM t WHERE NOT p > TIMESTAMP '1000-01-01 00:00:00'",
            "SELECT k FROM t WHERE p BETWEEN '1000-01-01' AND '9999-12-31'",
            "SELECT k FROM t WHERE p = TIMESTAMP '0001-01-01 00:00:00'",
            "SELECT k FROM t WHERE p IN (TIMESTAMP '0001-01-01 00:00:00')",
            "SELECT k FROM t WHERE p IS NOT DISTINCT FROM TIMESTAMP '0001-01-01 00:00:00'",
            "SELECT count(*) FROM t WHERE p > TIMESTAMP '1000-01-01 00:00:00'",
        ] {
            let error = ask(&session, sql).await.unwrap_err();
            assert_eq!(error.code(), "OutOfRange", "{sql}: {error}");
            assert!(error.to_string().contains("p=0001-01-01"), "{sql}: {error}");
        }
    }
}

#[tokio::test]
async fn the_partition_of_null_has_the_name_that_the_option_gives() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("p", "STRING"), ("v", "INT")])
        .partitioned_by(&["p"])
        .option("bucket", "-1")
        .option("partition.default-name", "nil");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1, "p": null, "v": 1}), json!({"id": 2, "p": "a", "v": 2})]).unwrap();
    table.append(&[json!({"id": 3, "p": null, "v": 3})]).unwrap();
    assert!(table.root().join("p=nil").is_dir());
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT id FROM t WHERE p IS NULL").await, ["1", "3"]);
    assert_eq!(rows(&session, "SHOW PARTITIONS t").await.len(), 2);
    assert_eq!(rows(&session, "SELECT partition, record_count FROM t$partitions").await, ["p=a,1", "p=nil,2"]);
    let diff = "SELECT op, id FROM paimon_diff('t', 1, 2, partitions => 'p=nil')";
    assert_eq!(rows(&session, diff).await, ["INSERT,3"]);
    let files = rows(&session, "EXPLAIN FILES SELECT * FROM t WHERE p IS NULL").await;
    assert_eq!(files.iter().filter(|file| file.contains(",true,") && file.contains("p=nil")).count(), 2, "{files:?}");
}
