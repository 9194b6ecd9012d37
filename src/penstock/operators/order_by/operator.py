"""OrderBy: events in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class OrderBy(Operator):
    """Events in order. Without `slack`, exactly: a sorted prefix leaves as punctuation says that it is complete.

    With `slack` n the order is approximate and needs no punctuation (BSort): a buffer of n + 1 events gives up its
    least whenever it is full. `by` lists (attribute, descending); nulls come last either way.
    """

    word = "order_by"

    by: tuple[tuple[str, bool], ...] = field(kw_only=True)
    slack: int | None = None

    @property
    def detail(self) -> str:
        order = ", ".join(f"{name} desc" if down else name for name, down in self.by)
        return order if self.slack is None else f"{order}, slack {self.slack}"
