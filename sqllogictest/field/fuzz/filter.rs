//! Random conditions: as SQL, and evaluated row by row in three-valued logic.

use lakepin::testing::naive::Value;

use super::column::Col;
use crate::random::Random;

/// A condition over columns by their place.
#[derive(Debug, Clone)]
pub enum Filter {
    Compare(usize, &'static str, Value),
    In(usize, Vec<Value>, bool),
    Null(usize, bool),
    Prefix(usize, String),
    /// `a + b > n`, which no statistics understand.
    Sum(usize, usize, i64),
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

impl Filter {
    /// A condition of at most `depth` levels over these columns.
    pub fn random(random: &mut Random, columns: &[Col], depth: u64) -> Self {
        if depth > 0 && random.chance(55) {
            let parts = (0..1 + random.below(3)).map(|_| Self::random(random, columns, depth - 1)).collect();
            return match random.below(5) {
                0 | 1 => Self::And(parts),
                2 | 3 => Self::Or(parts),
                _ => Self::Not(Box::new(Self::random(random, columns, depth - 1))),
            };
        }
        let at = random.below(columns.len() as u64) as usize;
        let column = &columns[at];
        match random.below(10) {
            0 => Self::Null(at, random.chance(50)),
            1 | 2 => {
                let list = (0..1 + random.below(4)).map(|_| column.literal(random)).collect();
                Self::In(at, list, random.chance(30))
            }
            3 if column.is_text() => Self::Prefix(at, ["s", "s1", "t", ""][random.below(4) as usize].to_string()),
            4 => {
                let ints: Vec<usize> = (0..columns.len()).filter(|i| columns[*i].is_integer()).collect();
                Self::Sum(random.pick(&ints), random.pick(&ints), random.below(60) as i64)
            }
            _ => Self::Compare(at, random.pick(&["=", "=", "<>", "<", "<=", ">", ">="]), column.literal(random)),
        }
    }

    pub fn sql(&self, columns: &[Col]) -> String {
        let name = |at: usize| columns[at].name;
        let list = |parts: &[Self], word: &str| {
            let texts: Vec<String> = parts.iter().map(|p| format!("({})", p.sql(columns))).collect();
            texts.join(word)
        };
        match self {
            Self::Compare(at, op, value) => format!("{} {op} {}", name(*at), columns[*at].sql(value)),
            Self::In(at, values, not) => {
                let values: Vec<String> = values.iter().map(|value| columns[*at].sql(value)).collect();
                format!("{} {}IN ({})", name(*at), if *not { "NOT " } else { "" }, values.join(", "))
            }
            Self::Null(at, not) => format!("{} IS {}NULL", name(*at), if *not { "NOT " } else { "" }),
            Self::Prefix(at, prefix) => format!("{} LIKE '{prefix}%'", name(*at)),
            Self::Sum(a, b, n) => format!("{} + {} > {n}", name(*a), name(*b)),
            Self::And(parts) => list(parts, " AND "),
            Self::Or(parts) => list(parts, " OR "),
            Self::Not(inner) => format!("NOT ({})", inner.sql(columns)),
        }
    }

    /// True, false or unknown.
    pub fn holds(&self, row: &[Value]) -> Option<bool> {
        let known = |at: usize| Some(&row[at]).filter(|v| !v.is_null());
        match self {
            Self::Compare(at, op, value) => {
                let order = known(*at)?.order(value);
                Some(match *op {
                    "=" => order.is_eq(),
                    "<>" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Self::In(at, values, not) => {
                let value = known(*at)?;
                Some(values.iter().any(|v| v.order(value).is_eq()) != *not)
            }
            Self::Null(at, not) => Some(row[*at].is_null() != *not),
            Self::Prefix(at, prefix) => match known(*at)? {
                Value::Text(text) => Some(text.starts_with(prefix.as_str())),
                _ => None,
            },
            Self::Sum(a, b, n) => match (known(*a)?, known(*b)?) {
                (Value::Int(a), Value::Int(b)) => Some(a + b > *n),
                _ => None,
            },
            Self::And(parts) => {
                let all: Vec<Option<bool>> = parts.iter().map(|p| p.holds(row)).collect();
                if all.contains(&Some(false)) { Some(false) } else { (!all.contains(&None)).then_some(true) }
            }
            Self::Or(parts) => {
                let all: Vec<Option<bool>> = parts.iter().map(|p| p.holds(row)).collect();
                if all.contains(&Some(true)) { Some(true) } else { (!all.contains(&None)).then_some(false) }
            }
            Self::Not(inner) => inner.holds(row).map(|b| !b),
        }
    }
}
