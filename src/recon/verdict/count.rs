//! A count of the other side, tested against everything it can have counted.

use super::model::{CountCandidate, CountTest, Counts, Layer};
use crate::recon::lookup::Confidence;

/// Final rows of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalRows {
    /// What it is to the pin: `snapshot 7, one after the pin`.
    pub name: String,
    /// Rows.
    pub rows: u64,
}

/// The rows that were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    /// Of the lake.
    pub lake: u64,
    /// Of the source.
    pub source: u64,
    /// Whether they are those that meet a condition.
    pub filtered: bool,
}

/// What a count can be: ours first, other rules of counting at the pin, final rows of other states, those compared.
fn candidates(counts: &Counts, states: &[FinalRows], compared: Option<Compared>) -> Vec<CountCandidate> {
    let Counts { raw_rows: r, hidden_rows: h, vector_deleted: v, superseded: x, tombstoned: t, final_rows: n, .. } =
        *counts;
    let less = |rows: u64, other: u64| rows.saturating_sub(other);
    let rule = Some(Layer::CountingRule);
    let mut all = vec![("final rows N".to_string(), n, format!("{r} − {h} − {v} − {x} − {t}"), None)];
    all.push((
        "raw rows R, all versions of all files".into(),
        r,
        format!("N {n} + H {h} + V {v} + X {x} + T {t}"),
        rule,
    ));
    all.push((
        "rows readers pass before they merge, R − H − V".into(),
        less(less(r, h), v),
        format!("{r} − {h} − {v}"),
        rule,
    ));
    all.push(("rows without those of deletion vectors, R − V".into(), less(r, v), format!("{r} − {v}"), rule));
    all.push(("rows beyond hidden files, R − H".into(), less(r, h), format!("{r} − {h}"), rule));
    all.push(("keys, deleted ones with them, N + T".into(), n + t, format!("{n} + {t}"), rule));
    all.push(("versions that are no tombstone, N + X".into(), n + x, format!("{n} + {x}"), rule));
    all.push(("final and hidden rows, N + H".into(), n + h, format!("{n} + {h}"), rule));
    if let Some(events) = counts.changelog_rows.filter(|events| *events > 0) {
        all.push(("changelog events up to the pin".into(), events, "sum of changelogRecordCount".into(), rule));
    }
    all.push(("rows of all APPEND commits kept".into(), counts.appended_rows, "sum of deltaRecordCount".into(), rule));
    for state in states {
        let name = format!("final rows at {}", state.name);
        all.push((name, state.rows, "N of that state".to_string(), Some(Layer::Visibility)));
    }
    if let Some(Compared { lake, source, filtered }) = compared {
        if filtered {
            all.push(("final rows that meet the condition".into(), lake, "rows read".into(), None));
        }
        all.push(("rows of the source, as compared".into(), source, "rows read".into(), None));
    }
    let made = |(name, value, arithmetic, layer): (String, u64, String, Option<Layer>)| CountCandidate {
        name,
        value,
        arithmetic,
        layer,
        equal: false,
    };
    all.into_iter().map(made).collect()
}

