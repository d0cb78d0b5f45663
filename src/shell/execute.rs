//! One statement from text to rows on the screen: cancelled by Ctrl-C or time, streamed with bounded memory, closed
//! with what was read.

use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::interrupt::{Running, interrupted};
use super::output::{OutputFile, PagedOutput, Paging};
use super::progress::{Progress, Work};
use super::render::width::grouped;
use super::render::{Expanded, Format, Limits, renderer};
use super::report::eprint;
use super::spool::Spool;
use super::state::Shell;
use super::variables::replaced;
use crate::error::{Error, Result};
use crate::sql::{PinLine, StatementKind, StatementResult, Timing};

/// Something to show.
pub struct Answer {
    /// Rows or a word.
    pub kind: StatementKind,
    /// Columns.
    pub schema: SchemaRef,
    /// Rows.
    pub stream: SendableRecordBatchStream,
    /// Tables read.
    pub pins: Vec<PinLine>,
    /// What the reader should know.
    pub notices: Vec<String>,
    /// Time until the first row was asked for.
    pub timing: Timing,
    /// Plan with its metrics.
    pub plan: Option<Arc<dyn ExecutionPlan>>,
}

impl From<StatementResult> for Answer {
    fn from(result: StatementResult) -> Self {
        let StatementResult { kind, schema, stream, pins, notices, timing, plan, .. } = result;
        Self { kind, schema, stream, pins, notices, timing, plan }
    }
}

impl Answer {
    /// Rows made by the shell.
    pub fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let stream = datafusion::physical_plan::memory::MemoryStream::try_new(batches, Arc::clone(&schema), None)?;
        Ok(Self {
            kind: StatementKind::Rows,
            schema,
            stream: Box::pin(stream),
            pins: Vec::new(),
            notices: Vec::new(),
            timing: Timing::default(),
            plan: None,
        })
    }
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Records in place of a grid.
    pub expanded: Option<Expanded>,
    /// Whether a table on a terminal may leave rows out.
    pub cap: bool,
    /// Whether pins and the number of rows are told.
    pub footer: bool,
    /// Whether a pager may start.
    pub page: bool,
}

impl Default for Show {
    fn default() -> Self {
        Self { expanded: None, cap: true, footer: true, page: true }
    }
}

impl Show {
    /// A listing: every row, no pins.
    pub const LISTING: Self = Self { expanded: None, cap: false, footer: false, page: true };
}

/// The time a statement has.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    limit: Option<Duration>,
}

impl Clock {
    /// Starts now.
    pub fn start(limit: Option<Duration>) -> Self {
        Self { started: Instant::now(), limit }
    }

    async fn expired(&self) {
        match self.limit {
            Some(limit) => tokio::time::sleep_until((self.started + limit).into()).await,
            None => std::future::pending().await,
        }
    }

    fn error(&self) -> Error {
        let limit = self.limit.unwrap_or_default().as_secs_f64();
        Error::exhausted(format!("the statement took longer than {limit} s and was cancelled"))
            .with_code("Timeout")
            .with_hint("give it more with --timeout, or less to read")
    }
}

/// A task that ends with its owner.
struct Owned<T>(JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for work on another thread; Ctrl-C and the clock end the waiting at once, whatever the work does.
async fn guarded<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
    running: &Running,
    clock: &Clock,
    progress: &Progress,
) -> Result<T> {
    let mut task = Owned(tokio::spawn(work));
    loop {
        tokio::select! {
            biased;
            () = running.wait() => return Err(interrupted()),
            () = clock.expired() => return Err(clock.error()),
            done = &mut task.0 => return done.map_err(lost_task)?,
            () = progress.tick() => progress.draw(None, 0),
        }
    }
}

fn lost_task(error: tokio::task::JoinError) -> Error {
    Error::internal(format!("the statement ended without an answer: {error}"))
}

/// An error of writing a result.
fn output_error(error: io::Error) -> Error {
    let code = if error.kind() == io::ErrorKind::BrokenPipe { "BrokenPipe" } else { "Output" };
    Error::unavailable(format!("cannot write the result: {error}")).with_code(code).with_source(error)
}

/// Where one answer goes.
enum Sink {
    File(OutputFile),
    Once(OutputFile),
    Paged(PagedOutput),
    Plain(io::BufWriter<io::Stdout>),
}

