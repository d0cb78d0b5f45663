//! How a table folds the rows of one key.

use std::collections::{BTreeMap, BTreeSet};

use super::aggregation::{Aggregator, DEFAULT_FUNCTION, Keep, function_option};
use crate::error::{Error, Result};
use crate::spec::options::{ChangelogProducer, MergeEngine};
use crate::spec::{CoreOptions, DataField, DataType, TableSchema};

/// Engine, key, order, groups and aggregate functions of a table, checked once. Column numbers are those of the table
/// schema.
#[derive(Debug)]
pub struct MergeRules {
    engine: MergeEngine,
    fields: Vec<DataField>,
    key: Vec<usize>,
    /// All primary key columns, those of the partition included.
    primary_key: BTreeSet<usize>,
    user_sequence: Vec<usize>,
    sequence_descending: bool,
    snapshot_ordering: bool,
    lookup: bool,
    ignore_delete: bool,
    /// A -D resets the row; of partial-update or aggregation, whichever is the engine.
    remove_record_on_delete: bool,
    groups: Vec<SequenceGroup>,
    /// Group of each column, sequence columns included.
    group_of: Vec<Option<usize>>,
    options: BTreeMap<String, String>,
}

/// A sequence group of partial-update.
#[derive(Debug)]
pub(super) struct SequenceGroup {
    /// Columns whose tuple orders the group.
    pub(super) sequence: Vec<usize>,
    /// A -D that the group accepts removes the whole row.
    pub(super) removes_record: bool,
}

/// What folds a column.
#[derive(Debug)]
pub(super) enum ColumnRule {
    /// The engine itself.
    Plain,
    /// An aggregate function.
    Aggregate(Box<Aggregator>),
}

const SEQUENCE_GROUP: &str = "sequence-group";
const AGGREGATE_FUNCTION: &str = "aggregate-function";

/// `fields.<column>.<suffix>` options that change what a merge gives.
const COLUMN_SUFFIXES: &[&str] = &[
    AGGREGATE_FUNCTION,
    "ignore-retract",
    "distinct",
    "list-agg-delimiter",
    "nested-key",
    "nested-key-null-strategy",
    "nested-sequence-field",
    "count-limit",
    "ts-field",
];

impl MergeRules {
    /// Rules of a primary-key table. An option that names an unknown column is an error that names both; an unknown
    /// aggregate function is one only when its column is projected ([`Self::required_columns`]).
    pub fn try_new(schema: &TableSchema, options: &CoreOptions) -> Result<Self> {
        let engine = options.merge_engine;
        let names = Names { fields: &schema.fields };
        let primary_key: Vec<usize> =
            schema.primary_keys.iter().map(|name| names.find(name, "primary key")).collect::<Result<_>>()?;
        let partition: BTreeSet<usize> =
            schema.partition_keys.iter().map(|name| names.find(name, "partition key")).collect::<Result<_>>()?;
        let key: Vec<usize> = primary_key.iter().copied().filter(|column| !partition.contains(column)).collect();
        if key.is_empty() {
            return Err(Error::invalid(if primary_key.is_empty() {
                "a table without a primary key has nothing to merge"
            } else {
                "the primary key has no column besides the partition columns"
            })
            .with_code("NoPrimaryKey"));
        }
        let user_sequence: Vec<usize> =
            options.sequence_fields.iter().map(|name| names.find(name, "sequence.field")).collect::<Result<_>>()?;
        for &column in &key {
            names.check_ordered(column, "primary key")?;
        }
        for &column in &user_sequence {
            names.check_ordered(column, "sequence.field")?;
        }
        if matches!(engine, MergeEngine::PartialUpdate | MergeEngine::Aggregation) {
            names.check_column_options(&options.raw)?;
        }
        let primary_key: BTreeSet<usize> = primary_key.into_iter().collect();
        let (groups, group_of) = match engine {
            MergeEngine::PartialUpdate => sequence_groups(&names, &primary_key, options)?,
            _ => (Vec::new(), vec![None; schema.fields.len()]),
        };
        Ok(Self {
            engine,
            fields: schema.fields.clone(),
            key,
            primary_key,
            user_sequence,
            sequence_descending: options.sequence_descending,
            snapshot_ordering: options.sequence_snapshot_ordering,
            // first-row is never wrapped: its upper levels hold the first row already
            lookup: engine != MergeEngine::FirstRow
                && (options.changelog_producer == ChangelogProducer::Lookup
                    || options.deletion_vectors_enabled
                    || options.force_lookup),
            ignore_delete: options.ignore_delete,
            remove_record_on_delete: match engine {
                MergeEngine::PartialUpdate => options.partial_update_remove_record_on_delete,
                MergeEngine::Aggregation => options.aggregation_remove_record_on_delete,
                MergeEngine::Deduplicate | MergeEngine::FirstRow => false,
            },
            groups,
            group_of,
            options: options.raw.clone(),
        })
    }

