#!/usr/bin/env python3
"""Makes the demo warehouse: a night of payments, written by the Java oracle, with commit times set to the story's.

    demo.py ORACLE OUT.tar.zst

ORACLE is the launcher that setup.sh makes. The story, all on 2026-04-16 (+08:00):

    09:50  checkpoints 116 to 118 bring payments, corrections and one withdrawal, orders follow
    09:58  the job fails after checkpoint 118 and restarts from 117: the rows of 118 come again (raw rows up, final equal)
    10:00  checkpoint 120, with payments made before ten, commits three seconds late
    10:20  a batch job repairs three amounts with absolute values
    10:30  compaction
    orders stop at checkpoint 119: payments are ahead of them
"""
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile

ZONE = datetime.timezone(datetime.timedelta(hours=8))
FLINK = "flink-cdc-pay"
ORDERS = "flink-cdc-order"


def at(clock):
    """Epoch milliseconds of a time of that morning."""
    return int(datetime.datetime.fromisoformat("2026-04-16T" + clock).replace(tzinfo=ZONE).timestamp() * 1000)


def stamp(clock):
    return "2026-04-16T" + clock


class Story:
    def __init__(self):
        self.random = random.Random(20260416)
        self.steps = []
        self.times = {"dwd_pay_success": [], "dwd_order_status": []}
        self.next = 1

    def payment(self, clock, dt="2026-04-16"):
        n = self.next
        self.next += 1
        cents = self.random.randrange(500, 90000)
        return {
            "pay_id": "P%04d" % n,
            "order_id": "O%04d" % n,
            "amount": "%d.%02d" % divmod(cents, 100),
            "pay_status": "SUCCESS",
            "channel": self.random.choice(["alipay", "wechat", "card"]),
            "pay_time": stamp(clock),
            "update_time": stamp(clock),
            "dt": dt,
        }

    def commit(self, table, rows, user, identifier, clock, watermark=None, kinds=1):
        step = {"op": "write", "table": table, "rows": rows, "user": user, "identifier": identifier,
                "options": {"write-only": "true"}}
        if watermark is not None:
            step["watermark"] = at(watermark)
        self.steps.append(step)
        self.times[table] += [at(clock)] * kinds

    def build(self):
        pay, order = "dwd_pay_success", "dwd_order_status"
        self.steps.append({
            "op": "create", "table": pay,
            "fields": [
                {"name": "pay_id", "type": "STRING NOT NULL"},
                {"name": "order_id", "type": "STRING"},
                {"name": "amount", "type": "DECIMAL(12, 2)"},
                {"name": "pay_status", "type": "STRING"},
                {"name": "channel", "type": "STRING"},
                {"name": "pay_time", "type": "TIMESTAMP(3)"},
                {"name": "update_time", "type": "TIMESTAMP(3)"},
                {"name": "dt", "type": "STRING NOT NULL"},
            ],
            "partition": ["dt"], "primary": ["dt", "pay_id"],
            "options": {"bucket": "2", "file.format": "parquet"},
        })
        self.steps.append({
            "op": "create", "table": order,
            "fields": [
                {"name": "order_id", "type": "STRING NOT NULL"},
                {"name": "status", "type": "STRING"},
                {"name": "update_time", "type": "TIMESTAMP(3)"},
            ],
            "primary": ["order_id"], "options": {"bucket": "1", "file.format": "parquet"},
        })

        def paid(rows, clock):
            return [{"order_id": r["order_id"], "status": "PAID", "update_time": stamp(clock)} for r in rows]

        yesterday = [self.payment("09:45:00.000", "2026-04-15") for _ in range(30)]
        first = yesterday + [self.payment("09:46:%02d.000" % (i % 60)) for i in range(60)]
        self.commit(pay, first, FLINK, 116, "09:50:00.412", "09:49:55.000")
        self.commit(order, paid(first, "09:46:59.000"), ORDERS, 116, "09:50:00.530", "09:49:55.000")

        second = [self.payment("09:52:%02d.000" % (i % 60)) for i in range(40)]
        fixed = []
        for row in first[30:36]:
            changed = dict(row, pay_status="REFUNDED", update_time=stamp("09:53:00.000"))
            fixed.append(changed)
        self.commit(pay, second + fixed, FLINK, 117, "09:55:00.388", "09:54:55.000")
        self.commit(order, paid(second, "09:52:59.000"), ORDERS, 117, "09:55:00.471", "09:54:55.000")

        third = [self.payment("09:56:%02d.000" % (i % 60)) for i in range(50)]
        gone = [dict(first[40], _ROW_KIND="-D")]
        self.commit(pay, third + gone, FLINK, 118, "09:57:30.207", "09:57:25.000")
        self.commit(order, paid(third, "09:56:59.000"), ORDERS, 118, "09:57:30.340", "09:57:25.000")

        # restart from checkpoint 117: what 118 brought comes once more, with a few rows of its own
        late = [self.payment("09:58:%02d.000" % i) for i in range(10)]
        self.commit(pay, third + gone + late, FLINK, 119, "09:59:10.655", "09:58:55.000")
        self.commit(order, paid(late, "09:58:30.000"), ORDERS, 119, "09:59:10.702", "09:58:55.000")

        # made before ten, committed after
        before_ten = [self.payment("09:59:%02d.000" % (30 + i)) for i in range(25)]
        self.commit(pay, before_ten, FLINK, 120, "10:00:03.118", "10:00:00.000")

        repaired = [dict(row, amount="%d.00" % (100 + i), update_time=stamp("10:20:00.000"))
                    for i, row in enumerate(second[:3])]
        self.commit(pay, repaired, "spark-fix-20260416-1", 1, "10:20:00.092")
        self.steps.append({"op": "tag", "table": pay, "name": "after-repair", "snapshot": 6})

        self.steps.append({"op": "compact", "table": pay, "full": True, "user": "compactor", "identifier": 1})
        # an empty APPEND, then the COMPACT
        self.times[pay] += [at("10:30:00.001"), at("10:30:00.240")]
        return self.steps


