//! Rows of one side whose key the other side does not show: kept on disk until it is known whether the other side has
//! them beside its condition.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::{SendableRecordBatchStream, SpillFile, SpillWriter};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use super::cursor::{At, Loaded};
use crate::error::{Error, Result};

/// Rows that wait before they are written.
const ROWS: usize = 4096;
/// Batches that they may hold in memory.
const BATCHES: usize = 16;

/// A file, and what writes it.
type Written = (Arc<dyn SpillFile>, StreamWriter<Box<dyn SpillWriter>>);

/// Rows of a side that wait.
pub struct Pending {
    schema: SchemaRef,
    disk: Arc<DiskManager>,
    file: Option<Written>,
    batches: Vec<Arc<Loaded>>,
    rows: Vec<(usize, usize)>,
    /// How many there are.
    pub count: u64,
}

impl Pending {
    /// None yet.
    pub fn new(schema: &SchemaRef, disk: &Arc<DiskManager>) -> Self {
        Self {
            schema: Arc::clone(schema),
            disk: Arc::clone(disk),
            file: None,
            batches: Vec::new(),
            rows: Vec::new(),
            count: 0,
        }
    }

    /// One more, whose key is not below that of the last.
    pub fn push(&mut self, row: &At) -> Result<()> {
        if !self.batches.last().is_some_and(|last| Arc::ptr_eq(last, &row.batch)) {
            self.batches.push(Arc::clone(&row.batch));
        }
        self.rows.push((self.batches.len() - 1, row.row));
        self.count += 1;
        if self.rows.len() >= ROWS || self.batches.len() >= BATCHES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().map(|loaded| &loaded.batch).collect();
        let batch = interleave_record_batch(&batches, &self.rows)?;
        let (_, writer) = match &mut self.file {
            Some(file) => file,
            none => {
                let file = self.disk.create_tmp_file("rows of one side alone")?;
                let writer = StreamWriter::try_new(file.open_writer()?, &self.schema)?;
                none.insert((file, writer))
            }
        };
        writer.write(&batch)?;
        self.batches.clear();
        self.rows.clear();
        Ok(())
    }

    /// The rows, in the order they came; none are left.
    pub fn take(&mut self) -> Result<Waiting> {
        self.write()?;
        self.count = 0;
        let Some((file, mut writer)) = self.file.take() else {
            return Ok(Waiting { schema: Arc::clone(&self.schema), file: None });
        };
        writer.finish()?;
        let mut inner = writer.into_inner()?;
        inner.finish()?;
        Ok(Waiting { schema: Arc::clone(&self.schema), file: Some(file) })
    }
}

/// Rows on disk.
pub struct Waiting {
    schema: SchemaRef,
    file: Option<Arc<dyn SpillFile>>,
}

impl Waiting {
    /// Reads them.
    pub fn rows(&self) -> Result<SendableRecordBatchStream> {
        let batches: Box<dyn Iterator<Item = _> + Send> = match &self.file {
            None => Box::new(std::iter::empty()),
            Some(file) => {
                let path =
                    file.path().ok_or_else(|| Error::internal("rows were put aside where they cannot be read"))?;
                let opened = File::open(path).map_err(|error| {
                    Error::unavailable("rows put aside cannot be read").with_code("Storage").with_source(error)
                })?;
                let reader = StreamReader::try_new(BufReader::new(opened), None)?;
                // the file stays as long as it is read
                let held = Arc::clone(file);
                Box::new(reader.map(move |batch| {
                    let _held = &held;
                    batch.map_err(DataFusionError::from)
                }))
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::iter(batches))))
    }
}
