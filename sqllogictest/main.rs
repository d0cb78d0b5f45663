//! The one test program beside the unit tests: golden tables, SQL suites, the cases of the field, the shell as a
//! program. It takes what the standard harness takes: filters, `--list`, `--exact`, `--skip`, `--test-threads`.

mod differential;
mod golden;
mod harness;
mod random;
mod suites;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut tests = Vec::new();
    golden::register(&mut tests);
    suites::register(&mut tests);
    differential::register(&mut tests);
    harness::run(tests)
}
