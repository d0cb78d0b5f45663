//! Results on a terminal: held until it is known whether they fit, else handed to a pager.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::language::Language;
use super::render::width::width;

/// When to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// When the text is longer or wider than the terminal.
    Auto,
    /// Never.
    Off,
}

/// What stands before a pin under a result.
pub fn pin_mark(language: Language) -> &'static str {
    match language {
        Language::En => "pin: ",
        Language::Zh => "快照: ",
    }
}

/// What stands before a notice.
pub fn notice_mark(language: Language) -> &'static str {
    match language {
        Language::En => "notice: ",
        Language::Zh => "注意: ",
    }
}

/// Whether a line tells of a result and is no part of it.
fn is_note(line: &str) -> bool {
    [Language::En, Language::Zh].into_iter().any(|l| line.starts_with(pin_mark(l)) || line.starts_with(notice_mark(l)))
}

/// The process of the pager that has the terminal now; 0: none.
static LIVES: AtomicU32 = AtomicU32::new(0);

/// Whether a pager has the terminal.
pub fn lives() -> bool {
    LIVES.load(Ordering::Acquire) != 0
}

/// Ends the pager, which would keep the terminal for itself when nobody feeds it any more.
pub fn end() {
    let process = LIVES.swap(0, Ordering::AcqRel);
    #[cfg(unix)]
    if let Some(process) = i32::try_from(process).ok().filter(|process| *process > 0) {
        use nix::sys::signal::{Signal, kill};
        let _ = kill(nix::unistd::Pid::from_raw(process), Signal::SIGTERM);
    }
}

/// Standard output of a terminal: held until it is known whether it fits.
#[derive(Debug)]
pub struct PagedOutput {
    size: (usize, usize),
    held: Vec<u8>,
    pager: Option<Child>,
}

impl PagedOutput {
    /// Output to a terminal of this many columns and lines.
    pub fn new(size: (usize, usize)) -> Self {
        Self { size, held: Vec::new(), pager: None }
    }

    /// Whether a pager shows what is written.
    pub fn has_begun(&self) -> bool {
        self.pager.is_some()
    }

    fn fits(&self) -> bool {
        let (columns, lines) = self.size;
        let text = String::from_utf8_lossy(&self.held);
        let mut count = 0;
        for line in text.lines() {
            let line = without_colours(line);
            let wide = width(&line);
            // a note may wrap; a row may not
            if wide > columns && !is_note(&line) {
                return false;
            }
            count += wide.div_ceil(columns.max(1)).max(1);
            // a prompt follows: one line is its own
            if count + 1 >= lines {
                return false;
            }
        }
        true
    }

    fn start(&mut self) -> io::Result<()> {
        super::progress::clear();
        let spawned = pager_command().and_then(|mut command| command.stdin(Stdio::piped()).spawn().ok());
        let held = std::mem::take(&mut self.held);
        match spawned {
            Some(child) => {
                LIVES.store(child.id(), Ordering::Release);
                self.pager = Some(child);
                self.send(&held)
            }
            // no pager is no reason to hide rows
            None => io::stdout().lock().write_all(&held),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.pager.as_mut().and_then(|p| p.stdin.as_mut()) {
            Some(stdin) => stdin.write_all(bytes),
            None => io::stdout().lock().write_all(bytes),
        }
    }

    /// Shows what is held and waits for the pager to end.
    pub fn finish(mut self) -> io::Result<()> {
        if self.pager.is_none() {
            if self.fits() {
                let mut out = io::stdout().lock();
                out.write_all(&self.held)?;
                return out.flush();
            }
            self.start().or_else(quiet_pipe)?;
        }
        self.wait()
    }

    /// Tells the pager that this was all, and waits until its user has seen enough.
    fn wait(&mut self) -> io::Result<()> {
        let Some(mut pager) = self.pager.take() else { return Ok(()) };
        drop(pager.stdin.take());
        let ended = pager.wait();
        LIVES.store(0, Ordering::Release);
        ended.map(drop)
    }
}

impl Drop for PagedOutput {
    fn drop(&mut self) {
        // no result leaves a pager behind that nobody waits for
        let _ = self.wait();
    }
}

/// Leaving the pager early is no error.
fn quiet_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

impl Write for PagedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pager.is_some() {
            self.send(bytes)?;
        } else {
            self.held.extend_from_slice(bytes);
            // what is more than a screen stays more; who reads it need not wait for its end
            if !self.fits() {
                self.start()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn without_colours(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            out.push(c);
        }
    }
    out
}

/// LAKEPIN_PAGER, PSQL_PAGER (where pspg is named) or PAGER with its arguments, the first that is set; else `less -RSFX`.
/// None: set to nothing, which turns it off.
fn pager_command() -> Option<Command> {
    let chosen = ["LAKEPIN_PAGER", "PSQL_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
    let text = chosen.unwrap_or_else(|| "less".to_string());
    let mut words = text.split_whitespace();
    let program = words.next()?;
    let mut command = Command::new(program);
    command.args(words);
    if program == "less" || program.ends_with("/less") {
        // colours, no wrapping, leave the text on the screen
        command.env("LESS", "-RSFX");
        // full-width characters as they are, whatever the locale says
        command.env("LESSCHARSET", "utf-8");
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room() {
        assert_eq!(without_colours("\x1b[2mNULL\x1b[0m x"), "NULL x");
    }

    #[test]
    fn notes_may_wrap_and_rows_may_not() {
        let fits = |text: &str| {
            let mut paged = PagedOutput::new((20, 6));
            paged.held.extend_from_slice(text.as_bytes());
            paged.fits()
        };
        assert!(fits("a\nb\nc\nd\n") && !fits("a\nb\nc\nd\ne\n"));
        assert!(fits("pin: a line that is wider than that\n") && !fits("a line that is wider than that\n"));
        assert!(fits("快照: 一行比终端还要宽的文字一行\n"));
    }
}
