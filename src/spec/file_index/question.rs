//! A comparison brought to the form that indexes answer.

use super::IndexOp;
use super::key::{Key, Literal};
use crate::spec::data_type::DataType;
use crate::spec::datum::Datum;

/// Blanks that may follow a CHAR literal in the file while readers do not see them. Longer columns are left alone.
const MAX_PADDING: usize = 64;

/// What an index is asked. Answering it gives all rows that match the comparison, and maybe more.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// The value is one of these.
    AnyOf(Vec<Key>),
    /// The value is none of these; null may be counted in.
    NoneOf(Vec<Key>),
    /// The value is under the key, or the key itself.
    Below { key: Key, inclusive: bool },
    /// The value is over the key, or the key itself.
    Above { key: Key, inclusive: bool },
    /// There is no value.
    IsNull,
    /// There is a value.
    IsNotNull,
}

impl Question {
    /// None when no index can answer without losing rows.
    pub fn new(op: IndexOp, literals: &[Datum], data_type: &DataType) -> Option<Self> {
        match op {
            IndexOp::IsNull => return Some(Self::IsNull),
            IndexOp::IsNotNull => return Some(Self::IsNotNull),
            _ => {}
        }
        let known = |literal: &Datum| Literal::new(literal, data_type);
        let is_char = matches!(data_type, DataType::Char(_));
        match (op, literals) {
            (IndexOp::Eq, [_]) | (IndexOp::In, [_, ..]) => {
                let mut keys = Vec::new();
                // null in a list matches nothing
                for literal in literals.iter().filter(|literal| op == IndexOp::Eq || !literal.is_null()) {
                    widen(known(literal)?.key, data_type, &mut keys)?;
                }
                Some(Self::AnyOf(keys)).filter(|_| !literals.iter().all(Datum::is_null))
            }
            // values that differ from a CHAR literal only in blanks, or only in digits that were cut, share its key
            (IndexOp::NotEq, [_]) | (IndexOp::NotIn, [_, ..]) if !is_char => {
                let literals = literals.iter().map(|literal| known(literal).filter(|literal| literal.exact));
                literals.map(|literal| literal.map(|literal| literal.key)).collect::<Option<_>>().map(Self::NoneOf)
            }
            (IndexOp::Lt | IndexOp::LtEq, [literal]) if !is_char => {
                let Literal { key, exact } = known(literal)?;
                let zero = is_zero(&key);
                let key = if zero { Key::Float(0.0) } else { key };
                Some(Self::Below { key, inclusive: op == IndexOp::LtEq || !exact || zero })
            }
            (IndexOp::Gt | IndexOp::GtEq, [literal]) if !is_char => {
                let Literal { key, exact } = known(literal)?;
                let zero = is_zero(&key);
                let key = if zero { Key::Float(-0.0) } else { key };
                Some(Self::Above { key, inclusive: op == IndexOp::GtEq || !exact || zero })
            }
            _ => None,
        }
    }
}

fn is_zero(key: &Key) -> bool {
    matches!(key, Key::Float(value) if *value == 0.0)
}

