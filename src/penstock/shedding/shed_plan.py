"""A plan of what to give up: what each output still gets, where drops stand, and what that saves and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.plan.place import Place


@dataclass(frozen=True)
class ShedPlan:
    """A row of the road map.

    `delivered`: the share of its results that each output still gets. `drops`: the share that each place drops of what
    gets there. `savings`: CPU seconds for each row of a source. `lost`: utility of all outputs together. `off`: outputs
    that are switched off whole, because what they need at least is still too much.
    """

    delivered: Mapping[str, float]
    drops: Mapping[Place, float]
    savings: Mapping[str, float]
    lost: float
    off: frozenset[str] = frozenset()

    def saves(self, arriving: Mapping[str, float]) -> float:
        """CPU seconds per second at these rates."""
        return sum(seconds * arriving.get(source, 0.0) for source, seconds in self.savings.items())

    def to_json(self) -> dict[str, Any]:
        return {
            "delivered": dict(self.delivered),
            "drops": {str(p): share for p, share in self.drops.items()},
            "savings": dict(self.savings),
            "lost": self.lost,
            "off": sorted(self.off),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ShedPlan:
        drops = {Place(p): share for p, share in stored["drops"].items()}
        return cls(stored["delivered"], drops, stored["savings"], stored["lost"], frozenset(stored["off"]))
