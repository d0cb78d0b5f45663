//! The tables: payments with nine columns of values, made from a seed, in the shapes that commits leave behind.

use std::path::Path;
use std::sync::Arc;

use lakepin::arrow::array::{
    ArrayRef, Decimal128Array, Int8Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use lakepin::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use lakepin::testing::builder::{FileSpec, TableBuilder, TableSpec};

/// Users that payments are of.
pub const USERS: i64 = 1_000_000;

/// What keys look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// 0, 1, 2, …
    Dense,
    /// Milliseconds and a number below them, as id services make them.
    Snowflake,
    /// Twenty hexadecimal digits of a hash.
    Hashed,
}

/// How a table came to be.
#[derive(Debug, Clone)]
pub struct Shape {
    pub name: &'static str,
    pub told: &'static str,
    keys: Keys,
    /// Keys that the base, one file of level 5 a bucket, holds.
    base: u64,
    commits: u64,
    /// Keys that each commit writes anew.
    a_commit: u64,
    /// Of these, in a thousand, how many are deletes.
    deletes: u64,
    buckets: u32,
    deltas: bool,
    /// Whether delete counts are known.
    counted: bool,
    /// Whether the updates of a commit lie beside each other.
    clustered: bool,
    /// Whether each commit holds keys of its own.
    disjoint: bool,
    options: &'static [(&'static str, &'static str)],
}

/// A table, and what is known of it.
pub struct Made {
    pub shape: Shape,
    /// Keys ever written.
    pub keys: u64,
    /// Keys that are there in the end.
    pub keys_left: u64,
    /// Physical rows.
    pub rows: u64,
    pub files: u64,
    /// The sum of the amounts that are there in the end.
    pub sum: String,
}

impl Shape {
    /// All of them; `quick`: a fifth of the size.
    pub fn all(quick: bool) -> Vec<Self> {
        let part = if quick { 5 } else { 1 };
        let base = Self {
            name: "base+updates",
            told: "10 commits of 2 % over a base, dictionaries",
            keys: Keys::Dense,
            base: 5_000_000 / part,
            commits: 10,
            a_commit: 100_000 / part,
            deletes: 0,
            buckets: 4,
            deltas: false,
            counted: true,
            clustered: false,
            disjoint: false,
            options: &[],
        };
        let hot = Self {
            name: "hot",
            told: "20 commits of 50 % over a base, dictionaries",
            base: 1_000_000 / part,
            commits: 20,
            a_commit: 500_000 / part,
            ..base.clone()
        };
        vec![
            Self { name: "base+updates-deltas", told: "the same, keys as differences", deltas: true, ..base.clone() },
            Self {
                name: "base+updates-snowflake",
                told: "the same, snowflake keys",
                keys: Keys::Snowflake,
                ..base.clone()
            },
            Self {
                name: "base+updates-hashed",
                told: "the same, keys of 20 characters",
                keys: Keys::Hashed,
                ..base.clone()
            },
            Self { name: "hot-hashed", told: "the same, keys of 20 characters", keys: Keys::Hashed, ..hot.clone() },
            Self { name: "clustered", told: "updates beside each other", clustered: true, ..base.clone() },
            Self { name: "deletes", told: "5 % of the updates delete", deletes: 50, ..base.clone() },
            Self {
                name: "unknown-deletes",
                told: "5 % delete, counts unknown",
                deletes: 50,
                counted: false,
                ..base.clone()
            },
            Self {
                name: "disjoint",
                told: "20 level-0 files a bucket, nothing to merge",
                base: 0,
                commits: 20,
                a_commit: 100_000 / part,
                disjoint: true,
                ..base.clone()
            },
            Self {
                name: "sequence-field",
                told: "ordered by update_time, whose ranges overlap",
                options: &[("sequence.field", "update_time")],
                ..base.clone()
            },
            Self {
                name: "partial-update-10",
                told: "partial-update, a tenth of the keys in two files",
                commits: 1,
                a_commit: 500_000 / part,
                options: &[("merge-engine", "partial-update")],
                ..base.clone()
            },
            Self {
                name: "partial-update-50",
                told: "partial-update, half of the keys in two files",
                commits: 1,
                a_commit: 2_500_000 / part,
                options: &[("merge-engine", "partial-update")],
                ..base.clone()
            },
            Self {
                name: "one-bucket-400",
                told: "one bucket, 400 commits of 500 rows",
                base: 1_000_000 / part,
                commits: 400,
                a_commit: 500,
                buckets: 1,
                ..base.clone()
            },
            hot,
            base,
        ]
        .into_iter()
        .rev()
        .collect()
    }

