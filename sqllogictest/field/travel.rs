//! Which snapshot is meant: ids, tags, times, schemas of old snapshots, and the words for all that.

use lakepin::ErrorKind;
use lakepin::spec::CommitKind;
use lakepin::sql::Session;
use lakepin::testing::builder::{FIRST_COMMIT_MILLIS, FileSpec, SchemaChange, TableBuilder, TableSpec};
use serde_json::json;

use super::edit;
use super::kit::{Done, Lake, OrText, ask, cases, cell, check, expect, expect_ordered, fails, refused, rows};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B016 times_before_the_first_snapshot_are_errors,
        B019 a_tag_outlives_its_snapshot,
        B021 numbers_are_ids_and_quoted_digits_tags_first,
        B022 an_old_snapshot_is_read_with_its_schema,
        B023 a_schema_may_be_newer_than_the_snapshot,
        B025 midnight_is_that_of_the_session,
        B027 bare_numbers_are_no_times,
        B028 maintenance_does_not_change_the_past,
        B029 unknown_ids_in_metadata_tables_are_no_errors,
        B080 a_commit_published_twice_is_found_by_its_identity,
        B112 names_stay_those_of_the_user,
        B113 every_spelling_of_time_travel_is_read,
        B117 batch_identifiers_are_told_apart_by_user,
    );
}

fn plain() -> TableSpec {
    TableSpec::new(&[("i", "INT")])
}

/// A table with the values 1..=n, one a snapshot.
fn counted(lake: &Lake, name: &str, n: i64) -> Result<TableBuilder, String> {
    let mut t = lake.table(name, &plain())?;
    for i in 1..=n {
        t.append(&[json!({"i": i})]).text()?;
    }
    Ok(t)
}

/// The snapshot that a reference means.
async fn means(s: &Session, reference: &str, id: i64) -> Done {
    let sql = format!("SELECT count(*) FROM {reference}");
    let answer = ask(s, &sql).await.map_err(|e| format!("{sql}\n  {e:?}"))?;
    let pinned = answer.pins.first().and_then(|p| p.snapshot_id);
    check(pinned == Some(id), format!("{sql} reads {pinned:?}, not {id}"))?;
    check(answer.rows() == [id.to_string()], format!("{sql}: {:?}", answer.rows()))
}

async fn times_before_the_first_snapshot_are_errors(lake: Lake) -> Done {
    counted(&lake, "t", 2)?;
    lake.table("empty", &plain())?;
    let s = lake.session().await?;
    for early in ["2026-04-15 01:00:00", "2026-04-16 00:59:59.999"] {
        let sql = format!("SELECT * FROM t TIMESTAMP AS OF '{early}'");
        refused(&s, &sql, ErrorKind::NotFound, &["2026-04-16 01:00:00", "oldest snapshot kept is 1", "utc"]).await?;
    }
    for (time, id) in [
        ("2026-04-16 01:00:00", 1),
        ("2026-04-16 01:00:59.999", 1),
        ("2026-04-16 01:01:00", 2),
        ("2099-01-01 00:00:00", 2),
    ] {
        means(&s, &format!("t TIMESTAMP AS OF '{time}'"), id).await?;
    }
    refused(&s, "SELECT * FROM empty TIMESTAMP AS OF '2099-01-01'", ErrorKind::NotFound, &["no snapshot"]).await?;
    expect(&s, "SELECT * FROM empty", &[]).await
}

async fn a_tag_outlives_its_snapshot(lake: Lake) -> Done {
    let mut t = counted(&lake, "t", 3)?;
    t.tag("eod", 2).text()?;
    for id in 4..8 {
        t.append(&[json!({"i": id})]).text()?;
    }
    t.expire(1).text()?;
    t.expire(2).text()?;
    let s = lake.session().await?;
    means(&s, "t VERSION AS OF 'eod'", 2).await?;
    expect(&s, "SELECT * FROM t VERSION AS OF 'eod'", &["1", "2"]).await?;
    let sql = "SELECT * FROM t VERSION AS OF 2";
    refused(&s, sql, ErrorKind::NotFound, &["snapshot 2", "expired", "3", "7", "eod"]).await?;
    refused(&s, "SELECT * FROM t VERSION AS OF 99", ErrorKind::NotFound, &["99", "3", "7"]).await?;
    refused(&s, "SELECT * FROM t VERSION AS OF 'eo'", ErrorKind::NotFound, &["eod"]).await?;
    Ok(())
}

