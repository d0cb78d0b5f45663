//! Pins and what becomes of them, in Chinese.

use std::fmt::Write as _;

use super::notices::reference;
use super::{Language, advice};
use crate::sql::{BATCH, END_OF_INPUT, Hold, Outlook, OutlookEnd, PinLine, PinNote, Reason};

/// The line of a pin in a language.
pub fn pin(line: &PinLine, language: Language) -> String {
    match language {
        Language::En => line.text.clone(),
        Language::Zh => chinese(line),
    }
}

fn chinese(line: &PinLine) -> String {
    let details = &line.details;
    let mut text = line.table.clone();
    let found_at = details.found_at.as_ref();
    // writing to a String cannot fail
    let _ = match (line.changes_after, line.snapshot_id, found_at) {
        (_, None, _) => write!(text, " 还没有快照，按空表读取"),
        (Some(after), Some(id), None) => write!(text, " @ 快照 {after} 之后到快照 {id} 的变更"),
        (Some(after), Some(id), Some(found)) => {
            let found = chinese(found);
            let place = found.strip_prefix(&line.table).map_or(found.as_str(), |rest| rest.trim_start_matches(" @"));
            write!(text, " @ 快照 {after} 之后到快照 {id} 的变更，由此找到：{}", place.trim_start())
        }
        (None, Some(id), _) => write!(text, " @ 快照 {id}"),
    };
    if found_at.is_some() {
        return text;
    }
    if line.snapshot_id.is_some() {
        let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "无".to_string());
        // as COMMIT => (…) takes it
        let identifier = match line.identifier {
            Some(BATCH) => "batch（批作业）".to_string(),
            number => number.map(|number| number.to_string()).unwrap_or_default(),
        };
        let watermark = match line.watermark {
            Some(END_OF_INPUT) => "输入已结束".to_string(),
            _ => said(&details.watermark_time),
        };
        let _ = write!(
            text,
            "，提交于 {}，{}，提交者 '{}'，提交号 {identifier}，水位 {watermark}，模式 {}",
            said(&details.commit_time),
            line.kind.as_deref().unwrap_or_default(),
            line.user.as_deref().unwrap_or_default(),
            details.written_schema_id
        );
    }
    if details.written_schema_id != line.schema_id {
        let _ = write!(text, "，按模式 {} 读取", line.schema_id);
    } else if line.schema_id != details.latest_schema_id {
        let _ = write!(text, "（最新模式 {}）", details.latest_schema_id);
    }
    if let Some(tag) = &line.tag {
        let _ = write!(text, "，标签 '{tag}'");
    }
    for (role, other) in [("缺少的分区取自后备分支", &details.fallback), ("优先读取主分支", &details.primary)]
    {
        if let Some(other) = other {
            let _ = write!(text, "；{role}：{}", chinese(other));
        }
    }
    if let Some(outlook) = &details.outlook {
        text.push_str(&of_outlook(outlook));
    }
    text
}

fn of_outlook(outlook: &Outlook) -> String {
    let added = outlook.added_records.map(|added| format!("，本次提交 {added:+} 条记录")).unwrap_or_default();
    let end = match &outlook.end {
        OutlookEnd::NextCommit => "，下次提交时可能过期".to_string(),
        OutlookEnd::About(time) => format!("，约在 {time} 可能过期"),
        OutlookEnd::HeldBy(holds) => {
            let holds: Vec<String> = holds.iter().map(|one| hold(one, Language::Zh)).collect();
            format!("，因{}而保留", holds.join("、"))
        }
        OutlookEnd::NotKnown => String::new(),
    };
    format!("{added}{end}")
}

/// What keeps a snapshot, in a language.
pub fn hold(hold: &Hold, language: Language) -> String {
    match (language, hold) {
        (Language::En, hold) => hold.to_string(),
        (Language::Zh, Hold::Tag(name)) => format!("标签 {name}"),
        (Language::Zh, Hold::Consumer(name)) => format!("消费者 {name}"),
        (Language::Zh, Hold::Newest(count)) => format!("属最新 {count} 个"),
    }
}

/// More about a pin of the session, in a language; None when there is nothing to say.
pub fn note(note: &PinNote, language: Language) -> Option<String> {
    match (language, note) {
        (Language::En, note) => note.text(),
        (Language::Zh, PinNote::Gone(error)) => Some(format!("{}（{}）", advice(error), error.message())),
        (Language::Zh, PinNote::Forecast(reasons)) if reasons.is_empty() => None,
        (Language::Zh, PinNote::Forecast(reasons)) => {
            Some(reasons.iter().map(of_reason).collect::<Vec<_>>().join("；"))
        }
    }
}

