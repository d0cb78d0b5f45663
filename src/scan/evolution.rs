//! Files whose columns are spread over several files, and branches whose schemas grew apart.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::live::Live;
use super::plan::Stage;
use super::rule::Rule;
use crate::error::{Error, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::options::{ChangelogProducer, MergeEngine};
use crate::spec::{CoreOptions, TableSchema};

/// What is read of an append table, as far as its files may hold columns apart.
pub(crate) struct Wanted<'a> {
    /// Schema the rows are read with.
    pub(crate) schema: &'a TableSchema,
    /// Options of the table.
    pub(crate) options: &'a CoreOptions,
    /// Columns that are read or filtered by, by their place in the schema; None: all.
    pub(crate) columns: Option<&'a BTreeSet<usize>>,
}

impl Wanted<'_> {
    /// Whether nothing is wanted of a file that holds columns of its own.
    fn nothing_of(&self, file: &Live) -> bool {
        let (Some(columns), Some(held)) = (self.columns, &file.entry.file.write_cols) else { return false };
        let schema = file.schema.as_deref().unwrap_or(self.schema);
        held.iter().all(|name| {
            // a column that was dropped meanwhile is wanted by nobody
            let Some(index) = schema.field_index(name) else { return false };
            let id = schema.fields.get(index).map(|field| field.id);
            let now = self.schema.fields.iter().position(|field| Some(field.id) == id);
            now.is_none_or(|now| !columns.contains(&now))
        })
    }

    /// The option that keeps columns in files of this kind.
    fn option(&self, kind: &str) -> &'static str {
        let candidates: &[&str] = match kind {
            "vector" => &["vector-field", "vector.file.format"],
            _ => &["blob-field", "blob-descriptor-field", "blob-view-field"],
        };
        candidates.iter().copied().find(|name| self.options.raw.contains_key(*name)).unwrap_or("data-evolution.enabled")
    }
}

/// The kind of a file that holds one column of rows whose other columns are in another file.
fn side_kind(name: &str) -> Option<&str> {
    name.split('.').skip(1).find(|part| matches!(*part, "blob" | "vector"))
}

/// Drops files that hold only columns nobody wants, and refuses files of an append table whose rows are only whole
/// together with other files.
///
/// Files that cover the same row ids hold different columns of the same rows; read one by one they would double the
/// rows. A file that covers its row ids alone is whole: columns it does not hold are null. The `.blob` and `.vector` files
/// beside it add columns, no rows: without those columns it is read alone.
pub(crate) fn check(live: &mut [Live], wanted: &Wanted<'_>) -> Result<()> {
    let mut ranges: Vec<(i64, i64, String)> = Vec::new();
    let mut sides: Vec<(usize, Option<(i64, i64)>)> = Vec::new();
    for (number, file) in live.iter().enumerate().filter(|(_, file)| file.is_kept()) {
        let meta = &file.entry.file;
        let rows = meta.first_row_id.map(|first| (first, first.saturating_add(meta.row_count - 1)));
        if let Some(kind) = side_kind(&meta.file_name) {
            if !wanted.nothing_of(file) {
                let columns = meta.write_cols.clone().unwrap_or_default().join(", ");
                return Err(Error::unsupported(format!("columns are kept in a .{kind} file of their own"))
                    .with_code("ColumnFile")
                    .with_context("option", wanted.option(kind))
                    .with_context("column", columns)
                    .with_context("file", &meta.file_name)
                    .with_hint("name the columns that are wanted, without those of such files"));
            }
            sides.push((number, rows));
        } else if let Some((first, last)) = rows.filter(|_| meta.row_count > 0) {
            ranges.push((first, last, meta.file_name.clone()));
        }
    }
    ranges.sort_unstable();
    for (number, rows) in sides {
        let Some(file) = live.get_mut(number) else { continue };
        // rows that no plain file has would be lost with it
        let covered = rows.is_some_and(|(first, last)| {
            let at = ranges.partition_point(|(start, _, _)| *start <= first);
            at.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, end, _)| last <= *end)
        });
        if !covered {
            return Err(Error::corrupt("a file holds columns of rows that no other file has")
                .with_code("ColumnFile")
                .with_context("file", &file.entry.file.file_name)
                .with_hint("read a snapshot or partition without it"));
        }
        file.drop_for(Stage::Column, &Rule::OtherColumns);
    }
    let mut end: Option<(i64, &str)> = None;
    for (first, last, name) in &ranges {
        if let Some((before, other)) = end
            && *first <= before
        {
            if !wanted.options.data_evolution_enabled && live.iter().all(|file| file.entry.file.write_cols.is_none()) {
                return Err(Error::corrupt(format!("two files hold rows of the same row ids: '{other}' and '{name}'"))
                    .with_code("RowIdsOverlap")
                    .with_hint(
                        "a manifest names a file twice, or gives one a wrong _FIRST_ROW_ID or _ROW_COUNT: restore it, or \
                         read another snapshot",
                    ));
            }
            return Err(Error::unsupported(
                "the columns of some rows are spread over several files (data-evolution.enabled)",
            )
            .with_code("DataEvolution")
            .with_context("option", "data-evolution.enabled")
            .with_context("file", format!("{other}, {name}"))
            .with_hint("read a snapshot from before the columns were rewritten"));
        }
        if end.is_none_or(|(before, _)| *last > before) {
            end = Some((*last, name.as_str()));
        }
    }
    Ok(())
}

