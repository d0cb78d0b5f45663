//! Pins of a session: `PIN TABLE`, `UNPIN` and what is pinned.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::logical_expr::TableType;
use datafusion::sql::sqlparser::ast::{Spanned, TableFactor};
use indexmap::IndexMap;

use super::{Run, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::{Notice, NoticeKind};
use crate::snapshot::TableIdent;
use crate::snapshot::nearest::known_names;
use crate::sql::names::{TableName, split_selector};
use crate::sql::place::Place;
use crate::sql::result::{Outlook, PinLine, Readings, SessionChoice, ShownPins, StatementResult};
use crate::sql::selector::{Selection, drop_choices};
use crate::sql::settings::{Chosen, SessionPin, is_honoured};
use crate::sql::statement::Used;
use crate::sql::statements::{PinCommand, Target, name_of, pin};
use crate::sql::travel;
use crate::storage::env::now_millis;

/// A table to pin.
pub(super) struct Wanted {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) selection: Selection,
    place: Place,
    /// Whether it is pinned with its whole database: one without snapshots is not in the way of the others.
    of_database: bool,
}

/// The error for a view or table of the session itself, which has no snapshots.
fn not_pinnable(name: &str, kind: TableType) -> Error {
    let (what, hint) = match kind {
        TableType::View => ("view", "pin the tables it reads: it reads them at their pins"),
        _ => {
            ("table of this session", "only tables of the warehouse have snapshots; this one changes with nobody else")
        }
    };
    Error::invalid(format!("'{name}' is a {what} and has no snapshot to pin")).with_code("BadSelector").with_hint(hint)
}

impl Session {
    /// The session's own pins.
    pub fn session_pins(&self) -> Vec<PinLine> {
        let Ok(zone) = self.zone() else { return Vec::new() };
        self.settings().pins.read().values().map(|held| pin::line(&held.pin, &zone, true)).collect()
    }

    /// The session's own pins as `SHOW PINS` shows them, each looked at again.
    ///
    /// # Errors
    /// A time zone that is not known.
    pub async fn shown_pins(&self) -> Result<ShownPins> {
        let pins: Vec<SessionPin> = self.settings().pins.read().values().cloned().collect();
        pin::show(&pins, &self.zone()?, now_millis()).await
    }

    /// What `SET 'paimon.…'` chooses in place of the latest snapshot, for every table first.
    pub fn session_choices(&self) -> Vec<SessionChoice> {
        self.settings().choices()
    }

    /// Chooses anew what is read, and returns what was chosen before: pins and what `SET 'paimon.…'` says. Of
    /// [`Chosen::default`] every table is read at its latest snapshot.
    pub fn choose(&self, chosen: Chosen) -> Chosen {
        self.settings().exchange(chosen)
    }

    /// Why pins of the session can no longer be read: their snapshot has expired, was replaced or is damaged. One that
    /// cannot be asked about now is not among them.
    pub async fn lost_pins(&self) -> Vec<Error> {
        let held: Vec<_> = self.settings().pins.read().values().map(|held| Arc::clone(&held.pin)).collect();
        let mut lost = Vec::new();
        for pin in held {
            match pin.verify().await {
                Err(error) if error.kind() != ErrorKind::Unavailable => lost.push(error),
                _ => {}
            }
        }
        lost
    }

    /// Pins for the session what a statement read: each table at the very state that was read, whatever becomes of its
    /// snapshot's number. Left as they are: tables that the session pins or chooses the state of already, changes, which
    /// are no state that could be read again, and tables without snapshots. A table that was read at several states is
    /// not pinned, and the answer says so, a line for each.
    ///
    /// Cost: none; nothing is read.
    pub fn keep(&self, readings: &Readings) -> Vec<Notice> {
        let mut states: IndexMap<&TableIdent, Vec<&Used>> = IndexMap::new();
        for used in readings.0.iter().filter(|used| used.changes.is_none() && used.pin.snapshot.is_some()) {
            states.entry(used.pin.table.ident()).or_default().push(used);
        }
        let mut told = Vec::new();
        let mut pins = self.settings().pins.write();
        for (ident, states) in states {
            if pins.contains_key(ident) || states.iter().any(|used| used.session) {
                continue;
            }
            match states.as_slice() {
                [only] => {
                    let pin = Arc::clone(&only.pin);
                    let selection = Selection { request: pin.request.clone(), ..Selection::none() };
                    let said = if selection.chooses() { selection.suffix() } else { pin.request.to_string() };
                    pins.insert(ident.clone(), SessionPin { pin, said, options: BTreeMap::new() });
                }
                several => {
                    let table = several.first().map(|used| used.pin.table.name()).unwrap_or_default();
                    let mut snapshots: Vec<i64> =
                        several.iter().filter_map(|used| used.pin.snapshot_id()).map(|id| id.0).collect();
                    snapshots.sort_unstable();
                    told.push(NoticeKind::SeveralStates { table, snapshots }.into());
                }
            }
        }
        told
    }

