//! What tests with hostile bytes share: how many cases they try, and how much memory a piece of work asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes this thread holds now; less than nothing when it gives back what another took.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most it held since it was asked last.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted by thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(change: isize) {
    // a thread on its way out has no counters any more
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(change));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator as it came
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Watches how much memory this thread asks for.
pub(crate) struct Meter(isize);

impl Meter {
    /// From now on.
    pub(crate) fn start() -> Self {
        let held = HELD.get();
        PEAK.set(held);
        Self(held)
    }

    /// The most bytes held at one time since, over what was held before.
    pub(crate) fn peak(&self) -> usize {
        usize::try_from(PEAK.get() - self.0).unwrap_or(0)
    }
}

/// What `work` gives, and the most bytes this thread held for it at one time.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let meter = Meter::start();
    let result = work();
    (result, meter.peak())
}

/// The most a decoder may ask for on some kilobytes: what a codec unfolds to at best, and room for tables.
pub(crate) const ENOUGH: usize = 64 << 20;

/// `least` cases, twenty times as many at full scale.
pub(crate) fn cases(least: u32) -> proptest::prelude::ProptestConfig {
    let full = std::env::var("LAKEPIN_SCALE").as_deref() == Ok("full");
    proptest::prelude::ProptestConfig::with_cases(if full { least * 20 } else { least })
}

#[test]
fn the_most_memory_is_seen() {
    let (kept, peak) = peak_of(|| {
        drop(vec![1u8; 3 << 20]);
        vec![1u8; 1 << 20]
    });
    assert_eq!(kept.len(), 1 << 20);
    assert!((3 << 20..4 << 20).contains(&peak), "{peak}");
}
