"""Structured Streaming queries as people write them, with what becomes of their state.

Every stream has files of a few rows; from file to file time goes on by two hours and all keys are new. So a state that
is let go stays at a few files' rows, and one that is not grows with every file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 6
ROWS = 3
STEP = timedelta(hours=2)
START = datetime(2026, 3, 1)

#: "refused": Spark itself does not start it. "depends": on the user's code.
Says = Literal["bounded", "unbounded", "depends", "refused"]


def write(root: Path) -> None:
    """Two streams: a right row comes five minutes after its left one. `at` and `day` are the same on both sides."""
    for file in range(FILES):
        at = [START + STEP * file + timedelta(minutes=row) for row in range(ROWS)]
        keys = [file * 10 + row for row in range(ROWS)]
        day = pa.array([a.date() for a in at])
        stamp = pa.timestamp("us", "UTC")
        left = {"ts": pa.array(at, stamp), "k": pa.array(keys, pa.int32()), "v": pa.array([file] * ROWS, pa.int32())}
        left |= {"at": pa.array(at, stamp), "day": day}
        later = [a + timedelta(minutes=5) for a in at]
        right = {"rts": pa.array(later, stamp), "rk": left["k"], "w": left["v"], "rat": left["at"], "rday": day}
        for name, columns in (("left", left), ("right", right)):
            (root / name).mkdir(parents=True, exist_ok=True)
            path = root / name / f"{file:03}.parquet"
            pq.write_table(pa.table(columns), path)
            # Spark reads files in the order of their times of modification, and those of one moment in any order.
            os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))


@dataclass(frozen=True)
class Streams:
    """The inputs, plain; `l` and `r` are the streams, `lw` and `rw` the same with a watermark of ten minutes."""

    spark: SparkSession
    root: Path

    def _read(self, name: str, schema: str) -> DataFrame:
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.root / name))

    @property
    def l(self) -> DataFrame:  # noqa: E743
        return self._read("left", "ts timestamp, k int, v int, at timestamp, day date").alias("clicks")

    @property
    def r(self) -> DataFrame:
        return self._read("right", "rts timestamp, rk int, w int, rat timestamp, rday date").alias("views")

    @property
    def lw(self) -> DataFrame:
        return self.l.withWatermark("ts", "10 minutes")

    @property
    def rw(self) -> DataFrame:
        return self.r.withWatermark("rts", "10 minutes")

    @property
    def table(self) -> DataFrame:
        return self.spark.createDataFrame([(k, f"name {k}") for k in range(80)], "k int, name string")


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[Streams], DataFrame]
    says: Says
    mode: str = "append"
    quick: bool = False
    conf: tuple[tuple[str, str], ...] = ()
    module: str | None = None  # What Spark itself needs to run it, and does not bring.


BOTH = "rts BETWEEN ts AND ts + INTERVAL 1 HOUR"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _on(condition: str, how: str = "inner") -> Callable[[DataFrame, DataFrame], DataFrame]:
    from pyspark.sql import functions as F  # noqa: N812 (as Spark users write it)

    return lambda left, right: left.join(right, F.expr(condition), how)


def _hourly(df: DataFrame, time: str = "ts", *more: str) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 (as Spark users write it)

    return df.groupBy(F.window(time, "1 hour"), *more).count()


def _unioned(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.select("ts", "k").union(other.selectExpr("rts", "rk"))


def joins() -> Iterator[Case]:
    from pyspark.sql import functions as F  # noqa: N812 (as Spark users write it)

    equal = "k = rk"
    ranged = f"{equal} AND {BOTH}"
    yield Case("join, no watermark", lambda s: _on(equal)(s.l, s.r), "unbounded", quick=True)
    yield Case("join, left watermark", lambda s: _on(equal)(s.lw, s.r), "unbounded")
    yield Case("join, right watermark", lambda s: _on(equal)(s.l, s.rw), "unbounded")
    yield Case("join, watermarks, no range", lambda s: _on(equal)(s.lw, s.rw), "unbounded", quick=True)
    yield Case("join, watermarks, range", lambda s: _on(ranged)(s.lw, s.rw), "bounded", quick=True)
    yield Case("join, range, no watermark", lambda s: _on(ranged)(s.l, s.r), "unbounded", quick=True)
    yield Case("join, range, left watermark", lambda s: _on(ranged)(s.lw, s.r), "unbounded", quick=True)
    yield Case("join, range, right watermark", lambda s: _on(ranged)(s.l, s.rw), "unbounded")
    yield Case(
        "join, right not too late", lambda s: _on(f"{equal} AND rts <= ts + INTERVAL 1 HOUR")(s.lw, s.rw), "unbounded"
    )
    yield Case("join, right not too early", lambda s: _on(f"{equal} AND rts >= ts")(s.lw, s.rw), "unbounded")
    yield Case("join, range in where", lambda s: _on(equal)(s.lw, s.rw).where(BOTH), "bounded", quick=True)
    yield Case(
        "join, range as strict comparisons",
        lambda s: _on(f"{equal} AND ts > rts - INTERVAL 90 MINUTES AND ts - INTERVAL 1 MINUTE < rts")(s.lw, s.rw),
        "bounded",
    )
    yield Case(
        "join, range as difference",
        lambda s: _on(f"{equal} AND rts - ts BETWEEN INTERVAL 0 HOURS AND INTERVAL 1 HOUR")(s.lw, s.rw),
        "unbounded",
        quick=True,
    )
    yield Case(
        "join, range in months",
        lambda s: _on(f"{equal} AND rts BETWEEN ts - INTERVAL 1 MONTH AND ts + INTERVAL 1 MONTH")(s.lw, s.rw),
        "unbounded",
    )
    yield Case(
        "join, range in seconds since 1970",
        lambda s: _on(f"{equal} AND unix_timestamp(rts) BETWEEN unix_timestamp(ts) AND unix_timestamp(ts) + 600")(
            s.lw, s.rw
        ),
        "unbounded",
    )
    yield Case(
        "join, range of columns without watermark",
        lambda s: _on(f"{equal} AND rat BETWEEN at AND at + INTERVAL 1 HOUR")(s.lw, s.rw),
        "unbounded",
    )
    yield Case("join on time, watermarks", lambda s: _on(f"{equal} AND ts = rts")(s.lw, s.rw), "bounded")
    yield Case("join on time, left watermark", lambda s: _on(f"{equal} AND ts = rts")(s.lw, s.r), "bounded", quick=True)
    yield Case("join on shifted time", lambda s: _on("ts = rts - INTERVAL 5 MINUTES")(s.lw, s.r), "bounded")
    yield Case(
        "join on truncated time",
        lambda s: _on(f"{equal} AND date_trunc('hour', ts) = date_trunc('hour', rts)")(s.lw, s.rw),
        "unbounded",
        quick=True,
    )
    yield Case("join on day", lambda s: _on(f"{equal} AND day = rday")(s.lw, s.rw), "unbounded")
    yield Case(
        "join on window",
        lambda s: s.lw.select(F.window("ts", "1 hour").alias("hour"), "k").join(
            s.rw.select(F.window("rts", "1 hour").alias("hour"), F.col("rk").alias("k")), ["hour", "k"]
        ),
        "bounded",
        quick=True,
    )
    yield Case("left join, no watermark", lambda s: _on(equal, "left")(s.l, s.r), "refused", quick=True)
    yield Case("left join, watermarks, no range", lambda s: _on(equal, "left")(s.lw, s.rw), "refused")
    yield Case("left join, range", lambda s: _on(ranged, "left")(s.lw, s.rw), "bounded", quick=True)
    yield Case(
        "left join, right not too late",
        lambda s: _on(f"{equal} AND rts <= ts + INTERVAL 1 HOUR", "left")(s.lw, s.rw),
        "unbounded",
    )
    yield Case("left join on time", lambda s: _on(f"{equal} AND ts = rts", "left")(s.lw, s.rw), "bounded")
    yield Case("right join, range", lambda s: _on(ranged, "right")(s.lw, s.rw), "bounded")
    yield Case("full join, range", lambda s: _on(ranged, "full")(s.lw, s.rw), "bounded", quick=True)
    yield Case("full join, no range", lambda s: _on(equal, "full")(s.lw, s.rw), "refused")
    yield Case("semi join, no range", lambda s: _on(equal, "left_semi")(s.lw, s.rw), "refused")
    yield Case("semi join, range", lambda s: _on(ranged, "left_semi")(s.lw, s.rw), "bounded")
    yield Case("anti join", lambda s: _on(ranged, "left_anti")(s.lw, s.rw), "refused")
    yield Case("join with a table", lambda s: s.l.join(s.table, "k"), "bounded", quick=True)
    yield Case("left join with a table", lambda s: s.l.join(s.table, "k", "left"), "bounded")
    yield Case("table left join stream", lambda s: s.table.join(s.l, "k", "left"), "refused")
    third = "k = k3 AND t3 BETWEEN ts AND ts + INTERVAL 1 HOUR"

    def more(streams: Streams) -> DataFrame:
        return streams.lw.selectExpr("ts AS t3", "k AS k3")

    yield Case("join of three, two times", lambda s: _on(third)(_on(ranged)(s.lw, s.rw), more(s)), "refused")
    yield Case(
        "join of three, all ranged", lambda s: _on(third)(_on(ranged)(s.lw, s.rw).drop("rts"), more(s)), "bounded"
    )
    yield Case(
        "join of three, last without range",
        lambda s: _on("k = k3")(_on(ranged)(s.lw, s.rw).drop("rts"), more(s)),
        "unbounded",
    )
    yield Case(
        "join, then dropDuplicates of two times",
        lambda s: _on(ranged)(s.lw, s.rw).dropDuplicatesWithinWatermark(["k"]),
        "refused",
    )


def dedups() -> Iterator[Case]:
    yield Case("dropDuplicates(k), no watermark", lambda s: s.l.dropDuplicates(["k"]), "unbounded", quick=True)
    yield Case("dropDuplicates(k)", lambda s: s.lw.dropDuplicates(["k"]), "unbounded", quick=True)
    yield Case("dropDuplicates(k, ts)", lambda s: s.lw.dropDuplicates(["k", "ts"]), "bounded", quick=True)
    yield Case("dropDuplicates(k, at)", lambda s: s.lw.dropDuplicates(["k", "at"]), "unbounded")
    yield Case("dropDuplicates()", lambda s: s.lw.dropDuplicates(), "bounded")
    yield Case("distinct() without time", lambda s: s.lw.select("k", "v").distinct(), "unbounded")
    yield Case(
        "dropDuplicates of a renamed time",
        lambda s: s.lw.selectExpr("ts AS seen", "k").dropDuplicates(["k", "seen"]),
        "bounded",
    )
    yield Case(
        "dropDuplicates of a cast time",
        lambda s: s.lw.selectExpr("cast(ts AS date) AS seen", "k").dropDuplicates(["k", "seen"]),
        "unbounded",
    )
    yield Case(
        "dropDuplicatesWithinWatermark", lambda s: s.lw.dropDuplicatesWithinWatermark(["k"]), "bounded", quick=True
    )
    yield Case(
        "dropDuplicatesWithinWatermark, no watermark", lambda s: s.l.dropDuplicatesWithinWatermark(["k"]), "refused"
    )
    yield Case("SELECT DISTINCT", _select_distinct, "unbounded", mode="update")


def _select_distinct(streams: Streams) -> DataFrame:
    streams.lw.createOrReplaceTempView("clicks_of_corpus")
    return streams.spark.sql("SELECT DISTINCT k FROM clicks_of_corpus")


def aggregates() -> Iterator[Case]:
    from pyspark.sql import functions as F  # noqa: N812 (as Spark users write it)

    yield Case("groupBy(k), append", lambda s: s.lw.groupBy("k").count(), "refused", quick=True)
    yield Case("groupBy(k), update", lambda s: s.lw.groupBy("k").count(), "unbounded", "update", quick=True)
    yield Case("groupBy(k), complete", lambda s: s.l.groupBy("k").count(), "unbounded", "complete")
    yield Case(
        "groupBy(k), sorted", lambda s: s.l.groupBy("k").count().orderBy("count").limit(5), "unbounded", "complete"
    )
    yield Case("window, no watermark, append", lambda s: _hourly(s.l), "refused")
    yield Case("window, no watermark, update", lambda s: _hourly(s.l), "unbounded", "update", quick=True)
    yield Case("window, append", lambda s: _hourly(s.lw, "ts", "k"), "bounded", quick=True)
    yield Case("window, update", lambda s: _hourly(s.lw), "bounded", "update", quick=True)
    yield Case("window, complete", lambda s: _hourly(s.lw), "unbounded", "complete", quick=True)
    yield Case("window of another time", lambda s: _hourly(s.lw, "at"), "unbounded", "update")
    yield Case(
        "sliding window",
        lambda s: s.lw.groupBy(F.window("ts", "1 hour", "20 minutes"), "k").agg(F.max("v")),
        "bounded",
    )
    yield Case("groupBy(ts)", lambda s: s.lw.groupBy("ts").count(), "bounded")
    yield Case(
        "groupBy(truncated time)",
        lambda s: s.lw.groupBy(F.date_trunc("hour", "ts")).count(),
        "unbounded",
        "update",
        quick=True,
    )
    yield Case("one total", lambda s: s.l.groupBy().count(), "bounded", "complete", quick=True)
    yield Case("boolean key", lambda s: s.l.groupBy(F.expr("k % 2 = 0").alias("even")).count(), "bounded", "update")
    yield Case(
        "session", lambda s: s.lw.groupBy(F.session_window("ts", "5 minutes"), "k").count(), "bounded", quick=True
    )
    yield Case(
        "session, no watermark",
        lambda s: s.l.groupBy(F.session_window("ts", "5 minutes"), "k").count(),
        "unbounded",
        "complete",
        quick=True,
    )
    yield Case(
        "session, update", lambda s: s.lw.groupBy(F.session_window("ts", "5 minutes"), "k").count(), "refused", "update"
    )
    yield Case("limit", lambda s: s.l.limit(4), "bounded")
    yield Case("filter and project", lambda s: s.l.where("v >= 0").select("k"), "bounded")


def chains() -> Iterator[Case]:
    from pyspark.sql import functions as F  # noqa: N812 (as Spark users write it)

    yield Case(
        "window of windows",
        lambda s: _hourly(s.lw, "ts", "k").groupBy(F.window(F.window_time("window"), "2 hours")).count(),
        "bounded",
        quick=True,
    )
    yield Case("windows by k, again by window", lambda s: _hourly(s.lw, "ts", "k").groupBy("window").count(), "bounded")
    yield Case(
        "window, then dropDuplicates(k)",
        lambda s: _hourly(s.lw, "ts", "k").dropDuplicates(["k"]),
        "unbounded",
        quick=True,
    )
    yield Case(
        "dropDuplicatesWithinWatermark, then window",
        lambda s: _hourly(s.lw.dropDuplicatesWithinWatermark(["k"])),
        "bounded",
    )
    yield Case("dropDuplicates(k), then window", lambda s: _hourly(s.lw.dropDuplicates(["k"])), "unbounded")
    yield Case(
        "windows joined on window",
        lambda s: _hourly(s.lw).join(_hourly(s.rw, "rts").withColumnRenamed("count", "views"), "window"),
        "bounded",
        quick=True,
    )
    yield Case(
        "join with range, then window", lambda s: _hourly(_on(f"k = rk AND {BOTH}")(s.lw, s.rw)), "bounded", quick=True
    )
    yield Case("join without range, then window", lambda s: _hourly(_on("k = rk")(s.lw, s.rw)), "unbounded")
    yield Case("join with a table, then window", lambda s: _hourly(s.lw.join(s.table, "k"), "ts", "name"), "bounded")
    yield Case(
        "two aggregates, update", lambda s: _hourly(s.lw, "ts", "k").groupBy("window").count(), "refused", "update"
    )
    yield Case("union, watermarks", lambda s: _hourly(_unioned(s.lw, s.rw)), "bounded", quick=True)
    yield Case("union, watermark on the first", lambda s: _hourly(_unioned(s.lw, s.r)), "bounded", "update")
    yield Case(
        "union, watermark on the second", lambda s: _hourly(_unioned(s.l, s.rw)), "unbounded", "update", quick=True
    )
    yield Case("watermark on another time", lambda s: _hourly(s.lw.withWatermark("at", "1 hour")), "refused")
    yield Case("watermark twice, no state", lambda s: s.lw.withWatermark("ts", "1 hour").select("k"), "refused")
    yield Case("watermark twice", lambda s: _hourly(s.lw.withWatermark("ts", "1 hour")), "refused")
    yield Case(
        "union, then watermark", lambda s: _hourly(_unioned(s.l, s.r).withWatermark("ts", "10 minutes")), "bounded"
    )


def custom() -> Iterator[Case]:
    rocks = (("spark.sql.streaming.stateStore.providerClass", _ROCKS),)
    yield Case("applyInPandasWithState, no timeout", lambda s: _counted(s.l, timeout=False), "unbounded", quick=True)
    yield Case("applyInPandasWithState, timeout", lambda s: _counted(s.lw, timeout=True), "depends")
    yield Case(
        "transformWithState, no time",
        lambda s: _remembered(s.l, "none"),
        "unbounded",
        conf=rocks,
        module="google.protobuf",
    )
    yield Case(
        "transformWithState, timers",
        lambda s: _remembered(s.lw, "eventTime"),
        "depends",
        conf=rocks,
        module="google.protobuf",
    )


def _counted(df: DataFrame, *, timeout: bool) -> DataFrame:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def count(key: Any, frames: Any, state: Any) -> Iterator[Any]:
        import pandas as pd

        if state.hasTimedOut:
            state.remove()
        else:
            state.update((sum(len(f) for f in frames),))
            if timeout:
                state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 60_000)
        yield pd.DataFrame({"k": [key[0]]})

    rule = GroupStateTimeout.EventTimeTimeout if timeout else GroupStateTimeout.NoTimeout
    return df.groupBy("k").applyInPandasWithState(count, "k int", "n int", "append", rule)


def _remembered(df: DataFrame, time_mode: str) -> DataFrame:
    from pyspark.sql.streaming import StatefulProcessor

    class Remember(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.seen = handle.getValueState("seen", "n int")

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[Any]:
            import pandas as pd

            self.seen.update((sum(len(r) for r in rows),))
            if time_mode == "eventTime":
                self.handle.registerTimer(timers.getCurrentWatermarkInMs() + 60_000)
            yield pd.DataFrame({"k": [key[0]]})

        def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[Any]:
            self.seen.clear()
            return iter(())

        def close(self) -> None:
            pass

    return df.groupBy("k").transformWithStateInPandas(Remember(), "k int", "append", time_mode)


def corpus() -> list[Case]:
    return [*joins(), *dedups(), *aggregates(), *chains(), *custom()]