    /// The columns a merge needs to give `projection` (table column numbers): projected, key, `sequence.field` and the
    /// sequence columns of groups; ascending, without repeats. Refuses a projected column whose aggregate function is
    /// unknown or unsupported.
    pub fn required_columns(&self, projection: &[usize]) -> Result<Vec<usize>> {
        let mut required: BTreeSet<usize> = self.key.iter().chain(&self.user_sequence).copied().collect();
        for &column in projection {
            self.rule(column)?;
            required.insert(column);
        }
        // a group that can remove the whole row matters even when none of its columns is asked for
        let removing = (0..self.groups.len()).filter(|&group| self.groups[group].removes_record);
        let asked = required.iter().filter_map(|&column| self.group_of.get(column).copied().flatten());
        let groups: BTreeSet<usize> = removing.chain(asked).collect();
        for group in groups {
            required.extend(&self.groups[group].sequence);
        }
        Ok(required.into_iter().collect())
    }

    /// The merge engine.
    pub fn engine(&self) -> MergeEngine {
        self.engine
    }

    /// Key columns (trimmed primary key), in key order.
    pub fn key_columns(&self) -> &[usize] {
        &self.key
    }

    /// Columns of `sequence.field`, in its order; empty when there is none.
    pub fn user_sequence_columns(&self) -> &[usize] {
        &self.user_sequence
    }

    /// Whether the smallest user sequence wins.
    pub fn sequence_descending(&self) -> bool {
        self.sequence_descending
    }

    /// Whether the user sequence orders all rows; not with NaN, which ties with every number.
    pub(super) fn sequence_is_total(&self) -> bool {
        let types = self.user_sequence.iter().filter_map(|column| self.fields.get(*column)).map(DataField::data_type);
        !types.into_iter().any(|data_type| matches!(data_type, DataType::Float | DataType::Double))
    }

    /// Whether rows are ordered by commit: the reader must replace the sequence numbers of every file of source
    /// APPEND by the file's smallest sequence number before it merges or selects (a file of unknown source is an
    /// error).
    pub fn snapshot_ordering(&self) -> bool {
        self.snapshot_ordering
    }

    /// Whether levels above 0 hold complete rows, so that only the lowest of them counts.
    pub fn needs_lookup(&self) -> bool {
        self.lookup
    }

    /// Whether retracts are skipped while merging.
    pub fn ignore_delete(&self) -> bool {
        self.ignore_delete
    }

    /// All of the rules that [`select`](super::select()) goes by, as a text: rules of equal texts select the same rows.
    pub fn of_selection(&self) -> String {
        let column = |at: &usize| self.fields.get(*at).map(|field| (field.id, field.data_type()));
        let columns = |columns: &[usize]| columns.iter().map(column).collect::<Vec<_>>();
        format!(
            "{:?} key {:?} sequence {:?} descending {} by snapshot {} lookup {} ignore delete {}",
            self.engine,
            columns(&self.key),
            columns(&self.user_sequence),
            self.sequence_descending,
            self.snapshot_ordering,
            self.lookup,
            self.ignore_delete
        )
    }

