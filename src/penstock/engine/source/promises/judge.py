"""Verdicts on the events of a split by promises that depend on what came before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.letter import AHEAD, LATE
from penstock.engine.source.promises.disorder import Lateness, Seen
from penstock.engine.source.promises.keys import KeyState, check_after, check_once
from penstock.engine.source.promises.known import Known
from penstock.engine.source.promises.ledger import pack
from penstock.engine.source.promises.running import (
    LOWEST,
    above_running_max,
    below_kth_greatest,
    below_running_max,
    below_running_max_by_key,
    limits_before,
)
from penstock.kernels.ticks import Ticks, column_ticks, from_tick
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, greater, less
from penstock.pattern.schema import Schema
from penstock.plan.promise import Adaptive, After, Ahead, Disorder, Monitored, Once, Promise, WhenAll, WithinRows


class Verdicts:
    """Reasons and details of the rejected events, by position; the first reason found counts."""

    def __init__(self, rows: int) -> None:
        self.mask: Mask = np.zeros(rows, bool)
        self.reasons: dict[int, tuple[str, str]] = {}

    def reject(self, positions: Ticks, reason: str, details: str | Sequence[str]) -> None:
        for k, i in enumerate(positions.tolist()):
            if not self.mask[i]:
                self.reasons[i] = (reason, details if isinstance(details, str) else details[k])
        self.mask[positions] = True

    def left(self) -> Ticks | None:
        """Positions still in; None means all."""
        return np.flatnonzero(~self.mask) if self.reasons else None

    def copy(self) -> Verdicts:
        made = Verdicts(len(self.mask))
        made.mask, made.reasons = self.mask.copy(), dict(self.reasons)
        return made


class Judge:
    """Judges the events of a split by the promises that depend on what came before.

    Those that verdicts reject already count for nothing, nor do those `without` which time is to be told. `ended` are
    the events that are found to be of keys which are over.
    """

    def __init__(
        self,
        table: pa.Table,
        schema: Schema,
        partition: str,
        known: Known,
        verdicts: Verdicts,
        without: Ticks | None = None,
    ) -> None:
        self.table, self.schema, self.partition, self.known = table, schema, partition, known
        self.verdicts, self._without = verdicts.copy(), without
        self.counted = self._countable()
        self.ended: Ticks = np.empty(0, np.int64)
        self.highs = dict(known.highs)
        self.keys = known.keys
        self.tops = {a: list(top) for a, top in known.tops.items()}
        self.seen = dict(known.seen)
        self.tallies: dict[str, Lateness] = {}
        self.limits = {a: dict(limits) for a, limits in known.limits.items()}
        self.over = list(known.over)
        self.heard: list[str | None] = []
        self._lists = 0

    def _countable(self) -> Ticks | None:
        """The events that tell time; None means all."""
        left = self.verdicts.left()
        if self._without is None:
            return left
        return np.setdiff1d(self._let_in() if left is None else left, self._without, assume_unique=True)

    def _ticks(self, attribute: str) -> tuple[Ticks, Ticks | None]:
        """The ticks that count, and where they are; None means everywhere."""
        column = self.table.column(attribute)
        at = _countable(column, self.counted)
        return column_ticks(column if at is None else column.take(pa.array(at, pa.int64()))), at

    def _reject(self, attribute: str, found: Ticks, limits: Ticks, at: Ticks | None) -> None:
        if len(found):
            texts = _limit_texts(self.schema, attribute, limits)
            self.verdicts.reject(found if at is None else at[found], LATE, texts)

    def _slack(self, promise: Disorder | Adaptive) -> int:
        declared = promise.slack if isinstance(promise, Disorder) else promise.at_most
        return self.known.slacks.get(promise.attribute, declared)

    def ahead(self, promise: Ahead) -> None:
        """Before all others: what is too far ahead counts for none of them."""
        ticks, at = self._ticks(promise.attribute)
        if not len(ticks):
            return
        found, limits, high = above_running_max(ticks, self.highs.get(promise.attribute, LOWEST), promise.most)
        self.highs[promise.attribute] = high
        if len(found):
            texts = _limit_texts(self.schema, promise.attribute, limits, greater)
            self.verdicts.reject(found if at is None else at[found], AHEAD, texts)
            self.counted = self._countable()

    def disorder(self, promise: Disorder | Adaptive) -> None:
        ticks, at = self._ticks(promise.attribute)
        if not len(ticks):
            return
        prefix = self.known.highs.get(promise.attribute, LOWEST)
        floor = self.known.floors.get(promise.attribute, LOWEST)
        found, limits, high = below_running_max(ticks, prefix, self._slack(promise), floor)
        self.highs[promise.attribute] = high
        self._reject(promise.attribute, found, limits, at)

    def within_rows(self, promise: WithinRows) -> None:
        ticks, at = self._ticks(promise.attribute)
        floor = self.known.floors.get(promise.attribute, LOWEST)
        below = np.flatnonzero(ticks < floor)
        self._reject(promise.attribute, below, np.full(len(below), floor), at)
        top = np.array(self.known.tops.get(promise.attribute, ()), np.int64)
        found, limits, top = below_kth_greatest(ticks, top, promise.rows)
        self.tops[promise.attribute] = top.tolist()
        self._reject(promise.attribute, found, limits, at)

    def when_all(self, promise: WhenAll) -> None:
        """One running maximum per listed key."""
        index, self._lists = self._lists, self._lists + 1
        while len(self.keys) <= index:
            self.keys = (*self.keys, (None,) * len(promise.keys))
        ticks, at = self._ticks(promise.past)
        if not len(ticks):
            return
        codes = codes_in(self.table, promise.key, promise.keys, self.schema)
        codes = codes if at is None else codes[at]
        before = np.array([LOWEST if h is None else h for h in self.keys[index]], np.int64)
        found, limits, after = below_running_max_by_key(ticks, codes, before, promise.slack)
        if len(found):
            listed = [promise.keys[c] for c in codes[found].tolist()]
            texts = [
                str(Pattern.by_name(self.schema, {promise.key: k, promise.past: _below(self.schema, promise.past, x)}))
                for k, x in zip(listed, limits.tolist())
            ]
            self.verdicts.reject(found if at is None else at[found], LATE, texts)
        seen = np.zeros(len(before), bool)
        seen[codes] = True
        highs = tuple(int(a) if s or h is not None else None for a, s, h in zip(after, seen, self.keys[index]))
        self.keys = (*self.keys[:index], highs, *self.keys[index + 1 :])

    def measure(self, promise: Monitored | Adaptive) -> None:
        ticks, _ = self._ticks(promise.attribute)
        before = self.seen.get(promise.attribute, Seen())
        self.seen[promise.attribute], self.tallies[promise.attribute] = before.watch(ticks)

    def after(self, promise: After, promises: Sequence[Promise]) -> None:
        state = self._state(promise.key)
        frontier, limit = self._frontier(promise, promises)
        self.limits[promise.attribute] = {**self.limits.get(promise.attribute, {}), self.partition: limit}
        at = self._let_in()
        column = self.table.column(promise.attribute).take(pa.array(at))
        ticks = _ticks_or_lowest(column)
        found, heard = check_after(self.table.select([promise.key]), ticks, frontier[at], at, promise.gap, state)
        self._reject_keys(promise.key, found)
        self.over.append(KeyState(state.over, state.open.heard(heard)))
        self.heard.append(heard.to_json() if len(heard) else None)

    def once(self, promise: Once) -> None:
        state = self._state(promise.key)
        found, over, fresh = check_once(self.table.select([promise.key]), self._let_in(), state.over)
        self._reject_keys(promise.key, found)
        self.over.append(KeyState(over, state.open))
        self.heard.append(pack(fresh) if fresh.num_rows else None)

    def _state(self, key: str) -> KeyState:
        """What is known of the keys of this promise: states are in the order of promises, taken from the front."""
        if not self.heard:
            self.over = []
        index = len(self.heard)
        return self.known.over[index] if index < len(self.known.over) else KeyState.empty(self.schema, key)

    def _let_in(self) -> Ticks:
        left = self.verdicts.left()
        return np.arange(self.table.num_rows) if left is None else left

    def _reject_keys(self, key: str, found: Ticks) -> None:
        if len(found):
            self.ended = np.union1d(self.ended, found)
            self.verdicts.reject(found, LATE, value_texts(self.schema, self.table, (key,), found))

    def _frontier(self, promise: After, promises: Sequence[Promise]) -> tuple[Ticks, int | None]:
        """How far the source was complete in front of each event, and how far its partition is behind the last."""
        name = promise.attribute
        order = next(p for p in promises if isinstance(p, Disorder | Adaptive) and p.attribute == name)
        ticks = np.full(self.table.num_rows, LOWEST, np.int64)
        counted, at = self._ticks(name)
        ticks[slice(None) if at is None else at] = counted
        prefix, floor = self.known.highs.get(name, LOWEST), self.known.floors.get(name, LOWEST)
        own = limits_before(ticks, prefix, self._slack(order), floor)
        others = [limit for p, limit in self.known.limits.get(name, {}).items() if p != self.partition]
        reached = [LOWEST if limit is None else limit for limit in others]
        high = self.highs.get(name)
        limit = floor if high is None else max(high - self._slack(order), floor)
        return np.minimum(own, min(reached)) if reached else own, limit if limit > LOWEST else None


def frontier_pattern(schema: Schema, attribute: str, tick: int) -> Pattern:
    """No further event has `attribute` below a tick."""
    return Pattern.by_name(schema, {attribute: _below(schema, attribute, tick)})


def _below(schema: Schema, attribute: str, tick: int) -> Restriction:
    return less(from_tick(tick, schema.type_of(attribute)))


def codes_in(table: pa.Table, attribute: str, values: Sequence[Any], schema: Schema) -> Ticks:
    """The position of each event's value in the list, −1 if it is not listed."""
    listed = pa.array(values, schema.type_of(attribute))
    found = pc.index_in(table.column(attribute), value_set=listed, skip_nulls=True)
    return column_ticks(pc.fill_null(found, -1))


