use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::spec::hostile::{ENOUGH, cases, peak_of};

const STRING: DataType = DataType::Varchar(i32::MAX as u32);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn row(arity: u32, bytes: &str) -> BinaryRow {
    let mut all = arity.to_be_bytes().to_vec();
    all.extend(hex(bytes));
    BinaryRow(all.into())
}

#[test]
fn fields_beyond_56_need_a_second_word_of_null_bits() {
    let types = vec![&DataType::Int; 57];
    let values: Vec<Datum> = (0..57).map(|i| if i == 56 { Datum::Null } else { Datum::Int(i) }).collect();
    let pairs: Vec<_> = values.iter().zip(types.iter().copied()).collect();
    let row = BinaryRow::encode(&pairs, RowForm::Serialized).unwrap();
    assert_eq!(row.row_bytes().len(), 16 + 57 * 8);
    assert_eq!(row.decode(&types).unwrap(), values);
}

#[test]
fn rows_of_no_fields_are_empty() {
    assert!(BinaryRow::empty().is_empty());
    assert!(BinaryRow::default().is_empty());
    assert_eq!(BinaryRow::encode(&[], RowForm::Projected).unwrap(), BinaryRow::empty());
    assert_eq!(BinaryRow::empty().decode(&[]).unwrap(), []);
}

#[test]
fn projected_nulls_keep_their_room_and_serialized_ones_do_not() {
    let decimal = DataType::Decimal(20, 5);
    let projected = BinaryRow::encode(&[(&Datum::Null, &decimal)], RowForm::Projected).unwrap();
    assert_eq!(projected, row(1, "0001000000000000 0000000010000000 00000000000000000000000000000000"));
    let serialized = BinaryRow::encode(&[(&Datum::Null, &decimal)], RowForm::Serialized).unwrap();
    assert_eq!(serialized, row(1, "0001000000000000 0000000000000000"));
    assert_eq!(projected.get(0, &decimal).unwrap(), Datum::Null);
    assert_eq!(serialized.get(0, &decimal).unwrap(), Datum::Null);
}

#[test]
fn null_of_a_nested_type_is_null_and_a_value_is_refused() {
    let nested = DataType::Row(Vec::new());
    assert_eq!(row(1, "0001000000000000 0000000000000000").get(0, &nested).unwrap(), Datum::Null);
    assert!(row(1, "0000000000000000 0000000010000000").get(0, &nested).is_err());
}

#[test]
fn row_of_another_arity_is_refused() {
    let one = row(1, "0000000000000000 0100000000000000");
    assert!(one.decode(&[&DataType::Int, &DataType::Int]).is_err());
    assert!(one.get(1, &DataType::Int).is_err());
}

#[test]
fn value_outside_of_the_row_is_refused() {
    assert!(row(1, "0000000000000000 0800000010000000 61626364").get(0, &STRING).is_err());
    assert!(row(1, "0000000000000000 ffffffffffffff7f").get(0, &STRING).is_err());
    // an inline value cannot be longer than seven bytes
    assert!(row(1, "0000000000000000 6162636465666788").get(0, &STRING).is_err());
    assert!(row(0xffff_ffff, "00").arity().is_err());
    assert!(row(0x7fff_ffff, "0000000000000000").get(0x7fff_fffe, &DataType::Int).is_err());
}

#[test]
fn value_of_another_type_is_not_encoded() {
    let error = BinaryRow::encode(&[(&Datum::Int(1), &DataType::BigInt)], RowForm::Projected).unwrap_err();
    assert_eq!(error.code(), "TypeMismatch");
    let wide = Datum::Decimal(i128::MAX, 18, 0);
    assert!(BinaryRow::encode(&[(&wide, &DataType::Decimal(18, 0))], RowForm::Projected).is_err());
}

fn field_of_any_type() -> impl Strategy<Value = (Datum, DataType)> {
    let value = prop_oneof![
        any::<bool>().prop_map(|v| (Datum::Boolean(v), DataType::Boolean)),
        any::<i8>().prop_map(|v| (Datum::TinyInt(v), DataType::TinyInt)),
        any::<i16>().prop_map(|v| (Datum::SmallInt(v), DataType::SmallInt)),
        any::<i32>().prop_map(|v| (Datum::Int(v), DataType::Int)),
        any::<i64>().prop_map(|v| (Datum::BigInt(v), DataType::BigInt)),
        any::<f32>().prop_map(|v| (Datum::Float(v), DataType::Float)),
        any::<f64>().prop_map(|v| (Datum::Double(v), DataType::Double)),
        any::<i64>().prop_map(|v| (Datum::Decimal(v.into(), 18, 3), DataType::Decimal(18, 3))),
        any::<i128>().prop_map(|v| (Datum::Decimal(v, 38, 3), DataType::Decimal(38, 3))),
        any::<i64>().prop_map(|v| (Datum::Timestamp(v, 0), DataType::Timestamp(3))),
        (any::<i64>(), 0..1_000_000).prop_map(|(v, n)| (Datum::Timestamp(v, n), DataType::TimestampLtz(9))),
        "\\PC{0,12}".prop_map(|v| (Datum::String(v), STRING)),
        vec(any::<u8>(), 0..20).prop_map(|v| (Datum::Binary(v), DataType::Varbinary(20))),
    ];
    (value, any::<bool>()).prop_map(|((v, t), null)| if null { (Datum::Null, t) } else { (v, t) })
}

fn form() -> impl Strategy<Value = RowForm> {
    prop_oneof![Just(RowForm::Projected), Just(RowForm::Serialized)]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn rows_come_back(fields in vec(field_of_any_type(), 0..70), form in form()) {
        let pairs: Vec<_> = fields.iter().map(|(v, t)| (v, t)).collect();
        let types: Vec<_> = fields.iter().map(|(_, t)| t).collect();
        let values: Vec<_> = fields.iter().map(|(v, _)| v.clone()).collect();
        let row = BinaryRow::encode(&pairs, form).unwrap();
        prop_assert_eq!(row.row_bytes().len() % 8, 0);
        prop_assert_eq!(row.decode(&types).unwrap(), values);
    }

    #[test]
    fn hostile_rows_are_refused_calmly(
        fields in vec(field_of_any_type(), 1..6),
        flips in vec(any::<(usize, u8)>(), 1..4),
        cut in any::<usize>(),
        noise in vec(any::<u8>(), 0..64),
    ) {
        let pairs: Vec<_> = fields.iter().map(|(v, t)| (v, t)).collect();
        let mut bytes = BinaryRow::encode(&pairs, RowForm::Projected).unwrap().0.to_vec();
        for (at, mask) in flips {
            let at = at % bytes.len();
            bytes[at] ^= mask;
        }
        bytes.truncate(cut % (bytes.len() + 1));
        for bytes in [bytes, noise] {
            let row = BinaryRow(bytes.into());
            let ((), peak) = peak_of(|| {
                for (index, (_, data_type)) in fields.iter().enumerate() {
                    let _ = row.get(index, data_type);
                }
            });
            prop_assert!(peak < ENOUGH, "{peak} bytes of memory");
        }
    }
}
