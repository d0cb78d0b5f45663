//! The one test program beside the unit tests: golden tables, SQL suites, the cases of the field, the shell as a
//! program. It takes what the standard harness takes: filters, `--list`, `--exact`, `--skip`, `--test-threads`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod differential;
mod field;
mod golden;
mod harness;
mod java_reads;
mod page;
mod probe;
mod random;
mod resume;
mod s3;
mod shell;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod sources;
mod suites;
mod torn;

use std::process::ExitCode;

fn main() -> ExitCode {
    lakepin::error::keep_caught_panics_quiet();
    if torn::be_the_writer() {
        return ExitCode::SUCCESS;
    }
    // programs of the tests keep no journal in the home of who runs them.
    // SAFETY: no other thread runs yet
    unsafe { std::env::set_var("LAKEPIN_JOURNAL", "") };
    let mut tests = Vec::new();
    golden::register(&mut tests);
    suites::register(&mut tests);
    shell::register(&mut tests);
    torn::register(&mut tests);
    java_reads::register(&mut tests);
    differential::register(&mut tests);
    s3::register(&mut tests);
    #[cfg(all(feature = "mysql", feature = "postgres"))]
    sources::register(&mut tests);
    probe::register(&mut tests);
    page::register(&mut tests);
    field::register(&mut tests);
    harness::run(tests)
}
