//! A session: a current database, settings and pins, and the statements run in it.

mod align;
mod commands;
mod journal;
mod lookups;
mod own_names;
mod pins;
mod planning;
mod reconcile;
mod wait;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::dataframe::DataFrame;
use datafusion::execution::config::SessionConfig as EngineConfig;
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::TableFactor;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;
use futures::{StreamExt, TryStreamExt, stream};

use super::aside::{finishing, written_aside};
use super::catalog::LakeCatalog;
use super::deep_stack::{DeepStack, Levels, nesting};
use super::depth;
use super::digits;
use super::limits;
use super::map_order;
use super::parameters::bind;
use super::prepared::Step;
use super::refused::Written;
use super::result::{PinLine, Readings, Scanned, StatementKind, StatementResult, Timing};
use super::settings::Settings;
use super::statement::{Statement, zone_of};
use super::statements::{self, Command, pin};
use super::system_tables;
use super::text_files;
use super::tokens::{self, StatementText};
use super::warehouse::Warehouse;
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::query::work::{Work, scan_works};
use crate::query::{LakepinOptions, ScanLog, ScanReport, yielding};
use crate::recon::journal::Journal;
use crate::scan::{ScanKind, ScanProgress};
use crate::snapshot::SessionZone;
use crate::snapshot::nearest::known_names;

use self::journal::Looked;
use self::planning::Planned;
pub use self::reconcile::{Judged, Reconciled};

/// How a session starts.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Name of the warehouse as a catalog.
    pub catalog: String,
    /// Current database; None: `default` if it exists, else the only one.
    pub database: Option<String>,
    /// Session time zone (`+08:00`, `Asia/Shanghai`); None: UTC.
    pub time_zone: Option<String>,
    /// Memory for merging, sorting and hashing, in bytes; None: no limit.
    pub memory_limit: Option<usize>,
    /// Degree of parallelism; None: the cores of the machine.
    pub target_partitions: Option<usize>,
    /// Rows per batch; None: DataFusion's.
    pub batch_size: Option<usize>,
    /// Data files a statement may read; 0: no limit.
    pub max_files: usize,
    /// Bytes of the data files a statement may read; 0: no limit.
    pub max_bytes_scanned: usize,
    /// Values for `$name`; see [`Session::set_parameter`].
    pub parameters: BTreeMap<String, String>,
    /// File of the read journal, which `recon.read_journal` shows: what each statement of the session read, and when;
    /// None: none is kept.
    pub journal: Option<PathBuf>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            catalog: "paimon".to_string(),
            database: None,
            time_zone: None,
            memory_limit: None,
            target_partitions: None,
            batch_size: None,
            max_files: 0,
            max_bytes_scanned: 0,
            parameters: BTreeMap::new(),
            journal: None,
        }
    }
}

