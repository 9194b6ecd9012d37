"""The parts of the model of join_cost.py that the planner does not need: what joins deliver, and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.builder.join_cost import Input, Probe, arrival_cost


def selected(source: Input, selectivity: float) -> Input:
    """What a selection lets through (2.1, 2.2). A projection is a selection that lets everything through.

    >>> selected(Input(rate=40, window=200), 0.25)
    Input(rate=10.0, window=50.0, store=1.0, match=5.0, invalidate=1.0)
    """
    return replace(source, rate=selectivity * source.rate, window=selectivity * source.window)


def held(rate: float, time: float) -> float:
    """Little's law, N = λT: how many events a window of time holds.

    >>> held(rate=20, time=10)
    200
    """
    return rate * time


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
