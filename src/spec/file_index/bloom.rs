//! `bloom-filter`: number of hash functions, then the bits. Tells only that a value is not there.

use twox_hash::XxHash64;

use super::damaged;
use super::key::Key;
use super::question::Question;
use super::reader::Reader;
use crate::error::Result;
use crate::spec::data_type::DataType;

/// Hash functions of any sane filter; Java derives some ten at most.
const MAX_FUNCTIONS: i32 = 1000;

/// Whether the file may hold a row that answers the question.
pub fn may_hold(body: &[u8], question: &Question, data_type: &DataType) -> Result<bool> {
    let Question::AnyOf(keys) = question else { return Ok(true) };
    let mut reader = Reader::new(body);
    let functions = reader.i32()?;
    let filter = reader.rest();
    if !(1..=MAX_FUNCTIONS).contains(&functions) || filter.is_empty() {
        return Err(damaged(format!("a Bloom filter has {functions} functions and {} bytes", filter.len())));
    }
    Ok(keys.iter().any(|key| match hash(key, data_type) {
        Some(hash) => test(filter, functions, hash),
        None => true,
    }))
}

#[expect(clippy::cast_possible_truncation, reason = "the hash is taken apart into its halves")]
fn test(filter: &[u8], functions: i32, hash: u64) -> bool {
    let (low, high) = ((hash as u32).cast_signed(), ((hash >> 32) as u32).cast_signed());
    let bits = u64::try_from(filter.len()).unwrap_or(u64::MAX).saturating_mul(8);
    (1..=functions).all(|round| {
        let combined = low.wrapping_add(round.wrapping_mul(high));
        let place = u64::from(if combined < 0 { !combined } else { combined }.cast_unsigned()) % bits;
        let byte = usize::try_from(place / 8).ok().and_then(|at| filter.get(at));
        byte.is_some_and(|byte| byte & (1 << (place % 8)) != 0)
    })
}

/// The 64-bit hash of a value; None for a type that is not hashed.
fn hash(key: &Key, data_type: &DataType) -> Option<u64> {
    Some(match (key, data_type) {
        (_, DataType::Boolean | DataType::Decimal(..)) => return None,
        (Key::Number(value), _) => mix(*value),
        #[expect(clippy::cast_possible_truncation, reason = "the key was widened from a FLOAT")]
        (Key::Float(value), DataType::Float) => mix(i64::from((*value as f32).to_bits().cast_signed())),
        (Key::Float(value), _) => mix(value.to_bits().cast_signed()),
        (Key::Bytes(value), _) => XxHash64::oneshot(0, value),
    })
}

/// Thomas Wang's hash of a 64-bit number, with arithmetic shifts as in Java.
fn mix(value: i64) -> u64 {
    let mut k = value;
    k = (!k).wrapping_add(k << 21);
    k ^= k >> 24;
    k = k.wrapping_add(k << 3).wrapping_add(k << 8);
    k ^= k >> 14;
    k = k.wrapping_add(k << 2).wrapping_add(k << 4);
    k ^= k >> 28;
    k.wrapping_add(k << 31).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::datum::Datum;
    use crate::spec::file_index::key::Literal;
    use crate::spec::vectors::{data_type, datum, hex, vectors};

    #[test]
    fn hashes_are_those_of_java() {
        let cases = vectors(&["bloom_hash"]);
        assert!(cases.len() > 20);
        for case in cases {
            let data_type = data_type(&case["type"]);
            let literal = Literal::new(&datum(&case["value"], &data_type), &data_type).unwrap();
            let expected = case["hash64"].as_i64().unwrap().cast_unsigned();
            assert_eq!(hash(&literal.key, &data_type), Some(expected), "{case}");
        }
    }

    #[test]
    fn filters_of_java_hold_what_was_put_in_and_little_else() {
        for case in vectors(&["bloom_filter"]) {
            let functions = i32::try_from(case["hashFunctions"].as_i64().unwrap()).unwrap();
            let bits = hex(case["bits"].as_str().unwrap());
            for put in case["hashes"].as_array().unwrap() {
                assert!(test(&bits, functions, put.as_i64().unwrap().cast_unsigned()), "{case}");
            }
            let others = (0..1000).filter(|other| test(&bits, functions, mix(*other))).count();
            assert!(others < 400, "{others} of 1000 in {case}");
        }
    }

    #[test]
    fn worked_example_answers() {
        let body = hex("00000003800001004000");
        let ask = |value| {
            let key = Literal::new(&Datum::Int(value), &DataType::Int).unwrap().key;
            may_hold(&body, &Question::AnyOf(vec![key]), &DataType::Int).unwrap()
        };
        assert!(ask(1));
        assert!((2..40).any(|value| !ask(value)));
        assert!(may_hold(&body, &Question::IsNull, &DataType::Int).unwrap());
        assert!(may_hold(&body, &Question::AnyOf(vec![Key::Number(2)]), &DataType::Decimal(9, 0)).unwrap());
    }
}
