//! A naive merge to check the real one against: rows of plain values, one map, one record after the other. It shares no
//! code with the merge room, reads the options as a table states them, and prefers being obvious to being fast.

mod arrays;
mod functions;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::spec::{DataType, RowKind};

pub use arrays::{from_array, to_array};

/// A plain value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// BOOLEAN.
    Bool(bool),
    /// Integers, DATE, TIME, and timestamps in their Arrow unit.
    Int(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, unscaled.
    Decimal(i128),
    /// Text.
    Text(String),
    /// Binaries.
    Bytes(Vec<u8>),
    /// ARRAY.
    List(Vec<Value>),
    /// MAP, as entries.
    Map(Vec<(Value, Value)>),
    /// ROW.
    Row(Vec<Value>),
}

impl Value {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The order of keys: as that of values, but both zeros are one key.
    pub fn key_order(&self, other: &Self) -> Ordering {
        let plain = |value: &Self| match value {
            Self::Float(zero) if *zero == 0.0 => Self::Float(0.0),
            Self::Double(zero) if *zero == 0.0 => Self::Double(0.0),
            other => other.clone(),
        };
        plain(self).order(&plain(other))
    }

    /// The order of sequence fields: as that of values, but both zeros tie, and NaN with every number.
    fn sequence_order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            _ => self.order(other),
        }
    }

    /// The order of values: nulls first, floats as Java compares them, text by bytes.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => java(f64::from(*a), f64::from(*b)),
            (Self::Double(a), Self::Double(b)) => java(*a, *b),
            (Self::List(a), Self::List(b)) | (Self::Row(a), Self::Row(b)) => tuple_order(a, b),
            (Self::Map(a), Self::Map(b)) => {
                let flat = |entries: &[(Self, Self)]| -> Vec<Self> {
                    entries.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect()
                };
                tuple_order(&flat(a), &flat(b))
            }
            _ => Ordering::Equal,
        }
    }

    fn same(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

fn java(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).filter(|o| o.is_ne()).unwrap_or_else(|| {
            // -0.0 before 0.0
            b.is_sign_negative().cmp(&a.is_sign_negative())
        }),
    }
}

fn sequence_order(a: &[Value], b: &[Value]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.sequence_order(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn key_order(a: &[Value], b: &[Value]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.key_order(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn tuple_order(a: &[Value], b: &[Value]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.order(b)).find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// A column of a naive table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether NULL is a value.
    pub nullable: bool,
}

/// A table as the naive merge sees it: the columns that are read, the key, the options as text.
#[derive(Debug, Clone)]
pub struct Table {
    /// The columns that are read.
    pub columns: Vec<Column>,
    /// Key columns in key order.
    pub key: Vec<String>,
    /// Options.
    pub options: BTreeMap<String, String>,
}

/// One stored row.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Values of the columns.
    pub values: Vec<Value>,
    /// `_SEQUENCE_NUMBER`.
    pub sequence: i64,
    /// `_VALUE_KIND`.
    pub kind: RowKind,
    /// Level of its file.
    pub level: i32,
    /// Later runs and files are larger.
    pub place: usize,
}

/// What a key becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// Values of the columns.
    pub values: Vec<Value>,
    /// Sequence number of the last record.
    pub sequence: i64,
    /// Kind of the result.
    pub kind: RowKind,
    /// The record it is, when it is one of those given.
    pub from: Option<usize>,
}

/// Result of a naive merge.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// One row a key, in key order, retracts included.
    pub rows: Vec<Merged>,
    /// Distinct keys.
    pub keys: usize,
}

