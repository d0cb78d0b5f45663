//! "Did you mean": the known names nearest to one that is not known.

/// The known names that come closest to `wanted`, best first, at most three; none when nothing is close.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = wanted.to_lowercase();
    let mut scored: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let other = name.to_lowercase();
            let distance = if other.starts_with(&lower) || lower.starts_with(&other) {
                lower.chars().count().abs_diff(other.chars().count()).min(2)
            } else {
                edits(&lower, &other)
            };
            (distance <= 1 + lower.chars().count() / 3).then_some((distance, name))
        })
        .collect();
    scored.sort();
    scored.truncate(3);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// The way out of an unknown name: the nearest names, or all of them when they are few.
pub fn known_names<'a>(what: &str, wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    // the very name is not known here, whoever else knows it
    known.retain(|name| *name != wanted);
    if known.is_empty() {
        return format!("there are no {what} here");
    }
    let quoted = |names: &[&str]| names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let near = nearest(wanted, known.iter().copied());
    if !near.is_empty() {
        return format!("did you mean {}?", quoted(&near));
    }
    let shown = known.get(..known.len().min(10)).unwrap_or_default();
    let more =
        if known.len() > shown.len() { format!(" and {} more", known.len() - shown.len()) } else { String::new() };
    format!("known {what}: {}{more}", quoted(shown))
}

/// Edits (insert, delete, replace, swap of neighbours) from one text to the other.
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |line: &[usize], k: usize| line.get(k).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_name() {
        let known = ["orders", "payments", "refunds"];
        assert_eq!(nearest("paymnets", known), ["payments"]);
        assert_eq!(nearest("ORDERS", known), ["orders"]);
        assert_eq!(nearest("zzzzzzz", known), Vec::<&str>::new());
    }

    #[test]
    fn unknown_name_lists_what_there_is() {
        assert_eq!(known_names("tags", "q", ["eod", "x1y2z3"]), "known tags: 'eod', 'x1y2z3'");
        assert_eq!(known_names("tags", "q", []), "there are no tags here");
        assert_eq!(known_names("tags", "eodd", ["eod"]), "did you mean 'eod'?");
        assert_eq!(known_names("columns", "c_ts9", ["c_ts6", "c_ts9", "c_ts6"]), "did you mean 'c_ts6'?");
    }
}
