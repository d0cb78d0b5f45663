//! Charts as inline SVG: commits by user, rows by snapshot, findings by partition, the life of a version.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Escaped, grouped};
use crate::recon::compare::Class;
use crate::recon::verdict::model::{CommitRef, Verdict, VersionLine};

/// Users with a lane of their own.
const LANES: usize = 8;
/// Partitions with a bar of their own.
const BARS: usize = 30;
/// The width of a chart, in its own units.
const WIDTH: f64 = 980.0;

/// A part of a whole in percent.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a length on a page")]
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    share
}

#[expect(clippy::cast_precision_loss, reason = "a place on a page")]
fn float(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a place on a page")]
fn place(number: usize) -> f64 {
    number as f64
}

/// Where a number of a range lies on a line from `from`, `length` long.
fn on(value: i64, range: (i64, i64), from: f64, length: f64) -> f64 {
    let width = range.1.saturating_sub(range.0);
    if width <= 0 {
        return from + length / 2.0;
    }
    from + length * float(value.saturating_sub(range.0)) / float(width)
}

/// All charts that there is something for.
pub(super) fn all(verdict: &Verdict, out: &mut String) {
    commits(verdict, out);
    rows(verdict, out);
    partitions(verdict, out);
}

fn open(out: &mut String, id: &str, title: &str, height: f64, about: &str) {
    let _ = write!(
        out,
        "<section id=\"{id}\"><h2>{title}</h2><div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        Escaped(about)
    );
}

/// Commits over time, a lane for each user.
fn commits(verdict: &Verdict, out: &mut String) {
    let all = &verdict.commits;
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for commit in all {
        *counts.entry(&commit.user).or_default() += 1;
    }
    let mut users: Vec<(&str, usize)> = counts.into_iter().collect();
    users.sort_by_key(|(user, commits)| (std::cmp::Reverse(*commits), *user));
    let more = users.len().saturating_sub(LANES);
    let lanes = users.len().min(LANES) + usize::from(more > 0);
    let height = 40.0 + 30.0 * place(lanes);
    let times =
        all.iter().fold((first.time_ms, first.time_ms), |(low, high), c| (low.min(c.time_ms), high.max(c.time_ms)));
    let blamed: BTreeSet<i64> =
        verdict.causes.iter().flat_map(|cause| &cause.proof.commits).map(|(commit, _)| commit.snapshot).collect();
    open(
        out,
        "commits",
        "Commits over time, by user",
        height,
        &format!("{} commits of {} users", all.len(), users.len()),
    );
    let (from, length) = (230.0, WIDTH - 250.0);
    let lane = |user: &str| {
        let at = users.iter().position(|(own, _)| *own == user).unwrap_or(0);
        if at < LANES { at } else { LANES }
    };
    for at in 0..lanes {
        let y = 20.0 + 30.0 * place(at);
        let (name, commits) = match users.get(at) {
            Some((user, commits)) if at < LANES => ((*user).to_string(), *commits),
            _ => (format!("{more} other users"), users.iter().skip(LANES).map(|(_, commits)| commits).sum()),
        };
        let short: String = name.chars().take(26).collect();
        let cut = if short.len() < name.len() { "…" } else { "" };
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{:.0}\">{}{cut} ({commits})</text><line class=\"axis\" x1=\"{from}\" x2=\"{:.0}\" y1=\"{y:.0}\" y2=\"{y:.0}\"/>",
            y + 4.0,
            Escaped(&short),
            from + length
        );
    }
    let bottom = 20.0 + 30.0 * place(lanes);
    if let Some(lake) = &verdict.lake {
        let x = on(lake.at.time_ms, times, from, length);
        let _ = write!(
            out,
            "<line class=\"pin\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"6\" y2=\"{:.0}\"><title>pin: snapshot {}</title></line>",
            bottom - 10.0,
            lake.at.snapshot
        );
    }
    for commit in all {
        dot(
            out,
            commit,
            (on(commit.time_ms, times, from, length), 20.0 + 30.0 * place(lane(&commit.user))),
            blamed.contains(&commit.snapshot),
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{from}\" y=\"{y:.0}\">{}</text><text x=\"{:.0}\" y=\"{y:.0}\" text-anchor=\"end\">{}</text></svg></div>\
         <div class=\"legend\"><span><i style=\"background:var(--c0)\"></i>APPEND</span><span><i style=\"background:var(--c7)\"></i>COMPACT</span>\
         <span><i style=\"background:var(--c1)\"></i>OVERWRITE</span><span><i style=\"border:2px solid var(--bad)\"></i>named by a cause</span>\
         <span><i style=\"background:var(--pin);width:2px\"></i>pin</span></div></section>",
        Escaped(&first.time),
        from + length,
        Escaped(&last.time),
        y = bottom + 12.0
    );
}

fn dot(out: &mut String, commit: &CommitRef, (x, y): (f64, f64), blamed: bool) {
    let fill = match commit.kind.as_str() {
        "APPEND" => "var(--c0)",
        "OVERWRITE" => "var(--c1)",
        _ => "var(--c7)",
    };
    let ring = if blamed { " stroke=\"var(--bad)\" stroke-width=\"2.5\"" } else { "" };
    let radius = if blamed { 6.0 } else { 4.0 };
    let _ = write!(
        out,
        "<circle data-snapshot=\"{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\"{ring}><title>snapshot {}, {} of {}, identifier {}, {}</title></circle>",
        commit.snapshot,
        commit.snapshot,
        Escaped(&commit.kind),
        Escaped(&commit.user),
        Escaped(&commit.identifier),
        Escaped(&commit.time)
    );
}

/// R, N and X by snapshot.
fn rows(verdict: &Verdict, out: &mut String) {
    let points = &verdict.accounting;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let (from, length, top, depth) = (80.0, WIDTH - 110.0, 14.0, 190.0);
    open(out, "rows", "Rows by snapshot", 240.0, "raw, final and superseded rows by snapshot");
    let most = points.iter().map(|point| point.raw_rows).max().unwrap_or(0).max(1);
    let range = (first.snapshot, last.snapshot);
    let y = |rows: u64| top + depth * (1.0 - share(rows, most) / 100.0);
    for part in 0..=4 {
        let rows = most * part / 4;
        let at = y(rows);
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{from}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            from + length,
            from - 8.0,
            at + 4.0,
            grouped(rows)
        );
    }
    if let Some(lake) = &verdict.lake {
        let x = on(lake.at.snapshot, range, from, length);
        let _ = write!(out, "<line class=\"pin\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{:.0}\"/>", top + depth);
    }
    type Of = fn(&crate::recon::verdict::AccountingPoint) -> Option<u64>;
    // R lies beneath N where nothing is superseded, and is seen around it
    let series: [(&str, &str, u8, Of); 3] = [
        ("R", "var(--c7)", 6, |point| Some(point.raw_rows)),
        ("N", "var(--c2)", 2, |point| point.final_rows),
        ("X", "var(--c1)", 2, |point| point.superseded),
    ];
    for (name, colour, width, of) in series {
        let known: Vec<(i64, u64)> = points.iter().filter_map(|point| Some((point.snapshot, of(point)?))).collect();
        let path: Vec<String> =
            known.iter().map(|(id, rows)| format!("{:.1},{:.1}", on(*id, range, from, length), y(*rows))).collect();
        let _ = write!(
            out,
            "<polyline data-series=\"{name}\" points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"{}\" stroke-width=\"{width}\"/>",
            path.join(" "),
            if width > 2 { 0.45 } else { 1.0 }
        );
        for (id, rows) in known {
            let _ = write!(
                out,
                "<circle data-series=\"{name}\" data-snapshot=\"{id}\" data-rows=\"{rows}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{name} at snapshot {id}: {rows}</title></circle>",
                on(id, range, from, length),
                y(rows)
            );
        }
    }
    let _ = writeln!(
        out,
        "<text x=\"{from}\" y=\"226\">snapshot {}</text><text x=\"{:.0}\" y=\"226\" text-anchor=\"end\">snapshot {}</text></svg></div>\
         <div class=\"legend\"><span><i style=\"background:var(--c7)\"></i>R raw rows</span><span><i style=\"background:var(--c2)\"></i>N final rows</span>\
         <span><i style=\"background:var(--c1)\"></i>X superseded versions</span><span><i style=\"background:var(--pin);width:2px\"></i>pin</span></div></section>",
        first.snapshot,
        from + length,
        last.snapshot
    );
}

