//! Verdicts over tables with one defect each: the layer, and the commit.

mod told;

use super::*;
use crate::sql::verdict::{KeyCase, Layer, Pattern, Rerun, Verdict};

type Row = serde_json::Value;

fn row(id: i64, amount: &str, status: &str, sequence: i64) -> Row {
    json!({"dt": "d1", "id": id, "amount": amount, "status": status, "_SEQUENCE_NUMBER": sequence})
}

fn gone(id: i64, sequence: i64) -> Row {
    let mut row = row(id, "0.00", "x", sequence);
    row["_ROW_KIND"] = json!("-D");
    row
}

/// `pay.t`: forty payments of user `cdc`, ids 1 to 40, amounts id.00, every third PAID and the others NEW.
fn payments(options: &[(&str, &str)]) -> (TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let columns =
        [("dt", "STRING NOT NULL"), ("id", "BIGINT NOT NULL"), ("amount", "DECIMAL(10, 2)"), ("status", "STRING")];
    let spec = TableSpec::new(&columns).partitioned_by(&["dt"]).primary_key(&["dt", "id"]).option("bucket", "1");
    let spec = options.iter().fold(spec, |spec, (key, value)| spec.option(key, value));
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let rows: Vec<Row> =
        (1..=40).map(|id| row(id, &format!("{id}.00"), if id % 3 == 0 { "PAID" } else { "NEW" }, id)).collect();
    for (number, rows) in rows.chunks(20).enumerate() {
        commit(&mut table, "cdc", number as i64 + 1, rows);
    }
    (dir, table)
}

fn commit(table: &mut TableBuilder, user: &str, identifier: i64, rows: &[Row]) -> i64 {
    table.commit().user(user).identifier(identifier).file(FileSpec::rows(rows)).publish().unwrap().id.0
}

/// What the payments are but for some ids, with other rows behind them.
fn source(without: &[i64], others: &[(i64, &str, &str)]) -> String {
    let mut rows: Vec<String> = (1..=40)
        .filter(|id| !without.contains(id) && !others.iter().any(|(other, ..)| other == id))
        .map(|id| format!("('d1', {id}, {id}.00, '{}')", if id % 3 == 0 { "PAID" } else { "NEW" }))
        .collect();
    rows.extend(others.iter().map(|(id, amount, status)| format!("('d1', {id}, {amount}, '{status}')")));
    format!("SELECT dt, id, amount, status FROM (VALUES {}) AS s(dt, id, amount, status)", rows.join(", "))
}

async fn verdict_at(dir: &TempDir, at: &str, source: &str, rest: &str) -> Verdict {
    let session = session_of(dir).await;
    let sql = format!("RECONCILE pay.t{at} WITH ({source}) ON KEY (dt, id) {rest}");
    let found = session.verdict(&sql, None).await.unwrap().verdict;
    // no value breaks a form
    assert!(found.page().starts_with("<!doctype html>") && found.json().unwrap().contains("\"format\": 1"));
    found
}

async fn verdict(dir: &TempDir, source: &str) -> Verdict {
    verdict_at(dir, "", source, "VERDICT").await
}

/// The case of an id.
fn case(verdict: &Verdict, id: i64) -> &KeyCase {
    let wanted = Some(id.to_string());
    let found = verdict.keys.iter().find(|case| case.key.iter().any(|(name, value)| name == "id" && *value == wanted));
    found.unwrap_or_else(|| panic!("no case of {id}: {}", verdict.text()))
}

/// Layer and first commit of an id.
fn told(verdict: &Verdict, id: i64) -> (Option<Layer>, Option<i64>) {
    let case = case(verdict, id);
    (case.layer, case.commits.first().map(|commit| commit.snapshot))
}

#[tokio::test]
async fn equal_sides_have_no_cause_and_are_compared_twice() {
    let (dir, _) = payments(&[]);
    let found = verdict(&dir, &source(&[], &[])).await;
    assert!(found.summary.clean && found.causes.is_empty() && found.keys.is_empty(), "{}", found.text());
    assert_eq!(found.source.as_ref().unwrap().rerun, Rerun::Same);
    assert_eq!(found.counts.as_ref().unwrap().final_rows, 40);
    assert!(found.anomalies.is_empty(), "{:?}", found.anomalies);
}

