//! What cannot be done yet, said by name: Lakepin reads only.

use std::ops::ControlFlow;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    FromTable, ObjectName, ObjectType, Query, SetExpr, SetOperator, SetQuantifier, Statement as SqlStatement,
    TableFactor, TableObject, VisitorMut,
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

/// Refuses EXCEPT ALL and INTERSECT ALL: DataFusion looks for each row on the other side, but does not count how often it
/// is there.
pub(crate) fn counted_sets(statement: &mut DfStatement) -> Result<()> {
    match walk(statement, &mut CountedSets) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(op) => Err(Error::unsupported(format!(
            "{op} ALL is not computed: it would have to count how often each row is there"
        ))
        .with_code("CountedSets")
        .with_hint(format!(
            "{op} without ALL compares distinct rows; to compare counts, GROUP BY all columns with count(*) on both \
                     sides; paimon_diff compares two states of a table by its key"
        ))),
    }
}

struct CountedSets;

impl VisitorMut for CountedSets {
    type Break = SetOperator;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SetOperator> {
        let mut rest = vec![query.body.as_ref()];
        while let Some(at) = rest.pop() {
            if let SetExpr::SetOperation { op, set_quantifier, left, right } = at {
                let counted = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
                if counted && *op != SetOperator::Union {
                    return ControlFlow::Break(*op);
                }
                rest.extend([left.as_ref(), right.as_ref()]);
            }
        }
        ControlFlow::Continue(())
    }
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
