//! `paimon_commit_rate('db.t', window => INTERVAL '1' HOUR)`: commits by stretches of time and user.

use super::made::Made;
use crate::sql::system_tables::commit_rate;

pub(super) const COMMIT_RATE: Made = Made {
    name: "paimon_commit_rate",
    parameters: &["table", "window", "at"],
    aliases: &[],
    usage: "paimon_commit_rate('db.t', window => INTERVAL '1' HOUR, at => 105)",
    schema: |_| Ok(commit_rate::schema()),
    rows: |asked| {
        Box::pin(async move {
            let window = asked.call.number("window").unwrap_or(commit_rate::WINDOW_MILLIS);
            commit_rate::by_window(&asked.source, &asked.history_at().await?, window).await
        })
    },
};
