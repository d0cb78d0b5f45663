//! Counts, sums and examples of a comparison under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::i256;
use serde::{Deserialize, Serialize};

use super::cursor::At;
use super::judge::Judge;
use super::numbers::{number, sum};
use super::pairs::{Pairs, Role};
use crate::error::{Error, Result};

/// What became of rows. The left side is the lake, the right side the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Class {
    /// The key is in the source alone.
    MissingInLake,
    /// The key is in the lake alone.
    ExtraInLake,
    /// Both have the key, and some compared value differs.
    Different,
    /// Both have the key, and one of them alone meets the condition.
    FilterMismatch,
    /// A value could not be brought to the type in which it is compared, or could not be read and decides whether its row
    /// meets the condition.
    Unreadable,
    /// The source has several rows of a key.
    DupSource,
    /// The lake has several rows of a key.
    DupLake,
    /// A column of the key is NULL.
    NullKey,
    /// Values differ within their tolerance.
    Tolerated,
    /// The row of the source is newer than the horizon.
    Late,
    /// The row of the lake alone is newer than the horizon.
    LateUpdate,
    /// Nothing differs.
    Equal,
}

impl Class {
    /// All of them, those that count most first.
    pub const ALL: [Self; 12] = [
        Self::MissingInLake,
        Self::ExtraInLake,
        Self::Different,
        Self::FilterMismatch,
        Self::Unreadable,
        Self::DupSource,
        Self::DupLake,
        Self::NullKey,
        Self::Tolerated,
        Self::Late,
        Self::LateUpdate,
        Self::Equal,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingInLake => "MISSING_IN_LAKE",
            Self::ExtraInLake => "EXTRA_IN_LAKE",
            Self::Different => "DIFFERENT",
            Self::FilterMismatch => "FILTER_MISMATCH",
            Self::Unreadable => "UNREADABLE",
            Self::DupSource => "DUP_SOURCE",
            Self::DupLake => "DUP_LAKE",
            Self::NullKey => "NULL_KEY",
            Self::Tolerated => "TOLERATED",
            Self::Late => "LATE",
            Self::LateUpdate => "LATE_UPDATE",
            Self::Equal => "EQUAL",
        }
    }

    /// Whether one of it makes the sides different.
    pub fn is_difference(self) -> bool {
        !matches!(self, Self::Tolerated | Self::Late | Self::LateUpdate | Self::Equal)
    }
}

/// How many there are of a class. Rows are of one class each, but those of keys that are not unique: they are of
/// DUP_SOURCE and DUP_LAKE, and those that stand for a row of the other side are of what was found of the two besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Findings: pairs of rows, single rows, and of duplicates keys.
    pub findings: u64,
    /// Rows of the left side.
    pub left_rows: u64,
    /// Rows of the right side.
    pub right_rows: u64,
}

/// A value of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its column.
    pub column: String,
    /// On the left; None is NULL, and where there is no row.
    pub left: Option<String>,
    /// On the right.
    pub right: Option<String>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// Of which class.
    pub class: Class,
    /// The key, by column.
    pub key: Vec<(String, Option<String>)>,
    /// The values that tell why: of single rows all that are compared.
    pub cells: Vec<Cell>,
    /// Rows of the left side.
    pub left_rows: u64,
    /// Rows of the right side.
    pub right_rows: u64,
    /// The snapshot of the left table that last wrote the key, where that was looked up and can be said.
    #[serde(default)]
    pub snapshot: Option<i64>,
}

impl Example {
    /// The key as a JSON object of texts.
    pub fn key_json(&self) -> String {
        let value = |value: &Option<String>| value.clone().map_or(serde_json::Value::Null, serde_json::Value::String);
        let key: serde_json::Map<String, serde_json::Value> =
            self.key.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        serde_json::Value::Object(key).to_string()
    }
}

/// Takes every finding but equal ones as they are found.
pub type Sink = Box<dyn FnMut(&Example) -> Result<()> + Send>;

/// A sum as text, as files keep it.
mod sums {
    use arrow::datatypes::i256;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(sums: &[Vec<i256>; 2], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<Vec<String>> = sums.iter().map(|side| side.iter().map(i256::to_string).collect()).collect();
        texts.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[Vec<i256>; 2], D::Error> {
        let wrong = || serde::de::Error::custom("no sums");
        let texts: [Vec<String>; 2] = Deserialize::deserialize(from)?;
        let read =
            |side: &Vec<String>| -> Option<Vec<i256>> { side.iter().map(|text| i256::from_string(text)).collect() };
        let [left, right] = &texts;
        Ok([read(left).ok_or_else(wrong)?, read(right).ok_or_else(wrong)?])
    }
}

/// Counts so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    /// By class.
    pub counts: BTreeMap<Class, Count>,
    /// Rows of the left and the right side.
    pub rows: [u64; 2],
    /// Rows of keys that are not unique which are of another class too.
    pub twice: [u64; 2],
    /// By side and pair, sums of numbers without those of late rows; 0 of other types.
    #[serde(with = "sums")]
    pub sums: [Vec<i256>; 2],
    /// By pair, findings in which it differs beyond its tolerance.
    pub mismatches: Vec<u64>,
    /// By pair, findings in which it differs within its tolerance.
    pub tolerated: Vec<u64>,
    /// The first findings of each class.
    pub examples: BTreeMap<Class, Vec<Example>>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(pairs: usize) -> Self {
        Self {
            counts: BTreeMap::new(),
            rows: [0; 2],
            twice: [0; 2],
            sums: [vec![i256::ZERO; pairs], vec![i256::ZERO; pairs]],
            mismatches: vec![0; pairs],
            tolerated: vec![0; pairs],
            examples: BTreeMap::new(),
        }
    }