    /// A key as SQL writes it.
    pub fn key_literal(&self, n: u64) -> String {
        match self.keys {
            Keys::Dense | Keys::Snowflake => self.number(n).to_string(),
            Keys::Hashed => format!("'{}'", hashed(n)),
        }
    }

    fn number(&self, n: u64) -> i64 {
        let n = n as i64;
        match self.keys {
            Keys::Snowflake => ((1_776_301_200_000 + n / 3) << 22) | (n % 3),
            Keys::Dense | Keys::Hashed => n,
        }
    }

    /// Makes table `t`, and table `c` with the same rows in one level.
    pub fn make(self, warehouse: &Path) -> Made {
        let all = if self.disjoint { self.commits * self.a_commit } else { self.base };
        // by key: 0 for none, otherwise the version and one
        let mut last: Vec<u16> = vec![0; all as usize];
        let mut table = self.create(warehouse, "t");
        let (mut rows, mut sequence) = (0u64, 0i64);
        if self.base > 0 {
            last.fill(1);
            let ids: Vec<u64> = (0..self.base).collect();
            self.commit(&mut table, &ids, 0, &[], 5, sequence);
            rows += self.base;
            sequence += self.base as i64;
        }
        let mut random = 0x9E37_79B9_7F4A_7C15u64;
        for version in 1..=self.commits {
            let ids = self.touched(version, &mut random);
            let gone: Vec<bool> = ids.iter().map(|id| mix(*id ^ version) % 1_000 < self.deletes).collect();
            for (id, gone) in ids.iter().zip(&gone) {
                last[*id as usize] = if *gone { 0 } else { version as u16 + 1 };
            }
            self.commit(&mut table, &ids, version, &gone, 0, sequence);
            rows += ids.len() as u64;
            sequence += ids.len() as i64;
        }
        let left: Vec<u64> = (0..all).filter(|id| last[*id as usize] > 0).collect();
        let version = |id: &u64| u64::from(last[*id as usize] - 1);
        let sum: i64 = left.iter().map(|id| amount(*id, version(id))).sum();
        let mut compacted = self.create(warehouse, "c");
        let batch = self.batch(&left, version, &[], 0);
        compacted.commit().file(FileSpec::batches(vec![batch]).level(5)).publish().expect("a snapshot");
        let files = table.live_files().expect("files").len() as u64;
        Made {
            keys: all,
            keys_left: left.len() as u64,
            rows,
            files,
            sum: format!("{}.{:02}", sum / 100, sum % 100),
            shape: self,
        }
    }

    fn create(&self, warehouse: &Path, name: &str) -> TableBuilder {
        let key = if self.keys == Keys::Hashed { "STRING NOT NULL" } else { "BIGINT NOT NULL" };
        let mut spec = TableSpec::new(&[
            ("pay_id", key),
            ("order_id", "BIGINT"),
            ("user_id", "BIGINT"),
            ("amount", "DECIMAL(12, 2)"),
            ("fee", "DECIMAL(10, 2)"),
            ("status", "STRING"),
            ("channel", "STRING"),
            ("pay_time", "TIMESTAMP(3)"),
            ("update_time", "TIMESTAMP(3)"),
            ("memo", "STRING"),
        ])
        .primary_key(&["pay_id"])
        .option("bucket", &self.buckets.to_string());
        for (name, value) in self.options {
            spec = spec.option(name, value);
        }
        TableBuilder::create(warehouse, "d", name, &spec).expect("a fresh folder")
    }

