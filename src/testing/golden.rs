//! The golden tables: written by the reference implementations, unpacked once per archive into the temporary folder.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{Error, Result};

/// Held while unpacking, so that threads of one process do it once.
static ROOT: Mutex<Option<PathBuf>> = Mutex::new(None);
/// Likewise for the tables of [`writers_warehouse`].
static WRITERS: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Folder that holds `java-0.9`, `python-2.1` and `vectors.jsonl`. Unpacks the archive on first use, whole or not at
/// all: concurrent processes may race, each then sees one complete copy.
///
/// # Errors
/// The archive of the source tree is missing or damaged, or the temporary folder is not writable.
pub fn root() -> Result<PathBuf> {
    once(&ROOT, "golden")
}

/// Warehouse of small tables in which writers differ from each other, or from what readers expect; its one database is
/// `golden`. Recipe: `sqllogictest/tables/writers.py`.
///
/// # Errors
/// As [`root`].
pub fn writers_warehouse() -> Result<PathBuf> {
    Ok(once(&WRITERS, "writers")?.join("writers"))
}

fn once(place: &Mutex<Option<PathBuf>>, name: &str) -> Result<PathBuf> {
    let mut known = place.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(root) = known.as_ref() {
        return Ok(root.clone());
    }
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("sqllogictest/tables/{name}.tar.zst"));
    let root = unpack(&archive, &format!("lakepin-{name}"))?;
    *known = Some(root.clone());
    Ok(root)
}

/// Warehouse of the Java tables; its one database is `golden`.
///
/// # Errors
/// As [`root`].
pub fn java_warehouse() -> Result<PathBuf> {
    Ok(root()?.join("java-0.9/warehouse"))
}

/// Warehouse of the Python tables; its one database is `golden`.
///
/// # Errors
/// As [`root`].
pub fn python_warehouse() -> Result<PathBuf> {
    Ok(root()?.join("python-2.1/warehouse"))
}

/// Unpacks a zstd tar whose top folder is `golden` and returns that folder; its place is named for the content.
fn unpack(archive: &Path, prefix: &str) -> Result<PathBuf> {
    let io = |what: &str, path: &Path, e: std::io::Error| {
        Error::unavailable(format!("cannot {what}")).with_context("file", path.display()).with_source(e)
    };
    let packed = fs::read(archive).map_err(|e| io("read the archive of golden tables", archive, e))?;
    let base = std::env::temp_dir();
    let target = base.join(format!("{prefix}-{:08x}", crc32fast::hash(&packed)));
    if !target.exists() {
        let aside = base.join(format!("{prefix}-{:08x}.{}", crc32fast::hash(&packed), std::process::id()));
        let tar = zstd::decode_all(Cursor::new(packed)).map_err(|e| io("decompress the archive", archive, e))?;
        tar::Archive::new(Cursor::new(tar)).unpack(&aside).map_err(|e| io("unpack the archive", &aside, e))?;
        if let Err(e) = fs::rename(&aside, &target) {
            // another process was first
            if !target.exists() {
                return Err(io("move the unpacked archive", &target, e));
            }
            fs::remove_dir_all(&aside).map_err(|e| io("remove a spare copy", &aside, e))?;
        }
    }
    Ok(target.join("golden"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_holds_both_warehouses() {
        assert!(java_warehouse().unwrap().join("golden.db/pk_lsm/snapshot").is_dir());
        assert!(python_warehouse().unwrap().join("golden.db/pk_simple/snapshot").is_dir());
        assert!(writers_warehouse().unwrap().join("golden.db/long_append/snapshot").is_dir());
    }

    /// Names in backticks, `x_*` for all that begin so.
    #[test]
    fn readme_names_every_table() {
        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/sqllogictest/tables/README.md");
        let readme = fs::read_to_string(readme).unwrap();
        let patterns: Vec<&str> = readme.split('`').skip(1).step_by(2).collect();
        let mut tables = 0;
        for warehouse in [java_warehouse(), python_warehouse(), writers_warehouse()] {
            for entry in fs::read_dir(warehouse.unwrap().join("golden.db")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let told = patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(head) => name.starts_with(head),
                    None => name == *pattern,
                });
                assert!(told, "sqllogictest/tables/README.md does not tell of {name}");
                tables += 1;
            }
        }
        assert!(tables > 100, "{tables} tables");
    }
}
