mod buckets;

use std::collections::BTreeMap;
use std::path::Path;

use datafusion::common::ScalarValue;
use serde_json::{Value as Json, json};

use super::explain::Reason;
use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::memory::Unbounded;
use crate::query::QueryEnv;
use crate::snapshot::{Pin, PinRequest};
use crate::spec::{CommitKind, DataType};
use crate::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use crate::testing::naive::{self, Record, Value};

async fn history(warehouse: &Path) -> History {
    let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await.unwrap();
    let table = catalog.table("d", "t").await.unwrap();
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    History::load(&pin, &QueryEnv::new()).await.unwrap()
}

fn budget() -> Arc<dyn MemoryBudget> {
    Arc::new(Unbounded)
}

async fn past_in(warehouse: &Path, key: &[ScalarValue], scope: KeyScope) -> KeyHistory {
    let history = history(warehouse).await;
    let key = Key::try_new(&history.pin, key).unwrap();
    KeyHistory::load(&history, &key, scope, &budget(), &SessionZone::utc()).await.unwrap()
}

async fn past(warehouse: &Path, id: i32) -> KeyHistory {
    past_in(warehouse, &[ScalarValue::Int32(Some(id))], KeyScope::default()).await
}

/// Reason, snapshot of the commit, and the sentence.
async fn why_at(
    warehouse: &Path,
    key: &[ScalarValue],
    at: i64,
    expected: Option<i32>,
) -> (Reason, Option<i64>, String) {
    let history = history(warehouse).await;
    let key = Key::try_new(&history.pin, key).unwrap();
    let column = history.pin.schema.field_index("v").unwrap();
    let expected = expected.map(|value| Expected::value(column, ScalarValue::Int32(Some(value))));
    let commit = history.commits.iter().find(|commit| commit.id().0 == at).unwrap();
    let delta_list = commit.snapshot.delta_manifest_list.clone();
    let asked = Asked { at: SnapshotId(at), delta_list, expected };
    let found = explain(&history, &key, &asked, &budget(), &SessionZone::utc()).await.unwrap();
    (found.reason, found.commit.map(|commit| commit.id.0), found.sentence)
}

async fn why(warehouse: &Path, id: i32, at: i64) -> (Reason, Option<i64>) {
    let (reason, commit, _) = why_at(warehouse, &[ScalarValue::Int32(Some(id))], at, None).await;
    (reason, commit)
}

fn spec(options: &[(&str, &str)]) -> TableSpec {
    let base = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT"), ("w", "INT")]).primary_key(&["id"]);
    options.iter().fold(base.option("bucket", "2"), |spec, (key, value)| spec.option(key, value))
}

fn table(warehouse: &Path, options: &[(&str, &str)]) -> TableBuilder {
    TableBuilder::create(warehouse, "d", "t", &spec(options)).unwrap()
}

fn row(id: i32, v: i32, sequence: i64) -> Json {
    json!({"id": id, "v": v, "w": v * 10, "_SEQUENCE_NUMBER": sequence})
}

fn gone(id: i32, sequence: i64) -> Json {
    json!({"id": id, "v": null, "w": null, "_SEQUENCE_NUMBER": sequence, "_ROW_KIND": "-D"})
}

/// `snapshot source visible` of the versions.
fn told(past: &KeyHistory) -> Vec<String> {
    let line = |(number, version): (usize, &Version)| {
        let added = version.added.as_ref().map_or("-".to_string(), |commit| commit.id.to_string());
        let origin = version.origin.snapshot.map_or("-".to_string(), |id| id.to_string());
        let visible = past
            .visible(number)
            .map_or("-".to_string(), |(from, to)| format!("{from}..{}", to.map_or(String::new(), |to| to.to_string())));
        let lost = version.loses_to().map_or(String::new(), |winner| format!(" lost to {}", winner + 1));
        let removed = version.removed.as_ref().map_or(String::new(), |commit| format!(" removed by {}", commit.id));
        let certainty = version.origin.certainty.as_str();
        let written = version.written.as_str().unwrap_or("-");
        format!("{added} {written} from {origin} {certainty}, seen {visible}{lost}{removed}")
    };
    past.versions.iter().enumerate().map(line).collect()
}

