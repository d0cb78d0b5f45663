//! Which buckets can hold rows that meet a condition.
//!
//! Allowed only where rows are placed by a hash of the bucket key, and only when every column of the key is bound to
//! few values. The values are brought to exactly the column's type, because the hash depends on it; the bucket count
//! is each entry's own.

use std::collections::{BTreeMap, BTreeSet};

use super::condition::{CastOrder, CompareOp, Condition, cast_order};
use super::literal::scalar_to_datum;
use crate::error::Result;
use crate::spec::arrow_types::arrow_type;
use crate::spec::bucket::bucket_of;
use crate::spec::options::BucketFunction;
use crate::spec::schema::BucketMode;
use crate::spec::{CoreOptions, DataType, Datum, TableSchema};

/// Most combinations of key values that are hashed.
const MAX_COMBINATIONS: usize = 1000;

/// The bucket key of a table whose buckets follow from it.
pub(crate) struct BucketKey {
    columns: Vec<usize>,
    types: Vec<DataType>,
    function: BucketFunction,
}

/// What a condition leaves of the bucket key's values.
#[derive(Debug, Clone, PartialEq)]
enum Bound {
    /// No limit.
    Any,
    /// No row at all.
    Nothing,
    /// Only these values of these columns.
    Values(BTreeMap<usize, Vec<Datum>>),
}

impl BucketKey {
    /// None when buckets do not follow from a hash of columns.
    pub(crate) fn try_new(schema: &TableSchema, options: &CoreOptions) -> Result<Option<Self>> {
        if !matches!(schema.bucket_mode(options), BucketMode::Fixed(_) | BucketMode::Postpone)
            || options.bucket_function == BucketFunction::Unknown
        {
            return Ok(None);
        }
        let columns = schema.bucket_key_indices(options)?;
        let types: Vec<DataType> = columns
            .iter()
            .filter_map(|index| schema.fields.get(*index))
            .map(|field| field.data_type().clone())
            .collect();
        if columns.is_empty() || types.len() != columns.len() {
            return Ok(None);
        }
        Ok(Some(Self { columns, types, function: options.bucket_function }))
    }

    /// Whether rows of a file of another schema were placed by the same types: else its hash is another one.
    pub(crate) fn same_types(&self, schema: &TableSchema, file_schema: &TableSchema) -> bool {
        self.columns.iter().zip(&self.types).all(|(column, data_type)| {
            schema
                .fields
                .get(*column)
                .and_then(|field| file_schema.field_by_id(field.id))
                .is_some_and(|field| field.data_type() == data_type)
        })
    }

    /// The keys that can meet `condition` in a partition, whose expressions have the values that `partition` gives
    /// (None: not known); None when there are too many or any.
    pub(crate) fn keys(
        &self,
        condition: &Condition,
        partition: &dyn Fn(usize) -> Option<bool>,
    ) -> Option<Vec<Vec<Datum>>> {
        let values = match self.bound(condition, partition) {
            Bound::Any => return None,
            Bound::Nothing => return Some(Vec::new()),
            Bound::Values(values) => values,
        };
        let mut keys: Vec<Vec<Datum>> = vec![Vec::new()];
        for (column, data_type) in self.columns.iter().zip(&self.types) {
            let mut stored = Vec::new();
            for value in values.get(column)? {
                stored.extend(stored_forms(value, data_type)?);
            }
            if keys.len().checked_mul(stored.len())? > MAX_COMBINATIONS {
                return None;
            }
            keys = keys
                .into_iter()
                .flat_map(|key| {
                    stored.iter().map(move |value| {
                        let mut key = key.clone();
                        key.push(value.clone());
                        key
                    })
                })
                .collect();
        }
        Some(keys)
    }

    /// The buckets of some keys among `total`; None when it cannot be told.
    pub(crate) fn buckets(&self, keys: &[Vec<Datum>], total: i32) -> Result<Option<BTreeSet<i32>>> {
        if total <= 0 {
            return Ok(None);
        }
        let types: Vec<&DataType> = self.types.iter().collect();
        let mut buckets = BTreeSet::new();
        for key in keys {
            match bucket_of(self.function, key, &types, total)? {
                Some(bucket) => buckets.insert(bucket),
                None => return Ok(None),
            };
        }
        Ok(Some(buckets))
    }

