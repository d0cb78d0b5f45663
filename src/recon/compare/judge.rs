//! What is said of rows that stand for each other.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, Int64Array, RecordBatch, Scalar,
    make_comparator,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::SortOptions;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Float32Type, Float64Type, TimeUnit, i256};
use datafusion::common::ScalarValue;

use super::convert::{Manner, Rounding, convert, shown};
use super::numbers::{at_scale, floor_at, number, parse_decimal, power, shown_with};
use super::pairs::{Column, CommonType, Pair, Pairs, Role, Tolerance, common_type};
use super::side::Form;
use crate::error::{Error, Result};

/// Compares rows in common form.
#[derive(Debug)]
pub struct Judge {
    /// The columns.
    pub pairs: Arc<Pairs>,
    left: Arc<Form>,
    right: Arc<Form>,
    horizon: Option<(usize, ArrayRef)>,
}

/// What two rows are to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// All values are equal.
    Equal,
    /// These pairs differ, within their tolerances.
    Tolerated(Vec<usize>),
    /// These pairs differ.
    Different(Vec<usize>),
    /// These pairs have values that could not be read.
    Unreadable(Vec<usize>),
}

impl Judge {
    /// A judge over rows of two forms; rows beyond `horizon` are late.
    ///
    /// # Errors
    /// A horizon that is no value of its column.
    pub fn new(
        left: &Arc<Form>,
        right: &Arc<Form>,
        pairs: &Arc<Pairs>,
        horizon: Option<&ScalarValue>,
        manner: &Manner,
    ) -> Result<Arc<Self>> {
        let horizon = match (pairs.horizon, horizon) {
            (Some(at), Some(value)) => {
                let pair = pairs.all.get(at).ok_or_else(|| Error::internal("the horizon has no column"))?;
                Some((at, limit(pair, value, manner)?))
            }
            _ => None,
        };
        Ok(Arc::new(Self { pairs: Arc::clone(pairs), left: Arc::clone(left), right: Arc::clone(right), horizon }))
    }

    /// Rows beyond the horizon.
    pub fn late(&self, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let Some((at, limit)) = &self.horizon else { return Ok(None) };
        let beyond = cmp::gt(batch.column(*at), &Scalar::new(Arc::clone(limit)))?;
        // where the time is NULL nothing says that the row is new
        Ok(Some(match beyond.nulls() {
            Some(nulls) => beyond.values() & nulls.inner(),
            None => beyond.values().clone(),
        }))
    }

    /// Compares rows of two batches, row by row; None: all are equal, as most are.
    pub fn compare(&self, left: &RecordBatch, right: &RecordBatch) -> Result<Option<Vec<Finding>>> {
        let rows = left.num_rows();
        let mut different: Vec<(usize, BooleanBuffer)> = Vec::new();
        let mut unread: Vec<(usize, BooleanBuffer)> = Vec::new();
        let forms = [(&self.left, left), (&self.right, right)];
        // where it is not known whether a row meets the condition, nothing is known of the two
        let mut unsure: Option<BooleanBuffer> = None;
        for (form, batch) in forms {
            let column = form.unsure.and_then(|at| batch.columns().get(at)).filter(|column| column.null_count() < rows);
            if let Some(column) = column {
                let bits = arrow::compute::is_not_null(column)?.values().clone();
                unsure = Some(match unsure {
                    Some(one) => &one | &bits,
                    None => bits,
                });
            }
        }
        for (at, pair) in self.pairs.all.iter().enumerate() {
            for (form, batch) in forms {
                if let Some(column) = form.unread.get(at).copied().flatten().and_then(|at| batch.columns().get(at))
                    && column.null_count() < rows
                {
                    let bits = arrow::compute::is_not_null(column)?.values().clone();
                    match (pair.role, &unsure) {
                        (Role::Context, None) => {}
                        (Role::Context, Some(unsure)) => unread.push((at, &bits & unsure)),
                        _ => unread.push((at, bits)),
                    }
                }
            }
            if pair.role == Role::Compared {
                let bits = distinct(left.column(at), right.column(at))?;
                if bits.count_set_bits() > 0 {
                    different.push((at, bits));
                }
            }
        }
        if different.is_empty() && unread.is_empty() && unsure.is_none() {
            return Ok(None);
        }
        let mut findings = Vec::with_capacity(rows);
        for row in 0..rows {
            let of = |columns: &[(usize, BooleanBuffer)]| -> Vec<usize> {
                let mut found: Vec<usize> =
                    columns.iter().filter(|(_, bits)| bits.value(row)).map(|(at, _)| *at).collect();
                found.dedup();
                found
            };
            let (unread, different) = (of(&unread), of(&different));
            let is_unsure = unsure.as_ref().is_some_and(|bits| bits.value(row));
            findings.push(if !unread.is_empty() || is_unsure {
                Finding::Unreadable(unread)
            } else if different.is_empty() {
                Finding::Equal
            } else if self.all_within(&different, left, right, row)? {
                Finding::Tolerated(different)
            } else {
                Finding::Different(different)
            });
        }
        Ok(Some(findings))
    }

