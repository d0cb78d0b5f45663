//! Options that name columns, told in the names of an older schema.
//!
//! Options are always the newest, columns those of the snapshot. A column that was renamed since has its old name in a
//! read of the past, and one that came later is not there: an option that names it must not fail that read.

use std::collections::{BTreeMap, HashMap};

use crate::spec::DataField;

/// Options whose value is a list of columns.
const LISTS: &[&str] = &[
    "sequence.field",
    "bucket-key",
    "partial-update.remove-record-on-sequence-group",
    "blob-field",
    "blob-descriptor-field",
    "blob-view-field",
    "vector-field",
];

const FIELDS: &str = "fields.";
const GROUP: &str = ".sequence-group";

/// The options with every column's name as of `then`. What names only columns that came later is left out; a name of no
/// column stays, so that it is told as such.
pub(super) fn options_then(
    options: &BTreeMap<String, String>,
    now: &[DataField],
    then: &[DataField],
) -> BTreeMap<String, String> {
    let old: HashMap<i32, &str> = then.iter().map(|field| (field.id, field.name.as_str())).collect();
    let names: HashMap<&str, Option<&str>> =
        now.iter().map(|field| (field.name.as_str(), old.get(&field.id).copied())).collect();
    options.iter().filter_map(|(key, value)| told_then(key, value, &names)).collect()
}

fn told_then(key: &str, value: &str, names: &HashMap<&str, Option<&str>>) -> Option<(String, String)> {
    if LISTS.contains(&key) {
        return Some((key.to_string(), list(value, names)?));
    }
    let Some(rest) = key.strip_prefix(FIELDS) else { return Some((key.to_string(), value.to_string())) };
    if let Some(sequence) = rest.strip_suffix(GROUP) {
        return Some((format!("{FIELDS}{}{GROUP}", list(sequence, names)?), list(value, names)?));
    }
    // a column's name may hold dots: the longest that fits
    let column = names.keys().filter(|name| rest.strip_prefix(**name).is_some_and(|tail| tail.starts_with('.')));
    let Some(column) = column.max_by_key(|name| name.len()) else { return Some((key.to_string(), value.to_string())) };
    let then = names.get(column).copied().flatten()?;
    Some((format!("{FIELDS}{then}{}", rest.strip_prefix(*column)?), value.to_string()))
}

/// A list of columns; None when none of them was there.
fn list(columns: &str, names: &HashMap<&str, Option<&str>>) -> Option<String> {
    let then: Vec<&str> = columns
        .split(',')
        .filter_map(|name| match names.get(name.trim()) {
            Some(then) => *then,
            None => Some(name),
        })
        .collect();
    if then.is_empty() { None } else { Some(then.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::FieldType;

    fn columns(columns: &[(i32, &str)]) -> Vec<DataField> {
        let field = |(id, name): &(i32, &str)| DataField {
            id: *id,
            name: (*name).to_string(),
            field_type: FieldType::parse("INT").unwrap(),
            description: None,
            default_value: None,
            sums: false,
        };
        columns.iter().map(field).collect()
    }

    #[test]
    fn names_follow_the_columns_and_later_columns_are_left_out() {
        let now = columns(&[(0, "k"), (1, "total"), (2, "t.s"), (3, "late")]);
        let then = columns(&[(0, "k"), (1, "sum"), (2, "late")]);
        for (key, value, told) in [
            ("bucket", "4", Some(("bucket", "4"))),
            ("sequence.field", "t.s, total", Some(("sequence.field", "late,sum"))),
            ("sequence.field", "late", None),
            ("sequence.field", "late,k", Some(("sequence.field", "k"))),
            ("bucket-key", "k", Some(("bucket-key", "k"))),
            ("fields.total.aggregate-function", "sum", Some(("fields.sum.aggregate-function", "sum"))),
            ("fields.late.aggregate-function", "sum", None),
            ("fields.t.s.ignore-retract", "true", Some(("fields.late.ignore-retract", "true"))),
            ("fields.default-aggregate-function", "sum", Some(("fields.default-aggregate-function", "sum"))),
            ("fields.nobody.aggregate-function", "sum", Some(("fields.nobody.aggregate-function", "sum"))),
            ("fields.t.s,late.sequence-group", "total,late", Some(("fields.late.sequence-group", "sum"))),
            ("fields.late.sequence-group", "total", None),
            ("fields.t.s.sequence-group", "late", None),
            ("fields.t.s.sequence-group", "nobody", Some(("fields.late.sequence-group", "nobody"))),
        ] {
            let options = BTreeMap::from([(key.to_string(), value.to_string())]);
            let told: BTreeMap<_, _> = told.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect();
            assert_eq!(options_then(&options, &now, &then), told, "{key} = {value}");
        }
    }
}
