"""The join in Polars, in batch over all files at once, by its streaming engine. In an environment of its own."""

from __future__ import annotations

import os
import time

# Read when the library is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl

from benchmarks.joins.turn import Answer, Job, take_turns


def run(job: Job) -> Answer:
    began = time.perf_counter()
    left, right = (pl.scan_parquet(f"{job[side]}/*.parquet") for side in ("left", "right"))
    pairs = left.join(right, on="key", suffix="_right")
    if job["band"] is not None:
        apart = pl.col("ts_right").dt.epoch("us") - pl.col("ts").dt.epoch("us")
        pairs = pairs.filter(apart.is_between(-1000 * job["band"], 1000 * job["band"]))
    pairs.sink_parquet(f"{job['out']}/all.parquet")
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("polars", run)
