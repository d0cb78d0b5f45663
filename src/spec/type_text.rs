//! Type strings: `DECIMAL(10, 2) NOT NULL`, `INT ARRAY`, `MAP<STRING, INT>`.

use super::data_type::{DataField, DataType, FieldType, MAX_LENGTH};
use super::type_json::FieldIds;
use crate::error::{Error, Result};

/// Deepest nesting of a type; Java writes no type near it, and recursion stays bounded.
pub(super) const MAX_DEPTH: usize = 64;

/// Reads a whole text as one type.
pub(super) fn parse(text: &str) -> Result<FieldType> {
    parse_nested(text, 0, &mut FieldIds::default())
}

/// Reads a whole text as a type that stands `depth` levels deep.
pub(super) fn parse_nested(text: &str, depth: usize, ids: &mut FieldIds) -> Result<FieldType> {
    let mut parser = Parser { text, at: 0, ids };
    let parsed = parser.field_type(depth)?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(parser.error("more text follows the type"));
    }
    Ok(parsed)
}

struct Parser<'a> {
    text: &'a str,
    /// Byte offset; always on a character boundary.
    at: usize,
    ids: &'a mut FieldIds,
}

impl<'a> Parser<'a> {
    /// A type with its nullability, and its `ARRAY` and `MULTISET` suffixes.
    fn field_type(&mut self, depth: usize) -> Result<FieldType> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("it nests deeper than {MAX_DEPTH} levels")));
        }
        let data_type = self.data_type(depth)?;
        let mut field_type = FieldType { data_type, nullable: self.nullability()? };
        let mut levels = depth;
        loop {
            let wrap: fn(Box<FieldType>) -> DataType = if self.keyword("ARRAY") {
                DataType::Array
            } else if self.keyword("MULTISET") {
                DataType::Multiset
            } else {
                return Ok(field_type);
            };
            levels += 1;
            if levels > MAX_DEPTH {
                return Err(self.error(format!("it nests deeper than {MAX_DEPTH} levels")));
            }
            let nullable = self.nullability()?;
            field_type = FieldType { data_type: wrap(Box::new(field_type)), nullable };
        }
    }

    fn data_type(&mut self, depth: usize) -> Result<DataType> {
        let start = self.at;
        let Some(word) = self.word() else { return Err(self.error("a type name is missing")) };
        Ok(match word.to_ascii_uppercase().as_str() {
            "CHAR" => DataType::Char(self.length()?),
            "VARCHAR" => DataType::Varchar(self.length()?),
            "STRING" => DataType::STRING,
            "BOOLEAN" => DataType::Boolean,
            "BINARY" => DataType::Binary(self.length()?),
            "VARBINARY" => DataType::Varbinary(self.length()?),
            "BYTES" => DataType::BYTES,
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal()?,
            "TINYINT" => DataType::TinyInt,
            "SMALLINT" => DataType::SmallInt,
            "INT" | "INTEGER" => DataType::Int,
            "BIGINT" => DataType::BigInt,
            "FLOAT" => DataType::Float,
            "DOUBLE" => {
                self.keyword("PRECISION");
                DataType::Double
            }
            "DATE" => DataType::Date,
            "TIME" => {
                let precision = self.precision(0)?;
                self.zone_suffix(false)?;
                DataType::Time(precision)
            }
            "TIMESTAMP" => {
                let precision = self.precision(6)?;
                if self.zone_suffix(true)? { DataType::TimestampLtz(precision) } else { DataType::Timestamp(precision) }
            }
            "TIMESTAMP_LTZ" => DataType::TimestampLtz(self.precision(6)?),
            "VARIANT" => DataType::Variant,
            "BLOB" => DataType::Blob,
            "GEOMETRY" => DataType::Geometry(self.raw_parameters()?),
            "GEOGRAPHY" => DataType::Geography(self.raw_parameters()?),
            "ARRAY" => DataType::Array(Box::new(self.bracketed(|p| p.field_type(depth + 1))?)),
            "MULTISET" => DataType::Multiset(Box::new(self.bracketed(|p| p.field_type(depth + 1))?)),
            "MAP" => {
                let (key, value) = self.bracketed(|p| {
                    let key = p.field_type(depth + 1)?;
                    p.expect(',')?;
                    Ok((key, p.field_type(depth + 1)?))
                })?;
                DataType::Map(Box::new(key), Box::new(value))
            }
            "VECTOR" => {
                let (element, length) = self.bracketed(|p| {
                    let element = p.field_type(depth + 1)?;
                    p.expect(',')?;
                    Ok((element, p.number_in(1, MAX_LENGTH, "the length of a VECTOR")?))
                })?;
                DataType::Vector(Box::new(element), length)
            }
            "ROW" => DataType::Row(self.bracketed(|p| p.row_fields(depth))?),
            _ => {
                self.at = start;
                return Err(Error::unsupported(format!("the type '{}' is not known", shortened(self.text)))
                    .with_code("UnknownType")
                    .with_hint(
                        "known are CHAR, VARCHAR, STRING, BOOLEAN, BINARY, VARBINARY, BYTES, DECIMAL, TINYINT, SMALLINT, \
                         INT, BIGINT, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, MAP, MULTISET, ROW, \
                         VECTOR, VARIANT, BLOB, GEOMETRY, GEOGRAPHY",
                    ));
            }
        })
    }

    /// `NOT NULL`, `NULL` or nothing.
    fn nullability(&mut self) -> Result<bool> {
        if self.keyword("NOT") {
            self.expect_keyword("NULL")?;
            return Ok(false);
        }
        self.keyword("NULL");
        Ok(true)
    }

    /// `(n)` of texts and bytes; absent is 1, in VARCHAR too.
    fn length(&mut self) -> Result<u32> {
        if !self.symbol('(') {
            return Ok(1);
        }
        let length = self.number_in(1, MAX_LENGTH, "the length")?;
        self.expect(')')?;
        Ok(length)
    }

    fn precision(&mut self, default: u8) -> Result<u8> {
        if !self.symbol('(') {
            return Ok(default);
        }
        let precision = self.small_number_in(0, 9, "the precision")?;
        self.expect(')')?;
        Ok(precision)
    }

    fn decimal(&mut self) -> Result<DataType> {
        if !self.symbol('(') {
            return Ok(DataType::Decimal(10, 0));
        }
        let precision = self.small_number_in(1, 38, "the precision of a DECIMAL")?;
        let scale = if self.symbol(',') { self.small_number_in(0, precision, "the scale of a DECIMAL")? } else { 0 };
        self.expect(')')?;
        Ok(DataType::Decimal(precision, scale))
    }

    /// `WITHOUT TIME ZONE`, or `WITH LOCAL TIME ZONE` where it is allowed; whether it was the latter.
    fn zone_suffix(&mut self, local_allowed: bool) -> Result<bool> {
        if self.keyword("WITHOUT") {
            self.expect_keyword("TIME")?;
            self.expect_keyword("ZONE")?;
            return Ok(false);
        }
        if local_allowed && self.keyword("WITH") {
            self.expect_keyword("LOCAL")?;
            self.expect_keyword("TIME")?;
            self.expect_keyword("ZONE")?;
            return Ok(true);
        }
        Ok(false)
    }

    /// `(…)` as it stands, for types whose parameters only pass through.
    fn raw_parameters(&mut self) -> Result<String> {
        if !self.symbol('(') {
            return Ok(String::new());
        }
        let rest = self.rest();
        let Some(end) = rest.find(')') else { return Err(self.error("')' is missing")) };
        let parameters = rest.get(..end).unwrap_or_default().trim().to_string();
        self.at += end + 1;
        Ok(parameters)
    }

    fn bracketed<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.expect('<')?;
        let value = inner(self)?;
        self.expect('>')?;
        Ok(value)
    }

    /// `name type, …` with names bare or in back quotes.
    fn row_fields(&mut self, depth: usize) -> Result<Vec<DataField>> {
        let mut fields = Vec::new();
        if self.peek() == Some('>') {
            return Ok(fields);
        }
        loop {
            let name = self.identifier()?;
            let id = self.ids.resolve(None)?;
            let field_type = self.field_type(depth + 1)?;
            fields.push(DataField { id, name, field_type, description: None, default_value: None, sums: false });
            if !self.symbol(',') {
                return Ok(fields);
            }
        }
    }

    fn identifier(&mut self) -> Result<String> {
        if !self.symbol('`') {
            return match self.word() {
                Some(word) => Ok(word.to_string()),
                None => Err(self.error("a field name is missing")),
            };
        }
        let mut name = String::new();
        let mut chars = self.rest().char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            if c != '`' {
                name.push(c);
            } else if chars.next_if(|(_, next)| *next == '`').is_some() {
                name.push('`');
            } else {
                self.at += offset + 1;
                return Ok(name);
            }
        }
        Err(self.error("a back quote is not closed"))
    }

    fn number_in(&mut self, least: u32, most: u32, what: &str) -> Result<u32> {
        let number = self.word().and_then(|word| word.parse::<u32>().ok());
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.error(format!("{what} must be a number from {least} to {most}"))),
        }
    }

    fn small_number_in(&mut self, least: u8, most: u8, what: &str) -> Result<u8> {
        let number = self.number_in(u32::from(least), u32::from(most), what)?;
        u8::try_from(number).map_err(|_| self.error("a number is too large"))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest().chars().next()
    }

    /// The next run of letters, digits and underscores.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = rest.get(..end).filter(|word| !word.is_empty())?;
        self.at += end;
        Some(word)
    }

    /// Takes the keyword if it comes next.
    fn keyword(&mut self, keyword: &str) -> bool {
        let start = self.at;
        let found = self.word().is_some_and(|word| word.eq_ignore_ascii_case(keyword));
        if !found {
            self.at = start;
        }
        found
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        if self.keyword(keyword) { Ok(()) } else { Err(self.error(format!("{keyword} is missing"))) }
    }

    /// Takes the symbol if it comes next.
    fn symbol(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(symbol);
        if found {
            self.at += symbol.len_utf8();
        }
        found
    }

    fn expect(&mut self, symbol: char) -> Result<()> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.error(format!("'{symbol}' is missing"))) }
    }

    fn error(&self, reason: impl AsRef<str>) -> Error {
        let place = self.text.get(..self.at).unwrap_or_default().chars().count() + 1;
        Error::corrupt(format!(
            "cannot read the type '{}': {} at character {place}",
            shortened(self.text),
            reason.as_ref()
        ))
        .with_code("MalformedType")
    }
}

