//! Deletion vectors of a snapshot: which rows of which data file are deleted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::manifests::ManifestCache;
use super::partitions::{PartitionId, Partitions};
use crate::error::{Error, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::{DeletionVectorRange, FileKind, IndexFileMeta};

/// Index type of deletion vectors.
const DELETION_VECTORS: &str = "DELETION_VECTORS";

/// A vector: the index file that holds it and where in it.
pub(crate) struct VectorPlace {
    pub(crate) index: Arc<IndexFileMeta>,
    pub(crate) range: DeletionVectorRange,
}

/// The vectors of a snapshot by partition, bucket and data file.
#[derive(Default)]
pub(crate) struct Vectors {
    places: HashMap<(PartitionId, i32), HashMap<String, VectorPlace>>,
}

impl Vectors {
    /// The vector of a data file.
    pub(crate) fn of(&self, partition: PartitionId, bucket: i32, file: &str) -> Option<&VectorPlace> {
        self.places.get(&(partition, bucket))?.get(file)
    }

    /// Reads the index manifest of the pinned snapshot.
    pub(crate) async fn read(
        pin: &Arc<Pin>,
        table: &Arc<Table>,
        cache: &ManifestCache,
        partitions: &mut Partitions,
    ) -> Result<Self> {
        let Some(name) = pin.snapshot.as_ref().and_then(|snapshot| snapshot.index_manifest.clone()) else {
            return Ok(Self::default());
        };
        let files = cache.index_manifest(pin, table, &name).await?;
        let mut vectors = Self::default();
        for index in files.iter() {
            if index.kind != FileKind::Add || index.index_type != DELETION_VECTORS {
                continue;
            }
            let partition = partitions.intern(&index.partition)?;
            let bucket = vectors.places.entry((partition, index.bucket.0)).or_default();
            for range in index.deletion_vectors.iter().flatten() {
                match bucket.entry(range.data_file_name.clone()) {
                    Entry::Vacant(slot) => {
                        slot.insert(VectorPlace { index: Arc::clone(index), range: range.clone() });
                    }
                    Entry::Occupied(_) => {
                        return Err(Error::corrupt(format!(
                            "data file '{}' has two deletion vectors in one snapshot",
                            range.data_file_name
                        ))
                        .with_code("DeletionVectorAmbiguous")
                        .with_context("table", table.name())
                        .with_context("file", table.manifest_location(&name)?));
                    }
                }
            }
        }
        Ok(vectors)
    }
}
