"""Ledgers: the values that a source has promised away, kept so that events that break the promise are found.

A ledger holds values of one attribute, or combinations of values of several. Whole numbers are kept as runs, so a
million trips numbered in a row take as much room as one. Everything else is a list, oldest first, and what is too much
is forgotten from its front.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.source.formats.fit import Mask
from penstock.kernels.ticks import Ticks, column_ticks
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, between, one_of
from penstock.pattern.schema import Schema

# Runs of whole numbers as long as this are promised as a range, if there are not more ranges than that.
_LONG_RUN = 4
_MOST_RANGES = 64


def pack(table: pa.Table) -> str:
    """A table as text, for a place where only JSON can go."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def unpack(text: str) -> pa.Table:
    """The table that `pack` wrote.

    >>> unpack(pack(pa.table({"k": ["a"]}))).to_pylist()
    [{'k': 'a'}]
    """
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()


@dataclass(frozen=True, eq=False)
class Ledger:
    """Values promised away. `runs` has the columns low, high and age; `rows` has one column per attribute.

    >>> s = Schema.parse("trip int, zone string")
    >>> ledger, fresh = Ledger.empty(s, ["trip"]).add(pa.table({"trip": pa.array([4, 3, 9, 4], pa.int32())}))
    >>> len(ledger), fresh["trip"].to_pylist(), ledger.holds(pa.table({"trip": pa.array([3, 5], pa.int32())})).tolist()
    (2, [3, 4, 9], [True, False])
    """

    schema: Schema
    attributes: tuple[str, ...]
    rows: pa.Table
    runs: tuple[Ticks, Ticks, Ticks] | None = None
    clock: int = 0

    @classmethod
    def empty(cls, schema: Schema, attributes: Sequence[str]) -> Ledger:
        names = tuple(n for n in schema.names if n in attributes)
        chosen = schema.select(names)
        nothing = np.empty(0, np.int64)
        whole = len(names) == 1 and pa.types.is_integer(chosen.attributes[0].type)
        return cls(schema, names, chosen.arrow.empty_table(), (nothing, nothing, nothing) if whole else None)

    def __len__(self) -> int:
        """How much room it takes: runs, or rows."""
        return self.rows.num_rows if self.runs is None else len(self.runs[0])

    def holds(self, table: pa.Table) -> Mask:
        """Which rows have values that are promised away."""
        if not len(self):
            return np.zeros(table.num_rows, bool)
        if self.runs is None and len(self.attributes) == 1 and not pa.types.is_floating(self.rows.schema.types[0]):
            (name,) = self.attributes
            listed = self.rows.column(0).combine_chunks()
            among: Mask = pc.is_in(table.column(name), value_set=listed, skip_nulls=True).to_numpy()
            return among
        if self.runs is None:
            return places(table, self.rows, self.attributes) >= 0
        column = table.column(self.attributes[0])
        found = _covered(self.runs, column_ticks(pc.fill_null(column, 0) if column.null_count else column))
        return found & column.is_valid().to_numpy() if column.null_count else found

    def add(self, table: pa.Table, new: bool = False) -> tuple[Ledger, pa.Table]:
        """This ledger with more values, and those of them that are new, each once. Nulls are no values.

        `new` says that all of them are, and different.
        """
        chosen = table.select(self.attributes)
        if any(c.null_count for c in chosen.columns):
            chosen = chosen.drop_null()
        fresh = chosen.filter(pa.array(~self.holds(chosen))) if len(self) and not new else chosen
        if not fresh.num_rows:
            return self, fresh
        if self.runs is None:
            if not new:
                fresh = fresh.take(pa.array(firsts(codes_of(fresh, self.attributes)[0])))
            return Ledger(self.schema, self.attributes, pa.concat_tables([self.rows, fresh]).combine_chunks()), fresh
        values = np.unique(column_ticks(fresh.column(0)))
        made = pa.table([pa.array(values).cast(fresh.schema.field(0).type)], schema=fresh.schema)
        return self._with_runs(values), made

    def _with_runs(self, values: Ticks) -> Ledger:
        assert self.runs is not None
        lows = np.concatenate([self.runs[0], values])
        highs = np.concatenate([self.runs[1], values])
        ages = np.concatenate([self.runs[2], np.full(len(values), self.clock, np.int64)])
        order = np.argsort(lows)
        runs = _joined(lows[order], highs[order], ages[order])
        return Ledger(self.schema, self.attributes, self.rows, runs, self.clock + 1)

    def kept(self, limit: int) -> tuple[Ledger, int]:
        """This ledger cut to a limit, the oldest forgotten, and how many values that are."""
        over = len(self) - limit
        if over <= 0:
            return self, 0
        if self.runs is None:
            return Ledger(self.schema, self.attributes, self.rows.slice(over).combine_chunks()), over
        lows, highs, ages = self.runs
        keep = np.ones(len(lows), bool)
        keep[np.lexsort((lows, ages))[:over]] = False
        lost = int((highs[~keep] - lows[~keep] + 1).sum())
        return Ledger(self.schema, self.attributes, self.rows, (lows[keep], highs[keep], ages[keep]), self.clock), lost

    def common(self, other: Ledger) -> Ledger:
        """The values that both hold."""
        if self.runs is None or other.runs is None:
            return Ledger(self.schema, self.attributes, self.rows.filter(pa.array(other.holds(self.rows))))
        # Where both have begun and neither has ended: the runs between two neighbouring ends of any of them.
        edges = np.unique(np.concatenate([self.runs[0], self.runs[1] + 1, other.runs[0], other.runs[1] + 1]))
        lows, highs = edges[:-1], edges[1:] - 1
        both = _covered(self.runs, lows) & _covered(other.runs, lows)
        runs = _joined(lows[both], highs[both], np.zeros(both.sum(), np.int64))
        return Ledger(self.schema, self.attributes, self.rows, runs)

    def patterns(self) -> list[Pattern]:
        """Punctuations that match exactly what the ledger holds: as few as can be had easily."""
        if self.runs is None:
            return grouped(self.schema, self.rows)
        if not len(self):
            return []
        lows, highs, _ = self.runs
        (name,) = self.attributes
        long = highs - lows + 1 >= _LONG_RUN
        if long.sum() > _MOST_RANGES:
            # The longest as ranges, the others value by value.
            long = np.zeros(len(lows), bool)
            long[np.argsort(lows - highs, kind="stable")[:_MOST_RANGES]] = True
        ranges = [between(a, b, True, True) for a, b in zip(lows[long].tolist(), highs[long].tolist())]
        single = [v for a, b in zip(lows[~long].tolist(), highs[~long].tolist()) for v in range(a, b + 1)]
        found = [*ranges, *([one_of(single)] if single else [])]
        return [Pattern.by_name(self.schema, {name: r}) for r in found]

    @cached_property
    def _json(self) -> dict[str, Any]:
        table = self.rows
        if self.runs is not None:
            table = pa.table(dict(zip(("low", "high", "age"), self.runs)))
        return {"of": list(self.attributes), "clock": self.clock, "held": pack(table)}

    def to_json(self) -> dict[str, Any]:
        return self._json

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], schema: Schema) -> Ledger:
        made = cls.empty(schema, stored["of"])
        table = unpack(stored["held"])
        if made.runs is None:
            return cls(schema, made.attributes, table)
        low, high, age = (column_ticks(table.column(n)) for n in ("low", "high", "age"))
        return cls(schema, made.attributes, made.rows, (low, high, age), int(stored["clock"]))


