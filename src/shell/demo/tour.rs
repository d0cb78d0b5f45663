//! The ten statements that tell the night of 2026-04-16.

use crate::shell::language::{Text, both};

/// A sentence, then what shows it: a statement or a backslash command.
pub const TOUR: &[(&str, &str)] = &[
    (
        "The job flink-cdc-pay commits payments at checkpoints; each commit is a snapshot with its user and identifier.",
        "SELECT snapshot_id AS id, commit_time, commit_user, commit_identifier AS checkpoint, commit_kind, \
         total_record_count AS raw_rows, delta_record_count AS delta\nFROM dwd_pay_success$snapshots ORDER BY id",
    ),
    (
        "What a reader gets now: one row a payment, whatever was written how often.",
        "SELECT dt, count(*) AS payments, sum(amount) AS amount FROM dwd_pay_success GROUP BY dt ORDER BY dt",
    ),
    (
        "At 09:58 the job failed and replayed checkpoint 118: raw rows went up by 61, final rows only by the ten new ones.",
        "SELECT 118 AS checkpoint, count(*) AS final_rows FROM dwd_pay_success AT (COMMIT => ('flink-cdc-pay', 118))\n\
         UNION ALL\nSELECT 119, count(*) FROM dwd_pay_success AT (COMMIT => ('flink-cdc-pay', 119))\nORDER BY checkpoint",
    ),
    (
        "Where the other rows are: superseded versions and tombstones, counted side by side, and the sum must close.",
        "\\counts dwd_pay_success@v4",
    ),
    (
        "Read at ten sharp, the last payments before ten are missing: their commit came three seconds late.",
        "SELECT count(*) AS payments, max(pay_time) AS last_payment\nFROM dwd_pay_success TIMESTAMP AS OF '2026-04-16 10:00:00+08:00'",
    ),
    (
        "Read at the watermark of ten, they are there: the watermark says what is complete, the clock does not.",
        "SELECT count(*) AS payments, max(pay_time) AS last_payment\n\
         FROM dwd_pay_success AT (WATERMARK => '2026-04-16 10:00:00+08:00')",
    ),
    (
        "At 10:20 a batch repaired three amounts; one table at two snapshots in one statement shows which.",
        "SELECT b.pay_id, b.amount AS before, a.amount AS after\n\
         FROM dwd_pay_success BEFORE (COMMIT => ('spark-fix-20260416-1', 1)) AS b\n\
         JOIN dwd_pay_success AT (COMMIT => ('spark-fix-20260416-1', 1)) AS a ON a.dt = b.dt AND a.pay_id = b.pay_id\n\
         WHERE a.amount <> b.amount ORDER BY b.pay_id",
    ),
    (
        "The orders stop at checkpoint 119: these payments have no order yet, which is lag and not loss.",
        "SELECT count(*) AS payments_without_order, min(p.pay_time) AS since\n\
         FROM dwd_pay_success p LEFT JOIN dwd_order_status o ON o.order_id = p.order_id WHERE o.order_id IS NULL",
    ),
    (
        "Compaction changed files and raw rows, not one final row.",
        "SELECT count(*) AS differences FROM (\n  (SELECT * FROM dwd_pay_success VERSION AS OF 'after-repair' EXCEPT SELECT * FROM dwd_pay_success)\n  \
         UNION ALL\n  (SELECT * FROM dwd_pay_success EXCEPT SELECT * FROM dwd_pay_success VERSION AS OF 'after-repair'))",
    ),
    (
        "And the proof of what was read: every file, kept or dropped, and the rule that decided.",
        "\\files SELECT * FROM dwd_pay_success VERSION AS OF 6 WHERE dt = '2026-04-16' AND pay_id = 'P0100'",
    ),
];

/// What greets in the shell.
pub const WELCOME: Text = both(
    "\
A night of payments, 2026-04-16 (+08:00), in database pay: dwd_pay_success and dwd_order_status.
  \\ds dwd_pay_success                      the commits: a failover, a late commit, a repair, a compaction
  select dt, count(*), sum(amount) from dwd_pay_success group by dt;
  \\counts dwd_pay_success@v4               where the replayed rows are
  \\pin dwd_pay_success tag:after-repair    read that snapshot from now on; \\unpin all
  select * from dwd_pay_success timestamp as of '2026-04-16 10:00:00+08:00' limit 5;
  explain files select * from dwd_pay_success where dt = '2026-04-16';
The whole tour: \\tour. Help: \\?
",
    "\
支付的一夜，2026-04-16（+08:00），库 pay：dwd_pay_success 与 dwd_order_status。
  \\ds dwd_pay_success                      提交：一次故障切换、一次迟到、一次修数、一次合并
  select dt, count(*), sum(amount) from dwd_pay_success group by dt;
  \\counts dwd_pay_success@v4               重放的行去了哪里
  \\pin dwd_pay_success tag:after-repair    从现在起读这个快照；\\unpin all 取消
  select * from dwd_pay_success timestamp as of '2026-04-16 10:00:00+08:00' limit 5;
  explain files select * from dwd_pay_success where dt = '2026-04-16';
完整导览：\\tour。帮助：\\?
",
);
