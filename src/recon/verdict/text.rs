//! The verdict for people, in the order of the specification: pins and watermarks; counts and money of each side; classes;
//! reasons with an example key and its history; anomalies; conflicts; what could not be determined, and why.

use std::fmt;

use super::SHOWN;
use super::model::{Cause, CommitRef, KeyCase, Verdict, VersionLine};

/// Lines of the lists that can be long.
const LINES: usize = 20;

fn commit(commit: &CommitRef) -> String {
    format!(
        "snapshot {} ({} of {}, identifier {}, {})",
        commit.snapshot, commit.kind, commit.user, commit.identifier, commit.time
    )
}

/// What stands in data may hold signs that move the cursor: they are shown as text.
fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn or_null(value: Option<&str>) -> String {
    value.map_or_else(|| "NULL".to_string(), safe)
}

impl Verdict {
    /// The verdict as text, lines ended by a newline.
    pub fn text(&self) -> String {
        self.to_string()
    }

    fn pins(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(lake) = &self.lake {
            writeln!(f, "lake     {}", safe(&lake.position))?;
            let lag = lake.watermark_lag_ms.map(|ms| format!(", {} s before its commit", ms / 1_000));
            let watermark = lake.watermark.as_deref().unwrap_or("none");
            writeln!(f, "         watermark {watermark}{}", lag.unwrap_or_default())?;
            match lake.newer_snapshots {
                0 => writeln!(f, "         it is the newest snapshot")?,
                newer => writeln!(f, "         {newer} newer snapshots, the newest {}", safe(&commit(&lake.newest)))?,
            }
            for user in lake.users.iter().take(SHOWN) {
                writeln!(f, "         {} has come to {}", safe(&user.user), safe(&commit(user)))?;
            }
            if lake.users.len() > SHOWN {
                writeln!(f, "         and {} more users", lake.users.len() - SHOWN)?;
            }
        }
        if let Some(source) = &self.source {
            writeln!(f, "source   {} ({})", safe(&source.name), safe(&source.position))?;
            writeln!(f, "         {}", safe(&source.rerun.text()))?;
        }
        Ok(())
    }

