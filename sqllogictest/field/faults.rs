//! Every file of a table broken in every way: the answer is an error that names the file, or the right rows.
//!
//! The format has checksums in few places. What a changed bit may do is therefore told apart: damage that can be seen
//! must be seen; a changed bit in a JSON document, or in a page without checksum, may give another valid document or
//! value, which is counted and printed, but never a panic, a hang or a fault of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::{Error, ErrorKind};

use super::edit::{self, files_below};
use super::kit::{Answer, Done, Lake, OrText, ask, check, config, full_scale};
use crate::harness::{Outcome, Test};
use crate::random::Random;

/// Golden tables of each kind of file, and what makes a read touch the kinds a plain one does not.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("java-0.9", "manifest_codec_null", &[]),
    ("java-0.9", "manifest_orc", &[]),
    ("java-0.9", "index_bloom_file", &["SELECT * FROM t WHERE s = 's5'"]),
    ("java-0.9", "types_append_avro", &[]),
    ("python-2.1", "append_dv", &[]),
];

/// More of them, at full scale.
const MORE_TABLES: &[(&str, &str, &[&str])] = &[
    ("java-0.9", "manifest_parquet", &[]),
    ("java-0.9", "manifest_codec_deflate", &[]),
    ("java-0.9", "manifest_codec_snappy", &[]),
    ("java-0.9", "types_append_orc", &[]),
    ("java-0.9", "types_append_parquet", &[]),
    ("java-0.9", "types_pk_orc", &[]),
    ("java-0.9", "types_pk_avro", &[]),
    ("java-0.9", "index_bitmap_file", &[]),
    ("java-0.9", "index_bloom_embedded", &["SELECT * FROM t WHERE s = 's5'"]),
    ("java-0.9", "pk_dv", &[]),
    ("java-0.9", "evo_casts", &[]),
    ("java-0.9", "fallback_branch", &["SELECT * FROM t$branch_fb"]),
    ("java-0.9", "history", &["SELECT * FROM t VERSION AS OF 't1'", "SELECT * FROM t$tags"]),
    ("java-0.9", "pk_changelog_decoupled", &["SELECT * FROM t$audit_log"]),
    ("java-0.9", "table_statistics", &["SELECT * FROM t$statistics"]),
    ("java-0.9", "consumers", &["SELECT * FROM t$consumers"]),
    ("java-0.9", "pk_dynamic_bucket", &[]),
    ("python-2.1", "append_manifest_sidecar", &[]),
    ("python-2.1", "append_data_file_dir", &[]),
    ("python-2.1", "pk_postpone", &[]),
    ("python-2.1", "append_row_tracking", &[]),
];

pub fn register(tests: &mut Vec<Test>) {
    let more = if full_scale() { MORE_TABLES } else { &[] };
    for (side, table, questions) in TABLES.iter().chain(more) {
        tests.push(Test::new_async(format!("faults::{table}"), move || every_file(side, table, questions)));
    }
}

/// What every table is asked.
const ALL: &str = "SELECT * FROM t";

/// No statement takes longer, whatever is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// A copy of a golden table as `d.t`.
pub fn copy(lake: &Lake, side: &str, table: &str) -> Result<PathBuf, String> {
    let from = lakepin::testing::golden::root().text()?.join(side).join("warehouse/golden.db").join(table);
    let to = lake.path().join("d.db/t");
    for file in files_below(&from) {
        let copy = to.join(file.strip_prefix(&from).text()?);
        fs::create_dir_all(copy.parent().ok_or("a file in no folder")?).text()?;
        fs::copy(&file, &copy).text()?;
    }
    Ok(to)
}

/// What kind of file this is: which faults show, and how the document is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `LATEST`, `EARLIEST`.
    Hint,
    Snapshot,
    Schema,
    /// Tag, consumer, changelog, statistics.
    Document,
    /// Manifest or list.
    Manifest,
    IndexManifest,
    /// Deletion vectors or hashes.
    Index,
    FileIndex,
    Data,
}

