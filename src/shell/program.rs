//! From arguments to an exit code.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};

use super::args::{Action, Args, Common, Input, Limit, Memory, OnError, Rows};
use super::conditions::Conditions;
use super::interrupt::Interrupts;
use super::language::{Language, Text, told};
use super::lost::LostPins;
use super::output::Output;
use super::pager::Paging;
use super::render::{Expanded, Format};
use super::report::{describe, eprint};
use super::state::{NULL, ROW_CAP, Settings, Shell};
use super::terminal::Terminal;
use super::workers::{STACK, Workers};
use super::{demo, exit, repl};
use crate::error::{Error, ErrorKind, Result, keep_caught_panics_quiet};
use crate::sql::{Session, SessionConfig, Warehouse};

/// Runs the program, on a thread of its own: how large the stack of the first one is, is not ours to say.
pub fn main() -> ExitCode {
    keep_caught_panics_quiet();
    match thread::Builder::new().name("main".to_string()).stack_size(STACK).spawn(program).map(JoinHandle::join) {
        Ok(Ok(code)) => code,
        // it was told where it happened
        Ok(Err(_)) => ExitCode::from(exit::PANICKED),
        Err(e) => no_threads(&e),
    }
}

fn no_threads(error: &io::Error) -> ExitCode {
    eprint(&format!("error[Internal]: cannot start threads: {error}\n"));
    ExitCode::from(exit::FAILED)
}

fn program() -> ExitCode {
    let args = match Args::try_parse_all(std::env::args_os()) {
        Ok(args) => args,
        Err(e) => {
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    let language = args.common.lang;
    let threads = match Threads::start() {
        Ok(threads) => threads,
        Err(e) => return no_threads(&e),
    };
    let code = match run(args, &threads) {
        Ok(code) => code,
        Err(error) => {
            eprint(&describe(&error, None, false, language));
            exit::code_of(&error)
        }
    };
    // what was cancelled may still be on its way out
    super::output::leave_unfinished();
    threads.clock.shutdown_background();
    ExitCode::from(code)
}

/// The threads of the program: statements may keep every worker busy, and Ctrl-C and the clock are still heard.
pub(super) struct Threads {
    /// Those of statements.
    pub(super) workers: Workers,
    /// That of Ctrl-C and the clock.
    pub(super) clock: Runtime,
}

impl Threads {
    /// Starts them.
    pub(super) fn start() -> std::io::Result<Self> {
        Ok(Self {
            workers: Workers::start()?,
            clock: Builder::new_multi_thread().worker_threads(1).thread_stack_size(STACK).enable_all().build()?,
        })
    }
}

fn run(args: Args, threads: &Threads) -> Result<u8> {
    let Args { mut common, action, inputs } = args;
    let terminal = Terminal::detect(common.color);
    let prompts = terminal.input && terminal.output && inputs.is_empty();
    if let Some(action) = &action
        && !matches!(action, Action::Demo { .. })
        && !inputs.is_empty()
    {
        return Err(Error::invalid("-c and -f go with the shell and with demo, not with test, counts and their like")
            .with_code("Usage"));
    }
    if let Some(line) = action.as_ref().and_then(|action| action.line(common.timeout)) {
        if line.contains(['\n', '\r']) {
            return Err(Error::invalid("no argument of a subcommand may hold a line break").with_code("Usage"));
        }
        // a gate that is given up says why: the time of its statement is its own
        if matches!(action, Some(Action::Wait { .. })) {
            common.timeout = None;
        }
        return scripted(&common, vec![Input::Own(line)], threads);
    }
    match action {
        Some(Action::Test(suites)) => threads.clock.block_on(test(&common, &suites)),
        Some(Action::Demo { dir }) => {
            let folder = dir.unwrap_or_else(demo::default_folder);
            demo::make(&folder)?;
            common.warehouse = Some(folder.display().to_string());
            common.timezone.get_or_insert_with(|| demo::ZONE.to_string());
            common.database.get_or_insert_with(|| "pay".to_string());
            if prompts {
                interactive(&common, Some((demo::WELCOME, folder)), threads)
            } else if inputs.is_empty() {
                common.format.get_or_insert(Format::Table);
                scripted(&common, vec![Input::Own("\\tour".to_string())], threads)
            } else {
                scripted(&common, inputs, threads)
            }
        }
        _ if prompts => interactive(&common, None, threads),
        _ if inputs.is_empty() => scripted(&common, vec![Input::File("-".to_string())], threads),
        _ => scripted(&common, inputs, threads),
    }
}

fn session_config(common: &Common) -> SessionConfig {
    let memory_limit = match common.memory {
        Some(Memory::None) => None,
        Some(Memory::Bytes(bytes)) => Some(bytes),
        None => quarter_of_memory(),
    };
    SessionConfig {
        database: common.database.clone(),
        time_zone: common.timezone.clone(),
        memory_limit,
        max_files: Limit::or_zero(common.max_files),
        max_bytes_scanned: Limit::or_zero(common.max_bytes_scanned),
        parameters: common.parameters.iter().cloned().collect(),
        journal: super::history::journal(),
        ..SessionConfig::default()
    }
}

/// A quarter of the machine's memory, where it says.
fn quarter_of_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kilobytes.saturating_mul(1024) / 4).max(256 << 20))
}

