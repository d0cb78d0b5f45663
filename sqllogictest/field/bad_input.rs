//! Bad input end to end: whatever is broken, the answer is an error that names the file, never a panic, never fewer rows.

use std::fs;
use std::path::{Path, PathBuf};

use lakepin::spec::CommitKind;
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{FileSpec, SchemaChange, TableSpec};
use lakepin::{Error, ErrorKind};
use serde_json::{Value, json};

use super::edit::{self, data_files, files_below};
use super::kit::{Done, Lake, OrText, ask, cases, check, config, expect, fails, refused, rows, says};
use crate::harness::{Outcome, Test};
use crate::random::Random;

const RIGHTS_TEST: &str = "bad_input::warehouse_without_rights";

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "bad_input",
        files torn_missing_and_alien_files_are_named,
        files changed_bytes_never_cost_rows,
        json wrong_types_are_named,
        json newer_versions_are_refused,
        names unknown_names_lead_to_the_nearest,
        names odd_names_are_read,
        warehouse wrong_places_are_told,
        hints alien_hints_are_ignored,
    );
    tests.push(Test::new_async(RIGHTS_TEST, without_rights));
}

/// A table with every kind of file: two schemas, three snapshots, deletion vectors, partitions.
fn whole(lake: &Lake) -> Result<PathBuf, String> {
    let columns = [("id", "INT NOT NULL"), ("v", "STRING"), ("p", "INT NOT NULL")];
    let spec = TableSpec::new(&columns)
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true");
    let mut t = lake.table("t", &spec)?;
    let row = |id: i64, v: &str| json!({"id": id, "v": v, "p": id % 2});
    let base: Vec<Value> = (0..20).map(|id| row(id, "old")).collect();
    t.commit().file(FileSpec::rows(&base).level(5)).kind(CommitKind::Compact).publish().text()?;
    t.alter(&SchemaChange::Add("w", "INT")).text()?;
    let files = t.live_files().text()?;
    let mut commit =
        t.commit().file(FileSpec::rows(&[row(0, "new"), row(1, "new")]).level(4)).kind(CommitKind::Compact);
    for entry in &files {
        commit = commit.delete_positions(&entry.file.file_name, &[0]);
    }
    commit.publish().text()?;
    t.commit().file(FileSpec::rows(&[row(100, "last")]).level(5)).kind(CommitKind::Compact).publish().text()?;
    t.tag("kept", 2).text()?;
    Ok(t.root().to_path_buf())
}

const ALL: &str = "SELECT * FROM t";
const RIGHT: usize = 21;

/// The files a plain read needs, hints and old snapshots left out.
fn needed(root: &Path) -> Result<Vec<PathBuf>, String> {
    let list_of_one = edit::snapshot(root, 1)?;
    let unneeded = [list_of_one.base_manifest_list, list_of_one.delta_manifest_list];
    Ok(files_below(root)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let in_tag = path.parent().is_some_and(|p| p.ends_with("tag"));
            let old = matches!(name.as_str(), "LATEST" | "EARLIEST" | "snapshot-1" | "snapshot-2");
            !in_tag && !old && !unneeded.contains(&name)
        })
        .collect())
}

/// A read with caches of its own.
async fn read(lake: &Lake, sql: &str) -> Result<Vec<String>, Error> {
    let warehouse = Warehouse::open(&lake.path().to_string_lossy(), &Default::default()).await?;
    let session = Session::new(&warehouse, SessionConfig { target_partitions: Some(1), ..config() }).await?;
    Ok(ask(&session, sql).await?.sorted())
}

fn named(error: &Error, path: &Path) -> Done {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    check(error.to_string().contains(&name), format!("{} is not named: {error:?}", path.display()))
}

