//! The writer's schema as a tree of what can be read and skipped.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::input::{Input, Repeats};
use crate::error::{Error, Result};

/// Nesting at most.
const MAX_DEPTH: usize = 64;
/// Nodes at most, named types counted wherever they are used.
const MAX_NODES: usize = 100_000;

/// Meaning of an `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntMeaning {
    Plain,
    Date,
    TimeMillis,
}

/// Meaning of a `long`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongMeaning {
    Plain,
    TimeMicros,
    Millis,
    Micros,
    Nanos,
}

/// Precision and scale of bytes that are a decimal.
pub(crate) type DecimalMeaning = Option<(u8, i8)>;

/// One type of the schema. What has a name is shared by all who refer to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Boolean,
    Int(IntMeaning),
    Long(LongMeaning),
    Float,
    Double,
    Bytes(DecimalMeaning),
    Text,
    Fixed(usize, DecimalMeaning),
    Enum(Arc<[String]>),
    Array(Box<Node>),
    Map(Box<Node>),
    Record(Arc<[(String, Node)]>),
    Union(Vec<Node>),
}

impl Node {
    /// Reads the JSON of `avro.schema`.
    pub(crate) fn parse(json: &[u8]) -> Result<Self> {
        let value: Value =
            serde_json::from_slice(json).map_err(|e| Error::corrupt("the Avro schema is no JSON").with_source(e))?;
        Parser { named: HashMap::new(), nodes: 0 }.node(&value, "", 0)
    }

    /// The kind of type in a word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int(_) => "int",
            Self::Long(_) => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes(_) => "bytes",
            Self::Text => "string",
            Self::Fixed(..) => "fixed",
            Self::Enum(_) => "enum",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Record(_) => "record",
        }
    }

    /// Steps over one value.
    pub(crate) fn skip(&self, input: &mut Input<'_>, repeats: &mut Repeats) -> Result<()> {
        repeats.value()?;
        match self {
            Self::Null => {}
            Self::Boolean => {
                input.boolean()?;
            }
            Self::Int(_) | Self::Long(_) | Self::Enum(_) => {
                input.long()?;
            }
            Self::Float => {
                input.take(4)?;
            }
            Self::Double => {
                input.take(8)?;
            }
            Self::Bytes(_) | Self::Text => {
                input.bytes()?;
            }
            Self::Fixed(size, _) => {
                input.take(*size)?;
            }
            Self::Array(item) => loop {
                let items = input.items(repeats)?;
                if items == 0 {
                    break;
                }
                for _ in 0..items {
                    item.skip(input, repeats)?;
                }
            },
            Self::Map(value) => loop {
                let items = input.items(repeats)?;
                if items == 0 {
                    break;
                }
                for _ in 0..items {
                    input.bytes()?;
                    value.skip(input, repeats)?;
                }
            },
            Self::Record(fields) => {
                for (_, field) in fields.iter() {
                    field.skip(input, repeats)?;
                }
            }
            Self::Union(branches) => branch(branches, input.long()?)?.skip(input, repeats)?,
        }
        Ok(())
    }
}

/// The branch of a union by its stored number.
pub(crate) fn branch<T>(branches: &[T], number: i64) -> Result<&T> {
    usize::try_from(number)
        .ok()
        .and_then(|at| branches.get(at))
        .ok_or_else(|| Error::corrupt(format!("a union of {} has no branch {number}", branches.len())))
}

struct Parser {
    named: HashMap<String, Node>,
    nodes: usize,
}

impl Parser {
    fn node(&mut self, value: &Value, namespace: &str, depth: usize) -> Result<Node> {
        self.count(1, depth)?;
        match value {
            Value::String(name) => self.by_name(name, namespace, depth),
            Value::Array(branches) => {
                let branches =
                    branches.iter().map(|b| self.node(b, namespace, depth + 1)).collect::<Result<Vec<_>>>()?;
                Ok(Node::Union(branches))
            }
            Value::Object(object) => {
                let meaning = object.get("logicalType").and_then(Value::as_str).unwrap_or_default();
                match object.get("type") {
                    Some(Value::String(name)) => match name.as_str() {
                        "record" | "error" => self.record(object, namespace, depth),
                        "enum" => {
                            let symbols = object.get("symbols").and_then(Value::as_array).ok_or_else(bad)?;
                            let symbols =
                                symbols.iter().map(|s| s.as_str().map(str::to_string)).collect::<Option<Vec<_>>>();
                            self.define(object, namespace, Node::Enum(symbols.ok_or_else(bad)?.into()))
                        }
                        "fixed" => {
                            let size = object.get("size").and_then(Value::as_u64).ok_or_else(bad)?;
                            let size = usize::try_from(size).map_err(|_| bad())?;
                            let node = Node::Fixed(size, decimal(object, meaning));
                            self.define(object, namespace, node)
                        }
                        "array" => {
                            let items = self.node(object.get("items").ok_or_else(bad)?, namespace, depth + 1)?;
                            Ok(Node::Array(Box::new(items)))
                        }
                        "map" => {
                            let values = self.node(object.get("values").ok_or_else(bad)?, namespace, depth + 1)?;
                            Ok(Node::Map(Box::new(values)))
                        }
                        "int" => Ok(Node::Int(match meaning {
                            "date" => IntMeaning::Date,
                            "time-millis" => IntMeaning::TimeMillis,
                            _ => IntMeaning::Plain,
                        })),
                        "long" => Ok(Node::Long(match meaning {
                            "time-micros" => LongMeaning::TimeMicros,
                            "timestamp-millis" | "local-timestamp-millis" => LongMeaning::Millis,
                            "timestamp-micros" | "local-timestamp-micros" => LongMeaning::Micros,
                            "timestamp-nanos" | "local-timestamp-nanos" => LongMeaning::Nanos,
                            _ => LongMeaning::Plain,
                        })),
                        "bytes" => Ok(Node::Bytes(decimal(object, meaning))),
                        other => self.by_name(other, namespace, depth),
                    },
                    Some(nested @ (Value::Object(_) | Value::Array(_))) => self.node(nested, namespace, depth + 1),
                    _ => Err(bad()),
                }
            }
            _ => Err(bad()),
        }
    }

