//! The partitions a plan meets: each decoded once, filters over partition columns evaluated on their values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::condition::partition_schema;
use crate::error::{Error, Result};
use crate::spec::arrow_types::datums_to_array;
use crate::spec::binary_row::RowForm;
use crate::spec::{BinaryRow, DataType, Datum, TableSchema};

/// Number of a partition within one plan.
pub(crate) type PartitionId = usize;

/// Partitions by their bytes and, where writers encode one partition differently, by their values.
pub(crate) struct Partitions {
    types: Vec<DataType>,
    names: Vec<String>,
    schema: SchemaRef,
    /// By column: a partition with a time that its Arrow type does not hold.
    far: BTreeMap<usize, PartitionId>,
    /// Settings of the session, which functions may ask for.
    config: Option<Arc<ConfigOptions>>,
    by_bytes: HashMap<BinaryRow, PartitionId>,
    by_values: HashMap<BinaryRow, PartitionId>,
    values: Vec<Arc<[Datum]>>,
}

impl Partitions {
    /// For the partition columns of a table.
    pub(crate) fn try_new(schema: &TableSchema, config: Option<Arc<ConfigOptions>>) -> Result<Self> {
        let fields = schema.partition_indices()?.into_iter().filter_map(|index| schema.fields.get(index));
        let (types, names) = fields.map(|field| (field.data_type().clone(), field.name.clone())).unzip();
        Ok(Self {
            types,
            names,
            schema: partition_schema(schema)?,
            far: BTreeMap::new(),
            config,
            by_bytes: HashMap::new(),
            by_values: HashMap::new(),
            values: Vec::new(),
        })
    }

