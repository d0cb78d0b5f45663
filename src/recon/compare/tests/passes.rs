//! How sides are read: order, memory, lookups, progress, samples.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ListBuilder, StringBuilder, StructBuilder};
use arrow::compute::{SortColumn, lexsort_to_indices, take_record_batch};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use super::*;
use crate::recon::source::{
    Source, SourceColumn, SourceOrder, SourcePosition, SourceRead, SourceWork, unreadable_field,
};

/// A database of one table in memory, with an index on its key.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) rows: RecordBatch,
    pub(super) columns: Vec<SourceColumn>,
    pub(super) key: Vec<String>,
    pub(super) position: SourcePosition,
    /// Whether it has an index on its key.
    pub(super) order: bool,
    /// Values that could not be read: of a key, in a column, as text.
    pub(super) unread: Vec<(i64, &'static str, &'static str)>,
    /// Rows of a read after which the connection is gone.
    pub(super) fail_after: Option<usize>,
    /// Rows come from the last to the first, whatever was asked for.
    pub(super) backwards: bool,
    pub(super) queries: AtomicU64,
    pub(super) given: AtomicU64,
}

impl Memory {
    pub(super) fn new(rows: RecordBatch, key: &str) -> Self {
        let column = |field: &Arc<arrow::datatypes::Field>| SourceColumn {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            declared: if *field.data_type() == DataType::Utf8 { "varchar(20)" } else { "bigint" }.to_string(),
            nullable: false,
            order: SourceOrder::Values,
        };
        let columns = rows.schema().fields().iter().map(column).collect();
        Self {
            rows,
            columns,
            key: vec![key.to_string()],
            position: SourcePosition {
                server: "Memory 1".into(),
                position: "5".into(),
                is_state: true,
                ..SourcePosition::default()
            },
            order: true,
            unread: Vec::new(),
            fail_after: None,
            backwards: false,
            queries: AtomicU64::new(0),
            given: AtomicU64::new(0),
        }
    }

    /// Says how it sorts and compares a column.
    pub(super) fn order_by(&mut self, name: &str, order: SourceOrder) {
        let column = self.columns.iter_mut().find(|column| column.name == name);
        column.expect("the column is there").order = order;
        self.order = false;
    }
}

#[async_trait]
impl Source for Memory {
    fn name(&self) -> String {
        "memory://db/t".to_string()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn key(&self) -> &[String] {
        &self.key
    }

    fn position(&self) -> &SourcePosition {
        &self.position
    }

    async fn estimated_rows(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn is_indexed(&self, ordered_by: &[String]) -> Result<bool> {
        Ok(self.order && ordered_by == self.key)
    }

    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let key = self.rows.column_by_name(&self.key[0]).unwrap();
        let sorted = lexsort_to_indices(&[SortColumn { values: Arc::clone(key), options: None }], None).unwrap();
        let mut rows = if read.ordered_by.is_empty() {
            self.rows.clone()
        } else {
            take_record_batch(&self.rows, &sorted).unwrap()
        };
        if self.backwards {
            let back = arrow::array::UInt32Array::from_iter_values((0..rows.num_rows() as u32).rev());
            rows = take_record_batch(&rows, &back).unwrap();
        }
        let key = Arc::clone(rows.column_by_name(&self.key[0]).unwrap());
        let wanted = (0..rows.num_rows()).map(|row| {
            let value = ScalarValue::try_from_array(&key, row).unwrap();
            let after = read.after.as_ref().is_none_or(|after| value > after[0]);
            Some(after && (read.keys.is_empty() || read.keys.iter().any(|key| key[0] == value)))
        });
        let wanted: arrow::array::BooleanArray = wanted.collect();
        let rows = arrow::compute::filter_record_batch(&rows, &wanted).unwrap();
        self.given.fetch_add(rows.num_rows() as u64, Ordering::Relaxed);
        let columns: Vec<usize> = read.columns.iter().map(|name| rows.schema().index_of(name).unwrap()).collect();
        let told = unreadable(rows.column_by_name(&self.key[0]).unwrap(), &self.unread);
        let mut rows = rows.project(&columns).unwrap();
        if read.unreadable {
            let (mut fields, mut columns) = (rows.schema().fields().to_vec(), rows.columns().to_vec());
            fields.push(Arc::new(unreadable_field()));
            columns.push(told);
            rows = RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(fields)), columns).unwrap();
        }
        let last = self.fail_after.map_or(rows.num_rows(), |after| after.min(rows.num_rows()));
        let mut chunks: Vec<_> = (0..last).step_by(700).map(|at| Ok(rows.slice(at, 700.min(last - at)))).collect();
        if self.fail_after.is_some() {
            let lost = crate::error::Error::unavailable("the connection is gone").with_code("SourceLost");
            chunks.push(Err(lost.into()));
        }
        Ok(Box::pin(RecordBatchStreamAdapter::new(rows.schema(), stream::iter(chunks))))
    }

    fn work(&self) -> SourceWork {
        SourceWork { queries: self.queries.load(Ordering::Relaxed), rows: self.given.load(Ordering::Relaxed) }
    }
}

