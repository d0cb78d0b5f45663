//! A table compared with its source on a real server: conditions that the database is sent, keys of every kind, and a
//! connection that is cut.

use futures::StreamExt;
use lakepin::arrow::array::AsArray;
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{TableBuilder, TableSpec};
use serde_json::{Value, json};

use super::compared::told;

/// A session over one table `pay.k`.
async fn lake(columns: &[(&str, &str)], key: &str, rows: &[Value]) -> Result<(tempfile::TempDir, Session), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let spec = TableSpec::new(columns).primary_key(&[key]).option("bucket", "1");
    let mut table = TableBuilder::create(folder.path(), "pay", "k", &spec).map_err(|e| format!("{e:?}"))?;
    table.append(rows).map_err(|e| format!("{e:?}"))?;
    let warehouse = Warehouse::open(&folder.path().display().to_string(), &std::collections::BTreeMap::new()).await;
    let session = Session::new(&warehouse.map_err(|e| format!("{e:?}"))?, SessionConfig::default()).await;
    Ok((folder, session.map_err(|e| format!("{e:?}"))?))
}

/// The notes of a comparison.
async fn notes(session: &Session, sql: &str) -> Result<Vec<String>, String> {
    let mut answer = session.run_one(sql).await.map_err(|e| format!("{sql}: {e:?}"))?;
    let mut notes = Vec::new();
    while let Some(batch) = answer.stream.next().await {
        let batch = batch.map_err(|e| e.to_string())?;
        let column = |name: &str| batch.column_by_name(name).ok_or(format!("there is no column {name}"));
        let (parts, texts) = (column("part")?.as_string::<i32>(), column("note")?.as_string::<i32>());
        let of = parts.iter().zip(texts).filter(|(part, _)| *part == Some("note"));
        notes.extend(of.filter_map(|(_, note)| note.map(str::to_string)));
    }
    Ok(notes)
}

/// Types of a database for the table that conditions are asked of.
pub(super) struct Types {
    /// Times without a zone, of three digits.
    pub(super) time: &'static str,
    /// Texts in which upper and lower case are one.
    pub(super) folding: &'static str,
    /// Texts byte by byte.
    pub(super) bytes: &'static str,
    /// A date that no type holds.
    pub(super) odd_day: &'static str,
    /// Whether every decimal has a value.
    pub(super) plain_decimals: bool,
}

const ROWS: i64 = 400;

/// Conditions, and whether the database can look at any part of them.
const CONDITIONS: &[(&str, bool)] = &[
    ("n > 90", true),
    ("n < 3 AND d >= 3.50", true),
    ("n <> 7", true),
    ("n IS NULL", true),
    ("n IS NOT NULL AND n <= 4", true),
    ("id IN (1, 2, 3, 5000)", true),
    ("id BETWEEN 100 AND 120", true),
    ("d = 3.5 OR d = 4.25", true),
    ("d > 3.505", false),
    ("day = DATE '2026-04-05'", true),
    ("day < DATE '2026-04-03'", true),
    ("day IS NOT NULL AND day >= DATE '2026-04-27'", true),
    ("day IS NULL", false),
    ("moment <= TIMESTAMP '2026-04-16 00:00:30.500'", true),
    ("s = 'a'", true),
    ("s <> 'a'", true),
    ("s > 'B'", true),
    ("s IN ('ä', 'zz')", true),
    ("t = 'A'", true),
    ("t < 'a'", true),
    ("t <> 'a'", true),
    ("s LIKE 'a%'", false),
    ("abs(n) = 5", false),
    ("n = 5 OR s = 'b'", false),
    ("n NOT IN (1, 2, 3)", true),
    ("n > 95 AND abs(n) > 97", true),
];

