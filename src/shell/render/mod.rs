//! Batches to text, one file a format. Every format streams: what it holds is bounded by its own rule (rows measured
//! for widths, rows shown of a capped table), never by the result.
//!
//! | file | gives |
//! |---|---|
//! | `width` | display cells of text, cutting, escaping |
//! | `table` | a grid that fits the terminal, or records when it does not |
//! | `vertical` | one line a column |
//! | `markdown` | what the name says; csv, tsv, json and ndjson are the room `export`'s |
//! | `arrow`, `parquet` | what the name says, for programs |
//! | `visible` | any of them on a terminal |
//! | `blocks` | plans and other texts of several lines |

mod arrow;
mod blocks;
mod markdown;
mod parquet;
mod table;
mod vertical;
mod visible;
pub mod width;

use ::arrow::array::timezone::Tz;
use ::arrow::array::{Array, AsArray};
use ::arrow::datatypes::{DataType, Field, Int64Type, SchemaRef, TimeUnit, TimestampSecondType};
use clap::ValueEnum;

use crate::export::value::Times;
pub use crate::export::{Decimals, Renderer};
use crate::export::{Delimited, Json, Separated};
pub use table::{Expanded, Limits, rows_before_gap};
pub use visible::{Escapes, Visible};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A grid.
    Table,
    /// Comma-separated, with header.
    Csv,
    /// Tab-separated, with header.
    Tsv,
    /// One array of objects.
    Json,
    /// One object a line.
    Ndjson,
    /// A Markdown table.
    Markdown,
    /// One line a column.
    Vertical,
    /// A stream of Arrow's interprocess format.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Format {
    /// Whether standard output holds rows only.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Json | Self::Ndjson) || self.is_binary()
    }

    /// Whether it is no text.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }

    /// The name users type.
    pub fn name(self) -> String {
        self.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default()
    }

    /// The format of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::from_str(name, true).ok()
    }

    /// The format that the name of a file says.
    pub fn of_file(name: &str) -> Option<Self> {
        let extension = std::path::Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "md" => Some(Self::Markdown),
            "jsonl" => Some(Self::Ndjson),
            "table" | "vertical" => None,
            name => Self::parse(name),
        }
    }

    /// All names.
    pub fn names() -> Vec<String> {
        Self::value_variants().iter().map(|f| f.name()).collect()
    }
}

/// How cells look.
#[derive(Debug, Clone)]
pub struct Style {
    /// What stands for NULL in tables.
    pub null: String,
    /// Zone of `TIMESTAMP WITH LOCAL TIME ZONE` in tables; data formats write UTC.
    pub zone: Option<Tz>,
    /// Whether NULL is dimmed and heads are bold.
    pub color: bool,
    /// Borders of `+`, `-` and `|`.
    pub ascii: bool,
    /// Display cells after which a cell of a table is cut, 0 for never.
    pub cell_width: usize,
    /// Decimals in JSON.
    pub decimals: Decimals,
    /// Digits of a second that columns declare; those of their unit where there is none.
    pub digits: Vec<Option<u8>>,
    /// What people read in place of some numbers; data formats keep those.
    pub words: Vec<Word>,
}

/// A number of a column, a time among them, that stands for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The column.
    pub column: &'static str,
    /// The number, in the unit of the column.
    pub number: i64,
    /// What it stands for.
    pub text: &'static str,
}

impl Style {
    /// How times of a column are written for people.
    fn times_of(&self, column: usize) -> Times {
        Times { between: ' ', zone: self.zone, digits: self.digits.get(column).copied().flatten() }
    }

    /// The word for each number of a column that has one.
    fn words_of(&self, column: &Field) -> Vec<Word> {
        self.words.iter().filter(|word| word.column == column.name()).copied().collect()
    }
}

/// The word for a value.
fn word_of(words: &[Word], column: &dyn Array, row: usize) -> Option<&'static str> {
    if words.is_empty() || column.is_null(row) {
        return None;
    }
    let number = match column.data_type() {
        DataType::Int64 => column.as_primitive_opt::<Int64Type>().map(|numbers| numbers.value(row)),
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.as_primitive_opt::<TimestampSecondType>().map(|times| times.value(row))
        }
        _ => None,
    };
    words.iter().find(|word| Some(word.number) == number).map(|word| word.text)
}

impl Default for Style {
    fn default() -> Self {
        Self {
            null: "NULL".to_string(),
            zone: None,
            color: false,
            ascii: false,
            cell_width: 60,
            decimals: Decimals::String,
            digits: Vec::new(),
            words: Vec::new(),
        }
    }
}

