//! Notices in Chinese.

use super::Language;
use crate::notice::{HiddenRows, Notice, NoticeKind};

/// A notice in a language.
pub fn notice(notice: &Notice, language: Language) -> String {
    match language {
        Language::En => notice.to_string(),
        Language::Zh => chinese(notice.kind()),
    }
}

fn chinese(kind: &NoticeKind) -> String {
    match kind {
        NoticeKind::StaleHint { table, hinted, newest } => {
            format!("{table} 的 LATEST 提示文件指向快照 {hinted}，但该快照不存在；已改为列目录，读最新的快照 {newest}")
        }
        NoticeKind::NewestUnreadable { table, torn, read, why } => {
            format!("{table} 最新的快照 {torn} 读不出来（{why}）；这里说的是能读出的最新快照 {read} 的情况")
        }
        NoticeKind::BranchByOption { branch } => format!("表选项 branch 指向分支 '{branch}'，读的是这个分支"),
        NoticeKind::TagOfThatNumber { table, id, held } => format!(
            "读的是快照 {id}；另有同名标签 '{id}'，持有快照 {held}：要读标签请写 VERSION AS OF '{id}' 或 {table}@tag:{id}"
        ),
        NoticeKind::SnapshotOfThatNumber { table, tag, held, id } => format!(
            "读的是标签 '{tag}'，持有快照 {held}；另有快照 {id}：要读快照请写 VERSION AS OF {id} 或 {table}@v{id}"
        ),
        NoticeKind::TimesNotInOrder { before, before_time, chosen, chosen_time } => format!(
            "提交时间不是递增的：快照 {before}（提交于 {before_time}）排在所选快照 {chosen}（提交于 {chosen_time}）之前"
        ),
        NoticeKind::WatermarkInSeconds { asked, asked_time, found_time, millis } => format!(
            "水位 {asked} 是 {asked_time}，比最先达到的水位 {found_time} 早几十年：水位以毫秒计，若写的是秒，应写 {millis}"
        ),
        NoticeKind::NoFullCompaction => "没有保留任何全量合并（full compaction）的快照：读的是最新快照".to_string(),
        NoticeKind::DefaultValue { option, column } => {
            format!("选项 '{option}' 不起作用：列 '{column}' 的 NULL 仍是 NULL，与现在的 Paimon 一致")
        }
        NoticeKind::UnreadableFilesFail { option } => format!("选项 '{option}' 不起作用：读不了的文件会报错，不会跳过"),
        NoticeKind::Hidden { which, files, rows } => {
            format!("{}：{files} 个文件、{rows} 行没有读取", hidden(*which))
        }
        NoticeKind::BucketOption { table, bucket, buckets, files, rows } => format!(
            "{table}：选项 'scan.bucket' = '{bucket}' 只读这一个桶：其他 {buckets} 个桶的 {files} 个文件、{rows} 行没有读取"
        ),
        NoticeKind::OtherBranchRows { table, branch, rows, unread } => {
            let left = match unread {
                0 => String::new(),
                rows => format!("；快照中有 {rows} 行没有读取，因为这些分区由 '{branch}' 提供"),
            };
            format!("{table}：有 {rows} 行来自分支 '{branch}'，快照里的行数没有计入{left}")
        }
        NoticeKind::VectorsNotKnown { table, why } => {
            format!("{table}：有没有行被不起作用的删除向量标记，无法确定：{why}")
        }
        NoticeKind::VectorsNotApplied { table, rows, exact, files } => {
            let least = if *exact { "" } else { "至少 " };
            format!(
                "{table}：deletion-vectors.enabled 现为 false，删除向量不起作用，已删除的行会被读出（{files} 个文件、\
                 {least}{rows} 行）"
            )
        }
        NoticeKind::StrayVectors { table, file, more } => {
            let others = if *more > 0 { format!(" 等 {} 个文件", more + 1) } else { String::new() };
            format!("{table}：有删除向量指向不存在的文件（{file}{others}）；若是文件名损坏，已删除的行会被读出")
        }
        NoticeKind::EmptyIndexManifest { table, file } => {
            format!("{table}：索引清单 {file} 没有列出任何删除向量；若文件被截断，已删除的行会被读出")
        }
        NoticeKind::UntypedVectors { table, file } => {
            format!("{table}：索引文件 {file} 列有删除向量，但类型不是 DELETION_VECTORS，不起作用")
        }
        NoticeKind::LeftOut { database, name, why } => {
            let what = if *database { "库 " } else { "" };
            format!("{what}{name} 读不了，没有列出：{why}")
        }
        NoticeKind::ForeignHint { hint } => format!("提示 /*{hint}*/ 在这里没有意义，已忽略"),
        NoticeKind::IdleOption { option } => format!("选项 {option} 对读取结果没有影响"),
        NoticeKind::NoChangelog { table } => {
            format!("{table} 不写变更日志（changelog-producer 为 none）；用 paimon_delta 读各次提交写入的行")
        }
        NoticeKind::HistoryBegins { table, snapshot, time } => format!(
            "{table} 的历史从快照 {snapshot}（提交于 {time}）开始：此前已被合并掉的版本不再存在；同一次刷写内合并的版本从未成为行"
        ),
        NoticeKind::CommitsNotRead { table, snapshots } => {
            let ids: Vec<String> = snapshots.iter().map(ToString::to_string).collect();
            format!("读不到 {table} 的快照 {} 的变更，可能缺少版本", ids.join(", "))
        }
        NoticeKind::FilesNotRead { table, files, more, why } => {
            let more = if *more > 0 { format!("，另有 {more} 个") } else { String::new() };
            format!("{table} 可能含有该键的文件读不到，缺少其中的版本：{}{more}（{why}）", files.join(", "))
        }
        NoticeKind::OneBranchOnly { table, branch } => {
            format!("{table} 由另一个分支补全，这里没有查看那个分支：这是分支 '{branch}' 的历史")
        }
        NoticeKind::SchemaChanged { before, after, read_with } => {
            format!("两个快照之间改过表结构（模式 {before} 和 {after}）：两边都按模式 {read_with} 读取")
        }
        NoticeKind::LoneColumns { table, after, columns } => {
            let what = if *after { "在另一边为 NULL" } else { "没有比较" };
            format!("只有 {table} 有的列，{what}：{}", columns.join(", "))
        }
        NoticeKind::UnorderedElements { columns } => {
            format!("collect 和 nested_update 不保证元素的顺序，这些列比较时不看顺序：{}", columns.join(", "))
        }
        NoticeKind::MapOrder => {
            "这里按键值对的先后分组和比较 MAP，同一个 MAP 若写成两种顺序会算作两个；paimon_diff 按集合比较".to_string()
        }
        NoticeKind::AlsoChosen { name, value } => {
            let (name, value) = (name.replace('\'', "''"), value.replace('\'', "''"));
            format!("SET '{name}' = '{value}' 也在起作用；RESET '{name}' 取消")
        }
        NoticeKind::PartlyFromMetadata { unopened, files, verified } => {
            format!("结果部分来自元数据，{files} 个数据文件中有 {unopened} 个没有打开；{}", existence(*verified))
        }
        NoticeKind::FromMetadata { remembered: 0, verified } => {
            format!("结果来自元数据，没有打开数据文件；{}", existence(*verified))
        }
        NoticeKind::FromMetadata { remembered, verified } => format!(
            "结果来自元数据，以及之前的语句已查明的 {remembered} 个数据文件的有效行；没有打开数据文件；{}",
            existence(*verified)
        ),
        NoticeKind::OfNow { table, pinned: Some(id) } => format!("{table} 说的是现在，不是固定的快照 {id}"),
        NoticeKind::OfNow { table, pinned: None } => format!("{table} 说的是现在，不是固定的状态"),
        NoticeKind::AlignedBefore { table, user, wanted, found } => {
            format!("{table}：没有 '{user}' 的 {wanted} 的快照，固定在之前的 {found}")
        }
        NoticeKind::SeveralRaiseWatermark { table, users } => format!(
            "{table}：水位线由 {} 共同推进：最快的会掩盖其他的，不能证明它们到位；请同时等待它们的提交",
            users.join("、")
        ),
        NoticeKind::JournalFailed { why } => format!("语句读取了什么未能记入日志：{why}"),
        NoticeKind::JournalCut { unread, cut } => {
            let older = if *cut { "，且省略了更早的记录" } else { "" };
            format!("读取日志不完整：{unread} 行无法识别{older}")
        }
        NoticeKind::PartsUnread { table, parts } => {
            format!("{table}：这些读不了，它们的内容不在结果里：{}", parts.join("、"))
        }
        NoticeKind::Unreadable { table, what, names, folder } => {
            let files: Vec<String> = names.iter().map(|name| format!("{folder}/{what}-{name}")).collect();
            let (names, files) = (names.join("', '"), files.join("、"));
            let way_out = match *what {
                "consumer" => "由它的读者重写，或删除这个文件",
                _ => "重建它，或删除这个文件",
            };
            format!("{table}：{} '{names}' 读不了：{files}；{way_out}", reference(what))
        }
        NoticeKind::SeveralStates { table, snapshots } => {
            let ids: Vec<String> = snapshots.iter().map(i64::to_string).collect();
            format!("{table} 读了几个快照（{}），没有固定；用 PIN TABLE 指明哪一个", ids.join(", "))
        }
        NoticeKind::PinnedEmpty { table } => format!("{table} 没有快照，也就没有过去的状态：按空表固定"),
        NoticeKind::ExpiresSoon { table, snapshot, about } => {
            let when = match about {
                Some(time) => format!("约在 {time}"),
                None => "在下次提交时".to_string(),
            };
            format!("{table} 的快照 {snapshot} 可能{when}过期：请在写入一侧给它打标签，或固定更新的快照")
        }
        NoticeKind::ColumnRows { rows } => {
            format!("有 {rows} 行所在的文件只存放其他文件的行的部分列，这里没有计入；快照里的行数计入了它们")
        }
        NoticeKind::RejectedCommits { table, lists: 0 } => {
            format!("最终被拒绝的提交不在任何快照里，也不在此列；它们可能留下的文件见 {table}$unreferenced_files")
        }
        NoticeKind::RejectedCommits { table, lists } => format!(
            "最终被拒绝的提交不在任何快照里，也不在此列；有 {lists} 个不属于任何快照的 manifest list 可能来自它们，见 \
             {table}$unreferenced_files"
        ),
        NoticeKind::NewestStates { tables } => format!(
            "满足其余条件的最旧状态下 QUERY 不成立，因此取 {} 的最新状态：同样的条件下次可能得到更新的快照",
            tables.join("、")
        ),
        NoticeKind::ExpiringRows { table, after } => {
            format!("{table} 的 record-level.expire-time 为 {after}：已过期的记录在合并清除之前仍可能计入")
        }
        NoticeKind::Own(text) => text.clone(),
    }
}

