//! Comparing with other systems, and what checks of a table find.

use lakepin::ErrorKind;
use lakepin::spec::CommitKind;
use lakepin::sql::Session;
use lakepin::testing::builder::{FileSpec, TableSpec};
use serde_json::{Value, json};

use super::kit::{Done, Lake, OrText, ask, cases, cell, check, expect, fails, rows, says};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B080 a_commit_published_twice_is_an_anomaly_and_its_compaction_is_none,
        B085 a_file_that_a_cleaner_took_is_told_with_all_that_it_breaks,
        B105 decimals_are_compared_by_value,
        B106 times_are_compared_by_a_rule_that_is_told,
        B108 keys_that_are_null_or_not_unique_have_classes_of_their_own,
        B110 floats_are_exact_unless_a_tolerance_is_given,
        B116 a_check_lists_the_lost_file,
        B117 batch_identifiers_are_no_duplicates,
    );
}

fn by_id(columns: &[(&str, &str)]) -> TableSpec {
    let all: Vec<(&str, &str)> = [("id", "INT NOT NULL")].iter().chain(columns).copied().collect();
    TableSpec::new(&all).primary_key(&["id"]).option("bucket", "1")
}

/// A file beside the warehouse, as SQL names it.
fn file(lake: &Lake, name: &str, text: &str) -> Result<String, String> {
    let path = lake.path().join(name);
    std::fs::write(&path, text).text()?;
    Ok(format!("'{}'", path.display()))
}

/// The verdict of a comparison, then its classes with their findings, but for what is equal.
async fn compared(s: &Session, sql: &str) -> Result<Vec<String>, String> {
    let report = s.reconcile(sql, None).await.map_err(|e| format!("{sql}\n  {e:?}"))?.report;
    let classes = report.classes.iter().filter(|one| one.count.findings > 0 && one.class.name() != "EQUAL");
    let classes = classes.map(|one| format!("{} {}", one.class.name(), one.count.findings));
    Ok(std::iter::once(report.verdict.name().to_string()).chain(classes).collect())
}

async fn found(s: &Session, sql: &str, expected: &[&str]) -> Done {
    let told = compared(s, sql).await?;
    check(told == expected, format!("{sql}\n  expected {expected:?}, told {told:?}"))
}

async fn a_commit_published_twice_is_an_anomaly_and_its_compaction_is_none(lake: Lake) -> Done {
    let mut t = lake.table("t", &by_id(&[("v", "INT")]))?;
    let row = |id: i64| FileSpec::rows(&[json!({"id": id, "v": id})]);
    for identifier in 1..=3 {
        t.commit().file(row(identifier)).user("job").identifier(identifier).publish().text()?;
    }
    // a legal pair: what was appended and what was compacted after it, under one identifier
    t.commit().file(row(4)).user("job").identifier(4).publish().text()?;
    let whole: Vec<Value> = (1..=4).map(|id| json!({"id": id, "v": id})).collect();
    let compacted = t.commit().remove_all().file(FileSpec::rows(&whole).level(5)).kind(CommitKind::Compact);
    compacted.user("job").identifier(4).publish().text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT detector FROM paimon_anomalies('t')", &[]).await?;
    for _ in 0..2 {
        t.commit().file(row(77)).user("job").identifier(77).publish().text()?;
    }
    let anomalies = "SELECT detector, snapshots, users, severity FROM paimon_anomalies('t') WHERE detector = 'D-1'";
    expect(&s, anomalies, &["D-1|6, 7|job|error"]).await?;
    // both are one run of the identity, with the counts of both
    expect(&s, "SELECT append_snapshots, rows_added FROM t$commits WHERE commit_identifier = 77", &["6, 7|2"]).await?;
    expect(&s, "SELECT count(*) FROM t", &["5"]).await?;
    expect(&s, "SELECT status, snapshots FROM paimon_lookup_commit('t', 'job', 77)", &["COMMITTED|6, 7"]).await
}

