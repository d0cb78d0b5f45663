//! MySQL and MariaDB.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::{FutureExt, StreamExt};
use lakepin::datafusion::common::ScalarValue;
use lakepin::sql::source::{SourceRead, open};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use super::{Typed, address, end_after, names, own_name, reading, rows, typed, until};
use crate::harness::{Outcome, Test};

type Ended = std::result::Result<String, String>;

async fn matrix(server: &mut Server) -> Ended {
    let url = server.url("");
    let types = super::matrix::mysql(mariadb(server).await?);
    super::matrix::compared(&url, types, async |sql: String| server.run(&sql).await).await
}

async fn unreadable(server: &mut Server) -> Ended {
    server.run("CREATE TABLE odd (id int NOT NULL PRIMARY KEY, d date)").await;
    server.run("INSERT INTO odd VALUES (1, '2026-04-16'), (2, '0000-00-00'), (3, '2026-04-17')").await;
    super::compared::unreadable(&server.url(""), "0000-00-00", async || {
        server.run("INSERT INTO odd VALUES (7, '0000-00-00')").await;
    })
    .await
}

async fn early(server: &mut Server) -> Ended {
    server.run("CREATE TABLE numbers (id int NOT NULL PRIMARY KEY, v int)").await;
    server
        .run("INSERT INTO numbers SELECT seq, CASE seq WHEN 1 THEN 7 WHEN 2 THEN -1 ELSE 1 END FROM seq_1_to_20000")
        .await;
    super::compared::early(&server.url("")).await
}

async fn no_such_keys(server: &mut Server) -> Ended {
    let uuid = "123e4567-e89b-12d3-a456-426655440000";
    server.run("CREATE TABLE days (k date NOT NULL PRIMARY KEY, v int)").await;
    server.run("INSERT INTO days VALUES ('2026-04-16', 1)").await;
    server.run("CREATE TABLE words (k varchar(40) COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, v int)").await;
    server.run("INSERT INTO words VALUES ('a', 1)").await;
    server.run("CREATE TABLE ids (k uuid NOT NULL PRIMARY KEY, v int)").await;
    server.run(&format!("INSERT INTO ids VALUES ('{uuid}', 1)")).await;
    let url = server.url("");
    let days = super::compared::no_such_keys(&url, "days", "DATE NOT NULL", &["2026-04-16", "+12026-04-16"]).await?;
    let words = super::compared::no_such_keys(&url, "words", "STRING NOT NULL", &["a", "a\0"]).await?;
    let ids = super::compared::no_such_keys(&url, "ids", "STRING NOT NULL", &[uuid, "test-1", "test-2"]).await?;
    Ok([days, words, ids].join("; "))
}

async fn compared(server: &mut Server) -> Ended {
    for statement in super::compared::source("varchar(32) COLLATE utf8mb4_bin") {
        server.run(&statement).await;
    }
    let url = server.url("");
    let break_it = async || {
        for defect in super::compared::DEFECTS {
            server.run(defect).await;
        }
    };
    super::compared::compared(&url, break_it).await
}

async fn pushed(server: &mut Server) -> Ended {
    let url = server.url("");
    let types = super::keyed::Types {
        time: "datetime(3)",
        folding: "varchar(20) COLLATE utf8mb4_general_ci",
        bytes: "varchar(20) COLLATE utf8mb4_bin",
        odd_day: "0000-00-00",
        plain_decimals: true,
    };
    super::keyed::pushed(&url, &types, async |sql: String| server.run(&sql).await).await
}

async fn keyed(server: &mut Server) -> Ended {
    use super::keyed::{chinese, folding, gaps, keys, uuids};
    let url = server.url("");
    let mut run = async |sql: String| server.run(&sql).await;
    for (declared, lake, all) in [
        ("bigint", "BIGINT NOT NULL", gaps()),
        ("varchar(40) COLLATE utf8mb4_bin", "STRING NOT NULL", chinese()),
        ("varchar(40) COLLATE utf8mb4_unicode_ci", "STRING NOT NULL", chinese()),
        ("char(36) CHARACTER SET ascii COLLATE ascii_bin", "STRING NOT NULL", uuids()),
        ("varchar(40) COLLATE utf8mb4_general_ci", "STRING NOT NULL", uuids()),
    ] {
        keys(&url, declared, lake, &all, &mut run).await?;
    }
    folding(&url, "varchar(40) COLLATE utf8mb4_general_ci", "utf8mb4_general_ci", &mut run).await?;
    if mariadb(server).await? {
        let mut run = async |sql: String| server.run(&sql).await;
        keys(&url, "uuid", "STRING NOT NULL", &uuids(), &mut run).await?;
    }
    Ok(String::new())
}