impl Sink {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) | Self::Once(file) => file,
            Self::Paged(paged) => paged,
            Self::Plain(out) => out,
        }
    }
}

/// What became of the rows.
#[derive(Debug, Clone, Copy, Default)]
struct Streamed {
    rows: u64,
    first: Option<Duration>,
}

impl Shell {
    /// Runs a statement and shows what it answers.
    pub async fn statement(&mut self, text: &str, show: Show) -> Result<()> {
        let sql = replaced(text, &self.variables);
        self.last_query = Some(sql.clone());
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        let answer = self.answer(&sql, &running, &clock).await?;
        let pins = answer.pins.clone();
        self.show(answer, show, &running, &clock).await?;
        drop(running);
        self.pin_used(&pins).await
    }

    /// The answer to a statement, not yet read.
    async fn answer(&mut self, sql: &str, running: &Running, clock: &Clock) -> Result<Answer> {
        let progress = Progress::new(self.interactive || !self.terminal.output);
        let session = Arc::clone(&self.session);
        let sql = sql.to_string();
        let result = guarded(async move { session.run_one(&sql).await }, running, clock, &progress).await?;
        if let StatementKind::Done(_) = result.kind {
            self.names_changed = true;
        }
        Ok(result.into())
    }

    /// Anything that takes time, under Ctrl-C and the clock.
    pub async fn under_guard<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        guarded(work, &running, &clock, &Progress::new(self.interactive)).await
    }

    /// Shows an answer made by a command.
    pub async fn present(&mut self, answer: Answer, show: Show) -> Result<()> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        self.show(answer, show, &running, &clock).await
    }

    /// The rows of a statement, not more than `limit` of them.
    pub async fn collect(&mut self, text: &str, limit: usize) -> Result<(SchemaRef, Vec<RecordBatch>, Vec<PinLine>)> {
        let sql = replaced(text, &self.variables);
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        let answer = self.answer(&sql, &running, &clock).await?;
        let Answer { schema, mut stream, pins, .. } = answer;
        let progress = Progress::new(self.interactive);
        let read = async move {
            let mut batches = Vec::new();
            let mut rows = 0;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                rows += batch.num_rows();
                batches.push(batch);
                if rows > limit {
                    return Err(Error::invalid(format!("the statement answers more than {limit} rows")));
                }
            }
            Ok(batches)
        };
        let batches = guarded(read, &running, &clock, &progress).await?;
        Ok((schema, batches, pins))
    }

    /// Pins what a statement read, when the user asked for that.
    async fn pin_used(&mut self, pins: &[PinLine]) -> Result<()> {
        if !self.settings.autopin {
            return Ok(());
        }
        for pin in pins.iter().filter(|pin| !pin.session) {
            if let Some(id) = pin.snapshot_id {
                let sql = format!("PIN TABLE {} AT (VERSION => {id})", super::names::quoted_path(&pin.table));
                self.session.run_one(&sql).await?;
            }
        }
        Ok(())
    }

    async fn show(&mut self, answer: Answer, show: Show, running: &Running, clock: &Clock) -> Result<()> {
        if let StatementKind::Done(word) = &answer.kind {
            let mut lines = vec![word.clone()];
            lines.extend(footer_pins(&answer));
            return self.say(&lines);
        }
        let mut sink = self.sink(&show);
        let shown = self.stream_into(answer, &show, &mut sink, running, clock).await;
        let paused = running.pause();
        let kept = self.put_back(sink, shown.is_ok());
        drop(paused);
        match (shown, kept) {
            (Err(error), _) => Err(error),
            (Ok(()), kept) => kept,
        }
    }

    /// Words of the shell: beside the rows in tables, on standard error where output is data.
    pub fn say(&self, lines: &[String]) -> Result<()> {
        if self.settings.quiet || lines.is_empty() {
            return Ok(());
        }
        let text = lines.join("\n") + "\n";
        if self.settings.format.is_data() || self.output.is_some() {
            eprint(&text);
            Ok(())
        } else {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_error)
        }
    }

    /// A text of the shell's own, paged when it does not fit.
    pub fn page(&self, text: &str) -> Result<()> {
        match self.terminal.size() {
            Some(size) if self.interactive && self.settings.paging == Paging::Auto => {
                let mut paged = PagedOutput::new(size);
                paged.write_all(text.as_bytes()).and_then(|()| paged.finish()).map_err(output_error)
            }
            _ => self.say(&[text.trim_end().to_string()]),
        }
    }

    fn sink(&mut self, show: &Show) -> Sink {
        if let Some(once) = self.once.take() {
            return Sink::Once(once);
        }
        if let Some(file) = self.output.take() {
            return Sink::File(file);
        }
        match self.terminal.size() {
            Some(size) if self.interactive && show.page && self.settings.paging == Paging::Auto => {
                Sink::Paged(PagedOutput::new(size))
            }
            _ => Sink::Plain(io::BufWriter::new(io::stdout())),
        }
    }

    fn put_back(&mut self, sink: Sink, good: bool) -> Result<()> {
        match sink {
            Sink::File(file) => {
                self.output = Some(file);
                Ok(())
            }
            Sink::Once(file) if good => file.keep(),
            // a file that is not whole does not appear
            Sink::Once(_) => Ok(()),
            Sink::Paged(paged) => paged.finish().map_err(output_error),
            Sink::Plain(mut out) => out.flush().map_err(output_error),
        }
    }

    async fn stream_into(
        &mut self,
        answer: Answer,
        show: &Show,
        sink: &mut Sink,
        running: &Running,
        clock: &Clock,
    ) -> Result<()> {
        let to_file = matches!(sink, Sink::File(_) | Sink::Once(_));
        let format = self.settings.format;
        let tabular = matches!(format, Format::Table | Format::Vertical);
        let size = if to_file { None } else { self.terminal.size() };
        let cap = if tabular && show.cap && size.is_some() && self.interactive && answer.plan.is_some() {
            self.settings.rows
        } else {
            None
        };
        let limits = Limits {
            rows: cap,
            width: size.map(|(columns, _)| columns),
            expanded: show.expanded.unwrap_or(self.settings.expanded),
        };
        let style = self.style();
        let style = if to_file { super::render::Style { color: false, ..style } } else { style };
        let mut render = renderer(format, &answer.schema, &style, limits);
        let mut spool = cap.map(|cap| Spool::new(Arc::clone(&answer.schema), cap as u64 / 2));
        let footers = footer_pins(&answer);
        let Answer { stream, timing, plan, .. } = answer;
        // the line of progress must not stand between rows
        let buffered = matches!(sink, Sink::Paged(_)) || !self.terminal.output || to_file;
        let progress = Progress::new(buffered && (self.interactive || !self.terminal.output));

        let (sender, mut receiver) = mpsc::channel::<Result<RecordBatch>>(2);
        let mut reader = Owned(tokio::spawn(read_into(stream, sender)));
        let begun = Instant::now();
        let mut streamed = Streamed::default();
        render.begin(sink.writer()).map_err(output_error)?;
        let ended = loop {
            tokio::select! {
                biased;
                () = running.wait() => break Err(interrupted()),
                () = clock.expired() => break Err(clock.error()),
                batch = receiver.recv() => match batch {
                    // a reader that panicked closes its end too, and its rows are not all
                    None => break (&mut reader.0).await.map_err(lost_task),
                    Some(Err(error)) => break Err(error),
                    Some(Ok(batch)) => {
                        streamed.first.get_or_insert_with(|| begun.elapsed());
                        streamed.rows += batch.num_rows() as u64;
                        if let Some(spool) = &mut spool {
                            spool.push(&batch);
                        }
                        if !buffered {
                            super::progress::clear();
                        }
                        render.batch(&batch, sink.writer()).map_err(output_error)?;
                        sink.writer().flush().map_err(output_error)?;
                    }
                },
                () = progress.tick() => progress.draw(plan.as_ref(), streamed.rows),
            }
        };
        drop(progress);
        let read = begun.elapsed();
        if let Err(error) = ended {
            // a table shows what came; data stays open, so nobody takes it for whole
            if !format.is_data() && streamed.rows > 0 {
                render.end(sink.writer()).map_err(output_error)?;
                let note = format!("incomplete: {} rows came before the statement ended", grouped(streamed.rows));
                writeln!(sink.writer(), "{note}").map_err(output_error)?;
            }
            return Err(error);
        }
        render.end(sink.writer()).map_err(output_error)?;
        let hidden = spool.as_ref().map_or(0, |s| cap.map_or(0, |cap| s.total().saturating_sub(cap as u64)));
        if let Some(spool) = spool {
            self.spool = (hidden > 0).then_some(spool);
        }
        let mut lines = Vec::new();
        if show.footer {
            let timing = self.settings.timing.then(|| told(&timing, read, clock.started.elapsed(), plan.as_ref()));
            lines.push(counted(streamed.rows, cap, timing));
            lines.extend(footers);
        }
        if self.settings.quiet {
            lines.clear();
            // rows left out are told however quiet
            if hidden > 0 {
                lines.push(counted(streamed.rows, cap, None));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        let text = lines.join("\n") + "\n";
        if format.is_data() || to_file {
            sink.writer().flush().map_err(output_error)?;
            eprint(&text);
        } else {
            sink.writer().write_all(text.as_bytes()).map_err(output_error)?;
        }
        Ok(())
    }
}

async fn read_into(mut stream: SendableRecordBatchStream, sender: mpsc::Sender<Result<RecordBatch>>) {
    while let Some(batch) = stream.next().await {
        let failed = batch.is_err();
        if sender.send(batch.map_err(Error::from)).await.is_err() || failed {
            return;
        }
    }
}

fn footer_pins(answer: &Answer) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for pin in &answer.pins {
        let line = format!("pin: {}{}", pin.text, if pin.session { " (session)" } else { "" });
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.extend(answer.notices.iter().map(|notice| format!("notice: {notice}")));
    lines
}

/// `12 rows (0.41 s: …)`
fn counted(rows: u64, cap: Option<usize>, timing: Option<String>) -> String {
    let mut text = match cap {
        Some(cap) if rows > cap as u64 => {
            format!("showing {cap} of {} rows; \\more shows the rest", grouped(rows))
        }
        _ if rows == 1 => "1 row".to_string(),
        _ => format!("{} rows", grouped(rows)),
    };
    if let Some(timing) = timing {
        text.push_str(&format!(" ({timing})"));
    }
    text
}

/// The time with its parts.
fn told(timing: &Timing, read: Duration, total: Duration, plan: Option<&Arc<dyn ExecutionPlan>>) -> String {
    let mut parts = vec![format!("plan {}", short(timing.resolve + timing.plan))];
    if !timing.manifests.is_zero() {
        parts.push(format!("manifests {}", short(timing.manifests)));
    }
    parts.push(format!("read {}", short(read)));
    let merging = plan.map(|plan| Work::of(plan).merging).unwrap_or_default();
    if !merging.is_zero() {
        parts.push(format!("merge {}", short(merging)));
    }
    format!("{:.2} s: {}", total.as_secs_f64(), parts.join(", "))
}

fn short(time: Duration) -> String {
    if time < Duration::from_millis(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    } else if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::super::args::Args;
    use super::super::program::open;
    use super::*;
    use crate::error::ErrorKind;

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_before_a_panic_are_not_the_whole_answer() {
        let dir = tempfile::tempdir().unwrap();
        let words = ["lakepin", "--quiet", "-w", dir.path().to_str().unwrap()];
        let args = Args::try_parse_all(words.map(Into::into)).unwrap();
        std::fs::create_dir(dir.path().join("d.db")).unwrap();
        let mut shell = open(&args.common, false).await.unwrap();
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        for (panics, kept) in [(true, false), (false, true)] {
            let mut answer = Answer::of_batches(batch.schema(), Vec::new()).unwrap();
            let rows = stream::iter([Ok(batch.clone())]).chain(stream::poll_fn(move |_| {
                assert!(!panics, "a reader that panics");
                std::task::Poll::Ready(None)
            }));
            answer.stream = Box::pin(RecordBatchStreamAdapter::new(batch.schema(), rows));
            let file = dir.path().join("rows.csv");
            shell.once = Some(OutputFile::create(&file).unwrap());
            let shown = shell.present(answer, Show::default()).await;
            assert_eq!(shown.map_err(|e| e.kind()), if panics { Err(ErrorKind::Internal) } else { Ok(()) });
            assert_eq!(file.exists(), kept, "a file appears when it is whole");
        }
    }
}
