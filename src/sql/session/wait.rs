//! `WAIT FOR TABLE`: a gate that opens when snapshots are there, and pins the oldest of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, TableFactor};
use futures::TryStreamExt;
use futures::future::{BoxFuture, FutureExt};

use super::journal::Looked;
use super::{Run, Session, SessionConfig, rows};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::NoticeKind;
use crate::recon::gate::{Condition, Gate};
use crate::snapshot::{Pin, PinRequest, Table, TableIdent};
use crate::spec::{CommitIdentifier, Snapshot, SnapshotId};
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::constant::{evaluate, integer, text, watermark};
use crate::sql::names::TableName;
use crate::sql::result::StatementResult;
use crate::sql::selector::Selection;
use crate::sql::settings::SessionPin;
use crate::sql::statements::name_of;
use crate::sql::statements::wait::{Awaited, GatePin, WaitCommand};
use crate::storage::env::now_millis;

/// The first pause between two looks; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest one, unless POLL says otherwise.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The states at which a gate is open.
struct Opened {
    /// For each table the oldest and the newest snapshot that satisfies everything.
    states: Vec<(Arc<Snapshot>, Arc<Snapshot>)>,
    /// Whether the oldest are the newest because a query is not true at older ones: of several tables none is looked for
    /// between.
    newest: bool,
}

