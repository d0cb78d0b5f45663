use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, PutMultipartOptions, PutOptions, PutPayload,
    PutResult,
};

use super::*;

/// Partition values of every awkward kind, as folder names (`part_special` of the golden tables) and raw.
const NAMES: &[&str] = &[
    "p=%23",
    "p=100%25",
    "p=a%253Db",
    "p=a%2Fb",
    "p=a%3Ab",
    "p=a b",
    "p= lead",
    "p=trail ",
    "p=a&b",
    "p=a+b",
    "p=a|b",
    "p=<x>",
    "p=~",
    "p=dot.",
    "p=...",
    "p=中文",
    "p=😀",
    "p=#3",
    "p=x?y",
    "p=50%",
    "p=%zz",
    "p=[y]",
    "p=\\",
    "p=\"q\"",
    "p=`",
    "p={x}^*",
    "p=A",
    "p=a",
    "#1",
    "a#1",
    "%2e%2e",
];

fn options() -> BTreeMap<String, String> {
    BTreeMap::new()
}

/// A folder of this machine and an empty store in memory.
async fn both_stores() -> (tempfile::TempDir, Vec<(Arc<Storage>, Location)>) {
    let dir = tempfile::tempdir().unwrap();
    let local = Storage::open(dir.path().to_str().unwrap(), &options()).await.unwrap();
    let name = format!("memory://{}/wh", crate::storage::env::new_id());
    let memory = Storage::open(&name, &options()).await.unwrap();
    (dir, vec![local, memory])
}

#[tokio::test]
async fn awkward_names_are_stored_read_and_listed_under_themselves() {
    let (dir, stores) = both_stores().await;
    for (storage, root) in stores {
        for name in NAMES {
            let file = root.join("t").unwrap().join(name).unwrap().join(&format!("f{name}")).unwrap();
            if storage.is_local {
                // by the machine's own name, not through the object store
                let path = dir.path().join("t").join(name);
                std::fs::create_dir_all(&path).unwrap();
                std::fs::write(path.join(format!("f{name}")), name).unwrap();
            } else {
                storage.object_store().put(file.path(), name.as_bytes().into()).await.unwrap();
            }
            assert_eq!(storage.read(&file).await.unwrap(), name.as_bytes(), "{file}");
            assert_eq!(storage.head(&file).await.unwrap().size, name.len() as u64, "{file}");
            assert_eq!(
                storage.object_store().get_range(file.path(), 1..2).await.unwrap(),
                &name.as_bytes()[1..2],
                "{file}"
            );
            let listed = storage.list(&file.parent().unwrap()).await.unwrap();
            assert_eq!(listed.iter().map(|f| &f.location).collect::<Vec<_>>(), [&file]);
            assert_eq!(file.file_name(), format!("f{name}"));
        }
        let folders = storage.list_dirs(&root.join("t").unwrap()).await.unwrap();
        let wanted: BTreeSet<String> = NAMES.iter().map(|name| name.to_string()).collect();
        assert_eq!(folders.into_iter().collect::<BTreeSet<_>>(), wanted);
    }
}

#[tokio::test]
async fn b036_golden_partition_folders_read_alike_from_disk_and_memory() {
    let warehouse = crate::testing::golden::java_warehouse().unwrap();
    let (local, root) = Storage::open(warehouse.to_str().unwrap(), &options()).await.unwrap();
    let table = root.join("golden.db/part_special").unwrap();
    let memory = Storage::from_object_store(Arc::new(InMemory::new()), "memory://copy").unwrap();
    let files = local.list_all(&table).await.unwrap();
    assert!(files.len() > 25);
    for file in &files {
        let copy = memory.location(file.location.path().as_ref()).unwrap();
        let bytes = local.read(&file.location).await.unwrap();
        memory.object_store().put(copy.path(), bytes.clone().into()).await.unwrap();
        assert_eq!(memory.read(&copy).await.unwrap(), bytes);
    }
    let copied = memory.location(table.path().as_ref()).unwrap();
    let folders = local.list_dirs(&table).await.unwrap();
    assert_eq!(memory.list_dirs(&copied).await.unwrap(), folders);
    for name in ["p=a%253Db", "p=100%25", "p=a b", "p=中文", "p=a%2Fb", "p=<x>"] {
        assert!(folders.iter().any(|folder| folder == name), "{name} of {folders:?}");
    }
}

#[tokio::test]
async fn names_out_of_the_table_are_refused() {
    let (_dir, stores) = both_stores().await;
    for (_, root) in stores {
        for name in ["..", "../x", "a/../b", "a//b", "x\ny", "x\u{0}", "./a"] {
            assert_eq!(root.join(name).unwrap_err().code(), "InvalidPath", "{name:?}");
        }
    }
}

