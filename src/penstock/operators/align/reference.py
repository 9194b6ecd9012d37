"""Align, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.align import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import to_tick


class AlignReference:
    """Holds an event until a punctuation matches it, or says that time is complete up to shortly before it."""

    def __init__(self, declared: operator.Align) -> None:
        self.time, self.slack, self.block = declared.time, declared.slack, declared.block
        self.held: list[Event] = []
        self.reached: int | None = None

    def turn(self, slack: int, block: int) -> None:
        """From now on, events may come this late and are held back so long."""
        self.slack, self.block = slack, block

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        if self._is_near(event):
            return [event]
        self.held.append(event)
        return []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        said = pattern[self.time]
        if pattern.restricted == (self.time,) and isinstance(said, Range) and said.low is None:
            # How far time has come: so far behind it is the first moment that may still come.
            first = to_tick(said.high) + said.high_closed + self.slack
            self.reached = first if self.reached is None else max(self.reached, first)
        out = [e for e in self.held if pattern.matches_row(e.row) or self._is_near(e)]
        self.held = [e for e in self.held if e not in out]
        return [*out, Assertion(pattern)]

    def _is_near(self, event: Event) -> bool:
        at = event.row[self.time]
        if at is None or not self.block:
            return True
        return self.reached is not None and to_tick(at) < self.reached - min(self.block, self.slack)

    def state(self) -> list[Any]:
        return list(self.held)
