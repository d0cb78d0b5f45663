//! The prompt, as somebody at a terminal meets it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lakepin::testing::builder::{TableBuilder, TableSpec};
use tempfile::TempDir;

use super::pty::Pty;
use crate::harness::{Outcome, Test};

pub const PROMPT: &str = "pay@latest=>";
/// Never ends by itself.
pub const ENDLESS: &str = "select count(*) from generate_series(1, 1000000000000) as a(x) where x % 7 = 3;";

/// Gives neither a row nor way for hours.
pub const STUCK: &str = "select a.value, b.value from generate_series(1, 1000000) a, generate_series(1, 1000000) b \
                         where (a.value * 7 + b.value) % 100000007 = 3;";

pub type Check = fn(&mut Pty, &TempDir) -> Result<(), String>;

pub fn shell(size: (u16, u16), env: &[(&str, &str)]) -> Result<(Pty, TempDir), String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let pty = shell_in(&home, &crate::suites::demo()?, size, env)?;
    Ok((pty, home))
}

pub fn shell_in(home: &TempDir, demo: &Path, size: (u16, u16), env: &[(&str, &str)]) -> Result<Pty, String> {
    let demo = demo.display().to_string();
    let arguments = ["-w", &demo, "-d", "pay", "--timezone", "+08:00", "--no-rc"];
    let pty = Pty::start(&arguments, env, home.path(), size)?;
    pty.wait_prompt(PROMPT)?;
    Ok(pty)
}

pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn prompt_shows_the_pin(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\pin dwd_pay_success 3")?;
    pty.wait_prompt("pay@3[04-16 09:57:30+08]=>")?;
    pty.line("select count(*) as n")?;
    pty.wait_prompt("pay@3[04-16 09:57:30+08]->")?;
    pty.line("from dwd_pay_success;")?;
    pty.wait_text("snapshot 3, committed")?;
    pty.line("\\unpin all")?;
    pty.wait_prompt(PROMPT)?;
    pty.send("\x04")?;
    ensure(pty.end()? == 0, || "Ctrl-D did not exit with 0".to_string())
}

fn names_are_completed(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    let cases = [
        ("select * from dwd_p\t", "select * from dwd_pay_success"),
        ("select * from dwd_pay_success$sn\t", "dwd_pay_success$snapshots"),
        ("\\cou\t", "\\counts"),
        ("\\counts dwd_o\t", "\\counts dwd_order_status"),
        ("select * from dwd_pay_success where chan\t", "where channel"),
        ("select * from dwd_pay_success version as of 'aft\t", "version as of 'after-repair'"),
        ("sel\t", "=> select"),
        ("use pa\t", "use pay"),
        ("\\use pa\t", "\\use pay"),
        ("\\dt pa\t", "\\dt pay"),
        (".cou\t", ".counts"),
        ("select * from sys.tab\t", "from sys.tables"),
        ("select * from paimon_del\t", "from paimon_delta("),
        ("select * from dwd_pay_success@aft\t", "from \"dwd_pay_success@after-repair\""),
        ("set lakepin.ver\t", "set lakepin.verify_files"),
        ("set 'paimon.pay.dwd_pay_success.scan.sn\t", "'paimon.pay.dwd_pay_success.scan.snapshot-id'"),
    ];
    for (typed, expected) in cases {
        // names are asked for while the first key waits: a slow answer is there at the second
        let (text, _) = typed.split_at(typed.len() - 1);
        pty.send(text)?;
        pty.wait_text(text)?;
        let mut done = false;
        for _ in 0..20 {
            pty.send("\t")?;
            std::thread::sleep(Duration::from_millis(250));
            if pty.last().contains(expected) {
                done = true;
                break;
            }
        }
        ensure(done, || format!("{typed:?} did not become {expected:?}:\n{}", pty.screen().join("\n")))?;
        // one after the other, however fast: each only clears its line
        pty.send("\x03")?;
        pty.wait_prompt(PROMPT)?;
    }
    for typed in ["one", "two"] {
        pty.send(typed)?;
        pty.wait_text(typed)?;
        pty.send("\x03")?;
        pty.wait_prompt(PROMPT)?;
    }
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42").map(drop)
}

/// Ctrl-C while `running` is on the screen leads back to the prompt. It does so within a second; on a machine that is
/// busy with other tests, in one of three times within two.
fn is_interrupted_at_once(pty: &mut Pty, statement: &str, running: &str) -> Result<(), String> {
    let mut took = Vec::new();
    while took.len() < 3 {
        pty.line(statement)?;
        pty.wait_text(running)?;
        let pressed = Instant::now();
        pty.send("\x03")?;
        pty.wait_prompt(PROMPT)?;
        took.push(pressed.elapsed());
        if pressed.elapsed() < Duration::from_secs(2) {
            return Ok(());
        }
    }
    Err(format!("it took {took:?}"))
}

