//! Which snapshots last wrote the keys of a comparison's examples, where the left side is a table at a pin.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::ScalarValue;

use super::statement::Statement;
use super::system_tables::Source;
use super::verdicts::pin_of;
use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::recon::compare::{Class, Example, Report, Side};
use crate::recon::history::History;
use crate::recon::keys::{Asked, Key, Reason, explain};
use crate::snapshot::Pin;

/// Examples that are looked up: each costs a read of every kept file that may hold its key.
const EXAMPLES: usize = 20;
/// Snapshots that a history may have to be read for them unasked.
const SNAPSHOTS: i64 = 1_000;

/// Fills in the snapshots of the first examples of each class. What cannot be said stays open: a key that is none of the
/// table's, a history that is gone. A comparison does not fail for it.
pub(crate) async fn tell(statement: &Arc<Statement>, left: &Side, report: &mut Report) {
    let Some(pin) = pin_of(left) else { return };
    let wanted = in_turn(&report.examples);
    if wanted.is_empty() {
        return;
    }
    let Ok(found) = found(statement, pin, &report.examples, &wanted).await else { return };
    for (at, snapshot) in found {
        if let Some(example) = report.examples.get_mut(at) {
            example.snapshot = Some(snapshot);
        }
    }
}

/// Places of the examples that are looked up: one of each class that makes a difference, then the next of each.
fn in_turn(examples: &[Example]) -> Vec<usize> {
    let mut classes: BTreeMap<Class, Vec<usize>> = BTreeMap::new();
    for (at, example) in examples.iter().enumerate() {
        if example.class.is_difference() && example.key.iter().all(|(_, value)| value.is_some()) {
            classes.entry(example.class).or_default().push(at);
        }
    }
    let longest = classes.values().map(Vec::len).max().unwrap_or_default();
    let turns = (0..longest).flat_map(|turn| classes.values().filter_map(move |all| all.get(turn).copied()));
    turns.take(EXAMPLES).collect()
}

async fn found(
    statement: &Arc<Statement>,
    pin: &Arc<Pin>,
    examples: &[Example],
    wanted: &[usize],
) -> Result<Vec<(usize, i64)>> {
    let Some(at) = pin.snapshot.clone() else { return Ok(Vec::new()) };
    if let (Some(first), Some(last)) = (pin.table.earliest_snapshot_id().await?, pin.table.latest_snapshot_id().await?)
        && last.0 - first.0 > SNAPSHOTS
    {
        return Ok(Vec::new());
    }
    let source = Source::of_now(statement, &pin.table).await?;
    let history = History::load(source.pin()?, &source.env).await?;
    let budget: Arc<dyn MemoryBudget> = source.budget();
    let asked = Asked { at: at.id, delta_list: at.delta_manifest_list.clone(), expected: None };
    let mut found = Vec::new();
    for place in wanted {
        let Some(example) = examples.get(*place) else { continue };
        let parts = example
            .key
            .iter()
            .map(|(name, value)| format!("{name}='{}'", value.as_deref().unwrap_or_default().replace('\'', "''")));
        let key = Key::try_new(&history.pin, &[ScalarValue::Utf8(Some(parts.collect::<Vec<_>>().join(", ")))])?;
        let why = explain(&history, &key, &asked, &budget, &source.zone).await?;
        let is_written = matches!(why.reason, Reason::ValueFrom | Reason::Tombstoned);
        let commit = why.commit.filter(|commit| is_written && commit.id <= at.id);
        found.extend(commit.map(|commit| (*place, commit.id.0)));
    }
    Ok(found)
}
