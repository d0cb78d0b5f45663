//! PostgreSQL.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::{FutureExt, StreamExt};
use lakepin::datafusion::common::ScalarValue;
use lakepin::sql::source::{SourceRead, open};
use tokio_postgres::{Client, NoTls};

use super::{Typed, address, end_after, names, own_name, reading, rows, typed, until};
use crate::harness::{Outcome, Test};

type Ended = std::result::Result<String, String>;

async fn matrix(server: &Server) -> Ended {
    let url = server.url("");
    super::matrix::compared(&url, super::matrix::postgres(), async |sql: String| server.run(&sql).await).await
}

async fn unreadable(server: &Server) -> Ended {
    server.run("CREATE TABLE odd (id int NOT NULL PRIMARY KEY, d date)").await;
    server.run("INSERT INTO odd VALUES (1, '2026-04-16'), (2, 'infinity'), (3, '2026-04-17')").await;
    super::compared::unreadable(&server.url(""), "infinity", async || {
        server.run("INSERT INTO odd VALUES (7, '-infinity')").await;
    })
    .await
}

async fn early(server: &Server) -> Ended {
    server
        .run(
            "CREATE TABLE numbers (id int NOT NULL PRIMARY KEY, v int); \
             INSERT INTO numbers SELECT g, CASE g WHEN 1 THEN 7 WHEN 2 THEN -1 ELSE 1 END FROM generate_series(1, 20000) g",
        )
        .await;
    super::compared::early(&server.url("")).await
}

async fn no_such_keys(server: &Server) -> Ended {
    let uuid = "123e4567-e89b-12d3-a456-426655440000";
    server
        .run(
            "CREATE TABLE words (k text NOT NULL PRIMARY KEY, v int); INSERT INTO words VALUES ('a', 1); \
             CREATE TABLE ids (k uuid NOT NULL PRIMARY KEY, v int)",
        )
        .await;
    server.run(&format!("INSERT INTO ids VALUES ('{uuid}', 1)")).await;
    let url = server.url("");
    let words = super::compared::no_such_keys(&url, "words", "STRING NOT NULL", &["a", "a\0"]).await?;
    let ids = super::compared::no_such_keys(&url, "ids", "STRING NOT NULL", &[uuid, "test-1", "\0"]).await?;
    Ok([words, ids].join("; "))
}

