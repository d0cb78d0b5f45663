//! Reading JSON documents of the metadata: every miss names the document and the key.
//!
//! The caller adds the file as context, since only it knows the path.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Parses the bytes of a document. `what` is its kind, such as `snapshot file`.
///
/// The error has the code `MalformedJson`: on a weak file system a reader may meet a half-written file, and trying
/// again can help. Nesting is bounded by the parser.
pub(crate) fn parse(bytes: &[u8], what: &str) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|source| {
        let state =
            if bytes.iter().all(u8::is_ascii_whitespace) { "it is empty".to_string() } else { source.to_string() };
        Error::corrupt(format!("the {what} is not valid JSON: {state}")).with_code("MalformedJson").with_source(source)
    })
}

/// The names in the object at `key` of a document, in the order in which they stand there: Java keeps it. Empty where
/// there is no such object.
pub(crate) fn member_names(bytes: &[u8], key: &str) -> Vec<String> {
    let Ok(document) = serde_json::from_slice::<Members<Members<IgnoredAny>>>(bytes) else { return Vec::new() };
    let members = document.0.into_iter().find(|(name, _)| name == key).map(|(_, members)| members.0);
    members.unwrap_or_default().into_iter().map(|(name, _)| name).collect()
}

/// The members of an object, in their order; none where the value is no object.
struct Members<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
    type Value = Members<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> std::result::Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Members(Vec::new()))
    }

    fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Members(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Self::Value, E> {
        Ok(Members(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> std::result::Result<Self::Value, E> {
        Ok(Members(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> std::result::Result<Self::Value, E> {
        Ok(Members(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> std::result::Result<Self::Value, E> {
        Ok(Members(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> std::result::Result<Self::Value, E> {
        Ok(Members(Vec::new()))
    }
}

/// One JSON object and what it is, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    map: &'a Map<String, Value>,
    what: &'a str,
}

impl<'a> Object<'a> {
    /// Sees a value as an object.
    pub(crate) fn new(value: &'a Value, what: &'a str) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { map, what }),
            other => Err(Error::corrupt(format!("the {what} is {}, not a JSON object", Kind(other)))),
        }
    }

    /// The value of a key; null counts as absent, as it does for Java.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// The value of a key that must be there.
    pub(crate) fn required(&self, key: &str) -> Result<&'a Value> {
        self.get(key).ok_or_else(|| Error::corrupt(format!("the {} lacks '{key}'", self.what)).with_context("key", key))
    }

    /// A number of 64 bits.
    pub(crate) fn i64(&self, key: &str) -> Result<i64> {
        self.required(key).and_then(|value| self.number_64(key, value))
    }

    /// A number of 64 bits, when there.
    pub(crate) fn opt_i64(&self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|value| self.number_64(key, value)).transpose()
    }

    /// A number of 32 bits.
    pub(crate) fn i32(&self, key: &str) -> Result<i32> {
        self.required(key).and_then(|value| self.number_32(key, value))
    }

    /// A number of 32 bits, when there.
    pub(crate) fn opt_i32(&self, key: &str) -> Result<Option<i32>> {
        self.get(key).map(|value| self.number_32(key, value)).transpose()
    }

    /// A number that cannot be negative, when there.
    pub(crate) fn opt_u64(&self, key: &str) -> Result<Option<u64>> {
        self.get(key)
            .map(|value| value.as_u64().ok_or_else(|| self.wrong(key, "a number that is not negative", value)))
            .transpose()
    }

    /// A text.
    pub(crate) fn str(&self, key: &str) -> Result<&'a str> {
        self.required(key).and_then(|value| self.text(key, value))
    }

    /// A text, when there.
    pub(crate) fn opt_str(&self, key: &str) -> Result<Option<&'a str>> {
        self.get(key).map(|value| self.text(key, value)).transpose()
    }

    /// A text of its own, when there.
    pub(crate) fn opt_string(&self, key: &str) -> Result<Option<String>> {
        Ok(self.opt_str(key)?.map(str::to_string))
    }

    /// A list.
    pub(crate) fn array(&self, key: &str) -> Result<&'a [Value]> {
        match self.required(key)? {
            Value::Array(values) => Ok(values),
            other => Err(self.wrong(key, "an array", other)),
        }
    }

    /// A list of texts.
    pub(crate) fn strings(&self, key: &str) -> Result<Vec<String>> {
        self.array(key)?
            .iter()
            .map(|value| match value {
                Value::String(text) => Ok(text.clone()),
                other => Err(self.wrong(key, "an array of strings", other)),
            })
            .collect()
    }

    /// An object of texts; empty when absent. Numbers and booleans count as their text, as they do for Java, and a key
    /// whose value is null as absent.
    pub(crate) fn string_map(&self, key: &str) -> Result<BTreeMap<String, String>> {
        let Some(value) = self.get(key) else { return Ok(BTreeMap::new()) };
        let Value::Object(map) = value else { return Err(self.wrong(key, "an object of strings", value)) };
        let mut texts = BTreeMap::new();
        for (name, value) in map {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null => continue,
                other => {
                    return Err(Error::corrupt(format!(
                        "'{name}' in '{key}' of the {} must be a string, found {}",
                        self.what,
                        Kind(other)
                    ))
                    .with_context("key", format!("{key}.{name}")));
                }
            };
            texts.insert(name.clone(), text);
        }
        Ok(texts)
    }

    /// The error for a value of the wrong type.
    pub(crate) fn wrong(&self, key: &str, expected: &str, found: &Value) -> Error {
        Error::corrupt(format!("'{key}' of the {} must be {expected}, found {}", self.what, Kind(found)))
            .with_context("key", key)
    }

    fn number_64(&self, key: &str, value: &Value) -> Result<i64> {
        value.as_i64().ok_or_else(|| self.wrong(key, "a whole number of 64 bits", value))
    }

    fn number_32(&self, key: &str, value: &Value) -> Result<i32> {
        value
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| self.wrong(key, "a whole number of 32 bits", value))
    }

    fn text(&self, key: &str, value: &'a Value) -> Result<&'a str> {
        value.as_str().ok_or_else(|| self.wrong(key, "a string", value))
    }
}

/// Refuses a document of a newer format version and one of none, and gives the version; absent is 1.
pub(crate) fn format_version(object: &Object<'_>, newest: i32) -> Result<i32> {
    let version = object.opt_i32("version")?.unwrap_or(1);
    if version < 1 {
        return Err(Error::corrupt(format!("the {} has the impossible version {version}", object.what))
            .with_context("key", "version"));
    }
    if version > newest {
        return Err(Error::unsupported(format!(
            "the {} has format version {version}; this release knows versions up to {newest}, and a newer one is \
             never guessed",
            object.what
        ))
        .with_code("NewerFormat")
        .with_context("key", "version")
        .with_hint("read the table with a release that knows this version"));
    }
    Ok(version)
}

/// A JSON value in a message: its type, and the value itself when it is short.
struct Kind<'a>(&'a Value);

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "the number {value}"),
            Value::String(text) if text.chars().count() <= 40 => write!(f, "the string {text:?}"),
            Value::String(_) => f.write_str("a long string"),
            Value::Array(_) => f.write_str("an array"),
            Value::Object(_) => f.write_str("an object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Object, format_version, member_names, parse};

    #[test]
    fn members_are_named_in_the_order_of_the_file() {
        let text = br#"{"a": [1, {"z": 2}], "b": null, "c": -1.5, "d": "x", "options": {"q": "1", "b": {}, "a": []}, "e": {}}"#;
        assert_eq!(member_names(text, "options"), ["q", "b", "a"]);
        assert!(member_names(text, "a").is_empty() && member_names(b"{", "a").is_empty());
    }

    #[test]
    fn wrong_types_name_document_key_and_value() {
        let value =
            json!({"id": "seven", "big": 3_000_000_000_i64, "neg": -1, "list": [1], "map": {"a": []}, "x": null});
        let object = Object::new(&value, "snapshot file").unwrap();
        let text = |error: crate::Error| error.to_string();
        assert_eq!(
            text(object.i64("id").unwrap_err()),
            "'id' of the snapshot file must be a whole number of 64 bits, found the string \"seven\" (key: id)"
        );
        assert!(text(object.i32("big").unwrap_err()).contains("found the number 3000000000"));
        assert!(text(object.opt_u64("neg").unwrap_err()).contains("not negative"));
        assert!(text(object.strings("list").unwrap_err()).contains("array of strings"));
        assert!(text(object.string_map("map").unwrap_err()).contains("'a' in 'map'"));
        assert_eq!(text(object.str("x").unwrap_err()), "the snapshot file lacks 'x' (key: x)");
        assert_eq!(object.opt_i64("x").unwrap(), None);
    }

    #[test]
    fn scalars_in_a_string_map_become_text() {
        let value = json!({"options": {"bucket": 4, "a": true, "b": "x", "c": null}});
        let options = Object::new(&value, "schema file").unwrap().string_map("options").unwrap();
        assert_eq!(
            options.into_iter().collect::<Vec<_>>(),
            [
                ("a".to_string(), "true".to_string()),
                ("b".to_string(), "x".to_string()),
                ("bucket".to_string(), "4".to_string())
            ]
        );
    }

    #[test]
    fn truncated_and_empty_documents_are_malformed() {
        for bytes in [&b"{\"id\": 1"[..], b"", b"  \n", b"\xff\xfe", &b"[".repeat(100_000)] {
            assert_eq!(parse(bytes, "snapshot file").unwrap_err().code(), "MalformedJson");
        }
    }

    #[test]
    fn newer_versions_are_refused_and_missing_is_the_first() {
        let version = |value: serde_json::Value| format_version(&Object::new(&value, "schema file").unwrap(), 3);
        assert_eq!(version(json!({})).unwrap(), 1);
        assert_eq!(version(json!({"version": 3})).unwrap(), 3);
        assert_eq!(version(json!({"version": 4})).unwrap_err().code(), "NewerFormat");
        assert!(version(json!({"version": 0})).is_err());
    }
}
