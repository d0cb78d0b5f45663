//! The ten statements that tell the night of 2026-04-16.

use crate::shell::language::{Text, both};

/// A sentence, then what shows it: a statement or a backslash command.
pub const TOUR: &[(Text, &str)] = &[
    (
        both(
            "The job flink-cdc-pay commits payments at checkpoints; each commit is a snapshot with its user and identifier.",
            "作业 flink-cdc-pay 在每个检查点提交支付记录；每次提交是一个快照，带着提交者和提交号。",
        ),
        "SELECT snapshot_id AS id, commit_time, commit_user, commit_identifier AS checkpoint, commit_kind, \
         total_record_count AS raw_rows, delta_record_count AS delta\nFROM dwd_pay_success$snapshots ORDER BY id",
    ),
    (
        both(
            "What a reader gets now: one row a payment, whatever was written how often.",
            "现在读到的：每笔支付一行，不管写过几次、写成过什么样。",
        ),
        "SELECT dt, count(*) AS payments, sum(amount) AS amount FROM dwd_pay_success GROUP BY dt ORDER BY dt",
    ),
    (
        both(
            "At 09:58 the job failed and replayed checkpoint 118: raw rows went up by 61, final rows only by the ten new ones.",
            "09:58 作业失败，重放了检查点 118：原始行多了 61，最终行只多了新来的十行。",
        ),
        "SELECT 118 AS checkpoint, count(*) AS final_rows FROM dwd_pay_success AT (COMMIT => ('flink-cdc-pay', 118))\n\
         UNION ALL\nSELECT 119, count(*) FROM dwd_pay_success AT (COMMIT => ('flink-cdc-pay', 119))\nORDER BY checkpoint",
    ),
    (
        both(
            "Where the other rows are: superseded versions and tombstones, counted side by side, and the sum must close.",
            "其余的行去了哪里：被覆盖的旧版本和墓碑，逐项数清，合计必须对上。",
        ),
        "\\counts dwd_pay_success@v4",
    ),
    (
        both(
            "Read at ten sharp, the last payments before ten are missing: their commit came three seconds late.",
            "整十点读，缺了十点之前的最后几笔：它们的提交晚到了三秒。",
        ),
        "SELECT count(*) AS payments, max(pay_time) AS last_payment\nFROM dwd_pay_success TIMESTAMP AS OF '2026-04-16 10:00:00+08:00'",
    ),
    (
        both(
            "Read at the watermark of ten, they are there: the watermark says what is complete, the clock does not.",
            "按十点的水位读，它们都在：数据到没到齐，看水位，不看时钟。",
        ),
        "SELECT count(*) AS payments, max(pay_time) AS last_payment\n\
         FROM dwd_pay_success AT (WATERMARK => '2026-04-16 10:00:00+08:00')",
    ),
    (
        both(
            "At 10:20 a batch repaired three amounts; one table at two snapshots in one statement shows which.",
            "10:20 一个批作业改正了三笔金额；一条语句里把同一张表的两个快照放在一起，就看得出是哪三笔。",
        ),
        "SELECT b.pay_id, b.amount AS before, a.amount AS after\n\
         FROM dwd_pay_success BEFORE (COMMIT => ('spark-fix-20260416-1', 1)) AS b\n\
         JOIN dwd_pay_success AT (COMMIT => ('spark-fix-20260416-1', 1)) AS a ON a.dt = b.dt AND a.pay_id = b.pay_id\n\
         WHERE a.amount <> b.amount ORDER BY b.pay_id",
    ),
    (
        both(
            "The orders stop at checkpoint 119: these payments have no order yet, which is lag and not loss.",
            "订单停在检查点 119：这些支付还没有订单，是延迟，不是丢失。",
        ),
        "SELECT count(*) AS payments_without_order, min(p.pay_time) AS since\n\
         FROM dwd_pay_success p LEFT JOIN dwd_order_status o ON o.order_id = p.order_id WHERE o.order_id IS NULL",
    ),
    (
        both(
            "Compaction changed files and raw rows, not one final row.",
            "合并（compaction）换了文件，也改变了原始行数，最终行一行没变。",
        ),
        "SELECT count(*) AS differences FROM (\n  (SELECT * FROM dwd_pay_success VERSION AS OF 'after-repair' EXCEPT SELECT * FROM dwd_pay_success)\n  \
         UNION ALL\n  (SELECT * FROM dwd_pay_success EXCEPT SELECT * FROM dwd_pay_success VERSION AS OF 'after-repair'))",
    ),
    (
        both(
            "And the proof of what was read: every file, kept or dropped, and the rule that decided.",
            "最后是读到了什么的证据：每个文件读了还是跳过，依据哪条规则。",
        ),
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
