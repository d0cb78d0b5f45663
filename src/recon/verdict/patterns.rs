//! What the values of both sides show when they are put side by side: a code for another, a constant ratio, a constant
//! shift of hours, a change that was added twice.
//!
//! | pattern | shown by | confidence |
//! |---|---|---|
//! | code | the lake's value equals no source value anywhere, or the source's is nowhere in the lake | inferred from 2 findings on, else heuristic |
//! | ratio | lake = source × one ratio, a power of ten or in 3 findings | inferred from 3 findings on, else heuristic |
//! | shift | lake = source + one multiple of a quarter of an hour, whole hours or in 3 findings | the same |
//! | twice | the key's own versions: before, before + Δ, before + 2Δ; the source has the one in the middle | exact; without versions, one Δ in 3 findings: heuristic |
//!
//! One pair of values that repeats is no proof by itself: an update of the status that never came looks the same. What
//! tells both apart is whether the values are known to the other side.

use std::collections::BTreeMap;

use arrow::datatypes::i256;
use chrono::{DateTime, NaiveDate, NaiveDateTime};

use super::model::Pattern;
use crate::recon::compare::{Cell, Class, Example};
use crate::recon::lookup::Confidence;

/// Findings from which on a repetition is no accident.
const REPEATED: u64 = 3;
/// Different pairs of values a column of codes has at most.
const CODES: usize = 50;
/// Longest text of a code.
const CODE_CHARS: usize = 64;

/// What the lake has in columns that may hold codes, whatever it is compared with.
#[derive(Debug, Clone, Default)]
pub struct Domain {
    /// Rows by column and value; what is not there was not asked for.
    pub rows: BTreeMap<(String, String), u64>,
    /// Different values of a column, about.
    pub distinct: BTreeMap<String, u64>,
}

/// Different values a column of codes has at most.
const VALUES: u64 = 200;

/// What repeats over the findings.
#[derive(Debug, Default)]
pub struct Patterns {
    /// By column and both values: findings.
    pairs: BTreeMap<(String, String, String), u64>,
    /// By column and value of the lake: findings.
    lefts: BTreeMap<(String, String), u64>,
    /// By column: different pairs.
    distinct: BTreeMap<String, usize>,
    /// By column and ratio: findings.
    ratios: BTreeMap<(String, (i256, i256)), u64>,
    /// By column and minutes.
    shifts: BTreeMap<(String, i64), u64>,
    /// By column and difference, as text.
    deltas: BTreeMap<(String, String), u64>,
    domain: Domain,
}

/// Values that both sides show of a finding.
fn pairs_of(example: &Example) -> impl Iterator<Item = (&Cell, &str, &str)> {
    let both = matches!(example.class, Class::Different | Class::FilterMismatch);
    let cells = example.cells.iter().filter(move |_| both);
    cells.filter_map(|cell| Some((cell, cell.left.as_deref()?, cell.right.as_deref()?)))
}

