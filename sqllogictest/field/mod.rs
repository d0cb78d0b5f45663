//! Faults that users of such tools met, as tests with their right answers; bad input; random tables against a fold.

mod bad_input;
mod branch;
mod bucket;
mod changes;
mod count;
mod counts_told;
mod edit;
mod engine;
mod examples;
mod faults;
mod fuzz;
pub mod kit;
mod list;
mod merge;
mod names;
#[cfg(unix)]
mod nobody;
mod partition;
mod recon;
mod row_tracking;
mod schema;
mod stats;
mod storage;
mod travel;
mod vanishing;

use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    count::register(tests);
    travel::register(tests);
    changes::register(tests);
    partition::register(tests);
    stats::register(tests);
    bucket::register(tests);
    merge::register(tests);
    schema::register(tests);
    branch::register(tests);
    row_tracking::register(tests);
    recon::register(tests);
    storage::register(tests);
    engine::register(tests);
    names::register(tests);
    bad_input::register(tests);
    counts_told::register(tests);
    faults::register(tests);
    fuzz::register(tests);
    examples::register(tests);
    list::register(tests);
}
