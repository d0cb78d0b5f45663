//! What a front end asks of a session: databases, tables, columns, versions, counts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::physical_plan::collect;
use datafusion::prelude::ident;
use datafusion::sql::sqlparser::ast::{Query, Visit, Visitor};

use super::{Session, count_all, one};
use crate::error::{Error, ErrorKind, Result};
use crate::query::{LakeTable, ScanLog};
use crate::recon::accounting::{Accounting, AccountingOptions, PartitionValues, account};
use crate::scan::exact_filters;
use crate::spec::arrow_types::datum_at;
use crate::spec::options::reading_options;
use crate::spec::{DataField, Zone};
use crate::sql::doubles;
use crate::sql::functions;
use crate::sql::limits;
use crate::sql::place::{self, Place, beginning, missing_column};
use crate::sql::result::PinLine;
use crate::sql::rewrite::rewrite;
use crate::sql::statements::{self, describe, name_of, pin};
use crate::sql::system_tables;
use crate::storage::env::now_millis;

impl Session {
    /// Databases of the warehouse.
    ///
    /// # Errors
    /// The warehouse cannot be listed.
    pub async fn databases(&self) -> Result<Vec<String>> {
        self.warehouse.catalog().list_databases().await
    }

    /// Tables of a database, the current one when None; views and temporary tables of the session included.
    ///
    /// # Errors
    /// No such database.
    pub async fn tables(&self, database: Option<&str>) -> Result<Vec<String>> {
        let database = database.map_or_else(|| self.database(), str::to_string);
        let global = database == system_tables::GLOBAL_DATABASE;
        let mut names = match self.warehouse.catalog().list_tables(&database).await {
            Err(error) if global && error.kind() == ErrorKind::NotFound => Vec::new(),
            names => names?,
        };
        if global {
            names.extend(system_tables::global_tables(&self.warehouse).into_iter().map(str::to_string));
        }
        names.extend(self.settings().local_names(&database));
        names.sort();
        Ok(names)
    }

    /// Columns of a table (`t`, `db.t`, `t@v3`, `t$files`) at the session's pin: name and type as Paimon writes it.
    ///
    /// # Errors
    /// No such table.
    pub async fn columns(&self, table: &str) -> Result<Vec<(String, String)>> {
        let run = self.begin(ScanLog::new(), Vec::new())?;
        let provider = self.relation(&run, self.factor(table)?).await?;
        let batch = describe::columns(&provider)?;
        let text = |index: usize| -> Vec<String> {
            let column = batch.columns().get(index).and_then(|c| c.as_string_opt::<i32>().cloned());
            column
                .iter()
                .flat_map(|c| c.iter().map(|t| t.unwrap_or_default().to_string()).collect::<Vec<_>>())
                .collect()
        };
        Ok(text(0).into_iter().zip(text(1)).collect())
    }

    /// Kept snapshot ids and tags of a table, newest first, for completion.
    ///
    /// # Errors
    /// No such table.
    pub async fn versions(&self, table: &str) -> Result<(Vec<i64>, Vec<String>)> {
        let run = self.begin(ScanLog::new(), Vec::new())?;
        let factor = self.factor(table)?;
        let name = name_of(&factor).ok_or_else(|| Error::invalid(format!("'{table}' is no table name")))?;
        let (database, name) = self.table_name(name)?;
        let table = run.statement.table(&database, &name).await?;
        let mut ids: Vec<i64> = table.snapshot_ids().await?.into_iter().map(|id| id.0).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let mut tags = table.readable_tags().await?.found;
        tags.sort_by(|a, b| b.1.snapshot.id.cmp(&a.1.snapshot.id).then_with(|| a.0.cmp(&b.0)));
        Ok((ids, tags.into_iter().map(|(name, _)| name).collect()))
    }

