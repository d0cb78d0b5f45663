//! From arguments to an exit code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::args::{Action, Args, Common, Input, Memory};
use super::conditions::Conditions;
use super::interrupt::Interrupts;
use super::output::{OutputFile, Paging};
use super::render::{Expanded, Format};
use super::report::{describe, eprint};
use super::state::{ROW_CAP, Settings, Shell};
use super::terminal::Terminal;
use super::{demo, exit, repl};
use crate::error::{Error, Result};
use crate::sql::{Session, SessionConfig, Warehouse};

/// Runs the program.
pub fn main() -> ExitCode {
    let args = match Args::try_parse_all(std::env::args_os()) {
        Ok(args) => args,
        Err(e) => {
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { exit::USAGE } else { exit::DONE });
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().thread_stack_size(8 << 20).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprint(&format!("error[Internal]: cannot start threads: {e}\n"));
            return ExitCode::from(exit::FAILED);
        }
    };
    let code = match run(args, &runtime) {
        Ok(code) => code,
        Err(error) => {
            eprint(&describe(&error, None, false));
            exit::code_of(&error)
        }
    };
    // what was cancelled may still be on its way out
    runtime.shutdown_background();
    ExitCode::from(code)
}

fn run(args: Args, runtime: &Runtime) -> Result<u8> {
    let Args { mut common, action, inputs } = args;
    match action {
        Some(Action::Test(suites)) => runtime.block_on(test(&common, &suites)),
        Some(Action::Counts { table, condition }) => {
            let line = format!("\\counts {table} {}", condition.join(" "));
            scripted(&common, vec![Input::Text(line)], runtime)
        }
        Some(Action::Demo { dir }) => {
            let folder = dir.unwrap_or_else(demo::default_folder);
            demo::make(&folder)?;
            common.warehouse = Some(folder.display().to_string());
            common.timezone.get_or_insert_with(|| demo::ZONE.to_string());
            common.database.get_or_insert_with(|| "pay".to_string());
            let terminal = Terminal::detect(common.color);
            if !inputs.is_empty() {
                scripted(&common, inputs, runtime)
            } else if terminal.input && terminal.output {
                interactive(&common, Some(demo::WELCOME), runtime)
            } else {
                common.format.get_or_insert(Format::Table);
                scripted(&common, vec![Input::Text("\\tour".to_string())], runtime)
            }
        }
        None => {
            let terminal = Terminal::detect(common.color);
            if !inputs.is_empty() {
                scripted(&common, inputs, runtime)
            } else if terminal.input && terminal.output {
                interactive(&common, None, runtime)
            } else {
                scripted(&common, vec![Input::File("-".to_string())], runtime)
            }
        }
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
pub(super) async fn open(common: &Common, interactive: bool) -> Result<Shell> {
    let terminal = Terminal::detect(common.color);
    let url = named_warehouse(common)?;
    let options: BTreeMap<String, String> = common.options.iter().cloned().collect();
    let warehouse = Warehouse::open(url, &options).await?;
    let config = session_config(common);
    let session = Arc::new(Session::new(&warehouse, config.clone()).await?);
    let format = common.format.unwrap_or(if terminal.output { Format::Table } else { Format::Csv });
    let output = common.output.as_deref().map(OutputFile::create).transpose()?;
    Ok(Shell {
        session,
        config,
        store_options: common.options.clone(),
        terminal,
        interactive,
        settings: Settings {
            format,
            expanded: Expanded::Auto,
            null: "NULL".to_string(),
            timing: interactive,
            paging: Paging::Auto,
            rows: Some(ROW_CAP),
            cell_width: 60,
            ascii: false,
            quiet: common.quiet,
            autopin: false,
            timeout: common.timeout,
        },
        variables: common.variables.iter().cloned().collect(),
        output,
        once: None,
        last_query: None,
        last_error: None,
        spool: None,
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

fn scripted(common: &Common, inputs: Vec<Input>, runtime: &Runtime) -> Result<u8> {
    runtime.block_on(async {
        // a file that is not there is known before anything runs
        for input in &inputs {
            if let Input::File(path) = input
                && path != "-"
                && !Path::new(path).exists()
            {
                return Err(Error::not_found("there is no such file")
                    .with_code("FileNotFound")
                    .with_context("file", path));
            }
        }
        let mut shell = open(common, false).await?;
        for input in inputs {
            match input {
                Input::Text(text) => shell.run_text(&text, "-c").await,
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
    let code = shell.exit_code();
    let Some(output) = shell.output.take() else { return code };
    if code != exit::DONE {
        eprint(&format!("notice: {} was not written: there was an error\n", output.path().display()));
        return code;
    }
    match output.keep() {
        Ok(()) => code,
        Err(error) => {
            shell.fail(&error, None);
            exit::code_of(&error)
        }
    }
}

fn interactive(common: &Common, welcome: Option<&str>, runtime: &Runtime) -> Result<u8> {
    let mut shell = runtime.block_on(open(common, true))?;
    if !shell.settings.quiet {
        let greeting = format!("lakepin {}: read only. \\? helps, \\q leaves.", env!("CARGO_PKG_VERSION"));
        let mut lines = vec![greeting];
        lines.extend(welcome.map(|text| text.trim_end().to_string()));
        shell.say(&lines)?;
    }
    runtime.block_on(rc(&mut shell, common));
    let code = match shell.quit {
        Some(code) => code,
        None => repl::run(&mut shell, runtime),
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
    if let Err(error) = shell.run_file(&file).await {
        shell.fail(&error, None);
    }
}

#[cfg(feature = "slt")]
async fn test(common: &Common, suites: &super::args::Suites) -> Result<u8> {
    use super::suites::{Options, complete_file, files, run_files};
    use std::io::Write as _;

    let store_options: BTreeMap<String, String> = common.options.iter().cloned().collect();
    let warehouse = match common.warehouse.as_deref() {
        Some(url) if !url.is_empty() => Some(Warehouse::open(url, &store_options).await?),
        _ => None,
    };
    let options = Options {
        warehouse,
        store_options,
        // plans in suites shall not depend on the machine
        session: SessionConfig { target_partitions: Some(4), ..session_config(common) },
        variables: common.variables.iter().cloned().collect(),
        labels: suites.labels.clone(),
    };
    let files = files(&suites.paths)?;
    if suites.complete {
        for file in &files {
            complete_file(file, &options).await?;
            let _ = writeln!(std::io::stdout(), "completed {}", file.display());
        }
    }
    let failed = run_files(&files, &options, suites.jobs, |report| {
        let mut out = std::io::stdout().lock();
        let _ = if report.failures.is_empty() {
            writeln!(out, "ok      {} ({} records)", report.path.display(), report.records)
        } else {
            writeln!(out, "FAILED  {}\n{}\n", report.path.display(), report.failures.join("\n\n"))
        };
    })
    .await;
    let _ = writeln!(std::io::stdout(), "{} passed, {failed} failed", files.len() - failed);
    Ok(if failed == 0 { exit::DONE } else { exit::FAILED })
}

#[cfg(not(feature = "slt"))]
async fn test(_: &Common, _: &super::args::Suites) -> Result<u8> {
    Err(Error::unsupported("this build has no runner of suites: build it with feature slt").with_code("Usage"))
}
