//! A random table, made with the builder, and what it must hold at every snapshot: folded record by record.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use lakepin::spec::{CommitKind, DataType, RowKind};
use lakepin::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use lakepin::testing::naive::{Column, Record, Table, Value, merge};
use serde_json::{Map, json};

use crate::field::kit::{Lake, OrText};
use crate::random::Random;

/// A column of the random tables.
#[derive(Debug, Clone)]
pub struct Col {
    pub name: &'static str,
    text: &'static str,
    data_type: DataType,
    nullable: bool,
    /// Values lie below this.
    span: u64,
}

impl Col {
    fn new(name: &'static str, text: &'static str, span: u64) -> Self {
        let data_type = match text.split(' ').next() {
            Some("STRING") => DataType::STRING,
            Some("BIGINT") => DataType::BigInt,
            _ => DataType::Int,
        };
        Self { name, text, data_type, nullable: !text.ends_with("NOT NULL"), span }
    }

    pub fn is_text(&self) -> bool {
        self.text.starts_with("STRING")
    }

    pub fn sql_type(&self) -> &'static str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// A value, never NULL.
    pub fn literal(&self, random: &mut Random) -> Value {
        let n = random.below(self.span);
        if self.is_text() { Value::Text(format!("s{n:02}")) } else { Value::Int(n as i64) }
    }

    fn value(&self, random: &mut Random) -> Value {
        if self.nullable && random.chance(20) { Value::Null } else { self.literal(random) }
    }
}

/// One snapshot: columns of its schema, and its final rows.
#[derive(Debug, Clone)]
pub struct State {
    pub id: i64,
    pub columns: Vec<Col>,
    pub rows: Vec<Vec<Value>>,
}

/// A data file as it is on disk, before it is cut by partition and bucket.
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
    options: BTreeMap<String, String>,
    vectors: bool,
    deletes: Vec<&'static str>,
    files: Vec<File>,
    sequence: i64,
    pub states: Vec<State>,
}

impl Model {
    /// Makes a table of random shape and history.
    pub fn build(lake: &Lake, random: &mut Random) -> Result<Self, String> {
        let keyed = random.chance(80);
        let vectors = random.chance(25);
        let partitioned = !vectors && random.chance(45);
        let mut columns = vec![Col::new("k", "INT NOT NULL", 24)];
        if random.chance(30) {
            columns.push(Col::new("k2", "STRING NOT NULL", 3));
        }
        let key: Vec<&'static str> = columns.iter().map(|c| c.name).chain(partitioned.then_some("p")).collect();
        columns.push(Col::new("v", "INT", 20));
        if partitioned {
            let at = random.below(columns.len() as u64 + 1) as usize;
            let part =
                if random.chance(50) { Col::new("p", "INT NOT NULL", 3) } else { Col::new("p", "STRING NOT NULL", 3) };
            columns.insert(at, part);
        }
        columns.push(Col::new("s", "STRING", 12));
        columns.push(Col::new("w", "BIGINT", 50));
        let mut options = BTreeMap::new();
        let mut set = |key: &str, value: &str| drop(options.insert(key.to_string(), value.to_string()));
        let mut deletes = Vec::new();
        if keyed {
            set("bucket", if vectors { "1" } else { random.pick(&["1", "1", "2", "4"]) });
            let engine = if vectors {
                "deduplicate"
            } else {
                random.pick(&["deduplicate", "deduplicate", "first-row", "partial-update", "aggregation"])
            };
            set("merge-engine", engine);
            if engine != "first-row" && !vectors && random.chance(35) {
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
                "deduplicate" if with_deletes && !vectors => {
                    deletes = vec!["-D", "-D", "-U", "+U"];
                    if random.chance(20) {
                        set("ignore-delete", "true");
                    }
                }
                "first-row" if with_deletes => {
                    deletes = vec!["-D", "-U"];
                    set("ignore-delete", "true");
                }
                "partial-update" if with_deletes => {
                    deletes = vec!["-D", "-U"];
                    set(random.pick(&["ignore-delete", "partial-update.remove-record-on-delete"]), "true");
                }
                "aggregation" => {
                    set("fields.v.aggregate-function", "sum");
                    set("fields.w.aggregate-function", "max");
                    set("fields.s.aggregate-function", random.pick(&["last_value", "last_non_null_value"]));
                    if with_deletes && random.chance(50) {
                        deletes = vec!["-D", "-U"];
                        set("fields.w.ignore-retract", "true");
                    } else if with_deletes {
                        deletes = vec!["-D"];
                        set("aggregation.remove-record-on-delete", "true");
                    }
                }
                _ => {}
            }
        } else if !vectors && random.chance(40) {
            set("bucket", "3");
            set("bucket-key", "k");
        }
        if vectors {
            set("deletion-vectors.enabled", "true");
        }
        let names: Vec<(&str, &str)> = columns.iter().map(|c| (c.name, c.text)).collect();
        let mut spec = TableSpec::new(&names);
        if partitioned {
            spec = spec.partitioned_by(&["p"]);
        }
        if keyed {
            spec = spec.primary_key(&key);
        }
        for (name, value) in &options {
            spec = spec.option(name, value);
        }
        let mut table = lake.table("t", &spec)?;
        let key = if keyed { key } else { Vec::new() };
        let mut model =
            Self { columns, key, options, vectors, deletes, files: Vec::new(), sequence: 0, states: Vec::new() };
        for _ in 0..1 + random.below(6) {
            model.step(&mut table, random)?;
        }
        Ok(model)
    }

