//! A read as a stream: a task that asks the database, and whoever polls its batches. Who stops polling stops the task.

use std::sync::Arc;
use std::task::Poll;

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use tokio::sync::mpsc;

use super::cells::Chunk;
use super::{SourceColumn, SourceOrder, faults};
use crate::error::{Error, Result};

/// Where a task puts its batches.
pub(super) struct Feed {
    sender: mpsc::Sender<Result<Option<RecordBatch>>>,
    schema: SchemaRef,
    order: Option<OrderCheck>,
}

impl Feed {
    /// Gives a chunk on; false: nobody wants it any more.
    pub(super) async fn give(&mut self, chunk: Chunk) -> Result<bool> {
        if chunk.rows() == 0 {
            return Ok(!self.sender.is_closed());
        }
        let unreadable = self.order.as_ref().is_some_and(|order| chunk.has_unreadable(&order.at));
        let batch = chunk.finish(&self.schema)?;
        if let Some(order) = &mut self.order {
            order.check(&batch, unreadable)?;
        }
        Ok(self.sender.send(Ok(Some(batch))).await.is_ok())
    }

    /// Waits until nobody wants any more.
    pub(super) async fn unwanted(&self) {
        self.sender.closed().await;
    }

    /// Tells it to others, who keep nothing open by it.
    #[cfg(feature = "mysql")]
    pub(super) fn wanted(&self) -> Wanted {
        Wanted(self.sender.downgrade())
    }
}

/// Whether somebody still wants what a read gives.
#[cfg(feature = "mysql")]
#[derive(Debug, Clone)]
pub(super) struct Wanted(mpsc::WeakSender<Result<Option<RecordBatch>>>);

#[cfg(feature = "mysql")]
impl Wanted {
    pub(super) fn is_so(&self) -> bool {
        self.0.upgrade().is_some_and(|sender| !sender.is_closed())
    }
}

