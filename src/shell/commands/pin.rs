//! `\pin`, `\unpin`, `\pins`: `PIN TABLE` in few letters.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use futures::future::{FutureExt, LocalBoxFuture};

use super::listings::literal;
use super::{Argument, Call, Command, Task, Word, unquoted, usage};
use crate::error::Result;
use crate::notice::Notice;
use crate::shell::execute::{Answer, Show};
use crate::shell::language::{Language, Text, both, hold, note, told};
use crate::shell::names::branch_of;
use crate::shell::state::Shell;
use crate::sql::{CommitIdentifier, Hold, ShownPins};

const DETAIL: Text = both(
    "\\pin t 4711                       the snapshot of that id
\\pin t tag:eod                    a tag
\\pin t ts '2026-04-16 10:00:00'   the snapshot at or before that time
\\pin t wm:'2026-04-16 10:00:00'   the first snapshot whose watermark is there
\\pin t commit flink-cdc-pay:118   the last snapshot of a commit
\\pin t before spark-fix:1         the snapshot before a commit
\\pin t branch:fix 3              a snapshot of a branch, which t$branch_fix then reads
\\pin t latest                     the newest now, for the rest of the session
\\pin a,b --watermark '…'          several tables at one watermark, all or none",
    "\\pin t 4711                       该编号的快照
\\pin t tag:eod                    标签
\\pin t ts '2026-04-16 10:00:00'   该时刻或之前最近的快照
\\pin t wm:'2026-04-16 10:00:00'   水位到达该时刻的第一个快照
\\pin t commit flink-cdc-pay:118   某次提交的最后一个快照
\\pin t before spark-fix:1         某次提交之前的快照
\\pin t branch:fix 3              分支上的快照，以 t$branch_fix 读取
\\pin t latest                     当前最新快照，本会话不再变
\\pin a,b --watermark '…'          几张表固定到同一水位，全部成功或全不变",
);

/// The three.
pub const COMMANDS: &[&Command] = &[
    &Command {
        names: &["pin"],
        usage: "table snapshot | tag:x | ts '…' | wm:… | commit user:id | branch:x | latest",
        task: Task::Pin,
        about: both("read a table at one snapshot from now on", "从现在起固定读取表的某个快照"),
        detail: DETAIL,
        argument: Argument::Version,
        run: pin,
    },
    &Command {
        names: &["unpin"],
        usage: "table | all",
        task: Task::Pin,
        about: both("read a table at its latest snapshot again", "取消固定，重新读最新快照"),
        detail: Text::NONE,
        argument: Argument::Pinned,
        run: unpin,
    },
    &Command {
        names: &["pins"],
        usage: "",
        task: Task::Pin,
        about: both("pins of the session and whether they are kept", "会话固定了哪些快照，是否仍保留"),
        detail: Text::NONE,
        argument: Argument::None,
        run: pins,
    },
];

/// The selector in parentheses, as `PIN TABLE t AT (…)` takes it, and the word before it. What is quoted is a text as in
/// SQL: digits are a tag first.
fn selector(words: &[Word]) -> Result<(&'static str, String)> {
    let Some((first, others)) = words.split_first() else { return Err(usage("say which snapshot: \\? pin")) };
    let plain = |word: &Word| if word.quoted { unquoted(&word.text) } else { word.text.clone() };
    let rest = others.iter().map(plain).collect::<Vec<_>>().join(" ");
    let (kind, value, whole) = match first.text.split_once(':') {
        // a time of day has colons too
        Some((kind, value)) if !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphabetic()) => {
            let quoted = value.starts_with(['"', '`']);
            let value =
                Word { text: [&unquoted(value), &rest].map(String::as_str).join(" ").trim().to_string(), quoted };
            (kind, value, 1)
        }
        _ => {
            let quoted = others.first().is_some_and(|word| word.quoted);
            (first.text.trim_start_matches('-'), Word { text: rest, quoted }, 2)
        }
    };
    let Word { text: value, quoted } = value;
    let commit = |value: &str| {
        let parts = value.rsplit_once(':').and_then(|(user, which)| Some((user, CommitIdentifier::parse(which)?)));
        match parts {
            Some((user, CommitIdentifier(identifier))) => Ok(format!("COMMIT => ({}, {identifier})", literal(user))),
            None => Err(usage("write commit user:identifier")),
        }
    };
    // a time or watermark is milliseconds when it is a number
    let moment = |value: &str| if value.parse::<i64>().is_ok() { value.to_string() } else { literal(value) };
    let version = |text: &str, quoted: bool| match text.parse::<i64>() {
        Ok(id) if !quoted => format!("VERSION => {id}"),
        _ => format!("VERSION => {}", literal(text)),
    };
    match kind.to_ascii_lowercase().as_str() {
        "tag" if !value.is_empty() && words.len() == whole => Ok(("AT", format!("TAG => {}", literal(&value)))),
        "ts" | "timestamp" | "time" if !value.is_empty() => Ok(("AT", format!("TIMESTAMP => {}", literal(&value)))),
        "wm" | "watermark" if !value.is_empty() => Ok(("AT", format!("WATERMARK => {}", moment(&value)))),
        "commit" => Ok(("AT", commit(&value)?)),
        "before" => Ok(("BEFORE", commit(&value)?)),
        "id" | "snapshot" | "version" | "v" if words.len() == whole && (quoted || value.parse::<i64>().is_ok()) => {
            Ok(("AT", version(&value, quoted)))
        }
        _ => {
            let all = words.iter().map(plain).collect::<Vec<_>>().join(" ");
            match words {
                [id] if !id.quoted && id.text.parse::<i64>().is_ok() => Ok(("AT", version(&id.text, false))),
                [day, ..] if all.chars().next().is_some_and(|c| c.is_ascii_digit()) && plain(day).contains('-') => {
                    Ok(("AT", format!("TIMESTAMP => {}", literal(&all))))
                }
                [_] => Ok(("AT", version(&all, true))),
                _ => Err(usage(format!("{all:?} is not one snapshot"))
                    .with_hint("the name of a tag with blanks in it stands in quotes: \\? pin")),
            }
        }
    }
}

