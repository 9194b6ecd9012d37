"""The task's side of promises: which events of a batch break one.

The verdict on an event depends only on the events before it in its source partition (for `WhenAll`, before it in the
source), never on how the stream was cut into splits or epochs:

- outside of promised bounds, or a key that is not listed: forbidden;
- matches an earlier punctuation given in band: late;
- older than the greatest tick of all earlier events (that are not rejected for the reasons above) by more than the
  slack: late.
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
from penstock.algebra.source import Bounds, Disorder, Promise, WhenAll
from penstock.engine.source.fit import Mask
from penstock.engine.source.known import KeyHighs, Known
from penstock.engine.source.letter import FORBIDDEN, LATE, event_texts, letters, no_letters
from penstock.engine.source.read import Batch
from penstock.engine.source.running import LOWEST, below_running_max, below_running_max_by_key
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
    for promise in promises:
        if isinstance(promise, Bounds):
            for pattern in bounds_patterns(promise, schema):
                verdicts.reject(_positions(pattern.matches(table)), FORBIDDEN, str(pattern))
        elif isinstance(promise, WhenAll):
            codes = _codes(table, promise, schema)
            verdicts.reject(np.flatnonzero(codes < 0), FORBIDDEN, f"'{promise.key}' is not among the listed keys")
    given = known.punctuations or PunctuationSet(schema)
    fresh: list[Pattern] = []
    if given.patterns or batch.punctuations:
        given, fresh = _check_in_band(batch, given, verdicts)
    # From here on promises are judged side by side: being late for one does not hide an event from another.
    counted = verdicts.left()
    highs = dict(known.highs)
    keys: KeyHighs = known.keys
    index = 0
    for promise in promises:
        if isinstance(promise, Disorder):
            _check_disorder(table, promise, schema, known, counted, highs, verdicts)
        elif isinstance(promise, WhenAll):
            keys = _check_keys(table, promise, schema, keys, index, counted, verdicts)
            index += 1
    after = replace(known, highs=highs, keys=keys, punctuations=given if given.patterns else known.punctuations)
    report = {
        "stream": split.stream,
        "partition": split.partition,
        "ordinal": split.ordinal,
        "rows": table.num_rows,
        "rejected": len(verdicts.reasons),
        "malformed": batch.malformed.num_rows,
        "highs": highs,
        "keys": [list(k) for k in keys],
        "punctuations": [p.to_json() for p in fresh],
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
        self._keys: KeyHighs | None = None

    def check(self, batch: Batch, split: Split, known: Known | None) -> Checked:
        """Check a split. `known` as planned; None means: what the splits before it in this task established."""
        before = known if known is not None else self._carried[split.partition]
        if self._keys is not None:
            before = replace(before, keys=self._keys)
        checked = check(batch, split, before, self._promises, self._schema)
        self._carried[split.partition] = checked.known
        self._keys = checked.known.keys
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


def _check_in_band(batch: Batch, given: PunctuationSet, verdicts: _Verdicts) -> tuple[PunctuationSet, list[Pattern]]:
    """Match each stretch between two punctuations with all punctuations before it."""
    fresh = []
    start = 0
    ends = [*(at for at, _ in batch.punctuations), batch.table.num_rows]
    for k, end in enumerate(ends):
        stretch = batch.table.slice(start, end - start)
        if stretch.num_rows:
            for pattern in given:
                verdicts.reject(_positions(pattern.matches(stretch)) + start, LATE, str(pattern))
        start = end
        if k < len(batch.punctuations):
            pattern = batch.punctuations[k][1]
            fresh.append(pattern)
            given = given.add(pattern)
    return given, fresh


def _check_disorder(
    table: pa.Table,
    promise: Disorder,
    schema: Schema,
    known: Known,
    counted: Ticks | None,
    highs: dict[str, int],
    verdicts: _Verdicts,
) -> None:
    column = table.column(promise.attribute)
    at = _countable(column, counted)
    ticks = column_ticks(column) if at is None else column_ticks(column.take(pa.array(at, pa.int64())))
    if not len(ticks):
        return
    prefix = known.highs.get(promise.attribute, LOWEST)
    floor = known.floors.get(promise.attribute, LOWEST)
    found, limits, high = below_running_max(ticks, prefix, promise.slack, floor)
    highs[promise.attribute] = high
    if len(found):
        details = _limit_texts(schema, promise.attribute, limits)
        verdicts.reject(found if at is None else at[found], LATE, details)


def _check_keys(
    table: pa.Table,
    promise: WhenAll,
    schema: Schema,
    keys: KeyHighs,
    index: int,
    counted: Ticks | None,
    verdicts: _Verdicts,
) -> KeyHighs:
    """One running maximum per listed key."""
    while len(keys) <= index:
        keys = (*keys, (None,) * len(promise.keys))
    column = table.column(promise.past)
    at = _countable(column, counted)
    codes = _codes(table, promise, schema)
    ticks = column_ticks(column if at is None else column.take(pa.array(at, pa.int64())))
    codes = codes if at is None else codes[at]
    if not len(ticks):
        return keys
    before = np.array([LOWEST if h is None else h for h in keys[index]], np.int64)
    found, limits, after = below_running_max_by_key(ticks, codes, before, promise.slack)
    if len(found):
        verdicts.reject(found if at is None else at[found], LATE, _limit_texts(schema, promise.past, limits))
    seen = np.zeros(len(before), bool)
    seen[codes] = True
    highs = tuple(int(a) if s or h is not None else None for a, s, h in zip(after, seen, keys[index]))
    return (*keys[:index], highs, *keys[index + 1 :])


def _codes(table: pa.Table, promise: WhenAll, schema: Schema) -> Ticks:
    """The position of each event's key in the list, −1 if it is not listed."""
    listed = pa.array(promise.keys, schema.type_of(promise.key))
    found = pc.index_in(table.column(promise.key), value_set=listed, skip_nulls=True)
    return column_ticks(pc.fill_null(found, -1))


def _countable(column: pa.ChunkedArray, counted: Ticks | None) -> Ticks | None:
    """Positions that take part in a running maximum; None means all. A null is neither late nor a maximum."""
    if column.null_count == 0:
        return counted
    valid = np.flatnonzero(column.is_valid().to_numpy())
    return valid if counted is None else np.intersect1d(valid, counted, assume_unique=True)


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
