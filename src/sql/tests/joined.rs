//! Joins of two snapshots, whose columns have the same names, against the rows that nested loops find.

use std::cmp::Ordering;

use super::*;

/// `k` and `id` of a row.
type Row = [Option<i32>; 2];

const NONE: Row = [None, None];

/// Rows that snapshot 1 has, and those that snapshot 2 adds.
fn data() -> [Vec<Row>; 2] {
    let row = |k: i32, id: i32| [Some(k), (id >= 0).then_some(id)];
    let first = vec![row(1, 1), row(1, 2), row(2, -1), row(3, 5), row(4, 0), row(6, 7)];
    let second = vec![row(2, 2), row(3, 1), row(5, 5), row(5, -1), row(7, 3), row(8, 9), row(0, 4)];
    [first, second]
}

/// `pay.t`: a file of small row groups for each snapshot, so that a filter that lands on a wrong column drops rows.
fn two_snapshots() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "INT"), ("id", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for rows in data() {
        let rows: Vec<_> = rows.iter().map(|[k, id]| json!({"k": k, "id": id})).collect();
        table.commit().file(FileSpec::rows(&rows).row_group_rows(2)).publish().unwrap();
    }
    dir
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Inner,
    Left,
    Right,
    Full,
    LeftSemi,
    LeftAnti,
    RightSemi,
    RightAnti,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Inner, "JOIN"),
    (Kind::Left, "LEFT JOIN"),
    (Kind::Right, "RIGHT JOIN"),
    (Kind::Full, "FULL JOIN"),
    (Kind::LeftSemi, "LEFT SEMI JOIN"),
    (Kind::LeftAnti, "LEFT ANTI JOIN"),
    (Kind::RightSemi, "RIGHT SEMI JOIN"),
    (Kind::RightAnti, "RIGHT ANTI JOIN"),
];

impl Kind {
    /// Whether rows of `a`, and of `b`, are in the output.
    fn shows(self) -> (bool, bool) {
        match self {
            Self::LeftSemi | Self::LeftAnti => (true, false),
            Self::RightSemi | Self::RightAnti => (false, true),
            _ => (true, true),
        }
    }
}

fn equal(one: Option<i32>, other: Option<i32>) -> Option<bool> {
    Some(one? == other?)
}

fn less(one: Option<i32>, other: Option<i32>) -> Option<bool> {
    Some(one? < other?)
}