fn colour_of(class: Class) -> &'static str {
    match class {
        Class::MissingInLake => "var(--c4)",
        Class::ExtraInLake => "var(--c0)",
        Class::Different => "var(--c1)",
        Class::FilterMismatch => "var(--c5)",
        Class::DupLake | Class::DupSource => "var(--c3)",
        _ => "var(--c7)",
    }
}

/// Findings by partition and class.
fn partitions(verdict: &Verdict, out: &mut String) {
    let mut all: Vec<_> = verdict.partitions.iter().collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|one| (std::cmp::Reverse(one.findings), &one.partition));
    let more = all.len().saturating_sub(BARS);
    let left: u64 = all.iter().skip(BARS).map(|one| one.findings).sum();
    all.truncate(BARS);
    let most = all.iter().map(|one| one.findings).max().unwrap_or(1);
    let height = 10.0 + 24.0 * place(all.len()) + if more > 0 { 24.0 } else { 0.0 };
    open(out, "partitions", "Findings by partition and class", height, "findings by partition and class");
    let (from, length) = (230.0, WIDTH - 320.0);
    let mut classes: BTreeSet<Class> = BTreeSet::new();
    for (at, one) in all.iter().enumerate() {
        let y = 6.0 + 24.0 * place(at);
        let name = if one.partition.is_empty() { "the table" } else { &one.partition };
        let short: String = name.chars().take(32).collect();
        let _ = write!(out, "<text x=\"0\" y=\"{:.0}\">{}</text>", y + 13.0, Escaped(&short));
        let mut x = from;
        for (class, findings) in &one.classes {
            classes.insert(*class);
            let width = length * share(*findings, most) / 100.0;
            let _ = write!(
                out,
                "<rect data-partition=\"{}\" data-class=\"{}\" data-findings=\"{findings}\" x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"17\" rx=\"2\" fill=\"{}\"><title>{}: {} {findings}</title></rect>",
                Escaped(&one.partition),
                class.name(),
                colour_of(*class),
                Escaped(name),
                class.name()
            );
            x += width;
        }
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{:.0}\">{}</text>", x + 8.0, y + 13.0, grouped(one.findings));
    }
    if more > 0 {
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{:.0}\">and {more} more partitions with {} findings</text>",
            height - 8.0,
            grouped(left)
        );
    }
    out.push_str("</svg></div><div class=\"legend\">");
    for class in classes {
        let _ = write!(out, "<span><i style=\"background:{}\"></i>{}</span>", colour_of(class), class.name());
    }
    out.push_str("</div></section>\n");
}