/// A session over a warehouse. Statements of one session run one after another.
///
/// Unquoted names are read in lower case; where no column is called so, but exactly one differs in case only, that
/// one is meant. Numbers with a point are decimals, those with an exponent doubles. Views and temporary tables live in
/// the session only.
pub struct Session {
    warehouse: Warehouse,
    context: SessionContext,
    catalog: LakeCatalog,
    catalog_name: String,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("warehouse", &self.warehouse).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a session.
    ///
    /// # Errors
    /// A time zone or database that is not known.
    pub async fn new(warehouse: &Warehouse, config: SessionConfig) -> Result<Self> {
        let zone = config.time_zone.clone().unwrap_or_else(|| "UTC".to_string());
        SessionZone::parse(&zone)?;
        let mut engine = EngineConfig::new()
            .with_information_schema(true)
            .with_create_default_catalog_and_schema(false)
            .with_option_extension(LakepinOptions {
                max_files: config.max_files,
                max_bytes_scanned: config.max_bytes_scanned,
                ..LakepinOptions::default()
            });
        if let Some(partitions) = config.target_partitions {
            engine = engine.with_target_partitions(partitions.max(1));
        }
        if let Some(rows) = config.batch_size {
            engine = engine.with_batch_size(rows.max(1));
        }
        let options = engine.options_mut();
        options.execution.time_zone = Some(zone);
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.collect_spans = true;
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(bytes) = config.memory_limit {
            runtime = runtime.with_memory_limit(bytes, 1.0);
        }
        let database = match &config.database {
            Some(database) => {
                check_database(warehouse, database).await?;
                database.clone()
            }
            None => {
                let all = warehouse.catalog().list_databases().await?;
                match all.as_slice() {
                    [only] => only.clone(),
                    _ => "default".to_string(),
                }
            }
        };
        engine = engine.with_default_catalog_and_schema(&config.catalog, database);
        let mut state = SessionStateBuilder::new()
            .with_config(engine)
            .with_runtime_env(runtime.build_arc()?)
            .with_default_features()
            .build();
        crate::query::aggregates::register(&mut state)?;
        text_files::register(&mut state)?;
        let context = SessionContext::new_with_state(state);
        let catalog = warehouse.attach(&context, &config.catalog)?;
        *catalog.settings().parameters.write() = config.parameters;
        *catalog.settings().journal.write() = config.journal.map(|path| Arc::new(Journal::new(path)));
        Ok(Self { warehouse: warehouse.clone(), context, catalog, catalog_name: config.catalog })
    }

    /// The session of a context in which the warehouse is registered.
    pub(crate) fn attached(warehouse: &Warehouse, context: &SessionContext) -> Result<Self> {
        let found = context.catalog_names().into_iter().find_map(|name| {
            let catalog = context.catalog(&name)?;
            let lake = catalog.downcast_ref::<LakeCatalog>()?;
            lake.warehouse().same(warehouse).then(|| (name, lake.clone()))
        });
        let Some((catalog_name, catalog)) = found else {
            return Err(Error::invalid("the warehouse is not registered in this session")
                .with_code("NotRegistered")
                .with_hint("call Warehouse::register first"));
        };
        Ok(Self { warehouse: warehouse.clone(), context: context.clone(), catalog, catalog_name })
    }

    /// The warehouse.
    pub fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// The DataFusion session underneath; tables and functions registered there are seen by statements.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The current database.
    pub fn database(&self) -> String {
        self.context.state_ref().read().config_options().catalog.default_schema.clone()
    }

    /// The session's time zone as text.
    pub fn time_zone(&self) -> String {
        self.zone().map(|zone| zone.name()).unwrap_or_default()
    }

    /// Data files and bytes of them that a statement may read; 0: no limit.
    pub fn read_limits(&self) -> (usize, usize) {
        let options = LakepinOptions::of(self.context.state_ref().read().config_options());
        (options.max_files, options.max_bytes_scanned)
    }

    fn zone(&self) -> Result<SessionZone> {
        zone_of(&self.context.state_ref().read())
    }

    /// Pins and options, for another catalog over the same warehouse.
    pub(super) fn shared_settings(&self) -> Arc<Settings> {
        Arc::clone(self.settings())
    }

    fn settings(&self) -> &Arc<Settings> {
        self.catalog.settings()
    }

    /// Cuts a text into statements with the tokenizer. A text that ends inside a string or comment is an error with
    /// code `Incomplete`.
    ///
    /// # Errors
    /// See above.
    pub fn split(sql: &str) -> Result<Vec<StatementText>> {
        tokens::split(sql)
    }

    /// Runs every statement of the text; stops at the first error.
    ///
    /// # Errors
    /// Those of the statements.
    pub async fn run(&self, sql: &str) -> Result<Vec<StatementResult>> {
        let mut results = Vec::new();
        for statement in tokens::statements(tokens::tokenize(sql)?) {
            results.push(self.execute(statement, Arc::default()).await?);
        }
        Ok(results)
    }

    /// Runs exactly one statement.
    ///
    /// # Errors
    /// Those of the statement; a text that is none, or several.
    pub async fn run_one(&self, sql: &str) -> Result<StatementResult> {
        self.run_watched(sql, Arc::default()).await
    }