    /// The keys that a commit writes, each once.
    fn touched(&self, version: u64, random: &mut u64) -> Vec<u64> {
        if self.disjoint {
            return ((version - 1) * self.a_commit..version * self.a_commit).collect();
        }
        let start = next(random) % self.base;
        let mut ids: Vec<u64> = (0..self.a_commit)
            .map(|at| if self.clustered { (start + at) % self.base } else { next(random) % self.base })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn commit(&self, table: &mut TableBuilder, ids: &[u64], version: u64, gone: &[bool], level: i32, sequence: i64) {
        let batch = self.batch(ids, |_| version, gone, sequence);
        let mut file = FileSpec::batches(vec![batch]).level(level);
        if self.deltas {
            file = file.deltas();
        }
        if !self.counted {
            file = file.delete_count(None);
        }
        table.commit().file(file).publish().expect("a snapshot");
    }

    fn batch(&self, ids: &[u64], version: impl Fn(&u64) -> u64, gone: &[bool], sequence: i64) -> RecordBatch {
        let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
        let key_type = if self.keys == Keys::Hashed { DataType::Utf8 } else { DataType::Int64 };
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
        let schema = Schema::new(vec![
            Field::new("pay_id", key_type, false),
            field("order_id", DataType::Int64),
            field("user_id", DataType::Int64),
            field("amount", DataType::Decimal128(12, 2)),
            field("fee", DataType::Decimal128(10, 2)),
            field("status", DataType::Utf8),
            field("channel", DataType::Utf8),
            field("pay_time", millis.clone()),
            field("update_time", millis),
            field("memo", DataType::Utf8),
            Field::new("_SEQUENCE_NUMBER", DataType::Int64, false),
            Field::new("_VALUE_KIND", DataType::Int8, false),
        ]);
        let key: ArrayRef = match self.keys {
            Keys::Hashed => Arc::new(StringArray::from_iter_values(ids.iter().map(|id| hashed(*id)))),
            Keys::Dense | Keys::Snowflake => {
                Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| self.number(*id))))
            }
        };
        let of = |f: &dyn Fn(u64, u64) -> i64| -> Vec<i64> { ids.iter().map(|id| f(*id, version(id))).collect() };
        let decimals = |values: Vec<i64>, precision: u8| {
            Decimal128Array::from_iter_values(values.into_iter().map(i128::from))
                .with_precision_and_scale(precision, 2)
                .expect("fits")
        };
        let texts = |known: &[&str], salt: u64| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                ids.iter().map(|id| known[(mix(*id ^ salt) % known.len() as u64) as usize]),
            ))
        };
        let columns: Vec<ArrayRef> = vec![
            key,
            Arc::new(Int64Array::from(of(&|id, _| (mix(id) >> 20) as i64))),
            Arc::new(Int64Array::from(of(&|id, _| (mix(id ^ 77) % USERS as u64) as i64))),
            Arc::new(decimals(of(&amount), 12)),
            Arc::new(decimals(of(&|id, version| (mix(id ^ (version << 40)) % 1_000) as i64), 10)),
            texts(&["SUCCESS", "REFUNDED", "PENDING", "CLOSED"], 3),
            texts(&["alipay", "wechat", "card", "bank", "wallet", "voucher"], 5),
            Arc::new(TimestampMillisecondArray::from(of(&|id, _| {
                1_776_301_200_000 + (mix(id ^ 9) % 86_400_000) as i64
            }))),
            Arc::new(TimestampMillisecondArray::from(of(&|id, version| {
                // a later version is later, but versions of different keys overlap
                1_776_301_200_000 + (version * 1_000) as i64 + (mix(id) % 100_000_000) as i64
            }))),
            Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("memo {:x}", mix(*id ^ 11) % 100_000)))),
            Arc::new(Int64Array::from_iter_values((0..ids.len() as i64).map(|at| sequence + at))),
            Arc::new(Int8Array::from_iter_values(
                (0..ids.len()).map(|at| if gone.get(at) == Some(&true) { 3 } else { 0 }),
            )),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length")
    }
}

fn amount(id: u64, version: u64) -> i64 {
    (mix(id.wrapping_mul(31).wrapping_add(version)) % 1_000_000) as i64
}

fn hashed(n: u64) -> String {
    format!("{:016x}{:04x}", mix(n), mix(n ^ 0xABCD) & 0xFFFF)
}

fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mix(*state)
}