/// The snapshots in which readers got a version, as a bar.
pub(super) fn track(out: &mut String, version: &VersionLine, all: &[VersionLine], pin: Option<i64>, newest: i64) {
    let known = all.iter().flat_map(|one| [one.visible_from, one.visible_to, one.commit.as_ref().map(|c| c.snapshot)]);
    let ids: BTreeSet<i64> = known.flatten().chain(pin).chain([newest]).collect();
    let range = (ids.first().copied().unwrap_or(0), ids.last().copied().unwrap_or(0).saturating_add(1));
    let x = |id: i64| on(id, range, 0.0, 1000.0);
    out.push_str("<div class=\"bar\"><svg viewBox=\"0 0 1000 14\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"visible\">");
    if let Some(from) = version.visible_from {
        let to = version.visible_to.unwrap_or(range.1.saturating_sub(1)).saturating_add(1);
        let _ = write!(
            out,
            "<rect x=\"{:.1}\" y=\"2\" width=\"{:.1}\" height=\"10\" fill=\"var(--c2)\"><title>seen from {from} to {}</title></rect>",
            x(from),
            (x(to) - x(from)).max(3.0),
            version.visible_to.map_or("now".to_string(), |to| to.to_string())
        );
    } else if let Some(commit) = &version.commit {
        let _ = write!(
            out,
            "<rect x=\"{:.1}\" y=\"2\" width=\"6\" height=\"10\" fill=\"var(--c7)\"><title>never seen</title></rect>",
            x(commit.snapshot)
        );
    }
    if let Some(pin) = pin {
        let at = (x(pin) + x(pin.saturating_add(1))) / 2.0;
        let _ = write!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"14\" stroke=\"var(--pin)\" stroke-width=\"3\"/>"
        );
    }
    out.push_str("</svg></div>");
}