async fn a_file_that_a_cleaner_took_is_told_with_all_that_it_breaks(lake: Lake) -> Done {
    let spec = by_id(&[("v", "INT")]).option("deletion-vectors.enabled", "true");
    let mut t = lake.table("t", &spec)?;
    let rows_of = |ids: std::ops::Range<i64>| -> Vec<Value> { ids.map(|id| json!({"id": id, "v": id})).collect() };
    let files = |folder: &str| -> Result<Vec<String>, String> {
        let Ok(listed) = std::fs::read_dir(t_root(&lake).join(folder)) else { return Ok(Vec::new()) };
        listed.map(|entry| Ok(format!("{folder}/{}", entry.text()?.file_name().to_string_lossy()))).collect()
    };
    t.commit().file(FileSpec::rows(&rows_of(0..4)).level(5)).publish().text()?;
    let first = files("bucket-0")?;
    t.commit().file(FileSpec::rows(&rows_of(4..8)).level(4)).publish().text()?;
    t.tag("eod", 2).text()?;
    let name = first[0].rsplit('/').next().unwrap_or_default().to_string();
    t.commit().delete_positions(&name, &[1]).publish().text()?;
    let vectors = files("index")?;
    let second = files("bucket-0")?.into_iter().find(|file| !first.contains(file)).ok_or("no second file")?;
    // the first file and its vectors are of the past now; what the first snapshot had alone is expired
    let other = second.rsplit('/').next().unwrap_or_default();
    let overwrite = t.commit().remove(&name).delete_positions(other, &[0]).kind(CommitKind::Overwrite);
    overwrite.publish().text()?;
    t.expire(1).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT detector FROM paimon_anomalies('t')", &[]).await?;
    for (file, breaks) in [
        (&first[0], "snapshots 2 to 3 and tag 'eod'"),
        (&second, "snapshots 2 to 4 and tag 'eod'"),
        (&vectors[0], "snapshot 3: 1 index files"),
    ] {
        let (there, away) = (t_root(&lake).join(file), lake.path().join("away"));
        std::fs::rename(&there, &away).map_err(|e| format!("{file}: {e}"))?;
        let told =
            rows(&lake.session().await?, "SELECT detector, severity, evidence FROM paimon_anomalies('t')").await?;
        let lost = file.rsplit('/').next().unwrap_or_default();
        let found = told.iter().any(|row| row.starts_with("D-15|error|") && row.contains(breaks) && row.contains(lost));
        check(found, format!("{file} breaks {breaks}: {told:?}"))?;
        std::fs::rename(&away, &there).text()?;
    }
    Ok(())
}

fn t_root(lake: &Lake) -> std::path::PathBuf {
    lake.path().join("d.db").join("t")
}

async fn decimals_are_compared_by_value(lake: Lake) -> Done {
    let mut t = lake.table("t", &by_id(&[("d", "DECIMAL(18, 4)")]))?;
    let given = ["1.5", "-0.19", "0", "1234567890.1234"];
    let given: Vec<Value> = given.iter().enumerate().map(|(id, d)| json!({"id": id, "d": d})).collect();
    t.append(&given).text()?;
    let s = lake.session().await?;
    let csv = file(&lake, "s.csv", "id,d\n0,1.5\n1,-0.190000\n2,-0.00\n3,1234567890.1234\n")?;
    found(&s, &format!("RECONCILE t WITH {csv} ON KEY (id)"), &["EQUAL"]).await?;
    let scaled = "SELECT id, CAST(d AS DECIMAL(20, 8)) AS d FROM t";
    found(&s, &format!("RECONCILE t WITH ({scaled}) ON KEY (id)"), &["EQUAL"]).await?;
    let report = s.reconcile(&format!("RECONCILE t WITH ({scaled}) ON KEY (id)"), None).await.text()?.report;
    let types = &report.columns.iter().find(|column| column.name == "d").ok_or("d is not told of")?.types;
    check(types[0].contains("18, 4") && types[1].contains("20, 8"), format!("both types are told: {types:?}"))?;
    // one unit of the last digit of the finer side
    let csv = file(&lake, "other.csv", "id,d\n0,1.50000001\n1,-0.19\n2,0\n3,1234567890.1234\n")?;
    found(&s, &format!("RECONCILE t WITH {csv} ON KEY (id)"), &["DIFFERENT", "DIFFERENT 1"]).await
}

