//! Answers from metadata are told as such: no file, a notice, and the pin they were computed on.

use super::*;
use crate::sql::Scanned;

/// `pay.log(p, v)`: two partitions in two files each.
fn partitioned() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("p", "STRING"), ("v", "INT")]).partitioned_by(&["p"]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    for v in 0..2 {
        table.append(&[json!({"p": "a", "v": v}), json!({"p": "b", "v": v}), json!({"p": "b", "v": 9})]).unwrap();
    }
    dir
}

fn is_told(result: &StatementResult) -> bool {
    result.notices.iter().any(|notice| notice.starts_with("answered from metadata"))
}

#[tokio::test]
async fn a_scan_of_partition_columns_reads_no_file_and_says_so() {
    let dir = partitioned();
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT p, count(*) FROM log GROUP BY p", vec!["a,2", "b,4"]),
        ("SELECT DISTINCT p FROM log", vec!["a", "b"]),
        ("SELECT count(*) FROM log WHERE p = 'b'", vec!["4"]),
        ("SELECT min(p), max(p) FROM log", vec!["a,b"]),
    ] {
        let result = session.run_one(sql).await.unwrap();
        assert!(is_told(&result), "{sql}: {:?}", result.notices);
        let scanned = result.scanned.unwrap();
        let read = Scanned { live_files: scanned.live_files, ..Scanned::default() };
        assert_eq!((scanned, scanned.live_files), (read, 4), "{sql}");
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
    let result = session.run_one("SELECT p, sum(v) FROM log GROUP BY p").await.unwrap();
    assert_eq!((is_told(&result), result.scanned.unwrap().files), (false, 4));
}

/// Where keys meet, files are read to count them; where none do, their entries tell.
#[tokio::test]
async fn an_answer_in_part_from_metadata_says_so_and_which_files_it_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("p", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let old = |p| FileSpec::rows(&[json!({"p": p, "id": 1, "v": 1})]).level(5);
    table.commit().kind(CommitKind::Compact).file(old("a")).file(old("b")).publish().unwrap();
    table.append(&[json!({"p": "b", "id": 1, "v": 2}), json!({"p": "b", "id": 2, "v": 2})]).unwrap();
    let session = session_of(&dir).await;
    rows(&session, "SET lakepin.selection_cache = false").await;
    let result = session.run_one("SELECT count(*) FROM t").await.unwrap();
    let notice = "answered in part from metadata, 1 of 3 data files were not opened";
    assert!(result.notices.iter().any(|told| told.starts_with(notice)), "{:?}", result.notices);
    assert_eq!(result.scanned.unwrap().files, 2);
    let plan = rows(&session, "EXPLAIN SELECT count(*) FROM t").await.join("\n");
    assert!(plan.contains("files_from_metadata=1"), "{plan}");
    let told = |files: &[String]| files.iter().filter(|file| file.ends_with(",metadata")).count();
    for (sql, expected) in [
        ("SELECT count(*) FROM t", 1),
        ("SELECT count(*) FROM t WHERE p = 'a'", 1),
        ("SELECT sum(v) FROM t", 0),
        ("SELECT count(*) FROM t UNION ALL SELECT sum(v) FROM t", 1),
    ] {
        let files = rows(&session, &format!("EXPLAIN FILES {sql}")).await;
        assert_eq!(told(&files), expected, "{sql}: {files:#?}");
        assert!(
            files.iter().filter(|file| file.ends_with(",metadata")).all(|file| file.contains(",true,metadata tells"))
        );
        let result = session.run_one(sql).await.unwrap();
        assert_eq!(result.notices.iter().any(|told| told.contains("from metadata")), expected > 0, "{sql}");
    }
}

#[tokio::test]
async fn a_limit_on_files_does_not_count_those_that_are_not_opened() {
    let dir = partitioned();
    let session = session_of(&dir).await;
    rows(&session, "SET lakepin.max_files = 1").await;
    assert_eq!(rows(&session, "SELECT p, count(*) FROM log GROUP BY p").await, ["a,2", "b,4"]);
    assert_eq!(code(&session, "SELECT p, sum(v) FROM log GROUP BY p").await, "TooManyFiles");
}

