//! Bytes of one data file, and what it means when they cannot be had.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt};

use super::task::FileTask;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Location, RequestMeter, Storage, storage_error};

/// The code of a file that is gone. Who knows the pin can say whether it expired.
pub(crate) const DATA_FILE_MISSING: &str = "DataFileMissing";

/// One file to read from. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    store: Arc<dyn ObjectStore>,
    location: Location,
    size: u64,
}

impl Access {
    pub(crate) fn new(task: &FileTask) -> Self {
        Self::of(&task.storage, &task.meter, &task.location, task.size)
    }

    /// A file of `size` bytes, whose requests `meter` counts.
    pub(crate) fn of(storage: &Storage, meter: &RequestMeter, location: &Location, size: u64) -> Self {
        Self { store: storage.metered_store(meter), location: location.clone(), size }
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of a range; a range outside of the file is damage.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.check(&range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let wanted = range.end - range.start;
        match self.store.get_range(self.location.path(), range).await {
            Ok(bytes) if bytes.len() as u64 == wanted => Ok(bytes),
            Ok(bytes) => Err(self.damaged(format!("asked for {wanted} bytes, got {}", bytes.len()))),
            Err(error) => Err(self.failed(error).await),
        }
    }

    /// Several ranges, near ones in one request.
    pub(crate) async fn read_all(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            self.check(range)?;
        }
        match self.store.get_ranges(self.location.path(), ranges).await {
            Ok(parts) => {
                let whole = parts.len() == ranges.len()
                    && parts.iter().zip(ranges).all(|(bytes, range)| bytes.len() as u64 == range.end - range.start);
                if whole { Ok(parts) } else { Err(self.damaged("the file ends too early")) }
            }
            Err(error) => Err(self.failed(error).await),
        }
    }

    fn check(&self, range: &Range<u64>) -> Result<()> {
        if range.start > range.end || range.end > self.size {
            return Err(self.damaged(format!(
                "it points at bytes {} to {} of a file of {} bytes",
                range.start, range.end, self.size
            )));
        }
        Ok(())
    }

    /// Damage of this file.
    pub(crate) fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("the data file is damaged: {what}"))
            .with_code("DataFileCorrupt")
            .with_context("file", &self.location)
            .or_restore()
    }

    /// The decoder of this file panicked.
    pub(crate) fn gave_up(&self, words: &str) -> Error {
        self.damaged(format!("its decoder gave up: {words}"))
    }

    /// Adds the file, and the way out of damage, to an error of decoding.
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.with_context("file", &self.location).or_restore()
    }

    /// The file is gone.
    fn missing(&self) -> Error {
        Error::not_found("the data file does not exist (any more)")
            .with_code(DATA_FILE_MISSING)
            .with_context("file", &self.location)
    }

    /// An error of a file that could not be made sense of: where it is longer than its manifest entry says, its end was
    /// looked for in the middle, and the entry is what is damaged.
    pub(crate) async fn or_of_entry(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Corrupt {
            return error;
        }
        match self.store.head(self.location.path()).await {
            Ok(meta) if meta.size > self.size => Error::corrupt(format!(
                "the manifest entry gives the data file {} bytes, it has {}",
                self.size, meta.size
            ))
            .with_code("DataFileCorrupt")
            .with_context("file", &self.location)
            .with_hint("restore the manifest that names the file, or read a snapshot or tag that does not need it")
            .with_source(error),
            _ => error,
        }
    }

    /// Why a read failed: the file is gone, shorter than the manifest says, or the store has its own reason.
    async fn failed(&self, error: object_store::Error) -> Error {
        let error = storage_error(error, "reading the data file", &self.location);
        if error.code() == "FileNotFound" {
            return self.missing().with_source(error);
        }
        match self.store.head(self.location.path()).await {
            Err(object_store::Error::NotFound { .. }) => self.missing().with_source(error),
            Ok(meta) if meta.size < self.size => self
                .damaged(format!("it has {} bytes where the manifest says {}", meta.size, self.size))
                .with_source(error),
            _ => error,
        }
    }
}
