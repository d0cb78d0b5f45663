//! The pins of a statement: each state of a table that is asked for is resolved once, whatever options stand beside it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as TokioMutex, OwnedMutexGuard};

use super::{Key, Statement};
use crate::error::{Error, Result};
use crate::notice::NoticeKind;
use crate::scan::ChangeRange;
use crate::snapshot::{Pin, PinRequest, Table, TableIdent, parse_timestamp};
use crate::spec::TableSchema;
use crate::sql::selector::{Selection, choices, choosing, drop_choices, one_choice};
use crate::sql::settings::{SessionPin, is_honoured};

/// A pin of the statement and whether the session chose it.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    pub(crate) pin: Arc<Pin>,
    pub(crate) session: bool,
    /// The changes that are read in the place of the rows.
    pub(crate) changes: Option<ChangeRange>,
}

/// What was resolved so far, by database and table: resolving one table does not wait for another.
#[derive(Debug, Default)]
pub(super) struct Pins {
    by_table: Mutex<HashMap<Key, Arc<TokioMutex<TablePins>>>>,
}

/// What was resolved so far of a table and its branches, which may complete each other. It is held while a state is
/// resolved, so that whoever asks for the same one waits for it.
#[derive(Debug, Default)]
struct TablePins {
    by_reference: HashMap<(TableIdent, Selection), Used>,
    by_state: HashMap<State, Arc<Pin>>,
}

/// A table, and what was said about where in its time it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    table: TableIdent,
    request: PinRequest,
    /// Options that choose, where the request leaves it to them.
    options: BTreeMap<String, String>,
}

impl Pins {
    async fn of(&self, table: &TableIdent) -> OwnedMutexGuard<TablePins> {
        let key = (table.database.clone(), table.table.clone());
        let pins = Arc::clone(self.by_table.lock().entry(key).or_default());
        pins.lock_owned().await
    }
}

/// Whether pins of the session count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Count,
    /// The table is being pinned.
    PassedBy,
}

impl Statement {
    /// The pin of a table for one selection, resolved once in the statement.
    pub(crate) async fn pin(&self, table: &Arc<Table>, selection: &Selection) -> Result<Arc<Pin>> {
        // it may have been resolved for what is not this statement's: a look at all tables
        let used = self.resolved(table, selection).await?;
        Ok(self.put_to_use(used))
    }

    /// The pin of a state that is only asked about: nothing is read of it.
    pub(crate) async fn pin_unread(&self, table: &Arc<Table>, selection: &Selection) -> Result<Arc<Pin>> {
        Ok(self.resolved(table, selection).await?.pin)
    }

    /// The pin at whose end changes are read with a schema; it is shown with the range.
    pub(crate) async fn pin_of_changes(
        &self,
        table: &Arc<Table>,
        selection: &Selection,
        schema: &Arc<TableSchema>,
        range: ChangeRange,
    ) -> Result<Arc<Pin>> {
        let used = self.resolved(table, selection).await?;
        self.tell_notices(&used.pin);
        let pin = used.pin.with_schema(schema).await?;
        Ok(self.put_to_use(Used { pin, changes: Some(range), ..used }))
    }

    /// Says that the session chose what was put to use of a table since `from`.
    pub(crate) fn chosen_by_session(&self, table: &TableIdent, from: usize) {
        for used in self.used.lock().iter_mut().skip(from).filter(|used| used.pin.table.ident() == table) {
            used.session = true;
        }
    }

    async fn resolved(&self, table: &Arc<Table>, selection: &Selection) -> Result<Used> {
        let key = (table.ident().clone(), selection.clone());
        let mut pins = self.pins.of(table.ident()).await;
        if let Some(known) = pins.by_reference.get(&key) {
            return Ok(known.clone());
        }
        let held = self.held_by_session(table.ident()).filter(|_| !selection.chooses());
        let used = match held {
            Some(held) => self.held(&mut pins, held, table.ident(), selection).await?,
            None => self.choose(&mut pins, table, selection, Held::Count).await?,
        };
        pins.by_reference.insert(key, used.clone());
        Ok(used)
    }

