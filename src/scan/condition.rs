//! Filters in the few forms that metadata can judge.
//!
//! A [`Condition`] is implied by the filter it was made from: where it is not true, the filter is not true either
//! (false or NULL). What cannot be said in these forms becomes [`Condition::Unknown`], which nothing contradicts. The
//! literals have exactly the type they are compared in, so nothing is converted later by chance.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, SchemaRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, Volatility};

use super::literal::{datum_to_scalar, scalar_to_datum};
use crate::error::Result;
use crate::spec::arrow_types::arrow_schema;
use crate::spec::{DataType, TableSchema};

/// A comparison of a column with a literal, column on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl CompareOp {
    fn from_operator(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Eq => Self::Eq,
            Operator::NotEq => Self::NotEq,
            Operator::Lt => Self::Lt,
            Operator::LtEq => Self::LtEq,
            Operator::Gt => Self::Gt,
            Operator::GtEq => Self::GtEq,
            _ => return None,
        })
    }

    /// The comparison as an operator of DataFusion.
    pub(crate) fn operator(self) -> Operator {
        match self {
            Self::Eq => Operator::Eq,
            Self::NotEq => Operator::NotEq,
            Self::Lt => Operator::Lt,
            Self::LtEq => Operator::LtEq,
            Self::Gt => Operator::Gt,
            Self::GtEq => Operator::GtEq,
        }
    }

    /// The comparison that is true where this one is false, NULL staying NULL.
    fn negate(self) -> Self {
        match self {
            Self::Eq => Self::NotEq,
            Self::NotEq => Self::Eq,
            Self::Lt => Self::GtEq,
            Self::LtEq => Self::Gt,
            Self::Gt => Self::LtEq,
            Self::GtEq => Self::Lt,
        }
    }

    /// The comparison with its sides exchanged.
    fn swap(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            other => other,
        }
    }
}

/// A filter, or what of it can be judged without its rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// May be true of any row.
    Unknown,
    /// True of no row.
    Never,
    /// All hold.
    And(Vec<Condition>),
    /// At least one holds.
    Or(Vec<Condition>),
    /// A column, brought to another type or as it is, against a literal of that type.
    Compare {
        /// Position in the table's schema.
        column: usize,
        /// Type the column is brought to.
        cast: Option<ArrowType>,
        /// Comparison.
        op: CompareOp,
        /// Never NULL.
        literal: ScalarValue,
    },
    /// A column among, or not among, some literals.
    OneOf {
        /// Position in the table's schema.
        column: usize,
        /// Type the column is brought to.
        cast: Option<ArrowType>,
        /// No NULL among them.
        literals: Vec<ScalarValue>,
        /// NOT IN.
        negated: bool,
    },
    /// `IS NULL`, or negated `IS NOT NULL`.
    Null {
        /// Position in the table's schema.
        column: usize,
        /// IS NOT NULL.
        negated: bool,
    },
    /// An expression over partition columns only, by its number in [`Conditions::partition_exprs`].
    Partition(usize),
}

impl Condition {
    /// All hold; what is known is kept.
    fn and(parts: Vec<Self>) -> Self {
        if parts.contains(&Self::Never) {
            return Self::Never;
        }
        let mut known: Vec<Self> = Vec::new();
        for part in parts {
            match part {
                Self::Unknown => {}
                Self::And(inner) => known.extend(inner),
                other => known.push(other),
            }
        }
        match known.len() {
            0 => Self::Unknown,
            1 => known.remove(0),
            _ => Self::And(known),
        }
    }

    /// One holds; an unknown branch makes all unknown.
    fn or(parts: Vec<Self>) -> Self {
        if parts.contains(&Self::Unknown) {
            return Self::Unknown;
        }
        let mut possible: Vec<Self> = Vec::new();
        for part in parts {
            match part {
                Self::Never => {}
                Self::Or(inner) => possible.extend(inner),
                other => possible.push(other),
            }
        }
        match possible.len() {
            0 => Self::Never,
            1 => possible.remove(0),
            _ => Self::Or(possible),
        }
    }