async fn numbers_are_ids_and_quoted_digits_tags_first(lake: Lake) -> Done {
    let t = counted(&lake, "t", 3)?;
    t.tag("1", 2).text()?;
    let s = lake.session().await?;
    for (reference, id, words) in [
        ("t VERSION AS OF 1", 1, Some("tag")),
        ("t VERSION AS OF '1'", 2, Some("snapshot 1")),
        ("t AT (VERSION => 1)", 1, None),
        ("t AT (TAG => '1')", 2, None),
        ("t VERSION AS OF 3", 3, None),
        ("t VERSION AS OF '3'", 3, None),
    ] {
        means(&s, reference, id).await?;
        let answer = ask(&s, &format!("SELECT * FROM {reference}")).await.text()?;
        if let Some(word) = words {
            check(answer.notice_says(&[word]), format!("{reference}: no notice of {word}: {:?}", answer.notices))?;
        }
    }
    Ok(())
}

async fn an_old_snapshot_is_read_with_its_schema(lake: Lake) -> Done {
    for key in [false, true] {
        let name = if key { "k" } else { "t" };
        let spec = if key {
            TableSpec::new(&[("a", "INT NOT NULL"), ("b", "INT")]).primary_key(&["a"]).option("bucket", "1")
        } else {
            TableSpec::new(&[("a", "INT"), ("b", "INT")])
        };
        let mut t = lake.table(name, &spec)?;
        t.append(&[json!({"a": 1, "b": 2}), json!({"a": 5, "b": 6})]).text()?;
        t.alter(&SchemaChange::Drop("b")).text()?;
        t.alter(&SchemaChange::Rename("a", "a2")).text()?;
        t.alter(&SchemaChange::Retype("a2", if key { "BIGINT NOT NULL" } else { "BIGINT" })).text()?;
        t.append(&[json!({"a2": 3})]).text()?;
        let s = lake.session().await?;
        let old = format!("FROM {name} VERSION AS OF 1");
        expect(&s, &format!("SELECT * {old}"), &["1|2", "5|6"]).await?;
        expect(&s, &format!("SELECT a {old} WHERE b = 2"), &["1"]).await?;
        expect_ordered(&s, &format!("SELECT a {old} ORDER BY b DESC"), &["5", "1"]).await?;
        expect(&s, &format!("SELECT count(*) {old} WHERE a = 1"), &["1"]).await?;
        expect(&s, &format!("SELECT count(*), count(b) {old}"), &["2|2"]).await?;
        expect(&s, &format!("SELECT arrow_typeof(a) {old} LIMIT 1"), &["Int32"]).await?;
        expect(&s, &format!("SELECT a2 FROM {name}"), &["1", "3", "5"]).await?;
        expect(&s, &format!("SELECT a2 FROM {name} WHERE a2 = 1"), &["1"]).await?;
        expect(&s, &format!("SELECT arrow_typeof(a2) FROM {name} LIMIT 1"), &["Int64"]).await?;
        refused(&s, &format!("SELECT b FROM {name}"), ErrorKind::Invalid, &["b"]).await?;
        refused(&s, &format!("SELECT a2 {old}"), ErrorKind::Invalid, &["a2", "schema"]).await?;
    }
    Ok(())
}

async fn a_schema_may_be_newer_than_the_snapshot(lake: Lake) -> Done {
    let mut t = counted(&lake, "t", 1)?;
    t.alter(&SchemaChange::Add("c", "STRING")).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT i, c FROM t", &["1|NULL"]).await?;
    expect(&s, "SELECT count(*) FROM t WHERE c IS NULL", &["1"]).await?;
    let error = refused(
        &s,
        "SELECT c FROM t VERSION AS OF 1",
        ErrorKind::Invalid,
        &["'c' was added", "schema 1", "snapshot 1", "schema 0"],
    )
    .await?;
    check(!error.to_string().contains("__"), format!("an internal name: {error}"))?;
    let pins = ask(&s, "SELECT * FROM t").await.text()?.pins;
    check(
        pins[0].text.contains("schema 0") && pins[0].text.contains("schema 1"),
        format!("the pin names both schemas: {}", pins[0].text),
    )
}

