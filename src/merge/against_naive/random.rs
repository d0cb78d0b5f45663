//! Random tables: schema, key, engine and options, runs and what is read of them.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::merge::MergeRules;
use crate::spec::{CoreOptions, DataField, DataType, FieldType, RowKind, SchemaId, TableSchema};
use crate::testing::naive::{self, Record, Value};

/// Random numbers that depend on the seed alone.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 ..= n - 1
    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// A table, its runs and what is read of it.
pub(super) struct Case {
    pub(super) schema: TableSchema,
    /// Run → file → rows, all columns; levels are in the rows.
    pub(super) runs: Vec<Vec<Vec<Record>>>,
    pub(super) projection: Vec<usize>,
    pub(super) keep_deletes: bool,
    pub(super) dice: Dice,
}

fn field_type(data_type: DataType) -> FieldType {
    FieldType { data_type, nullable: true }
}

fn inner(id: i32, name: &str, data_type: DataType) -> DataField {
    DataField {
        id,
        name: name.to_string(),
        field_type: field_type(data_type),
        description: None,
        default_value: None,
        sums: false,
    }
}

fn text() -> DataType {
    DataType::Varchar(i32::MAX as u32)
}

fn row_type() -> DataType {
    DataType::Row(vec![inner(50, "a", DataType::Int), inner(51, "b", text()), inner(52, "t", text())])
}

fn list(element: DataType) -> DataType {
    DataType::Array(Box::new(field_type(element)))
}

fn map(value: DataType) -> DataType {
    let key = FieldType { data_type: text(), nullable: false };
    DataType::Map(Box::new(key), Box::new(field_type(value)))
}

fn atomic_types() -> Vec<DataType> {
    vec![
        DataType::Boolean,
        DataType::TinyInt,
        DataType::SmallInt,
        DataType::Int,
        DataType::BigInt,
        DataType::Float,
        DataType::Double,
        DataType::Decimal(5, 2),
        DataType::Decimal(25, 3),
        DataType::Date,
        DataType::Time(3),
        DataType::Timestamp(3),
        DataType::Timestamp(6),
        DataType::TimestampLtz(9),
        text(),
        DataType::Varbinary(10),
    ]
}

/// A value that is likely to collide with others, and sometimes extreme.
fn value(data_type: &DataType, nullable: bool, dice: &mut Dice) -> Value {
    if nullable && dice.percent(20) {
        return Value::Null;
    }
    match data_type {
        DataType::Boolean => Value::Bool(dice.percent(50)),
        DataType::TinyInt => Value::Int(dice.pick(&[-128, -3, -1, 0, 1, 2, 3, 4, 127])),
        DataType::SmallInt => Value::Int(dice.pick(&[-32768, -3, -1, 0, 1, 2, 3, 4, 32767])),
        DataType::Int => Value::Int(dice.pick(&[i64::from(i32::MIN), -3, -1, 0, 1, 2, 3, 4, 1000])),
        DataType::BigInt => Value::Int(dice.pick(&[i64::MIN, -3, -1, 0, 1, 2, 3, 4, i64::MAX])),
        DataType::Date | DataType::Time(_) | DataType::Timestamp(_) | DataType::TimestampLtz(_) => {
            Value::Int(dice.pick(&[0, 1, 2, 3, 4, 86_399_999]))
        }
        DataType::Float => Value::Float(dice.pick(&[-0.0, 0.0, 1.5, -2.25, f32::NAN, -f32::NAN, f32::INFINITY])),
        DataType::Double => Value::Double(dice.pick(&[-0.0, 0.0, 1.5, 0.1, f64::NAN, -f64::NAN, f64::NEG_INFINITY])),
        DataType::Decimal(5, _) => Value::Decimal(dice.pick(&[-99999, -150, -1, 0, 1, 25, 100, 400, 99999])),
        DataType::Decimal(..) => Value::Decimal(dice.pick(&[-1500, -1, 0, 1, 1000, 2500, 9_999_999_999_999])),
        DataType::Varchar(_) => {
            let texts = ["", " ", "a", "b", "a,b", "b,a,c", "d,,a", "e;; ;f", "\u{ffff}", "\u{10000}", "\u{1f}x", "ab"];
            Value::Text(dice.pick(&texts).to_string())
        }
        DataType::Varbinary(_) => Value::Bytes(dice.pick(&[vec![], vec![0], vec![0, 0], vec![127], vec![255]])),
        DataType::Array(element) => {
            let length = dice.below(4);
            Value::List((0..length).map(|_| value(&element.data_type, true, dice)).collect())
        }
        DataType::Map(_, of) => {
            let keys = ["k", "l", "m"].iter().filter(|_| dice.percent(50)).collect::<Vec<_>>();
            let of = of.data_type.clone();
            Value::Map(keys.into_iter().map(|k| (Value::Text((*k).to_string()), value(&of, true, dice))).collect())
        }
        DataType::Row(fields) => Value::Row(fields.iter().map(|f| value(f.data_type(), true, dice)).collect()),
        other => panic!("no values of {other:?}"),
    }
}

