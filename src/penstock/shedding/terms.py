"""Where something can be given up, and what that saves: a network seen from its outputs.

Each output has a share of its results that is still delivered. An arc keeps the largest share of all outputs below it,
since a shared station drops only what none of them wants. So a plan is one share for each output, and all else
follows: what a drop on an arc takes is what its own outputs give up beyond what was given up before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.plan.place import Place
from penstock.shedding.graph import Graph
from penstock.shedding.network import Network
from penstock.shedding.qos import EVEN, QoS

Shares = Mapping[str, float]


@dataclass(frozen=True)
class Terms:
    """On what terms an output gives up results: the graph, how much it counts, the least share that must come."""

    graph: Graph = EVEN
    weight: float = 1.0
    least: float = 0.0

    @classmethod
    def of(cls, qos: QoS, graph: Graph | None = None) -> Terms:
        """As the quality of service says; `graph` is its loss graph, if another than that (made of values) counts.

        >>> Terms.of(QoS(gap=3, weight=2))
        Terms(graph=Graph(points=((100, 1), (0, 0))), weight=2, least=0.25)
        """
        return cls((graph or qos.loss).concave(), qos.weight, 1 - qos.most)

    def lost(self, share: float) -> float:
        """The utility that is lost when that share of the results is delivered."""
        return self.weight * (1 - self.graph.at(100 * share))


@dataclass(frozen=True)
class DropLocations:
    """Where drops pay: in front of all that sources feed, and behind splits whose branches lead to different outputs.

    Anywhere else a drop belongs further up: nothing between would be worth doing for a row that goes anyway.

    >>> from penstock.shedding.network import Network, Station, Terminus
    >>> shared = (Station("in"), Station.of("op", "in", 1), Station.of("b", "op", 2), Station.of("d", "op", 5))
    >>> network = Network((*shared, Station("other"), Station.of("f", "other", 1)),
    ...     (Terminus("b", "b"), Terminus("d", "d"), Terminus("f", "f")))
    >>> print(*DropLocations(network).places)
    in b#0 d#0 other
    >>> DropLocations(network).drops({"b": 0.5, "d": 0.8})
    {'in': 0.19999999999999996, 'b#0': 0.375}
    """

    network: Network

    @cached_property
    def reached(self) -> Mapping[str, frozenset[str]]:
        """The outputs below each station."""
        network = self.network
        return {s: frozenset(o for a in arcs for o in network.reached[a]) for s, arcs in network.out.items()}

    @cached_property
    def places(self) -> Mapping[Place, frozenset[str]]:
        """Every place where a drop may stand, with the outputs that lose by it, from the sources on."""
        found: dict[Place, frozenset[str]] = {}
        for station in self.network.stations:
            mine = self.reached[station.id]
            if not station.intakes and mine:
                found[Place(station.id)] = mine
            for arc in self.network.out[station.id]:
                below = frozenset(self.network.reached[arc])
                if below and below != mine:
                    found[arc] = below
        return found

    def drops(self, shares: Shares) -> dict[Place, float]:
        """The share that each place drops of what gets there; outputs that are not named get all."""
        found: dict[Place, float] = {}
        for place, below in self.places.items():
            above = 1.0 if place in self.network.by_id else kept(self.reached[self.network.tails[place]], shares)
            if above and (dropped := 1 - kept(below, shares) / above) > 0:
                found[place] = dropped
        return found

    @cached_property
    def work(self) -> Mapping[str, Mapping[frozenset[str], float]]:
        """By source, and by the outputs that share it, the CPU seconds that come of one row."""
        found: dict[str, dict[frozenset[str], float]] = {}
        for source in self.network.sources:
            mine: dict[frozenset[str], float] = {}
            for arc, rows in self.network.rates({source: 1.0}).items():
                if (intake := self.network.intake(arc)) is not None and rows:
                    below = frozenset(self.network.reached[arc])
                    mine[below] = mine.get(below, 0.0) + rows * intake.cost
            found[source] = mine
        return found

    @cached_property
    def passing(self) -> Mapping[str, Mapping[Place, float]]:
        """By source, the rows that get to each place of one row of it."""
        found = {}
        for source in self.network.sources:
            rates = self.network.rates({source: 1.0})
            found[source] = {p: (1.0 if p == source else rates.get(p, 0.0)) for p in self.places}
        return found

    def savings(self, shares: Shares, drop_cost: float = 0.0) -> dict[str, float]:
        """CPU seconds saved for each row of a source, less what it costs to look at the rows that drops see."""
        drops = self.drops(shares)
        found = {}
        for source, work in self.work.items():
            saved = sum(seconds * (1 - kept(below, shares)) for below, seconds in work.items())
            if drop_cost:
                saved -= drop_cost * sum(self._looked_at(source, place, shares) for place in drops)
            found[source] = saved
        return found

    def _looked_at(self, source: str, place: Place, shares: Shares) -> float:
        rows = self.passing[source][place]
        return rows if place in self.network.by_id else rows * kept(self.reached[self.network.tails[place]], shares)

    def least_step(self, drop_cost: float) -> float:
        """A drop of a smaller share costs more than it saves, at some place where it may stand.

        >>> from penstock.shedding.network import Network, Station, Terminus
        >>> network = Network((Station("in"), Station.of("a", "in", 4)), (Terminus("a", "a"),))
        >>> DropLocations(network).least_step(0.2)
        0.05
        """
        gains = [gain for place in self.places if (gain := self.coefficient(place))]
        return drop_cost / min(gains) if gains else 0.0

    def coefficient(self, place: Place) -> float:
        """What one row costs from there on."""
        network = self.network
        if place in network.by_id:
            return sum(network.coefficients[arc] for arc in network.out[place])
        return network.coefficients[place]


def kept(outputs: Iterable[str], shares: Shares) -> float:
    """The share that must be kept of what these outputs share."""
    return max((shares.get(o, 1.0) for o in outputs), default=0.0)
