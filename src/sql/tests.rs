mod aggregates;
mod answered;
mod arithmetic;
#[cfg(feature = "codec")]
mod bytes;
mod caches;
mod changes;
mod commits;
mod compared;
mod copies;
mod damage;
mod decimals;
mod deep;
mod engine;
mod forensics;
mod global;
mod guards;
mod hints;
mod indexes;
mod joined;
mod journal;
mod keys;
mod lists;
mod marks;
mod names;
mod nans;
mod nulls;
mod one_pin;
mod partitions;
mod pins;
mod read_only;
mod reconcile;
mod refusals;
mod retention;
mod same_names;
mod spellings;
mod subqueries;
mod system_tables;
mod texts;
mod times;
mod told;
mod unread;
mod using;
mod verdicts;
mod views;
mod wide;
mod zones;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::context::SessionContext;
use futures::TryStreamExt;
use serde_json::json;
use tempfile::TempDir;

use super::{PinLine, Session, SessionConfig, StatementKind, StatementResult, Warehouse};
use crate::error::{Error, ErrorKind, Result};
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use crate::testing::golden;

async fn golden_session() -> Session {
    let url = golden::java_warehouse().unwrap();
    let warehouse = Warehouse::open(url.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    Session::new(&warehouse, SessionConfig { target_partitions: Some(2), ..SessionConfig::default() }).await.unwrap()
}

/// A key table `pay.t(id, v)` with three snapshots: 1 and 2 present, a row changed and one added, one deleted.
fn three_snapshots() -> (TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1, "v": 10}), json!({"id": 2, "v": 20})]).unwrap();
    table.append(&[json!({"id": 2, "v": 21}), json!({"id": 3, "v": 30})]).unwrap();
    table.append(&[json!({"id": 1, "v": 10, "_ROW_KIND": "-D"})]).unwrap();
    (dir, table)
}

/// Makes branch `name` of a table what another table is now, under the data files of both.
fn make_branch(of: &TableBuilder, from: &TableBuilder, name: &str) {
    let mut folders = vec![from.root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(from.root()).unwrap();
            let own = ["schema", "snapshot", "tag"].iter().any(|folder| relative.starts_with(folder));
            let root = if own { of.root().join(format!("branch/branch-{name}")) } else { of.root().to_path_buf() };
            let to = root.join(relative);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(&path, to).unwrap();
        }
    }
}

async fn session_of(dir: &TempDir) -> Session {
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    Session::new(&warehouse, SessionConfig::default()).await.unwrap()
}

fn texts(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()));
    }
    rows
}

async fn all(result: StatementResult) -> (Vec<Vec<String>>, Vec<PinLine>) {
    let batches: Vec<RecordBatch> = result.stream.try_collect().await.map_err(Error::from_datafusion).unwrap();
    (texts(&batches), result.pins)
}

/// Rows of a statement, sorted, cells with a comma between.
async fn ask(session: &Session, sql: &str) -> Result<Vec<String>> {
    let result = session.run_one(sql).await?;
    let batches: Vec<RecordBatch> = result.stream.try_collect().await.map_err(Error::from_datafusion)?;
    let mut rows: Vec<String> = texts(&batches).into_iter().map(|row| row.join(",")).collect();
    rows.sort();
    Ok(rows)
}

async fn rows(session: &Session, sql: &str) -> Vec<String> {
    ask(session, sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))
}

async fn code(session: &Session, sql: &str) -> &'static str {
    match ask(session, sql).await {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(error) => error.code(),
    }
}

#[tokio::test]
async fn every_spelling_reads_the_same_snapshot() {
    let (dir, table) = three_snapshots();
    table.tag("first", 1).unwrap();
    let session = session_of(&dir).await;
    let spellings = [
        "t VERSION AS OF 1",
        "pay.t VERSION AS OF 1",
        "paimon.pay.t FOR VERSION AS OF 1",
        "t FOR SYSTEM_VERSION AS OF 1",
        "t VERSION AS OF 'first'",
        "t AT (VERSION => 1)",
        "t AT (TAG => 'first')",
        "t TIMESTAMP AS OF '2026-04-16 01:00:00'",
        "t TIMESTAMP AS OF TIMESTAMP '2026-04-16 09:00:30+08:00'",
        "t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-04-16 01:00:59.999'",
        "t AT (TIMESTAMP => CAST('2026-04-16 01:01:00' AS TIMESTAMP) - INTERVAL '1' SECOND)",
        "t@v1",
        "t@first",
        "\"t@tag:first\"",
        "t /*+ OPTIONS('scan.snapshot-id'='1') */",
        "t /*+ OPTIONS('scan.tag-name'='first') */",
        "t /*+ OPTIONS('scan.timestamp-millis'='1776301200000') */",
        "t WITH ('scan.snapshot-id' = '1')",
        "(SELECT * FROM t VERSION AS OF 1)",
    ];
    for spelling in spellings {
        assert_eq!(rows(&session, &format!("SELECT id, v FROM {spelling}")).await, ["1,10", "2,20"], "{spelling}");
    }
    for sql in [
        "SELECT x.id, x.v FROM t VERSION AS OF 1 AS x",
        "SELECT x.id, x.v FROM t x VERSION AS OF 1",
        "SELECT x.id, x.v FROM pay.t AS x FOR SYSTEM_TIME AS OF '2026-04-16 01:00:00'",
        "WITH c AS (SELECT * FROM t VERSION AS OF 1) SELECT * FROM c",
        "SELECT * FROM t VERSION AS OF 1 EXCEPT SELECT * FROM t WHERE id < 0",
        "SELECT t.id, t.v FROM t VERSION AS OF 1",
        "SELECT pay.t.id, pay.t.v FROM pay.t VERSION AS OF 1",
        "SELECT old.id, old.v FROM t new JOIN t VERSION AS OF 1 old ON new.id = old.id OR old.id = 1 GROUP BY old.id, old.v",
        "SELECT id, v FROM t VERSION AS OF 1 WHERE id IN (SELECT id FROM t VERSION AS OF 2)",
    ] {
        assert_eq!(rows(&session, sql).await, ["1,10", "2,20"], "{sql}");
    }
    assert_eq!(rows(&session, "SELECT * FROM t").await, ["2,21", "3,30"]);
}

