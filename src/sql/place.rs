//! Where in the text an error of parsing or planning points to.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::parser::{CopyToSource, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Spanned, Visit, Visitor};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::error::Error;
use crate::snapshot::nearest::known_names;

/// Line and column, from 1; zero when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    line: u64,
    column: u64,
}

impl Place {
    /// A place in the text.
    pub(crate) fn at(line: u64, column: u64) -> Self {
        Self { line, column }
    }

    /// Adds the place to an error that has none.
    pub(crate) fn attach(self, error: Error) -> Error {
        if self.line == 0 {
            return error;
        }
        error.with_context("line", self.line).with_context("column", self.column)
    }
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self { line: location.line, column: location.column }
    }
}

/// Where the relations of a statement stand first, by the last part of their names as they are looked up.
pub(crate) fn relations(statement: &DfStatement) -> BTreeMap<String, Place> {
    let mut found = Relations(BTreeMap::new());
    let _ = match statement {
        DfStatement::Statement(statement) => statement.visit(&mut found),
        DfStatement::Explain(explain) => return relations(&explain.statement),
        DfStatement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut found),
            CopyToSource::Relation(name) => found.pre_visit_relation(name),
        },
        DfStatement::CreateExternalTable(_) | DfStatement::Reset(_) => ControlFlow::Continue(()),
    };
    found.0
}

struct Relations(BTreeMap<String, Place>);

impl Visitor for Relations {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let Some(ObjectNamePart::Identifier(last)) = name.0.last() {
            let key = if last.quote_style.is_some() { last.value.clone() } else { last.value.to_lowercase() };
            self.0.entry(key).or_insert_with(|| name.span().start.into());
        }
        ControlFlow::Continue(())
    }
}

/// The place and, when a column was not found, that column.
pub(crate) fn of(error: &DataFusionError) -> (Place, Option<Column>) {
    let mut place = Place::default();
    let mut column = None;
    walk(error, &mut place, &mut column);
    (place, column)
}

/// The columns that a column which was not found could have been, with the relations they are of.
pub(crate) fn valid_columns(error: &DataFusionError) -> Vec<Column> {
    match error {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => valid_columns(inner),
        DataFusionError::Collection(errors) => errors.first().map(valid_columns).unwrap_or_default(),
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { valid_fields, .. } => valid_fields.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Where a text begins that stands behind blanks.
pub(crate) fn beginning(text: &str) -> Place {
    let blanks = text.chars().take_while(|c| c.is_whitespace()).count();
    Place { line: 1, column: u64::try_from(blanks).unwrap_or(0) + 1 }
}

/// The function that is not there, when that is the error: the engine says so in words only.
pub(crate) fn unknown_function(error: &DataFusionError) -> Option<String> {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let name = diagnostic.message.strip_prefix("Invalid function '").and_then(|rest| rest.strip_suffix('\''));
            name.map(str::to_string).or_else(|| unknown_function(inner))
        }
        DataFusionError::Context(_, inner) => unknown_function(inner),
        DataFusionError::Collection(errors) => errors.first().and_then(unknown_function),
        _ => None,
    }
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
        DataFusionError::Plan(text) | DataFusionError::NotImplemented(text) if place.line == 0 => {
            *place = in_tree(text);
        }
        _ => {}
    }
}

/// A part of the tree, as the planner shows it: `… span: Span(Location(1,56)..Location(1,57)) …`
fn in_tree(message: &str) -> Place {
    let read = || {
        let (line, rest) = message.split_once("Span(Location(")?.1.split_once(',')?;
        let (column, _) = rest.split_once(')')?;
        Some(Place { line: line.parse().ok()?, column: column.trim().parse().ok()? })
    };
    read().unwrap_or_default()
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
        let tree = "no Substring { expr: Value(ValueWithSpan { span: Span(Location(3,56)..Location(3,57)) }) }";
        assert_eq!(in_tree(tree), Place { line: 3, column: 56 });
        assert_eq!(in_tree("no tree"), Place::default());
    }
}
