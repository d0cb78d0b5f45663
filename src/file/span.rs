//! Where in a sorted Parquet file the rows of a range of keys can be, by the bounds of its row groups and pages.

use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use ::parquet::arrow::parquet_to_arrow_schema;
use ::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use arrow::array::{Array, ArrayRef, Datum, Scalar};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};

use super::access::Access;
use super::parquet::{Source, failure, footer};
use super::task::FileEnv;
use crate::error::Result;

/// Rows of a row group from which it is worth to ask for the bounds of its pages.
const WORTH_PAGES: i64 = 50_000;

/// What the first column of a sorted file is asked for: both ends belong to it.
#[derive(Debug, Clone)]
pub struct SortedRange {
    /// The smallest value, an array of one; None: from the first on.
    pub lower: Option<ArrayRef>,
    /// The largest value.
    pub upper: Option<ArrayRef>,
}

/// Rows of a Parquet file among which all are whose value of a column lies in `wanted`; the rows stand in the order of that
/// column, the first of `names` that the file has. All rows where the file does not tell.
///
/// Cost: the footer, and the page index of a large file, both kept for those who read it.
///
/// # Errors
/// The file cannot be opened, or its footer not be decoded.
pub(crate) async fn span_of_sorted(
    env: &FileEnv,
    access: &Access,
    names: &[String],
    wanted: &SortedRange,
) -> Result<Range<usize>> {
    let found = footer(env, access, Source(access.clone())).await?;
    let rows: usize = found.row_groups().iter().map(rows_of).sum();
    let all = 0..rows;
    let is_large = found.row_groups().iter().any(|group| group.num_rows() >= WORTH_PAGES);
    let found = if is_large { with_bounds_of_pages(env, access, found).await? } else { found };
    Ok(span(&found, names, wanted).unwrap_or(all))
}

async fn with_bounds_of_pages(
    env: &FileEnv,
    access: &Access,
    found: Arc<ParquetMetaData>,
) -> Result<Arc<ParquetMetaData>> {
    if found.column_index().is_some() && found.offset_index().is_some() {
        return Ok(found);
    }
    let mut reader = ParquetMetaDataReader::new_with_metadata(found.as_ref().clone())
        .with_column_index_policy(PageIndexPolicy::Optional)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    reader.load_page_index(Source(access.clone())).await.map_err(|error| failure(access, error))?;
    let indexed = Arc::new(reader.finish().map_err(|error| failure(access, error))?);
    if indexed.column_index().is_some() && indexed.offset_index().is_some() {
        let bytes = indexed.memory_size();
        env.footers().insert((access.location().clone(), access.size()), Arc::clone(&indexed), bytes);
    }
    Ok(indexed)
}

fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(0)
}

/// None where it is not told.
fn span(found: &ParquetMetaData, names: &[String], wanted: &SortedRange) -> Option<Range<usize>> {
    let descriptor = found.file_metadata().schema_descr();
    let schema = parquet_to_arrow_schema(descriptor, None).ok()?;
    let name = names.iter().find(|name| schema.column_with_name(name).is_some())?;
    let field = schema.field_with_name(name).ok()?;
    let is_of = |bound: &Option<ArrayRef>| bound.as_ref().is_none_or(|bound| bound.data_type() == field.data_type());
    // a NaN is in no bounds
    if !is_of(&wanted.lower) || !is_of(&wanted.upper) || field.data_type().is_floating() {
        return None;
    }
    let converter = StatisticsConverter::try_new(name, &schema, descriptor).ok()?;
    let column = converter.parquet_column_index()?;
    let (mut start, mut from, mut to) = (0, None, 0);
    for (number, group) in found.row_groups().iter().enumerate() {
        // bounds of old writers are ordered as they liked
        let is_old = |statistics: &::parquet::file::statistics::Statistics| statistics.is_min_max_deprecated();
        if group.column(column).statistics().is_some_and(is_old) {
            return None;
        }
        let pages = pages(found, number, &converter);
        let (lengths, mins, maxes) = match pages {
            Some(pages) => pages,
            None => (
                vec![rows_of(group)],
                converter.row_group_mins([group]).ok()?,
                converter.row_group_maxes([group]).ok()?,
            ),
        };
        let mut at = start;
        let may = may_hold(&mins, &maxes, wanted)?;
        for (rows, may) in lengths.into_iter().zip(may) {
            if may {
                from.get_or_insert(at);
                to = at + rows;
            }
            at += rows;
        }
        start += rows_of(group);
    }
    let from = from.unwrap_or(0);
    Some(from..to.max(from))
}

/// Rows, smallest and largest values of the pages of a row group; None where they are not known, or do not add up.
fn pages(
    found: &ParquetMetaData,
    group: usize,
    converter: &StatisticsConverter<'_>,
) -> Option<(Vec<usize>, ArrayRef, ArrayRef)> {
    let (columns, offsets) = (found.column_index()?, found.offset_index()?);
    let mins = converter.data_page_mins(columns, offsets, [&group]).ok()?;
    let maxes = converter.data_page_maxes(columns, offsets, [&group]).ok()?;
    let counts = converter.data_page_row_counts(offsets, found.row_groups(), [&group]).ok()??;
    let lengths: Vec<usize> = counts.iter().map(|count| usize::try_from(count?).ok()).collect::<Option<_>>()?;
    let adds_up = lengths.iter().sum::<usize>() == rows_of(found.row_group(group));
    (adds_up && mins.len() == lengths.len() && maxes.len() == lengths.len()).then_some((lengths, mins, maxes))
}

