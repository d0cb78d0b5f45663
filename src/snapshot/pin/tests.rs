use super::super::testbed::{Bed, T0, commit, open, schema};
use super::*;
use crate::testing::golden;

fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

async fn pin_with(bed: &Bed, pairs: &[(&str, &str)]) -> Result<Arc<Pin>> {
    Pin::resolve(&bed.table().await, PinRequest::Latest, &options(pairs)).await
}

#[tokio::test]
async fn resolving_can_run_on_any_thread() {
    let bed = Bed::with_snapshots(1, 2);
    let table = bed.table().await;
    let pin =
        tokio::spawn(
            async move { Pin::resolve(&table, PinRequest::TimestampMillis(T0 + 1000), &BTreeMap::new()).await },
        );
    let pin = pin.await.unwrap().unwrap();
    assert_eq!(pin.snapshot_id(), Some(SnapshotId(1)));
    tokio::spawn(async move { pin.verify().await }).await.unwrap().unwrap();
}

#[tokio::test]
async fn b022_travel_takes_the_snapshots_columns_and_the_latest_options() {
    let bed = Bed::with_snapshots(1, 2);
    bed.write("schema/schema-1", &schema(1, &[(0, "a2")], &[("merge-engine", "first-row")]));
    let mut second = commit(2);
    second.schema = 1;
    bed.commit(&second);
    let names = |pin: &Pin| pin.schema.fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
    let now = bed.pin(PinRequest::Latest).await.unwrap();
    assert_eq!(names(&now), ["a2"]);
    let then = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    assert_eq!(names(&then), ["a"]);
    assert_eq!(then.options.raw.get("merge-engine").map(String::as_str), Some("first-row"));
    assert_eq!(then.latest_schema_id, SchemaId(1));
}

#[tokio::test]
async fn b023_column_added_without_a_snapshot_is_there_now_and_explained_then() {
    let bed = Bed::with_snapshots(1, 1);
    bed.write("schema/schema-1", &schema(1, &[(0, "a"), (1, "c")], &[]));
    let now = bed.pin(PinRequest::Latest).await.unwrap();
    assert!(now.schema.field_index("c").is_some());
    assert!(now.describe(&SessionZone::utc()).contains("schema 0, read with schema 1"));
    let then = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    assert!(then.schema.field_index("c").is_none());
    assert_eq!(
        then.explain_missing_column("c").await.unwrap(),
        "column 'c' was added in schema 1, after snapshot 1 (schema 0)"
    );
    assert!(then.describe(&SessionZone::utc()).contains("schema 0 (latest schema 1)"));
    assert_eq!(then.explain_missing_column("zzz").await, None);
}

#[tokio::test]
async fn dropped_and_renamed_columns_are_explained() {
    let bed = Bed::with_snapshots(1, 2);
    bed.write("schema/schema-0", &schema(0, &[(0, "a"), (1, "b")], &[]));
    bed.write("schema/schema-1", &schema(1, &[(0, "a2"), (1, "b")], &[]));
    bed.write("schema/schema-2", &schema(2, &[(0, "a2")], &[]));
    let mut second = commit(2);
    second.schema = 2;
    bed.commit(&second);
    let now = bed.pin(PinRequest::Latest).await.unwrap();
    let dropped = now.explain_missing_column("b").await.unwrap();
    assert!(dropped.contains("dropped in schema 2") && dropped.contains("VERSION AS OF 1 still has it"), "{dropped}");
    assert_eq!(now.explain_missing_column("a").await.unwrap(), "column 'a' was renamed to 'a2' in schema 1");
    let then = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    assert_eq!(
        then.explain_missing_column("A2").await.unwrap(),
        "column 'a2' is called 'a' in snapshot 1 (schema 0): it was renamed in schema 1"
    );
}