#[tokio::test]
async fn rows_that_a_later_snapshot_has_are_visibility_and_clean_there() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(41, "41.00", "NEW", 100), row(5, "5.50", "PAID", 101)]);
    commit(&mut table, "cdc", 4, &[gone(7, 102)]);
    let found = verdict_at(&dir, "@v2", &source(&[7], &[(41, "41.00", "NEW"), (5, "5.50", "PAID")]), "VERDICT").await;
    assert_eq!(found.summary.layer, Some(Layer::Visibility), "{}", found.text());
    assert_eq!(case(&found, 41).clean_at, Some(3));
    assert_eq!((case(&found, 5).clean_at, case(&found, 7).clean_at), (Some(3), Some(4)));
    let lake = found.lake.as_ref().unwrap();
    assert_eq!((lake.at.snapshot, lake.newest.snapshot, lake.newer_snapshots), (2, 4, 2));
    // it comes later, and never as the source has it
    let found = verdict_at(&dir, "@v2", &source(&[], &[(41, "99.00", "NEW")]), "VERDICT").await;
    assert_eq!(told(&found, 41), (Some(Layer::Upstream), Some(3)));
}

#[tokio::test]
async fn a_source_that_was_read_earlier_is_visibility_too() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(4, "4.40", "PAID", 100), row(5, "5.50", "PAID", 101)]);
    commit(&mut table, "cdc", 4, &[row(41, "41.00", "NEW", 102), gone(7, 103)]);
    let found = verdict(&dir, &source(&[], &[])).await;
    assert_eq!(found.summary.layer, Some(Layer::Visibility), "{}", found.text());
    assert_eq!(case(&found, 4).clean_until, Some(2));
    // one of its rows is no older source
    let (dir, mut table) = payments(&[]);
    let rows: Vec<Row> = (10..20).map(|id| row(id, &format!("{id}.00"), "PAID", 100 + id)).collect();
    commit(&mut table, "cdc", 3, &[rows, vec![gone(7, 103)]].concat());
    let others: Vec<(i64, String)> = (10..20).map(|id| (id, format!("{id}.00"))).collect();
    let others: Vec<(i64, &str, &str)> = others.iter().map(|(id, amount)| (*id, amount.as_str(), "PAID")).collect();
    assert_eq!(told(&verdict(&dir, &source(&[], &others)).await, 7), (Some(Layer::Upstream), Some(3)));
}

#[tokio::test]
async fn what_never_came_is_upstream() {
    let (dir, _) = payments(&[]);
    let found = verdict(&dir, &source(&[8], &[(41, "41.00", "NEW"), (4, "4.00", "PAID")])).await;
    assert_eq!(found.summary.layer, Some(Layer::Upstream), "{}", found.text());
    let reasons: Vec<_> = [41, 4, 8].map(|id| case(&found, id).reason.clone().unwrap()).into();
    assert_eq!(reasons, ["NEVER_SEEN", "VALUE_FROM", "VALUE_FROM"]);
}

