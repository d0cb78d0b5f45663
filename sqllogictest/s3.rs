//! The read path over S3, against a real S3-compatible server that the test starts (`moto_server`, named by
//! `LAKEPIN_TEST_MOTO`): golden tables with odd partition names read from a bucket equal those read from disk.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lakepin::object_store::{ObjectStore, ObjectStoreExt, aws::AmazonS3Builder, path::Path as StorePath};

use crate::golden::{Side, compare_table};
use crate::harness::{Outcome, Test};

mod faults;
mod proxy;

const TABLES: &[&str] =
    &["part_special", "pk_lsm", "pk_dv", "history", "index_bloom_file", "manifest_orc", "types_pk_avro"];
const BUCKET: &str = "lake";

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("s3::golden_tables_read_from_a_bucket", run));
    faults::register(tests);
}

/// A running server with an empty bucket.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one; None when there is no program for it.
    async fn start() -> Result<Option<Self>, String> {
        let Some(program) = program() else { return Ok(None) };
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(|e| e.to_string())?.port();
        let child = Command::new(&program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let server = Self { child, port };
        create_bucket(port).await?;
        Ok(Some(server))
    }

    fn store(&self) -> Result<impl ObjectStore, String> {
        AmazonS3Builder::new()
            .with_endpoint(format!("http://127.0.0.1:{}", self.port))
            .with_allow_http(true)
            .with_region("us-east-1")
            .with_access_key_id("test")
            .with_secret_access_key("test")
            .with_bucket_name(BUCKET)
            .build()
            .map_err(|e| e.to_string())
    }
}

/// What a warehouse needs to reach a server on a port.
fn options(port: u16) -> BTreeMap<String, String> {
    let endpoint = format!("http://127.0.0.1:{port}");
    let pairs = [
        ("s3.endpoint", endpoint.as_str()),
        ("s3.access-key", "test"),
        ("s3.secret-key", "test"),
        ("s3.region", "us-east-1"),
        ("s3.path.style.access", "true"),
    ];
    pairs.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

const NO_SERVER: &str = "no S3 server: LAKEPIN_TEST_MOTO names none";

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    std::env::var_os("LAKEPIN_TEST_MOTO").map(PathBuf::from).filter(|p| p.is_file())
}

async fn run() -> Result<Outcome, String> {
    let Some(server) = Server::start().await? else { return Ok(Outcome::Skipped(NO_SERVER.into())) };
    let store = server.store()?;
    let root = lakepin::testing::golden::root().map_err(|e| e.to_string())?.join("java-0.9");
    let mut objects = 0;
    for table in TABLES {
        objects +=
            upload(&store, &root.join("warehouse/golden.db").join(table), &format!("wh/golden.db/{table}")).await?;
    }
    let side = Side {
        name: "java",
        warehouse: format!("s3://{BUCKET}/wh").into(),
        expected: root.join("expected"),
        folder: root.join("warehouse"),
        options: options(server.port),
    };
    // a bucket's top is a folder like any other: what is in it is named
    match lakepin::Warehouse::open(&format!("s3://{BUCKET}/nosuch"), &side.options).await {
        Err(error) if error.hint().is_some_and(|hint| hint.contains("'wh'")) => {}
        Err(error) => return Err(format!("a warehouse that is not there names no neighbour: {error:?}")),
        Ok(_) => return Err("a warehouse that is not there was opened".into()),
    }
    let mut files = 0;
    for table in TABLES {
        files += compare_table(&side, table).await.map_err(|m| format!("{table}: {m}"))?.files();
    }
    Ok(Outcome::Passed(format!("{} tables, {objects} objects, {files} expected files", TABLES.len())))
}

/// The bucket by one plain request; the server may still be starting.
async fn create_bucket(port: u16) -> Result<(), String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for _ in 0..100 {
        if let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await {
            let request = format!(
                "PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let mut answer = String::new();
            if stream.write_all(request.as_bytes()).await.is_ok()
                && stream.read_to_string(&mut answer).await.is_ok()
                && answer.starts_with("HTTP/1.1 200")
            {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err("the S3 server did not start within 20 s".into())
}

async fn upload(store: &dyn ObjectStore, dir: &Path, key: &str) -> Result<usize, String> {
    let mut count = 0;
    let mut dirs = vec![(dir.to_path_buf(), key.to_string())];
    while let Some((dir, key)) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?.flatten() {
            let key = format!("{key}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                dirs.push((entry.path(), key));
            } else {
                let bytes = std::fs::read(entry.path()).map_err(|e| e.to_string())?;
                let path = StorePath::parse(&key).map_err(|e| e.to_string())?;
                store.put(&path, bytes.into()).await.map_err(|e| e.to_string())?;
                count += 1;
            }
        }
    }
    Ok(count)
}
