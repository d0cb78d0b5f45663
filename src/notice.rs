//! What the reader of an answer should know: a kind with its values, for who tells it in other words, and the sentence.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// One notice. It reads as its English sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    kind: NoticeKind,
    text: String,
}

impl Notice {
    /// What it says, as values.
    pub fn kind(&self) -> &NoticeKind {
        &self.kind
    }
}

impl From<NoticeKind> for Notice {
    fn from(kind: NoticeKind) -> Self {
        Self { text: kind.to_string(), kind }
    }
}

impl Deref for Notice {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Borrow<str> for Notice {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<str> for Notice {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for Notice {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

impl PartialEq<String> for Notice {
    fn eq(&self, text: &String) -> bool {
        self.text == *text
    }
}

/// Rows that readers do not see before they are compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HiddenRows {
    /// Those of the postpone bucket.
    PostponeBucket,
    /// Level 0 of a first-row table.
    FirstRow,
    /// Level 0 under `deletion-vectors.enabled`.
    DeletionVectors,
}

impl HiddenRows {
    /// The rule as a sentence.
    pub fn rule(self) -> &'static str {
        match self {
            Self::PostponeBucket => "the postpone bucket is hidden until it is compacted",
            Self::FirstRow => "level 0 of a first-row table is hidden until it is compacted",
            Self::DeletionVectors => "level 0 is hidden until it is compacted (deletion-vectors.enabled)",
        }
    }
}

/// What a notice says. Tables are named `database.table`; times are texts in the session's zone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoticeKind {
    /// The `LATEST` hint is ahead of the snapshots there are.
    StaleHint {
        /// Table.
        table: String,
        /// Snapshot the hint names.
        hinted: i64,
        /// Snapshot read instead.
        newest: i64,
    },
    /// The file of the newest snapshot cannot be read, and what is told of the table's past begins at an older one.
    NewestUnreadable {
        /// Table.
        table: String,
        /// The newest snapshot.
        torn: i64,
        /// Snapshot read instead.
        read: i64,
        /// Why.
        why: String,
    },
    /// The table's option `branch` leads to another branch.
    BranchByOption {
        /// That branch.
        branch: String,
    },
    /// A snapshot was read by its number, which is the name of a tag too.
    TagOfThatNumber {
        /// Table.
        table: String,
        /// The snapshot that was read.
        id: i64,
        /// The snapshot that the tag holds.
        held: i64,
    },
    /// A tag was read whose name is the number of another snapshot.
    SnapshotOfThatNumber {
        /// Table.
        table: String,
        /// Name of the tag.
        tag: String,
        /// The snapshot it holds.
        held: i64,
        /// The other snapshot.
        id: i64,
    },
    /// A snapshot before the chosen one was committed later.
    TimesNotInOrder {
        /// The snapshot before.
        before: i64,
        /// Its commit time.
        before_time: String,
        /// The chosen snapshot.
        chosen: i64,
        /// Its commit time.
        chosen_time: String,
    },
    /// A watermark that must have been meant in seconds.
    WatermarkInSeconds {
        /// The number that was asked for.
        asked: i64,
        /// The time it is.
        asked_time: String,
        /// The watermark that was found.
        found_time: String,
        /// The number in milliseconds.
        millis: i64,
    },
    /// There is no full compaction; the latest snapshot was read.
    NoFullCompaction,
    /// `fields.c.default-value` is not honoured.
    DefaultValue {
        /// The option.
        option: String,
        /// The column.
        column: String,
    },
    /// An option that would skip files that cannot be read is not honoured.
    UnreadableFilesFail {
        /// The option.
        option: String,
    },
    /// Rows that are hidden by design.
    Hidden {
        /// Which.
        which: HiddenRows,
        /// Files of them.
        files: u64,
        /// Rows of them.
        rows: u64,
    },
    /// `scan.bucket` leaves buckets out that hold rows.
    BucketOption {
        /// Table.
        table: String,
        /// The bucket that is read.
        bucket: i32,
        /// Buckets that are not, each of its partition.
        buckets: u64,
        /// Files of them.
        files: u64,
        /// Rows of them.
        rows: u64,
    },
    /// Rows counted of another branch, which the snapshot does not count.
    OtherBranchRows {
        /// Table.
        table: String,
        /// That branch.
        branch: String,
        /// Rows of it.
        rows: u64,
        /// Rows of the snapshot that are not read, since that branch has their partitions.
        unread: u64,
    },
    /// Whether deletion vectors that are not applied name rows could not be found out.
    VectorsNotKnown {
        /// Table.
        table: String,
        /// Why.
        why: String,
    },
    /// Rows that deletion vectors name are read, since the option is off.
    VectorsNotApplied {
        /// Table.
        table: String,
        /// Rows.
        rows: u64,
        /// Whether `rows` is all of them, not the least number.
        exact: bool,
        /// Files.
        files: u64,
    },
    /// Deletion vectors of files that are not there.
    StrayVectors {
        /// Table.
        table: String,
        /// One of those files.
        file: String,
        /// How many more there are.
        more: usize,
    },
    /// The index manifest of a table with deletion vectors has no entry. A writer leaves it so when it took the last vector
    /// away, and a file that was cut behind its head looks alike.
    EmptyIndexManifest {
        /// Table.
        table: String,
        /// The index manifest.
        file: String,
    },
    /// An index file of another type that lists deletion vectors.
    UntypedVectors {
        /// Table.
        table: String,
        /// The index file.
        file: String,
    },
    /// What a list over many leaves out, since it cannot be read.
    LeftOut {
        /// Whether it is a database, not a table.
        database: bool,
        /// Its name.
        name: String,
        /// The error.
        why: String,
    },
    /// A hint of another engine.
    ForeignHint {
        /// The comment it stands in, without its marks.
        hint: String,
    },
    /// An option of a query that no read depends on.
    IdleOption {
        /// The option.
        option: String,
    },
    /// Changes are read of a table that writes no changelog.
    NoChangelog {
        /// Table.
        table: String,
    },
    /// What a history cannot tell of a key.
    HistoryBegins {
        /// Table.
        table: String,
        /// The oldest commit that is kept.
        snapshot: i64,
        /// Its commit time.
        time: String,
    },
    /// Commits whose changes cannot be read.
    CommitsNotRead {
        /// Table.
        table: String,
        /// Those.
        snapshots: Vec<i64>,
    },
    /// Files that may hold a key cannot be read.
    FilesNotRead {
        /// Table.
        table: String,
        /// Some of them.
        files: Vec<String>,
        /// How many others there are.
        more: usize,
        /// Why the first is not.
        why: String,
    },
    /// A table that another branch completes; only its own files were looked at.
    OneBranchOnly {
        /// Table.
        table: String,
        /// Its branch.
        branch: String,
    },
    /// Two states of different schemas are compared.
    SchemaChanged {
        /// Schema of the earlier one.
        before: i64,
        /// Schema of the later one.
        after: i64,
        /// Schema both are read with.
        read_with: i64,
    },
    /// Columns that only one of two compared tables has.
    LoneColumns {
        /// That table.
        table: String,
        /// Whether it is the later side, whose columns are shown; those of the other side are not compared.
        after: bool,
        /// The columns.
        columns: Vec<String>,
    },
    /// Columns that may differ in the order of elements only.
    UnorderedElements {
        /// The columns.
        columns: Vec<String>,
    },
    /// Maps are compared in the order of their entries.
    MapOrder,
    /// A setting chooses what is read, beside the pins shown.
    AlsoChosen {
        /// As `SET` and `RESET` take it.
        name: String,
        /// Its value.
        value: String,
    },
    /// Metadata alone gave the answer.
    FromMetadata {
        /// Data files of which not metadata but an earlier statement, which read their keys, knew enough.
        remembered: u64,
        /// Whether the files were looked for all the same, and found.
        verified: bool,
    },
    /// Metadata gave a part of the answer.
    PartlyFromMetadata {
        /// Data files that were not opened for it.
        unopened: u64,
        /// Data files of the answer.
        files: u64,
        /// Whether the others were looked for all the same, and found.
        verified: bool,
    },
    /// A system table tells of now, though its table is pinned.
    OfNow {
        /// The system table, `database.table$name`.
        table: String,
        /// The snapshot that is pinned.
        pinned: Option<i64>,
    },
    /// What a statement read could not be put into the journal.
    JournalFailed {
        /// Why.
        why: String,
    },
    /// The journal is not whole.
    JournalCut {
        /// Lines that are no reading.
        unread: usize,
        /// Whether older readings are left out.
        cut: bool,
    },
    /// Parts of a table's history that cannot be read.
    PartsUnread {
        /// Table.
        table: String,
        /// They: `delta list of snapshot 7`.
        parts: Vec<String>,
    },
    /// A table is pinned before the checkpoint that was asked for: it made no snapshot there.
    AlignedBefore {
        /// Table.
        table: String,
        /// User.
        user: String,
        /// The identifier that was asked for.
        wanted: String,
        /// The one that was found.
        found: String,
    },
    /// A gate opened by a watermark that several users raise.
    SeveralRaiseWatermark {
        /// Table.
        table: String,
        /// They.
        users: Vec<String>,
    },
    /// Tags or consumers that cannot be read.
    Unreadable {
        /// Table.
        table: String,
        /// `tag` or `consumer`.
        what: &'static str,
        /// Their names.
        names: Vec<String>,
        /// The folder that holds their files.
        folder: String,
    },
    /// A table was read at several states, none of which is pinned.
    SeveralStates {
        /// Table.
        table: String,
        /// The snapshots.
        snapshots: Vec<i64>,
    },
    /// A table of a database that is pinned has no snapshot.
    PinnedEmpty {
        /// Table.
        table: String,
    },
    /// A pinned snapshot will soon be gone.
    ExpiresSoon {
        /// Table.
        table: String,
        /// The snapshot.
        snapshot: i64,
        /// About when; None: at the next commit.
        about: Option<String>,
    },
    /// Rows of files that only hold columns are not counted.
    ColumnRows {
        /// Rows.
        rows: u64,
    },
    /// What is not among the commits that met.
    RejectedCommits {
        /// The table.
        table: String,
        /// Manifest lists of no snapshot that speak of files of their own.
        lists: u64,
    },
    /// A gate over several tables opened at their newest states, since its QUERY is not true at the oldest.
    NewestStates {
        /// The tables.
        tables: Vec<String>,
    },
    /// Rows that have expired may be among the final ones.
    ExpiringRows {
        /// The table.
        table: String,
        /// What `record-level.expire-time` says.
        after: String,
    },
    /// A sentence of who shows the answer, in the reader's language already.
    Own(String),
}

/// Whether files that were not opened are there.
fn existence(verified: bool) -> &'static str {
    match verified {
        true => "all of them were found (lakepin.verify_files)",
        false => "SET lakepin.verify_files = true checks that they exist",
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaleHint { table, hinted, newest } => {
                write!(
                    f,
                    "the LATEST hint of {table} names snapshot {hinted}, which does not exist; read the newest by listing, \
                     {newest}"
                )
            }
            Self::NewestUnreadable { table, torn, read, why } => write!(
                f,
                "snapshot {torn}, the newest of {table}, cannot be read ({why}); what is told here is as of snapshot {read}, \
                 the newest that can be"
            ),
            Self::BranchByOption { branch } => {
                write!(f, "option 'branch' of the table leads to its branch '{branch}'")
            }
            Self::TagOfThatNumber { table, id, held } => write!(
                f,
                "read snapshot {id}; a tag '{id}' exists too and holds snapshot {held}: VERSION AS OF '{id}' or \
                 {table}@tag:{id} reads it"
            ),
            Self::SnapshotOfThatNumber { table, tag, held, id } => write!(
                f,
                "read tag '{tag}', which holds snapshot {held}; snapshot {id} exists too: VERSION AS OF {id} or \
                 {table}@v{id} reads it"
            ),
            Self::TimesNotInOrder { before, before_time, chosen, chosen_time } => write!(
                f,
                "commit times are not in order: snapshot {before}, committed {before_time}, comes before the chosen \
                 snapshot {chosen}, committed {chosen_time}"
            ),
            Self::WatermarkInSeconds { asked, asked_time, found_time, millis } => write!(
                f,
                "watermark {asked} is {asked_time}, decades before {found_time}, the first that is reached: watermarks \
                 are milliseconds, for seconds write {millis}"
            ),
            Self::NoFullCompaction => f.write_str("no full compaction is kept: read the latest snapshot"),
            Self::DefaultValue { option, column } => write!(
                f,
                "option '{option}' is not honoured: a null of column '{column}' stays null, as in today's Paimon"
            ),
            Self::UnreadableFilesFail { option } => {
                write!(f, "option '{option}' is not honoured: a file that cannot be read is an error")
            }
            Self::Hidden { which, files, rows } => {
                write!(f, "{}: {}, {} not read", which.rule(), Plural(*files, "file"), Plural(*rows, "row"))
            }
            Self::BucketOption { table, bucket, buckets, files, rows } => write!(
                f,
                "{table}: option 'scan.bucket' = '{bucket}' reads that bucket alone: {} of {}, {} not read",
                Plural(*files, "file"),
                Plural(*buckets, "other bucket"),
                Plural(*rows, "row")
            ),
            Self::OtherBranchRows { table, branch, rows, unread } => {
                write!(f, "{table}: {} of branch '{branch}', which the snapshot does not count", Plural(*rows, "row"))?;
                match unread {
                    0 => Ok(()),
                    rows => write!(f, "; {} that it counts not read, since '{branch}' has the partition", Plural(*rows, "row")),
                }
            }
            Self::VectorsNotKnown { table, why } => {
                write!(f, "{table}: whether vectors that are not applied name rows is not known: {why}")
            }
            Self::VectorsNotApplied { table, rows, exact, files } => write!(
                f,
                "{table}: {}{} of {} {} deleted by vectors that are not applied, since deletion-vectors.enabled is false \
                 now",
                if *exact { "" } else { "at least " },
                Plural(*rows, "row"),
                Plural(*files, "file"),
                if *rows == 1 { "is" } else { "are" }
            ),
            Self::StrayVectors { table, file, more } => {
                write!(f, "{table}: deletion vectors are listed for files that are not there ({file}")?;
                if *more > 0 {
                    write!(f, " and {more} more")?;
                }
                f.write_str("); if their names are damaged, rows that were deleted are read again")
            }
            Self::EmptyIndexManifest { table, file } => write!(
                f,
                "{table}: index manifest {file} lists no deletion vector; if it was cut, rows that were deleted are read again"
            ),
            Self::UntypedVectors { table, file } => write!(
                f,
                "{table}: index file {file} lists deletion vectors, which are not applied: only those of type \
                 DELETION_VECTORS are"
            ),
            Self::LeftOut { database, name, why } => {
                let what = if *database { "database " } else { "" };
                write!(f, "{what}{name} is left out, it cannot be read: {why}")
            }
            Self::ForeignHint { hint } => write!(f, "hint /*{hint}*/ has no meaning here and was ignored"),
            Self::IdleOption { option } => write!(f, "option {option} has no effect on what is read"),
            Self::NoChangelog { table } => write!(
                f,
                "{table} writes no changelog (changelog-producer is none); paimon_delta reads the rows its commits added"
            ),
            Self::HistoryBegins { table, snapshot, time } => write!(
                f,
                "the history of {table} begins with snapshot {snapshot}, committed {time}: versions that were compacted \
                 away before are gone; versions merged within one flush were never rows"
            ),
            Self::CommitsNotRead { table, snapshots } => {
                let ids: Vec<String> = snapshots.iter().map(ToString::to_string).collect();
                write!(f, "what snapshots {} of {table} changed cannot be read: versions may be missing", ids.join(", "))
            }
            Self::FilesNotRead { table, files, more, why } => {
                let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
                write!(
                    f,
                    "files of {table} that may hold the key cannot be read, and their versions are missing: {}{more} ({why})",
                    files.join(", ")
                )
            }
            Self::OneBranchOnly { table, branch } => write!(
                f,
                "{table} is completed by another branch, which was not looked at: this is the history of branch '{branch}'"
            ),
            Self::SchemaChanged { before, after, read_with } => write!(
                f,
                "the schema changed between the two snapshots ({before} and {after}): both sides are read with schema \
                 {read_with}"
            ),
            Self::LoneColumns { table, after, columns } => {
                let what = if *after { "are NULL on the other side" } else { "are not compared" };
                write!(f, "columns of {table} only, which {what}: {}", columns.join(", "))
            }
            Self::UnorderedElements { columns } => write!(
                f,
                "the order of elements is no part of what collect and nested_update keep: these columns are compared \
                 without it: {}",
                columns.join(", ")
            ),
            Self::MapOrder => f.write_str(
                "maps are grouped and compared by their entries in order here, so one map written in two orders counts as \
                 two; paimon_diff compares them as sets",
            ),
            Self::AlsoChosen { name, value } => {
                let (name, value) = (name.replace('\'', "''"), value.replace('\'', "''"));
                write!(f, "SET '{name}' = '{value}' chooses too; RESET '{name}' ends that")
            }
            Self::FromMetadata { remembered: 0, verified } => {
                write!(f, "answered from metadata, no data file was opened; {}", existence(*verified))
            }
            Self::FromMetadata { remembered, verified } => write!(
                f,
                "answered from metadata and from the live rows of {remembered} data files, which earlier statements found; \
                 no data file was opened; {}",
                existence(*verified)
            ),
            Self::PartlyFromMetadata { unopened, files, verified } => write!(
                f,
                "answered in part from metadata, {unopened} of {files} data files were not opened; {}",
                existence(*verified)
            ),
            Self::OfNow { table, pinned: Some(id) } => write!(f, "{table} is of now, not of the pinned snapshot {id}"),
            Self::OfNow { table, pinned: None } => write!(f, "{table} is of now, not of the pinned state"),
            Self::AlignedBefore { table, user, wanted, found } => {
                write!(f, "{table}: no snapshot of '{user}' {wanted} is kept, pinned is the one of {found} before it")
            }
            Self::SeveralRaiseWatermark { table, users } => write!(
                f,
                "{table}: its watermark is raised by {}: the fastest hides the others, so it proves nothing of them; wait \
                 for their commits too",
                users.join(", ")
            ),
            Self::JournalFailed { why } => write!(f, "what statements read is not recorded: {why}"),
            Self::JournalCut { unread, cut } => {
                let older = if *cut { ", and older readings are left out" } else { "" };
                write!(f, "the journal is not whole: {unread} lines are no reading{older}")
            }
            Self::PartsUnread { table, parts } => {
                write!(f, "{table}: cannot be read, so what they say is not here: {}", parts.join(", "))
            }
            Self::Unreadable { table, what, names, folder } => {
                let files: Vec<String> = names.iter().map(|name| format!("{folder}/{what}-{name}")).collect();
                let files = files.join(", ");
                let way_out = match *what {
                    "consumer" => "its reader writes it anew, or the file is removed",
                    _ => "make it anew, or remove the file",
                };
                write!(f, "{table}: {}: {files}; {way_out}", cannot_be_read(what, names))
            }
            Self::SeveralStates { table, snapshots } => {
                let ids: Vec<String> = snapshots.iter().map(i64::to_string).collect();
                write!(
                    f,
                    "{table} was read at several states (snapshots {}) and is not pinned; PIN TABLE says which",
                    ids.join(", ")
                )
            }
            Self::PinnedEmpty { table } => {
                write!(f, "{table} has no snapshot, so none of the past either: it is pinned as empty")
            }
            Self::ExpiresSoon { table, snapshot, about } => {
                write!(f, "snapshot {snapshot} of {table} may be expired ")?;
                match about {
                    Some(time) => write!(f, "about {time}")?,
                    None => f.write_str("at the next commit")?,
                }
                f.write_str(": make a tag of it where tables are written, or pin a later one")
            }
            Self::ColumnRows { rows } => write!(
                f,
                "{rows} rows of files that only hold columns of the rows of other files are not counted; the snapshot \
                 counts them"
            ),
            Self::RejectedCommits { table, lists } => {
                f.write_str("commits that were rejected for good are in no snapshot, and not among these")?;
                match lists {
                    0 => write!(f, "; files that they may have left: {table}$unreferenced_files"),
                    _ => write!(f, ": {lists} manifest lists of no snapshot may be of them, see {table}$unreferenced_files"),
                }
            }
            Self::NewestStates { tables } => write!(
                f,
                "the QUERY is not true at the oldest states that satisfy the rest, so the newest of {} are taken: the same \
                 gate may give later ones another time",
                tables.join(", ")
            ),
            Self::ExpiringRows { table, after } => write!(
                f,
                "record-level.expire-time of {table} is {after}: expired records may still be counted, until a compaction \
                 drops them"
            ),
            Self::Own(text) => f.write_str(text),
        }
    }
}

/// `tags 'a', 'b' cannot be read`
pub(crate) fn cannot_be_read(what: &str, names: &[String]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{what}{plural} '{}' cannot be read", names.join("', '"))
}

/// `1 file`, `2 files`.
struct Plural(u64, &'static str);

impl fmt::Display for Plural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}
