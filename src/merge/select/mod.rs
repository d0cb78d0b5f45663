//! Merge as selection: which physical rows of each file are live, for deduplicate and first-row.
//!
//! | file | what it gives |
//! |---|---|
//! | `rank` | the order of whole files, when sequence numbers allow one |
//! | `bitmap` | kernel: ranked files, one dense integer key: a bit a key |
//! | `cascade` | kernel: ranked files, any keys: each file meets the sorted keys of those before it |
//! | `tournament` | kernel: any keys and order: a merge of the runs |
//! | `parts` | a section cut into ranges of keys, each selected on its own |
//! | `streamed` | the same selection out of a merge of batches, in little memory |

mod bitmap;
mod cascade;
mod mask;
mod parts;
mod rank;
mod streamed;
mod tournament;

use arrow::array::{Array, ArrayRef, Int8Array, Int64Array};
use arrow::buffer::BooleanBuffer;

use super::compare::is_comparable;
use super::keys::{KeyEncoder, Keys};
use super::order::row_kind;
use super::rules::MergeRules;
use super::sample::disorder;
use crate::error::{Error, Result};
use mask::Mask;

pub use parts::{cut, join};
pub use streamed::select_streamed;

/// `_SEQUENCE_NUMBER` of the rows of a file.
#[derive(Debug, Clone)]
pub enum FileSequence {
    /// The same for all rows: under snapshot ordering, or as a rank when the sequence ranges of key-overlapping files
    /// are disjoint (a file's smallest sequence number serves).
    Constant(i64),
    /// As stored.
    Rows(Int64Array),
}

impl From<Int64Array> for FileSequence {
    fn from(rows: Int64Array) -> Self {
        Self::Rows(rows)
    }
}

/// What decides about the rows of one file. All columns have one length: the physical rows of the file.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// Level of the file.
    pub level: i32,
    /// How errors name the file.
    pub name: String,
    /// The key columns ([`MergeRules::key_columns`]), of the table's types.
    pub keys: Vec<ArrayRef>,
    /// The `sequence.field` columns ([`MergeRules::user_sequence_columns`]).
    pub user_sequence: Vec<ArrayRef>,
    /// Sequence numbers.
    pub sequence: FileSequence,
    /// Row kinds; None: all rows are `+I`.
    pub kinds: Option<Int8Array>,
    /// Rows deleted by the file's vector; None: none.
    pub deleted: Option<BooleanBuffer>,
}

impl KeyFile {
    /// Physical rows.
    pub fn rows(&self) -> usize {
        self.keys.first().map_or(0, |column| column.len())
    }

    /// Bytes a selection needs for the file beside its columns, about: masks, what earlier files claimed, encoded keys.
    pub fn working_bytes(&self) -> usize {
        let a_row = size_of::<u64>() + 2;
        let encoded = match self.keys.as_slice() {
            [only] if !only.data_type().is_floating() => 0,
            several => several.iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or_default()).sum(),
        };
        self.rows() * a_row + encoded * 2
    }
}

/// Rows of a section by what became of them: `rows = vector_deleted + superseded + tombstones + live`,
/// `keys = tombstones + live`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SelectionStats {
    /// Physical rows.
    pub rows: u64,
    /// Rows deleted by vectors.
    pub vector_deleted: u64,
    /// Distinct keys among the other rows.
    pub keys: u64,
    /// Rows beyond one per key.
    pub superseded: u64,
    /// Keys whose result is a retract or nothing.
    pub tombstones: u64,
    /// Live rows.
    pub live: u64,
}

/// The live rows of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionSelection {
    /// Per run and file, as given: one bit a row.
    pub files: Vec<Vec<BooleanBuffer>>,
    /// Counts.
    pub stats: SelectionStats,
}

/// Selects the live rows of a section (runs → files, as [`sections`](super::sections) cuts them). Rows of equal rank
/// are decided by place: the later run, then the later file wins (first-row: the earlier).
///
/// Refuses engines other than deduplicate and first-row; a file that is not in strict key order is Corrupt.
pub fn select(runs: Vec<Vec<KeyFile>>, rules: &MergeRules) -> Result<SectionSelection> {
    let section = Section::try_new(runs, rules)?;
    let mut selected = None;
    if let Some(walk) = rank::walk(&section, rules) {
        selected = bitmap::select(&section, rules, &walk).or_else(|| cascade::select(&section, rules, &walk));
    }
    let (masks, keys) = match selected {
        Some(selected) => selected,
        None => tournament::select(&section, rules)?,
    };
    section.finish(masks, keys)
}

