//! The memory a query may hold.

use crate::error::Result;

/// Asked before memory is held, told when it is let go. The room `query` puts the query's memory pool behind it.
pub trait MemoryBudget: std::fmt::Debug + Send + Sync {
    /// Takes `bytes` more, or says why not. A refusal takes nothing.
    fn try_grow(&self, bytes: usize) -> Result<()>;

    /// Gives `bytes` back.
    fn shrink(&self, bytes: usize);
}

/// A budget that never refuses.
#[derive(Debug, Default, Clone, Copy)]
pub struct Unbounded;

impl MemoryBudget for Unbounded {
    fn try_grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}
}
