//! Plans of small tables made for one question each.

mod statistics;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, col, lit};
use serde_json::{Value, json};

use super::{ChangeRange, CommonFiles, ScanEnv, ScanKind, ScanPlan, ScanRequest, SectionClass, plan};
use crate::error::Result;
use crate::snapshot::{Pin, PinRequest, Table, TableIdent};
use crate::spec::index_manifest::{decode_index_manifest, encode_index_manifest};
use crate::spec::manifest::encode_manifest_list;
use crate::spec::{Datum, Snapshot, SnapshotId};
use crate::storage::Storage;
use crate::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};

struct Fixture {
    _dir: tempfile::TempDir,
    warehouse: PathBuf,
    table: TableBuilder,
}

impl Fixture {
    fn new(spec: TableSpec) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let warehouse = dir.path().to_path_buf();
        let table = TableBuilder::create(&warehouse, "db", "t", &spec).unwrap();
        Self { _dir: dir, warehouse, table }
    }

    fn keyed(options: &[(&str, &str)]) -> Self {
        let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
        Self::new(options.iter().fold(spec, |spec, (key, value)| spec.option(key, value)))
    }

    async fn table(&self) -> Arc<Table> {
        let (storage, root) = Storage::open(self.warehouse.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
        Table::new(TableIdent::new("db", "t"), storage, root.join("db.db/t").unwrap()).unwrap()
    }

    async fn pin(&self, request: PinRequest) -> Arc<Pin> {
        Pin::resolve(&self.table().await, request, &BTreeMap::new()).await.unwrap()
    }

    async fn plan(&self, request: ScanRequest) -> ScanPlan {
        self.try_plan(request).await.unwrap()
    }

    async fn try_plan(&self, request: ScanRequest) -> Result<ScanPlan> {
        plan(&self.pin(PinRequest::Latest).await, &request, &ScanEnv::default()).await
    }

    async fn filtered(&self, filter: Expr) -> ScanPlan {
        self.plan(ScanRequest { filters: vec![filter], explain: true, ..ScanRequest::default() }).await
    }

    fn names(&self) -> Vec<String> {
        self.table.live_files().unwrap().into_iter().map(|entry| entry.file.file_name).collect()
    }
}

fn count(plan: &ScanPlan) -> usize {
    plan.files().count()
}

fn classes(plan: &ScanPlan) -> Vec<SectionClass> {
    plan.sections().map(|(_, section)| section.class).collect()
}

fn one_of(column: &str, list: Vec<Expr>, negated: bool) -> Expr {
    Expr::InList(InList::new(Box::new(col(column)), list, negated))
}

#[tokio::test]
async fn b004_a_filter_on_values_drops_no_file_that_replaces_another() {
    let mut fixture = Fixture::keyed(&[]);
    fixture.table.append(&[json!({"id": 1, "v": 10})]).unwrap();
    fixture.table.append(&[json!({"id": 1, "v": 20})]).unwrap();
    for filter in [
        col("v").eq(lit(10)),
        col("v").not_eq(lit(20)),
        col("v").lt(lit(15)),
        one_of("v", vec![lit(9), lit(10)], false),
        col("v").is_not_null().and(col("v").lt(lit(11))),
    ] {
        let plan = fixture.filtered(filter.clone()).await;
        assert_eq!((count(&plan), classes(&plan)), (2, vec![SectionClass::Select]), "{filter}");
    }
    // no version of any key can meet it: all go together
    let plan = fixture.filtered(col("v").gt(lit(100))).await;
    assert_eq!((count(&plan), plan.stages.by_value), (0, 2));
    // a key filter drops single files, for all versions of a key share it
    fixture.table.append(&[json!({"id": 7, "v": 10})]).unwrap();
    let plan = fixture.filtered(col("id").eq(lit(7))).await;
    assert_eq!((count(&plan), plan.stages.by_key), (1, 2));
    // a file alone with its keys may be judged alone
    let plan = fixture.filtered(col("v").eq(lit(20))).await;
    assert_eq!((count(&plan), plan.stages.by_value), (2, 1));
    // a key and a value in one condition make it one on values
    let mixed = col("id").eq(lit(7)).or(col("v").eq(lit(10)));
    assert_eq!(count(&fixture.filtered(mixed).await), 3);
}

#[tokio::test]
async fn b005_combined_values_are_in_no_file() {
    for (engine, class) in [("aggregation", SectionClass::Combine), ("partial-update", SectionClass::Combine)] {
        let mut fixture =
            Fixture::keyed(&[("merge-engine", engine), ("fields.default-aggregate-function", "last_non_null_value")]);
        fixture.table.append(&[json!({"id": 1, "v": 1}), json!({"id": 2, "v": 1})]).unwrap();
        fixture.table.append(&[json!({"id": 1, "v": 2})]).unwrap();
        let plan = fixture.filtered(col("v").eq(lit(3))).await;
        assert_eq!((count(&plan), classes(&plan)), (2, vec![class]), "{engine}");
        assert_eq!(plan.exact_row_count, None);
    }
}

