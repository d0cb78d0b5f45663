//! Statistics and literals: bounds that are cut, missing or of another type never lose a row.

use lakepin::spec::{BinaryRow, Datum, SimpleStats};
use lakepin::sql::Session;
use lakepin::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use serde_json::{Value, json};

use super::edit::{entries, stats};
use super::kit::{Done, Lake, OrText, ask, cases, check, expect, expect_ordered, fails, named, rows, same};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B040 cut_text_bounds_are_no_values,
        B041 bytes_are_ordered_unsigned,
        B042 literals_meet_bounds_of_an_older_type,
        B044 dense_statistics_follow_field_ids,
        B045 missing_statistics_keep_the_file,
        B047 nan_and_negative_zero,
        B048 like_with_escape,
        B050 timestamps_of_every_precision,
        B052 literals_that_cannot_be_cast,
    );
    named!(
        tests,
        "stats",
        rows_that_an_index_finds_may_be_deleted,
        first_and_last_keys_bound_nothing_where_files_are_not_sorted,
    );
}

/// One commit for each row.
fn one_file_a_row(lake: &Lake, name: &str, spec: &TableSpec, rows: &[Value]) -> Result<TableBuilder, String> {
    let mut t = lake.table(name, spec)?;
    let mut commit = t.commit();
    for row in rows {
        commit = commit.file(FileSpec::rows(std::slice::from_ref(row)));
    }
    commit.publish().text()?;
    Ok(t)
}

/// The same query over the table and over the same rows in memory gives the same rows.
async fn as_in_memory(s: &Session, select: &str, condition: &str, table: &str, memory: &str) -> Done {
    let sql = |from: &str| format!("SELECT {select} FROM {from} WHERE {condition}");
    let (read, right) = (rows(s, &sql(table)).await?, rows(s, &sql(memory)).await?);
    same(&sql(table), &right, &read)
}

/// Conditions that no row can be asked, over the table or in memory: the same error for both.
async fn as_refused_in_memory(s: &Session, conditions: &[(&str, &str)], table: &str, memory: &str) -> Done {
    for (condition, code) in conditions {
        for from in [table, memory] {
            let sql = format!("SELECT * FROM {from} WHERE {condition}");
            let error = fails(s, &sql).await?;
            check(error.code() == *code, format!("{sql}\n  should be {code}: {error:?}"))?;
        }
    }
    Ok(())
}

async fn cut_text_bounds_are_no_values(lake: Lake) -> Done {
    let high = "\u{10ffff}".repeat(20);
    let names = ["aaaaaaaaaaaaaaaaZ1", "aaaaaaaaaaaaaaaaZ2", high.as_str()];
    let spec = TableSpec::new(&[("id", "INT"), ("name", "STRING")]);
    let rows_of: Vec<Value> = names.iter().enumerate().map(|(i, n)| json!({"id": i, "name": n})).collect();
    let t = one_file_a_row(&lake, "t", &spec, &rows_of)?;
    // truncate(16), as writers do by default: the upper bound is rounded up, or missing when it cannot be
    let cut = "a".repeat(16);
    let up = format!("{}b", "a".repeat(15));
    let types = ["INT", "STRING"];
    let mut n = 0;
    entries(t.root(), 1, |entry| {
        let id = Datum::Int(n);
        let (min, max) = if n < 2 {
            (Datum::String(cut.clone()), Datum::String(up.clone()))
        } else {
            (Datum::String("\u{10ffff}".repeat(16)), Datum::Null)
        };
        entry.file.value_stats =
            stats(&types, &[id.clone(), min], &[id, max], &[Some(0), Some(0)]).expect("statistics encode");
        n += 1;
    })?;
    check(n == 3, "three files")?;
    let s = lake.session().await?;
    expect(&s, "SELECT max(name) FROM t", &[&high]).await?;
    expect(&s, "SELECT min(name) FROM t", &[names[0]]).await?;
    expect(&s, "SELECT max(name) FROM t WHERE id < 2", &[names[1]]).await?;
    for (condition, ids) in [
        ("name = 'aaaaaaaaaaaaaaaaZ2'", vec!["1"]),
        ("name > 'aaaaaaaaaaaaaaaaZ1'", vec!["1", "2"]),
        ("name >= 'aaaaaaaaaaaaaaaaZ2'", vec!["1", "2"]),
        ("name < 'aaaaaaaaaaaaaaaaZ2'", vec!["0"]),
        ("name <> 'aaaaaaaaaaaaaaaaZ1'", vec!["1", "2"]),
        ("name LIKE 'aaaaaaaaaaaaaaaaZ%'", vec!["0", "1"]),
        ("name NOT LIKE 'aaaaaaaaaaaaaaaaZ%'", vec!["2"]),
        ("name IN ('aaaaaaaaaaaaaaaaZ1', 'b')", vec!["0"]),
        ("name > 'zzz'", vec!["2"]),
        ("name = 'aaaaaaaaaaaaaaaa'", vec![]),
        ("name <= 'aaaaaaaaaaaaaaaa'", vec![]),
        ("starts_with(name, 'aaaaaaaaaaaaaaaaZ')", vec!["0", "1"]),
    ] {
        expect(&s, &format!("SELECT id FROM t WHERE {condition}"), &ids).await?;
    }
    expect(&s, &format!("SELECT id FROM t WHERE name = '{high}'"), &["2"]).await
}

