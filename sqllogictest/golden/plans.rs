//! Metadata of golden tables: planned files, live files, snapshots.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use lakepin::arrow;
use serde_json::Value;

use super::Verdict;
use super::reads::{Answer, Reader, quoted};

/// Filtered plans that keep fewer files than Java's: how many fewer, and the rule that leaves them out. Java 0.9 judges
/// no bounds of a column whose type was widened, looks into index files only while reading, and takes no bounds from
/// the smallest and largest key of a file without statistics.
const FEWER_FILES: &[(&str, &str, usize, &str)] = &[
    ("evo_append_avro", "plan-5-filter1", 1, "value statistics exclude"),
    ("evo_append_orc", "plan-5-filter1", 1, "value statistics exclude"),
    ("evo_append_parquet", "plan-5-filter1", 1, "value statistics exclude"),
    ("index_bitmap_file", "plan-1-filter4", 1, "its file index holds no row"),
    ("index_bloom_file", "plan-2-filter4", 2, "its file index holds no row"),
    ("stats_counts", "plan-1-filter3", 1, "key statistics exclude"),
    ("stats_none", "plan-1-filter3", 1, "key statistics exclude"),
];

/// Plans where Java drops files that hold rows.
const JAVA_DROPS_TOO_MUCH: &[&str] = &["evo_append_parquet", "evo_append_orc", "evo_append_avro"];

fn strings(answer: &Answer, column: &str) -> Result<Vec<Option<String>>, String> {
    let mut values = Vec::new();
    for batch in &answer.batches {
        let array = batch.column_by_name(column).ok_or_else(|| format!("no column {column} in {:?}", answer.schema))?;
        let array = arrow::compute::cast(array, &arrow::datatypes::DataType::Utf8).map_err(|e| e.to_string())?;
        let array = array.as_string::<i32>();
        values.extend((0..array.len()).map(|i| array.is_valid(i).then(|| array.value(i).to_string())));
    }
    Ok(values)
}

fn longs(answer: &Answer, column: &str) -> Result<Vec<Option<i64>>, String> {
    let mut values = Vec::new();
    for batch in &answer.batches {
        let array = batch.column_by_name(column).ok_or_else(|| format!("no column {column} in {:?}", answer.schema))?;
        let array = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64).map_err(|e| e.to_string())?;
        let array = array.as_primitive::<Int64Type>();
        values.extend((0..array.len()).map(|i| array.is_valid(i).then(|| array.value(i))));
    }
    Ok(values)
}

