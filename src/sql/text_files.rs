//! The text that `COPY … TO` writes: csv, tsv, json and ndjson as the shell writes them, so that a file does not depend on
//! which of the two made it. DataFusion's own writers give an infinity as null, and the empty string as NULL.
//!
//! Reading such files stays DataFusion's.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::catalog::Session;
use datafusion::common::config::{CsvOptions, JsonOptions};
use datafusion::common::parsers::CsvQuoteStyle;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::csv::{CsvFormat, CsvFormatFactory};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::{JsonFormat, JsonFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion_datasource::TableSchema;
use datafusion_datasource::file_sink_config::FileSink;
use datafusion_datasource::write::BatchSerializer;
use datafusion_datasource::write::demux::DemuxedStreamReceiver;
use datafusion_datasource::write::orchestration::spawn_writer_tasks_and_join;
use object_store::{ObjectMeta, ObjectStore};

use crate::error::{Error, Result};
use crate::export::{Decimals, Delimited, Json, Quoting, Renderer, Separated};

/// A format as one names it, in capitals or as the ending of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Tsv,
    Json,
    Ndjson,
    Jsonl,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Csv, Self::Tsv, Self::Json, Self::Ndjson, Self::Jsonl];

    fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Jsonl => "jsonl",
        }
    }
}

/// Lets statements of a session write the formats.
///
/// # Errors
/// None: what is there under a name is replaced.
pub(crate) fn register(state: &mut SessionState) -> DfResult<()> {
    Kind::ALL.into_iter().try_for_each(|kind| state.register_file_format(Arc::new(Factory(kind)), true))
}

/// Makes formats of what a statement asks for.
#[derive(Debug)]
struct Factory(Kind);

impl GetExt for Factory {
    fn get_ext(&self) -> String {
        self.0.name().to_string()
    }
}

impl FileFormatFactory for Factory {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> DfResult<Arc<dyn FileFormat>> {
        let inner = match self.0 {
            Kind::Csv | Kind::Tsv => CsvFormatFactory::new().create(state, options)?,
            Kind::Json | Kind::Ndjson | Kind::Jsonl => JsonFormatFactory::new().create(state, options)?,
        };
        Ok(Arc::new(TextFormat { kind: self.0, inner }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        let inner = match self.0 {
            Kind::Csv | Kind::Tsv => CsvFormatFactory::new().default(),
            Kind::Json | Kind::Ndjson | Kind::Jsonl => JsonFormatFactory::new().default(),
        };
        Arc::new(TextFormat { kind: self.0, inner })
    }
}

/// DataFusion's format where it reads, ours where it writes.
#[derive(Debug)]
struct TextFormat {
    kind: Kind,
    inner: Arc<dyn FileFormat>,
}

impl TextFormat {
    /// # Errors
    /// DataFusion has no reader for a backslash before a tab.
    fn reader(&self) -> Result<&Arc<dyn FileFormat>> {
        if self.kind == Kind::Tsv {
            return Err(Error::unsupported("files of tab-separated values are written, not read")
                .with_code("UnknownFormat")
                .with_hint("COPY to csv, json, ndjson or parquet what is to be read again"));
        }
        Ok(&self.inner)
    }