    /// Of a class.
    pub fn count(&self, class: Class) -> Count {
        self.counts.get(&class).copied().unwrap_or_default()
    }

    /// Findings that make the sides different.
    pub fn differences(&self) -> u64 {
        self.counts.iter().filter(|(class, _)| class.is_difference()).map(|(_, count)| count.findings).sum()
    }

    /// Rows of the left and the right side that were compared: those that are newer than the horizon, and what stands
    /// beside them, were not.
    pub fn compared(&self) -> [u64; 2] {
        let late = [Class::Late, Class::LateUpdate].map(|class| self.count(class));
        let [left, right] = self.rows;
        [
            left.saturating_sub(late.iter().map(|count| count.left_rows).sum()),
            right.saturating_sub(late.iter().map(|count| count.right_rows).sum()),
        ]
    }

    /// Takes in rows that were gone through.
    pub fn passed(&mut self, pairs: &Pairs, right: bool, batch: &RecordBatch) -> Result<()> {
        let side = usize::from(right);
        if let Some(rows) = self.rows.get_mut(side) {
            *rows += batch.num_rows() as u64;
        }
        for (at, pair) in pairs.all.iter().enumerate() {
            if pair.common.is_exact_number() && pair.role == Role::Compared {
                self.add(side, at, sum(batch.column(at))?)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, side: usize, at: usize, value: i256) -> Result<()> {
        if let Some(total) = self.sums.get_mut(side).and_then(|sums| sums.get_mut(at)) {
            *total = total.checked_add(value).ok_or_else(|| {
                Error::exhausted("a sum of a column has more than 76 digits").with_code("SumOverflow")
            })?;
        }
        Ok(())
    }

    /// Takes a late row out of the sums.
    pub fn leave_out(&mut self, pairs: &Pairs, right: bool, row: &At) -> Result<()> {
        for (at, pair) in pairs.all.iter().enumerate() {
            if pair.common.is_exact_number()
                && pair.role == Role::Compared
                && let Some(value) = number(row.batch.batch.column(at), row.row)
            {
                let less = value.checked_neg().ok_or_else(|| Error::internal("a number has no negative"))?;
                self.add(usize::from(right), at, less)?;
            }
        }
        Ok(())
    }

    /// Counts a finding.
    pub fn found(&mut self, class: Class, findings: u64, left_rows: u64, right_rows: u64) {
        let count = self.counts.entry(class).or_default();
        count.findings += findings;
        count.left_rows += left_rows;
        count.right_rows += right_rows;
    }

    /// Rows of both sides in classes, each once: what has to be the rows that were read.
    pub fn closed(&self) -> [u64; 2] {
        let sum = |of: fn(&Count) -> u64| self.counts.values().map(of).sum::<u64>();
        let [left, right] = self.twice;
        [sum(|count| count.left_rows).saturating_sub(left), sum(|count| count.right_rows).saturating_sub(right)]
    }
}

/// Makes examples while there is room for them.
pub struct Examples {
    /// Of each class.
    pub most: usize,
    /// Where all of them go.
    pub sink: Option<Sink>,
    /// What names and shows values.
    pub judge: Arc<Judge>,
}

impl Examples {
    /// Keeps a finding over rows of both sides, or of one; `pairs`: what differs.
    pub fn keep(
        &mut self,
        tally: &mut Tally,
        class: Class,
        rows: (Option<&At>, Option<&At>),
        pairs: &[usize],
        counts: (u64, u64),
    ) -> Result<()> {
        let kept = tally.examples.get(&class).map_or(0, Vec::len);
        if kept >= self.most && self.sink.is_none() {
            return Ok(());
        }
        let (left, right) = rows;
        let text = |at: usize, right: bool, row: Option<&At>| match row {
            Some(row) => self.judge.text(right, &row.batch.batch, at, row.row),
            None => Ok(None),
        };
        let all = &self.judge.pairs.all;
        let key = all.iter().enumerate().take(self.judge.pairs.keys).map(|(at, pair)| {
            let value = match left {
                Some(_) => text(at, false, left),
                None => text(at, true, right),
            };
            Ok((pair.name().to_string(), value?))
        });
        let key = key.collect::<Result<Vec<_>>>()?;
        let shown: Vec<usize> = match (left, right) {
            (Some(_), Some(_)) => pairs.to_vec(),
            _ => (self.judge.pairs.keys..all.len()).collect(),
        };
        let cells = shown.iter().filter_map(|at| Some((*at, all.get(*at)?))).map(|(at, pair)| {
            Ok(Cell { column: pair.name().to_string(), left: text(at, false, left)?, right: text(at, true, right)? })
        });
        let cells = cells.collect::<Result<Vec<_>>>()?;
        let example = Example { class, key, cells, left_rows: counts.0, right_rows: counts.1, snapshot: None };
        if let Some(sink) = &mut self.sink {
            sink(&example)?;
        }
        if kept < self.most {
            tally.examples.entry(class).or_default().push(example);
        }
        Ok(())
    }
}
