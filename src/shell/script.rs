//! Texts run piece by piece: `-c`, `-f`, standard input, `\i`, and each line of the prompt.

use std::io::BufRead;
use std::path::Path;

use super::commands;
use super::execute::Show;
use super::exit;
use super::input::{Ending, Input, Piece};
use super::interrupt::Running;
use super::language::told;
use super::pager::notice_mark;
use super::report::{Source, describe, eprint, eprint_described, verbose};
use super::state::Shell;
use super::variables::replaced;
use crate::error::{Error, Result};
use crate::shell::args::OnError;

/// Files inside files, at most.
const DEPTH: usize = 16;

impl Shell {
    /// Runs a whole text; errors are told here. `name` stands before the statement's number in errors.
    pub async fn run_text(&mut self, text: &str, name: &str) {
        self.run_lines(text.as_bytes(), name).await;
    }

    /// Runs a file.
    pub async fn run_file(&mut self, path: &Path) -> Result<()> {
        if self.depth >= DEPTH {
            return Err(
                Error::invalid(format!("files include files {DEPTH} deep")).with_context("file", path.display())
            );
        }
        let unread = |why: String| {
            Error::not_found(format!("cannot read the file: {why}"))
                .with_code("FileNotFound")
                .with_context("file", path.display())
        };
        if path.is_dir() {
            return Err(unread("it is a folder".to_string()));
        }
        let file = std::fs::File::open(path).map_err(|e| unread(e.to_string()))?;
        self.depth += 1;
        self.run_lines(std::io::BufReader::new(file), &path.display().to_string()).await;
        self.depth -= 1;
        Ok(())
    }

    /// Runs lines as they come, up to their end, an error that stops or Ctrl-C.
    pub async fn run_lines(&mut self, lines: impl BufRead, name: &str) {
        let outer = self.conditions.enter();
        // a script ends at Ctrl-C; at the prompt every file inside of files does
        let running = self.interactive.then(|| self.interrupts.running());
        let whole = self.run_pieces(lines, name, running.as_ref()).await;
        if self.conditions.leave(outer) && whole {
            let error = Error::invalid("the text ends inside \\if").with_code("Syntax").with_context("file", name);
            self.fail(&error, None);
        }
    }

    /// Whether it came to the end of the lines.
    async fn run_pieces(&mut self, lines: impl BufRead, name: &str, running: Option<&Running>) -> bool {
        let mut input = Input::new();
        let mut number = 0;
        let mut lines = lines.split(b'\n');
        loop {
            let line = match lines.next() {
                None => break,
                Some(Ok(bytes)) => match String::from_utf8(bytes) {
                    Ok(line) => line,
                    Err(_) => {
                        let error =
                            Error::invalid("the text is not UTF-8").with_code("Usage").with_context("file", name);
                        self.fail(&error, None);
                        if !self.interactive {
                            self.quit.get_or_insert(exit::USAGE);
                        }
                        return false;
                    }
                },
                Some(Err(e)) => {
                    let error = Error::unavailable(format!("cannot read: {e}")).with_context("file", name);
                    self.fail(&error, None);
                    return false;
                }
            };
            input.push(line.trim_end_matches('\r'));
            while let Some(piece) = input.next() {
                if !self.goes_on_after(piece, name, &mut number, running).await {
                    return false;
                }
            }
        }
        while let Some(piece) = input.finish() {
            if !self.goes_on_after(piece, name, &mut number, running).await {
                return false;
            }
        }
        true
    }

    /// Runs a piece of a text; whether what follows it may run.
    async fn goes_on_after(&mut self, piece: Piece, name: &str, number: &mut u64, running: Option<&Running>) -> bool {
        let before = self.errors;
        self.piece(piece, name, number).await;
        if self.ends(running) {
            return false;
        }
        // at the prompt an error ends the file and those around it, not the shell
        let stops = self.interactive && self.on_error == OnError::Stop && self.errors > before;
        if stops {
            let language = self.settings.language;
            let text = told!(
                language,
                "the rest of {name} did not run: there was an error (--on-error continue goes on)",
                "{name} 其余部分没有执行：有错误（--on-error continue 可继续）",
                name = name
            );
            eprint(&format!("{}{text}\n", notice_mark(language)));
        }
        !stops
    }

