"""The aggregate in plain Structured Streaming, and queries that run until they are told to stop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.aggregates.workload import SCHEMA, WATERMARK_SECONDS, WINDOW_SECONDS
from benchmarks.joins.turn import Answer, Job
from benchmarks.native import drain, take_spark_turns, tune, written


def run(spark: Any, job: Job) -> Answer:
    return live(spark, job) if "stop" in job else whole(spark, job)


def whole(spark: Any, job: Job) -> Answer:
    """All files, one a micro-batch."""
    from pyspark.sql import functions as sql

    tune(spark, job["store"], job["settings"])
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    drained = drain(
        lambda: (
            rows.parquet(job["data"])
            .withWatermark("ts", f"{WATERMARK_SECONDS} seconds")
            .groupBy(sql.window("ts", f"{WINDOW_SECONDS} seconds"), "key")
            .agg(sql.count("*").alias("n"), sql.sum("value").alias("s"))
        ),
        job,
    )
    return {
        "seconds": drained.seconds,
        "done": drained.done,
        "epochs": [p["durationMs"]["triggerExecution"] / 1e3 for p in drained.batches],
        "rows": sum(p["numInputRows"] for p in drained.batches),
        "state": max((s["memoryUsedBytes"] for p in drained.progress for s in p["stateOperators"]), default=0),
    }


def live(spark: Any, job: Job) -> Answer:
    """A filter or a window aggregate over files as they come, as fast as it can."""
    from pyspark.sql import functions as sql

    tune(spark, "default", job["settings"], tuned=job["tuned"])
    rows = spark.readStream.schema(SCHEMA).parquet(job["data"])
    if job["query"] == "filter":
        frame = rows.where("value >= 0")
    else:
        groups = rows.withWatermark("ts", "0 seconds").groupBy(sql.window("ts", "1 second"), "key")
        counted = groups.agg(sql.count("*").alias("n"), sql.sum("value").alias("s"))
        frame = counted.select(sql.col("window.start").alias("window_start"), "key", "n", "s")
    with written(frame, job) as query:
        while not Path(job["stop"]).exists() and query.isActive:
            time.sleep(0.05)
    return {"done": True}


if __name__ == "__main__":
    take_spark_turns(run)