async fn bytes_are_ordered_unsigned(lake: Lake) -> Done {
    let bytes = [json!({"b": "7f", "v": 1}), json!({"b": "80", "v": 2}), json!({"b": "ff", "v": 3})];
    let t = one_file_a_row(&lake, "t", &TableSpec::new(&[("b", "VARBINARY(10)"), ("v", "INT")]), &bytes)?;
    // with bounds, as some writers give them
    let mut n = 0;
    entries(t.root(), 1, |entry| {
        let b = Datum::Binary(vec![[0x7f, 0x80, 0xff][n]]);
        let v = Datum::Int(n as i32 + 1);
        entry.file.value_stats =
            stats(&["VARBINARY(10)", "INT"], &[b.clone(), v.clone()], &[b, v], &[Some(0), Some(0)]).expect("encode");
        n += 1;
    })?;
    let spec =
        TableSpec::new(&[("b", "VARBINARY(10) NOT NULL"), ("v", "INT")]).primary_key(&["b"]).option("bucket", "1");
    let mut k = lake.table("k", &spec)?;
    let newer: Vec<Value> =
        bytes.iter().map(|row| json!({"b": row["b"], "v": row["v"].as_i64().unwrap_or(0) + 10})).collect();
    k.commit().file(FileSpec::rows(&bytes).level(5)).publish().text()?;
    k.append(&newer[1..]).text()?;
    k.append(&newer[2..]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT v FROM t WHERE b > X'7F'", &["2", "3"]).await?;
    expect(&s, "SELECT v FROM t WHERE b BETWEEN X'80' AND X'FF'", &["2", "3"]).await?;
    expect(&s, "SELECT v FROM t WHERE b = X'80'", &["2"]).await?;
    expect(&s, "SELECT v FROM t WHERE b < X'80'", &["1"]).await?;
    expect_ordered(&s, "SELECT v FROM t ORDER BY b", &["1", "2", "3"]).await?;
    expect(&s, "SELECT v FROM k", &["1", "12", "13"]).await?;
    expect(&s, "SELECT v FROM k WHERE b > X'7F'", &["12", "13"]).await?;
    expect(&s, "SELECT v FROM k WHERE b <= X'80'", &["1", "12"]).await?;
    expect_ordered(&s, "SELECT v FROM k ORDER BY b DESC", &["13", "12", "1"]).await
}

async fn literals_meet_bounds_of_an_older_type(lake: Lake) -> Done {
    let mut t =
        lake.table("t", &TableSpec::new(&[("id", "INT"), ("f", "DECIMAL(5, 2)"), ("i", "INT"), ("l", "BIGINT")]))?;
    t.append(&[json!({"id": 1, "f": "111.32", "i": 5, "l": 5_000_000_000i64})]).text()?;
    t.alter(&SchemaChange::Retype("f", "DECIMAL(6, 3)")).text()?;
    t.alter(&SchemaChange::Retype("i", "BIGINT")).text()?;
    t.alter(&SchemaChange::Retype("l", "INT")).text()?;
    let s = lake.session().await?;
    for (condition, count) in [
        ("f < 111.321", "1"),
        ("f = 111.321", "0"),
        ("f <> 111.321", "1"),
        ("f = 111.32", "1"),
        ("f >= 111.3201", "0"),
        ("f IN (111.320, 7)", "1"),
        ("f > 111.3199", "1"),
        ("f < 99999.5", "1"),
        ("i < 3000000000", "1"),
        ("i = 3000000000", "0"),
        ("i <> 3000000000", "1"),
        ("i = 5.0", "1"),
        ("i < 5.5", "1"),
        ("i = -4294967291", "0"),
        // BIGINT read as INT is cut to its low half: 5 000 000 000 is 705 032 704
        ("l = 705032704", "1"),
        ("l < 1000000000", "1"),
        ("l > 4000000000", "0"),
        ("l = 5000000000", "0"),
        ("l <> 5000000000", "1"),
        ("l BETWEEN 705032704 AND 705032704", "1"),
    ] {
        expect(&s, &format!("SELECT count(id) FROM t WHERE {condition}"), &[count]).await?;
        expect(&s, &format!("SELECT count(*) FROM t WHERE {condition}"), &[count]).await?;
    }
    expect(&s, "SELECT f, i, l FROM t", &["111.320|5|705032704"]).await?;
    expect(&s, "SELECT min(l), max(l), min(i), max(f) FROM t", &["705032704|705032704|5|111.320"]).await
}

async fn dense_statistics_follow_field_ids(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("a", "INT"), ("b", "INT"), ("c", "INT")]);
    let mut t = one_file_a_row(
        &lake,
        "t",
        &spec,
        &[json!({"a": 1, "b": 2, "c": 100}), json!({"a": 3, "b": 100, "c": 2}), json!({"a": 5, "b": 6, "c": null})],
    )?;
    let mut n = 0;
    let values = [(1, Some(100)), (3, Some(2)), (5, None)];
    entries(t.root(), 1, |entry| {
        let (a, c) = values[n];
        let c = c.map_or(Datum::Null, Datum::Int);
        let bounds = [Datum::Int(a), c.clone()];
        let nulls = Some(i64::from(c.is_null()));
        entry.file.value_stats = stats(&["INT", "INT"], &bounds, &bounds, &[Some(0), nulls]).expect("encode");
        entry.file.value_stats_cols = Some(vec!["a".into(), "c".into()]);
        n += 1;
    })?;
    let s = lake.session().await?;
    let conditions = [
        ("c = 100", vec!["1"]),
        ("c = 2", vec!["3"]),
        ("c = 1", vec![]),
        ("c IS NULL", vec!["5"]),
        ("c IS NOT NULL", vec!["1", "3"]),
        ("a = 3", vec!["3"]),
        ("a > 1", vec!["3", "5"]),
    ];
    for (condition, ids) in conditions.iter().chain(&[("b = 100", vec!["3"]), ("b < 3", vec!["1"])]) {
        expect(&s, &format!("SELECT a FROM t WHERE {condition}"), ids).await?;
    }
    t.alter(&SchemaChange::Drop("b")).text()?;
    t.alter(&SchemaChange::Rename("c", "b")).text()?;
    let s = lake.session().await?;
    for (condition, ids) in &conditions {
        expect(&s, &format!("SELECT a FROM t WHERE {}", condition.replace('c', "b")), ids).await?;
    }
    Ok(())
}

