//! The verdict: which layer is responsible for a difference, and what proves it.
//!
//! | file | one idea |
//! |---|---|
//! | `model` | the answer as data; its JSON |
//! | `sample` | some findings of very many |
//! | `keys` | one finding and the history of its key |
//! | `patterns` | what the values of both sides show |
//! | `decide` | from what is known of a key to a layer |
//! | `ahead` | a source that was read earlier |
//! | `count` | a count of the other side |
//! | `state` | the table beside its keys |
//! | `causes` | findings with one cause put together |
//! | `text`, `rows`, `page`, `words` | the answer for people, for SQL, as a page; its names |
//!
//! Nothing here decides by a majority: every finding that is looked at has its own answer, and causes are groups of them.
//! What was not looked at is counted as that.

mod ahead;
mod causes;
mod count;
mod decide;
mod keys;
mod model;
mod page;
mod patterns;
mod rows;
mod sample;
mod state;
mod text;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::NOT_DETERMINED;
pub use model::{
    AccountingPoint, Anomaly, Cause, ClassCount, CommitRef, ConflictLine, CountCandidate, CountTest, Counts, FORMAT,
    KeyCase, LakeState, Layer, LayerCount, Limit, Money, PartitionCount, Pattern, Proof, Rerun, SourceState, Summary,
    Verdict, VersionLine,
};
pub use patterns::{Domain, Patterns};
pub use sample::{Lone, Sample};

use self::decide::Facts;
use self::keys::Looked;
use super::history::History;
use super::unreferenced::{StrayList, unreferenced};
use crate::error::{ErrorKind, Result};
use crate::memory::MemoryBudget;
use crate::recon::compare::{self, Class, Common, Example, Report};
use crate::recon::keys::Reason;
use crate::recon::lookup::Confidence;
use crate::snapshot::{Pin, SessionZone};
use crate::spec::Snapshot;

/// Keys, commits and files of a proof that are named.
pub const SHOWN: usize = 10;
/// Commits that are told in all.
pub const COMMITS: usize = 2_000;
/// Versions of a key that are told.
pub const VERSIONS: usize = 50;
/// Keys of each cause of which the versions are told.
const HISTORIES: usize = 3;
/// Keys that are looked at, where nothing else is said.
pub const KEYS: usize = 100;
/// Snapshots of which rows are counted for a chart.
const SERIES: usize = 12;
/// The outcome where no difference was found and what was read cannot be relied on.
const UNSOUND: &str = "UNSOUND";
/// Conflicts that are told.
const CONFLICTS: usize = 100;

/// The table on the left, at the state that was read.
pub struct Lake {
    /// Its past.
    history: History,
    /// The pin of the comparison.
    pin: Arc<Pin>,
    /// Its snapshot.
    at: Arc<Snapshot>,
    zone: SessionZone,
    budget: Arc<dyn MemoryBudget>,
    main_user: Option<String>,
}

/// What stands on the left of a verdict.
pub enum Left {
    /// A table at a snapshot.
    Lake(Box<Lake>),
    /// A table without a snapshot: it has no row and no past.
    Empty,
    /// Rows that are not those of one table.
    Other,
}

impl Left {
    /// A table with its past. `pin`: the state that was compared.
    pub fn of_table(history: History, pin: &Arc<Pin>, zone: SessionZone, budget: Arc<dyn MemoryBudget>) -> Self {
        let Some(at) = pin.snapshot.clone() else { return Self::Empty };
        let mut lake = Lake { history, pin: Arc::clone(pin), at, zone, budget, main_user: None };
        lake.main_user = lake.find_main_user();
        Self::Lake(Box::new(lake))
    }

    fn lake(&self) -> Option<&Lake> {
        match self {
            Self::Lake(lake) => Some(lake),
            Self::Empty | Self::Other => None,
        }
    }
}

/// A comparison that was run.
pub struct Compared<'a> {
    /// What it found.
    pub report: &'a Report,
    /// Its findings.
    pub sample: Sample,
    /// What the lake has in columns that may hold codes.
    pub domain: Domain,
    /// Whether it was run again.
    pub rerun: Rerun,
    /// Key columns, by their names in the lake.
    pub keys: Vec<String>,
    /// What its values stand for.
    pub common: Common,
    /// Whether both sides have a condition.
    pub filtered: bool,
}

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Findings that are looked up one by one, at most.
    pub keys: usize,
    /// A count of the other side.
    pub theirs: Option<u64>,
}

