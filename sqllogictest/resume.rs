//! Long proofs go on where they were broken off: at full scale what has passed is written down, and not run again by the
//! same program with the same seed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

/// Whether the long proofs run with the figures they are quoted with (`LAKEPIN_SCALE=full`).
pub fn full_scale() -> bool {
    std::env::var("LAKEPIN_SCALE").as_deref() == Ok("full")
}

/// What passed before, and the file that takes what passes now.
pub struct Ledger {
    before: BTreeMap<String, String>,
    file: Mutex<Option<File>>,
}

impl Ledger {
    /// The ledger of this very program, settings and seed; empty, and never written, at the usual scale.
    pub fn open() -> Self {
        let none = Self { before: BTreeMap::new(), file: Mutex::new(None) };
        if !full_scale() {
            return none;
        }
        let Some(path) = path() else { return none };
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let before = text.lines().filter_map(|line| line.split_once('\t')).map(|(a, b)| (a.into(), b.into())).collect();
        println!("what has passed is kept in {}", path.display());
        let file = OpenOptions::new().create(true).append(true).open(&path).expect("the ledger of passed proofs");
        Self { before, file: Mutex::new(Some(file)) }
    }

    /// The note of a test that this program has passed.
    pub fn passed_before(&self, test: &str) -> Option<&str> {
        self.before.get(test).map(String::as_str)
    }

    /// Writes down that a test passed.
    pub fn pass(&self, test: &str, note: &str) {
        if let Some(file) = self.file.lock().expect("ledger lock").as_mut() {
            // one write: a line is there whole or not at all
            let line = format!("{test}\t{}\n", note.replace(['\n', '\t'], " "));
            file.write_all(line.as_bytes()).expect("the ledger of passed proofs");
        }
    }
}

/// Another build, or another seed, is another ledger.
fn path() -> Option<PathBuf> {
    let program = std::fs::read(std::env::current_exe().ok()?).ok()?;
    let seed = std::env::var("LAKEPIN_SEED").unwrap_or_else(|_| "default".into());
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join(format!("passed-{:08x}-{seed}.tsv", crc32fast::hash(&program))))
}
