//! Which files a condition contradicts, by their statistics, judged by DataFusion's pruning predicate.
//!
//! One predicate over one batch of bounds judges all files at once. Whatever cannot be judged keeps the file: unknown
//! bounds, forms the predicate does not know, an evaluation that fails.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column as ColumnExpr, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};

use super::condition::{CompareOp, Condition};
use super::stats::Bounds;
use crate::spec::arrow_types::{arrow_schema, datums_to_array};
use crate::spec::{DataType, Datum, TableSchema};

/// Longest IN list judged value by value; longer ones are judged by ranges of neighbouring values.
const LIST_PARTS: usize = 128;

/// A condition ready to be held against bounds.
pub(crate) struct Pruner {
    predicate: PruningPredicate,
    /// Columns whose bounds it wants.
    columns: BTreeSet<usize>,
    /// Partition expressions whose values it wants.
    partitions: BTreeSet<usize>,
}

impl Pruner {
    /// None when the condition contradicts no file whatever its bounds.
    pub(crate) fn try_new(condition: &Condition, schema: &TableSchema) -> Option<Self> {
        let mut columns = BTreeSet::new();
        condition.columns(&mut columns);
        let mut partitions = BTreeSet::new();
        partition_numbers(condition, &mut partitions);
        let whole = arrow_schema(schema);
        let mut fields: Vec<Arc<Field>> =
            whole.fields().iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
        let first_virtual = fields.len();
        for number in &partitions {
            fields.push(Arc::new(Field::new(partition_column(*number), ArrowType::Boolean, true)));
        }
        let arrow: SchemaRef = Arc::new(Schema::new(fields));
        let expression = physical(condition, &arrow, first_virtual, &partitions)?;
        let predicate = PruningPredicateBuilder::new().with_file_schema(arrow).try_build(expression).ok()?;
        if predicate.always_true() {
            return None;
        }
        Some(Self { predicate, columns, partitions })
    }

    /// Columns whose bounds are wanted.
    pub(crate) fn columns(&self) -> &BTreeSet<usize> {
        &self.columns
    }

    /// Partition expressions whose values are wanted.
    pub(crate) fn partitions(&self) -> &BTreeSet<usize> {
        &self.partitions
    }

    /// For each file whether it may hold a row that meets the condition.
    pub(crate) fn may_match(&self, bounds: &BoundsTable) -> Vec<bool> {
        match self.predicate.prune(bounds) {
            Ok(keep) if keep.len() == bounds.len => keep,
            Ok(_) => vec![true; bounds.len],
            Err(error) => {
                log::debug!("statistics do not prune: {error}");
                vec![true; bounds.len]
            }
        }
    }
}

/// Bounds of some columns in some files.
pub(crate) struct BoundsTable {
    len: usize,
    columns: HashMap<String, (Option<ArrayRef>, Option<ArrayRef>, ArrayRef)>,
    rows: ArrayRef,
}

impl BoundsTable {
    /// For files of so many rows each.
    pub(crate) fn new(rows: Vec<Option<u64>>) -> Self {
        Self { len: rows.len(), columns: HashMap::new(), rows: Arc::new(UInt64Array::from(rows)) }
    }

    /// Adds the bounds of a column, one for each file.
    pub(crate) fn add(&mut self, name: &str, data_type: &DataType, bounds: Vec<Bounds>) {
        if bounds.len() != self.len {
            return;
        }
        let nulls: ArrayRef = Arc::new(UInt64Array::from_iter(bounds.iter().map(|bounds| bounds.nulls)));
        let (min, max): (Vec<Datum>, Vec<Datum>) = bounds.into_iter().map(|bounds| (bounds.min, bounds.max)).unzip();
        let arrays = (datums_to_array(&min, data_type).ok(), datums_to_array(&max, data_type).ok(), nulls);
        self.columns.insert(name.to_string(), arrays);
    }

    /// Adds the value of a partition expression for each file; None when it could not be evaluated.
    pub(crate) fn add_partition_value(&mut self, number: usize, values: Vec<Option<bool>>) {
        if values.len() != self.len {
            return;
        }
        let nulls = UInt64Array::from_iter(values.iter().map(|value| value.map(|_| 0)));
        let values: ArrayRef = Arc::new(BooleanArray::from(values));
        self.columns.insert(partition_column(number), (Some(Arc::clone(&values)), Some(values), Arc::new(nulls)));
    }
}

