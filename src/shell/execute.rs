//! One statement from text to an answer, cancelled by Ctrl-C or time.

use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::footer::{self, Closing};
use super::interrupt::{Running, interrupted};
use super::language::{Language, both, done};
use super::pager::{PagedOutput, Paging};
use super::progress::{Progress, Stage};
use super::render::width::{visible, wrapped};
use super::render::{Expanded, Word};
use super::report::eprint;
use super::state::Shell;
use super::variables::replaced;
use super::workers::Workers;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::sql::{
    BATCH, END_OF_INPUT, PinLine, Readings, RequestCounts, Rule, ScanProgress, Scanned, StatementKind, StatementResult,
    Timing,
};

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
    /// The same, to be kept.
    pub readings: Readings,
    /// What the reader should know.
    pub notices: Vec<Notice>,
    /// Time until the first row was asked for.
    pub timing: Timing,
    /// What is read.
    pub scanned: Option<Scanned>,
    /// What decided about the files of `EXPLAIN FILES`.
    pub rules: Vec<Rule>,
    /// Plan with its metrics.
    pub plan: Option<Arc<dyn ExecutionPlan>>,
    /// Digits of a second that columns declare.
    pub digits: Vec<Option<u8>>,
    /// Requests to the store before the statement began.
    pub requests: Option<RequestCounts>,
    /// Which of many, when it is watched.
    pub turn: Option<u64>,
    /// What a comparison ends in that found differences, when its rows are shown.
    pub different: Option<String>,
}

impl From<StatementResult> for Answer {
    fn from(result: StatementResult) -> Self {
        let StatementResult {
            kind,
            schema,
            stream,
            pins,
            readings,
            notices,
            timing,
            scanned,
            rules,
            plan,
            digits,
            different,
        } = result;
        Self {
            kind,
            schema,
            stream,
            pins,
            readings,
            notices,
            timing,
            scanned,
            rules,
            plan,
            digits,
            requests: None,
            turn: None,
            different,
        }
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
            readings: Readings::default(),
            notices: Vec::new(),
            timing: Timing::default(),
            scanned: None,
            rules: Vec::new(),
            plan: None,
            digits: Vec::new(),
            requests: None,
            turn: None,
            different: None,
        })
    }
}

/// All rows of an answer, and what they were computed on.
pub struct Collected {
    /// Columns.
    pub schema: SchemaRef,
    /// Rows.
    pub batches: Vec<RecordBatch>,
    /// Tables read.
    pub pins: Vec<PinLine>,
    /// What the reader should know.
    pub notices: Vec<Notice>,
    /// What decided about the files of `EXPLAIN FILES`.
    pub rules: Vec<Rule>,
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Records in place of a grid.
    pub expanded: Option<Expanded>,
    /// Whether a table on a terminal may leave rows out.
    pub cap: bool,
    /// Whether the number of rows is told beside the pins.
    pub footer: bool,
    /// Whether a pager may start.
    pub page: bool,
    /// Whether texts of a grid may be cut, so that it fits the terminal.
    pub shrink: bool,
    /// Column whose texts are not cut for that.
    pub keep: Option<&'static str>,
    /// Whether no cell is cut, however long it is.
    pub whole: bool,
    /// Whether its columns `identifier` and `watermark` are those of commits, some of whose numbers are words.
    pub commits: bool,
    /// Whether pins and notices are told.
    pub notes: bool,
    /// Number of the first record.
    pub first: u64,
}

impl Default for Show {
    fn default() -> Self {
        Self {
            expanded: None,
            cap: true,
            footer: true,
            page: true,
            shrink: false,
            keep: None,
            whole: false,
            commits: false,
            notes: true,
            first: 1,
        }
    }
}

impl Show {
    /// A listing: every row, not counted, as a grid where that can be.
    pub const LISTING: Self = Self {
        expanded: None,
        cap: false,
        footer: false,
        page: true,
        shrink: true,
        keep: None,
        whole: false,
        commits: false,
        notes: true,
        first: 1,
    };
}

/// What people read in place of numbers that commits are marked with.
pub fn commit_words(language: Language) -> Vec<Word> {
    // commands take it as it is in any language
    let batch = Word { column: "identifier", number: BATCH, text: "batch" };
    let end = both("end of input", "输入已结束").of(language);
    vec![batch, Word { column: "watermark", number: END_OF_INPUT / 1_000, text: end }]
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

    /// Time since then.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits until the time is up.
    pub async fn expired(&self) {
        match self.limit {
            Some(limit) => tokio::time::sleep_until((self.started + limit).into()).await,
            None => std::future::pending().await,
        }
    }

    /// What a statement that had no more time ends with.
    pub fn error(&self) -> Error {
        let limit = self.limit.unwrap_or_default().as_secs_f64();
        Error::exhausted(format!("the statement took longer than {limit} s and was cancelled"))
            .with_code("Timeout")
            .with_hint("give it more with --timeout, or less to read")
    }
}

