//! A session as sqllogictest sees a database.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use futures::TryStreamExt;
use sqllogictest::{AsyncDB, DBOutput};

use super::Options;
use super::place::Places;
use super::value::{Letter, letters, plan_rows, rows};
use crate::error::{Error, Result};
use crate::shell::commands::{marked_words, pin_statement, unpin_statements, words};
use crate::shell::execute::{Clock, lost_task};
use crate::shell::variables::Variables;
use crate::shell::workers::{Owned, Workers};
use crate::sql::{Session, StatementKind, Warehouse};

/// One connection of a suite.
pub struct Engine {
    options: Options,
    session: Option<Arc<Session>>,
    workers: Option<Workers>,
    /// The warehouses so far.
    places: Places,
}

/// An error as suites match it: code, message, facts and hint on one line, `WAREHOUSE` for where the warehouse lies.
#[derive(Debug)]
pub struct EngineError(String);

impl EngineError {
    fn new(error: &Error, places: &Places) -> Self {
        Self(format!("error[{}]: {}", error.code(), places.hidden(&error.to_string().replace('\n', "\\n"))))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

impl Engine {
    /// A connection; the session begins with the first statement.
    pub fn new(options: Options) -> Self {
        let mut places = Places::default();
        if let Some(warehouse) = &options.warehouse {
            places.add(warehouse.url());
        }
        Self { options, session: None, workers: None, places }
    }

    /// The text with every `${NAME}` replaced; `\${` stands for `${`.
    fn substituted(&self, sql: &str) -> Result<String> {
        let mut out = String::with_capacity(sql.len());
        let mut rest = sql;
        while let Some(at) = rest.find("${") {
            let (before, after) = rest.split_at(at);
            if let Some(before) = before.strip_suffix('\\') {
                out.push_str(before);
                out.push_str("${");
                rest = after.get(2..).unwrap_or_default();
                continue;
            }
            out.push_str(before);
            let Some(end) = after.find('}') else {
                return Err(Error::invalid("${ has no }")
                    .with_code("UnknownVariable")
                    .with_hint("close the name of the variable, or write \\${ for the two letters"));
            };
            let name = after.get(2..end).unwrap_or_default();
            let value = match (self.options.variables.get(name), name) {
                (Some(value), _) => value.clone(),
                (None, "WAREHOUSE") => self.options.warehouse.as_ref().map(|w| w.url().to_string()).unwrap_or_default(),
                (None, _) => std::env::var(name).map_err(|_| {
                    let known: Vec<&str> = self.options.variables.keys().map(String::as_str).collect();
                    Error::invalid(format!("there is no variable ${{{name}}}")).with_code("UnknownVariable").with_hint(
                        format!(
                            "give it with -v {name}=value; known: {}",
                            [&["WAREHOUSE"], known.as_slice()].concat().join(", ")
                        ),
                    )
                })?,
            };
            out.push_str(&value);
            rest = after.get(end + 1..).unwrap_or_default();
        }
        out.push_str(rest);
        Ok(out)
    }

    async fn open(&self, warehouse: &Warehouse) -> Result<Arc<Session>> {
        Ok(Arc::new(Session::new(warehouse, self.options.session.clone()).await?))
    }

    async fn answer(&mut self, sql: &str) -> Result<DBOutput<Letter>> {
        let sql = self.substituted(sql)?;
        let sql = sql.trim();
        if let Some(url) = sql.strip_prefix("\\connect ") {
            let (url, options) = (url.trim().to_string(), self.options.store_options.clone());
            let config = self.options.session.clone();
            self.places.add(&url);
            let opened = async move {
                let warehouse = Warehouse::open(&url, &options).await?;
                Session::new(&warehouse, config).await
            };
            let session = self.timed(opened).await?;
            self.places.add(session.warehouse().url());
            self.session = Some(Arc::new(session));
            return Ok(DBOutput::StatementComplete(0));
        }
        if self.session.is_none() {
            let Some(warehouse) = self.options.warehouse.clone() else {
                return Err(Error::invalid("no warehouse is open")
                    .with_code("Usage")
                    .with_hint("give one with -w, or begin with \\connect"));
            };
            self.session = Some(self.open(&warehouse).await?);
        }
        let Some(session) = self.session.clone() else { return Err(Error::internal("the session is lost")) };
        let sql = match pinning(sql)? {
            Some(statements) => statements,
            None => sql.to_string(),
        };
        let places = self.places.clone();
        self.timed(async move { answer(&session, &sql, &places).await }).await
    }

    /// Waits for work as long as a record may take.
    async fn timed<T: Send + 'static>(&mut self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        if self.options.own_threads && self.workers.is_none() {
            let started = Workers::start();
            self.workers =
                Some(started.map_err(|e| Error::unavailable(format!("cannot start threads: {e}")).with_source(e))?);
        }
        let clock = Clock::start(self.options.timeout);
        let mut owned = match &self.workers {
            Some(workers) => {
                // a record that had no more time may keep them
                workers.ready().await;
                workers.spawn(work)
            }
            None => Owned::here(work),
        };
        tokio::select! {
            biased;
            done = &mut owned.task => done.map_err(lost_task)?,
            () = clock.expired() => Err(clock.error()),
        }
    }
}

/// The statements of `\pin …` and `\unpin …`.
fn pinning(text: &str) -> Result<Option<String>> {
    let Some((name, rest)) = text.strip_prefix('\\').map(|line| line.split_once(' ').unwrap_or((line, ""))) else {
        return Ok(None);
    };
    let none = Variables::new();
    match name {
        "pin" => pin_statement(&marked_words(rest, &none)?).map(Some),
        "unpin" => unpin_statements(&words(rest, &none)?).map(|statements| Some(statements.join(";"))),
        _ => Err(Error::invalid(format!("there is no command \\{name} in a suite"))
            .with_code("UnknownCommand")
            .with_hint("known: \\connect, \\pin, \\unpin")),
    }
}

/// What answers `EXPLAIN`.
const PLANS: [&str; 2] = ["ExplainExec", "AnalyzeExec"];

/// The answer to the last statement of a text.
async fn answer(session: &Session, sql: &str, places: &Places) -> Result<DBOutput<Letter>> {
    let mut last = DBOutput::StatementComplete(0);
    for result in session.run(sql).await? {
        last = match result.kind {
            StatementKind::Done(_) => DBOutput::StatementComplete(0),
            StatementKind::Rows => {
                let plans = result.plan.as_ref().is_some_and(|plan| PLANS.contains(&plan.name()));
                let schema = result.schema;
                let batches: Vec<RecordBatch> = result.stream.try_collect().await?;
                let rows = if plans { plan_rows(&batches, places)? } else { rows(&batches)? };
                DBOutput::Rows { types: letters(&schema), rows }
            }
        };
    }
    Ok(last)
}

#[async_trait]
impl AsyncDB for Engine {
    type Error = EngineError;
    type ColumnType = Letter;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Letter>, EngineError> {
        self.answer(sql).await.map_err(|error| EngineError::new(&error, &self.places))
    }

    async fn shutdown(&mut self) {
        self.session = None;
    }

    fn engine_name(&self) -> &str {
        "lakepin"
    }

    async fn sleep(time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn run_command(command: std::process::Command) -> std::io::Result<std::process::Output> {
        tokio::process::Command::from(command).output().await
    }
}