#[tokio::test]
async fn b006_switching_vectors_on_later_never_makes_two_rows_of_a_key_raw() {
    let mut fixture = Fixture::keyed(&[]);
    for version in 1..=5 {
        let rows = [json!({"id": 1, "v": version}), json!({"id": 2, "v": 2})];
        let level = if version <= 2 { 6 - version } else { 0 };
        fixture.table.commit().file(FileSpec::rows(&rows).level(level)).publish().unwrap();
    }
    fixture.table.alter(&SchemaChange::Set("deletion-vectors.enabled", "true")).unwrap();
    let plan = fixture.plan(ScanRequest::default()).await;
    assert_eq!((count(&plan), classes(&plan)), (5, vec![SectionClass::Select]));
    assert!(plan.notices.iter().all(|notice| !notice.contains("level 0")), "{:?}", plan.notices);
    // what comes to level 0 now is hidden until it is compacted, and the plan says so
    fixture.table.append(&[json!({"id": 1, "v": 6}), json!({"id": 3, "v": 6})]).unwrap();
    let plan = fixture.plan(ScanRequest::default()).await;
    assert_eq!(count(&plan), 5);
    assert!(plan.notices.iter().any(|notice| notice.ends_with(": 1 file, 2 rows not read")), "{:?}", plan.notices);
}