/// Waits for work on the threads of `workers`; Ctrl-C and the clock end the waiting at once, whatever the work does.
async fn guarded<T: Send + 'static>(
    workers: &Workers,
    work: impl Future<Output = Result<T>> + Send + 'static,
    running: &Running,
    clock: &Clock,
    progress: &Progress,
    stage: &Stage,
) -> Result<T> {
    // what was cancelled before may keep them
    workers.ready().await;
    let mut owned = workers.spawn(work);
    loop {
        tokio::select! {
            biased;
            () = running.wait() => return Err(interrupted()),
            () = clock.expired() => return Err(clock.error()),
            done = &mut owned.task => return done.map_err(lost_task)?,
            () = progress.tick() => progress.draw(stage, 0),
        }
    }
}

fn too_many_rows(limit: usize) -> Error {
    let rows = if limit == 1 { "one row".to_string() } else { format!("{limit} rows") };
    Error::invalid(format!("the statement answers more than {rows}"))
        .with_code("TooManyRows")
        .with_hint("ask for fewer: add WHERE or LIMIT, or count them")
}

/// The error of a task that panicked.
pub fn lost_task(error: tokio::task::JoinError) -> Error {
    Error::internal(format!("the statement ended without an answer: {error}"))
}

impl Shell {
    /// Runs a statement that somebody typed: the last one from now on.
    pub async fn typed(&mut self, text: &str, show: Show) -> Result<()> {
        self.last_query = Some(replaced(text, &self.variables));
        self.statement(text, show).await
    }

    /// Runs a statement, its variables replaced, and shows what it answers.
    pub async fn statement(&mut self, text: &str, show: Show) -> Result<()> {
        let sql = replaced(text, &self.variables);
        self.run_sql(&sql, show).await
    }

    /// Runs the last statement again.
    pub async fn again(&mut self, show: Show) -> Result<()> {
        let Some(sql) = self.last_query.clone() else {
            return Err(Error::invalid("which statement? there was none yet").with_code("Usage"));
        };
        self.run_sql(&sql, show).await
    }

