//! Keys and signals at bad moments: what was meant to follow does not run, and nothing is left behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::pty::Pty;
use super::terminal::{Check, ENDLESS, PROMPT, ensure, shell};
use crate::harness::{Outcome, Test};

/// One Ctrl-C ends a file and the files it includes, and all of a line.
fn ctrl_c_ends_what_was_typed(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).map_err(|e| e.to_string());
    write("inner.sql", &format!("\\if true\n{ENDLESS}\nselect 'inner' || ' went on';\n\\endif\n"))?;
    write("outer.sql", "\\i inner.sql\nselect 'outer' || ' went on';\n")?;
    let lines = ["\\i outer.sql".to_string(), format!("{ENDLESS} select 'line' || ' went on';")];
    for line in lines {
        pty.line(&line)?;
        pty.wait_text("rows read")?;
        pty.send("\x03")?;
        pty.wait_text("error[Interrupted]")?;
        pty.wait_prompt(PROMPT)?;
        // a press right after it is for what runs now, not the second of two
        pty.line(ENDLESS)?;
        pty.wait_text("rows read")?;
        pty.send("\x03")?;
        pty.wait_prompt(PROMPT)?;
        let screen = pty.screen().join("\n");
        ensure(!screen.contains("went on │"), || screen.clone())?;
    }
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42").map(drop)
}

/// Two Ctrl-C while rows stream into the pager cancel the statement: the pager goes on until its user leaves it.
fn pager_outlives_ctrl_c(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    let pager = home.path().join("pager");
    let text = "trap 'echo pressed >> pressed' INT\nwhile [ ! -f enough ]; do sleep 0.1; done\ncat > /dev/null\n";
    std::fs::write(&pager, text).map_err(|e| e.to_string())?;
    pty.line("select value, 'text' as t from generate_series(1, 100000000);")?;
    let seen = |name: &str, lines: usize| {
        let text = std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
        text.lines().count() >= lines
    };
    std::thread::sleep(Duration::from_secs(2));
    for press in 1..=3 {
        pty.send("\x03")?;
        let began = Instant::now();
        while !seen("pressed", press) {
            ensure(began.elapsed() < Duration::from_secs(30), || "the pager did not get the key".to_string())?;
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    ensure(!pty.ended()?, || "the shell left its pager alone".to_string())?;
    std::fs::write(home.path().join("enough"), "").map_err(|e| e.to_string())?;
    pty.wait_prompt(PROMPT)?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42").map(drop)
}

/// The first screen is there while the rows are still being made.
fn pager_starts_when_the_screen_is_full(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\set rows all")?;
    pty.wait_prompt(PROMPT)?;
    pty.line("select value from generate_series(1, 100000000000) where value < 50000 or value % 7 = 9;")?;
    pty.wait_text("first screen")?;
    pty.wait_prompt(PROMPT).map(drop)
}

/// `kill` and a closed terminal end the program as promised, and no file is left half written.
fn signals_leave_no_part() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let names = |folder: &Path| -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    };
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lakepin"))
            .args(["-w", &crate::suites::demo()?.display().to_string(), "-o", "out.csv", "-c"])
            .arg(format!("select 1; {ENDLESS}"))
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        // the first statement is done
        let mut told = BufReader::new(child.stderr.take().ok_or("no standard error")?).lines();
        while told.next().transpose().map_err(|e| e.to_string())?.ok_or("it said nothing")? != "1 row" {}
        let found = names(home.path())?;
        ensure(found.iter().any(|name| name.ends_with(".part")), || format!("nothing to leave: {found:?}"))?;
        let pressed = Instant::now();
        let killed = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        ensure(killed.map_err(|e| e.to_string())?.success(), || "kill failed".to_string())?;
        let status = child.wait().map_err(|e| e.to_string())?;
        ensure(status.code() == Some(code), || format!("{signal}: {status}"))?;
        ensure(pressed.elapsed() < Duration::from_secs(5), || format!("it took {:?}", pressed.elapsed()))?;
        let found = names(home.path())?;
        ensure(found.is_empty(), || format!("{signal} left {found:?}"))?;
    }
    Ok(Outcome::Passed(String::new()))
}

/// A program that was started with SIGHUP ignored, as by `nohup`, does not end at it.
fn nohup_is_kept() -> Result<Outcome, String> {
    let demo = crate::suites::demo()?.display().to_string();
    let script = "trap '' HUP; exec \"$0\" -q -w \"$1\" -c 'select count(*) as n from generate_series(1, 20000000) \
                  as a(x) where x % 7 = 3'";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_lakepin"), &demo])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(100));
        let _ = Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    }
    let mut answer = String::new();
    let out = child.stdout.take().ok_or("no output")?;
    std::io::Read::read_to_string(&mut BufReader::new(out), &mut answer).map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    ensure(status.success() && answer.starts_with("n\n"), || format!("{status}: {answer}"))?;
    Ok(Outcome::Passed(String::new()))
}

