//! What may be made of a block. A block tells its own size and the number of its values, and some values take no bytes:
//! what a few bytes claim is refused, or taken from the query's memory, before it is made.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::spec::avro::Repeats;

/// Bytes that no account is kept of: ordinary files take less.
const UNASKED: usize = 8 << 20;
/// Bytes asked for together.
const STEP: usize = 1 << 20;

/// Memory in use, taken from the query's budget where it is more than ordinary; given back when this goes away.
pub(super) struct Meter {
    budget: Arc<dyn MemoryBudget>,
    held: usize,
    taken: usize,
}

impl Meter {
    pub(super) fn new(budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), held: 0, taken: 0 }
    }

    /// Takes `bytes` more.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<()> {
        let held = self.held.saturating_add(bytes);
        let missing = held.saturating_sub(UNASKED).saturating_sub(self.taken);
        if missing > 0 {
            let step = missing.max(STEP);
            self.budget.try_grow(step)?;
            self.taken += step;
        }
        self.held = held;
        Ok(())
    }

    /// Holds nothing any more.
    pub(super) fn clear(&mut self) {
        self.budget.shrink(self.taken);
        (self.held, self.taken) = (0, 0);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What the values of a block may still take.
pub(super) struct Allowance {
    /// How many values may follow.
    pub(super) repeats: Repeats,
    /// Memory of the values that are built.
    memory: Meter,
}

impl Allowance {
    pub(super) fn new(budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { repeats: Repeats::default(), memory: Meter::new(budget) }
    }

    /// For the values of a block of so many bytes, the first in it.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.repeats = Repeats::of(bytes);
    }

    /// So many values of `width` bytes each are about to be built.
    pub(super) fn build(&mut self, count: u64, width: usize) -> Result<()> {
        self.memory.grow(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(width))
    }

    /// What was built is given away.
    pub(super) fn built(&mut self) {
        self.memory.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;

    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    impl MemoryBudget for Counted {
        fn try_grow(&self, bytes: usize) -> Result<()> {
            if self.0.load(Ordering::Relaxed) + bytes > 4 * STEP {
                return Err(Error::exhausted("the pool is empty"));
            }
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn shrink(&self, bytes: usize) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_more_than_ordinary_is_taken_and_given_back() {
        let counted = Arc::new(Counted::default());
        let budget: Arc<dyn MemoryBudget> = Arc::clone(&counted) as _;
        let taken = || counted.0.load(Ordering::Relaxed);
        let mut meter = Meter::new(&budget);
        meter.grow(UNASKED).unwrap();
        assert_eq!(taken(), 0);
        meter.grow(1).unwrap();
        meter.grow(STEP - 1).unwrap();
        assert_eq!(taken(), STEP);
        meter.grow(2 * STEP).unwrap();
        assert_eq!(taken(), 3 * STEP);
        assert!(meter.grow(2 * STEP).is_err());
        assert_eq!(taken(), 3 * STEP, "a refusal takes nothing");
        meter.clear();
        assert_eq!(taken(), 0);
        meter.grow(UNASKED + 1).unwrap();
        drop(meter);
        assert_eq!(taken(), 0);
    }
}
