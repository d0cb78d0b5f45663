//! Two sides compared by key, value by value: a table at its pin with another table or pin, a query, a file or a
//! database.
//!
//! | file | one idea |
//! |---|---|
//! | `pairs` | columns that stand for each other, and the type they are compared as |
//! | `convert`, `numbers` | values in that type; decimals, exactly |
//! | `side`, `files`, `pool` | what is read, in key order; the state of a file; memory of one side |
//! | `unsure` | conditions where a value could not be read |
//! | `cursor` | rows one after another |
//! | `judge` | what two rows are to each other |
//! | `tally`, `report` | counts, sums and examples; the verdict |
//! | `common` | from the text of a finding back to a value of the left side |
//! | `run`, `pending` | the pass over both sides; keys that are looked for once more |
//! | `progress` | what is done, in a file |
//!
//! Rows are read once: a side whose rows do not come in the order of the key is sorted, on disk where memory ends. A row
//! that only one side shows under a condition is looked for on the other side without it, in a second pass, before it is
//! called missing.

mod common;
mod convert;
mod cursor;
mod files;
mod judge;
mod numbers;
mod pairs;
mod pending;
mod pool;
mod progress;
mod report;
mod run;
mod side;
mod tally;
mod unsure;

pub use common::{Common, Others};
pub use convert::{Manner, Rounding};
#[cfg(test)]
use files::FileState;
pub use files::file_side;
pub use pairs::{Column, Tolerance, Wanted, find};
pub use report::{ClassReport, ColumnReport, Line, Report, SideReport, Verdict};
pub use run::{Comparison, Options};
pub use side::{Guard, Side, SideRows};
pub use tally::{Cell, Class, Count, Example, Sink};

#[cfg(test)]
mod tests;
