//! Changes as written, and the difference of two states.

use std::collections::BTreeMap as Bag;

use super::*;

/// How often each row occurs.
fn bag(rows: Vec<String>) -> Bag<String, i64> {
    let mut bag = Bag::new();
    for row in rows {
        *bag.entry(row).or_insert(0) += 1;
    }
    bag
}

/// The state that changes (a kind, then the row) make of another one.
fn applied(state: &Bag<String, i64>, changes: &[String]) -> Bag<String, i64> {
    let mut state = state.clone();
    for change in changes {
        let (kind, row) = change.split_once(',').unwrap();
        *state.entry(row.to_string()).or_insert(0) += match kind {
            "+I" | "+U" => 1,
            "-U" | "-D" => -1,
            other => panic!("{other} is no kind"),
        };
    }
    state.retain(|_, count| *count != 0);
    state
}

/// The snapshots of a table whose changes have all been written: a compaction left nothing at level 0.
async fn caught_up(session: &Session, table: &str) -> Vec<i64> {
    let sql = format!("SELECT snapshot_id FROM {table}$snapshots WHERE commit_kind = 'COMPACT'");
    let mut found = Vec::new();
    for id in rows(session, &sql).await {
        let open = format!("SELECT count(*) FROM {table}$files VERSION AS OF {id} WHERE level = 0");
        if rows(session, &open).await == ["0"] {
            found.push(id.parse().unwrap());
        }
    }
    found.sort_unstable();
    found
}

#[tokio::test]
async fn a_range_of_changes_is_shown_as_one() {
    let (dir, table) = three_snapshots();
    table.tag("first", 1).unwrap();
    let session = session_of(&dir).await;
    let shown = async |sql: &str| {
        let (_, pins) = all(session.run_one(sql).await.unwrap()).await;
        let texts = pins.iter().map(|pin| pin.text.split(", committed").next().unwrap_or_default().to_string());
        let mut texts: Vec<String> = texts.collect();
        texts.sort();
        (texts, pins.first().map(|pin| (pin.snapshot_id, pin.changes_after, pin.session)))
    };
    let range = "pay.t @ changes after snapshot 1 up to snapshot 3".to_string();
    for sql in [
        "SELECT * FROM t /*+ OPTIONS('incremental-between'='1,3') */",
        "SELECT count(*) FROM t$audit_log /*+ OPTIONS('incremental-between'='1,3') */",
        "SELECT * FROM paimon_delta('t', 1, 3)",
        "SELECT * FROM paimon_delta('t', from => 'first')",
    ] {
        assert_eq!(shown(sql).await, (vec![range.clone()], Some((Some(3), Some(1), false))), "{sql}");
    }
    // beside the rows of its end
    let both = "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM paimon_delta('t', 1, 3))";
    assert_eq!(shown(both).await.0, [range.clone(), "pay.t @ snapshot 3".to_string()]);
    session.run_one("SET 'paimon.incremental-between' = '1,3'").await.unwrap();
    assert_eq!(shown("SELECT * FROM t").await, (vec![range], Some((Some(3), Some(1), true))));
}

#[tokio::test]
async fn changes_of_lookup_and_full_compaction_tables_applied_to_one_state_give_the_other() {
    let session = golden_session().await;
    let mut pairs = 0;
    for table in [
        "pk_changelog_full_compaction",
        "pk_changelog_full_compaction_agg",
        "pk_changelog_lookup",
        "pk_changelog_lookup_agg",
        "pk_changelog_lookup_dedup",
        "pk_changelog_lookup_partial",
        "pk_first_row_lookup",
    ] {
        let mut states = vec![(0, Bag::new())];
        for id in caught_up(&session, table).await {
            states.push((id, bag(rows(&session, &format!("SELECT * FROM {table} VERSION AS OF {id}")).await)));
        }
        assert!(states.len() > 2, "{table}: {states:?}");
        for (at, (from, before)) in states.iter().enumerate() {
            for (to, after) in states.iter().skip(at + 1) {
                let sql = format!("SELECT * FROM paimon_changes('golden.{table}', from => {from}, to => {to})");
                let changes = rows(&session, &sql).await;
                assert_eq!(applied(before, &changes), *after, "{sql}: {changes:?}");
                pairs += usize::from(!changes.is_empty());
            }
        }
    }
    assert!(pairs >= 40, "only {pairs} ranges with changes");
}

