//! `paimon_row_accounting('db.t', level => 'partition', mode => 'exact', at => 3)`; mode `metadata` reads no file, mode
//! `audit` holds every file against its entry besides.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::query::nodes::{Computation, Computed, Deferred, Recipe};
use crate::query::{PoolBudget, QueryEnv, Work};
use crate::recon::accounting::{AccountingOptions, AccountingRow, account, audit, counting, expiring_rows};
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

impl AccountingLevel {
    fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Partition => "partition",
            Self::Unit => "unit",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        match name {
            "table" => Some(Self::Table),
            "partition" => Some(Self::Partition),
            "unit" | "bucket" => Some(Self::Unit),
            _ => None,
        }
    }
}

/// Exact counts, wherever a plan over them runs.
pub(crate) static EXACT: Computation = Computation { name: NAME, schema, rows: exact_rows };

/// Of a recipe whose files are held against their entries, too.
const AUDIT: &str = "audit";

fn exact_rows(recipe: Recipe, env: Arc<QueryEnv>, budget: Arc<PoolBudget>) -> Computed {
    Box::pin(async move {
        let level = recipe.arguments.first().and_then(|name| AccountingLevel::parse(name));
        let level = level.ok_or_else(|| Error::corrupt("a plan does not say at which level rows are counted"))?;
        if recipe.arguments.get(1).is_some_and(|mode| mode == AUDIT) {
            check_files(&recipe.pin, &env, &recipe.zone, Arc::clone(&budget)).await?;
        }
        rows(&recipe.pin, &env, &recipe.zone, budget, level, true).await
    })
}

/// Refuses files that are not what their entries say.
async fn check_files(pin: &Arc<Pin>, env: &Arc<QueryEnv>, zone: &SessionZone, budget: Arc<PoolBudget>) -> Result<()> {
    let zone = Zone::parse(&zone.name())?;
    let options = AccountingOptions { exact: true, zone, budget, partitions: Vec::new(), config: None };
    let found = audit(pin, env, &options).await?;
    let Some(first) = found.first() else { return Ok(()) };
    let more = match found.len() {
        1 => String::new(),
        all => format!("; and {} more", all - 1),
    };
    let error = Error::corrupt(format!("the files are not what their entries say: {first}{more}"));
    Err(pin.named(error.with_code("AccountingViolation")).with_hint(KEEP))
}

/// What to do about metadata and files that contradict each other.
const KEEP: &str =
    "metadata and data files contradict each other: keep both as they are, and read a snapshot or tag that adds up";

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
        return Err(pin.named(error).with_hint(KEEP));
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
    let level = level.to_lowercase();
    let Some(level) = AccountingLevel::parse(&level) else {
        return Err(wrong("level", &level, &["table", "partition", "unit"]));
    };
    let mode = mode.to_lowercase();
    let exact = match mode.as_str() {
        "exact" | AUDIT => true,
        "metadata" => false,
        other => return Err(wrong("mode", other, &["exact", "metadata", AUDIT])),
    };
    let pin = statement.pin(table, at).await?;
    if let Some(kind) = expiring_rows(&pin) {
        statement.notice(kind);
    }
    let (env, zone, budget) = (Arc::clone(statement.env()), *statement.zone(), statement.budget());
    if exact {
        let (counted, shared) = (Arc::clone(&pin), Arc::clone(&env));
        let weigh = move || -> BoxFuture<'static, Result<Work>> {
            let (pin, env) = (Arc::clone(&counted), Arc::clone(&shared));
            Box::pin(async move { work(&pin, &env, &[], None).await })
        };
        let recipe = Recipe { pin, zone, arguments: vec![level.name().to_string(), mode] };
        return Ok(DeferredTable::provider(Deferred::new(&EXACT, recipe, env, budget), weigh));
    }
    let load = move || -> BoxFuture<'static, Result<RecordBatch>> {
        let (pin, env, zone, budget) = (Arc::clone(&pin), Arc::clone(&env), zone, Arc::clone(&budget));
        Box::pin(async move { rows(&pin, &env, &zone, budget, level, false).await })
    };
    Ok(LazyTable::provider(NAME, schema(), load))
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
