use std::cmp::Ordering;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};
use serde_json::Value;

use super::*;
use crate::spec::hostile::{ENOUGH, cases as scaled, peak_of};
use crate::spec::vectors::{container, data_type, datum, hex, index_vectors};

const RANGES: [IndexOp; 4] = [IndexOp::Lt, IndexOp::LtEq, IndexOp::Gt, IndexOp::GtEq];

fn index(indexes: &[(&str, Option<&[u8]>)]) -> FileIndex {
    FileIndex::parse(container(indexes).into()).unwrap()
}

fn leaf(op: IndexOp, literals: &[Datum], data_type: &DataType) -> IndexPredicate {
    IndexPredicate::Leaf { column: "c".to_string(), op, literals: literals.to_vec(), data_type: data_type.clone() }
}

fn rows(rows: impl IntoIterator<Item = u32>) -> IndexVerdict {
    IndexVerdict::of_rows(rows.into_iter().collect())
}

/// One index of the reference implementation.
struct Case {
    kind: String,
    data_type: DataType,
    values: Vec<Datum>,
    body: Vec<u8>,
}

fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(read_cases);
    &CASES
}

fn read_cases() -> Vec<Case> {
    let case = |line: Value| {
        let data_type = data_type(&line["type"]);
        Case {
            kind: line["index"].as_str().unwrap().to_string(),
            values: line["values"].as_array().unwrap().iter().map(|value| datum(value, &data_type)).collect(),
            body: hex(line["bytes"].as_str().unwrap()),
            data_type,
        }
    };
    index_vectors().into_iter().map(case).collect()
}

/// SQL's comparison, with signed zeros equal and NaN out of every order.
fn holds(value: &Datum, op: IndexOp, literal: &Datum) -> bool {
    let order = match (value, literal) {
        (Datum::Null, _) => return false,
        (Datum::Double(l), Datum::Double(r)) => l.partial_cmp(r),
        (Datum::Float(l), Datum::Float(r)) => l.partial_cmp(r),
        _ => Some(value.total_cmp(literal)),
    };
    match op {
        IndexOp::Eq => order == Some(Ordering::Equal),
        IndexOp::NotEq => order != Some(Ordering::Equal),
        IndexOp::Lt => order == Some(Ordering::Less),
        IndexOp::LtEq => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        IndexOp::Gt => order == Some(Ordering::Greater),
        IndexOp::GtEq => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        _ => panic!("no comparison"),
    }
}

/// A value near another, mostly one that no row has.
fn neighbour(value: &Datum) -> Datum {
    match value {
        Datum::TinyInt(v) => Datum::TinyInt(v.wrapping_add(3)),
        Datum::SmallInt(v) => Datum::SmallInt(v.wrapping_add(1)),
        Datum::Int(v) => Datum::Int(v.wrapping_add(1)),
        Datum::BigInt(v) => Datum::BigInt(v.wrapping_sub(1)),
        Datum::Date(v) => Datum::Date(v + 20),
        Datum::Decimal(v, p, s) => Datum::Decimal(v - 3, *p, *s),
        Datum::Timestamp(millis, nanos) => Datum::Timestamp(millis + 1, *nanos),
        Datum::Float(v) => Datum::Float(v + 0.25),
        Datum::Double(v) => Datum::Double(v - 0.25),
        Datum::String(v) => Datum::String(format!("{v}\u{1}")),
        other => other.clone(),
    }
}

