"""What who talks to a run gets to see: the message that was taken, and the guards that have come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.plan.place import Place


@dataclass(frozen=True)
class Guard:
    """A pattern of events that are dropped in one place, from one epoch on; `pinned` until punctuation covers it."""

    place: Place
    pattern: Pattern
    since: int
    pinned: bool

    def __str__(self) -> str:
        return f"{self.place}: not {self.pattern}, since epoch {self.since}"

    @property
    def operator(self) -> str:
        """The operator that drops them: `join-1` of the place `join-1#0`, its first input.

        >>> from penstock.pattern.schema import Schema
        >>> Guard(Place("join-1#0"), Pattern.all(Schema.parse("n int")), 1, False).operator
        'join-1'
        """
        return self.place.node


@dataclass(frozen=True)
class Receipt:
    """A message that waits for its run.

    >>> print(Receipt("1", "not [> 40]", "source:cars"))
    not [> 40] to source:cars
    """

    id: str
    text: str
    to: str
    # Asked for when somebody looks: who talks to a run in every epoch does not pay for it each time.
    contract: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What the contract says about it: which guards nothing will ever cover."""
        return self.contract()

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt, (self.id, self.text, self.to, partial(tuple[str, ...], self.remarks))

    def __str__(self) -> str:
        return "\n  ".join((f"{self.text} to {self.to}", *self.remarks))


def inside(node: str, feedback: Feedback) -> tuple[str, ...]:
    """What to know before telling an operator inside a query something: those behind it did not say so."""
    if feedback.intent is not Intent.ASSUMED:
        return ()
    return (f"operators behind {node} may need what is dropped there: results may change, not only be missing",)