async fn cut(server: &mut Server) -> Ended {
    server.run("CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(1000))").await;
    server.run("INSERT INTO s SELECT seq, repeat('x', 1000) FROM seq_1_to_20000").await;
    let url = server.url("chunk_rows=100&pause=20ms");
    for from in ["s", "SELECT * FROM s"] {
        let kill = async || {
            let sql = format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE db = '{}' AND id <> CONNECTION_ID()",
                server.database
            );
            for _ in 0..200 {
                if server.conn.query_first::<u64, _>(&sql).await.expect("processes are listed") == Some(1) {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            kill(server, "CONNECTION").await;
        };
        super::keyed::cut(&url, from, kill).await?;
    }
    Ok(String::new())
}

async fn mariadb(server: &mut Server) -> Result<bool, String> {
    let version: Option<String> = server.conn.query_first("SELECT VERSION()").await.map_err(|e| e.to_string())?;
    Ok(version.unwrap_or_default().contains("MariaDB"))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("sources::mysql::every_type_is_read_exactly", || with_server(every_type)));
    tests.push(Test::new_async("sources::mysql::a_table_is_compared_with_its_source", || with_server(compared)));
    tests.push(Test::new_async("sources::mysql::no_type_differs_but_where_a_cell_does", || with_server(matrix)));
    tests.push(Test::new_async("sources::mysql::what_no_type_holds_is_a_finding", || with_server(unreadable)));
    tests.push(Test::new_async("sources::mysql::a_comparison_that_ends_early_is_told", || with_server(early)));
    tests.push(Test::new_async("sources::mysql::keys_that_a_type_has_not_are_not_there", || with_server(no_such_keys)));
    tests.push(Test::new_async("sources::mysql::conditions_are_sent_and_change_no_row", || with_server(pushed)));
    tests.push(Test::new_async("sources::mysql::keys_of_every_kind_find_their_own", || with_server(keyed)));
    tests.push(Test::new_async("sources::mysql::a_comparison_that_is_cut_has_no_verdict", || with_server(cut)));
    tests.push(Test::new_async("sources::mysql::keys_are_read_in_chunks", || with_server(chunks)));
    tests.push(Test::new_async("sources::mysql::order_is_what_an_index_gives", || with_server(order)));
    tests.push(Test::new_async("sources::mysql::one_state_is_read_under_writes", || with_server(one_state)));
    tests.push(Test::new_async("sources::mysql::a_killed_connection_ends_the_read", || with_server(killed)));
    tests.push(Test::new_async("sources::mysql::statements_end_in_time", || with_server(in_time)));
    tests.push(Test::new_async("sources::mysql::what_is_not_there_or_not_allowed_is_said", || with_server(refused)));
}

/// A server, a database of the test's own in it, and a connection to it.
struct Server {
    url: String,
    database: String,
    conn: Conn,
}

impl Server {
    fn url(&self, options: &str) -> String {
        address(&self.url, &self.database, options)
    }

