//! What stands under a result: rows, time, files, pins, notices; or all of it as one line of JSON.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use serde_json::json;

use super::execute::{Answer, Collected};
use super::language::{Language, notice, pin as pin_line, told};
use super::pager::{notice_mark, pin_mark};
use super::render::width::{bytes, grouped};
use crate::notice::Notice;
use crate::sql::{PinLine, RequestCounts, Scanned, Timing, Work};

/// Times shorter than this are not told.
const TOLD: Duration = Duration::from_micros(50);

/// What is known of a result at its end.
pub struct Closing {
    /// Columns.
    schema: SchemaRef,
    /// Tables read.
    pub pins: Vec<PinLine>,
    /// What the reader should know.
    pub notices: Vec<Notice>,
    /// Rows that came.
    pub rows: u64,
    /// Rows that stand on the screen, when others were left out.
    pub shown: Option<u64>,
    /// Whether who read the rows left before the last.
    pub left: bool,
    /// Code of the error that ended it.
    pub failed: Option<&'static str>,
    /// Time of reading.
    pub read: Duration,
    /// Time in all.
    pub total: Duration,
    /// Which of many, when it is watched.
    turn: Option<u64>,
    timed: bool,
    timing: Timing,
    scanned: Option<Scanned>,
    plan: Option<Arc<dyn ExecutionPlan>>,
    before: Option<RequestCounts>,
}

impl Closing {
    /// Of an answer that is about to be read.
    pub fn of(answer: &Answer, timed: bool) -> Self {
        Self {
            schema: Arc::clone(&answer.schema),
            pins: answer.pins.clone(),
            notices: answer.notices.clone(),
            rows: 0,
            shown: None,
            left: false,
            failed: None,
            read: Duration::ZERO,
            total: Duration::ZERO,
            turn: answer.turn,
            // what a command made of an answer has no time of its own to tell
            timed: timed && answer.requests.is_some(),
            timing: answer.timing,
            scanned: answer.scanned,
            plan: answer.plan.clone(),
            before: answer.requests,
        }
    }

    /// Of an answer that a command keeps for itself.
    pub fn of_collected(collected: &Collected) -> Self {
        Self {
            schema: Arc::clone(&collected.schema),
            pins: collected.pins.clone(),
            notices: collected.notices.clone(),
            rows: collected.batches.iter().map(|batch| batch.num_rows() as u64).sum(),
            shown: None,
            left: false,
            failed: None,
            read: Duration::ZERO,
            total: Duration::ZERO,
            turn: None,
            timed: false,
            timing: Timing::default(),
            scanned: None,
            plan: None,
            before: None,
        }
    }

    /// `12 rows (0.41 s: plan 3.1 ms, read 0.40 s; 3 partitions, 18/240 files, 1.2 GB)`
    pub fn line(&self, language: Language, now: RequestCounts) -> String {
        let parts: Vec<String> = self.times(language, now).into_iter().chain(self.files(language)).collect();
        let counted = self.counted(language);
        if parts.is_empty() { counted } else { format!("{counted} ({})", parts.join("; ")) }
    }

    /// How many rows there are, and how many of them are shown.
    pub fn counted(&self, language: Language) -> String {
        let n = grouped(self.rows);
        if self.left {
            return told!(
                language,
                "{n} rows were read until their reader left",
                "读者提前离开，此前读了 {n} 行",
                n = n
            );
        }
        match self.shown {
            Some(shown) => told!(
                language,
                "showing {shown} of {n} rows; \\more shows the rest",
                "共 {n} 行，显示 {shown} 行；\\more 显示其余",
                shown = shown,
                n = n
            ),
            None if self.rows == 1 => told!(language, "1 row", "1 行"),
            None => told!(language, "{n} rows", "{n} 行", n = n),
        }
    }

    fn files(&self, language: Language) -> Option<String> {
        let Scanned { partitions, files, live_files, bytes: size, hidden_files, read_optimized } = self.scanned?;
        let mut parts = Vec::new();
        if partitions > 0 {
            let n = grouped(partitions);
            parts.push(match partitions {
                1 => told!(language, "1 partition", "1 个分区"),
                _ => told!(language, "{n} partitions", "{n} 个分区", n = n),
            });
        }
        let (some, all) = (grouped(files), grouped(live_files));
        parts.push(told!(language, "{some}/{all} files", "文件 {some}/{all}", some = some, all = all));
        if size > 0 {
            parts.push(bytes(usize::try_from(size).unwrap_or(usize::MAX)));
        }
        if read_optimized {
            parts.push(told!(language, "READ-OPTIMISED", "仅读已合并文件 (READ-OPTIMISED)"));
        }
        match hidden_files {
            0 => {}
            1 => parts.push(told!(language, "1 file hidden by design", "按设计不可见的文件 1 个")),
            n => {
                let n = grouped(n);
                parts.push(told!(language, "{n} files hidden by design", "按设计不可见的文件 {n} 个", n = n));
            }
        }
        Some(parts.join(", "))
    }

