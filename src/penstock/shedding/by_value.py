"""Dropping by value: which values are given up in which windows, and how often values occur.

As with windows, what was planned for a window holds once an event of its time has been read: a group of which some
events are gone must not come out when its values are wanted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, between, equal
from penstock.pattern.schema import Schema
from penstock.plan.window import TimeWindow, from_tick
from penstock.shedding.histogram import Histogram
from penstock.shedding.outlook import Settled
from penstock.shedding.value import Span, ValueGraph
from penstock.shedding.worthless import CHUNKS, Removal, removal

#: Low end, high end, and whether that is given up too.
Cut = tuple[tuple[Any, Any, bool], ...]
#: What an epoch before counts against the one behind it, for how often values occur.
DECAY = 0.9
_OTHERS = Span("\0others", "\0others")


def pieces(graph: ValueGraph) -> tuple[Span, ...]:
    """The spans of which tasks count the rows."""
    return tuple(chunk.span for piece in graph.pieces for chunk in piece.chunks(CHUNKS))


@dataclass(frozen=True)
class ValueDrops:
    """Where dropping by value stands for one output: plain data.

    `counts`: rows by piece of the graph, and last those of other values, while nothing was dropped. `ahead`: what is
    given up in windows that have not begun. `settled`: first and last number of windows that have, and what of them.

    >>> graph = ValueGraph.of({"x": [((0, 50), 0.2), ((51, 100), 1)]})
    >>> drops = ValueDrops().counted([40, 60, 0]).planned(graph, 0.2, whole_numbers=True)
    >>> drops.ahead
    ((0, 25, False),)
    >>> schema = Schema.parse("window_start int, x int, n bigint")
    >>> from penstock.plan.window import Window
    >>> drops = drops.passed(Settled(3, 4)).planned(graph, 0, whole_numbers=True)
    >>> print(*drops.patterns(schema, "x", "window_start", Window.tumbling(10, on="ts"), 5, 9))
    [[30, 40], [0, 25), *]
    """

    counts: tuple[float, ...] = ()
    ahead: Cut = ()
    settled: tuple[tuple[int, int, Cut], ...] = ()

    def counted(self, rows: Sequence[float]) -> ValueDrops:
        """The same with the rows of one more epoch, unless some were given up in it."""
        if self.ahead or not any(rows):
            return self
        before = self.counts or (0.0,) * len(rows)
        return replace(self, counts=tuple(round(DECAY * b + n, 6) for b, n in zip(before, rows, strict=True)))

    def histogram(self, graph: ValueGraph) -> Histogram | None:
        """How often values occur; None as long as none was seen."""
        if not self.counts:
            return None
        return Histogram(tuple(zip((*pieces(graph), _OTHERS), self.counts, strict=True)))

    def planned(self, graph: ValueGraph, share: float, *, whole_numbers: bool) -> ValueDrops:
        """The same with that share of the rows given up from now on, the least useful first."""
        seen = self.histogram(graph)
        if share <= 0 or seen is None:
            return replace(self, ahead=())
        return replace(self, ahead=_cut(removal(graph, seen, share, whole_numbers=whole_numbers)))

    def passed(self, done: Settled) -> ValueDrops:
        """What was planned for these windows holds."""
        if not self.ahead:
            return self
        last = self.settled[-1] if self.settled else None
        if last is not None and last[2] == self.ahead and last[1] == done.first - 1:
            return replace(self, settled=(*self.settled[:-1], (last[0], done.last, self.ahead)))
        return replace(self, settled=(*self.settled, (done.first, done.last, self.ahead)))

    def final(self, first_open: int) -> ValueDrops:
        """The same without windows of which nothing can come any more, all before this one."""
        return replace(self, settled=tuple(s for s in self.settled if s[1] >= first_open))

    def patterns(
        self, schema: Schema, attribute: str, label: str, window: TimeWindow, first: int, until: int
    ) -> Iterator[Pattern]:
        """What nobody need look at, in windows that have begun and in those ahead."""
        for low, high, cut in (*self.settled, (first, until - 1, self.ahead)):
            begins, last = (from_tick(window.start(n), window.unit) for n in (low, high))
            during = between(begins, last, True, True)
            for r in restrictions(cut, schema, attribute):
                yield Pattern.by_name(schema, {label: during, attribute: r})

    def to_json(self) -> dict[str, Any]:
        return {
            "counts": list(self.counts),
            "ahead": [list(c) for c in self.ahead],
            "settled": [[first, last, [list(c) for c in cut]] for first, last, cut in self.settled],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ValueDrops:
        settled = tuple((first, last, _read(cut)) for first, last, cut in stored["settled"])
        return cls(tuple(stored["counts"]), _read(stored["ahead"]), settled)


def restrictions(cut: Cut, schema: Schema, attribute: str) -> Iterator[Restriction]:
    """What is given up, as patterns over results say it."""
    t = schema.type_of(attribute)
    said = (equal(low) if low == high else between(low, high, True, closed) for low, high, closed in cut)
    return (r.coerced(t) for r in said)


def _cut(found: Removal) -> Cut:
    whole = tuple((s.low, s.high, True) for s in found.spans)
    return whole if found.cut is None else (*whole, (found.cut.low, found.cut.high, False))


def _read(stored: Sequence[Sequence[Any]]) -> Cut:
    return tuple((low, high, bool(closed)) for low, high, closed in stored)
