//! The shell driven as a program: through pipes (transcripts under `cases/`) and in a pseudo-terminal.

mod haste;
mod promises;
mod pty;
mod readme;
mod terminal;
mod told;
mod transcripts;

use std::collections::BTreeMap;

use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    transcripts::register(tests);
    terminal::register(tests);
    haste::register(tests);
    promises::register(tests);
    told::register(tests);
    readme::register(tests);
}

/// The cases of the field that the shell's tests are of, and how many: tests named `shell::…B097_…` and runs of
/// transcripts labelled `# B093 …`.
pub fn cases(names: &[String]) -> Result<BTreeMap<String, usize>, String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let own = names.iter().filter_map(|name| name.strip_prefix("shell::"));
    let named = own.filter_map(|name| case_id(name.rsplit("::").next()?)).map(str::to_string);
    for id in named.chain(transcripts::labels()?) {
        *found.entry(id).or_default() += 1;
    }
    Ok(found)
}

/// `B097` of `B097_ctrl_c_…` and of `B097 Ctrl-C …`.
fn case_id(text: &str) -> Option<&str> {
    let (id, rest) = text.split_at_checked(4)?;
    let digits = id.strip_prefix('B')?;
    (digits.bytes().all(|b| b.is_ascii_digit()) && rest.starts_with(['_', ' '])).then_some(id)
}
