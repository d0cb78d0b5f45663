//! Conditions over values that a source holds and that cannot be read.

use super::passes::Memory;
use super::*;

/// `id`, `day`, `paid`, `v`; NULL is a value that could not be read, in the source.
fn rows(rows: &[(i64, i64, Option<i64>, i64)]) -> RecordBatch {
    batch(vec![
        ("id", longs(rows.iter().map(|row| row.0))),
        ("day", longs(rows.iter().map(|row| row.1))),
        ("paid", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>())),
        ("v", longs(rows.iter().map(|row| row.3))),
    ])
}

fn source(of: &[(i64, i64, Option<i64>, i64)]) -> Side {
    let unread = of.iter().filter(|row| row.2.is_none()).map(|row| (row.0, "paid", "0000-00-00"));
    Side::of_source(Arc::new(Memory { unread: unread.collect(), ..Memory::new(rows(of), "id") }))
}

#[tokio::test]
async fn a_row_whose_condition_cannot_be_told_does_not_vanish() {
    let lake = [(1, 15, Some(5), 1), (2, 16, Some(6), 2)];
    let theirs = [(1, 15, Some(5), 1), (2, 16, Some(6), 2), (7, 16, None, 7)];
    let found = async |condition: &str| {
        let (left, right) = (filtered(side("lake", &rows(&lake)), condition), filtered(source(&theirs), condition));
        compared(left, right, by(&["id"])).await.unwrap()
    };
    for (condition, equal) in [
        ("paid <= 10", 2),
        ("NOT paid > 10", 2),
        ("paid IS NULL", 0),
        ("paid IS NOT NULL", 2),
        ("coalesce(paid, 99) < 10", 2),
        ("paid BETWEEN 5 AND 6 AND day = 16", 1),
        ("paid IN (5, 6) OR day = 15", 2),
        ("NOT (day = 15 AND paid = 5)", 1),
    ] {
        let report = found(condition).await;
        // the last one leaves no doubt: the row is of another day
        let class = if condition.starts_with("NOT (") { "MISSING_IN_LAKE" } else { "UNREADABLE" };
        assert_eq!(told(&report), (vec![(class, 1)], equal), "{condition}: {report:?}");
        assert_eq!(report.verdict, Verdict::Different);
    }
    let report = found("paid <= 10").await;
    let cell = report.examples[0].cells.iter().find(|cell| cell.column == "paid").unwrap();
    assert_eq!(cell.right.as_deref(), Some("0000-00-00"), "{report:?}");
    // where what is read decides, nothing is unreadable
    assert_eq!(found("paid <= 10 AND day = 15").await.verdict, Verdict::Equal);
    assert_eq!(told(&found("paid > 100 OR day > 14").await), (vec![("MISSING_IN_LAKE", 1)], 2));
}

#[tokio::test]
async fn a_key_of_both_sides_whose_condition_cannot_be_told_is_unreadable_and_not_equal() {
    // the time is not compared, and in the lake it meets the condition in one row alone
    let lake = [(1, 15, Some(5), 1), (2, 15, Some(99), 2), (3, 15, Some(5), 3), (3, 15, Some(5), 4)];
    let theirs = [(1, 15, None, 1), (2, 15, None, 2), (3, 15, Some(5), 3), (3, 15, Some(5), 4)];
    let (left, right) = (filtered(side("lake", &rows(&lake)), "paid < 10"), filtered(source(&theirs), "paid < 10"));
    let mut options = by(&["id"]);
    options.wanted.columns = Some(vec!["v".to_string()]);
    options.wanted.context = vec!["paid".to_string()];
    let report = compared(left, right, options).await.unwrap();
    let expected = vec![("UNREADABLE", 2), ("DUP_SOURCE", 1), ("DUP_LAKE", 1)];
    assert_eq!(told(&report), (expected, 2), "{report:?}");
    let shown = report.examples.iter().filter(|one| one.class == Class::Unreadable).flat_map(|one| &one.cells);
    assert_eq!(shown.filter(|cell| cell.right.as_deref() == Some("0000-00-00")).count(), 2, "{report:?}");
}
