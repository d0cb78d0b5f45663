//! The program: arguments, prompt, commands, rendering, suites. Nothing else prints.
//!
//! | file | one idea |
//! |---|---|
//! | `program`, `args`, `exit` | from the command line to an exit code |
//! | `input`, `variables`, `script`, `conditions` | text to statements and commands |
//! | `execute`, `interrupt`, `progress`, `spool` | one statement from text to rows, cancelled when asked |
//! | `output`, `terminal`, `report` | files, pager, errors |
//! | `render/` | batches to text, a file a format |
//! | `commands/` | backslash commands, one registry |
//! | `repl`, `prompt`, `complete`, `highlight`, `history`, `redact`, `words` | the prompt |
//! | `names` | names in the statements that commands make |
//! | `suites/` | sqllogictest files |
//! | `demo/` | the demo warehouse and its tour |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one room that prints")]

mod args;
mod commands;
mod complete;
mod conditions;
mod demo;
mod execute;
mod exit;
mod highlight;
mod history;
mod input;
mod interrupt;
mod names;
mod output;
mod program;
mod progress;
mod prompt;
mod redact;
mod render;
mod repl;
mod report;
mod script;
mod spool;
mod state;
#[cfg(feature = "slt")]
pub mod suites;
mod terminal;
mod variables;
mod words;

pub use demo::make as make_demo;
pub use program::main;
