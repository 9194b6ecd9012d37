"""Taxi trips: a stream of starts and a stream of ends, and what each says about trips that are over.

    python -m benchmarks.trips FOLDER --epochs 30 --hours 1 --rate 5000

Most trips take minutes, a few take most of a day. A watermark therefore has to wait a day for every trip, since any
could be one of the long ones. But the streams know better: a trip starts once and ends once. So right behind every
event comes a punctuation `[trip, *, *, *]`, in the column `punctuation`: no more events of this trip in this stream.
"""

from __future__ import annotations

import argparse
import itertools
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

    `gather` puts the punctuation of so many events into one record, as a list of trips, behind the last of them.
    """

    epochs: int = 30
    hours: float = 1.0
    rate: int = 5_000
    seed: int = 3
    gather: int = 1

    @property
    def slug(self) -> str:
        return f"trips-{self.epochs}x{self.hours:g}h-{self.rate}-{self.seed}-{self.gather}"

    @property
    def most_rows(self) -> int:
        """More rows than any file has, fewer than any two."""
        return int(self.rate * self.hours * (1 + 1 / self.gather) * 1.4)


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
    span = int(trips.epochs * trips.hours * _HOUR)
    count = int(trips.rate * trips.epochs * trips.hours)
    begin = np.sort(rng.integers(0, span, count))
    end = begin + durations(count, rng)
    trip = np.arange(count, dtype=np.int64)
    starts = {"zone": pa.array(rng.integers(0, _ZONES, count), pa.int32()), "vehicle": _vehicles(begin, end)}
    minutes = (end - begin) / _MINUTE
    ends = {
        "fare": pa.array((3 + 0.8 * minutes).round(2)),
        "zone_to": pa.array(rng.integers(0, _ZONES, count), pa.int32()),
    }
    _write_side(folder / "starts", trips, trip, begin, starts, rng)
    _write_side(folder / "ends", trips, trip, end, ends, rng)
    (folder / "complete").touch()
    return folder


def _vehicles(begin: Any, end: Any) -> pa.Array:
    """Numbers that go round, among somewhat more vehicles than are on the road at once."""
    fleet = max(1, int((end - begin).sum() / max(1, end.max()) * 1.5))
    return pa.array(np.arange(len(begin)) % fleet, pa.int32())


def _write_side(
    folder: Path, trips: Trips, trip: Any, ts: Any, rest: dict[str, pa.Array], rng: np.random.Generator
) -> None:
    """Events in the order in which they become known, cut by that time; what comes after the last epoch is left out."""
    folder.mkdir(parents=True)
    delay = np.minimum(rng.exponential(0.5 * _MINUTE, len(ts)), SLACK_MINUTES * _MINUTE).astype(np.int64)
    known = ts + delay
    order = np.argsort(known, kind="stable")
    cuts = np.searchsorted(known[order], np.arange(trips.epochs + 1) * int(trips.hours * _HOUR))
    for epoch, (low, high) in enumerate(itertools.pairwise(cuts)):
        at = order[low:high]
        events = pa.table(
            {
                "trip": trip[at],
                "ts": pa.array(ts[at] + ORIGIN, pa.timestamp("us", tz="UTC")),
                **{name: column.take(pa.array(at)) for name, column in rest.items()},
            }
        )
        path = folder / f"{epoch:04d}.parquet"
        pq.write_table(punctuated(events, trips.gather), path)
        # Structured Streaming takes files in the order of their times, which must not be all the same.
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


def punctuated(events: pa.Table, gather: int = 1) -> pa.Table:
    """Events, and behind every `gather` of them a record that says their trips are over.

    >>> rows = punctuated(pa.table({"trip": [7, 9], "ts": [1, 2]}))
    >>> rows["trip"].to_pylist(), rows["punctuation"].to_pylist()
    ([7, None, 9, None], [None, '[7, *]', None, '[9, *]'])
    """
    n = events.num_rows
    groups = [events["trip"].slice(i, gather).to_pylist() for i in range(0, n, gather)]
    others = ", *" * (events.num_columns - 1)
    texts = [f"[{g[0] if len(g) == 1 else '{' + ', '.join(map(str, g)) + '}'}{others}]" for g in groups]
    records = pa.table({"punctuation": pa.array(texts, pa.string())})
    together = pa.concat_tables([events, records], promote_options="default")
    behind = np.minimum(np.arange(1, len(texts) + 1) * gather, n)
    place = np.concatenate([np.arange(n) * 2, behind * 2 - 1])
    return together.take(pa.array(np.argsort(place, kind="stable")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--hours", type=float, default=1.0, help="hours of event time in an epoch")
    parser.add_argument("--rate", type=int, default=5_000, help="trips an hour")
    parser.add_argument("--gather", type=int, default=1, help="events whose trips one punctuation names")
    arguments = parser.parse_args()
    trips = Trips(arguments.epochs, arguments.hours, arguments.rate, gather=arguments.gather)
    print(write(trips, arguments.folder))


if __name__ == "__main__":
    main()
