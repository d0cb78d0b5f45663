//! Views of the rows: `t$audit_log`, `t$binlog`, `t$ro`, `t$row_tracking`.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};

use super::View;
use crate::error::Result;
use crate::query::LakeView;
use crate::snapshot::Table;
use crate::sql::functions::table_or_changes;
use crate::sql::selector::Selection;
use crate::sql::statement::Statement;

pub(super) async fn provider(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    view: View,
    selection: &Selection,
) -> Result<Arc<dyn TableProvider>> {
    let view = match view {
        View::AuditLog => return table_or_changes(statement, table, selection, true).await,
        View::Binlog => return binlog(statement, table_or_changes(statement, table, selection, true).await?),
        View::ReadOptimized => LakeView::ReadOptimized,
        View::RowTracking => LakeView::RowTracking,
    };
    let pin = statement.pin(table, selection).await?;
    Ok(Arc::new(statement.lake_table(pin, view)?))
}

/// The audit log with every column of the table as a list: one element, the value.
fn binlog(statement: &Statement, audit: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let schema = audit.schema();
    let name = statement.scan_name("audit_log");
    let scan = LogicalPlanBuilder::scan(name.clone(), provider_as_source(audit), None)?;
    let columns = schema.fields().iter().map(|field| {
        let column = Expr::Column(Column::new(Some(name.clone()), field.name()));
        match field.name().as_str() {
            "rowkind" | "_SEQUENCE_NUMBER" => column,
            name => make_array(vec![column]).alias(name),
        }
    });
    Ok(Arc::new(ViewTable::new(scan.project(columns)?.build()?, None)))
}
