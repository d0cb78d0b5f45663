//! The merge and the selection against the naive model, on random tables. A failure prints the seed of its case;
//! `LAKEPIN_SEED=n` runs that case alone, `LAKEPIN_CASES=n` runs more cases than usual.

mod random;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int8Array, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType as ArrowType, Field, Int8Type, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};

use self::random::Case;
use crate::error::Result;
use crate::memory::Unbounded;
use crate::merge::select::select_by_each_kernel;
use crate::merge::{
    FileSequence, KeyFile, KeyRange, KeySample, KeySampler, MergeOptions, MergeRules, RunInput, SectionSelection, cut,
    join, key_ranges, merge_runs, select, select_streamed, within,
};
use crate::spec::arrow_types::arrow_field;
use crate::spec::{DataField, RowKind, TableSchema};
use crate::testing::naive::{self, Record, Value};

fn column(records: &[Record], at: usize, field: &DataField) -> ArrayRef {
    let values: Vec<Value> = records.iter().map(|record| record.values[at].clone()).collect();
    naive::to_array(&values, arrow_field(field).data_type()).unwrap()
}

fn batch(schema: &TableSchema, columns: &[usize], records: &[Record]) -> RecordBatch {
    let mut fields: Vec<Field> = columns.iter().map(|&at| arrow_field(&schema.fields[at])).collect();
    fields.push(Field::new("_SEQUENCE_NUMBER", ArrowType::Int64, false));
    fields.push(Field::new("_VALUE_KIND", ArrowType::Int8, false));
    let mut arrays: Vec<ArrayRef> = columns.iter().map(|&at| column(records, at, &schema.fields[at])).collect();
    arrays.push(Arc::new(records.iter().map(|record| record.sequence).collect::<Int64Array>()));
    arrays.push(Arc::new(records.iter().map(|record| record.kind as i8).collect::<Int8Array>()));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// What a row is compared by. Floats count as equal by Java's order, so NaN equals NaN and -0.0 is not 0.0.
fn same(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.order(b).is_eq())
}

/// Values, sequence number, kind.
type MergedRow = (Vec<Value>, i64, RowKind);

/// What a merge gave, and what it counted: rows, keys, tombstones.
type Merged = (Result<Vec<MergedRow>>, [u64; 3]);

fn run_merge(case: &mut Case) -> (Vec<usize>, Merged) {
    let columns = case.rules().required_columns(&case.projection).unwrap();
    let merged = run_range(case, &columns, &KeyRange::default(), None);
    (columns, merged)
}

/// The merge in parts: the rows of the parts one after another, and the sums of what they counted.
fn run_parts(case: &mut Case, columns: &[usize]) -> Merged {
    let rules = case.rules();
    let step = 1 + case.dice.below(4);
    let samples: Vec<Vec<KeySample>> = case
        .runs
        .iter()
        .map(|files| {
            let sample = |records: &Vec<Record>| {
                let key: Vec<ArrayRef> =
                    rules.key_columns().iter().map(|&at| column(records, at, &case.schema.fields[at])).collect();
                let mut sampler = KeySampler::new(step);
                sampler.push(&key).unwrap();
                sampler.finish().unwrap()
            };
            files.iter().map(sample).collect()
        })
        .collect();
    let ranges = key_ranges(samples.iter().flatten(), 1 + case.dice.below(6)).unwrap();
    let (mut rows, mut counted) = (Vec::new(), [0; 3]);
    for range in &ranges {
        let (part, counts) = run_range(case, columns, range, Some(&samples));
        match part {
            Ok(part) => rows.extend(part),
            Err(error) => return (Err(error), counted),
        }
        counted = [0, 1, 2].map(|at| counted[at] + counts[at]);
    }
    (Ok(rows), counted)
}

