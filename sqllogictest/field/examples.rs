//! The examples, run as programs. `cargo test` builds them; with `--test` alone they may be missing.

use std::process::Command;

use super::kit::{Done, OrText, check};
use crate::harness::{Outcome, Test};

/// Example, and lines its output must hold, in this order.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("query", &["| P1     | 10.00  |", "| P2     | 24.50  |", "| P3     | 7.25   |", "pay.payments @ snapshot 2"]),
    (
        "time_travel",
        &[
            "SELECT * FROM orders ORDER BY order_id",
            "| 2        | cancelled |",
            "orders @ snapshot 3",
            "VERSION AS OF 1",
            "| 1        | new    |",
            "orders @ snapshot 1",
            "VERSION AS OF 'eod'",
            "| 1        | paid   |",
            "orders @ snapshot 2",
            "tag 'eod'",
            "TIMESTAMP AS OF",
            "orders @ snapshot 1",
            "| 3        |     | new       |",
            "| UPDATE | 2        |",
            "| INSERT | 3        |",
            "| pinned |",
            "| 2      |",
            "snapshot 9",
        ],
    ),
    (
        "embed",
        &[
            "| Ann  | 15    |",
            "| Bo   | 20    |",
            "| Ann  | 10    |",
            "| Bo   | 20    |",
            "shop.spending @ snapshot 1",
            "| 1       | 10    |",
            "| 2       | 20    |",
        ],
    ),
];

pub fn register(tests: &mut Vec<Test>) {
    for (name, lines) in EXAMPLES {
        tests.push(Test::new(format!("examples::{name}"), move || run(name, lines)));
    }
}

fn run(name: &str, lines: &[&str]) -> Result<Outcome, String> {
    let me = std::env::current_exe().text()?;
    let built = me.parent().and_then(|deps| deps.parent()).map(|target| target.join("examples").join(name));
    let Some(program) = built.map(|p| p.with_extension(std::env::consts::EXE_EXTENSION)).filter(|p| p.exists()) else {
        return Ok(Outcome::Skipped("examples are not built: run `cargo test` without --test".into()));
    };
    let output = Command::new(program).output().text()?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    check(output.status.success(), format!("{name} failed\n{text}\n{errors}"))?;
    in_order(&text, lines).map_err(|m| format!("{name}: {m}\n{text}"))?;
    let source = std::fs::read_to_string(format!("{}/examples/{name}.rs", env!("CARGO_MANIFEST_DIR"))).text()?;
    let length = source.lines().count();
    check(length <= 60, format!("{name} is {length} lines long; an example is read at a glance"))?;
    Ok(Outcome::Passed(String::new()))
}

fn in_order(text: &str, lines: &[&str]) -> Done {
    let mut rest = text;
    for line in lines {
        let at = rest.find(line).ok_or_else(|| format!("{line:?} is missing or out of order"))?;
        rest = &rest[at + line.len()..];
    }
    Ok(())
}
