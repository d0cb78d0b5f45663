//! What else is to be known of a comparison, in sentences.

use super::super::pairs::{CommonType, Role};
use super::super::side::SideRows;
use super::super::tally::Class;
use super::{ColumnReport, Parts, SideReport};
use crate::snapshot::SessionZone;

/// The notes, those first that say what was left out.
pub(super) fn of(
    parts: &Parts<'_>,
    [left, right]: [&SideReport; 2],
    differences: u64,
    columns: &[ColumnReport],
) -> Vec<String> {
    let Parts { sides, pairs, tally, cut, mapped, sample, resumed, horizon, filtered, came, sent, .. } = parts;
    let mut notes: Vec<String> = parts.empty.clone().into_iter().collect();
    if let Some(part) = *sample {
        let keys = left.rows.max(right.rows);
        let percent = f64::from(part) / 10_000.0;
        notes.push(format!(
            "{percent} percent of the keys were looked at, by their hash: this is no proof of the others"
        ));
        if differences == 0 && keys > 0 {
            // the rule of three
            #[expect(clippy::cast_precision_loss, reason = "a bound of two digits")]
            let bound = 300.0 / keys as f64;
            notes.push(format!("at 95 % confidence at most {bound:.2} percent of the keys differ"));
        }
        notes.push(format!(
            "a sample saves comparing, not reading: no side can be asked for keys by their hash, and {} rows on the left and {} on the right came",
            came[0], came[1]
        ));
    }
    if let Some(horizon) = horizon {
        notes.push(format!(
            "rows newer than {horizon} are LATE or LATE_UPDATE and in no sum; where that time is NULL a row is compared"
        ));
    }
    notes.extend(parts.horizon_told.clone());
    if *filtered {
        notes.push(format!(
            "keys that one side alone showed were looked for beside the condition: {} rows on the left and {} on the right were read for that, each at most once more",
            left.looked_up, right.looked_up
        ));
    }
    for (own, name) in [(&pairs.only_left, &left.name), (&pairs.only_right, &right.name)] {
        if !own.is_empty() {
            notes.push(format!("not compared, because {name} alone has them: {}", own.join(", ")));
        }
    }
    for (at, pair) in pairs.all.iter().enumerate() {
        let (one, other) = (cut[0][at], cut[1][at]);
        let is_horizon = pairs.horizon == Some(at);
        if one + other == 0 || pair.role == Role::Context && !is_horizon {
            continue;
        }
        let of = match pair.role {
            Role::Key => "of the key was",
            _ => "was",
        };
        let so = match pair.role {
            Role::Key => ": rows whose keys differ in those alone have one key",
            _ => "",
        };
        notes.push(format!(
            "column {} {of} compared with the digits that both types have ({}): {one} values on the left and {other} on the right have more{so}",
            pair.name(),
            pair.common.data_type()
        ));
    }
    let compared = pairs.all.iter().filter(|pair| pair.role == Role::Compared);
    for (pair, column) in compared.zip(columns) {
        let is_float = matches!(pair.common, CommonType::Float | CommonType::Double);
        if is_float && pair.tolerance.is_none() && column.mismatches > 0 {
            let name = pair.name();
            notes.push(format!(
                "column {name} holds floats and was compared bit by bit: TOLERANCE {name} rel:0.000000001 lets them be so far apart"
            ));
        }
    }
    let doubles = [Class::DupSource, Class::DupLake].map(|class| tally.count(class));
    if doubles.iter().any(|count| count.findings > 0) {
        notes.push(format!(
            "the key is not unique: {} keys have {} rows on the right and {} keys have {} rows on the left; such rows are of DUP_SOURCE and DUP_LAKE, and of the class of the row they stand for besides",
            doubles[0].findings, doubles[0].right_rows, doubles[1].findings, doubles[1].left_rows
        ));
    }
    let lone = [Class::MissingInLake, Class::ExtraInLake].iter().all(|class| tally.count(*class).findings > 0);
    for pair in pairs.all.iter().take(pairs.keys) {
        let name = pair.name();
        if let CommonType::Text { folded: true, .. } = pair.common {
            notes.push(format!(
                "column {name} of the key was compared in lower case: keys that differ in case alone are one"
            ));
            continue;
        }
        for (column, side) in [(&pair.left, &left.name), (&pair.right, &right.name)] {
            let so = format!(
                "such a key is MISSING_IN_LAKE and EXTRA_IN_LAKE; COLLATE NOCASE ({name}) compares it in lower case"
            );
            match column.collation.as_deref() {
                // texts of a query are of some collation, and nothing has to come of it
                Some("unknown") if lone && matches!(pair.common, CommonType::Text { .. }) => notes.push(format!(
                    "column {name} of the key: the collation of {side} is not told, and it may take texts for one that differ here, as 'A' and 'a': {so}"
                )),
                Some("unknown") | None => {}
                Some(collation) => notes.push(format!(
                    "column {name} of the key: {side} compares it by {collation}, which takes texts for one that differ here, as 'A' and 'a': {so}"
                )),
            }
        }
    }
    for (side, sent) in sides.iter().zip(sent) {
        if let SideRows::Source(source) = &side.rows {
            let position = source.position();
            notes.push(format!(
                "{}: read when its clock said {}, instants in the zone {}",
                side.name,
                SessionZone::utc().show(position.clock_millis),
                position.zone
            ));
            if !sent.is_empty() {
                let rows = source.work().rows;
                notes.push(format!(
                    "{}: the database was asked for rows with {}, and {rows} came in all",
                    side.name,
                    sent.join(" AND ")
                ));
            }
        }
        notes.extend(side.caveats().into_iter().map(|caveat| format!("{}: {caveat}", side.name)));
    }
    for (at, pair) in pairs.all.iter().enumerate() {
        if pair.map.is_some() && mapped.get(at) == Some(&0) && right.rows > 0 {
            notes.push(format!("no value of {} on the right is one that MAP names", pair.name()));
        }
    }
    notes.extend(resumed.clone());
    if left.rows == 0 && right.rows == 0 {
        notes.push("there is no row on either side".to_string());
    }
    notes
}
