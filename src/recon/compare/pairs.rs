//! Columns of two sides that stand for each other, and the type in which their values are compared.
//!
//! Values are compared, never their texts. Where one side holds less of a value than the other, the lesser counts: a
//! time of milliseconds beside one of microseconds, FLOAT beside DOUBLE; how many values lost something by it is told.
//!
//! | one side | other side | compared as |
//! |---|---|---|
//! | BOOLEAN | BOOLEAN | BOOLEAN |
//! | BOOLEAN | TINYINT, `tinyint(1)`, `bit(1)` | BIGINT, true = 1 |
//! | integers | integers | BIGINT; DECIMAL(20, 0) where one is unsigned with 64 bits |
//! | integers, DECIMAL | DECIMAL | DECIMAL that holds both |
//! | FLOAT | FLOAT, DOUBLE, DECIMAL | FLOAT |
//! | FLOAT | integers | DOUBLE |
//! | DOUBLE | DOUBLE, integers, DECIMAL | DOUBLE |
//! | texts | texts | bytes; without the blanks at the end where one side is CHAR; in lower case where that is asked for |
//! | BINARY | BINARY | bytes |
//! | DATE | DATE | DATE |
//! | DATE, TIMESTAMP | TIMESTAMP | TIMESTAMP of the coarser precision; a date is its midnight |
//! | TIMESTAMP | TIMESTAMP WITH LOCAL TIME ZONE | instants; the zone of the first has to be stated |
//! | TIME | TIME | TIME of the coarser precision |
//! | ARRAY, MAP, ROW | the same | the same |
//! | a column of a file without types | anything but BINARY and nested | the other's type |

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};

pub(super) use self::common::{common_type, is_zoned};
use crate::error::{Error, Result};
use crate::query::compared_type;
use crate::snapshot::nearest::known_names;

/// A column of a side.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Type of its values in batches.
    pub data_type: DataType,
    /// The type as declared, where that says more: `char(8)`, `datetime(3)`, `tinyint(1)`.
    pub declared: Option<String>,
    /// Whether its texts are values of any type, as in a CSV file.
    pub untyped: bool,
    /// The collation by which its database takes texts for one key that are different texts here; `unknown` where that is
    /// not told.
    pub collation: Option<String>,
}

impl Column {
    /// A column of which nothing but the type is known.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, declared: None, untyped: false, collation: None }
    }

    /// The name of the declared type: `char` of `CHAR(8) NOT NULL`.
    fn base(&self) -> String {
        let declared = self.declared.as_deref().unwrap_or_default().trim();
        let end = declared.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(declared.len());
        declared.get(..end).unwrap_or_default().to_ascii_lowercase()
    }

    /// The number in parentheses behind the declared type.
    pub(super) fn declared_digits(&self) -> Option<u32> {
        let (_, rest) = self.declared.as_deref()?.split_once('(')?;
        let (digits, _) = rest.split_once(')')?;
        digits.trim().parse().ok()
    }

    fn is_char(&self) -> bool {
        let padded = self.declared.as_deref().is_some_and(|declared| {
            let declared = declared.trim().to_ascii_lowercase();
            declared.starts_with("character(") || declared.starts_with("national char")
        });
        padded || matches!(self.base().as_str(), "char" | "bpchar" | "nchar")
    }

    fn is_one_bit(&self) -> bool {
        self.data_type == DataType::Int8
            || self.declared_digits() == Some(1) && matches!(self.base().as_str(), "tinyint" | "bit")
    }

    /// Digits behind the point that its decimals are shown with.
    pub(super) fn scale(&self) -> i8 {
        match self.data_type {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => scale.max(0),
            _ => 0,
        }
    }

    /// Digits of a second that values have.
    pub(super) fn precision(&self) -> u32 {
        let of_unit = match &self.data_type {
            DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => digits_of(*unit),
            _ => 9,
        };
        let declared = match self.base().as_str() {
            "timestamp" | "timestamp_ltz" | "datetime" | "time" | "timestamptz" => self.declared_digits(),
            _ => None,
        };
        declared.unwrap_or(of_unit).min(of_unit)
    }

    /// The type for people.
    pub fn type_name(&self) -> String {
        match (&self.declared, self.untyped) {
            (Some(declared), _) => declared.clone(),
            (None, true) => "text without a type".to_string(),
            (None, false) => self.data_type.to_string(),
        }
    }
}

