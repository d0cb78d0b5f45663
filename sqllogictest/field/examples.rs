//! The examples, run as programs. `cargo test` builds them; with `--test` alone they may be missing.

use std::process::Command;
use std::sync::Arc;

use lakepin::datafusion::prelude::SessionContext;
use lakepin::{PinRequest, Session, SessionConfig, Warehouse};

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

/// What README shows from Rust, compiled as it stands there; the examples run the same calls.
async fn readme() -> Result<(), Box<dyn std::error::Error>> {
    let warehouse = Warehouse::open("/data/warehouse", &Default::default()).await?;
    let session = Session::new(&warehouse, SessionConfig::default()).await?;
    let result = session.run_one("SELECT pay_id, amount FROM pay.payments VERSION AS OF 3").await?;
    let _ = (result.pins, result.notices, result.stream);
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await?;
    let now = context.sql("SELECT count(*) FROM lake.pay.payments").await?;
    let fixed = warehouse.table("pay", "payments").await?.pin(PinRequest::SnapshotId(3)).await?;
    context.register_table("payments_at_3", Arc::new(fixed))?;
    now.collect().await?;
    Ok(())
}

fn readme_shows_what_compiles() -> Result<Outcome, String> {
    let _compiled = readme;
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).text()?;
    let (_, rest) = readme.split_once("## From Rust\n").ok_or("README says nothing about Rust")?;
    let section = rest.split("\n## ").next().unwrap_or_default();
    let shown = section.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| !line.starts_with("//"));
    let compiled: Vec<&str> = include_str!("examples.rs").lines().map(str::trim).collect();
    let mut lines = 0;
    for line in shown {
        check(compiled.contains(&line.trim()), format!("README shows what no test compiles: {line}"))?;
        lines += 1;
    }
    check(lines > 5, format!("README shows {lines} lines of Rust"))?;
    Ok(Outcome::Passed(format!("{lines} lines")))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new("examples::readme_shows_what_compiles", readme_shows_what_compiles));
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
