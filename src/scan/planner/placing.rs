//! Places of the files kept, their indexes, and the units they end in.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;

use super::{BucketDraft, Considered, Kept, Origin, Planner, value_of};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::condition::Condition;
use crate::scan::index::{ask, index_predicate};
use crate::scan::live::Live;
use crate::scan::place::Places;
use crate::scan::plan::{PlannedFile, Section, Stage, Unit};
use crate::scan::rule::Rule;
use crate::scan::sections::{Draft, join_neighbours};
use crate::scan::vectors::{Vectors, in_index_manifest};
use crate::snapshot::{Pin, Table};
use crate::spec::Bucket;
use crate::spec::file_index::{IndexPredicate, IndexVerdict};

/// The files kept so far, by number.
pub(super) type Planned = Vec<Option<PlannedFile>>;

impl Planner<'_> {
    /// Locations and deletion vectors of the files kept so far.
    pub(super) async fn place_files(
        &self,
        pin: &Arc<Pin>,
        table: &Arc<Table>,
        live: &mut [Live],
        vectors: &Vectors,
    ) -> Result<Planned> {
        let mut places = Places::new(table, &self.schema, &pin.options);
        let mut planned: Planned = Vec::with_capacity(live.len());
        for file in live.iter_mut() {
            if !file.is_kept() {
                planned.push(None);
                continue;
            }
            let partition = self.partitions.values(file.partition);
            let schema = file.schema.as_ref().ok_or_else(|| Error::internal("a file's schema was not loaded"))?;
            let entry = &file.entry;
            let place = places.data_file(entry, file.partition, &partition).await;
            let (storage, location) = place.map_err(|error| match error.kind() {
                ErrorKind::Corrupt => self.origins.blame(error, entry, table),
                // whatever is wrong with a path of its own, the entry says it
                _ if entry.file.external_path.is_some() => self.origins.blame(error, entry, table),
                _ => error,
            })?;
            let vector = vectors.of(file.partition, entry.bucket.0, &entry.file.file_name);
            let deletion = match vector {
                Some(vector) => {
                    let found = places.deletion_file(vector, entry.bucket, file.partition, &partition).await;
                    Some(found.map_err(|error| in_index_manifest(error, &vector.index, pin))?)
                }
                None => None,
            };
            let found = PlannedFile {
                entry: Arc::clone(entry),
                location,
                storage,
                deletion,
                index_rows: None,
                file_schema: Arc::clone(schema),
                partition,
                min_key: Arc::clone(&file.keys.0),
                max_key: Arc::clone(&file.keys.1),
                snapshot: file.snapshot,
            };
            if found.deletion.is_some() && found.rows_after_vector() == Some(0) {
                file.drop_for(Stage::Vector, &Rule::AllDeleted);
                planned.push(None);
                continue;
            }
            planned.push(Some(found));
        }
        Ok(planned)
    }

    /// Asks the file indexes of files that are judged alone.
    pub(super) async fn ask_indexes(
        &self,
        pin: &Arc<Pin>,
        live: &mut [Live],
        buckets: &[BucketDraft],
        planned: &mut Planned,
        verdicts: &[Vec<Option<bool>>],
    ) -> Result<()> {
        let condition = self.filters.on_rows();
        if condition == Condition::Unknown {
            return Ok(());
        }
        let mut questions: Vec<(usize, IndexPredicate)> = Vec::new();
        for number in buckets.iter().flat_map(|bucket| &bucket.sections).filter(|s| s.alone).flat_map(Draft::files) {
            let (Some(file), Some(Some(found))) = (live.get(number), planned.get(number)) else { continue };
            let meta = &file.entry.file;
            if meta.embedded_index.is_none() && meta.extra_files.is_empty() {
                continue;
            }
            let orc = meta.file_name.ends_with(".orc");
            let partition = file.partition;
            let predicate = index_predicate(&condition, &self.schema, &found.file_schema, orc, &|expression| {
                value_of(verdicts, expression, partition)
            });
            if predicate != IndexPredicate::Unknown {
                questions.push((number, predicate));
            }
        }
        let asked: &Planned = planned;
        let mut answers = stream::iter(questions.into_iter().filter_map(|(number, predicate)| {
            let file = asked.get(number)?.as_ref()?;
            let origins = &self.origins;
            Some(async move {
                let answer = ask(pin, file, &predicate).await;
                // an index in the entry is the manifest's, not the data file's
                let answer = answer.map_err(|error| match file.entry.file.embedded_index {
                    Some(_) => origins.blame(error, &file.entry, &pin.table),
                    None => error,
                });
                Ok::<_, Error>((number, answer?))
            })
        }))
        .buffer_unordered(self.env.concurrency.max(1));
        let mut verdict = Vec::new();
        while let Some(answer) = answers.next().await {
            verdict.push(answer?);
        }
        drop(answers);
        for (number, verdict) in verdict {
            let skip = match verdict {
                IndexVerdict::Remain => false,
                IndexVerdict::Skip => true,
                IndexVerdict::Rows(rows) => {
                    let none = rows.is_empty();
                    if let Some(Some(file)) = planned.get_mut(number) {
                        file.index_rows = Some(Arc::new(rows));
                    }
                    none
                }
            };
            if skip && let (Some(file), Some(slot)) = (live.get_mut(number), planned.get_mut(number)) {
                *slot = None;
                file.drop_for(Stage::Index, &Rule::FileIndex);
            }
        }
        Ok(())
    }

    /// Turns drafts into units.
    pub(super) fn assemble(&mut self, from: Origin, live: Vec<Live>, buckets: Vec<BucketDraft>, planned: Planned) {
        let Origin { branch, snapshot } = from;
        let planned: Vec<Option<Arc<PlannedFile>>> = planned.into_iter().map(|file| file.map(Arc::new)).collect();
        let found = |number: usize| planned.get(number).and_then(Option::as_ref);
        let mut kept: HashMap<usize, Kept> = HashMap::new();
        for bucket in buckets {
            let mut drafts = Vec::new();
            for mut draft in bucket.sections {
                for run in &mut draft.runs {
                    run.retain(|number| found(*number).is_some());
                }
                draft.runs.retain(|run| !run.is_empty());
                if !draft.runs.is_empty() {
                    drafts.push(draft);
                }
            }
            let mut sections = Vec::new();
            let mut total_buckets = None;
            for draft in join_neighbours(drafts) {
                for number in draft.files() {
                    if self.request.explain {
                        let place = Kept {
                            unit: self.units.len(),
                            section: sections.len(),
                            class: draft.class,
                            rule: draft.rule.clone(),
                        };
                        kept.insert(number, place);
                    }
                    let total = found(number).map(|file| file.entry.total_buckets);
                    total_buckets = total_buckets.max(total);
                }
                let runs: Vec<Vec<Arc<PlannedFile>>> = draft
                    .runs
                    .iter()
                    .map(|run| run.iter().filter_map(|number| found(*number).map(Arc::clone)).collect())
                    .collect();
                sections.push(Section { class: draft.class, runs });
            }
            if let Some(total_buckets) = total_buckets {
                self.units.push(Unit {
                    partition: self.partitions.values(bucket.partition),
                    bucket: Bucket(bucket.bucket),
                    total_buckets,
                    branch: branch.clone(),
                    sections,
                });
            }
        }
        for (number, file) in live.into_iter().enumerate() {
            if let Some((stage, _)) = &file.dropped {
                stage.count(&mut self.stages);
            }
            if self.request.explain {
                let place = kept.remove(&number);
                let from = Origin { branch: branch.clone(), snapshot: file.snapshot.or(snapshot) };
                self.considered.push(Considered { file, kept: place, from });
            }
        }
    }
}
