//! What `object_store`'s local file system does not give: folders with names it cannot express, and files named
//! `…#123`, which it takes for its own half-written ones.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use chrono::DateTime;
use object_store::path::{Path, PathPart};
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta};

/// A name in a folder.
pub(super) struct LocalEntry {
    pub(super) name: String,
    pub(super) is_dir: bool,
    pub(super) size: u64,
    pub(super) modified_millis: i64,
}

/// Where a literal path is on the machine.
pub(super) fn to_machine_path(path: &Path) -> PathBuf {
    PathBuf::from(format!("/{path}"))
}

/// Files named `…#123` cannot be addressed through the local store.
pub(super) fn is_hidden_name(path: &Path) -> bool {
    path.filename()
        .and_then(|name| name.split_once('#'))
        .is_some_and(|(_, suffix)| !suffix.is_empty() && suffix.bytes().all(|b| b.is_ascii_digit()))
}

/// What a folder holds, unsorted; nothing when it is not there. Names that are not UTF-8 or hold control characters
/// cannot belong to a table and are left out.
pub(super) async fn list(folder: &Path) -> io::Result<Vec<LocalEntry>> {
    let folder = to_machine_path(folder);
    blocking(move || {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if is_absent(&e) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = match entry.file_name().into_string() {
                Ok(name) if PathPart::parse(&name).is_ok() => name,
                _ => {
                    log::warn!("ignoring {:?}: not a name of the table format", entry.path());
                    continue;
                }
            };
            // follows links; what vanished since the listing is left out
            let meta = match fs::metadata(entry.path()) {
                Ok(meta) => meta,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            found.push(LocalEntry {
                name,
                is_dir: meta.is_dir(),
                size: meta.len(),
                modified_millis: modified_millis(&meta),
            });
        }
        Ok(found)
    })
    .await
}

/// Whether a folder is there; an error when that cannot be known.
pub(super) async fn is_dir(folder: &Path) -> io::Result<bool> {
    let folder = to_machine_path(folder);
    blocking(move || match fs::metadata(&folder) {
        Ok(meta) => Ok(meta.is_dir()),
        Err(e) if is_absent(&e) => Ok(false),
        Err(e) => Err(e),
    })
    .await
}

/// When a folder was last touched, epoch milliseconds.
pub(super) async fn modified(folder: &Path) -> io::Result<i64> {
    let folder = to_machine_path(folder);
    blocking(move || Ok(modified_millis(&fs::metadata(&folder)?))).await
}

/// Whether nothing is there; a name longer than the disk takes is nobody's.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename)
}

/// Reads a file the local store would not name.
pub(super) async fn get_hidden(path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
    let machine_path = to_machine_path(path);
    let location = path.clone();
    let opened = blocking(move || {
        let file = File::open(&machine_path)?;
        let meta = file.metadata()?;
        Ok((file, meta, machine_path))
    })
    .await;
    let (file, meta, machine_path) = opened.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            object_store::Error::NotFound { path: path.to_string(), source: Box::new(source) }
        }
        _ => generic(source),
    })?;
    let size = meta.len();
    let range = match options.range {
        None => 0..size,
        Some(GetRange::Bounded(range)) => range.start.min(size)..range.end.min(size),
        Some(GetRange::Offset(start)) => start.min(size)..size,
        Some(GetRange::Suffix(last)) => size.saturating_sub(last)..size,
    };
    Ok(GetResult {
        payload: GetResultPayload::File(file, machine_path),
        meta: ObjectMeta {
            location,
            last_modified: DateTime::from_timestamp_millis(modified_millis(&meta)).unwrap_or_default(),
            size,
            e_tag: None,
            version: None,
        },
        range,
        attributes: Default::default(),
    })
}

fn generic(source: io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(source) }
}

fn modified_millis(meta: &fs::Metadata) -> i64 {
    let since = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.unwrap_or_else(|e| Err(io::Error::other(e))),
        Err(_) => work(),
    }
}
