"""The join in Penstock."""

from __future__ import annotations

import shutil
import tempfile
import time
from typing import Any

import penstock as ps
from benchmarks.joins.turn import DISORDER, Answer, Job, take_turns
from benchmarks.trips import ENDS, LONGEST_HOURS, SLACK_MINUTES, STARTS

PAIR = "ts timestamp, key bigint, seq bigint, value double"


def _pairs(job: Job) -> Any:
    left, right = (
        ps.stream(side, PAIR, time="ts").read_parquet(job[side], order="name").disorder(DISORDER)
        for side in ("left", "right")
    )
    return left.join(right, on="key", within=None if job["band"] is None else f"{job['band']} ms")


def _trips(job: Job) -> Any:
    """With a band, time alone releases state; without one, what the streams say about trips does."""
    starts = ps.stream("starts", STARTS, time="ts").read_parquet(job["left"], order="name")
    ends = ps.stream("ends", ENDS, time="ts").read_parquet(job["right"], order="name")
    if job["band"] is None:
        return starts.punctuated().join(ends.punctuated(), on="trip")
    slack = f"{SLACK_MINUTES} min"
    return starts.disorder(slack).join(ends.disorder(slack), on="trip", between=(0, f"{LONGEST_HOURS} h"))


def run(spark: Any, job: Job) -> Answer:
    if job.pop("stretch", False):  # The other path too, which has workers of its own.
        with tempfile.TemporaryDirectory() as out:
            run(spark, {**job, "out": out, "settings": {"resident_below": 0}})
    checkpoint = tempfile.mkdtemp(prefix="penstock-")
    stamps: list[float] = []
    began = time.perf_counter()
    query = _trips(job) if job["kind"] == "trips" else _pairs(job)
    running = query.start(
        ps.parquet(job["out"]),
        trigger="available_now",
        checkpoint=checkpoint,
        max_rows=job["rows"],
        spark=spark,
        listener=lambda progress: stamps.append(time.perf_counter()),
        **job.get("settings", {}),
    ).wait()
    seconds = time.perf_counter() - began
    starts = [began, *stamps[:-1]]
    history = list(running.history)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {
        "seconds": seconds,
        "done": True,
        "epochs": [
            {"seconds": b - a, "rows": p.rows_in, "state_rows": p.state_rows, "state_bytes": p.state_bytes}
            for a, b, p in zip(starts, stamps, history, strict=True)
        ],
        "dropped": sum(running.progress.total_dead.values()) if running.progress else 0,
    }


def main() -> None:
    spark = ps.spark_session("local[2]", memory="4g")
    take_turns("penstock", lambda job: run(spark, job))
    spark.stop()


if __name__ == "__main__":
    main()