impl Patterns {
    /// Counts what repeats in findings.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Example>) -> Self {
        let mut found = Self::default();
        for example in findings {
            for (cell, left, right) in pairs_of(example) {
                let column = &cell.column;
                if let Some(ratio) = ratio(left, right) {
                    *found.ratios.entry((column.clone(), ratio)).or_default() += 1;
                }
                if let Some(minutes) = shift(left, right) {
                    *found.shifts.entry((column.clone(), minutes)).or_default() += 1;
                }
                if let Some(delta) = difference(left, right) {
                    *found.deltas.entry((column.clone(), delta)).or_default() += 1;
                }
                if left.chars().count() > CODE_CHARS || right.chars().count() > CODE_CHARS {
                    continue;
                }
                *found.lefts.entry((column.clone(), left.to_string())).or_default() += 1;
                let pair = (column.clone(), left.to_string(), right.to_string());
                let times = found.pairs.entry(pair).or_default();
                if *times == 0 {
                    *found.distinct.entry(column.clone()).or_default() += 1;
                }
                *times += 1;
            }
        }
        found
    }

    /// Columns that may hold codes, and the values of both sides whose number in the lake is wanted.
    pub fn wanted(&self) -> BTreeMap<String, Vec<String>> {
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (column, left, right) in self.pairs.keys() {
            if self.distinct.get(column).is_some_and(|pairs| *pairs <= CODES) {
                let values = wanted.entry(column.clone()).or_default();
                for value in [left, right] {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                }
            }
        }
        wanted
    }

    /// Takes in how often the lake has them.
    #[must_use]
    pub fn with_domain(mut self, domain: Domain) -> Self {
        self.domain = domain;
        self
    }

    /// What the values of a finding show, and how sure that is; None where its columns do not all show something.
    pub fn of_finding(&self, example: &Example) -> Option<(Pattern, Confidence)> {
        let mut found: Option<(Pattern, Confidence)> = None;
        let mut columns = 0;
        for (cell, left, right) in pairs_of(example) {
            columns += 1;
            let own = self.of_cell(&cell.column, left, right)?;
            found = Some(match found.take() {
                None => own,
                // one is told, the least sure one counts
                Some((pattern, confidence)) => (pattern, confidence.max(own.1)),
            });
        }
        // a column where one side is NULL shows nothing
        if columns < example.cells.len() { None } else { found }
    }

    fn of_cell(&self, column: &str, left: &str, right: &str) -> Option<(Pattern, Confidence)> {
        let owned = || column.to_string();
        if let Some(times) = self.code(column, left, right) {
            let pattern = Pattern::Code { column: owned(), left: left.to_string(), right: right.to_string() };
            return Some((pattern, if times > 1 { Confidence::Inferred } else { Confidence::Heuristic }));
        }
        let sure = |times: u64| if times >= REPEATED { Confidence::Inferred } else { Confidence::Heuristic };
        if let Some(found) = ratio(left, right) {
            let times = self.ratios.get(&(owned(), found)).copied().unwrap_or_default();
            if times >= REPEATED || is_power_of_ten(found) {
                let (up, down) = found;
                let ratio = if down == i256::ONE { up.to_string() } else { format!("{up}/{down}") };
                return Some((Pattern::Ratio { column: owned(), ratio }, sure(times)));
            }
        }
        if let Some(minutes) = shift(left, right) {
            let times = self.shifts.get(&(owned(), minutes)).copied().unwrap_or_default();
            if times >= REPEATED || minutes % 60 == 0 {
                return Some((Pattern::Shift { column: owned(), minutes }, sure(times)));
            }
        }
        None
    }

    /// How often a pair repeats that stands for one code under two names; None where both names are known on both sides.
    fn code(&self, column: &str, left: &str, right: &str) -> Option<u64> {
        if self.distinct.get(column).is_none_or(|pairs| *pairs > CODES) || left.is_empty() || right.is_empty() {
            return None;
        }
        // a column of many values holds no codes: there a value that is nowhere else says nothing
        if self.domain.distinct.get(column).is_none_or(|values| *values > VALUES) || time(left).is_some() {
            return None;
        }
        let in_lake = |value: &str| self.domain.rows.get(&(column.to_string(), value.to_string())).copied();
        let (lefts, rights) = (in_lake(left)?, in_lake(right).unwrap_or_default());
        let different = self.lefts.get(&(column.to_string(), left.to_string())).copied().unwrap_or_default();
        let foreign = lefts <= different;
        let unknown = rights == 0;
        let times = self.pairs.get(&(column.to_string(), left.to_string(), right.to_string())).copied()?;
        // two numbers can be apart for any reason
        let numbers = decimal(left).is_some() && decimal(right).is_some();
        let code = foreign && (times >= REPEATED || !numbers && (times > 1 || rights > 1));
        (code || (unknown && times >= REPEATED)).then_some(times)
    }

    /// One difference that repeats in a column: a change that was added twice, by the numbers alone.
    pub fn repeated_delta(&self, example: &Example) -> Option<Pattern> {
        let [(cell, left, right)] = pairs_of(example).collect::<Vec<_>>().try_into().ok()?;
        let delta = difference(left, right)?;
        let times = self.deltas.get(&(cell.column.clone(), delta.clone())).copied().unwrap_or_default();
        (times >= REPEATED).then(|| Pattern::Twice { column: cell.column.clone(), delta })
    }
}

