//! What changed between two snapshots.

use lakepin::spec::CommitKind;
use lakepin::testing::builder::{FileSpec, TableSpec};
use serde_json::{Value, json};

use super::kit::{Done, Lake, OrText, ask, cases, check, expect, expect_ordered, named, rows};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B031 a_delete_after_compaction_is_a_change,
        B032 limits_over_changes,
    );
    named!(
        tests,
        "changes",
        a_file_lifted_to_another_level_is_a_change_where_levels_count,
        ranges_between_tags_by_their_snapshots,
    );
}

fn ints() -> TableSpec {
    TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1")
}

fn numbered(range: std::ops::Range<i64>, v: i64) -> Vec<Value> {
    range.map(|id| json!({"id": id, "v": v})).collect()
}

async fn a_delete_after_compaction_is_a_change(lake: Lake) -> Done {
    let mut t = lake.table("t", &ints())?;
    t.append(&numbered(1..2001, 1)).text()?;
    t.tag("one", 1).text()?;
    // a minor compaction moves the rows up
    let moved = FileSpec::rows(&numbered(1..2001, 1)).level(4);
    t.commit().file(moved).remove_all().kind(CommitKind::Compact).publish().text()?;
    t.append(&[json!({"id": 999, "v": 1, "_ROW_KIND": "-D"})]).text()?;
    t.tag("two", 3).text()?;
    let mut o = lake.table("o", &ints())?;
    o.append(&[json!({"id": 1, "v": 1}), json!({"id": 2, "v": 2})]).text()?;
    o.tag("before", 1).text()?;
    for round in 0..2 {
        // overwritten, each time in two files that repeat a key
        let first = FileSpec::rows(&[json!({"id": 1, "v": 1}), json!({"id": 2, "v": 7})]);
        let second = FileSpec::rows(&[json!({"id": 2, "v": 8 + round}), json!({"id": 3, "v": 3})]);
        o.commit().remove_all().file(first).file(second).kind(CommitKind::Overwrite).publish().text()?;
    }
    o.tag("after", 3).text()?;
    let s = lake.session().await?;
    let audit = "SELECT rowkind, id, v FROM t$audit_log /*+ OPTIONS('incremental-between'='one,two') */";
    expect(&s, audit, &["-D|999|1"]).await?;
    let diff = |table: &str, from: &str, to: &str| {
        format!("SELECT * FROM paimon_diff('d.{table}', from => '{from}', to => '{to}')")
    };
    let changes = ask(&s, &diff("t", "one", "two")).await.text()?;
    check(changes.column("op")? == ["DELETE"], format!("{:?}", changes.rows()))?;
    check(changes.rows()[0].contains("999"), format!("{:?}", changes.rows()))?;
    let back = ask(&s, &diff("t", "two", "one")).await.text()?;
    check(back.column("op")? == ["INSERT"], format!("{:?}", back.rows()))?;
    let overwritten = rows(&s, &diff("o", "before", "after")).await?;
    let mut ops = ask(&s, &diff("o", "before", "after")).await.text()?.column("op")?;
    ops.sort();
    check(ops == ["INSERT", "UPDATE"], format!("only keys whose final value differs: {overwritten:?}"))?;
    let plain = "SELECT id, v FROM o /*+ OPTIONS('incremental-between'='before,after') */";
    expect(&s, plain, &["2|9", "3|3"]).await
}

async fn limits_over_changes(lake: Lake) -> Done {
    let mut t = lake.table("t", &ints())?;
    for v in 1..4 {
        t.append(&numbered(v * 10..v * 10 + 10, v)).text()?;
    }
    let s = lake.session().await?;
    let changes = "FROM t /*+ OPTIONS('incremental-between'='1,3') */";
    expect_ordered(&s, &format!("SELECT id {changes} ORDER BY id LIMIT 5"), &["20", "21", "22", "23", "24"]).await?;
    expect_ordered(&s, &format!("SELECT id {changes} ORDER BY id DESC LIMIT 2 OFFSET 1"), &["38", "37"]).await?;
    for (limit, expected) in [(0, 0), (1, 1), (5, 5), (13, 13), (20, 20), (50, 20)] {
        for from in [changes, "FROM paimon_delta('d.t', from => 1, to => 3)"] {
            let read = ask(&s, &format!("SELECT id {from} LIMIT {limit}")).await.text()?.count();
            check(read == expected, format!("{from} LIMIT {limit}: {read} rows"))?;
        }
    }
    expect(&s, &format!("SELECT count(*), min(id), max(id) {changes} WHERE v = 3"), &["10|30|39"]).await
}

async fn a_file_lifted_to_another_level_is_a_change_where_levels_count(lake: Lake) -> Done {
    let spec = ints()
        .option("merge-engine", "aggregation")
        .option("fields.v.aggregate-function", "sum")
        .option("changelog-producer", "lookup");
    let mut t = lake.table("t", &spec)?;
    t.commit().file(FileSpec::rows(&numbered(1..3, 1)).level(5)).publish().text()?;
    t.append(&numbered(1..2, 2)).text()?;
    let lifted = t.live_files().text()?.into_iter().find(|e| e.file.level == 0).ok_or("no file on level 0")?;
    let mut above = lifted.clone();
    above.file.level = 4;
    let commit = t.commit().remove(&lifted.file.file_name).entry(above).kind(CommitKind::Compact);
    commit.publish().text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t VERSION AS OF 2", &["1|3", "2|1"]).await?;
    // levels above 0 hold whole rows: the lowest one counts alone
    expect(&s, "SELECT * FROM t", &["1|2", "2|1"]).await?;
    let diff = "SELECT * FROM paimon_diff('d.t', from => 2, to => 3)";
    expect(&s, diff, &["UPDATE|1|3|2|[v]"]).await?;
    let back = "SELECT * FROM paimon_diff('d.t', from => 3, to => 2)";
    expect(&s, back, &["UPDATE|1|2|3|[v]"]).await
}

async fn ranges_between_tags_by_their_snapshots(lake: Lake) -> Done {
    let mut t = lake.table("t", &ints())?;
    t.append(&numbered(1..2, 1)).text()?;
    t.tag("a", 1).text()?;
    t.append(&numbered(2..4, 2)).text()?;
    t.append(&[json!({"id": 2, "v": 2, "_ROW_KIND": "-D"})]).text()?;
    t.tag("b", 3).text()?;
    let s = lake.session().await?;
    let range =
        |table: &str, more: &str| format!("SELECT * FROM {table} /*+ OPTIONS('incremental-between'='a,b'{more}) */");
    // two states compared: key 2 came and went between them
    expect(&s, &range("t", ""), &["3|2"]).await?;
    expect(&s, &range("t$audit_log", ""), &["+I|3|2"]).await?;
    expect(&s, &range("t", ", 'incremental-between-tag-to-snapshot'='false'"), &["3|2"]).await?;
    // what the commits between them added
    let by_snapshot = ", 'incremental-between-tag-to-snapshot'='true'";
    expect(&s, &range("t", by_snapshot), &["2|2", "3|2"]).await?;
    expect(&s, &range("t$audit_log", by_snapshot), &["+I|2|2", "+I|3|2", "-D|2|2"]).await
}
