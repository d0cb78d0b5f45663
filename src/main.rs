//! The `lakepin` program: everything is in the library's `shell`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lakepin::shell::main()
}
