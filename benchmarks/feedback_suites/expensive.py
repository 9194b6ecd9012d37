"""Functions that cost something for every row, and a ledger of what they have cost.

Both run in Spark's workers. A call notes its rows and its CPU seconds as one line in a file of its process, since the
results of a call say nothing of it when somebody drops them later.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Ledger:
    """A folder of notes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(folder)
    ...     ledger.note(3, 0.5), ledger.note(2, 0.25)
    ...     ledger.total
    (None, None)
    (5, 0.75)
    """

    folder: str

    def note(self, rows: int, seconds: float) -> None:
        with (Path(self.folder) / str(os.getpid())).open("a") as file:
            file.write(f"{rows} {seconds}\n")

    @property
    def total(self) -> tuple[int, float]:
        """Rows and CPU seconds of all calls."""
        lines = [line.split() for path in Path(self.folder).iterdir() for line in path.read_text().splitlines()]
        return sum(int(rows) for rows, _ in lines), sum(float(seconds) for _, seconds in lines)


@dataclass(frozen=True)
class Tap:
    """Counts the rows that pass, under a name."""

    folder: str
    name: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        place = Path(self.folder) / self.name
        place.mkdir(exist_ok=True)
        Ledger(str(place)).note(rows.num_rows, 0.0)
        return rows

    @staticmethod
    def counts(folder: str) -> dict[str, int]:
        return {place.name: Ledger(str(place)).total[0] for place in sorted(Path(folder).iterdir())}


@dataclass(frozen=True)
class Spin:
    """Estimates a speed by so many microseconds of honest nothing a row."""

    ledger: Ledger
    micros: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        began = time.thread_time()
        until = began + rows.num_rows * self.micros / 1e6
        turns = 0
        while time.thread_time() < until:
            turns += 1
        self.ledger.note(rows.num_rows, time.thread_time() - began)
        rows = rows.set_column(
            rows.schema.get_field_index("speed"), "speed", pa.repeat(50, rows.num_rows).cast("int32")
        )
        marked = pa.repeat(True, rows.num_rows)
        return rows.set_column(rows.schema.get_field_index("imputed"), "imputed", marked)


@dataclass(frozen=True)
class Nearest:
    """Estimates a missing delay as the median of the flights that are most like it.

    Every row is compared with every flight of the year from the same airport that has a delay: hour of the day, day of
    the week and of the year, carrier and destination. No index, no sample: it is expensive because it is thorough.
    """

    ledger: Ledger
    flights: str
    neighbours: int = 25

    def __call__(self, rows: pa.Table) -> pa.Table:
        flights = _flights(self.flights)  # Reading them is the price of a worker, not of a row.
        began = time.thread_time()
        delays = []
        for row in rows.select(["sched", "origin", "dest", "carrier"]).to_pylist():
            known, features, numbers = flights[row["origin"]]
            when = row["sched"]
            here = (when.hour + when.minute / 60, when.isoweekday(), when.timetuple().tm_yday)
            far = (features["hour"] - here[0]) ** 2
            far += (features["weekday"] != here[1]) * 4.0
            far += ((features["day"] - here[2]) / 30) ** 2
            far += (features["carrier"] != numbers.get(row["carrier"], -1)) * 9.0
            far += (features["dest"] != numbers.get(row["dest"], -1)) * 9.0
            delays.append(int(np.median(known[np.argpartition(far, self.neighbours)[: self.neighbours]])))
        self.ledger.note(rows.num_rows, time.thread_time() - began)
        return _imputed(rows, "dep_delay", delays)


def _imputed(rows: pa.Table, name: str, values: list[int]) -> pa.Table:
    """The rows with values in place of those that were missing, and marked."""
    rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, pa.int32()))
    return rows.set_column(rows.schema.get_field_index("imputed"), "imputed", pa.repeat(True, rows.num_rows))


@lru_cache(maxsize=1)
def _flights(path: str) -> dict[str, tuple[Any, dict[str, Any], dict[str, int]]]:
    """By airport, the delays of the flights that have one, what they are compared by, and the numbers of names."""
    table = pq.read_table(path)
    table = table.filter(table["dep_delay"].is_valid())
    found = {}
    for origin in table["origin"].unique().to_pylist():
        part = table.filter(pc.equal(table["origin"], origin))
        names = pc.unique(pa.concat_arrays([part[c].combine_chunks() for c in ("carrier", "dest")]))
        when = part["sched"].to_numpy().astype("datetime64[m]")
        day = when.astype("datetime64[D]")
        found[origin] = (
            part["dep_delay"].to_numpy(),
            {
                "hour": (when - day).astype(np.int64).astype(np.float32) / 60,
                # The first of January 1970 was a Thursday.
                "weekday": ((day.astype(np.int64) + 3) % 7 + 1).astype(np.int8),
                "day": ((day - day.astype("datetime64[Y]")).astype(np.int64) + 1).astype(np.float32),
                **{c: pc.index_in(part[c], names).to_numpy().astype(np.int16) for c in ("carrier", "dest")},
            },
            {name: number for number, name in enumerate(names.to_pylist())},
        )
    return found