async fn missing_statistics_keep_the_file(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("x", "INT"), ("y", "STRING")]);
    let data: Vec<Value> = vec![
        json!({"id": 1, "x": 1, "y": "a"}),
        json!({"id": 2, "x": null, "y": null}),
        json!({"id": 3, "x": 3, "y": null}),
        json!({"id": 4, "x": null, "y": "d"}),
        json!({"id": 5, "x": 5, "y": "e"}),
    ];
    let types = ["INT", "INT", "STRING"];
    let nothing = [Datum::Null, Datum::Null, Datum::Null];
    type Change = (&'static str, fn(&mut lakepin::spec::ManifestEntry));
    let changes: Vec<Change> = vec![
        ("as_written", |_| {}),
        ("no_bounds", |e| e.file.value_stats.null_counts.iter_mut().for_each(|n| *n = None)),
        ("no_counts", |e| e.file.value_stats.null_counts.clear()),
        ("some_counts", |e| e.file.value_stats.null_counts.truncate(2)),
    ];
    for (name, change) in changes {
        let t = one_file_a_row(&lake, name, &spec, &data)?;
        entries(t.root(), 1, change)?;
    }
    let all_null = |counts: [Option<i64>; 3]| stats(&types, &nothing, &nothing, &counts);
    for (name, counts) in [("counts_only", [Some(0), Some(1), Some(1)]), ("none", [None, None, None])] {
        let t = one_file_a_row(&lake, name, &spec, &data)?;
        let mut n = 0;
        entries(t.root(), 1, |entry| {
            let is_null = |column: &str| i64::from(data[n][column].is_null());
            let counts = counts.map(|c| c);
            let true_counts = [Some(0), counts[1].map(|_| is_null("x")), counts[2].map(|_| is_null("y"))];
            let counts = if counts[0].is_none() { counts } else { true_counts };
            entry.file.value_stats = all_null(counts).expect("encode");
            n += 1;
        })?;
    }
    // one column without statistics, the others with
    let t = one_file_a_row(&lake, "one_column", &spec, &data)?;
    entries(t.root(), 1, |entry| {
        entry.file.value_stats = stats(&[], &[], &[], &[]).expect("encode");
        entry.file.value_stats_cols = Some(Vec::new());
    })?;
    let s = lake.session().await?;
    for table in ["as_written", "no_bounds", "no_counts", "some_counts", "counts_only", "none", "one_column"] {
        for (condition, ids) in [
            ("x IS NULL", vec!["2", "4"]),
            ("x IS NOT NULL", vec!["1", "3", "5"]),
            ("y IS NULL", vec!["2", "3"]),
            ("y IS NOT NULL", vec!["1", "4", "5"]),
            ("x = 3", vec!["3"]),
            ("x <> 3", vec!["1", "5"]),
            ("x NOT IN (1, 3)", vec!["5"]),
            ("x > 1", vec!["3", "5"]),
            ("NOT (x > 1)", vec!["1"]),
            ("y = 'd'", vec!["4"]),
            ("y <> 'd'", vec!["1", "5"]),
            ("y LIKE 'a%'", vec!["1"]),
            ("x IS NULL AND y IS NULL", vec!["2"]),
            ("x IS NULL OR y = 'e'", vec!["2", "4", "5"]),
        ] {
            expect(&s, &format!("SELECT id FROM {table} WHERE {condition}"), &ids).await?;
        }
        expect(&s, &format!("SELECT count(x), count(y), min(x), max(y) FROM {table}"), &["3|3|1|e"]).await?;
    }
    Ok(())
}

