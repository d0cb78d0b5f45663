//! What the engine says of a statement, in our words, where its own show what nobody wrote.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use super::Error;

/// None where its own words do.
pub(super) fn in_our_words(error: &DataFusionError) -> Option<Error> {
    match error {
        DataFusionError::Plan(text) => repeated(text)
            .or_else(|| unfit(text))
            .or_else(|| ungrouped(text))
            .or_else(|| tree_cut(text))
            .or_else(|| way_out(text)),
        DataFusionError::NotImplemented(text) => {
            if let Some(told) = unplanned(text).or_else(|| way_out(text)) {
                return Some(told);
            }
            tree_cut(text).map(|told| Error::unsupported(told.message().to_string()).with_code("NotImplemented"))
        }
        DataFusionError::Execution(text) => average(text),
        DataFusionError::Configuration(text) => Some(option(text)),
        DataFusionError::ResourcesExhausted(text) => memory(text),
        DataFusionError::SchemaError(schema, _) => {
            let twice = match schema.as_ref() {
                SchemaError::DuplicateQualifiedField { qualifier, .. } => {
                    format!("two relations are called '{}'", qualifier.table())
                }
                SchemaError::DuplicateUnqualifiedField { name } => format!("two columns are called '{name}'"),
                _ => return None,
            };
            let told = Error::invalid(twice).with_code(schema_code(schema));
            Some(match schema_hint(schema) {
                Some(hint) => told.with_hint(hint),
                None => told,
            })
        }
        _ => None,
    }
}

/// `Arithmetic Overflow in AvgAccumulator`
fn average(text: &str) -> Option<Error> {
    text.contains("Overflow in AvgAccumulator").then(|| {
        Error::invalid("the average is beyond DECIMAL(38): it has four digits more behind the point than the values")
            .with_code("NumberOutOfRange")
            .with_hint("write avg(CAST(x AS DOUBLE)), or CAST(x AS DECIMAL(38, 2)) with the digits that are needed")
    })
}

/// `Additional allocation failed for ExternalSorterMerge[0] with top memory consumers … (used: 0 B, pool_size: 1 MB)`
fn memory(text: &str) -> Option<Error> {
    let (_, pool) = text.rsplit_once("pool_size: ")?;
    let (size, _) = pool.split_once(')')?;
    Some(
        Error::exhausted(format!("the statement needs more memory than the {size} it may use"))
            .with_code("ResourcesExhausted")
            .with_hint(
                "give it more, --memory in the shell or SessionConfig::memory_limit in a program, or let it hold less: \
                 fewer columns, a narrower filter, a LIMIT behind ORDER BY",
            ),
    )
}

/// `Projections require unique expression names but the expression "t.id" at position 0 and "t.id" at position 1 …`
fn repeated(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once("require unique expression names but the expression \"")?;
    let (first, rest) = rest.split_once("\" at position ")?;
    let (from, rest) = rest.split_once(" and \"")?;
    let (_, rest) = rest.split_once("\" at position ")?;
    let to: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let name = match first.rsplit_once(" AS ") {
        Some((_, alias)) => alias,
        // an expression is called as it is written
        None if first.contains([' ', '(']) => first,
        None => first.rsplit('.').next().unwrap_or(first),
    };
    let number = |at: &str| at.parse::<usize>().map_or_else(|_| at.to_string(), |at| (at + 1).to_string());
    Some(
        Error::invalid(format!("two columns are called '{name}', number {} and {}", number(from), number(&to)))
            .with_code("DuplicateName")
            .with_hint("give each column a name of its own: id AS a"),
    )
}

/// `… No function matches the given name and argument types 'sum(Utf8)'. … Candidate functions:\n\tsum(Decimal)…`
fn unfit(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once("'. You might need")?;
    let (_, candidates) = rest.split_once("Candidate functions:")?;
    let candidates: Vec<&str> = candidates.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (function, _) = call.split_once('(')?;
    Some(
        Error::invalid(format!(
            "function '{function}' does not take what it is given, {call}; it takes {}",
            candidates.join(", ")
        ))
        .with_code("Plan")
        .with_hint("give it what it takes, CAST(v AS DOUBLE) for instance"),
    )
}

