"""Streams that keep to what is expected of them, run for real: state stays within its bound, which is not far off.

And streams that do not: the run says so.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.checkpoint.runs import Units
from penstock.engine.progress import Progress
from penstock.engine.source.promises.driver import PromiseState
from penstock.engine.watch_bounds import BoundsWatch
from penstock.portal.testing import local_session

SECOND = 1_000_000
SECONDS = 200
"""How long the streams are, in event time."""
SLACK = 3
RATE = 20
EPOCH = 8 * RATE
"""So many rows of each stream an epoch reads."""
SEGMENTS = 12


@pytest.fixture
def home() -> Iterator[Path]:
    """In memory where there is such a folder: every epoch flushes files."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-bounds-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    yield folder
    shutil.rmtree(folder)


def write(home: Path, name: str, *, rate: float = RATE, seed: int = 0, trip: float = 10.0, even: bool = False) -> None:
    """Events at a rate, out of order within the slack; trips take up to `trip` seconds.

    Trips of both streams begin alike: one every second, and each has events at random while it is under way.
    """
    rng = np.random.default_rng(seed)
    count = round(rate * SECONDS)
    at = np.arange(count) / rate if even else np.sort(rng.uniform(0, SECONDS, count))
    trips = np.floor(at - rng.uniform(0, trip, count)).astype(np.int64)
    arrival = at + rng.uniform(0, SLACK, count)
    order = np.argsort(arrival)
    table = pa.table(
        {
            "ts": pa.array((at[order] * SECOND).astype(np.int64), pa.timestamp("us")),
            "segment": pa.array(rng.integers(0, SEGMENTS, count)[order], pa.int64()),
            "trip": pa.array(trips[order], pa.int64()),
            "v": pa.array(rng.integers(0, 1000, count)[order], pa.int64()),
        }
    )
    (home / name).mkdir()
    pq.write_table(table, home / name / "all.parquet")


def stream(home: Path, name: str, **expected: object) -> ps.Stream:
    source = ps.stream(name, "ts timestamp, segment bigint, trip bigint, v bigint", time="ts")
    declared = source.read_parquet(str(home / name), order="name").disorder(f"{SLACK} s")
    return declared.expect(**{"rate": RATE, "keys": {"segment": SEGMENTS, "trip": 30}, **expected})


@dataclass
class Seen:
    """What each operator held at most, at the end of an epoch."""

    most: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    epochs: int = 0

    def take(self, units: Units) -> None:
        self.epochs += 1
        for kind, size in ((self.most, "live"), (self.bytes, "bytes")):
            now: dict[str, int] = {}
            for key, runs in units.items():
                operator = key.operator.partition("#")[0]
                now[operator] = now.get(operator, 0) + sum(getattr(r, size) for r in runs)
            for operator, rows in now.items():
                kind[operator] = max(rows, kind.get(operator, 0))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    see = BoundsWatch.see

    def recording(
        self: BoundsWatch, progress: Progress, units: Units, promises: Mapping[str, PromiseState]
    ) -> list[str]:
        found.take(units)
        return see(self, progress, units, promises)

    monkeypatch.setattr(BoundsWatch, "see", recording)
    return found


def run(query: ps.Stream, home: Path) -> list[str]:
    """To the end; what the run has to say of bounds."""
    done = query.start(
        ps.memory(),
        trigger="available_now",
        checkpoint=str(home / "checkpoint"),
        spark=local_session(),
        max_rows=EPOCH,
        buckets=1,
        overlap=False,
    ).wait()
    return [w for w in done.warnings if "wait for a later run" not in w and "stays for a later run" not in w]


def both(home: Path, **expected: object) -> tuple[ps.Stream, ps.Stream]:
    for seed, name in enumerate(("starts", "ends")):
        write(home, name, seed=seed + 1)
    return stream(home, "starts", **expected), stream(home, "ends", **expected)


def trips(s: ps.Stream) -> ps.Stream:
    return s.punctuate(ps.Punctuate.after("trip", "10 s"))


