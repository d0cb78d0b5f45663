//! Bucket functions: which bucket a key lies in.

use super::binary_row::{BinaryRow, RowForm};
use super::data_type::DataType;
use super::datum::Datum;
use super::options::BucketFunction;
use crate::error::Result;

const SEED: u32 = 42;

/// Murmur hash of a row's bytes, field count not included ([`BinaryRow::row_bytes`]). Rows are whole 8-byte words; bytes
/// after the last whole 4-byte word are not hashed, as in Java.
pub fn hash_row(row: &[u8]) -> i32 {
    let mut hash = SEED;
    for word in row.chunks_exact(4) {
        let mut k = word.iter().rev().fold(0u32, |k, byte| (k << 8) | u32::from(*byte));
        k = k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = (hash ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= u32::try_from(row.len()).unwrap_or(u32::MAX);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)).cast_signed()
}

/// The bucket of a key among `total`; None when the function cannot be computed here (unknown function, type it does
/// not take, `total` not positive), so that nothing may be pruned.
pub fn bucket_of(function: BucketFunction, key: &[Datum], types: &[&DataType], total: i32) -> Result<Option<i32>> {
    if total <= 0 || key.len() != types.len() {
        return Ok(None);
    }
    Ok(match function {
        BucketFunction::Default => {
            let fields: Vec<_> = key.iter().zip(types.iter().copied()).collect();
            let row = BinaryRow::encode(&fields, RowForm::Projected)?;
            // total is positive: the remainder is taken towards zero and its sign dropped
            Some((hash_row(row.row_bytes()) % total).abs())
        }
        BucketFunction::Mod => match key {
            [Datum::Int(value)] => Some(value.rem_euclid(total)),
            [Datum::BigInt(value)] => i32::try_from(value.rem_euclid(i64::from(total))).ok(),
            _ => None,
        },
        BucketFunction::Hive => {
            let mut hash = 0i32;
            for value in key {
                let Some(part) = hive_hash(value) else { return Ok(None) };
                hash = hash.wrapping_mul(31).wrapping_add(part);
            }
            Some((hash & i32::MAX) % total)
        }
        BucketFunction::Unknown => None,
    })
}

/// Hive's hash of one value; None for a type Hive's bucket function does not take.
fn hive_hash(value: &Datum) -> Option<i32> {
    Some(match value {
        Datum::Null => 0,
        Datum::Boolean(v) => i32::from(*v),
        Datum::TinyInt(v) => i32::from(*v),
        Datum::SmallInt(v) => i32::from(*v),
        Datum::Int(v) | Datum::Date(v) | Datum::Time(v) => *v,
        Datum::BigInt(v) => fold(v.cast_unsigned()),
        Datum::Float(v) if *v == 0.0 => 0,
        Datum::Float(v) if v.is_nan() => 0x7fc0_0000,
        Datum::Float(v) => v.to_bits().cast_signed(),
        Datum::Double(v) if *v == 0.0 => 0,
        Datum::Double(v) if v.is_nan() => fold(0x7ff8_0000_0000_0000),
        Datum::Double(v) => fold(v.to_bits()),
        Datum::String(v) => bytes_hash(v.as_bytes()),
        Datum::Binary(v) => bytes_hash(v),
        Datum::Decimal(unscaled, _, scale) => decimal_hash(*unscaled, *scale),
        Datum::Timestamp(..) => return None,
    })
}

/// Both halves of a 64-bit value, one over the other.
#[expect(clippy::cast_possible_truncation, reason = "the hash is defined as the low half")]
fn fold(bits: u64) -> i32 {
    ((bits ^ (bits >> 32)) as u32).cast_signed()
}

fn bytes_hash(bytes: &[u8]) -> i32 {
    bytes.iter().fold(0i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed())))
}

