//! One connection to MySQL or MariaDB, and what may go wrong on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as Fault, Opts, OptsBuilder, Params, Row, SslOpts, Value, from_value_opt};
use tokio::sync::{Mutex, MutexGuard, watch};

use super::super::address::Address;
use super::super::feed::{Feed, Wanted};
use super::super::manners::Manners;
use super::super::tls::{self, TlsMode};
use super::super::{SourceWork, faults, secrets};
use crate::error::{Error, Result};

/// How much longer than the server's own limit an answer is waited for.
const GRACE: Duration = Duration::from_secs(30);

/// The one connection, whose transaction is what is read.
pub(super) struct Server {
    name: String,
    // never printed: it holds the password
    opts: Opts,
    connection: u32,
    conn: Mutex<Option<Conn>>,
    /// The result that is being streamed, which nothing else can pass while somebody wants it.
    streaming: watch::Sender<Option<Wanted>>,
    lost: parking_lot::Mutex<Option<String>>,
    pub(super) manners: Manners,
    pub(super) is_mariadb: bool,
    queries: AtomicU64,
    rows: AtomicU64,
}

/// The connection, while nobody else uses it.
pub(super) type Held<'a> = MutexGuard<'a, Option<Conn>>;

impl Server {
    /// Connects and says what kind of server it is.
    pub(super) async fn connect(address: &Address, name: String, manners: Manners) -> Result<(Self, String)> {
        let login = secrets::login(address);
        let note = login.unused.clone();
        let base = OptsBuilder::default()
            .ip_or_hostname(address.host.clone())
            .tcp_port(address.port)
            .user(login.user)
            .pass(login.password.map(|password| password.reveal().to_string()))
            .db_name(address.database.clone())
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(60)))
            .max_allowed_packet(Some(1 << 30))
            .wait_timeout(Some(28_800))
            .stmt_cache_size(16);
        let mode = address.tls.unwrap_or(TlsMode::Prefer);
        let mut opts: Opts = match mode {
            TlsMode::Disable => base.clone().into(),
            _ => base.clone().ssl_opts(ssl_opts(mode, address)?).into(),
        };
        let unavailable = |cause: String| faults::unavailable(&name, cause.into());
        let mut connected = tokio::time::timeout(manners.connect_timeout, Conn::new(opts.clone())).await;
        if let (TlsMode::Prefer, Ok(Err(Fault::Driver(DriverError::NoClientSslFlagFromServer)))) = (mode, &connected) {
            opts = base.into();
            connected = tokio::time::timeout(manners.connect_timeout, Conn::new(opts.clone())).await;
        }
        let mut conn = match connected {
            Ok(Ok(conn)) => conn,
            Ok(Err(Fault::Server(fault))) if is_denial(fault.code) => {
                return Err(faults::denied(&name, &fault.message, note.as_deref()));
            }
            Ok(Err(Fault::Server(fault))) if fault.code == 1049 => {
                return Err(faults::statement(&name, &fault.message));
            }
            Ok(Err(fault)) => return Err(faults::unavailable(&name, Box::new(fault))),
            Err(_) => return Err(unavailable(format!("no answer within {:?}", manners.connect_timeout))),
        };
        let version: Option<String> =
            conn.query_first("SELECT VERSION()").await.map_err(|fault| faults::unavailable(&name, Box::new(fault)))?;
        let version = version.unwrap_or_default();
        let server = Self {
            name,
            opts,
            connection: conn.id(),
            conn: Mutex::new(Some(conn)),
            streaming: watch::Sender::new(None),
            lost: parking_lot::Mutex::new(None),
            manners,
            is_mariadb: version.contains("MariaDB"),
            queries: AtomicU64::new(1),
            rows: AtomicU64::new(0),
        };
        Ok((server, version))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn rename(&mut self, name: String) {
        self.name = name;
    }

    pub(super) fn work(&self) -> SourceWork {
        SourceWork { queries: self.queries.load(Ordering::Relaxed), rows: self.rows.load(Ordering::Relaxed) }
    }

    pub(super) fn count_row(&self) {
        self.rows.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_query(&self) {
        self.queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for the connection; where a stream holds it, nobody waits: the stream may be polled by whoever asks. One that
    /// nobody polls any more gives it back.
    pub(super) async fn hold(&self) -> Result<Held<'_>> {
        let mut streaming = self.streaming.subscribe();
        let held = tokio::select! {
            biased;
            _ = streaming.wait_for(|streaming| streaming.as_ref().is_some_and(Wanted::is_so)) => return Err(faults::busy(&self.name)),
            held = self.conn.lock() => held,
        };
        if held.is_none() {
            return Err(self.gone());
        }
        Ok(held)
    }

    /// Takes the connection for a stream.
    pub(super) async fn hold_for_stream(&self, feed: &Feed) -> Result<(Held<'_>, Streaming<'_>)> {
        let held = self.hold().await?;
        self.streaming.send_replace(Some(feed.wanted()));
        Ok((held, Streaming(self)))
    }

    pub(super) fn gone(&self) -> Error {
        let why = self.lost.lock().clone();
        faults::lost(&self.name, why.as_deref().unwrap_or("it is closed"))
    }

    /// The state is gone: nothing is read on another connection.
    pub(super) fn lose(&self, held: &mut Held<'_>, why: &str) -> Error {
        drop(held.take());
        self.lost.lock().get_or_insert_with(|| why.to_string());
        self.gone()
    }

    /// What a fault means. One that ends the connection ends the read.
    pub(super) fn fault(&self, held: &mut Held<'_>, fault: &Fault) -> Error {
        let Fault::Server(told) = fault else { return self.lose(held, &fault.to_string()) };
        match told.code {
            code if is_denial(code) => faults::denied(&self.name, &told.message, None),
            // out of time, waited for a lock, killed alone
            3024 | 1969 | 1205 | 1317 | 3572 => faults::timeout(&self.name, &told.message),
            // changed under us, killed, shut down, cut off
            1412 | 1927 | 1053 | 1079 | 1152..=1161 | 1184 | 2006 | 2013 | 3169 | 4031 => {
                self.lose(held, &told.message)
            }
            _ => faults::statement(&self.name, &told.message),
        }
    }

    /// Rows of a short statement.
    pub(super) async fn rows<P: Into<Params> + Send>(&self, sql: &str, params: P) -> Result<Vec<Row>> {
        let mut held = self.hold().await?;
        self.count_query();
        let limit = self.manners.statement_timeout + GRACE;
        let params = params.into();
        let asked = async {
            let conn = held.as_mut().ok_or_else(|| self.gone())?;
            // statements without parameters need not be prepared, and some cannot be
            let answer = match params {
                Params::Empty => conn.query(sql).await,
                params => conn.exec(sql, params).await,
            };
            Ok::<_, Error>(answer)
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer?.map_err(|fault| self.fault(&mut held, &fault)),
            Err(_) => Err(self.lose(&mut held, "no answer from the server")),
        }
    }

    /// Awaits the server, unless nobody wants the answer any more: then the server is told to stop, and None is given
    /// once it has.
    pub(super) async fn unless_unwanted<T>(
        &self,
        feed: &Feed,
        asked: impl Future<Output = T>,
    ) -> std::result::Result<Option<T>, &'static str> {
        let limit = self.manners.statement_timeout + GRACE;
        tokio::pin!(asked);
        tokio::select! {
            biased;
            answer = &mut asked => Ok(Some(answer)),
            () = feed.unwanted() => {
                self.stop_statement().await;
                match tokio::time::timeout(GRACE, asked).await {
                    Ok(_) => Ok(None),
                    Err(_) => Err("a statement could not be stopped"),
                }
            }
            () = tokio::time::sleep(limit) => Err("no answer from the server"),
        }
    }

    /// After a statement was stopped: an order to stop that came too late meets this, not the next statement.
    pub(super) async fn settle(&self, held: &mut Held<'_>, then: Option<&str>) {
        let settled = async {
            for sql in ["DO 0", "DO 0"].into_iter().chain(then) {
                if let Some(conn) = held.as_mut()
                    && let Err(fault) = conn.query_drop(sql).await
                {
                    drop(self.fault(held, &fault));
                }
            }
        };
        if tokio::time::timeout(GRACE, settled).await.is_err() {
            drop(self.lose(held, "a statement could not be stopped"));
        }
    }

    /// Has the server stop what the connection is doing, by another connection. The transaction stays.
    pub(super) async fn stop_statement(&self) {
        let stop = async {
            if let Ok(mut other) = Conn::new(self.opts.clone()).await {
                let _ = other.query_drop(format!("KILL QUERY {}", self.connection)).await;
                let _ = other.disconnect().await;
            }
        };
        let _ = tokio::time::timeout(self.manners.connect_timeout, stop).await;
    }
}

