"""The demo's query in plain Structured Streaming, for comparison: same files, same session, tuned fairly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.portal.flights import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class NativeRun:
    """What Structured Streaming did and what it told about it."""

    seconds: float
    rows: int
    batches: int
    dropped: int
    peak_state_rows: int
    peak_state_bytes: int
    state_rows: int
    result: pa.Table


def run_native(spark: SparkSession, folder: Path, work: Path, slack: str) -> NativeRun:
    """Run the query over everything in `folder`, one file per micro-batch, results to Parquet."""
    from pyspark.sql import functions as F  # noqa: N812

    # One shuffle partition per core and no adaptive plans, which streaming ignores anyway, is what serves it best here.
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    out = work / "results"
    began = time.perf_counter()
    try:
        counted = (
            spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 2)  # larger batches than our epochs suit it: fewer of them
            .parquet(str(folder))
            .withWatermark("sched", slack)
            .groupBy(F.window("sched", "1 hour"), "origin")
            .agg(
                F.count("dep_delay").alias("departures"),
                (F.count(F.lit(1)) - F.count("dep_delay")).alias("cancelled"),
                F.avg("dep_delay").alias("mean_delay"),
            )
            .select(F.col("window.start").alias("window_start"), "origin", "departures", "cancelled", "mean_delay")
        )
        running = (
            counted.writeStream.outputMode("append")
            .trigger(availableNow=True)
            .option("checkpointLocation", str(work / "checkpoint"))
            .format("parquet")
            .start(str(out))
        )
        while not running.awaitTermination(1):  # In small steps, so that Ctrl-C is heard.
            pass
        seconds = time.perf_counter() - began
        history = [_plain(p) for p in running.recentProgress]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "200")
    states = [s for p in history for s in p["stateOperators"]]
    return NativeRun(
        seconds=seconds,
        rows=sum(p["numInputRows"] for p in history),
        batches=len({p["batchId"] for p in history}),
        dropped=sum(s["numRowsDroppedByWatermark"] for s in states),
        peak_state_rows=max((s["numRowsTotal"] for s in states), default=0),
        peak_state_bytes=max((s["memoryUsedBytes"] for s in states), default=0),
        state_rows=states[-1]["numRowsTotal"] if states else 0,
        result=_read(out),
    )


def _plain(progress: Any) -> dict[str, Any]:
    """Progress as a dict; a class of its own since Spark 4."""
    import json

    found: dict[str, Any] = progress if isinstance(progress, dict) else json.loads(progress.json)
    return found


def _read(folder: Path) -> pa.Table:
    # `_spark_metadata` names the files that count; after a run without a crash these are all there are.
    tables = [pq.read_table(p) for p in sorted(folder.glob("part-*.parquet"))]
    whole = pa.concat_tables(tables)
    naive = whole["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return whole.set_column(whole.schema.get_field_index("window_start"), "window_start", naive)
