//! The verdict as a page: one file, no script, no request, readable on a phone, in print and in the dark.
//!
//! Everything that comes from data goes through [`Escaped`]; the page forbids scripts and requests by itself, too.

mod charts;

use std::fmt::{self, Write as _};

use super::model::{Cause, CommitRef, KeyCase, Layer, Verdict, VersionLine};

const STYLE: &str = include_str!("style.css");

/// Keys that are shown.
const KEYS: usize = 200;

/// Text that is data: its signs mean themselves, in text and in attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // signs that a page cannot hold, and those that turn the direction of what follows
                c if (c.is_control() && !matches!(c, '\n' | '\t')) || is_direction(c) => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The colour of a layer, by its place.
pub(super) fn colour(layer: Option<Layer>) -> String {
    match layer.and_then(|layer| Layer::ALL.iter().position(|one| *one == layer)) {
        // in the order that keeps the frequent ones apart
        Some(at) => format!("var(--c{})", [4, 0, 5, 1, 2, 9, 3, 8, 6, 7].get(at).copied().unwrap_or(7)),
        None => "var(--line)".to_string(),
    }
}

/// `1 234 567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

fn name(layer: Option<Layer>) -> &'static str {
    layer.map_or("not determined", Layer::name)
}

fn chip(out: &mut String, layer: Option<Layer>) {
    // writing to a String cannot fail
    let _ = write!(out, "<span class=\"chip\" style=\"color:{}\">{}</span>", colour(layer), name(layer));
}

fn value(text: Option<&str>) -> String {
    text.map_or_else(|| "<span class=\"null\">NULL</span>".to_string(), |text| Escaped(text).to_string())
}

fn commit(one: &CommitRef) -> String {
    format!(
        "snapshot {} · {} of <b>{}</b> · identifier {} · {}",
        one.snapshot,
        Escaped(&one.kind),
        Escaped(&one.user),
        Escaped(&one.identifier),
        Escaped(&one.time)
    )
}