#[tokio::test]
async fn versions_tell_where_they_come_from_and_what_they_lost_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut t = table(dir.path(), &[("bucket", "1")]);
    t.append(&[row(1, 1, 1), row(9, 1, 2)]).unwrap();
    t.append(&[row(1, 2, 3), row(2, 2, 4)]).unwrap();
    t.commit()
        .file(FileSpec::rows(&[row(1, 2, 3), row(2, 2, 4), row(9, 1, 2)]).level(5))
        .remove_all()
        .kind(CommitKind::Compact)
        .publish()
        .unwrap();
    t.append(&[row(3, 3, 5)]).unwrap();
    t.append(&[gone(1, 6)]).unwrap();
    let found = past(dir.path(), 1).await;
    assert_eq!(
        told(&found),
        [
            "1 APPEND from 1 exact, seen 1..1 lost to 2 removed by 3",
            "2 APPEND from 2 exact, seen 2..2 removed by 3",
            "3 COMPACT from 2 exact, seen 3..4 lost to 4",
            "5 APPEND from 5 exact, seen -",
        ]
    );
    assert!(found.limits.is_empty() && found.whole);
    // the file of snapshot 4 cannot hold the key
    assert_eq!(found.files_opened, 4);
    // of a range only its states are merged
    let scope = KeyScope { from: 2, to: 3, ..KeyScope::default() };
    let found = past_in(dir.path(), &[ScalarValue::Int32(Some(1))], scope).await;
    let seen: Vec<_> = found.spans.iter().map(|span| (span.from.0, span.seen.clone())).collect();
    assert_eq!(seen, [(2, Seen::Version(1)), (3, Seen::Version(2))]);
}

#[tokio::test]
async fn an_origin_that_cannot_be_read_is_inferred_or_ambiguous() {
    for (other, expected) in [(row(9, 1, 1), "- from 1 inferred"), (row(9, 1, 7), "- from - ambiguous")] {
        let dir = tempfile::tempdir().unwrap();
        let mut t = table(dir.path(), &[("bucket", "1")]);
        t.append(&[row(1, 1, 5), row(9, 1, 6)]).unwrap();
        let name = t.live_files().unwrap()[0].file.file_name.clone();
        t.append(&[row(0, 1, 4), other]).unwrap();
        t.commit()
            .file(FileSpec::rows(&[row(0, 1, 4), row(1, 1, 5), row(9, 1, 6)]).level(5))
            .remove_all()
            .kind(CommitKind::Compact)
            .publish()
            .unwrap();
        std::fs::remove_file(t.root().join("bucket-0").join(name)).unwrap();
        let found = past(dir.path(), 1).await;
        assert_eq!(told(&found), [format!("3 COMPACT {}, seen 3..", &expected[2..])]);
        assert!(found.seen_at(SnapshotId(2)).all(|span| matches!(span.seen, Seen::Unknown(_))));
    }
}

#[tokio::test]
async fn what_is_not_kept_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut t = table(dir.path(), &[("bucket", "1")]);
    t.append(&[row(1, 1, 1), row(9, 1, 2)]).unwrap();
    let old = t.live_files().unwrap()[0].file.file_name.clone();
    t.commit()
        .file(FileSpec::rows(&[row(1, 1, 1), row(9, 1, 2)]).level(5))
        .remove_all()
        .kind(CommitKind::Compact)
        .publish()
        .unwrap();
    t.append(&[row(1, 3, 3)]).unwrap();
    t.expire(1).unwrap();
    std::fs::remove_file(t.root().join("bucket-0").join(old)).unwrap();
    let found = past(dir.path(), 1).await;
    assert_eq!(
        told(&found),
        ["2 COMPACT from - before history, seen 2..2 lost to 2", "3 APPEND from 3 exact, seen 3.."]
    );
    let limits: Vec<String> = found.limits.iter().map(ToString::to_string).collect();
    assert!(limits[0].contains("cannot be read") && limits[1].contains("begins with snapshot 2"), "{limits:?}");
    assert_eq!(why(dir.path(), 1, 2).await, (Reason::UnknownBeforeHistory, Some(2)));
}

