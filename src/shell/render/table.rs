//! A grid of rows, as wide as what it holds. On a terminal only the first and last rows of a long result are shown,
//! and records take the place of a grid that does not fit.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::vertical::{Records, VALUE_WIDTH};
use super::width::{clipped, escaped, fitted, grouped, width};
use super::{Renderer, Style, Word, is_numeric, may_be_long, word_of};
use crate::export::value::text;

/// Rows measured for the widths of a grid without cap.
const MEASURED_ROWS: usize = 1000;

/// Records or a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expanded {
    /// Always records.
    On,
    /// Always a grid.
    Off,
    /// Records when the grid is wider than the terminal.
    Auto,
}

/// What limits a table.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows to show, first and last halves; None: all.
    pub rows: Option<usize>,
    /// Cells of the terminal; None: not a terminal.
    pub width: Option<usize>,
    /// Records or a grid.
    pub expanded: Expanded,
    /// Whether texts may be cut so that a grid fits the terminal.
    pub shrink: bool,
    /// Column whose texts are never cut for that.
    pub keep: Option<&'static str>,
    /// Number of the first record.
    pub first: u64,
}

/// Cells that a column of texts keeps when it is cut.
const SHRUNK: usize = 12;

/// Cells that the name of a column keeps when it is cut.
const SHRUNK_NAME: usize = 6;

/// Rows that stand before the gap of a table of so many rows.
pub fn rows_before_gap(cap: usize) -> usize {
    cap.div_ceil(2)
}

impl Limits {
    /// No limits: not a terminal.
    #[cfg(test)]
    pub const NONE: Self =
        Self { rows: None, width: None, expanded: Expanded::Auto, shrink: false, keep: None, first: 1 };
}

/// One cell, ready to show.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    null: bool,
}

/// Cells of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wide {
    cells: usize,
    /// Whether its texts are cut there. What came too late to be measured is else shown whole, and makes its line wider.
    cut: bool,
}

impl Cell {
    /// The cell in a column of this width.
    fn within(&self, wide: Wide) -> Cow<'_, Self> {
        if !wide.cut || width(&self.text) <= wide.cells {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { text: clipped(&self.text, wide.cells), null: self.null })
    }

    /// With colour codes, which take no display cells.
    pub fn shown(&self, style: &Style) -> String {
        if self.null && style.color { format!("\x1b[2m{}\x1b[0m", self.text) } else { self.text.clone() }
    }
}

/// Cells of a row.
#[derive(Debug, Clone)]
pub struct Row {
    /// One a column.
    pub cells: Vec<Cell>,
}

/// A table on its way.
pub struct Table {
    names: Vec<String>,
    right: Vec<bool>,
    texts: Vec<bool>,
    /// Columns whose values may be cut for their length.
    long: Vec<bool>,
    /// Words for numbers, one list a column.
    words: Vec<Vec<Word>>,
    style: Style,
    limits: Limits,
    rows: u64,
    head: Vec<Row>,
    tail: VecDeque<Row>,
    flow: Flow,
}

/// How rows of a table without cap are written.
enum Flow {
    /// Not yet: widths are being measured.
    Measuring,
    /// As lines of these widths.
    Grid(Vec<Wide>),
    /// As records.
    Records(Records),
}

impl Table {
    /// A table of these columns.
    pub fn new(schema: &SchemaRef, style: Style, limits: Limits) -> Self {
        Self {
            names: schema.fields().iter().map(|f| escaped(f.name())).collect(),
            right: schema.fields().iter().map(|f| is_numeric(f.data_type())).collect(),
            texts: schema.fields().iter().map(|f| f.data_type().is_string()).collect(),
            long: schema.fields().iter().map(|f| may_be_long(f.data_type())).collect(),
            words: schema.fields().iter().map(|f| style.words_of(f)).collect(),
            style,
            limits,
            rows: 0,
            head: Vec::new(),
            tail: VecDeque::new(),
            flow: Flow::Measuring,
        }
    }