    /// Runs exactly one statement; `progress` tells others how far its planning is.
    ///
    /// # Errors
    /// As [`Self::run_one`].
    pub async fn run_watched(&self, sql: &str, progress: Arc<ScanProgress>) -> Result<StatementResult> {
        self.execute(one(sql)?, progress).await
    }

    /// Sets (or with None removes) the value of `$name` in the statements that follow: a number, `true`, `false`, `null`
    /// or a quoted string as SQL writes it, anything else a string.
    pub fn set_parameter(&self, name: &str, value: Option<&str>) {
        let mut parameters = self.settings().parameters.write();
        match value {
            Some(value) => drop(parameters.insert(name.to_string(), value.to_string())),
            None => drop(parameters.remove(name)),
        }
    }

    /// The tokens of a step with values in the place of parameters, and the text of a view that they make.
    fn readied(&self, step: Step, all: bool) -> Result<(Vec<TokenWithSpan>, Option<String>)> {
        Ok(match step {
            Step::Run(tokens) => {
                let tokens = self.bound(tokens, all)?;
                let view = statements::view_text(&tokens);
                (tokens, view)
            }
            Step::Prepared { tokens, written } => {
                (self.bound(tokens, all)?, statements::view_text(&self.bound(written, all)?))
            }
            Step::Done(_) => Default::default(),
        })
    }

    fn bound(&self, tokens: Vec<TokenWithSpan>, all: bool) -> Result<Vec<TokenWithSpan>> {
        bind(tokens, &self.settings().parameters.read(), all)
    }

    /// One statement as a DataFrame of the caller's session.
    pub(crate) async fn frame(&self, sql: &str) -> Result<DataFrame> {
        let mut notices = Vec::new();
        let (tokens, view) = match self.settings().prepared.step(one(sql)?)? {
            Step::Done(_) => return Ok(self.context.read_empty()?),
            step => self.readied(step, false)?,
        };
        let nesting = nesting(&tokens)?;
        match statements::parse(tokens, &mut notices)? {
            Command::Statement(statement) => {
                let run = Run { view, nesting, ..self.begin(ScanLog::new(), notices)? };
                match DeepStack::of(nesting).wait(self.plan(&run, *statement)).await? {
                    Planned::Query(plan) => {
                        let levels = Levels::here();
                        let stack = DeepStack::of(nesting + run.statement.nesting_of_views());
                        stack.run(|| depth::check(&plan, levels.most))?;
                        Ok(DataFrame::new(run.state, plan))
                    }
                    Planned::Done(_) => Ok(self.context.read_empty()?),
                }
            }
            command => {
                let looked = Looked::default();
                let work = self.command(command, notices, Arc::default(), &looked);
                let result = DeepStack::of(nesting).wait(work).await?;
                let batches: Vec<RecordBatch> = result.stream.try_collect().await?;
                if batches.is_empty() {
                    return Ok(self.context.read_batch(RecordBatch::new_empty(result.schema))?);
                }
                Ok(self.context.read_batches(batches)?)
            }
        }
    }

    fn begin(&self, log: Arc<ScanLog>, notices: Vec<Notice>) -> Result<Run> {
        let statement = Statement::new(&self.warehouse, self.settings(), self.context.state(), log)?;
        for notice in notices {
            statement.notice(notice);
        }
        let state = statement.state();
        Ok(Run { statement, state, started: Instant::now(), view: None, nesting: 0 })
    }

    async fn execute(&self, tokens: Vec<TokenWithSpan>, progress: Arc<ScanProgress>) -> Result<StatementResult> {
        let (tokens, view) = match self.settings().prepared.step(tokens)? {
            Step::Done(word) => return Ok(self.done(word, Vec::new(), Vec::new())),
            step => self.readied(step, true)?,
        };
        let written = Written::of(&tokens);
        let noted = self.noting(&tokens);
        let looked = Looked::default();
        let answer = self.carry_out(tokens, view, progress, &looked).await.map_err(|error| written.place(error));
        match noted {
            Some(noted) => noted.of(answer, looked),
            None => answer,
        }
    }