#[tokio::test]
async fn b007_changes_of_a_table_with_vectors_are_those_of_level_0() {
    let mut fixture = Fixture::keyed(&[("deletion-vectors.enabled", "true")]);
    fixture.table.append(&[json!({"id": 1, "v": 1}), json!({"id": 2, "v": 1})]).unwrap();
    fixture.table.append(&[json!({"id": 1, "v": 2}), json!({"id": 3, "v": 1})]).unwrap();
    assert_eq!(count(&fixture.plan(ScanRequest::default()).await), 0, "hidden by design");
    let range = |after, upto| ChangeRange { after: SnapshotId(after), upto: SnapshotId(upto) };
    let kind = ScanKind::Delta(range(0, 2));
    let plan = fixture.plan(ScanRequest { kind, ..ScanRequest::default() }).await;
    assert_eq!(plan.files().map(|file| file.physical_rows()).sum::<u64>(), 4);
    assert_eq!(plan.files().map(|file| file.snapshot.unwrap().0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(classes(&plan), [SectionClass::KindOnly]);
    // the start is exclusive; a filter on values drops no change
    let request = ScanRequest {
        kind: ScanKind::Delta(range(1, 2)),
        filters: vec![col("v").gt(lit(100))],
        ..ScanRequest::default()
    };
    assert_eq!(count(&fixture.plan(request).await), 1);
    let at = |after, upto| ScanRequest { kind: ScanKind::Delta(range(after, upto)), ..ScanRequest::default() };
    assert_eq!(count(&fixture.plan(at(2, 2)).await), 0);
    assert_eq!(fixture.try_plan(at(2, 1)).await.unwrap_err().code(), "ChangeRange");
    assert_eq!(fixture.try_plan(at(1, 3)).await.unwrap_err().code(), "ChangeRange");
}

fn append_table() -> Fixture {
    Fixture::new(TableSpec::new(&[("id", "INT"), ("v", "INT")]))
}

#[tokio::test]
async fn b009_a_limit_counts_the_rows_that_are_left() {
    let mut fixture = append_table();
    for id in 1..=3 {
        fixture.table.append(&[json!({"id": id, "v": 1})]).unwrap();
    }
    let first = fixture.names()[0].clone();
    fixture.table.commit().delete_positions(&first, &[0]).publish().unwrap();
    for limit in 1..=4 {
        let plan = fixture.plan(ScanRequest { limit: Some(limit), ..ScanRequest::default() }).await;
        let rows: u64 = plan.files().map(|file| file.rows_after_vector().unwrap()).sum();
        assert_eq!(rows, (limit as u64).min(2), "limit {limit}");
    }
    // with a filter that is left to the rows, none may be dropped
    let request = ScanRequest { limit: Some(1), filters: vec![col("v").gt(lit(0))], ..ScanRequest::default() };
    assert_eq!(count(&fixture.plan(request).await), 2);
}

#[tokio::test]
async fn b010_a_limit_drops_nothing_unless_known_rows_reach_it() {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "4");
    let mut fixture = Fixture::new(spec);
    let rows = |ids: std::ops::Range<i32>| ids.map(|id| json!({"id": id, "v": id})).collect::<Vec<Value>>();
    let mut commit = fixture.table.commit();
    for bucket in 0..2 {
        commit = commit.file(FileSpec::rows(&rows(bucket * 10..bucket * 10 + 3)).level(5).bucket(bucket));
    }
    for bucket in 2..4 {
        commit = commit
            .file(FileSpec::rows(&rows(bucket * 10..bucket * 10 + 4)).bucket(bucket))
            .file(FileSpec::rows(&rows(bucket * 10 + 2..bucket * 10 + 6)).bucket(bucket));
    }
    commit.publish().unwrap();
    for limit in 1..=20usize {
        let plan = fixture.plan(ScanRequest { limit: Some(limit), ..ScanRequest::default() }).await;
        let known: u64 = plan.sections().filter_map(|(_, section)| section.exact_rows()).sum();
        if limit <= 6 {
            assert!(known >= limit as u64, "limit {limit}: {known} rows known");
            assert!(plan.stages.by_limit > 0);
        } else {
            assert_eq!((count(&plan), plan.stages.by_limit), (6, 0), "limit {limit}");
        }
    }
    let request = ScanRequest { limit: Some(1), filters: vec![col("v").gt_eq(lit(0))], ..ScanRequest::default() };
    assert_eq!(fixture.plan(request).await.stages.by_limit, 0);
}

#[tokio::test]
async fn b011_a_count_needs_the_size_of_every_vector() {
    let mut fixture = append_table();
    fixture.table.append(&(1..=3).map(|id| json!({"id": id, "v": 1})).collect::<Vec<_>>()).unwrap();
    assert_eq!(fixture.plan(ScanRequest::default()).await.exact_row_count, Some(3));
    let file = fixture.names()[0].clone();
    let snapshot = fixture.table.commit().delete_positions(&file, &[1]).publish().unwrap();
    let name = fixture.table.root().join("manifest").join(snapshot.index_manifest.unwrap());
    let mut index = decode_index_manifest(&std::fs::read(&name).unwrap(), "index").unwrap();
    for (cardinality, count) in [(Some(1), Some(2)), (None, None)] {
        index[0].deletion_vectors.as_mut().unwrap()[0].cardinality = cardinality;
        std::fs::write(&name, encode_index_manifest(&index).unwrap()).unwrap();
        let plan = fixture.plan(ScanRequest::default()).await;
        assert_eq!((self::count(&plan), plan.exact_row_count), (1, count));
    }
}

#[tokio::test]
async fn b012_counts_are_exact_only_without_filters_on_rows() {
    let spec = TableSpec::new(&[("v", "INT"), ("dt", "STRING")]).partitioned_by(&["dt"]);
    let mut fixture = Fixture::new(spec);
    let rows = ["a", "a", "b"].iter().enumerate().map(|(v, dt)| json!({"v": v * 10, "dt": dt})).collect::<Vec<_>>();
    fixture.table.append(&rows).unwrap();
    let plan = fixture.filtered(col("dt").eq(lit("a"))).await;
    assert_eq!((plan.exact_row_count, plan.exact_filters.clone()), (Some(2), vec![true]));
    let filters = vec![col("dt").eq(lit("a")), col("v").gt(lit(0))];
    let both = fixture.plan(ScanRequest { filters, ..ScanRequest::default() }).await;
    assert_eq!((both.exact_row_count, both.exact_filters), (None, vec![true, false]));
    let joined = fixture.filtered(col("dt").eq(lit("a")).and(col("v").gt(lit(0)))).await;
    assert_eq!((joined.exact_row_count, joined.exact_filters), (None, vec![false]));
}

#[tokio::test]
async fn a_comparison_reads_files_whose_vectors_changed() {
    let options = [("deletion-vectors.enabled", "true")];
    for mut fixture in [append_table(), Fixture::keyed(&options)] {
        let rows: Vec<Value> = (1..=3).map(|id| json!({"id": id, "v": 1})).collect();
        fixture.table.commit().file(FileSpec::rows(&rows).level(5)).publish().unwrap();
        let file = fixture.names()[0].clone();
        fixture.table.commit().delete_positions(&file, &[1]).publish().unwrap();
        fixture.table.commit().user("nothing").publish().unwrap();
        assert_eq!(common(&fixture, 1, 2).await.len(), 0, "the vector is on one side only");
        assert_eq!(common(&fixture, 2, 3).await.len(), 1);
    }
}

#[tokio::test]
async fn the_changelog_of_an_overwrite_is_left_out() {
    let mut fixture = Fixture::keyed(&[("changelog-producer", "input")]);
    fixture.table.append(&[json!({"id": 1, "v": 1})]).unwrap();
    let snapshot = fixture.table.append(&[json!({"id": 2, "v": 1})]).unwrap();
    let path = fixture.table.root().join("snapshot/snapshot-2");
    let range = ChangeRange { after: SnapshotId(0), upto: SnapshotId(2) };
    for (kind, files) in [("APPEND", 1), ("COMPACT", 1), ("OVERWRITE", 0)] {
        let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        json["commitKind"] = kind.into();
        json["changelogManifestList"] = snapshot.delta_manifest_list.as_str().into();
        json["changelogRecordCount"] = 1.into();
        std::fs::write(&path, json.to_string()).unwrap();
        let request = ScanRequest { kind: ScanKind::Changelog(range), ..ScanRequest::default() };
        assert_eq!(count(&fixture.plan(request).await), files, "{kind}");
    }
}

#[tokio::test]
async fn b014_statistics_are_those_of_the_snapshot_read() {
    let mut fixture = append_table();
    fixture.table.append(&[json!({"id": 1, "v": null}), json!({"id": 2, "v": 1})]).unwrap();
    fixture.table.commit().remove_all().file(FileSpec::rows(&[json!({"id": 2, "v": 1})])).publish().unwrap();
    let env = ScanEnv::default();
    let request = ScanRequest { filters: vec![col("v").is_null()], ..ScanRequest::default() };
    for (snapshot, files) in [(2, 0), (1, 1), (2, 0)] {
        let pin = fixture.pin(PinRequest::SnapshotId(snapshot)).await;
        assert_eq!(count(&plan(&pin, &request, &env).await.unwrap()), files, "snapshot {snapshot}");
        let whole = plan(&pin, &ScanRequest::default(), &env).await.unwrap();
        assert_eq!(whole.exact_row_count, Some(if snapshot == 1 { 2 } else { 1 }));
    }
}

#[tokio::test]
async fn b033_the_null_partition_answers_as_sql_does() {
    for together in [true, false] {
        let mut fixture = Fixture::new(TableSpec::new(&[("id", "INT"), ("pt", "STRING")]).partitioned_by(&["pt"]));
        let rows = [json!({"id": 1, "pt": null}), json!({"id": 2, "pt": "x"}), json!({"id": 3, "pt": ""})];
        if together {
            fixture.table.append(&rows).unwrap();
        } else {
            rows.iter().for_each(|row| drop(fixture.table.append(std::slice::from_ref(row)).unwrap()));
        }
        let coalesce = datafusion::functions::expr_fn::coalesce(vec![col("pt"), lit("n")]);
        let null = lit(ScalarValue::Utf8(None));
        for (filter, expected) in [
            (col("pt").is_null(), vec![None]),
            (col("pt").is_not_null(), vec![Some(""), Some("x")]),
            (col("pt").eq(lit("x")), vec![Some("x")]),
            (col("pt").not_eq(lit("x")), vec![Some("")]),
            (one_of("pt", vec![lit("x"), null.clone()], false), vec![Some("x")]),
            (one_of("pt", vec![lit("x")], true), vec![Some("")]),
            (one_of("pt", vec![lit("x"), null], true), vec![]),
            (coalesce.eq(lit("n")), vec![None]),
        ] {
            let plan = fixture.filtered(filter.clone()).await;
            let mut found: Vec<Option<String>> = plan
                .files()
                .map(|file| match &file.partition[0] {
                    Datum::String(text) => Some(text.clone()),
                    Datum::Null => None,
                    other => panic!("{other:?}"),
                })
                .collect();
            found.sort();
            let expected: Vec<Option<String>> = expected.into_iter().map(|v| v.map(str::to_string)).collect();
            assert_eq!(found, expected, "{filter}, in one commit: {together}");
        }
    }
}

#[tokio::test]
async fn b035_date_partitions_are_found_by_value_in_both_layouts() {
    for (legacy, folder) in [("true", "dt=19723"), ("false", "dt=2024-01-01")] {
        let spec = TableSpec::new(&[("id", "INT"), ("dt", "DATE")])
            .partitioned_by(&["dt"])
            .option("partition.legacy-name", legacy);
        let mut fixture = Fixture::new(spec);
        let rows =
            [json!({"id": 1, "dt": "2024-01-01"}), json!({"id": 2, "dt": "2024-01-02"}), json!({"id": 3, "dt": null})];
        fixture.table.append(&rows).unwrap();
        let day = |day: i32| lit(ScalarValue::Date32(Some(day)));
        let plan = fixture.filtered(col("dt").eq(day(19723))).await;
        let location = plan.files().next().unwrap().location.to_string();
        assert_eq!((count(&plan), plan.exact_row_count), (1, Some(1)));
        assert!(location.contains(&format!("/{folder}/bucket-0/")), "{location}");
        let between = col("dt").between(day(19723), day(19724));
        assert_eq!(count(&fixture.filtered(between).await), 2);
        assert_eq!(count(&fixture.filtered(col("dt").is_null()).await), 1);
    }
}

#[tokio::test]
async fn b038_partition_columns_are_found_by_name_wherever_they_stand() {
    let spec = TableSpec::new(&[("id", "INT"), ("p2", "INT"), ("v", "INT"), ("p1", "STRING")]);
    let mut fixture = Fixture::new(spec.partitioned_by(&["p1", "p2"]));
    let rows: Vec<Value> =
        ["a", "b"].iter().flat_map(|p1| (0..3).map(move |p2| json!({"id": p2, "p2": p2, "v": 9, "p1": p1}))).collect();
    fixture.table.append(&rows).unwrap();
    for (filter, files) in [
        (col("p1").eq(lit("a")), 3),
        (col("p2").eq(lit(2)), 2),
        (col("p1").eq(lit("b")).and(col("p2").lt(lit(2))), 2),
        (col("p1").eq(lit("a")).or(col("p2").eq(lit(0))), 4),
        (col("p2").eq(lit(9)), 0),
        // the value of a partition column beside one of the file's
        (col("p2").eq(lit(2)).or(col("v").eq(lit(1))), 2),
        (col("p2").eq(lit(2)).or(col("v").eq(lit(9))), 6),
    ] {
        assert_eq!(count(&fixture.filtered(filter.clone()).await), files, "{filter}");
    }
}

#[tokio::test]
async fn a_partition_filter_sees_only_what_earlier_conditions_leave() {
    let mut fixture = Fixture::new(TableSpec::new(&[("id", "INT"), ("p", "INT")]).partitioned_by(&["p"]));
    fixture.table.append(&[json!({"id": 1, "p": 0}), json!({"id": 2, "p": 5})]).unwrap();
    let tenth = (lit(10) / col("p")).gt(lit(1));
    let guarded = fixture.filtered(col("p").not_eq(lit(0)).and(tenth.clone())).await;
    assert_eq!((count(&guarded), guarded.exact_row_count), (1, Some(1)));
    assert!(fixture.try_plan(ScanRequest { filters: vec![tenth], ..ScanRequest::default() }).await.is_err());
}

#[tokio::test]
async fn b042_b044_statistics_follow_the_field_through_schema_changes() {
    let spec = TableSpec::new(&[("a", "INT"), ("b", "INT"), ("c", "INT"), ("f", "DECIMAL(5, 2)")]);
    let mut fixture = Fixture::new(spec);
    fixture.table.append(&[json!({"a": 1, "b": 2, "c": 3, "f": 111.32})]).unwrap();
    fixture.table.alter(&SchemaChange::Drop("b")).unwrap();
    fixture.table.alter(&SchemaChange::Retype("f", "DECIMAL(6, 3)")).unwrap();
    fixture.table.alter(&SchemaChange::Retype("a", "BIGINT")).unwrap();
    fixture.table.alter(&SchemaChange::Add("b", "INT")).unwrap();
    let decimal = |unscaled: i128| lit(ScalarValue::Decimal128(Some(unscaled), 6, 3));
    for (filter, files) in [
        (col("c").eq(lit(3)), 1),
        (col("c").eq(lit(2)), 0),
        // the new b is another field: null in the old file, whatever the old b was
        (col("b").eq(lit(2)), 0),
        (col("b").is_null(), 1),
        (col("b").is_not_null(), 0),
        // bounds of another scale are not compared
        (col("f").lt(decimal(111_321)), 1),
        (col("f").eq(decimal(111_321)), 1),
        (col("f").not_eq(decimal(111_320)), 1),
        // a wider integer has exact bounds
        (col("a").eq(lit(1i64)), 1),
        (col("a").gt(lit(3_000_000_000i64)), 0),
    ] {
        assert_eq!(count(&fixture.filtered(filter.clone()).await), files, "{filter}");
    }
    fixture.table.alter(&SchemaChange::Retype("c", "STRING")).unwrap();
    assert_eq!(count(&fixture.filtered(col("c").eq(lit("2"))).await), 1, "text of a number has no bounds");
}

#[tokio::test]
async fn keys_of_an_older_type_meet_those_of_the_new_one() {
    let mut fixture = Fixture::keyed(&[]);
    let rows = |ids: &[i64]| ids.iter().map(|id| json!({"id": id, "v": 1})).collect::<Vec<_>>();
    fixture.table.append(&rows(&[-5, 10])).unwrap();
    fixture.table.alter(&SchemaChange::Retype("id", "BIGINT NOT NULL")).unwrap();
    fixture.table.append(&rows(&[11, 5_000_000_000])).unwrap();
    let plan = fixture.plan(ScanRequest::default()).await;
    assert_eq!(classes(&plan), [SectionClass::KindOnly], "ranges apart");
    // between the keys of the older file
    fixture.table.append(&rows(&[-6, 0])).unwrap();
    let plan = fixture.plan(ScanRequest::default()).await;
    assert_eq!(classes(&plan), [SectionClass::Select, SectionClass::KindOnly]);
    for (filter, files) in [
        (col("id").eq(lit(-5i64)), 2),
        (col("id").lt(lit(-5i64)), 1),
        (col("id").gt(lit(10i64)), 1),
        (col("id").gt(lit(4_000_000_000i64)), 1),
    ] {
        assert_eq!(count(&fixture.filtered(filter.clone()).await), files, "{filter}");
    }
}

#[tokio::test]
async fn b077_a_file_is_planned_whatever_the_options_say_of_lost_files() {
    let mut fixture = Fixture::new(TableSpec::new(&[("id", "INT")]).option("scan.ignore-lost-files", "true"));
    fixture.table.append(&[json!({"id": 1})]).unwrap();
    let location = fixture.plan(ScanRequest::default()).await.files().next().unwrap().location.to_string();
    std::fs::remove_file(&location).unwrap();
    assert_eq!(count(&fixture.plan(ScanRequest::default()).await), 1, "reading it fails, and says which file");
}

#[tokio::test]
async fn read_optimized_reads_the_top_level_only() {
    let mut fixture = Fixture::keyed(&[]);
    for level in [5, 4, 0] {
        let rows = [json!({"id": 1, "v": level}), json!({"id": 2, "v": level})];
        fixture.table.commit().file(FileSpec::rows(&rows).level(level)).publish().unwrap();
    }
    let request = ScanRequest { kind: ScanKind::ReadOptimized, ..ScanRequest::default() };
    let plan = fixture.plan(request.clone()).await;
    assert_eq!((count(&plan), classes(&plan), plan.exact_row_count), (1, vec![SectionClass::Raw], Some(2)));
    assert_eq!(plan.stages.manifests_pruned, 2, "their levels are known from the list");
    // every key is there once, so values may drop files
    let none = fixture.plan(ScanRequest { filters: vec![col("v").eq(lit(4))], ..request }).await;
    assert_eq!(count(&none), 0);
    let audit = fixture.plan(ScanRequest { kind: ScanKind::FullWithDeletes, ..ScanRequest::default() }).await;
    assert_eq!((count(&audit), classes(&audit)), (3, vec![SectionClass::Select]));
}

#[tokio::test]
async fn postponed_rows_are_hidden_and_counted() {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "-2");
    let mut fixture = Fixture::new(spec);
    let rows = [json!({"id": 1, "v": 1}), json!({"id": 2, "v": 1})];
    fixture.table.commit().file(FileSpec::rows(&rows).bucket(-2).keep_order()).publish().unwrap();
    let plan = fixture.plan(ScanRequest::default()).await;
    assert_eq!(count(&plan), 0);
    assert_eq!(plan.notices, ["the postpone bucket is hidden until it is compacted: 1 file, 2 rows not read"]);
}

