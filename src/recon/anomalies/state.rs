//! D-11, D-12, D-14: what the newest snapshot holds; D-15: whether all that something kept needs is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::needed::missing_files;
use super::{Finding, Material, Severity, listed};
use crate::error::{Error, ErrorKind, Result};
use crate::recon::lookup::Confidence;
use crate::scan::{index_files, is_above};
use crate::spec::{BinaryRow, DataType, Datum, ManifestEntry, SnapshotId};

pub(super) async fn detect(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    damage(material, found);
    let Some(latest) = material.history.latest() else { return Ok(()) };
    let live = match material.history.live(latest).await {
        Ok(live) => live,
        Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
        Err(error) => {
            // D-6 tells of counts that do not add up
            if error.code() != "ManifestIncomplete" {
                found.push(damaged(format!("the files of snapshot {}", latest.id), &error, Some(latest.id)));
            }
            for detector in ["D-11", "D-12", "D-14", "D-15"] {
                let why = format!("the files of snapshot {} cannot be told: {}", latest.id, error.message());
                found.push(Finding::unchecked(detector, why).at([latest.id]));
            }
            return Ok(());
        }
    };
    missing_files(material, &live, latest, found).await?;
    overlaps(material, &live, latest.id, found)?;
    rescaled(material, &live, latest.id, found)?;
    vectors(material, &live, found).await
}

pub(super) fn damaged(what: String, error: &Error, snapshot: Option<SnapshotId>) -> Finding {
    let file = error.context().iter().find(|(name, _)| *name == "file").map(|(_, file)| format!(" ({file})"));
    Finding::new(
        "D-15",
        Severity::Error,
        Confidence::Exact,
        "a file that something kept needs is lost or damaged: expiry or a clean-up of orphans went too far, or the store did",
    )
    .seen(format!("{what}: {}{}", error.message(), file.unwrap_or_default()))
    .at(snapshot)
}

/// D-15, of what was read so far.
fn damage(material: &Material<'_>, found: &mut Vec<Finding>) {
    for unread in &material.history.unread {
        found.push(damaged(unread.what.clone(), &unread.error, unread.snapshot));
    }
    for commit in &material.commits {
        let snapshot = commit.snapshot();
        match (&commit.lists, &commit.changes) {
            (Some(Err(error)), _) => {
                found.push(damaged(format!("the lists of snapshot {}", snapshot.id), error, Some(snapshot.id)));
            }
            (Some(Ok(_)), Err(error)) => {
                found.push(damaged(format!("the changes of snapshot {}", snapshot.id), error, Some(snapshot.id)));
            }
            // the delta list of an expired snapshot may go with it
            (None, Err(_)) | (_, Ok(_)) => {}
        }
    }
}

/// D-11
fn overlaps(
    material: &Material<'_>,
    live: &[Arc<ManifestEntry>],
    latest: SnapshotId,
    found: &mut Vec<Finding>,
) -> Result<()> {
    let pin = &material.history.pin;
    if !pin.schema.is_primary_key_table() || pin.options.pk_clustering_override {
        return Ok(());
    }
    type Ranges<'a> = Vec<(Vec<Datum>, Vec<Datum>, &'a Arc<ManifestEntry>)>;
    let mut levels: BTreeMap<(Vec<u8>, i32, i32), Ranges<'_>> = BTreeMap::new();
    for entry in live.iter().filter(|entry| entry.file.level > 0) {
        let schema = material.texts.schema_of(entry)?;
        let types: Vec<&DataType> = schema
            .trimmed_primary_key()?
            .into_iter()
            .filter_map(|index| schema.fields.get(index))
            .map(|field| field.data_type())
            .collect();
        let range = entry.file.min_key.decode(&types).and_then(|min| Ok((min, entry.file.max_key.decode(&types)?)));
        let (min, max) = match range {
            Ok(range) => range,
            Err(error) => {
                let why = format!("the keys of {} cannot be decoded: {}", entry.file.file_name, error.message());
                found.push(Finding::unchecked("D-11", why).at([latest]).in_unit(material.texts.unit(entry)?));
                continue;
            }
        };
        let place = (entry.partition.0.to_vec(), entry.bucket.0, entry.file.level);
        levels.entry(place).or_default().push((min, max, entry));
    }
    for ((_, _, level), mut files) in levels {
        files.sort_by(|a, b| {
            if is_above(&a.0, &b.0) {
                std::cmp::Ordering::Greater
            } else if is_above(&b.0, &a.0) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Equal
            }
        });
        for pair in files.windows(2) {
            let [one, next] = pair else { continue };
            if !is_above(&next.0, &one.1) {
                found.push(
                    Finding::new(
                        "D-11",
                        Severity::Error,
                        Confidence::Exact,
                        "two files of one level overlap: a merge takes versions of one key for several keys, or for none",
                    )
                    .seen(format!(
                        "level {level}: {} and {}",
                        one.2.file.file_name, next.2.file.file_name
                    ))
                    .at([latest])
                    .in_unit(material.texts.unit(next.2)?),
                );
            }
        }
    }
    Ok(())
}

