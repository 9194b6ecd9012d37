"""What grouping needs of events: the number of their window or pane, their keys, and what is aggregated of each.

Where that is nothing but columns as they are, no SQL is asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query, quote
from penstock.kernels.step import EVERYTHING, Rows
from penstock.kernels.ticks import Ticks, calendar, column_ticks
from penstock.operators.window import kernel as bucket
from penstock.plan.window import TimeWindow, Window
from penstock.plan.window.on_attribute import LABEL_TYPES
from penstock.sql.partial import Partial

NUMBER = "__number"
_COLUMN = re.compile(r'"((?:[^"]|"")+)"')
#: Ticks beyond this are left to SQL, which says so when a number is too large.
_FAR = 2**61


def listed(events: Rows, window: Window | None, keys: Sequence[str], partials: Sequence[Partial]) -> pa.Table:
    """The number of each event's window or pane, if there are windows, its keys, and a column for each partial."""
    if events.sql == EVERYTHING and (plain := _plainly(events.base, window, keys, partials)) is not None:
        return plain
    rows, found = events.sql, []
    if isinstance(window, TimeWindow):
        tick = bucket.tick_sql(window)
        if window.size < window.slide:
            rows = f"SELECT * FROM ({rows}) WHERE {bucket.member_sql(window, tick)}"
        number = bucket.number_sql if window.size <= window.slide else bucket.pane_sql
        found = [f"{number(window, tick)} AS {NUMBER}"]
    found += [quote(k) for k in keys]
    for p in partials:
        function, argument = p.plain or ("", "")
        if argument:
            sql = {"sum": argument, "count": f"({argument}) IS NOT NULL"}.get(function, argument)
            sql = f"CAST({sql} AS DOUBLE)" if p.is_float_sum else sql
            found.append(f"{sql} AS {quote(p.column)}")
    return events.under(f"SELECT {', '.join(found)} FROM ({rows})").table()


def labels_of(window: TimeWindow, numbers: Ticks) -> pa.Array:
    """The labels of windows by their numbers, at least one, in order.

    >>> labels_of(Window.tumbling(10, on="t"), np.array([-1, 7])).to_pylist()
    [-10, 70]
    """
    t = LABEL_TYPES[window.unit]
    ends = [window.origin + int(n) * window.slide for n in (numbers[0], numbers[-1])]
    low, high = calendar(t) if pa.types.is_temporal(t) else (-_FAR, _FAR)
    if not all(low <= end <= high for end in ends):
        # SQL knows what can still be said, and says so where nothing can.
        sql = f"SELECT {bucket.label_sql(window, NUMBER)} AS label FROM numbers"
        return query(sql, numbers=pa.table({NUMBER: numbers}))["label"].combine_chunks()
    ticks = numbers * np.int64(window.slide) + np.int64(window.origin)
    return pa.array(ticks).cast(pa.int32() if t.bit_width == 32 else pa.int64()).cast(t)


def _plainly(
    events: pa.Table, window: Window | None, keys: Sequence[str], partials: Sequence[Partial]
) -> pa.Table | None:
    """The same without SQL; None if it takes some."""
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for p in partials:
        function, argument = p.plain or ("", "")
        if not argument:
            continue
        if (named := _COLUMN.fullmatch(argument)) is None:
            return None
        column = events[named[1].replace('""', '"')]
        if function == "count":
            column = pc.is_valid(column)
        columns[p.column] = column.cast(pa.float64()) if p.is_float_sum else column
    found: dict[str, pa.Array | pa.ChunkedArray] = {}
    if isinstance(window, TimeWindow):
        if (numbers := _numbers(events, window)) is None:
            return None
        found[NUMBER] = pa.array(numbers)
    return pa.table({**found, **{k: events[k] for k in keys}, **columns})


def _numbers(events: pa.Table, window: TimeWindow) -> Ticks | None:
    """The number of each event's window, or of its pane where windows overlap; None if SQL has to find it."""
    assert window.on is not None
    column = events[window.on]
    if window.size < window.slide or window.granularity != 1 or column.null_count or not events.num_rows:
        return None
    if pa.types.is_unsigned_integer(column.type):
        return None
    since = column_ticks(column)
    if max(int(since.max()), -int(since.min()), abs(window.origin)) > _FAR:
        return None
    if window.origin:
        since = since - window.origin
    return since // np.int64(window.slide if window.size <= window.slide else window.pane)
