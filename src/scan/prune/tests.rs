//! Pruning against evaluation: random files, statistics of every mode, random filters; a file with a row that meets the
//! filter is never dropped.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Between, Cast, Expr, binary_expr, col, lit};
use datafusion::physical_expr::create_physical_expr;

use super::super::filters::Filters;
use super::super::literal::datum_to_scalar;
use super::super::stats::value_bounds;
use super::*;
use crate::spec::arrow_types::arrow_type;
use crate::spec::binary_row::RowForm;
use crate::spec::{BinaryRow, DataField, DataFileMeta, FieldType, SchemaId, SimpleStats};

/// A small generator whose seed is all there is to a failure.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn chance(&mut self, of_ten: usize) -> bool {
        self.below(10) < of_ten
    }
}

pub(crate) fn field(id: i32, name: &str, data_type: DataType) -> DataField {
    DataField {
        id,
        name: name.to_string(),
        field_type: FieldType { data_type, nullable: true },
        description: None,
        default_value: None,
        sums: false,
    }
}

pub(crate) fn schema(id: i64, fields: Vec<DataField>) -> TableSchema {
    TableSchema {
        version: 3,
        id: SchemaId(id),
        highest_field_id: fields.iter().map(|field| field.id).max().unwrap_or(0),
        fields,
        partition_keys: Vec::new(),
        primary_keys: Vec::new(),
        options: Default::default(),
        comment: None,
        time_millis: 0,
    }
}

pub(crate) fn file(name: &str, rows: i64) -> DataFileMeta {
    DataFileMeta {
        file_name: name.to_string(),
        file_size: 1000,
        row_count: rows,
        min_key: BinaryRow::empty(),
        max_key: BinaryRow::empty(),
        key_stats: no_stats(),
        value_stats: no_stats(),
        min_sequence_number: 0,
        max_sequence_number: 0,
        schema_id: SchemaId(0),
        level: 0,
        extra_files: Vec::new(),
        creation_time_millis: None,
        delete_row_count: Some(0),
        embedded_index: None,
        file_source: None,
        value_stats_cols: None,
        external_path: None,
        first_row_id: None,
        write_cols: None,
        write_cols_sequences: None,
    }
}

pub(crate) fn no_stats() -> SimpleStats {
    SimpleStats { min_values: BinaryRow::empty(), max_values: BinaryRow::empty(), null_counts: Vec::new() }
}

pub(crate) fn row(values: &[(Datum, DataType)]) -> BinaryRow {
    let pairs: Vec<(&Datum, &DataType)> = values.iter().map(|(value, data_type)| (value, data_type)).collect();
    BinaryRow::encode(&pairs, RowForm::Serialized).unwrap()
}

fn table_schema() -> TableSchema {
    schema(
        1,
        vec![
            field(0, "k", DataType::BigInt),
            field(1, "i", DataType::Int),
            field(2, "s", DataType::Varchar(i32::MAX as u32)),
            field(3, "c", DataType::Char(4)),
            field(4, "d", DataType::Double),
            field(5, "f", DataType::Float),
            field(6, "m", DataType::Decimal(9, 2)),
            field(7, "t", DataType::Timestamp(6)),
            field(8, "n", DataType::Timestamp(9)),
            field(9, "y", DataType::Date),
            field(10, "b", DataType::Boolean),
            field(11, "x", DataType::Varbinary(i32::MAX as u32)),
            field(12, "added", DataType::Int),
            field(13, "w", DataType::Decimal(12, 4)),
        ],
    )
}

/// An older schema: narrower integer, other names and order, a decimal of another scale, one column less.
fn old_schema() -> TableSchema {
    schema(
        0,
        vec![
            field(13, "w", DataType::Decimal(6, 2)),
            field(1, "k", DataType::Int),
            field(0, "small", DataType::SmallInt),
            field(2, "text", DataType::Varchar(i32::MAX as u32)),
            field(3, "c", DataType::Char(4)),
            field(4, "d", DataType::Double),
            field(5, "f", DataType::Float),
            field(6, "m", DataType::Decimal(9, 2)),
            field(7, "t", DataType::Timestamp(6)),
            field(8, "n", DataType::Timestamp(9)),
            field(9, "y", DataType::Date),
            field(10, "b", DataType::Boolean),
            field(11, "x", DataType::Varbinary(i32::MAX as u32)),
        ],
    )
}

const TEXTS: &[&str] =
    &["", "a", "ab", "abc", "abcd", "abcz", "b%", "b?", "b\u{D7FF}x", "中文字", "\u{10FFFF}\u{10FFFF}", "z"];