#[tokio::test]
async fn options_decide_when_the_request_is_latest_and_yield_to_a_clause() {
    let bed = Bed::with_snapshots(1, 5);
    assert_eq!(pin_with(&bed, &[("scan.snapshot-id", "3")]).await.unwrap().snapshot_id(), Some(SnapshotId(3)));
    assert_eq!(pin_with(&bed, &[("scan.version", "2")]).await.unwrap().snapshot_id(), Some(SnapshotId(2)));
    let conflict = pin_with(&bed, &[("scan.snapshot-id", "3"), ("scan.tag-name", "x")]).await.unwrap_err();
    assert_eq!(conflict.code(), "InvalidOption");
    let clause =
        Pin::resolve(&bed.table().await, PinRequest::SnapshotId(4), &options(&[("scan.snapshot-id", "3")])).await;
    assert_eq!(clause.unwrap().snapshot_id(), Some(SnapshotId(4)));
    let unreadable = pin_with(&bed, &[("scan.mode", "latest-delta")]).await.unwrap_err();
    assert!(unreadable.to_string().contains("pay.orders"), "{unreadable}");

    bed.write("schema/schema-1", &schema(1, &[(0, "a")], &[("scan.snapshot-id", "2")]));
    assert_eq!(pin_with(&bed, &[]).await.unwrap().snapshot_id(), Some(SnapshotId(2)));
    assert_eq!(pin_with(&bed, &[("scan.mode", "latest")]).await.unwrap().snapshot_id(), Some(SnapshotId(5)));
    let by_time = pin_with(&bed, &[("scan.timestamp-millis", &(T0 + 4000).to_string())]).await.unwrap();
    assert_eq!(by_time.snapshot_id(), Some(SnapshotId(4)));
}

#[tokio::test]
async fn scan_timestamp_is_the_sessions_wall_clock() {
    let bed = Bed::with_snapshots(1, 5);
    let given = options(&[("scan.timestamp", "2026-04-16 10:00:03")]);
    let shanghai = SessionZone::parse("Asia/Shanghai").unwrap();
    let pin = Pin::resolve_in(&bed.table().await, PinRequest::Latest, &given, &shanghai).await.unwrap();
    assert_eq!(pin.snapshot_id(), Some(SnapshotId(3)));
}

#[tokio::test]
async fn fingerprint_tells_a_number_used_again() {
    let bed = Bed::with_snapshots(1, 3);
    let pin = bed.pin(PinRequest::SnapshotId(3)).await.unwrap();
    pin.verify().await.unwrap();
    let mut again = commit(3);
    (again.user, again.identifier) = ("spark-fix", 77);
    bed.commit(&again);
    let error = pin.verify().await.unwrap_err();
    assert_eq!((error.code(), error.kind()), ("PinLost", ErrorKind::Conflict));
    assert!(error.to_string().contains("'flink' 3") && error.to_string().contains("'spark-fix' 77"), "{error}");
    bed.tag("keep", &commit(3));
    pin.verify().await.unwrap();
}

#[tokio::test]
async fn every_part_of_the_fingerprint_counts() {
    let bed = Bed::with_snapshots(1, 1);
    let pin = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    let changes: [fn(&mut super::super::testbed::Commit); 5] = [
        |c| c.user = "other",
        |c| c.identifier = 9,
        |c| c.kind = "COMPACT",
        |c| c.time += 1,
        |c| c.list = "other-list".to_string(),
    ];
    for change in changes {
        let mut other = commit(1);
        change(&mut other);
        bed.commit(&other);
        assert_eq!(pin.verify().await.unwrap_err().code(), "PinLost");
    }
    bed.write("snapshot/snapshot-1", &commit(1).json().replace("\"version\":3", "\"version\":3,\"uuid\":\"u-1\""));
    assert_eq!(pin.verify().await.unwrap_err().code(), "PinLost");
    bed.commit(&commit(1));
    pin.verify().await.unwrap();
}

#[tokio::test]
async fn expired_and_rolled_back_pins_are_told_apart() {
    let bed = Bed::with_snapshots(1, 5);
    let (old, new) =
        (bed.pin(PinRequest::SnapshotId(1)).await.unwrap(), bed.pin(PinRequest::SnapshotId(5)).await.unwrap());
    for id in [1, 2, 3, 5] {
        bed.remove(&format!("snapshot/snapshot-{id}"));
    }
    let expired = old.verify().await.unwrap_err();
    assert_eq!(
        (expired.code(), expired.message()),
        ("SnapshotExpired", "the pinned snapshot 1 has expired; available 4")
    );
    let lost = new.verify().await.unwrap_err();
    assert_eq!((lost.code(), lost.message()), ("PinLost", "the pinned snapshot 5 was rolled back; available 4"));
    bed.tag("any", &commit(1));
    old.verify().await.unwrap();
}

