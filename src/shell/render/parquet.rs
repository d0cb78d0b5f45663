//! Batches as a Parquet file, row group by row group.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::Renderer;

/// Bytes of a row group before it is written.
const GROUP_BYTES: usize = 64 << 20;

/// Rows as a Parquet file.
pub struct Parquet {
    schema: SchemaRef,
    writer: Option<ArrowWriter<Vec<u8>>>,
}

impl Parquet {
    /// A file of this schema.
    pub fn new(schema: &SchemaRef) -> Self {
        Self { schema: schema.clone(), writer: None }
    }

    fn writer(&mut self) -> io::Result<&mut ArrowWriter<Vec<u8>>> {
        self.writer.as_mut().ok_or_else(|| io::Error::other("the file has not begun"))
    }
}

/// Hands on what the writer made; its own count of bytes goes on.
fn drain(writer: &mut ArrowWriter<Vec<u8>>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&std::mem::take(writer.inner_mut()))
}

impl Renderer for Parquet {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer =
            ArrowWriter::try_new(Vec::new(), self.schema.clone(), Some(properties)).map_err(io::Error::other)?;
        drain(self.writer.insert(writer), out)
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let writer = self.writer()?;
        writer.write(batch).map_err(io::Error::other)?;
        if writer.in_progress_size() > GROUP_BYTES {
            writer.flush().map_err(io::Error::other)?;
        }
        drain(writer, out)
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let writer = self.writer()?;
        writer.finish().map_err(io::Error::other)?;
        drain(writer, out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::compute::concat_batches;
    use bytes::Bytes;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::super::{Format, Limits, Style, to_bytes};
    use super::*;

    #[test]
    fn file_reads_back_as_it_was() {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter(0..5000));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|i| format!("订单 {i}"))));
        let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("name", names, true)]).unwrap();
        let parts = [batch.slice(0, 3000), batch.slice(3000, 2000)];
        let bytes = Bytes::from(to_bytes(Format::Parquet, &parts, &Style::default(), Limits::NONE));
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
        let read: Vec<RecordBatch> = reader.collect::<Result<_, _>>().unwrap();
        assert_eq!(concat_batches(&batch.schema(), &read).unwrap(), batch);
    }
}
