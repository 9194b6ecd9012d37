"""Completeness by counts: an interval of time is over when all its counted events have come, in whatever order.

Counts and events may come in any order. An event in no interval that is known yet is remembered by its tick; one in an
interval that is full already is one more than counted. An interval that is full completes the stream up to its end, as
soon as everything before it is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from penstock.errors import UserError
from penstock.kernels.ticks import Ticks, from_tick, to_tick
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.pattern.schema import Schema
from penstock.pattern.types import coerce_value
from penstock.plan.count import LOWEST, Count
from penstock.plan.promise import Counted


@dataclass(frozen=True)
class Counting:
    """What has come so far. The source is complete below `reached`.

    `spans` are the counts that are open, with how many of their events have come; `ticks` the events beyond, each so
    many `times`.

    >>> first, extra, _ = Counting().after(np.array([9, 1, 4, 2]), [(0, Count(5, 10, 1))])
    >>> second, _, _ = first.after(np.zeros(0, np.int64), [(0, Count(LOWEST, 5, 3))])
    >>> extra, first.reached == LOWEST, second.reached
    ({}, True, 10)
    """

    reached: int = LOWEST
    heard: int = 0
    spans: tuple[tuple[Count, int], ...] = ()
    ticks: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    times: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))

    def after(
        self, ticks: Ticks, counts: Sequence[tuple[int, Count]]
    ) -> tuple[Counting, dict[int, str], list[tuple[int, str]]]:
        """After these events, and counts in front of those at their positions.

        Also which events are more than counted, and why, and which of the counts contradict others.
        """
        state, extra, wrong, start = self, dict[int, str](), list[tuple[int, str]](), 0
        for number, (at, count) in enumerate(counts):
            state = state._come(ticks[start:at], start, extra)
            start = at
            other = state._overlapping(count)
            if other:
                wrong.append((number, other))
            else:
                state = state._told(count)
        state = state._come(ticks[start:], start, extra)._advanced()
        return replace(state, heard=self.heard + len(ticks) + len(counts)), extra, wrong

    def _overlapping(self, count: Count) -> str:
        """Why a count cannot be; nothing if it can, or if it is told once more."""
        known = [c for c, _ in self.spans if c.overlaps(count)]
        if known and known != [count]:
            return f"{count}, but {known[0]}"
        return f"{count}, but all before {self.reached} is complete" if count.low < self.reached < count.high else ""

    def _told(self, count: Count) -> Counting:
        if count.high <= self.reached or any(c == count for c, _ in self.spans):
            return self
        inside = (self.ticks >= count.low) & (self.ticks < count.high)
        spans = (*self.spans, (count, int(self.times[inside].sum())))
        made = replace(self, spans=tuple(sorted(spans)), ticks=self.ticks[~inside], times=self.times[~inside])
        return made._advanced()

    def _come(self, ticks: Ticks, first: int, extra: dict[int, str]) -> Counting:
        """After events; `first` is the position of the first of them."""
        if not len(ticks):
            return self
        early = ticks < self.reached
        extra.update((first + i, f"all before {self.reached} have come") for i in np.flatnonzero(early).tolist())
        free, spans = ~early, []
        for count, come in self.spans:
            inside = np.flatnonzero((ticks >= count.low) & (ticks < count.high) & ~early)
            room = max(count.number - come, 0)
            extra.update((first + i, f"{count}") for i in inside[room:].tolist())
            spans.append((count, come + min(len(inside), room)))
            free[inside] = False
        values, many = np.unique(np.concatenate([self.ticks, ticks[free]]), return_inverse=True)
        times = np.concatenate([self.times, np.ones(int(free.sum()), np.int64)])
        return replace(self, spans=tuple(spans), ticks=values, times=np.bincount(many, times).astype(np.int64))

    def _advanced(self) -> Counting:
        """Complete up to where one full interval lies behind the other."""
        state = self
        while state.spans and state.spans[0][0].low <= state.reached and state.spans[0][1] >= state.spans[0][0].number:
            state = replace(state, reached=state.spans[0][0].high, spans=state.spans[1:])
        return state

    def to_json(self) -> dict[str, Any]:
        spans = [[c.low, c.high, c.number, come] for c, come in self.spans]
        return {
            "reached": self.reached,
            "heard": self.heard,
            "spans": spans,
            "ticks": [self.ticks.tolist(), self.times.tolist()],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        spans = tuple((Count(low, high, number), come) for low, high, number, come in stored["spans"])
        ticks, times = (np.array(part, np.int64) for part in stored["ticks"])
        return cls(stored["reached"], stored["heard"], spans, ticks, times)


def read_count(said: Mapping[str, Any], promise: Counted, schema: Schema) -> Count:
    """A count from `{"from": 0, "to": 8, "count": 4}`, with values as the attribute has them.

    >>> read_count({"from": 0, "to": 8, "count": 4}, Counted("t"), Schema.parse("t int"))
    Count(low=0, high=8, number=4)
    """
    unknown = sorted(set(said) - {"from", "to", "count"})
    if unknown or said.get("to") is None:
        what = f"'{unknown[0]}' says nothing of a count" if unknown else "it does not say up to where it counts"
        raise UserError(what, hint='such as {"from": 0, "to": 8, "count": 4}')
    t = schema.type_of(promise.attribute)
    low = LOWEST if promise.since is None else promise.since
    if said.get("from") is not None:
        low = to_tick(coerce_value(said["from"], t))
    high, number = to_tick(coerce_value(said["to"], t)), said["count"]
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise UserError(f"{number!r} is no number of events", hint="a whole number, 0 or more")
    if low >= high:
        raise UserError("it ends before it begins", hint="`to` is behind `from`, and not in the interval itself")
    return Count(low, high, number)


def advanced(
    before: Counting | None, reports: Sequence[Mapping[str, Any]], source: Source
) -> tuple[Counting | None, list[Pattern]]:
    """What is known after all splits of an epoch, each of which goes on from the one before, and what is over since."""
    told = [r["counted"] for r in reports if r["counted"]]
    if not told:
        return before, []
    now = Counting.from_json(max(told, key=lambda t: int(t["heard"])))
    promise = next(p for p in source.promises if isinstance(p, Counted))
    first = LOWEST if promise.since is None else promise.since
    if now.reached == (first if before is None else before.reached):
        return now, []
    over = less(from_tick(now.reached, source.schema.type_of(promise.attribute)))
    return now, [Pattern.by_name(source.schema, {promise.attribute: over})]
