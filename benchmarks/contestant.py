"""One contestant in a process of its own: it keeps its Spark session warm and waits while it is not its turn.

Reads one JSON job per line on standard input, answers with one JSON line. `python -m benchmarks.contestant native`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WINDOW_SECONDS = 10
WATERMARK_SECONDS = 1
SCHEMA = "ts timestamp, key int, value double"

#: What makes a native micro-batch cheap: no rename-free commit protocol and no checksum files on a local disk.
TUNED = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def native_session() -> Any:
    from pyspark.sql import SparkSession

    from penstock.engine.spark.java import find_java, launcher_home

    os.environ["JAVA_HOME"] = str(launcher_home(find_java()))
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        # Both cores read one file, as they do in the other contestant.
        "spark.sql.files.maxPartitionBytes": str(16 << 20),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def run_native(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    from pyspark.sql import functions as sql

    for key in (*TUNED, "spark.sql.streaming.stateStore.providerClass"):
        spark.conf.unset(key)
    if job.get("tuned", True):
        for key, value in TUNED.items():
            spark.conf.set(key, value)
    if job["store"] == "rocksdb":
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", str(job.get("partitions", 2)))
    folder = tempfile.mkdtemp(prefix="native-")
    began = time.perf_counter()
    frame = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(job["data"])
        .withWatermark("ts", f"{WATERMARK_SECONDS} seconds")
        .groupBy(sql.window("ts", f"{WINDOW_SECONDS} seconds"), "key")
        .agg(sql.count("*").alias("n"), sql.sum("value").alias("s"))
    )
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", f"{folder}/checkpoint")
    writer = (
        writer.format("noop") if job.get("sink") == "noop" else writer.format("parquet").option("path", f"{folder}/out")
    )
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    seconds = time.perf_counter() - began
    if query.exception() is not None:
        raise query.exception()
    batches = [p for p in query.recentProgress if p["numInputRows"]]
    state = max((s["memoryUsedBytes"] for p in query.recentProgress for s in p["stateOperators"]), default=0)
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "seconds": seconds,
        "epochs": [p["durationMs"]["triggerExecution"] / 1e3 for p in batches],
        "rows": sum(p["numInputRows"] for p in batches),
        "state_bytes": state,
    }


def run_penstock(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    import penstock as ps

    folder = tempfile.mkdtemp(prefix="penstock-")
    stamps: list[float] = []
    began = time.perf_counter()
    query = (
        ps.stream("bench", SCHEMA, time="ts")
        .read_parquet(job["data"], order="name")
        .disorder(f"{WATERMARK_SECONDS} s")
        .window(f"{WINDOW_SECONDS} s")
        .group_by("key")
        .agg(n="count(*)", s="sum(value)")
    )
    sink = ps.deliver(lambda rows, epoch: None) if job.get("sink") == "noop" else ps.parquet(f"{folder}/out")
    run = query.start(
        sink,
        trigger="available_now",
        checkpoint=f"{folder}/checkpoint",
        max_rows=job["rows_per_epoch"],
        spark=spark,
        listener=lambda p: stamps.append(time.perf_counter()),
        **job.get("settings", {}),
    ).wait()
    seconds = time.perf_counter() - began
    state = max((p.state_bytes for p in run.history), default=0)
    assert run.progress is not None
    shutil.rmtree(folder, ignore_errors=True)
    starts = [began, *stamps[:-1]]
    (code,) = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.modules["penstock"].__file__).collect()
    return {
        "code": code,  # What the tasks have imported, should somebody compare versions.
        "seconds": seconds,
        "epochs": [b - a for a, b in zip(starts, stamps, strict=True)],
        "rows": run.progress.total_rows_in,
        "late": sum(run.progress.total_dead.values()),
        "state_bytes": state,
    }


def run_duckdb(job: dict[str, Any]) -> dict[str, Any]:
    import duckdb

    began = time.perf_counter()
    with duckdb.connect(config={"threads": 2}) as db:
        folder = tempfile.mkdtemp(prefix="duckdb-")
        db.sql(
            f"COPY (SELECT time_bucket(INTERVAL '{WINDOW_SECONDS} seconds', ts) AS w, key, count(*) AS n, "
            f"sum(value) AS s FROM read_parquet('{job['data']}/*.parquet') GROUP BY ALL) TO '{folder}/out.parquet'"
        )
        rows = sum(1 for _ in ())
        shutil.rmtree(folder, ignore_errors=True)
    return {"seconds": time.perf_counter() - began, "epochs": [], "rows": rows, "state_bytes": 0}


def main() -> None:
    kind = sys.argv[1]
    # The JVM writes to standard output too; answers go to the real one, the rest to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark: Any = None
    if kind == "native":
        spark = native_session()
    elif kind == "penstock":
        import penstock as ps

        spark = ps.spark_session("local[2]", memory="4g")
    print(json.dumps({"ready": kind}), file=answers, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if kind == "native":
            answer = run_native(spark, job)
        elif kind == "penstock":
            answer = run_penstock(spark, job)
        else:
            answer = run_duckdb(job)
        print(json.dumps(answer), file=answers, flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    Path("/tmp").mkdir(exist_ok=True)
    main()
