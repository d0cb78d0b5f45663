//! From what is known of one key to the layer that is responsible, as the decision tree of the specification has it.
//!
//! ```text
//! found although the same pin shows it                  → engine
//! as the source has it at a later snapshot              → visibility
//! hidden from readers by a table option                 → visibility
//! newer in the lake than in the source, without a gap   → visibility (the source was read earlier)
//! a pattern of values; a condition that one side meets  → business mapping
//! the change was added twice                            → business mapping; under one identity: commit identity
//! never seen; a value that never came                   → upstream
//! in a file that no commit names                        → commit protocol
//! in a file that only an unpublished commit names       → commit identity (D-18)
//! the later commit lost by its sequence numbers         → co-writing; of one user: commit protocol
//! written over or deleted by another writer             → co-writing; by a one-off job that deletes: operation
//! overwritten, dropped, rolled back, expired            → operation on the table
//! lost in a compaction, in a foreign bucket             → storage
//! ```

use super::model::{CommitRef, Layer, Pattern};
use super::sample::Lone;
use crate::recon::compare::Class;
use crate::recon::keys::Reason;
use crate::recon::lookup::Confidence;

/// What is known of a key.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Class.
    pub class: Option<Class>,
    /// Why, as the key's history tells; None: it was not, or cannot be, looked up.
    pub reason: Option<Reason>,
    /// How sure the reason is.
    pub confidence: Option<Confidence>,
    /// The commit it names.
    pub commit: Option<CommitRef>,
    /// The commit that brought the value, or the row, that the source has.
    pub expected: Option<CommitRef>,
    /// The commit that wrote the key before the one that is named.
    pub before: Option<CommitRef>,
    /// The first state after the pin in which it is as the source has it.
    pub clean_at: Option<i64>,
    /// The last state before the pin in which it was.
    pub clean_until: Option<i64>,
    /// Whether a commit came later than the one whose row readers get, and lost by its sequence number.
    pub lost_later: Option<CommitRef>,
    /// Whether its deletion is not in the files any more although an older row of it is.
    pub rose_again: bool,
    /// The change that was added twice, and the two commits.
    pub twice: Option<(Pattern, CommitRef, CommitRef)>,
    /// What the values show.
    pub pattern: Option<(Pattern, Confidence)>,
    /// A manifest list of no snapshot that names the file.
    pub stray_list: Option<String>,
    /// Whether it is another partition of the key itself.
    pub partition_in_key: bool,
    /// Whether the lake has what the source does not have yet: see [`super::ahead`].
    pub ahead: bool,
    /// The user that wrote most of the table.
    pub main_user: Option<String>,
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Who is responsible; None: it cannot be said.
    pub layer: Option<Layer>,
    /// How sure.
    pub confidence: Confidence,
    /// What the values show, where that decided.
    pub pattern: Option<Pattern>,
    /// More to be said behind the sentence of the reason.
    pub more: Option<String>,
    /// The commits responsible, the first above all.
    pub commits: Vec<CommitRef>,
}

/// What a batch job has as its identifier.
const BATCH: &str = "batch";

impl Facts {
    fn told(&self, layer: impl Into<Option<Layer>>, most: Confidence) -> Decision {
        let confidence = self.confidence.unwrap_or(Confidence::Exact).max(most);
        let commits = self.commit.iter().cloned().collect();
        Decision { layer: layer.into(), confidence, pattern: None, more: None, commits }
    }

    /// Takes in whether the lake alone, and whether the source alone, has a row of the key in another partition.
    pub fn place(&mut self, [extra, missing]: [Lone; 2]) {
        match (self.reason, self.class) {
            // the same key elsewhere is another row, unless the source lacks that one
            (Some(Reason::OtherPartition), Some(Class::MissingInLake)) => match extra {
                Lone::Yes => {}
                Lone::No => {
                    self.reason = Some(Reason::NeverSeen);
                    self.confidence = Some(Confidence::Inferred);
                    self.commit = None;
                }
                Lone::Unknown => self.confidence = Some(Confidence::Heuristic),
            },
            // a row that the source lacks here and the lake lacks there is one row in the wrong place
            (Some(Reason::ValueFrom), Some(Class::ExtraInLake)) if self.partition_in_key => match missing {
                Lone::Yes => self.reason = Some(Reason::OtherPartition),
                Lone::No => {}
                Lone::Unknown => self.confidence = Some(Confidence::Heuristic),
            },
            _ => {}
        }
    }

