//! Counts that metadata tells of itself: a list, manifest or index manifest that holds less than is counted is named,
//! whatever the statement asks for; what a damaged entry says is blamed on the file that says it.

use std::fs;
use std::path::{Path, PathBuf};

use lakepin::spec::manifest::{decode_manifest_list, encode_manifest_list};
use lakepin::spec::{BinaryRow, CommitKind, ManifestFileMeta, Snapshot};
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{FileSpec, TableSpec};
use lakepin::{Error, ErrorKind};
use serde_json::json;

use super::edit;
use super::faults::copy;
use super::kit::{Done, Lake, OrText, ask, check, config, named, says};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    named!(
        tests,
        "counts_told",
        lists_cut_between_blocks_are_noticed_under_any_filter,
        cut_lists_of_changes_are_noticed,
        manifests_of_no_entries_are_not_trusted,
        vectors_that_are_not_listed_are_noticed,
        a_vector_of_no_rows_answers_no_count,
        damaged_entries_name_their_manifest,
        names_that_are_none_lead_to_who_holds_them,
    );
}

/// Rows with caches of their own.
async fn read(lake: &Lake, sql: &str) -> Result<Vec<String>, Error> {
    let warehouse = Warehouse::open(&lake.path().to_string_lossy(), &Default::default()).await?;
    let session = Session::new(&warehouse, SessionConfig { target_partitions: Some(1), ..config() }).await?;
    Ok(ask(&session, sql).await?.sorted())
}

async fn error_of(lake: &Lake, sql: &str) -> Result<Error, String> {
    match read(lake, sql).await {
        Ok(rows) => Err(format!("{sql}: nothing was noticed, {} rows: {:?}", rows.len(), rows.first())),
        Err(error) => Ok(error),
    }
}

fn newest(root: &Path) -> Result<Snapshot, String> {
    let ids = edit::files_below(&root.join("snapshot"))
        .into_iter()
        .filter_map(|file| file.file_name()?.to_string_lossy().strip_prefix("snapshot-")?.parse::<i64>().ok());
    edit::snapshot(root, ids.max().ok_or("no snapshot")?)
}

/// The first rows of an Avro file, each in a block of its own: as the whole file would be if it were cut there.
fn cut_after(bytes: &[u8], rows: usize) -> Result<Vec<u8>, String> {
    let reader = apache_avro::Reader::new(bytes).text()?;
    let schema = reader.writer_schema().clone();
    let mut writer = apache_avro::Writer::new(&schema, Vec::new()).text()?;
    for row in reader.take(rows) {
        writer.append_value(row.text()?).text()?;
        writer.flush().text()?;
    }
    writer.into_inner().text()
}

/// A table of the oldest writers, which do not tell how long their lists are; two days, many manifests.
fn old_table(lake: &Lake) -> Result<(PathBuf, Snapshot), String> {
    let root = copy(lake, "java-0.9", "pk_lsm")?;
    let snapshot = newest(&root)?;
    check(snapshot.base_manifest_list_size.is_none(), "a writer that tells sizes")?;
    Ok((root, snapshot))
}

const QUESTIONS: [&str; 6] = [
    "SELECT * FROM t",
    "SELECT * FROM t WHERE dt = '2024-01-01'",
    "SELECT count(*) FROM t WHERE dt = '2024-01-02'",
    "SELECT * FROM t WHERE dt = '2024-01-02' AND id = 50",
    "SELECT count(*), min(dt), max(dt) FROM t WHERE dt > '2024-01-01'",
    "SELECT * FROM t$audit_log WHERE dt = '2024-01-02'",
];

