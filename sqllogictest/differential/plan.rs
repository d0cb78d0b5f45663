//! A random table: its schema, then what happens to it, as steps of the oracle's script.
//!
//! What the reference of 0.9 answers by rules that are no longer today's is left out: a retract that is the first record
//! of its key lends the merged row its values today; rows that 0.9 removed by a delete do not come back.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::random::Random;

#[derive(Debug, Clone)]
struct Column {
    name: String,
    data_type: &'static str,
}

impl Column {
    fn new(name: impl Into<String>, data_type: &'static str) -> Self {
        Self { name: name.into(), data_type }
    }
}

/// How retracts of a table are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retracts {
    Never,
    /// `-D`, `-U` and now and then a `+U`, with any values.
    Any,
    /// Of sequence groups: of keys not written before only with empty columns.
    Groups,
    /// `-D` only, of keys that are never written again.
    Removing,
}

/// One random table.
pub struct Plan {
    random: Random,
    table: String,
    engine: &'static str,
    keys: Vec<Column>,
    partition: Vec<Column>,
    values: Vec<Column>,
    options: Map<String, Value>,
    retracts: Retracts,
    /// Columns of sequence groups: guards first, then what they guard.
    groups: Vec<(Vec<String>, Vec<String>)>,
    written: BTreeSet<String>,
    removed: BTreeSet<String>,
    /// Keys that have retracts and nothing else.
    retracted: BTreeSet<String>,
    added: usize,
}

const KEY_TYPES: &[&str] = &[
    "INT",
    "BIGINT",
    "STRING",
    "TINYINT",
    "SMALLINT",
    "DATE",
    "DECIMAL(10, 2)",
    "DECIMAL(24, 4)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "BOOLEAN",
    "BYTES",
    "FLOAT",
    "DOUBLE",
    "TIME(0)",
];
const PARTITION_TYPES: &[&str] =
    &["STRING", "INT", "DATE", "BOOLEAN", "BIGINT", "SMALLINT", "DECIMAL(10, 2)", "TIMESTAMP(3)"];
const VALUE_TYPES: &[&str] = &[
    "INT",
    "BIGINT",
    "STRING",
    "DOUBLE",
    "FLOAT",
    "DECIMAL(4, 2)",
    "DECIMAL(12, 2)",
    "DECIMAL(24, 4)",
    "DATE",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "BOOLEAN",
    "BYTES",
    "TINYINT",
    "TIME(0)",
    "ARRAY<INT>",
    "MAP<STRING, INT>",
];

