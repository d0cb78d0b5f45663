//! Objects: one array of them, or one a line. 64-bit integers are numbers, decimals strings at full scale (numbers with
//! every digit when asked), NaN null,
//! infinities `"Infinity"`, maps arrays of pairs. A column name that occurs twice gets `_2`, so no value is lost.

use std::collections::HashSet;
use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::value::{json_with_digits, string};
use super::{Decimals, Renderer};

/// Rows as objects.
pub struct Json {
    keys: Vec<String>,
    lines: bool,
    rows: u64,
    text: String,
    decimals: Decimals,
    digits: Vec<Option<u8>>,
}

impl Json {
    /// One array.
    pub fn array(schema: &SchemaRef, decimals: Decimals) -> Self {
        Self { keys: keys(schema), lines: false, rows: 0, text: String::new(), decimals, digits: Vec::new() }
    }

    /// One object a line.
    pub fn lines(schema: &SchemaRef, decimals: Decimals) -> Self {
        Self { lines: true, ..Self::array(schema, decimals) }
    }

    /// With the digits of a second that columns declare.
    #[cfg(feature = "cli")]
    #[must_use]
    pub fn with_digits(self, digits: Vec<Option<u8>>) -> Self {
        Self { digits, ..self }
    }
}

/// `"name":` of every column, each once.
fn keys(schema: &SchemaRef) -> Vec<String> {
    let all: HashSet<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let mut seen = HashSet::new();
    let mut keys = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut n = 2;
        while seen.contains(&name) || (n > 2 && all.contains(name.as_str())) {
            name = format!("{}_{n}", field.name());
            n += 1;
        }
        let mut key = String::new();
        string(&name, &mut key);
        key.push(':');
        keys.push(key);
        seen.insert(name);
    }
    keys
}

impl Renderer for Json {
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            self.text.clear();
            if !self.lines {
                self.text.push_str(if self.rows == 0 { "[\n" } else { ",\n" });
            }
            self.text.push('{');
            for (i, (column, key)) in batch.columns().iter().zip(&self.keys).enumerate() {
                if i > 0 {
                    self.text.push(',');
                }
                self.text.push_str(key);
                let digits = self.digits.get(i).copied().flatten();
                json_with_digits(column.as_ref(), row, self.decimals, digits, &mut self.text)?;
            }
            self.text.push('}');
            if self.lines {
                self.text.push('\n');
            }
            out.write_all(self.text.as_bytes())?;
            self.rows += 1;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match (self.lines, self.rows) {
            (true, _) => Ok(()),
            (false, 0) => out.write_all(b"[]\n"),
            (false, _) => out.write_all(b"\n]\n"),
        }
    }
}
