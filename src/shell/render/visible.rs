//! A terminal that takes texts of data: no character of them may move its cursor, retitle it or turn its direction.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Format;
use super::width::{visible, visible_json};

/// What becomes of characters that a terminal acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    /// They stay: what is written holds none, or nobody looks at it.
    None,
    /// Visible escapes.
    Text,
    /// Escapes of JSON.
    Json,
}

impl Escapes {
    /// For results on a terminal. Formats for people escape their cells by themselves, around colours of their own.
    pub fn on_terminal(format: Format) -> Self {
        match format {
            Format::Csv | Format::Tsv => Self::Text,
            Format::Json | Format::Ndjson => Self::Json,
            Format::Table | Format::Markdown | Format::Vertical | Format::Arrow | Format::Parquet => Self::None,
        }
    }
}

/// A writer that escapes. What is written to it at once is whole characters.
#[derive(Debug)]
pub struct Visible<W> {
    /// Where it goes.
    pub inner: W,
    /// How it goes.
    pub escapes: Escapes,
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = |escape: fn(&str) -> Cow<'_, str>| escape(&String::from_utf8_lossy(bytes)).into_owned();
        match self.escapes {
            Escapes::None => return self.inner.write(bytes),
            Escapes::Text => self.inner.write_all(text(visible).as_bytes())?,
            Escapes::Json => self.inner.write_all(text(visible_json).as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray};
    use clap::ValueEnum;

    use super::*;
    use crate::shell::render::{Limits, Style, renderer};

    #[test]
    fn nothing_of_data_reaches_a_terminal_raw_in_any_format() {
        let evil = "a\x1b[2Jb\x07c\u{9b}5nd\u{202e}e\u{200b}f\r";
        let values: ArrayRef = Arc::new(StringArray::from(vec![evil, "订单"]));
        let batch = RecordBatch::try_from_iter([(evil, values)]).unwrap();
        for format in Format::value_variants().iter().copied().filter(|format| !format.is_binary()) {
            let mut out = Visible { inner: Vec::new(), escapes: Escapes::on_terminal(format) };
            let style = Style { color: false, ..Style::default() };
            let mut render = renderer(format, &batch.schema(), &style, Limits::NONE);
            render.begin(&mut out).and_then(|()| render.batch(&batch, &mut out)).unwrap();
            render.end(&mut out).unwrap();
            let text = String::from_utf8(out.inner).unwrap();
            assert_eq!(visible(&text), text, "{format:?}");
            assert!(text.contains("订单") && text.contains("[2J"), "{format:?}: {text}");
            if format == Format::Ndjson {
                let row: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
                assert_eq!(row[evil], evil);
            }
        }
    }
}
