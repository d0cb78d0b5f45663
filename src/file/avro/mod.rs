//! Avro object container files.
//!
//! Read with a decoder of our own, because data files of Paimon are unlike others: Java puts a union around the row
//! (`["null", record]`), maps whose key is no string are arrays of `{key, value}`, and `local-timestamp-*` means an
//! instant while `timestamp-*` means a wall clock. Columns that are not asked for are skipped, not built. Header, codecs,
//! schema and primitive values are those of [`crate::spec::avro`], which reads metadata files too.
//!
//! | file | one idea |
//! |---|---|
//! | `container` | the blocks of a file, fetched one after the other |
//! | `build` | values to Arrow arrays |
//! | `allowance` | what may be made of a block |

mod allowance;
mod build;
mod container;

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};

use self::allowance::Allowance;
use self::build::Builder;
use self::container::{Block, Container};
use super::access::Access;
use super::decode::{Request, Stored, StoredBatch};
use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::spec::avro::{Input, Node};

pub(super) async fn open(access: &Access, request: Request, budget: &Arc<dyn MemoryBudget>) -> Result<Stored> {
    let container = Container::open(access, budget).await?;
    let decoder = RowDecoder::new(&container.header.schema, &request).map_err(|e| access.locate(e))?;
    let reader = Reader {
        access: access.clone(),
        container,
        decoder,
        block: None,
        allowance: Allowance::new(budget),
        batch_size: request.batch_size.max(1),
    };
    Ok(Stored { rows: None, masked: false, batches: reader.into_stream() })
}

struct Reader {
    access: Access,
    container: Container,
    decoder: RowDecoder,
    /// The block that is being decoded, and how far.
    block: Option<(Block, usize)>,
    allowance: Allowance,
    batch_size: usize,
}

impl Reader {
    fn into_stream(self) -> BoxStream<'static, Result<StoredBatch>> {
        stream::try_unfold(self, |mut reader| async move {
            let batch = reader.next_batch().await?;
            Ok(batch.map(|batch| (batch, reader)))
        })
        .boxed()
    }

    async fn next_batch(&mut self) -> Result<Option<StoredBatch>> {
        loop {
            if self.block.is_none() {
                match self.container.next_block(&self.access).await? {
                    Some(block) => {
                        self.allowance.begin(block.bytes.len());
                        self.block = Some((block, 0));
                    }
                    None if self.decoder.rows == 0 => return Ok(None),
                    None => return self.finish().map(Some),
                }
            }
            let Some((block, at)) = &mut self.block else { continue };
            let mut input = Input::new(block.bytes.get(*at..).unwrap_or_default());
            let before = input.left();
            while block.rows > 0 && self.decoder.rows < self.batch_size {
                self.decoder.row(&mut input, &mut self.allowance).map_err(|e| self.access.locate(e))?;
                block.rows -= 1;
            }
            let read = before - input.left();
            // text and bytes are copied
            self.allowance.build(1, read).map_err(|e| self.access.locate(e))?;
            *at += read;
            if block.rows == 0 {
                if *at != block.bytes.len() {
                    return Err(self.access.damaged("a block is longer than its rows"));
                }
                self.block = None;
                self.container.forget_block();
            }
            if self.decoder.rows >= self.batch_size {
                return self.finish().map(Some);
            }
        }
    }

    fn finish(&mut self) -> Result<StoredBatch> {
        let batch = self.decoder.finish().map_err(|e| self.access.locate(e));
        self.allowance.built();
        batch
    }
}

/// Rows of the writer's schema to requested columns.
struct RowDecoder {
    /// Branch of the record in the union around it.
    union_branch: Option<i64>,
    /// Fields in the order of the file: built, or skipped.
    fields: Vec<Field>,
    /// For every requested column its field.
    requested: Vec<Option<usize>>,
    /// Bytes that a row takes at least.
    width: usize,
    rows: usize,
}

struct Field {
    name: String,
    node: Node,
    builder: Option<Builder>,
}

impl RowDecoder {
    fn new(schema: &Node, request: &Request) -> Result<Self> {
        let (record, union_branch) = match schema {
            Node::Record(fields) => (fields, None),
            Node::Union(branches) => {
                let mut records = branches.iter().enumerate().filter_map(|(at, branch)| match branch {
                    Node::Record(fields) => Some((at, fields)),
                    _ => None,
                });
                let (Some((at, fields)), None) = (records.next(), records.next()) else {
                    return Err(Error::corrupt("the top of the Avro schema is no single record"));
                };
                (fields, Some(i64::try_from(at).unwrap_or(i64::MAX)))
            }
            _ => return Err(Error::corrupt("the top of the Avro schema is no record")),
        };
        let mut fields = Vec::with_capacity(record.len());
        for (name, node) in record.iter() {
            if fields.iter().any(|f: &Field| &f.name == name) {
                return Err(Error::corrupt(format!("the Avro schema has two fields '{name}'")));
            }
            let builder = if request.columns.contains(name) {
                Some(Builder::new(node).map_err(|e| e.with_context("column", name))?)
            } else {
                None
            };
            fields.push(Field { name: name.clone(), node: node.clone(), builder });
        }
        let requested =
            request.columns.iter().map(|name| fields.iter().position(|field| &field.name == name)).collect();
        let width = fields.iter().filter_map(|field| field.builder.as_ref()).map(Builder::width);
        let width = width.fold(0, usize::saturating_add);
        Ok(Self { union_branch, fields, requested, width, rows: 0 })
    }

    fn row(&mut self, input: &mut Input<'_>, allowance: &mut Allowance) -> Result<()> {
        allowance.build(1, self.width)?;
        if let Some(branch) = self.union_branch {
            let found = input.long()?;
            if found != branch {
                return Err(Error::corrupt(format!("a row is branch {found} of its union, not a record")));
            }
        }
        for field in &mut self.fields {
            match &mut field.builder {
                Some(builder) => builder.read(input, allowance),
                None => field.node.skip(input, &mut allowance.repeats),
            }
            .map_err(|e| e.with_context("column", &field.name))?;
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<StoredBatch> {
        let mut built = Vec::with_capacity(self.fields.len());
        for field in &mut self.fields {
            built.push(match &mut field.builder {
                Some(builder) => Some(builder.finish().map_err(|e| e.with_context("column", &field.name))?),
                None => None,
            });
        }
        let columns = self.requested.iter().map(|at| at.and_then(|at| built.get(at).cloned().flatten())).collect();
        let rows = std::mem::take(&mut self.rows);
        Ok(StoredBatch { columns, rows })
    }
}

#[cfg(test)]
mod tests;
