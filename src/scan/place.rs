//! Where the files of a plan lie.

use std::collections::HashMap;
use std::sync::Arc;

use super::partitions::PartitionId;
use super::plan::DeletionFile;
use super::vectors::VectorPlace;
use crate::error::{Error, Result};
use crate::snapshot::Table;
use crate::spec::partition_path::{bucket_dir, partition_dir};
use crate::spec::{Bucket, CoreOptions, DataType, Datum, ManifestEntry, TableSchema};
use crate::storage::{Location, Storage};

/// Where an external path of metadata leads. It is complete: who reads it may be anywhere.
async fn external(table: &Table, path: &str) -> Result<(Arc<Storage>, Location)> {
    let has_scheme = path.split_once(':').is_some_and(|(scheme, rest)| !scheme.contains('/') && rest.starts_with('/'));
    if path.contains('\0') || !(path.starts_with('/') || has_scheme) {
        return Err(Error::corrupt(format!("_EXTERNAL_PATH '{}' is no complete path", path.escape_debug()))
            .with_code("InvalidPath"));
    }
    table.storage().resolve(path).await
}

/// Folders of buckets, each derived once from the partition's values.
pub(crate) struct Places<'a> {
    table: &'a Arc<Table>,
    schema: &'a TableSchema,
    options: &'a CoreOptions,
    buckets: HashMap<(PartitionId, i32), Location>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(table: &'a Arc<Table>, schema: &'a TableSchema, options: &'a CoreOptions) -> Self {
        Self { table, schema, options, buckets: HashMap::new() }
    }

    /// A data file: its external path as written, else its bucket's folder.
    pub(crate) async fn data_file(
        &mut self,
        entry: &ManifestEntry,
        number: PartitionId,
        partition: &[Datum],
    ) -> Result<(Arc<Storage>, Location)> {
        if let Some(path) = &entry.file.external_path {
            return external(self.table, path).await;
        }
        let folder = self.bucket_folder(entry.bucket, number, partition)?;
        Ok((Arc::clone(self.table.storage()), folder.join_named(&entry.file.file_name)?))
    }

    /// An index file that holds a deletion vector.
    pub(crate) async fn deletion_file(
        &mut self,
        place: &VectorPlace,
        bucket: Bucket,
        number: PartitionId,
        partition: &[Datum],
    ) -> Result<DeletionFile> {
        let index = &place.index;
        let (storage, location) = match &index.external_path {
            Some(path) => external(self.table, path).await?,
            None if self.options.index_file_in_data_file_dir => (
                Arc::clone(self.table.storage()),
                self.bucket_folder(bucket, number, partition)?.join_named(&index.file_name)?,
            ),
            None => (Arc::clone(self.table.storage()), self.table.index_location(&index.file_name)?),
        };
        let cardinality = match place.range.cardinality {
            Some(count) => Some(u64::try_from(count).map_err(|_| {
                Error::corrupt(format!("the deletion vector of '{}' has {count} rows", place.range.data_file_name))
            })?),
            None => None,
        };
        Ok(DeletionFile { location, storage, offset: place.range.offset, length: place.range.length, cardinality })
    }

    /// Folder of a bucket.
    fn bucket_folder(&mut self, bucket: Bucket, number: PartitionId, partition: &[Datum]) -> Result<Location> {
        if let Some(known) = self.buckets.get(&(number, bucket.0)) {
            return Ok(known.clone());
        }
        let names: Vec<&str> = self.schema.partition_keys.iter().map(String::as_str).collect();
        let types: Vec<&DataType> = self
            .schema
            .partition_indices()?
            .into_iter()
            .filter_map(|index| self.schema.fields.get(index))
            .map(|field| field.data_type())
            .collect();
        let mut folder = self.table.root().clone();
        if let Some(directory) = &self.options.data_file_path_directory {
            // as Hadoop's paths, which know no empty segment
            let directory: Vec<&str> = directory.split('/').filter(|segment| !segment.is_empty()).collect();
            folder = folder.join(&directory.join("/")).map_err(|error| {
                error
                    .with_context("table", self.table.name())
                    .with_context("option", "data-file.path-directory")
                    .with_hint("set the option to the folder below the table that its data files are in")
            })?;
        }
        folder = folder.join(&partition_dir(&names, partition, &types, self.options)?)?.join(&bucket_dir(bucket))?;
        self.buckets.insert((number, bucket.0), folder.clone());
        Ok(folder)
    }
}
