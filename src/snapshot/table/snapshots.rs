//! Snapshots of a table: the newest, the oldest, each by its id.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::{PARALLEL, Table, ranges_text, snapshot_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::{Notice, NoticeKind};
use crate::snapshot::documents::{Numbered, list_numbered, read_hint, read_json};
use crate::spec::{Snapshot, SnapshotId};
use crate::storage::Location;

impl Table {
    /// The newest snapshot's number; None for a table without snapshots. The hint is believed when the snapshot it
    /// names is there and the next one is not; otherwise the folder is listed.
    pub async fn latest_snapshot_id(&self) -> Result<Option<SnapshotId>> {
        if let Some(hinted) = read_hint(&self.storage, &self.snapshot_file("LATEST")?).await
            && let Some(next) = hinted.checked_add(1)
        {
            let next_file = self.numbered_snapshot(next)?;
            let own_file = self.numbered_snapshot(hinted)?;
            let (next, own) =
                futures::future::try_join(self.storage.exists(&next_file), self.storage.exists(&own_file)).await?;
            if own && !next {
                return Ok(Some(SnapshotId(hinted)));
            }
        }
        Ok(self.snapshot_ids().await?.last().copied())
    }

    /// The snapshot that the LATEST hint names, whether it is there or not; None without a hint. It is written behind its
    /// snapshot: where nothing that far is found, something was lost, or a listing is behind. Cost: a small read.
    ///
    /// # Errors
    /// None but a location that is none.
    pub(crate) async fn hinted_snapshot(&self) -> Result<Option<SnapshotId>> {
        let hinted = read_hint(&self.storage, &self.snapshot_file("LATEST")?).await;
        Ok(hinted.filter(|hinted| *hinted > 0).map(SnapshotId))
    }

    /// The newest snapshot, and what to tell the user when the hint was ahead of it.
    pub(in crate::snapshot) async fn latest_noticed(&self) -> Result<(Option<Arc<Snapshot>>, Option<Notice>)> {
        let hinted = read_hint(&self.storage, &self.snapshot_file("LATEST")?).await;
        let mut ahead = None;
        if let Some(hinted) = hinted
            && let Some(next) = hinted.checked_add(1)
        {
            let next_file = self.numbered_snapshot(next)?;
            let (has_next, own) =
                futures::future::try_join(self.storage.exists(&next_file), self.read_snapshot(SnapshotId(hinted)))
                    .await?;
            match own {
                Some(snapshot) if !has_next => return Ok((Some(snapshot), None)),
                None => ahead = Some(hinted),
                Some(_) => {}
            }
        }
        // what is listed last may be rolled back before it is read
        for _ in 0..5 {
            let told =
                |hinted: i64, newest: i64| Notice::from(NoticeKind::StaleHint { table: self.name(), hinted, newest });
            let Some(last) = self.snapshot_ids().await?.last().copied() else { return Ok((None, None)) };
            if let Some(snapshot) = self.read_snapshot(last).await? {
                let notice = ahead.filter(|ahead| *ahead > last.0).map(|ahead| told(ahead, last.0));
                return Ok((Some(snapshot), notice));
            }
        }
        Err(Error::unavailable("the newest snapshot vanished each time it was to be read")
            .with_context("table", self.name())
            .with_hint("snapshots are being rolled back or expired right now: try again"))
    }

    fn lost_snapshots(&self, hinted: i64) -> Error {
        let error = Error::corrupt(format!("the LATEST hint names snapshot {hinted}, and no snapshot is there"))
            .with_code("SnapshotsLost")
            .with_context("table", self.name())
            .with_hint(
                "bring the files of the folder back; of a table that really has no snapshot any more, remove the hint",
            );
        match self.numbered_snapshot(hinted) {
            Ok(missing) => error.with_context("file", missing),
            Err(_) => error,
        }
    }

    /// The oldest snapshot's number; None for a table without snapshots. The hint is believed when the snapshot it
    /// names is there.
    pub async fn earliest_snapshot_id(&self) -> Result<Option<SnapshotId>> {
        if let Some(hinted) = read_hint(&self.storage, &self.snapshot_file("EARLIEST")?).await
            && self.storage.exists(&self.numbered_snapshot(hinted)?).await?
        {
            return Ok(Some(SnapshotId(hinted)));
        }
        Ok(self.snapshot_ids().await?.first().copied())
    }

    /// All snapshot numbers, ascending, by listing.
    pub async fn snapshot_ids(&self) -> Result<Vec<SnapshotId>> {
        Ok(self.snapshot_files().await?.iter().map(|numbered| SnapshotId(numbered.number)).collect())
    }

    /// All snapshots, ascending; those that vanish meanwhile are left out.
    pub async fn snapshots(&self) -> Result<Vec<Arc<Snapshot>>> {
        let files = self.snapshot_files().await?;
        self.read_listed(files).try_collect().await
    }

    /// All snapshots, ascending, each with its own outcome, so that a torn one does not hide the others; those that vanish
    /// meanwhile are left out.
    ///
    /// # Errors
    /// Storage that does not answer; snapshots lost altogether.
    pub async fn snapshots_one_by_one(&self) -> Result<Vec<(SnapshotId, Result<Arc<Snapshot>>)>> {
        let files = self.snapshot_files().await?;
        let reads = files.into_iter().map(|numbered| async move {
            let id = SnapshotId(numbered.number);
            (id, self.read_snapshot(id).await)
        });
        let read: Vec<_> = stream::iter(reads).buffered(PARALLEL).collect().await;
        let mut found = Vec::with_capacity(read.len());
        for (id, outcome) in read {
            match outcome {
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                outcome => found.extend(outcome.transpose().map(|outcome| (id, outcome))),
            }
        }
        Ok(found)
    }