#[tokio::test]
async fn missing_file_and_folder() {
    let (_dir, stores) = both_stores().await;
    for (storage, root) in stores {
        let file = root.join("t/snapshot/snapshot-1").unwrap();
        let error = storage.read(&file).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, "FileNotFound"));
        assert!(error.to_string().contains(&file.to_string()), "{error}");
        assert_eq!(storage.read_opt(&file).await.unwrap(), None);
        assert!(!storage.exists(&file).await.unwrap());
        assert!(!storage.is_folder(&file).await.unwrap());
        assert_eq!(storage.list(&file.parent().unwrap()).await.unwrap(), []);
        assert_eq!(storage.list_dirs(&file.parent().unwrap()).await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn every_request_is_counted() {
    let (_dir, stores) = both_stores().await;
    for (storage, root) in stores {
        let file = root.join("t/f").unwrap();
        storage.object_store().put(file.path(), "0123456789".into()).await.unwrap();
        let before = storage.counts();
        storage.read(&file).await.unwrap();
        storage.object_store().get_range(file.path(), 2..5).await.unwrap();
        storage.object_store().get_ranges(file.path(), &[0..1, 8..10]).await.unwrap();
        storage.exists(&file).await.unwrap();
        storage.list(&root).await.unwrap();
        storage.list_dirs(&root).await.unwrap();
        let counts = storage.counts() - before;
        assert_eq!((counts.gets, counts.range_gets, counts.heads, counts.lists), (1, 2, 1, 2));
        // two ranges so near each other are one request: in memory the gap is read too
        assert_eq!(counts.bytes_read, 10 + 3 + if storage.is_local { 3 } else { 10 });
    }
}

#[tokio::test]
async fn external_paths_lead_home_or_to_a_kept_store() {
    let (dir, stores) = both_stores().await;
    let [(local, _), (memory, memory_root)] = stores.as_slice() else { panic!("two stores") };
    let text = format!("file:{}/p=a%3Ab/f", dir.path().display());
    let (store, location) = local.resolve(&text).await.unwrap();
    assert!(Arc::ptr_eq(&store, local));
    assert_eq!(location.to_string(), format!("{}/p=a%3Ab/f", dir.path().display()));

    let (store, location) = memory.resolve(&format!("{memory_root}/x")).await.unwrap();
    assert!(Arc::ptr_eq(&store, memory));
    assert_eq!(location, memory_root.join("x").unwrap());

    let (first, _) = memory.resolve(&text).await.unwrap();
    let (second, _) = memory.resolve("/elsewhere/f").await.unwrap();
    assert!(Arc::ptr_eq(&first, &second), "one store for all of the machine's files");
    assert!(!Arc::ptr_eq(&first, memory));
    assert_eq!(memory.other_stores().len(), 1);
    let before = (memory.counts(), memory.counts_with_others());
    let (_, there) = memory.resolve(&text).await.unwrap();
    first.exists(&there).await.unwrap();
    assert_eq!(memory.counts(), before.0);
    assert_eq!((memory.counts_with_others() - before.1).heads, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn alien_names_do_not_hide_a_folder() {
    use std::os::unix::ffi::OsStrExt;

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    std::fs::write(dir.path().join("line\nbreak"), "x").unwrap();
    std::fs::write(dir.path().join("snapshot-1"), "x").unwrap();
    std::os::unix::fs::symlink("/nowhere", dir.path().join("dangling")).unwrap();
    let (storage, root) = Storage::open(dir.path().to_str().unwrap(), &options()).await.unwrap();
    let names: Vec<String> = storage.list(&root).await.unwrap().into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["snapshot-1"]);
}

/// Fails the first `failures` reads with an error of `kind`.
#[derive(Debug)]
struct Flaky {
    inner: InMemory,
    failures: AtomicUsize,
    kind: io::ErrorKind,
}

impl fmt::Display for Flaky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flaky")
    }
}

impl Flaky {
    fn fail(&self) -> object_store::Result<()> {
        let left = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(object_store::Error::Generic {
                store: "Flaky",
                source: Box::new(io::Error::new(self.kind, "the wire was cut")),
            }),
            Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl ObjectStore for Flaky {
    async fn put_opts(&self, at: &Path, payload: PutPayload, opts: PutOptions) -> object_store::Result<PutResult> {
        self.inner.put_opts(at, payload, opts).await
    }
    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, opts).await
    }
    async fn get_opts(&self, at: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.fail()?;
        self.inner.get_opts(at, options).await
    }
    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.fail()?;
        self.inner.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

async fn flaky(failures: usize, kind: io::ErrorKind) -> (Arc<Storage>, Location) {
    let inner = InMemory::new();
    inner.put(&Path::parse("f").unwrap(), "content".into()).await.unwrap();
    let store = Flaky { inner, failures: AtomicUsize::new(failures), kind };
    let policy = RetryPolicy { first_pause: std::time::Duration::from_millis(1), ..RetryPolicy::default() };
    let storage = Storage::wrap(Arc::new(store), "memory://flaky", policy, false, options()).unwrap();
    let file = storage.location("f").unwrap();
    (storage, file)
}

#[tokio::test]
async fn transient_faults_are_ridden_out() {
    let (storage, file) = flaky(3, io::ErrorKind::ConnectionReset).await;
    assert_eq!(storage.read(&file).await.unwrap(), "content".as_bytes());
    assert_eq!((storage.counts().gets, storage.counts().retries), (1, 3));
}

#[tokio::test]
async fn lasting_faults_name_the_file_and_the_cause() {
    let (storage, file) = flaky(100, io::ErrorKind::ConnectionReset).await;
    let error = storage.read(&file).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.contains("the wire was cut") && text.contains("memory://flaky/f"), "{text}");
    assert_eq!(storage.counts().retries, 3);
}

#[tokio::test]
async fn faults_that_stay_are_not_repeated() {
    let (storage, file) = flaky(1, io::ErrorKind::PermissionDenied).await;
    let error = storage.read(&file).await.unwrap_err();
    assert_eq!((error.code(), storage.counts().retries), ("PermissionDenied", 0));
    assert_eq!(storage.read(&file).await.unwrap(), "content".as_bytes());
}

#[test]
fn debug_shows_no_keys() {
    let secret = BTreeMap::from([("s3.secret-key".to_string(), "hunter2".to_string())]);
    let opened = futures::executor::block_on(Storage::open("/wh", &secret)).unwrap();
    assert!(!format!("{:?}", opened.0).contains("hunter2"));
}
