//! Transcripts: what the program is given and what it answers, line by line.
//!
//! ```text
//! # a comment; `# B093 …` before a run says which case of the field it shows
//! % NAME=value            an environment variable for the runs that follow
//! $ lakepin -w ${DEMO} -c "select 1"      a run; also `cat FILE`, `write FILE TEXT` and `remove FILE`
//! < a line of standard input
//! | a line of standard output
//! ! a line of standard error
//! = 0                     the exit code
//! ```
//! `[..]` in an expected line stands for anything. Runs of one file share an empty folder, where they run. With
//! `LAKEPIN_COMPLETE` set, answers are written into the files instead of compared.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{Outcome, Test};

#[derive(Default)]
struct Answer {
    stdout: String,
    stderr: String,
    code: i32,
}

/// One run: its lines up to the answer, and the answer.
struct Step {
    head: Vec<String>,
    command: String,
    input: Vec<String>,
    answer: Vec<String>,
}

fn steps(text: &str) -> (Vec<Step>, Vec<String>) {
    let mut steps: Vec<Step> = Vec::new();
    let mut head = Vec::new();
    for line in text.lines() {
        match (line.chars().next(), steps.last_mut()) {
            (Some('$'), _) => steps.push(Step {
                head: std::mem::take(&mut head),
                command: line[1..].trim().to_string(),
                input: Vec::new(),
                answer: Vec::new(),
            }),
            (Some('<'), Some(step)) => step.input.push(line[1..].strip_prefix(' ').unwrap_or(&line[1..]).to_string()),
            (Some('|' | '!' | '='), Some(step)) => step.answer.push(line.to_string()),
            _ => head.push(line.to_string()),
        }
    }
    (steps, head)
}

fn substituted(text: &str, variables: &BTreeMap<String, String>) -> String {
    variables.iter().fold(text.to_string(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// Words as a POSIX shell cuts them: quotes, no escapes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn run(words: &[String], input: &[String], env: &BTreeMap<String, String>, folder: &Path) -> Result<Answer, String> {
    let (program, arguments) = words.split_first().ok_or("a run without program")?;
    match program.as_str() {
        "cat" => {
            let file = folder.join(arguments.first().ok_or("cat needs a file")?);
            return Ok(match std::fs::read_to_string(&file) {
                Ok(stdout) => Answer { stdout, ..Answer::default() },
                Err(_) => Answer { stderr: "no such file".to_string(), code: 1, ..Answer::default() },
            });
        }
        "write" => {
            let [file, text] = arguments else { return Err("write FILE TEXT".to_string()) };
            if let Some(parent) = folder.join(file).parent() {
                std::fs::create_dir_all(parent).map_err(|e| e.to_string())?;
            }
            std::fs::write(folder.join(file), text.replace("\\n", "\n")).map_err(|e| e.to_string())?;
            return Ok(Answer::default());
        }
        "remove" => {
            let file = folder.join(arguments.first().ok_or("remove needs a file")?);
            std::fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            return Ok(Answer::default());
        }
        "lakepin" => {}
        other => return Err(format!("unknown program {other}")),
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_lakepin"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        // the journal would lie in the folder that others look at
        .env("LAKEPIN_JOURNAL", "")
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut stdin = child.stdin.take().ok_or("no standard input")?;
    let text: String = input.iter().map(|line| format!("{line}\n")).collect();
    // a program that does not read its input is no failure of the test
    let _ = stdin.write_all(text.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    Ok(Answer {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    })
}

/// The answer as lines of a transcript, warehouses by their names.
fn lines(answer: &Answer, variables: &BTreeMap<String, String>, folder: &Path) -> Vec<String> {
    let named = |text: &str| {
        let text =
            variables.iter().fold(text.to_string(), |text, (name, path)| text.replace(path, &format!("${{{name}}}")));
        text.replace(&folder.display().to_string(), "[HERE]")
    };
    // an empty line leaves no blank at its end
    let marked = |mark: char, line: &str| if line.is_empty() { mark.to_string() } else { format!("{mark} {line}") };
    let mut lines: Vec<String> = named(&answer.stdout).lines().map(|line| marked('|', line)).collect();
    lines.extend(named(&answer.stderr).lines().map(|line| marked('!', line)));
    lines.push(format!("= {}", answer.code));
    lines
}

fn matches(expected: &str, found: &str) -> bool {
    let mut parts = expected.split("[..]");
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (i, part) in parts.iter().enumerate() {
        if i + 1 == parts.len() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

fn check(path: &Path) -> Result<Outcome, String> {
    let variables = crate::suites::variables()?;
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let complete = std::env::var_os("LAKEPIN_COMPLETE").is_some();
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (steps, tail) = steps(&text);
    let mut env = BTreeMap::new();
    let mut rewritten = String::new();
    let mut failures = Vec::new();
    let count = steps.len();
    for step in steps {
        for line in &step.head {
            if let Some((name, value)) = line.strip_prefix('%').and_then(|l| l.split_once('=')) {
                env.insert(name.trim().to_string(), substituted(value.trim(), &variables));
            }
        }
        let input: Vec<String> = step.input.iter().map(|line| substituted(line, &variables)).collect();
        let words: Vec<String> = words(&step.command).iter().map(|word| substituted(word, &variables)).collect();
        let answer = run(&words, &input, &env, folder.path())?;
        let found = lines(&answer, &variables, folder.path());
        let same = step.answer.len() == found.len() && step.answer.iter().zip(&found).all(|(e, f)| matches(e, f));
        if !same {
            failures.push(format!(
                "$ {}\nexpected\n  {}\nfound\n  {}",
                step.command,
                step.answer.join("\n  "),
                found.join("\n  ")
            ));
        }
        let answer = if same { &step.answer } else { &found };
        let head = step.head.iter().cloned().chain([format!("$ {}", step.command)]);
        let input = step.input.iter().map(|line| format!("< {line}").trim_end().to_string());
        for line in head.chain(input).chain(answer.iter().cloned()) {
            rewritten.push_str(&line);
            rewritten.push('\n');
        }
    }
    for line in &tail {
        rewritten.push_str(line);
        rewritten.push('\n');
    }
    if complete {
        std::fs::write(path, rewritten).map_err(|e| e.to_string())?;
        return Ok(Outcome::Passed("completed".to_string()));
    }
    if failures.is_empty() { Ok(Outcome::Passed(format!("{count} runs"))) } else { Err(failures.join("\n\n")) }
}

fn files() -> Vec<PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqllogictest/shell/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&cases)
        .map(|entries| {
            entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "txt")).collect()
        })
        .unwrap_or_default();
    files.sort();
    files
}

/// Cases that runs are labelled with: a comment `# B093 …` right before a run that has an answer.
pub fn labels() -> Result<Vec<String>, String> {
    let mut labels = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        for step in steps(&text).0 {
            let label = step.head.last().and_then(|line| line.strip_prefix("# ")).and_then(super::case_id);
            if step.answer.iter().any(|line| line.starts_with('=')) {
                labels.extend(label.map(str::to_string));
            }
        }
    }
    Ok(labels)
}

pub fn register(tests: &mut Vec<Test>) {
    for path in files() {
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        tests.push(Test::new(format!("shell::transcript::{name}"), move || check(&path)));
    }
}
