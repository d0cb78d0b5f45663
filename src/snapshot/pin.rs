//! A table fixed at one snapshot and its schema: what every read starts from.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::columns;
use super::fingerprint::{Fingerprint, SnapshotFingerprint};
use super::nullability::{kept_by_branch, kept_by_files};
use super::options::{options_in_force, remove_positions, request_of};
use super::renamed::options_then;
use super::table::{Table, ranges_text};
use super::travel::{Chosen, PinRequest, Traveller};
use super::zone::SessionZone;
use crate::error::{Error, ErrorKind, Result};
use crate::notice::{Notice, NoticeKind};
use crate::spec::{CommitIdentifier, CoreOptions, DataField, DataType, SchemaId, Snapshot, SnapshotId, TableSchema};
use crate::storage::Location;

/// A table fixed at one snapshot and its schema. Immutable, shared by `Arc`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pin {
    /// The table and branch.
    pub table: Arc<Table>,
    /// The snapshot; None for a table without snapshots, which reads as empty.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Columns: the latest schema without time travel, else the snapshot's; NOT NULL only where no file of the table
    /// can hold NULL.
    pub schema: Arc<TableSchema>,
    /// The same schema as it was declared, with every NOT NULL.
    pub declared: Arc<TableSchema>,
    /// Options: those of the latest schema, overlaid with the caller's.
    pub options: Arc<CoreOptions>,
    /// What was asked for, options included; a quoted version is told apart.
    pub request: PinRequest,
    /// What was chosen.
    pub fingerprint: Fingerprint,
    /// What the user should know about the choice.
    pub notices: Vec<Notice>,
    /// The tag it was chosen by, which holds its files.
    pub tag: Option<String>,
    /// `scan.fallback-branch`: partitions this pin lacks are read from that one.
    pub fallback: Option<Arc<Pin>>,
    /// `scan.primary-branch`: partitions that one lacks are read from this pin.
    pub primary: Option<Arc<Pin>>,
    /// The table's newest schema when the pin was made; columns may be of an older one.
    pub latest_schema_id: SchemaId,
    /// `options` as text, columns by the names of the newest schema.
    pub(crate) newest_options: Arc<BTreeMap<String, String>>,
}

impl Pin {
    /// Fixes `table` at what `request` asks for. Options are those of the latest schema, overlaid with
    /// `dynamic_options`; their `scan.*` decide when the request is [`PinRequest::Latest`]. Wall-clock times in options
    /// are UTC: see [`Pin::resolve_in`].
    pub async fn resolve(
        table: &Arc<Table>,
        request: PinRequest,
        dynamic_options: &BTreeMap<String, String>,
    ) -> Result<Arc<Self>> {
        Self::resolve_in(table, request, dynamic_options, &SessionZone::utc()).await
    }

    /// As [`Pin::resolve`], with the session's zone for wall-clock times in options and in messages.
    ///
    /// Cost: the newest schema (a listing, and a read unless it is known), then for the latest snapshot or an id two
    /// or three small reads, for times, watermarks and commits a listing and the snapshots from one end to the hit.
    pub async fn resolve_in(
        table: &Arc<Table>,
        request: PinRequest,
        dynamic_options: &BTreeMap<String, String>,
        zone: &SessionZone,
    ) -> Result<Arc<Self>> {
        let mut dynamic_options = dynamic_options.clone();
        let told = dynamic_options.contains_key("branch");
        let table = match dynamic_options.remove("branch").map(|branch| branch.trim().to_string()) {
            Some(branch) if branch != table.ident().branch => table.branch(&branch).await?,
            _ => Arc::clone(table),
        };
        let mut outcome = Self::resolve_alone(&table, request.clone(), &dynamic_options, zone).await;
        let mut table = table;
        if !told && let Some(branch) = branch_by_option(&table, &outcome).await {
            let named = |error: Error| error.with_context("option", "branch");
            table = table.branch(&branch).await.map_err(named)?;
            outcome = Self::resolve_alone(&table, request, &dynamic_options, zone).await;
            if let Ok(pin) = &mut outcome {
                pin.notices.push(NoticeKind::BranchByOption { branch }.into());
            }
        }
        let mut pin = outcome?;
        pin.add_branches(None, &dynamic_options, zone).await?;
        Ok(Arc::new(pin))
    }

