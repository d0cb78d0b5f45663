//! Avro object container files: header, blocks, and rows by the writer's schema.
//!
//! ```text
//! Obj 1 | map: avro.schema, avro.codec | sync: 16 bytes | block | block | …
//! block:  rows, bytes: varints | bytes, compressed | the sync marker again
//! ```
//! The writer's schema is laid over the wanted columns once, as a plan; decoding follows the plan and never looks at a
//! name again. Lengths are checked against what is left before anything is allocated.

use std::borrow::Cow;
use std::io::Read;

use apache_avro::{Codec, DeflateSettings};

use super::avro_schema::{Node, NodeId, Schema};
use super::damaged;
use super::row::Value;
use super::table::{Kind, Table};
use crate::error::{Error, Result};

/// Limit of one decompressed block. Writers cut blocks at some ten kilobytes.
const MAX_BLOCK_BYTES: usize = 256 << 20;
/// Limit of a file's decompressed blocks together. Manifests are cut at some megabytes.
const MAX_FILE_BYTES: usize = 1 << 30;
/// Nesting of types that may be skipped.
const MAX_DEPTH: usize = 64;
/// Branches of a union that is not skipped; writers have null and one more.
const MAX_BRANCHES: usize = 4;
/// Columns of a record that is not skipped.
const MAX_COLUMNS: usize = 1000;
const SYNC: usize = 16;

/// Receives the rows.
pub type Sink<'s> = dyn FnMut(&[Value<'_>]) -> Result<()> + 's;

/// Bytes of rows after which writers close a block: Java's, and those of fastavro and Rust.
const WRITERS_BLOCKS: [usize; 2] = [64_000, 16_000];

/// How large the blocks of a file are, decompressed.
#[derive(Default)]
struct BlockSizes {
    /// The smallest but the last.
    smallest: Option<usize>,
    last: Option<usize>,
    longest_row: usize,
}

impl BlockSizes {
    fn add(&mut self, block: usize, longest_row: usize) {
        if let Some(last) = self.last.replace(block) {
            self.smallest = Some(self.smallest.map_or(last, |smallest| smallest.min(last)));
        }
        self.longest_row = self.longest_row.max(longest_row);
    }

    /// Whether more blocks may have followed. A writer closes a block with the row that reaches its limit, so that all
    /// are about as long, but for the one that holds the rest.
    fn may_go_on(&self) -> bool {
        let Some(last) = self.last else { return true };
        match self.smallest {
            Some(smallest) => last.saturating_add(self.longest_row) > smallest,
            None => WRITERS_BLOCKS.iter().any(|limit| *limit <= last && last - limit < self.longest_row),
        }
    }
}

/// Decodes every row of an Avro file, its columns in the order of `table`. Answers whether the file may be the beginning
/// of a longer one: cut between two blocks it is as whole as any, and only the size of its last block tells.
pub fn read(bytes: &[u8], table: &'static Table, sink: &mut Sink<'_>) -> Result<bool> {
    let mut file = Cursor::new(bytes);
    file.take(super::AVRO.len())?;
    let (schema, codec) = header(&mut file)?;
    let sync = file.take(SYNC)?;
    let plan = Plan::new(&schema, schema.root, &Kind::Record(table), 0)?;
    let mut left = MAX_FILE_BYTES;
    let mut sizes = BlockSizes::default();
    while !file.rest.is_empty() {
        let rows = file.number()?;
        let block = file.bytes()?;
        if file.take(SYNC)? != sync {
            return Err(damaged("an Avro block is not followed by the sync marker"));
        }
        let block = decompress(&codec, block, left.min(MAX_BLOCK_BYTES))?;
        left = left.saturating_sub(block.len());
        sizes.add(block.len(), decode_block(&schema, &plan, &block, rows, sink)?);
    }
    Ok(sizes.may_go_on())
}

/// Decodes the rows of a block; the length of the longest one.
fn decode_block(schema: &Schema, plan: &Plan, block: &[u8], rows: i64, sink: &mut Sink<'_>) -> Result<usize> {
    let mut cursor = Cursor::new(block);
    let mut longest = 0;
    for _ in 0..cursor.plausible(rows)? {
        let before = cursor.rest.len();
        match cursor.value(schema, plan)? {
            Value::Record(values) => sink(&values)?,
            _ => return Err(damaged("an Avro row is null")),
        }
        longest = longest.max(before - cursor.rest.len());
    }
    if cursor.rest.is_empty() { Ok(longest) } else { Err(damaged("an Avro block is longer than its rows")) }
}