#[tokio::test]
async fn keys_are_written_in_order_or_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("dt", "STRING NOT NULL"), ("v", "INT")])
        .primary_key(&["dt", "id"])
        .partitioned_by(&["dt"])
        .option("bucket", "1");
    let mut t = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
    let row = |id: i32, dt: &str| json!({"id": id, "dt": dt, "v": 1});
    t.append(&[row(1, "a"), row(2, "a")]).unwrap();
    t.append(&[row(1, "b")]).unwrap();
    let (text, int) = (|text: &str| ScalarValue::Utf8(Some(text.to_string())), |n| ScalarValue::Int32(Some(n)));
    for (key, versions) in [
        (vec![text("a"), int(1)], 1),
        (vec![text("b"), int(1)], 1),
        (vec![int(1)], 2),
        (vec![text("dt=b, id=1")], 1),
        (vec![text("ID='1'")], 2),
        (vec![text("id = 1, dt = 'a, b''s'")], 0),
        (vec![text("b"), int(2)], 0),
    ] {
        let found = past_in(dir.path(), &key, KeyScope::default()).await;
        assert_eq!(found.versions.len(), versions, "{key:?}");
    }
    let history = history(dir.path()).await;
    for (key, code, part) in [
        (vec![text("x=1")], "ColumnNotFound", "'x' is no column of the key"),
        (vec![text("dt=a")], "BadArgument", "column id of the key is missing"),
        (vec![text("a"), text("abc")], "BadArgument", "abc is no value of column id"),
        (vec![ScalarValue::Float64(Some(1.5))], "BadArgument", "1.5 is no value of column id"),
        (vec![text("a"), int(1), int(2)], "BadArgument", "the key has 2 columns, 3 values were given"),
        (vec![text("a"), ScalarValue::Int32(None)], "BadArgument", "never NULL"),
    ] {
        let error = Key::try_new(&history.pin, &key).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let (reason, ..) = why_at(dir.path(), &[text("b"), int(2)], 2, None).await;
    assert_eq!(reason, Reason::OtherPartition);
    let lone = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT")]).option("bucket", "-1");
    TableBuilder::create(lone.path(), "d", "t", &spec).unwrap().append(&[json!({"id": 1})]).unwrap();
    let error = Key::try_new(&self::history(lone.path()).await.pin, &[int(1)]).unwrap_err();
    assert_eq!(error.code(), "NoPrimaryKey");
}

#[tokio::test]
async fn every_reason_has_a_table_that_gives_it() {
    // one bucket, so that files share it
    let dir = tempfile::tempdir().unwrap();
    let mut t = table(dir.path(), &[("bucket", "1")]);
    t.append(&[row(1, 1, 10), row(2, 2, 11), row(9, 9, 12)]).unwrap();
    t.commit().file(FileSpec::rows(&[row(1, 5, 2), row(4, 4, 3)])).user("repair").publish().unwrap();
    t.append(&[gone(2, 13), row(3, 3, 14)]).unwrap();
    let path = dir.path();
    assert_eq!(why(path, 1, 1).await, (Reason::ValueFrom, Some(1)));
    assert_eq!(why(path, 2, 3).await, (Reason::Tombstoned, Some(3)));
    assert_eq!(why(path, 3, 2).await, (Reason::CommittedLater, Some(3)));
    assert_eq!(why(path, 7, 3).await, (Reason::NeverSeen, None));
    let key = [ScalarValue::Int32(Some(1))];
    let (reason, commit, sentence) = why_at(path, &key, 2, Some(5)).await;
    assert_eq!((reason, commit), (Reason::SupersededBySequence, Some(1)));
    assert!(sentence.contains("APPEND of repair") && sentence.contains("(D-9)"), "{sentence}");
    let (reason, commit, _) = why_at(path, &key, 1, Some(5)).await;
    assert_eq!((reason, commit), (Reason::CommittedLater, Some(2)));
    assert_eq!(why_at(path, &key, 1, Some(1)).await.0, Reason::ValueFrom);
    assert_eq!(why_at(path, &key, 1, Some(77)).await.0, Reason::ValueFrom, "a value that nobody wrote");

    // a file that no commit names
    t.commit().file(FileSpec::rows(&[row(8, 8, 20)])).prepare().unwrap();
    assert_eq!(why(path, 8, 3).await, (Reason::NotYetCommitted, None));
    let scope = KeyScope { uncommitted: true, ..KeyScope::default() };
    let found = past_in(path, &[ScalarValue::Int32(Some(8))], scope).await;
    assert_eq!(told(&found), ["- UNCOMMITTED from - none, seen -"]);
    assert!(past(path, 8).await.versions.is_empty());

    // an overwrite with and without rows of the same place
    t.commit().file(FileSpec::rows(&[row(1, 1, 30)])).remove_all().kind(CommitKind::Overwrite).publish().unwrap();
    assert_eq!(why(path, 9, 4).await, (Reason::RemovedByOverwrite, Some(4)));
    t.commit().remove_all().kind(CommitKind::Overwrite).publish().unwrap();
    assert_eq!(why(path, 1, 5).await, (Reason::DroppedPartition, Some(5)));
    assert_eq!(why(path, 9, 5).await, (Reason::RemovedByOverwrite, Some(4)));

    // a state that was rolled back
    t.append(&[row(6, 6, 40)]).unwrap();
    t.tag("lost", 6).unwrap();
    t.expire(6).unwrap();
    assert_eq!(why(path, 6, 5).await, (Reason::RolledBack, Some(6)));
}

