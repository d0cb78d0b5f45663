//! What a format's reader is asked for and what it gives.

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use futures::stream::BoxStream;

use crate::error::Result;

/// What is read of a file, in terms of the file.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Names of top-level columns, each once.
    pub(crate) columns: Vec<String>,
    /// Wanted rows; a reader may use it or leave it to the caller.
    pub(crate) live: Option<BooleanBuffer>,
    /// Rows of a batch at most.
    pub(crate) batch_size: usize,
}

/// Rows as the decoder gives them: one entry per requested column, None when the file does not hold it.
#[derive(Debug)]
pub(crate) struct StoredBatch {
    pub(crate) columns: Vec<Option<ArrayRef>>,
    pub(crate) rows: usize,
}

/// An open file.
pub(crate) struct Stored {
    /// Physical rows, when the format says so up front.
    pub(crate) rows: Option<u64>,
    /// Whether only live rows come, instead of all.
    pub(crate) masked: bool,
    /// Rows in file order.
    pub(crate) batches: BoxStream<'static, Result<StoredBatch>>,
}
