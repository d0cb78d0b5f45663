//! Counting: merge on read, pruning that must not resurrect, limits and statistics.

use lakepin::ErrorKind;
use lakepin::spec::CommitKind;
use lakepin::testing::builder::{FileSpec, SchemaChange, TableSpec};
use serde_json::{Value, json};

use super::edit;
use super::kit::{Done, Lake, OrText, ask, cases, cell, check, expect, fails, refused, rows, says};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B001 upserts_are_not_extra_rows,
        B002 raw_sections_do_not_make_others_raw,
        B004 value_filters_do_not_resurrect_old_versions,
        B005 filters_on_aggregated_values_see_the_merged_value,
        B006 enabling_vectors_later_shows_no_key_twice,
        B007 changes_of_a_vector_table_hold_its_level_0,
        B009 limit_counts_live_rows,
        B010 limit_keeps_sections_that_must_be_merged,
        B011 counts_from_metadata_know_vectors,
        B012 filtered_counts_are_not_taken_from_statistics,
        B014 statistics_are_those_of_the_snapshot,
        B116 a_count_from_metadata_says_so,
    );
}

fn kv() -> TableSpec {
    TableSpec::new(&[("id", "INT NOT NULL"), ("v", "STRING")]).primary_key(&["id"]).option("bucket", "1")
}

fn ints() -> TableSpec {
    TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1")
}

fn numbered(range: std::ops::Range<i64>, v: i64) -> Vec<Value> {
    range.map(|id| json!({"id": id, "v": v})).collect()
}

async fn upserts_are_not_extra_rows(lake: Lake) -> Done {
    let mut t = lake.table("t", &kv())?;
    t.append(&[json!({"id": 1, "v": "old"}), json!({"id": 2, "v": "two"})]).text()?;
    t.append(&[json!({"id": 1, "v": "new"})]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t ORDER BY id", &["1|new", "2|two"]).await?;
    expect(&s, "SELECT count(*), count(DISTINCT id) FROM t", &["2|2"]).await?;
    expect(&s, "SELECT sum(record_count) FROM t$files", &["3"]).await
}

async fn raw_sections_do_not_make_others_raw(lake: Lake) -> Done {
    let mut t = lake.table("t", &ints())?;
    t.commit().file(FileSpec::rows(&numbered(1..101, 0)).level(5)).kind(CommitKind::Compact).publish().text()?;
    t.append(&numbered(200..301, 1)).text()?;
    t.append(&numbered(200..301, 2)).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT count(*), count(DISTINCT id), sum(v) FROM t", &["201|201|202"]).await?;
    let plan = ask(&s, "EXPLAIN FILES SELECT * FROM t").await.text()?;
    let (levels, reads) = (plan.column("level")?, plan.column("read")?);
    for (level, read) in levels.iter().zip(&reads) {
        let raw = read.to_lowercase().contains("raw");
        check((level == "5") == raw, format!("a file of level {level} is read as {read}"))?;
    }
    check(levels.len() == 3, "three files are planned")
}

async fn value_filters_do_not_resurrect_old_versions(lake: Lake) -> Done {
    for (name, buckets, level) in [("one", "1", 0), ("two", "2", 0), ("low", "1", 5)] {
        let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("status", "STRING")])
            .primary_key(&["id"])
            .option("bucket", buckets);
        let mut t = lake.table(name, &spec)?;
        let old =
            [json!({"id": 1, "status": "PAID"}), json!({"id": 2, "status": null}), json!({"id": 3, "status": "PAID"})];
        t.commit().file(FileSpec::rows(&old).level(level)).publish().text()?;
        t.append(&[
            json!({"id": 1, "status": "REFUNDED"}),
            json!({"id": 2, "status": "PAID"}),
            json!({"id": 3, "status": null}),
        ])
        .text()?;
        let s = lake.session().await?;
        for (condition, ids) in [
            ("status = 'PAID'", vec!["2"]),
            ("status <> 'REFUNDED'", vec!["2"]),
            ("status IN ('PAID', 'X')", vec!["2"]),
            ("status NOT IN ('REFUNDED')", vec!["2"]),
            ("status < 'Q'", vec!["2"]),
            ("status BETWEEN 'A' AND 'Q'", vec!["2"]),
            ("status LIKE 'PA%'", vec!["2"]),
            ("status IS NULL", vec!["3"]),
            ("status IS NOT NULL", vec!["1", "2"]),
            ("id = 1 AND status = 'PAID'", vec![]),
            ("id = 1 OR status = 'PAID'", vec!["1", "2"]),
            ("coalesce(status, 'PAID') = 'PAID'", vec!["2", "3"]),
        ] {
            expect(&s, &format!("SELECT id FROM {name} WHERE {condition}"), &ids).await?;
            let count = ids.len().to_string();
            expect(&s, &format!("SELECT count(*) FROM {name} WHERE {condition}"), &[&count]).await?;
        }
    }
    Ok(())
}

