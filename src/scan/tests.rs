//! Rules of planning on entries made in memory, named for the faults that taught them.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Cast, Expr, col, lit};

use super::bucket::BucketKey;
use super::condition::{Condition, Conditions};
use super::filters::{Filters, Reach};
use super::live::Live;
use super::manifests::fold;
use super::plan::SectionClass;
use super::prune::tests::{field, file, row, schema};
use super::sections::{MergeFacts, cut, join_neighbours};
use crate::spec::bucket::bucket_of;
use crate::spec::options::{BucketFunction, MergeEngine};
use crate::spec::{BinaryRow, Bucket, CoreOptions, DataType, Datum, FileKind, FileSource, ManifestEntry, TableSchema};

const TEXT: DataType = DataType::Varchar(i32::MAX as u32);

fn options(pairs: &[(&str, &str)]) -> CoreOptions {
    let raw: BTreeMap<String, String> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    CoreOptions::parse(&raw).unwrap()
}

fn keyed_schema(options: &[(&str, &str)]) -> TableSchema {
    let mut schema = schema(0, vec![field(0, "id", DataType::Int), field(1, "v", DataType::Int)]);
    schema.primary_keys = vec!["id".to_string()];
    schema.options = options.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    schema
}

fn entry(name: &str, level: i32, keys: (i32, i32)) -> ManifestEntry {
    let mut file = file(name, 10);
    file.level = level;
    file.min_key = row(&[(Datum::Int(keys.0), DataType::Int)]);
    file.max_key = row(&[(Datum::Int(keys.1), DataType::Int)]);
    file.file_source = Some(if level > 0 { FileSource::Compact } else { FileSource::Append });
    ManifestEntry { kind: FileKind::Add, partition: BinaryRow::empty(), bucket: Bucket(0), total_buckets: 1, file }
}

fn live(entry: ManifestEntry, schema: &Arc<TableSchema>) -> Live {
    let keys = super::live::KeyLayout::try_new(schema, schema).unwrap().range(&entry, true).unwrap();
    let mut live = Live::new(Arc::new(entry), 0, None);
    live.schema = Some(Arc::clone(schema));
    live.keys = keys;
    live
}

fn facts(engine: MergeEngine, vectors: bool) -> MergeFacts {
    MergeFacts { engine, vectors, merge_on_read: false, clustered: false, with_kinds: false, top: 5 }
}

/// Classes and files of the sections.
fn shape(files: &[Live], facts: &MergeFacts) -> Vec<(SectionClass, Vec<Vec<String>>)> {
    let numbers: Vec<usize> = (0..files.len()).collect();
    cut(&numbers, files, facts)
        .unwrap()
        .into_iter()
        .map(|draft| {
            let name = |number: &usize| files[*number].entry.file.file_name.clone();
            (draft.class, draft.runs.iter().map(|run| run.iter().map(name).collect()).collect())
        })
        .collect()
}

#[test]
fn b002_each_section_decides_for_itself_whether_it_is_raw() {
    let schema = Arc::new(keyed_schema(&[]));
    let files = [
        live(entry("top", 5, (1, 100)), &schema),
        live(entry("a", 0, (200, 300)), &schema),
        live(entry("b", 0, (250, 280)), &schema),
    ];
    let found = shape(&files, &facts(MergeEngine::Deduplicate, false));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], (SectionClass::Raw, vec![vec!["top".to_string()]]));
    assert_eq!(found[1].0, SectionClass::Select);
    assert_eq!(found[1].1.iter().flatten().count(), 2);
    // the other way round too: the raw file after the merged ones
    let files = [
        live(entry("a", 0, (1, 30)), &schema),
        live(entry("b", 0, (30, 40)), &schema),
        live(entry("top", 5, (41, 100)), &schema),
    ];
    let classes: Vec<_> =
        shape(&files, &facts(MergeEngine::Aggregation, false)).into_iter().map(|(class, _)| class).collect();
    assert_eq!(classes, [SectionClass::Combine, SectionClass::Raw], "ranges that touch in 30 overlap");
}

