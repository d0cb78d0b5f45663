//! `\tour`: the demo's ten statements.

use futures::future::{FutureExt, LocalBoxFuture};

use super::listings::literal;
use super::{Argument, Call, Command, Task};
use crate::error::Result;
use crate::shell::demo::{TOUR, ZONE};
use crate::shell::execute::Show;
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;
use crate::sql::Chosen;

/// `\tour`
pub const TOUR_COMMAND: Command = Command {
    names: &["tour"],
    usage: "",
    task: Task::Shell,
    about: both("ten statements through the demo warehouse (lakepin demo)", "用十条语句走一遍演示仓库（lakepin demo）"),
    detail: Text::NONE,
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, _: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        // the story tells the time of its place and the latest snapshots, wherever the session is
        let (zone, autopin) = (shell.session.time_zone(), shell.settings.autopin);
        set_zone(shell, ZONE).await?;
        let chosen = shell.session.choose(Chosen::default());
        shell.settings.autopin = false;
        let told = tell(shell).await;
        shell.settings.autopin = autopin;
        shell.session.choose(chosen);
        set_zone(shell, &zone).await.and(told)
    }
    .boxed_local()
}

async fn set_zone(shell: &Shell, zone: &str) -> Result<()> {
    shell.session.run_one(&format!("SET TIME ZONE {}", literal(zone))).await.map(drop)
}

async fn tell(shell: &mut Shell) -> Result<()> {
    for (number, (sentence, statement)) in (1..).zip(TOUR) {
        let shown: Vec<String> = statement.lines().map(|line| format!("  {line}")).collect();
        let end = if statement.starts_with('\\') { "" } else { ";" };
        let sentence = sentence.of(shell.settings.language);
        shell.say(&[format!("\n{number}. {sentence}"), format!("{}{end}", shown.join("\n"))])?;
        match statement.strip_prefix('\\') {
            Some(command) => super::run(shell, command).await?,
            // one text: a pager would cut the story
            None => shell.statement(statement, Show { page: false, ..Show::default() }).await?,
        }
    }
    Ok(())
}
