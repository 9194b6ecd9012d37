"""(a) What it costs to tell at once and to correct, in kernels alone: no Spark, no files, state in memory.

Each plan gets n events in epochs of one size, and tells m changes. The engine's claim is that it takes n log n + m.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.speculating.streams import SCHEMA, Late, disordered
from penstock.analysis.speculate import speculate
from penstock.kernels.stateful import DEAD, Held, Orders
from penstock.kernels.step import Rows
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.operators.revised_aggregate.step import step_of
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.plan import Plan
from penstock.reference.lifetimes.event import Insert

_LATE = Late(0.2, 10)
_WINDOW = 10


def _windows(stream: ps.Stream) -> ps.Stream:
    return stream.window(_WINDOW).group_by("key").agg(n="count(*)", s="sum(value)")


def _for_ever(stream: ps.Stream) -> ps.Stream:
    return stream.group_by("key").agg(n="count(*)", s="sum(value)")


def _counts_of_aggregates(stream: ps.Stream) -> ps.Stream:
    return _for_ever(stream).group_by("n").agg(keys="count(*)", mean="avg(s)")


def _of_aggregates(stream: ps.Stream) -> ps.Stream:
    return _for_ever(stream).group_by("n").agg(keys="count(*)", least="min(s)", most="max(s)")


@dataclass(frozen=True)
class Plot:
    """A plan whose kernels are driven; windows close behind the disorder, groups without a window never do."""

    name: str
    query: Callable[[ps.Stream], ps.Stream]
    #: Events to a key; None: a thousand keys, however many events.
    share: int | None = None


PLANS = (
    Plot("a window of 10 s by 1,000 keys", _windows),
    Plot("groups for ever, ten events each", _for_ever, 10),
    Plot("counts and means of these aggregates", _counts_of_aggregates, 10),
    Plot("extremes of these aggregates", _of_aggregates, 10),
)


@dataclass
class Driven:
    """A kernel with its state. Runs are in memory, as they would be mapped from a disk."""

    keeping: Any
    held: list[Held] = field(default_factory=list)
    made: int = 0

    @classmethod
    def of(cls, operator: RevisedAggregate, name: str) -> Driven:
        return cls(step_of(operator, name))

    @property
    def schema(self) -> Any:
        return self.keeping.kernel.output_schema

    def step(self, arrived: pa.Table, release: tuple[Pattern, ...]) -> pa.Table:
        kernel = self.keeping.kernel
        orders = Orders(release=(release,), settled=(PunctuationSet(self.schema),))
        done = kernel.step([self.keeping.sent(0, Rows(arrived), False)], [self.held], orders)
        dropped, marked = set(done.dropped), dict(done.marked)
        kept = [replace(h, marks=marked.get(h.name, h.marks)) for h in self.held if h.name not in dropped]
        for fresh in done.added:
            self.made += 1
            kept.append(Held(f"run-{self.made}", fresh.rows, fresh.marks, fresh.group, fresh.low, fresh.high))
        self.held = kept
        found: pa.Table = done.output
        return found

    @property
    def rows(self) -> int:
        """What is held and not marked dead."""
        marked = [h.marks[DEAD] for h in self.held if h.marks is not None and DEAD in h.marks.column_names]
        return int(sum(h.rows.num_rows for h in self.held)) - sum(int(np.asarray(m).sum()) for m in marked)


def measure(plan: Plot, count: int, epoch: int) -> dict[str, Any]:
    """Seconds in kernels for so many events, the changes told, and what is held in the end."""
    events = disordered(count, 1_000 if plan.share is None else max(1, count // plan.share), _LATE, rate=1_000)
    rows = events.select(["ts", "key", "value"])
    stream = ps.stream("events", SCHEMA, time="ts").disorder(_LATE.most)
    (root,) = speculate([plan.query(stream).operator], ps.Consistency.middle())
    chain = [n.operator for n in Plan.of(root) if isinstance(n.operator, RevisedAggregate)]
    driven = [Driven.of(operator, f"aggregate-{i}") for i, operator in enumerate(chain)]
    newest = np.maximum.accumulate(rows["ts"].to_numpy())
    changes, seconds, longest = 0, 0.0, 0.0
    for start in range(0, count, epoch):
        part = rows.slice(start, epoch).combine_chunks()
        release: tuple[Pattern, ...] = ()
        if plan.share is None:
            over = int(newest[start + part.num_rows - 1]) - _LATE.most - _WINDOW
            release = (Pattern.parse(f"[<= {over}, *, *, *]", driven[0].schema),)
        began = time.process_time()
        told = part
        for stage in driven:
            told = stage.step(told, release)
            changes += told.num_rows
        spent = time.process_time() - began
        seconds, longest = seconds + spent, max(longest, spent)
    return {
        "plan": plan.name,
        "events": count,
        "epoch": epoch,
        "changes": changes,
        "seconds": seconds,
        "longest": longest,
        "held": sum(stage.rows for stage in driven),
        "per": 1e9 * seconds / work(count, changes),
    }


def work(events: int, changes: int) -> float:
    """n log n + m.

    >>> work(1_024, 100)
    10340.0
    """
    return events * math.log2(events) + changes


def reference(count: int) -> dict[str, Any]:
    """The same of the algorithm that takes one event after the other; its steps are counted, too."""
    events = disordered(count, 1, _LATE, rate=1.0)
    engine = _of_tests("snapshot").PerfectnessPreserving(_of_tests("state").STATES["sum"])
    changes = 0
    began = time.process_time()
    for ts, value in zip(events["ts"].to_pylist(), events["value"].to_pylist()):
        changes += len(engine.on(Insert(ts, ts + _WINDOW, value)))
    seconds = time.process_time() - began
    per = engine.steps / work(count, changes)
    return {"events": count, "changes": changes, "seconds": seconds, "steps": engine.steps, "per": per}


def _of_tests(module: str) -> Any:
    """The algorithms that take one event after the other are the oracle of the tests, and beside these."""
    place = str(Path(__file__).parents[2] / "tests" / "lifetimes")
    if place not in sys.path:
        sys.path.append(place)
    return importlib.import_module(f"speculative.{module}")


def slope(found: list[dict[str, Any]]) -> float:
    """The exponent with which seconds grow with n log n + m: 1 if they do as they should.

    >>> slope([{"events": n, "changes": n, "seconds": 1e-7 * work(n, n)} for n in (1_000, 10_000)])
    1.0
    """
    x = np.log([work(f["events"], f["changes"]) for f in found])
    y = np.log([f["seconds"] for f in found])
    return round(float(np.polyfit(x, y, 1)[0]), 3)


def run(quick: bool) -> dict[str, Any]:
    sizes = [10**k for k in range(3, 6 if quick else 8)]
    measure(PLANS[0], 5_000, 1_000)  # What is loaded once is loaded now.
    kernels = []
    for plan in PLANS:
        for epoch in (1_000, 10_000):
            for count in sizes:
                if count >= epoch and count // epoch <= 1_000:
                    kernels.append(measure(plan, count, epoch))
                    print(plan.name, epoch, count, f"{kernels[-1]['seconds']:.2f} s", f"{kernels[-1]['per']:.0f} ns")
    alone = [reference(n) for n in sizes if n <= 10**5]
    return {"kernels": kernels, "reference": alone}
