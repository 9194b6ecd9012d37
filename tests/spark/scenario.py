"""Small queries that exercise the whole commit protocol, and what is compared after they were disturbed.

Used inside the test session and in processes that are killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint, named_by
from penstock.checkpoint.names import is_result
from penstock.checkpoint.runs import read_marks, read_run, run_names
from penstock.checkpoint.storage import Storage

SECOND = 1_000_000
FILES, ROWS = 4, 60
TRIP_EPOCHS = 8
#: The streams of trips, and how many epochs a trip takes in each: so the starts of a trip wait for its ends.
SIDES = {"starts": 1, "ends": 3}


def write_input(folder: Path, partitions: tuple[str, ...] = ("",), seed: int = 7) -> None:
    """A few files of events, a little out of order, with some that come far too late and some without a time."""
    rng = np.random.default_rng(seed)
    for p, partition in enumerate(partitions):
        (folder / partition).mkdir(parents=True, exist_ok=True)
        for i in range(FILES):
            at = (i * ROWS + np.arange(ROWS)) * SECOND // 4 + rng.integers(0, 2 * SECOND, ROWS) + p * SECOND
            times = [None if r == 5 else int(0 if i and r % 17 == 3 else t) for r, t in enumerate(at)]
            table = pa.table(
                {
                    "ts": pa.array(times, pa.timestamp("us")),
                    "key": pa.array(rng.integers(0, 6, ROWS), pa.int32()),
                    "value": pa.array(rng.integers(-100, 100, ROWS) / 4),
                }
            )
            pq.write_table(table, folder / partition / f"{i:02d}.parquet", row_group_size=ROWS // 3)


def write_trips(folder: Path, seed: int = 11) -> None:
    """Starts and ends of trips, which come and go: each stream says behind the last event of a trip that it is over.

    Of some trips one stream knows nothing, some events have no trip, and some come after their trip was over.
    """
    rng = np.random.default_rng(seed)
    for side, length in SIDES.items():
        (folder / side).mkdir(parents=True, exist_ok=True)
        came: list[list[int | None]] = [[] for _ in range(TRIP_EPOCHS)]
        over: list[list[int]] = [[] for _ in range(TRIP_EPOCHS)]
        for trip in range(5 * TRIP_EPOCHS):
            first = trip // 5 + int(rng.integers(0, 2))
            for i in first + rng.integers(0, length, rng.integers(0, 5)):
                came[min(i, TRIP_EPOCHS - 1)].append(trip)
            if first + length < TRIP_EPOCHS:
                over[first + length].append(trip)
        for i in range(TRIP_EPOCHS):
            late = [over[i - 1][0]] if i and over[i - 1] else []
            events = [*rng.permutation(np.array(came[i], dtype=object)), None, *late]
            told = [f"[*, {trip}, *]" for trip in over[i]]
            size = len(events) + len(told)
            table = pa.table(
                {
                    "ts": pa.array([i * SECOND] * size, pa.timestamp("us")),
                    "trip": pa.array([*events, *[None] * len(told)], pa.int32()),
                    "value": pa.array(rng.integers(0, 3, size) / 4),  # Few values: some events are equal.
                    "punctuation": pa.array([*[None] * len(events), *told], pa.string()),
                }
            )
            pq.write_table(table, folder / side / f"{i:02d}.parquet")


def trips(folder: Path, side: str) -> ps.Stream:
    source = ps.stream(side, "ts timestamp, trip int, value double", time="ts")
    return source.read_parquet(str(folder / side), order="name").punctuated()


def joined(folder: Path, how: str = "full", over: bool = True) -> ps.Stream:
    """Nothing but punctuation by trip moves here: it releases rows of the join and of `distinct`, and closes groups."""
    starts, ends = (trips(folder, side) for side in SIDES)
    if over:
        starts, ends = starts.ends(), ends.ends()
    pairs = starts.join(ends.rename(value="fare"), "trip", how).select("trip", "value", "fare").distinct()
    return pairs.group_by("trip").agg(n="count(*)", zones="sum(value)", fares="sum(fare)")


def events(folder: Path, name: str = "events", **options: Any) -> ps.Stream:
    source = ps.stream(name, "ts timestamp, key int, value double", time="ts")
    return source.read_parquet(str(folder), order="name", **options).disorder("2 s").ends()


def windows(folder: Path) -> ps.Stream:
    return events(folder).window("20 s", slide="5 s").group_by("key").agg(n="count(*)", total="sum(value)")


def two_levels(folder: Path) -> ps.Stream:
    fine = events(folder).window("3 s").group_by("key").agg(n="count(*)", total="sum(value)")
    coarse = fine.rename(window_start="at").window("15 s", on="at").group_by("key")
    return coarse.agg(parts="count(*)", most="max(n)", sum="sum(total)")


def partitioned(folder: Path) -> ps.Stream:
    """Two partitions, of which the first epoch sees both and reads one."""
    read = events(folder, partitions="directory")
    return read.window("5 s").group_by("key").agg(n="count(*)", total="sum(value)")


@dataclass(frozen=True)
class Scenario:
    """A query and the settings it runs with."""

    name: str
    query: Callable[[Path], ps.Stream]
    settings: Mapping[str, Any] = field(default_factory=dict)
    write: Callable[[Path], None] = write_input
    partition_by: tuple[str, ...] = ()
    changes: Literal["log", "fold", "final"] = "log"

    def prepare(self, home: Path) -> None:
        self.write(home / "in")

    def start(self, source: Path, home: Path, spark: Any, **settings: Any) -> ps.Run:
        """Start, or take up again, the run whose results and checkpoint lie in `home`."""
        return self.query(source / "in").start(
            ps.parquet(str(home / "out"), partition_by=self.partition_by, changes=self.changes),
            trigger="available_now",
            checkpoint=str(home / "checkpoint"),
            spark=spark,
            **{"max_rows": ROWS, **self.settings, **settings},
        )


SCENARIOS = {
    s.name: s
    for s in (
        # Input so small would be scanned and merged in one job; here the next scan is to overlap the merge.
        Scenario("windows", windows, {"fuse_below": 0}),
        Scenario("fused", windows),
        Scenario("compacting", windows, {"merge_above": 2, "max_rows": ROWS // 3, "fuse_below": 0}),
        Scenario("two-levels", two_levels),
        Scenario("no-overlap", windows, {"overlap": False, "fuse_below": 0}),
        Scenario("partitions", partitioned, {"max_rows": ROWS // 3}, partial(write_input, partitions=("a", "b"))),
        Scenario("by-value", windows, {"fuse_below": 0}, partition_by=("key", "window_start")),
        Scenario("folded", windows, {"fuse_below": 0, "consistency": ps.Consistency.middle()}, changes="fold"),
        Scenario(
            "folded by value", windows, {"consistency": ps.Consistency.middle()}, partition_by=("key",), changes="fold"
        ),
        # Marks of stored rows change in nearly every epoch.
        Scenario("joined", joined, {"max_rows": 16}, write_trips),
        Scenario("joined-open", partial(joined, how="left", over=False), {"max_rows": 16}, write_trips),
    )
}


#: What the consumers of the queries below say when they have seen some results.
IGNORED = {
    "told": "not [*, {0, 1}, *, *]",
    "told-values": "not [*, *, >= 9, *]",
    "told-join": "not [{11, 12, 13, 14}, *, *, *]",
}


def told(query: Callable[[Path], ps.Stream], name: str, folder: Path, every: int = 6) -> ps.Stream:
    """The query with somebody behind it who says, in the middle, what it will ignore."""
    return query(folder).instrument(IGNORED[name], every=every)


#: Here a crash may change when a feedback is taken up, and so which of the results that match it are still given.
TOLD = {
    s.name: s
    for s in (
        Scenario("told", partial(told, windows, "told"), {"max_rows": ROWS // 3, "fuse_below": 0}),
        Scenario("told-values", partial(told, windows, "told-values"), {"max_rows": ROWS // 3}),
        Scenario("told-join", partial(told, joined, "told-join", every=1), {"max_rows": 16}, write_trips),
    )
}
UNTOLD = {
    "told": Scenario("untold", windows),
    "told-values": Scenario("untold-values", windows),
    "told-join": Scenario("untold-join", joined, {"max_rows": 16}, write_trips),
}


@dataclass(frozen=True)
class Outcome:
    """All that a run leaves for others to see."""

    files: dict[str, list[tuple[Any, ...]]]
    letters: dict[str, list[tuple[Any, ...]]]
    totals: dict[str, Any]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return sorted((row for rows in self.files.values() for row in rows), key=repr)


def same(one: Outcome, other: Outcome) -> bool:
    """Equal up to the names of the files, which tell tasks apart: masters and paths cut the work into other tasks."""
    letters = [sorted((r for rows in o.letters.values() for r in rows), key=repr) for o in (one, other)]
    return one.rows == other.rows and one.totals == other.totals and letters[0] == letters[1]


def outcome(home: Path) -> Outcome:
    last = Checkpoint(Storage.at(str(home / "checkpoint"))).latest()
    assert last is not None
    return Outcome(_parts(home / "out"), _parts(home / "checkpoint" / "dead_letters"), dict(last.totals))


def _parts(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for path in sorted(p for p in folder.rglob("part-*") if "_penstock" not in p.parts):
        rows = pq.ParquetFile(path).read().to_pylist()
        # Dead letters name the file an event came from; where that lies is not part of the result.
        found[str(path.relative_to(folder))] = sorted((tuple(_name(v) for v in r.values()) for r in rows), key=repr)
    return found


def _name(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and value.startswith("/") else value


def held(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows in the state of a run after its last epoch, each with its marks, by operator and bucket."""
    storage = Storage.at(str(home / "checkpoint"))
    last = Checkpoint(storage).latest()
    assert last is not None
    found: dict[str, list[tuple[Any, ...]]] = {}
    for key, runs in last.units.items():
        for run in runs:
            rows, marks = read_run(storage, key, run), read_marks(storage, key, run)
            for name in marks.column_names if marks is not None else ():
                rows = rows.append_column(f"marked {name}", marks[name])
            found.setdefault(str(key), []).extend(tuple(r.items()) for r in rows.to_pylist())
    return {key: sorted(rows, key=repr) for key, rows in found.items()}


