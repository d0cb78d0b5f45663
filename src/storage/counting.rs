//! The wrapper all requests go through: counts, bytes, retries, time limits.

use std::fmt;
use std::ops::Sub;

/// What was asked of a store so far, by operation. A difference of two is what happened in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Whole files read.
    pub gets: u64,
    /// Ranges of files read.
    pub range_gets: u64,
    /// Questions whether a file exists and how large it is.
    pub heads: u64,
    /// Folders listed.
    pub lists: u64,
    /// Files written, copied or deleted.
    pub writes: u64,
    /// Bytes received.
    pub bytes_read: u64,
    /// Requests made again after a transient fault.
    pub retries: u64,
}

impl RequestCounts {
    /// All requests, retries included.
    pub fn requests(&self) -> u64 {
        self.gets + self.range_gets + self.heads + self.lists + self.writes + self.retries
    }
}

impl Sub for RequestCounts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            gets: self.gets.saturating_sub(earlier.gets),
            range_gets: self.range_gets.saturating_sub(earlier.range_gets),
            heads: self.heads.saturating_sub(earlier.heads),
            lists: self.lists.saturating_sub(earlier.lists),
            writes: self.writes.saturating_sub(earlier.writes),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            retries: self.retries.saturating_sub(earlier.retries),
        }
    }
}

impl fmt::Display for RequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests (get {}, range {}, head {}, list {}, retry {}), {} bytes",
            self.requests(),
            self.gets,
            self.range_gets,
            self.heads,
            self.lists,
            self.retries,
            self.bytes_read
        )
    }
}
