//! Memory and tasks that go when their owner goes.

use std::sync::Arc;

use futures::FutureExt;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::memory::MemoryBudget;

/// Bytes taken from a budget, given back when this goes away.
pub struct Held {
    budget: Arc<dyn MemoryBudget>,
    bytes: usize,
}

impl Held {
    /// Nothing yet.
    pub fn new(budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes `bytes` more.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.budget.try_grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives back what is beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let beyond = self.bytes.saturating_sub(bytes);
        self.budget.shrink(beyond);
        self.bytes -= beyond;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}

/// A task that ends when nobody waits for it any more.
pub struct AbortOnDrop<T>(pub JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for AbortOnDrop<Result<T>> {
    type Output = Result<T>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        self.0.poll_unpin(cx).map(|joined| match joined {
            Ok(result) => result,
            Err(error) => Err(Error::internal(format!("a reading task failed: {error}"))),
        })
    }
}
