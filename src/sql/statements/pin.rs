//! `PIN`, `UNPIN`, `SHOW PINS`: states of tables that a session keeps reading.

use crate::error::{ErrorKind, Result};
use crate::notice::{Notice, NoticeKind};
use crate::recon::retention::{self, Hold};
use crate::scan::ChangeRange;
use crate::snapshot::{Pin, SessionZone};
use crate::spec::END_OF_INPUT;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::result::{Outlook, OutlookEnd, PinDetails, PinLine, PinNote, ShownPins};
use crate::sql::settings::SessionPin;
use crate::sql::statement::Used;

/// A pin as a result shows it, with the changes up to it when those are read and not its rows.
pub(crate) fn line_of(used: &Used, zone: &SessionZone, session: bool) -> PinLine {
    let line = line(&used.pin, zone, session || used.session);
    let Some(ChangeRange { after, upto }) = used.changes else { return line };
    let range = format!("{} @ changes after snapshot {after} up to snapshot {upto}", line.table);
    let found = line.clone();
    let line = PinLine { snapshot_id: Some(upto.0), changes_after: Some(after.0), ..line };
    let rest = line.text.strip_prefix(&line.table).unwrap_or_default();
    if let Some(rest) = rest.strip_prefix(&format!(" @ snapshot {upto},")) {
        return PinLine { text: format!("{range},{rest}"), ..line };
    }
    // only the changelog is left of the end: what is known of another snapshot is not told as its own
    let text = format!("{range}, found at{}", rest.strip_prefix(" @").unwrap_or(rest));
    let unknown = PinLine { commit_time_millis: None, user: None, identifier: None, kind: None, ..line };
    let details = Box::new(PinDetails { found_at: Some(found), ..PinDetails::default() });
    PinLine { watermark: None, tag: None, text, details, ..unknown }
}

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
        changes_after: None,
        text: pin.describe(zone),
        details: Box::new(PinDetails {
            commit_time: snapshot.map(|s| zone.show_exact(s.time_millis)),
            watermark_time: snapshot.and_then(|s| s.watermark).map(|w| zone.show_watermark(w)),
            written_schema_id: snapshot.map_or(pin.schema.id, |s| s.schema_id).0,
            latest_schema_id: pin.latest_schema_id.0,
            fallback: pin.fallback.as_ref().map(|other| self::line(other, zone, false)),
            primary: pin.primary.as_ref().map(|other| self::line(other, zone, false)),
            found_at: None,
            outlook: None,
        }),
    }
}

/// The session's pins, each looked at again: who made the snapshot, how old it is, about when it will be gone, what
/// holds it, and whether it is still the one that was pinned.
///
/// `expires_about` is a forecast (see [`retention`]): the time from which on expiry may take it. It is NULL when that
/// cannot be said; `note` says why. `state` is `ok`, `expired`, `lost`, `damaged`, or `unknown` where storage does not tell.
pub(crate) async fn show(pins: &[SessionPin], zone: &SessionZone, now: i64) -> Result<ShownPins> {
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
        ("age", Kind::Text, false),
        ("expires_about", Kind::Text, false),
        ("retained_by", Kind::Text, false),
        ("state", Kind::Text, true),
        ("schema_id", Kind::Long, true),
        ("pinned_as", Kind::Text, true),
        ("note", Kind::Text, false),
    ]);
    let (mut rows, mut told) = (Vec::new(), Vec::new());
    for SessionPin { pin, said, .. } in pins {
        let ident = pin.table.ident();
        let snapshot = pin.snapshot.as_deref();
        // one table in trouble does not hide the pins of the others
        let (state, forecast) = match pin.verify().await {
            Ok(()) => ("ok", retention::of_pin(pin, zone, now).await),
            Err(error) if error.code() == "SnapshotExpired" => ("expired", Err(error)),
            Err(error) if error.code() == "PinLost" => ("lost", Err(error)),
            Err(error) if error.kind() == ErrorKind::Unavailable => ("unknown", Err(error)),
            Err(error) => ("damaged", Err(error)),
        };
        let (expires_about, holds, note) = match forecast {
            Ok(forecast) => (forecast.expires_about, forecast.retained_by, PinNote::Forecast(forecast.reasons)),
            Err(error) => (None, Vec::new(), PinNote::Gone(error)),
        };
        let held = holds.iter().map(Hold::to_string).collect::<Vec<_>>().join(", ");
        rows.push(vec![
            Cell::text(format!("{}.{}", ident.database, ident.table)),
            Cell::text(&ident.branch),
            Cell::opt_long(snapshot.map(|s| s.id.0)),
            Cell::opt_text(snapshot.and_then(|s| s.uuid.as_deref())),
            Cell::opt_text(snapshot.map(|s| s.commit_user.as_str())),
            Cell::opt_long(snapshot.map(|s| s.commit_identifier)),
            Cell::opt_text(snapshot.map(|s| s.commit_kind.as_str())),
            Cell::opt_text(snapshot.map(|s| zone.show(s.time_millis))),
            Cell::opt_text(snapshot.and_then(|s| s.watermark).map(|w| match w {
                END_OF_INPUT => zone.show_watermark(w),
                millis => zone.show(millis),
            })),
            Cell::opt_text(snapshot.map(|s| age(now.saturating_sub(s.time_millis)))),
            Cell::opt_text(expires_about.map(|time| zone.show(time))),
            Cell::opt_text((!held.is_empty()).then_some(held)),
            Cell::text(state),
            Cell::Long(pin.schema.id.0),
            Cell::text(said),
            Cell::opt_text(note.text()),
        ]);
        told.push((holds, note));
    }
    Ok(ShownPins { rows: cells::batch(&schema, &rows)?, told })
}

/// What a new pin is told with beside its line: the records its commit added, and about when its snapshot will be gone or
/// what holds it; and a warning when that is soon.
pub(crate) async fn prospects(pin: &Pin, zone: &SessionZone, now: i64) -> Result<(Option<Outlook>, Option<Notice>)> {
    let Some(snapshot) = pin.snapshot.as_deref() else { return Ok(Default::default()) };
    let forecast = retention::of_pin(pin, zone, now).await?;
    let end = match forecast.expires_about {
        Some(end) if end <= now => OutlookEnd::NextCommit,
        Some(end) => OutlookEnd::About(zone.show(end)),
        None if !forecast.retained_by.is_empty() => OutlookEnd::HeldBy(forecast.retained_by.clone()),
        None => OutlookEnd::NotKnown,
    };
    let warning = forecast.is_near(snapshot.time_millis, now).then(|| {
        let about = match &end {
            OutlookEnd::About(time) => Some(time.clone()),
            _ => None,
        };
        NoticeKind::ExpiresSoon { table: pin.table.name(), snapshot: snapshot.id.0, about }.into()
    });
    Ok((Some(Outlook { added_records: snapshot.delta_record_count, end }), warning))
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