#[tokio::test]
async fn one_statement_may_read_two_versions_and_says_so() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let sql = "SELECT n.id, o.v, n.v FROM t AT (VERSION => 2) n JOIN t AT (VERSION => 1) o USING (id) WHERE n.v <> o.v";
    let (found, pins) = all(session.run_one(sql).await.unwrap()).await;
    assert_eq!(found, [["2", "20", "21"]]);
    let mut ids: Vec<_> = pins.iter().map(|p| p.snapshot_id).collect();
    ids.sort();
    assert_eq!(ids, [Some(1), Some(2)]);
    let difference = "SELECT * FROM t VERSION AS OF 2 EXCEPT SELECT * FROM t VERSION AS OF 1";
    assert_eq!(rows(&session, difference).await, ["2,21", "3,30"]);
}

#[tokio::test]
async fn names_and_plans_are_the_user_s() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let result = session.run_one("SELECT min(id), t.v FROM t VERSION AS OF 1 GROUP BY v").await.unwrap();
    let names: Vec<&str> = result.schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["min(t.id)", "v"]);
    let plan = "EXPLAIN SELECT min(id) FROM t VERSION AS OF 1 WHERE v > 3";
    let first = rows(&session, plan).await;
    assert_eq!(first, rows(&session, plan).await);
    assert!(first.iter().any(|line| line.contains("snapshot=1")), "{first:?}");
    // nothing but the version and the name of the table
    assert!(first.iter().all(|line| !line.contains("__") && !line.contains('#')), "{first:?}");
}

#[tokio::test]
async fn relations_of_one_name_are_never_taken_for_each_other() {
    let (dir, _table) = three_snapshots();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut other = TableBuilder::create(dir.path(), "shop", "t", &spec).unwrap();
    other.append(&[json!({"id": 7, "v": 7})]).unwrap();
    let session = session_of(&dir).await;
    rows(&session, "USE shop").await;
    rows(&session, "CREATE VIEW counted AS SELECT count(*) c FROM t").await;
    rows(&session, "CREATE VIEW old AS SELECT count(*) c FROM pay.t VERSION AS OF 1").await;
    rows(&session, "USE pay").await;
    for (sql, found) in [
        ("SELECT (SELECT count(*) FROM t VERSION AS OF 1) a, (SELECT count(*) FROM t VERSION AS OF 2) b", "2,3"),
        ("SELECT (SELECT c FROM shop.counted) a, (SELECT count(*) FROM t) b", "1,2"),
        ("SELECT (SELECT c FROM shop.old) a, (SELECT count(*) FROM pay.t VERSION AS OF 2) b", "2,3"),
        (
            "SELECT (SELECT count(*) FROM paimon_diff('t', 1, 2)) a, (SELECT count(*) FROM paimon_diff('t', 2, 3)) b",
            "2,1",
        ),
        (
            "SELECT (SELECT count(*) FROM t$binlog VERSION AS OF 1) a, (SELECT count(*) FROM t$binlog VERSION AS OF 2) b",
            "2,3",
        ),
        (
            "SELECT (SELECT sum(raw_rows) FROM paimon_row_accounting('t', at => 1)) a, \
             (SELECT sum(raw_rows) FROM paimon_row_accounting('t', at => 2)) b",
            "2,4",
        ),
    ] {
        assert_eq!(rows(&session, sql).await, [found], "{sql}");
    }
}

#[tokio::test]
async fn views_travel_when_they_are_read() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "CREATE VIEW fixed AS SELECT id FROM t VERSION AS OF 1").await;
    rows(&session, "CREATE VIEW moving (key) AS SELECT id FROM t").await;
    assert_eq!(rows(&session, "SELECT * FROM fixed").await, ["1", "2"]);
    assert_eq!(rows(&session, "SELECT key FROM moving").await, ["2", "3"]);
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    assert_eq!(rows(&session, "SELECT id FROM fixed").await, ["1", "2"]);
    assert_eq!(rows(&session, "SELECT key FROM moving").await, ["1", "2", "3"]);
    rows(&session, "CREATE VIEW both AS SELECT key FROM moving EXCEPT SELECT id FROM fixed").await;
    let (found, pins) = all(session.run_one("SELECT * FROM both").await.unwrap()).await;
    assert_eq!(found, [["3"]]);
    assert_eq!(pins.len(), 2);
    assert_eq!(code(&session, "CREATE VIEW t AS SELECT 1").await, "TableExists");
    assert_eq!(code(&session, "SELECT * FROM fixed VERSION AS OF 1").await, "CannotTravel");
    rows(&session, "DROP VIEW fixed").await;
    assert_eq!(code(&session, "SELECT * FROM fixed").await, "TableNotFound");
}

#[tokio::test]
async fn a_table_and_its_system_tables_share_one_pin() {
    let (dir, mut table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "PIN TABLE t").await;
    table.append(&[json!({"id": 9, "v": 9})]).unwrap();
    let sql = "SELECT (SELECT count(*) FROM t) a, (SELECT sum(record_count) FROM t$files) b, \
               (SELECT count(*) FROM t$audit_log WHERE rowkind = '-D') c, (SELECT count(*) FROM t$snapshots) d";
    let (found, pins) = all(session.run_one(sql).await.unwrap()).await;
    assert_eq!(found, [["2", "5", "1", "4"]]);
    assert_eq!(pins.len(), 1);
    assert_eq!((pins[0].snapshot_id, pins[0].session), (Some(3), true));
    rows(&session, "UNPIN TABLE t").await;
    let (found, pins) = all(session.run_one(sql).await.unwrap()).await;
    assert_eq!(found, [["3", "6", "1", "4"]]);
    assert_eq!((pins.len(), pins[0].snapshot_id, pins[0].session), (1, Some(4), false));
}