#[tokio::test]
async fn reasons_of_levels_vectors_and_compactions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "1"), ("deletion-vectors.enabled", "true")]);
    t.commit()
        .file(FileSpec::rows(&[row(1, 1, 1), row(2, 2, 2)]).level(5))
        .kind(CommitKind::Compact)
        .publish()
        .unwrap();
    let name = t.live_files().unwrap()[0].file.file_name.clone();
    t.commit().delete_positions(&name, &[1]).publish().unwrap();
    t.append(&[row(3, 3, 3)]).unwrap();
    assert_eq!(why(path, 1, 3).await, (Reason::UnknownBeforeHistory, Some(1)), "a compaction of what is not kept");
    assert_eq!(why(path, 2, 3).await, (Reason::VectorDeleted, Some(2)));
    assert_eq!(why(path, 3, 3).await, (Reason::HiddenLevel0, Some(3)));
    t.commit().file(FileSpec::rows(&[row(1, 1, 1)]).level(5)).remove_all().kind(CommitKind::Compact).publish().unwrap();
    assert_eq!(why(path, 2, 4).await, (Reason::VectorDeleted, Some(2)));

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "1")]);
    t.append(&[row(1, 1, 1), row(2, 2, 2)]).unwrap();
    t.append(&[gone(2, 3)]).unwrap();
    t.commit().file(FileSpec::rows(&[row(9, 9, 1)]).level(5)).remove_all().kind(CommitKind::Compact).publish().unwrap();
    assert_eq!(why(path, 2, 3).await, (Reason::Tombstoned, Some(2)), "the delete itself was compacted away");
    assert_eq!(why(path, 1, 3).await, (Reason::LostInCompaction, Some(3)));
    t.alter(&SchemaChange::Set("record-level.expire-time", "1 d")).unwrap();
    t.append(&[row(7, 7, 9)]).unwrap();
    assert_eq!(why(path, 1, 3).await, (Reason::ExpiredRecord, Some(3)));

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "-2")]);
    t.commit().file(FileSpec::rows(&[row(1, 1, 1)]).bucket(-2)).publish().unwrap();
    assert_eq!(why(path, 1, 1).await, (Reason::HiddenPostpone, Some(1)));

    // a row in a bucket that its key does not lead to
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "4")]);
    let right = {
        t.append(&[row(1, 1, 1)]).unwrap();
        t.live_files().unwrap()[0].bucket.0
    };
    t.commit()
        .file(FileSpec::rows(&[row(1, 1, 1)]).bucket((right + 1) % 4))
        .remove_all()
        .kind(CommitKind::Overwrite)
        .publish()
        .unwrap();
    let (reason, ..) = why_at(path, &[ScalarValue::Int32(Some(1))], 2, None).await;
    assert_eq!(reason, Reason::RemovedByOverwrite, "it was in its place before");
    let dir = tempfile::tempdir().unwrap();
    let mut t = table(dir.path(), &[("bucket", "4")]);
    t.commit().file(FileSpec::rows(&[row(1, 1, 1)]).bucket((right + 1) % 4)).publish().unwrap();
    assert_eq!(why(dir.path(), 1, 1).await, (Reason::OtherBucket, None));
}

