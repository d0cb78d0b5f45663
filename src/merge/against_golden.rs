//! The merge against rows that the reference implementations returned: every kept snapshot of the golden tables that
//! have something to merge.

mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::path::Path;
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, Int8Array, Int64Array};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType as ArrowType, Field, Schema};
    use arrow::record_batch::RecordBatch;
    use futures::{StreamExt, TryStreamExt, stream};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::Value as Json;

    use crate::memory::Unbounded;
    use crate::merge::{KeyFile, MergeOptions, MergeRules, RunInput, merge_runs, runs_of_one_level, sections, select};
    use crate::spec::arrow_types::arrow_field;
    use crate::spec::manifest::{decode_manifest, decode_manifest_list, live};
    use crate::spec::options::MergeEngine;
    use crate::spec::partition_path::{bucket_dir, partition_dir};
    use crate::spec::{CoreOptions, DataType, Datum, ManifestEntry, Snapshot, TableSchema};
    use crate::testing::golden;
    use crate::testing::naive::{Value, from_array, to_array};

    /// Tables, and columns that are left out because their functions are refused.
    const TABLES: &[(&str, &[&str])] = &[
        ("java-0.9/pk_lsm", &[]),
        ("java-0.9/pk_row_kinds", &[]),
        ("java-0.9/pk_key_order", &[]),
        ("java-0.9/pk_overwrite", &[]),
        ("java-0.9/pk_seq_single", &[]),
        ("java-0.9/pk_seq_multi", &[]),
        ("java-0.9/pk_ignore_delete", &[]),
        ("java-0.9/pk_rowkind_field", &[]),
        ("java-0.9/pk_first_row_none", &[]),
        ("java-0.9/pk_first_row_lookup", &[]),
        ("java-0.9/pk_partial_update", &[]),
        ("java-0.9/pk_partial_seq_group", &[]),
        ("java-0.9/pk_partial_agg", &[]),
        ("java-0.9/pk_partial_remove_on_delete", &[]),
        ("java-0.9/pk_agg", &[]),
        ("java-0.9/pk_agg_seq", &[]),
        ("java-0.9/pk_agg_retract", &[]),
        ("java-0.9/pk_agg_sketch", &["r64", "hll", "th"]),
        ("java-0.9/pk_changelog_none", &[]),
        ("java-0.9/pk_changelog_input", &[]),
        ("java-0.9/pk_changelog_lookup", &[]),
        ("java-0.9/pk_changelog_lookup_agg", &[]),
        ("java-0.9/pk_changelog_lookup_partial", &[]),
        ("java-0.9/pk_changelog_full_compaction_agg", &[]),
        ("python-2.1/pk_simple", &[]),
        ("python-2.1/pk_bucket4", &[]),
        ("python-2.1/pk_partitioned", &[]),
        ("python-2.1/pk_rowkind_field", &[]),
        ("python-2.1/pk_seq_asc", &[]),
        ("python-2.1/pk_seq_desc", &[]),
        ("python-2.1/pk_partial_update", &[]),
        ("python-2.1/pk_aggregation", &[]),
    ];

    struct Table {
        name: String,
        schema: TableSchema,
        options: CoreOptions,
        rules: Arc<MergeRules>,
        root: std::path::PathBuf,
        expected: std::path::PathBuf,
        projection: Vec<usize>,
    }

    /// A data file, decoded.
    struct Data {
        level: i32,
        min: Vec<Datum>,
        max: Vec<Datum>,
        rows: RecordBatch,
    }

    impl Table {
        fn open(name: &str, without: &[&str]) -> Self {
            let (writer, table) = name.split_once('/').unwrap();
            let base = golden::root().unwrap().join(writer);
            let root = base.join("warehouse/golden.db").join(table);
            let schema = TableSchema::from_json(&fs::read(root.join("schema/schema-0")).unwrap()).unwrap();
            let options = CoreOptions::parse(&schema.options).unwrap();
            let rules = Arc::new(MergeRules::try_new(&schema, &options).unwrap());
            let projection =
                (0..schema.fields.len()).filter(|&at| !without.contains(&schema.fields[at].name.as_str())).collect();
            let expected = base.join("expected").join(table);
            Self { name: name.to_string(), schema, options, rules, root, expected, projection }
        }

        fn snapshots(&self) -> Vec<i64> {
            let mut ids: Vec<i64> = fs::read_dir(self.root.join("snapshot"))
                .unwrap()
                .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_prefix("snapshot-")?.parse().ok())
                .collect();
            ids.sort_unstable();
            ids
        }

        /// Live files by partition and bucket.
        fn files(&self, snapshot: i64) -> Vec<ManifestEntry> {
            let manifest = self.root.join("manifest");
            let read = |name: &str| fs::read(manifest.join(name)).unwrap();
            let bytes = fs::read(self.root.join(format!("snapshot/snapshot-{snapshot}"))).unwrap();
            let snapshot = Snapshot::from_json(&bytes).unwrap();
            let mut all = Vec::new();
            for list in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
                for meta in decode_manifest_list(&read(list), list).unwrap() {
                    all.extend(decode_manifest(&read(&meta.file_name), &meta.file_name).unwrap());
                }
            }
            live(all.iter()).into_iter().cloned().collect()
        }

        /// The columns `columns`, sequence number and kind of a data file.
        fn read(&self, entry: &ManifestEntry, columns: &[usize]) -> RecordBatch {
            let by_name = |name: &String| self.schema.fields.iter().position(|field| field.name == *name).unwrap();
            let types: Vec<&DataType> =
                self.schema.partition_keys.iter().map(|n| self.schema.fields[by_name(n)].data_type()).collect();
            let values = entry.partition.decode(&types).unwrap();
            let keys: Vec<&str> = self.schema.partition_keys.iter().map(String::as_str).collect();
            let partition = partition_dir(&keys, &values, &types, &self.options).unwrap();
            let path = self.root.join(partition).join(bucket_dir(entry.bucket)).join(&entry.file.file_name);
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
            let batches: Vec<RecordBatch> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
            let whole = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
            let column = |name: &str| Arc::clone(whole.column_by_name(name).unwrap());
            let mut fields: Vec<Field> = Vec::new();
            let mut arrays: Vec<ArrayRef> = Vec::new();
            for &at in columns {
                let field = arrow_field(&self.schema.fields[at]);
                let array = column(field.name());
                arrays.push(match array.data_type() {
                    ArrowType::List(_) | ArrowType::Map(..) => {
                        // names inside differ from file to file
                        to_array(&from_array(&array).unwrap(), field.data_type()).unwrap()
                    }
                    _ => cast(&array, field.data_type()).unwrap(),
                });
                fields.push(field);
            }
            fields.push(Field::new("_SEQUENCE_NUMBER", ArrowType::Int64, false));
            fields.push(Field::new("_VALUE_KIND", ArrowType::Int8, false));
            arrays.push(cast(&column("_SEQUENCE_NUMBER"), &ArrowType::Int64).unwrap());
            arrays.push(cast(&column("_VALUE_KIND"), &ArrowType::Int8).unwrap());
            RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
        }

        /// The sections of a snapshot that a batch read sees.
        fn sections(&self, snapshot: i64, columns: &[usize]) -> Vec<Vec<Vec<Data>>> {
            let skips_level_0 = self.rules.engine() == MergeEngine::FirstRow;
            let key: Vec<&DataType> =
                self.rules.key_columns().iter().map(|&at| self.schema.fields[at].data_type()).collect();
            let mut buckets: BTreeMap<_, Vec<Data>> = BTreeMap::new();
            for entry in self.files(snapshot) {
                if skips_level_0 && entry.file.level == 0 {
                    continue;
                }
                buckets.entry((entry.partition.clone(), entry.bucket)).or_default().push(Data {
                    level: entry.file.level,
                    min: entry.file.min_key.decode(&key).unwrap(),
                    max: entry.file.max_key.decode(&key).unwrap(),
                    rows: self.read(&entry, columns),
                });
            }
            buckets.into_values().flat_map(|files| sections(files, |file| (&file.min, &file.max))).collect()
        }

        fn merged(&self, snapshot: i64) -> Vec<Vec<Value>> {
            let columns = self.rules.required_columns(&self.projection).unwrap();
            let mut rows = Vec::new();
            for section in self.sections(snapshot, &columns) {
                let runs = section
                    .into_iter()
                    .flat_map(|run| runs_of_one_level(run, |file| file.level))
                    .map(|(level, files)| {
                        let batches: Vec<_> = files.into_iter().map(|file| Ok(file.rows)).collect();
                        RunInput::new(level, stream::iter(batches).boxed())
                    })
                    .collect();
                let options = MergeOptions::new(7, Arc::new(Unbounded));
                let merged = merge_runs(runs, Arc::clone(&self.rules), &columns, options);
                let batches: Vec<RecordBatch> = futures::executor::block_on(merged.try_collect()).unwrap();
                for batch in batches {
                    let places =
                        self.projection.iter().map(|at| columns.iter().position(|column| column == at).unwrap());
                    let values: Vec<Vec<Value>> = places.map(|at| from_array(batch.column(at)).unwrap()).collect();
                    rows.extend(
                        (0..batch.num_rows()).map(|row| values.iter().map(|v| v[row].clone()).collect::<Vec<_>>()),
                    );
                }
            }
            rows
        }

        fn selected(&self, snapshot: i64) -> Vec<Vec<Value>> {
            let columns: Vec<usize> = (0..self.schema.fields.len()).collect();
            let mut rows = Vec::new();
            for section in self.sections(snapshot, &columns) {
                let of = |batch: &RecordBatch, columns: &[usize]| -> Vec<ArrayRef> {
                    columns.iter().map(|&at| Arc::clone(batch.column(at))).collect()
                };
                let files = section
                    .iter()
                    .map(|run| {
                        run.iter()
                            .map(|file| {
                                let [.., sequence, kinds] = file.rows.columns() else { panic!("system columns") };
                                KeyFile {
                                    level: file.level,
                                    name: String::new(),
                                    keys: of(&file.rows, self.rules.key_columns()),
                                    user_sequence: of(&file.rows, self.rules.user_sequence_columns()),
                                    sequence: Int64Array::from(sequence.to_data()).into(),
                                    kinds: Some(Int8Array::from(kinds.to_data())),
                                    deleted: None,
                                }
                            })
                            .collect()
                    })
                    .collect();
                let selection = select(files, &self.rules).unwrap();
                for (file, live) in section.iter().flatten().zip(selection.files.into_iter().flatten()) {
                    let live = arrow::compute::filter_record_batch(&file.rows, &live.into()).unwrap();
                    let values: Vec<Vec<Value>> =
                        columns.iter().map(|&at| from_array(live.column(at)).unwrap()).collect();
                    rows.extend(
                        (0..live.num_rows()).map(|row| values.iter().map(|v| v[row].clone()).collect::<Vec<_>>()),
                    );
                }
            }
            rows
        }

        fn expected(&self, file: &Path) -> Vec<Vec<Value>> {
            fs::read_to_string(file)
                .unwrap()
                .lines()
                .map(|line| {
                    let row: Json = serde_json::from_str(line).unwrap();
                    self.projection
                        .iter()
                        .map(|&at| &self.schema.fields[at])
                        .map(|field| from_json(&row[&field.name], field.data_type()))
                        .collect()
                })
                .collect()
        }

        /// Rows in key order, with elements whose order means nothing sorted.
        fn canonical(&self, mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
            for row in &mut rows {
                for (value, &at) in row.iter_mut().zip(&self.projection) {
                    let name = &self.schema.fields[at].name;
                    let option = |suffix: &str| self.options.raw.get(&format!("fields.{name}.{suffix}"));
                    match value {
                        Value::List(elements) if option("distinct").is_some() || option("nested-key").is_some() => {
                            elements.sort_by(|a, b| a.order(b));
                        }
                        Value::Map(entries) => entries.sort_by(|a, b| a.0.order(&b.0)),
                        _ => {}
                    }
                }
            }
            rows.sort_by(|a, b| Value::Row(a.clone()).order(&Value::Row(b.clone())));
            rows
        }
    }

    fn nanos(text: &str) -> i64 {
        let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").unwrap();
        time.and_utc().timestamp_nanos_opt().unwrap()
    }

    /// A value as the expected files write it.
    fn from_json(json: &Json, data_type: &DataType) -> Value {
        if json.is_null() {
            return Value::Null;
        }
        match data_type {
            DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt => {
                Value::Int(json.as_i64().unwrap())
            }
            DataType::Boolean => Value::Bool(json.as_bool().unwrap()),
            DataType::Float => Value::Float(json.as_f64().unwrap() as f32),
            DataType::Double => Value::Double(json.as_f64().unwrap()),
            DataType::Varchar(_) | DataType::Char(_) => Value::Text(json.as_str().unwrap().to_string()),
            DataType::Decimal(_, scale) => {
                let text = json.as_str().unwrap();
                let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
                let unscaled: i128 = text.replace('.', "").parse().unwrap();
                Value::Decimal(unscaled * 10_i128.pow(u32::from(*scale) - u32::try_from(digits).unwrap()))
            }
            DataType::Timestamp(6) => Value::Int(nanos(json.as_str().unwrap()) / 1000),
            DataType::Timestamp(3) => Value::Int(nanos(json.as_str().unwrap()) / 1_000_000),
            DataType::Varbinary(_) => {
                let hex = json.as_str().unwrap();
                Value::Bytes(
                    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect(),
                )
            }
            DataType::Array(element) => {
                Value::List(json.as_array().unwrap().iter().map(|item| from_json(item, &element.data_type)).collect())
            }
            DataType::Map(key, value) => Value::Map(
                json.as_array()
                    .unwrap()
                    .iter()
                    .map(|entry| (from_json(&entry[0], &key.data_type), from_json(&entry[1], &value.data_type)))
                    .collect(),
            ),
            DataType::Row(fields) => {
                Value::Row(fields.iter().map(|field| from_json(&json[&field.name], field.data_type())).collect())
            }
            other => panic!("no expected values of {other:?}"),
        }
    }

    #[test]
    fn every_kept_snapshot_gives_the_rows_of_the_reference_implementation() {
        let mut compared = 0;
        for (name, without) in TABLES {
            let table = Table::open(name, without);
            for snapshot in table.snapshots() {
                let file = table.expected.join(format!("snapshot-{snapshot}.jsonl"));
                if !file.exists() {
                    continue;
                }
                let expected = table.canonical(table.expected(&file));
                let found = table.canonical(table.merged(snapshot));
                assert_eq!(found, expected, "{} snapshot {snapshot}", table.name);
                if table.rules.is_selection() {
                    let selected = table.canonical(table.selected(snapshot));
                    assert_eq!(selected, expected, "{} snapshot {snapshot}, by selection", table.name);
                }
                compared += 1;
            }
        }
        assert!(compared > 100, "only {compared} snapshots were compared");
    }
}
