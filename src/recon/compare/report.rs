//! What a comparison found: the verdict, and what it stands on.

mod lines;
mod notes;

use std::fmt;

use serde::Serialize;

use super::numbers::shown;
use super::pairs::{CommonType, Pairs, Role};
use super::side::Side;
use super::tally::{Class, Count, Example, Tally};

pub use lines::Line;

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
    /// Rows that were compared; those that are newer than the horizon are not.
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
    /// Why no row was compared, where that is admitted.
    pub(super) empty: Option<String>,
    pub(super) resumed: Option<String>,
    pub(super) horizon: Option<String>,
    pub(super) horizon_told: Option<String>,
    pub(super) filtered: bool,
    /// Rows that came of the sides, those beside the sample among them.
    pub(super) came: [u64; 2],
    /// Conditions that the databases of the sides were sent.
    pub(super) sent: [Vec<String>; 2],
}

impl Report {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts { sides, pairs, tally, looked_up, streamed, cut, sample, .. } = &parts;
        let [left, right] = [0, 1].map(|side: usize| SideReport {
            name: sides[side].name.clone(),
            position: sides[side].position.clone(),
            rows: tally.compared()[side],
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
        let notes = notes::of(&parts, [&left, &right], differences, &columns);
        let Parts { tally, stopped, .. } = parts;
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