    /// Ids of the schemas of a table, oldest first, for completion.
    ///
    /// # Errors
    /// No such table; schemas that cannot be listed.
    pub async fn schema_ids(&self, table: &str) -> Result<Vec<i64>> {
        let run = self.begin(ScanLog::new(), Vec::new())?;
        let factor = self.factor(table)?;
        let name = name_of(&factor).ok_or_else(|| Error::invalid(format!("'{table}' is no table name")))?;
        let (database, name) = self.table_name(name)?;
        let mut ids: Vec<i64> =
            run.statement.table(&database, &name).await?.schema_ids().await?.into_iter().map(|id| id.0).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Branches of a table, for completion.
    ///
    /// # Errors
    /// No such table; branches that cannot be listed.
    pub async fn branches(&self, table: &str) -> Result<Vec<String>> {
        let run = self.begin(ScanLog::new(), Vec::new())?;
        let factor = self.factor(table)?;
        let name = name_of(&factor).ok_or_else(|| Error::invalid(format!("'{table}' is no table name")))?;
        let (database, name) = self.table_name(name)?;
        run.statement.table(&database, &name).await?.branches().await
    }

    /// The time of day now, on the clock of the session's zone: `10:00:00`.
    pub fn time_of_day(&self) -> String {
        let shown = self.zone().unwrap_or_default().show(now_millis());
        shown.split(' ').nth(1).and_then(|time| time.get(..8)).map(str::to_string).unwrap_or(shown)
    }

    /// Names of functions in expressions, sorted.
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state_ref();
        let state = state.read();
        let names = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let all: std::collections::BTreeSet<String> = names.chain(state.window_functions().keys()).cloned().collect();
        all.into_iter().collect()
    }

    /// Names that `SET` takes, those of scan options as `'paimon.scan.…'`.
    pub fn setting_names(&self) -> Vec<String> {
        let state = self.context.state_ref();
        let mut names: Vec<String> =
            state.read().config_options().entries().into_iter().map(|entry| entry.key).collect();
        names.extend(Self::scan_options().map(|option| format!("'paimon.{option}'")));
        names.sort();
        names
    }

    /// Options of a scan that a hint or `SET 'paimon.…'` may name.
    pub fn scan_options() -> impl Iterator<Item = &'static str> {
        reading_options()
    }

    /// Names after `$`.
    pub fn system_tables() -> Vec<&'static str> {
        system_tables::names().collect()
    }

    /// The database of system tables over the whole warehouse.
    pub fn global_database() -> &'static str {
        system_tables::GLOBAL_DATABASE
    }

    /// Names of our table functions.
    pub fn table_functions() -> Vec<&'static str> {
        functions::names()
    }

    /// Row accounting of a table reference (`t`, `db.t`, `t VERSION AS OF 3`, `t@v3`), with an optional condition
    /// (SQL over the table's columns). One on partition columns alone chooses the partitions that are counted; of any
    /// other, each row says how many of its final rows meet it. Places in errors count from the beginning of the text that
    /// is wrong, blanks before it included.
    ///
    /// # Errors
    /// No such table; a condition that cannot be planned or is none, one with a query, an aggregate or a window in it;
    /// files that are gone.
    pub async fn counts(&self, table: &str, condition: Option<&str>) -> Result<(PinLine, Accounting)> {
        let run = self.begin(ScanLog::new(), Vec::new())?;
        let mut notices = Vec::new();
        let tokens = rewrite(one(table)?, &mut notices)?;
        let factor = statements::factor_of(tokens)?;
        let provider = self.relation(&run, factor).await?;
        let Some(lake) = provider.downcast_ref::<LakeTable>() else {
            return Err(beginning(table).attach(
                Error::invalid(format!("'{}' is no table of the warehouse", table.trim()))
                    .with_code("TableNotFound")
                    .with_hint("rows are accounted for in tables of the warehouse, not in views and system tables"),
            ));
        };
        let schema = &lake.pin().schema;
        let counted = DataFrame::new(run.state.clone(), run.statement.scan(lake.clone())?);
        // what knows no place in the condition is about all of it
        let whole = condition.map(beginning).unwrap_or_default();
        let filter = condition.map(|condition| row_condition(&run.state, condition, counted.schema()));
        let filter = filter.transpose().map_err(|error| placed(whole, error))?;
        let chooses = match &filter {
            Some(filter) => {
                !filter.column_refs().is_empty() && exact_filters(&[filter], schema)?.iter().all(|own| *own)
            }
            None => false,
        };
        let (partitions, matched): (Vec<Expr>, _) =
            if chooses { (filter.into_iter().collect(), None) } else { (Vec::new(), filter) };
        let config = Some(Arc::clone(run.state.config().options()));
        let work = functions::accounting_work(lake.pin(), self.warehouse.env(), &partitions, config.clone()).await?;
        limits::check(&work, run.state.config_options())?;
        let zone = Zone::parse(&run.statement.zone().name())?;
        let options = AccountingOptions { exact: true, zone, budget: run.statement.budget(), partitions, config };
        let mut accounting = account(lake.pin(), self.warehouse.env(), &options).await?;
        if let Some(matched) = matched {
            let indices = schema.partition_indices()?;
            let fields: Vec<&DataField> = indices.iter().filter_map(|index| schema.fields.get(*index)).collect();
            let by = fields.iter().map(|field| ident(field.name.as_str())).collect();
            let matching = counted.filter(matched).and_then(|rows| rows.aggregate(by, vec![count_all()]));
            let plan = match matching {
                Ok(rows) => rows.create_physical_plan().await,
                Err(error) => Err(error),
            };
            let plan = plan.map_err(|error| placed(whole, error.into()))?;
            let batches = collect(plan, run.state.task_ctx()).await?;
            let mut found: BTreeMap<PartitionValues, u64> = BTreeMap::new();
            for batch in &batches {
                let counts = batch.columns().last().and_then(|column| column.as_primitive_opt::<Int64Type>());
                let counts = counts.ok_or_else(|| Error::internal("a count has no number"))?;
                for (row, count) in counts.values().iter().enumerate() {
                    let values = fields.iter().zip(batch.columns());
                    let values = values
                        .map(|(field, column)| datum_at(column.as_ref(), row, field.data_type()))
                        .collect::<Result<Vec<_>>>()?;
                    let count = u64::try_from(*count).map_err(|_| Error::internal("a count is negative"))?;
                    *found.entry(PartitionValues::from(values)).or_default() += count;
                }
            }
            accounting.total.matching = Some(found.values().sum());
            for row in &mut accounting.partitions {
                row.matching = Some(found.get(&row.values).copied().unwrap_or(0));
            }
        }
        notices.extend(run.statement.notices());
        for notice in notices {
            if !accounting.notices.contains(&notice) {
                accounting.notices.push(notice);
            }
        }
        let session = run.statement.used().iter().any(|used| used.session);
        Ok((pin::line(lake.pin(), run.statement.zone(), session), accounting))
    }
}