#[tokio::test]
async fn a_commit_that_is_not_kept_is_not_blamed_on_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "1")]);
    t.append(&[row(1, 1, 1), row(2, 2, 2)]).unwrap();
    t.commit()
        .file(FileSpec::rows(&[row(2, 2, 2)]).level(5))
        .remove_all()
        .kind(CommitKind::Overwrite)
        .publish()
        .unwrap();
    t.append(&[row(3, 3, 3)]).unwrap();
    assert_eq!(why(path, 1, 3).await, (Reason::RemovedByOverwrite, Some(2)));
    t.expire(2).unwrap();
    let (reason, _, sentence) = why_at(path, &[ScalarValue::Int32(Some(1))], 3, None).await;
    assert_eq!(reason, Reason::UnknownBeforeHistory, "{sentence}");
    assert!(sentence.contains("until snapshot 1") && sentence.contains("not kept"), "{sentence}");
    // of the value that was expected likewise
    let (reason, ..) = why_at(path, &[ScalarValue::Int32(Some(2))], 3, Some(2)).await;
    assert_ne!(reason, Reason::LostInCompaction);

    // a vector is of the commit that brought it, or of none
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "1"), ("deletion-vectors.enabled", "true")]);
    let rows = FileSpec::rows(&[row(1, 1, 1), row(2, 2, 2)]).level(5);
    t.commit().file(rows).kind(CommitKind::Compact).publish().unwrap();
    let name = t.live_files().unwrap()[0].file.file_name.clone();
    t.commit().delete_positions(&name, &[1]).publish().unwrap();
    t.commit().file(FileSpec::rows(&[row(9, 9, 9)]).level(5)).kind(CommitKind::Compact).publish().unwrap();
    assert_eq!(why(path, 2, 3).await, (Reason::VectorDeleted, Some(2)));
    t.expire(2).unwrap();
    let (reason, commit, sentence) = why_at(path, &[ScalarValue::Int32(Some(2))], 3, None).await;
    assert_eq!((reason, commit), (Reason::VectorDeleted, None), "{sentence}");
    assert!(sentence.contains("may be an older one"), "{sentence}");
    assert!(past(path, 2).await.versions[0].removed.is_none());
}

#[tokio::test]
async fn an_expected_value_that_was_overwritten_did_not_lose_by_its_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "1")]);
    t.append(&[row(1, 5, 50)]).unwrap();
    t.commit().file(FileSpec::rows(&[row(1, 1, 1)])).remove_all().kind(CommitKind::Overwrite).publish().unwrap();
    let (reason, commit, sentence) = why_at(path, &[ScalarValue::Int32(Some(1))], 2, Some(5)).await;
    assert_eq!((reason, commit), (Reason::RemovedByOverwrite, Some(2)), "{sentence}");
    // a delete that comes later brings nothing
    t.append(&[gone(7, 60)]).unwrap();
    assert_ne!(why(path, 7, 2).await.0, Reason::CommittedLater);
}

