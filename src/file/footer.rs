//! The footer of a Parquet file: fetched, looked at, decoded.

use bytes::Bytes;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::async_reader::MetadataFetch;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, FooterTail, KeyValue, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataReader, RowGroupMetaData,
};

use crate::spec::parquet_footer::check_parquet_footer;

/// Bytes read from the end at first: most footers fit.
const FOOTER_GUESS: u64 = 64 * 1024;

/// Bytes behind the footer: its length and the file's mark.
const TAIL: u64 = 8;

/// Fetches and decodes the footer of a file of `size` bytes, without page indexes, and without the statistics of column
/// chunks whose nulls are not counted: parquet-mr writes such statistics for long values, and row-group pruning takes a
/// missing count for zero, which would lose the rows of `IS NULL`.
///
/// # Errors
/// What `fetch` fails with; a footer that is torn, encrypted, nested too deeply or counts what it cannot hold.
pub async fn load_footer(mut fetch: impl MetadataFetch, size: u64) -> ParquetResult<ParquetMetaData> {
    let bytes = footer_bytes(&mut fetch, size).await?;
    check_parquet_footer(&bytes).map_err(|error| ParquetError::General(error.message().to_string()))?;
    without_uncounted_nulls(without_arrow_schema(ParquetMetaDataReader::decode_metadata(&bytes)?))
}

/// Without the schema that Arrow's writers leave there as a text of their own. Columns are read by the types of Parquet, and
/// the decoder of that schema panics at types it does not know, as a changed byte makes them.
fn without_arrow_schema(footer: ParquetMetaData) -> ParquetMetaData {
    let file = footer.file_metadata();
    let is_schema = |entry: &KeyValue| entry.key == ARROW_SCHEMA_META_KEY;
    let Some(entries) = file.key_value_metadata().filter(|entries| entries.iter().any(is_schema)) else {
        return footer;
    };
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        Some(entries.iter().filter(|entry| !is_schema(entry)).cloned().collect()),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let groups = footer.into_builder().take_row_groups();
    ParquetMetaDataBuilder::new(file).set_row_groups(groups).build()
}

fn without_uncounted_nulls(footer: ParquetMetaData) -> ParquetResult<ParquetMetaData> {
    let uncounted = |chunk: &ColumnChunkMetaData| chunk.statistics().is_some_and(|s| s.null_count_opt().is_none());
    if !footer.row_groups().iter().flat_map(RowGroupMetaData::columns).any(uncounted) {
        return Ok(footer);
    }
    let mut footer = footer.into_builder();
    let groups = footer.take_row_groups().into_iter().map(|group| {
        let columns = group.columns().iter().map(|chunk| match uncounted(chunk) {
            true => chunk.clone().into_builder().clear_statistics().build(),
            false => Ok(chunk.clone()),
        });
        let columns = columns.collect::<ParquetResult<Vec<_>>>()?;
        group.into_builder().set_column_metadata(columns).build()
    });
    let groups = groups.collect::<ParquetResult<Vec<_>>>()?;
    Ok(footer.set_row_groups(groups).build())
}