    /// The columns it speaks of, partition expressions not counted.
    pub(crate) fn columns(&self, into: &mut BTreeSet<usize>) {
        match self {
            Self::Unknown | Self::Never | Self::Partition(_) => {}
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.columns(into)),
            Self::Compare { column, .. } | Self::OneOf { column, .. } | Self::Null { column, .. } => {
                into.insert(*column);
            }
        }
    }
}

/// Makes conditions over one table schema and collects the partition expressions in them.
pub(crate) struct Conditions<'a> {
    schema: &'a TableSchema,
    arrow: SchemaRef,
    partition_columns: BTreeSet<usize>,
    /// Expressions over partition columns only, without qualifiers.
    pub(crate) partition_exprs: Vec<Expr>,
}

impl<'a> Conditions<'a> {
    /// For the columns of `schema`.
    pub(crate) fn try_new(schema: &'a TableSchema) -> Result<Self> {
        Ok(Self {
            schema,
            arrow: arrow_schema(schema),
            partition_columns: schema.partition_indices()?.into_iter().collect(),
            partition_exprs: Vec::new(),
        })
    }

    /// The same, but with partition columns judged by their bounds like any other column.
    pub(crate) fn by_range(schema: &'a TableSchema) -> Self {
        Self { schema, arrow: arrow_schema(schema), partition_columns: BTreeSet::new(), partition_exprs: Vec::new() }
    }

    /// The condition of a filter.
    pub(crate) fn of(&mut self, expr: &Expr) -> Condition {
        self.build(expr, false, 0)
    }

    /// Whether the value of `expr` follows from the partition of a row alone, the same at any time.
    pub(crate) fn is_partition_only(&self, expr: &Expr) -> bool {
        is_deterministic(expr)
            && match column_indices(expr, self.schema) {
                Some(columns) => columns.is_subset(&self.partition_columns),
                None => false,
            }
    }