async fn torn_missing_and_alien_files_are_named(lake: Lake) -> Done {
    let root = whole(&lake)?;
    let right = read(&lake, ALL).await.text()?;
    check(right.len() == RIGHT, format!("{} rows", right.len()))?;
    let needed = needed(&root)?;
    check(needed.len() >= 12, format!("only {} files are needed", needed.len()))?;
    for path in &needed {
        let whole = fs::read(path).text()?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        // schema 0 is needed for columns of old files only
        let torn = [
            ("missing", None),
            ("empty", Some(Vec::new())),
            ("cut in half", Some(whole[..whole.len() / 2].to_vec())),
            ("cut by a byte", Some(whole[..whole.len() - 1].to_vec())),
            ("alien", Some(b"<html><body>503 Slow Down</body></html>".to_vec())),
            ("zeros", Some(vec![0; whole.len()])),
            ("JSON of another kind", Some(b"[1, 2, 3]".to_vec())),
        ];
        for (how, bytes) in torn {
            match &bytes {
                Some(bytes) => fs::write(path, bytes).text()?,
                None => fs::remove_file(path).text()?,
            }
            let outcome = read(&lake, ALL).await;
            fs::write(path, &whole).text()?;
            match outcome {
                Err(error) => {
                    let kind =
                        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Unsupported);
                    check(kind, format!("{name} {how}: {error:?}"))?;
                    named(&error, path).map_err(|m| format!("{name} {how}: {m}"))?;
                }
                // the newest snapshot is gone and the one before is the newest: as expiry and rollback leave it
                Ok(rows) if name == "snapshot-3" && how == "missing" => {
                    check(rows.len() == RIGHT - 1, format!("{name} {how}: {} rows", rows.len()))?;
                }
                Ok(rows) => check(rows == right, format!("{name} {how}: {} rows of {RIGHT}", rows.len()))?,
            }
        }
    }
    check(read(&lake, ALL).await.text()? == right, "whole again")?;
    // the schema the newest snapshot was written with is gone: an older one is not taken for it
    let schema = root.join("schema/schema-1");
    let bytes = fs::read(&schema).text()?;
    fs::remove_file(&schema).text()?;
    for sql in [ALL, "SELECT count(*) FROM t", "DESCRIBE t", "SHOW CREATE TABLE t", "SELECT * FROM t VERSION AS OF 3"] {
        let error = read(&lake, sql).await.err().ok_or_else(|| format!("{sql}: schema 0 was taken for schema 1"))?;
        says(&error, ErrorKind::Corrupt, &["schema-1", "schemas 0"])?;
    }
    fs::write(&schema, bytes).text()?;
    // tags are read as strictly
    let tag = root.join("tag/tag-kept");
    for text in ["", "{", "[]", "{\"version\": 3}"] {
        fs::write(&tag, text).text()?;
        let error = read(&lake, "SELECT * FROM t VERSION AS OF 'kept'").await.err().ok_or("a broken tag was read")?;
        says(&error, ErrorKind::Corrupt, &["tag-kept"])?;
    }
    Ok(())
}

async fn changed_bytes_never_cost_rows(lake: Lake) -> Done {
    let root = whole(&lake)?;
    let right = read(&lake, ALL).await.text()?;
    let mut random = Random::new(7);
    let rounds = if super::kit::full_scale() { 60 } else { 6 };
    let mut caught = 0;
    for path in needed(&root)? {
        let whole = fs::read(&path).text()?;
        let is_data = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("data-"));
        for _ in 0..rounds {
            let mut bytes = whole.clone();
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
            fs::write(&path, &bytes).text()?;
            let outcome = read(&lake, ALL).await;
            fs::write(&path, &whole).text()?;
            match outcome {
                Err(_) => caught += 1,
                // a changed value in a data file or a changed text nobody can notice; rows must not be lost
                Ok(rows) => {
                    let name = path.display();
                    let metadata_only = !is_data && rows.len() != right.len();
                    // a bit in a bucket number, a file name or a position can say something else that is valid, but a
                    // count that shrinks silently is the worst fault
                    check(
                        !metadata_only || rows.len() >= right.len(),
                        format!("{name}: bit changed at {at}: {} rows of {RIGHT}", rows.len()),
                    )?;
                    check(!is_data || rows.len() == right.len(), format!("{name}: bit at {at}: {} rows", rows.len()))?;
                }
            }
        }
    }
    check(caught > 0, "no change was caught")
}