    /// Whether nothing more of a text may run.
    fn ends(&self, running: Option<&Running>) -> bool {
        self.quit.is_some() || running.is_some_and(Running::hit)
    }

    /// Runs one piece and tells its error; a script that stops at errors gets its exit code in `quit`.
    pub async fn piece(&mut self, piece: Piece, name: &str, number: &mut u64) {
        if self.is_skipped(&piece) {
            // at the prompt nobody sees the branch that it stands in
            if self.interactive && name.is_empty() {
                self.tell_skipped();
            }
            *number += u64::from(matches!(piece, Piece::Statement(_)));
            return;
        }
        let (outcome, source) = match piece {
            Piece::Command { text, line, .. } => {
                let origin = name.to_string();
                let outcome = commands::run(self, &text).await;
                let text = self.placed.take().unwrap_or_default();
                (outcome, Source { text, line, origin, ..Source::default() })
            }
            Piece::Statement(statement) => {
                *number += 1;
                let origin = if name.is_empty() { String::new() } else { format!("{name}, statement {number},") };
                // at the prompt nobody counts the lines of the whole session
                let line = if name.is_empty() { 1 } else { statement.line };
                let text = replaced(&statement.text, &self.variables);
                let source = Source { text, line, before: statement.before.clone(), origin };
                let outcome = match &statement.ending {
                    Ending::Semicolon | Ending::End => self.typed(&statement.text, Show::default()).await,
                    Ending::Command(command) => self.ended_by(&statement.text, command).await,
                };
                (outcome, source)
            }
        };
        if let Err(error) = outcome {
            self.fail(&error, Some(&source));
        }
    }

    /// Whether a piece stands in a branch of `\if` that does not run.
    fn is_skipped(&self, piece: &Piece) -> bool {
        match piece {
            _ if self.conditions.active() => false,
            Piece::Command { text, .. } => !commands::branches(text),
            Piece::Statement(_) => true,
        }
    }

    fn tell_skipped(&self) {
        let language = self.settings.language;
        let text = told!(
            language,
            "not run: the condition of \\if is false; \\endif or Ctrl-C ends it",
            "没有执行：\\if 的条件不成立；\\endif 或 Ctrl-C 结束它"
        );
        eprint(&format!("{}{text}\n", notice_mark(language)));
    }

    /// A statement that a command ends: the command runs it.
    async fn ended_by(&mut self, text: &str, command: &str) -> Result<()> {
        self.last_query = Some(replaced(text, &self.variables));
        commands::run(self, command).await
    }

    /// Tells an error and remembers its exit code.
    pub fn fail(&mut self, error: &Error, source: Option<&Source>) {
        if error.code() == "BrokenPipe" {
            // who read our rows has gone: nothing to tell
            if !self.interactive {
                self.quit.get_or_insert(exit::DONE);
            }
            return;
        }
        let color = self.terminal.color && self.terminal.errors;
        eprint_described(&describe(error, source, color, self.settings.language));
        self.last_error = Some(verbose(error, self.settings.language));
        self.errors += 1;
        if let Some(output) = &mut self.output {
            output.note_failure();
        }
        let code = exit::code_of(error);
        if self.failed == exit::DONE {
            self.failed = code;
        }
        if !self.interactive && (self.on_error == OnError::Stop || code == exit::INTERRUPTED) {
            self.quit.get_or_insert(code);
        }
    }

    /// The exit code so far.
    pub fn exit_code(&self) -> u8 {
        match self.quit {
            Some(code) if code != exit::DONE => code,
            _ if self.interactive => exit::DONE,
            // of several errors, none tells what became of the whole
            _ if self.failed != exit::DONE && self.on_error == OnError::Continue => exit::FAILED,
            _ => self.failed,
        }
    }
}
