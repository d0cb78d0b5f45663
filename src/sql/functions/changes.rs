//! Changes as written: changelog files, or the rows APPEND snapshots added; and the `incremental-between` options.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;

use super::diff;
use crate::error::{Error, Result};
use crate::notice::NoticeKind;
use crate::query::LakeView;
use crate::scan::ChangeRange;
use crate::snapshot::{Pin, PinRequest, Table, parse_timestamp};
use crate::spec::options::ChangelogProducer;
use crate::spec::{SnapshotId, TableSchema};
use crate::sql::memory::empty;
use crate::sql::selector::{Selection, drop_choices, one_choice};
use crate::sql::statement::Statement;

/// The range a call names.
pub(super) struct Asked<'a> {
    /// Exclusive start.
    pub(super) from: &'a PinRequest,
    /// Inclusive end; the state read when it is not said.
    pub(super) to: Option<&'a PinRequest>,
    /// The state whose columns are shown and beyond which nothing is read.
    pub(super) at: Option<&'a PinRequest>,
}

/// `paimon_changes` and `paimon_delta`.
pub(super) async fn between(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    asked: Asked<'_>,
    delta: bool,
) -> Result<Arc<dyn TableProvider>> {
    let at = match asked.at {
        Some(request) => {
            Some(statement.pin_unread(table, &Selection { request: request.clone(), ..Selection::none() }).await?)
        }
        None => None,
    };
    let id = |pin: &Pin| pin.snapshot.as_ref().map_or(0, |snapshot| snapshot.id.0);
    let to = match (asked.to, &at) {
        (Some(request), _) => id_of(statement, table, request).await?,
        (None, Some(at)) => id(at),
        (None, None) => id(statement.pin_unread(table, &Selection::none()).await?.as_ref()),
    };
    if let Some(at) = at.as_deref().map(id).filter(|at| to > *at) {
        return Err(Error::invalid(format!("the range ends at snapshot {to}, after the state asked for, {at}"))
            .with_code("BadRange")
            .with_context("table", table.name()));
    }
    let from = id_of(statement, table, asked.from).await?;
    let mode = if delta { Mode::Delta } else { Mode::Changelog };
    let schema = at.map(|at| Arc::clone(&at.schema));
    changes(statement, table, from, to, Read { mode, kinds: true, schema }, &BTreeMap::new()).await
}

/// The id an end of a range means; a number need not exist (ranges are exclusive at their start).
async fn id_of(statement: &Arc<Statement>, table: &Arc<Table>, request: &PinRequest) -> Result<i64> {
    if let PinRequest::SnapshotId(id) = request {
        return Ok(*id);
    }
    let selection = Selection { request: request.clone(), ..Selection::none() };
    match &statement.pin_unread(table, &selection).await?.snapshot {
        Some(snapshot) => Ok(snapshot.id.0),
        None => Err(Error::not_found("the table has no snapshot").with_code("SnapshotNotFound")),
    }
}

/// How changes are read.
struct Read {
    mode: Mode,
    /// As `$audit_log`.
    kinds: bool,
    /// Schema of the columns; None: that of today.
    schema: Option<Arc<TableSchema>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Delta,
    Changelog,
    Diff,
}