    fn all_within(&self, different: &[usize], left: &RecordBatch, right: &RecordBatch, row: usize) -> Result<bool> {
        for at in different {
            if !self.is_within(*at, (left, row), (right, row))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether values of a pair are as near as its tolerance lets them be.
    pub fn is_within(&self, at: usize, left: (&RecordBatch, usize), right: (&RecordBatch, usize)) -> Result<bool> {
        let Some(pair) = self.pairs.all.get(at) else { return Ok(false) };
        let Some(tolerance) = &pair.tolerance else { return Ok(false) };
        let (left, right) = ((left.0.column(at), left.1), (right.0.column(at), right.1));
        if left.0.is_null(left.1) || right.0.is_null(right.1) {
            return Ok(false);
        }
        if let CommonType::Float | CommonType::Double = pair.common {
            let value = |(array, row): (&ArrayRef, usize)| match pair.common {
                CommonType::Float => f64::from(array.as_primitive::<Float32Type>().value(row)),
                _ => array.as_primitive::<Float64Type>().value(row),
            };
            let (one, other) = (value(left), value(right));
            let most = match tolerance {
                Tolerance::Absolute(text) => text.parse().unwrap_or(0.0),
                Tolerance::Relative(part) => part * one.abs().max(other.abs()),
            };
            // false where one is NaN
            return Ok((one - other).abs() <= most && (one - other).is_finite());
        }
        let scale = match pair.common {
            CommonType::Decimal(_, scale) => scale,
            _ => 0,
        };
        let (Some(one), Some(other)) = (number(left.0, left.1), number(right.0, right.1)) else { return Ok(false) };
        let Some(apart) = one.checked_sub(other).and_then(|apart| apart.checked_abs()) else { return Ok(false) };
        Ok(match tolerance {
            Tolerance::Absolute(text) => within(apart, scale, text),
            Tolerance::Relative(part) => {
                let float = |value: i256| value.to_string().parse::<f64>().unwrap_or(f64::NAN);
                let largest = float(one).abs().max(float(other).abs());
                float(apart) <= part * largest
            }
        })
    }

    /// Pairs of which two rows have different values, context with them.
    pub fn differing(&self, left: &RecordBatch, right: &RecordBatch) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        for (at, pair) in self.pairs.all.iter().enumerate() {
            if pair.role != Role::Key && distinct(left.column(at), right.column(at))?.count_set_bits() > 0 {
                found.push(at);
            }
        }
        Ok(found)
    }

    /// A value as text: as it was where it could not be read.
    pub fn text(&self, right: bool, batch: &RecordBatch, at: usize, row: usize) -> Result<Option<String>> {
        let form = if right { &self.right } else { &self.left };
        if let Some(unread) = form.unread.get(at).copied().flatten().and_then(|at| batch.columns().get(at))
            && !unread.is_null(row)
        {
            return Ok(Some(shown(unread, row)?));
        }
        let column = batch.column(form.shown_at(at));
        if column.is_null(row) {
            return Ok(None);
        }
        if let Some(pair) = self.pairs.all.get(at)
            && let CommonType::Decimal(_, scale) = pair.common
            && let Some(value) = number(column, row)
        {
            let (own, other) = if right { (&pair.right, &pair.left) } else { (&pair.left, &pair.right) };
            // as its column shows it: 5.00, not 5
            let least = if own.untyped { other.scale() } else { own.scale() };
            return Ok(Some(shown_with(value, scale, least)));
        }
        shown(column, row).map(Some)
    }
}

/// Whether a difference in units of a scale is at most a decimal.
fn within(apart: i256, scale: i8, most: &str) -> bool {
    let Some((value, own)) = parse_decimal(most) else { return false };
    match at_scale((value, own), scale) {
        Some(most) => apart <= most,
        None => {
            // the tolerance has more digits than the values, or is larger than any of them
            let digits = u32::try_from(own - i32::from(scale)).unwrap_or(0);
            match power(digits).and_then(|power| apart.checked_mul(power)) {
                Some(apart) if digits > 0 => apart <= value,
                _ => own < i32::from(scale),
            }
        }
    }
}

/// The horizon in the common type of its column: where it is finer than that, the last value before it, so that the
/// rows between the two are late.
fn limit(pair: &Pair, value: &ScalarValue, manner: &Manner) -> Result<ArrayRef> {
    if matches!(pair.common, CommonType::Nested(_) | CommonType::Boolean | CommonType::Binary) {
        return Err(Error::invalid(format!("column {} of type {} tells no time", pair.name(), pair.left.type_name()))
            .with_code("BadHorizon"));
    }
    let text = matches!(value, ScalarValue::Utf8(_) | ScalarValue::LargeUtf8(_) | ScalarValue::Utf8View(_));
    let own = Column { untyped: text, ..Column::new(pair.name(), value.data_type()) };
    let array = value.to_array()?;
    let told = shown(&array, 0)?;
    let wrong = || {
        Error::invalid(format!("{told} is no value of column {} of type {}", pair.name(), pair.left.type_name()))
            .with_code("BadHorizon")
            .with_hint("write a value of the type of the column: HORIZON pay_time <= TIMESTAMP '2026-04-16 10:00:00'")
    };
    if value.is_null() {
        return Err(wrong());
    }
    common_type(&pair.left, &own, false).map_err(|error| wrong().with_source(error))?;
    if let CommonType::Integer | CommonType::Decimal(..) = pair.common
        && !value.data_type().is_temporal()
        && *value != ScalarValue::Boolean(Some(true))
        && *value != ScalarValue::Boolean(Some(false))
    {
        let scale = if let CommonType::Decimal(_, scale) = pair.common { scale } else { 0 };
        let units = parse_decimal(told.trim()).and_then(|number| floor_at(number, scale)).ok_or_else(wrong)?;
        return units_of(&pair.common, units).ok_or_else(wrong);
    }
    let converted = match (&pair.common, value.data_type()) {
        // the day of a time is not later than it
        (CommonType::Date, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            let own = Column::new(pair.name(), DataType::Timestamp(TimeUnit::Nanosecond, None));
            let time = arrow::compute::cast(&array, &own.data_type).map_err(|error| wrong().with_source(error))?;
            convert(&time, &Pair { left: own, map: None, ..pair.clone() }, false, manner)
        }
        _ => {
            let manner = Manner { rounding: Rounding::Truncate, ..*manner };
            convert(&array, &Pair { left: own, map: None, ..pair.clone() }, false, &manner)
        }
    };
    let converted = converted.map_err(|error| wrong().with_source(error))?;
    if converted.values.null_count() > 0 || converted.values.len() != 1 {
        return Err(wrong());
    }
    Ok(converted.values)
}

/// One value of a type of exact numbers; None where it has too many digits.
pub(super) fn units_of(common: &CommonType, units: i256) -> Option<ArrayRef> {
    Some(match common {
        CommonType::Decimal(precision, scale) if *precision > 38 => {
            let array = Decimal256Array::from(vec![units]).with_precision_and_scale(*precision, *scale).ok()?;
            array.validate_decimal_precision(*precision).ok()?;
            Arc::new(array)
        }
        CommonType::Decimal(precision, scale) => {
            let array =
                Decimal128Array::from(vec![units.to_i128()?]).with_precision_and_scale(*precision, *scale).ok()?;
            array.validate_decimal_precision(*precision).ok()?;
            Arc::new(array)
        }
        _ => Arc::new(Int64Array::from(vec![units.to_i128().and_then(|units| i64::try_from(units).ok())?])),
    })
}

/// Rows in which values are not the same; NULL is NULL.
fn distinct(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanBuffer> {
    if left.data_type().is_nested() {
        let compare = make_comparator(left, right, SortOptions::default())?;
        let bits: BooleanArray = (0..left.len()).map(|row| Some(compare(row, row).is_ne())).collect();
        return Ok(bits.values().clone());
    }
    Ok(cmp::distinct(left, right)?.values().clone())
}
