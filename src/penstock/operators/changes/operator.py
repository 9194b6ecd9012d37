"""Changes: what events of a stream with lifetimes say, as rows that hold from now on, or no longer do."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.operator import Operator
from penstock.plan.promise import Lifetime


@dataclass(frozen=True, eq=False)
class Changes(Operator):
    """An insert is a row of weight +1; a retraction one of −1 and, unless it takes all back, a shorter one of +1."""

    lifetime: Lifetime = field(kw_only=True)

    @property
    def detail(self) -> str:
        kinds = [n for n in (self.lifetime.kind, self.lifetime.new_end) if n]
        return f"by {' and '.join(kinds)}" if kinds else "all rows hold"
