//! Tables with known defects, made by writing commits: what is wrong, and where, is settled here before anything looks.
//!
//! A scene is one table. Its source is a map of rows; a stream of commits brings them, as a CDC job does, and between its
//! commits defects are put. Each has keys of its own, and some a partition of their own, so that none hides another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use lakepin::spec::CommitKind;
use lakepin::testing::builder::{FileSpec, TableBuilder, TableSpec};
use serde_json::{Value, json};

use crate::random::Random;

/// Kinds of defects.
pub const KINDS: &[&str] = &[
    "insert dropped",
    "update dropped",
    "delete dropped",
    "deleted by a job",
    "deleted by the stream",
    "wrong code",
    "wrong unit",
    "wrong zone",
    "wrong partition",
    "batch added twice",
    "batch committed twice",
    "overwrite over a commit",
    "partition dropped",
    "rolled back",
    "late commit",
    "lower sequence",
    "written over",
    "inserted by another",
    "never committed",
    "snapshot lost",
    "lost in a compaction",
];

/// A row of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub amount: i64,
    pub status: &'static str,
    pub seconds: i64,
}

/// Partition and id.
pub type Key = (String, i64);

/// A defect, with the answer that is right.
#[derive(Debug, Clone)]
pub struct Defect {
    pub kind: &'static str,
    pub keys: BTreeSet<Key>,
    pub layer: &'static str,
    /// Snapshots that have to be named, all of them; empty: no commit did it.
    pub commits: Vec<i64>,
}

/// A table and its source.
pub struct Scene {
    pub source: BTreeMap<Key, Row>,
    pub defects: Vec<Defect>,
    /// The snapshot that is compared.
    pub pin: i64,
}

const STATUS: &[&str] = &["NEW", "PAID", "DONE"];
/// Codes of another system, in the order of the statuses.
const CODES: &[&str] = &["10", "20", "30"];

struct Making {
    random: Random,
    table: TableBuilder,
    source: BTreeMap<Key, Row>,
    /// What the files hold of each key by sequence number: the row, or its deletion.
    lake: BTreeMap<Key, (i64, Option<Value>)>,
    /// Keys of defects: nothing else touches them.
    taken: BTreeSet<Key>,
    defects: Vec<Defect>,
    sequence: i64,
    identifier: i64,
    next_id: i64,
    partitions: usize,
    /// Changes of ordinary keys and of defects that wait for the next commit of the stream.
    waiting: Vec<Value>,
    /// Defects that name the next commit of the stream.
    named: Vec<usize>,
}