    /// Decides.
    pub fn decide(&self) -> Decision {
        let exact = Confidence::Exact;
        if let Some(clean) = self.clean_at {
            let more = format!("at snapshot {clean} it is as the source has it");
            return self.told(Layer::Visibility, exact).with(more);
        }
        match self.class {
            Some(Class::Unreadable) => {
                return self
                    .told(Layer::BusinessMapping, exact)
                    .with("a value cannot be read in the type of the comparison");
            }
            Some(Class::NullKey) => return self.told(Layer::BusinessMapping, exact).with("a key column is NULL"),
            Some(Class::DupSource) => {
                return self.told(Layer::BusinessMapping, exact).with("the key is not unique in the source");
            }
            _ => {}
        }
        match self.reason {
            None => self.unexplained(),
            Some(reason) => self.explained(reason),
        }
    }

    fn explained(&self, reason: Reason) -> Decision {
        let exact = Confidence::Exact;
        match reason {
            Reason::CommittedLater => self
                .told(Layer::Upstream, exact)
                .with("no later snapshot has it as the source has it"),
            Reason::HiddenLevel0 | Reason::HiddenPostpone => self.told(Layer::Visibility, exact),
            Reason::NeverSeen => self.told(Layer::Upstream, exact),
            Reason::NotYetCommitted => match &self.stray_list {
                Some(list) => self.told(Layer::CommitIdentity, Confidence::Inferred).with(format!(
                    "the manifest list {list} of a commit that is in no snapshot names the file (D-18): if its committer \
                     was told success, its snapshot was overwritten"
                )),
                None => self.told(Layer::CommitProtocol, exact),
            },
            Reason::RemovedByOverwrite | Reason::DroppedPartition | Reason::RolledBack | Reason::ExpiredRecord => {
                self.told(Layer::OperationOnTable, exact)
            }
            Reason::LostInCompaction | Reason::OtherBucket => self.told(Layer::Storage, exact),
            Reason::OtherPartition if self.partition_in_key => {
                let mut found = self.told(Layer::BusinessMapping, Confidence::Inferred);
                found.pattern = Some(Pattern::OtherPartition);
                found
            }
            Reason::OtherPartition => self.told(Layer::Storage, exact),
            Reason::SupersededBySequence => self.superseded(),
            Reason::Tombstoned | Reason::VectorDeleted => self.deleted(),
            Reason::ValueFrom => self.present(),
            Reason::UnknownBeforeHistory => self.unexplained(),
        }
    }

    /// The source's value was there, and another one is what readers get.
    fn superseded(&self) -> Decision {
        let (Some(winner), Some(loser)) = (&self.commit, &self.expected) else {
            return self.by_values().unwrap_or_else(|| self.told(Layer::CoWriting, Confidence::Inferred));
        };
        if loser.snapshot > winner.snapshot {
            return self.inverted(loser);
        }
        if let Some(found) = self.added_twice() {
            return found;
        }
        if let (true, Some(found)) = (winner.user == loser.user, self.by_values()) {
            return found;
        }
        let mut found = if self.ahead {
            self.told(Layer::Visibility, Confidence::Inferred)
                .with("the lake is newer than the source was when it was read")
        } else if winner.user != loser.user {
            self.told(Layer::CoWriting, Confidence::Inferred).with(format!(
                "{} of snapshot {} wrote over what {} had written in snapshot {}, which the source still has",
                winner.user, winner.snapshot, loser.user, loser.snapshot
            ))
        } else {
            self.told(Layer::Upstream, Confidence::Inferred)
                .with("the writer of the source's value wrote another one later, which the source does not have")
        };
        found.commits.push(loser.clone());
        found
    }

    fn inverted(&self, loser: &CommitRef) -> Decision {
        let one_user = self.commit.as_ref().is_some_and(|winner| winner.user == loser.user);
        let mut found = if one_user {
            self.told(Layer::CommitProtocol, Confidence::Inferred)
                .with("one writer went on with lower sequence numbers: it was restored from an older state")
        } else {
            self.told(Layer::CoWriting, Confidence::Exact)
                .with("two writers without a sequence.field: the order of commits is not that of the rows (D-9)")
        };
        found.commits.push(loser.clone());
        found
    }

