//! `FROM t` without SELECT: all columns, as `SELECT * FROM t`. The parser gives a list of none, whose rows show nothing.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{
    Select, SelectFlavor, SelectItem, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

/// Writes the `*` that nobody has to.
pub(crate) fn fix(statement: &mut DfStatement) {
    match statement {
        DfStatement::Statement(statement) => drop(VisitMut::visit(statement, &mut Fixer)),
        DfStatement::Explain(explain) => fix(&mut explain.statement),
        DfStatement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                let _ = VisitMut::visit(query, &mut Fixer);
            }
        }
        DfStatement::CreateExternalTable(_) | DfStatement::Reset(_) => {}
    }
}

struct Fixer;

impl VisitorMut for Fixer {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.flavor = SelectFlavor::FromFirst;
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
        }
        ControlFlow::Continue(())
    }
}