/// The table as a reference says: its rows, or changes when options ask for them. `kinds`: as `$audit_log`.
pub(crate) async fn table_or_changes(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    selection: &Selection,
    kinds: bool,
) -> Result<Arc<dyn TableProvider>> {
    let ident = table.ident();
    let mut options = statement.settings().options_for(&ident.database, &ident.table);
    let asks = |options: &BTreeMap<String, String>| {
        options.contains_key("incremental-between") || options.contains_key("incremental-between-timestamp")
    };
    // a clause or hint goes before the session's pin, and that before what was SET
    if selection.chooses() || statement.settings().pins.read().contains_key(ident) {
        drop_choices(&mut options);
    }
    one_choice(&options)?;
    options.extend(selection.options.clone());
    if !asks(&options) || options.contains_key("incremental-to-auto-tag") {
        let pin = statement.pin(table, selection).await?;
        let view = if kinds { LakeView::AuditLog } else { LakeView::Rows };
        return Ok(Arc::new(statement.lake_table(pin, view)?));
    }
    if let Some(mode) = options.get("scan.mode")
        && !["incremental", "default"].iter().any(|fine| mode.eq_ignore_ascii_case(fine))
    {
        return Err(Error::invalid(format!("scan.mode = {mode} and a range of changes exclude each other"))
            .with_code("ConflictingSelectors")
            .with_context("option", "scan.mode")
            .with_hint("leave out scan.mode or the incremental-between option"));
    }
    let rest: BTreeMap<String, String> = options
        .iter()
        .filter(|(key, _)| !key.starts_with("incremental-") && *key != "scan.mode")
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let mode = mode_of(options.get("incremental-between-scan-mode").map_or("auto", String::as_str))?;
    let before = statement.used_count();
    let changes = match options.get("incremental-between") {
        Some(range) => by_version(statement, table, range, &options, mode, kinds, &rest).await,
        None => {
            let range = options.get("incremental-between-timestamp").cloned().unwrap_or_default();
            by_time(statement, table, &range, mode, kinds, &rest).await
        }
    }?;
    if !asks(&selection.options) {
        statement.chosen_by_session(ident, before);
    }
    Ok(changes)
}

/// The mode of `incremental-between-scan-mode`; None: the table's options decide.
fn mode_of(text: &str) -> Result<Option<Mode>> {
    Ok(match text.to_lowercase().as_str() {
        "auto" => None,
        "delta" => Some(Mode::Delta),
        "changelog" => Some(Mode::Changelog),
        "diff" => Some(Mode::Diff),
        other => {
            return Err(Error::invalid(format!("'{other}' is no scan mode"))
                .with_code("BadOption")
                .with_context("option", "incremental-between-scan-mode")
                .with_hint("known modes: auto, delta, changelog, diff"));
        }
    })
}

/// Whether the value of an `incremental-…` option can be one at all.
pub(crate) fn check_range_option(option: &str, value: &str) -> Result<()> {
    match option {
        "incremental-between" => halves(value, "incremental-between").map(drop),
        "incremental-between-timestamp" => halves(value, "incremental-between-timestamp").map(drop),
        "incremental-between-scan-mode" => mode_of(value).map(drop),
        "incremental-between-tag-to-snapshot" if !["true", "false"].contains(&value.to_lowercase().as_str()) => {
            Err(Error::invalid(format!("'{value}' is neither true nor false"))
                .with_code("BadOption")
                .with_context("option", "incremental-between-tag-to-snapshot"))
        }
        _ => Ok(()),
    }
}

fn halves<'a>(range: &'a str, option: &'static str) -> Result<(&'a str, &'a str)> {
    match range.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
        [from, to] if !from.is_empty() && !to.is_empty() => Ok((*from, *to)),
        _ => Err(Error::invalid(format!("'{range}' is no range"))
            .with_code("BadOption")
            .with_context("option", option)
            .with_hint("write two values with a comma between, start exclusive: 1,5")),
    }
}

