//! Texts of several lines, such as plans and `CREATE TABLE`: shown as they are, under their names, not in a grid.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Renderer;
use super::width::escaped;
use crate::export::value::{ISO, text};

/// Names of the columns whose last is such a text.
const TEXTS: &[&[&str]] = &[&["plan_type", "plan"], &["table_name", "create_statement"]];

/// Whether a result reads better as texts.
pub fn are_texts(schema: &SchemaRef) -> bool {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    TEXTS.contains(&names.as_slice())
}

/// Title and text of each row.
pub struct Blocks;

impl Renderer for Blocks {
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let [titles, texts] = batch.columns() else { return Ok(()) };
        for row in 0..batch.num_rows() {
            let (mut title, mut body) = (String::new(), String::new());
            text(titles.as_ref(), row, ISO, &mut title)?;
            text(texts.as_ref(), row, ISO, &mut body)?;
            writeln!(out, "{}:", escaped(&title))?;
            for line in body.trim_end().lines() {
                writeln!(out, "  {}", escaped(line))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
