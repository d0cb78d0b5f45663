//! What planning knows about the rows of a scan, as DataFusion's statistics.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};

use crate::error::Result;
use crate::query::nodes::read_exec::Item;
use crate::read::ReadColumn;
use crate::scan::{PlannedFile, ScanKind, SectionClass, datum_to_scalar};
use crate::snapshot::Pin;
use crate::spec::{DataType, Datum};

/// Rows of the parts of a scan, each within one partition of the table.
#[derive(Debug, Clone, Default)]
pub struct UnitFacts {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    partition: Arc<[Datum]>,
    /// Proven by metadata.
    exact: Option<u64>,
    /// At most so many.
    bound: u64,
}

impl UnitFacts {
    /// Facts about some items of a scan.
    pub fn of<'a>(items: impl IntoIterator<Item = &'a Item>, kind: ScanKind) -> Self {
        Self { parts: items.into_iter().map(|item| part_of(item, kind)).collect() }
    }

    /// Rows of all parts, when proven.
    pub fn exact_rows(&self) -> Option<u64> {
        self.parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.exact?))
    }

    fn bound(&self) -> u64 {
        self.parts.iter().map(|part| part.bound).fold(0, u64::saturating_add)
    }
}

fn part_of(item: &Item, kind: ScanKind) -> Part {
    let handle = item.section();
    let files: Vec<&Arc<PlannedFile>> = match item {
        Item::Section(_) | Item::Part { .. } => handle.section.files().collect(),
        Item::File { run, file, .. } => {
            handle.section.runs.get(*run).and_then(|files| files.get(*file)).into_iter().collect()
        }
    };
    // a file index leaves rows out while reading, and files of a change read may hold retracts
    let whole = files.iter().all(|file| file.index_rows.is_none()) && !kind.is_unmerged();
    let exact = match (handle.section.class, item) {
        (SectionClass::Raw, _) => files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.rows_after_vector()?)),
        // of keys that are not wanted a selection knows nothing
        (SectionClass::Select, Item::File { run, file, .. }) if handle.wanted.is_none() => handle
            .selected()
            .and_then(|selection| selection.files.get(*run)?.get(*file))
            .map(|live| live.count_set_bits() as u64),
        _ => None,
    };
    let rows = files.iter().map(|file| file.physical_rows()).fold(0, u64::saturating_add);
    let bound = match item {
        // about: parts are cut when the keys have been read; all together have the rows of the section
        Item::Part { part, .. } => {
            let below = |number: usize| u128::from(rows) * number as u128 / part.of.max(1) as u128;
            u64::try_from(below(part.number + 1) - below(part.number)).unwrap_or(rows)
        }
        Item::Section(_) | Item::File { .. } => rows,
    };
    Part { partition: Arc::clone(&handle.partition), exact: exact.filter(|_| whole), bound }
}

/// Statistics of a node that gives `columns` of the sections behind `facts`. Exact is what metadata proves: the number
/// of rows and, then, bounds and null counts of partition columns.
pub fn statistics_of(facts: &UnitFacts, pin: &Pin, columns: &[ReadColumn], schema: &SchemaRef) -> Result<Statistics> {
    let mut statistics = Statistics::new_unknown(schema);
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let Some(rows) = facts.exact_rows() else {
        statistics.num_rows = Precision::Inexact(count(facts.bound()));
        return Ok(statistics);
    };
    statistics.num_rows = Precision::Exact(count(rows));
    let partition = pin.schema.partition_indices()?;
    for (column, target) in columns.iter().zip(&mut statistics.column_statistics) {
        let ReadColumn::Field(index) = column else { continue };
        let Some(at) = partition.iter().position(|known| known == index) else { continue };
        let Some(field) = pin.schema.fields.get(*index) else { continue };
        if let Some(bounds) = partition_bounds(facts, at, field.data_type())? {
            *target = bounds;
        }
    }
    Ok(statistics)
}

fn partition_bounds(facts: &UnitFacts, at: usize, data_type: &DataType) -> Result<Option<ColumnStatistics>> {
    // NaN has its own place in every order
    if matches!(data_type, DataType::Float | DataType::Double) {
        return Ok(None);
    }
    let (mut nulls, mut min, mut max): (u64, Option<ScalarValue>, Option<ScalarValue>) = (0, None, None);
    let mut last: Option<&Arc<[Datum]>> = None;
    for part in facts.parts.iter().filter(|part| part.exact.is_some_and(|rows| rows > 0)) {
        let Some(value) = part.partition.get(at) else { return Ok(None) };
        if *value == Datum::Null {
            nulls = nulls.saturating_add(part.exact.unwrap_or_default());
            continue;
        }
        // neighbours mostly share their partition
        if last.replace(&part.partition).is_some_and(|last| Arc::ptr_eq(last, &part.partition)) {
            continue;
        }
        // a time that Arrow does not hold bounds nothing that is compared
        let Ok(scalar) = datum_to_scalar(value, data_type) else { return Ok(None) };
        if min.as_ref().is_none_or(|known| scalar.partial_cmp(known).is_some_and(|o| o.is_lt())) {
            min = Some(scalar.clone());
        }
        if max.as_ref().is_none_or(|known| scalar.partial_cmp(known).is_some_and(|o| o.is_gt())) {
            max = Some(scalar);
        }
    }
    let precise = |value: Option<ScalarValue>| value.map_or(Precision::Absent, Precision::Exact);
    Ok(Some(ColumnStatistics {
        null_count: Precision::Exact(usize::try_from(nulls).unwrap_or(usize::MAX)),
        min_value: precise(min),
        max_value: precise(max),
        ..ColumnStatistics::new_unknown()
    }))
}