#[tokio::test]
async fn codes_ratios_and_changes_added_twice_are_business_mapping() {
    let (dir, mut table) = payments(&[]);
    // codes of another system, and cents
    commit(&mut table, "cdc", 3, &[row(3, "3.00", "2", 100), row(6, "6.00", "2", 101), row(9, "900.00", "PAID", 102)]);
    let base = commit(&mut table, "fix", 1, &[row(11, "12.00", "NEW", 103), row(13, "14.00", "NEW", 104)]);
    let again = commit(&mut table, "fix", 2, &[row(11, "13.00", "NEW", 105), row(13, "15.00", "NEW", 106)]);
    let found = verdict(&dir, &source(&[], &[(11, "12.00", "NEW"), (13, "14.00", "NEW")])).await;
    assert_eq!(found.summary.layer, Some(Layer::BusinessMapping), "{}", found.text());
    let code = Pattern::Code { column: "status".into(), left: "2".into(), right: "PAID".into() };
    assert_eq!(case(&found, 3).pattern, Some(code.clone()));
    assert_eq!(case(&found, 9).pattern, Some(Pattern::Ratio { column: "amount".into(), ratio: "100".into() }));
    let commits: Vec<i64> = case(&found, 11).commits.iter().map(|commit| commit.snapshot).collect();
    assert_eq!(commits, [again, base]);
    assert_eq!(case(&found, 13).pattern, Some(Pattern::Twice { column: "amount".into(), delta: "1".into() }));
    let causes: Vec<u64> = found.causes.iter().map(|cause| cause.findings).collect();
    assert_eq!(causes, [2, 2, 1]);
    // the same commit twice is more than a wrong sum
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "fix", 1, &[row(11, "12.00", "NEW", 103)]);
    commit(&mut table, "fix", 1, &[row(11, "13.00", "NEW", 105)]);
    let found = verdict(&dir, &source(&[], &[(11, "12.00", "NEW")])).await;
    assert_eq!(told(&found, 11), (Some(Layer::CommitIdentity), Some(4)));
    assert_eq!(found.causes[0].proof.detectors, ["D-1"]);
}

#[tokio::test]
async fn a_later_commit_with_lower_sequences_is_co_writing() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(1, "1.11", "NEW", 500)]);
    let repair = commit(&mut table, "repair", 1, &[row(1, "9.99", "NEW", 50)]);
    // another writer over it, and a value that the source never had
    let over = commit(&mut table, "repair", 2, &[row(2, "7.77", "NEW", 600)]);
    let found = verdict(&dir, &source(&[], &[(1, "9.99", "NEW")])).await;
    assert_eq!(found.summary.layer, Some(Layer::CoWriting), "{}", found.text());
    assert_eq!(told(&found, 1), (Some(Layer::CoWriting), Some(3)));
    assert_eq!(case(&found, 1).commits[1].snapshot, repair);
    assert_eq!(told(&found, 2).1, Some(over));
    assert!(found.anomalies.iter().any(|anomaly| anomaly.detector == "D-9"));
    let wrong: Vec<(i64, i64)> = found
        .conflicts
        .iter()
        .filter(|one| one.verdict == "wrong co-writing")
        .map(|one| (one.commit.snapshot, one.opponent.snapshot))
        .collect();
    assert!(wrong.contains(&(repair, 3)), "{:?}", found.conflicts);
}

#[tokio::test]
async fn overwrites_drops_and_rollbacks_are_operations_on_the_table() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(3, "3.33", "PAID", 100), row(50, "50.00", "NEW", 101)]);
    let stale: Vec<Row> =
        (1..=39).map(|id| row(id, &format!("{id}.00"), if id % 3 == 0 { "PAID" } else { "NEW" }, id)).collect();
    let overwrite = table.commit().user("etl").kind(CommitKind::Overwrite).remove_all().file(FileSpec::rows(&stale));
    let overwrite = overwrite.publish().unwrap().id.0;
    let found = verdict(&dir, &source(&[], &[(3, "3.33", "PAID"), (50, "50.00", "NEW")])).await;
    assert_eq!(found.summary.layer, Some(Layer::OperationOnTable), "{}", found.text());
    for id in [40, 50, 3] {
        assert_eq!(told(&found, id), (Some(Layer::OperationOnTable), Some(overwrite)), "{id}");
    }
    // rolled back: a tag has the state that is not in force any more
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(41, "41.00", "NEW", 100), row(5, "5.50", "PAID", 101)]);
    table.tag("eod", 3).unwrap();
    table.expire(3).unwrap();
    commit(&mut table, "cdc", 4, &[row(6, "6.60", "PAID", 102)]);
    let found = verdict(&dir, &source(&[], &[(41, "41.00", "NEW"), (5, "5.50", "PAID"), (6, "6.60", "PAID")])).await;
    assert_eq!(found.summary.layer, Some(Layer::OperationOnTable), "{}", found.text());
    assert_eq!([41, 5].map(|id| case(&found, id).reason.clone().unwrap()), ["ROLLED_BACK", "ROLLED_BACK"]);
}

