"""Source: events from outside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pyarrow.types import is_date, is_timestamp

from penstock.pattern.duration import format_duration
from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator, Role
from penstock.plan.promise import (
    Adaptive,
    After,
    Ahead,
    Disorder,
    Every,
    Inbox,
    Lifetime,
    OnViolation,
    Promise,
    Reader,
)


@dataclass(frozen=True, eq=False)
class Source(Operator):
    """Events from outside, checked against schema and promises before anyone sees them."""

    word = "stream"

    role: ClassVar[Role] = "source"

    name: str = ""
    reader: Reader | None = None
    promises: tuple[Promise, ...] = ()
    on_violation: OnViolation = "reject"
    #: The attribute that says whether an event takes a row back; none if no event does.
    changes: str = ""
    #: Whether rows are told apart by a key, so that another one with the same takes the place of the one before.
    keyed: bool = False
    #: Where the query stands on the dial, and what was promised before it was turned.
    dial: Consistency | None = None
    written: tuple[Promise, ...] = ()

    @property
    def lasting(self) -> Lifetime | None:
        """How long its events hold; None if they have no lifetimes."""
        return next((p for p in self.promises if isinstance(p, Lifetime)), None)

    @property
    def detail(self) -> str:
        reader = type(self.reader).__name__.lower() if self.reader is not None else "nothing to read yet"
        path = getattr(self.reader, "path", "")
        promised = "; ".join(self._shown(p) for p in self.promises) or "no punctuation promised"
        return f"{self.name} from {reader}{' ' + path if path else ''} ({promised})"

    def for_tasks(self) -> Source:
        """A DataFrame stays with the driver."""
        return replace(self, reader=Inbox(None)) if isinstance(self.reader, Inbox) else self

    def _shown(self, promise: Promise) -> str:
        """A promise as text, with lengths of time where its own text can only count ticks."""
        match promise:
            case Disorder():
                return f"disorder({promise.attribute} within {self._extent(promise.attribute, promise.slack)})"
            case Adaptive():
                low, high = (self._extent(promise.attribute, t) for t in (promise.at_least, promise.at_most))
                return f"disorder({promise.attribute} as {promise.quantile:.12g} of the events, {low} to {high})"
            case Ahead():
                return f"{promise.attribute} at most {self._extent(promise.attribute, promise.most)} ahead"
            case Every():
                return f"every {self._extent(promise.attribute, promise.period)} of {promise.attribute}"
            case After():
                gap = self._extent(promise.attribute, promise.gap)
                return f"{promise.key} over after {gap} of {promise.attribute}"
            case _:
                return str(promise)

    def extent(self, ticks: int) -> str:
        """A length of its time."""
        return self._extent(self.schema.times[0], ticks) if self.schema.times else f"{ticks} ticks"

    def _extent(self, attribute: str, ticks: int) -> str:
        t = self.schema.type_of(attribute)
        if is_date(t):
            return f"{ticks} day{'s' * (ticks != 1)}"
        return format_duration(ticks) if is_timestamp(t) else f"{ticks} tick{'s' * (ticks != 1)}"