    /// The pin that a selection means, past the pin that the session holds.
    pub(crate) async fn pin_anew(&self, table: &Arc<Table>, selection: &Selection) -> Result<Arc<Pin>> {
        let mut pins = self.pins.of(table.ident()).await;
        let used = self.choose(&mut pins, table, selection, Held::PassedBy).await?;
        Ok(self.put_to_use(used))
    }

    /// The pin by which the session holds a table: its own, or as the branch that completes another one.
    fn held_by_session(&self, ident: &TableIdent) -> Option<SessionPin> {
        let pins = self.settings.pins.read();
        let completing = |held: &SessionPin| {
            let branch = completion(&held.pin).filter(|branch| branch.table.ident() == ident)?;
            Some(SessionPin { pin: Arc::clone(branch), said: held.said.clone(), options: BTreeMap::new() })
        };
        pins.get(ident).cloned().or_else(|| pins.values().find_map(completing))
    }

    /// The branch that completes a pin is read at the snapshot at which the statement reads it by its own name.
    async fn share_branch(&self, pins: &mut TablePins, pin: Arc<Pin>, held: Held) -> Result<Arc<Pin>> {
        let Some(branch) = completion(&pin) else { return Ok(pin) };
        let ident = branch.table.ident();
        if held == Held::Count
            && let Some(held) = self.held_by_session(ident)
        {
            held.pin.verify().await?;
            return Ok(pin.completed_by(&held.pin));
        }
        let own = State { table: ident.clone(), request: PinRequest::Latest, options: BTreeMap::new() };
        match pins.by_state.get(&own) {
            Some(known) => Ok(pin.completed_by(known)),
            None => {
                pins.by_state.insert(own, Arc::clone(branch));
                Ok(pin)
            }
        }
    }

    fn put_to_use(&self, used: Used) -> Arc<Pin> {
        let pin = Arc::clone(&used.pin);
        self.mark_used(used);
        self.tell_notices(&pin);
        pin
    }

    fn tell_notices(&self, pin: &Pin) {
        for notice in &pin.notices {
            self.notice(notice.clone());
        }
    }

    pub(super) fn mark_used(&self, used: Used) {
        let mut all = self.used.lock();
        let same = |other: &Used| {
            other.pin.fingerprint == used.pin.fingerprint
                && other.pin.table.ident() == used.pin.table.ident()
                && other.changes == used.changes
        };
        let alone = |pin: &Pin| pin.fallback.is_none() && pin.primary.is_none();
        match all.iter_mut().find(|other| same(other)) {
            None => all.push(used),
            // the branch beside it was read as well
            Some(known) if alone(&known.pin) => known.pin = used.pin,
            Some(_) => {}
        }
    }

    /// The session's pin, under the options of the reference.
    async fn held(
        &self,
        pins: &mut TablePins,
        held: SessionPin,
        ident: &TableIdent,
        selection: &Selection,
    ) -> Result<Used> {
        held.pin.verify().await?;
        // those in force now, not when it was pinned
        let mut options = self.settings.options_for(&ident.database, &ident.table);
        drop_choices(&mut options);
        options.extend(held.options);
        options.extend(self.given(selection));
        let pin = held.pin.with_options(&options, &self.zone).await?;
        let pin = self.share_branch(pins, pin, Held::Count).await?;
        Ok(Used { pin, session: true, changes: None })
    }

