//! The SQL suites under `cases/`, one feature a file.

use std::path::{Path, PathBuf};

use crate::harness::Test;

/// Every `.slt` file under `cases/`, sorted.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "slt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn register(_tests: &mut Vec<Test>) {}