#[tokio::test]
async fn manifests_are_pruned_by_partition_read_once_and_explained_in_full() {
    let mut fixture = Fixture::new(TableSpec::new(&[("id", "INT"), ("day", "INT")]).partitioned_by(&["day"]));
    for day in 0..10 {
        fixture.table.append(&[json!({"id": 1, "day": day})]).unwrap();
    }
    let pin = fixture.pin(PinRequest::Latest).await;
    let env = ScanEnv::default();
    let filters = vec![col("day").gt_eq(lit(8))];
    let request = ScanRequest { filters: filters.clone(), ..ScanRequest::default() };
    let cold = plan(&pin, &request, &env).await.unwrap();
    assert_eq!((count(&cold), cold.stages.manifests, cold.stages.manifests_pruned), (2, 10, 8));
    assert_eq!((cold.stages.files, cold.stages.manifests_cached), (2, 0));
    let warm = plan(&pin, &request, &env).await.unwrap();
    assert_eq!((count(&warm), warm.stages.manifests_cached), (2, 2));
    let explained = plan(&pin, &ScanRequest { explain: true, ..request }, &env).await.unwrap();
    assert_eq!((explained.decisions.len(), explained.stages.by_partition), (10, 8));
    assert!(explained.decisions.iter().all(|d| d.kept || d.rule.to_string() == "partition does not meet day >= 8"));
}

