//! From a path or URL and its options to a store.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path as MachinePath, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use parking_lot::Mutex;

use super::counting::RetryPolicy;
use crate::error::{Error, Result};

/// A path or URL taken apart. Nothing is percent-decoded: the format's own writers take paths literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// An absolute path of this machine.
    Local { path: String },
    /// A bucket of an S3-compatible store.
    Bucket { scheme: &'static str, bucket: String, path: String },
    /// A named store in this process's memory.
    Memory { name: String, path: String },
}

/// Schemes of buckets reached through the S3 API, with the spelling they are shown in.
const BUCKET_SCHEMES: &[(&str, &str)] =
    &[("s3", "s3"), ("s3a", "s3"), ("s3n", "s3"), ("oss", "oss"), ("cos", "cos"), ("cosn", "cos"), ("obs", "obs")];

/// Refuses options that no store has.
///
/// # Errors
/// An option that is not known; the known ones are named.
pub fn check_options(options: &BTreeMap<String, String>) -> Result<()> {
    #[cfg(feature = "s3")]
    super::s3::check_options(options)?;
    #[cfg(not(feature = "s3"))]
    let _ = options;
    Ok(())
}

impl Address {
    /// Takes a path or URL apart; a relative path is seen from the current folder.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let invalid = |what: &str| {
            Error::invalid(format!("'{text}' {what}"))
                .with_code("InvalidPath")
                .with_hint("give a path, file:///path, s3://bucket/path or memory://name")
        };
        if text.is_empty() {
            return Err(invalid("is not a path or URL"));
        }
        // also `file:/path`, as Java writes it
        if let Some(rest) = strip_scheme(text, "file") {
            let path = match rest.strip_prefix("//") {
                None => rest,
                Some(rest) if rest.starts_with('/') => rest,
                Some(rest) => match rest.strip_prefix("localhost/") {
                    Some(_) => rest.get("localhost".len()..).unwrap_or_default(),
                    None => return Err(invalid("names another host's files")),
                },
            };
            return Ok(Self::Local { path: absolute(path)? });
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Local { path: absolute(text)? });
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "memory" {
            return Ok(Self::Memory { name: authority.to_string(), path: path.to_string() });
        }
        let Some((_, shown)) = BUCKET_SCHEMES.iter().find(|(known, _)| *known == scheme) else {
            return Err(Error::unsupported(format!("'{text}': no store for scheme '{scheme}'"))
                .with_code("UnknownScheme")
                .with_hint("give a path, file:///path, s3://bucket/path (also s3a, oss, cos, obs) or memory://name"));
        };
        if authority.is_empty() {
            return Err(invalid("names no bucket"));
        }
        Ok(Self::Bucket { scheme: shown, bucket: authority.to_string(), path: path.to_string() })
    }

    /// What stands before the path of every location of the store.
    pub(super) fn root(&self) -> String {
        match self {
            Self::Local { .. } => String::new(),
            Self::Bucket { scheme, bucket, .. } => format!("{scheme}://{bucket}"),
            Self::Memory { name, .. } => format!("memory://{name}"),
        }
    }

    /// The path in the store.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Local { path } | Self::Bucket { path, .. } | Self::Memory { path, .. } => path,
        }
    }

    /// Opens the store: itself, and how its reads are to be retried.
    pub(super) fn open(&self, options: &BTreeMap<String, String>) -> Result<(Arc<dyn ObjectStore>, RetryPolicy)> {
        match self {
            Self::Local { .. } => Ok((Arc::new(LocalFileSystem::new()), RetryPolicy::default())),
            Self::Memory { name, .. } => Ok((memory(name), RetryPolicy::default())),
            #[cfg(feature = "s3")]
            Self::Bucket { scheme, bucket, .. } => super::s3::open(scheme, bucket, options),
            #[cfg(not(feature = "s3"))]
            Self::Bucket { scheme, .. } => {
                let _ = options;
                Err(Error::unsupported(format!("this build cannot read {scheme}:// stores"))
                    .with_code("UnknownScheme")
                    .with_hint("build with the feature 's3'"))
            }
        }
    }
}

/// The rest after `scheme:`, the scheme in any case.
fn strip_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let (head, rest) = text.split_once(':')?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// An absolute path without `.` and `..`. Links are kept as they are, so that errors show the user's own path.
fn absolute(path: &str) -> Result<String> {
    let failed = |e: std::io::Error| {
        Error::invalid(format!("cannot tell where '{path}' is: {e}")).with_code("InvalidPath").with_source(e)
    };
    let full = std::path::absolute(path).map_err(failed)?;
    let climbs = full.components().any(|part| part == Component::ParentDir);
    let full = if climbs { without_dots(&full) } else { full };
    match full.to_str() {
        Some(text) => Ok(text.to_string()),
        None => Err(Error::invalid(format!("the path of '{path}' is not UTF-8")).with_code("InvalidPath")),
    }
}

/// `..` goes up from where the path really is, when it exists.
fn without_dots(path: &MachinePath) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The store of a name in this process's memory: the same for everyone who names it.
fn memory(name: &str) -> Arc<dyn ObjectStore> {
    static STORES: Mutex<Option<HashMap<String, Arc<InMemory>>>> = Mutex::new(None);
    let mut stores = STORES.lock();
    let store = stores.get_or_insert_with(HashMap::new).entry(name.to_string()).or_default();
    Arc::clone(store) as Arc<dyn ObjectStore>
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(path: &str) -> Address {
        Address::Local { path: path.to_string() }
    }

    #[test]
    fn paths_and_urls_are_taken_literally() {
        for (text, address) in [
            ("/wh/a b/50%/#3?x", local("/wh/a b/50%/#3?x")),
            ("/wh/./x/../y/", local("/wh/y/")),
            ("file:///wh/a%20b", local("/wh/a%20b")),
            ("file:/wh/p=a%3Ab", local("/wh/p=a%3Ab")),
            ("FILE://localhost/wh", local("/wh")),
        ] {
            let found = Address::parse(text).unwrap();
            assert_eq!(found.path().trim_end_matches('/'), address.path().trim_end_matches('/'), "{text}");
            assert_eq!(found.root(), "", "{text}");
        }
        let bucket = Address::parse("s3a://lake/wh/p=a%2Fb/中文").unwrap();
        assert_eq!((bucket.root().as_str(), bucket.path()), ("s3://lake", "wh/p=a%2Fb/中文"));
        let memory = Address::parse("memory://t/wh").unwrap();
        assert_eq!((memory.root().as_str(), memory.path()), ("memory://t", "wh"));
    }

    #[test]
    fn relative_path_starts_at_the_current_folder() {
        let here = std::env::current_dir().unwrap();
        let found = Address::parse("wh/x").unwrap();
        assert_eq!(found.path(), here.join("wh/x").to_str().unwrap());
    }

    #[test]
    fn what_no_store_can_open_is_refused_with_the_known_forms() {
        for text in ["", "s3://", "file://elsewhere/wh"] {
            assert_eq!(Address::parse(text).unwrap_err().code(), "InvalidPath", "{text}");
        }
        let error = Address::parse("hdfs://nn/wh").unwrap_err();
        assert_eq!(error.code(), "UnknownScheme");
        assert!(error.to_string().contains("s3://bucket/path"), "{error}");
    }
}
