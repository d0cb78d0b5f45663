//! What a comparison found: the verdict, and what it stands on.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::Serialize;

use super::numbers::shown;
use super::pairs::{CommonType, Pairs, Role};
use super::side::Side;
use super::tally::{Class, Count, Example, Tally};
use crate::error::Result;

/// Whether the sides are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Every row of both sides was compared, and nothing differs.
    Equal,
    /// The same, where values may be apart as far as was said.
    EqualWithinTolerance,
    /// Nothing differs in the sample; the other rows were not looked at.
    NoDifferenceInSample,
    /// Something differs.
    Different,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "EQUAL",
            Self::EqualWithinTolerance => "EQUAL_WITHIN_TOLERANCE",
            Self::NoDifferenceInSample => "NO_DIFFERENCE_IN_SAMPLE",
            Self::Different => "DIFFERENT",
        }
    }

    /// Whether nothing differs.
    pub fn is_clean(self) -> bool {
        self != Self::Different
    }
}

/// A side, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideReport {
    /// What it is.
    pub name: String,
    /// Its state.
    pub position: String,
    /// Rows that were compared.
    pub rows: u64,
    /// Rows that were read once more, to look for keys beside the condition.
    pub looked_up: u64,
    /// Whether its rows came in the order of the key by themselves.
    pub streamed: bool,
    /// Statements that its database was sent; None: no database.
    pub queries: Option<u64>,
}

/// A column that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnReport {
    /// Its name on the left.
    pub name: String,
    /// Types of both sides, and the one they were compared as.
    pub types: [String; 3],
    /// Findings in which it differs.
    pub mismatches: u64,
    /// Findings in which it differs within its tolerance.
    pub tolerated: u64,
    /// Sums of both sides, exactly; None of columns that are no exact numbers.
    pub sums: Option<[String; 2]>,
    /// What the left sum has more than the right.
    pub delta: Option<String>,
    /// Values of both sides that lost digits.
    pub cut: [u64; 2],
}

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClassReport {
    /// Which.
    pub class: Class,
    /// How many.
    #[serde(flatten)]
    pub count: Count,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether they are equal.
    pub verdict: Verdict,
    /// The same in one line.
    pub line: String,
    /// Whether there may be more findings than are counted: it was ended early.
    pub stopped: bool,
    /// The left side.
    pub left: SideReport,
    /// The right side.
    pub right: SideReport,
    /// Classes with findings, and EQUAL.
    pub classes: Vec<ClassReport>,
    /// Columns that were compared.
    pub columns: Vec<ColumnReport>,
    /// The first findings of each class.
    pub examples: Vec<Example>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// What a report is made of.
pub(super) struct Parts<'a> {
    pub(super) sides: &'a [Side; 2],
    pub(super) pairs: &'a Pairs,
    pub(super) tally: Tally,
    pub(super) looked_up: [u64; 2],
    pub(super) streamed: [bool; 2],
    pub(super) cut: [Vec<u64>; 2],
    pub(super) mapped: Vec<u64>,
    pub(super) stopped: bool,
    pub(super) sample: Option<u32>,
    pub(super) resumed: Option<String>,
    pub(super) horizon: Option<String>,
    pub(super) filtered: bool,
}

