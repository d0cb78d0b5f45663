//! The one error type: what kind of failure, what to do about it, and where it happened.
//!
//! Context (table, snapshot, file, …) is added once, where the fact is known. The way into DataFusion and back is one
//! function each, so the kind and the code survive a query.

mod caught;
mod engine;
mod secrets;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use datafusion::error::DataFusionError;

pub(crate) use caught::caught;
pub use caught::keep_caught_panics_quiet;
pub(crate) use secrets::without_passwords;
#[cfg(feature = "cli")]
pub(crate) use secrets::without_url_passwords;

/// Result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Change the request.
    Invalid,
    /// What was named does not exist (any more).
    NotFound,
    /// Somebody committed first: read again, retry.
    Conflict,
    /// Storage did not answer: try again.
    Unavailable,
    /// The data is damaged: repair it.
    Corrupt,
    /// A feature this version does not have.
    Unsupported,
    /// A limit of memory, time or bytes was met.
    Exhausted,
    /// A fault of this crate.
    Internal,
}

impl ErrorKind {
    /// The code printed when an error carries none of its own.
    fn default_code(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::NotFound => "NotFound",
            Self::Conflict => "Conflict",
            Self::Unavailable => "Unavailable",
            Self::Corrupt => "Corrupt",
            Self::Unsupported => "Unsupported",
            Self::Exhausted => "Exhausted",
            Self::Internal => "Internal",
        }
    }
}

