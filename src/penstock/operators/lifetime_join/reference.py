"""Lifetime join, one event at a time: each row with all of the other input, by definition."""

from __future__ import annotations

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


class LifetimeJoinReference:
    """A pair holds while both rows do; a change of one changes the pairs with all that hold or may yet not."""

    def __init__(self, declared: operator.LifetimeJoin) -> None:
        self.declared = declared
        self.ends = [i.schema.lifetime for i in declared.inputs]
        self.kind = declared.schema.type_of(SYNC)
        self.rows: list[list[Row]] = [[], []]
        self.final = [-inf, -inf]
        self.on_failure: Note = ignore

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = event.row
        if any(row[key] is None for key in self.declared.keys_of(input)):
            return []
        self.rows[input].append(row)
        pairs = ((row, other) if input == 0 else (other, row) for other in self.rows[1 - input])
        return [found for left, right in pairs for found in self._pair(left, right, event)]

    def _pair(self, left: Row, right: Row, event: Event) -> Iterable[Event]:
        declared, both = self.declared, (left, right)
        if any(identity(left[a]) != identity(right[b]) for a, b in declared.keys):
            return
        begin = max(to_tick(r[start]) for r, (start, _) in zip(both, self.ends, strict=True))
        end = min(inf if r[stop] is None else to_tick(r[stop]) for r, (_, stop) in zip(both, self.ends, strict=True))
        if begin >= end:
            return
        joint = {name: both[side][a] for side, a, name in declared.pair}
        try:
            if declared.residual is not None and evaluate_row(declared.residual, joint) is not True:
                return
        except FAILURES as error:
            self.on_failure(joint, str(error))
            return
        start, stop = declared.schema.lifetime
        found = {c.name: both[c.origins[0][0]][c.origins[0][1]] for c in declared.columns}
        found |= {start: from_tick(begin, self.kind), stop: None if end == inf else from_tick(int(end), self.kind)}
        found[SYNC] = from_tick(max(to_tick(event.row[SYNC]), begin), self.kind)
        if WEIGHT in declared.schema:
            found[WEIGHT] = left.get(WEIGHT, 1) * right.get(WEIGHT, 1)
        yield Event({name: found[name] for name in declared.schema.names})

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        said, before = pattern[SYNC], min(self.final)
        if not pattern.restricted:
            self.final[input], self.rows[1 - input] = inf, []
        elif pattern.restricted == (SYNC,) and isinstance(said, Range) and said.low is None:
            self.final[input] = max(self.final[input], to_tick(said.high) + said.high_closed)
        if min(self.final) == before:
            return []
        if min(self.final) == inf:
            return [Assertion(Pattern.all(self.declared.schema))]
        bound = less(from_tick(int(min(self.final)), self.kind))
        return [Assertion(Pattern.by_name(self.declared.schema, {SYNC: bound}))]

    def state(self) -> list[Any]:
        return [*self.rows[0], *self.rows[1]]
