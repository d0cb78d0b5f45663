//! An S3 store that fails: what is retried, what is told, and what reading costs in requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lakepin::object_store::ObjectStoreExt;
use lakepin::object_store::path::Path as StorePath;
use lakepin::sql::{Session, Warehouse};
use lakepin::testing::builder::{FileSpec, TableSpec};
use lakepin::{Error, ErrorKind};
use serde_json::{Value, json};

use super::proxy::{Proxy, Rule};
use super::{BUCKET, NO_SERVER, Server, options, upload};
use crate::field::kit::{Done, Lake, OrText, ask, check, config, rows};
use crate::harness::{Outcome, Test};

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("s3::faults_are_retried_or_told", faults));
    tests.push(Test::new_async("s3::long_listings_and_odd_names", listings));
}

/// Impatient limits, so that a test of them ends.
fn impatient(port: u16) -> BTreeMap<String, String> {
    let mut options = options(port);
    for (key, value) in [
        ("storage.timeout", "700ms"),
        ("storage.connect-timeout", "500ms"),
        ("storage.retries", "4"),
        ("storage.retry-timeout", "4s"),
    ] {
        options.insert(key.into(), value.into());
    }
    options
}

async fn open(place: &str, options: &BTreeMap<String, String>) -> Result<Session, Error> {
    let warehouse = Warehouse::open(place, options).await?;
    Session::new(&warehouse, config()).await
}

/// A keyed table with deletion vectors in two partitions.
fn build(lake: &Lake, name: &str) -> Done {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "STRING"), ("p", "INT NOT NULL")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1");
    let mut t = lake.table(name, &spec)?;
    let rows: Vec<Value> = (0..500).map(|i| json!({"id": i, "v": format!("value {i}"), "p": i % 2})).collect();
    t.commit().file(FileSpec::rows(&rows).level(5)).publish().text()?;
    t.append(&[json!({"id": 0, "v": "new", "p": 0})]).text()?;
    Ok(())
}

const ALL: &str = "SELECT count(v), sum(id) FROM t WHERE v <> ''";

/// What a session of its own reads.
async fn read(options: &BTreeMap<String, String>) -> Result<Vec<String>, Error> {
    let session = open(&format!("s3://{BUCKET}/wh"), options).await?;
    Ok(ask(&session, ALL).await?.sorted())
}

async fn faults() -> Result<Outcome, String> {
    let Some(server) = Server::start().await? else { return Ok(Outcome::Skipped(NO_SERVER.into())) };
    let lake = Lake::new()?;
    build(&lake, "t")?;
    upload(&server.store()?, lake.path(), "wh").await?;
    let proxy = Proxy::start(server.port).await?;
    let hasty = impatient(proxy.port);
    let right = read(&hasty).await.text()?;
    check(right == ["500|124750"], format!("{right:?}"))?;

    // what passes is waited for
    let slow = Rule::Delay(Duration::from_millis(900));
    for (rule, times) in [
        (Rule::Error(503, "SlowDown"), 2),
        (Rule::Error(500, "InternalError"), 2),
        (Rule::Error(429, "TooManyRequests"), 1),
        (Rule::HangUp, 1),
        (Rule::CutAnswer, 1),
        (slow, 1),
    ] {
        proxy.set(rule, times);
        let read = read(&hasty).await.map_err(|e| format!("{rule:?} {times} times: {e:?}"))?;
        check(read == right, format!("{rule:?} {times} times: {read:?}"))?;
    }

    // what stays is told, soon, and is never an empty or shorter answer
    const ALWAYS: usize = usize::MAX;
    for (rule, kind, code, word) in [
        (Rule::Error(503, "SlowDown"), ErrorKind::Unavailable, "StorageUnavailable", "SlowDown"),
        (Rule::HangUp, ErrorKind::Unavailable, "StorageUnavailable", "s3://"),
        (Rule::CutAnswer, ErrorKind::Unavailable, "StorageUnavailable", "s3://"),
        (Rule::Delay(Duration::from_secs(30)), ErrorKind::Unavailable, "StorageUnavailable", "s3://"),
        (Rule::Error(403, "InvalidAccessKeyId"), ErrorKind::Invalid, "PermissionDenied", "access key"),
        (Rule::Error(403, "SignatureDoesNotMatch"), ErrorKind::Invalid, "PermissionDenied", "secret key"),
    ] {
        // from the first request on, and once the session is open
        proxy.set(Rule::Pass, 0);
        let session = open(&format!("s3://{BUCKET}/wh"), &hasty).await.text()?;
        proxy.set(rule, ALWAYS);
        for outcome in [read(&hasty).await, ask(&session, ALL).await.map(|a| a.sorted())] {
            let began = Instant::now();
            let error = match outcome {
                Ok(rows) => return Err(format!("{rule:?}: read {rows:?}")),
                Err(error) => error,
            };
            let text = error.to_string();
            check(error.kind() == kind && error.code() == code, format!("{rule:?}: {error:?}"))?;
            check(text.contains(word) && text.contains("s3://lake"), format!("{rule:?} is not told: {error:?}"))?;
            check(error.hint().is_some(), format!("{rule:?}: no way out: {error:?}"))?;
            check(began.elapsed() < Duration::from_secs(30), format!("{rule:?} took {:?}", began.elapsed()))?;
        }
    }

    // a server that goes away between planning and reading
    proxy.set(Rule::Pass, 0);
    let session = open(&format!("s3://{BUCKET}/wh"), &hasty).await.text()?;
    ask(&session, "SELECT count(*) FROM t$files").await.text()?;
    drop(server);
    let error = ask(&session, ALL).await.err().ok_or("read from a server that is gone")?;
    check(error.kind() == ErrorKind::Unavailable, format!("{error:?}"))?;
    check(error.to_string().contains("s3://lake"), format!("{error:?}"))?;
    missing_bucket().await?;
    Ok(Outcome::Passed(String::new()))
}

