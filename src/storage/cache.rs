//! Values by key, limited by bytes, loaded once however many ask.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};
use tokio::sync::OnceCell;

use crate::error::{Error, Result};

/// A cache that forgets the least recently used values once their bytes pass a limit. Values that are being loaded are
/// loaded by one caller while the others wait. When it fails all who waited are told: each would else ask the same store
/// again, one after the other, and wait for its time limit each. When it is cancelled, the next one loads.
/// Callers of another runtime do not wait for it: the threads of the first may be kept by something else for hours.
///
/// `V` is cheap to clone, an `Arc` as a rule.
#[derive(Debug)]
pub struct ByteLimitedCache<K, V> {
    limit_bytes: usize,
    state: Mutex<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Last use to key, oldest first.
    uses: BTreeMap<u64, K>,
    loading: HashMap<Mark<K>, Arc<Loading<V>>>,
    clock: u64,
    stats: CacheStats,
}

/// What is loaded, and the runtime that it is loaded in.
type Mark<K> = (K, Option<Id>);

/// A load under way: its outcome, once it is there.
type Loading<V> = OnceCell<Result<(V, usize), Arc<Error>>>;

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

/// What a cache did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Values found.
    pub hits: u64,
    /// Values loaded.
    pub misses: u64,
    /// Values forgotten to stay within the limit.
    pub evictions: u64,
    /// Values held.
    pub entries: usize,
    /// Bytes held.
    pub bytes: usize,
    /// Bytes that may be held.
    pub limit_bytes: usize,
}

impl<K: Clone + Eq + Hash, V: Clone> ByteLimitedCache<K, V> {
    /// An empty cache of at most `limit_bytes`; 0 keeps nothing, but still loads once for all who wait.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            state: Mutex::new(State {
                entries: HashMap::new(),
                uses: BTreeMap::new(),
                loading: HashMap::new(),
                clock: 0,
                stats: CacheStats::default(),
            }),
        }
    }

    /// The value, when it is held.
    pub fn get(&self, key: &K) -> Option<V> {
        self.state.lock().touch(key)
    }

    /// The value; when it is not held, `load` brings it with its size in bytes. Many callers at once load it once.
    ///
    /// # Errors
    /// What `load` fails with, told to all who waited for it and not kept: who asks later loads anew.
    pub async fn get_or_load<F, Fut>(&self, key: &K, load: F) -> Result<V>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<(V, usize)>>,
    {
        let flight = {
            let mut state = self.state.lock();
            if let Some(value) = state.touch(key) {
                return Ok(value);
            }
            let mark = (key.clone(), Handle::try_current().ok().map(|runtime| runtime.id()));
            let cell = state.loading.entry(mark.clone()).or_default();
            // one that has failed is told to those who waited, and to nobody else
            if matches!(cell.get(), Some(Err(_))) {
                *cell = Arc::default();
            }
            let cell = Arc::clone(cell);
            Flight { cache: self, mark, cell }
        };
        let loaded = flight
            .cell
            .get_or_init(|| async {
                self.state.lock().stats.misses += 1;
                load().await.map_err(Arc::new)
            })
            .await;
        self.settle(&flight.mark, loaded, &flight.cell);
        match loaded {
            Ok((value, _)) => Ok(value.clone()),
            Err(error) => Err(error.copied()),
        }
    }

    /// Holds a value that was come by otherwise.
    pub fn insert(&self, key: K, value: V, bytes: usize) {
        let mut state = self.state.lock();
        state.put(key, value, bytes, self.limit_bytes);
    }

    /// What happened so far and what is held.
    pub fn stats(&self) -> CacheStats {
        let state = self.state.lock();
        CacheStats { entries: state.entries.len(), limit_bytes: self.limit_bytes, ..state.stats }
    }

    /// The first of those who waited for a load ends it, and puts the value in.
    fn settle(&self, mark: &Mark<K>, loaded: &Result<(V, usize), Arc<Error>>, cell: &Arc<Loading<V>>) {
        let mut state = self.state.lock();
        if state.loading.get(mark).is_some_and(|known| Arc::ptr_eq(known, cell)) {
            state.loading.remove(mark);
            if let Ok((value, bytes)) = loaded {
                state.put(mark.0.clone(), value.clone(), *bytes, self.limit_bytes);
            }
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> State<K, V> {
    fn touch(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        if let Some(own) = self.uses.remove(&entry.used) {
            self.uses.insert(self.clock, own);
        }
        entry.used = self.clock;
        self.stats.hits += 1;
        Some(entry.value.clone())
    }

    fn put(&mut self, key: K, value: V, bytes: usize, limit: usize) {
        self.drop_entry(&key);
        if bytes > limit {
            return;
        }
        self.clock += 1;
        self.stats.bytes += bytes;
        self.uses.insert(self.clock, key.clone());
        self.entries.insert(key, Entry { value, bytes, used: self.clock });
        while self.stats.bytes > limit {
            let Some((_, oldest)) = self.uses.pop_first() else { break };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.stats.bytes -= entry.bytes;
                self.stats.evictions += 1;
            }
        }
    }

    fn drop_entry(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.used);
            self.stats.bytes -= entry.bytes;
        }
    }
}

/// One caller's interest in a load. The last one to leave without an outcome takes the mark away.
struct Flight<'a, K: Clone + Eq + Hash, V: Clone> {
    cache: &'a ByteLimitedCache<K, V>,
    mark: Mark<K>,
    cell: Arc<Loading<V>>,
}

