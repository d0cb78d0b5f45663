//! What scripts rely on and a transcript cannot make: files that are lost, torn or in another encoding.

use std::path::Path;
use std::process::{Command, Stdio};

use super::terminal::{ENDLESS, STUCK, ensure};
use crate::harness::{Outcome, Test};

/// A run in a folder: exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> Result<(Option<i32>, String, String), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_lakepin"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("LAKEPIN_WAREHOUSE")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

fn folder(files: &[(&str, &[u8])]) -> Result<tempfile::TempDir, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).map_err(|e| e.to_string())?;
    }
    Ok(home)
}

/// A data file that a kept snapshot names and nobody has: never fewer rows, and its own exit code.
fn lost_data_file_exits_with_4() -> Result<Outcome, String> {
    let home = folder(&[])?;
    let demo = home.path().join("demo");
    lakepin::shell::make_demo(&demo).map_err(|e| e.to_string())?;
    let mut folders = vec![demo.join("pay.db/dwd_pay_success")];
    let mut lost = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| e.to_string())?.flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                folders.push(path);
            } else if name.starts_with("data-") {
                std::fs::remove_file(&path).map_err(|e| e.to_string())?;
                lost += 1;
            }
        }
    }
    ensure(lost > 0, || "the demo has no data files".to_string())?;
    let (code, out, told) = run(home.path(), &["-w", "demo", "-c", "select sum(amount) from pay.dwd_pay_success"])?;
    ensure(code == Some(4) && told.contains("error[FileLost]"), || format!("{code:?}\n{out}\n{told}"))?;
    Ok(Outcome::Passed(format!("{lost} files lost")))
}

/// A statement gets the memory that is named, and an answer or an error by its name, with its own exit code.
fn memory_is_bounded() -> Result<Outcome, String> {
    let home = folder(&[])?;
    let demo = crate::suites::demo()?.display().to_string();
    let sql = "select pay_id, count(*) as n from pay.dwd_pay_success group by pay_id order by n";
    for (memory, expected) in [("64KiB", Some(5)), ("256MiB", Some(0)), ("none", Some(0))] {
        let (code, out, told) = run(home.path(), &["-q", "-w", &demo, "--memory", memory, "-c", sql])?;
        let named = told.contains("error[ResourcesExhausted]") == (expected == Some(5));
        ensure(code == expected && named, || format!("{memory}: {code:?}\n{out}\n{told}"))?;
    }
    let (code, _, told) = run(home.path(), &["-w", &demo, "--memory", "much", "-c", sql])?;
    ensure(code == Some(2), || format!("{code:?}\n{told}"))?;
    Ok(Outcome::Passed(String::new()))
}

/// Files that cannot be read are told by name; the others still run.
fn suites_name_what_they_cannot_read() -> Result<Outcome, String> {
    let good: &[u8] = b"query I\nselect 1\n----\n1\n";
    let home = folder(&[
        ("a.slt", b"query T\nselect 'caf\xe9'\n----\ncafe\n"),
        ("b.slt", b"include c.txt\n"),
        ("c.txt", b"statement ok\nselect 'caf\xe9'\n"),
        ("d.slt", b"include d.slt\n"),
        ("e.slt", good),
        ("g.slt", "\u{feff}query I\nselect 1\n----\n1\n".as_bytes()),
    ])?;
    std::fs::create_dir(home.path().join("f.slt.d")).map_err(|e| e.to_string())?;
    let demo = crate::suites::demo()?.display().to_string();
    for complete in [&[][..], &["--complete"][..]] {
        let (code, out, told) = run(home.path(), &[&["-w", &demo, "test", "."], complete].concat())?;
        let report = || format!("{complete:?} {code:?}\n{out}\n{told}");
        ensure(code == Some(1) && out.contains("1 passed, 4 failed"), report)?;
        for expected in [
            "not UTF-8 (file: ./a.slt, line: 2)",
            "not UTF-8 (file: c.txt, line: 2)",
            "includes itself",
            "byte order mark (file: ./g.slt)",
        ] {
            ensure(out.contains(expected), report)?;
        }
        let kept = std::fs::read(home.path().join("e.slt")).map_err(|e| e.to_string())?;
        ensure(kept == good, report)?;
    }
    Ok(Outcome::Passed(String::new()))
}

