//! `PIN`, `UNPIN`, `SHOW PINS`: states of tables that a session keeps reading.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::error::Result;
use crate::snapshot::{Pin, SessionZone};
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::result::PinLine;
use crate::sql::settings::SessionPin;
use crate::storage::env::now_millis;

/// A pin as a result shows it.
pub(crate) fn line(pin: &Pin, zone: &SessionZone, session: bool) -> PinLine {
    let snapshot = pin.snapshot.as_deref();
    PinLine {
        table: pin.table.name(),
        snapshot_id: snapshot.map(|s| s.id.0),
        commit_time_millis: snapshot.map(|s| s.time_millis),
        user: snapshot.map(|s| s.commit_user.clone()),
        identifier: snapshot.map(|s| s.commit_identifier),
        kind: snapshot.map(|s| s.commit_kind.as_str().to_string()),
        watermark: snapshot.and_then(|s| s.watermark),
        schema_id: pin.schema.id.0,
        tag: pin.tag.clone(),
        session,
        text: pin.describe(zone),
    }
}

/// The session's pins, each looked at again.
pub(crate) async fn show(pins: &[SessionPin], zone: &SessionZone) -> Result<RecordBatch> {
    let schema = cells::schema(&[
        ("table", Kind::Text, true),
        ("branch", Kind::Text, true),
        ("snapshot_id", Kind::Long, false),
        ("uuid", Kind::Text, false),
        ("user", Kind::Text, false),
        ("identifier", Kind::Long, false),
        ("kind", Kind::Text, false),
        ("commit_time", Kind::Text, false),
        ("watermark", Kind::Text, false),
        ("schema_id", Kind::Long, true),
        ("age", Kind::Text, false),
        ("retained_by", Kind::Text, false),
        ("state", Kind::Text, true),
        ("pinned_as", Kind::Text, true),
    ]);
    let mut rows = Vec::new();
    for SessionPin { pin, said } in pins {
        let ident = pin.table.ident();
        let snapshot = pin.snapshot.as_deref();
        let state = match pin.verify().await {
            Ok(()) => "ok",
            Err(error) if error.code() == "SnapshotExpired" => "expired",
            Err(error) if error.code() == "PinLost" => "lost",
            Err(error) => return Err(error),
        };
        rows.push(vec![
            Cell::text(format!("{}.{}", ident.database, ident.table)),
            Cell::text(&ident.branch),
            Cell::opt_long(snapshot.map(|s| s.id.0)),
            Cell::opt_text(snapshot.and_then(|s| s.uuid.as_deref())),
            Cell::opt_text(snapshot.map(|s| s.commit_user.as_str())),
            Cell::opt_long(snapshot.map(|s| s.commit_identifier)),
            Cell::opt_text(snapshot.map(|s| s.commit_kind.as_str())),
            Cell::opt_text(snapshot.map(|s| zone.show(s.time_millis))),
            Cell::opt_text(snapshot.and_then(|s| s.watermark).map(|w| zone.show(w))),
            Cell::Long(pin.schema.id.0),
            Cell::opt_text(snapshot.map(|s| age(now_millis().saturating_sub(s.time_millis)))),
            Cell::opt_text(pin.tag.as_ref().map(|tag| format!("tag {tag}"))),
            Cell::text(state),
            Cell::text(said),
        ]);
    }
    cells::batch(&schema, &rows)
}

/// `3d 4h`, `4h 5m`, `5m 6s`.
fn age(millis: i64) -> String {
    let seconds = millis.max(0) / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, m) => format!("{m}m {}s", seconds % 60),
        (0, h, m) => format!("{h}h {m}m"),
        (d, h, _) => format!("{d}d {h}h"),
    }
}

/// What a held pin was asked as, for `SHOW PINS`.
pub(crate) fn held(pin: &Arc<Pin>, said: impl Into<String>) -> SessionPin {
    SessionPin { pin: Arc::clone(pin), said: said.into() }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_show_their_two_largest_units() {
        assert_eq!(age(5_000), "5s");
        assert_eq!(age(65_000), "1m 5s");
        assert_eq!(age(3_900_000), "1h 5m");
        assert_eq!(age(90_000_000), "1d 1h");
    }
}
