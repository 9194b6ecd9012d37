"""(d) Two weeks of flights from New York, as they became known: who is right, and when.

Departures, cancellations and mean delay by airport and hour of scheduled departure. A result is right from when it was
told its last value, if this is what a batch over all of them says; when is counted in the time in which flights became
known, from the end of the hour. Structured Streaming runs the same with watermarks: in append mode a result is told
once, in update mode at once and again, without a word about what it replaces. The last two days are left out: nobody
has closed them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.joins.turn import Answer, Job, take_turns
from benchmarks.native import PARTITIONS, native_session, tune
from benchmarks.process import Process
from penstock.kernels.duck import query as duck
from penstock.plan.weight import WEIGHT
from penstock.portal import flights

#: With the thunderstorms of the 24th.
BEGIN = datetime(2013, 6, 13)
STEP = 120
"""Flights in a file, which is an epoch: three hours of them by day."""


def write(folder: Path, days: int = 14) -> Path:
    """The flights of these days in files that are epochs, in the order in which they became known."""
    table = flights.read_flights()
    inside = pc.and_(pc.greater_equal(table["sched"], BEGIN), pc.less(table["sched"], BEGIN + timedelta(days=days)))
    table = table.filter(inside).combine_chunks()
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, table.num_rows, STEP)):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(table.slice(start, STEP), path)
        # Structured Streaming takes files in the order of their times, which must not be all the same.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def judged(told: list[tuple[int, dict[str, Any]]], folder: Path) -> dict[str, Any]:
    """How many results are right in the end, and how many hours after theirs they were told first and right."""
    paths = sorted(folder.glob("*.parquet"))
    tables = [pq.read_table(p) for p in paths]
    known = [t["known"][-1].as_py() for t in tables]
    until = known[-1] - timedelta(days=2)
    truth = {
        (r["window_start"], r["origin"]): (r["departures"], r["cancelled"], r["mean_delay"])
        for r in duck(flights.BATCH, flights=pa.concat_tables(tables)).to_pylist()
        if r["window_start"] < until
    }
    first: dict[Any, datetime] = {}
    last: dict[Any, tuple[datetime, Any]] = {}
    for epoch, row in told:
        group, value = (row["window_start"], row["origin"]), (row["departures"], row["cancelled"], row["mean_delay"])
        at = known[min(epoch, len(known) - 1)]
        first.setdefault(group, at)
        if group not in last or last[group][1] != value:
            last[group] = (at, value)

    def hours(at: datetime, group: Any) -> float:
        return float((at - group[0]) / timedelta(hours=1) - 1)

    right = {g: hours(last[g][0], g) for g, v in truth.items() if g in last and last[g][1] == v}
    early = [hours(first[g], g) for g in truth if g in first]
    return {
        "results": len(truth),
        "told": len(told),
        "missing": sum(g not in last for g in truth),
        "right": len(right) / len(truth),
        "first": statistics.median(early) if early else None,
        "when": statistics.median(right.values()) if right else None,
        "when_p90": float(np.quantile(list(right.values()), 0.9)) if right else None,
    }


def on_penstock(spark: Any, job: Job) -> Answer:
    target = ps.memory()
    work = tempfile.mkdtemp(prefix="flights-")
    query = flights.flights_query(Path(job["data"]))
    began = time.perf_counter()
    running = query.start(
        target,
        trigger="available_now",
        checkpoint=work,
        max_rows=STEP,
        consistency=ps.Consistency.parse(job["dial"]),
        spark=spark,
    ).wait()
    seconds = time.perf_counter() - began
    shutil.rmtree(work, ignore_errors=True)
    told = [(e - 1, r) for e, t in target.tables for r in t.to_pylist() if r.get(WEIGHT, 1) > 0]
    assert running.progress is not None
    lost = sum(running.progress.total_dead.values())
    held = max(p.state_rows for p in running.history)
    return {"seconds": seconds, "done": True, "lost": lost, "held": held, **judged(told, Path(job["data"]))}


def on_spark(spark: Any, job: Job) -> Answer:
    from pyspark.sql import functions as sql

    tune(spark, "default", {PARTITIONS: "1"})
    work = tempfile.mkdtemp(prefix="native-")
    batches: list[tuple[int, pa.Table]] = []
    began = time.perf_counter()
    running = (
        spark.readStream.schema(flights.SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(job["data"])
        .withWatermark("sched", job["watermark"])
        .groupBy(sql.window("sched", "1 hour"), "origin")
        .agg(
            sql.count("dep_delay").alias("departures"),
            (sql.count(sql.lit(1)) - sql.count("dep_delay")).alias("cancelled"),
            sql.avg("dep_delay").alias("mean_delay"),
        )
        .select(sql.col("window.start").alias("window_start"), "origin", "departures", "cancelled", "mean_delay")
        .writeStream.outputMode(job["mode"])
        .option("checkpointLocation", work)
        .foreachBatch(lambda frame, number: batches.append((number, frame.toArrow())))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    seconds = time.perf_counter() - began
    shutil.rmtree(work, ignore_errors=True)
    # Between files there are batches without input, in which only the watermark moves.
    history = running.recentProgress
    file, files = -1, {}
    for progress in history:
        file += progress["numInputRows"] > 0
        files[progress["batchId"]] = file
    plain = pa.timestamp("us")
    told = [
        (files[number], row)
        for number, table in batches
        for row in table.set_column(0, "window_start", table["window_start"].cast(plain)).to_pylist()
    ]
    states = [s for p in history for s in p["stateOperators"]]
    lost = sum(s["numRowsDroppedByWatermark"] for s in states)
    held = max(s["numRowsTotal"] for s in states)
    return {"seconds": seconds, "done": True, "lost": lost, "held": held, **judged(told, Path(job["data"]))}


#: What is said of them, and what each is told.
CONTESTANTS: tuple[tuple[str, str, Job], ...] = (
    ("Penstock, `strong(remember='6 h')`", "penstock", {"dial": "strong/6 h"}),
    ("Penstock, `strong(remember='1 day')`", "penstock", {"dial": "strong/1 day"}),
    ("Penstock, `middle(remember='1 day')`", "penstock", {"dial": "middle/1 day"}),
    ("Penstock, `weak(block='1 h', remember='1 day')`", "penstock", {"dial": "1 h/1 day"}),
    ("Penstock, `weak(remember='1 h')`", "penstock", {"dial": "0 s/1 h"}),
    ("Structured Streaming, append mode, watermark of 1 h", "spark", {"mode": "append", "watermark": "1 hour"}),
    ("Structured Streaming, append mode, watermark of 1 day", "spark", {"mode": "append", "watermark": "24 hours"}),
    ("Structured Streaming, update mode, watermark of 1 h", "spark", {"mode": "update", "watermark": "1 hour"}),
    ("Structured Streaming, update mode, watermark of 1 day", "spark", {"mode": "update", "watermark": "24 hours"}),
)


def run(quick: bool) -> dict[str, Any]:
    cases: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="flights-") as home:
        folder = write(Path(home) / "in", days=4 if quick else 14)
        rows = sum(pq.read_metadata(p).num_rows for p in folder.glob("*.parquet"))
        for who in ("penstock", "spark"):
            process = Process(["benchmarks.speculating.flights", who], Path(home) / f"{who}.log")
            for name, module, job in CONTESTANTS:
                if module == who:
                    answer = process.run({"data": str(folder), **job})
                    cases[name] = {k: v for k, v in answer.items() if k not in ("done", "peak")}
                    print(name, cases[name], flush=True)
            process.close()
        return {"flights": rows, "files": len(list(folder.glob("*.parquet"))), "cases": cases}


def main() -> None:
    who = sys.argv[1]
    spark = ps.spark_session("local[2]", memory="4g") if who == "penstock" else native_session()
    run = on_penstock if who == "penstock" else on_spark
    take_turns(who, lambda job: run(spark, job))
    spark.stop()


if __name__ == "__main__":
    main()
