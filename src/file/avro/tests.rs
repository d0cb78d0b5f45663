//! Containers made by another library, and bytes made by hand.

use std::sync::Arc;

use apache_avro::types::Value;
use apache_avro::{Codec, DeflateSettings, Schema, Writer};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};

use super::allowance::Allowance;
use super::build::Builder;
use super::{Request, RowDecoder, StoredBatch};
use crate::error::{Error, ErrorKind};
use crate::memory::{MemoryBudget, Unbounded};
use crate::spec::avro::{Input, Node};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Int32Type, Int64Type, TimeUnit};

fn parse(json: &str) -> crate::Result<Node> {
    Node::parse(json.as_bytes())
}

fn request(columns: &[&str]) -> Request {
    Request { columns: columns.iter().map(|c| c.to_string()).collect(), live: None, batch_size: 10 }
}

/// What the values of a block of so many bytes may take, with memory for all of it.
fn allowance(bytes: usize) -> Allowance {
    let mut allowance = Allowance::new(&(Arc::new(Unbounded) as Arc<dyn MemoryBudget>));
    allowance.begin(bytes);
    allowance
}

#[test]
fn columns_are_skipped_or_built_alike() {
    let json = r#"{"type":"record","name":"r","fields":[
        {"name":"n","type":"null"},
        {"name":"b","type":"boolean"},
        {"name":"m","type":{"type":"map","values":["null","long"]}},
        {"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}},
        {"name":"x","type":{"type":"fixed","name":"x","size":2,"logicalType":"decimal","precision":4,"scale":2}},
        {"name":"l","type":{"type":"array","items":{"type":"record","name":"i","fields":[{"name":"q","type":"double"}]}}},
        {"name":"u","type":["int","string","null"]},
        {"name":"after","type":["int","null"]}]}"#;
    let node = parse(json).unwrap();
    // n nothing, b true, m {k: 5} in a block with its size, e B, x -0.02, l [1.0] [], u "y", after 7
    let mut bytes = vec![1, 1, 8, 2, b'k', 2, 10, 0, 2, 0xff, 0xfe, 2];
    bytes.extend(1.0_f64.to_le_bytes());
    bytes.extend([0, 2, 2, b'y', 0, 14]);
    let row = bytes.clone();
    bytes.extend(row);
    for columns in [&["after"][..], &["m", "x", "after"], &["e", "l", "b", "n", "after"]] {
        let mut decoder = RowDecoder::new(&node, &request(columns)).unwrap();
        let mut input = Input::new(&bytes);
        let mut allowance = allowance(bytes.len());
        decoder.row(&mut input, &mut allowance).unwrap();
        decoder.row(&mut input, &mut allowance).unwrap();
        assert_eq!(input.left(), 0);
        let batch = decoder.finish().unwrap();
        assert_eq!(batch.rows, 2);
        for (name, column) in columns.iter().zip(&batch.columns) {
            let column = column.as_ref().unwrap();
            match *name {
                "after" => assert_eq!(column.as_primitive::<Int32Type>().values().to_vec(), [7, 7]),
                "x" => assert_eq!(column.as_primitive::<Decimal128Type>().values().to_vec(), [-2, -2]),
                "e" => assert_eq!(column.as_string::<i32>().value(1), "B"),
                "m" => assert_eq!(column.as_map().value(1).column(1).as_primitive::<Int64Type>().value(0), 5),
                "l" => assert_eq!(column.as_list::<i32>().value(0).len(), 1),
                "n" => assert_eq!(column.data_type(), &ArrowType::Null),
                _ => assert!(column.as_boolean().value(0)),
            }
        }
    }
    let error = RowDecoder::new(&node, &request(&["u"])).err().unwrap();
    assert_eq!(error.code(), "UnsupportedAvro");
    assert_eq!(RowDecoder::new(&node, &request(&["absent"])).unwrap().requested, [None]);
}

