//! `COPY … TO` a file of this machine writes beside it: what stood under the name stays until all rows are written, and
//! stays for good when they never are.
//!
//! ```text
//! x.csv                      old ──────────────────────────────▶ replaced at once, or left
//! .x.csv.4711-0.part              rows ──▶ whole ──▶ renamed     or removed
//! ```

use std::error::Error as StdError;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};
use parking_lot::Mutex;
use url::Url;

use crate::error::{Error, Result};

/// Files and folders that are not whole, for an end in haste.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes what statements were writing: nobody will finish it.
#[cfg(feature = "cli")]
pub(crate) fn leave_unfinished() {
    let unfinished = std::mem::take(&mut *UNFINISHED.lock());
    unfinished.iter().for_each(|aside| remove(aside));
}

const FULL: &str = "no space left on the device";

fn is_full(error: &(dyn StdError + 'static)) -> bool {
    let full = |e: &io::Error| matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    error.downcast_ref::<io::Error>().is_some_and(full)
}

/// Where a COPY writes before its target.
#[derive(Debug)]
pub(super) struct Aside {
    aside: PathBuf,
    target: PathBuf,
    /// Whether the target is a folder that gets files.
    folder: bool,
}

/// A plan that writes aside, for one that writes files of this machine; any other as it is.
///
/// # Errors
/// A folder where a file is to be.
pub(super) fn written_aside(plan: &LogicalPlan) -> Result<(LogicalPlan, Option<Aside>)> {
    let as_it_is = || Ok((plan.clone(), None));
    match plan {
        LogicalPlan::Copy(copy) => {
            let Some((copy, aside)) = beside(copy)? else { return as_it_is() };
            Ok((LogicalPlan::Copy(copy), Some(aside)))
        }
        LogicalPlan::Analyze(analyze) => {
            let (input, aside) = written_aside(&analyze.input)?;
            let analyze = datafusion::logical_expr::Analyze { input: input.into(), ..analyze.clone() };
            Ok((LogicalPlan::Analyze(analyze), aside))
        }
        _ => as_it_is(),
    }
}

fn beside(copy: &CopyTo) -> Result<Option<(CopyTo, Aside)>> {
    /// Targets of this process so far.
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let parsed = ListingTableUrl::parse(&copy.output_url)?;
    let local = Url::parse(parsed.as_str()).ok().filter(|url| url.scheme() == "file");
    let Some(target) = local.and_then(|url| url.to_file_path().ok()) else { return Ok(None) };
    // a link stays a link: what it names is replaced
    let target = fs::canonicalize(&target).unwrap_or(target);
    let folder = match copy.options.get("single_file_output").map(|option| option.trim()) {
        Some("true") => false,
        Some("false") => true,
        _ => parsed.is_collection() || target.extension().is_none() || !copy.partition_by.is_empty(),
    };
    let found = fs::metadata(&target).ok();
    if !folder && found.as_ref().is_some_and(fs::Metadata::is_dir) {
        return Err(Error::invalid("the output file is a folder")
            .with_code("Output")
            .with_context("file", target.display())
            .with_hint("name a file in it, or end the name with / to write files into it"));
    }
    // a device or a pipe is written in place, and what cannot be a folder is for the engine to refuse
    let in_place = found.is_some_and(|found| if folder { !found.is_dir() } else { !found.is_file() });
    let Some(name) = target.file_name().filter(|_| !in_place) else { return Ok(None) };
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let aside = target.with_file_name(format!(".{}.{}-{number}.part", name.to_string_lossy(), std::process::id()));
    probe(&aside, folder).map_err(|error| unwritten(&error.to_string(), &target, folder).with_source(error))?;
    let url = if folder { Url::from_directory_path(&aside) } else { Url::from_file_path(&aside) };
    let Ok(url) = url else { return Ok(None) };
    UNFINISHED.lock().push(aside.clone());
    Ok(Some((CopyTo { output_url: url.to_string(), ..copy.clone() }, Aside { aside, target, folder })))
}

/// The rows of a COPY, given out once the target is whole.
pub(super) fn finishing(rows: SendableRecordBatchStream, aside: Aside) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let finished = async move {
        // dropped before the aside, which then nobody writes any more
        let batches: Vec<RecordBatch> = rows.try_collect().await.map_err(|error| aside.told(error))?;
        aside.finish().map_err(|error| DataFusionError::from(aside.failed(&error.to_string()).with_source(error)))?;
        Ok::<_, DataFusionError>(stream::iter(batches.into_iter().map(Ok)))
    };
    Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(finished).try_flatten()))
}

impl Aside {
    /// Puts what was written where it was meant.
    fn finish(&self) -> io::Result<()> {
        if !self.folder {
            if let Ok(old) = fs::metadata(&self.target) {
                fs::set_permissions(&self.aside, old.permissions())?;
            }
            fs::File::open(&self.aside)?.sync_all()?;
            return fs::rename(&self.aside, &self.target);
        }
        match (self.aside.exists(), self.target.exists()) {
            // no row, no file
            (false, _) => Ok(()),
            (true, false) => fs::rename(&self.aside, &self.target),
            (true, true) => moved(&self.aside, &self.target),
        }
    }

