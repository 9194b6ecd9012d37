"""Sink, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item


class SinkReference:
    """A sink: takes everything as it is."""

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        return [event]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [Assertion(pattern)]

    def state(self) -> list[Any]:
        return []