def state_named(home: Path) -> tuple[set[str], set[str]]:
    """The files below `state/`, and those that the last two manifests name: runs, and marks of their rows."""
    storage = Storage.at(str(home / "checkpoint"))
    checkpoint = Checkpoint(storage)
    last = checkpoint.latest()
    assert last is not None
    before = checkpoint.before(last)
    assert before is not None
    return set(storage.tree("state")), run_names(last.units) | run_names(before.units)


def orphans(home: Path) -> list[str]:
    """Files below a run's folders that neither of the last two manifests accounts for."""
    storage = Storage.at(str(home / "checkpoint"))
    checkpoint = Checkpoint(storage)
    last = checkpoint.latest()
    assert last is not None
    before = checkpoint.before(last)
    named = named_by(last) | (named_by(before) if before is not None else set())
    named |= {"meta.json", "identity.json", "lock", "control/contract.json"}
    oldest = before.control if before is not None else 0
    named |= {f"control/{version:06d}.json" for version in range(oldest, last.control + 1)}
    named |= {
        f"epochs/{e:06d}.{kind}.json" for e in range(last.epoch - 2, last.epoch + 1) for kind in ("plan", "commit")
    }
    named |= {"dead_letters/_penstock/owner.json", f"snapshots/{last.snapshot:06d}.json"}
    ours = ("dead_letters/part-", "published/")
    left = [n for n in storage.tree() if n not in named and not n.startswith(ours)]
    sink = Storage.at(str(home / "out"))
    return left + [
        n for n in sink.tree() if not n.startswith(("_penstock/owner", "_penstock/final")) and not is_result(n)
    ]