#[tokio::test]
async fn changes_are_given_as_their_files_have_them() {
    let session = golden_session().await;
    let all =
        "SELECT rowkind, count(*) FROM paimon_changes('golden.pk_changelog_lookup', from => 0, to => 12) GROUP BY 1";
    let (inserted, rest): (Vec<String>, Vec<String>) =
        rows(&session, all).await.into_iter().partition(|line| line.starts_with("+I"));
    assert_eq!(inserted.len(), 1);
    assert!(rest.iter().any(|line| line.starts_with("-U")), "{rest:?}");
    let part = "SELECT count(*) FROM paimon_changes('golden.pk_changelog_lookup', from => 1, to => 2)";
    assert_eq!(rows(&session, part).await, ["10"]);
    // exclusive at its start
    let none = "SELECT count(*) FROM paimon_changes('golden.pk_changelog_lookup', from => 2, to => 3)";
    assert_eq!(rows(&session, none).await, ["0"]);
    let open = "SELECT count(*) FROM paimon_changes('golden.pk_changelog_lookup', 0)";
    let whole = "SELECT count(*) FROM paimon_changes('golden.pk_changelog_lookup', 0, 12)";
    assert_eq!(rows(&session, open).await, rows(&session, whole).await);
    let reversed = "SELECT * FROM paimon_changes('golden.pk_changelog_lookup', from => 4, to => 2)";
    assert_eq!(code(&session, reversed).await, "BadRange");
    let none = session.run_one("SELECT * FROM paimon_changes('golden.pk_changelog_none', from => 0)").await.unwrap();
    assert!(none.notices.iter().any(|notice| notice.contains("changelog-producer is none")), "{:?}", none.notices);
}

#[tokio::test]
async fn at_names_the_state_that_a_function_reads() {
    let (dir, mut table) = three_snapshots();
    table.alter(&SchemaChange::Add("note", "STRING")).unwrap();
    table.append(&[json!({"id": 9, "v": 9, "note": "x"})]).unwrap();
    table.tag("eod", 2).unwrap();
    let session = session_of(&dir).await;
    assert_eq!(
        rows(&session, "SELECT * FROM paimon_delta('t', from => 1, at => 3)").await,
        ["+I,2,21", "+I,3,30", "-D,1,10"]
    );
    assert_eq!(
        rows(&session, "SELECT * FROM paimon_delta('t', from => 1, to => 2, at => 'eod')").await,
        ["+I,2,21", "+I,3,30"]
    );
    assert_eq!(rows(&session, "SELECT * FROM paimon_delta('t', 2, 3)").await, ["-D,1,10,NULL"], "columns of today");
    assert_eq!(code(&session, "SELECT * FROM paimon_delta('t', from => 1, to => 3, at => 2)").await, "BadRange");
    assert_eq!(
        rows(&session, "SELECT op, id FROM paimon_diff('t', from => 1, at => 'eod')").await,
        ["INSERT,3", "UPDATE,2"]
    );
    assert_eq!(code(&session, "SELECT * FROM paimon_diff('t', from => 1, to => 2, at => 3)").await, "BadArgument");
    assert_eq!(
        rows(&session, "SELECT op, id FROM paimon_diff('t', 1, 2, attribute => false)").await,
        ["INSERT,3", "UPDATE,2"]
    );
}