fn digits_of(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// The unit that holds so many digits of a second.
fn unit_of(digits: u32) -> TimeUnit {
    match digits {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// What values of a pair are compared as.
#[derive(Debug, Clone, PartialEq)]
pub enum CommonType {
    /// True or false.
    Boolean,
    /// Signed integers of 64 bits.
    Integer,
    /// Decimals of this precision and scale.
    Decimal(u8, i8),
    /// Floats of 32 bits, one zero and one NaN.
    Float,
    /// Floats of 64 bits, one zero and one NaN.
    Double,
    /// Texts byte by byte.
    Text {
        /// Without the blanks at their end.
        trimmed: bool,
        /// In lower case.
        folded: bool,
    },
    /// Bytes.
    Binary,
    /// Days.
    Date,
    /// Times of day with so many digits of a second.
    Time(u32),
    /// Times, of so many digits of a second.
    Timestamp {
        /// Digits of a second.
        digits: u32,
        /// Whether they are instants.
        zoned: bool,
    },
    /// Arrays, maps and rows of this type.
    Nested(DataType),
}

impl CommonType {
    /// Its type in batches.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Decimal(precision, scale) if *precision <= 38 => DataType::Decimal128(*precision, *scale),
            Self::Decimal(precision, scale) => DataType::Decimal256(*precision, *scale),
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Text { .. } => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time(_) => DataType::Time64(TimeUnit::Nanosecond),
            Self::Timestamp { digits, zoned } => DataType::Timestamp(unit_of(*digits), zoned.then(|| Arc::from("UTC"))),
            Self::Nested(data_type) => compared_type(data_type),
        }
    }

    /// Whether sums of it are exact.
    pub fn is_exact_number(&self) -> bool {
        matches!(self, Self::Integer | Self::Decimal(..))
    }
}

/// How far values may be apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Tolerance {
    /// By this much; a decimal as text, exactly as it was written.
    Absolute(String),
    /// By this part of the larger one.
    Relative(f64),
}

impl Tolerance {
    /// `0.01`, `rel:0.001`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!("'{text}' is no tolerance"))
                .with_code("BadTolerance")
                .with_hint("write 0.01, or rel:0.001 for a part of the larger value")
        };
        match text.trim().strip_prefix("rel:") {
            Some(part) => {
                let part: f64 = part.trim().parse().map_err(|_| wrong())?;
                if part.is_finite() && part >= 0.0 { Ok(Self::Relative(part)) } else { Err(wrong()) }
            }
            None => {
                let (digits, sign) = (text.trim(), text.trim().starts_with('-'));
                match super::numbers::parse_decimal(digits) {
                    Some(_) if !sign => Ok(Self::Absolute(digits.to_string())),
                    _ => Err(wrong()),
                }
            }
        }
    }
}

/// What is said about the columns to compare.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Columns of the key.
    pub key: Vec<String>,
    /// Columns compared besides the key; None: all that both sides have.
    pub columns: Option<Vec<String>>,
    /// Columns that are not compared.
    pub except: Vec<String>,
    /// By column, what a value of the right side stands for on the left.
    pub maps: BTreeMap<String, BTreeMap<String, String>>,
    /// By column, how far values may be apart.
    pub tolerances: BTreeMap<String, Tolerance>,
    /// Columns looked at besides, where both sides have them and they can be compared: of conditions.
    pub context: Vec<String>,
    /// The column that tells how new a row is.
    pub horizon: Option<String>,
    /// The zone of times without one, beside times with one.
    pub zone_stated: bool,
    /// Columns whose texts are compared in lower case.
    pub folded: Vec<String>,
}

/// What a pair is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is part of the key.
    Key,
    /// Its values are compared.
    Compared,
    /// It explains other differences.
    Context,
}

/// Two columns that stand for each other.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The column of the left side.
    pub left: Column,
    /// The column of the right side.
    pub right: Column,
    /// What they are compared as.
    pub common: CommonType,
    /// What for.
    pub role: Role,
    /// What values of the right side stand for on the left.
    pub map: Option<Arc<BTreeMap<String, String>>>,
    /// How far values may be apart.
    pub tolerance: Option<Tolerance>,
}