    /// How rows become text.
    ///
    /// # Errors
    /// `BadOption`: an option that this format does not have.
    fn written(&self, state: &dyn Session) -> Result<Written> {
        if let Some(csv) = self.inner.downcast_ref::<CsvFormat>() {
            let options = csv.options();
            let separated = if self.kind == Kind::Tsv { by_tabs(options)? } else { by_commas(options)? };
            return Ok(Written {
                layout: Layout::Delimited {
                    separated,
                    header: options.has_header.unwrap_or_else(|| state.config_options().catalog.has_header),
                },
                compression: options.compression.into(),
                level: options.compression_level,
            });
        }
        let json = self.inner.downcast_ref::<JsonFormat>().map(JsonFormat::options);
        let JsonOptions { compression, compression_level, newline_delimited, .. } =
            json.ok_or_else(|| Error::internal(format!("no {} is {:?}", self.kind.name(), self.inner)))?;
        if !newline_delimited {
            return Err(refused("newline_delimited", "one object a line is written; the shell's \\o writes one array"));
        }
        Ok(Written { layout: Layout::Objects, compression: (*compression).into(), level: *compression_level })
    }
}

fn refused(option: &str, hint: &str) -> Error {
    Error::unsupported(format!("text is not written with the option '{option}'")).with_code("BadOption").with_hint(hint)
}

/// Refuses options that would have another text written than ours.
fn check_formats(options: &CsvOptions) -> Result<()> {
    let asked = [
        ("date_format", options.date_format.is_some()),
        ("datetime_format", options.datetime_format.is_some()),
        ("timestamp_format", options.timestamp_format.is_some()),
        ("timestamp_tz_format", options.timestamp_tz_format.is_some()),
        ("time_format", options.time_format.is_some()),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((option, _)) => {
            Err(refused(option, "times are written as ISO 8601; to_char(…) gives a text of any other form"))
        }
        None => Ok(()),
    }
}

fn by_tabs(options: &CsvOptions) -> Result<Separated> {
    check_formats(options)?;
    let plain = CsvOptions::default();
    let asked = [
        ("delimiter", options.delimiter != plain.delimiter),
        ("quote", options.quote != plain.quote),
        ("quote_style", options.quote_style != plain.quote_style),
        ("escape", options.escape.is_some()),
        ("double_quote", options.double_quote.is_some()),
        ("terminator", options.terminator.is_some()),
        ("null_value", options.null_value.is_some()),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((option, _)) => Err(refused(option, "STORED AS CSV has it")),
        None => Ok(Separated::by_tabs()),
    }
}

fn by_commas(options: &CsvOptions) -> Result<Separated> {
    check_formats(options)?;
    let character = |option: &str, byte: u8| {
        if byte.is_ascii() { Ok(char::from(byte)) } else { Err(refused(option, "one ASCII character can be chosen")) }
    };
    let always = match options.quote_style {
        CsvQuoteStyle::Always => true,
        CsvQuoteStyle::Necessary => false,
        CsvQuoteStyle::NonNumeric | CsvQuoteStyle::Never => {
            return Err(refused(
                "quote_style",
                "Necessary and Always can be chosen: without quotes nobody tells NULL from ''",
            ));
        }
    };
    let quote = character("quote", options.quote)?;
    let escape = match (options.double_quote, options.escape) {
        (Some(false), escape) => character("escape", escape.unwrap_or(b'\\'))?,
        (_, None) => quote,
        (_, Some(_)) => return Err(refused("escape", "it is used with double_quote 'false'")),
    };
    let plain = Separated::by_commas();
    Ok(Separated {
        separator: character("delimiter", options.delimiter)?,
        line_end: options.terminator.map_or(Ok(plain.line_end), |byte| character("terminator", byte))?,
        null: options.null_value.clone().unwrap_or(plain.null),
        quoting: Quoting::Quotes { quote, escape, always },
    })
}

#[async_trait]
impl FileFormat for TextFormat {
    fn get_ext(&self) -> String {
        self.kind.name().to_string()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> DfResult<String> {
        Ok(format!("{}{}", self.get_ext(), compression.get_ext()))
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> DfResult<SchemaRef> {
        self.reader()?.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> DfResult<Statistics> {
        self.reader()?.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.reader()?.create_physical_plan(state, config).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        if config.insert_op != InsertOp::Append {
            return self.inner.create_writer_physical_plan(input, state, config, order).await;
        }
        let sink = TextSink { kind: self.kind, written: self.written(state)?, config };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table_schema)
    }
}

/// How rows become text.
#[derive(Debug, Clone)]
struct Written {
    layout: Layout,
    compression: FileCompressionType,
    level: Option<u32>,
}

#[derive(Debug, Clone)]
enum Layout {
    Delimited { separated: Separated, header: bool },
    Objects,
}

impl Layout {
    fn write(&self, batch: &RecordBatch, first: bool, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Delimited { separated, header } => {
                let mut lines = Delimited::new(batch.schema_ref(), separated.clone());
                if first && *header {
                    lines.begin(out)?;
                }
                lines.batch(batch, out)?;
                lines.end(out)
            }
            Self::Objects => {
                let mut lines = Json::lines(batch.schema_ref(), Decimals::String);
                lines.batch(batch, out)?;
                lines.end(out)
            }
        }
    }
}

impl BatchSerializer for Layout {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> DfResult<Bytes> {
        let mut text = Vec::new();
        self.write(&batch, initial, &mut text)?;
        Ok(text.into())
    }
}

/// Writes files of text.
struct TextSink {
    kind: Kind,
    written: Written,
    config: FileSinkConfig,
}

impl fmt::Debug for TextSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextSink").field("kind", &self.kind).field("url", &self.config.original_url).finish()
    }
}

impl DisplayAs for TextSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, url) = (self.kind.name(), &self.config.original_url);
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, "TextSink: format={name}, file={url}"),
            DisplayFormatType::TreeRender => write!(f, "format: {name}\nfile={url}"),
        }
    }
}

#[async_trait]
impl FileSink for TextSink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux: SpawnedTask<DfResult<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> DfResult<u64> {
        let Written { layout, compression, level } = self.written.clone();
        spawn_writer_tasks_and_join(context, Arc::new(layout), compression, level, store, demux, files).await
    }
}

#[async_trait]
impl DataSink for TextSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> DfResult<u64> {
        FileSink::write_all(self, data, context).await
    }
}