#[tokio::test]
async fn sequence_numbers_stand_beside_the_kinds_where_the_option_asks() {
    for (key, option, found) in [
        (true, "true", Ok(["+I,7,1,11", "-D,8,2,20"])),
        (true, "false", Err("ColumnNotFound")),
        // rows of a table without a key have none
        (false, "true", Err("ColumnNotFound")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")])
            .option("bucket", if key { "1" } else { "-1" })
            .option("table-read.sequence-number.enabled", option);
        let spec = if key { spec.primary_key(&["id"]) } else { spec };
        let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
        table.append(&[json!({"id": 1, "v": 10, "_SEQUENCE_NUMBER": 3})]).unwrap();
        if key {
            let (changed, gone) = (
                json!({"id": 1, "v": 11, "_SEQUENCE_NUMBER": 7}),
                json!({"id": 2, "v": 20, "_SEQUENCE_NUMBER": 8, "_ROW_KIND": "-D"}),
            );
            table.append(&[changed, gone]).unwrap();
        }
        let session = session_of(&dir).await;
        let sql = "SELECT rowkind, _SEQUENCE_NUMBER, id, v FROM t$audit_log";
        let answer = ask(&session, sql).await;
        match (&answer, found) {
            (Ok(rows), Ok(found)) => assert_eq!(rows, &found),
            (Err(error), Err(code)) => assert_eq!(error.code(), code),
            _ => panic!("{key} {option}: {answer:?}"),
        }
        if found.is_ok() {
            let binlog = rows(&session, "SELECT rowkind, _SEQUENCE_NUMBER, id, v FROM t$binlog").await;
            assert_eq!(binlog, ["+I,7,[1],[11]", "-D,8,[2],[20]"]);
            let between = "SELECT * FROM t$audit_log /*+ OPTIONS('incremental-between'='1,2', \
                           'incremental-between-scan-mode'='diff') */";
            assert_eq!(code(&session, between).await, "Unsupported");
        }
    }
}

#[tokio::test]
async fn a_diff_compares_the_columns_and_partitions_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("dt", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT"), ("w", "INT")])
        .partitioned_by(&["dt"])
        .primary_key(&["dt", "id"])
        .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |dt: &str, id: i32, v: i32, w: i32| json!({"dt": dt, "id": id, "v": v, "w": w});
    table.append(&[row("a", 1, 1, 1), row("a", 2, 1, 1), row("b", 1, 1, 1), row("b,c", 1, 1, 1)]).unwrap();
    table.append(&[row("a", 1, 2, 1), row("a", 2, 1, 2), row("b", 1, 3, 1), row("b,c", 1, 1, 4)]).unwrap();
    let session = session_of(&dir).await;
    let columns = "SELECT * FROM paimon_diff('t', 1, 2, columns => 'v')";
    assert_eq!(rows(&session, columns).await, ["UPDATE,a,1,1,2,[v]", "UPDATE,b,1,1,3,[v]"]);
    let one = "SELECT * FROM paimon_diff('t', 1, 2, columns => ARRAY['w'], partitions => 'dt=a')";
    assert_eq!(rows(&session, one).await, ["UPDATE,a,2,1,2,[w]"]);
    let two = "SELECT dt, id FROM paimon_diff('t', 1, 2, partitions => ARRAY['dt=b', 'dt=b,c'])";
    assert_eq!(rows(&session, two).await, ["b,1", "b,c,1"]);
    let and = "SELECT dt, id FROM paimon_diff('t', 1, 2, partitions => 'dt=a, dt=b', where => 'id = 1')";
    assert_eq!(rows(&session, and).await, ["a,1", "b,1"]);
    // a partition that is not asked for is not read
    let (files, _) = all(session.run_one(&format!("EXPLAIN FILES {one}")).await.unwrap()).await;
    assert!(files.iter().all(|row| row[3] == "false" || row[5] == "dt=a"), "{files:?}");
    assert_eq!(code(&session, "SELECT * FROM paimon_diff('t', 1, 2, columns => 'nope')").await, "ColumnNotFound");
    for partitions in ["v=1", "a", "dt=a/id=1"] {
        let sql = format!("SELECT * FROM paimon_diff('t', 1, 2, partitions => '{partitions}')");
        assert_eq!(code(&session, &sql).await, "BadArgument", "{sql}");
    }
    let keys = "SELECT * FROM paimon_diff('t', 1, 2, columns => 'id')";
    assert!(rows(&session, keys).await.is_empty(), "keys alone never differ");
}

#[tokio::test]
async fn a_diff_takes_a_branch_or_another_table_as_a_side() {
    let session = golden_session().await;
    // partitions a and b in the branch, b and c in the table itself and nothing of another branch
    let sql = "SELECT op, p, id, before_v, after_v FROM paimon_diff('fallback_branch$branch_fb', from => 'main')";
    let found = rows(&session, sql).await;
    let branch = rows(&session, "SELECT p, id FROM fallback_branch$branch_fb").await;
    assert!(found.iter().any(|line| line.starts_with("DELETE,c,30")), "{found:?}, branch: {branch:?}");
    let inverse = "SELECT op, p, id FROM paimon_diff('fallback_branch', from => 'fb')";
    assert!(rows(&session, inverse).await.contains(&"INSERT,c,30".to_string()));

    let (dir, _table) = three_snapshots();
    let spec = TableSpec::new(&[("v", "BIGINT"), ("id", "BIGINT NOT NULL"), ("note", "STRING")])
        .primary_key(&["id"])
        .option("bucket", "1");
    let mut copy = TableBuilder::create(dir.path(), "pay", "copy", &spec).unwrap();
    copy.append(&[
        json!({"id": 2, "v": 21, "note": "n"}),
        json!({"id": 3, "v": 31, "note": "n"}),
        json!({"id": 4, "v": 4}),
    ])
    .unwrap();
    copy.append(&[json!({"id": 3, "v": 30, "note": "n"})]).unwrap();
    let other = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    TableBuilder::create(dir.path(), "pay", "narrow", &other).unwrap().append(&[json!({"id": 2, "v": 21})]).unwrap();
    let session = session_of(&dir).await;
    let diff = |from: &str| format!("SELECT * FROM paimon_diff('t', from => '{from}')");
    // types that hold the values of both; the columns of the table asked for only
    assert_eq!(rows(&session, &diff("copy")).await, ["DELETE,4,4,NULL,NULL"]);
    assert_eq!(rows(&session, &diff("pay.copy@v1")).await, ["DELETE,4,4,NULL,NULL", "UPDATE,3,31,30,[v]"]);
    let result = session.run_one(&diff("copy")).await.unwrap();
    assert!(
        result.notices.iter().any(|n| n.contains("columns of pay.copy only") && n.contains("note")),
        "{:?}",
        result.notices
    );
    assert_eq!(result.pins.len(), 2);
    let error = ask(&session, &diff("narrow")).await.unwrap_err();
    assert_eq!(error.code(), "NotComparable");
    assert!(error.to_string().contains("BIGINT") && error.to_string().contains("INT"), "{error}");
    // values that the table asked for cannot hold, and a type that shares none with its own
    let mut wide = TableBuilder::create(dir.path(), "pay", "wide", &spec).unwrap();
    wide.append(&[json!({"id": 2, "v": 90_000_000_000_i64})]).unwrap();
    let flags = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "BOOLEAN")]).primary_key(&["id"]);
    let mut flags = TableBuilder::create(dir.path(), "pay", "flags", &flags.option("bucket", "1")).unwrap();
    flags.append(&[json!({"id": 2, "v": true})]).unwrap();
    let found = rows(&session, &diff("wide")).await;
    assert!(found.contains(&"UPDATE,2,90000000000,21,[v]".to_string()), "{found:?}");
    let error = ask(&session, &diff("flags")).await.unwrap_err();
    assert_eq!(
        (error.code(), error.context().first()),
        ("NoCommonType", Some(&("column", "v".to_string()))),
        "{error:?}"
    );
    assert!(error.to_string().contains("pay.flags has BOOLEAN") && error.hint().is_some(), "{error}");
    // neither tag, branch nor table
    assert!(matches!(code(&session, &diff("nothing")).await, "TagNotFound" | "VersionNotFound" | "SnapshotNotFound"));
}

