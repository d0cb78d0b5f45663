//! How DataFusion sees a table: a provider that is a pin, and the plan nodes that read it.
//!
//! | file | what it gives |
//! |---|---|
//! | [`table`] | [`LakeTable`]: the provider |
//! | [`mod@env`] | [`QueryEnv`]: caches and limits shared by all tables |
//! | `open_table` | [`OpenTable`]: a table with the caches of its warehouse |
//! | [`report`] | what scans of a statement found: pins, counts per stage, notices |
//! | [`settings`] | `lakepin.*` of a session |
//! | [`view`] | the table, `$ro`, `$audit_log`, `$row_tracking`, changes |
//! | [`nodes`] | plan nodes |
//! | [`work`] | what a plan has to read and has read so far |
//! | [`statistics`] | what metadata proves about rows |
//! | [`compared`] | two states that are compared, without what they share |
//! | `comparison` | functions that such a comparison calls |
//! | `arithmetic` | `+`, `-`, `*` that fail where the result is beyond its type |
//! | `aggregates` | `sum`, `avg`, `min` and `max` of our sessions |
//! | `answered` | aggregates that metadata answers, with the pin they were computed on |
//! | `one_nan` | one NaN, whatever its sign |
//! | `by_name` | rules that take a column for another of its name, guarded |
//! | `layout` | sections to plan nodes |
//! | `mapping` | which Parquet files DataFusion's own source may read |
//! | `stored` | a column of such a file as the table's type |
//! | `filters` | which filters planning applies, and how far |
//! | `spread` | work over output partitions |
//! | `yielding` | plans that can be cancelled at any moment |
//! | `codec` | plan nodes as bytes |
//! | `unused_store` | the store that DataFusion wants for a scan |
//! | `budget` | the query's memory pool, as the rooms below know it |

pub(crate) mod aggregates;
mod answered;
pub(crate) mod arithmetic;
mod budget;
mod by_name;
#[cfg(feature = "codec")]
pub mod codec;
pub mod compared;
mod comparison;
mod constants;
pub mod env;
mod filters;
pub(crate) mod finer;
mod floats;
mod layout;
mod mapping;
pub mod nodes;
pub(crate) mod one_nan;
mod open_table;
pub(crate) mod perhaps;
pub mod report;
pub mod settings;
mod spread;
pub mod statistics;
mod stored;
pub mod table;
mod unused_store;
pub mod view;
pub mod work;
mod yielding;

pub use answered::with_answers;
pub use budget::PoolBudget;
pub use compared::Compared;
pub(crate) use comparison::{changed_columns, compared as compared_values, compared_form, compared_type, in_any_order};
pub use env::{QueryEnv, QueryLimits};
pub use open_table::OpenTable;
pub use report::{ScanLog, ScanReport};
pub use settings::LakepinOptions;
pub use table::LakeTable;
pub use view::LakeView;
pub use work::Work;
pub use yielding::yielding;

#[cfg(test)]
mod tests;