async fn filters_on_aggregated_values_see_the_merged_value(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT"), ("d", "INT NOT NULL")])
        .partitioned_by(&["d"])
        .primary_key(&["k", "d"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("fields.v.aggregate-function", "sum");
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"k": 1, "v": 1, "d": 1}), json!({"k": 2, "v": 1, "d": 1})]).text()?;
    t.append(&[json!({"k": 1, "v": 2, "d": 1})]).text()?;
    let partial = TableSpec::new(&[("k", "INT NOT NULL"), ("a", "INT"), ("b", "INT")])
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", "partial-update");
    let mut p = lake.table("p", &partial)?;
    p.append(&[json!({"k": 1, "a": 7, "b": null})]).text()?;
    p.append(&[json!({"k": 1, "a": null, "b": 9})]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t WHERE v = 3", &["1|3|1"]).await?;
    expect(&s, "SELECT * FROM t WHERE v = 2", &[]).await?;
    expect(&s, "SELECT k FROM t WHERE v = 1", &["2"]).await?;
    expect(&s, "SELECT min(v), max(v), count(*) FROM t", &["1|3|2"]).await?;
    expect(&s, "SELECT max(v) FROM t WHERE v > 2", &["3"]).await?;
    expect(&s, "SELECT * FROM p WHERE a = 7 AND b = 9", &["1|7|9"]).await?;
    expect(&s, "SELECT * FROM p WHERE a IS NULL OR b IS NULL", &[]).await
}

async fn enabling_vectors_later_shows_no_key_twice(lake: Lake) -> Done {
    // levels left by ordinary compactions: keys occur on several
    let mut t = lake.table("t", &ints())?;
    let base = [json!({"id": 1, "v": 1}), json!({"id": 2, "v": 2}), json!({"id": 3, "v": 3})];
    t.commit().file(FileSpec::rows(&base).level(5)).kind(CommitKind::Compact).publish().text()?;
    t.commit().file(FileSpec::rows(&[json!({"id": 1, "v": 7})]).level(4)).kind(CommitKind::Compact).publish().text()?;
    t.alter(&SchemaChange::Set("deletion-vectors.enabled", "true")).text()?;
    // and level 0 only
    let mut z = lake.table("z", &ints())?;
    for v in 1..7 {
        z.append(&[json!({"id": 1, "v": v})]).text()?;
    }
    z.append(&[json!({"id": 2, "v": 2}), json!({"id": 3, "v": 3})]).text()?;
    z.append(&[json!({"id": 1, "v": 7})]).text()?;
    z.alter(&SchemaChange::Set("deletion-vectors.enabled", "true")).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t", &["1|7", "2|2", "3|3"]).await?;
    expect(&s, "SELECT count(*), sum(v) FROM t", &["3|12"]).await?;
    expect(&s, "SELECT * FROM t WHERE v = 1", &[]).await?;
    expect(&s, "SELECT * FROM z", &["1|7", "2|2", "3|3"]).await?;
    expect(&s, "SELECT count(*), sum(v) FROM z", &["3|12"]).await?;
    // what is written under the option waits for compaction, and that is said
    z.append(&[json!({"id": 1, "v": 8})]).text()?;
    let answer = ask(&s, "SELECT * FROM z").await.text()?;
    let mut keys: Vec<String> = answer.rows().iter().map(|r| r[..1].to_string()).collect();
    keys.sort();
    check(keys == ["1", "2", "3"], format!("{:?}", answer.rows()))?;
    check(answer.notice_says(&["level 0"]), format!("nothing says that level 0 is hidden: {:?}", answer.notices))
}