/// Whether files that were not opened are there.
fn existence(verified: bool) -> &'static str {
    match verified {
        true => "这些文件都在（lakepin.verify_files）",
        false => "SET lakepin.verify_files = true 会检查文件是否存在",
    }
}

/// Why rows are hidden.
pub fn hidden(which: HiddenRows) -> &'static str {
    match which {
        HiddenRows::PostponeBucket => "postpone 桶在合并之前不可见",
        HiddenRows::FirstRow => "first-row 表的第 0 层在合并之前不可见",
        HiddenRows::DeletionVectors => "第 0 层在合并之前不可见（deletion-vectors.enabled）",
    }
}

/// What files of a table are called.
pub fn reference(what: &str) -> &str {
    match what {
        "tag" => "标签",
        "consumer" => "消费者",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_keep_their_figures_in_both_languages() {
        let of = |which, files, rows| Notice::from(NoticeKind::Hidden { which, files, rows });
        let told = of(HiddenRows::DeletionVectors, 2, 12);
        let en = "level 0 is hidden until it is compacted (deletion-vectors.enabled): 2 files, 12 rows not read";
        assert_eq!(notice(&told, Language::En), en);
        let zh = "第 0 层在合并之前不可见（deletion-vectors.enabled）：2 个文件、12 行没有读取";
        assert_eq!(notice(&told, Language::Zh), zh);
        let table = || "pay.t".to_string();
        let told = NoticeKind::VectorsNotApplied { table: table(), rows: 3, exact: true, files: 2 }.into();
        let zh = "pay.t：deletion-vectors.enabled 现为 false，删除向量不起作用，已删除的行会被读出（2 个文件、3 行）";
        assert_eq!(notice(&told, Language::Zh), zh);
        let told = NoticeKind::StaleHint { table: table(), hinted: 9, newest: 5 }.into();
        let zh = "pay.t 的 LATEST 提示文件指向快照 9，但该快照不存在；已改为列目录，读最新的快照 5";
        assert_eq!(notice(&told, Language::Zh), zh);
        let told = NoticeKind::ExpiresSoon { table: table(), snapshot: 3, about: None }.into();
        let zh = "pay.t 的快照 3 可能在下次提交时过期：请在写入一侧给它打标签，或固定更新的快照";
        assert_eq!(notice(&told, Language::Zh), zh);
    }
}
