//! What this release refuses to read, and what it reads otherwise than somebody may expect.
//!
//! A table is refused where ignoring an option would change rows; a column alone where only it is concerned.

use super::CoreOptions;
use super::given::{Given, lower};
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::spec::data_type::{DataField, DataType};
use crate::spec::schema::TableSchema;

/// Options that must have one of some values (absent is fine), and why others are refused.
const ONLY: &[(&str, &[&str], &str)] = &[
    (
        "type",
        &["table", "materialized-table"],
        "its files follow the rules of another table format, and reading them as this one would give wrong rows",
    ),
    ("chain-table.enabled", &["false"], "rows of a chain table come from several branches, which is not supported"),
    ("batch-scan-mode", &["none"], "this internal mode makes other files visible"),
    ("stream-scan-mode", &["none"], "this internal mode makes other files visible"),
    ("key-value.sequence_number.enabled", &["false"], "this internal switch changes the columns of every row"),
    (
        "query-auth.enabled",
        &["false"],
        "a server has to filter rows and columns by the reader's rights, and reading the files would pass it by",
    ),
    ("postpone.merge-on-read", &["false"], "merging the unordered files of the postpone bucket is not supported"),
];

/// Options that are refused whatever they say.
const ABSENT: &[(&str, &str)] = &[
    ("scan.fallback-snapshot-branch", "rows of a chain table come from several branches, which is not supported"),
    ("scan.fallback-delta-branch", "rows of a chain table come from several branches, which is not supported"),
    (
        "incremental-to-auto-tag",
        "changes up to an automatic tag are not supported; ask for a range of snapshots or tags",
    ),
];

impl CoreOptions {
    /// Refuses tables that this release would read wrongly, naming the option and the reason. The caller adds the
    /// table.
    pub fn check_readable(&self, schema: &TableSchema) -> Result<()> {
        for (option, accepted, reason) in ONLY {
            if let Some(value) = self.raw.get(*option)
                && !accepted.contains(&lower(value).as_str())
            {
                return Err(refused(option, value, reason));
            }
        }
        for (option, reason) in ABSENT {
            if let Some(value) = self.raw.get(*option) {
                return Err(refused(option, value, reason));
            }
        }
        if self.pk_clustering_override && schema.is_primary_key_table() && !self.deletion_vectors_enabled {
            return Err(refused(
                "pk-clustering-override",
                "true",
                "files are not sorted by key, so that versions of a key cannot be merged; only tables with deletion \
                 vectors can be read",
            ));
        }
        Ok(())
    }

    /// Refuses a column that cannot be read although the table can, because its values lie elsewhere or in another form.
    /// To be asked for the columns that are read only.
    ///
    /// # Errors
    /// `UnsupportedOption`, with option and column; the caller adds the table.
    pub fn check_column(&self, field: &DataField) -> Result<()> {
        match self.side_file_refusal(field).or_else(|| self.map_layout_refusal(field)) {
            Some(error) => Err(error
                .with_context("column", &field.name)
                .with_hint("name the columns that are wanted, without this one: the others can be read")),
            None => Ok(()),
        }
    }

    /// BLOB and VECTOR columns whose values lie in files of their own.
    fn side_file_refusal(&self, field: &DataField) -> Option<Error> {
        let given = Given(&self.raw);
        let named = |option: &str| given.names(option).contains(&field.name);
        if contains(field.data_type(), &|data_type| *data_type == DataType::Blob) {
            for option in ["blob-field", "blob-descriptor-field", "blob-view-field"] {
                if named(option) {
                    return Some(refused(option, &field.name, "values of BLOB columns lie in files of their own"));
                }
            }
            if self.data_evolution_enabled {
                let reason = "values of BLOB columns of such tables lie in files of their own";
                return Some(refused("data-evolution.enabled", "true", reason));
            }
        }
        if contains(field.data_type(), &|data_type| matches!(data_type, DataType::Vector(..))) {
            if named("vector-field") {
                return Some(refused("vector-field", &field.name, "values of the column lie in files of their own"));
            }
            if let Some(format) = given.get("vector.file.format") {
                return Some(refused("vector.file.format", format, "VECTOR columns lie in files of their own"));
            }
        }
        None
    }

    /// MAP columns that are spread over shared physical columns.
    fn map_layout_refusal(&self, field: &DataField) -> Option<Error> {
        let option = format!("fields.{}.map.storage-layout", field.name);
        let layout = self.raw.get(&option)?;
        if lower(layout) == "default" {
            return None;
        }
        Some(refused(&option, layout, "the MAP is stored in another physical form"))
    }

    /// Options that are set, not honoured, and change what somebody may expect: one notice each.
    pub fn notices(&self, schema: &TableSchema) -> Vec<Notice> {
        let given = Given(&self.raw);
        let mut notices = Vec::new();
        for field in &schema.fields {
            let option = format!("fields.{}.default-value", field.name);
            if self.raw.contains_key(&option) {
                notices.push(NoticeKind::DefaultValue { option, column: field.name.clone() }.into());
            }
        }
        for option in ["scan.ignore-corrupt-files", "scan.ignore-lost-files"] {
            if given.bool(option, false).unwrap_or(true) {
                notices.push(NoticeKind::UnreadableFilesFail { option: option.to_string() }.into());
            }
        }
        notices
    }
}

/// Whether a type or a part of it is of a kind.
fn contains(data_type: &DataType, wanted: &dyn Fn(&DataType) -> bool) -> bool {
    wanted(data_type)
        || match data_type {
            DataType::Array(element) | DataType::Multiset(element) | DataType::Vector(element, _) => {
                contains(&element.data_type, wanted)
            }
            DataType::Map(key, value) => contains(&key.data_type, wanted) || contains(&value.data_type, wanted),
            DataType::Row(fields) => fields.iter().any(|field| contains(field.data_type(), wanted)),
            _ => false,
        }
}

fn refused(option: &str, value: &str, reason: &str) -> Error {
    Error::unsupported(format!("refused because of option '{option}' = '{value}': {reason}"))
        .with_code("UnsupportedOption")
        .with_context("option", option)
        .with_hint(
            "options are those of the newest schema for every snapshot and tag, so that an older one is refused too: read \
             the table with an engine that knows the option, or change it where the table is written",
        )
}
