"""Run queries in this process, without Spark: for the tests of queries, in milliseconds.

`local_session()` stands in for a Spark session. The driver, the commit protocol, the tasks and the kernels are the
real ones; only the way from a list of records to the task function and back is replaced by plain lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from pyspark.sql import SparkSession

from penstock.engine.tasks import worker

Task = Callable[[int, Iterator[Any]], Iterable[Any]]


class LocalRDD:
    """A data set cut into partitions; what a partition holds is computed when it is asked for.

    >>> LocalContext(2).parallelize([1, 2, 3], 2).mapPartitions(lambda part: [sum(part)]).collect()
    [1, 5]
    """

    def __init__(self, partitions: int, compute: Callable[[int], Iterable[Any]]) -> None:
        self.partitions = partitions
        self.compute = compute

    def mapPartitionsWithIndex(self, task: Task) -> LocalRDD:  # noqa: N802 - the name in Spark
        return LocalRDD(self.partitions, lambda index: task(index, iter(list(self.compute(index)))))

    def mapPartitions(self, task: Callable[[Iterator[Any]], Iterable[Any]]) -> LocalRDD:  # noqa: N802
        return self.mapPartitionsWithIndex(lambda _, records: task(records))

    def partitionBy(self, partitions: int, choose: Callable[[Any], int]) -> LocalRDD:  # noqa: N802
        """Pairs by their key. As in Spark, what was exchanged is kept: asking twice computes once."""
        shelves: list[list[Any]] = []

        def fetch(index: int) -> Iterable[Any]:
            if not shelves:
                found: list[list[Any]] = [[] for _ in range(partitions)]
                for key, value in self.collect():
                    found[choose(key) % partitions].append((key, value))
                shelves.extend(found)
            return shelves[index]

        return LocalRDD(partitions, fetch)

    def collect(self) -> list[Any]:
        return [record for index in range(self.partitions) for record in self.compute(index)]


class LocalContext:
    """The part of a Spark context that epochs use."""

    def __init__(self, parallelism: int) -> None:
        self.defaultParallelism = parallelism

    def parallelize(self, records: Iterable[Any], partitions: int | None = None) -> LocalRDD:
        listed, count = list(records), partitions or self.defaultParallelism
        ends = [len(listed) * i // count for i in range(count + 1)]
        return LocalRDD(count, partial(_slice, listed, ends))

    def runJob(  # noqa: N802 - the name in Spark
        self, rdd: LocalRDD, task: Callable[[Iterator[Any]], Iterable[Any]], partitions: Sequence[int] | None = None
    ) -> list[Any]:
        chosen = range(rdd.partitions) if partitions is None else partitions
        return [record for index in chosen for record in task(iter(rdd.compute(index)))]


def _slice(records: list[Any], ends: list[int], index: int) -> list[Any]:
    return records[ends[index] : ends[index + 1]]


class LocalSession:
    """What stands in for a Spark session. Sources and sinks that need Spark itself do not work with it."""

    def __init__(self, parallelism: int = 2) -> None:
        worker._tuned = True  # Memory limits and garbage collection of this process are not ours to change.
        self.sparkContext = LocalContext(parallelism)


def local_session(parallelism: int = 2) -> SparkSession:
    """A session for `start(spark=…)` and `collect(spark=…)` that runs tasks in this process, one after the other.

    >>> import penstock as ps
    >>> numbers = ps.generate(rate=2, rows=6).ends()
    >>> numbers.window("1 s").agg(n="count(*)").collect(spark=local_session())["n"].to_pylist()
    [2, 2, 2]
    """
    return cast(SparkSession, LocalSession(parallelism))