async fn wrong_types_are_named(lake: Lake) -> Done {
    let root = whole(&lake)?;
    let snapshot = edit::snapshot_path(&root, 3);
    let schema = root.join("schema/schema-1");
    let changes: &[(&Path, &str, Value)] = &[
        (&snapshot, "id", json!("three")),
        (&snapshot, "schemaId", json!("x")),
        (&snapshot, "baseManifestList", json!(7)),
        (&snapshot, "deltaManifestList", json!(null)),
        (&snapshot, "deltaManifestList", json!({})),
        (&snapshot, "commitKind", json!("MAGIC")),
        (&snapshot, "timeMillis", json!("now")),
        (&snapshot, "indexManifest", json!([])),
        (&snapshot, "version", json!("3")),
        (&schema, "fields", json!({})),
        (&schema, "fields", json!([1])),
        (&schema, "fields", json!([{"id": 0, "name": "id", "type": "MAGIC"}])),
        (&schema, "fields", json!([{"id": 0, "name": "id", "type": "INT("}])),
        (&schema, "fields", json!([{"id": "0", "name": "id", "type": "INT"}])),
        (&schema, "fields", json!([{"id": 0, "name": 5, "type": "INT"}])),
        (&schema, "primaryKeys", json!("id")),
        (&schema, "primaryKeys", json!(["nobody"])),
        (&schema, "partitionKeys", json!(["nobody"])),
        (&schema, "options", json!([])),
        (&schema, "options", json!({"bucket": "many"})),
        (&schema, "options", json!({"bucket": "1", "merge-engine": "magic"})),
        (&schema, "id", json!("x")),
    ];
    for (path, member, value) in changes {
        let whole = fs::read(path).text()?;
        edit::json(path, |document| document[*member] = value.clone())?;
        let outcome = read(&lake, ALL).await;
        fs::write(path, &whole).text()?;
        let what = format!("{} {member} = {value}", path.display());
        let error = outcome.err().ok_or_else(|| format!("{what}: read as if nothing were wrong"))?;
        let kind = matches!(
            error.kind(),
            ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Unsupported | ErrorKind::Invalid
        );
        check(kind, format!("{what}: {error:?}"))?;
        let text = error.to_string();
        let named = text.contains("snapshot-3") || text.contains("schema-1") || text.contains("schema-99");
        let optional = *member == "options" && text.contains("d.t");
        check(named || optional, format!("{what}: the file is not named: {error:?}"))?;
    }
    // the schema a snapshot names is needed when that snapshot is asked for
    let whole = fs::read(&snapshot).text()?;
    edit::json(&snapshot, |document| document["schemaId"] = 99.into())?;
    let outcome = read(&lake, "SELECT * FROM t VERSION AS OF 3").await;
    fs::write(&snapshot, &whole).text()?;
    says(&outcome.err().ok_or("schema 99 was guessed at")?, ErrorKind::Corrupt, &["schema-99", "schemas 0, 1"])?;
    // deep nesting ends in words, not in a stack overflow
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_type = format!("{}INT{}", "ARRAY<".repeat(20_000), ">".repeat(20_000));
    for path in [&snapshot, &schema] {
        let whole = fs::read(path).text()?;
        fs::write(path, &deep).text()?;
        let outcome = read(&lake, ALL).await;
        fs::write(path, &whole).text()?;
        named(&outcome.err().ok_or("deep nesting was read")?, path)?;
    }
    let whole = fs::read(&schema).text()?;
    edit::json(&schema, |document| document["fields"][1]["type"] = deep_type.into())?;
    let outcome = read(&lake, ALL).await;
    fs::write(&schema, &whole).text()?;
    named(&outcome.err().ok_or("a deep type was read")?, &schema)
}