async fn times_are_compared_by_a_rule_that_is_told(lake: Lake) -> Done {
    let columns =
        [("t3", "TIMESTAMP(3)"), ("t6", "TIMESTAMP(6)"), ("l", "TIMESTAMP(3) WITH LOCAL TIME ZONE"), ("d", "DATE")];
    let mut t = lake.table("t", &by_id(&columns))?;
    let time = "2026-04-16 10:00:00.123";
    t.append(&[json!({"id": 1, "t3": time, "t6": time, "l": time, "d": "2026-04-16"})]).text()?;
    let s = lake.session().await?;
    let right = |column: &str, value: &str| format!("(SELECT 1 AS id, {value} AS {column})");
    let with = |column: &str, value: &str, more: &str| {
        format!("RECONCILE t WITH {} ON KEY (id) COMPARE ({column}) {more}", right(column, value))
    };
    let finer = "arrow_cast('2026-04-16T10:00:00.123900', 'Timestamp(Microsecond, None)')";
    // at the three digits that both have, cut or rounded as is said; never both at milliseconds in silence
    found(&s, &with("t3", finer, ""), &["EQUAL"]).await?;
    let report = s.reconcile(&with("t3", finer, ""), None).await.text()?.report;
    let cut: Vec<[u64; 2]> = report.columns.iter().map(|column| column.cut).collect();
    check(cut.contains(&[0, 1]), format!("the value that lost digits is counted: {cut:?}"))?;
    check(report.notes.iter().any(|note| note.contains("t3")), format!("and told: {:?}", report.notes))?;
    found(&s, &with("t3", finer, "ROUND HALF UP"), &["DIFFERENT", "DIFFERENT 1"]).await?;
    found(&s, &with("t6", finer, ""), &["DIFFERENT", "DIFFERENT 1"]).await?;
    // an instant beside a clock without zone
    let clock = "TIMESTAMP '2026-04-16 18:00:00.123'";
    let error = fails(&s, &with("l", clock, "")).await?;
    check(error.code() == "ZoneNotStated", format!("{error:?}"))?;
    says(&error, ErrorKind::Invalid, &["zone '+08:00'"])?;
    found(&s, &with("l", clock, "ZONE '+08:00'"), &["EQUAL"]).await?;
    found(&s, &with("l", clock, "ZONE '+09:00'"), &["DIFFERENT", "DIFFERENT 1"]).await?;
    // a day is its midnight, and no other time of it
    found(&s, &with("d", "TIMESTAMP '2026-04-16 00:00:00'", ""), &["EQUAL"]).await?;
    found(&s, &with("d", "TIMESTAMP '2026-04-16 00:00:00.001'", ""), &["DIFFERENT", "DIFFERENT 1"]).await
}

async fn keys_that_are_null_or_not_unique_have_classes_of_their_own(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT")]).option("bucket", "-1");
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"id": null, "v": 0}), json!({"id": 1, "v": 1}), json!({"id": 2, "v": 2})]).text()?;
    let s = lake.session().await?;
    let null_keys = |told: &[String]| told.iter().any(|one| one.starts_with("NULL_KEY"));
    // one on both sides: neither missing nor too many
    let told = compared(&s, "RECONCILE t WITH (SELECT * FROM t) ON KEY (id)").await?;
    let lone = |told: &[String]| told.iter().any(|one| one.starts_with("MISSING") || one.starts_with("EXTRA"));
    check(!lone(&told), format!("a NULL key on both sides: {told:?}"))?;
    let csv = file(&lake, "s.csv", "id,v\n1,1\n1,7\n1,8\n2,2\n")?;
    let told = compared(&s, &format!("RECONCILE t WITH {csv} ON KEY (id)")).await?;
    check(told[0] == "DIFFERENT", format!("{told:?}"))?;
    check(told.contains(&"DUP_SOURCE 1".to_string()), format!("a key three times: {told:?}"))?;
    check(!told.iter().any(|one| one.starts_with("MISSING")), format!("it is missing nowhere: {told:?}"))?;
    check(
        null_keys(&told) || told.iter().any(|one| one == "EXTRA_IN_LAKE 1"),
        format!("the NULL key is told: {told:?}"),
    )
}

