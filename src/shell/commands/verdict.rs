//! `\verdict`: which layer is responsible for a difference, and what proves it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::{FutureExt, LocalBoxFuture};

use super::checked::{Failed, Wanted, wanted};
use super::findings::{create, plain};
use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::shell::checks::{At, Check, Expected, Given, Place, table_at};
use crate::shell::language::both;
use crate::shell::render::Format;
use crate::shell::report::eprint;
use crate::shell::state::Shell;
use crate::shell::variables::{quoted, replaced};
use crate::sql::verdict::Verdict;
use crate::sql::{Judged, Warehouse};

/// `\verdict`
pub const VERDICT: Command = Command {
    names: &["verdict"],
    usage: "file.toml [check …] [--at pin] [--out dir] [--as text|json|html] [--keys n] [--their-count n] | t --their-count n | t with … on key (…)",
    task: Task::Prove,
    about: both("which layer is responsible for a difference, with proof", "差异由哪一层造成，并给出证据"),
    detail: both(
        "\\verdict checks/pay.toml --at tag:eod --out report\n\
         \\verdict pay.t@v3 --their-count 503\n\
         \\verdict pay.t@v3 with (select * from u) on key (id)\n\
         layers: engine, visibility, counting rule, business mapping, upstream, commit protocol, co-writing, operation on\n\
         the table, commit identity, storage; --out writes text, JSON and a page of its own for each check; exit code 0\n\
         when all is as expected, 3 when not; when a check could not be judged, that of its error, and what was found of\n\
         the others is shown all the same",
        "\\verdict checks/pay.toml --at tag:eod --out report\n\
         \\verdict pay.t@v3 --their-count 503\n\
         \\verdict pay.t@v3 with (select * from u) on key (id)\n\
         层次：引擎、可见性、计数口径、业务映射、上游、提交协议、并发写、对表的操作、提交标识、存储；\n\
         --out 为每个核对写出文本、JSON 和独立网页；全部符合预期时退出码 0，否则 3；\n\
         某个核对没能完成时用它的错误的退出码，其他核对的结果照样显示",
    ),
    argument: Argument::File,
    run,
};

/// How a verdict is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Text,
    Json,
    Html,
}

impl As {
    fn parse(text: &str) -> Result<Self> {
        match text.to_lowercase().as_str() {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "html" => Ok(Self::Html),
            other => Err(usage(format!("{other} is none of text, json and html"))),
        }
    }
}

/// What a line says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// A file of checks, or a table.
    what: String,
    checks: Vec<String>,
    at: Vec<String>,
    out: Option<PathBuf>,
    form: Option<As>,
    keys: Option<u64>,
    theirs: Option<u64>,
}

fn asked(words: Vec<String>) -> Result<Asked> {
    let mut asked = Asked::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = |name: &str| words.next().ok_or_else(|| usage(format!("{name} lacks its value")));
        let number = |text: String| text.parse::<u64>().map_err(|_| usage(format!("{text} is no count")));
        match word.as_str() {
            "--at" => asked.at.push(value("--at")?),
            "--out" => asked.out = Some(value("--out")?.into()),
            "--as" => asked.form = Some(As::parse(&value("--as")?)?),
            "--keys" => asked.keys = Some(number(value("--keys")?)?),
            "--their-count" => asked.theirs = Some(number(value("--their-count")?)?),
            option if option.starts_with("--") => return Err(usage(format!("there is no option {option}"))),
            _ if asked.what.is_empty() => asked.what = word,
            _ => asked.checks.push(word),
        }
    }
    Ok(asked)
}

fn is_file(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}

fn one(name: &str, sql: String) -> Vec<Wanted> {
    vec![Wanted { name: name.to_string(), sql: Ok(sql), expected: Expected::Equal }]
}

