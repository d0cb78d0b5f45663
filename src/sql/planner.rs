//! The relation planner: keeps the user's own table names in plans, and refuses version clauses where nobody has
//! turned them into names, because DataFusion alone would ignore them and read the latest rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::TableFactor;
use parking_lot::Mutex;

use crate::error::Error;

/// Renamed relations and the names to show them under.
#[derive(Debug, Default)]
pub(crate) struct ShownNames {
    names: Mutex<BTreeMap<String, String>>,
}

impl ShownNames {
    pub(crate) fn put(&self, renamed: &str, shown: &str) {
        self.names.lock().insert(renamed.to_string(), shown.to_string());
    }

    pub(crate) fn get(&self, renamed: &str) -> Option<String> {
        self.names.lock().get(renamed).cloned()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TravelPlanner {
    shown: Option<Arc<ShownNames>>,
}

impl TravelPlanner {
    /// For sessions whose statements reach DataFusion as they are.
    pub(crate) fn plain() -> Arc<dyn RelationPlanner> {
        Arc::new(Self { shown: None })
    }

    /// Whether a planner is one of ours.
    pub(crate) fn is(planner: &Arc<dyn RelationPlanner>) -> bool {
        // the trait has no way to ask for a type
        format!("{planner:?}").starts_with("TravelPlanner")
    }

    /// For one statement of ours.
    pub(crate) fn for_statement(shown: Arc<ShownNames>) -> Arc<dyn RelationPlanner> {
        Arc::new(Self { shown: Some(shown) })
    }
}

impl RelationPlanner for TravelPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let TableFactor::Table { name, alias, version, args, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if version.is_some() {
            return Err(Error::unsupported(format!("the time travel clause of {name} is not understood here"))
                .with_code("CannotTravel")
                .with_hint("run the statement through Warehouse::sql or a Lakepin session, or write \"t@v3\"")
                .into());
        }
        let Some(shown) = &self.shown else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if args.is_some() {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let reference = context.object_name_to_table_reference(name.clone())?;
        let Some(base) = shown.get(reference.table()) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let source = context.context_provider().get_table_source(reference.clone())?;
        let own = match reference.clone() {
            TableReference::Bare { .. } => TableReference::bare(base),
            TableReference::Partial { schema, .. } => TableReference::partial(schema, base),
            TableReference::Full { catalog, schema, .. } => TableReference::full(catalog, schema, base),
        };
        // under its full name first: the optimizer takes scans of one name for the same rows and would read two
        // snapshots of a table as one
        let plan = LogicalPlanBuilder::scan(reference.clone(), source, None)?.alias(own)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}
