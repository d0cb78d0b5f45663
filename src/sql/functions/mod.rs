//! Table functions: changes between snapshots, row accounting, comparison of two sides. Their calls are found in a statement's tree and become
//! relations of that statement, so that what they need from storage is awaited, never blocked on.

mod anomalies;
mod attribution;
mod cache;
mod changes;
mod commit_rate;
mod compare;
mod conflicts;
mod diff;
mod explain_key;
mod key_history;
mod lookup_commit;
mod made;
mod row_accounting;
mod widening;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, TableAlias, TableFactor,
};

use super::constant::{evaluate, instant, integer, text};
use super::names::{TableName, split_parts, split_selector};
use super::place::Place;
use super::selector::Selection;
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::query::nodes::Computation;
use crate::snapshot::nearest::{known_names, nearest};
use crate::snapshot::{PinRequest, SessionZone, Table};
use crate::spec::CommitIdentifier;

use made::Made;

pub(crate) use changes::{check_range_option, table_or_changes};
pub(crate) use row_accounting::{
    AccountingLevel, rows as accounting_batch, schema as accounting_schema, work as accounting_work,
};

/// What plans with calls of them may ask of another process.
pub(crate) static COMPUTATIONS: &[&Computation] = &[&row_accounting::EXACT];

/// The functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// `paimon_changes`: rows of changelog files.
    Changes,
    /// `paimon_delta`: rows that APPEND snapshots added, unmerged.
    Delta,
    /// `paimon_cache`: what is kept between statements.
    Cache,
    /// `paimon_compare`: two sides by key.
    Compare,
    /// `paimon_diff`: the net effect on final rows.
    Diff,
    /// `paimon_commit_keys`: the net effect of one commit.
    CommitKeys,
    /// `paimon_row_accounting`.
    RowAccounting,
    /// One whose rows are made by us.
    Made(&'static Made),
}

const ALL: &[Function] = &[
    Function::Cache,
    Function::Changes,
    Function::Compare,
    Function::Delta,
    Function::Diff,
    Function::CommitKeys,
    Function::RowAccounting,
    Function::Made(&anomalies::ANOMALIES),
    Function::Made(&commit_rate::COMMIT_RATE),
    Function::Made(&conflicts::CONFLICTS),
    Function::Made(&explain_key::EXPLAIN_KEY),
    Function::Made(&key_history::KEY_HISTORY),
    Function::Made(&lookup_commit::LOOKUP_COMMIT),
];

impl Function {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Changes => "paimon_changes",
            Self::Cache => cache::NAME,
            Self::Compare => "paimon_compare",
            Self::Delta => "paimon_delta",
            Self::Diff => "paimon_diff",
            Self::CommitKeys => "paimon_commit_keys",
            Self::RowAccounting => "paimon_row_accounting",
            Self::Made(made) => made.name,
        }
    }

    /// Parameters by position.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Cache => &[],
            Self::Changes | Self::Delta => &["table", "from", "to", "at"],
            Self::Compare => &[
                "left",
                "right",
                "key",
                "columns",
                "where",
                "horizon",
                "tolerance",
                "except",
                "zone",
                "sample",
                "limit",
                "from",
                "nocase",
                "allow_empty",
            ],
            Self::Diff => &["table", "from", "to", "where", "columns", "partitions", "at", "attribute"],
            Self::CommitKeys => &["table", "snapshot", "where", "columns", "partitions"],
            Self::RowAccounting => &["table", "level", "mode", "at"],
            Self::Made(made) => made.parameters,
        }
    }
}

impl Function {
    /// The parameter that a name stands for.
    fn parameter(self, name: &str) -> Option<&'static str> {
        let aliases = match self {
            Self::Made(made) => made.aliases,
            _ => &[],
        };
        let alias = aliases.iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias)).map(|(_, own)| *own);
        alias.or_else(|| self.parameters().iter().copied().find(|own| name.eq_ignore_ascii_case(own)))
    }

    /// What to write instead of a parameter that other functions have.
    fn instead_of(self, name: &str) -> Option<&'static str> {
        match self {
            _ if !name.eq_ignore_ascii_case("at") => None,
            Self::Compare => Some("each side has a state of its own, left => 'db.t@v3', right => 'db.t@v5'"),
            Self::CommitKeys => Some("a commit is named by its snapshot, snapshot => 102"),
            _ => None,
        }
    }
}