    /// Whether [`select`](super::select()) serves this engine.
    pub fn is_selection(&self) -> bool {
        matches!(self.engine, MergeEngine::Deduplicate | MergeEngine::FirstRow)
    }

    pub(super) fn remove_record_on_delete(&self) -> bool {
        self.remove_record_on_delete
    }

    pub(super) fn groups(&self) -> &[SequenceGroup] {
        &self.groups
    }

    pub(super) fn group_of(&self, column: usize) -> Option<usize> {
        self.group_of.get(column).copied().flatten()
    }

    pub(super) fn field(&self, column: usize) -> Result<&DataField> {
        self.fields.get(column).ok_or_else(|| Error::internal(format!("the table has no column number {column}")))
    }

    /// What folds a column; an error for a function we do not have.
    pub(super) fn rule(&self, column: usize) -> Result<ColumnRule> {
        let field = self.field(column)?;
        let aggregate = |name: &str| -> Result<ColumnRule> {
            let aggregator = Aggregator::try_new(name, field, &self.options)?;
            if aggregator.ignores_retract() && self.engine == MergeEngine::Aggregation && self.remove_record_on_delete {
                return Err(Error::invalid(
                    "'aggregation.remove-record-on-delete' and ignoring retracts exclude each other",
                )
                .with_code("InvalidOption")
                .with_context("option", format!("fields.{}.ignore-retract", field.name)));
            }
            Ok(ColumnRule::Aggregate(Box::new(aggregator)))
        };
        let named = self
            .options
            .get(&format!("fields.{}.{AGGREGATE_FUNCTION}", field.name))
            .or_else(|| self.options.get(DEFAULT_FUNCTION))
            .map(|name| name.trim());
        let keep = || ColumnRule::Aggregate(Box::new(Keep::aggregator(&field.name)));
        match self.engine {
            MergeEngine::Deduplicate | MergeEngine::FirstRow => Ok(ColumnRule::Plain),
            // the order of these checks is Java's: a key column that is a sequence field counts as the latter
            MergeEngine::Aggregation if self.user_sequence.contains(&column) => aggregate("last_value"),
            MergeEngine::Aggregation if self.primary_key.contains(&column) => Ok(keep()),
            MergeEngine::Aggregation => aggregate(named.unwrap_or("last_non_null_value")),
            MergeEngine::PartialUpdate => {
                let group = self.group_of(column);
                if group.is_some_and(|group| self.groups[group].sequence.contains(&column)) {
                    return Ok(ColumnRule::Plain);
                }
                if self.primary_key.contains(&column) {
                    return Ok(keep());
                }
                match named {
                    None => Ok(ColumnRule::Plain),
                    Some(name) if group.is_none() && name != "last_non_null_value" => Err(Error::invalid(format!(
                        "aggregate function `{name}` of a partial-update table needs a sequence group"
                    ))
                    .with_code("InvalidOption")
                    .with_context("column", &field.name)
                    .with_context("option", function_option(&field.name, &self.options))),
                    Some(name) => aggregate(name),
                }
            }
        }
    }
}

/// Finds the columns that options name.
struct Names<'a> {
    fields: &'a [DataField],
}

