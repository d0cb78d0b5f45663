//! The difference of two pins, on final rows: by key where there is one, as bags of rows where there is none. Files
//! that give the same rows on both sides are not read.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{first_value, sum};
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use datafusion::prelude::col;

use super::widening::wider;
use super::{attribution, table_of};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::NoticeKind;
use crate::query::{Compared, LakeView, changed_columns, compared_form, in_any_order};
use crate::snapshot::nearest::known_names;
use crate::snapshot::{Pin, PinRequest, Table};
use crate::spec::arrow_types::{arrow_field, arrow_type};
use crate::spec::options::MergeEngine;
use crate::spec::{DataField, DataType, TableSchema};
use crate::sql::doubles;
use crate::sql::memory::empty;
use crate::sql::names::split_selector;
use crate::sql::place::missing_column;
use crate::sql::selector::Selection;
use crate::sql::statement::Statement;
use crate::sql::types;

pub(super) const HERE: &str = "__here";

/// Commits that differences are attributed to, at most: each is compared with the one before it.
const COMMITS_ATTRIBUTED: i64 = 200;

/// The two states of a call.
pub(super) struct States<'a> {
    /// Database of names without one.
    pub(super) database: &'a str,
    pub(super) table: &'a Arc<Table>,
    /// A version of the table; or a branch of it, or another table.
    pub(super) from: &'a PinRequest,
    /// As `from`; the latest when nothing was said.
    pub(super) to: &'a PinRequest,
    /// What the table's name says of its state.
    pub(super) said: Selection,
}

/// What of them is compared.
pub(super) struct Wanted<'a> {
    /// A condition on both sides.
    pub(super) condition: Option<&'a str>,
    /// Columns compared besides the key; None: all.
    pub(super) columns: Option<&'a [String]>,
    /// Partitions compared, as `name=value/name=value`; None: all.
    pub(super) partitions: Option<&'a [String]>,
    /// Whether each difference tells the commit that made it.
    pub(super) attribute: bool,
}

/// `paimon_diff`.
pub(super) async fn provider(
    statement: &Arc<Statement>,
    states: States<'_>,
    wanted: Wanted<'_>,
) -> Result<Arc<dyn TableProvider>> {
    let States { database, table, from, to, said } = states;
    let before = state(statement, database, table, from).await?;
    let after = match to {
        PinRequest::Latest => statement.pin(table, &said).await?,
        to => state(statement, database, table, to).await?,
    };
    between(statement, before, after, wanted).await
}

/// `paimon_commit_keys`: what one commit made of the rows that readers get.
pub(super) async fn of_commit(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    snapshot: i64,
    wanted: Wanted<'_>,
) -> Result<Arc<dyn TableProvider>> {
    let pin = |id: i64| {
        let said = Selection { request: PinRequest::SnapshotId(id), ..Selection::none() };
        async move { statement.pin(table, &said).await }
    };
    let after = pin(snapshot).await?;
    // the first one of all has an empty table before it
    let before = if snapshot == 1 { Arc::new(after.before_all()) } else { pin(snapshot.saturating_sub(1)).await? };
    between(statement, before, after, wanted).await
}

