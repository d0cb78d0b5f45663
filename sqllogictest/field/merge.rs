//! Merging: ties, deletes, groups, first rows, many runs.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use lakepin::ErrorKind;
use lakepin::spec::CommitKind;
use lakepin::sql::SessionConfig;
use lakepin::testing::builder::{FileSpec, TableSpec};
use serde_json::{Value, json};

use super::kit::{Done, Lake, OrText, ask, cases, check, config, expect, full_scale, refused, rows, says};
use crate::harness::Test;

pub fn register(tests: &mut Vec<Test>) {
    cases!(
        tests, "case",
        B059 equal_sequence_values_the_later_write_wins,
        B062 files_with_the_same_sequence_are_both_read,
        B063 vectors_decide_before_sequences,
        B064 a_key_comes_back_after_its_delete,
        B066 sequence_groups_are_independent,
        B068 sequence_and_key_columns_are_not_aggregated,
        B070 the_first_row_wins_and_level_0_is_announced,
        B091 hundreds_of_runs_in_bounded_memory,
    );
}

fn keyed(columns: &[(&str, &str)]) -> TableSpec {
    TableSpec::new(columns).primary_key(&["k"]).option("bucket", "1")
}

async fn equal_sequence_values_the_later_write_wins(lake: Lake) -> Done {
    let columns = [("k", "INT NOT NULL"), ("ts", "INT"), ("v", "STRING")];
    let spec = keyed(&columns).option("sequence.field", "ts");
    let row = |ts: Value, v: &str| json!({"k": 1, "ts": ts, "v": v});
    let mut two = lake.table("two", &spec)?;
    two.append(&[row(json!(5), "a")]).text()?;
    two.append(&[row(json!(5), "b")]).text()?;
    let mut one = lake.table("one", &spec)?;
    let files = [FileSpec::rows(&[row(json!(5), "a")]), FileSpec::rows(&[row(json!(5), "b")])];
    one.commit().file(files[0].clone()).file(files[1].clone()).publish().text()?;
    let mut old = lake.table("old", &spec)?;
    old.append(&[row(json!(7), "a")]).text()?;
    old.append(&[row(json!(5), "b")]).text()?;
    old.append(&[row(json!(null), "c")]).text()?;
    let mut compacted = lake.table("compacted", &spec)?;
    compacted.commit().file(FileSpec::rows(&[row(json!(5), "a")]).level(5)).publish().text()?;
    compacted.append(&[row(json!(5), "b")]).text()?;
    let mut down = lake.table("down", &spec.clone().option("sequence.field.sort-order", "descending"))?;
    down.append(&[row(json!(5), "a")]).text()?;
    down.append(&[row(json!(7), "b")]).text()?;
    down.append(&[row(json!(5), "c")]).text()?;
    down.append(&[row(json!(null), "d")]).text()?;
    let s = lake.session().await?;
    for (table, right) in
        [("two", "1|5|b"), ("one", "1|5|b"), ("old", "1|7|a"), ("compacted", "1|5|b"), ("down", "1|5|c")]
    {
        expect(&s, &format!("SELECT * FROM {table}"), &[right]).await?;
        // not projected, the sequence column still decides
        let v = &right[4..];
        expect(&s, &format!("SELECT v FROM {table}"), &[v]).await?;
        expect(&s, &format!("SELECT count(*) FROM {table} WHERE v <> '{v}'"), &["0"]).await?;
    }
    Ok(())
}