impl Verdict {
    /// The verdict as a page of HTML.
    pub fn page(&self) -> String {
        let mut out = String::with_capacity(64 << 10);
        let title = self.lake.as_ref().map_or("verdict", |lake| lake.table.as_str());
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>Verdict: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            Escaped(title)
        );
        self.head(&mut out);
        self.tiles(&mut out);
        self.causes(&mut out);
        self.count(&mut out);
        charts::all(self, &mut out);
        self.numbers(&mut out);
        self.examples(&mut out);
        self.evidence(&mut out);
        let _ = write!(
            out,
            "<footer>Format {}. Counts are of rows and keys; “looked at” are findings whose history was read one by one. \
             Confidence: exact follows from bytes, inferred from what holds for well-behaved writers, heuristic is likely.</footer>\n\
             </main>\n</body>\n</html>\n",
            self.format
        );
        out
    }

    fn head(&self, out: &mut String) {
        let summary = &self.summary;
        let table = self.lake.as_ref().map_or("comparison", |lake| lake.table.as_str());
        let _ = write!(out, "<header><div class=\"eyebrow\">Verdict · {}</div>\n<h1>", Escaped(table));
        let of = summary.heading(self.source.as_ref().map_or(0, |source| source.rows.max(source.lake_rows)));
        let class = if summary.clean { "ok" } else { "red" };
        let outcome = summary.outcome.replace('_', " ");
        let _ = write!(out, "{of}</h1>\n<p><span class=\"chip {class}\">{}</span>", Escaped(&outcome));
        for one in &summary.layers {
            chip(out, Some(one.layer));
        }
        let _ = write!(out, "</p>\n<p>{}</p>\n<dl class=\"pins\">", Escaped(&summary.line));
        if let Some(lake) = &self.lake {
            let _ = write!(out, "<dt>Lake, pinned</dt><dd>{}</dd>", Escaped(&lake.position));
            let lag =
                lake.watermark_lag_ms.map(|ms| format!(", {} s before its commit", ms / 1000)).unwrap_or_default();
            let watermark = lake.watermark.as_deref().unwrap_or("none");
            let _ = write!(out, "<dt>Watermark</dt><dd>{}{lag}</dd>", Escaped(watermark));
            if lake.newer_snapshots > 0 {
                let newer = grouped(lake.newer_snapshots);
                let _ =
                    write!(out, "<dt>Since then</dt><dd>{newer} snapshots, the newest {}</dd>", commit(&lake.newest));
            }
            let _ = write!(out, "<dt>History</dt><dd>{}</dd>", Escaped(&lake.history));
        }
        if let Some(source) = &self.source {
            let (name, position) = (Escaped(&source.name), Escaped(&source.position));
            let rerun = source.rerun.text();
            let _ = write!(out, "<dt>Source</dt><dd>{name} ({position}), {}</dd>", Escaped(&rerun));
        }
        out.push_str("</dl></header>\n");
    }

    fn tiles(&self, out: &mut String) {
        out.push_str("<div class=\"tiles\">");
        let mut tile = |name: &str, of: &str, id: &str| {
            let (name, of) = (Escaped(name), Escaped(of));
            let _ = write!(out, "<div class=\"tile\" data-{id}><b>{of}</b><span>{name}</span></div>");
        };
        let findings = if self.summary.stopped { "findings at least: it was ended early" } else { "findings" };
        tile(findings, &grouped(self.summary.differences), "findings");
        tile("looked at one by one", &grouped(self.summary.looked_at), "looked");
        if let Some(source) = &self.source {
            tile("rows of the lake compared", &grouped(source.lake_rows), "lake-rows");
            tile("rows of the source compared", &grouped(source.rows), "source-rows");
        }
        for money in self.money.iter().take(4) {
            let delta = money.delta.as_deref().unwrap_or("not known");
            tile(&format!("Σ {}: lake − source", money.column), delta, "delta");
        }
        out.push_str("</div>\n");
    }

    fn causes(&self, out: &mut String) {
        if self.causes.is_empty() {
            return;
        }
        out.push_str(
            "<section id=\"causes\"><h2>Why</h2>\n<div class=\"share\" role=\"img\" aria-label=\"findings by layer\">",
        );
        let all: u64 = self.causes.iter().map(|cause| cause.findings).sum();
        for cause in &self.causes {
            let (colour, part) = (colour(cause.layer), charts::share(cause.findings, all));
            let _ = write!(out, "<i style=\"width:{part:.2}%;background:{colour}\"></i>");
        }
        out.push_str("</div>\n");
        let mut told: Vec<&[String]> = Vec::new();
        for cause in &self.causes {
            // what to do is said once
            let again = told.contains(&cause.next.as_slice());
            told.push(&cause.next);
            one_cause(out, cause, again);
        }
        out.push_str("</section>\n");
    }

    fn count(&self, out: &mut String) {
        let Some(test) = &self.count_test else { return };
        let _ = write!(
            out,
            "<section id=\"count\"><h2>Their count</h2><p>{}</p>\n<div class=\"scroll\"><table><tr><th>what it can be</th>\
             <th class=\"num\">rows</th><th>how it comes about</th><th></th></tr>",
            Escaped(&test.text)
        );
        for one in &test.candidates {
            let mark = if one.equal { "<b class=\"red\">= theirs</b>" } else { "" };
            let _ = write!(
                out,
                "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td><td>{mark}</td></tr>",
                Escaped(&one.name),
                grouped(one.value),
                Escaped(&one.arithmetic)
            );
        }
        out.push_str("</table></div></section>\n");
    }

    fn numbers(&self, out: &mut String) {
        out.push_str("<section id=\"numbers\"><h2>Counts and sums</h2><div class=\"scroll\"><table><tr><th>class</th><th class=\"num\">findings</th><th class=\"num\">rows of the lake</th><th class=\"num\">rows of the source</th></tr>");
        for class in &self.classes {
            let (findings, left, right) =
                (grouped(class.findings), grouped(class.left_rows), grouped(class.right_rows));
            let name = class.class.name();
            let _ = write!(
                out,
                "<tr data-class=\"{name}\" data-findings=\"{}\"><td>{name}</td><td class=\"num\">{findings}</td><td class=\"num\">{left}</td><td class=\"num\">{right}</td></tr>",
                class.findings
            );
        }
        out.push_str("</table></div>");
        if !self.notes.is_empty() {
            let notes: String = self.notes.iter().map(|note| format!("<li>{}</li>", Escaped(note))).collect();
            let _ = write!(out, "<ul class=\"soft\" id=\"notes\">{notes}</ul>");
        }
        if !self.money.is_empty() {
            out.push_str("<div class=\"scroll\"><table><tr><th>sum of</th><th class=\"num\">lake</th><th class=\"num\">source</th><th class=\"num\">lake − source</th></tr>");
            for money in &self.money {
                let _ = write!(
                    out,
                    "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>",
                    Escaped(&money.column),
                    Escaped(&money.left),
                    Escaped(&money.right),
                    Escaped(money.delta.as_deref().unwrap_or(""))
                );
            }
            out.push_str("</table></div>");
        }
        if let Some(counts) = &self.counts {
            let cells = [
                ("R raw", counts.raw_rows),
                ("H hidden", counts.hidden_rows),
                ("V by vectors", counts.vector_deleted),
                ("X superseded", counts.superseded),
                ("T tombstones", counts.tombstoned),
                ("N final", counts.final_rows),
            ];
            let heads: String = cells.iter().map(|(name, _)| format!("<th class=\"num\">{name}</th>")).collect();
            let values: String = cells
                .iter()
                .map(|(_, rows)| format!("<td class=\"num\" data-rows=\"{rows}\">{}</td>", grouped(*rows)))
                .collect();
            let _ = write!(
                out,
                "<div class=\"scroll\"><table id=\"accounting\"><tr>{heads}</tr><tr>{values}</tr></table></div>"
            );
        }
        out.push_str("</section>\n");
    }

    fn examples(&self, out: &mut String) {
        if self.keys.is_empty() {
            return;
        }
        out.push_str("<section id=\"keys\"><h2>Keys</h2>\n");
        let pin = self.lake.as_ref().map(|lake| lake.at.snapshot);
        let newest = self.lake.as_ref().map_or(0, |lake| lake.newest.snapshot);
        for case in self.keys.iter().take(KEYS) {
            one_key(out, case, pin, newest);
        }
        let more = self.keys_left_out + (self.keys.len().saturating_sub(KEYS)) as u64;
        if more > 0 {
            let _ = write!(out, "<p class=\"soft\" id=\"more\">and {} more</p>", grouped(more));
        }
        out.push_str("</section>\n");
    }

    fn evidence(&self, out: &mut String) {
        if !self.anomalies.is_empty() {
            out.push_str("<section id=\"anomalies\"><h2>Anomalies in the history</h2><ul>");
            for one in &self.anomalies {
                let _ = write!(
                    out,
                    "<li><b>{}</b> {}, {}: {}<div class=\"soft\">{}</div></li>",
                    Escaped(&one.detector),
                    Escaped(&one.severity),
                    name(one.layer),
                    Escaped(&one.explanation),
                    Escaped(&one.evidence)
                );
            }
            out.push_str("</ul></section>\n");
        }
        if !self.conflicts.is_empty() {
            out.push_str("<section id=\"conflicts\"><h2>Commits that met</h2><ul>");
            for one in &self.conflicts {
                let _ = write!(
                    out,
                    "<li>{}<br>{} {}<div class=\"soft\">{}: {}</div></li>",
                    commit(&one.commit),
                    Escaped(&one.relation),
                    commit(&one.opponent),
                    Escaped(&one.units.join("; ")),
                    Escaped(&one.verdict)
                );
            }
            out.push_str("</ul></section>\n");
        }
        if self.undetermined.is_empty() && self.keys_left_out == 0 {
            return;
        }
        out.push_str("<section id=\"undetermined\"><h2>Not determined, and why</h2><ul>");
        if self.keys_left_out > 0 {
            let _ = write!(out, "<li>{} more findings were not looked at one by one</li>", grouped(self.keys_left_out));
        }
        for limit in &self.undetermined {
            let _ = write!(out, "<li>{}: {}</li>", Escaped(&limit.what), Escaped(&limit.why));
        }
        out.push_str("</ul></section>\n");
    }
}

