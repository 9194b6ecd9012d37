"""Operators that keep rows, between files and kernels: runs and marks are stored, replaced, dropped and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.checkpoint import Manifest
from penstock.checkpoint.intact import Written
from penstock.checkpoint.runs import (
    Change,
    StoredRun,
    UnitKey,
    Units,
    apply,
    read_marks,
    read_run,
    run_names,
    units_from_json,
    units_to_json,
)
from penstock.checkpoint.storage import Storage
from penstock.checkpoint.use import Use, used
from penstock.engine.tasks.bucket import combined, dead_rows, live_rows, step_bucket
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.pipeline import Keeper
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.watch import Watch
from penstock.errors import CheckpointError
from penstock.kernels.stateful import Fresh, Held, Stepped
from penstock.operators.aggregate.folding import FoldingKernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import less
from penstock.pattern.schema import Schema
from penstock.plan.orders import Answer, Orders
from penstock.plan.window import Window
from penstock.sql.aggregation import Aggregation

SCHEMA = Schema.parse("k int")
ALL = Pattern.all(SCHEMA)
KEY = UnitKey("join-1#0", 2)


def rows(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int32())})


def marks(*dead: bool) -> pa.Table:
    return pa.table({"dead": pa.array(dead, pa.bool_()), "matched": pa.array([True] * len(dead), pa.bool_())})


class Scripted:
    """A kernel that does what it is told, and remembers what it was given."""

    spread: tuple[tuple[str, ...], ...] = (("k",), ("k",))
    needed: tuple[tuple[str, ...] | None, ...] = (None, None)

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.held: list[list[list[Held]]] = []

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        self.held.append([list(h) for h in held])
        step: Stepped = self.script.pop(0)(self.held[-1])
        return step


def orders(release: bool = False, ask: bool = False) -> Orders:
    settled = (PunctuationSet(SCHEMA), PunctuationSet(SCHEMA))
    return Orders(((ALL,) if release else (), ()), settled, ((ALL,), ()) if ask else ())


def turn(
    kernel: Scripted,
    folder: Path,
    units: Units,
    fresh: Sequence[pa.Table | None] = (None, None),
    told: Orders | None = None,
    bucket: int = 2,
) -> tuple[Units, TaskReport, pa.Table | None]:
    """One epoch of one bucket of a join, and the units after it."""
    keeper = Keeper("join-1", (0, 1), 1, kernel)
    job = Job("", b"", epoch=4, checkpoint=Storage.at(str(folder)))
    report = TaskReport("m000")
    merging = Merge(units, orders={"join-1": told or orders()})
    output = step_bucket(job, merging, keeper, bucket, fresh, report, Watch(), lambda rows: None)
    return apply(units, report.changes), report, output


def test_runs_and_marks_from_epoch_to_epoch(tmp_path: Path) -> None:
    storage = Storage.at(str(tmp_path))

    def begin(held: Any) -> Stepped:
        added = (Fresh(0, rows(1, 2, 3), low=5, high=7), Fresh(1, rows(9), marks=marks(False)))
        return Stepped(rows(), added=added)

    def mark(held: Any) -> Stepped:
        return Stepped(rows(2), marked=((held[0][0].name, marks(False, True, False)),))

    def drop(held: Any) -> Stepped:
        return Stepped(rows(), dropped=(held[0][0].name,), added=(Fresh(0, rows(3)),))

    kernel = Scripted(begin, mark, drop)
    first, _, output = turn(kernel, tmp_path, {}, (rows(1, 2, 3), rows(9)))
    assert output is None  # No results is nothing to send on.
    assert set(first) == {KEY, UnitKey("join-1#1", 2)}
    second, _, output = turn(kernel, tmp_path, first, (rows(1), None))
    assert output is not None and output.equals(rows(2))
    ((left,), (right,)) = kernel.held[1]
    assert left.rows.equals(rows(1, 2, 3)) and (left.marks, left.low, left.high) == (None, 5, 7)
    assert right.rows.equals(rows(9)) and right.marks.equals(marks(False))
    (run,) = second[KEY]
    assert (run.name, run.dead, run.live) == (left.name, 1, 2)
    third, _, _ = turn(kernel, tmp_path, second, (rows(1), None))
    assert kernel.held[2][0][0].marks.equals(marks(False, True, False))
    assert [read_run(storage, KEY, r).equals(rows(3)) for r in third[KEY]] == [True]
    # Every file is accounted for by one of the three manifests, and the marks of a dropped run go with it.
    assert set(storage.tree("state")) == run_names(first) | run_names(second) | run_names(third)
    assert run.marks not in run_names(third) and run.name not in run_names(third)


def test_a_bucket_sees_its_own_runs(tmp_path: Path) -> None:
    add = lambda held: Stepped(rows(), added=(Fresh(0, rows(1)),))  # noqa: E731
    kernel = Scripted(add, add, lambda held: Stepped(rows()))
    units, _, _ = turn(kernel, tmp_path, {}, (rows(1), None), bucket=1)
    units, _, _ = turn(kernel, tmp_path, units, (rows(1), None), bucket=2)
    turn(kernel, tmp_path, units, (rows(1), None), bucket=1)
    assert [len(h) for h in kernel.held[2]] == [1, 0]
    assert kernel.held[2][0][0].name == units[replace(KEY, bucket=1)][0].name


def test_nothing_to_do_is_not_done(tmp_path: Path) -> None:
    kernel = Scripted()
    assert turn(kernel, tmp_path, {})[2] is None
    _, report, output = turn(kernel, tmp_path, {}, told=orders(release=True, ask=True))
    assert output is None and report.answers == {"join-1": [((Answer(0),), ())]}
    assert kernel.held == []


def test_dead_rows_are_counted_and_left_out() -> None:
    assert dead_rows(marks(True, False, True)) == 2
    assert live_rows(rows(1, 2, 3), marks(True, False, True)).equals(rows(2))
    other = pa.table({"matched": [True]})
    assert dead_rows(other) == 0 and live_rows(rows(1), other).equals(rows(1)) and live_rows(rows(1), None) is not None


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(-5, 5)), min_size=1))
def test_answers_of_buckets_add_up(said: list[tuple[int, int | None]]) -> None:
    ((found,), nothing) = combined([((Answer(*s),), ()) for s in said])
    known = [latest for _, latest in said if latest is not None]
    assert nothing == ()
    assert found == Answer(sum(n for n, _ in said), max(known) if known else None)


def test_marks_are_replaced_and_a_run_without_live_rows_leaves() -> None:
    run = StoredRun("a", rows=5, bytes=1, epoch=1)
    once = apply({KEY: (run,)}, [Change(KEY, marked=(("a", Written("m1", 0, 0), 2),))])
    assert once == {KEY: (replace(run, marks="m1", dead=2),)} and once[KEY][0].live == 3
    assert run_names(once) == {"a", "m1"}
    assert units_from_json(units_to_json(once)) == once
    twice = apply(once, [Change(KEY, marked=(("a", Written("m2", 0, 0), 4),))])
    assert run_names(twice) == {"a", "m2"} and twice[KEY][0].live == 1
    assert apply(twice, [Change(KEY, marked=(("a", Written("m3", 0, 0), 5),))]) == {}


def test_damaged_marks_are_told(tmp_path: Path) -> None:
    kernel = Scripted(lambda held: Stepped(rows(), added=(Fresh(0, rows(1, 2), marks=marks(False, True)),)))
    units, _, _ = turn(kernel, tmp_path, {}, (rows(1, 2), None))
    (run,) = units[KEY]
    storage = Storage.at(str(tmp_path))
    assert run.marks is not None and read_marks(storage, KEY, run).equals(marks(False, True))
    Path(storage.path(run.marks)).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"bucket 2: state run .*marks-.* is missing or damaged"):
        read_marks(storage, KEY, run)


def test_a_unit_is_used_when_it_is_looked_at_or_added_to(tmp_path: Path) -> None:
    def begin(held: Any) -> Stepped:
        return Stepped(rows(), added=(Fresh(0, rows(1, 2), low=5, high=7), Fresh(0, rows(3), 9, low=8, high=8)))

    def look(held: Any) -> Stepped:
        return Stepped(rows(7, 8, 9), added=(Fresh(1, rows(4)),))

    kernel = Scripted(begin, look)
    units, report, _ = turn(kernel, tmp_path, {}, (rows(1), None))
    uses = used({}, [report.uses], 1, units)
    assert uses == {KEY: Use(1), replace(KEY, group=9): Use(1)}
    units, report, _ = turn(kernel, tmp_path, units, (None, rows(4)))
    manifest = Manifest(epoch=2, units=units, uses=used(uses, [report.uses], 2, units))
    assert manifest.uses == dict.fromkeys([*uses, UnitKey("join-1#1", 2)], Use(2, 3))
    assert Manifest.from_json(manifest.to_json()) == manifest
    known = manifest.statistics()[KEY]
    assert (known.rows, known.low, known.high, known.used, known.results) == (2, 5, 7, 2, 3)


def test_a_run_that_no_order_can_touch_is_not_read(tmp_path: Path) -> None:
    schema = Schema.parse("t int, k int", time="t")
    window = Window.tumbling(10).resolve(schema)
    groups = AggregateKernel(schema, ["k"], [Aggregation.parse("n", "count(*)", schema)], window)
    keeper = Keeper("aggregate-1", (0,), 1, FoldingKernel(groups), groups=True)
    storage = Storage.at(str(tmp_path))
    units: Units = {}

    def epoch(number: int, events: list[int], upto: int | None) -> pa.Table | None:
        nonlocal units
        fresh = groups.partial(pa.table({"t": events, "k": [1] * len(events)}, schema=schema.arrow))
        closers = () if upto is None else (Pattern.where(groups.output_schema, window_start=less(upto)),)
        merging = Merge(units, {keeper.id: Orders((closers,), (PunctuationSet(groups.output_schema),))})
        report, job = TaskReport("b1000"), Job("", b"", epoch=number, checkpoint=storage)
        output = step_bucket(job, merging, keeper, 0, [fresh if events else None], report, Watch(), lambda rows: None)
        units = apply(units, report.changes)
        return output

    epoch(1, [1, 12], None)
    epoch(2, [105], None)
    (far,) = (r for runs in units.values() for r in runs if r.epoch == 2)
    Path(storage.path(far.name)).unlink()
    output = epoch(3, [], 20)
    assert output is not None and sorted(output["window_start"].to_pylist()) == [0, 10]
    with pytest.raises(CheckpointError, match="missing or damaged"):
        epoch(4, [], 200)
