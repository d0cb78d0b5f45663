//! Each statement reads each table from one snapshot, whoever hands it to DataFusion and whoever commits meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::snapshot::Table;
use crate::sql::selector::Selection;
use crate::sql::statement::Statement;
use crate::storage::{Location, Storage};

/// A catalog that is never quiet: each time a table is asked for, somebody commits one more row to it.
#[derive(Debug)]
struct Busy {
    catalog: FilesystemCatalog,
    table: Mutex<TableBuilder>,
    commits: AtomicUsize,
}

#[async_trait]
impl Catalog for Busy {
    fn location(&self) -> &Location {
        self.catalog.location()
    }

    fn storage(&self) -> &Arc<Storage> {
        self.catalog.storage()
    }

    async fn list_databases(&self) -> Result<Vec<String>> {
        self.catalog.list_databases().await
    }

    async fn list_tables(&self, database: &str) -> Result<Vec<String>> {
        self.catalog.list_tables(database).await
    }

    async fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let id = 100 + self.commits.fetch_add(1, Ordering::Relaxed);
        self.table.lock().append(&[json!({"id": id, "v": id})])?;
        follow(&self.table.lock());
        self.catalog.table(database, name).await
    }
}

/// Makes branch `b`, if it is there, what main is.
fn follow(table: &TableBuilder) {
    let branch = table.root().join("branch/branch-b");
    for folder in ["schema", "snapshot"].into_iter().filter(|_| branch.exists()) {
        std::fs::create_dir_all(branch.join(folder)).unwrap();
        for file in std::fs::read_dir(table.root().join(folder)).unwrap().flatten() {
            std::fs::copy(file.path(), branch.join(folder).join(file.file_name())).unwrap();
        }
    }
}

/// A session of somebody else's over a warehouse whose only table grows with every name that is resolved.
async fn busy() -> (TempDir, Arc<Busy>, Warehouse, SessionContext) {
    let (dir, table) = three_snapshots();
    let url = dir.path().to_str().unwrap();
    let catalog = FilesystemCatalog::open(url, &BTreeMap::new()).await.unwrap();
    let busy = Arc::new(Busy { catalog, table: Mutex::new(table), commits: AtomicUsize::new(0) });
    let warehouse = Warehouse::over(url, Arc::clone(&busy) as _);
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await.unwrap();
    (dir, busy, warehouse, context)
}

async fn plain(context: &SessionContext, sql: &str) -> Vec<String> {
    let frame = context.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    texts(&frame.collect().await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))).into_iter().map(|r| r.join(",")).collect()
}

#[tokio::test]
async fn plain_statements_read_one_snapshot_for_all_uses_of_a_table() {
    let (_dir, busy, warehouse, context) = busy().await;
    plain(&context, "CREATE VIEW datafusion.public.v AS SELECT count(*) AS n FROM lake.pay.t").await;
    warehouse.sql(&context, "CREATE VIEW lake.pay.w AS SELECT count(*) AS n FROM lake.pay.t").await.unwrap();
    for sql in [
        // the last of these rows counts files, and each commit adds one
        "SELECT (SELECT count(*) FROM lake.pay.t) - (SELECT sum(record_count) - 3 FROM lake.pay.t$files)",
        "SELECT (SELECT count(*) FROM lake.pay.t) - (SELECT count(*) FROM lake.pay.t$binlog WHERE rowkind <> '-D')",
        "SELECT a.n - b.n FROM (SELECT count(*) n FROM lake.pay.t) a, (SELECT count(*) n FROM lake.pay.t$audit_log \
         WHERE rowkind <> '-D') b",
        "WITH c AS (SELECT * FROM lake.pay.t) SELECT count(*) FROM c WHERE id NOT IN (SELECT id FROM lake.pay.t$audit_log)",
        "SELECT v.n - (SELECT count(*) FROM lake.pay.t) FROM datafusion.public.v",
        "SELECT v.n - w.n FROM datafusion.public.v, lake.pay.w",
        "SELECT count(*) - max(snapshot_id) + 0 FROM lake.pay.t$snapshots",
    ] {
        let before = busy.commits.load(Ordering::Relaxed);
        assert_eq!(plain(&context, sql).await, ["0"], "{sql}");
        assert!(busy.commits.load(Ordering::Relaxed) > before + 1, "nobody committed during {sql}");
    }
    // the same through one call of ours, views of the caller's included
    let ours = "SELECT v.n - (SELECT count(*) FROM lake.pay.t) FROM datafusion.public.v, lake.pay.w WHERE v.n = w.n";
    let found = warehouse.sql(&context, ours).await.unwrap().collect().await.unwrap();
    assert_eq!(texts(&found), [["0"]]);
}