#[tokio::test]
async fn the_nearest_word_wins() {
    let (dir, table) = three_snapshots();
    table.tag("two", 2).unwrap();
    let session = session_of(&dir).await;
    let id = |pins: Vec<PinLine>| pins.first().and_then(|p| p.snapshot_id);
    let of = async |sql: &str| id(all(session.run_one(sql).await.unwrap()).await.1);
    rows(&session, "SET 'paimon.scan.tag-name' = 'two'").await;
    assert_eq!(of("SELECT * FROM t").await, Some(2), "SET");
    rows(&session, "SET 'paimon.pay.t.scan.snapshot-id' = '1'").await;
    assert_eq!(of("SELECT * FROM t").await, Some(1), "SET for this table");
    rows(&session, "PIN TABLE t AT (VERSION => 3)").await;
    assert_eq!(of("SELECT * FROM t").await, Some(3), "session pin");
    assert_eq!(of("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id'='2') */").await, Some(2), "hint");
    assert_eq!(of("SELECT * FROM t VERSION AS OF 1").await, Some(1), "clause");
    assert_eq!(of("SELECT * FROM t$files").await, Some(3), "session pin of a system table");
    rows(&session, "UNPIN ALL").await;
    rows(&session, "RESET paimon").await;
    assert_eq!(of("SELECT * FROM t").await, Some(3), "latest");
    let sql = "SELECT * FROM t VERSION AS OF 1 /*+ OPTIONS('scan.tag-name'='two') */";
    assert_eq!(code(&session, sql).await, "ConflictingSelectors");
    let sql = "SELECT * FROM t /*+ OPTIONS('scan.tag-name'='two', 'scan.snapshot-id'='1') */";
    assert_eq!(code(&session, sql).await, "ConflictingSelectors");
    assert_eq!(code(&session, "SELECT * FROM t@v1 VERSION AS OF 2").await, "ConflictingSelectors");
    assert_eq!(code(&session, "SELECT * FROM t /*+ OPTIONS('scan.snapshotid'='1') */").await, "UnknownOption");
    assert_eq!(code(&session, "SELECT * FROM t /*+ OPTIONS('merge-engine'='first-row') */").await, "FixedOption");
    let idle = session.run_one("SELECT * FROM t /*+ OPTIONS('scan.parallelism'='2') */").await.unwrap();
    assert_eq!(idle.notices, ["option scan.parallelism has no effect on what is read"]);
    let sql = "SELECT * FROM t /*+ OPTIONS('scan.mode'='incremental', 'incremental-between'='2,3') */";
    assert!(rows(&session, sql).await.is_empty());
}

#[tokio::test]
async fn pins_are_shown_and_looked_at_again() {
    let (dir, table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "PIN TABLES t AT (VERSION => 1)").await;
    let shown = rows(&session, "SHOW PINS").await;
    assert_eq!(shown.len(), 1);
    assert!(shown[0].starts_with("pay.t,main,1,") && shown[0].contains(",ok,0,v1,"), "{shown:?}");
    assert_eq!(session.session_pins()[0].snapshot_id, Some(1));
    table.expire(1).unwrap();
    assert_eq!(code(&session, "SELECT * FROM t").await, "SnapshotExpired");
    assert!(rows(&session, "SHOW PINS").await[0].contains(",expired,0,v1,"));
    // the way out stays open
    assert_eq!(rows(&session, "SELECT snapshot_id FROM t$snapshots").await, ["2", "3"]);
    rows(&session, "UNPIN t").await;
    assert_eq!(rows(&session, "SELECT * FROM t").await.len(), 2);
    assert_eq!(code(&session, "UNPIN TABLE t").await, "NotPinned");
    assert_eq!(code(&session, "PIN TABLE t AT (VERSION => 1)").await, "SnapshotExpired");
    assert_eq!(code(&session, "PIN TABLE t RETAIN INTERVAL '1' HOUR").await, "NotYet");
}

#[tokio::test]
async fn pins_are_made_and_undone_together_or_not_at_all() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let pinned = || session.session_pins().iter().map(|pin| pin.snapshot_id).collect::<Vec<_>>();
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    assert_eq!(code(&session, "PIN TABLES t, gone").await, "TableNotFound");
    assert_eq!(pinned(), [Some(1)]);
    assert_eq!(code(&session, "UNPIN TABLES t, gone").await, "NotPinned");
    assert_eq!(pinned(), [Some(1)]);
    rows(&session, "PIN TABLES t").await;
    assert_eq!(pinned(), [Some(3)], "without a clause: what is the latest now");
}

#[tokio::test]
async fn a_view_never_hides_a_table_that_cannot_be_read() {
    let (dir, _table) = three_snapshots();
    std::fs::write(dir.path().join("pay.db/t/schema/schema-0"), "{").unwrap();
    let session = session_of(&dir).await;
    assert_eq!(code(&session, "CREATE VIEW t AS SELECT 1 AS one").await, "TableExists");
    assert_eq!(ask(&session, "SELECT * FROM t").await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn what_cannot_travel_says_so() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "CREATE TEMPORARY TABLE mine AS SELECT 1 AS a").await;
    for sql in [
        "SELECT * FROM mine VERSION AS OF 1",
        "SELECT * FROM mine@v1",
        "WITH c AS (SELECT 1) SELECT * FROM c VERSION AS OF 1",
        "SELECT * FROM generate_series(1, 3) VERSION AS OF 1",
    ] {
        let code = code(&session, sql).await;
        assert!(["CannotTravel", "Syntax"].contains(&code), "{sql}: {code}");
    }
    assert_eq!(rows(&session, "SELECT * FROM mine").await, ["1"]);
    rows(&session, "INSERT INTO mine VALUES (2)").await;
    assert_eq!(rows(&session, "SELECT * FROM mine").await, ["1", "2"]);
    assert_eq!(rows(&session, "SHOW TABLES").await, ["pay,mine,temporary", "pay,t,table"]);
}

