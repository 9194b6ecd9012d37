"""The aggregate in Penstock, queries that run until they are told to stop, and many groups held for long.

python -m benchmarks.aggregates.on_penstock [local[1]]    with one core it is kept from using the other
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.aggregates.workload import SCHEMA, WATERMARK_SECONDS, WINDOW_SECONDS
from benchmarks.joins.turn import Answer, Job, take_turns
from benchmarks.measure import cpu_seconds


def run(spark: Any, job: Job) -> Answer:
    if "stop" in job:
        return live(spark, job)
    if job.get("stretch"):  # The other path too, which has workers of its own.
        with tempfile.TemporaryDirectory() as out:
            whole(spark, {**job, "out": out, "settings": {"resident_below": 0}})
    return held(spark, job) if "more" in job else whole(spark, job)


def _windows(job: Job, width: str, disorder: str) -> Any:
    stream = ps.stream("bench", SCHEMA, time="ts").read_parquet(job["data"], order="name").disorder(disorder)
    functions = {"n": "count(*)", "s": "sum(value)"} if job.get("sum", True) else {"n": "count(*)"}
    return stream.window(width).group_by("key").agg(**functions)


def _timed(spark: Any, job: Job, query: Any, checkpoint: str) -> Answer:
    """All there is; the first epoch, which carries the start of the query, is not among those whose CPU is told."""
    stamps: list[float] = []
    first: list[float] = []

    def note(progress: Any) -> None:
        stamps.append(time.perf_counter())
        if not first:
            first.append(cpu_seconds(os.getpid()))

    began = time.perf_counter()
    running = query.start(
        ps.parquet(job["out"]),
        trigger="available_now",
        checkpoint=checkpoint,
        max_rows=job["rows_per_epoch"],
        spark=spark,
        listener=note,
        **job.get("settings", {}),
    ).wait()
    seconds = time.perf_counter() - began
    history = list(running.history)
    assert running.progress is not None
    starts = [began, *stamps[:-1]]
    return {
        "seconds": seconds,
        "done": True,
        "epochs": [b - a for a, b in zip(starts, stamps, strict=True)],
        "cpu_epoch": (cpu_seconds(os.getpid()) - first[0]) / max(1, len(stamps) - 1),
        "rows": running.progress.total_rows_in,
        "late": sum(running.progress.total_dead.values()),
        "state": max(p.state_bytes for p in history),
        "held": history[-1].state_rows,
        "paths": dict(Counter(p.path for p in history)),
    }


def whole(spark: Any, job: Job) -> Answer:
    checkpoint = tempfile.mkdtemp(prefix="penstock-")
    answer = _timed(spark, job, _windows(job, f"{WINDOW_SECONDS} s", f"{WATERMARK_SECONDS} s"), checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    if job.get("tell_code"):  # What the tasks have imported, should somebody compare versions.
        (answer["code"],) = spark.sparkContext.parallelize([0], 1).map(_code).collect()
    return answer


def _code(_: int) -> str:
    return str(importlib.import_module("penstock").__file__)


def held(spark: Any, job: Job) -> Answer:
    """First what is to be held; then `more` files, which are what is measured."""
    checkpoint = tempfile.mkdtemp(prefix="penstock-")
    query = _windows(job, "1000 days", f"{WATERMARK_SECONDS} s")
    filled = _timed(spark, {**job, "rows_per_epoch": job["fill"]}, query, checkpoint)
    for path in sorted(Path(job["more"]).glob("*.parquet")):
        os.link(path, Path(job["data"]) / path.name)
    answer = _timed(spark, job, query, checkpoint)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {**answer, "filled": filled["held"]}


def live(spark: Any, job: Job) -> Answer:
    """A filter or a window aggregate over files as they come, as fast as it can."""
    if job["query"] == "filter":
        query = ps.stream("bench", SCHEMA, time="ts").read_parquet(job["data"], order="name").where("value >= 0")
    else:
        query = _windows(job, "1 s", "0 s")
    checkpoint = tempfile.mkdtemp(prefix="penstock-")
    with query.start(ps.parquet(job["out"]), every="1 ms", checkpoint=checkpoint, spark=spark) as running:
        while not Path(job["stop"]).exists():
            running.wait(0.05)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {"done": True}


def main() -> None:
    master = sys.argv[1] if len(sys.argv) > 1 else "local[2]"
    if master == "local[1]":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spark = ps.spark_session(master, memory="4g")
    take_turns("penstock", lambda job: run(spark, job))
    spark.stop()


if __name__ == "__main__":
    main()