/// Starts a task when the stream is first polled; the stream ends well only when the task says so.
pub(super) fn stream<F, Fut>(schema: SchemaRef, order: Option<OrderCheck>, read: F) -> SendableRecordBatchStream
where
    F: FnOnce(Feed) -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(1);
    let ending = sender.clone();
    let feed = Feed { sender, schema: Arc::clone(&schema), order };
    let mut start = Some(move || async move {
        let end = read(feed).await.map(|()| None);
        let _ = ending.send(end).await;
    });
    let mut over = false;
    let batches = stream::poll_fn(move |context| {
        if let Some(start) = start.take() {
            tokio::spawn(start());
        }
        if over {
            return Poll::Ready(None);
        }
        receiver.poll_recv(context).map(|message| {
            let item = match message {
                Some(Ok(Some(batch))) => return Some(Ok(batch)),
                Some(Ok(None)) => None,
                Some(Err(error)) => Some(Err(DataFusionError::from(error))),
                // its task is gone without a word: the rows are not all
                None => Some(Err(Error::internal("the reader of the source stopped").into())),
            };
            over = true;
            item
        })
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Watches that texts come byte by byte: collations by the name of binary pad with blanks.
pub(super) struct OrderCheck {
    source: String,
    names: Vec<String>,
    at: Vec<usize>,
    converter: RowConverter,
    last: Option<OwnedRow>,
}

impl OrderCheck {
    /// A check for reads in the order of these columns, where it is needed and they are all read.
    pub(super) fn of(
        source: &str,
        read: &[&SourceColumn],
        ordered_by: &[&SourceColumn],
        nulls_first: bool,
    ) -> Result<Option<Self>> {
        let needed = |column: &&SourceColumn| column.data_type == DataType::Utf8 && column.order == SourceOrder::Values;
        let at = ordered_by.iter().map(|column| read.iter().position(|other| other.name == column.name));
        let Some(at) = at.collect::<Option<Vec<usize>>>().filter(|_| ordered_by.iter().any(needed)) else {
            return Ok(None);
        };
        let options = SortOptions { descending: false, nulls_first };
        let fields = ordered_by.iter().map(|column| SortField::new_with_options(column.data_type.clone(), options));
        Ok(Some(Self {
            source: source.to_string(),
            names: ordered_by.iter().map(|column| column.name.clone()).collect(),
            at,
            converter: RowConverter::new(fields.collect())?,
            last: None,
        }))
    }

    /// `unreadable`: some keys are NULL that the database has elsewhere, so nothing is known of this batch.
    fn check(&mut self, batch: &RecordBatch, unreadable: bool) -> Result<()> {
        if unreadable {
            self.last = None;
            return Ok(());
        }
        let keys: Vec<_> = self.at.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let rows = self.converter.convert_columns(&keys)?;
        let mut before = self.last.as_ref().map(OwnedRow::row);
        for row in rows.iter() {
            if before.is_some_and(|before| before > row) {
                return Err(faults::key_order(&self.source, &self.names));
            }
            before = Some(row);
        }
        self.last = before.map(|row| row.owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::StreamExt;

    use super::super::cells::{Cell, schema_of};
    use super::super::manners::{Manners, Pace};
    use super::*;

    fn text_column() -> SourceColumn {
        SourceColumn {
            name: "k".into(),
            data_type: DataType::Utf8,
            declared: "varchar(9)".into(),
            nullable: false,
            order: SourceOrder::Values,
        }
    }

    async fn fed(chunks: &'static [&'static [&'static str]], ends: bool) -> Vec<std::result::Result<usize, String>> {
        let column = text_column();
        let order = OrderCheck::of("s", &[&column], &[&column], true).expect("texts can be ordered");
        let rows = stream(schema_of(&[&column], false), order, move |mut feed| async move {
            for texts in chunks {
                let mut chunk = Chunk::new(&[&text_column()])?;
                for text in *texts {
                    chunk.push(std::iter::once(Cell::Text(text)))?;
                }
                feed.give(chunk).await?;
            }
            assert!(ends, "the task of this test goes down");
            Ok(())
        });
        rows.map(|batch| batch.map(|batch| batch.num_rows()).map_err(|e| Error::from(e).code().to_string()))
            .collect()
            .await
    }

    #[tokio::test]
    async fn who_stops_polling_is_not_waited_for_between_two_chunks() {
        let (told, heard) = tokio::sync::oneshot::channel();
        let column = text_column();
        let mut rows = stream(schema_of(&[&column], false), None, move |mut feed| async move {
            let manners = Manners { pause: Duration::from_secs(3_600), ..Manners::default() };
            let mut chunk = Chunk::new(&[&text_column()])?;
            chunk.push(std::iter::once(Cell::Text("a")))?;
            feed.give(chunk).await?;
            let wanted = Pace::new(&manners).rest(&feed).await;
            told.send(wanted).expect("the test listens");
            Ok(())
        });
        assert!(rows.next().await.is_some_and(|batch| batch.is_ok()));
        drop(rows);
        let wanted = tokio::time::timeout(Duration::from_secs(20), heard).await.expect("the pause ends").expect("told");
        assert!(!wanted);
    }

    #[tokio::test]
    async fn texts_out_of_order_and_tasks_that_go_down_are_errors() {
        assert_eq!(fed(&[&["a", "a"], &["a", "b"]], true).await, [Ok(2), Ok(2)]);
        let refused = || Err("SourceKeyOrder".to_string());
        assert_eq!(fed(&[&["a", "a\t"]], true).await, [Ok(2)]);
        assert_eq!(fed(&[&["a\t", "a"]], true).await, [refused()]);
        assert_eq!(fed(&[&["b"], &["a"]], true).await, [Ok(1), refused()]);
        assert_eq!(fed(&[&["b"]], false).await, [Ok(1), Err("Internal".to_string())]);
    }
}
