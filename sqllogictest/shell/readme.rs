//! What README tells a newcomer to type, typed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::terminal::ensure;
use crate::harness::{Outcome, Test};

fn readme() -> Result<String, String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).map_err(|e| e.to_string())
}

/// A line in a folder, as a shell on whose PATH the program is runs it.
fn typed(line: &str, folder: &Path) -> Result<Output, String> {
    let program = Path::new(env!("CARGO_BIN_EXE_lakepin"));
    let mut path = vec![program.parent().ok_or("the program lies nowhere")?.to_path_buf()];
    path.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path).map_err(|e| e.to_string())?)
        .env("HOME", folder)
        .env_remove("LAKEPIN_WAREHOUSE")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())
}

/// Every line of the `sh` blocks in order, in one folder; those for Cargo build what runs here.
fn lines_run_as_they_stand() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let text = readme()?;
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let mut runs = Vec::new();
    for line in blocks.flat_map(str::lines).filter(|line| !line.starts_with("cargo ")) {
        let output = typed(line, home.path())?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure(output.status.success() && !told.contains("error["), || format!("{line}: {output:?}"))?;
        runs.push((line.to_string(), String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    for (word, answer) in [
        ("sum(amount)", "214,97550.80"),
        ("VERSION AS OF 4\"", "189"),
        // ten o'clock of the story is before the fifth commit
        (" ts '2026-04-16 10:00:00'", "\n189\n"),
        ("demo counts ", "total,"),
        (" test ", "1 passed"),
        ("--print-pin", "total,"),
    ] {
        let shown = runs.iter().any(|(line, answered)| line.contains(word) && answered.contains(answer));
        ensure(shown, || format!("{word} does not answer {answer}: {runs:?}"))?;
    }
    Ok(Outcome::Passed(format!("{} lines", runs.len())))
}

/// Every command of the shell and every option that is named is there.
fn names_are_those_of_the_program() -> Result<Outcome, String> {
    let text = readme()?;
    let word = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || "?+-".contains(*c)).collect::<String>();
    let spans = || text.split('`').skip(1).step_by(2);
    let commands: BTreeSet<String> = spans()
        .filter(|span| !span.contains('\n'))
        .flat_map(|span| span.match_indices('\\').map(|(at, _)| word(&span[at + 1..])).collect::<Vec<_>>())
        .filter(|name| !name.is_empty())
        .collect();
    let options: BTreeSet<String> =
        spans().filter(|span| span.starts_with("--")).map(|span| format!("--{}", word(&span[2..]))).collect();
    ensure(commands.len() > 20 && options.len() > 5, || format!("{commands:?} {options:?}"))?;
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let demo = crate::suites::demo()?.display().to_string();
    for name in &commands {
        let output = typed(&format!("lakepin -w '{demo}' -c '\\? {name}'"), home.path())?;
        ensure(output.status.success(), || format!("\\{name}: {output:?}"))?;
    }
    let help = typed("lakepin --help", home.path())?;
    let help = String::from_utf8_lossy(&help.stdout);
    for option in &options {
        ensure(help.contains(option.as_str()), || format!("{option} is no option"))?;
    }
    Ok(Outcome::Passed(format!("{} commands, {} options", commands.len(), options.len())))
}

/// The check that is shown, against the demo.
fn the_example_check_holds() -> Result<Outcome, String> {
    let text = readme()?;
    let block = text.split("```toml\n").nth(1).and_then(|rest| rest.split("\n```").next()).ok_or("no TOML is shown")?;
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    std::fs::write(home.path().join("pay.toml"), block).map_err(|e| e.to_string())?;
    let demo = crate::suites::demo()?.display().to_string();
    for command in ["reconcile", "verdict"] {
        let output = typed(&format!("lakepin -w '{demo}' {command} pay.toml"), home.path())?;
        ensure(output.status.success(), || format!("{command}: {output:?}"))?;
        // what is commented out is known, too
        let whole =
            block.replace("\nright = ", "\n# right = ").replace("# right_env", "right_env").replace("# from", "from");
        std::fs::write(home.path().join("source.toml"), whole).map_err(|e| e.to_string())?;
        let output = typed(&format!("lakepin -w '{demo}' {command} source.toml"), home.path())?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure(told.contains("PAY_SOURCE_URL") && !output.status.success(), || format!("{command}: {output:?}"))?;
    }
    Ok(Outcome::Passed("two commands".to_string()))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new("shell::readme::the_example_check_holds", the_example_check_holds));
    tests.push(Test::new("shell::readme::lines_run_as_they_stand", lines_run_as_they_stand));
    tests.push(Test::new("shell::readme::names_are_those_of_the_program", names_are_those_of_the_program));
}
