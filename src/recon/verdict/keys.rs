//! One finding and the history of its key: what is known of it, for [`super::decide`].

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;

use super::decide::Facts;
use super::model::{CommitRef, Pattern, VersionLine};
use super::patterns::difference;
use super::{Lake, VERSIONS};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::NoticeKind;
use crate::recon::compare::{Cell, Class, Common, Example, Others};
use crate::recon::keys::{
    Asked, Expected, Key, KeyHistory, KeyScope, Reason, Seen, Span, Version, Written, explain_past,
};
use crate::recon::lookup::Confidence;
use crate::recon::unreferenced::StrayList;
use crate::spec::{Snapshot, SnapshotId};

/// States after or before the pin that are looked at of one key.
const STATES: usize = 2_000;

/// What its history tells of a finding.
#[derive(Debug)]
pub struct Looked {
    /// For the decision.
    pub facts: Facts,
    /// Why, in words.
    pub sentence: String,
    /// The file that shows it.
    pub file: Option<String>,
    /// Sequence number there.
    pub sequence: Option<i64>,
    /// Versions, oldest first.
    pub versions: Vec<VersionLine>,
    /// What is not known of the key.
    pub limits: Vec<NoticeKind>,
}

/// Why a finding cannot be looked up in the table's history; None: it can.
pub fn cannot(lake: &Lake, keys: &[String]) -> Option<String> {
    let schema = &lake.history.pin.schema;
    if !schema.is_primary_key_table() {
        return Some("a row of a table without primary key has no history of its own".to_string());
    }
    let named = |name: &String| keys.iter().any(|own| own.eq_ignore_ascii_case(name));
    let partition = |name: &String| schema.partition_keys.contains(name);
    if let Some(missing) = schema.primary_keys.iter().find(|name| !named(name) && !partition(name)) {
        return Some(format!("the comparison's key lacks column {missing} of the table's primary key"));
    }
    if let Some(other) = keys.iter().find(|own| !schema.primary_keys.iter().any(|name| own.eq_ignore_ascii_case(name)))
    {
        return Some(format!("column {other} of the comparison's key is not of the table's primary key"));
    }
    None
}

/// A value of the source's row, in the form in which it was compared.
#[derive(Debug, Clone)]
struct Wanted {
    /// The place of its column in the table.
    index: usize,
    column: String,
    value: ScalarValue,
}

impl Wanted {
    fn is_in(&self, row: &RecordBatch, common: &Common) -> bool {
        let own = row.columns().get(self.index).and_then(|own| common.of_left(&self.column, own));
        own.as_ref() == Some(&self.value)
    }

    fn expected(&self, common: &Common) -> Expected {
        let (own, common) = (self.clone(), common.clone());
        Expected::of(self.index, move |column| common.of_left(&own.column, column).as_ref() == Some(&own.value))
    }
}

fn place(lake: &Lake, column: &str) -> Option<usize> {
    lake.history.pin.schema.fields.iter().position(|field| field.name.eq_ignore_ascii_case(column))
}

/// The values of one side that a finding shows; None where one of them is no value to compare.
fn values(lake: &Lake, example: &Example, common: &Common, right: bool) -> Option<Vec<Wanted>> {
    let one = |cell: &Cell| {
        let text = if right { &cell.right } else { &cell.left };
        let value = common.compared(&cell.column, text.as_deref())?;
        Some(Wanted { index: place(lake, &cell.column)?, column: cell.column.clone(), value })
    };
    example.cells.iter().map(one).collect()
}

fn has(row: &RecordBatch, wanted: &[Wanted], common: &Common) -> bool {
    wanted.iter().all(|one| one.is_in(row, common))
}

/// The key of the table that a finding is of.
struct Keys {
    /// Those that it may be, the likeliest first.
    likely: Vec<Key>,
    /// Which others it may be.
    others: Others,
}

fn keys_of(lake: &Lake, example: &Example, common: &Common) -> Result<Keys> {
    let (mut values, mut padded, mut others) = (Vec::new(), Vec::new(), Others::None);
    for (name, text) in &example.key {
        let text = text.as_deref().ok_or_else(|| Error::invalid("a key column is NULL").with_code("BadArgument"))?;
        let compared = common.compared(name, Some(text));
        let own = compared.and_then(|value| common.own(name, &value));
        let own = own.ok_or_else(|| {
            let text = format!("{text} is no value that column {name} of the table can hold");
            Error::invalid(text).with_code("BadArgument")
        })?;
        others = others.max(own.others);
        padded.push((name.clone(), own.padded.clone().unwrap_or_else(|| own.value.clone())));
        values.push((name.clone(), own.value));
    }
    let is_padded = padded != values;
    let mut likely = vec![Key::of_columns(&lake.history.pin, values)?];
    if is_padded {
        likely.push(Key::of_columns(&lake.history.pin, padded)?);
    }
    Ok(Keys { likely, others })
}

