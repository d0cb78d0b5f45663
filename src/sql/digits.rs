//! How many digits of a second the columns of a result declare.
//!
//! Arrow has times in seconds, milliseconds, microseconds and nanoseconds; a `TIMESTAMP(0)` of a table is read as
//! milliseconds, and its fraction is not the table's. So what is a column of a table, or one of its values, is shown with the
//! digits that the table declares. What is computed has those of its unit.

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{Alias, BinaryExpr, Case, ScalarFunction};
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, Operator};

use crate::query::LakeTable;
use crate::spec::DataType;

/// Looks at parts of a plan; a plan may have columns that are made of one column many times over.
const MOST_LOOKS: usize = 10_000;

/// The digits of each column of a plan's rows; None: not declared, or of no time.
pub(crate) fn of(plan: &LogicalPlan) -> Vec<Option<u8>> {
    let fields = plan.schema().fields().iter().enumerate();
    let mut looks = Looks(MOST_LOOKS);
    fields.map(|(at, field)| if is_time(field.data_type()) { looks.column(plan, at) } else { None }).collect()
}

fn is_time(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Timestamp(..) | ArrowType::Time32(_) | ArrowType::Time64(_))
}

struct Looks(usize);

impl Looks {
    fn column(&mut self, plan: &LogicalPlan, at: usize) -> Option<u8> {
        self.0 = self.0.checked_sub(1)?;
        match plan {
            LogicalPlan::Projection(of) => self.value(of.expr.get(at)?, &of.input),
            LogicalPlan::Filter(of) => self.column(&of.input, at),
            LogicalPlan::Sort(of) => self.column(&of.input, at),
            LogicalPlan::Limit(of) => self.column(&of.input, at),
            LogicalPlan::SubqueryAlias(of) => self.column(&of.input, at),
            LogicalPlan::Distinct(Distinct::All(input)) => self.column(input, at),
            LogicalPlan::Distinct(Distinct::On(of)) => self.value(of.select_expr.get(at)?, &of.input),
            LogicalPlan::Join(of) => match (of.join_type, of.left.schema().fields().len()) {
                (JoinType::RightSemi | JoinType::RightAnti, _) => self.column(&of.right, at),
                (_, left) if at < left => self.column(&of.left, at),
                (_, left) => self.column(&of.right, at - left),
            },
            LogicalPlan::Aggregate(of) => match of.group_expr.as_slice() {
                [Expr::GroupingSet(_)] => None,
                keys => self.value(keys.get(at).or_else(|| of.aggr_expr.get(at - keys.len()))?, &of.input),
            },
            LogicalPlan::Window(of) => match at.checked_sub(of.input.schema().fields().len()) {
                Some(own) => self.value(of.window_expr.get(own)?, &of.input),
                None => self.column(&of.input, at),
            },
            LogicalPlan::Union(of) => of.inputs.iter().map(|input| self.column(input, at)).reduce(most).flatten(),
            LogicalPlan::TableScan(scan) => {
                let name = scan.projected_schema.fields().get(at)?.name();
                let provider = source_as_provider(&scan.source).ok()?;
                let schema = &provider.downcast_ref::<LakeTable>()?.pin().schema;
                let column = schema.fields.iter().find(|field| field.name == *name)?;
                match &column.field_type.data_type {
                    DataType::Time(digits) | DataType::Timestamp(digits) | DataType::TimestampLtz(digits) => {
                        Some(*digits)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn value(&mut self, value: &Expr, input: &LogicalPlan) -> Option<u8> {
        self.0 = self.0.checked_sub(1)?;
        match value {
            Expr::Column(column) => self.column(input, input.schema().maybe_index_of_column(column)?),
            Expr::Alias(Alias { expr, .. }) => self.value(expr, input),
            Expr::AggregateFunction(function) if CHOOSING.contains(&function.func.name()) => {
                self.value(function.params.args.first()?, input)
            }
            Expr::WindowFunction(function) if CHOOSING.contains(&function.fun.name()) => {
                let args = &function.params.args;
                // the value in the place of rows that are not there
                let other =
                    args.get(2).filter(|other| matches!(function.fun.name(), "lag" | "lead") && !is_null(other));
                self.one_of(args.iter().take(1).chain(other), input)
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) if ONE_OF.contains(&func.name()) => {
                self.one_of(args.iter(), input)
            }
            Expr::Case(Case { when_then_expr, else_expr, .. }) => {
                let values = when_then_expr.iter().map(|(_, then)| then.as_ref());
                self.one_of(values.chain(else_expr.as_deref()), input)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) if is_whole(right) => {
                self.value(left, input)
            }
            _ => None,
        }
    }

    /// Of a value that is one of these, or NULL.
    fn one_of<'a>(&mut self, values: impl Iterator<Item = &'a Expr>, input: &LogicalPlan) -> Option<u8> {
        values.filter(|value| !is_null(value)).map(|value| self.value(value, input)).reduce(most).flatten()
    }
}

/// Functions of many rows that give a value of one of them.
const CHOOSING: [&str; 8] = ["any_value", "first_value", "lag", "last_value", "lead", "max", "min", "nth_value"];

/// Functions that give one of their arguments.
const ONE_OF: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

fn most(one: Option<u8>, other: Option<u8>) -> Option<u8> {
    Some(one?.max(other?))
}

fn is_null(value: &Expr) -> bool {
    matches!(value, Expr::Literal(value, _) if value.is_null())
}

/// Whether this is an interval without a fraction of a second.
fn is_whole(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => true,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds % 1_000 == 0,
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            interval.nanoseconds % 1_000_000_000 == 0
        }
        _ => false,
    }
}
