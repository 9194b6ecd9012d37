"""Instrument, one event at a time: lets everything pass and speaks when an epoch is over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.instrument import operator
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item


class InstrumentReference:
    """Counts events. At the end of an epoch it speaks if it has enough new ones, or if it has any and never spoke."""

    def __init__(self, declared: operator.Instrument) -> None:
        self.declared = declared
        self.count = 0
        self.owed = 0
        #: All that was told upstream: (input, feedback).
        self.issued: list[tuple[int, Feedback]] = []

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        self.count += 1
        every = self.declared.every
        if self.count % every == 0 if every is not None else self.count == 1:
            self.owed += 1
        return [event]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [Assertion(pattern)]

    def epoch_ends(self) -> None: ...

    def epoch_over(self) -> Iterable[Item]:
        if self.owed:
            says = self.declared.says
            text = says if isinstance(says, str) else says(self.count)
            self.issued.append((0, Feedback.parse(text, self.declared.inputs[0].schema)))
        self.owed = 0
        return []

    def state(self) -> list[Any]:
        return []
