//! Rows of a batch moved together: without a branch for each row, which a random mask would mispredict.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, downcast_primitive_array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::compute::{FilterBuilder, FilterPredicate, filter};
use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType};
use arrow::error::ArrowError;

/// Rows that one word of a mask speaks of.
const WORD: usize = 64;

/// Live rows of a word up to which they are looked for one by one.
const FEW: u32 = 12;

/// The rows of `batch` whose bits in `live` are set, `count` of them.
pub(super) fn without_gaps(batch: &RecordBatch, live: &BooleanBuffer, count: usize) -> Result<RecordBatch, ArrowError> {
    let mut others = None;
    let columns = batch.columns().iter().map(|column| column_without_gaps(column, live, count, &mut others));
    RecordBatch::try_new(batch.schema(), columns.collect::<Result<Vec<_>, _>>()?)
}

fn column_without_gaps(
    column: &ArrayRef,
    live: &BooleanBuffer,
    count: usize,
    others: &mut Option<FilterPredicate>,
) -> Result<ArrayRef, ArrowError> {
    fn primitive<T: ArrowPrimitiveType>(
        array: &PrimitiveArray<T>,
        live: &BooleanBuffer,
        count: usize,
    ) -> Result<ArrayRef, ArrowError> {
        let values = ScalarBuffer::from(moved(array.values(), live, count));
        let nulls = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => {
                let valid = BooleanArray::new(nulls.inner().clone(), None);
                let valid = filter(&valid, &BooleanArray::new(live.clone(), None))?;
                let valid = valid.as_any().downcast_ref::<BooleanArray>().map(|valid| valid.values().clone());
                valid.map(NullBuffer::new)
            }
            None => None,
        };
        let moved = PrimitiveArray::<T>::try_new(values, nulls)?.with_data_type(array.data_type().clone());
        Ok(Arc::new(moved))
    }
    let array: &dyn Array = column.as_ref();
    downcast_primitive_array!(
        array => primitive(array, live, count),
        _other => {
            let by = others.get_or_insert_with(|| {
                FilterBuilder::new(&BooleanArray::new(live.clone(), None)).optimize().build()
            });
            by.filter(column)
        }
    )
}

fn moved<T: ArrowNativeType>(from: &[T], live: &BooleanBuffer, count: usize) -> Vec<T> {
    // a whole word of rows is written at a time, the dead ones where the next live one goes
    let mut to = vec![T::default(); count + WORD];
    let mut at = 0;
    let chunks = live.bit_chunks();
    let mut words = from.chunks_exact(WORD);
    for (word, rows) in chunks.iter().zip(words.by_ref()) {
        let Some(to) = to.get_mut(at..at + WORD) else { break };
        at += within_word(rows, to, word);
    }
    let rest = words.remainder();
    if let Some(to) = to.get_mut(at..at + WORD) {
        let mut last = [T::default(); WORD];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        at += within_word(&last, to, chunks.remainder_bits());
    }
    to.truncate(at);
    to
}

fn within_word<T: ArrowNativeType>(from: &[T], to: &mut [T], word: u64) -> usize {
    let (Ok(from), Ok(to)) = (<&[T; WORD]>::try_from(from), <&mut [T; WORD]>::try_from(to)) else { return 0 };
    if word == u64::MAX {
        *to = *from;
        return WORD;
    }
    let mut at = 0;
    if word.count_ones() <= FEW {
        let mut word = word;
        while word != 0 {
            to[at % WORD] = from[word.trailing_zeros() as usize % WORD];
            word &= word - 1;
            at += 1;
        }
        return at;
    }
    for (row, value) in from.iter().enumerate() {
        to[at % WORD] = *value;
        at += usize::from((word >> row) & 1 == 1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Int8Array, Int64Array, StringArray, TimestampMillisecondArray};
    use arrow::datatypes::{DataType, Field, Schema};

    #[test]
    fn all_types_lose_exactly_their_dead_rows() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for rows in [1usize, 63, 64, 65, 128, 1000, 8192] {
            for live_of_64 in [0u64, 1, 9, 32, 63, 64] {
                let before = (random() % 7) as usize;
                let bits: Vec<bool> = (0..rows + before).map(|_| random() % 64 < live_of_64).collect();
                let live = BooleanBuffer::from(bits).slice(before, rows);
                let nullable = |value: i64| (value % 5 != 0).then_some(value);
                let numbers: Vec<Option<i64>> = (0..rows as i64).map(nullable).collect();
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(Int64Array::from_iter_values(0..rows as i64)),
                    Arc::new(Int64Array::from(numbers.clone())),
                    Arc::new(Int8Array::from_iter_values((0..rows).map(|row| (row % 100) as i8))),
                    Arc::new(
                        numbers
                            .iter()
                            .map(|value| value.map(i128::from))
                            .collect::<Decimal128Array>()
                            .with_precision_and_scale(12, 2)
                            .unwrap(),
                    ),
                    Arc::new(TimestampMillisecondArray::from(numbers.clone()).with_timezone("UTC")),
                    Arc::new(numbers.iter().map(|value| value.map(|value| value.to_string())).collect::<StringArray>()),
                    Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row % 3 == 0)))),
                ];
                let fields: Vec<Field> = columns
                    .iter()
                    .enumerate()
                    .map(|(at, column)| Field::new(format!("c{at}"), DataType::clone(column.data_type()), true))
                    .collect();
                let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
                // not from the first row on
                let batch = batch.slice(rows / 3, rows - rows / 3);
                let live = live.slice(rows / 3, rows - rows / 3);
                let found = without_gaps(&batch, &live, live.count_set_bits()).unwrap();
                let expected =
                    arrow::compute::filter_record_batch(&batch, &BooleanArray::new(live.clone(), None)).unwrap();
                assert_eq!(found, expected, "{rows} rows, {live_of_64} of 64 live");
            }
        }
    }
}
