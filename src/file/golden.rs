//! Every data file of the golden tables, read by this room alone and compared with what the reference implementations
//! read: append tables as they are, deduplicate tables after keeping the newest row of each key.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a module of tests")]

mod tests {
    use std::collections::{BTreeMap, HashMap};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
    use arrow::buffer::BooleanBuffer;
    use arrow::datatypes::{Int8Type, Int64Type};
    use futures::TryStreamExt;
    use serde_json::{Map, Value};

    use crate::file::{FileEnv, FileTask, OutputColumn, open, output_schema};
    use crate::spec::arrow_types::datum_at;
    use crate::spec::manifest::{decode_manifest, decode_manifest_list, live};
    use crate::spec::{DataType, Datum, FieldType, ManifestEntry, Snapshot, SnapshotId, TableSchema};
    use crate::storage::Storage;
    use crate::testing::golden;

    /// A table folder, read with nothing but the format room.
    struct Table {
        path: PathBuf,
        storage: Arc<Storage>,
        root: crate::storage::Location,
        schemas: BTreeMap<i64, Arc<TableSchema>>,
        /// Path below the table of every file, by name.
        files: HashMap<String, String>,
    }

    impl Table {
        async fn open(path: &Path) -> Self {
            let (storage, root) = Storage::open(path.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
            let mut schemas = BTreeMap::new();
            for entry in fs::read_dir(path.join("schema")).unwrap() {
                let entry = entry.unwrap().path();
                let schema = TableSchema::from_json(&fs::read(entry).unwrap()).unwrap();
                schemas.insert(schema.id.0, Arc::new(schema));
            }
            let mut files = HashMap::new();
            walk(path, path, &mut files);
            Self { path: path.to_path_buf(), storage, root, schemas, files }
        }

        fn snapshot(&self, id: i64) -> Option<Snapshot> {
            let bytes = fs::read(self.path.join(format!("snapshot/snapshot-{id}"))).ok()?;
            Some(Snapshot::from_json(&bytes).unwrap())
        }

        fn latest(&self) -> Option<i64> {
            let ids = fs::read_dir(self.path.join("snapshot")).ok()?;
            ids.filter_map(|e| e.unwrap().file_name().to_str()?.strip_prefix("snapshot-")?.parse().ok()).max()
        }

        fn live_files(&self, snapshot: &Snapshot) -> Vec<ManifestEntry> {
            let mut all = Vec::new();
            for list in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
                let bytes = fs::read(self.path.join("manifest").join(list)).unwrap();
                for meta in decode_manifest_list(&bytes, list).unwrap() {
                    let bytes = fs::read(self.path.join("manifest").join(&meta.file_name)).unwrap();
                    all.extend(decode_manifest(&bytes, &meta.file_name).unwrap());
                }
            }
            live(all.iter()).into_iter().cloned().collect()
        }

        fn task(&self, entry: &ManifestEntry, schema: &TableSchema, columns: Vec<OutputColumn>) -> FileTask {
            let relative = &self.files[&entry.file.file_name];
            let location = self.root.join(relative).unwrap();
            let file_schema = Arc::clone(&self.schemas[&entry.file.schema_id.0]);
            let mut task =
                FileTask::new(Arc::clone(&self.storage), location, entry.file.file_size, file_schema, columns);
            task.row_count = Some(entry.file.row_count as u64);
            let keys = schema.partition_indices().unwrap();
            let types: Vec<&DataType> = keys.iter().map(|at| schema.fields[*at].data_type()).collect();
            if !types.is_empty() {
                for (at, value) in keys.iter().zip(entry.partition.decode(&types).unwrap()) {
                    task.constants.insert(schema.fields[*at].id, value);
                }
            }
            task
        }
    }

