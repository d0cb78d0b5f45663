//! A random table, made with the builder, and what it must hold at every snapshot: folded record by record.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use lakepin::spec::bucket::bucket_of;
use lakepin::spec::options::BucketFunction;
use lakepin::spec::{CommitKind, RowKind};
use lakepin::testing::builder::{Commit, FileSpec, SchemaChange, TableBuilder, TableSpec};
use lakepin::testing::naive::{Column, Record, Table, Value, merge};
use serde_json::{Map, json};

use super::column::Col;
use crate::field::kit::{Lake, OrText};
use crate::random::Random;

/// One snapshot: columns of its schema, and its final rows.
#[derive(Debug, Clone)]
pub struct State {
    pub id: i64,
    pub columns: Vec<Col>,
    pub rows: Vec<Vec<Value>>,
}

/// A data file as it is on disk, before it is cut by partition and bucket; with vectors as it is, cut already.
#[derive(Debug, Clone)]
struct File {
    level: i32,
    records: Vec<Record>,
    /// Deleted by position.
    dead: BTreeSet<usize>,
}

/// A table under construction.
pub struct Model {
    pub columns: Vec<Col>,
    pub key: Vec<&'static str>,
    partition: Vec<&'static str>,
    options: BTreeMap<String, String>,
    vectors: bool,
    deletes: Vec<&'static str>,
    files: Vec<File>,
    sequence: i64,
    pub states: Vec<State>,
}

/// Names that columns get, lose and get again.
const PASSING: &[&str] = &["x", "y", "z"];

impl Model {
    /// Makes a table of random shape and history.
    pub fn build(lake: &Lake, random: &mut Random) -> Result<Self, String> {
        let keyed = random.chance(80);
        let vectors = random.chance(30);
        let mut columns = vec![Col::key("k", 24, random)];
        if random.chance(30) {
            columns.push(Col::new("k2", "STRING", 3).not_null());
        }
        let mut key: Vec<&'static str> = columns.iter().map(|c| c.name).collect();
        columns.push(Col::new("v", "INT", 20));
        let mut partition = Vec::new();
        for name in ["p", "p2"].into_iter().take([0, 0, 1, 1, 2][random.below(5) as usize]) {
            let at = random.below(columns.len() as u64 + 1) as usize;
            let column = Col::new(name, random.pick(&["INT", "STRING", "DATE", "BIGINT", "BOOLEAN"]), 3);
            // only a key needs a value
            columns.insert(at, if keyed { column.not_null() } else { column });
            partition.push(name);
        }
        key.extend(&partition);
        columns.push(Col::new("s", "STRING", 12));
        columns.push(Col::new("w", "BIGINT", 50));
        if random.chance(60) {
            columns.push(Col::other("d", random));
        }
        let mut options = BTreeMap::new();
        let mut deletes = Vec::new();
        if keyed {
            options.insert("bucket".to_string(), random.pick(&["1", "1", "2", "4"]).to_string());
            engine_options(&mut columns, &mut options, &mut deletes, vectors, random);
        } else if random.chance(40) {
            options.insert("bucket".to_string(), "3".to_string());
            options.insert("bucket-key".to_string(), "k".to_string());
        }
        if vectors {
            options.insert("deletion-vectors.enabled".to_string(), "true".to_string());
            if keyed && random.chance(35) {
                options.insert("deletion-vectors.merge-on-read".to_string(), "true".to_string());
            } else {
                // no file that is seen holds any
                deletes.clear();
            }
        }
        let declared: Vec<(&str, String)> = columns.iter().map(|c| (c.name, c.declared())).collect();
        let names: Vec<(&str, &str)> = declared.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut spec = TableSpec::new(&names).partitioned_by(&partition);
        if keyed {
            spec = spec.primary_key(&key);
        }
        for (name, value) in &options {
            spec = spec.option(name, value);
        }
        let mut table = lake.table("t", &spec)?;
        if !keyed {
            key.clear();
        }
        let mut model = Self {
            columns,
            key,
            partition,
            options,
            vectors,
            deletes,
            files: Vec::new(),
            sequence: 0,
            states: Vec::new(),
        };
        model.take_ids(&table);
        for _ in 0..1 + random.below(6) {
            model.step(&mut table, random)?;
        }
        Ok(model)
    }