async fn lists_cut_between_blocks_are_noticed_under_any_filter(lake: Lake) -> Done {
    let (root, snapshot) = old_table(&lake)?;
    let list = root.join("manifest").join(&snapshot.base_manifest_list);
    let whole = fs::read(&list).text()?;
    let entries = decode_manifest_list(&whole, "list").text()?.len();
    check(entries > 10, format!("{entries} manifests"))?;
    let mut right = Vec::new();
    for sql in QUESTIONS {
        right.push(read(&lake, sql).await.text()?);
    }
    // a block that holds one row is all of a file that has one manifest: such a list cannot be told from a cut one
    for kept in [0, 2, 3, entries / 2, entries - 1, entries] {
        fs::write(&list, cut_after(&whole, kept)?).text()?;
        for (sql, right) in QUESTIONS.iter().zip(&right) {
            if kept == entries {
                check(read(&lake, sql).await.text()? == *right, format!("{sql}: other rows of a whole list"))?;
                continue;
            }
            let error = error_of(&lake, sql).await.map_err(|m| format!("cut after {kept} of {entries}: {m}"))?;
            says(&error, ErrorKind::Corrupt, &[&snapshot.base_manifest_list, "snapshot: 18", "restore"])?;
            check(error.code() == "ManifestIncomplete", format!("{error:?}"))?;
        }
    }
    Ok(())
}

async fn cut_lists_of_changes_are_noticed(lake: Lake) -> Done {
    let (root, _) = old_table(&lake)?;
    let whole_range = "SELECT count(*) FROM t /*+ OPTIONS('incremental-between'='0,18') */";
    read(&lake, whole_range).await.text()?;
    let mut broken = 0;
    for id in 1..=18 {
        let snapshot = edit::snapshot(&root, id)?;
        if snapshot.commit_kind != CommitKind::Append || snapshot.delta_record_count == Some(0) {
            continue;
        }
        let list = root.join("manifest").join(&snapshot.delta_manifest_list);
        let whole = fs::read(&list).text()?;
        fs::write(&list, cut_after(&whole, 0)?).text()?;
        for sql in [
            whole_range,
            &whole_range
                .replace("SELECT count(*) FROM t", "SELECT * FROM t")
                .replace("*/", "*/ WHERE dt = '2024-01-02'"),
        ] {
            let error = error_of(&lake, sql).await?;
            says(&error, ErrorKind::Corrupt, &[&snapshot.delta_manifest_list, &format!("snapshot: {id}")])?;
        }
        fs::write(&list, whole).text()?;
        broken += 1;
    }
    check(broken > 2, format!("only {broken} lists were cut"))
}

async fn manifests_of_no_entries_are_not_trusted(lake: Lake) -> Done {
    let (root, snapshot) = old_table(&lake)?;
    let list = root.join("manifest").join(&snapshot.base_manifest_list);
    let whole = fs::read(&list).text()?;
    let metas = decode_manifest_list(&whole, "list").text()?;
    let counts: [fn(&mut ManifestFileMeta); 2] =
        [|meta| (meta.num_added_files, meta.num_deleted_files) = (0, 0), |meta| meta.num_added_files = -1];
    for change in counts {
        for some in [true, false] {
            let mut metas = metas.clone();
            metas.iter_mut().skip(usize::from(some)).for_each(change);
            fs::write(&list, encode_manifest_list(&metas).text()?).text()?;
            for sql in QUESTIONS {
                let error = error_of(&lake, sql).await?;
                says(&error, ErrorKind::Corrupt, &["manifest-", "restore"])?;
            }
        }
    }
    Ok(())
}

async fn vectors_that_are_not_listed_are_noticed(lake: Lake) -> Done {
    let root = copy(&lake, "java-0.9", "pk_dv")?;
    let snapshot = newest(&root)?;
    let name = snapshot.index_manifest.clone().ok_or("no index manifest")?;
    let path = root.join("manifest").join(&name);
    let whole = fs::read(&path).text()?;
    let questions = ["SELECT * FROM t", "SELECT count(*) FROM t", "SELECT * FROM t WHERE id < 10"];
    for sql in questions {
        read(&lake, sql).await.text()?;
    }
    for how in ["one is not listed", "none is listed", "more are counted"] {
        edit::index_files(&root, snapshot.id.0, |index| match how {
            "one is not listed" => {
                index.deletion_vectors.iter_mut().for_each(|ranges| drop(ranges.pop()));
            }
            "none is listed" => index.deletion_vectors = None,
            _ => index.row_count += 1,
        })?;
        for sql in questions {
            let error = error_of(&lake, sql).await.map_err(|m| format!("{how}: {m}"))?;
            says(&error, ErrorKind::Corrupt, &[&name, "deletion vectors", "restore"])?;
        }
        fs::write(&path, &whole).text()?;
    }
    Ok(())
}

