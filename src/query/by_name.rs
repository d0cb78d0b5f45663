//! Rules of DataFusion that look for a column by its name alone, kept from nodes where the name means two columns.
//!
//! The joined rows of two tables, or of two snapshots of one, often have two columns of one name. `FilterPushdown` (both
//! of its phases, so also the dynamic filters of joins and of `ORDER BY … LIMIT`) finds the column of a filter in the
//! input of a node by name, and takes the first:
//!
//! ```text
//! FilterExec: id@0 IS NULL                         a.id IS NULL ends in the scan of b,
//!   ProjectionExec: [id@0 as id, id@1 as id]       and drops the rows that were asked for
//!     HashJoinExec: Right, on=[(id@0, id@0)]
//!       scan of a, scan of b
//! ```
//!
//! [`GuardedFilters`] puts a [`Barrier`] above each node where this can happen. The barrier lets no filter through and
//! takes itself out of the plan while the rule runs. Filters that start below it go their way, and what stays above it
//! is applied there, as it would be without the rule.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::constants::CountedValues;
use super::nodes::one_input::one_input;

pub(super) type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rule, guarded when it is one that needs it.
pub(super) fn guarded(rule: &Rule) -> Rule {
    let known: &dyn Any = rule.as_ref();
    if known.is::<FilterPushdown>() {
        Arc::new(GuardedFilters { inner: Arc::clone(rule) })
    } else if known.is::<EnsureRequirements>() {
        Arc::new(GuardedKeys { inner: Arc::clone(rule) })
    } else if known.is::<AggregateStatistics>() {
        Arc::new(CountedValues { inner: Arc::clone(rule) })
    } else {
        Arc::clone(rule)
    }
}

/// A `FilterPushdown` with barriers: see the module.
#[derive(Debug)]
struct GuardedFilters {
    inner: Rule,
}

impl PhysicalOptimizerRule for GuardedFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.inner.optimize(with_barriers(plan)?, config)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

/// Puts the columns of an aggregate back in order by position. When it lays out an aggregate as a join above asks for,
/// `EnsureRequirements` puts them back by name, which gives one column twice where two group keys have one name.
#[derive(Debug)]
struct GuardedKeys {
    inner: Rule,
}

impl PhysicalOptimizerRule for GuardedKeys {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(node.is::<AggregateExec>() && !are_distinct(&node.schema())))? {
            return self.inner.optimize(plan, config);
        }
        // the keys of joins are then matched with what their inputs have
        let mut config = config.clone();
        config.optimizer.top_down_join_key_reordering = false;
        self.inner.optimize(plan, &config)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

fn with_barriers(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        Ok(if may_take_filters(&node) {
            Transformed::no(node)
        } else {
            Transformed::yes(Arc::new(Barrier { input: node }))
        })
    })
    .data()
}

/// Whether names are enough to find the columns of a filter from above in a node and in its inputs.
fn may_take_filters(node: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = node.schema();
    let children = node.children();
    if !are_distinct(&schema) || !children.iter().all(|child| are_distinct(&child.schema())) {
        return false;
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        // a group key may be called like another column of the input
        let input = aggregate.input().schema();
        return aggregate
            .group_expr()
            .expr()
            .iter()
            .all(|(key, name)| input.index_of(name).map_or(true, |at| is_column(key, at)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        // a filter on a key goes to the other side too, where another column may be called like the key
        let (left, right) = (join.left().schema(), join.right().schema());
        return match join.join_type() {
            JoinType::LeftSemi => join.on().iter().all(|(kept, other)| is_same_name(kept, other, &right)),
            JoinType::RightSemi => join.on().iter().all(|(other, kept)| is_same_name(kept, other, &left)),
            _ => true,
        };
    }
    // the inputs of a UNION need not have its names
    !node.is::<UnionExec>() || children.iter().all(|child| names(&child.schema()).eq(names(&schema)))
}

/// Whether the column of the other side that is called like the key is the one it is compared with.
fn is_same_name(key: &Arc<dyn PhysicalExpr>, other: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let Some(key) = key.downcast_ref::<Column>() else { return true };
    schema.index_of(key.name()).map_or(true, |at| is_column(other, at))
}

fn is_column(expr: &Arc<dyn PhysicalExpr>, at: usize) -> bool {
    expr.downcast_ref::<Column>().is_some_and(|column| column.index() == at)
}

fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().iter().map(|field| field.name().as_str())
}

fn are_distinct(schema: &Schema) -> bool {
    let mut seen = HashSet::with_capacity(schema.fields().len());
    names(schema).all(|name| seen.insert(name))
}

/// Passes rows on and no filters; gone when the rule that it is made for has run.
#[derive(Debug)]
struct Barrier {
    input: Arc<dyn ExecutionPlan>,
}

impl Barrier {
    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }
}

impl DisplayAs for Barrier {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Barrier")
    }
}

impl ExecutionPlan for Barrier {
    one_input!("Barrier");

    /// Those of the input themselves, so that nodes above it stay as they are.
    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    /// What the default of [`ExecutionPlan::gather_filters_for_pushdown`] has refused for the input is refused here, and
    /// the input takes this node's place.
    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> DfResult<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result).with_updated_node(Arc::clone(&self.input)))
    }
}
