//! Buckets: hashes below zero, counts that changed, literals of another type, keys bound in part.

use lakepin::ErrorKind;
use lakepin::spec::bucket::bucket_of;
use lakepin::spec::options::BucketFunction;
use lakepin::spec::{DataType, Datum};
use lakepin::testing::builder::{SchemaChange, TableSpec};
use serde_json::{Value, json};

use super::kit::{Done, Lake, OrText, ask, cases, check, expect, full_scale, refused};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B053 negative_hashes_find_their_bucket,
        B054 each_entry_has_its_own_bucket_count,
        B057 literals_are_hashed_as_the_column_is,
        B058 a_bucket_needs_the_whole_key,
    );
}

async fn negative_hashes_find_their_bucket(lake: Lake) -> Done {
    let numbers = TableSpec::new(&[("a", "INT NOT NULL"), ("v", "INT")]).primary_key(&["a"]).option("bucket", "4");
    let mut t = lake.table("t", &numbers)?;
    t.append(&(-1000..=1000).map(|a| json!({"a": a, "v": a})).collect::<Vec<_>>()).text()?;
    let texts = TableSpec::new(&[("a", "STRING NOT NULL"), ("v", "INT")]).primary_key(&["a"]).option("bucket", "4");
    let mut u = lake.table("u", &texts)?;
    u.append(&(-1000..=1000).map(|a| json!({"a": format!("key {a}"), "v": a})).collect::<Vec<_>>()).text()?;
    let s = lake.session().await?;
    let step = if full_scale() { 1 } else { 29 };
    for a in (-1000..=1000).step_by(step) {
        expect(&s, &format!("SELECT v FROM t WHERE a = {a}"), &[&a.to_string()]).await?;
        expect(&s, &format!("SELECT v FROM u WHERE a = 'key {a}'"), &[&a.to_string()]).await?;
    }
    let all: Vec<String> = (-1000..=1000).map(|a| a.to_string()).collect();
    expect(&s, &format!("SELECT count(*), sum(v) FROM t WHERE a IN ({})", all.join(", ")), &["2001|0"]).await?;
    let some: Vec<String> = (-10..=10).map(|a| format!("'key {a}'")).collect();
    expect(&s, &format!("SELECT count(*), sum(v) FROM u WHERE a IN ({})", some.join(", ")), &["21|0"]).await?;
    // and the buckets are really chosen: for one key, and for nearly as long a list as is hashed
    let kept = async |condition: &str| {
        let answer = ask(&s, &format!("EXPLAIN FILES SELECT * FROM t WHERE {condition}")).await.text()?;
        let files = answer.column("kept")?.into_iter().zip(answer.column("bucket")?);
        Ok::<_, String>(files.filter(|(kept, _)| kept == "true").map(|(_, bucket)| bucket).collect::<Vec<_>>())
    };
    check(kept("a = -7").await?.len() == 1, "one bucket of four is read")?;
    for two in [[0, 1], [2, 3], [0, 3]] {
        let mut keys = Vec::new();
        for a in -1000..=1000 {
            let bucket = bucket_of(BucketFunction::Default, &[Datum::Int(a)], &[&DataType::Int], 4).text()?;
            if bucket.is_some_and(|bucket| two.contains(&bucket)) && keys.len() < 900 {
                keys.push(a);
            }
        }
        let list: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let condition = format!("a IN ({})", list.join(", "));
        let read = kept(&condition).await?;
        check(
            keys.len() == 900 && read == two.map(|b: i32| b.to_string()),
            format!("{} keys of buckets {two:?}: {read:?} are read", keys.len()),
        )?;
        let right = format!("900|{}", keys.iter().sum::<i32>());
        expect(&s, &format!("SELECT count(*), sum(v) FROM t WHERE {condition}"), &[&right]).await?;
    }
    Ok(())
}

async fn each_entry_has_its_own_bucket_count(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "INT")])
        .partitioned_by(&["p"])
        .primary_key(&["k", "p"])
        .option("bucket", "2");
    let mut t = lake.table("t", &spec)?;
    let rows_of = |p: &str| -> Vec<Value> { (0..60).map(|k| json!({"k": k, "p": p, "v": k * 2})).collect() };
    t.append(&rows_of("p1")).text()?;
    t.alter(&SchemaChange::Set("bucket", "4")).text()?;
    t.append(&rows_of("p2")).text()?;
    let s = lake.session().await?;
    for k in 0..60 {
        let value = (k * 2).to_string();
        let both = [format!("p1|{value}"), format!("p2|{value}")];
        let both: Vec<&str> = both.iter().map(String::as_str).collect();
        expect(&s, &format!("SELECT p, v FROM t WHERE k = {k}"), &both).await?;
    }
    expect(&s, "SELECT count(*) FROM t WHERE k = 7 AND p = 'p1'", &["1"]).await?;
    // somebody sets the option while reading
    for option in ["8", "1", "3"] {
        let sql = format!("SELECT count(*) FROM t /*+ OPTIONS('bucket'='{option}') */ WHERE k IN (1, 2, 3, 4, 5, 6)");
        let error = refused(&s, &sql, ErrorKind::Invalid, &["bucket", "fixed by the table"]).await?;
        check(error.code() == "FixedOption", format!("{error:?}"))?;
    }
    expect(&s, "SELECT count(*) FROM t WHERE k IN (1, 2, 3, 4, 5, 6)", &["12"]).await?;
    Ok(())
}

