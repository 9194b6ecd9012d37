"""The generator: rows that depend on nothing but the seed and their position.

A column is declared as `(name, kind, arguments)`:

| kind       | arguments            | value of row i                                                                 |
|------------|----------------------|--------------------------------------------------------------------------------|
| `time`     | none                 | start + i / rate, less a seeded delay of up to `disorder` ticks                |
| `serial`   | none                 | i                                                                              |
| `key`      | count, exponent = 0  | an integer in [0, count): evenly spread, or Zipf with that exponent            |
| `uniform`  | low = 0, high = 1    | a number in [low, high)                                                        |
| `normal`   | mean = 0, spread = 1 | a normally distributed number                                                  |
| `category` | one or more values   | one of the values, evenly spread                                               |
| `chance`   | probability = 0.5    | true with that probability                                                     |
| `trip`     | open = 10, length = 5| a key that comes and goes: `open` at a time take turns, `length` rows each     |

Row i goes to source partition i mod `partitions`. Without a rate, rows are a millisecond apart.

With `punctuate`, rows are punctuated in band: a trip behind its last row, a time or serial every so many rows; in every
partition, since each may have rows of the key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.source.promises.points import ValuePoints
from penstock.engine.source.split import Split
from penstock.errors import UserError, did_you_mean
from penstock.kernels.ticks import Ticks, from_tick
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import at_most, less
from penstock.pattern.schema import Schema
from penstock.plan.promise import Bounds, Disorder, Domain, Generated
from penstock.statistics.figures import Backlog

KINDS = ("time", "serial", "key", "uniform", "normal", "category", "chance", "trip")
PUNCTUATED = ("time", "serial", "trip")
_SECOND = 1_000_000
_WITHOUT_LIMIT = 100_000
# A range whose greatest tick takes longer to find than this many rows leaves it to the task.
_LOOK_BACK = 1_000_000

_Hashes = np.ndarray[Any, np.dtype[np.uint64]]


def _hashes(seed: int, salt: int, index: Ticks) -> _Hashes:
    """Splitmix64 of (seed, salt, position)."""
    mask = (1 << 64) - 1
    base = np.uint64((seed * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & mask)
    x: _Hashes = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + base
    for _ in range(2):  # twice: neighbouring seeds and positions must not look alike
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x


def _unit(seed: int, salt: int, index: Ticks) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers in [0, 1)."""
    return (_hashes(seed, salt, index) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def times(reader: Generated, index: Ticks) -> Ticks:
    """The time of each row, in ticks."""
    rate = reader.rate or 1_000.0
    # In whole and rest, so that positions beyond 2^53 / 10^6 keep their microsecond.
    second = (index // rate).astype(np.int64)
    exact = reader.start + second * _SECOND + ((index - second * rate) * _SECOND / rate).astype(np.int64)
    if not reader.disorder:
        return exact
    delay = (_hashes(reader.seed, 0, index) % np.uint64(reader.disorder + 1)).astype(np.int64)
    moved: Ticks = exact - delay
    return moved


def _pair(arguments: Sequence[Any]) -> tuple[float, float]:
    return float(arguments[0]) if arguments else 0.0, float(arguments[1]) if len(arguments) > 1 else 1.0


def _trip(arguments: Sequence[Any]) -> tuple[int, int]:
    """How many trips are under way at a time, and how many rows each has."""
    open_, length = (int(arguments[i]) if len(arguments) > i else default for i, default in enumerate((10, 5)))
    if open_ < 1 or length < 1:
        raise UserError(f"generator: a trip with arguments {tuple(arguments)}", hint="two numbers of at least 1")
    return open_, length


def _column(reader: Generated, kind: str, arguments: Sequence[Any], salt: int, index: Ticks) -> Any:
    seed = reader.seed
    if kind == "time":
        return times(reader, index)
    if kind == "serial":
        return index
    if kind == "key":
        count, exponent = int(arguments[0]), float(arguments[1]) if len(arguments) > 1 else 0.0
        if exponent == 0.0:
            return (_hashes(seed, salt, index) % np.uint64(count)).astype(np.int64)
        weights = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
        return np.minimum(np.searchsorted(weights / weights[-1], _unit(seed, salt, index), "right"), count - 1)
    if kind == "uniform":
        low, high = _pair(arguments)
        return low + _unit(seed, salt, index) * (high - low)
    if kind == "normal":
        mean, spread = _pair(arguments)
        radius = np.sqrt(-2.0 * np.log1p(-_unit(seed, salt, index)))
        return mean + spread * radius * np.cos(2 * np.pi * _unit(seed, salt + 1, index))
    if kind == "category":
        codes = (_hashes(seed, salt, index) % np.uint64(len(arguments))).astype(np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(arguments)))
    if kind == "trip":
        open_, length = _trip(arguments)
        return index // (open_ * length) * open_ + index % open_
    if kind == "chance":
        return _unit(seed, salt, index) < float(arguments[0] if arguments else 0.5)
    raise UserError(f"generator: unknown kind of column '{kind}'", hint=did_you_mean(kind, KINDS))


def generate_rows(reader: Generated, schema: Schema, index: Ticks, names: Sequence[str] | None = None) -> pa.Table:
    """The rows at the given positions, in the declared types.

    >>> g = Generated(10, 2.0, 7, 0, columns=(("ts", "time", ()), ("id", "key", (3,))))
    >>> generate_rows(g, Schema.parse("ts bigint, id int"), np.arange(3)).column("ts").to_pylist()
    [0, 500000, 1000000]
    """
    declared = {name: (place, kind, arguments) for place, (name, kind, arguments) in enumerate(reader.columns)}
    arrays = []
    chosen = schema if names is None else schema.select(names)
    for attribute in chosen:
        if attribute.name not in declared:
            raise UserError(
                f"generator: nothing makes attribute '{attribute.name}'", hint=did_you_mean(attribute.name, declared)
            )
        place, kind, arguments = declared[attribute.name]
        # Two salts per column: a normal number takes two hashes.
        values = _column(reader, kind, arguments, 2 * place + 2, index)
        array = values if isinstance(values, pa.Array) else pa.array(values)
        try:
            if kind == "time" and pa.types.is_date(attribute.type):
                array = pa.array(values // (86_400 * _SECOND)).cast(pa.int32())
            arrays.append(array.cast(attribute.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise UserError(
                f"generator: a column of kind '{kind}' cannot be the attribute '{attribute}'",
                hint="declare another type, or another kind",
            ) from None
    return pa.table(arrays, schema=chosen.arrow)


def split_rows(split: Split, reader: Generated) -> Ticks:
    """The positions of a split's rows: every `partitions`-th one."""
    return np.arange(split.start, split.stop, dtype=np.int64) * reader.partitions + int(split.partition)


def punctuations(
    reader: Generated, schema: Schema, split: Split
) -> tuple[tuple[tuple[int, Pattern], ...], tuple[ValuePoints, ...]]:
    """The punctuations of a split: those with a pattern each, and those that only name values.

    >>> g = Generated(6, 1.0, 7, 0, columns=(("trip", "trip", (2, 2)),), punctuate=(("trip", 0),))
    >>> _, (named,) = punctuations(g, Schema.parse("trip int"), Split("g", "0", 0, "", "generated", 0, 6, 6, 1, 0, 0))
    >>> named.at.tolist(), named.values["trip"].to_pylist()
    ([3, 4], [0, 1])
    """
    count, p = reader.partitions, int(split.partition)
    index = split_rows(split, reader)
    # What is over with a row of any partition is said in this one before its next row.
    low, high = split.start * count + p if split.start else 0, split.stop * count + p
    if reader.rows is not None:
        high = min(high, reader.rows)
    rows = np.arange(low, max(low, high), dtype=np.int64)
    declared = {name: (kind, arguments) for name, kind, arguments in reader.columns}
    patterns: list[tuple[int, Pattern]] = []
    values: list[ValuePoints] = []
    for name, every in reader.punctuate:
        kind, arguments = declared[name]
        if kind == "trip":
            open_, length = _trip(arguments)
            last = rows[rows // open_ % length == length - 1]
            made = pa.array(_column(reader, kind, arguments, 0, last)).cast(schema.type_of(name))
            at = np.searchsorted(index, last, "right")
            values.append(ValuePoints(schema, at, pa.table([made], names=[name])))
            continue
        last = rows[(rows + 1) % max(1, every) == 0]
        at = np.searchsorted(index, last, "right")
        if kind == "serial":
            limits = [at_most(v) for v in last.tolist()]
        else:
            ticks = times(replace(reader, disorder=0), last + 1) - reader.disorder
            if pa.types.is_date(schema.type_of(name)):
                ticks //= 86_400 * _SECOND
            limits = [less(from_tick(t, schema.type_of(name))) for t in ticks.tolist()]
        patterns += [(i, Pattern.by_name(schema, {name: limit})) for i, limit in zip(at.tolist(), limits)]
    return tuple(sorted(patterns, key=lambda point: point[0])), tuple(v for v in values if len(v.at))


class GeneratedReader:
    """The cursor of a generator: one number, the rows given so far in each partition."""

    def __init__(self, source: Source, reader: Generated) -> None:
        self.source = source
        self.reader = reader
        self.waiting: tuple[tuple[str, str], ...] = ()
        self.unreadable: None = None
        self.concerned: tuple[Pattern, ...] | None = None
        self._next = [0] * reader.partitions
        self._ordinals = [0] * reader.partitions
        self._began: float | None = None
        self._given_before = 0
        generate_rows(reader, source.schema, np.arange(0))  # a wrong declaration is an error now, not in a task
        kinds = {name: kind for name, kind, _ in reader.columns}
        for name, _ in reader.punctuate:
            if kinds.get(name) not in PUNCTUATED:
                raise UserError(
                    f"generator: '{name}' cannot be punctuated", hint=f"a column of kind {', '.join(PUNCTUATED)}"
                )

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(str(p) for p in range(self.reader.partitions))

    @property
    def exhausted(self) -> bool:
        return self.reader.rows is not None and sum(self._next) >= self.reader.rows

    def _allowed(self, max_rows: int | None) -> int:
        """How many rows may be given in all after this plan."""
        given = sum(self._next)
        if self.reader.rows is not None:
            left = self.reader.rows - given
            return given + (left if max_rows is None else min(left, max(1, max_rows)))
        limit = max_rows if max_rows is not None else _WITHOUT_LIMIT
        if self.reader.rate is not None:
            # Without an end, rows come as time passes.
            now = time.monotonic()
            if self._began is None:
                self._began, self._given_before = now, given
            due = self._given_before + int((now - self._began) * self.reader.rate)
            limit = min(limit, max(0, due - given))
        return given + limit

    def backlog(self) -> Backlog:
        """Rows that are due and were not given: without an end, as time passes."""
        given, rate = sum(self._next), self.reader.rate
        if self.reader.rows is not None:
            waiting = max(0, self.reader.rows - given)
        elif rate is None or self._began is None:
            waiting = 0
        else:
            due = self._given_before + int((time.monotonic() - self._began) * rate)
            waiting = max(0, due - given)
        late = waiting / rate if rate and self.reader.rows is None else 0.0
        return Backlog(waiting, waiting * 8 * len(self.source.schema), late)

    def plan(
        self,
        max_rows: int | None,
        max_bytes: int | None,
        parallelism: int,
        settled: bool = False,
        guard: tuple[Pattern, ...] = (),
        prefer: tuple[Pattern, ...] = (),
        steady: bool = False,
    ) -> tuple[Split, ...]:
        width = 8 * len(self.source.schema)
        if max_bytes is not None:
            by_size = max(1, max_bytes // width)
            max_rows = by_size if max_rows is None else min(max_rows, by_size)
        total = self._allowed(max_rows)
        count = self.reader.partitions
        pieces = max(1, parallelism // count)
        splits: list[Split] = []
        for p in range(count):
            start, stop = self._next[p], max(self._next[p], (total - p + count - 1) // count)
            step = max(1, -(-(stop - start) // pieces))
            for n, low in enumerate(range(start, stop, step)):
                splits.append(self._split(p, self._ordinals[p] + n, low, min(stop, low + step), width))
        self.advance(splits)
        return tuple(splits)

    def _split(self, partition: int, ordinal: int, start: int, stop: int, width: int) -> Split:
        rows = stop - start
        split = Split(self.source.name, str(partition), ordinal, "", "generated", start, stop, rows, rows * width, 0, 0)
        return replace(split, high=self._high(split))

    def _high(self, split: Split) -> int | None:
        """The greatest tick of a range: only its last rows can have it, the others are older even undelayed."""
        promised = [p.attribute for p in self.source.promises if isinstance(p, Disorder)]
        time_columns = [name for name, kind, _ in self.reader.columns if kind == "time"]
        if not promised or promised[0] not in time_columns:
            return None
        if any(isinstance(p, Bounds | Domain) for p in self.source.promises):
            return None  # an event that is forbidden raises no maximum
        if not pa.types.is_timestamp(self.source.schema.type_of(promised[0])):
            return None
        spacing = _SECOND * self.reader.partitions / (self.reader.rate or 1_000.0)
        back = int(self.reader.disorder / spacing) + 2
        if back > _LOOK_BACK:
            return None
        start = max(split.start, split.stop - back)
        return int(times(self.reader, split_rows(replace(split, start=start), self.reader)).max())

    def fix(self) -> None:
        """Everything there is: with a number of rows that is known, without one there is no such thing."""
        if self.reader.rows is None:
            raise UserError(
                f"stream '{self.source.name}' never ends, but the run is to end with its input",
                hint="generate(rows=…), or start(every='500 ms')",
            )

    def advance(self, splits: Sequence[Split]) -> None:
        for split in splits:
            p = int(split.partition)
            self._next[p], self._ordinals[p] = split.stop, split.ordinal + 1

    def position(self) -> dict[str, Any]:
        return {"next": list(self._next), "ordinals": list(self._ordinals)}

    def snapshot(self) -> dict[str, Any]:
        return self.position()

    def restore(self, snapshot: Mapping[str, Any] | None, deltas: Sequence[Mapping[str, Any]]) -> None:
        for part in [*([snapshot] if snapshot is not None else []), *deltas][-1:]:
            self._next, self._ordinals = list(part["next"]), list(part["ordinals"])
