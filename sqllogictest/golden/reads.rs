//! One golden table: which statement answers which expected file.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::TryStreamExt;
use lakepin::arrow;
use lakepin::sql::{Session, SessionConfig, Warehouse};
use serde_json::Value;

use super::rows::{of_batches, of_lines};
use super::{Side, Verdict, explained, filters, plans, schemas};

/// The kind under which an expected file is counted; None for a file that is none.
pub fn kind(file: &str) -> Option<&'static str> {
    let stem = file.strip_suffix(".jsonl")?;
    Some(match stem {
        "latest" => "latest",
        "read-optimized" => "read-optimized",
        "changelog" => "changelog",
        "snapshots" => "snapshots",
        "with-fallback" => "latest",
        "rows-with-row-id" => "row tracking",
        s if s.starts_with("snapshot-") => "snapshot",
        s if s.starts_with("tag-") => "tag",
        s if s.starts_with("branch-") => "branch",
        s if s.starts_with("incremental-") => "incremental",
        s if s.starts_with("audit_log-") => "audit log",
        s if s.starts_with("watermark-") => "watermark",
        s if s.starts_with("rows-") => "filtered rows",
        s if s.starts_with("plan-") => "plan",
        s if s.starts_with("files-") => "files",
        _ => return None,
    })
}

/// What one statement gave.
pub struct Answer {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

/// What the rows of an expected file are read from.
pub struct Source {
    columns: &'static str,
    from: String,
    condition: Option<String>,
}

impl Source {
    fn whole(&self) -> String {
        self.selecting(self.columns)
    }

    /// The statement for these columns, as SQL.
    fn selecting(&self, columns: &str) -> String {
        match &self.condition {
            Some(condition) => format!("SELECT {columns} FROM {} WHERE {condition}", self.from),
            None => format!("SELECT {columns} FROM {}", self.from),
        }
    }

    /// The statement for these columns of the rows that meet a condition.
    pub fn filtered(&self, columns: &str, condition: &str) -> String {
        format!("SELECT {columns} FROM {} WHERE {condition}", self.from)
    }
}

/// How a read compared, with the lines that were right.
struct Read {
    verdict: Verdict,
    /// None when it was refused.
    answer: Option<Answer>,
    lines: Vec<Value>,
}

/// A golden table with a session on its warehouse.
pub struct Reader {
    pub side: &'static str,
    pub table: String,
    pub session: Session,
    /// The table's folder on this machine, wherever it is read from.
    pub folder: PathBuf,
    expected: PathBuf,
    /// Expected rows that were compared with those read.
    pub rows: AtomicUsize,
    /// Made filters that were compared.
    pub filters: AtomicUsize,
    /// Those of them that left some rows and dropped others.
    pub telling: AtomicUsize,
}

impl Reader {
    pub async fn open(side: &Side, table: &str) -> Result<Self, String> {
        let warehouse =
            Warehouse::open(&side.warehouse.to_string_lossy(), &side.options).await.map_err(|e| e.to_string())?;
        let config = SessionConfig {
            database: Some("golden".into()),
            time_zone: Some("UTC".into()),
            target_partitions: Some(2),
            ..SessionConfig::default()
        };
        let session = Session::new(&warehouse, config).await.map_err(|e| e.to_string())?;
        Ok(Self {
            side: side.name,
            table: table.into(),
            session,
            folder: side.folder.join("golden.db").join(table),
            expected: side.expected.join(table),
            rows: AtomicUsize::new(0),
            filters: AtomicUsize::new(0),
            telling: AtomicUsize::new(0),
        })
    }

    pub async fn ask(&self, sql: &str) -> Result<Answer, lakepin::Error> {
        let result = self.session.run_one(sql).await?;
        let schema = result.schema.clone();
        let batches = result.stream.try_collect().await.map_err(lakepin::Error::from_datafusion)?;
        Ok(Answer { schema, batches })
    }

    pub fn lines(&self, file: &str) -> Result<Vec<Value>, String> {
        let text = std::fs::read_to_string(self.expected.join(file)).map_err(|e| format!("{file}: {e}"))?;
        text.lines().map(|line| serde_json::from_str(line).map_err(|e| format!("{file}: {e}"))).collect()
    }

    /// Filters of `filters.txt`: name to condition in SQL.
    pub fn filter(&self, name: &str, schema: &SchemaRef) -> Result<String, String> {
        let text = std::fs::read_to_string(self.expected.join(super::FILTERS_FILE)).map_err(|e| e.to_string())?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")))
            .ok_or_else(|| format!("no {name} in filters.txt"))?;
        let parts: Result<Vec<String>, String> = line.split(" AND ").map(|part| condition(part, schema)).collect();
        Ok(parts?.join(" AND "))
    }

