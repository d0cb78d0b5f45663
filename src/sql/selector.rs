//! Which state of a table a reference means, as said in a clause, a hint, a setting or a name such as `t@v3`.

use std::collections::BTreeMap;
use std::fmt;

use super::settings::{check_reference_options, rename_old};
use crate::error::{Error, Result};
use crate::snapshot::{PinRequest, SessionZone, parse_timestamp};
use crate::spec::CommitIdentifier;
use crate::spec::options::{chooses, choosing_options};

/// What a reference says: a selector, options, or nothing of both.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Selection {
    /// From a clause or a name; [`PinRequest::Latest`] when nothing was said.
    pub(crate) request: PinRequest,
    /// Options of the reference, over those of the session and the table.
    pub(crate) options: BTreeMap<String, String>,
}

impl Selection {
    /// Nothing said.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Whether the reference itself says which state it means.
    pub(crate) fn chooses(&self) -> bool {
        self.request != PinRequest::Latest
            || choosing(&self.options).is_some()
            || self.options.contains_key("scan.mode")
    }

    /// Checks that clause and options do not both choose: a mode beside a clause would have no effect.
    pub(crate) fn check(mut self) -> Result<Self> {
        rename_old(&mut self.options);
        check_reference_options(&self.options)?;
        let chosen: Vec<&str> = choosing_options().filter(|key| self.options.contains_key(*key)).collect();
        let conflict = |message: String| {
            Err(Error::invalid(message)
                .with_code("ConflictingSelectors")
                .with_hint("say it once; name the table twice to compare two versions"))
        };
        if let [first, second, ..] = chosen.as_slice() {
            return conflict(format!("options {first} and {second} exclude each other"));
        }
        let mode = self.options.contains_key("scan.mode").then_some("scan.mode");
        if self.request != PinRequest::Latest
            && let Some(option) = chosen.first().copied().or(mode)
        {
            return conflict(format!("the reference has a time travel clause and the option {option}"));
        }
        Ok(self)
    }

    /// The suffix behind `@` in the name of a reference; empty when nothing is said.
    pub(crate) fn suffix(&self) -> String {
        let mut text = match &self.request {
            PinRequest::SnapshotId(id) => format!("v{id}"),
            PinRequest::Tag(name) => format!("tag:{name}"),
            PinRequest::TimestampMillis(millis) => format!("ts{millis}"),
            PinRequest::Watermark(millis) | PinRequest::WatermarkTime(millis) => format!("wm{millis}"),
            PinRequest::Version(text) => format!("version:{text}"),
            PinRequest::Commit { user, identifier } => format!("commit:{user}:{}", CommitIdentifier(*identifier)),
            PinRequest::BeforeCommit { user, identifier } => format!("before:{user}:{}", CommitIdentifier(*identifier)),
            _ => String::new(),
        };
        if !self.options.is_empty() {
            let pairs: Vec<String> = self.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
            text.push_str(&format!("{{{}}}", pairs.join(", ")));
        }
        text
    }

    /// Reads the suffix a user wrote: `v3`, `ts1776304800000`, `ts:2026-04-16 10:00:00`, `wm…`, `tag:eod`,
    /// `commit:user:5`, `before:user:5`, `version:…`; anything else is a tag, `watermark-…` or digits.
    pub(crate) fn parse_suffix(text: &str, zone: &SessionZone) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(format!("'@{text}' is not {what}")).with_code("BadSelector").with_hint(
                "write t@v3, t@tag:eod, t@ts:2026-04-16T10:00:00+08:00, t@wm1776304800000 or t@commit:user:5",
            )
        };
        let digits = |prefix: &str| -> Option<i64> {
            let (start, rest) = text.split_at_checked(prefix.len())?;
            if !start.eq_ignore_ascii_case(prefix) {
                return None;
            }
            (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())).then(|| rest.parse().ok())?
        };
        let commit = |rest: &str| -> Result<(String, i64)> {
            let (user, identifier) = rest.rsplit_once(':').ok_or_else(|| wrong("commit:user:identifier"))?;
            let identifier = CommitIdentifier::parse(identifier).ok_or_else(|| wrong("commit:user:identifier"))?;
            Ok((user.to_string(), identifier.0))
        };
        let request = if let Some(id) = digits("v") {
            PinRequest::SnapshotId(id)
        } else if let Some(millis) = digits("ts") {
            PinRequest::TimestampMillis(millis)
        } else if let Some(millis) = digits("wm") {
            PinRequest::Watermark(millis)
        } else if let Some(time) = text.strip_prefix("ts:") {
            PinRequest::TimestampMillis(parse_timestamp(time, zone)?)
        } else if let Some(time) = text.strip_prefix("wm:") {
            PinRequest::WatermarkTime(parse_timestamp(time, zone)?)
        } else if let Some(name) = text.strip_prefix("tag:") {
            PinRequest::Tag(name.to_string())
        } else if let Some(rest) = text.strip_prefix("commit:") {
            let (user, identifier) = commit(rest)?;
            PinRequest::Commit { user, identifier }
        } else if let Some(rest) = text.strip_prefix("before:") {
            let (user, identifier) = commit(rest)?;
            PinRequest::BeforeCommit { user, identifier }
        } else if text.is_empty() {
            return Err(wrong("a version"));
        } else {
            PinRequest::Version(text.strip_prefix("version:").unwrap_or(text).to_string())
        };
        Ok(Self { request, options: BTreeMap::new() })
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.suffix())
    }
}