    fn row(&self, batch: &RecordBatch, row: usize, cell_width: usize) -> io::Result<Row> {
        let mut cells = Vec::with_capacity(batch.num_columns());
        for (at, ((column, long), words)) in batch.columns().iter().zip(&self.long).zip(&self.words).enumerate() {
            if let Some(word) = word_of(words, column.as_ref(), row) {
                cells.push(Cell { text: word.to_string(), null: false });
                continue;
            }
            let cell_width = if *long { cell_width } else { 0 };
            let mut value = String::new();
            cells.push(if text(column.as_ref(), row, self.style.times_of(at), &mut value)? {
                // a string that looks like NULL is quoted, so the two can be told apart
                let text = if value == self.style.null { format!("'{value}'") } else { fitted(&value, cell_width) };
                Cell { text, null: false }
            } else {
                Cell { text: self.style.null.clone(), null: true }
            });
        }
        Ok(Row { cells })
    }

    /// Cells of the values that are held.
    fn value_widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.names.len()];
        for row in self.head.iter().chain(&self.tail) {
            for (wide, cell) in widths.iter_mut().zip(&row.cells) {
                *wide = width(&cell.text).max(*wide);
            }
        }
        widths
    }

    fn measure(&self) -> Vec<Wide> {
        let values = self.value_widths().into_iter();
        let widest = self.names.iter().zip(values).map(|(name, value)| value.max(width(name)));
        let mut widths: Vec<Wide> = widest.map(|cells| Wide { cells, cut: false }).collect();
        // the line between head and tail is as wide as the others
        let needed = self.gap().map_or(0, |gap| width(&gap) + 2);
        let missing = needed.saturating_sub(inner(&widths));
        if let Some(last) = widths.last_mut() {
            last.cells += missing;
        }
        widths
    }

    fn rule(&self, widths: &[Wide], [line, left, middle, right]: [&str; 4], out: &mut dyn Write) -> io::Result<()> {
        let parts: Vec<String> = widths.iter().map(|w| line.repeat(w.cells + 2)).collect();
        writeln!(out, "{left}{}{right}", parts.join(middle))
    }

    fn top(&self, widths: &[Wide], out: &mut dyn Write) -> io::Result<()> {
        let ascii = self.style.ascii;
        self.rule(widths, if ascii { ["-", "+", "+", "+"] } else { ["─", "┌", "┬", "┐"] }, out)?;
        let bar = self.bar();
        let mut line = String::from(bar);
        for ((name, wide), right) in self.names.iter().zip(widths).zip(&self.right) {
            let name = if width(name) > wide.cells { clipped(name, wide.cells) } else { name.clone() };
            let shown = if self.style.color { format!("\x1b[1m{name}\x1b[0m") } else { name.clone() };
            push_cell(&mut line, &shown, width(&name), wide.cells, *right);
            line.push_str(bar);
        }
        writeln!(out, "{line}")?;
        self.rule(widths, if ascii { ["-", "+", "+", "+"] } else { ["─", "├", "┼", "┤"] }, out)
    }

    fn bar(&self) -> &'static str {
        if self.style.ascii { "|" } else { "│" }
    }

    fn line(&self, row: &Row, widths: &[Wide], out: &mut dyn Write) -> io::Result<()> {
        let bar = self.bar();
        let mut line = String::from(bar);
        for ((cell, wide), right) in row.cells.iter().zip(widths).zip(&self.right) {
            let cell = cell.within(*wide);
            push_cell(&mut line, &cell.shown(&self.style), width(&cell.text), wide.cells, *right);
            line.push_str(bar);
        }
        writeln!(out, "{line}")
    }

    fn bottom(&self, widths: &[Wide], out: &mut dyn Write) -> io::Result<()> {
        self.rule(widths, if self.style.ascii { ["-", "+", "+", "+"] } else { ["─", "└", "┴", "┘"] }, out)
    }

    /// The rows between head and tail, stated.
    fn gap(&self) -> Option<String> {
        let shown = (self.head.len() + self.tail.len()) as u64;
        (self.rows > shown).then(|| format!("… {} more rows …", grouped(self.rows - shown)))
    }

    fn grid(&self, widths: &[Wide], out: &mut dyn Write) -> io::Result<()> {
        self.top(widths, out)?;
        for row in &self.head {
            self.line(row, widths, out)?;
        }
        if let Some(gap) = self.gap() {
            let pad = inner(widths).saturating_sub(width(&gap));
            let left = pad / 2;
            writeln!(out, "{bar}{:left$}{gap}{:right$}{bar}", "", "", bar = self.bar(), right = pad - left)?;
        }
        for row in &self.tail {
            self.line(row, widths, out)?;
        }
        self.bottom(widths, out)
    }

    fn records(&self, out: &mut dyn Write) -> io::Result<()> {
        let records = Records::new(self.names.clone(), self.style.clone());
        for (row, number) in self.head.iter().zip(self.limits.first..) {
            records.write(number, row, out)?;
        }
        if let Some(gap) = self.gap() {
            writeln!(out, "{gap}")?;
        }
        let first = self.limits.first + self.rows - self.tail.len() as u64;
        for (row, number) in self.tail.iter().zip(first..) {
            records.write(number, row, out)?;
        }
        Ok(())
    }

    /// Widths of a grid that fits; None: records are better.
    fn grid_widths(&self) -> Option<Vec<Wide>> {
        let mut widths = self.measure();
        match self.limits.expanded {
            Expanded::On => return None,
            Expanded::Off => return Some(widths),
            Expanded::Auto if !self.too_wide(&widths) => return Some(widths),
            Expanded::Auto => {}
        }
        if self.limits.shrink {
            self.shrink_names(&mut widths);
        }
        // the widest first, down to what still tells them apart
        let kept = |at: usize| self.names.get(at).map(String::as_str) == self.limits.keep;
        while self.limits.shrink && self.too_wide(&widths) {
            let least = |at: usize| SHRUNK.max(self.names.get(at).map_or(0, |name| width(name)));
            let (at, _) = widths
                .iter()
                .enumerate()
                .filter(|(at, wide)| self.texts.get(*at) == Some(&true) && !kept(*at) && wide.cells > least(*at))
                .max_by_key(|(_, wide)| wide.cells)?;
            let widest = widths.get_mut(at)?;
            *widest = Wide { cells: widest.cells - 1, cut: true };
        }
        (!self.too_wide(&widths)).then_some(widths)
    }

    /// Cuts names that are wider than all values under them, before any value is cut.
    fn shrink_names(&self, widths: &mut [Wide]) {
        let least: Vec<usize> = self.value_widths().into_iter().map(|value| value.max(SHRUNK_NAME)).collect();
        while self.too_wide(widths) {
            let spare = widths.iter().zip(&least).map(|(wide, least)| wide.cells.saturating_sub(*least));
            let widest = spare.enumerate().filter(|(_, spare)| *spare > 0).max_by_key(|(_, spare)| *spare);
            let Some(wide) = widest.and_then(|(at, _)| widths.get_mut(at)) else { return };
            wide.cells -= 1;
        }
    }

    /// Writes the measured rows and lets the others follow as they come.
    fn start_flow(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.grid_widths() {
            None => {
                self.records(out)?;
                self.flow = Flow::Records(Records::new(self.names.clone(), self.style.clone()));
            }
            Some(widths) => {
                self.top(&widths, out)?;
                for row in &self.head {
                    self.line(row, &widths, out)?;
                }
                self.flow = Flow::Grid(widths);
            }
        }
        self.head = Vec::new();
        Ok(())
    }

    /// Whether the grid is wider than the terminal.
    fn too_wide(&self, widths: &[Wide]) -> bool {
        let wide = widths.iter().map(|w| w.cells + 3).sum::<usize>() + 1;
        self.limits.width.is_some_and(|terminal| wide > terminal)
    }
}

