//! Comma- and tab-separated values, with a header.
//!
//! CSV: NULL is nothing, the empty string `""`, quotes where they are needed. TSV: NULL is `\N`; tab, line feed,
//! carriage return and backslash are escaped with a backslash.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Renderer;
use super::value::{ISO, text};

/// Rows as lines.
pub struct Delimited {
    schema: SchemaRef,
    tabs: bool,
    line: String,
    cell: String,
}

impl Delimited {
    /// Comma-separated.
    pub fn csv(schema: &SchemaRef) -> Self {
        Self { schema: schema.clone(), tabs: false, line: String::new(), cell: String::new() }
    }

    /// Tab-separated.
    pub fn tsv(schema: &SchemaRef) -> Self {
        Self { tabs: true, ..Self::csv(schema) }
    }

    fn separator(&self) -> char {
        if self.tabs { '\t' } else { ',' }
    }

    fn push(&mut self, value: Option<&str>) {
        match (self.tabs, value) {
            (false, None) => {}
            (true, None) => self.line.push_str("\\N"),
            (false, Some(value)) => {
                if value.is_empty() || value.contains([',', '"', '\n', '\r']) {
                    self.line.push('"');
                    self.line.push_str(&value.replace('"', "\"\""));
                    self.line.push('"');
                } else {
                    self.line.push_str(value);
                }
            }
            (true, Some(value)) => {
                for c in value.chars() {
                    match c {
                        '\t' => self.line.push_str("\\t"),
                        '\n' => self.line.push_str("\\n"),
                        '\r' => self.line.push_str("\\r"),
                        '\\' => self.line.push_str("\\\\"),
                        c => self.line.push(c),
                    }
                }
            }
        }
    }
}

impl Renderer for Delimited {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.line.clear();
        let schema = self.schema.clone();
        for (i, field) in schema.fields().iter().enumerate() {
            if i > 0 {
                self.line.push(self.separator());
            }
            self.push(Some(field.name()));
        }
        self.line.push('\n');
        out.write_all(self.line.as_bytes())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    self.line.push(self.separator());
                }
                let mut cell = std::mem::take(&mut self.cell);
                cell.clear();
                let present = text(column.as_ref(), row, ISO, &mut cell)?;
                self.push(present.then_some(cell.as_str()));
                self.cell = cell;
            }
            self.line.push('\n');
            out.write_all(self.line.as_bytes())?;
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
