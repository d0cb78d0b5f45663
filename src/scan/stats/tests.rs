//! Bounds that writers get wrong, and bounds of another type than the table's: none may hide a row.

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, col, lit};

use super::super::literal::datum_to_scalar;
use super::super::prune::tests::{field, file, keep, matches, row, schema};
use super::*;
use crate::spec::SimpleStats;
use crate::spec::arrow_types::{arrow_schema, datums_to_array};

/// A file of ten rows with bounds of its one column.
fn bounded(min: Datum, max: Datum, data_type: &DataType, nulls: Option<i64>) -> DataFileMeta {
    let mut meta = file("data-1.parquet", 10);
    meta.value_stats = SimpleStats {
        min_values: row(&[(min, data_type.clone())]),
        max_values: row(&[(max, data_type.clone())]),
        null_counts: vec![nulls],
    };
    meta
}

fn one_column(data_type: DataType) -> TableSchema {
    schema(0, vec![field(0, "c", data_type)])
}

/// Whether a filter leaves a file of the type's own schema.
fn keeps(filter: &Expr, meta: &DataFileMeta, data_type: &DataType) -> bool {
    let schema = one_column(data_type.clone());
    keep(filter, &schema, &[(meta, &schema)])[0]
}

/// Whether a row of this value meets the filter, evaluated as above a scan.
fn meets(filter: &Expr, value: &Datum, data_type: &DataType) -> bool {
    let column = datums_to_array(std::slice::from_ref(value), data_type).unwrap();
    let rows = RecordBatch::try_new(arrow_schema(&one_column(data_type.clone())), vec![column]).unwrap();
    matches(filter, &rows).unwrap()
}

#[test]
fn b047_zeros_of_both_signs_stand_behind_a_zero_bound() {
    let double = |value: f64| (Datum::Double(value), lit(value));
    let float = |value: f32| (Datum::Float(value), lit(value));
    let cases = [
        (DataType::Double, double(0.0), double(-0.0), lit(1.0), lit(-1.0)),
        (DataType::Float, float(0.0), float(-0.0), lit(1f32), lit(-1f32)),
    ];
    for (data_type, (plus, plus_literal), (minus, minus_literal), one, minus_one) in cases {
        let mut met = 0;
        let bounds = [(&plus, &plus), (&plus, &minus), (&minus, &plus), (&minus, &minus)];
        for ((min, max), literal) in bounds.into_iter().flat_map(|b| [(b, &plus_literal), (b, &minus_literal)]) {
            let meta = bounded(min.clone(), max.clone(), &data_type, Some(0));
            // writers that take zeros for one value put either
            for value in [&plus, &minus] {
                for filter in [
                    col("c").eq(literal.clone()),
                    col("c").lt(literal.clone()),
                    col("c").lt_eq(literal.clone()),
                    col("c").gt(literal.clone()),
                    col("c").gt_eq(literal.clone()),
                    col("c").between(literal.clone(), literal.clone()),
                    col("c").in_list(vec![literal.clone(), one.clone()], false),
                ] {
                    let meets = meets(&filter, value, &data_type);
                    met += usize::from(meets);
                    assert!(!meets || keeps(&filter, &meta, &data_type), "{filter} and {value:?}: {min:?} to {max:?}");
                }
            }
            assert!(!keeps(&col("c").eq(one.clone()), &meta, &data_type));
            assert!(!keeps(&col("c").lt_eq(minus_one.clone()), &meta, &data_type));
        }
        assert!(met >= 40, "{met}");
    }
}

const TEXT: DataType = DataType::Varchar(i32::MAX as u32);

#[test]
fn bounds_of_another_type_say_nothing_of_the_values_as_they_are_read() {
    let text = |text: &str| Datum::String(text.to_string());
    let decimal = Datum::Decimal;
    // type and value when written; type now and the value as it is read
    let cases = [
        (DataType::Timestamp(6), Datum::Timestamp(1_500, 700_000), DataType::Timestamp(3), Datum::Timestamp(1_500, 0)),
        (DataType::Timestamp(9), Datum::Timestamp(1_500, 123), DataType::Timestamp(6), Datum::Timestamp(1_500, 0)),
        (DataType::Timestamp(6), Datum::Timestamp(-1, 999_000), DataType::Timestamp(3), Datum::Timestamp(-1, 0)),
        (DataType::TimestampLtz(6), Datum::Timestamp(0, 1_000), DataType::TimestampLtz(3), Datum::Timestamp(0, 0)),
        (DataType::Time(9), Datum::Time(1_234), DataType::Time(0), Datum::Time(1_000)),
        (TEXT, text("abc"), DataType::Varchar(2), text("ab")),
        (TEXT, text("abc"), DataType::Char(2), text("ab")),
        (DataType::Char(4), text("abcd"), DataType::Varchar(1), text("a")),
        (DataType::Varbinary(9), Datum::Binary(vec![1, 2, 3]), DataType::Varbinary(1), Datum::Binary(vec![1])),
        (DataType::Decimal(6, 2), decimal(126, 6, 2), DataType::Decimal(6, 1), decimal(13, 6, 1)),
        (DataType::Decimal(6, 2), decimal(130, 6, 2), DataType::Decimal(6, 1), decimal(13, 6, 1)),
        (DataType::BigInt, Datum::BigInt((1 << 32) + 5), DataType::Int, Datum::Int(5)),
        (DataType::Int, Datum::Int(7), TEXT, text("7")),
        (TEXT, text("12"), DataType::Int, Datum::Int(12)),
        (DataType::Double, Datum::Double(0.1), DataType::Float, Datum::Float(0.1)),
        (DataType::Date, Datum::Date(1), DataType::Timestamp(3), Datum::Timestamp(86_400_000, 0)),
        (DataType::Boolean, Datum::Boolean(true), DataType::Int, Datum::Int(1)),
    ];
    for (from, written, to, read) in cases {
        let meta = bounded(written.clone(), written, &from, Some(0));
        let (own, table) = (one_column(from.clone()), one_column(to.clone()));
        let found = value_bounds(&meta, &own, &table.fields[0]);
        assert_eq!(found, Bounds::unknown(), "{from:?} read as {to:?}");
        let literal = lit(datum_to_scalar(&read, &to).unwrap());
        for filter in [
            col("c").eq(literal.clone()),
            col("c").lt_eq(literal.clone()),
            col("c").gt_eq(literal.clone()),
            col("c").in_list(vec![literal], false),
            // what cannot be brought to the type is null
            col("c").is_null(),
        ] {
            assert!(keep(&filter, &table, &[(&meta, &own)])[0], "{from:?} read as {to:?}: {filter}");
        }
    }
}

#[test]
fn bounds_of_a_narrower_integer_are_widened() {
    for from in [DataType::TinyInt, DataType::SmallInt, DataType::Int] {
        let value = integer(-5, &from).unwrap();
        let meta = bounded(value.clone(), value, &from, Some(3));
        let (own, table) = (one_column(from.clone()), one_column(DataType::BigInt));
        let found = value_bounds(&meta, &own, &table.fields[0]);
        assert_eq!(found, Bounds { min: Datum::BigInt(-5), max: Datum::BigInt(-5), nulls: Some(3) }, "{from:?}");
        let keeps = |filter: Expr| keep(&filter, &table, &[(&meta, &own)])[0];
        assert!(keeps(col("c").eq(lit(-5i64))), "{from:?}");
        assert!(!keeps(col("c").gt(lit(-5i64))), "{from:?}");
        assert!(!keeps(col("c").lt(lit(-5i64))), "{from:?}");
    }
}
