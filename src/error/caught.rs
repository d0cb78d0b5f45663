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
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "no words".to_string(), |text| told(&text))
}

/// The words of a panic for who reads a table: without the calls and the source files of the decoder.
fn told(text: &str) -> String {
    const UNWRAPPED: &[(&str, &str)] = &[
        ("called `Result::unwrap()` on an `Err` value: ", ""),
        ("called `Option::unwrap()` on a `None` value", "something is missing in it"),
    ];
    let text = UNWRAPPED.iter().fold(text.to_string(), |text, (call, words)| text.replace(call, words));
    text.split_inclusive(['"', '\'', ' ', '(', ')', ','])
        .map(|word| match word.rsplit_once('/') {
            Some((folder, file)) if file.contains(".rs") => match folder.find('/') {
                Some(0) => file,
                _ => word,
            },
            _ => word,
        })
        .collect()
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

    #[test]
    fn words_name_no_source_files_and_no_calls() {
        let cases = [
            (
                r#"called `Result::unwrap()` on an `Err` value: Io { location: Location { file: "/home/x/lib-1/src/a.rs", line: 3 } }"#,
                r#"Io { location: Location { file: "a.rs", line: 3 } }"#,
            ),
            ("called `Option::unwrap()` on a `None` value", "something is missing in it"),
            ("cannot read /data/t/bucket-0/a.orc, 3/4 of it", "cannot read /data/t/bucket-0/a.orc, 3/4 of it"),
        ];
        for (panic, told) in cases {
            assert_eq!(caught(|| panic!("{panic}")), Err::<(), _>(told.to_string()));
        }
    }
}
