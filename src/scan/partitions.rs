//! The partitions a plan meets: each decoded once, filters over partition columns evaluated on their values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
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
    schema: SchemaRef,
    /// Settings of the session, which functions may ask for.
    config: Option<Arc<ConfigOptions>>,
    by_bytes: HashMap<BinaryRow, PartitionId>,
    by_values: HashMap<BinaryRow, PartitionId>,
    values: Vec<Arc<[Datum]>>,
}

impl Partitions {
    /// For the partition columns of a table.
    pub(crate) fn try_new(schema: &TableSchema, config: Option<Arc<ConfigOptions>>) -> Result<Self> {
        let types = schema
            .partition_indices()?
            .into_iter()
            .filter_map(|index| schema.fields.get(index))
            .map(|field| field.data_type().clone())
            .collect();
        Ok(Self {
            types,
            schema: partition_schema(schema)?,
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

    /// All partitions as one batch, a row each, columns in the order of the partition keys.
    pub(crate) fn batch(&self) -> Result<RecordBatch> {
        let columns = self
            .types
            .iter()
            .enumerate()
            .map(|(index, data_type)| {
                let column: Vec<Datum> =
                    self.values.iter().map(|row| row.get(index).cloned().unwrap_or(Datum::Null)).collect();
                datums_to_array(&column, data_type)
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.values.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Compiles a filter over partition columns (names without qualifiers).
    pub(crate) fn compile(&self, expr: &Expr) -> Result<Arc<dyn PhysicalExpr>> {
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