#[tokio::test]
async fn files_without_a_commit_are_protocol_and_lists_without_a_snapshot_identity() {
    let (dir, mut table) = payments(&[]);
    let prepared = table.commit().user("cdc").identifier(3).file(FileSpec::rows(&[row(41, "41.00", "NEW", 100)]));
    let snapshot = prepared.prepare().unwrap().snapshot().clone();
    let root = table.root().to_path_buf();
    let path = |name: &str| root.join("manifest").join(name);
    // metadata that is as young as a commit on its way tells nothing
    let wanted = source(&[], &[(41, "41.00", "NEW")]);
    let found = verdict(&dir, &wanted).await;
    assert_eq!(told(&found, 41), (Some(Layer::CommitProtocol), None), "{}", found.text());
    assert!(case(&found, 41).file.as_ref().unwrap().contains("data-"));
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    let list = std::fs::File::options().append(true).open(path(&snapshot.delta_manifest_list)).unwrap();
    list.set_modified(an_hour_ago).unwrap();
    let found = verdict(&dir, &wanted).await;
    assert_eq!(told(&found, 41).0, Some(Layer::CommitIdentity), "{}", found.text());
    assert!(found.anomalies.iter().any(|anomaly| anomaly.detector == "D-18"));
}

#[tokio::test]
async fn rows_that_a_compaction_lost_or_that_lie_elsewhere_are_storage() {
    let (dir, mut table) = payments(&[("bucket", "2")]);
    let kept: Vec<Row> =
        (1..=39).map(|id| row(id, &format!("{id}.00"), if id % 3 == 0 { "PAID" } else { "NEW" }, id)).collect();
    let compact = table.commit().user("cdc").identifier(3).kind(CommitKind::Compact).remove_all();
    let compact = compact.file(FileSpec::rows(&kept).level(5)).publish().unwrap().id.0;
    let found = verdict(&dir, &source(&[], &[])).await;
    assert_eq!(told(&found, 40), (Some(Layer::Storage), Some(compact)), "{}", found.text());
    assert_eq!(case(&found, 40).reason.as_deref(), Some("LOST_IN_COMPACTION"));
    // a partition of another day is a definition
    let (dir, mut table) = payments(&[]);
    let mut elsewhere = row(41, "41.00", "NEW", 100);
    elsewhere["dt"] = json!("d2");
    commit(&mut table, "cdc", 3, &[elsewhere]);
    let found = verdict(&dir, &source(&[], &[(41, "41.00", "NEW")])).await;
    let missing = found.keys.iter().find(|case| case.class == crate::sql::Class::MissingInLake).unwrap();
    assert_eq!((missing.layer, &missing.pattern), (Some(Layer::BusinessMapping), &Some(Pattern::OtherPartition)));
}

#[tokio::test]
async fn a_count_is_tested_against_every_rule_and_state() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(1, "1.11", "NEW", 500), gone(2, 501)]);
    let session = session_of(&dir).await;
    let count = |sql: String| {
        let session = &session;
        async move { session.verdict(&sql, None).await.unwrap().verdict }
    };
    // R 42 = X 2 + T 1 + N 39
    let found = count("RECONCILE pay.t WITH COUNT 42".into()).await;
    assert_eq!(found.summary.layer, Some(Layer::CountingRule), "{}", found.text());
    assert_eq!((found.summary.outcome.as_str(), found.summary.clean), ("COUNT_DIFFERENT", false));
    assert!(found.text().contains("R 42 = H 0 + V 0 + X 2 + T 1 + N 39"), "{}", found.text());
    let found = count("RECONCILE pay.t WITH COUNT 20".into()).await;
    assert_eq!(found.summary.layer, Some(Layer::Visibility), "{}", found.text());
    assert!(found.count_test.unwrap().text.contains("snapshot 1"));
    assert!(count("RECONCILE pay.t WITH COUNT 39".into()).await.summary.clean);
    let query = "THEIR COUNT (SELECT count(*) + 3 FROM pay.t)";
    let found = count(format!("RECONCILE pay.t WITH pay.t ON KEY (dt, id) {query}")).await;
    assert_eq!(found.count_test.as_ref().unwrap().layer, Some(Layer::CountingRule), "{}", found.text());
    assert!(!found.summary.clean);
    let wrong = session.verdict("RECONCILE pay.t WITH pay.t ON KEY (dt, id) THEIR COUNT (SELECT 'x')", None).await;
    assert_eq!(wrong.unwrap_err().code(), "BadArgument");
}