fn bare(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// Names of the files that `EXPLAIN FILES` says are kept.
pub fn kept(answer: &Answer) -> Result<BTreeSet<String>, String> {
    let kept = strings(answer, "kept")?;
    let files = strings(answer, "file")?.into_iter().zip(kept);
    Ok(files.filter(|(_, kept)| kept.as_deref() == Some("true")).filter_map(|(name, _)| Some(bare(&name?))).collect())
}

/// The files of a plan of Java's.
fn planned(reader: &Reader, file: &str) -> Result<BTreeSet<String>, String> {
    let splits = reader.lines(file)?;
    let files = splits.iter().flat_map(|split| split["files"].as_array().cloned().unwrap_or_default());
    Ok(files.filter_map(|f| f["name"].as_str().map(ToString::to_string)).collect())
}

/// The files kept are those of Java's plan, but for the plans listed above. That they are no fewer than needed is what
/// the row comparison of the same filter shows.
pub async fn check_plan(reader: &Reader, file: &str) -> Result<Verdict, String> {
    let stem = file.trim_end_matches(".jsonl");
    let rest = stem.strip_prefix("plan-").ok_or("odd name")?;
    let table = quoted(&reader.table);
    let (id, filter) = match rest.split_once('-') {
        Some((id, filter)) => (id, Some(filter)),
        None => (rest, None),
    };
    let base = format!("SELECT * FROM {table} VERSION AS OF {id}");
    let java = planned(reader, file)?;
    let sql = match filter {
        Some(filter) => {
            let answer = match reader.ask(&format!("{base} LIMIT 0")).await {
                Ok(answer) => answer,
                Err(e) => return super::explained::refusal(reader.side, &reader.table, "latest", &e),
            };
            format!("EXPLAIN FILES {base} WHERE {}", reader.filter(filter, &answer.schema)?)
        }
        None => format!("EXPLAIN FILES SELECT count(*) FROM {table} VERSION AS OF {id}"),
    };
    let answer = match reader.ask(&sql).await {
        Ok(answer) => answer,
        Err(e) => return super::explained::refusal(reader.side, &reader.table, "latest", &e),
    };
    let ours = kept(&answer)?;
    if ours == java {
        return Ok(Verdict::Equal);
    }
    let listed = FEWER_FILES.iter().find(|entry| (entry.0, entry.1) == (reader.table.as_str(), stem));
    if let Some((_, _, fewer, rule)) = listed
        && ours.is_subset(&java)
        && java.len() - ours.len() == *fewer
    {
        let rules = strings(&answer, "rule")?;
        let names = strings(&answer, "file")?.into_iter().map(|name| bare(name.as_deref().unwrap_or_default()));
        let mut left_out = names.zip(rules).filter(|(name, _)| java.contains(name) && !ours.contains(name));
        if left_out.all(|(_, told)| told.is_some_and(|told| told.contains(rule))) {
            return Ok(Verdict::Explained);
        }
    }
    if filter == Some("filter4") && JAVA_DROPS_TOO_MUCH.contains(&reader.table.as_str()) && ours.is_superset(&java) {
        return Ok(Verdict::Explained);
    }
    let more: Vec<_> = ours.difference(&java).collect();
    let fewer: Vec<_> = java.difference(&ours).collect();
    Err(format!(
        "Java keeps {} files, we keep {}; only ours {more:?}; only Java's {fewer:?}\n  {sql}",
        java.len(),
        ours.len()
    ))
}

/// Live files of a snapshot against `$files`: name, bucket, level, rows, deletes, sequence range, schema, source. Listed are
/// those of Java's plan: no file of a hidden level, and those of the branch that completes the table.
pub async fn check_files(reader: &Reader, file: &str) -> Result<Verdict, String> {
    let id = file.trim_end_matches(".jsonl").strip_prefix("files-").ok_or("odd name")?;
    let files = quoted(&format!("{}$files", reader.table));
    let answer =
        reader.ask(&format!("SELECT * FROM {files} VERSION AS OF {id}")).await.map_err(|e| format!("{e:?}"))?;
    let columns = [
        "bucket",
        "level",
        "record_count",
        "file_size_in_bytes",
        "schema_id",
        "min_sequence_number",
        "max_sequence_number",
        "deleteRowCount",
    ];
    let members = ["bucket", "level", "rowCount", "size", "schemaId", "minSeq", "maxSeq", "deleteRowCount"];
    let mut ours: BTreeMap<String, Vec<Option<i64>>> = BTreeMap::new();
    let paths = strings(&answer, "file_path")?;
    for column in columns {
        for (path, value) in paths.iter().zip(longs(&answer, column)?) {
            ours.entry(bare(path.as_deref().unwrap_or_default())).or_default().push(value);
        }
    }
    let mut theirs: BTreeMap<String, Vec<Option<i64>>> = BTreeMap::new();
    let planned = planned(reader, &format!("plan-{id}.jsonl"))?;
    for line in reader.lines(file)? {
        let name = line["name"].as_str().ok_or("no name")?.to_string();
        if planned.contains(&name) {
            theirs.insert(name, members.iter().map(|m| line[*m].as_i64()).collect());
        }
    }
    if ours.keys().ne(planned.iter()) {
        return Err(format!("Java plans {planned:?}, listed are {:?}", ours.keys()));
    }
    // of the branch's files the archive has no entries
    ours.retain(|name, _| theirs.contains_key(name));
    if ours == theirs {
        return Ok(Verdict::Equal);
    }
    let differing = theirs.iter().find(|(name, values)| ours.get(*name) != Some(values));
    Err(format!("{} files expected, {} read; first that differs {differing:?}", theirs.len(), ours.len()))
}

/// `$snapshots` against the archive.
pub async fn check_snapshots(reader: &Reader, file: &str) -> Result<Verdict, String> {
    let table = quoted(&format!("{}$snapshots", reader.table));
    let answer = reader.ask(&format!("SELECT * FROM {table}")).await.map_err(|e| format!("{e:?}"))?;
    let ids = longs(&answer, "snapshot_id")?;
    let numbers = [
        ("schema_id", "schemaId"),
        ("commit_identifier", "identifier"),
        ("total_record_count", "totalRecords"),
        ("delta_record_count", "deltaRecords"),
        ("changelog_record_count", "changelogRecords"),
        ("watermark", "watermark"),
    ];
    let texts = [("commit_kind", "kind"), ("commit_user", "user")];
    let lines: BTreeMap<i64, Value> =
        reader.lines(file)?.into_iter().filter_map(|l| l["id"].as_i64().map(|id| (id, l))).collect();
    let read: BTreeSet<i64> = ids.iter().flatten().copied().collect();
    if read != lines.keys().copied().collect() {
        return Err(format!("snapshots expected {:?}, read {read:?}", lines.keys().collect::<Vec<_>>()));
    }
    for (column, member) in numbers {
        for (id, value) in ids.iter().flatten().zip(longs(&answer, column)?) {
            if value != lines[id][member].as_i64() {
                return Err(format!("snapshot {id}: {column} is {value:?}, expected {}", lines[id][member]));
            }
        }
    }
    for (column, member) in texts {
        for (id, value) in ids.iter().flatten().zip(strings(&answer, column)?) {
            if value.as_deref() != lines[id][member].as_str() {
                return Err(format!("snapshot {id}: {column} is {value:?}, expected {}", lines[id][member]));
            }
        }
    }
    Ok(Verdict::Equal)
}
