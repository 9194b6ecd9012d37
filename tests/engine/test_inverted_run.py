"""Whole runs in which feedback on columns of a table passes the lookup: what is not read, and that nobody can tell.

What each event was to see is taken from the plan of its epoch, which names the files read and the state of the table.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint, EpochPlan
from penstock.checkpoint.fault import Crash, hooked
from penstock.engine import tables
from penstock.engine.progress import Progress
from penstock.engine.source.files import FilesReader
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.lookup.reference import TableJoinReference as ByDefinition
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.portal.testing import local_session
from penstock.reference.item import Event, events

GROUP, SEGMENTS, FILES = 10, 5, 6
CARS = ps.stream("cars", "ts bigint, segment int, speed double", time="ts").read_parquet("in", order="name").disorder(5)
ZONES = ps.table("zones", "segment bigint, zone string", key="segment").read_csv("zones.csv", settle=0)
QUERY = CARS.lookup(ZONES, "segment", columns=["zone"])
NO_HARBOUR = "not [*, *, *, 'harbour']"
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files with a row group for each segment."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for f in range(FILES):
        groups = []
        for s in range(SEGMENTS):
            first = (f * SEGMENTS + s) * GROUP
            segment = pa.array([s] * GROUP, pa.int32())
            ts = pa.array(range(first, first + GROUP), pa.int64())
            groups.append(pa.table({"ts": ts, "segment": segment, "speed": [float(t % 7) for t in range(GROUP)]}))
        pq.write_table(pa.concat_tables(groups), f"in/{f:02}.parquet", row_group_size=GROUP)
    return tmp_path


_written = 0


def zones(*rows: tuple[int | str, str]) -> None:
    global _written
    _written += 1
    Path("zones.new").write_text("segment,zone\n" + "".join(f"{s},{z}\n" for s, z in rows))
    os.utime("zones.new", ns=(_written * 10**9, _written * 10**9))
    os.replace("zones.new", "zones.csv")


def run(query: ps.Stream, feedback: tuple[str, ...] = (), name: str = "out", **settings: Any) -> list[Progress]:
    told: list[Progress] = []
    settings = {"checkpoint": f"{name}-cp", "max_rows": 40, "listener": told.append, **settings}
    started = query.start(
        ps.parquet(name), trigger="available_now", feedback=feedback, spark=local_session(), **settings
    )
    started.wait()
    return told


def results(name: str = "out") -> Counter[tuple[Any, ...]]:
    found = [pq.read_table(f) for f in sorted(Path(name).glob("*.parquet"))]
    return Counter(tuple(r.values()) for t in found for r in t.to_pylist())


@contextmanager
def planned() -> Iterator[dict[int, tuple[EpochPlan, list[Row]]]]:
    """By epoch its plan, and the rows of the table that it names."""
    found: dict[int, tuple[EpochPlan, list[Row]]] = {}
    write = Checkpoint.write_plan

    def noted(self: Checkpoint, plan: EpochPlan) -> None:
        rows = [r for name in plan.tables.values() for r in tables.load(self.storage, name).to_pylist()]
        found[plan.epoch] = plan, rows
        write(self, plan)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoint, "write_plan", noted)
        yield found


def by_definition(query: ps.Stream, plans: dict[int, tuple[EpochPlan, list[Row]]]) -> Counter[tuple[Any, ...]]:
    """The results without feedback: every event with the table of its epoch."""
    found: Counter[tuple[Any, ...]] = Counter()
    operator = query.operator
    assert isinstance(operator, TableJoin)
    for plan, rows in plans.values():
        looked_up = ByDefinition(operator, rows)
        for split in plan.splits.get("source:cars", ()):
            part = pq.read_table(split["path"]).slice(split["start"], split["stop"] - split["start"])
            for event in part.to_pylist():
                found.update(tuple(r.values()) for r in events(looked_up.on_event(Event(event))))
    return found


def matching(rows: Counter[tuple[Any, ...]], query: ps.Stream, *said: str) -> Counter[tuple[Any, ...]]:
    patterns: list[Pattern] = [Feedback.parse(text, query.schema).pattern for text in said]
    named = ((row, dict(zip(query.schema.names, row, strict=True))) for row in rows)
    return Counter({row: rows[row] for row, r in named if any(p.matches_row(r) for p in patterns)})


@pytest.mark.parametrize("settings", [{}, {"fuse_below": 0}, {"max_rows": None}])
@pytest.mark.parametrize(
    "query", [QUERY, CARS.where("speed >= 0").select("ts", s="segment", v="speed").lookup(ZONES, {"s": "segment"})]
)
def test_row_groups_of_keys_that_nobody_wants_are_never_read(query: ps.Stream, settings: dict[str, Any]) -> None:
    zones((0, "city"), (1, "harbour"), (2, "city"), (3, "harbour"), (4, "harbour"), (4, "city"), ("", "harbour"))
    run(query, name="free")
    told = run(query, (NO_HARBOUR,), **settings)
    assert results() == results("free") - matching(results("free"), query, NO_HARBOUR)
    assert told[-1].total_saved["source:cars never read"] == 2 * FILES * GROUP
    assert told[-1].total_saved["lookup-1 dropped"] == FILES * GROUP  # Of segment 4, the other row is wanted.


def test_what_is_said_of_the_stream_as_well_goes_along() -> None:
    zones(*((s, "harbour") for s in range(SEGMENTS)))
    run(QUERY, name="free")
    said = "not [< 100, *, > 3.0, 'harbour']"
    told = run(QUERY, (said,))
    assert results() == results("free") - matching(results("free"), QUERY, said)
    assert told[-1].total_saved == {"source:cars dropped": 2 * SEGMENTS * 3}


def test_a_left_lookup_keeps_events_without_a_row() -> None:
    query = CARS.lookup(ZONES, "segment", "left", columns=["zone"])
    zones((1, "harbour"), (2, ""), (3, "harbour"))
    run(query, name="free")
    told = run(query, (NO_HARBOUR,))
    assert results() == results("free") - matching(results("free"), query, NO_HARBOUR)
    assert told[-1].total_saved["source:cars never read"] == 2 * FILES * GROUP


def test_a_guard_of_yesterday_drops_nothing_that_is_wanted_today() -> None:
    zones((0, "city"), *((s, "harbour") for s in range(1, SEGMENTS)))
    told: list[Progress] = []

    def tomorrow(progress: Progress) -> None:
        told.append(progress)
        zones(*((s, "city") for s in range(SEGMENTS)))

    with planned() as plans:
        # So few rows that what is passed over has to be read by later epochs if it is wanted then.
        run(QUERY, (NO_HARBOUR,), max_rows=2 * GROUP, overlap=False, listener=tomorrow)
    free = by_definition(QUERY, plans)
    assert results() == free - matching(free, QUERY, NO_HARBOUR)
    assert ["source:cars never read" in p.saved for p in told] == [True] + [False] * (len(told) - 1)
    assert len(told) > 2


def test_events_see_what_was_written_before_them_though_more_was_to_be_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zones(*((s, "harbour") for s in range(SEGMENTS)))
    listed = FilesReader.plan

    def changed(self: FilesReader, *args: Any, **more: Any) -> Any:
        splits = listed(self, *args, **more)
        if self.source.name == "cars":
            zones((0, "harbour"), *((s, "city") for s in range(1, SEGMENTS)))
        return splits

    monkeypatch.setattr(FilesReader, "plan", changed)
    told = run(QUERY, (NO_HARBOUR,), max_rows=None)
    assert {row[1] for row in results()} == {1, 2, 3, 4}
    assert results().total() == 4 * FILES * GROUP
    assert told[-1].total_saved == {"source:cars dropped": FILES * GROUP}


@pytest.mark.parametrize("point", ["planned", "scanned", "commit", "committed"])
def test_an_epoch_that_is_run_again_passes_over_the_same(point: str) -> None:
    zones((1, "harbour"), (2, "city"), (3, "harbour"))
    seen = 0

    def crash(reached: str) -> None:
        nonlocal seen
        seen += reached == point
        if seen == 2:
            raise Crash(point)

    with planned() as plans:
        with hooked(crash), pytest.raises(BaseException):  # noqa: B017 - the plug is pulled
            run(QUERY, (NO_HARBOUR,), overlap=False)
        zones((1, "city"), (2, "harbour"), (3, "city"))
        run(QUERY, overlap=False)
    free = by_definition(QUERY, plans)
    assert results() == free - matching(free, QUERY, NO_HARBOUR)


@pytest.mark.parametrize(
    "query",
    [
        CARS.order_by("ts").lookup(ZONES, "segment", columns=["zone"]),
        CARS.group_by("ts", "segment").agg(speed="max(speed)").lookup(ZONES, "segment", columns=["zone"]),
        CARS.order_by("ts").feedback(exploit=False).where("speed >= 0").lookup(ZONES, "segment", columns=["zone"]),
    ],
)
def test_it_stops_where_events_wait_for_a_later_table(query: ps.Stream) -> None:
    zones(*((s, "harbour") for s in range(SEGMENTS)))
    told = run(query, (NO_HARBOUR,), max_rows=None)
    assert results().total() == 0
    assert not any("source" in what for what in told[-1].total_saved)


def test_a_lookup_behind_a_lookup() -> None:
    towns = ps.table("towns", "zone string, town string", key="zone").read_csv("towns.csv", settle=0)
    Path("towns.csv").write_text("zone,town\nharbour,A\ncity,B\nquay,A\n")
    zones((0, "city"), (1, "harbour"), (2, "quay"), (3, "harbour"), (3, "city"), (4, "quay"))
    query = QUERY.lookup(towns, "zone")
    run(query, name="free")
    told = run(query, ("not [*, *, *, *, 'A']",))
    assert results() == results("free") - matching(results("free"), query, "not [*, *, *, *, 'A']")
    assert told[-1].total_saved["source:cars never read"] == 3 * FILES * GROUP


def test_of_a_stream_that_is_read_twice_goes_what_both_ignore() -> None:
    more = ps.table("more", "segment bigint, zone string", key="segment").read_csv("more.csv", settle=0)
    Path("more.csv").write_text("segment,zone\n1,harbour\n2,harbour\n")
    zones((1, "harbour"), (2, "city"), (3, "harbour"))
    twice = QUERY.union(CARS.lookup(more, "segment", columns=["zone"]))
    run(twice, name="free")
    told = run(twice, (NO_HARBOUR,))
    assert results() == results("free") - matching(results("free"), twice, NO_HARBOUR)
    assert told[-1].total_saved["source:cars never read"] == FILES * GROUP
    aside = QUERY.union(CARS.select("ts", "segment", "speed", zone="'none'"))
    run(aside, name="aside-free")
    told = run(aside, (NO_HARBOUR,), name="aside")
    assert results("aside") == results("aside-free") - matching(results("aside-free"), aside, NO_HARBOUR)
    assert "source:cars never read" not in told[-1].total_saved


def test_who_is_not_to_pass_it_on_does_not() -> None:
    zones((1, "harbour"), (2, "city"))
    told = run(QUERY.feedback(propagate=False), (NO_HARBOUR,))
    assert told[-1].total_saved == {"lookup-1 dropped": FILES * GROUP}


def test_a_table_that_changes_while_nothing_comes_leaves_no_snapshots() -> None:
    zones((1, "harbour"), (2, "city"))
    more: dict[str, Any] = {"checkpoint": "cp", "spark": local_session(), "feedback": [NO_HARBOUR]}
    with QUERY.start(ps.parquet("out"), every="10 ms", **more) as running:
        waited = time.monotonic() + 60
        while results().total() == 0 and time.monotonic() < waited:
            time.sleep(0.01)
        names = {p.name for p in Path("cp/tables/zones").iterdir()}
        for number in range(6):
            zones((1, "harbour"), (2, str(number)))
            before = set(names)
            while names <= before and time.monotonic() < waited:
                time.sleep(0.01)
                names |= {p.name for p in Path("cp/tables/zones").iterdir()}
        assert running.active
        assert len(names) == 7
        assert len(list(Path("cp/tables/zones").iterdir())) <= 3


# --- anything at any moment ------------------------------------------------------------------------------------------

SAYINGS = [
    *(NO_HARBOUR, "not [*, *, *, {'city', 'quay'}]", "not [< 150, *, *, 'quay']", "not [*, *, > 3.0, 'city']"),
    *("not [*, {1, 2}, *, 'harbour']", "not [*, 3, *, *]", "not [*, *, *, (,)]", "not [*, *, *, >= 'd']"),
]


def attempt(seed: int, how: str) -> int:
    """Change the table, speak, and pull the plug at any step; how many rows were passed over."""
    rng = random.Random(seed)
    query = CARS.lookup(ZONES, "segment", how, columns=["zone"])
    said: list[str] = []
    name = f"{how}-{seed}"
    left = rng.randint(0, 3)

    def redraw() -> None:
        count = rng.randint(0, 7)
        zones(
            *((rng.choice([0, 1, 2, 3, 4, 9, ""]), rng.choice(["harbour", "city", "quay", ""])) for _ in range(count))
        )

    def hook(point: str) -> None:
        nonlocal left
        if rng.random() < 0.15:
            redraw()
        if rng.random() < 0.1 and (Path(f"{name}-cp") / "control" / "contract.json").exists():
            said.append(rng.choice(SAYINGS))
            ps.consumer(f"{name}-cp").feedback(said[-1])
        if left and rng.random() < 0.04:
            left -= 1
            raise Crash(point)

    listed = FilesReader.plan

    def plan(self: FilesReader, *args: Any, **more: Any) -> Any:
        splits = listed(self, *args, **more)
        if self.source.name == "cars" and rng.random() < 0.2:
            redraw()
        return splits

    settings: dict[str, Any] = {
        "max_rows": rng.choice([7, 20, 60]),
        "fuse_below": rng.choice([0, 1 << 20]),
        "overlap": rng.random() < 0.5,
    }
    zones(*((s, rng.choice(["harbour", "city", "quay"])) for s in range(SEGMENTS)))
    first = (rng.choice(SAYINGS),)
    said += first
    with planned() as plans, pytest.MonkeyPatch.context() as patched:
        patched.setattr(FilesReader, "plan", plan)
        for _ in range(30):
            try:
                with hooked(hook):
                    run(query, first, name, **settings)
                break
            except Crash:
                continue
        run(query, name=name, **settings)
    free, found = by_definition(query, plans), results(name)
    assert free.total() or how == "inner"
    assert not found - free, "altered, invented or doubled"
    lost = free - found
    assert not lost - matching(free, query, *said), "lost"
    splits = [s for plan, _ in plans.values() for s in plan.splits.get("source:cars", ())]
    assert sum(s["rows"] for s in splits) == FILES * SEGMENTS * GROUP
    return sum(s["rows"] for s in splits if s["spared"])


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_table_that_changes_at_any_step_loses_nothing_that_is_wanted(how: str) -> None:
    assert sum(attempt(seed, how) > 0 for seed in range(4)), "nothing was ever passed over"


@pytest.mark.fuzz
@pytest.mark.parametrize("how", ["inner", "left"])
def test_fuzz_a_table_that_changes_at_any_step(how: str, tried: Callable[[str], None]) -> None:
    seeds = range(100, 200)
    for seed in seeds:
        attempt(seed, how)
    tried(f"{len(seeds)} runs")
