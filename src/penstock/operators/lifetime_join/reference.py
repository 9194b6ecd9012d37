"""Lifetime join, one event at a time: all pairs anew whenever something changes, by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from penstock.operators.lifetime_join import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range, less
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT
from penstock.reference.failure import FAILURES, Note, ignore
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick
from penstock.reference.summary import identity
from penstock.sql.expression import evaluate_row

Row = Mapping[str, Any]


class JoinedRows:
    """What one input has said."""

    def __init__(self, start: str, end: str) -> None:
        self.start, self.end = start, end
        self.rows: dict[tuple[Any, ...], tuple[Row, int]] = {}
        #: Rows that are shortened come as one that goes and one that comes: those of which the second is to come.
        self.halves: Counter[tuple[Any, ...]] = Counter()

    def take(self, row: Row, weight: int, sync: Any) -> None:
        same, family = tuple(identity(v) for v in row.values()), self.family(row)
        _, count = self.rows.pop(same, (row, 0))
        if count := count + weight:
            self.rows[same] = (row, count)
        if weight > 0:
            self.halves -= Counter([family])
        elif to_tick(sync) > to_tick(row[self.start]):
            self.halves[family] += 1

    def family(self, row: Row) -> tuple[Any, ...]:
        """What a row and those have in common that it was shortened to."""
        return tuple(identity(v) for name, v in row.items() if name != self.end)

    def stop(self, row: Row) -> float:
        return inf if row[self.end] is None else to_tick(row[self.end])

    def holding(self) -> list[Row]:
        """Of rows that say the same and begin together as many as there are, that end first."""
        families: dict[tuple[Any, ...], list[tuple[float, Row, int]]] = {}
        for row, n in self.rows.values():
            families.setdefault(self.family(row), []).append((self.stop(row), row, n))
        found: list[Row] = []
        for family in families.values():
            ends = [row for _, row, n in sorted(family, key=lambda known: known[0]) for _ in range(n)]
            found += ends[: max(0, sum(n for _, _, n in family))]
        return found


class LifetimeJoinReference:
    """A pair holds while both rows do."""

    def __init__(self, declared: operator.LifetimeJoin) -> None:
        self.declared = declared
        self.sides = [JoinedRows(*i.schema.lifetime) for i in declared.inputs]
        self.start, self.end = declared.schema.lifetime
        self.kind = declared.schema.type_of(SYNC)
        self.told: list[dict[str, Any]] = []
        self.final = [-inf, -inf]
        self.on_failure: Note = ignore
        self.noted: set[str] = set()

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: v for n, v in event.row.items() if n not in (SYNC, WEIGHT)}
        if any(row[key] is None for key in self.declared.keys_of(input)):
            return []
        self.sides[input].take(row, event.row.get(WEIGHT, 1), event.row[SYNC])
        return [] if any(side.halves for side in self.sides) else self._tell()

    def _tell(self) -> list[Event]:
        """What changes of the pairs that were told."""
        left, right = (side.holding() for side in self.sides)
        before, self.told = self.told, [pair for a in left for b in right for pair in self._pair(a, b)]
        gone, come = _without(before, self.told), _without(self.told, before)
        return [self._change(r, -1, come) for r in gone] + [self._change(r, 1, gone) for r in come]

    def _change(self, row: dict[str, Any], weight: int, others: list[dict[str, Any]]) -> Event:
        """A change matters from its start, or, if a pair is only cut short, from the end that is nearer."""
        alike = [o for o in others if all(o[n] == row[n] for n in row if n != self.end)]
        shorter = alike and all(weight * (self._stop(o) - self._stop(row)) > 0 for o in alike)
        sync: float = min(self._stop(o) for o in (row, *alike)) if shorter else to_tick(row[self.start])
        found = {**row, SYNC: from_tick(int(sync), self.kind), WEIGHT: weight}
        return Event({name: found[name] for name in self.declared.schema.names})

    def _stop(self, row: Row) -> float:
        return inf if row[self.end] is None else to_tick(row[self.end])

    def _pair(self, left: Row, right: Row) -> Iterable[dict[str, Any]]:
        declared, both = self.declared, (left, right)
        if any(identity(left[a]) != identity(right[b]) for a, b in declared.keys):
            return
        begin = max(to_tick(r[s.start]) for r, s in zip(both, self.sides, strict=True))
        end = min(s.stop(r) for r, s in zip(both, self.sides, strict=True))
        if begin >= end:
            return
        joint = {name: both[side][a] for side, a, name in declared.pair}
        try:
            if declared.residual is not None and evaluate_row(declared.residual, joint) is not True:
                return
        except FAILURES as error:
            if repr(joint) not in self.noted:
                self.noted.add(repr(joint))
                self.on_failure(joint, str(error))
            return
        found = {c.name: both[c.origins[0][0]][c.origins[0][1]] for c in declared.columns}
        stop = None if end == inf else from_tick(int(end), self.kind)
        yield {**found, self.start: from_tick(begin, self.kind), self.end: stop}

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        waiting = any(side.halves for side in self.sides)
        for side in self.sides:
            side.halves.clear()
        told = self._tell() if waiting else []
        said, before = pattern[SYNC], min(self.final)
        if not pattern.restricted:
            self.final[input] = inf
        elif pattern.restricted == (SYNC,) and isinstance(said, Range) and said.low is None:
            self.final[input] = max(self.final[input], to_tick(said.high) + said.high_closed)
        now = min(self.final)
        if now == before:
            return told
        for side in self.sides:
            side.rows = {} if now == inf else {k: (r, n) for k, (r, n) in side.rows.items() if side.stop(r) > now}
        self.told = [] if now == inf else [row for row in self.told if self._stop(row) > now]
        if now == inf:
            return [*told, Assertion(Pattern.all(self.declared.schema))]
        bound = less(from_tick(int(now), self.kind))
        return [*told, Assertion(Pattern.by_name(self.declared.schema, {SYNC: bound}))]

    def state(self) -> list[Any]:
        return [row for side in self.sides for row, _ in side.rows.values()]


def _without(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of one bag that are not in the other."""
    left = list(others)
    found = []
    for row in some:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found