/// Folds records key by key. The error is the reason why a real merge must fail, too.
///
/// # Errors
/// A retract that an engine or function cannot take, an overflow, a NULL in a NOT NULL column.
pub fn merge(table: &Table, records: &[Record]) -> Result<Outcome, String> {
    let mut keys: Vec<(Vec<Value>, Vec<usize>)> = Vec::new();
    for (number, record) in records.iter().enumerate() {
        let key: Vec<Value> = table.key.iter().map(|name| record.values[table.place(name)].clone()).collect();
        match keys.iter_mut().find(|(known, _)| key_order(known, &key).is_eq()) {
            Some((_, versions)) => versions.push(number),
            None => keys.push((key, vec![number])),
        }
    }
    keys.sort_by(|a, b| key_order(&a.0, &b.0));
    let mut outcome = Outcome { keys: keys.len(), ..Outcome::default() };
    for (_, mut versions) in keys {
        if let [only] = versions.as_slice() {
            outcome.rows.push(as_it_is(records, *only));
            continue;
        }
        table.sort(&mut versions, records);
        if table.is_lookup() {
            let lowest = versions.iter().map(|at| records[*at].level).filter(|level| *level > 0).min();
            let one = versions.iter().copied().find(|at| Some(records[*at].level) == lowest);
            versions.retain(|at| records[*at].level <= 0 || Some(*at) == one);
        }
        outcome.rows.extend(table.fold(records, &versions)?);
    }
    Ok(outcome)
}

fn as_it_is(records: &[Record], at: usize) -> Merged {
    let record = &records[at];
    Merged { values: record.values.clone(), sequence: record.sequence, kind: record.kind, from: Some(at) }
}

/// Sequence columns, protected columns, whether a delete removes the row.
type Group = (Vec<usize>, Vec<usize>, bool);

