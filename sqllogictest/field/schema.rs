//! Schemas that changed: columns by id, options with old names, nested fields, clocks of other formats.

use lakepin::sql::{Session, Warehouse};
use lakepin::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use lakepin::testing::golden;
use serde_json::{Value, json};

use super::edit::next_schema;
use super::kit::{Done, Lake, OrText, ask, cases, check, config, expect, rows};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B071 columns_are_found_by_id,
        B073 options_that_name_a_column_of_before,
        B074 nested_fields_are_found_by_id,
        B075 clocks_are_those_of_the_type_in_every_format,
        B108 nullable_keys_are_keys,
    );
    cases!(
        tests, "schema",
        past options_follow_the_columns_into_the_past,
        swapped names_follow_the_columns,
    );
}

async fn golden_session(side: &str, zone: &str) -> Result<Session, String> {
    let path = if side == "java" { golden::java_warehouse() } else { golden::python_warehouse() }.text()?;
    let warehouse = Warehouse::open(&path.to_string_lossy(), &Default::default()).await.text()?;
    let mut config = config();
    config.database = Some("golden".into());
    config.time_zone = Some(zone.into());
    Session::new(&warehouse, config).await.text()
}

async fn columns_are_found_by_id(lake: Lake) -> Done {
    for key in [false, true] {
        let name = if key { "k" } else { "t" };
        let mut spec =
            TableSpec::new(&[("id", "INT NOT NULL"), ("a", "INT"), ("b", "INT"), ("x", "INT"), ("y", "INT")]);
        if key {
            spec = spec.primary_key(&["id"]).option("bucket", "1");
        }
        let mut t = lake.table(name, &spec)?;
        t.append(&[
            json!({"id": 1, "a": 1, "b": 2, "x": 10, "y": 20}),
            json!({"id": 2, "a": 5, "b": 6, "x": 30, "y": 40}),
        ])
        .text()?;
        for change in [
            SchemaChange::Drop("a"),
            SchemaChange::Add("a", "INT"),
            SchemaChange::Rename("b", "c"),
            SchemaChange::Rename("x", "z"),
            SchemaChange::Rename("y", "x"),
            SchemaChange::Rename("z", "y"),
        ] {
            t.alter(&change).text()?;
        }
        let newer = json!({"id": if key { 2 } else { 3 }, "a": 7, "c": 8, "x": 50, "y": 60});
        t.append(&[newer]).text()?;
        let s = lake.session().await?;
        let columns = "id, a, c, x, y";
        let right: &[&str] =
            if key { &["1|NULL|2|20|10", "2|7|8|50|60"] } else { &["1|NULL|2|20|10", "2|NULL|6|40|30", "3|7|8|50|60"] };
        expect(&s, &format!("SELECT {columns} FROM {name}"), right).await?;
        for (condition, ids) in [
            ("a = 1", vec![]),
            ("a = 7", vec![if key { "2" } else { "3" }]),
            ("c = 2", vec!["1"]),
            ("x = 20", vec!["1"]),
            ("x = 10", vec![]),
            ("y = 10", vec!["1"]),
            ("y = 20", vec![]),
            ("y > 15 AND x < 45", if key { vec![] } else { vec!["2"] }),
            ("a IS NULL", if key { vec!["1"] } else { vec!["1", "2"] }),
        ] {
            expect(&s, &format!("SELECT id FROM {name} WHERE {condition}"), &ids).await?;
        }
        expect(&s, &format!("SELECT min(y), max(c), count(a) FROM {name}"), &["10|8|1"]).await?;
        expect(&s, &format!("SELECT a, x FROM {name} VERSION AS OF 1 WHERE x = 10"), &["1|10"]).await?;
    }
    // the same history in three formats, by the reference implementation
    let s = golden_session("java", "UTC").await?;
    for kind in ["append", "pk"] {
        let parquet = rows(&s, &format!("SELECT * FROM evo_{kind}_parquet")).await?;
        check(!parquet.is_empty(), "the golden table is empty")?;
        for format in ["orc", "avro"] {
            let read = rows(&s, &format!("SELECT * FROM evo_{kind}_{format}")).await?;
            check(read == parquet, format!("evo_{kind}_{format} differs from Parquet"))?;
        }
    }
    Ok(())
}