async fn files_with_the_same_sequence_are_both_read(lake: Lake) -> Done {
    let mut t = lake.table("t", &keyed(&[("k", "INT NOT NULL"), ("v", "STRING")]))?;
    let file = |keys: std::ops::Range<i64>, v: &str| {
        let rows: Vec<Value> =
            keys.clone().map(|k| json!({"k": k, "v": v, "_SEQUENCE_NUMBER": k - keys.start})).collect();
        FileSpec::rows(&rows)
    };
    // equal sizes, equal sequence ranges
    t.commit().file(file(1..4, "a")).file(file(4..7, "b")).file(file(7..10, "c")).publish().text()?;
    t.commit().file(file(1..4, "d")).publish().text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT count(*), count(DISTINCT k) FROM t", &["9|9"]).await?;
    expect(&s, "SELECT v, count(*) FROM t WHERE k > 3 GROUP BY v", &["b|3", "c|3"]).await?;
    // the same key with the same sequence number: some winner, but always the same one
    let winner = rows(&s, "SELECT k, v FROM t").await?;
    for (partitions, batch) in [(1, 1), (2, 7), (8, 8192), (1, 8192)] {
        let s = lake
            .session_with(SessionConfig { target_partitions: Some(partitions), batch_size: Some(batch), ..config() })
            .await?;
        check(rows(&s, "SELECT k, v FROM t").await? == winner, "the winner depends on how it is read")?;
        check(rows(&s, "SELECT k, v FROM t WHERE v <> 'x'").await? == winner, "the winner depends on the filter")?;
        let count = rows(&s, "SELECT count(*) FROM t WHERE v = 'a' OR v = 'd'").await?;
        check(count == ["3"], format!("{count:?}"))?;
    }
    Ok(())
}

async fn vectors_decide_before_sequences(lake: Lake) -> Done {
    let columns = [("k", "INT NOT NULL"), ("ts", "INT"), ("v", "STRING")];
    let spec = keyed(&columns).option("sequence.field", "ts").option("deletion-vectors.enabled", "true");
    let mut t = lake.table("t", &spec)?;
    let row = |k: i64, ts: i64, v: &str| json!({"k": k, "ts": ts, "v": v});
    t.commit()
        .file(FileSpec::rows(&[row(1, 9, "old"), row(2, 5, "two"), row(3, 1, "three")]).level(5))
        .publish()
        .text()?;
    let base = t.live_files().text()?[0].file.file_name.clone();
    // key 1: the writer decided for the row of the lower level, whatever its sequence
    t.commit()
        .file(FileSpec::rows(&[row(1, 3, "new"), row(4, 1, "four")]).level(4))
        .delete_positions(&base, &[0])
        .kind(CommitKind::Compact)
        .publish()
        .text()?;
    t.append(&[row(1, 20, "ahead"), row(5, 1, "five")]).text()?;
    let s = lake.session().await?;
    let right = ["1|3|new", "2|5|two", "3|1|three", "4|1|four"];
    expect(&s, "SELECT * FROM t", &right).await?;
    expect(&s, "SELECT count(*) FROM t", &["4"]).await?;
    expect(&s, "SELECT * FROM t WHERE v = 'old'", &[]).await?;
    expect(&s, "SELECT v FROM t WHERE k = 1", &["new"]).await?;
    let answer = ask(&s, "SELECT * FROM t").await.text()?;
    check(answer.notice_says(&["level 0"]), format!("level 0 is ahead, nobody says so: {:?}", answer.notices))
}