/// D-12
fn rescaled(
    material: &Material<'_>,
    live: &[Arc<ManifestEntry>],
    latest: SnapshotId,
    found: &mut Vec<Finding>,
) -> Result<()> {
    let mut counts: HashMap<&BinaryRow, (BTreeSet<i32>, &Arc<ManifestEntry>)> = HashMap::new();
    for entry in live.iter().filter(|entry| entry.total_buckets > 0) {
        counts.entry(&entry.partition).or_insert((BTreeSet::new(), entry)).0.insert(entry.total_buckets);
    }
    let mut findings = Vec::new();
    for (buckets, entry) in counts.into_values().filter(|(buckets, _)| buckets.len() > 1) {
        findings.push(
            Finding::new(
                "D-12",
                Severity::Warning,
                Confidence::Exact,
                "a partition was rescaled without being overwritten: one key may lie in two buckets",
            )
            .seen(format!("files of {} buckets", listed(&buckets)))
            .at([latest])
            .in_unit(material.texts.partition(&entry.partition)?),
        );
    }
    findings.sort_by(|a, b| a.unit.cmp(&b.unit));
    found.extend(findings);
    Ok(())
}

/// D-14
async fn vectors(material: &Material<'_>, live: &[Arc<ManifestEntry>], found: &mut Vec<Finding>) -> Result<()> {
    let Some(latest) = material.history.latest() else { return Ok(()) };
    let pin = material.history.pin_of(latest);
    let index = match index_files(&pin, &material.history.env().scan).await {
        Ok(index) => index,
        Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
        Err(error) => {
            found.push(damaged(format!("the index manifest of snapshot {}", latest.id), &error, Some(latest.id)));
            let why = format!("the index manifest of snapshot {} cannot be read", latest.id);
            found.push(Finding::unchecked("D-14", why).at([latest.id]));
            return Ok(());
        }
    };
    let finding = |evidence: String| {
        Finding::new(
            "D-14",
            Severity::Error,
            Confidence::Exact,
            "deletion vectors do not fit the files they speak of: rows that were deleted are back, or rows of others are gone",
        )
        .seen(evidence)
        .at([latest.id])
    };
    let rows: HashMap<(&BinaryRow, i32, &str), i64> = live
        .iter()
        .map(|entry| ((&entry.partition, entry.bucket.0, entry.file.file_name.as_str()), entry.file.row_count))
        .collect();
    let mut holders: BTreeMap<(Vec<u8>, i32), Vec<&str>> = BTreeMap::new();
    for file in index.iter() {
        let Some(ranges) = &file.deletion_vectors else { continue };
        holders.entry((file.partition.0.to_vec(), file.bucket.0)).or_default().push(&file.file_name);
        for range in ranges {
            match rows.get(&(&file.partition, file.bucket.0, range.data_file_name.as_str())) {
                None => found.push(finding(format!(
                    "index file {} has a vector for {}, which is not live",
                    file.file_name, range.data_file_name
                ))),
                Some(rows) if range.cardinality.is_some_and(|deleted| deleted > *rows) => {
                    found.push(finding(format!(
                        "the vector of {} deletes {} rows of {rows}",
                        range.data_file_name,
                        range.cardinality.unwrap_or_default()
                    )));
                }
                Some(_) => {}
            }
        }
    }
    let keyed = material.history.pin.schema.is_primary_key_table();
    for ((_, bucket), files) in holders.into_iter().filter(|(_, files)| keyed && files.len() > 1) {
        found.push(finding(format!("bucket {bucket} has two files of vectors: {}", listed(files))));
    }
    Ok(())
}
