//! A store that lists files it can no longer give, or that loses files while they are read.

use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use lakepin::object_store::path::Path;
use lakepin::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Wraps a store; files whose path holds one of the lost words are listed, yet not there.
#[derive(Debug)]
pub struct Vanishing<S> {
    inner: S,
    /// Words, and how many requests for such files are still answered.
    lost: Mutex<Vec<(String, usize)>>,
}

impl<S> Vanishing<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, lost: Mutex::default() }
    }

    pub fn lose(&self, word: &str) {
        self.lose_after(word, 0);
    }

    /// Loses such files once so many requests for them were answered.
    pub fn lose_after(&self, word: &str, answered: usize) {
        self.lost.lock().expect("not poisoned").push((word.to_string(), answered));
    }

    fn check(&self, path: &Path) -> Result<()> {
        for (_, left) in self.lost.lock().expect("not poisoned").iter_mut().filter(|l| path.as_ref().contains(&l.0)) {
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None => return Err(Error::NotFound { path: path.to_string(), source: "vanished".into() }),
            }
        }
        Ok(())
    }
}

impl<S: fmt::Display> fmt::Display for Vanishing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vanishing({})", self.inner)
    }
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for Vanishing<S> {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.check(at)?;
        self.inner.get_opts(at, options).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(at)?;
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