impl Names<'_> {
    fn find(&self, name: &str, option: &str) -> Result<usize> {
        let exact = self.fields.iter().position(|field| field.name == name);
        let found = exact.or_else(|| self.fields.iter().position(|field| field.name == name.trim()));
        found.ok_or_else(|| {
            let columns: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
            Error::invalid(format!("'{option}' names column `{name}`, which the table does not have"))
                .with_code("OptionColumnUnknown")
                .with_context("option", option)
                .with_context("column", name)
                .with_hint(format!(
                    "if the column was renamed, set the option for its new name; columns: {}",
                    columns.join(", ")
                ))
        })
    }

    fn check_ordered(&self, column: usize, option: &str) -> Result<()> {
        let Some(field) = self.fields.get(column) else { return Ok(()) };
        match field.data_type() {
            DataType::Array(_)
            | DataType::Map(..)
            | DataType::Multiset(_)
            | DataType::Row(_)
            | DataType::Vector(..)
            | DataType::Variant
            | DataType::Blob
            | DataType::Geometry(_)
            | DataType::Geography(_) => {
                Err(Error::unsupported(format!("rows cannot be ordered by a column of type {:?}", field.data_type()))
                    .with_context("column", &field.name)
                    .with_context("option", option))
            }
            _ => Ok(()),
        }
    }

    /// Every option about one column must find its column: a forgotten rename would silently merge differently.
    fn check_column_options(&self, options: &BTreeMap<String, String>) -> Result<()> {
        for option in options.keys() {
            let Some(rest) = option.strip_prefix("fields.") else { continue };
            let column = COLUMN_SUFFIXES.iter().find_map(|suffix| rest.strip_suffix(suffix)?.strip_suffix('.'));
            if let Some(column) = column {
                self.find(column, option)?;
            }
        }
        Ok(())
    }
}

