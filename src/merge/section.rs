//! Files of a bucket, cut into sections and runs by their key ranges.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use super::compare::{java_order_f32, java_order_f64};
use crate::spec::Datum;

/// Cuts the files of one bucket into sections → runs → files. No file straddles two sections (ranges that touch
/// overlap), no two files of a run overlap, sections and the files of a run are in key order. `key_range` gives the
/// smallest and largest key of a file, in key column order; a file without a range (no values) overlaps every other.
///
/// ```text
/// keys       1   5   9      20    30
/// file a     [-------]
/// file b         [---]                 section 1: runs [a] [b]
/// file c                    [-----]    section 2: run  [c]
/// ```
///
/// A run may hold files of several levels, see [`runs_of_one_level`].
pub fn sections<F>(files: Vec<F>, key_range: impl for<'a> Fn(&'a F) -> (&'a [Datum], &'a [Datum])) -> Vec<Vec<Vec<F>>> {
    let plan = {
        let ranges: Vec<(&[Datum], &[Datum])> = files.iter().map(&key_range).collect();
        cut(&ranges)
    };
    let mut files: Vec<Option<F>> = files.into_iter().map(Some).collect();
    let mut take = |at: usize| files.get_mut(at).and_then(Option::take);
    plan.into_iter()
        .map(|section| section.into_iter().map(|run| run.into_iter().filter_map(&mut take).collect()).collect())
        .collect()
}

/// Sections → runs → numbers of files.
fn cut(ranges: &[(&[Datum], &[Datum])]) -> Vec<Vec<Vec<usize>>> {
    let unknown = |at: &usize| ranges[*at].0.is_empty() || ranges[*at].1.is_empty();
    let (everywhere, mut order): (Vec<usize>, Vec<usize>) = (0..ranges.len()).partition(unknown);
    order.sort_by(|a, b| {
        let (a, b) = (ranges[*a], ranges[*b]);
        compare_keys(a.0, b.0).then_with(|| compare_keys(a.1, b.1))
    });
    let mut sections: Vec<Vec<usize>> = Vec::new();
    let mut largest: Option<&[Datum]> = None;
    for at in order {
        let (min, max) = ranges[at];
        let apart = largest.is_some_and(|largest| compare_keys(min, largest).is_gt());
        match sections.last_mut() {
            Some(section) if !apart || !everywhere.is_empty() => section.push(at),
            _ => sections.push(vec![at]),
        }
        if largest.is_none_or(|largest| compare_keys(max, largest).is_gt()) {
            largest = Some(max);
        }
    }
    let mut cut: Vec<Vec<Vec<usize>>> = sections.into_iter().map(|section| runs(&section, ranges)).collect();
    if !everywhere.is_empty() {
        if cut.is_empty() {
            cut.push(Vec::new());
        }
        if let Some(section) = cut.first_mut() {
            section.extend(everywhere.into_iter().map(|at| vec![at]));
        }
    }
    cut
}

/// Packs the files of a section, in order of their smallest key, into the fewest runs.
fn runs(section: &[usize], ranges: &[(&[Datum], &[Datum])]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut ends: BinaryHeap<Reverse<End<'_>>> = BinaryHeap::new();
    for &at in section {
        let (min, max) = ranges[at];
        let fits = ends.peek().is_some_and(|Reverse(end)| compare_keys(min, end.key).is_gt());
        let run = match fits.then(|| ends.pop()).flatten() {
            Some(Reverse(end)) => end.run,
            None => {
                runs.push(Vec::new());
                runs.len() - 1
            }
        };
        runs[run].push(at);
        ends.push(Reverse(End { key: max, run }));
    }
    runs
}

/// Largest key of a run so far. Among equal keys the older run comes first, which makes the packing deterministic.
struct End<'a> {
    key: &'a [Datum],
    run: usize,
}

impl Ord for End<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_keys(self.key, other.key).then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for End<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for End<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for End<'_> {}

fn compare_keys(a: &[Datum], b: &[Datum]) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(a, b)| compare_datums(a, b))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Key order of two values of one type: nulls first, both zeros equal, NaN last, text and binaries bytewise.
fn compare_datums(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Less,
        (_, Datum::Null) => Ordering::Greater,
        (Datum::Boolean(a), Datum::Boolean(b)) => a.cmp(b),
        (Datum::TinyInt(a), Datum::TinyInt(b)) => a.cmp(b),
        (Datum::SmallInt(a), Datum::SmallInt(b)) => a.cmp(b),
        (Datum::Int(a), Datum::Int(b)) | (Datum::Date(a), Datum::Date(b)) | (Datum::Time(a), Datum::Time(b)) => {
            a.cmp(b)
        }
        (Datum::BigInt(a), Datum::BigInt(b)) => a.cmp(b),
        (Datum::Float(a), Datum::Float(b)) => java_order_f32(*a + 0.0, *b + 0.0),
        (Datum::Double(a), Datum::Double(b)) => java_order_f64(*a + 0.0, *b + 0.0),
        // one column, one scale: unscaled values compare as values do
        (Datum::Decimal(a, ..), Datum::Decimal(b, ..)) => a.cmp(b),
        (Datum::Timestamp(a, c), Datum::Timestamp(b, d)) => (a, c).cmp(&(b, d)),
        (Datum::String(a), Datum::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Binary(a), Datum::Binary(b)) => a.cmp(b),
        // never of one column
        _ => Ordering::Equal,
    }
}

