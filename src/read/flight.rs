//! One computation for many waiters.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

use crate::error::{Error, Result};

type Outcome<T> = Result<Arc<T>, Arc<Error>>;
type Flight<T> = BoxFuture<'static, Outcome<T>>;

/// A value that is computed once, on first demand, however many ask for it at the same time.
///
/// The waiters themselves drive the computation. One that goes away (LIMIT, cancel) leaves it to the others; when the
/// last one goes away the computation is dropped and the next demand starts anew. A failure is told to all who waited
/// and not kept, as by [`ByteLimitedCache`](crate::storage::cache::ByteLimitedCache), whose loads borrow from those who
/// ask, so that none can go on for another.
pub struct OnceFlight<T> {
    value: OnceLock<Arc<T>>,
    flight: Mutex<Option<WeakShared<Flight<T>>>>,
}

impl<T> Default for OnceFlight<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), flight: Mutex::new(None) }
    }
}

impl<T> std::fmt::Debug for OnceFlight<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnceFlight({})", if self.value.get().is_some() { "computed" } else { "open" })
    }
}

impl<T: Send + Sync + 'static> OnceFlight<T> {
    /// The value, when it is there already.
    pub fn get(&self) -> Option<&Arc<T>> {
        self.value.get()
    }

    /// Puts in a value that is known already; one that is there stays.
    pub fn put(&self, value: Arc<T>) {
        let _ = self.value.set(value);
    }

    /// The value, computed by `compute` unless it is there or somebody is computing it.
    pub async fn get_or_compute<F>(&self, compute: F) -> Result<Arc<T>>
    where
        F: FnOnce() -> BoxFuture<'static, Result<Arc<T>>>,
    {
        if let Some(value) = self.value.get() {
            return Ok(Arc::clone(value));
        }
        let flight = self.board(compute);
        match flight.await {
            Ok(value) => Ok(Arc::clone(self.value.get_or_init(|| value))),
            Err(shared) => Err(shared.copied()),
        }
    }

    fn board<F>(&self, compute: F) -> Shared<Flight<T>>
    where
        F: FnOnce() -> BoxFuture<'static, Result<Arc<T>>>,
    {
        let mut slot = self.flight.lock();
        if let Some(running) = slot.as_ref().and_then(WeakShared::upgrade)
            && !matches!(running.peek(), Some(Err(_)))
        {
            return running;
        }
        let future = compute();
        let flight = async move { future.await.map_err(Arc::new) }.boxed().shared();
        *slot = flight.downgrade();
        flight
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counted(
        count: &Arc<AtomicUsize>,
        wait: tokio::sync::oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Result<Arc<u32>>> {
        let count = Arc::clone(count);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = wait.await;
            Ok(Arc::new(7))
        }
        .boxed()
    }

    #[tokio::test]
    async fn two_waiters_share_one_computation_when_the_first_goes_away() {
        let cell = Arc::new(OnceFlight::<u32>::default());
        let count = Arc::new(AtomicUsize::new(0));
        let (open, gate) = tokio::sync::oneshot::channel();
        let (_never, never) = tokio::sync::oneshot::channel();
        let first = {
            let (cell, count) = (Arc::clone(&cell), Arc::clone(&count));
            tokio::spawn(async move { cell.get_or_compute(|| counted(&count, gate)).await })
        };
        tokio::task::yield_now().await;
        let second = {
            let (cell, count) = (Arc::clone(&cell), Arc::clone(&count));
            tokio::spawn(async move { cell.get_or_compute(|| counted(&count, never)).await })
        };
        tokio::task::yield_now().await;
        first.abort();
        let _ = first.await;
        open.send(()).expect("the computation still waits");
        assert_eq!(*second.await.expect("joins").expect("computes"), 7);
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(cell.get().is_some());
    }

    #[tokio::test]
    async fn a_failure_is_told_and_not_kept() {
        let cell = OnceFlight::<u32>::default();
        let failed = cell.get_or_compute(|| async { Err(Error::corrupt("torn").with_code("Torn")) }.boxed()).await;
        assert_eq!(failed.expect_err("fails").code(), "Torn");
        let value = cell.get_or_compute(|| async { Ok(Arc::new(3)) }.boxed()).await.expect("computes");
        assert_eq!(*value, 3);
    }

    #[tokio::test]
    async fn a_computation_nobody_waits_for_is_dropped() {
        let cell = Arc::new(OnceFlight::<u32>::default());
        let count = Arc::new(AtomicUsize::new(0));
        let (open, gate) = tokio::sync::oneshot::channel();
        let waiter = {
            let (cell, count) = (Arc::clone(&cell), Arc::clone(&count));
            tokio::spawn(async move { cell.get_or_compute(|| counted(&count, gate)).await })
        };
        tokio::task::yield_now().await;
        waiter.abort();
        let _ = waiter.await;
        assert!(open.send(()).is_err(), "the computation is gone");
        let value = cell.get_or_compute(|| async { Ok(Arc::new(9)) }.boxed()).await.expect("computes");
        assert_eq!(*value, 9);
    }
}
