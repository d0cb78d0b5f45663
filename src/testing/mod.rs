//! For tests and the demo: a builder of real table files, a naive merge, broken stores. Not part of the promised API.

pub mod builder;
pub mod golden;
pub mod naive;
