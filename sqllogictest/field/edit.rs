//! Metadata changed behind the reader's back: what other writers, old versions and accidents leave.

use std::fs;
use std::path::{Path, PathBuf};

use lakepin::spec::binary_row::RowForm;
use lakepin::spec::index_manifest::{decode_index_manifest, encode_index_manifest};
use lakepin::spec::manifest::{decode_manifest, decode_manifest_list, encode_manifest, encode_manifest_list};
use lakepin::spec::{
    BinaryRow, DataType, Datum, FieldType, IndexFileMeta, ManifestEntry, ManifestFileMeta, SimpleStats, Snapshot,
    TableSchema,
};
use serde_json::Value;

use super::kit::OrText;

/// The snapshot file as a value.
pub fn snapshot(root: &Path, id: i64) -> Result<Snapshot, String> {
    Snapshot::from_json(&fs::read(snapshot_path(root, id)).text()?).text()
}

pub fn snapshot_path(root: &Path, id: i64) -> PathBuf {
    root.join(format!("snapshot/snapshot-{id}"))
}

/// Changes every manifest entry of a snapshot in place.
pub fn entries(root: &Path, id: i64, mut change: impl FnMut(&mut ManifestEntry)) -> Result<(), String> {
    let mut snapshot = snapshot(root, id)?;
    let dir = root.join("manifest");
    let names = [snapshot.base_manifest_list.clone(), snapshot.delta_manifest_list.clone()];
    let mut sizes = Vec::new();
    for name in &names {
        let path = dir.join(name);
        let mut list = decode_manifest_list(&fs::read(&path).text()?, name).text()?;
        for meta in &mut list {
            let file = dir.join(&meta.file_name);
            let mut entries = decode_manifest(&fs::read(&file).text()?, &meta.file_name).text()?;
            entries.iter_mut().for_each(&mut change);
            let bytes = encode_manifest(&entries).text()?;
            meta.file_size = bytes.len() as u64;
            fs::write(&file, bytes).text()?;
        }
        let bytes = encode_manifest_list(&list).text()?;
        sizes.push(bytes.len() as u64);
        fs::write(&path, bytes).text()?;
    }
    snapshot.base_manifest_list_size = sizes.first().copied();
    snapshot.delta_manifest_list_size = sizes.last().copied();
    fs::write(snapshot_path(root, id), snapshot.to_json()).text()
}

/// Changes what the manifest lists of a snapshot say about its manifests, in place.
pub fn manifests(root: &Path, id: i64, mut change: impl FnMut(&mut ManifestFileMeta)) -> Result<(), String> {
    let mut snapshot = snapshot(root, id)?;
    let mut sizes = Vec::new();
    for name in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
        let path = root.join("manifest").join(name);
        let mut list = decode_manifest_list(&fs::read(&path).text()?, name).text()?;
        list.iter_mut().for_each(&mut change);
        let bytes = encode_manifest_list(&list).text()?;
        sizes.push(bytes.len() as u64);
        fs::write(&path, bytes).text()?;
    }
    snapshot.base_manifest_list_size = sizes.first().copied();
    snapshot.delta_manifest_list_size = sizes.last().copied();
    fs::write(snapshot_path(root, id), snapshot.to_json()).text()
}

/// Makes one table a branch of another: data files and manifests of both lie in one folder.
pub fn make_branch(of: &Path, from: &Path, name: &str) -> Result<(), String> {
    let branch = of.join(format!("branch/branch-{name}"));
    for file in files_below(from) {
        let relative = file.strip_prefix(from).text()?;
        let own = ["schema", "snapshot", "tag"].iter().any(|folder| relative.starts_with(folder));
        let to = if own { branch.join(relative) } else { of.join(relative) };
        fs::create_dir_all(to.parent().ok_or("no folder")?).text()?;
        fs::rename(&file, &to).text()?;
    }
    fs::remove_dir_all(from).text()
}

/// Changes the index manifest of a snapshot in place.
pub fn index_files(root: &Path, id: i64, mut change: impl FnMut(&mut IndexFileMeta)) -> Result<(), String> {
    let name = snapshot(root, id)?.index_manifest.ok_or("no index manifest")?;
    let path = root.join("manifest").join(&name);
    let mut files = decode_index_manifest(&fs::read(&path).text()?, &name).text()?;
    files.iter_mut().for_each(&mut change);
    fs::write(&path, encode_index_manifest(&files).text()?).text()
}

/// Changes a JSON document in place.
pub fn json(path: &Path, change: impl FnOnce(&mut Value)) -> Result<(), String> {
    let mut value: Value = serde_json::from_slice(&fs::read(path).text()?).text()?;
    change(&mut value);
    fs::write(path, value.to_string()).text()
}

/// Statistics of some columns.
pub fn stats(types: &[&str], mins: &[Datum], maxs: &[Datum], nulls: &[Option<i64>]) -> Result<SimpleStats, String> {
    let types: Vec<FieldType> = types.iter().map(|t| FieldType::parse(t)).collect::<Result<_, _>>().text()?;
    let row = |values: &[Datum]| -> Result<BinaryRow, String> {
        let pairs: Vec<(&Datum, &DataType)> = values.iter().zip(&types).map(|(v, t)| (v, &t.data_type)).collect();
        BinaryRow::encode(&pairs, RowForm::Serialized).text()
    };
    Ok(SimpleStats { min_values: row(mins)?, max_values: row(maxs)?, null_counts: nulls.to_vec() })
}

/// Writes the next schema file, made from the newest one by hand.
pub fn next_schema(root: &Path, from: i64, change: impl FnOnce(&mut Value)) -> Result<TableSchema, String> {
    let mut value: Value =
        serde_json::from_slice(&fs::read(root.join(format!("schema/schema-{from}"))).text()?).text()?;
    value["id"] = (from + 1).into();
    change(&mut value);
    let text = value.to_string();
    fs::write(root.join(format!("schema/schema-{}", from + 1)), &text).text()?;
    TableSchema::from_json(text.as_bytes()).text()
}

/// Every file below a folder.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Data files of a table, in any bucket.
pub fn data_files(root: &Path) -> Vec<PathBuf> {
    let is_data = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("data-"));
    files_below(root).into_iter().filter(is_data).collect()
}
