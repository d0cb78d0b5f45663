//! Parts of manifest entries as text, of the entries of a pin.

use std::sync::Arc;

use super::Source;
use crate::error::{Error, Result};
use crate::recon::entry_texts::EntryTexts;
use crate::scan::manifest_of;
use crate::snapshot::Pin;
use crate::spec::ManifestEntry;

/// The texts of some entries, with the schemas that their files were written with.
///
/// # Errors
/// A schema that is gone or damaged, blamed on the entry that asks for it.
pub(super) async fn texts_of(source: &Source, entries: &[Arc<ManifestEntry>]) -> Result<EntryTexts> {
    let pin = source.pin()?;
    let mut texts = EntryTexts::of_pin(pin, &source.zone)?;
    for entry in entries {
        if let Err(error) = texts.add_schema(entry.file.schema_id).await {
            return Err(blame_schema(error, entry, pin, source).await);
        }
    }
    Ok(texts)
}

/// An error about the schema that an entry asks for: the entry may be what is damaged.
async fn blame_schema(error: Error, entry: &Arc<ManifestEntry>, pin: &Arc<Pin>, source: &Source) -> Error {
    match manifest_of(entry, pin, &source.env.scan).await {
        Some(manifest) => error.with_context("manifest", manifest).with_context("entry", &entry.file.file_name),
        None => error.with_context("entry", &entry.file.file_name),
    }
}
