//! Comma- and tab-separated values, with a header.
//!
//! CSV: NULL is nothing, the empty string `""`, quotes where they are needed. TSV: NULL is `\N`; tab, line feed,
//! carriage return and backslash are escaped with a backslash.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Renderer;
use super::value::{ISO, Times, text};

/// How a value keeps what would end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    /// Inside quotes, which stand around values that need them: for what means something to a reader, and for NULL's
    /// own text.
    Quotes {
        /// The quote.
        quote: char,
        /// What stands before a quote in a value; the quote itself doubles it.
        escape: char,
        /// Quotes around every value but NULL.
        always: bool,
    },
    /// A backslash before it.
    Backslash,
}

/// What stands between values, and how they are told from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Separated {
    /// Between values.
    pub separator: char,
    /// After each row.
    pub line_end: char,
    /// What stands for NULL.
    pub null: String,
    /// How a value keeps what would end it.
    pub quoting: Quoting,
}

impl Separated {
    /// Commas and quotes.
    pub fn by_commas() -> Self {
        Self {
            separator: ',',
            line_end: '\n',
            null: String::new(),
            quoting: Quoting::Quotes { quote: '"', escape: '"', always: false },
        }
    }

    /// Tabs and backslashes.
    pub fn by_tabs() -> Self {
        Self { separator: '\t', line_end: '\n', null: "\\N".to_string(), quoting: Quoting::Backslash }
    }

    fn push(&self, value: Option<&str>, line: &mut String) {
        let Some(value) = value else {
            line.push_str(&self.null);
            return;
        };
        match self.quoting {
            Quoting::Backslash => {
                for c in value.chars() {
                    match c {
                        '\t' => line.push_str("\\t"),
                        '\n' => line.push_str("\\n"),
                        '\r' => line.push_str("\\r"),
                        '\\' => line.push_str("\\\\"),
                        c => line.push(c),
                    }
                }
            }
            Quoting::Quotes { quote, escape, always } => {
                let means = |c: char| c == quote || c == self.separator || c == self.line_end || c == '\n' || c == '\r';
                if !always && value != self.null && !value.contains(means) {
                    line.push_str(value);
                    return;
                }
                line.push(quote);
                for c in value.chars() {
                    // an escape that is no quote escapes itself too
                    if c == quote || c == escape {
                        line.push(escape);
                    }
                    line.push(c);
                }
                line.push(quote);
            }
        }
    }
}

/// Rows as lines.
pub struct Delimited {
    schema: SchemaRef,
    separated: Separated,
    digits: Vec<Option<u8>>,
    line: String,
    cell: String,
}

impl Delimited {
    /// Lines of a schema's rows.
    pub fn new(schema: &SchemaRef, separated: Separated) -> Self {
        Self { schema: schema.clone(), separated, digits: Vec::new(), line: String::new(), cell: String::new() }
    }

    /// With the digits of a second that columns declare.
    #[cfg(feature = "cli")]
    #[must_use]
    pub fn with_digits(self, digits: Vec<Option<u8>>) -> Self {
        Self { digits, ..self }
    }
}

impl Renderer for Delimited {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.line.clear();
        for (i, field) in self.schema.fields().iter().enumerate() {
            if i > 0 {
                self.line.push(self.separated.separator);
            }
            self.separated.push(Some(field.name()), &mut self.line);
        }
        self.line.push(self.separated.line_end);
        out.write_all(self.line.as_bytes())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    self.line.push(self.separated.separator);
                }
                self.cell.clear();
                let times = Times { digits: self.digits.get(i).copied().flatten(), ..ISO };
                let present = text(column.as_ref(), row, times, &mut self.cell)?;
                self.separated.push(present.then_some(self.cell.as_str()), &mut self.line);
            }
            self.line.push(self.separated.line_end);
            out.write_all(self.line.as_bytes())?;
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