#[tokio::test]
async fn lists_without_sizes_prune_manifests_unless_they_could_have_been_longer() {
    let mut fixture = Fixture::new(TableSpec::new(&[("id", "INT"), ("day", "INT")]).partitioned_by(&["day"]));
    for day in 0..10 {
        fixture.table.append(&[json!({"id": 1, "day": day})]).unwrap();
    }
    let file = fixture.table.root().join("snapshot/snapshot-10");
    let mut snapshot = Snapshot::from_json(&std::fs::read(&file).unwrap()).unwrap();
    (snapshot.base_manifest_list_size, snapshot.delta_manifest_list_size) = (None, None);
    std::fs::write(&file, snapshot.to_json()).unwrap();
    let request = ScanRequest { filters: vec![col("day").lt(lit(2))], ..ScanRequest::default() };
    let found = fixture.plan(request.clone()).await;
    assert_eq!((count(&found), found.stages.manifests, found.stages.manifests_pruned), (2, 10, 8));
    // nothing behind the header: the rows of before are missing
    let list = fixture.table.root().join("manifest").join(&snapshot.base_manifest_list);
    std::fs::write(&list, encode_manifest_list(&[]).unwrap()).unwrap();
    let error = fixture.try_plan(request.clone()).await.unwrap_err();
    assert_eq!(error.code(), "ManifestIncomplete", "{error}");
    // where nobody counts rows, nobody can tell
    (snapshot.total_record_count, snapshot.delta_record_count) = (None, None);
    std::fs::write(&file, snapshot.to_json()).unwrap();
    assert_eq!(fixture.plan(request).await.stages.manifests_pruned, 1);
}

