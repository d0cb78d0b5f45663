//! The store that DataFusion wants for a scan and that nothing is asked of.
//!
//! Before DataFusion opens a file of a scan, it looks up a store in the session and hands it to the source. Ours opens
//! each file through the file's own store, with its own requests counted, so any store will do. A session may have been
//! given none for the local file system, so that statements cannot reach it; it must not get one from us.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::error;

/// The name of the store that refuses everything.
pub const UNUSED: &str = "lakepin://files-are-opened-elsewhere";

/// The name of a store that is there in a session: its local one, which plans that are executed elsewhere find there too,
/// else one that refuses everything.
///
/// # Errors
/// None: the name is a URL.
pub fn unused_store(runtime: &RuntimeEnv) -> error::Result<ObjectStoreUrl> {
    let local = ObjectStoreUrl::local_filesystem();
    if runtime.object_store(&local).is_ok() { Ok(local) } else { refusing_store(runtime) }
}

/// The store that refuses everything, made known to a session.
///
/// # Errors
/// None: the name is a URL.
pub fn refusing_store(runtime: &RuntimeEnv) -> error::Result<ObjectStoreUrl> {
    let own = ObjectStoreUrl::parse(UNUSED)?;
    if runtime.object_store(&own).is_err() {
        runtime.register_object_store(own.as_ref(), Arc::new(UnusedStore));
    }
    Ok(own)
}

/// Refuses everything.
#[derive(Debug)]
struct UnusedStore;

impl fmt::Display for UnusedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnusedStore")
    }
}

fn refused<T>(operation: &str) -> Result<T> {
    Err(Error::NotImplemented { operation: operation.to_string(), implementer: UnusedStore.to_string() })
}

#[async_trait]
impl ObjectStore for UnusedStore {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        refused("put_opts")
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        refused("put_multipart_opts")
    }

    async fn get_opts(&self, _: &Path, _: GetOptions) -> Result<GetResult> {
        refused("get_opts")
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::once(async { refused("delete_stream") }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async { refused("list") }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        refused("list_with_delimiter")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        refused("copy_opts")
    }
}