async fn nan_and_negative_zero(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("x", "DOUBLE")]);
    let data = [
        json!({"id": 1, "x": 1.0}),
        json!({"id": 2, "x": "NaN"}),
        json!({"id": 3, "x": -0.0}),
        json!({"id": 4, "x": 0.0}),
        json!({"id": 5, "x": null}),
        json!({"id": 6, "x": 1000.0}),
    ];
    one_file_a_row(&lake, "t", &spec, &data)?;
    // bounds that leave NaN out
    let mut both = lake.table("mixed", &spec)?;
    both.append(&data).text()?;
    entries(both.root(), 1, |entry| {
        let bounds = |x: f64, id: i32| [Datum::Int(id), Datum::Double(x)];
        entry.file.value_stats =
            stats(&["INT", "DOUBLE"], &bounds(0.0, 1), &bounds(1000.0, 6), &[Some(0), Some(1)]).expect("encode");
    })?;
    let s = lake.session().await?;
    let memory = "(VALUES (1, CAST(1.0 AS DOUBLE)), (2, CAST('NaN' AS DOUBLE)), (3, CAST('-0.0' AS DOUBLE)), \
                  (4, CAST(0.0 AS DOUBLE)), (5, NULL), (6, CAST(1000.0 AS DOUBLE))) m(id, x)";
    expect(&s, "SELECT id FROM t WHERE isnan(x)", &["2"]).await?;
    expect(&s, "SELECT id FROM t WHERE x > 5000", &["2"]).await?;
    for table in ["t", "mixed"] {
        for condition in [
            "x > 100",
            "x > 5000",
            "x >= 1000",
            "x < 5",
            "NOT (x < 5)",
            "NOT (x <= 1000)",
            "x = x",
            "x <> x",
            "isnan(x)",
            "NOT isnan(x)",
            "x = 0.0",
            "x = CAST('-0.0' AS DOUBLE)",
            "x <> 0.0",
            "x >= 0.0",
            "x <= 0.0",
            "x < 0.0",
            "x > CAST('-0.0' AS DOUBLE)",
            "x BETWEEN -1 AND 1",
            "x NOT BETWEEN -1 AND 1",
            "x IN (0.0, 1.0)",
            "x NOT IN (0.0, 1.0)",
            "x IS NULL",
            "x IS NOT NULL",
            "x = CAST('NaN' AS DOUBLE)",
            "x <> CAST('NaN' AS DOUBLE)",
            "x < CAST('NaN' AS DOUBLE)",
            "abs(x) > 1",
            "x + 1 > 2",
            "x > 1 OR x IS NULL",
        ] {
            as_in_memory(&s, "id", condition, table, memory).await?;
            as_in_memory(&s, "count(*), min(x), max(x)", condition, table, memory).await?;
        }
        as_in_memory(&s, "min(x), max(x), count(x)", "true", table, memory).await?;
    }
    Ok(())
}

