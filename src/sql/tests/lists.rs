//! `IN` and `NOT IN` by the three values of SQL, alone and in pairs.

use super::*;

/// Lists with and without NULL, and elements that are NULL without saying so.
const LISTS: [(&str, &[Option<i32>]); 9] = [
    ("1", &[Some(1)]),
    ("0, 1", &[Some(0), Some(1)]),
    ("2", &[Some(2)]),
    ("NULL", &[None]),
    ("1, NULL", &[Some(1), None]),
    ("2, 1, 0, NULL", &[Some(2), Some(1), Some(0), None]),
    ("3, CAST(NULL AS INT)", &[Some(3), None]),
    ("2, nullif(1, 1)", &[Some(2), None]),
    ("0, 1, 2, 3, 4", &[Some(0), Some(1), Some(2), Some(3), Some(4)]),
];

const VALUES: [Option<i32>; 4] = [None, Some(0), Some(1), Some(2)];

fn is_in(x: Option<i32>, list: &[Option<i32>]) -> Option<bool> {
    let x = x?;
    if list.contains(&Some(x)) {
        Some(true)
    } else if list.contains(&None) {
        None
    } else {
        Some(false)
    }
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

fn and(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    not(and(not(one), not(other)))
}

/// Expressions and their values for the four values of x.
fn expressions() -> Vec<(String, Vec<Option<bool>>)> {
    let mut single: Vec<(String, Vec<Option<bool>>)> = Vec::new();
    for (text, list) in LISTS {
        let inside: Vec<_> = VALUES.iter().map(|x| is_in(*x, list)).collect();
        single.push((format!("x NOT IN ({text})"), inside.iter().copied().map(not).collect()));
        single.push((format!("NOT x NOT IN ({text})"), inside.clone()));
        single.push((format!("x IN ({text})"), inside));
    }
    let mut all = single.clone();
    for (one, first) in &single {
        for (other, second) in &single {
            let both = |join: fn(Option<bool>, Option<bool>) -> Option<bool>| -> Vec<_> {
                first.iter().zip(second).map(|(one, other)| join(*one, *other)).collect()
            };
            all.push((format!("({one}) AND ({other})"), both(and)));
            all.push((format!("({one}) OR ({other})"), both(or)));
            all.push((format!("NOT (({one}) AND ({other}))"), both(and).into_iter().map(not).collect()));
            all.push((format!("NOT (({one}) OR ({other}))"), both(or).into_iter().map(not).collect()));
        }
    }
    all
}

fn four_values() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("x", "INT"), ("y", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for x in VALUES {
        table.append(&[json!({"x": x, "y": x.map(|x| x + 1)})]).unwrap();
    }
    dir
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "NULL".to_string(), |value| value.to_string())
}

