"""The aggregate in DuckDB, in batch over all files at once. Division is its fast form; `time_bucket` takes longer."""

from __future__ import annotations

import time

import duckdb

from benchmarks.aggregates.workload import WINDOW_SECONDS
from benchmarks.joins.turn import Answer, Job, take_turns

WIDTH = WINDOW_SECONDS * 1_000_000


def run(job: Job) -> Answer:
    began = time.perf_counter()
    with duckdb.connect(config={"threads": 2}) as db:
        db.sql(
            f"COPY (SELECT w * {WIDTH} AS w, key, n, s FROM (SELECT epoch_us(ts) // {WIDTH} AS w, key, count(*) AS n, "
            f"sum(value) AS s FROM read_parquet('{job['data']}/*.parquet') GROUP BY ALL)) TO '{job['out']}/all.parquet'"
        )
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("duckdb", run)
