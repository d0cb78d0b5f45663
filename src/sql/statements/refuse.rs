//! What cannot be done yet, said by name: Lakepin reads only.

use std::ops::ControlFlow;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    FromTable, LimitClause, ObjectName, ObjectType, PivotValueSource, Query, SetExpr, SetOperator, SetQuantifier,
    Statement as SqlStatement, TableFactor, TableObject, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::walk::walk;

fn writing(what: &str) -> Error {
    Error::unsupported(format!("{what} would write to the warehouse, and writing comes later"))
        .with_code("ReadOnly")
        .with_hint("Lakepin reads only; CREATE TEMPORARY TABLE, CREATE VIEW and COPY … TO 'file' work")
}

/// Refuses a query without columns (`SELECT FROM t`): there is nothing of its rows to show.
pub(crate) fn no_columns(plan: &LogicalPlan) -> Result<()> {
    if !plan.schema().fields().is_empty() || matches!(plan, LogicalPlan::Copy(_)) {
        return Ok(());
    }
    Err(Error::invalid("the query selects no column")
        .with_code("Syntax")
        .with_hint("name columns behind SELECT, or write SELECT *"))
}

/// Refuses forms that DataFusion would compute otherwise than they are meant, or does not know: EXCEPT ALL and INTERSECT
/// ALL (it looks for each row on the other side, but does not count how often it is there), LIMIT and FETCH in one query,
/// PIVOT and UNPIVOT.
pub(crate) fn forms(statement: &mut DfStatement) -> Result<()> {
    match walk(statement, &mut Forms) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Forms;

impl VisitorMut for Forms {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let limited = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, .. }) => limit.is_some(),
            Some(LimitClause::OffsetCommaLimit { .. }) => true,
            None => false,
        };
        if limited && query.fetch.is_some() {
            return ControlFlow::Break(
                Error::invalid("LIMIT and FETCH both say how many rows there are to be")
                    .with_code("Syntax")
                    .with_hint("write one of them"),
            );
        }
        let mut rest = vec![query.body.as_ref()];
        while let Some(at) = rest.pop() {
            if let SetExpr::SetOperation { op, set_quantifier, left, right } = at {
                let counted = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
                if counted && *op != SetOperator::Union {
                    return ControlFlow::Break(counted_set(*op));
                }
                rest.extend([left.as_ref(), right.as_ref()]);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::Pivot { aggregate_functions, value_column, value_source, .. } => {
                let value = match value_source {
                    PivotValueSource::List(values) => values.first().map(|value| value.expr.to_string()),
                    _ => None,
                };
                let function = aggregate_functions.first().map(|function| function.expr.to_string());
                let column = value_column.first().map(ToString::to_string);
                ControlFlow::Break(not_yet("PIVOT").with_hint(format!(
                    "write {} FILTER (WHERE {} = {}) for each of its columns, and GROUP BY the others",
                    function.as_deref().unwrap_or("sum(v)"),
                    column.as_deref().unwrap_or("k"),
                    value.as_deref().unwrap_or("1"),
                )))
            }
            TableFactor::Unpivot { value, name, columns, .. } => {
                let column = columns.first().map(|column| column.expr.to_string());
                let column = column.as_deref().unwrap_or("a");
                ControlFlow::Break(not_yet("UNPIVOT").with_hint(format!(
                    "write SELECT …, '{column}' AS {name}, {column} AS {value} FROM … for each of its columns, with UNION ALL \
                     between them",
                )))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn not_yet(what: &str) -> Error {
    Error::unsupported(format!("{what} is not computed")).with_code("NotImplemented")
}

fn counted_set(op: SetOperator) -> Error {
    Error::unsupported(format!("{op} ALL is not computed: it would have to count how often each row is there"))
        .with_code("CountedSets")
        .with_hint(format!(
            "{op} without ALL compares distinct rows; to compare counts, GROUP BY all columns with count(*) on both sides; \
             paimon_diff compares two states of a table by its key"
        ))
}

/// Refuses what would write. `is_local` tells names of this session's own tables and views, `is_view` its views.
pub(crate) fn check(
    statement: &DfStatement,
    is_local: impl Fn(&ObjectName) -> bool,
    is_view: impl Fn(&ObjectName) -> bool,
) -> Result<()> {
    let is_table = |name: &ObjectName| is_local(name) && !is_view(name);
    let statement = match statement {
        DfStatement::Statement(statement) => statement.as_ref(),
        DfStatement::Explain(explain) => return check(&explain.statement, is_local, is_view),
        _ => return Ok(()),
    };
    match statement {
        SqlStatement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) if is_table(name) => Ok(()),
            _ => Err(writing("INSERT")),
        },
        SqlStatement::Update(update) => local_factor(&update.table.relation, &is_table, "UPDATE"),
        SqlStatement::Delete(delete) => {
            let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
            match tables.as_slice() {
                [one] => local_factor(&one.relation, &is_table, "DELETE"),
                _ => Err(writing("DELETE")),
            }
        }
        SqlStatement::Merge(_) => Err(writing("MERGE")),
        SqlStatement::Truncate(_) => Err(writing("TRUNCATE")),
        SqlStatement::Call(call) => Err(writing("CALL").with_context("procedure", &call.name)),
        SqlStatement::CreateTable(create) if !create.temporary => Err(writing("CREATE TABLE")),
        SqlStatement::AlterTable(_) => Err(writing("ALTER TABLE")),
        SqlStatement::CreateSchema { .. } | SqlStatement::CreateDatabase { .. } => Err(writing("CREATE DATABASE")),
        SqlStatement::Analyze(_) => Err(writing("ANALYZE")),
        SqlStatement::OptimizeTable { .. } => Err(writing("OPTIMIZE")),
        SqlStatement::Drop { object_type, names, if_exists, .. } => match object_type {
            ObjectType::Table | ObjectType::View if names.iter().all(&is_local) => Ok(()),
            ObjectType::Table => Err(writing("DROP TABLE")),
            ObjectType::Schema | ObjectType::Database => Err(writing("DROP DATABASE")),
            ObjectType::View if !if_exists => Err(no_view(names.iter().find(|name| !is_local(name)))),
            // DataFusion says what it does not know
            _ => Ok(()),
        },
        SqlStatement::Prepare { .. } | SqlStatement::Execute { .. } | SqlStatement::Deallocate { .. } => {
            Err(Error::invalid("a prepared statement stands alone, or behind EXPLAIN")
                .with_code("Syntax")
                .with_hint("write EXECUTE name(…) by itself"))
        }
        SqlStatement::CreateFunction(_) => Err(Error::unsupported("functions cannot be made in SQL")
            .with_code("NotYet")
            .with_hint("an embedding program registers functions in the session underneath")),
        SqlStatement::StartTransaction { .. } | SqlStatement::Commit { .. } | SqlStatement::Rollback { .. } => {
            Err(Error::unsupported("there are no transactions")
                .with_code("NotYet")
                .with_hint("PIN TABLES a, b AT (…) fixes what several statements read"))
        }
        _ => Ok(()),
    }
}

fn no_view(name: Option<&ObjectName>) -> Error {
    let name = name.map(ToString::to_string).unwrap_or_default();
    Error::not_found(format!("there is no view '{name}'"))
        .with_code("TableNotFound")
        .with_hint("SHOW TABLES lists what there is; only views of this session can be dropped")
}

fn local_factor(factor: &TableFactor, is_table: &impl Fn(&ObjectName) -> bool, what: &str) -> Result<()> {
    match factor {
        TableFactor::Table { name, .. } if is_table(name) => Ok(()),
        _ => Err(writing(what)),
    }
}