/// Reads the header map up to the sync marker.
fn header(file: &mut Cursor<'_>) -> Result<(Schema, String)> {
    let (mut schema, mut codec) = (None, String::from("null"));
    loop {
        let entries = file.block_count()?;
        if entries == 0 {
            break;
        }
        for _ in 0..entries {
            let key = file.bytes()?;
            let value = file.bytes()?;
            match key {
                b"avro.schema" => schema = Some(Schema::parse(value)?),
                b"avro.codec" => codec = String::from_utf8_lossy(value).into_owned(),
                _ => {}
            }
        }
    }
    Ok((schema.ok_or_else(|| damaged("the Avro file has no schema"))?, codec))
}

fn decompress<'a>(codec: &str, block: &'a [u8], limit: usize) -> Result<Cow<'a, [u8]>> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        damaged(format!("an Avro block of codec {codec} cannot be decompressed")).with_source(error)
    };
    let codec = match codec {
        "null" => return Ok(Cow::Borrowed(block)),
        "zstandard" => {
            let mut out = Vec::new();
            let decoder = zstd::Decoder::with_buffer(block).map_err(|error| failed(error.into()))?;
            let read = decoder.take(limit as u64 + 1).read_to_end(&mut out);
            read.map_err(|error| failed(error.into()))?;
            return if out.len() > limit { Err(too_large(limit)) } else { Ok(Cow::Owned(out)) };
        }
        "deflate" => Codec::Deflate(DeflateSettings::default()),
        "snappy" => Codec::Snappy,
        "bzip2" => Codec::Bzip2(apache_avro::Bzip2Settings::default()),
        "xz" => Codec::Xz(apache_avro::XzSettings::default()),
        other => {
            return Err(Error::unsupported(format!("Avro codec `{other}` is not known"))
                .with_hint("known are null, deflate, snappy, bzip2, xz and zstandard"));
        }
    };
    if codec == Codec::Snappy && snappy_length(block).is_none_or(|length| length > limit) {
        return Err(too_large(limit));
    }
    let mut out = block.to_vec();
    codec.decompress(&mut out).map_err(|error| failed(error.into()))?;
    if out.len() > limit { Err(too_large(limit)) } else { Ok(Cow::Owned(out)) }
}

/// The length a snappy block says it has when decompressed, if it can be: three bytes give 64 at most.
pub fn snappy_length(block: &[u8]) -> Option<usize> {
    let mut length = 0usize;
    for (index, byte) in block.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(length).filter(|length| *length <= block.len().saturating_mul(64));
        }
    }
    None
}

fn too_large(limit: usize) -> Error {
    Error::exhausted(format!("an Avro block is larger than {limit} bytes when decompressed"))
}

/// How the writer's type at one place becomes a value.
enum Plan {
    Null,
    Number,
    Bytes,
    Fixed(usize),
    List(Box<Plan>),
    Union(Vec<Plan>),
    Record {
        /// Columns of the wanted record; those the writer does not have stay null.
        width: usize,
        /// The writer's columns in their order.
        steps: Vec<Step>,
    },
}

enum Step {
    /// Decode and put at this place.
    Keep(usize, Plan),
    /// Nobody asked for it.
    Skip(NodeId),
}

impl Plan {
    fn new(schema: &Schema, id: NodeId, kind: &Kind, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(damaged("the Avro schema is nested too deeply"));
        }
        Ok(match (schema.node(id), kind) {
            (Node::Null, _) => Self::Null,
            (Node::Union(branches), _) if branches.len() <= MAX_BRANCHES => {
                let branches = branches.iter().map(|branch| Self::new(schema, *branch, kind, depth + 1));
                Self::Union(branches.collect::<Result<_>>()?)
            }
            (Node::Number, Kind::Int | Kind::Long | Kind::Millis) => Self::Number,
            (Node::Bytes, Kind::Text | Kind::Bytes) => Self::Bytes,
            (Node::Fixed(size), Kind::Bytes) => Self::Fixed(*size),
            (Node::List(items), Kind::List(element)) => {
                Self::List(Box::new(Self::new(schema, *items, &element.kind, depth + 1)?))
            }
            (Node::Record(columns), Kind::Record(table)) if columns.len() <= MAX_COLUMNS => {
                Self::record(schema, columns, table, depth)?
            }
            (node, kind) => {
                let (node, kind) = (node.word(), kind.word());
                return Err(damaged(format!("an Avro {node} cannot be read as a {kind}")));
            }
        })
    }

    fn record(schema: &Schema, columns: &[(String, NodeId)], table: &'static Table, depth: usize) -> Result<Self> {
        let mut steps = Vec::with_capacity(columns.len());
        let mut found = vec![false; table.fields.len()];
        for (name, id) in columns {
            let wanted = table.fields.iter().enumerate().zip(&mut found).find(|((_, field), _)| field.name == name);
            steps.push(match wanted {
                Some(((place, field), found)) if !*found => {
                    *found = true;
                    let plan = Self::new(schema, *id, &field.kind, depth + 1);
                    Step::Keep(place, plan.map_err(|error| error.with_context("column", field.name))?)
                }
                _ => Step::Skip(*id),
            });
        }
        let missing = table.fields.iter().zip(&found).find(|(field, found)| !field.nullable && !**found);
        if let Some((field, _)) = missing {
            return Err(damaged("the file lacks a required column").with_context("column", field.name));
        }
        Ok(Self::Record { width: table.fields.len(), steps })
    }
}

