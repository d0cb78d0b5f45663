//! The difference of two pins, on final rows: by key where there is one, as bags of rows where there is none. Files
//! that give the same rows on both sides are not read.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use datafusion::prelude::col;

use super::changed_columns;
use crate::error::{Error, Result};
use crate::query::{Compared, LakeView};
use crate::snapshot::{Pin, PinRequest, Table};
use crate::spec::TableSchema;
use crate::sql::memory::empty;
use crate::sql::place::missing_column;
use crate::sql::selector::Selection;
use crate::sql::statement::Statement;

const HERE: &str = "__here";

/// `paimon_diff`.
pub(super) async fn provider(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    from: &PinRequest,
    to: &Selection,
    condition: Option<&str>,
) -> Result<Arc<dyn TableProvider>> {
    let before = statement.pin(table, &Selection { request: from.clone(), ..Selection::none() }).await?;
    let after = statement.pin(table, to).await?;
    let newer = if before.schema.id > after.schema.id { &before } else { &after };
    let schema = Arc::clone(&newer.schema);
    if before.schema.id != after.schema.id {
        statement.notice(format!(
            "the schema changed between the two snapshots ({} and {}): both sides are read with schema {}",
            before.schema.id, after.schema.id, schema.id
        ));
    }
    let (before, after) = (before.with_schema(&schema).await?, after.with_schema(&schema).await?);
    let condition = condition.map(|text| filter(statement, &after, &schema, text)).transpose()?;
    let compared = Compared::new(&before, &after);
    let sides = Sides { statement, before, after, compared, condition };
    let plan = if schema.is_primary_key_table() { by_key(&sides, &schema)? } else { as_bags(&sides, &schema)? };
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// What is compared.
struct Sides<'a> {
    statement: &'a Arc<Statement>,
    before: Arc<Pin>,
    after: Arc<Pin>,
    /// What need not be read, because both have it.
    compared: Arc<Compared>,
    /// Rows of interest, on both sides.
    condition: Option<Expr>,
}

/// A condition on both sides. Under a key it may use key columns only: one on other columns would tell a row that
/// leaves the condition from one that is deleted no more.
fn filter(statement: &Arc<Statement>, pin: &Arc<Pin>, schema: &TableSchema, text: &str) -> Result<Expr> {
    let table = statement.lake_table(Arc::clone(pin), LakeView::Rows)?;
    let columns = DFSchema::try_from(table.schema().as_ref().clone())?;
    let condition = statement.state().create_logical_expr(text, &columns).map_err(|error| {
        let known = columns.fields().iter().map(|field| field.name().as_str());
        missing_column(error, known).with_context("parameter", "where")
    })?;
    let other = condition.column_refs().into_iter().find(|c| !schema.primary_keys.contains(&c.name));
    if let Some(other) = other
        && schema.is_primary_key_table()
    {
        return Err(Error::invalid(format!("the condition uses column {}, which is not part of the key", other.name))
            .with_code("BadArgument")
            .with_hint("filter key and partition columns with where =>, and the others in the WHERE of the query"));
    }
    Ok(condition)
}

/// A side of the comparison: `columns`, and a mark that the row is there.
fn side(sides: &Sides<'_>, pin: &Arc<Pin>, name: &str) -> Result<LogicalPlanBuilder> {
    let table = sides.statement.lake_table(Arc::clone(pin), LakeView::Rows)?;
    let table = table.in_comparison(Arc::clone(&sides.compared));
    let scanned = sides.statement.scan_name(name);
    let columns: Vec<Expr> =
        table.schema().fields().iter().map(|f| Expr::Column(Column::new(Some(scanned.clone()), f.name()))).collect();
    let mut scan = LogicalPlanBuilder::scan(scanned, provider_as_source(Arc::new(table)), None)?;
    if let Some(condition) = &sides.condition {
        scan = scan.filter(condition.clone())?;
    }
    Ok(scan.project(columns.into_iter().chain([lit(true).alias(HERE)]))?.alias(name)?)
}

