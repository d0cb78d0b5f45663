//! The prompt: a line editor on the main thread, statements on others.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyEvent, RepeatCount,
};
use tokio::runtime::Runtime;

use super::commands::{self, Argument};
use super::complete::{Completion, command_of};
use super::exit;
use super::highlight::highlighted;
use super::history::{self, Mended};
use super::input::Input;
use super::interrupt::TWICE;
use super::language::{Language, advice, told};
use super::pager::notice_mark;
use super::prompt::{Look, coloured, prompt};
use super::redact::redacted;
use super::report::eprint;
use super::state::Shell;

/// What helps while a line is typed.
struct Typing {
    completion: Completion,
    files: FilenameCompleter,
    /// Open text of earlier lines.
    before: String,
    color: bool,
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        if wants_file(line.get(..at).unwrap_or(line)) {
            return self.files.complete(line, at, context);
        }
        let (start, found) = self.completion.complete(&self.before, line, at);
        Ok((start, found.into_iter().map(|text| Pair { display: text.clone(), replacement: text }).collect()))
    }
}

fn wants_file(typed: &str) -> bool {
    let Some(command) = command_of(typed) else { return false };
    command
        .split_once(char::is_whitespace)
        .and_then(|(name, _)| commands::find(name))
        .is_some_and(|command| command.argument == Argument::File)
}

impl Highlighter for Typing {
    fn highlight<'l>(&self, line: &'l str, _at: usize) -> Cow<'l, str> {
        if self.color { Cow::Owned(highlighted(line)) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _line: &str, _at: usize, kind: CmdKind) -> bool {
        self.color && kind != CmdKind::MoveCursor
    }
}

impl Hinter for Typing {
    type Hint = String;
}

impl Validator for Typing {}

impl Helper for Typing {}

type Lines = Editor<Typing, FileHistory>;

/// Notes at Ctrl-C whether there was a line to clear; what the key does stays as it is.
#[derive(Clone, Default)]
struct Cleared(Arc<AtomicBool>);

impl ConditionalEventHandler for Cleared {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        self.0.store(!context.line().is_empty(), Ordering::Relaxed);
        None
    }
}

fn editor(shell: &Shell, cleared: &Cleared) -> rustyline::Result<Lines> {
    let config = Config::builder()
        .max_history_size(history::ENTRIES)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(if shell.terminal.color { ColorMode::Enabled } else { ColorMode::Disabled })
        .auto_add_history(false)
        .build();
    let mut editor = Lines::with_history(config.clone(), FileHistory::with_config(&config))?;
    editor.set_helper(Some(typing(shell)));
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(cleared.clone())));
    Ok(editor)
}

fn typing(shell: &Shell) -> Typing {
    let completion = Completion::new(Arc::clone(&shell.session), shell.workers.clone());
    completion.warm();
    Typing { completion, files: FilenameCompleter::new(), before: String::new(), color: shell.terminal.color }
}

