//! What can be said: the session, time travel, statements, system tables, table functions.

mod result;
mod session;
mod warehouse;

pub use crate::recon::accounting::{Accounting, AccountingRow};
pub use result::{PinLine, StatementKind, StatementResult, Timing};
pub use session::{Session, SessionConfig, StatementText};
pub use warehouse::Warehouse;