async fn midnight_is_that_of_the_session(lake: Lake) -> Done {
    let mut t = lake.table("t", &plain())?;
    // 15:00, 16:00 and 16:00:00.123 UTC of the 15th: the last two are the first of the 16th in Shanghai
    let day = FIRST_COMMIT_MILLIS - 3_600_000;
    for (i, time) in [day - 9 * 3_600_000, day - 8 * 3_600_000, day - 8 * 3_600_000 + 123, day].into_iter().enumerate()
    {
        t.commit().file(FileSpec::rows(&[json!({"i": i})])).time_millis(time).publish().text()?;
    }
    let s = lake.session_in("Asia/Shanghai").await?;
    for (time, id) in [
        ("'2026-04-16 00:00:00'", 2),
        ("'2026-04-16T00:00:00'", 2),
        ("'2026-04-16'", 2),
        ("DATE '2026-04-16'", 2),
        ("TIMESTAMP '2026-04-16 00:00:00'", 2),
        ("'2026-04-16 00:00:00+08:00'", 2),
        ("'2026-04-15 16:00:00Z'", 2),
        ("'2026-04-15 16:00:00+00:00'", 2),
        ("'2026-04-16 00:00:00.123'", 3),
        ("'2026-04-16 00:00:00.122'", 2),
        ("'2026-04-16 00:00:00Z'", 4),
        ("TIMESTAMP '2026-04-16 00:00:00Z'", 4),
        ("TIMESTAMP '2026-04-16 00:00:00' + INTERVAL '1' SECOND", 3),
    ] {
        means(&s, &format!("t TIMESTAMP AS OF {time}"), id).await?;
    }
    let utc = lake.session_in("UTC").await?;
    means(&utc, "t TIMESTAMP AS OF '2026-04-16 00:00:00'", 4).await?;
    let pin = ask(&s, "SELECT * FROM t VERSION AS OF 2").await.text()?.pins[0].text.clone();
    check(pin.contains("2026-04-16 00:00:00") && pin.contains("+08"), format!("time without zone: {pin}"))?;
    let early = fails(&s, "SELECT * FROM t TIMESTAMP AS OF '2026-04-01'").await?.to_string();
    check(early.contains("+08") || early.contains("Asia/Shanghai"), format!("time without zone: {early}"))?;
    refused(&s, "SELECT * FROM t TIMESTAMP AS OF 1776297600", ErrorKind::Invalid, &["second"]).await?;
    Ok(())
}

async fn bare_numbers_are_no_times(lake: Lake) -> Done {
    counted(&lake, "t", 1)?;
    let s = lake.session().await?;
    for (number, unit, time) in [
        ("1678883047", "seconds", "2023-03-15 12:24:07.000 UTC"),
        ("1678883047", "milliseconds", "1970-01-20 10:21:23.047 UTC"),
        ("1678883047356", "milliseconds", "2023-03-15 12:24:07.356 UTC"),
    ] {
        let spelt = format!("TIMESTAMP '{time}'");
        let sql = format!("SELECT * FROM t TIMESTAMP AS OF {number}");
        refused(&s, &sql, ErrorKind::Invalid, &[&format!("{unit} {spelt}")]).await?;
        // what is offered is understood
        let sql = format!("SELECT * FROM t TIMESTAMP AS OF {spelt}");
        refused(&s, &sql, ErrorKind::NotFound, &["oldest snapshot kept", time]).await?;
    }
    // seconds beyond all calendars are no reading
    let error = refused(&s, "SELECT * FROM t TIMESTAMP AS OF 1678883047356", ErrorKind::Invalid, &[]).await?;
    check(!error.to_string().contains("as seconds"), error.to_string())
}

async fn maintenance_does_not_change_the_past(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut t = lake.table("t", &spec)?;
    for v in 1..4 {
        let rows: Vec<_> = (0..50).map(|id| json!({"id": id + v * 10, "v": v})).collect();
        t.append(&rows).text()?;
    }
    let s = lake.session().await?;
    let sum = "SELECT count(*), sum(id), sum(v), sum(id * v) FROM t VERSION AS OF 3";
    let before = rows(&s, sum).await?;
    ask(&s, "PIN TABLE t AT (VERSION => 3)").await.text()?;
    let old: Vec<String> = t.live_files().text()?.iter().map(|e| e.file.file_name.clone()).collect();
    let merged: Vec<_> =
        (10..80i64).map(|id| json!({"id": id, "v": if id >= 30 { 3 } else if id >= 20 { 2 } else { 1 }})).collect();
    t.commit().file(FileSpec::rows(&merged).level(5)).remove_all().kind(CommitKind::Compact).publish().text()?;
    t.append(&[json!({"id": 1000, "v": 9})]).text()?;
    t.expire(1).text()?;
    t.expire(2).text()?;
    for session in [&s, &lake.session().await?] {
        check(rows(session, sum).await? == before, "compaction or expiry changed snapshot 3")?;
    }
    expect(&s, "SELECT count(*) FROM t", &["70"]).await?;
    expect(&lake.session().await?, "SELECT count(*) FROM t", &["71"]).await?;
    let lost =
        edit::data_files(t.root()).into_iter().find(|p| p.to_string_lossy().contains(&old[1])).ok_or("a file")?;
    std::fs::remove_file(&lost).text()?;
    for session in [s, lake.session().await?] {
        let error = refused(&session, sum, ErrorKind::Corrupt, &[&old[1], "snapshot 3"]).await?;
        check(error.code() == "FileLost", format!("{error:?}"))?;
    }
    Ok(())
}