/// The column that tells what could not be read, of rows with these keys.
fn unreadable(keys: &ArrayRef, unread: &[(i64, &str, &str)]) -> ArrayRef {
    let field = unreadable_field();
    let DataType::List(item) = field.data_type() else { panic!("a list") };
    let DataType::Struct(parts) = item.data_type() else { panic!("of structs") };
    let mut lists = ListBuilder::new(StructBuilder::from_fields(parts.clone(), 0)).with_field(Arc::clone(item));
    for row in 0..keys.len() {
        let own = |key: i64| ScalarValue::try_from_array(keys, row).unwrap() == ScalarValue::Int64(Some(key));
        let mut any = false;
        for (_, column, text) in unread.iter().filter(|(key, ..)| own(*key)) {
            for (at, text) in [column, text].into_iter().enumerate() {
                lists.values().field_builder::<StringBuilder>(at).unwrap().append_value(text);
            }
            lists.values().append(true);
            any = true;
        }
        lists.append(any);
    }
    Arc::new(lists.finish())
}

/// Keys out of order and with gaps.
pub(super) fn rows(count: i64, changed: impl Fn(i64) -> i64) -> RecordBatch {
    let ids: Vec<i64> = (0..count).map(|at| (at * 7919) % count * 3).collect();
    let values = longs(ids.iter().map(|id| changed(*id)));
    let names: Vec<String> = ids.iter().map(|id| format!("name {id}")).collect();
    batch(vec![("id", longs(ids)), ("v", values), ("name", texts(names.iter().map(|n| Some(n.as_str()))))])
}

#[tokio::test]
async fn an_ordered_source_is_streamed_and_each_row_read_once() {
    let count = 10_000;
    let left = side("lake", &rows(count, |id| id));
    let source = Arc::new(Memory::new(rows(count, |id| if id == 600 { -1 } else { id }), "id"));
    let report = compared(left.clone(), Side::of_source(source.clone()), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("DIFFERENT", 1)], 9_999), "{report:?}");
    assert_eq!((report.left.streamed, report.right.streamed, report.right.queries), (false, true, Some(1)));
    assert_eq!(source.work().rows, 10_000);
    // without an index it is sorted here
    let source = Memory { order: false, ..Memory::new(rows(count, |id| id), "id") };
    let report = compared(left.clone(), Side::of_source(Arc::new(source)), by(&["id"])).await.unwrap();
    assert_eq!((report.verdict, report.right.streamed), (Verdict::Equal, false));
    // one whose order is not what it says it is gives no verdict
    let source = Memory { backwards: true, ..Memory::new(rows(count, |id| id), "id") };
    let error = compared(left, Side::of_source(Arc::new(source)), by(&["id"])).await.unwrap_err();
    assert_eq!(error.code(), "SourceOrder", "{error}");
}

