//! `listagg`: text with a delimiter between.

use std::collections::HashSet;

use super::{AggregateFunction, FoldState, Spec};
use crate::error::Result;
use crate::merge::cell::{Cell, Column, Value};
use crate::spec::DataType;

#[derive(Debug)]
struct ListAgg {
    delimiter: String,
    distinct: bool,
}

pub(super) fn listagg(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    if !matches!(spec.field.data_type(), DataType::Varchar(_) | DataType::Char(_)) {
        return Err(spec.wrong_type("STRING"));
    }
    let delimiter = spec.text("list-agg-delimiter").unwrap_or(",").to_string();
    Ok(Box::new(ListAgg { delimiter, distinct: spec.flag("distinct")? }))
}

impl AggregateFunction for ListAgg {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let Some(new) = column.text(&input)?.filter(|text| !is_blank(text)) else { return Ok(acc) };
        let Some(old) = column.text(&acc)?.filter(|text| !is_blank(text)) else { return Ok(input) };
        let mut text = old.to_string();
        if self.distinct {
            let mut known: HashSet<&str> = tokens(old, &self.delimiter).into_iter().collect();
            for token in tokens(new, &self.delimiter) {
                if !is_blank(token) && known.insert(token) {
                    text.push_str(&self.delimiter);
                    text.push_str(token);
                }
            }
        } else {
            text.push_str(&self.delimiter);
            text.push_str(new);
        }
        Ok(Cell::Value(Value::Text(text)))
    }
}

/// The tokens between delimiters; an empty delimiter splits at blanks. A delimiter at the end starts no token.
fn tokens<'a>(text: &'a str, delimiter: &str) -> Vec<&'a str> {
    let delimiter = if delimiter.is_empty() { " " } else { delimiter };
    let mut tokens: Vec<&str> = text.split(delimiter).collect();
    if tokens.last() == Some(&"") {
        tokens.pop();
    }
    tokens
}

/// Java's idea of white space: Unicode's without the no-break spaces, and the information separators.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| match c {
        '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}' => false,
        '\u{1c}'..='\u{1f}' => true,
        c => c.is_whitespace(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_is_what_java_calls_so() {
        for (text, blank) in [("", true), (" \t\n", true), ("\u{1c}", true), ("\u{a0}", false), ("\u{3000}", true)] {
            assert_eq!(is_blank(text), blank, "{text:?}");
        }
    }

    #[test]
    fn tokens_keep_empty_ones_inside() {
        assert_eq!(tokens("a,,b", ","), ["a", "", "b"]);
        assert_eq!(tokens("a,", ","), ["a"]);
        assert_eq!(tokens("a b", ""), ["a", "b"]);
    }
}