/// A column by its exact name.
fn column(relation: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(relation), name))
}

/// Both sides next to each other by key.
fn joined(sides: &Sides<'_>, schema: &TableSchema) -> Result<LogicalPlanBuilder> {
    let keys = |relation: &str| -> Vec<Column> {
        schema.primary_keys.iter().map(|key| Column::new(Some(relation), key)).collect()
    };
    let right = side(sides, &sides.after, "after")?.build()?;
    Ok(side(sides, &sides.before, "before")?.join_detailed(
        right,
        JoinType::Full,
        (keys("before"), keys("after")),
        None,
        NullEquality::NullEqualsNull,
    )?)
}

/// Value columns that differ, as a list of names.
fn changed(schema: &TableSchema) -> Expr {
    let values: Vec<&str> = schema
        .fields
        .iter()
        .map(|f| f.name.as_str())
        .filter(|name| !schema.primary_keys.iter().any(|k| k == name))
        .collect();
    let pairs = values.iter().flat_map(|name| [column("before", name), column("after", name)]).collect();
    changed_columns::function(values.iter().map(|name| (*name).to_string()).collect()).call(pairs)
}

fn differs(schema: &TableSchema) -> Expr {
    // array_length of an empty list is NULL or 0
    coalesce(vec![cast(array_length(changed(schema)), arrow::datatypes::DataType::Int64), lit(0i64)]).gt(lit(0i64))
}

fn by_key(sides: &Sides<'_>, schema: &TableSchema) -> Result<LogicalPlan> {
    let only_after = column("before", HERE).is_null();
    let only_before = column("after", HERE).is_null();
    let plan = joined(sides, schema)?.filter(only_after.clone().or(only_before.clone()).or(differs(schema)))?;
    let op =
        when(only_after.clone(), lit("INSERT")).when(only_before.clone(), lit("DELETE")).otherwise(lit("UPDATE"))?;
    let mut columns = vec![op.alias("op")];
    for key in &schema.primary_keys {
        columns.push(coalesce(vec![column("after", key), column("before", key)]).alias(key));
    }
    let mut shown = Vec::new();
    for field in schema.fields.iter().filter(|f| !schema.primary_keys.contains(&f.name)) {
        shown.push(column("before", &field.name).alias(format!("before_{}", field.name)));
        shown.push(column("after", &field.name).alias(format!("after_{}", field.name)));
    }
    columns.extend(shown);
    let both = only_after.or(only_before);
    columns.push(when(both.is_not_true(), changed(schema)).end()?.alias("changed_columns"));
    Ok(plan.project(columns)?.build()?)
}

fn as_bags(sides: &Sides<'_>, schema: &TableSchema) -> Result<LogicalPlan> {
    comparable(schema)?;
    let signed = |pin: &Arc<Pin>, sign: i64| -> Result<LogicalPlan> {
        let columns: Vec<Expr> = schema.fields.iter().map(|f| column("rows", &f.name)).collect();
        let plan = side(sides, pin, "rows")?;
        Ok(plan.project(columns.into_iter().chain([lit(sign).alias("__sign")]))?.alias("rows")?.build()?)
    };
    let all = LogicalPlanBuilder::from(signed(&sides.after, 1)?).union(signed(&sides.before, -1)?)?.alias("rows")?;
    let groups: Vec<Expr> = schema.fields.iter().map(|f| column("rows", &f.name)).collect();
    let count = sum(column("rows", "__sign")).alias("__count");
    let plan = all.aggregate(groups.clone(), vec![count])?.filter(col("__count").not_eq(lit(0i64)))?;
    let op = when(col("__count").gt(lit(0i64)), lit("INSERT")).otherwise(lit("DELETE"))?;
    let copies =
        when(col("__count").gt(lit(0i64)), col("__count")).otherwise(Expr::Negative(Box::new(col("__count"))))?;
    let columns = [op.alias("op")].into_iter().chain(groups).chain([copies.alias("copies")]);
    Ok(plan.project(columns)?.build()?)
}