/// The first of some keys that a file has, else the first, with its past.
async fn past_of(lake: &Lake, keys: Vec<Key>) -> Result<(Key, KeyHistory)> {
    let mut first = None;
    for key in keys {
        let past = KeyHistory::load(&lake.history, &key, KeyScope::default(), &lake.budget, &lake.zone).await?;
        if !past.versions.is_empty() {
            return Ok((key, past));
        }
        first.get_or_insert((key, past));
    }
    first.ok_or_else(|| Error::internal("a finding of no key"))
}

/// The value by which the source's row is looked for.
///
/// A version that is that row is found by any of the values that differ. Where none is, a value that no version has tells:
/// one that an older version happens to have says nothing about the row.
fn telling(one: &One<'_>) -> Option<Expected> {
    let cells = one.cells.as_ref()?;
    if one.past.versions.iter().any(|version| one.is_sources(version)) {
        return cells.first().map(|cell| cell.expected(one.common));
    }
    let known = |cell: &&Wanted| {
        let mut rows = one.past.versions.iter().filter(|version| !version.kind.is_retract());
        rows.any(|version| cell.is_in(&version.row, one.common))
    };
    cells.iter().find(|cell| !known(cell)).map(|cell| cell.expected(one.common))
}

/// Looks a finding up.
///
/// # Errors
/// Storage that does not answer, memory refused; a key that is none of the table's types, or of which it cannot be said
/// which one of the table it is.
pub async fn look(
    lake: &Lake,
    example: &Example,
    strays: &[StrayList],
    common: &Common,
    versions: bool,
) -> Result<Looked> {
    let Keys { likely, others } = keys_of(lake, example, common)?;
    let (key, past) = past_of(lake, likely).await?;
    let single = matches!(example.class, Class::MissingInLake | Class::ExtraInLake);
    let both = matches!(example.class, Class::Different | Class::FilterMismatch);
    let is_missing = example.class == Class::MissingInLake;
    let cells = if both || is_missing { values(lake, example, common, true) } else { None };
    let mut one = One { lake, past: &past, example, common, expected: cells.clone(), cells };
    if both {
        one.complete();
    }
    let named = telling(&one).filter(|_| both);
    let asked = Asked { at: lake.at.id, delta_list: lake.at.delta_manifest_list.clone(), expected: named };
    let mut why = explain_past(&lake.history, &key, &past, &asked, &lake.budget, &lake.zone).await?;
    let is_in_lake = both || matches!(example.class, Class::ExtraInLake | Class::DupLake);
    let is_other = match (why.reason, others) {
        (Reason::NeverSeen, _) if is_in_lake => true,
        (Reason::NeverSeen, Others::Digits) => true,
        (_, Others::None) => false,
        _ => is_in_lake && !one.shows_left(),
    };
    if is_other {
        return Err(Error::invalid(match others {
            Others::None => "no file that is kept holds its key, and the comparison shows it in the lake",
            _ => {
                "its key was compared with less than the columns of the table hold, so several keys of the table stand for \
                 it, and which of them it is cannot be told"
            }
        })
        .with_code("BadArgument"));
    }
    if why.reason == Reason::NeverSeen && others == Others::Blanks {
        // neither as it is nor with all its blanks: so writers have it
        why.confidence = why.confidence.max(Confidence::Inferred);
    }
    let commit = why.commit.as_deref();
    let winner = one.winner();
    let mut facts = Facts {
        class: Some(example.class),
        reason: Some(why.reason),
        confidence: Some(why.confidence),
        commit: commit.map(|commit| lake.commit(commit)),
        before: commit.and_then(|commit| one.before(commit.id)).map(|commit| lake.commit(&commit)),
        clean_at: one.clean(true),
        clean_until: one.clean(false),
        main_user: lake.main_user.clone(),
        ..Facts::default()
    };
    if let Some(loser) = one.loser().filter(|_| why.reason == Reason::SupersededBySequence) {
        facts.expected = one.origin(loser).map(|commit| lake.commit(&commit));
    }
    if let (Some(winner), true) = (winner, example.class == Class::ExtraInLake) {
        (facts.lost_later, facts.rose_again) = one.deletions(winner);
    }
    if both {
        facts.twice = one.twice(winner);
    }
    let name = why.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
    if why.reason == Reason::NotYetCommitted {
        let names = |list: &&StrayList| list.added.iter().any(|entry| Some(entry.file.file_name.as_str()) == name);
        facts.stray_list = strays.iter().find(names).map(|list| list.file.name.clone());
    }
    let schema = &lake.history.pin.schema;
    let in_key = |name: &String| example.key.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    facts.partition_in_key = !schema.partition_keys.is_empty()
        && schema.partition_keys.iter().all(|name| schema.primary_keys.contains(name) && in_key(name));
    // where the table lies is no part of the answer
    let root = format!("{}/", lake.history.table().root());
    let file = why.file.map(|file| file.strip_prefix(&root).map_or(file.clone(), str::to_string));
    let shown = if versions { one.lines(single)? } else { Vec::new() };
    Ok(Looked { facts, sentence: why.sentence, file, sequence: why.sequence, versions: shown, limits: why.limits })
}

