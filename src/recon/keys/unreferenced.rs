//! Data files that no commit names, and what they hold of a key: written, and never committed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Key;
use super::life::Lives;
use super::rows::{FileRows, RowReader};
use crate::error::Result;
use crate::file::FileFormat;
use crate::recon::history::History;
use crate::recon::unreferenced::stray_data;
use crate::scan::PlannedFile;
use crate::snapshot::SessionZone;
use crate::spec::{
    BinaryRow, Bucket, DataFileMeta, Datum, FileKind, FileSource, ManifestEntry, SimpleStats, TableSchema,
};
use crate::storage::FileEntry;

/// The number of the postpone bucket.
const POSTPONE: i32 = -2;

/// Data files in the buckets of the key's partition, or of all partitions that a history knows, which nothing kept names;
/// and what of the metadata cannot be read.
///
/// # Errors
/// Storage that does not answer; a branch that cannot be read: its files would be told as never committed.
pub(super) async fn files(history: &History, key: &Key, lives: &Lives) -> Result<(Vec<Arc<PlannedFile>>, Vec<String>)> {
    let texts = history.texts(&SessionZone::utc()).await?;
    let partitions: BTreeSet<BinaryRow> = match key.partition(&history.pin.schema)? {
        Some(own) => BTreeSet::from([own]),
        None => {
            let mut known: BTreeSet<BinaryRow> = lives.files.keys().map(|(partition, ..)| partition.clone()).collect();
            for changes in history.all_changes(&history.commits).await.into_iter().flatten() {
                known.extend(changes.iter().map(|change| change.entry().partition.clone()));
            }
            known
        }
    };
    let partitions: Vec<BinaryRow> = partitions.into_iter().collect();
    let folders = partitions.iter().map(|partition| texts.partition_folder(partition)).collect::<Result<Vec<_>>>()?;
    let (strays, unread) = stray_data(history, &folders).await?;
    let mut found = Vec::new();
    for (number, bucket, file) in strays {
        let bucket = match bucket.strip_prefix("bucket-") {
            Some("postpone") => Some(POSTPONE),
            Some(number) => number.parse().ok(),
            None => None,
        };
        let (Some(bucket), Some(partition)) = (bucket, partitions.get(number)) else { continue };
        if FileFormat::of_file(&file.name).is_ok() {
            let values: Arc<[Datum]> = texts.partition_values(partition)?.into();
            found.push(Arc::new(planned(history, file, partition.clone(), bucket, values)));
        }
    }
    Ok((found, unread))
}

/// What reading needs of a file, with nothing known but where it lies.
fn planned(history: &History, file: FileEntry, partition: BinaryRow, bucket: i32, values: Arc<[Datum]>) -> PlannedFile {
    let none =
        || SimpleStats { min_values: BinaryRow::empty(), max_values: BinaryRow::empty(), null_counts: Vec::new() };
    let none_known: Arc<[Datum]> = Arc::from(Vec::new());
    let entry = ManifestEntry {
        kind: FileKind::Add,
        partition,
        bucket: Bucket(bucket),
        total_buckets: -1,
        file: DataFileMeta {
            file_name: file.name,
            file_size: file.size,
            row_count: -1,
            min_key: BinaryRow::empty(),
            max_key: BinaryRow::empty(),
            key_stats: none(),
            value_stats: none(),
            min_sequence_number: 0,
            max_sequence_number: 0,
            schema_id: history.pin.schema.id,
            level: 0,
            extra_files: Vec::new(),
            creation_time_millis: Some(file.modified_millis),
            delete_row_count: None,
            embedded_index: None,
            // sequence numbers are given as they are stored
            file_source: Some(FileSource::Compact),
            value_stats_cols: None,
            external_path: None,
            first_row_id: None,
            write_cols: None,
            write_cols_sequences: None,
        },
    };
    PlannedFile {
        entry: Arc::new(entry),
        location: file.location,
        storage: Arc::clone(history.table().storage()),
        deletion: None,
        index_rows: None,
        file_schema: Arc::clone(&history.pin.schema),
        partition: values,
        min_key: Arc::clone(&none_known),
        max_key: none_known,
        snapshot: None,
    }
}

/// What they hold of the key. Nothing tells with which schema a file was written: the newest that it can be read with is
/// taken.
pub(super) async fn rows(
    reader: &mut RowReader,
    files: &[Arc<PlannedFile>],
) -> Result<Vec<(Arc<PlannedFile>, FileRows)>> {
    let mut schemas: Vec<Arc<TableSchema>> = Vec::new();
    if !files.is_empty() {
        let table = Arc::clone(&reader.context.pin.table);
        for id in table.schema_ids().await?.into_iter().rev() {
            schemas.push(table.schema(id).await?);
        }
        schemas.sort_by_key(|schema| std::cmp::Reverse(schema.id));
    }
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        let mut last = None;
        for schema in &schemas {
            let file = Arc::new(PlannedFile { file_schema: Arc::clone(schema), ..file.as_ref().clone() });
            let found = reader.read(std::slice::from_ref(&file)).await?.into_iter().next();
            let done = matches!(found, Some(FileRows::Found(_)));
            last = found.map(|found| (file, found));
            if done {
                break;
            }
        }
        all.extend(last);
    }
    Ok(all)
}
