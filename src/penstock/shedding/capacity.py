"""How much work there is, and how much the machine can take. Both in CPU seconds per second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import UserError
from penstock.plan.place import Place
from penstock.shedding.network import Network

#: So much of what the cores could do is planned with; the rest is for what nobody foresees.
HEADROOM = 0.9
#: So much of what has piled up is to be worked off per second.
MELT_RATE = 0.1


@dataclass(frozen=True)
class Capacity:
    """What the machine can take: `headroom` of its cores, less what epochs cost however little there is to do.

    `epoch_cost` are CPU seconds per epoch, `epochs` how many there are per second.

    >>> round(Capacity(cores=2, headroom=0.9, epoch_cost=0.1, epochs=2).free, 9)
    1.6
    """

    cores: float
    headroom: float = HEADROOM
    epoch_cost: float = 0.0
    epochs: float = 0.0

    def __post_init__(self) -> None:
        if not self.cores > 0:
            raise UserError(f"capacity: {self.cores} cores", hint="at least a part of one")
        if not 0 < self.headroom <= 1:
            raise UserError(f"capacity: headroom {self.headroom}", hint="the share of the cores to plan with, up to 1")

    @property
    def total(self) -> float:
        return self.cores * self.headroom

    @property
    def free(self) -> float:
        """What is left for rows; nothing, if epochs alone are too much."""
        return max(0.0, self.total - self.epoch_cost * self.epochs)


@dataclass(frozen=True)
class Demand:
    """The work that arrives, and the work that waits.

    `arriving` are rows per second of each source, `waiting` rows in front of the end of an arc; those of a source that
    are not read yet wait in front of all that read it, under the name of the source.
    """

    network: Network
    arriving: Mapping[str, float]
    waiting: Mapping[str, float] = field(default_factory=dict)
    melt_rate: float = MELT_RATE

    @property
    def load(self) -> float:
        """With nothing dropped, and none of what waits worked off."""
        return self.network.load(self.arriving)

    @property
    def melting(self) -> float:
        """What it takes to work off what waits.

        >>> from penstock.shedding.network import Station, Terminus
        >>> network = Network((Station("in"), Station.of("a", "in", 0.02)), (Terminus("a", "a"),))
        >>> demand = Demand(network, {"in": 30}, {"in": 100})
        >>> round(demand.load, 9), round(demand.melting, 9), round(demand.excess(Capacity(cores=0.5, headroom=1)), 9)
        (0.6, 0.2, 0.3)
        """
        return sum(self.melt_rate * rows * self._coefficient(where) for where, rows in self.waiting.items())

    def excess(self, capacity: Capacity) -> float:
        """By how much the work is more than the machine can take; negative if it is less."""
        return self.load + self.melting - capacity.free

    def _coefficient(self, where: str) -> float:
        network = self.network
        if where in network.by_id:
            return network.by_id[where].reading + sum(network.coefficients[a] for a in network.out[where])
        if where in network.coefficients:
            return network.coefficients[Place(where)]
        raise UserError(f"load: nothing waits at '{where}'", hint="name a source, or an input such as join-1#0")
