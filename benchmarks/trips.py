"""Taxi trips: a stream of starts and a stream of ends, and what each says about trips that are over.

    python -m benchmarks.trips FOLDER --epochs 36 --hours 2 --rate 5000

Most trips take minutes, a few take most of a day. A watermark therefore has to wait a day for every trip, since any
could be one of the long ones. But the streams know better: a trip starts once and ends once. So right behind every
event comes a punctuation `[trip, *, *, *]`, in the column `punctuation`: no more events of this trip in this stream.
"""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STARTS = "trip bigint, ts timestamp, zone int, vehicle int"
ENDS = "trip bigint, ts timestamp, fare double, zone_to int"

LONGEST_HOURS = 24
SLACK_MINUTES = 5
"""No event is known later than this."""
ORIGIN = 1_704_067_200_000_000
_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_ZONES = 260


@dataclass(frozen=True)
class Trips:
    """So many trips an hour, written to one file per epoch and stream as they become known.

    All files have the same number of rows, and none of the epochs is a special one: at its beginning there are trips
    on the road, whose ends come without a start. Not `told`, the files hold the same events without punctuation.
    """

    epochs: int = 36
    hours: float = 2.0
    rate: int = 5_000
    seed: int = 3
    told: bool = True

    @property
    def slug(self) -> str:
        return f"trips-{self.epochs}x{self.hours:g}h-{self.rate}-{self.seed}{'' if self.told else '-untold'}"

    @property
    def events(self) -> int:
        """Events in each file."""
        return int(self.rate * self.hours)

    @property
    def rows(self) -> int:
        """Events and punctuations in each file."""
        return 2 * self.events if self.told else self.events


def durations(count: int, rng: np.random.Generator) -> Any:
    """Microseconds: ten minutes for the half of them, for one in a hundred four hours up to a day.

    >>> d = durations(100_000, np.random.default_rng(1)) / _MINUTE
    >>> bool(9 < np.median(d) < 11), bool(15 < d.mean() < 25), bool(1 <= d.min()), bool(22 * 60 < d.max() <= 24 * 60)
    (True, True, True, True)
    """
    usual = rng.lognormal(np.log(10), 0.8, count)
    long = np.minimum(60 * 4 * (1 + rng.pareto(1.5, count)), 60 * LONGEST_HOURS)
    minutes = np.where(rng.random(count) < 0.01, long, usual)
    return (np.clip(minutes, 1, 60 * LONGEST_HOURS) * _MINUTE).astype(np.int64)


def write(trips: Trips, root: Path) -> Path:
    """A folder with `starts` and `ends`, each a Parquet file per epoch; made once, then found again."""
    folder = root / trips.slug
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng(trips.seed)
    # A day before and some hours after, so that the number of ends is the same from the first epoch to the last.
    first = trips.rate * LONGEST_HOURS
    count = first + trips.events * trips.epochs + trips.rate * 2
    begin = np.sort(rng.integers(-LONGEST_HOURS * _HOUR, count * _HOUR // trips.rate - LONGEST_HOURS * _HOUR, count))
    end = begin + durations(count, rng)
    first = int(np.searchsorted(begin, 0))
    starts = {
        "zone": pa.array(rng.integers(0, _ZONES, count), pa.int32()),
        "vehicle": pa.array(np.arange(count) % trips.rate, pa.int32()),
    }
    ends = {
        "fare": pa.array((3 + 0.8 * (end - begin) / _MINUTE).round(2)),
        "zone_to": pa.array(rng.integers(0, _ZONES, count), pa.int32()),
    }
    _write_side(folder / "starts", trips, begin, starts, first, rng)
    _write_side(folder / "ends", trips, end, ends, None, rng)
    (folder / "complete").touch()
    return folder


def _write_side(
    folder: Path, trips: Trips, ts: Any, rest: dict[str, pa.Array], first: int | None, rng: np.random.Generator
) -> None:
    """Events in the order in which they become known, as many to each file; `first`: trips before it are left out."""
    folder.mkdir(parents=True)
    delay = np.minimum(rng.exponential(0.5 * _MINUTE, len(ts)), SLACK_MINUTES * _MINUTE).astype(np.int64)
    known = ts + delay
    order = np.argsort(known, kind="stable")
    order = order[order >= first] if first is not None else order[known[order] >= 0]
    for epoch in range(trips.epochs):
        at = order[epoch * trips.events : (epoch + 1) * trips.events]
        events = pa.table(
            {
                "trip": pa.array(at, pa.int64()),
                "ts": pa.array(ts[at] + ORIGIN, pa.timestamp("us", tz="UTC")),
                **{name: column.take(pa.array(at)) for name, column in rest.items()},
            }
        )
        path = folder / f"{epoch:04d}.parquet"
        pq.write_table(punctuated(events, first) if trips.told else events, path)
        # Structured Streaming takes files in the order of their times, which must not be all the same.
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


def punctuated(events: pa.Table, first: int | None = None) -> pa.Table:
    """Events, each followed by a record that says its trip is over; with the `first` trip all earlier ones are.

    >>> rows = punctuated(pa.table({"trip": [9, 7], "ts": [1, 2]}), first=7)
    >>> rows["trip"].to_pylist(), rows["punctuation"].to_pylist()
    ([9, None, 7, None], [None, '[9, *]', None, '[<= 7, *]'])
    """
    others = ", *" * (events.num_columns - 1)
    texts = [f"[{'<= ' if trip == first else ''}{trip}{others}]" for trip in events["trip"].to_pylist()]
    records = pa.table({"punctuation": pa.array(texts, pa.string())})
    together = pa.concat_tables([events, records], promote_options="default")
    return together.take(pa.array(np.arange(2 * len(texts)).reshape(2, -1).T.ravel()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=36)
    parser.add_argument("--hours", type=float, default=2.0, help="hours of event time in an epoch")
    parser.add_argument("--rate", type=int, default=5_000, help="trips an hour")
    arguments = parser.parse_args()
    print(write(Trips(arguments.epochs, arguments.hours, arguments.rate), arguments.folder))


if __name__ == "__main__":
    main()