    fn engine(&self) -> &str {
        self.options.get("merge-engine").map_or("", String::as_str)
    }

    fn is_set(&self, option: &str) -> bool {
        self.options.get(option).is_some_and(|value| value == "true")
    }

    fn take_ids(&mut self, table: &TableBuilder) {
        for column in &mut self.columns {
            column.id = table.schema().fields.iter().find(|f| f.name == column.name).map_or(-1, |field| field.id);
        }
    }

    /// One commit, perhaps a change of the schema before it.
    fn step(&mut self, table: &mut TableBuilder, random: &mut Random) -> Result<(), String> {
        while random.chance(15) {
            self.alter(table, random)?;
        }
        if self.vectors {
            return self.vector_step(table, random);
        }
        if !self.key.is_empty() && !self.files.is_empty() && random.chance(20) {
            return self.compact(table, random);
        }
        let mut commit = table.commit().entries_per_manifest(1 + random.below(4) as usize);
        for _ in 0..1 + random.below(3) {
            let level = self.free_level(random);
            let file = self.file(random, level);
            commit = commit.file(self.spec(&file, random));
            self.files.push(file);
        }
        let snapshot = commit.publish().text()?;
        self.record(snapshot.id.0)
    }

    /// Adds, drops, renames or retypes a column that nothing is said about.
    fn alter(&mut self, table: &mut TableBuilder, random: &mut Random) -> Result<(), String> {
        let passing: Vec<usize> =
            (0..self.columns.len()).filter(|at| PASSING.contains(&self.columns[*at].name)).collect();
        let free: Vec<&'static str> =
            PASSING.iter().filter(|name| self.columns.iter().all(|c| c.name != **name)).copied().collect();
        let add = passing.is_empty() || (!free.is_empty() && random.chance(35));
        if add {
            let name = random.pick(&free);
            let column = if random.chance(50) { Col::new(name, "INT", 9) } else { Col::other(name, random) };
            table.alter(&SchemaChange::Add(column.name, column.sql_type())).text()?;
            self.columns.push(column);
            self.files.iter_mut().flat_map(|f| &mut f.records).for_each(|record| record.values.push(Value::Null));
        } else {
            let at = random.pick(&passing);
            let column = self.columns[at].clone();
            match random.below(3) {
                0 => {
                    table.alter(&SchemaChange::Drop(column.name)).text()?;
                    self.columns.remove(at);
                    self.files
                        .iter_mut()
                        .flat_map(|f| &mut f.records)
                        .for_each(|record| drop(record.values.remove(at)));
                }
                1 if !free.is_empty() => {
                    let to = random.pick(&free);
                    table.alter(&SchemaChange::Rename(column.name, to)).text()?;
                    self.columns[at].name = to;
                }
                _ if column.is_integer() => {
                    let text = random.pick(&["BIGINT", "STRING", "DOUBLE", "DECIMAL(10, 2)"]);
                    table.alter(&SchemaChange::Retype(column.name, text)).text()?;
                    let retyped = column.retyped(text);
                    for record in self.files.iter_mut().flat_map(|f| &mut f.records) {
                        record.values[at] = column.cast(&record.values[at], &retyped);
                    }
                    self.columns[at] = retyped;
                }
                _ => {}
            }
        }
        self.take_ids(table);
        Ok(())
    }

    /// Level 0, or a level above that holds no run yet.
    fn free_level(&self, random: &mut Random) -> i32 {
        if self.key.is_empty() || (self.engine() != "first-row" && random.chance(60)) {
            return 0;
        }
        let level = 1 + random.below(5) as i32;
        if self.files.iter().any(|f| f.level == level) { 0 } else { level }
    }

    fn place(&self, name: &str) -> usize {
        self.columns.iter().position(|c| c.name == name).unwrap_or_default()
    }

    fn key_of(&self, record: &Record) -> String {
        format!("{:?}", self.key.iter().map(|k| &record.values[self.place(k)]).collect::<Vec<_>>())
    }

