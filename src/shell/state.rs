//! What a shell remembers between statements.

use std::sync::Arc;
use std::time::Duration;

use super::args::OnError;
use super::conditions::Conditions;
use super::interrupt::Interrupts;
use super::language::Language;
use super::lost::LostPins;
use super::output::Output;
use super::pager::Paging;
use super::render::width::escaped;
use super::render::{Decimals, Expanded, Format, Style};
use super::spool::Spool;
use super::terminal::Terminal;
use super::variables::Variables;
use super::workers::Workers;
use crate::error::Result;
use crate::export::value::Times;
use crate::sql::{Session, SessionConfig, Warehouse};

/// Rows of a table on a terminal: the first twenty and the last twenty.
pub const ROW_CAP: usize = 40;

/// What stands for NULL when nothing else was said.
pub const NULL: &str = "NULL";

/// Cells after which a cell of a table is cut.
pub const CELL_WIDTH: usize = 60;

/// How results look; `\show` lists it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Format of results.
    pub format: Format,
    /// Whether somebody chose it: else the name of a file says its own.
    pub format_chosen: bool,
    /// Records or a grid.
    pub expanded: Expanded,
    /// What stands for NULL in tables.
    pub null: String,
    /// Whether the time is told.
    pub timing: bool,
    /// When to page.
    pub paging: Paging,
    /// Rows of a table on a terminal; None: all.
    pub rows: Option<usize>,
    /// Cells after which a cell of a table is cut, 0 for never; None: [`CELL_WIDTH`] on a terminal. Files hold whole values.
    pub cell_width: Option<usize>,
    /// Borders of ASCII.
    pub ascii: bool,
    /// Neither pins nor notices nor row counts.
    pub quiet: bool,
    /// Whether the first reading of a table pins it for the session.
    pub autopin: bool,
    /// Time a statement gets.
    pub timeout: Option<Duration>,
    /// Language of the shell's words.
    pub language: Language,
    /// Decimals in JSON.
    pub decimals: Decimals,
    /// Whether one line of JSON takes the place of pins, notices and counts.
    pub json_meta: bool,
    /// Whether an output file keeps a result that is not whole.
    pub keep_partial: bool,
}

/// A shell at work.
pub struct Shell {
    /// The session statements run in.
    pub session: Arc<Session>,
    /// How sessions of this shell start.
    pub config: SessionConfig,
    /// Options of the object store, for `\connect`.
    pub store_options: Vec<(String, String)>,
    /// The terminal.
    pub terminal: Terminal,
    /// Whether somebody sits at a prompt.
    pub interactive: bool,
    /// How results look.
    pub settings: Settings,
    /// Variables.
    pub variables: Variables,
    /// File or program of `\o` and `-o`.
    pub output: Option<Output>,
    /// File or program of `\once`.
    pub once: Option<Output>,
    /// Results written to standard output.
    pub printed: u64,
    /// The statement that ran last, for `\watch` and `\explain`.
    pub last_query: Option<String>,
    /// Whether the last statement left rows out by design: files that readers do not see before they are compacted.
    pub hidden_rows: bool,
    /// Pins of the session whose snapshot is no longer retained.
    pub lost: LostPins,
    /// The line of a command that the place in its error points into.
    pub placed: Option<String>,
    /// The last error with its causes.
    pub last_error: Option<String>,
    /// Errors told so far.
    pub errors: u64,
    /// Rows that were not shown.
    pub spool: Option<Spool>,
    /// Where statements run: other threads than those that hear Ctrl-C and the clock.
    pub workers: Workers,
    /// Ctrl-C.
    pub interrupts: Interrupts,
    /// What a script does after an error.
    pub on_error: OnError,
    /// Branches of `\if`.
    pub conditions: Conditions,
    /// Files inside files of `\i`.
    pub depth: usize,
    /// Exit code asked for by `\q` or an error that stops.
    pub quit: Option<u8>,
    /// Exit code of the first error.
    pub failed: u8,
    /// Entries of the prompt's history, oldest first.
    pub history: Vec<String>,
    /// Set when names may have changed, so completion asks again.
    pub names_changed: bool,
}

impl Shell {
    /// Cells of tables.
    pub fn style(&self) -> Style {
        Style {
            null: escaped(&self.settings.null),
            zone: self.session.time_zone().parse().ok(),
            color: self.terminal.color && self.terminal.output,
            ascii: self.settings.ascii,
            cell_width: self.settings.cell_width.unwrap_or(CELL_WIDTH),
            decimals: self.settings.decimals,
            words: Vec::new(),
            digits: Vec::new(),
        }
    }

    /// Times as tables show them.
    pub fn times(&self) -> Times {
        Times { between: ' ', zone: self.style().zone, digits: None }
    }

    /// Opens another warehouse in place of this one.
    pub async fn connect(&mut self, url: &str) -> Result<()> {
        let options = self.store_options.iter().cloned().collect();
        let (url, current) = (url.to_string(), self.session.database());
        // the database that was chosen is one of the warehouse that is left
        let config = SessionConfig { database: None, ..self.config.clone() };
        let opened = async move {
            let warehouse = Warehouse::open(&url, &options).await?;
            let alike = warehouse.catalog().list_databases().await?.contains(&current);
            Session::new(&warehouse, SessionConfig { database: alike.then_some(current), ..config }).await
        };
        // a server may take the connection and never answer
        let session = self.under_guard(opened).await?;
        for output in self.output.iter().chain(&self.once) {
            output.check_outside(session.warehouse())?;
        }
        self.session = Arc::new(session);
        self.names_changed = true;
        self.hidden_rows = false;
        self.lost = LostPins::default();
        Ok(())
    }
}
