//! Options behind the name of a command: `--name value`, `--name`.

use super::{Call, unquoted, usage};
use crate::error::Result;
use crate::shell::args::duration;
use crate::shell::state::Shell;

/// Options of a line: names with the values behind them, and what stands alone.
pub struct Options {
    /// What stands alone.
    pub words: Vec<String>,
    given: Vec<(String, String)>,
    flags: Vec<String>,
}

impl Options {
    /// Reads a line: the options `valued` have a value behind them, those `alone` have none.
    ///
    /// # Errors
    /// Another option, one without its value, a quote that is not closed.
    pub fn read(shell: &Shell, call: &Call, valued: &[&str], alone: &[&str]) -> Result<Self> {
        let mut options = Self { words: Vec::new(), given: Vec::new(), flags: Vec::new() };
        let mut words = call.words(&shell.variables)?.into_iter();
        while let Some(word) = words.next() {
            if valued.contains(&word.as_str()) {
                let value = words.next().ok_or_else(|| usage(format!("{word} stands without its value")))?;
                options.given.push((word, unquoted(&value)));
            } else if alone.contains(&word.as_str()) {
                options.flags.push(word);
            } else if word.starts_with("--") {
                return Err(usage(format!("\\{} has no option {word}", call.name)));
            } else {
                options.words.push(word);
            }
        }
        Ok(options)
    }

    /// The values of an option, in their order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Whether an option stands there.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// The last value of an option.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// A number.
///
/// # Errors
/// Another word.
pub fn number(text: &str) -> Result<i64> {
    text.parse().map_err(|_| usage(format!("{text:?} is no number")))
}

/// An interval of SQL from `5m`, `2s`, `500ms`.
///
/// # Errors
/// No length of time.
pub fn interval(text: &str) -> Result<String> {
    let length = duration(text).map_err(usage)?;
    Ok(format!("INTERVAL '{}' MILLISECOND", length.as_millis()))
}
