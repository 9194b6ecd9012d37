"""A precise filter with a small memory: bids that are known to be too low are dropped near their source.

It is half an anti join: what it drops has lost for certain, what it passes may have lost as well. So a maximum behind
it is the same for every size of the memory, and only the traffic differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.errors import UserError
from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item


class BidFilter:
    """Remembers the greatest value of the `capacity` keys seen last; an event below that of its key is dropped.

    A key that is not remembered passes, and so does an equal value. Nulls are no bids: they pass and are forgotten.
    """

    def __init__(self, key: str, value: str, capacity: int) -> None:
        if capacity < 1:
            raise UserError(f"a bid filter for {capacity} keys", hint="at least 1")
        self.key, self.value, self.capacity = key, value, capacity
        #: Key → greatest value, the key seen last at the end.
        self.greatest: dict[Any, Any] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        key, value = event.row[self.key], event.row[self.value]
        if key is None or value is None:
            return [event]
        known = self.greatest.pop(key, value)
        self.greatest[key] = max(known, value)
        while len(self.greatest) > self.capacity:
            del self.greatest[next(iter(self.greatest))]
        return [event] if value >= known else []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        """What holds of all events holds of those that pass; a key that is over need not be remembered."""
        if set(pattern.restricted) <= {self.key}:
            self.greatest = {k: v for k, v in self.greatest.items() if not pattern[self.key].matches(k)}
        return [Assertion(pattern)]

    def state(self) -> list[Any]:
        return list(self.greatest.items())