/// The option among these that chooses a snapshot or a range.
pub(crate) fn choosing(options: &BTreeMap<String, String>) -> Option<&'static str> {
    choosing_options().find(|key| options.contains_key(*key))
}

/// Checks that what a session set chooses once: which of two choices is the later one is not known.
pub(crate) fn one_choice(options: &BTreeMap<String, String>) -> Result<()> {
    let mut chosen = choosing_options().filter(|key| options.contains_key(*key));
    match (chosen.next(), chosen.next()) {
        (Some(first), Some(second)) => {
            Err(Error::invalid(format!("the session has set {first} and {second}, which exclude each other"))
                .with_code("ConflictingSelectors")
                .with_hint(format!("RESET 'paimon.{first}' or RESET 'paimon.{second}'; RESET paimon forgets both")))
        }
        _ => Ok(()),
    }
}

/// Removes what chooses a snapshot: something stronger has chosen.
pub(crate) fn drop_choices(options: &mut BTreeMap<String, String>) {
    options.retain(|key, _| !chooses(key));
}

/// What chooses a snapshot among these.
pub(crate) fn choices(options: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    options.iter().filter(|(key, _)| chooses(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> PinRequest {
        Selection::parse_suffix(text, &SessionZone::utc()).unwrap().request
    }

    #[test]
    fn names_say_versions_tags_and_commits() {
        assert_eq!(parsed("v3"), PinRequest::SnapshotId(3));
        assert_eq!(parsed("eod"), PinRequest::Version("eod".into()));
        assert_eq!(parsed("3"), PinRequest::Version("3".into()));
        assert_eq!(parsed("tag:v3"), PinRequest::Tag("v3".into()));
        assert_eq!(parsed("ts1000"), PinRequest::TimestampMillis(1000));
        assert_eq!(parsed("wm1000"), PinRequest::Watermark(1000));
        assert_eq!(parsed("commit:a:b:7"), PinRequest::Commit { user: "a:b".into(), identifier: 7 });
        assert_eq!(parsed("commit:a:Batch"), PinRequest::Commit { user: "a".into(), identifier: i64::MAX });
        assert_eq!(parsed("wm:1970-01-01 00:00:01"), PinRequest::WatermarkTime(1000));
        assert_eq!(parsed("very"), PinRequest::Version("very".into()));
        // unquoted names are written in any case, tags keep theirs
        assert_eq!((parsed("V3"), parsed("TS5")), (PinRequest::SnapshotId(3), PinRequest::TimestampMillis(5)));
        assert_eq!(parsed("EOD"), PinRequest::Version("EOD".into()));
        assert!(Selection::parse_suffix("", &SessionZone::utc()).is_err());
        assert!(Selection::parse_suffix("commit:x", &SessionZone::utc()).is_err());
    }

    #[test]
    fn a_suffix_is_read_as_it_is_written() {
        for text in ["v3", "tag:x", "ts5", "wm6", "version:x", "commit:u:1", "before:u:2", "commit:u:batch"] {
            let selection = Selection::parse_suffix(text, &SessionZone::utc()).unwrap();
            assert_eq!(selection.suffix(), text);
        }
    }

    #[test]
    fn two_ways_to_choose_exclude_each_other() {
        let options = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let both = Selection { request: PinRequest::SnapshotId(3), options: options(&[("scan.tag-name", "x")]) };
        assert_eq!(both.check().unwrap_err().code(), "ConflictingSelectors");
        let two = Selection {
            request: PinRequest::Latest,
            options: options(&[("scan.tag-name", "x"), ("incremental-between", "1,2")]),
        };
        assert_eq!(two.check().unwrap_err().code(), "ConflictingSelectors");
        let fine = Selection { request: PinRequest::SnapshotId(3), options: options(&[("scan.bucket", "1")]) };
        assert!(fine.check().is_ok());
        for mode in ["latest", "compacted-full", "from-timestamp", "latest-delta"] {
            let mode = Selection { request: PinRequest::SnapshotId(3), options: options(&[("scan.mode", mode)]) };
            assert_eq!(mode.check().unwrap_err().code(), "ConflictingSelectors");
        }
        let mode = options(&[("scan.mode", "from-snapshot"), ("scan.snapshot-id", "3")]);
        assert!(Selection { request: PinRequest::Latest, options: mode }.check().is_ok());
    }
}
