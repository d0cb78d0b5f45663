//! The steps of a plan, in order.

mod buckets;
mod levels;
mod placing;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::logical_expr::Expr;
use futures::StreamExt;
use futures::stream;

use super::agree::rows_fit;
use super::evolution::{self, Wanted};
use super::filters::{Conjunct, Filters, Reach};
use super::incremental::ChangeList;
use super::lists::{Named, Origins, check_changes, check_rows, named, named_by, totals};
use super::live::{KeyLayout, Live};
use super::manifests::{Manifest, added, fold, fold_all, read_manifests};
use super::partitions::{PartitionId, Partitions, evaluate, evaluate_all};
use super::plan::{ScanEnv, ScanRequest, SectionClass, Stage, Stages, Unit};
use super::ranges::ManifestFilter;
use super::rule::Rule;
use super::sections::{Draft, MergeFacts, cut};
use super::vectors::Vectors;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::snapshot::{Pin, Table};
use crate::spec::{ManifestEntry, SchemaId, SnapshotId, TableSchema};

/// One table state of a plan: the pin itself, or the branch that fills its missing partitions.
pub(crate) struct Source<'a> {
    /// Where files come from.
    pub(crate) pin: &'a Arc<Pin>,
    /// The branch, when it is not the one asked for.
    pub(crate) branch: Option<String>,
    /// Partitions another source gives.
    pub(crate) without: HashSet<PartitionId>,
}

/// What is common to all sources of a plan.
pub(crate) struct Planner<'a> {
    pub(super) request: &'a ScanRequest,
    env: &'a ScanEnv,
    /// Whether files are sorted by key, so that their smallest and largest keys bound the first key column.
    pub(super) sorted_by_key: bool,
    /// No other branch gives partitions.
    alone: bool,
    /// Schema the rows are read with.
    pub(super) schema: Arc<TableSchema>,
    pub(super) filters: Filters,
    pub(super) partitions: Partitions,
    pub(super) stages: Stages,
    pub(super) notices: Vec<Notice>,
    pub(super) units: Vec<Unit>,
    origins: Origins,
    /// Whether the present source was read with all its manifests.
    whole: bool,
    /// Files considered, with the section of those kept.
    pub(super) considered: Vec<Considered>,
}

/// A file considered, for an explanation.
pub(super) struct Considered {
    pub(super) file: Live,
    pub(super) kept: Option<Kept>,
    pub(super) from: Origin,
}

/// Where a file comes from.
pub(crate) struct Origin {
    /// The branch, when it is not the one asked for.
    pub(crate) branch: Option<String>,
    /// The snapshot.
    pub(crate) snapshot: Option<SnapshotId>,
}

/// Where a kept file ended.
pub(super) struct Kept {
    pub(super) unit: usize,
    pub(super) section: usize,
    pub(super) class: SectionClass,
    pub(super) rule: Rule,
}

/// Sections of one bucket while they are planned.
pub(super) struct BucketDraft {
    partition: PartitionId,
    bucket: i32,
    pub(super) sections: Vec<Draft>,
}

impl<'a> Planner<'a> {
    pub(crate) fn try_new(pin: &Arc<Pin>, request: &'a ScanRequest, env: &'a ScanEnv) -> Result<Self> {
        Ok(Self {
            request,
            env,
            sorted_by_key: true,
            alone: pin.fallback.is_none() && pin.primary.is_none(),
            schema: Arc::clone(&pin.schema),
            filters: Filters::try_new(&request.filters, &pin.schema)?,
            partitions: Partitions::try_new(&pin.schema, request.config.clone())?,
            stages: Stages::default(),
            notices: Vec::new(),
            units: Vec::new(),
            origins: Origins::default(),
            whole: false,
            considered: Vec::new(),
        })
    }