/// Reads and runs lines until the user leaves; the exit code.
pub fn run(shell: &mut Shell, runtime: &Runtime) -> u8 {
    super::terminal::keep();
    let cleared = Cleared::default();
    let mut editor = match editor(shell, &cleared) {
        Ok(editor) => editor,
        Err(e) => {
            eprint(&format!("error[Terminal]: cannot use the terminal: {e}\n"));
            return exit::FAILED;
        }
    };
    let kept = history::path().filter(|path| {
        let outside = shell.session.warehouse().check_outside("the history", &path.to_string_lossy());
        let prepared = outside.map_err(|e| e.message().to_string());
        match prepared.and_then(|()| history::prepare(path).map_err(|e| e.to_string())) {
            Ok(()) => true,
            Err(e) => {
                let file = path.display();
                eprint_notice(
                    shell,
                    &told!(
                        shell.settings.language,
                        "the history is not kept: {why} ({file})",
                        "历史记录不会保存：{why}（{file}）",
                        why = e,
                        file = file
                    ),
                );
                false
            }
        }
    });
    if let Some(path) = &kept {
        let language = shell.settings.language;
        match history::mend(path) {
            Ok(None) => {}
            Ok(Some(Mended { lost, aside })) => {
                let text = told!(
                    language,
                    "{n} lines of the history are not UTF-8 and were left out; the file as it was is {file}",
                    "历史记录有 {n} 行不是 UTF-8，已略去；原文件保留为 {file}",
                    n = lost,
                    file = aside.display()
                );
                eprint_notice(shell, &text);
            }
            Err(e) => {
                let file = path.display();
                let text = told!(
                    language,
                    "the history cannot be read: {why} ({file})",
                    "历史记录读不了：{why}（{file}）",
                    why = e,
                    file = file
                );
                eprint_notice(shell, &text);
            }
        }
        let _ = editor.load_history(path);
        shell.history = editor.history().iter().cloned().collect();
    }
    let mut input = Input::new();
    let mut entry = String::new();
    let mut number = 0;
    let mut interrupted: Option<Instant> = None;
    while shell.quit.is_none() {
        for error in shell.lost.look(&shell.session, &shell.workers) {
            let text = match shell.settings.language {
                Language::En => error.to_string(),
                Language::Zh => format!("{}（{error}）", advice(&error)),
            };
            eprint_notice(shell, &text);
        }
        let beware = shell.hidden_rows || shell.lost.any();
        let plain = prompt(Look {
            database: &shell.session.database(),
            pins: &shell.session.session_pins(),
            choices: &shell.session.session_choices(),
            zone: &shell.session.time_zone(),
            open: input.is_open(),
            beware,
            skipping: !shell.conditions.active(),
        });
        let styled = if shell.terminal.color { coloured(&plain, beware) } else { plain.clone() };
        if let Some(helper) = editor.helper_mut() {
            if std::mem::take(&mut shell.names_changed) {
                *helper = typing(shell);
            }
            helper.before = input.open_text().to_string();
            helper.completion.variables = shell.variables.keys().cloned().collect();
        }
        match editor.readline(&(plain, styled)) {
            Ok(line) => {
                interrupted = None;
                if !entry.is_empty() {
                    entry.push('\n');
                }
                entry.push_str(&line);
                input.push(&line);
                let running = shell.interrupts.running();
                while let Some(piece) = input.next() {
                    runtime.block_on(shell.piece(piece, "", &mut number));
                    if shell.quit.is_some() {
                        break;
                    }
                    if running.hit() {
                        // what stands behind on the line was meant to follow, not to run alone
                        input.clear();
                    }
                }
                drop(running);
                // the names that a key asks for, too, want threads
                runtime.block_on(shell.workers.ready());
                if !input.is_open() || shell.quit.is_some() {
                    remember(&mut editor, shell, kept.as_deref(), &std::mem::take(&mut entry));
                }
            }
            Err(ReadlineError::Interrupted) => {
                let empty = !input.is_open() && !cleared.0.load(Ordering::Relaxed);
                input.clear();
                entry.clear();
                if empty && shell.conditions.escape() {
                    interrupted = None;
                    let language = shell.settings.language;
                    eprint(&format!("{}{}\n", notice_mark(language), told!(language, "left \\if", "已离开 \\if")));
                    continue;
                }
                if empty && interrupted.is_some_and(|last| last.elapsed() < TWICE) {
                    return exit::INTERRUPTED;
                }
                interrupted = empty.then(Instant::now);
            }
            Err(ReadlineError::Eof) if input.is_open() => {
                // Ctrl-D in an open statement leaves it, not the shell
                input.clear();
                entry.clear();
            }
            Err(ReadlineError::Eof) => break,
            Err(ReadlineError::Signal(_)) => {}
            Err(ReadlineError::Io(e)) if e.kind() == ErrorKind::InvalidData => {
                // what was pasted behind the byte is not what was meant without what stood before it
                super::terminal::forget_input();
                let language = shell.settings.language;
                let text = told!(
                    language,
                    "the line is not UTF-8: neither it nor what was pasted behind it was taken",
                    "这一行不是 UTF-8：它和粘贴在它后面的内容都没有采用"
                );
                eprint("\n");
                eprint_notice(shell, &text);
            }
            Err(e) => {
                eprint(&format!("error[Terminal]: {e}\n"));
                return exit::FAILED;
            }
        }
    }
    shell.exit_code()
}

fn eprint_notice(shell: &Shell, text: &str) {
    eprint(&format!("{}{text}\n", notice_mark(shell.settings.language)));
}

fn remember(editor: &mut Lines, shell: &mut Shell, path: Option<&std::path::Path>, entry: &str) {
    if entry.trim().is_empty() || entry.starts_with(char::is_whitespace) {
        return;
    }
    let entry = redacted(entry.trim_end());
    if shell.history.last() == Some(&entry) {
        return;
    }
    shell.history.push(entry.clone());
    if editor.add_history_entry(entry).unwrap_or(false)
        && let Some(path) = path
    {
        let _ = editor.append_history(path);
    }
}