/// Tests a count.
///
/// Equal to our own it means nothing. Equal to the rows that the source itself has it tells of rows, not of a rule: the
/// findings of the comparison say which. Else the first rule of counting that gives it is the answer, then the first other
/// state. That several do is told: they are the same number here.
pub fn test(theirs: u64, counts: &Counts, states: &[FinalRows], compared: Option<Compared>) -> CountTest {
    let mut all = candidates(counts, states, compared);
    all.iter_mut().for_each(|one| one.equal = one.value == theirs);
    // where there is a condition both sides count under it
    let ours = compared.filter(|compared| compared.filtered).map_or(counts.final_rows, |compared| compared.lake);
    let equal: Vec<&CountCandidate> = all.iter().filter(|one| one.equal).collect();
    let told = |one: &CountCandidate| format!("{theirs} = {} ({})", one.name, one.arithmetic);
    let (layer, confidence, text) = if theirs == ours {
        (None, Confidence::Exact, format!("{theirs} is the number of final rows here, too"))
    } else {
        let is_sources = compared.is_some_and(|compared| compared.source == theirs);
        let also = |first: Option<&CountCandidate>| {
            let others = equal.iter().filter(|one| first.map_or(one.layer.is_some(), |first| one.name != first.name));
            let others: Vec<&str> = others.map(|one| one.name.as_str()).collect();
            if others.is_empty() { String::new() } else { format!("; the same number here: {}", others.join(", ")) }
        };
        match equal.iter().find(|one| one.layer.is_some()) {
            Some(first) if !is_sources => {
                let also = also(Some(*first));
                let several = equal.iter().any(|one| one.layer.is_some() && one.layer != first.layer);
                let confidence = if several { Confidence::Heuristic } else { Confidence::Inferred };
                (first.layer, confidence, format!("{}; final rows here are {ours}{also}", told(first)))
            }
            None if equal.is_empty() => {
                let nearest = all.iter().min_by_key(|one| one.value.abs_diff(theirs));
                let near = nearest.map(|one| format!("; the nearest is {} with {}", one.name, one.value));
                let text = format!(
                    "{theirs} is none of {} numbers that this table has; final rows here are {ours}{}",
                    all.len(),
                    near.unwrap_or_default()
                );
                (None, Confidence::Exact, text)
            }
            _ => {
                let text = format!(
                    "{theirs} is what the source has; final rows here are {ours}: the difference is one of rows, not of counting{}",
                    also(None)
                );
                (None, Confidence::Exact, text)
            }
        }
    };
    CountTest { theirs, ours, candidates: all, layer, confidence, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest reproduction of two writers: R = 503, N = 501, X = 2.
    fn counts() -> Counts {
        Counts { raw_rows: 503, superseded: 2, final_rows: 501, appended_rows: 503, ..Counts::default() }
    }

    #[test]
    fn a_count_of_versions_is_another_rule() {
        let found = test(503, &counts(), &[], None);
        assert_eq!(found.layer, Some(Layer::CountingRule));
        assert!(found.text.starts_with("503 = raw rows R"), "{}", found.text);
        assert!(found.text.contains("N 501 + H 0 + V 0 + X 2 + T 0"), "{}", found.text);
        assert_eq!(found.candidates.iter().filter(|one| one.equal).count(), 6);
        assert_eq!(test(501, &counts(), &[], None).layer, None);
    }

    #[test]
    fn a_count_of_another_moment_is_visibility() {
        let states = [FinalRows { name: "snapshot 7".into(), rows: 480 }];
        let read = |source| Some(Compared { lake: 501, source, filtered: false });
        let found = test(480, &counts(), &states, read(501));
        assert_eq!((found.layer, found.confidence), (Some(Layer::Visibility), Confidence::Inferred));
        // the same number by another rule as well: neither is proven
        let states = [FinalRows { name: "snapshot 7".into(), rows: 503 }];
        let found = test(503, &counts(), &states, None);
        assert_eq!((found.layer, found.confidence), (Some(Layer::CountingRule), Confidence::Heuristic));
    }

    #[test]
    fn the_sources_own_rows_are_no_rule_of_counting_however_many_rules_give_their_number() {
        // 503 rows of the source, two of them missing in the lake, and by chance as many raw rows
        let states = [FinalRows { name: "snapshot 7".into(), rows: 503 }];
        let read = Some(Compared { lake: 501, source: 503, filtered: false });
        let found = test(503, &counts(), &states, read);
        assert_eq!(found.layer, None, "{}", found.text);
        assert!(
            found.text.contains("one of rows, not of counting; the same number here: raw rows R"),
            "{}",
            found.text
        );
        assert!(found.text.ends_with("final rows at snapshot 7"), "{}", found.text);
        // a count that is not that of its rows is one
        let read = Some(Compared { lake: 501, source: 501, filtered: false });
        assert_eq!(test(503, &counts(), &[], read).layer, Some(Layer::CountingRule));
    }

    #[test]
    fn an_unknown_count_names_the_nearest() {
        let read = Some(Compared { lake: 501, source: 700, filtered: false });
        let found = test(9_000, &counts(), &[], read);
        assert_eq!(found.layer, None);
        assert!(found.text.contains("the nearest is rows of the source, as compared with 700"), "{}", found.text);
        // under a condition ours are the rows that meet it
        let found = test(77, &counts(), &[], Some(Compared { lake: 77, source: 80, filtered: true }));
        assert_eq!((found.ours, found.layer), (77, None));
        let found = test(700, &counts(), &[], read);
        assert!(found.layer.is_none() && found.text.contains("what the source has"), "{}", found.text);
    }
}