async fn by_version(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    range: &str,
    options: &BTreeMap<String, String>,
    mode: Option<Mode>,
    kinds: bool,
    rest: &BTreeMap<String, String>,
) -> Result<Arc<dyn TableProvider>> {
    let (from, to) = halves(range, "incremental-between")?;
    let (first, second) = (table.tag(from).await?, table.tag(to).await?);
    if let (Some(first), Some(second)) = (&first, &second) {
        let ids = (first.snapshot.id.0, second.snapshot.id.0);
        let by_ids = options.get("incremental-between-tag-to-snapshot").is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if by_ids {
            let mode = resolve_mode(table, mode).await?;
            return changes(statement, table, ids.0, ids.1, Read { mode, kinds, schema: None }, rest).await;
        }
        if ids.0 > ids.1 {
            return Err(reversed(ids.0, ids.1));
        }
        let at = |tag: &str| Selection { request: PinRequest::Tag(tag.to_string()), options: rest.clone() };
        let after = statement.pin(table, &at(to)).await?;
        let before = statement.pin(table, &at(from)).await?;
        return diff::incremental(statement, Some(before), after, kinds, ids.0 == ids.1).await;
    }
    let refused = |message: String, also: String| {
        Error::invalid(message)
            .with_code("BadOption")
            .with_context("option", "incremental-between")
            .with_context("table", table.name())
            .with_hint(format!("give two tags or two snapshot ids, start exclusive{also}"))
    };
    let numbers = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(from), Ok(to)) => Ok((from, to)),
        (start, _) => {
            // of a tag and a text that is nothing, the text is the fault
            let nothing = match (&first, &second, start.is_ok(), to.parse::<i64>().is_ok()) {
                (None, _, false, _) => Some(from),
                (_, None, _, false) => Some(to),
                _ => None,
            };
            Err(match (nothing, first.map(|tag| (from, to, tag)).or(second.map(|tag| (to, from, tag)))) {
                (None, Some((tag, other, held))) => refused(
                    format!("'{tag}' is a tag and '{other}' is a snapshot id: a range is of two of a kind"),
                    format!("; tag '{tag}' holds snapshot {}", held.snapshot.id),
                ),
                (nothing, _) => {
                    let text = nothing.unwrap_or(from);
                    refused(format!("'{text}' is neither a tag nor a snapshot id"), String::new())
                }
            })
        }
    };
    let (from, to) = numbers?;
    let mode = resolve_mode(table, mode).await?;
    changes(statement, table, from, to, Read { mode, kinds, schema: None }, rest).await
}

async fn by_time(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    range: &str,
    mode: Option<Mode>,
    kinds: bool,
    rest: &BTreeMap<String, String>,
) -> Result<Arc<dyn TableProvider>> {
    let (from, to) = halves(range, "incremental-between-timestamp")?;
    // the option's unit is milliseconds: unlike in a clause, digits have one meaning
    let time = |text: &str| match text.parse::<i64>() {
        Ok(millis) => Ok(millis),
        Err(_) => parse_timestamp(text, statement.zone()),
    };
    let (from, to) = (time(from)?, time(to)?);
    if to < from {
        return Err(Error::invalid("the range of incremental-between-timestamp ends before it starts")
            .with_code("BadOption")
            .with_context("option", "incremental-between-timestamp"));
    }
    let mode = resolve_mode(table, mode).await?;
    let snapshots = table.snapshots().await?;
    let (Some(first), Some(last)) = (snapshots.iter().min_by_key(|s| s.id), snapshots.iter().max_by_key(|s| s.id))
    else {
        return nothing(statement, table, kinds, rest).await;
    };
    if from == to || from > last.time_millis || to < first.time_millis {
        return nothing(statement, table, kinds, rest).await;
    }
    let at = |time: i64| snapshots.iter().filter(|s| s.time_millis <= time).map(|s| s.id.0).max();
    let start = at(from);
    let end = at(to).unwrap_or(last.id.0);
    if mode == Mode::Diff && start.is_none() {
        // nothing before: all of the end state, unless history was cut, then from the earliest kept
        let after = pin_at(statement, table, end, rest).await?;
        let before = if first.id.0 == 1 { None } else { Some(pin_at(statement, table, first.id.0, rest).await?) };
        return diff::incremental(statement, before, after, kinds, false).await;
    }
    let read = Read { mode, kinds, schema: None };
    changes(statement, table, start.unwrap_or(first.id.0 - 1), end, read, rest).await
}