impl Table {
    fn place(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column.name == name).unwrap_or(usize::MAX)
    }

    fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    fn is_set(&self, key: &str) -> bool {
        self.option(key) == Some("true")
    }

    fn engine(&self) -> &str {
        self.option("merge-engine").unwrap_or("deduplicate")
    }

    fn is_lookup(&self) -> bool {
        self.engine() != "first-row"
            && (self.is_set("force-lookup")
                || self.is_set("deletion-vectors.enabled")
                || self.option("changelog-producer") == Some("lookup"))
    }

    /// Sorts records into the order in which they are folded. One after another, as they were written, they queue up and
    /// go past those behind whom they should not stand.
    fn sort(&self, versions: &mut Vec<usize>, records: &[Record]) {
        let add = |at: &usize| !records[*at].kind.is_retract();
        versions.sort_by_key(|at| (records[*at].sequence, add(at), records[*at].place));
        let mut queue: Vec<usize> = Vec::new();
        for at in versions.drain(..) {
            let mut place = queue.len();
            while place > 0 && self.user_order(&records[at], &records[queue[place - 1]]).is_lt() {
                place -= 1;
            }
            queue.insert(place, at);
        }
        *versions = queue;
    }

    fn user_order(&self, a: &Record, b: &Record) -> Ordering {
        for name in self.option("sequence.field").unwrap_or("").split(',').filter(|name| !name.is_empty()) {
            let (x, y) = (&a.values[self.place(name)], &b.values[self.place(name)]);
            let order = x.sequence_order(y);
            if order.is_ne() {
                let turn =
                    self.option("sequence.field.sort-order") == Some("descending") && !x.is_null() && !y.is_null();
                return if turn { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    fn fold(&self, records: &[Record], versions: &[usize]) -> Result<Option<Merged>, String> {
        let ignore = self.is_set("ignore-delete");
        match self.engine() {
            "deduplicate" => {
                let mut last = None;
                for &at in versions {
                    if !(ignore && records[at].kind.is_retract()) {
                        last = Some(at);
                    }
                }
                Ok(last.map(|at| as_it_is(records, at)))
            }
            "first-row" => {
                let mut first = None;
                for &at in versions {
                    if records[at].kind.is_retract() {
                        if !ignore {
                            return Err("first-row meets a retract".to_string());
                        }
                    } else if first.is_none() {
                        first = Some(at);
                    }
                }
                Ok(first.map(|at| as_it_is(records, at)))
            }
            "aggregation" => self.aggregate(records, versions).map(Some),
            "partial-update" => self.partial_update(records, versions).map(Some),
            other => Err(format!("no engine {other}")),
        }
    }

    /// A record's values as a whole row.
    fn reset(&self, record: &Record) -> Result<Vec<Value>, String> {
        for (value, column) in record.values.iter().zip(&self.columns) {
            if value.is_null() && !column.nullable {
                return Err(format!("{} is NULL", column.name));
            }
        }
        Ok(record.values.clone())
    }

    fn function_name(&self, column: &str) -> Option<&str> {
        self.option(&format!("fields.{column}.aggregate-function"))
            .or_else(|| self.option("fields.default-aggregate-function"))
    }

    fn aggregate(&self, records: &[Record], versions: &[usize]) -> Result<Merged, String> {
        let sequence_fields: Vec<&str> = self.option("sequence.field").unwrap_or("").split(',').collect();
        let mut functions = Vec::new();
        for column in &self.columns {
            let name = if sequence_fields.contains(&column.name.as_str()) {
                "last_value"
            } else if self.key.contains(&column.name) {
                "primary-key"
            } else {
                self.function_name(&column.name).unwrap_or("last_non_null_value")
            };
            functions.push(functions::Function::new(self, column, name));
        }
        let mut row = vec![Value::Null; self.columns.len()];
        let mut kind = RowKind::Insert;
        let mut sequence = 0;
        for &at in versions {
            let record = &records[at];
            sequence = record.sequence;
            kind = RowKind::Insert;
            if record.kind == RowKind::Delete && self.is_set("aggregation.remove-record-on-delete") {
                row = self.reset(record)?;
                kind = RowKind::Delete;
                continue;
            }
            for (at, function) in functions.iter_mut().enumerate() {
                row[at] = if record.kind.is_retract() {
                    function.retract(&row[at], &record.values[at])?
                } else {
                    function.agg(&row[at], &record.values[at])?
                };
            }
        }
        Ok(Merged { values: row, sequence, kind, from: None })
    }

    /// The groups that are read; whether the table has groups at all.
    fn groups(&self) -> (Vec<Group>, bool) {
        let removing: Vec<&str> =
            self.option("partial-update.remove-record-on-sequence-group").unwrap_or("").split(',').collect();
        let mut groups = Vec::new();
        let mut any = false;
        for (key, protected) in &self.options {
            let Some(guards) = key.strip_prefix("fields.").and_then(|rest| rest.strip_suffix(".sequence-group")) else {
                continue;
            };
            any = true;
            let sequence: Vec<usize> = guards.split(',').map(|name| self.place(name)).collect();
            if sequence.contains(&usize::MAX) {
                continue;
            }
            let protected = protected.split(',').map(|name| self.place(name)).collect();
            groups.push((sequence, protected, guards.split(',').any(|name| removing.contains(&name))));
        }
        (groups, any)
    }

    fn partial_update(&self, records: &[Record], versions: &[usize]) -> Result<Merged, String> {
        let (groups, grouped) = self.groups();
        let guard_of = |at: usize| groups.iter().position(|(sequence, ..)| sequence.contains(&at));
        let group_of = |at: usize| {
            groups.iter().position(|(sequence, protected, _)| sequence.contains(&at) || protected.contains(&at))
        };
        let mut functions: Vec<Option<functions::Function>> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            functions.push(if guard_of(at).is_some() {
                None
            } else if self.key.contains(&column.name) {
                Some(functions::Function::new(self, column, "primary-key"))
            } else {
                self.function_name(&column.name).map(|name| functions::Function::new(self, column, name))
            });
        }
        let mut row = vec![Value::Null; self.columns.len()];
        let (mut filled, mut inserted, mut deleted, mut sequence) = (false, false, false, 0);
        'records: for &number in versions {
            let record = &records[number];
            deleted = false;
            let retract = record.kind.is_retract();
            if retract {
                if !filled {
                    row = self.reset(record)?;
                    filled = true;
                }
                if self.is_set("ignore-delete") {
                    continue;
                }
            }
            sequence = record.sequence;
            if retract && !grouped {
                if !self.is_set("partial-update.remove-record-on-delete") {
                    return Err("partial-update meets a retract".to_string());
                }
                if record.kind == RowKind::Delete {
                    row = self.reset(record)?;
                    deleted = true;
                }
                continue;
            }
            if !grouped {
                for (at, value) in record.values.iter().enumerate() {
                    if !value.is_null() {
                        row[at] = value.clone();
                    } else if !self.columns[at].nullable {
                        return Err(format!("{} is NULL", self.columns[at].name));
                    }
                }
                (inserted, filled) = (true, true);
                continue;
            }
            for at in 0..self.columns.len() {
                let value = &record.values[at];
                let Some(group) = group_of(at) else {
                    if !retract {
                        match functions[at].as_mut() {
                            Some(function) => row[at] = function.agg(&row[at], value)?,
                            None if !value.is_null() => row[at] = value.clone(),
                            None => {}
                        }
                    }
                    continue;
                };
                let (guards, _, removes) = &groups[group];
                if guards.iter().all(|guard| record.values[*guard].is_null()) {
                    continue;
                }
                let mine: Vec<Value> = guards.iter().map(|guard| record.values[*guard].clone()).collect();
                let held: Vec<Value> = guards.iter().map(|guard| row[*guard].clone()).collect();
                let newer = sequence_order(&mine, &held).is_ge();
                if guards.contains(&at) {
                    if newer && record.kind == RowKind::Delete && *removes {
                        row = self.reset(record)?;
                        deleted = true;
                        continue 'records;
                    }
                    if newer {
                        for guard in guards {
                            row[*guard] = record.values[*guard].clone();
                        }
                    }
                    continue;
                }
                match (functions[at].as_mut(), newer) {
                    (Some(function), _) if retract => row[at] = function.retract(&row[at], value)?,
                    (Some(function), true) => row[at] = function.agg(&row[at], value)?,
                    (Some(function), false) => row[at] = function.agg_reversed(&row[at], value)?,
                    (None, true) if retract => row[at] = Value::Null,
                    (None, true) => row[at] = value.clone(),
                    (None, false) => {}
                }
            }
            if !retract {
                (inserted, filled) = (true, true);
            }
        }
        let kind = if deleted || !inserted { RowKind::Delete } else { RowKind::Insert };
        Ok(Merged { values: row, sequence, kind, from: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(values: [i64; 2], sequence: i64, kind: RowKind) -> Record {
        let values = values.into_iter().map(Value::Int).collect();
        Record { values, sequence, kind, level: 0, place: 0 }
    }

    fn table(options: &[(&str, &str)]) -> Table {
        let column = |name: &str| Column { name: name.to_string(), data_type: DataType::Int, nullable: true };
        Table {
            columns: vec![column("k"), column("v")],
            key: vec!["k".to_string()],
            options: options.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect(),
        }
    }

    #[test]
    fn the_last_record_of_a_key_wins_and_its_kind_decides() {
        let records = [
            record([1, 10], 1, RowKind::Insert),
            record([1, 11], 2, RowKind::UpdateAfter),
            record([2, 20], 3, RowKind::Insert),
            record([2, 20], 4, RowKind::Delete),
        ];
        let outcome = merge(&table(&[]), &records).unwrap();
        let rows: Vec<_> = outcome.rows.iter().map(|row| (row.from, row.kind)).collect();
        assert_eq!(rows, [(Some(1), RowKind::UpdateAfter), (Some(3), RowKind::Delete)]);
    }

    #[test]
    fn sums_take_retracts_back() {
        let options = [("merge-engine", "aggregation"), ("fields.v.aggregate-function", "sum")];
        let records = [
            record([1, 10], 1, RowKind::Insert),
            record([1, 4], 2, RowKind::UpdateBefore),
            record([1, 1], 3, RowKind::UpdateAfter),
        ];
        let outcome = merge(&table(&options), &records).unwrap();
        assert_eq!(outcome.rows[0].values, [Value::Int(1), Value::Int(7)]);
    }
}