impl<K: Clone + Eq + Hash, V: Clone> Drop for Flight<'_, K, V> {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        let ours = state.loading.get(&self.mark).is_some_and(|known| Arc::ptr_eq(known, &self.cell));
        // the map and this caller: nobody else waits
        if ours && Arc::strong_count(&self.cell) <= 2 {
            state.loading.remove(&self.mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn least_recently_used_goes_first() {
        let cache = ByteLimitedCache::new(10);
        cache.insert("a", 1, 4);
        cache.insert("b", 2, 4);
        assert_eq!(cache.get(&"a"), Some(1));
        cache.insert("c", 3, 4);
        assert_eq!((cache.get(&"a"), cache.get(&"b"), cache.get(&"c")), (Some(1), None, Some(3)));
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.bytes, stats.evictions), (2, 8, 1));
        cache.insert("a", 9, 1);
        assert_eq!((cache.get(&"a"), cache.stats().bytes), (Some(9), 5));
    }

    #[tokio::test]
    async fn larger_than_the_limit_is_given_but_not_kept() {
        let cache = ByteLimitedCache::new(10);
        cache.insert("small", 1, 5);
        assert_eq!(cache.get_or_load(&"huge", || async { Ok((7, 11)) }).await.unwrap(), 7);
        assert_eq!((cache.get(&"huge"), cache.get(&"small")), (None, Some(1)));
        assert!(cache.state.lock().loading.is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_callers_load_once() {
        let cache = Arc::new(ByteLimitedCache::new(100));
        let loads = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..50)
            .map(|_| {
                let (cache, loads) = (Arc::clone(&cache), Arc::clone(&loads));
                tokio::spawn(async move {
                    let load = || async {
                        loads.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        Ok((42, 1))
                    };
                    cache.get_or_load(&"k", load).await.unwrap()
                })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), 42);
        }
        assert_eq!(loads.load(Ordering::SeqCst), 1);
        assert_eq!(cache.stats().misses, 1);
        assert!(cache.state.lock().loading.is_empty());
    }

    #[tokio::test]
    async fn waiter_takes_over_when_the_loader_is_cancelled() {
        let cache = Arc::new(ByteLimitedCache::new(100));
        let stuck = {
            let cache = Arc::clone(&cache);
            tokio::spawn(async move {
                let load = || async {
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                    Ok((1, 1))
                };
                cache.get_or_load(&"k", load).await
            })
        };
        tokio::task::yield_now().await;
        let waiter = {
            let cache = Arc::clone(&cache);
            tokio::spawn(async move { cache.get_or_load(&"k", || async { Ok((2, 1)) }).await })
        };
        tokio::task::yield_now().await;
        stuck.abort();
        assert_eq!(waiter.await.unwrap().unwrap(), 2);
        assert_eq!(cache.get(&"k"), Some(2));
        assert!(cache.state.lock().loading.is_empty());
    }

    /// What loads in a runtime whose threads are all kept by something else gets no turn.
    #[test]
    fn load_of_one_runtime_keeps_no_other_waiting() {
        let cache = Arc::new(ByteLimitedCache::new(100));
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (kept, free) = (runtime(), runtime());
        let loading = {
            let cache = Arc::clone(&cache);
            let load = || async { Ok(std::future::pending().await) };
            kept.spawn(async move { cache.get_or_load(&"k", load).await })
        };
        kept.block_on(tokio::task::yield_now());
        assert_eq!(cache.stats().misses, 1);
        assert_eq!(free.block_on(cache.get_or_load(&"k", || async { Ok((2, 1)) })).unwrap(), 2);
        assert_eq!(cache.get(&"k"), Some(2));
        loading.abort();
        drop(kept);
        assert!(cache.state.lock().loading.is_empty());
        assert_eq!(cache.get(&"k"), Some(2));
    }

    #[tokio::test]
    async fn cancelled_alone_leaves_no_trace() {
        let cache: ByteLimitedCache<&str, i32> = ByteLimitedCache::new(100);
        let load = || async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok((1, 1))
        };
        let cut = tokio::time::timeout(Duration::from_millis(10), cache.get_or_load(&"k", load)).await;
        assert!(cut.is_err());
        assert!(cache.state.lock().loading.is_empty());
    }

    #[tokio::test]
    async fn failure_is_not_kept() {
        let cache = ByteLimitedCache::new(100);
        let failed = cache.get_or_load(&"k", || async { Err(Error::unavailable("down")) }).await;
        assert!(failed.is_err());
        assert!(cache.state.lock().loading.is_empty());
        assert_eq!(cache.get_or_load(&"k", || async { Ok((3, 1)) }).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn failure_is_told_to_all_who_waited_and_costs_one_load() {
        let cache = Arc::new(ByteLimitedCache::<&str, i32>::new(100));
        let loads = Arc::new(AtomicUsize::new(0));
        let (open, gate) = tokio::sync::watch::channel(false);
        let callers: Vec<_> = (0..5)
            .map(|_| {
                let (cache, loads, mut gate) = (Arc::clone(&cache), Arc::clone(&loads), gate.clone());
                tokio::spawn(async move {
                    let load = move || async move {
                        loads.fetch_add(1, Ordering::SeqCst);
                        gate.wait_for(|open| *open).await.unwrap();
                        Err(Error::unavailable("down").with_code("Down").with_source(std::io::Error::other("cut")))
                    };
                    cache.get_or_load(&"k", load).await
                })
            })
            .collect();
        tokio::task::yield_now().await;
        open.send(true).unwrap();
        for caller in callers {
            let error = caller.await.unwrap().unwrap_err();
            assert_eq!((error.code(), error.message()), ("Down", "down"));
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "cut");
        }
        assert_eq!((loads.load(Ordering::SeqCst), cache.stats().misses), (1, 1));
        assert!(cache.state.lock().loading.is_empty());
        assert_eq!(cache.get_or_load(&"k", || async { Ok((3, 1)) }).await.unwrap(), 3);
    }
}