/// Rows are the same whether the database is asked for some of them or for all.
pub(super) async fn pushed<F>(url: &str, types: &Types, mut run: F) -> Result<String, String>
where
    F: AsyncFnMut(String),
{
    let texts = ["a", "A", "b", "B ", "ä", "a\tb", "订单"];
    let day = |id: i64| format!("2026-04-{:02}", id % 28 + 1);
    let at = |id: i64| format!("2026-04-16 00:{:02}:{:02}.{:03}", id / 60, id % 60, id % 1000);
    let cents = |id: i64| format!("{}.{:02}", id % 9, id % 4 * 25);
    let text = |id: i64, by: i64| texts[usize::try_from(id * by % 7).unwrap_or_default()];
    let nullable = |id: i64| id % 11 != 3;
    let rows: Vec<Value> = (0..ROWS)
        .map(|id| {
            json!({
                "id": id, "n": nullable(id).then_some(id % 100), "d": cents(id), "day": day(id), "moment": at(id),
                "s": nullable(id + 1).then(|| text(id, 1)), "t": text(id, 3),
            })
        })
        .collect();
    let columns = [
        ("id", "BIGINT NOT NULL"),
        ("n", "INT"),
        ("d", "DECIMAL(12, 2)"),
        ("day", "DATE"),
        ("moment", "TIMESTAMP(3)"),
        ("s", "STRING"),
        ("t", "STRING"),
    ];
    let (_folder, session) = lake(&columns, "id", &rows).await?;
    let Types { time, folding, bytes, odd_day, plain_decimals } = types;
    run(format!(
        "CREATE TABLE k (id bigint NOT NULL PRIMARY KEY, n int, d decimal(12,2), day date, moment {time}, s {folding}, t {bytes})"
    ))
    .await;
    let values: Vec<String> = (0..ROWS)
        .map(|id| {
            let or_null = |is: bool, text: String| if is { text } else { "NULL".to_string() };
            format!(
                "({id}, {}, {}, '{}', '{}', {}, '{}')",
                or_null(nullable(id), (id % 100).to_string()),
                cents(id),
                day(id),
                at(id),
                or_null(nullable(id + 1), format!("'{}'", text(id, 1))),
                text(id, 3)
            )
        })
        .collect();
    run(format!("INSERT INTO k VALUES {}", values.join(", "))).await;
    // rows that meet a condition on one side alone, and some that are on one side alone
    for change in [
        "UPDATE k SET n = 95, d = 3.5 WHERE id IN (20, 120)",
        "UPDATE k SET n = NULL WHERE id = 21",
        "UPDATE k SET s = 'A', t = 'a' WHERE id IN (28, 30, 35)",
        "UPDATE k SET s = 'a ', t = 'A ' WHERE id IN (42, 49)",
        "DELETE FROM k WHERE id IN (2, 101)",
        "INSERT INTO k VALUES (5000, 96, 4.25, '2026-04-05', '2026-04-16 00:00:01.000', 'a', 'A')",
    ] {
        run(change.to_string()).await;
    }
    run(format!("UPDATE k SET day = '{odd_day}' WHERE id IN (32, 60)")).await;
    let mut fewer = 0;
    // small chunks, so that there are several of them
    let url = format!("{url}{}chunk_rows=50", if url.contains('?') { '&' } else { '?' });
    for (condition, is_sent) in CONDITIONS {
        for from in ["k", "SELECT * FROM k"] {
            let sql = |condition: &str| {
                format!("RECONCILE k WITH '{url}' FROM '{from}' ON KEY (id) WHERE {condition} LIMIT 1000 PER CLASS")
            };
            let sent = told(&session, &sql(condition)).await?;
            let all = told(&session, &sql(&format!("coalesce(({condition}), false)"))).await?;
            if sent != all {
                return Err(format!("{condition} of {from}:\n  sent {sent:?}\n  not  {all:?}"));
            }
            let notes = notes(&session, &sql(condition)).await?;
            let note = notes.iter().find(|note| note.contains("was asked for rows with"));
            // the collation of a query's texts is not told, and their type may be another one
            // what may have no value here, as a date of no day, is looked at here
            let can_be_sent = !condition.starts_with("day")
                && !condition.starts_with("moment")
                && (*plain_decimals || !condition.starts_with("d "));
            if note.is_some() != (*is_sent && can_be_sent) && from == "k" {
                return Err(format!("{condition}: {notes:?}"));
            }
            let Some(note) = note else { continue };
            let came = note.rsplit(", and ").next().and_then(|rest| rest.split(' ').next()?.parse::<i64>().ok());
            let came = came.ok_or_else(|| format!("no rows are told: {note}"))?;
            fewer += i64::from(came < ROWS / 2);
        }
    }
    if fewer < 20 {
        return Err(format!("the database left rows out in {fewer} cases only"));
    }
    Ok(format!("{} conditions, fewer than half of the rows came in {fewer} cases", CONDITIONS.len()))
}

/// Keys in the form the lake has them, beside a column of the database: each finds its own.
pub(super) async fn keys<F>(
    url: &str,
    declared: &str,
    lake_type: &str,
    keys: &[String],
    mut run: F,
) -> Result<(), String>
where
    F: AsyncFnMut(String),
{
    let key = |text: &String| match lake_type.starts_with("BIGINT") {
        true => json!(text.parse::<i64>().unwrap_or_default()),
        false => json!(text),
    };
    let (gone, kept) = keys.split_last().ok_or("there are no keys")?;
    let rows: Vec<Value> = kept.iter().enumerate().map(|(at, text)| json!({"k": key(text), "v": at})).collect();
    let (_folder, session) = lake(&[("k", lake_type), ("v", "INT")], "k", &rows).await?;
    run("DROP TABLE IF EXISTS k".to_string()).await;
    run(format!("CREATE TABLE k (k {declared} NOT NULL PRIMARY KEY, v int)")).await;
    for some in kept.iter().enumerate().collect::<Vec<_>>().chunks(500) {
        let rows: Vec<String> = some.iter().map(|(at, text)| format!("('{text}', {at})")).collect();
        run(format!("INSERT INTO k VALUES {}", rows.join(", "))).await;
    }
    let url = format!("{url}{}chunk_rows=100", if url.contains('?') { '&' } else { '?' });
    let sql = format!("RECONCILE k WITH '{url}' FROM 'k' ON KEY (k)");
    let equal = told(&session, &sql).await?;
    if equal != ["EQUAL".to_string(), format!("EQUAL {}", kept.len())] {
        return Err(format!("{declared}: {equal:?}"));
    }
    let at = |part: usize| &kept[kept.len() * part / 4];
    run(format!("DELETE FROM k WHERE k = '{}'", at(1))).await;
    run(format!("UPDATE k SET v = -1 WHERE k = '{}'", at(2))).await;
    run(format!("INSERT INTO k VALUES ('{gone}', 7)")).await;
    let mut found = told(&session, &sql).await?;
    found.sort();
    let shown = |class: &str, key: &String, column: &str| format!("{class} {} {column}", json!({"k": key}));
    let mut right = vec![
        "DIFFERENT".to_string(),
        "DIFFERENT 1".to_string(),
        "EXTRA_IN_LAKE 1".to_string(),
        "MISSING_IN_LAKE 1".to_string(),
        format!("EQUAL {}", kept.len() - 2),
        shown("DIFFERENT", at(2), "v"),
        shown("EXTRA_IN_LAKE", at(1), "NULL"),
        shown("MISSING_IN_LAKE", gone, "NULL"),
    ];
    right.sort();
    if found != right {
        return Err(format!("{declared}:\n  found {found:#?}\n  right {right:#?}"));
    }
    Ok(())
}