/// Names of the functions, for completion.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|f| f.name()).collect()
}

/// Functions of other engines, and what to write for them.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "year quarter month week day hour minute second dayofweek dayofyear weekday",
        "write extract(year FROM t), or date_part('dow', t)",
    ),
    ("date_diff datediff timestampdiff", "subtract them: a - b, or extract(epoch FROM a - b) in seconds"),
    ("date_add date_sub dateadd timestampadd add_months", "add an interval: d + INTERVAL '1' DAY"),
    ("unix_timestamp", "write extract(epoch FROM now()), or to_unixtime(t)"),
    ("last_day", "write date_trunc('month', d) + INTERVAL '1' MONTH - INTERVAL '1' DAY"),
    ("if iff decode", "write CASE WHEN a THEN b ELSE c END"),
    ("mod", "write a % b"),
    ("listagg group_concat wm_concat", "write string_agg(v, ',')"),
    ("regexp_substr regexp_extract", "write regexp_match(v, '([0-9]+)')[1]"),
    ("arg_max max_by argmax", "write last_value(v ORDER BY k)"),
    ("arg_min min_by argmin", "write first_value(v ORDER BY k)"),
    ("typeof pg_typeof", "write arrow_typeof(v)"),
    ("collect_list collect_set", "write array_agg(v), array_agg(DISTINCT v)"),
    ("explode", "write unnest(v)"),
    ("quantile_cont percentile quantile", "write percentile_cont(0.5) WITHIN GROUP (ORDER BY v)"),
];

/// The error for a function in an expression that is not there.
pub(crate) fn not_found(name: &str, state: &SessionState) -> Error {
    let scalars = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
    let known: BTreeSet<&str> = scalars.chain(state.window_functions().keys()).map(String::as_str).collect();
    let error = Error::not_found(format!("there is no function '{name}'")).with_code("FunctionNotFound");
    let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.split(' ').any(|known| known.eq_ignore_ascii_case(name)));
    if let Some((_, hint)) = elsewhere {
        return error.with_hint(*hint);
    }
    match nearest(name, known.iter().copied()).is_empty() {
        true => error.with_hint("SHOW FUNCTIONS lists them"),
        false => error.with_hint(known_names("functions", name, known)),
    }
}

/// An argument's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Text(String),
    Texts(Vec<String>),
    Version(PinRequest),
    Number(i64),
    Bool(bool),
    /// A length of time.
    Millis(i64),
    /// Values of a key, in its order.
    Values(Vec<ScalarValue>),
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: Function,
    arguments: Vec<(&'static str, Argument)>,
}