/// A type out of `types` that the reference writes in a format, and reads back as it was written: of a sum with more
/// digits than its type it reads NULL in Avro, where all digits stand in the file, and the digits in Parquet.
fn written_in(format: &str, types: &[&'static str], random: &mut Random) -> &'static str {
    loop {
        let data_type = random.pick(types);
        if !(format == "avro" && ["TIME(0)", "DECIMAL(4, 2)"].contains(&data_type)) {
            return data_type;
        }
    }
}

/// A type as the oracle parses it.
fn type_of(data_type: &str, suffix: &str) -> Value {
    match data_type {
        "ARRAY<INT>" => json!({"type": format!("ARRAY{suffix}"), "element": "INT"}),
        "MAP<STRING, INT>" => json!({"type": format!("MAP{suffix}"), "key": "STRING NOT NULL", "value": "INT"}),
        atomic => json!(format!("{atomic}{suffix}")),
    }
}

/// Aggregate functions of a type that take retracts, and those that do not.
fn functions(data_type: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match data_type {
        "DOUBLE" => (&["sum", "product", "last_value", "last_non_null_value"], &["max", "min", "first_value"]),
        // no products of integers: 0.9 shows what is left of one that overflows, which is an error
        "INT" | "BIGINT" => (
            &["sum", "sum", "last_value", "last_non_null_value"],
            &["max", "min", "first_value", "first_non_null_value"],
        ),
        "TINYINT" => (&["last_value", "last_non_null_value"], &["max", "min", "first_value"]),
        "DECIMAL(4, 2)" => {
            (&["sum", "sum", "sum", "last_value"], &["max", "product", "first_value", "first_non_null_value"])
        }
        "FLOAT" | "DECIMAL(12, 2)" | "DECIMAL(24, 4)" => (
            &["sum", "sum", "last_value", "last_non_null_value"],
            &["max", "min", "first_value", "first_non_null_value"],
        ),
        "STRING" => (&["last_value", "last_non_null_value"], &["max", "min", "listagg", "first_non_null_value"]),
        "BOOLEAN" => (&["last_value", "last_non_null_value"], &["bool_and", "bool_or", "first_value"]),
        "BYTES" => (&["last_value", "last_non_null_value"], &["first_value", "first_non_null_value"]),
        // 0.9 cannot take NULL back out of a collection
        "ARRAY<INT>" => (&["last_value", "last_non_null_value"], &["collect", "collect", "first_value"]),
        "MAP<STRING, INT>" => {
            (&["last_value", "last_non_null_value"], &["merge_map", "merge_map", "first_non_null_value"])
        }
        _ => (&["last_value", "last_non_null_value"], &["max", "min", "first_value"]),
    }
}

impl Plan {
    /// The table of a seed.
    pub fn new(seed: u64, table: &str) -> Self {
        let mut random = Random::new(seed);
        let append = random.chance(15);
        let engine = if append {
            "append"
        } else {
            random.pick(&["deduplicate", "deduplicate", "partial-update", "partial-update", "aggregation", "first-row"])
        };
        let format = random.pick(&["parquet", "parquet", "orc", "avro"]);
        let keys = (0..1 + random.below(2))
            .map(|i| Column::new(format!("k{i}"), written_in(format, KEY_TYPES, &mut random)))
            .collect();
        let partitions = [0, 0, 0, 1, 1, 2][random.below(6) as usize];
        let partition = (0..partitions).map(|i| Column::new(format!("p{i}"), random.pick(PARTITION_TYPES))).collect();
        let values = (0..2 + random.below(4))
            .map(|i| Column::new(format!("v{i}"), written_in(format, VALUE_TYPES, &mut random)))
            .collect();
        let mut plan = Self {
            random,
            table: table.into(),
            engine,
            keys,
            partition,
            values,
            options: Map::new(),
            retracts: Retracts::Never,
            groups: Vec::new(),
            written: BTreeSet::new(),
            removed: BTreeSet::new(),
            retracted: BTreeSet::new(),
            added: 0,
        };
        plan.set("file.format", format);
        if append {
            if plan.random.chance(33) {
                plan.set("bucket", "2");
                plan.set("bucket-key", "k0");
            } else {
                plan.set("bucket", "-1");
            }
        } else {
            plan.keyed_options();
        }
        plan
    }

    fn set(&mut self, key: &str, value: &str) {
        self.options.insert(key.into(), value.into());
    }

    fn keyed_options(&mut self) {
        self.set("merge-engine", self.engine);
        let buckets = self.random.pick(&["1", "1", "2", "3", "-1"]);
        self.set("bucket", buckets);
        if buckets == "-1" {
            self.set("dynamic-bucket.target-row-num", "7");
        }
        if self.random.chance(50) {
            let runs = self.random.pick(&["2", "3", "10"]);
            self.set("num-sorted-run.compaction-trigger", runs);
        }
        if self.random.chance(40) {
            let mode = self.random.pick(&["none", "counts", "truncate(4)", "full"]);
            self.set("metadata.stats-mode", mode);
        }
        match self.engine {
            "deduplicate" => {
                self.retracts = Retracts::Any;
                match self.random.below(6) {
                    0 => self.set("deletion-vectors.enabled", "true"),
                    1 => self.set("changelog-producer", "lookup"),
                    2 => self.set("changelog-producer", "full-compaction"),
                    3 => self.set("changelog-producer", "input"),
                    _ => {}
                }
                if self.random.chance(30) {
                    self.set("ignore-delete", "true");
                }
            }
            "partial-update" => self.partial_update(),
            "aggregation" => self.aggregation(),
            _ => {
                self.set("ignore-delete", "true");
                self.retracts = Retracts::Any;
            }
        }
        if matches!(self.engine, "partial-update" | "aggregation") {
            match self.random.below(5) {
                0 => self.set("changelog-producer", "lookup"),
                1 => self.set("deletion-vectors.enabled", "true"),
                _ => {}
            }
        }
        // sequence groups and a sequence field exclude each other there
        if !matches!(self.engine, "first-row" | "partial-update") && self.random.chance(35) {
            self.values.push(Column::new("ver", "INT"));
            let two = self.random.chance(35);
            if two {
                self.values.push(Column::new("ver2", "STRING"));
            }
            self.set("sequence.field", if two { "ver,ver2" } else { "ver" });
        }
    }

    fn partial_update(&mut self) {
        self.values.push(Column::new("g", "INT"));
        let kind = self.random.below(10);
        if kind < 2 {
            self.set("ignore-delete", "true");
            self.retracts = Retracts::Groups;
            return;
        }
        if kind < 4 {
            self.set("partial-update.remove-record-on-delete", "true");
            self.retracts = Retracts::Removing;
            return;
        }
        self.retracts = Retracts::Groups;
        let mut free: Vec<String> = self.values.iter().filter(|c| c.name != "g").map(|c| c.name.clone()).collect();
        let rest = free.split_off(free.len() / 2);
        let mut groups = vec![(vec!["g".to_string()], free)];
        if self.random.chance(50) {
            let data_type = self.random.pick(&["STRING", "INT", "DATE", "TIMESTAMP(3)"]);
            self.values.push(Column::new("h", data_type));
            let mut guards = vec!["h".to_string()];
            if self.random.chance(50) {
                self.values.push(Column::new("i", "INT"));
                guards.push("i".to_string());
            }
            let guarded = if self.random.chance(70) { rest } else { Vec::new() };
            if !guarded.is_empty() {
                groups.push((guards, guarded));
            }
        }
        for (guards, guarded) in &groups {
            self.options.insert(format!("fields.{}.sequence-group", guards.join(",")), guarded.join(",").into());
        }
        let guarded: BTreeSet<String> = groups.iter().flat_map(|(_, guarded)| guarded.clone()).collect();
        self.groups = groups;
        for column in self.values.clone().iter().filter(|column| guarded.contains(&column.name)) {
            if self.random.chance(40) {
                self.aggregate(column, true);
            }
        }
    }

    fn aggregation(&mut self) {
        let retracts = self.random.chance(50);
        if retracts {
            self.retracts = Retracts::Any;
        }
        if self.random.chance(20) {
            self.set("fields.default-aggregate-function", "last_non_null_value");
        }
        for column in self.values.clone() {
            if self.random.chance(85) {
                self.aggregate(&column, retracts);
            }
        }
    }

    fn aggregate(&mut self, column: &Column, retracts: bool) {
        let (taking, others) = functions(column.data_type);
        let function = if self.random.chance(50) { self.random.pick(taking) } else { self.random.pick(others) };
        self.set(&format!("fields.{}.aggregate-function", column.name), function);
        if retracts && (others.contains(&function) || self.random.chance(15)) {
            self.set(&format!("fields.{}.ignore-retract", column.name), "true");
        }
    }

    /// The steps, the last of which tells the expected answers.
    pub fn steps(mut self, expected: &Path) -> Vec<Value> {
        let append = self.engine == "append";
        let not_null = if append { "" } else { " NOT NULL" };
        let mut fields: Vec<Value> = Vec::new();
        for column in &self.keys {
            fields.push(json!({"name": column.name, "type": type_of(column.data_type, not_null)}));
        }
        for column in &self.partition {
            let at = self.random.below(fields.len() as u64 + 1) as usize;
            fields.insert(at, json!({"name": column.name, "type": type_of(column.data_type, not_null)}));
        }
        for column in &self.values {
            fields.push(json!({"name": column.name, "type": type_of(column.data_type, "")}));
        }
        let mut create = json!({"op": "create", "table": self.table, "fields": fields, "options": self.options});
        let partition: Vec<&str> = self.partition.iter().map(|p| p.name.as_str()).collect();
        if !partition.is_empty() {
            create["partition"] = json!(partition);
        }
        if !append {
            let keys = self.keys.iter().map(|k| k.name.as_str());
            create["primary"] = json!(partition.iter().copied().chain(keys).collect::<Vec<_>>());
        }
        let mut steps = vec![create];
        let commits = 3 + self.random.below(6);
        let mut identifier = 0;
        for _ in 0..commits {
            identifier += 1;
            match self.random.below(10) {
                0 => steps.push(json!({
                    "op": "compact", "table": self.table, "full": self.random.chance(50), "identifier": identifier
                })),
                1 if self.random.chance(60) => {
                    let change = self.change();
                    steps.push(json!({"op": "alter", "table": self.table, "change": change}));
                }
                _ => {
                    let rows: Vec<Value> = (0..1 + self.random.below(14)).filter_map(|_| self.row()).collect();
                    let write_only = self.random.chance(60).to_string();
                    steps.push(json!({
                        "op": "write", "table": self.table, "rows": rows, "identifier": identifier,
                        "user": "random-user", "options": {"write-only": write_only}
                    }));
                }
            }
        }
        steps.push(json!({"op": "expect", "table": self.table, "dir": expected.join(&self.table)}));
        steps
    }

    /// A schema change that keeps what options name.
    fn change(&mut self) -> Value {
        let named = |name: &str| {
            self.options.iter().any(|(key, value)| {
                key.split(['.', ',']).any(|part| part == name)
                    || value.as_str().is_some_and(|value| value.split(',').any(|part| part == name))
            })
        };
        let free: Vec<usize> = (0..self.values.len()).filter(|i| !named(&self.values[*i].name)).collect();
        self.added += 1;
        let fresh = format!("n{}", self.added);
        if free.is_empty() || self.random.chance(40) {
            let data_type = self.random.pick(&["INT", "STRING", "BIGINT"]);
            self.values.push(Column::new(fresh.clone(), data_type));
            return json!({"add": fresh, "type": data_type});
        }
        let i = free[self.random.below(free.len() as u64) as usize];
        let column = self.values[i].clone();
        match (column.data_type, self.random.below(3)) {
            ("INT", 0) => {
                self.values[i].data_type = "BIGINT";
                json!({"retype": column.name, "type": "BIGINT"})
            }
            ("FLOAT", 0) => {
                self.values[i].data_type = "DOUBLE";
                json!({"retype": column.name, "type": "DOUBLE"})
            }
            (_, 1) if self.values.len() > 2 => {
                self.values.remove(i);
                json!({"drop": column.name})
            }
            _ => {
                self.values[i].name = fresh.clone();
                json!({"rename": column.name, "to": fresh})
            }
        }
    }

    /// A row; None where its key must not come again.
    fn row(&mut self) -> Option<Value> {
        let mut row = Map::new();
        for column in self.keys.clone() {
            let value = self.value(column.data_type, 6);
            row.insert(column.name, value);
        }
        for column in self.partition.clone() {
            // of a key nothing is NULL
            let null = self.engine == "append" && self.random.chance(30);
            let value = if null { Value::Null } else { self.value(column.data_type, 2) };
            row.insert(column.name, value);
        }
        let key = Value::Object(row.clone()).to_string();
        for column in self.values.clone() {
            let value = if self.random.chance(25) { Value::Null } else { self.value(column.data_type, 40) };
            row.insert(column.name, value);
        }
        if self.removed.contains(&key) {
            return None;
        }
        let kind = if self.retracts == Retracts::Never || !self.random.chance(25) {
            None
        } else if self.retracts == Retracts::Removing {
            Some("-D")
        } else {
            Some(self.random.pick(&["-D", "-D", "-D", "-U", "+U"]))
        };
        if let Some(kind) = kind {
            row.insert("_ROW_KIND".into(), kind.into());
        }
        match (self.retracts, kind) {
            (_, None | Some("+U")) => {
                self.written.insert(key);
            }
            (Retracts::Groups, _) if !self.written.contains(&key) && !self.retracted.insert(key.clone()) => {
                // of two retracts and nothing else 0.9 makes a row without a key, which not every format takes
                if self.options["file.format"] == "avro" || !self.random.chance(10) {
                    return None;
                }
                self.empty_what_0_9_takes_otherwise(&mut row, &key);
            }
            (Retracts::Groups, _) => self.empty_what_0_9_takes_otherwise(&mut row, &key),
            (Retracts::Removing, _) => {
                self.values.iter().for_each(|column| drop(row.insert(column.name.clone(), Value::Null)));
                self.removed.insert(key);
            }
            _ => {}
        }
        Some(Value::Object(row))
    }

    /// A retract that is the first record of its key lends the row its values today; 0.9 took NOT NULL columns only. Where
    /// it has no other values the two agree; so they do in columns that a group sets to NULL.
    fn empty_what_0_9_takes_otherwise(&self, row: &mut Map<String, Value>, key: &str) {
        if self.written.contains(key) {
            return;
        }
        let mut kept: BTreeSet<&str> = BTreeSet::new();
        for (guards, guarded) in &self.groups {
            let skipped = guards.iter().all(|guard| row.get(guard).is_none_or(Value::is_null));
            if !skipped {
                kept.extend(guards.iter().map(String::as_str));
                let plain = |name: &&String| !self.options.contains_key(&format!("fields.{name}.aggregate-function"));
                kept.extend(guarded.iter().filter(plain).map(String::as_str));
            }
        }
        for column in &self.values {
            if !kept.contains(column.name.as_str()) {
                row.insert(column.name.clone(), Value::Null);
            }
        }
    }

    /// A value out of about `range` different ones.
    fn value(&mut self, data_type: &str, range: u64) -> Value {
        let n = self.random.below(range) as i64;
        let signed = n - (range / 3) as i64;
        match data_type {
            "BOOLEAN" => json!(n % 2 == 0),
            "TINYINT" | "SMALLINT" | "INT" => json!(signed),
            "BIGINT" => json!(signed * 3_000_000_007),
            "FLOAT" | "DOUBLE" => json!(signed as f64 * 0.5),
            // sums of a few have more digits than the type
            "DECIMAL(4, 2)" => json!(format!("{}.9{}", signed * 7 % 99, n % 10)),
            "DECIMAL(10, 2)" | "DECIMAL(12, 2)" => json!(format!("{signed}.25").replace("-0.25", "0.25")),
            "DECIMAL(24, 4)" => json!(format!("{signed}000000000.1250").replace("-0000000000", "-1000000000")),
            "DATE" => json!(format!("{}-0{}-1{}", if n % 3 == 0 { 1969 } else { 2026 }, 1 + n % 9, n % 10)),
            "TIME(0)" => json!(format!("1{}:00:0{}.000", n % 10, n % 10)),
            "TIMESTAMP(3)" => json!(format!("2026-04-1{}T10:00:00.{:03}000000", n % 10, n)),
            "TIMESTAMP(6)" => json!(format!("2026-04-1{}T10:00:00.{:06}000", n % 10, n)),
            "TIMESTAMP(3) WITH LOCAL TIME ZONE" => json!(format!("2026-04-1{}T10:00:00.{:03}000000Z", n % 10, n)),
            "BYTES" => json!(format!("{:02x}{:02x}", (n * 37) % 256, n % 256)),
            "ARRAY<INT>" => json!((0..self.random.below(4)).map(|_| self.random.below(5)).collect::<Vec<_>>()),
            "MAP<STRING, INT>" => {
                let keys = ["a", "b", "c"].into_iter().filter(|_| self.random.chance(50)).collect::<Vec<_>>();
                json!(keys.into_iter().map(|key| json!([key, self.random.below(9)])).collect::<Vec<_>>())
            }
            _ => json!(
                ["", "a", "订单", "pay-0001-longer-than-seven", "Ünï", "z'q"][n as usize % 6].to_string()
                    + &n.to_string()
            ),
        }
    }
}