    /// Plans the files of one source. Returns the partitions it has, after the partition filter.
    pub(crate) async fn add_source(
        &mut self,
        source: Source<'_>,
        changes: Option<&[ChangeList]>,
    ) -> Result<HashSet<PartitionId>> {
        let pin = Arc::clone(source.pin);
        let added = self.add_files(source, changes).await;
        // changes are of snapshots of their own
        added.map_err(|error| if changes.is_some() { error } else { pin.named(error) })
    }

    async fn add_files(&mut self, source: Source<'_>, changes: Option<&[ChangeList]>) -> Result<HashSet<PartitionId>> {
        let pin = source.pin;
        self.sorted_by_key = !pin.options.pk_clustering_override;
        let table = Arc::clone(&pin.table);
        let mut live = match changes {
            Some(lists) => self.changed_files(pin, &table, lists).await?,
            None => self.snapshot_files(pin, &table).await?,
        };
        self.stages.files += live.len() as u64;
        let (rows, _) = totals(live.iter().map(|file| &file.entry), pin)?;
        self.stages.rows = self.stages.rows.saturating_add(rows);

        self.filter_partitions(&mut live)?;
        let present: HashSet<PartitionId> =
            live.iter().filter(|file| file.is_kept()).map(|file| file.partition).collect();
        if !source.without.is_empty() {
            let without = |file: &Live| source.without.contains(&file.partition);
            drop_where(&mut live, Stage::Partition, &Rule::OtherBranch, without);
        }
        self.load_schemas(pin, &table, &mut live).await?;
        if let Some(common) = &self.request.without {
            drop_where(&mut live, Stage::Comparison, &Rule::SameRows, |file| common.has(&file.entry));
        }
        let keyed = self.schema.is_primary_key_table();
        // before the levels, so that nothing of another bucket is told as hidden
        self.filter_scan_bucket(pin, &mut live);
        let unmerged = self.request.kind.is_unmerged();
        if keyed && !(unmerged && self.request.of.is_some()) {
            self.filter_levels(pin, &mut live)?;
        }
        let verdicts = self.partition_values()?;
        self.filter_buckets(pin, &mut live, &verdicts)?;
        if keyed {
            self.load_keys(&table, &mut live)?;
        } else {
            self.check_columns(pin, &mut live).map_err(|error| error.with_context("table", table.name()))?;
        }
        if keyed {
            self.judge(&mut live, Reach::Key, Stage::Key, &verdicts, |_| true);
        }

        let wants_vectors = !unmerged && (!keyed || pin.options.deletion_vectors_enabled);
        let vectors = if wants_vectors && live.iter().any(Live::is_kept) {
            Vectors::read(pin, self.env, &mut self.partitions).await?
        } else {
            Vectors::default()
        };
        if !unmerged && !wants_vectors {
            self.notice_unapplied_vectors(pin, &live).await;
        }
        let mut buckets = self.cut_buckets(pin, &table, &live)?;
        if unmerged {
            // value statistics of change files never prune; Java keeps them as well
        } else if keyed {
            self.judge_sections(&mut live, &mut buckets, &verdicts, pin.options.merge_engine);
        } else {
            self.judge(&mut live, Reach::Value, Stage::Value, &verdicts, |_| true);
        }
        let mut planned = self.place_files(pin, &table, &mut live, &vectors).await?;
        if wants_vectors {
            let placed = planned.iter().flatten().filter(|file| file.deletion.is_some()).count();
            let emptied = live.iter().filter(|file| matches!(file.dropped, Some((Stage::Vector, _)))).count();
            self.notice_stray_vectors(pin, &live, &vectors, placed + emptied);
        }
        if (!unmerged || self.request.of.is_some()) && pin.options.file_index_read_enabled {
            self.ask_indexes(pin, &mut live, &buckets, &mut planned, &verdicts).await?;
        }
        let snapshot = pin.snapshot.as_ref().map(|snapshot| snapshot.id);
        self.assemble(Origin { branch: source.branch, snapshot }, live, buckets, planned);
        Ok(present)
    }

