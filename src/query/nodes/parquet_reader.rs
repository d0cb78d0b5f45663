//! How DataFusion's Parquet source reads the bytes of our files: through the file's own store, with the footers that the
//! room `file` keeps, and with our word for a file that is gone.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, MetadataFetch};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;

use super::merge_source::FileRef;
use crate::error::{Error, Result};
use crate::file::{FileEnv, check_row_groups, guarded, load_footer};
use crate::scan::PlannedFile;
use crate::snapshot::Pin;
use crate::storage::{RequestMeter, storage_error};

/// Makes readers of the files of one pin.
#[derive(Debug)]
pub struct LakeReaderFactory {
    /// The pin.
    pub pin: Arc<Pin>,
    /// Footers.
    pub files: Arc<FileEnv>,
    /// Counts the requests.
    pub meter: RequestMeter,
}

impl ParquetFileReaderFactory for LakeReaderFactory {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> DfResult<Box<dyn AsyncFileReader + Send>> {
        let Some(reference) = file.extension::<FileRef>() else {
            return Err(Error::internal("a file of a scan does not say which file of the table it is").into());
        };
        let file_of_table = Arc::clone(reference.planned().map_err(DataFusionError::from)?);
        Ok(Box::new(LakeReader {
            pin: Arc::clone(&self.pin),
            files: Arc::clone(&self.files),
            store: file_of_table.storage.metered_store(&self.meter),
            file: file_of_table,
            metrics: ParquetFileMetrics::new(partition_index, file.object_meta.location.as_ref(), metrics),
        }))
    }
}

struct LakeReader {
    pin: Arc<Pin>,
    files: Arc<FileEnv>,
    store: Arc<dyn ObjectStore>,
    file: Arc<PlannedFile>,
    metrics: ParquetFileMetrics,
}

impl LakeReader {
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> ParquetResult<Vec<Bytes>> {
        let bytes: u64 = ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        self.metrics.bytes_scanned.add(usize::try_from(bytes).unwrap_or(usize::MAX));
        match self.store.get_ranges(self.file.location.path(), ranges).await {
            Ok(read) => Ok(read),
            Err(object_store::Error::NotFound { .. }) => {
                Err(ParquetError::External(Box::new(self.pin.missing_file(&self.file.location).await)))
            }
            Err(error) => Err(ParquetError::External(Box::new(self.failed(error).await))),
        }
    }
}

impl LakeReader {
    /// Why a read failed: the file is not as long as its entry says, or the store does not answer.
    async fn failed(&self, error: object_store::Error) -> Error {
        let told = self.file.entry.file.file_size;
        match self.store.head(self.file.location.path()).await {
            Ok(meta) if meta.size < told => {
                self.damaged(format!("it has {} bytes where the manifest says {told}", meta.size))
            }
            _ => return storage_error(error, "reading the data file", &self.file.location),
        }
        .with_source(error)
    }

    /// A footer that counts what the manifest does. Looked at each time: who read it first may not have asked.
    fn checked(&self, footer: Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>> {
        let (rows, told) = (footer.file_metadata().num_rows(), self.file.entry.file.row_count);
        if rows != told {
            return Err(self.damaged(format!("it has {rows} rows where the manifest says {told}")));
        }
        check_row_groups(&footer).map_err(|what| self.damaged(what))?;
        Ok(footer)
    }

    fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("the data file is damaged: {what}"))
            .with_code("DataFileCorrupt")
            .with_context("table", self.pin.table.name())
            .with_context("file", &self.file.location)
            .or_restore()
    }
}

/// Reads for the footer.
struct FooterFetch<'a>(&'a LakeReader);

impl MetadataFetch for FooterFetch<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let mut read = self.0.read_ranges(&[range]).await?;
            read.pop().ok_or_else(|| ParquetError::General("no bytes were read".to_string()))
        }
        .boxed()
    }
}

impl AsyncFileReader for LakeReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let mut read = self.read_ranges(&[range]).await?;
            read.pop().ok_or_else(|| ParquetError::General("no bytes were read".to_string()))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move { self.read_ranges(&ranges).await }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let this: &Self = self;
            let size = this.file.entry.file.file_size;
            let key = (this.file.location.clone(), size);
            let footer = this
                .files
                .footers()
                .get_or_load(&key, || async {
                    let read = load_footer(FooterFetch(this), size).map_err(|error| unwrapped(error, &this.file));
                    let footer = guarded(read, |words| this.damaged(format!("its decoder gave up: {words}"))).await?;
                    let bytes = footer.memory_size();
                    Ok((Arc::new(footer), bytes))
                })
                .await
                .and_then(|footer| this.checked(footer));
            footer.map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }
}

/// Our own error out of Parquet's, or a damaged file.
fn unwrapped(error: ParquetError, file: &PlannedFile) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<Error>() {
            Ok(own) => *own,
            Err(source) => Error::unavailable(source.to_string()).with_source(source),
        },
        other => Error::corrupt(format!("the Parquet footer cannot be read: {other}"))
            .with_context("file", &file.location)
            .or_restore()
            .with_source(other),
    }
}