/// A value of the file's type; small ranges, so that filters and rows meet.
fn value(dice: &mut Dice, data_type: &DataType) -> Datum {
    if dice.chance(2) {
        return Datum::Null;
    }
    let small = dice.below(9) as i64 - 4;
    match data_type {
        DataType::SmallInt => Datum::SmallInt(small as i16),
        DataType::Int => Datum::Int(small as i32),
        DataType::BigInt => Datum::BigInt(if dice.chance(1) { small << 33 } else { small }),
        DataType::Varchar(_) => Datum::String(TEXTS[dice.below(TEXTS.len())].to_string()),
        DataType::Char(_) => Datum::String(["a", "ab", "a\tb", "b", "c1"][dice.below(5)].to_string()),
        DataType::Double => Datum::Double([f64::NAN, -0.0, 0.0, 1.5, -1.5, f64::INFINITY][dice.below(6)]),
        DataType::Float => Datum::Float([f32::NAN, -0.0, 0.0, 1.5, -1.5, f32::NEG_INFINITY][dice.below(6)]),
        DataType::Decimal(p, s) => Datum::Decimal(i128::from(small * 50), *p, *s),
        DataType::Timestamp(6) => Datum::Timestamp(small * 500, (dice.below(3) * 1000) as i32),
        DataType::Timestamp(_) => Datum::Timestamp(small * 500, dice.below(3) as i32 * 701),
        DataType::Date => Datum::Date(small as i32),
        DataType::Boolean => Datum::Boolean(small > 0),
        DataType::Varbinary(_) => Datum::Binary(vec![[0x00, 0x7F, 0x80, 0xFF][dice.below(4)]; dice.below(3)]),
        other => panic!("no values of {other:?}"),
    }
}

/// As the reader brings a value of the file to the table's type.
fn as_read(value: &Datum, to: &DataType) -> Datum {
    match (value, to) {
        (Datum::Int(_) | Datum::SmallInt(_), DataType::BigInt | DataType::Int) => {
            super::super::stats::widen(value, to).unwrap()
        }
        (Datum::Decimal(unscaled, _, from), DataType::Decimal(p, s)) => {
            Datum::Decimal(unscaled * 10i128.pow(u32::from(s - from)), *p, *s)
        }
        _ => value.clone(),
    }
}

fn truncate(text: &str, n: usize) -> (String, Option<String>) {
    if text.chars().count() <= n {
        return (text.to_string(), Some(text.to_string()));
    }
    let mut cut: Vec<char> = text.chars().take(n).collect();
    let min: String = cut.iter().collect();
    while let Some(last) = cut.pop() {
        let next = match last as u32 + 1 {
            0xD800 => {
                // as Java does it: a lone surrogate, stored as '?'
                cut.push('?');
                return (min, Some(cut.into_iter().collect()));
            }
            next => char::from_u32(next),
        };
        if let Some(next) = next {
            cut.push(next);
            return (min, Some(cut.into_iter().collect()));
        }
    }
    (min, None)
}

/// Bounds as writers store them.
fn bounds(dice: &mut Dice, values: &[Datum], data_type: &DataType, orc: bool) -> (Datum, Datum, Option<i64>) {
    let nulls = values.iter().filter(|value| value.is_null()).count() as i64;
    let nulls = if dice.chance(8) { Some(nulls) } else { None };
    let mut present: Vec<Datum> = values.iter().filter(|value| !value.is_null()).cloned().collect();
    let nan = |value: &Datum| {
        matches!(value, Datum::Double(v) if v.is_nan()) || matches!(value, Datum::Float(v) if v.is_nan())
    };
    let had_nan = present.iter().any(nan);
    present.retain(|value| !nan(value));
    if dice.chance(1) || present.is_empty() || (had_nan && dice.chance(3)) {
        return (Datum::Null, Datum::Null, nulls);
    }
    if dice.chance(1) {
        return (Datum::Null, Datum::Null, None);
    }
    present.sort_by(Datum::total_cmp);
    let (mut min, mut max) = (present[0].clone(), present[present.len() - 1].clone());
    // zeros of both signs are one value to some writers
    if min == Datum::Double(-0.0) {
        min = Datum::Double(0.0);
    }
    if max == Datum::Float(0.0) {
        max = Datum::Float(-0.0);
    }
    match (&min, &max, data_type) {
        (Datum::String(low), Datum::String(high), DataType::Varchar(_)) => {
            let (low, _) = truncate(low, 2);
            match truncate(high, 2).1 {
                Some(high) => (min, max) = (Datum::String(low), Datum::String(high)),
                None => return (Datum::Null, Datum::Null, nulls),
            }
        }
        (Datum::String(_), Datum::String(_), DataType::Char(n)) if orc => {
            let mut padded: Vec<String> = present
                .iter()
                .map(|value| match value {
                    Datum::String(text) => format!("{text:<width$}", width = *n as usize),
                    other => panic!("{other:?}"),
                })
                .collect();
            padded.sort();
            (min, max) = (Datum::String(padded[0].clone()), Datum::String(padded[padded.len() - 1].clone()));
        }
        (Datum::Timestamp(low, low_nanos), Datum::Timestamp(high, high_nanos), DataType::Timestamp(9)) => {
            (min, max) =
                (Datum::Timestamp(*low, low_nanos / 1000 * 1000), Datum::Timestamp(*high, high_nanos / 1000 * 1000));
        }
        _ => {}
    }
    (min, max, nulls)
}

