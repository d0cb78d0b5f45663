//! When a snapshot will be gone: a forecast from the table's options, its commits, and what holds it.
//!
//! Expiry runs after commits and removes snapshots from the oldest on: by count, those beyond
//! `snapshot.num-retained.max`; by age, those whose successor is older than `snapshot.time-retained`, but never the
//! newest `snapshot.num-retained.min` and none from the lowest consumer on. A tag keeps the files of its snapshot. A
//! branch keeps nothing: expiry of one branch does not look at others.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::notice::cannot_be_read;
use crate::snapshot::{Pin, SessionZone, SnapshotFingerprint, Table};
use crate::spec::Snapshot;
use crate::spec::options::RetentionOptions;
use crate::spec::tag::Tag;

/// Commits are taken to have stopped when none came for so many of their usual distances.
const QUIET_AFTER: i64 = 10;

/// What is known of a snapshot's end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    /// From about when on it may be expired, epoch milliseconds; None when that cannot be said, and `reason` says why.
    pub expires_about: Option<i64>,
    /// What keeps it now.
    pub retained_by: Vec<Hold>,
    /// Why there is no time, or what it stands on.
    pub reasons: Vec<Reason>,
}

/// What keeps a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// A tag.
    Tag(String),
    /// A consumer that has not read it yet.
    Consumer(String),
    /// It is one of so many newest ones.
    Newest(i64),
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Consumer(name) => write!(f, "consumer {name}"),
            Self::Newest(count) => write!(f, "newest {count}"),
        }
    }
}

/// Why the end of a snapshot is not known, or what it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The table has no snapshot.
    NoSnapshot,
    /// It is not kept any more.
    NotKept,
    /// A tag without an end of its own holds it.
    Tag(String),
    /// It goes when its tags expire.
    TagsExpire,
    /// A consumer stands before it or at it.
    Consumer,
    /// So many commits are missing, and when they come is not known.
    Commits {
        /// How many.
        needed: i64,
        /// Whether none came for long; else their rate is not known.
        quiet: bool,
    },
    /// Writers of the table expire nothing.
    WriteOnly,
    /// The options say nothing that makes sense.
    Options(String),
    /// What cannot be read, tags and consumers by name, may hold it.
    Unread(Vec<(&'static str, Vec<String>)>),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot => f.write_str("the table has no snapshot"),
            Self::NotKept => f.write_str("it is not kept any more"),
            Self::Tag(name) => write!(f, "tag '{name}' holds it until somebody deletes the tag"),
            Self::TagsExpire => f.write_str("when its tags are expired"),
            Self::Consumer => f.write_str("as long as the consumer stands there"),
            Self::Commits { needed, quiet } => {
                let why = if *quiet { "none came for long" } else { "their rate is not known" };
                let plural = if *needed == 1 { "" } else { "s" };
                write!(f, "after {needed} more commit{plural}, and {why}")
            }
            Self::WriteOnly => f.write_str("if another job expires snapshots: the writers do not (write-only)"),
            Self::Options(what) => f.write_str(what),
            Self::Unread(all) => {
                let unread: Vec<String> = all.iter().map(|(what, names)| cannot_be_read(what, names)).collect();
                write!(f, "{}: it may be kept longer", unread.join(", "))
            }
        }
    }
}

impl Forecast {
    fn unknown(reason: Reason) -> Self {
        Self { reasons: vec![reason], ..Self::default() }
    }

    /// Whether less than a fifth of the snapshot's life is left.
    pub fn is_near(&self, committed: i64, now: i64) -> bool {
        let Some(end) = self.expires_about else { return false };
        let (life, rest) = (end.saturating_sub(committed).max(0), end.saturating_sub(now).max(0));
        rest.saturating_mul(5) <= life
    }
}

/// A table's commits and holds, as they are now.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Number and commit time of the snapshots kept, ascending.
    pub commits: Vec<(i64, i64)>,
    /// Tags of the snapshot in question, with the time they go by themselves.
    pub tags: Vec<(String, Option<i64>)>,
    /// Consumers and the snapshot each reads next.
    pub consumers: Vec<(String, i64)>,
}