/// The statement for a count of a table.
fn of_count(shell: &Shell, asked: &Asked) -> Result<String> {
    let (Some(theirs), true) = (asked.theirs, asked.checks.is_empty()) else {
        return Err(usage("write \\verdict table --their-count n, or name a file of checks"));
    };
    let database = shell.session.database();
    let given = Given::new(&asked.at, &database).map_err(usage)?;
    let at = match given.of(&asked.what) {
        At::Pin(pin) => Some(pin),
        At::Own => None,
        At::OwnBeside(others) => return Err(usage(format!("--at {others} is of another table than {}", asked.what))),
    };
    Ok(format!("RECONCILE {} WITH COUNT {theirs}", table_at(&asked.what, at)))
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables)?;
        let options = words.iter().any(|word| word.starts_with("--"));
        let (runs, notices, asked) = if words.iter().any(|word| is_file(word)) {
            let asked = asked(words)?;
            let statement =
                |check: &Check, at: Option<&str>, place: Place<'_>| check.verdict(at, place, asked.keys, asked.theirs);
            let (runs, notices) = wanted(shell, Path::new(&asked.what), &asked.checks, &asked.at, statement)?;
            (runs, notices, asked)
        } else if options {
            let asked = asked(words)?;
            (one("count", of_count(shell, &asked)?), Vec::new(), asked)
        } else if words.is_empty() {
            return Err(usage(
                "write \\verdict file.toml, \\verdict table --their-count n, or \\verdict t with … on key (…)",
            ));
        } else {
            let sql = format!("RECONCILE {}", replaced(call.sql(), &shell.variables));
            (one("verdict", sql), Vec::new(), Asked::default())
        };
        let form = asked.form.unwrap_or(if shell.settings.format == Format::Json { As::Json } else { As::Text });
        let several = runs.len() > 1;
        if several && form == As::Html && asked.out.is_none() {
            return Err(usage("a page is of one check: name one, or write all of them with --out"));
        }
        let (mut lines, mut red, mut documents) = (Vec::new(), Vec::new(), Vec::new());
        let (mut notes, mut failed) = (Vec::new(), Failed::default());
        let given = shell.notes(&[], &notices);
        if form == As::Text {
            notes.extend(given);
        } else if !given.is_empty() && !shell.settings.quiet {
            eprint(&(given.join("\n") + "\n"));
        }
        for Wanted { name, sql, expected } in runs {
            let verdict = match judged(shell, &name, sql, &asked).await {
                Ok(done) => {
                    notes.extend(shell.notes(&[], &done.notices));
                    done.verdict
                }
                Err(error) => match failed.take(&name, error) {
                    true => continue,
                    false => break,
                },
            };
            match form {
                As::Text if several => documents.push(format!("== {name}\n{}", verdict.text())),
                As::Text => documents.push(verdict.text()),
                As::Json => documents.push(verdict.json()?),
                As::Html => documents.push(verdict.page()),
            }
            let line = format!("{name}: {}: {}", verdict.summary.outcome, verdict.summary.line);
            // what cannot be relied on is neither equal nor different as it was to be
            if !verdict.summary.is_decided() {
                red.push(line);
            } else if verdict.summary.clean != (expected == Expected::Equal) {
                red.push(match expected {
                    Expected::Equal => line,
                    Expected::Different => format!("{name}: nothing differs, and something was to"),
                });
            } else {
                lines.push(line);
            }
        }
        if !documents.is_empty() {
            shell.document(&document(form, several, &documents))?;
        }
        // nothing stands beside a document that a program reads
        if form == As::Text {
            shell.say(&notes)?;
        }
        failed.ended(shell, &red)?;
        if several && form == As::Text { shell.say(&lines) } else { Ok(()) }
    }
    .boxed_local()
}

/// Judges one check, and writes what is found where that is wanted.
async fn judged(shell: &Shell, name: &str, sql: Result<String>, asked: &Asked) -> Result<Judged> {
    let (session, sql) = (Arc::clone(&shell.session), sql?);
    let done = shell.under_guard(async move { session.verdict(&sql, None).await }).await?;
    if let Some(folder) = &asked.out {
        write_all(folder, name, &done.verdict, shell.session.warehouse())?;
    }
    Ok(done)
}

/// Several verdicts as one document.
fn document(form: As, several: bool, documents: &[String]) -> String {
    let mut text = match (form, several) {
        (As::Json, true) => format!("[{}]", documents.join(",\n")),
        _ => documents.join("\n"),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes a verdict in every form.
fn write_all(folder: &Path, name: &str, verdict: &Verdict, warehouse: &Warehouse) -> Result<()> {
    for (ending, text) in [("txt", verdict.text()), ("json", verdict.json()?), ("html", verdict.page())] {
        let mut file = create(folder, &format!("{}.{ending}", plain(name)), warehouse)?;
        file.write_all(text.as_bytes()).map_err(|error| file.error(error))?;
        file.close()?;
    }
    Ok(())
}

/// The line that a subcommand is a twin of.
pub fn line(words: &[String], options: &[(&str, Option<String>)]) -> String {
    let mut line = "\\verdict".to_string();
    for word in words {
        let _ = write!(line, " {}", quoted(word, '\''));
    }
    for (name, value) in options {
        if let Some(value) = value {
            let _ = write!(line, " {name} {}", quoted(value, '\''));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn a_line_names_what_is_judged_and_how_it_is_told() {
        let found = asked(words("a.toml pay --at v3 --out d --as html --keys 7 --their-count 503")).unwrap();
        let expected = Asked {
            what: "a.toml".into(),
            checks: vec!["pay".into()],
            at: vec!["v3".into()],
            out: Some("d".into()),
            form: Some(As::Html),
            keys: Some(7),
            theirs: Some(503),
        };
        assert_eq!(found, expected);
        for line in ["a.toml --as pdf", "a.toml --keys many", "a.toml --at", "a.toml --what 1"] {
            assert_eq!(asked(words(line)).unwrap_err().code(), "Usage", "{line}");
        }
        assert_eq!(document(As::Json, true, &["{}".into(), "{}".into()]), "[{},\n{}]\n");
        let twin = line(&["it's".into()], &[("--at", Some("v3".into())), ("--out", None)]);
        assert_eq!(twin, "\\verdict 'it''s' --at 'v3'");
    }
}