async fn like_with_escape(lake: Lake) -> Done {
    let values = ["a%", "abc", "a\\x", "a_c", "A%", "a\\%"];
    let data: Vec<Value> = values.iter().map(|v| json!({"s": v})).collect();
    one_file_a_row(&lake, "t", &TableSpec::new(&[("s", "STRING")]), &data)?;
    let s = lake.session().await?;
    let list: Vec<String> = values.iter().map(|v| format!("('{v}')")).collect();
    let memory = format!("(VALUES {}) m(s)", list.join(", "));
    for condition in [r"s LIKE 'a\%'", "s LIKE 'a!%' ESCAPE '!'", "s LIKE 'a^%' ESCAPE '^'", r"s LIKE 'a\%' ESCAPE '\'"]
    {
        expect(&s, &format!("SELECT s FROM t WHERE {condition}"), &["a%"]).await?;
    }
    expect(&s, r"SELECT s FROM t WHERE s LIKE 'a\!%' ESCAPE '!'", &[r"a\%"]).await?;
    expect(&s, "SELECT s FROM t WHERE s ILIKE 'A!%' ESCAPE '!'", &["a%", "A%"]).await?;
    expect(&s, "SELECT s FROM t WHERE s LIKE 'a_c'", &["abc", "a_c"]).await?;
    for condition in [
        r"s LIKE 'a\%'",
        r"s LIKE 'a!%' ESCAPE '!'",
        "s LIKE 'a_c'",
        r"s LIKE 'a\_c'",
        "s LIKE 'a%'",
        "s ILIKE 'A%'",
        r"s ILIKE 'A\%'",
        r"s LIKE 'a\\%'",
        r"s NOT LIKE 'a\%'",
        "s LIKE '%'",
        "s LIKE ''",
        "s LIKE 'a'",
        r"s LIKE '\a%'",
        "s SIMILAR TO 'a%'",
    ] {
        as_in_memory(&s, "s", condition, "t", &memory).await?;
    }
    Ok(())
}

