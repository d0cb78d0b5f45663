use apache_avro::types::Value as Avro;
use apache_avro::{Codec, Schema, Writer};

use super::*;
use crate::spec::hostile::peak_of;

const INNER: Table = Table { fields: &[Field::required("x", Kind::Long), Field::nullable("gone", Kind::Bytes)] };

const TABLE: Table = Table {
    fields: &[
        Field::required("name", Kind::Text),
        Field::nullable("absent", Kind::Int),
        Field::required("inner", Kind::Record(&INNER)),
        Field::nullable("list", Kind::NULLABLE_LONGS),
    ],
};

/// Columns in another order, under strange names, with every type that must be skipped.
const WRITER: &str = r#"["null", {"type":"record","name":"Whatever","namespace":"a.b","fields":[
    {"name":"skip","type":{"type":"record","name":"Skip","fields":[
        {"name":"m","type":{"type":"map","values":["null","string","double"]}},
        {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},
        {"name":"f","type":{"type":"fixed","name":"F","size":3}},
        {"name":"l","type":{"type":"array","items":"float"}},
        {"name":"b","type":"boolean"}]}},
    {"name":"list","type":["null",{"type":"array","items":["null","long"]}]},
    {"name":"inner","type":["null",{"type":"record","name":"I","fields":[
        {"name":"again","type":["null","Skip"]},{"name":"x","type":"int"}]}]},
    {"name":"name","type":"string"}]}]"#;

fn avro_file(codec: Codec) -> Vec<u8> {
    let schema = Schema::parse_str(WRITER).unwrap();
    let mut writer = Writer::builder().schema(&schema).writer(Vec::new()).codec(codec).build().unwrap();
    let some = |branch, value| Avro::Union(branch, Box::new(value));
    for row in 0..500 {
        let map = [("k".to_string(), some(1, Avro::String("v".into()))), ("n".to_string(), some(2, Avro::Double(0.5)))];
        let skip = Avro::Record(vec![
            ("m".into(), Avro::Map(map.into())),
            ("e".into(), Avro::Enum(1, "B".into())),
            ("f".into(), Avro::Fixed(3, vec![1, 2, 3])),
            ("l".into(), Avro::Array(vec![Avro::Float(1.0), Avro::Float(2.0)])),
            ("b".into(), Avro::Boolean(true)),
        ]);
        let list = Avro::Array(vec![some(1, Avro::Long(i64::from(row))), some(0, Avro::Null)]);
        let inner = Avro::Record(vec![("again".into(), some(1, skip.clone())), ("x".into(), Avro::Int(-row))]);
        let record = Avro::Record(vec![
            ("skip".into(), skip),
            ("list".into(), if row % 2 == 0 { some(1, list) } else { some(0, Avro::Null) }),
            ("inner".into(), some(1, inner)),
            ("name".into(), Avro::String(format!("row {row}"))),
        ]);
        writer.append_value(some(1, record)).unwrap();
    }
    writer.into_inner().unwrap()
}

type Decoded = (String, Option<i32>, i64, Option<Vec<Option<i64>>>);

fn decoded(bytes: &[u8]) -> Result<Vec<Decoded>> {
    decode(bytes, "m", &TABLE, |row| {
        let (name, absent) = (row.text()?, row.optional_number()?);
        let mut inner = row.record(&INNER)?;
        let x = inner.number()?;
        assert_eq!(inner.optional_bytes()?, None);
        Ok((name, absent, x, row.optional_nullable_longs()?))
    })
    .map(|decoded| decoded.rows)
}

#[test]
fn every_codec_a_union_on_top_and_unknown_columns_are_read() {
    let codecs = [
        Codec::Null,
        Codec::Deflate(apache_avro::DeflateSettings::default()),
        Codec::Snappy,
        Codec::Bzip2(apache_avro::Bzip2Settings::default()),
        Codec::Xz(apache_avro::XzSettings::new(1)),
        Codec::Zstandard(apache_avro::ZstandardSettings::default()),
    ];
    for codec in codecs {
        let rows = decoded(&avro_file(codec)).unwrap();
        assert_eq!(rows.len(), 500, "{codec:?}");
        assert_eq!(rows[0], ("row 0".into(), None, 0, Some(vec![Some(0), None])), "{codec:?}");
        assert_eq!(rows[499], ("row 499".into(), None, -499, None), "{codec:?}");
    }
}

#[test]
fn unknown_codec_is_refused_by_name() {
    let bytes = avro_file(Codec::Snappy);
    let at = bytes.windows(6).position(|window| window == b"snappy").unwrap();
    let mut bytes = bytes.clone();
    bytes[at..at + 6].copy_from_slice(b"sleepy");
    assert!(decoded(&bytes).unwrap_err().to_string().contains("'sleepy'"));
}

fn varint(number: i64) -> Vec<u8> {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// An uncompressed file of one block.
fn raw_file(schema: &str, rows: i64, block: &[u8]) -> Vec<u8> {
    let mut file = AVRO.to_vec();
    file.extend(varint(1));
    for part in [&b"avro.schema"[..], schema.as_bytes()] {
        file.extend(varint(part.len() as i64));
        file.extend_from_slice(part);
    }
    file.extend(varint(0));
    file.extend([7; 16]);
    file.extend(varint(rows));
    file.extend(varint(block.len() as i64));
    file.extend_from_slice(block);
    file.extend([7; 16]);
    file
}

const SMALL: Table = Table { fields: &[Field::nullable("n", Kind::Long), Field::nullable("l", Kind::TEXTS)] };

fn refusal(schema: &str, rows: i64, block: &[u8]) -> String {
    let file = raw_file(schema, rows, block);
    decode(&file, "m", &SMALL, |_| Ok(())).expect_err("hostile file is refused").to_string()
}

fn record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#)
}

