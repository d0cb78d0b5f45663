//! Where results go other than the screen: a file that appears under its name when it is whole, or the standard input
//! of a program.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::render::Format;
use crate::error::{Error, Result};
use crate::sql::Warehouse;

/// Files that are not whole, for an end in haste.
static UNFINISHED: Mutex<Vec<Aside>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<Aside>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what was being written aside, or gives it its name where parts are wanted: nobody will finish it.
pub fn leave_unfinished() {
    crate::sql::leave_unfinished();
    unfinished().drain(..).for_each(|aside| aside.leave());
}

/// A file under a name of its own until it is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Aside {
    aside: PathBuf,
    path: PathBuf,
    keep_partial: bool,
}

impl Aside {
    fn leave(&self) {
        let _ = if self.keep_partial {
            std::fs::rename(&self.aside, &self.path)
        } else {
            std::fs::remove_file(&self.aside)
        };
    }
}

/// A file or a program that takes results.
#[derive(Debug)]
pub struct Output {
    /// As it was given.
    name: String,
    /// Whether a result that is not whole stays.
    keep_partial: bool,
    target: Target,
    /// Results written so far, those that failed left out.
    results: u64,
    /// Whether a statement failed while results went here.
    failed: bool,
}

#[derive(Debug)]
enum Target {
    /// None: a device or named pipe, written in place. `whole`: bytes of the results that ended well.
    File {
        writer: BufWriter<File>,
        aside: Option<Aside>,
        whole: u64,
    },
    Program {
        stdin: Option<BufWriter<ChildStdin>>,
        child: Child,
    },
}

impl Output {
    /// Opens `file` or `|command`, a file not in the warehouse. A file under that name is not touched yet.
    pub fn open(target: &str, keep_partial: bool, warehouse: &Warehouse) -> Result<Self> {
        if !target.starts_with('|') {
            warehouse.check_outside("the output", target)?;
        }
        Self::start(target, keep_partial)
    }

    /// Opens a file, whatever its name begins with.
    pub fn of_file(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        Ok(Self { name, keep_partial: false, target: file(path, false)?, results: 0, failed: false })
    }

    /// Refuses to have a file in a warehouse; what a program does is the user's own affair.
    pub fn check_outside(&self, warehouse: &Warehouse) -> Result<()> {
        if self.is_program() { Ok(()) } else { warehouse.check_outside("the output", &self.name) }
    }

    fn start(target: &str, keep_partial: bool) -> Result<Self> {
        let target_kind = match target.strip_prefix('|') {
            Some(command) => program(command.trim())?,
            None => file(Path::new(target), keep_partial)?,
        };
        Ok(Self { name: target.to_string(), keep_partial, target: target_kind, results: 0, failed: false })
    }

    /// The file or `|command`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format its name says, when it is a file.
    pub fn format(&self) -> Option<Format> {
        if self.is_program() { None } else { Format::of_file(&self.name) }
    }

    /// Whether it is a program.
    pub fn is_program(&self) -> bool {
        matches!(self.target, Target::Program { .. })
    }

    /// Whether a result that is not whole stays, and whether that can be chosen: not where bytes are gone at once.
    pub fn keeps_partial(&self) -> Option<bool> {
        matches!(self.target, Target::File { aside: Some(_), .. }).then_some(self.keep_partial)
    }

    /// Results that ended well.
    pub fn results(&self) -> u64 {
        self.results
    }

    /// A statement failed, perhaps before it had a result.
    pub fn note_failure(&mut self) {
        self.failed = true;
    }

    /// Whether nothing is to be kept: there was no result but an error. An empty file would say that there are no rows.
    pub fn holds_nothing(&self) -> bool {
        self.failed && self.results == 0 && self.keeps_partial() == Some(false)
    }

    /// A result ended. One that is not whole leaves the file again, where that can be.
    pub fn end_result(&mut self, good: bool) -> Result<()> {
        self.results += u64::from(good);
        self.failed |= !good;
        let (writer, aside, whole) = match &mut self.target {
            Target::File { writer, aside, whole } => (writer, aside, whole),
            // who reads them need not wait for the next result
            Target::Program { stdin, .. } => {
                let flushed = stdin.as_mut().map_or(Ok(()), Write::flush).or_else(enough);
                return flushed.map_err(|e| self.error(e));
            }
        };
        let ended = match (good || self.keep_partial, aside.is_some()) {
            (true, true) => writer.flush().and_then(|()| writer.stream_position()).map(|end| *whole = end),
            (false, true) => take_back(writer, *whole),
            (true, false) => writer.flush(),
            (false, false) => forget(writer),
        };
        ended.map_err(|e| self.error(e))
    }