    /// Rows of one file; a key at most once when there are keys.
    fn file(&mut self, random: &mut Random, level: i32) -> File {
        let mut records: Vec<Record> = Vec::new();
        let mut seen = BTreeSet::new();
        for _ in 0..1 + random.below(16) {
            let values: Vec<Value> = self.columns.iter().map(|c| c.value(random)).collect();
            self.sequence += 1;
            // now and then a late record
            let sequence = if random.chance(15) { random.below(self.sequence as u64) as i64 } else { self.sequence };
            let deletes = if self.vectors && level > 0 { &[][..] } else { &self.deletes[..] };
            let kind = if !deletes.is_empty() && random.chance(25) { random.pick(deletes) } else { "+I" };
            let kind = (0..4).filter_map(RowKind::from_byte).find(|k| k.as_str() == kind).unwrap_or(RowKind::Insert);
            let mut record = Record { values, sequence, kind, level, place: 0 };
            if !self.key.is_empty() {
                let key = self.key_of(&record);
                // first-row tables keep a key once above level 0
                let taken = self.engine() == "first-row" && level > 0;
                let mut versions = self.files.iter().flat_map(|f| &f.records).filter(|r| self.key_of(r) == key);
                let known = taken && versions.clone().any(|r| r.level > 0);
                if known || !seen.insert(key.clone()) {
                    continue;
                }
                let number = versions.clone().map(|r| r.sequence).max().filter(|_| random.chance(15));
                record.sequence = number.unwrap_or(record.sequence);
                // two different records of a key share a number only where something else orders them; the same record may
                let twin = versions.find(|r| r.sequence == record.sequence && !self.is_ordered(r, &record));
                if let Some(twin) = twin {
                    record = Record { level, ..twin.clone() };
                }
            }
            records.push(record);
        }
        File { level, records, dead: BTreeSet::new() }
    }

    /// Whether two records of one key and number are ordered all the same: by the sequence field, or as a retract, which
    /// goes before what adds.
    fn is_ordered(&self, one: &Record, other: &Record) -> bool {
        let by_field = self.options.get("sequence.field").is_some_and(|name| {
            let at = self.place(name);
            one.values[at].order(&other.values[at]).is_ne()
        });
        by_field || one.kind.is_retract() != other.kind.is_retract()
    }

    fn json(&self, records: &[Record]) -> Vec<serde_json::Value> {
        records
            .iter()
            .map(|record| {
                let mut row = Map::new();
                for (column, value) in self.columns.iter().zip(&record.values) {
                    row.insert(column.name.to_string(), column.json(value));
                }
                row.insert("_SEQUENCE_NUMBER".into(), json!(record.sequence));
                row.insert("_ROW_KIND".into(), json!(record.kind.as_str()));
                serde_json::Value::Object(row)
            })
            .collect()
    }

    fn spec(&self, file: &File, random: &mut Random) -> FileSpec {
        let mut spec = FileSpec::rows(&self.json(&file.records)).level(file.level);
        spec = spec.row_group_rows(random.pick(&[1, 2, 5, 1000]));
        if !self.key.is_empty() && random.chance(25) {
            // unknown, or zero as some writers have it whatever is inside; compactions count truly
            let unknown = random.chance(50) || file.level > 0;
            spec = spec.delete_count(if unknown { None } else { Some(0) });
        }
        spec
    }

    /// Everything folded into one run of the top level.
    fn compact(&mut self, table: &mut TableBuilder, random: &mut Random) -> Result<(), String> {
        let records: Vec<Record> = self
            .folded(self.files.iter().flat_map(|f| f.records.clone()).collect())?
            .into_iter()
            .map(|(values, sequence)| Record { values, sequence, kind: RowKind::Insert, level: 5, place: 0 })
            .collect();
        let file = File { level: 5, records, dead: BTreeSet::new() };
        let mut commit = table.commit().remove_all().kind(CommitKind::Compact);
        if !file.records.is_empty() {
            commit = commit.file(self.spec(&file, random));
        }
        let snapshot = commit.publish().text()?;
        self.files = if file.records.is_empty() { Vec::new() } else { vec![file] };
        self.record(snapshot.id.0)
    }