    async fn carry_out(
        &self,
        tokens: Vec<TokenWithSpan>,
        view: Option<String>,
        progress: Arc<ScanProgress>,
        looked: &Looked,
    ) -> Result<StatementResult> {
        let mut notices = Vec::new();
        let nesting = nesting(&tokens)?;
        match statements::parse(tokens, &mut notices)? {
            Command::Statement(statement) => {
                let run = Run { view, nesting, ..self.begin(ScanLog::watched(progress), notices)? };
                match DeepStack::of(nesting).wait(self.plan(&run, *statement)).await? {
                    Planned::Query(plan) => {
                        // the views it reads nest too
                        let stack = DeepStack::of(nesting + run.statement.nesting_of_views());
                        let levels = Levels::here();
                        stack.run(|| depth::check(&plan, levels.most))?;
                        stack.wait(self.query(&run, plan, stack)).await
                    }
                    Planned::Done(word) => {
                        let done = self.done(word, run.lines(false), run.statement.notices());
                        Ok(StatementResult { readings: run.readings(), ..done })
                    }
                }
            }
            command => DeepStack::of(nesting).wait(self.command(command, notices, progress, looked)).await,
        }
    }

    /// The rows of a plan, computed on `stack`.
    async fn query(&self, run: &Run, plan: LogicalPlan, stack: DeepStack) -> Result<StatementResult> {
        let plan = &plan;
        let resolved = run.started.elapsed();
        let planning = Instant::now();
        let (written, aside) = written_aside(plan)?;
        let physical = run.state.create_physical_plan(&written).await?;
        limits::check(&Work::of(&physical), run.state.config_options())?;
        if map_order::matters(plan)? {
            run.statement.notice(NoticeKind::MapOrder);
        }
        let physical = yielding(physical)?;
        let stream = execute_stream(Arc::clone(&physical), Arc::new(TaskContext::from(&run.state)))?;
        let stream = match aside {
            Some(aside) => finishing(stream, aside),
            None => stream,
        };
        let stream = stack.rows(stream);
        let reports = run.statement.log().reports();
        let manifests = reports.iter().map(|report| report.planning).sum();
        let verified = LakepinOptions::of(run.state.config_options()).verify_files;
        if let Some(notice) = told(&physical, verified) {
            run.statement.notice(notice);
        }
        Ok(StatementResult {
            kind: StatementKind::Rows,
            schema: stream.schema(),
            stream,
            pins: run.lines(false),
            readings: run.readings(),
            notices: run.notices(),
            // a plan that is only shown reads nothing, and says itself what it would
            rules: Vec::new(),
            scanned: if matches!(plan, LogicalPlan::Explain(_)) { None } else { scanned(&physical, &reports) },
            digits: digits::of(plan),
            timing: Timing { resolve: resolved, plan: planning.elapsed().saturating_sub(manifests), manifests },
            plan: Some(physical),
            different: None,
        })
    }

    /// The relation a table factor names, at what it says.
    async fn relation(&self, run: &Run, factor: TableFactor) -> Result<Arc<dyn TableProvider>> {
        let plan = run.statement.relation(&run.state, factor).await?;
        Ok(plan)
    }

    fn factor(&self, text: &str) -> Result<TableFactor> {
        statements::factor_of(one(text)?)
    }

    fn done(&self, word: impl Into<String>, pins: Vec<PinLine>, notices: Vec<Notice>) -> StatementResult {
        let schema = Arc::new(Schema::empty());
        let empty = RecordBatchStreamAdapter::new(Arc::clone(&schema), stream::empty());
        StatementResult {
            kind: StatementKind::Done(word.into()),
            schema,
            stream: Box::pin(empty),
            pins,
            readings: Readings::default(),
            notices,
            timing: Timing::default(),
            scanned: None,
            rules: Vec::new(),
            digits: Vec::new(),
            plan: None,
            different: None,
        }
    }
}

