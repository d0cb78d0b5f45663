//! A warehouse: the folder of databases, opened once and shared by any number of sessions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::planner::RelationPlanner;

use super::catalog::LakeCatalog;
use super::functions::COMPUTATIONS;
use super::in_lists::NullsInLists;
use super::plain;
use super::planner::TravelPlanner;
use super::session::Session;
use super::timestamps::ExactTimestamps;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::error::{Error, Result};
use crate::query::{OpenTable, QueryEnv, QueryLimits, with_answers};
use crate::storage::{RequestCounts, check_options, may_lie_in};

/// A warehouse that is open for reading. Cheap to clone.
#[derive(Clone)]
pub struct Warehouse {
    inner: Arc<Inner>,
}

struct Inner {
    url: String,
    catalog: Arc<dyn Catalog>,
    env: Arc<QueryEnv>,
}

impl Warehouse {
    /// Opens the warehouse at a path or URL; `options` are those of the object store.
    ///
    /// # Errors
    /// Nothing there, or no access.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<Self> {
        let catalog = FilesystemCatalog::open(url, options).await?;
        Ok(Self::over(url, Arc::new(catalog)))
    }

    /// Refuses options that no object store here has, which [`Warehouse::open`] leaves aside.
    ///
    /// # Errors
    /// An option that is not known; the known ones are named.
    pub fn check_options(options: &BTreeMap<String, String>) -> Result<()> {
        check_options(options)
    }

    /// A warehouse over a catalog the caller has; `url` is how it is named to users.
    pub fn over(url: &str, catalog: Arc<dyn Catalog>) -> Self {
        Self { inner: Arc::new(Inner { url: url.to_string(), catalog, env: shared(&QueryLimits::default()) }) }
    }

    /// The same warehouse with caches of its own that hold no more than `limits` say: for a service with little memory, or
    /// for one that reads very large tables. Sessions and tables opened before keep the caches they have.
    #[must_use]
    pub fn with_limits(self, limits: &QueryLimits) -> Self {
        let inner =
            Inner { url: self.inner.url.clone(), catalog: Arc::clone(&self.inner.catalog), env: shared(limits) };
        Self { inner: Arc::new(inner) }
    }

    /// Where the warehouse is, as given.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Its databases and tables.
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.inner.catalog
    }

    /// What was asked so far of its store, and of those that external paths of its tables led to; the difference of two
    /// is what happened in between.
    pub fn requests(&self) -> RequestCounts {
        self.inner.catalog.storage().counts_with_others()
    }

    /// Caches shared by all its readers.
    pub fn env(&self) -> &Arc<QueryEnv> {
        &self.inner.env
    }

    /// A table; the name may carry a branch: `t$branch_x`. What is pinned of it shares the caches of the warehouse.
    ///
    /// # Errors
    /// No such database or table; the nearest are named.
    pub async fn table(&self, database: &str, name: &str) -> Result<OpenTable> {
        let table = self.inner.catalog.table(database, name).await?;
        Ok(OpenTable::new(table, Arc::clone(&self.inner.env)))
    }

    /// Registers the warehouse as a catalog of the caller's session: `catalog_name.database.table`, with names such as
    /// `"t@v3"`, `"t@eod"`, `t$snapshots` and `t$branch_x`.
    ///
    /// Each execution of a plan reads each table from one snapshot, for all its uses, `$` tables and views included. It
    /// is chosen when the plan is made physical, so a view or a `DataFrame` that is kept reads what is the latest each
    /// time; a table at one state for good is a name with a version, or [`OpenTable::pin`]. Registering adds rules and a
    /// relation planner to the session. They keep the promise above and the pin in the plan of what metadata answers, and
    /// they turn away wrong answers of DataFusion, in statements that read no table of ours too:
    ///
    /// - filters that land on another column of the same name, mostly in joins;
    /// - comparisons of a TIMESTAMP column with a literal of more digits;
    /// - `IN` and `NOT IN` with NULL in the list, or of which several lists on one operand leave nothing;
    /// - subqueries whose rows, or what they are compared with, may be NULL or missing; those that DataFusion would compute
    ///   over the rows of all rows outside are refused;
    /// - orders and groups by a column that has one value below an outer join, a `UNION` or grouping sets, and others above;
    /// - the one column of a `RIGHT` or `FULL JOIN … USING`, which is refused where its value would be wrong.
    ///
    /// What plain `SessionContext::sql` cannot do, because DataFusion parses the text before it reaches us, and what
    /// [`Warehouse::sql`] does on the same session:
    ///
    /// - time travel clauses are errors (of its parser or of ours), never the latest rows;
    /// - hints in comments, `t /*+ OPTIONS('scan.snapshot-id'='3') */`, are comments to DataFusion: they have no effect
    ///   and nobody can tell;
    /// - `PIN`, `SET 'paimon.…'`, `EXPLAIN FILES`, `SHOW PARTITIONS` and the functions `paimon_…()` are not known.
    ///   Pins and options that [`Warehouse::sql`] sets hold for plain statements too;
    /// - unquoted names are DataFusion's, so a column `Id` has to be quoted;
    /// - `a IS DISTINCT FROM b AND c` is read as `a IS DISTINCT FROM (b AND c)`;
    /// - `+`, `-` and `*` of integers and `sum` go on at the other end of the type where it cannot hold the result; sums
    ///   and averages of DOUBLE over a moving frame keep what left the frame; the least and the greatest of groups that
    ///   have infinities or NaN only come out wrong;
    /// - a DECIMAL beside a number with more digits fails, and beside a quoted number it meets that number rounded;
    /// - `=` finds NULL by NULL in a join that has an `IS NOT DISTINCT FROM` too, `EXCEPT ALL` and `INTERSECT ALL` do not count
    ///   rows, and NaN under `GROUP BY … LIMIT` gives other groups or a panic;
    /// - pins and notices are shown by `EXPLAIN` only.
    ///
    /// Nothing of the warehouse's own can be written through the catalog, and no store of its is registered. Where plain
    /// `SessionContext::sql` writes otherwise (`COPY … TO`, `INSERT` into an external table), with stores that the caller
    /// registered, is the caller's own affair; [`Warehouse::sql`] and [`Session`] refuse targets in the warehouse.
    ///
    /// # Errors
    /// The warehouse cannot be listed.
    pub async fn register(&self, context: &SessionContext, catalog_name: &str) -> Result<()> {
        // a database that cannot be listed says so when one of its tables is read
        self.attach(context, catalog_name)?.refresh().await.map(drop)
    }

    /// Runs one statement of our SQL (time travel clauses, hints, pins) on the caller's session, in which the
    /// warehouse has to be registered.
    ///
    /// # Errors
    /// As the statement.
    pub async fn sql(&self, context: &SessionContext, sql: &str) -> Result<DataFrame> {
        Session::attached(self, context)?.frame(sql).await
    }

    /// The catalog, registered; a session of ours lists it when a statement asks for names.
    pub(crate) fn attach(&self, context: &SessionContext, catalog_name: &str) -> Result<LakeCatalog> {
        // under a second name it is the same warehouse with the same pins
        let settings = Session::attached(self, context).map(|session| session.shared_settings()).unwrap_or_default();
        let lake = LakeCatalog::new(self, settings, context.state_weak_ref());
        context.register_catalog(catalog_name, Arc::new(lake.clone()));
        let planner: Arc<dyn RelationPlanner> = TravelPlanner::plain();
        let known = context.state().relation_planners().iter().any(TravelPlanner::is);
        if !known {
            context.register_relation_planner(planner)?;
        }
        for rule in plain::rules(None) {
            if !context.state().analyzer().rules.iter().any(|known| known.name() == rule.name()) {
                context.add_analyzer_rule(rule);
            }
        }
        if !context.state().optimizers().iter().any(|known| known.name() == NullsInLists::NAME) {
            context.add_optimizer_rule(Arc::new(NullsInLists));
            context.add_optimizer_rule(Arc::new(ExactTimestamps));
        }
        keep_answers(context);
        Ok(lake)
    }

    /// Refuses to write to a path or URL that may lie in the warehouse, however it is spelt; `what` is what would write.
    ///
    /// # Errors
    /// `ReadOnly`, naming the target.
    pub(crate) fn check_outside(&self, what: &str, target: &str) -> Result<()> {
        if may_lie_in(target, self.inner.catalog.location()) {
            return Err(Error::unsupported(format!("{what} would write into the warehouse, and writing comes later"))
                .with_code("ReadOnly")
                .with_context("target", target)
                .with_hint("choose a target outside of it"));
        }
        Ok(())
    }

    /// Whether both are the same open warehouse.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

/// What the tables of a warehouse share.
fn shared(limits: &QueryLimits) -> Arc<QueryEnv> {
    QueryEnv::with_computations(limits, COMPUTATIONS)
}

/// Puts the rule that keeps the pin of what metadata answers before DataFusion's own; a session takes more rules at its
/// end only.
fn keep_answers(context: &SessionContext) {
    let shared = context.state_ref();
    let mut state = shared.write();
    let Some(rules) = with_answers(state.physical_optimizers()) else { return };
    let id = state.session_id().to_string();
    let builder = SessionStateBuilder::new_from_existing(state.clone()).with_session_id(id);
    *state = builder.with_physical_optimizer_rules(rules).build();
}

impl fmt::Debug for Warehouse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warehouse").field("url", &self.inner.url).finish_non_exhaustive()
    }
}
