"""Instrument: a probe that issues feedback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Instrument(Operator):
    """Lets everything pass and issues a feedback: once, or after every so many events; at most once in an epoch.

    `says` is the text of the feedback over what passes, or a function from the number of events so far to that text.
    """

    says: str | Callable[[int], str] = field(kw_only=True)
    every: int | None = None

    @property
    def detail(self) -> str:
        says = self.says if isinstance(self.says, str) else f"{getattr(self.says, '__qualname__', '?')}(events)"
        return f"{says} once" if self.every is None else f"{says} after every {self.every:,} events"