/// Java's `BigDecimal.hashCode` of the value without trailing zeros (the scale never under 0).
#[expect(clippy::cast_possible_truncation, reason = "the magnitude is taken apart into 32-bit words")]
fn decimal_hash(unscaled: i128, scale: u8) -> i32 {
    if unscaled == 0 {
        return 0;
    }
    let (mut unscaled, mut scale) = (unscaled, i32::from(scale));
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    let magnitude = unscaled.unsigned_abs();
    let words = [96, 64, 32, 0].map(|shift| (magnitude >> shift) as u32);
    // leading zero words add nothing: the hash starts at zero
    let hash = words.iter().fold(0i32, |hash, word| hash.wrapping_mul(31).wrapping_add(word.cast_signed()));
    let signed = if unscaled < 0 { hash.wrapping_neg() } else { hash };
    signed.wrapping_mul(31).wrapping_add(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(function: BucketFunction, key: Datum, data_type: &DataType, total: i32) -> Option<i32> {
        bucket_of(function, &[key], &[data_type], total).unwrap()
    }

    #[test]
    fn default_function_takes_the_remainder_towards_zero() {
        // hashes -348168691 and 1340390384
        assert_eq!(bucket(BucketFunction::Default, Datum::BigInt(7), &DataType::BigInt, 4), Some(3));
        assert_eq!(bucket(BucketFunction::Default, Datum::BigInt(7), &DataType::BigInt, 10), Some(1));
        assert_eq!(bucket(BucketFunction::Default, Datum::BigInt(2), &DataType::BigInt, 10), Some(4));
    }

    #[test]
    fn int_and_bigint_of_one_negative_value_hash_differently() {
        assert_ne!(
            bucket(BucketFunction::Default, Datum::Int(-1), &DataType::Int, 1 << 20),
            bucket(BucketFunction::Default, Datum::BigInt(-1), &DataType::BigInt, 1 << 20)
        );
    }

    #[test]
    fn null_decimal_over_18_digits_hashes_with_its_reserved_bytes() {
        assert_eq!(bucket(BucketFunction::Default, Datum::Null, &DataType::Decimal(20, 5), 5), Some(0));
        assert_eq!(bucket(BucketFunction::Default, Datum::Null, &DataType::Decimal(10, 5), 5), Some(4));
    }

    #[test]
    fn mod_function_never_gives_a_negative_bucket_and_takes_one_integer_only() {
        assert_eq!(bucket(BucketFunction::Mod, Datum::Int(-1), &DataType::Int, 5), Some(4));
        assert_eq!(bucket(BucketFunction::Mod, Datum::BigInt(i64::MIN), &DataType::BigInt, 7), Some(6));
        assert_eq!(bucket(BucketFunction::Mod, Datum::String("a".into()), &DataType::Varchar(9), 5), None);
        assert_eq!(bucket(BucketFunction::Mod, Datum::Null, &DataType::Int, 5), None);
    }

    #[test]
    fn hive_function_follows_java_hash_codes() {
        let total = i32::MAX;
        let hive = |value| bucket(BucketFunction::Hive, value, &DataType::Int, total);
        assert_eq!(hive(Datum::String("abc".into())), Some(96354));
        assert_eq!(hive(Datum::BigInt(1 << 32)), Some(1));
        assert_eq!(hive(Datum::Double(-0.0)), Some(0));
        // new BigDecimal("1.5").hashCode() = 31 * 15 + 1
        assert_eq!(hive(Datum::Decimal(1500, 10, 3)), Some(466));
        // new BigDecimal("100").hashCode() = 31 * 100
        assert_eq!(hive(Datum::Decimal(1_000_000, 10, 4)), Some(3100));
        // new BigDecimal("4294967296").hashCode() = 31 * (31 * 1 + 0)
        assert_eq!(hive(Datum::Decimal(1 << 32, 20, 0)), Some(961));
        assert_eq!(hive(Datum::Timestamp(0, 0)), None);
        let two = bucket_of(
            BucketFunction::Hive,
            &[Datum::Int(1), Datum::Boolean(true)],
            &[&DataType::Int, &DataType::Boolean],
            1000,
        );
        assert_eq!(two.unwrap(), Some(32));
    }

    #[test]
    fn no_bucket_without_a_positive_total_or_a_known_function() {
        assert_eq!(bucket(BucketFunction::Default, Datum::Int(1), &DataType::Int, -1), None);
        assert_eq!(bucket(BucketFunction::Default, Datum::Int(1), &DataType::Int, 0), None);
        assert_eq!(bucket(BucketFunction::Unknown, Datum::Int(1), &DataType::Int, 3), None);
    }
}