/// A manifest list whose bytes never come.
fn planning_is_cancelled() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let demo = home.path().join("demo");
    lakepin::shell::make_demo(&demo).map_err(|e| e.to_string())?;
    let mut pipes = 0;
    for entry in std::fs::read_dir(demo.join("pay.db/dwd_order_status/manifest")).map_err(|e| e.to_string())?.flatten()
    {
        if entry.file_name().to_string_lossy().starts_with("manifest-list") {
            std::fs::remove_file(entry.path()).map_err(|e| e.to_string())?;
            let made = Command::new("mkfifo").arg(entry.path()).status().map_err(|e| e.to_string())?;
            ensure(made.success(), || "mkfifo failed".to_string())?;
            pipes += 1;
        }
    }
    ensure(pipes > 0, || "the table has no manifest list".to_string())?;
    let mut pty = shell_in(&home, &demo, (30, 120), &[])?;
    is_interrupted_at_once(&mut pty, "select count(status) from dwd_order_status;", "planning")?;
    pty.wait_text("error[Interrupted]")?;
    pty.line("select count(*) + 628 as n from dwd_pay_success;")?;
    pty.wait_text("842")?;
    Ok(Outcome::Passed(String::new()))
}

fn watching_is_cancelled_while_it_reads(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    let watched = format!("{} \\watch 1", ENDLESS.trim_end_matches(';'));
    is_interrupted_at_once(pty, &watched, "rows read")?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42").map(drop)
}

fn ctrl_c_cancels_and_twice_leaves(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.send("select typed and not meant")?;
    pty.wait_text("not meant")?;
    pty.send("\x03")?;
    pty.wait_prompt(PROMPT)?;
    // the line of progress says that it runs
    is_interrupted_at_once(pty, ENDLESS, "rows read")?;
    pty.wait_text("error[Interrupted]")?;
    let screen = pty.screen().join("\n");
    ensure(!screen.contains("rows read"), || format!("progress is still on the screen:\n{screen}"))?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42")?;
    pty.wait_prompt(PROMPT)?;
    pty.send("\x03")?;
    std::thread::sleep(Duration::from_millis(300));
    pty.send("\x03")?;
    ensure(pty.end()? == 130, || "two Ctrl-C did not leave with 130".to_string())
}

fn long_results_are_capped_and_more_shows_the_rest(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\pager off")?;
    pty.wait_text("pager is off")?;
    pty.line("select value as v, 'row' as r from generate_series(1, 100);")?;
    let screen = pty.wait_text("showing 40 of 100 rows")?;
    let text = screen.join("\n");
    ensure(text.contains("… 60 more rows …") && text.contains("│ 100 │ row "), || text.clone())?;
    ensure(!text.contains("│  50 │ row "), || text.clone())?;
    let grid =
        text.lines().filter(|line| line.starts_with(['│', '┌', '└'])).map(|line| line.trim_end().chars().count());
    ensure(grid.collect::<std::collections::BTreeSet<_>>().len() == 1, || text.clone())?;
    // settings, system tables and the like are shown to the last
    pty.line("show all;")?;
    // what is waited for is not what is typed: the terminal shows that at once
    pty.line("\\set w shown")?;
    pty.line("\\echo :w :w")?;
    pty.wait_text("shown shown")?;
    let text = pty.screen().join("\n");
    ensure(!text.contains("more rows …"), || text.clone())?;
    pty.line("select value as v, 'row' as r from generate_series(1, 100);")?;
    pty.wait_text("showing 40 of 100 rows")?;
    pty.line("\\more")?;
    pty.wait_text("80 rows")?;
    pty.line("\\echo end of it")?;
    pty.wait_prompt(PROMPT)?;
    let text = pty.screen().join("\n");
    ensure(text.contains("│ 100 │ row ") && text.contains("│  70 │ row "), || text.clone())
}

/// What is there already is no long result: it is shown to its last row, on a terminal, too.
fn metadata_is_never_cut(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    let lake = home.path().join("lake");
    let spec = TableSpec::new(&[("id", "INT"), ("pt", "INT")]).partitioned_by(&["pt"]);
    let mut table = TableBuilder::create(&lake, "pay", "t", &spec).map_err(|e| e.to_string())?;
    let rows: Vec<_> = (1001..=1045).map(|pt| serde_json::json!({"id": 1, "pt": pt})).collect();
    table.append(&rows).map_err(|e| e.to_string())?;
    pty.line("\\pager off")?;
    pty.line(&format!("\\connect {}", lake.display()))?;
    for (number, sql) in [
        "show partitions t;",
        "select \"partition\" from \"t$partitions\";",
        "select \"partition\", file_size_in_bytes from \"t$files\";",
    ]
    .iter()
    .enumerate()
    {
        pty.line(sql)?;
        pty.line(&format!("\\set w end{number}"))?;
        pty.line("\\echo :w :w")?;
        let text = pty.wait_text(&format!("end{number} end{number}"))?.join("\n");
        let shown = (1001..=1045).filter(|pt| text.contains(&pt.to_string())).count();
        ensure(shown == 45 && !text.contains("more rows …"), || format!("{sql}: {shown}\n{text}"))?;
    }
    Ok(())
}

