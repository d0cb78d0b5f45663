//! Databases, tables, columns, partition values, tags and branches with names of every kind.

use std::fs;

use lakepin::testing::builder::TableSpec;
use serde_json::json;

use super::edit::files_below;
use super::kit::{Done, Lake, OrText, cases, check, expect, fails, rows};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "names",
        every any_name_in_any_role,
        longest the_longest_names_a_disk_takes,
        near names_that_differ_little,
        inner columns_named_like_inner_ones,
    );
}

const NAMES: &[&str] = &[
    "50%",
    "100%25",
    "a b",
    " lead",
    "trail ",
    "订单",
    "😀",
    "Größe",
    "a%2Fb",
    "%2e%2e",
    "x#y",
    "x#1",
    "q?",
    "a.b",
    "...",
    ".hidden",
    "it's",
    "say \"hi\"",
    "back\\slash",
    "a+b&c=d",
    "semi;colon",
    "-- comment",
    "/",
    "/* c *",
    "{}[]^",
    "a:b",
    "*",
    "~",
    "select",
    "NULL",
    "123",
    "1.5",
    "-1",
    "${VAR}",
    "`tick`",
    "a,b",
    "(a)",
    "dash-and_underscore",
];

/// As an SQL name.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// As an SQL text.
fn text(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

/// A name that a database, table, tag or branch can have: a folder's, without the mark of system tables.
fn is_a_folder(name: &str) -> bool {
    !name.contains(['/', '$'])
}

async fn any_name_in_any_role(lake: Lake) -> Done {
    lake.table("seed", &TableSpec::new(&[("i", "INT")]))?;
    for (number, name) in NAMES.iter().enumerate() {
        let plain = format!("t{number}");
        // as a column, a partition column and its value, where nothing else has to be a folder
        let table = if is_a_folder(name) { *name } else { &plain };
        let database = if is_a_folder(name) { *name } else { "d" };
        let spec = TableSpec::new(&[("id", "INT NOT NULL"), (name, "STRING NOT NULL"), ("v", "STRING")])
            .partitioned_by(&[name])
            .primary_key(&[name, "id"])
            .option("bucket", "1");
        let mut t = lakepin::testing::builder::TableBuilder::create(lake.path(), database, table, &spec).text()?;
        t.append(&[json!({"id": 1, *name: name, "v": name}), json!({"id": 2, *name: "other", "v": "x"})]).text()?;
        t.append(&[json!({"id": 1, *name: name, "v": "new"})]).text()?;
        if is_a_folder(name) {
            t.tag(name, 1).text()?;
            branch(t.root(), name, 1)?;
        }
        let s = lake.session().await?;
        let (column, value) = (quoted(name), text(name));
        let full = format!("{}.{}", quoted(database), quoted(table));
        let near = |message: String| format!("{name:?}: {message}");
        let both = [format!("1|{name}|new"), "2|other|x".to_string()];
        let both: Vec<&str> = both.iter().map(String::as_str).collect();
        expect(&s, &format!("SELECT id, {column}, v FROM {full}"), &both).await.map_err(near)?;
        expect(&s, &format!("SELECT id FROM {full} WHERE {column} = {value}"), &["1"]).await.map_err(near)?;
        expect(&s, &format!("SELECT id FROM {full} WHERE {column} <> {value}"), &["2"]).await.map_err(near)?;
        expect(&s, &format!("SELECT id FROM {full} WHERE v = {value}"), &[]).await.map_err(near)?;
        expect(&s, &format!("SELECT t.{column} FROM {full} VERSION AS OF 1 AS t WHERE v = {value}"), &[name])
            .await
            .map_err(near)?;
        expect(&s, &format!("SELECT count(*) FROM {full} GROUP BY {column}"), &["1", "1"]).await.map_err(near)?;
        let system = |suffix: &str| format!("{}.{}", quoted(database), quoted(&format!("{table}${suffix}")));
        let partitions = rows(&s, &format!("SELECT partition FROM {}", system("partitions"))).await.map_err(near)?;
        check(partitions.contains(&format!("{name}={name}")), near(format!("$partitions: {partitions:?}")))?;
        let described = rows(&s, &format!("DESCRIBE {full}")).await.map_err(near)?.join("\n");
        check(described.contains(name), near(format!("DESCRIBE: {described}")))?;
        if !is_a_folder(name) {
            continue;
        }
        let old = format!("1|{name}");
        let at_tag = format!("SELECT id, v FROM {full} VERSION AS OF {value} WHERE id = 1");
        // digits are a tag first, which is said
        expect(&s, &at_tag, &[&old]).await.map_err(near)?;
        expect(&s, &format!("SELECT tag_name FROM {}", system("tags")), &[name]).await.map_err(near)?;
        let on_branch = format!("SELECT id, v FROM {} WHERE id = 1", system(&format!("branch_{name}")));
        expect(&s, &on_branch, &[&old]).await.map_err(near)?;
        expect(&s, &format!("SELECT branch_name FROM {}", system("branches")), &[name]).await.map_err(near)?;
        let listed = rows(&s, &format!("SHOW TABLES IN {}", quoted(database))).await.map_err(near)?.join("\n");
        check(listed.contains(name), near(format!("SHOW TABLES: {listed}")))?;
        let pinned = format!("PIN TABLE {full} AT (TAG => {value})");
        rows(&s, &pinned).await.map_err(near)?;
        expect(&s, &format!("SELECT v FROM {full} WHERE id = 1"), &[name]).await.map_err(near)?;
    }
    let s = lake.session().await?;
    let listed = rows(&s, "SHOW DATABASES").await?.join("\n");
    for name in NAMES.iter().filter(|name| is_a_folder(name)) {
        check(listed.contains(name), format!("database {name:?} is not listed: {listed}"))?;
    }
    Ok(())
}

/// A branch that begins with a snapshot of the table.
fn branch(root: &std::path::Path, name: &str, snapshot: i64) -> Done {
    let to = root.join(format!("branch/branch-{name}"));
    fs::create_dir_all(to.join("schema")).text()?;
    fs::create_dir_all(to.join("snapshot")).text()?;
    for file in files_below(&root.join("schema")) {
        fs::copy(&file, to.join("schema").join(file.file_name().unwrap_or_default())).text()?;
    }
    let file = format!("snapshot/snapshot-{snapshot}");
    fs::copy(root.join(&file), to.join(&file)).text().map(|_| ())
}

async fn the_longest_names_a_disk_takes(lake: Lake) -> Done {
    lake.table("seed", &TableSpec::new(&[("i", "INT")]))?;
    // a name on disk has 255 bytes: what stands around ours is taken from them
    let long = |around: usize, wide: bool| {
        let room = 255 - around;
        if wide { format!("{}{}", "x".repeat(room % 3), "订".repeat(room / 3)) } else { "y".repeat(room) }
    };
    for wide in [false, true] {
        let (database, table) = (long(".db".len(), wide), long(0, wide));
        let (column, tag, on_branch) = (long(200, wide), long("tag-".len(), wide), long("branch-".len(), wide));
        let value = long(column.len() + 1, wide);
        let spec = TableSpec::new(&[("id", "INT"), (&column, "STRING")]).partitioned_by(&[&column]);
        let mut t = lakepin::testing::builder::TableBuilder::create(lake.path(), &database, &table, &spec).text()?;
        t.append(&[json!({"id": 1, column.as_str(): value})]).text()?;
        t.append(&[json!({"id": 2, column.as_str(): value})]).text()?;
        t.tag(&tag, 1).text()?;
        branch(t.root(), &on_branch, 1)?;
        let s = lake.session().await?;
        let full = format!("{}.{}", quoted(&database), quoted(&table));
        expect(&s, &format!("SELECT id FROM {full} WHERE {} = {}", quoted(&column), text(&value)), &["1", "2"]).await?;
        expect(&s, &format!("SELECT id FROM {full} VERSION AS OF {}", text(&tag)), &["1"]).await?;
        let other = quoted(&format!("{table}$branch_{on_branch}"));
        expect(&s, &format!("SELECT id FROM {}.{other}", quoted(&database)), &["1"]).await?;
        // longer than anything can be: an error in words
        let longer = format!("{}.{}", quoted(&database), quoted(&format!("{table}z")));
        let error = fails(&s, &format!("SELECT * FROM {longer}")).await?;
        check(error.code() == "TableNotFound", format!("{error:?}"))?;
        let error = fails(&s, &format!("SELECT * FROM {full} VERSION AS OF {}", text(&format!("{tag}zzzzz")))).await?;
        check(error.kind() == lakepin::ErrorKind::NotFound, format!("{error:?}"))?;
    }
    Ok(())
}

async fn names_that_differ_little(lake: Lake) -> Done {
    // in case, in a blank, in how an accent is written, in a zero-width character
    let names = ["upper", "UPPER", "Upper", "upper ", " upper", "é", "e\u{301}", "upper\u{200b}", "uppеr"];
    for (i, name) in names.iter().enumerate() {
        let mut t = lake.table(name, &TableSpec::new(&[("i", "INT")]))?;
        t.append(&[json!({"i": i})]).text()?;
    }
    let columns: Vec<(&str, &str)> = names.iter().map(|name| (*name, "INT")).collect();
    let mut row = serde_json::Map::new();
    names.iter().enumerate().for_each(|(i, name)| drop(row.insert((*name).to_string(), json!(i))));
    lake.table("all", &TableSpec::new(&columns))?.append(&[row.into()]).text()?;
    let s = lake.session().await?;
    for (i, name) in names.iter().enumerate() {
        expect(&s, &format!("SELECT i FROM {}", quoted(name)), &[&i.to_string()]).await?;
        expect(&s, &format!("SELECT {0} FROM \"all\" WHERE {0} = {i}", quoted(name)), &[&i.to_string()]).await?;
    }
    Ok(())
}

async fn columns_named_like_inner_ones(lake: Lake) -> Done {
    let names = ["_ROW_POSITION", "_ROW_ID", "_row_kind", "_LEVEL", "__source", "count(*)", "rowkind", "_PARTITION"];
    let mut columns = vec![("id", "INT NOT NULL")];
    columns.extend(names.iter().map(|name| (*name, "INT")));
    for (table, vectors) in [("plain", "false"), ("vectors", "true")] {
        let spec = TableSpec::new(&columns)
            .primary_key(&["id"])
            .option("bucket", "1")
            .option("deletion-vectors.enabled", vectors);
        let mut t = lake.table(table, &spec)?;
        let row = |id: i32, add: i32| {
            let mut row = serde_json::Map::new();
            row.insert("id".into(), json!(id));
            names.iter().enumerate().for_each(|(i, name)| drop(row.insert((*name).into(), json!(i as i32 + add))));
            serde_json::Value::Object(row)
        };
        use lakepin::testing::builder::FileSpec;
        t.commit().file(FileSpec::rows(&[row(1, 0), row(2, 0), row(3, 0)]).level(5)).publish().text()?;
        let first = t.live_files().text()?[0].file.file_name.clone();
        let mut commit = t.commit().file(FileSpec::rows(&[row(2, 100)]).level(4));
        if vectors == "true" {
            commit = commit.delete_positions(&first, &[1]);
        }
        commit.publish().text()?;
        let s = lake.session().await?;
        for (i, name) in names.iter().enumerate() {
            let sql = format!("SELECT id, {} FROM {table}", quoted(name));
            expect(&s, &sql, &[&format!("1|{i}"), &format!("2|{}", i + 100), &format!("3|{i}")]).await?;
            let sql = format!("SELECT id FROM {table} WHERE {} = {}", quoted(name), i + 100);
            expect(&s, &sql, &["2"]).await?;
        }
    }
    Ok(())
}
