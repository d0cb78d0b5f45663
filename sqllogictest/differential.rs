//! Random tables, made by the Java writer from a seed and read by both: every snapshot, the latest state and the stream
//! of changes must agree. `LAKEPIN_SCALE=full` makes 240 tables, otherwise 40; `LAKEPIN_SEED` chooses others.

mod plan;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use self::plan::Plan;
use crate::golden::{Compared, Side, compare_table};
use crate::harness::{Outcome, Test};
use crate::resume::full_scale;

const BATCH: u64 = 20;
/// Steps in a hundred that Java may refuse.
const MOST_REFUSED: usize = 5;
/// Expected files and rows that a batch compares at least.
const LEAST_FILES: usize = 100;
const LEAST_ROWS: usize = 500;

fn tables() -> u64 {
    if full_scale() { 240 } else { 40 }
}

fn seed() -> u64 {
    std::env::var("LAKEPIN_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_260_416)
}

/// The launcher of the Java oracle, if it has been set up.
pub fn oracle() -> Option<PathBuf> {
    let home = std::env::var_os("PAIMON_ORACLE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/paimon-oracle")))?;
    let launcher = home.join("oracle");
    launcher.is_file().then_some(launcher)
}

pub fn register(tests: &mut Vec<Test>) {
    for batch in 0..tables().div_ceil(BATCH) {
        let name = format!("differential::java_reader_agrees_{batch:02}");
        tests.push(Test::new_async(name, move || run(batch)).resumable());
    }
}

async fn run(batch: u64) -> Result<Outcome, String> {
    let Some(oracle) = oracle() else {
        return Ok(Outcome::Skipped("the Java oracle is not set up (sqllogictest/oracle/setup.sh)".into()));
    };
    let work = tempfile::tempdir().map_err(|e| e.to_string())?;
    let side = Side::made(work.path());
    let mut steps = Vec::new();
    let mut names = Vec::new();
    for n in batch * BATCH..((batch + 1) * BATCH).min(tables()) {
        let name = format!("t{n:03}");
        steps.extend(Plan::new(seed().wrapping_add(n), &name).steps(&side.expected));
        names.push(name);
    }
    let file = work.path().join("steps.jsonl");
    let text: String = steps.iter().map(|step| format!("{step}\n")).collect();
    std::fs::write(&file, text).map_err(|e| e.to_string())?;
    let output = Command::new(&oracle)
        .arg("script")
        .args([&side.warehouse, Path::new("golden"), &file])
        .output()
        .map_err(|e| format!("{}: {e}", oracle.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = said.lines().count();
    let mut failures = Vec::new();
    // what Java refused shows nothing: neither most of the changes nor any of the answers may be missing
    if refused * 100 > steps.len() * MOST_REFUSED {
        failures.push(format!("Java refused {refused} of {} steps:\n{said}", steps.len()));
    }
    let number = |line: &str| line.split_once(':').and_then(|(number, _)| number.trim().parse::<usize>().ok());
    let mut unread = 0;
    for line in said.lines() {
        let step =
            number(line).and_then(|n| steps.get(n.checked_sub(1)?)).ok_or_else(|| format!("odd answer: {line}"))?;
        if step["op"] == "expect" && may_lose_keys(&steps, &step["table"]) {
            unread += 1;
        } else if step["op"] == "expect" || step["op"] == "create" {
            failures.push(format!("{}: {line}", step["table"]));
        }
    }
    let (mut compared, mut lost) = (Compared::default(), 0);
    for (n, name) in names.iter().enumerate() {
        if !side.expected.join(name).is_dir() {
            failures.push(format!("{name}: Java made nothing: {}", String::from_utf8_lossy(&output.stdout)));
            continue;
        }
        match compare_table(&side, name).await {
            Ok(checked) => compared.add(checked),
            Err(message) if java_lost_a_key(&side.expected.join(name), &steps, name, &message) => lost += 1,
            Err(message) => {
                let seed = seed().wrapping_add(batch * BATCH + n as u64);
                let create = steps.iter().find(|s| s["op"] == "create" && s["table"] == name.as_str());
                failures.push(format!(
                    "{name} (seed {seed}): {message}\n  {}",
                    create.map(ToString::to_string).unwrap_or_default()
                ));
            }
        }
    }
    // a batch that is cut short has fewer tables
    let least = |of_a_batch: usize| of_a_batch * names.len() / BATCH as usize;
    if failures.is_empty() && (compared.files() < least(LEAST_FILES) || compared.rows < least(LEAST_ROWS)) {
        failures.push(format!("only {compared} were compared"));
    }
    if failures.is_empty() {
        return Ok(Outcome::Passed(format!(
            "{} tables, {compared}, {refused} of {} steps refused by Java, {lost} tables in which Java lost a key and \
             {unread} that it cannot read itself",
            names.len(),
            steps.len()
        )));
    }
    let kept = work.keep();
    Err(format!("kept in {}\n{}", kept.display(), failures.join("\n")))
}

/// Whether a table is of the kind in which [`java_lost_a_key`]; reading such a key, Java may fail.
fn may_lose_keys(steps: &[Value], table: &Value) -> bool {
    let create = steps.iter().find(|step| step["op"] == "create" && step["table"] == *table);
    let Some(options) = create.and_then(|step| step["options"].as_object()) else { return false };
    let is = |name: &str, value: &str| options.get(name).is_some_and(|found| found == value);
    is("merge-engine", "partial-update") && options.keys().any(|name| name.ends_with(".sequence-group"))
}

/// Two deletes of a key that has nothing else: 0.9 merges them, in one flush or in a compaction, into a row whose own key
/// column is null, and shows another key there. We read the key's own column, or refuse what Parquet made of it. Taken
/// for explained only where in each answer that differs Java itself shows one key twice, or one that no step ever added.
fn java_lost_a_key(expected: &Path, steps: &[Value], table: &str, message: &str) -> bool {
    let create = steps.iter().find(|step| step["op"] == "create" && step["table"] == table);
    let Some(primary) = create.and_then(|step| step["primary"].as_array()) else { return false };
    let key = |row: &Value| -> String {
        primary.iter().map(|name| format!("{};", row[name.as_str().unwrap_or("")])).collect()
    };
    let adds = |row: &&Value| !matches!(row["_ROW_KIND"].as_str(), Some("-D" | "-U"));
    let written = steps.iter().filter(|step| step["table"] == table).filter_map(|step| step["rows"].as_array());
    let added: BTreeSet<String> = written.flatten().filter(adds).map(key).collect();
    let mut failures = message.lines().filter_map(|line| line.split_once(".jsonl: ")).peekable();
    failures.peek().is_some()
        && failures.all(|(file, _)| {
            let text = std::fs::read_to_string(expected.join(format!("{file}.jsonl"))).unwrap_or_default();
            let rows: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let keys: BTreeSet<String> = rows.iter().map(key).collect();
            keys.len() < rows.len() || !keys.is_subset(&added)
        })
}
