//! What MySQL and MariaDB declare, and the Arrow types it is read as.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use mysql_async::Column;
use mysql_async::consts::{ColumnFlags, ColumnType};

use super::super::cells::{decimal_type, time_type, timestamp_type};
use super::super::{SourceColumn, SourceOrder};

/// How the driver gives values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Float,
    Double,
    Decimal,
    /// Big-endian bytes of a number.
    Bit,
    Date,
    /// With so many digits behind the second.
    Time(u32),
    DateTime(u32),
    Text,
    Bytes,
}

/// A column and how it is asked for.
#[derive(Debug, Clone)]
pub(super) struct MyColumn {
    pub(super) source: SourceColumn,
    pub(super) kind: Kind,
}

impl MyColumn {
    /// Its name in SQL.
    pub(super) fn quoted(&self) -> String {
        quoted(&self.source.name)
    }

    /// What sorts as its values do here: the column, or its text byte by byte.
    pub(super) fn in_order(&self) -> String {
        match self.source.order {
            SourceOrder::Values => self.quoted(),
            _ => bytes_of(&self.quoted()),
        }
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text's bytes in UTF-8.
pub(super) fn bytes_of(text: &str) -> String {
    format!("CAST(CONVERT({text} USING utf8mb4) AS BINARY)")
}

/// A column as `information_schema` declares it, or as a query's result does.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    pub(super) name: String,
    /// `bigint`.
    pub(super) type_name: String,
    /// `bigint(20) unsigned`.
    pub(super) full: String,
    pub(super) nullable: bool,
    pub(super) collation: Option<String>,
    pub(super) precision: u32,
    pub(super) scale: u32,
    /// Digits behind the second.
    pub(super) digits: u32,
}

/// Whether a collation sorts UTF-8 byte by byte. Those that pad with blanks do but for characters below the blank; who
/// reads in order checks it.
fn sorts_bytes(collation: &str) -> bool {
    collation == "binary"
        || collation.ends_with("_bin")
            && ["utf8_", "utf8mb3_", "utf8mb4_", "ascii_"].iter().any(|c| collation.starts_with(c))
}

impl Declared {
    pub(super) fn column(self) -> MyColumn {
        let unsigned = self.full.contains("unsigned");
        let int = |signed, not| (if unsigned { not } else { signed }, Kind::Int, SourceOrder::Values);
        let (data_type, kind, order) = match self.type_name.as_str() {
            "tinyint" => int(DataType::Int8, DataType::UInt8),
            "smallint" => int(DataType::Int16, DataType::UInt16),
            "mediumint" | "int" | "integer" => int(DataType::Int32, DataType::UInt32),
            "bigint" => int(DataType::Int64, DataType::UInt64),
            "year" => (DataType::Int16, Kind::Int, SourceOrder::Values),
            "float" => (DataType::Float32, Kind::Float, SourceOrder::Values),
            "double" | "real" => (DataType::Float64, Kind::Double, SourceOrder::Values),
            "decimal" | "numeric" => {
                let data_type = decimal_type(self.precision, self.scale);
                let order = if data_type == DataType::Utf8 { SourceOrder::Other } else { SourceOrder::Values };
                (data_type, Kind::Decimal, order)
            }
            "bit" if self.precision == 1 => (DataType::Boolean, Kind::Bit, SourceOrder::Values),
            "bit" => (DataType::UInt64, Kind::Bit, SourceOrder::Values),
            "date" => (DataType::Date32, Kind::Date, SourceOrder::Values),
            "time" => (time_type(self.digits), Kind::Time(self.digits), SourceOrder::Values),
            "datetime" => (timestamp_type(self.digits, false), Kind::DateTime(self.digits), SourceOrder::Values),
            "timestamp" => (timestamp_type(self.digits, true), Kind::DateTime(self.digits), SourceOrder::Values),
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                (DataType::Binary, Kind::Bytes, SourceOrder::Values)
            }
            // an enumeration sorts by its list, sets by their bits, addresses and identifiers by their bytes
            "enum" | "set" | "json" | "uuid" | "inet6" | "inet4" => (DataType::Utf8, Kind::Text, SourceOrder::Other),
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
                let order = match self.collation {
                    Some(collation) if sorts_bytes(&collation) => SourceOrder::Values,
                    Some(collation) => SourceOrder::Collation(collation),
                    None => SourceOrder::Collation("unknown".into()),
                };
                (DataType::Utf8, Kind::Text, order)
            }
            // geometries, vectors, and what is not known here: its bytes
            _ => (DataType::Binary, Kind::Bytes, SourceOrder::Other),
        };
        let source = SourceColumn { name: self.name, data_type, declared: self.full, nullable: self.nullable, order };
        MyColumn { source, kind }
    }

    /// A column of a query's result. Its collation is not told.
    pub(super) fn of_result(column: &Column) -> Self {
        let flags = column.flags();
        let has = |flag: ColumnFlags| flags.contains(flag);
        let is_bytes = column.character_set() == 63;
        let either = |bytes: &'static str, text: &'static str| if is_bytes { bytes } else { text };
        let length = column.column_length();
        let type_name = match column.column_type() {
            _ if has(ColumnFlags::ENUM_FLAG) => "enum",
            _ if has(ColumnFlags::SET_FLAG) => "set",
            ColumnType::MYSQL_TYPE_TINY => "tinyint",
            ColumnType::MYSQL_TYPE_SHORT => "smallint",
            ColumnType::MYSQL_TYPE_INT24 => "mediumint",
            ColumnType::MYSQL_TYPE_LONG => "int",
            ColumnType::MYSQL_TYPE_LONGLONG => "bigint",
            ColumnType::MYSQL_TYPE_YEAR => "year",
            ColumnType::MYSQL_TYPE_FLOAT => "float",
            ColumnType::MYSQL_TYPE_DOUBLE => "double",
            ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => "decimal",
            ColumnType::MYSQL_TYPE_BIT => "bit",
            ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => "date",
            ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_TIME2 => "time",
            ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_DATETIME2 => "datetime",
            ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2 => "timestamp",
            ColumnType::MYSQL_TYPE_JSON => "json",
            ColumnType::MYSQL_TYPE_NULL => "varchar",
            ColumnType::MYSQL_TYPE_STRING => either("binary", "char"),
            ColumnType::MYSQL_TYPE_VARCHAR | ColumnType::MYSQL_TYPE_VAR_STRING => either("varbinary", "varchar"),
            ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB => either("blob", "text"),
            _ => "geometry",
        };
        let unsigned = has(ColumnFlags::UNSIGNED_FLAG);
        let scale = u32::from(column.decimals());
        let (precision, shown) = match type_name {
            "decimal" => {
                let precision = length.saturating_sub(u32::from(scale > 0)).saturating_sub(u32::from(!unsigned));
                (precision, format!("({precision},{scale})"))
            }
            "bit" => (length, format!("({length})")),
            _ => (0, String::new()),
        };
        // 31: none declared
        let digits = if scale > 6 { 6 } else { scale };
        let shown = match type_name {
            "time" | "datetime" | "timestamp" if digits > 0 => format!("({digits})"),
            _ => shown,
        };
        let sign = if unsigned && !matches!(type_name, "year" | "bit" | "timestamp") { " unsigned" } else { "" };
        Self {
            name: column.name_str().into_owned(),
            type_name: type_name.into(),
            full: format!("{type_name}{shown}{sign}"),
            nullable: !has(ColumnFlags::NOT_NULL_FLAG),
            collation: None,
            precision,
            scale,
            digits,
        }
    }
}

