//! The files of a bucket, cut into sections, and how each section is read.
//!
//! | runs | files | class | files judged alone |
//! |---|---|---|---|
//! | one | no row takes back another | raw | yes: each key occurs once |
//! | one | some may | kind-only | yes |
//! | several | levels that deletion vectors or first-row keep apart | raw, kind-only | yes: each live row stands for its key |
//! | several | all others | select, combine | no: dropping a file could bring back what it replaces |

use std::sync::Arc;

use super::live::Live;
use super::plan::SectionClass;
use super::rule::Rule;
use crate::error::{Error, Result};
use crate::merge::sections as cut_sections;
use crate::notice::HiddenRows;
use crate::spec::options::MergeEngine;
use crate::spec::{CoreOptions, Datum, TableSchema};

/// Option that says a table keeps deletion vectors.
pub(crate) const VECTORS_OPTION: &str = "deletion-vectors.enabled";

/// Option that names the merge engine.
const ENGINE_OPTION: &str = "merge-engine";

/// What decides how a bucket's files are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeFacts {
    pub(crate) engine: MergeEngine,
    /// The table keeps deletion vectors now.
    pub(crate) vectors: bool,
    /// Vectors, but level 0 is merged in.
    pub(crate) merge_on_read: bool,
    /// Files are not sorted by key.
    pub(crate) clustered: bool,
    /// Rows that take back others are asked for, with the kind of every row.
    pub(crate) with_kinds: bool,
    /// Top level of the LSM tree.
    pub(crate) top: i32,
}

impl MergeFacts {
    pub(crate) fn new(options: &CoreOptions, with_kinds: bool) -> Self {
        Self {
            engine: options.merge_engine,
            vectors: options.deletion_vectors_enabled,
            merge_on_read: options.deletion_vectors_merge_on_read,
            clustered: options.pk_clustering_override,
            with_kinds,
            top: options.max_level,
        }
    }

    /// Why a file on level 0 is hidden from batch reads, if it is.
    ///
    /// A file written before deletion vectors were switched on is not hidden: it was visible, and nothing has taken its
    /// rows over since. It is merged.
    pub(crate) fn hides_level_0(&self, file_schema: &TableSchema) -> Option<HiddenRows> {
        if self.engine == MergeEngine::FirstRow {
            return Some(HiddenRows::FirstRow);
        }
        (self.vectors && !self.merge_on_read && keeps_vectors(file_schema)).then_some(HiddenRows::DeletionVectors)
    }
}

/// Whether a schema's own options ask for the first-row engine.
fn keeps_first_rows(schema: &TableSchema) -> bool {
    schema.options.get(ENGINE_OPTION).is_some_and(|value| value.trim().eq_ignore_ascii_case("first-row"))
}

/// Whether a schema's own options switch deletion vectors on.
pub(crate) fn keeps_vectors(schema: &TableSchema) -> bool {
    schema.options.get(VECTORS_OPTION).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// A section while it is planned: numbers of files in the plan's list.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) class: SectionClass,
    pub(crate) runs: Vec<Vec<usize>>,
    /// Every live row stands for its key, so files may be judged one by one.
    pub(crate) alone: bool,
    /// Why it is read this way.
    pub(crate) rule: Rule,
}

impl Draft {
    pub(crate) fn files(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().flatten().copied()
    }
}

struct Keyed {
    file: usize,
    keys: (Arc<[Datum]>, Arc<[Datum]>),
}

/// Cuts the files of one bucket of a primary-key table.
pub(crate) fn cut(files: &[usize], live: &[Live], facts: &MergeFacts) -> Result<Vec<Draft>> {
    let keyed = |file: &usize| {
        live.get(*file).map(|found| Keyed { file: *file, keys: (Arc::clone(&found.keys.0), Arc::clone(&found.keys.1)) })
    };
    let keyed: Vec<Keyed> = files.iter().filter_map(keyed).collect();
    let mut drafts = Vec::new();
    for runs in cut_sections(keyed, |file| (&file.keys.0, &file.keys.1)) {
        let runs: Vec<Vec<usize>> =
            runs.into_iter().map(|run| run.into_iter().map(|file| file.file).collect()).collect();
        drafts.push(classify(runs, live, facts)?);
    }
    Ok(drafts)
}

fn classify(runs: Vec<Vec<usize>>, live: &[Live], facts: &MergeFacts) -> Result<Draft> {
    let files: Vec<&Live> = runs.iter().flatten().filter_map(|file| live.get(*file)).collect();
    let clean = files.iter().all(|file| file.is_clean(facts.top));
    let raw = |rule: Rule| {
        let class = if clean && !facts.with_kinds { SectionClass::Raw } else { SectionClass::KindOnly };
        (class, true, rule)
    };
    let (class, alone, rule) = if runs.len() == 1 {
        if clean { raw(Rule::Alone) } else { raw(Rule::AloneWithKinds) }
    } else if let Some(rule) = kept_apart(&files, facts) {
        raw(rule)
    } else {
        let class = match facts.engine {
            MergeEngine::Deduplicate | MergeEngine::FirstRow => SectionClass::Select,
            MergeEngine::PartialUpdate | MergeEngine::Aggregation => SectionClass::Combine,
        };
        (class, false, Rule::SharedKeys { files: files.len(), runs: runs.len() })
    };
    if facts.clustered && class.is_merge() {
        let names: Vec<&str> = files.iter().take(3).map(|file| file.entry.file.file_name.as_str()).collect();
        return Err(Error::unsupported("files that are not sorted by key (pk-clustering-override) cannot be merged")
            .with_code("ClusteredMerge")
            .with_context("option", "pk-clustering-override")
            .with_context("file", names.join(", "))
            .with_hint("compact the table, so that deletion vectors keep its levels apart"));
    }
    Ok(Draft { class, runs, alone, rule })
}

/// Why files of several levels that share keys hold no key twice among their live rows, if it is certain.
///
/// Compactions of such tables look every key up: a first-row table takes it only if no level has it, a table with vectors
/// names the older row in one. The option alone is no proof of that: it may have been set over levels that share keys.
/// Each file's own schema tells what was asked for when it was written; one older file is enough to merge.
fn kept_apart(files: &[&Live], facts: &MergeFacts) -> Option<Rule> {
    if files.iter().any(|file| file.entry.file.level <= 0 || file.entry.file.delete_row_count != Some(0)) {
        return None;
    }
    let all = |keeps: fn(&TableSchema) -> bool| files.iter().all(|file| file.schema.as_deref().is_some_and(keeps));
    if facts.engine == MergeEngine::FirstRow && all(keeps_first_rows) {
        return Some(Rule::FirstRows);
    }
    (facts.vectors && all(keeps_vectors)).then_some(Rule::VectorsHide)
}

/// Joins neighbours that are read raw, or by kind, in the same way: their files stand for themselves.
pub(crate) fn join_neighbours(drafts: Vec<Draft>) -> Vec<Draft> {
    let mut joined: Vec<Draft> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let single = draft.runs.len() == 1 && !draft.class.is_merge();
        match joined.last_mut() {
            Some(last) if single && last.runs.len() == 1 && last.class == draft.class && last.rule == draft.rule => {
                if let (Some(run), Some(more)) = (last.runs.first_mut(), draft.runs.into_iter().next()) {
                    run.extend(more);
                }
            }
            _ => joined.push(draft),
        }
    }
    joined
}