/// Rows without a key are compared as a whole, which grouping has to be able to do.
fn comparable(schema: &TableSchema) -> Result<()> {
    match schema.fields.iter().find(|f| crate::sql::types::has_map(f.data_type())) {
        Some(field) => Err(Error::unsupported(format!(
            "rows of a table without primary key cannot be compared with the {} column {}",
            crate::sql::types::text(&field.field_type),
            field.name
        ))
        .with_code("NotComparable")),
        None => Ok(()),
    }
}

/// The `diff` mode of incremental reads: rows of `after` that are new or changed; with `kinds` also rows that are gone,
/// as `-D`.
pub(super) async fn incremental(
    statement: &Arc<Statement>,
    before: Option<Arc<Pin>>,
    after: Arc<Pin>,
    kinds: bool,
    same: bool,
) -> Result<Arc<dyn TableProvider>> {
    let schema = after.table.latest_schema().await?;
    let after = after.with_schema(&schema).await?;
    let view = if kinds { LakeView::AuditLog } else { LakeView::Rows };
    let whole = statement.lake_table(Arc::clone(&after), view)?;
    if same {
        return Ok(empty(whole.schema()));
    }
    if kinds && after.options.table_read_sequence_number {
        return Err(Error::unsupported("a difference of two snapshots has no sequence numbers")
            .with_code("Unsupported")
            .with_context("option", "table-read.sequence-number.enabled"));
    }
    let Some(before) = before else { return Ok(Arc::new(statement.lake_table(after, view)?)) };
    let before = before.with_schema(&schema).await?;
    let compared = Compared::new(&before, &after);
    let sides = Sides { statement, before, after, compared, condition: None };
    let names = || schema.fields.iter().map(|f| f.name.as_str());
    let plan = if schema.is_primary_key_table() {
        let new = column("before", HERE).is_null();
        let gone = column("after", HERE).is_null();
        let plan = joined(&sides, &schema)?;
        if kinds {
            let plan = plan.filter(new.or(gone.clone()).or(differs(&schema)))?;
            let kind = when(gone.clone(), lit("-D")).otherwise(lit("+I"))?;
            let mut columns = vec![kind.alias("rowkind")];
            for name in names() {
                let value = when(gone.clone(), column("before", name)).otherwise(column("after", name))?;
                columns.push(value.alias(name));
            }
            plan.project(columns)?.build()?
        } else {
            let plan = plan.filter(gone.is_not_true().and(new.or(differs(&schema))))?;
            plan.project(names().map(|name| column("after", name).alias(name)))?.build()?
        }
    } else {
        comparable(&schema)?;
        let added = added(&sides, &schema)?;
        let columns = names().map(|name| column("after", name).alias(name));
        if kinds {
            added.project([lit("+I").alias("rowkind")].into_iter().chain(columns))?.build()?
        } else {
            added.project(columns)?.build()?
        }
    };
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Rows of `after` beyond the copies `before` has of them: equal rows are numbered on both sides.
fn added(sides: &Sides<'_>, schema: &TableSchema) -> Result<LogicalPlanBuilder> {
    let numbered = |pin: &Arc<Pin>, name: &'static str| -> Result<LogicalPlanBuilder> {
        let columns: Vec<Expr> = schema.fields.iter().map(|f| column(name, &f.name)).collect();
        let number = row_number().partition_by(columns.clone()).build()?;
        let plan = side(sides, pin, name)?.window([number.alias("__copy")])?;
        Ok(plan.project(columns.into_iter().chain([col("__copy")]))?.alias(name)?)
    };
    let keys = |relation: &str| -> Vec<Column> {
        let names = schema.fields.iter().map(|f| f.name.as_str()).chain(["__copy"]);
        names.map(|name| Column::new(Some(relation), name)).collect()
    };
    let right = numbered(&sides.before, "before")?.build()?;
    Ok(numbered(&sides.after, "after")?.join_detailed(
        right,
        JoinType::LeftAnti,
        (keys("after"), keys("before")),
        None,
        NullEquality::NullEqualsNull,
    )?)
}
