//! Options beside a reference: honoured, an error, or without any effect, which is then said.

use super::*;
use crate::spec::CommitKind;
use crate::spec::options::changing::CHANGING;
use crate::sql::settings::is_honoured;

/// Tables on whose rows an option would show that nobody may change: level 0 under deletion vectors, rows that delete,
/// records that are removed, files on a level that is the top one only if it is said to be.
fn telling(dir: &TempDir) {
    let key = |name: &str, options: &[(&str, &str)]| {
        let spec = TableSpec::new(&[("k", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["k"]).option("bucket", "1");
        let spec = options.iter().fold(spec, |spec, (key, value)| spec.option(key, value));
        TableBuilder::create(dir.path(), "pay", name, &spec).unwrap()
    };
    let row = |k: i64, v: i64| json!({"k": k, "v": v});
    let gone = |k: i64| json!({"k": k, "v": 0, "_ROW_KIND": "-D"});

    let mut dv = key("dv", &[("deletion-vectors.enabled", "true")]);
    dv.commit().file(FileSpec::rows(&[row(1, 1), row(2, 2)]).level(5)).kind(CommitKind::Compact).publish().unwrap();
    dv.append(&[row(3, 3)]).unwrap();
    let mut kinds = key("kinds", &[]);
    kinds.commit().file(FileSpec::rows(&[row(1, 1), row(2, 2)]).level(2)).kind(CommitKind::Compact).publish().unwrap();
    kinds.append(&[gone(1)]).unwrap();
    let mut parts =
        key("parts", &[("merge-engine", "partial-update"), ("partial-update.remove-record-on-delete", "true")]);
    parts.append(&[row(1, 1), row(2, 2)]).unwrap();
    parts.append(&[gone(1)]).unwrap();
    let mut sums = key(
        "sums",
        &[
            ("merge-engine", "aggregation"),
            ("fields.v.aggregate-function", "sum"),
            ("aggregation.remove-record-on-delete", "true"),
        ],
    );
    sums.append(&[row(1, 1), row(2, 2)]).unwrap();
    sums.append(&[row(1, 1), gone(2)]).unwrap();
    let mut first = key("first", &[("merge-engine", "first-row"), ("ignore-delete", "true")]);
    first.commit().file(FileSpec::rows(&[row(1, 1)]).level(5)).kind(CommitKind::Compact).publish().unwrap();
    first.append(&[row(2, 2)]).unwrap();
}

#[tokio::test]
async fn every_option_that_changes_rows_is_honoured_refused_or_without_effect() {
    let dir = tempfile::tempdir().unwrap();
    telling(&dir);
    let session = session_of(&dir).await;
    let (mut refused, mut idle) = (0, 0);
    for reference in ["dv", "kinds", "kinds$ro", "kinds$audit_log", "parts", "sums", "first"] {
        let right = rows(&session, &format!("SELECT * FROM {reference}")).await;
        for (key, value) in CHANGING {
            let other = match *value {
                "true" => Some("false"),
                "false" => Some("true"),
                _ => None,
            };
            for value in std::iter::once(*value).chain(other).filter(|_| !is_honoured(key)) {
                let sql = format!("SELECT * FROM {reference} /*+ OPTIONS('{key}'='{value}') */");
                let Ok(result) = session.run_one(&sql).await else {
                    refused += 1;
                    continue;
                };
                let notices = result.notices.join("; ");
                let (mut found, _) = all(result).await;
                found.sort();
                let found: Vec<String> = found.into_iter().map(|row| row.join(",")).collect();
                assert_eq!(found, right, "{sql}");
                assert!(notices.contains(&format!("option {key} has no effect")), "{sql}: {notices}");
                idle += 1;
            }
        }
    }
    assert!(refused > 100 && idle > 10, "{refused} refused, {idle} without effect");
    // the hidden levels, row kinds and removed records that these options would have shown
    assert_eq!(rows(&session, "SELECT k FROM dv").await, ["1", "2"]);
    assert_eq!(rows(&session, "SELECT k FROM kinds").await, ["2"]);
    assert!(rows(&session, "SELECT k FROM kinds$ro").await.is_empty());
    assert_eq!(rows(&session, "SELECT k FROM parts").await, ["2"]);
    assert_eq!(rows(&session, "SELECT k, v FROM sums").await, ["1,2"]);
}

#[tokio::test]
async fn no_option_lifts_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let session_dir = &dir;
    for (key, refused, fine) in [
        ("query-auth.enabled", "true", "false"),
        ("chain-table.enabled", "true", "false"),
        ("postpone.merge-on-read", "true", "false"),
        ("batch-scan-mode", "compact", "none"),
        ("stream-scan-mode", "compact-bucket-table", "none"),
        ("key-value.sequence_number.enabled", "true", "false"),
        ("type", "format-table", "table"),
        ("pk-clustering-override", "true", "false"),
        ("pk-clustering-override", "true", "deletion-vectors"),
        ("scan.fallback-snapshot-branch", "b", "main"),
        ("scan.fallback-delta-branch", "b", "main"),
        ("incremental-to-auto-tag", "t", ""),
    ] {
        let name = format!("t_{}_{fine}", key.replace(['.', '-'], "_")).replace('-', "_");
        let spec = TableSpec::new(&[("k", "BIGINT NOT NULL"), ("v", "INT")])
            .primary_key(&["k"])
            .option("bucket", "1")
            .option(key, refused);
        let mut table = TableBuilder::create(session_dir.path(), "pay", &name, &spec).unwrap();
        table.append(&[json!({"k": 1, "v": 1})]).unwrap();
        let session = session_of(&dir).await;
        assert_eq!(code(&session, &format!("SELECT * FROM {name}")).await, "UnsupportedOption", "{name}");
        let hint = match fine {
            "deletion-vectors" => "'deletion-vectors.enabled'='true'".to_string(),
            fine => format!("'{key}'='{fine}'"),
        };
        for way in [
            format!("SELECT * FROM {name} /*+ OPTIONS({hint}) */"),
            format!("SELECT * FROM {name} WITH ({})", hint.replace("'='", "' = '")),
        ] {
            assert!(ask(&session, &way).await.is_err(), "{way}");
        }
        // a pin says itself where the read starts
        if key == "incremental-to-auto-tag" {
            continue;
        }
        let pin = format!("PIN TABLE {name} /*+ OPTIONS({hint}) */");
        if session.run_one(&pin).await.is_ok() {
            assert!(ask(&session, &format!("SELECT * FROM {name}")).await.is_err(), "{pin}");
        }
    }
}

#[tokio::test]
async fn old_names_of_scan_options_are_honoured() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let sql = "SELECT * FROM t /*+ OPTIONS('log.scan.timestamp-millis'='1776301200000') */";
    assert_eq!(rows(&session, sql).await, ["1,10", "2,20"]);
    let both = "SELECT * FROM t VERSION AS OF 3 /*+ OPTIONS('log.scan.timestamp-millis'='1776301200000') */";
    assert_eq!(code(&session, both).await, "ConflictingSelectors");
    let mode = "SELECT * FROM t /*+ OPTIONS('log.scan'='latest-delta') */";
    assert_eq!(code(&session, mode).await, "UnsupportedOption");
}