/// An index of a table that rows can be read by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    /// Positions of its columns; none where it holds parts of values, expressions, or values from the last to the first.
    pub(super) columns: Option<Vec<usize>>,
    pub(super) nullable: bool,
}

impl Index {
    /// Columns that tell rows apart.
    pub(super) fn key(&self) -> Option<&[usize]> {
        self.columns.as_deref().filter(|_| self.unique && !self.nullable)
    }
}

/// The index that is the table's key: the primary, else the narrowest unique one without NULLs.
pub(super) fn key_of(indexes: &[Index]) -> Option<&Index> {
    let keys = || indexes.iter().filter(|index| index.key().is_some());
    keys()
        .find(|index| index.name == "PRIMARY")
        .or_else(|| keys().min_by_key(|index| (index.columns.as_ref().map_or(0, Vec::len), index.name.clone())))
}

/// An index that gives rows in this order, and the order of columns in which no two rows are alike, if there is one.
pub(super) fn ways(indexes: &[Index], ordered: &[usize]) -> Vec<(String, Option<Vec<usize>>)> {
    let primary = indexes.iter().find(|index| index.name == "PRIMARY").and_then(Index::key).unwrap_or_default();
    let is_total = |columns: &[usize]| {
        let have: BTreeSet<&usize> = columns.iter().collect();
        indexes.iter().filter_map(Index::key).any(|key| key.iter().all(|column| have.contains(column)))
    };
    let mut ways = Vec::new();
    for index in indexes {
        let Some(columns) = index.columns.as_deref().filter(|columns| columns.starts_with(ordered)) else { continue };
        // an index of InnoDB ends in the primary key
        let mut extended = columns.to_vec();
        extended.extend(primary.iter().filter(|column| !columns.contains(column)));
        let total = [ordered, columns, &extended].into_iter().find(|columns| is_total(columns));
        ways.push((index.name.clone(), total.map(<[usize]>::to_vec)));
    }
    ways.sort_by_key(|(name, total)| (total.is_none(), name != "PRIMARY"));
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_that_sort_bytes_are_known() {
        for yes in ["binary", "utf8mb4_bin", "utf8mb4_0900_bin", "utf8mb4_nopad_bin", "utf8_bin", "ascii_bin"] {
            assert!(sorts_bytes(yes), "{yes}");
        }
        for no in ["latin1_bin", "gbk_bin", "utf8mb4_general_ci", "utf8mb4_0900_as_cs"] {
            assert!(!sorts_bytes(no), "{no}");
        }
    }

    #[test]
    fn ways_have_an_order_without_ties_where_a_key_gives_one() {
        let index = |name: &str, unique, columns: &[usize], nullable| Index {
            name: name.into(),
            unique,
            columns: Some(columns.to_vec()),
            nullable,
        };
        let indexes = [
            index("by_day", false, &[2], false),
            index("PRIMARY", true, &[0, 1], false),
            index("maybe", true, &[3], true),
            index("other", true, &[4], false),
            Index { name: "prefix".into(), unique: true, columns: None, nullable: false },
        ];
        type Ways = Vec<(&'static str, Option<Vec<usize>>)>;
        let cases: [(&[usize], Ways); 6] = [
            (&[0, 1], vec![("PRIMARY", Some(vec![0, 1]))]),
            (&[0], vec![("PRIMARY", Some(vec![0, 1]))]),
            (&[1], vec![]),
            (&[2], vec![("by_day", Some(vec![2, 0, 1]))]),
            (&[3], vec![("maybe", Some(vec![3, 0, 1]))]),
            (&[4], vec![("other", Some(vec![4]))]),
        ];
        for (ordered, expected) in cases {
            let expected: Vec<_> = expected.into_iter().map(|(name, total)| (name.to_string(), total)).collect();
            assert_eq!(ways(&indexes, ordered), expected, "{ordered:?}");
        }
        assert_eq!(ways(&indexes[..1], &[2]), [("by_day".to_string(), None)]);
        assert_eq!(key_of(&indexes).map(|index| index.name.as_str()), Some("PRIMARY"));
        assert_eq!(key_of(&indexes[2..]).map(|index| index.name.as_str()), Some("other"));
    }
}
