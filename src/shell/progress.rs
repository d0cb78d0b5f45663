//! One line on the terminal while long work runs; nothing before half a second, nothing without a terminal.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;

use super::language::{Language, told};
use super::render::width::{bytes, grouped, width};
use crate::sql::{RequestCounts, ScanProgress, Warehouse, Work};

/// Time before the first line.
const QUIET: Duration = Duration::from_millis(500);
/// Time between lines.
const TICK: Duration = Duration::from_millis(200);
/// Work from which the rest is told, and until which.
const TELLING: std::ops::Range<f64> = 0.02..1.0;

static SHOWN: AtomicBool = AtomicBool::new(false);

/// Removes the line, if there is one.
pub fn clear() {
    if SHOWN.swap(false, Ordering::AcqRel) {
        let mut out = stderr().lock();
        let _ = write!(out, "\r\x1b[K");
        let _ = out.flush();
    }
}

/// What is going on.
pub enum Stage {
    /// A statement is planned: its manifests are read.
    Planning(Arc<ScanProgress>),
    /// A plan runs.
    Reading(Arc<dyn ExecutionPlan>),
    /// Something without counters.
    Working,
}

/// The line of one statement.
#[derive(Debug)]
pub struct Progress {
    on: bool,
    language: Language,
    started: Instant,
    warehouse: Warehouse,
    before: RequestCounts,
    /// When the line is due.
    due: Cell<Instant>,
}

impl Progress {
    /// For work that starts now on a warehouse.
    pub fn new(language: Language, warehouse: &Warehouse) -> Self {
        let on = stderr().is_terminal() && !super::terminal::is_dumb();
        let (started, before) = (Instant::now(), warehouse.requests());
        Self { on, language, started, warehouse: warehouse.clone(), before, due: Cell::new(started + QUIET) }
    }

    /// From now on a line would disturb.
    pub fn stop(&mut self) {
        self.on = false;
        clear();
    }

    /// Waits until the line should be drawn again, at the same moment however often the waiting begins anew; for ever when
    /// there is none.
    pub async fn tick(&self) {
        if !self.on {
            return std::future::pending().await;
        }
        let due = self.due.get();
        if Instant::now() < due {
            tokio::time::sleep_until(due.into()).await;
        }
        self.due.set(Instant::now() + TICK);
    }

    /// Draws what is going on.
    pub fn draw(&self, stage: &Stage, rows_out: u64) {
        // the terminal is the pager's while it lives
        if !self.on || self.started.elapsed() < QUIET || super::pager::lives() {
            return;
        }
        let received = (self.warehouse.requests() - self.before).bytes_read;
        let text = line(stage, rows_out, received, self.started.elapsed(), self.language);
        let wide = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
        SHOWN.store(true, Ordering::Release);
        let mut out = stderr().lock();
        let _ = write!(out, "\r\x1b[K{}", cut(&text, wide));
        let _ = out.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        clear();
    }
}

/// The beginning of a text that stays on one line.
fn cut(text: &str, wide: usize) -> &str {
    if width(text) < wide {
        return text;
    }
    let fits = |(at, _): &(usize, char)| width(text.get(..*at).unwrap_or_default()) < wide;
    let end = text.char_indices().take_while(fits).last().map_or(0, |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

fn line(stage: &Stage, rows_out: u64, received: u64, elapsed: Duration, language: Language) -> String {
    let mut parts = Vec::new();
    let verb = match stage {
        Stage::Planning(progress) => {
            let (some, all) = (grouped(progress.manifests_read()), grouped(progress.manifests()));
            if progress.manifests() > 0 {
                parts.push(told!(language, "{some}/{all} manifests", "清单 {some}/{all}", some = some, all = all));
            }
            told!(language, "planning", "计划")
        }
        Stage::Reading(plan) => {
            parts.extend(reading(&Work::of(plan), rows_out, language));
            told!(language, "reading", "读取")
        }
        Stage::Working => told!(language, "working", "执行"),
    };
    if received > 0 {
        parts.push(bytes(usize::try_from(received).unwrap_or(usize::MAX)));
    }
    parts.push(format!("{:.1} s", elapsed.as_secs_f64()));
    if let Stage::Reading(plan) = stage {
        parts.extend(rest(Work::of(plan).share(), elapsed, language));
    }
    format!("{verb} … {}", parts.join(", "))
}

fn reading(work: &Work, rows_out: u64, language: Language) -> Vec<String> {
    let mut parts = Vec::new();
    if work.files > 0 {
        let (some, all) = (grouped(work.files_read), grouped(work.files));
        parts.push(told!(language, "{some}/{all} files", "文件 {some}/{all}", some = some, all = all));
    }
    let n = grouped(work.rows_read);
    parts.push(told!(language, "{n} rows read", "已读 {n} 行", n = n));
    if rows_out > 0 {
        let n = grouped(rows_out);
        parts.push(told!(language, "{n} rows out", "输出 {n} 行", n = n));
    }
    parts
}

/// The time that is left, when enough is done to tell.
fn rest(share: Option<f64>, elapsed: Duration, language: Language) -> Option<String> {
    let share = share.filter(|share| TELLING.contains(share))?;
    let left = elapsed.as_secs_f64() * (1.0 - share) / share;
    let left = if left < 90.0 { format!("{left:.0} s") } else { format!("{:.0} min", left / 60.0) };
    Some(told!(language, "about {left} left", "约剩 {left}", left = left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_tells_files_rows_and_the_rest() {
        let work = Work { files: 240, files_read: 60, file_rows: 4000, rows_read: 1000, ..Work::default() };
        let parts = reading(&work, 7, Language::En);
        assert_eq!(parts, ["60/240 files", "1 000 rows read", "7 rows out"]);
        assert_eq!(reading(&work, 0, Language::Zh), ["文件 60/240", "已读 1 000 行"]);
        assert_eq!(rest(work.share(), Duration::from_secs(10), Language::En).as_deref(), Some("about 30 s left"));
        assert_eq!(rest(Some(0.001), Duration::from_secs(10), Language::En), None);
        assert_eq!(rest(None, Duration::from_secs(10), Language::En), None);
    }

    #[test]
    fn line_never_wraps() {
        assert_eq!(cut("reading … 12", 80), "reading … 12");
        assert_eq!(cut("读取 … 文件", 9), "读取 … ");
        assert_eq!(cut("abc", 3), "ab");
    }
}
