//! Where a file is: a store's root and a literal path under it.

use std::fmt;
use std::sync::Arc;

use object_store::path::Path;

use crate::error::{Error, Result};

/// A file or folder of one store. The path is literal: `%`, spaces, `#`, `?` and non-ASCII letters are neither escaped
/// nor unescaped on the way to the store.
///
/// Displayed as the user writes it: `/data/wh/pay.db/t`, `s3://bucket/wh/pay.db/t`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// What stands before the path: empty for local files, `s3://bucket` for a bucket.
    root: Arc<str>,
    path: Path,
}

impl Location {
    /// The location of a literal `path` under `root` (`""` for local files, `s3://bucket`, `memory://name`).
    ///
    /// Errors: a path that no store can name (empty segments, `.` and `..`, control characters).
    pub fn try_new(root: &str, path: &str) -> Result<Self> {
        let path = Path::parse(path).map_err(|error| {
            Error::invalid(format!("'{root}/{}' is not a path a store can name: {error}", path.trim_start_matches('/')))
                .with_code("InvalidPath")
        })?;
        Ok(Self { root: root.into(), path })
    }

    /// The location of a path as a store of `root` reported it.
    pub(super) fn from_store(root: Arc<str>, path: Path) -> Self {
        Self { root, path }
    }

    /// A file or folder below this one. `relative` may have several segments, split at `/`; all else is literal.
    pub fn join(&self, relative: &str) -> Result<Self> {
        let relative = relative.trim_matches('/');
        if relative.is_empty() {
            return Ok(self.clone());
        }
        let base = self.path.as_ref();
        let joined = if base.is_empty() { relative.to_string() } else { format!("{base}/{relative}") };
        Self::try_new(&self.root, &joined)
    }

    /// A file in this folder by the name that metadata has of it, which may be damaged.
    pub fn join_named(&self, name: &str) -> Result<Self> {
        let joined = self.join(name).ok().filter(|joined| joined != self && !name.contains('/'));
        joined.ok_or_else(|| {
            Error::corrupt(format!("metadata names '{name}' in '{self}', which is no name of a file"))
                .with_code("InvalidPath")
                .with_hint("restore the metadata file that names it, or read a snapshot or tag that does not need it")
        })
    }

    /// The folder this lies in; None at the root of the store.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.path.as_ref().rsplit_once('/')?;
        Some(Self { root: Arc::clone(&self.root), path: Path::parse(parent).ok()? })
    }

    /// The last segment; empty at the root of the store.
    pub fn file_name(&self) -> &str {
        self.path.filename().unwrap_or_default()
    }

    /// The path as the object store wants it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What stands before the path: empty for local files, `s3://bucket` for a bucket.
    pub fn root(&self) -> &str {
        &self.root
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.root, self.path)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
