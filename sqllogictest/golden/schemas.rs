//! Columns of a read against the schema file of its snapshot: names, order, types, nullability. The way from Paimon's
//! types to Arrow's is written here once more, from the table in `spec`, so that the two check each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use lakepin::arrow;
use serde_json::Value;

use super::reads::{Answer, Reader};

/// The columns of an answer are those of the schema.
pub fn check(reader: &Reader, stem: &str, answer: &Answer) -> Result<(), String> {
    let expected = expected(reader, stem)?;
    if answer.schema.fields() == &expected {
        return Ok(());
    }
    Err(format!("columns differ\n  expected {expected:?}\n  read     {:?}", answer.schema.fields()))
}

/// The columns that the file's snapshot has by its schema, or the newest schema where the read names no snapshot.
pub fn expected(reader: &Reader, stem: &str) -> Result<Fields, String> {
    let main = &reader.folder;
    let newest = |dir: &Path| newest_id(&dir.join("schema"), "schema-");
    let (dir, id) = match stem.split_once('-') {
        Some(("snapshot", id)) => (main.clone(), of_snapshot(main, id)?),
        Some(("rows", rest)) => (main.clone(), of_snapshot(main, rest.split_once('-').ok_or("odd name")?.0)?),
        Some(("tag", name)) => (main.clone(), id_in(&json(&main.join("tag").join(format!("tag-{name}")))?)?),
        Some(("watermark", text)) => {
            let wanted: i64 = text.parse().map_err(|_| "odd watermark")?;
            (main.clone(), of_watermark(main, wanted)?)
        }
        Some(("branch", rest)) => {
            let (branch, snapshot) = rest.split_once("-snapshot-").map_or((rest, None), |(b, id)| (b, Some(id)));
            let dir = main.join("branch").join(format!("branch-{branch}"));
            let id = match snapshot {
                Some(id) => of_snapshot(&dir, id)?,
                None => newest(&dir)?,
            };
            (dir, id)
        }
        _ => (main.clone(), newest(main)?),
    };
    let schema = json(&dir.join("schema").join(format!("schema-{id}")))?;
    let fields = fields(&schema["fields"])?;
    Ok(fields.iter().map(|field| wide_enough(field, &schema)).collect())
}