#[test]
fn a_delete_count_of_zero_is_believed_of_files_compacted_to_the_top_only() {
    let schema = Arc::new(keyed_schema(&[]));
    let class = |change: &dyn Fn(&mut ManifestEntry)| {
        let mut entry = entry("f", 5, (1, 2));
        change(&mut entry);
        shape(&[live(entry, &schema)], &facts(MergeEngine::Deduplicate, false))[0].0
    };
    assert_eq!(class(&|_| {}), SectionClass::Raw);
    assert_eq!(class(&|e| e.file.delete_row_count = None), SectionClass::KindOnly);
    assert_eq!(class(&|e| e.file.delete_row_count = Some(1)), SectionClass::KindOnly);
    assert_eq!(class(&|e| e.file.file_source = Some(FileSource::Append)), SectionClass::KindOnly);
    assert_eq!(class(&|e| e.file.file_source = None), SectionClass::KindOnly);
    for below in 0..5 {
        assert_eq!(class(&|e| e.file.level = below), SectionClass::KindOnly, "level {below}");
    }
    assert_eq!(class(&|e| e.file.level = 6), SectionClass::Raw, "from when there were more levels");
}

#[test]
fn the_top_level_is_that_of_the_table_and_that_of_the_time_of_writing() {
    let class = |levels: &[(&str, &str)], top: i32, level: i32| {
        let schema = Arc::new(keyed_schema(levels));
        let facts = MergeFacts { top, ..facts(MergeEngine::Deduplicate, false) };
        shape(&[live(entry("f", level, (1, 2)), &schema)], &facts)[0].0
    };
    // fewer levels now: what was compacted into the middle then may hold deletes
    assert_eq!(class(&[], 3, 3), SectionClass::KindOnly);
    assert_eq!(class(&[("num-levels", "4")], 3, 3), SectionClass::Raw);
    assert_eq!(class(&[("num-sorted-run.compaction-trigger", "3")], 3, 3), SectionClass::Raw);
    // more levels now
    assert_eq!(class(&[("num-levels", "4")], 5, 3), SectionClass::KindOnly);
    // one level only: level 0 is no compaction's
    assert_eq!(class(&[("num-levels", "1")], 0, 0), SectionClass::KindOnly);
}

#[test]
fn audit_reads_the_kind_of_every_row() {
    let schema = Arc::new(keyed_schema(&[]));
    let mut facts = facts(MergeEngine::Deduplicate, false);
    facts.with_kinds = true;
    assert_eq!(shape(&[live(entry("f", 5, (1, 2)), &schema)], &facts)[0].0, SectionClass::KindOnly);
}

#[test]
fn b006_vectors_switched_on_over_levels_that_share_keys_do_not_make_them_raw() {
    let before = Arc::new(keyed_schema(&[]));
    let after = Arc::new(keyed_schema(&[("deletion-vectors.enabled", "true")]));
    let facts = facts(MergeEngine::Deduplicate, true);
    let levels = |one: &Arc<TableSchema>, other: &Arc<TableSchema>| {
        [live(entry("five", 5, (1, 9)), one), live(entry("four", 4, (5, 20)), other)]
    };
    // raw but for the kinds: only what was compacted to the top holds no deletes for certain
    assert_eq!(shape(&levels(&after, &after), &facts)[0].0, SectionClass::KindOnly);
    assert_eq!(shape(&levels(&before, &after), &facts)[0].0, SectionClass::Select);
    assert_eq!(shape(&levels(&after, &before), &facts)[0].0, SectionClass::Select);
    assert_eq!(shape(&levels(&before, &before), &facts)[0].0, SectionClass::Select);
    // and level 0 from before stays visible, while level 0 from after waits for its compaction
    assert!(facts.hides_level_0(&before).is_none());
    assert!(facts.hides_level_0(&after).is_some());
}