async fn between(
    statement: &Arc<Statement>,
    before: Arc<Pin>,
    after: Arc<Pin>,
    wanted: Wanted<'_>,
) -> Result<Arc<dyn TableProvider>> {
    let causes = if wanted.attribute { commits_between(statement, &before, &after).await? } else { Vec::new() };
    let (before, after) = if before.table.ident() == after.table.ident() {
        of_one_schema(statement, &before, &after).await?
    } else {
        check_keys(&before, &after)?;
        tell_columns(statement, &before, &after);
        (before, after)
    };
    let schema = Arc::clone(&after.schema);
    let fields = in_wider_types(&before, &after, compared_fields(&schema, wanted.columns)?)?;
    let condition = wanted.condition.map(|text| condition(statement, &after, text)).transpose()?;
    let partitions = wanted.partitions.map(|names| in_partitions(&after, names)).transpose()?;
    let condition = conjunction(condition.into_iter().chain(partitions));
    if let Some(condition) = &condition {
        check_condition(&schema, condition)?;
    }
    let unordered = unordered(&after, &fields);
    if !unordered.is_empty() {
        statement.notice(NoticeKind::UnorderedElements { columns: unordered.clone() });
    }
    let compared = Compared::new(&before, &after);
    let sides = Sides { statement, before, after, compared, fields, unordered, condition };
    let plan = if schema.is_primary_key_table() { by_key(&sides, &schema)? } else { as_bags(&sides)? };
    let plan = if wanted.attribute { attribution::attributed(plan, &sides, causes).await? } else { plan };
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// The states that lie between two of one table, both included, for telling which commit made a difference.
async fn commits_between(statement: &Arc<Statement>, before: &Arc<Pin>, after: &Arc<Pin>) -> Result<Vec<Arc<Pin>>> {
    let table = &after.table;
    let wrong = |message: &str| Error::invalid(message).with_code("BadArgument").with_context("parameter", "attribute");
    if before.table.ident() != table.ident() {
        return Err(wrong("the commits between two tables or branches cannot be told: they have none in common"));
    }
    if !after.schema.is_primary_key_table() {
        return Err(wrong("rows without primary key cannot be followed through commits")
            .with_hint("t$commit_files lists what each commit added and removed"));
    }
    let (Some(one), Some(other)) = (before.snapshot_id(), after.snapshot_id()) else { return Ok(Vec::new()) };
    let (first, last) = (one.0.min(other.0), one.0.max(other.0));
    if last - first > COMMITS_ATTRIBUTED {
        return Err(wrong("too many commits lie between the two snapshots").with_hint(format!(
            "attribute at most {COMMITS_ATTRIBUTED} at a time, or ask paimon_key_history for single keys"
        )));
    }
    let mut states = Vec::new();
    for id in first..=last {
        let request = PinRequest::SnapshotId(id);
        states.push(match id {
            id if id == one.0 => Arc::clone(before),
            id if id == other.0 => Arc::clone(after),
            _ => statement.pin(table, &Selection { request, ..Selection::none() }).await?,
        });
    }
    Ok(states)
}

/// The state a version means: of the table, or what a branch or another table of that name is now. `branch@v3` and
/// `db.other@v3` say more.
async fn state(
    statement: &Arc<Statement>,
    database: &str,
    table: &Arc<Table>,
    request: &PinRequest,
) -> Result<Arc<Pin>> {
    let own = statement.pin(table, &Selection { request: request.clone(), ..Selection::none() }).await;
    let (PinRequest::Version(text), Err(missed)) = (request, &own) else { return own };
    if !matches!(missed.kind(), ErrorKind::NotFound | ErrorKind::Invalid) {
        return own;
    }
    let (base, said) = match split_selector(text) {
        Some((base, suffix)) => (base, Selection::parse_suffix(suffix, statement.zone())?),
        None => (text.as_str(), Selection::none()),
    };
    match table.branch(base).await {
        Ok(branch) => return statement.pin(&branch, &said).await,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match table_of(statement, database, text).await {
        Ok((other, said)) => statement.pin(&other, &said).await,
        Err(error) if error.kind() == ErrorKind::NotFound => own,
        Err(error) => Err(error),
    }
}

/// Both states of one table, read with the newer schema.
async fn of_one_schema(statement: &Statement, before: &Arc<Pin>, after: &Arc<Pin>) -> Result<(Arc<Pin>, Arc<Pin>)> {
    let newer = if before.schema.id > after.schema.id { before } else { after };
    let schema = Arc::clone(&newer.schema);
    if before.schema.id != after.schema.id {
        let (before, after) = (before.schema.id.0, after.schema.id.0);
        statement.notice(NoticeKind::SchemaChanged { before, after, read_with: schema.id.0 });
    }
    Ok((before.with_schema(&schema).await?, after.with_schema(&schema).await?))
}

/// Rows of two tables stand for each other by their key, so it has to be the same one.
fn check_keys(before: &Pin, after: &Pin) -> Result<()> {
    let key = |pin: &Pin| -> Vec<String> {
        let fields = pin.schema.primary_keys.iter().filter_map(|name| pin.schema.field_index(name));
        let fields = fields.filter_map(|index| pin.schema.fields.get(index));
        fields.map(|field| format!("{} {}", field.name, types::text(&field.field_type))).collect()
    };
    let (one, other) = (key(before), key(after));
    if one == other {
        return Ok(());
    }
    let shown = |key: Vec<String>| if key.is_empty() { "none".to_string() } else { key.join(", ") };
    Err(Error::invalid(format!(
        "the tables have different primary keys: {} has {}, {} has {}",
        before.table.name(),
        shown(one),
        after.table.name(),
        shown(other)
    ))
    .with_code("NotComparable")
    .with_hint("compare them with a join, or with EXCEPT"))
}

/// Columns are matched by name; says which ones have no match.
fn tell_columns(statement: &Statement, before: &Pin, after: &Pin) {
    for (one, other, after) in [(before, after, false), (after, before, true)] {
        let columns: Vec<String> = one
            .schema
            .fields
            .iter()
            .map(|field| field.name.clone())
            .filter(|name| other.schema.field_index(name).is_none())
            .collect();
        if !columns.is_empty() {
            statement.notice(NoticeKind::LoneColumns { table: one.table.name(), after, columns });
        }
    }
}

/// The fields in types that hold the values of both sides: another table may be of an earlier or a later schema.
fn in_wider_types(before: &Pin, after: &Pin, mut fields: Vec<DataField>) -> Result<Vec<DataField>> {
    for field in &mut fields {
        let index = before.schema.field_index(&field.name);
        let Some(other) = index.and_then(|index| before.schema.fields.get(index)) else { continue };
        let (own, types) = (field.value_type(), [other, field].map(|field| types::text(&field.field_type)));
        let wider = wider(&other.value_type().data_type, &own.data_type).ok_or_else(|| {
            let [before_type, after_type] = &types;
            Error::invalid(format!(
                "no type holds the values of both: {} has {before_type}, {} has {after_type}",
                before.table.name(),
                after.table.name()
            ))
            .with_code("NoCommonType")
            .with_context("column", &field.name)
            .with_hint("name the other columns with columns =>, or compare with a join that casts it")
        })?;
        if wider != own.data_type {
            field.field_type.data_type = wider;
        }
    }
    Ok(fields)
}

/// Columns of arrays that writers give back in another order after a compaction, where nothing else has changed.
fn unordered(pin: &Pin, fields: &[DataField]) -> Vec<String> {
    if pin.options.merge_engine == MergeEngine::Deduplicate {
        return Vec::new();
    }
    let option = |key: String| pin.options.raw.get(&key).map(|value| value.trim());
    let unordered = |field: &&DataField| {
        let function = option(format!("fields.{}.aggregate-function", field.name));
        match function.or_else(|| option("fields.default-aggregate-function".to_string())) {
            Some("collect") => option(format!("fields.{}.distinct", field.name)) == Some("true"),
            Some("nested_update") => true,
            _ => false,
        }
    };
    let arrays = fields.iter().filter(|field| matches!(field.data_type(), DataType::Array(_)));
    arrays.filter(unordered).map(|field| field.name.clone()).collect()
}

/// Key columns, and those asked for, in the order of the schema.
fn compared_fields(schema: &TableSchema, columns: Option<&[String]>) -> Result<Vec<DataField>> {
    let Some(columns) = columns else { return Ok(schema.fields.clone()) };
    let mut wanted: Vec<usize> = Vec::new();
    for name in columns {
        let exact = schema.field_index(name);
        // as names are found that are not quoted
        let found = exact.or_else(|| schema.fields.iter().position(|field| field.name.eq_ignore_ascii_case(name)));
        wanted.push(found.ok_or_else(|| {
            Error::invalid(format!("there is no column '{name}'"))
                .with_code("ColumnNotFound")
                .with_context("parameter", "columns")
                .with_hint(known_names("columns", name, schema.fields.iter().map(|field| field.name.as_str())))
        })?);
    }
    let kept = schema.fields.iter().enumerate();
    let kept = kept.filter(|(index, field)| wanted.contains(index) || schema.primary_keys.contains(&field.name));
    Ok(kept.map(|(_, field)| field.clone()).collect())
}

/// What is compared.
pub(super) struct Sides<'a> {
    pub(super) statement: &'a Arc<Statement>,
    pub(super) before: Arc<Pin>,
    pub(super) after: Arc<Pin>,
    /// What need not be read, because both have it.
    pub(super) compared: Arc<Compared>,
    /// Columns compared, those of the key among them.
    pub(super) fields: Vec<DataField>,
    /// Those of them whose elements are in no order.
    pub(super) unordered: Vec<String>,
    /// Rows of interest, on both sides.
    pub(super) condition: Option<Expr>,
}

fn condition(statement: &Arc<Statement>, pin: &Arc<Pin>, text: &str) -> Result<Expr> {
    let table = statement.lake_table(Arc::clone(pin), LakeView::Rows)?;
    let columns = DFSchema::try_from(table.schema().as_ref().clone())?;
    doubles::expression(&statement.state(), text, &columns).map_err(|error| {
        let known = columns.fields().iter().map(|field| field.name().as_str());
        missing_column(error, known).with_context("parameter", "where")
    })
}

/// The condition of being in one of some partitions, each named as its folder is, without escapes; a name may leave out
/// columns behind.
fn in_partitions(pin: &Pin, names: &[String]) -> Result<Expr> {
    let schema = &pin.schema;
    let wrong = |name: &str, what: &str| {
        let keys = schema.partition_keys.join(", ");
        Error::invalid(format!("'{name}' {what}"))
            .with_code("BadArgument")
            .with_context("parameter", "partitions")
            .with_hint(match keys.as_str() {
                "" => "the table has no partitions".to_string(),
                keys => format!("write name=value/name=value, several with commas between; partition columns: {keys}"),
            })
    };
    let mut any: Vec<Expr> = Vec::new();
    for name in names {
        let mut all = Vec::new();
        for part in name.split('/') {
            let (column, value) = part.split_once('=').ok_or_else(|| wrong(name, "names no partition"))?;
            let column = column.trim();
            let index = schema.field_index(column).filter(|_| schema.partition_keys.iter().any(|key| key == column));
            let field = index.and_then(|index| schema.fields.get(index));
            let field = field.ok_or_else(|| wrong(column, "is no partition column"))?;
            let found = Expr::Column(Column::from_name(&field.name));
            all.push(if value == pin.options.partition_default_name {
                found.is_null()
            } else {
                found.eq(cast(lit(value), arrow_type(field.data_type())))
            });
        }
        any.extend(conjunction(all));
    }
    disjunction(any).ok_or_else(|| wrong("", "names no partition"))
}

/// Under a key a condition may use key columns only: one on other columns would tell a row that leaves the condition
/// from one that is deleted no more.
fn check_condition(schema: &TableSchema, condition: &Expr) -> Result<()> {
    let other = condition.column_refs().into_iter().find(|c| !schema.primary_keys.contains(&c.name));
    if let Some(other) = other
        && schema.is_primary_key_table()
    {
        return Err(Error::invalid(format!("the condition uses column {}, which is not part of the key", other.name))
            .with_code("BadArgument")
            .with_hint("filter key and partition columns with where =>, and the others in the WHERE of the query"));
    }
    Ok(())
}

/// A side of the comparison: the fields compared, and a mark that the row is there. Another table has them under the
/// same names, in types that can be cast, or not at all.
fn side(sides: &Sides<'_>, pin: &Arc<Pin>, name: &str) -> Result<LogicalPlanBuilder> {
    let table = sides.statement.lake_table(Arc::clone(pin), LakeView::Rows)?;
    let table = table.in_comparison(Arc::clone(&sides.compared));
    let scanned = sides.statement.scan_name(name);
    let schema = table.schema();
    // the condition may use columns that are not compared
    let filtered: Vec<&DataField> = sides
        .after
        .schema
        .fields
        .iter()
        .filter(|field| !sides.fields.iter().any(|known| known.name == field.name))
        .filter(|field| sides.condition.iter().any(|c| c.column_refs().iter().any(|used| used.name == field.name)))
        .collect();
    let columns: Vec<Expr> = sides
        .fields
        .iter()
        .chain(filtered)
        .map(|field| {
            let wanted = arrow_field(field);
            match schema.field_with_name(&field.name) {
                Ok(found) if found.data_type() == wanted.data_type() => {
                    Ok(Expr::Column(Column::new(Some(scanned.clone()), &field.name)))
                }
                Ok(_) => {
                    let column = Expr::Column(Column::new(Some(scanned.clone()), &field.name));
                    Ok(cast(column, wanted.data_type().clone()).alias(&field.name))
                }
                Err(_) => Ok(lit(ScalarValue::try_from(wanted.data_type())?).alias(&field.name)),
            }
        })
        .collect::<Result<_>>()?;
    let scan = LogicalPlanBuilder::scan(scanned, provider_as_source(Arc::new(table)), None)?;
    let mut side = scan.project(columns.into_iter().chain([lit(true).alias(HERE)]))?.alias(name)?;
    if let Some(condition) = &sides.condition {
        side = side.filter(condition.clone())?;
    }
    Ok(side)
}

/// A column by its exact name.
pub(super) fn column(relation: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(relation), name))
}

