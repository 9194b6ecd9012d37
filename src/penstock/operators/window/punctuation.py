"""The behaviour of windows: from promises about time to promises about windows.

A window is complete when every time it could hold is promised away, by one promise or by several together. So promises
about time are remembered, and each new one is taken together with those before it: see `along`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.operators.window.operator import Bucket
from penstock.pattern.along_attribute import along
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.grid import grids

#: How many promises are remembered. A frontier is one, however often it moves; single times that never come to fill a
#: window are the exception, and of those the latest count.
REMEMBERED = 10_000


class BucketBehaviour(Behaviour):
    """Passes every punctuation on, and says which windows are complete.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> s = StreamBuilder(Source((), Schema.parse("ts int", "ts"), name="s"))
    >>> windows = BucketBehaviour(s.window(10).operator)
    >>> print(*windows.receive([(Pattern.parse("[[6, 12)]", s.schema),)]))
    [[6, 12), *]
    >>> print(*windows.receive([(Pattern.parse("[< 7]", s.schema),)]))
    [< 7, *] [*, <= 0]
    """

    def __init__(self, operator: Bucket) -> None:
        (below,) = operator.inputs
        self.schema, self.output = below.schema, operator.schema
        self.window = operator.window
        if self.window.on is not None and (grid := grids(below).get(self.window.on)) is not None:
            self.window = self.window.on_grid(grid.step, grid.phase)
        self.given = PunctuationSet(self.schema)

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        patterns = [Pattern(self.schema, p.restrictions) for p in arrived[0]]
        out = [p.onto(self.output, {n: n for n in p.restricted}) for p in patterns]
        on = self.window.on
        if on is None or not patterns:
            return maximal(out)
        fresh = [p for p in patterns if on in p.restricted]
        # Whatever is over at all times needs no windows any more.
        over = [p for p in patterns if on not in p.restricted]
        self.given = self.given.add(*fresh).without(*over, keep_ranges=True)
        if len(self.given) > REMEMBERED:
            self.given = PunctuationSet(self.schema, self.given.patterns[-REMEMBERED:])
        closed = PunctuationSet(self.output).add(*self._closed(fresh, on))
        return maximal((*out, *closed))

    def _closed(self, fresh: Sequence[Pattern], on: str) -> Iterator[Pattern]:
        """The windows that new promises about time complete."""
        for beside, times in along([*self.given, *fresh], fresh, on):
            kept = {n: beside[n] for n in beside.restricted}
            for labels in self.window.closed_by(*times, of=self.schema.type_of(on)):
                yield Pattern.by_name(self.output, {**kept, self.window.label: labels})

    def to_json(self) -> dict[str, Any]:
        return {"given": self.given.to_json()} if self.given else {}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.given = PunctuationSet.from_json(stored["given"], self.schema)
