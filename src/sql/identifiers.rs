//! Unquoted names: read in lower case, as DataFusion does; where no column is called so, but exactly one differs in
//! case only, that one is meant. Paimon's columns keep their case, and `SELECT amount` should find `Amount`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arrow::datatypes::SchemaRef;
use datafusion::sql::parser::{CopyToSource, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem, TableFactor,
    Visit, VisitMut, Visitor, VisitorMut,
};

/// Names that can be meant.
#[derive(Debug, Default)]
pub(crate) struct Known {
    names: BTreeSet<String>,
}

impl Known {
    /// Adds the columns of a relation.
    pub(crate) fn columns(&mut self, schema: &SchemaRef) {
        self.names.extend(schema.fields().iter().map(|field| field.name().clone()));
    }

    fn needs_work(&self) -> bool {
        self.names.iter().any(|name| *name != name.to_lowercase())
    }

    /// The name an unquoted identifier means, when it is not simply its lower case.
    fn meant(&self, written: &str) -> Option<&str> {
        let lower = written.to_lowercase();
        if self.names.contains(&lower) {
            return None;
        }
        let mut same = self.names.iter().filter(|name| name.to_lowercase() == lower);
        match (same.next(), same.next()) {
            (Some(one), None) => Some(one),
            // several differ in case only: as written, if that is one of them
            (Some(_), Some(_)) => self.names.get(written).map(String::as_str),
            _ => None,
        }
    }

    fn fix(&self, identifier: &mut Ident) {
        if identifier.quote_style.is_none()
            && let Some(name) = self.meant(&identifier.value)
        {
            identifier.value = name.to_string();
            identifier.quote_style = Some('"');
        }
    }
}

/// Quotes the unquoted columns of a statement that need it.
pub(crate) fn fix(statement: &mut DfStatement, mut known: Known) {
    if !known.needs_work() {
        return;
    }
    match statement {
        DfStatement::Statement(statement) => {
            let _ = Visit::visit(statement.as_ref(), &mut Aliases(&mut known));
            let _ = VisitMut::visit(statement, &mut Fixer(&known));
        }
        DfStatement::Explain(explain) => fix(&mut explain.statement, known),
        DfStatement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                let _ = Visit::visit(query.as_ref(), &mut Aliases(&mut known));
                let _ = VisitMut::visit(query, &mut Fixer(&known));
            }
        }
        DfStatement::CreateExternalTable(_) | DfStatement::Reset(_) => {}
    }
}

/// Names the statement itself gives win over columns that differ in case.
struct Aliases<'a>(&'a mut Known);

impl Aliases<'_> {
    fn add(&mut self, name: &Ident) {
        self.0.names.insert(if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() });
    }
}

impl Visitor for Aliases<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.add(&cte.alias.name);
            cte.alias.columns.iter().for_each(|column| self.add(&column.name));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.add(alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { alias, name, .. } => {
                if let Some(ObjectNamePart::Identifier(last)) = name.0.last() {
                    self.add(last);
                }
                alias
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias,
            _ => &None,
        };
        if let Some(alias) = alias {
            self.add(&alias.name);
            alias.columns.iter().for_each(|column| self.add(&column.name));
        }
        ControlFlow::Continue(())
    }
}

struct Fixer<'a>(&'a Known);

impl VisitorMut for Fixer<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(identifier) => self.0.fix(identifier),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(|part| self.0.fix(part)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for table in &mut select.from {
            for join in &mut table.joins {
                if let Some(JoinConstraint::Using(columns)) = constraint(&mut join.join_operator) {
                    columns.iter_mut().for_each(|name: &mut ObjectName| {
                        if let [ObjectNamePart::Identifier(identifier)] = name.0.as_mut_slice() {
                            self.0.fix(identifier);
                        }
                    });
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(c)
        | JoinOperator::Inner(c)
        | JoinOperator::Left(c)
        | JoinOperator::LeftOuter(c)
        | JoinOperator::Right(c)
        | JoinOperator::RightOuter(c)
        | JoinOperator::FullOuter(c)
        | JoinOperator::Semi(c)
        | JoinOperator::LeftSemi(c)
        | JoinOperator::RightSemi(c)
        | JoinOperator::Anti(c)
        | JoinOperator::LeftAnti(c)
        | JoinOperator::RightAnti(c) => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn fixed(sql: &str, columns: &[&str]) -> String {
        let fields: Vec<Field> = columns.iter().map(|c| Field::new(*c, DataType::Int32, true)).collect();
        let mut known = Known::default();
        known.columns(&Arc::new(Schema::new(fields)));
        let mut statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
        fix(&mut statement, known);
        statement.to_string()
    }

    #[test]
    fn unquoted_names_find_the_only_column_that_differs_in_case() {
        let columns = ["Amount", "id", "订单号"];
        assert_eq!(fixed("SELECT amount, ID FROM t", &columns), "SELECT \"Amount\", ID FROM t");
        assert_eq!(
            fixed("SELECT t.AMOUNT FROM t WHERE amount > 1", &columns),
            "SELECT t.\"Amount\" FROM t WHERE \"Amount\" > 1"
        );
        assert_eq!(
            fixed("SELECT * FROM t JOIN u USING (amount)", &columns),
            "SELECT * FROM t JOIN u USING(\"Amount\")"
        );
        assert_eq!(fixed("SELECT \"amount\" FROM t", &columns), "SELECT \"amount\" FROM t");
    }

    #[test]
    fn names_of_the_statement_win() {
        assert_eq!(
            fixed("SELECT 1 AS amount FROM t ORDER BY amount", &["Amount"]),
            "SELECT 1 AS amount FROM t ORDER BY amount"
        );
    }

    #[test]
    fn two_columns_that_differ_in_case_need_their_spelling() {
        assert_eq!(fixed("SELECT Ab, AB, ab FROM t", &["Ab", "AB"]), "SELECT \"Ab\", \"AB\", ab FROM t");
        assert_eq!(fixed("SELECT Ab, ab FROM t", &["Ab", "ab"]), "SELECT Ab, ab FROM t");
    }
}