    /// What the engine says of writing, in the words of the statement.
    fn told(&self, error: DataFusionError) -> DataFusionError {
        let mut why = None;
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
        while let (Some(one), None) = (cause, &why) {
            let text = one.to_string();
            if is_full(one) || text.contains("No space left on device") {
                why = Some(FULL.to_string());
            } else if one.is::<object_store::Error>() {
                why = Some(text.replace(&*self.aside.to_string_lossy(), &self.target.to_string_lossy()));
            } else if text.contains("riting to ObjectStore") || text.contains("while finalizing writes") {
                // the engine keeps the cause for itself, and has removed what it wrote
                let full = write_again(&self.aside).is_err_and(|e| is_full(&e));
                why = Some(if full { FULL } else { "the file system did not take all of it" }.to_string());
            }
            cause = one.source();
        }
        match why {
            Some(why) => self.failed(&why).with_source(error).into(),
            None => error,
        }
    }

    fn failed(&self, why: &str) -> Error {
        unwritten(why, &self.target, self.folder)
    }
}

fn unwritten(why: &str, target: &Path, folder: bool) -> Error {
    Error::unavailable(format!("cannot write the result: {why}"))
        .with_code("Output")
        .with_context(if folder { "folder" } else { "file" }, target.display())
        .with_hint(match why {
            FULL => "make room or choose another target; what stood there before is as it was",
            _ => "what stood there before is as it was",
        })
}

/// Makes and removes what is to be written: where it cannot be made, the store would try for ever.
fn probe(aside: &Path, folder: bool) -> io::Result<()> {
    if let Some(parent) = aside.parent() {
        fs::create_dir_all(parent)?;
    }
    if folder {
        fs::create_dir(aside)?;
        return fs::remove_dir(aside);
    }
    fs::File::create_new(aside)?;
    fs::remove_file(aside)
}

impl Drop for Aside {
    fn drop(&mut self) {
        UNFINISHED.lock().retain(|other| *other != self.aside);
        remove(&self.aside);
    }
}

/// Writes more than the engine does at once, where the device has room for it.
fn write_again(path: &Path) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    for _ in 0..WRITTEN_AT_ONCE.div_ceil(PIECE) {
        file.write_all(&[0; PIECE])?;
    }
    file.sync_all()
}

/// Bytes that the engine holds back before it writes them as a part, and some more.
const WRITTEN_AT_ONCE: usize = 12 << 20;

const PIECE: usize = 1 << 16;

/// Moves every file of a folder into another.
fn moved(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            moved(&entry.path(), &target)?;
        } else {
            fs::rename(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Removes what was written, and what the store wrote on the way to it (`….part#1`).
fn remove(aside: &Path) {
    let _ = fs::remove_file(aside);
    let _ = fs::remove_dir_all(aside);
    let (Some(folder), Some(name)) = (aside.parent(), aside.file_name()) else { return };
    let staged = format!("{}#", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&staged) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_known_for_one() {
        assert!(is_full(&write_again(Path::new("/dev/full")).unwrap_err()));
        let folder = tempfile::tempdir().unwrap();
        write_again(&folder.path().join("x")).unwrap();
    }

    fn aside() -> Aside {
        Aside { aside: "/x/.a.csv.1-0.part".into(), target: "/x/a.csv".into(), folder: false }
    }

    #[test]
    fn failures_of_writing_name_the_file_and_others_stay() {
        let full =
            DataFusionError::Execution("Error writing to object store: No space left on device (os error 28)".into());
        let full_too = DataFusionError::from(io::Error::from(io::ErrorKind::StorageFull));
        for error in [full, full_too] {
            let told = Error::from_datafusion(aside().told(error));
            assert_eq!(told.message(), "cannot write the result: no space left on the device");
            assert_eq!((told.code(), told.context()[0].1.as_str()), ("Output", "/x/a.csv"));
        }
        let denied = object_store::Error::PermissionDenied {
            path: "/x/.a.csv.1-0.part".into(),
            source: io::Error::from(io::ErrorKind::PermissionDenied).into(),
        };
        let told = Error::from_datafusion(aside().told(DataFusionError::ObjectStore(Box::new(denied))));
        assert!(told.code() == "Output" && !told.message().contains(".part"), "{told:?}");
        for hidden in ["during writing to ObjectStore and failed to …", "while finalizing writes! Partial results …"]
        {
            let hidden = DataFusionError::Internal(format!("Error encountered {hidden}"));
            let told = Error::from_datafusion(aside().told(hidden));
            assert!(told.code() == "Output" && told.message().ends_with("did not take all of it"), "{told:?}");
            assert_eq!(told.context()[0].1, "/x/a.csv");
        }
        let other = DataFusionError::Execution("Divide by zero".into());
        assert!(aside().told(other).to_string().contains("Divide by zero"));
    }
}