#[test]
fn vectors_with_level_0_merged_on_read_merge() {
    let schema = Arc::new(keyed_schema(&[("deletion-vectors.enabled", "true")]));
    let mut facts = facts(MergeEngine::PartialUpdate, true);
    facts.merge_on_read = true;
    assert!(facts.hides_level_0(&schema).is_none());
    let files = [live(entry("five", 5, (1, 9)), &schema), live(entry("zero", 0, (5, 20)), &schema)];
    assert_eq!(shape(&files, &facts)[0].0, SectionClass::Combine);
}

#[test]
fn first_row_levels_are_not_merged_and_level_0_is_hidden() {
    let schema = Arc::new(keyed_schema(&[("merge-engine", "first-row")]));
    let before = Arc::new(keyed_schema(&[]));
    let facts = facts(MergeEngine::FirstRow, false);
    assert!(facts.hides_level_0(&schema).is_some());
    let levels = |one: &Arc<TableSchema>, other: &Arc<TableSchema>| {
        [live(entry("five", 5, (1, 9)), one), live(entry("four", 4, (5, 20)), other)]
    };
    assert_eq!(shape(&levels(&schema, &schema), &facts)[0].0, SectionClass::KindOnly);
    // levels that another engine left share keys
    assert_eq!(shape(&levels(&before, &schema), &facts)[0].0, SectionClass::Select);
    assert_eq!(shape(&levels(&schema, &before), &facts)[0].0, SectionClass::Select);
    // what another engine compacted to the top holds each key once all the same
    assert_eq!(shape(&levels(&before, &before)[..1], &facts)[0].0, SectionClass::Raw);
}

#[test]
fn files_not_sorted_by_key_are_refused_where_they_would_merge() {
    let schema = Arc::new(keyed_schema(&[]));
    let mut facts = facts(MergeEngine::Deduplicate, false);
    facts.clustered = true;
    let files = [live(entry("five", 5, (1, 9)), &schema), live(entry("four", 4, (5, 20)), &schema)];
    let error = cut(&[0, 1], &files, &facts).unwrap_err();
    assert_eq!(error.code(), "ClusteredMerge");
    assert_eq!(cut(&[0], &files, &facts).unwrap()[0].class, SectionClass::Raw);
}

#[test]
fn b062_two_files_with_the_same_largest_sequence_number_are_both_there() {
    let schema = Arc::new(keyed_schema(&[]));
    let twins = [entry("a", 0, (1, 5)), entry("b", 0, (6, 9))];
    assert_eq!(twins[0].file.max_sequence_number, twins[1].file.max_sequence_number);
    let files: Vec<Live> = twins.into_iter().map(|entry| live(entry, &schema)).collect();
    let found = shape(&files, &facts(MergeEngine::Deduplicate, false));
    assert_eq!(found.iter().flat_map(|(_, runs)| runs.iter().flatten()).count(), 2);
    // neighbours read in the same way become one section, all files kept, in key order
    let joined = join_neighbours(cut(&[1, 0], &files, &facts(MergeEngine::Deduplicate, false)).unwrap());
    assert_eq!(joined.len(), 1);
    assert_eq!(joined[0].runs, [vec![0, 1]]);
}