/// Checks many expressions in each statement, which is what takes the time.
async fn check(context: &SessionContext) {
    let mut wrong = Vec::new();
    for some in expressions().chunks(60) {
        let texts_of: Vec<String> =
            some.iter().enumerate().map(|(at, (text, _))| format!("({text}) AS c{at}")).collect();
        let sql = format!("SELECT x, {} FROM paimon.pay.t", texts_of.join(", "));
        let found = texts(&context.sql(&sql).await.unwrap().collect().await.unwrap());
        for row in found {
            let at = VALUES.iter().position(|x| cell(*x) == row[0]).unwrap();
            for ((text, values), found) in some.iter().zip(&row[1..]) {
                if cell(values[at]) != *found {
                    wrong.push(format!("{text} is {found} for x = {}, not {}", row[0], cell(values[at])));
                }
            }
        }
        let unions: Vec<String> = some
            .iter()
            .enumerate()
            .map(|(at, (text, _))| format!("SELECT {at} AS n, x FROM paimon.pay.t WHERE {text}"))
            .collect();
        let mut found = texts(&context.sql(&unions.join(" UNION ALL ")).await.unwrap().collect().await.unwrap());
        found.sort();
        let mut expected = Vec::new();
        for (at, (_, values)) in some.iter().enumerate() {
            let rows = VALUES.iter().zip(values).filter(|(_, value)| **value == Some(true));
            expected.extend(rows.map(|(x, _)| vec![at.to_string(), cell(*x)]));
        }
        expected.sort();
        for row in found.iter().filter(|row| !expected.contains(row)) {
            wrong.push(format!("WHERE {} selects x = {}", some[row[0].parse::<usize>().unwrap()].0, row[1]));
        }
        for row in expected.iter().filter(|row| !found.contains(row)) {
            wrong.push(format!("WHERE {} does not select x = {}", some[row[0].parse::<usize>().unwrap()].0, row[1]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn lists_have_three_values() {
    let dir = four_values();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "paimon").await.unwrap();
    check(&context).await;
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT x FROM t WHERE x IN (3, 4) AND x NOT IN (5, NULL)", vec![]),
        ("SELECT x NOT IN (1) AND x IN (2, 1, 0, NULL) FROM t WHERE x = 1", vec!["false"]),
        ("SELECT x FROM t WHERE x IN (1, y - 1, 7) AND x NOT IN (y)", vec!["0", "1", "2"]),
        ("SELECT x FROM t WHERE x IN (y, 1, 2) AND x IN (1, 2)", vec!["1", "2"]),
        ("SELECT x IN (y, 0) FROM t", vec!["NULL", "false", "false", "true"]),
        ("SELECT x NOT IN (NULL) FROM t", vec!["NULL", "NULL", "NULL", "NULL"]),
    ] {
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
}

#[tokio::test]
async fn a_parameter_in_a_list_may_be_null() {
    let dir = four_values();
    let session = session_of(&dir).await;
    session.set_parameter("p", Some("null"));
    let sql = "SELECT x FROM t WHERE x IN (0, 1) AND x NOT IN (1, $p)";
    assert!(rows(&session, sql).await.is_empty());
    session.set_parameter("p", Some("7"));
    assert_eq!(rows(&session, sql).await, ["0"]);
}

#[tokio::test]
async fn a_null_in_a_list_prunes_as_the_list_without_it() {
    let dir = four_values();
    let session = session_of(&dir).await;
    for (condition, files) in [("x IN (1, NULL)", 1), ("x IN (1, 2, NULL)", 2), ("x NOT IN (1, NULL)", 0)] {
        let result = session.run_one(&format!("SELECT y FROM t WHERE {condition}")).await.unwrap();
        let scanned = result.scanned.map_or(0, |scanned| scanned.files);
        assert_eq!(scanned, files, "{condition}");
    }
}

/// What the optimizer brings together itself: lists with a condition between them that falls away, under alternatives,
/// and columns of a subquery.
#[tokio::test]
async fn lists_that_meet_while_planning_have_three_values() {
    let dir = four_values();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "paimon").await.unwrap();
    let texts_of = |list: &[i32]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let lists: [&[i32]; 4] = [&[1, 5, 6, 7], &[2, 8, 9, 10], &[0, 1, 2, 7, 8], &[1]];
    let mut checked = 0;
    for (first, second) in lists.iter().flat_map(|one| lists.iter().map(move |other| (*one, *other))) {
        for (not_first, not_second) in [(false, false), (false, true), (true, false), (true, true)] {
            let written =
                |negated: bool, list: &[i32]| format!("x {}IN ({})", if negated { "NOT " } else { "" }, texts_of(list));
            let (a, b) = (written(not_first, first), written(not_second, second));
            let value = |x: Option<i32>, negated: bool, list: &[i32]| x.map(|x| list.contains(&x) != negated);
            for (join, of) in [("AND", and as fn(_, _) -> _), ("OR", or)] {
                let neutral = if join == "AND" { "1 = 1" } else { "1 = 2" };
                let expected: Vec<Option<bool>> =
                    VALUES.iter().map(|x| of(value(*x, not_first, first), value(*x, not_second, second))).collect();
                let forms = [
                    format!("(({a} {join} {neutral}) {join} {b})"),
                    format!("({a} {join} (({b} {join} {neutral}) OR 1 = 2))"),
                ];
                for form in &forms {
                    check_form(&context, &format!("SELECT x, {form} AS f FROM paimon.pay.t"), &expected).await;
                }
                let columns = format!("SELECT x, {a} AS a, {b} AS b FROM paimon.pay.t");
                check_form(&context, &format!("SELECT x, (a {join} b) AS f FROM ({columns}) q"), &expected).await;
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 128);
}

/// The values of `f` beside x, and what a WHERE selects by it and by its opposite.
async fn check_form(context: &SessionContext, query: &str, expected: &[Option<bool>]) {
    let mut found = texts(&context.sql(query).await.unwrap().collect().await.unwrap());
    found.sort();
    let mut wanted: Vec<Vec<String>> =
        VALUES.iter().zip(expected).map(|(x, value)| vec![cell(*x), cell(*value)]).collect();
    wanted.sort();
    assert_eq!(found, wanted, "{query}");
    for (condition, selected) in [("f", Some(true)), ("NOT f", Some(false)), ("f IS NULL", None)] {
        let sql = format!("SELECT x FROM ({query}) r WHERE {condition}");
        let mut found = texts(&context.sql(&sql).await.unwrap().collect().await.unwrap());
        found.sort();
        let mut wanted: Vec<Vec<String>> =
            VALUES.iter().zip(expected).filter(|(_, value)| **value == selected).map(|(x, _)| vec![cell(*x)]).collect();
        wanted.sort();
        assert_eq!(found, wanted, "{sql}");
    }
}

#[tokio::test]
async fn single_values_join_the_lists_beside_them() {
    let dir = four_values();
    let session = session_of(&dir).await;
    let alternatives = "((x IN (1, 5, 6, 7) AND x = 8) OR (x IN (1, 5, 6, 7) AND x = 9))";
    for (sql, found) in [
        (format!("SELECT x FROM t WHERE NOT {alternatives}"), vec!["0", "1", "2"]),
        (format!("SELECT x FROM t WHERE {alternatives} IS NULL"), vec!["NULL"]),
        ("SELECT x FROM t WHERE (x <> 1 OR x NOT IN (2, 5, 6, 7)) IS NULL".to_string(), vec!["NULL"]),
        ("SELECT x FROM t WHERE x IN (1, 2, 3, 4) AND y < 9 AND x <> 1".to_string(), vec!["2"]),
        (
            "SELECT v FROM (VALUES (0e0), (-0e0)) d(v) WHERE v IN (0e0, 5e0, 6e0, 7e0) AND v IN (-0e0, 8e0, 9e0, 1e1)"
                .to_string(),
            vec!["-0.0", "0.0"],
        ),
    ] {
        assert_eq!(rows(&session, &sql).await, found, "{sql}");
    }
    let nothing =
        session.run_one("SELECT y FROM t WHERE x IN (1, 5, 6, 7) AND y = 2 AND x IN (2, 8, 9, 10)").await.unwrap();
    assert_eq!(nothing.scanned.map_or(0, |scanned| scanned.files), 0);
}
