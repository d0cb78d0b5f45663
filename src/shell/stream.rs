//! Rows of an answer to where they go: streamed with bounded memory, closed with what was read.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use futures::StreamExt;
use tokio::sync::mpsc;

use super::execute::{Answer, Clock, Show, commit_words, lost_task, output_error};
use super::footer::Closing;
use super::interrupt::{Running, interrupted};
use super::language::told;
use super::output::Output;
use super::pager::PagedOutput;
use super::progress::Stage;
use super::render::width::{grouped, wrapped};
use super::render::{Escapes, Expanded, Format, Limits, Style, Visible, renderer, rows_before_gap};
use super::report::eprint;
use super::spool::Spool;
use super::state::{CELL_WIDTH, Shell};
use crate::error::{Error, Result};

/// Where one answer goes.
pub enum Sink {
    /// Standing output of `\o` and `-o`.
    Standing(Output),
    /// Output of this answer only.
    Once(Output),
    /// A terminal that may page.
    Paged(Visible<PagedOutput>),
    /// Standard output.
    Plain(Visible<io::BufWriter<io::Stdout>>),
}

impl Sink {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Standing(output) | Self::Once(output) => output,
            Self::Paged(paged) => paged,
            Self::Plain(out) => out,
        }
    }

    fn output(&self) -> Option<&Output> {
        match self {
            Self::Standing(output) | Self::Once(output) => Some(output),
            Self::Paged(_) | Self::Plain(_) => None,
        }
    }

    /// Whether it is a file or a program.
    pub(super) fn is_output(&self) -> bool {
        self.output().is_some()
    }

    /// Whether a pager has begun to show it.
    fn is_paging(&self) -> bool {
        matches!(self, Self::Paged(paged) if paged.inner.has_begun())
    }

    fn error(&self, error: io::Error) -> Error {
        match self.output() {
            Some(output) => output.error(error),
            None => output_error(error),
        }
    }

    /// Whether who reads may leave early, as a pager or `head` does.
    fn may_close(&self) -> bool {
        matches!(self, Self::Paged(_)) || self.output().is_some_and(Output::is_program)
    }

    /// Whether an error says that who reads has left, and may.
    fn was_left(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::BrokenPipe && self.may_close()
    }
}

impl Shell {
    /// The format of an answer: records where it was asked for them, what the name of a file says unless another was
    /// chosen.
    pub(super) fn format_for(&self, output: Option<&Output>, show: &Show) -> Format {
        let named = output.and_then(Output::format).filter(|_| !self.settings.format_chosen);
        let format = named.unwrap_or(self.settings.format);
        match show.expanded {
            Some(Expanded::On) if !format.is_binary() => Format::Vertical,
            _ => format,
        }
    }

    /// Where the next answer goes.
    pub(super) fn sink(&mut self, show: &Show) -> Result<Sink> {
        let sink = if let Some(once) = self.once.take() {
            Sink::Once(once)
        } else if let Some(output) = self.output.take() {
            Sink::Standing(output)
        } else {
            let shown = self.format_for(None, show);
            let escapes = if self.terminal.output { Escapes::on_terminal(shown) } else { Escapes::None };
            match self.terminal.size() {
                Some(size) if show.page && self.pages() => {
                    Sink::Paged(Visible { inner: PagedOutput::new(size), escapes })
                }
                _ => Sink::Plain(Visible { inner: io::BufWriter::new(io::stdout()), escapes }),
            }
        };
        let format = self.format_for(sink.output(), show);
        if !format.is_binary() {
            return Ok(sink);
        }
        let name = format.name();
        let refusal = match &sink {
            Sink::Standing(output) if format == Format::Parquet && output.results() > 0 => {
                Some(format!("{} holds a result already, and a {name} file holds one", output.name()))
            }
            Sink::Plain(_) if format == Format::Parquet && self.printed > 0 => {
                Some(format!("standard output holds a result already, and a {name} file holds one"))
            }
            Sink::Plain(_) | Sink::Paged(_) if self.terminal.output => Some(format!("a terminal cannot show {name}")),
            _ => None,
        };
        let Some(refusal) = refusal else { return Ok(sink) };
        if let Sink::Standing(output) = sink {
            self.output = Some(output);
        }
        Err(Error::invalid(refusal).with_code("Usage").with_hint(format!("write \\once FILE.{name} before the query")))
    }