#[tokio::test]
async fn writing_is_refused_by_name() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for sql in [
        "INSERT INTO t VALUES (1, 2)",
        "INSERT OVERWRITE t SELECT * FROM t",
        "UPDATE t SET v = 1",
        "DELETE FROM t WHERE id = 1",
        "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE t",
        "CREATE TABLE u (a INT)",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN c INT",
        "CREATE DATABASE x",
        "CALL sys.compact('pay.t')",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "EXPLAIN INSERT INTO t VALUES (1, 2)",
    ] {
        assert_eq!(code(&session, sql).await, "ReadOnly", "{sql}");
    }
    let out = tempfile::tempdir().unwrap();
    let (own, link) = (dir.path().display(), out.path().join("link"));
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    let name = dir.path().file_name().unwrap().to_string_lossy();
    for target in [
        format!("{own}/pay.db/t"),
        format!("file://{own}/x"),
        format!("{own}/../{name}/x"),
        format!("{own}/pay.db/../x"),
        format!("{}/x", link.display()),
    ] {
        let into = format!("COPY t TO '{target}.parquet' STORED AS PARQUET");
        assert_eq!(code(&session, &into).await, "ReadOnly", "{target}");
    }
    let copy = format!("COPY (SELECT * FROM t VERSION AS OF 1) TO '{}/x.csv' STORED AS CSV", out.path().display());
    assert_eq!(rows(&session, &copy).await, ["2"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
}

#[tokio::test]
async fn errors_name_the_way_out() {
    let (dir, mut table) = three_snapshots();
    table.alter(&SchemaChange::Add("c", "STRING")).unwrap();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT c FROM t").await, ["NULL", "NULL"]);
    let error = ask(&session, "SELECT c FROM t VERSION AS OF 1").await.unwrap_err();
    assert_eq!(error.code(), "ColumnNotFound");
    assert!(error.hint().unwrap_or_default().contains("added in schema 1"), "{error}");
    let error = ask(&session, "SELECT idd FROM t").await.unwrap_err();
    assert!(error.to_string().contains("did you mean 'id'"), "{error}");
    assert!(error.context().contains(&("line", "1".to_string())), "{error:?}");
    let error = ask(&session, "SELECT * FROM tt").await.unwrap_err();
    assert_eq!((error.code(), error.hint().unwrap_or_default()), ("TableNotFound", "did you mean 't'?"));
    assert_eq!(code(&session, "SELECT * FROM nowhere.t").await, "DatabaseNotFound");
    assert_eq!(code(&session, "SELECT * FROM t$snapshotz").await, "TableNotFound");
    let error = ask(&session, "SELECT * FROM t TIMESTAMP AS OF 1678883047").await.unwrap_err();
    assert_eq!(error.code(), "AmbiguousTimestamp");
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("2023-03-15 12:24:07") && hint.contains("1970-01-20"), "{hint}");
    assert_eq!(code(&session, "SELECT * FROM t TIMESTAMP AS OF id").await, "NotConstant");
    assert_eq!(code(&session, "SELECT * FROM t TIMESTAMP AS OF '2020-01-01'").await, "TimestampTooEarly");
    assert_eq!(code(&session, "SELECT * FROM paimon_dif('t', 1, 2)").await, "FunctionNotFound");
    assert_eq!(code(&session, "SELEC 1").await, "Syntax");
}

#[tokio::test]
async fn numeric_tags_and_ids_are_told_apart() {
    let (dir, table) = three_snapshots();
    table.tag("1", 2).unwrap();
    let session = session_of(&dir).await;
    for (sql, id) in [
        ("SELECT * FROM t VERSION AS OF 1", 1),
        ("SELECT * FROM t VERSION AS OF '1'", 2),
        ("SELECT * FROM t AT (TAG => '1')", 2),
        ("SELECT * FROM t AT (VERSION => 1)", 1),
    ] {
        let result = session.run_one(sql).await.unwrap();
        assert_eq!(result.pins[0].snapshot_id, Some(id), "{sql}");
        let both = !sql.contains("TAG");
        assert_eq!(result.notices.iter().any(|n| n.contains("tag")), both, "{sql}: {:?}", result.notices);
    }
}

#[tokio::test]
async fn the_session_s_zone_is_what_a_wall_clock_means() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "SET TIME ZONE 'Asia/Shanghai'").await;
    assert_eq!(session.time_zone(), "Asia/Shanghai");
    for sql in [
        "SELECT * FROM t TIMESTAMP AS OF '2026-04-16 09:00:30'",
        "SELECT * FROM t TIMESTAMP AS OF TIMESTAMP '2026-04-16T09:00:30.123'",
        "SELECT * FROM t TIMESTAMP AS OF '2026-04-16 01:00:30Z'",
        "SELECT * FROM t TIMESTAMP AS OF TIMESTAMP '2026-04-16 01:00:30+00:00'",
    ] {
        let result = session.run_one(sql).await.unwrap();
        assert_eq!(result.pins[0].snapshot_id, Some(1), "{sql}");
        assert!(result.pins[0].text.contains("09:00:00"), "{}", result.pins[0].text);
    }
    // a date is its midnight here, seventeen hours before the first commit in UTC
    let next = session.run_one("SELECT * FROM t TIMESTAMP AS OF DATE '2026-04-17'").await.unwrap();
    assert_eq!(next.pins[0].snapshot_id, Some(3));
    assert_eq!(code(&session, "SELECT * FROM t TIMESTAMP AS OF DATE '2026-04-16'").await, "TimestampTooEarly");
    assert_eq!(code(&session, "SET TIME ZONE 'Mars'").await, "UnknownTimeZone");
    assert_eq!(code(&session, "SET datafusion.execution.time_zone = 'Mars'").await, "UnknownTimeZone");
    assert_eq!(session.time_zone(), "Asia/Shanghai");
}