    fn engine(&self) -> &str {
        self.options.get("merge-engine").map_or("", String::as_str)
    }

    /// One commit, perhaps a change of the schema before it.
    fn step(&mut self, table: &mut TableBuilder, random: &mut Random) -> Result<(), String> {
        if random.chance(8) && !self.columns.iter().any(|c| c.name == "x") {
            table.alter(&SchemaChange::Add("x", "INT")).text()?;
            self.columns.push(Col::new("x", "INT", 9));
            for record in self.files.iter_mut().flat_map(|f| &mut f.records) {
                record.values.push(Value::Null);
            }
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
            let kind = if !self.deletes.is_empty() && random.chance(25) { random.pick(&self.deletes) } else { "+I" };
            let kind = (0..4).filter_map(RowKind::from_byte).find(|k| k.as_str() == kind).unwrap_or(RowKind::Insert);
            let mut record = Record { values, sequence, kind, level, place: 0 };
            if !self.key.is_empty() {
                let key = self.key_of(&record);
                // first-row tables keep a key once above level 0
                let taken = self.engine() == "first-row" && level > 0;
                let known = taken
                    && self
                        .files
                        .iter()
                        .filter(|f| f.level > 0)
                        .flat_map(|f| &f.records)
                        .any(|r| self.key_of(r) == key);
                if known || !seen.insert(key.clone()) {
                    continue;
                }
                // two different records of a key never share a number, the same record may
                let twin = self
                    .files
                    .iter()
                    .flat_map(|f| &f.records)
                    .find(|r| r.sequence == record.sequence && self.key_of(r) == key);
                if let Some(twin) = twin {
                    record = Record { level, ..twin.clone() };
                }
            }
            records.push(record);
        }
        File { level, records, dead: BTreeSet::new() }
    }

    fn json(&self, records: &[Record]) -> Vec<serde_json::Value> {
        records
            .iter()
            .map(|record| {
                let mut row = Map::new();
                for (column, value) in self.columns.iter().zip(&record.values) {
                    let value = match value {
                        Value::Int(n) => json!(n),
                        Value::Text(text) => json!(text),
                        _ => json!(null),
                    };
                    row.insert(column.name.to_string(), value);
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

    /// Tables with vectors: one bucket; a new file above level 0 hides the old versions of its keys by position.
    fn vector_step(&mut self, table: &mut TableBuilder, random: &mut Random) -> Result<(), String> {
        let keyed = !self.key.is_empty();
        let before: Vec<String> = table.live_files().text()?.into_iter().map(|e| e.file.file_name).collect();
        // level 0 of a keyed table waits for compaction: nobody sees it
        let hidden = keyed && random.chance(20);
        let level = if keyed && !hidden { 1 + random.below(5) as i32 } else { 0 };
        let mut file = self.file(random, level);
        if keyed {
            let order = |a: &Record, b: &Record| {
                let by = |r: &Record| self.key.iter().map(|k| r.values[self.place(k)].clone()).collect::<Vec<_>>();
                by(a).iter().zip(&by(b)).map(|(a, b)| a.order(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            };
            file.records.sort_by(order);
        }
        let keys: BTreeSet<String> = file.records.iter().map(|r| self.key_of(r)).collect();
        for at in 0..self.files.len() {
            if hidden || (keyed && self.files[at].level == 0) {
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
        let mut commit = table.commit().file(self.spec(&file, random)).kind(CommitKind::Compact);
        if random.chance(30) {
            commit = commit.bitmap64();
        }
        for (name, old) in before.iter().zip(&self.files) {
            if !old.dead.is_empty() {
                let positions: Vec<u64> = old.dead.iter().map(|p| *p as u64).collect();
                commit = commit.delete_positions(name, &positions);
            }
        }
        self.files.push(file);
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
        let rows = if self.key.is_empty() || self.vectors {
            alive.filter(|r| self.key.is_empty() || r.level > 0).map(|r| r.values).collect()
        } else {
            let first_row = self.engine() == "first-row";
            let visible = alive.filter(|r| !first_row || r.level > 0).collect();
            self.folded(visible)?.into_iter().map(|(values, _)| values).collect()
        };
        self.states.push(State { id, columns: self.columns.clone(), rows });
        Ok(())
    }

    /// The shape in words, for a failure.
    pub fn describe(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|c| format!("{} {}", c.name, c.text)).collect();
        let files: Vec<String> = self.files.iter().map(|f| format!("L{}x{}", f.level, f.records.len())).collect();
        format!("({}) key {:?} {:?} files {}", columns.join(", "), self.key, self.options, files.join(" "))
    }
}