fn bitmap(dice: &mut Dice) -> Value {
    let bits = dice.below(6);
    let mut bitmap: RoaringBitmap = (0..bits).map(|_| u32::try_from(dice.below(200_000)).unwrap()).collect();
    if dice.percent(30) {
        bitmap.insert_range(5..500);
    }
    let mut bytes = vec![];
    bitmap.serialize_into(&mut bytes).unwrap();
    Value::Bytes(bytes)
}

/// A function with a type it takes, and options.
fn function(dice: &mut Dice) -> (&'static str, DataType, Vec<(&'static str, String)>) {
    let numbers = [
        DataType::TinyInt,
        DataType::SmallInt,
        DataType::Int,
        DataType::BigInt,
        DataType::Float,
        DataType::Double,
        DataType::Decimal(5, 2),
        DataType::Decimal(25, 3),
    ];
    let set = |key, value: &str| (key, value.to_string());
    match dice.below(20) {
        0..=2 => ("sum", dice.pick(&numbers), vec![]),
        3 => ("product", dice.pick(&numbers), vec![]),
        4 => ("max", dice.pick(&atomic_types()), vec![]),
        5 => ("min", dice.pick(&atomic_types()), vec![]),
        6 => ("last_value", dice.pick(&[list(DataType::Int), text(), row_type()]), vec![]),
        7 => ("last_non_null_value", dice.pick(&atomic_types()), vec![]),
        8 => ("first_value", dice.pick(&atomic_types()), vec![]),
        9 => ("first_non_null_value", map(DataType::Int), vec![]),
        10 => ("bool_and", DataType::Boolean, vec![]),
        11 => ("bool_or", DataType::Boolean, vec![]),
        12 => ("listagg", text(), vec![set("list-agg-delimiter", ";")]),
        13 => ("listagg", text(), vec![set("distinct", "true")]),
        14 => ("collect", list(dice.pick(&[DataType::Int, text(), row_type()])), vec![]),
        15 => (
            "collect",
            list(dice.pick(&[DataType::Double, text(), row_type(), DataType::Varbinary(9)])),
            vec![set("distinct", "true")],
        ),
        16 => ("merge_map", map(DataType::Int), vec![]),
        17 => {
            let options = if dice.percent(50) { vec![] } else { vec![set("ts-field", "b")] };
            ("merge_map_with_keytime", map(row_type()), options)
        }
        18 => {
            let options = match dice.below(5) {
                0 => vec![],
                1 => vec![set("count-limit", "3")],
                2 => vec![set("nested-key", "a"), set("count-limit", "2")],
                3 => vec![set("nested-key", "a,b"), set("nested-sequence-field", "t")],
                _ => vec![set("nested-key", "a"), set("nested-key-null-strategy", "ignore")],
            };
            ("nested_update", list(row_type()), options)
        }
        _ if dice.percent(50) => ("nested_partial_update", list(row_type()), vec![set("nested-key", "a")]),
        _ => ("rbm32", DataType::Varbinary(2000), vec![]),
    }
}