    /// Drops files that hold only columns nobody asked for; refuses rows that are spread over several files.
    fn check_columns(&self, pin: &Arc<Pin>, live: &mut [Live]) -> Result<()> {
        let columns: Option<BTreeSet<usize>> = self.request.columns.as_ref().map(|columns| {
            let filtered = self.request.filters.iter().flat_map(Expr::column_refs);
            let filtered = filtered.filter_map(|column| self.schema.field_index(&column.name));
            columns.iter().copied().chain(filtered).collect()
        });
        let wanted = Wanted { schema: &self.schema, options: &pin.options, columns: columns.as_ref() };
        evolution::check(live, &wanted)
    }

    /// Reads the manifests of the pinned snapshot and folds them.
    async fn snapshot_files(&mut self, pin: &Arc<Pin>, table: &Arc<Table>) -> Result<Vec<Live>> {
        if let Some(of) = &self.request.of {
            return of.iter().map(|entry| self.enter(Arc::clone(entry), None, table)).collect();
        }
        if pin.snapshot.is_none() {
            return Ok(Vec::new());
        }
        let named = named(pin, self.env).await?;
        self.stages.manifest_lists += 2;
        let all = named.metas.len();
        let manifests = self.read_metas(pin, table, named).await?;
        self.whole = manifests.len() == all;
        let live = if self.whole {
            check_rows(pin, &manifests)?;
            fold_all(&manifests, &self.origins, table)?
        } else {
            fold(&manifests)
        };
        live.into_iter().map(|entry| self.enter(entry, None, table)).collect()
    }

    /// Reads the files that lists of changes add.
    async fn changed_files(&mut self, pin: &Arc<Pin>, table: &Arc<Table>, lists: &[ChangeList]) -> Result<Vec<Live>> {
        let mut live = Vec::new();
        for change in lists {
            let named = named_by(change, pin, table, self.env).await?;
            self.stages.manifest_lists += 1;
            let all = named.metas.len();
            let manifests = self.read_metas(pin, table, named).await?;
            if manifests.len() == all {
                check_changes(change, &manifests, table)?;
            }
            for entry in added(&manifests) {
                live.push(self.enter(Arc::clone(entry), Some(change.snapshot.id), table)?);
            }
        }
        Ok(live)
    }

    fn enter(&mut self, entry: Arc<ManifestEntry>, snapshot: Option<SnapshotId>, table: &Table) -> Result<Live> {
        match rows_fit(&entry).and_then(|()| self.partitions.intern(&entry.partition)) {
            Ok(partition) => Ok(Live::new(entry, partition, snapshot)),
            Err(error) => Err(self.origins.blame(error, &entry, table)),
        }
    }

    async fn read_metas(&mut self, pin: &Arc<Pin>, table: &Arc<Table>, named: Named) -> Result<Vec<Manifest>> {
        let Named { metas, all_needed } = named;
        self.stages.manifests += metas.len() as u64;
        let buckets = if self.alone { self.wanted_buckets(pin, table, &metas).await? } else { None };
        let mut filter =
            ManifestFilter::try_new(&self.filters, &self.schema, &pin.options, self.request.kind, buckets)?;
        if !self.alone {
            filter = filter.of_all_partitions();
        }
        let wanted = if all_needed { vec![true; metas.len()] } else { filter.keep(&metas, &self.partitions)? };
        let pruned = wanted.iter().filter(|keep| !**keep).count() as u64;
        self.stages.manifests_pruned += pruned;
        // an explanation names every file, those of manifests left out too
        let metas = if self.request.explain {
            metas
        } else {
            metas.into_iter().zip(wanted).filter_map(|(meta, keep)| keep.then_some(meta)).collect()
        };
        let names = metas.iter().map(|meta| meta.file_name.clone()).collect();
        let read =
            read_manifests(pin, table, metas, &self.env.cache, self.env.concurrency, &self.request.progress).await?;
        self.origins.add(names, &read.manifests);
        self.stages.manifests_cached += read.cached;
        self.stages.entries += read.manifests.iter().map(|manifest| manifest.len() as u64).sum::<u64>();
        Ok(read.manifests)
    }