/// Views are planned while their statement is: what they pin first, it reads, and the other way round.
#[tokio::test]
async fn a_statement_and_the_views_in_it_share_their_pins() {
    let (dir, mut table) = three_snapshots();
    let session = session_of(&dir).await;
    for view_first in [true, false] {
        let state = session.context().state();
        let statement = Statement::new(session.warehouse(), &Arc::default(), state, Arc::default()).unwrap();
        let view = statement.nested();
        let (first, second) = if view_first { (&view, &statement) } else { (&statement, &view) };
        let at = async |statement: &Arc<Statement>| {
            let lake = statement.table("pay", "t").await.unwrap();
            statement.pin(&lake, &Selection::none()).await.unwrap().snapshot_id()
        };
        let before = at(first).await;
        table.append(&[json!({"id": 9, "v": 9})]).unwrap();
        assert_eq!(at(second).await, before);
    }
}

#[tokio::test]
async fn a_plain_view_or_frame_reads_what_is_latest_then() {
    let (dir, mut table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await.unwrap();
    plain(&context, "CREATE VIEW v AS SELECT id, v FROM lake.pay.t").await;
    let frame = context.sql("SELECT count(*) FROM lake.pay.t").await.unwrap();
    table.append(&[json!({"id": 4, "v": 40})]).unwrap();
    assert_eq!(plain(&context, "SELECT count(*) FROM v").await, ["3"]);
    assert_eq!(texts(&frame.clone().collect().await.unwrap()), [["3"]]);
    // a column more does not matter to what was planned before, another type does
    table.alter(&SchemaChange::Add("w", "INT")).unwrap();
    table.append(&[json!({"id": 5, "v": 50, "w": 1})]).unwrap();
    assert_eq!(texts(&frame.clone().collect().await.unwrap()), [["4"]]);
    assert_eq!(plain(&context, "SELECT sum(v) FROM v WHERE id > 3").await, ["90"]);
    warehouse.sql(&context, "PIN TABLE lake.pay.t AT (VERSION => 1)").await.unwrap();
    assert_eq!(plain(&context, "SELECT sum(v) FROM v").await, ["30"]);
    warehouse.sql(&context, "UNPIN ALL").await.unwrap();
    table.alter(&SchemaChange::Retype("v", "BIGINT")).unwrap();
    let error = context.sql("SELECT sum(v) FROM v").await.unwrap().collect().await.unwrap_err();
    assert_eq!(Error::from_datafusion(error).code(), "ColumnsChanged");
}

#[tokio::test]
async fn plain_statements_compare_timestamps_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("at", "TIMESTAMP(3)")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    table.append(&[json!({"at": "2026-04-16 10:00:00.123"})]).unwrap();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    // twice is once
    warehouse.register(&context, "lake").await.unwrap();
    warehouse.register(&context, "again").await.unwrap();
    let rules = context.state().analyzer().rules.iter().map(|r| r.name().to_string()).collect::<Vec<_>>();
    assert_eq!(rules.iter().filter(|name| *name == "exact_timestamps").count(), 1);
    for (condition, found) in [
        ("at < TIMESTAMP '2026-04-16 10:00:00.1239'", "1"),
        ("at = TIMESTAMP '2026-04-16 10:00:00.1239'", "0"),
        ("at = TIMESTAMP '2026-04-16 10:00:00.123'", "1"),
    ] {
        let sql = format!("SELECT count(*) FROM lake.pay.log WHERE {condition}");
        assert_eq!(plain(&context, &sql).await, [found], "{condition}");
    }
}

#[tokio::test]
async fn options_beside_a_table_do_not_choose_another_snapshot() {
    let (dir, table) = three_snapshots();
    let url = dir.path().to_str().unwrap();
    std::fs::create_dir_all(table.root().join("branch/branch-b")).unwrap();
    follow(&table);
    let catalog = FilesystemCatalog::open(url, &BTreeMap::new()).await.unwrap();
    let busy = Busy { catalog, table: Mutex::new(table), commits: AtomicUsize::new(0) };
    let warehouse = Warehouse::over(url, Arc::new(busy));
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    let hint = "/*+ OPTIONS('file-index.read.enabled'='false') */";
    for sql in [
        format!(
            "SELECT (SELECT count(*) FROM t) - (SELECT count(*) FROM t {hint}) - (SELECT count(*) FROM T x) + n \
                 FROM (SELECT count(*) n FROM \"t\")"
        ),
        "SELECT (SELECT count(*) FROM t$branch_b) - (SELECT count(*) FROM t /*+ OPTIONS('branch'='b') */)".to_string(),
    ] {
        let (found, pins) = all(session.run_one(&sql).await.unwrap()).await;
        assert_eq!((found, pins.len()), (vec![vec!["0".to_string()]], 1), "{sql}");
    }
    let sql = "SELECT * FROM t$branch_b /*+ OPTIONS('branch'='main') */";
    assert_eq!(code(&session, sql).await, "ConflictingSelectors");
    // a pin of the session is that snapshot and its columns, whatever options stand beside it
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    let (found, pins) = all(session.run_one(&format!("SELECT count(*) FROM t {hint}")).await.unwrap()).await;
    assert_eq!(found, [["3"]]);
    assert_eq!((pins[0].snapshot_id, pins[0].session), (Some(2), true));
}

