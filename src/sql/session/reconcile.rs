//! `RECONCILE`: carried out, as rows or as a report.

use std::sync::Arc;

use datafusion::datasource::MemTable;

use super::{Run, Session, one, rows};
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::query::ScanLog;
use crate::recon::compare::{Report, Sink};
use crate::sql::deep_stack::{DeepStack, nesting};
use crate::sql::reconcile;
use crate::sql::result::{PinLine, StatementResult};
use crate::sql::statements::{self, Command, Reconcile};

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

impl Session {
    /// Compares what a `RECONCILE` statement says; `sink` takes every finding, the examples of the report are the first.
    ///
    /// # Errors
    /// Another statement; sides that cannot be compared, or that changed meanwhile.
    pub async fn reconcile(&self, sql: &str, sink: Option<Sink>) -> Result<Reconciled> {
        let mut notices = Vec::new();
        let tokens = self.bound(one(sql)?, true)?;
        let noted = self.noting(&tokens);
        let nesting = nesting(&tokens)?;
        let Command::Reconcile(asked) = statements::parse(tokens, &mut notices)? else {
            return Err(Error::invalid("a RECONCILE statement was expected").with_code("Syntax"));
        };
        let run = self.begin(ScanLog::new(), notices)?;
        let compared = DeepStack::of(nesting).wait(self.compared(&run, &asked, sink)).await;
        if let Some(noted) = noted {
            match &compared {
                Ok(_) => noted.whole(&run.readings(), 0),
                Err(error) => noted.failed(error),
            }
        }
        let report = compared?;
        Ok(Reconciled { report, pins: run.lines(false), notices: run.notices() })
    }

    async fn compared(&self, run: &Run, asked: &Reconcile, sink: Option<Sink>) -> Result<Report> {
        let into = match &asked.into {
            Some(name) => {
                let (database, name) = self.table_name(name)?;
                self.check_home(&database).await?;
                self.check_free(run, &database, &name, false, false).await?;
                Some((database, name))
            }
            None => None,
        };
        let report = reconcile::plan(&run.statement, &run.state, asked, sink).await?.run().await?;
        if let Some((database, name)) = into {
            let table = MemTable::try_new(Report::schema(), vec![vec![report.rows()?]])?;
            self.settings().put_local(&database, &name, Arc::new(table));
        }
        Ok(report)
    }

    pub(super) async fn reconcile_rows(&self, run: &Run, asked: &Reconcile) -> Result<StatementResult> {
        let report = self.compared(run, asked, None).await?;
        Ok(rows(report.rows()?, run))
    }
}