    /// Compares one expected file.
    pub async fn check(&self, file: &str) -> Result<Verdict, String> {
        match kind(file).ok_or("no kind")? {
            "plan" => return plans::check_plan(self, file).await,
            "files" => return plans::check_files(self, file).await,
            "snapshots" => return plans::check_snapshots(self, file).await,
            "changelog" => return self.check_changelog(file).await,
            "incremental" | "audit log" => return self.check_incremental(file).await,
            _ => {}
        }
        let stem = file.trim_end_matches(".jsonl");
        let source = self.source(stem).await?;
        if stem == "read-optimized"
            && let Some((rows, level)) = explained::top_level(self.side, &self.table)
        {
            return self.check_top_level(&source, rows, level).await;
        }
        let read = self.compare(&source.whole(), file, &self.lines(file)?).await?;
        if let Some(answer) = &read.answer
            && source.columns == "*"
        {
            schemas::check(self, stem, answer)?;
        }
        self.check_projections(&source, file, &read).await?;
        if matches!(stem, "latest" | "with-fallback")
            && let Some(answer) = &read.answer
        {
            filters::check(self, &source, answer).await?;
        }
        Ok(read.verdict)
    }

    /// What an expected file's rows are read from.
    async fn source(&self, stem: &str) -> Result<Source, String> {
        let table = quoted(&self.table);
        let mut source = Source { columns: "*", from: String::new(), condition: None };
        source.from = match stem {
            "latest" | "with-fallback" => table,
            "read-optimized" => quoted(&format!("{}$ro", self.table)),
            "rows-with-row-id" => {
                source.columns = "id, \"_ROW_ID\", \"_SEQUENCE_NUMBER\"";
                quoted(&format!("{}$row_tracking", self.table))
            }
            s if s.starts_with("snapshot-") => format!("{table} VERSION AS OF {}", &s["snapshot-".len()..]),
            s if s.starts_with("tag-") => format!("{table} VERSION AS OF '{}'", &s["tag-".len()..]),
            s if s.starts_with("watermark-") => format!("{table} AT (WATERMARK => {})", &s["watermark-".len()..]),
            s if s.starts_with("branch-") => {
                let rest = &s["branch-".len()..];
                match rest.split_once("-snapshot-") {
                    Some((branch, id)) => {
                        format!("{} VERSION AS OF {id}", quoted(&format!("{}$branch_{branch}", self.table)))
                    }
                    None => quoted(&format!("{}$branch_{rest}", self.table)),
                }
            }
            s if s.starts_with("rows-") => {
                let (id, filter) = s["rows-".len()..].split_once('-').ok_or("odd name")?;
                let from = format!("{table} VERSION AS OF {id}");
                let schema =
                    self.ask(&format!("SELECT * FROM {from} LIMIT 0")).await.map_err(|e| e.to_string())?.schema;
                source.condition = Some(self.filter(filter, &schema)?);
                from
            }
            other => return Err(format!("no statement for {other}")),
        };
        Ok(source)
    }

    /// `$ro` where 0.9 read all levels above 0: so many rows, each also in `latest`, from files of one level only and from
    /// all of these.
    async fn check_top_level(&self, source: &Source, rows: usize, level: i64) -> Result<Verdict, String> {
        let sql = source.whole();
        let answer = self.ask(&sql).await.map_err(|e| e.to_string())?;
        let read = of_batches(&answer.batches, &[]);
        let latest = of_lines(self.lines("latest.jsonl")?.iter(), answer.schema.fields(), &[])?;
        if read.len() != rows || !difference(&read, &latest).is_empty() {
            return Err(format!("expected {rows} rows of latest, read {} rows", read.len()));
        }
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let kept = plans::kept(&self.ask(&format!("EXPLAIN FILES {sql}")).await.map_err(|e| e.to_string())?)?;
        let live = super::names(&self.expected)?;
        let live = live.iter().find(|name| kind(name) == Some("files")).ok_or("no list of files")?;
        let live = self.lines(live)?;
        let top = live.iter().filter(|line| line["level"].as_i64() == Some(level));
        let top: BTreeSet<String> = top.filter_map(|line| line["name"].as_str().map(str::to_string)).collect();
        if kept != top || top.is_empty() || live.iter().any(|line| line["level"].as_i64() > Some(level)) {
            return Err(format!("files of level {level} are {top:?}, read were {kept:?}"));
        }
        Ok(Verdict::Explained)
    }