/// Makes a scene of some defects.
pub fn scene(warehouse: &Path, name: &str, seed: u64, kinds: &[&'static str]) -> Scene {
    let columns = [
        ("dt", "STRING NOT NULL"),
        ("id", "BIGINT NOT NULL"),
        ("amount", "DECIMAL(14, 2)"),
        ("status", "STRING"),
        ("at", "TIMESTAMP(3)"),
    ];
    let spec = TableSpec::new(&columns).partitioned_by(&["dt"]).primary_key(&["dt", "id"]).option("bucket", "2");
    let mut making = Making {
        random: Random::new(seed),
        table: TableBuilder::create(warehouse, "probe", name, &spec).expect("a table"),
        source: BTreeMap::new(),
        lake: BTreeMap::new(),
        taken: BTreeSet::new(),
        defects: Vec::new(),
        sequence: 1_000,
        identifier: 0,
        next_id: 1,
        partitions: 3,
        waiting: Vec::new(),
        named: Vec::new(),
    };
    for _ in 0..6 {
        making.ordinary(30);
        making.stream();
    }
    let (late, early): (Vec<&str>, Vec<&str>) = kinds.iter().partition(|kind| **kind == "late commit");
    for (at, kind) in early.iter().enumerate() {
        // what a defect is about is committed before it
        making.ordinary(5);
        making.stream();
        making.defect(kind);
        making.ordinary(2);
        making.stream();
        if at == early.len() / 2 {
            making.compact("d1", &[]);
        }
    }
    // the stream goes on rightly: no defect is the newest change
    for _ in 0..3 {
        making.ordinary(8);
        making.stream();
    }
    let pin = making.latest();
    for _ in late {
        making.late();
    }
    Scene { source: making.source, defects: making.defects, pin }
}

fn value(key: &Key, row: &Row, sequence: i64) -> Value {
    json!({
        "dt": key.0,
        "id": key.1,
        "amount": cents(row.amount),
        "status": row.status,
        "at": time(row.seconds),
        "_SEQUENCE_NUMBER": sequence,
    })
}

/// `12.05`.
pub fn cents(amount: i64) -> String {
    format!("{}.{:02}", amount / 100, amount % 100)
}

/// A time of April 2026, some seconds after its 16th began.
pub fn time(seconds: i64) -> String {
    let (day, rest) = (16 + seconds / 86_400, seconds % 86_400);
    format!("2026-04-{day:02} {:02}:{:02}:{:02}", rest / 3_600, rest % 3_600 / 60, rest % 60)
}

impl Making {
    fn latest(&self) -> i64 {
        let names = std::fs::read_dir(self.table.root().join("snapshot")).expect("snapshots").flatten();
        let ids = names.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("snapshot-")?.parse::<i64>().ok());
        ids.max().expect("a snapshot")
    }

    fn row(&mut self) -> Row {
        let status = self.random.pick(STATUS);
        // no two amounts and times look alike
        let amount = 1_000 + self.random.below(900_000) as i64;
        Row { amount, status, seconds: self.random.below(600_000) as i64 }
    }

    /// The same payment, changed.
    fn changed(&mut self, row: &Row) -> Row {
        let amount = row.amount + 101 + self.random.below(5_000) as i64;
        let status = self.random.pick(STATUS);
        Row { amount, status, seconds: row.seconds + 61 + self.random.below(700) as i64 }
    }

    fn new_key(&mut self) -> Key {
        let id = self.next_id;
        self.next_id += 1;
        (format!("d{}", self.random.below(3) + 1), id)
    }

    fn next_sequence(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }

    /// Some keys that are in order, from now on only those of one defect.
    fn take(&mut self) -> Vec<Key> {
        let wanted = 1 + self.random.below(4) as usize;
        let mut found = Vec::new();
        let free: Vec<Key> = self.source.keys().filter(|key| !self.taken.contains(*key)).cloned().collect();
        let free: Vec<Key> = free.into_iter().filter(|(dt, _)| ["d1", "d2", "d3"].contains(&dt.as_str())).collect();
        while found.len() < wanted {
            let key = free[self.random.below(free.len() as u64) as usize].clone();
            if self.taken.insert(key.clone()) {
                found.push(key);
            }
        }
        found
    }

    fn take_new(&mut self) -> Vec<Key> {
        let wanted = 1 + self.random.below(4);
        let keys: Vec<Key> = (0..wanted).map(|_| self.new_key()).collect();
        self.taken.extend(keys.iter().cloned());
        keys
    }

    fn found(&mut self, kind: &'static str, keys: Vec<Key>, layer: &'static str, commits: &[i64]) {
        self.defects.push(Defect { kind, keys: keys.into_iter().collect(), layer, commits: commits.to_vec() });
    }

    /// The same, named by the next commit of the stream.
    fn found_in_stream(&mut self, kind: &'static str, keys: Vec<Key>, layer: &'static str) {
        self.named.push(self.defects.len());
        self.found(kind, keys, layer, &[]);
    }

    /// Changes that source and lake have both.
    fn ordinary(&mut self, changes: usize) {
        for _ in 0..changes {
            let free: Vec<Key> = self.source.keys().filter(|key| !self.taken.contains(*key)).cloned().collect();
            let dice = self.random.below(10);
            if free.len() < 60 || dice < 5 {
                let (key, row) = (self.new_key(), self.row());
                self.put(&key, &row);
                continue;
            }
            let key = free[self.random.below(free.len() as u64) as usize].clone();
            if dice < 9 {
                let row = self.changed(&self.source[&key].clone());
                self.put(&key, &row);
            } else {
                let sequence = self.next_sequence();
                let mut gone = value(&key, &self.source[&key].clone(), sequence);
                gone["_ROW_KIND"] = json!("-D");
                self.source.remove(&key);
                self.waiting.push(gone);
            }
        }
    }

    /// A row of source and lake.
    fn put(&mut self, key: &Key, row: &Row) {
        let sequence = self.next_sequence();
        self.source.insert(key.clone(), row.clone());
        self.waiting.push(value(key, row, sequence));
    }

    /// What waits, as a commit of the stream.
    fn stream(&mut self) -> i64 {
        self.identifier += 1;
        let (rows, identifier) = (std::mem::take(&mut self.waiting), self.identifier);
        let id = self.commit("cdc", identifier, &rows);
        for defect in std::mem::take(&mut self.named) {
            self.defects[defect].commits.push(id);
        }
        id
    }

    fn commit(&mut self, user: &str, identifier: i64, rows: &[Value]) -> i64 {
        // of one key the newest, as a writer's buffer has it
        let mut newest: BTreeMap<Key, &Value> = BTreeMap::new();
        for row in rows {
            newest.insert(key_of(row), row);
        }
        let rows: Vec<Value> = newest.into_values().cloned().collect();
        let made = self.table.commit().user(user).identifier(identifier).file(FileSpec::rows(&rows)).publish();
        self.apply(&rows);
        made.expect("a commit").id.0
    }

    /// What a merge makes of rows.
    fn apply(&mut self, rows: &[Value]) {
        for row in rows {
            let sequence = row["_SEQUENCE_NUMBER"].as_i64().expect("a sequence");
            let alive = (row.get("_ROW_KIND").is_none()).then(|| row.clone());
            let held = self.lake.entry(key_of(row)).or_insert((i64::MIN, None));
            if sequence >= held.0 {
                *held = (sequence, alive);
            }
        }
    }

    /// Live files of a partition.
    fn files(&self, partition: &str) -> Vec<String> {
        let mut inside = BTreeSet::new();
        for bucket in
            std::fs::read_dir(self.table.root().join(format!("dt={partition}"))).into_iter().flatten().flatten()
        {
            let files = std::fs::read_dir(bucket.path()).expect("a bucket").flatten();
            inside.extend(files.map(|file| file.file_name().to_string_lossy().into_owned()));
        }
        let live = self.table.live_files().expect("live files");
        live.into_iter().map(|entry| entry.file.file_name).filter(|name| inside.contains(name)).collect()
    }

    /// Rows that readers get of a partition, as they lie there.
    fn rows(&self, partition: &str) -> Vec<Value> {
        let own = self.lake.iter().filter(|((dt, _), _)| dt == partition);
        own.filter_map(|(_, (_, row))| row.clone()).collect()
    }

    /// A compaction of a partition that loses some keys.
    fn compact(&mut self, partition: &str, without: &[Key]) -> i64 {
        let files = self.files(partition);
        let rows: Vec<Value> = self.rows(partition).into_iter().filter(|row| !without.contains(&key_of(row))).collect();
        let identifier = self.identifier;
        let commit = self.table.commit().user("cdc").identifier(identifier).kind(CommitKind::Compact);
        let commit = files.iter().fold(commit, |commit, file| commit.remove(file));
        commit.file(FileSpec::rows(&rows).level(5)).publish().expect("a compaction").id.0
    }

    /// A partition of its own, in order.
    fn own_partition(&mut self) -> (String, Vec<Key>) {
        self.partitions += 1;
        let partition = format!("d{}", self.partitions);
        let mut keys = Vec::new();
        for _ in 0..12 {
            let key = (partition.clone(), self.next_id);
            self.next_id += 1;
            let row = self.row();
            self.put(&key, &row);
            self.taken.insert(key.clone());
            keys.push(key);
        }
        self.stream();
        (partition, keys)
    }

    fn some(&mut self, keys: &[Key]) -> Vec<Key> {
        let wanted = 1 + self.random.below(4) as usize;
        keys.iter().take(wanted).cloned().collect()
    }

    fn defect(&mut self, kind: &'static str) {
        match kind {
            "insert dropped" => {
                let keys = self.take_new();
                for key in &keys {
                    let row = self.row();
                    self.source.insert(key.clone(), row);
                }
                self.found(kind, keys, "upstream", &[]);
            }
            "update dropped" => {
                let keys = self.take();
                for key in &keys {
                    let row = self.changed(&self.source[key].clone());
                    self.source.insert(key.clone(), row);
                }
                self.found(kind, keys, "upstream", &[]);
            }
            "delete dropped" => {
                let keys = self.take();
                self.source.retain(|key, _| !keys.contains(key));
                self.found(kind, keys, "upstream", &[]);
            }
            "deleted by a job" | "deleted by the stream" => {
                let keys = self.take();
                let gone: Vec<Value> = keys.iter().map(|key| self.gone(key)).collect();
                if kind == "deleted by a job" {
                    let id = self.commit("purge-job", i64::MAX, &gone);
                    self.found(kind, keys, "operation_on_table", &[id]);
                } else {
                    self.waiting.extend(gone);
                    self.found_in_stream(kind, keys, "upstream");
                }
            }
            "wrong code" | "wrong unit" | "wrong zone" => self.mistaken(kind),
            "wrong partition" => self.misplaced(kind),
            "batch added twice" | "batch committed twice" => self.twice(kind),
            "overwrite over a commit" => self.overwritten(kind),
            "partition dropped" => {
                let (partition, keys) = self.own_partition();
                let files = self.files(&partition);
                let commit = self.table.commit().user("etl").identifier(i64::MAX).kind(CommitKind::Overwrite);
                let commit = files.iter().fold(commit, |commit, file| commit.remove(file));
                let id = commit.publish().expect("a drop").id.0;
                self.found(kind, keys, "operation_on_table", &[id]);
            }
            "rolled back" => self.rolled_back(kind),
            "lower sequence" => {
                let keys = self.take();
                // the stream writes first, with higher numbers than the repair that comes after
                let low = self.sequence - 900;
                let rows: Vec<Row> = keys.iter().map(|key| self.changed(&self.source[key].clone())).collect();
                for (key, row) in keys.iter().zip(&rows) {
                    self.put(key, row);
                }
                let stream = self.stream();
                let mut repaired = Vec::new();
                for (at, (key, row)) in keys.iter().zip(&rows).enumerate() {
                    let row = self.changed(row);
                    repaired.push(value(key, &row, low + at as i64));
                    self.source.insert(key.clone(), row);
                }
                let id = self.commit("repair", i64::MAX, &repaired);
                self.found(kind, keys, "co_writing", &[stream, id]);
            }
            "written over" => {
                let keys = self.take();
                for key in &keys {
                    let row = self.changed(&self.source[key].clone());
                    self.put(key, &row);
                }
                self.stream();
                let mut stale = Vec::new();
                for key in &keys {
                    let other = Row { amount: 777 + self.random.below(9_000) as i64, ..self.source[key].clone() };
                    let sequence = self.next_sequence();
                    stale.push(value(key, &other, sequence));
                }
                let id = self.commit("repair", i64::MAX, &stale);
                self.found(kind, keys, "co_writing", &[id]);
            }
            "inserted by another" => {
                let keys = self.take_new();
                let mut rows = Vec::new();
                for key in &keys {
                    let (row, sequence) = (self.row(), self.next_sequence());
                    rows.push(value(key, &row, sequence));
                }
                let id = self.commit("fix", i64::MAX, &rows);
                self.found(kind, keys, "co_writing", &[id]);
            }
            "never committed" | "snapshot lost" => self.unpublished(kind),
            "lost in a compaction" => {
                let (partition, keys) = self.own_partition();
                let lost = self.some(&keys);
                let id = self.compact(&partition, &lost);
                self.found(kind, lost, "storage", &[id]);
            }
            other => panic!("no defect is called {other}"),
        }
    }

    fn gone(&mut self, key: &Key) -> Value {
        let sequence = self.next_sequence();
        let mut gone = value(key, &self.source[key].clone(), sequence);
        gone["_ROW_KIND"] = json!("-D");
        gone
    }

    /// The stream writes changes with one column wrong.
    fn mistaken(&mut self, kind: &'static str) {
        let keys = self.take();
        for key in &keys {
            let row = self.changed(&self.source[key].clone());
            let sequence = self.next_sequence();
            let mut wrong = value(key, &row, sequence);
            match kind {
                "wrong code" => {
                    let at = STATUS.iter().position(|status| *status == row.status).expect("a status");
                    wrong["status"] = json!(CODES[at]);
                }
                "wrong unit" => wrong["amount"] = json!(cents(row.amount * 100)),
                _ => wrong["at"] = json!(time(row.seconds + 8 * 3_600)),
            }
            self.source.insert(key.clone(), row);
            self.waiting.push(wrong);
        }
        self.found_in_stream(kind, keys, "business_mapping");
    }

    /// The stream writes rows to the day after.
    fn misplaced(&mut self, kind: &'static str) {
        let keys = self.take_new();
        let mut all = Vec::new();
        for key in keys {
            let row = self.row();
            let other = (if key.0 == "d3" { "d1".to_string() } else { "d3".to_string() }, key.1);
            let sequence = self.next_sequence();
            self.waiting.push(value(&other, &row, sequence));
            self.source.insert(key.clone(), row);
            self.taken.insert(other.clone());
            all.extend([key, other]);
        }
        self.found_in_stream(kind, all, "business_mapping");
    }

    /// A batch adds to amounts, and again: as a second batch, or as the same one.
    fn twice(&mut self, kind: &'static str) {
        let keys = self.take();
        let more = 500 + self.random.below(9_000) as i64;
        let same = kind == "batch committed twice";
        let mut ids = Vec::new();
        for run in 1..=2 {
            let mut rows = Vec::new();
            for key in &keys {
                let row = self.source[key].clone();
                let sequence = self.next_sequence();
                rows.push(value(key, &Row { amount: row.amount + run * more, ..row }, sequence));
            }
            let identifier = if same { 700_000 + self.identifier } else { i64::MAX };
            ids.push(self.commit("spark-fix", identifier, &rows));
        }
        for key in &keys {
            self.source.get_mut(key).expect("a row").amount += more;
        }
        self.found(kind, keys, if same { "commit_identity" } else { "business_mapping" }, &ids);
    }

    /// A job reads a partition, the stream commits to it, the job overwrites it.
    fn overwritten(&mut self, kind: &'static str) {
        let (partition, keys) = self.own_partition();
        let read = self.rows(&partition);
        let changed = self.some(&keys);
        for key in &changed {
            let row = self.changed(&self.source[key].clone());
            self.put(key, &row);
        }
        let new = (partition.clone(), self.next_id);
        self.next_id += 1;
        self.taken.insert(new.clone());
        let row = self.row();
        self.put(&new, &row);
        self.stream();
        let mut rows = Vec::new();
        for mut row in read {
            row["_SEQUENCE_NUMBER"] = json!(self.next_sequence());
            rows.push(row);
        }
        let files = self.files(&partition);
        let commit = self.table.commit().user("etl").identifier(i64::MAX).kind(CommitKind::Overwrite);
        let commit = files.iter().fold(commit, |commit, file| commit.remove(file));
        let id = commit.file(FileSpec::rows(&rows)).publish().expect("an overwrite").id.0;
        self.found(kind, [changed, vec![new]].concat(), "operation_on_table", &[id]);
    }

    /// A commit that a tag keeps, and that is rolled back.
    fn rolled_back(&mut self, kind: &'static str) {
        self.stream();
        let keys = [self.take(), self.take_new()].concat();
        let before = self.lake.clone();
        let mut rows = Vec::new();
        for key in &keys {
            let row = match self.source.get(key).cloned() {
                Some(row) => self.changed(&row),
                None => self.row(),
            };
            let sequence = self.next_sequence();
            rows.push(value(key, &row, sequence));
            self.source.insert(key.clone(), row);
        }
        self.identifier += 1;
        let identifier = self.identifier;
        let id = self.commit("cdc", identifier, &rows);
        self.table.tag(&format!("kept-{id}"), id).expect("a tag");
        self.table.expire(id).expect("a rollback");
        self.lake = before;
        self.found(kind, keys, "operation_on_table", &[id]);
    }

    /// A commit that never becomes a snapshot: with its metadata, or without.
    fn unpublished(&mut self, kind: &'static str) {
        let keys = self.take_new();
        let mut rows = Vec::new();
        for key in &keys {
            let (row, sequence) = (self.row(), self.next_sequence());
            rows.push(value(key, &row, sequence));
            self.source.insert(key.clone(), row);
        }
        let folder = self.table.root().join("manifest");
        let names = |folder: &Path| -> BTreeSet<String> {
            let files = std::fs::read_dir(folder).expect("manifests").flatten();
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
        };
        let before = names(&folder);
        self.table.commit().user("cdc").file(FileSpec::rows(&rows)).prepare().expect("files");
        let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
        for name in names(&folder).difference(&before) {
            let path = folder.join(name);
            if kind == "never committed" {
                std::fs::remove_file(path).expect("a manifest");
            } else {
                let file = std::fs::File::options().append(true).open(path).expect("a manifest");
                file.set_modified(an_hour_ago).expect("a time");
            }
        }
        let layer = if kind == "never committed" { "commit_protocol" } else { "commit_identity" };
        self.found(kind, keys, layer, &[]);
    }

    /// A commit of the stream behind the pin.
    fn late(&mut self) {
        let keys = [self.take(), self.take_new()].concat();
        for key in &keys {
            let row = match self.source.get(key).cloned() {
                Some(row) => self.changed(&row),
                None => self.row(),
            };
            self.put(key, &row);
        }
        self.found_in_stream("late commit", keys, "visibility");
        self.stream();
    }
}

fn key_of(row: &Value) -> Key {
    (row["dt"].as_str().expect("a partition").to_string(), row["id"].as_i64().expect("an id"))
}
