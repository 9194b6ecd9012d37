"""The task's side of promises: which events of a batch break one.

The verdict on an event depends only on the events before it in its source partition (for `WhenAll`, before it in the
source), never on how the stream was cut into splits or epochs:

- outside of promised bounds, or a value that is not listed: forbidden;
- matches an earlier punctuation given in band: late;
- newer than the greatest tick of all earlier events (that are not rejected so far) by more than declared: ahead;
- older than the greatest tick of all earlier events (that are not rejected for the reasons above) by more than the
  slack, or with too many greater ones before it: late;
- with a key that has come before though it comes once, or that is over since nothing was heard of it: late. Keys take
  note only of the events that nothing above rejects, and such an event is none of the earlier ones for anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.formats.read import Batch
from penstock.engine.source.letter import FORBIDDEN, LATE, MALFORMED, event_texts, join_letters, letters, no_letters
from penstock.engine.source.promises.counting import Counting
from penstock.engine.source.promises.judge import Judge, Verdicts, codes_in, value_texts
from penstock.engine.source.promises.known import Known
from penstock.engine.source.promises.ledger import Ledger, pack
from penstock.engine.source.promises.points import check_values
from penstock.engine.source.split import Split
from penstock.kernels.ticks import Ticks, column_ticks
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import greater, less
from penstock.pattern.schema import Schema
from penstock.plan.count import LOWEST
from penstock.plan.promise import (
    Adaptive,
    After,
    Ahead,
    Bounds,
    Counted,
    Disorder,
    Domain,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)

#: So many punctuations in the data are taken together.
TOGETHER = 64


@dataclass(frozen=True)
class Checked:
    """The events that may enter the stream, those that may not, what the driver is told, what is known now.

    `kept` says which events of the batch may enter; None means all.
    """

    events: pa.Table
    rejected: pa.Table
    report: dict[str, Any]
    known: Known
    kept: Mask | None = None


def check(batch: Batch, split: Split, known: Known, promises: Sequence[Promise], schema: Schema) -> Checked:
    """Separate the events that keep every promise from those that break one."""
    table = batch.table
    verdicts = Verdicts(table.num_rows)
    counting, contradicting = _check_counts(batch, split, known, promises, verdicts)
    _check_forbidden(table, promises, schema, verdicts)
    given, values, fresh, named = _check_in_band(batch, known, schema, verdicts)
    judge = Judge(table, schema, split.partition, known, verdicts)
    _judge(judge, promises)
    settled = not len(judge.ended)
    while not settled:
        # An event of a key that is over tells no time. But without it less time has passed in front of the next one,
        # whose key may then not be over. So it is judged again until nothing changes: an event depends on those before
        # it alone, so every round decides one more at least, and two or three rounds decide nearly all.
        again = Judge(table, schema, split.partition, known, verdicts, judge.ended)
        _judge(again, promises)
        settled, judge = np.array_equal(again.ended, judge.ended), again
    verdicts = judge.verdicts
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
        counting=counting,
    )
    report = _report(
        split,
        rows=table.num_rows,
        rejected=len(verdicts.reasons),
        malformed=batch.malformed.num_rows,
        highs=judge.highs,
        keys=[list(k) for k in judge.keys],
        punctuations=[p.to_json() for p in fresh],
        values=named,
        over=judge.heard,
        tops={a: list(top) for a, top in judge.tops.items()},
        seen={a: list(s.top) for a, s in judge.seen.items()},
        tallies={a: t.to_json() for a, t in judge.tallies.items()},
        counted=counting.to_json() if counting is not None else None,
    )
    if contradicting.num_rows:
        report["malformed"] += contradicting.num_rows
        report["example"] = _example(contradicting)
    if batch.malformed.num_rows:
        report["example"] = _example(batch.malformed)
    if not verdicts.reasons:
        return Checked(table, contradicting, report, after)
    rejected = join_letters([_rejected(batch, split, schema, verdicts), contradicting])
    report["example"] = _example(rejected)
    kept = ~verdicts.mask
    return Checked(table.filter(pa.array(kept)), rejected, report, after, kept)


def _judge(judge: Judge, promises: Sequence[Promise]) -> None:
    """Promises are judged side by side: being late for one does not hide an event from another. Keys come last."""
    for promise in promises:
        if isinstance(promise, Ahead):
            judge.ahead(promise)
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


def passed_over(split: Split, promises: Sequence[Promise]) -> dict[str, Any]:
    """What the driver is told of a split that was spared: what a check of its rows would have told of all of them."""
    highs = {p.attribute: split.high for p in promises if isinstance(p, Disorder) and split.high is not None}
    return _report(split, skipped=split.rows or 0, highs=highs)


def _report(split: Split, **told: Any) -> dict[str, Any]:
    """What the driver is told of a split: nothing, but for what is said."""
    counts = dict.fromkeys(("rows", "skipped", "rejected", "malformed"), 0)
    lists: dict[str, Any] = {name: [] for name in ("keys", "punctuations", "values", "over")}
    known: dict[str, Any] = {name: {} for name in ("highs", "tops", "seen", "tallies", "counted")}
    whose = {"stream": split.stream, "partition": split.partition, "ordinal": split.ordinal}
    return {**whose, **counts, **lists, **known, **told}


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
        checked = check(batch, split, self._before(split, known), self._promises, self._schema)
        self._carried[split.partition] = self._last = checked.known
        return checked

    def pass_over(self, split: Split, known: Known | None) -> None:
        """Take note of a split that is spared: later ones of its partition come after its greatest tick."""
        after = self._before(split, known)
        for attribute, high in passed_over(split, self._promises)["highs"].items():
            after = after.raised(attribute, high)
        self._carried[split.partition] = self._last = after

    def _before(self, split: Split, known: Known | None) -> Known:
        before = known if known is not None else self._carried[split.partition]
        if self._last is None:
            return before
        # What holds for the whole source comes from the split before, of whatever partition.
        last = self._last
        return replace(before, keys=last.keys, over=last.over, limits=last.limits, counting=last.counting)


def bounds_patterns(promise: Bounds, schema: Schema) -> tuple[Pattern, ...]:
    """The punctuations that bounds stand for.

    >>> s = Schema.parse("ts int, v int")
    >>> [str(p) for p in bounds_patterns(Bounds("v", 0, 9), s)]
    ['[*, < 0]', '[*, > 9]']
    """
    below = [] if promise.low is None else [Pattern.by_name(schema, {promise.attribute: less(promise.low)})]
    above = [] if promise.high is None else [Pattern.by_name(schema, {promise.attribute: greater(promise.high)})]
    return (*below, *above)


def _positions(mask: pa.BooleanArray | pa.ChunkedArray) -> Ticks:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _check_forbidden(table: pa.Table, promises: Sequence[Promise], schema: Schema, verdicts: Verdicts) -> None:
    for promise in promises:
        if isinstance(promise, Bounds):
            for pattern in bounds_patterns(promise, schema):
                verdicts.reject(_positions(pattern.matches(table)), FORBIDDEN, str(pattern))
        elif isinstance(promise, WhenAll):
            _check_listed(table, promise.key, promise.keys, schema, verdicts)
        elif isinstance(promise, Domain):
            _check_listed(table, promise.attribute, promise.values, schema, verdicts)


def _check_listed(table: pa.Table, name: str, listed: Sequence[Any], schema: Schema, verdicts: Verdicts) -> None:
    """Values that are not in a list of all there are: each is promised away from the start."""
    found = np.flatnonzero(codes_in(table, name, listed, schema) < 0)
    if len(found):
        texts = value_texts(schema, table, (name,), found)
        for k, value in enumerate(table.column(name).take(pa.array(found)).to_pylist()):
            if value is None or value != value:
                # No pattern names it, and `[*, *]` would tell the reader nothing.
                texts[k] = f"{'null' if value is None else 'NaN'} is not among the values of '{name}'"
        verdicts.reject(found, FORBIDDEN, texts)


def _check_in_band(
    batch: Batch, known: Known, schema: Schema, verdicts: Verdicts
) -> tuple[PunctuationSet, tuple[Ledger, ...], list[Pattern], list[dict[str, Any]]]:
    """Match each stretch between two punctuations with all punctuations before it, and events with named values."""
    given = known.punctuations or PunctuationSet(schema)
    fresh = [pattern for _, pattern in batch.patterns]
    start, rows = 0, batch.table.num_rows
    for first in range(0, len(fresh) + 1, TOGETHER):
        # Punctuations that come thick and fast are taken together: events among them are matched with those from
        # before all at once, and with each of these from its place on.
        some = batch.patterns[first : first + TOGETHER]
        end = batch.patterns[first + TOGETHER][0] if first + TOGETHER < len(fresh) else rows
        for at, pattern in (*((start, p) for p in given), *some):
            if at < end:
                late = pattern.matches(batch.table.slice(at, end - at))
                verdicts.reject(_positions(late) + at, LATE, str(pattern))
        start, given = end, given.add(*(p for _, p in some))
    ledgers = {v.attributes: v for v in known.values}
    points = {p.attributes: p for p in batch.values}
    told = []
    for names in {**ledgers, **points}:
        ledger = ledgers.get(names) or Ledger.empty(schema, names)
        broken, ledgers[names], new = check_values(batch.table, points.get(names), ledger)
        if len(broken):
            verdicts.reject(broken, LATE, value_texts(schema, batch.table, names, broken))
        if new.num_rows:
            told.append({"of": list(names), "held": pack(new)})
    return given, tuple(ledgers.values()), fresh, told


def _check_counts(
    batch: Batch, split: Split, known: Known, promises: Sequence[Promise], verdicts: Verdicts
) -> tuple[Counting | None, pa.Table]:
    """Count events, whatever else is wrong with them: counted were those that were sent."""
    promise = next((p for p in promises if isinstance(p, Counted)), None)
    if promise is None:
        return None, no_letters()
    before = known.counting or Counting(LOWEST if promise.since is None else promise.since)
    column = batch.table.column(promise.attribute)
    there = np.flatnonzero(column.is_valid().to_numpy())
    places = [(int(np.searchsorted(there, at)), count) for at, count in batch.counts]
    counting, extra, wrong = before.after(column_ticks(column.drop_null()), places)
    if extra:
        at = np.array(sorted(extra), np.int64)
        verdicts.reject(there[at], LATE, [f"more than counted: {extra[i]}" for i in at.tolist()])
    # A count is no event: its letter has the number of the row that it stands before.
    rows = [batch.counts[i][0] + split.start if split.format == "parquet" else batch.counts[i][0] for i, _ in wrong]
    details = [f"this count contradicts another: {why}" for _, why in wrong]
    said = [batch.counts[i][1].text for i, _ in wrong]
    return counting, letters(split.stream, split.path, MALFORMED, details, said, rows) if wrong else no_letters()


def _rejected(batch: Batch, split: Split, schema: Schema, verdicts: Verdicts) -> pa.Table:
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