fn cjk_and_emoji_stay_aligned(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line(
        "select * from (values ('订单', 1), ('ab', 22), ('👍', 333), (null, 4), ('NULL', 5), ('', 6)) as t(名, n);",
    )?;
    let screen = pty.wait_text("6 rows")?;
    let rows = pty.rows_beginning("│");
    ensure(rows.len() == 7, || screen.join("\n"))?;
    let first = pty.columns_of(rows[0], "│");
    ensure(first.len() == 3, || format!("{first:?}"))?;
    for row in &rows {
        let columns = pty.columns_of(*row, "│");
        ensure(columns == first, || format!("row {row}: {columns:?}, not {first:?}\n{}", screen.join("\n")))?;
    }
    let text = screen.join("\n");
    pty.line("select repeat('x', 1000000) as big, e'a\\tb\\n\\x1b[31mc' as marks, 'e\u{301}' as accent;")?;
    let big = pty.wait_text("…(+999.9 kB)")?.join("\n");
    ensure(big.contains("a\\tb\\n\\x1b[31mc"), || big.clone())?;
    ensure(text.contains("│ NULL   │") && text.contains("│ 'NULL' │") && text.contains("│        │"), || text.clone())
}

fn too_wide_becomes_records(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select * from dwd_pay_success limit 1;")?;
    let screen = pty.wait_text("update_time │")?;
    ensure(screen.iter().any(|line| line.starts_with("─[ 1 ]─")), || screen.join("\n"))?;
    pty.wait_text("pin: pay.dwd_pay")?;
    pty.line("select 1 as one \\G")?;
    pty.wait_text("one │ 1").map(drop)
}

fn pager_gets_what_does_not_fit(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select 1 as short;")?;
    let screen = pty.wait_text("1 row")?;
    ensure(!screen.iter().any(|l| l.starts_with("P:")), || format!("what fits was paged:\n{}", screen.join("\n")))?;
    pty.line("select value from generate_series(1, 30);")?;
    pty.wait_text("P:│    30 │")?;
    let screen = pty.wait_text("30 rows")?;
    ensure(!screen.iter().any(|l| l.starts_with("P:30 rows")), || {
        format!("who leaves the pager is told nothing:\n{}", screen.join("\n"))
    })?;
    pty.line("select nothing;")?;
    let screen = pty.wait_text("error[")?;
    ensure(!screen.iter().any(|l| l.starts_with("P:error")), || "an error was paged".to_string())
}

fn pager_that_is_not_there_hides_nothing(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select value from generate_series(1, 30);")?;
    pty.wait_text("│    30 │")?;
    pty.wait_prompt(PROMPT).map(drop)
}

fn watch_runs_until_told_and_never_pages(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select count(*) as n from dwd_pay_success; \\watch 0.2")?;
    let told = |line: &String| line.starts_with("turn 3, ") && line.contains(": pay.dwd_pay_success@");
    let screen = pty.wait("third turn", |lines| lines.iter().any(told))?;
    let pins = screen.iter().filter(|line| line.starts_with("pin: ")).count();
    // that of the statement itself and that of the first turn
    ensure(pins == 2, || format!("{pins} pins\n{}", screen.join("\n")))?;
    pty.wait_text("no change")?;
    let screen = pty.screen();
    ensure(!screen.iter().any(|l| l.starts_with("P:turn")), || screen.join("\n"))?;
    pty.send("\x03")?;
    pty.wait_prompt(PROMPT).map(drop)
}

fn history_is_private_and_holds_no_secret(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    pty.line("select 11")?;
    pty.line("+ 31 as sum;")?;
    pty.wait_text("42")?;
    pty.line("\\set my_password hunter2")?;
    pty.wait_prompt(PROMPT)?;
    pty.line(" select 'left out' as x;")?;
    pty.wait_text("left out")?;
    pty.line("\\q 7")?;
    ensure(pty.end()? == 7, || "\\q 7 did not exit with 7".to_string())?;
    let file = home.path().join("state/lakepin/history");
    let mode = std::fs::metadata(&file).map_err(|e| e.to_string())?.permissions().mode() & 0o777;
    ensure(mode == 0o600, || format!("mode {mode:o}"))?;
    let text = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
    ensure(text.contains("select 11\\n+ 31 as sum;"), || text.clone())?;
    ensure(text.contains("\\\\set my_password ***") && !text.contains("hunter2"), || text.clone())?;
    ensure(!text.contains("left out"), || text.clone())
}

fn demo_opens_the_shell(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\tour")?;
    // the end of the tenth statement; what was before may have left the screen
    pty.wait_text("14 rows")?;
    pty.wait_prompt(PROMPT).map(drop)
}

/// A join never comes back to its leaves by itself.
fn what_never_gives_way_is_cancelled(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    let join = "select sum(a.value * b.value) from generate_series(1, 1000000) a, generate_series(1, 1000000) b;";
    is_interrupted_at_once(pty, join, "rows read")?;
    pty.wait_text("error[Interrupted]")?;
    // the threads are free again
    pty.line("select count(*) + 628 as n from dwd_pay_success;")?;
    pty.wait_text("842").map(drop)
}

