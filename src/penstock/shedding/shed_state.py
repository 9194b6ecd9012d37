"""Where shedding stands between two epochs: plain data, in the plan of the epoch that goes by it and its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.shedding.by_value import ValueDrops
from penstock.shedding.outlook import Outlook, Settled


@dataclass(frozen=True)
class WindowTally:
    """Windows of an output so far: how many, how many of them dropped, and the longest gap.

    >>> tally = WindowTally().with_settled(Settled(0, 9, ((2, 3), (9, 9))))
    >>> tally, tally.delivered
    (WindowTally(windows=10, dropped=3, gap=2, row=1), 0.7)
    >>> tally.with_settled(Settled(10, 14, ((10, 11),))).gap
    3
    """

    windows: int = 0
    dropped: int = 0
    gap: int = 0
    #: How many were dropped last, in a row.
    row: int = 0

    @property
    def delivered(self) -> float:
        return 1 - self.dropped / self.windows if self.windows else 1.0

    def with_settled(self, settled: Settled) -> WindowTally:
        row, gap, before = self.row, self.gap, settled.first
        for first, last in settled.dropped:
            row = (row if first == before else 0) + last - first + 1
            gap, before = max(gap, row), last + 1
        row = row if before == settled.last + 1 else 0
        return WindowTally(self.windows + settled.windows, self.dropped + settled.lost, gap, row)


@dataclass(frozen=True)
class ShedState:
    """What was decided for an epoch, and all that the next decision needs to know of those before.

    `policy` as it was said; `delivered`: the share that each output still gets; `newest`: by source and attribute the
    newest tick that was read; `random`: the share of the events of a source that go by chance; `road`: where the
    controller stands.
    """

    policy: str = "off"
    seed: int = 0
    delivered: Mapping[str, float] = field(default_factory=dict)
    outlooks: Mapping[str, Outlook] = field(default_factory=dict)
    tallies: Mapping[str, WindowTally] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)
    random: Mapping[str, float] = field(default_factory=dict)
    road: Mapping[str, Any] = field(default_factory=dict)
    #: By output, what is given up by value.
    values: Mapping[str, ValueDrops] = field(default_factory=dict)
    #: Outputs that are switched off whole.
    off: tuple[str, ...] = ()

    def seen(self, newest: Mapping[str, int]) -> ShedState:
        """The same, now that events so new were read."""
        if all(self.newest.get(name, tick - 1) >= tick for name, tick in newest.items()):
            return self
        more = {name: max(tick, self.newest.get(name, tick)) for name, tick in newest.items()}
        return replace(self, newest={**self.newest, **more})

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "seed": self.seed,
            "delivered": dict(self.delivered),
            "outlooks": {name: o.to_json() for name, o in self.outlooks.items()},
            "tallies": {name: dict(vars(t)) for name, t in self.tallies.items()},
            "newest": dict(self.newest),
            "random": dict(self.random),
            "road": dict(self.road),
            "off": list(self.off),
            "values": {name: v.to_json() for name, v in self.values.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ShedState:
        body = dict(stored)
        body["outlooks"] = {name: Outlook.from_json(o) for name, o in body["outlooks"].items()}
        body["off"] = tuple(body["off"])
        body["values"] = {name: ValueDrops.from_json(v) for name, v in body["values"].items()}
        body["tallies"] = {name: WindowTally(**t) for name, t in body["tallies"].items()}
        return cls(**body)