impl Call {
    /// The call that a table factor is, when it names one of ours.
    pub(crate) fn from_factor(factor: &TableFactor, state: &SessionState, zone: &SessionZone) -> Result<Option<Self>> {
        let TableFactor::Table { name, args: Some(args), .. } = factor else { return Ok(None) };
        let [ObjectNamePart::Identifier(identifier)] = name.0.as_slice() else { return Ok(None) };
        let Some(function) = ALL.iter().copied().find(|f| identifier.value.eq_ignore_ascii_case(f.name())) else {
            let written = &identifier.value;
            let name = if identifier.quote_style.is_some() { written.clone() } else { written.to_lowercase() };
            let others = state.table_functions();
            if others.contains_key(&name) {
                return Ok(None);
            }
            let known = names().into_iter().chain(others.keys().map(String::as_str));
            let error = Error::not_found(format!("there is no table function {written}"))
                .with_code("FunctionNotFound")
                .with_hint(known_names("table functions", written, known));
            return Err(Place::from(identifier.span.start).attach(error));
        };
        let mut call = Self { function, arguments: Vec::new() };
        for (position, arg) in args.args.iter().enumerate() {
            let (name, expr) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                    let name = function.parameters().get(position).copied();
                    (name.ok_or_else(|| call.wrong("too many arguments"))?, expr)
                }
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                    let known = function.parameter(&name.value);
                    if let (None, Some(instead)) = (known, function.instead_of(&name.value)) {
                        return Err(call.wrong(format!("no parameter {name}: {instead}")));
                    }
                    let parameters = function.parameters().iter().copied();
                    let known = known.ok_or_else(|| {
                        call.wrong(format!("no parameter {name}")).with_hint(known_names(
                            "parameters",
                            &name.value,
                            parameters,
                        ))
                    })?;
                    (known, expr)
                }
                other => return Err(call.wrong(format!("{other} is no argument"))),
            };
            let argument = match function {
                Function::Compare => part(name, expr, state)?,
                _ => argument(name, expr, state, zone)?,
            };
            if call.arguments.iter().any(|(known, _)| *known == name) {
                return Err(call.wrong(format!("parameter {name} is given twice")));
            }
            call.arguments.push((name, argument));
        }
        if !matches!(function, Function::Cache | Function::Compare) && call.text("table").is_none() {
            return Err(call.wrong("the table is missing"));
        }
        Ok(Some(call))
    }

    fn wrong(&self, message: impl std::fmt::Display) -> Error {
        let usage = match self.function {
            Function::RowAccounting => {
                "paimon_row_accounting('db.t', level => 'partition', mode => 'exact', at => 3); modes: exact, metadata, audit"
            }
            Function::Cache => "paimon_cache()",
            Function::Compare => {
                "paimon_compare(left => 'db.t@v3', right => 'SELECT …', key => 'dt, id', columns => 'a, b MAP (''x'' => ''1'')', \
                 where => '…', horizon => 'c <= 5', tolerance => 'a 0.01', nocase => 'id', allow_empty => true); right is also a table, a file or the address of \
                 a database with from => 'table'"
            }
            Function::Changes => "paimon_changes('db.t', from => 1, to => 5)",
            Function::Delta => "paimon_delta('db.t', from => 1, to => 5)",
            Function::Diff => {
                "paimon_diff('db.t', from => 1, to => 5, columns => 'a, b', where => 'id = …', partitions => 'dt=…', attribute => true); \
                 from may also be a tag, a branch or another table"
            }
            Function::CommitKeys => "paimon_commit_keys('db.t', snapshot => 102)",
            Function::Made(made) => made.usage,
        };
        Error::invalid(format!("{}: {message}", self.function.name()))
            .with_code("BadArgument")
            .with_hint(format!("write {usage}"))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|(known, value)| match value {
            Argument::Text(text) if *known == name => Some(text.as_str()),
            _ => None,
        })
    }

    fn texts(&self, name: &str) -> Option<&[String]> {
        self.arguments.iter().find_map(|(known, value)| match value {
            Argument::Texts(texts) if *known == name => Some(texts.as_slice()),
            _ => None,
        })
    }

    fn version(&self, name: &str) -> Option<&PinRequest> {
        self.arguments.iter().find_map(|(known, value)| match value {
            Argument::Version(request) if *known == name => Some(request),
            _ => None,
        })
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.arguments.iter().find_map(|(known, value)| match value {
            Argument::Number(number) | Argument::Millis(number) if *known == name => Some(*number),
            _ => None,
        })
    }

    fn values(&self, name: &str) -> Option<&[ScalarValue]> {
        self.arguments.iter().find_map(|(known, value)| match value {
            Argument::Values(values) if *known == name => Some(values.as_slice()),
            _ => None,
        })
    }

    /// What of two states is compared.
    fn compared(&self, attribute: bool) -> diff::Wanted<'_> {
        diff::Wanted {
            condition: self.text("where"),
            columns: self.texts("columns"),
            partitions: self.texts("partitions"),
            attribute,
        }
    }

    fn is_true(&self, name: &str) -> bool {
        self.arguments.iter().any(|(known, value)| *known == name && *value == Argument::Bool(true))
    }
}

