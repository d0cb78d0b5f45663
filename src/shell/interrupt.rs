//! Ctrl-C: the first cancels what runs, a second within two seconds ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::exit;
use crate::error::Error;

/// Two within this time end the program.
pub const TWICE: Duration = Duration::from_secs(2);

/// Tells a running statement that it is no longer wanted.
#[derive(Debug, Clone, Default)]
pub struct Interrupts(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    count: AtomicU64,
    /// A statement runs: Ctrl-C is for it. Otherwise the prompt or the pager takes the key.
    running: AtomicBool,
    /// Nobody sits at the prompt: what does not stop by itself is stopped.
    script: AtomicBool,
    notify: Notify,
}

impl Interrupts {
    /// Starts listening; must be called on the runtime that keeps the clock, which no statement can keep busy.
    pub fn listen(script: bool) -> Self {
        let interrupts = Self::default();
        interrupts.0.script.store(script, Ordering::Relaxed);
        let listener = interrupts.clone();
        tokio::spawn(async move {
            let mut last: Option<Instant> = None;
            while tokio::signal::ctrl_c().await.is_ok() {
                if !listener.0.running.load(Ordering::Acquire) {
                    if listener.0.script.load(Ordering::Relaxed) {
                        exit::now(exit::INTERRUPTED);
                    }
                    continue;
                }
                let now = Instant::now();
                if last.is_some_and(|last| now.duration_since(last) < TWICE) {
                    exit::now(exit::INTERRUPTED);
                }
                last = Some(now);
                listener.fire();
            }
        });
        interrupts
    }

    fn fire(&self) {
        let count = self.0.count.fetch_add(1, Ordering::AcqRel) + 1;
        self.0.notify.notify_waiters();
        if self.0.script.load(Ordering::Relaxed) {
            // a writer that waits for a full pipe does not hear us
            let this = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(900)).await;
                if this.0.running.load(Ordering::Acquire) && this.0.count.load(Ordering::Acquire) == count {
                    exit::now(exit::INTERRUPTED);
                }
            });
        }
    }

    /// Marks the time in which Ctrl-C cancels.
    pub fn running(&self) -> Running {
        self.0.running.store(true, Ordering::Release);
        Running { interrupts: self.clone(), since: self.0.count.load(Ordering::Acquire) }
    }
}

/// While it lives, Ctrl-C is for the statement.
#[derive(Debug)]
pub struct Running {
    interrupts: Interrupts,
    since: u64,
}

impl Running {
    /// Whether Ctrl-C came.
    pub fn hit(&self) -> bool {
        self.interrupts.0.count.load(Ordering::Acquire) > self.since
    }

    /// Waits for Ctrl-C.
    pub async fn wait(&self) {
        loop {
            let notified = self.interrupts.0.notify.notified();
            if self.hit() {
                return;
            }
            notified.await;
        }
    }
}

impl Running {
    /// Until the value is dropped, Ctrl-C is for somebody else: a pager.
    pub fn pause(&self) -> Paused<'_> {
        self.interrupts.0.running.store(false, Ordering::Release);
        Paused(self)
    }
}

/// While it lives, Ctrl-C is not for the statement.
#[derive(Debug)]
pub struct Paused<'a>(&'a Running);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.interrupts.0.running.store(true, Ordering::Release);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.interrupts.0.running.store(false, Ordering::Release);
    }
}

/// The error of a cancelled statement.
pub fn interrupted() -> Error {
    Error::invalid("cancelled by Ctrl-C").with_code("Interrupted")
}
