//! The page of a verdict, in a real browser without a screen: charts are there, values that want to be markup are text,
//! nothing is asked of the network, and the numbers are those of the JSON. `LAKEPIN_TEST_CHROMIUM` names the browser.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{FileSpec, TableBuilder, TableSpec};
use serde_json::{Value, json};

use crate::harness::{Outcome, Test};

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("page::charts_are_there_and_data_is_text", run));
}

/// The browser, if there is one.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LAKEPIN_TEST_CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// What somebody may have as a key, a status or a name.
fn hostile(port: u16) -> Vec<String> {
    vec![
        "<script>document.title='taken'</script>".into(),
        format!("\"><img src=\"http://127.0.0.1:{port}/key\" onerror=\"document.title='taken'\">"),
        format!("'><svg onload=\"document.title='taken'\"><image href=\"http://127.0.0.1:{port}/svg\"/>"),
        "</style></title></section><h1>taken</h1>".into(),
        format!("<link rel=stylesheet href=http://127.0.0.1:{port}/style><iframe src=http://127.0.0.1:{port}/frame>"),
        "]]><!-- & &amp; {{7*7}} ${7*7} 支付成功 \u{202e}gnp.exe".into(),
    ]
}

async fn made(folder: &Path, port: u16) -> Result<(String, Value), String> {
    let hostile = hostile(port);
    let columns =
        [("dt", "STRING NOT NULL"), ("id", "STRING NOT NULL"), ("amount", "DECIMAL(10, 2)"), ("state", "STRING")];
    let spec = TableSpec::new(&columns).partitioned_by(&["dt"]).primary_key(&["dt", "id"]).option("bucket", "1");
    let mut table = TableBuilder::create(folder, "pay", "t", &spec).map_err(|e| e.to_string())?;
    let row = |dt: usize, id: String, amount: i64| json!({"dt": format!("2026-04-{dt:02}"), "id": id, "amount": format!("{amount}.00"), "state": "PAID"});
    let mut rows: Vec<String> = Vec::new();
    for day in 1..=6_usize {
        let all: Vec<Value> = (0..40).map(|n| row(day, format!("P{day}-{n:03}"), n + 1)).collect();
        table
            .commit()
            .user("flink-cdc-pay")
            .identifier(day as i64)
            .file(FileSpec::rows(&all))
            .publish()
            .map_err(|e| e.to_string())?;
        // the source lacks some, and has others
        rows.extend((day as i64..40).map(|n| format!("('2026-04-{day:02}', 'P{day}-{n:03}', {}.00, 'PAID')", n + 1)));
        rows.extend((0..3 * day).map(|n| format!("('2026-04-{day:02}', 'N{day}-{n:03}', 9.00, 'NEW')")));
    }
    for (number, text) in hostile.iter().enumerate() {
        let wrong = [row(1, text.clone(), 5)];
        let user = format!("spark-fix {text}");
        let commit = table.commit().user(&user).identifier(i64::MAX).file(FileSpec::rows(&wrong));
        commit.publish().map_err(|e| e.to_string())?;
        let quoted = text.replace('\'', "''");
        rows.push(format!("('2026-04-01', '{quoted}', {}.00, '{quoted}')", number + 6));
    }
    let warehouse =
        Warehouse::open(&folder.display().to_string(), &BTreeMap::new()).await.map_err(|e| e.to_string())?;
    let session = Session::new(&warehouse, SessionConfig::default()).await.map_err(|e| e.to_string())?;
    let sql = format!(
        "RECONCILE pay.t WITH (SELECT * FROM (VALUES {}) AS s(dt, id, amount, state)) ON KEY (dt, id) VERDICT OF 60 KEYS THEIR COUNT 247",
        rows.join(", ")
    );
    let judged = session.verdict(&sql, None).await.map_err(|e| format!("{e:?}"))?;
    let json = judged.verdict.json().map_err(|e| e.to_string())?;
    Ok((judged.verdict.page(), serde_json::from_str(&json).map_err(|e| e.to_string())?))
}

/// The document as the browser has it, and what it said on its console.
fn looked_at(browser: &Path, page: &Path, profile: &Path) -> Result<(String, String), String> {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--dump-dom", &format!("file://{}", page.display())])
        .output()
        .map_err(|e| format!("{}: {e}", browser.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        return Err(format!("the browser ended with {}: {}", output.status, text(&output.stderr)));
    }
    let console: Vec<String> =
        text(&output.stderr).lines().filter(|line| line.contains("CONSOLE")).map(str::to_string).collect();
    Ok((text(&output.stdout), console.join("\n")))
}

/// Values of an attribute, in the order of the document.
fn attributes<'a>(document: &'a str, before: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let marker = format!(" {name}=\"");
    document.split('<').filter(move |tag| tag.starts_with(before)).filter_map(move |tag| {
        let (_, rest) = tag.split_once(&marker)?;
        rest.split('"').next()
    })
}