/// Nothing rolls back one snapshot and keeps those behind it: somebody removed a file.
#[tokio::test]
async fn pin_that_is_gone_from_among_others_is_told_so() {
    let bed = Bed::with_snapshots(1, 8);
    let pin = bed.pin(PinRequest::SnapshotId(5)).await.unwrap();
    bed.remove("snapshot/snapshot-5");
    let lost = pin.verify().await.unwrap_err();
    let expected = "the pinned snapshot 5 was removed from between the others; available 1..4, 6..8";
    assert_eq!((lost.code(), lost.message()), ("PinLost", expected));
}

#[tokio::test]
async fn tag_that_moves_on_loses_the_pin_only_when_the_snapshot_is_gone_too() {
    let bed = Bed::with_snapshots(2, 3);
    bed.tag("eod", &commit(2));
    let pin = bed.pin(PinRequest::Tag("eod".to_string())).await.unwrap();
    bed.tag("eod", &commit(3));
    pin.verify().await.unwrap();
    bed.remove("snapshot/snapshot-2");
    assert_eq!(pin.verify().await.unwrap_err().code(), "SnapshotExpired");
}

#[tokio::test]
async fn b084_file_that_vanishes_means_the_snapshot_expired_or_the_table_is_damaged() {
    let bed = Bed::with_snapshots(1, 5);
    let pin = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    let file = pin.table.root().join("bucket-0/data-1.parquet").unwrap();
    let damaged = pin.missing_file(&file).await;
    assert_eq!((damaged.code(), damaged.kind()), ("FileLost", ErrorKind::Corrupt));
    assert!(damaged.to_string().contains("data-1.parquet"), "{damaged}");
    for id in [1, 2, 3] {
        bed.remove(&format!("snapshot/snapshot-{id}"));
    }
    let expired = pin.missing_file(&file).await;
    assert_eq!((expired.code(), expired.kind()), ("SnapshotExpired", ErrorKind::NotFound));
    assert!(expired.to_string().contains("snapshot 1 expired during the read (earliest now 4)"), "{expired}");
}

