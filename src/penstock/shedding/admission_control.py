"""What others do: shut the door. Four ways to drop at inputs alone, without asking what an answer is worth.

They are here to be measured against, on the same model of costs, and can be chosen in place of a road map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from hashlib import blake2b

from penstock.shedding.network import Network


class AdmissionControl(Enum):
    """Which inputs lose how much."""

    #: One input after the other loses all, in random order, until it is enough.
    RANDOM = "input-random"
    #: The same, beginning with the input that causes most work.
    TOP_COST = "input-top-cost"
    #: Every input loses as much work as every other; what one cannot give the others give.
    UNIFORM = "input-uniform"
    #: Every input loses the same share of the work that it causes.
    UNIFORM_COST = "input-uniform-cost"

    def drops(
        self, network: Network, arriving: Mapping[str, float], excess: float, *, seed: int = 0
    ) -> dict[str, float]:
        """The share of each source to be dropped, so that so many CPU seconds per second are saved, or all there are.

        >>> from penstock.shedding.network import Station, Terminus
        >>> network = Network((Station("a"), Station("b"), Station.of("x", "a", 3), Station.of("y", "b", 1)),
        ...     (Terminus("x", "x"), Terminus("y", "y")))
        >>> for policy in AdmissionControl:
        ...     print(policy.value, policy.drops(network, {"a": 10, "b": 10}, 24, seed=1))
        input-random {'a': 0.8, 'b': 0.0}
        input-top-cost {'a': 0.8, 'b': 0.0}
        input-uniform {'a': 0.4666666666666667, 'b': 1.0}
        input-uniform-cost {'a': 0.6, 'b': 0.6}
        """
        work = {s: arriving.get(s, 0.0) * sum(network.coefficients[a] for a in network.out[s]) for s in network.sources}
        match self:
            case AdmissionControl.RANDOM:
                taken = _one_by_one(work, sorted(work, key=lambda s: _chance(seed, s)), excess)
            case AdmissionControl.TOP_COST:
                taken = _one_by_one(work, sorted(work, key=lambda s: -work[s]), excess)
            case AdmissionControl.UNIFORM:
                taken = _evenly(work, excess)
            case AdmissionControl.UNIFORM_COST:
                total = sum(work.values())
                share = min(1.0, max(0.0, excess) / total) if total else 0.0
                taken = {s: share * seconds for s, seconds in work.items()}
        return {s: taken[s] / seconds if seconds else 0.0 for s, seconds in work.items()}


def _one_by_one(work: Mapping[str, float], order: Sequence[str], excess: float) -> dict[str, float]:
    taken = dict.fromkeys(work, 0.0)
    for source in order:
        taken[source] = min(work[source], max(0.0, excess))
        excess -= taken[source]
    return taken


def _evenly(work: Mapping[str, float], excess: float) -> dict[str, float]:
    taken, left = {}, max(0.0, excess)
    # The smallest first: what they cannot give is left to the others.
    for given, source in enumerate(sorted(work, key=lambda s: work[s])):
        taken[source] = min(work[source], left / (len(work) - given))
        left -= taken[source]
    return taken


def _chance(seed: int, source: str) -> bytes:
    return blake2b(f"{seed}\x1f{source}".encode(), digest_size=8).digest()