/// Reads front to back.
struct Cursor<'a> {
    rest: &'a [u8],
    /// Values that may still be skipped or listed: those without bytes could else be repeated without end.
    repeats: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, repeats: bytes.len().saturating_mul(16).saturating_add(1 << 16) }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or_else(|| {
            damaged(format!("{length} bytes of Avro were expected where {} are left", self.rest.len()))
        })?;
        self.rest = rest;
        Ok(head)
    }

    /// A zigzag varint.
    fn number(&mut self) -> Result<i64> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        Err(damaged("an Avro number does not end"))
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        let length = usize::try_from(length).map_err(|_| damaged(format!("an Avro value has length {length}")))?;
        self.take(length)
    }

    /// A count of things of at least one byte each.
    fn plausible(&self, count: i64) -> Result<usize> {
        usize::try_from(count).ok().filter(|count| *count <= self.rest.len()).ok_or_else(|| {
            damaged(format!("{count} Avro values were promised where {} bytes are left", self.rest.len()))
        })
    }

    /// Number of entries in the next block of a list or map; 0 ends it. A negative count is followed by the bytes.
    fn block_count(&mut self) -> Result<usize> {
        let mut count = self.number()?;
        if count < 0 {
            self.number()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        self.plausible(count)
    }

    fn value(&mut self, schema: &Schema, plan: &Plan) -> Result<Value<'a>> {
        Ok(match plan {
            Plan::Null => Value::Null,
            Plan::Number => Value::Long(self.number()?),
            Plan::Bytes => Value::Bytes(self.bytes()?),
            Plan::Fixed(size) => Value::Bytes(self.take(*size)?),
            Plan::Union(branches) => {
                let branch = self.number()?;
                let plan = usize::try_from(branch).ok().and_then(|branch| branches.get(branch));
                let plan = plan.ok_or_else(|| damaged(format!("an Avro union has no branch {branch}")))?;
                self.value(schema, plan)?
            }
            Plan::List(items) => {
                let mut elements = Vec::new();
                loop {
                    let count = self.block_count()?;
                    if count == 0 {
                        break;
                    }
                    self.repeat(count)?;
                    for _ in 0..count {
                        elements.push(self.value(schema, items)?);
                    }
                }
                Value::List(elements)
            }
            Plan::Record { width, steps } => {
                let mut values = vec![Value::Null; *width];
                for step in steps {
                    match step {
                        Step::Keep(place, plan) => {
                            let value = self.value(schema, plan)?;
                            if let Some(slot) = values.get_mut(*place) {
                                *slot = value;
                            }
                        }
                        Step::Skip(id) => self.skip(schema, *id, 0)?,
                    }
                }
                Value::Record(values)
            }
        })
    }

    /// Takes `count` off what may be read without bytes.
    fn repeat(&mut self, count: usize) -> Result<()> {
        let left = self.repeats.checked_sub(count);
        self.repeats = left.ok_or_else(|| damaged("an Avro value without bytes repeats itself"))?;
        Ok(())
    }

    fn skip(&mut self, schema: &Schema, id: NodeId, depth: usize) -> Result<()> {
        self.repeat(1)?;
        if depth > MAX_DEPTH {
            return Err(damaged("an Avro value is nested too deeply"));
        }
        match schema.node(id) {
            Node::Null => {}
            Node::Boolean => drop(self.take(1)?),
            Node::Number | Node::Enum => drop(self.number()?),
            Node::Float => drop(self.take(4)?),
            Node::Double => drop(self.take(8)?),
            Node::Bytes => drop(self.bytes()?),
            Node::Fixed(size) => drop(self.take(*size)?),
            Node::Union(branches) => {
                let branch = self.number()?;
                let id = usize::try_from(branch).ok().and_then(|branch| branches.get(branch));
                self.skip(
                    schema,
                    *id.ok_or_else(|| damaged(format!("an Avro union has no branch {branch}")))?,
                    depth + 1,
                )?;
            }
            Node::List(inner) | Node::Map(inner) => {
                let keyed = matches!(schema.node(id), Node::Map(_));
                loop {
                    let count = self.block_count()?;
                    if count == 0 {
                        break;
                    }
                    for _ in 0..count {
                        if keyed {
                            self.bytes()?;
                        }
                        self.skip(schema, *inner, depth + 1)?;
                    }
                }
            }
            Node::Record(columns) => {
                for (_, column) in columns {
                    self.skip(schema, *column, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}
