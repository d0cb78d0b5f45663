//! Batches as a stream of Arrow's interprocess format.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;

use super::Renderer;

/// Rows as Arrow writes them.
pub struct Arrow {
    schema: SchemaRef,
    writer: Option<StreamWriter<Vec<u8>>>,
}

impl Arrow {
    /// A stream of this schema.
    pub fn new(schema: &SchemaRef) -> Self {
        Self { schema: schema.clone(), writer: None }
    }

    /// Hands on what the writer made.
    fn drain(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) => out.write_all(&std::mem::take(writer.get_mut())),
            None => Ok(()),
        }
    }

    fn writer(&mut self) -> io::Result<&mut StreamWriter<Vec<u8>>> {
        self.writer.as_mut().ok_or_else(|| io::Error::other("the stream has not begun"))
    }
}

/// The error of a writer over memory.
pub fn failed(error: ArrowError) -> io::Error {
    io::Error::other(error)
}

impl Renderer for Arrow {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.writer = Some(StreamWriter::try_new(Vec::new(), &self.schema).map_err(failed)?);
        self.drain(out)
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.writer()?.write(batch).map_err(failed)?;
        self.drain(out)
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.writer()?.finish().map_err(failed)?;
        self.drain(out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::ipc::reader::StreamReader;

    use super::super::{Format, Limits, Style, to_bytes};
    use super::*;

    #[test]
    fn stream_reads_back_as_it_was() {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("订单"), Some("")]));
        let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("name", names, true)]).unwrap();
        let bytes = to_bytes(Format::Arrow, &[batch.clone(), batch.slice(1, 1)], &Style::default(), Limits::NONE);
        let read: Vec<RecordBatch> =
            StreamReader::try_new(bytes.as_slice(), None).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(read, [batch.clone(), batch.slice(1, 1)]);
    }
}