#[tokio::test]
async fn keys_of_one_side_are_looked_up_by_name_or_by_reading_all_once_more() {
    let count = 30_000;
    for (hidden, most_rows) in [(700i64, 1_400), (21_000, 60_000)] {
        // rows that the lake has under the condition and the source has beside it
        let left = side("lake", &rows(count, |_| 1));
        let source = Arc::new(Memory::new(rows(count, |id| if id < hidden * 3 { 0 } else { 1 }), "id"));
        let (left, right) = (filtered(left, "v = 1"), filtered(Side::of_source(source.clone()), "v = 1"));
        let report = compared(left, right, by(&["id"])).await.unwrap();
        let hidden = hidden as u64;
        assert_eq!(told(&report), (vec![("FILTER_MISMATCH", hidden)], 30_000 - hidden), "{report:?}");
        let again = source.work().rows - 30_000;
        assert!(again <= most_rows && again >= hidden, "{again} rows for {hidden} keys");
        assert!(report.right.looked_up <= again && report.right.looked_up >= hidden, "{report:?}");
    }
}

/// At full scale ten million rows in 512 MiB.
#[tokio::test]
async fn sides_larger_than_memory_are_sorted_on_disk() {
    let (count, memory) = if full() { (10_000_000u64, 512 << 20) } else { (60_000, 2 << 20) };
    let context = context(Some(memory));
    let plan = |changed: &str| {
        let sql = format!(
            "SELECT id, CASE WHEN {changed} THEN -1 ELSE id * 2 END AS v, 'name of ' || id AS name
             FROM (SELECT value * 7919 % {count} AS id FROM generate_series(1, {count}))"
        );
        let context = context.clone();
        async move { context.sql(&sql).await.unwrap().into_unoptimized_plan() }
    };
    let of = |plan: datafusion::logical_expr::LogicalPlan| {
        let fields = plan.schema().fields().iter();
        let columns = fields.map(|f| Column::new(f.name(), f.data_type().clone())).collect();
        Side { columns, rows: SideRows::Plan(plan), ..side("s", &batch(vec![("id", longs([]))])) }
    };
    let (left, right) = (of(plan("false").await), of(plan("id % 30000 = 5").await));
    let report = Comparison::plan(left, right, by(&["id"]), &context.state()).await.unwrap().run().await.unwrap();
    let changed = count.div_ceil(30_000) - u64::from(count % 30_000 > 0 && count % 30_000 <= 5);
    assert_eq!(told(&report), (vec![("DIFFERENT", changed)], count - changed), "{report:?}");
    assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
}