#[tokio::test]
async fn the_plan_of_a_count_keeps_the_pin_and_what_planning_counted() {
    let dir = partitioned();
    let session = session_of(&dir).await;
    let plan = rows(&session, "EXPLAIN SELECT count(*) FROM log VERSION AS OF 1 WHERE p = 'b'").await.join("\n");
    let kept =
        "MetadataExec: table=pay.log, snapshot=1, schema=0, manifests=1, files=1/2 (dropped by partition 1), rows=2";
    assert!(plan.contains(kept), "{plan}");
    let explained = session.run_one("EXPLAIN SELECT v FROM log WHERE p = 'b'").await.unwrap();
    assert_eq!(explained.scanned, None, "a plan that is shown reads no file");
    let measured = session.run_one("EXPLAIN ANALYZE SELECT v FROM log WHERE p = 'b'").await.unwrap();
    assert_eq!(measured.scanned.map(|scanned| scanned.files), Some(2));
    // the same in a session that is not ours
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    context.register_table("own", context.read_empty().unwrap().into_view()).unwrap();
    warehouse.register(&context, "lake").await.unwrap();
    for frame in [
        context.sql("SELECT count(*) FROM lake.pay.log").await.unwrap(),
        warehouse.sql(&context, "SELECT count(*) FROM lake.pay.log VERSION AS OF 2").await.unwrap(),
    ] {
        let plan = frame.create_physical_plan().await.unwrap();
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        assert!(text.contains("MetadataExec: table=pay.log, snapshot=2"), "{text}");
        let batches = datafusion::physical_plan::collect(plan, context.task_ctx()).await.unwrap();
        assert_eq!(texts(&batches), [["6"]]);
    }
    assert!(context.table_exist("own").unwrap());
    // two scans, each with its pin
    let both = "EXPLAIN SELECT (SELECT count(*) FROM log@v1) a, (SELECT count(*) FROM log@v2) b";
    let plan = rows(&session, both).await.join("\n");
    assert!(plan.contains("log, snapshot=1") && plan.contains("log, snapshot=2"), "{plan}");
}

#[tokio::test]
async fn files_of_the_branch_behind_are_shown_as_its_own_and_keys_of_files_left_out_too() {
    let session = golden_session().await;
    let files = rows(&session, "EXPLAIN FILES SELECT * FROM fallback_branch").await;
    let lines: Vec<Vec<&str>> = files.iter().map(|line| line.split(',').collect()).collect();
    let of = |table: &str| lines.iter().filter(|line| line[0] == table).count();
    assert_eq!((of("golden.fallback_branch"), of("golden.fallback_branch$branch_fb")), (2, 2), "{files:?}");
    for filter in ["", " WHERE p = 'zz'", " WHERE p = 'a'"] {
        let files = rows(&session, &format!("EXPLAIN FILES SELECT * FROM fallback_branch{filter}")).await;
        assert!(files.iter().all(|line| line.contains("[") && !line.contains("NULL,NULL,0")), "{filter}: {files:?}");
    }
}

/// Selected through DataFusion's Parquet source and merged by a node of ours, a scan tells its own work and requests.
#[tokio::test]
async fn a_plan_that_ran_tells_what_it_selected_and_asked_the_store_for() {
    let (dir, _table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    rows(&session, "SET lakepin.selection_cache = false").await;
    for (merge_source, node) in [(true, "DataSourceExec"), (false, "ReadExec")] {
        rows(&session, &format!("SET lakepin.merge_source = {merge_source}")).await;
        let before = warehouse.requests();
        let plan = rows(&session, "EXPLAIN ANALYZE SELECT sum(v) FROM t").await.join("\n");
        let asked = warehouse.requests() - before;
        let scan = plan.lines().find(|line| line.trim_start().starts_with(node)).unwrap_or_else(|| panic!("{plan}"));
        let metric = |name: &str| -> u64 {
            let (_, value) = scan.split_once(&format!(" {name}=")).unwrap_or_else(|| panic!("no {name}: {scan}"));
            // large numbers are shown in thousands
            let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        };
        assert_eq!((metric("sections_selected"), metric("key_files_read")), (1, 3), "{scan}");
        assert_eq!((metric("rows_superseded"), metric("keys_deleted")), (2, 1), "{scan}");
        // the others were for the snapshot and its manifests
        let requests = metric("data_file_requests");
        assert!((3..=asked.requests()).contains(&requests), "{requests} of {asked}");
        assert!((1..=asked.bytes_read).contains(&metric("data_file_bytes")), "{asked}: {scan}");
    }
}
