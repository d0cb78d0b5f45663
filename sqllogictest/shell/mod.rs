//! The shell driven as a program: through pipes (transcripts under `cases/`) and in a pseudo-terminal.

mod pty;
mod terminal;
mod transcripts;

use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    transcripts::register(tests);
    terminal::register(tests);
}