/// `Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column "t.id" must appear …`
fn ungrouped(text: &str) -> Option<Error> {
    let (place, rest) = text.strip_prefix("Column in ")?.split_once(" must be in GROUP BY or an aggregate function")?;
    let (_, rest) = rest.split_once(", column \"")?;
    let (column, _) = rest.split_once("\" must appear in the GROUP BY")?;
    Some(
        Error::invalid(format!("{column} in {place} is neither grouped by nor in an aggregate function"))
            .with_code("Plan")
            .with_hint("add it to GROUP BY (GROUP BY ALL takes all that is not aggregated), or ask for max(…) of it"),
    )
}

/// `Physical plan does not support logical expression ScalarSubquery(<subquery>)`
fn unplanned(text: &str) -> Option<Error> {
    let expression = text.strip_prefix("Physical plan does not support logical expression ")?;
    let (message, code, hint) = if expression.starts_with("WindowFunction(") {
        let hint = "window functions come after WHERE, GROUP BY and HAVING: write QUALIFY row_number() OVER (…) = 1";
        ("a window function stands where rows are still selected", "Plan", hint)
    } else if expression.starts_with("Wildcard {") {
        ("* is no argument of a function other than count", "Plan", "name the column")
    } else if expression.starts_with("OuterReferenceColumn(") {
        let hint = "an array gives rows in the list: SELECT id, unnest(items) AS item FROM t; the last row of each key \
                    is found by a JOIN and QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1";
        ("a relation in FROM speaks of the row outside in a way that cannot be computed", "CorrelatedSubquery", hint)
    } else if ["ScalarSubquery(", "Exists(", "InSubquery("].iter().any(|kind| expression.starts_with(kind)) {
        let hint = "a subquery is tied to the row outside by = between columns only; otherwise join the rows, grouped by \
                    the columns of the row outside";
        ("a subquery is tied to the row outside in a way that cannot be computed", "CorrelatedSubquery", hint)
    } else {
        return None;
    };
    Some(Error::unsupported(message).with_code(code).with_hint(hint))
}

/// What there is to write instead of what the engine refuses.
const WAYS_OUT: &[(&str, &str)] = &[
    (
        "Correlated scalar subquery must be aggregated",
        "it may give several rows: write max(…) or any_value(…), or join",
    ),
    ("COUNT DISTINCT with multiple arguments", "count them as one row: count(DISTINCT (a, b))"),
    (
        "Too many columns! The subquery should only return one column",
        "list as many columns as are compared with, without *",
    ),
    ("unnest() can only be applied to", "the entries of a map are unnest(map_entries(m))"),
    ("SUM not supported for Null", "say the type of NULL: CAST(NULL AS INT)"),
    ("wildcard * with RENAME", "write the columns out, or SELECT * EXCEPT (a), a AS b"),
    ("Operator DIV", "write floor(a / b), or a / b of integers"),
    ("Unsupported LIMIT expression", "LIMIT takes a number"),
    ("Unsupported SQL type TIMESTAMP(", "write TIMESTAMP(0), TIMESTAMP(3), TIMESTAMP(6) or TIMESTAMP(9)"),
];

fn way_out(text: &str) -> Option<Error> {
    let (_, hint) = WAYS_OUT.iter().find(|(found, _)| text.contains(found))?;
    let is_refused = text.contains("not ") || text.contains("multiple");
    let error = if is_refused { Error::unsupported(text) } else { Error::invalid(text) };
    Some(error.with_code("Plan").with_hint(*hint))
}

/// A message without the part of the tree that the planner shows in it, `… Substring { expr: Value(ValueWithSpan { … }) }`.
fn tree_cut(text: &str) -> Option<Error> {
    let spans = text.find("Span(Location(")?;
    let before = text.get(..spans)?;
    let opens = before.char_indices().filter(|(_, c)| matches!(c, '{' | '(')).map(|(at, _)| at);
    let begins = opens.filter_map(|open| {
        let head = before.get(..open)?.trim_end();
        let name = head.rsplit(|c: char| !c.is_alphanumeric()).next().filter(|name| !name.is_empty())?;
        name.starts_with(char::is_uppercase).then_some(head.len() - name.len())
    });
    let kept = text.get(..begins.min()?)?.trim_end_matches([' ', ':']);
    Some(
        Error::invalid(kept.to_string()).with_code("Plan").with_hint(
            "write this part of the statement another way; a function that is called needs all its arguments",
        ),
    )
}