impl PruningStatistics for BoundsTable {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(&column.name)?.0.clone()
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(&column.name)?.1.clone()
    }

    fn num_containers(&self) -> usize {
        self.len
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::clone(&self.columns.get(&column.name)?.2))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::clone(&self.rows))
    }

    #[allow(clippy::mutable_key_type)] // the trait's own signature
    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

fn partition_column(number: usize) -> String {
    // no column of a table can have this name
    format!("\u{0}partition expression {number}")
}

fn partition_numbers(condition: &Condition, into: &mut BTreeSet<usize>) {
    match condition {
        Condition::Partition(number) => {
            into.insert(*number);
        }
        Condition::And(parts) | Condition::Or(parts) => parts.iter().for_each(|part| partition_numbers(part, into)),
        _ => {}
    }
}

fn boolean(value: bool) -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(ScalarValue::Boolean(Some(value))))
}

/// A balanced tree, so that long lists do not nest deep.
fn join(mut parts: Vec<Arc<dyn PhysicalExpr>>, operator: Operator) -> Option<Arc<dyn PhysicalExpr>> {
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut pairs = parts.into_iter();
        while let Some(left) = pairs.next() {
            next.push(match pairs.next() {
                Some(right) => Arc::new(BinaryExpr::new(left, operator, right)) as Arc<dyn PhysicalExpr>,
                None => left,
            });
        }
        parts = next;
    }
    parts.pop()
}

fn physical(
    condition: &Condition,
    schema: &SchemaRef,
    first_virtual: usize,
    partitions: &BTreeSet<usize>,
) -> Option<Arc<dyn PhysicalExpr>> {
    let column = |index: usize| -> Option<Arc<dyn PhysicalExpr>> {
        let field = schema.fields().get(index)?;
        Some(Arc::new(ColumnExpr::new(field.name(), index)))
    };
    let operand = |index: usize, cast: &Option<ArrowType>| -> Option<Arc<dyn PhysicalExpr>> {
        let column = column(index)?;
        Some(match cast {
            Some(target) => Arc::new(CastExpr::new(column, target.clone(), None)),
            None => column,
        })
    };
    let all = |parts: &[Condition]| -> Option<Vec<Arc<dyn PhysicalExpr>>> {
        parts.iter().map(|part| physical(part, schema, first_virtual, partitions)).collect()
    };
    let compare = |side: &Arc<dyn PhysicalExpr>, op: CompareOp, literal: &ScalarValue| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(Arc::clone(side), op.operator(), Arc::new(Literal::new(literal.clone()))))
    };
    match condition {
        Condition::Unknown => Some(boolean(true)),
        Condition::Never => Some(boolean(false)),
        Condition::And(parts) => join(all(parts)?, Operator::And),
        Condition::Or(parts) => join(all(parts)?, Operator::Or),
        Condition::Compare { column, cast, op, literal } => Some(compare(&operand(*column, cast)?, *op, literal)),
        Condition::OneOf { column, cast, literals, negated } => {
            let side = operand(*column, cast)?;
            if *negated {
                if literals.len() > LIST_PARTS {
                    return Some(boolean(true));
                }
                let parts = literals.iter().map(|literal| compare(&side, CompareOp::NotEq, literal)).collect();
                return join(parts, Operator::And);
            }
            if literals.len() <= LIST_PARTS {
                let parts = literals.iter().map(|literal| compare(&side, CompareOp::Eq, literal)).collect();
                return join(parts, Operator::Or);
            }
            let mut sorted: Vec<&ScalarValue> = literals.iter().collect();
            let mut comparable = true;
            sorted.sort_by(|one, other| {
                one.partial_cmp(other).unwrap_or_else(|| {
                    comparable = false;
                    std::cmp::Ordering::Equal
                })
            });
            if !comparable {
                return Some(boolean(true));
            }
            let parts = sorted
                .chunks(sorted.len().div_ceil(LIST_PARTS))
                .filter_map(|chunk| {
                    let low = compare(&side, CompareOp::GtEq, chunk.first()?);
                    let high = compare(&side, CompareOp::LtEq, chunk.last()?);
                    join(vec![low, high], Operator::And)
                })
                .collect();
            join(parts, Operator::Or)
        }
        Condition::Null { column: index, negated } => {
            let column = column(*index)?;
            Some(if *negated { Arc::new(IsNotNullExpr::new(column)) } else { Arc::new(IsNullExpr::new(column)) })
        }
        Condition::Partition(number) => column(first_virtual + partitions.iter().position(|known| known == number)?),
    }
}

#[cfg(test)]
pub(super) mod tests;
