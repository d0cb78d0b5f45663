//! Pinned tables through DataFusion: every way of reading gives the same rows, and no other.

mod cases;
#[cfg(feature = "codec")]
mod codec;
mod compact;
mod golden;
mod memory;
mod merging;
mod metadata;
mod parts;
mod short;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use serde_json::{Value, json};

use super::{LakeTable, LakepinOptions, QueryEnv};
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::error::Result;
use crate::snapshot::{Pin, PinRequest, Table};
use crate::testing::builder::TableSpec;

/// How a session reads.
#[derive(Debug, Clone, Copy)]
struct Way {
    merge_source: bool,
    partitions: usize,
    batch_size: usize,
    pushdown_filters: bool,
    /// Fewest rows of a part of a section; 0: sections stay whole.
    part_rows: u64,
    /// Whether live rows are taken from those that an earlier query found.
    recalls: bool,
}

const PLAIN: Way =
    Way { merge_source: false, partitions: 1, batch_size: 8192, pushdown_filters: false, part_rows: 0, recalls: false };

const WAYS: [Way; 5] = [
    Way { merge_source: false, partitions: 3, batch_size: 7, part_rows: 1, ..PLAIN },
    Way { merge_source: true, ..PLAIN },
    Way { merge_source: true, partitions: 4, batch_size: 5, pushdown_filters: true, part_rows: 5, recalls: false },
    Way { merge_source: true, partitions: 2, batch_size: 100, ..PLAIN },
    Way { merge_source: true, partitions: 3, batch_size: 13, recalls: true, ..PLAIN },
];

const WITH_SOURCE: Way = Way { merge_source: true, partitions: 2, ..PLAIN };

impl Way {
    fn options(self) -> LakepinOptions {
        LakepinOptions {
            merge_source: self.merge_source,
            part_rows: self.part_rows,
            selection_cache: self.recalls,
            ..LakepinOptions::default()
        }
    }
}

fn session(way: Way) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(way.partitions).with_batch_size(way.batch_size);
    config.options_mut().execution.parquet.pushdown_filters = way.pushdown_filters;
    config.options_mut().extensions.insert(way.options());
    SessionContext::new_with_config(config)
}

async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    texts(&context.sql(sql).await?.collect().await?)
}

/// Rows as text, sorted.
fn texts(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let options = FormatOptions::new().with_null("∅");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort();
    Ok(rows)
}

/// A table below a warehouse folder.
async fn table(warehouse: &std::path::Path, database: &str, name: &str) -> Result<Arc<Table>> {
    let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await?;
    catalog.table(database, name).await
}

/// The newest snapshot of a table, as a provider.
async fn latest(warehouse: &std::path::Path, database: &str, name: &str) -> Result<LakeTable> {
    let table = table(warehouse, database, name).await?;
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await?;
    LakeTable::try_new(pin, QueryEnv::new())
}

fn keyed(engine: &str) -> TableSpec {
    TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT"), ("s", "STRING"), ("dt", "STRING NOT NULL")])
        .partitioned_by(&["dt"])
        .primary_key(&["dt", "id"])
        .option("bucket", "1")
        .option("merge-engine", engine)
}

fn row(id: i32, v: i32, dt: &str) -> Value {
    json!({"id": id, "v": v, "s": format!("s{v}"), "dt": dt})
}

fn gone(id: i32, dt: &str) -> Value {
    json!({"id": id, "v": 0, "s": "gone", "dt": dt, "_ROW_KIND": "-D"})
}

fn register(way: Way, lake: &LakeTable) -> SessionContext {
    let context = session(way);
    context.register_table("t", Arc::new(lake.clone())).expect("registers");
    context
}

/// The rows of a query, the same in every way of reading.
async fn all_ways(lake: &LakeTable, sql: &str) -> Vec<String> {
    let mut answer: Option<Vec<String>> = None;
    for way in WAYS.into_iter().chain([PLAIN]) {
        let found = rows(&register(way, lake), sql).await.expect("runs");
        if let Some(known) = &answer {
            assert_eq!(known, &found, "{way:?}: {sql}");
        }
        answer = Some(found);
    }
    answer.unwrap_or_default()
}

/// The physical plan as text.
async fn explain(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.expect("plans").create_physical_plan().await.expect("plans");
    displayable(plan.as_ref()).indent(false).to_string()
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("lists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}