/// Gives the verdict.
///
/// Cost: all metadata of the table, a listing of its folders; for each finding that is looked up the files that can hold
/// its key; the keys of some snapshots for their accounting.
///
/// # Errors
/// Storage that does not answer, memory refused. What is lost or damaged is told in the verdict.
pub async fn judge(left: &Left, compared: Option<Compared<'_>>, wanted: Wanted) -> Result<Verdict> {
    let lake = left.lake();
    let mut limits: Vec<Limit> = Vec::new();
    let mut anomalies = Vec::new();
    let mut strays: Vec<StrayList> = Vec::new();
    let mut series = Vec::new();
    let counts;
    if let Some(lake) = lake {
        limits.extend(lake.lost_lists().await);
        let (found, unchecked) = of_the_table(lake.anomalies().await, "anomalies", &mut limits)?.unwrap_or_default();
        anomalies = found;
        limits.extend(unchecked);
        strays = of_the_table(unreferenced(&lake.history).await, "unreferenced files", &mut limits)?
            .map(|found| found.lists)
            .unwrap_or_default();
        counts = of_the_table(lake.counts().await, "rows at the pin", &mut limits)?;
        series = lake.series(SERIES, &mut limits).await?;
        if !lake.history.is_whole() {
            limits.push(Limit { what: "what was before".to_string(), why: lake.history.reach(&lake.zone) });
        }
    } else {
        let is_empty = matches!(left, Left::Empty);
        // no snapshot is no row, which is known
        counts = is_empty.then(Counts::default);
        limits.push(Limit {
            what: "commits and histories of keys".to_string(),
            why: match is_empty {
                true => "the table on the left had no snapshot when it was read",
                false => "the left side is no table at a snapshot",
            }
            .to_string(),
        });
    }
    let mut cases = Vec::new();
    let mut left_out = 0;
    let mut partitions = Vec::new();
    if let Some(compared) = &compared {
        cases = findings(lake, compared, &strays, wanted.keys, &mut limits).await?;
        left_out = compared.report.differences().saturating_sub(cases.len() as u64);
        partitions = by_partition(&compared.sample);
        if compared.report.stopped {
            let why = "the comparison was ended early, as STOP AFTER asks".to_string();
            limits.push(Limit { what: "findings behind those that are counted".to_string(), why });
        }
    }
    let mut causes = causes::causes(&cases, &anomalies);
    keep_some_histories(&mut cases);
    let engine = engine(compared.as_ref().map(|compared| &compared.rerun), counts.as_ref());
    let sound = engine.is_none();
    if let Some(cause) = engine {
        causes.insert(0, cause);
    }
    let count_test = match (wanted.theirs, &counts) {
        (Some(theirs), Some(counts)) => {
            let read = compared.as_ref().map(|compared| count::Compared {
                lake: compared.report.left.rows,
                source: compared.report.right.rows,
                filtered: compared.filtered,
            });
            if read.is_some_and(|read| read.filtered) {
                let why = "it is not applied to raw, hidden, superseded and deleted rows: those are of the whole table";
                limits.push(Limit { what: "the condition".to_string(), why: why.to_string() });
            }
            let states = lake.map(|lake| lake.other_states(&series)).unwrap_or_default();
            Some(count::test(theirs, counts, &states, read))
        }
        (Some(_), None) => {
            limits.push(Limit {
                what: "the count of the other side".to_string(),
                why: "the rows of the left side cannot be counted by their kinds".to_string(),
            });
            None
        }
        _ => None,
    };
    if let Some(cause) = count_test.as_ref().and_then(counted) {
        causes.insert(0, cause);
    }
    let mut conflicts = Vec::new();
    if let Some(lake) = lake {
        let about: BTreeSet<i64> = cases.iter().flat_map(|case| &case.commits).map(|commit| commit.snapshot).collect();
        let about: Vec<i64> = about.into_iter().collect();
        conflicts = of_the_table(lake.conflicts(&about).await, "conflicts", &mut limits)?.unwrap_or_default();
        if conflicts.len() > CONFLICTS {
            let more = conflicts.len() - CONFLICTS;
            limits.push(Limit {
                what: format!("{more} more conflicts"),
                why: "the first are told: \\conflicts tells all".into(),
            });
            conflicts.truncate(CONFLICTS);
        }
    }
    if lake.is_some() && !cases.is_empty() {
        let why = "they read the rows of all snapshots: SELECT * FROM paimon_anomalies('…', deep => true)".to_string();
        limits.push(Limit { what: "detectors D-13 and D-16".to_string(), why });
    }
    let asked_count = wanted.theirs.map(|_| CountOutcome::of(count_test.as_ref()));
    let summary = summary(compared.as_ref(), asked_count, &causes, &cases, lake, sound);
    let report = compared.as_ref().map(|compared| compared.report);
    Ok(Verdict {
        format: FORMAT,
        summary,
        lake: lake.map(Lake::state),
        source: compared.as_ref().map(|compared| SourceState {
            name: compared.report.right.name.clone(),
            position: compared.report.right.position.clone(),
            rows: compared.report.right.rows,
            lake_rows: compared.report.left.rows,
            rerun: compared.rerun.clone(),
        }),
        counts,
        money: report.map(money).unwrap_or_default(),
        classes: report.map(classes).unwrap_or_default(),
        notes: report.map(|report| report.notes.clone()).unwrap_or_default(),
        causes,
        count_test,
        keys: cases,
        keys_left_out: left_out,
        anomalies,
        conflicts,
        undetermined: limits,
        commits: lake.map(Lake::commits).unwrap_or_default(),
        accounting: series,
        partitions,
    })
}

