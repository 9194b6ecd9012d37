"""What the operators have in common: an event in, events out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from penstock.reference.lifetimes.event import StreamEvent

E = TypeVar("E", contravariant=True)


class Speaking(Protocol[E]):
    """An operator of one input at work. Valid stream in, valid stream out (`Finalize` makes any stream valid)."""

    def on(self, event: E, /) -> list[StreamEvent]: ...


def feed(operator: Speaking[E], stream: Iterable[E]) -> list[StreamEvent]:
    """Everything that it says to these events."""
    return [said for event in stream for said in operator.on(event)]