    /// Runs a statement and compares its rows with the expected lines.
    async fn compare(&self, sql: &str, file: &str, lines: &[Value]) -> Result<Read, String> {
        let mut lines = lines.to_vec();
        let answer = match self.ask(sql).await {
            Ok(answer) => answer,
            Err(error) => {
                let verdict = explained::refusal(self.side, &self.table, file, &error);
                return Ok(Read { verdict: verdict.map_err(|m| format!("{m}\n  {sql}"))?, answer: None, lines });
            }
        };
        let rule = explained::difference(self.side, &self.table, file);
        if let Some(rule) = rule {
            rule.correct(&mut lines, self, file)?;
        }
        let loose = explained::as_sets(self.side, &self.table);
        let verdict = match same(&answer, &lines, &[]) {
            Ok(()) if rule.is_some() => Verdict::Explained,
            Ok(()) => Verdict::Equal,
            Err(_) if !loose.is_empty() && same(&answer, &lines, loose).is_ok() => {
                explained::met_as_sets(self.side, &self.table);
                Verdict::EqualAsSets
            }
            Err(message) => return Err(format!("{message}\n  {sql}")),
        };
        self.rows.fetch_add(lines.len(), Ordering::Relaxed);
        Ok(Read { verdict, answer: Some(answer), lines })
    }

