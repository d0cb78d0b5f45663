//! From `scan.*` options to a request.

use std::collections::BTreeMap;

use super::timestamp::parse_timestamp;
use super::travel::PinRequest;
use super::zone::SessionZone;
use crate::error::{Error, Result};
use crate::spec::options::{ScanOptions, is_position};

const FILE_CREATION: &str = "scan.file-creation-time-millis";

/// The options in force: the table's, overlaid with the caller's. A position the caller gives replaces all of the
/// table's; a request that is more than "latest" replaces both.
pub(super) fn options_in_force(
    of_table: &BTreeMap<String, String>,
    of_caller: &BTreeMap<String, String>,
    request: &PinRequest,
) -> BTreeMap<String, String> {
    let mut merged = of_table.clone();
    let caller_positions = of_caller.keys().any(|key| is_position(key));
    if caller_positions {
        remove_positions(&mut merged);
    }
    merged.extend(of_caller.iter().map(|(key, value)| (key.clone(), value.clone())));
    if *request != PinRequest::Latest {
        remove_positions(&mut merged);
    }
    merged
}

/// Takes out what says where a read starts.
pub(super) fn remove_positions(options: &mut BTreeMap<String, String>) {
    options.retain(|key, _| !is_position(key));
}

/// What `scan.mode` and the options beside it ask for.
pub(super) fn request_of(scan: &ScanOptions, zone: &SessionZone) -> Result<PinRequest> {
    let given = Given::of(scan, zone)?;
    match scan.mode.as_deref() {
        None | Some("default") => given.by_precedence(),
        Some(mode @ ("latest-full" | "latest" | "full")) => {
            given.none_for(mode)?;
            Ok(PinRequest::Latest)
        }
        Some(mode @ "compacted-full") => {
            given.none_for(mode)?;
            Ok(PinRequest::CompactedFull)
        }
        Some(mode @ "from-timestamp") => given.only(mode, &["scan.timestamp", "scan.timestamp-millis"]),
        Some(mode @ "from-snapshot") => {
            given.only(mode, &["scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"])
        }
        Some(mode @ "from-snapshot-full") => given.only(mode, &["scan.snapshot-id"]),
        Some(mode @ "from-creation-timestamp") => given.only(mode, &["scan.creation-time-millis"]),
        Some(mode) => Err(refused("scan.mode", &format!("mode '{mode}' is not read"), mode)),
    }
}

/// The positions that are given, in order of precedence.
struct Given {
    positions: Vec<(&'static str, PinRequest)>,
    file_creation: bool,
    incremental: Option<&'static str>,
}

impl Given {
    fn of(scan: &ScanOptions, zone: &SessionZone) -> Result<Self> {
        let mut positions = Vec::new();
        let mut add = |name: &'static str, request: Option<PinRequest>| {
            positions.extend(request.map(|request| (name, request)));
        };
        add("scan.timestamp-millis", scan.timestamp_millis.map(PinRequest::TimestampMillis));
        let written = scan.timestamp.as_deref().map(|text| parse_timestamp(text, zone)).transpose();
        let written = written.map_err(|e| e.with_context("option", "scan.timestamp"))?;
        add("scan.timestamp", written.map(PinRequest::TimestampMillis));
        add("scan.snapshot-id", scan.snapshot_id.map(PinRequest::SnapshotId));
        add("scan.tag-name", scan.tag_name.clone().map(PinRequest::Tag));
        add("scan.watermark", scan.watermark.map(PinRequest::Watermark));
        add("scan.version", scan.version.clone().map(PinRequest::Version));
        add("scan.creation-time-millis", scan.creation_time_millis.map(PinRequest::FromCreationTimestamp));
        let incremental = match (&scan.incremental_between, &scan.incremental_between_timestamp) {
            (Some(_), _) => Some("incremental-between"),
            (None, Some(_)) => Some("incremental-between-timestamp"),
            (None, None) => None,
        };
        Ok(Self { positions, file_creation: scan.file_creation_time_millis.is_some(), incremental })
    }

    /// Without a mode the first position decides; two of them are an error.
    fn by_precedence(self) -> Result<PinRequest> {
        let creation = |name: &str| name == "scan.creation-time-millis";
        let chosen: Vec<&(&str, PinRequest)> = self.positions.iter().filter(|(name, _)| !creation(name)).collect();
        if let [(first, _), (second, _), ..] = chosen.as_slice() {
            return Err(contradiction(first, second));
        }
        if let Some((_, request)) = chosen.first() {
            return Ok(request.clone());
        }
        if self.file_creation {
            return Err(refuse_file_creation(FILE_CREATION));
        }
        if let Some((_, request)) = self.positions.into_iter().next() {
            return Ok(request);
        }
        match self.incremental {
            Some(option) => Err(refused(option, "a read between two snapshots is not a read of one", "incremental")),
            None => Ok(PinRequest::Latest),
        }
    }

    /// The one position a mode needs.
    fn only(self, mode: &str, wanted: &[&str]) -> Result<PinRequest> {
        let others = self.positions.iter().map(|(name, _)| *name).filter(|name| !wanted.contains(name));
        if let Some(other) = others.chain(self.incremental).chain(self.file_creation_option()).next() {
            return Err(contradiction(&format!("scan.mode = {mode}"), other));
        }
        let mut positions = self.positions.into_iter();
        match (positions.next(), positions.next()) {
            (Some((first, _)), Some((second, _))) => Err(contradiction(first, second)),
            (Some((_, request)), None) => Ok(request),
            (None, _) => Err(Error::invalid(format!("scan.mode = {mode} needs {}", wanted.join(" or ")))
                .with_code("InvalidOption")
                .with_context("option", "scan.mode")),
        }
    }