fn of_reason(reason: &Reason) -> String {
    match reason {
        Reason::NoSnapshot => "表还没有快照".to_string(),
        Reason::NotKept => "该快照已不再保留".to_string(),
        Reason::Tag(name) => format!("标签 '{name}' 持有它，直到有人删除该标签"),
        Reason::TagsExpire => "等它的标签过期".to_string(),
        Reason::Consumer => "消费者读过它之前一直保留".to_string(),
        Reason::Commits { needed, quiet } => {
            let why = if *quiet { "但很久没有提交了" } else { "但提交的频率未知" };
            format!("再有 {needed} 次提交之后可能过期，{why}")
        }
        Reason::WriteOnly => "前提是另有作业清理快照：写入作业不清理（write-only）".to_string(),
        Reason::Options(what) => format!("保留快照的选项读不懂：{what}"),
        Reason::Unread(all) => {
            let of = |(what, names): &(&str, Vec<String>)| format!("{} '{}'", reference(what), names.join("', '"));
            let unread: Vec<String> = all.iter().map(of).collect();
            format!("{} 读不了：实际可能保留得更久", unread.join("、"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn line() -> PinLine {
        let mut line = PinLine {
            table: "pay.t".into(),
            snapshot_id: Some(7),
            commit_time_millis: Some(0),
            user: Some("flink".into()),
            identifier: Some(i64::MAX),
            kind: Some("APPEND".into()),
            watermark: None,
            schema_id: 1,
            tag: Some("eod".into()),
            session: false,
            changes_after: None,
            text: "as it is".into(),
            details: Box::default(),
        };
        line.details.commit_time = Some("1970-01-01 00:00:00.000 UTC (0 ms)".into());
        line
    }

    #[test]
    fn lines_of_pins_are_told_in_chinese() {
        let told = |line: &PinLine| pin(line, Language::Zh);
        let mut line = line();
        let rest = "，提交于 1970-01-01 00:00:00.000 UTC (0 ms)，APPEND，提交者 'flink'，提交号 batch（批作业），水位 无，模式 0，按模式 1 \
                    读取，标签 'eod'";
        assert_eq!(told(&line), format!("pay.t @ 快照 7{rest}"));
        assert_eq!(pin(&line, Language::En), "as it is");
        let held = Outlook { added_records: Some(-3), end: OutlookEnd::HeldBy(vec![Hold::Newest(10)]) };
        line.details.outlook = Some(held);
        assert_eq!(told(&line), format!("pay.t @ 快照 7{rest}，本次提交 -3 条记录，因属最新 10 个而保留"));
        line.details.outlook = None;
        let changes = PinLine { changes_after: Some(4), ..line.clone() };
        assert_eq!(told(&changes), format!("pay.t @ 快照 4 之后到快照 7 的变更{rest}"));
        let mut lost = changes.clone();
        lost.details.found_at = Some(PinLine { snapshot_id: Some(9), ..line.clone() });
        assert_eq!(told(&lost), format!("pay.t @ 快照 4 之后到快照 7 的变更，由此找到：快照 9{rest}"));
        line.details.written_schema_id = 1;
        line.details.latest_schema_id = 1;
        let empty = PinLine { snapshot_id: None, tag: None, ..line.clone() };
        assert_eq!(told(&empty), "pay.t 还没有快照，按空表读取");
        line.details.fallback = Some(empty);
        assert!(told(&line).ends_with("；缺少的分区取自后备分支：pay.t 还没有快照，按空表读取"), "{}", told(&line));
    }

    #[test]
    fn notes_of_pins_are_told_in_chinese() {
        let reasons = vec![
            Reason::Commits { needed: 3, quiet: true },
            Reason::Unread(vec![("tag", vec!["a".to_string(), "b".to_string()])]),
        ];
        let told = note(&PinNote::Forecast(reasons), Language::Zh);
        let zh = "再有 3 次提交之后可能过期，但很久没有提交了；标签 'a', 'b' 读不了：实际可能保留得更久";
        assert_eq!(told.as_deref(), Some(zh));
        assert_eq!(note(&PinNote::Forecast(Vec::new()), Language::Zh), None);
        let gone = PinNote::Gone(Error::not_found("it is gone").with_code("PinLost"));
        assert!(note(&gone, Language::Zh).is_some_and(|told| told.starts_with("固定的快照已被回滚或替换")));
    }
}
