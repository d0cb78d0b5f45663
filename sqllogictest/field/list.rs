//! Every case of the list is a test here, or stands below with the reason why not.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{Outcome, Test};

/// The cases, one a line: id and title.
const CASES: &str = include_str!("ids.txt");

/// Why a case is no test of the reader.
enum Excuse {
    /// A test of the shell as a program shows it: one named for it, or a run of a transcript labelled with it.
    Shell,
    /// It speaks of something that does not exist yet.
    Later(&'static str),
}

const EXCUSED: &[(&str, Excuse)] = &[
    ("B078", Excuse::Later("a lost acknowledgement of our own commit: there are no commits of ours yet")),
    ("B093", Excuse::Shell),
    ("B095", Excuse::Shell),
    ("B096", Excuse::Shell),
    ("B097", Excuse::Shell),
    ("B098", Excuse::Shell),
    ("B100", Excuse::Shell),
    ("B102", Excuse::Shell),
    ("B103", Excuse::Shell),
];

/// Cases whose test shows the reader's half only; the other half.
const IN_PART: &[(&str, &str)] = &[
    (
        "B070",
        "level 0 of a first-row table is hidden whatever a reader asks for, as in Java; here it is announced, and \
             merged on request where deletion vectors hide it",
    ),
    ("B085", "the check of what is lost; nothing here deletes files yet"),
];

pub fn register(tests: &mut Vec<Test>) {
    let names: Vec<String> = tests.iter().map(|t| t.name.clone()).collect();
    tests.push(Test::new("case::every_case_is_tested_or_excused", move || check(&names)));
}

fn check(names: &[String]) -> Result<Outcome, String> {
    let ids: BTreeSet<&str> = CASES.lines().filter_map(|line| line.split_whitespace().next()).collect();
    if ids.len() != CASES.lines().count() || ids.iter().any(|id| !id.starts_with('B') || id.len() != 4) {
        return Err("the list holds a line without an id of its own".into());
    }
    let mut tested: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names.iter().filter_map(|n| n.strip_prefix("case::")) {
        let id = name.get(..4).filter(|id| ids.contains(id)).ok_or_else(|| format!("case::{name} is of no case"))?;
        *tested.entry(id).or_default() += 1;
    }
    let excused: BTreeSet<&str> = EXCUSED.iter().map(|(id, _)| *id).collect();
    if excused.len() != EXCUSED.len() {
        return Err("a case is excused twice".into());
    }
    let shell = crate::shell::cases(names)?;
    let mut wrong = Vec::new();
    wrong.extend(
        shell.keys().filter(|id| !ids.contains(id.as_str())).map(|id| format!("{id} of the shell is not listed")),
    );
    for id in &ids {
        let by_shell = EXCUSED.iter().any(|(known, excuse)| known == id && matches!(excuse, Excuse::Shell));
        match (by_shell, shell.contains_key(*id)) {
            (true, false) => wrong.push(format!("{id} is left to the shell, and no test of the shell is of it")),
            (false, true) => wrong.push(format!("{id} is tested by the shell and not said to be")),
            _ => {}
        }
        match (tested.contains_key(id), excused.contains(id)) {
            (true, false) | (false, true) => {}
            (true, true) => wrong.push(format!("{id} is tested and excused")),
            (false, false) => wrong.push(format!("{id} is neither tested nor excused")),
        }
    }
    wrong.extend(excused.iter().filter(|id| !ids.contains(*id)).map(|id| format!("{id} is excused but not listed")));
    wrong
        .extend(IN_PART.iter().filter(|(id, _)| !tested.contains_key(id)).map(|(id, _)| format!("{id} is not tested")));
    let reasonless = EXCUSED.iter().any(|(_, e)| matches!(e, Excuse::Later(why) if why.len() < 20));
    if reasonless || IN_PART.iter().any(|(_, rest)| rest.is_empty()) {
        return Err("an excuse has no reason".into());
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    Ok(Outcome::Passed(format!(
        "{} cases: {} tested, {} by {} tests of the shell, {} excused",
        ids.len(),
        tested.len(),
        shell.len(),
        shell.values().sum::<usize>(),
        EXCUSED.len() - shell.len()
    )))
}
