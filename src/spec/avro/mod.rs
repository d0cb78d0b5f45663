//! Avro object container files: what the readers of metadata files and of data files have in common.
//!
//! ```text
//! Obj 1 | map: avro.schema, avro.codec | mark: 16 bytes | block | block | …
//! block:  rows, bytes: varints | bytes, compressed | the mark again
//! ```
//! Both readers are ours, since the files are unlike others: Java puts a union around the row (`["null", record]`), and
//! a hostile file must cost no more than a good one. Who reads adds the file and the offset to an error.
//!
//! | file | one idea |
//! |---|---|
//! | `container` | header and codecs |
//! | `schema` | the writer's schema as a tree |
//! | `input` | the primitive values in a slice, and how often those without bytes may repeat |

mod container;
mod input;
mod schema;

pub(crate) use container::{Header, MAGIC, MARK, Stop, decompress};
pub(crate) use input::{Input, Repeats};
pub(crate) use schema::{DecimalMeaning, IntMeaning, LongMeaning, Node, branch};

#[cfg(test)]
mod tests;