/// What is lost or damaged is a limit; what does not answer ends all.
fn of_the_table<T>(found: Result<T>, what: &str, limits: &mut Vec<Limit>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Internal) => {
            Err(error)
        }
        Err(error) => {
            limits.push(Limit { what: what.to_string(), why: error.message().to_string() });
            Ok(None)
        }
    }
}

/// What is known of a finding, before it is decided.
struct Draft<'a> {
    example: &'a Example,
    looked: Option<Looked>,
    /// Why it was not looked up.
    why: Option<String>,
}

async fn findings(
    lake: Option<&Lake>,
    compared: &Compared<'_>,
    strays: &[StrayList],
    most: usize,
    limits: &mut Vec<Limit>,
) -> Result<Vec<KeyCase>> {
    let patterns = Patterns::of(compared.sample.all()).with_domain(compared.domain.clone());
    let cannot = lake.and_then(|lake| keys::cannot(lake, &compared.keys));
    if let Some(why) = &cannot {
        limits.push(Limit { what: "histories of keys".to_string(), why: why.clone() });
    }
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    let mut notices: BTreeSet<String> = BTreeSet::new();
    for example in compared.sample.chosen(most) {
        let looked = match lake.filter(|_| cannot.is_none()) {
            None => Ok(None),
            Some(lake) => keys::look(lake, example, strays, &compared.common, true).await.map(Some),
        };
        let (looked, why) = match looked {
            Ok(looked) => (looked, None),
            Err(error) if keys::is_of_the_key(&error) => (None, Some(error.message().to_string())),
            Err(error) => return Err(error),
        };
        notices.extend(looked.iter().flat_map(|looked| &looked.limits).map(|limit| limit.to_string()));
        drafts.push(Draft { example, looked, why });
    }
    limits.extend(notices.into_iter().map(|why| Limit { what: "some histories of keys".to_string(), why }));
    let total = compared.report.differences().max(1);
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let scale = total as f64 / (drafts.len().max(1)) as f64;
    let mut facts: Vec<Facts> = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        let mut own = draft.looked.as_ref().map(|looked| looked.facts.clone()).unwrap_or_default();
        own.class = Some(draft.example.class);
        own.pattern = patterns.of_finding(draft.example);
        if own.twice.is_none() && own.pattern.is_none() && own.reason.is_none_or(|r| r == Reason::UnknownBeforeHistory)
        {
            own.pattern = patterns.repeated_delta(draft.example).map(|pattern| (pattern, Confidence::Heuristic));
        }
        own.place([Class::ExtraInLake, Class::MissingInLake].map(|class| compared.sample.lone(class, draft.example)));
        facts.push(own);
    }
    let commits: Vec<CommitRef> = lake.map(Lake::commits).unwrap_or_default();
    let up_to = lake.map_or(i64::MAX, |lake| lake.at.id.0);
    let commits: Vec<CommitRef> = commits.into_iter().filter(|commit| commit.snapshot <= up_to).collect();
    ahead::mark(&mut facts, &commits, scale);
    Ok(drafts.into_iter().zip(facts).map(|(draft, facts)| case(draft, &facts)).collect())
}

