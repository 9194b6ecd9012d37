"""Penstock: continuous queries on Apache Spark over streams that say when they are complete.

>>> import penstock as ps
>>> traffic = ps.stream("traffic", "ts timestamp, segment int, speed double", time="ts").read_parquet("data")
>>> slow = traffic.disorder("30 s").window("1 min").group_by("segment").agg(mean="avg(speed)").where("mean < 40")
>>> print(slow.schema)
window_start timestamp, segment int, mean double
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.builder.join_statistics import JoinStatistics
from penstock.builder.multiway import join
from penstock.engine.measure_joins import measure_joins
from penstock.engine.progress import Progress
from penstock.engine.query import Query, start
from penstock.engine.run import Run, Trigger
from penstock.engine.sink import console, deliver, json_lines, memory, parquet
from penstock.engine.spark.session import spark_session
from penstock.engine.stream import Stream, from_spark, generate, stream
from penstock.errors import PenstockError, UserError
from penstock.feedback.consumer import Consumer, consumer
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.consistency import Consistency
from penstock.plan.policy import Measured, Punctuate
from penstock.plan.table import Table, table
from penstock.plan.window import Window
from penstock.shedding.policy import Shedding
from penstock.shedding.qos import QoS
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.spark_check.query import check_spark


def __getattr__(name: str) -> Any:
    """What is about plain Spark is loaded when it is asked for."""
    if name == "check_spark":
        from penstock.spark_check.query import check_spark

        return check_spark
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")


__all__ = [
    "Consistency",
    "Consumer",
    "JoinStatistics",
    "Measured",
    "Pattern",
    "PenstockError",
    "Progress",
    "Punctuate",
    "QoS",
    "Query",
    "Run",
    "Schema",
    "Shedding",
    "Stream",
    "Table",
    "Trigger",
    "UserError",
    "Window",
    "__version__",
    "check_spark",
    "console",
    "consumer",
    "deliver",
    "from_spark",
    "generate",
    "join",
    "json_lines",
    "measure_joins",
    "memory",
    "parquet",
    "spark_session",
    "start",
    "stream",
    "table",
]