async fn options_that_name_a_column_of_before(lake: Lake) -> Done {
    let columns = [("k", "INT NOT NULL"), ("foo", "INT"), ("w", "STRING")];
    let keyed = || TableSpec::new(&columns).primary_key(&["k"]).option("bucket", "1");
    let row = |k: i64, value: i64, w: &str, name: &str| json!({"k": k, name: value, "w": w});
    let cases = [
        (
            "aggregated",
            keyed().option("merge-engine", "aggregation").option("fields.foo.aggregate-function", "sum"),
            "fields.foo.aggregate-function",
            "1|5|b",
        ),
        ("ordered", keyed().option("sequence.field", "foo"), "sequence.field", "1|3|a"),
        (
            "grouped",
            keyed().option("merge-engine", "partial-update").option("fields.foo.sequence-group", "w"),
            "fields.foo.sequence-group",
            "1|3|a",
        ),
    ];
    for (name, spec, option, right) in cases {
        let mut t = lake.table(name, &spec)?;
        t.append(&[row(1, 3, "a", "foo")]).text()?;
        t.append(&[row(1, 2, "b", "foo")]).text()?;
        t.alter(&SchemaChange::Rename("foo", "bar")).text()?;
        let s = lake.session().await?;
        expect(&s, &format!("SELECT * FROM {name} VERSION AS OF 1"), &["1|3|a"])
            .await
            .or_else(|message| check(message.contains(option) && message.contains("foo"), message))?;
        match ask(&s, &format!("SELECT * FROM {name}")).await {
            Ok(answer) => check(answer.rows() == [right], format!("{name}: a different merge: {:?}", answer.rows()))?,
            Err(error) => {
                let text = format!("{error:?}");
                check(text.contains(option) && text.contains("foo"), format!("{name}: {text}"))?;
            }
        }
    }
    let spec = TableSpec::new(&columns).option("bucket", "4").option("bucket-key", "foo");
    let mut t = lake.table("bucketed", &spec)?;
    t.append(&(0..20).map(|n| row(n, n, "x", "foo")).collect::<Vec<_>>()).text()?;
    t.alter(&SchemaChange::Rename("foo", "bar")).text()?;
    let s = lake.session().await?;
    for n in 0..20 {
        let sql = format!("SELECT k FROM bucketed WHERE bar = {n}");
        match rows(&s, &sql).await {
            Ok(read) => check(read == [n.to_string()], format!("{sql}: {read:?}"))?,
            Err(message) => check(message.contains("bucket-key") && message.contains("foo"), message)?,
        }
    }
    Ok(())
}

async fn nested_fields_are_found_by_id(lake: Lake) -> Done {
    let columns = [
        ("id", "INT"),
        ("r", "ROW<a INT, b STRING>"),
        ("l", "ARRAY<ROW<a INT, b STRING>>"),
        ("m", "MAP<STRING, ROW<a INT, b STRING>>"),
    ];
    let mut t = lake.table("t", &TableSpec::new(&columns))?;
    let ab = |a: Value, b: Value| json!({"a": a, "b": b});
    t.append(&[
        json!({"id": 1, "r": ab(json!(1), json!("one")), "l": [ab(json!(1), json!("x")), null], "m": {"k": ab(json!(1), json!("v"))}}),
        json!({"id": 2, "r": null, "l": null, "m": null}),
        json!({"id": 3, "r": ab(json!(null), json!(null)), "l": [], "m": {}}),
    ])
    .text()?;
    // a becomes a2 BIGINT, b goes, b comes again as another field, c is new, c stands first
    next_schema(t.root(), 0, |schema| {
        let mut id = schema["highestFieldId"].as_i64().unwrap_or(0);
        for field in schema["fields"].as_array_mut().into_iter().flatten() {
            let row = match field["name"].as_str() {
                Some("r") => &mut field["type"],
                Some("l") => &mut field["type"]["element"],
                Some("m") => &mut field["type"]["value"],
                _ => continue,
            };
            let Some(nested) = row["fields"].as_array_mut() else { continue };
            nested[0]["name"] = "a2".into();
            nested[0]["type"] = "BIGINT".into();
            nested.remove(1);
            nested.push(json!({"id": id + 1, "name": "b", "type": "STRING"}));
            nested.insert(0, json!({"id": id + 2, "name": "c", "type": "INT"}));
            id += 2;
        }
        schema["highestFieldId"] = id.into();
    })?;
    let s = lake.session().await?;
    expect(&s, "SELECT id, r['a2'], r['b'], r['c'] FROM t", &["1|1|NULL|NULL", "2|NULL|NULL|NULL", "3|NULL|NULL|NULL"])
        .await?;
    expect(&s, "SELECT id FROM t WHERE r IS NULL", &["2"]).await?;
    expect(&s, "SELECT id FROM t WHERE l IS NULL", &["2"]).await?;
    expect(&s, "SELECT id FROM t WHERE r['a2'] = 1", &["1"]).await?;
    expect(&s, "SELECT arrow_typeof(r['a2']) FROM t LIMIT 1", &["Int64"]).await?;
    expect(&s, "SELECT l[1]['a2'], l[1]['b'], l[2] IS NULL FROM t WHERE id = 1", &["1|NULL|true"]).await?;
    expect(&s, "SELECT array_length(l), cardinality(m) FROM t WHERE id = 1", &["2|1"]).await?;
    expect(&s, "SELECT r['b'], l[1]['b'] FROM t VERSION AS OF 1 WHERE id = 1", &["one|x"]).await?;
    // new files beside old ones
    let mut t = TableBuilder::open(lake.path(), "d", "t").text()?;
    let new = json!({"id": 4, "r": {"c": 9, "a2": 5_000_000_000i64, "b": "new"}, "l": [{"c": 1, "a2": 2, "b": "z"}], "m": {"k": {"c": 1, "a2": 2, "b": "z"}}});
    t.commit().file(FileSpec::rows(&[new])).publish().text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT r['c'], r['a2'], r['b'] FROM t WHERE id IN (1, 4)", &["9|5000000000|new", "NULL|1|NULL"])
        .await?;
    expect(&s, "SELECT count(*) FROM t WHERE r['c'] IS NULL", &["3"]).await?;
    expect(&s, "SELECT id FROM t WHERE r['b'] = 'one'", &[]).await
}

