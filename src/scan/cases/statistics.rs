//! Statistics in manifests: which files they drop and by which rule, which they must keep.

use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::isnan;
use datafusion::logical_expr::{Expr, cast, col, lit, not};

use super::super::prune::tests::{file, row};
use super::super::{ScanPlan, ScanRequest};
use super::{Fixture, one_of};
use crate::spec::{BinaryRow, Bucket, DataType, Datum, FileKind, ManifestEntry, SimpleStats};
use crate::testing::builder::TableSpec;
use arrow::datatypes::{DataType as ArrowType, TimeUnit};

const TEXT: DataType = DataType::Varchar(i32::MAX as u32);
const ROWS: i64 = 10;

/// What the manifest says of one file's only column.
struct Said {
    name: &'static str,
    min: Datum,
    max: Datum,
    nulls: Option<i64>,
}

fn said(name: &'static str, min: Datum, max: Datum, nulls: Option<i64>) -> Said {
    Said { name, min, max, nulls }
}

/// An append table of one column `c` and a file for each statement; no data file is needed to plan.
fn stated(data_type: &DataType, files: &[Said]) -> Fixture {
    let mut fixture = Fixture::new(TableSpec::new(&[("c", &data_type.to_string())]));
    let mut commit = fixture.table.commit();
    for said in files {
        let mut file = file(said.name, ROWS);
        file.value_stats = SimpleStats {
            min_values: row(&[(said.min.clone(), data_type.clone())]),
            max_values: row(&[(said.max.clone(), data_type.clone())]),
            null_counts: vec![said.nulls],
        };
        commit = commit.entry(entry_of(file));
    }
    commit.publish().unwrap();
    fixture
}

fn entry_of(file: crate::spec::DataFileMeta) -> ManifestEntry {
    ManifestEntry { kind: FileKind::Add, partition: BinaryRow::empty(), bucket: Bucket(0), total_buckets: -1, file }
}

/// Names of the files kept, sorted; those dropped name the condition that did it.
fn kept(plan: &ScanPlan, filter: &Expr) -> Vec<String> {
    for decision in plan.decisions.iter().filter(|decision| !decision.kept) {
        assert!(decision.rule.to_string().starts_with("value statistics exclude "), "{filter}: {}", decision.rule);
    }
    let mut names: Vec<String> = plan.decisions.iter().filter(|d| d.kept).map(|d| d.file.clone()).collect();
    names.sort();
    assert_eq!(plan.stages.by_value as usize + names.len(), plan.decisions.len(), "{filter}");
    names
}

async fn check(fixture: &Fixture, cases: Vec<(Expr, &[&str])>) {
    for (filter, expected) in cases {
        let plan = fixture.filtered(filter.clone()).await;
        assert_eq!(kept(&plan, &filter), expected, "{filter}");
        assert_eq!(plan.exact_row_count, None, "bounds count no rows: {filter}");
    }
}

