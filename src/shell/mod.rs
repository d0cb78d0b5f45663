//! The program: arguments, prompt, commands, rendering, suites. Nothing else prints.
//!
//! | file | one idea |
//! |---|---|
//! | `program`, `args`, `exit` | from the command line to an exit code |
//! | `input`, `variables`, `script`, `conditions` | text to statements and commands |
//! | `execute`, `workers`, `interrupt`, `progress` | one statement from text to an answer, cancelled when asked |
//! | `stream`, `footer`, `spool` | an answer to where it goes, and what stands under it |
//! | `output`, `pager`, `terminal`, `report` | files and programs, the screen, errors |
//! | `language` | the shell's words in English and Chinese |
//! | `render/` | batches to text, a file a format |
//! | `commands/` | backslash commands, one registry |
//! | `repl`, `prompt`, `lost`, `complete`, `scope`, `highlight`, `history`, `redact`, `words` | the prompt |
//! | `names` | names in the statements that commands make |
//! | `exact` | numbers as they are shown, compared and subtracted without a loss |
//! | `suites/` | sqllogictest files |
//! | `checks` | comparisons in files |
//! | `demo/` | the demo warehouse and its tour |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one room that prints")]

mod args;
mod checks;
mod commands;
mod complete;
mod conditions;
mod demo;
mod exact;
mod execute;
mod exit;
mod footer;
mod highlight;
mod history;
mod input;
mod interrupt;
mod language;
mod lost;
mod names;
mod output;
mod pager;
mod program;
mod progress;
mod prompt;
mod redact;
mod render;
mod repl;
mod report;
mod scope;
mod script;
mod spool;
mod state;
mod stream;
#[cfg(feature = "slt")]
pub mod suites;
mod terminal;
mod variables;
mod words;
mod workers;

pub use demo::make as make_demo;
pub use program::main;
