//! The program: arguments, prompt, commands, rendering, suites. Nothing else prints.
