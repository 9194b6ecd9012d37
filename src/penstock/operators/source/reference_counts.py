"""Counts of events, one event at a time: an interval is over when as many have come as were counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.pattern.schema import Schema
from penstock.plan import promise as declaration
from penstock.plan.count import LOWEST, Count
from penstock.reference.moment import from_tick, to_tick


class CountedPromise:
    """All events by their tick, and all counts; what is complete is seen by looking at them from the beginning."""

    def __init__(self, promise: declaration.Counted, schema: Schema) -> None:
        self.promise, self.schema = promise, schema
        self.start = LOWEST if promise.since is None else promise.since
        self.came: list[int] = []
        self.counts: list[Count] = []

    def tell(self, count: Count) -> str:
        """Take note of a count. Why it cannot be, if it cannot."""
        others = [c for c in self.counts if c.overlaps(count) and c != count]
        if others or count.low < self.start < count.high:
            return f"{count} contradicts what was said before"
        if count not in self.counts and count.high > self.start:
            self.counts.append(count)
        return ""

    def reached(self) -> int:
        """Up to where one interval with all its events lies behind the other."""
        reached = self.start
        for count in sorted(self.counts):
            if count.low > reached or self._in(count) < count.number:
                break
            reached = count.high
        return reached

    def _in(self, count: Count) -> int:
        return sum(count.low <= tick < count.high for tick in self.came)

    def is_one_more(self, row: Mapping[str, Any]) -> bool:
        """Whether an event is more than counted; otherwise it is taken note of."""
        value = row[self.promise.attribute]
        if value is None:
            return False
        tick = to_tick(value)
        full = any(c.low <= tick < c.high and self._in(c) >= c.number for c in self.counts)
        if tick < self.start or full:
            return True
        self.came.append(tick)
        return False

    def assertions(self) -> list[Pattern]:
        reached = self.reached()
        if reached == self.start:
            return []
        limit = from_tick(reached, self.schema.type_of(self.promise.attribute))
        return [Pattern.by_name(self.schema, {self.promise.attribute: less(limit)})]