async fn clocks_are_those_of_the_type_in_every_format(_lake: Lake) -> Done {
    // the tables hold different values of precision 9, and ORC loses a second just before 1970 (row 3)
    let java = "id, c_date, c_time, c_ts0, c_ts3, c_ts6, c_ltz3, c_ltz6";
    let python = "id, c_date, c_time, c_ts3, c_ts6, c_ltz3, c_ltz6";
    for (side, columns, tables) in [
        ("java", java, ["types_append_parquet", "types_append_orc", "types_append_avro"]),
        ("java", java, ["types_pk_parquet", "types_pk_orc", "types_pk_avro"]),
        ("python", python, ["types_parquet", "types_orc", "types_avro"]),
    ] {
        let utc = golden_session(side, "UTC").await?;
        let shanghai = golden_session(side, "Asia/Shanghai").await?;
        let rest = if side == "java" { "WHERE id <> 3" } else { "" };
        let parquet = rows(&utc, &format!("SELECT {columns} FROM {} {rest}", tables[0])).await?;
        check(!parquet.is_empty(), "the golden table is empty")?;
        for table in tables {
            let sql = format!("SELECT {columns} FROM {table} {rest}");
            let read = rows(&utc, &sql).await?;
            check(read == parquet, format!("{side} {table}: times differ from Parquet\n{read:?}\n{parquet:?}"))?;
            let far = rows(&shanghai, &sql).await?;
            check(far == parquet, format!("{side} {table}: times depend on the session's zone"))?;
        }
        // a zoned instant is found by its instant, a wall clock by its digits, whatever the zone
        for table in tables {
            let sql = |condition: &str| format!("SELECT count(*) FROM {table} WHERE {condition}");
            for s in [&utc, &shanghai] {
                let same = "c_ts3 = (SELECT max(c_ts3) FROM ".to_string() + tables[0] + ")";
                check(rows(s, &sql(&same)).await? != ["0"], format!("{table}: {same}"))?;
                let same = "c_ltz3 = (SELECT max(c_ltz3) FROM ".to_string() + tables[0] + ")";
                check(rows(s, &sql(&same)).await? != ["0"], format!("{table}: {same}"))?;
            }
        }
    }
    Ok(())
}

