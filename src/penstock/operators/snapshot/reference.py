"""Snapshot, one event at a time: computes a group again from all that it knows of it whenever it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import inf
from typing import Any

from penstock.operators.snapshot import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range
from penstock.pattern.schema import SYNC, Schema
from penstock.plan.weight import NEVER_CAME, WEIGHT, without_weight
from penstock.plan.window import Window
from penstock.reference.failure import FAILURES, Note, ignore
from penstock.reference.grouping import check_arguments, group_key, value_of
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick
from penstock.reference.summary import identity

Row = Mapping[str, Any]

#: How often a result is told, among what it says.
COPIES = "#"


class LastingGroup:
    """What is known of one group: rows with their weights, what was told, and ends that must stay ends."""

    def __init__(self, key: dict[str, Any]) -> None:
        self.key = key
        self.rows: dict[tuple[Any, ...], tuple[Row, int]] = {}
        self.told: list[dict[str, Any]] = []
        self.marks: set[float] = set()
        #: Rows that are shortened come as one that goes and one that comes: those of which the second is to come.
        self.halves: Counter[tuple[Any, ...]] = Counter()

    def __str__(self) -> str:
        held = sum(n for _, n in self.rows.values() if n > 0)
        return f"{', '.join(map(str, self.key.values())) or 'everything'}: {held} rows"


class SnapshotReference:
    """Takes back what it has told of a group where it changes, and tells what holds now."""

    def __init__(self, declared: operator.SnapshotAggregate) -> None:
        (below,) = declared.inputs
        self.declared = declared
        self.start, self.end = below.schema.lifetime
        attributes = tuple(a for a in without_weight(below.schema) if a.name != SYNC)
        # What is first among rows that hold together began first.
        self.schema = Schema(attributes, (self.start,))
        self.kind = below.schema.type_of(self.start)
        self.groups: dict[tuple[Any, ...], LastingGroup] = {}
        self.window: Window | None = None
        self.aggregations = declared.aggregations
        self.zero = declared.empty == "zero"
        self.final = -inf
        self.on_failure: Note = ignore

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: event.row[n] for n in self.schema.names}
        check_arguments(self, row, self.schema)
        key = group_key(row, self.declared.keys)
        group = self.groups.setdefault(key, LastingGroup({k: row[k] for k in self.declared.keys}))
        same = tuple(identity(v) for v in row.values())
        _, count = group.rows.pop(same, (row, 0))
        if count := count + event.row.get(WEIGHT, 1):
            group.rows[same] = (row, count)
        half = self._family(row)
        if event.row.get(WEIGHT, 1) > 0:
            group.halves -= Counter([half])
        elif to_tick(event.row[SYNC]) > to_tick(row[self.start]):
            group.halves[half] += 1
        return [] if group.halves else self._tell(group)

    def _tell(self, group: LastingGroup) -> Iterable[Item]:
        """What changes of what was told."""
        before = group.told
        group.told = self._results(group, before)
        gone = [r for r in before if r not in group.told]
        come = [r for r in group.told if r not in before]
        return [self._change(r, -1, come) for r in gone] + [self._change(r, 1, gone) for r in come]

    def _change(self, row: dict[str, Any], weight: int, others: list[dict[str, Any]]) -> Event:
        """A change matters from its start, or, if a row is only shortened, from the end that is nearer."""
        told = {n: row[n] for n in self.declared.schema.names if n in row}
        alike = [o for o in others if all(o[n] == row[n] for n in row if n != self.end)]
        shorter = alike and all(weight * (self._stop(o) - self._stop(row)) > 0 for o in alike)
        sync: float = min(self._stop(o) for o in (row, *alike)) if shorter else to_tick(row[self.start])
        return Event({**told, SYNC: from_tick(int(sync), self.kind), WEIGHT: weight * row.get(COPIES, 1)})

    def _stop(self, row: Row) -> float:
        return inf if row[self.end] is None else to_tick(row[self.end])

    def _results(self, group: LastingGroup, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
        held = self._held(group)
        bounds = {at for row in held for at in (to_tick(row[self.start]), self._stop(row))} | group.marks
        for row in before:
            stop = self._stop(row)
            if to_tick(row[self.start]) < self.final < stop and not any(self.final <= at <= stop for at in bounds):
                group.marks.add(stop)
        # What is final stays as it was told, and what it began with stays a bound.
        begun = self.final if self.zero else self.final + 1
        bounds |= group.marks | {to_tick(r[self.start]) for r in before if to_tick(r[self.start]) < begun}
        found = [row for row in before if self._stop(row) <= self.final]
        if self.zero:
            bounds.add(inf)
        for begin, end in pairwise(sorted(bounds)):
            rows = [r for r in held if to_tick(r[self.start]) <= begin and end <= self._stop(r)]
            if (rows or self.zero) and end > self.final:
                found += self._result(group, rows, begin, end)
        return found

    def _held(self, group: LastingGroup) -> list[Row]:
        """The rows that hold: of those that say the same and begin together, as many as there are, that end first."""
        families: dict[tuple[Any, ...], list[tuple[float, Row, int]]] = {}
        for row, n in group.rows.values():
            families.setdefault(self._family(row), []).append((self._stop(row), row, n))
        found: list[Row] = []
        for family in families.values():
            ends = [row for _, row, n in sorted(family, key=lambda known: known[0]) for _ in range(n)]
            found += ends[: max(0, sum(n for _, _, n in family))]
        return found

    def _family(self, row: Row) -> tuple[Any, ...]:
        """What a row and those have in common that it was shortened to."""
        return tuple(identity(v) for name, v in row.items() if name != self.end)

    def _result(self, group: LastingGroup, rows: list[Row], begin: float, end: float) -> list[dict[str, Any]]:
        stop = None if end == inf else from_tick(int(end), self.kind)
        moments = {self.start: from_tick(int(begin), self.kind), self.end: stop}
        try:
            values = {a.name: value_of(a, rows, self.schema, self.start, group.key) for a in self.declared.aggregations}
        except FAILURES as error:
            self.on_failure({**group.key, **moments}, str(error))
            return []
        if self.declared.copies is not None:
            values[COPIES] = values.pop(self.declared.copies)
            if not values[COPIES]:
                return []
        return [{**moments, **group.key, **values}]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        said = pattern[SYNC]
        waiting = [group for group in self.groups.values() if group.halves]
        for group in waiting:
            group.halves.clear()
        told = [item for group in waiting for item in self._tell(group)]
        keys = set(pattern.restricted) <= set(self.declared.keys)
        if keys:
            for known, group in list(self.groups.items()):
                if all(pattern[n].matches(group.key[n]) for n in pattern.restricted):
                    self._see_off(group, inf, inf)
                    del self.groups[known]
        elif pattern.restricted == (SYNC,) and isinstance(said, Range) and said.low is None:
            self.final = max(self.final, to_tick(said.high) + said.high_closed)
            for known, group in list(self.groups.items()):
                self._see_off(group, self.final, self.final)
                if not group.rows and not (group.told and self.zero):
                    del self.groups[known]
        else:
            return told
        return [*told, Assertion(Pattern.by_name(self.declared.schema, {n: pattern[n] for n in pattern.restricted}))]

    def _see_off(self, group: LastingGroup, final: float, begun: float) -> None:
        """Forget the rows that have ended; what was taken back and has not come until now never will."""
        held = Counter(map(id, self._held(group)))
        never: set[tuple[Any, ...]] = set()
        for same, (row, n) in list(group.rows.items()):
            stop, start = self._stop(row), to_tick(row[self.start])
            if n > 0 and (stop <= final or final == inf):
                if self.zero and held[id(row)]:
                    group.marks.add(stop)  # Where zeros begin, whatever becomes of other rows.
                del group.rows[same]
            elif n < 0 and (stop < final or (stop == inf and start < begun) or final == inf):
                for _ in range(-n):
                    self.on_failure(dict(row), NEVER_CAME)
                del group.rows[same]
                never.add(self._family(row))
        for same, (row, n) in list(group.rows.items()):
            if self._family(row) in never and n > held[id(row)]:
                del group.rows[same]  # What that was shortened to which never came.
                if held[id(row)]:
                    group.rows[same] = (row, held[id(row)])
        group.told = [r for r in group.told if self._stop(r) > final]

    def state(self) -> list[Any]:
        return [str(group) for group in self.groups.values()]