/// The selection of every kernel that takes the section.
#[cfg(test)]
pub(super) fn select_by_each_kernel(
    runs: Vec<Vec<KeyFile>>,
    rules: &MergeRules,
) -> Result<Vec<(&'static str, SectionSelection)>> {
    let by = |kernel: fn(&Section, &MergeRules) -> Result<Option<Selected>>| -> Result<Option<SectionSelection>> {
        let section = Section::try_new(runs.clone(), rules)?;
        kernel(&section, rules)?.map(|(masks, keys)| section.finish(masks, keys)).transpose()
    };
    let kernels = [
        (
            "bitmap",
            by(|section, rules| Ok(rank::walk(section, rules).and_then(|w| bitmap::select(section, rules, &w))))?,
        ),
        (
            "cascade",
            by(|section, rules| Ok(rank::walk(section, rules).and_then(|w| cascade::select(section, rules, &w))))?,
        ),
        ("tournament", by(|section, rules| tournament::select(section, rules).map(Some))?),
    ];
    Ok(kernels.into_iter().filter_map(|(name, selection)| Some((name, selection?))).collect())
}

/// Distinct keys among the rows that are not vector-deleted, with the masks of all files.
type Selected = (Vec<Mask>, u64);

/// The files of a section, checked, in order of place: run by run.
struct Section {
    files: Vec<File>,
    runs: Vec<Vec<usize>>,
}

struct File {
    level: i32,
    name: String,
    keys: Keys,
    user_sequence: Vec<ArrayRef>,
    sequence: FileSequence,
    /// None when no row is a retract.
    retracts: Option<Vec<bool>>,
    deleted: Option<BooleanBuffer>,
}

impl Section {
    fn try_new(runs: Vec<Vec<KeyFile>>, rules: &MergeRules) -> Result<Self> {
        if !rules.is_selection() {
            return Err(Error::internal("rows of this merge engine are computed, not selected"));
        }
        let types =
            runs.iter().flatten().next().map(|file| file.keys.iter().map(|key| key.data_type().clone()).collect());
        let mut section = Self { files: Vec::new(), runs: Vec::with_capacity(runs.len()) };
        let Some(types) = types else {
            section.runs.resize_with(runs.len(), Vec::new);
            return Ok(section);
        };
        let encoder = KeyEncoder::try_new(types)?;
        for run in runs {
            let mut places: Vec<usize> = Vec::with_capacity(run.len());
            for file in run {
                let name = file.name.clone();
                let file = File::try_new(file, rules, &encoder).map_err(|error| error.with_context("file", &name))?;
                let before = places.iter().rev().map(|&at| &section.files[at]).find(|file| file.rows() > 0);
                if let Some(before) = before {
                    let last = before.rows() - 1;
                    if file.rows() > 0 && before.keys.compare(last, &file.keys, 0).is_ge() {
                        return Err(overlap(&before.name, &file.name));
                    }
                }
                places.push(section.files.len());
                section.files.push(file);
            }
            section.runs.push(places);
        }
        Ok(section)
    }

    fn finish(self, masks: Vec<Mask>, keys: u64) -> Result<SectionSelection> {
        let mut stats = SelectionStats { keys, ..SelectionStats::default() };
        for (file, mask) in self.files.iter().zip(&masks) {
            stats.rows += file.rows() as u64;
            stats.vector_deleted += file.deleted.as_ref().map_or(0, |deleted| deleted.count_set_bits() as u64);
            stats.live += mask.count();
        }
        let visible = stats.rows - stats.vector_deleted;
        let counts = visible.checked_sub(keys).zip(keys.checked_sub(stats.live));
        let Some((superseded, tombstones)) = counts else {
            return Err(Error::internal("a selection counted more live rows than keys, or more keys than rows"));
        };
        (stats.superseded, stats.tombstones) = (superseded, tombstones);
        let mut masks = masks.into_iter();
        let files =
            self.runs.iter().map(|run| masks.by_ref().take(run.len()).map(Mask::into_buffer).collect()).collect();
        Ok(SectionSelection { files, stats })
    }
}

