//! What to read from which file, and what all readers share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use parquet::file::metadata::ParquetMetaData;

use crate::memory::{MemoryBudget, Unbounded};
use crate::spec::arrow_types::arrow_field;
use crate::spec::zone::Zone;
use crate::spec::{DataField, Datum, TableSchema};
use crate::storage::cache::ByteLimitedCache;
use crate::storage::{Location, RequestMeter, Storage};

/// Name of the sequence number of a stored row.
pub const SEQUENCE_NUMBER: &str = "_SEQUENCE_NUMBER";
/// Name of the kind of a stored row.
pub const VALUE_KIND: &str = "_VALUE_KIND";
/// What the names of a key's own columns begin with, where a file has them besides the ordinary ones.
pub const KEY_PREFIX: &str = "_KEY_";
/// Name under which the position of a row in its file is given out.
pub const ROW_POSITION: &str = "_ROW_POSITION";

/// What all open files share: the Parquet footers, by file and size.
pub struct FileEnv {
    footers: ByteLimitedCache<(Location, u64), Arc<ParquetMetaData>>,
}

impl FileEnv {
    /// Keeps at most `footer_bytes` of footers.
    pub fn new(footer_bytes: usize) -> Arc<Self> {
        Arc::new(Self { footers: ByteLimitedCache::new(footer_bytes) })
    }

    /// The footers, by file and its size.
    pub fn footers(&self) -> &ByteLimitedCache<(Location, u64), Arc<ParquetMetaData>> {
        &self.footers
    }
}

impl fmt::Debug for FileEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileEnv").field("footers", &self.footers.stats()).finish()
    }
}

/// A column that is asked of a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OutputColumn {
    /// A column of the table, found by field id.
    Field(DataField),
    /// `_SEQUENCE_NUMBER`, BIGINT NOT NULL.
    SequenceNumber,
    /// `_VALUE_KIND`, TINYINT NOT NULL.
    ValueKind,
    /// The 0-based number of the row in the file, over all row groups or stripes and before any filter: BIGINT NOT
    /// NULL.
    RowPosition,
}

impl OutputColumn {
    /// The Arrow field that is given out.
    pub fn arrow_field(&self) -> Field {
        match self {
            Self::Field(field) => arrow_field(field),
            Self::SequenceNumber => Field::new(SEQUENCE_NUMBER, ArrowType::Int64, false),
            Self::ValueKind => Field::new(VALUE_KIND, ArrowType::Int8, false),
            Self::RowPosition => Field::new(ROW_POSITION, ArrowType::Int64, false),
        }
    }
}

/// The Arrow schema of some output columns.
pub fn output_schema(columns: &[OutputColumn]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(OutputColumn::arrow_field).collect::<Vec<_>>()))
}

/// How a file is read, besides what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOptions {
    /// Session zone, for casts between TIMESTAMP and LTZ and for the text of LTZ.
    pub zone: Zone,
    /// Rows of a batch at most.
    pub batch_size: usize,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { zone: Zone::UTC, batch_size: 8192 }
    }
}

impl FileOptions {
    /// The session zone.
    #[must_use]
    pub fn with_zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// Rows of a batch at most; 0 counts as 1.
    #[must_use]
    pub fn with_batch_size(mut self, batch_size: usize) -> Self {
        self.batch_size = batch_size.max(1);
        self
    }
}

/// One file and what to read of it.
#[derive(Debug, Clone)]
pub struct FileTask {
    /// The file. Its name tells the format.
    pub location: Location,
    /// The store it lies in.
    pub storage: Arc<Storage>,
    /// Its bytes, as the manifest says.
    pub size: u64,
    /// Its physical rows, as the manifest says; a file that holds another number is damaged. None: not checked.
    pub row_count: Option<u64>,
    /// The schema it was written with.
    pub file_schema: Arc<TableSchema>,
    /// What to give out, in this order. May be empty: then only rows are counted.
    pub columns: Vec<OutputColumn>,
    /// Values of partition columns by field id: never taken from the file.
    pub constants: BTreeMap<i32, Datum>,
    /// Key columns by field id. Where a file holds NULL in one that is NOT NULL, its `_KEY_` column tells the value: Java
    /// 0.9 leaves the ordinary one empty where it folds nothing but retracts.
    pub keys: Vec<i32>,
    /// Rows that are wanted, by absolute position; None for all. Its length is the number of rows of the file.
    pub live: Option<BooleanBuffer>,
    /// Zone, batch size.
    pub options: FileOptions,
    /// Asked before more is held than ordinary files need.
    pub budget: Arc<dyn MemoryBudget>,
    /// Counts what is asked of the store.
    pub meter: RequestMeter,
}

impl FileTask {
    /// All rows of some columns of a file, with nothing else asked.
    pub fn new(
        storage: Arc<Storage>,
        location: Location,
        size: u64,
        file_schema: Arc<TableSchema>,
        columns: Vec<OutputColumn>,
    ) -> Self {
        Self {
            location,
            storage,
            size,
            row_count: None,
            file_schema,
            columns,
            constants: BTreeMap::new(),
            keys: Vec::new(),
            live: None,
            options: FileOptions::default(),
            budget: Arc::new(Unbounded),
            meter: RequestMeter::default(),
        }
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        output_schema(&self.columns)
    }
}
