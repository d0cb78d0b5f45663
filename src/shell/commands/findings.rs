//! Files that commands leave: every finding of a comparison, a file for each class, and the pages of verdicts. Each
//! appears under its name when it is whole; what an earlier run left of other classes goes with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;

use crate::error::{Error, Result};
use crate::shell::output::Output;
use crate::sql::{Class, Example, Warehouse};

/// How findings are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutFormat {
    #[default]
    Csv,
    Ndjson,
    Parquet,
}

impl OutFormat {
    const ALL: [Self; 3] = [Self::Csv, Self::Ndjson, Self::Parquet];

    fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }
}

/// The name of a check as that of a file: it is no path, and two checks share none.
pub fn plain(name: &str) -> String {
    let mut file = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_alphanumeric() || matches!(c, '-' | '_') || c == '.' && at > 0 {
            file.push(c);
        } else {
            let _ = write!(file, "%{:02x}", u32::from(c));
        }
    }
    file
}

/// A file in a folder that is made where it is not there.
///
/// # Errors
/// A folder in the warehouse, one that cannot be made, a file that cannot be written.
pub fn create(folder: &Path, name: &str, warehouse: &Warehouse) -> Result<Output> {
    let path = folder.join(name);
    warehouse.check_outside("the output", &path.to_string_lossy())?;
    std::fs::create_dir_all(folder).map_err(|error| failed(error, folder))?;
    Output::of_file(&path)
}

fn failed(error: io::Error, path: &Path) -> Error {
    Error::unavailable("the files cannot be written there")
        .with_code("Storage")
        .with_context("file", path.display())
        .with_source(error)
}

/// Findings a file has in memory before they are written.
const FINDINGS: usize = 4096;

enum Writer {
    Csv(Box<arrow::csv::Writer<Output>>),
    Ndjson(Box<arrow::json::LineDelimitedWriter<Output>>),
    Parquet(Box<ArrowWriter<Output>>),
}

/// Every finding of a check, a file for each class.
pub struct Files {
    folder: PathBuf,
    format: OutFormat,
    warehouse: Warehouse,
    open: BTreeMap<Class, (Writer, Vec<Example>)>,
}

impl Files {
    pub fn new(folder: &Path, format: OutFormat, warehouse: &Warehouse) -> Arc<Mutex<Self>> {
        let (folder, warehouse) = (folder.to_path_buf(), warehouse.clone());
        Arc::new(Mutex::new(Self { folder, format, warehouse, open: BTreeMap::new() }))
    }