#[tokio::test]
async fn b040_cut_text_bounds_bound_and_are_no_values() {
    let text = |text: &str| Datum::String(text.to_string());
    let a16 = "a".repeat(16);
    let long = |end: &str| lit(format!("{a16}{end}"));
    let fixture = stated(
        &TEXT,
        &[
            // truncate(16): the upper bound is rounded up
            said("cut", text(&a16), text(&format!("{}b", "a".repeat(15))), Some(0)),
            // nothing is greater than the last letter: no bound
            said("high", text(&"\u{10FFFF}".repeat(16)), Datum::Null, Some(0)),
            // rounded up into the surrogates, stored as '?'
            said("mark", text("c"), text("c?"), Some(0)),
            said("short", text("d"), text("e"), Some(0)),
        ],
    );
    let high = "\u{10FFFF}".repeat(20);
    check(
        &fixture,
        vec![
            (col("c").eq(long("Z1")), &["cut", "high"]),
            (col("c").gt(long("Z2")), &["cut", "high", "mark", "short"]),
            (col("c").like(lit(format!("{a16}Z%"))), &["cut", "high"]),
            (col("c").eq(lit(high.clone())), &["high", "mark"]),
            (col("c").gt_eq(lit(high)), &["high", "mark"]),
            (col("c").eq(lit("c\u{D7FF}x")), &["high", "mark"]),
            // the bound itself may be in no row, and may be
            (col("c").eq(lit(a16.clone())), &["cut", "high"]),
            (col("c").not_eq(lit(a16)), &["cut", "high", "mark", "short"]),
            (col("c").eq(lit("dz")), &["high", "mark", "short"]),
            (col("c").lt(lit("a")), &["high"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn b041_bounds_of_bytes_are_unsigned() {
    let bytes = |bytes: &[u8]| Datum::Binary(bytes.to_vec());
    let fixture = stated(
        &DataType::Varbinary(10),
        &[
            said("7f", bytes(&[0x7F]), bytes(&[0x7F]), Some(0)),
            said("80", bytes(&[0x80]), bytes(&[0x80]), Some(0)),
            said("both", bytes(&[0x7F]), bytes(&[0x80]), Some(0)),
            said("ff", bytes(&[0xFF]), bytes(&[0xFF, 0x00]), Some(0)),
        ],
    );
    let byte = |byte: u8| lit(ScalarValue::Binary(Some(vec![byte])));
    check(
        &fixture,
        vec![
            (col("c").gt(byte(0x7F)), &["80", "both", "ff"]),
            (col("c").lt(byte(0x80)), &["7f", "both"]),
            (col("c").eq(byte(0x80)), &["80", "both"]),
            (col("c").between(byte(0x80), byte(0xFF)), &["80", "both", "ff"]),
            (col("c").gt(byte(0xFF)), &["ff"]),
            (col("c").lt_eq(byte(0x00)), &[]),
        ],
    )
    .await;
}

#[tokio::test]
async fn b045_what_is_not_said_keeps_the_file() {
    let int = Datum::Int;
    let five = |nulls| (int(5), int(5), nulls);
    let unsaid = (Datum::Null, Datum::Null, None);
    let fixture = stated(
        &DataType::Int,
        &[
            ("nothing", unsaid),
            ("counts", (Datum::Null, Datum::Null, Some(0))),
            ("some", (Datum::Null, Datum::Null, Some(4))),
            ("nulls", (Datum::Null, Datum::Null, Some(ROWS))),
            ("five", five(None)),
            ("full", five(Some(0))),
            // more nulls than rows, and fewer than none
            ("many", five(Some(ROWS + 1))),
            ("negative", five(Some(-1))),
        ]
        .map(|(name, (min, max, nulls))| said(name, min, max, nulls)),
    );
    check(
        &fixture,
        vec![
            (col("c").is_null(), &["five", "many", "negative", "nothing", "nulls", "some"]),
            (col("c").is_not_null(), &["counts", "five", "full", "many", "negative", "nothing", "some"]),
            (col("c").eq(lit(5)), &["counts", "five", "full", "many", "negative", "nothing", "some"]),
            (col("c").eq(lit(6)), &["counts", "nothing", "some"]),
            (col("c").not_eq(lit(5)), &["counts", "nothing", "some"]),
            (one_of("c", vec![lit(5), lit(6)], true), &["counts", "nothing", "some"]),
            (
                one_of("c", vec![lit(4), lit(6)], true),
                &["counts", "five", "full", "many", "negative", "nothing", "some"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn b045_statistics_of_other_columns_only_say_nothing() {
    let mut fixture = Fixture::new(TableSpec::new(&[("c", "INT"), ("d", "INT")]));
    let mut other = file("other", ROWS);
    other.value_stats = SimpleStats {
        min_values: row(&[(Datum::Int(5), DataType::Int)]),
        max_values: row(&[(Datum::Int(5), DataType::Int)]),
        null_counts: vec![Some(0)],
    };
    other.value_stats_cols = Some(vec!["d".to_string()]);
    // no statistics at all, as stats-mode none leaves it
    let none = file("none", ROWS);
    fixture.table.commit().entry(entry_of(other)).entry(entry_of(none)).publish().unwrap();
    let both: &[&str] = &["none", "other"];
    check(
        &fixture,
        vec![
            (col("c").is_null(), both),
            (col("c").is_not_null(), both),
            (col("c").eq(lit(6)), both),
            (col("c").not_eq(lit(5)), both),
            (one_of("c", vec![lit(5)], true), both),
            (col("d").eq(lit(5)), both),
            (col("d").eq(lit(6)), &["none"]),
            (col("d").is_null(), &["none"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn b047_no_bound_speaks_of_nan() {
    let double = Datum::Double;
    let fixture = stated(
        &DataType::Double,
        &[
            said("one", double(1.0), double(1.0), Some(0)),
            // three writers' ways with NaN: no bounds, bounds of the rest, NaN as the greatest
            said("nan_unbounded", Datum::Null, Datum::Null, Some(0)),
            said("nan_left_out", double(1.0), double(1.0), Some(0)),
            said("nan_as_max", double(1.0), double(f64::NAN), Some(0)),
            said("null", Datum::Null, Datum::Null, Some(ROWS)),
            said("plus_zero", double(0.0), double(0.0), Some(0)),
            said("minus_zero", double(-0.0), double(-0.0), Some(0)),
        ],
    );
    let all: &[&str] = &["minus_zero", "nan_as_max", "nan_left_out", "nan_unbounded", "null", "one", "plus_zero"];
    let zeros: &[&str] = &["minus_zero", "nan_unbounded", "plus_zero"];
    check(
        &fixture,
        vec![
            // NaN is greater than every number
            (col("c").gt(lit(100.0)), all),
            (not(col("c").lt(lit(5.0))), all),
            (col("c").not_eq(lit(1.0)), all),
            (col("c").eq(col("c")), all),
            (isnan(col("c")), all),
            (col("c").eq(lit(f64::NAN)), all),
            // a smaller number is no NaN
            (col("c").eq(lit(0.0)), zeros),
            (col("c").eq(lit(-0.0)), zeros),
            (col("c").lt(lit(1.0)), zeros),
            (col("c").lt_eq(lit(-0.0)), zeros),
            (col("c").lt_eq(lit(-1.0)), &["nan_unbounded"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn b050_a_finer_literal_is_not_rounded() {
    // 1969-12-31 23:59:59.999 and the same with all digits the precision has
    for (precision, nanos) in [(3u8, 0), (6, 999_000), (9, 999_999)] {
        for ltz in [false, true] {
            let data_type = if ltz { DataType::TimestampLtz(precision) } else { DataType::Timestamp(precision) };
            let moment = Datum::Timestamp(-1, nanos);
            let fixture = stated(&data_type, &[said("last", moment.clone(), moment, Some(0))]);
            let zone = || ltz.then(|| "UTC".into());
            let exact = -1_000_000 + i64::from(nanos);
            let nano = |nanos: i64| lit(ScalarValue::TimestampNanosecond(Some(nanos), zone()));
            let micro = |micros: i64| lit(ScalarValue::TimestampMicrosecond(Some(micros), zone()));
            let keeps: &[&str] = &["last"];
            check(
                &fixture,
                vec![
                    (col("c").lt_eq(nano(exact)), keeps),
                    (col("c").gt_eq(nano(exact)), keeps),
                    (col("c").lt(nano(exact + 1)), keeps),
                    (col("c").gt(nano(exact - 1)), keeps),
                    (col("c").gt(micro(-1_001)), keeps),
                    (col("c").lt(micro(0)), keeps),
                ],
            )
            .await;
            // as a planner writes the comparison with a finer literal: the column is brought to its precision
            let fine = || cast(col("c"), ArrowType::Timestamp(TimeUnit::Nanosecond, zone()));
            check(
                &fixture,
                vec![
                    (fine().eq(nano(exact)), keeps),
                    (fine().lt(nano(exact + 1)), keeps),
                    (fine().gt_eq(nano(exact)), keeps),
                ],
            )
            .await;
        }
    }
}

#[tokio::test]
async fn b050_bounds_in_their_own_precision_drop_what_is_beside_them() {
    let at = |millis: i64| Datum::Timestamp(millis, 0);
    let fixture = stated(
        &DataType::Timestamp(3),
        &[said("before", at(-2), at(-1), Some(0)), said("after", at(0), at(1), Some(0))],
    );
    let milli = |millis: i64| lit(ScalarValue::TimestampMillisecond(Some(millis), None));
    check(
        &fixture,
        vec![
            (col("c").lt(milli(0)), &["before"]),
            (col("c").gt_eq(milli(0)), &["after"]),
            (col("c").eq(milli(-1)), &["before"]),
            (col("c").gt(milli(1)), &[]),
        ],
    )
    .await;
    let request = ScanRequest { filters: vec![col("c").gt(milli(-1))], ..ScanRequest::default() };
    assert_eq!(fixture.plan(request).await.files().count(), 1, "the same without explaining");
}