/// Two files of one run that share keys.
fn overlap(before: &str, file: &str) -> Error {
    Error::corrupt(format!("keys overlap those of {before}, a file of the same run"))
        .with_code("RunNotSorted")
        .with_context("file", file)
        .with_hint(
            "the file is damaged, or its manifest entry gives it or its neighbour wrong keys (_MIN_KEY, _MAX_KEY): restore the \
             one that is, or read a snapshot or tag that needs neither",
        )
}

impl File {
    fn try_new(file: KeyFile, rules: &MergeRules, encoder: &KeyEncoder) -> Result<Self> {
        let keys = encoder.encode(&file.keys)?;
        let rows = keys.len();
        if file.user_sequence.len() != rules.user_sequence_columns().len() {
            return Err(Error::internal("a file comes without its sequence.field columns"));
        }
        if let Some(column) = file.user_sequence.iter().find(|column| !is_comparable(column.data_type())) {
            return Err(Error::internal(format!("rows cannot be ordered by type {}", column.data_type())));
        }
        let mut lengths: Vec<usize> = file.keys.iter().chain(&file.user_sequence).map(|column| column.len()).collect();
        lengths.extend(file.kinds.as_ref().map(Array::len));
        lengths.extend(file.deleted.as_ref().map(BooleanBuffer::len));
        if let FileSequence::Rows(sequence) = &file.sequence {
            lengths.push(sequence.len());
            if sequence.null_count() > 0 {
                return Err(Error::corrupt("a sequence number is NULL"));
            }
        }
        if lengths.iter().any(|&length| length != rows) {
            return Err(Error::internal("the columns of a file have different lengths"));
        }
        if let Some(row) = keys.first_disorder() {
            return Err(disorder(row));
        }
        let retracts = match &file.kinds {
            None => None,
            Some(kinds) if kinds.null_count() > 0 => return Err(Error::corrupt("a row kind is NULL")),
            Some(kinds) if kinds.values().iter().all(|&kind| kind == 0) => None,
            Some(kinds) => {
                let retracts: Vec<bool> =
                    kinds.values().iter().map(|&kind| Ok(row_kind(kind)?.is_retract())).collect::<Result<_>>()?;
                retracts.contains(&true).then_some(retracts)
            }
        };
        let deleted = file.deleted.filter(|deleted| deleted.count_set_bits() > 0);
        Ok(Self {
            level: file.level,
            name: file.name,
            keys,
            user_sequence: file.user_sequence,
            sequence: file.sequence,
            retracts,
            deleted,
        })
    }

    fn rows(&self) -> usize {
        self.keys.len()
    }

    fn is_retract(&self, row: usize) -> bool {
        self.retracts.as_ref().is_some_and(|retracts| retracts[row])
    }

