//! The command line.

mod proofs;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as ClapArgs, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use self::proofs::{Check, Conflicts, Diff, Keys, Rate};
use super::language::Language;
use super::render::{Decimals, Format};
use super::variables::quoted;

/// Query Apache Paimon tables at a pinned snapshot.
#[derive(Debug, Parser)]
#[command(name = "lakepin", version, max_term_width = 110, after_help = AFTER_HELP)]
pub struct Args {
    /// What every way of running shares.
    #[command(flatten)]
    pub common: Common,
    /// `demo`, `test`, `counts` and their like; without one the shell runs.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// `-c` and `-f` in the order they were given.
    #[arg(skip)]
    pub inputs: Vec<Input>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, equal; 1 SQL or run error; 2 usage or missing file; 3 different; 4 pin lost or expired, data file lost; \
5 timeout or budget, \\watch waited in vain; 6 not committed, superseded, horizon not reached; 7 not known; 130 interrupted; 143 terminated; 129 hung up.
Without -c, -f and a terminal, statements are read from standard input.";

/// Options of every way of running.
#[derive(Debug, Clone, ClapArgs)]
pub struct Common {
    /// Warehouse: a path, file:// or s3:// URL
    #[arg(short, long, env = "LAKEPIN_WAREHOUSE", global = true, value_name = "URL")]
    pub warehouse: Option<String>,
    /// Run this SQL (or backslash command) and exit; repeatable
    #[arg(short, long = "command", global = true, value_name = "SQL", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// Run the statements of this file (- is standard input) and exit; repeatable
    #[arg(short, long = "file", global = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Format of results [default: table on a terminal, else csv]
    #[arg(long, global = true, value_enum, env = "LAKEPIN_FORMAT")]
    pub format: Option<Format>,
    /// What a script does after an error: stop ends it with the code of the error, continue goes on and ends with 1
    #[arg(long, global = true, value_enum, env = "LAKEPIN_ON_ERROR", default_value_t = OnError::Stop)]
    pub on_error: OnError,
    /// Set a variable for :name; repeatable
    #[arg(short = 'v', long = "variable", global = true, value_name = "NAME=VALUE", value_parser = pair)]
    pub variables: Vec<(String, String)>,
    /// Value of $NAME in statements, never more than a literal; repeatable
    #[arg(long = "param", global = true, value_name = "NAME=VALUE", value_parser = pair)]
    pub parameters: Vec<(String, String)>,
    /// Current database
    #[arg(short, long, global = true, env = "LAKEPIN_DATABASE")]
    pub database: Option<String>,
    /// Session time zone, such as +08:00 or Asia/Shanghai
    #[arg(long, global = true, env = "LAKEPIN_TIMEZONE", value_name = "ZONE", allow_hyphen_values = true)]
    pub timezone: Option<String>,
    /// Memory for merging, sorting and hashing: 4GiB, 512MB, none [default: a quarter of the machine]
    #[arg(long, global = true, env = "LAKEPIN_MEMORY", value_name = "SIZE", value_parser = memory)]
    pub memory: Option<Memory>,
    /// Give a statement this long: 90s, 5m, 1h; none: all the time it takes [default: none]
    #[arg(long, global = true, env = "LAKEPIN_TIMEOUT", value_name = "TIME", value_parser = time_limit)]
    pub timeout: Option<TimeLimit>,
    /// Refuse a statement that would read more data files, before it reads any; none: no limit [default: none]
    #[arg(long, global = true, env = "LAKEPIN_MAX_FILES", value_name = "N", value_parser = max_files)]
    pub max_files: Option<Limit>,
    /// Refuse a statement whose data files are larger together, before it reads any: 10GB, 512MiB; none: no limit
    /// [default: none]
    #[arg(long, global = true, env = "LAKEPIN_MAX_BYTES_SCANNED", value_name = "SIZE", value_parser = max_bytes)]
    pub max_bytes_scanned: Option<Limit>,
    /// Read this file before the prompt instead of ~/.config/lakepin/init.sql
    #[arg(long, global = true, env = "LAKEPIN_RC", value_name = "FILE")]
    pub rc: Option<PathBuf>,
    /// Read no file before the prompt, whatever --rc says
    #[arg(long, global = true, env = "LAKEPIN_NO_RC", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_rc: bool,
    /// Write results to this file, aside first, renamed when all went well; |COMMAND writes to a program
    #[arg(short, long, global = true, env = "LAKEPIN_OUTPUT", value_name = "FILE")]
    pub output: Option<String>,
    /// Keep an output file that is not whole
    #[arg(long, global = true, env = "LAKEPIN_KEEP_PARTIAL", value_parser = clap::builder::FalseyValueParser::new())]
    pub keep_partial: bool,
    /// Decimals in JSON
    #[arg(long, global = true, value_enum, env = "LAKEPIN_JSON_DECIMAL", default_value_t = Decimals::String)]
    pub json_decimal: Decimals,
    /// After each result one line of JSON on standard error, in place of pins, notices and counts: columns, rows,
    /// truncated, snapshots
    #[arg(long, global = true, env = "LAKEPIN_JSON_META", value_parser = clap::builder::FalseyValueParser::new())]
    pub json_meta: bool,
    /// Print neither pins nor notices nor row counts
    #[arg(short, long, global = true, env = "LAKEPIN_QUIET", value_parser = clap::builder::FalseyValueParser::new())]
    pub quiet: bool,
    /// Language of the shell's words; codes of errors stay
    #[arg(long, global = true, value_enum, env = "LAKEPIN_LANG", default_value_t = Language::En)]
    pub lang: Language,
    /// Borders of +, - and |
    #[arg(long, global = true, env = "LAKEPIN_ASCII", value_parser = clap::builder::FalseyValueParser::new())]
    pub ascii: bool,
    /// What stands for NULL in tables [default: NULL]
    #[arg(long, global = true, env = "LAKEPIN_NULL", value_name = "TEXT", allow_hyphen_values = true)]
    pub null: Option<String>,
    /// Rows of a table on a terminal, the first and the last ones; 0 or all: every row [default: 40]
    #[arg(long, global = true, env = "LAKEPIN_ROWS", value_name = "N", value_parser = rows)]
    pub rows: Option<Rows>,
    /// Cells after which a cell of a table is cut, 0 for never [default: 60]
    #[arg(long, global = true, env = "LAKEPIN_CELL_WIDTH", value_name = "N")]
    pub cell_width: Option<usize>,
    /// Tell the time of each statement [default: at the prompt]
    #[arg(long, global = true, env = "LAKEPIN_TIMING", value_parser = clap::builder::FalseyValueParser::new())]
    pub timing: bool,
    /// Pin each table at what its first statement read
    #[arg(long, global = true, env = "LAKEPIN_AUTOPIN", value_parser = clap::builder::FalseyValueParser::new())]
    pub autopin: bool,
    /// Never start a pager
    #[arg(long, global = true, env = "LAKEPIN_NO_PAGER", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_pager: bool,
    /// Colours
    #[arg(long, global = true, value_enum, env = "LAKEPIN_COLOR", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// Option of the object store, such as s3.endpoint=http://…; repeatable
    #[arg(long = "option", global = true, value_name = "KEY=VALUE", value_parser = pair)]
    pub options: Vec<(String, String)>,
}

/// What to do other than running the shell.
#[derive(Debug, Clone, Subcommand)]
pub enum Action {
    /// Make the demo warehouse and open the shell in it; without a terminal, print the tour
    Demo {
        /// Where to make it: absent, empty or made by it before
        dir: Option<PathBuf>,
    },
    /// Run sqllogictest files, or all of a folder
    Test(Suites),
    /// Raw, hidden, deleted, superseded and final rows of a table, side by side
    Counts {
        /// Table: t, db.t or t@v3
        table: String,
        /// Condition over its columns
        #[arg(allow_negative_numbers = true)]
        condition: Vec<String>,
    },
    /// Commits of a table: who, which, when, files and rows
    Commits {
        /// Table: t or db.t
        table: String,
        /// Only those of this user
        #[arg(long)]
        user: Option<String>,
    },
    /// Did a commit land? Exit code 0: yes, 6: no, or superseded, 7: it cannot be said
    Committed {
        /// Table: t or db.t
        table: String,
        /// Commit user
        user: String,
        /// Commit identifier, or batch
        identifier: String,
        /// A snapshot that was there before the commit was first tried
        #[arg(long)]
        since: Option<i64>,
    },
    /// What is wrong in a table's history; exit code 1 when an error was found
    Check(Check),
    /// Commits that met: races, overlaps, overwrites
    Conflicts(Conflicts),
    /// Commits by minute, or by another window, and user
    Rate(Rate),
    /// Rows that differ between two states of a table; exit code 3 when some do
    Diff(Diff),
    /// Keys that one commit brought, changed or removed; none of a compaction
    Keys(Keys),
    /// Files that nothing kept names, as evidence; nothing is deleted
    Orphans {
        /// Table: t or db.t
        table: String,
    },
    /// Until when snapshots are kept, and what protects them
    Retention {
        /// Table: t or db.t
        table: String,
    },
    /// What statements read, and when: the read journal
    Reads {
        /// Only of this table: t or db.t
        table: Option<String>,
    },
    /// Wait until a snapshot satisfies all conditions; exit code 5 when none came in time
    Wait {
        /// Table: t or db.t; or several with commas between
        table: String,
        /// A watermark at or after this time, or milliseconds
        #[arg(long)]
        watermark: Option<String>,
        /// This commit or a later one of its user: user:identifier; repeatable
        #[arg(long)]
        commit: Vec<String>,
        /// At least this snapshot
        #[arg(long)]
        snapshot: Option<i64>,
        /// This tag
        #[arg(long)]
        tag: Option<String>,
        /// A query that answers true, over these tables
        #[arg(long, value_name = "SELECT")]
        query: Option<String>,
        /// Longest pause between two looks [default: 2s]
        #[arg(long)]
        poll: Option<String>,
        /// Print the pin alone, as db.t@v4711, a line for each table
        #[arg(long)]
        print_pin: bool,
    },
    /// How far each user of a table has come: last commit, identifier, watermark
    Lag {
        /// Table: t or db.t
        table: String,
        /// The checkpoint that they should have reached
        #[arg(long)]
        checkpoint: Option<i64>,
    },
    /// Every kept version of a key
    Key {
        /// Table: t or db.t
        table: String,
        /// column=value of the key's columns; then: from snapshot, to snapshot, uncommitted, changelog
        #[arg(required = true)]
        key: Vec<String>,
    },
    /// Why a key is there, is not, or has another value
    Why {
        /// Table: t or db.t
        table: String,
        /// column=value of the key's columns; then: expected column=value, at snapshot
        #[arg(required = true)]
        key: Vec<String>,
    },
    /// Compare tables with their sources as a file of checks says; exit code 0 when all are as expected, 3 when not
    Reconcile(Reconcile),
    /// Which layer is responsible for a difference, with proof; exit codes as reconcile
    Verdict(Verdict),
}

impl Action {
    /// The command of the shell that it is a twin of. `timeout`: what `--timeout` says.
    pub fn line(&self, timeout: Option<TimeLimit>) -> Option<String> {
        let option =
            |name: &str, value: Option<String>| value.map(|value| format!(" {name} {value}")).unwrap_or_default();
        Some(match self {
            Self::Demo { .. } | Self::Test(_) => return None,
            Self::Reconcile(asked) => asked.line(),
            Self::Verdict(asked) => asked.line(),
            Self::Counts { table, condition } => format!("\\counts {table} {}", condition.join(" ")),
            Self::Commits { table, user } => {
                format!("\\commits {}{}", word(table), option("--user", user.as_deref().map(value)))
            }
            Self::Committed { table, user, identifier, since } => {
                let since = option("--since", since.map(|id| id.to_string()));
                format!("\\committed {} {} {}{since}", word(table), value(user), value(identifier))
            }
            Self::Check(asked) => asked.line(),
            Self::Conflicts(asked) => asked.line(),
            Self::Rate(asked) => asked.line(),
            Self::Diff(asked) => asked.line(),
            Self::Keys(asked) => asked.line(),
            Self::Orphans { table } => format!("\\orphans {}", word(table)),
            Self::Retention { table } => format!("\\retention {}", word(table)),
            Self::Reads { table } => format!("\\reads {}", table.as_deref().map(word).unwrap_or_default()),
            Self::Wait { table, watermark, commit, snapshot, tag, query, poll, print_pin } => {
                let mut line = format!("\\wait {}", word(table));
                line += &option("--watermark", watermark.as_deref().map(value));
                for commit in commit {
                    line += &option("--commit", Some(value(commit)));
                }
                line += &option("--snapshot", snapshot.map(|id| id.to_string()));
                line += &option("--tag", tag.as_deref().map(value));
                line += &option("--query", query.as_deref().map(value));
                line += &option("--poll", poll.as_deref().map(value));
                if let Some(TimeLimit(Some(timeout))) = timeout {
                    line += &format!(" --timeout {}ms", timeout.as_millis());
                }
                if *print_pin {
                    line += " --print-pin";
                }
                line
            }
            Self::Lag { table, checkpoint } => {
                format!("\\lag {}{}", word(table), option("--checkpoint", checkpoint.map(|id| id.to_string())))
            }
            Self::Key { table, key } => format!("\\key {} {}", word(table), values(key)),
            Self::Why { table, key } => format!("\\why {} {}", word(table), values(key)),
        })
    }
}

/// `column=value` words, each value in quotes.
fn values(words: &[String]) -> String {
    let quoted = words.iter().map(|word| match word.split_once('=') {
        Some((name, value)) => format!("{name}={}", quoted(value, '\'')),
        None => word.clone(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A value as the shell reads it back, whatever is in it: quotes, blanks, the colon of a variable.
fn value(text: &str) -> String {
    quoted(text, '"')
}

/// A word of a command line as the shell reads it: in quotes where it has blanks, unless it brings quotes of its own.
fn word(text: &str) -> String {
    let plain = !text.contains(char::is_whitespace) || text.contains(['"', '`', '\'']);
    if plain { text.to_string() } else { format!("'{text}'") }
}

/// Options of `reconcile`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Reconcile {
    /// TOML file of checks
    pub file: PathBuf,
    /// Checks of it [default: all]
    pub checks: Vec<String>,
    /// State of the left sides, in place of their own: v3, tag:eod, ts:2026-04-16T10:00:00+08:00; of one table alone:
    /// pay.t@v3, which may be given once for each table
    #[arg(long, value_name = "PIN")]
    pub at: Vec<String>,
    /// Write every finding into this folder, a file for each class
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// csv, ndjson or parquet
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub out_format: String,
    /// Tell causes too
    #[arg(long)]
    pub why: bool,
}

impl Reconcile {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        let quoted = |text: &str| format!(" '{}'", text.replace('\'', "''"));
        let mut line = format!("\\reconcile{}", quoted(&self.file.display().to_string()));
        self.checks.iter().for_each(|check| line.push_str(&quoted(check)));
        self.at.iter().for_each(|at| line.push_str(&format!(" --at{}", quoted(at))));
        if let Some(out) = &self.out {
            line.push_str(&format!(
                " --out{} --out-format{}",
                quoted(&out.display().to_string()),
                quoted(&self.out_format)
            ));
        }
        if self.why {
            line.push_str(" --why");
        }
        line
    }
}

/// Options of `verdict`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Verdict {
    /// TOML file of checks; or a table, with --their-count
    pub what: String,
    /// Checks of it [default: all]
    pub checks: Vec<String>,
    /// State of the left sides, in place of their own: v3, tag:eod, ts:2026-04-16T10:00:00+08:00; of one table alone:
    /// pay.t@v3, which may be given once for each table
    #[arg(long, value_name = "PIN")]
    pub at: Vec<String>,
    /// Write text, JSON and a page of its own for each check into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What is printed: text, json or html [default: text; json with --format json]
    #[arg(long = "as", value_name = "FORM")]
    pub form: Option<String>,
    /// Findings that are looked up one by one [default: 100]
    #[arg(long, value_name = "N")]
    pub keys: Option<u64>,
    /// What the other side counts
    #[arg(long, value_name = "N")]
    pub their_count: Option<u64>,
}

impl Verdict {
    /// The line of the shell that does it.
    pub fn line(&self) -> String {
        let words: Vec<String> = std::iter::once(&self.what).chain(&self.checks).cloned().collect();
        let at = self.at.iter().map(|at| ("--at", Some(at.clone())));
        let options = [
            ("--out", self.out.as_ref().map(|folder| folder.display().to_string())),
            ("--as", self.form.clone()),
            ("--keys", self.keys.map(|keys| keys.to_string())),
            ("--their-count", self.their_count.map(|count| count.to_string())),
        ];
        super::commands::verdict_line(&words, &at.chain(options).collect::<Vec<_>>())
    }
}

/// Options of `test`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Suites {
    /// Files or folders
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Write the results found into the files
    #[arg(long)]
    pub complete: bool,
    /// Label for onlyif and skipif; repeatable
    #[arg(long = "label")]
    pub labels: Vec<String>,
    /// Files at a time
    #[arg(long, default_value_t = 4)]
    pub jobs: usize,
}

/// One `-c` or `-f`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Text of `-c`.
    Text(String),
    /// File of `-f`, `-` for standard input.
    File(String),
    /// What an action runs.
    Own(String),
}

