//! One golden table: which statement answers which expected file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::TryStreamExt;
use lakepin::arrow;
use lakepin::sql::{Session, SessionConfig, Warehouse};
use serde_json::Value;

use super::rows::{Order, of_batches, of_lines};
use super::{Side, Verdict, explained, plans};

/// The kind under which an expected file is counted; None for files that another kind covers.
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

/// A golden table with a session on its warehouse.
pub struct Reader {
    pub side: &'static str,
    pub table: String,
    pub session: Session,
    expected: PathBuf,
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
        Ok(Self { side: side.name, table: table.into(), session, expected: side.expected.join(table) })
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
        let text = std::fs::read_to_string(self.expected.join("filters.txt")).map_err(|e| e.to_string())?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")))
            .ok_or_else(|| format!("no {name} in filters.txt"))?;
        let parts: Result<Vec<String>, String> = line.split(" AND ").map(|part| condition(part, schema)).collect();
        Ok(parts?.join(" AND "))
    }

    /// Compares one expected file.
    pub async fn check(&self, file: &str) -> Result<Verdict, String> {
        let stem = file.trim_end_matches(".jsonl");
        let table = quoted(&self.table);
        match kind(file).ok_or("no kind")? {
            "plan" => return plans::check_plan(self, file).await,
            "files" => return plans::check_files(self, file).await,
            "snapshots" => return plans::check_snapshots(self, file).await,
            "changelog" => return self.check_changelog(file).await,
            "incremental" | "audit log" => return self.check_incremental(file).await,
            _ => {}
        }
        let sql = match stem {
            "latest" | "with-fallback" => format!("SELECT * FROM {table}"),
            "read-optimized" => format!("SELECT * FROM {}", quoted(&format!("{}$ro", self.table))),
            "rows-with-row-id" => format!(
                "SELECT id, \"_ROW_ID\", \"_SEQUENCE_NUMBER\" FROM {}",
                quoted(&format!("{}$row_tracking", self.table))
            ),
            s if s.starts_with("snapshot-") => {
                format!("SELECT * FROM {table} VERSION AS OF {}", &s["snapshot-".len()..])
            }
            s if s.starts_with("tag-") => format!("SELECT * FROM {table} VERSION AS OF '{}'", &s["tag-".len()..]),
            s if s.starts_with("watermark-") => {
                format!("SELECT * FROM {table} AT (WATERMARK => {})", &s["watermark-".len()..])
            }
            s if s.starts_with("branch-") => {
                let rest = &s["branch-".len()..];
                match rest.split_once("-snapshot-") {
                    Some((branch, id)) => format!(
                        "SELECT * FROM {} VERSION AS OF {id}",
                        quoted(&format!("{}$branch_{branch}", self.table))
                    ),
                    None => format!("SELECT * FROM {}", quoted(&format!("{}$branch_{rest}", self.table))),
                }
            }
            s if s.starts_with("rows-") => {
                let (id, filter) = s["rows-".len()..].split_once('-').ok_or("odd name")?;
                let base = format!("SELECT * FROM {table} VERSION AS OF {id}");
                let schema = self.ask(&format!("{base} LIMIT 0")).await.map_err(|e| e.to_string())?.schema;
                format!("{base} WHERE {}", self.filter(filter, &schema)?)
            }
            other => return Err(format!("no statement for {other}")),
        };
        if stem == "read-optimized"
            && let Some(rows) = explained::top_level_rows(self.side, &self.table)
        {
            return self.check_top_level(&sql, rows).await;
        }
        self.compare(&sql, file, &self.lines(file)?).await
    }

    /// `$ro` where 0.9 read all levels above 0: so many rows, each also in `latest`.
    async fn check_top_level(&self, sql: &str, rows: usize) -> Result<Verdict, String> {
        let answer = self.ask(sql).await.map_err(|e| e.to_string())?;
        let read = of_batches(&answer.batches, Order::Kept);
        let latest = of_lines(self.lines("latest.jsonl")?.iter(), answer.schema.fields(), Order::Kept)?;
        if read.len() != rows || !difference(&read, &latest).is_empty() {
            return Err(format!("expected {rows} rows of latest, read {} rows", read.len()));
        }
        Ok(Verdict::Explained)
    }

    /// Runs a statement and compares its rows with the expected lines.
    async fn compare(&self, sql: &str, file: &str, lines: &[Value]) -> Result<Verdict, String> {
        let answer = match self.ask(sql).await {
            Ok(answer) => answer,
            Err(error) => {
                return explained::refusal(self.side, &self.table, file, &error).map_err(|m| format!("{m}\n  {sql}"));
            }
        };
        if let Some(rule) = explained::difference(self.side, &self.table, file) {
            let mut lines = lines.to_vec();
            rule.correct(&mut lines, self, file)?;
            same(&answer, &lines, Order::Kept)?;
            return Ok(Verdict::Explained);
        }
        if same(&answer, lines, Order::Kept).is_ok() {
            return Ok(Verdict::Equal);
        }
        if explained::as_sets(self.side, &self.table) && same(&answer, lines, Order::Ignored).is_ok() {
            return Ok(Verdict::EqualAsSets);
        }
        same(&answer, lines, Order::Kept).map(|()| Verdict::Equal).map_err(|m| format!("{m}\n  {sql}"))
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
            verdict = verdict.max(one);
        }
        Ok(verdict)
    }

    /// Batch incremental reads. Where the rule has changed since 0.9, the stream of changes is what is right.
    async fn check_incremental(&self, file: &str) -> Result<Verdict, String> {
        let stem = file.trim_end_matches(".jsonl");
        let audit = stem.starts_with("audit_log-");
        let range = stem.trim_start_matches("audit_log-").trim_start_matches("incremental-");
        let (from, to) = range.split_once('-').ok_or("odd name")?;
        let (from, to): (i64, i64) = (from.parse().map_err(|_| "odd id")?, to.parse().map_err(|_| "odd id")?);
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
        let sql = if audit {
            self.audit(from, to)
        } else {
            format!("SELECT * FROM {} /*+ OPTIONS('incremental-between'='{from},{to}') */", quoted(&self.table))
        };
        match self.compare(&sql, file, &right).await? {
            Verdict::Equal if !same_lines(&right, &self.lines(file)?) => Ok(Verdict::Explained),
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

fn same(answer: &Answer, lines: &[Value], order: Order) -> Result<(), String> {
    let expected = of_lines(lines.iter(), answer.schema.fields(), order)?;
    let read = of_batches(&answer.batches, order);
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
fn difference<'a>(left: &'a [String], right: &[String]) -> Vec<&'a String> {
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
