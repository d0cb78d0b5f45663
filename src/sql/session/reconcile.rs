//! `RECONCILE`: carried out, as rows or as a report.

use std::sync::Arc;

use datafusion::datasource::MemTable;

use super::journal::Noted;
use super::{Run, Session, one, rows};
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::query::ScanLog;
use crate::recon::compare::{Report, Sink};
use crate::recon::verdict::Verdict;
use crate::sql::deep_stack::{DeepStack, nesting};
use crate::sql::reconcile;
use crate::sql::result::{PinLine, StatementResult};
use crate::sql::statements::{self, Command, Reconcile, pin};
use crate::sql::verdicts;
use crate::storage::env::now_millis;

/// A report, and the tables that it was computed on.
#[derive(Debug)]
pub struct Reconciled {
    /// What was found.
    pub report: Report,
    /// The tables read and their pins.
    pub pins: Vec<PinLine>,
    /// What the reader should know.
    pub notices: Vec<Notice>,
}

/// A verdict, and the tables that it was computed on.
#[derive(Debug)]
pub struct Judged {
    /// What was found, and why.
    pub verdict: Verdict,
    /// The comparison; None: a count alone was given.
    pub report: Option<Report>,
    /// The tables read and their pins.
    pub pins: Vec<PinLine>,
    /// What the reader should know.
    pub notices: Vec<Notice>,
}

impl Session {
    /// Compares what a `RECONCILE` statement says, with or without its `VERDICT` clause, and tells which layer is
    /// responsible for what differs; `sink` takes every finding.
    ///
    /// # Errors
    /// As [`Self::reconcile`]. What is lost of the table's history is told in the verdict.
    pub async fn verdict(&self, sql: &str, sink: Option<Sink>) -> Result<Judged> {
        let (asked, nesting, run, noted) = self.reconciliation(sql)?;
        let judged = DeepStack::of(nesting).wait(self.judged(&run, &asked, sink)).await;
        Noted::ended(noted, &run.readings(), &judged);
        let (verdict, report) = judged?;
        let notices = if verdict.summary.clean { run.notices() } else { expiring(&run).await };
        Ok(Judged { verdict, report, pins: run.lines(false), notices })
    }

    fn reconciliation(&self, sql: &str) -> Result<(Box<Reconcile>, usize, Run, Option<Noted>)> {
        let mut notices = Vec::new();
        let tokens = self.bound(one(sql)?, true)?;
        let noted = self.noting(&tokens);
        let nesting = nesting(&tokens)?;
        let Command::Reconcile(asked) = statements::parse(tokens, &mut notices)? else {
            return Err(Error::invalid("a RECONCILE statement was expected").with_code("Syntax"));
        };
        let run = self.begin(ScanLog::new(), notices)?;
        Ok((asked, nesting, run, noted))
    }

    async fn judged(&self, run: &Run, asked: &Reconcile, sink: Option<Sink>) -> Result<(Verdict, Option<Report>)> {
        let into = self.free_name(run, asked).await?;
        let (verdict, report) = verdicts::judge(&run.statement, &run.state, asked, sink).await?;
        if let Some((database, name)) = into {
            let table = MemTable::try_new(Verdict::schema(), vec![vec![verdict.rows()?]])?;
            self.settings().put_local(&database, &name, Arc::new(table));
        }
        Ok((verdict, report))
    }

    /// The name under which the answer is kept, where it is to be.
    async fn free_name(&self, run: &Run, asked: &Reconcile) -> Result<Option<(String, String)>> {
        let Some(name) = &asked.into else { return Ok(None) };
        let (database, name) = self.table_name(name)?;
        self.check_home(&database).await?;
        self.check_free(run, &database, &name, false, false).await?;
        Ok(Some((database, name)))
    }

    /// Compares what a `RECONCILE` statement says; `sink` takes every finding, the examples of the report are the first.
    ///
    /// # Errors
    /// Another statement; sides that cannot be compared, or that changed meanwhile.
    pub async fn reconcile(&self, sql: &str, sink: Option<Sink>) -> Result<Reconciled> {
        let (asked, nesting, run, noted) = self.reconciliation(sql)?;
        if asked.verdict.is_some() {
            let more = Err(Error::invalid("a verdict is more than a comparison")
                .with_code("Syntax")
                .with_hint("leave VERDICT and THEIR COUNT out, or ask for the verdict: \\verdict in the shell"));
            Noted::ended(noted, &run.readings(), &more);
            return more;
        }
        let compared = DeepStack::of(nesting).wait(self.compared(&run, &asked, sink)).await;
        Noted::ended(noted, &run.readings(), &compared);
        let report = compared?;
        let notices = if report.verdict.is_clean() { run.notices() } else { expiring(&run).await };
        Ok(Reconciled { report, pins: run.lines(false), notices })
    }

    async fn compared(&self, run: &Run, asked: &Reconcile, sink: Option<Sink>) -> Result<Report> {
        let into = self.free_name(run, asked).await?;
        let comparison = reconcile::plan(&run.statement, &run.state, asked, sink).await?;
        let report = reconcile::run(&run.statement, comparison).await?;
        if let Some((database, name)) = into {
            let table = MemTable::try_new(Report::schema(), vec![vec![report.rows()?]])?;
            self.settings().put_local(&database, &name, Arc::new(table));
        }
        Ok(report)
    }

    pub(super) async fn reconcile_rows(&self, run: &Run, asked: &Reconcile) -> Result<StatementResult> {
        if asked.verdict.is_some() {
            let (verdict, _) = self.judged(run, asked, None).await?;
            let summary = &verdict.summary;
            let different = (!summary.clean).then(|| format!("{}: {}", summary.outcome, summary.line));
            return Ok(StatementResult { different, ..rows(verdict.rows()?, run) });
        }
        let report = self.compared(run, asked, None).await?;
        let different = (!report.verdict.is_clean()).then(|| report.line.clone());
        Ok(StatementResult { different, ..rows(report.rows()?, run) })
    }
}

/// The notices of a run that found differences: who looks for their causes has to know how long its states are kept.
async fn expiring(run: &Run) -> Vec<Notice> {
    let mut notices = run.notices();
    for used in run.statement.used() {
        // a forecast that cannot be made takes nothing from the answer
        if let Ok((_, Some(warning))) = pin::prospects(&used.pin, run.statement.zone(), now_millis()).await {
            notices.push(warning);
        }
    }
    notices
}