impl Pair {
    /// Its name: that of the left side.
    pub fn name(&self) -> &str {
        &self.left.name
    }
}

/// The pairs of two sides: the key first, then what is compared, then context.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// In that order.
    pub all: Vec<Pair>,
    /// How many of them are the key.
    pub keys: usize,
    /// The one that tells how new a row is.
    pub horizon: Option<usize>,
    /// Columns of the left side that are not looked at.
    pub only_left: Vec<String>,
    /// Columns of the right side that are not looked at.
    pub only_right: Vec<String>,
}

/// Finds a column: by its name, else by the only one that differs in case.
pub fn find<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    let exact = columns.iter().find(|column| column.name == name);
    exact.or_else(|| {
        let mut same = columns.iter().filter(|column| column.name.to_lowercase() == name.to_lowercase());
        same.next().filter(|_| same.next().is_none())
    })
}

/// Pairs the columns of two sides.
///
/// # Errors
/// `NoKey` without a key, `ColumnNotFound`, `NotComparable` for types that have nothing in common.
pub fn pair(left: &[Column], right: &[Column], wanted: &Wanted) -> Result<Pairs> {
    if wanted.key.is_empty() {
        return Err(no_key(left, right));
    }
    let sides = Sides { left, right, wanted };
    let mut all: Vec<Pair> = Vec::new();
    for name in &wanted.key {
        let pair = sides.pair(name, Role::Key)?;
        if matches!(pair.common, CommonType::Nested(_)) {
            return Err(Error::unsupported(format!(
                "column {name} of type {} cannot be part of the key",
                pair.left.type_name()
            ))
            .with_code("NoKey")
            .with_hint("choose a key of numbers, texts, times or bytes"));
        }
        if all.iter().any(|known| known.left.name == pair.left.name) {
            return Err(Error::invalid(format!("column {name} is twice in the key")).with_code("NoKey"));
        }
        all.push(pair);
    }
    let keys = all.len();
    let known = |all: &[Pair], name: &str| {
        find(left, name).is_some_and(|column| all.iter().any(|pair| pair.left.name == column.name))
    };
    let excepted = |name: &str| wanted.except.iter().any(|one| one.to_lowercase() == name.to_lowercase());
    for name in &wanted.except {
        if find(left, name).is_none() && find(right, name).is_none() {
            return Err(sides.missing(name, "left", left));
        }
    }
    match &wanted.columns {
        Some(columns) => {
            for name in columns {
                if !known(&all, name) {
                    all.push(sides.pair(name, Role::Compared)?);
                }
            }
        }
        None => {
            for column in left.iter().filter(|column| !excepted(&column.name)) {
                if find(right, &column.name).is_some() && !known(&all, &column.name) {
                    all.push(sides.pair(&column.name, Role::Compared)?);
                }
            }
        }
    }
    for name in wanted.maps.keys().chain(wanted.tolerances.keys()).chain(&wanted.folded) {
        if !known(&all, name) {
            return Err(Error::invalid(format!(
                "column {name} is not compared, but has a MAP, a tolerance or COLLATE"
            ))
            .with_code("ColumnNotFound")
            .with_hint(known_names("columns", name, all.iter().map(Pair::name))));
        }
    }
    let mut horizon = None;
    if let Some(name) = &wanted.horizon {
        if !known(&all, name) {
            all.push(sides.pair(name, Role::Context)?);
        }
        horizon = find(left, name).and_then(|column| all.iter().position(|pair| pair.left.name == column.name));
    }
    for name in &wanted.context {
        // what cannot be compared explains nothing
        if !known(&all, name)
            && let Ok(pair) = sides.pair(name, Role::Context)
        {
            all.push(pair);
        }
    }
    let lone = |own: &[Column], used: fn(&Pair) -> &Column| -> Vec<String> {
        let used = |column: &&Column| {
            !all.iter().any(|pair| pair.role != Role::Context && used(pair).name == column.name)
                && !excepted(&column.name)
        };
        own.iter().filter(used).map(|column| column.name.clone()).collect()
    };
    let (only_left, only_right) = match &wanted.columns {
        // the others were left out on purpose
        Some(_) => (Vec::new(), Vec::new()),
        None => (lone(left, |pair| &pair.left), lone(right, |pair| &pair.right)),
    };
    Ok(Pairs { all, keys, horizon, only_left, only_right })
}