impl History {
    /// The usual distance of two commits.
    fn distance(&self) -> Option<i64> {
        let ((first, start), (last, end)) = (*self.commits.first()?, *self.commits.last()?);
        end.checked_sub(start)?.checked_div(last.checked_sub(first)?).filter(|distance| *distance > 0)
    }
}

/// The forecast for snapshot `id`.
pub fn forecast(id: i64, history: &History, retention: &RetentionOptions, now: i64) -> Forecast {
    let mut found = alone(id, history, retention, now);
    let tags = history.tags.iter();
    found.retained_by.splice(0..0, tags.clone().map(|(name, _)| Hold::Tag(name.clone())));
    if tags.len() == 0 {
        return found;
    }
    // the last of them to go
    match tags.clone().map(|(_, until)| *until).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max()) {
        None => {
            let (name, _) = tags.clone().find(|(_, until)| until.is_none()).cloned().unwrap_or_default();
            found.expires_about = None;
            found.reasons = vec![Reason::Tag(name)];
        }
        Some(until) => {
            // held by more than tags, without a known end
            let kept_beside = found.expires_about.is_none() && history.commits.iter().any(|(known, _)| *known == id);
            if !kept_beside {
                found.expires_about = Some(found.expires_about.map_or(until, |own| own.max(until)).max(now));
                found.reasons = vec![Reason::TagsExpire];
            }
        }
    }
    found
}

/// The forecast without tags.
fn alone(id: i64, history: &History, retention: &RetentionOptions, now: i64) -> Forecast {
    let Some((latest, latest_time)) = history.commits.last().copied() else {
        return Forecast::unknown(Reason::NoSnapshot);
    };
    if !history.commits.iter().any(|(known, _)| *known == id) {
        return Forecast::unknown(Reason::NotKept);
    }
    let mut found = Forecast::default();
    if retention.held_by_consumers {
        let holding = history.consumers.iter().filter(|(_, next)| *next <= id);
        found.retained_by.extend(holding.map(|(name, _)| Hold::Consumer(name.clone())));
    }
    let consumed = !found.retained_by.is_empty();
    // commits until it is not among the newest any more that are kept in any case, and until there are too many
    let until_loose = id.saturating_add(retention.at_least).saturating_sub(latest);
    let until_crowded = retention.at_most.map(|most| id.saturating_add(most).saturating_sub(latest).max(1));
    if until_loose > 0 {
        found.retained_by.push(Hold::Newest(retention.at_least));
    }
    if consumed {
        found.reasons = vec![Reason::Consumer];
        return found;
    }
    let distance = history.distance();
    let quiet = distance.is_some_and(|distance| now.saturating_sub(latest_time) > distance.saturating_mul(QUIET_AFTER));
    // when the n-th commit from now comes
    let commit = |n: i64| -> Option<i64> {
        let distance = distance.filter(|_| !quiet)?;
        let next = latest_time.saturating_add(distance).max(now);
        Some(next.saturating_add(distance.saturating_mul(n.saturating_sub(1))))
    };
    let successor = history.commits.iter().find(|(known, _)| *known > id).map(|(_, time)| *time).or_else(|| commit(1));
    let by_age = successor.and_then(|time| {
        let old = time.saturating_add(retention.millis);
        if until_loose > 0 { commit(until_loose).map(|loose| loose.max(old)) } else { Some(old) }
    });
    let by_count = until_crowded.and_then(commit);
    found.expires_about = match (by_age, by_count) {
        (Some(age), Some(count)) => Some(age.min(count)),
        (one, other) => one.or(other),
    }
    .map(|time| time.max(now));
    let needed = until_crowded.map_or(until_loose, |crowded| crowded.min(until_loose)).max(1);
    found.reasons = match found.expires_about {
        None => vec![Reason::Commits { needed, quiet }],
        Some(_) if retention.write_only => vec![Reason::WriteOnly],
        Some(_) => Vec::new(),
    };
    found
}