/// A map in the notation of JSON rows, entries in this order.
fn map_of(entries: &[(&str, i32)]) -> serde_json::Value {
    let entries = entries.iter().map(|(key, value)| ((*key).to_string(), json!(value)));
    serde_json::Value::Object(entries.collect())
}

#[tokio::test]
async fn a_diff_takes_maps_with_the_same_entries_for_equal() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("id", "INT NOT NULL"), ("m", "MAP<STRING, INT>"), ("s", "MULTISET<STRING>"), ("f", "DOUBLE")];
    let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i32, m: &[(&str, i32)], s: &[(&str, i32)], f: f64| json!({"id": id, "m": map_of(m), "s": map_of(s), "f": f});
    table
        .append(&[
            row(1, &[("x", 1), ("a", 2)], &[("p", 1), ("o", 2)], 0.0),
            row(2, &[("x", 1), ("a", 2)], &[("p", 1)], 1.0),
            row(3, &[("x", 1)], &[("p", 1), ("o", 1)], 1.0),
        ])
        .unwrap();
    table
        .append(&[
            row(1, &[("a", 2), ("x", 1)], &[("o", 2), ("p", 1)], -0.0),
            row(2, &[("a", 1), ("x", 2)], &[("p", 1)], 1.0),
            row(3, &[("x", 1)], &[("o", 1), ("p", 2)], 1.0),
        ])
        .unwrap();
    let session = session_of(&dir).await;
    let changed = "SELECT op, id, changed_columns FROM paimon_diff('t', 1, 2) ORDER BY id";
    assert_eq!(rows(&session, changed).await, ["UPDATE,2,[m]", "UPDATE,3,[s]"]);
    let hint = "/*+ OPTIONS('incremental-between'='1,2','incremental-between-scan-mode'='diff') */";
    assert_eq!(rows(&session, &format!("SELECT id FROM t {hint} ORDER BY id")).await, ["2", "3"]);
    assert_eq!(
        rows(&session, &format!("SELECT rowkind, id FROM t$audit_log {hint} ORDER BY id")).await,
        ["+I,2", "+I,3"]
    );
}