    /// The same rows through fewer columns: the first, the last, every second one in reverse order, none at all. Where the
    /// whole is refused a part may be, too.
    async fn check_projections(&self, source: &Source, file: &str, whole: &Read) -> Result<(), String> {
        let names: Vec<String> = match &whole.answer {
            Some(answer) => answer.schema.fields().iter().map(|field| field.name().clone()).collect(),
            None => {
                schemas::expected(self, file.trim_end_matches(".jsonl"))?.iter().map(|f| f.name().clone()).collect()
            }
        };
        let (Some(first), Some(last)) = (names.first(), names.last()) else { return Err("no columns".into()) };
        let mut projections = vec![vec![first.clone()]];
        if names.len() > 1 {
            projections.push(vec![last.clone()]);
        }
        if names.len() > 2 {
            projections.push(names.iter().rev().step_by(2).cloned().collect());
        }
        let refused = |error: lakepin::Error, sql: &str| match &whole.answer {
            Some(_) => Err(format!("{sql}: {error:?}")),
            None => {
                explained::refusal(self.side, &self.table, file, &error).map(drop).map_err(|m| format!("{sql}: {m}"))
            }
        };
        let loose = explained::as_sets(self.side, &self.table);
        for columns in projections {
            let sql = source.selecting(&columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "));
            match self.ask(&sql).await {
                Ok(answer) => {
                    if !answer.schema.fields().iter().map(|f| f.name()).eq(&columns) {
                        return Err(format!("{sql}: the columns are {:?}", answer.schema));
                    }
                    same(&answer, &cut(&whole.lines, &columns), loose).map_err(|m| format!("{m}\n  {sql}"))?;
                }
                Err(error) => refused(error, &sql)?,
            }
        }
        let sql = source.selecting("count(*)");
        match self.ask(&sql).await {
            Ok(answer) => {
                let counted = of_batches(&answer.batches, &[]);
                if counted != [format!("count(*)={}", whole.lines.len())] {
                    return Err(format!("{counted:?}, expected {} rows\n  {sql}", whole.lines.len()));
                }
            }
            Err(error) => refused(error, &sql)?,
        }
        Ok(())
    }

    /// The stream of changes: each snapshot's own changes, with row kinds; also of snapshots that change nothing.
    async fn check_changelog(&self, file: &str) -> Result<Verdict, String> {
        let lines = self.lines(file)?;
        let files = super::names(&self.expected)?;
        let kept = files.iter().filter_map(|f| f.strip_prefix("snapshot-")?.strip_suffix(".jsonl")?.parse().ok());
        let snapshots: BTreeSet<i64> = lines.iter().filter_map(|line| line["_SNAPSHOT"].as_i64()).chain(kept).collect();
        let mut verdict = Verdict::Equal;
        for id in snapshots {
            let mine: Vec<Value> = lines.iter().filter(|l| l["_SNAPSHOT"].as_i64() == Some(id)).cloned().collect();
            let one = self.compare(&self.audit(id - 1, id), file, &audit_lines(mine)).await?;
            verdict = verdict.max(one.verdict);
        }
        Ok(verdict)
    }

    /// Batch incremental reads. Of the tables listed the stream of changes is right: the rule has changed since 0.9.
    async fn check_incremental(&self, file: &str) -> Result<Verdict, String> {
        let stem = file.trim_end_matches(".jsonl");
        let audit = stem.starts_with("audit_log-");
        let range = stem.trim_start_matches("audit_log-").trim_start_matches("incremental-");
        let (from, to) = range.split_once('-').ok_or("odd name")?;
        let (from, to): (i64, i64) = (from.parse().map_err(|_| "odd id")?, to.parse().map_err(|_| "odd id")?);
        let sql = if audit {
            self.audit(from, to)
        } else {
            format!("SELECT * FROM {} /*+ OPTIONS('incremental-between'='{from},{to}') */", quoted(&self.table))
        };
        let archived = self.lines(file)?;
        if !explained::raw_changes(self.side, &self.table) {
            return Ok(self.compare(&sql, file, &archived).await?.verdict);
        }
        let changes: Vec<Value> = self
            .lines("changelog.jsonl")?
            .into_iter()
            .filter(|l| l["_SNAPSHOT"].as_i64().is_some_and(|id| id > from && id <= to))
            .collect();
        let right = if audit {
            audit_lines(changes)
        } else {
            let added = changes.into_iter().filter(|l| matches!(l["_ROW_KIND"].as_str(), Some("+I" | "+U")));
            audit_lines(added.collect()).into_iter().map(|l| without(l, "rowkind")).collect()
        };
        match self.compare(&sql, file, &right).await?.verdict {
            Verdict::Equal if !same_lines(&right, &archived) => {
                explained::met_raw_changes(self.side, &self.table);
                Ok(Verdict::Explained)
            }
            verdict => Ok(verdict),
        }
    }

    fn audit(&self, from: i64, to: i64) -> String {
        let table = quoted(&format!("{}$audit_log", self.table));
        format!("SELECT * FROM {table} /*+ OPTIONS('incremental-between'='{from},{to}') */")
    }
}

fn same_lines(left: &[Value], right: &[Value]) -> bool {
    let sorted = |lines: &[Value]| {
        let mut texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    };
    sorted(left) == sorted(right)
}

fn without(mut line: Value, name: &str) -> Value {
    if let Some(members) = line.as_object_mut() {
        members.remove(name);
    }
    line
}

/// Lines of `changelog.jsonl` as `$audit_log` shows them.
fn audit_lines(lines: Vec<Value>) -> Vec<Value> {
    lines
        .into_iter()
        .map(|line| {
            let mut line = without(line, "_SNAPSHOT");
            if let Some(members) = line.as_object_mut()
                && let Some(kind) = members.remove("_ROW_KIND")
            {
                members.insert("rowkind".into(), kind);
            }
            line
        })
        .collect()
}

/// The lines with these members only.
pub fn cut(lines: &[Value], columns: &[String]) -> Vec<Value> {
    let one = |line: &Value| {
        let members = columns.iter().filter_map(|name| Some((name.clone(), line.get(name)?.clone())));
        Value::Object(members.collect())
    };
    lines.iter().map(one).collect()
}

fn same(answer: &Answer, lines: &[Value], loose: &[&str]) -> Result<(), String> {
    let expected = of_lines(lines.iter(), answer.schema.fields(), loose)?;
    let read = of_batches(&answer.batches, loose);
    if expected == read {
        return Ok(());
    }
    let missing: Vec<&String> = difference(&expected, &read);
    let extra: Vec<&String> = difference(&read, &expected);
    Err(format!(
        "expected {} rows, read {}; missing {}, extra {}\n  missing {:?}\n  extra   {:?}",
        expected.len(),
        read.len(),
        missing.len(),
        extra.len(),
        missing.first(),
        extra.first()
    ))
}

/// Multiset difference of sorted texts.
pub fn difference<'a>(left: &'a [String], right: &[String]) -> Vec<&'a String> {
    let mut counts = std::collections::HashMap::new();
    for row in right {
        *counts.entry(row).or_insert(0i64) += 1;
    }
    left.iter()
        .filter(|row| {
            let n = counts.entry(*row).or_insert(0);
            *n -= 1;
            *n < 0
        })
        .collect()
}

/// An identifier in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// One conjunct of `filters.txt` in SQL: literals quoted unless the column is numeric.
fn condition(text: &str, schema: &SchemaRef) -> Result<String, String> {
    let mut words = text.splitn(3, ' ');
    let (Some(column), Some(op)) = (words.next(), words.next()) else { return Err(format!("odd filter {text}")) };
    let literal = words.next().unwrap_or_default();
    let field = schema.field_with_name(column).map_err(|e| e.to_string())?;
    let value = |text: &str| {
        if field.data_type().is_numeric() { text.to_string() } else { format!("'{}'", text.replace('\'', "''")) }
    };
    let column = quoted(column);
    Ok(match op {
        "isnull" => format!("{column} IS NULL"),
        "notnull" => format!("{column} IS NOT NULL"),
        "in" => format!("{column} IN ({})", literal.split(',').map(value).collect::<Vec<_>>().join(", ")),
        "=" | "!=" | "<" | "<=" | ">" | ">=" => format!("{column} {op} {}", value(literal)),
        other => return Err(format!("unknown operator {other}")),
    })
}
