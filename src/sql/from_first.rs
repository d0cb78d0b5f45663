//! `FROM t` without SELECT: all columns, as `SELECT * FROM t`. The parser gives a list of none, whose rows show nothing.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Select, SelectFlavor, SelectItem, VisitorMut, WildcardAdditionalOptions};

use super::walk::walk;

/// Writes the `*` that nobody has to.
pub(crate) fn fix(statement: &mut DfStatement) {
    let _ = walk(statement, &mut Fixer);
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
