//! Partitions: NULL, names on disk, values with odd characters, columns in any place, filters of every mix.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use lakepin::catalog::FilesystemCatalog;
use lakepin::object_store::memory::InMemory;
use lakepin::object_store::path::Path;
use lakepin::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use lakepin::sql::{Session, Warehouse};
use lakepin::storage::{Location, Storage};
use lakepin::testing::builder::TableSpec;
use serde_json::{Value, json};

use super::edit::{files_below, manifests};
use super::kit::{Done, Lake, OrText, ask, cases, check, config, expect, named, rows};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B033 null_partitions_are_kept,
        B035 date_partitions_read_alike_under_both_names,
        B036 odd_characters_in_partition_values,
        B038 partition_columns_stand_anywhere,
        B039 filters_of_partition_and_file_columns,
    );
    named!(tests, "partition", null_partitions_of_every_type_are_kept);
}

async fn null_partitions_are_kept(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("pt", "STRING")]).partitioned_by(&["pt"]);
    let mut t = lake.table("t", &spec)?;
    t.append(&[json!({"id": 1, "pt": null}), json!({"id": 2, "pt": "x"})]).text()?;
    t.append(&[json!({"id": 3, "pt": null})]).text()?;
    t.append(&[json!({"id": 4, "pt": "y"})]).text()?;
    let s = lake.session().await?;
    for (condition, ids) in [
        ("pt IS NULL", vec!["1", "3"]),
        ("pt IS NOT NULL", vec!["2", "4"]),
        ("pt = 'x'", vec!["2"]),
        ("pt <> 'x'", vec!["4"]),
        ("NOT (pt = 'x')", vec!["4"]),
        ("pt IN ('x', NULL)", vec!["2"]),
        ("pt NOT IN ('x')", vec!["4"]),
        ("pt NOT IN ('x', NULL)", vec![]),
        ("pt NOT IN ('x', NULL) OR pt = 'y'", vec!["4"]),
        ("pt IS DISTINCT FROM 'x'", vec!["1", "3", "4"]),
        ("pt IS NOT DISTINCT FROM NULL", vec!["1", "3"]),
        ("coalesce(pt, 'n') = 'n'", vec!["1", "3"]),
        ("pt = 'x' OR id = 3", vec!["2", "3"]),
        ("CASE WHEN pt IS NULL THEN true ELSE false END", vec!["1", "3"]),
        ("pt = '__DEFAULT_PARTITION__'", vec![]),
    ] {
        expect(&s, &format!("SELECT id FROM t WHERE {condition}"), &ids).await?;
        let count = ids.len().to_string();
        expect(&s, &format!("SELECT count(*) FROM t WHERE {condition}"), &[&count]).await?;
    }
    expect(&s, "SELECT pt, count(*) FROM t GROUP BY pt", &["NULL|2", "x|1", "y|1"]).await?;
    expect(&s, "SELECT min(pt), max(pt), count(pt) FROM t", &["x|y|2"]).await
}

async fn date_partitions_read_alike_under_both_names(lake: Lake) -> Done {
    for (name, legacy, folder) in [("a", "true", "dt=19723"), ("b", "false", "dt=2024-01-01")] {
        let spec = TableSpec::new(&[("id", "INT"), ("dt", "DATE")])
            .partitioned_by(&["dt"])
            .option("partition.legacy-name", legacy);
        let mut t = lake.table(name, &spec)?;
        t.append(&[
            json!({"id": 1, "dt": "2024-01-01"}),
            json!({"id": 2, "dt": "2024-01-02"}),
            json!({"id": 3, "dt": null}),
            json!({"id": 4, "dt": "1969-12-31"}),
        ])
        .text()?;
        check(t.root().join(folder).is_dir(), format!("{folder} is not there"))?;
        let s = lake.session().await?;
        for (condition, ids) in [
            ("dt = '2024-01-01'", vec!["1"]),
            ("dt = DATE '2024-01-01'", vec!["1"]),
            ("dt BETWEEN '2024-01-01' AND '2024-01-31'", vec!["1", "2"]),
            ("dt < '2000-01-01'", vec!["4"]),
            ("dt IS NULL", vec!["3"]),
            ("dt <> '2024-01-01'", vec!["2", "4"]),
            ("date_part('year', dt) = 2024", vec!["1", "2"]),
            ("CAST(dt AS STRING) LIKE '2024-%'", vec!["1", "2"]),
        ] {
            expect(&s, &format!("SELECT id FROM {name} WHERE {condition}"), &ids).await?;
        }
        expect(&s, &format!("SELECT id, dt FROM {name} WHERE id < 4"), &["1|2024-01-01", "2|2024-01-02", "3|NULL"])
            .await?;
        let listed = rows(&s, &format!("SELECT partition, record_count FROM {name}$partitions")).await?;
        let expected =
            ["dt=1969-12-31|1", "dt=2024-01-01|1", "dt=2024-01-02|1", "dt=__DEFAULT_PARTITION__|1"].map(String::from);
        check(listed == expected, format!("$partitions lists {listed:?}"))?;
        let shown = ask(&s, &format!("SHOW PARTITIONS {name}")).await.text()?;
        let shown = shown.column("partition")?.into_iter().zip(shown.column("record_count")?);
        let mut shown: Vec<String> = shown.map(|(partition, count)| format!("{partition}|{count}")).collect();
        shown.sort();
        check(shown == expected, format!("SHOW PARTITIONS shows {shown:?}"))?;
        expect(
            &s,
            &format!("SELECT partition FROM {name}$files"),
            &["{1969-12-31}", "{2024-01-01}", "{2024-01-02}", "{null}"],
        )
        .await?;
    }
    Ok(())
}