fn run_range(case: &mut Case, columns: &[usize], range: &KeyRange, samples: Option<&Vec<Vec<KeySample>>>) -> Merged {
    let rules = Arc::new(case.rules());
    let key: Vec<usize> =
        rules.key_columns().iter().map(|at| columns.iter().position(|column| column == at).unwrap()).collect();
    let mut inputs = Vec::new();
    for (number, files) in case.runs.iter().enumerate() {
        let mut batches = Vec::new();
        for (at, records) in files.iter().enumerate() {
            let whole = batch(&case.schema, columns, records);
            let span = samples.map_or(0..records.len(), |samples| samples[number][at].rows_within(range).unwrap());
            let mut at = span.start;
            while at < span.end {
                let rows = (1 + case.dice.below(5)).min(span.end - at);
                batches.push(Ok(whole.slice(at, rows)));
                at += rows;
                if case.dice.percent(10) {
                    batches.push(Ok(whole.slice(0, 0)));
                }
            }
        }
        let level = files.iter().flatten().next().map_or(0, |record| record.level);
        inputs.push(RunInput::new(level, within(stream::iter(batches).boxed(), key.clone(), range.clone())));
    }
    let mut options = MergeOptions::new(1 + case.dice.below(8), Arc::new(Unbounded));
    options.keep_deletes = case.keep_deletes;
    let counters = Arc::clone(&options.counters);
    let batches: Result<Vec<RecordBatch>> =
        futures::executor::block_on(merge_runs(inputs, rules, columns, options).try_collect());
    let rows = batches.map(|batches| {
        let mut rows = Vec::new();
        for batch in batches {
            assert!(batch.num_rows() > 0, "an empty batch was given out");
            let width = batch.num_columns() - 2;
            let values: Vec<Vec<Value>> =
                batch.columns()[..width].iter().map(|column| naive::from_array(column).unwrap()).collect();
            for row in 0..batch.num_rows() {
                rows.push((
                    values.iter().map(|column| column[row].clone()).collect(),
                    batch.column(width).as_primitive::<Int64Type>().value(row),
                    RowKind::from_byte(batch.column(width + 1).as_primitive::<Int8Type>().value(row)).unwrap(),
                ));
            }
        }
        rows
    });
    (rows, [counters.rows(), counters.keys(), counters.tombstones()])
}

fn check_merge(seed: u64) -> bool {
    let mut case = Case::new(seed);
    let (columns, (merged, counted)) = run_merge(&mut case);
    let (in_parts, counted_in_parts) = run_parts(&mut case, &columns);
    let records: Vec<Record> = case.runs.iter().flatten().flatten().cloned().collect();
    let expected = case.naive(&columns, &records).and_then(|outcome| {
        for row in outcome.rows.iter().filter(|row| case.keep_deletes || !row.kind.is_retract()) {
            for (value, &at) in row.values.iter().zip(&columns) {
                if value.is_null() && !case.schema.fields[at].field_type.nullable {
                    return Err("NULL in a NOT NULL column".to_string());
                }
            }
        }
        Ok(outcome)
    });
    let options = &case.schema.options;
    match (expected, merged) {
        (Err(_), Err(_)) => {
            assert!(in_parts.is_err(), "seed {seed}: should fail in parts\n{options:#?}");
            false
        }
        (Err(why), Ok(_)) => panic!("seed {seed}: should fail ({why})\n{options:#?}"),
        (Ok(_), Err(error)) => panic!("seed {seed}: {error:?}\n{options:#?}"),
        (Ok(outcome), Ok(rows)) => {
            let in_parts = in_parts.unwrap_or_else(|error| panic!("seed {seed}: in parts {error:?}\n{options:#?}"));
            let equal = rows.len() == in_parts.len()
                && rows.iter().zip(&in_parts).all(|(a, b)| same(&a.0, &b.0) && (a.1, a.2) == (b.1, b.2));
            assert!(equal, "seed {seed}: whole {rows:#?}\nin parts {in_parts:#?}\n{options:#?}");
            assert_eq!(counted, counted_in_parts, "seed {seed}: in parts");
            let live = outcome.rows.iter().filter(|row| !row.kind.is_retract()).count();
            let wanted: Vec<_> =
                outcome.rows.iter().filter(|row| case.keep_deletes || !row.kind.is_retract()).collect();
            let equal = wanted.len() == rows.len()
                && wanted.iter().zip(&rows).all(|(wanted, (values, sequence, kind))| {
                    same(&wanted.values, values) && wanted.sequence == *sequence && wanted.kind == *kind
                });
            assert!(
                equal,
                "seed {seed}\noptions {options:#?}\ncolumns {columns:?}\nrecords {records:#?}\nwanted {wanted:#?}\nfound {rows:#?}"
            );
            check_projected(&case, &columns, &records, &rows, seed);
            let expected = [records.len(), outcome.keys, outcome.keys - live].map(|count| count as u64);
            assert_eq!(counted, expected, "seed {seed}: rows, keys, tombstones");
            true
        }
    }
}