/// While it lives, the connection streams.
pub(super) struct Streaming<'a>(&'a Server);

impl Drop for Streaming<'_> {
    fn drop(&mut self) {
        self.0.streaming.send_replace(None);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let conn = self.conn.get_mut().take();
        if let (Some(conn), Ok(runtime)) = (conn, tokio::runtime::Handle::try_current()) {
            runtime.spawn(conn.disconnect());
        }
    }
}

/// Not known, not allowed, locked out, password expired.
fn is_denial(code: u16) -> bool {
    matches!(
        code,
        1044 | 1045 | 1130 | 1131 | 1142 | 1143 | 1227 | 1251 | 1370 | 1410 | 1698 | 1820 | 1862 | 3118 | 3159
    )
}

fn ssl_opts(mode: TlsMode, address: &Address) -> Result<SslOpts> {
    tls::provide();
    let ssl = SslOpts::default();
    Ok(match mode {
        TlsMode::VerifyCa | TlsMode::VerifyFull => {
            let trusted = tls::trusted(address.root_certificate.as_deref())?;
            let trusted = trusted.into_iter().map(|one| one.as_ref().to_vec().into());
            ssl.with_root_certs(trusted.collect())
                .with_disable_built_in_roots(true)
                .with_danger_skip_domain_validation(mode == TlsMode::VerifyCa)
        }
        _ => ssl.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true),
    })
}

/// A value of a row, by the column's name in any case, as text.
pub(super) fn text(row: &Row, name: &str) -> Option<String> {
    let at = row.columns_ref().iter().position(|column| column.name_str().eq_ignore_ascii_case(name))?;
    match row.as_ref(at)? {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(value) => Some(value.to_string()),
        Value::UInt(value) => Some(value.to_string()),
        Value::Double(value) => Some(value.to_string()),
        Value::Float(value) => Some(value.to_string()),
        _ => None,
    }
}

/// A value of a row as a number.
pub(super) fn whole(row: &Row, name: &str) -> Option<u64> {
    text(row, name)?.parse().ok()
}

/// The first value of the first row, as text.
pub(super) fn first(rows: &[Row]) -> Option<String> {
    from_value_opt::<Option<String>>(rows.first()?.as_ref(0)?.clone()).ok().flatten()
}
