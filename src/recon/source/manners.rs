//! How politely a production database is read.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::Instant;

use super::feed::Feed;

/// Limits that a source is read under.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manners {
    /// Rows of one chunk at most; wide rows come in smaller ones.
    pub chunk_rows: usize,
    /// Pause between chunks.
    pub pause: Duration,
    /// Rows a second at most.
    pub rows_per_second: Option<NonZeroU64>,
    /// How long one statement may take, by the server's clock.
    pub statement_timeout: Duration,
    /// How long a statement may wait for a lock, a change of the table for instance.
    pub lock_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            chunk_rows: 10_000,
            pause: Duration::ZERO,
            rows_per_second: None,
            statement_timeout: Duration::from_secs(300),
            lock_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// Memory that one chunk should take.
pub(super) const CHUNK_BYTES: usize = 8 << 20;
/// Rows of the first chunk, before it is known how wide they are.
const FIRST_ROWS: usize = 500;

/// How many rows are asked for next, and when.
#[derive(Debug)]
pub(super) struct Pace {
    manners: Manners,
    rows: usize,
    began: Instant,
    told: u64,
}

impl Pace {
    pub(super) fn new(manners: &Manners) -> Self {
        Self { manners: manners.clone(), rows: FIRST_ROWS.min(manners.chunk_rows), began: Instant::now(), told: 0 }
    }

    /// Rows of the next chunk.
    pub(super) fn rows(&self) -> usize {
        self.rows.max(1)
    }

    /// After a chunk: how many rows fit, by how wide those were.
    pub(super) fn learn(&mut self, rows: usize, bytes: usize) {
        self.told += rows as u64;
        let fitting = CHUNK_BYTES.checked_div(bytes / rows.max(1)).unwrap_or(usize::MAX).max(1);
        let grown = self.rows.saturating_mul(4);
        self.rows = fitting.min(grown).min(self.manners.chunk_rows.max(1));
    }

    /// How long after the beginning the next chunk may come, by the rows so far.
    fn due(&self) -> Duration {
        let Some(rate) = self.manners.rows_per_second else { return Duration::ZERO };
        let millis = u128::from(self.told) * 1_000 / u128::from(rate.get());
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Waits between two chunks; whether somebody wants the next one. Who does not is not waited for: the connection and
    /// its transaction are kept as long.
    pub(super) async fn rest(&self, feed: &Feed) -> bool {
        let paused = Instant::now() + self.manners.pause;
        tokio::select! {
            biased;
            () = feed.unwanted() => false,
            () = tokio::time::sleep_until(paused.max(self.began + self.due())) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_to_the_limit_and_shrink_for_wide_rows() {
        let mut pace = Pace::new(&Manners::default());
        assert_eq!(pace.rows(), 500);
        for (rows, bytes, next) in [
            (500, 50_000, 2_000),
            (2_000, 200_000, 8_000),
            (8_000, 800_000, 10_000),
            (10, 10 << 20, 8),
            (1, 99 << 20, 1),
        ] {
            pace.learn(rows, bytes);
            assert_eq!(pace.rows(), next, "{rows} rows of {bytes} bytes");
        }
    }

    #[test]
    fn rows_a_second_are_kept_to() {
        let manners = Manners { rows_per_second: NonZeroU64::new(1_000), ..Manners::default() };
        let mut pace = Pace::new(&manners);
        for expected in [500, 1_000, 1_500] {
            pace.learn(500, 5_000);
            assert_eq!(pace.due().as_millis(), expected);
        }
        assert_eq!(Pace::new(&Manners::default()).due(), Duration::ZERO);
    }
}
