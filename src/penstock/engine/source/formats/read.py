"""The task's side of a source: a split in, a table of exactly the declared schema out. No Spark here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engine.source.formats.debezium import read_debezium
from penstock.engine.source.formats.fit import FINER, Fit, Mask, convert, fit, misfit_text
from penstock.engine.source.formats.generate import generate_rows, punctuations, split_rows
from penstock.engine.source.formats.lasting import as_written, with_sync
from penstock.engine.source.formats.rows import RowsRead
from penstock.engine.source.formats.text import read_csv, read_json
from penstock.engine.source.letter import MALFORMED, event_texts, join_letters, letters, no_letters, temporal_texts
from penstock.engine.source.place import first_line, locate
from penstock.engine.source.promises.in_band import PUNCTUATION, BandColumns, Punctuations, beside, marked, written
from penstock.engine.source.promises.points import ValuePoints
from penstock.engine.source.sameness import is_unchanged
from penstock.engine.source.split import Split
from penstock.errors import PenstockError, SchemaError, SourceError, UnreadableError, did_you_mean
from penstock.kernels.ticks import Ticks, column_ticks
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC, Schema
from penstock.pattern.types import type_text
from penstock.plan.count import Count
from penstock.plan.promise import (
    Adaptive,
    After,
    Ahead,
    Bounds,
    Disorder,
    Domain,
    Generated,
    InBand,
    Lifetime,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)

_NULL = " is null"
_UNHEARD = f"; there is a field '{PUNCTUATION}': if this is a punctuation, declare .punctuated() on the stream"


@dataclass(frozen=True)
class Batch:
    """What a split holds, in arrival order.

    `patterns` are punctuations: pairs of a position in the table and the pattern that stands before that row; `values`
    are those that only name values, taken together. `numbers` are the rows' numbers in their file, or None when they
    count up from `first`. `whole` gives rows with all their attributes when `table` holds only some.
    """

    table: pa.Table
    malformed: pa.Table = field(default_factory=no_letters)
    patterns: tuple[tuple[int, Pattern], ...] = ()
    first: int = 0
    numbers: Ticks | None = None
    whole: Callable[[Ticks], pa.Table] | None = None
    values: tuple[ValuePoints, ...] = ()
    #: How many events there are in an interval, said in front of the row at a position.
    counts: tuple[tuple[int, Count], ...] = ()

    @property
    def punctuations(self) -> tuple[tuple[int, Pattern], ...]:
        """All punctuations in order, each as a pattern; for looking at, since there may be many."""
        named = [
            (int(at), Pattern.by_name(points.schema, row))
            for points in self.values
            for at, row in zip(points.at, points.values.to_pylist())
        ]
        return tuple(sorted((*self.patterns, *named), key=lambda point: point[0]))

    def row_numbers(self, positions: Ticks) -> list[int]:
        """The numbers, in their file, of rows of the table."""
        found = positions + self.first if self.numbers is None else self.numbers[positions]
        return [int(n) for n in found]

    def events(self, positions: Ticks) -> pa.Table:
        """Rows of the table with all their attributes."""
        return self.table.take(pa.array(positions)) if self.whole is None else self.whole(positions)


def columns_to_read(
    schema: Schema, needed: Iterable[str] | None, promises: Sequence[Promise], guard: Sequence[Pattern] = ()
) -> tuple[str, ...]:
    """The attributes a task must read: those the query needs, the time attributes, and those promises or guards name.

    >>> s = Schema.parse("ts timestamp, id int, v double", time="ts")
    >>> columns_to_read(s, ["v"], [])
    ('ts', 'v')
    """
    if needed is None or any(isinstance(p, InBand) for p in promises):
        return schema.names  # a punctuation in band may restrict any attribute
    wanted = set(needed).union(schema.times, *(pattern.restricted for pattern in guard))
    for promise in promises:
        if isinstance(promise, Disorder | Ahead | Adaptive | WithinRows | Monitored | Bounds | Domain):
            wanted.add(promise.attribute)
        elif isinstance(promise, After):
            wanted |= {promise.key, promise.attribute}
        elif isinstance(promise, Once):
            wanted.add(promise.key)
        elif isinstance(promise, WhenAll):
            wanted |= {promise.key, promise.past}
        elif isinstance(promise, Lifetime):
            wanted |= set(promise.attributes)
    return tuple(n for n in schema.names if n in wanted)


def read(
    split: Split,
    schema: Schema,
    columns_needed: Iterable[str] | None = None,
    promises: Sequence[Promise] = (),
    options: Mapping[str, Any] | None = None,
) -> Batch:
    """Read a split. The table has the declared attributes, or those of them that are needed, in declared order."""
    # A record of change data is taken apart whole.
    names = columns_to_read(schema, None if "debezium" in (options or {}) else columns_needed, promises)
    in_band = BandColumns.of(promises, schema)
    if split.format == "generated":
        return _generated(split, schema, names, (options or {})["generated"])
    file, found = as_written(schema), [n for n in names if n != SYNC]
    rows = _steady(split, lambda: _read_rows(split, file, found, in_band, options or {}))
    for promise in promises:
        if isinstance(promise, Lifetime):
            rows = with_sync(rows, promise)
    return _sorted_out(split, schema, names, rows, in_band)


def _steady(split: Split, reading: Callable[[], RowsRead]) -> RowsRead:
    """What is read of a file that is, before and after, the one that was planned."""
    _unchanged(split, "changed since it was planned")
    try:
        rows = reading()
    except PenstockError:
        raise
    except (OSError, pa.ArrowException) as error:
        _unchanged(split, "changed while it was read")
        raise UnreadableError(split.stream, split.path, split.size, split.mtime_ns, first_line(error)) from None
    _unchanged(split, "changed while it was read")
    return rows


def _generated(split: Split, schema: Schema, names: Sequence[str], reader: Generated) -> Batch:
    index = split_rows(split, reader)

    def whole(positions: Ticks) -> pa.Table:
        return generate_rows(reader, schema, index[positions])

    patterns, values = punctuations(reader, schema, split) if reader.punctuate else ((), ())
    table = generate_rows(reader, schema, index, names)
    return Batch(table, patterns=patterns, first=split.start, numbers=index, whole=whole, values=values)


def _read_rows(
    split: Split, schema: Schema, names: Sequence[str], in_band: BandColumns | None, options: Mapping[str, Any]
) -> RowsRead:
    if "debezium" in options:
        return read_debezium(split, schema, keyed=options["debezium"] == "keyed")
    if split.format == "parquet":
        return read_parquet(split, schema, names, in_band)
    if split.format == "csv":
        return read_csv(split, schema, in_band, options)
    return read_json(split, schema, in_band)


def _unchanged(split: Split, what: str) -> None:
    if not is_unchanged(split):
        raise SourceError(
            f"stream '{split.stream}': file '{split.path}' {what}", hint="write new events to a new file, whole"
        )


def read_parquet(split: Split, schema: Schema, names: Sequence[str], in_band: BandColumns | None) -> RowsRead:
    """The rows of a Parquet split; a missing attribute or another kind of type is schema drift."""
    place = locate(split.path)
    # Not memory-mapped, though that is 10 % faster: a file cut short while it is mapped would kill the process.
    # Reading ahead pays for remote storage only.
    with (
        place.filesystem.open_input_file(place.path) as handle,
        pq.ParquetFile(handle, pre_buffer=not place.local, coerce_int96_timestamp_unit="us") as file,
    ):
        found = file.schema_arrow
        _check_drift(split, schema, found)
        band = in_band.column if in_band is not None and found.get_field_index(in_band.column) >= 0 else None
        companions = [a for a in in_band.beside if a.name in found.names] if in_band is not None and band else []
        columns = [*names, *([band] if band is not None else []), *(a.name for a in companions)]
        # One task per core: threads inside a task would only compete with the other tasks.
        table = plain_views(file.read_row_groups(list(split.row_groups), columns=columns, use_threads=False))
        first = sum(file.metadata.row_group(i).num_rows for i in range(split.row_groups[0]))
        finer = _finer(handle, file, split, table)
    if table.num_rows != split.stop - split.start:
        table = table.slice(split.start - first, split.stop - split.start)
        finer = {n: mask[split.start - first : split.stop - first] for n, mask in finer.items()}
    bad: Mask | None = None
    reasons: dict[int, str] = {}
    converted = {}
    for attribute in (*schema.select(names), *companions):
        column, misfits = convert(table.column(attribute.name), attribute.type, finer.get(attribute.name))
        converted[attribute.name] = column
        if misfits is not None:
            bad = misfits if bad is None else bad | misfits
            fine = finer.get(attribute.name)
            what = misfit_text(found.field(attribute.name).type, attribute.type)
            for i in np.flatnonzero(misfits).tolist():
                reasons.setdefault(i, f"'{attribute.name}' {FINER if fine is not None and fine[i] else what}")
    fitted = pa.table([converted[n] for n in names], schema=schema.select(names).arrow)
    aside = {a.name: converted[a.name] for a in companions}

    def raw(positions: Sequence[int]) -> list[str]:
        place = locate(split.path)
        with (
            place.filesystem.open_input_file(place.path) as handle,
            pq.ParquetFile(handle, coerce_int96_timestamp_unit="us") as file,
        ):
            everything = file.read_row_groups(list(split.row_groups), columns=list(schema.names), use_threads=False)
        at = pa.array([p + split.start - first for p in positions], pa.int64())
        return event_texts(temporal_texts(plain_views(everything).take(at)))

    marks = table.column(band) if band is not None else None
    unheard = in_band is None and PUNCTUATION in found.names and PUNCTUATION not in schema
    return RowsRead(fitted, split.start, marks, bad, reasons, raw, beside=aside, unheard=unheard)


def _finer(handle: Any, file: pq.ParquetFile, split: Split, table: pa.Table) -> dict[str, Mask]:
    """Which values of columns of the old type INT96 lie between two microseconds, by column.

    It has nanoseconds for all times, and Arrow has not: as nanoseconds those behind 2262 wrap around, as microseconds
    they are cut. Whole microseconds are the same number either way, wrapped around or not.
    """
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    found: dict[str, Mask] = {}
    for name in {leaf.path for leaf in leaves if leaf.physical_type == "INT96"} & set(table.column_names):
        with pq.ParquetFile(handle) as fine:
            exact = fine.read_row_groups(list(split.row_groups), columns=[name], use_threads=False).column(name)
        cut, whole = (column_ticks(pc.fill_null(c.cast(pa.int64()), 0)) for c in (table.column(name), exact))
        found[name] = cut * 1_000 != whole
    return found


def plain_views(table: pa.Table) -> pa.Table:
    """The table without view types: Arrow can neither take nor filter their rows."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    if not any(t in plain for t in table.schema.types):
        return table
    return table.cast(pa.schema([f.with_type(plain.get(f.type, f.type)) for f in table.schema]))


