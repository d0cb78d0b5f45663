//! The terminal: whether there is one, how large it is, colours.

use std::ffi::OsStr;
use std::io::{IsTerminal, stderr, stdin, stdout};

use super::args::ColorChoice;

/// What standard input, output and error are.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Standard input is a terminal.
    pub input: bool,
    /// Standard output is a terminal.
    pub output: bool,
    /// Standard error is a terminal.
    pub errors: bool,
    /// Results may be coloured.
    pub color: bool,
    /// It only knows lines: neither colours nor pages nor a line drawn over.
    pub dumb: bool,
}

/// Whether the terminal says that it only knows lines, or says nothing, where terminals say what they are.
pub fn is_dumb() -> bool {
    knows_lines_only(std::env::var_os("TERM").as_deref())
}

fn knows_lines_only(term: Option<&OsStr>) -> bool {
    term.map_or(cfg!(unix), |term| term == "dumb" || term.is_empty() && cfg!(unix))
}

impl Terminal {
    /// Looks.
    pub fn detect(choice: ColorChoice) -> Self {
        let output = stdout().is_terminal();
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => output && !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        Self { input: stdin().is_terminal(), output, errors: stderr().is_terminal(), color, dumb: is_dumb() }
    }

    /// Columns and lines now; None without a terminal.
    pub fn size(&self) -> Option<(usize, usize)> {
        if !self.output {
            return None;
        }
        match crossterm::terminal::size() {
            Ok((columns, lines)) if columns > 0 && lines > 0 => Some((usize::from(columns), usize::from(lines))),
            _ => Some((80, 24)),
        }
    }
}

#[cfg(unix)]
mod modes {
    use std::io::stdin;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use nix::sys::termios::{FlushArg, SetArg, Termios, tcflush, tcgetattr, tcsetattr};

    static KEPT: Mutex<Option<Termios>> = Mutex::new(None);

    /// Remembers how the terminal was before a line editor or a pager changes it.
    pub fn keep() {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = tcgetattr(stdin()).ok();
    }

    /// Makes the terminal as it was: an end in haste comes in the midst of a line or a page.
    pub fn restore() {
        if let Some(modes) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            let _ = tcsetattr(stdin(), SetArg::TCSANOW, modes);
        }
    }

    /// Drops what was typed or pasted and not yet read, and what of a paste is still on its way.
    pub fn forget_input() {
        for _ in 0..5 {
            let _ = tcflush(stdin(), FlushArg::TCIFLUSH);
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = tcflush(stdin(), FlushArg::TCIFLUSH);
    }
}

#[cfg(unix)]
pub use modes::{forget_input, keep, restore};

#[cfg(not(unix))]
/// Nothing to remember here.
pub fn keep() {}

#[cfg(not(unix))]
/// Nothing to restore here.
pub fn restore() {}

#[cfg(not(unix))]
/// A console gives characters, never bytes that are none.
pub fn forget_input() {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn terminal_that_says_nothing_knows_lines_only() {
        for (term, lines_only) in [(None, true), (Some(""), true), (Some("dumb"), true), (Some("xterm"), false)] {
            assert_eq!(knows_lines_only(term.map(OsStr::new)), lines_only, "{term:?}");
        }
    }
}
