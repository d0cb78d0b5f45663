mod classes;
mod kept;
mod mended;
mod naive;
mod passes;
mod sound;
mod sources;
mod told;
mod types;
mod unread;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::common::DFSchema;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::prelude::SessionConfig;

use super::*;
use crate::error::Result;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

/// A side of rows in memory, in partitions of a few.
fn side(name: &str, rows: &RecordBatch) -> Side {
    let (count, third) = (rows.num_rows(), rows.num_rows() / 3);
    let chunks =
        |from: usize, to: usize| (from..to).step_by(1000).map(|at| rows.slice(at, 1000.min(to - at))).collect();
    let parts: Vec<Vec<RecordBatch>> = vec![chunks(third, count), chunks(0, third)];
    let columns = rows.schema().fields().iter().map(|f| Column::new(f.name(), f.data_type().clone())).collect();
    let table = MemTable::try_new(rows.schema(), parts).unwrap();
    let plan = LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(table)), None).unwrap().build().unwrap();
    Side {
        name: name.to_string(),
        position: "memory".to_string(),
        state_known: true,
        what: None,
        columns,
        rows: SideRows::Plan(plan),
        condition: None,
        guards: Vec::new(),
    }
}

fn context(memory: Option<usize>) -> SessionContext {
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = memory {
        runtime = runtime.with_memory_limit(bytes, 1.0);
    }
    let config = SessionConfig::new().with_target_partitions(2).with_batch_size(1000);
    SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap())
}

fn filtered(side: Side, condition: &str) -> Side {
    let fields: Vec<_> = side
        .columns
        .iter()
        .map(|column| arrow::datatypes::Field::new(&column.name, column.data_type.clone(), true))
        .collect();
    let schema = DFSchema::try_from(arrow::datatypes::Schema::new(fields)).unwrap();
    let condition = context(None).parse_sql_expr(condition, &schema).unwrap();
    Side { condition: Some(condition), ..side }
}

fn by(key: &[&str]) -> Options {
    let wanted = Wanted { key: key.iter().map(|name| (*name).to_string()).collect(), ..Wanted::default() };
    Options { wanted, examples: 10, ..Options::default() }
}

async fn compared(left: Side, right: Side, options: Options) -> Result<Report> {
    Comparison::plan(left, right, options, &context(None).state()).await?.run().await
}

/// Findings of each class but EQUAL, then equal rows.
fn told(report: &Report) -> (Vec<(&'static str, u64)>, u64) {
    let found = report.classes.iter().filter(|one| one.class != Class::Equal);
    (found.map(|one| (one.class.name(), one.count.findings)).collect(), report.count(Class::Equal).left_rows)
}

/// Whether tests run at their full scale.
fn full() -> bool {
    std::env::var("LAKEPIN_SCALE").is_ok_and(|scale| scale == "full")
}