    pub(super) async fn pin(&self, run: &Run, command: PinCommand) -> Result<StatementResult> {
        let (state, zone) = (&run.state, run.statement.zone());
        let PinCommand { target, clause, align } = command;
        let common = match clause {
            Some(clause) => Some(travel::selection_of(clause, state, zone)?),
            None => None,
        };
        let mut wanted: Vec<Wanted> = Vec::new();
        match target {
            Target::Tables(factors) => {
                for factor in factors {
                    let TableFactor::Table { name, version, .. } = factor else { continue };
                    let own = match version {
                        Some(version) => Some(travel::selection_of(version, state, zone)?),
                        None => None,
                    };
                    let place = Place::from(name.span().start);
                    let (database, table) = self.table_name(&name)?;
                    // a table may really be called `a@b`
                    let (table, named) = if let Some((base, suffix)) = split_selector(&table)
                        && !run.statement.is_really_called(&database, &table).await
                    {
                        (base.to_string(), Some(Selection::parse_suffix(suffix, zone)?))
                    } else {
                        (table, None)
                    };
                    let both = own.as_ref().is_some_and(|own| own.chooses()) && named.is_some();
                    if both {
                        return Err(Error::invalid(format!(
                            "{name} has a version in its name and a time travel clause"
                        ))
                        .with_code("ConflictingSelectors"));
                    }
                    let selection = own.or(named).or_else(|| common.clone()).unwrap_or_default();
                    wanted.push(Wanted { database, table, selection, place, of_database: false });
                }
            }
            Target::Database(name) => {
                let place = Place::from(name.span().start);
                let listed = async {
                    let database = self.database_of(&name)?;
                    let tables = self.warehouse.catalog().list_tables(&database).await?;
                    Ok((database, tables))
                };
                let (database, tables) = listed.await.map_err(|error| place.attach(error))?;
                for table in tables {
                    let selection = common.clone().unwrap_or_default();
                    let (database, place) = (database.clone(), Place::default());
                    wanted.push(Wanted { database, table, selection, place, of_database: true });
                }
            }
        }
        if let Some(align) = &align {
            super::align::align(run, align, &mut wanted).await?;
        }
        // all or none
        let held = self.resolve(run, wanted).await?;
        let mut lines = run.lines(true);
        for (_, SessionPin { pin, .. }) in &held {
            // a forecast only adds to the pin
            let Ok((told, warning)) = pin::prospects(pin, zone, now_millis()).await else { continue };
            let name = pin.table.name();
            for line in lines.iter_mut().filter(|line| line.table == name) {
                line.text.push_str(&told.as_ref().map(Outlook::to_string).unwrap_or_default());
                line.details.outlook.clone_from(&told);
            }
            if let Some(warning) = warning {
                run.statement.notice(warning);
            }
        }
        self.settings().pins.write().extend(held);
        Ok(self.done("PIN", lines, run.notices()))
    }

    /// Pins of tables by name, whatever the session has pinned.
    async fn resolve(&self, run: &Run, wanted: Vec<Wanted>) -> Result<Vec<(TableIdent, SessionPin)>> {
        let mut held = Vec::new();
        for Wanted { database, table: name, selection, place, of_database } in wanted {
            let parts = TableName::parse(&name);
            if parts.system.is_some() {
                return Err(
                    Error::invalid(format!("{name} is a system table; pin the table itself")).with_code("BadSelector")
                );
            }
            let found = async {
                let table = run.statement.table(&database, &name).await?;
                let (table, selection) = run.statement.on_branch(table, parts, &selection).await?;
                let pinned = run.statement.pin_anew(&table, &selection).await;
                match pinned {
                    Err(error) if of_database && error.code() == "NoSnapshot" => {
                        let mut options = selection.options.clone();
                        drop_choices(&mut options);
                        let latest = Selection { options, ..Selection::none() };
                        let pin = run.statement.pin_anew(&table, &latest).await?;
                        // its first snapshot may have come meanwhile, and is not what was asked for
                        if pin.snapshot.is_some() {
                            return Err(error);
                        }
                        run.statement.notice(NoticeKind::PinnedEmpty { table: table.name() });
                        Ok((table, latest, pin))
                    }
                    pinned => Ok::<_, Error>((table, selection, pinned?)),
                }
            };
            let (table, selection, pin) = match found.await {
                Err(error) if error.code() == "TableNotFound" => {
                    let of_session = self.settings().local(&database, &name);
                    return Err(place.attach(of_session.map_or(error, |local| not_pinnable(&name, local.table_type()))));
                }
                found => found.map_err(|error| place.attach(error))?,
            };
            let said = if selection.chooses() { selection.suffix() } else { pin.request.to_string() };
            let mut options = selection.options;
            drop_choices(&mut options);
            options.retain(|key, _| is_honoured(key));
            held.push((table.ident().clone(), SessionPin { pin, said, options }));
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
                        let pinned: Vec<String> = self.settings().pins.read().keys().map(ToString::to_string).collect();
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
