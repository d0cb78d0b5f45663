//! Aggregate functions on plain values.

use roaring::RoaringBitmap;

use super::{Column, Table, Value};
use crate::spec::DataType;

/// A function of one column, for one key.
pub(super) struct Function {
    name: String,
    data_type: DataType,
    ignore_retract: bool,
    distinct: bool,
    delimiter: String,
    nested_key: Vec<usize>,
    nested_sequence: Vec<usize>,
    null_strategy: String,
    count_limit: usize,
    time: usize,
    taken: bool,
}

type Folded = Result<Value, String>;

impl Function {
    pub(super) fn new(table: &Table, column: &Column, name: &str) -> Self {
        let option = |suffix: &str| table.option(&format!("fields.{}.{suffix}", column.name));
        let inner: Vec<&str> = match &column.data_type {
            DataType::Array(element) | DataType::Map(_, element) => match &element.data_type {
                DataType::Row(fields) => fields.iter().map(|field| field.name.as_str()).collect(),
                _ => vec![],
            },
            _ => vec![],
        };
        let fields = |suffix: &str| -> Vec<usize> {
            option(suffix).map_or(vec![], |text| {
                text.split(',').filter_map(|name| inner.iter().position(|field| *field == name)).collect()
            })
        };
        let time = match option("ts-field") {
            Some(name) => inner.iter().position(|field| *field == name).unwrap_or(usize::MAX),
            None => inner.len().saturating_sub(1),
        };
        Self {
            name: name.to_string(),
            data_type: column.data_type.clone(),
            ignore_retract: option("ignore-retract") == Some("true"),
            distinct: option("distinct") == Some("true"),
            delimiter: option("list-agg-delimiter").unwrap_or(",").to_string(),
            nested_key: fields("nested-key"),
            nested_sequence: fields("nested-sequence-field"),
            null_strategy: option("nested-key-null-strategy").unwrap_or("merge").to_string(),
            count_limit: option("count-limit").map_or(usize::MAX, |text| text.parse().unwrap_or(0)),
            time,
            taken: false,
        }
    }

    pub(super) fn agg_reversed(&mut self, acc: &Value, input: &Value) -> Folded {
        // collect does not reverse, unless wrapped by ignore-retract
        if self.name == "collect" && !self.ignore_retract { self.agg(acc, input) } else { self.agg(input, acc) }
    }

    pub(super) fn agg(&mut self, acc: &Value, input: &Value) -> Folded {
        let neutral = if acc.is_null() { input } else { acc };
        let either_null = acc.is_null() || input.is_null();
        match self.name.as_str() {
            "primary-key" | "last_value" => Ok(input.clone()),
            "last_non_null_value" => Ok(if input.is_null() { acc.clone() } else { input.clone() }),
            "first_value" | "first_non_null_value" | "first_not_null_value" => {
                if self.taken || (self.name != "first_value" && input.is_null()) {
                    return Ok(acc.clone());
                }
                self.taken = true;
                Ok(input.clone())
            }
            "listagg" => Ok(self.listagg(acc, input)),
            "collect" => Ok(self.collect(acc, input)),
            "nested_update" => self.nested_update(acc, input),
            "nested_partial_update" => self.nested_partial_update(acc, input),
            _ if either_null => Ok(neutral.clone()),
            "sum" => self.arithmetic('+', acc, input),
            "product" => self.arithmetic('*', acc, input),
            "max" => Ok(if acc.order(input).is_lt() { input.clone() } else { acc.clone() }),
            "min" => Ok(if acc.order(input).is_gt() { input.clone() } else { acc.clone() }),
            "bool_and" => Ok(Value::Bool(*acc == Value::Bool(true) && *input == Value::Bool(true))),
            "bool_or" => Ok(Value::Bool(*acc == Value::Bool(true) || *input == Value::Bool(true))),
            "merge_map" => {
                let mut all = vec![];
                for (key, value) in entries(acc).into_iter().chain(entries(input)) {
                    put(&mut all, key, value);
                }
                Ok(Value::Map(all))
            }
            "merge_map_with_keytime" => Ok(self.merge_map_with_keytime(acc, input)),
            "rbm32" => {
                let read = |value: &Value| match value {
                    Value::Bytes(bytes) => RoaringBitmap::deserialize_from(&bytes[..]).map_err(|e| e.to_string()),
                    _ => Err("no bytes".to_string()),
                };
                let mut union: RoaringBitmap = read(acc)?.into_iter().chain(read(input)?).collect();
                union.optimize();
                let mut bytes = vec![];
                union.serialize_into(&mut bytes).map_err(|e| e.to_string())?;
                Ok(Value::Bytes(bytes))
            }
            other => Err(format!("no function {other}")),
        }
    }

