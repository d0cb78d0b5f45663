"""Makes writers.tar.zst: small tables in which two writers of the format differ from each other, or from what readers
expect. ORACLE is the folder of sqllogictest/oracle/setup.sh --python, OUT an empty one:

    python3 writers.py ORACLE OUT && tar -C OUT --zstd -cf writers.tar.zst golden
"""

import json
import pathlib
import subprocess
import sys

oracle, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
warehouse = out / "golden" / "writers"
warehouse.mkdir(parents=True)
steps = []


def create(table, fields, primary=None, partition=None, **options):
    step = {
        "op": "create",
        "table": table,
        "fields": [{"name": name, "type": data_type} for name, data_type in fields],
        "options": {key.replace("_", "-"): str(value) for key, value in options.items()},
    }
    if primary:
        step["primary"] = primary
    if partition:
        step["partition"] = partition
    steps.append(step)


def write(table, rows, identifier, **options):
    step = {"op": "write", "table": table, "rows": rows, "identifier": identifier, "user": "java"}
    steps.append(step | ({"options": options} if options else {}))


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    print(done.stdout, done.stderr[-2000:] if done.returncode else "")
    done.check_returncode()


# Java's Parquet writer counts no nulls in a chunk whose bounds are long
LONG = [("k", "INT"), ("s", "STRING"), ("b", "VARBINARY(10000)")]
ROWS = [{"k": 1, "s": "a" * 5000, "b": None}, {"k": 2, "s": None, "b": "61" * 5000}, {"k": 3, "s": "z" * 5000, "b": "7a" * 5000}]
create("long_append", LONG, bucket=-1)
write("long_append", ROWS, 1)
KEYED = [("k", "INT NOT NULL"), *LONG[1:]]
create("long_keyed", KEYED, primary=["k"], bucket=1)
write("long_keyed", ROWS, 1)
write("long_keyed", [{"k": 1, "s": None, "b": None}, {"k": 4, "s": "z" * 5000, "b": None}], 2)

# pypaimon hashes NULL and the digits below a microsecond of these types in another way than Java
TIMES = ["1969-12-31T23:59:59.999999999", "2024-05-06T07:08:09.123456789", "2024-05-06T07:08:09.123456", None]
HASHED = {
    "decimal": ("DECIMAL(30, 5)", ["1.50000", "-99999999999999999999.12345", None]),
    "ts6": ("TIMESTAMP(6)", ["1969-12-31T23:59:59.999999", "2024-05-06T07:08:09.123456", None]),
    "ltz6": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", ["1969-12-31T23:59:59.999999Z", "2024-05-06T07:08:09.123456Z", None]),
    "ts9": ("TIMESTAMP(9)", TIMES),
    "double": ("DOUBLE", [0.5, -0.0, 0.0, None]),
    "text": ("STRING", ["a", "", "订单", None]),
}
for name, (data_type, values) in HASHED.items():
    for writer in ("java", "python"):
        create(f"bucket_{name}_{writer}", [("v", "INT"), ("c", data_type)], bucket=7, bucket_key="c")
    write(f"bucket_{name}_java", [{"v": at, "c": value} for at, value in enumerate(values)], 1)

# manifest lists with ranges of buckets, and a branch that lacks a partition of the table
create("ranges", [("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "INT")], ["p", "k"], ["p"], bucket=4)
write("ranges", [{"k": 0, "p": "old", "v": 0}], 1)
steps.append({"op": "tag", "table": "ranges", "name": "t0", "snapshot": 1})
steps.append({"op": "branch", "table": "ranges", "name": "fb", "tag": "t0"})
write("ranges$branch_fb", [{"k": k, "p": "x", "v": 0} for k in range(20)], 2)

# numbers and dates that DataFusion would compare with loss
create("numbers", [("k", "INT"), ("d", "DOUBLE"), ("f", "FLOAT"), ("day", "DATE"), ("m", "DECIMAL(12, 2)")], bucket=-1)
write(
    "numbers",
    [
        {"k": 1, "d": 1e-20, "f": 1e-9, "day": "2024-02-29", "m": "0.10"},
        {"k": 2, "d": 0.9999999999999999, "f": 0.5, "day": "9999-12-31", "m": "1.00"},
        {"k": 3, "d": 1.7976931348623157e308, "f": 1e7, "day": "0001-01-01", "m": "-1.50"},
        {"k": 4, "d": 0.0, "f": 0.0, "day": None, "m": "0.00"},
        {"k": 5, "d": "NaN", "f": "Infinity", "day": "1970-01-01", "m": None},
    ],
    1,
)

# two retracts of a key and nothing else in one commit: Java folds them into a row whose ordinary key columns are empty
KEYS = [("k", "INT NOT NULL"), ("name", "STRING NOT NULL"), ("g", "INT"), ("v", "INT"), ("w", "INT")]
GROUPS = {"merge-engine": "partial-update", "fields.g.sequence-group": "v", "file.format": "orc"}
create("lost_key", KEYS, ["k", "name"], bucket=1, **GROUPS)
write("lost_key", [{"k": k, "name": f"n{k}", "g": 1, "v": k * 10, "w": k} for k in range(1, 6)], 1, **{"write-only": "true"})
GONE = [{"k": k, "name": f"n{k}", "g": g, "v": k * 10, "w": 9, "_ROW_KIND": "-D"} for k in (2, 4) for g in (2, 3)]
write("lost_key", [*GONE, {"k": 3, "name": "n3", "g": 5, "v": 33, "w": None}], 2, **{"write-only": "true"})

script = out / "steps.jsonl"
script.write_text("".join(json.dumps(step) + "\n" for step in steps))
run(oracle / "oracle", "script", warehouse, "golden", script)


def modern(table, rows, identifier):
    file = out / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(oracle / "modern", "write", warehouse, "golden", table, file, "--user=python", f"--identifier={identifier}")


for name, (_, values) in HASHED.items():
    modern(f"bucket_{name}_python", [{"v": at, "c": value} for at, value in enumerate(values)], 1)
for k in range(1, 7):
    modern("ranges", [{"k": k, "p": "x" if k < 2 else f"y{k}", "v": k}], k + 10)
