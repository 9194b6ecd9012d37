"""Limit: the first events, and then the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Limit(Operator):
    """The first `count` events in order of arrival, and then the end: nothing more is wanted."""

    count: int = field(kw_only=True)

    @property
    def detail(self) -> str:
        return f"the first {self.count:,}"
