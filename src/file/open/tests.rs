//! Files made for one question each, and files that are not what they should be.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field, Fields, Float32Type, Int32Type, Int64Type, Schema, TimeUnit,
};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::data_type::{
    ByteArray, ByteArrayType, FloatType, Int32Type as ParquetInt32, Int64Type as ParquetInt64, Int96, Int96Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::{Error, ErrorKind, Result};
use crate::file::{FileEnv, FileTask, OutputColumn, open};
use crate::spec::arrow_types::datum_at;
use crate::spec::hostile::{ENOUGH, Meter};
use crate::spec::{DataField, DataType, Datum, FieldType, TableSchema};
use crate::storage::Storage;

fn field(id: i32, name: &str, field_type: &str) -> DataField {
    typed(id, name, FieldType::parse(field_type).unwrap())
}

fn typed(id: i32, name: &str, field_type: FieldType) -> DataField {
    DataField { id, name: name.to_string(), field_type, description: None, default_value: None, sums: false }
}

fn nullable(data_type: DataType) -> FieldType {
    FieldType { data_type, nullable: true }
}

fn schema(fields: Vec<DataField>) -> Arc<TableSchema> {
    Arc::new(TableSchema {
        version: 3,
        id: crate::spec::SchemaId(0),
        highest_field_id: 100,
        fields,
        partition_keys: vec![],
        primary_keys: vec![],
        options: BTreeMap::new(),
        comment: None,
        time_millis: 0,
    })
}

/// A file in memory, and a task to read `columns` of it.
async fn task(name: &str, bytes: impl Into<Bytes>, fields: Vec<DataField>, columns: Vec<DataField>) -> FileTask {
    let bytes = bytes.into();
    let store = Arc::new(InMemory::new());
    let storage = Storage::from_object_store(Arc::clone(&store) as Arc<dyn ObjectStore>, "memory://test").unwrap();
    let location = storage.location(&format!("t/bucket-0/{name}")).unwrap();
    let size = bytes.len() as u64;
    store.put(location.path(), bytes.into()).await.unwrap();
    FileTask::new(storage, location, size, schema(fields), columns.into_iter().map(OutputColumn::Field).collect())
}

async fn read(task: &FileTask) -> Result<RecordBatch> {
    let batches: Vec<RecordBatch> = open(&FileEnv::new(1 << 20), task).await?.try_collect().await?;
    Ok(arrow::compute::concat_batches(&task.schema(), &batches)?)
}

fn datums(batch: &RecordBatch, column: usize, data_type: &str) -> Vec<Datum> {
    let data_type = FieldType::parse(data_type).unwrap().data_type;
    (0..batch.num_rows()).map(|row| datum_at(batch.column(column), row, &data_type).unwrap()).collect()
}

fn parquet_of(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// A file of one row group written below Arrow.
fn parquet_by_hand(message: &str, mut write: impl FnMut(usize, &mut SerializedColumnWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = Arc::new(parse_message_type(message).unwrap());
    let mut file = SerializedFileWriter::new(&mut bytes, message, Arc::new(WriterProperties::default())).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut at = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        write(at, &mut column);
        column.close().unwrap();
        at += 1;
    }
    group.close().unwrap();
    file.close().unwrap();
    bytes
}

fn int96(day: i32, nanos: i64) -> Int96 {
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, day as u32);
    value
}

const EPOCH_DAY: i32 = 2_440_588;

fn int96_file(values: &[Int96]) -> Vec<u8> {
    parquet_by_hand("message m { required int96 t; }", |_, column| {
        column.typed::<Int96Type>().write_batch(values, None, None).unwrap();
    })
}

#[tokio::test]
async fn int96_nanoseconds_are_signed() {
    let values = [int96(EPOCH_DAY, -1), int96(EPOCH_DAY - 1, 86_399_999_999_999), int96(EPOCH_DAY + 1, 5)];
    for (declared, wanted) in [
        ("TIMESTAMP(9)", [(-1, 999_999), (-1, 999_999), (86_400_000, 5)]),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", [(-1, 999_999), (-1, 999_999), (86_400_000, 5)]),
        // a file of another writer: INT96 where the precision is small
        ("TIMESTAMP(6)", [(-1, 999_000), (-1, 999_000), (86_400_000, 0)]),
    ] {
        let column = field(0, "t", declared);
        let task = task("a.parquet", int96_file(&values), vec![column.clone()], vec![column]).await;
        let read = read(&task).await.unwrap();
        assert_eq!(datums(&read, 0, declared), wanted.map(|(ms, nanos)| Datum::Timestamp(ms, nanos)), "{declared}");
    }
}

#[tokio::test]
async fn int96_out_of_range_is_an_error_with_file_and_column_and_no_wrap() {
    // the last second of 9999, and one that wraps to a plausible time
    for day in [EPOCH_DAY + 2_932_896, EPOCH_DAY + 213_504 * 2, i32::MIN] {
        let column = field(0, "t", "TIMESTAMP(9)");
        let file = int96_file(&[int96(EPOCH_DAY, 0), int96(day, 0)]);
        let task = task("a.parquet", file, vec![column.clone()], vec![column]).await;
        let error = read(&task).await.unwrap_err();
        assert_eq!(error.code(), "TimestampOutOfRange", "{error:?}");
        let text = error.to_string();
        assert!(text.contains("column: t") && text.contains("memory://test/t/bucket-0/a.parquet"), "{text}");
        // a masked row is not read
        let mut task = task;
        task.live = Some(BooleanBuffer::from(vec![true, false]));
        assert_eq!(super::tests::read(&task).await.unwrap().num_rows(), 1);
    }
}

#[tokio::test]
async fn int96_inside_of_lists_is_checked_too() {
    let message = "message m { required int32 id; optional group l (LIST) { repeated group list { optional int96 element; } } \
                   required int96 t; }";
    let file = |last: Int96| {
        parquet_by_hand(message, move |at, column| match at {
            0 => drop(column.typed::<ParquetInt32>().write_batch(&[1, 2], None, None).unwrap()),
            1 => {
                let values = [int96(EPOCH_DAY, -1), last];
                let (levels, repeats) = ([3, 2, 3], [0, 1, 0]);
                column.typed::<Int96Type>().write_batch(&values, Some(&levels), Some(&repeats)).unwrap();
            }
            _ => drop(column.typed::<Int96Type>().write_batch(&[int96(EPOCH_DAY, 1); 2], None, None).unwrap()),
        })
    };
    let list = typed(1, "l", nullable(DataType::Array(Box::new(FieldType::parse("TIMESTAMP(9)").unwrap()))));
    let fields = vec![field(0, "id", "INT"), list.clone(), field(2, "t", "TIMESTAMP(9)")];
    let good = task("a.parquet", file(int96(EPOCH_DAY, 7)), fields.clone(), vec![list.clone()]).await;
    let batch = read(&good).await.unwrap();
    let first = batch.column(0).as_list::<i32>().value(0);
    assert_eq!(datum_at(&first, 0, &DataType::Timestamp(9)).unwrap(), Datum::Timestamp(-1, 999_999));
    assert!(first.is_null(1));
    let bad = task("a.parquet", file(int96(EPOCH_DAY + 3_000_000, 0)), fields, vec![list]).await;
    assert_eq!(read(&bad).await.unwrap_err().code(), "TimestampOutOfRange");
}

#[tokio::test]
async fn units_of_other_writers_count_as_the_file_says() {
    let schema = Schema::new(vec![
        Field::new("us", ArrowType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("ns", ArrowType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), true),
        Field::new("plain", ArrowType::Int64, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from(vec![-1, 1_999])),
        Arc::new(TimestampNanosecondArray::from(vec![-1, 1_999_999]).with_timezone("UTC")),
        Arc::new(Int64Array::from(vec![-1, 7])),
    ];
    let file = parquet_of(&RecordBatch::try_new(Arc::new(schema), columns).unwrap());
    let fields = vec![
        field(0, "us", "TIMESTAMP(3)"),
        field(1, "ns", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        field(2, "plain", "TIMESTAMP(6)"),
    ];
    let batch = read(&task("a.parquet", file, fields.clone(), fields).await).await.unwrap();
    assert_eq!(datums(&batch, 0, "TIMESTAMP(3)"), [Datum::Timestamp(-1, 0), Datum::Timestamp(1, 0)]);
    assert_eq!(datums(&batch, 1, "TIMESTAMP(6)"), [Datum::Timestamp(-1, 999_000), Datum::Timestamp(1, 999_000)]);
    assert_eq!(datums(&batch, 2, "TIMESTAMP(6)"), [Datum::Timestamp(-1, 999_000), Datum::Timestamp(0, 7_000)]);
}

#[tokio::test]
async fn decimals_of_any_width_and_text_without_annotation_are_read() {
    let message = "message m { required binary b (DECIMAL(20,2)); required int32 i (DECIMAL(9,2)); required int64 l; \
                   required binary s; required int32 tiny; required int32 unsigned (INTEGER(32,false)); }";
    let file = |tiny: i32| {
        parquet_by_hand(message, move |at, column| match at {
            0 => {
                let values = [ByteArray::from(vec![0xff]), ByteArray::from(vec![0, 0x80])];
                column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
            }
            1 => drop(column.typed::<ParquetInt32>().write_batch(&[-12_345, 1], None, None).unwrap()),
            2 => drop(column.typed::<ParquetInt64>().write_batch(&[-5, 6], None, None).unwrap()),
            3 => {
                let values = [ByteArray::from("é"), ByteArray::from("")];
                column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
            }
            4 => drop(column.typed::<ParquetInt32>().write_batch(&[tiny, -128], None, None).unwrap()),
            _ => drop(column.typed::<ParquetInt32>().write_batch(&[5, 6], None, None).unwrap()),
        })
    };
    let fields = vec![
        field(0, "b", "DECIMAL(20, 2)"),
        field(1, "i", "DECIMAL(20, 3)"),
        field(2, "l", "DECIMAL(10, 1)"),
        field(3, "s", "VARCHAR(9)"),
        field(4, "tiny", "TINYINT"),
        field(5, "unsigned", "BIGINT"),
    ];
    let batch = read(&task("a.parquet", file(127), fields.clone(), fields.clone()).await).await.unwrap();
    assert_eq!(datums(&batch, 0, "DECIMAL(20, 2)"), [Datum::Decimal(-1, 20, 2), Datum::Decimal(128, 20, 2)]);
    assert_eq!(datums(&batch, 1, "DECIMAL(20, 3)"), [Datum::Decimal(-123_450, 20, 3), Datum::Decimal(10, 20, 3)]);
    assert_eq!(datums(&batch, 2, "DECIMAL(10, 1)"), [Datum::Decimal(-5, 10, 1), Datum::Decimal(6, 10, 1)]);
    assert_eq!(datums(&batch, 3, "STRING"), [Datum::String("é".into()), Datum::String(String::new())]);
    assert_eq!(datums(&batch, 4, "TINYINT"), [Datum::TinyInt(127), Datum::TinyInt(-128)]);
    assert_eq!(datums(&batch, 5, "BIGINT"), [Datum::BigInt(5), Datum::BigInt(6)]);
    // a value that the declared type cannot hold is damage, never another value
    let error = read(&task("a.parquet", file(128), fields.clone(), fields).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("column: tiny"), "{error}");
}

#[tokio::test]
async fn lists_of_two_levels_and_maps_of_old_are_read() {
    let message = "message m { optional group l (LIST) { repeated int32 array; } \
                   optional group m (MAP_KEY_VALUE) { repeated group map (MAP_KEY_VALUE) { required int32 key; optional int32 value; } } }";
    let file = parquet_by_hand(message, |at, column| {
        let values = column.typed::<ParquetInt32>();
        match at {
            0 => drop(values.write_batch(&[1, 2], Some(&[2, 2, 0]), Some(&[0, 1, 0])).unwrap()),
            1 => drop(values.write_batch(&[7, 8], Some(&[2, 2, 0]), Some(&[0, 1, 0])).unwrap()),
            _ => drop(values.write_batch(&[70], Some(&[3, 2, 0]), Some(&[0, 1, 0])).unwrap()),
        }
    });
    let int = || Box::new(FieldType::parse("INT").unwrap());
    let fields =
        vec![typed(0, "l", nullable(DataType::Array(int()))), typed(1, "m", nullable(DataType::Map(int(), int())))];
    let batch = read(&task("a.parquet", file, fields.clone(), fields).await).await.unwrap();
    assert_eq!(batch.column(0).as_list::<i32>().value(0).as_primitive::<Int32Type>().values().to_vec(), [1, 2]);
    assert!(batch.column(0).is_null(1) && batch.column(1).is_null(1));
    let map = batch.column(1).as_map().value(0);
    assert_eq!(map.column(0).as_primitive::<Int32Type>().values().to_vec(), [7, 8]);
    assert_eq!(map.column(1).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(70), None]);
}

#[tokio::test]
async fn vectors_are_lists_of_one_length() {
    let message = "message m { optional group v (LIST) { repeated group list { optional float element; } } }";
    let file = |levels: &'static [i16], repeats: &'static [i16]| {
        parquet_by_hand(message, move |_, column| {
            let values = [1.5, 2.5, 3.5];
            column.typed::<FloatType>().write_batch(&values, Some(levels), Some(repeats)).unwrap();
        })
    };
    let float = Box::new(FieldType::parse("FLOAT").unwrap());
    let fields = vec![typed(0, "v", nullable(DataType::Vector(float, 2)))];
    // [1.5, null], null, [2.5, 3.5]
    let good = file(&[3, 2, 0, 3, 3], &[0, 1, 0, 0, 1]);
    let batch = read(&task("a.parquet", good, fields.clone(), fields.clone()).await).await.unwrap();
    let vectors = batch.column(0).as_fixed_size_list();
    assert_eq!((vectors.len(), vectors.null_count(), vectors.is_null(1)), (3, 1, true));
    assert_eq!(vectors.value(2).as_primitive::<Float32Type>().values().to_vec(), [2.5, 3.5]);
    assert!(vectors.value(0).is_null(1));
    // [1.5], [2.5, 3.5]
    let bad = file(&[3, 3, 3], &[0, 0, 1]);
    let error = read(&task("a.parquet", bad, fields.clone(), fields).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
}

#[tokio::test]
async fn stored_types_that_contradict_the_schema_are_told() {
    let batch = RecordBatch::try_from_iter(vec![("v", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]).unwrap();
    for declared in ["INT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP(3)", "DECIMAL(5, 2)"] {
        let column = field(0, "v", declared);
        let task = task("a.parquet", parquet_of(&batch), vec![column.clone()], vec![column]).await;
        let error = read(&task).await.unwrap_err();
        assert_eq!(error.code(), "PhysicalTypeMismatch");
        assert!(error.to_string().contains(&format!("stores Utf8 where its schema says {declared}")), "{error}");
    }
}

/// Case B071: ids decide, not names; case B022: an old schema still reads.
#[tokio::test]
async fn b071_columns_are_found_by_id_then_by_the_old_name() {
    let old = vec![field(1, "x", "INT"), field(2, "y", "INT"), field(3, "a", "STRING")];
    let batch = RecordBatch::try_from_iter(vec![
        ("x", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        ("y", Arc::new(Int32Array::from(vec![2])) as ArrayRef),
        ("a", Arc::new(StringArray::from(vec!["gone"])) as ArrayRef),
    ])
    .unwrap();
    // x and y swapped their names, a was dropped and added again, b is new, y was widened
    let new = vec![field(9, "a", "STRING"), field(2, "x", "BIGINT"), field(1, "y", "INT"), field(10, "b", "DATE")];
    let read_new = read(&task("a.parquet", parquet_of(&batch), old.clone(), new).await).await.unwrap();
    assert!(read_new.column(0).is_null(0) && read_new.column(3).is_null(0));
    assert_eq!(read_new.column(1).as_primitive::<Int64Type>().value(0), 2);
    assert_eq!(read_new.column(2).as_primitive::<Int32Type>().value(0), 1);
    let read_old = read(&task("a.parquet", parquet_of(&batch), old.clone(), old).await).await.unwrap();
    assert_eq!(read_old.columns(), batch.columns());
}

/// Case B042: values are widened before anybody compares them.
#[tokio::test]
async fn b042_widened_decimals_keep_their_value() {
    let decimal: ArrayRef =
        Arc::new(arrow::array::Decimal128Array::from(vec![11_132]).with_precision_and_scale(5, 2).unwrap());
    let file = parquet_of(&RecordBatch::try_from_iter(vec![("f", decimal)]).unwrap());
    let (old, new) = (vec![field(0, "f", "DECIMAL(5, 2)")], vec![field(0, "f", "DECIMAL(6, 3)")]);
    let read = read(&task("a.parquet", file, old, new).await).await.unwrap();
    assert_eq!(read.column(0).as_primitive::<Decimal128Type>().values(), &[111_320]);
}

#[tokio::test]
async fn constants_are_never_taken_from_the_file() {
    let batch = RecordBatch::try_from_iter(vec![
        ("p", Arc::new(StringArray::from(vec!["file", "file"])) as ArrayRef),
        ("v", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
    ])
    .unwrap();
    let fields = vec![field(0, "p", "STRING"), field(1, "v", "INT"), field(2, "q", "INT")];
    let mut task = task("a.parquet", parquet_of(&batch), fields.clone(), fields).await;
    task.constants = BTreeMap::from([(0, Datum::String("dir".into())), (2, Datum::Null)]);
    let read = read(&task).await.unwrap();
    assert_eq!(datums(&read, 0, "STRING"), [Datum::String("dir".into()), Datum::String("dir".into())]);
    assert_eq!(read.column(2).null_count(), 2);
}

#[tokio::test]
async fn nulls_in_a_not_null_column_are_told() {
    let batch = RecordBatch::try_from_iter(vec![("v", Arc::new(Int32Array::from(vec![None, Some(1)])) as ArrayRef)]);
    let file = parquet_of(&batch.unwrap());
    let column = field(0, "v", "INT NOT NULL");
    let error = read(&task("a.parquet", file, vec![column.clone()], vec![column]).await).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "NullInNotNull"));
}

#[tokio::test]
async fn a_key_that_is_null_is_taken_from_its_own_column() {
    let own: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10));
    let ordinary: ArrayRef = Arc::new(Int32Array::from_iter((0..10).map(|key| (key != 5 && key != 8).then_some(key))));
    let file = parquet_of(&RecordBatch::try_from_iter([("_KEY_k", own), ("k", ordinary.clone())]).unwrap());
    let column = field(7, "k", "INT NOT NULL");
    let mut task = task("a.parquet", file, vec![column.clone()], vec![column.clone()]).await;
    task.live = Some(BooleanBuffer::collect_bool(10, |row| row != 3));
    for batch_size in [1, 2, 4, 100] {
        task.options = task.options.with_batch_size(batch_size);
        task.keys = vec![7];
        let keys = read(&task).await.unwrap();
        assert_eq!(keys.column(0).as_primitive::<Int32Type>().values(), &[0, 1, 2, 4, 5, 6, 7, 8, 9], "{batch_size}");
        task.keys = vec![];
        assert_eq!(read(&task).await.unwrap_err().code(), "NullInNotNull", "no key");
    }
    let file = parquet_of(&RecordBatch::try_from_iter([("k", ordinary)]).unwrap());
    let mut task = super::tests::task("a.parquet", file, vec![column.clone()], vec![column]).await;
    task.keys = vec![7];
    assert_eq!(read(&task).await.unwrap_err().code(), "NullInNotNull", "no column of its own");
}

fn variant_file(fields: &[&str]) -> Vec<u8> {
    let children: Vec<ArrayRef> =
        fields.iter().map(|_| Arc::new(BinaryArray::from(vec![b"x".as_slice()])) as ArrayRef).collect();
    let types: Fields = fields.iter().map(|name| Field::new(*name, ArrowType::Binary, true)).collect();
    let variant: ArrayRef = Arc::new(StructArray::new(types, children, None));
    let id: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    parquet_of(&RecordBatch::try_from_iter(vec![("id", id), ("v", variant)]).unwrap())
}

#[tokio::test]
async fn shredded_variants_are_refused_and_leave_other_columns_readable() {
    let fields = vec![field(0, "id", "INT"), field(1, "v", "VARIANT")];
    let plain = task("a.parquet", variant_file(&["metadata", "value"]), fields.clone(), fields.clone()).await;
    assert_eq!(read(&plain).await.unwrap().column(1).as_struct().column_by_name("value").unwrap().len(), 1);
    let shredded = variant_file(&["metadata", "value", "typed_value"]);
    let all = task("a.parquet", shredded.clone(), fields.clone(), fields.clone()).await;
    let error = read(&all).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "ShreddedVariant"));
    let other = task("a.parquet", shredded, fields.clone(), vec![fields[0].clone()]).await;
    assert_eq!(read(&other).await.unwrap().num_rows(), 1);
}

