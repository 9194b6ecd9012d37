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
from dataclasses import dataclass


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

    @property
    def upkeep(self) -> float:
        """The work a unit of time to keep the window up to date: each event comes once and goes once."""
        return self.rate * (self.store + self.invalidate)


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


def throughput(rate: float, cost: float) -> float:
    """Results per unit of work, ρ = λ/μ.

    >>> round(throughput(40, 210), 6)
    0.190476
    """
    return rate / cost if cost else math.inf


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
