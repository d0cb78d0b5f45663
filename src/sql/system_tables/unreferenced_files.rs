//! `t$unreferenced_files`: what lies in the table's folder and nothing kept names. Nothing is deleted.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::notice::NoticeKind;
use crate::recon::history::History;
use crate::recon::readable::readable;
use crate::recon::unreferenced::unreferenced;
use crate::sql::cells::{self, Cell, Kind};
use crate::storage::env::now_millis;

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("file_path", Kind::Text, true),
        ("kind", Kind::Text, true),
        ("class", Kind::Text, true),
        ("unit", Kind::Text, false),
        ("file_size_in_bytes", Kind::Long, true),
        ("modified_time", Kind::Time, true),
        ("age_ms", Kind::Long, true),
        ("commit_user", Kind::Text, false),
        ("readable", Kind::Bool, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let history = History::load(&source.newest().await?, &source.env).await?;
    let found = unreferenced(&history).await?;
    if !found.unread.is_empty() {
        source.notice(NoticeKind::PartsUnread { table: source.table.name(), parts: found.unread });
    }
    let marks = readable(source.table.storage(), &found.files).await?;
    let now = now_millis();
    let rows: Vec<Vec<Cell>> = found
        .files
        .into_iter()
        .zip(marks)
        .map(|(stray, readable)| {
            let modified = stray.file.modified_millis;
            vec![
                Cell::text(stray.file.location.to_string()),
                Cell::text(stray.role.as_str()),
                Cell::text(stray.class.as_str()),
                Cell::opt_text((!stray.unit.is_empty()).then_some(stray.unit)),
                Cell::count(stray.file.size),
                Cell::Time(source.wall_clock(modified)),
                Cell::Long(now.saturating_sub(modified)),
                Cell::opt_text(stray.user),
                readable.map_or(Cell::Null, Cell::Bool),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