    fn walk(root: &Path, at: &Path, files: &mut HashMap<String, String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, files);
            } else {
                let name = path.file_name().unwrap().to_str().unwrap().to_string();
                files.insert(name, path.strip_prefix(root).unwrap().to_str().unwrap().to_string());
            }
        }
    }

    fn table_columns(schema: &TableSchema) -> Vec<OutputColumn> {
        schema.fields.iter().cloned().map(OutputColumn::Field).collect()
    }

    async fn read(env: &Arc<FileEnv>, task: &FileTask) -> crate::Result<Vec<RecordBatch>> {
        let batches: Vec<RecordBatch> = open(env, task).await?.try_collect().await?;
        for batch in &batches {
            assert_eq!(batch.schema(), output_schema(&task.columns), "{}", task.location);
            assert!(batch.num_rows() <= task.options.batch_size);
            // validates nesting, offsets and UTF-8
            for column in batch.columns() {
                column.to_data().validate_full().unwrap();
            }
        }
        Ok(batches)
    }

    /// A value in the notation of the expected files; floats as text, so that NaN can be compared.
    fn render(array: &ArrayRef, row: usize, field: &FieldType) -> Value {
        if array.is_null(row) {
            return Value::Null;
        }
        match &field.data_type {
            DataType::Array(item) => {
                let items = array.as_list::<i32>().value(row);
                Value::Array((0..items.len()).map(|i| render(&items, i, item)).collect())
            }
            DataType::Row(fields) => {
                let row_array = array.as_struct();
                let mut object = Map::new();
                for (child, field) in row_array.columns().iter().zip(fields) {
                    object.insert(field.name.clone(), render(child, row, &field.field_type));
                }
                Value::Object(object)
            }
            DataType::Map(key, value) => pairs(array, row, key, value),
            DataType::Multiset(element) => {
                pairs(array, row, element, &FieldType { data_type: DataType::Int, nullable: false })
            }
            atomic => match datum_at(array, row, atomic).unwrap() {
                Datum::Null => Value::Null,
                Datum::Boolean(v) => v.into(),
                Datum::TinyInt(v) => v.into(),
                Datum::SmallInt(v) => v.into(),
                Datum::Int(v) => v.into(),
                Datum::BigInt(v) => v.into(),
                Datum::Float(v) => format!("{v:?}").into(),
                Datum::Double(v) => format!("{v:?}").into(),
                Datum::Decimal(v, _, scale) => {
                    let sign = if v < 0 { "-" } else { "" };
                    let digits = format!("{:0>1$}", v.unsigned_abs(), usize::from(scale) + 1);
                    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
                    let point = if scale > 0 { "." } else { "" };
                    format!("{sign}{whole}{point}{fraction}").into()
                }
                Datum::Date(v) => {
                    let date = chrono::NaiveDate::default() + chrono::Days::new(0);
                    (date + chrono::TimeDelta::days(v.into())).to_string().into()
                }
                Datum::Time(v) => {
                    let v = v as u32;
                    let time = chrono::NaiveTime::from_num_seconds_from_midnight_opt(v / 1000, v % 1000 * 1_000_000);
                    time.unwrap().format("%H:%M:%S%.3f").to_string().into()
                }
                Datum::Timestamp(millis, nanos) => {
                    let time = chrono::DateTime::from_timestamp_millis(millis).unwrap()
                        + chrono::TimeDelta::nanoseconds(nanos.into());
                    let zone = if matches!(atomic, DataType::TimestampLtz(_)) { "Z" } else { "" };
                    format!("{}{zone}", time.format("%Y-%m-%dT%H:%M:%S%.9f")).into()
                }
                Datum::String(v) => v.into(),
                Datum::Binary(v) => v.iter().map(|b| format!("{b:02x}")).collect::<String>().into(),
            },
        }
    }

    fn pairs(array: &ArrayRef, row: usize, key: &FieldType, value: &FieldType) -> Value {
        let entries = array.as_map().value(row);
        let mut pairs: Vec<Value> = (0..entries.len())
            .map(|i| vec![render(entries.column(0), i, key), render(entries.column(1), i, value)].into())
            .collect();
        pairs.sort_by_key(|pair| pair.to_string());
        Value::Array(pairs)
    }

    /// An expected value in the same notation.
    fn expected(value: &Value, field: &FieldType) -> Value {
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
        match (&field.data_type, value) {
            (_, Value::Null) => Value::Null,
            (DataType::Float, v) => format!("{:?}", text(v).parse::<f32>().unwrap()).into(),
            (DataType::Double, v) => format!("{:?}", text(v).parse::<f64>().unwrap()).into(),
            (DataType::Array(item), Value::Array(items)) => items.iter().map(|v| expected(v, item)).collect(),
            (DataType::Row(fields), Value::Object(object)) => {
                let fields = fields.iter().map(|f| (f.name.clone(), expected(&object[&f.name], &f.field_type)));
                Value::Object(fields.collect())
            }
            (DataType::Map(key, value), Value::Array(pairs)) => {
                let mut pairs: Vec<Value> =
                    pairs.iter().map(|p| vec![expected(&p[0], key), expected(&p[1], value)].into()).collect();
                pairs.sort_by_key(|pair| pair.to_string());
                Value::Array(pairs)
            }
            (DataType::Multiset(element), Value::Array(pairs)) => {
                let mut pairs: Vec<Value> =
                    pairs.iter().map(|p| vec![expected(&p[0], element), p[1].clone()].into()).collect();
                pairs.sort_by_key(|pair| pair.to_string());
                Value::Array(pairs)
            }
            (_, v) => v.clone(),
        }
    }

    fn expected_rows(path: &Path, schema: &TableSchema) -> Vec<String> {
        let mut rows: Vec<String> = fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|line| {
                let row: Value = serde_json::from_str(line).unwrap();
                let row: Vec<Value> = schema.fields.iter().map(|f| expected(&row[&f.name], &f.field_type)).collect();
                Value::Array(row).to_string()
            })
            .collect();
        rows.sort();
        rows
    }

    /// Rows of the table as text, sorted; with a primary key the newest row of each key that is no delete.
    async fn table_rows(table: &Table, snapshot: &Snapshot, schema: &TableSchema) -> Vec<String> {
        let env = FileEnv::new(1 << 20);
        let keyed = schema.is_primary_key_table();
        let mut columns = table_columns(schema);
        if keyed {
            columns.extend([OutputColumn::SequenceNumber, OutputColumn::ValueKind]);
        }
        let mut all = Vec::new();
        let mut newest: BTreeMap<String, (i64, i8, String)> = BTreeMap::new();
        for entry in table.live_files(snapshot) {
            let task = table.task(&entry, schema, columns.clone());
            let batches = read(&env, &task).await.unwrap_or_else(|e| panic!("{}: {e:?}", task.location));
            let mut count = 0;
            for batch in batches {
                count += batch.num_rows();
                for row in 0..batch.num_rows() {
                    let values: Vec<Value> = schema
                        .fields
                        .iter()
                        .zip(batch.columns())
                        .map(|(field, array)| render(array, row, &field.field_type))
                        .collect();
                    if keyed {
                        let key: Vec<&Value> =
                            schema.primary_keys.iter().map(|k| &values[schema.field_index(k).unwrap()]).collect();
                        let key = serde_json::to_string(&key).unwrap();
                        let width = schema.fields.len();
                        let sequence = batch.column(width).as_primitive::<Int64Type>().value(row);
                        let kind = batch.column(width + 1).as_primitive::<Int8Type>().value(row);
                        let line = Value::Array(values).to_string();
                        let known = newest.entry(key).or_insert((i64::MIN, 3, String::new()));
                        if sequence >= known.0 {
                            *known = (sequence, kind, line);
                        }
                    } else {
                        all.push(Value::Array(values).to_string());
                    }
                }
            }
            assert_eq!(count as i64, entry.file.row_count, "{}", task.location);
        }
        all.extend(newest.into_values().filter(|(_, kind, _)| matches!(kind, 0 | 2)).map(|(_, _, line)| line));
        all.sort();
        all
    }

    /// Whether the naive reading above is the table's meaning.
    fn plain(schema: &TableSchema) -> bool {
        let option = |name: &str| schema.options.get(name).map(String::as_str);
        let engine = option("merge-engine").unwrap_or("deduplicate") == "deduplicate";
        let special = [
            "sequence.field",
            "ignore-delete",
            "rowkind.field",
            "deletion-vectors.enabled",
            "scan.fallback-branch",
            "fields.v.default-value",
            "data-evolution.enabled",
        ];
        let blob = schema.fields.iter().any(|f| matches!(f.data_type(), DataType::Blob));
        engine && special.iter().all(|name| option(name).is_none()) && option("bucket") != Some("-2") && !blob
    }

    fn tables(root: &Path) -> Vec<PathBuf> {
        let mut tables: Vec<PathBuf> =
            fs::read_dir(root.join("warehouse/golden.db")).unwrap().map(|e| e.unwrap().path()).collect();
        tables.sort();
        tables
    }

    /// Differences between a table and what is expected of it, by snapshot; and the number of comparisons.
    async fn differences(root: &Path, path: &Path) -> (Vec<String>, usize) {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let table = Table::open(path).await;
        let newest = Arc::clone(table.schemas.last_key_value().unwrap().1);
        let Some(latest) = table.latest() else { return (Vec::new(), 0) };
        let mut found = Vec::new();
        let mut compared = 0;
        let wanted = root.join("expected").join(&name);
        for id in 1..=latest {
            let Some(snapshot) = table.snapshot(id) else { continue };
            assert_eq!(snapshot.id, SnapshotId(id));
            let mut cases = vec![(format!("snapshot-{id}"), Arc::clone(&table.schemas[&snapshot.schema_id.0]))];
            if id == latest {
                cases.push(("latest".to_string(), Arc::clone(&newest)));
            }
            for (case, schema) in cases {
                let file = wanted.join(format!("{case}.jsonl"));
                if !plain(&schema) || !plain(&newest) || !file.exists() {
                    continue;
                }
                let read = table_rows(&table, &snapshot, &schema).await;
                let expected = expected_rows(&file, &schema);
                compared += 1;
                for row in read.iter().filter(|row| !expected.contains(row)) {
                    found.push(format!("{name} {case}: read {row}"));
                }
                for row in expected.iter().filter(|row| !read.contains(row)) {
                    found.push(format!("{name} {case}: expected {row}"));
                }
                if read.len() != expected.len() {
                    found.push(format!("{name} {case}: {} rows, expected {}", read.len(), expected.len()));
                }
            }
        }
        (found, compared)
    }

    /// Answers of the reference that a correct reader does not give.
    fn is_explained(line: &str) -> bool {
        let case = line.split(": ").next().unwrap_or_default();
        match case {
            // dates of times before 1970 are rounded up by 0.9
            "evo_casts latest" => line.contains("\"1970-01-01\"") || line.contains("\"1969-12-31\""),
            // fractions of the last second before 1970 are one second late in ORC
            "types_key_orc snapshot-1" | "types_key_orc latest" => line.contains("1970-01-01T00:00:00.999"),
            _ => false,
        }
    }

    async fn compare(root: PathBuf, at_least: usize) {
        let mut unexplained = Vec::new();
        let mut compared = 0;
        for path in tables(&root) {
            let (found, cases) = differences(&root, &path).await;
            compared += cases;
            unexplained.extend(found.into_iter().filter(|line| !is_explained(line)));
        }
        assert!(unexplained.is_empty(), "{} differences:\n{}", unexplained.len(), unexplained.join("\n"));
        assert!(compared >= at_least, "only {compared} readings were compared");
    }

    #[tokio::test]
    async fn plain_tables_of_java_read_as_java_reads_them() {
        compare(golden::root().unwrap().join("java-0.9"), 100).await;
    }

    #[tokio::test]
    async fn plain_tables_of_python_read_as_python_reads_them() {
        compare(golden::root().unwrap().join("python-2.1"), 30).await;
    }

    /// Every live file of every table: positions count on, masks take what they say, in every format.
    #[tokio::test]
    async fn masks_and_positions_are_absolute_in_every_file() {
        let mut files = 0;
        for side in ["java-0.9", "python-2.1"] {
            for path in tables(&golden::root().unwrap().join(side)) {
                let table = Table::open(&path).await;
                let Some(latest) = table.latest() else { continue };
                let snapshot = table.snapshot(latest).unwrap();
                let schema = Arc::clone(&table.schemas[&snapshot.schema_id.0]);
                let mut columns = vec![OutputColumn::RowPosition];
                columns.extend(table_columns(&schema).into_iter().filter(|column| match column {
                    OutputColumn::Field(field) => !matches!(field.data_type(), DataType::Blob),
                    _ => true,
                }));
                let env = FileEnv::new(1 << 20);
                for entry in table.live_files(&snapshot) {
                    if entry.file.file_name.ends_with(".blob") {
                        continue;
                    }
                    files += 1;
                    let rows = entry.file.row_count as usize;
                    let mut task = table.task(&entry, &schema, columns.clone());
                    task.options = task.options.with_batch_size(7);
                    let whole = read(&env, &task).await.unwrap_or_else(|e| panic!("{}: {e:?}", task.location));
                    let whole = arrow::compute::concat_batches(&task.schema(), &whole).unwrap();
                    let positions: Vec<i64> = whole.column(0).as_primitive::<Int64Type>().values().to_vec();
                    assert_eq!(positions, (0..rows as i64).collect::<Vec<_>>(), "{}", task.location);

                    let live = BooleanBuffer::collect_bool(rows, |i| i % 5 == 2 || i % 11 > 7);
                    let keep = arrow::array::BooleanArray::new(live.clone(), None);
                    task.live = Some(live.clone());
                    let masked = read(&env, &task).await.unwrap();
                    let masked = arrow::compute::concat_batches(&task.schema(), &masked).unwrap();
                    assert_eq!(
                        masked,
                        arrow::compute::filter_record_batch(&whole, &keep).unwrap(),
                        "{}",
                        task.location
                    );

                    // without columns the rows still count
                    task.columns.clear();
                    let counted: usize = read(&env, &task).await.unwrap().iter().map(RecordBatch::num_rows).sum();
                    assert_eq!(counted, live.count_set_bits());
                    task.columns = vec![OutputColumn::RowPosition];
                    let places = read(&env, &task).await.unwrap();
                    let places = arrow::compute::concat_batches(&task.schema(), &places).unwrap();
                    assert_eq!(
                        places.column(0).as_primitive::<Int64Type>().values().to_vec(),
                        live.set_indices().map(|i| i as i64).collect::<Vec<_>>()
                    );
                }
            }
        }
        assert!(files > 200, "only {files} files were read");
    }
}
