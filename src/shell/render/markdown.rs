//! A Markdown table; it streams, so columns are not padded.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::width::escaped;
use super::{Renderer, Style, is_numeric, word_of};
use crate::export::value::text;

/// Rows as lines of a Markdown table.
pub struct Markdown {
    schema: SchemaRef,
    style: Style,
}

impl Markdown {
    /// The table of a schema.
    pub fn new(schema: &SchemaRef, style: Style) -> Self {
        Self { schema: schema.clone(), style }
    }
}

fn cell(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace('\n', "<br>");
    escaped(&text)
}

impl Renderer for Markdown {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let fields = self.schema.fields();
        let heads: Vec<String> = fields.iter().map(|f| cell(f.name())).collect();
        let rules: Vec<&str> = fields.iter().map(|f| if is_numeric(f.data_type()) { "---:" } else { "---" }).collect();
        writeln!(out, "| {} |\n| {} |", heads.join(" | "), rules.join(" | "))
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            let mut line = String::from("|");
            for (at, (column, field)) in batch.columns().iter().zip(self.schema.fields()).enumerate() {
                let mut value = String::new();
                line.push(' ');
                if let Some(word) = word_of(&self.style.words_of(field), column.as_ref(), row) {
                    line.push_str(&cell(word));
                } else if text(column.as_ref(), row, self.style.times_of(at), &mut value)? {
                    line.push_str(&cell(&value));
                } else {
                    line.push_str(&self.style.null);
                }
                line.push_str(" |");
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