const ODD: &[&str] = &[
    "2026-01-01 00:00",
    "a/b",
    "50%",
    "x=y",
    "#3",
    "R&D",
    "中文",
    " lead",
    "trail ",
    "a%2Fb",
    "q?x",
    "a\\b",
    "a:b",
    "{b}",
    "[c]",
    "it's",
    "\"q\"",
    "+1",
    "a;b",
    "~",
    "emoji😀",
    "tab\there",
    ".",
    "..",
];

/// The folder's files in a memory store, and a session over it.
/// A store in memory that remembers which keys were asked for.
#[derive(Debug, Default)]
struct Asked {
    inner: InMemory,
    keys: Mutex<BTreeSet<String>>,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Asked {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> StoreResult<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(location.to_string());
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

async fn in_memory(lake: &Lake) -> Result<(Session, Arc<Asked>), String> {
    let store = Arc::new(Asked::default());
    for file in files_below(lake.path()) {
        let relative = file.strip_prefix(lake.path()).text()?.to_string_lossy().into_owned();
        let key = Location::try_new("", &format!("w/{relative}")).text()?;
        store.put(key.path(), std::fs::read(&file).text()?.into()).await.text()?;
    }
    let count = store.list(None).try_collect::<Vec<_>>().await.text()?.len();
    check(count == files_below(lake.path()).len(), format!("{count} objects"))?;
    let shared: Arc<dyn ObjectStore> = Arc::<Asked>::clone(&store);
    let storage = Storage::from_object_store(shared, "memory://lake").text()?;
    let root = storage.location("w").text()?;
    let catalog = FilesystemCatalog::open_in(storage, root).await.text()?;
    let session = Session::new(&Warehouse::over("memory", Arc::new(catalog)), config()).await.text()?;
    Ok((session, store))
}

async fn odd_characters_in_partition_values(lake: Lake) -> Done {
    let append = TableSpec::new(&[("id", "INT"), ("pt", "STRING")]).partitioned_by(&["pt"]);
    let keyed = TableSpec::new(&[("id", "INT NOT NULL"), ("pt", "STRING NOT NULL")])
        .partitioned_by(&["pt"])
        .primary_key(&["pt", "id"])
        .option("bucket", "1");
    let odd: Vec<Value> = ODD.iter().enumerate().map(|(i, v)| json!({"id": i, "pt": v})).collect();
    for (name, spec) in [("t", append), ("k", keyed)] {
        let mut t = lake.table(name, &spec)?;
        t.append(&odd).text()?;
        t.append(&odd[..3]).text()?;
    }
    let (memory, store) = in_memory(&lake).await?;
    for (place, s) in [("on disk", lake.session().await?), ("in memory", memory)] {
        for (name, doubled) in [("t", 2), ("k", 1)] {
            for (i, value) in ODD.iter().enumerate() {
                let quoted = value.replace('\'', "''");
                let read = rows(&s, &format!("SELECT id, pt FROM {name} WHERE pt = '{quoted}'")).await?;
                let times = if i < 3 { doubled } else { 1 };
                let expected = vec![format!("{i}|{value}"); times];
                // the formatter writes a tab as it is
                check(read == expected, format!("{name} {place}: {value:?} gives {read:?}"))?;
            }
            let listed = rows(&s, &format!("SELECT * FROM {name}$partitions")).await?.len();
            check(listed == ODD.len(), format!("{name} {place}: {listed} partitions of {}", ODD.len()))?;
            let all = if doubled == 2 { ODD.len() + 3 } else { ODD.len() };
            expect(&s, &format!("SELECT count(*) FROM {name} WHERE id >= 0"), &[&all.to_string()]).await?;
        }
    }
    // escaped once: each data file was asked for, and nothing near one that is not there
    let there: BTreeSet<String> =
        store.inner.list(None).map_ok(|object| object.location.to_string()).try_collect().await.text()?;
    let in_bucket = |keys: &BTreeSet<String>| -> BTreeSet<String> {
        keys.iter().filter(|key| key.contains("/pt=")).cloned().collect()
    };
    let asked = in_bucket(&store.keys.lock().unwrap_or_else(PoisonError::into_inner));
    let files = in_bucket(&there);
    check(files.len() == 2 * (ODD.len() + 3), format!("{files:?}"))?;
    check(asked == files, format!("asked for besides: {:?}", asked.difference(&files).collect::<Vec<_>>()))
}

async fn partition_columns_stand_anywhere(lake: Lake) -> Done {
    let one = TableSpec::new(&[("id", "INT"), ("v", "INT"), ("pt", "STRING")]).partitioned_by(&["pt"]);
    let mut t = lake.table("t", &one)?;
    t.append(&[json!({"id": 1, "v": 10, "pt": "a"}), json!({"id": 2, "v": 20, "pt": "b"})]).text()?;
    let columns = [("id", "INT NOT NULL"), ("p2", "INT NOT NULL"), ("v", "INT"), ("p1", "STRING NOT NULL")];
    let all: Vec<Value> =
        (0..12).map(|i| json!({"id": i, "p2": i % 3, "v": i * 10, "p1": if i % 2 == 0 { "a" } else { "b" }})).collect();
    let two = TableSpec::new(&columns).partitioned_by(&["p1", "p2"]);
    lake.table("two", &two)?.append(&all).text()?;
    let turned = TableSpec::new(&columns).partitioned_by(&["p2", "p1"]);
    lake.table("turned", &turned)?.append(&all).text()?;
    let keyed =
        TableSpec::new(&columns).partitioned_by(&["p1", "p2"]).primary_key(&["id", "p2", "p1"]).option("bucket", "2");
    let mut k = lake.table("keyed", &keyed)?;
    k.append(&all).text()?;
    k.append(&all).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t WHERE pt = 'a'", &["1|10|a"]).await?;
    expect(&s, "SELECT pt, id FROM t WHERE pt > 'a' AND v = 20", &["b|2"]).await?;
    for table in ["two", "turned", "keyed"] {
        for p1 in ["a", "b"] {
            for p2 in 0..3 {
                let mine: Vec<String> = (0..12i64)
                    .filter(|i| ["a", "b"][*i as usize % 2] == p1 && i % 3 == p2)
                    .map(|i| format!("{p1}|{}|{p2}|{i}", i * 10))
                    .collect();
                let mine: Vec<&str> = mine.iter().map(String::as_str).collect();
                let sql = format!("SELECT p1, v, p2, id FROM {table} WHERE p2 = {p2} AND p1 = '{p1}'");
                expect(&s, &sql, &mine).await?;
            }
        }
        expect(&s, &format!("SELECT count(*) FROM {table} WHERE p1 = 'a'"), &["6"]).await?;
        expect(&s, &format!("SELECT count(*) FROM {table} WHERE p2 = 1"), &["4"]).await?;
        expect(&s, &format!("SELECT p2, count(*) FROM {table} GROUP BY p2"), &["0|4", "1|4", "2|4"]).await?;
        expect(&s, &format!("SELECT min(p2), max(p1) FROM {table}"), &["0|b"]).await?;
        expect(&s, &format!("SELECT DISTINCT p1 FROM {table}"), &["a", "b"]).await?;
    }
    Ok(())
}

async fn filters_of_partition_and_file_columns(lake: Lake) -> Done {
    let spec = TableSpec::new(&[("id", "INT"), ("pt", "STRING"), ("v", "STRING")]).partitioned_by(&["pt"]);
    let mut t = lake.table("t", &spec)?;
    for (id, pt, v) in [(1, "a", "a"), (2, "bb", "a"), (3, "a", "bb"), (2, "cc", "cc"), (5, "cc", "x")] {
        t.append(&[json!({"id": id, "pt": pt, "v": v})]).text()?;
    }
    let s = lake.session().await?;
    for (condition, ids) in [
        ("pt = v", vec!["1|a|a", "2|cc|cc"]),
        ("pt <> v", vec!["2|bb|a", "3|a|bb", "5|cc|x"]),
        ("pt = v OR id = 3", vec!["1|a|a", "2|cc|cc", "3|a|bb"]),
        ("length(pt) = id", vec!["1|a|a", "2|bb|a", "2|cc|cc"]),
        ("pt = 'cc' AND (v = 'x' OR id = 2)", vec!["2|cc|cc", "5|cc|x"]),
        ("(pt = 'a' AND id = 1) OR (pt = 'bb' AND id = 2)", vec!["1|a|a", "2|bb|a"]),
        ("concat(pt, v) = 'aa'", vec!["1|a|a"]),
        ("NOT (pt = v)", vec!["2|bb|a", "3|a|bb", "5|cc|x"]),
    ] {
        expect(&s, &format!("SELECT * FROM t WHERE {condition}"), &ids).await?;
        let count = ids.len().to_string();
        expect(&s, &format!("SELECT count(*) FROM t WHERE {condition}"), &[&count]).await?;
    }
    Ok(())
}

/// A partition value, as JSON and as SQL.
fn parts(text: &str) -> [(Value, &'static str); 3] {
    match text {
        "INT" => [(json!(null), "NULL"), (json!(-1), "-1"), (json!(7), "7")],
        "DATE" => [
            (json!(null), "NULL"),
            (json!("1969-12-31"), "DATE '1969-12-31'"),
            (json!("2026-04-16"), "DATE '2026-04-16'"),
        ],
        "BOOLEAN" => [(json!(null), "NULL"), (json!(false), "false"), (json!(true), "true")],
        _ => [(json!(null), "NULL"), (json!("a"), "'a'"), (json!("b"), "'b'")],
    }
}

async fn null_partitions_of_every_type_are_kept(lake: Lake) -> Done {
    let types = [("INT", "DATE"), ("DATE", "BOOLEAN"), ("BOOLEAN", "STRING"), ("STRING", "INT"), ("INT", "INT")];
    for (number, (first, second)) in types.into_iter().enumerate() {
        let spec = TableSpec::new(&[("id", "INT"), ("p", first), ("q", second)]).partitioned_by(&["p", "q"]);
        let (one, other) = (parts(first), parts(second));
        for untold in [false, true] {
            let name = format!("t{number}{}", if untold { "_untold" } else { "" });
            let mut t = lake.table(&name, &spec)?;
            // a manifest each: NULL in one column, in the other, in both, in none
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1)] {
                t.append(&[json!({"id": i * 10 + j, "p": one[i].0, "q": other[j].0})]).text()?;
            }
            if untold {
                // of NULLs nothing is said
                manifests(t.root(), 5, |meta| meta.partition_stats.null_counts.fill(None))?;
            }
            let s = lake.session().await?;
            for (condition, ids) in [
                ("p IS NULL".to_string(), vec!["0", "1"]),
                ("p IS NOT NULL".to_string(), vec!["10", "12", "21"]),
                ("q IS NULL".to_string(), vec!["0", "10"]),
                ("q IS NOT NULL".to_string(), vec!["1", "12", "21"]),
                ("p IS NULL AND q IS NULL".to_string(), vec!["0"]),
                ("p IS NULL OR q IS NULL".to_string(), vec!["0", "1", "10"]),
                ("p IS NOT NULL AND q IS NOT NULL".to_string(), vec!["12", "21"]),
                (format!("p = {}", one[1].1), vec!["10", "12"]),
                (format!("p <> {}", one[1].1), vec!["21"]),
                (format!("p IS DISTINCT FROM {}", one[1].1), vec!["0", "1", "21"]),
                (format!("p = {} AND q IS NULL", one[1].1), vec!["10"]),
                (format!("q = {} AND p IS NULL", other[1].1), vec!["1"]),
                (format!("NOT (q = {})", other[1].1), vec!["12"]),
                (format!("q IN ({}, NULL)", other[2].1), vec!["12"]),
                (format!("p >= {}", one[1].1), vec!["10", "12", "21"]),
            ] {
                expect(&s, &format!("SELECT id FROM {name} WHERE {condition}"), &ids).await?;
                let count = ids.len().to_string();
                expect(&s, &format!("SELECT count(*) FROM {name} WHERE {condition}"), &[&count]).await?;
            }
            expect(&s, &format!("SELECT count(*), count(p), count(q) FROM {name}"), &["5|3|3"]).await?;
            expect(&s, &format!("SELECT count(*) FROM {name} GROUP BY p"), &["1", "2", "2"]).await?;
        }
    }
    Ok(())
}
