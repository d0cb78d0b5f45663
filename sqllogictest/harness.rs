//! A small test harness: named tests made at run time, run in threads, closing with the count.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use crate::resume::Ledger;

/// How a test that did not fail ended.
pub enum Outcome {
    /// It passed; the note is printed.
    Passed(String),
    /// Something it needs is missing. Never quiet: in CI it counts as a failure.
    Skipped(String),
}

/// One named test.
pub struct Test {
    pub name: String,
    pub run: Box<dyn FnOnce() -> Result<Outcome, String> + Send>,
    /// At full scale, whether it need not run again once this program has passed it.
    resumable: bool,
}

impl Test {
    pub fn new(name: impl Into<String>, run: impl FnOnce() -> Result<Outcome, String> + Send + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run), resumable: false }
    }

    /// A unit of a long proof, which counts on its own.
    pub fn resumable(self) -> Self {
        Self { resumable: true, ..self }
    }

    /// A test of async code, on a runtime of its own.
    pub fn new_async<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Outcome, String>>,
    {
        Self::new(name, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .map_err(|e| e.to_string())?;
            runtime.block_on(run())
        })
    }
}

#[derive(Default)]
struct Args {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    threads: usize,
}

impl Args {
    fn parse() -> Self {
        let mut parsed = Self { threads: 2, ..Self::default() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--list" => parsed.list = true,
                "--exact" => parsed.exact = true,
                "--skip" => parsed.skip.extend(args.next()),
                "--test-threads" => parsed.threads = args.next().and_then(|n| n.parse().ok()).unwrap_or(2),
                a if a.starts_with("--test-threads=") => {
                    parsed.threads = a["--test-threads=".len()..].parse().unwrap_or(2);
                }
                "--format" | "--color" | "--logfile" => drop(args.next()),
                a if a.starts_with('-') => {}
                filter => parsed.filters.push(filter.to_string()),
            }
        }
        parsed
    }

    fn wants(&self, name: &str) -> bool {
        let hit = |pattern: &String| if self.exact { name == pattern } else { name.contains(pattern.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.skip.iter().any(hit)
    }
}

/// Runs what the arguments ask for and prints each test and the closing count.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let args = Args::parse();
    let all = tests.len();
    let every_golden = tests.iter().filter(|test| test.name.starts_with("golden::")).all(|test| args.wants(&test.name));
    let wanted: VecDeque<Test> = tests.into_iter().filter(|test| args.wants(&test.name)).collect();
    if args.list {
        wanted.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", wanted.len());
    let filtered = all - wanted.len();
    let strict = std::env::var_os("CI").is_some();
    let ledger = Ledger::open();
    let queue = Mutex::new(wanted);
    let counts = Mutex::new((0usize, 0usize, 0usize));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let Some(test) = queue.lock().expect("queue lock").pop_front() else { break };
                    if let Some(note) = ledger.passed_before(&test.name).filter(|_| test.resumable) {
                        counts.lock().expect("count lock").0 += 1;
                        println!("test {} ... ok (passed by an earlier run: {note})", test.name);
                        continue;
                    }
                    let began = Instant::now();
                    let run = test.run;
                    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                        let text = panic
                            .downcast_ref::<String>()
                            .cloned()
                            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
                        Err(format!("panicked: {}", text.unwrap_or_default()))
                    });
                    let seconds = began.elapsed().as_secs_f64();
                    let mut counts = counts.lock().expect("count lock");
                    match outcome {
                        Ok(Outcome::Passed(note)) => {
                            counts.0 += 1;
                            if test.resumable {
                                ledger.pass(&test.name, &note);
                            }
                            let note = if note.is_empty() { note } else { format!(" ({note})") };
                            println!("test {} ... ok{note} [{seconds:.2}s]", test.name);
                        }
                        Ok(Outcome::Skipped(why)) if !strict => {
                            counts.2 += 1;
                            println!("test {} ... SKIPPED: {why}", test.name);
                        }
                        Ok(Outcome::Skipped(why)) => {
                            counts.1 += 1;
                            println!("test {} ... FAILED\n    nothing may be skipped in CI: {why}", test.name);
                        }
                        Err(message) => {
                            counts.1 += 1;
                            println!("test {} ... FAILED\n    {}", test.name, message.replace('\n', "\n    "));
                        }
                    }
                }
            });
        }
    });
    let (passed, mut failed, skipped) = counts.into_inner().expect("count lock");
    if let Some(summary) = crate::golden::summary() {
        println!("\n{summary}");
        for (name, held) in if every_golden { crate::golden::after_a_full_run() } else { Vec::new() } {
            match held {
                Ok(Outcome::Passed(note) | Outcome::Skipped(note)) => println!("test {name} ... ok ({note})"),
                Err(message) => {
                    println!("test {name} ... FAILED\n    {message}");
                    failed += 1;
                }
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; {filtered} filtered out; finished in {:.2}s\n",
        started.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