#[test]
fn files_are_folded_by_identity_whatever_the_order() {
    let named = |name: &str, level: i32, kind: FileKind| {
        let mut entry = entry(name, level, (1, 2));
        entry.kind = kind;
        Arc::new(entry)
    };
    let delete_first = Arc::from(vec![named("a", 0, FileKind::Delete), named("b", 0, FileKind::Add)]);
    let add_later = Arc::from(vec![named("a", 0, FileKind::Add), named("a", 5, FileKind::Add)]);
    let live: Vec<(String, i32)> =
        fold(&[delete_first, add_later]).iter().map(|entry| (entry.file.file_name.clone(), entry.file.level)).collect();
    // the level is part of the identity: the upgraded file stays
    assert_eq!(live, [("b".to_string(), 0), ("a".to_string(), 5)]);
    let mut elsewhere = entry("c", 0, (1, 2));
    elsewhere.bucket = Bucket(7);
    let same_name: Arc<[Arc<ManifestEntry>]> = Arc::from(vec![named("c", 0, FileKind::Delete), Arc::new(elsewhere)]);
    assert_eq!(fold(&[same_name]).len(), 1, "a file of another bucket has the same name");
    let twice: Arc<[Arc<ManifestEntry>]> = Arc::from(vec![named("d", 0, FileKind::Add), named("d", 0, FileKind::Add)]);
    assert_eq!(fold(&[twice]).len(), 2, "added twice is read twice");
}

fn bucket_table(types: &[DataType], keys: &[&str]) -> (TableSchema, CoreOptions) {
    let names = ["a", "b", "c"];
    let fields = types.iter().enumerate().map(|(i, t)| field(i as i32, names[i], t.clone())).collect();
    let pairs = [("bucket", "4"), ("bucket-key", &keys.join(","))];
    let mut schema = schema(0, fields);
    schema.options = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let options = options(&pairs);
    (schema, options)
}

/// Buckets that a filter leaves, None when it leaves all.
fn buckets(schema: &TableSchema, options: &CoreOptions, filter: &Expr, total: i32) -> Option<Vec<i32>> {
    let key = BucketKey::try_new(schema, options).unwrap()?;
    let condition = Filters::try_new(std::slice::from_ref(filter), schema).unwrap().on_rows();
    let keys = key.keys(&condition, &|_| None)?;
    Some(key.buckets(&keys, total).unwrap()?.into_iter().collect())
}

fn bucket(values: &[Datum], types: &[DataType], total: i32) -> i32 {
    let types: Vec<&DataType> = types.iter().collect();
    bucket_of(BucketFunction::Default, values, &types, total).unwrap().unwrap()
}

#[test]
fn b053_every_key_is_found_in_its_bucket_negative_hashes_too() {
    let (schema, options) = bucket_table(&[DataType::Int], &["a"]);
    for key in -1000..=1000 {
        let found = buckets(&schema, &options, &col("a").eq(lit(key)), 4);
        assert_eq!(found, Some(vec![bucket(&[Datum::Int(key)], &[DataType::Int], 4)]), "key {key}");
    }
    let list = (-400..400).map(lit).collect();
    let all = buckets(&schema, &options, &Expr::InList(InList::new(Box::new(col("a")), list, false)), 4);
    assert_eq!(all, Some(vec![0, 1, 2, 3]));
    let long = (0..1001).map(lit).collect();
    let too_many = buckets(&schema, &options, &Expr::InList(InList::new(Box::new(col("a")), long, false)), 4);
    assert_eq!(too_many, None, "more than a thousand keys are not hashed");
}

#[test]
fn b053_the_functions_mod_and_hive_prune_by_their_own_hash_and_an_unknown_one_by_none() {
    let (schema, _) = bucket_table(&[DataType::Int], &["a"]);
    let of = |function: &str| {
        let mut schema = schema.clone();
        schema.options.insert("bucket-function.type".into(), function.into());
        let pairs: Vec<(&str, &str)> = schema.options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let options = options(&pairs);
        (schema, options)
    };
    for key in -1000..=1000i32 {
        let filter = col("a").eq(lit(key));
        let (schema, options) = of("mod");
        assert_eq!(buckets(&schema, &options, &filter, 4), Some(vec![key.rem_euclid(4)]), "mod of {key}");
        let (schema, options) = of("hive");
        assert_eq!(buckets(&schema, &options, &filter, 4), Some(vec![(key & i32::MAX) % 4]), "hive of {key}");
        let (schema, options) = of("later");
        assert_eq!(buckets(&schema, &options, &filter, 4), None, "{key}");
    }
}

