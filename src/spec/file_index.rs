//! File indexes: whether a file can hold a value, and in which rows.
//!
//! | file | owns |
//! |---|---|
//! | `container` | the file: which column has which index where |
//! | `question` | a comparison brought to the form that indexes answer |
//! | `key` | values as indexes store and order them |
//! | `bloom`, `bitmap`, `bsi`, `range_bitmap` | one kind of index each |
//! | `slices` | numbers kept bit by bit, for the latter two |
//! | `reader` | bytes front to back, big endian |
//!
//! Every answer is a superset of the rows that match. Where an index and SQL disagree about equality (signed zeros, NaN,
//! blanks behind CHAR, digits cut from timestamps), the answer is widened or the index left alone.

mod bitmap;
mod bloom;
mod bsi;
mod container;
mod key;
mod question;
mod range_bitmap;
mod reader;
mod slices;

use bytes::Bytes;
use roaring::RoaringBitmap;

use super::data_type::DataType;
use super::datum::Datum;
use crate::error::{Error, Result};
use container::{Container, Place};
use question::Question;

/// A comparison an index may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `IN`
    In,
    /// `NOT IN`
    NotIn,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
}

/// A filter in the names and types of the file's own schema.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexPredicate {
    /// All hold.
    And(Vec<IndexPredicate>),
    /// One holds.
    Or(Vec<IndexPredicate>),
    /// A column against literals of exactly the column's type.
    Leaf {
        /// Column, or `column[key]` for one key of a map.
        column: String,
        /// Comparison.
        op: IndexOp,
        /// One literal, none for IS \[NOT\] NULL, any number for IN.
        literals: Vec<Datum>,
        /// Type of the column in the file's schema.
        data_type: DataType,
    },
    /// A filter that no index answers.
    Unknown,
}

/// What an index says of a file. Always a superset of the rows that match: filter again.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexVerdict {
    /// No row matches.
    Skip,
    /// Nothing known.
    Remain,
    /// Only these positions can match.
    Rows(RoaringBitmap),
}

impl IndexVerdict {
    /// The verdict on rows: none is a skip.
    fn of_rows(rows: RoaringBitmap) -> Self {
        if rows.is_empty() { Self::Skip } else { Self::Rows(rows) }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Skip, _) | (_, Self::Skip) => Self::Skip,
            (Self::Remain, known) | (known, Self::Remain) => known,
            (Self::Rows(left), Self::Rows(right)) => Self::of_rows(left & right),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Remain, _) | (_, Self::Remain) => Self::Remain,
            (Self::Skip, known) | (known, Self::Skip) => known,
            (Self::Rows(left), Self::Rows(right)) => Self::Rows(left | right),
        }
    }
}

fn damaged(what: impl Into<String>) -> Error {
    Error::corrupt(what).with_code("CorruptFileIndex")
}

/// The index container of one data file: embedded in its manifest entry, or its `.index` file.
#[derive(Debug, Clone)]
pub struct FileIndex {
    container: Container,
}

impl FileIndex {
    /// Reads the container's head; the indexes themselves are decoded when asked.
    pub fn parse(bytes: Bytes) -> Result<Self> {
        Ok(Self { container: Container::parse(bytes)? })
    }

    /// Every index: column and kind (`bloom-filter`, `bitmap`, …).
    pub fn indexes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.container.entries().map(|entry| (entry.column.as_str(), entry.kind.as_str()))
    }

    /// Every index with the bytes of its body; None: the column has no value in the file.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, &str, Option<usize>)> {
        self.container.entries().map(|entry| {
            let size = match &entry.place {
                Place::Empty => None,
                Place::At(range) => Some(range.len()),
            };
            (entry.column.as_str(), entry.kind.as_str(), size)
        })
    }

    /// What the indexes say of `predicate` in a file of `rows` rows. A damaged index is an error.
    pub fn evaluate(&self, predicate: &IndexPredicate, rows: u64) -> Result<IndexVerdict> {
        let Ok(rows) = u32::try_from(rows) else { return Ok(IndexVerdict::Remain) };
        self.verdict(predicate, rows)
    }

    fn verdict(&self, predicate: &IndexPredicate, rows: u32) -> Result<IndexVerdict> {
        match predicate {
            IndexPredicate::Unknown => Ok(IndexVerdict::Remain),
            IndexPredicate::And(parts) => {
                let mut verdict = IndexVerdict::Remain;
                for part in parts {
                    verdict = verdict.and(self.verdict(part, rows)?);
                    if verdict == IndexVerdict::Skip {
                        break;
                    }
                }
                Ok(verdict)
            }
            IndexPredicate::Or(parts) => {
                let mut verdict = None;
                for part in parts {
                    let next = self.verdict(part, rows)?;
                    verdict = Some(verdict.map_or(next.clone(), |known: IndexVerdict| known.or(next)));
                }
                Ok(verdict.unwrap_or(IndexVerdict::Remain))
            }
            IndexPredicate::Leaf { column, op, literals, data_type } => {
                let Some(question) = Question::new(*op, literals, data_type) else { return Ok(IndexVerdict::Remain) };
                let mut verdict = IndexVerdict::Remain;
                for entry in self.container.entries().filter(|entry| entry.column == *column) {
                    let answer = match &entry.place {
                        Place::Empty => Ok(of_empty_column(&question)),
                        Place::At(range) => {
                            answer(&entry.kind, self.container.body(range)?, &question, data_type, rows)
                        }
                    };
                    let answer = answer
                        .map_err(|error| error.with_context("index", &entry.kind).with_context("column", column))?;
                    verdict = verdict.and(answer);
                }
                Ok(verdict)
            }
        }
    }
}

/// A column without a value: no comparison holds. Negations and null tests are left open.
fn of_empty_column(question: &Question) -> IndexVerdict {
    match question {
        Question::AnyOf(_) | Question::Below { .. } | Question::Above { .. } => IndexVerdict::Skip,
        Question::NoneOf(_) | Question::IsNull | Question::IsNotNull => IndexVerdict::Remain,
    }
}

/// One index's answer.
fn answer(kind: &str, body: &[u8], question: &Question, data_type: &DataType, rows: u32) -> Result<IndexVerdict> {
    let found = match kind {
        "bloom-filter" => {
            let possible = bloom::may_hold(body, question, data_type)?;
            return Ok(if possible { IndexVerdict::Remain } else { IndexVerdict::Skip });
        }
        "bitmap" => bitmap::rows(body, question, data_type, rows)?,
        "bsi" => bsi::rows(body, question, data_type, rows)?,
        "range-bitmap" => range_bitmap::rows(body, question, data_type, rows)?,
        _ => None,
    };
    Ok(found.map_or(IndexVerdict::Remain, IndexVerdict::of_rows))
}

/// Every row of a file of `count` rows that is not in `rows`.
fn complement(rows: RoaringBitmap, count: u32) -> RoaringBitmap {
    let mut all = RoaringBitmap::new();
    all.insert_range(0..count);
    all - rows
}

#[cfg(test)]
mod tests;