def _joined(lows: Ticks, highs: Ticks, ages: Ticks) -> tuple[Ticks, Ticks, Ticks]:
    """Runs in order, those that touch as one, as young as its youngest part."""
    if not len(lows):
        return lows, highs, ages
    # Nothing overlaps, so a run begins wherever there is a gap before it.
    starts = np.flatnonzero(np.concatenate([[True], lows[1:] - 1 > highs[:-1]]))
    ends = np.append(starts[1:], len(lows)) - 1
    return lows[starts], highs[ends], np.maximum.reduceat(ages, starts)


def _covered(runs: tuple[Ticks, Ticks, Ticks], values: Ticks) -> Mask:
    if not len(runs[0]):
        return np.zeros(len(values), bool)
    at = np.searchsorted(runs[0], values, "right") - 1
    found: Mask = (at >= 0) & (values <= runs[1][at])
    return found


def codes_of(table: pa.Table, names: Sequence[str], *more: pa.Table) -> list[Ticks]:
    """For each table one number per row, equal where the values of the named attributes are; −1 where one is null."""
    tables = (table, *more)
    sizes = [t.num_rows for t in tables]
    combined = np.zeros(sum(sizes), np.int64)
    null = np.zeros(len(combined), bool)
    for name in names:
        columns = [_plain_zero(t.column(name)) for t in tables]
        chunked = pa.chunked_array([c for column in columns for c in column.chunks], columns[0].type)
        encoded = chunked.combine_chunks().dictionary_encode() if len(chunked) else None
        if encoded is None:
            continue
        indices = encoded.indices
        if indices.null_count:
            null |= indices.is_null().to_numpy(zero_copy_only=False)
            indices = pc.fill_null(indices, 0)
        codes = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if len(names) == 1:
            combined = codes
            continue
        # Numbered densely after every attribute, so that the product never outgrows its type.
        combined = np.unique(combined * max(1, len(encoded.dictionary)) + codes, return_inverse=True)[1]
    combined = np.where(null, -1, combined)
    ends = np.cumsum(sizes)
    return [combined[e - n : e] for e, n in zip(ends, sizes)]