def main():
    oracle, out = sys.argv[1], os.path.abspath(sys.argv[2])
    story = Story()
    with tempfile.TemporaryDirectory() as work:
        warehouse = os.path.join(work, "warehouse")
        steps = os.path.join(work, "steps.jsonl")
        with open(steps, "w") as f:
            for step in story.build():
                f.write(json.dumps(step) + "\n")
        subprocess.run([oracle, "script", warehouse, "pay", steps], check=True, stderr=subprocess.DEVNULL)
        for table, times in story.times.items():
            root = os.path.join(warehouse, "pay.db", table)
            ids = sorted(int(n[9:]) for n in os.listdir(os.path.join(root, "snapshot")) if n.startswith("snapshot-"))
            assert ids == list(range(1, len(times) + 1)), (table, ids, times)
            paths = [os.path.join(root, "snapshot", "snapshot-%d" % i) for i in ids]
            tags = os.path.join(root, "tag")
            if os.path.isdir(tags):
                paths += [os.path.join(tags, name) for name in sorted(os.listdir(tags))]
            for path in paths:
                with open(path) as f:
                    document = json.load(f)
                document["timeMillis"] = times[document["id"] - 1]
                with open(path, "w") as f:
                    json.dump(document, f, indent=2)
            schema = os.path.join(root, "schema", "schema-0")
            with open(schema) as f:
                document = json.load(f)
            document["timeMillis"] = at("09:40:00.000")
            with open(schema, "w") as f:
                json.dump(document, f, indent=2)
        for folder, _, names in os.walk(warehouse):
            for name in names:
                if name.endswith(".crc"):
                    os.remove(os.path.join(folder, name))
        subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=2026-04-16 00:00Z",
                        "--zstd", "-cf", out, "-C", work, "warehouse"], check=True)


if __name__ == "__main__":
    main()
