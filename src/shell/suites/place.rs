//! Where warehouses lie, left out of plans and errors: it differs from machine to machine. Data is never touched.

use std::path::Path;

use url::Url;

/// What stands for the place of a warehouse.
const WORD: &str = "WAREHOUSE";

/// The places of the warehouses of a connection, as texts spell them.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// URLs and absolute paths, longest first.
    spelt: Vec<String>,
}

impl Places {
    /// Adds a warehouse by its path or URL.
    pub fn add(&mut self, url: &str) {
        let url = url.trim_end_matches('/');
        let mut spellings = vec![url.to_string()];
        let path = match url.strip_prefix("file://") {
            Some(path) => {
                spellings.push(path.to_string());
                Url::parse(url).ok().and_then(|url| url.to_file_path().ok())
            }
            None if url.contains("://") => None,
            None => std::path::absolute(Path::new(url)).ok(),
        };
        spellings.extend(path.map(|path| path.display().to_string()));
        // a relative path is a word like others
        spellings.retain(|spelt| spelt.contains("://") || (spelt.starts_with('/') && spelt.len() > 1));
        self.spelt.extend(spellings);
        self.spelt.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.spelt.dedup();
    }

    /// An error's text, without the places.
    pub fn hidden(&self, text: &str) -> String {
        self.spelt.iter().fold(text.to_string(), |text, spelt| replaced(&text, spelt, ends))
    }

    /// A line of a plan, without the places; DataFusion leaves out the first `/` of paths.
    pub fn hidden_in_plan(&self, line: &str) -> String {
        let rootless = self.spelt.iter().filter_map(|spelt| spelt.strip_prefix('/'));
        rootless.fold(self.hidden(line), |line, spelt| replaced(&line, spelt, |rest| rest.starts_with('/')))
    }
}

/// Whether a path ends where `rest` begins, or goes on with a part of its own.
fn ends(rest: &str) -> bool {
    let mut rest = rest.chars();
    match rest.next() {
        Some('.') => rest.next().is_none_or(|next| !is_of_name(next)),
        Some(next) => !is_of_name(next),
        None => true,
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '%' | '.')
}

/// `text` with [`WORD`] for every `spelt` that is not the end of a longer path and ends as `ends` says.
fn replaced(text: &str, spelt: &str, ends: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(spelt) {
        out.push_str(before);
        let begins = !out.chars().next_back().is_some_and(|last| is_of_name(last) || last == '/');
        out.push_str(if begins && ends(after) { WORD } else { spelt });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_paths_are_left_out() {
        let mut places = Places::default();
        places.add("file:///srv/my%20lake/");
        for (text, wanted) in [
            ("no table (warehouse: /srv/my lake)", "no table (warehouse: WAREHOUSE)"),
            ("file:///srv/my%20lake/db.db is torn", "WAREHOUSE/db.db is torn"),
            ("under /srv/my lake.", "under WAREHOUSE."),
            (
                "/srv/my lake.old and /srv/my lakes, /x/srv/my lake",
                "/srv/my lake.old and /srv/my lakes, /x/srv/my lake",
            ),
            ("my lake", "my lake"),
        ] {
            assert_eq!(places.hidden(text), wanted);
        }
        assert_eq!(places.hidden_in_plan("[[srv/my lake/a], [/srv/my lake/b]]"), "[[WAREHOUSE/a], [WAREHOUSE/b]]");
        assert_eq!(places.hidden_in_plan("name = srv/my lake"), "name = srv/my lake");
    }
}