fn argument(name: &'static str, expr: &Expr, state: &SessionState, zone: &SessionZone) -> Result<Argument> {
    let no = || Error::invalid(format!("{expr} is no value of parameter {name}")).with_code("BadArgument");
    match name {
        "from" | "to" | "at" => Ok(Argument::Version(if let Some(id) = integer(expr) {
            PinRequest::SnapshotId(id)
        } else if let Some(text) = text(expr) {
            PinRequest::Version(text.to_string())
        } else {
            PinRequest::TimestampMillis(instant(state, expr, zone)?)
        })),
        "columns" | "partitions" => {
            let texts: Option<Vec<&str>> = match expr {
                Expr::Array(list) => list.elem.iter().map(text).collect(),
                one => text(one).map(|list| list.split(',').collect()),
            };
            let texts = texts.ok_or_else(no)?.into_iter().map(|one| one.trim().to_string());
            Ok(Argument::Texts(texts.filter(|one| !one.is_empty()).collect()))
        }
        "attribute" | "deep" | "include_uncommitted" | "include_changelog" => match evaluate(state, expr)? {
            ScalarValue::Boolean(Some(value)) => Ok(Argument::Bool(value)),
            _ => Err(no()),
        },
        "identifier" | "snapshot" | "since" => match (integer(expr), text(expr).and_then(CommitIdentifier::parse)) {
            (Some(number), _) => Ok(Argument::Number(number)),
            (None, Some(identifier)) => Ok(Argument::Number(identifier.0)),
            (None, None) => Err(no()),
        },
        "from_time" | "to_time" => Ok(Argument::Millis(instant(state, expr, zone)?)),
        "window" => match evaluate(state, expr)? {
            ScalarValue::IntervalMonthDayNano(Some(length)) if length.months == 0 => {
                let millis = i64::from(length.days).saturating_mul(86_400_000);
                let millis = millis.saturating_add(length.nanoseconds / 1_000_000);
                if millis < 1 { Err(no()) } else { Ok(Argument::Millis(millis)) }
            }
            _ => Err(no()),
        },
        "key" => {
            let values = match expr {
                Expr::Tuple(values) => values.as_slice(),
                Expr::Nested(one) => std::slice::from_ref(one.as_ref()),
                one => std::slice::from_ref(one),
            };
            Ok(Argument::Values(values.iter().map(|value| evaluate(state, value)).collect::<Result<_>>()?))
        }
        _ => {
            if let Some(text) = text(expr) {
                return Ok(Argument::Text(text.to_string()));
            }
            match expr {
                Expr::Identifier(name) => Ok(Argument::Text(name.value.clone())),
                Expr::CompoundIdentifier(parts) => {
                    Ok(Argument::Text(parts.iter().map(|p| p.value.as_str()).collect::<Vec<_>>().join(".")))
                }
                other => match evaluate(state, other)?.try_as_str().flatten() {
                    Some(text) => Ok(Argument::Text(text.to_string())),
                    None => Err(no()),
                },
            }
        }
    }
}

/// A part of a statement: a text, or a number as it is written.
fn part(name: &'static str, expr: &Expr, state: &SessionState) -> Result<Argument> {
    let is_flag = name == "allow_empty";
    if let Some(text) = text(expr).filter(|_| !is_flag) {
        return Ok(Argument::Text(text.to_string()));
    }
    match evaluate(state, expr)? {
        ScalarValue::Boolean(Some(value)) if is_flag => Ok(Argument::Bool(value)),
        ScalarValue::Utf8(Some(text)) if !is_flag => Ok(Argument::Text(text)),
        number if !is_flag && number.data_type().is_numeric() && !number.is_null() => {
            Ok(Argument::Text(number.to_string()))
        }
        _ => Err(Error::invalid(format!("{expr} is no value of parameter {name}")).with_code("BadArgument")),
    }
}