async fn changes_of_a_vector_table_hold_its_level_0(lake: Lake) -> Done {
    let mut t = lake.table("t", &ints().option("deletion-vectors.enabled", "true"))?;
    t.append(&[json!({"id": 1, "v": 1}), json!({"id": 2, "v": 1})]).text()?;
    t.append(&[json!({"id": 1, "v": 2}), json!({"id": 3, "v": 1})]).text()?;
    let s = lake.session().await?;
    let changes = "SELECT rowkind, id, v FROM t$audit_log /*+ OPTIONS('incremental-between'='0,2') */";
    expect(&s, changes, &["+I|1|1", "+I|2|1", "+I|1|2", "+I|3|1"]).await?;
    expect(&s, "SELECT count(*) FROM paimon_delta('d.t', from => 0, to => 2)", &["4"]).await?;
    expect(&s, "SELECT count(*) FROM paimon_delta('d.t', from => 1, to => 2)", &["2"]).await?;
    expect(&s, "SELECT count(*) FROM t", &["0"]).await
}

async fn limit_counts_live_rows(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT")]).option("deletion-vectors.enabled", "true");
    let mut t = lake.table("t", &spec)?;
    for id in 1..4 {
        t.append(&numbered(id..id + 1, 0)).text()?;
    }
    let first = t.live_files().text()?[0].file.file_name.clone();
    t.commit().delete_positions(&first, &[0]).publish().text()?;
    let s = lake.session().await?;
    for (limit, rows) in [(0, 0), (1, 1), (2, 2), (3, 2), (9, 2)] {
        let read = ask(&s, &format!("SELECT * FROM t LIMIT {limit}")).await.text()?.count();
        check(read == rows, format!("LIMIT {limit} gave {read} rows of {rows}"))?;
    }
    expect(&s, "SELECT id FROM t", &["2", "3"]).await?;
    expect(&s, "SELECT count(*) FROM (SELECT * FROM t LIMIT 2)", &["2"]).await
}

async fn limit_keeps_sections_that_must_be_merged(lake: Lake) -> Done {
    let mut t = lake.table("t", &ints().option("bucket", "4"))?;
    let in_bucket =
        |bucket: i64, v: i64| -> Vec<Value> { (0..10).map(|n| json!({"id": n * 4 + bucket, "v": v})).collect() };
    let mut commit = t.commit().kind(CommitKind::Compact);
    for bucket in 0..4 {
        commit = commit.file(FileSpec::rows(&in_bucket(bucket, 1)).bucket(bucket as i32).level(5));
    }
    commit.publish().text()?;
    for v in [2, 3] {
        let mut commit = t.commit();
        for bucket in 2..4 {
            commit = commit.file(FileSpec::rows(&in_bucket(bucket, v)[..6]).bucket(bucket as i32));
        }
        commit.publish().text()?;
    }
    let s = lake.session().await?;
    expect(&s, "SELECT count(*), sum(v) FROM t", &["40|64"]).await?;
    for n in 1..=41usize {
        for (condition, total) in [("", 40), ("WHERE v > 0", 40), ("WHERE v = 3", 12), ("WHERE v = 2", 0)] {
            if !condition.is_empty() && n % 5 != 1 {
                continue;
            }
            let sql = format!("SELECT id FROM t {condition} LIMIT {n}");
            let mut read = ask(&s, &sql).await.text()?.sorted();
            read.dedup();
            check(read.len() == n.min(total), format!("{sql} gave {} different rows of {total}", read.len()))?;
        }
    }
    Ok(())
}

async fn counts_from_metadata_know_vectors(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT")]).option("deletion-vectors.enabled", "true");
    let mut t = lake.table("t", &spec)?;
    t.append(&numbered(1..4, 0)).text()?;
    let file = t.live_files().text()?[0].file.file_name.clone();
    t.commit().delete_positions(&file, &[0]).publish().text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT count(*) FROM t", &["2"]).await?;
    let known = rows(&s, "EXPLAIN SELECT count(*) FROM t").await?.join("\n");
    // an old writer left the cardinality out
    edit::index_files(t.root(), 2, |file| {
        for range in file.deletion_vectors.iter_mut().flatten() {
            range.cardinality = None;
        }
    })?;
    let s = lake.session().await?;
    expect(&s, "SELECT count(*) FROM t", &["2"]).await?;
    expect(&s, "SELECT id FROM t", &["2", "3"]).await?;
    expect(&s, "SELECT count(*) FROM (SELECT * FROM t LIMIT 3)", &["2"]).await?;
    let unknown = rows(&s, "EXPLAIN SELECT count(*) FROM t").await?.join("\n");
    let scans = |plan: &str| plan.contains("DataSourceExec") || plan.contains("ReadExec");
    check(!scans(&known), format!("the count is known, yet it scans:\n{known}"))?;
    check(scans(&unknown), format!("the count is not known, yet nothing is scanned:\n{unknown}"))
}