    /// The number of a partition as a manifest has it.
    pub(crate) fn intern(&mut self, row: &BinaryRow) -> Result<PartitionId> {
        if let Some(known) = self.by_bytes.get(row) {
            return Ok(*known);
        }
        let types: Vec<&DataType> = self.types.iter().collect();
        let arity = row.arity()?;
        let values: Vec<Datum> = if types.is_empty() && arity == 0 { Vec::new() } else { row.decode(&types)? };
        let pairs: Vec<(&Datum, &DataType)> = values.iter().zip(types).collect();
        let canonical = BinaryRow::encode(&pairs, RowForm::Projected)?;
        let id = match self.by_values.get(&canonical) {
            Some(known) => *known,
            None => {
                for (column, (value, data_type)) in values.iter().zip(&self.types).enumerate() {
                    if is_far(value, data_type) {
                        self.far.entry(column).or_insert(self.values.len());
                    }
                }
                self.values.push(values.into());
                self.by_values.insert(canonical, self.values.len() - 1);
                self.values.len() - 1
            }
        };
        self.by_bytes.insert(row.clone(), id);
        Ok(id)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The values of a partition.
    pub(crate) fn values(&self, id: PartitionId) -> Arc<[Datum]> {
        self.values.get(id).map_or_else(|| Arc::from(Vec::new()), Arc::clone)
    }

    /// Types of the partition columns.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    /// All partitions as one batch, a row each, columns in the order of the partition keys. A time that its Arrow type does
    /// not hold is the first or the last one that it does: see [`Self::compile`].
    pub(crate) fn batch(&self) -> Result<RecordBatch> {
        let columns = self
            .types
            .iter()
            .enumerate()
            .map(|(index, data_type)| {
                let value = |row: &Arc<[Datum]>| row.get(index).cloned().unwrap_or(Datum::Null);
                let mut column: Vec<Datum> = self.values.iter().map(value).collect();
                if self.far.contains_key(&index) {
                    column.iter_mut().for_each(|value| bring_near(value, data_type));
                }
                datums_to_array(&column, data_type)
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.values.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Compiles a filter over partition columns (names without qualifiers).
    ///
    /// # Errors
    /// A filter that asks more of a column than whether it is NULL, where a partition has a time in it that its Arrow type
    /// does not hold; it names the partition.
    pub(crate) fn compile(&self, expr: &Expr) -> Result<Arc<dyn PhysicalExpr>> {
        for (column, partition) in &self.far {
            if self.names.get(*column).is_some_and(|name| reads_value(expr, name)) {
                let (Some(value), Some(data_type)) =
                    (self.values(*partition).get(*column).cloned(), self.types.get(*column))
                else {
                    continue;
                };
                let error = datums_to_array(&[value], data_type).err();
                let error = error.unwrap_or_else(|| Error::internal("a time that is far and is not"));
                return Err(error.with_context("partition", partition_text(&self.names, &self.values(*partition))));
            }
        }
        let mut props = ExecutionProps::new();
        props.config_options = self.config.clone();
        let schema: DFSchemaRef = Arc::new(DFSchema::try_from(Arc::clone(&self.schema))?);
        let mut context = SimplifyContext::builder().with_schema(Arc::clone(&schema));
        if let Some(config) = &self.config {
            context = context.with_config_options(Arc::clone(config));
        }
        // some functions exist only to be rewritten (coalesce); what cannot be simplified is taken as it is
        let simplifier = ExprSimplifier::new(context.build());
        let simple = simplifier.coerce(expr.clone(), &schema).and_then(|expr| simplifier.simplify(expr));
        let expr = simple.as_ref().unwrap_or(expr);
        Ok(create_physical_expr(expr, &schema, &props, &PhysicalPlanningContext::default())?)
    }
}

/// `dt=a/h=1`, for messages; values in the words of the format.
pub fn partition_text(names: &[String], values: &[Datum]) -> String {
    let parts = names.iter().zip(values).map(|(name, value)| format!("{name}={value}"));
    parts.collect::<Vec<_>>().join("/")
}

/// Whether a time is beyond what its Arrow type holds.
fn is_far(value: &Datum, data_type: &DataType) -> bool {
    matches!(value, Datum::Timestamp(..)) && datums_to_array(std::slice::from_ref(value), data_type).is_err()
}

fn bring_near(value: &mut Datum, data_type: &DataType) {
    if let Datum::Timestamp(millis, _) = value
        && is_far(&Datum::Timestamp(*millis, 0), data_type)
    {
        *value = Datum::Timestamp(if *millis < 0 { NEAREST.0 } else { NEAREST.1 }, 0);
    }
}

/// Milliseconds that every unit holds.
const NEAREST: (i64, i64) = (i64::MIN / 1_000_000 + 1, i64::MAX / 1_000_000 - 1);

/// Whether an expression asks more of a column than whether it is NULL.
fn reads_value(expr: &Expr, name: &str) -> bool {
    let is_it = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == name);
    let mut reads = false;
    let walked = expr.apply(|part| {
        Ok(match part {
            Expr::IsNull(inner) | Expr::IsNotNull(inner) if is_it(inner) => TreeNodeRecursion::Jump,
            part if is_it(part) => {
                reads = true;
                TreeNodeRecursion::Stop
            }
            _ => TreeNodeRecursion::Continue,
        })
    });
    reads || walked.is_err()
}

/// The rows of `batch` for which a filter is true. NULL is not true.
pub(crate) fn evaluate(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<Vec<bool>> {
    let value = filter.evaluate(batch)?.into_array(batch.num_rows())?;
    let value = if value.data_type() == &ArrowType::Boolean {
        value
    } else {
        arrow::compute::cast(&value, &ArrowType::Boolean)?
    };
    let value = value.as_boolean_opt().ok_or_else(|| Error::internal("a filter did not give booleans"))?;
    Ok((0..batch.num_rows()).map(|row| value.is_valid(row) && value.value(row)).collect())
}

/// The rows of `batch` for which all of `filters` are true. Later filters see only rows that passed the earlier ones,
/// so `p <> 0 AND 10 / p > 1` does not fail on the rows its first half excludes. `first_false` receives, for each row
/// dropped, the number of the filter that did it.
pub(crate) fn evaluate_all(filters: &[Arc<dyn PhysicalExpr>], batch: &RecordBatch) -> Result<Vec<Option<usize>>> {
    let mut dropped_by: Vec<Option<usize>> = vec![None; batch.num_rows()];
    for (number, filter) in filters.iter().enumerate() {
        let alive: Vec<usize> = (0..batch.num_rows()).filter(|row| dropped_by.get(*row) == Some(&None)).collect();
        if alive.is_empty() {
            break;
        }
        let mask = BooleanArray::from_iter(dropped_by.iter().map(|dropped| Some(dropped.is_none())));
        let remaining =
            if batch.num_columns() == 0 { batch.slice(0, alive.len()) } else { filter_record_batch(batch, &mask)? };
        for (row, keep) in alive.into_iter().zip(evaluate(filter, &remaining)?) {
            if !keep && let Some(slot) = dropped_by.get_mut(row) {
                *slot = Some(number);
            }
        }
    }
    Ok(dropped_by)
}