def _check_drift(split: Split, schema: Schema, found: pa.Schema) -> None:
    for attribute in schema:
        index = found.get_field_index(attribute.name)
        what = f"stream '{split.stream}': file '{split.path}'"
        if index < 0:
            raise SchemaError(
                f"{what} has no column '{attribute.name}' ({type_text(attribute.type)})",
                hint=did_you_mean(attribute.name, found.names),
            )
        if fit(found.field(index).type, attribute.type) is Fit.NEVER:
            raise SchemaError(
                f"{what}: column '{attribute.name}' is {found.field(index).type}, declared {type_text(attribute.type)}",
                hint="correct the declaration, or cast the column when the file is written",
            )


def _sorted_out(
    split: Split, schema: Schema, names: Sequence[str], rows: RowsRead, in_band: BandColumns | None = None
) -> Batch:
    """Separate events, punctuations and malformed rows. The usual case, events alone, costs nothing."""
    table, n = rows.table, rows.table.num_rows
    reasons = dict(rows.reasons)
    bad = rows.bad
    band = None
    if rows.punctuation is not None and in_band is not None:
        band = marked(rows.punctuation, in_band)
        if bad is not None:
            # Text says all there is to say; of companions each has to be readable.
            bad, band = (bad, band & ~bad) if in_band.companion else (bad & ~band, band)
        band = band if band.any() else None
    for name in schema.times:
        column = table.column(name)
        if column.null_count == 0:
            continue
        null = column.is_null().to_numpy()
        null = null & ~band if band is not None else null
        if null.any():
            for i in np.flatnonzero(null):
                reasons.setdefault(int(i), f"time attribute '{name}'{_NULL}")
            bad = null if bad is None else bad | null
    lost = letters(
        split.stream,
        split.path,
        MALFORMED,
        [detail for _, detail, _ in rows.outcast],
        [text for _, _, text in rows.outcast],
        [number for number, _, _ in rows.outcast],
    )
    numbers = rows.numbers
    if band is None and (bad is None or not bad.any()):
        return Batch(table, lost, (), rows.first, numbers, _whole(split, schema, names, rows, None))
    bad = np.zeros(n, bool) if bad is None else bad
    keep = ~bad if band is None else ~(bad | band)
    all_numbers = numbers if numbers is not None else np.arange(n, dtype=np.int64) + rows.first
    said = _punctuations(schema, rows, in_band, band, np.cumsum(keep) - keep)
    reasons.update(said.failed)
    bad[list(said.failed)] = True
    at = np.flatnonzero(bad)
    texts = (
        rows.raw([int(i) for i in at]) if rows.raw is not None else event_texts(table.take(pa.array(at, pa.int64())))
    )
    if in_band is None:
        for k, text in zip(at.tolist(), texts):
            if reasons[k].endswith(_NULL) and (rows.unheard or (split.format == "json" and _speaks(text, schema))):
                reasons[k] += _UNHEARD
    time = table.column(schema.times[0]).take(pa.array(at, pa.int64())).combine_chunks() if schema.times else None
    malformed = letters(
        split.stream, split.path, MALFORMED, [reasons[int(i)] for i in at], texts, all_numbers[at].tolist(), time
    )
    kept = np.flatnonzero(keep)
    return Batch(
        table.filter(pa.array(keep)),
        join_letters([malformed, lost]),
        said.patterns,
        rows.first,
        all_numbers[kept],
        _whole(split, schema, names, rows, kept),
        said.values,
        said.counts,
    )


def _speaks(text: str, schema: Schema) -> bool:
    """Whether a JSON record without a time looks like a punctuation."""
    try:
        record = json.loads(text)
    except ValueError:
        return False
    return isinstance(record, dict) and PUNCTUATION not in schema and record.get(PUNCTUATION) is not None


def _punctuations(
    schema: Schema, rows: RowsRead, in_band: BandColumns | None, band: Mask | None, before: Ticks
) -> Punctuations:
    if band is None or rows.punctuation is None or in_band is None:
        return Punctuations()
    at = np.flatnonzero(band)
    marks = rows.punctuation.take(pa.array(at))
    if in_band.companion:
        return beside(rows.table, rows.beside, marks, at, before, schema)
    return written(marks.to_pylist(), at, before, schema, in_band.counted)


def _whole(
    split: Split, schema: Schema, names: Sequence[str], rows: RowsRead, kept: Ticks | None
) -> Callable[[Ticks], pa.Table] | None:
    if len(names) == len(schema) or split.format != "parquet":
        return None
    file = as_written(schema)

    def fetch(positions: Ticks) -> pa.Table:
        full = _steady(split, lambda: read_parquet(split, file, file.names, None)).table
        return full.take(pa.array(positions if kept is None else kept[positions]))

    return fetch
