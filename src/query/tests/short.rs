//! A store that gives fewer bytes of a data file than it was asked for.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use serde_json::json;

use super::{PLAIN, WITH_SOURCE, register, rows};
use crate::error::ErrorKind;
use crate::query::{LakeTable, QueryEnv};
use crate::snapshot::{Pin, PinRequest, Table, TableIdent};
use crate::storage::Storage;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

/// Leaves out the last byte of what is asked of a data file; its footer comes whole.
#[derive(Debug)]
struct Short(LocalFileSystem);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Short")
    }
}

#[async_trait]
impl ObjectStore for Short {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let found = self.0.get_opts(at, options).await?;
        let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
        if !at.as_ref().ends_with(".parquet") || range.end == meta.size {
            return Ok(found);
        }
        let bytes = found.bytes().await?;
        let bytes = bytes.slice(..bytes.len().saturating_sub(1));
        let payload = GetResultPayload::Stream(async { Ok(bytes) }.into_stream().boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn bytes_that_do_not_come_back_whole_are_damage_in_every_way_of_reading() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT"), ("s", "STRING")]);
    let mut builder = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    // longer than what is read for the footer
    let all: Vec<_> = (0..20_000).map(|id| json!({"id": id, "s": format!("{:x}", id * 2_654_435_761u64)})).collect();
    builder.commit().file(FileSpec::rows(&all)).publish().expect("publishes");
    let store = Arc::new(Short(LocalFileSystem::new_with_prefix(builder.root()).expect("opens")));
    let storage = Storage::from_object_store(store, "memory://short").expect("wraps");
    let table = Table::new(TableIdent::new("d", "t"), Arc::clone(&storage), storage.root()).expect("a table");
    let pin = Pin::resolve(&table, PinRequest::Latest, &Default::default()).await.expect("pins");
    for way in [PLAIN, WITH_SOURCE] {
        let lake = LakeTable::try_new(Arc::clone(&pin), QueryEnv::new()).expect("a table");
        let error = rows(&register(way, &lake), "SELECT s FROM t WHERE id < 100").await.expect_err("damaged");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "DataFileCorrupt"), "{way:?}: {error}");
        assert!(error.message().contains("ends too early"), "{way:?}: {error}");
        assert!(error.context().contains(&("table", "d.t".into())), "{way:?}: {error:?}");
    }
}
