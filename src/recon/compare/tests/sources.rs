//! What a source may not be asked for, and what is let go of it.

use std::fmt;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};

use arrow::array::{AsArray, Decimal128Array, Int8Array};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use super::passes::{Memory, rows};
use super::*;
use crate::error::{Error, ErrorKind};
use crate::recon::source::{
    Source, SourceColumn, SourceOrder, SourcePosition, SourceRead, SourceWork, UNREADABLE, unreadable_field,
};

/// A source with one connection, that a read holds to its end, and that refuses a text it cannot have.
struct Strict {
    memory: Memory,
    alone: bool,
    refused: &'static str,
    read: Mutex<Weak<()>>,
}

impl Strict {
    fn new(memory: Memory) -> Self {
        Self { memory, alone: false, refused: "-", read: Mutex::default() }
    }
}

impl fmt::Debug for Strict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

#[async_trait]
impl Source for Strict {
    fn name(&self) -> String {
        self.memory.name()
    }

    fn columns(&self) -> &[SourceColumn] {
        self.memory.columns()
    }

    fn key(&self) -> &[String] {
        self.memory.key()
    }

    fn position(&self) -> &SourcePosition {
        self.memory.position()
    }

    async fn estimated_rows(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn is_indexed(&self, ordered_by: &[String]) -> Result<bool> {
        self.memory.is_indexed(ordered_by).await
    }

    async fn shares_connection(&self, _: &[String]) -> Result<bool> {
        Ok(!self.alone)
    }

    fn holds(&self, _: &str, value: &ScalarValue) -> bool {
        *value != ScalarValue::from(self.refused)
    }

    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        if self.alone && self.read.lock().upgrade().is_some() {
            return Err(Error::new(ErrorKind::Conflict, "another read has the connection").with_code("SourceBusy"));
        }
        if read.keys.iter().chain(&read.after).flatten().any(|value| !self.holds("id", value)) {
            return Err(Error::invalid("invalid input syntax").with_code("SourceStatement"));
        }
        let token = Arc::new(());
        *self.read.lock() = Arc::downgrade(&token);
        let mut token = Some(token);
        let mut rows = self.memory.read(read).await?;
        let schema = rows.schema();
        let rows = stream::poll_fn(move |context| {
            let item = ready!(rows.poll_next_unpin(context));
            if item.is_none() {
                drop(token.take());
            }
            Poll::Ready(item)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn work(&self) -> SourceWork {
        self.memory.work()
    }
}

#[tokio::test]
async fn a_source_with_one_connection_is_not_asked_while_it_is_read() {
    let count = 60_000;
    let right = |hidden: i64| {
        let memory = Memory::new(rows(count, |id| if id == 30 || id >= hidden { -1 } else { 1 }), "id");
        filtered(Side::of_source(Arc::new(Strict { alone: true, ..Strict::new(memory) })), "v >= 0")
    };
    // keys of one side alone are looked for when it ends early
    let left = rows(count, |id| if id == 300 { 2 } else { 1 });
    let is_kept = left.column(0).as_primitive::<Int64Type>().iter().map(|id| Some(id != Some(60)));
    let left = arrow::compute::filter_record_batch(&left, &is_kept.collect()).unwrap();
    let options = Options { stop_after: Some(1), ..by(&["id"]) };
    let report = compared(filtered(side("lake", &left), "v >= 0"), right(i64::MAX), options).await.unwrap();
    assert!(report.stopped && report.right.streamed, "{report:?}");
    let expected = [("MISSING_IN_LAKE", 1), ("DIFFERENT", 1), ("FILTER_MISMATCH", 1)];
    assert_eq!(told(&report).0, expected, "{report:?}");
    // and at the end of each segment of one that is kept
    let dir = tempfile::tempdir().unwrap();
    let left = || filtered(side("lake", &rows(count, |id| if id == 90 { -1 } else { 1 })), "v >= 0");
    let options = Options { progress: Some(dir.path().join("p.json")), ..by(&["id"]) };
    let report = compared(left(), right(179_700), options).await.unwrap();
    assert_eq!((told(&report).0, report.right.streamed), (vec![("FILTER_MISMATCH", 102)], false), "{report:?}");
    // without either it is streamed
    let report = compared(left(), right(179_700), by(&["id"])).await.unwrap();
    assert_eq!((told(&report).0, report.right.streamed), (vec![("FILTER_MISMATCH", 102)], true), "{report:?}");
}

#[tokio::test]
async fn a_key_that_the_source_cannot_have_is_not_there() {
    let keyed = |keys: &[&'static str]| {
        batch(vec![("id", texts(keys.iter().map(|key| Some(*key)))), ("v", longs(keys.iter().map(|_| 1)))])
    };
    let memory = Memory::new(keyed(&["a", "c"]), "id");
    let right = Side::of_source(Arc::new(Strict { refused: "test-1", ..Strict::new(memory) }));
    let left = side("lake", &keyed(&["a", "b", "test-1"]));
    let report = compared(filtered(left, "v = 1"), filtered(right, "v = 1"), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("MISSING_IN_LAKE", 1), ("EXTRA_IN_LAKE", 2)], 1), "{report:?}");
}

/// Compares to an end that never came, then goes on; what a run without a break tells.
async fn broken_off(left: &Side, right: impl Fn() -> Side, breaks: (Class, &'static str)) -> [Report; 2] {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let kept = || Options { progress: Some(path.clone()), ..by(&["id"]) };
    let whole = compared(left.clone(), right(), by(&["id"])).await.unwrap();
    let died: Sink =
        Box::new(move |example| match (example.class, example.key[0].1.as_deref()) == (breaks.0, Some(breaks.1)) {
            true => Err(Error::unavailable("the connection is gone")),
            false => Ok(()),
        });
    let error = compared(left.clone(), right(), Options { sink: Some(died), ..kept() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let resumed = compared(left.clone(), right(), kept()).await.unwrap();
    assert!(resumed.notes.iter().any(|note| note.starts_with("resumed from")), "{resumed:?}");
    [resumed, whole]
}

#[tokio::test]
async fn a_comparison_goes_on_from_a_key_that_the_source_has_no_exact_value_for() {
    // the segment ends in a key of the lake alone, which rounds up to one that the source has
    let keys = |last: i128, scale: i8, unit: i128| -> ArrayRef {
        let keys = (1..50_000).map(|id| id * unit).chain([last]).chain((50_001..51_000).map(|id| id * unit));
        let keys: Vec<i128> = keys.collect();
        Arc::new(Decimal128Array::from(keys).with_precision_and_scale(20, scale).unwrap())
    };
    let left = side("lake", &batch(vec![("id", keys(500_000_050, 4, 10_000))]));
    let right = || Side::of_source(Arc::new(Memory::new(batch(vec![("id", keys(5_000_001, 2, 100))]), "id")));
    let [resumed, whole] = broken_off(&left, right, (Class::MissingInLake, "50000.01")).await;
    assert_eq!(told(&whole), (vec![("MISSING_IN_LAKE", 1), ("EXTRA_IN_LAKE", 1)], 50_998));
    assert_eq!((&resumed.classes, &resumed.line), (&whole.classes, &whole.line));
}

#[tokio::test]
async fn a_comparison_goes_on_from_a_key_that_the_source_cannot_hold() {
    let left = side("lake", &batch(vec![("id", longs(0..60_000))]));
    let ids: ArrayRef = Arc::new(Int8Array::from_iter_values(0..100));
    let right = || Side::of_source(Arc::new(Memory::new(batch(vec![("id", Arc::clone(&ids))]), "id")));
    let [resumed, whole] = broken_off(&left, right, (Class::ExtraInLake, "55000")).await;
    assert_eq!(told(&whole), (vec![("EXTRA_IN_LAKE", 59_900)], 100));
    assert_eq!((&resumed.classes, &resumed.line), (&whole.classes, &whole.line));
}

/// Batches that are still there, and the most at one time.
#[derive(Debug, Default)]
struct Alive(AtomicUsize, AtomicUsize);

struct Owned(Buffer, Arc<Alive>);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.1.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A source of many batches, that are made when they are asked for.
#[derive(Debug)]
struct Long {
    columns: Vec<SourceColumn>,
    position: SourcePosition,
    batches: i64,
    alive: Arc<Alive>,
}

impl Long {
    fn new(batches: i64) -> Self {
        let memory = Memory::new(batch(vec![("id", longs([])), ("v", longs([]))]), "id");
        Self { columns: memory.columns, position: memory.position, batches, alive: Arc::default() }
    }
}

#[async_trait]
impl Source for Long {
    fn name(&self) -> String {
        "memory://db/long".to_string()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn key(&self) -> &[String] {
        &[]
    }

    fn position(&self) -> &SourcePosition {
        &self.position
    }

    async fn estimated_rows(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn is_indexed(&self, _: &[String]) -> Result<bool> {
        Ok(true)
    }

    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        assert!(self.columns.iter().all(|column| column.order == SourceOrder::Values));
        let mut fields: Vec<Field> = read.columns.iter().map(|name| Field::new(name, DataType::Int64, true)).collect();
        fields.extend(read.unreadable.then(unreadable_field));
        let schema = Arc::new(Schema::new(fields));
        let (alive, given) = (Arc::clone(&self.alive), Arc::clone(&schema));
        let rows = (0..self.batches).map(move |at| {
            let columns = given.fields().iter().map(|field| -> ArrayRef {
                match field.name().as_str() {
                    "id" => {
                        let now = alive.0.fetch_add(1, Ordering::SeqCst) + 1;
                        alive.1.fetch_max(now, Ordering::SeqCst);
                        let ids = Buffer::from_vec((at * 1_000..(at + 1) * 1_000).collect::<Vec<i64>>());
                        let ids = Buffer::from(bytes::Bytes::from_owner(Owned(ids, Arc::clone(&alive))));
                        Arc::new(Int64Array::new(ScalarBuffer::new(ids, 0, 1_000), None))
                    }
                    UNREADABLE => arrow::array::new_null_array(field.data_type(), 1_000),
                    _ => longs((0..1_000).map(|_| 0)),
                }
            });
            RecordBatch::try_new(Arc::clone(&given), columns.collect()).map_err(DataFusionError::from)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(rows))))
    }

    fn work(&self) -> SourceWork {
        SourceWork::default()
    }
}

#[tokio::test]
async fn batches_are_let_go_of_where_few_keys_meet() {
    let batches = if full() { 20_000 } else { 300 };
    // nothing in the lake
    let source = Arc::new(Long::new(batches));
    let none = side("lake", &batch(vec![("id", longs([])), ("v", longs([]))]));
    let report = compared(none, Side::of_source(source.clone()), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("MISSING_IN_LAKE", batches as u64 * 1_000)], 0));
    assert!(report.right.streamed && report.right.rows == batches as u64 * 1_000, "{report:?}");
    let most = source.alive.1.load(Ordering::SeqCst);
    assert!(most < 50, "{most} of {batches} batches were kept");
    // keys that are looked for beside the condition, by reading all of the other side
    let source = Arc::new(Long::new(batches));
    let lone = longs(batches * 1_000..batches * 1_000 + 21_000);
    let left = side("lake", &batch(vec![("id", lone), ("v", longs((0..21_000).map(|_| 1)))]));
    let right = Side::of_source(source.clone());
    let report = compared(filtered(left, "v = 1"), filtered(right, "v = 1"), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("EXTRA_IN_LAKE", 21_000)], 0));
    assert_eq!(report.right.looked_up, batches as u64 * 1_000);
    let most = source.alive.1.load(Ordering::SeqCst);
    assert!(most < 50, "{most} of {batches} batches were kept");
}