async fn newer_versions_are_refused(lake: Lake) -> Done {
    let root = whole(&lake)?;
    for (path, version) in [(edit::snapshot_path(&root, 3), 4), (root.join("schema/schema-1"), 4)] {
        let whole = fs::read(&path).text()?;
        edit::json(&path, |document| document["version"] = version.into())?;
        let outcome = read(&lake, ALL).await;
        fs::write(&path, &whole).text()?;
        let error = outcome.err().ok_or_else(|| format!("{} of version {version} was guessed at", path.display()))?;
        says(&error, ErrorKind::Unsupported, &["version", "4", "3"])?;
        named(&error, &path)?;
    }
    // manifests and lists say their version in every record
    let mut refused = std::collections::BTreeSet::new();
    let lists: Vec<PathBuf> = fs::read_dir(root.join("manifest")).text()?.flatten().map(|e| e.path()).collect();
    let snapshot = edit::snapshot(&root, 3)?;
    for path in lists {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let is_list = name.starts_with("manifest-list");
        if is_list && name != snapshot.base_manifest_list && name != snapshot.delta_manifest_list {
            continue;
        }
        // of these only the newest is read
        if name.starts_with("index-manifest") && Some(&name) != snapshot.index_manifest.as_ref() {
            continue;
        }
        let whole = fs::read(&path).text()?;
        let Some(newer) = with_version(&whole) else { continue };
        fs::write(&path, newer).text()?;
        let outcome = read(&lake, ALL).await;
        fs::write(&path, &whole).text()?;
        let error = outcome.err().ok_or_else(|| format!("{name} of a newer version was guessed at"))?;
        check(error.kind() == ErrorKind::Unsupported && error.hint().is_some(), format!("{name}: {error:?}"))?;
        named(&error, &path)?;
        refused.insert(name.split('-').next().unwrap_or_default().to_string() + if is_list { " list" } else { "" });
    }
    let kinds = ["index", "manifest", "manifest list"];
    check(refused.iter().eq(kinds), format!("not every kind of file was tried: {refused:?}"))?;
    // what only some statements need
    let tag = root.join("tag/tag-kept");
    edit::json(&tag, |document| document["version"] = 4.into())?;
    let error = read(&lake, "SELECT * FROM t VERSION AS OF 'kept'").await.err().ok_or("a newer tag was guessed at")?;
    says(&error, ErrorKind::Unsupported, &["version", "4", "tag-kept"])?;
    let vectors = files_below(&root.join("index"));
    let wholes = vectors.iter().map(fs::read).collect::<Result<Vec<_>, _>>().text()?;
    check(!vectors.is_empty(), "no vectors")?;
    for (path, whole) in vectors.iter().zip(&wholes) {
        let mut newer = whole.clone();
        newer[0] = 2;
        fs::write(path, newer).text()?;
    }
    let error = read(&lake, ALL).await.err().ok_or("vectors of a newer version were guessed at")?;
    says(&error, error.kind(), &["/index/index-", "version"])?;
    Ok(())
}

/// An Avro file again, with version 3 in its records.
fn with_version(bytes: &[u8]) -> Option<Vec<u8>> {
    use apache_avro::types::Value as Avro;
    let reader = apache_avro::Reader::new(bytes).ok()?;
    let schema = reader.writer_schema().clone();
    let mut writer = apache_avro::Writer::new(&schema, Vec::new()).ok()?;
    let mut changed = false;
    for record in reader {
        let mut record = record.ok()?;
        if let Avro::Record(fields) = &mut record {
            for (name, value) in fields.iter_mut().filter(|(name, _)| name == "_VERSION") {
                let _ = name;
                *value = Avro::Int(3);
                changed = true;
            }
        }
        writer.append_value(record).ok()?;
    }
    changed.then(|| writer.into_inner().ok()).flatten()
}

async fn unknown_names_lead_to_the_nearest(lake: Lake) -> Done {
    for name in ["orders", "order_items", "payments"] {
        lake.table(name, &TableSpec::new(&[("id", "INT"), ("amount", "INT")]))?.append(&[json!({"id": 1})]).text()?;
    }
    let s = lake.session().await?;
    for (sql, code, near) in [
        ("SELECT * FROM ordrs", "TableNotFound", "orders"),
        ("SELECT * FROM d.paymets", "TableNotFound", "payments"),
        ("SELECT * FROM dd.orders", "DatabaseNotFound", "d"),
        ("SELECT * FROM paimom.d.orders", "CatalogNotFound", "paimon"),
        ("USE dd", "DatabaseNotFound", "d"),
        ("SELECT * FROM orders$snapshot", "", "snapshots"),
        ("SELECT * FROM orders$branch_x", "", "x"),
        ("SELECT amuont FROM orders", "ColumnNotFound", "amount"),
        ("DESCRIBE ordrs", "TableNotFound", "orders"),
        ("SELECT * FROM \"ordrs@v1\"", "TableNotFound", "orders"),
        ("SELECT * FROM paimon_dif('d.orders', from => 1, to => 1)", "FunctionNotFound", "paimon_diff"),
        ("SELECT * FROM paimon_diff('d.ordrs', from => 1, to => 1)", "TableNotFound", "orders"),
    ] {
        let error = fails(&s, sql).await?;
        let kind = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid);
        check(kind, format!("{sql}: {error:?}"))?;
        check(code.is_empty() || error.code() == code, format!("{sql}: {error:?}"))?;
        check(error.to_string().contains(near), format!("{sql} does not lead to {near}: {error:?}"))?;
    }
    // the session goes on
    expect(&s, "SELECT id FROM orders", &["1"]).await
}

