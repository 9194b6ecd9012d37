"""The windowed counts in Penstock: with nothing said of consistency, or at a corner of the dial."""

from __future__ import annotations

import shutil
import tempfile
import time
from typing import Any

import penstock as ps
from benchmarks.joins.turn import Answer, Job, take_turns


def run(spark: Any, job: Job) -> Answer:
    # A version of the code that knows no dial is told of none.
    dial: dict[str, Any] = {"consistency": ps.Consistency.parse(job["dial"])} if "dial" in job else {}
    stamps: list[float] = []
    checkpoint = tempfile.mkdtemp(prefix="penstock-")
    stream = ps.stream("bench", "ts timestamp, key int, value int", time="ts").read_parquet(job["data"], order="name")
    query = stream.disorder("10 s").window("10 s").group_by("key").agg(n="count(*)", s="sum(value)")
    began = time.perf_counter()
    query.start(
        ps.parquet(job["out"]),
        trigger="available_now",
        checkpoint=checkpoint,
        max_rows=job["rows"],
        spark=spark,
        listener=lambda progress: stamps.append(time.perf_counter()),
        **dial,
    ).wait()
    seconds = time.perf_counter() - began
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {"seconds": seconds, "done": True, "epochs": [b - a for a, b in zip([began, *stamps], stamps)]}


if __name__ == "__main__":
    session = ps.spark_session("local[2]", memory="4g")
    take_turns("penstock", lambda job: run(session, job))
    session.stop()
