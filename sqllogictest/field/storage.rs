//! Storage that lies, loses and changes under a reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use lakepin::ErrorKind;
use lakepin::catalog::FilesystemCatalog;
use lakepin::object_store::local::LocalFileSystem;
use lakepin::spec::CommitKind;
use lakepin::spec::manifest::{decode_manifest, decode_manifest_list, encode_manifest};
use lakepin::sql::{Session, Warehouse};
use lakepin::storage::Storage;
use lakepin::testing::builder::{FileSpec, TableBuilder, TableSpec};
use serde_json::{Value, json};

use super::edit::{self, data_files, files_below};
use super::kit::{Done, Lake, OrText, ask, cases, check, config, expect, named, refused, says};
use super::vanishing::Vanishing;
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B077 no_option_hides_lost_files,
        B082 hints_are_only_hints,
        B084 a_snapshot_that_expires_under_the_reader,
        B084 no_part_of_a_result_is_left,
    );
    named!(tests, "storage", a_manifest_of_one_name_and_size_in_another_table_is_another);
}

fn append_table(lake: &Lake, name: &str, option: Option<(&str, &str)>) -> Result<TableBuilder, String> {
    let mut spec = TableSpec::new(&[("i", "INT")]);
    if let Some((key, value)) = option {
        spec = spec.option(key, value);
    }
    let mut t = lake.table(name, &spec)?;
    for i in 1..=3 {
        t.append(&[json!({"i": i})]).text()?;
    }
    Ok(t)
}

async fn no_option_hides_lost_files(lake: Lake) -> Done {
    for (name, option) in [("lost", "scan.ignore-lost-files"), ("corrupt", "scan.ignore-corrupt-files")] {
        let t = append_table(&lake, name, Some((option, "true")))?;
        let s = lake.session().await?;
        expect(&s, &format!("SELECT count(i) FROM {name} WHERE i > 0"), &["3"]).await?;
        let lost = data_files(t.root())[1].clone();
        if name == "lost" {
            fs::remove_file(&lost).text()?;
        } else {
            let bytes = fs::read(&lost).text()?;
            fs::write(&lost, vec![b'x'; bytes.len()]).text()?;
        }
        let file = lost.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        for s in [s, lake.session().await?] {
            for sql in [
                format!("SELECT * FROM {name}"),
                format!("SELECT count(*) FROM {name} WHERE i > 0"),
                format!("SELECT sum(i) FROM {name}"),
                format!("SELECT i FROM {name} /*+ OPTIONS('{option}'='true') */ ORDER BY i"),
            ] {
                refused(&s, &sql, ErrorKind::Corrupt, &[&file]).await?;
            }
            // what metadata answers is what was committed, not what the option would leave of it
            expect(&s, &format!("SELECT count(*) FROM {name}"), &["3"]).await?;
        }
    }
    Ok(())
}