/// All threads are inside of a join that finds nothing for hours: the statements that follow have others.
fn what_never_gives_way_keeps_nobody(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    for _ in 0..2 {
        is_interrupted_at_once(pty, STUCK, "rows read")?;
        pty.line("select count(*) + 628 as n from dwd_pay_success;")?;
        pty.wait_text("842")?;
        pty.wait_prompt(PROMPT)?;
        pty.line("\\dt")?;
        pty.wait_text("dwd_order_status")?;
        pty.line("select * from dwd_p\t limit 0;")?;
        pty.wait_text("select * from dwd_pay_success limit 0;")?;
        pty.wait_prompt(PROMPT)?;
        pty.send("\x0c")?;
        pty.wait_prompt(PROMPT)?;
    }
    Ok(())
}

/// Rows that come without a pause and are not shown before the last leave the line of progress its turn.
fn rows_without_a_pause_are_counted(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    is_interrupted_at_once(pty, "select value from generate_series(1, 1000000000000) t;", "rows out")?;
    pty.wait_text("rows came before the statement ended").map(drop)
}

/// A server that takes connections and never answers.
fn connecting_is_cancelled() -> Result<Outcome, String> {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let endpoint = format!("http://{}", silent.local_addr().map_err(|e| e.to_string())?);
    let keys = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "us-east-1")];
    let env = [&keys[..], &[("AWS_ENDPOINT_URL", endpoint.as_str())]].concat();
    let (mut pty, _home) = shell((30, 140), &env)?;
    is_interrupted_at_once(&mut pty, "\\connect s3://lake/wh", "working")?;
    pty.wait_text("error[Interrupted]")?;
    pty.line("select count(*) + 628 as n from dwd_pay_success;")?;
    pty.wait_text("842")?;
    Ok(Outcome::Passed(String::new()))
}

fn window_may_change(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    const WIDE: &str =
        "select 'a value of some length' as a, 'and another, as long' as b, 'and the third of them' as c;";
    pty.line(WIDE)?;
    pty.wait_text("│ a value of some length │ and another, as long │ and the third of them │")?;
    pty.wait_prompt(PROMPT)?;
    pty.resize(30, 50)?;
    pty.line(WIDE)?;
    pty.wait_text("b │ and another, as long")?;
    pty.wait_prompt(PROMPT)?;
    pty.resize(30, 120)?;
    pty.line("select 'wide' as again, 'x' as x;")?;
    pty.wait_text("│ wide  │ x │").map(drop)
}

fn dumb_terminal_gets_no_codes(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select value from generate_series(1, 60);")?;
    pty.wait_text("showing 40 of 60 rows")?;
    pty.line("select nothing;")?;
    pty.wait_text("error[ColumnNotFound]")?;
    pty.line("\\q")?;
    ensure(pty.end()? == 0, || "it did not end with 0".to_string())?;
    ensure(!pty.raw().contains('\x1b'), || format!("{:?}", pty.raw()))
}

fn no_colour_where_none_is_wanted(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select null as n, 1 as one;")?;
    pty.wait_text("NULL")?;
    pty.wait_prompt(PROMPT)?;
    ensure(!pty.raw().contains("\x1b[1m") && !pty.raw().contains("\x1b[2m"), || format!("{:?}", pty.raw()))
}

fn shell_works_without_a_home(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42")?;
    pty.line("\\q")?;
    ensure(pty.end()? == 0, || "it did not end with 0".to_string())
}

fn history_that_cannot_be_kept_is_told() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    // a folder where the file should be
    std::fs::create_dir_all(home.path().join("state/lakepin/history")).map_err(|e| e.to_string())?;
    let mut pty = shell_in(&home, &crate::suites::demo()?, (30, 200), &[])?;
    let screen = pty.screen().join("\n");
    ensure(screen.contains("notice: the history is not kept:"), || screen.clone())?;
    shell_works_without_a_home(&mut pty, &home)?;
    Ok(Outcome::Passed(String::new()))
}

/// The history is somebody's own file, but not in a warehouse, where nothing is written.
fn history_is_not_kept_in_the_warehouse() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let demo = home.path().join("demo");
    lakepin::shell::make_demo(&demo).map_err(|e| e.to_string())?;
    let history = demo.join("pay.db/../history").display().to_string();
    let demo = demo.display().to_string();
    let arguments = ["-w", &demo, "-d", "pay", "--no-rc"];
    let mut pty = Pty::start(&arguments, &[("LAKEPIN_HISTORY", &history)], home.path(), (30, 200))?;
    pty.wait_prompt(PROMPT)?;
    pty.wait_text("notice: the history is not kept:")?;
    pty.line("\\q")?;
    ensure(pty.end()? == 0, || "it did not end with 0".to_string())?;
    ensure(!home.path().join("demo/history").exists(), || "it was written".to_string())?;
    Ok(Outcome::Passed(String::new()))
}