async fn unknown_ids_in_metadata_tables_are_no_errors(lake: Lake) -> Done {
    let mut t = counted(&lake, "t", 1)?;
    t.commit().file(FileSpec::rows(&[json!({"i": 2})])).user("x").publish().text()?;
    let s = lake.session().await?;
    for (condition, ids) in [
        ("snapshot_id IN (1, 999)", vec!["1"]),
        ("snapshot_id = 999", vec![]),
        ("snapshot_id > 999", vec![]),
        ("snapshot_id < 0", vec![]),
        ("snapshot_id BETWEEN 2 AND 999", vec!["2"]),
        ("snapshot_id = 1 OR commit_user = 'x'", vec!["1", "2"]),
    ] {
        expect(&s, &format!("SELECT snapshot_id FROM t$snapshots WHERE {condition}"), &ids).await?;
    }
    for (condition, ids) in [("schema_id IN (0, 7)", vec!["0"]), ("schema_id = 7", vec![]), ("schema_id > 7", vec![])] {
        expect(&s, &format!("SELECT schema_id FROM t$schemas WHERE {condition}"), &ids).await?;
    }
    for system in ["tags", "branches", "consumers", "files", "manifests", "partitions", "buckets", "table_indexes"] {
        rows(&s, &format!("SELECT * FROM t${system} WHERE 1 = 1")).await?;
    }
    expect(&s, "SELECT tag_name FROM t$tags WHERE tag_name = 'none'", &[]).await?;
    expect(&s, "SELECT consumer_id FROM t$consumers WHERE consumer_id = 'none'", &[]).await
}

async fn a_commit_published_twice_is_found_by_its_identity(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"id": 1, "v": 1})]).text()?;
    let again = [json!({"id": 2, "v": 2})];
    for _ in 0..2 {
        t.commit().file(FileSpec::rows(&again)).user("job").identifier(77).publish().text()?;
    }
    t.append(&[json!({"id": 3, "v": 3})]).text()?;
    let s = lake.session().await?;
    // raw rows are doubled, final rows are not
    expect(&s, "SELECT * FROM t", &["1|1", "2|2", "3|3"]).await?;
    expect(&s, "SELECT sum(record_count) FROM t$files", &["4"]).await?;
    let pinned = |sql: &'static str| {
        let s = &s;
        async move { ask(s, sql).await.map(|a| a.pins[0].snapshot_id).text() }
    };
    check(pinned("SELECT * FROM t AT (COMMIT => ('job', 77))").await? == Some(3), "the newest of the identity")?;
    check(pinned("SELECT * FROM t BEFORE (COMMIT => ('job', 77))").await? == Some(1), "before the first of it")?;
    refused(&s, "SELECT * FROM t AT (COMMIT => ('job', 78))", ErrorKind::NotFound, &["job", "78"]).await?;
    Ok(())
}

async fn names_stay_those_of_the_user(lake: Lake) -> Done {
    counted(&lake, "t", 2)?;
    let s = lake.session().await?;
    let header = |answer: super::kit::Answer| answer.schema.field(0).name().clone();
    for reference in ["t VERSION AS OF 1", "t AT (VERSION => 1)", "t TIMESTAMP AS OF '2026-04-16 01:00:00'", "t"] {
        let answer = ask(&s, &format!("SELECT min(i) FROM {reference}")).await.text()?;
        let name = header(answer);
        check(name == "min(t.i)", format!("{reference}: the header is {name}"))?;
        expect(&s, &format!("SELECT t.i FROM {reference} WHERE t.i = 1"), &["1"]).await?;
    }
    let error = fails(&s, "SELECT j FROM t VERSION AS OF 1").await?.to_string();
    check(!error.contains("__") && !error.contains('@'), format!("an internal name: {error}"))?;
    check(error.contains("t.i") || error.contains(" i"), format!("the user's columns are not named: {error}"))?;
    let explain = "EXPLAIN SELECT min(t.i) FROM t VERSION AS OF 1 WHERE t.i > 0";
    let first = ask(&s, explain).await.text()?.rows();
    let second = ask(&lake.session().await?, explain).await.text()?.rows();
    check(first == second, format!("EXPLAIN differs from run to run:\n{first:?}\n{second:?}"))?;
    check(!first.join("").contains("__"), format!("an internal name: {first:?}"))
}

