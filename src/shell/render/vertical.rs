//! Records: one line a column, for results wider than the terminal and for `\G`.

use std::io::{self, Write};

use super::Style;
use super::table::Row;
use super::width::width;

/// Display cells of a value in a record.
pub const VALUE_WIDTH: usize = 2000;

/// Writes records; the number of the next comes first in each head.
pub struct Records {
    names: Vec<String>,
    wide: usize,
    style: Style,
}

impl Records {
    /// Records of these columns.
    pub fn new(names: Vec<String>, style: Style) -> Self {
        let wide = names.iter().map(|n| width(n)).max().unwrap_or(0);
        Self { names, wide, style }
    }

    /// One record.
    pub fn write(&self, number: u64, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        let (line, bar) = if self.style.ascii { ("-", "|") } else { ("─", "│") };
        let head = format!("{line}[ {number} ]");
        let rest = (self.wide + 12).saturating_sub(width(&head));
        writeln!(out, "{head}{}", line.repeat(rest))?;
        for (name, cell) in self.names.iter().zip(&row.cells) {
            let pad = self.wide.saturating_sub(width(name));
            let value = cell.shown(&self.style);
            writeln!(out, "{name}{:pad$} {bar} {value}", "")?;
        }
        Ok(())
    }
}
