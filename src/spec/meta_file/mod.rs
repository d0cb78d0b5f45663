//! Metadata files as rows: manifest lists, manifests and index manifests are small tables of nested columns, stored as
//! Avro (usual), ORC or Parquet. The first bytes tell which. Columns are found by name, whatever the writer called its
//! records; unknown columns are skipped, missing nullable ones are null.
//!
//! | file | owns |
//! |---|---|
//! | `table` | what columns a kind of file has: the one list for reading and writing |
//! | `row` | one row on its way into a struct, with errors that name the column |
//! | `avro_read`, `avro_write` | rows in Avro; the container is that of [`super::avro`] |
//! | `columnar` | ORC and Parquet |

mod avro_read;
mod avro_write;
mod columnar;
mod row;
mod table;

pub(super) use row::{Row, Value};
pub(super) use table::{Element, Field, Kind, Table};

use super::avro::MAGIC as AVRO;
use crate::error::{Error, ErrorKind, Result};

const ORC: &[u8] = b"ORC";
const PARQUET: &[u8] = b"PAR1";

fn damaged(what: impl Into<String>) -> Error {
    Error::corrupt(what).with_code(CORRUPT)
}

/// The code of damage, which the readers of the container do not know.
const CORRUPT: &str = "CorruptManifest";

/// Damage of whatever depth is damage of a manifest.
fn coded(error: Error) -> Error {
    // what is wrong with a value, a row of a key for instance, has a code of its own
    if error.kind() == ErrorKind::Corrupt && error.code() == "Corrupt" { error.with_code(CORRUPT) } else { error }
}

/// The rows of a file.
#[derive(Debug)]
pub(super) struct Decoded<T> {
    /// In their order.
    pub(super) rows: Vec<T>,
    /// Whether the file may be the beginning of a longer one, cut between two blocks.
    pub(super) may_be_cut: bool,
}

/// Decodes every row of a file with the columns of `table`. `name` is the file, for errors.
pub(super) fn decode<T>(
    bytes: &[u8],
    name: &str,
    table: &'static Table,
    mut build: impl FnMut(&mut Row<'_, '_>) -> Result<T>,
) -> Result<Decoded<T>> {
    let mut rows = Vec::new();
    let mut sink = |values: &[Value<'_>]| {
        let mut row = Row::new(table, values);
        let built = build(&mut row).map_err(|error| error.with_context("entry", rows.len()))?;
        rows.push(built);
        Ok(())
    };
    let read = if bytes.starts_with(AVRO) {
        avro_read::read(bytes, table, &mut sink)
    } else if bytes.starts_with(PARQUET) {
        // these two end in a footer
        columnar::read_parquet(bytes, table, &mut sink).map(|()| false)
    } else if bytes.starts_with(ORC) {
        columnar::read_orc(bytes, table, &mut sink).map(|()| false)
    } else if bytes.is_empty() {
        Err(damaged("the file is empty"))
    } else {
        let head = bytes.get(..4).unwrap_or(bytes);
        Err(damaged(format!("the file is not Avro, ORC or Parquet: it begins with {head:02x?}")))
    };
    let may_be_cut = read.map_err(|error| coded(error).or_restore().with_context("file", name))?;
    Ok(Decoded { rows, may_be_cut })
}

/// Encodes rows as an Avro file with codec zstandard.
pub(super) fn encode<'a, T: 'a>(
    table: &'static Table,
    rows: impl IntoIterator<Item = &'a T>,
    values: impl Fn(&'a T) -> Vec<Value<'a>>,
) -> Result<Vec<u8>> {
    avro_write::write(table, rows.into_iter().map(values))
}

#[cfg(test)]
mod tests;