    /// Ends the answer's part of its sink.
    pub(super) fn put_back(&mut self, sink: Sink, good: bool) -> Result<()> {
        match sink {
            Sink::Standing(mut output) => {
                let ended = output.end_result(good);
                if !good {
                    self.tell_partial(&output);
                }
                self.output = Some(output);
                ended
            }
            Sink::Once(output) if good => output.close(),
            Sink::Once(output) => {
                self.tell_partial(&output);
                if output.keeps_partial() == Some(false) { Ok(()) } else { output.close() }
            }
            Sink::Paged(paged) => paged.inner.finish().map_err(output_error),
            Sink::Plain(mut out) => {
                self.printed += u64::from(good);
                out.flush().map_err(output_error)
            }
        }
    }

    /// Says that a file does not appear.
    pub(super) fn tell_unwritten(&self, output: &Output) {
        let (language, name) = (self.settings.language, output.name());
        let text =
            told!(language, "{name} was not written: there was an error", "{name} 没有写出：有错误", name = name);
        eprint(&format!("{}{text}\n", super::pager::notice_mark(language)));
    }

    /// Says what became of a result that is not whole.
    fn tell_partial(&self, output: &Output) {
        let Some(keeps) = output.keeps_partial() else { return };
        let (language, name) = (self.settings.language, output.name());
        let text = if keeps {
            told!(language, "{name} keeps what came before the error", "{name} 保留了出错之前的行", name = name)
        } else {
            told!(language, "nothing of this statement was written to {name}", "这条语句没有写入 {name}", name = name)
        };
        eprint(&format!("{}{text}\n", super::pager::notice_mark(language)));
    }

    pub(super) async fn stream_into(
        &mut self,
        answer: Answer,
        show: &Show,
        sink: &mut Sink,
        running: &Running,
        clock: &Clock,
    ) -> Result<Option<Closing>> {
        let to_file = sink.output().is_some();
        let format = self.format_for(sink.output(), show);
        let language = self.settings.language;
        let size = if to_file { None } else { self.terminal.size() };
        let may_cap = matches!(format, Format::Table | Format::Vertical) && show.cap && self.interactive;
        let cap = self
            .settings
            .rows
            .filter(|_| may_cap && size.is_some() && !answer.plan.as_ref().is_none_or(lies_in_memory));
        let limits = Limits {
            rows: cap,
            width: size.map(|(columns, _)| columns),
            expanded: show.expanded.unwrap_or(self.settings.expanded),
            shrink: show.shrink,
            keep: show.keep,
            first: show.first,
        };
        // only a screen has no room for what is long
        let cell_width = match self.settings.cell_width {
            _ if show.whole || to_file => 0,
            Some(chosen) => chosen,
            None => size.map_or(0, |_| CELL_WIDTH),
        };
        let words = if show.commits { commit_words(self.settings.language) } else { Vec::new() };
        let digits = answer.digits.clone();
        let style = Style { color: self.style().color && !to_file, cell_width, words, digits, ..self.style() };
        let mut render = renderer(format, &answer.schema, &style, limits);
        let mut spool = cap.map(|cap| Spool::new(&answer, rows_before_gap(cap) as u64));
        let mut closing = Closing::of(&answer, self.settings.timing && show.footer);
        let stage = answer.plan.clone().map_or(Stage::Working, Stage::Reading);
        // once rows stand on the screen, a line of progress would stand between them; those of a capped table come last
        let apart = matches!(sink, Sink::Paged(_)) || !self.terminal.output || to_file || cap.is_some();
        let mut progress = self.progress();

        let (sender, mut receiver) = mpsc::channel::<Result<RecordBatch>>(2);
        let mut reader = self.workers.spawn(read_into(answer.stream, sender));
        let begun = Instant::now();
        render.begin(sink.writer()).map_err(|e| sink.error(e))?;
        let ended = loop {
            tokio::select! {
                biased;
                () = running.wait() => break Err(interrupted()),
                () = clock.expired() => break Err(clock.error()),
                // before the rows: those that come without a pause would leave it no turn
                () = progress.tick() => progress.draw(&stage, closing.rows),
                batch = receiver.recv() => match batch {
                    // a reader that panicked closes its end too, and its rows are not all
                    None => break (&mut reader.task).await.map_err(lost_task),
                    Some(Err(error)) => break Err(error),
                    Some(Ok(batch)) => {
                        closing.rows += batch.num_rows() as u64;
                        if let Some(spool) = &mut spool {
                            spool.push(&batch);
                        }
                        if !apart {
                            progress.stop();
                        }
                        let written = render.batch(&batch, sink.writer()).and_then(|()| sink.writer().flush());
                        match written {
                            Ok(()) => {}
                            Err(e) if sink.was_left(&e) => {
                                closing.left = true;
                                break Ok(());
                            }
                            Err(e) => break Err(sink.error(e)),
                        }
                    }
                },
            }
        };
        drop(progress);
        closing.read = begun.elapsed();
        closing.total = clock.elapsed();
        if let Err(error) = ended {
            closing.failed = Some(error.code());
            // a table shows what came; data stays open, so nobody takes it for whole
            if matches!(format, Format::Table | Format::Vertical | Format::Markdown) && closing.rows > 0 {
                let n = grouped(closing.rows);
                let note = told!(
                    language,
                    "incomplete: {n} rows came before the statement ended",
                    "不完整：语句结束之前得到 {n} 行",
                    n = n
                );
                let _ = render.end(sink.writer()).and_then(|()| writeln!(sink.writer(), "{note}"));
            }
            if self.settings.json_meta {
                eprint(&closing.json());
            }
            return Err(error);
        }
        if !closing.left {
            match render.end(sink.writer()) {
                Err(e) if sink.was_left(&e) => closing.left = true,
                written => written.map_err(|e| sink.error(e))?,
            }
        }
        closing.shown = spool.as_ref().and(cap).map(|cap| cap as u64).filter(|cap| *cap < closing.rows);
        if let Some(spool) = spool {
            self.spool = closing.shown.is_some().then_some(spool);
        }
        // who leaves a pager before its end shall know what was read
        if self.settings.format.is_data() || to_file || closing.left || sink.is_paging() {
            return Ok(Some(closing));
        }
        let text = self.closing_text(&closing, show);
        match sink.writer().write_all(text.as_bytes()) {
            Err(e) if sink.was_left(&e) => Ok(Some(closing)),
            written => written.map(|()| None).map_err(|e| sink.error(e)),
        }
    }