/// The statement of `\pin` and these words.
pub fn pin_statement(words: &[Word]) -> Result<String> {
    let Some((tables, choice)) = words.split_first() else { return Err(usage("write \\pin table snapshot")) };
    let tables = tables.text.split(',').filter(|t| !t.is_empty());
    // a branch is a table of its own, and pinned as that
    let (tables, choice) = match choice.split_first() {
        Some((first, rest)) if first.text.starts_with("branch:") => {
            let branch = unquoted(first.text.get("branch:".len()..).unwrap_or_default());
            if branch.is_empty() {
                return Err(usage("write \\pin table branch:name"));
            }
            (tables.map(|table| branch_of(table, &branch)).collect::<Result<Vec<_>>>()?, rest)
        }
        _ => (tables.map(str::to_string).collect(), choice),
    };
    let latest = choice.is_empty() || choice.len() == 1 && choice.iter().all(|w| w.text.eq_ignore_ascii_case("latest"));
    let clause = if latest {
        String::new()
    } else {
        let (word, selector) = selector(choice)?;
        format!(" {word} ({selector})")
    };
    // one statement: all or none
    let several = if tables.len() > 1 { "S" } else { "" };
    Ok(format!("PIN TABLE{several} {}{clause}", tables.join(", ")))
}

/// The statements of `\unpin` and these words.
pub fn unpin_statements(words: &[String]) -> Result<Vec<String>> {
    match words {
        // what is easily typed by mistake ends no pin
        [] => Err(usage("write \\unpin table, or \\unpin all")),
        [all] if all.eq_ignore_ascii_case("all") => Ok(vec!["UNPIN ALL".to_string()]),
        tables => Ok(tables.iter().map(|table| format!("UNPIN TABLE {table}")).collect()),
    }
}

fn pin(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let statement = pin_statement(&call.marked_words(&shell.variables)?)?;
        shell.statement(&statement, Show::default()).await
    }
    .boxed_local()
}

fn pins(shell: &mut Shell, _: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let (choices, language) = (shell.session.session_choices(), shell.settings.language);
        // names of columns alone tell a reader nothing, but a program that there is no row
        if !shell.session.session_pins().is_empty() || shell.settings.format.is_data() {
            return show_pins(shell).await;
        }
        if choices.is_empty() {
            return shell.say(&[told!(
                language,
                "no table is pinned: each is read at its latest snapshot",
                "没有固定：各表都读最新快照"
            )]);
        }
        let notices: Vec<Notice> = choices.iter().map(|choice| choice.notice()).collect();
        shell.say(&shell.notes(&[], &notices))
    }
    .boxed_local()
}

/// `SHOW PINS`; to people in their language.
async fn show_pins(shell: &mut Shell) -> Result<()> {
    let language = shell.settings.language;
    if language == Language::En || shell.settings.format.is_data() {
        return shell.statement("SHOW PINS", Show::LISTING).await;
    }
    let session = Arc::clone(&shell.session);
    let ShownPins { rows, told } = shell.under_guard(async move { session.shown_pins().await }).await?;
    let holds = |holds: &[Hold]| holds.iter().map(|one| hold(one, language)).collect::<Vec<_>>().join("、");
    let holds = told.iter().map(|(all, _)| (!all.is_empty()).then(|| holds(all))).collect::<StringArray>();
    let notes = told.iter().map(|(_, what)| note(what, language)).collect::<StringArray>();
    let (holds, notes): (ArrayRef, ArrayRef) = (Arc::new(holds), Arc::new(notes));
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns()).map(|(field, column)| match field.name().as_str() {
        "retained_by" => Arc::clone(&holds),
        "note" => Arc::clone(&notes),
        _ => Arc::clone(column),
    });
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns.collect())?;
    let notices = shell.session.session_choices().iter().map(|choice| choice.notice()).collect();
    shell.present(Answer { notices, ..Answer::of_batches(schema, vec![rows])? }, Show::LISTING).await
}

