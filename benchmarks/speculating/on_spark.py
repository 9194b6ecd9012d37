"""The windowed counts in plain Structured Streaming, told once (append mode) or at once and again (update mode)."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.joins.turn import Answer, Job, take_turns
from benchmarks.native import PARTITIONS, native_session, tune


def run(spark: Any, job: Job) -> Answer:
    from pyspark.sql import functions as sql

    tune(spark, "default", {PARTITIONS: "1"})
    checkpoint = tempfile.mkdtemp(prefix="native-")
    began = time.perf_counter()
    counts = (
        spark.readStream.schema("ts timestamp, key int, value int")
        .option("maxFilesPerTrigger", 1)
        .parquet(job["data"])
        .withWatermark("ts", "10 seconds")
        .groupBy(sql.window("ts", "10 seconds"), "key")
        .agg(sql.count("*").alias("n"), sql.sum("value").alias("s"))
        .select(sql.col("window.start").alias("window_start"), "key", "n", "s")
        .writeStream.outputMode(job["mode"])
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
    )
    if job["mode"] == "append":
        running = counts.format("parquet").option("path", job["out"]).start()
    else:  # No file sink takes updates.
        out = Path(job["out"]) / "update"
        running = counts.foreachBatch(lambda frame, batch: frame.write.parquet(str(out / str(batch)))).start()
    running.awaitTermination()
    seconds = time.perf_counter() - began
    batches = [p for p in running.recentProgress if p["numInputRows"]]
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {"seconds": seconds, "done": True, "epochs": [p["durationMs"]["triggerExecution"] / 1e3 for p in batches]}


if __name__ == "__main__":
    session = native_session()
    take_turns("spark", lambda job: run(session, job))
    session.stop()
