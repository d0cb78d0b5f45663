//! Avro: rows by the writer's schema.
//!
//! The writer's schema is laid over the wanted columns once, as a plan; decoding follows the plan and never looks at a
//! name again. Lengths are checked against what is left before anything is allocated.

use super::damaged;
use super::row::Value;
use super::table::{Kind, Table};
use crate::error::Result;
use crate::spec::avro::{Header, Input, MARK, Node, Repeats, branch, decompress};

/// Limit of one decompressed block. Writers cut blocks at some ten kilobytes. In tests low, so that all codecs meet it.
const MAX_BLOCK_BYTES: usize = if cfg!(test) { 8 << 20 } else { 256 << 20 };
/// Limit of a file's decompressed blocks together. Manifests are cut at some megabytes.
const MAX_FILE_BYTES: usize = 1 << 30;

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
    let header = Header::parse(bytes)?;
    let plan = Plan::new(&header.schema, &Kind::Record(table))?;
    let mut file = Input::new(bytes.get(header.length..).unwrap_or_default());
    let mut left = MAX_FILE_BYTES;
    let mut sizes = BlockSizes::default();
    while file.left() > 0 {
        let offset = bytes.len() - file.left();
        let size = read_block(&mut file, &header, &plan, left.min(MAX_BLOCK_BYTES), sink);
        let (block, longest_row) = size.map_err(|error| error.with_context("offset", offset))?;
        left = left.saturating_sub(block);
        sizes.add(block, longest_row);
    }
    Ok(sizes.may_go_on())
}

/// Decodes the rows of the next block; its length when decompressed, `limit` at most, and that of its longest row.
fn read_block(
    file: &mut Input<'_>,
    header: &Header,
    plan: &Plan<'_>,
    limit: usize,
    sink: &mut Sink<'_>,
) -> Result<(usize, usize)> {
    let rows = file.long()?;
    let stored = file.bytes()?;
    if file.take(MARK)? != header.mark {
        return Err(damaged("an Avro block is not followed by the mark of its file"));
    }
    let block = decompress(header.codec, stored, limit, &mut |_| Ok(()))?;
    let rows = usize::try_from(rows)
        .ok()
        .filter(|rows| *rows <= block.len())
        .ok_or_else(|| damaged(format!("{rows} Avro rows were promised where {} bytes are left", block.len())))?;
    let mut input = Input::new(&block);
    let mut repeats = Repeats::of(block.len());
    let mut longest = 0;
    for _ in 0..rows {
        let before = input.left();
        match plan.value(&mut input, &mut repeats)? {
            Value::Record(values) => sink(&values)?,
            _ => return Err(damaged("an Avro row is null")),
        }
        longest = longest.max(before - input.left());
    }
    if input.left() > 0 {
        return Err(damaged("an Avro block is longer than its rows"));
    }
    Ok((block.len(), longest))
}

/// How the writer's type at one place becomes a value.
enum Plan<'s> {
    Null,
    Number,
    Bytes,
    Fixed(usize),
    List(Box<Plan<'s>>),
    Union(Vec<Plan<'s>>),
    Record {
        /// Columns of the wanted record; those the writer does not have stay null.
        width: usize,
        /// The writer's columns in their order.
        steps: Vec<Step<'s>>,
    },
}

enum Step<'s> {
    /// Decode and put at this place.
    Keep(usize, Plan<'s>),
    /// Nobody asked for it.
    Skip(&'s Node),
}

impl<'s> Plan<'s> {
    fn new(node: &'s Node, kind: &Kind) -> Result<Self> {
        Ok(match (node, kind) {
            (Node::Null, _) => Self::Null,
            (Node::Union(branches), _) => {
                Self::Union(branches.iter().map(|branch| Self::new(branch, kind)).collect::<Result<_>>()?)
            }
            (Node::Int(_) | Node::Long(_), Kind::Int | Kind::Long | Kind::Millis) => Self::Number,
            (Node::Bytes(_) | Node::Text, Kind::Text | Kind::Bytes) => Self::Bytes,
            (Node::Fixed(size, _), Kind::Bytes) => Self::Fixed(*size),
            (Node::Array(items), Kind::List(element)) => Self::List(Box::new(Self::new(items, &element.kind)?)),
            (Node::Record(columns), Kind::Record(table)) => Self::record(columns, table)?,
            (node, kind) => {
                let (node, kind) = (node.word(), kind.word());
                return Err(damaged(format!("an Avro {node} cannot be read as a {kind}")));
            }
        })
    }

    fn record(columns: &'s [(String, Node)], table: &'static Table) -> Result<Self> {
        let mut steps = Vec::with_capacity(columns.len());
        let mut found = vec![false; table.fields.len()];
        for (name, node) in columns {
            let wanted = table.fields.iter().enumerate().zip(&mut found).find(|((_, field), _)| field.name == name);
            steps.push(match wanted {
                Some(((place, field), found)) if !*found => {
                    *found = true;
                    let plan = Self::new(node, &field.kind);
                    Step::Keep(place, plan.map_err(|error| error.with_context("column", field.name))?)
                }
                _ => Step::Skip(node),
            });
        }
        let missing = table.fields.iter().zip(&found).find(|(field, found)| !field.nullable && !**found);
        if let Some((field, _)) = missing {
            return Err(damaged("the file lacks a required column").with_context("column", field.name));
        }
        Ok(Self::Record { width: table.fields.len(), steps })
    }

    fn value<'a>(&self, input: &mut Input<'a>, repeats: &mut Repeats) -> Result<Value<'a>> {
        repeats.value()?;
        Ok(match self {
            Self::Null => Value::Null,
            Self::Number => Value::Long(input.long()?),
            Self::Bytes => Value::Bytes(input.bytes()?),
            Self::Fixed(size) => Value::Bytes(input.take(*size)?),
            Self::Union(branches) => branch(branches, input.long()?)?.value(input, repeats)?,
            Self::List(items) => {
                let mut elements = Vec::new();
                loop {
                    let count = input.items(repeats)?;
                    if count == 0 {
                        break;
                    }
                    for _ in 0..count {
                        elements.push(items.value(input, repeats)?);
                    }
                }
                Value::List(elements)
            }
            Self::Record { width, steps } => {
                let mut values = vec![Value::Null; *width];
                for step in steps {
                    match step {
                        Step::Keep(place, plan) => {
                            let value = plan.value(input, repeats)?;
                            if let Some(slot) = values.get_mut(*place) {
                                *slot = value;
                            }
                        }
                        Step::Skip(node) => node.skip(input, repeats)?,
                    }
                }
                Value::Record(values)
            }
        })
    }
}
