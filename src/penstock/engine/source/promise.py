"""The task's side of promises: which events of a batch break one.

The verdict on an event depends only on the events before it in its source partition (for `WhenAll`, before it in the
source), never on how the stream was cut into splits or epochs:

- outside of promised bounds, or a value that is not listed: forbidden;
- matches an earlier punctuation given in band: late;
- older than the greatest tick of all earlier events (that are not rejected for the reasons above) by more than the
  slack, or with too many greater ones before it: late;
- with a key that has come before though it comes once, or that is over since nothing was heard of it: late. Keys take
  note only of the events that nothing above rejects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.algebra.pattern import Pattern
from penstock.algebra.punctuation import PunctuationSet
from penstock.algebra.restriction import greater, less
from penstock.algebra.schema import Schema
from penstock.algebra.source import (
    Adaptive,
    After,
    Bounds,
    Disorder,
    Domain,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)
from penstock.engine.source.fit import Mask
from penstock.engine.source.keys import KeyState, check_after, check_once
from penstock.engine.source.known import Known
from penstock.engine.source.ledger import Ledger, pack
from penstock.engine.source.letter import FORBIDDEN, LATE, event_texts, letters, no_letters
from penstock.engine.source.monitor import Seen, Tally
from penstock.engine.source.points import check_values
from penstock.engine.source.read import Batch
from penstock.engine.source.running import (
    LOWEST,
    below_kth_greatest,
    below_running_max,
    below_running_max_by_key,
    limits_before,
)
from penstock.engine.source.split import Split
from penstock.engine.source.ticks import Ticks, column_ticks, from_tick


@dataclass(frozen=True)
class Checked:
    """The events that may enter the stream, those that may not, what the driver is told, what is known now."""

    events: pa.Table
    rejected: pa.Table
    report: dict[str, Any]
    known: Known


class _Verdicts:
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


def check(batch: Batch, split: Split, known: Known, promises: Sequence[Promise], schema: Schema) -> Checked:
    """Separate the events that keep every promise from those that break one."""
    table = batch.table
    verdicts = _Verdicts(table.num_rows)
    _check_forbidden(table, promises, schema, verdicts)
    given, values, fresh, named = _check_in_band(batch, known, schema, verdicts)
    # From here on promises are judged side by side: being late for one does not hide an event from another.
    counted = verdicts.left()
    judge = _Judge(table, schema, split.partition, known, counted, verdicts)
    for promise in promises:
        if isinstance(promise, Disorder | Adaptive):
            judge.disorder(promise)
        elif isinstance(promise, WithinRows):
            judge.within_rows(promise)
        elif isinstance(promise, WhenAll):
            judge.when_all(promise)
        if isinstance(promise, Monitored | Adaptive):
            judge.measure(promise)
    for promise in promises:
        if isinstance(promise, After):
            judge.after(promise, promises)
        elif isinstance(promise, Once):
            judge.once(promise)
    after = replace(
        known,
        highs=judge.highs,
        keys=judge.keys,
        punctuations=given if given.patterns else known.punctuations,
        values=values,
        over=tuple(judge.over),
        limits=judge.limits,
        tops=judge.tops,
        seen=judge.seen,
    )
    report = {
        "stream": split.stream,
        "partition": split.partition,
        "ordinal": split.ordinal,
        "rows": table.num_rows,
        "rejected": len(verdicts.reasons),
        "malformed": batch.malformed.num_rows,
        "highs": judge.highs,
        "keys": [list(k) for k in judge.keys],
        "punctuations": [p.to_json() for p in fresh],
        "values": named,
        "over": judge.heard,
        "tops": {a: list(top) for a, top in judge.tops.items()},
        "seen": {a: list(s.top) for a, s in judge.seen.items()},
        "tallies": {a: t.to_json() for a, t in judge.tallies.items()},
    }
    if batch.malformed.num_rows:
        report["example"] = _example(batch.malformed)
    if not verdicts.reasons:
        return Checked(table, no_letters(), report, after)
    rejected = _rejected(batch, split, schema, verdicts)
    report["example"] = _example(rejected)
    return Checked(table.filter(pa.array(~verdicts.mask)), rejected, report, after)


def _example(letters: pa.Table) -> dict[str, Any]:
    first: dict[str, Any] = letters.slice(0, 1).select(["reason", "detail", "event", "file", "row"]).to_pylist()[0]
    return first


class Checker:
    """Checks the splits of one task in order, carrying what each established to the next of its partition."""

    def __init__(self, promises: Sequence[Promise], schema: Schema) -> None:
        self._promises = promises
        self._schema = schema
        self._carried: dict[str, Known] = {}
        self._last: Known | None = None

    def check(self, batch: Batch, split: Split, known: Known | None) -> Checked:
        """Check a split. `known` as planned; None means: what the splits before it in this task established."""
        before = known if known is not None else self._carried[split.partition]
        if self._last is not None:
            # What holds for the whole source comes from the split before, of whatever partition.
            before = replace(before, keys=self._last.keys, over=self._last.over, limits=self._last.limits)
        checked = check(batch, split, before, self._promises, self._schema)
        self._carried[split.partition] = self._last = checked.known
        return checked


def bounds_patterns(promise: Bounds, schema: Schema) -> tuple[Pattern, ...]:
    """The punctuations that bounds stand for.

    >>> s = Schema.parse("ts int, v int")
    >>> [str(p) for p in bounds_patterns(Bounds("v", 0, 9), s)]
    ['[*, < 0]', '[*, > 9]']
    """
    below = [] if promise.low is None else [Pattern.by_name(schema, {promise.attribute: less(promise.low)})]
    above = [] if promise.high is None else [Pattern.by_name(schema, {promise.attribute: greater(promise.high)})]
    return (*below, *above)


def frontier_pattern(schema: Schema, attribute: str, tick: int) -> Pattern:
    """No further event has `attribute` below a tick."""
    return Pattern.by_name(schema, {attribute: less(from_tick(tick, schema.type_of(attribute)))})


def _positions(mask: pa.BooleanArray | pa.ChunkedArray) -> Ticks:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _check_forbidden(table: pa.Table, promises: Sequence[Promise], schema: Schema, verdicts: _Verdicts) -> None:
    for promise in promises:
        if isinstance(promise, Bounds):
            for pattern in bounds_patterns(promise, schema):
                verdicts.reject(_positions(pattern.matches(table)), FORBIDDEN, str(pattern))
        elif isinstance(promise, WhenAll):
            codes = _codes(table, promise.key, promise.keys, schema)
            verdicts.reject(np.flatnonzero(codes < 0), FORBIDDEN, f"'{promise.key}' is not among the listed keys")
        elif isinstance(promise, Domain):
            codes = _codes(table, promise.attribute, promise.values, schema)
            why = f"'{promise.attribute}' is not among the listed values"
            verdicts.reject(np.flatnonzero(codes < 0), FORBIDDEN, why)


def _check_in_band(
    batch: Batch, known: Known, schema: Schema, verdicts: _Verdicts
) -> tuple[PunctuationSet, tuple[Ledger, ...], list[Pattern], list[dict[str, Any]]]:
    """Match each stretch between two punctuations with all punctuations before it, and events with named values."""
    given = known.punctuations or PunctuationSet(schema)
    fresh: list[Pattern] = []
    start = 0
    ends = [*(at for at, _ in batch.patterns), batch.table.num_rows]
    for k, end in enumerate(ends):
        stretch = batch.table.slice(start, end - start)
        if stretch.num_rows:
            for pattern in given:
                verdicts.reject(_positions(pattern.matches(stretch)) + start, LATE, str(pattern))
        start = end
        if k < len(batch.patterns):
            pattern = batch.patterns[k][1]
            fresh.append(pattern)
            given = given.add(pattern)
    ledgers = {v.attributes: v for v in known.values}
    points = {p.attributes: p for p in batch.values}
    told = []
    for names in {**ledgers, **points}:
        ledger = ledgers.get(names) or Ledger.empty(schema, names)
        broken, ledgers[names], new = check_values(batch.table, points.get(names), ledger)
        if len(broken):
            verdicts.reject(broken, LATE, _value_texts(schema, batch.table, names, broken))
        if new.num_rows:
            told.append({"of": list(names), "held": pack(new)})
    return given, tuple(ledgers.values()), fresh, told


class _Judge:
    """Judges the events of a split by the promises that depend on what came before."""

    def __init__(
        self, table: pa.Table, schema: Schema, partition: str, known: Known, counted: Ticks | None, verdicts: _Verdicts
    ) -> None:
        self.table, self.schema, self.partition, self.known = table, schema, partition, known
        self.counted, self.verdicts = counted, verdicts
        self.highs = dict(known.highs)
        self.keys = known.keys
        self.tops = {a: list(top) for a, top in known.tops.items()}
        self.seen = dict(known.seen)
        self.tallies: dict[str, Tally] = {}
        self.limits = {a: dict(limits) for a, limits in known.limits.items()}
        self.over = list(known.over)
        self.heard: list[str | None] = []
        self._lists = 0

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
        if isinstance(promise, Disorder):
            return promise.slack
        return self.known.slacks.get(promise.attribute, promise.at_most)

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
        codes = _codes(self.table, promise.key, promise.keys, self.schema)
        codes = codes if at is None else codes[at]
        before = np.array([LOWEST if h is None else h for h in self.keys[index]], np.int64)
        found, limits, after = below_running_max_by_key(ticks, codes, before, promise.slack)
        self._reject(promise.past, found, limits, at)
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
            self.verdicts.reject(found, LATE, _value_texts(self.schema, self.table, (key,), found))

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
        limit = None if high is None else max(high - self._slack(order), floor)
        return np.minimum(own, min(reached)) if reached else own, limit


def _codes(table: pa.Table, attribute: str, values: Sequence[Any], schema: Schema) -> Ticks:
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


def _value_texts(schema: Schema, table: pa.Table, names: Sequence[str], at: Ticks) -> list[str]:
    """For each event the punctuation that names its values."""
    rows = table.select(list(names)).take(pa.array(at)).to_pylist()
    texts = {tuple(r.values()): str(Pattern.by_name(schema, r)) for r in rows}
    return [texts[tuple(r.values())] for r in rows]


def _limit_texts(schema: Schema, attribute: str, limits: Ticks) -> list[str]:
    texts = {limit: str(frontier_pattern(schema, attribute, limit)) for limit in np.unique(limits).tolist()}
    return [texts[limit] for limit in limits.tolist()]


def _rejected(batch: Batch, split: Split, schema: Schema, verdicts: _Verdicts) -> pa.Table:
    at = np.flatnonzero(verdicts.mask)
    found = [verdicts.reasons[i] for i in at.tolist()]
    time = batch.table.column(schema.times[0]).take(pa.array(at, pa.int64())).combine_chunks() if schema.times else None
    return letters(
        split.stream,
        split.path,
        [reason for reason, _ in found],
        [detail for _, detail in found],
        event_texts(batch.events(at)),
        batch.row_numbers(at),
        time,
    )