#[test]
fn row_in_a_union_must_be_its_record() {
    let node = parse(r#"["null",{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}]"#).unwrap();
    let mut decoder = RowDecoder::new(&node, &request(&["a"])).unwrap();
    decoder.row(&mut Input::new(&[2, 6]), &mut allowance(2)).unwrap();
    assert!(decoder.row(&mut Input::new(&[0]), &mut allowance(1)).is_err(), "a null row");
    assert!(decoder.row(&mut Input::new(&[4, 6]), &mut allowance(2)).is_err(), "no such branch");
}

#[test]
fn lengths_that_lie_are_errors() {
    for (json, bytes) in [
        (r#""bytes""#, &[0xfe, 0xff, 0xff, 0xff, 0x0f, 1][..]),
        (r#""string""#, &[1]),
        (r#""long""#, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]),
        (r#""int""#, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        (r#""boolean""#, &[2]),
        (r#"{"type":"array","items":"null"}"#, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]),
        (r#"{"type":"array","items":"int"}"#, &[0x01, 0x7e]),
        (r#"{"type":"array","items":"long"}"#, &[4, 2]),
        (r#"{"type":"enum","name":"e","symbols":["A"]}"#, &[2]),
        (r#"["null","int"]"#, &[4, 2]),
    ] {
        let node = parse(json).unwrap();
        let mut builder = Builder::new(&node).unwrap();
        let allowance = &mut allowance(bytes.len());
        assert!(builder.read(&mut Input::new(bytes), allowance).is_err(), "build {json}");
        if !json.contains("enum") && !json.contains(r#""int""#) {
            assert!(node.skip(&mut Input::new(bytes), &mut allowance.repeats).is_err(), "skip {json}");
        }
    }
    let mut builder = Builder::new(&Node::Text).unwrap();
    builder.read(&mut Input::new(&[2, 0xff]), &mut allowance(2)).unwrap();
    assert!(builder.finish().is_err(), "text that is no UTF-8");
}

fn codecs() -> [Codec; 6] {
    [
        Codec::Null,
        Codec::Deflate(DeflateSettings::default()),
        Codec::Snappy,
        Codec::Zstandard(Default::default()),
        Codec::Bzip2(Default::default()),
        Codec::Xz(Default::default()),
    ]
}

#[tokio::test]
async fn every_codec_and_many_blocks_are_read() {
    let json = r#"{"type":"record","name":"r","fields":[
        {"name":"id","type":"int"},
        {"name":"t","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null}]}"#;
    let schema = Schema::parse_str(json).unwrap();
    for codec in codecs() {
        let mut writer = Writer::with_codec(&schema, Vec::new(), codec).unwrap();
        for id in 0..500 {
            let time = if id % 3 == 0 {
                Value::Union(0, Box::new(Value::Null))
            } else {
                Value::Union(1, Box::new(Value::TimestampMillis(i64::from(id))))
            };
            writer.append_value(Value::Record(vec![("id".into(), Value::Int(id)), ("t".into(), time)])).unwrap();
            if id % 37 == 0 {
                writer.flush().unwrap();
            }
        }
        let file = writer.into_inner().unwrap();
        let rows = container_rows(file).await;
        assert_eq!(rows, (0..500).map(|id| (id, (id % 3 != 0).then_some(i64::from(id)))).collect::<Vec<_>>());
    }
}

/// Reads columns of a file.
async fn container(file: Vec<u8>, columns: &[&str], budget: Arc<dyn MemoryBudget>) -> crate::Result<Vec<StoredBatch>> {
    let store = Arc::new(InMemory::new());
    let storage =
        crate::storage::Storage::from_object_store(Arc::clone(&store) as Arc<dyn ObjectStore>, "memory://t").unwrap();
    let location = storage.location("a.avro").unwrap();
    let size = file.len() as u64;
    store.put(location.path(), file.into()).await.unwrap();
    let schema = crate::spec::TableSchema {
        version: 3,
        id: crate::spec::SchemaId(0),
        fields: vec![],
        highest_field_id: 0,
        partition_keys: vec![],
        primary_keys: vec![],
        options: Default::default(),
        comment: None,
        time_millis: 0,
    };
    let task = crate::file::FileTask::new(storage, location, size, Arc::new(schema), vec![]);
    let access = super::Access::new(&task);
    super::open(&access, request(columns), &budget).await?.batches.try_collect().await
}

async fn container_rows(file: Vec<u8>) -> Vec<(i32, Option<i64>)> {
    let batches = container(file, &["id", "t"], Arc::new(Unbounded)).await.unwrap();
    assert!(batches.iter().all(|batch| batch.rows <= 10));
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.columns[0].as_ref().unwrap();
        let times = batch.columns[1].as_ref().unwrap();
        assert_eq!(times.data_type(), &ArrowType::Timestamp(TimeUnit::Millisecond, None));
        let times = times.as_primitive::<arrow::datatypes::TimestampMillisecondType>();
        rows.extend(ids.as_primitive::<Int32Type>().values().iter().copied().zip(times.iter()));
    }
    rows
}

/// A file of one block, made by hand.
fn file_of(json: &str, codec: &str, rows: u8, block: &[u8]) -> Vec<u8> {
    let long = |number: usize| {
        let (mut rest, mut bytes) = (number << 1, Vec::new());
        while rest > 0x7f {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    };
    let text = |text: &str| [long(text.len()), text.as_bytes().to_vec()].concat();
    let header = [text("avro.schema"), text(json), text("avro.codec"), text(codec)].concat();
    let mark = [7; 16];
    [b"Obj\x01\x04", header.as_slice(), &[0], &mark, &[rows * 2], &long(block.len()), block, &mark].concat()
}

fn names_the_file(error: &Error) -> bool {
    error.context().iter().any(|(what, name)| *what == "file" && name.ends_with("a.avro"))
}

#[tokio::test]
async fn items_without_bytes_are_refused_in_many_parts_too() {
    let array = r#"{"type":"record","name":"r","fields":[{"name":"k","type":"int"},
        {"name":"v","type":{"type":"array","items":"null"}}]}"#;
    let map =
        array.replace(r#""type":"array","items":"null""#, r#""type":"array","items":{"type":"array","items":"null"}"#);
    // parts of 65 536 items each
    let parts = [0x80, 0x80, 0x08].repeat(100_000);
    for (json, block) in
        [(array, [&[2], parts.as_slice(), &[0]].concat()), (&map, [&[2, 2], &parts[..], &[0, 0]].concat())]
    {
        for columns in [&["k", "v"][..], &["k"]] {
            let error = container(file_of(json, "null", 1, &block), columns, Arc::new(Unbounded)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{columns:?}");
            assert!(error.to_string().contains("repeats itself"), "{error}");
            assert!(names_the_file(&error), "{error:?}");
        }
    }
    // one such part is none too many
    let few = [&[2], &parts[..3], &[0]].concat();
    let batches = container(file_of(array, "null", 1, &few), &["v"], Arc::new(Unbounded)).await.unwrap();
    assert_eq!(batches[0].columns[0].as_ref().unwrap().as_list::<i32>().value_length(0), 65_536);
}

/// Memory of so many bytes.
#[derive(Debug)]
struct Little(std::sync::atomic::AtomicUsize);

impl MemoryBudget for Little {
    fn try_grow(&self, bytes: usize) -> crate::Result<()> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self.0.load(Relaxed).checked_sub(bytes).ok_or_else(|| Error::exhausted("the pool is empty"))?;
        self.0.store(left, Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_a_small_block_becomes_is_taken_from_the_memory() {
    const LITTLE: usize = 4 << 20;
    let text = r#"{"type":"record","name":"r","fields":[{"name":"s","type":"string"}]}"#;
    let schema = Schema::parse_str(text).unwrap();
    for codec in codecs().into_iter().skip(1) {
        let mut writer = Writer::with_codec(&schema, Vec::new(), codec).unwrap();
        writer.append_value(Value::Record(vec![("s".into(), Value::String("x".repeat(13 << 20)))])).unwrap();
        let file = writer.into_inner().unwrap();
        let little = Arc::new(Little(LITTLE.into()));
        let error = container(file.clone(), &["s"], Arc::clone(&little) as _).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exhausted, "{codec:?}: {error}");
        assert!(names_the_file(&error), "{error:?}");
        assert_eq!(little.0.load(std::sync::atomic::Ordering::Relaxed), LITTLE, "{codec:?}: all is given back");
        assert_eq!(container(file, &["s"], Arc::new(Unbounded)).await.unwrap().len(), 1, "{codec:?}");
    }
    // a million rows of NULL, a byte each, that are a hundred columns wide
    let fields: Vec<String> = (0..100).map(|n| format!(r#"{{"name":"c{n}","type":["null","long"]}}"#)).collect();
    let wide = format!(
        r#"{{"type":"record","name":"r","fields":[{{"name":"l","type":{{"type":"array","items":
            ["null",{{"type":"record","name":"w","fields":[{}]}}]}}}}]}}"#,
        fields.join(",")
    );
    let block = [&[0x80, 0x89, 0x7a][..], &[0; 1_000_000], &[0]].concat();
    let error =
        container(file_of(&wide, "null", 1, &block), &["l"], Arc::new(Little(LITTLE.into()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
}

#[tokio::test]
async fn blocks_that_end_too_early_or_claim_too_much_are_damage() {
    let text = r#"{"type":"record","name":"r","fields":[{"name":"s","type":"string"}]}"#;
    let row = [&[0x80, 0x10][..], &[b'x'; 1024]].concat();
    for codec in codecs().into_iter().skip(1) {
        let mut block = row.clone();
        codec.compress(&mut block).unwrap();
        let name: &'static str = codec.into();
        let whole = container(file_of(text, name, 1, &block), &["s"], Arc::new(Unbounded)).await.unwrap();
        assert_eq!(whole[0].rows, 1, "{name}");
        block.truncate(block.len() - 1);
        let error = container(file_of(text, name, 1, &block), &["s"], Arc::new(Unbounded)).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "DataFileCorrupt"), "{name}: {error}");
    }
    // a gigabyte in 4 bytes of snappy, and in a frame of zstandard
    let snappy = [0x80, 0x80, 0x80, 0x80, 0x04, 0, 0, 0, 0];
    let zstandard = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 1, 0, 0];
    for (name, block) in [("snappy", &snappy[..]), ("zstandard", &zstandard)] {
        let error = container(file_of(text, name, 1, block), &["s"], Arc::new(Unbounded)).await.unwrap_err();
        assert!(error.to_string().contains("or says so"), "{name}: {error}");
    }
}