def _plain_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # Encoding goes by bits, and −0.0 must be 0.0; NaN is no value that can be promised away.
    if not pa.types.is_floating(column.type):
        return column
    plain = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(plain), pa.scalar(None, column.type), plain)


def places(table: pa.Table, listed: pa.Table, names: Sequence[str]) -> Ticks:
    """For each row the position of the first equal one in a list, −1 if there is none. Nulls equal nothing.

    >>> t = pa.table({"a": [1, 2, None], "b": ["x", "y", "x"]})
    >>> places(t, pa.table({"a": [2, 1], "b": ["y", "y"]}), ["a", "b"]).tolist()
    [-1, 0, -1]
    """
    own, others = codes_of(table, names, listed)
    count = max(own.max(initial=-1), others.max(initial=-1)) + 1
    first = np.full(count + 1, -1, np.int64)
    # Written backwards, so that the first one stays.
    reverse = np.flatnonzero(others >= 0)[::-1]
    first[others[reverse]] = reverse
    first[count] = -1
    found: Ticks = first[np.where(own < 0, count, own)]
    return found


def firsts(codes: Ticks) -> Ticks:
    """The position of the first of each code, in order."""
    first = np.full(int(codes.max(initial=-1)) + 2, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # backwards, so that the first one stays; −1 is the last place
    return np.sort(first[first >= 0])


def grouped(schema: Schema, rows: pa.Table) -> list[Pattern]:
    """Patterns that match exactly the rows of values: rows that differ in one attribute share a list there.

    >>> s = Schema.parse("seg int, hour int, v int")
    >>> rows = pa.table({"seg": [1, 1, 2], "hour": [7, 8, 9]})
    >>> print(*grouped(s, rows))
    [1, {7, 8}, *] [2, 9, *]
    """
    if not rows.num_rows:
        return []
    names = rows.column_names
    best: dict[tuple[Any, ...], list[Any]] | None = None
    chosen = names[0]
    listed = list(zip(*(c.to_pylist() for c in rows.columns)))
    for i, name in enumerate(names):
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for row in listed:
            groups.setdefault(row[:i] + row[i + 1 :], []).append(row[i])
        if best is None or len(groups) < len(best):
            best, chosen = groups, name
    assert best is not None
    rest = [n for n in names if n != chosen]
    found = []
    for others, values in best.items():
        restrictions: dict[str, Restriction | object] = dict(zip(rest, others))
        found.append(Pattern.by_name(schema, {**restrictions, chosen: one_of(values)}))
    return found