fn literal(dice: &mut Dice, data_type: &DataType) -> ScalarValue {
    let value = value(dice, data_type);
    datum_to_scalar(&value, data_type).unwrap()
}

fn leaf(dice: &mut Dice, schema: &TableSchema) -> Expr {
    use datafusion::logical_expr::Operator as O;
    let field = &schema.fields[dice.below(schema.fields.len())];
    let data_type = field.data_type();
    let column = col(field.name.as_str());
    let ops = [O::Eq, O::NotEq, O::Lt, O::LtEq, O::Gt, O::GtEq];
    let op = ops[dice.below(ops.len())];
    match dice.below(12) {
        0 => Expr::IsNull(Box::new(column)),
        1 => Expr::IsNotNull(Box::new(column)),
        2 => {
            let list = (0..1 + dice.below(4)).map(|_| lit(literal(dice, data_type))).collect();
            Expr::InList(InList::new(Box::new(column), list, dice.chance(3)))
        }
        3 => {
            let (low, high) = (lit(literal(dice, data_type)), lit(literal(dice, data_type)));
            Expr::Between(Between::new(Box::new(column), dice.chance(3), Box::new(low), Box::new(high)))
        }
        4 => {
            let pattern = ["a%", "ab_", "abc", "%c", "b%%", "b\\%", "中%", "\u{D7FF}%", "%"][dice.below(9)];
            Expr::Like(Like::new(dice.chance(2), Box::new(col("s")), Box::new(lit(pattern)), None, dice.chance(1)))
        }
        5 => col("b"),
        6 => {
            let (cast, to) = [
                ("i", DataType::BigInt),
                ("k", DataType::Decimal(21, 1)),
                ("i", DataType::Double),
                ("f", DataType::Double),
                ("t", DataType::Date),
                ("m", DataType::Decimal(20, 4)),
            ][dice.below(6)]
            .clone();
            let side = Expr::Cast(Cast::new(Box::new(col(cast)), arrow_type(&to)));
            binary_expr(side, op, lit(literal(dice, &to)))
        }
        7 => {
            // a literal of another type than the column, without a cast
            binary_expr(col("k"), op, lit(dice.below(9) as i64 - 4))
        }
        _ if dice.chance(1) => binary_expr(lit(literal(dice, data_type)), op, column),
        _ => binary_expr(column, op, lit(literal(dice, data_type))),
    }
}

fn filter(dice: &mut Dice, schema: &TableSchema, depth: usize) -> Expr {
    if depth == 0 || dice.chance(4) {
        return leaf(dice, schema);
    }
    match dice.below(5) {
        0 => Expr::Not(Box::new(filter(dice, schema, depth - 1))),
        1 => Expr::IsTrue(Box::new(filter(dice, schema, depth - 1))),
        2 => Expr::IsFalse(Box::new(filter(dice, schema, depth - 1))),
        3 => filter(dice, schema, depth - 1).and(filter(dice, schema, depth - 1)),
        _ => filter(dice, schema, depth - 1).or(filter(dice, schema, depth - 1)),
    }
}

struct Made {
    meta: DataFileMeta,
    schema: Arc<TableSchema>,
    rows: RecordBatch,
}