fn suites_keep_the_time_given() -> Result<Outcome, String> {
    let sql = ENDLESS.trim_end_matches(';');
    let home = folder(&[("slow.slt", format!("query I\n{sql}\n----\n1\n\nquery I\nselect 1\n----\n1\n").as_bytes())])?;
    let demo = crate::suites::demo()?.display().to_string();
    let (code, out, told) = run(home.path(), &["-w", &demo, "--timeout", "1s", "test", "slow.slt"])?;
    ensure(code == Some(1) && out.contains("error[Timeout]"), || format!("{code:?}\n{out}\n{told}"))?;
    Ok(Outcome::Passed(String::new()))
}

/// Each statement has its own time, whatever the one before it still does.
fn time_of_one_is_not_the_next_ones() -> Result<Outcome, String> {
    let home = folder(&[("a.slt", format!("query I\n{STUCK}\n----\n1\n\nquery I\nselect 42\n----\n42\n").as_bytes())])?;
    let demo = crate::suites::demo()?.display().to_string();
    let given = ["-q", "-w", &demo, "--timeout", "8s"];
    let statements = [
        "--on-error",
        "continue",
        "-c",
        STUCK,
        "-c",
        "select 42 as a",
        "-c",
        "select count(*) + 628 from dwd_pay_success",
    ];
    let (code, out, told) = run(home.path(), &[&given[..], &statements].concat())?;
    let report = || format!("{code:?}\n{out}\n{told}");
    ensure(code == Some(1) && out.contains("a\n42\n") && out.ends_with("\n842\n"), report)?;
    ensure(told.matches("error[").count() == 1 && told.contains("error[Timeout]"), report)?;
    let (code, out, told) = run(home.path(), &[&given[..], &["test", "a.slt"]].concat())?;
    ensure(code == Some(1) && out.matches("error[").count() == 1, || format!("{code:?}\n{out}\n{told}"))?;
    Ok(Outcome::Passed(String::new()))
}

/// `--complete` writes results, never that what should answer fails, or the other way round.
fn complete_blesses_no_error() -> Result<Outcome, String> {
    let before = "# kept\r\nquery I\r\nselect 1 + 1\r\n----\r\n7\r\n\r\nquery I\r\nselect nothing\r\n----\r\n3\r\n\r\n\
                  statement ok\r\nselect nothing\r\n\r\nquery error nothing at all\r\nselect 5\r\n\r\n\
                  statement error another text\r\nselect nothing\r\n";
    let home = folder(&[("x.slt", before.as_bytes())])?;
    let demo = crate::suites::demo()?.display().to_string();
    let (code, out, told) = run(home.path(), &["-w", &demo, "test", "--complete", "x.slt"])?;
    let after = std::fs::read_to_string(home.path().join("x.slt")).map_err(|e| e.to_string())?;
    let report = || format!("{code:?}\n{out}\n{told}\n{after}");
    ensure(code == Some(1), report)?;
    for left in [
        "left      x.slt:7: query would become query error: error[ColumnNotFound]",
        "left      x.slt:12: statement ok would become statement error: error[ColumnNotFound]",
        "left      x.slt:15: query error would become query",
    ] {
        ensure(out.contains(left), report)?;
    }
    let (head, tail) = after.split_once("statement error").ok_or_else(report)?;
    let (head_before, _) = before.split_once("statement error").ok_or("no last record")?;
    ensure(head == head_before.replace("\r\n7\r\n", "\r\n2\r\n"), report)?;
    ensure(tail.contains("ColumnNotFound") && !after.replace("\r\n", "").contains('\n'), report)?;
    Ok(Outcome::Passed(String::new()))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new("shell::lost_data_file_exits_with_4", lost_data_file_exits_with_4));
    tests.push(Test::new("shell::memory_is_bounded", memory_is_bounded));
    tests.push(Test::new("shell::suites_name_what_they_cannot_read", suites_name_what_they_cannot_read));
    tests.push(Test::new("shell::suites_keep_the_time_given", suites_keep_the_time_given));
    tests.push(Test::new("shell::B097_time_of_one_is_not_the_next_ones", time_of_one_is_not_the_next_ones));
    tests.push(Test::new("shell::complete_blesses_no_error", complete_blesses_no_error));
}
