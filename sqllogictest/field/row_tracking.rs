//! Row ids and the sequence numbers of rows in append tables.

use std::fs;

use lakepin::testing::builder::{FileSpec, TableSpec};
use serde_json::{Value, json};

use super::edit::{data_files, entries};
use super::kit::{Done, Lake, OrText, expect, named};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    named!(tests, "row_tracking", stored_row_ids_and_numbers_go_before_those_of_the_file, row_ids_count_physical_rows,);
}

fn tracked() -> TableSpec {
    TableSpec::new(&[("id", "INT")]).option("row-tracking.enabled", "true")
}

async fn stored_row_ids_and_numbers_go_before_those_of_the_file(lake: Lake) -> Done {
    // a file of a table that has the columns of row tracking as its own
    let stored = TableSpec::new(&[("id", "INT"), ("_ROW_ID", "BIGINT"), ("_SEQUENCE_NUMBER", "BIGINT")]);
    let mut source = lake.table("source", &stored)?;
    let row = |id: i64, row_id: Value, number: Value| json!({"id": id, "_ROW_ID": row_id, "_SEQUENCE_NUMBER": number});
    source
        .append(&[row(1, json!(7), json!(9)), row(2, json!(3), json!(8)), row(3, json!(null), json!(null))])
        .text()?;
    let file = data_files(source.root()).pop().ok_or("no data file")?;
    let mut t = lake.table("t", &tracked())?;
    let rows = [1, 2, 3].map(|id| json!({"id": id, "_SEQUENCE_NUMBER": id}));
    t.append(&rows).text()?;
    let size = fs::metadata(&file).text()?.len();
    let own = data_files(t.root()).pop().ok_or("no data file")?;
    fs::copy(&file, &own).text()?;
    entries(t.root(), 1, |entry| {
        entry.file.file_size = size;
        entry.file.first_row_id = Some(100);
    })?;
    // and one without them
    let rows = [(4, 1), (5, 4)].map(|(id, number)| json!({"id": id, "_SEQUENCE_NUMBER": number}));
    t.append(&rows).text()?;
    entries(t.root(), 2, |entry| {
        let bounds = (entry.file.min_sequence_number, entry.file.max_sequence_number);
        if bounds == (1, 4) {
            entry.file.first_row_id = Some(200);
        }
    })?;
    let s = lake.session().await?;
    let sql = "SELECT id, \"_ROW_ID\", \"_SEQUENCE_NUMBER\" FROM t$row_tracking";
    expect(&s, sql, &["1|7|9", "2|3|8", "3|102|3", "4|200|4", "5|201|4"]).await?;
    expect(&s, &format!("{sql} WHERE \"_ROW_ID\" = 3"), &["2|3|8"]).await?;
    expect(&s, &format!("{sql} WHERE \"_SEQUENCE_NUMBER\" = 4"), &["4|200|4", "5|201|4"]).await?;
    expect(&s, "SELECT * FROM t", &["1", "2", "3", "4", "5"]).await
}

async fn row_ids_count_physical_rows(lake: Lake) -> Done {
    let mut t = lake.table("t", &tracked().option("deletion-vectors.enabled", "true"))?;
    let rows: Vec<Value> = (0..6).map(|id| json!({"id": id})).collect();
    t.commit().file(FileSpec::rows(&rows).row_group_rows(3)).publish().text()?;
    entries(t.root(), 1, |entry| entry.file.first_row_id = Some(10))?;
    let file = t.live_files().text()?.pop().ok_or("no file")?.file.file_name;
    t.commit().delete_positions(&file, &[1, 4]).publish().text()?;
    let s = lake.session().await?;
    let sql = "SELECT id, \"_ROW_ID\" FROM t$row_tracking";
    let all = ["0|10", "2|12", "3|13", "5|15"];
    expect(&s, sql, &all).await?;
    // the first row group goes, the vector's rows stay away
    expect(&s, &format!("{sql} WHERE id >= 3"), &all[2..]).await?;
    expect(&s, &format!("{sql} WHERE id > 3"), &all[3..]).await?;
    expect(&s, &format!("{sql} WHERE id IN (1, 2, 5)"), &[all[1], all[3]]).await
}