    /// Adds the branch that the options say completes this one; `known` is a pin of the same state that may have it.
    async fn add_branches(
        &mut self,
        known: Option<&Self>,
        dynamic_options: &BTreeMap<String, String>,
        zone: &SessionZone,
    ) -> Result<()> {
        let own = &self.table.ident().branch;
        let scan = &self.options.scan;
        let (option, branch) = match (&scan.fallback_branch, &scan.primary_branch) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {
                return Err(Error::unsupported("a table cannot have both a fallback and a primary branch")
                    .with_code("UnsupportedOption")
                    .with_context("table", self.table.name())
                    .with_context("option", "scan.primary-branch")
                    .with_hint("read the branches one by one, as t$branch_name"));
            }
            (Some(branch), None) => ("scan.fallback-branch", branch.clone()),
            (None, Some(branch)) => ("scan.primary-branch", branch.clone()),
        };
        if branch == *own {
            return Ok(());
        }
        let fallback = option == "scan.fallback-branch";
        let known = known.and_then(|pin| if fallback { pin.fallback.as_ref() } else { pin.primary.as_ref() });
        let other = match known.filter(|other| other.table.ident().branch == branch) {
            Some(other) => Arc::clone(other),
            None => self.other_branch(option, &branch, dynamic_options, zone).await?,
        };
        self.schema = kept_by_branch(&self.schema, &other.schema);
        if fallback {
            self.fallback = Some(other);
        } else {
            self.primary = Some(other);
        }
        Ok(())
    }

    /// Without fallback and primary branches.
    async fn resolve_alone(
        table: &Arc<Table>,
        request: PinRequest,
        dynamic_options: &BTreeMap<String, String>,
        zone: &SessionZone,
    ) -> Result<Self> {
        let named = |error: Error| error.with_context("table", table.name());
        let mut latest_schema = table.latest_schema().await?;
        let mut tries = 0;
        let (newest_options, chosen) = loop {
            let merged = options_in_force(&latest_schema.options, dynamic_options, &request);
            let options = CoreOptions::parse(&merged)
                .map_err(|error| table.of_options(error, &latest_schema, dynamic_options))?;
            let wanted = match &request {
                PinRequest::Latest => request_of(&options.scan, zone).map_err(named)?,
                given => given.clone(),
            };
            let chosen = Traveller { table, options: &options, zone }.choose(wanted).await?;
            let newer = chosen.snapshot.as_ref().filter(|snapshot| snapshot.schema_id > latest_schema.id);
            let Some(newer) = newer else { break (merged, chosen) };
            tries += 1;
            latest_schema = if tries < 3 {
                // the table was altered and written between the two looks
                table.latest_schema().await?
            } else {
                // it is lost: with an older one columns would be missing and options be of another time
                table.schema(newer.schema_id).await.map_err(|e| e.with_context("snapshot", newer.id))?
            };
        };
        let Chosen { snapshot, tag, mut notices, request } = chosen;
        let declared = match &snapshot {
            Some(snapshot) if request.takes_snapshot_schema() && snapshot.schema_id != latest_schema.id => {
                table.schema(snapshot.schema_id).await.map_err(|e| e.with_context("snapshot", snapshot.id))?
            }
            _ => Arc::clone(&latest_schema),
        };
        let schema = read_schema(table, &declared, snapshot.as_deref()).await?;
        let options = options_of(&newest_options, &latest_schema, &schema)
            .map_err(|error| table.of_options(error, &latest_schema, dynamic_options))?;
        notices.extend(options.notices(&schema));
        let fingerprint = Fingerprint {
            location: table.root().clone(),
            branch: table.ident().branch.clone(),
            snapshot: snapshot.as_deref().map(SnapshotFingerprint::from),
        };
        Ok(Self {
            table: Arc::clone(table),
            snapshot,
            schema,
            declared,
            options,
            request,
            fingerprint,
            notices,
            tag,
            fallback: None,
            primary: None,
            latest_schema_id: latest_schema.id,
            newest_options: Arc::new(newest_options),
        })
    }

    /// The state of another branch that completes this one.
    async fn other_branch(
        &self,
        option: &'static str,
        branch: &str,
        dynamic_options: &BTreeMap<String, String>,
        zone: &SessionZone,
    ) -> Result<Arc<Self>> {
        let with_option = |error: Error| error.with_context("option", option);
        let table = self.table.branch(branch).await.map_err(with_option)?;
        let mut options = dynamic_options.clone();
        remove_positions(&mut options);
        let pin = match &self.request {
            // the same words, resolved in the other branch
            PinRequest::Latest
            | PinRequest::Tag(_)
            | PinRequest::TimestampMillis(_)
            | PinRequest::Watermark(_)
            | PinRequest::WatermarkTime(_)
            | PinRequest::CompactedFull => {
                Self::resolve_alone(&table, self.request.clone(), &options, zone).await.map_err(with_option)?
            }
            by_id if option == "scan.primary-branch" => {
                return Err(Error::unsupported(format!(
                    "{by_id} is a state of one branch; with a primary branch it is not clear of which"
                ))
                .with_code("UnsupportedOption")
                .with_context("table", self.table.name())
                .with_context("option", option)
                .with_hint("choose by tag, timestamp or watermark"));
            }
            _ => {
                let millis = self.snapshot.as_ref().map_or(i64::MAX, |snapshot| snapshot.time_millis);
                Self::resolve_as_of(&table, millis, &options, zone).await.map_err(with_option)?
            }
        };
        if !same_columns(&self.schema.fields, &pin.schema.fields) {
            return Err(Error::invalid(format!(
                "schema {} of branch '{branch}' and schema {} of branch '{}' differ in columns: one cannot complete the \
                 other",
                pin.schema.id,
                self.schema.id,
                self.table.ident().branch
            ))
            .with_code("BranchSchemasDiffer")
            .with_context("table", self.table.name())
            .with_context("option", option)
            .with_hint("bring the branches to the same columns, or read one of them alone: t$branch_x"));
        }
        Ok(Arc::new(pin))
    }

    /// A fallback branch beside a snapshot of the main one: its latest snapshot at that time, else its snapshot 1.
    async fn resolve_as_of(
        table: &Arc<Table>,
        millis: i64,
        options: &BTreeMap<String, String>,
        zone: &SessionZone,
    ) -> Result<Self> {
        let by_time = Self::resolve_alone(table, PinRequest::TimestampMillis(millis), options, zone).await;
        match by_time {
            Err(error) if error.code() == "TimestampTooEarly" => {
                Self::resolve_alone(table, PinRequest::SnapshotId(1), options, zone).await
            }
            Err(error) if error.code() == "NoSnapshot" => {
                Self::resolve_alone(table, PinRequest::Latest, options, zone).await
            }
            outcome => outcome,
        }
    }

    /// The same state, read with other options of the caller; where a read starts is not among them any more.
    ///
    /// Cost: none, unless a fallback or primary branch is named that this pin does not have.
    pub async fn with_options(
        &self,
        dynamic_options: &BTreeMap<String, String>,
        zone: &SessionZone,
    ) -> Result<Arc<Self>> {
        let newest = self.table.schema(self.latest_schema_id).await?;
        let mut merged = newest.options.clone();
        merged.extend(dynamic_options.iter().map(|(key, value)| (key.clone(), value.clone())));
        remove_positions(&mut merged);
        let options = options_of(&merged, &newest, &self.schema)
            .map_err(|error| self.table.of_options(error, &newest, dynamic_options))?;
        let newest_options = Arc::new(merged);
        let mut pin = Self { options, newest_options, fallback: None, primary: None, ..self.clone() };
        for notice in pin.options.notices(&pin.schema) {
            if !pin.notices.contains(&notice) {
                pin.notices.push(notice);
            }
        }
        pin.add_branches(Some(self), dynamic_options, zone).await?;
        Ok(Arc::new(pin))
    }

    /// The same state, read with another schema of its table: columns are found by their ids, options follow their
    /// names.
    ///
    /// # Errors
    /// The newest schema cannot be read; options that do not fit this one.
    pub async fn with_schema(self: &Arc<Self>, schema: &Arc<TableSchema>) -> Result<Arc<Self>> {
        if self.schema.id == schema.id {
            return Ok(Arc::clone(self));
        }
        let newest = self.table.schema(self.latest_schema_id).await?;
        let options = options_of(&self.newest_options, &newest, schema)
            .map_err(|error| self.table.of_options(error, &newest, &BTreeMap::new()))?;
        let declared = Arc::clone(schema);
        let mut schema = read_schema(&self.table, &declared, self.snapshot.as_deref()).await?;
        if let Some(other) = self.fallback.as_ref().or(self.primary.as_ref()) {
            schema = kept_by_branch(&schema, &other.schema);
        }
        Ok(Arc::new(Self { schema, declared, options, notices: Vec::new(), ..Self::clone(self) }))
    }

    /// Another state of the same branch, alone, with the columns and options of this pin: for what looks at many states.
    pub fn alone_at(&self, snapshot: &Arc<Snapshot>) -> Self {
        let mut pin = Self {
            snapshot: Some(Arc::clone(snapshot)),
            request: PinRequest::SnapshotId(snapshot.id.0),
            notices: Vec::new(),
            tag: None,
            fallback: None,
            primary: None,
            ..self.clone()
        };
        pin.fingerprint.snapshot = Some(SnapshotFingerprint::from(snapshot.as_ref()));
        pin
    }

    /// The table before its first snapshot, alone: without rows.
    pub fn before_all(&self) -> Self {
        let mut pin = Self { snapshot: None, notices: Vec::new(), fallback: None, primary: None, ..self.clone() };
        pin.fingerprint.snapshot = None;
        pin
    }

    /// The same pin, completed by this state of its fallback or primary branch.
    pub fn completed_by(&self, other: &Arc<Self>) -> Arc<Self> {
        let mut pin = self.clone();
        pin.schema = kept_by_branch(&pin.schema, &other.schema);
        for branch in [&mut pin.fallback, &mut pin.primary].into_iter().flatten() {
            *branch = Arc::clone(other);
        }
        Arc::new(pin)
    }

    /// The pinned snapshot's number; None for a table without snapshots.
    pub fn snapshot_id(&self) -> Option<SnapshotId> {
        self.snapshot.as_ref().map(|snapshot| snapshot.id)
    }

    /// Whether the options and columns of this pin can be read at all; the error names option and reason. Time travel
    /// and metadata tables work without.
    pub fn check_readable(&self) -> Result<()> {
        self.options.check_readable(&self.schema).map_err(|e| e.with_context("table", self.table.name()))?;
        match self.fallback.as_ref().or(self.primary.as_ref()) {
            Some(other) => other.check_readable(),
            None => Ok(()),
        }
    }

    /// Whether the values of a column can be read, by its place in [`Self::schema`]; the error names option and column.
    ///
    /// # Errors
    /// `UnsupportedOption`; a place the schema does not have.
    pub fn check_column(&self, index: usize) -> Result<()> {
        let field = self
            .schema
            .fields
            .get(index)
            .ok_or_else(|| Error::internal(format!("the schema has no column number {index}")))?;
        self.options.check_column(field).map_err(|e| e.with_context("table", self.table.name()))?;
        match self.fallback.as_ref().or(self.primary.as_ref()) {
            Some(other) => other.check_column(index),
            None => Ok(()),
        }
    }

    /// Looks again: the pinned snapshot must still be there and be the same, or be held by a tag. Errors:
    /// `SnapshotExpired`, `PinLost`.
    pub async fn verify(&self) -> Result<()> {
        self.verify_own().await?;
        match self.fallback.as_ref().or(self.primary.as_ref()) {
            Some(other) => other.verify_own().await,
            None => Ok(()),
        }
    }

    async fn verify_own(&self) -> Result<()> {
        let Some(pinned) = &self.fingerprint.snapshot else { return Ok(()) };
        let now = self.table.read_snapshot(pinned.id).await?;
        if now.as_ref().is_some_and(|now| pinned.is_of(now)) {
            return Ok(());
        }
        let unread = match self.tagged(pinned).await? {
            Tagged::Held(_) => return Ok(()),
            Tagged::Not { unread } => unread.map_or(String::new(), |tags| format!("; {tags} and may hold it")),
        };
        let table = self.table.name();
        match now {
            Some(other) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "snapshot {} is not the pinned one any more: pinned was {} of '{}' {} at {}, now there is {} of \
                     '{}' {} at {}{unread}",
                    pinned.id,
                    pinned.commit_kind.as_str(),
                    pinned.commit_user,
                    CommitIdentifier(pinned.commit_identifier),
                    SessionZone::utc().show(pinned.time_millis),
                    other.commit_kind.as_str(),
                    other.commit_user,
                    CommitIdentifier(other.commit_identifier),
                    SessionZone::utc().show(other.time_millis)
                ),
            )
            .with_code("PinLost")
            .with_context("table", table)
            .with_hint("the table was rolled back and written again: pin it anew")),
            None => {
                let ids = match self.table.snapshot_ids().await {
                    Err(error) if error.code() == "SnapshotsLost" => Vec::new(),
                    ids => ids?,
                };
                let (code, what) = match (ids.first(), ids.last()) {
                    (Some(first), _) if pinned.id < *first => {
                        ("SnapshotExpired", format!("has expired; available {}", ranges_text(&ids)))
                    }
                    (Some(_), Some(last)) if pinned.id < *last => {
                        ("PinLost", format!("was removed from between the others; available {}", ranges_text(&ids)))
                    }
                    (Some(_), Some(_)) => ("PinLost", format!("was rolled back; available {}", ranges_text(&ids))),
                    _ => ("PinLost", "is gone, and all other snapshots with it".to_string()),
                };
                Err(Error::not_found(format!("the pinned snapshot {} {what}{unread}", pinned.id))
                    .with_code(code)
                    .with_context("table", table)
                    .with_hint("pin the table anew, or keep a snapshot with a tag"))
            }
        }
    }

    /// Whether a tag holds the pinned snapshot: its files stay then. A tag that cannot be read is in the way only where
    /// it is the one that was pinned by.
    async fn tagged(&self, pinned: &SnapshotFingerprint) -> Result<Tagged> {
        if let Some(name) = &self.tag
            && let Some(tag) = self.table.tag(name).await?
            && pinned.is_of(&tag.snapshot)
        {
            return Ok(Tagged::Held(name.clone()));
        }
        let tags = self.table.readable_tags().await?;
        let unread = tags.complaint("tag");
        let holding = tags.found.into_iter().find(|(_, tag)| pinned.is_of(&tag.snapshot));
        Ok(match holding {
            Some((name, _)) => Tagged::Held(name),
            None => Tagged::Not { unread },
        })
    }

    /// Names table and snapshot in an error about what they hold; one that the request is to blame for stays as it is.
    pub(crate) fn named(&self, error: Error) -> Error {
        if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Internal | ErrorKind::Exhausted) {
            return error;
        }
        let error = error.with_context("table", self.table.name());
        match self.snapshot_id() {
            Some(id) => error.with_context("snapshot", id),
            None => error,
        }
    }

    /// The error for a file of this pin that is gone: the pin expired meanwhile, or the table is damaged.
    pub async fn missing_file(&self, file: &Location) -> Error {
        // files go before the snapshot that names them: give an expiry under way a moment to show itself
        for pause_ms in [0, 100, 300] {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            let Err(error) = self.verify().await else { continue };
            let Some(id) = self.snapshot_id() else { return error };
            let earliest = match self.table.earliest_snapshot_id().await {
                Ok(Some(earliest)) => format!("earliest now {earliest}"),
                _ => "no snapshot is left".to_string(),
            };
            let message = match error.code() {
                "SnapshotExpired" => {
                    format!("snapshot {id} expired during the read ({earliest}); the result is not complete")
                }
                "PinLost" => format!(
                    "snapshot {id} was replaced or rolled back during the read; the result is not complete: {}",
                    error.message()
                ),
                _ => return error,
            };
            return Error::new(error.kind(), message)
                .with_code(error.code())
                .with_context("table", self.table.name())
                .with_context("file", file)
                .with_hint("read a newer snapshot, or keep the one that is needed with a tag");
        }
        let id = self.snapshot_id().map_or_else(|| "the table".to_string(), |id| format!("snapshot {id}"));
        let still = match self.only_held_by_tag().await {
            Some(tag) => format!("tag '{tag}' still holds it"),
            None => "the snapshot is still there".to_string(),
        };
        Error::corrupt(format!("a file that {id} needs is missing, though {still}"))
            .with_code("FileLost")
            .with_context("table", self.table.name())
            .with_context("file", file)
            .with_hint(
                "if snapshots are being expired right now try again; otherwise somebody removed the file: restore it, \
                 or read a snapshot or tag that does not need it",
            )
    }

    /// The tag that holds the pinned snapshot, where its own file is gone; None also where that cannot be told now, since
    /// this only adds to another message.
    async fn only_held_by_tag(&self) -> Option<String> {
        let pinned = self.fingerprint.snapshot.as_ref()?;
        let now = self.table.read_snapshot(pinned.id).await.ok()?;
        if now.is_some_and(|now| pinned.is_of(&now)) {
            return None;
        }
        match self.tagged(pinned).await.ok()? {
            Tagged::Held(tag) => Some(tag),
            Tagged::Not { .. } => None,
        }
    }

    /// One line: id, commit time with zone, kind, user, identifier, watermark, schema id.
    pub fn describe(&self, zone: &SessionZone) -> String {
        let mut text = self.table.name();
        match &self.snapshot {
            None => text.push_str(" has no snapshot and reads as empty"),
            Some(snapshot) => {
                let watermark = snapshot.watermark.map_or("none".to_string(), |w| zone.show_watermark(w));
                let identifier = CommitIdentifier(snapshot.commit_identifier);
                // writing to a String cannot fail
                let _ = write!(
                    text,
                    " @ snapshot {}, committed {}, {}, user '{}', identifier {identifier}, watermark {watermark}, schema {}",
                    snapshot.id,
                    zone.show_exact(snapshot.time_millis),
                    snapshot.commit_kind.as_str(),
                    snapshot.commit_user,
                    snapshot.schema_id
                );
            }
        }
        let written_with = self.snapshot.as_ref().map_or(self.schema.id, |snapshot| snapshot.schema_id);
        if written_with != self.schema.id {
            let _ = write!(text, ", read with schema {}", self.schema.id);
        } else if self.schema.id != self.latest_schema_id {
            let _ = write!(text, " (latest schema {})", self.latest_schema_id);
        }
        if let Some(tag) = &self.tag {
            let _ = write!(text, ", tag '{tag}'");
        }
        for (role, other) in [("fallback", &self.fallback), ("primary", &self.primary)] {
            if let Some(other) = other {
                let _ = write!(text, "; {role}: {}", other.describe(zone));
            }
        }
        text
    }

    /// Why a column of that name is not there: it came later, was dropped or renamed. None when it never was.
    pub async fn explain_missing_column(&self, name: &str) -> Option<String> {
        columns::explain(self, name).await
    }
}