    fn added_twice(&self) -> Option<Decision> {
        let (pattern, first, second) = self.twice.as_ref()?;
        let one = first.user == second.user && first.identifier == second.identifier && second.identifier != BATCH;
        let layer = if one { Layer::CommitIdentity } else { Layer::BusinessMapping };
        let mut found = self.told(layer, Confidence::Exact).with(format!(
            "snapshot {} of {} and snapshot {} of {} each added the change",
            first.snapshot, first.user, second.snapshot, second.user
        ));
        found.pattern = Some(pattern.clone());
        found.commits = vec![second.clone(), first.clone()];
        Some(found)
    }

    /// Readers get nothing, because a version says so.
    fn deleted(&self) -> Decision {
        let by_other = match (&self.commit, &self.before) {
            (Some(by), Some(before)) => Some((by, before)).filter(|(by, before)| by.user != before.user),
            _ => None,
        };
        let mut found = match by_other {
            Some((by, before)) if by.identifier == BATCH || by.kind == "OVERWRITE" => self
                .told(Layer::OperationOnTable, Confidence::Inferred)
                .with(format!("a job of {} deleted what {} had written", by.user, before.user)),
            Some((by, before)) => self
                .told(Layer::CoWriting, Confidence::Inferred)
                .with(format!("{} deleted what {} had written", by.user, before.user)),
            None if self.ahead => self
                .told(Layer::Visibility, Confidence::Inferred)
                .with("the lake is newer than the source was when it was read"),
            None => self.told(Layer::Upstream, Confidence::Inferred).with(
                "its own writer deleted it, and the source has it: a wrong delete came, or a later insert did not",
            ),
        };
        found.commits.extend(self.before.clone());
        found
    }

    /// Readers get a row that the source does not have, or has otherwise; what it has is nowhere.
    fn present(&self) -> Decision {
        match self.class {
            Some(Class::MissingInLake) => {
                return self.told(Layer::Engine, Confidence::Inferred).with(
                    "the comparison did not find the key, and its history shows it at the same snapshot: both cannot be right",
                );
            }
            Some(Class::ExtraInLake) => return self.extra(),
            Some(Class::DupLake) => return self.told(None, Confidence::Exact),
            _ => {}
        }
        if let Some(found) = self.by_values() {
            return found;
        }
        if self.class == Some(Class::FilterMismatch) {
            return self
                .told(Layer::BusinessMapping, Confidence::Inferred)
                .with("the condition is met on one side only: its columns are not the same on both");
        }
        if let (Some(by), Some(before)) = (&self.commit, &self.before)
            && by.user != before.user
        {
            let mut found = self.told(Layer::CoWriting, Confidence::Inferred).with(format!(
                "{} wrote over what {} had written; the source's value is in no file",
                by.user, before.user
            ));
            found.commits.push(before.clone());
            return found;
        }
        self.told(Layer::Upstream, Confidence::Inferred)
            .with("the value of the source is in no file, committed or not: the change never came")
            .by_none()
    }

    fn extra(&self) -> Decision {
        if self.rose_again {
            return self
                .told(Layer::Storage, Confidence::Inferred)
                .with("it was deleted, and is there again: a compaction dropped the deletion before the row");
        }
        if let Some(deletion) = &self.lost_later {
            return self.inverted(deletion);
        }
        if self.ahead {
            return self
                .told(Layer::Visibility, Confidence::Inferred)
                .with("the lake is newer than the source was when it was read");
        }
        let foreign = self.commit.as_ref().zip(self.main_user.as_ref()).filter(|(by, main)| by.user != **main);
        match foreign {
            Some((by, main)) => self
                .told(Layer::CoWriting, Confidence::Inferred)
                .with(format!("{} brought it beside {main}, and the source does not have it", by.user)),
            None => self
                .told(Layer::Upstream, Confidence::Inferred)
                .with("the source does not have it: its deletion never came, or it was never there")
                .by_none(),
        }
    }

    /// What the values of both sides say by themselves.
    fn by_values(&self) -> Option<Decision> {
        if let Some(found) = self.added_twice() {
            return Some(found);
        }
        let (pattern, confidence) = self.pattern.as_ref()?;
        let mut found = self.told(Layer::BusinessMapping, *confidence);
        found.pattern = Some(pattern.clone());
        Some(found)
    }

