"""Structured Streaming as a contestant: a session for one machine with two cores, and what makes its epochs cheap."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.joins.turn import Answer, Job, take_turns

#: With many groups and less heap it spends its time collecting garbage.
HEAP = "10g"
#: What makes a micro-batch cheap: no rename-free commit protocol and no checksum files on a local disk.
TUNED = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}
PARTITIONS = "spark.sql.shuffle.partitions"
#: By name: both state stores, with what suits them on a local disk.
STORES: dict[str, dict[str, str]] = {
    "default": {},
    "rocksdb": {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}


def native_session() -> Any:
    from pyspark.sql import SparkSession

    from penstock.engine.spark.java import find_java, launcher_home

    os.environ["JAVA_HOME"] = str(launcher_home(find_java()))
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", HEAP)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        # Both cores read one file, as they do in the other contestant.
        "spark.sql.files.maxPartitionBytes": str(16 << 20),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def tune(spark: Any, store: str, settings: dict[str, str], *, tuned: bool = True) -> None:
    """Set what this turn wants, and nothing that an earlier turn has wanted."""
    wanted = {**(TUNED if tuned else {}), **STORES[store], **settings}
    for key in {PARTITIONS, *TUNED, *STORES["rocksdb"]} - set(wanted):
        spark.conf.unset(key)
    for key, value in wanted.items():
        spark.conf.set(key, value)


@contextmanager
def written(frame: Any, job: Job, **trigger: Any) -> Iterator[Any]:
    """A query that writes what comes out of a frame, for the time of a block; what has made it fail is raised then."""
    checkpoint = tempfile.mkdtemp(prefix="native-")
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", checkpoint).format("parquet")
    query = (writer.trigger(**trigger) if trigger else writer).option("path", job["out"]).start()
    try:
        yield query
    finally:
        query.stop()
    if query.exception() is not None:
        raise query.exception()
    shutil.rmtree(checkpoint, ignore_errors=True)


@dataclass(frozen=True)
class Drained:
    """What came of a query over all that there is: since when, whether it came to its end, and of each epoch."""

    seconds: float
    done: bool
    progress: list[Any]

    @property
    def batches(self) -> list[Any]:
        """The epochs that had something to do."""
        return [p for p in self.progress if p["numInputRows"]]


def drain(make: Callable[[], Any], job: Job) -> Drained:
    """Make a frame and write all that comes out of it."""
    began = time.perf_counter()
    with written(make(), job, availableNow=True) as query:
        done = query.awaitTermination(job["limit"])
        return Drained(time.perf_counter() - began, bool(done), query.recentProgress)


def take_spark_turns(run: Callable[[Any, Job], Answer]) -> None:
    """Take turns in one session."""
    spark = native_session()
    take_turns("spark", lambda job: run(spark, job))
    spark.stop()
