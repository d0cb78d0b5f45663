//! `lakepin test`: sqllogictest files over a session, with DataFusion's type letters.
//!
//! A record's text may hold `${NAME}`: variables of the command line, `WAREHOUSE`, then the environment. A statement
//! `\connect URL` opens another warehouse for its connection; `\pin` and `\unpin` do what they do in the shell. Every
//! connection is a session of its own. A text of blanks alone is written `(blank)`, an empty one `(empty)`; `\${` stands
//! for `${`. In plans and errors `WAREHOUSE` stands for where the warehouse lies; data is compared as it is, so a query
//! of file paths says `replace(file_path, '${WAREHOUSE}', …)`.

mod complete;
mod engine;
mod parse;
mod place;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use sqllogictest::{Record, RecordOutput, Runner, strict_column_validator};

pub use complete::{Completed, complete_file};
pub use engine::{Engine, EngineError};
pub use value::Letter;

use crate::error::{Error, Result};
use crate::sql::{SessionConfig, Warehouse};

/// What suites run with.
#[derive(Clone, Default)]
pub struct Options {
    /// The warehouse connections begin in; None: a file says `\connect` first.
    pub warehouse: Option<Warehouse>,
    /// Options of the object store, for `\connect`.
    pub store_options: BTreeMap<String, String>,
    /// How sessions start.
    pub session: SessionConfig,
    /// `${NAME}`.
    pub variables: BTreeMap<String, String>,
    /// For `onlyif` and `skipif`.
    pub labels: Vec<String>,
    /// Time a record gets.
    pub timeout: Option<Duration>,
    /// Whether each connection has threads of its own, so that the clock and the other files go on whatever a record does;
    /// else records run in the runtime of the suites.
    pub own_threads: bool,
}

/// How a file ended.
#[derive(Debug, Clone)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Statements and queries that ran.
    pub records: usize,
    /// Those that did not: by their labels, or behind `halt`.
    pub skipped: usize,
    /// What differs, each with line and difference.
    pub failures: Vec<String>,
}

/// Every `.slt` file of files and folders, sorted, each once however often it is named; one named by itself may be called
/// as it likes.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = found.len();
            walk(path, &mut found)?;
            if found.len() == before {
                return Err(missing(path, "the folder holds no .slt file"));
            }
        } else if path.is_file() {
            found.push(path.clone());
        } else {
            return Err(missing(path, "there is no such file"));
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    Ok(found)
}

/// Whether a file asks something before it opens a warehouse of its own; one that cannot be read is told when it runs.
pub fn needs_warehouse(path: &Path) -> bool {
    let first = parse::records(path).unwrap_or_default().into_iter().find_map(|record| match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql),
        _ => None,
    });
    first.is_some_and(|sql| !sql.trim_start().starts_with("\\connect "))
}

fn missing(path: &Path, message: &str) -> Error {
    Error::not_found(message).with_code("FileNotFound").with_context("file", path.display())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |e: std::io::Error| {
        Error::unavailable(format!("cannot list the folder: {e}")).with_context("file", folder.display())
    };
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "slt") {
            found.push(path);
        }
    }
    Ok(())
}

/// Runs one file; goes on after a record that differs.
pub async fn run_file(path: &Path, options: &Options) -> FileReport {
    let mut report = FileReport { path: path.to_path_buf(), records: 0, skipped: 0, failures: Vec::new() };
    let records = match parse::records(path) {
        Ok(records) => records,
        Err(e) => {
            report.failures.push(format!("error[{}]: {e}", e.code()));
            return report;
        }
    };
    let mut runner = runner(options);
    let mut halted = false;
    for record in records {
        halted |= matches!(record, Record::Halt { .. });
        let counts = matches!(record, Record::Statement { .. } | Record::Query { .. });
        let skipped = if halted {
            true
        } else {
            match runner.run_async(record).await {
                Ok(output) => matches!(output, RecordOutput::Nothing),
                Err(e) => {
                    report.failures.push(e.to_string().trim_end().to_string());
                    false
                }
            }
        };
        match (counts, skipped) {
            (true, true) => report.skipped += 1,
            (true, false) => report.records += 1,
            (false, _) => {}
        }
    }
    runner.shutdown_async().await;
    if report.records + report.skipped == 0 && !halted && report.failures.is_empty() {
        report.failures.push("the file holds no statement and no query".to_string());
    }
    report
}

/// Runs files, some at a time, and hands each report on in order.
pub async fn run_files(files: &[PathBuf], options: &Options, jobs: usize, mut told: impl FnMut(&FileReport)) -> usize {
    let mut failed = 0;
    let mut reports = futures::stream::iter(files).map(|path| run_file(path, options)).buffered(jobs.max(1));
    while let Some(report) = reports.next().await {
        failed += usize::from(!report.failures.is_empty());
        told(&report);
    }
    failed
}

type Connections = Runner<Engine, Box<dyn FnMut() -> futures::future::Ready<Result<Engine, EngineError>> + Send>>;

fn runner(options: &Options) -> Connections {
    let engine = options.clone();
    let connect: Box<dyn FnMut() -> futures::future::Ready<Result<Engine, EngineError>> + Send> =
        Box::new(move || futures::future::ready(Ok(Engine::new(engine.clone()))));
    let mut runner = Runner::new(connect);
    runner.with_column_validator(strict_column_validator);
    for label in &options.labels {
        runner.add_label(label);
    }
    for (name, value) in &options.variables {
        runner.set_var(name.clone(), value.clone());
    }
    runner
}