    fn unexplained(&self) -> Decision {
        self.by_values().unwrap_or_else(|| match self.class {
            Some(Class::FilterMismatch) => self
                .told(Layer::BusinessMapping, Confidence::Inferred)
                .with("the condition is met on one side only: its columns are not the same on both"),
            _ => self.told(None, Confidence::Exact),
        })
    }
}

impl Decision {
    /// What never came is no commit's doing: not that of the one which wrote what is there.
    fn by_none(mut self) -> Self {
        self.commits.clear();
        self
    }

    fn with(mut self, more: impl Into<String>) -> Self {
        self.more = Some(more.into());
        self
    }
}

/// What to do about a layer.
pub fn next(layer: Option<Layer>, pattern: Option<&Pattern>) -> Vec<String> {
    let texts: &[&str] = match (layer, pattern) {
        (None, _) => &["ask a longer history: tags, an archive of snapshots, the writers' logs"],
        (Some(Layer::Engine), _) => &["report it with both results: this must never happen", "trust neither result"],
        (Some(Layer::Visibility), _) => &[
            "compare again at the snapshot that is named, or behind a gate: WAIT FOR TABLE … UNTIL …, then RECONCILE at its pin",
            "read the source at the same event time: HORIZON",
        ],
        (Some(Layer::CountingRule), _) => {
            &["count final rows on both sides: SELECT count(*), not rows of files or changelog events"]
        }
        (Some(Layer::BusinessMapping), Some(Pattern::Code { .. })) => &[
            "say what the codes stand for: COMPARE (column MAP ('of the source' => 'in the lake')); or correct the job that writes them",
        ],
        (Some(Layer::BusinessMapping), Some(Pattern::Twice { .. })) => &[
            "correct the values by absolute ones: the second commit added what was there already",
            "give the job one commit user and identifier for each batch, and ask paimon_lookup_commit before it runs again",
        ],
        (Some(Layer::BusinessMapping), Some(Pattern::Shift { .. })) => {
            &["say the zone of the source: ZONE '+08:00'; or correct the job that writes the times"]
        }
        (Some(Layer::BusinessMapping), Some(Pattern::Ratio { .. })) => {
            &["bring both sides to one unit in the query of the source"]
        }
        (Some(Layer::BusinessMapping), _) => {
            &["compare the definitions of both sides: key, partition, condition, types"]
        }
        (Some(Layer::Upstream), _) => &[
            "compare the source's offset with the newest identifier of the writer, and look for the key in its topic",
            "replay the keys from the source as absolute values",
        ],
        (Some(Layer::CommitProtocol), _) => &[
            "look at the committer's log for the checkpoint; t$unreferenced_files lists the files",
            "recover the job from its last checkpoint: it commits what is missing; clean no files before that",
        ],
        (Some(Layer::CoWriting), _) => &[
            "give the table a sequence.field, or one writer; then write the right values again",
            "\\conflicts lists the other pairs of commits that met",
        ],
        (Some(Layer::OperationOnTable), _) => &[
            "ask who ran it; the rows are in the snapshot before it as long as that is kept: tag it now",
            "write the lost rows again from the source or from that snapshot",
        ],
        (Some(Layer::CommitIdentity), _) => &[
            "stop the writers of this table, keep all files, clean nothing",
            "find out which committers share a user or a publish path without a lock; \\committed tells what landed",
        ],
        (Some(Layer::Storage), _) => &[
            "keep the files; \\check deep tells more: compare the compaction's input and output",
            "restore the keys from the source",
        ],
    };
    texts.iter().map(|text| (*text).to_string()).collect()
}

/// Whose a detector's finding is.
pub fn layer_of_detector(detector: &str) -> Option<Layer> {
    Some(match detector {
        "D-1" | "D-4" | "D-7" | "D-18" => Layer::CommitIdentity,
        "D-3" | "D-5" => Layer::CommitProtocol,
        "D-2" | "D-17" => Layer::OperationOnTable,
        "D-6" | "D-11" | "D-12" | "D-13" | "D-14" | "D-15" | "D-16" | "D-19" => Layer::Storage,
        "D-8" | "D-10" => Layer::Visibility,
        "D-9" => Layer::CoWriting,
        _ => return None,
    })
}
