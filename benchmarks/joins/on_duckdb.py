"""The join in DuckDB, in batch over all files at once: the ceiling."""

from __future__ import annotations

import time

import duckdb

from benchmarks.joins.turn import Answer, Job, take_turns

COLUMNS = "l.*, r.ts AS ts_right, r.seq AS seq_right, r.value AS value_right"


def answer(job: Job, query: str) -> Answer:
    """What a query takes until its results are written."""
    began = time.perf_counter()
    with duckdb.connect(config={"threads": 2}) as db:
        db.sql(f"COPY ({query}) TO '{job['out']}/all.parquet'")
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


def run(job: Job) -> Answer:
    # In whole numbers, which is faster than with intervals.
    apart, width = "epoch_us(r.ts) - epoch_us(l.ts)", 1000 * (job["band"] or 0)
    band = "" if job["band"] is None else f"AND {apart} BETWEEN -{width} AND {width}"
    left, right = (f"'{job[side]}/*.parquet'" for side in ("left", "right"))
    return answer(job, f"SELECT {COLUMNS} FROM {left} l JOIN {right} r ON l.key = r.key {band}")


if __name__ == "__main__":
    take_turns("duckdb", run)