fn unpin(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        for statement in unpin_statements(&call.words(&shell.variables)?)? {
            shell.statement(&statement, Show::default()).await?;
        }
        Ok(())
    }
    .boxed_local()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::commands::marked_words;
    use crate::shell::variables::Variables;

    fn unmarked(text: &str) -> Word {
        Word { text: text.to_string(), quoted: false }
    }

    fn statement(line: &str) -> String {
        pin_statement(&marked_words(line, &Variables::new()).unwrap()).unwrap()
    }

    #[test]
    fn quoted_digits_are_a_tag_first() {
        for (line, clause) in [
            ("t 6", "VERSION => 6"),
            ("t '6'", "VERSION => '6'"),
            ("t \"6\"", "VERSION => '6'"),
            ("t `6`", "VERSION => '6'"),
            ("t version 6", "VERSION => 6"),
            ("t version '6'", "VERSION => '6'"),
            ("t tag \"6\"", "TAG => '6'"),
            ("t tag:\"end of day\"", "TAG => 'end of day'"),
            ("t \"end of day\"", "VERSION => 'end of day'"),
            ("t ts \"2026-04-16 10:00:00\"", "TIMESTAMP => '2026-04-16 10:00:00'"),
            ("t \"2026-04-16 10:00:00\"", "TIMESTAMP => '2026-04-16 10:00:00'"),
            ("t wm:'2026-04-16'", "WATERMARK => '2026-04-16'"),
        ] {
            assert_eq!(statement(line), format!("PIN TABLE t AT ({clause})"), "{line}");
        }
    }

    #[test]
    fn a_branch_is_pinned_under_its_own_name() {
        for (line, expected) in [
            ("history branch:b1", "PIN TABLE history$branch_b1"),
            ("t branch:b1 3", "PIN TABLE t$branch_b1 AT (VERSION => 3)"),
            ("db.t branch:b1 tag:eod", "PIN TABLE db.t$branch_b1 AT (TAG => 'eod')"),
            ("db.\"a b\" branch:b1 latest", "PIN TABLE db.\"a b$branch_b1\""),
            ("db.Orders branch:fix-1", "PIN TABLE db.\"orders$branch_fix-1\""),
            ("t branch:\"B 1\"", "PIN TABLE \"t$branch_B 1\""),
            ("a,b branch:x", "PIN TABLES a$branch_x, b$branch_x"),
        ] {
            assert_eq!(statement(line), expected, "{line}");
        }
    }

    #[test]
    fn selectors_become_clauses() {
        let cases: &[(&[&str], &str)] = &[
            (&["4711"], "AT VERSION => 4711"),
            (&["eod-0416"], "AT VERSION => 'eod-0416'"),
            (&["tag:eod"], "AT TAG => 'eod'"),
            (&["tag", "eod"], "AT TAG => 'eod'"),
            (&["ts", "2026-04-16 10:00:00"], "AT TIMESTAMP => '2026-04-16 10:00:00'"),
            (&["2026-04-16", "10:00:00"], "AT TIMESTAMP => '2026-04-16 10:00:00'"),
            (&["wm:1776304800000"], "AT WATERMARK => 1776304800000"),
            (&["--watermark", "2026-04-16 10:00:00"], "AT WATERMARK => '2026-04-16 10:00:00'"),
            (&["commit", "flink-cdc-pay:118"], "AT COMMIT => ('flink-cdc-pay', 118)"),
            (&["before", "it's:1"], "BEFORE COMMIT => ('it''s', 1)"),
            (&["commit:spark:batch"], "AT COMMIT => ('spark', 9223372036854775807)"),
        ];
        for (words, expected) in cases {
            let words: Vec<Word> = words.iter().map(|word| unmarked(word)).collect();
            let (word, clause) = selector(&words).unwrap();
            assert_eq!(format!("{word} {clause}"), *expected);
        }
        for words in [vec!["3", "extra"], vec!["tag", "eod", "extra"], vec!["tag:eod", "extra"], vec!["v", "3", "x"]] {
            let words: Vec<Word> = words.iter().map(|word| unmarked(word)).collect();
            assert_eq!(selector(&words).unwrap_err().code(), "Usage", "{words:?}");
        }
        assert_eq!(selector(&[unmarked("end of day")]).unwrap(), ("AT", "VERSION => 'end of day'".to_string()));
        assert!(unpin_statements(&[]).is_err());
        assert!(selector(&[]).is_err());
        assert!(selector(&[unmarked("commit"), unmarked("x")]).is_err());
    }
}