/// A type string short enough for a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 120;
    if text.chars().count() <= LONGEST {
        return text.to_string();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::super::data_type::{DataType, FieldType};
    use super::MAX_DEPTH;

    #[test]
    fn synonyms_and_spacing_give_the_canonical_writing() {
        for (text, canonical) in [
            ("char", "CHAR(1)"),
            ("VARCHAR", "VARCHAR(1)"),
            ("varchar ( 10 )", "VARCHAR(10)"),
            ("VARCHAR(2147483647)", "STRING"),
            ("STRING NOT NULL", "STRING NOT NULL"),
            ("string  not\tnull", "STRING NOT NULL"),
            ("INT NULL", "INT"),
            ("BINARY", "BINARY(1)"),
            ("VARBINARY", "VARBINARY(1)"),
            ("VARBINARY(2147483647)", "BYTES"),
            ("DECIMAL", "DECIMAL(10, 0)"),
            ("DEC(5)", "DECIMAL(5, 0)"),
            ("numeric(38,38)", "DECIMAL(38, 38)"),
            ("INTEGER", "INT"),
            ("DOUBLE PRECISION NOT NULL", "DOUBLE NOT NULL"),
            ("TIME", "TIME(0)"),
            ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
            ("TIMESTAMP", "TIMESTAMP(6)"),
            ("TIMESTAMP(0) WITHOUT TIME ZONE NOT NULL", "TIMESTAMP(0) NOT NULL"),
            ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
            ("timestamp_ltz(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
            ("GEOMETRY", "GEOMETRY"),
            ("GEOMETRY( OGC:CRS84 ) NOT NULL", "GEOMETRY(OGC:CRS84) NOT NULL"),
            ("GEOGRAPHY(OGC:CRS84, spherical)", "GEOGRAPHY(OGC:CRS84, spherical)"),
            ("INT NOT NULL ARRAY NOT NULL", "ARRAY<INT NOT NULL> NOT NULL"),
            ("INT ARRAY MULTISET", "MULTISET<ARRAY<INT>>"),
            ("VECTOR<FLOAT, 128>", "VECTOR<FLOAT, 128>"),
            (
                "map<string not null,row<a int,`b``c` array<variant>>>",
                "MAP<STRING NOT NULL, ROW<`a` INT, `b``c` ARRAY<VARIANT>>>",
            ),
            ("ROW<>", "ROW<>"),
        ] {
            let parsed = FieldType::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(parsed.to_string(), canonical, "{text}");
            assert_eq!(FieldType::parse(canonical).unwrap(), parsed, "{canonical}");
        }
    }

    #[test]
    fn broken_texts_are_errors_that_quote_the_type() {
        for text in [
            "",
            "NOT NULL",
            "INT NOT",
            "CHAR(0)",
            "VARCHAR(2147483648)",
            "VARCHAR(99999999999999999999)",
            "DECIMAL(39, 2)",
            "DECIMAL(5, 6)",
            "DECIMAL(0, 0)",
            "DECIMAL(5, -1)",
            "TIMESTAMP(10)",
            "TIME(10)",
            "TIMESTAMP WITH TIME ZONE",
            "TIMESTAMP(3",
            "INT INT",
            "INT,",
            "GEOMETRY(x",
            "ARRAY",
            "ARRAY<INT",
            "MAP<INT>",
            "ROW<`a INT>",
            "ROW<a>",
            "VECTOR<FLOAT>",
            "VECTOR<FLOAT, 0>",
            "İNT",
            "INTERVAL",
            "CHAR(１)",
        ] {
            let error = FieldType::parse(text).unwrap_err();
            assert!(["MalformedType", "UnknownType"].contains(&error.code()), "{text}: {error:?}");
            assert!(error.to_string().contains(&format!("'{text}'")) || text.is_empty(), "{error}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}INT{}", "ARRAY<".repeat(MAX_DEPTH), ">".repeat(MAX_DEPTH));
        assert!(FieldType::parse(&deep).is_ok());
        let deeper = format!("ARRAY<{deep}>");
        assert!(FieldType::parse(&deeper).unwrap_err().to_string().contains("deeper"));
        assert!(FieldType::parse(&"ARRAY<".repeat(1_000_000)).is_err());
        assert!(FieldType::parse(&format!("INT {}", "ARRAY ".repeat(1_000_000))).is_err());
    }

    #[test]
    fn fields_of_a_row_are_numbered_outer_before_inner() {
        let parsed = FieldType::parse("ROW<a ROW<b INT>, c INT>").unwrap();
        let DataType::Row(fields) = parsed.data_type else { panic!("a row") };
        let DataType::Row(inner) = &fields[0].field_type.data_type else { panic!("a row") };
        assert_eq!((fields[0].id, inner[0].id, fields[1].id), (0, 1, 2));
    }
}