#[tokio::test]
async fn golden_branch_has_its_own_schema_and_snapshots() {
    let table = open(&golden::java_warehouse().unwrap().join("golden.db/branch_schema")).await;
    let branch = table.branch("dev").await.unwrap();
    let pin = Pin::resolve(&branch, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    assert_eq!((pin.schema.id, pin.snapshot_id()), (SchemaId(1), Some(SnapshotId(2))));
    let by_option = Pin::resolve(&table, PinRequest::Latest, &options(&[("branch", "dev")])).await.unwrap();
    assert_eq!(by_option.fingerprint, pin.fingerprint);
    let main = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    assert_ne!(main.fingerprint, pin.fingerprint);
    assert_eq!(main.schema.id, SchemaId(0));
    let error = Pin::resolve(&table, PinRequest::Latest, &options(&[("branch", "dve")])).await.unwrap_err();
    assert!(error.to_string().contains("did you mean 'dev'?"), "{error}");
}

#[tokio::test]
async fn golden_fallback_branch_is_pinned_beside() {
    let table = open(&golden::java_warehouse().unwrap().join("golden.db/fallback_branch")).await;
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    let fallback = pin.fallback.as_ref().unwrap();
    assert_eq!(fallback.table.ident().branch, "fb");
    assert_eq!(fallback.snapshot_id(), Some(SnapshotId(1)));
    assert!(fallback.fallback.is_none());
    pin.verify().await.unwrap();
    assert!(pin.describe(&SessionZone::utc()).contains("fallback: "));
}

#[tokio::test]
async fn the_tables_own_option_leads_to_a_branch_unless_another_is_named() {
    let bed = Bed::with_snapshots(1, 1);
    bed.write("schema/schema-1", &schema(1, &[(0, "a")], &[("branch", "dev")]));
    bed.write("branch/branch-dev/schema/schema-0", &schema(0, &[(0, "b")], &[("branch", "dev")]));
    bed.write("branch/branch-dev/snapshot/snapshot-7", &commit(7).json());
    for request in [PinRequest::Latest, PinRequest::SnapshotId(7)] {
        let pin = bed.pin(request).await.unwrap();
        assert_eq!((pin.table.ident().branch.as_str(), pin.snapshot_id()), ("dev", Some(SnapshotId(7))));
        assert_eq!(pin.schema.fields[0].name, "b");
        assert!(pin.notices.iter().any(|notice| notice.contains("'dev'")), "{:?}", pin.notices);
    }
    let main = pin_with(&bed, &[("branch", "main")]).await.unwrap();
    assert_eq!(main.snapshot_id(), Some(SnapshotId(1)));
    bed.write("schema/schema-2", &schema(2, &[(0, "a")], &[("branch", "gone")]));
    let error = bed.pin(PinRequest::Latest).await.unwrap_err();
    assert!(error.code() == "BranchNotFound" && error.to_string().contains("option: branch"), "{error}");
}

/// A table with a branch `fb` that completes it: snapshots 1 to 4 in main, 1 to 3 in the branch, half a second later.
fn with_fallback() -> Bed {
    let bed = Bed::with_snapshots(1, 4);
    bed.write("schema/schema-1", &schema(1, &[(0, "a")], &[("scan.fallback-branch", "fb")]));
    bed.write("branch/branch-fb/schema/schema-0", &schema(0, &[(5, "a")], &[]));
    for id in 1..=3 {
        let mut snapshot = commit(id);
        snapshot.time += 500;
        bed.write(&format!("branch/branch-fb/snapshot/snapshot-{id}"), &snapshot.json());
    }
    bed.write("branch/branch-fb/tag/tag-x", &commit(1).json());
    bed.tag("x", &commit(2));
    bed
}

#[tokio::test]
async fn fallback_branch_follows_the_time_of_an_id_and_the_words_of_the_rest() {
    let bed = with_fallback();
    let fallback = async |request| bed.pin(request).await.unwrap().fallback.as_ref().unwrap().snapshot_id().unwrap().0;
    assert_eq!(fallback(PinRequest::Latest).await, 3);
    assert_eq!(fallback(PinRequest::SnapshotId(3)).await, 2, "latest of the branch at the time of snapshot 3");
    assert_eq!(fallback(PinRequest::SnapshotId(1)).await, 1, "none that early: its first");
    assert_eq!(fallback(PinRequest::Version("4".to_string())).await, 3);
    assert_eq!(fallback(PinRequest::Tag("x".to_string())).await, 1);
    assert_eq!(fallback(PinRequest::TimestampMillis(T0 + 2600)).await, 2);
    bed.remove("branch/branch-fb/tag/tag-x");
    let error = bed.pin(PinRequest::Tag("x".to_string())).await.unwrap_err();
    assert!(error.to_string().contains("branch_fb") && error.to_string().contains("scan.fallback-branch"), "{error}");
}

#[tokio::test]
async fn branches_that_cannot_complete_each_other_are_refused() {
    let bed = with_fallback();
    bed.write("branch/branch-fb/schema/schema-1", &schema(1, &[(5, "other")], &[]));
    assert_eq!(bed.pin(PinRequest::Latest).await.unwrap_err().code(), "BranchSchemasDiffer");
    let both = pin_with(&bed, &[("scan.primary-branch", "fb")]).await.unwrap_err();
    assert_eq!(both.code(), "UnsupportedOption");
    let missing = pin_with(&bed, &[("scan.fallback-branch", "nope")]).await.unwrap_err();
    assert_eq!(missing.code(), "BranchNotFound");

    let plain = Bed::with_snapshots(1, 2);
    plain.write("branch/branch-p/schema/schema-0", &schema(0, &[(0, "a")], &[]));
    let primary = pin_with(&plain, &[("scan.primary-branch", "p")]).await.unwrap();
    assert!(primary.fallback.is_none());
    assert!(primary.primary.as_ref().unwrap().snapshot.is_none());
    let by_id = pin_with(&plain, &[("scan.primary-branch", "p"), ("scan.snapshot-id", "1")]).await.unwrap_err();
    assert_eq!(by_id.code(), "UnsupportedOption");
}

#[tokio::test]
async fn pin_is_told_with_zone_and_milliseconds() {
    let bed = Bed::new();
    let mut first = commit(1);
    (first.watermark, first.kind) = (Some(T0), "COMPACT");
    bed.commit(&first);
    bed.tag("eod", &first);
    let shanghai = SessionZone::parse("Asia/Shanghai").unwrap();
    let text = bed.pin(PinRequest::Tag("eod".to_string())).await.unwrap().describe(&shanghai);
    assert_eq!(
        text,
        "pay.orders @ snapshot 1, committed 2026-04-16 10:00:01.000 +08:00 (1776304801000 ms), COMPACT, user 'flink', \
         identifier 1, watermark 2026-04-16 10:00:00.000 +08:00 (1776304800000 ms), schema 0, tag 'eod'"
    );
    let empty = Bed::new().pin(PinRequest::Latest).await.unwrap().describe(&shanghai);
    assert_eq!(empty, "pay.orders has no snapshot and reads as empty");
}

#[tokio::test]
async fn latest_pin_tells_when_the_hint_lies() {
    let bed = Bed::with_snapshots(1, 5);
    bed.write("snapshot/LATEST", "9");
    let pin = bed.pin(PinRequest::Latest).await.unwrap();
    assert_eq!(pin.snapshot_id(), Some(SnapshotId(5)));
    assert!(pin.notices[0].contains("LATEST hint"), "{:?}", pin.notices);
}

#[tokio::test]
async fn missing_schema_of_a_snapshot_is_an_error_not_another_schema() {
    let bed = Bed::with_snapshots(1, 2);
    let mut second = commit(2);
    second.schema = 7;
    bed.commit(&second);
    let error = bed.pin(PinRequest::SnapshotId(2)).await.unwrap_err();
    assert_eq!(error.code(), "SchemaNotFound");
    assert!(error.to_string().contains("schema 7 is missing; there are schemas 0"), "{error}");
}

#[tokio::test]
async fn the_schema_a_snapshot_was_written_with_is_never_replaced_by_an_older_one() {
    let bed = Bed::with_snapshots(1, 2);
    bed.write("schema/schema-1", &schema(1, &[(0, "a2")], &[("merge-engine", "first-row")]));
    let mut second = commit(2);
    second.schema = 1;
    bed.commit(&second);
    bed.pin(PinRequest::Latest).await.unwrap();
    bed.remove("schema/schema-1");
    for request in [PinRequest::Latest, PinRequest::SnapshotId(2), PinRequest::TimestampMillis(T0 + 2000)] {
        let error = bed.pin(request.clone()).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("SchemaNotFound", ErrorKind::Corrupt), "{request}");
        let text = error.to_string();
        assert!(text.contains("schema 1 is missing; there are schemas 0") && text.contains("schema-1"), "{text}");
    }
    assert_eq!(bed.pin(PinRequest::SnapshotId(1)).await.unwrap().snapshot_id(), Some(SnapshotId(1)));
}