    async fn choose(
        &self,
        pins: &mut TablePins,
        table: &Arc<Table>,
        selection: &Selection,
        held: Held,
    ) -> Result<Used> {
        let ident = table.ident();
        let mut options = self.settings.options_for(&ident.database, &ident.table);
        if selection.chooses() {
            drop_choices(&mut options);
        }
        one_choice(&options)?;
        let session = !choices(&options).is_empty();
        options.extend(self.given(selection));
        let mut request = selection.request.clone();
        if request == PinRequest::Latest
            && let Some(said) = self.request_of(&mut options)?
        {
            request = said;
        }
        let state = State { table: ident.clone(), request, options: choices(&options) };
        let known = pins.by_state.get(&state).cloned();
        let pin = match &known {
            Some(known) => known.with_options(&options, &self.zone).await?,
            None => Pin::resolve_in(table, state.request.clone(), &options, &self.zone).await?,
        };
        let pin = self.share_branch(pins, pin, held).await?;
        if known.is_none() {
            pins.by_state.insert(state, Arc::clone(&pin));
        }
        Ok(Used { pin, session, changes: None })
    }

    /// The options of a reference that are honoured; of the others it is told that they have no effect, and they have
    /// none.
    fn given(&self, selection: &Selection) -> BTreeMap<String, String> {
        let (honoured, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            selection.options.clone().into_iter().partition(|(key, _)| is_honoured(key));
        for option in others.into_keys() {
            self.notice(NoticeKind::IdleOption { option });
        }
        honoured
    }

    /// Turns the option that names one snapshot into a request, so that it wins over the table's own options.
    fn request_of(&self, options: &mut BTreeMap<String, String>) -> Result<Option<PinRequest>> {
        let Some(key) = choosing(options) else { return Ok(None) };
        let Some(value) = options.get(key).cloned() else { return Ok(None) };
        let number = || {
            value.trim().parse::<i64>().map_err(|_| {
                Error::invalid(format!("'{value}' is no number")).with_code("BadOption").with_context("option", key)
            })
        };
        let request = match key {
            "scan.snapshot-id" => PinRequest::SnapshotId(number()?),
            "scan.tag-name" => PinRequest::Tag(value.clone()),
            "scan.timestamp-millis" => PinRequest::TimestampMillis(number()?),
            "scan.timestamp" => PinRequest::TimestampMillis(
                parse_timestamp(&value, &self.zone).map_err(|e| e.with_context("option", key))?,
            ),
            "scan.watermark" => PinRequest::Watermark(number()?),
            "scan.version" => PinRequest::Version(value.clone()),
            _ => return Ok(None),
        };
        // a mode beside it has to agree; the pin checks that
        if !options.contains_key("scan.mode") {
            options.remove(key);
            return Ok(Some(request));
        }
        Ok(None)
    }
}

/// The branch that completes what is read of a table as it is now. One beside an older state is as old as that.
fn completion(pin: &Pin) -> Option<&Arc<Pin>> {
    pin.fallback.as_ref().or(pin.primary.as_ref()).filter(|_| pin.request == PinRequest::Latest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::sql::{Session, SessionConfig, Warehouse};
    use crate::testing::builder::{TableBuilder, TableSpec};

    #[tokio::test]
    async fn a_table_that_is_slow_to_resolve_holds_up_no_other() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["slow", "other"] {
            let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
            TableBuilder::create(dir.path(), "pay", name, &spec).unwrap().append(&[json!({"a": 1})]).unwrap();
        }
        let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
        let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
        let state = session.context().state();
        let statement = Statement::new(&warehouse, &Arc::default(), state, Arc::default()).unwrap();
        let (slow, other) =
            (statement.table("pay", "slow").await.unwrap(), statement.table("pay", "other").await.unwrap());
        let resolving = statement.pins.of(slow.ident()).await;
        let selection = Selection::none();
        let free = tokio::time::timeout(Duration::from_secs(20), statement.pin(&other, &selection)).await;
        let pin = free.expect("it waits for the other table").unwrap();
        assert_eq!(pin.snapshot_id().map(|id| id.0), Some(1));
        // but who asks for the same table waits for it
        let mut same = Box::pin(statement.pin(&slow, &selection));
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut same).await.is_err());
        drop(resolving);
        assert_eq!(same.await.unwrap().snapshot_id().map(|id| id.0), Some(1));
    }
}