async fn a_key_comes_back_after_its_delete(lake: Lake) -> Done {
    let columns = [("k", "INT NOT NULL"), ("a", "INT"), ("b", "INT"), ("c", "INT")];
    let spec = keyed(&columns)
        .option("merge-engine", "partial-update")
        .option("partial-update.remove-record-on-delete", "true");
    let row = |b: i64, c: Value, kind: &str| json!({"k": 1, "a": 1, "b": b, "c": c, "_ROW_KIND": kind});
    let delete = json!({"k": 1, "a": null, "b": null, "c": null, "_ROW_KIND": "-D"});
    for (name, level) in [("t", 0), ("compacted", 5)] {
        let mut t = lake.table(name, &spec)?;
        t.commit().file(FileSpec::rows(&[row(1, json!(1), "+I")]).level(level)).publish().text()?;
        t.append(std::slice::from_ref(&delete)).text()?;
        t.append(&[row(2, json!(null), "+I")]).text()?;
        let s = lake.session().await?;
        expect(&s, &format!("SELECT * FROM {name} VERSION AS OF 1"), &["1|1|1|1"]).await?;
        expect(&s, &format!("SELECT * FROM {name} VERSION AS OF 2"), &[]).await?;
        expect(&s, &format!("SELECT * FROM {name}"), &["1|1|2|NULL"]).await?;
        expect(&s, &format!("SELECT c FROM {name} WHERE c IS NULL"), &["NULL"]).await?;
        expect(&s, &format!("SELECT count(*) FROM {name}"), &["1"]).await?;
    }
    // without the option a delete between others is an error, not a guess
    let mut strict = lake.table("strict", &keyed(&columns).option("merge-engine", "partial-update"))?;
    strict.append(&[row(1, json!(1), "+I")]).text()?;
    strict.append(std::slice::from_ref(&delete)).text()?;
    let s = lake.session().await?;
    let error =
        refused(&s, "SELECT * FROM strict", ErrorKind::Unsupported, &["partial-update.remove-record-on-delete"])
            .await?;
    check(error.code() == "RetractUnsupported", format!("{error:?}"))
}

async fn sequence_groups_are_independent(lake: Lake) -> Done {
    let columns =
        [("k", "INT NOT NULL"), ("a", "INT"), ("b", "INT"), ("g1", "INT"), ("c", "INT"), ("d", "INT"), ("g2", "INT")];
    let spec = keyed(&columns)
        .option("merge-engine", "partial-update")
        .option("fields.g1.sequence-group", "a,b")
        .option("fields.g2.sequence-group", "c,d");
    let mut t = lake.table("t", &spec)?;
    let n = Value::Null;
    let steps = [
        ([json!(1), json!(1), json!(1), json!(1), json!(1), json!(1)], "1|1|1|1|1|1|1"),
        // an accepted NULL overwrites; a group whose sequence is NULL is skipped
        ([json!(2), n.clone(), json!(2), json!(2), json!(2), n.clone()], "1|2|NULL|2|1|1|1"),
        // out of order in one group, newer in the other
        ([json!(9), json!(9), json!(1), json!(3), n.clone(), json!(2)], "1|2|NULL|2|3|NULL|2"),
        // equal: the later write
        ([json!(7), json!(7), json!(2), n.clone(), n.clone(), n.clone()], "1|7|7|2|3|NULL|2"),
    ];
    for (values, _) in &steps {
        let mut row = json!({"k": 1});
        for ((column, _), value) in columns[1..].iter().zip(values) {
            row[*column] = value.clone();
        }
        t.append(&[row]).text()?;
    }
    let s = lake.session().await?;
    for (at, (_, right)) in steps.iter().enumerate() {
        let version = format!("t VERSION AS OF {}", at + 1);
        expect(&s, &format!("SELECT * FROM {version}"), &[right]).await?;
        // the same for every projection: the groups' sequences are read though not asked for
        let cells: Vec<&str> = right.split('|').collect();
        for (column, cell) in columns.iter().map(|c| c.0).zip(cells) {
            expect(&s, &format!("SELECT {column} FROM {version}"), &[cell]).await?;
        }
        let (b, d) = (right.split('|').nth(2).unwrap_or_default(), right.split('|').nth(5).unwrap_or_default());
        expect(&s, &format!("SELECT d, b FROM {version}"), &[&format!("{d}|{b}")]).await?;
    }
    Ok(())
}

async fn sequence_and_key_columns_are_not_aggregated(lake: Lake) -> Done {
    let columns = [("k", "INT NOT NULL"), ("v", "INT"), ("ts", "INT")];
    let spec = keyed(&columns)
        .option("merge-engine", "aggregation")
        .option("fields.default-aggregate-function", "sum")
        .option("sequence.field", "ts");
    for (name, times) in [("up", [5, 7]), ("down", [7, 5])] {
        let mut t = lake.table(name, &spec)?;
        for (v, ts) in [10, 1].into_iter().zip(times) {
            t.append(&[json!({"k": 4, "v": v, "ts": ts})]).text()?;
        }
        let s = lake.session().await?;
        expect(&s, &format!("SELECT * FROM {name}"), &["4|11|7"]).await?;
        expect(&s, &format!("SELECT ts FROM {name}"), &["7"]).await?;
        expect(&s, &format!("SELECT k FROM {name} WHERE v = 11"), &["4"]).await?;
    }
    Ok(())
}

