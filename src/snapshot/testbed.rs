//! Small tables of metadata only, for the tests of this room.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Pin, PinRequest, Table, TableIdent};
use crate::error::Result;
use crate::storage::Storage;

/// 2026-04-16 02:00:00 UTC.
pub(super) const T0: i64 = 1_776_304_800_000;

/// A table folder under construction.
pub(super) struct Bed {
    _dir: tempfile::TempDir,
    pub(super) root: PathBuf,
}

/// One snapshot file.
#[derive(Clone)]
pub(super) struct Commit {
    pub(super) id: i64,
    pub(super) schema: i64,
    pub(super) user: &'static str,
    pub(super) identifier: i64,
    pub(super) kind: &'static str,
    pub(super) time: i64,
    pub(super) watermark: Option<i64>,
    pub(super) list: String,
}

/// Snapshot `id`, committed `id` seconds after [`T0`].
pub(super) fn commit(id: i64) -> Commit {
    Commit {
        id,
        schema: 0,
        user: "flink",
        identifier: id,
        kind: "APPEND",
        time: T0 + id * 1000,
        watermark: None,
        list: format!("manifest-list-{id}"),
    }
}

impl Commit {
    pub(super) fn json(&self) -> String {
        let watermark = self.watermark.map_or(String::new(), |w| format!(r#","watermark":{w}"#));
        format!(
            r#"{{"version":3,"id":{},"schemaId":{},"baseManifestList":"{list}-0","deltaManifestList":"{list}-1",
            "changelogManifestList":null,"commitUser":"{}","commitIdentifier":{},"commitKind":"{}","timeMillis":{},
            "logOffsets":{{}},"totalRecordCount":1,"deltaRecordCount":1{watermark}}}"#,
            self.id,
            self.schema,
            self.user,
            self.identifier,
            self.kind,
            self.time,
            list = self.list
        )
    }
}

/// A schema file: columns as (id, name), all INT, and options.
pub(super) fn schema(id: i64, columns: &[(i32, &str)], options: &[(&str, &str)]) -> String {
    let fields: Vec<String> =
        columns.iter().map(|(id, name)| format!(r#"{{"id":{id},"name":"{name}","type":"INT"}}"#)).collect();
    let options: Vec<String> = options.iter().map(|(key, value)| format!(r#""{key}":"{value}""#)).collect();
    format!(
        r#"{{"version":3,"id":{id},"fields":[{}],"highestFieldId":9,"partitionKeys":[],"primaryKeys":[],
        "options":{{{}}},"timeMillis":1}}"#,
        fields.join(","),
        options.join(",")
    )
}

impl Bed {
    /// A table with schema 0 of one column, and without snapshots.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("pay.db/orders");
        let bed = Self { _dir: dir, root };
        bed.write("schema/schema-0", &schema(0, &[(0, "a")], &[]));
        bed
    }

    /// The table with snapshots `first` to `last` and right hints.
    pub(super) fn with_snapshots(first: i64, last: i64) -> Self {
        let bed = Self::new();
        for id in first..=last {
            bed.commit(&commit(id));
        }
        bed.write("snapshot/EARLIEST", &first.to_string());
        bed.write("snapshot/LATEST", &last.to_string());
        bed
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.root.join(name)).unwrap();
    }

    pub(super) fn commit(&self, commit: &Commit) {
        self.write(&format!("snapshot/snapshot-{}", commit.id), &commit.json());
    }

    pub(super) fn tag(&self, name: &str, commit: &Commit) {
        self.write(&format!("tag/tag-{name}"), &commit.json());
    }

    pub(super) async fn table(&self) -> Arc<Table> {
        open(&self.root).await
    }

    pub(super) async fn pin(&self, request: PinRequest) -> Result<Arc<Pin>> {
        Pin::resolve(&self.table().await, request, &BTreeMap::new()).await
    }

    /// The snapshot id a request leads to.
    pub(super) async fn id(&self, request: PinRequest) -> Result<i64> {
        Ok(self.pin(request).await?.snapshot_id().unwrap().0)
    }
}

/// The table in a folder.
pub(super) async fn open(root: &std::path::Path) -> Arc<Table> {
    let (storage, location) = Storage::open(root.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let name = root.file_name().unwrap().to_str().unwrap();
    Table::new(TableIdent::new("pay", name), storage, location).unwrap()
}