/// One failure: kind, stable code, message, named context, hint and source.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    code: &'static str,
    message: String,
    context: Vec<(&'static str, String)>,
    hint: Option<String>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with what went wrong, as a sentence without capital and full stop. What it is told loses its
    /// passwords, here and in context and hint: errors go to logs and into tickets.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            code: kind.default_code(),
            message: clean(message.into()),
            context: Vec::new(),
            hint: None,
            source: None,
        }))
    }

    /// Shorthand for [`ErrorKind::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Shorthand for [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Shorthand for [`ErrorKind::Corrupt`].
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Shorthand for [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Shorthand for [`ErrorKind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Shorthand for [`ErrorKind::Exhausted`].
    pub fn exhausted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Exhausted, message)
    }

    /// Shorthand for [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Gives the error a stable code of its own, in CamelCase (`SnapshotExpired`, `TableNotFound`, …).
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.0.code = code;
        self
    }

    /// Adds one named fact, for instance `("file", path)`. A name given twice keeps the first, innermost value.
    #[must_use]
    pub fn with_context(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        if !self.0.context.iter().any(|(known, _)| *known == name) {
            self.0.context.push((name, clean(value.to_string())));
        }
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(clean(hint.into()));
        self
    }

    /// Says what to do about a damaged file of a table, unless that was said already.
    #[must_use]
    pub(crate) fn or_restore(self) -> Self {
        if self.kind() != ErrorKind::Corrupt || self.hint().is_some() {
            return self;
        }
        self.with_hint("restore the file, or read a snapshot or tag that does not need it")
    }

    /// Says what to do about what a snapshot holds and nobody here can read, unless that was said already.
    #[must_use]
    pub(crate) fn or_elsewhere(self) -> Self {
        if self.kind() != ErrorKind::Unsupported || self.hint().is_some() {
            return self.or_restore();
        }
        self.with_hint("read a snapshot or tag without it, or have it written anew where the table is written")
    }

    /// Keeps the error underneath; it is not repeated in the message.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The same error once more, for another who waited for the same work. They share the error underneath.
    pub(crate) fn copied(&self) -> Self {
        let Inner { kind, code, message, context, hint, source } = self.0.as_ref();
        Self(Box::new(Inner {
            kind: *kind,
            code,
            message: message.clone(),
            context: context.clone(),
            hint: hint.clone(),
            source: source.clone(),
        }))
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable code for scripts.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// The message without context and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The named facts, innermost first.
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }

    /// The way out, when it is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Brings a DataFusion error back: our own error inside is found through any number of wrappers.
    pub fn from_datafusion(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(source) => match source.downcast::<Error>() {
                Ok(own) => *own,
                Err(source) => match source.downcast::<DataFusionError>() {
                    Ok(inner) => Self::from_datafusion(*inner),
                    Err(source) => Self::internal(source.to_string()).with_code("Execution").with_source(source),
                },
            },
            DataFusionError::Context(_, inner) => Self::from_datafusion(*inner),
            DataFusionError::Diagnostic(diagnostic, inner) => {
                let _ = diagnostic;
                Self::from_datafusion(*inner)
            }
            DataFusionError::Shared(shared) => match own_inside(shared.as_ref()) {
                Some(own) => own.with_source(shared),
                None => Self::told(&shared).with_source(shared),
            },
            DataFusionError::ArrowError(arrow, _) => Self::from_arrow(*arrow),
            // an error of ours may have travelled inside Parquet's or another library's
            other => own_inside(&other).unwrap_or_else(|| Self::told(&other)).with_source(other),
        }
    }

    /// What an error that holds none of ours tells, by its kind.
    fn told(error: &DataFusionError) -> Self {
        let (kind, code) = match error {
            DataFusionError::Context(_, inner) => return Self::told(inner),
            DataFusionError::Diagnostic(_, inner) => return Self::told(inner),
            DataFusionError::Shared(inner) => return Self::told(inner),
            DataFusionError::ArrowError(arrow, _) => (arrow_kind(arrow), "Execution"),
            DataFusionError::ResourcesExhausted(_) => (ErrorKind::Exhausted, "ResourcesExhausted"),
            DataFusionError::SQL(..) => (ErrorKind::Invalid, "Syntax"),
            DataFusionError::Plan(_) => (ErrorKind::Invalid, "Plan"),
            DataFusionError::SchemaError(schema, _) => (ErrorKind::Invalid, engine::schema_code(schema)),
            DataFusionError::NotImplemented(_) => (ErrorKind::Unsupported, "NotImplemented"),
            DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => (ErrorKind::Unavailable, "Storage"),
            DataFusionError::Execution(_) => (ErrorKind::Invalid, "Execution"),
            DataFusionError::Configuration(_) => (ErrorKind::Invalid, "BadOption"),
            _ => (ErrorKind::Internal, "Execution"),
        };
        if let Some(told) = engine::in_our_words(error) {
            return told;
        }
        let text = error.strip_backtrace().replace(ASKS_FOR_A_REPORT, "");
        let told = Self::new(kind, text).with_code(code);
        match error {
            DataFusionError::ArrowError(arrow, _) => told.with_cast_hint(arrow),
            DataFusionError::SchemaError(schema, _) => match engine::schema_hint(schema) {
                Some(hint) => told.with_hint(hint),
                None => told,
            },
            DataFusionError::Internal(_) => {
                told.with_hint("write the expression another way, with a CAST to the type that is meant for instance")
            }
            _ => told,
        }
    }

    fn from_arrow(error: arrow::error::ArrowError) -> Self {
        if let arrow::error::ArrowError::ExternalError(source) = error {
            return Self::from_datafusion(DataFusionError::External(source));
        }
        let kind = arrow_kind(&error);
        Self::new(kind, error.to_string()).with_code("Execution").with_cast_hint(&error).with_source(error)
    }

    /// What to do about a value that a type does not hold.
    fn with_cast_hint(self, error: &arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::CastError(_) => self.with_hint(
                "compare a column with values of its own type, texts in quotes; TRY_CAST gives NULL where CAST fails",
            ),
            _ => self,
        }
    }
}

/// A text of an error without passwords.
fn clean(text: String) -> String {
    match without_passwords(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(told) => told,
    }
}

/// What DataFusion puts behind its internal errors, which functions called with wrong types are too: no way out.
const ASKS_FOR_A_REPORT: &str = "\nThis issue was likely caused by a bug in DataFusion's code. Please help us to resolve this by filing a bug report \
     in our issue tracker: https://github.com/apache/datafusion/issues";

/// Whether the data and the statement are at fault, or the engine.
fn arrow_kind(error: &arrow::error::ArrowError) -> ErrorKind {
    match error {
        arrow::error::ArrowError::ParseError(_)
        | arrow::error::ArrowError::CastError(_)
        | arrow::error::ArrowError::DivideByZero
        | arrow::error::ArrowError::ArithmeticOverflow(_)
        | arrow::error::ArrowError::ComputeError(_) => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

/// Our own error somewhere inside another, rebuilt: it cannot be moved out.
fn own_inside(outer: &(dyn StdError + 'static)) -> Option<Error> {
    let mut at = Some(outer);
    while let Some(error) = at {
        let own = error.downcast_ref::<Error>().or_else(|| error.downcast_ref::<Box<Error>>().map(Box::as_ref));
        if let Some(own) = own {
            let mut copy = Error::new(own.kind(), own.message()).with_code(own.code());
            copy.0.context = own.0.context.clone();
            copy.0.hint = own.0.hint.clone();
            return Some(copy);
        }
        at = error.source();
    }
    None
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Self::from_datafusion(error)
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::from_arrow(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.context.is_empty() {
            f.write_str(" (")?;
            for (i, (name, value)) in self.0.context.iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                write!(f, "{name}: {value}")?;
            }
            f.write_str(")")?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{}] {self}", self.0.kind, self.0.code)?;
        if let Some(source) = &self.0.source {
            write!(f, "\ncaused by: {}", without_passwords(&source.to_string()))?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_error_survives_a_trip_through_datafusion() {
        let own =
            Error::not_found("snapshot 7 has expired").with_code("SnapshotExpired").with_context("table", "pay.t");
        let shared =
            DataFusionError::Shared(std::sync::Arc::new(DataFusionError::Context("scan".into(), Box::new(own.into()))));
        let back = Error::from_datafusion(shared);
        assert_eq!(back.code(), "SnapshotExpired");
        assert_eq!(back.kind(), ErrorKind::NotFound);
        assert_eq!(back.to_string(), "snapshot 7 has expired (table: pay.t)");
    }

    #[test]
    fn own_error_survives_a_trip_through_parquet() {
        let own = Error::not_found("gone").with_code("DataFileMissing");
        let parquet = parquet::errors::ParquetError::External(Box::new(own));
        assert_eq!(Error::from_datafusion(parquet.into()).code(), "DataFileMissing");
    }

    #[test]
    fn no_error_tells_a_password() {
        let url = "mysql://reader:geheim@db.host/shop";
        let cause = std::io::Error::other(format!("no answer from {url}"));
        let error = Error::invalid(format!("cannot open {url}"))
            .with_context("source", url)
            .with_hint(format!("is {url} meant, or password=geheim?"))
            .with_source(cause);
        for text in [error.to_string(), format!("{error:?}"), format!("{:?}", error.copied())] {
            assert!(!text.contains("geheim") && text.contains("reader:***@db.host"), "{text}");
        }
        let back = Error::from_datafusion(DataFusionError::Execution(format!("cannot open {url}")));
        assert!(!format!("{back:?}").contains("geheim"), "{back:?}");
    }

    #[test]
    fn innermost_context_wins() {
        let error = Error::corrupt("bad magic").with_context("file", "a").with_context("file", "b");
        assert_eq!(error.context(), &[("file", "a".to_string())]);
    }

    #[test]
    fn nobody_is_asked_to_report_a_bug_elsewhere() {
        let internal = DataFusionError::Internal("no such kernel".into());
        let inside = DataFusionError::Plan(format!("round cannot be called. {internal} Candidates: round(Int32)"));
        for (error, kind) in [(internal, ErrorKind::Internal), (inside, ErrorKind::Invalid)] {
            let shared = DataFusionError::Shared(std::sync::Arc::new(DataFusionError::Execution(error.to_string())));
            let own = Error::from_datafusion(error);
            assert_eq!(own.kind(), kind, "{own:?}");
            for text in [own.to_string(), Error::from_datafusion(shared).to_string()] {
                assert!(text.contains("no such kernel") && !text.contains("bug"), "{text}");
            }
        }
    }

    #[test]
    fn an_error_that_is_shared_keeps_its_kind() {
        let of = |error: DataFusionError| Error::from_datafusion(DataFusionError::Shared(std::sync::Arc::new(error)));
        assert_eq!(of(DataFusionError::Execution("x".into())).kind(), ErrorKind::Invalid);
        assert_eq!(of(DataFusionError::ResourcesExhausted("x".into())).kind(), ErrorKind::Exhausted);
        let divided = arrow::error::ArrowError::DivideByZero;
        assert_eq!(of(DataFusionError::ArrowError(Box::new(divided), None)).kind(), ErrorKind::Invalid);
    }
}
