"""Runs an operator on rows with lifetimes epoch by epoch, and keeps its state as the engine would."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock.analysis.speculate import speculate
from penstock.kernels.fold import frontier_of, tick
from penstock.kernels.stateful import DEAD, Circumstances, Heeding, Held
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.pattern.schema import SYNC
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of
from penstock.plan.weight import WEIGHT
from penstock.reference.lifetimes.event import Cti, StreamEvent, Time
from penstock.reference.lifetimes.history import WeightedChange, changes, from_changes

#: A row says its payload, and which of two groups it is in.
SCHEMA = "k int, v int, a int, b int"


def stays(name: str = "s") -> ps.Stream:
    return ps.stream(name, SCHEMA, lifetime=("a", "b"))


def told_at_once(stream: ps.Stream) -> Operator:
    """What a query becomes that corrects what it has told."""
    (operator,) = speculate([stream.operator], ps.Consistency.middle())
    return operator


class Bench:
    """One operator with its behaviour and its kernel, in one bucket."""

    def __init__(self, operator: Operator, group: Callable[[Any], int] = lambda payload: 0) -> None:
        self.operator, self.group = operator, group
        spec = spec_of(operator)
        self.behaviour = spec.behaviour(operator, True)
        self.step = spec.step(operator, Plan.of(operator).nodes[-1].id)
        self.held: list[list[Held]] = [[] for _ in operator.inputs]
        self.closed: int | None = None
        self.made = 0
        self.failed: list[Any] = []

    def table(self, events: Iterable[StreamEvent], port: int = 0) -> pa.Table | None:
        """What some events change, as a task brings it."""
        rows = [
            {"k": self.group(c.payload), "v": c.payload, "a": c.valid_from, SYNC: e.sync, WEIGHT: c.weight}
            | {"b": None if c.valid_to == math.inf else c.valid_to}
            for e in events
            for c in changes([e])
        ]
        if not rows:
            return None
        schema = self.operator.inputs[port].schema
        return pa.Table.from_pylist(rows, schema.arrow)

    def pattern(self, t: Time, port: int = 0) -> Pattern:
        schema = self.operator.inputs[port].schema
        return Pattern.all(schema) if t == math.inf else Pattern.by_name(schema, {SYNC: less(int(t))})

    def epoch(self, *events: Sequence[StreamEvent]) -> tuple[list[dict[str, Any]], list[Time]]:
        """The rows told for the events of each input, and the CTIs behind them."""
        fresh = [self.table(some, port) for port, some in enumerate(events)]
        found = [
            tuple(self.pattern(e.t, port) for e in some if isinstance(e, Cti) and e.t > 0)
            for port, some in enumerate(events)
        ]
        behind = self.behaviour.receive(found)
        orders = self.behaviour.orders()
        assert orders is not None
        kernel = self.step.kernel
        if isinstance(kernel, Heeding):
            kernel = kernel.under(Circumstances(closed=self.closed))
        given = [None if f is None else self.step.together([f.select(self.step.reads(i))]) for i, f in enumerate(fresh)]
        step = kernel.step(given, self.held, orders)
        self.failed += [row for f in getattr(kernel, "failed", ()) for row in f.rows.to_pylist()]
        self._keep(step)
        said: list[Time] = []
        for pattern in behind:
            frontier = frontier_of(pattern, SYNC)
            said.append(math.inf if frontier is None else frontier[0])
            if frontier is not None:
                at = tick(frontier[0], self.operator.schema.type_of(SYNC)) - (not frontier[1])
                self.closed = at if self.closed is None else max(at, self.closed)
        return step.output.to_pylist(), said

    def _keep(self, step: Any) -> None:
        marks = dict(step.marked)
        for port, runs in enumerate(self.held):
            self.held[port] = [
                Held(h.name, h.rows, marks.get(h.name, h.marks), h.group, h.low, h.high)
                for h in runs
                if h.name not in step.dropped
            ]
        for run in step.added:
            self.made += 1
            self.held[run.port].append(Held(f"run-{self.made}", run.rows, run.marks, run.group, run.low, run.high))

    def live(self) -> list[dict[str, Any]]:
        """All that is stored and counts."""
        return [row for runs in self.held for row in self.live_of(runs)]

    def live_of(self, runs: Iterable[Held]) -> list[dict[str, Any]]:
        """The same of some runs."""
        found = []
        for run in runs:
            marked = run.marks is not None and DEAD in run.marks.column_names
            dead = run.marks[DEAD].to_pylist() if marked else [False] * run.rows.num_rows
            found += [row for row, d in zip(run.rows.to_pylist(), dead, strict=True) if not d]
        return found


def as_changes(rows: Iterable[dict[str, Any]], payload: Callable[[dict[str, Any]], Any]) -> list[WeightedChange]:
    """Told rows as weighted changes."""
    return [WeightedChange(payload(r), r["a"], math.inf if r["b"] is None else r["b"], r[WEIGHT]) for r in rows]


def as_events(
    rows: Iterable[dict[str, Any]], said: Iterable[Time], payload: Callable[[dict[str, Any]], Any]
) -> list[StreamEvent]:
    """Told rows as events, each with the sync time that it says itself; then the CTIs."""
    rows = list(rows)
    found = from_changes(as_changes(rows, payload))
    # What becomes of several rows with one start at once can be told in more than one way, but not when it begins.
    begins = [_begins((e.payload, e.vs, e.sync) for e in found if not isinstance(e, Cti))]
    begins.append(_begins((payload(r), r["a"], r[SYNC]) for r in rows))
    assert begins[0] == begins[1], rows
    return [*found, *(Cti(t) for t in said)]


def _begins(changes: Iterable[tuple[Any, Time, Time]]) -> dict[tuple[Any, Time], Time]:
    """When something first changes, by payload and start."""
    first: dict[tuple[Any, Time], Time] = {}
    for payload, start, sync in changes:
        first[payload, start] = min(sync, first.get((payload, start), sync))
    return first


def cut(stream: Sequence[StreamEvent], cuts: Iterable[int]) -> list[list[StreamEvent]]:
    """Epochs: the stream in pieces, and further at each CTI, with which an epoch ends."""
    found: list[list[StreamEvent]] = [[]]
    for position, event in enumerate(stream):
        if position in cuts and found[-1]:
            found.append([])
        found[-1].append(event)
        if isinstance(event, Cti):
            found.append([])
    return [epoch for epoch in found if epoch]
