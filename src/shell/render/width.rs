//! Text in display cells: measured by grapheme cluster, control characters made visible, long text cut with its size.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Display cells of a text without control characters.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(cluster_width).sum() }
}

fn cluster_width(cluster: &str) -> usize {
    // a cluster is drawn as one glyph: never wider than two cells
    UnicodeWidthStr::width(cluster).min(2)
}

/// Control characters, those that turn the writing direction and those that nobody sees become visible escapes.
pub fn escaped(text: &str) -> String {
    if text.chars().all(harmless) {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if harmless(c) => out.push(c),
            c if u32::from(c) < 0x100 => drop(write!(out, "\\x{:02x}", u32::from(c))),
            c => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    out
}

/// [`escaped`] line by line: line feeds and tabs stay, as texts of several lines and tables of tabs have them.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped_by(text, |c, out| out.push_str(&escaped(c.encode_utf8(&mut [0; 4]))))
}

/// The same in JSON, which stays the JSON it was.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    escaped_by(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn escaped_by(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let harmless = |c: char| harmless(c) || matches!(c, '\n' | '\t');
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if harmless(c) { out.push(c) } else { escape(c, &mut out) }
    }
    Cow::Owned(out)
}

/// Whether a terminal shows a character and does nothing else with it.
fn harmless(c: char) -> bool {
    !c.is_control() && !turns_direction(c) && !is_invisible(c)
}

/// What takes no cell and joins nothing: two texts that differ by it look alike.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
    )
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// The text escaped, and cut when it is wider than `limit` cells (0: never): `start…(+1.2 kB)`.
pub fn fitted(text: &str, limit: usize) -> String {
    if limit == 0 {
        return escaped(text);
    }
    // what cannot be shown need not be escaped: a cell may hold megabytes
    let longest = limit.saturating_mul(64).saturating_add(64);
    let bound = text.char_indices().nth(longest).map_or(text.len(), |(at, _)| at);
    let whole = escaped(text.get(..bound).unwrap_or(text));
    if bound == text.len() && width(&whole) <= limit {
        return whole;
    }
    let mut shown = String::new();
    let mut cells = 0;
    let mut used = 0;
    for cluster in text.get(..bound).unwrap_or(text).graphemes(true) {
        let visible = escaped(cluster);
        let wide = width(&visible);
        if cells + wide > limit {
            break;
        }
        cells += wide;
        used += cluster.len();
        shown.push_str(&visible);
    }
    let _ = write!(shown, "…(+{})", bytes(text.len() - used));
    shown
}

/// The beginning of a text that fits in `limit` cells with the mark that it goes on.
pub fn clipped(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut cells = 1;
    for cluster in text.graphemes(true) {
        cells += width(cluster);
        if cells > limit {
            break;
        }
        shown.push_str(cluster);
    }
    shown.push('…');
    shown
}

/// `812 B`, `1.2 kB`, `3.4 MB`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn bytes(count: usize) -> String {
    let mut value = count as f64;
    if count < 1000 {
        return format!("{count} B");
    }
    for unit in ["kB", "MB", "GB"] {
        value /= 1000.0;
        if value < 1000.0 {
            return format!("{value:.1} {unit}");
        }
    }
    format!("{:.1} TB", value / 1000.0)
}

/// A line cut between words where the terminal ends; what follows is set in.
pub fn wrapped(line: &str, columns: usize) -> String {
    const INDENT: &str = "     ";
    if width(line) <= columns || columns < 4 * INDENT.len() {
        return line.to_string();
    }
    let mut out = String::new();
    let mut used = 0;
    for (i, word) in line.split(' ').enumerate() {
        let wide = width(word);
        if i > 0 && used + 1 + wide > columns {
            out.push('\n');
            out.push_str(INDENT);
            used = INDENT.len();
        } else if i > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += wide;
    }
    out
}

/// Digits in groups of three: `59 986 012`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_counts_cells_not_characters() {
        for (text, cells) in [("abc", 3), ("订单", 4), ("👨‍👩‍👧", 2), ("e\u{301}", 1), ("", 0), ("ｱ", 1), ("🇨🇳", 2)]
        {
            assert_eq!(width(text), cells, "{text}");
        }
    }

    #[test]
    fn control_characters_are_visible() {
        assert_eq!(escaped("a\tb\nc\x1b[31m\u{202e}"), "a\\tb\\nc\\x1b[31m\\u{202e}");
    }

    #[test]
    fn what_nobody_sees_is_visible() {
        assert_eq!(escaped("a\u{200b}b\u{feff}\u{ad}\u{61c}"), "a\\u{200b}b\\u{feff}\\xad\\u{61c}");
        // what joins is part of what is seen
        assert_eq!(escaped("👨‍👩‍👧 نمی\u{200c}خواهم"), "👨‍👩‍👧 نمی\u{200c}خواهم");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(visible("a\tb\nc\r\x1b]0;x\x07\u{9b}"), "a\tb\nc\\r\\x1b]0;x\\x07\\x9b");
        assert_eq!(visible_json("{\"v\":\"\u{9b}\u{202e}\"}\n"), "{\"v\":\"\\u009b\\u202e\"}\n");
        assert!(matches!(visible("订单\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_cut_between_clusters_with_what_is_missing() {
        assert_eq!(fitted("abcdef", 6), "abcdef");
        assert_eq!(fitted("abcdefg", 6), "abcdef…(+1 B)");
        assert_eq!(fitted("订单订单", 5), "订单…(+6 B)");
        assert_eq!(fitted(&"x".repeat(1_000_000), 3), "xxx…(+1000.0 kB)");
        assert_eq!(fitted("abcdefg", 0), "abcdefg");
    }

    #[test]
    fn notes_are_cut_between_words() {
        assert_eq!(wrapped("pin: a b", 80), "pin: a b");
        assert_eq!(wrapped("pin: pay.orders @ snapshot 8, APPEND", 24), "pin: pay.orders @\n     snapshot 8, APPEND");
        assert_eq!(wrapped("a b", 2), "a b");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(59_986_012), "59 986 012");
        assert_eq!(grouped(12), "12");
    }
}
