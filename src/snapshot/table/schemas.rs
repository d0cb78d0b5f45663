//! Schemas of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Table;
use crate::error::{Error, Result};
use crate::snapshot::documents::{Numbered, list_numbered, read_json};
use crate::spec::{SchemaId, TableSchema};
use crate::storage::Location;

impl Table {
    /// A schema by number, of the table as last listed.
    pub async fn schema(&self, id: SchemaId) -> Result<Arc<TableSchema>> {
        let known = self.schema_files.lock().get(&id.0).cloned();
        let file = match known {
            Some(file) => file,
            None => {
                let files = self.list_schemas().await?;
                match files.iter().find(|file| file.number == id.0) {
                    Some(file) => file.clone(),
                    None => return Err(self.missing_schema(id, &files)),
                }
            }
        };
        match self.read_schema(&file).await? {
            Some(schema) => Ok(schema),
            None => Err(self.missing_schema(id, &self.list_schemas().await?)),
        }
    }

    /// The options of a schema in the order of its file, which is read for it; those that its version implies come last.
    pub async fn options_as_written(&self, schema: &TableSchema) -> Result<Vec<(String, String)>> {
        let file = self.branch_root.join(&format!("schema/schema-{}", schema.id))?;
        let names = read_json(&self.storage, &file, |bytes| Ok(TableSchema::option_names(bytes))).await?;
        let mut left = schema.options.clone();
        let written = names.unwrap_or_default().into_iter().filter_map(|name| left.remove_entry(&name));
        let mut options: Vec<(String, String)> = written.collect();
        options.extend(left);
        Ok(options)
    }

    /// The schema with the highest number, by listing. Error `TableNotFound` when there is none.
    pub async fn latest_schema(&self) -> Result<Arc<TableSchema>> {
        // what is listed may be gone when it is read, in a table that is being dropped
        for _ in 0..2 {
            let files = self.list_schemas().await?;
            let Some(last) = files.last() else { break };
            if let Some(schema) = self.read_schema(last).await? {
                return Ok(schema);
            }
        }
        Err(Error::not_found("there is no schema file: this is not a table, or it was dropped")
            .with_code("TableNotFound")
            .with_context("table", self.name())
            .with_context("folder", self.branch_root.join("schema")?)
            .with_hint("if it was not dropped, restore its schema files: nothing of it can be read without them"))
    }

    /// All schema numbers, ascending, by listing.
    pub async fn schema_ids(&self) -> Result<Vec<SchemaId>> {
        Ok(self.list_schemas().await?.iter().map(|file| SchemaId(file.number)).collect())
    }

    /// Schema numbers up to `last`, ascending, of the table as last listed.
    pub(in crate::snapshot) fn listed_schemas(&self, last: SchemaId) -> Vec<SchemaId> {
        let mut ids: Vec<SchemaId> = self.schema_files.lock().keys().copied().map(SchemaId).collect();
        ids.retain(|id| *id <= last);
        ids.sort_unstable();
        ids
    }

    async fn list_schemas(&self) -> Result<Vec<Numbered>> {
        let files = list_numbered(&self.storage, &self.branch_root.join("schema")?, "schema-").await?;
        *self.schema_files.lock() = files.iter().map(|file| (file.number, file.clone())).collect();
        Ok(files)
    }

    async fn read_schema(&self, file: &Numbered) -> Result<Option<Arc<TableSchema>>> {
        let stamp = file.stamp();
        if let Some(known) = self.schemas.get(&stamp) {
            return Ok(Some(known));
        }
        let id = SchemaId(file.number);
        let read = read_json(&self.storage, &file.file.location, |bytes| {
            let schema = TableSchema::from_json(bytes)?;
            if schema.id != id {
                return Err(Error::corrupt(format!("the file of schema {id} holds schema {}", schema.id)));
            }
            Ok(schema)
        });
        let Some(schema) = read.await.map_err(|e| e.with_context("table", self.name()))? else { return Ok(None) };
        let schema = Arc::new(schema);
        let bytes = usize::try_from(file.file.size).unwrap_or(usize::MAX).saturating_mul(2);
        self.schemas.insert(stamp, Arc::clone(&schema), bytes);
        Ok(Some(schema))
    }

    fn schema_file(&self, id: SchemaId) -> Option<Location> {
        self.branch_root.join(&format!("schema/schema-{id}")).ok()
    }

    /// Names the table in an error about its options, and the file of the schema where it is that which says so; `asked`
    /// are those of the caller.
    pub(crate) fn of_options(&self, error: Error, schema: &TableSchema, asked: &BTreeMap<String, String>) -> Error {
        let error = error.with_context("table", self.name());
        let option = error.context().iter().find(|(name, _)| *name == "option").map(|(_, option)| option.clone());
        let said = option.is_some_and(|key| schema.options.contains_key(&key) && !asked.contains_key(&key));
        match self.schema_file(schema.id).filter(|_| said) {
            Some(file) => error.with_context("file", file),
            None => error,
        }
    }

    fn missing_schema(&self, id: SchemaId, known: &[Numbered]) -> Error {
        let numbers: Vec<String> = known.iter().map(|file| file.number.to_string()).collect();
        let mut error = Error::corrupt(format!("schema {id} is missing; there are schemas {}", numbers.join(", ")))
            .with_code("SchemaNotFound")
            .with_context("table", self.name());
        if let Some(file) = self.schema_file(id) {
            error = error.with_context("file", file);
        }
        error.with_hint("restore the schema file: snapshots and data files written with it cannot be read without it")
    }
}