async fn timestamps_of_every_precision(lake: Lake) -> Done {
    let columns = [
        ("id", "INT"),
        ("t3", "TIMESTAMP(3)"),
        ("t6", "TIMESTAMP(6)"),
        ("t9", "TIMESTAMP(9)"),
        ("l3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ];
    let row = |id: i64, base: &str, nanos: &str| {
        let at = |n: usize| format!("{base}.{}", &nanos[..n]);
        json!({"id": id, "t3": at(3), "t6": at(6), "t9": at(9), "l3": at(3)})
    };
    let data = [
        row(1, "1969-12-31T23:59:59", "999999999"),
        row(2, "1970-01-01T00:00:00", "000000000"),
        row(3, "2026-04-16T10:00:00", "123456789"),
        row(4, "1900-01-01T00:00:00", "000000001"),
    ];
    one_file_a_row(&lake, "t", &TableSpec::new(&columns), &data)?;
    let s = lake.session().await?;
    let ts = |text: &str| format!("TIMESTAMP '{text}'");
    for (condition, ids) in [
        (format!("t3 < {}", ts("1970-01-01 00:00:00")), vec!["1", "4"]),
        (format!("t3 = {}", ts("1969-12-31 23:59:59.999")), vec!["1"]),
        (format!("t3 = {}", ts("1969-12-31 23:59:59.999999")), vec![]),
        (format!("t3 < {}", ts("1969-12-31 23:59:59.9995")), vec!["1", "4"]),
        (format!("t3 > {}", ts("1969-12-31 23:59:59.9985")), vec!["1", "2", "3"]),
        (format!("t3 >= {}", ts("2026-04-16 10:00:00.1231")), vec![]),
        (format!("t3 >= {}", ts("2026-04-16 10:00:00.123")), vec!["3"]),
        (format!("t3 < {}", ts("2026-04-16 10:00:00.1235")), vec!["1", "2", "3", "4"]),
        (format!("t3 <= {}", ts("2026-04-16 10:00:00.1229")), vec!["1", "2", "4"]),
        (format!("{} > t3", ts("1969-12-31 23:59:59.9995")), vec!["1", "4"]),
        (format!("t3 <> {}", ts("1969-12-31 23:59:59.999999")), vec!["1", "2", "3", "4"]),
        (format!("t3 IN ({}, {})", ts("1969-12-31 23:59:59.999"), ts("1969-12-31 23:59:59.9999")), vec!["1"]),
        (format!("t3 IN ({})", ts("1969-12-31 23:59:59.9999")), vec![]),
        (format!("t3 NOT IN ({})", ts("1969-12-31 23:59:59.9999")), vec!["1", "2", "3", "4"]),
        (
            format!("t3 BETWEEN {} AND {}", ts("1969-12-31 23:59:59.9985"), ts("1970-01-01 00:00:00.0001")),
            vec!["1", "2"],
        ),
        (
            format!("t3 NOT BETWEEN {} AND {}", ts("1969-12-31 23:59:59.9985"), ts("1970-01-01 00:00:00.0001")),
            vec!["3", "4"],
        ),
        (format!("t6 = {}", ts("1969-12-31 23:59:59.999999")), vec!["1"]),
        (format!("t6 > {}", ts("1969-12-31 23:59:59.9999985")), vec!["1", "2", "3"]),
        (format!("t6 < {}", ts("2026-04-16 10:00:00.123456001")), vec!["1", "2", "3", "4"]),
        (format!("t6 IN ({}, {})", ts("2026-04-16 10:00:00.123456"), ts("1970-01-01 00:00:00")), vec!["2", "3"]),
        (format!("t9 = {}", ts("2026-04-16 10:00:00.123456789")), vec!["3"]),
        (format!("t9 = {}", ts("2026-04-16 10:00:00.123456")), vec![]),
        (format!("t9 <= {}", ts("1969-12-31 23:59:59.999999999")), vec!["1", "4"]),
        (format!("t9 < {}", ts("1900-01-01 00:00:00.000000002")), vec!["4"]),
        ("t9 <> t6".to_string(), vec!["1", "3", "4"]),
        ("date_trunc('day', t3) = '1969-12-31'".to_string(), vec!["1"]),
        ("CAST(t6 AS DATE) = DATE '1969-12-31'".to_string(), vec!["1"]),
        (format!("l3 = {}", ts("2026-04-16T10:00:00.123Z")), vec!["3"]),
        (format!("l3 = {}", ts("2026-04-16T18:00:00.123+08:00")), vec!["3"]),
        (format!("l3 < {}", ts("1970-01-01T08:00:00+08:00")), vec!["1", "4"]),
    ] {
        expect(&s, &format!("SELECT id FROM t WHERE {condition}"), &ids).await?;
    }
    let shanghai = lake.session_in("Asia/Shanghai").await?;
    expect(&shanghai, "SELECT id FROM t WHERE t3 = TIMESTAMP '2026-04-16 10:00:00.123'", &["3"]).await?;
    expect(&shanghai, "SELECT id FROM t WHERE l3 = TIMESTAMP '2026-04-16T10:00:00.123Z'", &["3"]).await?;
    expect(&s, "SELECT min(t9), max(t3) FROM t", &["1900-01-01T00:00:00.000000001|2026-04-16T10:00:00.123"]).await
}

async fn literals_that_cannot_be_cast(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("dt", "DATE"), ("p", "INT")]).partitioned_by(&["p"]);
    let data = [json!({"id": 5, "dt": "2026-02-27", "p": 1}), json!({"id": 6, "dt": "2026-03-01", "p": 2})];
    one_file_a_row(&lake, "t", &spec, &data)?;
    let keyed = TableSpec::new(&[("id", "INT NOT NULL"), ("dt", "DATE"), ("p", "INT")])
        .primary_key(&["id"])
        .option("bucket", "2");
    lake.table("k", &keyed)?.append(&data).text()?;
    let s = lake.session().await?;
    ask(
        &s,
        "CREATE TEMPORARY TABLE m AS SELECT CAST(id AS INT) id, CAST(dt AS DATE) dt, CAST(p AS INT) p FROM \
             (VALUES (5, '2026-02-27', 1), (6, '2026-03-01', 2)) v(id, dt, p)",
    )
    .await
    .text()?;
    for table in ["t", "k"] {
        for condition in [
            "id = 5.5",
            "id = 5.0",
            "id > 4.5",
            "id = '5'",
            "id > 99999999999999999999",
            "id < 99999999999999999999",
            "id <> 99999999999",
            "dt > '2026-02-28'",
            "p = 1.5",
            "p < 1.5",
            "p = '1'",
            "id IN (5, 99999999999)",
            "id IN ('5', '7')",
            "p IN (1.0, 2.5)",
            "id = NULL",
            "p = NULL",
        ] {
            as_in_memory(&s, "id", condition, table, "m").await?;
        }
        let refused = [
            ("id = 'abc'", "Execution"),
            ("dt = '2026-02-30'", "Execution"),
            ("dt = 'x'", "Execution"),
            ("p = 'x'", "Execution"),
            ("id = true", "Plan"),
        ];
        as_refused_in_memory(&s, &refused, table, "m").await?;
    }
    Ok(())
}