    /// A snapshot by number, as it is now: one small read, since a number may be used again after a rollback. Errors
    /// `SnapshotExpired`, `SnapshotNotFound` and `NoSnapshot`, saying what is kept and which tag holds it.
    pub async fn snapshot(&self, id: SnapshotId) -> Result<Arc<Snapshot>> {
        match self.read_snapshot(id).await? {
            Some(snapshot) => Ok(snapshot),
            None => Err(self.missing_snapshot(id).await),
        }
    }

    /// A snapshot, or what is kept of it for change reads after it expired; None where there is neither. Cost: a small
    /// read, two where it expired.
    pub(crate) async fn snapshot_or_changelog(&self, id: SnapshotId) -> Result<Option<Arc<Snapshot>>> {
        match self.read_snapshot(id).await? {
            Some(snapshot) => Ok(Some(snapshot)),
            None => self.read_changelog(id).await,
        }
    }

    pub(in crate::snapshot) async fn snapshot_files(&self) -> Result<Vec<Numbered>> {
        let files = list_numbered(&self.storage, &self.branch_root.join("snapshot")?, "snapshot-").await?;
        // a hint is written behind its snapshot, and the newest one never expires
        if files.is_empty()
            && let Some(hinted) = read_hint(&self.storage, &self.snapshot_file("LATEST")?).await.filter(|id| *id > 0)
        {
            return Err(self.lost_snapshots(hinted));
        }
        Ok(files)
    }

    /// Listed snapshots in the order given, read ahead; what vanished is passed over.
    pub(in crate::snapshot) fn read_listed(
        &self,
        files: Vec<Numbered>,
    ) -> impl Stream<Item = Result<Arc<Snapshot>>> + Send + '_ {
        let reads = files.into_iter().map(move |numbered| async move {
            let stamp = numbered.stamp();
            if let Some(known) = self.snapshots.get(&stamp) {
                return Ok(Some(known));
            }
            let read = self.read_snapshot(SnapshotId(numbered.number)).await?;
            if let Some(snapshot) = &read {
                self.snapshots.insert(stamp, Arc::clone(snapshot), snapshot_bytes(snapshot));
            }
            Ok(read)
        });
        stream::iter(reads).buffered(PARALLEL).filter_map(|read| async move { read.transpose() })
    }

    /// A snapshot by number, past all caches; None when it is not there.
    pub(in crate::snapshot) async fn read_snapshot(&self, id: SnapshotId) -> Result<Option<Arc<Snapshot>>> {
        if id.0 < 1 {
            return Ok(None);
        }
        let file = self.numbered_snapshot(id.0)?;
        let read = read_json(&self.storage, &file, |bytes| {
            let snapshot = Snapshot::from_json(bytes)?;
            snapshot.check_lists()?;
            if snapshot.id != id {
                return Err(Error::corrupt(format!("the file of snapshot {id} holds snapshot {}", snapshot.id)));
            }
            Ok(snapshot)
        });
        let read = read.await.map_err(|e| e.with_context("table", self.name()))?;
        Ok(read.map(Arc::new))
    }

    /// The error for a snapshot number that is not there: what is kept, and which tag holds it.
    pub(in crate::snapshot) async fn missing_snapshot(&self, id: SnapshotId) -> Error {
        self.missing_snapshot_as(id, &id.to_string()).await
    }

    /// The same for a number as it was written, which may be larger than any.
    pub(in crate::snapshot) async fn missing_snapshot_as(&self, id: SnapshotId, written: &str) -> Error {
        let ids = match self.snapshot_ids().await {
            Ok(ids) => ids,
            Err(error) => return error,
        };
        let (holding, complaint) = self.tags_holding(id).await;
        let tags = match holding.as_slice() {
            [] => complaint.map_or(String::new(), |complaint| format!("; {complaint} and may hold it")),
            [tag] => format!("; tag '{tag}' holds it"),
            tags => format!("; tags '{}' hold it", tags.join("', '")),
        };
        let (code, message) = match (ids.first(), ids.last()) {
            (Some(first), _) if id.0 >= 1 && id < *first => {
                ("SnapshotExpired", format!("snapshot {written} has expired; available {}{tags}", ranges_text(&ids)))
            }
            (Some(_), Some(last)) => {
                let reason = if id.0 < 1 {
                    " (numbers begin at 1)"
                } else if id < *last {
                    " (it was removed from between them)"
                } else {
                    ""
                };
                let kept = ranges_text(&ids);
                ("SnapshotNotFound", format!("snapshot {written} does not exist{reason}; available {kept}{tags}"))
            }
            _ => ("NoSnapshot", format!("the table has no snapshot, so not {written} either{tags}")),
        };
        let error = Error::not_found(message).with_code(code).with_context("table", self.name());
        match holding.first() {
            Some(tag) => error.with_hint(format!("read it with VERSION AS OF '{tag}'")),
            None if code == "NoSnapshot" => error,
            None => error.with_hint("choose one of those or a tag"),
        }
    }

    /// The tags that hold a snapshot, and what to say of tags that cannot be read; nothing when none can be listed, since
    /// this only adds to another message.
    async fn tags_holding(&self, id: SnapshotId) -> (Vec<String>, Option<String>) {
        let Ok(tags) = self.readable_tags().await else { return Default::default() };
        let complaint = tags.complaint("tag");
        let holding = tags.found.into_iter().filter(|(_, tag)| tag.snapshot.id == id);
        (holding.map(|(name, _)| name).collect(), complaint)
    }

    fn snapshot_file(&self, name: &str) -> Result<Location> {
        self.branch_root.join("snapshot")?.join(name)
    }

    fn numbered_snapshot(&self, id: i64) -> Result<Location> {
        self.snapshot_file(&format!("snapshot-{id}"))
    }
}
