"""Which way to join many inputs: a tree of binary joins, or one multi-way join.

Both give the same results at the same rate, so the choice is by cost (`cost.py`). Trees are found by dynamic
programming over subsets of the inputs: what a subset delivers does not depend on the order in which it was joined, so
the best tree of a set is made of best trees of two parts of it. A multi-way join has no intermediate results to keep,
but looks them up anew for every event.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Literal

from penstock.builder.join_cost import Input, Probe, arrival_cost, join_cost, throughput

#: A tree of binary joins: the number of an input, or a pair of trees.
Tree = int | tuple["Tree", "Tree"]
Shape = Tree | Literal["mjoin"]

#: Up to so many inputs every tree and every probe order is considered; beyond, the cheapest next step is taken.
EXHAUSTIVE = 9
#: How many of the cheapest trees are shown.
SHOWN = 3


@dataclass(frozen=True)
class InputStatistics:
    """What the planner knows: the inputs, and which share of all combinations of their events match.

    `selectivities` maps sets of inputs, mostly pairs, to that share. How those of pairs make up the share of a larger
    set depends on what is compared. With one `shared_key`, equal to one is equal to all: only as many comparisons
    count as connect the set. Otherwise the predicates are taken as independent, and pairs without one as a cross
    product. A larger set that has a share of its own needs no such guess.

    >>> three = (Input(10, 100), Input(20, 200), Input(5, 50))
    >>> InputStatistics(three, {(0, 1): 0.01, (1, 2): 0.05}, shared_key=False).share(frozenset([0, 1, 2]))
    0.0005
    """

    inputs: tuple[Input, ...]
    selectivities: Mapping[tuple[int, ...], float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    shared_key: bool = True

    @cached_property
    def _given(self) -> dict[frozenset[int], float]:
        return {frozenset(inputs): share for inputs, share in self.selectivities.items()}

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], float]:
        """The shares of pairs, in order. With one key, a pair that was not given is as its best way round."""
        pairs = {(i, j): self._given.get(frozenset((i, j)), 0.0) for i, j in combinations(range(len(self.inputs)), 2)}
        if not self.shared_key:
            return {p: f for p, f in pairs.items() if frozenset(p) in self._given}
        for via in range(len(self.inputs)):
            for i, j in pairs:
                if via not in (i, j) and frozenset((i, j)) not in self._given:
                    around = min(pairs[min(i, via), max(i, via)], pairs[min(j, via), max(j, via)])
                    pairs[i, j] = max(pairs[i, j], around)
        return {p: f for p, f in pairs.items() if f or frozenset(p) in self._given}

    @cached_property
    def _shares(self) -> dict[frozenset[int], float]:
        return {}

    def name(self, number: int) -> str:
        return self.names[number] if self.names else str(number)

    def share(self, inputs: frozenset[int]) -> float:
        """The share of all combinations of events of these inputs that match."""
        if len(inputs) < 2:
            return 1.0
        if inputs in self._given:
            return self._given[inputs]
        if inputs not in self._shares:
            edges = [(pair, f) for pair, f in self._pairs.items() if inputs.issuperset(pair)]
            self._shares[inputs] = math.prod(_connecting(edges) if self.shared_key else [f for _, f in edges])
        return self._shares[inputs]

    def selectivity(self, left: frozenset[int], right: frozenset[int]) -> float:
        """Which share of the combinations of results of two sets of inputs match."""
        apart = self.share(left) * self.share(right)
        return self.share(left | right) / apart if apart else 0.0

    def connected(self, left: frozenset[int], right: frozenset[int]) -> bool:
        """Whether anything is compared between two sets, so that joining them is more than a cross product."""
        return self.shared_key or any(frozenset((i, j)) in self._given for i in left for j in right)

    def combined(self, inputs: frozenset[int]) -> Input:
        """What a set of inputs delivers when it is joined, in whatever order."""
        numbers = sorted(inputs)
        if len(numbers) == 1:
            return self.inputs[numbers[0]]
        parts = [self.inputs[i] for i in numbers]
        share = self.share(inputs)
        rate = math.fsum(
            p.rate * math.prod(q.window for j, q in enumerate(parts) if j != i) for i, p in enumerate(parts)
        )
        window = math.prod(p.window for p in parts)
        dearest = (max(p.store for p in parts), max(p.match for p in parts), max(p.invalidate for p in parts))
        return Input(share * rate, share * window, *dearest)


def _connecting(edges: Sequence[tuple[tuple[int, int], float]]) -> list[float]:
    """The largest shares that connect the inputs: a maximum spanning tree.

    With d distinct keys an input matches a share 1/max(d, d′) of another. Where the fewer keys are among the more, a
    set of inputs matches as 1 over the product of all d but the least, which is what this tree gives.
    """
    group: dict[int, int] = {}
    kept = []
    for (a, b), share in sorted(edges, key=lambda e: (-e[1], e[0])):
        first, second = group.get(a, a), group.get(b, b)
        if first != second:
            kept.append(share)
            group.setdefault(a, a)
            group.setdefault(b, b)
            group = {i: first if g == second else g for i, g in group.items()}
    return kept


@dataclass(frozen=True)
class Alternative:
    """One way to join, with what it costs a unit of time."""

    shape: Shape
    text: str
    cost: float

    def __str__(self) -> str:
        return f"{self.text}: cost {_number(self.cost)}"


@dataclass(frozen=True)
class Choice:
    """The cheapest way, what it delivers, and what it was compared with, cheapest first.

    `probes[i]` is the order in which a multi-way join looks up the events of input i in the stores of the others.
    """

    shape: Shape
    cost: float
    output_rate: float
    probes: tuple[tuple[int, ...], ...]
    alternatives: tuple[Alternative, ...]

    @property
    def throughput(self) -> float:
        """Results per unit of cost."""
        return throughput(self.output_rate, self.cost)

    @property
    def best_tree(self) -> Tree:
        """The cheapest tree, whether or not a multi-way join is cheaper still."""
        return next(a.shape for a in self.alternatives if a.shape != "mjoin")

    def of(self, alternative: Alternative) -> str:
        """An alternative with what it delivers."""
        return f"{alternative}, throughput {_number(throughput(self.output_rate, alternative.cost))}"

    @property
    def estimate(self) -> str:
        """The comparison as `explain` shows it."""
        return f"output rate {_number(self.output_rate)}; " + "; ".join(map(self.of, self.alternatives))


def choose(statistics: InputStatistics) -> Choice:
    """Find the cheapest way to join all inputs.

    At equal cost a multi-way join wins, since it keeps no intermediate results; among trees, the one that joins
    earlier inputs first.

    >>> three = (Input(10, 100), Input(20, 200), Input(5, 50))
    >>> choice = choose(InputStatistics(three, {(0, 1): 0.01, (1, 2): 0.05}, ("R", "S", "T"), shared_key=False))
    >>> choice.shape, round(choice.cost), round(choice.output_rate)
    (((0, 1), 2), 525, 150)
    >>> for alternative in choice.alternatives:
    ...     print(alternative)
    binary ((R ⋈ S) ⋈ T): cost 525
    mjoin: cost 695
    binary (R ⋈ (S ⋈ T)): cost 945
    """
    count = len(statistics.inputs)
    everything = frozenset(range(count))
    probes = tuple(probe_order(statistics, i) for i in range(count))
    multiway = math.fsum(
        arrival_cost(statistics.inputs[i], probes_of(statistics, i, order)) for i, order in enumerate(probes)
    )
    trees = best_trees(statistics) if count <= EXHAUSTIVE else [_greedy_tree(statistics)]
    found = [Alternative("mjoin", "mjoin", multiway)]
    found += [Alternative(tree, f"binary {tree_text(tree, statistics)}", cost) for cost, tree in trees]
    # Costs that differ in the last bits are equal: they are sums of the same numbers in another order.
    found.sort(key=lambda a: (_rounded(a.cost), a.shape != "mjoin", str(a.shape)))
    return Choice(found[0].shape, found[0].cost, statistics.combined(everything).rate, probes, tuple(found))


# --- trees -----------------------------------------------------------------------------------------------------------


def best_trees(statistics: InputStatistics, count: int = SHOWN) -> list[tuple[float, Tree]]:
    """The cheapest trees with their costs, cheapest first; no cross products where there is another way.

    The few best trees of a set are made of the few best trees of its parts, since the cost of the last join depends on
    what the parts deliver and not on how.
    """
    numbers = range(len(statistics.inputs))
    best: dict[frozenset[int], list[tuple[float, Tree]]] = {frozenset([i]): [(0.0, i)] for i in numbers}
    delivered = {part: statistics.combined(part) for part in best}
    for size in range(2, len(numbers) + 1):
        for members in combinations(numbers, size):
            whole = frozenset(members)
            delivered[whole] = statistics.combined(whole)
            splits = list(_splits(members))
            splits = [s for s in splits if _predicated(statistics, *s)] or splits
            found = []
            for left, right in splits:
                last = join_cost(delivered[left], delivered[right])
                found += [(a + b + last, (x, y)) for a, x in best[left] for b, y in best[right]]
            found.sort(key=lambda f: (_rounded(f[0]), str(f[1])))
            best[whole] = list(found[:count])
    return best[frozenset(numbers)]


def _predicated(statistics: InputStatistics, left: frozenset[int], right: frozenset[int]) -> bool:
    """Whether a split joins on something, at its top and in both parts."""
    return statistics.connected(left, right) and _whole(statistics, left) and _whole(statistics, right)


def _whole(statistics: InputStatistics, part: frozenset[int]) -> bool:
    """Whether predicates connect all inputs of a part with each other."""
    reached, rest = {min(part)}, set(part) - {min(part)}
    while rest:
        more = {i for i in rest if statistics.connected(frozenset([i]), frozenset(reached))}
        if not more:
            return False
        reached |= more
        rest -= more
    return True


def _splits(members: tuple[int, ...]) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """All ways to part a set in two; the part with the least number is on the left, so none comes twice."""
    first, *others = members
    for size in range(len(others)):
        for chosen in combinations(others, size):
            left = frozenset([first, *chosen])
            yield left, frozenset(members) - left


def _greedy_tree(statistics: InputStatistics) -> tuple[float, Tree]:
    """Join the two parts whose join costs least, until one is left: for too many inputs to try every tree."""
    parts: list[tuple[frozenset[int], Tree]] = [(frozenset([i]), i) for i in range(len(statistics.inputs))]
    total = 0.0
    while len(parts) > 1:
        pairs = list(combinations(parts, 2))
        pairs = [p for p in pairs if statistics.connected(p[0][0], p[1][0])] or pairs

        def next_cost(pair: tuple[tuple[frozenset[int], Tree], tuple[frozenset[int], Tree]]) -> tuple[float, ...]:
            # First what joining costs now, then how much it hands on.
            (left, _), (right, _) = pair
            cost = join_cost(statistics.combined(left), statistics.combined(right))
            return _rounded(cost), _rounded(statistics.combined(left | right).rate), min(left), min(right)

        (left, x), (right, y) = chosen = min(pairs, key=next_cost)
        total += join_cost(statistics.combined(left), statistics.combined(right))
        merged: tuple[frozenset[int], Tree] = (left | right, (x, y))
        parts = sorted([p for p in parts if p not in chosen] + [merged], key=lambda p: min(p[0]))
    return total, parts[0][1]


def tree_text(tree: Tree, statistics: InputStatistics) -> str:
    """A tree as a formula.

    >>> tree_text(((0, 1), 2), InputStatistics((), names=("R", "S", "T")))
    '((R ⋈ S) ⋈ T)'
    """
    if isinstance(tree, int):
        return statistics.name(tree)
    return f"({tree_text(tree[0], statistics)} ⋈ {tree_text(tree[1], statistics)})"


# --- one join for all ------------------------------------------------------------------------------------------------


def probes_of(statistics: InputStatistics, source: int, order: Sequence[int]) -> list[Probe]:
    """What an event of one input meets on its way through the stores of the others."""
    bound, probes = frozenset([source]), []
    for number in order:
        store = statistics.inputs[number]
        probes.append(Probe(store.match, statistics.selectivity(bound, frozenset([number])) * store.window))
        bound |= {number}
    return probes


def probe_order(statistics: InputStatistics, source: int) -> tuple[int, ...]:
    """The cheapest way of an event of one input through the others: the fewest expected matches first.

    Where stores cost differently to search this is not always cheapest, so up to a size all orders are compared.
    """
    others = [i for i in range(len(statistics.inputs)) if i != source]
    if len(statistics.inputs) > EXHAUSTIVE:
        return _selective_first(statistics, source, others)
    # The best order of a set to be probed first, by what is left over after it: that depends on the set alone.
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, len(others) + 1):
        for members in combinations(others, size):
            found = []
            for last in members:
                before = frozenset(members) - {last}
                work, order = best[before]
                left_over = _partials(statistics, source, before)
                step = left_over * statistics.inputs[last].match
                found.append((work + step, (*order, last)))
            best[frozenset(members)] = min(found, key=lambda f: (_rounded(f[0]), f[1]))
    return best[frozenset(others)][1]


def _selective_first(statistics: InputStatistics, source: int, others: Sequence[int]) -> tuple[int, ...]:
    order: list[int] = []
    while len(order) < len(others):
        bound = frozenset([source, *order])
        rest = [i for i in others if i not in order]
        order.append(min(rest, key=lambda i: (_rounded(_partials(statistics, source, bound - {source} | {i})), i)))
    return tuple(order)


def _partials(statistics: InputStatistics, source: int, probed: frozenset[int]) -> float:
    """How many partial results one event has after these probes."""
    return statistics.share(probed | {source}) * math.prod(statistics.inputs[i].window for i in sorted(probed))


def _rounded(value: float) -> float:
    return float(f"{value:.12g}")


def _number(value: float) -> str:
    """Four digits that matter, without an exponent where a person would not write one.

    >>> _number(525.0), _number(0.285714), _number(1234567.8)
    ('525', '0.2857', '1,234,568')
    """
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.4g}"
