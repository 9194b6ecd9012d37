"""The join in plain Structured Streaming, tuned for one machine with two cores."""

from __future__ import annotations

from typing import Any

from benchmarks.joins.turn import Answer, Job
from benchmarks.native import PARTITIONS, drain, take_spark_turns, tune
from benchmarks.trips import ENDS, LONGEST_HOURS, SLACK_MINUTES, STARTS

PAIR = "ts timestamp, key bigint, seq bigint, value double"

#: On top of what suits every query on a local disk.
SETTINGS = {
    PARTITIONS: "2",
    # An inner join has nothing to say when only the watermark moves.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def _stream(spark: Any, path: str, schema: str) -> Any:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)


def _pairs(spark: Any, job: Job) -> Any:
    from pyspark.sql import functions as sql

    left, right = (_stream(spark, job[side], PAIR) for side in ("left", "right"))
    right = right.select(*(sql.col(c).alias(f"{c}_right") for c in right.columns))
    on = left["key"] == right["key_right"]
    if job["band"] is not None:
        left, right = left.withWatermark("ts", "1 second"), right.withWatermark("ts_right", "1 second")
        width = f"make_dt_interval(0, 0, 0, {job['band'] / 1000})"
        on = on & sql.expr(f"ts_right BETWEEN ts - {width} AND ts + {width}")
    return left.join(right, on).drop("key_right")


def _trips(spark: Any, job: Job) -> Any:
    from pyspark.sql import functions as sql

    starts = _stream(spark, job["left"], STARTS)
    ends = _stream(spark, job["right"], ENDS).withColumnsRenamed({"trip": "trip_right", "ts": "ts_right"})
    on = starts["trip"] == ends["trip_right"]
    if job["band"] is not None:
        slack = f"{SLACK_MINUTES} minutes"
        starts, ends = starts.withWatermark("ts", slack), ends.withWatermark("ts_right", slack)
        on = on & sql.expr(f"ts_right BETWEEN ts AND ts + INTERVAL '{LONGEST_HOURS}' HOUR")
    return starts.join(ends, on).drop("trip_right")


def run(spark: Any, job: Job) -> Answer:
    tune(spark, job["store"], {**SETTINGS, **job.get("settings", {})})
    drained = drain(lambda: (_trips if job["kind"] == "trips" else _pairs)(spark, job), job)
    return {
        "seconds": drained.seconds,
        "done": drained.done,
        "epochs": [
            {
                "seconds": p["durationMs"]["triggerExecution"] / 1e3,
                "rows": p["numInputRows"],
                "state_rows": p["stateOperators"][0]["numRowsTotal"],
                "state_bytes": p["stateOperators"][0]["memoryUsedBytes"],
            }
            for p in drained.batches
        ],
        "dropped": sum(s["numRowsDroppedByWatermark"] for p in drained.batches for s in p["stateOperators"]),
    }


if __name__ == "__main__":
    take_spark_turns(run)
