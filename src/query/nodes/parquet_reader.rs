//! How DataFusion's Parquet source reads the bytes of our files: through the file's own store, with the footers that the
//! room `file` keeps, and with our word for a file that is gone.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, MetadataFetch};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;

use super::merge_source::FileRef;
use super::read_exec::named_in;
use crate::error::{Error, Result};
use crate::file::{Access, DATA_FILE_MISSING, FileEnv, check_row_groups, footer};
use crate::scan::ScanKind;
use crate::snapshot::Pin;
use crate::storage::RequestMeter;

/// Makes readers of the files of one pin.
#[derive(Debug)]
pub struct LakeReaderFactory {
    /// The pin.
    pub pin: Arc<Pin>,
    /// What is read of it.
    pub kind: ScanKind,
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
        let (entry, place) = (&file_of_table.entry.file, &file_of_table.location);
        Ok(Box::new(LakeReader {
            pin: Arc::clone(&self.pin),
            files: Arc::clone(&self.files),
            access: Access::of(&file_of_table.storage, &self.meter, place, entry.file_size),
            kind: self.kind,
            rows: entry.row_count,
            metrics: ParquetFileMetrics::new(partition_index, file.object_meta.location.as_ref(), metrics),
        }))
    }
}

struct LakeReader {
    pin: Arc<Pin>,
    files: Arc<FileEnv>,
    access: Access,
    /// What is read of the table.
    kind: ScanKind,
    /// Rows by the manifest entry.
    rows: i64,
    metrics: ParquetFileMetrics,
}

impl LakeReader {
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> ParquetResult<Vec<Bytes>> {
        let bytes = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.end.saturating_sub(range.start)));
        self.metrics.bytes_scanned.add(usize::try_from(bytes).unwrap_or(usize::MAX));
        match self.access.read_all(ranges).await {
            Ok(read) => Ok(read),
            Err(error) => Err(ParquetError::External(Box::new(self.told(error).await))),
        }
    }

    async fn read_range(&self, range: Range<u64>) -> ParquetResult<Bytes> {
        let mut read = self.read_ranges(&[range]).await?;
        read.pop().ok_or_else(|| ParquetError::General("no bytes were read".to_string()))
    }

    /// An error of the file in the words of its pin, which may have expired meanwhile.
    async fn told(&self, error: Error) -> Error {
        if error.code() == DATA_FILE_MISSING {
            return self.pin.missing_file(self.access.location()).await;
        }
        named_in(error, &self.pin, self.kind)
    }

    /// A footer that counts what the manifest does. Looked at each time: who read it first may not have asked.
    fn checked(&self, footer: Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>> {
        let rows = footer.file_metadata().num_rows();
        if rows != self.rows {
            return Err(self.access.damaged(format!("it has {rows} rows where the manifest says {}", self.rows)));
        }
        check_row_groups(&footer).map_err(|what| self.access.damaged(what))?;
        Ok(footer)
    }
}

/// Reads for the footer.
struct FooterFetch<'a>(&'a LakeReader);

impl MetadataFetch for FooterFetch<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.0.read_range(range).boxed()
    }
}

impl AsyncFileReader for LakeReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.read_range(range).boxed()
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
            let footer = match footer(&this.files, &this.access, FooterFetch(this)).await {
                Ok(footer) => this.checked(footer),
                Err(error) => Err(this.access.or_of_entry(error).await),
            };
            footer
                .map_err(|error| named_in(error, &this.pin, this.kind))
                .map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }
}
