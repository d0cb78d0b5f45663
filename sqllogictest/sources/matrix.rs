//! Every type of a table beside the types of a database that hold the same: no difference where there is none, and the
//! one that is where a cell was changed.

use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{TableBuilder, TableSpec};
use serde_json::{Map, Value, json};

use super::compared::told;

/// A column of the table and of a database.
pub(super) struct Column {
    lake: &'static str,
    source: &'static str,
    /// Values in both, by row; they come round again.
    cells: Vec<(Value, &'static str)>,
    /// Another value than the first row's.
    other: &'static str,
}

fn column<const N: usize>(
    lake: &'static str,
    source: &'static str,
    cells: [(Value, &'static str); N],
    other: &'static str,
) -> Column {
    Column { lake, source, cells: cells.to_vec(), other }
}

/// What both kinds of databases have under these names.
fn common() -> Vec<Column> {
    vec![
        column("BOOLEAN", "boolean", [(json!(true), "TRUE"), (json!(false), "FALSE")], "FALSE"),
        column("TINYINT", "smallint", [(json!(-128), "-128"), (json!(127), "127")], "-127"),
        column("SMALLINT", "smallint", [(json!(-32768), "-32768"), (json!(32767), "32767")], "0"),
        column("INT", "int", [(json!(i32::MIN), "-2147483648"), (json!(i32::MAX), "2147483647")], "-2147483647"),
        column(
            "BIGINT",
            "bigint",
            [(json!(i64::MIN), "-9223372036854775808"), (json!(i64::MAX), "9223372036854775807")],
            "-9223372036854775807",
        ),
        // the scale differs, the value does not
        column(
            "DECIMAL(18, 4)",
            "decimal(10,2)",
            [
                (json!("1.5"), "1.50"),
                (json!("-0.19"), "-0.19"),
                (json!("0"), "-0.00"),
                (json!("99999999.99"), "99999999.99"),
            ],
            "1.51",
        ),
        column("DECIMAL(10, 2)", "decimal(20,6)", [(json!("1.5"), "1.500000"), (json!("-7"), "-7")], "1.500001"),
        column(
            "DECIMAL(38, 10)",
            "decimal(38,10)",
            [
                (json!("9999999999999999999999999999.9999999999"), "9999999999999999999999999999.9999999999"),
                (json!("-0.0000000001"), "-0.0000000001"),
            ],
            "9999999999999999999999999999.9999999998",
        ),
        column(
            "DOUBLE",
            "double precision",
            [(json!(0.366_406_25), "0.36640625"), (json!(0.1), "0.1"), (json!(1e300), "1e300")],
            "0.3664",
        ),
        column(
            "DATE",
            "date",
            [
                (json!("2024-02-29"), "'2024-02-29'"),
                (json!("1000-01-01"), "'1000-01-01'"),
                (json!("9999-12-31"), "'9999-12-31'"),
            ],
            "'2024-03-01'",
        ),
        column(
            "TIME(3)",
            "time(3)",
            [(json!("23:59:59.999"), "'23:59:59.999'"), (json!("00:00:00.001"), "'00:00:00.001'")],
            "'23:59:59.998'",
        ),
        column("CHAR(5)", "char(5)", [(json!("ab"), "'ab'"), (json!("订单号"), "'订单号'")], "'ac'"),
        column(
            "VARCHAR(20)",
            "varchar(20)",
            [(json!("é漢字😀"), "'é漢字😀'"), (json!(""), "''"), (json!("it's"), "'it''s'")],
            "'e漢字😀'",
        ),
        // where it is padded and where it is not, nobody wrote the blanks
        column("VARCHAR(20)", "char(20)", [(json!("PAID"), "'PAID'")], "'paid'"),
        column("STRING", "text", [(json!("a\nb,\"c\""), "'a\nb,\"c\"'")], "'a\nb,\"d\"'"),
        column("INT", "decimal(12,0)", [(json!(7), "7"), (json!(-2_000_000_000), "-2000000000")], "8"),
        column("BIGINT", "int", [(json!(7), "7")], "8"),
        column("DOUBLE", "decimal(10,2)", [(json!(1.5), "1.5"), (json!(-0.0), "0")], "1.51"),
    ]
}

/// The types of MySQL and MariaDB.
pub(super) fn mysql(is_mariadb: bool) -> Vec<Column> {
    let mut all = common();
    if is_mariadb {
        all.push(column(
            "STRING",
            "uuid",
            [(json!("123e4567-e89b-12d3-a456-426655440000"), "'123E4567-E89B-12D3-A456-426655440000'")],
            "'123e4567-e89b-12d3-a456-426655440001'",
        ));
    }
    all.extend([
        column("INT", "mediumint", [(json!(-8_388_608), "-8388608"), (json!(8_388_607), "8388607")], "0"),
        column("INT", "mediumint unsigned", [(json!(16_777_215), "16777215")], "16777214"),
        column("SMALLINT", "tinyint unsigned", [(json!(255), "255"), (json!(0), "0")], "254"),
        column("TINYINT", "tinyint", [(json!(-128), "-128"), (json!(127), "127")], "-127"),
        column("INT", "smallint unsigned", [(json!(65_535), "65535")], "65534"),
        column("BIGINT", "int unsigned", [(json!(4_294_967_295_i64), "4294967295")], "4294967294"),
        column("STRING", "set('a','b','c')", [(json!("a,c"), "'c,a'"), (json!(""), "''")], "'a,b'"),
        column(
            "STRING",
            "json",
            [(json!("{\"b\": 1, \"a\": [null]}"), "'{\"b\": 1, \"a\": [null]}'")],
            "'{\"b\": 2, \"a\": [null]}'",
        ),
        column("DECIMAL(20, 0)", "bigint unsigned", [(json!("18446744073709551615"), "18446744073709551615")], "0"),
        column(
            "FLOAT",
            "float",
            [(json!(0.366_406_25), "0.36640625"), (json!(0.1), "0.1"), (json!(-0.0), "-0.0")],
            "0.36640628",
        ),
        column(
            "TIMESTAMP(0)",
            "datetime",
            [(json!("2024-02-29 12:34:56"), "'2024-02-29 12:34:56'")],
            "'2024-02-29 12:34:57'",
        ),
        column(
            "TIMESTAMP(3)",
            "datetime(3)",
            [(json!("1969-12-31 23:59:59.999"), "'1969-12-31 23:59:59.999'")],
            "'1969-12-31 23:59:59.998'",
        ),
        column(
            "TIMESTAMP(6)",
            "datetime(6)",
            [(json!("9999-12-31 23:59:59.999999"), "'9999-12-31 23:59:59.999999'")],
            "'9999-12-31 23:59:59.999998'",
        ),
        // compared at the three digits that both have
        column(
            "TIMESTAMP(3)",
            "datetime(6)",
            [(json!("2024-02-29 12:34:56.123"), "'2024-02-29 12:34:56.123999'")],
            "'2024-02-29 12:34:56.124'",
        ),
        // written at +08:00, as the session of the test is
        column(
            "TIMESTAMP_LTZ(3)",
            "timestamp(3)",
            [(json!("2024-02-29 12:34:56.123"), "'2024-02-29 20:34:56.123'")],
            "'2024-02-29 20:34:56.124'",
        ),
        column("TIMESTAMP(3)", "date", [(json!("2024-02-29 00:00:00"), "'2024-02-29'")], "'2024-02-28'"),
        column("BYTES", "varbinary(9)", [(json!("00ff27"), "x'00ff27'"), (json!(""), "x''")], "x'00ff28'"),
        column("STRING", "enum('PAID','FAILED')", [(json!("FAILED"), "'FAILED'"), (json!("PAID"), "'PAID'")], "'PAID'"),
        column("INT", "year", [(json!(2026), "2026")], "2025"),
        column("BOOLEAN", "bit", [(json!(true), "b'1'"), (json!(false), "b'0'")], "b'0'"),
    ]);
    all
}

/// The types of PostgreSQL.
pub(super) fn postgres() -> Vec<Column> {
    let mut all = common();
    all.extend([
        column(
            "DECIMAL(20, 0)",
            "numeric",
            [(json!("18446744073709551615"), "18446744073709551615"), (json!("0"), "-0")],
            "0",
        ),
        column(
            "FLOAT",
            "real",
            [(json!(0.366_406_25), "0.36640625"), (json!(0.1), "0.1"), (json!(-0.0), "'-0'")],
            "0.36640628",
        ),
        column(
            "DOUBLE",
            "double precision",
            [(json!("NaN"), "'NaN'"), (json!("inf"), "'Infinity'"), (json!(-0.0), "'-0'")],
            "0",
        ),
        column(
            "TIMESTAMP(0)",
            "timestamp(0)",
            [(json!("2024-02-29 12:34:56"), "'2024-02-29 12:34:56'")],
            "'2024-02-29 12:34:57'",
        ),
        column(
            "TIMESTAMP(3)",
            "timestamp(3)",
            [(json!("1969-12-31 23:59:59.999"), "'1969-12-31 23:59:59.999'")],
            "'1969-12-31 23:59:59.998'",
        ),
        column(
            "TIMESTAMP(6)",
            "timestamp",
            [(json!("9999-12-31 23:59:59.999999"), "'9999-12-31 23:59:59.999999'")],
            "'9999-12-31 23:59:59.999998'",
        ),
        column(
            "TIMESTAMP(3)",
            "timestamp(6)",
            [(json!("2024-02-29 12:34:56.123"), "'2024-02-29 12:34:56.123999'")],
            "'2024-02-29 12:34:56.124'",
        ),
        column(
            "TIMESTAMP_LTZ(3)",
            "timestamptz(3)",
            [(json!("2024-02-29 12:34:56.123"), "'2024-02-29 20:34:56.123+08'")],
            "'2024-02-29 20:34:56.124+08'",
        ),
        column("TIMESTAMP(3)", "date", [(json!("2024-02-29 00:00:00"), "'2024-02-29'")], "'2024-02-28'"),
        column("BYTES", "bytea", [(json!("00ff27"), "'\\x00ff27'"), (json!(""), "''")], "'\\x00ff28'"),
        column(
            "STRING",
            "uuid",
            [(json!("123e4567-e89b-12d3-a456-426655440000"), "'123E4567-E89B-12D3-A456-426655440000'")],
            "'123e4567-e89b-12d3-a456-426655440001'",
        ),
        column("STRING", "json", [(json!("{\"b\":1, \"a\":null}"), "'{\"b\":1, \"a\":null}'")], "'{\"b\":1}'"),
        // as the server writes it: by its own order, with one blank
        column("STRING", "jsonb", [(json!("{\"a\": null, \"b\": 1}"), "'{\"b\":1, \"a\":null}'")], "'{\"b\":1}'"),
        column("STRING", "interval", [(json!("1 day 02:03:04"), "'1 day 02:03:04'")], "'1 day'"),
        column("STRING", "int[]", [(json!("{1,NULL,3}"), "'{1,null,3}'"), (json!("{}"), "'{}'")], "'{1,2,3}'"),
        column("STRING", "text[]", [(json!("{a,\"b c\"}"), "ARRAY['a', 'b c']")], "ARRAY['a', 'b']"),
        column("STRING", "inet", [(json!("10.0.0.7"), "'10.0.0.7/32'")], "'10.0.0.8'"),
    ]);
    all
}

/// Rows of both sides; the last holds NULL alone.
const ROWS: usize = 5;

async fn table(columns: &[Column]) -> Result<(tempfile::TempDir, Session), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let mut declared = vec![("id", "INT NOT NULL")];
    declared.extend(names.iter().map(String::as_str).zip(columns.iter().map(|column| column.lake)));
    let spec = TableSpec::new(&declared).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(folder.path(), "pay", "m", &spec).map_err(|e| format!("{e:?}"))?;
    let rows: Vec<Value> = (0..ROWS)
        .map(|row| {
            let mut cells = Map::new();
            cells.insert("id".into(), json!(row));
            if row + 1 < ROWS {
                let values = columns.iter().map(|column| column.cells[row % column.cells.len()].0.clone());
                cells.extend(names.iter().cloned().zip(values));
            }
            Value::Object(cells)
        })
        .collect();
    table.append(&rows).map_err(|e| format!("{e:?}"))?;
    let warehouse = Warehouse::open(&folder.path().display().to_string(), &std::collections::BTreeMap::new()).await;
    let session = Session::new(&warehouse.map_err(|e| format!("{e:?}"))?, SessionConfig::default()).await;
    Ok((folder, session.map_err(|e| format!("{e:?}"))?))
}

/// Compares all columns, then each after one of its cells was changed. `run` runs a statement in the database.
pub(super) async fn compared<F>(url: &str, columns: Vec<Column>, mut run: F) -> Result<String, String>
where
    F: AsyncFnMut(String),
{
    let (_folder, session) = table(&columns).await?;
    let declared: Vec<String> =
        columns.iter().enumerate().map(|(at, column)| format!("c{at} {}", column.source)).collect();
    run(format!("CREATE TABLE m (id int NOT NULL PRIMARY KEY, {})", declared.join(", "))).await;
    for row in 0..ROWS {
        let cells = columns.iter().map(|column| match row + 1 < ROWS {
            true => column.cells[row % column.cells.len()].1,
            false => "NULL",
        });
        run(format!("INSERT INTO m VALUES ({row}, {})", cells.collect::<Vec<_>>().join(", "))).await;
    }
    let sql = format!("RECONCILE m WITH '{url}' FROM 'm' ON KEY (id)");
    let equal = told(&session, &sql).await?;
    if equal.first().map(String::as_str) != Some("EQUAL") || !equal.contains(&format!("EQUAL {ROWS}")) {
        return Err(format!("equal sides: {equal:?}"));
    }
    let mut wrong = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        run(format!("UPDATE m SET c{at} = {} WHERE id = 0", column.other)).await;
        let found = told(&session, &sql).await?;
        let example = format!(r#"DIFFERENT {{"id":"0"}} c{at}"#);
        if !["DIFFERENT".to_string(), "DIFFERENT 1".into(), format!("EQUAL {}", ROWS - 1), example]
            .iter()
            .all(|line| found.contains(line))
        {
            wrong.push(format!("{} beside {}: {found:?}", column.lake, column.source));
        }
        run(format!("UPDATE m SET c{at} = {} WHERE id = 0", column.cells[0].1)).await;
    }
    match wrong.is_empty() {
        true => Ok(format!("{} pairs of types: equal, and one cell changed", columns.len())),
        false => Err(wrong.join("\n")),
    }
}
