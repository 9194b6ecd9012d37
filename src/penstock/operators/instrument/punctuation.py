"""The behaviour of `instrument`: it speaks of what it has counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.operators.instrument.operator import Instrument
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import Behaviour


class InstrumentBehaviour(Behaviour):
    """Counts events and issues its feedback; punctuation passes as it is."""

    def __init__(self, operator: Instrument) -> None:
        self.operator = operator
        self.count = self.told = 0

    def saw(self, value: int) -> None:
        self.count += value

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        return tuple(Pattern(self.operator.schema, p.restrictions) for p in patterns)

    def issued(self) -> list[tuple[int, Feedback]]:
        every = self.operator.every
        due = self.count // every > self.told // every if every is not None else self.count > 0 and not self.told
        if not due:
            return []
        self.told = self.count
        return [(0, said(self.operator, self.count))] if self.operator.switches.propagate else []

    def to_json(self) -> dict[str, Any]:
        return {"count": self.count, "told": self.told}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.count, self.told = stored["count"], stored["told"]


def said(operator: Instrument, count: int) -> Feedback:
    """The feedback that is issued after so many events."""
    text = operator.says if isinstance(operator.says, str) else operator.says(count)
    return Feedback.parse(text, operator.inputs[0].schema)