#[test]
fn values_without_bytes_cannot_be_repeated_without_end() {
    // rows of no bytes
    assert!(refusal(&record(r#"{"name":"z","type":"null"}"#), 1 << 60, b"").contains("promised"));
    // a list of nulls
    let list = record(r#"{"name":"z","type":{"type":"array","items":"null"}}"#);
    assert!(refusal(&list, 1, &varint(1 << 60)).contains("promised"));
    assert!(refusal(&list, 1, &varint(i64::MIN)).contains("do"));
    // many rows of long lists of nulls: each is plausible, all together are not
    let rows = 4000;
    let row = [varint(3000), varint(0)].concat();
    let many = record(r#"{"name":"l","type":{"type":"array","items":"null"}}"#);
    assert!(refusal(&many, rows, &row.repeat(4000)).contains("repeats itself"));
    // a record that holds itself
    assert!(refusal(&record(r#"{"name":"z","type":"r"}"#), 1, b"\0").contains("before it is defined"));
    // records that hold each other twice
    let mut fields = r#"{"name":"z","type":"null"}"#.to_string();
    let mut inner = r#"{"type":"record","name":"r0","fields":[]}"#.to_string();
    for level in 1..40 {
        let below = format!("r{}", level - 1);
        inner = format!(
            r#"{{"type":"record","name":"r{level}","fields":[{{"name":"a","type":{inner}}},{{"name":"b","type":"{below}"}}]}}"#
        );
    }
    fields.push_str(&format!(r#",{{"name":"y","type":{inner}}}"#));
    assert!(refusal(&record(&fields), 1, b"\0").contains("too large or nested too deeply"));
}

#[test]
fn lengths_are_checked_before_anything_is_allocated() {
    let text = record(r#"{"name":"l","type":{"type":"array","items":"string"}}"#);
    let block = [varint(1), varint(i64::MAX)].concat();
    assert!(refusal(&text, 1, &block).contains("expected"));
    assert!(refusal(&text, 1, &[varint(1), varint(-5)].concat()).contains("length -5"));
    assert!(refusal(&text, 1, &varint(1 << 40)).contains("promised"));
    let number = record(r#"{"name":"n","type":["null","long"]}"#);
    assert!(refusal(&number, 1, &varint(7)).contains("no branch 7"));
    assert!(refusal(&number, 1, &[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).contains("end"));
    assert!(refusal(&number, 1, &[2, 2, 9]).contains("longer than its rows"));
    assert!(refusal(&record(r#"{"name":"n","type":"string"}"#), 1, &[2, 2]).contains("column: n"));
}

#[test]
fn decompression_is_bounded() {
    let schema = record(r#"{"name":"n","type":["null","long"]}"#);
    let codecs = [
        ("zstandard", Codec::Zstandard(apache_avro::ZstandardSettings::default())),
        ("deflate", Codec::Deflate(apache_avro::DeflateSettings::default())),
        ("bzip2", Codec::Bzip2(apache_avro::Bzip2Settings::default())),
        ("xz", Codec::Xz(apache_avro::XzSettings::new(1))),
    ];
    for (name, codec) in codecs {
        let mut block = vec![0u8; 16 << 20];
        codec.compress(&mut block).unwrap();
        let mut file = AVRO.to_vec();
        file.extend(varint(2));
        for part in [&b"avro.schema"[..], schema.as_bytes(), b"avro.codec", name.as_bytes()] {
            file.extend(varint(part.len() as i64));
            file.extend_from_slice(part);
        }
        file.extend(varint(0));
        file.extend([7; 16]);
        let offset = file.len();
        file.extend(varint(1));
        file.extend(varint(block.len() as i64));
        file.extend(block);
        file.extend([7; 16]);
        let (decoded, peak) = peak_of(|| decode(&file, "m", &SMALL, |_| Ok(())));
        assert!(peak < 24 << 20, "{name}: {peak} bytes");
        let error = decoded.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, CORRUPT), "{name}: {error}");
        assert!(error.message().contains("larger than 8388608 bytes"), "{name}: {error}");
        let told = |what: &str| error.context().iter().find(|(known, _)| *known == what).map(|(_, told)| told.clone());
        assert_eq!((told("file"), told("offset")), (Some("m".into()), Some(offset.to_string())), "{name}");
    }
}

#[cfg(feature = "orc")]
#[test]
fn orc_manifest_of_types_that_are_no_tree_is_refused_before_its_decoder_sees_it() {
    use crate::spec::orc_footer::tests::file;
    // a struct of one column `a`, a list that is its own element: a decoder follows it until the stack ends
    let footer = [&[0x22, 7, 0x08, 12, 0x10, 1, 0x1a, 1, b'a'][..], &[0x22, 4, 0x08, 10, 0x10, 1]].concat();
    let error = decode(&file(&footer), "m", &SMALL, |_| Ok(())).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, CORRUPT), "{error}");
    assert!(error.message().contains("no tree"), "{error}");
    assert!(error.context().contains(&("file", "m".into())), "{error}");
}