fn and(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// A condition as SQL writes it, and as it is.
type Condition = (&'static str, fn(&Row, &Row) -> Option<bool>);

const ON: [Condition; 5] = [
    ("a.k = b.k", |a, b| equal(a[0], b[0])),
    ("a.id = b.id", |a, b| equal(a[1], b[1])),
    ("a.k = b.id", |a, b| equal(a[0], b[1])),
    ("a.k = b.k AND a.id < b.id", |a, b| and(equal(a[0], b[0]), less(a[1], b[1]))),
    ("b.id = a.k AND b.k > a.id", |a, b| and(equal(b[1], a[0]), less(a[1], b[0]))),
];

/// Those of `a` alone, of `b` alone, and of both.
const OF_A: [Condition; 4] = [
    ("a.id IS NULL", |a, _| Some(a[1].is_none())),
    ("a.id IS NOT NULL", |a, _| Some(a[1].is_some())),
    ("a.id < 3", |a, _| less(a[1], Some(3))),
    ("coalesce(a.k, 0) < 2", |a, _| Some(a[0].unwrap_or(0) < 2)),
];
const OF_B: [Condition; 4] = [
    ("b.id IS NULL", |_, b| Some(b[1].is_none())),
    ("b.k IS NULL", |_, b| Some(b[0].is_none())),
    ("b.id > 2", |_, b| less(Some(2), b[1])),
    ("b.k = 5", |_, b| equal(b[0], Some(5))),
];
const OF_BOTH: [Condition; 4] = [
    ("true", |_, _| Some(true)),
    ("a.id IS NULL AND b.id > 1", |a, b| and(Some(a[1].is_none()), less(Some(1), b[1]))),
    ("b.id IS NULL AND a.id > 0", |a, b| and(Some(b[1].is_none()), less(Some(0), a[1]))),
    ("a.id IS DISTINCT FROM b.id", |a, b| Some(a[1] != b[1])),
];

fn nested_loops(kind: Kind, on: Condition, wanted: Condition) -> Vec<Vec<Option<i32>>> {
    let [first, added] = data();
    let (left, right) = (first.clone(), [first, added].concat());
    let is_match = |a: &Row, b: &Row| (on.1)(a, b) == Some(true);
    let mut pairs = Vec::new();
    let (has_match_left, has_match_right): (Vec<bool>, Vec<bool>) = (
        left.iter().map(|a| right.iter().any(|b| is_match(a, b))).collect(),
        right.iter().map(|b| left.iter().any(|a| is_match(a, b))).collect(),
    );
    let lonely = |rows: &[Row], matched: &[bool], wanted: bool| -> Vec<Row> {
        rows.iter().zip(matched).filter(|(_, matched)| **matched == wanted).map(|(row, _)| *row).collect()
    };
    if matches!(kind, Kind::Inner | Kind::Left | Kind::Right | Kind::Full) {
        for a in &left {
            pairs.extend(right.iter().filter(|b| is_match(a, b)).map(|b| (*a, *b)));
        }
    }
    match kind {
        Kind::Inner => {}
        Kind::Left => pairs.extend(lonely(&left, &has_match_left, false).into_iter().map(|a| (a, NONE))),
        Kind::Right => pairs.extend(lonely(&right, &has_match_right, false).into_iter().map(|b| (NONE, b))),
        Kind::Full => {
            pairs.extend(lonely(&left, &has_match_left, false).into_iter().map(|a| (a, NONE)));
            pairs.extend(lonely(&right, &has_match_right, false).into_iter().map(|b| (NONE, b)));
        }
        Kind::LeftSemi | Kind::LeftAnti => {
            pairs.extend(lonely(&left, &has_match_left, kind == Kind::LeftSemi).into_iter().map(|a| (a, NONE)));
        }
        Kind::RightSemi | Kind::RightAnti => {
            pairs.extend(lonely(&right, &has_match_right, kind == Kind::RightSemi).into_iter().map(|b| (NONE, b)));
        }
    }
    let (shows_a, shows_b) = kind.shows();
    pairs.retain(|(a, b)| (wanted.1)(a, b) == Some(true));
    let row = |(a, b): &(Row, Row)| {
        let of = |row: &Row, shown: bool| if shown { row.to_vec() } else { Vec::new() };
        [of(a, shows_a), of(b, shows_b)].concat()
    };
    pairs.iter().map(row).collect()
}

/// By the columns in this order, NULL last.
fn by(order: &[usize]) -> impl Fn(&Vec<Option<i32>>, &Vec<Option<i32>>) -> Ordering + '_ {
    move |one, other| {
        let key = |value: Option<i32>| (value.is_none(), value);
        order
            .iter()
            .map(|at| key(one[*at]).cmp(&key(other[*at])))
            .find(|found| found.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

fn written(rows: &[Vec<Option<i32>>]) -> Vec<Vec<String>> {
    let cell = |value: &Option<i32>| value.map_or_else(|| "NULL".to_string(), |value| value.to_string());
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

/// A statement, the rows it gives, and whether their order counts.
type Asked = (String, Vec<Vec<Option<i32>>>, bool);

/// Statements and the rows they give; in order when they have a LIMIT.
fn statements() -> Vec<Asked> {
    let mut statements = Vec::new();
    for (kind, join) in KINDS {
        let (shows_a, shows_b) = kind.shows();
        let mut wanted = vec![OF_BOTH[0]];
        wanted.extend(OF_A.iter().filter(|_| shows_a));
        wanted.extend(OF_B.iter().filter(|_| shows_b));
        wanted.extend(OF_BOTH.iter().skip(1).filter(|_| shows_a && shows_b));
        let columns: Vec<&str> = [("a.k", shows_a), ("a.id", shows_a), ("b.k", shows_b), ("b.id", shows_b)]
            .iter()
            .filter(|(_, shown)| *shown)
            .map(|(name, _)| *name)
            .collect();
        for on in ON {
            for wanted in &wanted {
                let select = format!(
                    "SELECT {} FROM paimon.pay.\"t@v1\" a {join} paimon.pay.\"t@v2\" b ON {} WHERE {}",
                    columns.join(", "),
                    on.0,
                    wanted.0
                );
                let rows = nested_loops(kind, on, *wanted);
                statements.push((select.clone(), rows.clone(), false));
                // a different column first in each statement, so that its bound becomes a filter below
                let mut order: Vec<usize> = (0..columns.len()).collect();
                order.rotate_left(statements.len() / 2 % columns.len());
                let keys: Vec<&str> = order.iter().map(|at| columns[*at]).collect();
                let mut rows = rows;
                rows.sort_by(by(&order));
                rows.truncate(2);
                statements.push((format!("{select} ORDER BY {} LIMIT 2", keys.join(", ")), rows, true));
            }
        }
    }
    statements
}

async fn check(context: &SessionContext, session: Option<&Session>) {
    let mut wrong = Vec::new();
    let statements = statements();
    for (sql, rows, ordered) in &statements {
        let batches: Vec<RecordBatch> = match session {
            Some(session) => session.run_one(sql).await.unwrap().stream.try_collect().await.unwrap(),
            None => context.sql(sql).await.unwrap().collect().await.unwrap(),
        };
        let (mut found, mut expected) = (texts(&batches), written(rows));
        if !ordered {
            found.sort();
            expected.sort();
        }
        if found != expected {
            wrong.push(format!("{sql}\n  gives {found:?}\n  not   {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), statements.len(), wrong.join("\n"));
}

#[tokio::test]
async fn joins_of_two_snapshots_give_the_rows_of_nested_loops() {
    let dir = two_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let config = SessionConfig { target_partitions: Some(2), ..SessionConfig::default() };
    let session = Session::new(&warehouse, config).await.unwrap();
    check(session.context(), Some(&session)).await;
    // filters are applied to rows while they are read
    rows(&session, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    check(session.context(), Some(&session)).await;
}

#[tokio::test]
async fn so_they_do_in_a_session_that_is_not_ours() {
    let dir = two_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    for pushdown in [false, true] {
        let mut config = datafusion::execution::config::SessionConfig::new().with_target_partitions(2);
        config.options_mut().execution.parquet.pushdown_filters = pushdown;
        let context = SessionContext::new_with_config(config);
        warehouse.register(&context, "paimon").await.unwrap();
        check(&context, None).await;
    }
}

/// A filter on the key of a semi join goes to its other side, where another column may be called so.
#[tokio::test]
async fn a_bound_on_a_key_stays_off_other_columns_of_its_name() {
    let dir = two_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    let exists = "EXISTS (SELECT 1 FROM t@v2 b WHERE b.id = a.k AND b.k > a.id)";
    let sql = format!("SELECT k, id FROM t@v1 a WHERE {exists} ORDER BY k LIMIT 1");
    let first = nested_loops(Kind::LeftSemi, ON[4], OF_BOTH[0]);
    let first = first.into_iter().min_by(by(&[0, 1])).unwrap();
    assert_eq!(rows(&session, &sql).await, [written(&[first]).remove(0).join(",")]);
}

#[tokio::test]
async fn the_inputs_of_a_union_keep_their_columns() {
    let dir = two_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    let both = "(SELECT k, id FROM t@v1 UNION ALL SELECT id, k FROM t@v2)";
    assert_eq!(rows(&session, &format!("SELECT k FROM {both} ORDER BY k LIMIT 3")).await, ["0", "1", "1"]);
    assert_eq!(rows(&session, &format!("SELECT * FROM {both} WHERE k = 9")).await, ["9,8"]);
}

/// Group keys of one name, asked for in another order by the join above.
#[tokio::test]
async fn groups_of_two_columns_of_one_name_are_not_mixed_up() {
    let dir = two_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let config = SessionConfig { target_partitions: Some(3), ..SessionConfig::default() };
    let session = Session::new(&warehouse, config).await.unwrap();
    rows(&session, "SET datafusion.optimizer.hash_join_single_partition_threshold = 0").await;
    rows(&session, "SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0").await;
    let groups = "SELECT a.k ak, b.k bk, count(*) c FROM t@v1 a JOIN t@v2 b ON a.id = b.id GROUP BY a.k, b.k";
    let pairs = nested_loops(Kind::Inner, ON[1], OF_BOTH[0]);
    let mut expected: Vec<String> =
        pairs.iter().map(|row| written(&[vec![row[0], row[2]]]).remove(0).join(",")).collect();
    expected.sort();
    let sql = format!(
        "SELECT g.ak, g.bk FROM ({groups}) g JOIN (SELECT DISTINCT a.k p, b.k q FROM t@v2 a CROSS JOIN t@v2 b) o \
         ON g.bk = o.q AND g.ak = o.p"
    );
    expected.dedup();
    assert_eq!(rows(&session, &sql).await, expected);
}

/// Whole files, whose scans take filters: `a.id IS NULL` must not end in the scan of `b`.
#[tokio::test]
async fn a_filter_on_one_side_of_golden_snapshots_stays_off_the_other() {
    let session = golden_session().await;
    let on = "ON a.dt = b.dt AND a.id = b.id";
    let news = "SELECT b.dt, b.id FROM pk_lsm VERSION AS OF 9 b WHERE NOT EXISTS \
                (SELECT 1 FROM pk_lsm VERSION AS OF 4 a WHERE a.dt = b.dt AND a.id = b.id)";
    let wanted = rows(&session, news).await.len();
    assert_eq!(wanted, 445);
    for join in ["RIGHT", "FULL"] {
        let sql = format!(
            "SELECT a.id, b.id FROM pk_lsm VERSION AS OF 4 a {join} JOIN pk_lsm VERSION AS OF 9 b {on} WHERE a.id IS NULL"
        );
        assert_eq!(rows(&session, &sql).await.len(), wanted, "{sql}");
    }
}
