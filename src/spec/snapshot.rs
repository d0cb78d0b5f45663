//! One committed state of a table: `snapshot/snapshot-N` (also the body of tags and long-lived changelogs).

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::json::{self, Object};
use super::schema::SchemaId;
use crate::error::{Error, Result};

/// Number of a snapshot, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct SnapshotId(pub i64);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identifier that every commit of a batch job has.
pub const BATCH: i64 = i64::MAX;

/// The watermark that bounded input ends with, which is no time.
pub const END_OF_INPUT: i64 = i64::MAX;

/// What a commit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitKind {
    /// Adds files.
    Append,
    /// Replaces files by equivalent ones.
    Compact,
    /// Deletes and adds.
    Overwrite,
    /// Changes statistics only.
    Analyze,
}

impl CommitKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Append, Self::Compact, Self::Overwrite, Self::Analyze];

    /// As written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Append => "APPEND",
            Self::Compact => "COMPACT",
            Self::Overwrite => "OVERWRITE",
            Self::Analyze => "ANALYZE",
        }
    }
}

/// A snapshot file. Sizes are bytes, times epoch milliseconds, counts physical rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Format version; 1 when the file has none.
    pub version: i32,
    /// Identity, newest writers only.
    pub uuid: Option<String>,
    /// Number.
    pub id: SnapshotId,
    /// Schema in force at commit time.
    pub schema_id: SchemaId,
    /// Name of the list of everything before this snapshot.
    pub base_manifest_list: String,
    /// Size of it.
    pub base_manifest_list_size: Option<u64>,
    /// Name of the list of this snapshot's changes.
    pub delta_manifest_list: String,
    /// Size of it.
    pub delta_manifest_list_size: Option<u64>,
    /// Name of the list of changelog files made here.
    pub changelog_manifest_list: Option<String>,
    /// Size of it.
    pub changelog_manifest_list_size: Option<u64>,
    /// Name of the complete list of index files.
    pub index_manifest: Option<String>,
    /// Who committed.
    pub commit_user: String,
    /// Release of the writer.
    pub writer_version: Option<String>,
    /// Which change; [`BATCH`] of batch jobs.
    pub commit_identifier: i64,
    /// What the commit did.
    pub commit_kind: CommitKind,
    /// Commit time.
    pub time_millis: i64,
    /// Physical rows of all live files.
    pub total_record_count: Option<i64>,
    /// Change of the above by this snapshot.
    pub delta_record_count: Option<i64>,
    /// Rows in changelog files made here.
    pub changelog_record_count: Option<i64>,
    /// Watermark; `i64::MIN` in the file is None here, [`END_OF_INPUT`] stands for no time.
    pub watermark: Option<i64>,
    /// File in `statistics/`.
    pub statistics: Option<String>,
    /// Properties.
    pub properties: BTreeMap<String, String>,
    /// Row tracking: the next row id.
    pub next_row_id: Option<i64>,
    /// `WRITE`, `DELETE`, … as written by newest writers.
    pub operation: Option<String>,
}

/// The identifier of a commit as people read and write it: a number, or `batch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitIdentifier(pub i64);

impl CommitIdentifier {
    /// From what somebody wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.eq_ignore_ascii_case("batch") {
            true => Some(Self(BATCH)),
            false => text.parse().ok().map(Self),
        }
    }
}

impl fmt::Display for CommitIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            BATCH => f.write_str("batch"),
            number => write!(f, "{number}"),
        }
    }
}

impl Snapshot {
    /// Newest format version that this release reads.
    pub const NEWEST_VERSION: i32 = 3;