/// Keys with gaps, of Chinese characters, and UUIDs.
pub(super) fn gaps() -> Vec<String> {
    (0..700i64).map(|at| (at * at * 100_003 - 5_000_000).to_string()).collect()
}

pub(super) fn chinese() -> Vec<String> {
    let marks: Vec<char> = "支付订单成功失败退款号码零一二三四五六七八九".chars().collect();
    (0..500usize).map(|at| format!("{}{}é{at}", marks[at % marks.len()], marks[at * 7 % marks.len()])).collect()
}

pub(super) fn uuids() -> Vec<String> {
    let mut random = crate::random::Random::new(11);
    let uuid = |high: u64, low: u64| {
        let text = format!("{high:016x}{low:016x}");
        format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
    };
    // version 4 of the one variant that MariaDB takes
    let marked = |high: u64, low: u64| uuid(high & !0xf000 | 0x4000, low >> 2 | 1 << 63);
    (0..500).map(|_| marked(random.next(), random.next())).collect()
}

/// A key whose collation takes `A` for `a`: told, and compared in lower case where that is asked for.
pub(super) async fn folding<F>(url: &str, declared: &str, collation: &str, mut run: F) -> Result<(), String>
where
    F: AsyncFnMut(String),
{
    let rows: Vec<Value> =
        ["a", "B", "订单", "É", "z"].iter().enumerate().map(|(v, k)| json!({"k": k, "v": v})).collect();
    let (_folder, session) = lake(&[("k", "STRING NOT NULL"), ("v", "INT")], "k", &rows).await?;
    run("DROP TABLE IF EXISTS k".to_string()).await;
    run(format!("CREATE TABLE k (k {declared} NOT NULL PRIMARY KEY, v int)")).await;
    run("INSERT INTO k VALUES ('A', 0), ('b', 1), ('订单', 2), ('é', 3), ('z', 9)".to_string()).await;
    let sql = format!("RECONCILE k WITH '{url}' FROM 'k' ON KEY (k) LIMIT 0 PER CLASS");
    let found = told(&session, &sql).await?;
    let right = ["DIFFERENT", "MISSING_IN_LAKE 3", "EXTRA_IN_LAKE 3", "DIFFERENT 1", "EQUAL 1"];
    if found != right {
        return Err(format!("{declared}: {found:?}"));
    }
    let told_of = notes(&session, &sql).await?;
    if !told_of.iter().any(|note| note.contains(collation) && note.contains("COLLATE NOCASE (k)")) {
        return Err(format!("{collation} is not told: {told_of:?}"));
    }
    let found = told(&session, &format!("{sql} COLLATE NOCASE (k)")).await?;
    if found != ["DIFFERENT", "DIFFERENT 1", "EQUAL 4"] {
        return Err(format!("{declared} in lower case: {found:?}"));
    }
    Ok(())
}

/// A comparison whose source is cut off in the middle: an error, and no verdict. `kill` ends the connection once it reads.
pub(super) async fn cut<K>(url: &str, from: &str, kill: K) -> Result<(), String>
where
    K: AsyncFnOnce(),
{
    let (_folder, session) =
        lake(&[("id", "INT NOT NULL"), ("v", "STRING")], "id", &[json!({"id": 1, "v": "x"})]).await?;
    let sql = format!("RECONCILE k WITH '{url}' FROM '{from}' ON KEY (id) INTO done");
    let (compared, ()) = futures::join!(session.run_one(&sql), kill());
    match compared {
        Err(error) if error.code() == "SourceLost" => {}
        Err(error) => return Err(format!("{from}: {error:?}")),
        Ok(_) => return Err(format!("{from}: there is a verdict")),
    }
    match session.run_one("SELECT * FROM done").await {
        Err(error) if error.code() == "TableNotFound" => Ok(()),
        other => Err(format!("{from}: something was kept: {:?}", other.map(|_| ()))),
    }
}
