//! Against a comparison that keeps both sides in maps.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Row = (Option<i64>, Option<String>, Option<i64>);

fn rows(rows: &[Row]) -> Side {
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
    side(
        "s",
        &batch(vec![
            ("k1", ids),
            ("k2", texts(rows.iter().map(|row| row.1.as_deref()))),
            ("v", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>())),
        ]),
    )
}

type Bags = BTreeMap<(i64, String), BTreeMap<Option<i64>, usize>>;

fn bags(rows: &[Row], passes: impl Fn(&Row) -> bool) -> (Bags, u64) {
    let mut all = Bags::new();
    let mut nulls = 0;
    for row in rows.iter().filter(|row| passes(row)) {
        match (row.0, row.1.clone()) {
            (Some(id), Some(text)) => *all.entry((id, text)).or_default().entry(row.2).or_default() += 1,
            _ => nulls += 1,
        }
    }
    (all, nulls)
}

/// Findings by class, by the definitions.
fn expected(left: &[Row], right: &[Row], passes: impl Fn(&Row) -> bool + Copy) -> BTreeMap<Class, u64> {
    let (ours, nulls) = bags(left, passes);
    let (theirs, other_nulls) = bags(right, passes);
    let (all_ours, all_theirs) = (bags(left, |_| true).0, bags(right, |_| true).0);
    let mut found = BTreeMap::new();
    let mut add = |class: Class, count: usize| *found.entry(class).or_default() += count as u64;
    add(Class::NullKey, usize::try_from(nulls + other_nulls).unwrap());
    let none = BTreeMap::new();
    let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    for key in keys {
        let (one, other) = (ours.get(key).unwrap_or(&none), theirs.get(key).unwrap_or(&none));
        let (n, m) = (one.values().sum::<usize>(), other.values().sum::<usize>());
        add(Class::DupLake, usize::from(n > 1));
        add(Class::DupSource, usize::from(m > 1));
        match (n, m) {
            (0, _) if all_ours.contains_key(key) => add(Class::FilterMismatch, 1),
            (0, _) => add(Class::MissingInLake, 1),
            (_, 0) if all_theirs.contains_key(key) => add(Class::FilterMismatch, 1),
            (_, 0) => add(Class::ExtraInLake, 1),
            _ => {
                let equal: usize = one.iter().map(|(v, n)| (*n).min(other.get(v).copied().unwrap_or(0))).sum();
                add(Class::Equal, equal);
                add(Class::Different, n.min(m) - equal);
            }
        }
    }
    found.retain(|_, count| *count > 0);
    found
}

fn table() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        prop::option::weighted(0.97, 0i64..12),
        prop::option::weighted(0.97, prop::sample::select(vec!["", "a", "A", "b", "甲", "a "]).prop_map(String::from)),
        prop::option::weighted(0.8, 0i64..3),
    );
    prop::collection::vec(row, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_tables_are_compared_as_by_definition(left in table(), right in table(), filter in any::<bool>()) {
        let found = |left: &[Row], right: &[Row]| {
            let condition = |side: Side| if filter { filtered(side, "v >= 1") } else { side };
            let (left, right) = (condition(rows(left)), condition(rows(right)));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let report = match runtime.block_on(compared(left, right, by(&["k1", "k2"]))) {
                // there are rows, and none that meets the condition
                Err(error) if filter && error.code() == "NothingCompared" => return BTreeMap::new(),
                report => report.unwrap(),
            };
            report.classes.iter().map(|one| (one.class, one.count.findings)).filter(|(_, n)| *n > 0).collect::<BTreeMap<_, _>>()
        };
        let passes = |row: &Row| !filter || row.2.is_some_and(|v| v >= 1);
        prop_assert_eq!(found(&left, &right), expected(&left, &right, passes));
        // equal data has no differences, in any order
        let mut turned = left.clone();
        turned.reverse();
        let same = found(&left, &turned);
        let quiet = [Class::Equal, Class::NullKey, Class::DupLake, Class::DupSource];
        prop_assert!(same.keys().all(|class| quiet.contains(class)), "{:?}", same);
    }
}