impl Session {
    pub(super) async fn wait(&self, run: &Run, command: WaitCommand, looked: &Looked) -> Result<StatementResult> {
        let started = Instant::now();
        let timeout = length(run, &command.timeout, "TIMEOUT")?;
        let longest = match &command.poll {
            Some(poll) => length(run, poll, "POLL")?.max(Duration::from_millis(1)),
            None => LONGEST_PAUSE,
        };
        let (conditions, queries) = conditions(run, &command.conditions)?;
        let mut gates = Vec::new();
        for factor in &command.tables {
            let table = self.gate_table(run, factor).await?;
            gates.push(Gate::new(&table, conditions.clone()));
        }
        let mut pause = FIRST_PAUSE.min(longest);
        let (found, held) = loop {
            if let Some(opened) = self.open(&mut gates, &queries).await? {
                let latest = command.pin == Some(GatePin::Latest);
                let found: Vec<Arc<Snapshot>> =
                    opened.states.into_iter().map(|(oldest, newest)| if latest { newest } else { oldest }).collect();
                match self.held(run, &gates, &found, command.pin).await {
                    Ok(held) => {
                        if opened.newest && !latest {
                            let tables = gates.iter().map(|gate| gate.table().name()).collect();
                            run.statement.notice(NoticeKind::NewestStates { tables });
                        }
                        break (found, held);
                    }
                    // it expired between the look and the pin: a later one is found at the next look
                    Err(error) if is_expired(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            let waited = started.elapsed();
            if waited >= timeout {
                looked
                    .at(gates.iter().map(|gate| (gate.table().as_ref(), gate.newest().map(|newest| newest.as_ref()))));
                return Err(not_open(run, &gates, waited, &queries));
            }
            tokio::time::sleep(pause.min(timeout.saturating_sub(waited))).await;
            pause = pause.saturating_mul(2).min(longest);
        };
        let waited = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        looked.at(gates.iter().zip(&found).map(|(gate, chosen)| (gate.table().as_ref(), Some(chosen.as_ref()))));
        let mut answer = Vec::new();
        for (gate, chosen) in gates.iter().zip(&found) {
            let raisers = gate.raisers();
            if raisers.len() > 1 && conditions.iter().any(|one| matches!(one, Condition::Watermark(_))) {
                let users = raisers.into_keys().map(str::to_string).collect();
                run.statement.notice(NoticeKind::SeveralRaiseWatermark { table: gate.table().name(), users });
            }
            answer.push(self.gate_row(run, gate, chosen, waited));
        }
        self.settings().pins.write().extend(held);
        Ok(rows(cells::batch(&schema(), &answer)?, run))
    }

    /// The pins that the gate leaves; none where it leaves none.
    async fn held(
        &self,
        run: &Run,
        gates: &[Gate],
        found: &[Arc<Snapshot>],
        pin: Option<GatePin>,
    ) -> Result<Vec<(TableIdent, SessionPin)>> {
        let mut held = Vec::new();
        if pin.is_none() {
            return Ok(held);
        }
        for (gate, chosen) in gates.iter().zip(found) {
            let selection = Selection { request: PinRequest::SnapshotId(chosen.id.0), ..Selection::none() };
            let pin = run.statement.pin_anew(gate.table(), &selection).await?;
            let said = selection.suffix();
            held.push((gate.table().ident().clone(), SessionPin { pin, said, options: BTreeMap::new() }));
        }
        Ok(held)
    }

    /// The states at which all is satisfied, when there are some.
    async fn open(&self, gates: &mut [Gate], queries: &[String]) -> Result<Option<Opened>> {
        let opened = |states| Ok(Some(Opened { states, newest: false }));
        let mut found = Vec::with_capacity(gates.len());
        for gate in gates.iter_mut() {
            let satisfied = gate.look().await?;
            let (Some(oldest), Some(newest)) = (satisfied.first(), satisfied.last()) else { return Ok(None) };
            found.push((Arc::clone(oldest), Arc::clone(newest)));
        }
        if queries.is_empty() {
            return opened(found);
        }
        let tables: Vec<Arc<Table>> = gates.iter().map(|gate| Arc::clone(gate.table())).collect();
        // the same gate gives the same snapshots again, where the oldest ones do
        let oldest: Vec<&Arc<Snapshot>> = found.iter().map(|(oldest, _)| oldest).collect();
        if self.all_true(&tables, &oldest, queries).await? {
            return opened(found);
        }
        // as long as it is not true at the newest, those between need no look
        let newest: Vec<&Arc<Snapshot>> = found.iter().map(|(_, newest)| newest).collect();
        if !self.all_true(&tables, &newest, queries).await? {
            return Ok(None);
        }
        // with one table the oldest is looked for; of several the newest are taken
        if let ([gate], [pair]) = (&mut *gates, found.as_mut_slice()) {
            let satisfied = gate.look().await?.to_vec();
            for snapshot in satisfied.into_iter().skip(1) {
                if self.all_true(&tables, &[&snapshot], queries).await? {
                    pair.0 = snapshot;
                    break;
                }
            }
            return opened(found);
        }
        for pair in &mut found {
            pair.0 = Arc::clone(&pair.1);
        }
        Ok(Some(Opened { states: found, newest: true }))
    }

    /// Whether all queries answer true with the tables at these snapshots; not where one of them has expired meanwhile.
    async fn all_true(&self, tables: &[Arc<Table>], snapshots: &[&Arc<Snapshot>], queries: &[String]) -> Result<bool> {
        let config = SessionConfig {
            database: Some(self.database()),
            time_zone: Some(self.time_zone()),
            parameters: self.settings().parameters.read().clone(),
            ..SessionConfig::default()
        };
        let session = Session::new(&self.warehouse, config).await?;
        let zone = session.zone()?;
        for (table, snapshot) in tables.iter().zip(snapshots) {
            let request = PinRequest::SnapshotId(snapshot.id.0);
            let pin = match Pin::resolve_in(table, request, &BTreeMap::new(), &zone).await {
                Err(error) if is_expired(&error) => return Ok(false),
                pin => pin?,
            };
            let said = format!("v{}", snapshot.id);
            let held = SessionPin { pin, said, options: BTreeMap::new() };
            session.settings().pins.write().insert(table.ident().clone(), held);
        }
        for query in queries {
            match is_true(&session, query).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) if is_expired(&error) => {
                    // the query may ask for a state of its own that is gone
                    for (table, snapshot) in tables.iter().zip(snapshots) {
                        if table.snapshot(snapshot.id).await.is_err() {
                            return Ok(false);
                        }
                    }
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    async fn gate_table(&self, run: &Run, factor: &TableFactor) -> Result<Arc<Table>> {
        let Some(name) = name_of(factor) else { return Err(Error::internal("a gate without a table")) };
        let (database, name) = self.table_name(name)?;
        let parts = TableName::parse(&name);
        if parts.system.is_some() {
            return Err(
                Error::invalid(format!("{name} is a system table; wait for the table itself")).with_code("BadSelector")
            );
        }
        let table = run.statement.table(&database, &name).await?;
        Ok(run.statement.on_branch(table, parts, &Selection::none()).await?.0)
    }

    fn gate_row(&self, run: &Run, gate: &Gate, snapshot: &Snapshot, waited: i64) -> Vec<Cell> {
        let zone = run.statement.zone();
        let wall = |millis: i64| millis.saturating_add(i64::from(zone.offset_seconds(millis)) * 1_000);
        vec![
            Cell::text(gate.table().name()),
            Cell::Bool(true),
            Cell::Long(waited),
            Cell::Long(snapshot.id.0),
            Cell::opt_text(snapshot.watermark.map(|watermark| zone.show_watermark(watermark))),
            Cell::text(&snapshot.commit_user),
            Cell::Long(snapshot.commit_identifier),
            Cell::Time(wall(snapshot.time_millis)),
        ]
    }
}

/// Whether a snapshot is gone that was there when it was looked at.
fn is_expired(error: &Error) -> bool {
    ["SnapshotExpired", "SnapshotNotFound"].contains(&error.code())
}

/// Whether a query answers true. Boxed: a gate could ask for a gate.
fn is_true<'a>(session: &'a Session, query: &'a str) -> BoxFuture<'a, Result<bool>> {
    async move {
        let answer = session.run_one(query).await?;
        let fields = answer.schema.fields().len();
        let batches: Vec<RecordBatch> = answer.stream.try_collect().await.map_err(Error::from_datafusion)?;
        let held: usize = batches.iter().map(RecordBatch::num_rows).sum();
        match batches.iter().find(|batch| batch.num_rows() > 0) {
            Some(batch) if held == 1 && fields == 1 && *batch.column(0).data_type() == DataType::Boolean => {
                let array = batch.column(0).as_boolean();
                Ok(array.is_valid(0) && array.value(0))
            }
            None if fields == 1 => Ok(false),
            _ => Err(Error::invalid(format!("QUERY ({query}) does not answer one value that is true or false"))
                .with_code("BadCondition")
                .with_hint("write QUERY (SELECT max(pay_time) >= TIMESTAMP '…' FROM t)")),
        }
    }
    .boxed()
}

fn schema() -> arrow::datatypes::SchemaRef {
    cells::schema(&[
        ("table", Kind::Text, true),
        ("satisfied", Kind::Bool, true),
        ("waited_ms", Kind::Long, true),
        ("snapshot_id", Kind::Long, true),
        ("watermark", Kind::Text, false),
        ("commit_user", Kind::Text, true),
        ("commit_identifier", Kind::Long, true),
        ("commit_time", Kind::Time, true),
    ])
}

/// The error of a gate that did not open in time.
fn not_open(run: &Run, gates: &[Gate], waited: Duration, queries: &[String]) -> Error {
    let zone = run.statement.zone();
    let told: Vec<String> =
        gates.iter().map(|gate| format!("{}: {}", gate.table().name(), gate.diagnosis(now_millis(), zone))).collect();
    let also = if queries.is_empty() { "" } else { "; the QUERY may not be true yet" };
    Error::new(
        ErrorKind::Exhausted,
        format!("the gate did not open within {:.1} s: {}{also}", waited.as_secs_f64(), told.join("; ")),
    )
    .with_code("GateTimeout")
    .with_hint("SELECT * FROM t$commits shows who committed what; wait longer, or ask for less")
}

/// A length of time.
fn length(run: &Run, expr: &Expr, what: &str) -> Result<Duration> {
    let wrong = || {
        Error::invalid(format!("{what} {expr} is no length of time"))
            .with_code("BadArgument")
            .with_hint(format!("write {what} INTERVAL '10' MINUTE"))
    };
    let millis = match evaluate(&run.state, expr)? {
        ScalarValue::IntervalMonthDayNano(Some(length)) if length.months == 0 => {
            i64::from(length.days).saturating_mul(86_400_000).saturating_add(length.nanoseconds / 1_000_000)
        }
        ScalarValue::IntervalDayTime(Some(length)) => {
            i64::from(length.days).saturating_mul(86_400_000).saturating_add(i64::from(length.milliseconds))
        }
        _ => return Err(wrong()),
    };
    u64::try_from(millis).map(Duration::from_millis).map_err(|_| wrong())
}

/// Conditions on snapshots, and queries.
fn conditions(run: &Run, awaited: &[Awaited]) -> Result<(Vec<Condition>, Vec<String>)> {
    let (mut all, mut queries) = (Vec::new(), Vec::new());
    let wrong = |expr: &Expr, what: &str| Error::invalid(format!("{expr} is no {what}")).with_code("BadArgument");
    for one in awaited {
        match one {
            Awaited::Watermark(expr) => match watermark(&run.state, expr, run.statement.zone())? {
                PinRequest::Watermark(millis) | PinRequest::WatermarkTime(millis) => {
                    all.push(Condition::Watermark(millis));
                }
                _ => return Err(wrong(expr, "watermark")),
            },
            Awaited::Commit(both) => {
                let [user, identifier] = both.as_ref();
                let name = text(user).ok_or_else(|| wrong(user, "commit user"))?.to_string();
                let number = integer(identifier)
                    .or_else(|| Some(CommitIdentifier::parse(text(identifier)?)?.0))
                    .ok_or_else(|| wrong(identifier, "commit identifier"))?;
                all.push(Condition::Commit { user: name, identifier: number });
            }
            Awaited::Snapshot(expr) => {
                let id = integer(expr).ok_or_else(|| wrong(expr, "snapshot number"))?;
                all.push(Condition::Snapshot(SnapshotId(id)));
            }
            Awaited::Tag(expr) => {
                let name = text(expr).ok_or_else(|| wrong(expr, "name of a tag"))?;
                all.push(Condition::Tag(name.to_string()));
            }
            Awaited::Query(query) => queries.push(query.clone()),
        }
    }
    Ok((all, queries))
}
