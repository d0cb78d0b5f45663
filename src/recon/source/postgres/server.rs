//! One connection to PostgreSQL, and what may go wrong on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error as Fault, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::address::Address;
use super::super::feed::Feed;
use super::super::manners::Manners;
use super::super::tls::{TlsMode, client};
use super::super::{SourceWork, faults, secrets};
use crate::error::{Error, Result};

/// How much longer than the server's own limit an answer is waited for.
const GRACE: Duration = Duration::from_secs(30);

/// The one connection, whose transaction is what is read.
pub(super) struct Server {
    name: String,
    client: Client,
    tls: MakeRustlsConnect,
    /// One statement after the other: one that fails is rolled back before the next.
    turn: Mutex<()>,
    lost: parking_lot::Mutex<Option<String>>,
    pub(super) manners: Manners,
    /// Whether texts are compared as UTF-8.
    pub(super) is_utf8: bool,
    queries: AtomicU64,
    rows: AtomicU64,
    cursors: AtomicU64,
    /// Cursors that nobody reads any more.
    unwanted: parking_lot::Mutex<Vec<String>>,
}

impl Server {
    pub(super) async fn connect(address: &Address, name: String, manners: Manners) -> Result<Self> {
        let login = secrets::login(address);
        let note = login.unused.clone();
        let mode = address.tls.unwrap_or(TlsMode::Prefer);
        let tls = MakeRustlsConnect::new(client::config(mode, address.root_certificate.as_deref())?);
        let mut config = Config::new();
        config
            .host(&address.host)
            .port(address.port)
            .application_name("lakepin")
            .connect_timeout(manners.connect_timeout)
            .keepalives_idle(Duration::from_secs(60))
            .ssl_mode(match mode {
                TlsMode::Disable => SslMode::Disable,
                TlsMode::Prefer => SslMode::Prefer,
                _ => SslMode::Require,
            });
        if let Some(user) = &login.user {
            config.user(user);
        }
        if let Some(password) = &login.password {
            config.password(password.reveal());
        }
        if let Some(database) = &address.database {
            config.dbname(database);
        }
        let connected = tokio::time::timeout(manners.connect_timeout, config.connect(tls.clone())).await;
        let (client, connection) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(fault)) => return Err(refused(&name, fault, note.as_deref())),
            Err(_) => {
                let why = format!("no answer within {:?}", manners.connect_timeout);
                return Err(faults::unavailable(&name, why.into()));
            }
        };
        // it ends with the client, or with the server
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self {
            name,
            client,
            tls,
            turn: Mutex::new(()),
            lost: parking_lot::Mutex::new(None),
            manners,
            is_utf8: true,
            queries: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            cursors: AtomicU64::new(0),
            unwanted: parking_lot::Mutex::default(),
        })
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

    pub(super) fn count_rows(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Statements before the transaction begins, and what begins it.
    pub(super) async fn batch(&self, sql: &str) -> Result<()> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let limit = self.manners.statement_timeout + GRACE;
        match tokio::time::timeout(limit, self.client.batch_execute(sql)).await {
            Ok(done) => done.map_err(|fault| self.fault(&fault)),
            Err(_) => Err(self.lose("no answer from the server")),
        }
    }

    async fn turn(&self) -> Result<MutexGuard<'_, ()>> {
        let turn = self.turn.lock().await;
        if self.lost.lock().is_some() || self.client.is_closed() {
            return Err(self.lose("it is closed"));
        }
        Ok(turn)
    }

    /// Rows of a statement with texts as parameters, in one turn.
    pub(super) async fn rows(&self, sql: &str, params: &[Option<String>]) -> Result<Vec<Row>> {
        let _turn = self.turn().await?;
        self.close_unwanted().await?;
        let answer = tokio::time::timeout(self.manners.statement_timeout + GRACE, self.asked(sql, params)).await;
        match answer {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(fault)) => Err(self.undo(&fault).await),
            Err(_) => Err(self.lose("no answer from the server")),
        }
    }

    /// The same for a read: None when nobody wants its rows any more.
    pub(super) async fn rows_for(&self, feed: &Feed, sql: &str, params: &[Option<String>]) -> Result<Option<Vec<Row>>> {
        let _turn = self.turn().await?;
        self.close_unwanted().await?;
        let asked = self.asked(sql, params);
        tokio::pin!(asked);
        let answer = tokio::select! {
            biased;
            answer = &mut asked => answer,
            () = feed.unwanted() => {
                let token = self.client.cancel_token();
                let stop = token.cancel_query(self.tls.clone());
                let _ = tokio::time::timeout(self.manners.connect_timeout, stop).await;
                match tokio::time::timeout(GRACE, asked).await {
                    Ok(Err(fault)) => drop(self.undo(&fault).await),
                    Ok(Ok(_)) => {}
                    Err(_) => return Err(self.lose("a statement could not be stopped")),
                }
                return Ok(None);
            }
            () = tokio::time::sleep(self.manners.statement_timeout + GRACE) => {
                return Err(self.lose("no answer from the server"));
            }
        };
        match answer {
            Ok(rows) => Ok(Some(rows)),
            Err(fault) => Err(self.undo(&fault).await),
        }
    }

    async fn asked(&self, sql: &str, params: &[Option<String>]) -> std::result::Result<Vec<Row>, Fault> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let params: Vec<(&(dyn ToSql + Sync), Type)> =
            params.iter().map(|param| (param as &(dyn ToSql + Sync), Type::TEXT)).collect();
        self.client.query_typed(sql, &params).await
    }

    /// Describes what a statement gives, without running it.
    pub(super) async fn described(&self, sql: &str) -> Result<tokio_postgres::Statement> {
        let _turn = self.turn().await?;
        self.queries.fetch_add(1, Ordering::Relaxed);
        match self.client.prepare(sql).await {
            Ok(statement) => Ok(statement),
            Err(fault) => Err(self.undo(&fault).await),
        }
    }

    /// A name for a cursor.
    pub(super) fn cursor(&self) -> String {
        format!("lakepin_{}", self.cursors.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn leave(&self, cursor: String) {
        self.unwanted.lock().push(cursor);
    }

    /// Keeps what was declared: what fails later is rolled back to here.
    pub(super) async fn keep(&self) -> Result<()> {
        let _turn = self.turn().await?;
        let kept = self.client.batch_execute("RELEASE SAVEPOINT lakepin; SAVEPOINT lakepin").await;
        kept.map_err(|fault| self.fault(&fault))
    }

    async fn close_unwanted(&self) -> Result<()> {
        let cursors = std::mem::take(&mut *self.unwanted.lock());
        if cursors.is_empty() {
            return Ok(());
        }
        // one that went with a rollback is closed already
        let close: Vec<String> = cursors.iter().map(|cursor| format!("CLOSE {cursor}")).collect();
        match self.client.batch_execute(&close.join("; ")).await {
            Ok(()) => Ok(()),
            Err(fault) => match self.undo(&fault).await {
                lost if lost.code() == "SourceLost" => Err(lost),
                _ => Ok(()),
            },
        }
    }

    /// Takes back a statement that failed, so that the transaction, and its snapshot, live on.
    async fn undo(&self, fault: &Fault) -> Error {
        let error = self.fault(fault);
        if error.code() != "SourceLost"
            && let Err(fault) = self.client.batch_execute("ROLLBACK TO SAVEPOINT lakepin").await
        {
            return self.lose(&told(&fault));
        }
        error
    }

    /// The state is gone: nothing is read on another connection.
    fn lose(&self, why: &str) -> Error {
        let mut lost = self.lost.lock();
        let why = lost.get_or_insert_with(|| why.to_string());
        faults::lost(&self.name, why)
    }

    /// What a fault means. One that ends the connection, or the transaction, ends the read.
    fn fault(&self, fault: &Fault) -> Error {
        let why = told(fault);
        match fault.code().map(tokio_postgres::error::SqlState::code) {
            None => self.lose(&why),
            Some("42501") => faults::denied(&self.name, &why, None),
            Some("57014" | "55P03") => faults::timeout(&self.name, &why),
            // shut down, cut off, idle for too long, taken from a standby
            Some("57P01" | "57P02" | "57P03" | "57P05" | "25P02" | "25P03" | "25P04" | "40001" | "72000") => {
                self.lose(&why)
            }
            Some(code) if code.starts_with("08") || self.client.is_closed() => self.lose(&why),
            Some(_) => faults::statement(&self.name, &why),
        }
    }
}

/// A fault in the server's own words.
fn told(fault: &Fault) -> String {
    match fault.as_db_error() {
        Some(told) => {
            let more = told.detail().or(told.hint()).map(|more| format!(": {more}")).unwrap_or_default();
            format!("{}{more}", told.message())
        }
        None => {
            let mut text = fault.to_string();
            let mut cause = std::error::Error::source(fault);
            while let Some(inner) = cause {
                text = format!("{text}: {inner}");
                cause = inner.source();
            }
            text
        }
    }
}

/// Why there is no connection.
fn refused(name: &str, fault: Fault, note: Option<&str>) -> Error {
    let why = told(&fault);
    match fault.code().map(tokio_postgres::error::SqlState::code) {
        Some("28000" | "28P01" | "42501") => faults::denied(name, &why, note),
        Some("3D000") => faults::statement(name, &why),
        // the driver's own word for a password that it was not given
        None if why.contains("password") => faults::denied(name, &why, note),
        None => faults::unavailable(name, why.into()),
        Some(_) => faults::unavailable(name, Box::new(fault)),
    }
}
