//! Every golden table, every snapshot, tag, branch, changelog and filter under `expected/`, read through SQL and
//! compared. What is refused or known to differ is listed in `explained.rs`, and the list is itself checked.

mod explained;
mod plans;
mod reads;
mod rows;

pub use explained::unmet;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::harness::{Outcome, Test};

/// Name of a side that a test makes.
const MADE: &str = "made";

/// How the comparison of one expected file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The same rows.
    Equal,
    /// The same rows where arrays of unspecified order count as sets.
    EqualAsSets,
    /// Refused, as listed.
    Refused,
    /// The reference is wrong or older than the rule; our rows are those of the rule.
    Explained,
}

static COUNTS: Mutex<BTreeMap<(String, Verdict), usize>> = Mutex::new(BTreeMap::new());

fn count(kind: &str, verdict: Verdict) {
    *COUNTS.lock().expect("count lock").entry((kind.to_string(), verdict)).or_default() += 1;
}

/// The table of verdicts by kind of expected file; None when no golden test ran.
pub fn summary() -> Option<String> {
    let counts = COUNTS.lock().expect("count lock");
    if counts.is_empty() {
        return None;
    }
    let of = |kind: &str, verdict| counts.get(&(kind.to_string(), verdict)).copied().unwrap_or(0);
    let kinds: Vec<String> = {
        let mut kinds: Vec<String> = counts.keys().map(|(kind, _)| kind.clone()).collect();
        kinds.dedup();
        kinds
    };
    let mut text = String::from("golden files: kind, equal, equal as sets, refused, explained\n");
    let mut total = [0usize; 4];
    for kind in kinds {
        let row = [Verdict::Equal, Verdict::EqualAsSets, Verdict::Refused, Verdict::Explained].map(|v| of(&kind, v));
        text.push_str(&format!("  {kind:<16} {:>5} {:>5} {:>5} {:>5}\n", row[0], row[1], row[2], row[3]));
        for (sum, n) in total.iter_mut().zip(row) {
            *sum += n;
        }
    }
    text.push_str(&format!("  {:<16} {:>5} {:>5} {:>5} {:>5}", "all", total[0], total[1], total[2], total[3]));
    Some(text)
}

/// One side of the archive, or tables made by a test.
#[derive(Clone)]
pub struct Side {
    pub name: &'static str,
    pub warehouse: PathBuf,
    pub expected: PathBuf,
    /// Options of the warehouse's store.
    pub options: BTreeMap<String, String>,
}

impl Side {
    /// Tables that a test makes below a folder; they are not counted with those of the archive.
    pub fn made(work: &Path) -> Self {
        Self {
            name: MADE,
            warehouse: work.join("warehouse"),
            expected: work.join("expected"),
            options: BTreeMap::new(),
        }
    }
}

fn sides() -> Result<Vec<Side>, String> {
    let root = lakepin::testing::golden::root().map_err(|e| e.to_string())?;
    Ok([("java", "java-0.9"), ("python", "python-2.1")]
        .into_iter()
        .map(|(name, dir)| Side {
            name,
            warehouse: root.join(dir).join("warehouse"),
            expected: root.join(dir).join("expected"),
            options: BTreeMap::new(),
        })
        .collect())
}

/// What lies in a folder; nothing is an error, since nothing would be compared.
fn names(dir: &Path) -> Result<Vec<String>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    if names.is_empty() { Err(format!("{} is empty", dir.display())) } else { Ok(names) }
}

pub fn register(tests: &mut Vec<Test>) {
    let found = sides().and_then(|sides| {
        sides.into_iter().map(|side| names(&side.expected).map(|tables| (side, tables))).collect::<Result<Vec<_>, _>>()
    });
    let found = match found {
        Ok(found) => found,
        Err(message) => {
            tests.push(Test::new("golden::archive", move || Err(message)));
            return;
        }
    };
    for (side, tables) in found {
        for table in tables {
            let (side, name) = (side.clone(), format!("golden::{}::{table}", side.name));
            tests.push(Test::new_async(name, move || async move { check_table(&side, &table).await }));
        }
    }
    tests.push(Test::new("golden::explained_list_is_exact", explained::check));
}

async fn check_table(side: &Side, table: &str) -> Result<Outcome, String> {
    let checked = compare_table(side, table).await?;
    Ok(Outcome::Passed(format!("{checked} files")))
}

/// Reads a table of either archive, or one just made, and compares every expected file; the number of them.
pub async fn compare_table(side: &Side, table: &str) -> Result<usize, String> {
    let reader = reads::Reader::open(side, table).await?;
    let mut failures = Vec::new();
    let mut checked = 0;
    for file in names(&side.expected.join(table))? {
        let Some(kind) = reads::kind(&file) else { continue };
        checked += 1;
        match reader.check(&file).await {
            Ok(verdict) if side.name != MADE => count(kind, verdict),
            Ok(_) => {}
            Err(message) => failures.push(format!("{file}: {message}")),
        }
    }
    if failures.is_empty() && checked > 0 {
        Ok(checked)
    } else {
        Err(format!("{} of {checked} files differ\n{}", failures.len(), failures.join("\n")))
    }
}