#[tokio::test]
async fn a_diff_shows_the_net_effect() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let sql = "SELECT op, id, before_v, after_v, changed_columns FROM paimon_diff('pay.t', from => 1, to => 3)";
    assert_eq!(rows(&session, sql).await, ["DELETE,1,10,NULL,NULL", "INSERT,3,NULL,30,NULL", "UPDATE,2,20,21,[v]"]);
    let one = "SELECT op, id FROM paimon_diff('t', 1, 3, where => 'id > 1 AND id < 3')";
    assert_eq!(rows(&session, one).await, ["UPDATE,2"]);
    assert_eq!(code(&session, "SELECT * FROM paimon_diff('t', 1, 3, where => 'v > 1')").await, "BadArgument");
    let back = "SELECT op, id FROM paimon_diff('t', 3, 1) ORDER BY id LIMIT 2";
    assert_eq!(rows(&session, back).await, ["INSERT,1", "UPDATE,2"]);
    assert!(rows(&session, "SELECT * FROM paimon_diff('t', 2, 2)").await.is_empty());
    assert_eq!(
        rows(&session, "SELECT d.id FROM paimon_diff(t, 2) d JOIN t VERSION AS OF 2 o ON o.id = d.id").await,
        ["1"]
    );
}

#[tokio::test]
async fn a_diff_of_rows_without_key_counts_copies() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("a", "INT"), ("b", "STRING")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    table.append(&[json!({"a": 1, "b": "x"}), json!({"a": 1, "b": "x"}), json!({"a": 2, "b": null})]).unwrap();
    let rest = FileSpec::rows(&[json!({"a": 1, "b": "x"}), json!({"a": 3, "b": "y"}), json!({"a": 3, "b": "y"})]);
    table.commit().remove_all().file(rest).publish().unwrap();
    let session = session_of(&dir).await;
    assert_eq!(
        rows(&session, "SELECT op, a, b, copies FROM paimon_diff('log', 1, 2)").await,
        ["DELETE,1,x,1", "DELETE,2,NULL,1", "INSERT,3,y,2"]
    );
    let hint = "SELECT * FROM log /*+ OPTIONS('incremental-between'='1,2','incremental-between-scan-mode'='diff') */";
    assert_eq!(rows(&session, hint).await, ["3,y", "3,y"]);
}

#[tokio::test]
async fn a_diff_reads_no_file_that_both_snapshots_have() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("p", "INT NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let partition = |p: i64| (0..9).map(|id| json!({"p": p, "id": id, "v": 1})).collect::<Vec<_>>();
    table.append(&[partition(1), partition(2), partition(3)].concat()).unwrap();
    table.append(&[json!({"p": 2, "id": 4, "v": 2})]).unwrap();
    let session = session_of(&dir).await;
    let diff = "SELECT op, p, id, after_v FROM paimon_diff('t', 1, 2)";
    let (files, _) = all(session.run_one(&format!("EXPLAIN FILES {diff}")).await.unwrap()).await;
    let kept = files.iter().filter(|row| row[3] == "true").map(|row| row[5].as_str()).collect::<Vec<_>>();
    assert_eq!((files.len(), kept), (7, vec!["p=2", "p=2", "p=2"]), "{files:?}");
    assert!(files.iter().filter(|row| row[3] == "false").all(|row| row[4].contains("compared")), "{files:?}");
    let plan = rows(&session, &format!("EXPLAIN {diff}")).await.join("\n");
    assert!(plan.contains("dropped by comparison 2"), "{plan}");
    // the proof: files that are gone are not missed
    for p in [1, 3] {
        std::fs::remove_dir_all(table.root().join(format!("p={p}"))).unwrap();
    }
    assert_eq!(rows(&session, diff).await, ["UPDATE,2,4,2"]);
    let hint = "SELECT * FROM t /*+ OPTIONS('incremental-between'='1,2','incremental-between-scan-mode'='diff') */";
    assert_eq!(rows(&session, hint).await, ["2,4,2"]);
}