/// For each stretch of rows whether it may hold a value that is wanted.
fn may_hold(mins: &ArrayRef, maxes: &ArrayRef, wanted: &SortedRange) -> Option<Vec<bool>> {
    let against = |values: &ArrayRef, bound: &Option<ArrayRef>, lower: bool| -> Option<Vec<bool>> {
        let Some(bound) = bound else { return Some(vec![true; values.len()]) };
        let bound = Scalar::new(Arc::clone(bound));
        let values: &dyn Datum = values;
        let met = if lower { gt_eq(values, &bound) } else { lt_eq(values, &bound) };
        // what is not known may be
        Some(met.ok()?.iter().map(|met| met.unwrap_or(true)).collect())
    };
    let (above, below) = (against(maxes, &wanted.lower, true)?, against(mins, &wanted.upper, false)?);
    Some(above.into_iter().zip(below).map(|(above, below)| above && below).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::arrow::ArrowWriter;
    use ::parquet::file::properties::WriterProperties;
    use arrow::array::{AsArray, Decimal128Array, Float64Array, Int64Array, StringArray};
    use arrow::datatypes::{Field, Schema};
    use arrow::record_batch::RecordBatch;

    /// Rows in groups of 50 and pages of 7.
    fn footer_of(keys: &ArrayRef, pages: bool) -> ParquetMetaData {
        let schema = Arc::new(Schema::new(vec![Field::new("_KEY_k", keys.data_type().clone(), false)]));
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(50))
            .set_data_page_row_count_limit(7)
            .set_write_batch_size(7)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(&schema), Some(properties)).unwrap();
        writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(keys)]).unwrap()).unwrap();
        writer.close().unwrap();
        let policy = if pages { PageIndexPolicy::Required } else { PageIndexPolicy::Skip };
        let mut reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
        reader.try_parse(&bytes::Bytes::from(bytes)).unwrap();
        reader.finish().unwrap()
    }

    fn names() -> Vec<String> {
        vec!["_KEY_k".to_string(), "k".to_string()]
    }

    #[test]
    fn a_span_holds_every_row_that_is_wanted_and_few_others() {
        // every third number, each twice
        let values: Vec<i64> = (0..320).map(|row| row / 2 * 3 - 100).collect();
        let texts = |value: i64| format!("k{:05}", value + 100);
        type Make = fn(Vec<i64>) -> ArrayRef;
        let makes: [Make; 4] = [
            |values| Arc::new(Int64Array::from(values)),
            |values| {
                let decimals = values.into_iter().map(i128::from).collect::<Decimal128Array>();
                Arc::new(decimals.with_precision_and_scale(12, 2).unwrap())
            },
            |values| Arc::new(StringArray::from_iter_values(values.iter().map(|value| format!("k{:05}", value + 100)))),
            // longer than bounds are kept, and equal as far as they are
            |values| {
                let long = |value: &i64| format!("{}{:05}", "长".repeat(30), value + 100);
                Arc::new(StringArray::from_iter_values(values.iter().map(long)))
            },
        ];
        assert_eq!(texts(-100), "k00000");
        for make in makes {
            let keys = make(values.clone());
            let is_cut = keys.as_string_opt::<i32>().is_some_and(|keys| keys.value(0).len() > 64);
            for (pages, grain) in [(true, 7), (false, 50)] {
                let footer = footer_of(&keys, pages);
                for lower in (-105..400).step_by(13).map(Some).chain([None]) {
                    for length in [Some(0), Some(1), Some(40), Some(1000), None] {
                        let upper = length.map(|length| lower.unwrap_or(-100) + length);
                        if lower.is_none() && upper.is_none() {
                            continue;
                        }
                        let one = |value: Option<i64>| value.map(|value| make(vec![value]));
                        let range = SortedRange { lower: one(lower), upper: one(upper) };
                        let span = span(&footer, &names(), &range).unwrap();
                        let wanted: Vec<usize> = (0..values.len())
                            .filter(|row| lower.is_none_or(|lower| values[*row] >= lower))
                            .filter(|row| upper.is_none_or(|upper| values[*row] <= upper))
                            .collect();
                        assert!(wanted.iter().all(|row| span.contains(row)), "{lower:?} {upper:?}: {span:?}");
                        assert!(is_cut || span.len() <= wanted.len() + 2 * grain, "{lower:?} {upper:?}: {span:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_told_is_not_guessed() {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let footer = footer_of(&keys, true);
        let of = |lower: ArrayRef| SortedRange { lower: Some(lower), upper: None };
        let long: ArrayRef = Arc::new(Int64Array::from(vec![60]));
        assert!(span(&footer, &names(), &of(Arc::clone(&long))).is_some());
        assert_eq!(span(&footer, &["other".to_string()], &of(long)), None);
        assert_eq!(span(&footer, &names(), &of(Arc::new(StringArray::from(vec!["60"])))), None);
        let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100).map(f64::from)));
        assert_eq!(span(&footer_of(&floats, true), &names(), &of(Arc::new(Float64Array::from(vec![60.0])))), None);
    }
}
