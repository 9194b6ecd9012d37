"""Measuring what the planner of joins needs to know: rates and selectivities, from the first events of each input.

Each input is read once, up to a number of rows, through its stateless operators, in this process and without Spark.
Nothing is remembered of it: a query that is started afterwards reads from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from penstock.builder.join_inputs import Key
from penstock.builder.join_statistics import JoinStatistics
from penstock.builder.multiway import UndecidedJoin
from penstock.builder.stream import StreamBuilder
from penstock.engine.source import open_reader, read, reader_options
from penstock.engine.tasks.pipeline import Pipeline
from penstock.errors import UserError
from penstock.kernels.ticks import Ticks, column_ticks
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.policy import Extent
from penstock.plan.promise import Inbox
from penstock.plan.upwards import passes_at_once

#: Key and time of an event share one number when they are counted: so many bits for both.
_BITS = 61
_CALL = "a list of the streams to be joined: ps.measure_joins([a, b], on='key')"


def measure_joins(
    streams: Sequence[StreamBuilder],
    on: str | Sequence[Key],
    *,
    within: Extent | None = None,
    windows: Sequence[Extent | None] | None = None,
    times: Sequence[str | None] | None = None,
    sample_rows: int = 100_000,
) -> JoinStatistics:
    """Statistics for `join(…, statistics=…)`, from the first `sample_rows` rows of each source.

    Rates are events per unit of event time. The selectivity of two inputs is the share of matches among those pairs
    of events that are within each other's windows: keys that come and go with time match more often there than over
    the whole sample. Inputs without a time are compared by the number of their rows.

    >>> from penstock.engine.stream import generate
    >>> orders, paid = (generate(n, rate=r, rows=900, columns={"k": ("key", 9)}) for n, r in (("o", 10), ("p", 20)))
    >>> found = measure_joins([orders, paid], "k", within="10 s")
    >>> [round(r) for r in found.rates], round(found.shares()[0, 1], 2)
    ([10, 20], 0.11)
    """
    if not isinstance(streams, list | tuple):
        raise UserError(f"measure_joins: {type(streams).__name__} is not a list of streams", hint=_CALL)
    for stream in streams:
        if not isinstance(stream, StreamBuilder):
            raise UserError(f"measure_joins: {type(stream).__name__} is not a stream", hint=_CALL)
    if len(streams) < 2:
        raise UserError(f"measure_joins() needs two streams or more, not {len(streams)}", hint=_CALL)
    if sample_rows < 1:
        raise UserError(
            f"measure_joins(sample_rows={sample_rows}) is not possible", hint="a whole number of at least 1"
        )
    joining = UndecidedJoin.of(tuple(s.operator for s in streams), on, within, windows, times)
    names = _time_names(joining)
    # Without a time an event has no place in a window, and does not tell how fast events come.
    samples = [
        t if n is None else t.filter(t[n].is_valid()) for t, n in zip((sample(s, sample_rows) for s in streams), names)
    ]
    moments = [None if n is None else column_ticks(t[n]) for t, n in zip(samples, names)]
    rates = [float(s.num_rows) for s in samples]
    if all(m is not None for m in moments):
        unit = joining.ticks_per_unit
        rates = [_rate(m, unit) for m in moments if m is not None]
    codes = _codes(samples, joining.keys)
    shares: dict[tuple[int, ...], float] = {}
    for i, j in combinations(range(len(streams)), 2):
        # From an event of i, its partners in j: up to j's window before it, up to its own window after it.
        reach = joining.windows[j], joining.windows[i]
        shares[i, j] = _share((codes[i], moments[i]), (codes[j], moments[j]), reach)
    return JoinStatistics(rates, selectivities=shares)


def sample(stream: StreamBuilder, rows: int) -> pa.Table:
    """The first events of a stream: up to `rows` rows of each of its sources, through its operators."""
    sink = Sink((stream.operator,), stream.schema)
    plan = Plan.of(sink)
    for node in plan.nodes:
        # Tables are read when a run begins, and here none does.
        absent = isinstance(node.operator, TableJoin) or _from_spark(node.operator)
        if absent or not passes_at_once(node.operator):
            raise UserError(
                f"measure_joins: {node.id} can only be measured by running it",
                hint="give statistics=ps.JoinStatistics(rates=[…], keys=[…]) instead",
            )
    pipeline = Pipeline(plan)
    found: list[pa.Table] = []
    for node in plan.sources:
        source = node.operator
        assert isinstance(source, Source)
        for split in open_reader(source).plan(rows, None, 1, settled=True):
            batch = read(split, source.schema, promises=source.promises, options=reader_options(source))
            for tables in pipeline.flow(node.id, batch.table.slice(0, rows)).values():
                found += tables
    return pa.concat_tables(found) if found else stream.schema.arrow.empty_table()


def _from_spark(operator: Operator) -> bool:
    return isinstance(operator, Source) and isinstance(operator.reader, Inbox)


def _time_names(joining: UndecidedJoin) -> list[str | None]:
    """The times to measure rates by: those of the windows, else the first of each input."""
    return [t if t is not None else next(iter(o.schema.times), None) for t, o in zip(joining.times, joining.inputs)]


def _rate(moments: Ticks, unit: int) -> float:
    """Events per unit of time: the first of them began what the others are counted in."""
    if len(moments) < 2:
        return float(len(moments))
    span = int(moments.max()) - int(moments.min())
    return (len(moments) - 1) * unit / span if span else float(len(moments))


def _codes(samples: Sequence[pa.Table], keys: Sequence[Sequence[str]]) -> list[Ticks]:
    """One number for each key, the same in all inputs; −1 for a key with a null, which nothing equals."""
    rows = [s.num_rows for s in samples]
    code = np.zeros(sum(rows), np.int64)
    lost = np.zeros(sum(rows), bool)
    for names in zip(*keys):
        columns = [s.column(n) for s, n in zip(samples, names)]
        if pa.types.is_integer(columns[0].type):
            columns = [c.cast(pa.int64()) for c in columns]
        whole = pa.chunked_array([chunk for c in columns for chunk in c.chunks], columns[0].type)
        encoded = whole.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        indices = encoded.indices
        lost |= np.asarray(indices.is_null())
        number = np.asarray(indices.fill_null(0)).astype(np.int64)
        _, code = np.unique(code * (len(encoded.dictionary) + 1) + number, return_inverse=True)
    code = np.where(lost, -1, code)
    return [np.asarray(part) for part in np.split(code, np.cumsum(rows)[:-1])]


Measured = tuple[Ticks, Ticks | None]


def _share(left: Measured, right: Measured, reach: tuple[int | None, int | None]) -> float:
    """The share of matches among the pairs of events within reach of each other.

    One match in all pairs is the least that a sample can tell from none.
    """
    pairs = matches = 0
    if left[1] is not None and right[1] is not None and reach != (None, None):
        pairs = _within((np.zeros_like(left[0]), left[1]), (np.zeros_like(right[0]), right[1]), reach)
        matches = _within((left[0], left[1]), (right[0], right[1]), reach)
    if pairs == 0:  # No windows, or samples from different times: all pairs.
        pairs = len(left[0]) * len(right[0])
        size = 1 + max(int(left[0].max(initial=0)), int(right[0].max(initial=0)))
        counts = [np.bincount(c[c >= 0], minlength=size) for c in (left[0], right[0])]
        matches = int(counts[0] @ counts[1])
    return max(matches, 1) / pairs if pairs else 1.0


def _within(left: tuple[Ticks, Ticks], right: tuple[Ticks, Ticks], reach: tuple[int | None, int | None]) -> int:
    """How many pairs have the same code and right − left in reach. A pair on the edge may be missed or counted."""
    if not len(left[1]) or not len(right[1]):
        return 0
    first = min(int(left[1].min()), int(right[1].min()))
    last = max(int(left[1].max()), int(right[1].max()))
    keys = 1 + max(int(left[0].max()), int(right[0].max()))
    grain = max(1, 3 * (last - first + 1) * keys >> _BITS)
    span = (last - first) // grain + 1
    low, high = (span if w is None else min(span, w // grain) for w in reach)
    places = []
    for codes, moments in (left, right):
        keyed = codes >= 0
        # Three spans a code, and times in the middle one: what is within reach never runs into another code.
        places.append(codes[keyed] * (3 * span) + span + (moments[keyed] - first) // grain)
    own, others = places[0], np.sort(places[1])
    return int(
        (np.searchsorted(others, own + high, side="right") - np.searchsorted(others, own - low, side="left")).sum()
    )
