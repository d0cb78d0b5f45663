//! Schemas, and blocks that unfold without end.

use apache_avro::Codec;

use super::*;
use crate::error::ErrorKind;
use crate::spec::hostile::peak_of;

fn parse(json: &str) -> crate::Result<Node> {
    Node::parse(json.as_bytes())
}

#[test]
fn schemas_name_types_by_namespace() {
    let node = parse(
        r#"{"type":"record","name":"r","namespace":"a.b","fields":[
            {"name":"f","type":{"type":"fixed","name":"x","size":3}},
            {"name":"g","type":["null","x"]},
            {"name":"h","type":"a.b.x"},
            {"name":"d","type":{"type":"int","logicalType":"date"}},
            {"name":"t","type":{"type":"long","logicalType":"local-timestamp-micros"}},
            {"name":"s","type":{"type":"string","avro.java.string":"String"}}]}"#,
    )
    .unwrap();
    let fixed = Node::Fixed(3, None);
    let Node::Record(fields) = node else { panic!() };
    let nodes: Vec<Node> = fields.iter().map(|(_, node)| node.clone()).collect();
    assert_eq!(
        nodes,
        [
            fixed.clone(),
            Node::Union(vec![Node::Null, fixed.clone()]),
            fixed,
            Node::Int(IntMeaning::Date),
            Node::Long(LongMeaning::Micros),
            Node::Text,
        ]
    );
}

#[test]
fn schemas_that_would_blow_up_are_refused() {
    let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(100), "}".repeat(100));
    assert!(parse(&deep).is_err());
    // each type uses the one before twice: 2^30 nodes
    let mut fields = String::from(r#"{"name":"f0","type":{"type":"record","name":"t0","fields":[]}}"#);
    for i in 1..30 {
        fields += &format!(
            r#",{{"name":"f{i}","type":{{"type":"record","name":"t{i}","fields":[{{"name":"a","type":"t{0}"}},{{"name":"b","type":"t{0}"}}]}}}}"#,
            i - 1
        );
    }
    assert!(parse(&format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#)).is_err());
    // a type inside of itself
    assert!(parse(r#"{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}"#).is_err());
    assert!(parse("[]garbage").is_err());
    assert!(parse(r#"["null","ghost"]"#).unwrap_err().to_string().contains("'ghost'"));
    assert!(parse("{}").is_err());
}

fn codecs() -> [Codec; 5] {
    [
        Codec::Deflate(apache_avro::DeflateSettings::default()),
        Codec::Snappy,
        Codec::Zstandard(Default::default()),
        Codec::Bzip2(Default::default()),
        Codec::Xz(Default::default()),
    ]
}

#[test]
fn a_block_is_not_unfolded_beyond_its_limit() {
    const LIMIT: usize = 1 << 20;
    for codec in codecs() {
        let mut block = vec![0u8; 16 << 20];
        codec.compress(&mut block).unwrap();
        let (made, peak) = peak_of(|| decompress(codec, &block, LIMIT, &mut |_| Ok(())).map(|made| made.len()));
        let error = made.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{codec:?}: {error}");
        assert!(error.to_string().contains("larger than 1048576 bytes"), "{codec:?}: {error}");
        // what is made, the room it grows by, and the decoders' own tables
        assert!(peak < 12 << 20, "{codec:?}: {peak} bytes");
        // told before it is made
        let mut asked = 0;
        let refused = decompress(codec, &block, 128 << 20, &mut |bytes| {
            asked += bytes;
            if asked > 2 * LIMIT { Err(crate::Error::exhausted("the pool is empty")) } else { Ok(()) }
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Exhausted, "{codec:?}");
    }
    assert_eq!(decompress(Codec::Null, &[0; 9], 8, &mut |_| Ok(())).unwrap_err().kind(), ErrorKind::Corrupt);
}