/// SIGTERM in the midst of a line gives the terminal back as it was, and takes the pager with it, even one that outlives
/// its terminal.
fn terminal_is_given_back(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    std::fs::write(home.path().join("pager"), "trap '' HUP\necho $$ > pager.pid\nexec sleep 1000\n")
        .map_err(|e| e.to_string())?;
    pty.line("select value from generate_series(1, 100);")?;
    let file = home.path().join("pager.pid");
    let began = Instant::now();
    let pager = loop {
        match std::fs::read_to_string(&file).unwrap_or_default().trim() {
            "" if began.elapsed() > Duration::from_secs(30) => return Err("no pager".to_string()),
            "" => std::thread::sleep(Duration::from_millis(50)),
            pid => break pid.to_string(),
        }
    };
    pty.signal("TERM")?;
    ensure(pty.end()? == 143, || "SIGTERM did not end it with 143".to_string())?;
    let status = format!("/proc/{pager}/status");
    let began = Instant::now();
    // gone, or dead and not yet waited for by who inherited it
    while std::fs::read_to_string(&status).is_ok_and(|status| !status.contains("\nState:\tZ")) {
        ensure(began.elapsed() < Duration::from_secs(10), || "the pager lives".to_string())?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn prompt_gives_the_terminal_back(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.send("select typed")?;
    pty.wait_text("select typed")?;
    ensure(!pty.is_cooked()?, || "the line editor does not use the terminal raw".to_string())?;
    pty.signal("TERM")?;
    ensure(pty.end()? == 143, || "SIGTERM did not end it with 143".to_string())?;
    ensure(pty.is_cooked()?, || "the terminal is left raw".to_string())
}

/// A text that is not UTF-8, or a file that ends inside `\if`, is told and closes nothing.
fn bad_files_close_nothing(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    let write = |name: &str, text: &[u8]| std::fs::write(home.path().join(name), text).map_err(|e| e.to_string());
    write("latin.sql", b"select 'caf\xe9';\n")?;
    write("half.sql", b"\\if false\nselect 'never';\n")?;
    pty.line("\\i latin.sql")?;
    pty.wait_text("the text is not UTF-8")?;
    pty.wait_prompt(PROMPT)?;
    pty.line("\\i half.sql")?;
    pty.wait_text("the text ends inside \\if")?;
    pty.wait_prompt(PROMPT)?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42").map(drop)
}

fn empty_result_fits(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select * from dwd_pay_success where channel = 'none';")?;
    let screen = pty.wait_text("0 rows")?;
    let text = screen.join("\n");
    ensure(screen.iter().any(|line| line.trim_end() == "channel") && !text.contains('┌'), || text.clone())?;
    ensure(!text.contains("P:"), || format!("it was paged:\n{text}"))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new("shell::signals_leave_no_part", signals_leave_no_part));
    tests.push(Test::new("shell::nohup_is_kept", nohup_is_kept));
    let mut add = |name: &str, size: (u16, u16), env: &'static [(&'static str, &'static str)], check: Check| {
        tests.push(Test::new(format!("shell::terminal::{name}"), move || {
            let (mut pty, home) = shell(size, env)?;
            check(&mut pty, &home)?;
            Ok(Outcome::Passed(String::new()))
        }));
    };
    add("B097_ctrl_c_ends_what_was_typed", (40, 120), &[], ctrl_c_ends_what_was_typed);
    let uncapped: &[(&str, &str)] = &[("PAGER", "sh pager"), ("LAKEPIN_ROWS", "all")];
    add("B098_pager_outlives_ctrl_c", (20, 100), uncapped, pager_outlives_ctrl_c);
    let first = &[("PAGER", "sh -c head${IFS}-1>/dev/null;echo${IFS}first${IFS}screen")];
    add("B098_pager_starts_when_the_screen_is_full", (20, 100), first, pager_starts_when_the_screen_is_full);
    add("terminal_is_given_back_by_the_pager", (20, 100), &[("PAGER", "sh pager")], terminal_is_given_back);
    add("terminal_is_given_back_by_the_prompt", (20, 100), &[], prompt_gives_the_terminal_back);
    add("bad_files_close_nothing", (30, 120), &[], bad_files_close_nothing);
    add("empty_result_fits", (40, 60), &[("PAGER", "sed s/^/P:/")], empty_result_fits);
}
