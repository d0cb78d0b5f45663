//! Rules that decided about files, in Chinese.

use super::Language;
use super::notices::hidden;
use crate::sql::Rule;

/// Why a file is read as it is, or not at all, in a language.
pub fn rule(rule: &Rule, language: Language) -> String {
    match language {
        Language::En => rule.to_string(),
        Language::Zh => chinese(rule),
    }
}

fn chinese(rule: &Rule) -> String {
    match rule {
        Rule::Partition(condition) => format!("分区不满足 {condition}"),
        Rule::OtherBranch => "这个分区取自另一分支".to_string(),
        Rule::SameRows => "比较的另一边有同样的行".to_string(),
        Rule::Hidden(which) => hidden(*which).to_string(),
        Rule::BelowTop(level) => format!("不在最高层 {level}（$ro）"),
        Rule::BucketOption(bucket) => format!("选项 scan.bucket = {bucket}"),
        Rule::NoKey => "这个分区里没有主键满足过滤条件".to_string(),
        Rule::OtherBuckets { buckets, total } => {
            let buckets: Vec<String> = buckets.iter().map(i32::to_string).collect();
            format!("过滤条件里的主键在桶 {}（共 {total} 桶）", buckets.join(", "))
        }
        Rule::OtherColumns => "只存放没有查询的列".to_string(),
        Rule::Keys(condition) => format!("主键统计排除了 {condition}"),
        Rule::Values(condition) => format!("列统计排除了 {condition}"),
        Rule::ValuesTogether(condition) => format!("主键重叠的所有文件，列统计都排除了 {condition}"),
        Rule::FileIndex => "文件索引里没有满足过滤条件的行".to_string(),
        Rule::AllDeleted => "删除向量删除了全部行".to_string(),
        Rule::Limit => "不读它也已达到 LIMIT".to_string(),
        Rule::NoRowNeeded => "查询用不到这个表的行：条件互相排斥，或不要任何行".to_string(),
        Rule::NotNeeded => "用不到".to_string(),
        Rule::Remembered => "之前的语句已查明其有效行，查询只需这些，文件不打开".to_string(),
        Rule::Told => "元数据已说明查询所需，文件不打开".to_string(),
        Rule::Changes => "变更按写入的样子读取".to_string(),
        Rule::Append => "追加表按写入的样子读取".to_string(),
        Rule::Alone => "没有别的文件含它的主键，也没有删除行".to_string(),
        Rule::AloneWithKinds => "没有别的文件含它的主键；可能有删除行，要看行的种类".to_string(),
        Rule::FirstRows => "first-row 表合并过的各层里，主键不会重复".to_string(),
        Rule::VectorsHide => "删除向量已隐去这些主键的旧版本".to_string(),
        Rule::SharedKeys { files, runs } => format!("{files} 个文件（{runs} 个有序段）主键重叠，要合并"),
    }
}