fn named_warehouse(common: &Common) -> Result<&str> {
    match common.warehouse.as_deref() {
        Some(url) if !url.is_empty() => Ok(url),
        _ => Err(Error::invalid("no warehouse is named")
            .with_code("Usage")
            .with_hint("give a path or URL with -w or LAKEPIN_WAREHOUSE, or try: lakepin demo")),
    }
}

/// A shell on the warehouse of the command line.
pub(super) async fn open(common: &Common, threads: &Threads, interactive: bool) -> Result<Shell> {
    let terminal = Terminal::detect(common.color);
    let url = named_warehouse(common)?;
    let options: BTreeMap<String, String> = common.options.iter().cloned().collect();
    Warehouse::check_options(&options)?;
    let warehouse = Warehouse::open(url, &options).await?;
    let config = session_config(common);
    let session = Arc::new(Session::new(&warehouse, config.clone()).await?);
    if !common.quiet && !common.json_meta {
        tell_no_database(&session, common.lang).await?;
    }
    let format = common.format.unwrap_or(if terminal.output { Format::Table } else { Format::Csv });
    let output =
        common.output.as_deref().map(|name| Output::open(name, common.keep_partial, &warehouse)).transpose()?;
    Ok(Shell {
        session,
        config,
        store_options: common.options.clone(),
        terminal,
        interactive,
        settings: Settings {
            format,
            format_chosen: common.format.is_some(),
            expanded: Expanded::Auto,
            null: common.null.clone().unwrap_or_else(|| NULL.to_string()),
            timing: interactive || common.timing,
            paging: if common.no_pager { Paging::Off } else { Paging::Auto },
            rows: match common.rows {
                None => Some(ROW_CAP),
                Some(Rows::All) => None,
                Some(Rows::Some(rows)) => Some(rows),
            },
            cell_width: common.cell_width,
            ascii: common.ascii,
            quiet: common.quiet,
            autopin: common.autopin,
            timeout: common.timeout.and_then(|limit| limit.0),
            language: common.lang,
            decimals: common.json_decimal,
            json_meta: common.json_meta,
            keep_partial: common.keep_partial,
        },
        variables: common.variables.iter().cloned().collect(),
        output,
        once: None,
        printed: 0,
        last_query: None,
        hidden_rows: false,
        lost: LostPins::default(),
        placed: None,
        last_error: None,
        errors: 0,
        spool: None,
        workers: threads.workers.clone(),
        interrupts: Interrupts::listen(!interactive),
        on_error: common.on_error,
        conditions: Conditions::default(),
        depth: 0,
        quit: None,
        failed: exit::DONE,
        history: Vec::new(),
        names_changed: false,
    })
}

/// Any folder can be opened; one without a database is rarely the one that was meant.
pub(super) async fn tell_no_database(session: &Session, language: Language) -> Result<()> {
    if !session.databases().await?.is_empty() {
        return Ok(());
    }
    let text = told!(
        language,
        "{url} holds no database: those of a warehouse are folders NAME.db",
        "{url} 里没有数据库：仓库的数据库是名为 NAME.db 的目录",
        url = session.warehouse().url()
    );
    eprint(&format!("{}{text}\n", super::pager::notice_mark(language)));
    Ok(())
}

