"""What all reference operators have in common: items in, items out, and what they hold in between."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from penstock.pattern.pattern import Pattern
from penstock.plan.count import Count
from penstock.reference.failure import Note
from penstock.reference.item import Assertion, DeadLetter, Event, Item


class Running(Protocol):
    """An operator at work on one stream (or several, told apart by the number of the input)."""

    def on_event(self, event: Event, input: int = 0, /) -> Iterable[Item]: ...

    def on_punctuation(self, pattern: Pattern, input: int = 0, /) -> Iterable[Item]: ...

    def state(self) -> list[Any]:
        """What is still held, one entry per piece; empty once everything is punctuated."""
        ...


@runtime_checkable
class NotesFailures(Protocol):
    """One that notes on what an expression has failed, where that is not the event it was given."""

    on_failure: Note


@runtime_checkable
class ByEpoch(Protocol):
    """One that goes by epochs: it learns before that one ends, and speaks when it is over."""

    def epoch_ends(self) -> None: ...

    def epoch_over(self) -> Iterable[Item]: ...


@runtime_checkable
class Turning(Protocol):
    """One that holds events back, for so long as the dial says."""

    def turn(self, slack: int, block: int, /) -> None: ...


@runtime_checkable
class Rejecting(Protocol):
    """One that turns events away. `held`: what it is given was kept before, so it need not be of this epoch."""

    held: bool
    dead_letters: list[DeadLetter]


class Arriving(Protocol):
    """A source at work."""

    declared: Any
    partitions: Sequence[Hashable]
    dead_letters: list[DeadLetter]

    def on_event(self, event: Event, partition: Hashable = 0, /) -> Iterable[Item]: ...

    def on_punctuation(self, pattern: Pattern, partition: Hashable | None = None, /) -> Iterable[Item]: ...

    def on_count(self, count: Count, partition: Hashable | None = None, /) -> None: ...

    def punctuate(self) -> list[Item]: ...

    def turn(self, slack: int, /) -> None: ...

    def end(self) -> list[Item]: ...


def feed(operator: Running, items: Iterable[Item], input: int = 0) -> list[Item]:
    """Everything that an operator emits for these items, in order."""
    out: list[Item] = []
    for item in items:
        if isinstance(item, Assertion):
            out += operator.on_punctuation(item.pattern, input)
        else:
            out += operator.on_event(item, input)
    return out
