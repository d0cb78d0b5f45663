//! Parquet files beside the warehouse (`CREATE EXTERNAL TABLE`) that hold NaN.
//!
//! Bounds of FLOAT and DOUBLE columns in Parquet files leave NaN out, which is the greatest value here, and have one zero
//! for both. DataFusion takes them for bounds of all values: `x > 1` would lose a NaN, `max(x)` too, and a column of 1 and
//! NaN would be 1 in every row. Files of the warehouse are read without them ([`super::nodes::MergeSource`]); here they
//! are taken from other files, before anything is concluded from them and after conditions have come to the scans.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_expr::{conjunction, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::nodes::merge_source::touches_floats;

/// Forgets bounds of floats. Runs before all other rules.
#[derive(Debug)]
pub(super) struct NoFloatBounds;

/// Keeps conditions on floats from bounds inside of files. Runs when no more conditions are moved.
#[derive(Debug)]
pub(super) struct NoFloatPruning;

impl PhysicalOptimizerRule for NoFloatBounds {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some((config, source)) = external(&node) else { return Ok(Transformed::no(node)) };
            let schema = source.table_schema().table_schema();
            if !schema.fields().iter().any(|field| field.data_type().is_floating()) {
                return Ok(Transformed::no(node));
            }
            let groups = config.file_groups.iter().map(|group| {
                let of_group = group.file_statistics(None).map(|known| Arc::new(without_floats(known, schema)));
                let mut files = group.clone().into_inner();
                for file in &mut files {
                    file.statistics = file.statistics.as_ref().map(|known| Arc::new(without_floats(known, schema)));
                }
                let group = FileGroup::new(files);
                of_group.map_or_else(|| group.clone(), |known| group.clone().with_statistics(known))
            });
            let config = FileScanConfigBuilder::from(config.clone())
                .with_file_groups(groups.collect())
                .with_statistics(without_floats(&config.statistics(), schema))
                .build();
            Ok(Transformed::yes(DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "lakepin_no_float_bounds"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl PhysicalOptimizerRule for NoFloatPruning {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some((config, source)) = external(&node) else { return Ok(Transformed::no(node)) };
            let Some(predicate) = source.filter() else { return Ok(Transformed::no(node)) };
            let schema = source.table_schema().table_schema();
            if !touches_floats(&predicate, schema) {
                return Ok(Transformed::no(node));
            }
            let mut options = source.table_parquet_options().clone();
            let source = if options.global.pushdown_filters {
                // nobody else applies it to rows
                options.global.pruning = false;
                options.global.enable_page_index = false;
                options.global.bloom_filter_on_read = false;
                source.clone().with_table_parquet_options(options)
            } else {
                let others = split_conjunction(&predicate).into_iter().filter(|term| !touches_floats(term, schema));
                let others: Vec<_> = others.cloned().collect();
                source.with_predicate(if others.is_empty() { lit(true) } else { conjunction(others) })
            };
            let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
            Ok(Transformed::yes(DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "lakepin_no_float_pruning"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A scan of Parquet files that is none of ours.
fn external(node: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &ParquetSource)> {
    let config = node.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    Some((config, config.file_source().downcast_ref::<ParquetSource>()?))
}

fn without_floats(known: &Statistics, schema: &SchemaRef) -> Statistics {
    let mut known = known.clone();
    for (field, column) in schema.fields().iter().zip(&mut known.column_statistics) {
        if field.data_type().is_floating() {
            *column = ColumnStatistics {
                min_value: Precision::Absent,
                max_value: Precision::Absent,
                sum_value: Precision::Absent,
                distinct_count: Precision::Absent,
                ..column.clone()
            };
        }
    }
    known
}