/// `Config value "foo" not found on CsvOptions`
fn option(text: &str) -> Error {
    let (name, owner) = match text.strip_prefix("Config value \"").and_then(|rest| rest.split_once("\" not found on "))
    {
        Some(found) => found,
        None => return Error::invalid(text).with_code("BadOption"),
    };
    let (of, hint) = match owner {
        "CsvOptions" => ("of CSV files", "one that there is: OPTIONS ('format.has_header' 'false')"),
        "JsonOptions" => ("of JSON files", "one that there is: OPTIONS ('format.compression' 'gzip')"),
        _ if owner.contains("Parquet") => {
            ("of Parquet files", "one that there is: OPTIONS ('format.compression' 'zstd(3)')")
        }
        _ => ("of the session", "SHOW ALL lists them; those of tables are written SET 'paimon.scan.snapshot-id' = '3'"),
    };
    Error::invalid(format!("there is no option '{name}' {of}")).with_code("BadOption").with_hint(hint)
}

/// The code for what a statement says about columns.
pub(super) fn schema_code(error: &SchemaError) -> &'static str {
    match error {
        SchemaError::AmbiguousReference { .. } => "AmbiguousColumn",
        SchemaError::DuplicateQualifiedField { .. } | SchemaError::DuplicateUnqualifiedField { .. } => "DuplicateName",
        SchemaError::FieldNotFound { .. } => "ColumnNotFound",
    }
}

/// The way out of it.
pub(super) fn schema_hint(error: &SchemaError) -> Option<&'static str> {
    match error {
        SchemaError::AmbiguousReference { .. } => Some("say of which relation it is: a.id"),
        SchemaError::DuplicateQualifiedField { .. } => {
            Some("give each use of a relation its own alias: FROM t a, t VERSION AS OF 3 b")
        }
        SchemaError::DuplicateUnqualifiedField { .. } => Some("give each column a name of its own: id AS a"),
        SchemaError::FieldNotFound { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_up_is_told_in_one_line_with_a_way_out() {
        let text = "Additional allocation failed for ExternalSorterMerge[1] with top memory consumers (across \
                    reservations) as:\n  MergeSource#0(can spill: false) consumed 0.0 B, peak 0.0 B.\nError: Failed to \
                    allocate additional 10.0 MB for ExternalSorterMerge[1] with 0.0 B already allocated for this \
                    reservation - 976.6 KB remain available for the total memory pool: greedy(used: 0.0 B, pool_size: \
                    976.6 KB)";
        let error = Error::from_datafusion(DataFusionError::ResourcesExhausted(text.into()).context("while sorting"));
        assert_eq!(error.message(), "the statement needs more memory than the 976.6 KB it may use");
        assert_eq!((error.code(), error.kind()), ("ResourcesExhausted", crate::error::ErrorKind::Exhausted));
        assert!(error.hint().unwrap().contains("--memory"));
        // all of it is behind
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.to_string().contains("MergeSource#0"), "{source}");
        let other = DataFusionError::ResourcesExhausted("The used disk space exceeded".into());
        assert!(Error::from_datafusion(other).message().contains("disk space"));
    }

    #[test]
    fn what_nobody_wrote_is_not_shown() {
        let plan = |text: &str| in_our_words(&DataFusionError::Plan(text.to_string()));
        let told = plan(
            "Projections require unique expression names but the expression \"t.id\" at position 0 and \"t.id\" at \
             position 3 have the same name. Consider aliasing (\"AS\") one of them.",
        );
        let told = told.unwrap();
        assert_eq!((told.code(), told.message()), ("DuplicateName", "two columns are called 'id', number 1 and 4"));
        let told = plan(
            "Substring without for/from is not valid Substring { expr: Value(ValueWithSpan { span: Span(Location(1,8)..Location(1,9)) }) }",
        );
        assert_eq!(told.unwrap().message(), "Substring without for/from is not valid");
        assert!(plan("Invalid function 'foo'").is_none());
        let told = plan(
            "Internal error: Function 'sum' failed to match any signature, errors: Error during planning: … No function \
             matches the given name and argument types 'sum(Utf8)'. You might need to add explicit type casts.\n\
             \tCandidate functions:\n\tsum(Decimal)\n\tsum(Int64)",
        );
        let expected = "function 'sum' does not take what it is given, sum(Utf8); it takes sum(Decimal), sum(Int64)";
        assert_eq!(told.unwrap().message(), expected);
        let option =
            in_our_words(&DataFusionError::Configuration("Config value \"foo\" not found on CsvOptions".into()));
        assert_eq!(option.unwrap().message(), "there is no option 'foo' of CSV files");
    }
}