/// Twenty keys, each in a manifest of its own.
async fn twenty_keys(count: &str) -> (Fixture, Arc<Pin>) {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", count);
    let mut fixture = Fixture::new(spec);
    let whole: Vec<Value> = (0..20).map(|id| json!({"id": id, "v": id})).collect();
    for row in whole {
        fixture.table.append(&[row]).unwrap();
    }
    let pin = fixture.pin(PinRequest::Latest).await;
    (fixture, pin)
}

/// Rows by id are one bucket's: the other manifests are not even read.
#[tokio::test]
async fn manifests_are_pruned_by_the_buckets_of_the_keys_asked_for() {
    let (fixture, pin) = twenty_keys("4").await;
    let env = ScanEnv::default();
    for id in 0..20 {
        let request = ScanRequest { filters: vec![col("id").eq(lit(id))], ..ScanRequest::default() };
        let found = plan(&pin, &request, &env).await.unwrap();
        assert!(found.stages.manifests_pruned > 5, "{:?}", found.stages);
        assert_eq!(count(&found), 1, "{:?}", found.stages);
    }
    drop(fixture);
}

/// After the buckets were rescaled, a key is looked for in its bucket under the old count and under the new one: a file
/// of the old count whose removal is written down under the new one must not come back.
#[tokio::test]
async fn manifests_of_several_bucket_counts_are_pruned_by_all_of_them() {
    let (mut fixture, _) = twenty_keys("2").await;
    fixture.table.alter(&SchemaChange::Set("bucket", "8")).unwrap();
    let mut rest = fixture.table.live_files().unwrap();
    // removed one by one, in manifests of their own, with the bucket count of the day
    for entry in &mut rest {
        entry.kind = crate::spec::FileKind::Delete;
        entry.total_buckets = 8;
        fixture.table.commit().entry(entry.clone()).publish().unwrap();
    }
    fixture.table.append(&[json!({"id": 7, "v": 70})]).unwrap();
    let pin = fixture.pin(PinRequest::Latest).await;
    let env = ScanEnv::default();
    for id in 0..20 {
        let request = ScanRequest { filters: vec![col("id").eq(lit(id))], ..ScanRequest::default() };
        let found = plan(&pin, &request, &env).await.unwrap();
        assert_eq!(count(&found), usize::from(id == 7), "{id}: {:?}", found.stages);
    }
}

