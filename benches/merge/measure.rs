//! Processor time, wall time and memory of a run.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Processor time of all threads.
    pub cpu: Duration,
    /// Time that passed.
    pub wall: Duration,
    /// The most memory that the process held meanwhile, in MiB; 0 where the system does not tell.
    pub peak_mib: u64,
}

fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("what the process used");
    let of =
        |time: TimeVal| Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0));
    of(usage.user_time()) + of(usage.system_time())
}

/// The most memory since the last call.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: u64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kilobytes >> 10
}

/// The least of some runs, each number by itself; what `before` makes is not measured.
pub async fn least<T>(runs: usize, before: impl AsyncFn() -> T, run: impl AsyncFn(T)) -> Cost {
    let mut best = Cost { cpu: Duration::MAX, wall: Duration::MAX, peak_mib: u64::MAX };
    for _ in 0..runs {
        let given = before().await;
        let _ = peak();
        let (began, used) = (Instant::now(), cpu());
        run(given).await;
        let cost = Cost { cpu: cpu() - used, wall: began.elapsed(), peak_mib: peak() };
        best.cpu = best.cpu.min(cost.cpu);
        best.wall = best.wall.min(cost.wall);
        best.peak_mib = best.peak_mib.min(cost.peak_mib);
    }
    best
}