def finite(s: ps.Stream) -> ps.Stream:
    return s.punctuate(ps.Punctuate.values("segment", range(SEGMENTS)))


ONE: dict[str, tuple[str, Callable[[ps.Stream], ps.Stream]]] = {
    "tumbling, keys": ("aggregate-1", lambda s: s.window("20 s").group_by("segment").agg(n="count(*)")),
    "sliding, keys": ("aggregate-1", lambda s: s.window("40 s", slide="10 s").group_by("segment").agg(n="count(*)")),
    "tumbling, rate": ("aggregate-1", lambda s: s.window("20 s").group_by("v").agg(n="count(*)")),
    "sliding, rate": ("aggregate-1", lambda s: s.window("40 s", slide="10 s").group_by("v", "trip").agg(n="count(*)")),
    "trips": ("aggregate-1", lambda s: trips(s).group_by("trip").agg(n="count(*)")),
    "distinct": ("distinct-1", lambda s: s.distinct()),
    "in order": ("orderby-1", lambda s: s.order_by("ts")),
    "nearly in order": ("orderby-1", lambda s: s.order_by("ts", slack=50)),
    "landmark": (
        "aggregate-1",
        lambda s: finite(s).window(ps.Window.landmark("10 s")).group_by("segment").agg(n="count(*)"),
    ),
    "sessions": ("aggregate-1", lambda s: s.window(session="1 s").group_by("segment").agg(n="count(*)")),
    "by count": (
        "aggregate-1",
        lambda s: finite(s).window(ps.Window.count(40, 10)).group_by("segment").agg(n="count(*)"),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_one_stream_stays_within_its_bound(name: str, home: Path, seen: Seen) -> None:
    write(home, "starts")
    operator, make = ONE[name]
    query = make(stream(home, "starts", lifetime={"trip": "26 s"}))
    bound = bounds(query.plan)[operator]
    assert bound.rows is not None and bound.stored is not None and bound.bytes is not None
    assert run(query, home) == []
    assert seen.epochs > 10
    assert seen.most[operator] <= bound.stored, "the state is above its bound"
    assert bound.rows <= 4 * seen.most[operator], "the bound is far too high"
    assert seen.bytes[operator] <= 2 * bound.bytes * bound.stored / bound.rows + 20_000, "files are larger than that"


TWO: dict[str, tuple[str, Callable[[ps.Stream, ps.Stream], ps.Stream]]] = {
    "band": ("join-1", lambda a, b: a.join(b, on="segment", within="10 s")),
    "band, left": ("join-1", lambda a, b: a.join(b, on="trip", how="left", within="20 s")),
    "band, anti": ("join-1", lambda a, b: a.join(b, on="v", how="anti", within="20 s")),
    "trips": ("join-1", lambda a, b: trips(a).join(trips(b), on="trip", how="left")),
    "rows": ("join-1", lambda a, b: finite(a).join(finite(b), on="segment", rows=5)),
    "windows": (
        "join-1",
        lambda a, b: (
            a.window("20 s")
            .group_by("segment")
            .agg(n="count(*)")
            .join(b.window("20 s").group_by("segment").agg(m="count(*)"), on=["window_start", "segment"])
        ),
    ),
    "union": ("aggregate-1", lambda a, b: a.union(b).window("20 s").group_by("segment").agg(n="count(*)")),
}


@pytest.mark.parametrize("name", TWO)
def test_two_streams_stay_within_their_bound(name: str, home: Path, seen: Seen) -> None:
    starts, ends = both(home, lag="4 s", lifetime={"trip": "30 s"})
    operator, make = TWO[name]
    query = make(starts, ends)
    bound = bounds(query.plan)[operator]
    assert bound.rows is not None and bound.stored is not None
    assert run(query, home) == []
    most = seen.most.get(operator, 0)
    assert most <= bound.stored, "the state is above its bound"
    if name != "windows":  # Both sides are complete in the same epochs, so nothing stays in between.
        assert bound.rows <= 4 * most, "the bound is far too high"


def warned(home: Path, rate: float, make: Callable[[ps.Stream], ps.Stream], **expected: object) -> list[str]:
    write(home, "starts", rate=rate)
    return run(make(stream(home, "starts", **expected)), home)


def by_event(s: ps.Stream) -> ps.Stream:
    return s.window("20 s").group_by("v", "trip").agg(n="count(*)")


def test_a_stream_at_twice_its_rate_is_reported_once(home: Path) -> None:
    found = warned(home, 2 * RATE, by_event)
    assert len(found) == 2, found
    rate, state = found if found[0].startswith("starts") else found[::-1]
    assert rate.startswith("starts brings ") and rate.endswith(" events/s, declared 20")
    assert float(rate.split()[2]) == pytest.approx(2 * RATE, rel=0.1)
    assert state.startswith("aggregate-1 holds ") and " rows, the bound was " in state
    assert state.endswith(rate)


def test_a_stream_slower_than_declared_is_not_reported(home: Path) -> None:
    assert warned(home, RATE / 2, by_event) == []


def test_more_keys_than_declared_are_reported(home: Path) -> None:
    def by_trip(s: ps.Stream) -> ps.Stream:
        return s.window("20 s").group_by("trip").agg(n="count(*)")

    (line,) = warned(home, RATE, by_trip, keys={"trip": 1})
    assert line.startswith("aggregate-1 holds ")
    assert line.endswith("a lifetime or a number of keys must be more than declared")


def test_a_stream_that_falls_behind_is_reported(home: Path) -> None:
    """Epochs read as many rows of each, so the one with more events a second is left behind."""
    write(home, "starts", seed=1, rate=4 * RATE)
    write(home, "ends", seed=2)
    starts = stream(home, "starts", rate=4 * RATE, lag="5 s")
    query = starts.join(stream(home, "ends", lag="5 s"), on="segment", within="2 s")
    found = run(query, home)
    assert any(line.startswith("starts is ") and line.endswith(" behind, declared 5 s") for line in found), found
    assert any(line.startswith("join-1 holds ") and " behind" in line for line in found), found
    assert not any("brings" in line for line in found)


def rates_from(history: Iterable[Progress]) -> dict[str, float]:
    """Measured rates for `bounds`: events a second of event time (a tick of integer time), by stream.

    From what was read after the first epoch that told how far a stream is, up to the last.
    """
    rows: dict[str, int] = {}
    first: dict[str, tuple[int, float]] = {}
    last: dict[str, tuple[int, float]] = {}
    for progress in history:
        for name, count in progress.read.items():
            rows[name] = rows.get(name, 0) + count
        for name, text in progress.frontier.items():
            at = _moment(text)
            if at is not None:
                first.setdefault(name, (rows.get(name, 0), at))
                last[name] = rows.get(name, 0), at
    return {
        name: (last[name][0] - before) / (last[name][1] - at)
        for name, (before, at) in first.items()
        if last[name][1] > at
    }


def _moment(text: str | None) -> float | None:
    """Ticks of an integer, seconds of a time or a date."""
    if text is None or text == "end":
        return None
    try:
        return float(int(text))
    except ValueError:
        return (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()


def test_rates_are_measured_from_the_progress_of_a_run(home: Path) -> None:
    write(home, "starts", rate=2 * RATE)
    query = by_event(stream(home, "starts"))
    history: list[Progress] = []
    query.start(
        ps.memory(), trigger="available_now", spark=local_session(), max_rows=EPOCH, buckets=1, listener=history.append
    ).wait()
    rates = rates_from(history)
    assert rates["starts"] == pytest.approx(2 * RATE, rel=0.1)
    assert sum(p.read["starts"] for p in history if p.read) == 2 * RATE * SECONDS
    declared, measured = (bounds(query.plan, r)["aggregate-1"].rows for r in (None, rates))
    assert declared is not None and measured is not None
    assert measured == pytest.approx(2 * declared, rel=0.2)