/// A decimal as units and digits behind the point; None where it is none.
fn decimal(text: &str) -> Option<(i256, u32)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !plain || digits.len() > 60 || digits.matches('.').count() > 1 {
        return None;
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let scale = u32::try_from(part.len()).ok()?;
    Some((i256::from_string(&format!("{whole}{part}"))?, scale))
}

/// Both in units of one scale, and the scale.
fn at_one_scale(left: &str, right: &str) -> Option<(i256, i256, u32)> {
    let ((left, one), (right, other)) = (decimal(left)?, decimal(right)?);
    let scale = one.max(other);
    let up = |value: i256, own: u32| value.checked_mul(i256::from_i128(10).checked_pow(scale - own)?);
    Some((up(left, one)?, up(right, other)?, scale))
}

/// Lake by source in lowest terms; None of what are no numbers, of zero, and of one.
fn ratio(left: &str, right: &str) -> Option<(i256, i256)> {
    let (left, right, _) = at_one_scale(left, right)?;
    if left == i256::ZERO || right == i256::ZERO || left == right {
        return None;
    }
    let (mut one, mut other) = (left.checked_abs()?, right.checked_abs()?);
    while other != i256::ZERO {
        (one, other) = (other, one.checked_rem(other)?);
    }
    let (up, down) = (left.checked_div(one)?, right.checked_div(one)?);
    if down.is_negative() { Some((up.checked_neg()?, down.checked_neg()?)) } else { Some((up, down)) }
}

/// `10`, `1/1000`: a unit was mistaken for another.
fn is_power_of_ten((up, down): (i256, i256)) -> bool {
    let power = |value: i256| value.to_string().trim_end_matches('0') == "1" && value != i256::ONE;
    (up == i256::ONE && power(down)) || (down == i256::ONE && power(up))
}

/// Lake minus source, as a decimal without needless digits.
pub fn difference(left: &str, right: &str) -> Option<String> {
    let (left, right, scale) = at_one_scale(left, right)?;
    let apart = left.checked_sub(right)?;
    (apart != i256::ZERO).then(|| shown(apart, scale))
}

fn shown(value: i256, scale: u32) -> String {
    let digits = value.checked_abs().unwrap_or(value).to_string();
    let scale = usize::try_from(scale).unwrap_or_default();
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    let part = part.trim_end_matches('0');
    let sign = if value.is_negative() { "-" } else { "" };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// A time as values show it.
fn time(text: &str) -> Option<NaiveDateTime> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
        return Some(instant.naive_utc());
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, form) {
            return Some(time);
        }
    }
    None
}

