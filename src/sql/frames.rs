//! `RANGE` frames with distances end where `x` plus the distance does. Where that is beyond the type of `x`, the engine
//! takes the end of the partition, rows of NULL included. In a wider type there is room for the sum: a number is counted in
//! one, and a time as the number of its units. Distances in months have no such number, and stay.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};

const DAY_NANOS: i128 = 86_400_000_000_000;

/// The key of frames with distances in a window node, in a type that holds all sums of it and a distance.
///
/// The functions of a node share their order, so all of them get the key of that type.
pub(super) struct Wider {
    key: Expr,
    wide: DataType,
    /// Nanoseconds in a unit of a time; None: the key is a number.
    unit: Option<i128>,
}

impl Wider {
    /// None: the key has room, or there is no wider type.
    pub(super) fn of(node: &LogicalPlan, schema: &DFSchema) -> Option<Self> {
        let LogicalPlan::Window(window) = node else { return None };
        let mut found: Option<Self> = None;
        let mut kept = false;
        for expr in &window.window_expr {
            let _ = expr.apply(|expr| {
                if let Expr::WindowFunction(function) = expr
                    && let Some(key) = ranged(function)
                {
                    match Self::of_function(key, function, schema) {
                        Some(wider) if found.as_ref().is_none_or(|known| known.wide == DataType::Int64) => {
                            found = Some(wider);
                        }
                        Some(_) => {}
                        None => kept = true,
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            });
        }
        found.filter(|_| !kept)
    }

    fn of_function(key: &Expr, function: &WindowFunction, schema: &DFSchema) -> Option<Self> {
        let found = key.get_type(schema).ok()?;
        let unit = unit_of(&found);
        if unit.is_none() && !found.is_integer() {
            return None;
        }
        // no day has so many units, nor has a date so many days
        let mut wide = !matches!(found, DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..));
        let WindowFrame { start_bound, end_bound, .. } = &function.params.window_frame;
        for bound in [start_bound, end_bound] {
            if let Some(far) = far_of(bound) {
                wide &= i32::try_from(distance(far, unit)?).is_ok() || unit.is_some();
            }
        }
        let wide = if wide { DataType::Int64 } else { DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0) };
        Some(Self { key: key.clone(), wide, unit })
    }

    /// A function of the node with its key in the wider type.
    pub(super) fn widened(&self, expr: Expr) -> Transformed<Expr> {
        let Expr::WindowFunction(mut function) = expr else { return Transformed::no(expr) };
        let is_ranged = ranged(&function).is_some_and(|key| *key == self.key);
        for sort in &mut function.params.order_by {
            if sort.expr == self.key {
                let key = std::mem::take(&mut sort.expr);
                // times are numbers of 32 or 64 bits first
                let key = if self.unit.is_some() { cast(key, DataType::Int64) } else { key };
                sort.expr = if self.unit.is_some() && self.wide == DataType::Int64 {
                    key
                } else {
                    cast(key, self.wide.clone())
                };
            }
        }
        if is_ranged && self.unit.is_some() {
            let WindowFrame { start_bound, end_bound, .. } = &function.params.window_frame;
            function.params.window_frame =
                WindowFrame::new_bounds(WindowFrameUnits::Range, self.counted(start_bound), self.counted(end_bound));
        }
        Transformed::yes(Expr::WindowFunction(function))
    }

    fn counted(&self, bound: &WindowFrameBound) -> WindowFrameBound {
        let number = |far: &ScalarValue| match distance(far, self.unit) {
            Some(number) if !far.is_null() => ScalarValue::from(number.to_string()),
            _ => far.clone(),
        };
        match bound {
            WindowFrameBound::Preceding(far) => WindowFrameBound::Preceding(number(far)),
            WindowFrameBound::Following(far) => WindowFrameBound::Following(number(far)),
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        }
    }
}

/// The one key of a RANGE frame with distances.
fn ranged(function: &WindowFunction) -> Option<&Expr> {
    let WindowFrame { units: WindowFrameUnits::Range, start_bound, end_bound, .. } = &function.params.window_frame
    else {
        return None;
    };
    let [Sort { expr, .. }] = function.params.order_by.as_slice() else { return None };
    (far_of(start_bound).is_some() || far_of(end_bound).is_some()).then_some(expr)
}

fn far_of(bound: &WindowFrameBound) -> Option<&ScalarValue> {
    match bound {
        WindowFrameBound::Preceding(far) | WindowFrameBound::Following(far) => Some(far).filter(|far| !far.is_null()),
        WindowFrameBound::CurrentRow => None,
    }
}

/// A distance as it is written, as a number or a number of units; what is neither is refused as ever.
fn distance(far: &ScalarValue, unit: Option<i128>) -> Option<i128> {
    let text = far.try_as_str().flatten()?;
    let Some(unit) = unit else { return text.trim().parse().ok() };
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let Ok(ScalarValue::IntervalMonthDayNano(Some(interval))) =
        ScalarValue::try_from_string(text.to_string(), &interval)
    else {
        return None;
    };
    let nanos = i128::from(interval.days) * DAY_NANOS + i128::from(interval.nanoseconds);
    (interval.months == 0 && nanos % unit == 0).then_some(nanos / unit)
}

/// Nanoseconds in a unit of times on a clock without a zone.
fn unit_of(data_type: &DataType) -> Option<i128> {
    match data_type {
        DataType::Timestamp(unit, None) | DataType::Time32(unit) | DataType::Time64(unit) => Some(match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        }),
        DataType::Date32 => Some(DAY_NANOS),
        _ => None,
    }
}