    /// Reads a snapshot file. Unknown keys are ignored.
    ///
    /// Errors name the key; a newer version is refused (`NewerFormat`).
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        Self::from_document(bytes, DOCUMENT)
    }

    /// Reads a file of `changelog/`; errors call it so.
    pub(crate) fn from_changelog_json(bytes: &[u8]) -> Result<Self> {
        Self::from_document(bytes, "changelog file")
    }

    fn from_document(bytes: &[u8], what: &'static str) -> Result<Self> {
        let document = json::parse(bytes, what)?;
        Self::from_object(&Object::new(&document, what)?)
    }

    pub(super) fn from_object(object: &Object<'_>) -> Result<Self> {
        let version = json::format_version(object, Self::NEWEST_VERSION)?;
        let id = object.i64("id")?;
        let schema_id = object.i64("schemaId")?;
        for (key, number, least) in [("id", id, 1), ("schemaId", schema_id, 0)] {
            if number < least {
                return Err(Error::corrupt(format!("the snapshot has the impossible '{key}' {number}"))
                    .with_context("key", key));
            }
        }
        let kind = object.str("commitKind")?;
        let commit_kind = CommitKind::ALL.into_iter().find(|known| known.as_str() == kind).ok_or_else(|| {
            Error::unsupported(format!("the snapshot has the commit kind '{kind}', which is not known"))
                .with_code("NewerFormat")
                .with_context("key", "commitKind")
                .with_hint("known are APPEND, COMPACT, OVERWRITE and ANALYZE")
        })?;
        Ok(Self {
            version,
            uuid: object.opt_string("uuid")?,
            id: SnapshotId(id),
            schema_id: SchemaId(schema_id),
            base_manifest_list: object.str("baseManifestList")?.to_string(),
            base_manifest_list_size: object.opt_u64("baseManifestListSize")?,
            delta_manifest_list: object.str("deltaManifestList")?.to_string(),
            delta_manifest_list_size: object.opt_u64("deltaManifestListSize")?,
            changelog_manifest_list: object.opt_string("changelogManifestList")?,
            changelog_manifest_list_size: object.opt_u64("changelogManifestListSize")?,
            index_manifest: object.opt_string("indexManifest")?,
            commit_user: object.str("commitUser")?.to_string(),
            writer_version: object.opt_string("writerVersion")?,
            commit_identifier: object.i64("commitIdentifier")?,
            commit_kind,
            time_millis: object.i64("timeMillis")?,
            total_record_count: object.opt_i64("totalRecordCount")?,
            delta_record_count: object.opt_i64("deltaRecordCount")?,
            changelog_record_count: object.opt_i64("changelogRecordCount")?,
            watermark: object.opt_i64("watermark")?.filter(|watermark| *watermark != i64::MIN),
            statistics: object.opt_string("statistics")?,
            properties: object.string_map("properties")?,
            next_row_id: object.opt_i64("nextRowId")?,
            operation: object.opt_string("operation")?,
        })
    }

    /// Refuses a snapshot that leaves a name of its files empty. Files of `changelog/` may.
    pub(crate) fn check_lists(&self) -> Result<()> {
        let names = [
            ("baseManifestList", Some(&self.base_manifest_list)),
            ("deltaManifestList", Some(&self.delta_manifest_list)),
            ("indexManifest", self.index_manifest.as_ref()),
        ];
        match names.into_iter().find(|(_, name)| name.is_some_and(|name| name.is_empty())) {
            Some((key, _)) => {
                Err(Error::corrupt(format!("the snapshot has an empty '{key}'")).with_context("key", key))
            }
            None => Ok(()),
        }
    }

    /// The snapshot as a snapshot file; keys without value are left out.
    pub fn to_json(&self) -> String {
        let document = SnapshotDocument {
            version: self.version,
            uuid: self.uuid.as_deref(),
            id: self.id.0,
            schema_id: self.schema_id.0,
            base_manifest_list: &self.base_manifest_list,
            base_manifest_list_size: self.base_manifest_list_size,
            delta_manifest_list: &self.delta_manifest_list,
            delta_manifest_list_size: self.delta_manifest_list_size,
            changelog_manifest_list: self.changelog_manifest_list.as_deref(),
            changelog_manifest_list_size: self.changelog_manifest_list_size,
            index_manifest: self.index_manifest.as_deref(),
            commit_user: &self.commit_user,
            writer_version: self.writer_version.as_deref(),
            commit_identifier: self.commit_identifier,
            commit_kind: self.commit_kind.as_str(),
            time_millis: self.time_millis,
            total_record_count: self.total_record_count,
            delta_record_count: self.delta_record_count,
            changelog_record_count: self.changelog_record_count,
            watermark: self.watermark,
            statistics: self.statistics.as_deref(),
            properties: &self.properties,
            next_row_id: self.next_row_id,
            operation: self.operation.as_deref(),
        };
        // texts and numbers only: nothing in it can fail to become JSON
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }
}

const DOCUMENT: &str = "snapshot file";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotDocument<'a> {
    version: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<&'a str>,
    id: i64,
    schema_id: i64,
    base_manifest_list: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_manifest_list_size: Option<u64>,
    delta_manifest_list: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_manifest_list_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changelog_manifest_list: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changelog_manifest_list_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_manifest: Option<&'a str>,
    commit_user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer_version: Option<&'a str>,
    commit_identifier: i64,
    commit_kind: &'a str,
    time_millis: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_record_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_record_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changelog_record_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watermark: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_row_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
}

#[cfg(test)]
mod tests;
