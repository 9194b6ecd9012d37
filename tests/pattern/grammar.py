"""Whether a stream keeps its own punctuations: no event follows one that it matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import ViolationError
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import Event
from penstock.pattern.schema import Schema


@dataclass(frozen=True)
class Violation:
    """An event that matches an earlier punctuation of its stream."""

    position: int
    event: Mapping[str, Any]
    punctuation: Pattern

    def __str__(self) -> str:
        return f"event {self.position}, {dict(self.event)}, breaks punctuation {self.punctuation}"

    def error(self, stream: str) -> ViolationError:
        return ViolationError(f"stream '{stream}': {self}", hint="choose the policy 'reject' to set such events aside")


def first_violation(items: Iterable[Event | Pattern], schema: Schema) -> Violation | None:
    """The first event of a sequence that an earlier punctuation forbids, with that punctuation; None if grammatical.

    >>> s = Schema.parse("id int, temperature double")
    >>> print(first_violation([(7, 76.6), Pattern.parse("[7, *]", s), (4, 76.5), (7, 75.9)], s))
    event 3, {'id': 7, 'temperature': 75.9}, breaks punctuation [7, *]
    """
    promised: list[Pattern] = []
    for position, item in enumerate(items):
        if isinstance(item, Pattern):
            promised.append(item)
            continue
        event = schema.event(item)
        for punctuation in promised:
            if punctuation.matches_row(event):
                return Violation(position, event, punctuation)
    return None


def is_grammatical(items: Iterable[Event | Pattern], schema: Schema) -> bool:
    """Whether no event of a sequence follows a punctuation that it matches."""
    return first_violation(items, schema) is None