async fn run() -> Result<Outcome, String> {
    let Some(browser) = browser() else {
        return Ok(Outcome::Skipped("no Chromium is installed (LAKEPIN_TEST_CHROMIUM names one)".into()));
    };
    // whoever asks for anything is counted
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (page, json) = made(&folder.path().join("warehouse"), port).await?;
    if let Some(kept) = std::env::var_os("LAKEPIN_TEST_KEEP_PAGE") {
        std::fs::write(kept, &page).map_err(|e| e.to_string())?;
    }
    let file = folder.path().join("verdict.html");
    std::fs::write(&file, &page).map_err(|e| e.to_string())?;
    let (document, console) = looked_at(&browser, &file, &folder.path().join("profile"))?;
    let mut wrong: Vec<String> = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_string());
        }
    };
    must(console.is_empty(), &format!("the console is not empty: {console}"));
    must(asked.load(Ordering::SeqCst) == 0, "the page asked for something");
    must(document.contains("<title>Verdict: pay.t</title>"), "the title was taken");
    for tag in ["<script", "<img", "<iframe", "<link", "<image"] {
        must(!document.contains(tag), &format!("there is {tag} in the document"));
    }
    let tags = || document.split('<').filter_map(|part| part.split('>').next());
    must(!tags().any(|tag| tag.contains(" onerror=") || tag.contains(" onload=")), "a tag has a handler");
    must(document.matches("<h1").count() == 1, "there is a heading of the data's");
    // in text a browser writes quotes as they are
    for text in ["&lt;script&gt;document.title='taken'&lt;/script&gt;", "支付成功", "{{7*7}} ${7*7}"] {
        must(document.contains(text), &format!("{text} is not shown as text"));
    }
    for chart in ["commits", "rows", "partitions", "keys"] {
        let section = document.split("<section id=\"").find(|part| part.starts_with(&format!("{chart}\"")));
        must(section.is_some_and(|part| part.contains("<svg")), &format!("there is no chart {chart}"));
    }
    let array = |name: &str| json[name].as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_u64().map(|number| number.to_string()).unwrap_or_default();
    let classes: Vec<String> = array("classes").iter().map(|one| number(&one["findings"])).collect();
    must(attributes(&document, "tr", "data-findings").eq(classes.iter().map(String::as_str)), "classes are other ones");
    let causes: Vec<String> = array("causes").iter().map(|one| number(&one["findings"])).collect();
    must(
        attributes(&document, "article", "data-findings").eq(causes.iter().map(String::as_str)),
        "causes are other ones",
    );
    let commits: Vec<String> = array("commits").iter().map(|one| number(&one["snapshot"])).collect();
    let dots = document.split("<section id=\"").find(|part| part.starts_with("commits\"")).unwrap_or_default();
    must(attributes(dots, "circle", "data-snapshot").eq(commits.iter().map(String::as_str)), "commits are other ones");
    let mut points: Vec<String> = Vec::new();
    for name in ["raw_rows", "final_rows", "superseded"] {
        points.extend(
            array("accounting").iter().filter(|point| !point[name].is_null()).map(|point| number(&point[name])),
        );
    }
    must(attributes(&document, "circle", "data-rows").eq(points.iter().map(String::as_str)), "rows are other ones");
    let in_charts: u64 = attributes(&document, "rect", "data-findings").filter_map(|n| n.parse::<u64>().ok()).sum();
    let in_json: u64 = array("partitions").iter().filter_map(|one| one["findings"].as_u64()).sum();
    must(in_charts == in_json && in_json > 0, "partitions are other ones");
    must(!commits.is_empty() && !causes.is_empty() && !points.is_empty(), "there is nothing to see");
    let left_out = json["keys_left_out"].as_u64().unwrap_or(0);
    must(left_out > 0 && document.contains(&format!("and {left_out} more")), "what is left out is not told");
    if wrong.is_empty() {
        return Ok(Outcome::Passed(format!(
            "{} bytes, {} commits, {} points",
            page.len(),
            commits.len(),
            points.len()
        )));
    }
    Err(wrong.join("\n"))
}