    fn counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            writeln!(f, "rows     {} of the lake and {} of the source were compared", source.lake_rows, source.rows)?;
        }
        if let Some(counts) = &self.counts {
            writeln!(
                f,
                "counts   R {} = H {} + V {} + X {} + T {} + N {}",
                counts.raw_rows,
                counts.hidden_rows,
                counts.vector_deleted,
                counts.superseded,
                counts.tombstoned,
                counts.final_rows
            )?;
        }
        for money in &self.money {
            let delta = money.delta.as_deref().unwrap_or("?");
            writeln!(f, "sum      {}: lake {}, source {}, Δ {delta}", safe(&money.column), money.left, money.right)?;
        }
        if let Some(test) = &self.count_test {
            writeln!(f, "count    {}", safe(&test.text))?;
        }
        for class in &self.classes {
            writeln!(f, "class    {} {}", class.class.name(), class.findings)?;
        }
        for note in &self.notes {
            writeln!(f, "note     {}", safe(note))?;
        }
        Ok(())
    }

    fn cause(&self, f: &mut fmt::Formatter<'_>, cause: &Cause) -> fmt::Result {
        let layer = cause.layer.map_or("not determined", |layer| layer.name());
        let reason = cause.reason.as_deref().map(|reason| format!(", {reason}")).unwrap_or_default();
        let classes: Vec<String> =
            cause.classes.iter().map(|(class, count)| format!("{} {count}", class.name())).collect();
        let classes = if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) };
        writeln!(f, "\n* {} {layer}{reason}{classes}, {}", cause.findings, cause.confidence.as_str())?;
        writeln!(f, "  {}", safe(&cause.text))?;
        for (one, findings) in &cause.proof.commits {
            writeln!(f, "  commit   {}: {findings}", safe(&commit(one)))?;
        }
        if cause.proof.more_commits > 0 {
            writeln!(f, "           and {} more commits", cause.proof.more_commits)?;
        }
        if let Some(clean) = cause.proof.clean_at {
            writeln!(f, "  clean    at snapshot {clean}")?;
        }
        if !cause.proof.detectors.is_empty() {
            writeln!(f, "  detector {}", cause.proof.detectors.join(", "))?;
        }
        let file = cause.proof.files.first().map(|file| format!("  file     {}", safe(file)));
        file.map_or(Ok(()), |file| writeln!(f, "{file}"))?;
        let more = cause.findings.saturating_sub(cause.proof.keys.len() as u64);
        if let Some(first) = cause.proof.keys.first() {
            writeln!(f, "  keys     {}", safe(&cause.proof.keys.join(" | ")))?;
            if more > 0 {
                writeln!(f, "           and {more} more")?;
            }
            let case = self.keys.iter().find(|case| case.key_text() == *first && case.layer == cause.layer);
            if let Some(case) = case {
                key(f, case)?;
            }
        }
        // what to do is said once
        let first = self.causes.iter().find(|other| other.next == cause.next);
        for step in cause.next.iter().filter(|_| first.is_some_and(|first| std::ptr::eq(first, cause))) {
            writeln!(f, "  next     {step}")?;
        }
        Ok(())
    }

    fn rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.anomalies.is_empty() {
            writeln!(f, "\nanomalies")?;
        }
        for anomaly in self.anomalies.iter().take(LINES) {
            let layer = anomaly.layer.map(|layer| format!(" ({})", layer.name())).unwrap_or_default();
            writeln!(
                f,
                "  {} {}{layer}: {}; {}",
                anomaly.detector,
                anomaly.severity,
                safe(&anomaly.explanation),
                safe(&anomaly.evidence)
            )?;
        }
        if self.anomalies.len() > LINES {
            writeln!(f, "  and {} more", self.anomalies.len() - LINES)?;
        }
        if !self.conflicts.is_empty() {
            writeln!(f, "\nconflicts in the window")?;
        }
        for conflict in self.conflicts.iter().take(LINES) {
            writeln!(
                f,
                "  {} {} {}, {}: {}",
                safe(&commit(&conflict.commit)),
                conflict.relation,
                safe(&commit(&conflict.opponent)),
                safe(&conflict.units.join("; ")),
                conflict.verdict
            )?;
        }
        if self.conflicts.len() > LINES {
            writeln!(f, "  and {} more", self.conflicts.len() - LINES)?;
        }
        if !self.undetermined.is_empty() || self.keys_left_out > 0 {
            writeln!(f, "\nnot determined")?;
        }
        if self.keys_left_out > 0 {
            writeln!(f, "  {} more findings were not looked at one by one", self.keys_left_out)?;
        }
        for limit in self.undetermined.iter().take(LINES) {
            writeln!(f, "  {}: {}", safe(&limit.what), safe(&limit.why))?;
        }
        Ok(())
    }
}

/// An example with its history.
fn key(f: &mut fmt::Formatter<'_>, case: &KeyCase) -> fmt::Result {
    writeln!(f, "  example  {} {}", case.class.name(), safe(&case.key_text()))?;
    for cell in case.cells.iter().take(SHOWN) {
        let side = |there: bool, value: Option<&str>| if there { or_null(value) } else { "no row".to_string() };
        let (lake, source) = case.sides();
        let (left, right) = (side(lake, cell.left.as_deref()), side(source, cell.right.as_deref()));
        writeln!(f, "           {}: lake {left}, source {right}", safe(&cell.column))?;
    }
    for (number, version) in case.versions.iter().enumerate() {
        writeln!(f, "           {} {}", number + 1, line(version))?;
    }
    Ok(())
}

fn line(version: &VersionLine) -> String {
    let from = version
        .commit
        .as_ref()
        .map_or("before history".to_string(), |one| format!("{} of {}", one.snapshot, safe(&one.user)));
    let seen = match (version.visible_from, version.visible_to) {
        (Some(from), Some(to)) => format!("seen {from}..{to}"),
        (Some(from), None) => format!("seen {from}.."),
        _ => "never seen".to_string(),
    };
    let values: Vec<String> =
        version.values.iter().map(|(name, value)| format!("{}={}", safe(name), or_null(value.as_deref()))).collect();
    let note = if version.note.is_empty() { String::new() } else { format!("; {}", safe(&version.note)) };
    format!(
        "{} {} from {from}, sequence {}, {seen}: {}{note}",
        version.row_kind,
        version.written,
        version.sequence,
        values.join(", ")
    )
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.summary.outcome;
        writeln!(f, "{outcome}: {}", safe(&self.summary.line))?;
        self.pins(f)?;
        self.counts(f)?;
        for cause in &self.causes {
            self.cause(f, cause)?;
        }
        self.rest(f)
    }
}
