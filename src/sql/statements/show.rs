//! `SHOW DATABASES` and `SHOW TABLES`.

use arrow::array::{BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::compute::kernels::comparison::like;

use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

/// Names of databases.
pub(crate) fn databases(names: &[String], pattern: Option<&str>) -> Result<RecordBatch> {
    let schema = cells::schema(&[("database_name", Kind::Text, true)]);
    let rows: Vec<Vec<Cell>> = names.iter().map(|name| vec![Cell::text(name)]).collect();
    matching(cells::batch(&schema, &rows)?, 0, pattern)
}

/// Tables of a database with what they are: `table`, `view`, `temporary`.
pub(crate) fn tables(database: &str, tables: &[(String, &str)], pattern: Option<&str>) -> Result<RecordBatch> {
    let schema = cells::schema(&[
        ("database_name", Kind::Text, true),
        ("table_name", Kind::Text, true),
        ("type", Kind::Text, true),
    ]);
    let rows: Vec<Vec<Cell>> =
        tables.iter().map(|(name, kind)| vec![Cell::text(database), Cell::text(name), Cell::text(*kind)]).collect();
    matching(cells::batch(&schema, &rows)?, 1, pattern)
}

fn matching(batch: RecordBatch, column: usize, pattern: Option<&str>) -> Result<RecordBatch> {
    let Some(pattern) = pattern else { return Ok(batch) };
    let keep: BooleanArray = match batch.columns().get(column) {
        Some(names) => like(names, &StringArray::new_scalar(pattern))?,
        None => return Ok(batch),
    };
    Ok(filter_record_batch(&batch, &keep)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_filters_names() {
        let names = ["orders".to_string(), "order_items".to_string(), "pay".to_string()];
        assert_eq!(databases(&names, Some("order%")).unwrap().num_rows(), 2);
        assert_eq!(databases(&names, None).unwrap().num_rows(), 3);
    }
}
