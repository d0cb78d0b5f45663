//! Exit codes, the same for the shell, scripts and subcommands.

use crate::error::{Error, ErrorKind};

/// Done.
pub const DONE: u8 = 0;
/// SQL or run error.
pub const FAILED: u8 = 1;
/// Usage, missing file.
pub const USAGE: u8 = 2;
/// Different: a comparison found differences, or none where some were expected.
pub const DIFFERENT: u8 = 3;
/// Pin lost or expired, data file lost.
pub const LOST: u8 = 4;
/// Timeout or budget.
pub const LIMIT: u8 = 5;
/// Not committed, superseded, horizon not reached.
pub const NOT_YET: u8 = 6;
/// It cannot be said.
pub const UNKNOWN: u8 = 7;
/// A fault of ours, as every Rust program ends then.
pub const PANICKED: u8 = 101;
/// SIGHUP: the terminal is gone.
pub const HUNG_UP: u8 = 129;
/// Ctrl-C.
pub const INTERRUPTED: u8 = 130;
/// SIGTERM.
pub const TERMINATED: u8 = 143;

/// The exit code of an error.
pub fn code_of(error: &Error) -> u8 {
    match error.code() {
        "Interrupted" => INTERRUPTED,
        "Usage" | "FileNotFound" | "WarehouseNotFound" => USAGE,
        "Different" => DIFFERENT,
        "SnapshotExpired" | "PinLost" | "DataFileMissing" | "FileLost" => LOST,
        "NotCommitted" | "Superseded" | "WatermarkNotReached" => NOT_YET,
        "CommitUnknown" => UNKNOWN,
        _ if error.kind() == ErrorKind::Exhausted => LIMIT,
        _ => FAILED,
    }
}

/// Ends the program at once: the pager with it, the terminal as it was, no file half written.
pub fn now(code: u8) -> ! {
    super::progress::clear();
    super::pager::end();
    super::terminal::restore();
    super::output::leave_unfinished();
    std::process::exit(i32::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_exit_codes_promised() {
        let cases = [
            (Error::invalid("x"), FAILED),
            (Error::not_found("x").with_code("SnapshotExpired"), LOST),
            (Error::not_found("x").with_code("DataFileMissing"), LOST),
            (Error::corrupt("x").with_code("FileLost"), LOST),
            (Error::invalid("x").with_code("Different"), DIFFERENT),
            (Error::exhausted("x").with_code("Timeout"), LIMIT),
            (Error::exhausted("x").with_code("GateTimeout"), LIMIT),
            (Error::not_found("x").with_code("NotCommitted"), NOT_YET),
            (Error::not_found("x").with_code("Superseded"), NOT_YET),
            (Error::not_found("x").with_code("WatermarkNotReached"), NOT_YET),
            (Error::not_found("x").with_code("CommitUnknown"), UNKNOWN),
            (super::super::interrupt::interrupted(), INTERRUPTED),
        ];
        for (error, code) in cases {
            assert_eq!(code_of(&error), code, "{error:?}");
        }
    }
}
