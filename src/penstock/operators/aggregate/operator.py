"""Aggregate: one event per group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.plan.window import Window
    from penstock.sql.aggregation import Aggregation
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Aggregate(Operator):
    """One output event per group, when a punctuation says that the group is complete.

    Over windows of time, `window` says which, and its label is the first of `keys`.
    """

    word = "agg"

    keys: tuple[str, ...] = field(kw_only=True)
    aggregations: tuple[Aggregation, ...] = field(kw_only=True)
    window: Window | None = None

    @property
    def without_label(self) -> tuple[str, ...]:
        """The grouping attributes that events have of themselves."""
        return tuple(k for k in self.keys if self.window is None or k != self.window.label)

    @property
    def detail(self) -> str:
        by = ", ".join(self.keys) or "nothing: one group"
        return ", ".join(f"{a.text} AS {a.name}" for a in self.aggregations) + f" by {by}"