async fn odd_names_are_read(lake: Lake) -> Done {
    let names = [
        "50%",
        "a b",
        "订单",
        "a%2Fb",
        "x#y",
        "q?",
        "Größe",
        "UPPER",
        "semi;colon",
        "tab$le",
        "at@home",
        "per%cent 中 文",
    ];
    for name in names {
        let spec = TableSpec::new(&[("col 1", "INT"), ("列%", "STRING")]);
        let mut t = lake.table(name, &spec)?;
        t.append(&[json!({"col 1": 1, "列%": "a"})]).text()?;
        t.append(&[json!({"col 1": 2, "列%": "b"})]).text()?;
        t.tag("标签 1", 1).text()?;
    }
    let s = lake.session().await?;
    for name in names {
        if name.contains(['$', '@']) {
            // marks of ours in names: an error in words, or the rows, never another table
            match rows(&s, &format!("SELECT \"col 1\" FROM \"{name}\"")).await {
                Ok(read) => check(read == ["1", "2"], format!("{name}: {read:?}"))?,
                Err(message) => {
                    check(message.contains(name) || message.contains("tab") || message.contains("at"), message)?
                }
            }
            continue;
        }
        expect(&s, &format!("SELECT \"col 1\", \"列%\" FROM \"{name}\""), &["1|a", "2|b"]).await?;
        expect(&s, &format!("SELECT \"col 1\" FROM \"{name}\" VERSION AS OF 1"), &["1"]).await?;
        expect(&s, &format!("SELECT \"col 1\" FROM \"{name}\" VERSION AS OF '标签 1'"), &["1"]).await?;
        expect(&s, &format!("SELECT count(*) FROM \"{name}\" WHERE \"列%\" = 'b'"), &["1"]).await?;
        expect(&s, &format!("SELECT count(*) FROM \"{name}$snapshots\""), &["2"]).await?;
    }
    let listed = rows(&s, "SHOW TABLES").await?.join("\n");
    for name in names {
        check(listed.contains(name), format!("{name} is not listed: {listed}"))?;
    }
    for name in ["a/b", "..", "../d.db/x", "", "."] {
        let error = fails(&s, &format!("SELECT * FROM \"{name}\"")).await?;
        check(error.kind() != ErrorKind::Internal, format!("{name:?}: {error:?}"))?;
    }
    Ok(())
}

async fn open(path: &str) -> Result<Session, Error> {
    let warehouse = Warehouse::open(path, &Default::default()).await?;
    Session::new(&warehouse, SessionConfig::default()).await
}

async fn wrong_places_are_told(lake: Lake) -> Done {
    let root = whole(&lake)?;
    let parent = lake.path().to_string_lossy().into_owned();
    fs::write(lake.path().join("a file"), "text").text()?;
    let table = root.to_string_lossy().into_owned();
    for (path, kind, words) in [
        (format!("{parent}/nowhere"), ErrorKind::NotFound, vec!["nowhere"]),
        (format!("{parent}/no/where/at/all"), ErrorKind::NotFound, vec!["no/where/at/all"]),
        (format!("{parent}/a file"), ErrorKind::Invalid, vec!["a file"]),
        (table, ErrorKind::Invalid, vec!["table", &parent]),
        (format!("{parent}/d.db"), ErrorKind::Invalid, vec!["database", &parent]),
        (String::new(), ErrorKind::Invalid, vec![]),
        ("ftp://host/x".into(), ErrorKind::Unsupported, vec!["ftp"]),
    ] {
        let error = match open(&path).await {
            Ok(_) => return Err(format!("{path:?} was opened")),
            Err(error) => error,
        };
        let expected = [kind, ErrorKind::Invalid, ErrorKind::NotFound];
        check(expected.contains(&error.kind()), format!("{path:?}: {error:?}"))?;
        for word in words {
            check(error.to_string().contains(word), format!("{path:?} does not say {word:?}: {error:?}"))?;
        }
    }
    // an empty folder is an empty warehouse
    let empty = tempfile::tempdir().text()?;
    let s = open(&empty.path().to_string_lossy()).await.text()?;
    check(rows(&s, "SHOW DATABASES").await?.is_empty(), "an empty warehouse has databases")?;
    refused(&s, "SELECT * FROM t", ErrorKind::NotFound, &["default"]).await?;
    // a folder that is no table is not listed as one
    fs::create_dir_all(lake.path().join("d.db/stray/bucket-0")).text()?;
    let s = lake.session().await?;
    let tables = rows(&s, "SHOW TABLES").await?.join("\n");
    check(tables.contains("|t|") && !tables.contains("stray"), tables)?;
    refused(&s, "SELECT * FROM stray", ErrorKind::NotFound, &["stray"]).await?;
    Ok(())
}

