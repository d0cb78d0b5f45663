//! How DataFusion sees a table: a provider that is a pin, and the plan nodes that read it.
//!
//! | file | what it gives |
//! |---|---|
//! | [`table`] | [`LakeTable`]: the provider |
//! | [`env`] | [`QueryEnv`]: caches and limits shared by all tables |
//! | [`report`] | what scans of a statement found: pins, counts per stage, notices |
//! | [`settings`] | `lakepin.*` of a session |

mod budget;
pub mod env;
pub mod report;
pub mod settings;
pub mod table;

pub use budget::PoolBudget;
pub use env::QueryEnv;
pub use report::{ScanLog, ScanReport};
pub use settings::LakepinOptions;
pub use table::{LakeTable, LakeView};
