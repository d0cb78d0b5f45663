use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use object_store::ObjectStoreExt;

use super::*;
use crate::storage::Storage;
use crate::testing::golden;

fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

#[test]
fn a_bucket_opens_with_the_names_of_every_tool() {
    for prefix in ["s3.", "fs.s3a."] {
        let given = options(&[
            (&format!("{prefix}endpoint"), "http://127.0.0.1:5000"),
            (&format!("{prefix}path.style.access"), "true"),
            ("storage.timeout", "500ms"),
        ]);
        let (store, policy) = open("s3", "lake", &given).unwrap();
        assert!(store.to_string().contains("lake"), "{store}");
        // the client makes requests again by itself: what it gave up is not tried again, but for cut answers
        let answer = |text: &str| object_store::Error::Generic { store: "S3", source: text.into() };
        assert!((policy.passes)(&answer("Error getting list response body: end of file")));
        assert!(!(policy.passes)(&answer("Error performing GET, after 8 retries: no answer")));
    }
}

#[test]
fn bad_options_are_named() {
    let error = open("s3", "lake", &options(&[("storage.timeout", "soon")])).unwrap_err();
    assert!(error.to_string().contains("storage.timeout"), "{error}");
    let error = open("s3", "lake", &options(&[("s3.path-style-access", "maybe")])).unwrap_err();
    assert!(error.to_string().contains("s3.path-style-access"), "{error}");
}

#[test]
fn unknown_options_are_refused_where_asked() {
    let good = ["s3.endpoint", "fs.s3a.access.key", "s3.path-style-access", "storage.retries", "aws_region"];
    check_options(&options(&good.map(|name| (name, "x")))).unwrap();
    for unknown in ["nope", "s3.endpiont", "aws_nope"] {
        let error = check_options(&options(&[("s3.region", "x"), (unknown, "1")])).unwrap_err();
        assert_eq!(error.code(), "StorageOption");
        assert!(error.to_string().contains(unknown), "{error}");
    }
}

/// A real S3-compatible server, ended with the test. `LAKEPIN_TEST_MOTO` names its program; without it these tests are
/// left out, with a word on standard error.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start() -> Option<Self> {
        let Some(program) = std::env::var_os("LAKEPIN_TEST_MOTO") else {
            assert!(std::env::var_os("CI").is_none(), "LAKEPIN_TEST_MOTO is not set, and nothing may be skipped in CI");
            // not by a macro: what those say is shown of tests that fail
            writeln!(std::io::stderr(), "LAKEPIN_TEST_MOTO is not set: the S3 server is left out").unwrap();
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port };
        for _ in 0..300 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                server.make_bucket("lake");
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the S3 server did not come up");
    }

    fn make_bucket(&self, name: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = format!(
            "PUT /{name} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.port
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn options(&self) -> BTreeMap<String, String> {
        options(&[
            ("s3.endpoint", &format!("http://127.0.0.1:{}", self.port)),
            ("s3.access-key", "key"),
            ("s3.secret-key", "secret"),
            ("s3.region", "us-east-1"),
        ])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn b036_s3_server_serves_golden_partitions_under_their_own_names() {
    let Some(server) = Server::start() else { return };
    let (s3, root) = Storage::open("s3://lake/ware house/50%", &server.options()).await.unwrap();
    let warehouse = golden::java_warehouse().unwrap();
    let (local, top) = Storage::open(warehouse.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let table = top.join("golden.db/part_special").unwrap();
    let prefix = format!("{}/", table.path());
    let files = local.list_all(&table).await.unwrap();
    for file in &files {
        let relative = file.location.path().as_ref().strip_prefix(&prefix).unwrap();
        let copy = root.join("t").unwrap().join(relative).unwrap();
        let bytes = local.read(&file.location).await.unwrap();
        s3.object_store().put(copy.path(), bytes.clone().into()).await.unwrap();
        assert_eq!(s3.read(&copy).await.unwrap(), bytes, "{copy}");
        assert_eq!(s3.head(&copy).await.unwrap().size, bytes.len() as u64);
    }
    let copied = root.join("t").unwrap();
    assert_eq!(s3.list_dirs(&copied).await.unwrap(), local.list_dirs(&table).await.unwrap());
    assert_eq!(s3.list_all(&copied).await.unwrap().len(), files.len());
    let external = format!("{copied}/p=a%2Fb");
    let (same, folder) = s3.resolve(&external).await.unwrap();
    assert!(Arc::ptr_eq(&same, &s3));
    assert!(s3.is_folder(&folder).await.unwrap());
    assert!(!s3.is_folder(&copied.join("p=a/b").unwrap()).await.unwrap());
}

#[tokio::test]
async fn s3_server_tells_what_is_missing() {
    let Some(server) = Server::start() else { return };
    let (s3, root) = Storage::open("s3://lake/wh", &server.options()).await.unwrap();
    assert_eq!(s3.read_opt(&root.join("nope").unwrap()).await.unwrap(), None);
    assert_eq!(s3.list_dirs(&root).await.unwrap(), Vec::<String>::new());
    let file = root.join("f").unwrap();
    s3.object_store().put(file.path(), "0123456789".into()).await.unwrap();
    let before = s3.counts();
    assert_eq!(s3.object_store().get_range(file.path(), 2..5).await.unwrap(), "234");
    let parts = s3.object_store().get_ranges(file.path(), &[0..1, 8..10]).await.unwrap();
    assert_eq!(parts, ["0", "89"]);
    assert_eq!((s3.counts() - before).range_gets, 2);
    let (gone, root) = Storage::open("s3://no-such-bucket/wh", &server.options()).await.unwrap();
    let error = gone.list_dirs(&root).await.unwrap_err();
    assert_eq!(error.code(), "BucketNotFound");
    assert!(error.to_string().contains("s3://no-such-bucket/wh"), "{error}");
}

#[tokio::test]
async fn dead_endpoint_fails_in_good_time_and_names_itself() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut given = options(&[("s3.endpoint", &format!("http://127.0.0.1:{port}")), ("storage.retries", "1")]);
    given.extend(options(&[("s3.access-key", "key"), ("s3.secret-key", "secret")]));
    let (s3, root) = Storage::open("s3://lake/wh", &given).await.unwrap();
    let error = s3.read(&root.join("f").unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Unavailable);
    assert!(error.to_string().contains("s3://lake/wh/f"), "{error}");
    assert!(!format!("{error:?}").contains("secret\""), "{error:?}");
}
