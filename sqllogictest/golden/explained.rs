//! Where the archive and a correct reader part: what is refused, and what the reference had wrong or by an older rule.
//! Each entry must have been met once a full run is over, so the lists cannot rot.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::Value;

use super::Verdict;
use super::reads::Reader;

/// Tables refused as a whole or at some snapshots, with the error code and a word the message must hold.
const REFUSED: &[(&str, &str, &[&str], &str)] = &[
    ("java", "pk_agg_sketch", &["snapshot-2", "snapshot-3"], "aggregate function"),
    ("python", "append_blob", &["snapshot-1", "latest"], ".blob file"),
    ("python", "append_data_evolution", &["snapshot-4", "latest"], "data-evolution"),
];

/// What is right instead of the archive's rows.
#[derive(Clone, Copy)]
pub enum Rule {
    /// `fields.*.default-value` is ignored today: nulls stay.
    NullsStay,
    /// TIMESTAMP to DATE is floored (0.9 rounds towards zero).
    FloorDate,
    /// 0.9 compares a bound of one decimal scale with a literal of another and loses rows.
    AllRowsOfTheFilter,
}

const DIFFERENT: &[(&str, &str, &[&str], Rule)] = &[
    ("java", "pk_default_value", &["snapshot-", "latest", "read-optimized", "changelog"], Rule::NullsStay),
    ("java", "evo_casts", &["latest", "changelog"], Rule::FloorDate),
    ("java", "evo_append_parquet", &["rows-5-filter4"], Rule::AllRowsOfTheFilter),
    ("java", "evo_append_orc", &["rows-5-filter4"], Rule::AllRowsOfTheFilter),
    ("java", "evo_append_avro", &["rows-5-filter4"], Rule::AllRowsOfTheFilter),
];

/// Columns whose arrays come in hash order: `collect` with `distinct`, and `nested_update`.
const AS_SETS: &[(&str, &str, &[&str])] = &[("java", "pk_agg", &["cod", "nu"]), ("java", "pk_agg_retract", &["nu"])];

/// Tables with keys whose batch reads of a range 0.9 merges; today they give the raw changes.
const RAW_CHANGES: &[(&str, &str)] = &[
    ("java", "pk_changelog_input"),
    ("java", "pk_changelog_lookup"),
    ("java", "pk_changelog_lookup_dedup"),
    ("java", "pk_changelog_none"),
    ("java", "pk_dv"),
    ("java", "pk_lsm"),
    ("java", "pk_row_kinds"),
];

/// Tables whose `$ro` 0.9 reads from all levels above 0: rows that stand in the top level, and the number of that level.
const TOP_LEVEL: &[(&str, &str, usize, i64)] = &[("java", "pk_dv", 167, 8), ("java", "pk_dv_partial_update", 13, 5)];

static MET: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn met(entry: String) {
    MET.lock().expect("list lock").insert(entry);
}

fn matches(patterns: &[&str], file: &str) -> bool {
    let stem = file.trim_end_matches(".jsonl");
    patterns.iter().any(|p| stem == *p || (p.ends_with('-') && stem.starts_with(p)))
}

/// Whether this refusal is on the list.
pub fn refusal(side: &str, table: &str, file: &str, error: &lakepin::Error) -> Result<Verdict, String> {
    for (of, name, files, word) in REFUSED {
        if *of == side && *name == table && matches(files, file) {
            if error.kind() != lakepin::ErrorKind::Unsupported || !error.to_string().contains(word) {
                return Err(format!("refused, but not by a message that says {word}: {error:?}"));
            }
            met(format!("refused {side} {table}"));
            return Ok(Verdict::Refused);
        }
    }
    Err(format!("{error:?}"))
}

/// The rule that corrects the archive for this file.
pub fn difference(side: &str, table: &str, file: &str) -> Option<Rule> {
    DIFFERENT.iter().find(|(of, name, files, _)| *of == side && *name == table && matches(files, file)).map(|d| {
        met(format!("different {side} {table}"));
        d.3
    })
}