/// Tells why nothing could be opened; what the command line names wrongly is a mistake of usage, whatever it is called in
/// a statement.
fn not_opened(error: &Error, common: &Common) -> u8 {
    eprint(&describe(error, None, false, common.lang));
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Unsupported => exit::USAGE,
        _ => exit::code_of(error),
    }
}

fn scripted(common: &Common, inputs: Vec<Input>, threads: &Threads) -> Result<u8> {
    threads.clock.block_on(async {
        // a file that is not there is known before anything runs
        for input in &inputs {
            if let Input::File(path) = input
                && path != "-"
                && !Path::new(path).is_file()
            {
                // pipes and devices are read as files are
                let what = match Path::new(path) {
                    folder if folder.is_dir() => "it is a folder, not a file",
                    other if other.exists() => continue,
                    _ => "there is no such file",
                };
                return Err(Error::not_found(what).with_code("FileNotFound").with_context("file", path));
            }
        }
        let mut shell = match open(common, threads, false).await {
            Ok(shell) => shell,
            Err(error) => return Ok(not_opened(&error, common)),
        };
        let several = inputs.iter().filter(|input| matches!(input, Input::Text(_))).count() > 1;
        let mut texts = 0;
        for input in inputs {
            match input {
                Input::Text(text) => {
                    texts += 1;
                    let name = if several { format!("-c {texts}") } else { "-c".to_string() };
                    shell.run_text(&text, &name).await;
                }
                // what no one wrote into a script has no place in one
                Input::Own(line) => shell.run_text(&line, "").await,
                Input::File(path) if path == "-" => {
                    shell.run_lines(std::io::BufReader::new(std::io::stdin()), "standard input").await;
                }
                Input::File(path) => {
                    if let Err(error) = shell.run_file(&PathBuf::from(path)).await {
                        shell.fail(&error, None);
                    }
                }
            }
            if shell.quit.is_some() {
                break;
            }
        }
        Ok(close(&mut shell))
    })
}

/// The output file gets its name when all went well.
fn close(shell: &mut Shell) -> u8 {
    // no statement follows that would tell it
    if let Some(notice) = shell.session.journal_failure() {
        let _ = shell.say(&shell.notes(&[], &[notice]));
    }
    let code = shell.exit_code();
    let Some(output) = shell.output.take() else { return code };
    if output.holds_nothing() || code != exit::DONE && output.keeps_partial() == Some(false) {
        shell.tell_unwritten(&output);
        return code;
    }
    match output.close() {
        Ok(()) => code,
        Err(error) => {
            shell.fail(&error, None);
            if code == exit::DONE { exit::code_of(&error) } else { code }
        }
    }
}

fn interactive(common: &Common, demo: Option<(Text, PathBuf)>, threads: &Threads) -> Result<u8> {
    let mut shell = match threads.clock.block_on(open(common, threads, true)) {
        Ok(shell) => shell,
        Err(error) => return Ok(not_opened(&error, common)),
    };
    if !shell.settings.quiet {
        let (language, version) = (shell.settings.language, env!("CARGO_PKG_VERSION"));
        let mut lines = vec![told!(
            language,
            "lakepin {version}: read only. \\? helps, \\q leaves.",
            "lakepin {version}：只读。\\? 看帮助，\\q 退出。",
            version = version
        )];
        if let Some((welcome, folder)) = demo {
            let folder = folder.canonicalize().unwrap_or(folder);
            lines.push(welcome.of(language).trim_end().to_string());
            lines.push(told!(
                language,
                "It lies in {folder}: lakepin -w {folder}",
                "它在 {folder}：lakepin -w {folder}",
                folder = folder.display()
            ));
        }
        shell.say(&lines)?;
    }
    threads.clock.block_on(rc(&mut shell, common));
    let code = match shell.quit {
        Some(code) => code,
        None => repl::run(&mut shell, &threads.clock),
    };
    Ok(match close(&mut shell) {
        exit::DONE => code,
        other => other,
    })
}