    async fn run_sql(&mut self, sql: &str, show: Show) -> Result<()> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        let answer = match self.answer(sql, &running, &clock).await {
            Ok(answer) => answer,
            Err(error) => {
                // what was meant for this statement is not for the next one
                if let Some(once) = self.once.take() {
                    self.tell_unwritten(&once);
                }
                return Err(error);
            }
        };
        let (readings, different) = (answer.readings.clone(), answer.different.clone());
        self.show(answer, show, &running, &clock).await?;
        drop(running);
        self.keep(&readings)?;
        // as of the command of that name: scripts go by the exit code
        different.map_or(Ok(()), |line| Err(Error::invalid(line).with_code("Different")))
    }

    /// Runs a statement as it stands, shows what it answers, and gives the number of its rows.
    pub async fn counted(&mut self, sql: &str, show: Show) -> Result<u64> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        let mut answer = self.answer(sql, &running, &clock).await?;
        let readings = answer.readings.clone();
        let rows = Arc::new(AtomicU64::new(0));
        let (counter, schema) = (Arc::clone(&rows), Arc::clone(&answer.schema));
        let counting = answer.stream.inspect(move |batch| {
            if let Ok(batch) = batch {
                counter.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            }
        });
        answer.stream = Box::pin(RecordBatchStreamAdapter::new(schema, counting));
        self.show(answer, show, &running, &clock).await?;
        drop(running);
        self.keep(&readings)?;
        Ok(rows.load(Ordering::Relaxed))
    }

    /// The answer to a statement, not yet read.
    async fn answer(&mut self, sql: &str, running: &Running, clock: &Clock) -> Result<Answer> {
        let progress = self.progress();
        let session = Arc::clone(&self.session);
        let before = session.warehouse().requests();
        let planning = Arc::new(ScanProgress::default());
        let (sql, told) = (sql.to_string(), Arc::clone(&planning));
        let work = async move { session.run_watched(&sql, told).await };
        let result = guarded(&self.workers, work, running, clock, &progress, &Stage::Planning(planning)).await?;
        if let StatementKind::Done(_) = result.kind {
            self.names_changed = true;
        }
        self.hidden_rows = result.scanned.is_some_and(|scanned| scanned.hidden_files > 0);
        Ok(Answer { requests: Some(before), ..result.into() })
    }

    /// Anything that takes time, under Ctrl-C and the clock.
    pub async fn under_guard<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        guarded(&self.workers, work, &running, &clock, &self.progress(), &Stage::Working).await
    }

    /// Shows an answer made by a command.
    pub async fn present(&mut self, answer: Answer, show: Show) -> Result<()> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        self.show(answer, show, &running, &clock).await
    }

    /// The rows of a statement, variables replaced, not more than `limit` of them.
    pub async fn collect(&mut self, text: &str, limit: usize) -> Result<Collected> {
        let sql = replaced(text, &self.variables);
        self.collect_sql(&sql, limit).await
    }

    /// The rows of a statement as it stands, not more than `limit` of them.
    pub async fn collect_sql(&mut self, sql: &str, limit: usize) -> Result<Collected> {
        let running = self.interrupts.running();
        let clock = Clock::start(self.settings.timeout);
        let answer = self.answer(sql, &running, &clock).await?;
        let Answer { schema, mut stream, pins, notices, rules, plan, .. } = answer;
        let read = async move {
            let mut batches = Vec::new();
            let mut rows = 0;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                rows += batch.num_rows();
                batches.push(batch);
                if rows > limit {
                    return Err(too_many_rows(limit));
                }
            }
            Ok(batches)
        };
        let stage = plan.map_or(Stage::Working, Stage::Reading);
        let batches = guarded(&self.workers, read, &running, &clock, &self.progress(), &stage).await?;
        Ok(Collected { schema, batches, pins, notices, rules })
    }

    /// Pins what a statement read, when the user asked for that.
    fn keep(&self, readings: &Readings) -> Result<()> {
        if !self.settings.autopin {
            return Ok(());
        }
        let told = self.session.keep(readings);
        self.say(&self.notes(&[], &told))
    }

    async fn show(&mut self, answer: Answer, show: Show, running: &Running, clock: &Clock) -> Result<()> {
        if let StatementKind::Done(word) = &answer.kind {
            if self.settings.json_meta && !(answer.pins.is_empty() && answer.notices.is_empty()) {
                self.say(&[done(word, self.settings.language)])?;
                eprint(&Closing::of(&answer, false).json());
                return Ok(());
            }
            let mut lines = vec![done(word, self.settings.language)];
            lines.extend(self.notes(&answer.pins, &answer.notices));
            return self.say(&lines);
        }
        let mut sink = self.sink(&show)?;
        let to_file = sink.is_output();
        let shown = self.stream_into(answer, &show, &mut sink, running, clock).await;
        let interrupts = self.interrupts.clone();
        let paused = interrupts.pause();
        let kept = self.put_back(sink, shown.is_ok());
        drop(paused);
        let closing = shown?;
        kept?;
        // what a program prints comes before what is said of it
        if let Some(closing) = closing {
            let text = self.closing_text(&closing, &show);
            if to_file || self.settings.format.is_data() { eprint(&text) } else { self.print(&text)? }
        }
        Ok(())
    }

    /// What a command read that shows no rows: pins and notices, or the line of JSON in their place.
    pub fn tell_read(&self, collected: &Collected) -> Result<()> {
        if self.settings.json_meta {
            eprint(&Closing::of_collected(collected).json());
            return Ok(());
        }
        self.say(&self.notes(&collected.pins, &collected.notices))
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
            self.print(&text)
        }
    }

    /// A text to standard output.
    pub fn print(&self, text: &str) -> Result<()> {
        super::progress::clear();
        let text = if self.terminal.output { visible(text) } else { text.into() };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_error)
    }

    /// A text that is a result: to the output file where there is one.
    pub fn document(&mut self, text: &str) -> Result<()> {
        let line = text.trim_end_matches('\n');
        if let Some(mut once) = self.once.take() {
            once.line(line)?;
            once.end_result(true)?;
            return once.close();
        }
        match &mut self.output {
            Some(output) => {
                output.line(line)?;
                output.end_result(true)
            }
            None => self.print(text),
        }
    }

    /// Pins and notices as lines, cut between words where the terminal ends.
    pub(super) fn notes(&self, pins: &[PinLine], notices: &[Notice]) -> Vec<String> {
        let mut lines = footer::notes(pins, notices, self.settings.language);
        if self.terminal.output || self.terminal.errors {
            // names are data too
            lines.iter_mut().for_each(|line| *line = visible(line).into_owned());
        }
        match self.terminal.size() {
            Some((columns, _)) => lines.iter().map(|line| wrapped(line, columns)).collect(),
            None => lines,
        }
    }

    /// A text of the shell's own, paged when it does not fit.
    pub fn page(&self, text: &str) -> Result<()> {
        match self.terminal.size() {
            Some(size) if self.pages() => {
                let _paused = self.interrupts.pause();
                let mut paged = PagedOutput::new(size);
                paged.write_all(visible(text).as_bytes()).and_then(|()| paged.finish()).map_err(output_error)
            }
            _ => self.say(&[text.trim_end().to_string()]),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress::new(self.settings.language, self.session.warehouse())
    }

    /// Whether what does not fit the screen is paged: a dumb terminal has no pages.
    pub fn pages(&self) -> bool {
        self.interactive && self.settings.paging == Paging::Auto && !self.terminal.dumb
    }
}

/// An error of writing to standard output or a pager.
pub fn output_error(error: io::Error) -> Error {
    let code = if error.kind() == io::ErrorKind::BrokenPipe { "BrokenPipe" } else { "Output" };
    Error::unavailable(format!("cannot write the result: {error}")).with_code(code).with_source(error)
}