/// The alias that lets `paimon_diff.op` be written.
pub(crate) fn alias(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

/// The relation a call stands for.
pub(crate) async fn provider(
    statement: &Arc<Statement>,
    database: &str,
    call: &Call,
) -> Result<Arc<dyn TableProvider>> {
    match call.function {
        Function::Cache => return Ok(cache::provider(statement)),
        Function::Compare => return compare::provider(statement, call).await,
        _ => {}
    }
    let name = call.text("table").unwrap_or_default();
    let (table, said) = table_of(statement, database, name).await?;
    match call.function {
        Function::Cache | Function::Compare => Err(call.wrong("it has no table")),
        Function::Changes | Function::Delta => {
            let from = call.version("from").ok_or_else(|| call.wrong("the start is missing"))?;
            if said != Selection::none() {
                return Err(call.wrong("the table's name carries a version"));
            }
            let range = changes::Asked { from, to: call.version("to"), at: call.version("at") };
            changes::between(statement, &table, range, call.function == Function::Delta).await
        }
        Function::Diff => {
            let from = call.version("from").ok_or_else(|| call.wrong("the start is missing"))?;
            let to = match (call.version("to"), call.version("at")) {
                (Some(_), Some(_)) => return Err(call.wrong("at and to say the same: the state compared with")),
                (Some(request), None) | (None, Some(request)) => request.clone(),
                (None, None) => PinRequest::Latest,
            };
            let states = diff::States { database, table: &table, from, to: &to, said };
            diff::provider(statement, states, call.compared(call.is_true("attribute"))).await
        }
        Function::CommitKeys => {
            let snapshot = call.number("snapshot").ok_or_else(|| call.wrong("the snapshot is missing"))?;
            if said != Selection::none() {
                return Err(call.wrong("the table's name carries a version"));
            }
            diff::of_commit(statement, &table, snapshot, call.compared(false)).await
        }
        Function::RowAccounting => {
            let at = match call.version("at") {
                Some(request) => Selection { request: request.clone(), ..Selection::none() },
                None => said,
            };
            let level = call.text("level").unwrap_or("partition");
            let mode = call.text("mode").unwrap_or("exact");
            row_accounting::provider(statement, &table, &at, level, mode).await
        }
        Function::Made(made) => {
            if said != Selection::none() {
                return Err(call.wrong("the table's name carries a version"));
            }
            made::provider(statement, &table, made, call).await
        }
    }
}

/// The table a text names: `t`, `db.t`, `catalog.db.t`, `db."a.b"`, each with `$branch_x` and `@v3`.
pub(crate) async fn table_of(
    statement: &Arc<Statement>,
    database: &str,
    name: &str,
) -> Result<(Arc<Table>, Selection)> {
    let own = |name: &str| -> Option<(String, String)> {
        match split_parts(name).as_slice() {
            [table] => Some((database.to_string(), table.clone())),
            [database, table] | [_, database, table] => Some((database.clone(), table.clone())),
            _ => None,
        }
    };
    let mut selection = Selection::none();
    let mut found = own(name);
    if let Some((base, suffix)) = split_selector(name) {
        // a table may really be called `a@b`
        let whole = match &found {
            Some((database, table)) => statement.is_really_called(database, table).await,
            None => false,
        };
        if !whole {
            selection = Selection::parse_suffix(suffix, statement.zone())?;
            found = own(base);
        }
    }
    let Some((database, table)) = found else {
        return Err(Error::invalid(format!("'{name}' is no table name"))
            .with_code("TableNotFound")
            .with_hint("write 'db.t'; a name with points in it stands in quotes: 'db.\"a.b\"'"));
    };
    let parts = TableName::parse(&table);
    if let Some(system) = &parts.system {
        return Err(Error::invalid(format!("'{name}' is a system table; name the table without ${system}"))
            .with_code("BadArgument"));
    }
    Ok((statement.table(&database, &parts.data_table()).await?, selection))
}
