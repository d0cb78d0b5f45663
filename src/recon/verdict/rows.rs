//! The verdict as rows, for SQL.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::model::{CommitRef, KeyCase, Verdict};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Default)]
struct Line {
    part: &'static str,
    layer: Option<&'static str>,
    class: Option<String>,
    reason: Option<String>,
    key: Option<String>,
    findings: Option<u64>,
    commit: Option<CommitRef>,
    confidence: Option<&'static str>,
    text: String,
}

impl Verdict {
    /// The verdict as one document of JSON: members are those of [`Verdict`], in snake case.
    ///
    /// # Errors
    /// None but faults of ours.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|error| Error::internal("the verdict is no JSON").with_source(error))
    }

    /// Columns of [`Self::rows`], in an order that stays:
    ///
    /// | column | of `verdict` | of `cause` | of `key` | of `anomaly` | of `count`, `note`, `next`, `limit` |
    /// |---|---|---|---|---|---|
    /// | `part` | | | | | |
    /// | `layer` | the only one | | | | that of its cause |
    /// | `class` | the outcome | | the class | the detector | |
    /// | `reason` | | | | severity | |
    /// | `key` | | one of them | JSON object of texts | | |
    /// | `findings` | differences | looked at | | | |
    /// | `snapshot_id`, `commit_user`, `commit_identifier` | the pin | the first commit responsible | the same | | |
    /// | `confidence` | | | | | |
    /// | `text` | the line | | | | |
    pub fn schema() -> SchemaRef {
        let text = |name: &str, nullable: bool| Field::new(name, DataType::Utf8, nullable);
        let number = |name: &str| Field::new(name, DataType::Int64, true);
        Arc::new(Schema::new(vec![
            text("part", false),
            text("layer", true),
            text("class", true),
            text("reason", true),
            text("key", true),
            number("findings"),
            number("snapshot_id"),
            text("commit_user", true),
            text("commit_identifier", true),
            text("confidence", true),
            text("text", false),
        ]))
    }

    /// The verdict as rows: the answer, causes each with what to do next, the count, notes of the comparison, keys,
    /// anomalies, what is not determined.
    ///
    /// # Errors
    /// None but faults of ours.
    pub fn rows(&self) -> Result<RecordBatch> {
        let summary = &self.summary;
        let mut lines = vec![Line {
            part: "verdict",
            layer: summary.layer.map(|layer| layer.name()),
            class: Some(summary.outcome.clone()),
            findings: Some(summary.differences),
            commit: self.lake.as_ref().map(|lake| lake.at.clone()),
            text: summary.line.clone(),
            ..Line::default()
        }];
        for cause in &self.causes {
            let layer = cause.layer.map(|layer| layer.name());
            lines.push(Line {
                part: "cause",
                layer,
                reason: cause.reason.clone(),
                key: cause.proof.keys.first().cloned(),
                findings: Some(cause.findings),
                commit: cause.proof.commits.first().map(|(commit, _)| commit.clone()),
                confidence: Some(cause.confidence.as_str()),
                text: cause.text.clone(),
                ..Line::default()
            });
            lines.extend(cause.next.iter().map(|step| Line {
                part: "next",
                layer,
                text: step.clone(),
                ..Line::default()
            }));
        }
        lines.extend(self.count_test.iter().map(|test| Line {
            part: "count",
            layer: test.layer.map(|layer| layer.name()),
            findings: Some(test.theirs.abs_diff(test.ours)),
            confidence: Some(test.confidence.as_str()),
            text: test.text.clone(),
            ..Line::default()
        }));
        lines.extend(self.notes.iter().map(|note| Line { part: "note", text: note.clone(), ..Line::default() }));
        lines.extend(self.keys.iter().map(key));
        lines.extend(self.anomalies.iter().map(|anomaly| Line {
            part: "anomaly",
            layer: anomaly.layer.map(|layer| layer.name()),
            class: Some(anomaly.detector.clone()),
            reason: Some(anomaly.severity.clone()),
            confidence: Some(anomaly.confidence.as_str()),
            text: format!("{}; {}", anomaly.explanation, anomaly.evidence),
            ..Line::default()
        }));
        if self.keys_left_out > 0 {
            let text = format!("{} more findings were not looked at one by one", self.keys_left_out);
            lines.push(Line { part: "limit", text, ..Line::default() });
        }
        lines.extend(self.undetermined.iter().map(|limit| Line {
            part: "limit",
            text: format!("{}: {}", limit.what, limit.why),
            ..Line::default()
        }));
        batch(&lines)
    }
}

fn key(case: &KeyCase) -> Line {
    let value = |text: &Option<String>| text.clone().map_or(serde_json::Value::Null, serde_json::Value::String);
    let object: serde_json::Map<String, serde_json::Value> =
        case.key.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    Line {
        part: "key",
        layer: case.layer.map(|layer| layer.name()),
        class: Some(case.class.name().to_string()),
        reason: case.reason.clone(),
        key: Some(serde_json::Value::Object(object).to_string()),
        commit: case.commits.first().cloned(),
        confidence: Some(case.confidence.as_str()),
        text: case.sentence.clone(),
        ..Line::default()
    }
}

fn batch(lines: &[Line]) -> Result<RecordBatch> {
    let text = |of: fn(&Line) -> Option<&str>| -> ArrayRef { Arc::new(lines.iter().map(of).collect::<StringArray>()) };
    let number = |of: fn(&Line) -> Option<i64>| -> ArrayRef { Arc::new(lines.iter().map(of).collect::<Int64Array>()) };
    Ok(RecordBatch::try_new(
        Verdict::schema(),
        vec![
            text(|line| Some(line.part)),
            text(|line| line.layer),
            text(|line| line.class.as_deref()),
            text(|line| line.reason.as_deref()),
            text(|line| line.key.as_deref()),
            number(|line| line.findings.map(|n| i64::try_from(n).unwrap_or(i64::MAX))),
            number(|line| line.commit.as_ref().map(|commit| commit.snapshot)),
            text(|line| line.commit.as_ref().map(|commit| commit.user.as_str())),
            text(|line| line.commit.as_ref().map(|commit| commit.identifier.as_str())),
            text(|line| line.confidence),
            text(|line| Some(&line.text)),
        ],
    )?)
}