    fn is_deleted(&self, row: usize) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.value(row))
    }

    fn sequence(&self, row: usize) -> i64 {
        match &self.sequence {
            FileSequence::Constant(sequence) => *sequence,
            FileSequence::Rows(sequence) => sequence.value(row),
        }
    }

    /// Smallest and largest sequence number.
    fn sequence_range(&self) -> Option<(i64, i64)> {
        match &self.sequence {
            FileSequence::Constant(sequence) => Some((*sequence, *sequence)),
            FileSequence::Rows(sequence) => Some((arrow::compute::min(sequence)?, arrow::compute::max(sequence)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int32Array;

    use super::*;
    use crate::merge::testkit::{options, schema};
    use crate::spec::RowKind::{self, Delete, Insert, UpdateBefore};

    fn file(level: i32, rows: &[(i32, i64, RowKind)]) -> KeyFile {
        KeyFile {
            level,
            name: format!("level-{level}"),
            keys: vec![Arc::new(rows.iter().map(|row| row.0).collect::<Int32Array>())],
            user_sequence: vec![],
            sequence: rows.iter().map(|row| row.1).collect::<Int64Array>().into(),
            kinds: Some(rows.iter().map(|row| row.2 as i8).collect()),
            deleted: None,
        }
    }

    fn rules(pairs: &[(&str, &str)]) -> MergeRules {
        MergeRules::try_new(&schema(&["k", "v"], &["k"]), &options(pairs)).unwrap()
    }

    /// Live rows of each file, each file in a run of its own.
    fn live(files: Vec<KeyFile>, pairs: &[(&str, &str)]) -> Result<Vec<Vec<usize>>> {
        let selection = select(files.into_iter().map(|file| vec![file]).collect(), &rules(pairs))?;
        Ok(selection.files.iter().flatten().map(|live| live.set_indices().collect()).collect())
    }

    #[test]
    fn newer_rows_hide_older_ones_and_deletes_are_not_live() {
        let files = vec![
            file(5, &[(1, 1, Insert), (2, 2, Insert), (3, 3, Insert)]),
            file(0, &[(2, 9, Insert), (3, 8, Delete), (7, 7, UpdateBefore)]),
        ];
        assert_eq!(live(files.clone(), &[]).unwrap(), [vec![0], vec![0]]);
        let ignore = [("ignore-delete", "true")];
        assert_eq!(live(files, &ignore).unwrap(), [vec![0, 2], vec![0]], "an ignored delete hides nothing");
    }

    #[test]
    fn a_row_deleted_by_a_vector_hides_nothing() {
        let mut newer = file(4, &[(1, 5, Insert), (2, 6, Insert)]);
        newer.deleted = Some(BooleanBuffer::from_iter([true, false]));
        let files = vec![file(5, &[(1, 1, Insert), (2, 2, Insert)]), newer];
        assert_eq!(live(files, &[]).unwrap(), [vec![0], vec![1]]);
    }

    #[test]
    fn a_skipped_retract_on_the_lowest_upper_level_hides_the_levels_above() {
        let pairs = [("force-lookup", "true"), ("ignore-delete", "true")];
        let files = vec![file(5, &[(1, 1, Insert)]), file(4, &[(1, 2, Delete)])];
        assert_eq!(live(files.clone(), &pairs).unwrap(), [vec![], Vec::<usize>::new()]);
        assert_eq!(live(files, &pairs[1..]).unwrap(), [vec![0], vec![]], "without the lookup rule it hides nothing");
    }

    #[test]
    fn first_row_takes_the_oldest_and_minds_retracts_among_several_rows() {
        let pairs = [("merge-engine", "first-row")];
        let files = vec![file(5, &[(1, 4, Insert), (2, 5, Insert)]), file(4, &[(1, 9, Insert)])];
        assert_eq!(live(files, &pairs).unwrap(), [vec![0, 1], vec![]]);
        let alone = vec![file(5, &[(1, 4, Insert)]), file(4, &[(3, 9, Delete)])];
        assert_eq!(live(alone, &pairs).unwrap(), [vec![0], vec![]]);
        let several = vec![file(5, &[(1, 4, Insert)]), file(4, &[(1, 9, Delete)])];
        assert_eq!(live(several, &pairs).unwrap_err().code(), "RetractUnsupported");
    }

    #[test]
    fn the_counts_of_a_selection_add_up() {
        let mut newer = file(0, &[(1, 7, Insert), (2, 8, Delete), (3, 9, Insert)]);
        newer.deleted = Some(BooleanBuffer::from_iter([false, false, true]));
        let runs = vec![vec![file(5, &[(1, 1, Insert), (2, 2, Insert), (4, 3, Insert)])], vec![newer]];
        let stats = select(runs, &rules(&[])).unwrap().stats;
        let expected = SelectionStats { rows: 6, vector_deleted: 1, keys: 3, superseded: 2, tombstones: 1, live: 2 };
        assert_eq!(stats, expected);
    }

    #[test]
    fn files_out_of_order_are_named() {
        let error = live(vec![file(5, &[(2, 1, Insert), (2, 2, Insert)])], &[]).unwrap_err();
        assert_eq!(error.code(), "RunNotSorted");
        assert!(error.to_string().contains("level-5"), "{error}");
        let run = vec![file(5, &[(1, 1, Insert), (3, 2, Insert)]), file(4, &[(2, 3, Insert)])];
        let error = select(vec![run], &rules(&[])).unwrap_err();
        assert_eq!(error.code(), "RunNotSorted");
        assert!(error.to_string().contains("level-4") && error.to_string().contains("level-5"), "{error}");
    }
}