async fn floats_are_exact_unless_a_tolerance_is_given(lake: Lake) -> Done {
    let mut t = lake.table("t", &by_id(&[("f", "FLOAT"), ("d", "DOUBLE")]))?;
    t.append(&[json!({"id": 1, "f": 0.366_406_25, "d": 0.366_406_25}), json!({"id": 2, "f": 0.1, "d": 0.1})]).text()?;
    let s = lake.session().await?;
    // the text forms differ, the values do not
    let csv = file(&lake, "s.csv", "id,f,d\n1,3.6640625e-1,0.366406250\n2,0.1,1e-1\n")?;
    found(&s, &format!("RECONCILE t WITH {csv} ON KEY (id)"), &["EQUAL"]).await?;
    let decimals = "SELECT id, CAST(f AS DECIMAL(12, 9)) AS f, CAST(d AS DECIMAL(12, 9)) AS d FROM t";
    found(&s, &format!("RECONCILE t WITH ({decimals}) ON KEY (id)"), &["EQUAL"]).await?;
    let near = "SELECT id, f, d + 0.0000001 AS d FROM t";
    let sql = |more: &str| format!("RECONCILE t WITH ({near}) ON KEY (id) {more}");
    found(&s, &sql(""), &["DIFFERENT", "DIFFERENT 2"]).await?;
    let note = s.reconcile(&sql(""), None).await.text()?.report.notes.join(" ").to_lowercase();
    check(note.contains("tolerance"), format!("the way out is told: {note}"))?;
    found(&s, &sql("TOLERANCE d 0.000001"), &["EQUAL_WITHIN_TOLERANCE", "TOLERATED 2"]).await?;
    found(&s, &sql("TOLERANCE d rel:0.001"), &["EQUAL_WITHIN_TOLERANCE", "TOLERATED 2"]).await?;
    found(&s, &sql("TOLERANCE d rel:0.0000000001"), &["DIFFERENT", "DIFFERENT 2"]).await
}

async fn a_check_lists_the_lost_file(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT")]).option("bucket", "-1");
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"id": 1, "v": 1})]).text()?;
    t.append(&[json!({"id": 2, "v": 2})]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT detector FROM paimon_anomalies('t')", &[]).await?;
    let name = cell(&s, "SELECT max(file_path) FROM t$files WHERE min_sequence_number = 0").await?;
    let lost = name.rsplit('/').next().unwrap_or_default().to_string();
    let path = t.root().join("bucket-0").join(&lost);
    std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let s = lake.session().await?;
    let told = rows(&s, "SELECT detector, severity, evidence FROM paimon_anomalies('t')").await?;
    check(
        told.iter().any(|row| row.starts_with("D-15|error|") && row.contains(&lost)),
        format!("{lost} is not told: {told:?}"),
    )
}

async fn batch_identifiers_are_no_duplicates(lake: Lake) -> Done {
    let mut t = lake.table("t", &by_id(&[("v", "INT")]))?;
    for id in 1..=5 {
        let row = FileSpec::rows(&[json!({"id": id, "v": id})]);
        t.commit().file(row).user(&format!("batch-{id}")).identifier(i64::MAX).publish().text()?;
    }
    // a job of checkpoints that ends with the same number
    for (id, identifier) in [(6, 1), (7, 2), (8, i64::MAX)] {
        let row = FileSpec::rows(&[json!({"id": id, "v": id})]);
        t.commit().file(row).user("cdc").identifier(identifier).publish().text()?;
    }
    let s = lake.session().await?;
    expect(&s, "SELECT detector, explanation FROM paimon_anomalies('t')", &[]).await?;
    expect(&s, "SELECT count(*) FROM t$commits WHERE commit_identifier = 9223372036854775807", &["6"]).await?;
    let sql = "SELECT status, snapshots FROM paimon_lookup_commit('t', 'batch-3', 'batch')";
    expect(&s, sql, &["COMMITTED|3"]).await?;
    let answer = ask(&s, "SELECT count(*) FROM t AT (COMMIT => ('batch-3', 'batch'))").await.text()?;
    check(answer.rows() == ["3"], format!("{:?}", answer.rows()))
}
