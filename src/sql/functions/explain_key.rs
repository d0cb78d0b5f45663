//! `paimon_explain_key('db.t', key => ('2026-04-16', 'P1001'), at => 105, expected => 'amount=50')`: why a key is there,
//! is not, or has another value.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;

use super::key_history::{key_of, snapshot_of};
use super::made::{Asked, Made};
use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::recon::keys::{Asked as AskedKey, Expected, explain};
use crate::snapshot::PinRequest;
use crate::snapshot::nearest::known_names;
use crate::spec::arrow_types::arrow_type;
use crate::sql::cells::{self, Cell, Kind};

pub(super) const EXPLAIN_KEY: Made = Made {
    name: "paimon_explain_key",
    parameters: &["table", "key", "at", "expected"],
    aliases: &[],
    usage: "paimon_explain_key('db.t', key => ('2026-04-16', 'P1001'), at => 105, expected => 'amount=50')",
    schema: checked,
    rows: |asked| Box::pin(async move { rows(&asked).await }),
};

fn checked(asked: &Asked) -> Result<SchemaRef> {
    key_of(asked)?;
    expected(asked)?;
    Ok(schema())
}

fn schema() -> SchemaRef {
    cells::schema(&[
        ("key", Kind::Text, true),
        ("at_snapshot", Kind::Long, true),
        ("reason", Kind::Text, true),
        ("sentence", Kind::Text, true),
        ("snapshot_id", Kind::Long, false),
        ("commit_kind", Kind::Text, false),
        ("commit_user", Kind::Text, false),
        ("commit_identifier", Kind::Long, false),
        ("commit_time", Kind::Time, false),
        ("file", Kind::Text, false),
        ("sequence", Kind::Long, false),
        ("confidence", Kind::Text, true),
    ])
}

/// The value that a column was expected to have.
fn expected(asked: &Asked) -> Result<Option<Expected>> {
    let Some(text) = asked.call.text("expected") else { return Ok(None) };
    let schema = &asked.source.pin()?.schema;
    let wrong = |what: String| asked.call.wrong(what);
    let (name, value) = text.split_once('=').ok_or_else(|| wrong(format!("'{text}' is no column=value")))?;
    let name = name.trim();
    let exact = schema.field_index(name);
    let index = exact.or_else(|| schema.fields.iter().position(|field| field.name.eq_ignore_ascii_case(name)));
    let field = index.and_then(|index| schema.fields.get(index).map(|field| (index, field)));
    let (index, field) = field.ok_or_else(|| {
        let known = schema.fields.iter().map(|field| field.name.as_str());
        Error::invalid(format!("there is no column '{name}'"))
            .with_code("ColumnNotFound")
            .with_context("parameter", "expected")
            .with_hint(known_names("columns", name, known))
    })?;
    let wanted = arrow_type(field.data_type());
    let value = value.trim();
    let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    let value = match quoted {
        None if value.eq_ignore_ascii_case("null") => ScalarValue::try_from(&wanted)?,
        quoted => {
            let text = quoted.unwrap_or(value);
            // a value with more digits than the column has was never in it
            let scale = match wanted {
                DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => usize::try_from(scale).ok(),
                _ => None,
            };
            let part = text.split_once('.').map_or(0, |(_, part)| part.trim_end_matches('0').len());
            if scale.is_some_and(|scale| part > scale) {
                return Err(wrong(format!("'{text}' is no value of column {}", field.name)));
            }
            let value = ScalarValue::Utf8(Some(text.to_string()));
            value.cast_to(&wanted).map_err(|_| wrong(format!("{value} is no value of column {}", field.name)))?
        }
    };
    Ok(Some(Expected::value(index, value)))
}

async fn rows(asked: &Asked) -> Result<RecordBatch> {
    let latest = PinRequest::Latest;
    let read = snapshot_of(asked, asked.call.version("at").unwrap_or(&latest)).await?;
    let (key, delta_list) = (key_of(asked)?, read.delta_manifest_list.clone());
    let question = AskedKey { at: read.id, delta_list, expected: expected(asked)? };
    let history = asked.history().await?;
    let budget: Arc<dyn MemoryBudget> = asked.source.budget();
    let found = explain(&history, &key, &question, &budget, &asked.source.zone).await?;
    for limit in &found.limits {
        asked.source.notice(limit.clone());
    }
    let commit = found.commit.as_deref();
    let row = vec![
        Cell::text(key.text()),
        Cell::Long(read.id.0),
        Cell::text(found.reason.as_str()),
        Cell::text(found.sentence),
        Cell::opt_long(commit.map(|snapshot| snapshot.id.0)),
        Cell::opt_text(commit.map(|snapshot| snapshot.commit_kind.as_str())),
        Cell::opt_text(commit.map(|snapshot| snapshot.commit_user.as_str())),
        Cell::opt_long(commit.map(|snapshot| snapshot.commit_identifier)),
        commit.map_or(Cell::Null, |snapshot| Cell::Time(asked.source.wall_clock(snapshot.time_millis))),
        Cell::opt_text(found.file),
        Cell::opt_long(found.sequence),
        Cell::text(found.confidence.as_str()),
    ];
    cells::batch(&schema(), &[row])
}