/// Runs the file of settings before the first prompt.
async fn rc(shell: &mut Shell, common: &Common) {
    if common.no_rc {
        return;
    }
    let chosen = common.rc.clone();
    let file = match &chosen {
        Some(path) => path.clone(),
        None => match dirs::config_dir() {
            Some(folder) => folder.join("lakepin").join("init.sql"),
            None => return,
        },
    };
    if chosen.is_none() && !file.is_file() {
        return;
    }
    // settings stand alone: one that fails is told and keeps none of the others back
    let on_error = std::mem::replace(&mut shell.on_error, OnError::Continue);
    if let Err(error) = shell.run_file(&file).await {
        shell.fail(&error, None);
    }
    shell.on_error = on_error;
}

#[cfg(feature = "slt")]
async fn test(common: &Common, suites: &super::args::Suites) -> Result<u8> {
    use super::render::width::visible;
    use super::suites::{Options, complete_file, files, needs_warehouse, run_files};
    use std::io::{IsTerminal as _, Write as _};

    // what differs quotes data
    let is_terminal = std::io::stdout().is_terminal();
    let shown = |text: &str| if is_terminal { visible(text).into_owned() } else { text.to_string() };
    let store_options: BTreeMap<String, String> = common.options.iter().cloned().collect();
    let opened = async {
        Warehouse::check_options(&store_options)?;
        let Some(url) = common.warehouse.as_deref().filter(|url| !url.is_empty()) else { return Ok(None) };
        let warehouse = Warehouse::open(url, &store_options).await?;
        // a database or zone that nobody knows would fail every record
        Session::new(&warehouse, session_config(common)).await?;
        Ok(Some(warehouse))
    };
    let warehouse = match opened.await {
        Ok(warehouse) => warehouse,
        Err(error) => return Ok(not_opened(&error, common)),
    };
    let options = Options {
        warehouse,
        store_options,
        // plans in suites shall not depend on the machine
        session: SessionConfig { target_partitions: Some(4), journal: None, ..session_config(common) },
        variables: common.variables.iter().cloned().collect(),
        labels: suites.labels.clone(),
        timeout: common.timeout.and_then(|limit| limit.0),
        own_threads: true,
    };
    let files = files(&suites.paths)?;
    if options.warehouse.is_none()
        && let Some(file) = files.iter().find(|file| needs_warehouse(file))
    {
        let error = named_warehouse(common).err().unwrap_or_else(|| Error::internal("a warehouse is named"));
        let error = error.with_context("file", file.display()).with_hint(
            "give a path or URL with -w or LAKEPIN_WAREHOUSE, or begin the file with a statement \\connect URL",
        );
        return Ok(not_opened(&error, common));
    }
    let mut left = 0;
    if suites.complete {
        for file in &files {
            let (done, told) = match complete_file(file, &options).await {
                Ok(completed) => (format!("completed {}\n", file.display()), completed.left),
                // the run that follows tells it again, beside the files that could be read
                Err(error) => (String::new(), vec![format!("error[{}]: {error}", error.code())]),
            };
            left += told.len();
            let told: String = told.iter().map(|line| format!("left      {line}\n")).collect();
            let _ = std::io::stdout().write_all(shown(&format!("{told}{done}")).as_bytes());
        }
    }
    let failed = run_files(&files, &options, suites.jobs, |report| {
        let text = if report.failures.is_empty() {
            let told = match (report.records, report.skipped) {
                (run, 0) => format!("{run} records"),
                (run, skipped) => format!("{run} run, {skipped} skipped"),
            };
            format!("ok      {} ({told})\n", report.path.display())
        } else {
            format!("FAILED  {}\n{}\n\n", report.path.display(), report.failures.join("\n\n"))
        };
        let _ = std::io::stdout().write_all(shown(&text).as_bytes());
    })
    .await;
    let _ = writeln!(std::io::stdout(), "{} passed, {failed} failed", files.len() - failed);
    Ok(if failed == 0 && left == 0 { exit::DONE } else { exit::FAILED })
}

#[cfg(not(feature = "slt"))]
async fn test(_: &Common, _: &super::args::Suites) -> Result<u8> {
    Err(Error::unsupported("this build has no runner of suites: build it with feature slt").with_code("Usage"))
}