async fn the_first_row_wins_and_level_0_is_announced(lake: Lake) -> Done {
    let spec = keyed(&[("k", "INT NOT NULL"), ("v", "STRING")]).option("merge-engine", "first-row");
    let row = |k: i64, v: &str| json!({"k": k, "v": v});
    let mut t = lake.table("t", &spec)?;
    t.commit().file(FileSpec::rows(&[row(1, "a"), row(2, "x")]).level(5)).kind(CommitKind::Compact).publish().text()?;
    t.append(&[row(1, "b"), row(3, "new")]).text()?;
    // compacted in steps: what came later under a known key was dropped on the way up from level 0
    let mut steps = lake.table("steps", &spec)?;
    let (first, second) =
        (FileSpec::rows(&[row(1, "a"), row(9, "z")]).level(5), FileSpec::rows(&[row(2, "c")]).level(4));
    steps.commit().file(first).file(second).kind(CommitKind::Compact).publish().text()?;
    let mut zero = lake.table("zero", &spec)?;
    zero.append(&[row(1, "a")]).text()?;
    zero.append(&[row(1, "b")]).text()?;
    let s = lake.session().await?;
    expect(&s, "SELECT * FROM t", &["1|a", "2|x"]).await?;
    expect(&s, "SELECT * FROM t WHERE v = 'b'", &[]).await?;
    expect(&s, "SELECT count(*) FROM t", &["2"]).await?;
    expect(&s, "SELECT * FROM steps", &["1|a", "2|c", "9|z"]).await?;
    expect(&s, "SELECT * FROM steps WHERE v = 'b'", &[]).await?;
    for table in ["zero", "t"] {
        let answer = ask(&s, &format!("SELECT * FROM {table}")).await.text()?;
        check(answer.notice_says(&["level 0", "2 rows"]), format!("{table}: {:?}", answer.notices))?;
    }
    expect(&s, "SELECT * FROM zero", &[]).await?;
    let counted = ask(&s, "SELECT count(*) FROM zero").await.text()?;
    check(counted.rows() == ["0"] && counted.notice_says(&["level 0"]), format!("{:?}", counted.notices))?;
    // who asks for it gets level 0 merged in, where the table's rules leave that to the reader
    let spec = keyed(&[("k", "INT NOT NULL"), ("v", "STRING")]).option("deletion-vectors.enabled", "true");
    let mut dv = lake.table("dv", &spec)?;
    dv.commit()
        .file(FileSpec::rows(&[row(1, "a"), row(2, "x")]).level(5))
        .kind(CommitKind::Compact)
        .publish()
        .text()?;
    dv.append(&[row(1, "b"), row(3, "new")]).text()?;
    let merged = "/*+ OPTIONS('deletion-vectors.merge-on-read'='true') */";
    expect(&s, "SELECT * FROM dv", &["1|a", "2|x"]).await?;
    expect(&s, &format!("SELECT * FROM dv {merged}"), &["1|b", "2|x", "3|new"]).await?;
    expect(&s, &format!("SELECT * FROM dv {merged} WHERE v = 'a'"), &[]).await?;
    expect(&s, &format!("SELECT count(*) FROM dv {merged}"), &["3"]).await?;
    expect(&s, "SELECT * FROM dv", &["1|a", "2|x"]).await?;
    let first = ask(&s, &format!("SELECT * FROM t {merged}")).await.text()?;
    check(first.rows() == ["1|a", "2|x"] && first.notice_says(&["level 0"]), format!("{:?}", first.notices))?;
    let Err(error) = ask(&s, "SELECT * FROM t /*+ OPTIONS('batch-scan-mode'='compact') */").await else {
        return Err("a scan mode that no reader may choose was taken".to_string());
    };
    let way_out = error.hint().is_some_and(|hint| hint.contains("merge-on-read") && hint.contains("paimon_delta"));
    check(error.code() == "FixedOption" && way_out, format!("{error:?}"))
}