def _countable(column: pa.ChunkedArray, counted: Ticks | None) -> Ticks | None:
    """Positions that take part in a running maximum; None means all. A null is neither late nor a maximum."""
    if column.null_count == 0:
        return counted
    valid = np.flatnonzero(column.is_valid().to_numpy())
    return valid if counted is None else np.intersect1d(valid, counted, assume_unique=True)


def _ticks_or_lowest(column: pa.ChunkedArray) -> Ticks:
    if not column.null_count:
        return column_ticks(column)
    ticks = np.full(len(column), LOWEST, np.int64)
    ticks[column.is_valid().to_numpy()] = column_ticks(column.drop_null())
    return ticks


def value_texts(schema: Schema, table: pa.Table, names: Sequence[str], at: Ticks) -> list[str]:
    """For each event the punctuation that names its values."""
    rows = table.select(list(names)).take(pa.array(at)).to_pylist()
    # Null and NaN cannot be named: what an event with them breaks matches more than it.
    named = [{n: v for n, v in r.items() if v is not None and v == v} for r in rows]
    texts = {tuple(r.values()): str(Pattern.by_name(schema, n)) for r, n in zip(rows, named)}
    return [texts[tuple(r.values())] for r in rows]


def _limit_texts(schema: Schema, attribute: str, limits: Ticks, side: Callable[[Any], Restriction] = less) -> list[str]:
    t = schema.type_of(attribute)
    texts = {
        limit: str(Pattern.by_name(schema, {attribute: side(from_tick(limit, t))}))
        for limit in np.unique(limits).tolist()
    }
    return [texts[limit] for limit in limits.tolist()]
