//! Conditions on composite keys, written out column by column: row constructors are not served by an index everywhere.

use std::collections::HashSet;

use datafusion::common::ScalarValue;

use crate::error::{Error, Result};

/// Keys each once and in their order, so that lists of some of them come in order too.
pub(super) fn listed(keys: Vec<Vec<ScalarValue>>, columns: usize, nulls_first: bool) -> Result<Vec<Vec<ScalarValue>>> {
    if columns == 0 || keys.iter().any(|key| key.len() != columns) {
        return Err(Error::internal("keys have other columns than the source's key or the order of the read"));
    }
    let mut seen = HashSet::new();
    let mut keys: Vec<Vec<ScalarValue>> = keys.into_iter().filter(|key| seen.insert(key.clone())).collect();
    keys.sort_by(|one, other| {
        let columns = one.iter().zip(other).map(|(one, other)| match (one.is_null(), other.is_null()) {
            (false, false) => one.partial_cmp(other),
            (one, other) if nulls_first => Some(other.cmp(&one)),
            (one, other) => Some(one.cmp(&other)),
        });
        columns.flatten().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(keys)
}

/// One column of a key, and the value it is compared with.
pub(super) struct Term<P> {
    /// What is compared, in SQL.
    pub(super) expression: String,
    /// What stands before and behind the parameter: a cast.
    pub(super) around: (String, String),
    /// The value; none: NULL.
    pub(super) value: Option<P>,
    /// Whether the column may be NULL.
    pub(super) nullable: bool,
}

/// SQL with its parameters, in the order of their marks.
pub(super) struct Bounds<P> {
    /// Where the database has NULLs in ascending order.
    nulls_first: bool,
    /// `$1`, not `?`.
    numbered: bool,
    pub(super) params: Vec<P>,
}

impl<P: Clone> Bounds<P> {
    pub(super) fn new(nulls_first: bool, numbered: bool) -> Self {
        Self { nulls_first, numbered, params: Vec::new() }
    }

    fn mark(&mut self, term: &Term<P>) -> String {
        self.params.extend(term.value.clone());
        let mark = if self.numbered { format!("${}", self.params.len()) } else { "?".into() };
        format!("{}{mark}{}", term.around.0, term.around.1)
    }

    /// What is compared, with its value.
    pub(super) fn compared(&mut self, term: &Term<P>, operator: &str) -> String {
        format!("{} {operator} {}", term.expression, self.mark(term))
    }

    fn equal(&mut self, term: &Term<P>) -> String {
        if term.value.is_none() { format!("{} IS NULL", term.expression) } else { self.compared(term, "=") }
    }

    fn greater(&mut self, term: &Term<P>) -> String {
        match (term.value.is_some(), self.nulls_first) {
            (false, true) => format!("{} IS NOT NULL", term.expression),
            (false, false) => "FALSE".into(),
            (true, false) if term.nullable => {
                format!("({} OR {} IS NULL)", self.compared(term, ">"), term.expression)
            }
            (true, _) => self.compared(term, ">"),
        }
    }

    fn less(&mut self, term: &Term<P>) -> String {
        match (term.value.is_some(), self.nulls_first) {
            (false, true) => "FALSE".into(),
            (false, false) => format!("{} IS NOT NULL", term.expression),
            (true, true) if term.nullable => {
                format!("({} OR {} IS NULL)", self.compared(term, "<"), term.expression)
            }
            (true, _) => self.compared(term, "<"),
        }
    }

    /// Keys beyond this one.
    pub(super) fn beyond(&mut self, terms: &[Term<P>]) -> String {
        let Some((first, rest)) = terms.split_first() else { return "FALSE".into() };
        if rest.is_empty() {
            return self.greater(first);
        }
        // a range for the index, which OR alone is not to every planner
        let simple = first.value.is_some() && (!first.nullable || self.nulls_first);
        let range = if simple { format!("{} AND ", self.compared(first, ">=")) } else { String::new() };
        let (greater, equal) = (self.greater(first), self.equal(first));
        format!("({range}({greater} OR ({equal} AND {})))", self.beyond(rest))
    }

    /// Keys up to this one and with it.
    pub(super) fn upto(&mut self, terms: &[Term<P>]) -> String {
        let Some((first, rest)) = terms.split_first() else { return "TRUE".into() };
        let simple = first.value.is_some() && (!first.nullable || !self.nulls_first);
        if rest.is_empty() && simple {
            return self.compared(first, "<=");
        }
        let range = if simple { format!("{} AND ", self.compared(first, "<=")) } else { String::new() };
        let (less, equal) = (self.less(first), self.equal(first));
        if rest.is_empty() {
            return format!("({less} OR {equal})");
        }
        format!("({range}({less} OR ({equal} AND {})))", self.upto(rest))
    }

    /// One of these values of a column; None for an empty list.
    pub(super) fn listed(&mut self, terms: &[Term<P>]) -> Option<String> {
        let expression = &terms.first()?.expression;
        let marks: Vec<String> = terms.iter().map(|term| self.mark(term)).collect();
        Some(format!("{expression} IN ({})", marks.join(", ")))
    }

    /// This key alone.
    pub(super) fn only(&mut self, terms: &[Term<P>]) -> String {
        let equal: Vec<String> = terms.iter().map(|term| self.equal(term)).collect();
        format!("({})", equal.join(" AND "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(name: &str, value: Option<i32>, nullable: bool) -> Term<i32> {
        Term { expression: name.into(), around: (String::new(), String::new()), value, nullable }
    }

    /// Evaluates what was written, for small numbers and NULL.
    fn holds(sql: &str, params: &[i32], row: &[Option<i32>]) -> bool {
        // `(`, `)`, words: a recursive descent over OR and AND
        struct Reader<'a> {
            words: Vec<String>,
            at: usize,
            params: &'a [i32],
            row: &'a [Option<i32>],
        }
        impl Reader<'_> {
            fn word(&mut self) -> String {
                self.at += 1;
                self.words[self.at - 1].clone()
            }
            fn next_is(&self, word: &str) -> bool {
                self.words.get(self.at).is_some_and(|next| next == word)
            }
            fn any(&mut self) -> bool {
                let mut holds = self.all();
                while self.next_is("OR") {
                    self.at += 1;
                    holds |= self.all();
                }
                holds
            }
            fn all(&mut self) -> bool {
                let mut holds = self.one();
                while self.next_is("AND") {
                    self.at += 1;
                    holds &= self.one();
                }
                holds
            }
            fn one(&mut self) -> bool {
                let word = self.word();
                match word.as_str() {
                    "(" => {
                        let holds = self.any();
                        assert_eq!(self.word(), ")");
                        holds
                    }
                    "FALSE" => false,
                    "TRUE" => true,
                    name => {
                        let value = self.row[usize::from(name.as_bytes()[0] - b'a')];
                        let operator = self.word();
                        if operator == "IS" {
                            let not = self.next_is("NOT");
                            self.at += usize::from(not) + 1;
                            return value.is_none() != not;
                        }
                        let mark = self.word();
                        let other = self.params[mark[1..].parse::<usize>().unwrap() - 1];
                        value.is_some_and(|value| match operator.as_str() {
                            ">" => value > other,
                            ">=" => value >= other,
                            "<" => value < other,
                            "<=" => value <= other,
                            _ => value == other,
                        })
                    }
                }
            }
        }
        let spaced = sql.replace('(', " ( ").replace(')', " ) ");
        let words = spaced.split_whitespace().map(str::to_string).collect();
        let mut reader = Reader { words, at: 0, params, row };
        let holds = reader.any();
        assert_eq!(reader.at, reader.words.len(), "{sql}");
        holds
    }

    #[test]
    fn bounds_cut_rows_where_their_order_does() {
        let values = [None, Some(1), Some(2), Some(3)];
        let mut rows = Vec::new();
        for a in values {
            for b in values {
                rows.extend(values.map(|c| [a, b, c]));
            }
        }
        for nulls_first in [true, false] {
            let rank = |value: Option<i32>| value.unwrap_or(if nulls_first { 0 } else { 9 });
            for bound in &rows {
                let nullable = [true, bound[1].is_none(), true];
                let terms: Vec<_> = (0..3).map(|at| term(["a", "b", "c"][at], bound[at], nullable[at])).collect();
                let mut beyond = Bounds::new(nulls_first, true);
                let beyond_sql = beyond.beyond(&terms);
                let mut upto = Bounds::new(nulls_first, true);
                let upto_sql = upto.upto(&terms);
                let mut only = Bounds::new(nulls_first, true);
                let only_sql = only.only(&terms);
                // a column that is said to have no NULLs has none
                for row in rows.iter().filter(|row| nullable[1] || row[1].is_some()) {
                    let is_beyond = row.map(rank) > bound.map(rank);
                    assert_eq!(holds(&beyond_sql, &beyond.params, row), is_beyond, "{row:?} {bound:?} {beyond_sql}");
                    assert_eq!(holds(&upto_sql, &upto.params, row), !is_beyond, "{row:?} {bound:?} {upto_sql}");
                    assert_eq!(holds(&only_sql, &only.params, row), row == bound, "{row:?} {bound:?} {only_sql}");
                }
            }
        }
    }
}
