//! Files to records. sqllogictest ends the program at a file it cannot read, so every file is read here before it.

use std::path::{Path, PathBuf};

use sqllogictest::{Record, parse_file};

use super::Letter;
use crate::error::{Error, Result};

/// The records of a file and of those it includes.
pub(super) fn records(path: &Path) -> Result<Vec<Record<Letter>>> {
    check(path, &mut Vec::new())?;
    parse_file::<Letter>(path).map_err(|e| Error::invalid(e.to_string()).with_code("Syntax"))
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|e| {
        Error::not_found(format!("cannot read the file: {e}"))
            .with_code("FileNotFound")
            .with_context("file", path.display())
    })?;
    let named = path.to_str().is_some();
    match String::from_utf8(bytes) {
        Ok(text) if named => Ok(text),
        Ok(_) => Err(Error::invalid("the name of the file is not UTF-8")
            .with_code("Usage")
            .with_context("file", path.display())),
        Err(e) => {
            let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Err(Error::invalid("the text is not UTF-8")
                .with_code("Usage")
                .with_context("file", path.display())
                .with_context("line", line))
        }
    }
}

/// Reads a file and what it includes; `around` are the files that include it.
fn check(path: &Path, around: &mut Vec<PathBuf>) -> Result<()> {
    if around.iter().any(|file| file == path) {
        return Err(Error::invalid("the file includes itself").with_code("Usage").with_context("file", path.display()));
    }
    let text = text(path)?;
    around.push(path.to_path_buf());
    for line in text.lines() {
        // a line of SQL may look so too, but names no file
        let mut words = line.split_whitespace();
        let (Some("include"), Some(pattern), None) = (words.next(), words.next(), words.next()) else { continue };
        let pattern = path.with_file_name(pattern);
        let found = pattern.to_str().map(glob::glob);
        for file in found.into_iter().flatten().flatten().flatten() {
            check(&file, around)?;
        }
    }
    around.pop();
    Ok(())
}
