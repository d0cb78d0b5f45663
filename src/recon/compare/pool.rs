//! A part of a memory pool: two sorts side by side must not starve each other, nor the merge above them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// At most so much of another pool. Three quarters of it are for those who can spill, each the same part: one that began
/// late finds its own untouched, and the rest is left to those who cannot.
#[derive(Debug)]
pub struct Share {
    pool: Arc<dyn MemoryPool>,
    limit: usize,
    used: AtomicUsize,
    spilling: AtomicUsize,
}

impl Share {
    /// One of `parts` equal parts of what a pool may give; the pool itself where that is not limited.
    pub fn of(pool: &Arc<dyn MemoryPool>, parts: usize) -> Arc<dyn MemoryPool> {
        match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => {
                let limit = bytes / parts.max(1);
                let none = AtomicUsize::default;
                Arc::new(Self { pool: Arc::clone(pool), limit, used: none(), spilling: none() })
            }
            _ => Arc::clone(pool),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "share of {} bytes of {}", self.limit, self.pool)
    }
}

impl MemoryPool for Share {
    fn name(&self) -> &str {
        "share"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.spilling.fetch_add(usize::from(consumer.can_spill()), Ordering::Relaxed);
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.spilling.fetch_sub(usize::from(consumer.can_spill()), Ordering::Relaxed);
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        let refused = |used: usize, limit: usize| {
            DataFusionError::ResourcesExhausted(format!(
                "{} needs {additional} bytes more, and has {used} of the {limit} that are for it in one side of the comparison",
                reservation.consumer().name()
            ))
        };
        if reservation.consumer().can_spill() {
            let own = self.limit / 4 * 3 / self.spilling.load(Ordering::Relaxed).max(1);
            if reservation.size().saturating_add(additional) > own {
                return Err(refused(reservation.size(), own));
            }
        }
        let limit = self.limit;
        let more = |used: usize| used.checked_add(additional).filter(|used| *used <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map_err(|used| refused(used, limit))?;
        self.pool.try_grow(reservation, additional).inspect_err(|_| {
            self.used.fetch_sub(additional, Ordering::Relaxed);
        })
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}
