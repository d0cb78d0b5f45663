//! From a task to batches.

use arrow::array::RecordBatch;
use futures::stream::BoxStream;

use super::task::{FileEnv, FileTask};
use crate::error::{Error, Result};

/// Opens a file and streams the wanted rows in file order, batches of the task's schema of at most the batch size.
/// Dropping the stream stops all reading. Nothing is read before the footer, which is read here.
///
/// # Errors
/// `DataFileMissing` when the file is gone; Corrupt, naming the file, when it cannot be decoded or does not hold what
/// the manifest says; Unsupported for formats, shredded variants and casts that do not exist.
pub async fn open(env: &FileEnv, task: &FileTask) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let _ = (env, task);
    Err(Error::internal("not built yet"))
}
