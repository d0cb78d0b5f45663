//! The wrapper all requests go through: counts, bytes, retries, time limits.

use std::fmt;
use std::future::Future;
use std::ops::{Add, Range, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, OBJECT_STORE_COALESCE_DEFAULT,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, coalesce_ranges,
};

use super::failure::{is_transient, timed_out};
use super::local;

/// What was asked of a store so far, by operation. A difference of two is what happened in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Whole files read.
    pub gets: u64,
    /// Ranges of files read.
    pub range_gets: u64,
    /// Questions whether a file exists and how large it is.
    pub heads: u64,
    /// Folders listed.
    pub lists: u64,
    /// Files written, copied or deleted.
    pub writes: u64,
    /// Bytes received.
    pub bytes_read: u64,
    /// Requests made again after a transient fault.
    pub retries: u64,
}

impl RequestCounts {
    /// All requests, retries included.
    pub fn requests(&self) -> u64 {
        self.gets + self.range_gets + self.heads + self.lists + self.writes + self.retries
    }
}

impl Add for RequestCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            gets: self.gets.saturating_add(other.gets),
            range_gets: self.range_gets.saturating_add(other.range_gets),
            heads: self.heads.saturating_add(other.heads),
            lists: self.lists.saturating_add(other.lists),
            writes: self.writes.saturating_add(other.writes),
            bytes_read: self.bytes_read.saturating_add(other.bytes_read),
            retries: self.retries.saturating_add(other.retries),
        }
    }
}

impl Sub for RequestCounts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            gets: self.gets.saturating_sub(earlier.gets),
            range_gets: self.range_gets.saturating_sub(earlier.range_gets),
            heads: self.heads.saturating_sub(earlier.heads),
            lists: self.lists.saturating_sub(earlier.lists),
            writes: self.writes.saturating_sub(earlier.writes),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            retries: self.retries.saturating_sub(earlier.retries),
        }
    }
}

impl fmt::Display for RequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests (get {}, range {}, head {}, list {}, retry {}), {} bytes",
            self.requests(),
            self.gets,
            self.range_gets,
            self.heads,
            self.lists,
            self.retries,
            self.bytes_read
        )
    }
}

/// The counters of one store.
#[derive(Debug, Default)]
pub(super) struct Counters {
    gets: AtomicU64,
    range_gets: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    writes: AtomicU64,
    bytes_read: AtomicU64,
    retries: AtomicU64,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn now(&self) -> RequestCounts {
        let at = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestCounts {
            gets: at(&self.gets),
            range_gets: at(&self.range_gets),
            heads: at(&self.heads),
            lists: at(&self.lists),
            writes: at(&self.writes),
            bytes_read: at(&self.bytes_read),
            retries: at(&self.retries),
        }
    }

    pub(super) fn count_list(&self) {
        add(&self.lists, 1);
    }
}

/// Counts the requests of one purpose, beside the store's own count of all. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct RequestMeter(Arc<Counters>);

impl RequestMeter {
    /// What was asked so far, of all stores that count with this meter.
    pub fn counts(&self) -> RequestCounts {
        self.0.now()
    }
}

/// How often and how long a read is tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryPolicy {
    /// Tries after the first one. 0 where the store retries by itself.
    pub(super) retries: u32,
    /// Pause before the first retry; four times longer before each next one.
    pub(super) first_pause: Duration,
    /// Limit of one try; None where the store limits by itself.
    pub(super) try_limit: Option<Duration>,
    /// The faults after which it is tried again.
    pub(super) passes: fn(&object_store::Error) -> bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 3,
            first_pause: Duration::from_millis(50),
            try_limit: Some(Duration::from_secs(60)),
            passes: is_transient,
        }
    }
}

/// A store whose requests are counted, and whose reads are tried again after transient faults.
pub(super) struct CountingStore {
    inner: Arc<dyn ObjectStore>,
    counters: Arc<Counters>,
    meter: Option<RequestMeter>,
    policy: RetryPolicy,
    /// The local file system: reads several ranges in one visit.
    is_local: bool,
}

impl CountingStore {
    pub(super) fn new(
        inner: Arc<dyn ObjectStore>,
        counters: Arc<Counters>,
        policy: RetryPolicy,
        is_local: bool,
    ) -> Self {
        Self { inner, counters, meter: None, policy, is_local }
    }