/// Whether sequence numbers rank the files of a section as wholes: files of different runs whose keys overlap have
/// disjoint ranges of sequence numbers. A file's smallest number then stands for all its rows, and none of them need
/// be read.
pub fn ranked_by_file<F>(
    runs: &[Vec<F>],
    key_range: impl for<'a> Fn(&'a F) -> (&'a [Datum], &'a [Datum]),
    sequence_range: impl Fn(&F) -> (i64, i64),
) -> bool {
    let mut files = Vec::new();
    for (run, members) in runs.iter().enumerate() {
        for file in members {
            let ((min_key, max_key), (min, max)) = (key_range(file), sequence_range(file));
            if min > max {
                return false;
            }
            files.push((min, max, run, min_key, max_key));
        }
    }
    files.sort_by_key(|&(min, max, ..)| (min, max));
    files.iter().enumerate().all(|(at, &(_, max, run, min_key, max_key))| {
        files[at + 1..].iter().take_while(|(other, ..)| *other <= max).all(|&(_, _, other, other_min, other_max)| {
            let unknown = [min_key, max_key, other_min, other_max].iter().any(|key| key.is_empty());
            let apart = compare_keys(min_key, other_max).is_gt() || compare_keys(other_min, max_key).is_gt();
            run == other || (apart && !unknown)
        })
    })
}

/// Splits one run so that all files of a part have the same level, as [`merge_runs`](super::merge_runs) needs when
/// [`MergeRules::needs_lookup`](super::MergeRules::needs_lookup): the level is a property of the whole run there.
/// Gives (level, files), lower levels first.
pub fn runs_of_one_level<F>(run: Vec<F>, level: impl Fn(&F) -> i32) -> Vec<(i32, Vec<F>)> {
    let mut parts: BTreeMap<i32, Vec<F>> = BTreeMap::new();
    for file in run {
        parts.entry(level(&file)).or_default().push(file);
    }
    parts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Clone)]
    struct File(&'static str, Vec<Datum>, Vec<Datum>);

    fn file(name: &'static str, min: i32, max: i32) -> File {
        File(name, vec![Datum::Int(min)], vec![Datum::Int(max)])
    }

    fn names(files: Vec<File>) -> Vec<Vec<Vec<&'static str>>> {
        sections(files, |file| (&file.1, &file.2))
            .into_iter()
            .map(|section| section.into_iter().map(|run| run.into_iter().map(|file| file.0).collect()).collect())
            .collect()
    }

    #[test]
    fn no_files_give_no_sections() {
        assert!(names(vec![]).is_empty());
    }

    #[test]
    fn ranges_that_touch_share_a_section_but_no_run() {
        assert_eq!(names(vec![file("b", 5, 9), file("a", 1, 5)]), [[["a"], ["b"]]]);
        assert_eq!(names(vec![file("b", 6, 9), file("a", 1, 5)]), [[["a"]], [["b"]]]);
    }

    #[test]
    fn a_wide_file_holds_a_section_together() {
        let files =
            vec![file("wide", 1, 100), file("a", 2, 3), file("b", 5, 6), file("c", 6, 7), file("far", 200, 201)];
        assert_eq!(
            names(files),
            vec![vec![vec!["wide"], vec!["a", "b"], vec!["c"]], vec![vec!["far"]]],
            "b follows a in its run, c touches b"
        );
    }

    #[test]
    fn a_file_without_a_range_overlaps_everything() {
        let files = vec![file("a", 1, 2), file("b", 5, 6), File("x", vec![], vec![])];
        assert_eq!(names(files), vec![vec![vec!["a", "b"], vec!["x"]]]);
    }

    #[test]
    fn nulls_come_first_and_nan_last() {
        let double = |name, min, max| File(name, vec![min], vec![max]);
        let files = vec![
            double("nan", Datum::Double(f64::NAN), Datum::Double(f64::NAN)),
            double("zero", Datum::Double(0.0), Datum::Double(1.0)),
            double("minus", Datum::Double(-1.0), Datum::Double(-0.5)),
            double("null", Datum::Null, Datum::Null),
        ];
        assert_eq!(names(files), [[["null"]], [["minus"]], [["zero"]], [["nan"]]]);
        let files = vec![
            double("zero", Datum::Double(0.0), Datum::Double(1.0)),
            double("minus", Datum::Double(-1.0), Datum::Double(-0.0)),
        ];
        assert_eq!(names(files), [[["minus"], ["zero"]]], "both zeros are one key");
    }

    #[test]
    fn files_are_ranked_when_those_that_share_keys_share_no_sequence_numbers() {
        type Ranked = (File, (i64, i64));
        let ranked = |runs: &[Vec<Ranked>]| ranked_by_file(runs, |file| (&file.0.1, &file.0.2), |file| file.1);
        let compacted = vec![(file("a", 1, 5), (1, 10)), (file("b", 6, 9), (2, 9))];
        assert!(ranked(&[compacted.clone(), vec![(file("c", 1, 9), (11, 12))]]));
        assert!(!ranked(&[compacted.clone(), vec![(file("c", 1, 9), (10, 12))]]), "numbers touch");
        assert!(ranked(&[compacted.clone(), vec![(file("c", 10, 12), (3, 4))]]), "no key in common");
        assert!(!ranked(&[compacted, vec![(File("c", vec![], vec![]), (3, 4))]]), "keys unknown");
        assert!(!ranked(&[vec![(file("a", 1, 5), (2, 1))]]), "a range upside down says nothing");
    }

    #[test]
    fn a_run_is_split_by_level() {
        let run = vec![(5, "a"), (0, "b"), (5, "c")];
        assert_eq!(runs_of_one_level(run, |f| f.0), [(0, vec![(0, "b")]), (5, vec![(5, "a"), (5, "c")])]);
    }
}
