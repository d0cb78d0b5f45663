//! What DataFusion asks of a table: every filter applied, every row counted, the same answer under every setting.

use std::collections::BTreeMap;

use lakepin::datafusion::catalog::TableProvider;
use lakepin::datafusion::logical_expr::Expr;
use lakepin::datafusion::prelude::{col, lit};
use lakepin::query::{LakeTable, QueryEnv};
use lakepin::snapshot::{Pin, PinRequest};
use lakepin::spec::CommitKind;
use lakepin::testing::builder::{FileSpec, SchemaChange, TableSpec};
use serde_json::{Value, json};

use super::kit::{Done, Lake, OrText, ask, cases, check, expect, full_scale, rows};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B086 every_filter_is_applied_in_every_pass,
        B087 rows_without_columns_are_counted,
        B089 settings_never_change_an_answer,
    );
}

async fn every_filter_is_applied_in_every_pass(lake: Lake) -> Done {
    let columns = [("k", "INT NOT NULL"), ("dt", "STRING NOT NULL"), ("v", "INT"), ("s", "STRING")];
    let spec = TableSpec::new(&columns).partitioned_by(&["dt"]).primary_key(&["dt", "k"]).option("bucket", "2");
    let mut t = lake.table("t", &spec)?;
    let day = |k: i64| ["a", "b", "c"][k as usize % 3];
    let row = |k: i64| json!({"k": k, "dt": day(k), "v": k * 10, "s": format!("s{}", k % 5)});
    t.append(&(0..60).map(row).collect::<Vec<_>>()).text()?;
    t.append(&(30..50).map(row).collect::<Vec<_>>()).text()?;
    let s = lake.session().await?;
    ask(&s, "CREATE VIEW w AS SELECT * FROM t WHERE k > 5").await.text()?;
    let conditions = ["dt = 'a'", "k < 40", "v > 100", "s <> 's1'", "k + v > 0", "length(dt) = 1"];
    let right = |from: i64| {
        (from..60)
            .filter(|k| k % 3 == 0 && *k < 40 && k * 10 > 100 && k % 5 != 1)
            .map(|k| k.to_string())
            .collect::<Vec<_>>()
    };
    for passes in 1..=5 {
        ask(&s, &format!("SET datafusion.optimizer.max_passes = {passes}")).await.text()?;
        for (table, from) in [("t", 0), ("w", 6)] {
            let mut turned = conditions.to_vec();
            for _ in 0..conditions.len() {
                turned.rotate_left(1);
                let expected = right(from);
                let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
                let sql = format!("SELECT k FROM {table} WHERE {}", turned.join(" AND "));
                expect(&s, &sql, &expected).await?;
                let count = expected.len().to_string();
                let sql = format!("SELECT count(*) FROM {table} WHERE {}", turned.join(" AND "));
                expect(&s, &sql, &[&count]).await?;
            }
        }
    }
    // the contract itself: one answer a filter, whatever stands beside it
    let table = s.warehouse().catalog().table("d", "t").await.text()?;
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.text()?;
    let provider = LakeTable::try_new(pin, QueryEnv::new()).text()?;
    let filters: [Expr; 4] =
        [col("dt").eq(lit("a")), col("v").gt(lit(100)), col("k").lt(lit(40)), (col("k") + col("v")).gt(lit(0))];
    let alone: Vec<_> =
        filters.iter().map(|f| provider.supports_filters_pushdown(&[f])).collect::<Result<Vec<_>, _>>().text()?;
    check(alone.iter().all(|a| a.len() == 1), "one answer for one filter")?;
    for turn in 0..filters.len() {
        let mut order: Vec<usize> = (0..filters.len()).collect();
        order.rotate_left(turn);
        let turned: Vec<&Expr> = order.iter().map(|i| &filters[*i]).collect();
        let answers = provider.supports_filters_pushdown(&turned).text()?;
        let expected: Vec<_> = order.iter().map(|i| alone[*i][0].clone()).collect();
        check(answers == expected, format!("answers {answers:?}, alone {expected:?}"))?;
    }
    Ok(())
}