/// The error at a place, unless it knows a better one.
fn placed(whole: Place, error: Error) -> Error {
    if error.context().iter().any(|(name, _)| *name == "line") { error } else { whole.attach(error) }
}

/// A condition over the rows of a table, from text.
fn row_condition(state: &SessionState, text: &str, columns: &DFSchema) -> Result<Expr> {
    let refused = |what: &str| {
        Error::invalid(format!("the condition is over the rows of the table: it takes no {what}"))
            .with_code("BadCondition")
            .with_context("condition", text.trim())
            .with_hint("ask it as a query: SELECT count(*) FROM t WHERE …")
    };
    let dialect = &state.config_options().sql_parser.dialect;
    let parsed = state.sql_to_expr_with_alias(text, dialect).map_err(|error| {
        let (place, _) = place::of(&error);
        place.attach(Error::from_datafusion(error))
    })?;
    if parsed.expr.visit(&mut Queries).is_break() {
        return Err(refused("query"));
    }
    let filter = doubles::expression(state, text, columns).map_err(|error| {
        let (place, _) = place::of(&error);
        place.attach(missing_column(error, columns.fields().iter().map(|field| field.name().as_str())))
    })?;
    if filter.exists(|part| Ok(matches!(part, Expr::AggregateFunction(_))))? {
        return Err(refused("aggregate"));
    }
    if filter.exists(|part| Ok(matches!(part, Expr::WindowFunction(_))))? {
        return Err(refused("window function"));
    }
    match filter.get_type(columns)? {
        ArrowType::Boolean | ArrowType::Null => Ok(filter),
        other => Err(Error::invalid(format!("the condition is neither true nor false but of type {other}"))
            .with_code("BadCondition")
            .with_context("condition", text.trim())
            .with_hint("compare it with something: amount > 100")),
    }
}

/// Stops at a query inside of an expression.
struct Queries;

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}