async fn hints_are_only_hints(lake: Lake) -> Done {
    let mut t = append_table(&lake, "t", None)?;
    for i in 4..=5 {
        t.append(&[json!({"i": i})]).text()?;
    }
    let dir = t.root().join("snapshot");
    let latest = |text: Option<&[u8]>| match text {
        Some(text) => fs::write(dir.join("LATEST"), text).text(),
        None => fs::remove_file(dir.join("LATEST")).text(),
    };
    let hints: [Option<&[u8]>; 14] = [
        Some(b"3"),
        Some(b""),
        Some(b"abc"),
        Some(b"9"),
        Some(b"99999999999999999999"),
        Some(b"-1"),
        Some(b"0"),
        Some(b" 3 \n"),
        Some(b"5"),
        Some(b"5\n"),
        Some(b"\xff\xfe"),
        Some(b"4"),
        Some(b"1"),
        None,
    ];
    for hint in hints {
        latest(hint)?;
        let s = lake.session().await?;
        let shown = hint.map(String::from_utf8_lossy);
        let answer = ask(&s, "SELECT count(i) FROM t").await.map_err(|e| format!("hint {shown:?}: {e:?}"))?;
        check(answer.rows() == ["5"], format!("hint {shown:?}: {:?}", answer.rows()))?;
        check(answer.pins[0].snapshot_id == Some(5), format!("hint {shown:?} leads to {:?}", answer.pins[0]))?;
        if hint == Some(b"9") {
            check(answer.notice_says(&["LATEST", "9"]), format!("a hint ahead is not told: {:?}", answer.notices))?;
        }
    }
    t.expire(1).text()?;
    for hint in ["1", "", "x", "4"] {
        fs::write(dir.join("EARLIEST"), hint).text()?;
        let s = lake.session().await?;
        expect(&s, "SELECT min(snapshot_id), max(snapshot_id), count(*) FROM t$snapshots", &["2|5|4"]).await?;
        expect(&s, "SELECT count(i) FROM t VERSION AS OF 2", &["2"]).await?;
        refused(&s, "SELECT * FROM t VERSION AS OF 1", ErrorKind::NotFound, &["expired", "2", "5"]).await?;
        refused(&s, "SELECT * FROM t TIMESTAMP AS OF '2026-04-16 01:00:30'", ErrorKind::NotFound, &["kept is 2"])
            .await?;
    }
    // a stray file is no snapshot
    fs::write(dir.join("snapshot-abc"), "x").text()?;
    fs::write(dir.join(".snapshot-6.tmp"), "x").text()?;
    expect(&lake.session().await?, "SELECT count(i) FROM t", &["5"]).await
}

const FILES: i64 = 60;

/// Snapshot 1 with rows in many files, snapshot 2 without any of them.
fn two_snapshots(lake: &Lake, name: &str, spec: &TableSpec) -> Result<TableBuilder, String> {
    let mut t = lake.table(name, spec)?;
    let mut commit = t.commit();
    for file in 0..FILES {
        let row = |id: i64, v: i64| json!({"id": id, "v": v, "pad": "x".repeat(1000)});
        let rows: Vec<Value> = (4 * file..4 * file + 4).map(|id| row(id, 1)).collect();
        // every second file has a newer one on it, so that some is merged and some is not
        commit = commit.file(FileSpec::rows(&rows));
        if file % 2 == 0 {
            commit = commit.file(FileSpec::rows(&[row(4 * file + 1, 2)]));
        }
    }
    commit.publish().text()?;
    let after = FileSpec::rows(&[json!({"id": 1, "v": 9})]);
    t.commit().remove_all().file(after).kind(CommitKind::Overwrite).publish().text()?;
    Ok(t)
}

fn spec_of(name: &str) -> TableSpec {
    let columns = |id: &'static str| [("id", id), ("v", "INT"), ("pad", "STRING")];
    match name {
        "k" => TableSpec::new(&columns("INT NOT NULL")).primary_key(&["id"]).option("bucket", "1"),
        _ => TableSpec::new(&columns("INT")),
    }
}

/// Data files of snapshot 1.
fn old_files(t: &TableBuilder) -> Result<Vec<PathBuf>, String> {
    let newest = t.live_files().text()?[0].file.file_name.clone();
    let mut files = data_files(t.root());
    files.retain(|path| !path.to_string_lossy().contains(&newest));
    check(files.len() as i64 == FILES + FILES / 2, format!("{} files", files.len()))?;
    Ok(files)
}

