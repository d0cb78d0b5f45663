//! Tables of which another branch gives a part of the partitions.

use lakepin::testing::builder::{FileSpec, SchemaChange, TableSpec};
use serde_json::{Value, json};

use super::edit::make_branch;
use super::kit::{Done, Lake, OrText, expect, named};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    named!(
        tests,
        "branch",
        a_partition_that_is_there_is_never_read_from_the_fallback,
        partitions_are_there_whatever_is_read_of_them,
        partitions_of_the_primary_branch_come_first,
        columns_are_found_by_name_where_their_ids_grew_apart,
    );
}

fn by_p() -> TableSpec {
    TableSpec::new(&[("p", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "STRING")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1")
}

fn row(p: &str, id: i64, v: &str) -> Value {
    json!({"p": p, "id": id, "v": v})
}

async fn a_partition_that_is_there_is_never_read_from_the_fallback(lake: Lake) -> Done {
    for (name, first_row) in [("t", false), ("first", true)] {
        let spec = if first_row { by_p().option("merge-engine", "first-row") } else { by_p() };
        let other_name = format!("{name}_other");
        let mut other = lake.table(&other_name, &spec)?;
        let rows = [row("a", 1, "fb"), row("b", 2, "fb"), row("c", 3, "fb")];
        other.commit().file(FileSpec::rows(&rows).level(5)).publish().text()?;
        let mut main = lake.table(name, &spec.option("scan.fallback-branch", "fb"))?;
        main.commit().file(FileSpec::rows(&[row("b", 20, "main")]).level(5)).publish().text()?;
        // of a first-row table nothing of this is seen yet, but the partition is there
        main.append(&[row("c", 30, "main")]).text()?;
        make_branch(main.root(), other.root(), "fb")?;
        let s = lake.session().await?;
        let seen: &[&str] = if first_row { &[] } else { &["c|30|main"] };
        expect(&s, &format!("SELECT * FROM {name}"), &[&["a|1|fb", "b|20|main"][..], seen].concat()).await?;
        for (condition, right) in [
            ("id = 2", vec![]),
            ("id = 3", vec![]),
            ("id < 20", vec!["a|1|fb"]),
            ("v = 'fb'", vec!["a|1|fb"]),
            ("p = 'b' AND id = 2", vec![]),
            ("p = 'b'", vec!["b|20|main"]),
            ("p = 'c' AND v = 'fb'", vec![]),
            ("p <> 'b' AND id = 1", vec!["a|1|fb"]),
        ] {
            expect(&s, &format!("SELECT * FROM {name} WHERE {condition}"), &right).await?;
            expect(&s, &format!("SELECT count(*) FROM {name} WHERE {condition}"), &[&right.len().to_string()]).await?;
        }
    }
    Ok(())
}

async fn partitions_are_there_whatever_is_read_of_them(lake: Lake) -> Done {
    let spec = by_p().option("bucket", "2");
    let mut other = lake.table("other", &spec)?;
    let all: Vec<Value> = ["a", "b"].iter().flat_map(|p| (0..8).map(move |id| row(p, id, "fb"))).collect();
    other.commit().file(FileSpec::rows(&all).level(5)).publish().text()?;
    let mut main = lake.table("t", &spec.option("scan.fallback-branch", "fb"))?;
    // partition b has one bucket, which is not yet compacted; each in a manifest of its own
    main.commit().file(FileSpec::rows(&[row("b", 100, "main")])).publish().text()?;
    main.commit().file(FileSpec::rows(&[row("c", 200, "main")]).level(5)).publish().text()?;
    let own = main.live_files().text()?[0].bucket.0;
    make_branch(main.root(), other.root(), "fb")?;
    let s = lake.session().await?;
    expect(&s, "SELECT p, v, count(*) FROM t GROUP BY p, v", &["a|fb|8", "b|main|1", "c|main|1"]).await?;
    // of the top level b has nothing, and nothing of the other branch's b is shown instead
    expect(&s, "SELECT p, v, count(*) FROM t$ro GROUP BY p, v", &["a|fb|8", "c|main|1"]).await?;
    for bucket in 0..2 {
        let sql = format!("SELECT DISTINCT v FROM t /*+ OPTIONS('scan.bucket'='{bucket}') */ WHERE p = 'b'");
        expect(&s, &sql, if bucket == own { &["main"] } else { &[] }).await?;
    }
    Ok(())
}

async fn partitions_of_the_primary_branch_come_first(lake: Lake) -> Done {
    let mut other = lake.table("other", &by_p())?;
    other.append(&[row("a", 1, "branch")]).text()?;
    let mut main = lake.table("t", &by_p().option("scan.primary-branch", "p"))?;
    main.append(&[row("a", 10, "main"), row("b", 20, "main")]).text()?;
    make_branch(main.root(), other.root(), "p")?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t", &["a|1|branch", "b|20|main"]).await?;
    expect(&s, "SELECT count(*) FROM t", &["2"]).await?;
    expect(&s, "SELECT * FROM t WHERE id = 10", &[]).await?;
    expect(&s, "SELECT v FROM t WHERE p = 'a'", &["branch"]).await
}

async fn columns_are_found_by_name_where_their_ids_grew_apart(lake: Lake) -> Done {
    let mut other = lake.table("other", &by_p())?;
    other.append(&[row("a", 1, "old")]).text()?;
    for change in [
        SchemaChange::Add("x", "INT"),
        SchemaChange::Add("y", "INT"),
        SchemaChange::Drop("x"),
        SchemaChange::Drop("y"),
        SchemaChange::Drop("v"),
        SchemaChange::Add("v", "STRING"),
    ] {
        other.alter(&change).text()?;
    }
    let ids: Vec<i32> = other.schema().fields.iter().map(|field| field.id).collect();
    if ids != [0, 1, 5] {
        return Err(format!("the ids of the branch are {ids:?}"));
    }
    other.append(&[row("b", 2, "new")]).text()?;
    let mut main = lake.table("t", &by_p().option("scan.fallback-branch", "fb"))?;
    main.append(&[row("c", 3, "main")]).text()?;
    make_branch(main.root(), other.root(), "fb")?;
    let s = lake.session().await?;
    // what the branch dropped is no value of the column that bears its name today
    expect(&s, "SELECT * FROM t", &["a|1|NULL", "b|2|new", "c|3|main"]).await?;
    expect(&s, "SELECT id FROM t WHERE v = 'new'", &["2"]).await?;
    expect(&s, "SELECT id FROM t WHERE v IS NULL", &["1"]).await
}
