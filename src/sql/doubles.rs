//! Numbers with an exponent are DOUBLE, as in standard SQL, Java, Flink and Spark; `1.5` stays a decimal. DataFusion knows
//! one type for both, and its decimals of a scale below zero round, divide and compare wrongly.
//!
//! The tree has no node for a DOUBLE literal. A dictionary under a name that nobody can write stands for it, and the
//! expression planner here turns that into the literal.
//!
//! The same walk meets the literals of [`times`].

use std::ops::ControlFlow;

use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawDictionaryExpr};
use datafusion::logical_expr::{Expr as Planned, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    DictionaryField, Expr, Ident, NamedWindowExpr, Query, Select, SetExpr, Statement as SqlStatement, UnaryOperator,
    Value, ValueWithSpan, VisitMut, VisitorMut, WindowSpec, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::walk::walk;
use super::{distinct, times};

/// Key of the dictionary that stands for a DOUBLE.
const KEY: &str = "\0double";

/// Marks the numbers with an exponent in a statement, and widens its times. It is planned by [`DoubleLiterals`] then.
pub(crate) fn fix(statement: &mut DfStatement) {
    // values of settings are text
    if !matches!(statement, DfStatement::Statement(statement) if matches!(statement.as_ref(), SqlStatement::Set(_))) {
        let _ = walk(statement, &mut Marker);
    }
}

/// The same in one expression.
pub(crate) fn fix_expression(expr: &mut Expr) {
    let _ = expr.visit(&mut Marker);
}

/// An expression from text, read as in a statement of ours. `state` must come from a statement.
pub(crate) fn expression(state: &SessionState, text: &str, columns: &DFSchema) -> DfResult<Planned> {
    let mut parsed = state.sql_to_expr_with_alias(text, &state.config_options().sql_parser.dialect)?;
    fix_expression(&mut parsed.expr);
    distinct::fix_expression(&mut parsed.expr);
    state.create_logical_expr_from_sql_expr(parsed, columns)
}

/// Text of a number literal, with its sign.
fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) => Some(text.clone()),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) => Some(format!("-{text}")),
            _ => None,
        },
        _ => None,
    }
}

fn has_exponent(number: &str) -> bool {
    number.contains(['e', 'E'])
}

/// Puts the DOUBLE of that text in the place of an expression.
fn mark(expr: &mut Expr, text: String) {
    let value = Value::SingleQuotedString(text).with_span(Span::empty());
    let field = DictionaryField { key: Ident::new(KEY), value: Box::new(Expr::Value(value)) };
    *expr = Expr::Dictionary(vec![field]);
}

struct Marker;

impl VisitorMut for Marker {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            let width = values.rows.iter().map(|row| row.content.len()).max().unwrap_or(0);
            for column in 0..width {
                let cells = || values.rows.iter().filter_map(|row| row.content.get(column)).filter_map(number);
                // decimals beside a double would decide the column's type, and digits of the double be lost
                if cells().any(|text| has_exponent(&text)) {
                    for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
                        if let Some(text) = number(cell).filter(|text| text.contains('.')) {
                            mark(cell, text);
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for window in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = &mut window.1 {
                write_out_frame(spec);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
                    write_out_frame(spec);
                }
            }
            Expr::Interval(interval) => drop(interval.value.visit(&mut Digits)),
            other => {
                times::widen(other);
                if let Some(text) = number(other).filter(|text| has_exponent(text)) {
                    mark(other, text);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Bounds of a frame are read as text.
fn write_out_frame(spec: &mut WindowSpec) {
    if let Some(frame) = &mut spec.window_frame {
        let _ = frame.visit(&mut Digits);
    }
}

/// Writes numbers out in digits: intervals and frames take a literal only.
struct Digits;

impl VisitorMut for Digits {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::Number(text, _) = &mut value.value
            && has_exponent(text)
            && let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite())
        {
            *text = number.to_string();
        }
        ControlFlow::Continue(())
    }
}

/// Plans what [`fix`] has marked.
#[derive(Debug)]
pub(crate) struct DoubleLiterals;

impl ExprPlanner for DoubleLiterals {
    fn plan_dictionary_literal(
        &self,
        expr: RawDictionaryExpr,
        _schema: &DFSchema,
    ) -> DfResult<PlannerResult<RawDictionaryExpr>> {
        let ([Planned::Literal(key, _)], [Planned::Literal(value, _)]) = (expr.keys.as_slice(), expr.values.as_slice())
        else {
            return Ok(PlannerResult::Original(expr));
        };
        if key.try_as_str().flatten() != Some(KEY) {
            return Ok(PlannerResult::Original(expr));
        }
        let text = value.try_as_str().flatten().unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(PlannerResult::Planned(lit(ScalarValue::Float64(Some(number))))),
            _ => plan_err!("{text} is beyond the numbers of DOUBLE, which end at {:e}", f64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::dialect::LakeDialect;
    use datafusion::sql::parser::DFParserBuilder;

    fn fixed(sql: &str) -> String {
        let dialect = LakeDialect;
        let mut parser = DFParserBuilder::new(sql).with_dialect(&dialect).build().unwrap();
        let mut statement = parser.parse_statement().unwrap();
        fix(&mut statement);
        statement.to_string().replace(KEY, "double")
    }

    #[test]
    fn numbers_with_an_exponent_are_marked_and_no_others() {
        for (sql, expected) in [
            ("SELECT 1e3, -2.5E1, 1.5, 7", "SELECT {double: '1e3'}, {double: '-2.5E1'}, 1.5, 7"),
            (
                "SELECT a FROM t WHERE a > 1e3 OR b IN (-1e-3, 2)",
                "SELECT a FROM t WHERE a > {double: '1e3'} OR b IN ({double: '-1e-3'}, 2)",
            ),
            (
                "SELECT f(x) OVER (ORDER BY y RANGE BETWEEN 1e1 PRECEDING AND 5 FOLLOWING)",
                "SELECT f(x) OVER (ORDER BY y RANGE BETWEEN 10 PRECEDING AND 5 FOLLOWING)",
            ),
            ("SELECT INTERVAL 15e-1 DAY, '1e3', \"1e3\"", "SELECT INTERVAL 1.5 DAY, '1e3', \"1e3\""),
            ("EXPLAIN SELECT 1e3", "EXPLAIN SELECT {double: '1e3'}"),
            ("VALUES (1.5, 2.5, 'a'), (1e3, 1, 'b')", "VALUES ({double: '1.5'}, 2.5, 'a'), ({double: '1e3'}, 1, 'b')"),
            ("SET x = 1e3", "SET x = 1e3"),
        ] {
            assert_eq!(fixed(sql), expected, "{sql}");
        }
    }
    #[test]
    fn a_copy_is_marked_too() {
        let copy = fixed("COPY (SELECT 1e3) TO 'x.csv'");
        assert!(copy.starts_with("COPY (SELECT {double: '1e3'})"), "{copy}");
    }
}