/// What a script does after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Ends.
    Stop,
    /// Goes on with the next statement.
    Continue,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Rows of a table on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Every row.
    All,
    /// This many.
    Some(usize),
}

/// What a statement may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Anything.
    None,
    /// This much; nothing at all is none.
    Some(NonZeroUsize),
}

/// Time a statement gets; None: all it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

impl Limit {
    /// As settings have it, where 0 is no limit.
    pub fn or_zero(limit: Option<Self>) -> usize {
        match limit {
            None | Some(Self::None) => 0,
            Some(Self::Some(limit)) => limit.get(),
        }
    }
}

/// A memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// No limit.
    None,
    /// This many bytes.
    Bytes(usize),
}

impl Args {
    /// Parses; the error is printed by clap and carries its exit code.
    pub fn try_parse_all(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = without_empty_variables(Self::command());
        let matches = command.try_get_matches_from_mut(args)?;
        let mut parsed = Self::from_arg_matches(&matches)?;
        parsed.inputs = inputs(&matches);
        // one that the environment names is that of every day
        let named = |matches: &ArgMatches| matches.value_source("warehouse") == Some(ValueSource::CommandLine);
        let named = named(&matches) || matches.subcommand().is_some_and(|(_, inner)| named(inner));
        if named && matches!(parsed.action, Some(Action::Demo { .. })) {
            let message = "demo makes its own warehouse: -w names another\nname the folder behind it: lakepin demo DIR";
            return Err(command.error(ErrorKind::ArgumentConflict, message));
        }
        Ok(parsed)
    }
}