/// The groups, and the group of each column.
fn sequence_groups(
    names: &Names<'_>,
    primary_key: &BTreeSet<usize>,
    options: &CoreOptions,
) -> Result<(Vec<SequenceGroup>, Vec<Option<usize>>)> {
    let mut groups: Vec<SequenceGroup> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; names.fields.len()];
    for (option, protected) in &options.raw {
        let guard =
            option.strip_prefix("fields.").and_then(|rest| rest.strip_suffix(SEQUENCE_GROUP)?.strip_suffix('.'));
        let Some(guard) = guard else { continue };
        let sequence: Vec<usize> = guard.split(',').map(|name| names.find(name, option)).collect::<Result<_>>()?;
        let protected: Vec<usize> = protected.split(',').map(|name| names.find(name, option)).collect::<Result<_>>()?;
        for &column in &sequence {
            names.check_ordered(column, option)?;
        }
        let number = groups.len();
        for &column in sequence.iter().chain(&protected) {
            let name = || names.fields.get(column).map_or("", |field| field.name.as_str());
            let wrong = |why: &str| {
                Error::invalid(format!("column `{}` {why}", name()))
                    .with_code("InvalidOption")
                    .with_context("option", option)
                    .with_context("column", name())
            };
            if primary_key.contains(&column) {
                return Err(wrong("belongs to the primary key and cannot be in a sequence group"));
            }
            match group_of.get_mut(column) {
                Some(Some(group)) if *group == number => {}
                Some(Some(_)) => return Err(wrong("is in two sequence groups")),
                Some(slot) => *slot = Some(number),
                None => {}
            }
        }
        groups.push(SequenceGroup { sequence, removes_record: false });
    }
    let option = "partial-update.remove-record-on-sequence-group";
    for name in &options.partial_update_remove_record_on_sequence_group {
        let column = names.find(name, option)?;
        let group = group_of.get(column).copied().flatten().and_then(|group| groups.get_mut(group));
        match group.filter(|group| group.sequence.contains(&column)) {
            Some(group) => group.removes_record = true,
            None => {
                return Err(Error::invalid(format!("column `{name}` is no sequence column of a sequence group"))
                    .with_code("InvalidOption")
                    .with_context("option", option)
                    .with_context("column", name));
            }
        }
    }
    Ok((groups, group_of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::testkit::{options, schema};

    fn rules(pairs: &[(&str, &str)]) -> Result<MergeRules> {
        let schema = schema(&["k", "g", "a", "b", "h", "c"], &["k"]);
        MergeRules::try_new(&schema, &options(pairs))
    }

    #[test]
    fn a_projected_column_brings_key_sequence_field_and_the_sequence_of_its_group() {
        let rules =
            rules(&[("merge-engine", "partial-update"), ("sequence.field", "c"), ("fields.g.sequence-group", "a,b")])
                .unwrap();
        assert_eq!(rules.required_columns(&[3]).unwrap(), [0, 1, 3, 5]);
        assert_eq!(rules.required_columns(&[4]).unwrap(), [0, 4, 5]);
        assert_eq!(rules.required_columns(&[]).unwrap(), [0, 5]);
    }

    #[test]
    fn a_group_that_removes_rows_is_read_whatever_is_projected() {
        let rules = rules(&[
            ("merge-engine", "partial-update"),
            ("fields.g,h.sequence-group", "a,b"),
            ("partial-update.remove-record-on-sequence-group", "h"),
        ])
        .unwrap();
        assert_eq!(rules.required_columns(&[5]).unwrap(), [0, 1, 4, 5]);
    }

    #[test]
    fn an_option_that_names_a_renamed_column_is_an_error_that_names_both() {
        for (engine, option, value) in [
            ("deduplicate", "sequence.field", "old"),
            ("aggregation", "fields.old.aggregate-function", "sum"),
            ("aggregation", "fields.old.ignore-retract", "true"),
            ("partial-update", "fields.old.sequence-group", "a"),
            ("partial-update", "fields.g.sequence-group", "a,old"),
            ("partial-update", "partial-update.remove-record-on-sequence-group", "old"),
        ] {
            let error = rules(&[("merge-engine", engine), (option, value)]).unwrap_err();
            assert_eq!(error.code(), "OptionColumnUnknown", "{option}");
            let text = error.to_string();
            assert!(text.contains(option) && text.contains("`old`"), "{text}");
        }
    }

    #[test]
    fn an_unknown_function_is_refused_only_when_its_column_is_projected() {
        let rules = rules(&[("merge-engine", "aggregation"), ("fields.a.aggregate-function", "median")]).unwrap();
        assert_eq!(rules.required_columns(&[0, 3]).unwrap(), [0, 3]);
        let error = rules.required_columns(&[2]).unwrap_err();
        assert_eq!(error.code(), "AggregateFunctionUnknown");
        assert!(error.to_string().contains("known functions: sum, product"), "{error}");
    }

    #[test]
    fn a_function_we_lack_is_refused_by_name_with_its_column() {
        for function in ["rbm64", "hll_sketch", "theta_sketch"] {
            let rules = rules(&[("merge-engine", "aggregation"), ("fields.a.aggregate-function", function)]).unwrap();
            let error = rules.required_columns(&[2]).unwrap_err();
            assert_eq!(error.code(), "AggregateFunctionUnsupported");
            assert!(error.to_string().contains(function) && error.to_string().contains("column: a"), "{error}");
        }
    }

    #[test]
    fn groups_that_share_a_column_or_take_a_key_are_errors() {
        for pairs in [
            [("fields.g.sequence-group", "a,b"), ("fields.h.sequence-group", "b,c")],
            [("fields.g.sequence-group", "a"), ("fields.g,h.sequence-group", "b")],
            [("fields.g.sequence-group", "k"), ("bucket", "1")],
        ] {
            let pairs: Vec<_> = pairs.into_iter().chain([("merge-engine", "partial-update")]).collect();
            assert_eq!(rules(&pairs).unwrap_err().code(), "InvalidOption", "{pairs:?}");
        }
    }

    #[test]
    fn first_row_is_not_subject_to_the_lookup_rule() {
        let lookup = |engine| rules(&[("merge-engine", engine), ("force-lookup", "true")]).unwrap().needs_lookup();
        assert!(lookup("deduplicate"));
        assert!(!lookup("first-row"));
    }

    #[test]
    fn partial_update_aggregates_only_inside_groups() {
        let rules = rules(&[
            ("merge-engine", "partial-update"),
            ("fields.g.sequence-group", "a"),
            ("fields.default-aggregate-function", "sum"),
        ])
        .unwrap();
        assert!(rules.required_columns(&[2]).is_ok());
        assert_eq!(rules.required_columns(&[3]).unwrap_err().code(), "InvalidOption");
    }
}
