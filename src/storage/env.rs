//! Clock and ids: the only place that asks the machine for either.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What time it is.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since the epoch.
    fn now_millis(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> i64 {
        now_millis()
    }
}

/// A clock that stands until it is set, for tests.
#[derive(Debug)]
pub struct FixedClock(AtomicI64);

impl FixedClock {
    /// A clock standing at `millis`.
    pub fn new(millis: i64) -> Self {
        Self(AtomicI64::new(millis))
    }

    /// Sets it.
    pub fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    /// Moves it forward.
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now_millis(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Milliseconds since the epoch by the machine's clock; negative before 1970.
pub fn now_millis() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
    }
}

/// A new random id.
pub fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_clock_stands_until_it_is_moved() {
        let clock = FixedClock::new(1000);
        assert_eq!(clock.now_millis(), 1000);
        clock.advance(5);
        assert_eq!(clock.now_millis(), 1005);
        clock.set(-1);
        assert_eq!(clock.now_millis(), -1);
        assert!(SystemClock.now_millis() > 1_700_000_000_000);
        assert_ne!(new_id(), new_id());
    }
}