/// A variable that is set to nothing is none.
fn without_empty_variables(command: Command) -> Command {
    command.mut_args(|argument| {
        let empty = argument.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
        if empty { argument.env(Resettable::Reset) } else { argument }
    })
}

/// `-c` and `-f` in the order they were given, wherever the subcommand stands.
fn inputs(matches: &ArgMatches) -> Vec<Input> {
    let inner = matches.subcommand().map_or(matches, |(_, inner)| inner);
    let of = |id: &str, make: fn(String) -> Input| -> Vec<(usize, Input)> {
        let values = inner.get_many::<String>(id).into_iter().flatten().cloned().map(make);
        inner.indices_of(id).into_iter().flatten().zip(values).collect()
    };
    let mut all = of("commands", Input::Text);
    all.extend(of("files", Input::File));
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, input)| input).collect()
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.to_string())),
        _ => Err("write name=value".to_string()),
    }
}

/// `90`, `90s`, `1500ms`, `5m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit {other:?}: write 90s, 5m or 1h")),
    };
    let number: f64 = number.parse().map_err(|_| "write 90s, 5m or 1h".to_string())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|e| e.to_string())
}

/// `90s`, `none`; what ends at once is no limit anybody means.
pub fn time_limit(text: &str) -> Result<TimeLimit, String> {
    match text.trim() {
        none if none.eq_ignore_ascii_case("none") || none.eq_ignore_ascii_case("off") => Ok(TimeLimit(None)),
        time => match duration(time)? {
            Duration::ZERO => Err("more than 0, or none for no limit".to_string()),
            limit => Ok(TimeLimit(Some(limit))),
        },
    }
}