/// DECIMAL columns that a merge sums hold any 64-bit number, up to 18 digits without a check.
fn wide_enough(field: &Field, schema: &Value) -> Field {
    let option = |key: &str| schema["options"][key].as_str();
    let merges = matches!(option("merge-engine"), Some("aggregation" | "partial-update"));
    let own = option(&format!("fields.{}.aggregate-function", field.name()));
    let function = own.or_else(|| option("fields.default-aggregate-function"));
    let is = |names: Vec<&str>| names.contains(&field.name().as_str());
    let key = is(schema["primaryKeys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect())
        || is(option("sequence.field").unwrap_or_default().split(',').map(str::trim).collect());
    match field.data_type() {
        DataType::Decimal128(0..=18, scale) if merges && function == Some("sum") && !key => {
            field.clone().with_data_type(DataType::Decimal128(19, *scale))
        }
        _ => field.clone(),
    }
}

/// The newest schema file of a table.
pub fn newest(table: &Path) -> Result<Value, String> {
    let dir = table.join("schema");
    json(&dir.join(format!("schema-{}", newest_id(&dir, "schema-")?)))
}

/// The schema's number of a table's snapshot.
pub fn of_snapshot(table: &Path, id: impl std::fmt::Display) -> Result<i64, String> {
    id_in(&json(&table.join("snapshot").join(format!("snapshot-{id}")))?)
}

fn json(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn id_in(snapshot: &Value) -> Result<i64, String> {
    snapshot["schemaId"].as_i64().ok_or_else(|| format!("no schemaId in {snapshot}"))
}

fn numbered(dir: &Path, prefix: &str) -> Result<Vec<i64>, String> {
    let names = super::names(dir)?;
    let mut ids: Vec<i64> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    ids.sort_unstable();
    Ok(ids)
}

fn newest_id(dir: &Path, prefix: &str) -> Result<i64, String> {
    numbered(dir, prefix)?.pop().ok_or_else(|| format!("no {prefix}N in {}", dir.display()))
}

/// Schema of the first snapshot whose watermark is as high.
fn of_watermark(table: &Path, wanted: i64) -> Result<i64, String> {
    let dir: PathBuf = table.join("snapshot");
    for id in numbered(&dir, "snapshot-")? {
        let snapshot = json(&dir.join(format!("snapshot-{id}")))?;
        if snapshot["watermark"].as_i64() >= Some(wanted) {
            return id_in(&snapshot);
        }
    }
    Err(format!("no snapshot has the watermark {wanted}"))
}

fn fields(list: &Value) -> Result<Fields, String> {
    let list = list.as_array().ok_or("fields are no list")?;
    list.iter().map(|f| named(f["name"].as_str().ok_or("a field without name")?, &f["type"])).collect()
}

/// A field of a type, which may say NOT NULL.
fn named(name: &str, data_type: &Value) -> Result<Field, String> {
    let (data_type, nullable) = of_type(data_type)?;
    Ok(Field::new(name, data_type, nullable))
}

fn of_type(data_type: &Value) -> Result<(DataType, bool), String> {
    let text =
        data_type.as_str().or_else(|| data_type["type"].as_str()).ok_or_else(|| format!("odd type {data_type}"))?;
    let (text, nullable) = match text.strip_suffix(" NOT NULL") {
        Some(text) => (text, false),
        None => (text, true),
    };
    let made = if data_type.is_object() { nested(text, data_type) } else { atomic(text) };
    Ok((made?, nullable))
}

fn nested(text: &str, data_type: &Value) -> Result<DataType, String> {
    let map = |key: &Value, value: Field| -> Result<DataType, String> {
        let key = Field::new("key", of_type(key)?.0, false);
        let entries = DataType::Struct(Fields::from(vec![key, value]));
        Ok(DataType::Map(Arc::new(Field::new("entries", entries, false)), false))
    };
    match text {
        "ARRAY" => Ok(DataType::List(Arc::new(named("item", &data_type["element"])?))),
        "MAP" => map(&data_type["key"], named("value", &data_type["value"])?),
        "MULTISET" => map(&data_type["element"], Field::new("value", DataType::Int32, true)),
        "ROW" => Ok(DataType::Struct(fields(&data_type["fields"])?)),
        other => Err(format!("unknown type {other}")),
    }
}

fn atomic(text: &str) -> Result<DataType, String> {
    let (head, rest) = text.split_once('(').map_or((text, ""), |(head, rest)| (head, rest));
    let (inner, tail) = rest.split_once(')').unwrap_or((rest, ""));
    let numbers: Result<Vec<u8>, _> = match head {
        "DECIMAL" | "TIMESTAMP" | "TIMESTAMP_LTZ" => inner.split(',').map(|n| n.trim().parse::<u8>()).collect(),
        _ => Ok(Vec::new()),
    };
    let numbers = numbers.map_err(|e| format!("{text}: {e}"))?;
    let time = |zone: bool| {
        let unit = match numbers.first() {
            Some(0..=3) => TimeUnit::Millisecond,
            Some(4..=6) => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        };
        DataType::Timestamp(unit, zone.then(|| "UTC".into()))
    };
    Ok(match (head, tail.trim()) {
        ("CHAR" | "VARCHAR" | "STRING", "") => DataType::Utf8,
        ("BINARY" | "VARBINARY" | "BYTES" | "BLOB", "") => DataType::Binary,
        ("BOOLEAN", "") => DataType::Boolean,
        ("TINYINT", "") => DataType::Int8,
        ("SMALLINT", "") => DataType::Int16,
        ("INT", "") => DataType::Int32,
        ("BIGINT", "") => DataType::Int64,
        ("FLOAT", "") => DataType::Float32,
        ("DOUBLE", "") => DataType::Float64,
        ("DATE", "") => DataType::Date32,
        ("TIME", "") => DataType::Time32(TimeUnit::Millisecond),
        ("DECIMAL", "") => match numbers.as_slice() {
            [precision, scale] => DataType::Decimal128(*precision, i8::try_from(*scale).map_err(|e| e.to_string())?),
            _ => return Err(format!("odd type {text}")),
        },
        ("TIMESTAMP", "") => time(false),
        ("TIMESTAMP", "WITH LOCAL TIME ZONE") | ("TIMESTAMP_LTZ", "") => time(true),
        _ => return Err(format!("unknown type {text}")),
    })
}
