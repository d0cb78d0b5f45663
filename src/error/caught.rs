//! Panics of other people's decoders, turned into words.
//!
//! Decoders of Parquet and ORC index and unwrap on what they find in a file. What they panic with is caught where they are
//! called; a program that calls [`keep_caught_panics_quiet`] does not print it besides.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`; a panic becomes its words. What `work` owned is dropped with it: nothing half-made may be used again.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    CATCHING.set(CATCHING.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(CATCHING.get() - 1);
    outcome.map_err(|panic| words(panic.as_ref()))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".to_string())
}

/// Keeps panics that are caught and told as errors from being printed as well; all others are printed as before. For the
/// start of a program.
pub fn keep_caught_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if CATCHING.get() == 0 {
                before(panic);
            } else {
                log::debug!("caught: {panic}");
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::caught;

    #[test]
    fn panics_become_words_and_results_pass() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| panic!("of {}", 3)), Err::<(), _>("of 3".to_string()));
        assert_eq!(caught(|| caught(|| panic!("inside"))), Ok(Err::<(), _>("inside".to_string())));
    }
}