/// A file index of one `bitmap` over an INT column, each value in one row.
fn bitmap_index(column: &str, values: &[i32]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat();
    let int = |number: i32| number.to_be_bytes().to_vec();
    let mut body = [vec![1], int(values.len() as i32), int(values.len() as i32), vec![0]].concat();
    for (row, value) in values.iter().enumerate() {
        // a single row stands as a negative offset
        body.extend([int(*value), int(-1 - row as i32)].concat());
    }
    let head = [int(1), text(column), int(1), text("bitmap")].concat();
    // magic, version, length of the head; the head with start and length of the body; nothing redundant
    let start = 8 + 4 + 4 + head.len() as i32 + 4 + 4 + 4;
    let magic = 1_493_475_289_347_502_i64.to_be_bytes().to_vec();
    [magic, int(1), int(start), head, int(start), int(body.len() as i32), int(0), body].concat()
}

async fn rows_that_an_index_finds_may_be_deleted(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT")])
        .option("deletion-vectors.enabled", "true")
        .option("file-index.bitmap.columns", "v");
    let mut t = lake.table("t", &spec)?;
    let values = [10, 20, 30, 40, 50, 60];
    let data: Vec<Value> = values.iter().enumerate().map(|(id, v)| json!({"id": id, "v": v})).collect();
    t.append(&data).text()?;
    entries(t.root(), 1, |entry| entry.file.embedded_index = Some(bitmap_index("v", &values).into()))?;
    let file = t.live_files().text()?.pop().ok_or("no file")?.file.file_name;
    t.commit().delete_positions(&file, &[1, 4]).publish().text()?;
    let s = lake.session().await?;
    for source in [true, false] {
        ask(&s, &format!("SET lakepin.merge_source = {source}")).await.text()?;
        for (condition, ids) in [
            ("v IN (20, 30)", vec!["2"]),
            ("v = 20", vec![]),
            ("v = 40", vec!["3"]),
            ("v NOT IN (10, 20)", vec!["2", "3", "5"]),
            ("v = 50 OR v = 60", vec!["5"]),
            ("v IS NOT NULL", vec!["0", "2", "3", "5"]),
        ] {
            expect(&s, &format!("SELECT id FROM t WHERE {condition}"), &ids).await?;
            let count = ids.len().to_string();
            expect(&s, &format!("SELECT count(*) FROM t WHERE {condition}"), &[&count]).await?;
        }
        // without the vector the index finds what it should
        expect(&s, "SELECT id FROM t VERSION AS OF 1 WHERE v IN (20, 30)", &["1", "2"]).await?;
    }
    let plan = ask(&s, "EXPLAIN FILES SELECT id FROM t WHERE v = 25").await.text()?.rows().join("\n");
    check(plan.contains("file index"), format!("the index is not asked: {plan}"))
}

async fn first_and_last_keys_bound_nothing_where_files_are_not_sorted(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true")
        .option("pk-clustering-override", "true");
    let nothing =
        || SimpleStats { min_values: BinaryRow::empty(), max_values: BinaryRow::empty(), null_counts: Vec::new() };
    for name in ["told", "untold"] {
        let mut t = lake.table(name, &spec)?;
        let data = [5, 1, 9].map(|k| json!({"k": k, "v": k * 10}));
        t.commit().file(FileSpec::rows(&data).level(5).keep_order()).publish().text()?;
        if name == "untold" {
            entries(t.root(), 1, |entry| (entry.file.key_stats, entry.file.value_stats) = (nothing(), nothing()))?;
        }
        let s = lake.session().await?;
        for (condition, right) in [
            ("k = 1", vec!["1|10"]),
            ("k < 5", vec!["1|10"]),
            ("k IN (1, 9)", vec!["1|10", "9|90"]),
            ("k > 1", vec!["5|50", "9|90"]),
            ("v = 10", vec!["1|10"]),
        ] {
            expect(&s, &format!("SELECT * FROM {name} WHERE {condition}"), &right).await?;
        }
    }
    Ok(())
}