/// Cells between the borders of a grid.
fn inner(widths: &[Wide]) -> usize {
    widths.iter().map(|w| w.cells + 3).sum::<usize>().saturating_sub(1)
}

fn push_cell(line: &mut String, shown: &str, has: usize, wide: usize, right: bool) {
    let pad = " ".repeat(wide.saturating_sub(has));
    line.push(' ');
    if right {
        line.push_str(&pad);
        line.push_str(shown);
    } else {
        line.push_str(shown);
        line.push_str(&pad);
    }
    line.push(' ');
}

impl Renderer for Table {
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let records = self.limits.expanded == Expanded::On;
        let cell_width = if records && self.style.cell_width > 0 { VALUE_WIDTH } else { self.style.cell_width };
        if let Some(cap) = self.limits.rows {
            // rows that can no longer be among the last ones need not be made
            let keep = cap - rows_before_gap(cap);
            for row in 0..batch.num_rows() {
                self.rows += 1;
                if self.head.len() < cap && self.tail.is_empty() {
                    self.head.push(self.row(batch, row, cell_width)?);
                    continue;
                }
                if self.tail.is_empty() {
                    self.tail.extend(self.head.drain(rows_before_gap(cap)..));
                }
                if batch.num_rows() - row <= keep {
                    if self.tail.len() == keep {
                        self.tail.pop_front();
                    }
                    self.tail.push_back(self.row(batch, row, cell_width)?);
                }
            }
            return Ok(());
        }
        for row in 0..batch.num_rows() {
            self.rows += 1;
            let row = self.row(batch, row, cell_width)?;
            match &self.flow {
                Flow::Grid(widths) => self.line(&row, widths, out)?,
                Flow::Records(records) => records.write(self.limits.first + self.rows - 1, &row, out)?,
                Flow::Measuring => {
                    self.head.push(row);
                    if self.head.len() == MEASURED_ROWS {
                        self.start_flow(out)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match &self.flow {
            Flow::Grid(widths) => return self.bottom(widths, out),
            Flow::Records(_) => return Ok(()),
            Flow::Measuring => {}
        }
        match self.grid_widths() {
            None if self.rows > 0 || self.limits.expanded == Expanded::On => self.records(out),
            // nothing to show beside the names of the columns, and they do not fit on one line
            None => self.names.iter().try_for_each(|name| writeln!(out, "{name}")),
            Some(widths) => self.grid(&widths, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::super::{Format, to_text};
    use super::*;

    fn batch(n: i64) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=n));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((1..=n).map(|i| format!("row {i}"))));
        RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
    }

    fn shown(batches: &[RecordBatch], limits: Limits) -> String {
        to_text(Format::Table, batches, &Style::default(), limits)
    }

    #[test]
    fn wide_characters_and_null_stay_in_their_columns() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![
            Some("订单"),
            Some("👨‍👩‍👧"),
            Some("e\u{301}"),
            Some("a\tb"),
            None,
            Some("NULL"),
            Some(""),
        ]));
        let batch = RecordBatch::try_from_iter([("名", names)]).unwrap();
        let text = shown(&[batch], Limits::NONE);
        assert_eq!(
            text,
            "┌────────┐\n│ 名     │\n├────────┤\n│ 订单   │\n│ 👨‍👩‍👧     │\n│ e\u{301}      │\n│ a\\tb   │\n│ NULL   │\n│ 'NULL' │\n│        │\n└────────┘\n"
        );
    }

    #[test]
    fn capped_table_shows_both_ends_and_counts_the_rest() {
        let limits =
            Limits { rows: Some(4), width: Some(80), expanded: Expanded::Auto, shrink: false, keep: None, first: 1 };
        let text = shown(&[batch(7), batch(3), batch(1)], limits);
        let rows = text.lines().filter(|line| line.starts_with("│ ") && !line.contains("more rows"));
        let ids: Vec<&str> = rows.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
        assert_eq!(ids, ["id", "1", "2", "3", "1"]);
        assert!(text.contains("… 7 more rows …"), "{text}");
        assert!(!shown(&[batch(4)], limits).contains("more rows"));
        let five = shown(&[batch(5)], limits);
        assert!(five.contains("… 1 more rows …") && five.contains("row 5") && five.contains("row 4"), "{five}");
    }

    #[test]
    fn capped_table_shows_as_many_rows_as_it_says() {
        for rows in 1..=5 {
            let limits = Limits {
                rows: Some(rows),
                width: Some(80),
                expanded: Expanded::Auto,
                shrink: false,
                keep: None,
                first: 1,
            };
            for batches in [vec![batch(50)], vec![batch(1); 50]] {
                let text = shown(&batches, limits);
                let lines: Vec<&str> = text.lines().filter(|line| line.contains("│ row")).collect();
                assert_eq!(lines.len(), rows, "{text}");
                let before = text.lines().take_while(|line| !line.contains("more rows"));
                let before = before.filter(|line| line.contains("│ row")).count();
                assert_eq!(before, rows_before_gap(rows), "{text}");
                assert!(text.contains(&format!("… {} more rows …", 50 - rows)), "{text}");
            }
        }
    }

    /// However narrow the columns are.
    #[test]
    fn capped_table_is_aligned() {
        for rows in [1, 2, 4, 5] {
            let limits = Limits {
                rows: Some(rows),
                width: Some(80),
                expanded: Expanded::Auto,
                shrink: false,
                keep: None,
                first: 1,
            };
            let whole = batch(10_000);
            let text = shown(&[whole.project(&[0]).unwrap(), whole.project(&[0]).unwrap()], limits);
            assert!(text.contains("more rows …"), "{text}");
            let wide = width(text.lines().next().unwrap());
            assert!(text.lines().all(|line| width(line) == wide), "{text}");
        }
    }

    #[test]
    fn too_wide_for_the_terminal_becomes_records() {
        let limits =
            Limits { rows: Some(40), width: Some(10), expanded: Expanded::Auto, shrink: false, keep: None, first: 1 };
        let text = shown(&[batch(2)], limits);
        assert_eq!(text.lines().next().unwrap(), "─[ 1 ]──────────");
        assert!(text.contains("name │ row 2"), "{text}");
        assert!(shown(&[batch(2)], Limits { expanded: Expanded::Off, ..limits }).starts_with('┌'));
    }

    #[test]
    fn listing_cuts_its_longest_texts_to_fit() {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a file of some length-0", "short"]));
        let batch = RecordBatch::try_from_iter([("id", ids), ("file", names)]).unwrap();
        let limits = |width| Limits {
            rows: None,
            width: Some(width),
            expanded: Expanded::Auto,
            shrink: true,
            keep: None,
            first: 1,
        };
        let text = shown(std::slice::from_ref(&batch), limits(24));
        assert!(text.contains("│  1 │ a file of some… │\n│  2 │ short           │"), "{text}");
        assert!(text.lines().all(|line| width(line) == 24), "{text}");
        // what would tell nothing any more becomes records
        assert!(shown(&[batch], limits(15)).starts_with("─[ 1 ]"));
    }

    /// What is wider than all that was measured makes its line wider: half a number is another number.
    #[test]
    fn rows_behind_those_measured_are_whole() {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1200).map(|i| if i < 1100 { i % 9 } else { i })));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..1200).map(|i| format!("k{}", i / 1100 * i))));
        let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
        for shrink in [false, true] {
            let text = shown(std::slice::from_ref(&batch), Limits { shrink, width: Some(80), ..Limits::NONE });
            assert!(text.contains("│ 1199 │ k1199 │\n") && !text.contains('…'), "{text}");
        }
        // texts that are cut to fit the terminal are cut to the last row
        let long: ArrayRef = Arc::new(StringArray::from_iter_values((0..1200).map(|i| "x".repeat(20 + i / 1100))));
        let batch = RecordBatch::try_from_iter([("t", long)]).unwrap();
        let text = shown(&[batch], Limits { shrink: true, width: Some(20), ..Limits::NONE });
        assert!(text.lines().all(|line| width(line) == 20), "{text}");
    }

    /// However narrow cells may be.
    #[test]
    fn only_what_may_be_long_is_cut() {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1_234_567]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a long text"]));
        let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
        let text = to_text(Format::Table, &[batch], &Style { cell_width: 3, ..Style::default() }, Limits::NONE);
        assert!(text.contains("│ 1234567 │ a l…(+8 B) │"), "{text}");
    }

    #[test]
    fn listing_cuts_names_before_values_and_keeps_what_must_stay() {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let users: ArrayRef = Arc::new(StringArray::from(vec!["spark-fix-20260416-1", "x"]));
        let batch = RecordBatch::try_from_iter([("identifier", ids), ("user", users)]).unwrap();
        let limits = |width| Limits { width: Some(width), shrink: true, keep: Some("user"), ..Limits::NONE };
        let text = shown(std::slice::from_ref(&batch), limits(34));
        assert!(text.contains("│ identi… │ user ") && text.contains("│ spark-fix-20260416-1 │"), "{text}");
        assert!(shown(&[batch], limits(30)).starts_with("─[ 1 ]"));
    }

    #[test]
    fn long_results_without_cap_are_complete() {
        let all: Vec<RecordBatch> = (0..5).map(|_| batch(700)).collect();
        assert_eq!(shown(&all, Limits::NONE).lines().count(), 3500 + 4);
        let records = shown(&all, Limits { expanded: Expanded::On, ..Limits::NONE });
        assert_eq!(records.lines().count(), 3500 * 3);
        assert!(records.contains("─[ 3500 ]"));
        let rest = shown(&all, Limits { expanded: Expanded::On, first: 21, ..Limits::NONE });
        assert!(rest.starts_with("─[ 21 ]") && rest.contains("─[ 3520 ]") && !rest.contains("─[ 20 ]"));
    }
}
