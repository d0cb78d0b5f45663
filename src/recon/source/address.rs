//! Where a source is: `mysql://user:password@host:port/database?table=name`, `postgres://…`.

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::manners::Manners;
use super::secrets::Secret;
use super::tls::TlsMode;
use crate::error::{Error, Result};
use crate::snapshot::nearest::known_names;

/// Which database is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// MySQL or MariaDB.
    MySql,
    /// PostgreSQL.
    Postgres,
}

impl Database {
    fn port(self) -> u16 {
        match self {
            Self::MySql => 3306,
            Self::Postgres => 5432,
        }
    }

    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::Postgres => "postgres",
        }
    }
}

/// A source's address. It can be printed: its password is not.
#[derive(Clone)]
pub struct Address {
    /// Which database is spoken to.
    pub database_kind: Database,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: Option<String>,
    pub(super) table: Option<String>,
    pub(super) tls: Option<TlsMode>,
    pub(super) root_certificate: Option<PathBuf>,
    limits: Limits,
}

/// Manners that the address itself asks for.
#[derive(Debug, Clone, Default)]
struct Limits {
    chunk_rows: Option<usize>,
    pause: Option<Duration>,
    rows_per_second: Option<NonZeroU64>,
    statement_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
}

const OPTIONS: &[&str] = &[
    "table",
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-ca",
    "chunk_rows",
    "pause",
    "rows_per_second",
    "statement_timeout",
    "lock_timeout",
    "connect_timeout",
];

fn bad(message: impl Into<String>) -> Error {
    Error::invalid(message).with_code("SourceAddress")
}

const FORMS: &str = "write mysql://USER@HOST:PORT/DATABASE or postgres://USER@HOST:PORT/DATABASE";