#[test]
fn indexes_of_the_reference_give_exactly_the_matching_rows() {
    let mut answers = 0;
    for case in cases() {
        let index = index(&[(&case.kind, Some(&case.body))]);
        let count = case.values.len() as u64;
        let ask = |op, literals: &[Datum]| index.evaluate(&leaf(op, literals, &case.data_type), count).unwrap();
        let matching = |holds: &dyn Fn(&Datum) -> bool| {
            (0u32..).zip(&case.values).filter(|(_, value)| holds(value)).map(|(row, _)| row).collect::<RoaringBitmap>()
        };
        let nulls = matching(&|value| value.is_null());
        let float = matches!(case.data_type, DataType::Float | DataType::Double);
        let check = |op, expected: RoaringBitmap, verdict: IndexVerdict, may_remain: bool, what: &str| {
            let what = format!("{} of {:?}: {op:?} {what}", case.kind, case.data_type);
            match verdict {
                IndexVerdict::Remain => assert!(may_remain, "{what}"),
                // signed zeros and NaN may bring more
                IndexVerdict::Skip => assert!(expected.is_empty(), "{what}"),
                IndexVerdict::Rows(rows) if float => assert!(rows.is_superset(&expected), "{what}"),
                IndexVerdict::Rows(rows) if op == IndexOp::NotEq => assert_eq!(rows - &nulls, expected, "{what}"),
                IndexVerdict::Rows(rows) => assert_eq!(rows, expected, "{what}"),
            }
        };
        check(IndexOp::IsNull, nulls.clone(), ask(IndexOp::IsNull, &[]), false, "");
        check(IndexOp::IsNotNull, matching(&|value| !value.is_null()), ask(IndexOp::IsNotNull, &[]), false, "");
        for value in case.values.iter().filter(|value| !value.is_null()) {
            for literal in [value.clone(), neighbour(value)] {
                let literals = std::slice::from_ref(&literal);
                let nan = matches!(literal, Datum::Double(v) if v.is_nan());
                let text = format!("{literal:?}");
                for op in [IndexOp::Eq, IndexOp::NotEq] {
                    let expected = matching(&|value| holds(value, op, &literal));
                    check(op, expected, ask(op, literals), nan, &text);
                }
                for op in RANGES {
                    let expected = matching(&|value| holds(value, op, &literal));
                    check(op, expected, ask(op, literals), float || case.kind == "bitmap", &text);
                }
                answers += 1;
            }
        }
        let [some, .., other] = case.values.as_slice() else { panic!("no values") };
        if !float && !some.is_null() && !other.is_null() {
            let both = [some.clone(), Datum::Null, other.clone()];
            let either = matching(&|value| holds(value, IndexOp::Eq, some) || holds(value, IndexOp::Eq, other));
            check(IndexOp::In, either, ask(IndexOp::In, &both), false, "");
            assert_eq!(ask(IndexOp::NotIn, &both), IndexVerdict::Remain);
        }
    }
    assert!(answers > 3000, "{answers}");
}

#[test]
fn index_of_another_number_of_rows_is_left_alone() {
    for case in cases().iter().filter(|case| case.data_type == DataType::Int) {
        let index = index(&[(&case.kind, Some(&case.body))]);
        let ask = leaf(IndexOp::Eq, &[Datum::Int(1)], &DataType::Int);
        assert_eq!(index.evaluate(&ask, case.values.len() as u64 + 1).unwrap(), IndexVerdict::Remain);
        assert_eq!(index.evaluate(&ask, u64::MAX).unwrap(), IndexVerdict::Remain);
    }
}

#[test]
fn indexes_of_one_column_and_predicates_combine() {
    let bitmap = cases().iter().find(|case| case.kind == "bitmap" && case.data_type == DataType::Int).unwrap();
    let ints: Vec<_> = bitmap.values.iter().collect();
    let bloom = hex("00000003800001004000");
    let index = index(&[("bitmap", Some(&bitmap.body)), ("bloom-filter", Some(&bloom)), ("new", Some(b"?"))]);
    let count = ints.len() as u64;
    let is = |value| leaf(IndexOp::Eq, &[Datum::Int(value)], &DataType::Int);
    let of = |value| (0u32..).zip(&ints).filter(move |(_, v)| ***v == Datum::Int(value)).map(|(row, _)| row);
    let ask = |predicate| index.evaluate(&predicate, count).unwrap();
    assert_eq!(index.indexes().collect::<Vec<_>>(), [("c", "bitmap"), ("c", "bloom-filter"), ("c", "new")]);
    // the Bloom filter holds 1 only, the bitmap anything but
    assert_eq!(ask(is(1)), IndexVerdict::Skip);
    let not = |value| leaf(IndexOp::NotEq, &[Datum::Int(value)], &DataType::Int);
    let IndexVerdict::Rows(without) = ask(not(3000)) else { panic!("no rows") };
    assert!(of(3000).all(|row| !without.contains(row)) && of(0).all(|row| without.contains(row)));
    let both = IndexPredicate::And(vec![not(3000), not(0), IndexPredicate::Unknown]);
    let IndexVerdict::Rows(without) = ask(both) else { panic!("no rows") };
    assert!(of(0).all(|row| !without.contains(row)));
    assert_eq!(ask(IndexPredicate::Or(vec![is(1), is(1)])), IndexVerdict::Skip);
    assert_eq!(ask(IndexPredicate::Or(vec![is(1), IndexPredicate::Unknown])), IndexVerdict::Remain);
    assert_eq!(ask(IndexPredicate::And(vec![IndexPredicate::Unknown, is(1)])), IndexVerdict::Skip);
    assert_eq!(ask(IndexPredicate::And(vec![])), IndexVerdict::Remain);
    assert_eq!(ask(IndexPredicate::Or(vec![])), IndexVerdict::Remain);
    let other = IndexPredicate::Leaf {
        column: "d".to_string(),
        op: IndexOp::Eq,
        literals: vec![Datum::Int(1)],
        data_type: DataType::Int,
    };
    assert_eq!(ask(other), IndexVerdict::Remain);
    assert_eq!(rows([]), IndexVerdict::Skip);
    assert_eq!(rows([1, 2]).and(rows([3])), IndexVerdict::Skip);
    assert_eq!(rows([1, 2]).or(rows([3])), rows([1, 2, 3]));
}

