"""What to give up in which order: a table of plans, made ahead, each of which saves more than the one before.

Each row gives up a little more where that costs the least utility for what it saves. When the load is too high one
looks up the first row that saves enough, so at run time nothing is planned; when it falls one goes back the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import UserError
from penstock.plan.place import Place
from penstock.shedding.graph import CLOSE
from penstock.shedding.network import Network
from penstock.shedding.planner import Planner
from penstock.shedding.shed_plan import ShedPlan
from penstock.shedding.terms import DropLocations, Terms

#: Percent by percent would be too many rows, and drops that hardly save anything.
STEP = 0.05


@dataclass(frozen=True)
class RoadMap:
    """The table. Row 0 drops nothing.

    >>> from penstock.shedding.network import Network, Station, Terminus
    >>> from penstock.shedding.qos import QoS
    >>> network = Network((Station("in"), Station.of("a", "in", 2), Station.of("b", "in", 8)),
    ...     (Terminus("a", "a"), Terminus("b", "b")))
    >>> even = {"a": Terms.of(QoS()), "b": Terms.of(QoS(loss=[(100, 1), (50, .9), (0, 0)]))}
    >>> roads = RoadMap.build(network, {"in": 1}, even, step=0.25)
    >>> for row in roads.rows:
    ...     print(row.delivered, round(row.saves({"in": 1}), 6), round(row.lost, 6))
    {'a': 1.0, 'b': 1.0} 0.0 0.0
    {'a': 1.0, 'b': 0.75} 2.0 0.05
    {'a': 1.0, 'b': 0.5} 4.0 0.1
    {'a': 1.0, 'b': 0.25} 6.0 0.55
    {'a': 1.0, 'b': 0.0} 8.0 1.0
    {'a': 0.75, 'b': 0.0} 8.5 1.25
    {'a': 0.5, 'b': 0.0} 9.0 1.5
    {'a': 0.25, 'b': 0.0} 9.5 1.75
    {'a': 0.0, 'b': 0.0} 10.0 2.0
    >>> roads.first(3, {"in": 1}), roads.first(3, {"in": 2}), roads.first(30, {"in": 2})
    (2, 1, 8)
    """

    rows: tuple[ShedPlan, ...]

    @classmethod
    def build(
        cls,
        network: Network,
        arriving: Mapping[str, float],
        terms: Mapping[str, Terms],
        *,
        step: float = STEP,
        drop_cost: float = 0.0,
        off: tuple[str, ...] = (),
    ) -> RoadMap:
        """The plans for these terms; outputs without any give up nothing.

        Of the rates, only how they compare matters. `drop_cost`: CPU seconds for each row that a drop looks at. `off`:
        outputs that may be switched off whole when all others have given what they can; the costliest goes first.
        """
        locations = DropLocations(network)
        if unknown := (set(terms) | set(off)) - {o.name for o in network.outputs}:
            raise UserError(f"shedding: no output '{min(unknown)}'")
        least = locations.least_step(drop_cost)
        if not least < step <= 1:
            raise UserError(
                f"shedding: a step of {step:.3g}",
                hint=f"more than {least:.3g} and at most 1: a drop of less costs more than it saves",
            )
        return cls(tuple(Planner(locations, arriving, terms, step, drop_cost).rows(off)))

    def first(self, excess: float, arriving: Mapping[str, float]) -> int:
        """The first row that saves so many CPU seconds per second; the last one, if none does."""
        return next((i for i, row in enumerate(self.rows) if row.saves(arriving) >= excess - CLOSE), len(self.rows) - 1)

    def changes(self, cursor: int, to: int) -> dict[Place, float]:
        """The drops to set on the way from one row to another; 0 takes one away.

        Where a drop stands only the new share counts, so going back leaves exactly what was there.
        """
        old, new = self.rows[cursor].drops, self.rows[to].drops
        gone = dict.fromkeys(old.keys() - new.keys(), 0.0)
        return gone | {place: share for place, share in new.items() if old.get(place) != share}

    def to_json(self) -> list[dict[str, Any]]:
        return [row.to_json() for row in self.rows]

    @classmethod
    def from_json(cls, stored: list[dict[str, Any]]) -> RoadMap:
        return cls(tuple(ShedPlan.from_json(row) for row in stored))


def drift(before: Network, now: Network) -> float:
    """By what share the cost of a row has changed, where it has changed most; infinite for another network.

    >>> from penstock.shedding.network import Network, Station, Terminus
    >>> one, other = (Network((Station("in"), Station.of("a", "in", c)), (Terminus("a", "a"),)) for c in (2, 3))
    >>> drift(one, other), drift(one, one)
    (0.5, 0.0)
    """
    old, new = before.coefficients, now.coefficients
    if old.keys() != new.keys():
        return float("inf")
    scale = max(old.values(), default=0.0) * 1e-3
    changes = [abs(new[a] - old[a]) / max(old[a], scale) for a in old if max(old[a], new[a]) > scale]
    return max(changes, default=0.0)