    fn build(&mut self, expr: &Expr, negated: bool, depth: usize) -> Condition {
        // filters written by machines can be deep; what lies too deep is simply not judged
        if depth > 200 {
            return Condition::Unknown;
        }
        let branch = |expr: &Expr| {
            matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) | Expr::Not(_))
        };
        if self.is_partition_only(expr) && !branch(expr) {
            let plain = without_qualifiers(expr);
            let plain = if negated { Expr::Not(Box::new(plain)) } else { plain };
            let number = match self.partition_exprs.iter().position(|known| *known == plain) {
                Some(number) => number,
                None => {
                    self.partition_exprs.push(plain);
                    self.partition_exprs.len() - 1
                }
            };
            return Condition::Partition(number);
        }
        match expr {
            Expr::Alias(alias) => self.build(&alias.expr, negated, depth + 1),
            Expr::Not(inner) => self.build(inner, !negated, depth + 1),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (op, negated) {
                (Operator::And, false) | (Operator::Or, true) => {
                    Condition::and(vec![self.build(left, negated, depth + 1), self.build(right, negated, depth + 1)])
                }
                (Operator::Or, false) | (Operator::And, true) => {
                    Condition::or(vec![self.build(left, negated, depth + 1), self.build(right, negated, depth + 1)])
                }
                (Operator::IsNotDistinctFrom, _) => self.distinct(left, right, negated),
                (Operator::IsDistinctFrom, _) => self.distinct(left, right, !negated),
                _ => match CompareOp::from_operator(*op) {
                    Some(op) => self.compare(left, op, right, negated),
                    None => Condition::Unknown,
                },
            },
            Expr::Between(Between { expr, negated: not, low, high }) => {
                let negated = negated != *not;
                let above = self.compare(expr, CompareOp::GtEq, low, negated);
                let below = self.compare(expr, CompareOp::LtEq, high, negated);
                let both = vec![above, below];
                if negated { Condition::or(both) } else { Condition::and(both) }
            }
            Expr::InList(InList { expr, list, negated: not }) => self.in_list(expr, list, negated != *not),
            Expr::IsNull(inner) => self.null_test(inner, negated),
            Expr::IsNotNull(inner) => self.null_test(inner, !negated),
            // IS TRUE is the plain filter; its negation would also be true of NULL
            Expr::IsTrue(inner) if !negated => self.build(inner, false, depth + 1),
            Expr::IsFalse(inner) if !negated => self.build(inner, true, depth + 1),
            Expr::Column(column) => match self.column(column) {
                Some((index, DataType::Boolean)) => Condition::Compare {
                    column: index,
                    cast: None,
                    op: CompareOp::Eq,
                    literal: ScalarValue::Boolean(Some(!negated)),
                },
                _ => Condition::Unknown,
            },
            Expr::Like(like) => self.like(like, negated),
            Expr::ScalarFunction(function) if !negated && function.name() == "starts_with" => {
                match function.args.as_slice() {
                    [text, Expr::Literal(prefix, _)] => match prefix.try_as_str().flatten() {
                        Some(prefix) => self.starts_with(text, prefix),
                        None => Condition::Unknown,
                    },
                    _ => Condition::Unknown,
                }
            }
            _ => Condition::Unknown,
        }
    }

    fn column(&self, column: &Column) -> Option<(usize, &'a DataType)> {
        let index = self.schema.field_index(&column.name)?;
        Some((index, self.schema.fields.get(index)?.data_type()))
    }

    /// A column, or a column brought to another type in an order-keeping way.
    fn operand(&self, expr: &Expr) -> Option<Operand<'a>> {
        match expr {
            Expr::Alias(alias) => self.operand(&alias.expr),
            Expr::Column(column) => {
                let (index, data_type) = self.column(column)?;
                if !data_type.is_ordered() {
                    return None;
                }
                let arrow = self.arrow.fields().get(index)?.data_type().clone();
                Some(Operand { column: index, data_type, cast: None, compared_as: arrow })
            }
            Expr::Cast(Cast { expr, field }) => {
                let inner = self.operand(expr)?;
                let target = field.data_type();
                if inner.cast.is_some() {
                    return None;
                }
                if inner.compared_as == *target {
                    return Some(inner);
                }
                cast_order(&inner.compared_as, target)?;
                Some(Operand { cast: Some(target.clone()), compared_as: target.clone(), ..inner })
            }
            _ => None,
        }
    }

    /// The literal in exactly the operand's type; None when it cannot be had without loss.
    fn literal(&self, operand: &Operand<'_>, literal: &ScalarValue) -> Option<ScalarValue> {
        if literal.data_type() == operand.compared_as {
            return Some(literal.clone());
        }
        if operand.cast.is_some() {
            return None;
        }
        let datum = scalar_to_datum(literal, operand.data_type).ok()??;
        // columns of sums are compared in a wider type than the declared one
        datum_to_scalar(&datum, operand.data_type).ok()?.cast_to(&operand.compared_as).ok()
    }

    fn compare(&self, left: &Expr, op: CompareOp, right: &Expr, negated: bool) -> Condition {
        let (side, op, literal) = match (left, right) {
            (side, Expr::Literal(literal, _)) => (side, op, literal),
            (Expr::Literal(literal, _), side) => (side, op.swap(), literal),
            _ => return Condition::Unknown,
        };
        let op = if negated { op.negate() } else { op };
        let Some(operand) = self.operand(side) else { return Condition::Unknown };
        if literal.is_null() {
            return Condition::Never;
        }
        let Some(literal) = self.literal(&operand, literal) else { return Condition::Unknown };
        if operand.may_be_nan()
            && (is_nan(&literal) || matches!(op, CompareOp::NotEq | CompareOp::Gt | CompareOp::GtEq))
        {
            // NaN is greater than all numbers and stands in no bound
            return Condition::Unknown;
        }
        Condition::Compare { column: operand.column, cast: operand.cast, op, literal }
    }

    fn in_list(&self, expr: &Expr, list: &[Expr], negated: bool) -> Condition {
        let Some(operand) = self.operand(expr) else { return Condition::Unknown };
        let mut literals = Vec::with_capacity(list.len());
        for item in list {
            let Expr::Literal(literal, _) = item else { return Condition::Unknown };
            if literal.is_null() {
                if negated {
                    return Condition::Never;
                }
                continue;
            }
            let Some(literal) = self.literal(&operand, literal) else { return Condition::Unknown };
            if operand.may_be_nan() && (negated || is_nan(&literal)) {
                return Condition::Unknown;
            }
            literals.push(literal);
        }
        if literals.is_empty() {
            return if negated { Condition::Unknown } else { Condition::Never };
        }
        Condition::OneOf { column: operand.column, cast: operand.cast, literals, negated }
    }

    /// `IS DISTINCT FROM`, which is never NULL; negated `IS NOT DISTINCT FROM`.
    fn distinct(&self, left: &Expr, right: &Expr, distinct: bool) -> Condition {
        match (left, right) {
            (Expr::Literal(literal, _), side) | (side, Expr::Literal(literal, _)) if literal.is_null() => {
                self.null_test(side, distinct)
            }
            _ if !distinct => self.compare(left, CompareOp::Eq, right, false),
            (Expr::Literal(..), side) | (side, Expr::Literal(..)) => {
                Condition::or(vec![self.compare(left, CompareOp::NotEq, right, false), self.null_test(side, false)])
            }
            _ => Condition::Unknown,
        }
    }

    fn null_test(&self, expr: &Expr, negated: bool) -> Condition {
        match expr {
            Expr::Alias(alias) => self.null_test(&alias.expr, negated),
            Expr::Column(column) => match self.column(column) {
                Some((index, _)) => Condition::Null { column: index, negated },
                None => Condition::Unknown,
            },
            _ => Condition::Unknown,
        }
    }

    fn like(&self, like: &Like, negated: bool) -> Condition {
        if negated != like.negated || like.case_insensitive || like.escape_char.is_some() {
            return Condition::Unknown;
        }
        let Expr::Literal(pattern, _) = like.pattern.as_ref() else { return Condition::Unknown };
        let Some(pattern) = pattern.try_as_str().flatten() else { return Condition::Unknown };
        if pattern.contains('\\') {
            return Condition::Unknown;
        }
        match pattern.find(['%', '_']) {
            Some(wildcard) => self.starts_with(&like.expr, &pattern[..wildcard]),
            None => {
                let literal = Expr::Literal(ScalarValue::Utf8(Some(pattern.to_string())), None);
                self.compare(&like.expr, CompareOp::Eq, &literal, false)
            }
        }
    }

    /// Texts that start with a prefix lie between it and the next text of its length.
    fn starts_with(&self, text: &Expr, prefix: &str) -> Condition {
        if prefix.is_empty() {
            return Condition::Unknown;
        }
        let Some(operand) = self.operand(text) else { return Condition::Unknown };
        if !matches!(operand.data_type, DataType::Char(_) | DataType::Varchar(_)) {
            return Condition::Unknown;
        }
        let bound = |op, text: String| {
            let literal = ScalarValue::Utf8(Some(text)).cast_to(&operand.compared_as).ok()?;
            Some(Condition::Compare { column: operand.column, cast: operand.cast.clone(), op, literal })
        };
        let low = bound(CompareOp::GtEq, prefix.to_string());
        let high = next_text(prefix).and_then(|next| bound(CompareOp::Lt, next));
        Condition::and([low, high].into_iter().flatten().collect())
    }
}

