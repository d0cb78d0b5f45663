//! Deletion vectors of a snapshot: which rows of which data file are deleted.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::live::Live;
use super::manifests::index_files;
use super::partitions::{PartitionId, Partitions};
use super::plan::ScanEnv;
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::Pin;
use crate::spec::{DeletionVectorRange, FileKind, IndexFileMeta};
use crate::storage::Location;

/// A vector: the index file that holds it and where in it.
pub(crate) struct VectorPlace {
    pub(crate) index: Arc<IndexFileMeta>,
    pub(crate) range: DeletionVectorRange,
}

/// The vectors of a snapshot by partition, bucket and data file.
#[derive(Default)]
pub(crate) struct Vectors {
    places: HashMap<(PartitionId, i32), HashMap<String, VectorPlace>>,
    /// Index files that list vectors and are not of their type, as shown.
    untyped: Vec<String>,
    empty_manifest: Option<String>,
}

impl Vectors {
    /// The vector of a data file.
    pub(crate) fn of(&self, partition: PartitionId, bucket: i32, file: &str) -> Option<&VectorPlace> {
        self.places.get(&(partition, bucket))?.get(file)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.values().map(HashMap::len).sum()
    }

    /// Index files that list vectors and are of another type, as shown.
    pub(crate) fn untyped(&self) -> &[String] {
        &self.untyped
    }

    /// An index manifest without entries, as shown.
    pub(crate) fn empty_manifest(&self) -> Option<&str> {
        self.empty_manifest.as_deref()
    }

    /// The files that vectors are of and that are not among `live`, sorted.
    pub(crate) fn strays(&self, live: &[Live]) -> Vec<String> {
        let mut left: HashSet<(PartitionId, i32, &str)> = HashSet::with_capacity(self.len());
        for ((partition, bucket), files) in &self.places {
            left.extend(files.keys().map(|name| (*partition, *bucket, name.as_str())));
        }
        for file in live {
            left.remove(&(file.partition, file.entry.bucket.0, file.entry.file.file_name.as_str()));
        }
        let mut names: Vec<String> =
            left.into_iter().map(|(_, bucket, name)| format!("'{name}' in bucket {bucket}")).collect();
        names.sort_unstable();
        names
    }

    /// Reads the index manifest of the pinned snapshot.
    pub(crate) async fn read(pin: &Arc<Pin>, env: &ScanEnv, partitions: &mut Partitions) -> Result<Self> {
        let files = index_files(pin, env).await?;
        let mut vectors = Self::default();
        if files.is_empty() {
            vectors.empty_manifest =
                pin.snapshot.as_ref().and_then(|snapshot| snapshot.index_manifest.as_ref()).map(ToString::to_string);
        }
        for index in files.iter() {
            if !index.holds_vectors() {
                if index.kind == FileKind::Add && index.deletion_vectors.iter().flatten().next().is_some() {
                    vectors.untyped.push(format!("'{}' of type '{}'", index.file_name, index.index_type));
                }
                continue;
            }
            let partition = match partitions.intern(&index.partition) {
                Ok(partition) => partition,
                Err(error) => return Err(in_index_manifest(error, index, pin)),
            };
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
                        .with_context("table", pin.table.name())
                        .with_context("file", index_manifest(pin)?)
                        .or_restore());
                    }
                }
            }
        }
        Ok(vectors)
    }
}

/// An error about what the index manifest says of an index file.
pub(crate) fn in_index_manifest(error: Error, index: &IndexFileMeta, pin: &Pin) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let error = match index_manifest(pin) {
        Ok(location) => error.with_context("file", location),
        Err(_) => error,
    };
    error.with_context("entry", &index.file_name).with_context("table", pin.table.name()).or_restore()
}

/// Where the index manifest of a pin lies.
fn index_manifest(pin: &Pin) -> Result<Location> {
    let name = pin.snapshot.as_ref().and_then(|snapshot| snapshot.index_manifest.as_deref());
    pin.table.manifest_location(name.unwrap_or_default())
}