impl Case {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let engine =
            dice.pick(&["deduplicate", "partial-update", "partial-update", "aggregation", "aggregation", "first-row"]);
        let mut options: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |key: String, value: &str| options.insert(key, value.to_string());
        set("merge-engine".to_string(), engine);
        set("bucket".to_string(), "1");
        let mut columns: Vec<(String, DataType, bool)> = Vec::new();
        let nullable_key = dice.percent(10);
        let keys = if dice.percent(60) { 1 } else { 2 };
        for number in 0..keys {
            let data_type = if dice.percent(50) { DataType::Int } else { dice.pick(&atomic_types()) };
            columns.push((format!("k{number}"), data_type, nullable_key));
        }
        let mut bitmaps = Vec::new();
        let guarded = engine == "partial-update" && dice.percent(70);
        let mut guards = Vec::new();
        if guarded {
            for number in 0..1 + dice.below(3) {
                guards.push(format!("g{number}"));
                columns.push((
                    format!("g{number}"),
                    dice.pick(&[DataType::Int, text(), DataType::Float, DataType::Double]),
                    true,
                ));
            }
        }
        let mut protected = Vec::new();
        for number in 0..1 + dice.below(6) {
            let name = format!("v{number}");
            let nullable = !dice.percent(8);
            let aggregated = match engine {
                "aggregation" => dice.percent(85),
                "partial-update" => guarded && dice.percent(50),
                _ => false,
            };
            let atomic = dice.pick(&atomic_types());
            let mut data_type = dice.pick(&[atomic, list(text()), map(DataType::Int)]);
            if aggregated {
                let (function, of, more) = function(&mut dice);
                if function == "rbm32" {
                    bitmaps.push(name.clone());
                }
                data_type = of;
                set(format!("fields.{name}.aggregate-function"), function);
                for (key, value) in more {
                    set(format!("fields.{name}.{key}"), &value);
                }
                if dice.percent(60) {
                    set(format!("fields.{name}.ignore-retract"), "true");
                }
                protected.push(name.clone());
            } else if guarded && dice.percent(50) {
                protected.push(name.clone());
            }
            columns.push((name, data_type, nullable));
        }
        if guarded {
            // one group of all guards, or one each
            let groups: Vec<Vec<String>> = if dice.percent(40) {
                vec![guards.clone()]
            } else {
                guards.iter().map(|guard| vec![guard.clone()]).collect()
            };
            let mut members: Vec<Vec<String>> = vec![vec![]; groups.len()];
            for name in protected {
                let group = dice.below(groups.len());
                members[group].push(name);
            }
            for (group, mut members) in groups.iter().zip(members) {
                if members.is_empty() {
                    members.push(group[0].clone());
                }
                set(format!("fields.{}.sequence-group", group.join(",")), &members.join(","));
            }
            if dice.percent(30) {
                let guard = dice.pick(&guards);
                set("partial-update.remove-record-on-sequence-group".to_string(), &guard);
            }
        }
        if engine != "first-row" && dice.percent(40) {
            let names: Vec<String> = (0..1 + dice.below(2)).map(|number| format!("s{number}")).collect();
            for name in &names {
                columns.push((
                    name.clone(),
                    dice.pick(&[DataType::Int, text(), DataType::Float, DataType::Double]),
                    true,
                ));
            }
            set("sequence.field".to_string(), &names.join(","));
            if dice.percent(40) {
                set("sequence.field.sort-order".to_string(), "descending");
            }
        }
        for (key, chance) in [
            ("ignore-delete", if engine == "first-row" { 70 } else { 25 }),
            ("force-lookup", 25),
            ("partial-update.remove-record-on-delete", 50),
            ("aggregation.remove-record-on-delete", 25),
        ] {
            if dice.percent(chance) {
                set(key.to_string(), "true");
            }
        }
        if options.contains_key("aggregation.remove-record-on-delete") && engine == "aggregation" {
            options.retain(|key, _| !key.ends_with(".ignore-retract"));
        }
        // guards may stand before or after what they protect
        if dice.percent(50) {
            for at in (keys + 1..columns.len()).rev() {
                let other = keys + dice.below(at - keys + 1);
                columns.swap(at, other);
            }
        }
        let mut schema = TableSchema {
            version: 3,
            id: SchemaId(0),
            fields: columns
                .iter()
                .zip(0..)
                .map(|((name, data_type, nullable), id)| DataField {
                    id,
                    name: name.clone(),
                    field_type: FieldType { data_type: data_type.clone(), nullable: *nullable },
                    description: None,
                    default_value: None,
                    sums: false,
                })
                .collect(),
            highest_field_id: 100,
            partition_keys: vec![],
            // sometimes in another order than the columns
            primary_keys: match (keys, dice.percent(50)) {
                (2, true) => vec!["k1".to_string(), "k0".to_string()],
                (2, false) => vec!["k0".to_string(), "k1".to_string()],
                _ => vec!["k0".to_string()],
            },
            options,
            comment: None,
            time_millis: 0,
        };
        schema.mark_sums();
        let runs = runs(&schema, &bitmaps, &mut dice);
        let all = schema.fields.len();
        let projection =
            if dice.percent(50) { (0..all).collect() } else { (0..all).filter(|_| dice.percent(50)).collect() };
        let keep_deletes = dice.percent(30);
        Self { schema, runs, projection, keep_deletes, dice }
    }

    pub(super) fn rules(&self) -> MergeRules {
        let options = CoreOptions::parse(&self.schema.options).unwrap();
        MergeRules::try_new(&self.schema, &options).unwrap()
    }

    pub(super) fn naive(&self, columns: &[usize], records: &[Record]) -> std::result::Result<naive::Outcome, String> {
        let table = naive::Table {
            columns: columns
                .iter()
                .map(|&at| &self.schema.fields[at])
                .map(|field| naive::Column {
                    name: field.name.clone(),
                    data_type: field.data_type().clone(),
                    nullable: field.field_type.nullable,
                })
                .collect(),
            key: self.schema.primary_keys.clone(),
            options: self.schema.options.clone(),
        };
        let records: Vec<Record> = records
            .iter()
            .map(|record| Record {
                values: columns.iter().map(|&at| record.values[at].clone()).collect(),
                ..record.clone()
            })
            .collect();
        naive::merge(&table, &records)
    }
}