/// `init.sql`, or the file of `--rc` in its place, runs before the first prompt.
fn settings_are_read_before_the_prompt() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let demo = crate::suites::demo()?.display().to_string();
    let folder = home.path().join(".config/lakepin");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let chosen = home.path().join("chosen.sql");
    std::fs::write(folder.join("init.sql"), "\\pin dwd_pay_success 3\n").map_err(|e| e.to_string())?;
    std::fs::write(&chosen, "\\pin dwd_pay_success 2\n\\timing off\n").map_err(|e| e.to_string())?;
    let chosen = chosen.display().to_string();
    let common = ["-w", &demo, "-d", "pay", "--timezone", "+08:00"];
    for (more, prompt) in [
        (&[][..], "pay@3[04-16 09:57:30+08]=>"),
        (&["--rc", &chosen][..], "pay@2[04-16 09:55:00+08]=>"),
        (&["--no-rc"][..], PROMPT),
        (&["--no-rc", "--rc", &chosen][..], PROMPT),
    ] {
        let mut pty = Pty::start(&[&common[..], more].concat(), &[], home.path(), (30, 200))?;
        pty.wait_prompt(prompt).map_err(|e| format!("{more:?}: {e}"))?;
        pty.line("\\q")?;
        ensure(pty.end()? == 0, || format!("{more:?} did not end with 0"))?;
    }
    Ok(Outcome::Passed(String::new()))
}

/// A byte of another encoding costs its line: neither the session nor the statement that is open, and nothing pasted
/// behind it runs.
fn byte_that_is_no_text_costs_its_line(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("create view kept as select 35 as n;")?;
    pty.wait_text("CREATE VIEW")?;
    pty.wait_prompt(PROMPT)?;
    pty.line("select n + 7 as answer")?;
    pty.wait_prompt("pay@latest->")?;
    pty.send_bytes(b", 'caf\xe9' as x;\rselect 'be' || 'hind';\r")?;
    pty.wait_text("the line is not UTF-8")?;
    pty.wait_prompt("pay@latest->")?;
    pty.line("from kept;")?;
    pty.wait_text("│     42 │")?;
    pty.wait_prompt(PROMPT)?;
    let screen = pty.screen().join("\n");
    ensure(!screen.contains("│ behind"), || screen)
}

/// What cannot be read of the history is told once; the rest is there, and lines are kept again.
fn history_with_a_bad_byte_is_mended() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = home.path().join("state/lakepin/history");
    std::fs::create_dir_all(home.path().join("state/lakepin")).map_err(|e| e.to_string())?;
    std::fs::write(&file, b"#V2\nselect 30 + 3 as good;\nselect '\xe9';\n").map_err(|e| e.to_string())?;
    // the end of the first session is the last line of the second's history
    for (told, recalled) in [(true, "select 30 + 3 as good;"), (false, "select 40 + 4 as more;")] {
        let mut pty = shell_in(&home, &crate::suites::demo()?, (30, 200), &[])?;
        let screen = pty.screen().join("\n");
        ensure(screen.contains("1 lines of the history are not UTF-8") == told, || screen)?;
        pty.send("\x1b[A\x1b[A")?;
        pty.wait_text(recalled)?;
        pty.send("\x03")?;
        pty.wait_prompt(PROMPT)?;
        pty.line("select 40 + 4 as more;")?;
        pty.wait_text("│   44 │")?;
        pty.line("\\q")?;
        pty.end()?;
    }
    let kept = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
    ensure(kept.contains("good") && kept.contains("more"), || kept)?;
    Ok(Outcome::Passed(String::new()))
}

/// No character of data does anything to the terminal, in any format and any message.
fn data_does_nothing_to_the_terminal(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    const EVIL: &str = "chr(27) || ']0;owned' || chr(7) || chr(155) || '5n' || chr(8238)";
    for format in ["csv", "tsv", "json", "ndjson", "table", "vertical", "markdown"] {
        pty.line(&format!("\\format {format}"))?;
        pty.line(&format!("select '{format}-' || {EVIL} as v;"))?;
        pty.wait_text(&format!("{format}-\\"))?;
    }
    pty.line(&format!("select cast('message-' || {EVIL} as int);"))?;
    pty.wait_text("message-\\x1b]0;owned")?;
    pty.line(&format!("select 'variable-' || {EVIL} as v \\gset"))?;
    pty.line("\\echo :v")?;
    pty.wait_text("variable-\\x1b]0;owned")?;
    pty.line("\\set")?;
    pty.wait_text("v = 'variable-\\x1b]0;owned")?;
    pty.line("\\null :v")?;
    pty.wait_text("NULL is shown as 'variable-\\x1b]0;owned")?;
    pty.line("\\use :v")?;
    pty.wait_text("error[")?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("42")?;
    let raw = pty.raw();
    let reached = ["\x1b]0;owned", "\u{9b}5n", "\u{202e}"].into_iter().find(|evil| raw.contains(evil));
    ensure(reached.is_none(), || format!("{reached:?} in {raw:?}"))
}

