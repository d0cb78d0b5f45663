//! What goes wrong with a source, each with its code and the way out.

use std::error::Error as StdError;

use crate::error::{Error, ErrorKind};

type Cause = Box<dyn StdError + Send + Sync>;

fn told(kind: ErrorKind, code: &'static str, source: &str, message: String) -> Error {
    Error::new(kind, message).with_code(code).with_context("source", source)
}

/// The server did not answer, or not as a database does.
pub(super) fn unavailable(source: &str, cause: Cause) -> Error {
    told(ErrorKind::Unavailable, "SourceUnavailable", source, format!("the source cannot be reached: {cause}"))
        .with_hint("check host and port, and that the server answers this machine")
        .with_source(cause)
}

/// The connection ended: the state that was read is gone with it.
pub(super) fn lost(source: &str, why: &str) -> Error {
    told(
        ErrorKind::Unavailable,
        "SourceLost",
        source,
        format!("the connection to the source was lost, and with it the state that was read: {why}"),
    )
    .with_hint("start again: the source is then read at another state, so nothing of this read counts")
}

/// Somebody may not log in or read.
pub(super) fn denied(source: &str, why: &str, note: Option<&str>) -> Error {
    let note = note.map(|note| format!("; {note}")).unwrap_or_default();
    told(ErrorKind::Invalid, "SourceDenied", source, format!("the source refuses: {why}{note}"))
        .with_hint("check user and password; reading needs the right to SELECT, nothing more")
}

/// A statement that took longer than allowed, or waited for a lock.
pub(super) fn timeout(source: &str, why: &str) -> Error {
    told(ErrorKind::Exhausted, "SourceTimeout", source, format!("a statement took too long: {why}")).with_hint(
        "allow more with statement_timeout= or lock_timeout=, read fewer rows at once with chunk_rows=, or by an \
         indexed key",
    )
}

/// A statement that the database does not take.
pub(super) fn statement(source: &str, why: &str) -> Error {
    told(ErrorKind::Invalid, "SourceStatement", source, format!("the source does not take the statement: {why}"))
        .with_hint("queries and conditions are in the source's own SQL")
}

/// A column that is not there.
pub(super) fn no_column(source: &str, name: &str, known: &[super::SourceColumn]) -> Error {
    let hint = crate::snapshot::nearest::known_names("columns", name, known.iter().map(|column| column.name.as_str()));
    told(ErrorKind::NotFound, "SourceColumnNotFound", source, format!("the source has no column '{name}'"))
        .with_hint(hint)
}

/// A table that is not there, or not for this user.
pub(super) fn no_table(source: &str, name: &str, known: &[String]) -> Error {
    let hint = crate::snapshot::nearest::known_names("tables", name, known.iter().map(String::as_str));
    let message = format!("the source has no table '{name}', or none that this user may see");
    told(ErrorKind::NotFound, "SourceTableNotFound", source, message).with_hint(hint)
}

/// Keys that do not come byte by byte.
pub(super) fn key_order(source: &str, columns: &[String]) -> Error {
    let message = format!("the source gives {} in another order than byte by byte", columns.join(", "));
    told(ErrorKind::Unsupported, "SourceKeyOrder", source, message).with_hint(
        "its collation pads or weighs characters: write a query behind the address, FROM 'SELECT * FROM pay'; its rows \
             are sorted here",
    )
}

/// Another read holds the only connection.
#[cfg(feature = "mysql")]
pub(super) fn busy(source: &str) -> Error {
    told(ErrorKind::Conflict, "SourceBusy", source, "the source is being read in one go by another read".into())
        .with_hint("end that read first; a table with a primary key is read in chunks and shares the connection")
}
