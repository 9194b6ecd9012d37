"""The aggregate in plain Structured Streaming, and queries that run until they are told to stop."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.aggregates.workload import SCHEMA, WATERMARK_SECONDS, WINDOW_SECONDS
from benchmarks.joins.turn import Answer, Job, take_turns
from benchmarks.native import native_session, tune


def run(spark: Any, job: Job) -> Answer:
    return live(spark, job) if "stop" in job else whole(spark, job)


def whole(spark: Any, job: Job) -> Answer:
    """All files, one a micro-batch."""
    from pyspark.sql import functions as sql

    tune(spark, job["store"], job["settings"])
    checkpoint = tempfile.mkdtemp(prefix="native-")
    began = time.perf_counter()
    frame = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(job["data"])
        .withWatermark("ts", f"{WATERMARK_SECONDS} seconds")
        .groupBy(sql.window("ts", f"{WINDOW_SECONDS} seconds"), "key")
        .agg(sql.count("*").alias("n"), sql.sum("value").alias("s"))
    )
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", checkpoint).format("parquet")
    query = writer.option("path", job["out"]).trigger(availableNow=True).start()
    done = query.awaitTermination(job["limit"])
    seconds = time.perf_counter() - began
    if not done:
        query.stop()
    if query.exception() is not None:
        raise query.exception()
    batches = [p for p in query.recentProgress if p["numInputRows"]]
    state = max((s["memoryUsedBytes"] for p in query.recentProgress for s in p["stateOperators"]), default=0)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {
        "seconds": seconds,
        "done": bool(done),
        "epochs": [p["durationMs"]["triggerExecution"] / 1e3 for p in batches],
        "rows": sum(p["numInputRows"] for p in batches),
        "state": state,
    }


def live(spark: Any, job: Job) -> Answer:
    """A filter or a window aggregate over files as they come, as fast as it can."""
    from pyspark.sql import functions as sql

    tune(spark, "default", job["settings"], tuned=job["tuned"])
    checkpoint = tempfile.mkdtemp(prefix="native-")
    rows = spark.readStream.schema(SCHEMA).parquet(job["data"])
    if job["query"] == "filter":
        frame = rows.where("value >= 0")
    else:
        groups = rows.withWatermark("ts", "0 seconds").groupBy(sql.window("ts", "1 second"), "key")
        counted = groups.agg(sql.count("*").alias("n"), sql.sum("value").alias("s"))
        frame = counted.select(sql.col("window.start").alias("window_start"), "key", "n", "s")
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", checkpoint).format("parquet")
    query = writer.option("path", job["out"]).start()
    while not Path(job["stop"]).exists() and query.isActive:
        time.sleep(0.05)
    query.stop()
    if query.exception() is not None:
        raise query.exception()
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {"done": True}


def main() -> None:
    spark = native_session()
    take_turns("spark", lambda job: run(spark, job))
    spark.stop()


if __name__ == "__main__":
    main()
