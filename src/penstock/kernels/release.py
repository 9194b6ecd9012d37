"""Letting go of rows: finding those that patterns name, and keeping runs few and free of dead rows.

Most patterns that release rows of a join name keys, or say how far time has come. The former are looked up by hash,
the latter decide on whole runs by the span of time they cover. Only other patterns are evaluated row by row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.kernels.fold import frontier_of, is_tickable, tick, ticks
from penstock.kernels.hash import hash_keys, is_exact
from penstock.kernels.index import Mask, distinct, expand, merged_order, order_of, pick, ranges, same
from penstock.kernels.sorted_run import SortedRun
from penstock.kernels.stateful import DEAD, Answer, Fresh, Laziness
from penstock.kernels.tiers import large, tier
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Equal, OneOf, values_of
from penstock.pattern.schema import Schema

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
#: Patterns that list more combinations of key values than this are evaluated row by row.
_COMBINATIONS = 10_000
#: Runs that the rows of one epoch are cut into at most, however many slices of time they cover.
_CUTS = 8


class _Cells:
    """Single keys, each with a span of time: what patterns name that list their values."""

    def __init__(self, keys: int) -> None:
        self.columns: list[list[object]] = [[] for _ in range(keys)]
        self.first: list[int] = []
        self.last: list[int] = []

    def add(self, listed: list[tuple[object, ...]], spans: Sequence[tuple[int, int]]) -> None:
        columns = listed if len(listed) == 1 else list(zip(*itertools.product(*listed), strict=True))
        if not columns:
            return
        for first, last in spans:
            for mine, more in zip(self.columns, columns):
                mine.extend(more)
            self.first += [first] * len(columns[0])
            self.last += [last] * len(columns[0])


class Selection:
    """The rows of one input that match any of some patterns.

    >>> s = Schema.parse("k int, t int")
    >>> chosen = Selection([Pattern.parse("[7, *]", s), Pattern.parse("[*, < 3]", s)], s, ("k",), "t")
    >>> table = pa.table({"k": pa.array([7, 8, 8], pa.int32()), "t": pa.array([9, 9, 1], pa.int32())})
    >>> run = SortedRun.arrived(table, ["k"], "t")
    >>> sorted(zip(run.rows["k"].to_pylist(), run.rows["t"].to_pylist(), chosen.find(run).tolist()))
    [(7, 9, True), (8, 1, True), (8, 9, False)]
    """

    def __init__(self, patterns: Iterable[Pattern], schema: Schema, keys: tuple[str, ...], time: str | None) -> None:
        self.schema, self.keys, self.time = schema, tuple(dict.fromkeys(keys)), time
        self.hashed = keys
        self.everything = False
        self.spans: list[tuple[int, int]] = []
        self.others: list[Pattern] = []
        cells = _Cells(len(self.keys))
        known = set(self.keys) | ({time} if time is not None else set())
        for pattern in patterns:
            if not pattern.restricted:
                self.everything = True
            elif pattern.restricted == (time,):
                self.spans += self._spans(pattern)
            elif pattern.describes(known) and self._lists(pattern):
                cells.add([values_of(pattern[k]) for k in self.keys], self._spans(pattern))
            else:
                self.others.append(pattern)
        self._index(cells)

    def _spans(self, pattern: Pattern) -> list[tuple[int, int]]:
        """The ticks that the restriction on time matches, both ends included."""
        if self.time is None or pattern[self.time] is ANY:
            return [(_LEAST, _MOST)]
        t = self.schema.type_of(self.time)
        return [
            (_LEAST if low[0] < 0 else tick(low[1], t), _MOST if high[0] > 0 else tick(high[1], t) - 1)
            for low, high in pattern[self.time].extent(t)
        ]

    def _lists(self, pattern: Pattern) -> bool:
        listed = all(isinstance(pattern[k], Equal | OneOf) for k in self.keys)
        # One list of values is as long as whoever promised made it; combinations of lists grow by themselves.
        return listed and (len(self.keys) == 1 or prod(len(values_of(pattern[k])) for k in self.keys) <= _COMBINATIONS)

    def _index(self, cells: _Cells) -> None:
        types = [self.schema.type_of(k) for k in self.keys]
        table = pa.table({k: pa.array(c, t) for k, c, t in zip(self.keys, cells.columns, types)})
        hashes = hash_keys(table, self.hashed)
        order = order_of(hashes)
        self._cells, self._hashes = table.take(pa.array(order)), hashes[order]
        self._from = np.array(cells.first, dtype=np.int64)[order]
        self._to = np.array(cells.last, dtype=np.int64)[order]
        self._exact = is_exact([self.schema.type_of(k) for k in self.hashed])

    def __bool__(self) -> bool:
        return self.everything or bool(self.spans or self.others or len(self._hashes))

    def find(self, run: SortedRun) -> Mask | None:
        """Which rows of a run match; None if none does."""
        if not len(run):
            return None
        if self.everything:
            return np.ones(len(run), dtype=np.bool_)
        found: Mask | None = None
        for part in (self._timed(run), self._listed(run), *(self._matching(p, run) for p in self.others)):
            if part is not None:
                found = part if found is None else found | part
        return found

    def _timed(self, run: SortedRun) -> Mask | None:
        found: Mask | None = None
        for low, high in self.spans:
            if run.low is None or run.high is None or run.high < low or run.low > high:
                continue
            if low <= run.low and run.high <= high:
                return np.ones(len(run), dtype=np.bool_)
            part = (run.ticks >= low) & (run.ticks <= high)
            found = part if found is None else found | part
        return found

    def _listed(self, run: SortedRun) -> Mask | None:
        if not len(self._hashes):
            return None
        swapped = len(self._hashes) > len(run)
        needle, begin, end = ranges(run.hashes, self._hashes) if swapped else ranges(self._hashes, run.hashes)
        found: Mask | None = None
        for which, at in expand(begin, end):
            cell, row = (at, needle[which]) if swapped else (needle[which], at)
            fits = np.ones(len(row), dtype=np.bool_)
            if self.time is not None:
                ticks = run.ticks[row]
                fits &= (self._from[cell] <= ticks) & (ticks <= self._to[cell])
            if not self._exact or run.source.column(self.keys[0]).null_count:
                for key in self.keys:
                    fits &= same(pick(self._cells, key, cell), run.pick(key, row), null_safe=False)
            if found is None:
                found = np.zeros(len(run), dtype=np.bool_)
            found[row[fits]] = True
        return found

    def _matching(self, pattern: Pattern, run: SortedRun) -> Mask | None:
        low, high = run.low, run.high
        if low is not None and high is not None and all(high < a or low > b for a, b in self._spans(pattern)):
            return None
        mask = np.asarray(pattern.matches(run.rows))
        return mask if mask.any() else None


def answer(pattern: Pattern, runs: Sequence[SortedRun], keys: tuple[str, ...], time: str | None) -> Answer:
    """How many live rows match a pattern, the latest time among them, and how far they reach down.

    What the pattern says of attributes that are not stored is taken as `*`: rather too many rows than too few.
    """
    stored = {name for run in runs for name in run.rows.column_names}
    known = {n: pattern[n] for n in pattern.restricted if n in stored}
    selection = Selection([Pattern.by_name(pattern.schema, known)], pattern.schema, keys, time)
    (up_to,) = pattern.restricted if len(pattern.restricted) == 1 else (None,)
    rows, latest, least = 0, None, None
    for run in runs:
        if (mask := selection.find(run)) is None:
            continue
        live = run.live()
        mask = mask if live is None else mask & live
        if count := int(np.count_nonzero(mask)):
            rows += count
            if frontier_of(pattern, up_to) is not None and up_to in known and is_tickable(run.rows[up_to].type):
                bottom = int(ticks(run.rows[up_to].filter(pa.array(mask))).min())
                least = bottom if least is None else min(least, bottom)
            if time is not None:
                top = run.high if count == len(run) else int(run.ticks[mask].max())
                latest = top if latest is None or (top is not None and top > latest) else latest
    return Answer(rows, latest, least)


def cut(run: SortedRun, span: int | None) -> list[SortedRun]:
    """A new run cut into slices of time of the given span, so that later whole runs leave at once."""
    if not len(run) or span is None or run.low is None or run.high is None:
        return [run] if len(run) else []
    if run.low // span == run.high // span:
        run.group = run.low // span
        return [run]
    slices = run.ticks.astype(np.int64) // span
    present = distinct(np.sort(slices))
    pieces = []
    for part in np.array_split(present, min(len(present), _CUTS)):
        inside = np.flatnonzero((slices >= part[0]) & (slices <= part[-1]))
        pieces.append(run.part(inside, int(part[-1])))
    return pieces


def _merged(runs: Sequence[SortedRun], group: int) -> SortedRun:
    rows = pa.concat_tables([r.rows for r in runs]).combine_chunks()
    time = runs[0].time
    together = SortedRun(rows, time, group=group)
    order = merged_order(together.hashes, together.ticks if time is not None else None)
    merged = SortedRun(rows, time, order=order, group=group, low=together.low, high=together.high)
    for flag in {f for r in runs for f in r.flagged}:
        merged.mark(flag, np.concatenate([r.flags(flag) for r in runs])[order])
    return merged


class Tidied(NamedTuple):
    """What becomes of runs, as a step says it."""

    dropped: tuple[str, ...]
    marked: tuple[tuple[str, pa.Table], ...]
    added: tuple[Fresh, ...]


def tidy(ports: Sequence[Sequence[SortedRun]], laziness: Laziness, flags: Sequence[tuple[str, ...]]) -> Tidied:
    """Drop runs that are dead, rewrite those that mostly are, merge where there are too many; port by port."""
    found = [_tidy(port, runs, laziness, some) for port, (runs, some) in enumerate(zip(ports, flags, strict=True))]
    return Tidied(*(tuple(itertools.chain.from_iterable(part)) for part in zip(*found, strict=True)))


def _tidy(port: int, runs: Sequence[SortedRun], laziness: Laziness, flags: tuple[str, ...]) -> Tidied:
    dropped: list[str] = []
    kept: dict[int, list[SortedRun]] = {}
    for run in runs:
        live = run.live()
        count = len(run) if live is None else int(np.count_nonzero(live))
        if count < len(run) and (count == 0 or run.name is None or count < (1 - laziness.rewrite_above) * len(run)):
            if run.name is not None:
                dropped.append(run.name)
            if count == 0:
                continue
            assert live is not None
            run = run.part(np.flatnonzero(live), run.group)
        kept.setdefault(run.group, []).append(run)
    marked: list[tuple[str, pa.Table]] = []
    added: list[Fresh] = []
    for group, together in kept.items():
        sizes, new = [len(r) for r in together], sum(len(r) for r in together if r.name is None)
        # Inputs take turns: those that grow alike would be merged in the same epoch.
        if chosen := tier(sizes, laziness.merge_above + port, large(sizes, new)):
            some = [together[i] for i in chosen]
            dropped += [r.name for r in some if r.name is not None]
            merged = _merged([_live_part(r) for r in some], group)
            together = [merged, *(r for i, r in enumerate(together) if i not in chosen)]
        for run in together:
            if run.name is None:
                marks = run.stamp(tuple(f for f in flags if f != DEAD))
                added.append(Fresh(port, run.rows, run.group, run.low, run.high, marks))
            elif run.changed:
                stamp = run.stamp(flags)
                assert stamp is not None
                marked.append((run.name, stamp))
    return Tidied(tuple(dropped), tuple(marked), tuple(added))


def _live_part(run: SortedRun) -> SortedRun:
    live = run.live()
    return run if live is None or live.all() else run.part(np.flatnonzero(live), run.group)
