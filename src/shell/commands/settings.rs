//! How results look: `\format`, `\x`, `\null`, `\timing`, `\pager`, `\quiet`, `\timeout`, and `\show` that lists it.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, switch, usage};
use crate::error::Result;
use crate::shell::args::duration;
use crate::shell::output::Paging;
use crate::shell::render::{Expanded, Format};
use crate::shell::state::Shell;

macro_rules! setting {
    ($names:expr, $usage:expr, $argument:expr, $about:expr, $set:expr) => {
        &Command {
            names: $names,
            usage: $usage,
            task: Task::Display,
            about: $about,
            detail: "",
            argument: $argument,
            run: |shell, call| apply(shell, call, $set),
        }
    };
}

/// The settings.
pub const COMMANDS: &[&Command] = &[
    setting!(
        &["format", "mode"],
        "table|csv|tsv|json|ndjson|markdown|vertical",
        Argument::Words(&["table", "csv", "tsv", "json", "ndjson", "markdown", "vertical"]),
        "format of results",
        format
    ),
    setting!(&["x"], "on|off|auto", Argument::Words(&["on", "off", "auto"]), "records in place of a grid", expanded),
    setting!(&["null"], "text", Argument::None, "what stands for NULL in tables", null),
    setting!(
        &["timing"],
        "[on|off]",
        Argument::Words(&["on", "off"]),
        "tell the time: plan, manifests, read, merge",
        timing
    ),
    setting!(&["pager"], "[on|off]", Argument::Words(&["on", "off"]), "page what does not fit the screen", pager),
    setting!(&["quiet"], "[on|off]", Argument::Words(&["on", "off"]), "tell neither pins nor row counts", quiet),
    setting!(&["timeout"], "time|off", Argument::None, "time a statement gets", timeout),
    &Command {
        names: &["show"],
        usage: "",
        task: Task::Display,
        about: "all settings",
        detail: "",
        argument: Argument::None,
        run: show,
    },
];

type Set = fn(&mut Shell, &str) -> Result<String>;

fn apply(shell: &mut Shell, call: Call, set: Set) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let word = call.words(&shell.variables).join(" ");
        let told = set(shell, &word)?;
        if shell.interactive { shell.say(&[told]) } else { Ok(()) }
    }
    .boxed_local()
}

fn format(shell: &mut Shell, word: &str) -> Result<String> {
    if !word.is_empty() {
        let names = Format::names().join(", ");
        shell.settings.format =
            Format::parse(word).ok_or_else(|| usage(format!("there is no format {word:?}: {names}")))?;
    }
    Ok(format!("format is {}", shell.settings.format.name()))
}

fn expanded_name(expanded: Expanded) -> &'static str {
    match expanded {
        Expanded::On => "on",
        Expanded::Off => "off",
        Expanded::Auto => "auto",
    }
}

fn expanded(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.expanded = match word {
        "auto" => Expanded::Auto,
        "" if shell.settings.expanded == Expanded::On => Expanded::Auto,
        "" => Expanded::On,
        word if switch(word)? => Expanded::On,
        _ => Expanded::Off,
    };
    Ok(format!("records are {}", expanded_name(shell.settings.expanded)))
}

fn null(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.null = word.to_string();
    Ok(format!("NULL is shown as '{word}'"))
}

/// On, off, or the other way round.
fn toggled(now: bool, word: &str) -> Result<bool> {
    if word.is_empty() { Ok(!now) } else { switch(word) }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn timing(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.timing = toggled(shell.settings.timing, word)?;
    Ok(format!("timing is {}", on_off(shell.settings.timing)))
}

fn pager(shell: &mut Shell, word: &str) -> Result<String> {
    let on = toggled(shell.settings.paging == Paging::Auto, if word == "auto" { "on" } else { word })?;
    shell.settings.paging = if on { Paging::Auto } else { Paging::Off };
    Ok(format!("pager is {}", on_off(on)))
}

fn quiet(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.quiet = toggled(shell.settings.quiet, word)?;
    Ok(format!("quiet is {}", on_off(shell.settings.quiet)))
}

fn timeout(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.timeout = match word {
        "" | "off" | "none" => None,
        word => Some(duration(word).map_err(usage)?),
    };
    Ok(timeout_text(shell))
}

fn timeout_text(shell: &Shell) -> String {
    match shell.settings.timeout {
        Some(limit) => format!("a statement gets {} s", limit.as_secs_f64()),
        None => "a statement gets all the time it takes".to_string(),
    }
}

fn show(shell: &mut Shell, _: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let settings = &shell.settings;
        let memory = shell.config.memory_limit.map_or("no limit".to_string(), super::super::render::width::bytes);
        let rows = settings.rows.map_or("all".to_string(), |rows| rows.to_string());
        let output = shell.output.as_ref().map_or("standard output".to_string(), |o| o.path().display().to_string());
        let lines = [
            ("warehouse", shell.session.warehouse().url().to_string()),
            ("database", shell.session.database()),
            ("time zone", shell.session.time_zone()),
            ("pins", shell.session.session_pins().len().to_string()),
            ("autopin", on_off(settings.autopin).to_string()),
            ("format", settings.format.name()),
            ("records", expanded_name(settings.expanded).to_string()),
            ("null", format!("'{}'", settings.null)),
            ("rows of a table on a terminal", rows),
            ("cell width", settings.cell_width.to_string()),
            ("timing", on_off(settings.timing).to_string()),
            ("pager", on_off(settings.paging == Paging::Auto).to_string()),
            ("quiet", on_off(settings.quiet).to_string()),
            ("memory", memory),
            ("timeout", timeout_text(shell)),
            ("output", output),
        ];
        let lines: Vec<String> = lines.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        shell.say(&lines)
    }
    .boxed_local()
}