async fn every_spelling_of_time_travel_is_read(lake: Lake) -> Done {
    let t = counted(&lake, "t", 3)?;
    t.tag("eod", 2).text()?;
    let s = lake.session().await?;
    for (reference, id) in [
        ("t VERSION AS OF 2", 2),
        ("t FOR VERSION AS OF 2", 2),
        ("t FOR SYSTEM_VERSION AS OF 2", 2),
        ("t for version as of 'eod'", 2),
        ("t TIMESTAMP AS OF '2026-04-16 01:01:00.123'", 2),
        ("t FOR TIMESTAMP AS OF TIMESTAMP '2026-04-16 01:01:00'", 2),
        ("t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-04-16 01:00:30'", 1),
        ("t AT (VERSION => 2)", 2),
        ("t AT (TAG => 'eod')", 2),
        ("t AT (TIMESTAMP => TIMESTAMP '2026-04-16 01:01:00')", 2),
        ("t /*+ OPTIONS('scan.snapshot-id'='2') */", 2),
        ("t /*+ OPTIONS('scan.tag-name' = 'eod') */", 2),
        ("\"t@v2\"", 2),
        ("d.t VERSION AS OF 2", 2),
        ("paimon.d.t VERSION AS OF 2", 2),
        ("t VERSION AS OF 2 AS x", 2),
        ("t VERSION AS OF 2 x", 2),
        ("t AS x VERSION AS OF 2", 2),
        ("t x FOR SYSTEM_TIME AS OF TIMESTAMP '2026-04-16 01:01:00'", 2),
    ] {
        means(&s, reference, id).await?;
    }
    expect(
        &s,
        "SELECT a.n, b.n FROM (SELECT count(*) n FROM t VERSION AS OF 1) a, (SELECT count(*) n FROM t) b",
        &["1|3"],
    )
    .await?;
    expect(
        &s,
        "SELECT b.i FROM t VERSION AS OF 1 a RIGHT JOIN t VERSION AS OF 2 b ON a.i = b.i WHERE a.i IS NULL",
        &["2"],
    )
    .await?;
    expect(&s, "WITH old AS (SELECT * FROM t VERSION AS OF 1) SELECT i FROM t EXCEPT SELECT i FROM old", &["2", "3"])
        .await?;
    expect(&s, "SELECT i FROM t WHERE i NOT IN (SELECT i FROM t FOR VERSION AS OF 2)", &["3"]).await?;
    expect(&s, "SELECT * FROM t AT (VERSION => 3) EXCEPT SELECT * FROM t AT (VERSION => 1)", &["2", "3"]).await?;
    ask(&s, "CREATE VIEW w AS SELECT i FROM t VERSION AS OF 1").await.text()?;
    expect(&s, "SELECT w.i, count(*) FROM w, t GROUP BY w.i", &["1|3"]).await?;
    let outside = tempfile::tempdir().text()?;
    let copied = outside.path().join("out.csv");
    ask(&s, &format!("COPY (SELECT i FROM t FOR VERSION AS OF 1) TO '{}'", copied.display())).await.text()?;
    let text = std::fs::read_to_string(&copied).text()?;
    check(text.trim_end().ends_with('1') && !text.contains('3'), format!("copied {text:?}"))?;
    refused(&s, "SELECT * FROM w VERSION AS OF 1", ErrorKind::Invalid, &["w"]).await?;
    refused(&s, "SELECT * FROM t VERSION AS OF 1 VERSION AS OF 2", ErrorKind::Invalid, &[]).await?;
    Ok(())
}

async fn batch_identifiers_are_told_apart_by_user(lake: Lake) -> Done {
    let mut t = lake.table("t", &plain())?;
    for i in 1..6 {
        let rows = FileSpec::rows(&[json!({"i": i})]);
        t.commit().file(rows).user(&format!("user-{i}")).identifier(i64::MAX).publish().text()?;
    }
    let s = lake.session().await?;
    expect(&s, "SELECT count(DISTINCT commit_user), count(DISTINCT commit_identifier) FROM t$snapshots", &["5|1"])
        .await?;
    means(&s, "t AT (COMMIT => ('user-3', 9223372036854775807))", 3).await?;
    check(
        cell(&s, "SELECT commit_identifier FROM t$snapshots WHERE commit_user = 'user-1'").await?
            == i64::MAX.to_string(),
        "the table shows the number",
    )?;
    let pin = ask(&s, "SELECT * FROM t").await.text()?.pins[0].text.clone();
    check(pin.contains("batch"), format!("the pin does not say batch: {pin}"))
}