/// Sorted runs, cut into files.
fn runs(schema: &TableSchema, bitmaps: &[String], dice: &mut Dice) -> Vec<Vec<Vec<Record>>> {
    let key: Vec<usize> =
        schema.primary_keys.iter().map(|name| schema.fields.iter().position(|f| f.name == *name).unwrap()).collect();
    let row = |dice: &mut Dice| -> Vec<Value> {
        schema
            .fields
            .iter()
            .map(|field| {
                if bitmaps.contains(&field.name) {
                    if dice.percent(80) || !field.field_type.nullable { bitmap(dice) } else { Value::Null }
                } else {
                    value(field.data_type(), field.field_type.nullable, dice)
                }
            })
            .collect()
    };
    let pool: Vec<Vec<Value>> = (0..1 + dice.below(20)).map(|_| row(dice)).collect();
    let of_key = |row: &Vec<Value>| -> Vec<Value> { key.iter().map(|&at| row[at].clone()).collect() };
    let order = |a: &[Value], b: &[Value]| {
        a.iter().zip(b).map(|(a, b)| a.key_order(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    let retracts = dice.pick(&[0, 0, 15, 40]);
    // sequence numbers: any (with many ties), or a range of its own for each run
    let ranged = dice.percent(50);
    let mut upper: Vec<i32> = vec![5, 4, 3, 2, 1];
    let mut runs = Vec::new();
    for number in 0..dice.below(6) {
        let level = if dice.percent(50) || upper.is_empty() { 0 } else { upper.remove(dice.below(upper.len())) };
        let mut keys: Vec<Vec<Value>> = pool.iter().filter(|_| dice.percent(60)).map(of_key).collect();
        keys.sort_by(|a, b| order(a, b));
        keys.dedup_by(|a, b| order(a, b).is_eq());
        let mut file = Vec::new();
        let mut files = Vec::new();
        for key_values in keys {
            let mut values = row(dice);
            for (&at, value) in key.iter().zip(key_values) {
                values[at] = value;
            }
            let kind = if dice.percent(retracts) {
                dice.pick(&[RowKind::UpdateBefore, RowKind::Delete])
            } else {
                dice.pick(&[RowKind::Insert, RowKind::Insert, RowKind::UpdateAfter])
            };
            let sequence = if ranged { number as i64 * 10 + dice.below(10) as i64 } else { dice.below(4) as i64 };
            file.push(Record { values, sequence, kind, level, place: 0 });
            if dice.percent(30) {
                files.push(std::mem::take(&mut file));
            }
        }
        if !file.is_empty() {
            files.push(file);
        }
        runs.push(files);
    }
    for at in (1..runs.len()).rev() {
        let other = dice.below(at + 1);
        runs.swap(at, other);
    }
    for (place, run) in runs.iter_mut().enumerate() {
        run.iter_mut().flatten().for_each(|record| record.place = place);
    }
    runs
}
