//! Some findings of very many: all where they are few, else spread over classes and the first column of the key.

use std::collections::BTreeMap;

use crate::recon::compare::{Class, Example};

/// Findings that are kept of each class to look for patterns in.
const KEPT: usize = 20_000;

/// Findings of a comparison, bounded.
#[derive(Debug, Default)]
pub struct Sample {
    kept: BTreeMap<Class, Vec<Example>>,
    seen: BTreeMap<Class, u64>,
    /// By partition, as `place` tells it, and class.
    places: BTreeMap<String, BTreeMap<Class, u64>>,
}

/// Partitions that are counted by name.
const PLACES: usize = 2_000;

impl Sample {
    /// Takes a finding; `place`: its partition.
    ///
    /// Of more than fits every second is dropped, then every second of those, so that what is kept is spread evenly.
    pub fn take(&mut self, example: &Example, place: String) {
        let class = example.class;
        let seen = self.seen.entry(class).or_default();
        let at = *seen;
        *seen += 1;
        if self.places.len() < PLACES || self.places.contains_key(&place) {
            *self.places.entry(place).or_default().entry(class).or_default() += 1;
        }
        let kept = self.kept.entry(class).or_default();
        let step = step(at);
        if !at.is_multiple_of(step) {
            return;
        }
        if kept.len() >= KEPT {
            let mut index = 0;
            kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        kept.push(example.clone());
    }

    /// Findings of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.seen.get(&class).copied().unwrap_or_default()
    }

    /// Those that are kept.
    pub fn all(&self) -> impl Iterator<Item = &Example> {
        self.kept.values().flatten()
    }

    /// Findings by partition and class.
    pub fn places(&self) -> &BTreeMap<String, BTreeMap<Class, u64>> {
        &self.places
    }

    /// At most `most` findings that make the sides different: each class has its share, evenly spread over its keys.
    pub fn chosen(&self, most: usize) -> Vec<&Example> {
        let classes: Vec<&Vec<Example>> =
            self.kept.iter().filter(|(class, _)| class.is_difference()).map(|(_, kept)| kept).collect();
        let mut shares: Vec<usize> = vec![0; classes.len()];
        let mut left = most;
        // rounds: what a small class does not use goes to the others
        while left > 0 {
            let open: Vec<usize> = (0..classes.len())
                .filter(|at| shares.get(*at) < classes.get(*at).map(|kept| kept.len()).as_ref())
                .collect();
            if open.is_empty() {
                break;
            }
            let each = (left / open.len()).max(1);
            for at in open {
                let (Some(share), Some(kept)) = (shares.get_mut(at), classes.get(at)) else { continue };
                let more = each.min(kept.len() - *share).min(left);
                *share += more;
                left -= more;
            }
        }
        let mut chosen = Vec::with_capacity(most.min(1024));
        for (kept, share) in classes.into_iter().zip(shares) {
            let spread = (0..share).filter_map(|at| kept.get(at * kept.len() / share.max(1)));
            chosen.extend(spread);
        }
        chosen
    }
}

/// Every how many-th finding is kept from place `at` on.
fn step(at: u64) -> u64 {
    let (mut step, mut full) = (1, KEPT as u64);
    while at >= full {
        step *= 2;
        full = full.saturating_mul(2);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(class: Class, id: u64) -> Example {
        Example {
            class,
            key: vec![("id".into(), Some(id.to_string()))],
            cells: Vec::new(),
            left_rows: 1,
            right_rows: 1,
            snapshot: None,
        }
    }

    #[test]
    fn few_are_all_there_and_many_are_spread() {
        let mut sample = Sample::default();
        for id in 0..100_000 {
            sample.take(&example(Class::Different, id), format!("p{}", id % 3));
        }
        for id in 0..5 {
            sample.take(&example(Class::MissingInLake, id), String::new());
        }
        assert_eq!((sample.count(Class::Different), sample.count(Class::MissingInLake)), (100_000, 5));
        assert_eq!(sample.places()["p0"][&Class::Different], 33_334);
        let chosen = sample.chosen(40);
        assert_eq!(chosen.len(), 40);
        assert_eq!(chosen.iter().filter(|one| one.class == Class::MissingInLake).count(), 5);
        let ids: Vec<u64> = chosen
            .iter()
            .filter(|one| one.class == Class::Different)
            .map(|one| one.key[0].1.as_ref().unwrap().parse().unwrap())
            .collect();
        assert!(
            ids[0] == 0 && ids.windows(2).all(|pair| pair[0] < pair[1]) && *ids.last().unwrap() > 80_000,
            "{ids:?}"
        );
        assert!(sample.kept[&Class::Different].len() <= KEPT);
        assert_eq!(sample.chosen(1_000_000).len() as u64, sample.all().count() as u64);
        assert!(sample.chosen(0).is_empty());
    }
}