struct One<'a> {
    lake: &'a Lake,
    past: &'a KeyHistory,
    example: &'a Example,
    common: &'a Common,
    /// What differs, with the source's values; of rows that only the source has all of them.
    cells: Option<Vec<Wanted>>,
    /// The source's row, as far as it was compared.
    expected: Option<Vec<Wanted>>,
}

impl One<'_> {
    /// Adds what both sides have: the source's row is the lake's but for what differs.
    fn complete(&mut self) {
        let seen = self.past.seen_at(self.at()).find(|span| span.seen.is_row());
        let (Some(expected), Some(row)) = (&mut self.expected, seen.and_then(|span| self.past.row_of(&span.seen)))
        else {
            return;
        };
        for name in self.common.columns() {
            let Some(index) = place(self.lake, name).filter(|index| !expected.iter().any(|own| own.index == *index))
            else {
                continue;
            };
            let value = row.columns().get(index).and_then(|column| self.common.of_left(name, column));
            expected.extend(value.map(|value| Wanted { index, column: name.to_string(), value }));
        }
    }

    /// Whether readers got of the key at the pin what the comparison shows of the lake.
    fn shows_left(&self) -> bool {
        let Some(left) = values(self.lake, self.example, self.common, false) else { return false };
        let mut rows = self.past.seen_at(self.at()).filter_map(|span| self.past.row_of(&span.seen));
        rows.any(|row| has(row, &left, self.common))
    }

    /// Whether a version is the source's row.
    fn is_sources(&self, version: &Version) -> bool {
        !version.kind.is_retract()
            && self.expected.as_ref().is_some_and(|expected| has(&version.row, expected, self.common))
    }

    fn at(&self) -> SnapshotId {
        self.lake.at.id
    }

    /// The commit that a version comes from.
    fn origin(&self, version: &Version) -> Option<Arc<Snapshot>> {
        let known = version.origin.snapshot.and_then(|id| self.past.commit(id)).cloned();
        known.or_else(|| version.added.clone())
    }

    fn origin_id(&self, version: &Version) -> Option<SnapshotId> {
        self.origin(version).map(|commit| commit.id)
    }

    /// The version that readers get at the pin.
    fn winner(&self) -> Option<&Version> {
        let number = self.past.seen_at(self.at()).find_map(|span| match &span.seen {
            Seen::Version(number) => Some(*number),
            Seen::Folded { of, retract: false, .. } => of.last().copied(),
            _ => None,
        })?;
        self.past.versions.get(number)
    }

    /// The newest commit before another one that gave the key a row.
    fn before(&self, commit: SnapshotId) -> Option<Arc<Snapshot>> {
        let rows = self.past.versions.iter().filter(|version| !version.kind.is_retract());
        rows.filter_map(|version| self.origin(version)).filter(|own| own.id < commit).max_by_key(|own| own.id)
    }

    /// The newest version up to the pin that the source's row is.
    fn loser(&self) -> Option<&Version> {
        let rows = self.past.versions.iter().filter(|version| self.is_sources(version));
        let dated = rows.filter_map(|version| Some((self.origin_id(version)?, version)));
        dated.filter(|(id, _)| *id <= self.at()).max_by_key(|(id, _)| *id).map(|(_, version)| version)
    }

    /// Whether readers of a state get of the key what the source has.
    fn is_clean(&self, state: SnapshotId) -> bool {
        let mut rows = self.past.seen_at(state).filter(|span| span.seen.is_row());
        let (first, second) = (rows.next(), rows.next());
        if self.example.class == Class::ExtraInLake {
            return first.is_none() && !self.is_unknown(state);
        }
        match (first, second, &self.expected) {
            (Some(Span { seen, .. }), None, Some(expected)) => {
                self.past.row_of(seen).is_some_and(|row| has(row, expected, self.common))
            }
            _ => false,
        }
    }

    fn is_unknown(&self, state: SnapshotId) -> bool {
        self.past.seen_at(state).any(|span| matches!(span.seen, Seen::Unknown(_)))
    }

    /// The state next to the pin in which it is as the source has it.
    fn clean(&self, later: bool) -> Option<i64> {
        let at = self.at();
        // a commit that is kept for its changes alone has no state to look at
        let states = self.past.states().iter().copied();
        let found = if later {
            states.filter(|id| *id > at).take(STATES).find(|id| self.is_clean(*id))
        } else {
            states.rev().filter(|id| *id < at).take(STATES).find(|id| self.is_clean(*id))
        };
        found.map(|id| id.0)
    }

    /// A deletion that came after the row that readers get: one that lost to it, and whether one is not there any more.
    fn deletions(&self, winner: &Version) -> (Option<CommitRef>, bool) {
        let Some(own) = self.origin_id(winner) else { return (None, false) };
        let later = self.past.versions.iter().filter(|version| version.kind.is_retract());
        let later = later.filter_map(|version| Some((version, self.origin(version)?)));
        let (mut lost, mut gone) = (None, false);
        for (version, commit) in later.filter(|(_, commit)| commit.id > own && commit.id <= self.at()) {
            if version.sequence < winner.sequence {
                lost = Some(self.lake.commit(&commit));
            } else {
                gone = true;
            }
        }
        (lost, gone)
    }

    /// A number that grew by the same amount in two commits one after another, of which the source knows the first.
    fn twice(&self, winner: Option<&Version>) -> Option<(Pattern, CommitRef, CommitRef)> {
        let (second, first) = (winner?, self.loser()?);
        let (later, earlier) = (self.origin(second)?, self.origin(first)?);
        if earlier.id >= later.id {
            return None;
        }
        let rows = self.past.versions.iter().filter(|version| !version.kind.is_retract());
        let dated = rows.filter_map(|version| Some((self.origin_id(version)?, version)));
        let base = dated.filter(|(id, _)| *id < earlier.id).max_by_key(|(id, _)| *id)?.1;
        for cell in &self.example.cells {
            let schema = &self.lake.history.pin.schema;
            let index = schema.fields.iter().position(|field| field.name.eq_ignore_ascii_case(&cell.column))?;
            let (Some(left), Some(right)) = (cell.left.as_deref(), cell.right.as_deref()) else { continue };
            let Ok(Some(before)) = text(&base.row, index) else { continue };
            let (one, other) = (difference(left, right), difference(right, &before));
            if let (Some(delta), true) = (&one, one == other) {
                let pattern = Pattern::Twice { column: cell.column.clone(), delta: delta.clone() };
                return Some((pattern, self.lake.commit(&earlier), self.lake.commit(&later)));
            }
        }
        None
    }

    /// The versions for people.
    fn lines(&self, single: bool) -> Result<Vec<VersionLine>> {
        let schema = &self.lake.history.pin.schema;
        let of_key = |name: &str| self.example.key.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut columns: Vec<(usize, &str)> = Vec::new();
        for (index, field) in schema.fields.iter().enumerate() {
            let differs = self.example.cells.iter().any(|cell| cell.column.eq_ignore_ascii_case(&field.name));
            if differs || single && self.example.cells.is_empty() && !of_key(&field.name) {
                columns.push((index, &field.name));
            }
        }
        let from = self.past.versions.len().saturating_sub(VERSIONS);
        let mut lines = Vec::new();
        for (number, version) in self.past.versions.iter().enumerate().skip(from) {
            let visible = self.past.visible(number);
            let values = columns.iter().map(|(index, name)| Ok(((*name).to_string(), text(&version.row, *index)?)));
            let mut note = version.notes.join("; ");
            if let Some(winner) = version.loses_to() {
                note = format!("lost to version {}{}{note}", winner + 1, if note.is_empty() { "" } else { "; " });
            }
            let commit = self.origin(version);
            lines.push(VersionLine {
                commit: commit.map(|commit| self.lake.commit(&commit)),
                written: match version.written {
                    Written::By(None) => "not told".to_string(),
                    written => written.as_str().unwrap_or("not told").to_string(),
                },
                row_kind: version.kind.as_str().to_string(),
                sequence: version.sequence,
                level: version.level,
                values: values.collect::<Result<Vec<_>>>()?,
                visible_from: visible.map(|(from, _)| from.0),
                visible_to: visible.and_then(|(_, to)| to).map(|to| to.0),
                note,
            });
        }
        Ok(lines)
    }
}

/// A value as it is shown.
fn text(row: &RecordBatch, index: usize) -> Result<Option<String>> {
    let Some(column) = row.columns().get(index) else { return Ok(None) };
    if column.is_null(0) {
        return Ok(None);
    }
    Ok(Some(ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default())?.value(0).to_string()))
}

/// Whether an error about one key leaves the others be.
pub fn is_of_the_key(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Internal)
}
