//! How results look: `\format`, `\x`, `\null`, `\timing`, `\pager`, `\quiet`, `\timeout`, `\lang`, and `\show` that lists it.

use clap::ValueEnum;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, switch, usage};
use crate::error::Result;
use crate::shell::args::time_limit;
use crate::shell::language::{Language, Text, both, told};
use crate::shell::pager::Paging;
use crate::shell::render::width::{bytes, escaped};
use crate::shell::render::{Decimals, Expanded, Format};
use crate::shell::state::{CELL_WIDTH, NULL, Shell};

macro_rules! setting {
    ($names:expr, $usage:expr, $argument:expr, $en:expr, $zh:expr, $set:expr) => {
        &Command {
            names: $names,
            usage: $usage,
            task: Task::Display,
            about: both($en, $zh),
            detail: Text::NONE,
            argument: $argument,
            run: |shell, call| apply(shell, call, $set),
        }
    };
}

/// The settings.
pub const COMMANDS: &[&Command] = &[
    setting!(
        &["format", "mode"],
        "table|csv|tsv|json|ndjson|markdown|vertical|arrow|parquet",
        Argument::Words(&["table", "csv", "tsv", "json", "ndjson", "markdown", "vertical", "arrow", "parquet"]),
        "format of results",
        "结果的格式",
        format
    ),
    setting!(
        &["x"],
        "on|off|auto",
        Argument::Words(&["on", "off", "auto"]),
        "records in place of a grid",
        "竖排记录代替表格",
        expanded
    ),
    &Command {
        names: &["null"],
        usage: "[text | reset]",
        task: Task::Display,
        about: both("what stands for NULL in tables", "表格里 NULL 的写法"),
        detail: both(
            "\\null -\n\\null ''        nothing at all\n\\null reset     NULL again",
            "\\null -\n\\null ''        什么也不写\n\\null reset     恢复为 NULL",
        ),
        argument: Argument::None,
        run: null,
    },
    setting!(
        &["timing"],
        "[on|off]",
        Argument::Words(&["on", "off"]),
        "tell the time: plan, manifests, read, merge",
        "显示耗时：计划、清单、读取、合并",
        timing
    ),
    setting!(
        &["pager"],
        "[on|off]",
        Argument::Words(&["on", "off"]),
        "page what does not fit the screen",
        "屏幕放不下时分页",
        pager
    ),
    setting!(
        &["quiet"],
        "[on|off]",
        Argument::Words(&["on", "off"]),
        "tell neither pins nor notices nor row counts",
        "不显示快照、提示与行数",
        quiet
    ),
    setting!(&["timeout"], "[time|off]", Argument::None, "time a statement gets", "每条语句的时限", timeout),
    setting!(&["lang"], "[en|zh]", Argument::Words(&["en", "zh"]), "language of the shell", "界面语言", language),
    &Command {
        names: &["show"],
        usage: "",
        task: Task::Display,
        about: both("all settings", "所有设置"),
        detail: Text::NONE,
        argument: Argument::None,
        run: show,
    },
];

type Set = fn(&mut Shell, &str) -> Result<String>;

fn apply(shell: &mut Shell, call: Call, set: Set) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables)?;
        let told = match words.as_slice() {
            [] => set(shell, "")?,
            [word] => set(shell, word)?,
            _ => return Err(usage(format!("\\{} takes one word", call.name))),
        };
        // a question has an answer wherever it is asked
        let asked = words.is_empty() && call.name == "timeout";
        if shell.interactive || asked { shell.say(&[told]) } else { Ok(()) }
    }
    .boxed_local()
}

fn format(shell: &mut Shell, word: &str) -> Result<String> {
    if !word.is_empty() {
        let names = Format::names().join(", ");
        shell.settings.format =
            Format::parse(word).ok_or_else(|| usage(format!("there is no format {word:?}: {names}")))?;
        shell.settings.format_chosen = true;
    }
    let name = shell.settings.format.name();
    Ok(told!(shell.settings.language, "format is {name}", "格式为 {name}", name = name))
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
        word => match switch(word) {
            Ok(true) => Expanded::On,
            Ok(false) => Expanded::Off,
            Err(_) => return Err(usage(format!("{word:?} is none of on, off and auto"))),
        },
    };
    let how = expanded_name(shell.settings.expanded);
    Ok(told!(shell.settings.language, "records are {how}", "竖排为 {how}", how = how))
}

