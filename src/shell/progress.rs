//! One line on the terminal while long work runs; nothing before half a second, nothing without a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;

use super::render::width::{bytes, grouped};

/// Time before the first line.
pub const QUIET: Duration = Duration::from_millis(500);
/// Time between lines.
pub const TICK: Duration = Duration::from_millis(200);

static SHOWN: AtomicBool = AtomicBool::new(false);

/// Removes the line, if there is one.
pub fn clear() {
    if SHOWN.swap(false, Ordering::AcqRel) {
        let mut out = stderr().lock();
        let _ = write!(out, "\r\x1b[K");
        let _ = out.flush();
    }
}

/// The line of one statement.
#[derive(Debug)]
pub struct Progress {
    on: bool,
    started: Instant,
}

impl Progress {
    /// For a statement that starts now; `wanted` is whether the line would disturb nothing.
    pub fn new(wanted: bool) -> Self {
        Self { on: wanted && stderr().is_terminal(), started: Instant::now() }
    }

    /// Waits until the line should be drawn again; for ever when there is none.
    pub async fn tick(&self) {
        if !self.on {
            return std::future::pending().await;
        }
        let early = QUIET.saturating_sub(self.started.elapsed());
        tokio::time::sleep(early.max(TICK)).await;
    }

    /// Draws what is going on.
    pub fn draw(&self, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64) {
        if !self.on || self.started.elapsed() < QUIET {
            return;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let mut text = match plan {
            None => format!("planning … {seconds:.1} s"),
            Some(plan) => {
                let work = Work::of(plan);
                let mut text = format!("reading … {} rows read", grouped(work.rows));
                if work.bytes > 0 {
                    text.push_str(&format!(", {}", bytes(work.bytes)));
                }
                if rows > 0 {
                    text.push_str(&format!(", {} rows out", grouped(rows)));
                }
                format!("{text}, {seconds:.1} s")
            }
        };
        let wide = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
        if text.chars().count() >= wide {
            text = text.chars().take(wide.saturating_sub(1)).collect();
        }
        SHOWN.store(true, Ordering::Release);
        let mut out = stderr().lock();
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        clear();
    }
}

/// What the leaves of a plan did so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Work {
    /// Rows out of the leaves.
    pub rows: u64,
    /// Bytes they read, where they say.
    pub bytes: usize,
    /// Time spent merging, summed over cores.
    pub merging: Duration,
}

impl Work {
    /// Adds up the metrics of a plan.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut work = Self::default();
        work.add(plan);
        work
    }

    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let children = plan.children();
        if let Some(metrics) = plan.metrics() {
            if children.is_empty() {
                self.rows += metrics.output_rows().unwrap_or(0) as u64;
            }
            for metric in metrics.iter() {
                let value = metric.value();
                match value.name() {
                    "bytes_scanned" => self.bytes += value.as_usize(),
                    "select_time" | "merge_time" => {
                        self.merging += Duration::from_nanos(u64::try_from(value.as_usize()).unwrap_or(u64::MAX));
                    }
                    _ => {}
                }
            }
        }
        for child in children {
            self.add(child);
        }
    }
}