impl Report {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts {
            sides,
            pairs,
            tally,
            looked_up,
            streamed,
            cut,
            mapped,
            stopped,
            sample,
            resumed,
            horizon,
            filtered,
        } = parts;
        let [left, right] = [0, 1].map(|side: usize| SideReport {
            name: sides[side].name.clone(),
            position: sides[side].position.clone(),
            rows: tally.rows[side],
            looked_up: looked_up[side],
            streamed: streamed[side],
            queries: sides[side].source_work().map(|work| work.queries),
        });
        let differences = tally.differences();
        let verdict = match differences {
            0 if sample.is_some() => Verdict::NoDifferenceInSample,
            0 if tally.count(Class::Tolerated).findings > 0 => Verdict::EqualWithinTolerance,
            0 => Verdict::Equal,
            _ => Verdict::Different,
        };
        let columns: Vec<ColumnReport> = pairs
            .all
            .iter()
            .enumerate()
            .filter(|(_, pair)| pair.role == Role::Compared)
            .map(|(at, pair)| {
                let scale = match pair.common {
                    CommonType::Decimal(_, scale) => scale,
                    _ => 0,
                };
                let sums = [tally.sums[0][at], tally.sums[1][at]];
                let exact = pair.common.is_exact_number();
                let delta = sums[0].checked_sub(sums[1]).filter(|_| exact).map(|delta| shown(delta, scale));
                ColumnReport {
                    name: pair.name().to_string(),
                    types: [pair.left.type_name(), pair.right.type_name(), pair.common.data_type().to_string()],
                    mismatches: tally.mismatches[at],
                    tolerated: tally.tolerated[at],
                    sums: exact.then(|| sums.map(|sum| shown(sum, scale))),
                    delta,
                    cut: [cut[0][at], cut[1][at]],
                }
            })
            .collect();
        let classes: Vec<ClassReport> = Class::ALL
            .into_iter()
            .map(|class| ClassReport { class, count: tally.count(class) })
            .filter(|one| one.class == Class::Equal || one.count.findings > 0)
            .collect();
        let mut notes = Vec::new();
        if let Some(part) = sample {
            let keys = left.rows.max(right.rows);
            let percent = f64::from(part) / 10_000.0;
            notes.push(format!(
                "{percent} percent of the keys were looked at, by their hash: this is no proof of the others"
            ));
            if differences == 0 && keys > 0 {
                // the rule of three
                #[expect(clippy::cast_precision_loss, reason = "a bound of two digits")]
                let bound = 300.0 / keys as f64;
                notes.push(format!("at 95 % confidence at most {bound:.2} percent of the keys differ"));
            }
        }
        if let Some(horizon) = horizon {
            notes.push(format!("rows newer than {horizon} are LATE or LATE_UPDATE and in no sum; where that time is NULL a row is compared"));
        }
        if filtered {
            notes.push(format!(
                "keys that one side alone showed were looked for beside the condition: {} rows on the left and {} on the right were read for that, each at most once more",
                left.looked_up, right.looked_up
            ));
        }
        for (own, name) in [(&pairs.only_left, &left.name), (&pairs.only_right, &right.name)] {
            if !own.is_empty() {
                notes.push(format!("not compared, because {name} alone has them: {}", own.join(", ")));
            }
        }
        for (at, pair) in pairs.all.iter().enumerate() {
            let (one, other) = (cut[0][at], cut[1][at]);
            let is_horizon = pairs.horizon == Some(at);
            if one + other == 0 || pair.role == Role::Context && !is_horizon {
                continue;
            }
            let of = match pair.role {
                Role::Key => "of the key was",
                _ => "was",
            };
            let so = match pair.role {
                Role::Key => ": rows whose keys differ in those alone have one key",
                _ => "",
            };
            notes.push(format!(
                "column {} {of} compared with the digits that both types have ({}): {one} values on the left and {other} on the right have more{so}",
                pair.name(),
                pair.common.data_type()
            ));
        }
        let compared = pairs.all.iter().filter(|pair| pair.role == Role::Compared);
        for (pair, column) in compared.zip(&columns) {
            let is_float = matches!(pair.common, CommonType::Float | CommonType::Double);
            if is_float && pair.tolerance.is_none() && column.mismatches > 0 {
                let name = pair.name();
                notes.push(format!(
                    "column {name} holds floats and was compared bit by bit: TOLERANCE {name} rel:0.000000001 lets them be so far apart"
                ));
            }
        }
        let doubles = [Class::DupSource, Class::DupLake].map(|class| tally.count(class));
        if doubles.iter().any(|count| count.findings > 0) {
            notes.push(format!(
                "the key is not unique: {} keys have {} rows on the right and {} keys have {} rows on the left; such rows are of DUP_SOURCE and DUP_LAKE, and of the class of the row they stand for besides",
                doubles[0].findings, doubles[0].right_rows, doubles[1].findings, doubles[1].left_rows
            ));
        }
        for side in sides {
            notes.extend(side.caveats().into_iter().map(|caveat| format!("{}: {caveat}", side.name)));
        }
        for (at, pair) in pairs.all.iter().enumerate() {
            if pair.map.is_some() && mapped.get(at) == Some(&0) && right.rows > 0 {
                notes.push(format!("no value of {} on the right is one that MAP names", pair.name()));
            }
        }
        notes.extend(resumed);
        if left.rows == 0 && right.rows == 0 {
            notes.push("there is no row on either side".to_string());
        }
        let keys = left.rows.max(right.rows);
        let least = if stopped { "at least " } else { "" };
        let money: Vec<String> = columns
            .iter()
            .filter_map(|column| Some((column, column.delta.as_deref()?)))
            .filter(|(_, delta)| *delta != "0")
            .map(|(column, delta)| format!("{} Δ = {delta}", column.name))
            .collect();
        let money = if money.is_empty() { String::new() } else { format!(" ({})", money.join(", ")) };
        let of = format!("{} ({}) and {} ({})", left.name, left.position, right.name, right.position);
        let line = match verdict {
            Verdict::Different => {
                format!("DIFFERENT: {least}{differences} findings in {keys} rows{money} between {of}")
            }
            Verdict::Equal => format!("EQUAL: {keys} rows of {of}"),
            Verdict::EqualWithinTolerance => format!("EQUAL within tolerance: {keys} rows of {of}"),
            Verdict::NoDifferenceInSample => format!("NO DIFFERENCE in a sample of {keys} rows of {of}"),
        };
        let examples = Class::ALL.iter().filter_map(|class| tally.examples.get(class)).flatten().cloned().collect();
        Self { verdict, line, stopped, left, right, classes, columns, examples, notes }
    }

    /// How many of a class.
    pub fn count(&self, class: Class) -> Count {
        self.classes.iter().find(|one| one.class == class).map(|one| one.count).unwrap_or_default()
    }

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
        let text =
            |of: fn(&Line) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<StringArray>()) };
        let number = |of: fn(&Line) -> Option<u64>| -> ArrayRef {
            Arc::new(
                rows.iter().map(|line| of(line).map(|n| i64::try_from(n).unwrap_or(i64::MAX))).collect::<Int64Array>(),
            )
        };
        Ok(RecordBatch::try_new(
            Self::schema(),
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
            ],
        )?)
    }

    /// Findings that make the sides different.
    pub fn differences(&self) -> u64 {
        self.classes.iter().filter(|one| one.class.is_difference()).map(|one| one.count.findings).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

#[derive(Debug, Clone, Default)]
struct Line {
    part: &'static str,
    class: Option<String>,
    key: Option<String>,
    column: Option<String>,
    left: Option<String>,
    right: Option<String>,
    findings: Option<u64>,
    left_rows: Option<u64>,
    right_rows: Option<u64>,
    note: Option<String>,
}

impl Line {
    fn of(part: &'static str) -> Self {
        Self { part, ..Self::default() }
    }
}
