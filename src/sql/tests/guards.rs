//! What can fail is computed only where other conditions leave the row.

use super::*;

const T: &str = "(VALUES (0, 1, 'x'), (1, 2, '5'), (2, 0, '7'), (NULL, 3, 'y')) t(k, j, s)";

#[tokio::test]
async fn a_condition_guards_what_would_fail() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let u = "(VALUES (1), (2)) u(x)";
    for (sql, right) in [
        (format!("SELECT k FROM {T} WHERE k <> 0 AND 10 / k > 5"), vec!["1"]),
        (format!("SELECT k FROM {T} WHERE 10 / k > 4 AND k <> 0"), vec!["1", "2"]),
        (format!("SELECT k FROM {T} WHERE k <> 0 AND 10 / k > 3 AND j <> 0 AND 10 / j > 3"), vec!["1"]),
        (format!("SELECT k FROM {T} WHERE s NOT IN ('x', 'y') AND CAST(s AS INT) > 5"), vec!["2"]),
        (format!("SELECT k FROM {T} WHERE k > 0 AND CAST(s AS INT) > 0 AND 35 / CAST(s AS INT) > 5"), vec!["1"]),
        (format!("SELECT k FROM {T} WHERE k = 0 OR 10 / k > 5"), vec!["0", "1"]),
        (format!("SELECT k FROM {T} WHERE NOT (k = 0 OR 10 / k > 5)"), vec!["2"]),
        (
            format!("SELECT k <> 0 AND 10 / k > 5, k = 0 OR 10 / k > 5 FROM {T}"),
            vec!["NULL,NULL", "false,false", "false,true", "true,true"],
        ),
        (format!("SELECT k FROM {T} WHERE CASE WHEN k <> 0 THEN 10 / k > 5 ELSE j = 1 END"), vec!["0", "1"]),
        (format!("SELECT k FROM {T} WHERE CASE WHEN k = 0 THEN false WHEN 10 / k > 5 THEN true END"), vec!["1"]),
        // inner queries
        (format!("SELECT k FROM (SELECT * FROM {T} WHERE k <> 0) v WHERE 10 / k > 5"), vec!["1"]),
        (format!("SELECT k FROM (SELECT k, 10 / k AS q FROM {T} WHERE k <> 0) v WHERE q > 5"), vec!["1"]),
        (
            format!("SELECT k FROM (SELECT k FROM {T} WHERE k <> 0 UNION ALL SELECT 5) v WHERE 10 / k > 1"),
            vec!["1", "2", "5"],
        ),
        (format!("SELECT k FROM (SELECT k FROM {T} GROUP BY k HAVING k <> 0) v WHERE 10 / k > 5"), vec!["1"]),
        // joins, groups
        (format!("SELECT k, x FROM {T} JOIN {u} ON k <> 0 AND 10 / k > x + 4"), vec!["1,1", "1,2"]),
        (
            format!("SELECT k, x FROM {T} LEFT JOIN {u} ON k <> 0 AND 10 / k > x * 4"),
            vec!["0,NULL", "1,1", "1,2", "2,1", "NULL,NULL"],
        ),
        (
            format!("SELECT k, x FROM {T} LEFT JOIN {u} ON k <> 0 AND 2 / k = x"),
            vec!["0,NULL", "1,2", "2,1", "NULL,NULL"],
        ),
        (format!("SELECT k, count(*) FROM {T} GROUP BY k HAVING k <> 0 AND 10 / k > 5"), vec!["1,1"]),
        (format!("SELECT count(*) FILTER (WHERE k <> 0 AND 10 / k > 5) FROM {T}"), vec!["1"]),
        (
            format!("SELECT k, sum(10 / k) FILTER (WHERE k <> 0) FROM {T} GROUP BY k"),
            vec!["0,NULL", "1,10", "2,5", "NULL,NULL"],
        ),
    ] {
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
    // and what nothing guards fails
    for condition in ["10 / k > 5", "10 / k > 5 OR k = 0 AND j = 5", "j < 3 AND 10 / k > 5"] {
        assert_eq!(code(&session, &format!("SELECT k FROM {T} WHERE {condition}")).await, "Execution", "{condition}");
    }
}

#[tokio::test]
async fn other_conditions_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("day", "STRING"), ("id", "INT"), ("v", "INT")])
        .partitioned_by(&["day"])
        .option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for (day, id) in [("1", 10), ("2", 20), ("3", 30), ("bad", 40)] {
        table.append(&[json!({"day": day, "id": id, "v": 0})]).unwrap();
    }
    let session = session_of(&dir).await;
    for (condition, files, found) in [
        ("id < 25 AND 10 / id > 0", 2, vec!["10"]),
        ("day <> 'bad' AND CAST(day AS INT) >= 2", 2, vec!["20", "30"]),
        // a partition is left out by what is said of partitions
        ("id > 0 AND day <> 'bad' AND CAST(day AS INT) = 2", 1, vec!["20"]),
        ("v <> 0 AND 10 / v > 0", 0, vec![]),
    ] {
        let result = session.run_one(&format!("SELECT id FROM t WHERE {condition}")).await.unwrap();
        assert_eq!(result.scanned.as_ref().map_or(0, |scanned| scanned.files), files, "{condition}");
        let (mut all, _) = all(result).await;
        all.sort();
        assert_eq!(all.concat(), found, "{condition}");
    }
    let plan = rows(&session, "EXPLAIN SELECT v FROM t WHERE id < 25 AND day = '1' AND v + 0.5 > 1").await.join("\n");
    assert!(!plan.contains("CASE") && plan.contains("full_filters"), "{plan}");
}
