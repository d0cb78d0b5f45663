//! The threads that statements run on, changed for fresh ones when a statement that nobody waits for keeps them.
//!
//! Cancelling takes hold where an operator gives way. A nested loop join without matches gives way after hours: until
//! then its threads hear nothing, and neither would the statements that follow.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Stack of a thread: deep expressions are walked by functions that call themselves, and files that include files are
/// run so. Memory is taken for what is touched only.
pub const STACK: usize = 64 << 20;

/// Time in which threads that are free answer, with room for a machine that is busy.
const PATIENCE: Duration = Duration::from_millis(250);

/// The threads of one shell or of one connection of a suite. Clones are the same threads.
#[derive(Debug, Clone)]
pub struct Workers(Arc<Mutex<Arc<Pool>>>);

/// A runtime that ends when nobody uses it any more, without waiting for what still runs in it.
#[derive(Debug)]
struct Pool(Option<Runtime>);

impl Pool {
    fn start() -> io::Result<Arc<Self>> {
        Self::of(&mut Builder::new_multi_thread())
    }

    fn of(builder: &mut Builder) -> io::Result<Arc<Self>> {
        let runtime = builder.thread_stack_size(STACK).enable_all().build()?;
        Ok(Arc::new(Self(Some(runtime))))
    }

    fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
pub struct Owned<T> {
    /// The task.
    pub task: JoinHandle<T>,
    /// Its threads stay as long as it is waited for.
    _pool: Option<Arc<Pool>>,
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<T: Send + 'static> Owned<T> {
    /// A task of the runtime that this is called in.
    pub fn here(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { task: tokio::spawn(work), _pool: None }
    }
}

impl Workers {
    /// Starts them, one a core.
    pub fn start() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Pool::start()?))))
    }

    /// One thread, which a test can keep busy.
    #[cfg(test)]
    pub fn single() -> Self {
        let pool = Pool::of(Builder::new_multi_thread().worker_threads(1)).expect("a thread");
        Self(Arc::new(Mutex::new(pool)))
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.0.lock())
    }

    /// Starts work on them.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Owned<T> {
        let pool = self.pool();
        let task = match pool.handle() {
            Some(handle) => handle.spawn(work),
            None => tokio::spawn(work),
        };
        Owned { task, _pool: Some(pool) }
    }

    /// Starts work that nobody owns.
    pub fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        let pool = self.pool();
        if let Some(handle) = pool.handle() {
            handle.spawn(work);
        }
    }

    /// Makes sure that the next statement finds a thread: when none answers, fresh ones take the place of all. What keeps
    /// the old ones ends them by ending. To be called between statements, of which one runs at a time.
    pub async fn ready(&self) {
        let pool = self.pool();
        let Some(handle) = pool.handle() else { return };
        if tokio::time::timeout(PATIENCE, handle.spawn(async {})).await.is_ok() {
            return;
        }
        // no more threads are to be had: those there are may come back
        let Ok(fresh) = Pool::start() else { return };
        let mut current = self.0.lock();
        if Arc::ptr_eq(&current, &pool) {
            *current = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn threads_are_changed_only_when_all_are_kept() {
        let workers = Workers::single();
        let first = workers.pool();
        // cancelled where it gives way
        drop(workers.spawn(std::future::pending::<()>()));
        workers.ready().await;
        assert!(Arc::ptr_eq(&first, &workers.pool()));

        // and where it does not
        let (began, beginning) = mpsc::channel();
        let (_end, ending) = mpsc::channel::<()>();
        let kept = workers.spawn(async move {
            began.send(()).unwrap();
            ending.recv()
        });
        beginning.recv().unwrap();
        drop(kept);
        workers.ready().await;
        assert!(!Arc::ptr_eq(&first, &workers.pool()));
        assert_eq!((&mut workers.spawn(async { 7 }).task).await.unwrap(), 7);
        // the last who knows them lets them end
        let old = Arc::downgrade(&first);
        drop(first);
        assert!(old.upgrade().is_none());
    }
}
