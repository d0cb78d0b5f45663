//! `lakepin test --complete`: what was answered, written into the file. A record stays what it is: one that should answer
//! and fails, or the other way round, is left for somebody to look at. No record is lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sqllogictest::{
    ExpectedError, Injected, QueryExpect, Record, RecordOutput, StatementExpect, default_normalizer, default_validator,
    strict_column_validator, update_record_with_output,
};

use super::{Letter, Options, parse, runner};
use crate::error::{Error, Result};

/// What became of a file.
#[derive(Debug, Clone, Default)]
pub struct Completed {
    /// Records that were left, each with its place, what it is and what it was answered.
    pub left: Vec<String>,
}

/// A file on its way.
struct Page {
    path: PathBuf,
    text: String,
    /// Behind `halt` everything stays.
    halted: bool,
}

/// Runs one file and writes what it answered into it: nothing but results, types and texts of errors change.
///
/// # Errors
/// A file that cannot be read or written.
pub async fn complete_file(path: &Path, options: &Options) -> Result<Completed> {
    if parse::text(path)?.trim().is_empty() {
        // nothing to run, and a line more would be all that changes
        return Err(Error::invalid("the file has no records").with_code("Syntax").with_context("file", path.display()));
    }
    let records = parse::records(path)?;
    let mut runner = runner(options);
    let mut completed = Completed::default();
    let page = |path: &Path| Page { path: path.to_path_buf(), text: String::new(), halted: false };
    let mut around = Vec::new();
    let mut current = page(path);
    for record in records {
        match &record {
            Record::Injected(Injected::BeginInclude(file)) => {
                around.push(std::mem::replace(&mut current, page(Path::new(file))));
                continue;
            }
            Record::Injected(Injected::EndInclude(_)) => {
                let outer = around.pop().ok_or_else(|| Error::internal("an include ends that did not begin"))?;
                write(&std::mem::replace(&mut current, outer))?;
                continue;
            }
            Record::Halt { .. } => current.halted = true,
            _ => {}
        }
        let record = if current.halted {
            record
        } else {
            let output = runner.apply_record(record.clone()).await;
            updated(record, &output, &mut completed.left)
        };
        current.text.push_str(&format!("{record}\n"));
    }
    runner.shutdown_async().await;
    write(&current)?;
    Ok(completed)
}

fn updated(record: Record<Letter>, output: &RecordOutput<Letter>, left: &mut Vec<String>) -> Record<Letter> {
    let found =
        update_record_with_output(&record, output, " ", default_validator, default_normalizer, strict_column_validator);
    let Some(found) = found else { return record };
    let why = match output {
        RecordOutput::Statement { error: Some(e), .. }
        | RecordOutput::Query { error: Some(e), .. }
        | RecordOutput::System { error: Some(e), .. } => format!(": {e}"),
        _ => String::new(),
    };
    let told = match (kind(&record), kind(&found)) {
        (Some(was), Some(is)) if was != is => format!("{was} would become {is}{why}"),
        // what it wrote before is kept
        (None, _) if !why.is_empty() => format!("the command fails{why}"),
        _ => match lost(&record, &found) {
            Some(line) => format!("the record `{line}` under its ---- would be lost; put an empty line before it"),
            None => return found,
        },
    };
    let place = match &record {
        Record::Statement { loc, .. } | Record::Query { loc, .. } | Record::System { loc, .. } => loc.to_string(),
        _ => String::new(),
    };
    left.push(format!("{place}: {told}"));
    record
}

/// A line that begins a record, among what was expected and no longer is.
fn lost(record: &Record<Letter>, found: &Record<Letter>) -> Option<String> {
    let after: BTreeSet<String> = expected(found).into_iter().collect();
    expected(record).into_iter().find(|line| parse::begins_record(line) && !after.contains(line))
}

/// The lines under `----`.
fn expected(record: &Record<Letter>) -> Vec<String> {
    let lines = |text: &str| text.lines().map(str::to_string).collect();
    match record {
        Record::Statement { expected: StatementExpect::Error(ExpectedError::Multiline(text)), .. }
        | Record::Query { expected: QueryExpect::Error(ExpectedError::Multiline(text)), .. }
        | Record::System { stdout: Some(text), .. } => lines(text),
        Record::Query { expected: QueryExpect::Results { results, .. }, .. } => results.clone(),
        _ => Vec::new(),
    }
}

/// What a record expects, as it begins.
fn kind(record: &Record<Letter>) -> Option<&'static str> {
    Some(match record {
        Record::Statement { expected: StatementExpect::Error(_), .. } => "statement error",
        Record::Statement { expected: StatementExpect::Ok, .. } => "statement ok",
        Record::Statement { expected: StatementExpect::Count(_), .. } => "statement count",
        Record::Query { expected: QueryExpect::Error(_), .. } => "query error",
        Record::Query { expected: QueryExpect::Results { .. }, .. } => "query",
        _ => return None,
    })
}

/// Writes a page under its name, when it is not what stands there: aside first, with the ends of lines it had.
fn write(page: &Page) -> Result<()> {
    let before = parse::text(&page.path)?;
    let after = format!("{}\n", page.text.trim_end_matches('\n'));
    let after = if before.contains("\r\n") { after.replace('\n', "\r\n") } else { after };
    if after == before {
        return Ok(());
    }
    let failed = |e: std::io::Error| {
        Error::unavailable(format!("cannot write the file: {e}"))
            .with_code("OutputFile")
            .with_context("file", page.path.display())
    };
    let name = page.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let aside = page.path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    std::fs::write(&aside, after).map_err(failed)?;
    let rights = std::fs::metadata(&page.path).and_then(|old| std::fs::set_permissions(&aside, old.permissions()));
    rights.and_then(|()| std::fs::rename(&aside, &page.path)).map_err(|e| {
        let _ = std::fs::remove_file(&aside);
        failed(e)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sql::SessionConfig;

    #[tokio::test]
    async fn a_file_without_records_is_left_as_it_is() {
        let options = Options {
            warehouse: None,
            store_options: BTreeMap::new(),
            session: SessionConfig::default(),
            variables: BTreeMap::new(),
            labels: Vec::new(),
            timeout: None,
            own_threads: false,
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("empty.slt");
        for text in ["", "\n\n"] {
            std::fs::write(&file, text).unwrap();
            let told = complete_file(&file, &options).await.err().map(|error| error.message().to_string());
            assert_eq!(told.as_deref(), Some("the file has no records"));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
