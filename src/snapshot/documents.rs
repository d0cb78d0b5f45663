//! Small JSON files and hints: read with patience for writes that are half visible.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};

use crate::error::{Error, ErrorKind, Result};
use crate::notice::cannot_be_read;
use crate::storage::{FileEntry, Location, Storage};

/// Pauses before another look at a file that cannot be parsed. A file store may show a write before it is whole; Java
/// waits up to two seconds, a local rename or an object store needs none.
const PAUSES_MS: [u64; 4] = [20, 50, 100, 200];

/// Files read at once.
const PARALLEL: usize = 32;

/// Bytes of a JSON document at most: a schema of ten thousand columns has two million.
const MAX_DOCUMENT: u64 = 64 << 20;

/// Bytes of a hint at most, generously.
const MAX_HINT: u64 = 1024;

/// Reads a JSON file; None when it is not there, which is final. A file that cannot be parsed is looked at again.
pub(super) async fn read_json<T>(
    storage: &Storage,
    file: &Location,
    parse: impl Fn(&[u8]) -> Result<T>,
) -> Result<Option<T>> {
    let mut pauses = PAUSES_MS.iter();
    loop {
        let Some(bytes) = storage.read_opt_within(file, MAX_DOCUMENT).await? else { return Ok(None) };
        let error = match parse(&bytes) {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error.with_context("file", file),
        };
        if error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let Some(pause) = pauses.next() else {
            return Err(match error.hint() {
                Some(_) => error,
                None => error.with_hint(
                    "the file stayed so over several looks: restore it, or read another snapshot, a tag or a branch",
                ),
            });
        };
        tokio::time::sleep(Duration::from_millis(*pause)).await;
    }
}

/// The number in a hint file; None when the file is missing, torn or alien: a hint never makes a read fail.
pub(super) async fn read_hint(storage: &Storage, file: &Location) -> Option<i64> {
    const TRIES: usize = 3;
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        match storage.read_opt_within(file, MAX_HINT).await {
            Ok(None) => return None,
            Ok(Some(bytes)) => {
                let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
                if let Some(number) = text.parse().ok().filter(|number| *number > 0) {
                    return Some(number);
                }
                log::debug!("hint {file} is not a number: {:?}", text.get(..text.len().min(40)));
            }
            Err(error) => log::debug!("hint {file} cannot be read: {error}"),
        }
    }
    None
}

/// A file named `<prefix><number>`, as `snapshot-7`.
#[derive(Debug, Clone)]
pub(super) struct Numbered {
    pub(super) number: i64,
    pub(super) file: FileEntry,
}

impl Numbered {
    /// What tells this version of the file from another one under the same name.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            number: self.number,
            size: self.file.size,
            modified_millis: self.file.modified_millis,
            e_tag: self.file.e_tag.clone(),
        }
    }
}

/// A numbered file as it was listed. Numbers are used again after a rollback, or when a table is dropped and made anew:
/// a cache that is keyed by stamps never serves the file that was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    number: i64,
    size: u64,
    modified_millis: i64,
    e_tag: Option<String>,
}

/// The files `<prefix><number>` of a folder, by number. Hints, temporary files and strange names are passed over.
pub(super) async fn list_numbered(storage: &Storage, folder: &Location, prefix: &str) -> Result<Vec<Numbered>> {
    let files = storage.list(folder).await?;
    let mut found: Vec<Numbered> = files
        .into_iter()
        .filter_map(|file| {
            let digits = file.name.strip_prefix(prefix)?;
            let number: i64 = digits.parse().ok()?;
            // `007` and `+7` are other files than the one we would read
            (number >= 0 && number.to_string() == digits).then_some(Numbered { number, file })
        })
        .collect();
    found.sort_by_key(|numbered| numbered.number);
    Ok(found)
}

/// The files `<prefix><name>` of a folder, by name.
pub(super) async fn list_named(storage: &Storage, folder: &Location, prefix: &str) -> Result<Vec<(String, Location)>> {
    let files = storage.list(folder).await?;
    let named = files.into_iter().filter_map(|file| {
        let name = file.name.strip_prefix(prefix).filter(|name| !name.is_empty())?;
        Some((name.to_string(), file.location))
    });
    Ok(named.collect())
}

/// Named JSON files as far as they can be read, and the names of those that cannot.
#[derive(Debug, Clone)]
pub struct Readable<T> {
    /// Those that were read, by name.
    pub found: Vec<(String, T)>,
    /// Names of torn and alien files, and of those without rights.
    pub unreadable: Vec<String>,
}

impl<T> Readable<T> {
    /// What to say about the ones that cannot be read; None when all can. `what`: `tag`.
    pub(crate) fn complaint(&self, what: &str) -> Option<String> {
        (!self.unreadable.is_empty()).then(|| cannot_be_read(what, &self.unreadable))
    }
}

/// Reads named JSON files together; what vanished since the listing is left out, one that cannot be read does not hide
/// the others. Storage that does not answer is an error all the same: the next try may tell more.
pub(super) async fn read_readable<T>(
    storage: &Storage,
    named: Vec<(String, Location)>,
    parse: impl Fn(&[u8]) -> Result<T> + Copy,
) -> Result<Readable<T>> {
    let reads = named.into_iter().map(|(name, file)| async move { (name, read_json(storage, &file, parse).await) });
    let read: Vec<(String, Result<Option<T>>)> = stream::iter(reads).buffered(PARALLEL).collect().await;
    let mut readable = Readable { found: Vec::new(), unreadable: Vec::new() };
    for (name, value) in read {
        match value {
            Ok(Some(value)) => readable.found.push((name, value)),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(_) => readable.unreadable.push(name),
        }
    }
    Ok(readable)
}

/// Reads named JSON files together; what vanished since the listing is left out.
pub(super) async fn read_named<T>(
    storage: &Storage,
    named: Vec<(String, Location)>,
    parse: impl Fn(&[u8]) -> Result<T> + Copy,
) -> Result<Vec<(String, T)>> {
    let reads = named.into_iter().map(|(name, file)| async move {
        let value = read_json(storage, &file, parse).await?;
        Ok::<_, Error>(value.map(|value| (name, value)))
    });
    let read: Vec<Option<(String, T)>> = stream::iter(reads).buffered(PARALLEL).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}
