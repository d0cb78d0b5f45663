//! Some findings of very many: all where they are few, else spread over classes and the first column of the key. Of rows
//! that one side alone has it is known of nearly all which key they have in any partition.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hasher;

use twox_hash::XxHash64;

use crate::recon::compare::{Class, Example};

/// Findings that are kept of each class to look for patterns in.
const KEPT: usize = 20_000;

/// Keys without their partition that are known of each class of lone rows: some 16 MiB at most.
const LONE: usize = 1_000_000;

/// Findings of a comparison, bounded.
#[derive(Debug)]
pub struct Sample {
    partition_keys: Vec<String>,
    kept: BTreeMap<Class, Vec<Example>>,
    seen: BTreeMap<Class, u64>,
    /// By partition and class.
    places: BTreeMap<String, BTreeMap<Class, u64>>,
    /// Hashes of the keys, without their partition, of rows that one side alone has.
    lone: BTreeMap<Class, HashSet<u64>>,
    most_lone: usize,
}

/// Whether one side alone has a row of a key in some partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lone {
    /// It has.
    Yes,
    /// It has not.
    No,
    /// There were more such rows than are kept in mind.
    Unknown,
}

/// Partitions that are counted by name.
const PLACES: usize = 2_000;

impl Default for Sample {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Sample {
    /// No finding yet, of a table with these partition columns.
    pub fn new(partition_keys: Vec<String>) -> Self {
        let (kept, seen, places, lone) = Default::default();
        Self { partition_keys, kept, seen, places, lone, most_lone: LONE }
    }

    fn is_of_partition(&self, name: &str) -> bool {
        self.partition_keys.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// The partition of a finding, as far as its key tells it.
    fn place(&self, example: &Example) -> String {
        let value = |name: &String| {
            let of_key = example.key.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
            of_key.map(|(_, value)| format!("{name}={}", value.as_deref().unwrap_or("NULL")))
        };
        self.partition_keys.iter().filter_map(value).collect::<Vec<_>>().join("/")
    }

    /// The key without its partition.
    fn below(&self, example: &Example) -> u64 {
        let mut hash = XxHash64::default();
        for (_, value) in example.key.iter().filter(|(name, _)| !self.is_of_partition(name)) {
            let text = value.as_deref().map(one_decimal).unwrap_or("\u{0}");
            hash.write_usize(text.len());
            hash.write(text.as_bytes());
        }
        hash.finish()
    }

    /// Whether there is a finding of a class whose key is that of another one but for the partition.
    pub fn lone(&self, class: Class, of: &Example) -> Lone {
        let known = self.lone.get(&class);
        if known.is_some_and(|known| known.contains(&self.below(of))) {
            return Lone::Yes;
        }
        if known.is_some_and(|known| known.len() >= self.most_lone) { Lone::Unknown } else { Lone::No }
    }

    /// Takes a finding.
    ///
    /// Of more than fits every second is dropped, then every second of those, so that what is kept is spread evenly.
    pub fn take(&mut self, example: &Example) {
        let class = example.class;
        if matches!(class, Class::MissingInLake | Class::ExtraInLake) && !self.partition_keys.is_empty() {
            let below = self.below(example);
            let lone = self.lone.entry(class).or_default();
            if lone.len() < self.most_lone {
                lone.insert(below);
            }
        }
        let place = self.place(example);
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

/// A number as both sides of a comparison show it, whose columns may have other digits behind the point.
fn one_decimal(text: &str) -> &str {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_decimal = digits.contains('.') && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_decimal { text.trim_end_matches('0').trim_end_matches('.') } else { text }
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

    fn of_day(class: Class, id: u64, day: u64) -> Example {
        let mut found = example(class, id);
        found.key.push(("p".into(), Some(day.to_string())));
        found
    }

    #[test]
    fn of_lone_rows_far_beyond_the_sample_it_is_known_whether_the_other_side_has_them_elsewhere() {
        let mut sample = Sample::new(vec!["p".into()]);
        for id in 0..KEPT as u64 * 3 {
            sample.take(&of_day(Class::ExtraInLake, id, 2));
            sample.take(&of_day(Class::MissingInLake, id, 1));
        }
        assert!(sample.kept[&Class::ExtraInLake].len() <= KEPT);
        for id in 0..KEPT as u64 * 3 {
            assert_eq!(sample.lone(Class::ExtraInLake, &of_day(Class::MissingInLake, id, 1)), Lone::Yes, "{id}");
        }
        assert_eq!(sample.lone(Class::ExtraInLake, &of_day(Class::MissingInLake, 1 << 40, 1)), Lone::No);
        // what was not kept in mind is not said not to be there
        let mut small = Sample { most_lone: 10, ..Sample::new(vec!["p".into()]) };
        (0..20).for_each(|id| small.take(&of_day(Class::ExtraInLake, id, 2)));
        let lone = |id| small.lone(Class::ExtraInLake, &of_day(Class::MissingInLake, id, 1));
        assert_eq!([lone(9), lone(15)], [Lone::Yes, Lone::Unknown]);
        assert_eq!(small.lone(Class::MissingInLake, &of_day(Class::ExtraInLake, 1, 1)), Lone::No);
        assert_eq!(
            [one_decimal("-5.10"), one_decimal("5.00"), one_decimal("100"), one_decimal("v1.0")],
            ["-5.1", "5", "100", "v1.0"]
        );
    }

    #[test]
    fn few_are_all_there_and_many_are_spread() {
        let mut sample = Sample::new(vec!["p".into()]);
        for id in 0..100_000 {
            sample.take(&of_day(Class::Different, id, id % 3));
        }
        for id in 0..5 {
            sample.take(&example(Class::MissingInLake, id));
        }
        assert_eq!((sample.count(Class::Different), sample.count(Class::MissingInLake)), (100_000, 5));
        assert_eq!(sample.places()["p=0"][&Class::Different], 33_334);
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
