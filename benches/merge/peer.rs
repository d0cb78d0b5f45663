//! The peer, in a process of its own.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What the peer took for each query, by name, and how many rows it gave; empty where no peer is named.
pub fn answers(warehouse: &Path, runs: usize, queries: &[(&str, &str)]) -> HashMap<String, (Duration, usize)> {
    let Ok(python) = std::env::var("LAKEPIN_BENCH_PEER") else { return HashMap::new() };
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/merge/peer.py");
    let mut child = Command::new(python)
        .arg(program)
        .arg(warehouse)
        .arg(runs.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the peer starts");
    let mut input = child.stdin.take().expect("its input");
    for (name, sql) in queries {
        writeln!(input, "{name}\t{sql}").expect("its input");
    }
    drop(input);
    let output = child.wait_with_output().expect("the peer answers");
    assert!(output.status.success(), "the peer failed");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = |line: &str| -> Option<(String, (Duration, usize))> {
        let mut parts = line.split('\t');
        let (name, millis, rows) = (parts.next()?, parts.next()?, parts.next()?);
        Some((name.to_string(), (Duration::from_secs_f64(millis.parse::<f64>().ok()? / 1e3), rows.parse().ok()?)))
    };
    text.lines().map(|text| line(text).unwrap_or_else(|| panic!("the peer says {text}"))).collect()
}