/// Both sides next to each other by key.
pub(super) fn joined(sides: &Sides<'_>, schema: &TableSchema) -> Result<LogicalPlanBuilder> {
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
fn changed(sides: &Sides<'_>, schema: &TableSchema) -> Expr {
    let values: Vec<&str> = sides
        .fields
        .iter()
        .map(|f| f.name.as_str())
        .filter(|name| !schema.primary_keys.iter().any(|k| k == name))
        .collect();
    let value = |side: &str, name: &str| match sides.unordered.iter().any(|known| known == name) {
        true => in_any_order().call(vec![column(side, name)]),
        false => column(side, name),
    };
    let pairs = values.iter().flat_map(|name| [value("before", name), value("after", name)]).collect();
    changed_columns(values.iter().map(|name| (*name).to_string()).collect()).call(pairs)
}

pub(super) fn differs(sides: &Sides<'_>, schema: &TableSchema) -> Expr {
    // array_length of an empty list is NULL or 0
    coalesce(vec![cast(array_length(changed(sides, schema)), arrow::datatypes::DataType::Int64), lit(0i64)])
        .gt(lit(0i64))
}

fn by_key(sides: &Sides<'_>, schema: &TableSchema) -> Result<LogicalPlan> {
    let only_after = column("before", HERE).is_null();
    let only_before = column("after", HERE).is_null();
    let plan = joined(sides, schema)?.filter(only_after.clone().or(only_before.clone()).or(differs(sides, schema)))?;
    let op =
        when(only_after.clone(), lit("INSERT")).when(only_before.clone(), lit("DELETE")).otherwise(lit("UPDATE"))?;
    let mut columns = vec![op.alias("op")];
    for key in &schema.primary_keys {
        columns.push(coalesce(vec![column("after", key), column("before", key)]).alias(key));
    }
    let mut shown = Vec::new();
    for field in sides.fields.iter().filter(|f| !schema.primary_keys.contains(&f.name)) {
        shown.push(column("before", &field.name).alias(format!("before_{}", field.name)));
        shown.push(column("after", &field.name).alias(format!("after_{}", field.name)));
    }
    columns.extend(shown);
    let both = only_after.or(only_before);
    columns.push(when(both.is_not_true(), changed(sides, schema)).end()?.alias("changed_columns"));
    Ok(plan.project(columns)?.build()?)
}

fn as_bags(sides: &Sides<'_>) -> Result<LogicalPlan> {
    let signed = |pin: &Arc<Pin>, sign: i64| -> Result<LogicalPlan> {
        let columns: Vec<Expr> = sides.fields.iter().map(|f| column("rows", &f.name)).collect();
        let plan = side(sides, pin, "rows")?;
        Ok(plan.project(columns.into_iter().chain([lit(sign).alias("__sign")]))?.alias("rows")?.build()?)
    };
    let all = LogicalPlanBuilder::from(signed(&sides.after, 1)?).union(signed(&sides.before, -1)?)?.alias("rows")?;
    let groups: Vec<Expr> = sides.fields.iter().map(|field| compared("rows", field)).collect();
    // a map stands for all that are equal to it
    let maps = sides.fields.iter().filter(|field| types::has_map(field.data_type()));
    let shown = maps.map(|field| first_value(column("rows", &field.name), Vec::new()).alias(&field.name));
    let count = sum(column("rows", "__sign")).alias("__count");
    let plan = all.aggregate(groups, [count].into_iter().chain(shown))?.filter(col("__count").not_eq(lit(0i64)))?;
    let op = when(col("__count").gt(lit(0i64)), lit("INSERT")).otherwise(lit("DELETE"))?;
    let copies =
        when(col("__count").gt(lit(0i64)), col("__count")).otherwise(Expr::Negative(Box::new(col("__count"))))?;
    let values = sides.fields.iter().map(|field| match types::has_map(field.data_type()) {
        true => Expr::Column(Column::new_unqualified(&field.name)),
        false => column("rows", &field.name),
    });
    let columns = [op.alias("op")].into_iter().chain(values).chain([copies.alias("copies")]);
    Ok(plan.project(columns)?.build()?)
}

/// A column as whole rows are compared by: maps in a form that can be grouped and joined by.
fn compared(relation: &str, field: &DataField) -> Expr {
    let value = column(relation, &field.name);
    match types::has_map(field.data_type()) {
        true => compared_form().call(vec![value]).alias(compared_name(field)),
        false => value,
    }
}

fn compared_name(field: &DataField) -> String {
    format!("__compared_{}", field.id)
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
    let (fields, unordered) = (schema.fields.clone(), Vec::new());
    let sides = Sides { statement, before, after, compared, fields, unordered, condition: None };
    let names = || schema.fields.iter().map(|f| f.name.as_str());
    let plan = if schema.is_primary_key_table() {
        let new = column("before", HERE).is_null();
        let gone = column("after", HERE).is_null();
        let plan = joined(&sides, &schema)?;
        if kinds {
            let plan = plan.filter(new.or(gone.clone()).or(differs(&sides, &schema)))?;
            let kind = when(gone.clone(), lit("-D")).otherwise(lit("+I"))?;
            let mut columns = vec![kind.alias("rowkind")];
            for name in names() {
                let value = when(gone.clone(), column("before", name)).otherwise(column("after", name))?;
                columns.push(value.alias(name));
            }
            plan.project(columns)?.build()?
        } else {
            let plan = plan.filter(gone.is_not_true().and(new.or(differs(&sides, &schema))))?;
            plan.project(names().map(|name| column("after", name)))?.build()?
        }
    } else {
        let added = added(&sides, &schema)?;
        let columns = names().map(|name| column("after", name));
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
    let keys = |relation: &str| -> Box<dyn Iterator<Item = Column> + '_> {
        let relation = relation.to_string();
        Box::new(schema.fields.iter().map(move |field| match types::has_map(field.data_type()) {
            true => Column::new(Some(relation.as_str()), compared_name(field)),
            false => Column::new(Some(relation.as_str()), &field.name),
        }))
    };
    let numbered = |pin: &Arc<Pin>, name: &'static str| -> Result<LogicalPlanBuilder> {
        let columns = || schema.fields.iter().map(|field| column(name, &field.name));
        let maps = schema.fields.iter().filter(|field| types::has_map(field.data_type()));
        let forms = maps.map(|field| compared(name, field));
        let plan = side(sides, pin, name)?.project(columns().chain(forms))?.alias(name)?;
        let number = row_number().partition_by(keys(name).map(Expr::Column).collect()).build()?;
        Ok(plan.window([number.alias("__copy")])?.alias(name)?)
    };
    let all_keys = |relation: &str| keys(relation).chain([Column::new(Some(relation), "__copy")]).collect::<Vec<_>>();
    let right = numbered(&sides.before, "before")?.build()?;
    Ok(numbered(&sides.after, "after")?.join_detailed(
        right,
        JoinType::LeftAnti,
        (all_keys("after"), all_keys("before")),
        None,
        NullEquality::NullEqualsNull,
    )?)
}