#[tokio::test]
async fn changes_of_a_range_start_after_its_start() {
    let (dir, table) = three_snapshots();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT * FROM paimon_delta('t', 1, 3)").await, ["+I,2,21", "+I,3,30", "-D,1,10"]);
    assert_eq!(rows(&session, "SELECT * FROM t /*+ OPTIONS('incremental-between'='1,3') */").await, ["2,21", "3,30"]);
    assert_eq!(
        rows(&session, "SELECT * FROM t$audit_log /*+ OPTIONS('incremental-between'='2,3') */").await,
        ["-D,1,10"]
    );
    assert_eq!(
        rows(&session, "SELECT * FROM t$binlog /*+ OPTIONS('incremental-between'='2,3') */").await,
        ["-D,[1],[10]"]
    );
    let diff = "OPTIONS('incremental-between'='1,3','incremental-between-scan-mode'='diff')";
    assert_eq!(rows(&session, &format!("SELECT * FROM t /*+ {diff} */")).await, ["2,21", "3,30"]);
    assert_eq!(
        rows(&session, &format!("SELECT * FROM t$audit_log /*+ {diff} */")).await,
        ["+I,2,21", "+I,3,30", "-D,1,10"]
    );
    table.tag("a", 1).unwrap();
    table.tag("b", 2).unwrap();
    assert_eq!(rows(&session, "SELECT * FROM t /*+ OPTIONS('incremental-between'='a,b') */").await, ["2,21", "3,30"]);
    let times = "OPTIONS('incremental-between-timestamp'='2026-04-16 01:00:00,2026-04-16 01:01:00')";
    assert_eq!(rows(&session, &format!("SELECT * FROM t /*+ {times} */")).await, ["2,21", "3,30"]);
    assert!(rows(&session, "SELECT * FROM t /*+ OPTIONS('incremental-between'='2,2') */").await.is_empty());
    assert_eq!(code(&session, "SELECT * FROM t /*+ OPTIONS('incremental-between'='3,1') */").await, "BadRange");
    assert_eq!(code(&session, "SELECT * FROM paimon_delta('t', 1, 9)").await, "SnapshotNotFound");
    assert_eq!(code(&session, "SELECT * FROM t /*+ OPTIONS('incremental-between'='a,9') */").await, "BadOption");
    let limited = "SELECT * FROM paimon_delta('t', 0, 3) ORDER BY id, v LIMIT 2";
    assert_eq!(rows(&session, limited).await, ["+I,1,10", "-D,1,10"]);
}

#[tokio::test]
async fn the_rows_of_a_snapshot_add_up() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let (pin, counts) = session.counts("t", Some("v > 25")).await.unwrap();
    assert_eq!(pin.snapshot_id, Some(3));
    let total = &counts.total;
    assert_eq!((total.raw_rows, total.superseded, total.tombstoned, total.final_rows), (5, 2, 1, 2));
    assert_eq!((total.matching, counts.snapshot_total), (Some(1), Some(5)));
    assert!(total.identity_holds() && counts.violations.is_empty());
    let (_, old) = session.counts("pay.t VERSION AS OF 1", None).await.unwrap();
    assert_eq!((old.total.raw_rows, old.total.final_rows, old.total.matching), (2, 2, None));
    for (condition, what) in [
        ("id IN (SELECT id FROM t)", "takes no query"),
        ("count(*) > 1", "takes no aggregate"),
        ("rank() OVER () > 1", "takes no window function"),
        ("v", "of type Int32"),
    ] {
        let error = session.counts("t", Some(condition)).await.unwrap_err();
        assert_eq!(error.code(), "BadCondition", "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    let sql = "SELECT raw_rows, superseded, tombstoned, final_rows, exact FROM paimon_row_accounting('t', at => 2)";
    assert_eq!(rows(&session, sql).await, ["4,1,0,3,true"]);
    let sql = "SELECT bucket, raw_rows, superseded, final_rows, final_hi FROM t$row_accounting";
    assert_eq!(rows(&session, sql).await, ["0,5,NULL,NULL,4"]);
}

/// A condition on partitions leaves the others out, one on values counts what meets it in each.
#[tokio::test]
async fn a_condition_is_counted_by_partition() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("p", "DATE NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    for v in 0..3 {
        table
            .append(&[json!({"p": "2026-04-15", "id": v, "v": v}), json!({"p": "2026-04-16", "id": 7, "v": v})])
            .unwrap();
    }
    let session = session_of(&dir).await;
    let counted = async |condition: &str| {
        let (_, counts) = session.counts("log", Some(condition)).await.unwrap();
        assert_eq!(counts.violations, Vec::<String>::new(), "{condition}");
        let of = |row: &crate::sql::AccountingRow| (row.raw_rows, row.final_rows, row.matching);
        let partitions: Vec<_> = counts.partitions.iter().map(|row| (row.partition.clone(), of(row))).collect();
        (counts.restricted, partitions, of(&counts.total))
    };
    let (first, second) = ("p=2026-04-15".to_string(), "p=2026-04-16".to_string());
    assert_eq!(
        counted("v > 0").await,
        (false, vec![(first, (3, 3, Some(2))), (second.clone(), (3, 1, Some(1)))], (6, 4, Some(3)))
    );
    assert_eq!(counted("p = '2026-04-16'").await, (true, vec![(second.clone(), (3, 1, None))], (3, 1, None)));
    assert_eq!(
        counted("extract(year from p) = 2026 and p > DATE '2026-04-15'").await,
        (true, vec![(second, (3, 1, None))], (3, 1, None))
    );
    assert_eq!(counted("p is null").await, (true, vec![], (0, 0, None)));
    // what only chooses a partition reads no more than that
    rows(&session, "SET lakepin.max_files = 3").await;
    session.counts("log", Some("p = '2026-04-16'")).await.unwrap();
    assert_eq!(session.counts("log", Some("v > 0")).await.unwrap_err().code(), "TooManyFiles");
}