fn case(draft: Draft<'_>, facts: &Facts) -> KeyCase {
    let decision = facts.decide();
    let Draft { example, looked, why } = draft;
    let (sentence, file, sequence, versions) = match looked {
        Some(looked) => (looked.sentence, looked.file, looked.sequence, looked.versions),
        None => (String::new(), None, None, Vec::new()),
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(Some(sentence).filter(|text| !text.is_empty()));
    parts.extend(decision.more);
    parts.extend(why.map(|why| format!("its history cannot be told: {why}")));
    if parts.is_empty() {
        parts.push(match &decision.pattern {
            Some(pattern) => pattern.text(),
            None => "nothing that is kept tells why".to_string(),
        });
    }
    KeyCase {
        class: example.class,
        key: example.key.clone(),
        cells: example.cells.clone(),
        layer: decision.layer,
        reason: facts.reason.map(|reason| reason.as_str().to_string()),
        pattern: decision.pattern,
        sentence: parts.join("; "),
        commits: decision.commits,
        file,
        sequence,
        confidence: decision.confidence,
        clean_at: facts.clean_at,
        clean_until: facts.clean_until,
        versions,
    }
}

/// The versions of the first keys of each cause; the others are told without.
fn keep_some_histories(cases: &mut [KeyCase]) {
    let mut kept: std::collections::BTreeMap<(Option<Layer>, Option<String>), usize> =
        std::collections::BTreeMap::new();
    for case in cases {
        let times = kept.entry((case.layer, case.reason.clone())).or_default();
        *times += 1;
        if *times > HISTORIES {
            case.versions.clear();
        }
    }
}

/// The cause that two readings of one state are.
fn engine(rerun: Option<&Rerun>, counts: Option<&Counts>) -> Option<Cause> {
    let told = match (rerun, counts) {
        (Some(Rerun::Differs(why)), _) => format!("two comparisons at the same pins differ: {why}"),
        (_, Some(counts)) if !counts.violations.is_empty() => {
            format!("the rows do not add up: {}", counts.violations.join("; "))
        }
        _ => return None,
    };
    let layer = Some(if matches!(rerun, Some(Rerun::Differs(_))) { Layer::Engine } else { Layer::Storage });
    Some(Cause {
        layer,
        reason: None,
        pattern: None,
        findings: 1,
        classes: Vec::new(),
        text: told,
        confidence: Confidence::Exact,
        proof: Proof::default(),
        next: decide::next(layer, None),
    })
}

/// The cause that another rule of counting is.
fn counted(test: &CountTest) -> Option<Cause> {
    let layer = Some(test.layer?);
    Some(Cause {
        layer,
        reason: None,
        pattern: None,
        findings: test.theirs.abs_diff(test.ours),
        classes: Vec::new(),
        text: test.text.clone(),
        confidence: test.confidence,
        proof: Proof::default(),
        next: decide::next(layer, None),
    })
}

fn money(report: &Report) -> Vec<Money> {
    let sums = report.columns.iter().filter_map(|column| Some((column, column.sums.as_ref()?)));
    let told = sums.map(|(column, [left, right])| Money {
        column: column.name.clone(),
        left: left.clone(),
        right: right.clone(),
        delta: column.delta.clone(),
        mismatches: column.mismatches,
    });
    told.collect()
}

fn classes(report: &Report) -> Vec<ClassCount> {
    let told = report.classes.iter().map(|one| ClassCount {
        class: one.class,
        findings: one.count.findings,
        left_rows: one.count.left_rows,
        right_rows: one.count.right_rows,
    });
    told.collect()
}

fn by_partition(sample: &Sample) -> Vec<PartitionCount> {
    let mut all: Vec<PartitionCount> = Vec::new();
    for (partition, classes) in sample.places() {
        let classes: Vec<(Class, u64)> =
            classes.iter().filter(|(class, _)| class.is_difference()).map(|(class, count)| (*class, *count)).collect();
        let findings = classes.iter().map(|(_, count)| count).sum();
        if findings > 0 {
            all.push(PartitionCount { partition: partition.clone(), classes, findings });
        }
    }
    all
}

/// What became of a count that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountOutcome {
    Equal,
    Different,
    /// Our own rows could not be counted.
    NotDetermined,
}

