//! How long does it take to plan a snapshot of 1 000 manifests and 100 000 files, cold and warm, with a partition
//! filter and without? Prints one line a case: the least of five runs in milliseconds, and the files kept.
//!
//! `cargo bench --bench plan` (`-- --quick` for a tenth of the size).

#![allow(clippy::expect_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use lakepin::spec::{
    BinaryRow, Bucket, CommitKind, DataFileMeta, DataType, Datum, FileKind, FileSource, ManifestEntry, SchemaId,
    SimpleStats, binary_row::RowForm,
};
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{TableBuilder, TableSpec};

const BUCKETS: i32 = 10;

fn row(values: &[(&Datum, &DataType)], form: RowForm) -> BinaryRow {
    BinaryRow::encode(values, form).expect("atomic values")
}

/// One manifest a day: every bucket with runs of one level, keys apart.
fn entry(day: i64, bucket: i32, n: i64) -> ManifestEntry {
    let text = DataType::Varchar(u32::MAX >> 1);
    let dt = Datum::String(format!("2024-{:04}", day));
    let (low, high) = (Datum::BigInt(n * 1_000), Datum::BigInt(n * 1_000 + 999));
    let bound = |key: &Datum| {
        row(&[(key, &DataType::BigInt), (&Datum::BigInt(7), &DataType::BigInt), (&dt, &text)], RowForm::Serialized)
    };
    let key = |key: &Datum| row(&[(key, &DataType::BigInt)], RowForm::Projected);
    ManifestEntry {
        kind: FileKind::Add,
        partition: row(&[(&dt, &text)], RowForm::Projected),
        bucket: Bucket(bucket),
        total_buckets: BUCKETS,
        file: DataFileMeta {
            file_name: format!("data-{day:04}-{bucket:02}-{n}.parquet"),
            file_size: 8 << 20,
            row_count: 1_000,
            min_key: key(&low),
            max_key: key(&high),
            key_stats: SimpleStats { min_values: key(&low), max_values: key(&high), null_counts: vec![Some(0)] },
            value_stats: SimpleStats {
                min_values: bound(&low),
                max_values: bound(&high),
                null_counts: vec![Some(0), Some(0), Some(0)],
            },
            min_sequence_number: n * 1_000,
            max_sequence_number: n * 1_000 + 999,
            schema_id: SchemaId(0),
            level: 5,
            extra_files: vec![],
            creation_time_millis: Some(0),
            delete_row_count: Some(0),
            embedded_index: None,
            file_source: Some(FileSource::Compact),
            value_stats_cols: None,
            external_path: None,
            first_row_id: None,
            write_cols: None,
            write_cols_sequences: None,
        },
    }
}

fn build(warehouse: &Path, manifests: i64, files_per_manifest: i64) {
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "BIGINT"), ("dt", "STRING NOT NULL")])
        .partitioned_by(&["dt"])
        .primary_key(&["dt", "id"])
        .option("bucket", &BUCKETS.to_string());
    let mut table = TableBuilder::create(warehouse, "d", "t", &spec).expect("a fresh folder");
    let mut commit = table.commit().kind(CommitKind::Compact).entries_per_manifest(files_per_manifest as usize);
    for day in 0..manifests {
        for n in 0..files_per_manifest {
            commit = commit.entry(entry(day, (n % i64::from(BUCKETS)) as i32, n));
        }
    }
    commit.publish().expect("metadata is written");
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    if std::env::args().any(|a| a == "--list" || a == "--test") {
        return;
    }
    let (manifests, files) = if quick { (100, 100) } else { (1_000, 100) };
    let dir = tempfile::tempdir().expect("temporary folder");
    build(dir.path(), manifests, files);
    println!("{manifests} manifests, {} files, {BUCKETS} buckets; least of five runs", manifests * files);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    let cases = [
        ("all files", "SELECT sum(v) FROM t"),
        ("one partition", "SELECT sum(v) FROM t WHERE dt = '2024-0050'"),
        ("one key in one partition", "SELECT sum(v) FROM t WHERE dt = '2024-0050' AND id = 4711"),
        ("one key, all partitions", "SELECT sum(v) FROM t WHERE id = 4711"),
        ("count(*) from metadata", "SELECT count(*) FROM t"),
    ];
    for (name, sql) in cases {
        let explain = format!("EXPLAIN {sql}");
        let cold = (0..5)
            .map(|_| {
                runtime.block_on(async {
                    let session = open(dir.path()).await;
                    let began = Instant::now();
                    plan(&session, &explain).await;
                    began.elapsed()
                })
            })
            .min()
            .expect("five runs");
        let warm = runtime.block_on(async {
            let session = open(dir.path()).await;
            plan(&session, &explain).await;
            let mut least = std::time::Duration::MAX;
            for _ in 0..5 {
                let began = Instant::now();
                plan(&session, &explain).await;
                least = least.min(began.elapsed());
            }
            least
        });
        println!("{name:<28} cold {:>8.1} ms   warm {:>8.1} ms", cold.as_secs_f64() * 1e3, warm.as_secs_f64() * 1e3);
    }
}

async fn open(dir: &Path) -> Session {
    let warehouse = Warehouse::open(&dir.to_string_lossy(), &Default::default()).await.expect("warehouse");
    let config = SessionConfig { database: Some("d".into()), target_partitions: Some(2), ..SessionConfig::default() };
    Session::new(&warehouse, config).await.expect("session")
}

async fn plan(session: &Session, sql: &str) {
    use futures::TryStreamExt;
    let result = session.run_one(sql).await.expect("a plan");
    let _: Vec<lakepin::arrow::array::RecordBatch> = result.stream.try_collect().await.expect("plan rows");
}
