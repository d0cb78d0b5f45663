//! `lakepin demo`: a small warehouse, written by the reference implementation, and the tour through it.

mod tour;

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

pub use tour::{TOUR, WELCOME};

use crate::error::{Error, Result};

const ARCHIVE: &[u8] = include_bytes!("warehouse.tar.zst");
/// Says that a folder is ours, and what is in it.
const MARK: &str = ".lakepin-demo";
/// The one database.
const DATABASE: &str = "pay.db";

/// Zone of the story.
pub const ZONE: &str = "+08:00";

/// Where the demo goes when nobody says.
pub fn default_folder() -> PathBuf {
    std::env::temp_dir().join("lakepin-demo")
}

fn failed(what: &str, path: &Path, e: std::io::Error) -> Error {
    Error::unavailable(format!("cannot {what}: {e}")).with_code("Demo").with_context("file", path.display())
}

/// Makes the warehouse in a folder that is absent, empty or was made by this function.
pub fn make(folder: &Path) -> Result<()> {
    let mark = folder.join(MARK);
    let content = format!("{:08x}\n", crc32fast::hash(ARCHIVE));
    if folder.exists() {
        let ours = mark.is_file();
        let mut entries = fs::read_dir(folder).map_err(|e| failed("list the folder", folder, e))?;
        if !ours && entries.next().is_some() {
            return Err(Error::invalid("the folder is neither empty nor a demo made before")
                .with_code("Usage")
                .with_context("folder", folder.display())
                .with_hint("name another: lakepin demo DIR"));
        }
        if ours && fs::read_to_string(&mark).is_ok_and(|found| found == content) {
            return Ok(());
        }
        let old = folder.join(DATABASE);
        if old.exists() {
            fs::remove_dir_all(&old).map_err(|e| failed("remove the old demo", &old, e))?;
        }
    }
    fs::create_dir_all(folder).map_err(|e| failed("make the folder", folder, e))?;
    // ours from now on, whole only with the right content
    fs::write(&mark, "unfinished\n").map_err(|e| failed("write the mark", &mark, e))?;
    let tar = zstd::decode_all(Cursor::new(ARCHIVE)).map_err(|e| failed("unpack the demo", folder, e))?;
    let mut archive = tar::Archive::new(Cursor::new(tar));
    for entry in archive.entries().map_err(|e| failed("unpack the demo", folder, e))? {
        let mut entry = entry.map_err(|e| failed("unpack the demo", folder, e))?;
        let path = entry.path().map_err(|e| failed("unpack the demo", folder, e))?.into_owned();
        let Ok(inside) = path.strip_prefix("warehouse") else { continue };
        if inside.as_os_str().is_empty() {
            continue;
        }
        let target = folder.join(inside);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|e| failed("make a folder", parent, e))?;
        }
        entry.unpack(&target).map_err(|e| failed("unpack a file", &target, e))?;
    }
    fs::write(&mark, content).map_err(|e| failed("write the mark", &mark, e))
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

        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("mine"), "").unwrap();
        assert_eq!(make(&other).unwrap_err().code(), "Usage");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    }
}