fn int32(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(values.map(|value| i32::try_from(value).ok()).collect::<Int32Array>())
}

async fn hundreds_of_runs_in_bounded_memory(lake: Lake) -> Done {
    let (files, per_file) = if full_scale() { (600, 50_000) } else { (600, 40) };
    let spec = keyed(&[("k", "INT NOT NULL"), ("v", "INT"), ("pad", "STRING")]);
    let mut runs = lake.table("runs", &spec)?;
    let mut apart = lake.table("apart", &spec)?;
    let file_of = |start: i64, step: i64, file: i64| -> Result<FileSpec, String> {
        let rows = 0..per_file;
        let columns: [(&str, ArrayRef, bool); 5] = [
            ("k", int32(rows.clone().map(|i| start + i * step)), false),
            ("v", int32(rows.clone().map(|_| file)), true),
            ("pad", Arc::new(StringArray::from_iter_values(rows.clone().map(|_| "x".repeat(20)))), true),
            (
                "_SEQUENCE_NUMBER",
                Arc::new(Int64Array::from_iter_values(rows.clone().map(|i| file * per_file + i))),
                false,
            ),
            ("_VALUE_KIND", Arc::new(Int8Array::from_iter_values(rows.map(|_| 0))), false),
        ];
        // keys ascend already
        Ok(FileSpec::batches(vec![RecordBatch::try_from_iter_with_nullable(columns).text()?]).bucket(0).keep_order())
    };
    // a few files a commit: the rows of all of them do not fit into memory
    for first in (0..files).step_by(20) {
        let (mut overlapping, mut disjoint) = (runs.commit(), apart.commit());
        for file in first..files.min(first + 20) {
            overlapping = overlapping.file(file_of(0, 1 + file % 3, file)?);
            disjoint = disjoint.file(file_of(file * per_file, 1, file)?);
        }
        overlapping.publish().text()?;
        disjoint.publish().text()?;
    }
    let s = lake.session_with(SessionConfig { memory_limit: Some(64 << 20), ..config() }).await?;
    let all = files * per_file;
    expect(&s, "SELECT count(*), count(DISTINCT v) FROM apart", &[&format!("{all}|{files}")]).await?;
    // the last file of each step wins where it has the key
    let (mut keys, mut sum) = (0, 0);
    for k in 0..3 * per_file {
        let last = |step: i64| (0..files).rev().find(|file| 1 + file % 3 == step);
        let has = |step: i64| k % step == 0 && k / step < per_file;
        if let Some(winner) = (1..=3).filter(|step| has(*step)).filter_map(last).max() {
            keys += 1;
            sum += winner;
        }
    }
    let right = format!("{keys}|{sum}");
    let sql = "SELECT count(*), sum(v) FROM runs";
    match ask(&s, sql).await {
        Ok(answer) => check(answer.rows() == [right.clone()], format!("read {:?}, right {right}", answer.rows()))?,
        // 600 runs of 50 000 rows may need more than there is, and then say of what there was too much
        Err(error) if full_scale() => {
            says(&error, ErrorKind::Exhausted, &["merging", " runs needs", "bucket"])?;
            check(error.code() == "ResourcesExhausted", format!("{error:?}"))?;
        }
        Err(error) => return Err(format!("{sql}\n  {error:?}")),
    }
    if !full_scale() {
        // two runs need little, however many files there are
        let s = lake.session_with(SessionConfig { memory_limit: Some(8 << 20), ..config() }).await?;
        expect(&s, "SELECT count(v), min(k), max(k) FROM apart", &[&format!("{all}|0|{}", all - 1)]).await?;
    }
    Ok(())
}