/// Whether a type reads better from the right.
pub fn is_numeric(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// Whether values may be cut for their length: half a number or time is another one.
pub fn may_be_long(data_type: &DataType) -> bool {
    !(is_numeric(data_type) || data_type.is_temporal() || *data_type == DataType::Boolean)
}

/// The renderer of a format. `limits` only matter to tables and records.
pub fn renderer(format: Format, schema: &SchemaRef, style: &Style, limits: Limits) -> Box<dyn Renderer> {
    match format {
        Format::Table if blocks::are_texts(schema) => Box::new(blocks::Blocks),
        Format::Table => Box::new(table::Table::new(schema, style.clone(), limits)),
        Format::Vertical => {
            Box::new(table::Table::new(schema, style.clone(), Limits { expanded: Expanded::On, ..limits }))
        }
        Format::Csv => Box::new(Delimited::new(schema, Separated::by_commas()).with_digits(style.digits.clone())),
        Format::Tsv => Box::new(Delimited::new(schema, Separated::by_tabs()).with_digits(style.digits.clone())),
        Format::Json => Box::new(Json::array(schema, style.decimals).with_digits(style.digits.clone())),
        Format::Ndjson => Box::new(Json::lines(schema, style.decimals).with_digits(style.digits.clone())),
        Format::Markdown => Box::new(markdown::Markdown::new(schema, style.clone())),
        Format::Arrow => Box::new(arrow::Arrow::new(schema)),
        Format::Parquet => Box::new(parquet::Parquet::new(schema)),
    }
}

#[cfg(test)]
#[test]
fn names_of_files_say_their_format() {
    for (name, format) in [
        ("a/t.csv", Some(Format::Csv)),
        ("T.JSON", Some(Format::Json)),
        ("x.jsonl", Some(Format::Ndjson)),
        ("notes.md", Some(Format::Markdown)),
        ("p.parquet", Some(Format::Parquet)),
        ("t.csv.txt", None),
        ("csv", None),
        ("a.table", None),
    ] {
        assert_eq!(Format::of_file(name), format, "{name}");
    }
}

#[cfg(test)]
#[test]
fn numbers_that_stand_for_something_are_words_to_people_only() {
    let column = |number: i64| -> ::arrow::array::ArrayRef {
        std::sync::Arc::new(::arrow::array::Int64Array::from(vec![1, number]))
    };
    let batch = ::arrow::array::RecordBatch::try_from_iter([("identifier", column(i64::MAX)), ("n", column(i64::MAX))]);
    let words = vec![Word { column: "identifier", number: i64::MAX, text: "batch" }];
    let (batch, style) = ([batch.unwrap()], Style { words, ..Style::default() });
    for (format, times) in [(Format::Table, 1), (Format::Markdown, 1), (Format::Vertical, 1), (Format::Csv, 0)] {
        let text = to_text(format, &batch, &style, Limits::NONE);
        assert_eq!((text.matches("batch").count(), text.matches("9223").count()), (times, 2 - times), "{text}");
    }
}

#[cfg(test)]
#[test]
fn times_have_the_digits_their_columns_declare_in_every_text() {
    let column = || -> ::arrow::array::ArrayRef {
        std::sync::Arc::new(::arrow::array::Time32MillisecondArray::from(vec![28_800_000, 34_200_000]))
    };
    let batch = [::arrow::array::RecordBatch::try_from_iter([("t0", column()), ("t3", column())]).unwrap()];
    let style = Style { digits: vec![Some(0), Some(3)], ..Style::default() };
    for format in
        [Format::Table, Format::Vertical, Format::Csv, Format::Tsv, Format::Json, Format::Ndjson, Format::Markdown]
    {
        let text = to_text(format, &batch, &style, Limits::NONE);
        assert_eq!((text.matches("08:00:00").count(), text.matches("08:00:00.000").count()), (2, 1), "{text}");
    }
}

/// A whole small result as text.
#[cfg(test)]
pub fn to_text(format: Format, batches: &[::arrow::array::RecordBatch], style: &Style, limits: Limits) -> String {
    String::from_utf8(to_bytes(format, batches, style, limits)).unwrap()
}

/// A whole small result.
#[cfg(test)]
pub fn to_bytes(format: Format, batches: &[::arrow::array::RecordBatch], style: &Style, limits: Limits) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut renderer = renderer(format, &schema, style, limits);
    let mut out = Vec::new();
    renderer.begin(&mut out).unwrap();
    batches.iter().for_each(|batch| renderer.batch(batch, &mut out).unwrap());
    renderer.end(&mut out).unwrap();
    out
}
