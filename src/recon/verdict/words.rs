//! The words of a verdict for people: names, headings, what stands for a pattern.

use super::model::{Layer, Pattern, Rerun, Summary};

impl Layer {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Visibility => "visibility",
            Self::CountingRule => "counting rule",
            Self::BusinessMapping => "business mapping",
            Self::Upstream => "upstream or commit delay",
            Self::CommitProtocol => "commit protocol",
            Self::CoWriting => "co-writing",
            Self::OperationOnTable => "operation on the table",
            Self::CommitIdentity => "commit identity",
            Self::Storage => "storage",
        }
    }

    /// What happened, as a heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Engine => "The engine contradicts itself",
            Self::Visibility => "It was read at another moment",
            Self::CountingRule => "The other side counts something else",
            Self::BusinessMapping => "Both sides mean different things",
            Self::Upstream => "Changes of the source did not arrive",
            Self::CommitProtocol => "It was written and never committed",
            Self::CoWriting => "Writers got into each other's way",
            Self::OperationOnTable => "Somebody overwrote, deleted or rolled back",
            Self::CommitIdentity => "The identity of commits is broken",
            Self::Storage => "Files are not what they should be",
        }
    }
}

impl Summary {
    /// What was found, as a heading; `rows`: those that were compared.
    pub fn heading(&self, rows: u64) -> String {
        let told = match (self.outcome.as_str(), self.clean, self.layers.as_slice()) {
            ("NO_DIFFERENCE_IN_SAMPLE", true, []) => return format!("No difference in a sample of {rows} rows"),
            ("EQUAL_WITHIN_TOLERANCE", true, []) => "Nothing differs beyond its tolerance",
            ("COUNT_EQUAL", true, []) => "The counts are equal",
            (_, true, []) => "Nothing differs",
            ("COUNT_NOT_DETERMINED", _, []) => "The count could not be tested",
            (_, _, []) => "Something differs, and no layer could be named",
            (_, _, [only]) => only.layer.heading(),
            (_, _, [first, ..]) => return format!("Several causes. Most of all: {}", first.layer.heading()),
        };
        told.to_string()
    }
}

impl Pattern {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::Code { column, left, right } => format!("{column}: {right} of the source is {left} in the lake"),
            Self::Ratio { column, ratio } => format!("{column}: lake = source × {ratio}"),
            Self::Shift { column, minutes } => {
                let sign = if *minutes < 0 { '-' } else { '+' };
                let minutes = minutes.unsigned_abs();
                format!("{column}: lake = source {sign} {}:{:02} hours", minutes / 60, minutes % 60)
            }
            Self::Twice { column, delta } => format!("{column}: {delta} was added twice"),
            Self::OtherPartition => "the row lies in another partition".to_string(),
        }
    }
}

impl Rerun {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::Same => "compared twice, with one result".to_string(),
            Self::Differs(why) => format!("compared twice, with two results: {why}"),
            Self::NotTried(why) => format!("compared once: {why}"),
        }
    }
}
