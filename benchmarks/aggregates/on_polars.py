"""The aggregate in Polars, in batch over all files at once, by its streaming engine. In an environment of its own."""

from __future__ import annotations

import os
import time

# Read when the library is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl

from benchmarks.joins.turn import Answer, Job, take_turns

WIDTH = 10_000_000


def run(job: Job) -> Answer:
    began = time.perf_counter()
    window = (pl.col("ts").dt.epoch("us") // WIDTH).alias("w")
    groups = (
        pl.scan_parquet(f"{job['data']}/*.parquet")
        .group_by(window, "key")
        .agg(pl.len().alias("n"), pl.col("value").sum().alias("s"))
        .with_columns(pl.col("w") * WIDTH)
    )
    groups.sink_parquet(f"{job['out']}/all.parquet")
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("polars", run)