/// `4GiB`, `512MB`, `none`.
fn memory(text: &str) -> Result<Memory, String> {
    if text.trim().eq_ignore_ascii_case("none") { Ok(Memory::None) } else { size(text).map(Memory::Bytes) }
}

/// `10`, `none`; a limit of 0 would be read as none by some and as nothing at all by others.
fn limit(text: &str, amount: impl Fn(&str) -> Result<usize, String>) -> Result<Limit, String> {
    if text.trim().eq_ignore_ascii_case("none") {
        return Ok(Limit::None);
    }
    NonZeroUsize::new(amount(text)?).map(Limit::Some).ok_or_else(|| "at least 1, or none for no limit".to_string())
}

fn max_files(text: &str) -> Result<Limit, String> {
    limit(text, |text| text.trim().parse().map_err(|_| "write a number or none".to_string()))
}

fn max_bytes(text: &str) -> Result<Limit, String> {
    limit(text, size)
}

/// `40`, `all`.
pub fn rows(text: &str) -> Result<Rows, String> {
    match text.trim() {
        "0" => Ok(Rows::All),
        all if all.eq_ignore_ascii_case("all") => Ok(Rows::All),
        number => number.parse().map(Rows::Some).map_err(|_| "write a number or all".to_string()),
    }
}

/// `4GiB`, `512MB`, `1000`.
pub fn size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: usize = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "kb" => 1000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        other => return Err(format!("unknown unit {other:?}: write 4GiB or 512MB")),
    };
    let number: usize = number.parse().map_err(|_| "write 4GiB or 512MB".to_string())?;
    number.checked_mul(factor).ok_or_else(|| "too many bytes".to_string())
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn parse(line: &str) -> Args {
        Args::try_parse_all(line.split(' ').map(OsString::from)).unwrap()
    }

    #[test]
    fn commands_and_files_keep_their_order() {
        let args = parse("lakepin -w /w -c one -f a.sql -c two --format ndjson");
        assert_eq!(args.inputs, [Input::Text("one".into()), Input::File("a.sql".into()), Input::Text("two".into())]);
        assert_eq!(args.common.format, Some(Format::Ndjson));
    }

    #[test]
    fn options_stand_before_or_after_the_subcommand() {
        for line in ["lakepin -d pay -c x demo d", "lakepin demo d -d pay -c x"] {
            let args = parse(line);
            assert_eq!(args.inputs, [Input::Text("x".into())], "{line}");
            assert_eq!(args.common.database.as_deref(), Some("pay"), "{line}");
        }
        for line in ["lakepin -w /w demo d", "lakepin demo d -w /w"] {
            let refused = Args::try_parse_all(line.split(' ').map(OsString::from)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ArgumentConflict, "{line}");
        }
    }

    /// A comment, an option of their own or a sign begins what follows.
    #[test]
    fn values_may_begin_with_a_hyphen() {
        let args = ["lakepin", "-c", "-- first\nselect 1", "--timezone", "-08:00", "--null", "-", "-q", "-c", "--x"];
        let args = Args::try_parse_all(args.map(OsString::from)).unwrap();
        assert_eq!(args.inputs, [Input::Text("-- first\nselect 1".into()), Input::Text("--x".into())]);
        assert_eq!((args.common.timezone.as_deref(), args.common.null.as_deref()), (Some("-08:00"), Some("-")));
        assert!(args.common.quiet);
        let Some(Action::Counts { condition, .. }) = parse("lakepin counts t amount > -5 --quiet").action else {
            panic!("no counts");
        };
        assert_eq!(condition, ["amount", ">", "-5"]);
    }

    #[test]
    fn limit_of_nothing_is_refused() {
        let limit = |limit| Limit::Some(NonZeroUsize::new(limit).unwrap());
        assert_eq!((max_files("3"), max_bytes("1kB")), (Ok(limit(3)), Ok(limit(1000))));
        assert_eq!((max_files("none"), max_bytes("None")), (Ok(Limit::None), Ok(Limit::None)));
        for zero in [max_files("0"), max_bytes("0"), max_bytes("0MB")] {
            assert_eq!(zero, Err("at least 1, or none for no limit".to_string()));
        }
        assert!(max_files("soon").is_err() && max_bytes("soon").is_err());
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(memory("4GiB"), Ok(Memory::Bytes(4 << 30)));
        assert_eq!(memory("512MB"), Ok(Memory::Bytes(512_000_000)));
        assert_eq!(memory("none"), Ok(Memory::None));
        assert_eq!((memory("512"), size("10GB")), (Ok(Memory::Bytes(512)), Ok(10_000_000_000)));
        assert!(memory("4 apples").is_err() && size("none").is_err());
        assert_eq!((rows("all"), rows("0"), rows("7")), (Ok(Rows::All), Ok(Rows::All), Ok(Rows::Some(7))));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert!(duration("soon").is_err() && time_limit("soon").is_err() && time_limit("0s").is_err());
        assert_eq!(
            (time_limit("5m"), time_limit("None")),
            (Ok(TimeLimit(Some(Duration::from_secs(300)))), Ok(TimeLimit(None)))
        );
    }

    #[test]
    fn values_of_twins_are_read_back_as_they_were_given() {
        use crate::shell::commands::{unquoted, words};
        let user = "o'neil; DROP \"x\" :who `y`";
        let variables = [("who".to_string(), "secret".to_string())].into();
        let told = |args: &[&str]| {
            let all = ["lakepin"].iter().chain(args).map(OsString::from);
            let line = Args::try_parse_all(all).unwrap().action.unwrap().line(None).unwrap();
            words(&line, &variables).unwrap()
        };
        let commit = format!("{user}:7");
        let found = told(&["committed", "pay.t", user, "7", "--since", "3"]);
        assert_eq!(found[1], "pay.t");
        assert_eq!([unquoted(&found[2]), unquoted(&found[3])], [user, "7"]);
        assert_eq!(found[4..], ["--since", "3"]);
        assert_eq!(unquoted(&told(&["commits", "t", "--user", user])[3]), user);
        let found = told(&["wait", "t", "--commit", &commit, "--tag", user, "--watermark", "2026-04-16 10:00:00"]);
        assert_eq!([unquoted(&found[3]), unquoted(&found[5])], ["2026-04-16 10:00:00", commit.as_str()]);
        assert_eq!(unquoted(&found[7]), user);
    }

    /// README says so.
    #[test]
    fn every_option_that_is_given_once_has_a_variable() {
        let command = Args::command();
        let mut once = 0;
        for argument in command.get_arguments() {
            if matches!(argument.get_action(), ArgAction::Append | ArgAction::Help | ArgAction::Version) {
                continue;
            }
            let long = argument.get_long().unwrap_or_default().to_uppercase().replace('-', "_");
            let env = argument.get_env().map(|name| name.to_string_lossy().into_owned());
            assert_eq!(env, Some(format!("LAKEPIN_{long}")));
            once += 1;
        }
        assert!(once > 20, "{once} options");
    }

    #[test]
    fn a_verdict_is_a_line_of_the_shell() {
        let Some(action) = parse("lakepin verdict pay.t --at v3 --their-count 503 --format json").action else {
            panic!("no verdict");
        };
        assert_eq!(action.line(None).unwrap(), "\\verdict 'pay.t' --at 'v3' --their-count '503'");
    }

    #[test]
    fn command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