async fn compared(server: &Server) -> Ended {
    for statement in super::compared::source("varchar(32) COLLATE \"C\"") {
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

/// A collation in which upper and lower case are one.
const FOLDING: &str = "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";

async fn pushed(server: &Server) -> Ended {
    server.run(FOLDING).await;
    let types = super::keyed::Types {
        time: "timestamp(3)",
        folding: "varchar(20) COLLATE folding",
        bytes: "varchar(20) COLLATE \"C\"",
        odd_day: "infinity",
        plain_decimals: false,
    };
    super::keyed::pushed(&server.url(""), &types, async |sql: String| server.run(&sql).await).await
}

async fn keyed(server: &Server) -> Ended {
    use super::keyed::{chinese, folding, gaps, keys, uuids};
    server.run(FOLDING).await;
    let url = server.url("");
    let mut run = async |sql: String| server.run(&sql).await;
    for (declared, lake, all) in [
        ("bigint", "BIGINT NOT NULL", gaps()),
        ("varchar(40) COLLATE \"C\"", "STRING NOT NULL", chinese()),
        ("varchar(40) COLLATE \"zh-x-icu\"", "STRING NOT NULL", chinese()),
        ("varchar(40) COLLATE folding", "STRING NOT NULL", chinese()),
        ("uuid", "STRING NOT NULL", uuids()),
        ("text COLLATE \"en-x-icu\"", "STRING NOT NULL", uuids()),
    ] {
        keys(&url, declared, lake, &all, &mut run).await?;
    }
    folding(&url, "varchar(40) COLLATE folding", "nondeterministic", &mut run).await?;
    Ok(String::new())
}

async fn cut(server: &Server) -> Ended {
    server
        .run(
            "CREATE TABLE s (id integer PRIMARY KEY, v text); \
             INSERT INTO s SELECT g, repeat('x', 1000) FROM generate_series(1, 20000) g",
        )
        .await;
    let url = server.url("chunk_rows=100&pause=20ms");
    for from in ["s", "SELECT * FROM s"] {
        let kill = async || {
            let of = "FROM pg_stat_activity WHERE application_name = 'lakepin' AND datname = current_database()";
            for _ in 0..200 {
                if server.number(&format!("SELECT count(*) {of}")).await == 1 {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            assert_eq!(server.number(&format!("SELECT count(pg_terminate_backend(pid)) {of}")).await, 1);
        };
        super::keyed::cut(&url, from, kill).await?;
    }
    Ok(String::new())
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("sources::postgres::every_type_is_read_exactly", || with_server(every_type)));
    tests.push(Test::new_async("sources::postgres::a_table_is_compared_with_its_source", || with_server(compared)));
    tests.push(Test::new_async("sources::postgres::no_type_differs_but_where_a_cell_does", || with_server(matrix)));
    tests.push(Test::new_async("sources::postgres::what_no_type_holds_is_a_finding", || with_server(unreadable)));
    tests.push(Test::new_async("sources::postgres::a_comparison_that_ends_early_is_told", || with_server(early)));
    tests.push(Test::new_async("sources::postgres::keys_that_a_type_has_not_are_not_there", || {
        with_server(no_such_keys)
    }));
    tests.push(Test::new_async("sources::postgres::conditions_are_sent_and_change_no_row", || with_server(pushed)));
    tests.push(Test::new_async("sources::postgres::keys_of_every_kind_find_their_own", || with_server(keyed)));
    tests.push(Test::new_async("sources::postgres::a_comparison_that_is_cut_has_no_verdict", || with_server(cut)));
    tests.push(Test::new_async("sources::postgres::keys_are_read_in_chunks", || with_server(chunks)));
    tests.push(Test::new_async("sources::postgres::order_is_what_an_index_gives", || with_server(order)));
    tests.push(Test::new_async("sources::postgres::one_state_is_read_under_writes", || with_server(one_state)));
    tests.push(Test::new_async("sources::postgres::a_killed_connection_ends_the_read", || with_server(killed)));
    tests.push(Test::new_async("sources::postgres::statements_end_in_time", || with_server(in_time)));
    tests.push(Test::new_async("sources::postgres::what_is_not_there_or_not_allowed_is_said", || with_server(refused)));
}

/// A server, a database of the test's own in it, and a connection to it.
struct Server {
    url: String,
    database: String,
    client: Client,
}

impl Server {
    fn url(&self, options: &str) -> String {
        address(&self.url, &self.database, options)
    }

    async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
    }
}

async fn connected(url: &str) -> Result<Client, String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(|e| e.to_string())?;
    tokio::spawn(connection);
    Ok(client)
}

async fn with_server<F>(test: F) -> Result<Outcome, String>
where
    F: AsyncFnOnce(&Server) -> Ended,
{
    let named = std::env::var("LAKEPIN_TEST_POSTGRES_URL").ok();
    let url = named.clone().unwrap_or_else(|| "postgres://postgres@127.0.0.1:5432".into());
    let admin = match connected(&address(&url, "postgres", "")).await {
        Ok(admin) => admin,
        Err(e) if named.is_none() => {
            return Ok(Outcome::Skipped(format!(
                "no PostgreSQL: LAKEPIN_TEST_POSTGRES_URL names none, and 127.0.0.1:5432: {e}"
            )));
        }
        Err(e) => return Err(e),
    };
    let database = own_name();
    let create = format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'");
    admin.batch_execute(&create).await.map_err(|e| format!("{e:?}"))?;
    let client = connected(&address(&url, &database, "")).await?;
    client.batch_execute("SET TimeZone = '+08:00'").await.map_err(|e| e.to_string())?;
    let server = Server { url, database: database.clone(), client };
    let ended = AssertUnwindSafe(test(&server)).catch_unwind().await;
    admin.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await.map_err(|e| format!("{e:?}"))?;
    Ok(Outcome::Passed(ended.unwrap_or_else(|panic| resume_unwind(panic))?))
}

const TYPES: &[Typed] = &[
    typed("boolean", "Boolean", "values", &[("true", "true"), ("false", "false")]),
    typed("smallint", "Int16", "values", &[("-32768", "-32768"), ("32767", "32767")]),
    typed("integer", "Int32", "values", &[("-2147483648", "-2147483648"), ("2147483647", "2147483647")]),
    typed(
        "bigint",
        "Int64",
        "values",
        &[("-9223372036854775808", "-9223372036854775808"), ("9223372036854775807", "9223372036854775807")],
    ),
    typed(
        "numeric(10,2)",
        "Decimal128(10, 2)",
        "values",
        &[("0", "0.00"), ("-0.01", "-0.01"), ("99999999.99", "99999999.99"), ("'NaN'", "<NaN>")],
    ),
    typed(
        "numeric(38,38)",
        "Decimal128(38, 38)",
        "values",
        &[("-0.00000000000000000000000000000000000001", "-0.00000000000000000000000000000000000001")],
    ),
    typed(
        "numeric(76,10)",
        "Decimal256(76, 10)",
        "values",
        &[
            ("1e65", "100000000000000000000000000000000000000000000000000000000000000000.0000000000"),
            ("-12345.6789", "-12345.6789000000"),
        ],
    ),
    typed("numeric(5,-2)", "Decimal128(7, 0)", "values", &[("12345", "12300"), ("-9999900", "-9999900")]),
    typed("numeric(3,5)", "Decimal128(5, 5)", "values", &[("0.00123", "0.00123")]),
    typed(
        "numeric",
        "Utf8",
        "other",
        &[
            ("1.50", "1.50"),
            ("-1e-30", "-0.000000000000000000000000000001"),
            ("1e40", "10000000000000000000000000000000000000000"),
            ("'NaN'", "<NaN>"),
            ("'Infinity'", "<Infinity>"),
            ("'-Infinity'", "<-Infinity>"),
        ],
    ),
    typed("real", "Float32", "values", &[("16777217", "16777216.0"), ("0.1", "0.1"), ("'-Infinity'", "-inf")]),
    typed(
        "double precision",
        "Float64",
        "values",
        &[("0.1", "0.1"), ("1.7976931348623157e308", "1.7976931348623157e308"), ("'NaN'", "NaN"), ("'-0'", "-0.0")],
    ),
    typed("money", "Decimal128(23, 4)", "values", &[("'-1234.56'", "-1234.5600")]),
    typed("text", "Utf8", "", &[("'订单号'", "订单号"), ("''", ""), ("'a  '", "a  "), ("E'\\\\x'", "\\x")]),
    typed("varchar(20)", "Utf8", "", &[("'A'", "A"), ("'😀'", "😀")]),
    typed("text COLLATE \"ucs_basic\"", "Utf8", "", &[("'A'", "A")]),
    typed("char(5)", "Utf8", "", &[("'a  '", "a"), ("'ab'", "ab"), ("''", "")]),
    typed("\"char\"", "Utf8", "", &[("'x'", "x")]),
    typed("name", "Utf8", "", &[("'n'", "n")]),
    typed("bytea", "Binary", "values", &[("'\\x00ff27'", "00ff27"), ("''", "")]),
    typed(
        "date",
        "Date32",
        "values",
        &[
            ("'1969-12-31'", "1969-12-31"),
            ("'9999-12-31'", "9999-12-31"),
            ("'0044-03-15 BC'", "-0043-03-15"),
            ("'infinity'", "<infinity>"),
            ("'-infinity'", "<-infinity>"),
        ],
    ),
    typed("time", "Time64(µs)", "values", &[("'23:59:59.999999'", "23:59:59.999999"), ("'24:00'", "<24:00:00>")]),
    typed("time(0)", "Time32(s)", "values", &[("'01:02:03'", "01:02:03")]),
    typed("time(3)", "Time32(ms)", "values", &[("'01:02:03.004'", "01:02:03.004")]),
    typed("timetz", "Utf8", "other", &[("'01:02:03.5+02'", "01:02:03.5+02")]),
    typed(
        "timestamp",
        "Timestamp(µs)",
        "values",
        &[
            ("'1969-12-31 23:59:59.999999'", "1969-12-31T23:59:59.999999"),
            ("'4713-01-01 00:00:00 BC'", "-4712-01-01T00:00:00"),
            ("'infinity'", "<infinity>"),
            ("'-infinity'", "<-infinity>"),
            ("'294276-12-31 23:59:59.999999'", "<9223371331199999999 µs after 2000-01-01>"),
        ],
    ),
    typed("timestamp(0)", "Timestamp(s)", "values", &[("'2026-04-16 10:00:00'", "2026-04-16T10:00:00")]),
    typed("timestamp(3)", "Timestamp(ms)", "values", &[("'2026-04-16 10:00:00.123'", "2026-04-16T10:00:00.123")]),
    // written at +08:00, whose sign POSIX turns round
    typed(
        "timestamptz",
        "Timestamp(µs, \"UTC\")",
        "values",
        &[("'2026-04-16 00:00:00.000001+08'", "2026-04-15T16:00:00.000001Z"), ("'infinity'", "<infinity>")],
    ),
    typed("timestamptz(0)", "Timestamp(s, \"UTC\")", "values", &[("'1970-01-01 00:00:00+00'", "1970-01-01T00:00:00Z")]),
    typed("interval", "Utf8", "other", &[("'1 month -2 days'", "1 mon -2 days")]),
    typed(
        "uuid",
        "Utf8",
        "values",
        &[("'123E4567-E89B-12D3-A456-426655440000'", "123e4567-e89b-12d3-a456-426655440000")],
    ),
    typed("json", "Utf8", "other", &[("'{\"b\": 1,  \"a\": null}'", "{\"b\": 1,  \"a\": null}")]),
    typed("jsonb", "Utf8", "other", &[("'{\"b\": 1.50, \"a\": null}'", "{\"a\": null, \"b\": 1.50}")]),
    typed("mood", "Utf8", "other", &[("'happy'", "happy"), ("'it''s'", "it's")]),
    typed(
        "inet",
        "Utf8",
        "other",
        &[
            ("'10.0.0.9/8'", "10.0.0.9/8"),
            ("'10.0.0.9/32'", "10.0.0.9"),
            ("'::1'", "::1"),
            ("'2001:db8::/32'", "2001:db8::/32"),
        ],
    ),
    typed("cidr", "Utf8", "other", &[("'10.0.0.0/8'", "10.0.0.0/8")]),
    typed("macaddr", "Utf8", "other", &[("'08:00:2B:01:02:03'", "08:00:2b:01:02:03")]),
    typed("bit(3)", "Utf8", "other", &[("B'101'", "101")]),
    typed("int4range", "Utf8", "other", &[("'[1,5)'", "[1,5)")]),
    typed("integer[]", "Utf8", "other", &[("'{1,NULL,3}'", "{1,NULL,3}")]),
    typed("text[]", "Utf8", "other", &[("ARRAY['a,b', NULL, '']", "{\"a,b\",NULL,\"\"}")]),
    typed("cents", "Decimal128(12, 2)", "values", &[("1.5", "1.50")]),
];

async fn every_type(server: &Server) -> Ended {
    server.run("CREATE TYPE mood AS ENUM ('sad', 'happy', 'it''s'); CREATE DOMAIN cents AS numeric(12,2)").await;
    let mut wrong = Vec::new();
    let mut cells = 0;
    for (at, typed) in TYPES.iter().enumerate() {
        let table = format!("t_{at}");
        server.run(&format!("CREATE TABLE {table} (id integer PRIMARY KEY, v {})", typed.declared)).await;
        for (id, (literal, _)) in typed.cells.iter().chain([&("NULL", "NULL")]).enumerate() {
            server.run(&format!("INSERT INTO {table} VALUES ({id}, {literal})")).await;
            cells += 1;
        }
        wrong.extend(typed.check(&server.url(""), &table).await.err());
    }
    if wrong.is_empty() { Ok(format!("{} types, {cells} values", TYPES.len())) } else { Err(wrong.join("\n")) }
}

async fn chunks(server: &Server) -> Ended {
    server
        .run(
            "CREATE TABLE k (a bigint, b text COLLATE \"C\", c numeric(30,10), d date, e integer, \
             f text COLLATE \"POSIX\", PRIMARY KEY (a, b, c, d)); CREATE INDEX ON k (e); CREATE INDEX ON k (f)",
        )
        .await;
    let mut expected = BTreeSet::new();
    for at in 0_i64..600 {
        let a = if at % 3 == 0 { i64::MAX - at / 3 % 7 } else { at / 9 * 1_000 };
        let b = ["", "A", "a", "ä", "订", "😀"][usize::try_from(at % 6).unwrap()];
        let c = format!("12345678901234567890.{:010}", at % 5);
        let d = ["2026-01-31", "infinity"][usize::try_from(at % 2).unwrap()];
        if expected.insert((a, b, c.clone(), d)) {
            let e = if at % 4 == 0 { "NULL".to_string() } else { (at % 3).to_string() };
            server.run(&format!("INSERT INTO k VALUES ({a}, '{b}', {c}, '{d}', {e}, '{b}')")).await;
        }
    }
    let expected: Vec<Vec<String>> = expected
        .into_iter()
        .map(|(a, b, c, d)| vec![a.to_string(), b.to_string(), c, d.replace("infinity", "<infinity>")])
        .collect();
    let told = |e: lakepin::Error| format!("{e:?}");
    let source = open(&server.url("chunk_rows=7"), "public.k").await.map_err(told)?;
    let key = ["a", "b", "c", "d"];
    assert_eq!(source.key(), key);
    let before = source.work();
    assert_eq!(rows(&source, reading(&key, &key)).await.map_err(told)?, expected);
    let work = source.work();
    let count = expected.len() as u64;
    assert_eq!(work.rows - before.rows, count, "no row is read twice");
    assert!(work.queries - before.queries >= count / 7, "{work:?}: not in chunks");
    let mut sorted = expected.clone();
    sorted.sort();
    for by in [&[][..], &["e"], &["f"], &["a"]] {
        let mut columns = vec!["a", "b", "c", "d"];
        columns.extend(by.iter().filter(|name| **name != "a"));
        let found = rows(&source, reading(&columns, by)).await.map_err(told)?;
        let mut keys: Vec<Vec<String>> = found.iter().map(|row| row[..4].to_vec()).collect();
        keys.sort();
        assert_eq!(keys, sorted, "by {by:?}");
        let by: Vec<&String> = found.iter().filter_map(|row| row.get(4)).collect();
        let rank = |text: &String| (text == "NULL", text.clone());
        assert!(by.windows(2).all(|pair| rank(pair[0]) <= rank(pair[1])), "{by:?}");
    }
    let scalar = |row: &[String]| -> Vec<ScalarValue> {
        let c: i128 = row[2].replace('.', "").parse().unwrap();
        vec![
            ScalarValue::Int64(Some(row[0].parse().unwrap())),
            ScalarValue::from(row[1].as_str()),
            ScalarValue::Decimal128(Some(c), 30, 10),
            ScalarValue::Date32(Some(20_484)),
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
    let condition = Some("a < 5000 -- small".to_string());
    let found = rows(&source, SourceRead { condition, ..reading(&key, &[]) }).await.map_err(told)?;
    assert_eq!(found.len(), expected.iter().filter(|row| row[0].parse::<i64>().unwrap() < 5_000).count());
    let mut stream = source.read(SourceRead::default()).await.map_err(told)?;
    let mut counted = 0;
    while let Some(batch) = stream.next().await {
        counted += batch.map_err(|e| e.to_string())?.num_rows();
    }
    assert_eq!(counted as u64, count);
    // two reads at once, and one that is left
    let mut one = source.read(reading(&["a"], &key)).await.map_err(told)?;
    let mut left = source.read(reading(&["a"], &key)).await.map_err(told)?;
    assert!(one.next().await.is_some_and(|batch| batch.is_ok()) && left.next().await.is_some());
    drop(left);
    let bad = SourceRead { condition: Some("nonsense".into()), ..reading(&["a"], &[]) };
    assert_eq!(rows(&source, bad).await.map_err(|e| e.code()), Err("SourceStatement"));
    let mut counted = 7;
    while let Some(batch) = one.next().await {
        counted += batch.map_err(|e| e.to_string())?.num_rows();
    }
    assert_eq!(counted as u64, count, "a statement that fails takes no read with it");
    Ok(format!("{count} keys of four columns"))
}

async fn order(server: &Server) -> Ended {
    server
        .run(
            "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
             CREATE TABLE o (id integer PRIMARY KEY, b text NOT NULL UNIQUE, c text COLLATE nocase NOT NULL UNIQUE, \
             i text COLLATE \"en-x-icu\" NOT NULL UNIQUE, n integer, u uuid); \
             CREATE INDEX ON o (n, b); CREATE INDEX ON o (u); CREATE INDEX ON o (id) WHERE n = 1; \
             INSERT INTO o VALUES (1, 'b', 'b', 'b', 1), (2, 'B', 'A', 'A', NULL), (3, 'a', 'C', 'C', 1); \
             CREATE TABLE heap (v integer); INSERT INTO heap VALUES (2), (1), (NULL), (1); \
             CREATE TABLE parted (id integer, v integer) PARTITION BY RANGE (id); \
             CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10); INSERT INTO parted VALUES (1, 2); \
             CREATE TABLE uniq (a integer, b integer NOT NULL, UNIQUE (a), UNIQUE (b)); ANALYZE",
        )
        .await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let source = open(&server.url(""), "o").await.map_err(told)?;
    let cases: &[(&[&str], bool)] = &[
        (&["id"], true),
        (&["b"], true),
        (&["n"], true),
        (&["n", "b"], true),
        (&["u"], true),
        (&["b", "n"], true),
        (&["u", "n"], true),
        (&["c"], false),
        (&["i"], false),
    ];
    for (by, indexed) in cases {
        assert_eq!(source.is_indexed(&names(by)).await.map_err(told)?, *indexed, "{by:?}");
    }
    for (by, expected) in [("c", ["A", "C", "b"]), ("i", ["A", "C", "b"]), ("b", ["B", "a", "b"])] {
        assert_eq!(rows(&source, reading(&[by], &[by])).await.map_err(told)?.concat(), expected, "{by}");
    }
    let key = |text: &str| SourceRead { keys: vec![vec![text.into()]], ..reading(&["id"], &["c"]) };
    assert_eq!(rows(&source, key("a")).await.map_err(told)?.len(), 0);
    assert_eq!(rows(&source, key("A")).await.map_err(told)?.concat(), ["2"]);
    assert_eq!(source.estimated_rows().await.map_err(told)?, Some(3));

    let heap = open(&server.url(""), "heap").await.map_err(told)?;
    assert!(heap.key().is_empty() && !heap.is_indexed(&names(&["v"])).await.map_err(told)?);
    assert_eq!(rows(&heap, reading(&["v"], &["v"])).await.map_err(told)?.concat(), ["1", "1", "2", "NULL"]);
    let parted = open(&server.url(""), "parted").await.map_err(told)?;
    assert_eq!(parted.estimated_rows().await.map_err(told)?, Some(1));
    assert_eq!(rows(&parted, reading(&["id", "v"], &[])).await.map_err(told)?.concat(), ["1", "2"]);
    assert_eq!(open(&server.url(""), "uniq").await.map_err(told)?.key(), ["b"]);
    Ok(source.position().to_string())
}

async fn one_state(server: &Server) -> Ended {
    server.run("CREATE TABLE s (id integer PRIMARY KEY, v integer); INSERT INTO s SELECT g, 0 FROM generate_series(1, 1000) g").await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let source = open(&server.url("chunk_rows=50"), "s").await.map_err(told)?;
    let query = open(&server.url(""), "SELECT count(*) AS n, sum(v) AS v FROM s").await.map_err(told)?;
    server.run("DELETE FROM s WHERE id % 2 = 0; UPDATE s SET v = 1; INSERT INTO s SELECT g, 2 FROM generate_series(2001, 3000) g").await;
    for by in [&["id"][..], &[]] {
        let found = rows(&source, reading(&["v"], by)).await.map_err(told)?;
        assert_eq!((found.len(), found.iter().all(|row| row[0] == "0")), (1_000, true), "{by:?}");
    }
    assert_eq!(rows(&query, reading(&["n", "v"], &[])).await.map_err(told)?.concat(), ["1000", "0"]);
    let off = source.position().clock_millis - lakepin::storage::env::now_millis();
    assert!(off.abs() < 120_000, "the server's clock is off by {off} ms");
    assert!(source.position().position.starts_with("LSN ") && source.position().lag_millis.is_none());
    // of one state is what the log moves: no view, nothing unlogged, wherever it stands in a query
    server.run("CREATE VIEW seen AS SELECT id FROM s; CREATE UNLOGGED TABLE loose (id INT)").await;
    for (query, is_state) in [
        ("SELECT id FROM s", true),
        ("WITH q AS (SELECT id FROM s) SELECT id FROM q, generate_series(1, 2)", true),
        ("SELECT id FROM s WHERE id NOT IN (SELECT id FROM loose)", false),
        ("SELECT \"id\" FROM \"seen\"", false),
    ] {
        let source = open(&server.url(""), query).await.map_err(|e| format!("{e:?}"))?;
        assert_eq!(source.position().is_state, is_state, "{query}: {:?}", source.position());
    }
    Ok(source.position().to_string())
}

async fn killed(server: &Server) -> Ended {
    server
        .run(
            "CREATE TABLE s (id integer PRIMARY KEY, v text); \
             INSERT INTO s SELECT g, repeat('x', 1000) FROM generate_series(1, 20000) g",
        )
        .await;
    for (what, by) in [("s", &["id"][..]), ("SELECT * FROM s", &[])] {
        let source = open(&server.url("chunk_rows=100"), what).await.map_err(|e| format!("{e:?}"))?;
        let kill = async {
            let ended = server
                .number(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE application_name = 'lakepin' AND datname = current_database()",
                )
                .await;
            assert_eq!(ended, 1);
        };
        assert_eq!(end_after(&source, reading(&["id", "v"], by), kill).await, Err("SourceLost"), "{what}");
        let again = rows(&source, reading(&["id"], by)).await.expect_err("the state is gone");
        assert_eq!(again.code(), "SourceLost");
        assert!(again.to_string().contains(&server.database) && again.hint().is_some(), "{again}");
    }
    Ok(String::new())
}

async fn in_time(server: &Server) -> Ended {
    server.run("CREATE TABLE s (id integer PRIMARY KEY); INSERT INTO s SELECT g FROM generate_series(1, 5000) g").await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let source = open(&server.url("statement_timeout=500ms"), "s").await.map_err(told)?;
    let slow = || SourceRead { condition: Some("pg_sleep(0.01) IS NULL".into()), ..reading(&["id"], &["id"]) };
    assert_eq!(rows(&source, slow()).await.map_err(|e| e.code()), Err("SourceTimeout"));
    // the state is still read
    server.run("DELETE FROM s").await;
    assert_eq!(rows(&source, reading(&["id"], &["id"])).await.map_err(told)?.len(), 5_000);
    drop(source);

    server.run("CREATE TABLE locked (id integer)").await;
    server.run("BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE").await;
    let locked = open(&server.url("lock_timeout=1s"), "locked").await.expect_err("it is locked");
    assert_eq!(locked.code(), "SourceTimeout", "{locked:?}");
    server.run("COMMIT").await;

    // who stops reading stops the statement
    server.run("INSERT INTO s SELECT g FROM generate_series(1, 600) g").await;
    let source = open(&server.url(""), "s").await.map_err(told)?;
    let slow = SourceRead { condition: Some("pg_sleep(1) IS NOT NULL".into()), ..reading(&["id"], &["id"]) };
    let mut stream = source.read(slow).await.map_err(told)?;
    assert!(tokio::time::timeout(std::time::Duration::from_millis(500), stream.next()).await.is_err());
    drop(stream);
    let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND application_name = 'lakepin' \
                   AND datname = current_database()";
    assert!(until(|| async { server.number(running).await == 0 }).await, "the statement runs on");
    assert_eq!(rows(&source, reading(&["id"], &["id"])).await.map_err(told)?.len(), 600);
    // and a source that is closed leaves nobody connected
    drop(source);
    let connected =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lakepin' AND datname = current_database()";
    assert!(until(|| async { server.number(connected).await == 0 }).await, "the connection stays");
    Ok(String::new())
}

async fn refused(server: &Server) -> Ended {
    server
        .run(
            "CREATE TABLE pay_success (id integer PRIMARY KEY); CREATE TABLE \"Odd.na\"\"me\" (\"a b\" integer PRIMARY KEY); \
             CREATE TABLE hidden (id integer); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; \
             CREATE TABLE heirs (id integer PRIMARY KEY); CREATE TABLE heir () INHERITS (heirs); \
             INSERT INTO \"Odd.na\"\"me\" VALUES (7); CREATE SCHEMA shop; CREATE TABLE shop.pay (id integer)",
        )
        .await;
    let told = |e: lakepin::Error| format!("{e:?}");
    let odd = open(&server.url(""), "\"Odd.na\"\"me\"").await.map_err(told)?;
    assert_eq!(rows(&odd, reading(&["a b"], &["a b"])).await.map_err(told)?.concat(), ["7"]);
    assert!(open(&server.url(""), "heirs").await.map_err(told)?.key().is_empty(), "two heirs may have one key");
    let source = open(&server.url(""), "PAY_success").await.map_err(told)?;
    assert!(source.name().ends_with("/public.pay_success"), "{}", source.name());
    let error = source.read(reading(&["idd"], &[])).await.err().expect("no such column");
    assert!(error.code() == "SourceColumnNotFound" && error.to_string().contains("'id'"), "{error}");
    // nothing is written, whatever a query calls
    server.run("CREATE SEQUENCE q").await;
    let writes = open(&server.url(""), "SELECT nextval('q') AS v").await.map_err(told)?;
    assert_eq!(rows(&writes, reading(&["v"], &[])).await.map_err(|e| e.code()), Err("SourceStatement"));

    let user = format!("u{}", &server.database["lakepin_test".len()..]);
    server.run(&format!("CREATE USER {user} PASSWORD 'geheim'")).await;
    let host = server.url.rsplit('@').next().unwrap_or_default().to_string();
    let login = address(&format!("postgres://{user}:geheim@{host}"), &server.database, "");
    let cases = [
        (server.url(""), "pay_succes", "SourceTableNotFound", "pay_success"),
        (server.url(""), "shop.pai", "SourceTableNotFound", "shop.pay"),
        (server.url(""), "pay_success; DROP TABLE pay_success", "SourceTableNotFound", ""),
        (server.url(""), "SELECT nothing FROM pay_success", "SourceStatement", "nothing"),
        (server.url(""), "SELECT 1 AS a; DROP TABLE pay_success", "SourceStatement", ""),
        (address(&server.url, "no_such_database", ""), "t", "SourceStatement", "no_such_database"),
        (server.url("sslmode=verify-full"), "pay_success", "SourceUnavailable", "certificate"),
        (login.clone(), "pay_success", "SourceDenied", "may not read"),
        (format!("postgres://u:geheim@127.0.0.1:1/{}", server.database), "t", "SourceUnavailable", "127.0.0.1:1"),
    ];
    let mut wrong = Vec::new();
    for (url, what, code, words) in cases {
        let error = match open(&url, what).await {
            Ok(source) => {
                wrong.push(format!("{what} was opened: {source:?}"));
                continue;
            }
            Err(error) => error,
        };
        let all = format!("{error:?}");
        if error.code() != code || !all.contains(words) || all.contains("geheim") {
            wrong.push(format!("{what}: expected {code} {words}: {all}"));
        }
    }
    server.run(&format!("GRANT SELECT ON pay_success, hidden TO {user}")).await;
    // rows that a policy would hide are not quietly left out
    let hidden = open(&login, "hidden").await.map(drop).map_err(|e| e.code());
    assert_eq!(hidden, Err("SourceDenied"));
    let source = open(&login, "pay_success").await.map_err(told);
    let encrypted = match open(&server.url("sslmode=require"), "pay_success").await {
        Ok(_) => server.number("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'lakepin'").await,
        Err(error) => {
            wrong.push(format!("sslmode=require: {error:?}"));
            0
        }
    };
    let shown = source
        .as_ref()
        .map(|source| format!("{source:?} {} {:?}", source.name(), source.position()))
        .unwrap_or_default();
    drop(source?);
    server.run(&format!("DROP OWNED BY {user}; DROP USER {user}")).await;
    assert!(!shown.contains("geheim"), "{shown}");
    if wrong.is_empty() { Ok(format!("{shown}; {encrypted} encrypted")) } else { Err(wrong.join("\n")) }
}