async fn a_vector_of_no_rows_answers_no_count(lake: Lake) -> Done {
    let root = copy(&lake, "python-2.1", "append_dv")?;
    let id = newest(&root)?.id.0;
    let counts = ["SELECT count(*) FROM t", "SELECT count(*), min(id) FROM t"];
    for sql in counts {
        read(&lake, sql).await.text()?;
    }
    edit::index_files(&root, id, |index| {
        index.deletion_vectors.iter_mut().flatten().for_each(|range| range.cardinality = Some(0));
    })?;
    for sql in counts {
        says(&error_of(&lake, sql).await?, ErrorKind::Corrupt, &["index-"])?;
    }
    edit::index_files(&root, id, |index| {
        index.deletion_vectors.iter_mut().flatten().for_each(|range| range.cardinality = Some(-3));
    })?;
    for sql in counts {
        says(&error_of(&lake, sql).await?, ErrorKind::Corrupt, &["index-manifest-", "restore"])?;
    }
    Ok(())
}

async fn damaged_entries_name_their_manifest(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT"), ("p", "STRING NOT NULL")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "2");
    type Change = fn(&mut lakepin::spec::ManifestEntry);
    let changes: [(&str, Change); 7] = [
        ("a key of no fields", |entry| entry.file.min_key = BinaryRow::empty()),
        ("a cut key", |entry| entry.file.max_key = BinaryRow(vec![0, 0, 0, 1, 0].into())),
        ("a partition of no fields", |entry| entry.partition = BinaryRow::empty()),
        ("a cut partition", |entry| entry.partition = BinaryRow(vec![0, 0, 0, 1, 0].into())),
        ("a bucket of no kind", |entry| entry.bucket.0 = -7),
        ("a negative level", |entry| entry.file.level = -1),
        ("a name outside", |entry| entry.file.file_name = "../../x.parquet".into()),
    ];
    for (number, (how, change)) in changes.into_iter().enumerate() {
        let name = format!("t{number}");
        let mut table = lake.table(&name, &spec)?;
        table.commit().file(FileSpec::rows(&[json!({"id": 1, "v": 1, "p": "a"})])).publish().text()?;
        edit::entries(table.root(), 1, change)?;
        for sql in [format!("SELECT * FROM {name}"), format!("SELECT * FROM {name} WHERE p = 'a' AND id = 1")] {
            let error = error_of(&lake, &sql).await.map_err(|m| format!("{how}: {m}"))?;
            says(&error, ErrorKind::Corrupt, &["/manifest/manifest-", "restore", &format!("d.{name}")])
                .map_err(|m| format!("{how}: {m}"))?;
        }
    }
    Ok(())
}

async fn names_that_are_none_lead_to_who_holds_them(lake: Lake) -> Done {
    let mut table =
        lake.table("t", &TableSpec::new(&[("id", "INT")]).option("data-file.path-directory", "data//x/"))?;
    table.append(&[json!({"id": 1})]).text()?;
    let root = table.root().to_path_buf();
    fs::create_dir_all(root.join("data/x")).text()?;
    fs::rename(root.join("bucket-0"), root.join("data/x/bucket-0")).text()?;
    check(read(&lake, "SELECT * FROM t").await.text()? == ["1"], "Hadoop knows no empty segment")?;
    let path = edit::snapshot_path(&root, 1);
    let whole = fs::read(&path).text()?;
    for key in ["baseManifestList", "deltaManifestList", "indexManifest"] {
        edit::json(&path, |document| document[key] = "".into())?;
        let error = error_of(&lake, "SELECT * FROM t VERSION AS OF 1").await?;
        says(&error, ErrorKind::Corrupt, &["snapshot-1", key])?;
        check(error.hint().is_some(), format!("no way out: {error:?}"))?;
        fs::write(&path, &whole).text()?;
    }
    edit::json(&path, |document| document["baseManifestList"] = "../x".into())?;
    let error = error_of(&lake, "SELECT * FROM t").await?;
    says(&error, ErrorKind::Corrupt, &["'../x'", "restore"])
}