/// A statement under way.
struct Run {
    statement: Arc<Statement>,
    state: SessionState,
    started: Instant,
    /// What a CREATE VIEW statement says behind the name, as it was written.
    view: Option<String>,
    /// How many words and signs of it can nest.
    nesting: usize,
}

impl Run {
    /// The pins as lines; `session`: all of them are the session's.
    fn lines(&self, session: bool) -> Vec<PinLine> {
        let zone = self.statement.zone();
        self.statement.used().iter().map(|used| pin::line_of(used, zone, session)).collect()
    }

    /// The pins themselves.
    fn readings(&self) -> Readings {
        Readings(self.statement.used())
    }

    /// Notices of resolving and of planning, each once.
    fn notices(&self) -> Vec<Notice> {
        let mut all = self.statement.notices();
        for notice in self.statement.log().reports().into_iter().flat_map(|report| report.notices) {
            if !all.contains(&notice) {
                all.push(notice);
            }
        }
        all
    }
}

fn one(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let mut all = tokens::statements(tokens::tokenize(sql)?);
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(Error::invalid("there is no statement").with_code("Syntax")),
        _ => Err(Error::invalid("one statement was expected, there are several").with_code("Syntax")),
    }
}

fn rows(batch: RecordBatch, run: &Run) -> StatementResult {
    let schema = batch.schema();
    let stream = RecordBatchStreamAdapter::new(Arc::clone(&schema), stream::iter([Ok(batch)]).boxed());
    StatementResult {
        kind: StatementKind::Rows,
        schema,
        stream: Box::pin(stream),
        pins: run.lines(false),
        readings: run.readings(),
        notices: run.notices(),
        timing: Timing::default(),
        scanned: None,
        rules: Vec::new(),
        digits: Vec::new(),
        plan: None,
        different: None,
    }
}

fn count_all() -> datafusion::logical_expr::Expr {
    datafusion::functions_aggregate::expr_fn::count(datafusion::logical_expr::lit(1i64))
}

async fn check_database(warehouse: &Warehouse, database: &str) -> Result<()> {
    let all = warehouse.catalog().list_databases().await?;
    if database == system_tables::GLOBAL_DATABASE || all.iter().any(|known| known == database) {
        return Ok(());
    }
    Err(Error::not_found(format!("there is no database '{database}'"))
        .with_code("DatabaseNotFound")
        .with_hint(known_names("databases", database, all.iter().map(String::as_str))))
}

/// What the scans behind a plan read. Scans that metadata answered read no file.
fn scanned(plan: &Arc<dyn ExecutionPlan>, reports: &[ScanReport]) -> Option<Scanned> {
    let scans = scan_works(plan);
    let mut all = Scanned::default();
    for (scan, work) in &scans {
        let stages = &scan.stages;
        all.partitions += if work.files > 0 { stages.kept_partitions } else { 0 };
        all.files += work.files;
        all.live_files += stages.files;
        all.bytes = all.bytes.saturating_add(work.file_bytes);
        all.hidden_files += stages.by_level;
    }
    if scans.is_empty() {
        all.live_files = reports.iter().map(|report| report.stages.files).sum();
        all.hidden_files = reports.iter().map(|report| report.stages.by_level).sum();
    }
    all.read_optimized = reports.iter().any(|report| report.kind == ScanKind::ReadOptimized);
    (!reports.is_empty()).then_some(all)
}

/// What is to be said of an answer that metadata gave, or a part of it; `verified`: of files that were looked for.
fn told(plan: &Arc<dyn ExecutionPlan>, verified: bool) -> Option<NoticeKind> {
    let works = scan_works(plan);
    let sum = |count: fn(&Work) -> u64| works.iter().map(|(_, work)| count(work)).sum::<u64>();
    let (told, read) = (sum(|work| work.told_files), sum(|work| work.files));
    match (told, read) {
        (0, _) => None,
        (_, 0) => Some(NoticeKind::FromMetadata { remembered: sum(|work| work.remembered_files), verified }),
        _ => Some(NoticeKind::PartlyFromMetadata { unopened: told, files: told + read, verified }),
    }
}