    /// The same store, counting with a meter besides.
    pub(super) fn metered(&self, meter: &RequestMeter) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            counters: Arc::clone(&self.counters),
            meter: Some(meter.clone()),
            policy: self.policy,
            is_local: self.is_local,
        }
    }

    fn count(&self, which: fn(&Counters) -> &AtomicU64, n: u64) {
        add(which(&self.counters), n);
        if let Some(RequestMeter(counters)) = &self.meter {
            add(which(counters), n);
        }
    }

    /// Makes a read until it succeeds, fails for good or has been tried often enough.
    async fn tried<T, F, Fut>(&self, attempt: F) -> Result<T>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let mut pause = self.policy.first_pause;
        for _ in 0..self.policy.retries {
            match self.limited(attempt()).await {
                Err(error) if (self.policy.passes)(&error) => {
                    log::debug!("retrying after a transient storage fault: {error}");
                    self.count(|c| &c.retries, 1);
                    tokio::time::sleep(pause).await;
                    pause *= 4;
                }
                outcome => return outcome,
            }
        }
        self.limited(attempt()).await
    }

    /// The first thing below a folder, if there is any.
    pub(super) async fn first_below(&self, folder: &Path) -> Result<Option<ObjectMeta>> {
        self.count(|c| &c.lists, 1);
        self.tried(|| async { self.inner.list(Some(folder)).try_next().await }).await
    }

    async fn limited<T>(&self, attempt: impl Future<Output = Result<T>>) -> Result<T> {
        match self.policy.try_limit {
            None => attempt.await,
            Some(limit) => tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| Err(timed_out(limit))),
        }
    }

    /// Counts what a read brings, as it comes.
    fn counted(&self, result: GetResult) -> GetResult {
        let GetResult { payload, meta, range, attributes } = result;
        let payload = match payload {
            GetResultPayload::Stream(stream) => {
                let (counters, meter) = (Arc::clone(&self.counters), self.meter.clone());
                let stream = stream.inspect(move |chunk| {
                    if let Ok(bytes) = chunk {
                        add(&counters.bytes_read, bytes.len() as u64);
                        if let Some(RequestMeter(counters)) = &meter {
                            add(&counters.bytes_read, bytes.len() as u64);
                        }
                    }
                });
                GetResultPayload::Stream(stream.boxed())
            }
            file => {
                self.count(|c| &c.bytes_read, range.end.saturating_sub(range.start));
                file
            }
        };
        GetResult { payload, meta, range, attributes }
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.count(|c| &c.writes, 1);
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.count(|c| &c.writes, 1);
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        match (is_head, options.range.is_some()) {
            (true, _) => self.count(|c| &c.heads, 1),
            (false, true) => self.count(|c| &c.range_gets, 1),
            (false, false) => self.count(|c| &c.gets, 1),
        }
        let result = if self.is_local && local::is_hidden_name(location) {
            self.tried(|| local::get_hidden(location, options.clone())).await?
        } else {
            self.tried(|| self.inner.get_opts(location, options.clone())).await?
        };
        Ok(if is_head { result } else { self.counted(result) })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if !self.is_local || local::is_hidden_name(location) {
            // merged here, so that each request is one of ours
            let get = |range: Range<u64>| async move {
                let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
                self.get_opts(location, options).await?.bytes().await
            };
            return coalesce_ranges(ranges, get, OBJECT_STORE_COALESCE_DEFAULT).await;
        }
        self.count(|c| &c.range_gets, 1);
        let parts = self.tried(|| self.inner.get_ranges(location, ranges)).await?;
        self.count(|c| &c.bytes_read, parts.iter().map(|part| part.len() as u64).sum());
        Ok(parts)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let counters = Arc::clone(&self.counters);
        self.inner.delete_stream(locations).inspect(move |_| add(&counters.writes, 1)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count(|c| &c.lists, 1);
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count(|c| &c.lists, 1);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.count(|c| &c.lists, 1);
        self.tried(|| self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.count(|c| &c.writes, 1);
        self.inner.copy_opts(from, to, options).await
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for CountingStore {
    // an object store's own Debug may show credentials
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountingStore({})", self.inner)
    }
}
