"""Compaction beside the epochs: piece by piece, in a thread of its own, taken up by the commit that finds it done."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.runs import StoredRun, Units
from penstock.engine.epoch.compaction import Compacted, compact, install, piece
from penstock.engine.tasks.job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Compactor:
    """Compacts the state of some operators whenever a unit of it has got too many runs."""

    def __init__(self, spark: SparkSession, operators: frozenset[str], many: int) -> None:
        self.spark = spark
        self.operators = operators
        self.many = many
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-compact")
        self._working: Future[list[Compacted]] | None = None

    def start(self, job: Job | None, units: Units) -> None:
        """Begin, if there is anything to do and nothing is being done."""
        if self._working is not None or job is None:
            return
        work = piece({k: v for k, v in units.items() if k.operator in self.operators}, self.many)
        if work:
            self._working = self._thread.submit(self._compact, replace(job, stagings={}), work)

    def _compact(self, job: Job, work: Sequence[tuple[Any, Any]]) -> list[Compacted]:
        records = [pickle.dumps(w) for w in work]
        # In one task: epochs would wait for the slots of several, and for the last of them as long as it takes.
        tasks = self.spark.sparkContext.parallelize(records, 1)
        return [pickle.loads(b) for b in tasks.mapPartitions(partial(compact, job)).collect()]

    def take(self, units: Units, closed: Mapping[str, int]) -> tuple[Units, list[StoredRun]]:
        """The state with what has been compacted by now, and the runs that are of no use any more."""
        if self._working is None or not self._working.done():
            return units, []
        done, self._working = self._working, None
        if done.exception() is not None:
            return units, []  # It changed nothing, and its leftovers will be swept.
        return install(units, done.result(), dict(closed))

    def settle(self) -> None:
        """Wait for what is under way; how it ends does not matter any more."""
        if self._working is not None:
            self._working.exception()
        self._working = None

    def close(self) -> None:
        self.settle()
        self._thread.shutdown(wait=True)
