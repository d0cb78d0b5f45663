//! `\reconcile`: checks of a file, or one comparison, with a verdict that scripts can go by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use futures::future::{FutureExt, LocalBoxFuture};

use super::findings::{Files, OutFormat, plain};
use super::listings::literal;
use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::shell::checks::{self, Expected};
use crate::shell::execute::{Answer, Show};
use crate::shell::language::both;
use crate::shell::state::Shell;
use crate::shell::variables::replaced;
use crate::sql::{Reconciled, Session, Sink};

/// `\reconcile`
pub const RECONCILE: Command = Command {
    names: &["reconcile"],
    usage: "file.toml [check …] [--at pin] [--out dir] [--why] | t with … on key (…)",
    task: Task::Prove,
    about: both("compare a table with its source, key by key", "逐主键核对表与其来源"),
    detail: both(
        "\\reconcile checks/pay.toml --at tag:eod --out diff\n\
         \\reconcile pay.t@v3 with (select * from u) on key (id) compare (amount)\n\
         --out writes every finding, a file for each class: csv, or --out-format ndjson or parquet; --why tells the causes\n\
         of the first keys from the table's history",
        "\\reconcile checks/pay.toml --at tag:eod --out diff\n\
         \\reconcile pay.t@v3 with (select * from u) on key (id) compare (amount)\n\
         --out 把每条差异按类别写成文件：csv，或用 --out-format 选 ndjson、parquet；--why 从表的历史说明前若干个键的原因",
    ),
    argument: Argument::File,
    run,
};

/// What a line says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    file: PathBuf,
    checks: Vec<String>,
    at: Option<String>,
    out: Option<PathBuf>,
    format: OutFormat,
    why: bool,
}

fn asked(words: Vec<String>) -> Result<Asked> {
    let mut asked = Asked::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = |name: &str| words.next().ok_or_else(|| usage(format!("{name} lacks its value")));
        match word.as_str() {
            "--at" => asked.at = Some(value("--at")?),
            "--out" => asked.out = Some(value("--out")?.into()),
            "--out-format" => {
                asked.format = match value("--out-format")?.to_lowercase().as_str() {
                    "csv" => OutFormat::Csv,
                    "ndjson" => OutFormat::Ndjson,
                    "parquet" => OutFormat::Parquet,
                    other => return Err(usage(format!("{other} is none of csv, ndjson and parquet"))),
                }
            }
            "--why" => asked.why = true,
            option if option.starts_with("--") => return Err(usage(format!("there is no option {option}"))),
            _ if asked.file.as_os_str().is_empty() => asked.file = word.into(),
            _ => asked.checks.push(word),
        }
    }
    Ok(asked)
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables)?;
        let is_file =
            |word: &String| Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
        if words.is_empty() {
            return Err(usage("write \\reconcile file.toml, or \\reconcile t with … on key (…)"));
        }
        let (runs, out, format, why) = if words.iter().any(is_file) {
            let asked = asked(words)?;
            let checks = checks::read(&asked.file)?;
            let unknown = asked.checks.iter().find(|name| !checks.iter().any(|check| check.name == **name));
            if let Some(unknown) = unknown {
                let known: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
                return Err(usage(format!("there is no check {unknown} in the file: it has {}", known.join(", "))));
            }
            let folder = asked.file.parent().unwrap_or(Path::new("")).to_path_buf();
            let wanted =
                checks.into_iter().filter(|check| asked.checks.is_empty() || asked.checks.contains(&check.name));
            let runs = wanted
                .map(|check| Ok((check.name.clone(), check.statement(asked.at.as_deref(), &folder)?, check.expected)));
            (runs.collect::<Result<Vec<_>>>()?, asked.out, asked.format, asked.why)
        } else {
            let sql = format!("RECONCILE {}", replaced(call.sql(), &shell.variables));
            (vec![("reconcile".to_string(), sql, Expected::Equal)], None, OutFormat::Csv, false)
        };
        let (mut batches, mut pins, mut notices, mut lines, mut red) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut told = Vec::new();
        for (name, sql, expected) in runs {
            let session: Arc<Session> = Arc::clone(&shell.session);
            let warehouse = shell.session.warehouse();
            let files = out.as_ref().map(|folder| Files::new(&folder.join(plain(&name)), format, warehouse));
            let sink: Option<Sink> =
                files.clone().map(|files| -> Sink { Box::new(move |example| files.lock().write(example)) });
            let done = shell.under_guard(async move { session.reconcile(&sql, sink).await }).await;
            let done = done.map_err(|error| error.with_context("check", &name))?;
            if let Some(files) = files {
                files.lock().finish()?;
            }
            batches.push(named(&name, &done.report.rows()?)?);
            if why {
                causes(shell, &name, &done, &mut told).await?;
            }
            pins.extend(done.pins.into_iter().filter(|pin| !pins.contains(pin)).collect::<Vec<_>>());
            notices.extend(done.notices);
            lines.push(format!("{name}: {}", done.report.line));
            if done.report.verdict.is_clean() != (expected == Expected::Equal) {
                red.push(match expected {
                    Expected::Equal => format!("{name}: {}", done.report.line),
                    Expected::Different => format!("{name}: nothing differs, and something was to"),
                });
            }
        }
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        let rows = concat_batches(&schema, &batches)?;
        let mut answer = Answer::of_batches(schema, vec![rows])?;
        (answer.pins, answer.notices) = (pins, notices);
        shell.present(answer, Show { cap: false, shrink: true, ..Show::default() }).await?;
        shell.say(&told)?;
        match red.as_slice() {
            [] => shell.say(&lines),
            red => Err(Error::invalid(red.join("\n")).with_code("Different")),
        }
    }
    .boxed_local()
}

