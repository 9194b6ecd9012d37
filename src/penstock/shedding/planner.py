"""Making a road map: from plan to plan, what costs the least utility for what it saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from penstock.plan.place import Place
from penstock.shedding.graph import CLOSE
from penstock.shedding.shed_plan import ShedPlan
from penstock.shedding.terms import DropLocations, Shares, Terms

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Planner:
    """Makes the plans, one from the other."""

    locations: DropLocations
    arriving: Mapping[str, float]
    terms: Mapping[str, Terms]
    step: float
    drop_cost: float

    def rows(self, off: Sequence[str]) -> Iterator[ShedPlan]:
        """From nothing dropped to all that can be; then outputs that may be switched off, the costliest first."""
        row = self._row(dict.fromkeys(self._outputs, 1.0), frozenset())
        yield row
        while (shares := self._best(row.delivered)) is not None:
            yield (row := self._row(shares, frozenset()))
        closed, shares = frozenset[str](), row.delivered
        while left := [o for o in off if o not in closed and shares[o] > 0]:
            # Nothing else is left to give: a whole output, never a part of a window.
            moves: list[Shares] = [{**shares, o: 0.0} for o in left]
            gains = self._gains(shares, moves)
            costliest = int(np.argmax(gains))
            closed, shares = closed | {left[costliest]}, moves[costliest]
            if gains[costliest] > self._bit:
                yield self._row(shares, closed)

    def _row(self, shares: Shares, off: frozenset[str]) -> ShedPlan:
        savings = self.locations.savings(shares, self.drop_cost)
        return ShedPlan(dict(shares), self.locations.drops(shares), savings, self._lost(shares), off)

    def _lost(self, shares: Shares) -> float:
        return sum(self._price(o, shares[o]) for o in self.terms)

    def _price(self, output: str, share: float) -> float:
        known = self._prices[output]
        if (price := known.get(share)) is None:
            price = known[share] = self.terms[output].lost(share)
        return price

    @cached_property
    def _prices(self) -> Mapping[str, dict[float, float]]:
        """What was asked before; the same few shares are asked of again and again."""
        return {o: {} for o in self.terms}

    def _best(self, shares: Shares) -> Shares | None:
        """The next shares: those that lose least for what they save."""
        waiting = list(dict.fromkeys(self.locations.places.values()))
        best, best_ratio, length, lost = None, float("inf"), self.step, self._lost(shares)
        while waiting and length < 2:
            moves = [(group, move) for group in waiting for move in self._moves(group, shares, length)]
            gains = self._gains(shares, [move for _, move in moves])
            paid = set()
            for (group, move), gain in zip(moves, gains, strict=True):
                if gain > self._bit:
                    paid.add(group)
                    ratio = (self._lost(move) - lost) / gain
                    if best is None or ratio < best_ratio - CLOSE * best_ratio:
                        best, best_ratio = move, ratio
            # A longer step is tried only where a shorter one does not pay for its drop.
            waiting = [group for group in waiting if group not in paid]
            length *= 2
        return best

    def _moves(self, outputs: frozenset[str], shares: Shares, length: float) -> list[Shares]:
        """Steps that these outputs may take together, or those of them that keep most of what they share."""
        willing = [o for o in sorted(outputs) if o in self.terms and shares[o] > self.terms[o].least + CLOSE]
        top = max(shares[o] for o in outputs)
        tops = [o for o in willing if shares[o] == top]
        groups = (willing, tops) if len(tops) < len(willing) else (willing,)
        return [{**shares, **{o: self._lower(o, shares[o], length) for o in group}} for group in groups if group]

    def _lower(self, output: str, share: float, length: float) -> float:
        """One step down, and no further than the next point of the graph, behind which each percent costs more."""
        terms = self.terms[output]
        ahead = 0.0
        if length == self.step:
            ahead = max((x / 100 for x, _ in terms.graph.points if x / 100 < share - CLOSE), default=0.0)
        return max(round(share - length, 12), ahead, terms.least, 0.0)

    # --- what many moves save, at once

    @cached_property
    def _outputs(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.locations.network.outputs)

    @cached_property
    def _bit(self) -> float:
        """To save no more than this is to save nothing."""
        return CLOSE * self.locations.network.load(self.arriving)

    @cached_property
    def _shared(self) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Which outputs share work, and how much there is of it at these rates."""
        seconds: dict[frozenset[str], float] = {}
        for source, work in self.locations.work.items():
            for outputs, cost in work.items():
                seconds[outputs] = seconds.get(outputs, 0.0) + cost * self.arriving.get(source, 0.0)
        return self._mask(list(seconds)), np.array(list(seconds.values()))

    @cached_property
    def _standing(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], Numbers]:
        """Of each place: the outputs behind it, those before it (none before a source), and rows per second."""
        places = self.locations.places
        rows = [sum(self.arriving.get(s, 0.0) * n[p] for s, n in self.locations.passing.items()) for p in places]
        return self._mask(list(places.values())), self._mask([self._before(p) for p in places]), np.array(rows)

    def _before(self, place: Place) -> frozenset[str]:
        network = self.locations.network
        return frozenset() if place in network.by_id else self.locations.reached[network.tails[place]]

    def _mask(self, groups: Sequence[frozenset[str]]) -> npt.NDArray[np.bool_]:
        found = [[o in group for o in self._outputs] for group in groups]
        return np.array(found, bool).reshape(len(groups), len(self._outputs))

    def _gains(self, shares: Shares, moves: Sequence[Shares]) -> Numbers:
        """CPU seconds per second that each of the moves saves beyond what is saved now."""
        table = np.array([[s[o] for o in self._outputs] for s in (shares, *moves)])
        mask, seconds = self._shared
        saved = (1 - _most(table, mask)) @ seconds
        if self.drop_cost:
            behind, before, rows = self._standing
            above = np.where(before.any(axis=1), _most(table, before), 1.0)
            saved = saved - self.drop_cost * ((_most(table, behind) < above) * above) @ rows
        return np.asarray(saved[1:] - saved[0])


def _most(table: Numbers, mask: npt.NDArray[np.bool_]) -> Numbers:
    """Per row of shares and group of outputs, the largest share of the group."""
    found = np.zeros((len(table), len(mask)))
    for k, group in enumerate(mask):
        if group.any():
            found[:, k] = table[:, group].max(axis=1)
    return found