async fn resolve_mode(table: &Arc<Table>, mode: Option<Mode>) -> Result<Mode> {
    if let Some(mode) = mode {
        return Ok(mode);
    }
    let options = crate::spec::CoreOptions::parse(&table.latest_schema().await?.options)?;
    Ok(if options.changelog_producer == ChangelogProducer::None { Mode::Delta } else { Mode::Changelog })
}

fn reversed(from: i64, to: i64) -> Error {
    Error::invalid(format!("the range starts at snapshot {from} and ends before it, at {to}"))
        .with_code("BadRange")
        .with_hint("give the earlier snapshot first; paimon_diff takes both directions")
}

async fn pin_at(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    id: i64,
    options: &BTreeMap<String, String>,
) -> Result<Arc<Pin>> {
    statement.pin(table, &Selection { request: PinRequest::SnapshotId(id), options: options.clone() }).await
}

async fn nothing(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    kinds: bool,
    options: &BTreeMap<String, String>,
) -> Result<Arc<dyn TableProvider>> {
    let pin = statement.pin(table, &Selection { request: PinRequest::Latest, options: options.clone() }).await?;
    let view = if kinds { LakeView::AuditLog } else { LakeView::Rows };
    Ok(empty(statement.lake_table(pin, view)?.schema()))
}

/// The changes in (`from`, `to`].
async fn changes(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    from: i64,
    to: i64,
    read: Read,
    options: &BTreeMap<String, String>,
) -> Result<Arc<dyn TableProvider>> {
    let Read { mode, kinds, schema } = read;
    let (earliest, latest) = (table.earliest_snapshot_id().await?, table.latest_snapshot_id().await?);
    let (Some(mut earliest), Some(latest)) = (earliest, latest) else {
        return nothing(statement, table, kinds, options).await;
    };
    if from < earliest.0 - 1 {
        // the hint is believed where it is enough; before anything is refused what is there is listed
        earliest = table.snapshot_ids().await?.into_iter().fold(earliest, SnapshotId::min);
    }
    if to < from {
        return Err(reversed(from, to));
    }
    // changelogs may be kept longer than the snapshots they came with; a delta needs the snapshot
    let first = match mode {
        Mode::Changelog => table.changelog_ids().await?.into_iter().fold(earliest, SnapshotId::min),
        _ => earliest,
    };
    if from < first.0 - 1 || to > latest.0 {
        return Err(Error::not_found(format!("changes after snapshot {from} up to {to} are not all there"))
            .with_code(if from < first.0 - 1 { "SnapshotExpired" } else { "SnapshotNotFound" })
            .with_context("table", table.name())
            .with_hint(format!("kept are snapshots {earliest} to {latest}; a range may start at {}", first.0 - 1)));
    }
    if from == to {
        return nothing(statement, table, kinds, options).await;
    }
    if mode == Mode::Diff {
        let after = pin_at(statement, table, to, options).await?;
        let before = pin_at(statement, table, from, options).await?;
        return diff::incremental(statement, Some(before), after, kinds, false).await;
    }
    // the columns of a range are those of today, unless the call names a state
    let schema = match schema {
        Some(schema) => schema,
        None => table.latest_schema().await?,
    };
    let range = ChangeRange { after: SnapshotId(from), upto: SnapshotId(to) };
    let request = match to < earliest.0 {
        // only the changelog of that snapshot is left
        true => PinRequest::Latest,
        false => PinRequest::SnapshotId(to),
    };
    let end = Selection { request, options: options.clone() };
    let pin = statement.pin_of_changes(table, &end, &schema, range).await?;
    if mode == Mode::Changelog && pin.options.changelog_producer == ChangelogProducer::None {
        statement.notice(NoticeKind::NoChangelog { table: table.name() });
    }
    let view = match mode {
        Mode::Delta => LakeView::Delta { range, kinds },
        _ => LakeView::Changelog { range, kinds },
    };
    Ok(Arc::new(statement.lake_table(pin, view)?))
}
