"""What a join will cost and deliver: the rate and cost model of joins over streams.

The model knows an input by its arrival rate λ (events a unit of time), by the number W of its events that are held
for others to find, and by three unit costs: to store an event, to look for matches of an event of another input, and
to invalidate (remove) an event. Everything else follows: the rate of the results, how many of them are held when they
are joined further, and the work a unit of time. Rates and costs may be in any units, as long as they are the same
throughout; the planner (`join_order.py`) uses seconds and microseconds.

In a steady state with windows every order of joining delivers at the same rate, so plans differ in cost alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Input:
    """One input of a join: rate, events held, and the cost to store, find matches for, and invalidate one event.

    >>> Input(rate=10, window=100).window
    100
    """

    rate: float
    window: float = 0.0
    store: float = 1.0
    match: float = 5.0
    invalidate: float = 1.0

    @classmethod
    def over(cls, rate: float, time: float, **costs: float) -> Input:
        """An input with a window of time.

        >>> Input.over(rate=10, time=60).window
        600
        """
        return cls(rate, held(rate, time), **costs)

    @property
    def upkeep(self) -> float:
        """The work a unit of time to keep the window up to date: each event comes once and goes once."""
        return self.rate * (self.store + self.invalidate)


def held(rate: float, time: float) -> float:
    """Little's law, N = λT: how many events a window of time holds.

    >>> held(rate=20, time=10)
    200
    """
    return rate * time


def selected(source: Input, selectivity: float) -> Input:
    """What a selection lets through (2.1, 2.2). A projection is a selection that lets everything through.

    >>> selected(Input(rate=40, window=200), 0.25)
    Input(rate=10.0, window=50.0, store=1.0, match=5.0, invalidate=1.0)
    """
    return replace(source, rate=selectivity * source.rate, window=selectivity * source.window)


# --- two inputs ------------------------------------------------------------------------------------------------------


def join_rate(left: Input, right: Input, selectivity: float) -> float:
    """Results a unit of time of a join with constant windows (2.3b).

    >>> join_rate(Input(10, 100), Input(20, 200), 0.01)
    40.0
    """
    return selectivity * (left.rate * right.window + right.rate * left.window)


def join_window(left: Input, right: Input, selectivity: float) -> float:
    """How many results consist of events that are all still held (2.4): the window of the result.

    >>> join_window(Input(10, 100), Input(20, 200), 0.01)
    200.0
    """
    return selectivity * left.window * right.window


def direction_cost(side: Input, other: Input) -> float:
    """The work a unit of time at one side's store (2.5, 2.6): searched by the other side's events, kept up by its own.

    >>> direction_cost(Input(10, 100), Input(20, 200)), direction_cost(Input(20, 200), Input(10, 100))
    (120.0, 90.0)
    """
    return other.rate * side.match + side.upkeep


def join_cost(left: Input, right: Input) -> float:
    """The work a unit of time of a symmetric join (2.7).

    >>> join_cost(Input(10, 100), Input(20, 200))
    210.0
    """
    return direction_cost(left, right) + direction_cost(right, left)


def joined(left: Input, right: Input, selectivity: float) -> Input:
    """The result of a join as the input of the next. To handle it costs what the dearer of its parts costs.

    >>> joined(Input(10, 100), Input(20, 200), 0.01)
    Input(rate=40.0, window=200.0, store=1.0, match=5.0, invalidate=1.0)
    """
    return Input(
        join_rate(left, right, selectivity),
        join_window(left, right, selectivity),
        max(left.store, right.store),
        max(left.match, right.match),
        max(left.invalidate, right.invalidate),
    )


def throughput(rate: float, cost: float) -> float:
    """Results per unit of work, ρ = λ/μ.

    >>> round(throughput(40, 210), 6)
    0.190476
    """
    return rate / cost if cost else math.inf


# --- many inputs at once ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    """One step of an arriving event through the stores of a multi-way join.

    `matches` says how many events of the store one partial result meets on average, f·W.
    """

    match: float
    matches: float


def arrival_cost(source: Input, probes: Sequence[Probe]) -> float:
    """The work a unit of time that the events of one input cause in a multi-way join, in the order of its probes.

    Every probe is made once for each partial result that the probes before it have left over.

    >>> arrival_cost(Input(10, 100), [Probe(match=5, matches=2), Probe(match=5, matches=2.5)])
    170.0
    """
    partial, work = 1.0, source.upkeep
    for probe in probes:
        work += source.rate * partial * probe.match
        partial *= probe.matches
    return work


def arrival_rate(source: Input, probes: Sequence[Probe]) -> float:
    """The results a unit of time that the events of one input complete.

    >>> arrival_rate(Input(10, 100), [Probe(match=5, matches=2), Probe(match=5, matches=2.5)])
    50.0
    """
    return source.rate * math.prod(p.matches for p in probes)


def multiway_cost(inputs: Sequence[Input], probes: Sequence[Sequence[Probe]]) -> float:
    """The work a unit of time of one join over all inputs; `probes[i]` is the way of the events of input i."""
    return math.fsum(map(arrival_cost, inputs, probes))


def multiway_rate(inputs: Sequence[Input], probes: Sequence[Sequence[Probe]]) -> float:
    """Results a unit of time of one join over all inputs: each result is completed by the last of its events."""
    return math.fsum(map(arrival_rate, inputs, probes))


# --- results over time -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steady:
    """Results at a constant rate: a join whose windows are full.

    >>> Steady(40).outputs(10), Steady(40).time_to(100)
    (400, 2.5)
    """

    value: float

    def rate(self, t: float) -> float:
        """Results in the unit of time that ends at t."""
        return self.value

    def outputs(self, t: float) -> float:
        """Results by time t, the integral of the rate (2.8)."""
        return self.value * t

    def time_to(self, outputs: float) -> float:
        """When that many results are there."""
        return 0.0 if outputs <= 0 else outputs / self.value if self.value else math.inf


@dataclass(frozen=True)
class Growing:
    """Results of a join without windows (2.3a): nothing is ever forgotten, so each unit of time brings more.

    >>> [round(Growing(0.01, (10, 20)).rate(t), 9) for t in (1, 5, 10)]
    [2.0, 18.0, 38.0]
    """

    selectivity: float
    rates: tuple[float, ...]

    def rate(self, t: float) -> float:
        """Results in the unit of time that ends at t: for two inputs f·(λR·WS(t) + λS·WR(t) − λR·λS), W(t) = λt."""
        return self.outputs(t) - self.outputs(t - 1)

    def outputs(self, t: float) -> float:
        """Results by time t: that share of all combinations of what has come, f·Π λᵢt."""
        return self.selectivity * math.prod(r * t for r in self.rates)

    def time_to(self, outputs: float) -> float:
        """When that many results are there."""
        pace = self.selectivity * math.prod(self.rates)
        return 0.0 if outputs <= 0 else (outputs / pace) ** (1 / len(self.rates)) if pace else math.inf