/// Whether a tag holds a snapshot.
enum Tagged {
    /// This one does.
    Held(String),
    /// None of those that can be read does; what to say of the others.
    Not { unread: Option<String> },
}

/// A declared schema as the files of a snapshot keep it.
async fn read_schema(
    table: &Table,
    declared: &Arc<TableSchema>,
    snapshot: Option<&Snapshot>,
) -> Result<Arc<TableSchema>> {
    let newest = snapshot.map_or(declared.id, |snapshot| snapshot.schema_id.max(declared.id));
    kept_by_files(table, declared, newest).await
}

/// The options, given in the names of the newest schema, for a read with `schema`.
fn options_of(
    options: &BTreeMap<String, String>,
    newest: &TableSchema,
    schema: &TableSchema,
) -> Result<Arc<CoreOptions>> {
    let parsed = match schema.id == newest.id {
        true => CoreOptions::parse(options),
        false => CoreOptions::parse(&options_then(options, &newest.fields, &schema.fields)),
    };
    parsed.map(Arc::new)
}

/// The branch that the name of a table stands for by its own option, when it is not the main one.
async fn branch_by_option(table: &Table, outcome: &Result<Pin>) -> Option<String> {
    if !table.ident().is_main() {
        return None;
    }
    let branch = match outcome {
        Ok(pin) => pin.options.raw.get("branch")?.clone(),
        // what main lacks the branch may have
        Err(_) => table.latest_schema().await.ok()?.options.get("branch")?.clone(),
    };
    let branch = branch.trim().to_string();
    (!branch.is_empty() && branch != table.ident().branch).then_some(branch)
}

/// The same columns, up to nullability and field ids.
fn same_columns(a: &[DataField], b: &[DataField]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.name == y.name && same_type(x.data_type(), y.data_type()))
}

fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Row(x), DataType::Row(y)) => same_columns(x, y),
        (DataType::Array(x), DataType::Array(y)) | (DataType::Multiset(x), DataType::Multiset(y)) => {
            same_type(&x.data_type, &y.data_type)
        }
        (DataType::Vector(x, n), DataType::Vector(y, m)) => n == m && same_type(&x.data_type, &y.data_type),
        (DataType::Map(k, v), DataType::Map(l, w)) => {
            same_type(&k.data_type, &l.data_type) && same_type(&v.data_type, &w.data_type)
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