    pub(super) fn retract(&self, acc: &Value, input: &Value) -> Folded {
        if self.ignore_retract {
            return Ok(acc.clone());
        }
        match self.name.as_str() {
            "primary-key" => Ok(input.clone()),
            "last_value" => Ok(Value::Null),
            "last_non_null_value" => Ok(if input.is_null() { acc.clone() } else { Value::Null }),
            "sum" | "product" if input.is_null() => Ok(acc.clone()),
            "sum" if acc.is_null() => match input {
                Value::Int(_) => self.arithmetic('-', &Value::Int(0), input),
                Value::Float(x) => Ok(Value::Float(-x)),
                Value::Double(x) => Ok(Value::Double(-x)),
                Value::Decimal(x) => Ok(self.fit(-x)),
                _ => Err("no number".to_string()),
            },
            "sum" => self.arithmetic('-', acc, input),
            "product" if acc.is_null() => Ok(input.clone()),
            "product" => self.arithmetic('/', acc, input),
            "collect" | "merge_map" | "nested_update" if acc.is_null() || input.is_null() => Ok(acc.clone()),
            "collect" => {
                let mut gone = elements(input);
                let mut kept = elements(acc);
                kept.retain(|element| match gone.iter().position(|other| other.same(element)) {
                    Some(at) => {
                        gone.remove(at);
                        false
                    }
                    None => true,
                });
                Ok(Value::List(kept))
            }
            "merge_map" => {
                let gone = entries(input);
                let mut kept = entries(acc);
                kept.retain(|(key, _)| !gone.iter().any(|(other, _)| other.same(key)));
                Ok(Value::Map(kept))
            }
            "nested_update" => {
                let mut rows: Vec<Value> = Vec::new();
                for row in elements(acc).into_iter().filter(|row| !row.is_null()) {
                    if self.nested_key.is_empty() {
                        rows.push(row);
                    } else if self.admits(&row)? {
                        match rows.iter_mut().find(|known| self.same_key(known, &row)) {
                            Some(known) => *known = row,
                            None => rows.push(row),
                        }
                    }
                }
                for gone in elements(input).into_iter().filter(|row| !row.is_null()) {
                    if self.nested_key.is_empty() {
                        rows.retain(|row| !row.same(&gone));
                    } else if self.admits(&gone)? {
                        rows.retain(|row| !self.same_key(row, &gone));
                    }
                }
                Ok(Value::List(rows))
            }
            other => Err(format!("{other} meets a retract")),
        }
    }

    /// A decimal, NULL when its precision is exceeded.
    fn fit(&self, unscaled: i128) -> Value {
        let DataType::Decimal(precision, _) = self.data_type else { return Value::Null };
        if unscaled.unsigned_abs() < 10_u128.pow(precision.into()) { Value::Decimal(unscaled) } else { Value::Null }
    }