/// Keys of a check whose causes are looked for: each costs a look through the table's history.
const CAUSES: usize = 20;

/// Why the first differing keys are as they are in the left table, and how often each reason was found.
async fn causes(shell: &mut Shell, name: &str, done: &Reconciled, told: &mut Vec<String>) -> Result<()> {
    // the left side is pinned first; a query is no table with a history
    let left = done.pins.first().filter(|pin| done.report.left.position.starts_with(&format!("{} @ ", pin.table)));
    let Some((table, snapshot)) = left.and_then(|pin| Some((pin.table.clone(), pin.snapshot_id?))) else {
        told.push(format!("{name}: the left side is no table at a snapshot, so no causes can be told"));
        return Ok(());
    };
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut looked = 0;
    for example in &done.report.examples {
        let key: Option<Vec<String>> =
            example.key.iter().map(|(name, value)| Some(format!("{name}={}", literal(value.as_deref()?)))).collect();
        let Some(key) = key else { continue };
        if looked == CAUSES {
            break;
        }
        looked += 1;
        let sql = format!(
            "SELECT reason, sentence FROM paimon_explain_key({}, key => {}, at => {snapshot})",
            literal(&table),
            literal(&key.join(", "))
        );
        let (reason, sentence) = match shell.collect_sql(&sql, 1).await {
            Ok(answer) => {
                let cell = |column: &str| {
                    let batch = answer.batches.iter().find(|batch| batch.num_rows() > 0)?;
                    Some(batch.column_by_name(column)?.as_string_opt::<i32>()?.value(0).to_string())
                };
                (cell("reason").unwrap_or_default(), cell("sentence").unwrap_or_default())
            }
            Err(error) => (error.code().to_string(), error.message().to_string()),
        };
        told.push(format!("{name}: {} {}: {reason}: {sentence}", example.class.name(), example.key_json()));
        *reasons.entry(reason).or_default() += 1;
    }
    let counted: Vec<String> = reasons.iter().map(|(reason, times)| format!("{reason} {times}")).collect();
    if looked > 0 {
        told.push(format!("{name}: causes of the first {looked} keys: {}", counted.join(", ")));
    }
    Ok(())
}

/// Rows with the name of their check before them.
fn named(name: &str, rows: &RecordBatch) -> Result<RecordBatch> {
    let mut fields: Vec<Arc<Field>> = vec![Arc::new(Field::new("check", DataType::Utf8, false))];
    fields.extend(rows.schema().fields().iter().cloned());
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows.num_rows())));
    let columns = std::iter::once(names).chain(rows.columns().iter().cloned()).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn a_line_names_a_file_its_checks_and_options() {
        let found = asked(words("a.toml pay --at v3 --out d --out-format ndjson more")).unwrap();
        let expected = Asked {
            file: "a.toml".into(),
            checks: vec!["pay".into(), "more".into()],
            at: Some("v3".into()),
            out: Some("d".into()),
            format: OutFormat::Ndjson,
            why: false,
        };
        assert_eq!(found, expected);
        assert!(asked(words("a.toml --why")).unwrap().why);
        for (line, code) in [("a.toml --at", "Usage"), ("a.toml --what", "Usage"), ("a.toml --out-format x", "Usage")] {
            assert_eq!(asked(words(line)).unwrap_err().code(), code, "{line}");
        }
    }
}
