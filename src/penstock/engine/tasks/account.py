"""What one task counts as it goes: rows that came to an operator and left it, and the CPU time between.

Costs a look at the process's clock for each statement, not for each row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Account:
    """Rows in and out and CPU seconds, by operator; under `aggregate-1#0` those of the way to its first input.

    >>> account = Account()
    >>> account.took("map-1", 10, 7, account.now())
    >>> account.rows_in, account.rows_out, account.cpu["map-1"] < 1
    ({'map-1': 10}, {'map-1': 7}, True)
    """

    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    #: Rows that were shed, by place and how, as in "source:traffic dropped".
    shed: dict[str, int] = field(default_factory=dict)
    #: By source and attribute, where somebody asks for it, the newest tick that was read.
    newest: dict[str, int] = field(default_factory=dict)
    #: By sink, where somebody asks for it, results by what they are worth.
    values: dict[str, list[int]] = field(default_factory=dict)

    #: Of all threads of the process, as DuckDB and Arrow may have some; a task has a process of its own.
    now = staticmethod(time.process_time)

    def took(self, name: str, rows_in: int, rows_out: int, began: float) -> None:
        """Something has been done since `began`."""
        self.rows_in[name] = self.rows_in.get(name, 0) + rows_in
        self.rows_out[name] = self.rows_out.get(name, 0) + rows_out
        self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - began

    def add(self, other: Account) -> None:
        """What another one has counted, too."""
        for mine, its in ((self.rows_in, other.rows_in), (self.rows_out, other.rows_out), (self.shed, other.shed)):
            for name, rows in its.items():
                mine[name] = mine.get(name, 0) + rows
        for name, seconds in other.cpu.items():
            self.cpu[name] = self.cpu.get(name, 0.0) + seconds
        self.saw(other.newest)
        for sink, counts in other.values.items():
            self.valued(sink, counts)

    def saw(self, newest: Mapping[str, int]) -> None:
        """Events so new were read."""
        for name, tick in newest.items():
            self.newest[name] = max(tick, self.newest.get(name, tick))

    def valued(self, sink: str, counts: Sequence[int]) -> None:
        """So many results of each piece of what they are worth."""
        before = self.values.get(sink, [0] * len(counts))
        self.values[sink] = [a + b for a, b in zip(before, counts, strict=True)]

    def sheds(self, what: str, rows: int) -> None:
        """So many rows were given up."""
        if rows:
            self.shed[what] = self.shed.get(what, 0) + rows

    @property
    def spent(self) -> float:
        """CPU seconds in all."""
        return sum(self.cpu.values())