/// Options are the newest, columns those of the snapshot: an option for a column that was renamed or added since must
/// neither fail the read of an old snapshot nor be lost on it.
async fn options_follow_the_columns_into_the_past(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT"), ("ts", "INT")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("sequence.field", "ts")
        .option("fields.v.aggregate-function", "sum");
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"id": 1, "v": 1, "ts": 1})]).text()?;
    t.append(&[json!({"id": 1, "v": 2, "ts": 2})]).text()?;
    let next = next_schema(t.root(), 0, |schema| {
        schema["fields"][1]["name"] = "total".into();
        schema["fields"][2]["name"] = "at".into();
        let late = json!({"id": 3, "name": "late", "type": "INT"});
        if let Some(fields) = schema["fields"].as_array_mut() {
            fields.push(late);
        }
        schema["highestFieldId"] = 3.into();
        schema["options"] = json!({
            "bucket": "1", "merge-engine": "aggregation", "sequence.field": "at",
            "fields.total.aggregate-function": "sum", "fields.late.aggregate-function": "max",
        });
    })?;
    check(next.id.0 == 1, "the next schema")?;
    let mut t = TableBuilder::open(lake.path(), "d", "t").text()?;
    t.append(&[json!({"id": 1, "total": 4, "at": 3, "late": 7})]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t", &["1|7|3|7"]).await?;
    expect(&s, "SELECT * FROM t VERSION AS OF 2", &["1|3|2"]).await?;
    expect(&s, "SELECT v FROM t VERSION AS OF 1", &["1"]).await?;
    expect(&s, "SELECT count(*) FROM t VERSION AS OF 2 WHERE v = 3", &["1"]).await?;
    // a session's pin, a second reference to the same state and comparisons across the rename are such reads too
    rows(&s, "PIN TABLE t AT (VERSION => 2)").await?;
    expect(&s, "SELECT * FROM t", &["1|3|2"]).await?;
    expect(&s, "SELECT a.v FROM t a JOIN t$audit_log b ON a.id = b.id", &["3"]).await?;
    rows(&s, "UNPIN").await?;
    let twice =
        "SELECT a.v, b.v FROM t VERSION AS OF 2 a JOIN t /*+ OPTIONS('scan.snapshot-id'='2') */ b ON a.id = b.id";
    expect(&s, twice, &["3|3"]).await?;
    expect(&s, "SELECT count(*) FROM paimon_diff('t', 2, 3)", &["1"]).await?;
    expect(&s, "SELECT total, at, late FROM paimon_delta('t', 0, 2)", &["1|1|NULL", "2|2|NULL"]).await
}

/// Two columns that change names: the option that names one of them follows it, never the name.
async fn names_follow_the_columns(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("x", "INT"), ("y", "INT")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("sequence.field", "x");
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"id": 1, "x": 5, "y": 1})]).text()?;
    t.append(&[json!({"id": 1, "x": 4, "y": 9})]).text()?;
    next_schema(t.root(), 0, |schema| {
        schema["fields"][1]["name"] = "y".into();
        schema["fields"][2]["name"] = "x".into();
        schema["options"] = json!({"bucket": "1", "sequence.field": "y"});
    })?;
    let mut t = TableBuilder::open(lake.path(), "d", "t").text()?;
    t.append(&[json!({"id": 2, "y": 1, "x": 1})]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT id, y, x FROM t", &["1|5|1", "2|1|1"]).await?;
    expect(&s, "SELECT id, x, y FROM t VERSION AS OF 2", &["1|5|1"]).await?;
    expect(&s, "SELECT count(*) FROM paimon_diff('t', 1, 2)", &["0"]).await?;
    expect(&s, "SELECT count(*) FROM paimon_diff('t', 2, 3)", &["1"]).await?;
    rows(&s, "PIN TABLE t AT (VERSION => 2)").await?;
    expect(&s, "SELECT id, x, y FROM t", &["1|5|1"]).await
}

/// `primary-key.nullable`: NULL is a key value like any other, and the lowest.
async fn nullable_keys_are_keys(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("a", "INT"), ("b", "STRING"), ("v", "INT")])
        .primary_key(&["a", "b"])
        .option("bucket", "1")
        .option("primary-key.nullable", "true");
    let mut t = lake.table("t", &spec)?;
    let row = |a: Value, b: Value, v: i64| json!({"a": a, "b": b, "v": v});
    let null = || Value::Null;
    t.append(&[
        row(null(), null(), 1),
        row(null(), json!("x"), 2),
        row(json!(1), null(), 3),
        row(json!(1), json!("x"), 4),
    ])
    .text()?;
    t.append(&[row(null(), null(), 11), row(json!(1), null(), 13)]).text()?;
    let deleted = json!({"a": null, "b": "x", "v": 2, "_ROW_KIND": "-D"});
    t.append(&[deleted]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t", &["1|NULL|13", "1|x|4", "NULL|NULL|11"]).await?;
    for (condition, right) in [
        ("a IS NULL", vec!["NULL|NULL|11"]),
        ("a = 1", vec!["1|NULL|13", "1|x|4"]),
        ("b IS NULL", vec!["1|NULL|13", "NULL|NULL|11"]),
        ("a IS NULL AND b IS NULL", vec!["NULL|NULL|11"]),
        ("a IS NOT NULL AND b IS NULL", vec!["1|NULL|13"]),
        ("b = 'x'", vec!["1|x|4"]),
        ("(a IS NULL OR a = 1) AND b = 'x'", vec!["1|x|4"]),
        ("a IS DISTINCT FROM 1", vec!["NULL|NULL|11"]),
        ("coalesce(a, 0) = 0", vec!["NULL|NULL|11"]),
    ] {
        expect(&s, &format!("SELECT * FROM t WHERE {condition}"), &right).await?;
        expect(&s, &format!("SELECT count(*) FROM t WHERE {condition}"), &[&right.len().to_string()]).await?;
    }
    Ok(())
}