#[tokio::test]
async fn buckets_are_pruned_by_each_entrys_own_count() {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "2");
    let mut fixture = Fixture::new(spec);
    let rows: Vec<Value> = (0..40).map(|id| json!({"id": id, "v": 1})).collect();
    fixture.table.append(&rows).unwrap();
    fixture.table.alter(&SchemaChange::Set("bucket", "4")).unwrap();
    for id in 0..40 {
        let plan = fixture.filtered(col("id").eq(lit(id))).await;
        assert_eq!((count(&plan), plan.stages.by_bucket), (1, 1), "id {id}");
        assert_eq!(plan.units[0].total_buckets, 2);
    }
}

/// The names that two snapshots have in common.
async fn common(fixture: &Fixture, one: i64, other: i64) -> Arc<CommonFiles> {
    let (request, env) = (ScanRequest::default(), ScanEnv::default());
    let one = plan(&fixture.pin(PinRequest::SnapshotId(one)).await, &request, &env).await.unwrap();
    let other = plan(&fixture.pin(PinRequest::SnapshotId(other)).await, &request, &env).await.unwrap();
    assert_eq!(CommonFiles::of(&one, &other), CommonFiles::of(&other, &one));
    Arc::new(CommonFiles::of(&one, &other))
}

#[tokio::test]
async fn a_comparison_reads_only_what_may_differ() {
    let mut fixture = Fixture::keyed(&[]);
    let file = |ids: &[i32], level: i32| {
        FileSpec::rows(&ids.iter().map(|id| json!({"id": id, "v": 1})).collect::<Vec<_>>()).level(level)
    };
    // two files nobody shares keys with, and a pair that is merged
    let first = fixture.table.commit();
    let first = first.file(file(&[1, 2], 5)).file(file(&[10, 20], 5)).file(file(&[31, 33], 5)).file(file(&[32], 0));
    first.publish().unwrap();
    fixture.table.commit().file(file(&[15], 0)).publish().unwrap();
    // the pair gets a third, the other two stay
    fixture.table.commit().file(file(&[32, 34], 0)).publish().unwrap();
    assert_eq!(common(&fixture, 1, 1).await.len(), 4);
    assert_eq!(common(&fixture, 1, 2).await.len(), 3, "all but the file that is merged with 15 now");
    let changed = common(&fixture, 1, 3).await;
    assert_eq!(changed.len(), 1);
    let pin = fixture.pin(PinRequest::SnapshotId(3)).await;
    let request = ScanRequest { without: Some(changed), explain: true, ..ScanRequest::default() };
    let plan = plan(&pin, &request, &ScanEnv::default()).await.unwrap();
    assert_eq!((plan.stages.by_comparison, plan.stages.kept_files), (1, 5));
    let left_out: Vec<_> = plan.decisions.iter().filter(|d| !d.kept).map(|d| d.rule.to_string()).collect();
    assert_eq!(left_out, ["the state compared with has the same rows of it"]);
}