#[tokio::test]
async fn exact_accounting_reads_when_it_is_executed_and_within_limits() {
    let (dir, table) = three_snapshots();
    let session = session_of(&dir).await;
    let sql = "SELECT final_rows FROM paimon_row_accounting('t')";
    let plan = rows(&session, &format!("EXPLAIN {sql}")).await.join("\n");
    assert!(plan.contains("DeferredExec: paimon_row_accounting(), files=3, bytes="), "{plan}");
    for (limit, code) in [("max_files", "TooManyFiles"), ("max_bytes_scanned", "TooManyBytes")] {
        rows(&session, &format!("SET lakepin.{limit} = 2")).await;
        for sql in
            [sql, "SELECT sum(final_rows) FROM paimon_row_accounting('t', level => 'table') a JOIN t ON t.id > 0"]
        {
            let error = session.run_one(sql).await.map(drop).unwrap_err();
            assert_eq!(error.code(), code, "{sql}: {error}");
        }
        let error = session.run_one(&format!("CREATE TABLE kept AS {sql}")).await.map(drop);
        assert!(error.is_err(), "{limit}");
        // what metadata tells needs no file
        assert_eq!(rows(&session, "SELECT raw_rows FROM paimon_row_accounting('t', mode => 'metadata')").await, ["5"]);
        rows(&session, &format!("SET lakepin.{limit} = 0")).await;
    }
    assert_eq!(rows(&session, sql).await, ["2"]);
    assert_eq!(rows(&session, &format!("SELECT count(*) FROM ({sql}) a, ({sql}) b")).await, ["1"]);
    for entry in table.live_files().unwrap() {
        std::fs::remove_file(table.root().join("bucket-0").join(&entry.file.file_name)).unwrap();
    }
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, &format!("EXPLAIN {sql}")).await.join("\n"), plan, "a data file was wanted");
    let lost = ask(&session, sql).await.unwrap_err();
    assert_eq!(lost.code(), "FileLost", "{lost}");
}

#[tokio::test]
async fn golden_tables_add_up_and_agree_with_count() {
    let session = golden_session().await;
    let mut counted = 0;
    for table in session.tables(None).await.unwrap() {
        let sql = format!("SELECT count(*) FROM \"{table}\"");
        let count = match ask(&session, &sql).await {
            Ok(rows) => rows,
            Err(error) => {
                assert_eq!(error.kind(), crate::error::ErrorKind::Unsupported, "{table}: {error:?}");
                continue;
            }
        };
        let (_, accounting) = session.counts(&table, None).await.unwrap_or_else(|e| panic!("{table}: {e:?}"));
        assert!(accounting.violations.is_empty(), "{table}: {:?}", accounting.violations);
        assert_eq!(count, [accounting.total.final_rows.to_string()], "{table}");
        let (low, high) = accounting.total.final_bounds;
        assert!((low..=high).contains(&accounting.total.final_rows), "{table}");
        counted += 1;
    }
    assert!(counted > 80, "{counted} tables counted");
}