    fn file_creation_option(&self) -> Option<&'static str> {
        self.file_creation.then_some(FILE_CREATION)
    }

    /// A mode that needs no position allows none.
    fn none_for(&self, mode: &str) -> Result<()> {
        let position = self.positions.first().map(|(name, _)| *name);
        match position.or(self.incremental).or(self.file_creation_option()) {
            Some(name) => Err(contradiction(&format!("scan.mode = {mode}"), name)),
            None => Ok(()),
        }
    }
}

fn contradiction(first: &str, second: &str) -> Error {
    Error::invalid(format!("options '{first}' and '{second}' exclude each other"))
        .with_code("InvalidOption")
        .with_context("option", second)
        .with_hint("keep one of them: a read starts from one place")
}

/// A mode whose result is only some of the files: a partial state that looks like a whole one.
pub(super) fn refuse_file_creation(option: &str) -> Error {
    refused(option, "reading only the files made since a time gives part of a table", "from-file-creation-time")
}

fn refused(option: &str, why: &str, mode: &str) -> Error {
    let hint = match mode {
        "latest-delta" | "incremental" => {
            "read changes with the table functions paimon_delta, paimon_changes and paimon_diff"
        }
        _ => "give scan.snapshot-id, scan.tag-name, scan.timestamp or scan.watermark",
    };
    Error::unsupported(why).with_code("UnsupportedOption").with_context("option", option).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::CoreOptions;

    fn request(pairs: &[(&str, &str)]) -> Result<PinRequest> {
        let options = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        request_of(&CoreOptions::parse(&options)?.scan, &SessionZone::parse("Asia/Shanghai").unwrap())
    }

    #[test]
    fn options_name_the_place_a_read_starts_from() {
        let tag = || PinRequest::Tag("t".to_string());
        for (options, wanted) in [
            (vec![], PinRequest::Latest),
            (vec![("scan.mode", "latest-full")], PinRequest::Latest),
            (vec![("scan.mode", "compacted-full")], PinRequest::CompactedFull),
            (vec![("scan.snapshot-id", "3")], PinRequest::SnapshotId(3)),
            (vec![("scan.mode", "from-snapshot"), ("scan.tag-name", "t")], tag()),
            (vec![("scan.mode", "from-snapshot-full"), ("scan.snapshot-id", "3")], PinRequest::SnapshotId(3)),
            (vec![("scan.timestamp-millis", "5")], PinRequest::TimestampMillis(5)),
            (vec![("scan.timestamp", "1970-01-01 08:00:01")], PinRequest::TimestampMillis(1000)),
            (vec![("scan.watermark", "9")], PinRequest::Watermark(9)),
            (vec![("scan.version", "x")], PinRequest::Version("x".to_string())),
            (vec![("scan.creation-time-millis", "7")], PinRequest::FromCreationTimestamp(7)),
        ] {
            assert_eq!(request(&options).unwrap(), wanted, "{options:?}");
        }
    }

    #[test]
    fn contradictions_and_partial_reads_are_refused_by_name() {
        for (options, code, word) in [
            (vec![("scan.snapshot-id", "3"), ("scan.tag-name", "t")], "InvalidOption", "scan.tag-name"),
            (vec![("scan.snapshot-id", "3"), ("scan.version", "t")], "InvalidOption", "scan.version"),
            (vec![("scan.mode", "latest-full"), ("scan.snapshot-id", "3")], "InvalidOption", "scan.snapshot-id"),
            (vec![("scan.mode", "latest-full"), (FILE_CREATION, "3")], "InvalidOption", FILE_CREATION),
            (vec![("scan.mode", "latest"), (FILE_CREATION, "3")], "InvalidOption", FILE_CREATION),
            (
                vec![("scan.mode", "from-snapshot"), ("scan.snapshot-id", "3"), (FILE_CREATION, "3")],
                "InvalidOption",
                FILE_CREATION,
            ),
            (vec![("scan.mode", "from-timestamp")], "InvalidOption", "needs scan.timestamp"),
            (vec![("scan.mode", "from-snapshot"), ("scan.timestamp-millis", "3")], "InvalidOption", "exclude"),
            (vec![("scan.mode", "latest-delta")], "UnsupportedOption", "paimon_delta"),
            (vec![("scan.mode", "from-file-creation-time")], "UnsupportedOption", "scan.mode"),
            (vec![("scan.file-creation-time-millis", "3")], "UnsupportedOption", "scan.file-creation-time-millis"),
            (vec![("incremental-between", "1,2")], "UnsupportedOption", "paimon_diff"),
            (vec![("scan.timestamp", "1678883047")], "AmbiguousTimestamp", "scan.timestamp"),
        ] {
            let error = request(&options).unwrap_err();
            assert_eq!(error.code(), code, "{options:?}: {error}");
            assert!(error.to_string().contains(word), "{options:?}: {error}");
        }
    }

    #[test]
    fn callers_position_replaces_the_tables() {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let of_table: BTreeMap<String, String> = map(&[("scan.snapshot-id", "3"), ("bucket", "1")]);
        let of_caller: BTreeMap<String, String> = map(&[("scan.tag-name", "t")]);
        let merged = options_in_force(&of_table, &of_caller, &PinRequest::Latest);
        assert_eq!(merged, map(&[("scan.tag-name", "t"), ("bucket", "1")]));
        let merged = options_in_force(&of_table, &of_caller, &PinRequest::SnapshotId(9));
        assert_eq!(merged, map(&[("bucket", "1")]));
        let merged = options_in_force(&of_table, &BTreeMap::new(), &PinRequest::Latest);
        assert_eq!(merged, of_table);
    }
}