#[tokio::test]
async fn a_comparison_of_append_tables_reads_the_files_of_one_side_only() {
    let mut fixture = append_table();
    for id in 0..4 {
        fixture.table.append(&[json!({"id": id, "v": 1}), json!({"id": id, "v": 2})]).unwrap();
    }
    let names = fixture.names();
    // one file gone, one with a vector, one new
    fixture
        .table
        .commit()
        .remove(&names[0])
        .delete_positions(&names[1], &[0])
        .file(FileSpec::rows(&[json!({"id": 9, "v": 1})]))
        .publish()
        .unwrap();
    let shared = common(&fixture, 4, 5).await;
    assert_eq!(shared.len(), 2);
    let files = async |id: i64| -> Vec<String> {
        let request = ScanRequest { without: Some(Arc::clone(&shared)), ..ScanRequest::default() };
        let plan = plan(&fixture.pin(PinRequest::SnapshotId(id)).await, &request, &ScanEnv::default()).await.unwrap();
        plan.files().map(|file| file.entry.file.file_name.clone()).collect()
    };
    assert_eq!(files(4).await, [names[0].as_str(), names[1].as_str()]);
    let end = files(5).await;
    assert!(end.len() == 2 && end.contains(&names[1]) && end.iter().any(|name| !names.contains(name)), "{end:?}");
}

#[tokio::test]
async fn a_comparison_meets_partitions_and_buckets_that_only_one_side_has() {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT"), ("p", "INT NOT NULL")])
        .partitioned_by(&["p"])
        .primary_key(&["p", "id"])
        .option("bucket", "4");
    let mut fixture = Fixture::new(spec);
    let rows = |p: i32| (0..9).map(|id| json!({"id": id, "v": 1, "p": p})).collect::<Vec<_>>();
    fixture.table.append(&[rows(1), rows(3)].concat()).unwrap();
    let old: Vec<String> = fixture.table.live_files().unwrap().into_iter().map(|e| e.file.file_name).collect();
    let gone = old.iter().take(old.len() / 2).fold(fixture.table.commit(), |commit, name| commit.remove(name));
    gone.file(FileSpec::rows(&[rows(2), rows(4)].concat())).publish().unwrap();
    // partition 3 is the same, 1 has gone, 2 and 4 are new
    let shared = common(&fixture, 1, 2).await;
    assert_eq!(shared.len(), old.len() / 2);
    for (id, partitions) in [(1, vec![1]), (2, vec![2, 4])] {
        let request = ScanRequest { without: Some(Arc::clone(&shared)), ..ScanRequest::default() };
        let plan = plan(&fixture.pin(PinRequest::SnapshotId(id)).await, &request, &ScanEnv::default()).await.unwrap();
        let mut read: Vec<Datum> = plan.units.iter().map(|unit| unit.partition[0].clone()).collect();
        read.dedup();
        assert_eq!(read, partitions.into_iter().map(Datum::Int).collect::<Vec<_>>(), "snapshot {id}");
    }
}

#[tokio::test]
async fn casts_and_long_lists_prune_without_losing_a_file() {
    let mut fixture = append_table();
    for id in 0..6 {
        fixture.table.append(&[json!({"id": id * 1000, "v": 1})]).unwrap();
    }
    let long = one_of("id", (0..500).map(|id| lit(id * 2)).collect(), false);
    assert_eq!(count(&fixture.filtered(long).await), 1);
    let wide = datafusion::logical_expr::cast(col("id"), ArrowType::Int64).eq(lit(3000i64));
    assert_eq!(count(&fixture.filtered(wide).await), 1);
    let text = datafusion::logical_expr::cast(col("id"), ArrowType::Utf8).eq(lit("3000"));
    assert_eq!(count(&fixture.filtered(text).await), 6, "text does not sort as numbers do");
}