fn one_cause(out: &mut String, cause: &Cause, again: bool) {
    let _ = write!(
        out,
        "<article class=\"cause\" data-findings=\"{}\"><header><span class=\"n\">{}</span>",
        cause.findings,
        grouped(cause.findings)
    );
    chip(out, cause.layer);
    let reason = cause.reason.as_deref().unwrap_or_default();
    let _ = write!(
        out,
        "<code>{}</code> <span class=\"soft\">{}</span></header>",
        Escaped(reason),
        cause.confidence.as_str()
    );
    let _ = write!(out, "<p>{}</p>", Escaped(&cause.text));
    if !cause.proof.commits.is_empty() {
        out.push_str("<ul>");
        for (one, findings) in &cause.proof.commits {
            let _ = write!(out, "<li>{}: {}</li>", commit(one), grouped(*findings));
        }
        if cause.proof.more_commits > 0 {
            let _ = write!(out, "<li>and {} more commits</li>", grouped(cause.proof.more_commits));
        }
        out.push_str("</ul>");
    }
    if let Some(clean) = cause.proof.clean_at {
        let _ = write!(out, "<p>At snapshot {clean} all of them are as the source has them.</p>");
    }
    if !cause.proof.detectors.is_empty() {
        let _ = write!(out, "<p class=\"soft\">detectors: {}</p>", Escaped(&cause.proof.detectors.join(", ")));
    }
    if !cause.proof.keys.is_empty() {
        let _ = write!(
            out,
            "<p class=\"soft\">keys: <span class=\"mono\">{}</span>",
            Escaped(&cause.proof.keys.join(" | "))
        );
        let more = cause.findings.saturating_sub(cause.proof.keys.len() as u64);
        if more > 0 {
            let _ = write!(out, " and {} more", grouped(more));
        }
        out.push_str("</p>");
    }
    if let Some(file) = cause.proof.files.first() {
        let _ = write!(out, "<p class=\"soft\">file: <span class=\"mono\">{}</span></p>", Escaped(file));
    }
    if !cause.next.is_empty() && !again {
        out.push_str("<div class=\"next\"><ul>");
        for step in &cause.next {
            let _ = write!(out, "<li>{}</li>", Escaped(step));
        }
        out.push_str("</ul></div>");
    }
    out.push_str("</article>\n");
}