/// Whole rows folded, the columns taken afterwards: a column the merge forgot to carry is noticed. What fails by a column
/// that is not read, a merge need not see.
fn check_projected(case: &Case, columns: &[usize], records: &[Record], rows: &[MergedRow], seed: u64) {
    let all: Vec<usize> = (0..case.schema.fields.len()).collect();
    let Ok(whole) = case.naive(&all, records) else { return };
    let wanted = whole.rows.iter().filter(|row| case.keep_deletes || !row.kind.is_retract());
    let wanted: Vec<_> = wanted.collect();
    let same_at = |row: &naive::Merged, values: &[Value]| {
        case.projection.iter().all(|at| {
            let place = columns.iter().position(|column| column == at).unwrap();
            row.values[*at].order(&values[place]).is_eq()
        })
    };
    let equal = wanted.len() == rows.len()
        && wanted.iter().zip(rows).all(|(wanted, (values, sequence, kind))| {
            same_at(wanted, values) && wanted.sequence == *sequence && wanted.kind == *kind
        });
    let (options, projection) = (&case.schema.options, &case.projection);
    assert!(
        equal,
        "seed {seed}: folded whole\noptions {options:#?}\ncolumns {columns:?}, of which {projection:?} are wanted\nrecords {records:#?}\nwanted {wanted:#?}\nfound {rows:#?}"
    );
}

fn key_files(case: &mut Case, rules: &MergeRules) -> (Vec<Vec<KeyFile>>, Vec<Vec<Vec<bool>>>) {
    let vectors = case.dice.percent(40);
    // a rank stands for the numbers of a file where they are its own
    let mut all: Vec<(i64, i64)> = Vec::new();
    for file in case.runs.iter().flatten() {
        let numbers = file.iter().map(|record| record.sequence);
        all.push((numbers.clone().min().unwrap(), numbers.max().unwrap()));
    }
    let disjoint =
        all.iter().enumerate().all(|(i, a)| all.iter().enumerate().all(|(j, b)| i == j || a.1 < b.0 || b.1 < a.0));
    let constant = disjoint && case.dice.percent(50);
    let mut deleted_rows = Vec::new();
    let mut runs = Vec::new();
    for run in &case.runs {
        let mut files = Vec::new();
        let mut deleted_of_run = Vec::new();
        for records in run {
            let of = |columns: &[usize]| -> Vec<ArrayRef> {
                columns.iter().map(|&at| column(records, at, &case.schema.fields[at])).collect()
            };
            let deleted: Vec<bool> = records.iter().map(|_| vectors && case.dice.percent(30)).collect();
            let sequence: Int64Array = records.iter().map(|record| record.sequence).collect();
            let kinds: Int8Array = records.iter().map(|record| record.kind as i8).collect();
            let clean = records.iter().all(|record| !record.kind.is_retract());
            files.push(KeyFile {
                level: records[0].level,
                name: "f".to_string(),
                keys: of(rules.key_columns()),
                user_sequence: of(rules.user_sequence_columns()),
                sequence: if constant {
                    FileSequence::Constant(arrow::compute::min(&sequence).unwrap())
                } else {
                    sequence.into()
                },
                kinds: if clean && case.dice.percent(50) { None } else { Some(kinds) },
                deleted: vectors.then(|| BooleanBuffer::from_iter(deleted.iter().copied())),
            });
            deleted_of_run.push(deleted);
        }
        runs.push(files);
        deleted_rows.push(deleted_of_run);
    }
    (runs, deleted_rows)
}

/// The selection out of batches of keys, without the rows that a vector deletes.
fn run_streamed(case: &mut Case, deleted: &[Vec<Vec<bool>>]) -> Result<SectionSelection> {
    let rules = Arc::new(case.rules());
    let columns = rules.required_columns(&[])?;
    let (mut inputs, mut files, mut first) = (Vec::new(), Vec::new(), 0);
    for (run, deleted) in case.runs.iter().zip(deleted) {
        let mut batches = Vec::new();
        for (records, deleted) in run.iter().zip(deleted) {
            let live: Vec<usize> = (0..records.len()).filter(|row| !deleted[*row]).collect();
            let kept: Vec<Record> = live.iter().map(|row| records[*row].clone()).collect();
            let positions: ArrayRef = Arc::new(live.iter().map(|row| (first + row) as i64).collect::<Int64Array>());
            first += records.len();
            let keys = batch(&case.schema, &columns, &kept);
            let (mut fields, mut arrays) = (keys.schema().fields().to_vec(), keys.columns().to_vec());
            fields.insert(columns.len(), Arc::new(Field::new("position", ArrowType::Int64, false)));
            arrays.insert(columns.len(), positions);
            let placed = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
            let mut at = 0;
            while at < placed.num_rows() {
                let rows = (1 + case.dice.below(5)).min(placed.num_rows() - at);
                batches.push(Ok(placed.slice(at, rows)));
                at += rows;
            }
        }
        let level = run.iter().flatten().next().map_or(0, |record| record.level);
        inputs.push(RunInput::new(level, stream::iter(batches).boxed()));
        files.push(run.iter().map(Vec::len).collect());
    }
    let options = MergeOptions::new(1 + case.dice.below(8), Arc::new(Unbounded));
    futures::executor::block_on(select_streamed(inputs, &rules, &files, options))
}

