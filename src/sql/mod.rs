//! What can be said: the session, time travel, statements, system tables, table functions.
//!
//! | file | one idea |
//! |---|---|
//! | `warehouse`, `session`, `result` | the door |
//! | `dialect`, `tokens`, `rewrite` | text to tokens, every spelling of time travel to one |
//! | `travel`, `selector`, `constant`, `names` | clauses in the tree to names such as `t@v3` |
//! | `statement` | one statement's view of the warehouse: each table resolved once |
//! | `catalog`, `planner`, `view` | how DataFusion meets it |
//! | `plain` | statements that reach DataFusion without us: still one snapshot for each table |
//! | `identifiers`, `escapes`, `doubles` | unquoted names; `LIKE … ESCAPE`; numbers with an exponent |
//! | `walk`, `from_first`, `spellings` | one walk over a tree; `FROM t` without SELECT; `MINUS`, `RLIKE` and their like |
//! | `depth`, `chains`, `deep_stack` | chains as trees, what nests too deep; a stack for what does nest |
//! | `distinct` | where the right side of `IS DISTINCT FROM` ends |
//! | `operands`, `decimals`, `timestamps` | operands that would lose digits when they are brought to one type |
//! | `text_numbers` | a text column beside a number |
//! | `digits` | how many digits of a second columns of a result declare |
//! | `times` | TIME(3), and TIMESTAMP literals that nanoseconds do not hold |
//! | `checked`, `guards` | arithmetic that leaves its type is an error; but not where another condition rules it out |
//! | `reworded`, `frames` | forms that DataFusion fails on; RANGE frames at the end of a type |
//! | `zeros`, `nans` | one zero and one NaN |
//! | `zoned` | TIMESTAMP WITH LOCAL TIME ZONE on the session's clock |
//! | `in_lists`, `using` | NULL in `IN (…)`; the column of `JOIN … USING` |
//! | `natural` | what NATURAL joins have in common |
//! | `subqueries`, `marks` | subqueries by three values; `EXISTS` and `IN` outside of a WHERE |
//! | `grouping` | what ROLLUP, CUBE and GROUPING SETS group by |
//! | `same_names`, `stars` | columns of one name in one list, `*` among them |
//! | `row_values`, `map_keys` | rows compared column by column; `m[1]` by the type of the map's keys |
//! | `map_order` | where the order of a map's entries decides |
//! | `settings` | what a session remembers |
//! | `parameters` | values for `$name` |
//! | `prepared` | PREPARE and EXECUTE |
//! | `limits`, `writes`, `aside` | what a statement may read, where it may not write, and where it writes first |
//! | `reconcile`, `horizon` | the sides of a comparison; up to when they are compared |
//! | `last_writers`, `verdicts` | who wrote what differs; why it does |
//! | `asserted` | `query = value`, told apart |
//! | `statements/` | `PIN`, `SHOW`, `DESCRIBE`, `EXPLAIN FILES`, refusals |
//! | `system_tables/`, `functions/` | `t$name`, `paimon_…()` |
//! | `memory`, `cells`, `types` | small relations, types as text |
//! | `place`, `refused` | places of errors in a statement |

mod aside;
#[cfg(feature = "cli")]
mod asserted;
mod catalog;
mod cells;
mod chains;
mod checked;
mod constant;
mod decimals;
mod deep_stack;
mod depth;
mod dialect;
mod digits;
mod distinct;
mod doubles;
mod escapes;
mod frames;
mod from_first;
mod functions;
mod grouping;
mod guards;
mod horizon;
mod identifiers;
mod in_lists;
mod last_writers;
mod limits;
mod map_keys;
mod map_order;
mod marks;
mod memory;
mod names;
mod nans;
mod natural;
mod null_keys;
mod operands;
mod parameters;
mod place;
mod plain;
mod planner;
mod prepared;
mod reconcile;
mod refused;
mod result;
mod reworded;
mod rewrite;
mod row_values;
mod same_names;
mod selector;
mod session;
mod settings;
mod spellings;
mod stars;
mod statement;
mod statements;
mod subqueries;
mod system_tables;
mod text_files;
mod text_numbers;
mod times;
mod timestamps;
mod tokens;
mod travel;
mod types;
mod using;
mod using_names;
mod verdicts;
mod view;
mod walk;
mod warehouse;
mod writes;
mod zeros;
mod zoned;

#[cfg(test)]
mod tests;

pub use crate::query::Work;
pub use crate::recon::accounting::{Accounting, AccountingRow};
pub use crate::recon::compare::{
    Cell, Class, ClassReport, ColumnReport, Count, Example, Line as ReconcileLine, Report as ReconcileReport,
    SideReport, Sink, Verdict,
};
pub use crate::recon::retention::{Hold, Reason};
pub use crate::recon::source;
pub use crate::recon::verdict;
pub use crate::scan::{Rule, ScanProgress};
pub use crate::spec::{BATCH, CommitIdentifier, END_OF_INPUT};
pub use crate::storage::RequestCounts;
#[cfg(feature = "cli")]
pub(crate) use aside::leave_unfinished;
#[cfg(feature = "cli")]
pub(crate) use asserted::{LastEquals, last_equals};
#[cfg(feature = "cli")]
pub(crate) use place::missing_column;
pub use result::{
    Outlook, OutlookEnd, PinDetails, PinLine, PinNote, Readings, Scanned, SessionChoice, ShownPins, StatementKind,
    StatementResult, Timing,
};
pub use session::{Judged, Reconciled, Session, SessionConfig};
pub use settings::Chosen;
#[cfg(feature = "cli")]
pub(crate) use tokens::Cursor;
pub use tokens::StatementText;
pub use warehouse::Warehouse;