async fn a_snapshot_that_expires_under_the_reader(lake: Lake) -> Done {
    for name in ["t", "k"] {
        let t = two_snapshots(&lake, name, &spec_of(name))?;
        let old = old_files(&t)?;
        // planned and begun; of 90 files some have been read when the store loses them all
        let store = Arc::new(Vanishing::new(LocalFileSystem::new()));
        let s = through(lake.path(), Arc::clone(&store)).await?;
        let sql = format!("SELECT id, v FROM {name} VERSION AS OF 1");
        let whole = if name == "k" { 4 * FILES } else { 4 * FILES + FILES / 2 };
        check(ask(&s, &sql).await.text()?.count() as i64 == whole, format!("{name}: {whole} rows"))?;
        let s = through(lake.path(), Arc::clone(&store)).await?;
        store.lose_after(&format!("d.db/{name}/bucket-"), 20);
        let mut stream = s.run_one(&sql).await.text()?.stream;
        t.expire(1).text()?;
        let mut rows = 0;
        let error = loop {
            match stream.next().await {
                Some(Ok(batch)) => rows += batch.num_rows() as i64,
                Some(Err(error)) => break lakepin::Error::from_datafusion(error),
                None => return Err(format!("{name}: {rows} of {whole} rows of a snapshot that is gone, and no error")),
            }
        };
        check(rows < whole, format!("{name}: {rows} of {whole} rows, and then an error"))?;
        says(&error, ErrorKind::NotFound, &["snapshot 1", "expired during the read", "earliest now 2", name])?;
        check(error.code() == "SnapshotExpired", format!("{error:?}"))?;
        // the next statement is told before it plans
        old.iter().try_for_each(|file| fs::remove_file(file).text())?;
        let s = lake.session().await?;
        refused(&s, &sql, ErrorKind::NotFound, &["snapshot 1", "expired", "2"]).await?;
        expect(&s, &format!("SELECT id, v FROM {name}"), &["1|9"]).await?;
        // a session's pin notices, too
        let fresh = two_snapshots(&lake, &format!("{name}2"), &spec_of(name))?;
        ask(&s, &format!("PIN TABLE {name}2 AT (VERSION => 1)")).await.text()?;
        fresh.expire(1).text()?;
        let error =
            refused(&s, &format!("SELECT * FROM {name}2"), ErrorKind::NotFound, &["snapshot 1", "expired"]).await?;
        check(error.code() == "SnapshotExpired", format!("{error:?}"))?;
    }
    listing_skips_what_vanishes(&lake).await
}

