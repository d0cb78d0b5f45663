//! The state of a file: one is compared as it was when the comparison began, or not at all.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlanBuilder;
use sha2::{Digest, Sha256};

use super::pairs::Column;
use super::side::{Guard, Side, SideRows};
use crate::error::{Error, Result};

/// A file and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// When it was written, epoch milliseconds.
    pub modified_millis: i64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

impl FileState {
    /// Reads a file once.
    ///
    /// # Errors
    /// `FileNotFound`; one that cannot be read.
    pub async fn of(path: &Path) -> Result<Self> {
        let path = path.to_path_buf();
        let read = tokio::task::spawn_blocking(move || read(path));
        read.await.map_err(|error| Error::internal("a file was not read to its end").with_source(error))?
    }

    /// Looks again.
    ///
    /// # Errors
    /// `FileChanged`.
    pub async fn verify(&self) -> Result<()> {
        let now = Self::of(&self.path).await?;
        if now == *self {
            return Ok(());
        }
        Err(Error::new(crate::error::ErrorKind::Conflict, "the file changed while it was compared")
            .with_code("FileChanged")
            .with_context("file", self.path.display())
            .with_hint("there is no verdict: compare again when nobody writes to it"))
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modified = crate::snapshot::SessionZone::utc().show(self.modified_millis);
        write!(f, "{} bytes, written {modified}, sha256 {}", self.size, self.sha256)
    }
}

fn read(path: PathBuf) -> Result<FileState> {
    let failed = |error: std::io::Error| {
        let found = match error.kind() {
            std::io::ErrorKind::NotFound => Error::not_found("there is no such file").with_code("FileNotFound"),
            _ => Error::unavailable("the file cannot be read").with_code("Storage"),
        };
        found.with_context("file", path.display()).with_source(error)
    };
    let mut file = std::fs::File::open(&path).map_err(failed)?;
    let told = file.metadata().map_err(failed)?;
    if told.is_dir() {
        return Err(Error::invalid("a folder cannot be compared, only a file")
            .with_code("FileNotFound")
            .with_context("file", path.display()));
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        hash.update(bytes);
        size += count as u64;
    }
    let modified = told.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_millis = modified.and_then(|time| i64::try_from(time.as_millis()).ok()).unwrap_or_default();
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(FileState { path, size, modified_millis, sha256 })
}

/// The side that a Parquet or CSV file is. Values of a CSV file are texts that are read as what stands beside them; its
/// first line has the names, and an empty field is NULL.
///
/// # Errors
/// A file that is not there, of another kind, or damaged.
pub async fn file_side(path: &Path, state: &SessionState) -> Result<Side> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let format: Arc<dyn FileFormat> = match ending.as_str() {
        "parquet" => Arc::new(ParquetFormat::default()),
        "csv" => Arc::new(CsvFormat::default().with_has_header(true).with_newlines_in_values(true)),
        _ => {
            return Err(Error::unsupported("only Parquet and CSV files are compared")
                .with_code("FileFormat")
                .with_context("file", path.display())
                .with_hint("the name has to end with .parquet or .csv; CREATE EXTERNAL TABLE reads others, and a query of it is a side too"));
        }
    };
    let file = FileState::of(path).await?;
    let whole = path
        .canonicalize()
        .map_err(|error| Error::unavailable("the file cannot be read").with_code("Storage").with_source(error))?;
    let name = whole
        .to_str()
        .ok_or_else(|| Error::unsupported("the name of the file is no Unicode").with_code("FileFormat"))?;
    let location = url::Url::from_file_path(name).map_err(|()| Error::internal("a path is no address"))?;
    let location = ListingTableUrl::parse(location.as_str())?;
    // any ending: that of the name is what was asked for, and a link may lead to another one
    let options = ListingOptions::new(format).with_file_extension("");
    let named = options.infer_schema(state, &location).await?;
    let untyped = ending == "csv";
    let schema = if untyped {
        let texts = named.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
        Arc::new(Schema::new(texts.collect::<Vec<_>>()))
    } else {
        named
    };
    let columns = schema.fields().iter();
    let columns =
        columns.map(|field| Column { untyped, ..Column::new(field.name(), field.data_type().clone()) }).collect();
    let config = ListingTableConfig::new(location).with_listing_options(options).with_schema(schema);
    let table = ListingTable::try_new(config)?;
    let plan = LogicalPlanBuilder::scan("file", provider_as_source(Arc::new(table)), None)?.build()?;
    Ok(Side {
        name: path.display().to_string(),
        position: file.to_string(),
        state_known: true,
        what: None,
        columns,
        rows: SideRows::Plan(plan),
        condition: None,
        guards: vec![Guard::File(file)],
    })
}
