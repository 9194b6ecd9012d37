"""Comparing a run with what was expected of it: state with its bounds, streams with their declared rates and lags.

Nothing is refused. What is broken gets one line in the run's warnings: more state than the bound, a stream that brings
more events a second of event time than declared, a stream that is further behind the others than declared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.analysis.bounds import Bound, bounds
from penstock.checkpoint.runs import Units
from penstock.contract.rates import Arrivals, step_of
from penstock.engine.progress import Progress
from penstock.engine.source.promises.driver import PromiseState
from penstock.errors import counted
from penstock.operators.source.operator import Source
from penstock.operators.source.rates import pace_of
from penstock.pattern.duration import format_duration
from penstock.plan.place import Place
from penstock.plan.plan import Plan
from penstock.plan.promise import Expected

#: So many of the last epochs are kept to measure rates between; of those before, every second, again and again.
_RECENT = 32


@dataclass
class _Stream:
    """One source: what is declared of it, and where it stood after epochs (rows so far, how far it was)."""

    name: str
    attribute: str
    timed: bool
    step: int
    declared: Arrivals | None
    behind: int
    """How far what it says of its time is behind its newest event."""
    lag: int | None
    rows: int = 0
    points: list[tuple[int, int]] = field(default_factory=list)
    brings: str | None = None
    """That it brings too much, in words."""

    def take(self, rows: int, frontier: int | None) -> None:
        self.rows += rows
        if frontier is None:
            return
        self.points.append((self.rows, frontier * self.step))
        if len(self.points) > 2 * _RECENT:
            self.points = [*self.points[:-_RECENT:2], *self.points[-_RECENT:]]

    @property
    def newest(self) -> int | None:
        return self.points[-1][1] + self.behind if self.points else None

    def measure(self) -> None:
        """Whether some stretch has more events than the declared rate gives.

        Events that came after a frontier was told are not older than it, nor newer than the newest one now.
        """
        if self.declared is None or self.brings is not None or len(self.points) < 2:
            return
        rows, at = self.points[-1]
        for before, since in self.points[:-1]:
            if rows - before > self.declared.within(at - since + self.behind) and at > since:
                measured = (rows - before) / (at - since)  # Late events are missing at one end and extra at the other.
                self.brings = f"{self.name} brings {self._said(measured)}, declared {self._count(self.declared.rate)}"
                return

    def _count(self, rate: float) -> str:
        found = rate * (1_000_000 if self.timed else 1)
        return f"{found:,.0f}" if found >= 100 else f"{found:,.3g}"

    def _said(self, rate: float) -> str:
        return f"{self._count(rate)} events{'/s' if self.timed else ' a tick'}"

    def ticks(self, ticks: int) -> str:
        if not self.timed:
            return f"{ticks:,} ticks"
        return format_duration(ticks // 1_000_000 * 1_000_000 if ticks >= 10_000_000 else ticks // 1000 * 1000)


class BoundsWatch:
    """The bounds of a running query; `see` gives the lines that an epoch adds to its warnings."""

    def __init__(self, plan: Plan) -> None:
        sources = {n.id: n.operator for n in plan.sources if isinstance(n.operator, Source)}
        alone = len(sources) == 1
        self.streams = {i: s for i, source in sources.items() if (s := _stream(source, alone)) is not None}
        self.below: dict[str, set[str]] = {}
        for node in plan.nodes:
            self.below[node.id] = {node.id} if not node.inputs else set().union(*(self.below[i] for i in node.inputs))
        self.bounds = bounds(plan)
        # What a row of an epoch adds: where several streams meet, they are abreast only as far as epochs go.
        meeting = not alone or any(n.operator.kind in ("join", "multijoin") for n in plan.nodes)
        self.epoch = bounds(plan, epoch=1) if meeting else self.bounds
        self.most = 0
        self.told: set[tuple[str, str]] = set()

    def see(self, progress: Progress, units: Units, promises: Mapping[str, PromiseState]) -> list[str]:
        """Take an epoch in, and say what is broken that was not before."""
        self.most = max(self.most, *progress.read.values(), 0)
        for node_id, stream in self.streams.items():
            state = promises[node_id]
            stream.take(
                progress.read.get(stream.name, 0), None if state.ended else state.frontier.get(stream.attribute)
            )
            stream.measure()
        lines = [(s.name, "rate", s.brings) for s in self.streams.values() if s.brings is not None]
        lines += [(name, "lag", said) for name, said in self._late(promises).items()]
        held: dict[str, int] = {}
        for key, runs in units.items():
            operator = Place(key.operator).node
            held[operator] = held.get(operator, 0) + sum(r.live for r in runs)
        for operator, rows in held.items():
            limit = self._limit(operator)
            if limit is not None and rows > limit:
                said = f"{operator} holds {counted(rows, 'row')}, the bound was {limit:,}"
                lines.append((operator, "state", f"{said}: {self._reason(operator)}"))
        fresh = [(who, what, line) for who, what, line in lines if (who, what) not in self.told]
        self.told |= {(who, what) for who, what, _ in fresh}
        return [line for _, _, line in fresh]

    def _limit(self, operator: str) -> int | None:
        bound: Bound = self.bounds.get(operator, Bound(None, None))
        arriving: Bound = self.epoch.get(operator, bound)
        if bound.stored is None or arriving.stored is None:
            return None
        return bound.stored + self.most * (arriving.stored - bound.stored)

    def _late(self, promises: Mapping[str, PromiseState]) -> dict[str, str]:
        """Streams that are further behind the newest than they declared, and what goes with an epoch."""
        found = {}
        for node_id, stream in self.streams.items():
            away = self._away(node_id)
            if stream.lag is None or away is None or promises[node_id].ended:
                continue
            epoch = 0 if stream.declared is None else math.ceil(self.most / stream.declared.rate)
            if away > stream.lag + epoch:
                found[stream.name] = (
                    f"{stream.name} is {stream.ticks(away)} behind, declared {stream.ticks(stream.lag)}"
                )
        return found

    def _away(self, node_id: str) -> int | None:
        """How far a stream is behind the newest of those with the same kind of time."""
        stream = self.streams[node_id]
        others = [s.newest for s in self.streams.values() if s.timed == stream.timed and s.newest is not None]
        return None if stream.newest is None or len(others) < 2 else max(others) - stream.newest

    def _reason(self, operator: str) -> str:
        mine = [i for i in self.below[operator] if i in self.streams]
        brings = [s.brings for i in mine if (s := self.streams[i]).brings is not None]
        if brings:
            return " and ".join(sorted(filter(None, brings)))
        behind = {i: away for i in mine if (away := self._away(i))}
        if behind:
            last = max(behind, key=lambda i: behind[i])
            return f"{self.streams[last].name} is {self.streams[last].ticks(behind[last])} behind"
        return "a lifetime or a number of keys must be more than declared"


def watching(plan: Plan) -> BoundsWatch | None:
    """A watch, if anything is expected of the sources at all.

    >>> import penstock as ps
    >>> watching(ps.generate(rate=5).window("1 s").agg(n="count(*)").plan) is None
    True
    """
    expected = any(isinstance(p, Expected) for n in plan.sources for p in getattr(n.operator, "promises", ()))
    return BoundsWatch(plan) if expected else None


def _stream(source: Source, alone: bool) -> _Stream | None:
    expected = next((p for p in source.promises if isinstance(p, Expected)), Expected())
    pace = pace_of(source, alone)
    if len(pace.moment) != 1:
        return None
    (attribute,) = pace.moment
    step = step_of(source.schema.type_of(attribute))
    term = pace.terms.get(frozenset({(attribute, "+")}))
    lag = None if expected.lag is None else expected.lag * step
    behind = 0 if term is None or term.ticks is None else term.ticks - (lag or 0)
    return _Stream(source.name, attribute, pace.clock == "us", step, pace.rate, max(0, behind), lag)
