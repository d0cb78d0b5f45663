//! Pinned tables through DataFusion: every way of reading gives the same rows, and no other.

mod cases;
#[cfg(feature = "codec")]
mod codec;
mod golden;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{LakeTable, LakepinOptions, QueryEnv};
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::error::Result;
use crate::snapshot::{Pin, PinRequest, Table};

/// How a session reads.
#[derive(Debug, Clone, Copy)]
struct Way {
    merge_source: bool,
    partitions: usize,
    batch_size: usize,
    pushdown_filters: bool,
}

const PLAIN: Way = Way { merge_source: false, partitions: 1, batch_size: 8192, pushdown_filters: false };

const WAYS: [Way; 4] = [
    Way { merge_source: false, partitions: 3, batch_size: 7, pushdown_filters: false },
    Way { merge_source: true, partitions: 1, batch_size: 8192, pushdown_filters: false },
    Way { merge_source: true, partitions: 4, batch_size: 5, pushdown_filters: true },
    Way { merge_source: true, partitions: 2, batch_size: 100, pushdown_filters: false },
];

fn session(way: Way) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(way.partitions).with_batch_size(way.batch_size);
    config.options_mut().execution.parquet.pushdown_filters = way.pushdown_filters;
    let options = LakepinOptions { merge_source: way.merge_source, ..LakepinOptions::default() };
    config.options_mut().extensions.insert(options);
    SessionContext::new_with_config(config)
}

async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = context.sql(sql).await?.collect().await?;
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