    /// Partition and bucket of a record.
    fn unit(&self, record: &Record) -> Result<(String, i32), String> {
        let of =
            |names: &[&str]| format!("{:?}", names.iter().map(|n| &record.values[self.place(n)]).collect::<Vec<_>>());
        let buckets: i32 = self.options.get("bucket").and_then(|n| n.parse().ok()).unwrap_or(-1);
        let hashed: Vec<&str> = match self.key.is_empty() {
            true => vec!["k"],
            false => self.key.iter().filter(|name| !self.partition.contains(name)).copied().collect(),
        };
        let columns: Vec<usize> = hashed.iter().map(|name| self.place(name)).collect();
        let key: Vec<_> = columns.iter().map(|at| self.columns[*at].datum(&record.values[*at])).collect();
        let types: Vec<_> = columns.iter().map(|at| &self.columns[*at].data_type).collect();
        let bucket = bucket_of(BucketFunction::Default, &key, &types, buckets).text()?.unwrap_or(0);
        Ok((of(&self.partition), bucket))
    }

    /// The records of a file cut by partition and bucket, in the order in which they lie on disk.
    fn cut(&self, file: File) -> Result<Vec<File>, String> {
        let mut units: BTreeMap<(String, i32), File> = BTreeMap::new();
        for record in file.records {
            let unit = units.entry(self.unit(&record)?);
            let empty = || File { level: file.level, records: Vec::new(), dead: BTreeSet::new() };
            unit.or_insert_with(empty).records.push(record);
        }
        let mut files: Vec<File> = units.into_values().collect();
        let trimmed: Vec<usize> =
            self.key.iter().filter(|name| !self.partition.contains(name)).map(|name| self.place(name)).collect();
        let order = |a: &Record, b: &Record| {
            trimmed.iter().map(|at| a.values[*at].order(&b.values[*at])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        files.iter_mut().for_each(|file| file.records.sort_by(order));
        Ok(files)
    }

    /// Tables with vectors: a new file above level 0 hides the old versions of its keys by position.
    fn vector_step(&mut self, table: &mut TableBuilder, random: &mut Random) -> Result<(), String> {
        let keyed = !self.key.is_empty();
        let before: Vec<String> = table.live_files().text()?.into_iter().map(|e| e.file.file_name).collect();
        if before.len() != self.files.len() {
            return Err(format!("{} files are there, {} are known", before.len(), self.files.len()));
        }
        // level 0 of a keyed table waits for compaction
        let fresh = keyed && random.chance(25);
        let level = if keyed && !fresh { 1 + random.below(5) as i32 } else { 0 };
        let file = self.file(random, level);
        let keys: BTreeSet<String> = file.records.iter().map(|r| self.key_of(r)).collect();
        for at in 0..self.files.len() {
            if fresh || (keyed && self.files[at].level == 0) {
                continue;
            }
            let gone: Vec<usize> = (0..self.files[at].records.len())
                .filter(|row| {
                    let same_key = keyed && keys.contains(&self.key_of(&self.files[at].records[*row]));
                    same_key || random.chance(6)
                })
                .collect();
            self.files[at].dead.extend(gone);
        }
        let files = self.cut(file)?;
        let kind = if fresh { CommitKind::Append } else { CommitKind::Compact };
        let mut commit: Commit<'_> = table.commit().kind(kind);
        for file in &files {
            commit = commit.file(self.spec(file, random));
        }
        if random.chance(30) {
            commit = commit.bitmap64();
        }
        for (name, old) in before.iter().zip(&self.files) {
            if !old.dead.is_empty() {
                let positions: Vec<u64> = old.dead.iter().map(|p| *p as u64).collect();
                commit = commit.delete_positions(name, &positions);
            }
        }
        self.files.extend(files);
        let id = commit.publish().text()?.id.0;
        self.record(id)
    }

    /// One row and sequence number a key, retracts left out.
    fn folded(&self, mut records: Vec<Record>) -> Result<Vec<(Vec<Value>, i64)>, String> {
        let table = Table {
            columns: self
                .columns
                .iter()
                .map(|c| Column { name: c.name.into(), data_type: c.data_type.clone(), nullable: c.nullable })
                .collect(),
            key: self.key.iter().map(|k| (*k).to_string()).collect(),
            options: self.options.clone(),
        };
        records.iter_mut().enumerate().for_each(|(at, r)| r.place = at);
        let outcome = merge(&table, &records)?;
        Ok(outcome.rows.into_iter().filter(|r| !r.kind.is_retract()).map(|r| (r.values, r.sequence)).collect())
    }

    fn record(&mut self, id: i64) -> Result<(), String> {
        let alive = self
            .files
            .iter()
            .flat_map(|f| f.records.iter().enumerate().filter(|(at, _)| !f.dead.contains(at)).map(|(_, r)| r.clone()));
        let rows = if self.key.is_empty() {
            alive.map(|r| r.values).collect()
        } else {
            let hidden =
                self.engine() == "first-row" || (self.vectors && !self.is_set("deletion-vectors.merge-on-read"));
            let visible = alive.filter(|r| !hidden || r.level > 0).collect();
            self.folded(visible)?.into_iter().map(|(values, _)| values).collect()
        };
        self.states.push(State { id, columns: self.columns.clone(), rows });
        Ok(())
    }

    /// The shape in words, for a failure.
    pub fn describe(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|c| format!("{} {}", c.name, c.declared())).collect();
        let files: Vec<String> = self.files.iter().map(|f| format!("L{}x{}", f.level, f.records.len())).collect();
        format!("({}) key {:?} {:?} files {}", columns.join(", "), self.key, self.options, files.join(" "))
    }
}

/// Merge engine and what belongs to it, with the kinds of rows that take others back.
fn engine_options(
    columns: &mut Vec<Col>,
    options: &mut BTreeMap<String, String>,
    deletes: &mut Vec<&'static str>,
    vectors: bool,
    random: &mut Random,
) {
    let mut set = |key: &str, value: &str| drop(options.insert(key.to_string(), value.to_string()));
    let engines = ["deduplicate", "deduplicate", "partial-update", "partial-update", "aggregation", "first-row"];
    let engine = random.pick(&engines[..if vectors { 5 } else { 6 }]);
    set("merge-engine", engine);
    let grouped = engine == "partial-update" && random.chance(55);
    if grouped {
        columns.push(Col::new("g", "INT", 10));
        set("fields.g.sequence-group", random.pick(&["v,w", "w,s", "v"]));
        if random.chance(30) {
            set("partial-update.remove-record-on-sequence-group", "g");
        }
        if random.chance(40) {
            columns.push(Col::new("h", "DATE", 10));
            columns.push(Col::new("i", "STRING", 4));
            columns.push(Col::new("u", "INT", 20));
            set("fields.h,i.sequence-group", "u");
            set("fields.u.aggregate-function", random.pick(&["sum", "last_value", "last_non_null_value"]));
        }
    } else if engine != "first-row" && random.chance(35) {
        columns.push(Col::new("q", "INT", 10));
        set("sequence.field", "q");
        if random.chance(30) {
            set("sequence.field.sort-order", "descending");
        }
    }
    if engine != "first-row" && !vectors && random.chance(20) {
        set("changelog-producer", "lookup");
    }
    let with_deletes = random.chance(60);
    match engine {
        "deduplicate" if with_deletes => {
            *deletes = vec!["-D", "-D", "-U", "+U"];
            if random.chance(20) {
                set("ignore-delete", "true");
            }
        }
        "first-row" if with_deletes => {
            *deletes = vec!["-D", "-U"];
            set("ignore-delete", "true");
        }
        "partial-update" if with_deletes && grouped => *deletes = vec!["-D", "-U", "+U"],
        "partial-update" if with_deletes => {
            *deletes = vec!["-D", "-U"];
            set(random.pick(&["ignore-delete", "partial-update.remove-record-on-delete"]), "true");
        }
        "aggregation" => {
            set("fields.v.aggregate-function", "sum");
            set("fields.w.aggregate-function", "max");
            set("fields.s.aggregate-function", random.pick(&["last_value", "last_non_null_value"]));
            if with_deletes && random.chance(50) {
                *deletes = vec!["-D", "-U"];
                set("fields.w.ignore-retract", "true");
            } else if with_deletes {
                *deletes = vec!["-D"];
                set("aggregation.remove-record-on-delete", "true");
            }
        }
        _ => {}
    }
}