fn make_file(dice: &mut Dice, number: usize, table: &TableSchema) -> Made {
    let old = dice.chance(5);
    let orc = dice.chance(4);
    let written = if old { old_schema() } else { table.clone() };
    let count = 1 + dice.below(5);
    let columns: Vec<Vec<Datum>> = written
        .fields
        .iter()
        .map(|field| {
            let rare = dice.chance(2);
            (0..count).map(|_| if rare { Datum::Null } else { value(dice, field.data_type()) }).collect()
        })
        .collect();
    let name = format!("data-{number}.{}", if orc { "orc" } else { "parquet" });
    let mut meta = file(&name, count as i64);
    // dense statistics of some columns, in an order of their own
    let mut order: Vec<usize> = (0..written.fields.len()).collect();
    if dice.chance(5) {
        for _ in 0..written.fields.len() {
            let (one, other) = (dice.below(order.len()), dice.below(order.len()));
            order.swap(one, other);
        }
        order.truncate(1 + dice.below(order.len()));
        meta.value_stats_cols = Some(order.iter().map(|index| written.fields[*index].name.clone()).collect());
    }
    let (mut low, mut high, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for index in order {
        let data_type = written.fields[index].data_type();
        let (min, max, count) = bounds(dice, &columns[index], data_type, orc);
        low.push((min, data_type.clone()));
        high.push((max, data_type.clone()));
        nulls.push(count);
    }
    meta.value_stats = SimpleStats { min_values: row(&low), max_values: row(&high), null_counts: nulls };
    let arrays = table
        .fields
        .iter()
        .map(|field| {
            let values: Vec<Datum> = match written.fields.iter().position(|own| own.id == field.id) {
                Some(index) => columns[index].iter().map(|value| as_read(value, field.data_type())).collect(),
                None => vec![Datum::Null; count],
            };
            datums_to_array(&values, field.data_type()).unwrap()
        })
        .collect();
    let rows = RecordBatch::try_new(arrow_schema(table), arrays).unwrap();
    Made { meta, schema: Arc::new(written), rows }
}

/// Whether a row meets the filter; None when DataFusion cannot evaluate it as it is.
pub(crate) fn matches(filter: &Expr, rows: &RecordBatch) -> Option<bool> {
    let schema = DFSchema::try_from(rows.schema()).unwrap();
    let compiled =
        create_physical_expr(filter, &schema, &ExecutionProps::new(), &PhysicalPlanningContext::default()).ok()?;
    let value = compiled.evaluate(rows).ok()?.into_array(rows.num_rows()).ok()?;
    let value = value.as_boolean_opt()?;
    Some((0..value.len()).any(|row| value.is_valid(row) && value.value(row)))
}

/// Which files value statistics keep, each with the schema it was written with.
pub(crate) fn keep(filter: &Expr, table: &TableSchema, files: &[(&DataFileMeta, &TableSchema)]) -> Vec<bool> {
    let filters = Filters::try_new(std::slice::from_ref(filter), table).unwrap();
    let mut keep = vec![true; files.len()];
    for conjunct in &filters.conjuncts {
        let Some(pruner) = &conjunct.pruner else { continue };
        let mut bounds = BoundsTable::new(files.iter().map(|(meta, _)| Some(meta.row_count as u64)).collect());
        for column in pruner.columns() {
            let field = &table.fields[*column];
            let found = files.iter().map(|(meta, schema)| value_bounds(meta, schema, field)).collect();
            bounds.add(&field.name, field.data_type(), found);
        }
        for (slot, may) in keep.iter_mut().zip(pruner.may_match(&bounds)) {
            *slot &= may;
        }
    }
    keep
}

#[test]
fn pruning_never_drops_a_file_with_a_matching_row() {
    let full = std::env::var("LAKEPIN_SCALE").is_ok_and(|scale| scale == "full");
    let rounds = if full { 40_000 } else { 1_500 };
    let table = table_schema();
    let (mut dropped, mut judged) = (0usize, 0usize);
    for seed in 0..rounds {
        let mut dice = Dice(seed);
        let files: Vec<Made> = (0..8).map(|number| make_file(&mut dice, number, &table)).collect();
        let metas: Vec<_> = files.iter().map(|file| (&file.meta, file.schema.as_ref())).collect();
        for _ in 0..4 {
            let filter = filter(&mut dice, &table, 3);
            let keep = keep(&filter, &table, &metas);
            for (file, keep) in files.iter().zip(keep) {
                // a filter DataFusion itself cannot evaluate without coercion has no answer to compare with
                let Some(matches) = matches(&filter, &file.rows) else { continue };
                judged += 1;
                dropped += usize::from(!keep);
                assert!(
                    keep || !matches,
                    "seed {seed}: {filter} dropped {} ({:?})\n{}",
                    file.meta.file_name,
                    file.meta.value_stats_cols,
                    arrow::util::pretty::pretty_format_batches(std::slice::from_ref(&file.rows)).unwrap()
                );
            }
        }
    }
    // the test would prove nothing if nothing were dropped
    assert!(dropped * 8 > judged, "only {dropped} of {judged} files were dropped");
}
