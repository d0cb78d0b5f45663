//! `paimon_row_accounting('db.t', level => 'partition', mode => 'exact', at => 3)`.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::query::{PoolBudget, QueryEnv, Work};
use crate::recon::accounting::{AccountingOptions, AccountingRow, account, counting};
use crate::scan::ScanRequest;
use crate::snapshot::nearest::known_names;
use crate::snapshot::{Pin, SessionZone, Table};
use crate::spec::Zone;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::memory::{DeferredTable, LazyTable};
use crate::sql::selector::Selection;
use crate::sql::statement::Statement;

const NAME: &str = "paimon_row_accounting()";

/// One row per what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccountingLevel {
    Table,
    Partition,
    Unit,
}

pub(crate) fn schema() -> SchemaRef {
    cells::schema(&[
        ("partition", Kind::Text, false),
        ("bucket", Kind::Int, false),
        ("files", Kind::Long, true),
        ("runs", Kind::Long, true),
        ("raw_rows", Kind::Long, true),
        ("retract_rows", Kind::Long, false),
        ("hidden_rows", Kind::Long, true),
        ("vector_deleted", Kind::Long, true),
        ("superseded", Kind::Long, false),
        ("tombstoned", Kind::Long, false),
        ("final_rows", Kind::Long, false),
        ("final_lo", Kind::Long, true),
        ("final_hi", Kind::Long, true),
        ("exact", Kind::Bool, true),
        ("pin", Kind::Text, true),
    ])
}

/// The counts as rows.
pub(crate) async fn rows(
    pin: &Arc<Pin>,
    env: &Arc<QueryEnv>,
    zone: &SessionZone,
    budget: Arc<PoolBudget>,
    level: AccountingLevel,
    exact: bool,
) -> Result<RecordBatch> {
    let zone_of_values = Zone::parse(&zone.name())?;
    let options = AccountingOptions { exact, zone: zone_of_values, budget, partitions: Vec::new(), config: None };
    let accounting = account(pin, env, &options).await?;
    if let Some(violation) = accounting.violations.first() {
        let error = Error::corrupt(format!("the rows do not add up: {violation}")).with_code("AccountingViolation");
        return Err(pin.named(error).with_hint(
            "metadata and data files contradict each other: keep both as they are, and read a snapshot or tag that adds up",
        ));
    }
    let counted: Vec<&AccountingRow> = match level {
        AccountingLevel::Table => vec![&accounting.total],
        AccountingLevel::Partition => accounting.partitions.iter().collect(),
        AccountingLevel::Unit => accounting.units.iter().collect(),
    };
    let shown = pin.describe(zone);
    let rows: Vec<Vec<Cell>> = counted
        .into_iter()
        .map(|row| {
            let (low, high) = if exact { (row.final_rows, row.final_rows) } else { row.final_bounds };
            let read = |count: u64| if exact { Cell::count(count) } else { Cell::Null };
            vec![
                if level == AccountingLevel::Table { Cell::Null } else { Cell::text(&row.partition) },
                row.bucket.map_or(Cell::Null, Cell::Int),
                Cell::count(row.files),
                Cell::count(row.runs),
                Cell::count(row.raw_rows),
                row.retract_rows.map_or(Cell::Null, Cell::count),
                Cell::count(row.hidden_rows),
                Cell::count(row.vector_deleted),
                read(row.superseded),
                read(row.tombstoned),
                if low == high { Cell::count(low) } else { Cell::Null },
                Cell::count(low),
                Cell::count(high),
                Cell::Bool(low == high),
                Cell::text(&shown),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}

pub(super) async fn provider(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    at: &Selection,
    level: &str,
    mode: &str,
) -> Result<Arc<dyn TableProvider>> {
    let wrong = |parameter: &str, value: &str, known: &[&str]| {
        Error::invalid(format!("'{value}' is no {parameter}")).with_code("BadArgument").with_hint(known_names(
            "values",
            value,
            known.iter().copied(),
        ))
    };
    let level = match level.to_lowercase().as_str() {
        "table" => AccountingLevel::Table,
        "partition" => AccountingLevel::Partition,
        "unit" | "bucket" => AccountingLevel::Unit,
        other => return Err(wrong("level", other, &["table", "partition", "unit"])),
    };
    let exact = match mode.to_lowercase().as_str() {
        "exact" => true,
        "metadata" => false,
        other => return Err(wrong("mode", other, &["exact", "metadata"])),
    };
    let pin = statement.pin(table, at).await?;
    let (env, zone, budget) = (Arc::clone(statement.env()), *statement.zone(), statement.budget());
    let (counted, shared) = (Arc::clone(&pin), Arc::clone(&env));
    let load = move || -> BoxFuture<'static, Result<RecordBatch>> {
        let (pin, env, zone, budget) = (Arc::clone(&pin), Arc::clone(&env), zone, Arc::clone(&budget));
        Box::pin(async move { rows(&pin, &env, &zone, budget, level, exact).await })
    };
    if !exact {
        return Ok(LazyTable::provider(NAME, schema(), load));
    }
    let weigh = move || -> BoxFuture<'static, Result<Work>> {
        let (pin, env) = (Arc::clone(&counted), Arc::clone(&shared));
        Box::pin(async move { work(&pin, &env, &[], None).await })
    };
    Ok(DeferredTable::provider(NAME, schema(), weigh, load))
}

/// What counting a pin exactly reads: what readers of it see in the partitions that meet the conditions, and no more.
/// Found in metadata.
pub(crate) async fn work(
    pin: &Arc<Pin>,
    env: &Arc<QueryEnv>,
    partitions: &[Expr],
    config: Option<Arc<ConfigOptions>>,
) -> Result<Work> {
    let request = ScanRequest { filters: partitions.to_vec(), config, ..counting(pin)? };
    let seen = crate::scan::plan(pin, &request, &env.scan).await?.stages;
    Ok(Work { files: seen.kept_files, file_bytes: seen.kept_bytes, ..Work::default() })
}