#[test]
fn b054_the_bucket_count_is_the_entrys_own() {
    let (schema, options) = bucket_table(&[DataType::Int], &["a"]);
    let filter = col("a").eq(lit(7));
    for total in [1, 2, 3, 10] {
        let expected = bucket(&[Datum::Int(7)], &[DataType::Int], total);
        assert_eq!(buckets(&schema, &options, &filter, total), Some(vec![expected]));
    }
    assert_eq!(buckets(&schema, &options, &filter, -1), None, "no count, no pruning");
}

#[test]
fn b057_the_literal_is_hashed_in_the_columns_own_type() {
    let millis = ScalarValue::TimestampMillisecond(Some(1_704_164_645_678), None);
    let micros = ScalarValue::TimestampMicrosecond(Some(1_704_164_645_678_000), None);
    let cents = |unscaled: i128, p: u8| ScalarValue::Decimal128(Some(unscaled), p, 2);
    let moment = Datum::Timestamp(1_704_164_645_678, 0);
    let cases: Vec<(DataType, Expr, Datum)> = vec![
        (DataType::Timestamp(3), lit(millis), moment.clone()),
        (DataType::Timestamp(6), lit(micros), moment),
        (DataType::Decimal(10, 2), lit(cents(150, 10)), Datum::Decimal(150, 10, 2)),
        (DataType::Decimal(38, 2), lit(cents(150, 38)), Datum::Decimal(150, 38, 2)),
        (DataType::BigInt, lit(-1i64), Datum::BigInt(-1)),
        // an INT literal against BIGINT: the upper half of the slot differs
        (DataType::BigInt, lit(-1i32), Datum::BigInt(-1)),
        (DataType::Int, lit(-1i64), Datum::Int(-1)),
        (TEXT, lit("abcdefgh"), Datum::String("abcdefgh".into())),
    ];
    for (data_type, literal, value) in cases {
        let (schema, options) = bucket_table(std::slice::from_ref(&data_type), &["a"]);
        let expected = bucket(&[value], std::slice::from_ref(&data_type), 97);
        assert_eq!(buckets(&schema, &options, &col("a").eq(literal), 97), Some(vec![expected]), "{data_type:?}");
    }
    // CHAR may have been hashed with its blanks: all forms are wanted
    let (schema, options) = bucket_table(&[DataType::Char(4)], &["a"]);
    let found = buckets(&schema, &options, &col("a").eq(lit("c1")), 97).unwrap();
    for stored in ["c1", "c1 ", "c1  "] {
        assert!(found.contains(&bucket(&[Datum::String(stored.into())], &[DataType::Char(4)], 97)), "{stored:?}");
    }
    // a cast that keeps values apart is undone exactly; one that does not, or a literal between, prunes nothing
    let (schema, options) = bucket_table(&[DataType::Int], &["a"]);
    let cast = |to| Expr::Cast(Cast::new(Box::new(col("a")), to));
    let wide = cast(arrow::datatypes::DataType::Int64).eq(lit(5i64));
    assert_eq!(buckets(&schema, &options, &wide, 97), Some(vec![bucket(&[Datum::Int(5)], &[DataType::Int], 97)]));
    let double = cast(arrow::datatypes::DataType::Float64).eq(lit(5.0));
    assert_eq!(buckets(&schema, &options, &double, 97), None);
    let between = cast(arrow::datatypes::DataType::Decimal128(12, 1)).eq(lit(ScalarValue::Decimal128(Some(55), 12, 1)));
    assert_eq!(buckets(&schema, &options, &between, 97), None);
}