    /// Evaluates the conditions on partitions, exactly, on the partitions there are.
    fn filter_partitions(&mut self, live: &mut [Live]) -> Result<()> {
        let exact: Vec<&Conjunct> =
            self.filters.conjuncts.iter().filter(|conjunct| conjunct.reach == Reach::Partition).collect();
        if exact.is_empty() || self.partitions.len() == 0 {
            return Ok(());
        }
        let compiled =
            exact.iter().map(|conjunct| self.partitions.compile(&conjunct.expr)).collect::<Result<Vec<_>>>()?;
        let dropped = evaluate_all(&compiled, &self.partitions.batch()?)
            .map_err(|error| error.with_context("filter", "on partition columns"))?;
        let rules: Vec<Rule> = exact.iter().map(|conjunct| Rule::Partition(Arc::clone(&conjunct.text))).collect();
        for file in live.iter_mut() {
            if let Some(rule) = dropped.get(file.partition).copied().flatten().and_then(|number| rules.get(number)) {
                file.drop_for(Stage::Partition, rule);
            }
        }
        Ok(())
    }

    /// The values of expressions over partition columns inside other conditions, per expression and partition; None
    /// where it cannot be evaluated, which then decides nothing.
    fn partition_values(&self) -> Result<Vec<Vec<Option<bool>>>> {
        if self.filters.partition_exprs.is_empty() || self.partitions.len() == 0 {
            return Ok(vec![Vec::new(); self.filters.partition_exprs.len()]);
        }
        let batch = self.partitions.batch()?;
        Ok(self
            .filters
            .partition_exprs
            .iter()
            .map(|expr| match self.partitions.compile(expr).and_then(|compiled| evaluate(&compiled, &batch)) {
                Ok(values) => values.into_iter().map(Some).collect(),
                Err(_) => vec![None; batch.num_rows()],
            })
            .collect())
    }

    /// Schemas of the files that remain; of all files when they are to be shown. What only the others have may be gone
    /// or refused: they are shown without.
    async fn load_schemas(&self, pin: &Arc<Pin>, table: &Arc<Table>, live: &mut [Live]) -> Result<()> {
        let ids_of = |files: &[Live], kept: bool| -> BTreeSet<SchemaId> {
            files.iter().filter(|file| file.is_kept() == kept).map(|file| file.entry.file.schema_id).collect()
        };
        let mut schemas = match self.schemas(pin, table, ids_of(live, true)).await {
            Ok(schemas) => schemas,
            Err(error) => return Err(self.blame_for_schema(error, pin, live)),
        };
        if self.request.explain {
            for id in ids_of(live, false) {
                if !schemas.contains_key(&id)
                    && let Ok(found) = self.schemas(pin, table, BTreeSet::from([id])).await
                {
                    schemas.extend(found);
                }
            }
        }
        for file in live.iter_mut() {
            file.schema = schemas.get(&file.entry.file.schema_id).map(Arc::clone);
        }
        Ok(())
    }

    /// An error about a schema that entries ask for: who asks may be what is damaged.
    fn blame_for_schema(&self, error: Error, pin: &Pin, live: &[Live]) -> Error {
        let missing = |file: &&Live| {
            let name = format!("/schema-{}", file.entry.file.schema_id);
            file.is_kept() && error.context().iter().any(|(what, value)| *what == "file" && value.ends_with(&name))
        };
        let Some(file) = live.iter().find(missing) else { return error };
        let error = match self.origins.manifest_of(&file.entry, &pin.table) {
            Some(manifest) => error.with_context("manifest", manifest),
            None => error,
        };
        error.with_context("entry", &file.entry.file.file_name)
    }

