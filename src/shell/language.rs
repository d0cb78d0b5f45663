//! The language of the shell's own words. Codes of errors, names of commands and what the warehouse holds stay as they
//! are, so scripts read either.

mod advice;

use clap::ValueEnum;

pub use advice::advice;

/// Which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// 中文
    Zh,
}

/// One text in every language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    en: &'static str,
    zh: &'static str,
}

impl Text {
    /// Nothing to say.
    pub const NONE: Self = same("");

    /// In a language.
    pub fn of(self, language: Language) -> &'static str {
        match language {
            Language::En => self.en,
            Language::Zh => self.zh,
        }
    }
}

/// A text in both.
pub const fn both(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// A text that is the same in both: examples, names.
pub const fn same(text: &'static str) -> Text {
    Text { en: text, zh: text }
}

/// `told!(language, "{n} rows", "{n} 行")`: the sentence in a language, values by name.
macro_rules! told {
    ($language:expr, $en:literal, $zh:literal $(, $name:ident = $value:expr)* $(,)?) => {
        match $language {
            $crate::shell::language::Language::En => format!($en $(, $name = $value)*),
            $crate::shell::language::Language::Zh => format!($zh $(, $name = $value)*),
        }
    };
}
pub(crate) use told;

/// What scans and answers say about their rows, in Chinese; the English sentence stays beside it when it is not known.
pub fn notice(text: &str, language: Language) -> String {
    if language == Language::En {
        return text.to_string();
    }
    const KNOWN: &[(&str, &str)] = &[
        (
            "answered from metadata, no data file was opened",
            "结果来自元数据，没有打开数据文件；SET lakepin.verify_files = true 会检查文件是否存在",
        ),
        ("READ-OPTIMISED", "只读最高层（$ro），较新的数据看不到"),
        ("the postpone bucket is hidden", "postpone 桶在合并之前不可见"),
    ];
    if let Some((figures, _)) = text.split_once(" deleted by vectors that are not applied")
        && let Some((table, figures)) = figures.split_once(": ")
    {
        let figures = figures.trim_end_matches(" is").trim_end_matches(" are");
        return format!(
            "{table}：deletion-vectors.enabled 现为 false，删除向量不起作用，已删除的行会被读出（{figures}）"
        );
    }
    let figures = text.rsplit_once(": ").map(|(_, figures)| figures).filter(|f| f.ends_with("not read"));
    let hidden = text.contains("level 0") && figures.is_some();
    let known = KNOWN.iter().find(|(start, _)| text.starts_with(start)).map(|(_, zh)| *zh);
    match (known.or(hidden.then_some("第 0 层在合并之前不可见")), figures) {
        (Some(zh), Some(figures)) => format!("{zh}（{figures}）"),
        (Some(zh), None) => zh.to_string(),
        (None, _) => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_keep_their_values_in_both_languages() {
        let told = |language| told!(language, "{n} rows of {t}", "{t} 的 {n} 行", n = 3, t = "pay");
        assert_eq!(told(Language::En), "3 rows of pay");
        assert_eq!(told(Language::Zh), "pay 的 3 行");
    }

    #[test]
    fn known_notices_are_told_in_chinese_with_their_figures() {
        let text = "level 0 is hidden until it is compacted: 3 files, 12 rows not read";
        assert_eq!(notice(text, Language::Zh), "第 0 层在合并之前不可见（3 files, 12 rows not read）");
        assert_eq!(notice(text, Language::En), text);
        assert_eq!(notice("something else: x", Language::Zh), "something else: x");
        let text = "pay.t: 3 rows of 2 files are deleted by vectors that are not applied, since …";
        let zh =
            "pay.t：deletion-vectors.enabled 现为 false，删除向量不起作用，已删除的行会被读出（3 rows of 2 files）";
        assert_eq!(notice(text, Language::Zh), zh);
    }
}