/// What decides how long snapshots of a table are kept, as its files say now.
struct Holds {
    retention: std::result::Result<RetentionOptions, String>,
    snapshots: Vec<Arc<Snapshot>>,
    tags: Vec<(String, Tag)>,
    consumers: Vec<(String, i64)>,
    unread: Vec<(&'static str, Vec<String>)>,
}

impl Holds {
    async fn load(table: &Table) -> Result<Self> {
        let (schema, snapshots, tags, consumers) = futures::try_join!(
            table.latest_schema(),
            table.snapshots(),
            table.readable_tags(),
            table.readable_consumers()
        )?;
        let mut unread = vec![("tag", tags.unreadable), ("consumer", consumers.unreadable)];
        unread.retain(|(_, names)| !names.is_empty());
        Ok(Self {
            retention: RetentionOptions::parse(&schema.options).map_err(|error| error.message().to_string()),
            snapshots,
            tags: tags.found,
            consumers: consumers.found.into_iter().map(|(name, next)| (name, next.0)).collect(),
            unread,
        })
    }

    fn forecast(&self, of: &SnapshotFingerprint, zone: &SessionZone, now: i64) -> Forecast {
        let tags = self.tags.iter().filter(|(_, tag)| of.is_of(&tag.snapshot)).map(|(name, tag)| {
            let made = tag.create_time.map(|time| time.and_utc().timestamp_millis());
            let made = made.map(|time| zone.instant_of(time).unwrap_or(time));
            let kept = tag.time_retained.and_then(|kept| i64::try_from(kept.as_millis()).ok());
            (name.clone(), made.zip(kept).map(|(made, kept)| made.saturating_add(kept)))
        });
        let history = History {
            // a number that was used again is another snapshot
            commits: self
                .snapshots
                .iter()
                .filter(|snapshot| snapshot.id != of.id || of.is_of(snapshot))
                .map(|snapshot| (snapshot.id.0, snapshot.time_millis))
                .collect(),
            tags: tags.collect(),
            consumers: self.consumers.clone(),
        };
        let mut found = match &self.retention {
            Ok(retention) => forecast(of.id.0, &history, retention, now),
            Err(wrong) => Forecast::unknown(Reason::Options(wrong.clone())),
        };
        // what cannot be read may hold the snapshot: the forecast is of the rest
        if !self.unread.is_empty() {
            found.reasons.push(Reason::Unread(self.unread.clone()));
        }
        found
    }
}

/// The forecast for the snapshot of a pin, from what the table's files say now.
///
/// Cost: the newest schema, and listings and small reads of snapshots, tags and consumers.
///
/// # Errors
/// Files that cannot be read; options of no meaning give a forecast without time.
pub async fn of_pin(pin: &Pin, zone: &SessionZone, now: i64) -> Result<Forecast> {
    match &pin.fingerprint.snapshot {
        None => Ok(Forecast::unknown(Reason::NoSnapshot)),
        Some(pinned) => Ok(Holds::load(&pin.table).await?.forecast(pinned, zone, now)),
    }
}

/// The forecasts for all snapshots that are kept, by themselves or by a tag, ascending by number and commit time.
///
/// Cost and errors: as [`of_pin`], once for all.
pub async fn of_table(table: &Table, zone: &SessionZone, now: i64) -> Result<Vec<(Arc<Snapshot>, Forecast)>> {
    let holds = Holds::load(table).await?;
    let mut all = holds.snapshots.clone();
    for (_, tag) in &holds.tags {
        let held = SnapshotFingerprint::from(&tag.snapshot);
        if !all.iter().any(|known| held.is_of(known)) {
            all.push(Arc::new(tag.snapshot.clone()));
        }
    }
    all.sort_by_key(|snapshot| (snapshot.id, snapshot.time_millis));
    let of = |snapshot: Arc<Snapshot>| {
        let forecast = holds.forecast(&SnapshotFingerprint::from(snapshot.as_ref()), zone, now);
        (snapshot, forecast)
    };
    Ok(all.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const NOW: i64 = 1_000 * HOUR;

    /// Snapshots `first..=last`, an hour apart, the last one half an hour ago.
    fn hourly(first: i64, last: i64) -> History {
        let commits = (first..=last).map(|id| (id, NOW - HOUR / 2 - (last - id) * HOUR)).collect();
        History { commits, ..History::default() }
    }

    fn keeping(at_least: i64, at_most: Option<i64>, millis: i64) -> RetentionOptions {
        RetentionOptions { at_least, at_most, millis, write_only: false, held_by_consumers: true }
    }

    fn said(forecast: &Forecast) -> String {
        forecast.reasons.iter().map(Reason::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Hours from now.
    fn hours(forecast: &Forecast) -> Option<f64> {
        forecast.expires_about.map(|time| (time - NOW) as f64 / HOUR as f64)
    }

    #[test]
    fn age_and_count_decide_together() {
        for (id, at_least, at_most, kept_hours, expected) in [
            // its successor came 2.5 hours ago
            (17, 1, None, 1, Some(0.0)),
            (17, 1, None, 4, Some(1.5)),
            // one of the newest four until the next commit in half an hour
            (17, 4, None, 1, Some(0.5)),
            (17, 5, None, 1, Some(1.5)),
            (17, 5, None, 6, Some(3.5)),
            // too many after the second commit, long before its time
            (17, 1, Some(5), 100, Some(1.5)),
            (17, 1, Some(50), 4, Some(1.5)),
            // the latest: a successor, then an hour
            (20, 1, None, 1, Some(1.5)),
        ] {
            let forecast = forecast(id, &hourly(10, 20), &keeping(at_least, at_most, kept_hours * HOUR), NOW);
            assert_eq!(hours(&forecast), expected, "{id} {at_least} {at_most:?} {kept_hours}: {forecast:?}");
        }
    }

    #[test]
    fn what_holds_it_is_named_and_gives_no_time_it_does_not_know() {
        let retention = keeping(4, None, HOUR);
        let mut history = hourly(10, 20);
        assert_eq!(forecast(18, &history, &retention, NOW).retained_by, [Hold::Newest(4)]);
        assert_eq!(forecast(12, &history, &retention, NOW).retained_by, []);
        history.consumers = vec![("late".into(), 12), ("far".into(), 19)];
        let held = forecast(12, &history, &retention, NOW);
        assert_eq!((held.expires_about, held.retained_by), (None, vec![Hold::Consumer("late".to_string())]));
        // a consumer further on holds nothing before it
        assert_eq!(hours(&forecast(11, &history, &retention, NOW)), Some(0.0));
        let changelog = RetentionOptions { held_by_consumers: false, ..retention };
        assert_eq!(hours(&forecast(12, &history, &changelog, NOW)), Some(0.0));

        let mut history = hourly(10, 20);
        history.tags = vec![("short".into(), Some(NOW + 5 * HOUR))];
        let tagged = forecast(12, &history, &retention, NOW);
        assert_eq!((hours(&tagged), tagged.retained_by), (Some(5.0), vec![Hold::Tag("short".to_string())]));
        // expired already, its tag still there
        assert_eq!(hours(&forecast(5, &history, &retention, NOW)), Some(5.0));
        history.tags.push(("eod".into(), None));
        let kept = forecast(12, &history, &retention, NOW);
        assert_eq!(
            (kept.expires_about, said(&kept).as_str()),
            (None, "tag 'eod' holds it until somebody deletes the tag")
        );
        assert_eq!(forecast(5, &hourly(10, 20), &retention, NOW), Forecast::unknown(Reason::NotKept));
        assert_eq!(said(&forecast(5, &History::default(), &retention, NOW)), "the table has no snapshot");
    }

    #[test]
    fn without_commits_there_is_no_time_but_a_reason() {
        let retention = keeping(4, None, HOUR);
        let one = forecast(20, &hourly(20, 20), &retention, NOW);
        assert_eq!(
            (one.expires_about, said(&one).as_str()),
            (None, "after 4 more commits, and their rate is not known")
        );
        let quiet = forecast(19, &hourly(10, 20), &retention, NOW + 30 * HOUR);
        assert_eq!(
            (quiet.expires_about, said(&quiet).as_str()),
            (None, "after 3 more commits, and none came for long")
        );
        // nothing but its age kept it
        assert_eq!(hours(&forecast(12, &hourly(10, 20), &retention, NOW + 30 * HOUR)), Some(30.0));
    }

    #[test]
    fn a_fifth_of_its_life_is_near() {
        let until = |expires_about| Forecast { expires_about, ..Forecast::default() };
        assert!(!until(Some(NOW + 3 * HOUR)).is_near(NOW - 7 * HOUR, NOW));
        assert!(until(Some(NOW + 2 * HOUR)).is_near(NOW - 8 * HOUR, NOW));
        assert!(until(Some(NOW)).is_near(NOW - HOUR, NOW));
        assert!(!until(None).is_near(0, NOW));
    }
}
