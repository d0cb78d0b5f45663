//! The language of the shell's own words. Codes of errors, names of commands and what the warehouse holds stay as they
//! are, so scripts read either.

mod advice;
mod notices;
mod pins;
mod rules;

use clap::ValueEnum;

pub use advice::advice;
pub use notices::notice;
pub use pins::{hold, note, pin};
pub use rules::rule;

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

/// What a statement without rows answers, in a language.
pub fn done(word: &str, language: Language) -> String {
    if language == Language::En {
        return word.to_string();
    }
    let (what, name) = word.split_once(' ').unwrap_or((word, ""));
    let name = match name {
        "TABLE" => "表",
        "VIEW" => "视图",
        "SCHEMA" => "库",
        "EXTERNAL TABLE" => "外部表",
        "FUNCTION" => "函数",
        other => other,
    };
    match (what, name) {
        ("PIN", "") => "已固定".to_string(),
        ("UNPIN", "") => "已取消固定".to_string(),
        ("SET", "") => "已设置".to_string(),
        ("RESET", "") => "已恢复默认".to_string(),
        ("USE", "") => "已切换".to_string(),
        ("PREPARE", "") => "已预备".to_string(),
        ("DEALLOCATE", "") => "预备语句已删除".to_string(),
        ("CREATE", what) => format!("已创建{what}"),
        ("DROP", what) => format!("已删除{what}"),
        _ => word.to_string(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_done_statements_are_told_in_chinese() {
        let told = ["PIN", "SET", "CREATE VIEW", "CREATE EXTERNAL TABLE", "DROP TABLE", "EXPORT"];
        assert_eq!(
            told.map(|word| done(word, Language::Zh)),
            ["已固定", "已设置", "已创建视图", "已创建外部表", "已删除表", "EXPORT"]
        );
        assert_eq!(told.map(|word| done(word, Language::En)), told);
    }

    #[test]
    fn sentences_keep_their_values_in_both_languages() {
        let told = |language| told!(language, "{n} rows of {t}", "{t} 的 {n} 行", n = 3, t = "pay");
        assert_eq!(told(Language::En), "3 rows of pay");
        assert_eq!(told(Language::Zh), "pay 的 3 行");
    }
}
