//! Golden tables of the reference implementations.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PLAIN, WAYS, Way, rows, session};
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::error::{Error, ErrorKind, Result};
use crate::query::{LakeTable, QueryEnv};
use crate::snapshot::{Pin, PinRequest, Table};
use crate::testing::golden;

/// All tables of the golden warehouses.
async fn tables() -> Result<Vec<Arc<Table>>> {
    let mut tables = Vec::new();
    for warehouse in [golden::java_warehouse()?, golden::python_warehouse()?] {
        let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await?;
        for name in catalog.list_tables("golden").await? {
            tables.push(catalog.table("golden", &name).await?);
        }
    }
    Ok(tables)
}

async fn pins(table: &Arc<Table>) -> Result<Vec<Arc<Pin>>> {
    let mut pins = vec![Pin::resolve(table, PinRequest::Latest, &BTreeMap::new()).await?];
    let ids = table.snapshot_ids().await?;
    // the golden harness reads all of them; here the ways of reading are compared
    let wanted = if full_scale() { ids.len() } else { 0 };
    for id in ids.into_iter().rev().skip(1).take(wanted) {
        pins.push(Pin::resolve(table, PinRequest::SnapshotId(id.0), &BTreeMap::new()).await?);
    }
    Ok(pins)
}

fn full_scale() -> bool {
    std::env::var("LAKEPIN_SCALE").is_ok_and(|scale| scale == "full")
}

/// Tables of which some reads are refused, a word of the reason, and whether their latest state is among them: one that
/// is compacted combines nothing.
const REFUSED: &[(&str, &str, bool)] = &[
    ("golden.pk_agg_sketch", "aggregate function", false),
    ("golden.append_blob", ".blob file", true),
    ("golden.append_data_evolution", "data-evolution", true),
];

/// Whether the table is listed, and this is why.
fn is_refused(table: &str, error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported
        && REFUSED.iter().any(|(name, word, _)| *name == table && error.to_string().contains(word))
}

#[tokio::test]
async fn every_way_of_reading_a_golden_table_gives_the_same_rows() {
    let env = QueryEnv::new();
    let (mut read, mut refused) = (0, Vec::new());
    let mut wrong = Vec::new();
    for table in tables().await.expect("golden tables") {
        let pins = match pins(&table).await {
            Ok(pins) => pins,
            Err(error) => {
                wrong.push(format!("{}: it cannot be pinned: {error:?}", table.name()));
                continue;
            }
        };
        for pin in pins {
            let name = format!("{} {:?}", table.name(), pin.snapshot.as_ref().map(|s| s.id));
            let lake = LakeTable::try_new(Arc::clone(&pin), Arc::clone(&env)).expect("a view");
            let columns: Vec<String> =
                pin.schema.fields.iter().map(|field| format!("\"{}\"", field.name.replace('"', "\"\""))).collect();
            let narrow = columns.last().cloned().unwrap_or_default();
            let first = columns.first().cloned().unwrap_or_default();
            let queries = [
                format!("SELECT {} FROM t", columns.join(", ")),
                format!("SELECT {narrow} FROM t"),
                "SELECT count(*) FROM t".to_string(),
                format!(
                    "SELECT count(*), count({narrow}), min({first}), max({first}) FROM t WHERE {first} IS NOT NULL"
                ),
                format!("SELECT {narrow} FROM t WHERE {first} IS NULL OR {first} = (SELECT min({first}) FROM t)"),
            ];
            let take = |way: Way| {
                let (lake, queries, table) = (lake.clone(), queries.clone(), table.name().to_string());
                async move {
                    let context = session(way);
                    context.register_table("t", Arc::new(lake)).expect("registers");
                    let mut all = Vec::new();
                    for query in &queries {
                        all.push(match rows(&context, query).await {
                            Ok(rows) => Ok(rows),
                            Err(error) if is_refused(&table, &error) => Err(format!("refused: {}", error.message())),
                            Err(error) => Err(format!("{error:?}")),
                        });
                    }
                    all
                }
            };
            let plain = take(PLAIN).await;
            for (query, result) in queries.iter().zip(&plain) {
                match result {
                    Ok(_) => read += 1,
                    Err(text) if text.starts_with("refused: ") => refused.push(format!("{name}: {query}: {text}")),
                    Err(text) => wrong.push(format!("{name}: {query}: {text}")),
                }
            }
            // the whole table and its count agree
            if let (Some(Ok(all)), Some(Ok(count))) = (plain.first(), plain.get(2))
                && *count != [all.len().to_string()]
            {
                wrong.push(format!("{name}: {} rows, count(*) says {count:?}", all.len()));
            }
            let ways = if full_scale() { WAYS.to_vec() } else { vec![WAYS[0], WAYS[2]] };
            for way in ways {
                let other = take(way).await;
                for ((query, one), two) in queries.iter().zip(&plain).zip(&other) {
                    let same = match (one, two) {
                        (Ok(one), Ok(two)) => one == two,
                        (Err(one), Err(two)) => one == two,
                        _ => false,
                    };
                    if !same {
                        wrong.push(format!("{name}: {way:?}: {query}\n  {one:?}\n  {two:?}"));
                    }
                }
            }
        }
    }
    println!("{read} queries read, {} refused", refused.len());
    for line in &refused {
        println!("  {}", line.chars().take(600).collect::<String>());
    }
    for line in wrong.iter().take(40) {
        println!("WRONG {}", line.chars().take(1500).collect::<String>());
    }
    assert!(wrong.is_empty(), "{} differ", wrong.len());
    for (table, _, _) in REFUSED.iter().filter(|(_, _, latest)| *latest || full_scale()) {
        assert!(refused.iter().any(|line| line.starts_with(table)), "{table} is listed and not refused");
    }
    assert!(read > 400, "only {read} queries were read");
}