#[test]
fn b058_a_bucket_key_bound_in_part_prunes_nothing() {
    let types = [DataType::Int, DataType::Int];
    let (schema, options) = bucket_table(&types, &["a", "b"]);
    let hash = |a, b| bucket(&[a, b], &types, 97);
    assert_eq!(buckets(&schema, &options, &col("a").eq(lit(1)), 97), None);
    assert_eq!(buckets(&schema, &options, &col("a").eq(lit(1)).or(col("b").eq(lit(2))), 97), None);
    let list = Expr::InList(InList::new(Box::new(col("b")), vec![lit(2), lit(3)], false));
    let mut expected = vec![hash(Datum::Int(1), Datum::Int(2)), hash(Datum::Int(1), Datum::Int(3))];
    expected.sort_unstable();
    assert_eq!(buckets(&schema, &options, &col("a").eq(lit(1)).and(list), 97), Some(expected));
    let null = col("a").eq(lit(1)).and(col("b").is_null());
    assert_eq!(buckets(&schema, &options, &null, 97), Some(vec![hash(Datum::Int(1), Datum::Null)]));
    // pairs: the product of what each column may be, never less than the pairs
    let pairs = col("a").eq(lit(1)).and(col("b").eq(lit(2))).or(col("a").eq(lit(3)).and(col("b").eq(lit(4))));
    let found = buckets(&schema, &options, &pairs, 97).unwrap();
    assert!(found.contains(&hash(Datum::Int(1), Datum::Int(2))) && found.contains(&hash(Datum::Int(3), Datum::Int(4))));
    // the key's own order, not the schema's
    let (schema, options) = bucket_table(&types, &["b", "a"]);
    let both = col("a").eq(lit(1)).and(col("b").eq(lit(2)));
    assert_eq!(buckets(&schema, &options, &both, 97), Some(vec![hash(Datum::Int(2), Datum::Int(1))]));
}

#[test]
fn b039_a_filter_that_mixes_partition_and_file_columns_is_no_partition_filter() {
    let mut schema = schema(0, vec![field(0, "id", DataType::Int), field(1, "pt", TEXT)]);
    schema.partition_keys = vec!["pt".to_string()];
    let reach = |filter: Expr| Filters::try_new(&[filter], &schema).unwrap().conjuncts[0].reach;
    assert_eq!(reach(col("pt").eq(lit("a"))), Reach::Partition);
    assert_eq!(reach(col("pt").not_eq(lit("a"))), Reach::Partition);
    assert_eq!(reach(col("pt").eq(lit("a")).or(col("id").eq(lit(1)))), Reach::Value);
    assert_eq!(reach(col("pt").eq(col("id"))), Reach::Value);
    let exact = |filter: Expr| super::exact_filters(&[&filter], &schema).unwrap()[0];
    assert!(exact(col("pt").eq(lit("a")).and(col("pt").is_not_null())));
    assert!(!exact(col("pt").eq(lit("a")).and(col("id").eq(lit(1)))));
    assert!(!exact(datafusion::functions::math::random().call(vec![]).gt(lit(0.5))), "volatile");
}

#[test]
fn b048_a_pattern_with_an_escape_is_no_prefix() {
    let schema = schema(0, vec![field(0, "s", TEXT)]);
    let condition = |filter: Expr| Conditions::try_new(&schema).unwrap().of(&filter);
    assert_eq!(condition(col("s").like(lit("a\\%"))), Condition::Unknown);
    assert_eq!(condition(col("s").ilike(lit("abc%"))), Condition::Unknown);
    assert_eq!(condition(col("s").not_like(lit("abc%"))), Condition::Unknown);
    assert_eq!(condition(col("s").like(lit("%abc"))), Condition::Unknown);
    assert!(matches!(condition(col("s").like(lit("a_c"))), Condition::And(bounds) if bounds.len() == 2));
}

#[test]
fn b052_a_literal_that_is_no_value_of_the_column_decides_nothing() {
    let schema = schema(0, vec![field(0, "id", DataType::Int)]);
    let condition = |filter: Expr| Conditions::try_new(&schema).unwrap().of(&filter);
    assert_eq!(condition(col("id").eq(lit("abc"))), Condition::Unknown);
    assert_eq!(condition(col("id").eq(lit(5.5))), Condition::Unknown);
    assert_eq!(condition(col("id").gt(lit(99_999_999_999i64))), Condition::Unknown);
    assert_eq!(condition(col("id").eq(lit(ScalarValue::Int32(None)))), Condition::Never);
}

