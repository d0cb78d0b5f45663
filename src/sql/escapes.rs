//! `LIKE … ESCAPE '!'`: DataFusion's LIKE escapes by a backslash only, so a written pattern is put into that form.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan, VisitorMut};

use super::walk::walk;

/// Rewrites the patterns of a statement that name an escape character of their own.
pub(crate) fn fix(statement: &mut DfStatement) {
    let _ = walk(statement, &mut Fixer);
}

struct Fixer;

impl VisitorMut for Fixer {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Like { pattern, escape_char, any: false, .. }
        | Expr::ILike { pattern, escape_char, any: false, .. } = expr
            && let Expr::Value(pattern) = pattern.as_mut()
            && let Value::SingleQuotedString(text) = &mut pattern.value
            && let Some(ValueWithSpan { value: Value::SingleQuotedString(escape), .. }) = escape_char
            && let Some(rewritten) = single(escape).and_then(|escape| by_backslash(text, escape))
        {
            *text = rewritten;
            *escape_char = None;
        }
        ControlFlow::Continue(())
    }
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The same pattern with the backslash as escape; None for one that ends with its escape, which DataFusion refuses then.
fn by_backslash(pattern: &str, escape: char) -> Option<String> {
    let mut rewritten = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (character, plain) = if character == escape { (characters.next()?, true) } else { (character, false) };
        // unescaped, a wildcard stays one; a backslash never is
        if character == '\\' || (plain && matches!(character, '%' | '_')) {
            rewritten.push('\\');
        }
        rewritten.push(character);
    }
    Some(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_escape_by_backslash() {
        let cases = [
            ("a!%", '!', Some("a\\%")),
            ("a!!%_", '!', Some("a!%_")),
            ("!_!x", '!', Some("\\_x")),
            ("a\\%", '!', Some("a\\\\%")),
            ("%%_%_", '%', Some("\\%_\\_")),
            ("a\\%\\\\", '\\', Some("a\\%\\\\")),
            ("a!", '!', None),
        ];
        for (pattern, escape, right) in cases {
            assert_eq!(by_backslash(pattern, escape).as_deref(), right, "{pattern} ESCAPE {escape}");
        }
    }
}