    fn arithmetic(&self, op: char, acc: &Value, input: &Value) -> Folded {
        match (acc, input) {
            (Value::Int(a), Value::Int(b)) => {
                let (a, b) = (i128::from(*a), i128::from(*b));
                let result = match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ if b == 0 => return Err("division by zero".to_string()),
                    _ => a / b,
                };
                let bits = match self.data_type {
                    DataType::TinyInt => 8,
                    DataType::SmallInt => 16,
                    DataType::Int => 32,
                    _ => 64,
                };
                let fits = (-(1_i128 << (bits - 1))..1 << (bits - 1)).contains(&result);
                let narrow = i64::try_from(result).ok().filter(|_| fits);
                narrow.map(Value::Int).ok_or_else(|| "overflow".to_string())
            }
            (Value::Float(a), Value::Float(b)) => Ok(Value::Float(match op {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ => a / b,
            })),
            (Value::Double(a), Value::Double(b)) => Ok(Value::Double(match op {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ => a / b,
            })),
            // the tests keep decimals small enough for i128
            (Value::Decimal(a), Value::Decimal(b)) => {
                let DataType::Decimal(precision, scale) = self.data_type else { return Err("no decimal".to_string()) };
                let ten = 10_i128.pow(scale.into());
                match op {
                    '+' if precision <= 18 => Ok(Value::Decimal(a + b)),
                    '-' if precision <= 18 => Ok(Value::Decimal(a - b)),
                    '+' => Ok(self.fit(a + b)),
                    '-' => Ok(self.fit(a - b)),
                    '*' => Ok(self.fit(half_up(a * b, ten))),
                    _ if *b == 0 => Err("division by zero".to_string()),
                    _ => {
                        // finite: some power of ten makes the quotient whole
                        let mut rest = a % b;
                        for _ in 0..60 {
                            rest = rest * 10 % b;
                        }
                        if rest != 0 {
                            return Err("no finite quotient".to_string());
                        }
                        Ok(self.fit(half_up(a * ten, *b)))
                    }
                }
            }
            _ => Err("no numbers".to_string()),
        }
    }

    fn listagg(&self, acc: &Value, input: &Value) -> Value {
        let text = |value: &Value| match value {
            Value::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        match (text(acc), text(input)) {
            (_, None) => acc.clone(),
            (None, Some(_)) => input.clone(),
            (Some(mut all), Some(new)) if self.distinct => {
                let mut known: Vec<String> = all.split(self.delimiter.as_str()).map(str::to_string).collect();
                for token in new.split(self.delimiter.as_str()).filter(|token| !token.trim().is_empty()) {
                    if !known.iter().any(|other| other == token) {
                        known.push(token.to_string());
                        all = format!("{all}{}{token}", self.delimiter);
                    }
                }
                Value::Text(all)
            }
            (Some(all), Some(new)) => Value::Text(format!("{all}{}{new}", self.delimiter)),
        }
    }

    fn collect(&self, acc: &Value, input: &Value) -> Value {
        if acc.is_null() && input.is_null() {
            return Value::Null;
        }
        let (old, new) = (elements(acc), elements(input));
        if !self.distinct {
            return Value::List(old.into_iter().chain(new).collect());
        }
        let DataType::Array(element) = &self.data_type else { return Value::Null };
        // compared one by one: what is there already is not looked at again
        let one_by_one = matches!(element.data_type, DataType::Row(_) | DataType::Binary(_) | DataType::Varbinary(_));
        let mut all: Vec<Value> = Vec::new();
        for value in old {
            if one_by_one || !all.iter().any(|known| known.same(&value)) {
                all.push(value);
            }
        }
        for value in new {
            if !all.iter().any(|known| known.same(&value)) {
                all.push(value);
            }
        }
        Value::List(all)
    }

    fn merge_map_with_keytime(&self, acc: &Value, input: &Value) -> Value {
        let time = |row: &Value| match row {
            Value::Row(fields) => match &fields[self.time] {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let mut all = Vec::new();
        for (key, value) in entries(acc) {
            put(&mut all, key, value);
        }
        for (key, value) in entries(input) {
            if value.is_null() {
                all.retain(|(known, _)| !known.same(&key));
                continue;
            }
            let Some(new) = time(&value) else { continue };
            let old = all.iter().find(|(known, _)| known.same(&key)).and_then(|(_, value)| time(value));
            if old.is_none_or(|old| new.as_bytes() > old.as_bytes()) {
                put(&mut all, key, value);
            }
        }
        Value::Map(all)
    }

    fn key_of<'a>(&self, row: &'a Value) -> Vec<&'a Value> {
        let Value::Row(fields) = row else { return vec![] };
        self.nested_key.iter().map(|at| &fields[*at]).collect()
    }

    fn same_key(&self, a: &Value, b: &Value) -> bool {
        self.key_of(a).iter().zip(self.key_of(b)).all(|(a, b)| a.same(b))
    }

    fn admits(&self, row: &Value) -> Result<bool, String> {
        let null = self.key_of(row).iter().any(|field| field.is_null());
        match self.null_strategy.as_str() {
            "ignore" => Ok(!null),
            "error" if null => Err("a nested key is NULL".to_string()),
            _ => Ok(true),
        }
    }

    fn nested_update(&self, acc: &Value, input: &Value) -> Folded {
        if input.is_null() {
            return Ok(acc.clone());
        }
        let mut rows: Vec<Value> = Vec::new();
        if self.nested_key.is_empty() {
            if elements(acc).len() >= self.count_limit && !acc.is_null() {
                return Ok(acc.clone());
            }
            rows.extend(elements(acc).into_iter().filter(|row| !row.is_null()));
            // NULLs of the accumulated rows count against the limit
            let room = self.count_limit - elements(acc).len();
            rows.extend(elements(input).into_iter().filter(|row| !row.is_null()).take(room));
            return Ok(Value::List(rows));
        }
        for (row, limited) in
            elements(acc).into_iter().map(|row| (row, false)).chain(elements(input).into_iter().map(|row| (row, true)))
        {
            if row.is_null() || !self.admits(&row)? {
                continue;
            }
            let count = rows.len();
            match rows.iter_mut().find(|known| self.same_key(known, &row)) {
                Some(known) => {
                    let tuple = |row: &Value| match row {
                        Value::Row(fields) => self.nested_sequence.iter().map(|at| fields[*at].clone()).collect(),
                        _ => vec![],
                    };
                    if super::tuple_order(&tuple(&row), &tuple(known)).is_ge() {
                        *known = row;
                    }
                }
                None if limited && count >= self.count_limit => {}
                None => rows.push(row),
            }
        }
        Ok(Value::List(rows))
    }

    fn nested_partial_update(&self, acc: &Value, input: &Value) -> Folded {
        if input.is_null() {
            return Ok(acc.clone());
        }
        let mut rows: Vec<Value> = Vec::new();
        for row in elements(acc).into_iter().chain(elements(input)).filter(|row| !row.is_null()) {
            if !self.admits(&row)? {
                continue;
            }
            match rows.iter_mut().find(|known| self.same_key(known, &row)) {
                Some(Value::Row(known)) => {
                    let Value::Row(fields) = row else { continue };
                    for (known, field) in known.iter_mut().zip(fields) {
                        if !field.is_null() {
                            *known = field;
                        }
                    }
                }
                _ => rows.push(row),
            }
        }
        Ok(Value::List(rows))
    }
}

fn half_up(a: i128, b: i128) -> i128 {
    let (quotient, rest) = (a / b, a % b);
    if rest.abs() * 2 >= b.abs() { quotient + if (a < 0) == (b < 0) { 1 } else { -1 } } else { quotient }
}

fn elements(value: &Value) -> Vec<Value> {
    match value {
        Value::List(elements) => elements.clone(),
        _ => vec![],
    }
}

fn entries(value: &Value) -> Vec<(Value, Value)> {
    match value {
        Value::Map(entries) => entries.clone(),
        _ => vec![],
    }
}

fn put(entries: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match entries.iter_mut().find(|(known, _)| known.same(&key)) {
        Some((_, known)) => *known = value,
        None => entries.push((key, value)),
    }
}