#[tokio::test]
async fn a_broken_tag_does_not_hide_that_a_pin_is_lost_or_held() {
    let bed = Bed::with_snapshots(1, 3);
    let pin = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    bed.write("tag/tag-zz", "{");
    pin.verify().await.unwrap();
    bed.remove("snapshot/snapshot-1");
    let error = pin.verify().await.unwrap_err();
    assert_eq!(error.code(), "SnapshotExpired");
    assert!(error.message().ends_with("; tag 'zz' cannot be read and may hold it"), "{error}");
    bed.tag("keep", &commit(1));
    pin.verify().await.unwrap();
}

#[tokio::test]
async fn not_null_is_promised_where_every_schema_says_it() {
    let with = |id: i64, columns: &[(i32, &str, &str)]| {
        let fields: Vec<String> = columns
            .iter()
            .map(|(id, name, data_type)| format!(r#"{{"id":{id},"name":"{name}","type":"{data_type}"}}"#))
            .collect();
        schema(id, &[(9, "a")], &[]).replace(r#"{"id":9,"name":"a","type":"INT"}"#, &fields.join(","))
    };
    let nullable = |pin: &Arc<Pin>| -> Vec<String> {
        let fields = pin.schema.fields.iter().filter(|field| field.field_type.nullable);
        fields.map(|field| field.name.clone()).collect()
    };
    let bed = Bed::with_snapshots(1, 1);
    bed.write("schema/schema-0", &with(0, &[(0, "a", "INT NOT NULL"), (1, "b", "INT"), (2, "c", "INT NOT NULL")]));
    let table = bed.table().await;
    let pin = async |request| Pin::resolve(&table, request, &BTreeMap::new()).await.unwrap();
    assert_eq!(nullable(&pin(PinRequest::Latest).await), ["b"]);
    // renamed, made NOT NULL, another type, new
    let changed =
        [(0, "z", "INT NOT NULL"), (1, "b", "INT NOT NULL"), (2, "c", "BIGINT NOT NULL"), (3, "d", "INT NOT NULL")];
    bed.write("schema/schema-1", &with(1, &changed));
    let mut second = commit(2);
    second.schema = 1;
    bed.commit(&second);
    let now = pin(PinRequest::Latest).await;
    assert_eq!(nullable(&now), ["b", "c", "d"]);
    assert!(now.declared.fields.iter().all(|field| !field.field_type.nullable));
    assert_eq!(nullable(&pin(PinRequest::SnapshotId(1)).await), ["b"]);
    // read with the older schema, the files of the newer one are there all the same
    let back = now.with_schema(&table.schema(SchemaId(0)).await.unwrap()).await.unwrap();
    assert_eq!(nullable(&back), ["b", "c"]);
    // NOT NULL taken back and said again
    for (id, text) in [(2, "INT"), (3, "INT NOT NULL")] {
        bed.write(&format!("schema/schema-{id}"), &with(id, &[(0, "z", text)]));
    }
    assert_eq!(nullable(&pin(PinRequest::Latest).await), ["z"]);
    // what cannot be looked at promises nothing
    bed.write("schema/schema-2", "{");
    assert_eq!(nullable(&pin(PinRequest::Latest).await), ["z"]);
    bed.remove("schema/schema-0");
    bed.write("schema/schema-2", &with(2, &[(0, "z", "INT NOT NULL")]));
    assert_eq!(nullable(&pin(PinRequest::Latest).await), ["z"]);
}

#[tokio::test]
async fn older_schemas_are_read_only_for_a_promise_and_once() {
    let bed = Bed::with_snapshots(1, 1);
    let gets = async |table: &Arc<Table>| {
        let before = table.storage().counts();
        Pin::resolve(table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
        (table.storage().counts() - before).gets
    };
    let promising = |id| schema(id, &[(0, "a")], &[]).replace("\"INT\"", "\"INT NOT NULL\"");
    bed.write("schema/schema-0", &promising(0));
    let first = gets(&bed.table().await).await;
    for id in 1..4 {
        bed.write(&format!("schema/schema-{id}"), &schema(id, &[(0, "a")], &[]));
    }
    assert_eq!(gets(&bed.table().await).await, first, "nothing is promised");
    bed.write("schema/schema-4", &promising(4).replace("\"primaryKeys\":[]", "\"primaryKeys\":[\"a\"]"));
    assert_eq!(gets(&bed.table().await).await, first, "a key is NOT NULL from the first schema on");
    bed.write("schema/schema-5", &promising(5));
    let table = bed.table().await;
    assert_eq!(gets(&table).await, first + 5);
    assert!(gets(&table).await < first, "they are known");
}

#[tokio::test]
async fn file_that_only_a_tag_still_needs_is_told_so() {
    let bed = Bed::with_snapshots(1, 3);
    bed.tag("t1", &commit(1));
    bed.remove("snapshot/snapshot-1");
    let pin = bed.pin(PinRequest::Tag("t1".to_string())).await.unwrap();
    let lost = pin.missing_file(&pin.table.root().join("bucket-0/data-1.parquet").unwrap()).await;
    let expected = "a file that snapshot 1 needs is missing, though tag 't1' still holds it";
    assert_eq!((lost.code(), lost.message()), ("FileLost", expected));
}