#[tokio::test]
async fn every_system_table_of_every_golden_table_answers() {
    let session = golden_session().await;
    for table in session.tables(None).await.unwrap() {
        for system in Session::system_tables() {
            match ask(&session, &format!("SELECT * FROM \"{table}${system}\"")).await {
                Ok(_) => {}
                Err(error) => {
                    let kind = error.kind();
                    let fine = kind == crate::error::ErrorKind::Unsupported || error.code() == "NoRowTracking";
                    assert!(fine, "{table}${system}: {error:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn system_tables_never_fail_for_what_is_not_there() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (condition, found) in [
        ("snapshot_id IN (1, 999)", vec!["1"]),
        ("snapshot_id = 999", vec![]),
        ("snapshot_id > 999", vec![]),
        ("snapshot_id = 1 OR commit_kind = 'COMPACT'", vec!["1"]),
    ] {
        let sql = format!("SELECT snapshot_id FROM t$snapshots WHERE {condition}");
        assert_eq!(rows(&session, &sql).await, found, "{condition}");
    }
    assert!(rows(&session, "SELECT * FROM t$schemas WHERE schema_id = 7").await.is_empty());
    assert_eq!(rows(&session, "SELECT value FROM t$options WHERE key = 'bucket'").await, ["1"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM T$FILES").await, ["3"]);
    assert_eq!(rows(&session, "SELECT table_name FROM sys.tables").await, ["t"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM t$ro").await, ["0"]);
    let golden = golden_session().await;
    for (table, storage, kind) in
        [("index_bloom_embedded", "EMBEDDED", "bloom-filter"), ("index_bitmap_file", "FILE", "bitmap")]
    {
        let sql = format!("SELECT DISTINCT storage_type, index_type FROM {table}$file_indexes");
        assert!(rows(&golden, &sql).await.contains(&format!("{storage},{kind}")), "{table}");
    }
}

#[tokio::test]
async fn any_session_can_use_the_warehouse() {
    let (dir, _table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    assert_eq!(warehouse.sql(&context, "SELECT 1").await.unwrap_err().code(), "NotRegistered");
    warehouse.register(&context, "lake").await.unwrap();
    let count = async |frame: datafusion::dataframe::DataFrame| frame.count().await.unwrap();
    assert_eq!(count(context.table("lake.pay.t").await.unwrap()).await, 2);
    assert_eq!(count(context.table("lake.pay.\"t@v2\"").await.unwrap()).await, 3);
    assert_eq!(count(context.sql("SELECT * FROM lake.pay.t@v2").await.unwrap()).await, 3);
    assert_eq!(count(context.sql("SELECT * FROM lake.pay.t$snapshots").await.unwrap()).await, 3);
    let ours = "SELECT * FROM lake.pay.t FOR VERSION AS OF 2 x JOIN lake.pay.t AT (VERSION => 1) y ON x.id = y.id";
    assert_eq!(count(warehouse.sql(&context, ours).await.unwrap()).await, 2);
    let call = "SELECT * FROM paimon_diff('lake.pay.t', 1, 3)";
    assert_eq!(count(warehouse.sql(&context, call).await.unwrap()).await, 3);
    warehouse.sql(&context, "PIN TABLE lake.pay.t AT (VERSION => 1)").await.unwrap();
    assert_eq!(count(warehouse.sql(&context, "SELECT * FROM lake.pay.t WHERE id = 1").await.unwrap()).await, 1);
    warehouse.sql(&context, "UNPIN ALL").await.unwrap();
    // DataFusion alone would read the latest rows and say nothing
    context.sql("SET datafusion.sql_parser.dialect = 'databricks'").await.unwrap();
    let error = context.sql("SELECT * FROM lake.pay.t VERSION AS OF 1").await.unwrap_err();
    assert_eq!(Error::from_datafusion(error).code(), "CannotTravel");
}

#[tokio::test]
async fn plans_tell_every_file_and_its_rule() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for spelling in ["EXPLAIN FILES", "EXPLAIN (FILES)"] {
        let (found, pins) =
            all(session.run_one(&format!("{spelling} SELECT * FROM t WHERE id = 3")).await.unwrap()).await;
        let kept: Vec<&str> = found.iter().map(|row| row[3].as_str()).collect();
        assert_eq!((found.len(), kept.iter().filter(|k| **k == "true").count()), (3, 1), "{found:?}");
        assert!(found.iter().all(|row| !row[4].is_empty()));
        assert_eq!(pins.len(), 1);
    }
}

#[tokio::test]
async fn statements_describe_and_show() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "DESCRIBE t").await, ["id,BIGINT,NO,PRIMARY,NULL", "v,INT,YES,NULL,NULL"]);
    assert_eq!(rows(&session, "DESCRIBE t$tags").await.len(), 7);
    assert_eq!(rows(&session, "SHOW DATABASES").await, ["pay"]);
    let create = rows(&session, "SHOW CREATE TABLE t").await.remove(0);
    assert!(create.contains("PRIMARY KEY (`id`) NOT ENFORCED") && create.contains("'bucket' = '1'"), "{create}");
    assert_eq!(code(&session, "SHOW PARTITIONS t").await, "NotPartitioned");
    assert_eq!(code(&session, "USE nowhere").await, "DatabaseNotFound");
    let used = session.run_one("USE pay").await.unwrap();
    assert_eq!(used.kind, StatementKind::Done("USE".to_string()));
    assert_eq!(session.columns("t").await.unwrap(), [("id".into(), "BIGINT".into()), ("v".into(), "INT".into())]);
    assert_eq!(session.versions("t").await.unwrap(), (vec![3, 2, 1], vec![]));
    assert_eq!(rows(&session, "SELECT arrow_typeof(1.50)").await, ["Decimal128(3, 2)"]);
    let results = session.run("SELECT 1; SET 'paimon.scan.mode' = 'latest'; SELECT 2").await.unwrap();
    assert_eq!(results.len(), 3);
}

#[tokio::test]
async fn unquoted_columns_find_their_case() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("Id", "INT"), ("订单号", "STRING"), ("amount", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "Orders", &spec).unwrap();
    table.append(&[json!({"Id": 1, "订单号": "a", "amount": 5})]).unwrap();
    let session = session_of(&dir).await;
    for sql in [
        "SELECT Id, 订单号, AMOUNT FROM \"Orders\"",
        "SELECT id, \"订单号\", amount FROM Orders WHERE ID = 1 ORDER BY iD",
        "SELECT o.id, o.订单号, o.Amount FROM orders VERSION AS OF 1 o",
    ] {
        assert_eq!(rows(&session, sql).await, ["1,a,5"], "{sql}");
    }
    assert_eq!(code(&session, "SELECT \"id\" FROM Orders").await, "ColumnNotFound");
}

#[tokio::test]
async fn vectors_switched_off_are_told_by_every_statement() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let all: Vec<_> = (0..9).map(|id| json!({"id": id, "v": id})).collect();
    table.commit().file(FileSpec::rows(&all).level(5)).kind(CommitKind::Compact).publish().unwrap();
    let file = table.live_files().unwrap().remove(0).file.file_name;
    table.commit().delete_positions(&file, &[3]).kind(CommitKind::Compact).publish().unwrap();
    table.alter(&SchemaChange::Set("deletion-vectors.enabled", "false")).unwrap();
    table.append(&[json!({"id": 9, "v": 9})]).unwrap();
    let session = session_of(&dir).await;
    let since = "deleted by vectors that are not applied, since deletion-vectors.enabled is false now";
    let notice = format!("pay.t: 1 row of 1 file is {since}");
    for sql in ["SELECT * FROM t", "SELECT count(*) FROM t", "SELECT count(*) FROM t VERSION AS OF 2"] {
        let result = session.run_one(sql).await.unwrap();
        assert_eq!(result.notices.iter().filter(|n| **n == notice).count(), 1, "{sql}: {:?}", result.notices);
    }
    let (_, counts) = session.counts("t", None).await.unwrap();
    assert_eq!(counts.total.final_rows, 10);
    assert_eq!(counts.notices, [notice]);
    let before = session.run_one("SELECT count(*) FROM t VERSION AS OF 1").await.unwrap();
    assert!(!before.notices.iter().any(|n| n.contains("vectors")), "{:?}", before.notices);
}

#[tokio::test]
async fn a_count_from_metadata_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    table.append(&[json!({"a": 1})]).unwrap();
    let session = session_of(&dir).await;
    let counted = session.run_one("SELECT count(*) FROM log").await.unwrap();
    assert!(counted.notices.iter().any(|n| n.contains("metadata")), "{:?}", counted.notices);
    let read = session.run_one("SELECT sum(a) FROM log").await.unwrap();
    assert!(read.notices.is_empty(), "{:?}", read.notices);
}

#[tokio::test]
async fn a_pin_is_kept_while_others_commit() {
    let (dir, mut table) = three_snapshots();
    let session = Arc::new(session_of(&dir).await);
    let writer = std::thread::spawn(move || {
        for i in 0..40 {
            table.append(&[json!({"id": 100 + i, "v": i})]).unwrap();
        }
    });
    let sql = "SELECT (SELECT count(*) FROM t) - (SELECT count(*) FROM t x), \
               (SELECT count(*) FROM t) + 3 - (SELECT sum(record_count) FROM t$files)";
    while !writer.is_finished() {
        assert_eq!(rows(&session, sql).await, ["0,0"]);
    }
    writer.join().unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["42"]);
}
