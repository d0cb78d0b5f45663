//! A server in front of the S3 server that breaks what passes through: errors, delays, cut answers, no answer at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to a request.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// It passes.
    Pass,
    /// An error in S3's words: status and code.
    Error(u16, &'static str),
    /// It waits before it passes.
    Delay(Duration),
    /// Half of the answer comes, then the connection ends.
    CutAnswer,
    /// The connection ends at once.
    HangUp,
}

struct State {
    target: u16,
    /// The rule, and for how many requests of each path it holds.
    rule: Mutex<(Rule, usize)>,
    seen: Mutex<HashMap<String, usize>>,
    requests: AtomicUsize,
}

/// A running proxy; it ends with its runtime.
pub struct Proxy {
    pub port: u16,
    state: Arc<State>,
}

impl Proxy {
    pub async fn start(target: u16) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let state = Arc::new(State {
            target,
            rule: Mutex::new((Rule::Pass, 0)),
            seen: Mutex::new(HashMap::new()),
            requests: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    let _ = serve(client, &state).await;
                });
            }
        });
        Ok(Self { port, state })
    }

    /// From now on: the first `times` requests of every path meet `rule`.
    pub fn set(&self, rule: Rule, times: usize) {
        self.state.seen.lock().clear();
        *self.state.rule.lock() = (rule, times);
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }
}

/// One request a connection.
async fn serve(mut client: TcpStream, state: &State) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let read = client.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&chunk[..read]);
    }
    state.requests.fetch_add(1, Ordering::SeqCst);
    let text = String::from_utf8_lossy(&head).into_owned();
    let line = text.lines().next().unwrap_or_default().to_string();
    let (rule, times) = *state.rule.lock();
    let nth = {
        let mut seen = state.seen.lock();
        let nth = seen.entry(line.clone()).or_default();
        *nth += 1;
        *nth
    };
    let rule = if nth <= times { rule } else { Rule::Pass };
    match rule {
        Rule::HangUp => return Ok(()),
        Rule::Error(status, code) => {
            let body = format!("<Error><Code>{code}</Code><Message>{code} it is</Message></Error>");
            let answer = format!(
                "HTTP/1.1 {status} No\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            client.write_all(answer.as_bytes()).await?;
            if !line.starts_with("HEAD") {
                client.write_all(body.as_bytes()).await?;
            }
            return Ok(());
        }
        Rule::Delay(time) => tokio::time::sleep(time).await,
        Rule::Pass | Rule::CutAnswer => {}
    }
    let mut server = TcpStream::connect(("127.0.0.1", state.target)).await?;
    let rest = text.split_once("\r\n").map_or("", |(_, rest)| rest);
    let rest: Vec<&str> = rest.split("\r\n").filter(|h| !h.to_ascii_lowercase().starts_with("connection:")).collect();
    server.write_all(format!("{line}\r\nConnection: close\r\n{}", rest.join("\r\n")).as_bytes()).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    if matches!(rule, Rule::CutAnswer) {
        let body = answer.windows(4).position(|w| w == b"\r\n\r\n").map_or(0, |at| at + 4);
        // some of the body, if there is one
        answer.truncate(body + (answer.len() - body) / 2);
    }
    client.write_all(&answer).await
}
