//! Many manifests and files: what a filter leaves of them, and what metadata tells.

use super::*;
use crate::testing::builder::{WIDE_BUCKETS, WIDE_ROWS, wide_table};

const MANIFESTS: i64 = 60;
const FILES: i64 = 100;

#[tokio::test]
async fn a_filter_leaves_few_of_many_manifests_and_files() {
    let dir = tempfile::tempdir().unwrap();
    wide_table(dir.path(), "pay", "t", MANIFESTS, FILES).unwrap();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, [(MANIFESTS * FILES * WIDE_ROWS).to_string()]);
    let per_day = rows(&session, "SELECT dt, count(*) FROM t GROUP BY dt").await;
    assert_eq!((per_day.len() as i64, per_day[0].as_str()), (MANIFESTS, "2024-0000,100000"));
    // key 4711 may be in one file of each day, and only where its bucket is also its hash's
    for (filter, manifests, most) in [
        ("", MANIFESTS, MANIFESTS * FILES),
        ("WHERE dt = '2024-0050'", 1, FILES),
        ("WHERE dt >= '2024-0050'", 10, 10 * FILES),
        ("WHERE dt = '2024-0050' AND id = 4711", 1, 1),
        ("WHERE id = 4711", MANIFESTS, MANIFESTS),
        ("WHERE id BETWEEN 4000 AND 5999", MANIFESTS, 2 * MANIFESTS),
        ("WHERE dt = 'never'", 0, 0),
    ] {
        let plan = rows(&session, &format!("EXPLAIN SELECT sum(v) FROM t {filter}")).await.join("\n");
        let number = |name: &str| -> i64 {
            let at = plan.find(name).unwrap_or_else(|| panic!("{filter}: {plan}")) + name.len();
            plan[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
        };
        let exact = !filter.contains("4711");
        let files = number("files=");
        assert!(if exact { files == most } else { files <= most }, "{filter}: {files} of {most} files\n{plan}");
        if most > 0 {
            // `manifests=60 (59 pruned)`
            let pruned = if plan.contains(" pruned), files=") { number("manifests=60 (") } else { 0 };
            assert_eq!(number("manifests=") - pruned, manifests, "{filter}\n{plan}");
        }
    }
    assert_eq!(
        rows(&session, "SELECT count(*) FROM t$buckets").await,
        [(MANIFESTS * i64::from(WIDE_BUCKETS)).to_string()]
    );
}
