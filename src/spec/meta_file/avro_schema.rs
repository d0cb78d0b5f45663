//! The writer's schema of an Avro file, as an arena of nodes.

use std::collections::HashMap;

use serde_json::Value;

use super::damaged;
use crate::error::Result;

/// Index of a node.
pub type NodeId = usize;

/// One type. Logical types are left out: whoever asks for a column knows what it means.
#[derive(Debug, PartialEq)]
pub enum Node {
    Null,
    Boolean,
    /// `int` and `long`, stored alike.
    Number,
    Float,
    Double,
    /// `bytes` and `string`, stored alike.
    Bytes,
    Fixed(usize),
    Enum,
    List(NodeId),
    Map(NodeId),
    Union(Vec<NodeId>),
    Record(Vec<(String, NodeId)>),
}

impl Node {
    /// The kind of type in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "int or long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "string or bytes",
            Self::Fixed(_) => "fixed",
            Self::Enum => "enum",
            Self::List(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Record(_) => "record",
        }
    }
}

/// A parsed schema.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Node>,
    /// The type of the file's rows.
    pub root: NodeId,
}

impl Schema {
    /// Parses the JSON of `avro.schema`. Nesting is bounded by the JSON parser.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let json: Value =
            serde_json::from_slice(json).map_err(|error| damaged("the Avro schema is not JSON").with_source(error))?;
        let mut parser = Parser { nodes: Vec::new(), names: HashMap::new() };
        let root = parser.node(&json, "")?;
        Ok(Self { nodes: parser.nodes, root })
    }

    /// The node of an id, which only this schema gives out.
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id).unwrap_or(&Node::Null)
    }
}

struct Parser {
    nodes: Vec<Node>,
    names: HashMap<String, NodeId>,
}

impl Parser {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn node(&mut self, json: &Value, namespace: &str) -> Result<NodeId> {
        match json {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.node(branch, namespace)).collect::<Result<_>>()?;
                Ok(self.push(Node::Union(branches)))
            }
            Value::Object(object) => match object.get("type") {
                Some(Value::String(name)) => self.complex(name, json, namespace),
                Some(inner) => self.node(inner, namespace),
                None => Err(damaged("a type of the Avro schema has no `type`")),
            },
            _ => Err(damaged("a type of the Avro schema is neither text, list nor object")),
        }
    }

    fn complex(&mut self, kind: &str, json: &Value, namespace: &str) -> Result<NodeId> {
        let part =
            |key: &str| json.get(key).ok_or_else(|| damaged(format!("a `{kind}` of the Avro schema has no `{key}`")));
        Ok(match kind {
            "record" | "error" => {
                let (id, namespace) = self.declare(json, namespace)?;
                let fields = part("fields")?.as_array().map(Vec::as_slice).unwrap_or_default();
                let mut columns = Vec::new();
                for field in fields {
                    let name = field.get("name").and_then(Value::as_str);
                    let (Some(name), Some(inner)) = (name, field.get("type")) else {
                        return Err(damaged("a field of the Avro schema has no name or type"));
                    };
                    columns.push((name.to_string(), self.node(inner, &namespace)?));
                }
                self.define(id, Node::Record(columns))
            }
            "fixed" => {
                let (id, _) = self.declare(json, namespace)?;
                let size = part("size")?.as_u64().and_then(|size| usize::try_from(size).ok());
                self.define(id, Node::Fixed(size.ok_or_else(|| damaged("a `fixed` of the Avro schema has no size"))?))
            }
            "enum" => {
                let (id, _) = self.declare(json, namespace)?;
                self.define(id, Node::Enum)
            }
            "array" => {
                let items = self.node(part("items")?, namespace)?;
                self.push(Node::List(items))
            }
            "map" => {
                let values = self.node(part("values")?, namespace)?;
                self.push(Node::Map(values))
            }
            name => self.named(name, namespace)?,
        })
    }

    /// Enters the name of a record, fixed or enum before its inside is known, since that may refer to it.
    fn declare(&mut self, json: &Value, namespace: &str) -> Result<(NodeId, String)> {
        let name = json.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| damaged("a named type of the Avro schema has no name"))?;
        let namespace = match name.rsplit_once('.') {
            Some((namespace, _)) => namespace,
            None => json.get("namespace").and_then(Value::as_str).unwrap_or(namespace),
        };
        let id = self.push(Node::Null);
        self.names.insert(full_name(name, namespace), id);
        Ok((id, namespace.to_string()))
    }

    fn define(&mut self, id: NodeId, node: Node) -> NodeId {
        if let Some(slot) = self.nodes.get_mut(id) {
            *slot = node;
        }
        id
    }

    /// A primitive type, or one named before.
    fn named(&mut self, name: &str, namespace: &str) -> Result<NodeId> {
        let node = match name {
            "null" => Node::Null,
            "boolean" => Node::Boolean,
            "int" | "long" => Node::Number,
            "float" => Node::Float,
            "double" => Node::Double,
            "bytes" | "string" => Node::Bytes,
            _ => {
                let known = self.names.get(&full_name(name, namespace)).or_else(|| self.names.get(name));
                return known.copied().ok_or_else(|| damaged(format!("the Avro schema has no type `{name}`")));
            }
        };
        Ok(self.push(node))
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_string() } else { format!("{namespace}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_namespace_and_may_be_used_again() {
        let schema = Schema::parse(
            br#"{"type":"record","name":"a","namespace":"x.y","fields":[
                {"name":"first","type":{"type":"record","name":"s","fields":[{"name":"n","type":"long"}]}},
                {"name":"second","type":["null","s"]},{"name":"third","type":"x.y.s"}]}"#,
        );
        let schema = schema.unwrap();
        let Node::Record(fields) = schema.node(schema.root) else { panic!("no record") };
        let Node::Union(branches) = schema.node(fields[1].1) else { panic!("no union") };
        assert_eq!((branches[1], fields[2].1), (fields[0].1, fields[0].1));
    }

    #[test]
    fn unknown_type_is_refused_by_name() {
        assert!(Schema::parse(br#"["null","ghost"]"#).unwrap_err().to_string().contains("`ghost`"));
        assert!(Schema::parse(b"{").is_err());
        assert!(Schema::parse(b"{}").is_err());
    }
}
