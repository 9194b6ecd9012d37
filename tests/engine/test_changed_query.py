"""A query that was changed goes on from its checkpoint: state stays with the operator that has made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.errors import CheckpointError
from penstock.portal.testing import local_session

Build = Callable[[ps.Stream], ps.Stream]


def feed(home: Path, minute: int) -> None:
    (home / "in").mkdir(exist_ok=True)
    rows = {"t": [minute] * 4, "k": range(4)}
    table = pa.table({n: pa.array(v, pa.int32()) for n, v in rows.items()})
    pq.write_table(table, home / "in" / f"{minute:02d}.parquet")


def start(home: Path, build: Build, **options: Any) -> ps.Run:
    cars = ps.stream("cars", "t int, k int", time="t").read_parquet(str(home / "in"), order="name").disorder(0)
    given = {"trigger": "available_now", "checkpoint": str(home / "ck"), "spark": local_session(), "max_rows": 4}
    return build(cars).start(ps.parquet(str(home / "out")), **{**given, **options})


def results(home: Path) -> Counter[tuple[int, ...]]:
    return Counter(tuple(r.values()) for p in (home / "out").glob("part-*") for r in pq.read_table(p).to_pylist())


def tens(cars: ps.Stream) -> ps.Stream:
    return cars.window(10).group_by("k").agg(n="count(*)")


def run(home: Path, build: Build, minutes: range, **options: Any) -> ps.Run:
    for minute in minutes:
        feed(home, minute)
    return start(home, build, **options).wait()


def plain(cars: ps.Stream) -> ps.Stream:
    return tens(cars)


def filtered(cars: ps.Stream) -> ps.Stream:
    return tens(cars.where("k < 2")).where("n > 0")


def twice(cars: ps.Stream) -> ps.Stream:
    """Another branch, whose operators would be counted first."""
    return (
        cars.window(5)
        .group_by("k")
        .agg(n="count(*)")
        .rename(window_start="w")
        .union(tens(cars).rename(window_start="w"))
    )


def once(cars: ps.Stream) -> ps.Stream:
    return tens(cars).rename(window_start="w")


def test_a_where_in_front_keeps_what_was_counted(tmp_path: Path) -> None:
    run(tmp_path, plain, range(6))
    done = run(tmp_path, filtered, range(6, 12))
    # Six minutes of all four, then what is still let in.
    assert results(tmp_path) == Counter({(0, 0, 10): 1, (0, 1, 10): 1, (0, 2, 6): 1, (0, 3, 6): 1})
    assert [w for w in done.warnings if "is new in front of aggregate-1" in w]
    again = run(tmp_path, filtered, range(12, 22))
    assert not again.warnings and results(tmp_path)[(10, 0, 10)] == 1 and (10, 3, 2) not in results(tmp_path)


def test_another_branch_starts_with_nothing_and_takes_nothing(tmp_path: Path) -> None:
    run(tmp_path, once, range(6))
    done = run(tmp_path, twice, range(6, 12))
    held = {n.id: n.operator.detail for n in done.driver.plan if n.operator.kind == "aggregate"}
    assert len(held) == 2 and "aggregate-1" in held
    found = results(tmp_path)
    assert all(found[(0, k, 10)] == 1 for k in range(4))
    assert all(found[(5, k, 4)] == 1 for k in range(4))  # Of the window from 5 it has not seen the first minute.


def test_each_step_of_the_change_may_crash(tmp_path: Path) -> None:
    run(tmp_path, plain, range(6))
    for minute in range(6, 12):
        feed(tmp_path, minute)
    seen: set[str] = set()

    def hook(point: str) -> None:
        step = "".join(c for c in point if not c.isdigit())
        if step not in seen:
            seen.add(step)
            raise Crash(point)

    for _ in range(100):
        try:
            with hooked(hook):
                start(tmp_path, filtered).wait()
            break
        except Crash:
            continue
    assert "rename meta.json" in seen
    assert results(tmp_path) == Counter({(0, 0, 10): 1, (0, 1, 10): 1, (0, 2, 6): 1, (0, 3, 6): 1})


def crash(home: Path, build: Build, at: str) -> None:
    def hook(point: str) -> None:
        if point == at:
            raise Crash(point)

    with pytest.raises(Crash), hooked(hook):
        start(home, build).wait()


def test_an_epoch_that_was_planned_before_the_change_is_planned_anew(tmp_path: Path) -> None:
    run(tmp_path, plain, range(6))
    feed(tmp_path, 6)
    crash(tmp_path, plain, "planned")
    run(tmp_path, filtered, range(7, 12))
    assert results(tmp_path) == Counter({(0, 0, 10): 1, (0, 1, 10): 1, (0, 2, 6): 1, (0, 3, 6): 1})


def test_an_epoch_whose_results_may_be_out_is_run_again_as_it_was(tmp_path: Path) -> None:
    run(tmp_path, plain, range(12))
    newest = max((tmp_path / "ck/epochs").glob("*.commit.json"))
    newest.write_bytes(newest.read_bytes()[:-30])
    with pytest.raises(CheckpointError, match=r"has to be run again as it was.*start the query once as it was before"):
        start(tmp_path, filtered)
    start(tmp_path, plain).wait()
    run(tmp_path, filtered, range(12, 13))
    assert results(tmp_path) == Counter({(0, k, 10): 1 for k in range(4)})


def test_what_was_said_stays_said(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    told = start(tmp_path, plain, feedback="not [*, 3, *]")
    told.wait()
    places = {g.place for g in told.guards()}
    done = run(tmp_path, filtered, range(1, 12))
    assert places and {g.place for g in done.guards()} <= places | {"select-1"}
    assert not [row for row in results(tmp_path) if row[1] == 3]


def test_a_filter_may_come_and_go_behind(tmp_path: Path) -> None:
    def behind(cars: ps.Stream) -> ps.Stream:
        return tens(cars).where("k = 1")

    run(tmp_path, plain, range(6))
    run(tmp_path, behind, range(6, 12))
    assert results(tmp_path) == Counter({(0, 1, 10): 1})
    run(tmp_path, plain, range(12, 22))
    assert results(tmp_path) == Counter({(0, 1, 10): 1} | {(10, k, 10): 1 for k in range(4)})
    with pytest.raises(CheckpointError, match=r"belongs to another query: aggregate-1: definition was"):
        start(tmp_path, lambda cars: cars.window(10).group_by("k").agg(n="sum(t)"))