fn prompt_turns_red_when_the_pin_is_lost() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let demo = home.path().join("demo");
    lakepin::shell::make_demo(&demo).map_err(|e| e.to_string())?;
    let mut pty = shell_in(&home, &demo, (30, 160), &[])?;
    pty.line("\\pin dwd_pay_success 2")?;
    pty.wait_prompt("pay@2[04-16 09:55:00+08]=>")?;
    ensure(pty.colour_of_last() == vt100::Color::Default, || "a pin that is kept is red".to_string())?;
    for id in [1, 2] {
        std::fs::remove_file(demo.join(format!("pay.db/dwd_pay_success/snapshot/snapshot-{id}")))
            .map_err(|e| e.to_string())?;
    }
    pty.line("\\echo later")?;
    pty.wait_prompt("pay@2[04-16 09:55:00+08]!=>")?;
    pty.wait_text("notice: the pinned snapshot 2 has expired; available 3..8")?;
    ensure(pty.colour_of_last() == vt100::Color::Idx(1), || format!("{:?}", pty.colour_of_last()))?;
    pty.line("select count(*) from dwd_pay_success;")?;
    pty.wait_text("error[SnapshotExpired]")?;
    pty.line("\\unpin all")?;
    pty.wait_prompt(PROMPT)?;
    ensure(pty.colour_of_last() == vt100::Color::Default, || "still red".to_string())?;
    Ok(Outcome::Passed(String::new()))
}

fn branch_that_does_not_run_is_marked(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\if false")?;
    pty.wait_prompt("pay@latest@=>")?;
    pty.line("select 'nothing of this' as it;")?;
    pty.wait_text("notice: not run: the condition of \\if is false")?;
    pty.wait_prompt("pay@latest@=>")?;
    // Ctrl-C clears the line that is typed, then leaves the branch, and not the shell
    pty.line("\\if true")?;
    pty.wait_prompt("pay@latest@=>")?;
    pty.send("select typed")?;
    pty.wait_text("select typed")?;
    pty.send("\x03")?;
    pty.wait_prompt("pay@latest@=>")?;
    pty.send("\x03")?;
    pty.wait_text("notice: left \\if")?;
    pty.wait_prompt("pay@latest@=>")?;
    pty.send("\x03")?;
    pty.wait_prompt(PROMPT)?;
    pty.line("select 40 + 2 as answer;")?;
    pty.wait_text("│     42 │")?;
    pty.line("\\if false")?;
    pty.wait_prompt("pay@latest@=>")?;
    pty.line("\\endif")?;
    pty.wait_prompt(PROMPT)?;
    let screen = pty.screen().join("\n");
    ensure(!screen.contains("│ nothing"), || screen.clone())
}

fn settings_that_choose_a_snapshot_are_on_the_prompt(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("set 'paimon.pay.dwd_pay_success.scan.snapshot-id'='3';")?;
    pty.wait_prompt("pay@SET snapshot-id=3=>")?;
    pty.line("reset 'paimon.pay.dwd_pay_success.scan.snapshot-id';")?;
    pty.wait_prompt(PROMPT)?;
    pty.line("exit")?;
    ensure(pty.end()? == 0, || "exit did not leave with 0".to_string())
}

fn error_ends_the_file_and_not_the_shell(pty: &mut Pty, home: &TempDir) -> Result<(), String> {
    let outer = home.path().join("outer.sql");
    let inner = home.path().join("inner.sql");
    std::fs::write(&outer, format!("\\i {}\nselect 'in the outer' as it;\n", inner.display()))
        .and_then(|()| std::fs::write(&inner, "select nothing;\nselect 'in the inner' as it;\n"))
        .map_err(|e| e.to_string())?;
    pty.line(&format!("\\i {}", outer.display()))?;
    pty.wait_text("outer.sql did not run: there was an error")?;
    pty.line("select 40 + 2 as answer;")?;
    let text = pty.wait_text("42")?.join("\n");
    ensure(text.contains("inner.sql did not run") && !text.contains("│ in the"), || text.clone())
}

fn more_goes_on_counting_records(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    for line in ["\\pager off", "\\x on", "\\set rows 4"] {
        pty.line(line)?;
        pty.wait_prompt(PROMPT)?;
    }
    pty.line("select value from generate_series(101, 110);")?;
    pty.wait_text("showing 4 of 10 rows")?;
    pty.line("\\more")?;
    let text = pty.wait_text("8 rows")?.join("\n");
    ensure(text.matches("─[ 1 ]").count() == 1 && text.contains("─[ 7 ]"), || text.clone())
}