/// A column as one side of a comparison.
struct Operand<'a> {
    column: usize,
    data_type: &'a DataType,
    cast: Option<ArrowType>,
    compared_as: ArrowType,
}

impl Operand<'_> {
    fn may_be_nan(&self) -> bool {
        matches!(self.data_type, DataType::Float | DataType::Double)
    }
}

fn is_nan(literal: &ScalarValue) -> bool {
    match literal {
        ScalarValue::Float16(Some(value)) => value.is_nan(),
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        _ => false,
    }
}

/// The smallest text greater than all texts that start with `prefix`; None when there is none.
fn next_text(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        let next = match u32::from(last) + 1 {
            // the surrogate range holds no characters
            0xD800 => 0xE000,
            code => code,
        };
        if let Some(next) = char::from_u32(next) {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

/// What a cast does to the order of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastOrder {
    /// Greater stays greater.
    Strict,
    /// Greater never becomes less, but different values can become equal.
    Monotone,
}

/// What casting `from` to `to` does to the order; None when it may break it or fail.
pub(crate) fn cast_order(from: &ArrowType, to: &ArrowType) -> Option<CastOrder> {
    use ArrowType as A;
    let bits = |t: &ArrowType| match t {
        A::Int8 => Some(8u8),
        A::Int16 => Some(16),
        A::Int32 => Some(32),
        A::Int64 => Some(64),
        _ => None,
    };
    let digits = |t: &ArrowType| match t {
        A::Int8 => Some(3i16),
        A::Int16 => Some(5),
        A::Int32 => Some(10),
        A::Int64 => Some(19),
        _ => None,
    };
    if let (Some(from), Some(to)) = (bits(from), bits(to)) {
        return (from <= to).then_some(CastOrder::Strict);
    }
    match (from, to) {
        (from, A::Decimal128(p, s) | A::Decimal256(p, s)) if digits(from).is_some() => {
            (i16::from(*p) - i16::from(*s) >= digits(from)? && *s >= 0).then_some(CastOrder::Strict)
        }
        (from, A::Float32 | A::Float64) if bits(from).is_some() => Some(CastOrder::Monotone),
        (A::Float32, A::Float64) => Some(CastOrder::Strict),
        (A::Decimal128(p, s), A::Decimal128(q, r) | A::Decimal256(q, r)) => {
            let whole = i16::from(*p) - i16::from(*s);
            (r >= s && i16::from(*q) - i16::from(*r) >= whole).then_some(CastOrder::Strict)
        }
        (A::Decimal128(..), A::Float64) => Some(CastOrder::Monotone),
        (A::Utf8, A::Utf8View | A::LargeUtf8) | (A::Binary, A::BinaryView | A::LargeBinary) => Some(CastOrder::Strict),
        (A::Date32, A::Timestamp(_, None) | A::Date64) => Some(CastOrder::Strict),
        (A::Timestamp(_, zone), A::Date32) if is_utc(zone.as_deref()) => Some(CastOrder::Monotone),
        (A::Time32(_), A::Time64(_)) => Some(CastOrder::Strict),
        (A::Timestamp(unit, zone), A::Timestamp(to_unit, to_zone)) => {
            // between wall clock and instant the order breaks where clocks are set back
            let same = match (zone, to_zone) {
                (Some(_), Some(_)) | (None, None) => true,
                (zone, to_zone) => is_utc(zone.as_deref()) && is_utc(to_zone.as_deref()),
            };
            let finer = unit_rank(*to_unit) >= unit_rank(*unit);
            same.then_some(if finer { CastOrder::Strict } else { CastOrder::Monotone })
        }
        _ => None,
    }
}

fn is_utc(zone: Option<&str>) -> bool {
    matches!(zone, None | Some("UTC" | "+00:00" | "Z" | "Etc/UTC"))
}

fn unit_rank(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

/// Whether an expression gives the same value for the same row, whenever and however often it is evaluated, from
/// columns and literals alone.
pub(crate) fn is_deterministic(expr: &Expr) -> bool {
    let unfit = expr.exists(|node| {
        Ok(match node {
            Expr::ScalarFunction(function) => function.func.signature().volatility != Volatility::Immutable,
            Expr::Alias(_)
            | Expr::Column(_)
            | Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => false,
            _ => true,
        })
    });
    matches!(unfit, Ok(false))
}

/// The columns of the table an expression reads; None when it reads one the table does not have.
pub(crate) fn column_indices(expr: &Expr, schema: &TableSchema) -> Option<BTreeSet<usize>> {
    expr.column_refs().into_iter().map(|column| schema.field_index(&column.name)).collect()
}

/// The expression with plain column names.
pub(crate) fn without_qualifiers(expr: &Expr) -> Expr {
    let plain = expr.clone().transform(|node| {
        Ok(match node {
            Expr::Column(column) if column.relation.is_some() => {
                Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
            }
            other => Transformed::no(other),
        })
    });
    match plain {
        Ok(plain) => plain.data,
        Err(_) => expr.clone(),
    }
}

/// The schema of the partition columns alone, in the order of the partition keys.
pub(crate) fn partition_schema(schema: &TableSchema) -> Result<SchemaRef> {
    let whole = arrow_schema(schema);
    let fields: Vec<_> = schema
        .partition_indices()?
        .into_iter()
        .filter_map(|index| whole.fields().get(index).map(Arc::clone))
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect();
    Ok(Arc::new(arrow::datatypes::Schema::new(fields)))
}
