//! The merge and the selection against the naive model, on random tables. A failure prints the seed of its case;
//! `LAKEPIN_SEED=n` runs that case alone, `LAKEPIN_CASES=n` runs more cases than usual.

mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int8Array, Int64Array};
    use arrow::buffer::BooleanBuffer;
    use arrow::datatypes::{DataType as ArrowType, Field, Int8Type, Int64Type, Schema};
    use arrow::record_batch::RecordBatch;
    use futures::{StreamExt, TryStreamExt, stream};
    use roaring::RoaringBitmap;

    use crate::error::Result;
    use crate::merge::select::select_by_each_kernel;
    use crate::merge::{
        FileSequence, KeyFile, KeyRange, KeySample, KeySampler, MergeOptions, MergeRules, RunInput, SectionSelection,
        Unbounded, cut, join, key_ranges, merge_runs, select, within,
    };
    use crate::spec::arrow_types::arrow_field;
    use crate::spec::{CoreOptions, DataField, DataType, FieldType, RowKind, SchemaId, TableSchema};
    use crate::testing::naive::{self, Record, Value};

    /// Random numbers that depend on the seed alone.
    struct Dice(u64);

    impl Dice {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        /// 0 ..= n - 1
        fn below(&mut self, n: usize) -> usize {
            usize::try_from(self.next() % n as u64).unwrap()
        }

        fn percent(&mut self, chance: usize) -> bool {
            self.below(100) < chance
        }

        fn pick<T: Clone>(&mut self, from: &[T]) -> T {
            from[self.below(from.len())].clone()
        }
    }

    /// A table, its runs and what is read of it.
    struct Case {
        schema: TableSchema,
        /// Run → file → rows, all columns; levels are in the rows.
        runs: Vec<Vec<Vec<Record>>>,
        projection: Vec<usize>,
        keep_deletes: bool,
        dice: Dice,
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
            DataType::Double => {
                Value::Double(dice.pick(&[-0.0, 0.0, 1.5, 0.1, f64::NAN, -f64::NAN, f64::NEG_INFINITY]))
            }
            DataType::Decimal(5, _) => Value::Decimal(dice.pick(&[-99999, -150, -1, 0, 1, 25, 100, 400, 99999])),
            DataType::Decimal(..) => Value::Decimal(dice.pick(&[-1500, -1, 0, 1, 1000, 2500, 9_999_999_999_999])),
            DataType::Varchar(_) => {
                let texts =
                    ["", " ", "a", "b", "a,b", "b,a,c", "d,,a", "e;; ;f", "\u{ffff}", "\u{10000}", "\u{1f}x", "ab"];
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
            17 => ("merge_map_with_keytime", map(row_type()), vec![]),
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
        fn new(seed: u64) -> Self {
            let mut dice = Dice(seed);
            let engine = dice.pick(&[
                "deduplicate",
                "partial-update",
                "partial-update",
                "aggregation",
                "aggregation",
                "first-row",
            ]);
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
            let schema = TableSchema {
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
            let runs = runs(&schema, &bitmaps, &mut dice);
            let all = schema.fields.len();
            let projection =
                if dice.percent(50) { (0..all).collect() } else { (0..all).filter(|_| dice.percent(50)).collect() };
            let keep_deletes = dice.percent(30);
            Self { schema, runs, projection, keep_deletes, dice }
        }

        fn rules(&self) -> MergeRules {
            let options = CoreOptions::parse(&self.schema.options).unwrap();
            MergeRules::try_new(&self.schema, &options).unwrap()
        }

        fn naive(&self, columns: &[usize], records: &[Record]) -> std::result::Result<naive::Outcome, String> {
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
        let key: Vec<usize> = schema
            .primary_keys
            .iter()
            .map(|name| schema.fields.iter().position(|f| f.name == *name).unwrap())
            .collect();
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

    fn column(records: &[Record], at: usize, field: &DataField) -> ArrayRef {
        let values: Vec<Value> = records.iter().map(|record| record.values[at].clone()).collect();
        naive::to_array(&values, arrow_field(field).data_type()).unwrap()
    }

    fn batch(schema: &TableSchema, columns: &[usize], records: &[Record]) -> RecordBatch {
        let mut fields: Vec<Field> = columns.iter().map(|&at| arrow_field(&schema.fields[at])).collect();
        fields.push(Field::new("_SEQUENCE_NUMBER", ArrowType::Int64, false));
        fields.push(Field::new("_VALUE_KIND", ArrowType::Int8, false));
        let mut arrays: Vec<ArrayRef> = columns.iter().map(|&at| column(records, at, &schema.fields[at])).collect();
        arrays.push(Arc::new(records.iter().map(|record| record.sequence).collect::<Int64Array>()));
        arrays.push(Arc::new(records.iter().map(|record| record.kind as i8).collect::<Int8Array>()));
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
    }

    /// What a row is compared by. Floats count as equal by Java's order, so NaN equals NaN and -0.0 is not 0.0.
    fn same(a: &[Value], b: &[Value]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.order(b).is_eq())
    }

    /// Values, sequence number, kind.
    type MergedRow = (Vec<Value>, i64, RowKind);

    /// What a merge gave, and what it counted: rows, keys, tombstones.
    type Merged = (Result<Vec<MergedRow>>, [u64; 3]);

    fn run_merge(case: &mut Case) -> (Vec<usize>, Merged) {
        let columns = case.rules().required_columns(&case.projection).unwrap();
        let merged = run_range(case, &columns, &KeyRange::default(), None);
        (columns, merged)
    }

    /// The merge in parts: the rows of the parts one after another, and the sums of what they counted.
    fn run_parts(case: &mut Case, columns: &[usize]) -> Merged {
        let rules = case.rules();
        let step = 1 + case.dice.below(4);
        let samples: Vec<Vec<KeySample>> = case
            .runs
            .iter()
            .map(|files| {
                let sample = |records: &Vec<Record>| {
                    let key: Vec<ArrayRef> =
                        rules.key_columns().iter().map(|&at| column(records, at, &case.schema.fields[at])).collect();
                    let mut sampler = KeySampler::new(step);
                    sampler.push(&key).unwrap();
                    sampler.finish().unwrap()
                };
                files.iter().map(sample).collect()
            })
            .collect();
        let ranges = key_ranges(samples.iter().flatten(), 1 + case.dice.below(6)).unwrap();
        let (mut rows, mut counted) = (Vec::new(), [0; 3]);
        for range in &ranges {
            let (part, counts) = run_range(case, columns, range, Some(&samples));
            match part {
                Ok(part) => rows.extend(part),
                Err(error) => return (Err(error), counted),
            }
            counted = [0, 1, 2].map(|at| counted[at] + counts[at]);
        }
        (Ok(rows), counted)
    }

    fn run_range(
        case: &mut Case,
        columns: &[usize],
        range: &KeyRange,
        samples: Option<&Vec<Vec<KeySample>>>,
    ) -> Merged {
        let rules = Arc::new(case.rules());
        let key: Vec<usize> =
            rules.key_columns().iter().map(|at| columns.iter().position(|column| column == at).unwrap()).collect();
        let mut inputs = Vec::new();
        for (number, files) in case.runs.iter().enumerate() {
            let mut batches = Vec::new();
            for (at, records) in files.iter().enumerate() {
                let whole = batch(&case.schema, columns, records);
                let span = samples.map_or(0..records.len(), |samples| samples[number][at].rows_within(range).unwrap());
                let mut at = span.start;
                while at < span.end {
                    let rows = (1 + case.dice.below(5)).min(span.end - at);
                    batches.push(Ok(whole.slice(at, rows)));
                    at += rows;
                    if case.dice.percent(10) {
                        batches.push(Ok(whole.slice(0, 0)));
                    }
                }
            }
            let level = files.iter().flatten().next().map_or(0, |record| record.level);
            inputs.push(RunInput::new(level, within(stream::iter(batches).boxed(), key.clone(), range.clone())));
        }
        let mut options = MergeOptions::new(1 + case.dice.below(8), Arc::new(Unbounded));
        options.keep_deletes = case.keep_deletes;
        let counters = Arc::clone(&options.counters);
        let batches: Result<Vec<RecordBatch>> =
            futures::executor::block_on(merge_runs(inputs, rules, columns, options).try_collect());
        let rows = batches.map(|batches| {
            let mut rows = Vec::new();
            for batch in batches {
                assert!(batch.num_rows() > 0, "an empty batch was given out");
                let width = batch.num_columns() - 2;
                let values: Vec<Vec<Value>> =
                    batch.columns()[..width].iter().map(|column| naive::from_array(column).unwrap()).collect();
                for row in 0..batch.num_rows() {
                    rows.push((
                        values.iter().map(|column| column[row].clone()).collect(),
                        batch.column(width).as_primitive::<Int64Type>().value(row),
                        RowKind::from_byte(batch.column(width + 1).as_primitive::<Int8Type>().value(row)).unwrap(),
                    ));
                }
            }
            rows
        });
        (rows, [counters.rows(), counters.keys(), counters.tombstones()])
    }

    fn check_merge(seed: u64) -> bool {
        let mut case = Case::new(seed);
        let (columns, (merged, counted)) = run_merge(&mut case);
        let (in_parts, counted_in_parts) = run_parts(&mut case, &columns);
        let records: Vec<Record> = case.runs.iter().flatten().flatten().cloned().collect();
        let expected = case.naive(&columns, &records).and_then(|outcome| {
            for row in outcome.rows.iter().filter(|row| case.keep_deletes || !row.kind.is_retract()) {
                for (value, &at) in row.values.iter().zip(&columns) {
                    if value.is_null() && !case.schema.fields[at].field_type.nullable {
                        return Err("NULL in a NOT NULL column".to_string());
                    }
                }
            }
            Ok(outcome)
        });
        let options = &case.schema.options;
        match (expected, merged) {
            (Err(_), Err(_)) => {
                assert!(in_parts.is_err(), "seed {seed}: should fail in parts\n{options:#?}");
                false
            }
            (Err(why), Ok(_)) => panic!("seed {seed}: should fail ({why})\n{options:#?}"),
            (Ok(_), Err(error)) => panic!("seed {seed}: {error:?}\n{options:#?}"),
            (Ok(outcome), Ok(rows)) => {
                let in_parts = in_parts.unwrap_or_else(|error| panic!("seed {seed}: in parts {error:?}\n{options:#?}"));
                let equal = rows.len() == in_parts.len()
                    && rows.iter().zip(&in_parts).all(|(a, b)| same(&a.0, &b.0) && (a.1, a.2) == (b.1, b.2));
                assert!(equal, "seed {seed}: whole {rows:#?}\nin parts {in_parts:#?}\n{options:#?}");
                assert_eq!(counted, counted_in_parts, "seed {seed}: in parts");
                let live = outcome.rows.iter().filter(|row| !row.kind.is_retract()).count();
                let wanted: Vec<_> =
                    outcome.rows.iter().filter(|row| case.keep_deletes || !row.kind.is_retract()).collect();
                let equal = wanted.len() == rows.len()
                    && wanted.iter().zip(&rows).all(|(wanted, (values, sequence, kind))| {
                        same(&wanted.values, values) && wanted.sequence == *sequence && wanted.kind == *kind
                    });
                assert!(
                    equal,
                    "seed {seed}\noptions {options:#?}\ncolumns {columns:?}\nrecords {records:#?}\nwanted {wanted:#?}\nfound {rows:#?}"
                );
                let expected = [records.len(), outcome.keys, outcome.keys - live].map(|count| count as u64);
                assert_eq!(counted, expected, "seed {seed}: rows, keys, tombstones");
                true
            }
        }
    }

    fn key_files(case: &mut Case, rules: &MergeRules) -> (Vec<Vec<KeyFile>>, Vec<Vec<Vec<bool>>>) {
        let vectors = case.dice.percent(40);
        // a rank stands for the numbers of a file where they are its own
        let mut all: Vec<(i64, i64)> = Vec::new();
        for file in case.runs.iter().flatten() {
            let numbers = file.iter().map(|record| record.sequence);
            all.push((numbers.clone().min().unwrap(), numbers.max().unwrap()));
        }
        let disjoint =
            all.iter().enumerate().all(|(i, a)| all.iter().enumerate().all(|(j, b)| i == j || a.1 < b.0 || b.1 < a.0));
        let constant = disjoint && case.dice.percent(50);
        let mut deleted_rows = Vec::new();
        let mut runs = Vec::new();
        for run in &case.runs {
            let mut files = Vec::new();
            let mut deleted_of_run = Vec::new();
            for records in run {
                let of = |columns: &[usize]| -> Vec<ArrayRef> {
                    columns.iter().map(|&at| column(records, at, &case.schema.fields[at])).collect()
                };
                let deleted: Vec<bool> = records.iter().map(|_| vectors && case.dice.percent(30)).collect();
                let sequence: Int64Array = records.iter().map(|record| record.sequence).collect();
                let kinds: Int8Array = records.iter().map(|record| record.kind as i8).collect();
                let clean = records.iter().all(|record| !record.kind.is_retract());
                files.push(KeyFile {
                    level: records[0].level,
                    name: "f".to_string(),
                    keys: of(rules.key_columns()),
                    user_sequence: of(rules.user_sequence_columns()),
                    sequence: if constant {
                        FileSequence::Constant(arrow::compute::min(&sequence).unwrap())
                    } else {
                        sequence.into()
                    },
                    kinds: if clean && case.dice.percent(50) { None } else { Some(kinds) },
                    deleted: vectors.then(|| BooleanBuffer::from_iter(deleted.iter().copied())),
                });
                deleted_of_run.push(deleted);
            }
            runs.push(files);
            deleted_rows.push(deleted_of_run);
        }
        (runs, deleted_rows)
    }

    /// Whether the case was selected, and by how many kernels it could be.
    fn check_select(seed: u64) -> Option<usize> {
        let mut case = Case::new(seed);
        let rules = case.rules();
        if !rules.is_selection() {
            return None;
        }
        let (files, deleted) = key_files(&mut case, &rules);
        let kernels = select_by_each_kernel(files.clone(), &rules);
        let visible: Vec<Record> = case
            .runs
            .iter()
            .zip(&deleted)
            .flat_map(|(run, deleted)| run.iter().flatten().zip(deleted.iter().flatten()))
            .filter(|(_, deleted)| !**deleted)
            .map(|(record, _)| record.clone())
            .collect();
        let all: Vec<usize> = (0..case.schema.fields.len()).collect();
        let expected = case.naive(&all, &visible);
        let options = &case.schema.options;
        let (outcome, selection): (naive::Outcome, SectionSelection) = match (expected, select(files.clone(), &rules)) {
            (Err(_), Err(_)) => return None,
            (Err(why), Ok(_)) => panic!("seed {seed}: should fail ({why})\n{options:#?}"),
            (Ok(_), Err(error)) => panic!("seed {seed}: {error:?}\n{options:#?}"),
            (Ok(outcome), Ok(selection)) => (outcome, selection),
        };
        let parts = cut(files, 1 + case.dice.below(5)).unwrap();
        let in_parts = join(parts.into_iter().map(|part| select(part, &rules).unwrap()).collect()).unwrap();
        assert_eq!(in_parts, selection, "seed {seed}: in parts\n{options:#?}\nrecords {visible:#?}");
        let kernels = kernels.unwrap();
        for (kernel, found) in &kernels {
            assert_eq!(*found, selection, "seed {seed}: kernel {kernel}\n{options:#?}\nrecords {visible:#?}");
        }
        let mut wanted: Vec<usize> =
            outcome.rows.iter().filter(|row| !row.kind.is_retract()).map(|row| row.from.unwrap()).collect();
        wanted.sort_unstable();
        let mut found = Vec::new();
        let mut number = 0;
        let mut physical = 0;
        for (run, deleted) in selection.files.iter().zip(&deleted) {
            assert_eq!(run.len(), deleted.len(), "seed {seed}");
            for (live, deleted) in run.iter().zip(deleted) {
                assert_eq!(live.len(), deleted.len(), "seed {seed}");
                physical += live.len() as u64;
                for (row, deleted) in deleted.iter().enumerate() {
                    if *deleted {
                        assert!(!live.value(row), "seed {seed}: a deleted row is live");
                        continue;
                    }
                    if live.value(row) {
                        found.push(number);
                    }
                    number += 1;
                }
            }
        }
        assert_eq!(found, wanted, "seed {seed}\noptions {options:#?}\nrecords {visible:#?}");
        let stats = selection.stats;
        assert_eq!(stats.rows, physical, "seed {seed}");
        assert_eq!(stats.vector_deleted, physical - visible.len() as u64, "seed {seed}");
        assert_eq!(stats.live, wanted.len() as u64, "seed {seed}");
        assert_eq!(stats.keys, outcome.keys as u64, "seed {seed}");
        assert_eq!(stats.tombstones, (outcome.keys - wanted.len()) as u64, "seed {seed}");
        assert_eq!(stats.rows, stats.vector_deleted + stats.superseded + stats.tombstones + stats.live, "seed {seed}");
        Some(kernels.len())
    }

    fn seeds(usual: u64) -> std::ops::Range<u64> {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        match number("LAKEPIN_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..number("LAKEPIN_CASES").unwrap_or(usual),
        }
    }

    #[test]
    fn merged_rows_agree_with_the_naive_model() {
        let seeds = seeds(3000);
        let cases = seeds.end - seeds.start;
        let merged = seeds.filter(|&seed| check_merge(seed)).count() as u64;
        assert!(cases < 100 || merged * 2 > cases, "only {merged} of {cases} cases merged without an error");
    }

    #[test]
    fn selected_rows_agree_with_the_naive_model() {
        let seeds = seeds(20_000);
        let cases = seeds.end - seeds.start;
        let kernels: Vec<usize> = seeds.filter_map(check_select).collect();
        let selected = kernels.len() as u64;
        assert!(cases < 100 || selected * 5 > cases, "only {selected} of {cases} cases selected");
        for count in 1..=3 {
            let met = kernels.iter().filter(|kernels| **kernels == count).count();
            assert!(cases < 100 || met > 100, "only {met} cases that {count} kernels take");
        }
    }
}