    /// The time with its parts.
    fn times(&self, language: Language, now: RequestCounts) -> Option<String> {
        if !self.timed {
            return None;
        }
        let Timing { resolve, plan, manifests } = self.timing;
        let named = |en: &str, zh: &str, time: Duration| {
            format!("{} {}", if language == Language::En { en } else { zh }, short(time))
        };
        let mut parts = vec![named("plan", "计划", resolve + plan)];
        if manifests >= TOLD {
            parts.push(named("manifests", "清单", manifests));
        }
        parts.push(named("read", "读取", self.read));
        let merging = self.plan.as_ref().map(|plan| Work::of(plan).merging).unwrap_or_default();
        if merging >= TOLD {
            parts.push(named("merge", "合并", merging));
        }
        if let Some(before) = self.before {
            match (now - before).requests() {
                0 => {}
                1 => parts.push(told!(language, "1 request", "请求 1 次")),
                n => parts.push(told!(language, "{n} requests", "请求 {n} 次", n = grouped(n))),
            }
        }
        Some(format!("{:.2} s: {}", self.total.as_secs_f64(), parts.join(", ")))
    }

    /// One line: columns, rows, whether it is all, and the snapshot of each table.
    pub fn json(&self) -> String {
        let columns: Vec<_> = self
            .schema
            .fields()
            .iter()
            .map(|f| json!({"name": f.name(), "type": f.data_type().to_string(), "nullable": f.is_nullable()}))
            .collect();
        let snapshots: Vec<_> = self
            .pins
            .iter()
            .map(|pin| {
                let mut told = json!({
                    "table": pin.table,
                    "snapshot": pin.snapshot_id,
                    "schema": pin.schema_id,
                    "commit_time_ms": pin.commit_time_millis,
                    "user": pin.user,
                    "identifier": pin.identifier,
                    "kind": pin.kind,
                    "watermark_ms": pin.watermark,
                    "tag": pin.tag,
                    "session": pin.session,
                });
                if let (Some(after), Some(fields)) = (pin.changes_after, told.as_object_mut()) {
                    fields.insert("changes_after".to_string(), json!(after));
                }
                told
            })
            .collect();
        let mut meta = json!({
            "columns": columns,
            "rows": self.rows,
            "truncated": self.failed.is_some() || self.shown.is_some() || self.left,
            "snapshots": snapshots,
            "notices": self.notices.iter().map(|notice| &**notice).collect::<Vec<&str>>(),
        });
        if let Some(fields) = meta.as_object_mut() {
            fields.extend(self.failed.map(|code| ("error".to_string(), json!(code))));
            fields.extend(self.turn.map(|turn| ("turn".to_string(), json!(turn))));
        }
        format!("{meta}\n")
    }
}

/// Pins and notices, each once.
pub fn notes(pins: &[PinLine], notices: &[Notice], language: Language) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for pin in pins {
        let session = match (pin.session, language) {
            (false, _) => "",
            (true, Language::En) => " (session)",
            (true, Language::Zh) => "（会话固定）",
        };
        let line = format!("{}{}{session}", pin_mark(language), pin_line(pin, language));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.extend(notices.iter().map(|told| format!("{}{}", notice_mark(language), notice(told, language))));
    lines
}

fn short(time: Duration) -> String {
    if time < Duration::from_millis(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    } else if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn closing(rows: u64) -> Closing {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let answer = Answer::of_batches(schema, Vec::new()).unwrap();
        Closing { rows, ..Closing::of(&answer, false) }
    }

    #[test]
    fn line_tells_rows_and_files() {
        let scanned =
            Scanned { partitions: 3, files: 18, live_files: 1240, bytes: 1_200_000_000, ..Scanned::default() };
        let whole = Closing { scanned: Some(scanned), ..closing(12) };
        let now = RequestCounts::default();
        assert_eq!(whole.line(Language::En, now), "12 rows (3 partitions, 18/1 240 files, 1.2 GB)");
        assert_eq!(whole.line(Language::Zh, now), "12 行 (3 个分区, 文件 18/1 240, 1.2 GB)");
        let partly = Scanned { read_optimized: true, hidden_files: 2, files: 1, live_files: 3, ..Scanned::default() };
        let partly = Closing { scanned: Some(partly), ..closing(2) };
        let expected = "2 rows (1/3 files, READ-OPTIMISED, 2 files hidden by design)";
        assert_eq!(partly.line(Language::En, now), expected);
        assert_eq!(closing(1).line(Language::En, now), "1 row");
        let answer = Answer::of_batches(Arc::clone(&whole.schema), Vec::new()).unwrap();
        assert_eq!(Closing::of(&answer, true).line(Language::En, now), "0 rows");
        let statement = Answer { requests: Some(now), ..answer };
        assert!(Closing::of(&statement, true).line(Language::En, now).starts_with("0 rows (0.00 s: plan "));
        let capped = Closing { shown: Some(40), ..closing(60_000) };
        assert_eq!(capped.line(Language::En, now), "showing 40 of 60 000 rows; \\more shows the rest");
    }

    #[test]
    fn json_line_tells_whether_it_is_all() {
        let meta = |closing: &Closing| serde_json::from_str::<serde_json::Value>(&closing.json()).unwrap();
        let whole = meta(&closing(3));
        assert_eq!(whole["columns"], json!([{"name": "n", "type": "Int64", "nullable": false}]));
        assert_eq!((&whole["rows"], &whole["truncated"], whole.get("error")), (&json!(3), &json!(false), None));
        let cut = meta(&Closing { failed: Some("Timeout"), ..closing(3) });
        assert_eq!((&cut["truncated"], &cut["error"]), (&json!(true), &json!("Timeout")));
        let left = Closing { left: true, ..closing(3) };
        assert_eq!(meta(&left)["truncated"], json!(true));
        assert_eq!(left.counted(Language::En), "3 rows were read until their reader left");
    }
}
