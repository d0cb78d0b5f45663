//! A comparison of two sides as a statement names them: from tables, queries, files and addresses to sides with pins.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Distinct, EmptyRelation, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Volatility,
};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Query, Statement as SqlStatement, TableFactor, visit_expressions, visit_expressions_mut,
};

use super::deep_stack::Levels;
use super::depth;
use super::doubles;
use super::horizon;
use super::last_writers;
use super::limits;
use super::place::missing_column;
use super::statement::Statement;
use super::statements::{Reconcile, RightSide, name_of, parts};
use super::types;
use super::writes;
use crate::error::{Error, Result};
use crate::query::{LakeTable, Work};
use crate::recon::compare::{
    Column, Comparison, Guard, Manner, Options, Report, Rounding, Side, SideRows, Sink, Tolerance, Wanted, file_side,
};
use crate::recon::source;
use crate::snapshot::SessionZone;
use crate::spec::Zone;

/// Plans a comparison; nothing is read of its rows before it is run.
pub(crate) async fn plan(
    statement: &Arc<Statement>,
    state: &SessionState,
    asked: &Reconcile,
    sink: Option<Sink>,
) -> Result<Comparison> {
    let sides = sides(statement, state, asked).await?;
    plan_of(sides, statement, state, asked, sink).await
}

/// The sides of a comparison, each at its pin, with the condition of both.
pub(crate) async fn sides(statement: &Arc<Statement>, state: &SessionState, asked: &Reconcile) -> Result<[Side; 2]> {
    let mut left = table_side(statement, &asked.left).await?;
    let mut right = match &asked.right {
        RightSide::Count => return Err(Error::internal("a count alone has no rows")),
        RightSide::Table(factor) => table_side(statement, factor).await?,
        RightSide::Query(query) => query_side(statement, query).await?,
        RightSide::File(path) => file_side(std::path::Path::new(path), state).await?,
        RightSide::Source { url, what } => {
            let what = Some(what.trim()).filter(|what| !what.is_empty());
            let source = source::open(url, what.unwrap_or_default()).await?;
            Side { what: what.map(str::to_string), ..Side::of_source(source) }
        }
    };
    if let Some(condition) = &asked.condition {
        columns_of(condition)?;
        // as times without a zone are compared, so they are read
        let zone = asked.zone.as_deref().map(SessionZone::parse).transpose()?;
        let zone = zone.filter(|zone| zone != statement.zone());
        for (side, which) in [(&mut left, "left"), (&mut right, "right")] {
            side.condition = Some(
                condition_of(state, side, condition, zone.as_ref())
                    .map_err(|error| error.with_context("side", which))?,
            );
        }
    }
    Ok([left, right])
}

/// Plans a comparison of these sides.
pub(crate) async fn plan_of(
    sides: [Side; 2],
    statement: &Arc<Statement>,
    state: &SessionState,
    asked: &Reconcile,
    sink: Option<Sink>,
) -> Result<Comparison> {
    let [left, right] = sides;
    let context = asked.condition.as_ref().map(columns_of).transpose()?.unwrap_or_default();
    let mut tolerances = std::collections::BTreeMap::new();
    for (column, text) in &asked.tolerances {
        tolerances.insert(column.clone(), Tolerance::parse(text)?);
    }
    let zone = match &asked.zone {
        Some(zone) => SessionZone::parse(zone)?,
        None => *statement.zone(),
    };
    let horizon = horizon::of(state, [&left, &right], asked, &zone)?;
    let wanted = Wanted {
        key: asked.key.clone(),
        columns: asked.columns.clone(),
        except: asked.except.clone(),
        maps: asked.maps.clone(),
        tolerances,
        context,
        horizon: asked.horizon.as_ref().map(|(column, _)| column.clone()),
        zone_stated: asked.zone.is_some(),
        folded: asked.folded.clone(),
    };
    let options = Options {
        wanted,
        horizon: horizon.value,
        horizon_told: horizon.told,
        manner: Manner { rounding: if asked.half_up { Rounding::HalfUp } else { Rounding::Truncate }, zone },
        sample: asked.sample_percent.as_deref().map(sample).transpose()?.flatten(),
        may_be_empty: asked.may_be_empty,
        examples: asked.examples,
        stop_after: asked.stop_after,
        progress: asked.progress.as_ref().map(Into::into),
        sink,
    };
    let comparison = Comparison::plan(left, right, options, state).await?;
    let [one, other] = comparison.works();
    let work = Work {
        files: one.files + other.files,
        file_bytes: one.file_bytes.saturating_add(other.file_bytes),
        ..Work::default()
    };
    limits::check(&work, state.config_options())?;
    Ok(comparison)
}

