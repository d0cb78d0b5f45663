//! An object store's error in our words.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::time::Duration;

use object_store::Error as StoreError;

use crate::error::{Error, ErrorKind};

/// What went wrong with `file` while `doing` something to it ("reading", "listing").
pub(crate) fn storage_error(error: StoreError, doing: &str, file: impl Display) -> Error {
    let root_cause = tidy(&root_cause(&error).to_string());
    let (kind, code, hint) = if root_cause.starts_with("NoSuchBucket") {
        (ErrorKind::NotFound, "BucketNotFound", Some("check the name of the bucket, the endpoint and the region"))
    } else if is_refused(&error) {
        (ErrorKind::Invalid, "PermissionDenied", Some(KEYS))
    } else {
        classify(&error)
    };
    let message = match code {
        "FileNotFound" => "the file does not exist".to_string(),
        "PermissionDenied" => format!("no permission while {doing}: {root_cause}"),
        _ => format!("{doing} failed: {root_cause}"),
    };
    let mut ours = Error::new(kind, message).with_code(code).with_context("file", file);
    if let Some(hint) = hint {
        ours = ours.with_hint(hint);
    }
    ours.with_source(error)
}

/// A failure of the machine's own file system in our words.
pub(super) fn io_error(error: io::Error, doing: &str, file: impl Display) -> Error {
    storage_error(StoreError::Generic { store: "LocalFileSystem", source: Box::new(error) }, doing, file)
}

const KEYS: &str = "check the access key, the secret key and the policy of the bucket";

/// Whether an S3 server refused a listing for want of rights, which its client does not tell from other answers.
fn is_refused(error: &StoreError) -> bool {
    let refused = |text: &str| ["401 ", "403 "].iter().any(|status| text.contains(&format!("status code: {status}")));
    matches!(error, StoreError::Generic { .. }) && refused(&error.to_string())
}

fn classify(error: &StoreError) -> (ErrorKind, &'static str, Option<&'static str>) {
    const RIGHTS: &str = "check the rights of this user on the file and all folders above it";
    match error {
        StoreError::NotFound { .. } => (ErrorKind::NotFound, "FileNotFound", None),
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            (ErrorKind::Invalid, "PermissionDenied", Some(KEYS))
        }
        StoreError::InvalidPath { .. } => (ErrorKind::Invalid, "InvalidPath", None),
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            (ErrorKind::Unsupported, "StorageUnsupported", None)
        }
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } => {
            (ErrorKind::Conflict, "FileChanged", None)
        }
        StoreError::UnknownConfigurationKey { .. } => (ErrorKind::Invalid, "StorageOption", None),
        _ => match io_cause(error).map(io::Error::kind) {
            // a name longer than the disk takes is no file's
            Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename) => {
                (ErrorKind::NotFound, "FileNotFound", None)
            }
            Some(io::ErrorKind::PermissionDenied) => (ErrorKind::Invalid, "PermissionDenied", Some(RIGHTS)),
            Some(io::ErrorKind::IsADirectory) => {
                (ErrorKind::Corrupt, "NotAFile", Some("a folder stands where the file should be: restore the file"))
            }
            _ => (
                ErrorKind::Unavailable,
                "StorageUnavailable",
                Some("try again; if it stays, check that the store can be reached and is healthy"),
            ),
        },
    }
}

/// A try that took too long.
pub(super) fn timed_out(limit: Duration) -> StoreError {
    let message = format!("no answer within {limit:?}");
    StoreError::Generic { store: "storage", source: Box::new(io::Error::new(io::ErrorKind::TimedOut, message)) }
}

/// Whether the same request may succeed when made again.
pub(super) fn is_transient(error: &StoreError) -> bool {
    // out of file handles, in this process or on the machine
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    matches!(error, StoreError::Generic { .. })
        && io_cause(error).is_some_and(|cause| {
            matches!(cause.raw_os_error(), Some(EMFILE | ENFILE))
                || matches!(
                    cause.kind(),
                    io::ErrorKind::Interrupted
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::WouldBlock
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::NotConnected
                        | io::ErrorKind::BrokenPipe
                        | io::ErrorKind::UnexpectedEof
                        | io::ErrorKind::StaleNetworkFileHandle
                        | io::ErrorKind::ResourceBusy
                )
        })
}

/// Whether an answer that had begun broke off. Clients of object stores make requests again by themselves, and go on with
/// a file's bytes, but give up on a listing whose answer is cut.
#[cfg(feature = "s3")]
pub(super) fn is_cut_answer(error: &StoreError) -> bool {
    matches!(error, StoreError::Generic { .. }) && error.to_string().contains("response body")
}

fn io_cause(error: &StoreError) -> Option<&io::Error> {
    let mut at: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = at {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return Some(io);
        }
        at = cause.source();
    }
    None
}

/// What an S3 server says in XML, as `Code: Message`; anything else as it is, on one line.
fn tidy(text: &str) -> String {
    let between = |open: &str, close: &str| {
        let (_, rest) = text.split_once(open)?;
        rest.split_once(close).map(|(inside, _)| inside.to_string())
    };
    match (between("<Code>", "</Code>"), between("<Message>", "</Message>")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn root_cause(error: &StoreError) -> &(dyn StdError + 'static) {
    let mut at: &(dyn StdError + 'static) = error;
    while let Some(cause) = at.source() {
        at = cause;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(kind: io::ErrorKind) -> StoreError {
        StoreError::Generic { store: "test", source: Box::new(io::Error::new(kind, "because")) }
    }

    #[test]
    fn an_s3_servers_xml_is_told_in_words() {
        let xml = "Server returned 404: <?xml?>\n<Error><Code>NoSuchBucket</Code><Message>It is not there</Message>\
                   <RequestId>x</RequestId></Error>";
        assert_eq!(tidy(xml), "NoSuchBucket: It is not there");
        assert_eq!(tidy("<Error><Code>Busy</Code></Error>"), "Busy");
        assert_eq!(tidy("two\nlines"), "two lines");
    }

    #[test]
    fn faults_keep_their_meaning() {
        for (kind, code, transient) in [
            (io::ErrorKind::PermissionDenied, "PermissionDenied", false),
            (io::ErrorKind::NotADirectory, "FileNotFound", false),
            (io::ErrorKind::TimedOut, "StorageUnavailable", true),
            (io::ErrorKind::Other, "StorageUnavailable", false),
            (io::ErrorKind::IsADirectory, "NotAFile", false),
        ] {
            assert_eq!(is_transient(&generic(kind)), transient, "{kind:?}");
            let ours = storage_error(generic(kind), "reading", "/wh/t/snapshot/LATEST");
            assert_eq!(ours.code(), code);
            assert!(ours.to_string().contains("/wh/t/snapshot/LATEST"), "{ours}");
        }
    }
}
