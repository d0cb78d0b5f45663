//! Options that say how long snapshots are kept. Readers do not need them; they tell when what is read will be gone.

use std::collections::BTreeMap;

use super::given::Given;
use crate::error::{Error, Result};

/// How long snapshots are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionOptions {
    /// `snapshot.num-retained.min`: so many of the newest never expire; at least the latest.
    pub at_least: i64,
    /// `snapshot.num-retained.max`: older ones expire whatever their age; None: no limit.
    pub at_most: Option<i64>,
    /// `snapshot.time-retained`: how long a snapshot is kept after the next one came, milliseconds.
    pub millis: i64,
    /// `write-only`: writers do not expire, some other job does.
    pub write_only: bool,
    /// Whether consumers keep snapshots; with a changelog that lives longer they may hold that alone
    /// (`consumer.changelog-only`).
    pub held_by_consumers: bool,
}

impl RetentionOptions {
    /// Reads them. An error names the option, its value and what is accepted.
    pub fn parse(options: &BTreeMap<String, String>) -> Result<Self> {
        let given = Given(options);
        let count = |option| Ok::<_, Error>(given.int(option)?.map(i64::from));
        let at_least = count("snapshot.num-retained.min")?.unwrap_or(10).max(1);
        let at_most = count("snapshot.num-retained.max")?.filter(|most| *most < i64::from(i32::MAX));
        let millis = given.millis("snapshot.time-retained")?.unwrap_or(3_600_000);
        let changelog_lives_longer = count("changelog.num-retained.min")?.is_some_and(|n| n > at_least)
            || count("changelog.num-retained.max")?.is_some_and(|n| at_most.is_some_and(|most| n > most))
            || given.millis("changelog.time-retained")?.is_some_and(|n| n > millis);
        Ok(Self {
            at_least,
            at_most,
            millis,
            write_only: given.bool("write-only", false)?,
            held_by_consumers: !(changelog_lives_longer && given.bool("consumer.changelog-only", false)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pairs: &[(&str, &str)]) -> Result<RetentionOptions> {
        RetentionOptions::parse(&pairs.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect())
    }

    #[test]
    fn counts_and_durations_are_read_with_their_defaults() {
        let plain = parsed(&[]).unwrap();
        assert_eq!((plain.at_least, plain.at_most, plain.millis), (10, None, 3_600_000));
        assert!(plain.held_by_consumers && !plain.write_only);
        for (text, millis) in
            [("500", 500), ("2 h", 7_200_000), ("90min", 5_400_000), ("1 Days", 86_400_000), ("7ns", 0)]
        {
            assert_eq!(parsed(&[("snapshot.time-retained", text)]).unwrap().millis, millis, "{text}");
        }
        for text in ["", "h", "1 fortnight", "-1 h", "999999999999 d"] {
            assert!(parsed(&[("snapshot.time-retained", text)]).is_err(), "{text}");
        }
    }

    #[test]
    fn consumers_may_hold_a_longer_changelog_alone() {
        let alone = ("consumer.changelog-only", "true");
        assert!(parsed(&[alone]).unwrap().held_by_consumers);
        assert!(!parsed(&[alone, ("changelog.time-retained", "2 h")]).unwrap().held_by_consumers);
        assert!(parsed(&[("changelog.num-retained.min", "20")]).unwrap().held_by_consumers);
    }
}