    /// A line that is no result: it is there at once, and stays when the result behind it fails.
    pub fn line(&mut self, text: &str) -> Result<()> {
        let written = writeln!(self, "{text}").and_then(|()| self.flush());
        let written = match &mut self.target {
            Target::File { writer, aside: Some(_), whole } => {
                written.and_then(|()| writer.stream_position()).map(|end| *whole = end)
            }
            Target::File { aside: None, .. } => written,
            Target::Program { .. } => written.or_else(enough),
        };
        written.map_err(|e| self.error(e))
    }

    /// No more results follow: the file gets its name, the program the end of its input.
    pub fn close(mut self) -> Result<()> {
        let failed = |e: io::Error, name: &str| {
            Error::unavailable(format!("cannot finish the output file: {e}"))
                .with_code("OutputFile")
                .with_context("file", name)
        };
        match &mut self.target {
            Target::File { writer, aside, .. } => {
                writer.flush().map_err(|e| failed(e, &self.name))?;
                if let Some(known) = aside.take() {
                    let kept = writer.get_ref().sync_all().and_then(|()| std::fs::rename(&known.aside, &known.path));
                    unfinished().retain(|other| *other != known);
                    if let Err(e) = kept {
                        known.leave();
                        return Err(failed(e, &self.name));
                    }
                }
                Ok(())
            }
            Target::Program { stdin, child } => {
                let flushed = stdin.take().map_or(Ok(()), |mut stdin| stdin.flush()).or_else(enough);
                let status = child.wait().map_err(|e| failed(e, &self.name))?;
                if !status.success() {
                    return Err(Error::unavailable(format!("the program ended with {status}"))
                        .with_code("OutputProgram")
                        .with_context("program", &self.name));
                }
                flushed.map_err(|e| failed(e, &self.name))
            }
        }
    }

    /// The error of writing to it.
    pub fn error(&self, error: io::Error) -> Error {
        let what = if self.is_program() { "program" } else { "file" };
        Error::unavailable(format!("cannot write the result: {error}"))
            .with_code("Output")
            .with_context(what, &self.name)
            .with_source(error)
    }
}

/// A program that has read enough is no fault.
fn enough(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// Cuts off the result that failed.
fn take_back(writer: &mut BufWriter<File>, whole: u64) -> io::Result<()> {
    forget(writer)?;
    writer.get_ref().set_len(whole)?;
    writer.seek(SeekFrom::Start(whole)).map(drop)
}

/// Drops the bytes still held: what could not be written, on a full disk, must not come back with the next result.
fn forget(writer: &mut BufWriter<File>) -> io::Result<()> {
    let file = writer.get_ref().try_clone()?;
    let _ = std::mem::replace(writer, BufWriter::new(file)).into_parts();
    Ok(())
}

fn file(path: &Path, keep_partial: bool) -> Result<Target> {
    /// Files of this process so far.
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let failed = |e: io::Error| {
        Error::unavailable(format!("cannot write the output file: {e}"))
            .with_code("OutputFile")
            .with_context("file", path.display())
    };
    if path.is_dir() {
        return Err(Error::invalid("the output file is a folder").with_context("file", path.display()));
    }
    if path.exists() && !path.is_file() {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        return Ok(Target::File { writer: BufWriter::new(file), aside: None, whole: 0 });
    }
    // a link stays a link: what it names is replaced
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let Some(name) = path.file_name().map(|n| n.to_string_lossy().into_owned()) else {
        return Err(Error::invalid("which file?").with_code("Usage").with_context("file", path.display()));
    };
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&aside).map_err(failed)?;
    if let Ok(old) = std::fs::metadata(&path) {
        file.set_permissions(old.permissions()).map_err(failed)?;
    }
    let aside = Aside { aside, path, keep_partial };
    unfinished().push(aside.clone());
    Ok(Target::File { writer: BufWriter::new(file), aside: Some(aside), whole: 0 })
}