impl CountOutcome {
    fn of(test: Option<&CountTest>) -> Self {
        match test {
            Some(test) if test.theirs == test.ours => Self::Equal,
            Some(_) => Self::Different,
            None => Self::NotDetermined,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Equal => "COUNT_EQUAL",
            Self::Different => "COUNT_DIFFERENT",
            Self::NotDetermined => NOT_DETERMINED,
        }
    }
}

/// That nothing differs, in words: of no more than what was looked at.
fn nothing(report: Option<&Report>, at: &str) -> String {
    let Some(report) = report else { return format!("their count is the number of final rows{at}") };
    match report.verdict {
        compare::Verdict::NoDifferenceInSample => {
            let rows = report.left.rows.max(report.right.rows);
            format!("no difference in a sample of {rows} rows{at}; the others were not looked at")
        }
        compare::Verdict::EqualWithinTolerance => format!("nothing differs beyond its tolerance{at}"),
        compare::Verdict::Equal | compare::Verdict::Different => format!("nothing differs{at}"),
    }
}

fn summary(
    compared: Option<&Compared<'_>>,
    count: Option<CountOutcome>,
    causes: &[Cause],
    cases: &[KeyCase],
    lake: Option<&Lake>,
    sound: bool,
) -> Summary {
    let layers = causes::layers(causes);
    let differences = compared.map_or(0, |compared| compared.report.differences());
    let explained = cases.iter().filter(|case| case.layer.is_some()).count() as u64;
    let looked_at = cases.len() as u64;
    let count_clean = count.map_or(compared.is_some(), |count| count == CountOutcome::Equal);
    let equal = count_clean && compared.is_none_or(|compared| compared.report.verdict.is_clean());
    // what was read twice and was not the same, or does not add up, proves nothing equal
    let clean = equal && sound;
    let outcome = match (compared.map(|compared| compared.report.verdict), count) {
        _ if equal && !sound => UNSOUND,
        // equal rows beside a count that is another, or that nothing is known of, are no equal sides
        (Some(rows), Some(count)) if rows.is_clean() && !count_clean => count.name(),
        (Some(rows), _) => rows.name(),
        (None, count) => count.unwrap_or(CountOutcome::NotDetermined).name(),
    };
    let stopped = compared.is_some_and(|compared| compared.report.stopped);
    let at = lake.map_or(String::new(), |lake| format!(" at snapshot {}", lake.at.id));
    let names: Vec<String> = layers.iter().map(|one| format!("{} {}", one.layer.name(), one.findings)).collect();
    let line = if clean && causes.is_empty() {
        nothing(compared.map(|compared| compared.report), &at)
    } else {
        let least = if stopped { "at least " } else { "" };
        let of = match (differences, looked_at) {
            (0, _) => String::new(),
            (all, looked) if all == looked => format!("{least}{all} findings{at}, all looked at: "),
            (all, looked) => format!("{least}{all} findings{at}, {looked} of them looked at: "),
        };
        let unknown = looked_at - explained;
        let mut parts = names;
        if unknown > 0 {
            parts.push(format!("not determined {unknown}"));
        }
        if count == Some(CountOutcome::NotDetermined) {
            parts.push("their count could not be tested".to_string());
        }
        if parts.is_empty() {
            parts.push("no cause was found".to_string());
        }
        format!("{of}{}", parts.join(", "))
    };
    let layer = match layers.as_slice() {
        [only] if explained == looked_at => Some(only.layer),
        _ => None,
    };
    Summary {
        outcome: outcome.to_string(),
        clean,
        sound,
        layer,
        layers,
        line,
        differences,
        stopped,
        looked_at,
        explained,
    }
}

#[cfg(test)]
mod tests;