async fn filtered_counts_are_not_taken_from_statistics(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT"), ("dt", "STRING")]).partitioned_by(&["dt"]);
    let mut t = lake.table("t", &spec)?;
    let row = |id: i64, v: i64, dt: &str| json!({"id": id, "v": v, "dt": dt});
    t.append(&[row(1, 5, "a"), row(2, 15, "a"), row(3, 25, "a"), row(4, 30, "b")]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT count(*) FROM t", &["4"]).await?;
    expect(&s, "SELECT count(*) FROM t WHERE dt = 'a'", &["3"]).await?;
    expect(&s, "SELECT count(*) FROM t WHERE dt = 'a' AND v > 10", &["2"]).await?;
    expect(&s, "SELECT count(*) FROM t WHERE v > 10", &["3"]).await?;
    // filters known only while it runs
    expect(&s, "SELECT count(*) FROM t JOIN (VALUES (15), (30)) x(w) ON t.v = x.w", &["2"]).await?;
    expect(&s, "SELECT count(*) FROM t JOIN (VALUES ('a', 15)) x(p, w) ON t.v = x.w AND t.dt = x.p", &["1"]).await?;
    expect(&s, "SELECT count(*) FROM t WHERE v IN (SELECT max(v) FROM t)", &["1"]).await?;
    expect(&s, "SELECT count(*) FROM (SELECT * FROM t WHERE dt = 'a' LIMIT 2)", &["2"]).await?;
    expect(&s, "SELECT count(*) FROM (SELECT * FROM t ORDER BY v DESC LIMIT 2) WHERE dt = 'a'", &["1"]).await?;
    expect(&s, "SELECT dt, count(*) FROM t GROUP BY dt", &["a|3", "b|1"]).await?;
    expect(&s, "SELECT min(dt), max(dt) FROM t WHERE v < 30", &["a|a"]).await
}

async fn statistics_are_those_of_the_snapshot(lake: Lake) -> Done {
    let mut t = lake.table("t", &TableSpec::new(&[("i", "INT")]))?;
    t.append(&[json!({"i": null}), json!({"i": 1})]).text()?;
    let five = FileSpec::rows(&[json!({"i": 5})]);
    t.commit().remove_all().file(five).kind(CommitKind::Overwrite).publish().text()?;
    let s = lake.session().await?;
    for _ in 0..2 {
        for (version, is_null, count, min_max) in [(1, "1", "1", "1|1"), (2, "0", "1", "5|5")] {
            let of = |what: &str| format!("SELECT {what} FROM t VERSION AS OF {version}");
            expect(&s, &format!("{} WHERE i IS NULL", of("count(*)")), &[is_null]).await?;
            expect(&s, &of("count(i)"), &[count]).await?;
            expect(&s, &of("min(i), max(i)"), &[min_max]).await?;
        }
        expect(&s, "SELECT count(*) FROM t", &["1"]).await?;
    }
    Ok(())
}

async fn a_count_from_metadata_says_so(lake: Lake) -> Done {
    let mut t = lake.table("t", &TableSpec::new(&[("i", "INT")]))?;
    t.append(&[json!({"i": 1})]).text()?;
    t.append(&[json!({"i": 2})]).text()?;
    let s = lake.session().await?;
    let answer = ask(&s, "SELECT count(*) FROM t").await.text()?;
    check(answer.rows() == ["2"], "two rows")?;
    check(answer.notice_says(&["metadata"]), format!("nothing says where the count is from: {:?}", answer.notices))?;
    let lost = edit::data_files(t.root())[0].clone();
    std::fs::remove_file(&lost).text()?;
    let name = lost.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let s = lake.session().await?;
    let error = refused(&s, "SELECT * FROM t", ErrorKind::Corrupt, &[&name, "snapshot 2"]).await?;
    check(error.code() == "FileLost", format!("{error:?}"))?;
    refused(&s, "SELECT count(*) FROM t WHERE i > 0", ErrorKind::Corrupt, &[&name]).await?;
    ask(&s, "SET lakepin.verify_files = true").await.text()?;
    says(&fails(&s, "SELECT count(*) FROM t").await?, ErrorKind::Corrupt, &[&name])?;
    match s.counts("t", None).await {
        Ok(counts) => return Err(format!("exact counts read the files: {counts:?}")),
        Err(error) => {
            says(&error, ErrorKind::Corrupt, &[&name, "snapshot 2"])?;
            check(error.code() == "FileLost", format!("{error:?}"))?;
        }
    }
    check(cell(&s, "SELECT count(*) FROM t$files").await? == "2", "the file is still listed")
}