    fn schema() -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let number = |name: &str| Field::new(name, DataType::UInt64, false);
        let names =
            [text("key"), text("column"), text("left"), text("right"), number("left_rows"), number("right_rows")];
        Arc::new(Schema::new(names.to_vec()))
    }

    fn name(class: Class, format: OutFormat) -> String {
        format!("{}.{}", class.name().to_lowercase(), format.ending())
    }

    fn create(&self, class: Class) -> Result<Writer> {
        let file = create(&self.folder, &Self::name(class, self.format), &self.warehouse)?;
        Ok(match self.format {
            OutFormat::Csv => Writer::Csv(Box::new(arrow::csv::Writer::new(file))),
            OutFormat::Ndjson => Writer::Ndjson(Box::new(arrow::json::LineDelimitedWriter::new(file))),
            OutFormat::Parquet => {
                let writer = ArrowWriter::try_new(file, Self::schema(), None);
                Writer::Parquet(Box::new(writer.map_err(|error| Error::from_datafusion(error.into()))?))
            }
        })
    }

    pub fn write(&mut self, example: &Example) -> Result<()> {
        if !self.open.contains_key(&example.class) {
            let writer = self.create(example.class)?;
            self.open.insert(example.class, (writer, Vec::new()));
        }
        let Some((writer, waiting)) = self.open.get_mut(&example.class) else { return Ok(()) };
        waiting.push(example.clone());
        if waiting.len() >= FINDINGS { put(writer, waiting) } else { Ok(()) }
    }

    /// Gives the files their names. Those of an earlier run go: beside these they would tell of differences that are
    /// no more.
    pub fn finish(&mut self) -> Result<()> {
        let mut written = Vec::new();
        for (class, (mut writer, mut waiting)) in std::mem::take(&mut self.open) {
            put(&mut writer, &mut waiting)?;
            let whole = match writer {
                Writer::Csv(writer) => writer.into_inner(),
                Writer::Ndjson(mut writer) => {
                    writer.finish()?;
                    writer.into_inner()
                }
                Writer::Parquet(writer) => writer.into_inner().map_err(|error| Error::from_datafusion(error.into()))?,
            };
            whole.close()?;
            written.push(Self::name(class, self.format));
        }
        for (class, format) in Class::ALL.iter().flat_map(|class| OutFormat::ALL.map(|format| (*class, format))) {
            let name = Self::name(class, format);
            if written.contains(&name) {
                continue;
            }
            let path = self.folder.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::unavailable("the findings of an earlier run cannot be removed")
                        .with_code("Storage")
                        .with_context("file", path.display())
                        .with_source(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A column and its values on both sides.
type Values<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

/// Writes what waits: a row for each value that differs.
fn put(writer: &mut Writer, waiting: &mut Vec<Example>) -> Result<()> {
    let mut rows: Vec<(&Example, String, Option<Values<'_>>)> = Vec::new();
    for example in waiting.iter() {
        let key = example.key_json();
        for cell in &example.cells {
            let cell = (cell.column.as_str(), cell.left.as_deref(), cell.right.as_deref());
            rows.push((example, key.clone(), Some(cell)));
        }
        if example.cells.is_empty() {
            rows.push((example, key, None));
        }
    }
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, key, _)| key)));
    let columns: ArrayRef = Arc::new(rows.iter().map(|(.., cell)| cell.map(|cell| cell.0)).collect::<StringArray>());
    let lefts: ArrayRef = Arc::new(rows.iter().map(|(.., cell)| cell.and_then(|cell| cell.1)).collect::<StringArray>());
    let rights: ArrayRef =
        Arc::new(rows.iter().map(|(.., cell)| cell.and_then(|cell| cell.2)).collect::<StringArray>());
    let left_rows: ArrayRef =
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(example, ..)| example.left_rows)));
    let right_rows: ArrayRef =
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(example, ..)| example.right_rows)));
    let batch = RecordBatch::try_new(Files::schema(), vec![keys, columns, lefts, rights, left_rows, right_rows])?;
    waiting.clear();
    match writer {
        Writer::Csv(writer) => writer.write(&batch)?,
        Writer::Ndjson(writer) => writer.write(&batch)?,
        Writer::Parquet(writer) => writer.write(&batch).map_err(|error| Error::from_datafusion(error.into()))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(class: Class) -> Example {
        Example { class, key: vec![("id".into(), Some("1".into()))], cells: Vec::new(), left_rows: 1, right_rows: 0 }
    }

    async fn elsewhere() -> (tempfile::TempDir, Warehouse) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let url = dir.path().join("w").to_string_lossy().into_owned();
        let warehouse = Warehouse::open(&url, &Default::default()).await.unwrap();
        (dir, warehouse)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_run_leaves_its_own_findings_and_none_of_the_run_before() {
        let (dir, warehouse) = elsewhere().await;
        let folder = dir.path().join("out").join("pay");
        for format in OutFormat::ALL {
            let files = Files::new(&folder, format, &warehouse);
            for class in [Class::Different, Class::MissingInLake] {
                files.lock().write(&finding(class)).unwrap();
            }
            files.lock().finish().unwrap();
            assert_eq!(
                names(&folder),
                [Files::name(Class::Different, format), Files::name(Class::MissingInLake, format)]
            );
        }
        std::fs::write(folder.join("mine.csv"), "x").unwrap();
        // one that is given up leaves what stood
        let files = Files::new(&folder, OutFormat::Csv, &warehouse);
        files.lock().write(&finding(Class::Late)).unwrap();
        drop(files);
        assert_eq!(names(&folder), ["different.parquet", "mine.csv", "missing_in_lake.parquet"]);
        // nothing differs any more
        Files::new(&folder, OutFormat::Csv, &warehouse).lock().finish().unwrap();
        assert_eq!(names(&folder), ["mine.csv"]);
        Files::new(&dir.path().join("never"), OutFormat::Csv, &warehouse).lock().finish().unwrap();
        assert!(!dir.path().join("never").exists());
    }

    #[tokio::test]
    async fn findings_stay_out_of_the_warehouse_and_names_are_no_paths() {
        let (dir, warehouse) = elsewhere().await;
        let files = Files::new(&dir.path().join("w").join("out"), OutFormat::Csv, &warehouse);
        assert_eq!(files.lock().write(&finding(Class::Late)).unwrap_err().code(), "ReadOnly");
        assert_eq!(plain("pay-1_x.v2"), "pay-1_x.v2");
        assert_eq!(plain("../a/b"), "%2e.%2fa%2fb");
        assert_eq!(plain("|rm"), "%7crm");
        assert_eq!(plain("支付"), "支付");
    }
}
