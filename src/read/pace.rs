//! How much a merge holds at once, and what it tries when memory is short.

/// Batches get smaller by this factor..
const SHRINK: usize = 8;

/// ..down to this number of rows.
const FEWEST_ROWS: usize = 16;

/// How much a merge holds at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Rows of a batch.
    pub batch_size: usize,
    /// Whether the next batch of each run is decoded while this one is merged.
    pub ahead: bool,
}

impl Pace {
    /// The next that needs less memory; None when there is none.
    pub fn slower(self) -> Option<Self> {
        if self.ahead {
            return Some(Self { ahead: false, ..self });
        }
        let batch_size = (self.batch_size / SHRINK).max(FEWEST_ROWS);
        (batch_size < self.batch_size).then_some(Self { batch_size, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_ahead_goes_first_then_batches_get_smaller() {
        let mut pace = Pace { batch_size: 8192, ahead: true };
        let mut tried = vec![(pace.batch_size, pace.ahead)];
        while let Some(slower) = pace.slower() {
            pace = slower;
            tried.push((pace.batch_size, pace.ahead));
        }
        assert_eq!(tried, [(8192, true), (8192, false), (1024, false), (128, false), (16, false)]);
        assert!(Pace { batch_size: 5, ahead: false }.slower().is_none());
    }
}