/// Every key whose value a reader may take for `key`.
fn widen(key: Key, data_type: &DataType, keys: &mut Vec<Key>) -> Option<()> {
    match (key, data_type) {
        (key, _) if is_zero(&key) => keys.extend([Key::Float(0.0), Key::Float(-0.0)]),
        (Key::Bytes(mut text), DataType::Char(length)) => {
            while text.last() == Some(&b' ') {
                text.pop();
            }
            let characters = String::from_utf8_lossy(&text).chars().count();
            let padding = usize::try_from(*length).ok()?.saturating_sub(characters);
            if padding > MAX_PADDING {
                return None;
            }
            keys.extend((0..=padding).map(|blanks| {
                let mut padded = text.clone();
                padded.resize(text.len() + blanks, b' ');
                Key::Bytes(padded)
            }));
        }
        (key, _) => keys.push(key),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(op: IndexOp, literal: Datum, data_type: &DataType) -> Option<Question> {
        Question::new(op, &[literal], data_type)
    }

    #[test]
    fn both_zeros_answer_for_a_zero() {
        let keys = vec![Key::Float(0.0), Key::Float(-0.0)];
        assert_eq!(ask(IndexOp::Eq, Datum::Double(-0.0), &DataType::Double), Some(Question::AnyOf(keys)));
        let below = ask(IndexOp::Lt, Datum::Float(-0.0), &DataType::Float).unwrap();
        assert!(matches!(below, Question::Below { key: Key::Float(v), inclusive: true } if v.is_sign_positive()));
        let above = ask(IndexOp::Gt, Datum::Float(0.0), &DataType::Float).unwrap();
        assert!(matches!(above, Question::Above { key: Key::Float(v), inclusive: true } if v.is_sign_negative()));
    }

    #[test]
    fn nan_null_and_other_types_are_never_asked() {
        for op in [IndexOp::Eq, IndexOp::NotEq, IndexOp::Lt, IndexOp::GtEq, IndexOp::NotIn] {
            assert_eq!(ask(op, Datum::Double(f64::NAN), &DataType::Double), None);
            assert_eq!(ask(op, Datum::Null, &DataType::Int), None);
            assert_eq!(ask(op, Datum::Int(1), &DataType::BigInt), None);
            assert_eq!(ask(op, Datum::Decimal(1, 20, 0), &DataType::Decimal(20, 0)), None);
        }
        assert_eq!(Question::new(IndexOp::In, &[], &DataType::Int), None);
        assert_eq!(Question::new(IndexOp::In, &[Datum::Null], &DataType::Int), None);
        let one = Question::new(IndexOp::In, &[Datum::Null, Datum::Int(1)], &DataType::Int);
        assert_eq!(one, Some(Question::AnyOf(vec![Key::Number(1)])));
    }

    #[test]
    fn cut_digits_widen_ranges_and_forbid_negation() {
        let nanos = DataType::Timestamp(9);
        let at = Datum::Timestamp(5, 1000);
        let key = Key::Number(5001);
        assert_eq!(ask(IndexOp::Eq, at.clone(), &nanos), Some(Question::AnyOf(vec![key.clone()])));
        assert_eq!(ask(IndexOp::NotEq, at.clone(), &nanos), None);
        let above = Question::Above { key: key.clone(), inclusive: true };
        assert_eq!(ask(IndexOp::Gt, at.clone(), &nanos), Some(above));
        let above = Question::Above { key, inclusive: false };
        assert_eq!(ask(IndexOp::Gt, at.clone(), &DataType::Timestamp(6)), Some(above));
        assert_eq!(
            ask(IndexOp::Eq, Datum::Timestamp(-1, 999_000), &DataType::TimestampLtz(6)),
            Some(Question::AnyOf(vec![Key::Number(-1)]))
        );
        assert_eq!(
            ask(IndexOp::Lt, at, &DataType::Timestamp(3)),
            Some(Question::Below { key: Key::Number(5), inclusive: true })
        );
    }

    #[test]
    fn char_literals_are_asked_with_every_padding() {
        let Some(Question::AnyOf(keys)) = ask(IndexOp::Eq, Datum::String("ü ".into()), &DataType::Char(3)) else {
            panic!("no question");
        };
        let texts: Vec<_> = ["ü", "ü ", "ü  "].iter().map(|text| Key::Bytes(text.as_bytes().to_vec())).collect();
        assert_eq!(keys, texts);
        // a tab is no blank
        let tab = ask(IndexOp::Eq, Datum::String("ab\t".into()), &DataType::Char(3));
        assert_eq!(tab, Some(Question::AnyOf(vec![Key::Bytes(b"ab\t".to_vec())])));
        assert_eq!(ask(IndexOp::NotEq, Datum::String("a".into()), &DataType::Char(3)), None);
        assert_eq!(ask(IndexOp::Eq, Datum::String("a".into()), &DataType::Char(100)), None);
    }
}
