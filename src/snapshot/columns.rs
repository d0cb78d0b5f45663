//! Why a column is not there: added later, dropped or renamed.

use std::sync::Arc;

use super::pin::Pin;
use crate::spec::{DataField, TableSchema};

/// What became of the column `name`, as seen from the pin's schema; None when it never was in the table.
pub(super) async fn explain(pin: &Pin, name: &str) -> Option<String> {
    let mut schemas: Vec<Arc<TableSchema>> = Vec::new();
    for id in pin.table.schema_ids().await.ok()? {
        schemas.push(pin.table.schema(id).await.ok()?);
    }
    let here = &pin.schema;
    let place = match &pin.snapshot {
        Some(snapshot) => format!("snapshot {} (schema {})", snapshot.id, here.id),
        None => format!("schema {}", here.id),
    };
    // newer schemas first: a name that was dropped and came back is meant as it is now
    let newer = schemas.iter().filter(|schema| schema.id > here.id);
    for schema in newer {
        let Some(field) = column(schema, name) else { continue };
        return Some(match here.field_by_id(field.id) {
            Some(then) => format!(
                "column '{}' is called '{}' in {place}: it was renamed in schema {}",
                field.name, then.name, schema.id
            ),
            None => format!("column '{}' was added in schema {}, after {place}", field.name, schema.id),
        });
    }
    let older = schemas.iter().filter(|schema| schema.id < here.id).rev();
    for schema in older {
        let Some(field) = column(schema, name) else { continue };
        let changed = schemas
            .iter()
            .find(|later| later.id > schema.id && later.field_by_id(field.id).is_none_or(|now| now.name != field.name))
            .map_or(here.id, |later| later.id);
        if let Some(now) = here.field_by_id(field.id) {
            return Some(format!("column '{}' was renamed to '{}' in schema {changed}", field.name, now.name));
        }
        let mut text = format!("column '{}' was dropped in schema {changed}; {place} has it no more", field.name);
        let snapshots = pin.table.snapshots().await.unwrap_or_default();
        let with_it = snapshots.iter().rev().find(|snapshot| {
            let of = schemas.iter().find(|schema| schema.id == snapshot.schema_id);
            of.is_some_and(|schema| schema.field_by_id(field.id).is_some())
        });
        if let Some(snapshot) = with_it {
            text.push_str(&format!(": VERSION AS OF {} still has it", snapshot.id));
        }
        return Some(text);
    }
    None
}

fn column<'a>(schema: &'a TableSchema, name: &str) -> Option<&'a DataField> {
    let exact = schema.fields.iter().find(|field| field.name == name);
    exact.or_else(|| schema.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)))
}