#[tokio::test]
async fn many_differences_keep_few_examples_and_exact_counts() {
    let count = if full() { 1_000_000 } else { 200_000 };
    let left = side("l", &batch(vec![("id", longs(0..count)), ("v", longs(0..count))]));
    let right = side("r", &batch(vec![("id", longs(0..count)), ("v", longs((0..count).map(|v| v + 1)))]));
    let report = compared(left.clone(), right.clone(), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("DIFFERENT", count as u64)], 0));
    assert_eq!((report.examples.len(), report.columns[0].delta.clone()), (10, Some(format!("-{count}"))));
    let early = Options { stop_after: Some(1), ..by(&["id"]) };
    let report = compared(left.clone(), right.clone(), early).await.unwrap();
    assert!(report.stopped && report.line.contains("at least"), "{report}");
    assert!(report.count(Class::Different).findings < count as u64);
    // every finding goes to whoever takes them
    let taken = Arc::new(AtomicU64::new(0));
    let count_them = Arc::clone(&taken);
    let sink: Sink = Box::new(move |_| {
        count_them.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    compared(left, right, Options { sink: Some(sink), ..by(&["id"]) }).await.unwrap();
    assert_eq!(taken.load(Ordering::Relaxed), count as u64);
}

#[tokio::test]
async fn a_sample_takes_the_same_keys_of_both_sides_and_never_says_equal() {
    let left = side("l", &rows(20_000, |id| id));
    let source = Side::of_source(Arc::new(Memory::new(rows(20_000, |id| id), "id")));
    let options = || Options { sample: Some(50_000), ..by(&["id"]) };
    let report = compared(left.clone(), source, options()).await.unwrap();
    assert_eq!(report.verdict, Verdict::NoDifferenceInSample);
    assert!((700..1_300).contains(&report.left.rows) && report.left.rows == report.right.rows, "{report:?}");
    let other = side("r", &rows(20_000, |id| id + 1));
    assert_eq!(compared(left, other, options()).await.unwrap().verdict, Verdict::Different);
}

#[tokio::test]
async fn a_comparison_goes_on_from_what_is_done_of_the_same_sides() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.json");
    let count = 120_000;
    let left = side("l", &rows(count, |id| id));
    let make =
        || Arc::new(Memory::new(rows(count, |id| if id == 300 || id == 350_000 / 3 * 3 { 0 } else { id }), "id"));
    let options = || Options { progress: Some(path.clone()), ..by(&["id"]) };
    let source = make();
    let whole = compared(left.clone(), Side::of_source(source), options()).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["segments"].as_array().unwrap().len(), 3, "two of 50 000 keys and the rest");
    // as if it had died behind the first segment
    let first = kept["segments"][0].clone();
    assert_eq!((&first["left_rows"], &first["differences"]), (&50_000.into(), &1.into()));
    let stopped = interrupted(&left, &path).await;
    assert!(stopped, "nothing was kept");
    let source = make();
    let resumed = compared(left.clone(), Side::of_source(source.clone()), options()).await.unwrap();
    assert_eq!((&resumed.classes, &resumed.columns), (&whole.classes, &whole.columns));
    assert!(resumed.notes.iter().any(|note| note.contains("went on")), "{resumed:?}");
    assert!(source.work().rows < 120_000, "the source is asked for the rest only");
    // another state of the source, another question
    let mut moved = Memory::new(rows(count, |id| id), "id");
    moved.position.position = "4".into();
    let error = compared(left.clone(), Side::of_source(Arc::new(moved)), options()).await.unwrap_err();
    assert_eq!(error.code(), "OtherComparison");
    assert!(error.to_string().contains("Memory 1 at 4"), "{error}");
    let sampled = Options { sample: Some(5), ..options() };
    assert_eq!(compared(left, Side::of_source(make()), sampled).await.unwrap_err().code(), "OtherComparison");
}

/// Leaves the progress of a run whose source ends in an error behind its first segment; whether there is any.
async fn interrupted(left: &Side, path: &std::path::Path) -> bool {
    std::fs::remove_file(path).unwrap();
    let count = 120_000;
    let source = Memory::new(rows(count, |id| if id == 300 || id == 350_000 / 3 * 3 { 0 } else { id }), "id");
    let options = Options { progress: Some(path.to_path_buf()), ..by(&["id"]) };
    let died: Sink = Box::new(|example| match example.key_json().contains("349998") {
        true => Err(crate::error::Error::unavailable("the connection is gone")),
        false => Ok(()),
    });
    let options = Options { sink: Some(died), ..options };
    let error = compared(left.clone(), Side::of_source(Arc::new(source)), options).await.unwrap_err();
    assert_eq!(error.kind(), crate::error::ErrorKind::Unavailable);
    path.is_file()
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_gives_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.csv");
    std::fs::write(&path, "id\n1\n").unwrap();
    let state = FileState::of(&path).await.unwrap();
    assert!(state.to_string().contains("sha256 "), "{state}");
    let rows = side("l", &batch(vec![("id", longs([1]))]));
    let watched = || Side { guards: vec![Guard::File(state.clone())], ..rows.clone() };
    assert_eq!(compared(watched(), rows.clone(), by(&["id"])).await.unwrap().verdict, Verdict::Equal);
    std::fs::write(&path, "id\n2\n").unwrap();
    assert_eq!(compared(watched(), rows.clone(), by(&["id"])).await.unwrap_err().code(), "FileChanged");
    assert_eq!(FileState::of(&dir.path().join("none")).await.unwrap_err().code(), "FileNotFound");
}
