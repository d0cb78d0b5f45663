//! Known defects, and whether the verdict names the right layer and the right commit: 100 a seed, three seeds. Without
//! `LAKEPIN_SCALE=full` it is 42 a seed; `LAKEPIN_SEED` chooses others.
//!
//! What is right is settled by who makes the defect, in `inject`, before anything looks; the verdict is read as the JSON
//! that anybody gets. A defect counts when each of its keys has the right layer and names every commit that did it, with
//! one other at most; where no commit did it, none.

mod inject;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use lakepin::sql::{Session, SessionConfig, Warehouse};
use serde_json::Value;

use self::inject::{Defect, KINDS, Key, Scene, cents, scene, time};
use crate::harness::{Outcome, Test};
use crate::random::Random;
use crate::resume::full_scale;

/// Defects of a scene.
const EACH: usize = 10;
const SEEDS: u64 = 3;

fn defects() -> usize {
    if full_scale() { 100 } else { 42 }
}

fn seed() -> u64 {
    std::env::var("LAKEPIN_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_260_416)
}

pub fn register(tests: &mut Vec<Test>) {
    for number in 0..SEEDS {
        let name = format!("probe::verdicts_name_the_layer_and_the_commit_{number}");
        tests.push(Test::new_async(name, move || run(seed().wrapping_add(number * 7_919))).resumable());
    }
}

/// Every kind in turn, in an order of the seed.
fn drawn(seed: u64, count: usize) -> Vec<&'static str> {
    let mut random = Random::new(seed);
    let mut all: Vec<&'static str> = Vec::new();
    while all.len() < count {
        let mut round = KINDS.to_vec();
        while !round.is_empty() && all.len() < count {
            all.push(round.remove(random.below(round.len() as u64) as usize));
        }
    }
    all
}

#[derive(Default)]
struct Score {
    /// By kind: made, right.
    kinds: BTreeMap<&'static str, (usize, usize)>,
    wrong: Vec<String>,
}

async fn run(seed: u64) -> Result<Outcome, String> {
    let kinds = drawn(seed, defects());
    let mut score = Score::default();
    for (number, kinds) in kinds.chunks(EACH).enumerate() {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let made = scene(folder.path(), "t", seed.wrapping_mul(31).wrapping_add(number as u64), kinds);
        let found = verdict(folder.path(), &made, number % 2 == 1).await?;
        judge(&made, &found, number, &mut score);
    }
    let made: usize = score.kinds.values().map(|(made, _)| made).sum();
    let right: usize = score.kinds.values().map(|(_, right)| right).sum();
    let mut table = format!("seed {seed}: {right} of {made} right\n");
    for (kind, (made, right)) in &score.kinds {
        let _ = writeln!(table, "  {kind:<24} {right:>3} of {made:>3}");
    }
    println!("{table}");
    // 99 of 100
    if right * 100 >= made * 99 && made == kinds.len() {
        return Ok(Outcome::Passed(format!("{right} of {made} defects")));
    }
    Err(format!("{table}{}", score.wrong.join("\n")))
}

/// The verdict of a scene, as JSON.
async fn verdict(folder: &Path, scene: &Scene, file: bool) -> Result<Value, String> {
    let warehouse =
        Warehouse::open(&folder.display().to_string(), &BTreeMap::new()).await.map_err(|e| e.to_string())?;
    let session = Session::new(&warehouse, SessionConfig::default()).await.map_err(|e| e.to_string())?;
    let outside = tempfile::tempdir().map_err(|e| e.to_string())?;
    let source = if file {
        let mut text = "dt,id,amount,status,at\n".to_string();
        for ((dt, id), row) in &scene.source {
            let _ = writeln!(text, "{dt},{id},{},{},{}", cents(row.amount), row.status, time(row.seconds));
        }
        let path = outside.path().join("source.csv");
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        format!("'{}'", path.display())
    } else {
        let rows: Vec<String> = scene
            .source
            .iter()
            .map(|((dt, id), row)| {
                let (amount, at) = (cents(row.amount), time(row.seconds));
                format!("('{dt}', {id}, {amount}, '{}', TIMESTAMP '{at}')", row.status)
            })
            .collect();
        format!(
            "(SELECT dt, id, amount, status, CAST(\"at\" AS TIMESTAMP(3)) AS \"at\" FROM (VALUES {}) AS s(dt, id, amount, status, \"at\"))",
            rows.join(", ")
        )
    };
    let sql = format!("RECONCILE probe.t@v{} WITH {source} ON KEY (dt, id) VERDICT OF 10000 KEYS", scene.pin);
    let judged = session.verdict(&sql, None).await.map_err(|e| format!("{e:?}"))?;
    serde_json::from_str(&judged.verdict.json().map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

fn judge(scene: &Scene, verdict: &Value, number: usize, score: &mut Score) {
    let mut cases: BTreeMap<Key, &Value> = BTreeMap::new();
    for case in verdict["keys"].as_array().into_iter().flatten() {
        let part = |name: &str| {
            let pairs = case["key"].as_array().into_iter().flatten();
            pairs.filter(|pair| pair[0] == name).find_map(|pair| pair[1].as_str()).unwrap_or_default().to_string()
        };
        cases.insert((part("dt"), part("id").parse().unwrap_or(-1)), case);
    }
    for defect in &scene.defects {
        let mut wrong = Vec::new();
        for key in &defect.keys {
            match cases.remove(key) {
                None => wrong.push(format!("{key:?} was not found")),
                Some(case) => wrong.extend(error(defect, key, case)),
            }
        }
        let (made, right) = score.kinds.entry(defect.kind).or_default();
        *made += 1;
        *right += usize::from(wrong.is_empty());
        if !wrong.is_empty() {
            score.wrong.push(format!("scene {number}, {}: {}", defect.kind, wrong.join("\n    ")));
        }
    }
    // what differs without a defect is an error of the verdict's, too
    for (key, case) in cases {
        let (made, _) = score.kinds.entry("no defect").or_default();
        *made += 1;
        score.wrong.push(format!("scene {number}: {key:?} has no defect: {case}"));
    }
}

fn error(defect: &Defect, key: &Key, case: &Value) -> Option<String> {
    let layer = case["layer"].as_str().unwrap_or("none");
    let named: Vec<i64> =
        case["commits"].as_array().into_iter().flatten().filter_map(|commit| commit["snapshot"].as_i64()).collect();
    let others = named.iter().filter(|commit| !defect.commits.contains(commit)).count();
    let few = others <= usize::from(!defect.commits.is_empty());
    if layer == defect.layer && few && defect.commits.iter().all(|commit| named.contains(commit)) {
        return None;
    }
    Some(format!(
        "{key:?}: {layer} of {named:?}, not {} of {:?}: {} {} {}",
        defect.layer, defect.commits, case["class"], case["reason"], case["sentence"]
    ))
}
