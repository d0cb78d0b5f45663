//! `t$commit_files`: what each commit did to data files and which changelog files it made, an upgrade as one row.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::notice::NoticeKind;
use crate::recon::entry_texts::EntryTexts;
use crate::recon::history::{FileChange, History, ListKind, Recorded};
use crate::spec::FileSource;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("snapshot_id", Kind::Long, true),
        ("commit_kind", Kind::Text, true),
        ("commit_user", Kind::Text, true),
        ("commit_identifier", Kind::Long, true),
        ("commit_time", Kind::Time, true),
        ("list", Kind::Text, true),
        ("change", Kind::Text, true),
        ("partition", Kind::Text, true),
        ("bucket", Kind::Int, true),
        ("total_buckets", Kind::Int, true),
        ("file_name", Kind::Text, true),
        ("from_level", Kind::Int, false),
        ("level", Kind::Int, true),
        ("record_count", Kind::Long, true),
        ("delete_row_count", Kind::Long, false),
        ("file_size_in_bytes", Kind::Long, true),
        ("min_key", Kind::Text, false),
        ("max_key", Kind::Text, false),
        ("min_sequence_number", Kind::Long, true),
        ("max_sequence_number", Kind::Long, true),
        ("schema_id", Kind::Long, true),
        ("file_source", Kind::Text, false),
        ("creation_time", Kind::Time, false),
        ("kept_as", Kind::Text, true),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let history = History::load(&source.newest().await?, &source.env).await?;
    let texts = history.texts(&source.zone).await?;
    let mut rows = Vec::new();
    let mut lost = Vec::new();
    let changes = history.all_changes(&history.commits).await;
    for (recorded, changes) in history.commits.iter().zip(changes) {
        match changes {
            Ok(changes) => {
                for change in &changes {
                    rows.push(row(&source, &texts, recorded, ListKind::Delta, change)?);
                }
            }
            Err(_) => lost.push(format!("delta list of {} {}", recorded.kept, recorded.id())),
        }
        match history.entries(&recorded.snapshot, ListKind::Changelog).await {
            Ok(entries) => {
                for entry in entries {
                    rows.push(row(&source, &texts, recorded, ListKind::Changelog, &FileChange::Add(entry))?);
                }
            }
            Err(_) => lost.push(format!("changelog list of {} {}", recorded.kept, recorded.id())),
        }
    }
    if !lost.is_empty() {
        source.notice(NoticeKind::PartsUnread { table: source.table.name(), parts: lost });
    }
    source.marked(schema(), &rows)
}

fn row(
    source: &Source,
    texts: &EntryTexts,
    recorded: &Recorded,
    list: ListKind,
    change: &FileChange,
) -> Result<Vec<Cell>> {
    let snapshot = &recorded.snapshot;
    let entry = change.entry();
    let file = &entry.file;
    let (name, from_level) = match change {
        FileChange::Add(_) => ("ADD", None),
        FileChange::Delete(_) => ("DELETE", None),
        FileChange::Upgrade { from, .. } => ("UPGRADE", Some(from.file.level)),
    };
    let mut row = vec![
        Cell::Long(snapshot.id.0),
        Cell::text(snapshot.commit_kind.as_str()),
        Cell::text(&snapshot.commit_user),
        Cell::Long(snapshot.commit_identifier),
        Cell::Time(source.wall_clock(snapshot.time_millis)),
        Cell::text(list.as_str()),
        Cell::text(name),
        Cell::text(texts.partition(&entry.partition)?),
        Cell::Int(entry.bucket.0),
        Cell::Int(entry.total_buckets),
        Cell::text(&file.file_name),
        from_level.map_or(Cell::Null, Cell::Int),
        Cell::Int(file.level),
        Cell::Long(file.row_count),
        Cell::opt_long(file.delete_row_count),
        Cell::count(file.file_size),
        Cell::opt_text(texts.key(entry, &file.min_key)?),
        Cell::opt_text(texts.key(entry, &file.max_key)?),
        Cell::Long(file.min_sequence_number),
        Cell::Long(file.max_sequence_number),
        Cell::Long(file.schema_id.0),
        Cell::opt_text(file.file_source.map(FileSource::as_str)),
        file.creation_time_millis.map_or(Cell::Null, Cell::Time),
        Cell::text(recorded.kept_text()),
    ];
    source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| pinned.is_of(snapshot)));
    Ok(row)
}