#[tokio::test]
async fn file_that_vanished_is_missing() {
    let column = field(0, "v", "INT");
    for name in ["a.parquet", "a.orc", "a.avro"] {
        let mut task = task(name, vec![0; 100], vec![column.clone()], vec![column.clone()]).await;
        task.location = task.storage.location(&format!("t/bucket-0/gone-{name}")).unwrap();
        let error = open(&FileEnv::new(0), &task).await.err().unwrap();
        assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, "DataFileMissing"), "{name}: {error:?}");
        assert!(error.to_string().contains(name));
    }
}

#[tokio::test]
async fn wrong_counts_are_told() {
    let batch = RecordBatch::try_from_iter(vec![("v", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    let column = field(0, "v", "INT");
    let mut task = task("a.parquet", parquet_of(&batch), vec![column.clone()], vec![column]).await;
    task.row_count = Some(4);
    let error = read(&task).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "DataFileCorrupt"));
    assert!(error.message().contains("3 rows where the manifest says 4"), "{error}");
    task.row_count = None;
    task.live = Some(BooleanBuffer::new_set(5));
    assert_eq!(read(&task).await.unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn footer_is_read_once_for_all_who_share_an_environment() {
    let batch = RecordBatch::try_from_iter(vec![("v", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    let column = field(0, "v", "INT");
    let task = task("a.parquet", parquet_of(&batch), vec![column.clone()], vec![column]).await;
    let env = FileEnv::new(1 << 20);
    for _ in 0..3 {
        let rows: Vec<RecordBatch> = open(&env, &task).await.unwrap().try_collect().await.unwrap();
        assert_eq!(rows.len(), 1);
    }
    let stats = env.footers().stats();
    assert_eq!((stats.misses, stats.entries), (1, 1));
}

#[tokio::test]
async fn masks_keep_rows_of_several_row_groups() {
    let values: Vec<i64> = (0..1000).collect();
    let batch = RecordBatch::try_from_iter(vec![("v", Arc::new(Int64Array::from(values)) as ArrayRef)]).unwrap();
    let mut file = Vec::new();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(130))
        .set_data_page_row_count_limit(10)
        .set_write_batch_size(10);
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let column = field(0, "v", "BIGINT");
    for (name, keep) in [
        ("one", Box::new(|i: usize| i == 777) as Box<dyn Fn(usize) -> bool>),
        ("none", Box::new(|_| false)),
        ("all", Box::new(|_| true)),
        ("third group", Box::new(|i: usize| (260..390).contains(&i))),
        ("scattered", Box::new(|i: usize| i % 97 < 3)),
    ] {
        let mut task = task("a.parquet", file.clone(), vec![column.clone()], vec![column.clone()]).await;
        task.columns.push(OutputColumn::RowPosition);
        task.live = Some(BooleanBuffer::collect_bool(1000, &keep));
        task.options = task.options.with_batch_size(64);
        let read = read(&task).await.unwrap();
        let wanted: Vec<i64> = (0..1000).filter(|i| keep(*i)).map(|i| i as i64).collect();
        assert_eq!(read.column(0).as_primitive::<Int64Type>().values().to_vec(), wanted, "{name}");
        assert_eq!(read.column(1).as_primitive::<Int64Type>().values().to_vec(), wanted, "{name}");
    }
}

#[tokio::test]
async fn a_stretch_of_rows_is_read_without_the_pages_before_and_behind_it() {
    let rows = 50_000;
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("row {row}"))));
    let batch = RecordBatch::try_from_iter(vec![("v", values), ("s", text)]).unwrap();
    let mut file = Vec::new();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(500);
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // the first pages of both columns are no pages any more
    let (numbers, texts) = (4..40_000, 420_000..440_000);
    file[numbers].fill(0xff);
    file[texts].fill(0xff);
    let columns = vec![field(0, "v", "BIGINT"), field(1, "s", "STRING")];
    let mut task = task("a.parquet", file, columns.clone(), columns).await;
    assert!(read(&task).await.is_err());
    task.live = Some(BooleanBuffer::collect_bool(rows as usize, |row| (20_300..21_700).contains(&row)));
    let env = FileEnv::new(1 << 20);
    for _ in 0..2 {
        let batches: Vec<RecordBatch> = open(&env, &task).await.unwrap().try_collect().await.unwrap();
        let read = arrow::compute::concat_batches(&task.schema(), &batches).unwrap();
        assert_eq!(read.column(0).as_primitive::<Int64Type>().values().to_vec(), (20_300..21_700).collect::<Vec<_>>());
        assert_eq!(read.column(1).as_string::<i32>().value(0), "row 20300");
    }
    assert_eq!(env.footers().stats().entries, 1, "the places of pages are kept with the footer");
}

#[tokio::test]
async fn int96_is_checked_in_stretches_and_single_rows_too() {
    let values: Vec<Int96> = (0..60_000).map(|row| int96(EPOCH_DAY, i64::from(row) * 1_000_000)).collect();
    let column = field(0, "t", "TIMESTAMP(3)");
    let mut task = task("a.parquet", int96_file(&values), vec![column.clone()], vec![column]).await;
    for keep in [|row: usize| row >= 41_000 && row.is_multiple_of(3), |row: usize| (15_000..15_100).contains(&row)] {
        task.live = Some(BooleanBuffer::collect_bool(values.len(), keep));
        let read = read(&task).await.unwrap();
        let wanted: Vec<Datum> =
            (0..values.len()).filter(|row| keep(*row)).map(|row| Datum::Timestamp(row as i64, 0)).collect();
        assert_eq!(datums(&read, 0, "TIMESTAMP(3)"), wanted);
    }
}

fn zone_file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("sqllogictest/tables/zones").join(name)).unwrap()
}