#[test]
fn column_without_values_matches_no_comparison() {
    let index = index(&[("bitmap", None)]);
    let ask = |op, literals: &[Datum]| index.evaluate(&leaf(op, literals, &DataType::Int), 5).unwrap();
    assert_eq!(ask(IndexOp::Eq, &[Datum::Int(1)]), IndexVerdict::Skip);
    assert_eq!(ask(IndexOp::Lt, &[Datum::Int(1)]), IndexVerdict::Skip);
    assert_eq!(ask(IndexOp::Eq, &[Datum::Null]), IndexVerdict::Remain);
    assert_eq!(ask(IndexOp::NotEq, &[Datum::Int(1)]), IndexVerdict::Remain);
    assert_eq!(ask(IndexOp::IsNull, &[]), IndexVerdict::Remain);
}

#[test]
fn unknown_versions_are_left_alone_and_damage_is_named() {
    let ask = leaf(IndexOp::Eq, &[Datum::Int(1)], &DataType::Int);
    for kind in ["bitmap", "bsi"] {
        assert_eq!(index(&[(kind, Some(&[9]))]).evaluate(&ask, 5).unwrap(), IndexVerdict::Remain);
    }
    for kind in ["bitmap", "bsi", "range-bitmap", "bloom-filter"] {
        let error = index(&[(kind, Some(&[1]))]).evaluate(&ask, 5).unwrap_err();
        assert_eq!(error.context(), [("index", kind.to_string()), ("column", "c".to_string())]);
    }
    assert!(FileIndex::parse(Bytes::from_static(b"no index at all")).is_err());
}

/// Every kind of question.
fn questions(data_type: &DataType, value: &Datum) -> Vec<IndexPredicate> {
    let with = [IndexOp::Eq, IndexOp::NotEq, IndexOp::In, IndexOp::NotIn].into_iter().chain(RANGES);
    let with = with.map(|op| leaf(op, std::slice::from_ref(value), data_type));
    with.chain([IndexOp::IsNull, IndexOp::IsNotNull].map(|op| leaf(op, &[], data_type))).collect()
}

proptest! {
    #![proptest_config(scaled(256))]

    #[test]
    fn damaged_indexes_are_answered_or_refused_calmly(
        pick in any::<usize>(),
        flips in vec(any::<(usize, u8)>(), 1..6),
        cut in any::<usize>(),
        head in any::<bool>(),
    ) {
        let cases = cases();
        let case = &cases[pick % cases.len()];
        let mut bytes = container(&[(&case.kind, Some(&case.body)), ("bloom-filter", Some(&case.body))]);
        let end = bytes.len();
        for (at, mask) in flips {
            // the heads decide most: meet them often
            let at = at % if head { end.min(140) } else { end };
            bytes[at] ^= mask;
        }
        if cut % 4 == 0 {
            bytes.truncate(cut % (end + 1));
        }
        let ((), peak) = peak_of(|| {
            let Ok(index) = FileIndex::parse(bytes.into()) else { return };
            let value = case.values.iter().find(|value| !value.is_null()).unwrap_or(&Datum::Null);
            for question in questions(&case.data_type, value) {
                let _ = index.evaluate(&question, case.values.len() as u64);
            }
        });
        prop_assert!(peak < ENOUGH, "{peak} bytes of memory");
    }

    #[test]
    fn noise_is_no_index(noise in vec(any::<u8>(), 0..200), pick in 0usize..4) {
        let kind = ["bitmap", "bsi", "range-bitmap", "bloom-filter"][pick];
        let index = index(&[(kind, Some(&noise))]);
        let ((), peak) = peak_of(|| {
            for (data_type, value) in [(DataType::Int, Datum::Int(5)), (DataType::Varchar(9), Datum::String("a".into()))] {
                for question in questions(&data_type, &value) {
                    let _ = index.evaluate(&question, 100);
                }
            }
            let _ = FileIndex::parse(noise.into());
        });
        prop_assert!(peak < ENOUGH, "{peak} bytes of memory");
    }
}