/// Refuses a branch whose rows would have to be merged by other rules than those of the table it completes.
pub(crate) fn check_branch(source: &Pin, target: &Pin) -> Result<()> {
    let rules = |options: &CoreOptions| {
        let fields: Vec<(String, String)> = options
            .raw
            .iter()
            .filter(|(key, _)| key.starts_with("fields."))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        // where levels above 0 hold whole rows only for one of the two, folding them alike would count twice
        let whole_rows = options.changelog_producer == ChangelogProducer::Lookup
            || options.deletion_vectors_enabled
            || options.force_lookup;
        let plain = options.merge_engine == MergeEngine::Deduplicate && options.sequence_fields.is_empty();
        (
            (options.merge_engine, whole_rows && !plain),
            (options.sequence_fields.clone(), options.sequence_descending, options.sequence_snapshot_ordering),
            (options.ignore_delete, options.partial_update_remove_record_on_delete),
            options.partial_update_remove_record_on_sequence_group.clone(),
            options.aggregation_remove_record_on_delete,
            fields,
        )
    };
    if source.schema.is_primary_key_table() && rules(&source.options) != rules(&target.options) {
        return Err(Error::unsupported("the branches merge rows by different rules")
            .with_code("BranchRulesDiffer")
            .with_context("table", source.table.name())
            .with_hint("read the branches one by one, as t$branch_name"));
    }
    Ok(())
}

/// A schema of another branch with the field ids of the schema rows are read with. Columns are matched by name between
/// the two branches' current schemas, whose ids may have grown apart; columns that only the other branch ever had get
/// ids of no column.
pub(crate) fn aligned(
    file_schema: Arc<TableSchema>,
    source: &Arc<TableSchema>,
    target: &Arc<TableSchema>,
    table: &Table,
) -> Result<Arc<TableSchema>> {
    if Arc::ptr_eq(source, target) {
        return Ok(file_schema);
    }
    let fault = |message: String| {
        Err(Error::unsupported(message)
            .with_code("BranchSchemaDiffers")
            .with_context("table", table.name())
            .with_hint("read the branches one by one, as t$branch_name"))
    };
    if source.primary_keys != target.primary_keys || source.partition_keys != target.partition_keys {
        return fault("the branches have other primary or partition keys".to_string());
    }
    if source.fields.len() != target.fields.len() {
        return fault("the branches have other columns".to_string());
    }
    let mut ids: HashMap<i32, i32> = HashMap::new();
    for field in &target.fields {
        let Some(other) = source.fields.iter().find(|other| other.name == field.name) else {
            return fault(format!("column '{}' is not in branch '{}'", field.name, table.ident().branch));
        };
        if !same_shape(other.data_type(), field.data_type()) {
            return fault(format!("column '{}' has another type in branch '{}'", field.name, table.ident().branch));
        }
        ids.insert(other.id, field.id);
    }
    if ids.iter().all(|(one, other)| one == other) {
        return Ok(file_schema);
    }
    let mut schema = file_schema.as_ref().clone();
    for field in &mut schema.fields {
        // ids start at 0: a negative one is no column's
        field.id = ids.get(&field.id).copied().unwrap_or(-1 - field.id);
    }
    Ok(Arc::new(schema))
}

/// Equal but for nullability inside.
fn same_shape(one: &crate::spec::DataType, other: &crate::spec::DataType) -> bool {
    use crate::spec::DataType as D;
    match (one, other) {
        (D::Array(one), D::Array(other)) | (D::Multiset(one), D::Multiset(other)) => {
            same_shape(&one.data_type, &other.data_type)
        }
        (D::Map(key, value), D::Map(other_key, other_value)) => {
            same_shape(&key.data_type, &other_key.data_type) && same_shape(&value.data_type, &other_value.data_type)
        }
        (D::Row(fields), D::Row(others)) => {
            fields.len() == others.len()
                && fields.iter().zip(others).all(|(one, other)| {
                    one.id == other.id && one.name == other.name && same_shape(one.data_type(), other.data_type())
                })
        }
        (one, other) => one == other,
    }
}