fn no_key(left: &[Column], right: &[Column]) -> Error {
    let common: Vec<&str> =
        left.iter().map(|column| column.name.as_str()).filter(|name| find(right, name).is_some()).collect();
    let error = Error::invalid("there is no key by which rows of both sides stand for each other").with_code("NoKey");
    match common.as_slice() {
        [] => {
            error.with_hint("the sides have no column of one name: give columns of the right side other names with AS")
        }
        common => error.with_hint(format!("name it: ON KEY (…); both sides have {}", common.join(", "))),
    }
}

struct Sides<'a> {
    left: &'a [Column],
    right: &'a [Column],
    wanted: &'a Wanted,
}

impl Sides<'_> {
    fn missing(&self, name: &str, side: &str, columns: &[Column]) -> Error {
        let known = columns.iter().map(|column| column.name.as_str());
        Error::invalid(format!("the {side} side has no column '{name}'"))
            .with_code("ColumnNotFound")
            .with_hint(known_names("columns", name, known))
    }

    fn pair(&self, name: &str, role: Role) -> Result<Pair> {
        let left = find(self.left, name).ok_or_else(|| self.missing(name, "left", self.left))?;
        let right = find(self.right, name).ok_or_else(|| self.missing(name, "right", self.right))?;
        let of = |names: &BTreeMap<String, BTreeMap<String, String>>| {
            names
                .iter()
                .find(|(column, _)| column.to_lowercase() == left.name.to_lowercase())
                .map(|(_, map)| map.clone())
        };
        let map = of(&self.wanted.maps).map(Arc::new);
        let tolerance = self.wanted.tolerances.iter();
        let tolerance = tolerance
            .filter(|(column, _)| column.to_lowercase() == left.name.to_lowercase())
            .map(|(_, t)| t.clone())
            .next();
        let mut common = common_type(left, right, map.is_some())?;
        if self.wanted.folded.iter().any(|name| name.to_lowercase() == left.name.to_lowercase()) {
            match &mut common {
                CommonType::Text { folded, .. } => *folded = true,
                _ => {
                    return Err(Error::invalid(format!(
                        "column {} of type {} has no upper and lower case",
                        left.name,
                        left.type_name()
                    ))
                    .with_code("BadArgument")
                    .with_hint("COLLATE NOCASE (…) takes columns of texts"));
                }
            }
        }
        if matches!(common, CommonType::Timestamp { zoned: true, .. }) && !self.wanted.zone_stated {
            let zoneless = [left, right].into_iter().find(|column| !is_zoned(&column.data_type) && !column.untyped);
            if let Some(zoneless) = zoneless {
                return Err(Error::invalid(format!(
                    "column {}: {} is an instant and {} has no zone",
                    left.name,
                    if std::ptr::eq(zoneless, left) { right.type_name() } else { left.type_name() },
                    zoneless.type_name()
                ))
                .with_code("ZoneNotStated")
                .with_hint("say in which zone its clock runs: ZONE '+08:00' (zone = \"+08:00\")"));
            }
        }
        if map.is_some() && !matches!(common, CommonType::Text { .. }) {
            return Err(Error::invalid(format!(
                "column {} takes no MAP: {} and {} have no values that could be written as texts",
                left.name,
                left.type_name(),
                right.type_name()
            ))
            .with_code("BadMap")
            .with_hint("let a query of the right side make the values that are compared"));
        }
        if tolerance.is_some() && role == Role::Key {
            return Err(Error::invalid(format!(
                "column {} takes no tolerance: it is of the key, and rows stand for each other by equal keys",
                left.name
            ))
            .with_code("BadTolerance")
            .with_hint("round the column in a query of both sides, or leave it out of the key"));
        }
        if tolerance.is_some()
            && !matches!(common, CommonType::Integer | CommonType::Decimal(..) | CommonType::Float | CommonType::Double)
        {
            return Err(Error::invalid(format!(
                "column {} of type {} takes no tolerance: only numbers do",
                left.name,
                left.type_name()
            ))
            .with_code("BadTolerance"));
        }
        Ok(Pair { left: left.clone(), right: right.clone(), common, role, map, tolerance })
    }
}