async fn footer_bytes(fetch: &mut impl MetadataFetch, size: u64) -> ParquetResult<Bytes> {
    let torn = |what: String| ParquetError::General(format!("the footer is torn: {what}"));
    let start = size.saturating_sub(FOOTER_GUESS);
    let end = fetch.fetch(start..size).await?;
    let Some(at) = end.len().checked_sub(TAIL as usize).filter(|_| end.len() as u64 == size - start) else {
        return Err(torn(format!("the file has {} bytes at its end", end.len())));
    };
    let tail = FooterTail::try_from(end.get(at..).unwrap_or_default())?;
    if tail.is_encrypted_footer() {
        return Err(ParquetError::NYI("an encrypted footer".to_string()));
    }
    let length = tail.metadata_length();
    if let Some(from) = at.checked_sub(length) {
        return Ok(end.slice(from..at));
    }
    let Some(from) = (size - TAIL).checked_sub(length as u64) else {
        return Err(torn(format!("it claims {length} bytes of a file of {size}")));
    };
    fetch.fetch(from..size - TAIL).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Fields, Schema};
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use parquet::arrow::ArrowWriter;
    use parquet::file::statistics::Statistics;

    use super::*;

    struct Whole(Bytes);

    impl MetadataFetch for Whole {
        fn fetch(&mut self, range: std::ops::Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
            let part = self.0.slice(range.start as usize..range.end as usize);
            async move { Ok(part) }.boxed()
        }
    }

    fn load(file: Vec<u8>) -> ParquetResult<ParquetMetaData> {
        let size = file.len() as u64;
        futures::executor::block_on(load_footer(Whole(file.into()), size))
    }

    #[test]
    fn a_schema_of_arrow_is_not_decoded() {
        let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int32, true)]));
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, Arc::clone(&schema), None).unwrap();
        writer.append_key_value_metadata(KeyValue::new("kept".to_string(), "yes".to_string()));
        writer.write(&RecordBatch::try_new(schema, vec![column]).unwrap()).unwrap();
        writer.close().unwrap();
        let footer = load(file).unwrap();
        let keys: Vec<&str> =
            footer.file_metadata().key_value_metadata().unwrap().iter().map(|e| e.key.as_str()).collect();
        assert_eq!((keys, footer.file_metadata().num_rows(), footer.num_row_groups()), (vec!["kept"], 2, 1));
    }

    #[test]
    fn footers_are_read_as_written_whatever_their_length() {
        let leaf = Field::new("leaf", DataType::Int32, true);
        let columns = (0..1500).map(|at| Field::new(format!("column number {at}"), DataType::Int32, true));
        let wide = Schema::new(columns.collect::<Vec<_>>());
        let nested = (0..40).fold(leaf, |inner, level| {
            let name = format!("level {level}");
            if level % 2 == 0 {
                Field::new(name, DataType::List(Arc::new(inner)), true)
            } else {
                Field::new(name, DataType::Struct(Fields::from(vec![inner])), true)
            }
        });
        for schema in [wide, Schema::new(vec![nested])] {
            let schema = Arc::new(schema);
            let columns: Vec<ArrayRef> =
                schema.fields().iter().map(|field| arrow::array::new_null_array(field.data_type(), 3)).collect();
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            let mut bytes = Vec::new();
            let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let ours = load(bytes.clone()).unwrap();
            let theirs = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes)).unwrap();
            assert_eq!(ours, without_arrow_schema(theirs));
        }
    }

    #[test]
    fn statistics_without_a_count_of_nulls_are_not_used() {
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef),
            ("b", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
        ]);
        let batch = batch.unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let footer = load(bytes).unwrap();
        let group = footer.row_group(0);
        assert!(group.columns().iter().all(|chunk| chunk.statistics().is_some()));
        let uncounted = Statistics::int32(Some(1), Some(1), None, None, false);
        let columns = vec![
            group.column(0).clone().into_builder().set_statistics(uncounted).build().unwrap(),
            group.column(1).clone(),
        ];
        let group = group.clone().into_builder().set_column_metadata(columns).build().unwrap();
        let footer = footer.into_builder().set_row_groups(vec![group]).build();
        let kept = without_uncounted_nulls(footer.clone()).unwrap();
        let told: Vec<bool> = kept.row_group(0).columns().iter().map(|chunk| chunk.statistics().is_some()).collect();
        assert_eq!(told, [false, true]);
        assert_eq!(kept.row_group(0).num_rows(), footer.row_group(0).num_rows());
        assert_eq!(kept.file_metadata(), footer.file_metadata());
    }

    #[test]
    fn torn_footers_are_errors() {
        let batch = RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert!(load(bytes.clone()).is_ok());
        for keep in 0..bytes.len() {
            assert!(load(bytes[..keep].to_vec()).is_err(), "{keep} bytes");
        }
        let end = bytes.len();
        for (at, flip) in (0..end).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xff)]) {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            // an error, other numbers or a panic that the reader turns into an error; never the end of the process
            let _ = std::panic::catch_unwind(|| load(damaged)).map(|read| read.is_ok());
        }
    }
}
