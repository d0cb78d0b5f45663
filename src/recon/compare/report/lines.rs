//! A report as rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::super::tally::Class;
use super::{Report, SideReport};
use crate::error::Result;

impl Report {
    /// Columns of [`Self::rows`], in an order that stays:
    ///
    /// | column | of `verdict` | of `side` | of `class` | of `column` | of `example` | of `note` |
    /// |---|---|---|---|---|---|---|
    /// | `part` | | | | | | |
    /// | `class` | the verdict | | the class | | the class | |
    /// | `key` | | | | | JSON object of texts | |
    /// | `column` | | | | its name | the differing column; NULL where one side has no row | |
    /// | `left` | | name and state | | sum | value; JSON object of all where one side has no row | |
    /// | `right` | | name and state | | sum | the same | |
    /// | `findings` | differences | | findings | mismatches | | |
    /// | `left_rows`, `right_rows` | rows of the sides | | rows | values cut | rows | |
    /// | `note` | the line | rows looked up | | types | | the note |
    /// | `snapshot_id` | | | | | the snapshot of the left table that last wrote the key, of the first examples | |
    /// | `reason` | | | | | | |
    ///
    /// A shell adds rows `cause`: the class and the key of an example, the reason, the commit that is to blame and a sentence
    /// as the note; then how often each reason was found. A row `error` stands for a comparison that came to no end.
    pub fn schema() -> SchemaRef {
        let text = |name: &str, nullable: bool| Field::new(name, DataType::Utf8, nullable);
        let number = |name: &str| Field::new(name, DataType::Int64, true);
        Arc::new(Schema::new(vec![
            text("part", false),
            text("class", true),
            text("key", true),
            text("column", true),
            text("left", true),
            text("right", true),
            number("findings"),
            number("left_rows"),
            number("right_rows"),
            text("note", true),
            number("snapshot_id"),
            text("reason", true),
        ]))
    }

    /// The report as rows: the verdict, the sides, classes, columns, examples, notes.
    ///
    /// # Errors
    /// None but faults of ours.
    pub fn rows(&self) -> Result<RecordBatch> {
        let mut rows: Vec<Line> = vec![Line {
            class: Some(self.verdict.name().to_string()),
            findings: Some(self.differences()),
            left_rows: Some(self.left.rows),
            right_rows: Some(self.right.rows),
            note: Some(self.line.clone()),
            ..Line::of("verdict")
        }];
        let side = |side: &SideReport| Some(format!("{} ({})", side.name, side.position));
        rows.push(Line {
            left: side(&self.left),
            right: side(&self.right),
            left_rows: Some(self.left.looked_up),
            right_rows: Some(self.right.looked_up),
            note: Some("rows read once more to look for keys".to_string()),
            ..Line::of("side")
        });
        rows.extend(self.classes.iter().map(|one| Line {
            class: Some(one.class.name().to_string()),
            findings: Some(one.count.findings),
            left_rows: Some(one.count.left_rows),
            right_rows: Some(one.count.right_rows),
            ..Line::of("class")
        }));
        rows.extend(self.columns.iter().map(|column| {
            let [left, right, common] = &column.types;
            let [left_sum, right_sum] = column.sums.clone().map_or([None, None], |sums| sums.map(Some));
            let tolerated =
                if column.tolerated > 0 { format!(", {} within tolerance", column.tolerated) } else { String::new() };
            Line {
                column: Some(column.name.clone()),
                left: left_sum,
                right: right_sum,
                findings: Some(column.mismatches),
                left_rows: Some(column.cut[0]),
                right_rows: Some(column.cut[1]),
                note: Some(format!("{left} and {right} compared as {common}{tolerated}")),
                ..Line::of("column")
            }
        }));
        for example in &self.examples {
            let line = Line {
                class: Some(example.class.name().to_string()),
                key: Some(example.key_json()),
                left_rows: Some(example.left_rows),
                right_rows: Some(example.right_rows),
                snapshot_id: example.snapshot,
                ..Line::of("example")
            };
            if (example.left_rows == 0 || example.right_rows == 0) && example.class != Class::FilterMismatch {
                let object = |right: bool, rows: u64| {
                    let value =
                        |text: &Option<String>| text.clone().map_or(serde_json::Value::Null, serde_json::Value::String);
                    let cells = example.cells.iter();
                    let cells =
                        cells.map(|cell| (cell.column.clone(), value(if right { &cell.right } else { &cell.left })));
                    (rows > 0).then(|| serde_json::Value::Object(cells.collect()).to_string())
                };
                rows.push(Line {
                    left: object(false, example.left_rows),
                    right: object(true, example.right_rows),
                    ..line
                });
                continue;
            }
            rows.extend(example.cells.iter().map(|cell| Line {
                column: Some(cell.column.clone()),
                left: cell.left.clone(),
                right: cell.right.clone(),
                ..line.clone()
            }));
            if example.cells.is_empty() {
                rows.push(line);
            }
        }
        rows.extend(self.notes.iter().map(|note| Line { note: Some(note.clone()), ..Line::of("note") }));
        Line::batch(&rows)
    }
}

/// One row of a report; what the columns hold is told at [`Report::schema`].
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Which part of the report.
    pub part: &'static str,
    /// `class`
    pub class: Option<String>,
    /// `key`
    pub key: Option<String>,
    /// `column`
    pub column: Option<String>,
    /// `left`
    pub left: Option<String>,
    /// `right`
    pub right: Option<String>,
    /// `findings`
    pub findings: Option<u64>,
    /// `left_rows`
    pub left_rows: Option<u64>,
    /// `right_rows`
    pub right_rows: Option<u64>,
    /// `note`
    pub note: Option<String>,
    /// `snapshot_id`
    pub snapshot_id: Option<i64>,
    /// `reason`
    pub reason: Option<String>,
}

impl Line {
    /// A row of a part, all else NULL.
    pub fn of(part: &'static str) -> Self {
        Self { part, ..Self::default() }
    }

    /// Rows with the columns of [`Report::schema`].
    ///
    /// # Errors
    /// None but faults of ours.
    pub fn batch(lines: &[Self]) -> Result<RecordBatch> {
        let text =
            |of: fn(&Line) -> Option<&str>| -> ArrayRef { Arc::new(lines.iter().map(of).collect::<StringArray>()) };
        let number = |of: fn(&Line) -> Option<u64>| -> ArrayRef {
            Arc::new(
                lines.iter().map(|line| of(line).map(|n| i64::try_from(n).unwrap_or(i64::MAX))).collect::<Int64Array>(),
            )
        };
        Ok(RecordBatch::try_new(
            Report::schema(),
            vec![
                text(|line| Some(line.part)),
                text(|line| line.class.as_deref()),
                text(|line| line.key.as_deref()),
                text(|line| line.column.as_deref()),
                text(|line| line.left.as_deref()),
                text(|line| line.right.as_deref()),
                number(|line| line.findings),
                number(|line| line.left_rows),
                number(|line| line.right_rows),
                text(|line| line.note.as_deref()),
                Arc::new(lines.iter().map(|line| line.snapshot_id).collect::<Int64Array>()),
                text(|line| line.reason.as_deref()),
            ],
        )?)
    }
}