async fn literals_are_hashed_as_the_column_is(lake: Lake) -> Done {
    type Make = (&'static str, &'static str, fn(usize) -> (Value, String));
    let types: Vec<Make> = vec![
        ("ts3", "TIMESTAMP(3)", |n| text_and(n, "123", "TIMESTAMP ")),
        ("ts6", "TIMESTAMP(6)", |n| text_and(n, "123456", "TIMESTAMP ")),
        ("ts9", "TIMESTAMP(9)", |n| text_and(n, "123456789", "TIMESTAMP ")),
        ("ltz3", "TIMESTAMP(3) WITH LOCAL TIME ZONE", |n| text_and(n, "123", "TIMESTAMP ")),
        ("dec", "DECIMAL(10, 2)", |n| (json!(format!("{n}.50")), format!("{n}.5"))),
        ("big_dec", "DECIMAL(38, 2)", |n| (json!(format!("{n}.50")), format!("{n}.50"))),
        ("whole", "DECIMAL(10, 2)", |n| (json!(format!("{n}.00")), format!("{n}"))),
        ("long", "BIGINT", |n| (json!(n), format!("{n}"))),
        ("long_cast", "BIGINT", |n| (json!(n), format!("CAST({n} AS INT)"))),
        ("small", "SMALLINT", |n| (json!(n), format!("{n}"))),
        ("chars", "CHAR(5)", |n| (json!(format!("{n:05}")), format!("'{n:05}'"))),
        ("text", "STRING", |n| (json!(format!("text {n} 中")), format!("'text {n} 中'"))),
        ("day", "DATE", |n| {
            let day = format!("2026-{:02}-{:02}", n / 28 + 1, n % 28 + 1);
            (json!(day), format!("'{day}'"))
        }),
        ("real", "DOUBLE", |n| (json!(n as f64 + 0.5), format!("{n}.5"))),
        ("bool", "BOOLEAN", |n| (json!(n % 2 == 0), format!("{}", n % 2 == 0))),
    ];
    let mut specs = Vec::new();
    for (name, data_type, make) in &types {
        let spec = TableSpec::new(&[("k", data_type), ("v", "INT")]).option("bucket", "5").option("bucket-key", "k");
        let mut t = lake.table(name, &spec)?;
        let rows: Vec<Value> = (0..50).map(|n| json!({"k": make(n).0, "v": n})).collect();
        t.append(&rows).text()?;
        specs.push((*name, *make));
    }
    let s = lake.session().await?;
    for (name, make) in specs {
        let shared = name == "bool";
        for n in (0..50).step_by(7) {
            let sql = format!("SELECT count(*) FROM {name} WHERE k = {} AND v = {n}", make(n).1);
            expect(&s, &sql, &["1"]).await?;
            if !shared {
                expect(&s, &format!("SELECT v FROM {name} WHERE {} = k", make(n).1), &[&n.to_string()]).await?;
            }
        }
        let all: Vec<String> = (0..50).map(|n| make(n).1).collect();
        expect(&s, &format!("SELECT count(*) FROM {name} WHERE k IN ({})", all.join(", ")), &["50"]).await?;
    }
    Ok(())
}

fn text_and(n: usize, digits: &str, word: &str) -> (Value, String) {
    let text = format!("2026-04-16T10:{:02}:{:02}.{digits}", n / 60, n % 60);
    (json!(text), format!("{word}'{text}'"))
}

async fn a_bucket_needs_the_whole_key(lake: Lake) -> Done {
    let spec =
        TableSpec::new(&[("a", "INT"), ("b", "INT"), ("v", "INT")]).option("bucket", "6").option("bucket-key", "a,b");
    let mut t = lake.table("t", &spec)?;
    let mut all = Vec::new();
    for a in 0..10 {
        for b in [json!(null), json!(0), json!(1), json!(2), json!(3)] {
            all.push(json!({"a": a, "b": b, "v": a}));
        }
    }
    t.append(&all).text()?;
    let s = lake.session().await?;
    for (condition, count) in [
        ("a = 1", "5"),
        ("a = 1 AND b = 2", "1"),
        ("a = 1 AND b IN (2, 3)", "2"),
        ("a IN (1, 2) AND b IN (2, 3)", "4"),
        ("a = 1 OR b = 2", "14"),
        ("a = 1 AND b IS NULL", "1"),
        ("(a = 1 AND b = 2) OR (a = 2 AND b = 3)", "2"),
        ("(a = 1 AND b = 2) OR a = 3", "6"),
        ("a = 1 AND b > 1", "2"),
        ("a = 1 AND (b = 2 OR b IS NULL)", "2"),
        ("a + 0 = 1 AND b = 2", "1"),
    ] {
        expect(&s, &format!("SELECT count(*) FROM t WHERE {condition}"), &[count]).await?;
        // not answered from statistics
        expect(&s, &format!("SELECT count(v) FROM t WHERE {condition}"), &[count]).await?;
    }
    let kept = |sql: &'static str| {
        let s = &s;
        async move {
            let kept = ask(s, sql).await.text()?.column("kept")?;
            Ok::<_, String>(kept.iter().filter(|k| *k == "true").count())
        }
    };
    check(kept("EXPLAIN FILES SELECT * FROM t WHERE a = 1 AND b = 2").await? == 1, "one bucket")?;
    check(kept("EXPLAIN FILES SELECT * FROM t WHERE a + v > -1").await? == 6, "all buckets")
}
