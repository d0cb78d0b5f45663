//! `\reconcile`: checks of a file, or one comparison, with a verdict that scripts can go by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use futures::future::{FutureExt, LocalBoxFuture};

use super::checked::{Failed, Wanted, wanted};
use super::findings::{Files, OutFormat, plain};
use super::listings::literal;
use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::shell::checks::{Check, Expected, Place};
use crate::shell::execute::{Answer, Collected, Show};
use crate::shell::language::both;
use crate::shell::state::Shell;
use crate::shell::variables::replaced;
use crate::sql::{Class, Example, ReconcileLine, Reconciled, Session, Sink};

/// `\reconcile`
pub const RECONCILE: Command = Command {
    names: &["reconcile"],
    usage: "file.toml [check …] [--at pin …] [--out dir] [--why] | t with … on key (…)",
    task: Task::Prove,
    about: both("compare a table with its source, key by key", "逐主键核对表与其来源"),
    detail: both(
        "\\reconcile checks/pay.toml --at tag:eod --out diff\n\
         \\reconcile pay.t@v3 with (select * from u) on key (id) compare (amount)\n\
         --at pay.t@v3 is for the checks of that table alone, and may stand once for each table\n\
         --out writes every finding, a file for each class: csv, or --out-format ndjson or parquet; --why tells the causes\n\
         of the first keys from the table's history, as rows of the part cause\n\
         exit code 0 when all is as expected, 3 when not; when a check could not be carried out, that of its error, and\n\
         what the others found is shown all the same",
        "\\reconcile checks/pay.toml --at tag:eod --out diff\n\
         \\reconcile pay.t@v3 with (select * from u) on key (id) compare (amount)\n\
         --at pay.t@v3 只用于核对这张表的检查，每张表可给一次\n\
         --out 把每条差异按类别写成文件：csv，或用 --out-format 选 ndjson、parquet；--why 从表的历史说明前若干个键的原因，\n\
         结果里 part 为 cause\n\
         全部符合预期时退出码 0，否则 3；某个核对没能完成时用它的错误的退出码，其他核对的结果照样显示",
    ),
    argument: Argument::File,
    run,
};

/// What a line says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    file: PathBuf,
    checks: Vec<String>,
    at: Vec<String>,
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
            "--at" => asked.at.push(value("--at")?),
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
        let (runs, mut notices, asked) = if words.iter().any(is_file) {
            let asked = asked(words)?;
            let statement = |check: &Check, at: Option<&str>, place: Place<'_>| check.statement(at, place);
            let (runs, notices) = wanted(shell, &asked.file, &asked.checks, &asked.at, statement)?;
            (runs, notices, asked)
        } else {
            let sql = Ok(format!("RECONCILE {}", replaced(call.sql(), &shell.variables)));
            let run = Wanted { name: "reconcile".to_string(), sql, expected: Expected::Equal };
            (vec![run], Vec::new(), Asked::default())
        };
        let (mut batches, mut pins, mut lines, mut red) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut failed = Failed::default();
        let several = runs.len() > 1;
        for Wanted { name, sql, expected } in runs {
            let (done, rows) = match compared(shell, &name, sql, &asked).await {
                Ok(done) => done,
                Err(error) if !several => return Err(error.with_context("check", &name)),
                Err(error) => {
                    let line = ReconcileLine {
                        class: Some(error.code().to_string()),
                        note: Some(error.message().to_string()),
                        ..ReconcileLine::of("error")
                    };
                    batches.push(named(&name, &ReconcileLine::batch(&[line])?)?);
                    if failed.take(&name, error) {
                        continue;
                    }
                    break;
                }
            };
            for rows in &rows {
                batches.push(named(&name, rows)?);
            }
            pins.extend(done.pins.into_iter().filter(|pin| !pins.contains(pin)).collect::<Vec<_>>());
            notices.extend(done.notices);
            let line = format!("{name}: {}", done.report.line);
            if done.report.verdict.is_clean() != (expected == Expected::Equal) {
                red.push(match expected {
                    Expected::Equal => line,
                    Expected::Different => format!("{name}: nothing differs, and something was to"),
                });
            } else {
                lines.push(line);
            }
        }
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        let rows = concat_batches(&schema, &batches)?;
        let mut answer = Answer::of_batches(schema, vec![rows])?;
        (answer.pins, answer.notices) = (pins, notices);
        shell.present(answer, Show { cap: false, shrink: true, ..Show::default() }).await?;
        failed.ended(shell, &red)?;
        shell.say(&lines)
    }
    .boxed_local()
}

/// Runs one comparison, and gives its rows: those of the report, and those that tell why.
async fn compared(
    shell: &mut Shell,
    name: &str,
    sql: Result<String>,
    asked: &Asked,
) -> Result<(Reconciled, Vec<RecordBatch>)> {
    let sql = sql?;
    let session: Arc<Session> = Arc::clone(&shell.session);
    let warehouse = shell.session.warehouse();
    let files = asked.out.as_ref().map(|folder| Files::new(&folder.join(plain(name)), asked.format, warehouse));
    let sink: Option<Sink> =
        files.clone().map(|files| -> Sink { Box::new(move |example| files.lock().write(example)) });
    let done = shell.under_guard(async move { session.reconcile(&sql, sink).await }).await?;
    if let Some(files) = files {
        files.lock().finish(&done.report.examples)?;
    }
    let mut rows = vec![done.report.rows()?];
    if asked.why {
        rows.push(ReconcileLine::batch(&causes(shell, &done).await?)?);
    }
    Ok((done, rows))
}

