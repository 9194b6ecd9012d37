"""A count in the stream: exactly so many events of a source have their time in an interval."""

from __future__ import annotations

import json
from dataclasses import dataclass

#: Before all times.
LOWEST = -(2**63)


@dataclass(frozen=True, order=True)
class Count:
    """Exactly `number` events have `low <= time < high`, in ticks; without a lower end, all before `high`."""

    low: int
    high: int
    number: int

    def overlaps(self, other: Count) -> bool:
        return self.low < other.high and other.low < self.high

    def __str__(self) -> str:
        low = "-∞" if self.low == LOWEST else str(self.low)
        return f"[{low}, {self.high}) has {self.number}"

    @property
    def text(self) -> str:
        """As a record of a stream says it, in ticks."""
        low = {} if self.low == LOWEST else {"from": self.low}
        return json.dumps({**low, "to": self.high, "count": self.number})
