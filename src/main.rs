//! The `lakepin` program.

fn main() {}