/// The program, stopped while it writes: its files and its snapshot are gone when it goes on.
async fn no_part_of_a_result_is_left(lake: Lake) -> Done {
    for name in ["t", "k"] {
        let t = two_snapshots(&lake, name, &spec_of(name))?;
        let old = old_files(&t)?;
        // not in the warehouse, where nothing is written
        let out = tempfile::tempdir().text()?;
        let file = out.path().join(format!("{name}.csv"));
        // some milliseconds a row, and each row as soon as there is one
        let sql = format!(
            "SET datafusion.execution.batch_size = 1; SET datafusion.execution.target_partitions = 1; \
             SELECT id, repeat(pad, 9) AS wide, sha512(repeat(pad, 200)) AS slow FROM {name} VERSION AS OF 1"
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_lakepin"))
            .args(["-q", "-w", &lake.path().to_string_lossy(), "-d", "d", "--no-rc", "--format", "csv"])
            .args(["-o", &file.to_string_lossy(), "-c", &sql])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .text()?;
        let signal = |name: &str, pid: u32| {
            let sent = Command::new("kill").args([name, &pid.to_string()]).status().text()?;
            check(sent.success(), format!("kill {name}"))
        };
        let begun = || {
            let files = fs::read_dir(out.path()).into_iter().flatten().flatten();
            files.filter_map(|f| f.metadata().ok()).any(|m| m.len() > 0)
        };
        while !begun() {
            if let Some(status) = child.try_wait().text()? {
                return Err(format!("it ended before it wrote: {status}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        signal("-STOP", child.id())?;
        check(!file.exists(), "it was done before it could be stopped")?;
        old.iter().try_for_each(|file| fs::remove_file(file).text())?;
        t.expire(1).text()?;
        signal("-CONT", child.id())?;
        let output = child.wait_with_output().text()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        check(output.status.code() == Some(4), format!("{}: {said}", output.status))?;
        let words =
            ["error[SnapshotExpired]", "snapshot 1 expired during the read (earliest now 2)", "was not written"];
        check(words.iter().all(|word| said.contains(word)), said)?;
        let left: Vec<_> = fs::read_dir(out.path()).text()?.flatten().map(|f| f.file_name()).collect();
        check(left.is_empty(), format!("{left:?} is left"))?;
    }
    Ok(())
}

/// A session over the same files through a store that loses some between listing and reading.
async fn through(path: &Path, store: Arc<Vanishing<LocalFileSystem>>) -> Result<Session, String> {
    let storage = Storage::from_object_store(store, "").text()?;
    let root = storage.location(&path.to_string_lossy()).text()?;
    let catalog = FilesystemCatalog::open_in(storage, root).await.text()?;
    Session::new(&Warehouse::over("vanishing", Arc::new(catalog)), config()).await.text()
}

async fn listing_skips_what_vanishes(lake: &Lake) -> Done {
    let t = append_table(lake, "listed", None)?;
    t.tag("kept", 2).text()?;
    t.tag("going", 3).text()?;
    let store = Arc::new(Vanishing::new(LocalFileSystem::new()));
    store.lose("listed/snapshot/snapshot-1");
    store.lose("listed/tag/tag-going");
    let s = through(lake.path(), Arc::clone(&store)).await?;
    expect(&s, "SELECT snapshot_id FROM listed$snapshots", &["2", "3"]).await?;
    expect(&s, "SELECT tag_name FROM listed$tags", &["kept"]).await?;
    expect(&s, "SELECT count(i) FROM listed", &["3"]).await?;
    expect(&s, "SELECT count(i) FROM listed TIMESTAMP AS OF '2026-04-16 01:01:30'", &["2"]).await?;
    // a manifest that is listed nowhere and gone is an error, never an empty table
    store.lose("listed/manifest/manifest-list");
    let s = through(lake.path(), store).await?;
    refused(&s, "SELECT * FROM listed", ErrorKind::Corrupt, &["manifest-list"]).await?;
    Ok(())
}

async fn a_manifest_of_one_name_and_size_in_another_table_is_another(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("v", "INT")]);
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"v": 1})]).text()?;
    let mut source = lake.table("source", &spec)?;
    source.append(&[json!({"v": 2})]).text()?;
    let other = data_files(source.root()).pop().ok_or("no data file")?;
    let copy = t.root().with_file_name("t2");
    for file in files_below(t.root()) {
        let to = copy.join(file.strip_prefix(t.root()).text()?);
        fs::create_dir_all(to.parent().ok_or("no folder")?).text()?;
        fs::copy(&file, &to).text()?;
    }
    // the copy's manifest names another file, in as many bytes
    let list = &edit::snapshot(&copy, 1)?.delta_manifest_list;
    let path = copy.join("manifest").join(list);
    let name = decode_manifest_list(&fs::read(&path).text()?, list).text()?.remove(0).file_name;
    let path = copy.join("manifest").join(&name);
    let bytes = fs::read(&path).text()?;
    let mut entries = decode_manifest(&bytes, &name).text()?;
    let entry = entries.first_mut().ok_or("no entry")?;
    entry.file.file_size = fs::metadata(&other).text()?.len();
    let id = entry.file.file_name["data-".len()..].trim_end_matches("-0.parquet").to_string();
    let mut found = None;
    for turn in 1..id.len() {
        let file_name = format!("data-{}{}-0.parquet", &id[turn..], &id[..turn]);
        entries[0].file.file_name.clone_from(&file_name);
        let edited = encode_manifest(&entries).text()?;
        if edited.len() == bytes.len() {
            found = Some((file_name, edited));
            break;
        }
    }
    let (file_name, edited) = found.ok_or("no name makes a manifest of the same size")?;
    fs::copy(&other, copy.join("bucket-0").join(file_name)).text()?;
    fs::write(&path, edited).text()?;
    let s = lake.session().await?;
    for _ in 0..2 {
        expect(&s, "SELECT v FROM t", &["1"]).await?;
        expect(&s, "SELECT v FROM t2", &["2"]).await?;
        expect(&s, "SELECT t.v, t2.v FROM t, t2", &["1|2"]).await?;
    }
    Ok(())
}
