"""What all reference operators have in common: items in, items out, and what they hold in between."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from penstock.pattern.pattern import Pattern
from penstock.reference.item import Event, Item, Punctuate


class Running(Protocol):
    """An operator at work on one stream (or several, told apart by the number of the input)."""

    def on_event(self, event: Event, input: int = 0, /) -> Iterable[Item]: ...

    def on_punctuation(self, pattern: Pattern, input: int = 0, /) -> Iterable[Item]: ...

    def state(self) -> list[Any]:
        """What is still held, one entry per piece; empty once everything is punctuated."""
        ...


def feed(operator: Running, items: Iterable[Item], input: int = 0) -> list[Item]:
    """Everything that an operator emits for these items, in order."""
    out: list[Item] = []
    for item in items:
        if isinstance(item, Punctuate):
            out += operator.on_punctuation(item.pattern, input)
        else:
            out += operator.on_event(item, input)
    return out
