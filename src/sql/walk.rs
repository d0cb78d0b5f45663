//! One walk over what a statement asks, whatever is done with the answer.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{VisitMut, VisitorMut};

/// Visits the queries and expressions of a statement, also of one that is explained or copied.
pub(crate) fn walk<V: VisitorMut>(statement: &mut DfStatement, visitor: &mut V) -> ControlFlow<V::Break> {
    match statement {
        DfStatement::Statement(statement) => statement.visit(visitor),
        DfStatement::Explain(explain) => walk(&mut explain.statement, visitor),
        DfStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        DfStatement::CreateExternalTable(_) | DfStatement::Reset(_) => ControlFlow::Continue(()),
    }
}