    /// What stands under a result.
    pub(super) fn closing_text(&self, closing: &Closing, show: &Show) -> String {
        if self.settings.json_meta {
            return closing.json();
        }
        let mut lines = Vec::new();
        let language = self.settings.language;
        if self.settings.quiet {
            // rows left out are told however quiet
            lines.extend(closing.shown.map(|_| closing.counted(language)));
        } else {
            if show.footer {
                let line = closing.line(language, self.session.warehouse().requests());
                lines.push(self.terminal.size().map_or(line.clone(), |(columns, _)| wrapped(&line, columns)));
            }
            if show.notes {
                lines.extend(self.notes(&closing.pins, &closing.notices));
            }
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// Whether all rows of a plan are there already: metadata, answers of SHOW, VALUES. They are shown to the last.
fn lies_in_memory(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().all(lies_in_memory);
    }
    let in_memory = |source: &DataSourceExec| source.data_source().is::<MemorySourceConfig>();
    plan.downcast_ref::<DataSourceExec>().is_some_and(in_memory)
        || plan.is::<StreamingTableExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<EmptyExec>()
}

async fn read_into(mut stream: SendableRecordBatchStream, sender: mpsc::Sender<Result<RecordBatch>>) {
    while let Some(batch) = stream.next().await {
        let failed = batch.is_err();
        if sender.send(batch.map_err(Error::from)).await.is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::super::args::Args;
    use super::super::program::{Threads, open};
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn rows_before_a_panic_are_not_the_whole_answer() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let words = ["lakepin", "--quiet", "-w", dir.path().to_str().unwrap()];
        let args = Args::try_parse_all(words.map(Into::into)).unwrap();
        std::fs::create_dir(dir.path().join("d.db")).unwrap();
        let threads = Threads::start().unwrap();
        let mut shell = threads.clock.block_on(open(&args.common, &threads, false)).unwrap();
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        for (panics, kept) in [(true, false), (false, true)] {
            let mut answer = Answer::of_batches(batch.schema(), Vec::new()).unwrap();
            let rows = stream::iter([Ok(batch.clone())]).chain(stream::poll_fn(move |_| {
                assert!(!panics, "a reader that panics");
                std::task::Poll::Ready(None)
            }));
            answer.stream = Box::pin(RecordBatchStreamAdapter::new(batch.schema(), rows));
            let file = out.path().join("rows.csv");
            shell.once = Some(Output::open(file.to_str().unwrap(), false, shell.session.warehouse()).unwrap());
            let shown = threads.clock.block_on(shell.present(answer, Show::default()));
            assert_eq!(shown.map_err(|e| e.kind()), if panics { Err(ErrorKind::Internal) } else { Ok(()) });
            assert_eq!(file.exists(), kept, "a file appears when it is whole");
        }
    }
}