#[tokio::test]
async fn rows_without_a_key_are_compared_with_their_maps() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("id", "INT"), ("m", "MAP<STRING, INT>"), ("l", "ARRAY<MAP<STRING, INT>>")];
    let mut table =
        TableBuilder::create(dir.path(), "pay", "t", &TableSpec::new(&columns).option("bucket", "-1")).unwrap();
    let row = |id: i32, m: &[(&str, i32)]| json!({"id": id, "m": map_of(m), "l": [map_of(m)]});
    table.append(&[row(1, &[("x", 1), ("a", 2)]), row(1, &[("a", 2), ("x", 1)]), row(2, &[("x", 1)])]).unwrap();
    table.tag("one", 1).unwrap();
    // the first two once, in another file; one more and one other
    let again = [row(1, &[("x", 1), ("a", 2)]), row(2, &[("x", 2)]), row(2, &[("x", 2)])];
    table.commit().remove_all().file(FileSpec::rows(&again)).publish().unwrap();
    table.tag("two", 2).unwrap();
    let session = session_of(&dir).await;
    let found = rows(&session, "SELECT op, id, cardinality(m), copies FROM paimon_diff('t', 1, 2) ORDER BY 1, 2").await;
    assert_eq!(found, ["DELETE,1,2,1", "DELETE,2,1,1", "INSERT,2,1,2"]);
    let hint = "/*+ OPTIONS('incremental-between'='one,two') */";
    let found = rows(&session, &format!("SELECT id, m['x'], cardinality(l) FROM t {hint}")).await;
    assert_eq!(found, ["2,2,1", "2,2,1"]);
    let found = rows(&session, &format!("SELECT rowkind, id FROM t$audit_log {hint}")).await;
    assert_eq!(found, ["+I,2", "+I,2"]);
}

#[tokio::test]
async fn a_diff_tells_of_arrays_whose_order_is_not_kept() {
    let session = golden_session().await;
    let result = session.run_one("SELECT * FROM paimon_diff('pk_agg', from => 5, to => 6)").await.unwrap();
    let told = result.notices.iter().any(|n| n.contains("order of elements") && n.contains("cod, nu"));
    assert!(told, "{:?}", result.notices);
    // snapshot 6 is the compaction of 5: it gives the elements in another order, and nothing else is new
    assert!(all(result).await.0.is_empty());
    let turned = "SELECT count(*) FROM pk_agg VERSION AS OF 5 a JOIN pk_agg VERSION AS OF 6 b ON a.id = b.id \
                  WHERE a.nu IS DISTINCT FROM b.nu";
    assert_ne!(rows(&session, turned).await, ["0"]);
    let one = "SELECT op FROM paimon_diff('pk_agg', from => 1, to => 2) WHERE array_has(changed_columns, 'nu')";
    assert!(!rows(&session, one).await.is_empty(), "elements that came are changes");
    let result = session.run_one("SELECT * FROM paimon_diff('pk_lsm', from => 1, to => 2)").await.unwrap();
    assert!(!result.notices.iter().any(|n| n.contains("order of elements")), "{:?}", result.notices);
}

#[tokio::test]
async fn a_result_that_hangs_on_the_order_of_map_entries_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("id", "INT NOT NULL"), ("m", "MAP<STRING, INT>"), ("l", "ARRAY<MAP<STRING, INT>>")];
    let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1, "m": map_of(&[("x", 1)]), "l": [map_of(&[("x", 1)])]})]).unwrap();
    let session = session_of(&dir).await;
    let told = async |sql: &str| {
        let result = session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        result.notices.iter().any(|notice| notice.contains("one map written in two orders"))
    };
    for sql in [
        "SELECT * FROM t EXCEPT SELECT * FROM t VERSION AS OF 1",
        "SELECT m FROM t INTERSECT SELECT m FROM t",
        "SELECT DISTINCT m FROM t",
        "SELECT DISTINCT l FROM t",
        "SELECT count(DISTINCT m) AS maps FROM t",
        "SELECT m, count(*) FROM t GROUP BY m",
        "SELECT id FROM t WHERE id IN (SELECT id FROM (SELECT id, m FROM t GROUP BY id, m))",
    ] {
        assert!(told(sql).await, "{sql}");
    }
    for sql in [
        "SELECT * FROM t",
        "SELECT id FROM t EXCEPT SELECT id FROM t VERSION AS OF 1",
        "SELECT DISTINCT m['x'] FROM t",
        "SELECT id, count(m), max(m['x']) FROM t GROUP BY id",
        "SELECT op, before_m FROM paimon_diff('t', 1, 1)",
        "SELECT a.m FROM t a JOIN t b ON a.id = b.id",
    ] {
        assert!(!told(sql).await, "{sql}");
    }
}
