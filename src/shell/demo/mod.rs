//! `lakepin demo`: a small warehouse, written by the reference implementation, and the tour through it.

mod tour;

use std::fs;
use std::io::{self, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};

pub use tour::{TOUR, WELCOME};

use crate::error::{Error, Result};

const ARCHIVE: &[u8] = include_bytes!("warehouse.tar.zst");
/// Says that a folder is ours, and what is in it.
const MARK: &str = ".lakepin-demo";
/// Where it is unpacked: a folder that is no database.
const ASIDE: &str = ".lakepin-demo-unpacked";
/// The one database.
const DATABASE: &str = "pay.db";

/// Zone of the story.
pub const ZONE: &str = "+08:00";

/// Where the demo goes when nobody says.
pub fn default_folder() -> PathBuf {
    std::env::temp_dir().join("lakepin-demo")
}

fn failed(what: &str, path: &Path, e: io::Error) -> Error {
    let full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let error = if full {
        // what unpacks says more of itself than of the disk
        Error::unavailable(format!("cannot {what}: no space left on the device"))
            .with_hint("make room, or name a folder elsewhere: lakepin demo DIR")
    } else {
        Error::unavailable(format!("cannot {what}: {e}"))
    };
    error.with_code("Demo").with_context("file", path.display()).with_source(e)
}

/// Makes the warehouse in a folder that is absent, empty or was made by this function, and puts back what was lost of it.
/// Several programs may do so at once.
pub fn make(folder: &Path) -> Result<()> {
    let mark = folder.join(MARK);
    let content = format!("{:08x}\n", crc32fast::hash(ARCHIVE));
    if folder.exists() {
        let mut entries = fs::read_dir(folder).map_err(|e| failed("list the folder", folder, e))?;
        // the mark is looked for last: another program makes it before all else
        if entries.next().is_some() && !mark.is_file() {
            return Err(Error::invalid("the folder is neither empty nor a demo made before")
                .with_code("Usage")
                .with_context("folder", folder.display())
                .with_hint("name another: lakepin demo DIR"));
        }
    }
    let tar = zstd::decode_all(Cursor::new(ARCHIVE)).map_err(|e| failed("unpack the demo", folder, e))?;
    let of_archive = |found: &str| found == content;
    // a demo that is whole may be another user's, who lets nobody write
    if fs::read_to_string(&mark).is_ok_and(|found| of_archive(&found)) && lost_files(&tar, folder)?.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|e| failed("make the folder", folder, e))?;
    // ours from now on, whole only with the right content
    let mut held = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&mark)
        .map_err(|e| failed("write the mark", &mark, e))?;
    // one at a time; where files cannot be locked, nobody else is likely
    let _ = held.lock();
    let mut found = String::new();
    // another text than ours is none
    let _ = held.read_to_string(&mut found);
    let lost = lost_files(&tar, folder)?;
    if of_archive(&found) && lost.is_empty() {
        return Ok(());
    }
    let aside = folder.join(ASIDE);
    remove(&aside)?;
    unpack(&tar, &aside)?;
    let put = |inside: &Path| {
        let target = folder.join(inside);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|e| failed("make a folder", parent, e))?;
        }
        fs::rename(aside.join(inside), &target).map_err(|e| failed("put the demo in its place", &target, e))
    };
    if of_archive(&found) {
        // what somebody added to it stays
        lost.iter().try_for_each(|inside| put(inside))?;
    } else {
        remove(&folder.join(DATABASE))?;
        put(Path::new(DATABASE))?;
    }
    remove(&aside)?;
    let written = held.set_len(0).and_then(|()| held.rewind()).and_then(|()| held.write_all(content.as_bytes()));
    written.map_err(|e| failed("write the mark", &mark, e))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("remove the old demo", folder, e)),
        _ => Ok(()),
    }
}