fn program(command: &str) -> Result<Target> {
    let failed = |e: io::Error| {
        Error::unavailable(format!("cannot start the program: {e}"))
            .with_code("OutputProgram")
            .with_context("program", command)
    };
    if command.is_empty() {
        return Err(Error::invalid("which program?").with_code("Usage").with_hint("write \\o |less or \\once |sort"));
    }
    let mut child = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).spawn().map_err(failed)?;
    let stdin = child.stdin.take().map(BufWriter::new);
    Ok(Target::Program { stdin, child })
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::File { writer, .. } => writer.write(bytes),
            Target::Program { stdin: Some(stdin), .. } => stdin.write(bytes),
            Target::Program { stdin: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::File { writer, .. } => writer.flush(),
            Target::Program { stdin: Some(stdin), .. } => stdin.flush(),
            Target::Program { stdin: None, .. } => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        match &mut self.target {
            Target::File { writer, aside: Some(aside), .. } => {
                let _ = writer.flush();
                unfinished().retain(|other| other != aside);
                aside.leave();
            }
            Target::File { aside: None, .. } => {}
            Target::Program { stdin, child } => {
                drop(stdin.take());
                let _ = child.wait();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(path: &Path, keep_partial: bool) -> Output {
        Output::start(path.to_str().unwrap(), keep_partial).unwrap()
    }

    #[test]
    fn file_appears_only_when_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        let mut output = open(&path, false);
        output.write_all(b"half").unwrap();
        drop(output);
        assert!(names(dir.path()).is_empty());
        let mut output = open(&path, false);
        output.write_all(b"whole").unwrap();
        assert!(!path.exists());
        output.end_result(true).unwrap();
        output.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(dir.path()), ["out.csv"]);
    }

    #[test]
    fn result_that_fails_leaves_the_file_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        for (keep_partial, expected) in [(false, "one\nthree\n"), (true, "one\ntwthree\n")] {
            let path = dir.path().join("out.csv");
            let mut output = open(&path, keep_partial);
            for (text, good) in [("one\n", true), ("tw", false), ("three\n", true)] {
                output.write_all(text.as_bytes()).unwrap();
                output.end_result(good).unwrap();
            }
            assert_eq!(output.results(), 2);
            output.close().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        }
    }

    #[test]
    fn line_stays_when_the_result_behind_it_fails() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.txt");
        let mut output = open(&path, false);
        output.line("head").unwrap();
        output.write_all(b"half").unwrap();
        output.end_result(false).unwrap();
        output.close().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "head\n");
    }

    /// A program shows each result when it is there, not when the next one pushes it out of a buffer.
    #[cfg(unix)]
    #[test]
    fn program_gets_each_result_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seen");
        let mut output = Output::start(&format!("|cat > '{}'", path.display()), false).unwrap();
        let seen = |expected: &str| {
            let began = std::time::Instant::now();
            while std::fs::read_to_string(&path).unwrap_or_default() != expected {
                assert!(began.elapsed() < std::time::Duration::from_secs(20), "{expected:?} did not come");
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        };
        output.write_all(b"one\n").unwrap();
        output.end_result(true).unwrap();
        seen("one\n");
        output.line("two").unwrap();
        seen("one\ntwo\n");
        // one that has left is no fault
        let mut gone = Output::start("|exit 0", false).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        gone.write_all(b"one\n").unwrap();
        gone.end_result(true).unwrap();
        gone.line("two").unwrap();
        gone.close().unwrap();
    }

    #[test]
    fn file_of_an_error_alone_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        for (keep_partial, results, failed, nothing) in
            [(false, 0, true, true), (false, 1, true, false), (false, 0, false, false), (true, 0, true, false)]
        {
            let mut output = open(&path, keep_partial);
            (0..results).for_each(|_| output.end_result(true).unwrap());
            if failed {
                output.note_failure();
            }
            assert_eq!(output.holds_nothing(), nothing, "{keep_partial} {results} {failed}");
        }
        let mut program = Output::start("|cat", false).unwrap();
        program.note_failure();
        assert!(!program.holds_nothing(), "what went to a program cannot be left");
    }

    #[test]
    fn old_file_stays_when_the_new_one_fails_and_a_part_takes_its_place_only_when_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        std::fs::write(&path, "old").unwrap();
        for (keep_partial, expected) in [(false, "old"), (true, "part")] {
            let mut output = open(&path, keep_partial);
            output.write_all(b"part").unwrap();
            drop(output);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
            assert_eq!(names(dir.path()), ["out.csv"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn link_and_rights_of_the_old_file_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("out.csv"), dir.path().join("link"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut output = open(&link, false);
        output.write_all(b"new").unwrap();
        output.close().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn program_gets_the_text_and_its_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sorted");
        let mut output = Output::start(&format!("| sort > '{}'", path.display()), false).unwrap();
        output.write_all(b"b\na\n").unwrap();
        output.end_result(true).unwrap();
        output.close().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\n");
        let error = Output::start("|exit 3", false).unwrap().close().unwrap_err();
        assert!(error.code() == "OutputProgram" && error.message().contains('3'), "{error}");
    }
}