impl Kind {
    fn of(path: &Path) -> Self {
        let name = name(path);
        let folder = path.parent().map(name_of).unwrap_or_default();
        match folder.as_str() {
            _ if name == "LATEST" || name == "EARLIEST" => Self::Hint,
            "snapshot" => Self::Snapshot,
            "schema" => Self::Schema,
            "tag" | "consumer" | "changelog" | "statistics" => Self::Document,
            "manifest" if name.starts_with("index-") => Self::IndexManifest,
            "manifest" => Self::Manifest,
            "index" => Self::Index,
            _ if name.ends_with(".index") => Self::FileIndex,
            _ => Self::Data,
        }
    }

    fn is_json(self) -> bool {
        matches!(self, Self::Snapshot | Self::Schema | Self::Document)
    }
}

fn name(path: &Path) -> String {
    name_of(path)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// One way to break a file.
enum Fault {
    Missing,
    Directory,
    /// The file with a hole behind it, ten gigabytes long.
    Huge,
    /// Nothing but a hole.
    HugeHole,
    /// Other bytes; whether the damage must be seen.
    Bytes(Vec<u8>, bool),
}

impl Fault {
    fn apply(&self, path: &Path) -> Done {
        const HUGE: u64 = 10 << 30;
        match self {
            Self::Missing => fs::remove_file(path).text(),
            Self::Directory => fs::remove_file(path).and_then(|()| fs::create_dir(path)).text(),
            Self::Huge => fs::OpenOptions::new().write(true).open(path).and_then(|f| f.set_len(HUGE)).text(),
            Self::HugeHole => fs::File::create(path).and_then(|f| f.set_len(HUGE)).text(),
            Self::Bytes(bytes, _) => fs::write(path, bytes).text(),
        }
    }

    fn undo(path: &Path, whole: &[u8]) -> Done {
        if path.is_dir() {
            fs::remove_dir(path).text()?;
        }
        fs::write(path, whole).text()
    }
}

/// The faults of one file.
fn faults(whole: &[u8], kind: Kind, other: &[u8], random: &mut Random) -> Vec<(String, Fault)> {
    let mut all: Vec<(String, Fault)> = vec![
        ("missing".into(), Fault::Missing),
        ("a folder".into(), Fault::Directory),
        ("huge".into(), Fault::Huge),
        ("a hole of ten gigabytes".into(), Fault::HugeHole),
    ];
    let mut seen = |how: &str, bytes: Vec<u8>| all.push((how.to_string(), Fault::Bytes(bytes, true)));
    seen("empty", Vec::new());
    seen("zeros", vec![0; whole.len()]);
    seen("a web page", b"<html><body>503 Slow Down</body></html>".to_vec());
    seen("a file of another kind", other.to_vec());
    let mut cuts = vec![whole.len() / 2, whole.len().saturating_sub(1)];
    if full_scale() {
        cuts.extend([1, 4, 16, whole.len() / 4, whole.len() * 3 / 4, whole.len().saturating_sub(8)]);
        cuts.extend((0..4).map(|_| random.below(whole.len().max(1) as u64) as usize));
    }
    for cut in cuts.into_iter().filter(|cut| *cut < whole.len()) {
        seen(&format!("cut after {cut} bytes"), whole[..cut].to_vec());
    }
    if kind.is_json() {
        let text = String::from_utf8_lossy(whole);
        seen("with a byte order mark", [b"\xef\xbb\xbf", whole].concat());
        seen("in UTF-16", text.encode_utf16().flat_map(u16::to_le_bytes).collect());
        seen("with a zero behind", [whole, b"\0"].concat());
        seen("twice", [whole, whole].concat());
        seen("without its first brace", whole[1..].to_vec());
        seen("of another type", b"[1, 2, 3]".to_vec());
        seen("null", b"null".to_vec());
        let first = text.find('{').map_or(0, |at| at + 1);
        for (how, member) in [
            ("huge number", "\"version\": 1e400,"),
            ("negative number", "\"version\": -3,"),
            ("newer version", "\"version\": 99,"),
        ] {
            // a key given twice counts as its last value: this one stands behind the brace, so make it the only one
            let without = text.replacen("\"version\"", "\"v\"", 1);
            let (head, tail) = without.split_at(first.min(without.len()));
            if kind != Kind::Document {
                seen(how, format!("{head}{member}{tail}").into_bytes());
            }
        }
    }
    if let Some(cut) = end_of_header(whole) {
        // sizes and counts tell of lists, manifests and data files; nobody tells of an index manifest, which may be empty
        let told = kind != Kind::IndexManifest;
        all.push((format!("cut after its header of {cut} bytes"), Fault::Bytes(whole[..cut].to_vec(), told)));
    }
    let flips = if full_scale() { 40 } else { 4 };
    for _ in 0..flips {
        let mut bytes = whole.to_vec();
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let bit = random.below(8);
        bytes[at] ^= 1 << bit;
        all.push((format!("bit {bit} of byte {at} changed"), Fault::Bytes(bytes, false)));
    }
    all
}

/// Where the header of an Avro file ends: cut there, it is a whole file without rows.
fn end_of_header(bytes: &[u8]) -> Option<usize> {
    let reader = apache_avro::Reader::new(bytes).ok()?;
    drop(reader);
    // the mark stands behind the header and at the very end
    let mark = bytes.get(bytes.len().checked_sub(16)?..)?;
    let at = bytes.windows(16).position(|window| window == mark)?;
    (at + 16 < bytes.len()).then_some(at + 16)
}

/// A statement with caches of its own.
async fn fresh(lake: &Lake, sql: &str) -> Result<Answer, Error> {
    let warehouse = Warehouse::open(&lake.path().to_string_lossy(), &Default::default()).await?;
    let session = Session::new(&warehouse, SessionConfig { target_partitions: Some(1), ..config() }).await?;
    ask(&session, sql).await
}

#[derive(Default)]
struct Count {
    faults: usize,
    named: usize,
    right: usize,
    unseen: usize,
    older: usize,
    slowest: Duration,
}

async fn every_file(side: &str, table: &str, questions: &[&str]) -> Result<Outcome, String> {
    let lake = Lake::new()?;
    let root = copy(&lake, side, table)?;
    let mut statements = vec![ALL];
    statements.extend(questions);
    let mut right = Vec::new();
    for sql in &statements {
        right.push(fresh(&lake, sql).await.map_err(|e| format!("{sql}: {e:?}"))?);
    }
    let mut random = Random::new(7);
    let mut count = Count::default();
    let files = files_below(&root);
    for path in &files {
        let kind = Kind::of(path);
        let whole = fs::read(path).text()?;
        let other = files.iter().find(|other| Kind::of(other) != kind && Kind::of(other) != Kind::Hint);
        let other = fs::read(other.ok_or("one kind of file only")?).text()?;
        for (how, fault) in faults(&whole, kind, &other, &mut random) {
            for (sql, right) in statements.iter().zip(&right) {
                fault.apply(path)?;
                let began = Instant::now();
                let outcome = tokio::time::timeout(PATIENCE, fresh(&lake, sql)).await;
                count.slowest = count.slowest.max(began.elapsed());
                Fault::undo(path, &whole)?;
                let what = format!("{} {how}: {sql}", path.strip_prefix(&root).unwrap_or(path).display());
                let outcome = outcome.map_err(|_| format!("{what}: no answer within {PATIENCE:?}"))?;
                count.faults += 1;
                judge(outcome, right, path, (kind, *sql != ALL), &fault, &mut count)
                    .map_err(|m| format!("{what}: {m}"))?;
            }
        }
    }
    for (sql, right) in statements.iter().zip(&right) {
        let again = fresh(&lake, sql).await.text()?;
        check(again.sorted() == right.sorted(), format!("{sql}: not whole again"))?;
    }
    let peak = peak_memory();
    check(peak.is_none_or(|peak| peak < 4 << 30), format!("{peak:?} bytes of memory were used"))?;
    Ok(Outcome::Passed(format!(
        "{} files, {} faults: {} errors that name the file, {} right, {} with the state before, {} changed bits nobody \
         can see; slowest {:.1} s",
        files.len(),
        count.faults,
        count.named,
        count.right,
        count.older,
        count.unseen,
        count.slowest.as_secs_f64()
    )))
}

fn judge(
    outcome: Result<Answer, Error>,
    right: &Answer,
    path: &Path,
    (kind, filtered): (Kind, bool),
    fault: &Fault,
    count: &mut Count,
) -> Done {
    let must_be_seen = !matches!(fault, Fault::Bytes(_, false));
    match outcome {
        Err(error) => {
            let ours = error.kind() == ErrorKind::Internal;
            check(!ours, format!("a fault of ours: {error:?}"))?;
            // a changed bit may name another file, column or value, which is then the one not found; without any schema
            // the folder is no table
            let tag = name(path).strip_prefix("tag-").map(|tag| format!("tag '{tag}'"));
            // a tag without its file is no tag
            let no_tag = error.code() == "TagNotFound" && tag.is_some_and(|tag| error.message().contains(&tag));
            let named = error.to_string().contains(&name(path)) || error.code() == "TableNotFound" || no_tag;
            check(!must_be_seen || named, format!("not named: {error:?}"))?;
            check(error.hint().is_some() || !must_be_seen, format!("no way out: {error:?}"))?;
            count.named += 1;
            Ok(())
        }
        Ok(answer) if answer.sorted() == right.sorted() && answer.schema == right.schema => {
            count.right += 1;
            Ok(())
        }
        // the newest snapshot, or a schema newer than it, is gone, as expiry, rollback and repair leave it: the one before
        // is the newest
        Ok(answer)
            if matches!(kind, Kind::Snapshot | Kind::Schema | Kind::Document)
                && matches!(fault, Fault::Missing | Fault::Directory) =>
        {
            let same_snapshot = || {
                let id = |answer: &Answer| answer.pins.first().and_then(|pin| pin.snapshot_id);
                id(&answer) == id(right)
            };
            check(kind != Kind::Schema || !written_with(path)?, "an older schema for the one of the snapshot")?;
            check(kind != Kind::Snapshot || !same_snapshot(), "the same snapshot with other rows")?;
            check(kind != Kind::Snapshot || answer.notice_says(&["LATEST"]), "the hint that was ahead is not told")?;
            count.older += 1;
            Ok(())
        }
        // cut behind its head it is a whole file without entries, as writers leave one too
        Ok(answer) if answer.notice_says(&["lists no deletion vector", &name(path)]) => {
            count.named += 1;
            Ok(())
        }
        // a list of documents has the one that cannot be read by its name, and says so
        Ok(answer)
            if kind == Kind::Document
                && answer.count() == right.count()
                && answer.notice_says(&["cannot be read", name(path).split_once('-').map_or("", |(_, own)| own)]) =>
        {
            count.named += 1;
            Ok(())
        }
        Ok(answer) => {
            check(!must_be_seen, format!("{} rows of {}, nothing said", answer.count(), right.count()))?;
            // documents and file indexes have no checksum: another one may be as valid, as may another bound in a manifest
            // by which a filter drops a file
            let unguarded = matches!(kind, Kind::Snapshot | Kind::Schema | Kind::Document | Kind::FileIndex)
                || (filtered && kind == Kind::Manifest);
            check(
                unguarded || answer.count() >= right.count(),
                format!("{} rows of {}, nothing said", answer.count(), right.count()),
            )?;
            count.unseen += 1;
            Ok(())
        }
    }
}

/// Whether the newest snapshot beside a schema file was written with that schema, or with a newer one.
fn written_with(schema: &Path) -> Result<bool, String> {
    let root = schema.parent().and_then(Path::parent).ok_or("a schema in no table")?;
    let number = |path: &Path, prefix: &str| name(path).strip_prefix(prefix)?.parse::<i64>().ok();
    let snapshots = files_below(&root.join("snapshot"));
    let Some(newest) = snapshots.iter().filter_map(|path| number(path, "snapshot-")).max() else { return Ok(false) };
    let snapshot = edit::snapshot(root, newest)?;
    Ok(number(schema, "schema-").is_some_and(|own| own <= snapshot.schema_id.0))
}

/// The most memory this process had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kb| kb << 10)
}
