"""What does a two-stage epoch cost Spark itself? The forms the exchange could take, with nothing to compute.

    python -m benchmarks.exchange

Every form moves the same few bytes from two tasks to two buckets and collects a report. They take turns, so that the
JVM warms up for all of them alike; the first rounds do not count.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SCHEMA = "bucket int, edge int, payload binary"
ROUNDS, WARM_UP = 60, 40


def _scan(records: Iterable[Any]) -> list[tuple[int, bytes]]:
    list(records)  # Input left unread would cost a new worker process each time.
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
    return [(0, b"x" * 100), (1, b"x" * 100), (2, b"report")]


def _scan_arrow(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    list(batches)
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
    yield pa.record_batch(
        {
            "bucket": pa.array([0, 1], pa.int32()),
            "edge": pa.array([0, 0], pa.int32()),
            "payload": pa.array([b"x" * 100] * 2, pa.binary()),
        }
    )


def _pass(batches: Iterable[Any]) -> Iterator[Any]:
    yield from batches


def _place(bucket: int) -> int:
    return bucket


def forms(spark: Any) -> dict[str, Callable[[], object]]:
    context = spark.sparkContext

    def frames() -> object:
        scanned = spark.range(0, 2, 1, 2).mapInArrow(_scan_arrow, SCHEMA)
        return scanned.repartitionById(2, "bucket").mapInArrow(_pass, SCHEMA).collect()

    def one_job() -> object:
        parcels = context.parallelize([0, 1], 2).mapPartitions(_scan).partitionBy(3, _place)
        return context.runJob(parcels, list, [0, 1])

    def two_jobs() -> object:
        parcels = context.parallelize([0, 1], 2).mapPartitions(_scan).partitionBy(3, _place)
        context.runJob(parcels, list, [2])
        return context.runJob(parcels, list, [0, 1])

    def one_stage() -> object:
        return context.parallelize([0, 1], 2).mapPartitions(_scan).collect()

    return {
        "mapInArrow → repartitionById → mapInArrow": frames,
        "RDD, scan and merge in one job": one_job,
        "RDD, scan and merge as two jobs": two_jobs,
        "one Python stage alone": one_stage,
    }


def main() -> None:
    import penstock as ps

    spark = ps.spark_session("local[2]")
    times: dict[str, list[float]] = {name: [] for name in forms(spark)}
    for k in range(WARM_UP + ROUNDS):
        for name, form in forms(spark).items():
            began = time.perf_counter()
            form()
            if k >= WARM_UP:
                times[name].append((time.perf_counter() - began) * 1e3)
        if k % 20 == 0:
            print(f"  round {k} of {WARM_UP + ROUNDS}", flush=True)
    lines = ["| form | median ms | fastest – slowest |", "|---|---|---|"]
    for name, found in times.items():
        lines.append(f"| {name} | {statistics.median(found):.0f} | {min(found):.0f} – {max(found):.0f} |")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "exchange.md").write_text("\n".join(lines) + "\n")
    (RESULTS / "exchange.json").write_text(json.dumps({n: statistics.median(t) for n, t in times.items()}) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