fn one_key(out: &mut String, case: &KeyCase, pin: Option<i64>, newest: i64) {
    let open = if case.versions.is_empty() { "" } else { " open" };
    let _ = write!(
        out,
        "<details class=\"key\"{open}><summary><b class=\"mono\">{}</b> <span class=\"soft\">{}</span> ",
        Escaped(&case.key_text()),
        case.class.name()
    );
    chip(out, case.layer);
    let _ = write!(out, "</summary><p>{}</p>", Escaped(&case.sentence));
    if !case.cells.is_empty() {
        out.push_str("<div class=\"scroll\"><table><tr><th>column</th><th>lake</th><th>source</th></tr>");
        let (lake, source) = case.sides();
        let side = |there: bool, text: Option<&str>| {
            if there { value(text) } else { "<span class=\"null\">no row</span>".to_string() }
        };
        for cell in &case.cells {
            let (left, right) = (side(lake, cell.left.as_deref()), side(source, cell.right.as_deref()));
            let _ = write!(out, "<tr><td>{}</td><td>{left}</td><td>{right}</td></tr>", Escaped(&cell.column));
        }
        out.push_str("</table></div>");
    }
    if !case.versions.is_empty() {
        out.push_str("<div class=\"track\">");
        for (number, version) in case.versions.iter().enumerate() {
            one_version(out, number + 1, version, pin);
            charts::track(out, version, &case.versions, pin, newest);
        }
        out.push_str("</div>");
    }
    out.push_str("</details>\n");
}

fn one_version(out: &mut String, number: usize, version: &VersionLine, pin: Option<i64>) {
    let from = version
        .commit
        .as_ref()
        .map_or("before history".to_string(), |one| format!("snapshot {} of {}", one.snapshot, Escaped(&one.user)));
    let shown = pin.is_some_and(|pin| {
        version.visible_from.is_some_and(|from| from <= pin) && version.visible_to.is_none_or(|to| to >= pin)
    });
    let mark = if shown { " <b>← read</b>" } else { "" };
    let values: Vec<String> =
        version.values.iter().map(|(name, text)| format!("{}={}", Escaped(name), value(text.as_deref()))).collect();
    let _ = write!(
        out,
        "<div>{number}. <b>{}</b> {from}, sequence {}{mark}<br><span class=\"mono\">{}</span> <span class=\"soft\">{}</span></div>",
        Escaped(&version.row_kind),
        version.sequence,
        values.join(", "),
        Escaped(&version.note)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_text_whatever_it_holds() {
        let hostile = "<script>alert('x')</script>&\"\u{202e}\u{0}";
        assert_eq!(
            Escaped(hostile).to_string(),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}\u{fffd}"
        );
        assert_eq!((grouped(1_234_567), grouped(12)), ("1\u{202f}234\u{202f}567".into(), "12".into()));
    }
}