#[tokio::test]
async fn many_findings_are_bounded_and_mixed_ones_have_a_cause_each() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "repair", 1, &[row(2, "7.77", "NEW", 600)]);
    let more: Vec<(i64, String)> = (100..150).map(|id| (id, format!("{id}.00"))).collect();
    let more: Vec<(i64, &str, &str)> = more.iter().map(|(id, amount)| (*id, amount.as_str(), "NEW")).collect();
    let found = verdict_at(&dir, "", &source(&[], &more), "LIMIT 3 PER CLASS VERDICT OF 11 KEYS").await;
    assert_eq!((found.summary.differences, found.summary.looked_at, found.keys_left_out), (51, 11, 40));
    assert_eq!(told(&found, 2).0, Some(Layer::CoWriting));
    let causes: Vec<(Option<Layer>, u64)> = found.causes.iter().map(|cause| (cause.layer, cause.findings)).collect();
    assert_eq!(causes, [(Some(Layer::Upstream), 10), (Some(Layer::CoWriting), 1)]);
    assert_eq!(found.summary.layer, None);
    assert!(found.text().contains("40 more findings were not looked at"), "{}", found.text());
    assert!(found.page().contains("and 40 more"));
    assert_eq!(found.partitions[0].findings, 51);
}

#[tokio::test]
async fn the_statement_gives_rows_and_keeps_them_and_the_comparison_refuses_the_clause() {
    let (dir, _) = payments(&[]);
    let session = session_of(&dir).await;
    let sql =
        format!("RECONCILE pay.t WITH ({}) ON KEY (dt, id) VERDICT INTO why", source(&[], &[(41, "41.00", "NEW")]));
    let (found, pins) = all(session.run_one(&sql).await.unwrap()).await;
    assert_eq!(pins.len(), 1);
    assert_eq!((found[0][0].as_str(), found[0][1].as_str()), ("verdict", "upstream or commit delay"));
    let kept = rows(&session, "SELECT part, reason, key FROM why WHERE part IN ('cause', 'key')").await;
    assert_eq!(kept, ["cause,NEVER_SEEN,dt=d1, id=41", r#"key,NEVER_SEEN,{"dt":"d1","id":"41"}"#]);
    let refused = session.reconcile(&sql, None).await.unwrap_err();
    assert_eq!((refused.code(), refused.hint().is_some()), ("Syntax", true));
}

#[tokio::test]
async fn without_a_history_values_still_tell_and_what_is_missing_is_told() {
    let (dir, _) = payments(&[]);
    let session = session_of(&dir).await;
    let sql = format!("RECONCILE pay.t WITH ({}) ON KEY (id) VERDICT", source(&[], &[(41, "41.00", "NEW")]));
    // the partition is left out of the key: all are searched
    let found = session.verdict(&sql, None).await.unwrap().verdict;
    assert_eq!(found.keys[0].reason.as_deref(), Some("NEVER_SEEN"), "{}", found.text());
    let sql = format!("RECONCILE pay.t WITH ({}) ON KEY (amount) VERDICT", source(&[], &[(41, "41.00", "NEW")]));
    let found = session.verdict(&sql, None).await.unwrap().verdict;
    assert_eq!((found.keys[0].layer, found.summary.layer), (None, None));
    let lacks = found.undetermined.iter().find(|limit| limit.what == "histories of keys").unwrap();
    assert!(lacks.why.contains("lacks column id"), "{lacks:?}");
}