/// Minutes that the lake is ahead, where that is a multiple of a quarter of an hour within the offsets there are.
fn shift(left: &str, right: &str) -> Option<i64> {
    if NaiveDate::parse_from_str(left, "%Y-%m-%d").is_ok() {
        return None;
    }
    let apart = time(left)?.signed_duration_since(time(right)?);
    let minutes = apart.num_minutes();
    let whole = apart == chrono::TimeDelta::try_minutes(minutes)?;
    (whole && minutes != 0 && minutes % 15 == 0 && minutes.abs() <= 26 * 60).then_some(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn different(cells: &[(&str, &str, &str)]) -> Example {
        let cell = |(column, left, right): &(&str, &str, &str)| Cell {
            column: (*column).to_string(),
            left: Some((*left).to_string()),
            right: Some((*right).to_string()),
        };
        Example {
            class: Class::Different,
            key: vec![("id".into(), Some("1".into()))],
            cells: cells.iter().map(cell).collect(),
            left_rows: 1,
            right_rows: 1,
            snapshot: None,
        }
    }

    fn domain(values: &[(&str, u64)]) -> Domain {
        let rows = values.iter().map(|(value, count)| (("s".to_string(), (*value).to_string()), *count)).collect();
        Domain { rows, distinct: [("s".to_string(), 5)].into() }
    }

    #[test]
    fn a_code_is_told_from_an_update_that_never_came() {
        let findings = vec![different(&[("s", "1", "PAID")]); 4];
        let patterns = || Patterns::of(&findings);
        assert_eq!(patterns().wanted()["s"], ["1", "PAID"]);
        // 1 is in the lake only where it differs
        let found = patterns().with_domain(domain(&[("1", 4), ("PAID", 90)])).of_finding(&findings[0]);
        let code = Pattern::Code { column: "s".into(), left: "1".into(), right: "PAID".into() };
        assert_eq!(found, Some((code.clone(), Confidence::Inferred)));
        // the lake never has PAID: it always says 1
        let found = patterns().with_domain(domain(&[("1", 50), ("PAID", 0)])).of_finding(&findings[0]);
        assert_eq!(found, Some((code, Confidence::Inferred)));
        // both names are known on both sides: rows that were NEW when they were PAID already
        assert_eq!(patterns().with_domain(domain(&[("1", 50), ("PAID", 90)])).of_finding(&findings[0]), None);
        // a column of names
        let mut names = domain(&[("1", 4), ("PAID", 90)]);
        names.distinct.insert("s".into(), 9_000);
        assert_eq!(patterns().with_domain(names).of_finding(&findings[0]), None);
        // nobody asked
        assert_eq!(patterns().of_finding(&findings[0]), None);
    }

    #[test]
    fn one_ratio_and_one_shift_are_patterns_when_they_repeat_or_are_round() {
        let cents = [different(&[("a", "1050", "10.5")]), different(&[("a", "300", "3")])];
        let found = Patterns::of(&cents).of_finding(&cents[0]);
        let ratio = Pattern::Ratio { column: "a".into(), ratio: "100".into() };
        assert_eq!(found, Some((ratio, Confidence::Heuristic)));
        let odd: Vec<Example> =
            [("7.2", "8"), ("9", "10"), ("1.8", "2")].iter().map(|(l, r)| different(&[("a", l, r)])).collect();
        let nine = Pattern::Ratio { column: "a".into(), ratio: "9/10".into() };
        assert_eq!(Patterns::of(&odd).of_finding(&odd[0]), Some((nine, Confidence::Inferred)));
        assert_eq!(Patterns::of(&odd[..2]).of_finding(&odd[0]), None);
        let hours = [different(&[("t", "2026-04-16T18:00:00", "2026-04-16T10:00:00")])];
        let shift = Pattern::Shift { column: "t".into(), minutes: 480 };
        assert_eq!(shift.text(), "t: lake = source + 8:00 hours");
        assert_eq!(Patterns::of(&hours).of_finding(&hours[0]), Some((shift, Confidence::Heuristic)));
        let late = [different(&[("t", "2026-04-16T10:00:07", "2026-04-16T10:00:00")])];
        assert_eq!(Patterns::of(&late).of_finding(&late[0]), None);
        // a second column that shows nothing makes no pattern of the first
        let both = [different(&[("a", "100", "1"), ("b", "x", "y")])];
        assert_eq!(Patterns::of(&both).of_finding(&both[0]), None);
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(difference("0.30", "0.1"), Some("0.2".into()));
        assert_eq!(difference("-5", "0.001"), Some("-5.001".into()));
        assert_eq!(difference("1e3", "1"), None);
        assert_eq!(ratio("-100", "1"), Some((i256::from_i128(-100), i256::ONE)));
        assert_eq!(ratio("0", "5"), None);
        let three: Vec<Example> =
            [("15", "10"), ("25", "20"), ("8", "3")].iter().map(|(l, r)| different(&[("a", l, r)])).collect();
        let delta = Pattern::Twice { column: "a".into(), delta: "5".into() };
        assert_eq!(Patterns::of(&three).repeated_delta(&three[2]), Some(delta));
        assert_eq!(Patterns::of(&three[..2]).repeated_delta(&three[1]), None);
    }
}
