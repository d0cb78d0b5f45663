//! Avro object container files as Java writes them: its record names, its column order, codec zstandard.

use std::hash::Hasher;

use twox_hash::XxHash64;

use super::row::Value;
use super::table::{Element, Kind, Table};
use crate::error::{Error, Result};

const NAMESPACE: &str = "org.apache.paimon.avro.generated";
const ROOT: &str = "record";
const ZSTD_LEVEL: i32 = 3;
/// Bytes of rows after which a block is closed.
const BLOCK_BYTES: usize = 64_000;

/// Encodes rows, each with its values in the order of `table`.
pub fn write<'a>(table: &'static Table, rows: impl Iterator<Item = Vec<Value<'a>>>) -> Result<Vec<u8>> {
    let schema = schema_json(table);
    let mut blocks = Vec::new();
    let (mut rows_in_block, mut block) = (0i64, Vec::new());
    for row in rows {
        record(&mut block, table, &row)?;
        rows_in_block += 1;
        if block.len() >= BLOCK_BYTES {
            blocks.push((rows_in_block, compress(&block)?));
            block.clear();
            rows_in_block = 0;
        }
    }
    if rows_in_block > 0 {
        blocks.push((rows_in_block, compress(&block)?));
    }
    let sync = sync_marker(&schema, &blocks);
    let mut file = super::AVRO.to_vec();
    number(&mut file, 2);
    for (key, value) in [("avro.schema", schema.as_bytes()), ("avro.codec", b"zstandard")] {
        bytes(&mut file, key.as_bytes())?;
        bytes(&mut file, value)?;
    }
    number(&mut file, 0);
    file.extend_from_slice(&sync);
    for (rows, block) in &blocks {
        number(&mut file, *rows);
        bytes(&mut file, block)?;
        file.extend_from_slice(&sync);
    }
    Ok(file)
}

fn compress(block: &[u8]) -> Result<Vec<u8>> {
    zstd::bulk::compress(block, ZSTD_LEVEL)
        .map_err(|error| Error::internal("compressing an Avro block").with_source(error))
}

/// Sixteen bytes that differ from file to file. Taken from the content, so that equal rows give equal files.
fn sync_marker(schema: &str, blocks: &[(i64, Vec<u8>)]) -> [u8; 16] {
    let mut marker = [0; 16];
    for (seed, half) in (1u64..).zip(marker.chunks_exact_mut(8)) {
        let mut hasher = XxHash64::with_seed(seed);
        hasher.write(schema.as_bytes());
        for (_, block) in blocks {
            hasher.write(block);
        }
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    marker
}

fn schema_json(table: &Table) -> String {
    let fields = fields_json(table, ROOT);
    format!(r#"{{"type":"record","name":"{ROOT}","namespace":"{NAMESPACE}","fields":[{fields}]}}"#)
}

/// A nested record is named for its path: `record`, `record__FILE`, `record__FILE__KEY_STATS`.
fn fields_json(table: &Table, path: &str) -> String {
    let fields = table.fields.iter().map(|field| {
        let inner = type_json(&field.kind, &format!("{path}_{}", field.name));
        if field.nullable {
            format!(r#"{{"name":"{}","type":["null",{inner}],"default":null}}"#, field.name)
        } else {
            format!(r#"{{"name":"{}","type":{inner}}}"#, field.name)
        }
    });
    fields.collect::<Vec<_>>().join(",")
}

fn type_json(kind: &Kind, path: &str) -> String {
    match kind {
        Kind::Int => r#""int""#.to_string(),
        Kind::Long => r#""long""#.to_string(),
        Kind::Millis => r#"{"type":"long","logicalType":"timestamp-millis"}"#.to_string(),
        Kind::Text => r#""string""#.to_string(),
        Kind::Bytes => r#""bytes""#.to_string(),
        Kind::List(Element { kind, nullable }) => {
            let inner = type_json(kind, path);
            let inner = if *nullable { format!(r#"["null",{inner}]"#) } else { inner };
            format!(r#"{{"type":"array","items":{inner}}}"#)
        }
        Kind::Record(table) => {
            format!(r#"{{"type":"record","name":"{path}","fields":[{}]}}"#, fields_json(table, path))
        }
    }
}

fn number(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or_default();
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn bytes(out: &mut Vec<u8>, value: &[u8]) -> Result<()> {
    let length = i64::try_from(value.len()).map_err(|_| Error::invalid("a value is too long for Avro"))?;
    number(out, length);
    out.extend_from_slice(value);
    Ok(())
}

fn record(out: &mut Vec<u8>, table: &Table, values: &[Value<'_>]) -> Result<()> {
    if values.len() != table.fields.len() {
        return Err(Error::internal(format!("{} values for {} columns", values.len(), table.fields.len())));
    }
    for (field, value) in table.fields.iter().zip(values) {
        place(out, &field.kind, field.nullable, value).map_err(|error| error.with_context("column", field.name))?;
    }
    Ok(())
}

fn place(out: &mut Vec<u8>, kind: &Kind, nullable: bool, value: &Value<'_>) -> Result<()> {
    if nullable {
        let is_null = matches!(value, Value::Null);
        number(out, i64::from(!is_null));
        if is_null {
            return Ok(());
        }
    }
    match (kind, value) {
        (Kind::Int, Value::Long(v)) if i32::try_from(*v).is_ok() => number(out, *v),
        (Kind::Long | Kind::Millis, Value::Long(v)) => number(out, *v),
        (Kind::Text | Kind::Bytes, Value::Bytes(v)) => bytes(out, v)?,
        (Kind::List(element), Value::List(values)) => {
            if !values.is_empty() {
                let count = i64::try_from(values.len()).map_err(|_| Error::invalid("a list is too long for Avro"))?;
                number(out, count);
                for value in values {
                    place(out, &element.kind, element.nullable, value)?;
                }
            }
            number(out, 0);
        }
        (Kind::Record(table), Value::Record(values)) => record(out, table, values)?,
        _ => return Err(Error::internal(format!("{value:?} is no value of a column of kind {kind:?}"))),
    }
    Ok(())
}
