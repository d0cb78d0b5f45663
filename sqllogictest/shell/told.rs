//! What the screen tells of a result: every row once, whole, with what was read.

use tempfile::TempDir;

use super::pty::Pty;
use super::terminal::{Check, PROMPT, ensure, shell, shell_in};
use crate::harness::{Outcome, Test};

fn typed(pty: &mut Pty, lines: &[&str]) -> Result<(), String> {
    for line in lines {
        pty.line(line)?;
        pty.wait_prompt(PROMPT)?;
    }
    Ok(())
}

/// What stands behind the rows that widths are measured on makes its line wider.
fn numbers_are_whole_without_a_cap(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    typed(pty, &["\\pager off", "\\set rows all"])?;
    pty.line("select value, 'k' || value as k from generate_series(8901, 11002);")?;
    let text = pty.wait_text("2 102 rows")?.join("\n");
    ensure(text.contains("│ 11002 │ k11002 │") && !text.contains('…'), || text.clone())?;
    // nor is one of the rest
    typed(pty, &["\\set rows 4"])?;
    pty.line("select value from generate_series(8901, 11002);")?;
    pty.wait_text("showing 4 of 2 102 rows")?;
    pty.line("\\more")?;
    pty.wait_text("2 100 rows")?;
    let text = pty.screen().join("\n");
    ensure(text.contains("│ 11002 │") && !text.contains("1100…"), || text.clone())
}

fn one_row_is_one_row(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    typed(pty, &["\\pager off", "\\set rows 1"])?;
    pty.line("select value from generate_series(101, 105);")?;
    let text = pty.wait_text("showing 1 of 5 rows")?.join("\n");
    ensure(text.contains("│ 101 ") || text.contains(" 101 │"), || text.clone())?;
    ensure(!text.contains(" 105 │"), || text.clone())?;
    pty.line("\\more")?;
    let text = pty.wait_text("4 rows")?.join("\n");
    ensure(text.matches(" 101 │").count() == 1 && text.contains(" 105 │"), || text.clone())
}

/// The program of `\o` shows a result before the next one is asked for.
fn program_shows_each_result(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    typed(pty, &["\\o |cat"])?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("│     42 │")?;
    pty.line("\\echo said :answer at once")?;
    pty.wait_text("said :answer at once").map(drop)
}

/// A pager that shows one line and leaves hides neither how many rows there are nor what was read.
fn pager_that_is_left_hides_no_pin(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select pay_id from dwd_pay_success order by pay_id;")?;
    pty.wait_text("pin: pay.dwd_pay_success @ snapshot 8")?;
    pty.wait_prompt(PROMPT)?;
    let text = pty.screen().join("\n");
    ensure(text.contains(" of 214 rows") || text.contains(" rows were read until"), || text.clone())
}

/// `AT (COMMIT => …)` takes the whole name.
fn commit_users_are_whole(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\ds dwd_pay_success")?;
    let text = pty.wait_text("times are those of")?.join("\n");
    ensure(text.contains("│ spark-fix-20260416-1 │"), || text.clone())
}

fn banner_names_the_folder() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut pty = Pty::start(&["demo", "here", "--no-rc"], &[], home.path(), (30, 200))?;
    pty.wait_prompt(PROMPT)?;
    let folder = home.path().join("here").canonicalize().map_err(|e| e.to_string())?;
    pty.wait_text(&format!("It lies in {}", folder.display()))?;
    // another warehouse has other databases: that of the demo is left behind
    std::fs::create_dir_all(home.path().join("other/d.db")).map_err(|e| e.to_string())?;
    pty.line("\\connect other")?;
    pty.wait_text("connected to other, database d")?;
    pty.wait_prompt("d@latest=>")?;
    pty.line("\\connect here")?;
    pty.wait_prompt(PROMPT)?;
    Ok(Outcome::Passed(String::new()))
}

/// A snapshot whose file is damaged is as lost as one that is gone.
fn prompt_turns_red_when_the_pin_is_damaged() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let demo = home.path().join("demo");
    lakepin::shell::make_demo(&demo).map_err(|e| e.to_string())?;
    let mut pty = shell_in(&home, &demo, (40, 160), &[])?;
    pty.line("\\pin dwd_pay_success 5")?;
    pty.wait_prompt("pay@5[04-16 10:00:03+08]=>")?;
    let file = demo.join("pay.db/dwd_pay_success/snapshot/snapshot-5");
    std::fs::write(&file, "{").map_err(|e| e.to_string())?;
    // a torn file is looked at more than once, and no prompt waits for that
    let mut tries = 0;
    while !pty.last().contains("!=>") {
        ensure(tries < 40, || pty.screen().join("\n"))?;
        tries += 1;
        pty.line("\\echo later")?;
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
    pty.wait_prompt("pay@5[04-16 10:00:03+08]!=>")?;
    ensure(pty.colour_of_last() == vt100::Color::Idx(1), || format!("{:?}", pty.colour_of_last()))?;
    pty.line("\\pins")?;
    pty.wait_text("damaged")?;
    std::fs::remove_file(&file).map_err(|e| e.to_string())?;
    pty.line("\\echo again")?;
    pty.wait_text("notice: the pinned snapshot 5 was removed from between the others; available 1..4, 6..8")?;
    pty.wait_prompt("pay@5[04-16 10:00:03+08]!=>")?;
    Ok(Outcome::Passed(String::new()))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new("shell::terminal::banner_names_the_folder", banner_names_the_folder));
    tests.push(Test::new("shell::terminal::prompt_turns_red_at_damage", prompt_turns_red_when_the_pin_is_damaged));
    let mut add = |name: &str, size: (u16, u16), env: &'static [(&'static str, &'static str)], check: Check| {
        tests.push(Test::new(format!("shell::terminal::{name}"), move || {
            let (mut pty, home) = shell(size, env)?;
            check(&mut pty, &home)?;
            Ok(Outcome::Passed(String::new()))
        }));
    };
    add("B095_numbers_are_whole_without_a_cap", (60, 100), &[], numbers_are_whole_without_a_cap);
    add("B095_one_row_is_one_row", (40, 100), &[], one_row_is_one_row);
    add("program_shows_each_result", (40, 100), &[], program_shows_each_result);
    add("B098_pager_that_is_left_hides_no_pin", (20, 100), &[("PAGER", "head -1")], pager_that_is_left_hides_no_pin);
    add("commit_users_are_whole", (40, 120), &[], commit_users_are_whole);
}
