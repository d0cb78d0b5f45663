//! Levels and vectors that a read does not see, and the notices that say how much that is.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Planner, drop_where};
use crate::error::Result;
use crate::notice::{HiddenRows, NoticeKind};
use crate::scan::live::Live;
use crate::scan::plan::{ScanKind, Stage};
use crate::scan::rule::Rule;
use crate::scan::sections::MergeFacts;
use crate::scan::vectors::Vectors;
use crate::snapshot::Pin;

impl Planner<'_> {
    /// Hides levels and buckets that a read of this kind does not see, and says how much that is.
    pub(super) fn filter_levels(&mut self, pin: &Arc<Pin>, live: &mut [Live]) -> Result<()> {
        let options = &pin.options;
        let postpone = HiddenRows::PostponeBucket;
        let hidden = drop_where(live, Stage::Level, &Rule::Hidden(postpone), |file| file.entry.bucket.0 < 0);
        self.notice_hidden(postpone, hidden);
        match self.request.kind {
            ScanKind::Delta(_) | ScanKind::Changelog(_) => {}
            ScanKind::ReadOptimized => {
                let top = options.max_level;
                drop_where(live, Stage::Level, &Rule::BelowTop(top), |file| file.entry.file.level != top);
            }
            ScanKind::Full | ScanKind::FullWithDeletes => {
                let facts = MergeFacts::new(options, self.request.kind.keeps_deletes());
                let mut hidden: BTreeMap<HiddenRows, (u64, u64)> = BTreeMap::new();
                for file in live.iter_mut().filter(|file| file.is_kept() && file.entry.file.level == 0) {
                    let which = file.schema.as_deref().and_then(|schema| facts.hides_level_0(schema));
                    if let Some(which) = which {
                        let count = hidden.entry(which).or_default();
                        count.0 += 1;
                        count.1 += u64::try_from(file.entry.file.row_count).unwrap_or(0);
                        file.drop_for(Stage::Level, &Rule::Hidden(which));
                    }
                }
                for (which, count) in hidden {
                    self.notice_hidden(which, count);
                }
            }
        }
        Ok(())
    }

    /// Says what vectors of a primary-key table are not applied since its option was switched off: rows they delete are
    /// read again, as Java reads them. Costs the index manifest. One that cannot be read fails no query, since nothing
    /// of it is needed; the notice says so.
    pub(super) async fn notice_unapplied_vectors(&mut self, pin: &Arc<Pin>, live: &[Live]) {
        if !live.iter().any(Live::is_kept) {
            return;
        }
        let vectors = match Vectors::read(pin, self.env, &mut self.partitions).await {
            Ok(vectors) => vectors,
            Err(error) => {
                let (table, why) = (pin.table.name(), error.message().to_string());
                self.notices.push(NoticeKind::VectorsNotKnown { table, why }.into());
                return;
            }
        };
        let (mut files, mut rows, mut exact) = (0, 0, true);
        for file in live.iter().filter(|file| file.is_kept()) {
            let Some(vector) = vectors.of(file.partition, file.entry.bucket.0, &file.entry.file.file_name) else {
                continue;
            };
            files += 1;
            // older writers do not say how many rows a vector names; none names more than the file has
            let told = vector.range.cardinality.map(|rows| rows.clamp(0, file.entry.file.row_count).unsigned_abs());
            rows += told.unwrap_or(1);
            exact &= told.is_some();
        }
        if files > 0 {
            let table = pin.table.name();
            self.notices.push(NoticeKind::VectorsNotApplied { table, rows, exact, files }.into());
        }
    }

    /// Says which deletion vectors are of no live file, where all live files are known, and which index files list
    /// vectors and are of another type. No writer is known to leave such behind, but none is forbidden to: it is told,
    /// not refused. If it is damage, rows that were deleted are read again.
    ///
    /// Cost: nothing where every vector is that of a file kept.
    pub(super) fn notice_stray_vectors(&mut self, pin: &Pin, live: &[Live], vectors: &Vectors, applied: usize) {
        let table = pin.table.name();
        let mut notices = Vec::new();
        if self.whole && applied != vectors.len() {
            let strays = vectors.strays(live);
            if let [first, rest @ ..] = strays.as_slice() {
                let (table, file, more) = (table.clone(), first.to_string(), rest.len());
                notices.push(NoticeKind::StrayVectors { table, file, more }.into());
            }
        }
        if let Some(file) = vectors.empty_manifest() {
            notices.push(NoticeKind::EmptyIndexManifest { table: table.clone(), file: file.to_string() }.into());
        }
        for index in vectors.untyped() {
            notices.push(NoticeKind::UntypedVectors { table: table.clone(), file: index.to_string() }.into());
        }
        self.notices.append(&mut notices);
    }

    fn notice_hidden(&mut self, which: HiddenRows, (files, rows): (u64, u64)) {
        if files > 0 {
            self.notices.push(NoticeKind::Hidden { which, files, rows }.into());
        }
    }
}