impl Address {
    /// Reads an address. Errors never show its password.
    ///
    /// # Errors
    /// Where it is none, or asks for an option that is not known.
    pub fn parse(text: &str) -> Result<Self> {
        let url = Url::parse(text.trim()).map_err(|e| bad(format!("this is no address: {e}")).with_hint(FORMS))?;
        let database_kind = match url.scheme() {
            "mysql" | "mariadb" => Database::MySql,
            "postgres" | "postgresql" => Database::Postgres,
            other => return Err(bad(format!("{other}:// is no source that can be read")).with_hint(FORMS)),
        };
        let behind = [Some(url.path()), url.query(), url.fragment()];
        if behind.into_iter().flatten().any(|part| part.contains('@')) {
            return Err(bad(
                "the address has an @ behind its host, so that host and password may be others than meant",
            )
            .with_hint(
                "in a password write % codes: %2F for a slash, %3F for ?, %23 for #, %40 for @; in a name %40 for @",
            ));
        }
        let decoded = |text: &str| percent_decoded(text).ok_or_else(|| bad("the address is not UTF-8 behind its %"));
        let host = url.host_str().filter(|host| !host.is_empty()).unwrap_or("127.0.0.1");
        let host = decoded(host.trim_start_matches('[').trim_end_matches(']'))?;
        if host.starts_with('/') {
            return Err(bad("sockets are not spoken to").with_hint("name a host and a port"));
        }
        let user = (!url.username().is_empty()).then(|| decoded(url.username())).transpose()?;
        let password = url.password().map(decoded).transpose()?.map(Secret::from);
        let path = decoded(url.path().trim_matches('/'))?;
        let (database, table) = match path.split_once('/') {
            Some((database, table)) => (database.to_string(), Some(table.to_string())),
            None => (path, None),
        };
        let mut address = Self {
            database_kind,
            user,
            password,
            host,
            port: url.port().unwrap_or_else(|| database_kind.port()),
            database: Some(database).filter(|name| !name.is_empty()),
            table,
            tls: None,
            root_certificate: None,
            limits: Limits::default(),
        };
        for (name, value) in url.query_pairs() {
            address.set(&name, &value)?;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let number = |value: &str| {
            value.parse::<u64>().ok().and_then(NonZeroU64::new).ok_or_else(|| {
                bad(format!("{name}={value} is no number of rows")).with_hint("write a number from 1 on")
            })
        };
        match name {
            "table" => self.table = Some(value.to_string()),
            "sslmode" | "ssl-mode" | "ssl_mode" => self.tls = Some(TlsMode::parse(value)?),
            "sslrootcert" | "ssl-ca" | "ssl_ca" => self.root_certificate = Some(value.into()),
            "chunk_rows" => self.limits.chunk_rows = Some(usize::try_from(number(value)?.get()).unwrap_or(usize::MAX)),
            "rows_per_second" => self.limits.rows_per_second = Some(number(value)?),
            "pause" => self.limits.pause = Some(span(name, value)?),
            "statement_timeout" => self.limits.statement_timeout = Some(span(name, value)?),
            "lock_timeout" => self.limits.lock_timeout = Some(span(name, value)?),
            "connect_timeout" => self.limits.connect_timeout = Some(span(name, value)?),
            "sslcert" | "sslkey" | "ssl-cert" | "ssl-key" => {
                return Err(Error::unsupported(format!("{name}: clients show no certificate of their own"))
                    .with_code("SourceAddress")
                    .with_hint("use a user with a password"));
            }
            "password" | "pwd" | "passwd" | "user" => {
                return Err(bad(format!("{name} is no option of an address")).with_hint(
                    "write USER:PASSWORD before the host, or keep the password in the environment or in a file",
                ));
            }
            _ => {
                return Err(bad(format!("the address has an unknown option '{name}'")).with_hint(known_names(
                    "options",
                    name,
                    OPTIONS.iter().copied(),
                )));
            }
        }
        Ok(())
    }

    /// The manners asked for, else those given.
    pub(super) fn manners(&self, given: &Manners) -> Manners {
        let asked = &self.limits;
        Manners {
            chunk_rows: asked.chunk_rows.unwrap_or(given.chunk_rows),
            pause: asked.pause.unwrap_or(given.pause),
            rows_per_second: asked.rows_per_second.or(given.rows_per_second),
            statement_timeout: asked.statement_timeout.unwrap_or(given.statement_timeout),
            lock_timeout: asked.lock_timeout.unwrap_or(given.lock_timeout),
            connect_timeout: asked.connect_timeout.unwrap_or(given.connect_timeout),
        }
    }

    /// The same server's other database.
    #[cfg(feature = "mysql")]
    pub(super) fn in_database(&self, database: &str) -> Self {
        Self { database: Some(database.to_string()), ..self.clone() }
    }

    /// Server and database, without user and password: `mysql://db.host/shop`.
    pub fn name(&self) -> String {
        let scheme = self.database_kind.scheme();
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = if self.port == self.database_kind.port() { String::new() } else { format!(":{}", self.port) };
        let database = self.database.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{scheme}://{host}{port}{database}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// `50ms`, `30s`, `5m`; a number alone is seconds. Not zero, but for a pause.
fn span(name: &str, value: &str) -> Result<Duration> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let millis = match value.get(digits.len()..) {
        Some("ms") => Some(1),
        Some("s" | "") => Some(1_000),
        Some("m" | "min") => Some(60_000),
        _ => None,
    };
    let span = digits.parse::<u64>().ok().zip(millis).and_then(|(number, millis)| number.checked_mul(millis));
    // what the servers take as a limit
    span.filter(|millis| (*millis > 0 || name == "pause") && *millis <= i32::MAX as u64)
        .map(Duration::from_millis)
        .ok_or_else(|| bad(format!("{name}={value} is no span of time")).with_hint("write 500ms, 30s or 5m"))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after
            .get(..2)
            .filter(|_| byte == b'%')
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_where_and_what() {
        let cases = [
            ("mysql://u:p%40w@db.host/shop", "mysql://db.host/shop", None),
            ("mariadb://u@db:3307/shop?table=pay", "mysql://db:3307/shop", Some("pay")),
            ("mysql://db/shop/pay", "mysql://db/shop", Some("pay")),
            ("postgresql://u:p@[::1]/shop?sslmode=require", "postgres://[::1]/shop", None),
            ("postgres://u@db:5432", "postgres://db", None),
            ("mysql://u:p@db/a%40b?table=c%40d", "mysql://db/a@b", Some("c@d")),
        ];
        for (text, name, table) in cases {
            let address = Address::parse(text).expect(text);
            assert_eq!((address.name().as_str(), address.table.as_deref()), (name, table), "{text}");
        }
        let address = Address::parse("mysql://u:p%40w@db/s?chunk_rows=7&pause=50ms&statement_timeout=2m").expect("url");
        assert_eq!(address.password.as_ref().map(Secret::reveal), Some("p@w"));
        let manners = address.manners(&Manners::default());
        assert_eq!((manners.chunk_rows, manners.pause.as_millis()), (7, 50));
        assert_eq!((manners.statement_timeout.as_secs(), manners.lock_timeout.as_secs()), (120, 5));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        let cases = [
            ("mysql//u:geheim@h/d", "no address"),
            ("oracle://u:geheim@h/d", "oracle://"),
            ("mysql://u:geheim@h:99999/d", "no address"),
            ("mysql://u:geheim@h/d?tabel=t", "did you mean 'table'"),
            ("mysql://u:geheim@h/d?sslmode=maybe", "verify-full"),
            ("mysql://u:geheim@h/d?sslcert=x", "no certificate"),
            ("mysql://h/d?password=geheim", "no option"),
            ("mysql://u:geheim@h/d?pause=soon", "30s"),
            ("mysql://u:geheim@h/d?statement_timeout=0", "30s"),
            ("postgres://u:geheim@h/d?chunk_rows=0", "from 1 on"),
            ("postgres://u:geheim@%2Ftmp/d", "host and a port"),
            // what a slash, a question mark and a hash cut off is the password
            ("mysql://root:2024/geheim@db/shop", "%2F"),
            ("mysql://root:2024?geheim@db/shop", "%2F"),
            ("postgres://root:2024#geheim@db/shop", "%2F"),
            ("mysql://reader/geheim@db/shop", "%2F"),
        ];
        for (text, told) in cases {
            let error = Address::parse(text).expect_err(text);
            let all = format!("{error:?} {error}");
            assert!(all.contains(told) && !all.contains("geheim"), "{text}: {all}");
        }
        let address = Address::parse("postgres://u:geheim@h/d").expect("url");
        assert!(!format!("{address:?}").contains("geheim"));
    }
}