/// Whether the case was selected, and by how many kernels it could be.
fn check_select(seed: u64) -> Option<usize> {
    let mut case = Case::new(seed);
    let rules = case.rules();
    if !rules.is_selection() {
        return None;
    }
    let (files, deleted) = key_files(&mut case, &rules);
    let kernels = select_by_each_kernel(files.clone(), &rules);
    let visible: Vec<Record> = case
        .runs
        .iter()
        .zip(&deleted)
        .flat_map(|(run, deleted)| run.iter().flatten().zip(deleted.iter().flatten()))
        .filter(|(_, deleted)| !**deleted)
        .map(|(record, _)| record.clone())
        .collect();
    let all: Vec<usize> = (0..case.schema.fields.len()).collect();
    let expected = case.naive(&all, &visible);
    let options = &case.schema.options;
    let (outcome, selection): (naive::Outcome, SectionSelection) = match (expected, select(files.clone(), &rules)) {
        (Err(_), Err(_)) => return None,
        (Err(why), Ok(_)) => panic!("seed {seed}: should fail ({why})\n{options:#?}"),
        (Ok(_), Err(error)) => panic!("seed {seed}: {error:?}\n{options:#?}"),
        (Ok(outcome), Ok(selection)) => (outcome, selection),
    };
    let parts = cut(files, 1 + case.dice.below(5)).unwrap();
    let in_parts = join(parts.into_iter().map(|part| select(part, &rules).unwrap()).collect()).unwrap();
    assert_eq!(in_parts, selection, "seed {seed}: in parts\n{options:#?}\nrecords {visible:#?}");
    let streamed = run_streamed(&mut case, &deleted);
    let options = &case.schema.options;
    let streamed = streamed.unwrap_or_else(|error| panic!("seed {seed}: streamed {error:?}\n{options:#?}"));
    assert_eq!(streamed, selection, "seed {seed}: streamed\n{options:#?}\nrecords {visible:#?}");
    let kernels = kernels.unwrap();
    for (kernel, found) in &kernels {
        assert_eq!(*found, selection, "seed {seed}: kernel {kernel}\n{options:#?}\nrecords {visible:#?}");
    }
    let mut wanted: Vec<usize> =
        outcome.rows.iter().filter(|row| !row.kind.is_retract()).map(|row| row.from.unwrap()).collect();
    wanted.sort_unstable();
    let mut found = Vec::new();
    let mut number = 0;
    let mut physical = 0;
    for (run, deleted) in selection.files.iter().zip(&deleted) {
        assert_eq!(run.len(), deleted.len(), "seed {seed}");
        for (live, deleted) in run.iter().zip(deleted) {
            assert_eq!(live.len(), deleted.len(), "seed {seed}");
            physical += live.len() as u64;
            for (row, deleted) in deleted.iter().enumerate() {
                if *deleted {
                    assert!(!live.value(row), "seed {seed}: a deleted row is live");
                    continue;
                }
                if live.value(row) {
                    found.push(number);
                }
                number += 1;
            }
        }
    }
    assert_eq!(found, wanted, "seed {seed}\noptions {options:#?}\nrecords {visible:#?}");
    let stats = selection.stats;
    assert_eq!(stats.rows, physical, "seed {seed}");
    assert_eq!(stats.vector_deleted, physical - visible.len() as u64, "seed {seed}");
    assert_eq!(stats.live, wanted.len() as u64, "seed {seed}");
    assert_eq!(stats.keys, outcome.keys as u64, "seed {seed}");
    assert_eq!(stats.tombstones, (outcome.keys - wanted.len()) as u64, "seed {seed}");
    assert_eq!(stats.rows, stats.vector_deleted + stats.superseded + stats.tombstones + stats.live, "seed {seed}");
    Some(kernels.len())
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("LAKEPIN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LAKEPIN_CASES").unwrap_or(usual),
    }
}

#[test]
fn merged_rows_agree_with_the_naive_model() {
    let seeds = seeds(3000);
    let cases = seeds.end - seeds.start;
    let merged = seeds.filter(|&seed| check_merge(seed)).count() as u64;
    assert!(cases < 100 || merged * 2 > cases, "only {merged} of {cases} cases merged without an error");
}

#[test]
fn selected_rows_agree_with_the_naive_model() {
    let seeds = seeds(20_000);
    let cases = seeds.end - seeds.start;
    let kernels: Vec<usize> = seeds.filter_map(check_select).collect();
    let selected = kernels.len() as u64;
    assert!(cases < 100 || selected * 5 > cases, "only {selected} of {cases} cases selected");
    for count in 1..=3 {
        let met = kernels.iter().filter(|kernels| **kernels == count).count();
        assert!(cases < 100 || met > 100, "only {met} cases that {count} kernels take");
    }
}
