"""The join in DuckDB, in batch over all files at once: the ceiling."""

from __future__ import annotations

import time

import duckdb

from benchmarks.joins.turn import Answer, Job, take_turns

COLUMNS = "l.*, r.ts AS ts_right, r.seq AS seq_right, r.value AS value_right"


def run(job: Job) -> Answer:
    began = time.perf_counter()
    # In whole numbers, which is faster than with intervals.
    apart, width = "epoch_us(r.ts) - epoch_us(l.ts)", 1000 * (job["band"] or 0)
    band = "" if job["band"] is None else f"AND {apart} BETWEEN -{width} AND {width}"
    with duckdb.connect(config={"threads": 2}) as db:
        db.sql(
            f"COPY (SELECT {COLUMNS} FROM '{job['left']}/*.parquet' l JOIN '{job['right']}/*.parquet' r "
            f"ON l.key = r.key {band}) TO '{job['out']}/all.parquet'"
        )
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("duckdb", run)
