//! `PIN … ALIGN`: states of several tables that belong together.
//!
//! | by | guarantee |
//! |---|---|
//! | watermark | each has at least all events up to it, as far as its watermark is honest; it may have later ones |
//! | timestamp | each as it was committed at that moment: nothing about completeness |
//! | identifier of a user | each after the same checkpoint of one job: the strongest |

use std::sync::Arc;

use super::Run;
use super::pins::Wanted;
use crate::error::{Error, Result};
use crate::notice::NoticeKind;
use crate::recon::gate::Gate;
use crate::snapshot::{PinRequest, Table};
use crate::spec::{BATCH, CommitIdentifier, END_OF_INPUT, Snapshot};
use crate::sql::constant::{instant, integer, text, watermark};
use crate::sql::names::TableName;
use crate::sql::selector::Selection;
use crate::sql::statements::Align;

/// Gives each table the snapshot that belongs to the others.
pub(super) async fn align(run: &Run, align: &Align, wanted: &mut [Wanted]) -> Result<()> {
    let (state, zone) = (&run.state, run.statement.zone());
    let mut tables = Vec::with_capacity(wanted.len());
    for one in wanted.iter() {
        let table = run.statement.table(&one.database, &one.table).await?;
        let parts = TableName::parse(&one.table);
        tables.push(run.statement.on_branch(table, parts, &Selection::none()).await?.0);
    }
    let request = match align {
        Align::Timestamp(expr) => PinRequest::TimestampMillis(instant(state, expr, zone)?),
        Align::Watermark(expr) => watermark(state, expr, zone)?,
        Align::NewestWatermark => PinRequest::Watermark(smallest_of_newest(&tables).await?),
        Align::Identifier(of) => {
            let (identifier, user) = (&of.identifier, &of.user);
            let user = text(user).ok_or_else(|| wrong(user, "commit user"))?;
            let number = integer(identifier)
                .or_else(|| Some(CommitIdentifier::parse(text(identifier)?)?.0))
                .ok_or_else(|| wrong(identifier, "commit identifier"))?;
            for (one, table) in wanted.iter_mut().zip(&tables) {
                let snapshot = newest_up_to(table, user, number).await?;
                if snapshot.commit_identifier != number {
                    run.statement.notice(NoticeKind::AlignedBefore {
                        table: table.name(),
                        user: user.to_string(),
                        wanted: CommitIdentifier(number).to_string(),
                        found: CommitIdentifier(snapshot.commit_identifier).to_string(),
                    });
                }
                one.selection.request = PinRequest::SnapshotId(snapshot.id.0);
            }
            return Ok(());
        }
    };
    let by_watermark = matches!(request, PinRequest::Watermark(_) | PinRequest::WatermarkTime(_));
    for (one, table) in wanted.iter_mut().zip(&tables) {
        one.selection.request = request.clone();
        if by_watermark {
            let mut gate = Gate::new(table, Vec::new());
            gate.look().await?;
            let raisers = gate.raisers();
            if raisers.len() > 1 {
                let users = raisers.into_keys().map(str::to_string).collect();
                run.statement.notice(NoticeKind::SeveralRaiseWatermark { table: table.name(), users });
            }
        }
    }
    Ok(())
}

fn wrong(expr: &datafusion::sql::sqlparser::ast::Expr, what: &str) -> Error {
    Error::invalid(format!("{expr} is no {what}")).with_code("BadArgument")
}

/// The smallest of the newest watermarks of some tables.
async fn smallest_of_newest(tables: &[Arc<Table>]) -> Result<i64> {
    let mut smallest: Option<i64> = None;
    for table in tables {
        let snapshots = table.snapshots().await?;
        let newest = snapshots.iter().rev().find_map(|snapshot| snapshot.watermark);
        let Some(newest) = newest else {
            return Err(Error::not_found("the table has no watermark, so there is no common one")
                .with_code("NoWatermark")
                .with_context("table", table.name())
                .with_hint("ALIGN ON TIMESTAMP takes what was committed at a moment, ALIGN ON IDENTIFIER a checkpoint of one job"));
        };
        // input that has ended holds nobody back
        if newest != END_OF_INPUT {
            smallest = Some(smallest.map_or(newest, |smallest| smallest.min(newest)));
        }
    }
    Ok(smallest.unwrap_or(END_OF_INPUT))
}

/// The newest snapshot of a user's commits up to an identifier: a checkpoint without data makes none.
async fn newest_up_to(table: &Table, user: &str, number: i64) -> Result<Arc<Snapshot>> {
    let snapshots = table.snapshots().await?;
    let of_user = snapshots.iter().filter(|snapshot| snapshot.commit_user == user);
    let reached = |snapshot: &&Arc<Snapshot>| match snapshot.commit_identifier {
        BATCH => number == BATCH,
        identifier => identifier <= number,
    };
    let best = of_user.clone().filter(reached).max_by_key(|snapshot| (snapshot.commit_identifier, snapshot.id));
    best.cloned().ok_or_else(|| {
        let known = of_user.clone().next_back().map_or_else(
            || format!("no snapshot of user '{user}' is kept"),
            |last| {
                format!(
                    "the snapshots of user '{user}' that are kept end at {}",
                    CommitIdentifier(last.commit_identifier)
                )
            },
        );
        Error::not_found(format!("no commit of '{user}' up to {} is kept: {known}", CommitIdentifier(number)))
            .with_code("CommitNotFound")
            .with_context("table", table.name())
            .with_hint("SELECT * FROM t$commits shows who committed what")
    })
}