/// Tables of every way of reading, each with the values 0..100 of `k`, three of which have v = 1.
fn tables(lake: &Lake) -> Result<Vec<&'static str>, String> {
    let columns = [("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "INT"), ("s", "STRING")];
    let row = |k: i64, v: Value| json!({"k": k, "p": if k % 2 == 0 { "even" } else { "odd" }, "v": v, "s": format!("s{k:03}")});
    let value = |k: i64| match k {
        7 | 50 | 93 => json!(1),
        k if k % 10 == 3 => Value::Null,
        k => json!(k + 100),
    };
    let all: Vec<Value> = (0..100).map(|k| row(k, value(k))).collect();
    let stale: Vec<Value> = (20..80).map(|k| row(k, json!(1))).collect();
    let plain = TableSpec::new(&columns).partitioned_by(&["p"]);
    let keyed = plain.clone().primary_key(&["p", "k"]).option("bucket", "2");
    let vectors = keyed.clone().option("deletion-vectors.enabled", "true");
    lake.table("append", &plain)?.commit().file(FileSpec::rows(&all).row_group_rows(7)).publish().text()?;
    let mut t = lake.table("merged", &keyed)?;
    t.commit().file(FileSpec::rows(&stale).level(5).row_group_rows(7)).kind(CommitKind::Compact).publish().text()?;
    t.commit().file(FileSpec::rows(&all).row_group_rows(7)).publish().text()?;
    t.append(&[json!({"k": 1000, "p": "even", "v": 1, "_ROW_KIND": "-D"})]).text()?;
    let mut t = lake.table("vectors", &vectors)?;
    t.commit().file(FileSpec::rows(&stale).level(5).row_group_rows(7)).kind(CommitKind::Compact).publish().text()?;
    let files = t.live_files().text()?;
    let mut commit = t.commit().file(FileSpec::rows(&all).level(4).row_group_rows(7)).kind(CommitKind::Compact);
    for entry in &files {
        let rows: Vec<u64> = (0..entry.file.row_count as u64).collect();
        commit = commit.delete_positions(&entry.file.file_name, &rows);
    }
    commit.publish().text()?;
    let mut t = lake.table("evolved", &TableSpec::new(&[("k", "INT"), ("old", "SMALLINT"), ("p", "STRING")]))?;
    let old = |k: i64| json!({"k": k, "old": value(k), "p": if k % 2 == 0 { "even" } else { "odd" }});
    t.commit().file(FileSpec::rows(&(0..60).map(old).collect::<Vec<_>>()).row_group_rows(7)).publish().text()?;
    t.alter(&SchemaChange::Rename("old", "v")).text()?;
    t.alter(&SchemaChange::Retype("v", "BIGINT")).text()?;
    t.alter(&SchemaChange::Add("s", "STRING")).text()?;
    t.append(&(60..100).map(|k| row(k, value(k))).collect::<Vec<_>>()).text()?;
    let sums = keyed.option("merge-engine", "aggregation").option("fields.v.aggregate-function", "sum");
    let mut t = lake.table("summed", &sums)?;
    let half = |k: i64, n: i64| row(k, value(k).as_i64().map_or(Value::Null, |v| json!(v / 2 + n * (v % 2))));
    t.append(&(0..100).map(|k| half(k, 0)).collect::<Vec<_>>()).text()?;
    t.append(&(0..100).map(|k| half(k, 1)).collect::<Vec<_>>()).text()?;
    Ok(vec!["append", "merged", "vectors", "evolved", "summed"])
}

async fn rows_without_columns_are_counted(lake: Lake) -> Done {
    let names = tables(&lake)?;
    lake.table("empty", &TableSpec::new(&[("k", "INT"), ("v", "INT")]))?;
    let s = lake.session().await?;
    for name in names {
        for (sql, right) in [
            (format!("SELECT count(*) FROM {name}"), "100"),
            (format!("SELECT count(*) FROM {name} WHERE v = 1"), "3"),
            (format!("SELECT count(1) FROM {name} WHERE v IS NULL"), "9"),
            (format!("SELECT count(*) FROM {name} WHERE p = 'even' AND v = 1"), "1"),
            (format!("SELECT count(*) FROM {name} a, {name} b WHERE a.v = 1 AND b.v = 1"), "9"),
            (format!("SELECT count(*) FROM {name} CROSS JOIN (SELECT k FROM {name} WHERE v = 1) one"), "300"),
            (format!("SELECT count(*) FROM (SELECT 1 FROM {name} WHERE k < 10)"), "10"),
            (format!("SELECT count(*) FROM (SELECT p FROM {name})"), "100"),
            (format!("SELECT sum(1) FROM {name}"), "100"),
            (format!("SELECT count(*) FROM {name} WHERE true"), "100"),
            (format!("SELECT count(*) FROM {name} WHERE false"), "0"),
            (format!("SELECT count(*) FROM (SELECT * FROM {name} LIMIT 17)"), "17"),
        ] {
            expect(&s, &sql, &[right]).await?;
        }
        check(ask(&s, &format!("SELECT 1 FROM {name}")).await.text()?.count() == 100, format!("SELECT 1 FROM {name}"))?;
        let some = ask(&s, &format!("SELECT 1 FROM {name} WHERE v = 1")).await.text()?.count();
        check(some == 3, format!("SELECT 1 FROM {name} WHERE v = 1: {some}"))?;
    }
    expect(&s, "SELECT count(*) FROM empty", &["0"]).await?;
    expect(&s, "SELECT count(*) FROM empty WHERE v = 1", &["0"]).await?;
    expect(&s, "SELECT count(*), max(v) FROM empty", &["0|NULL"]).await?;
    expect(&s, "SELECT 1 FROM empty", &[]).await?;
    expect(&s, "SELECT count(*) FROM empty a, append b", &["0"]).await
}

const SETTINGS: [&str; 5] = [
    "datafusion.execution.parquet.pushdown_filters",
    "datafusion.execution.parquet.pruning",
    "datafusion.execution.collect_statistics",
    "datafusion.optimizer.enable_dynamic_filter_pushdown",
    "lakepin.merge_source",
];

async fn settings_never_change_an_answer(lake: Lake) -> Done {
    let names = tables(&lake)?;
    let mut queries = Vec::new();
    for name in &names {
        for sql in [
            "SELECT * FROM t",
            "SELECT count(*) FROM t",
            "SELECT count(*) FROM t WHERE v = 1",
            "SELECT k FROM t WHERE v = 1",
            "SELECT k, s FROM t WHERE s = 's050' OR v IS NULL",
            "SELECT k FROM t WHERE k BETWEEN 40 AND 60 AND v <> 1",
            "SELECT k FROM t WHERE p = 'odd' AND k > 90",
            "SELECT k FROM t WHERE s LIKE 's00%' OR k % 10 = 1",
            "SELECT p, count(*), sum(v), min(s), max(k) FROM t GROUP BY p",
            "SELECT min(v), max(v), count(v), min(p) FROM t",
            "SELECT k, v FROM t ORDER BY v DESC NULLS LAST, k LIMIT 5",
            "SELECT k FROM t ORDER BY k LIMIT 7",
            "SELECT s FROM t WHERE v = 1 ORDER BY s DESC LIMIT 2",
            "SELECT a.k FROM t a JOIN t b ON a.k = b.k WHERE b.v = 1",
            "SELECT a.k FROM t a JOIN (VALUES (7), (93), (500)) x(k) ON a.k = x.k",
            "SELECT k FROM t WHERE k IN (SELECT k FROM t WHERE v = 1)",
            "SELECT k FROM t WHERE k > (SELECT avg(k) FROM t WHERE v IS NULL) AND v = 1",
            "SELECT count(*) FROM (SELECT k FROM t LIMIT 13)",
        ] {
            queries.push(sql.replace("FROM t", &format!("FROM {name}")).replace("JOIN t ", &format!("JOIN {name} ")));
        }
    }
    let mut right: Vec<Vec<String>> = Vec::new();
    // all of DataFusion's settings with its own Parquet source, and without that source the plainest
    let all = 1usize << SETTINGS.len();
    let settings = if full_scale() { (0..all).collect() } else { [vec![0], (all / 2..all).collect()].concat() };
    for setting in settings {
        let s = lake.session().await?;
        for (bit, name) in SETTINGS.iter().enumerate() {
            ask(&s, &format!("SET {name} = {}", setting >> bit & 1 == 1)).await.text()?;
        }
        for (at, sql) in queries.iter().enumerate() {
            let read = rows(&s, sql).await.map_err(|m| format!("setting {setting:05b}: {m}"))?;
            match right.get(at) {
                None => right.push(read),
                Some(right) => check(&read == right, format!("setting {setting:05b}: {sql}\n  {read:?}\n  {right:?}"))?,
            }
        }
    }
    // the first answers are right, not only alike
    for (sql, read) in queries.iter().zip(&right) {
        if sql.contains("WHERE v = 1") && sql.starts_with("SELECT k FROM") && !sql.contains('(') {
            check(read == &["50", "7", "93"], format!("{sql}: {read:?}"))?;
        }
    }
    check(queries.len() == right.len(), "every query was asked")
}