/// A result as data, a table off a terminal and a file are whole, however long.
fn data_is_never_cut() -> Result<Outcome, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = home.path().join("out");
    for format in ["csv", "tsv", "ndjson", "json", "table", "markdown", "vertical"] {
        let sql = "select value as v from generate_series(100001, 100100)";
        let run = |output: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_lakepin"))
                .args(["-w", &crate::suites::demo()?.display().to_string(), "--no-rc", "--format", format])
                .args(output)
                .args(["-c", sql])
                .stdin(Stdio::null())
                .output()
                .map_err(|e| e.to_string())
        };
        let printed = String::from_utf8_lossy(&run(&[])?.stdout).into_owned();
        let written = run(&["-o", &file.display().to_string()])?;
        ensure(written.stdout.is_empty(), || format!("{format}: rows went to the screen"))?;
        let kept = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
        for text in [printed, kept] {
            let rows = (100_001..=100_100).filter(|n| text.contains(&n.to_string())).count();
            ensure(rows == 100 && !text.contains("more rows"), || format!("{format}: {rows} rows\n{text}"))?;
        }
    }
    Ok(Outcome::Passed(String::new()))
}

/// The program through pipes, for what a transcript cannot say.
fn piped(sql: &str) -> Result<std::process::Child, String> {
    Command::new(env!("CARGO_BIN_EXE_lakepin"))
        .args(["-q", "-w", &crate::suites::demo()?.display().to_string(), "--no-rc", "-c", sql])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())
}

fn ctrl_c_ends_a_script() -> Result<Outcome, String> {
    let mut child = piped(&format!("select 'begun' as it; {ENDLESS} select 'never' as it"))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    // the second statement runs once the first has answered
    while lines.next().transpose().map_err(|e| e.to_string())?.ok_or("no answer")? != "begun" {}
    std::thread::sleep(Duration::from_millis(300));
    let pressed = Instant::now();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().map_err(|e| e.to_string())?;
    ensure(killed.success(), || "kill failed".to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    ensure(status.code() == Some(130), || format!("{status}"))?;
    ensure(pressed.elapsed() < Duration::from_secs(2), || format!("it took {:?}", pressed.elapsed()))?;
    ensure(lines.all(|line| line.is_ok_and(|line| line != "never")), || "it went on".to_string())?;
    Ok(Outcome::Passed(format!("{:?}", pressed.elapsed())))
}

fn closed_pipe_is_quiet() -> Result<Outcome, String> {
    let mut child = piped("select value from generate_series(1, 100000000)")?;
    let mut first = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut first).map_err(|e| e.to_string())?;
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    ensure(first == "value\n" && output.status.code() == Some(0), || format!("{first:?}, {}", output.status))?;
    ensure(output.stderr.is_empty(), || String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(Outcome::Passed(String::new()))
}

/// kB of this kind (`VmRSS`: held now, `VmHWM`: the most since the peak was forgotten) that a process uses.
fn memory(process: u32, kind: &str) -> Result<usize, String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|l| l.strip_prefix(kind)?.strip_prefix(':'));
    let kb = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    kb.ok_or_else(|| format!("no {kind} in the status of process {process}"))
}

/// What a process holds now, from where its peak is counted anew.
fn held_from_now_on(process: u32) -> Result<usize, String> {
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").map_err(|e| e.to_string())?;
    memory(process, "VmRSS")
}

/// A result of more than a hundred MB in rows, and as SQL up to where the digits of that number end. Held whole, it would
/// more than fill what it may grow by.
const LONG: usize = 3_000_000;
const LONG_SQL: &str = "select value, value * 2 as twice, 'a text of some length' as t from generate_series(1, 3000000";
const MAY_GROW_KB: usize = 50_000;

fn long_tables_stream(pty: &mut Pty, _: &TempDir) -> Result<(), String> {
    pty.line("\\pager off")?;
    pty.wait_text("pager is off")?;
    pty.line(&format!("{LONG_SQL}0);"))?;
    // the first rows are shown while the rest is still to come
    pty.wait_text("├──")?;
    let held = held_from_now_on(pty.id()?)?;
    pty.wait_text("showing 40 of 30 000 000 rows")?;
    let peak = memory(pty.id()?, "VmHWM")?;
    // 64 MB of the rest are kept for \\more
    ensure(peak < held + 65_536 + MAY_GROW_KB, || format!("from {held} kB to {peak} kB"))
}