#[test]
fn parts_of_a_row_in_several_files_are_refused_and_whole_rows_are_read() {
    let schema = Arc::new(schema(0, vec![field(0, "id", DataType::Int)]));
    let spread = |first: i64, rows: i64, name: &str| {
        let mut file = file(name, rows);
        file.first_row_id = Some(first);
        let entry = ManifestEntry {
            kind: FileKind::Add,
            partition: BinaryRow::empty(),
            bucket: Bucket(0),
            total_buckets: -1,
            file,
        };
        let mut live = Live::new(Arc::new(entry), 0, None);
        live.schema = Some(Arc::clone(&schema));
        live
    };
    let options = crate::spec::CoreOptions::parse(&schema.options).unwrap();
    let under = |files: &[Live], columns: Option<&std::collections::BTreeSet<usize>>, options| {
        let wanted = super::evolution::Wanted { schema: &schema, options, columns };
        let mut files = files.to_vec();
        let kept = super::evolution::check(&mut files, &wanted).map_err(|error| error.code());
        kept.map(|()| files.iter().filter(|file| file.is_kept()).count())
    };
    let reading = |files: &[Live], columns: Option<&_>| under(files, columns, &options);
    let check = |files: &[Live]| reading(files, None).map(|_| ());
    assert_eq!(check(&[spread(0, 10, "a.parquet"), spread(10, 5, "b.parquet")]), Ok(()));
    assert_eq!(check(&[spread(0, 10, "a.parquet"), spread(0, 10, "b.parquet")]), Err("RowIdsOverlap"));
    assert_eq!(check(&[spread(5, 10, "a.parquet"), spread(0, 6, "b.parquet")]), Err("RowIdsOverlap"));
    // where columns may be kept apart, that is what it is, in whatever letters the option is set
    let set = [("data-evolution.enabled".to_string(), " TRUE".to_string())];
    let apart = crate::spec::CoreOptions::parse(&set.into_iter().collect()).unwrap();
    let twice = [spread(0, 10, "a.parquet"), spread(0, 10, "b.parquet")];
    assert_eq!(under(&twice, None, &apart), Err("DataEvolution"));
    assert_eq!(check(&[spread(0, 10, "a.blob")]), Err("ColumnFile"));
    // a file of one column is left out when that column is not read, and only beside the file of the other columns
    let column = |first: i64, rows: i64, name: &str, of: &[&str]| {
        let mut live = spread(first, rows, name);
        let mut entry = ManifestEntry::clone(&live.entry);
        entry.file.write_cols = Some(of.iter().map(|name| (*name).to_string()).collect());
        live.entry = Arc::new(entry);
        live
    };
    let files = [spread(0, 10, "a.parquet"), column(0, 10, "b.parquet", &["id"])];
    assert_eq!(check(&files), Err("DataEvolution"));
    let (none, id) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::from([0]));
    let plain = spread(0, 10, "a.parquet");
    for name in ["b.blob", "b.vector.parquet"] {
        let files = [plain.clone(), column(0, 4, name, &["id"]), column(4, 6, name, &["id"])];
        assert_eq!(reading(&files, Some(&none)), Ok(1), "{name}");
        assert_eq!(reading(&files, Some(&id)), Err("ColumnFile"), "{name}");
        assert_eq!(reading(&files, None), Err("ColumnFile"), "{name}");
    }
    let unknown = [plain.clone(), column(0, 10, "b.blob", &["gone"])];
    assert_eq!(reading(&unknown, Some(&none)), Err("ColumnFile"), "a column nobody knows");
    let more = [plain, column(5, 10, "b.blob", &["id"])];
    assert_eq!(reading(&more, Some(&none)), Err("ColumnFile"), "rows of no other file");
}