#[tokio::test]
async fn a_branch_that_fills_partitions_is_the_one_read_by_name() {
    let (dir, mut table) = three_snapshots();
    let url = dir.path().to_str().unwrap();
    table.alter(&SchemaChange::Set("scan.fallback-branch", "b")).unwrap();
    std::fs::create_dir_all(table.root().join("branch/branch-b")).unwrap();
    follow(&table);
    let catalog = FilesystemCatalog::open(url, &BTreeMap::new()).await.unwrap();
    let busy = Busy { catalog, table: Mutex::new(table), commits: AtomicUsize::new(0) };
    let warehouse = Warehouse::over(url, Arc::new(busy));
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    for sql in ["SELECT 1 FROM t, t$branch_b", "SELECT 1 FROM t$branch_b, t"] {
        let (_, pins) = all(session.run_one(sql).await.unwrap()).await;
        let [main, branch] = ["pay.t", "pay.t$branch_b"].map(|name| pins.iter().find(|pin| pin.table == name).unwrap());
        let (_, fallback) = main.text.split_once("fallback: ").unwrap();
        assert!(branch.text.starts_with(fallback.split(',').next().unwrap()), "{sql}: {main:?} {branch:?}");
    }
}

/// The snapshots at which a statement reads branch `b` of `pay.t`: by its name, and as what fills partitions.
async fn branch_snapshots(session: &Session, sql: &str) -> Vec<String> {
    let (_, pins) = all(session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))).await;
    let ids = pins.iter().flat_map(|pin| pin.text.split("pay.t$branch_b @ snapshot ").skip(1));
    ids.map(|rest| rest.split(',').next().unwrap().to_string()).collect()
}

#[tokio::test]
async fn a_branch_is_read_at_one_snapshot_whoever_chose_it() {
    let spec = TableSpec::new(&[("p", "STRING NOT NULL"), ("id", "INT NOT NULL")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1");
    let dir = tempfile::tempdir().unwrap();
    let mut main = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    main.append(&[json!({"p": "main", "id": 1})]).unwrap();
    let mut other = TableBuilder::create(dir.path(), "pay", "other", &spec).unwrap();
    let mut commit = || {
        other.append(&[json!({"p": "b", "id": other.live_files().unwrap().len()})]).unwrap();
        make_branch(&main, &other, "b");
    };
    commit();
    commit();
    let session = session_of(&dir).await;
    let by_name = "SELECT count(*) FROM t$branch_b WHERE p = 'b'";
    let filled = "SELECT count(*) FROM t /*+ OPTIONS('scan.fallback-branch'='b') */ WHERE p = 'b'";
    let both = [format!("SELECT ({by_name}) a, ({filled}) b"), format!("SELECT ({filled}) a, ({by_name}) b")];
    // the session pins the branch
    rows(&session, "PIN TABLE t$branch_b AT (VERSION => 1)").await;
    for sql in &both {
        assert_eq!(rows(&session, sql).await, ["1,1"], "{sql}");
        assert_eq!(branch_snapshots(&session, sql).await, ["1", "1"], "{sql}");
    }
    // and the table too, whose own pin knows nothing of the branch
    rows(&session, "PIN TABLE t").await;
    for sql in &both {
        assert_eq!(rows(&session, sql).await, ["1,1"], "{sql}");
    }
    // the session pins the table as it is filled
    rows(&session, "UNPIN ALL").await;
    rows(&session, "PIN TABLE t /*+ OPTIONS('scan.fallback-branch'='b') */").await;
    commit();
    for sql in &both {
        assert_eq!(rows(&session, sql).await, ["2,2"], "{sql}");
    }
    // pinned again it is as it is now
    rows(&session, "PIN TABLE t /*+ OPTIONS('scan.fallback-branch'='b') */").await;
    assert_eq!(rows(&session, &both[0]).await, ["3,3"]);
}

#[tokio::test]
async fn a_branch_that_an_option_adds_is_the_one_read_by_name() {
    let (dir, table) = three_snapshots();
    let url = dir.path().to_str().unwrap();
    std::fs::create_dir_all(table.root().join("branch/branch-b")).unwrap();
    follow(&table);
    let catalog = FilesystemCatalog::open(url, &BTreeMap::new()).await.unwrap();
    let busy = Busy { catalog, table: Mutex::new(table), commits: AtomicUsize::new(0) };
    let warehouse = Warehouse::over(url, Arc::new(busy));
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    let filled = "t /*+ OPTIONS('scan.fallback-branch'='b') */";
    for tables in [format!("t, {filled} a, t$branch_b"), format!("t, t$branch_b, {filled} a")] {
        let ids = branch_snapshots(&session, &format!("SELECT 1 FROM {tables}")).await;
        assert!(ids.len() == 2 && ids[0] == ids[1], "{tables}: {ids:?}");
    }
}

#[tokio::test]
async fn now_is_one_moment_in_a_statement() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let sql = "SELECT * FROM t TIMESTAMP AS OF now() a JOIN t TIMESTAMP AS OF now() b ON a.id = b.id";
    let plan = rows(&session, &format!("EXPLAIN {sql}")).await.join("\n");
    let names: std::collections::BTreeSet<&str> =
        plan.split(|c: char| c.is_whitespace() || c == ',').filter(|word| word.contains("t@ts")).collect();
    assert_eq!(names.len(), 1, "{plan}");
}
