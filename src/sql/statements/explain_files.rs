//! `EXPLAIN FILES SELECT …`: what became of every file of every table of the query, and which rule decided.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use crate::error::{Error, Result};
use crate::query::ScanReport;
use crate::query::work::told_files;
use crate::recon::accounting::partition_text;
use crate::scan::{FileRead, Rule};
use crate::snapshot::{Pin, SessionZone};
use crate::spec::text::datum_text_in;
use crate::spec::{DataType, Datum, Zone};
use crate::sql::cells::{self, Cell, Kind};

fn schema() -> SchemaRef {
    cells::schema(&[
        ("table", Kind::Text, true),
        ("snapshot_id", Kind::Long, false),
        ("file", Kind::Text, true),
        ("kept", Kind::Bool, true),
        ("rule", Kind::Text, true),
        ("partition", Kind::Text, true),
        ("bucket", Kind::Int, true),
        ("total_buckets", Kind::Int, true),
        ("level", Kind::Int, true),
        ("rows", Kind::Long, true),
        ("bytes", Kind::Long, true),
        ("min_key", Kind::Text, false),
        ("max_key", Kind::Text, false),
        ("min_sequence", Kind::Long, true),
        ("max_sequence", Kind::Long, true),
        ("section", Kind::Long, false),
        ("read", Kind::Text, false),
    ])
}

/// The decisions of all scans as one batch.
pub(crate) fn rows(reports: &[ScanReport], zone: &SessionZone) -> Result<RecordBatch> {
    let zone = Zone::parse(&zone.name())?;
    let mut rows = Vec::new();
    for report in reports {
        let keys = key_types(&report.pin)?;
        for decision in report.decisions.iter() {
            let key = |values: &[Datum]| -> Cell {
                if values.is_empty() {
                    return Cell::Null;
                }
                let texts: Vec<String> = values
                    .iter()
                    .zip(&keys)
                    .map(|(value, data_type)| datum_text_in(value, data_type, &zone).unwrap_or_else(|| "null".into()))
                    .collect();
                Cell::Text(format!("[{}]", texts.join(", ")))
            };
            rows.push(vec![
                Cell::text(table_of(&report.pin, decision.branch.as_deref())),
                Cell::opt_long(decision.snapshot.map(|id| id.0)),
                Cell::text(&decision.file),
                Cell::Bool(decision.kept),
                Cell::text(decision.rule.to_string()),
                Cell::text(partition_text(&report.pin, &decision.partition, &zone)?),
                Cell::Int(decision.bucket.0),
                Cell::Int(decision.total_buckets),
                Cell::Int(decision.level),
                Cell::Long(decision.rows),
                Cell::count(decision.bytes),
                key(&decision.min_key),
                key(&decision.max_key),
                Cell::Long(decision.min_sequence),
                Cell::Long(decision.max_sequence),
                decision.section.map_or(Cell::Null, |section| Cell::count(section as u64)),
                match decision.read {
                    FileRead::Dropped(_) => Cell::Null,
                    FileRead::In(class) => Cell::text(class.as_str()),
                    FileRead::Told => Cell::text("metadata"),
                    FileRead::Remembered => Cell::text("remembered"),
                },
            ]);
        }
    }
    cells::batch(&schema(), &rows)
}

/// Says of files that `plan` does not open, because metadata tells their rows, that it is so.
pub(crate) fn tell(reports: &mut [ScanReport], plan: &Arc<dyn ExecutionPlan>) {
    for told in told_files(plan) {
        let Some(report) = reports.get_mut(told.report) else { continue };
        let is_told = |file: &String| told.files.as_ref().is_none_or(|names| names.contains(file));
        let decisions = Arc::make_mut(&mut report.decisions);
        for decision in decisions.iter_mut().filter(|decision| decision.kept && is_told(&decision.file)) {
            (decision.read, decision.rule) = match told.remembered.contains(&decision.file) {
                true => (FileRead::Remembered, Rule::Remembered),
                false => (FileRead::Told, Rule::Told),
            };
        }
    }
}

/// The tables of a query that its optimized plan no longer reads, each once.
pub(crate) fn unread(plan: &LogicalPlan, optimized: &LogicalPlan) -> Result<Vec<Arc<dyn TableProvider>>> {
    let same = |one: &Arc<dyn TableProvider>, other: &Arc<dyn TableProvider>| Arc::ptr_eq(one, other);
    let (mut all, mut read) = (Vec::new(), Vec::new());
    collect(plan, &mut all)?;
    collect(optimized, &mut read)?;
    let mut unread: Vec<Arc<dyn TableProvider>> = Vec::new();
    for table in all {
        if !read.iter().chain(&unread).any(|known| same(known, &table)) {
            unread.push(table);
        }
    }
    Ok(unread)
}

/// The tables that a plan, the subqueries and the views in it read.
fn collect(plan: &LogicalPlan, tables: &mut Vec<Arc<dyn TableProvider>>) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            match scan.source.get_logical_plan() {
                Some(view) => collect(&view, tables)?,
                None => tables.extend(source_as_provider(&scan.source)),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The table a file belongs to, as SQL names it: the branch that completes another is one of its own.
fn table_of(pin: &Pin, branch: Option<&str>) -> String {
    let other = [&pin.fallback, &pin.primary].into_iter().flatten();
    let found = other.map(|other| &other.table).find(|table| Some(table.ident().branch.as_str()) == branch);
    found.unwrap_or(&pin.table).name()
}

fn key_types(pin: &Arc<Pin>) -> Result<Vec<DataType>> {
    if !pin.schema.is_primary_key_table() {
        return Ok(Vec::new());
    }
    let indices = pin.schema.trimmed_primary_key()?;
    indices
        .into_iter()
        .map(|index| {
            let field = pin.schema.fields.get(index);
            field.map(|f| f.data_type().clone()).ok_or_else(|| Error::corrupt("a key names a column that is not there"))
        })
        .collect()
}
