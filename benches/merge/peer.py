"""Asks the peer the same queries: reads `name<TAB>sql` lines, prints `name<TAB>least processor ms<TAB>rows` for each.

Usage: peer.py WAREHOUSE RUNS. Needs pypaimon-rust and pyarrow.
"""

import resource
import sys

from pypaimon_rust.datafusion import SQLContext


def processor_ms():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1000


def main():
    warehouse, runs = sys.argv[1], int(sys.argv[2])
    context = SQLContext()
    context.register_catalog("lake", {"metastore": "filesystem", "warehouse": warehouse}, default_database="d")
    context.set_current_catalog("lake")
    context.set_current_database("d")
    for line in sys.stdin:
        name, sql = line.rstrip("\n").split("\t")
        least, rows = None, 0
        for _ in range(runs):
            began = processor_ms()
            rows = sum(batch.num_rows for batch in context.sql(sql))
            took = processor_ms() - began
            least = took if least is None else min(least, took)
        print(f"{name}\t{least:.2f}\t{rows}", flush=True)


main()