/// Compares, and tells which snapshots last wrote what differs.
///
/// # Errors
/// Those of the comparison.
pub(crate) async fn run(statement: &Arc<Statement>, comparison: Comparison) -> Result<Report> {
    let left = comparison.left().clone();
    let mut report = comparison.run().await?;
    last_writers::tell(statement, &left, &mut report).await;
    Ok(report)
}

/// The part of a million keys that some percents are; None: all.
fn sample(percent: &str) -> Result<Option<u32>> {
    let wrong = || {
        Error::invalid(format!("{percent} percent is no sample"))
            .with_code("BadArgument")
            .with_hint("more than 0 and at most 100: SAMPLE 1 PERCENT BY KEY HASH")
    };
    let number: f64 = percent.parse().map_err(|_| wrong())?;
    if !(number > 0.0 && number <= 100.0) {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a million")]
    let part = (number * 10_000.0).round().max(1.0) as u32;
    Ok((part < 1_000_000).then_some(part))
}

/// A side of pins, columns and a plan.
fn side(
    name: String,
    written: &impl std::fmt::Display,
    plan: LogicalPlan,
    inner: &Statement,
    declared: impl Fn(&str) -> Option<String>,
) -> Result<Side> {
    let schema = plan.schema().inner();
    let mut columns: Vec<Column> = Vec::new();
    for field in schema.fields() {
        if columns.iter().any(|known| known.name == *field.name()) {
            return Err(Error::invalid(format!("two columns are called '{}'", field.name()))
                .with_code("DuplicateName")
                .with_hint("give each column of the query a name of its own: id AS a"));
        }
        let column = Column::new(field.name(), field.data_type().clone());
        columns.push(Column { declared: declared(field.name()), ..column });
    }
    let pins: Vec<_> = inner.used().into_iter().map(|used| used.pin).collect();
    let zone = inner.zone();
    let position = match pins.as_slice() {
        [] => "of this session, without a snapshot".to_string(),
        pins => pins.iter().map(|pin| pin.describe(zone)).collect::<Vec<_>>().join("; "),
    };
    // as it is written, and with what its views say
    let what = Some(format!("{written}\n{}", plan.display_indent()));
    Ok(Side {
        name,
        position,
        columns,
        state_known: reads_pins_alone(&plan)?,
        what,
        rows: SideRows::Plan(plan),
        condition: None,
        guards: pins.into_iter().map(Guard::Pin).collect(),
    })
}

/// Aggregates that give the same whatever the order of the rows; sums and averages where they are exact.
const UNORDERED: &[&str] = &["count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];
const UNORDERED_IF_EXACT: &[&str] = &["sum", "avg"];

/// Whether a plan gives the same rows whenever it is run: it reads tables at their pins and nothing else of the session,
/// asks for no time and no chance, and nothing hangs on the order in which rows come.
fn reads_pins_alone(plan: &LogicalPlan) -> Result<bool> {
    let mut alone = true;
    plan.apply_with_subqueries(|node| {
        alone &= match node {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)?.is::<LakeTable>(),
            // rows without an order are others each time
            LogicalPlan::Limit(_) | LogicalPlan::Distinct(Distinct::On(_)) => false,
            // of rows that its order does not tell apart each may come first
            LogicalPlan::Window(_) => false,
            LogicalPlan::Extension(_) => false,
            _ => true,
        };
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                alone &= match part {
                    Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
                    Expr::AggregateFunction(call) => {
                        let (name, inputs) = (call.func.name(), node.inputs());
                        let of_type = || inputs.first().map(|input| part.get_type(input.schema())).transpose();
                        UNORDERED.contains(&name)
                            || UNORDERED_IF_EXACT.contains(&name) && of_type()?.is_some_and(|own| !own.is_floating())
                    }
                    _ => true,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(alone)
}

pub(crate) async fn table_side(statement: &Arc<Statement>, factor: &TableFactor) -> Result<Side> {
    // pins of its own, and the same ones where both sides name one state
    let inner = statement.nested();
    let state = inner.state();
    let provider = inner.relation(&state, factor.clone()).await?;
    let name = name_of(factor).map_or_else(|| factor.to_string(), |name| parts(name).join("."));
    let schema = provider.downcast_ref::<LakeTable>().map(|table| Arc::clone(&table.pin().schema));
    let scan = statement.scan_name("side");
    let plan = LogicalPlanBuilder::scan(scan, provider_as_source(provider), None)?.build()?;
    statement.take_in(&inner);
    side(name, factor, plan, &inner, |name| {
        let schema = schema.as_ref()?;
        let field = schema.fields.get(schema.field_index(name)?)?;
        Some(types::text(&field.field_type))
    })
}

pub(crate) async fn query_side(statement: &Arc<Statement>, query: &Query) -> Result<Side> {
    let inner = statement.nested();
    let state = inner.state();
    let parsed = DfStatement::Statement(Box::new(SqlStatement::Query(Box::new(query.clone()))));
    let plan = inner.plan(&state, parsed).await?;
    writes::check(&plan, statement.warehouse())?;
    depth::check(&plan, Levels::here().most)?;
    statement.take_in(&inner);
    side("query".to_string(), query, plan, &inner, |_| None)
}

/// The columns a condition names.
fn columns_of(condition: &SqlExpr) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut qualified = None;
    let _ = visit_expressions(condition, |part| {
        match part {
            SqlExpr::Identifier(name) => names.push(name.value.clone()),
            SqlExpr::CompoundIdentifier(parts) => {
                qualified = Some(SqlExpr::CompoundIdentifier(parts.clone()).to_string())
            }
            SqlExpr::Subquery(_) | SqlExpr::InSubquery { .. } | SqlExpr::Exists { .. } => {
                qualified = Some("a subquery".to_string())
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    match qualified {
        None => Ok(names),
        Some(what) => Err(Error::invalid(format!("{what} cannot stand in the condition of both sides"))
            .with_code("BadArgument")
            .with_hint("name columns without their table; what else decides goes into a query of the right side")),
    }
}

/// A condition in the columns of a side, whatever their case there; `zone`: where clocks without one are, if not where
/// those of the session are.
fn condition_of(state: &SessionState, side: &Side, condition: &SqlExpr, zone: Option<&SessionZone>) -> Result<Expr> {
    let mut condition = condition.clone();
    let _ = visit_expressions_mut(&mut condition, |part| {
        if let SqlExpr::Identifier(name) = part
            && name.quote_style.is_none()
            && let Some(column) = crate::recon::compare::find(&side.columns, &name.value)
        {
            name.value.clone_from(&column.name);
            name.quote_style = Some('"');
        }
        ControlFlow::<()>::Continue(())
    });
    let fields = side.columns.iter();
    let fields: Vec<_> = fields.map(|c| arrow::datatypes::Field::new(&c.name, c.data_type.clone(), true)).collect();
    let columns = DFSchema::try_from(Schema::new(fields))?;
    let planned = doubles::expression(state, &condition.to_string(), &columns)
        .map_err(|error| missing_column(error, side.columns.iter().map(|column| column.name.as_str())))?;
    match zone {
        Some(zone) => read_in(zone, state, planned, columns),
        None => Ok(planned),
    }
}

/// A condition as the clock of a zone reads it, whatever the session's zone is when it is planned with the rest: the
/// casts between instants and clocks, which the session's rules would add, are in it.
fn read_in(zone: &SessionZone, state: &SessionState, condition: Expr, columns: DFSchema) -> Result<Expr> {
    let mut there = state.clone();
    // under the name of our columns' zone it would be left to the session
    let name = if zone.zone() == Zone::UTC { "+00:00".to_string() } else { zone.name() };
    there.config_mut().options_mut().execution.time_zone = Some(name);
    let rows = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(columns) });
    let plan = LogicalPlanBuilder::from(rows).filter(condition)?.build()?;
    match there.analyzer().execute_and_check(plan, there.config_options(), |_, _| {})? {
        LogicalPlan::Filter(filter) => Ok(filter.predicate),
        other => Err(Error::internal(format!("a condition became {}", other.display()))),
    }
}
