//! Where results go: standard output, through a pager when they do not fit, or a file that appears under its name only
//! when it is whole.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::render::width::width;
use crate::error::{Error, Result};

/// Files that are not whole, for an end in haste.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what was being written aside: nobody will finish it.
pub fn remove_unfinished() {
    for path in unfinished().drain(..) {
        let _ = std::fs::remove_file(path);
    }
}

/// A file that is written aside and renamed.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// None: a device or pipe, written in place.
    aside: Option<PathBuf>,
    writer: BufWriter<File>,
}

impl OutputFile {
    /// Opens; the file under `path` is not touched yet.
    pub fn create(path: &Path) -> Result<Self> {
        let failed = |e: io::Error| {
            Error::unavailable(format!("cannot write the output file: {e}"))
                .with_code("OutputFile")
                .with_context("file", path.display())
        };
        if path.exists() && !path.is_file() {
            if path.is_dir() {
                return Err(Error::invalid("the output file is a folder").with_context("file", path.display()));
            }
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(Self { path: path.to_path_buf(), aside: None, writer: BufWriter::new(file) });
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let aside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&aside).map_err(failed)?;
        unfinished().push(aside.clone());
        Ok(Self { path: path.to_path_buf(), aside: Some(aside), writer: BufWriter::new(file) })
    }

    /// Name it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file is whole: it gets its name.
    pub fn keep(mut self) -> Result<()> {
        let failed = |e: io::Error| {
            Error::unavailable(format!("cannot finish the output file: {e}"))
                .with_code("OutputFile")
                .with_context("file", self.path.display())
        };
        self.writer.flush().map_err(failed)?;
        if let Some(aside) = &self.aside {
            self.writer.get_ref().sync_all().map_err(failed)?;
            std::fs::rename(aside, &self.path).map_err(failed)?;
            unfinished().retain(|path| path != aside);
            self.aside = None;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ = std::fs::remove_file(aside);
            unfinished().retain(|path| path != aside);
        }
    }
}

/// When to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// When the text is longer or wider than the terminal.
    Auto,
    /// Never.
    Off,
}

/// How lines begin that tell of a result and are no part of it.
const NOTES: &[&str] = &["pin: ", "notice: "];

/// Text held before the pager must start.
const HELD: usize = 8 << 20;

/// Standard output of a terminal: held until it is known whether it fits.
#[derive(Debug)]
pub struct PagedOutput {
    size: (usize, usize),
    held: Vec<u8>,
    pager: Option<Child>,
}

impl PagedOutput {
    /// Output to a terminal of this many columns and lines.
    pub fn new(size: (usize, usize)) -> Self {
        Self { size, held: Vec::new(), pager: None }
    }

    fn fits(&self) -> bool {
        let (columns, lines) = self.size;
        let text = String::from_utf8_lossy(&self.held);
        let mut count = 0;
        for line in text.lines() {
            let line = without_colours(line);
            let wide = width(&line);
            // a note may wrap; a row may not
            let note = NOTES.iter().any(|start| line.starts_with(start));
            if wide > columns && !note {
                return false;
            }
            count += wide.div_ceil(columns.max(1)).max(1);
            // a prompt follows: one line is its own
            if count + 1 >= lines {
                return false;
            }
        }
        true
    }

    fn start(&mut self) -> io::Result<()> {
        let spawned = pager_command().and_then(|mut command| command.stdin(Stdio::piped()).spawn().ok());
        match spawned {
            Some(child) => {
                self.pager = Some(child);
                let held = std::mem::take(&mut self.held);
                self.send(&held)
            }
            // no pager is no reason to hide rows
            None => {
                let held = std::mem::take(&mut self.held);
                io::stdout().lock().write_all(&held)
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.pager.as_mut().and_then(|p| p.stdin.as_mut()) {
            Some(stdin) => stdin.write_all(bytes),
            None => io::stdout().lock().write_all(bytes),
        }
    }

    /// Shows what is held and waits for the pager to end.
    pub fn finish(mut self) -> io::Result<()> {
        if self.pager.is_none() {
            if self.fits() {
                let mut out = io::stdout().lock();
                out.write_all(&self.held)?;
                return out.flush();
            }
            self.start().or_else(quiet_pipe)?;
        }
        if let Some(mut pager) = self.pager.take() {
            drop(pager.stdin.take());
            pager.wait()?;
        }
        Ok(())
    }
}

/// Leaving the pager early is no error.
fn quiet_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

impl Write for PagedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pager.is_some() {
            self.send(bytes)?;
        } else {
            self.held.extend_from_slice(bytes);
            if self.held.len() > HELD {
                self.start()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn without_colours(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            out.push(c);
        }
    }
    out
}

/// LAKEPIN_PAGER, PSQL_PAGER or PAGER with its arguments, the first that is set; else `less -RSFX`. None: set to nothing,
/// which turns it off.
fn pager_command() -> Option<Command> {
    let chosen = ["LAKEPIN_PAGER", "PSQL_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
    let text = chosen.unwrap_or_else(|| "less".to_string());
    let mut words = text.split_whitespace();
    let program = words.next()?;
    let mut command = Command::new(program);
    command.args(words);
    if program == "less" || program.ends_with("/less") {
        // colours, no wrapping, leave the text on the screen
        command.env("LESS", "-RSFX");
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_file_appears_only_when_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn old_file_stays_when_the_new_one_fails() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        std::fs::write(&path, "old").unwrap();
        drop(OutputFile::create(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn colours_take_no_room() {
        assert_eq!(without_colours("\x1b[2mNULL\x1b[0m x"), "NULL x");
    }
}
