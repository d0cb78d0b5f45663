//! Ctrl-C: the first cancels what runs, a second within two seconds ends the program. SIGTERM and SIGHUP end it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::{exit, pager};
use crate::error::Error;

/// Two within this time end the program.
pub const TWICE: Duration = Duration::from_secs(2);

/// Tells a running statement that it is no longer wanted.
#[derive(Debug, Clone, Default)]
pub struct Interrupts(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    count: AtomicU64,
    /// What runs, one inside the other: Ctrl-C is for all of it. Otherwise the prompt takes the key.
    running: AtomicUsize,
    /// How often something began to run while nothing did.
    begun: AtomicU64,
    /// Somebody else takes the key: a pager.
    paused: AtomicUsize,
    /// Nobody sits at the prompt: what does not stop by itself is stopped.
    script: AtomicBool,
    notify: Notify,
}

/// What a press of Ctrl-C does.
#[derive(Debug, PartialEq, Eq)]
enum Press {
    Ignore,
    Cancel,
    End,
}

impl Inner {
    fn live(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0 && self.paused.load(Ordering::Acquire) == 0
    }

    /// What a press does, the last one being the press before it and what ran then.
    fn press(&self, last: &mut Option<(Instant, u64)>, now: Instant, paging: bool) -> Press {
        if !self.live() {
            let ends = self.script.load(Ordering::Relaxed) && !paging;
            return if ends { Press::End } else { Press::Ignore };
        }
        let begun = self.begun.load(Ordering::Acquire);
        let twice = last.is_some_and(|(at, what)| what == begun && now.duration_since(at) < TWICE);
        *last = Some((now, begun));
        // the key is for the pager too, which would be left alone with the terminal
        if twice && !paging { Press::End } else { Press::Cancel }
    }
}

impl Interrupts {
    /// Starts listening; must be called on the runtime that keeps the clock, which no statement can keep busy.
    pub fn listen(script: bool) -> Self {
        let interrupts = Self::default();
        interrupts.0.script.store(script, Ordering::Relaxed);
        let listener = interrupts.clone();
        // heard from now on, not from when a thread turns to it: until then the key would end the program
        let Ok(mut presses) = presses() else { return interrupts };
        tokio::spawn(async move {
            let mut last = None;
            while presses.recv().await.is_some() {
                match listener.0.press(&mut last, Instant::now(), pager::lives()) {
                    Press::Ignore => {}
                    Press::Cancel => listener.fire(),
                    Press::End => exit::now(exit::INTERRUPTED),
                }
            }
        });
        #[cfg(unix)]
        {
            use tokio::signal::unix::SignalKind;
            end_at(SignalKind::terminate(), exit::TERMINATED);
            end_at(SignalKind::hangup(), exit::HUNG_UP);
        }
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
                if this.0.live() && this.0.count.load(Ordering::Acquire) == count {
                    exit::now(exit::INTERRUPTED);
                }
            });
        }
    }

    /// Marks the time in which Ctrl-C cancels.
    pub fn running(&self) -> Running {
        if self.0.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.0.begun.fetch_add(1, Ordering::AcqRel);
        }
        Running { interrupts: self.clone(), since: self.0.count.load(Ordering::Acquire) }
    }
}

/// Presses of Ctrl-C.
#[cfg(unix)]
fn presses() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn presses() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// Ends the program at a signal, unless who started it had the signal ignored, as `nohup` does.
#[cfg(unix)]
fn end_at(kind: tokio::signal::unix::SignalKind, code: u8) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores(&status, kind.as_raw_value()) {
        return;
    }
    // where signals cannot be heard, they end the program as ever
    let Ok(mut signals) = tokio::signal::unix::signal(kind) else { return };
    tokio::spawn(async move {
        if signals.recv().await.is_some() {
            exit::now(code);
        }
    });
}

/// Whether a process of this `/proc/…/status` ignores a signal.
#[cfg(unix)]
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).is_some_and(|mask| mask & 1 == 1))
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

impl Interrupts {
    /// Until the value is dropped, Ctrl-C is for somebody else: a pager.
    pub fn pause(&self) -> Paused<'_> {
        self.0.paused.fetch_add(1, Ordering::AcqRel);
        Paused(self)
    }
}

/// While it lives, Ctrl-C is not for the statement.
#[derive(Debug)]
pub struct Paused<'a>(&'a Interrupts);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.0.paused.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.interrupts.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The error of a cancelled statement.
pub fn interrupted() -> Error {
    Error::invalid("cancelled by Ctrl-C").with_code("Interrupted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_press_ends_what_the_first_did_not_and_never_a_pager() {
        let interrupts = Interrupts::default();
        let mut last = None;
        let start = Instant::now();
        let mut press = |millis, paging| {
            let now = start + Duration::from_millis(millis);
            interrupts.0.press(&mut last, now, paging)
        };
        assert_eq!(press(0, false), Press::Ignore, "the prompt takes the key");
        let line = interrupts.running();
        let statement = interrupts.running();
        assert_eq!((press(10, false), press(500, false)), (Press::Cancel, Press::End));
        assert_eq!((press(3_000, true), press(3_100, true)), (Press::Cancel, Press::Cancel));
        let paused = interrupts.pause();
        assert_eq!(press(3_200, true), Press::Ignore, "the pager takes the key");
        drop(paused);
        drop(statement);
        assert_eq!(press(9_000, false), Press::Cancel, "the rest of the line is cancelled too");
        drop(line);
        let _next = interrupts.running();
        assert_eq!(press(9_100, false), Press::Cancel, "what began since was not pressed for twice");
    }

    #[cfg(unix)]
    #[test]
    fn ignored_signals_stay_ignored() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!([1, 13, 15].map(|signal| ignores(status, signal)), [true, true, false]);
        assert!(!ignores("", 1));
    }
}
