//! The steps of a plan, in order.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::logical_expr::Expr;
use futures::StreamExt;
use futures::stream;

use super::bucket::BucketKey;
use super::evolution::{self, Wanted};
use super::filters::{Conjunct, Filters, Reach};
use super::incremental::ChangeList;
use super::index::{ask, index_predicate};
use super::lists::{Named, Origins, check_changes, check_rows, named, named_by};
use super::live::{KeyLayout, Live};
use super::manifests::{Manifest, added, fold, read_manifests};
use super::partitions::{PartitionId, Partitions, evaluate, evaluate_all};
use super::place::Places;
use super::plan::{PlannedFile, ScanEnv, ScanKind, ScanRequest, Section, SectionClass, Stage, Stages, Unit};
use super::ranges::ManifestFilter;
use super::sections::{Draft, MergeFacts, cut, join_neighbours};
use super::vectors::{Vectors, in_index_manifest};
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::file_index::{IndexPredicate, IndexVerdict};
use crate::spec::{Bucket, Datum, ManifestEntry, ManifestFileMeta, SchemaId, SnapshotId, TableSchema};

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
    pub(super) notices: Vec<String>,
    pub(super) units: Vec<Unit>,
    origins: Origins,
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
    pub(super) rule: Arc<str>,
}

/// Sections of one bucket while they are planned.
pub(super) struct BucketDraft {
    partition: PartitionId,
    bucket: i32,
    pub(super) sections: Vec<Draft>,
    /// A filter left out a file of it.
    reduced: bool,
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
            considered: Vec::new(),
        })
    }

    /// Plans the files of one source. Returns the partitions it has, after the partition filter.
    pub(crate) async fn add_source(
        &mut self,
        source: Source<'_>,
        changes: Option<&[ChangeList]>,
    ) -> Result<HashSet<PartitionId>> {
        let pin = source.pin;
        self.sorted_by_key = !pin.options.pk_clustering_override;
        let table = Arc::clone(&pin.table);
        let mut live = match changes {
            Some(lists) => self.changed_files(pin, &table, lists).await?,
            None => self.snapshot_files(pin, &table).await?,
        };
        self.stages.files += live.len() as u64;
        self.stages.rows += live.iter().map(|file| u64::try_from(file.entry.file.row_count).unwrap_or(0)).sum::<u64>();

        self.filter_partitions(&mut live)?;
        let present: HashSet<PartitionId> =
            live.iter().filter(|file| file.is_kept()).map(|file| file.partition).collect();
        if !source.without.is_empty() {
            let rule: Arc<str> = "the other branch has this partition".into();
            drop_where(&mut live, Stage::Partition, &rule, |file| source.without.contains(&file.partition));
        }
        self.load_schemas(pin, &table, &mut live).await?;
        if let Some(common) = &self.request.without {
            let rule: Arc<str> = "the state compared with has the same rows of it".into();
            drop_where(&mut live, Stage::Comparison, &rule, |file| common.has(&file.entry));
        }
        let keyed = self.schema.is_primary_key_table();
        // before the levels, so that nothing of another bucket is told as hidden
        self.filter_scan_bucket(pin, &mut live);
        if keyed {
            self.filter_levels(pin, &mut live)?;
        }
        let verdicts = self.partition_values()?;
        self.filter_buckets(pin, &mut live, &verdicts)?;
        if keyed {
            self.load_keys(&table, &mut live)?;
        } else {
            self.check_columns(pin, &mut live).map_err(|error| error.with_context("table", table.name()))?;
        }
        let unmerged = self.request.kind.is_unmerged();
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
        if !unmerged && pin.options.file_index_read_enabled {
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
        if pin.snapshot.is_none() {
            return Ok(Vec::new());
        }
        let named = named(pin, self.env).await?;
        self.stages.manifest_lists += 2;
        let all = named.metas.len();
        let manifests = self.read_metas(pin, table, named).await?;
        if manifests.len() == all {
            check_rows(pin, &manifests)?;
        }
        fold(&manifests).into_iter().map(|entry| self.enter(entry, None, table)).collect()
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
        match self.partitions.intern(&entry.partition) {
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

    /// The buckets that can hold the keys asked for, under every bucket count that the manifests tell; None where one does
    /// not tell it, or where keys may have been hashed as another type. See `ranges` for why.
    async fn wanted_buckets(
        &self,
        pin: &Arc<Pin>,
        table: &Arc<Table>,
        metas: &[ManifestFileMeta],
    ) -> Result<Option<BTreeSet<i32>>> {
        let counts: Option<BTreeSet<i32>> =
            metas.iter().map(|meta| meta.total_buckets.filter(|count| *count > 0)).collect();
        let newest = metas.iter().map(|meta| meta.schema_id).max();
        let (Some(counts), Some(newest)) = (counts, newest) else { return Ok(None) };
        let Some(key) = BucketKey::try_new(&self.schema, &pin.options)? else { return Ok(None) };
        let Some(keys) = key.keys(&self.filters.on_rows(), &|_| None) else { return Ok(None) };
        let mut wanted = BTreeSet::new();
        for count in counts {
            match key.buckets(&keys, count)? {
                Some(buckets) => wanted.extend(buckets),
                None => return Ok(None),
            }
        }
        // a manifest that was rewritten holds entries of older schemas than its own: any so far may be theirs
        if newest > pin.schema.id || pin.schema.id.0 >= SCHEMAS_LOOKED_AT {
            return Ok(None);
        }
        let ids = (0..=pin.schema.id.0).map(SchemaId).collect();
        let Ok(schemas) = self.schemas(pin, table, ids).await else { return Ok(None) };
        let same = schemas.values().all(|schema| key.same_types(&self.schema, schema));
        Ok(same.then_some(wanted))
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
        let rules: Vec<Arc<str>> =
            exact.iter().map(|conjunct| format!("partition does not meet {}", conjunct.text).into()).collect();
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
        let mut schemas = self.schemas(pin, table, ids_of(live, true)).await?;
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
                    layout.range(&file.entry).map_err(|error| self.origins.blame(error, &file.entry, table))
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

    /// Hides levels and buckets that a read of this kind does not see, and says how much that is.
    fn filter_levels(&mut self, pin: &Arc<Pin>, live: &mut [Live]) -> Result<()> {
        let options = &pin.options;
        let postpone: Arc<str> = "the postpone bucket is hidden until it is compacted".into();
        let hidden = drop_where(live, Stage::Level, &postpone, |file| file.entry.bucket.0 < 0);
        self.notice_hidden(&postpone, hidden);
        match self.request.kind {
            ScanKind::Delta(_) | ScanKind::Changelog(_) => {}
            ScanKind::ReadOptimized => {
                let rule: Arc<str> = format!("below the top level {} ($ro)", options.max_level).into();
                drop_where(live, Stage::Level, &rule, |file| file.entry.file.level != options.max_level);
            }
            ScanKind::Full | ScanKind::FullWithDeletes => {
                let facts = MergeFacts::new(options, self.request.kind.keeps_deletes());
                let mut hidden: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
                for file in live.iter_mut().filter(|file| file.is_kept() && file.entry.file.level == 0) {
                    let rule = file.schema.as_deref().and_then(|schema| facts.hides_level_0(schema));
                    if let Some(rule) = rule {
                        let count = hidden.entry(rule).or_default();
                        count.0 += 1;
                        count.1 += u64::try_from(file.entry.file.row_count).unwrap_or(0);
                        file.drop_for(Stage::Level, &rule.into());
                    }
                }
                for (rule, count) in hidden {
                    self.notice_hidden(rule, count);
                }
            }
        }
        Ok(())
    }

    /// Says what vectors of a primary-key table are not applied since its option was switched off: rows they delete are
    /// read again, as Java reads them. Costs the index manifest. One that cannot be read fails no query, since nothing
    /// of it is needed; the notice says so.
    async fn notice_unapplied_vectors(&mut self, pin: &Arc<Pin>, live: &[Live]) {
        if !live.iter().any(Live::is_kept) {
            return;
        }
        let vectors = match Vectors::read(pin, self.env, &mut self.partitions).await {
            Ok(vectors) => vectors,
            Err(error) => {
                self.notices.push(format!(
                    "{}: whether vectors that are not applied name rows is not known: {}",
                    pin.table.name(),
                    error.message()
                ));
                return;
            }
        };
        let (mut files, mut rows, mut known) = (0, 0, true);
        for file in live.iter().filter(|file| file.is_kept()) {
            let Some(vector) = vectors.of(file.partition, file.entry.bucket.0, &file.entry.file.file_name) else {
                continue;
            };
            files += 1;
            // older writers do not say how many rows a vector names
            let told = vector.range.cardinality.and_then(|rows| u64::try_from(rows).ok());
            rows += told.unwrap_or(1);
            known &= told.is_some();
        }
        if files > 0 {
            self.notices.push(format!(
                "{}: {}{} of {} {} deleted by vectors that are not applied, since deletion-vectors.enabled is false now",
                pin.table.name(),
                if known { "" } else { "at least " },
                plural(rows, "row"),
                plural(files, "file"),
                if rows == 1 { "is" } else { "are" }
            ));
        }
    }

    fn notice_hidden(&mut self, rule: &str, (files, rows): (u64, u64)) {
        if files > 0 {
            self.notices.push(format!("{rule}: {}, {} not read", plural(files, "file"), plural(rows, "row")));
        }
    }

    /// `scan.bucket`: one bucket only.
    fn filter_scan_bucket(&self, pin: &Arc<Pin>, live: &mut [Live]) {
        if let Some(bucket) = pin.options.scan.bucket {
            let rule: Arc<str> = format!("option scan.bucket = {bucket}").into();
            drop_where(live, Stage::Bucket, &rule, |file| file.entry.bucket.0 != bucket);
        }
    }

    /// Drops buckets that cannot hold the keys asked for.
    fn filter_buckets(&mut self, pin: &Arc<Pin>, live: &mut [Live], verdicts: &[Vec<Option<bool>>]) -> Result<()> {
        let Some(key) = BucketKey::try_new(&self.schema, &pin.options)? else { return Ok(()) };
        let condition = self.filters.on_rows();
        // partition, bucket count → buckets that remain
        let mut wanted: HashMap<(PartitionId, i32), Option<WantedBuckets>> = HashMap::new();
        let mut keys: HashMap<PartitionId, Option<Arc<Vec<Vec<Datum>>>>> = HashMap::new();
        for file in live.iter_mut().filter(|file| file.is_kept()) {
            let (partition, total) = (file.partition, file.entry.total_buckets);
            if total <= 0 || !file.schema.as_deref().is_some_and(|schema| key.same_types(&self.schema, schema)) {
                continue;
            }
            let remaining = match wanted.get(&(partition, total)) {
                Some(known) => known,
                None => {
                    let keys = keys.entry(partition).or_insert_with(|| {
                        key.keys(&condition, &|number| value_of(verdicts, number, partition)).map(Arc::new)
                    });
                    let buckets = match keys {
                        Some(keys) => key.buckets(keys, total)?,
                        None => None,
                    };
                    let found = buckets.map(|buckets| {
                        let list: Vec<String> = buckets.iter().map(i32::to_string).collect();
                        let rule = if list.is_empty() {
                            "no key of this partition meets the filter".to_string()
                        } else {
                            format!("the filter's keys are in bucket {} of {total}", list.join(", "))
                        };
                        (buckets, rule.into())
                    });
                    wanted.entry((partition, total)).or_insert(found)
                }
            };
            if let Some((buckets, rule)) = remaining
                && !buckets.contains(&file.entry.bucket.0)
            {
                let rule = Arc::clone(rule);
                file.drop_for(Stage::Bucket, &rule);
            }
        }
        Ok(())
    }

    /// Sections of every bucket that has files.
    fn cut_buckets(&self, pin: &Arc<Pin>, table: &Arc<Table>, live: &[Live]) -> Result<Vec<BucketDraft>> {
        let keyed = self.schema.is_primary_key_table();
        let facts = MergeFacts::new(&pin.options, self.request.kind.keeps_deletes());
        let mut files: BTreeMap<(PartitionId, i32), (Vec<usize>, bool)> = BTreeMap::new();
        for (number, file) in live.iter().enumerate() {
            let bucket = files.entry((file.partition, file.entry.bucket.0)).or_default();
            match file.dropped {
                None => bucket.0.push(number),
                Some((Stage::Key | Stage::Comparison, _)) => bucket.1 = true,
                Some(_) => {}
            }
        }
        let mut drafts = Vec::new();
        for ((partition, bucket), (mut files, reduced)) in files {
            if files.is_empty() {
                continue;
            }
            let sections = if self.request.kind.is_unmerged() {
                let class = if keyed { SectionClass::KindOnly } else { SectionClass::Raw };
                let rule: Arc<str> = "changes are read as written".into();
                vec![Draft { class, runs: vec![files], alone: true, rule }]
            } else if keyed {
                cut(&files, live, &facts).map_err(|error| error.with_context("table", table.name()))?
            } else {
                // the order of writing, as far as the files tell it
                files.sort_by_key(|number| live.get(*number).map_or(0, |file| file.entry.file.min_sequence_number));
                let rule: Arc<str> = "append tables are read as written".into();
                vec![Draft { class: SectionClass::Raw, runs: vec![files], alone: true, rule }]
            };
            drafts.push(BucketDraft { partition, bucket, sections, reduced });
        }
        Ok(drafts)
    }

    /// Locations and deletion vectors of the files kept so far.
    async fn place_files(
        &self,
        pin: &Arc<Pin>,
        table: &Arc<Table>,
        live: &mut [Live],
        vectors: &Vectors,
    ) -> Result<Planned> {
        let mut places = Places::new(table, &self.schema, &pin.options);
        let mut planned: Planned = Vec::with_capacity(live.len());
        let all_deleted: Arc<str> = "its deletion vector names every row".into();
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
                file.drop_for(Stage::Vector, &all_deleted);
                planned.push(None);
                continue;
            }
            planned.push(Some(found));
        }
        Ok(planned)
    }

    /// Asks the file indexes of files that are judged alone.
    async fn ask_indexes(
        &self,
        pin: &Arc<Pin>,
        live: &mut [Live],
        buckets: &[BucketDraft],
        planned: &mut Planned,
        verdicts: &[Vec<Option<bool>>],
    ) -> Result<()> {
        let condition = self.filters.on_rows();
        if condition == super::condition::Condition::Unknown {
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
            Some(async move { Ok::<_, Error>((number, ask(pin, file, &predicate).await?)) })
        }))
        .buffer_unordered(self.env.concurrency.max(1));
        let mut verdict = Vec::new();
        while let Some(answer) = answers.next().await {
            verdict.push(answer?);
        }
        drop(answers);
        let rule: Arc<str> = "its file index holds no row that meets the filter".into();
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
                file.drop_for(Stage::Index, &rule);
            }
        }
        Ok(())
    }

    /// Turns drafts into units.
    fn assemble(&mut self, from: Origin, live: Vec<Live>, buckets: Vec<BucketDraft>, planned: Planned) {
        let Origin { branch, snapshot } = from;
        let planned: Vec<Option<Arc<PlannedFile>>> = planned.into_iter().map(|file| file.map(Arc::new)).collect();
        let found = |number: usize| planned.get(number).and_then(Option::as_ref);
        let mut kept: HashMap<usize, Kept> = HashMap::new();
        for bucket in buckets {
            let mut reduced = bucket.reduced;
            let mut drafts = Vec::new();
            for mut draft in bucket.sections {
                for run in &mut draft.runs {
                    let before = run.len();
                    run.retain(|number| found(*number).is_some());
                    reduced |= before != run.len();
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
                            rule: Arc::clone(&draft.rule),
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
                sections.push(Section { class: draft.class, runs, complete: !reduced });
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

/// Schemas read, at most, to know how keys were hashed.
const SCHEMAS_LOOKED_AT: i64 = 32;

/// The files kept so far, by number.
type Planned = Vec<Option<PlannedFile>>;

/// Buckets that can hold the keys asked for, and the rule as shown.
type WantedBuckets = (BTreeSet<i32>, Arc<str>);

/// `1 file`, `2 files`.
fn plural(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Drops the files that `which` names; returns how many files and rows.
fn drop_where(live: &mut [Live], stage: Stage, rule: &Arc<str>, which: impl Fn(&Live) -> bool) -> (u64, u64) {
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
