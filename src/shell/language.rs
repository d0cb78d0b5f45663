//! The language of the shell's own words. Codes of errors, names of commands and what the warehouse holds stay as they
//! are, so scripts read either.

use clap::ValueEnum;

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

/// What to do about the errors that people meet most, in Chinese: the message itself names tables, files and numbers
/// and comes from below in English.
pub fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "Syntax" => "语法错误：^ 指出位置；\\? sql 列出时间旅行的写法",
        "Incomplete" => "语句没有写完：引号、括号或注释没有闭合",
        "TableNotFound" => "没有这个表：用 \\dt 查看表名，或写 库名.表名",
        "DatabaseNotFound" => "没有这个库：用 \\l 查看库名",
        "ColumnNotFound" => "没有这一列：用 \\d 表名 查看列名；大写或中文列名要加双引号；旧快照可能还没有这一列",
        "CatalogNotFound" => "没有这个目录：写 库名.表名，或用 paimon.库名.表名",
        "DuplicateName" => "同一个表用了两次：给每一处起一个别名，例如 FROM t a, t VERSION AS OF 3 b",
        "AmbiguousColumn" => "不清楚是哪个表的列：写成 别名.列名",
        "CannotTravel" => "这里不能时间旅行：把子句写在数据表后面",
        "FunctionNotFound" => "没有这个函数：检查函数名",
        "SnapshotNotFound" => "没有这个快照：用 \\ds 表名 查看保留的快照，用 \\dtag 表名 查看标签",
        "SnapshotExpired" => {
            "快照已过期，文件可能已被清理：换一个仍保留的快照，或读取持有它的标签；重要的快照请事先打标签"
        }
        "PinLost" => "固定的快照已被回滚或替换：用 \\pins 查看，再用 \\pin 重新固定",
        "TagNotFound" => "没有这个标签：用 \\dtag 表名 查看标签",
        "NoSnapshot" => "表还没有快照",
        "TimestampTooEarly" => "早于最早保留的快照：换一个更晚的时间，或使用标签",
        "AmbiguousTimestamp" => "裸数字不能当时间：写成带引号的时间，例如 '2026-04-16 10:00:00'",
        "BadTimestamp" | "InvalidTimestamp" => {
            "时间写法不对：例如 '2026-04-16 10:00:00' 或 '2026-04-16T10:00:00+08:00'"
        }
        "WatermarkNotReached" => "水位还没有到：稍后再试，或换一个更早的水位",
        "CommitNotFound" => "没有找到这次提交：用 \\ds 表名 查看提交者和提交号",
        "DataFileMissing" | "FileLost" => "数据文件丢失：结果不完整，没有返回；检查清理任务，或换一个仍保留的快照",
        "DataFileCorrupt" => "数据文件损坏：错误里有文件名，请修复或从备份恢复",
        "ReadOnly" => "只读：这里不能写入仓库",
        "NotYet" => "这个功能以后才有",
        "Timeout" => "超时已取消：用 --timeout 或 \\timeout 放宽，或减少读取量",
        "ResourcesExhausted" => "内存不够：用 --memory 放宽，或加过滤条件",
        "TooManyFiles" | "TooManyBytes" => "超过读取上限，尚未读取任何数据：加分区或主键过滤，或放宽上限",
        "Interrupted" => "已用 Ctrl-C 取消，结果不完整",
        "WarehouseNotFound" | "NotAWarehouse" => "仓库路径不对：检查 -w 或 LAKEPIN_WAREHOUSE",
        "FileNotFound" => "没有这个文件：检查路径",
        "UnknownCommand" => "没有这个命令：\\? 列出所有命令",
        "UnknownVariable" => "没有这个变量：用 -v 名字=值 给出",
        "ParameterMissing" => "参数没有值：用 --param 名字=值 或 \\param 名字 值 给出",
        "UnknownTimeZone" => "没有这个时区：例如 +08:00 或 Asia/Shanghai",
        "UnknownOption" | "InvalidOption" | "BadOption" => "选项不对：检查名字和取值",
        "NotPinned" => "这个表没有固定：用 \\pins 查看",
        "AssertionFailed" => "断言不成立",
        "AccountingViolation" => "行数核对不平：元数据与文件不一致，请保留现场",
        "Storage" => "存储没有响应：稍后重试，或检查网络与权限",
        "NewerFormat" => "表的格式版本比本程序新：请升级",
        "Output" | "OutputFile" => "无法写出结果：检查磁盘空间和权限",
        _ => return None,
    })
}

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
