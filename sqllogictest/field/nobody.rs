//! Tests about rights, run again by somebody who has none: root may read everything.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::kit::OrText;
use crate::harness::Outcome;

/// Set for the second run, which must not start a third.
const AGAIN: &str = "LAKEPIN_TEST_AS_NOBODY";

/// Runs one test of this program as a user without rights, and gives its outcome.
pub fn run_again(test: &str) -> Result<Outcome, String> {
    if std::env::var_os(AGAIN).is_some() {
        return Err("the user without rights may read everything, too".into());
    }
    // a folder the other user can enter, and the program in it: its own place may be closed
    let dir = tempfile::tempdir().text()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).text()?;
    let own = std::env::current_exe().text()?;
    let program = dir.path().join("tests");
    if fs::hard_link(&own, &program).is_err() {
        fs::copy(&own, &program).text()?;
    }
    let run = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", test])
        .env(AGAIN, "1")
        .env("TMPDIR", dir.path())
        .current_dir(dir.path())
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => return Ok(Outcome::Skipped(format!("root has all rights, and setpriv is not there: {error}"))),
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && said.contains(&format!("test {test} ... ok")) {
        let note = said.split_once("... ok (").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(note, _)| note);
        return Ok(Outcome::Passed(format!("as nobody: {note}")));
    }
    Err(format!("as nobody: {said}{}", String::from_utf8_lossy(&output.stderr)))
}
