//! Where in the text an error of parsing or planning points to.

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;

use crate::error::Error;
use crate::snapshot::nearest::known_names;

/// Line and column, from 1; zero when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    line: u64,
    column: u64,
}

impl Place {
    /// Adds the place to an error that has none.
    pub(crate) fn attach(self, error: Error) -> Error {
        if self.line == 0 {
            return error;
        }
        error.with_context("line", self.line).with_context("column", self.column)
    }
}

/// The place and, when a column was not found, that column.
pub(crate) fn of(error: &DataFusionError) -> (Place, Option<Column>) {
    let mut place = Place::default();
    let mut column = None;
    walk(error, &mut place, &mut column);
    (place, column)
}

/// The error for an expression over known columns: one that is not there leads to the nearest.
pub(crate) fn missing_column<'a>(error: DataFusionError, known: impl Iterator<Item = &'a str>) -> Error {
    match of(&error) {
        (_, Some(column)) => Error::invalid(format!("there is no column '{}'", column.name))
            .with_code("ColumnNotFound")
            .with_hint(known_names("columns", &column.name, known))
            .with_source(error),
        _ => Error::from_datafusion(error),
    }
}

fn walk(error: &DataFusionError, place: &mut Place, column: &mut Option<Column>) {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            if place.line == 0
                && let Some(span) = &diagnostic.span
            {
                *place = Place { line: span.start.line, column: span.start.column };
            }
            walk(inner, place, column);
        }
        DataFusionError::Context(_, inner) => walk(inner, place, column),
        DataFusionError::Collection(errors) => {
            if let Some(first) = errors.first() {
                walk(first, place, column);
            }
        }
        DataFusionError::SchemaError(schema, _) => {
            if let SchemaError::FieldNotFound { field, .. } = schema.as_ref() {
                column.get_or_insert_with(|| field.as_ref().clone());
            }
        }
        DataFusionError::SQL(parser, _) if place.line == 0 => {
            *place = in_message(&parser.to_string());
        }
        _ => {}
    }
}

/// The parser writes `… at Line: 1, Column: 15`.
fn in_message(message: &str) -> Place {
    let read = || {
        let rest = message.rsplit_once("at Line: ")?.1;
        let (line, column) = rest.split_once(", Column: ")?;
        let digits: String = column.chars().take_while(char::is_ascii_digit).collect();
        Some(Place { line: line.parse().ok()?, column: digits.parse().ok()? })
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_s_place_is_found() {
        assert_eq!(in_message("Expected: x, found: y at Line: 2, Column: 15"), Place { line: 2, column: 15 });
        assert_eq!(in_message("no place"), Place::default());
    }
}
