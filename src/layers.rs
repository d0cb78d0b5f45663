//! The plan of the house as a test: which room may import which. It reads every `crate::room` under `src/` and names
//! the file and line that climbs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room and the rooms it may import, besides `error` and itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("spec", &[]),
    ("storage", &["spec"]),
    ("merge", &["spec"]),
    ("file", &["spec", "storage", "merge"]),
    ("snapshot", &["spec", "storage"]),
    ("catalog", &["spec", "storage", "snapshot"]),
    ("scan", &["spec", "storage", "snapshot", "merge"]),
    ("read", &["spec", "storage", "snapshot", "file", "merge", "scan"]),
    ("query", &["spec", "storage", "snapshot", "catalog", "file", "merge", "scan", "read"]),
    ("recon", &["spec", "storage", "file", "merge", "snapshot", "scan", "read", "query"]),
    ("sql", &["spec", "storage", "snapshot", "catalog", "scan", "read", "query", "recon"]),
    ("shell", &["sql", "testing"]),
    ("testing", &["spec", "storage", "file", "merge", "snapshot", "catalog", "scan", "read", "query", "recon", "sql"]),
];

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("source folder is readable") {
        let path = entry.expect("entry is readable").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Room names that a line of code imports through `crate::…`.
fn imports(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => rooms.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(c),
                    _ => {}
                }
            }
            rooms.push(word);
        } else {
            rooms.push(rest.to_string());
        }
    }
    rooms
        .into_iter()
        .map(|r| r.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .filter(|r: &String| !r.is_empty())
        .collect()
}

/// Paths, without extension, of the modules a file declares for tests only.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(file).expect("source is UTF-8");
    let folder = match file.file_stem() {
        Some(stem) if stem != "mod" && stem != "lib" => file.with_extension(""),
        _ => file.parent().expect("file lies in a folder").to_path_buf(),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines
        .windows(2)
        .filter(|pair| pair[0] == "#[cfg(test)]" || pair[0].starts_with("#[cfg(all(test,"))
        .filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'))
        .map(|name| folder.join(name))
        .collect()
}

#[test]
fn rooms_import_only_downward() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let rooms: BTreeSet<&str> = ALLOWED.iter().map(|(room, _)| *room).collect();
    // a test module in a file of its own may use the testing room too
    let of_tests: BTreeSet<PathBuf> = files.iter().flat_map(|file| test_modules(file)).collect();
    let mut climbing = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).expect("file lies under src");
        let first = relative.components().next().expect("path has a component");
        let room = first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_string();
        if matches!(room.as_str(), "lib" | "main" | "layers") {
            continue;
        }
        // and so may the modules below it
        if file.with_extension("").ancestors().any(|path| of_tests.contains(path)) {
            continue;
        }
        let (_, allowed) = ALLOWED
            .iter()
            .find(|(name, _)| *name == room)
            .unwrap_or_else(|| panic!("{} belongs to no room of the plan", relative.display()));
        let text = fs::read_to_string(&file).expect("source is UTF-8");
        for (number, line) in text.lines().enumerate() {
            // what stands below the test module may use the testing room
            if line.trim_start().starts_with("mod tests") {
                break;
            }
            for import in imports(line) {
                let known = rooms.contains(import.as_str());
                let fine = import == room || import == "error" || allowed.contains(&import.as_str());
                if known && !fine {
                    climbing.push(format!("{}:{}: `{room}` imports `{import}`", relative.display(), number + 1));
                }
            }
        }
    }
    assert!(climbing.is_empty(), "imports that climb:\n{}", climbing.join("\n"));
}

#[test]
fn imports_are_found_in_lists_and_paths() {
    assert_eq!(imports("use crate::{spec::Datum, scan};"), ["spec", "scan"]);
    assert_eq!(imports("let x = crate::read::open(crate::spec::y);"), ["read", "spec"]);
    assert_eq!(imports("// crate::shell"), Vec::<String>::new());
}
