//! What a read counts, as metrics of its plan node.

use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

use crate::read::ReadCounters;

/// Names of the counts, in the order of [`now`].
const COUNTS: [&str; 12] = [
    "files_read",
    "key_files_read",
    "sections_selected",
    "sections_recalled",
    "key_rows",
    "rows_superseded",
    "keys_deleted",
    "rows_deleted_by_vector",
    "sections_selected_in_little_memory",
    "merges_begun_again",
    "data_file_requests",
    "data_file_bytes",
];

fn now(counters: &ReadCounters) -> [u64; COUNTS.len()] {
    let requests = counters.meter().counts();
    [
        counters.files(),
        counters.key_files(),
        counters.selections(),
        counters.recalled(),
        counters.rows(),
        counters.superseded(),
        counters.tombstones(),
        counters.vector_deleted(),
        counters.streamed(),
        counters.resumes(),
        requests.requests(),
        requests.bytes_read,
    ]
}

/// Metrics of one run of a node, or of one partition's.
#[derive(Debug)]
pub struct ReadMetrics {
    counters: Arc<ReadCounters>,
    counts: [Count; COUNTS.len()],
    select_time: Time,
    /// What the metrics know of the counters.
    seen: [u64; COUNTS.len()],
    seen_nanos: u64,
}

impl ReadMetrics {
    /// Metrics in `set` that follow `counters`.
    pub fn new(set: &ExecutionPlanMetricsSet, partition: usize, counters: Arc<ReadCounters>) -> Self {
        Self {
            counters,
            counts: COUNTS.map(|name| MetricBuilder::new(set).counter(name, partition)),
            select_time: MetricBuilder::new(set).subset_time("select_time", partition),
            seen: [0; COUNTS.len()],
            seen_nanos: 0,
        }
    }

    /// Brings the metrics up to the counters: who shows progress reads them while the run goes on.
    pub fn sync(&mut self) {
        let now = now(&self.counters);
        for ((count, now), seen) in self.counts.iter().zip(now).zip(self.seen) {
            count.add(usize::try_from(now.saturating_sub(seen)).unwrap_or(usize::MAX));
        }
        self.seen = now;
        let nanos = self.counters.select_nanos();
        self.select_time.add_duration(Duration::from_nanos(nanos.saturating_sub(self.seen_nanos)));
        self.seen_nanos = nanos;
    }
}

impl Drop for ReadMetrics {
    fn drop(&mut self) {
        self.sync();
    }
}
