//! Rows as text that programs read: the same from the shell, in its output files, and from `COPY`.
//!
//! | file | gives |
//! |---|---|
//! | `value` | one cell as text or JSON |
//! | `delimited` | comma- and tab-separated lines |
//! | `json` | objects, in one array or one a line |

mod delimited;
mod json;
pub mod value;

use std::io::{self, Write};

use arrow::array::RecordBatch;

pub use delimited::{Delimited, Quoting, Separated};
pub use json::Json;

/// Decimals in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Decimals {
    /// Strings: no reader rounds them.
    #[default]
    String,
    /// Numbers, every digit written.
    Number,
}

/// One result on its way to a writer.
pub trait Renderer: Send {
    /// Before the first batch.
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;
    /// One batch.
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()>;
    /// After the last batch.
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// Whole small results as text.
#[cfg(test)]
fn text_of(mut renderer: impl Renderer, batches: &[RecordBatch]) -> String {
    let mut out = Vec::new();
    renderer.begin(&mut out).unwrap();
    batches.iter().for_each(|batch| renderer.batch(batch, &mut out).unwrap());
    renderer.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}
