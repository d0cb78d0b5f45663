//! `paimon_cache()`: what the readers of the warehouse keep between statements.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;

use crate::error::Result;
use crate::query::QueryEnv;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::memory::LazyTable;
use crate::sql::statement::Statement;
use crate::storage::cache::CacheStats;

pub(super) const NAME: &str = "paimon_cache";

fn schema() -> SchemaRef {
    cells::schema(&[
        ("cache", Kind::Text, true),
        ("entries", Kind::Long, true),
        ("bytes", Kind::Long, true),
        ("limit_bytes", Kind::Long, true),
        ("hits", Kind::Long, true),
        ("misses", Kind::Long, true),
        ("evictions", Kind::Long, true),
    ])
}

pub(super) fn provider(statement: &Statement) -> Arc<dyn TableProvider> {
    let env = Arc::clone(statement.env());
    LazyTable::provider(NAME, schema(), move || {
        let env = Arc::clone(&env);
        Box::pin(async move { rows(&env) })
    })
}

fn rows(env: &QueryEnv) -> Result<RecordBatch> {
    let read = &env.read;
    let all: [(&str, CacheStats); 4] = [
        ("manifests", env.scan.cache.stats()),
        ("footers", read.files.footers().stats()),
        ("index files", read.index_files.stats()),
        ("selections", read.selections.stats()),
    ];
    let size = |value: usize| Cell::Long(i64::try_from(value).unwrap_or(i64::MAX));
    let count = |value: u64| Cell::Long(i64::try_from(value).unwrap_or(i64::MAX));
    let rows: Vec<Vec<Cell>> = all
        .into_iter()
        .map(|(name, stats)| {
            vec![
                Cell::text(name),
                size(stats.entries),
                size(stats.bytes),
                size(stats.limit_bytes),
                count(stats.hits),
                count(stats.misses),
                count(stats.evictions),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