#[tokio::test]
async fn what_another_branch_gives_was_not_never_seen() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("p", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT")];
    let spec = TableSpec::new(&columns).partitioned_by(&["p"]).primary_key(&["p", "id"]).option("bucket", "1");
    let main = spec.clone().option("scan.fallback-branch", "b");
    let mut t = TableBuilder::create(dir.path(), "d", "t", &main).unwrap();
    t.append(&[json!({"p": "here", "id": 1, "v": 1})]).unwrap();
    let mut other = TableBuilder::create(dir.path(), "d", "other", &spec).unwrap();
    other.append(&[json!({"p": "there", "id": 2, "v": 2})]).unwrap();
    for (folder, to) in [("schema", "branch/branch-b"), ("snapshot", "branch/branch-b"), ("manifest", "")] {
        let to = t.root().join(to).join(folder);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(other.root().join(folder)).unwrap().flatten() {
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    let key = |p: &str, id| [ScalarValue::from(p), ScalarValue::Int32(Some(id))];
    let (reason, _, sentence) = why_at(dir.path(), &key("there", 2), 1, None).await;
    assert_eq!(reason, Reason::UnknownBeforeHistory, "{sentence}");
    assert!(sentence.contains("branch 'b'"), "{sentence}");
    // a partition that is here is not looked for there
    assert_eq!(why_at(dir.path(), &key("here", 7), 1, None).await.0, Reason::NeverSeen);
}

#[tokio::test]
async fn columns_are_those_of_today_and_buckets_those_of_each_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut t = table(dir.path(), &[("bucket", "1")]);
    t.append(&[row(1, 1, 1)]).unwrap();
    t.alter(&SchemaChange::Rename("v", "value")).unwrap();
    t.alter(&SchemaChange::Add("more", "STRING")).unwrap();
    t.alter(&SchemaChange::Retype("value", "BIGINT")).unwrap();
    t.alter(&SchemaChange::Set("bucket", "7")).unwrap();
    let new = json!({"id": 1, "value": 2, "w": 3, "more": "x", "_SEQUENCE_NUMBER": 2});
    t.commit().file(FileSpec::rows(&[new])).remove_all().kind(CommitKind::Overwrite).publish().unwrap();
    let found = past(dir.path(), 1).await;
    assert_eq!(told(&found), ["1 APPEND from 1 exact, seen 1..1 removed by 2", "2 APPEND from 2 exact, seen 2.."]);
    let values = |at: usize| -> Vec<Value> {
        let row = &found.versions[at].row;
        (0..4).flat_map(|column| naive::from_array(row.column(column).as_ref()).unwrap()).collect()
    };
    assert_eq!(values(0), [Value::Int(1), Value::Int(1), Value::Int(10), Value::Null]);
    assert_eq!(values(1), [Value::Int(1), Value::Int(2), Value::Int(3), Value::Text("x".into())]);
}

/// A small generator, so that a failure can be repeated by its seed.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A file of the model: its rows, level and whether rows of it are deleted.
#[derive(Clone)]
struct Model {
    name: String,
    rows: Vec<(Vec<Option<i64>>, i64, RowKind)>,
    level: i32,
    deleted: Vec<u64>,
}

fn records(files: &[Model]) -> Vec<Record> {
    let mut all = Vec::new();
    for (place, file) in files.iter().enumerate() {
        for (at, (values, sequence, kind)) in file.rows.iter().enumerate() {
            if !file.deleted.contains(&(at as u64)) {
                let values = values.iter().map(|v| v.map_or(Value::Null, Value::Int)).collect();
                all.push(Record { values, sequence: *sequence, kind: *kind, level: file.level, place });
            }
        }
    }
    all
}

fn as_json(rows: &[(Vec<Option<i64>>, i64, RowKind)]) -> Vec<Json> {
    rows.iter()
        .map(|(v, sequence, kind)| {
            json!({"id": v[0], "v": v[1], "w": v[2], "_SEQUENCE_NUMBER": sequence, "_ROW_KIND": kind.as_str()})
        })
        .collect()
}

#[tokio::test]
async fn what_a_history_shows_is_what_a_naive_fold_gives_at_every_snapshot() {
    const KEYS: u64 = 4;
    let cases: &[(&[(&str, &str)], bool)] = &[
        (&[], true),
        (&[("sequence.field", "w")], true),
        (&[("ignore-delete", "true")], true),
        (&[("deletion-vectors.enabled", "true")], true),
        (&[("merge-engine", "first-row")], false),
        (&[("merge-engine", "partial-update")], false),
        (&[("merge-engine", "partial-update"), ("fields.w.sequence-group", "v")], false),
        (&[("merge-engine", "aggregation"), ("fields.v.aggregate-function", "sum")], true),
        (
            &[
                ("merge-engine", "aggregation"),
                ("fields.v.aggregate-function", "max"),
                ("changelog-producer", "lookup"),
            ],
            false,
        ),
    ];
    for (number, (options, deletes)) in cases.iter().enumerate() {
        for seed in 0..4 {
            let mut draw = Draw(seed * 1000 + number as u64 + 1);
            let dir = tempfile::tempdir().unwrap();
            let mut t = table(dir.path(), &[&[("bucket", "1")], *options].concat());
            let model = naive::Table {
                columns: ["id", "v", "w"]
                    .map(|name| naive::Column { name: name.into(), data_type: DataType::Int, nullable: name != "id" })
                    .to_vec(),
                key: vec!["id".into()],
                options: options.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect(),
            };
            let hides = options.iter().any(|(key, value)| *key == "deletion-vectors.enabled" || *value == "first-row");
            let vectors = options.iter().any(|(key, _)| *key == "deletion-vectors.enabled");
            let mut files: Vec<Model> = Vec::new();
            let mut states: Vec<Vec<naive::Merged>> = Vec::new();
            let mut sequence = 0;
            for step in 0..10 {
                let merged = naive::merge(&model, &records(&files)).unwrap();
                if step % 4 == 3 && !files.is_empty() {
                    let rows: Vec<_> = merged.rows.iter().filter(|r| !r.kind.is_retract()).map(plain).collect();
                    compact(&mut t, &mut files, rows);
                } else if vectors && step == 5 && files.iter().any(|file| file.level > 0) {
                    let file = files.iter_mut().find(|file| file.level > 0).unwrap();
                    file.deleted.push(0);
                    t.commit().delete_positions(&file.name, &[0]).publish().unwrap();
                } else {
                    let mut rows = Vec::new();
                    for id in 0..KEYS {
                        if draw.next(2) == 0 {
                            continue;
                        }
                        sequence += 1;
                        let kind = if *deletes && draw.next(5) == 0 { RowKind::Delete } else { RowKind::Insert };
                        let mut value = || Some(draw.next(12) as i64).filter(|value| *value < 9);
                        let (v, w) = (value(), value());
                        // a lower number now and then, as a second writer has
                        let own = if draw.next(4) == 0 { sequence - 1 } else { sequence };
                        rows.push((vec![Some(id as i64), v, w], own * 10 + id as i64, kind));
                    }
                    if rows.is_empty() {
                        sequence += 1;
                        rows.push((vec![Some(0), Some(1), Some(1)], sequence * 10, RowKind::Insert));
                    }
                    t.append(&as_json(&rows)).unwrap();
                    let known: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
                    let live = t.live_files().unwrap();
                    let new = live.iter().find(|e| !known.contains(&e.file.file_name)).unwrap();
                    files.push(Model { name: new.file.file_name.clone(), rows, level: 0, deleted: Vec::new() });
                }
                let seen: Vec<Model> = files.iter().filter(|file| !hides || file.level > 0).cloned().collect();
                let merged = naive::merge(&model, &records(&seen)).unwrap();
                states.push(merged.rows.into_iter().filter(|row| !row.kind.is_retract()).collect());
            }
            for id in 0..KEYS {
                let found = past(dir.path(), id as i32).await;
                for (at, state) in (1..).zip(&states) {
                    let expected =
                        state.iter().find(|row| row.values[0] == Value::Int(id as i64)).map(|row| row.values.clone());
                    let mut rows = found.seen_at(SnapshotId(at)).filter_map(|span| found.row_of(&span.seen));
                    let got = rows.next().map(|row| -> Vec<Value> {
                        (0..3).flat_map(|column| naive::from_array(row.column(column).as_ref()).unwrap()).collect()
                    });
                    assert!(rows.next().is_none());
                    assert_eq!(got, expected, "{options:?} seed {seed} key {id} snapshot {at}: {:#?}", told(&found));
                }
            }
        }
    }
}

fn plain(row: &naive::Merged) -> (Vec<Option<i64>>, i64, RowKind) {
    let values = row.values.iter().map(|value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    (values.collect(), row.sequence, RowKind::Insert)
}

/// A full compaction: every file becomes one on the top level.
fn compact(t: &mut TableBuilder, files: &mut Vec<Model>, rows: Vec<(Vec<Option<i64>>, i64, RowKind)>) {
    let commit = t.commit().remove_all().kind(CommitKind::Compact);
    if rows.is_empty() {
        commit.publish().unwrap();
        files.clear();
        return;
    }
    commit.file(FileSpec::rows(&as_json(&rows)).level(5)).publish().unwrap();
    let live = t.live_files().unwrap();
    let [one] = live.as_slice() else { panic!("one file") };
    *files = vec![Model { name: one.file.file_name.clone(), rows, level: 5, deleted: Vec::new() }];
}