    fn by_name(&mut self, name: &str, namespace: &str, depth: usize) -> Result<Node> {
        Ok(match name {
            "null" => Node::Null,
            "boolean" => Node::Boolean,
            "int" => Node::Int(IntMeaning::Plain),
            "long" => Node::Long(LongMeaning::Plain),
            "float" => Node::Float,
            "double" => Node::Double,
            "bytes" => Node::Bytes(None),
            "string" => Node::Text,
            _ => {
                let known = self.named.get(&full_name(name, namespace)).or_else(|| self.named.get(name));
                let node = known.cloned().ok_or_else(|| {
                    Error::unsupported(format!("the Avro schema refers to '{name}' before it is defined"))
                        .with_code("UnsupportedAvro")
                })?;
                let (nodes, deepest) = measure(&node);
                self.count(nodes, depth + deepest)?;
                node
            }
        })
    }

    fn record(&mut self, object: &serde_json::Map<String, Value>, namespace: &str, depth: usize) -> Result<Node> {
        let inner = inner_namespace(object, namespace);
        let mut fields = Vec::new();
        for field in object.get("fields").and_then(Value::as_array).ok_or_else(bad)? {
            let name = field.get("name").and_then(Value::as_str).ok_or_else(bad)?;
            let node = self.node(field.get("type").ok_or_else(bad)?, &inner, depth + 1)?;
            fields.push((name.to_string(), node));
        }
        self.define(object, namespace, Node::Record(fields.into()))
    }

    fn define(&mut self, object: &serde_json::Map<String, Value>, namespace: &str, node: Node) -> Result<Node> {
        if let Some(name) = object.get("name").and_then(Value::as_str) {
            let namespace = object.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
            self.named.insert(full_name(name, namespace), node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, nodes: usize, depth: usize) -> Result<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err(
                Error::unsupported("the Avro schema is too large or nested too deeply").with_code("UnsupportedAvro")
            );
        }
        Ok(())
    }
}

fn bad() -> Error {
    Error::corrupt("the Avro schema is not well formed")
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_string() } else { format!("{namespace}.{name}") }
}

/// Namespace for what is defined inside a record.
fn inner_namespace(object: &serde_json::Map<String, Value>, namespace: &str) -> String {
    if let Some((before, _)) = object.get("name").and_then(Value::as_str).and_then(|n| n.rsplit_once('.')) {
        return before.to_string();
    }
    object.get("namespace").and_then(Value::as_str).unwrap_or(namespace).to_string()
}

fn decimal(object: &serde_json::Map<String, Value>, meaning: &str) -> DecimalMeaning {
    if meaning != "decimal" {
        return None;
    }
    let precision = u8::try_from(object.get("precision")?.as_u64()?).ok()?;
    let scale = i8::try_from(object.get("scale").and_then(Value::as_u64).unwrap_or(0)).ok()?;
    // a precision that Arrow cannot hold leaves plain bytes
    ((1..=38).contains(&precision) && i16::from(scale) <= i16::from(precision)).then_some((precision, scale))
}

/// Nodes of a tree and its depth.
fn measure(node: &Node) -> (usize, usize) {
    let children: Vec<&Node> = match node {
        Node::Array(child) | Node::Map(child) => vec![child],
        Node::Record(fields) => fields.iter().map(|(_, child)| child).collect(),
        Node::Union(branches) => branches.iter().collect(),
        _ => Vec::new(),
    };
    children.into_iter().map(measure).fold((1, 1), |(nodes, deepest), (n, d)| (nodes + n, deepest.max(d + 1)))
}