/// Keys of a check whose causes are looked for: each costs a look through the table's history.
const CAUSES: usize = 20;

/// The examples that make the sides different, one of each class after another, so that no class hides the others.
fn in_turn(examples: &[Example]) -> Vec<&Example> {
    let mut classes: BTreeMap<Class, Vec<&Example>> = BTreeMap::new();
    for example in examples.iter().filter(|example| example.class.is_difference()) {
        classes.entry(example.class).or_default().push(example);
    }
    let longest = classes.values().map(Vec::len).max().unwrap_or_default();
    (0..longest).flat_map(|at| classes.values().filter_map(move |all| all.get(at).copied())).collect()
}

/// Columns of a finding that are asked for one by one.
const CELLS: usize = 4;

/// What the source has of the values that differ, for the question where they went.
fn expected(example: &Example) -> Vec<String> {
    if example.class != Class::Different {
        return Vec::new();
    }
    let cells = example.cells.iter().take(CELLS).map(|cell| match &cell.right {
        Some(value) => format!("{}='{value}'", cell.column),
        None => format!("{}=null", cell.column),
    });
    cells.collect()
}

/// Why one key is as it is; `of`: the table, the key and the state. The source's row was there once, and lost, only where
/// that is said of each of its values: an older row may have had one of them by chance.
async fn cause(shell: &mut Shell, of: &str, expected: Vec<String>, line: &mut ReconcileLine) -> Result<()> {
    let mut found: Vec<(Option<String>, Option<String>, Option<i64>)> = Vec::new();
    for expected in expected {
        let sql = format!("SELECT * FROM paimon_explain_key({of}, expected => {})", literal(&expected));
        match shell.collect_sql(&sql, 1).await {
            Ok(answer) => found.push(reason(&answer)),
            // what no column of the table holds was never written to it
            Err(error) if ["BadArgument", "ColumnNotFound"].contains(&error.code()) => {
                found.clear();
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let agreed = found.split_first().is_some_and(|(first, rest)| {
        rest.iter().all(|(reason, _, snapshot)| (reason, snapshot) == (&first.0, &first.2))
    });
    let (reason, note, snapshot) = match found.into_iter().next().filter(|_| agreed) {
        Some(first) => first,
        None => reason(&shell.collect_sql(&format!("SELECT * FROM paimon_explain_key({of})"), 1).await?),
    };
    (line.reason, line.note, line.snapshot_id) = (reason, note, snapshot);
    Ok(())
}

/// The reason of an answer, its sentence, and the commit that is to blame.
fn reason(answer: &Collected) -> (Option<String>, Option<String>, Option<i64>) {
    let Some(batch) = answer.batches.iter().find(|batch| batch.num_rows() > 0) else { return (None, None, None) };
    let cell = |column: &str| {
        let texts = batch.column_by_name(column)?.as_string_opt::<i32>()?;
        texts.is_valid(0).then(|| texts.value(0).to_string())
    };
    let ids = batch.column_by_name("snapshot_id").and_then(|ids| ids.as_primitive_opt::<Int64Type>());
    (cell("reason"), cell("sentence"), ids.filter(|ids| ids.is_valid(0)).map(|ids| ids.value(0)))
}

/// Why the first differing keys are as they are in the left table, and how often each reason was found.
async fn causes(shell: &mut Shell, done: &Reconciled) -> Result<Vec<ReconcileLine>> {
    // the left side is pinned first; a query is no table with a history
    let left = done.pins.first().filter(|pin| done.report.left.position.starts_with(&format!("{} @ ", pin.table)));
    let Some((table, snapshot)) = left.and_then(|pin| Some((pin.table.clone(), pin.snapshot_id?))) else {
        let note = Some("the left side is no table at a snapshot, so no causes can be told".to_string());
        return Ok(vec![ReconcileLine { note, ..ReconcileLine::of("cause") }]);
    };
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    let mut lines = Vec::new();
    for example in in_turn(&done.report.examples) {
        let key: Option<Vec<String>> =
            example.key.iter().map(|(name, value)| Some(format!("{name}={}", literal(value.as_deref()?)))).collect();
        let Some(key) = key else { continue };
        if lines.len() == CAUSES {
            break;
        }
        let of = format!("{}, key => {}, at => {snapshot}", literal(&table), literal(&key.join(", ")));
        let mut line = ReconcileLine {
            class: Some(example.class.name().to_string()),
            key: Some(example.key_json()),
            ..ReconcileLine::of("cause")
        };
        match cause(shell, &of, expected(example), &mut line).await {
            Ok(()) => {}
            Err(error) if error.code() == "Interrupted" => return Err(error),
            Err(error) => {
                (line.reason, line.note) = (Some(error.code().to_string()), Some(error.message().to_string()));
            }
        }
        *reasons.entry(line.reason.clone().unwrap_or_default()).or_default() += 1;
        lines.push(line);
    }
    let looked = lines.len();
    lines.extend(reasons.into_iter().map(|(reason, times)| ReconcileLine {
        reason: Some(reason),
        findings: Some(times),
        note: Some(format!("of {looked} keys that were looked at")),
        ..ReconcileLine::of("cause")
    }));
    Ok(lines)
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
            at: vec!["v3".into()],
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
