//! The SQL suites under `cases/`, one feature a file, run by the engine of `lakepin test`.
//!
//! Variables: `${JAVA}`, `${PYTHON}` and `${WRITERS}`, the golden warehouses; `${DEMO}`, the demo warehouse; `${COPIES}`, a folder to
//! copy to. With `LAKEPIN_COMPLETE` set, results are written into the files instead of compared; read them before they
//! are committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lakepin::shell::suites::{Options, complete_file, run_file};
use lakepin::sql::SessionConfig;

use crate::harness::{Outcome, Test};

/// The demo warehouse, made once.
pub fn demo() -> Result<PathBuf, String> {
    static DEMO: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    DEMO.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo");
        lakepin::shell::make_demo(&folder).map_err(|e| e.to_string())?;
        Ok(folder)
    })
    .clone()
}

/// Warehouses by the names suites give them.
pub fn variables() -> Result<BTreeMap<String, String>, String> {
    let java = lakepin::testing::golden::java_warehouse().map_err(|e| e.to_string())?;
    let python = lakepin::testing::golden::python_warehouse().map_err(|e| e.to_string())?;
    let writers = lakepin::testing::golden::writers_warehouse().map_err(|e| e.to_string())?;
    let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("copies");
    std::fs::create_dir_all(&copies).map_err(|e| e.to_string())?;
    Ok([("JAVA", java), ("PYTHON", python), ("WRITERS", writers), ("DEMO", demo()?), ("COPIES", copies)]
        .into_iter()
        .map(|(name, path)| (name.to_string(), path.display().to_string()))
        .collect())
}

fn ensure_none(left: &[String]) -> Result<(), String> {
    if left.is_empty() { Ok(()) } else { Err(left.join("\n\n")) }
}

async fn check(path: PathBuf) -> Result<Outcome, String> {
    // plans shall not depend on the machine
    let session = SessionConfig { target_partitions: Some(4), ..SessionConfig::default() };
    let options = Options { variables: variables()?, session, ..Options::default() };
    if std::env::var_os("LAKEPIN_COMPLETE").is_some() {
        let completed = complete_file(&path, &options).await.map_err(|e| e.to_string())?;
        ensure_none(&completed.left)?;
    }
    let report = run_file(&path, &options).await;
    match report.failures.as_slice() {
        [] if report.records == 0 => Err("the file says nothing".to_string()),
        [] => Ok(Outcome::Passed(format!("{} records", report.records))),
        failures => Err(failures.join("\n\n")),
    }
}

pub fn register(tests: &mut Vec<Test>) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqllogictest/cases");
    let files = match lakepin::shell::suites::files(std::slice::from_ref(&cases)) {
        Ok(files) => files,
        Err(e) => return tests.push(Test::new("suites::files", move || Err(e.to_string()))),
    };
    for path in files {
        let name = path.strip_prefix(&cases).unwrap_or(&path).with_extension("").display().to_string();
        tests.push(Test::new_async(format!("suites::{}", name.replace('/', "::")), move || check(path)));
    }
}