    async fn run(&mut self, sql: &str) {
        self.conn.query_drop(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

async fn with_server<F>(test: F) -> Result<Outcome, String>
where
    F: AsyncFnOnce(&mut Server) -> Ended,
{
    let named = std::env::var("LAKEPIN_TEST_MYSQL_URL").ok();
    let url = named.clone().unwrap_or_else(|| "mysql://root@127.0.0.1:3306".into());
    let opts = Opts::from_url(&url).map_err(|e| e.to_string())?;
    let mut conn = match Conn::new(opts).await {
        Ok(conn) => conn,
        Err(e) if named.is_none() => {
            return Ok(Outcome::Skipped(format!(
                "no MySQL: LAKEPIN_TEST_MYSQL_URL names none, and 127.0.0.1:3306: {e}"
            )));
        }
        Err(e) => return Err(e.to_string()),
    };
    let database = own_name();
    conn.query_drop(format!("CREATE DATABASE {database} CHARACTER SET utf8mb4")).await.map_err(|e| e.to_string())?;
    conn.query_drop(format!("USE {database}")).await.map_err(|e| e.to_string())?;
    conn.query_drop("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+08:00'").await.map_err(|e| e.to_string())?;
    let mut server = Server { url, database: database.clone(), conn };
    let ended = AssertUnwindSafe(test(&mut server)).catch_unwind().await;
    server.run(&format!("DROP DATABASE {database}")).await;
    Ok(Outcome::Passed(ended.unwrap_or_else(|panic| resume_unwind(panic))?))
}

const NINES: &str = "99999999999999999999999999999999999.999999999999999999999999999999";

const TYPES: &[Typed] = &[
    typed("tinyint(1)", "Int8", "values", &[("0", "0"), ("1", "1"), ("-128", "-128"), ("127", "127")]),
    typed("boolean", "Int8", "values", &[("TRUE", "1"), ("FALSE", "0")]),
    typed("tinyint unsigned", "UInt8", "values", &[("0", "0"), ("255", "255")]),
    typed("smallint", "Int16", "values", &[("-32768", "-32768"), ("32767", "32767")]),
    typed("smallint unsigned", "UInt16", "values", &[("65535", "65535")]),
    typed("mediumint", "Int32", "values", &[("-8388608", "-8388608"), ("8388607", "8388607")]),
    typed("mediumint unsigned", "UInt32", "values", &[("16777215", "16777215")]),
    typed("int", "Int32", "values", &[("-2147483648", "-2147483648"), ("2147483647", "2147483647")]),
    typed("int(10) unsigned zerofill", "UInt32", "values", &[("0", "0"), ("4294967295", "4294967295")]),
    typed(
        "bigint",
        "Int64",
        "values",
        &[("-9223372036854775808", "-9223372036854775808"), ("9223372036854775807", "9223372036854775807")],
    ),
    typed("bigint unsigned", "UInt64", "values", &[("0", "0"), ("18446744073709551615", "18446744073709551615")]),
    typed("year", "Int16", "values", &[("0", "0"), ("1901", "1901"), ("2155", "2155")]),
    typed("bit", "Boolean", "values", &[("b'0'", "false"), ("b'1'", "true")]),
    typed("bit(9)", "UInt64", "values", &[("b'100000001'", "257"), ("0", "0")]),
    typed("bit(64)", "UInt64", "values", &[("18446744073709551615", "18446744073709551615")]),
    typed(
        "decimal(10,2)",
        "Decimal128(10, 2)",
        "values",
        &[("0", "0.00"), ("-0.01", "-0.01"), ("99999999.99", "99999999.99"), ("-99999999.99", "-99999999.99")],
    ),
    typed(
        "decimal(38,0) unsigned",
        "Decimal128(38, 0)",
        "values",
        &[
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
            ("99999999999999999999999999999999999998", "99999999999999999999999999999999999998"),
        ],
    ),
    typed(
        "decimal(65,30)",
        "Decimal256(65, 30)",
        "values",
        &[(NINES, NINES), ("-0.000000000000000000000000000001", "-0.000000000000000000000000000001")],
    ),
    typed(
        "float",
        "Float32",
        "values",
        &[("16777217", "16777216.0"), ("0.1", "0.1"), ("-3.4028235e38", "-3.4028235e38")],
    ),
    typed(
        "double",
        "Float64",
        "values",
        &[
            ("0.1", "0.1"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
            ("-2.2250738585072014e-308", "-2.2250738585072014e-308"),
            ("9007199254740993", "9007199254740992.0"),
        ],
    ),
    typed("char(5) COLLATE utf8mb4_bin", "Utf8", "", &[("'a  '", "a"), ("''", ""), ("'订单号'", "订单号")]),
    typed("varchar(20) COLLATE utf8mb4_general_ci", "Utf8", "", &[("'a  '", "a  "), ("'Ä'", "Ä"), ("'😀'", "😀")]),
    typed("varchar(20) COLLATE utf8mb4_bin", "Utf8", "", &[("'A'", "A"), ("'a'", "a"), ("'\\\\%_'", "\\%_")]),
    typed("varchar(20) CHARACTER SET latin1", "Utf8", "", &[("'é€'", "é€"), ("'plain'", "plain")]),
    typed("varchar(20) CHARACTER SET gbk", "Utf8", "", &[("'支付'", "支付")]),
    typed(
        "longtext",
        "Utf8",
        "",
        &[("repeat('x', 70)", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")],
    ),
    typed("binary(3)", "Binary", "values", &[("x'0102'", "010200"), ("x'ffffff'", "ffffff")]),
    typed("varbinary(9)", "Binary", "values", &[("x''", ""), ("x'00ff27'", "00ff27")]),
    typed("blob", "Binary", "values", &[("x'deadbeef'", "deadbeef")]),
    typed("enum('PAID','FAILED','it''s')", "Utf8", "", &[("'FAILED'", "FAILED"), ("'PAID'", "PAID"), ("3", "it's")]),
    typed("set('a','b')", "Utf8", "", &[("'b,a'", "a,b"), ("''", "")]),
    typed("json", "Utf8", "", &[("'{\"b\": 1, \"a\": [null]}'", "{\"b\": 1, \"a\": [null]}")]),
    typed(
        "date",
        "Date32",
        "values",
        &[
            ("'1000-01-01'", "1000-01-01"),
            ("'9999-12-31'", "9999-12-31"),
            ("'1969-12-31'", "1969-12-31"),
            ("'0000-00-00'", "<0000-00-00>"),
            ("'2026-00-00'", "<2026-00-00>"),
            ("'2026-02-30'", "<2026-02-30>"),
        ],
    ),
    typed(
        "time",
        "Time32(s)",
        "values",
        &[
            ("'00:00:00'", "00:00:00"),
            ("'23:59:59'", "23:59:59"),
            ("'24:00:00'", "<24:00:00>"),
            ("'-00:00:01'", "<-00:00:01>"),
            ("'838:59:59'", "<838:59:59>"),
            ("'-838:59:59'", "<-838:59:59>"),
        ],
    ),
    typed(
        "time(3)",
        "Time32(ms)",
        "values",
        &[("'01:02:03.004'", "01:02:03.004"), ("'-00:00:00.001'", "<-00:00:00.001>")],
    ),
    typed("time(6)", "Time64(µs)", "values", &[("'23:59:59.999999'", "23:59:59.999999")]),
    typed(
        "datetime",
        "Timestamp(s)",
        "values",
        &[
            ("'1000-01-01 00:00:00'", "1000-01-01T00:00:00"),
            ("'9999-12-31 23:59:59'", "9999-12-31T23:59:59"),
            ("'0000-00-00 00:00:00'", "<0000-00-00 00:00:00>"),
        ],
    ),
    typed("datetime(1)", "Timestamp(ms)", "values", &[("'1969-12-31 23:59:59.9'", "1969-12-31T23:59:59.900")]),
    typed(
        "datetime(6)",
        "Timestamp(µs)",
        "values",
        &[
            ("'9999-12-31 23:59:59.999999'", "9999-12-31T23:59:59.999999"),
            ("'2026-02-30 01:02:03.000004'", "<2026-02-30 01:02:03.000004>"),
        ],
    ),
    // written at +08:00
    typed(
        "timestamp NULL",
        "Timestamp(s, \"UTC\")",
        "values",
        &[
            ("'1970-01-01 08:00:01'", "1970-01-01T00:00:01Z"),
            ("'2038-01-19 11:14:07'", "2038-01-19T03:14:07Z"),
            ("'0000-00-00 00:00:00'", "<0000-00-00 00:00:00>"),
        ],
    ),
    typed(
        "timestamp(6) NULL",
        "Timestamp(µs, \"UTC\")",
        "values",
        &[("'2026-04-16 00:00:00.000001'", "2026-04-15T16:00:00.000001Z")],
    ),
];

/// Types that MariaDB alone has.
const MARIADB_TYPES: &[Typed] = &[
    typed(
        "uuid",
        "Utf8",
        "other",
        &[("'123E4567-E89B-12D3-A456-426655440000'", "123e4567-e89b-12d3-a456-426655440000")],
    ),
    typed("inet6", "Utf8", "other", &[("'2001:DB8::ff00:42:8329'", "2001:db8::ff00:42:8329"), ("'::1'", "::1")]),
    typed("inet4", "Utf8", "other", &[("'10.0.0.9'", "10.0.0.9")]),
];

async fn every_type(server: &mut Server) -> Ended {
    let mariadb = mariadb(server).await?;
    let types: Vec<&Typed> = TYPES.iter().chain(MARIADB_TYPES.iter().filter(|_| mariadb)).collect();
    let mut wrong = Vec::new();
    let mut cells = 0;
    for (at, typed) in types.iter().enumerate() {
        let table = format!("t_{at}");
        server.run(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, v {}) ENGINE = InnoDB", typed.declared)).await;
        for (id, (literal, _)) in typed.cells.iter().chain([&("NULL", "NULL")]).enumerate() {
            server.run(&format!("INSERT INTO {table} VALUES ({id}, {literal})")).await;
            cells += 1;
        }
        wrong.extend(typed.check(&server.url(""), &table).await.err());
    }
    if wrong.is_empty() { Ok(format!("{} types, {cells} values", types.len())) } else { Err(wrong.join("\n")) }
}

async fn chunks(server: &mut Server) -> Ended {
    server
        .run(
            "CREATE TABLE k (a BIGINT UNSIGNED, b VARCHAR(20) COLLATE utf8mb4_bin, c DECIMAL(30,10), d DATE NOT NULL, \
             e INT, f VARCHAR(9) COLLATE utf8mb4_general_ci NOT NULL, PRIMARY KEY (a, b, c, d), KEY (e), KEY (f))",
        )
        .await;
    // gaps, and values at which floats and blanks would go wrong
    let mut expected = BTreeSet::new();
    for at in 0_u64..600 {
        let a = if at.is_multiple_of(3) { u64::MAX - at / 3 % 7 } else { at / 9 * 1_000 };
        let b = ["", "A", "a", "ä", "订", "😀"][usize::try_from(at % 6).unwrap()];
        let c = format!("12345678901234567890.{:010}", at % 5);
        let d = ["0000-00-00", "2026-01-31"][usize::try_from(at % 2).unwrap()];
        if expected.insert((a, b, c.clone(), d)) {
            let e = if at.is_multiple_of(4) { "NULL".to_string() } else { (at % 3).to_string() };
            let f = ["x", "Y", "z"][usize::try_from(at % 3).unwrap()];
            server.run(&format!("INSERT INTO k VALUES ({a}, '{b}', {c}, '{d}', {e}, '{f}')")).await;
        }
    }
    let expected: Vec<Vec<String>> = expected
        .into_iter()
        .map(|(a, b, c, d)| vec![a.to_string(), b.to_string(), c, d.replace("0000-00-00", "<0000-00-00>")])
        .collect();
    let source = open(&server.url("chunk_rows=7"), "k").await.map_err(|e| format!("{e:?}"))?;
    let key = ["a", "b", "c", "d"];
    assert_eq!(source.key(), key);
    let before = source.work();
    let told = |e: lakepin::Error| format!("{e:?}");
    let found = rows(&source, reading(&key, &key)).await.map_err(told)?;
    assert_eq!(found, expected);
    let work = source.work();
    let count = expected.len() as u64;
    assert_eq!(work.rows - before.rows, count, "no row is read twice");
    assert!(work.queries - before.queries >= count / 7, "{work:?}: not in chunks");
    // the same in any order, and by columns with doubles and NULLs
    let mut sorted = expected.clone();
    sorted.sort();
    for (ordered_by, key_only) in [(&[][..], true), (&["e"], false), (&["f"], false), (&["a"], true)] {
        let mut columns = vec!["a", "b", "c", "d"];
        columns.extend(ordered_by.iter().filter(|_| !key_only));
        let found = rows(&source, reading(&columns, ordered_by)).await.map_err(told)?;
        let mut keys: Vec<Vec<String>> = found.iter().map(|row| row[..4].to_vec()).collect();
        keys.sort();
        assert_eq!(keys, sorted, "by {ordered_by:?}");
        let by: Vec<&String> = found.iter().filter_map(|row| row.get(4)).collect();
        let rank = |text: &String| if text == "NULL" { String::new() } else { text.clone() };
        assert!(by.windows(2).all(|pair| rank(pair[0]) <= rank(pair[1])), "{by:?}");
    }
    // ranges and lists of keys
    let scalar = |row: &[String]| -> Vec<ScalarValue> {
        let c: i128 = row[2].replace('.', "").parse().unwrap();
        let date = (row[3] == "2026-01-31").then_some(20_484);
        vec![
            ScalarValue::UInt64(Some(row[0].parse().unwrap())),
            ScalarValue::from(row[1].as_str()),
            ScalarValue::Decimal128(Some(c), 30, 10),
            ScalarValue::Date32(date),
        ]
    };
    let dated: Vec<usize> = (0..expected.len()).filter(|at| expected[*at][3] == "2026-01-31").collect();
    let (low, high) = (dated[dated.len() / 4], dated[dated.len() / 2]);
    let range =
        SourceRead { after: Some(scalar(&expected[low])), upto: Some(scalar(&expected[high])), ..reading(&key, &key) };
    assert_eq!(rows(&source, range).await.map_err(told)?, expected[low + 1..=high]);
    let some: Vec<usize> = dated.iter().rev().copied().collect();
    let keys = some.iter().chain(&some).map(|at| scalar(&expected[*at])).collect();
    let found = rows(&source, SourceRead { keys, ..reading(&key, &key) }).await.map_err(told)?;
    let wanted: Vec<Vec<String>> = dated.iter().map(|at| expected[*at].clone()).collect();
    assert_eq!(found, wanted);
    // a condition of the source's, which ends in a comment
    let condition = Some("a < 5000 -- small".to_string());
    let found = rows(&source, SourceRead { condition, ..reading(&key, &[]) }).await.map_err(told)?;
    assert_eq!(found.len(), expected.iter().filter(|row| row[0].parse::<u64>().unwrap() < 5_000).count());
    // no columns: rows are counted
    let mut stream = source.read(SourceRead::default()).await.map_err(told)?;
    let mut counted = 0;
    while let Some(batch) = stream.next().await {
        counted += batch.map_err(|e| e.to_string())?.num_rows();
    }
    assert_eq!(counted as u64, count);
    Ok(format!("{count} keys of four columns"))
}

async fn order(server: &mut Server) -> Ended {
    server
        .run(
            "CREATE TABLE o (id INT PRIMARY KEY, b VARCHAR(9) COLLATE utf8mb4_bin NOT NULL, \
             c VARCHAR(9) COLLATE utf8mb4_general_ci NOT NULL, n INT, e ENUM('z', 'a') NOT NULL, t VARCHAR(900) COLLATE utf8mb4_bin, \
             UNIQUE (b), UNIQUE (c), KEY (n, b), KEY (e), KEY (t(5)))",
        )
        .await;
    server.run("INSERT INTO o VALUES (1, 'b', 'b', 1, 'z', 'x'), (2, 'B', 'A', NULL, 'a', 'y'), (3, 'a', 'C', 1, 'z', 'z')").await;
    server.run("CREATE TABLE heap (v INT)").await;
    server.run("INSERT INTO heap VALUES (2), (1), (NULL), (1)").await;
    server.run("CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM").await;
    server.run("CREATE TABLE padded (k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY)").await;
    server.run("INSERT INTO padded VALUES ('a'), ('a\\t')").await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let source = open(&server.url(""), "o").await.map_err(told)?;
    let cases: &[(&[&str], bool)] = &[
        (&["id"], true),
        (&["b"], true),
        (&["n"], true),
        (&["n", "b"], true),
        (&["b", "n"], false),
        (&["c"], false),
        (&["e"], false),
        (&["t"], false),
    ];
    for (by, indexed) in cases {
        assert_eq!(source.is_indexed(&names(by)).await.map_err(told)?, *indexed, "{by:?}");
    }
    // without an index too the order is that of bytes
    for (by, expected) in [("c", ["A", "C", "b"]), ("b", ["B", "a", "b"]), ("t", ["x", "y", "z"])] {
        assert_eq!(rows(&source, reading(&[by], &[by])).await.map_err(told)?.concat(), expected, "{by}");
    }
    assert_eq!(rows(&source, reading(&["e"], &["e"])).await.map_err(told)?.concat(), ["a", "z", "z"]);
    // keys are found exactly, whatever the collation takes for equal
    let key = |text: &str| SourceRead { keys: vec![vec![text.into()]], ..reading(&["id"], &["c"]) };
    assert_eq!(rows(&source, key("a")).await.map_err(told)?.len(), 0);
    assert_eq!(rows(&source, key("A")).await.map_err(told)?.concat(), ["2"]);

    let heap = open(&server.url(""), "heap").await.map_err(told)?;
    assert!(heap.key().is_empty() && !heap.is_indexed(&names(&["v"])).await.map_err(told)?);
    assert_eq!(rows(&heap, reading(&["v"], &["v"])).await.map_err(told)?.concat(), ["NULL", "1", "1", "2"]);
    let old = open(&server.url(""), "old").await.map_err(told)?;
    assert!(old.position().caveats.iter().any(|caveat| caveat.contains("MyISAM")), "{:?}", old.position());
    // a query over it is of no state either, wherever it stands in it
    server.run("CREATE VIEW seen AS SELECT id FROM o").await;
    // without a binlog no state of this server is known
    let known = source.position().is_state;
    for (query, is_state, engine) in [
        ("SELECT o.id FROM o", true, false),
        ("WITH q AS (SELECT id FROM o) SELECT id FROM q", true, false),
        ("SELECT o.id FROM o WHERE o.id NOT IN (SELECT id FROM old)", false, true),
        ("SELECT id FROM seen", false, false),
    ] {
        let source = open(&server.url(""), query).await.map_err(told)?;
        let position = source.position();
        let told = position.caveats.iter().any(|caveat| caveat.contains("MyISAM"));
        assert_eq!((position.is_state, told), (is_state && known, engine), "{query}: {position:?}");
    }
    let padded = open(&server.url(""), "padded").await.map_err(told)?;
    assert_eq!(rows(&padded, reading(&["k"], &["k"])).await.map_err(|e| e.code()), Err("SourceKeyOrder"));
    assert_eq!(rows(&padded, reading(&["k"], &[])).await.map_err(told)?.len(), 2);
    Ok(source.position().to_string())
}

async fn one_state(server: &mut Server) -> Ended {
    server.run("CREATE TABLE s (id INT PRIMARY KEY, v INT)").await;
    server.run("INSERT INTO s SELECT seq, 0 FROM seq_1_to_1000").await;
    let source = open(&server.url("chunk_rows=50"), "s").await.map_err(|e| format!("{e:?}"))?;
    let query =
        open(&server.url(""), "SELECT count(*) AS n, sum(v) AS v FROM s").await.map_err(|e| format!("{e:?}"))?;
    server.run("DELETE FROM s WHERE id % 2 = 0").await;
    server.run("UPDATE s SET v = 1").await;
    server.run("INSERT INTO s SELECT seq, 2 FROM seq_2001_to_3000").await;
    for by in [&["id"][..], &[]] {
        let found = rows(&source, reading(&["v"], by)).await.map_err(|e| format!("{e:?}"))?;
        assert_eq!((found.len(), found.iter().all(|row| row[0] == "0")), (1_000, true), "{by:?}");
    }
    let found = rows(&query, reading(&["n", "v"], &[])).await.map_err(|e| format!("{e:?}"))?;
    assert_eq!(found.concat(), ["1000", "0"]);
    assert_eq!(source.position().zone, "UTC");
    let off = source.position().clock_millis - lakepin::storage::env::now_millis();
    assert!(off.abs() < 120_000, "the server's clock is off by {off} ms");
    Ok(source.position().to_string())
}

/// Ends what the source asked for, or its connection.
async fn kill(server: &mut Server, what: &str) {
    let sql = format!(
        "SELECT id FROM information_schema.PROCESSLIST WHERE db = '{}' AND id <> CONNECTION_ID()",
        server.database
    );
    let ids: Vec<u64> = server.conn.query(sql).await.expect("processes are listed");
    for id in ids {
        server.run(&format!("KILL {what} {id}")).await;
    }
}

async fn killed(server: &mut Server) -> Ended {
    server.run("CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(1000))").await;
    server.run("INSERT INTO s SELECT seq, repeat('x', 1000) FROM seq_1_to_20000").await;
    for (what, by) in [("s", &["id"][..]), ("SELECT * FROM s", &[])] {
        let source = open(&server.url("chunk_rows=100"), what).await.map_err(|e| format!("{e:?}"))?;
        let ended = end_after(&source, reading(&["id", "v"], by), kill(server, "CONNECTION")).await;
        assert_eq!(ended, Err("SourceLost"), "{what}");
        let again = rows(&source, reading(&["id"], by)).await.expect_err("the state is gone");
        assert_eq!(again.code(), "SourceLost");
        assert!(again.to_string().contains(&server.database) && again.hint().is_some(), "{again}");
    }
    Ok(String::new())
}

async fn in_time(server: &mut Server) -> Ended {
    server.run("CREATE TABLE s (id INT PRIMARY KEY, v INT)").await;
    server.run("INSERT INTO s SELECT seq, seq FROM seq_1_to_5000").await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let source = open(&server.url("statement_timeout=500ms"), "s").await.map_err(told)?;
    let slow = |condition: &str| SourceRead { condition: Some(condition.into()), ..reading(&["id"], &["id"]) };
    let found = rows(&source, slow("SLEEP(0.01) = 0 AND id < 0 OR SLEEP(0.01) = 1")).await.map_err(|e| e.code());
    assert_eq!(found, Err("SourceTimeout"));
    // the state is still read
    server.run("DELETE FROM s").await;
    assert_eq!(rows(&source, reading(&["id"], &["id"])).await.map_err(told)?.len(), 5_000);

    // a locked table is not waited for
    server.run("CREATE TABLE locked (id INT PRIMARY KEY)").await;
    server.run("LOCK TABLES locked WRITE").await;
    let locked = open(&server.url("lock_timeout=1s"), "locked").await.expect_err("it is locked");
    assert_eq!(locked.code(), "SourceTimeout", "{locked:?}");
    server.run("UNLOCK TABLES").await;

    // a stream that is left in its middle leaves the connection to the next read
    server.run("INSERT INTO s SELECT seq, seq FROM seq_1_to_5000").await;
    let pairs = "SELECT a.id, b.id AS other FROM s a JOIN s b";
    let whole = open(&server.url("statement_timeout=2s&chunk_rows=10"), pairs).await.map_err(told)?;
    let mut stream = whole.read(reading(&["id"], &[])).await.map_err(told)?;
    for _ in 0..3 {
        assert_eq!(stream.next().await.and_then(Result::ok).map(|batch| batch.num_rows()), Some(10));
    }
    drop(stream);
    let next = until(|| async {
        let read = SourceRead { condition: Some("id = 1 AND other = 2".into()), ..reading(&["other"], &[]) };
        rows(&whole, read).await.is_ok_and(|rows| rows.concat() == ["2"])
    });
    assert!(next.await, "the connection is not given back");
    drop(whole);
    server.run("DELETE FROM s").await;

    // who stops reading stops the statement
    let source = open(&server.url(""), "SELECT id, SLEEP(1) AS s FROM s").await.map_err(told)?;
    server.run("INSERT INTO s SELECT seq, seq FROM seq_1_to_600").await;
    let source_of_rows = open(&server.url(""), "SELECT id, SLEEP(1) AS s FROM s").await.map_err(told)?;
    drop(source);
    let mut stream = source_of_rows.read(reading(&["id", "s"], &[])).await.map_err(told)?;
    assert!(tokio::time::timeout(std::time::Duration::from_millis(500), stream.next()).await.is_err());
    let other =
        source_of_rows.estimated_rows().await.is_ok() && source_of_rows.read(reading(&["id"], &[])).await.is_ok();
    assert!(other, "a read that is not polled is not refused");
    let busy = rows(&source_of_rows, reading(&["id"], &[])).await.map_err(|e| e.code());
    assert_eq!(busy, Err("SourceBusy"));
    drop(stream);
    let database = server.database.clone();
    let mut stopped = false;
    for _ in 0..50 {
        let sql = format!(
            "SELECT count(*) FROM information_schema.PROCESSLIST WHERE db = '{database}' AND info LIKE '%SLEEP(1)%' \
             AND id <> CONNECTION_ID()"
        );
        let running: Option<u64> = server.conn.query_first(sql).await.map_err(|e| e.to_string())?;
        stopped = running == Some(0);
        if stopped {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(stopped, "the statement runs on");
    let count = until(|| async {
        let read = SourceRead { condition: Some("id = 1".into()), ..reading(&["id"], &[]) };
        rows(&source_of_rows, read).await.is_ok_and(|rows| rows.len() == 1)
    })
    .await;
    assert!(count, "the state is gone after a read that was stopped");
    Ok(String::new())
}

async fn refused(server: &mut Server) -> Ended {
    server.run("CREATE TABLE pay_success (id INT PRIMARY KEY)").await;
    server.run("CREATE TABLE `odd.na``me` (`a b` INT PRIMARY KEY)").await;
    server.run("INSERT INTO `odd.na``me` VALUES (7)").await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let odd = open(&server.url(""), "`odd.na``me`").await.map_err(told)?;
    assert_eq!(rows(&odd, reading(&["a b"], &["a b"])).await.map_err(told)?.concat(), ["7"]);
    let source = open(&server.url(""), &format!("{}.pay_success", server.database)).await.map_err(told)?;
    assert!(source.name().ends_with(&format!("/{}.pay_success", server.database)), "{}", source.name());
    let error = source.read(reading(&["idd"], &[])).await.err().expect("no such column");
    assert!(error.code() == "SourceColumnNotFound" && error.to_string().contains("'id'"), "{error}");
    let bad = SourceRead { condition: Some("nonsense = 1".into()), ..reading(&["id"], &[]) };
    assert_eq!(rows(&source, bad).await.map_err(|e| e.code()), Err("SourceStatement"));
    assert_eq!(rows(&source, reading(&["id"], &[])).await.map_err(told)?.len(), 0);

    let user = format!("u{}", &server.database["lakepin_test".len()..]);
    // at home too, where a server may know a user without a name
    let everywhere = format!("{user}@'%', {user}@localhost");
    server
        .run(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'geheim', {user}@localhost IDENTIFIED BY 'geheim'"))
        .await;
    let host = server.url.rsplit('@').next().unwrap_or_default().to_string();
    let database = server.database.clone();
    let login = |password: &str| address(&format!("mysql://{user}:{password}@{host}"), &database, "");
    let cases = [
        (server.url(""), "pay_succes", "SourceTableNotFound", "pay_success"),
        (server.url(""), "pay_success; DROP TABLE pay_success", "SourceTableNotFound", ""),
        (server.url(""), "SELECT nothing FROM pay_success", "SourceStatement", "nothing"),
        (server.url(""), "SELECT 1; DROP TABLE pay_success", "SourceStatement", ""),
        (server.url("sslmode=verify-full"), "pay_success", "SourceUnavailable", ""),
        (login("geheim"), "pay_success", "SourceDenied", ""),
        (login("geheim2"), "pay_success", "SourceDenied", &user),
        (format!("mysql://u:geheim@127.0.0.1:1/{}", server.database), "t", "SourceUnavailable", "127.0.0.1:1"),
    ];
    let mut wrong = Vec::new();
    for (url, what, code, words) in cases {
        let error = match open(&url, what).await {
            Ok(source) => {
                wrong.push(format!("{url} {what} was opened: {source:?}"));
                continue;
            }
            Err(error) => error,
        };
        let all = format!("{error:?}");
        if error.code() != code || !all.contains(words) || all.contains("geheim") {
            wrong.push(format!("{what}: expected {code} {words}: {all}"));
        }
    }
    server.run(&format!("GRANT SELECT ON {}.* TO {everywhere}", server.database)).await;
    let source = open(&login("geheim"), "pay_success").await.map_err(told);
    server.run(&format!("DROP USER {everywhere}")).await;
    let source = source?;
    let shown = format!("{source:?} {} {:?}", source.name(), source.position());
    assert!(!shown.contains("geheim"), "{shown}");
    if wrong.is_empty() { Ok(shown) } else { Err(wrong.join("\n")) }
}