/// Calls a function with each file of the archive and its path inside of the warehouse.
fn each_file(
    tar: &[u8],
    folder: &Path,
    mut call: impl FnMut(&mut tar::Entry<'_, Cursor<&[u8]>>, &Path) -> Result<()>,
) -> Result<()> {
    let unpacking = |e| failed("unpack the demo", folder, e);
    for entry in tar::Archive::new(Cursor::new(tar)).entries().map_err(unpacking)? {
        let mut entry = entry.map_err(unpacking)?;
        let path = entry.path().map_err(unpacking)?.into_owned();
        match path.strip_prefix("warehouse") {
            Ok(inside) if entry.header().entry_type().is_file() => call(&mut entry, inside)?,
            _ => {}
        }
    }
    Ok(())
}

/// Files of the archive that a folder does not have, or not whole.
fn lost_files(tar: &[u8], folder: &Path) -> Result<Vec<PathBuf>> {
    let mut lost = Vec::new();
    each_file(tar, folder, |entry, inside| {
        let is_there = |found: fs::Metadata| found.is_file() && found.len() == entry.size();
        if !fs::metadata(folder.join(inside)).is_ok_and(is_there) {
            lost.push(inside.to_path_buf());
        }
        Ok(())
    })?;
    Ok(lost)
}

fn unpack(tar: &[u8], folder: &Path) -> Result<()> {
    each_file(tar, folder, |entry, inside| {
        let target = folder.join(inside);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|e| failed("make a folder", parent, e))?;
        }
        entry.unpack(&target).map(drop).map_err(|e| failed("unpack a file", &target, e))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_is_made_once_repaired_when_unfinished_and_touches_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("demo");
        make(&folder).unwrap();
        assert!(folder.join("pay.db/dwd_pay_success/snapshot").is_dir());
        fs::write(folder.join("pay.db/mine"), "").unwrap();
        make(&folder).unwrap();
        assert!(folder.join("pay.db/mine").exists());
        fs::write(folder.join(MARK), "unfinished\n").unwrap();
        make(&folder).unwrap();
        assert!(!folder.join("pay.db/mine").exists());

        assert!(!folder.join(ASIDE).exists());

        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("mine"), "").unwrap();
        assert_eq!(make(&other).unwrap_err().code(), "Usage");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    }

    #[test]
    fn full_disk_is_said_with_the_way_out() {
        let full = io::Error::new(io::ErrorKind::StorageFull, "failed to unpack `x` into `y`");
        let error = failed("unpack a file", Path::new("d/x"), full);
        assert!(error.message().contains("no space left") && error.hint().unwrap().contains("demo DIR"), "{error:?}");
        let other = failed("unpack a file", Path::new("d/x"), io::Error::other("broken"));
        assert_eq!((other.message(), other.hint()), ("cannot unpack a file: broken", None));
    }

    fn files(folder: &Path) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                match path.metadata().unwrap() {
                    folder if folder.is_dir() => folders.push(path),
                    file => found.push((path, file.len())),
                }
            }
        }
        found.sort();
        found
    }

    /// The default folder is everybody's: whoever finds it made finds it whole, at any moment.
    #[test]
    fn many_may_make_the_demo_at_once() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..4 {
            let folder = dir.path().join(format!("demo-{round}"));
            if round > 1 {
                make(&folder).unwrap();
                fs::write(folder.join(MARK), "another").unwrap();
            }
            let made = || {
                make(&folder).unwrap();
                files(&folder)
            };
            let all = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(made)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(all[0].len() > 50);
            assert!(all.iter().all(|found| *found == all[0]), "{all:?}");
        }
    }

    /// Cleaners thin out what lies in a temporary folder.
    #[test]
    fn lost_files_are_put_back_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("demo");
        make(&folder).unwrap();
        let before = files(&folder);
        let of = |part: &str| {
            let named = |path: &&PathBuf| {
                path.to_string_lossy().contains(part) && path.starts_with(folder.join("pay.db/dwd_pay_success"))
            };
            before.iter().map(|(path, _)| path).find(named).unwrap()
        };
        fs::remove_file(of("data-")).unwrap();
        fs::write(of("snapshot-4"), "").unwrap();
        fs::remove_dir_all(folder.join("pay.db/dwd_order_status")).unwrap();
        fs::write(folder.join("pay.db/mine"), "").unwrap();
        make(&folder).unwrap();
        let after: Vec<_> = files(&folder).into_iter().filter(|(path, _)| !path.ends_with("mine")).collect();
        assert_eq!(after, before);
        assert!(folder.join("pay.db/mine").exists());
    }
}