fn zone_fields() -> Vec<DataField> {
    vec![
        field(0, "id", "INT"),
        field(1, "ts3", "TIMESTAMP(3)"),
        field(2, "ts6", "TIMESTAMP(6)"),
        field(3, "ltz3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        field(4, "ltz6", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        field(5, "d", "DATE"),
    ]
}

/// Case B075: the wall clock stays, the instant stays, whatever the writer's zone and the format.
#[tokio::test]
async fn b075_writer_zone_changes_nothing() {
    let mut read_files = Vec::new();
    for name in ["shanghai.parquet", "shanghai.avro", "shanghai.orc", "utc.orc"] {
        let task = task(name, zone_file(name), zone_fields(), zone_fields()).await;
        read_files.push((name, read(&task).await.unwrap()));
    }
    let (_, plain) = &read_files[0];
    assert_eq!(plain.num_rows(), 17);
    let text = |batch: &RecordBatch, column: usize, row: usize| {
        arrow::util::display::array_value_to_string(batch.column(column), row).unwrap()
    };
    assert_eq!(text(plain, 2, 2), "1500-02-28T12:00:00.123456");
    assert_eq!(text(plain, 2, 8), "1900-12-31T23:50:00");
    assert_eq!(text(plain, 4, 13), "1988-07-01T12:00:00.123456Z");
    for (name, other) in &read_files[1..] {
        for row in 0..17 {
            for column in 0..6 {
                let wanted = match (name.ends_with("orc") && (1..5).contains(&column), row) {
                    // stored by the Julian calendar, read by the Gregorian, as Java does
                    (true, 0) => "0000-12-30T00:00:00".to_string(),
                    (true, 1) => "1500-01-10T00:00:00".to_string(),
                    (true, 2) if column % 2 == 1 => "1500-03-09T12:00:00.123".to_string(),
                    (true, 2) => "1500-03-09T12:00:00.123456".to_string(),
                    (true, 3) => "1582-10-24T23:00:00".to_string(),
                    _ => text(plain, column, row).trim_end_matches('Z').to_string(),
                };
                let found = text(other, column, row);
                assert_eq!(found.trim_end_matches('Z'), wanted, "{name} column {column} row {row}");
            }
        }
    }
}

/// Damage must be an error that names the file, or go unnoticed where the format has no checksum: never a panic.
#[tokio::test]
async fn damaged_files_are_errors_and_never_panics() {
    for name in ["shanghai.parquet", "shanghai.orc", "shanghai.avro"] {
        let file = zone_file(name);
        for cut in (0..file.len()).step_by(13) {
            let error = read(&task(name, file[..cut].to_vec(), zone_fields(), zone_fields()).await).await;
            let error = error.expect_err(&format!("{name} cut at {cut}"));
            check_damage(&error, name, &format!("cut at {cut}"));
            // the manifest remembers the true size
            let mut shorter = task(name, file[..cut].to_vec(), zone_fields(), zone_fields()).await;
            shorter.size = file.len() as u64;
            check_damage(&read(&shorter).await.unwrap_err(), name, &format!("shorter, {cut}"));
        }
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = file.clone();
                bytes[at] ^= flip;
                let mut task = task(name, bytes, zone_fields(), zone_fields()).await;
                task.row_count = Some(17);
                let meter = Meter::start();
                let outcome = read(&task).await;
                let peak = meter.peak();
                assert!(peak < ENOUGH, "{name} byte {at} ^ {flip:x}: {peak} bytes of memory");
                match outcome {
                    Ok(batch) => assert_eq!(batch.num_rows(), 17, "{name} byte {at} ^ {flip:x}"),
                    Err(error) => check_damage(&error, name, &format!("byte {at} ^ {flip:x}")),
                }
            }
        }
    }
}

fn check_damage(error: &Error, name: &str, what: &str) {
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{name} {what}: {error:?}");
    assert!(error.to_string().contains(name), "{name} {what}: {error}");
}

#[tokio::test]
async fn files_of_another_format_than_their_name_are_damaged() {
    for (name, content) in [("a.avro", "shanghai.orc"), ("a.orc", "shanghai.avro"), ("a.parquet", "shanghai.avro")] {
        let error = read(&task(name, zone_file(content), zone_fields(), zone_fields()).await).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error:?}");
    }
}

#[tokio::test]
async fn casts_that_do_not_exist_are_refused_before_anything_is_read() {
    let mut task = task("a.parquet", vec![], vec![field(0, "d", "DATE")], vec![field(0, "e", "INT")]).await;
    task.size = 1 << 40;
    let error = open(&FileEnv::new(0), &task).await.err().unwrap();
    assert_eq!(error.code(), "UnsupportedCast");
    assert!(error.to_string().contains("DATE cannot be read as INT (column: e"), "{error}");
}
