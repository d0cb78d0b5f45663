//! The query's memory pool as the budget of a merge.

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory::MemoryBudget;

/// A reservation in a task's memory pool, under the name of the node and partition that holds it.
#[derive(Debug)]
pub struct PoolBudget {
    reservation: MemoryReservation,
}

impl PoolBudget {
    /// A budget on `pool`, shown there as `name`.
    pub fn new(pool: &Arc<dyn MemoryPool>, name: impl Into<String>) -> Self {
        Self { reservation: MemoryConsumer::new(name).register(pool) }
    }
}

impl MemoryBudget for PoolBudget {
    fn try_grow(&self, bytes: usize) -> Result<()> {
        self.reservation.try_grow(bytes).map_err(Error::from_datafusion)
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }
}