    fn bound(&self, condition: &Condition, partition: &dyn Fn(usize) -> Option<bool>) -> Bound {
        match condition {
            Condition::Unknown => Bound::Any,
            Condition::Never => Bound::Nothing,
            Condition::Partition(number) => match partition(*number) {
                Some(false) => Bound::Nothing,
                _ => Bound::Any,
            },
            Condition::And(parts) => {
                let mut all: BTreeMap<usize, Vec<Datum>> = BTreeMap::new();
                for part in parts {
                    match self.bound(part, partition) {
                        Bound::Any => {}
                        Bound::Nothing => return Bound::Nothing,
                        Bound::Values(values) => {
                            for (column, list) in values {
                                // each list alone is true: the shorter one does
                                let shorter = all.get(&column).is_none_or(|known| known.len() > list.len());
                                if shorter {
                                    all.insert(column, list);
                                }
                            }
                        }
                    }
                }
                if all.is_empty() { Bound::Any } else { Bound::Values(all) }
            }
            Condition::Or(parts) => {
                let mut any: Option<BTreeMap<usize, Vec<Datum>>> = None;
                for part in parts {
                    match self.bound(part, partition) {
                        Bound::Any => return Bound::Any,
                        Bound::Nothing => {}
                        Bound::Values(values) => {
                            any = Some(match any {
                                None => values,
                                Some(known) => known
                                    .into_iter()
                                    .filter_map(|(column, mut list)| {
                                        for value in values.get(&column)? {
                                            if !list.contains(value) {
                                                list.push(value.clone());
                                            }
                                        }
                                        Some((column, list))
                                    })
                                    .collect(),
                            });
                        }
                    }
                }
                match any {
                    None => Bound::Nothing,
                    Some(values) if values.is_empty() => Bound::Any,
                    Some(values) => Bound::Values(values),
                }
            }
            Condition::Compare { column, cast, op: CompareOp::Eq, literal } => {
                self.values(*column, cast.as_ref(), std::slice::from_ref(literal))
            }
            Condition::OneOf { column, cast, literals, negated: false } => {
                self.values(*column, cast.as_ref(), literals)
            }
            Condition::Null { column, negated: false } if self.columns.contains(column) => {
                Bound::Values(BTreeMap::from([(*column, vec![Datum::Null])]))
            }
            _ => Bound::Any,
        }
    }

    fn values(
        &self,
        column: usize,
        cast: Option<&arrow::datatypes::DataType>,
        literals: &[datafusion::common::ScalarValue],
    ) -> Bound {
        let Some(position) = self.columns.iter().position(|known| *known == column) else { return Bound::Any };
        let Some(data_type) = self.types.get(position) else { return Bound::Any };
        if let Some(target) = cast
            && cast_order(&arrow_type(data_type), target) != Some(CastOrder::Strict)
        {
            return Bound::Any;
        }
        let mut values: Vec<Datum> = Vec::new();
        for literal in literals {
            match scalar_to_datum(literal, data_type) {
                Ok(Some(value)) if !value.is_null() => {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                _ => return Bound::Any,
            }
        }
        Bound::Values(BTreeMap::from([(column, values)]))
    }
}

/// The values a writer may have hashed for a value that reads so; None when they are too many to name.
fn stored_forms(value: &Datum, data_type: &DataType) -> Option<Vec<Datum>> {
    Some(match (value, data_type) {
        // ORC drops the blanks that a value was hashed with
        (Datum::String(text), DataType::Char(length)) => {
            let text = text.trim_end_matches(' ');
            let length = usize::try_from(*length).ok()?;
            let free = length.saturating_sub(text.chars().count());
            if free > 64 {
                return None;
            }
            (0..=free).map(|blanks| Datum::String(format!("{text}{}", " ".repeat(blanks)))).collect()
        }
        // pypaimon hashes a NULL of these, and the digits below a microsecond, in another way than Java
        (Datum::Null, DataType::Decimal(precision, _)) if *precision > 18 => return None,
        (Datum::Null, DataType::Timestamp(precision) | DataType::TimestampLtz(precision)) if *precision > 3 => {
            return None;
        }
        (Datum::Timestamp(_, nanos), _) if nanos % 1000 != 0 => return None,
        // zeros of both signs are equal in some engines and hashed apart
        (Datum::Float(number), _) if number.is_nan() => return None,
        (Datum::Double(number), _) if number.is_nan() => return None,
        (Datum::Float(number), _) if *number == 0.0 => vec![Datum::Float(0.0), Datum::Float(-0.0)],
        (Datum::Double(number), _) if *number == 0.0 => vec![Datum::Double(0.0), Datum::Double(-0.0)],
        // ORC reads fractions of the last second before 1970 one second late
        (Datum::Timestamp(millis, nanos), _) if (0..1000).contains(millis) => {
            vec![Datum::Timestamp(*millis, *nanos), Datum::Timestamp(*millis - 1000, *nanos)]
        }
        (value, _) => vec![value.clone()],
    })
}