async fn alien_hints_are_ignored(lake: Lake) -> Done {
    let root = whole(&lake)?;
    let right = read(&lake, ALL).await.text()?;
    for hint in ["LATEST", "EARLIEST"] {
        let path = root.join("snapshot").join(hint);
        for text in ["", "x", "-5", "1e9", "999", "\u{0}\u{0}", "3.0", "{\"id\": 1}", &"9".repeat(100_000)] {
            fs::write(&path, text).text()?;
            let rows = read(&lake, ALL).await.map_err(|e| format!("{hint} {:?}: {e:?}", text.get(..20)))?;
            check(rows == right, format!("{hint} {:?}: {} rows", text.get(..20), rows.len()))?;
        }
        fs::remove_file(&path).text()?;
        fs::create_dir(&path).text()?;
        check(read(&lake, ALL).await.text()? == right, format!("{hint} is a folder"))?;
        fs::remove_dir(&path).text()?;
    }
    Ok(())
}

#[cfg(unix)]
async fn without_rights() -> Result<Outcome, String> {
    use std::os::unix::fs::PermissionsExt;
    let lake = Lake::new()?;
    let root = whole(&lake)?;
    let right = read(&lake, ALL).await.text()?;
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).text();
    let data = data_files(&root)[0].clone();
    set(&data, 0)?;
    if fs::read(&data).is_ok() {
        return super::nobody::run_again(RIGHTS_TEST);
    }
    set(&data, 0o644)?;
    let mut places = needed(&root)?;
    let files = places.len();
    places.extend(folders_below(&root));
    places.extend([root.clone(), lake.path().join("d.db"), lake.path().to_path_buf()]);
    for (at, path) in places.iter().enumerate() {
        let mode = if at < files { 0o644 } else { 0o755 };
        set(path, 0)?;
        let outcome = read(&lake, ALL).await;
        set(path, mode)?;
        let shown = path.strip_prefix(lake.path()).unwrap_or(path).display().to_string();
        match outcome {
            // old schemas and tags are not needed for every read
            Ok(rows) => check(rows == right, format!("{shown}: {} rows, nothing said", rows.len()))?,
            Err(error) => {
                check(error.code() == "PermissionDenied", format!("{shown}: {error:?}"))?;
                named(&error, path)?;
                check(error.to_string().contains("rights"), format!("{shown}: no way out: {error:?}"))?;
            }
        }
    }
    // a table nobody may look into is listed all the same, and the others are read
    lake.table("open", &TableSpec::new(&[("i", "INT")]))?.append(&[json!({"i": 1})]).text()?;
    set(&root, 0)?;
    let s = lake.session().await?;
    let listed = rows(&s, "SHOW TABLES").await;
    let others = rows(&s, "SELECT i FROM open").await;
    set(&root, 0o755)?;
    let listed = listed?.join("\n");
    check(listed.contains("|t|") && listed.contains("|open|"), format!("SHOW TABLES: {listed}"))?;
    check(others? == ["1"], "the open table")?;
    Ok(Outcome::Passed(format!("{} files and folders", places.len())))
}

/// The folders below one.
#[cfg(unix)]
fn folders_below(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        files_below(dir).iter().filter_map(|file| file.parent()).filter(|f| *f != dir).map(Path::to_path_buf).collect();
    found.dedup();
    found
}

#[cfg(not(unix))]
async fn without_rights() -> Result<Outcome, String> {
    Ok(Outcome::Skipped("this system has no file modes to take".into()))
}