fn long_results_stream() -> Result<Outcome, String> {
    let mut child = piped(&format!("{LONG_SQL})"))?;
    let (mut held, mut peak) = (0, 0);
    let mut lines = 0;
    let mut reader = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    while reader.read_line(&mut line).map_err(|e| e.to_string())? > 0 {
        lines += 1;
        line.clear();
        if lines == LONG / 10 {
            held = held_from_now_on(child.id())?;
        }
        // at the last line it may be gone
        if lines % (LONG / 100) == 0 && lines < LONG {
            peak = memory(child.id(), "VmHWM")?;
        }
    }
    ensure(child.wait().map_err(|e| e.to_string())?.success(), || "it failed".to_string())?;
    ensure(lines == LONG + 1, || format!("{lines} lines"))?;
    ensure(held > 0 && peak < held + MAY_GROW_KB, || format!("from {held} kB at a tenth to {peak} kB"))?;
    Ok(Outcome::Passed(format!("{held} kB at a tenth, {peak} kB at the peak")))
}

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new("shell::B097_ctrl_c_ends_a_script_with_130", ctrl_c_ends_a_script));
    tests.push(Test::new("shell::B097_planning_is_cancelled", planning_is_cancelled));
    tests.push(Test::new("shell::B097_connecting_is_cancelled", connecting_is_cancelled));
    tests.push(Test::new("shell::closed_pipe_is_quiet", closed_pipe_is_quiet));
    tests.push(Test::new("shell::B096_long_results_stream_in_bounded_memory", long_results_stream));
    tests.push(Test::new("shell::B095_data_is_never_cut", data_is_never_cut));
    tests.push(Test::new("shell::terminal::history_that_cannot_be_kept_is_told", history_that_cannot_be_kept_is_told));
    tests
        .push(Test::new("shell::terminal::history_is_not_kept_in_the_warehouse", history_is_not_kept_in_the_warehouse));
    tests.push(Test::new("shell::terminal::settings_are_read_before_the_prompt", settings_are_read_before_the_prompt));
    tests.push(Test::new("shell::terminal::history_with_a_bad_byte_is_mended", history_with_a_bad_byte_is_mended));
    tests.push(Test::new("shell::terminal::prompt_turns_red", prompt_turns_red_when_the_pin_is_lost));
    let mut add = |name: &str, size: (u16, u16), env: &'static [(&'static str, &'static str)], check: Check| {
        tests.push(Test::new(format!("shell::terminal::{name}"), move || {
            let (mut pty, home) = shell(size, env)?;
            check(&mut pty, &home)?;
            Ok(Outcome::Passed(String::new()))
        }));
    };
    add("prompt_shows_the_pin", (40, 200), &[], prompt_shows_the_pin);
    add("names_are_completed", (40, 120), &[], names_are_completed);
    add("B097_ctrl_c_cancels_and_twice_leaves", (30, 120), &[], ctrl_c_cancels_and_twice_leaves);
    add("B095_long_results_are_capped", (60, 100), &[], long_results_are_capped_and_more_shows_the_rest);
    add("B095_metadata_is_never_cut", (70, 100), &[], metadata_is_never_cut);
    add("B096_long_tables_stream_in_bounded_memory", (60, 100), &[], long_tables_stream);
    add("B100_cjk_and_emoji_stay_aligned", (30, 80), &[], cjk_and_emoji_stay_aligned);
    add("B100_too_wide_becomes_records", (40, 60), &[], too_wide_becomes_records);
    add("B098_pager_gets_what_does_not_fit", (20, 100), &[("PAGER", "sed s/^/P:/")], pager_gets_what_does_not_fit);
    add(
        "B098_missing_pager_hides_nothing",
        (20, 100),
        &[("PAGER", "no-such-pager")],
        pager_that_is_not_there_hides_nothing,
    );
    add("B098_watch_never_pages", (60, 100), &[("PAGER", "sed s/^/P:/")], watch_runs_until_told_and_never_pages);
    add("B097_joins_are_cancelled", (30, 140), &[], what_never_gives_way_is_cancelled);
    add("B097_stuck_statement_keeps_nobody", (40, 140), &[], what_never_gives_way_keeps_nobody);
    add("B097_rows_without_a_pause_are_counted", (40, 140), &[], rows_without_a_pause_are_counted);
    add("B097_watching_is_cancelled", (30, 140), &[], watching_is_cancelled_while_it_reads);
    add("window_may_change", (30, 120), &[], window_may_change);
    add("dumb_terminal", (30, 120), &[("TERM", "dumb"), ("PAGER", "sed s/^/P:/")], dumb_terminal_gets_no_codes);
    add("terminal_that_says_nothing", (30, 120), &[("TERM", "")], no_colour_where_none_is_wanted);
    add("byte_that_is_no_text", (40, 120), &[], byte_that_is_no_text_costs_its_line);
    add("data_does_nothing_to_the_terminal", (60, 160), &[], data_does_nothing_to_the_terminal);
    add("no_color", (30, 120), &[("NO_COLOR", "1")], no_colour_where_none_is_wanted);
    add("no_home", (30, 120), &[("HOME", ""), ("XDG_STATE_HOME", "")], shell_works_without_a_home);
    add("choice_of_set_is_on_the_prompt", (30, 120), &[], settings_that_choose_a_snapshot_are_on_the_prompt);
    add("error_ends_the_file", (40, 160), &[], error_ends_the_file_and_not_the_shell);
    add("more_goes_on_counting_records", (60, 100), &[], more_goes_on_counting_records);
    add("skipped_branch_is_marked", (30, 120), &[], branch_that_does_not_run_is_marked);
    add("history_is_private", (30, 100), &[], history_is_private_and_holds_no_secret);
    add("tour_runs_at_the_prompt", (60, 160), &[], demo_opens_the_shell);
}