async fn missing_bucket() -> Done {
    let Some(server) = Server::start().await? else { return Ok(()) };
    let error = match open("s3://nowhere/wh", &impatient(server.port)).await {
        Ok(_) => return Err("a bucket that is not there was opened".into()),
        Err(error) => error,
    };
    check(error.code() == "BucketNotFound" && error.kind() == ErrorKind::NotFound, format!("{error:?}"))?;
    check(error.to_string().contains("nowhere"), format!("{error:?}"))?;
    let error = match open(&format!("s3://{BUCKET}/no/such/place"), &impatient(server.port)).await {
        Ok(_) => return Err("a warehouse that is not there was opened".into()),
        Err(error) => error,
    };
    check(error.kind() == ErrorKind::NotFound, format!("{error:?}"))?;
    check(error.to_string().contains("no/such/place"), format!("{error:?}"))
}

/// Names an URL would change on its way.
const NAMES: &[&str] =
    &["a+b", "50%", "a%2Fb", "x#y", "x#1", "q?x=1&y", "a b", "订单 😀", "it's", "a;b", "~tilde", "a=b"];

async fn listings() -> Result<Outcome, String> {
    let Some(server) = Server::start().await? else { return Ok(Outcome::Skipped(NO_SERVER.into())) };
    let lake = Lake::new()?;
    build(&lake, "t")?;
    for (i, name) in NAMES.iter().enumerate() {
        let spec = TableSpec::new(&[("id", "INT"), ("p", "STRING")]).partitioned_by(&["p"]);
        lake.table(name, &spec)?.append(&[json!({"id": i, "p": name})]).text()?;
    }
    let store = server.store()?;
    upload(&store, lake.path(), "wh").await?;
    // more snapshots than one answer of a listing holds
    const SNAPSHOTS: i64 = 1203;
    let text = std::fs::read_to_string(lake.path().join("d.db/t/snapshot/snapshot-2")).text()?;
    let mut snapshot: Value = serde_json::from_str(&text).text()?;
    for id in 3..=SNAPSHOTS {
        snapshot["id"] = id.into();
        let path = StorePath::parse(format!("wh/d.db/t/snapshot/snapshot-{id}")).text()?;
        store.put(&path, snapshot.to_string().into_bytes().into()).await.text()?;
    }
    let proxy = Proxy::start(server.port).await?;
    let s = open(&format!("s3://{BUCKET}/wh"), &options(proxy.port)).await.text()?;
    let read = rows(&s, "SELECT count(*), max(snapshot_id) FROM t$snapshots").await?;
    check(read == [format!("{SNAPSHOTS}|{SNAPSHOTS}")], format!("{read:?}"))?;
    for (i, name) in NAMES.iter().enumerate() {
        let quoted = name.replace('\'', "''");
        let read = rows(&s, &format!("SELECT id, p FROM \"{name}\" WHERE p = '{quoted}'")).await?;
        check(read == [format!("{i}|{name}")], format!("{name}: {read:?}"))?;
    }
    let listed = rows(&s, "SHOW TABLES").await?.join("\n");
    for name in NAMES {
        check(listed.contains(name), format!("{name} is not listed: {listed}"))?;
    }
    // a statement: cold, then with everything known but the newest snapshot
    let s = open(&format!("s3://{BUCKET}/wh"), &options(proxy.port)).await.text()?;
    let mut costs = Vec::new();
    for _ in 0..2 {
        let before = proxy.requests();
        let read = rows(&s, "SELECT count(v), sum(id) FROM t VERSION AS OF 2 WHERE v <> ''").await?;
        check(read == ["500|124750"], format!("{read:?}"))?;
        costs.push(proxy.requests() - before);
    }
    let &[cold, warm] = costs.as_slice() else { return Err("two reads".into()) };
    check(cold <= 24 && warm <= 12, format!("{cold} requests cold, {warm} warm"))?;
    Ok(Outcome::Passed(format!("{SNAPSHOTS} snapshots; a statement of three files: {cold} requests cold, {warm} warm")))
}
