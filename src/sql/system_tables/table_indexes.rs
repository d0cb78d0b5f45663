//! `t$table_indexes`: index files of the pinned snapshot: deletion vectors, hashes, global indexes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Builder, Int64Builder, ListBuilder, RecordBatch, StringBuilder, StructBuilder};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use super::Source;
use super::entries::texts_of;
use crate::error::{Error, Result};
use crate::scan::index_files;

fn range_fields() -> Fields {
    Fields::from(vec![
        Field::new("f0", DataType::Utf8, false),
        Field::new("f1", DataType::Int32, false),
        Field::new("f2", DataType::Int32, false),
        Field::new("_CARDINALITY", DataType::Int64, true),
    ])
}

pub(super) fn schema() -> SchemaRef {
    let item = Field::new("item", DataType::Struct(range_fields()), true);
    Arc::new(Schema::new(vec![
        Field::new("partition", DataType::Utf8, true),
        Field::new("bucket", DataType::Int32, false),
        Field::new("index_type", DataType::Utf8, false),
        Field::new("file_name", DataType::Utf8, false),
        Field::new("file_size", DataType::Int64, false),
        Field::new("row_count", DataType::Int64, false),
        Field::new("dv_ranges", DataType::List(Arc::new(item)), true),
        Field::new("row_range_start", DataType::Int64, true),
        Field::new("row_range_end", DataType::Int64, true),
        Field::new("index_field_id", DataType::Int32, true),
        Field::new("index_field_name", DataType::Utf8, true),
    ]))
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let pin = source.pin()?;
    let files = index_files(pin, &source.env.scan).await?;
    let texts = texts_of(&source, &[]).await?;
    let (mut partition, mut kind, mut name) = (StringBuilder::new(), StringBuilder::new(), StringBuilder::new());
    let (mut bucket, mut field_id) = (Int32Builder::new(), Int32Builder::new());
    let (mut size, mut count) = (Int64Builder::new(), Int64Builder::new());
    let (mut start, mut end) = (Int64Builder::new(), Int64Builder::new());
    let mut field_name = StringBuilder::new();
    let mut ranges = ListBuilder::new(StructBuilder::from_fields(range_fields(), files.len()));
    let odd = || Error::internal("columns of dv_ranges are out of order");
    for file in files.iter() {
        partition.append_value(texts.partition_in_braces(&file.partition)?);
        bucket.append_value(file.bucket.0);
        kind.append_value(&file.index_type);
        name.append_value(&file.file_name);
        size.append_value(file.file_size);
        count.append_value(file.row_count);
        for range in file.deletion_vectors.iter().flatten() {
            let row = ranges.values();
            row.field_builder::<StringBuilder>(0).ok_or_else(odd)?.append_value(&range.data_file_name);
            row.field_builder::<Int32Builder>(1).ok_or_else(odd)?.append_value(range.offset);
            row.field_builder::<Int32Builder>(2).ok_or_else(odd)?.append_value(range.length);
            row.field_builder::<Int64Builder>(3).ok_or_else(odd)?.append_option(range.cardinality);
            row.append(true);
        }
        ranges.append(file.deletion_vectors.is_some());
        let global = file.global_index.as_ref();
        start.append_option(global.map(|g| g.row_range_start));
        end.append_option(global.map(|g| g.row_range_end));
        field_id.append_option(global.map(|g| g.index_field_id));
        field_name
            .append_option(global.and_then(|g| pin.schema.field_by_id(g.index_field_id)).map(|f| f.name.as_str()));
    }
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(partition.finish()),
        Arc::new(bucket.finish()),
        Arc::new(kind.finish()),
        Arc::new(name.finish()),
        Arc::new(size.finish()),
        Arc::new(count.finish()),
        Arc::new(ranges.finish()),
        Arc::new(start.finish()),
        Arc::new(end.finish()),
        Arc::new(field_id.finish()),
        Arc::new(field_name.finish()),
    ];
    Ok(RecordBatch::try_new(schema(), arrays)?)
}