    async fn schemas(
        &self,
        pin: &Arc<Pin>,
        table: &Arc<Table>,
        ids: BTreeSet<SchemaId>,
    ) -> Result<HashMap<SchemaId, Arc<TableSchema>>> {
        let mut schemas: HashMap<SchemaId, Arc<TableSchema>> = HashMap::new();
        let mut reads = stream::iter(ids.into_iter().map(|id| {
            let (pin, table) = (Arc::clone(pin), Arc::clone(table));
            async move {
                let schema = if id == pin.schema.id { Arc::clone(&pin.schema) } else { table.schema(id).await? };
                Ok::<_, Error>((id, schema))
            }
        }))
        .buffer_unordered(self.env.concurrency.max(1));
        while let Some(read) = reads.next().await {
            let (id, schema) = read?;
            schemas.insert(id, evolution::aligned(schema, &pin.schema, &self.schema, table)?);
        }
        Ok(schemas)
    }

    /// Key ranges of the files that remain; of all files whose schema is known when they are to be shown.
    fn load_keys(&self, table: &Arc<Table>, live: &mut [Live]) -> Result<()> {
        let mut layouts: HashMap<SchemaId, KeyLayout> = HashMap::new();
        for file in live.iter_mut().filter(|file| file.is_kept() || self.request.explain) {
            let Some(schema) = &file.schema else { continue };
            let found = match layouts.entry(schema.id) {
                Entry::Occupied(known) => Ok(known.into_mut()),
                Entry::Vacant(slot) => KeyLayout::try_new(schema, &self.schema).map(|layout| slot.insert(layout)),
            };
            let keys = found
                .map_err(|error| error.with_context("file", &file.entry.file.file_name))
                .and_then(|layout| {
                    layout
                        .range(&file.entry, self.sorted_by_key)
                        .map_err(|error| self.origins.blame(error, &file.entry, table))
                })
                .map_err(|error| error.with_context("table", table.name()));
            match keys {
                Ok(keys) => file.keys = keys,
                // a file that is not read cannot fail the plan
                Err(_) if !file.is_kept() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sections of every bucket that has files.
    fn cut_buckets(&self, pin: &Arc<Pin>, table: &Arc<Table>, live: &[Live]) -> Result<Vec<BucketDraft>> {
        let keyed = self.schema.is_primary_key_table();
        let facts = MergeFacts::new(&pin.options, self.request.kind.keeps_deletes());
        let mut files: BTreeMap<(PartitionId, i32), Vec<usize>> = BTreeMap::new();
        for (number, file) in live.iter().enumerate().filter(|(_, file)| file.is_kept()) {
            files.entry((file.partition, file.entry.bucket.0)).or_default().push(number);
        }
        let mut drafts = Vec::new();
        for ((partition, bucket), mut files) in files {
            let sections = if self.request.kind.is_unmerged() {
                let class = if keyed { SectionClass::KindOnly } else { SectionClass::Raw };
                vec![Draft { class, runs: vec![files], alone: true, rule: Rule::Changes }]
            } else if keyed {
                cut(&files, live, &facts).map_err(|error| error.with_context("table", table.name()))?
            } else {
                // the order of writing, as far as the files tell it
                files.sort_by_key(|number| live.get(*number).map_or(0, |file| file.entry.file.min_sequence_number));
                vec![Draft { class: SectionClass::Raw, runs: vec![files], alone: true, rule: Rule::Append }]
            };
            drafts.push(BucketDraft { partition, bucket, sections });
        }
        Ok(drafts)
    }
}

/// Drops the files that `which` names; returns how many files and rows.
fn drop_where(live: &mut [Live], stage: Stage, rule: &Rule, which: impl Fn(&Live) -> bool) -> (u64, u64) {
    let mut count = (0, 0);
    for file in live.iter_mut() {
        if file.is_kept() && which(file) {
            count.0 += 1;
            count.1 += u64::try_from(file.entry.file.row_count).unwrap_or(0);
            file.drop_for(stage, rule);
        }
    }
    count
}

pub(super) fn value_of(verdicts: &[Vec<Option<bool>>], expression: usize, partition: PartitionId) -> Option<bool> {
    verdicts.get(expression)?.get(partition).copied().flatten()
}

#[cfg(test)]
mod tests;