fn null(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables)?;
        match words.as_slice() {
            // the text of nothing is written '': a bare command must not hide what is NULL
            [] => {}
            [word] if matches!(word.as_str(), "reset" | "default") => shell.settings.null = NULL.to_string(),
            words => shell.settings.null = words.join(" "),
        }
        if !shell.interactive && !words.is_empty() {
            return Ok(());
        }
        let null = escaped(&shell.settings.null);
        shell.say(&[told!(shell.settings.language, "NULL is shown as '{null}'", "NULL 显示为 '{null}'", null = null)])
    }
    .boxed_local()
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
    let how = on_off(shell.settings.timing);
    Ok(told!(shell.settings.language, "timing is {how}", "耗时为 {how}", how = how))
}

fn pager(shell: &mut Shell, word: &str) -> Result<String> {
    let on = toggled(shell.settings.paging == Paging::Auto, if word == "auto" { "on" } else { word })?;
    shell.settings.paging = if on { Paging::Auto } else { Paging::Off };
    let how = on_off(on);
    Ok(told!(shell.settings.language, "pager is {how}", "分页为 {how}", how = how))
}

fn quiet(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.quiet = toggled(shell.settings.quiet, word)?;
    let how = on_off(shell.settings.quiet);
    Ok(told!(shell.settings.language, "quiet is {how}", "安静为 {how}", how = how))
}

fn timeout(shell: &mut Shell, word: &str) -> Result<String> {
    shell.settings.timeout = match word {
        "" => shell.settings.timeout,
        word => time_limit(word).map_err(usage)?.0,
    };
    Ok(timeout_text(shell))
}

fn timeout_text(shell: &Shell) -> String {
    match shell.settings.timeout {
        Some(limit) => {
            let n = limit.as_secs_f64();
            told!(shell.settings.language, "a statement gets {n} s", "每条语句限 {n} 秒", n = n)
        }
        None => told!(shell.settings.language, "a statement gets all the time it takes", "语句没有时限"),
    }
}

fn language(shell: &mut Shell, word: &str) -> Result<String> {
    if !word.is_empty() {
        shell.settings.language =
            Language::from_str(word, true).map_err(|_| usage(format!("{word:?} is neither en nor zh")))?;
    }
    Ok(told!(shell.settings.language, "language is en", "语言为 zh"))
}

fn limit(value: usize, language: Language, shown: impl Fn(usize) -> String) -> String {
    if value == 0 { told!(language, "no limit", "不限") } else { shown(value) }
}

fn show(shell: &mut Shell, _: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let settings = &shell.settings;
        let language = settings.language;
        let rows = settings.rows.map_or_else(|| told!(language, "all", "全部"), |rows| rows.to_string());
        let screen = || told!(language, "standard output", "标准输出");
        let output = shell.output.as_ref().map_or_else(screen, |o| o.name().to_string());
        let (max_files, max_bytes) = shell.session.read_limits();
        let decimals = if settings.decimals == Decimals::Number { "number" } else { "string" };
        let lines: [(Text, String); 22] = [
            (both("warehouse", "仓库"), shell.session.warehouse().url().to_string()),
            (both("database", "库"), shell.session.database()),
            (both("time zone", "时区"), shell.session.time_zone()),
            (both("pins", "固定"), shell.session.session_pins().len().to_string()),
            (both("autopin", "自动固定"), on_off(settings.autopin).to_string()),
            (both("format", "格式"), settings.format.name()),
            (both("records", "竖排"), expanded_name(settings.expanded).to_string()),
            (both("null", "NULL 写法"), format!("'{}'", settings.null)),
            (both("rows of a table on a terminal", "终端表格行数"), rows),
            (both("cell width", "单元格宽度"), settings.cell_width.unwrap_or(CELL_WIDTH).to_string()),
            (both("ascii", "ASCII 边框"), on_off(settings.ascii).to_string()),
            (both("decimals in json", "JSON 小数"), decimals.to_string()),
            (both("json meta", "JSON 元信息"), on_off(settings.json_meta).to_string()),
            (both("timing", "耗时"), on_off(settings.timing).to_string()),
            (both("pager", "分页"), on_off(settings.paging == Paging::Auto).to_string()),
            (both("quiet", "安静"), on_off(settings.quiet).to_string()),
            (both("memory", "内存"), limit(shell.config.memory_limit.unwrap_or(0), language, bytes)),
            (both("timeout", "时限"), timeout_text(shell)),
            (both("files a statement may read", "文件上限"), limit(max_files, language, |n| n.to_string())),
            (both("bytes a statement may read", "字节上限"), limit(max_bytes, language, bytes)),
            (both("language", "语言"), told!(language, "en", "zh")),
            (both("output", "输出"), output),
        ];
        let named = |(name, value): (Text, String)| format!("{}: {value}", name.of(language));
        let lines: Vec<String> = lines.into_iter().map(named).collect();
        shell.say(&lines)
    }
    .boxed_local()
}
