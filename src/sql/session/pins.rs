//! Pins of a session: `PIN TABLE`, `UNPIN` and what is pinned.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::TableFactor;

use super::{Run, Session};
use crate::error::{Error, Result};
use crate::snapshot::TableIdent;
use crate::snapshot::nearest::known_names;
use crate::sql::names::{TableName, split_selector};
use crate::sql::result::{PinLine, StatementResult};
use crate::sql::selector::Selection;
use crate::sql::settings::SessionPin;
use crate::sql::statements::{PinCommand, Target, name_of, pin};
use crate::sql::travel;

impl Session {
    /// The session's own pins.
    pub fn session_pins(&self) -> Vec<PinLine> {
        let Ok(zone) = self.zone() else { return Vec::new() };
        self.settings().pins.read().values().map(|held| pin::line(&held.pin, &zone, true)).collect()
    }

    /// Why pins of the session can no longer be read: their snapshot has expired or was replaced. One that cannot be
    /// asked about now is not among them.
    pub async fn lost_pins(&self) -> Vec<Error> {
        let held: Vec<_> = self.settings().pins.read().values().map(|held| Arc::clone(&held.pin)).collect();
        let mut lost = Vec::new();
        for pin in held {
            match pin.verify().await {
                Err(error) if matches!(error.code(), "SnapshotExpired" | "PinLost") => lost.push(error),
                _ => {}
            }
        }
        lost
    }

    pub(super) async fn pin(&self, run: &Run, command: PinCommand) -> Result<StatementResult> {
        let (state, zone) = (&run.state, run.statement.zone());
        let common = match command.clause {
            Some(clause) => Some(travel::selection_of(clause, state, zone)?),
            None => None,
        };
        let mut wanted: Vec<(String, String, Selection)> = Vec::new();
        match command.target {
            Target::Tables(factors) => {
                for factor in factors {
                    let TableFactor::Table { name, version, .. } = factor else { continue };
                    let own = match version {
                        Some(version) => Some(travel::selection_of(version, state, zone)?),
                        None => None,
                    };
                    let (database, table) = self.table_name(&name)?;
                    let (table, named) = match split_selector(&table) {
                        Some((base, suffix)) => (base.to_string(), Some(Selection::parse_suffix(suffix, zone)?)),
                        None => (table, None),
                    };
                    let selection = own.or(named).or_else(|| common.clone()).unwrap_or_default();
                    wanted.push((database, table, selection));
                }
            }
            Target::Database(name) => {
                let database = self.database_of(&name)?;
                for table in self.warehouse.catalog().list_tables(&database).await? {
                    wanted.push((database.clone(), table, common.clone().unwrap_or_default()));
                }
            }
        }
        // all or none: what makes way for a new pin comes back when one cannot be made
        let mut aside = Vec::new();
        let held = self.resolve(run, wanted, &mut aside).await;
        let mut pins = self.settings().pins.write();
        match held {
            Ok(held) => pins.extend(held),
            Err(error) => {
                pins.extend(aside);
                return Err(error);
            }
        }
        drop(pins);
        Ok(self.done("PIN", run.lines(true), run.notices()))
    }

    /// Pins of tables by name. A pin without a choice of its own is of what is the latest now, so the session's pin of
    /// that table is set aside first.
    async fn resolve(
        &self,
        run: &Run,
        wanted: Vec<(String, String, Selection)>,
        aside: &mut Vec<(TableIdent, SessionPin)>,
    ) -> Result<Vec<(TableIdent, SessionPin)>> {
        let mut held = Vec::new();
        for (database, name, selection) in wanted {
            let parts = TableName::parse(&name);
            if parts.system.is_some() {
                return Err(
                    Error::invalid(format!("{name} is a system table; pin the table itself")).with_code("BadSelector")
                );
            }
            let table = run.statement.table(&database, &name).await?;
            if !selection.chooses() {
                let previous = self.settings().pins.write().shift_remove(table.ident());
                aside.extend(previous.map(|previous| (table.ident().clone(), previous)));
            }
            let pin = run.statement.pin(&table, &selection).await?;
            let said = if selection.chooses() { selection.suffix() } else { "latest".to_string() };
            held.push((table.ident().clone(), pin::held(&pin, said)));
        }
        Ok(held)
    }

    pub(super) async fn unpin(&self, run: &Run, target: Option<Target>) -> Result<StatementResult> {
        match target {
            None => self.settings().pins.write().clear(),
            Some(Target::Database(name)) => {
                let database = self.database_of(&name)?;
                self.settings().pins.write().retain(|ident, _| ident.database != database);
            }
            Some(Target::Tables(factors)) => {
                let mut known = Vec::new();
                for factor in factors {
                    let Some(name) = name_of(&factor) else { continue };
                    let (database, table) = self.table_name(name)?;
                    let ident = self.pinned_ident(run, &database, &table).await;
                    let ident = ident.filter(|ident| self.settings().pins.read().contains_key(ident));
                    let Some(ident) = ident else {
                        let pinned: Vec<String> =
                            self.settings().pins.read().keys().map(|i| format!("{}.{}", i.database, i.table)).collect();
                        return Err(Error::not_found(format!("{database}.{table} is not pinned"))
                            .with_code("NotPinned")
                            .with_hint(known_names(
                                "pins",
                                &format!("{database}.{table}"),
                                pinned.iter().map(String::as_str),
                            )));
                    };
                    known.push(ident);
                }
                self.settings().pins.write().retain(|ident, _| !known.contains(ident));
            }
        }
        Ok(self.done("UNPIN", Vec::new(), run.notices()))
    }

    /// The pinned table of a name, without asking the warehouse: it may be gone.
    pub(super) async fn pinned_ident(&self, run: &Run, database: &str, name: &str) -> Option<TableIdent> {
        if let Ok(table) = run.statement.table(database, name).await {
            return Some(table.ident().clone());
        }
        let parts = TableName::parse(name);
        let branch = parts.branch.as_deref();
        self.settings()
            .pins
            .read()
            .keys()
            .find(|i| i.database == database && i.table == parts.table && branch.is_none_or(|b| b == i.branch))
            .cloned()
    }
}
