//! Every golden table, every snapshot, tag, branch, changelog and filter under `expected/`, read through SQL and
//! compared. What is refused or known to differ is listed in `explained.rs`, and the list is itself checked.

mod diffs;
mod explained;
mod filters;
mod plans;
mod reads;
mod rows;
mod schemas;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{Outcome, Test};

/// A full run's files: equal, equal as sets, refused, explained. They change only with the archive, or where a plan keeps
/// fewer files than before.
const EXPECTED: [usize; 4] = [1279, 9, 6, 44];

/// Snapshot reads that may be refused, of 505.
const REFUSED_SNAPSHOTS: usize = 11;

/// Made filters that a full run compares at least, and those among them that leave some rows and drop others.
const FILTERS: (usize, usize) = (7345, 5985);

/// Pairs of snapshots whose difference a full run compares at least.
const DIFFS: usize = 327;

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

static PAIRS: AtomicUsize = AtomicUsize::new(0);
static FILTERED: Mutex<(usize, usize)> = Mutex::new((0, 0));
static COUNTS: Mutex<BTreeMap<(String, Verdict), usize>> = Mutex::new(BTreeMap::new());

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
    /// The warehouse's files on this machine.
    pub folder: PathBuf,
    /// Options of the warehouse's store.
    pub options: BTreeMap<String, String>,
}

impl Side {
    /// Tables that a test makes below a folder.
    pub fn made(work: &Path) -> Self {
        Self {
            name: "made",
            warehouse: work.join("warehouse"),
            expected: work.join("expected"),
            folder: work.join("warehouse"),
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
            folder: root.join(dir).join("warehouse"),
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
    let compared = compare_table(side, table).await?;
    for (kind, verdict) in &compared.files {
        *COUNTS.lock().expect("count lock").entry(((*kind).to_string(), *verdict)).or_default() += 1;
    }
    PAIRS.fetch_add(compared.pairs, Ordering::Relaxed);
    let mut made = FILTERED.lock().expect("count lock");
    *made = (made.0 + compared.filters, made.1 + compared.telling);
    Ok(Outcome::Passed(compared.to_string()))
}

/// What was compared of one table.
#[derive(Default)]
pub struct Compared {
    files: Vec<(&'static str, Verdict)>,
    /// Rows of expected files that were compared with those read.
    pub rows: usize,
    /// Made filters, and those of them that left some rows and dropped others.
    filters: usize,
    telling: usize,
    /// Pairs of snapshots whose difference was compared.
    pairs: usize,
}

impl Compared {
    /// Number of expected files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    pub fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.rows += other.rows;
        self.filters += other.filters;
        self.telling += other.telling;
        self.pairs += other.pairs;
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (files, rows) = (self.files.len(), self.rows);
        write!(f, "{files} files, {rows} rows, {} filters, {} pairs of snapshots", self.filters, self.pairs)
    }
}

/// Reads a table of either archive, or one just made, and compares every expected file.
pub async fn compare_table(side: &Side, table: &str) -> Result<Compared, String> {
    let reader = reads::Reader::open(side, table).await?;
    let mut failures = Vec::new();
    let mut compared = Compared::default();
    let files = names(&side.expected.join(table))?;
    for file in files.iter().filter(|file| *file != FILTERS_FILE) {
        let checked = match reads::kind(file) {
            Some(kind) => reader.check(file).await.map(|verdict| (kind, verdict)),
            None => Err("nothing is known to compare such a file with".to_string()),
        };
        match checked {
            Ok(checked) => compared.files.push(checked),
            Err(message) => failures.push(format!("{file}: {message}")),
        }
    }
    match diffs::check(&reader, &files).await {
        Ok(pairs) => compared.pairs = pairs,
        Err(message) => failures.push(message),
    }
    compared.rows = reader.rows.load(Ordering::Relaxed);
    compared.filters = reader.filters.load(Ordering::Relaxed);
    compared.telling = reader.telling.load(Ordering::Relaxed);
    match failures.as_slice() {
        [] if compared.files.is_empty() => Err("nothing was compared".to_string()),
        [] => Ok(compared),
        some => {
            Err(format!("{} of {} files differ\n{}", some.len(), some.len() + compared.files.len(), some.join("\n")))
        }
    }
}

/// Conditions by name, for other files.
const FILTERS_FILE: &str = "filters.txt";

/// What must hold once every table of the archive was read: as many files of each verdict as there are, and no entry of
/// the lists without use. Nothing where no golden test passed.
pub fn after_a_full_run() -> Vec<(&'static str, Result<Outcome, String>)> {
    let counts = COUNTS.lock().expect("count lock");
    if counts.is_empty() {
        return Vec::new();
    }
    let mut total = [0usize; 4];
    let mut refused_snapshots = 0;
    for ((kind, verdict), n) in counts.iter() {
        total[*verdict as usize] += n;
        if kind == "snapshot" && *verdict == Verdict::Refused {
            refused_snapshots += n;
        }
    }
    let files = if total != EXPECTED {
        Err(format!("files equal, equal as sets, refused, explained: {total:?}, and they should be {EXPECTED:?}"))
    } else if refused_snapshots > REFUSED_SNAPSHOTS {
        Err(format!("{refused_snapshots} snapshot reads are refused"))
    } else {
        Ok(Outcome::Passed(format!("{} files", total.iter().sum::<usize>())))
    };
    let made = *FILTERED.lock().expect("count lock");
    let made = if made.0 >= FILTERS.0 && made.1 >= FILTERS.1 {
        Ok(Outcome::Passed(format!("{} made filters", made.0)))
    } else {
        Err(format!(
            "made filters, and those that tell rows apart: {made:?}, and they should be no fewer than {FILTERS:?}"
        ))
    };
    let pairs = match PAIRS.load(Ordering::Relaxed) {
        pairs if pairs >= DIFFS => Ok(Outcome::Passed(format!("{pairs} pairs of snapshots"))),
        pairs => Err(format!("{pairs} pairs of snapshots were compared, and there should be {DIFFS}")),
    };
    let unmet = explained::unmet();
    let unmet = if unmet.is_empty() {
        Ok(Outcome::Passed(String::new()))
    } else {
        Err(format!("listed but not met: {}", unmet.join(", ")))
    };
    vec![
        ("golden::every_file_is_compared", files),
        ("golden::every_made_filter_is_compared", made),
        ("golden::neighbouring_snapshots_are_compared", pairs),
        ("golden::explained_list_is_met", unmet),
    ]
}