/// Columns of this table whose arrays are compared as bags.
pub fn as_sets(side: &str, table: &str) -> &'static [&'static str] {
    AS_SETS.iter().find(|(of, name, _)| *of == side && *name == table).map_or(&[], |entry| entry.2)
}

/// Marks that arrays were in another order, as the list allows.
pub fn met_as_sets(side: &str, table: &str) {
    met(format!("as sets {side} {table}"));
}

/// Whether the stream of changes, not the archive's file, says what a range of this table holds.
pub fn raw_changes(side: &str, table: &str) -> bool {
    RAW_CHANGES.contains(&(side, table))
}

/// Marks that a range was merged by 0.9.
pub fn met_raw_changes(side: &str, table: &str) {
    met(format!("raw changes {side} {table}"));
}

impl Rule {
    /// Turns the archive's lines into the right ones.
    pub fn correct(self, lines: &mut Vec<Value>, reader: &Reader, file: &str) -> Result<(), String> {
        match self {
            Self::NullsStay => {
                for line in lines {
                    if line["v"] == "dv" {
                        line["v"] = Value::Null;
                    }
                    if line["n"] == 42 {
                        line["n"] = Value::Null;
                    }
                }
            }
            Self::FloorDate => {
                for line in lines.iter_mut().filter(|line| line["id"] == 2) {
                    line["ts_dt"] = "1969-12-31".into();
                }
            }
            Self::AllRowsOfTheFilter => {
                let wanted = "rows-5-filter4.jsonl";
                if file != wanted {
                    return Err(format!("this rule is for {wanted}"));
                }
                *lines = reader.lines("snapshot-5.jsonl")?;
                lines.retain(|line| line["d"].as_str().and_then(|d| d.parse::<f64>().ok()).is_some_and(|d| d > 9.0));
                if lines.len() != 7 {
                    return Err(format!("7 rows are above 9.0000 in the archive, found {}", lines.len()));
                }
            }
        }
        Ok(())
    }
}

/// The number of rows `$ro` has, all of which stand in `latest` too, and the only level they are read from.
pub fn top_level(side: &str, table: &str) -> Option<(usize, i64)> {
    let entry = TOP_LEVEL.iter().find(|entry| entry.0 == side && entry.1 == table)?;
    met(format!("top level {side} {table}"));
    Some((entry.2, entry.3))
}

/// Every table of the lists exists in the archive, and no table is both refused and different.
pub fn check() -> Result<crate::harness::Outcome, String> {
    let root = lakepin::testing::golden::root().map_err(|e| e.to_string())?;
    let listed = REFUSED.iter().map(|r| (r.0, r.1)).chain(DIFFERENT.iter().map(|d| (d.0, d.1)));
    let listed = listed.chain(AS_SETS.iter().map(|a| (a.0, a.1))).chain(RAW_CHANGES.iter().copied());
    let listed = listed.chain(TOP_LEVEL.iter().map(|t| (t.0, t.1)));
    for (side, table) in listed {
        let dir = root.join(if side == "java" { "java-0.9" } else { "python-2.1" }).join("expected").join(table);
        if !dir.is_dir() {
            return Err(format!("{side} {table} is listed but not in the archive"));
        }
    }
    Ok(crate::harness::Outcome::Passed(format!("{} refused tables, {} different", REFUSED.len(), DIFFERENT.len())))
}

/// Entries that no test of this run met; empty after a full run.
pub fn unmet() -> Vec<String> {
    let met = MET.lock().expect("list lock");
    let refused = REFUSED.iter().map(|r| format!("refused {} {}", r.0, r.1));
    let different = DIFFERENT.iter().map(|d| format!("different {} {}", d.0, d.1));
    let as_sets = AS_SETS.iter().map(|a| format!("as sets {} {}", a.0, a.1));
    let raw = RAW_CHANGES.iter().map(|r| format!("raw changes {} {}", r.0, r.1));
    let top = TOP_LEVEL.iter().map(|t| format!("top level {} {}", t.0, t.1));
    refused.chain(different).chain(as_sets).chain(raw).chain(top).filter(|entry| !met.contains(entry)).collect()
}
