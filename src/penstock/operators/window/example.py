"""Random windows, for tests of random plans."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from penstock.pattern.schema import Schema

#: Sizes, and slides that give windows side by side, overlapping ones and gaps.
_SPANS = ((10, None), (20, None), (5, None), (20, 10), (10, 5), (5, 10))


def some_windows(random: Random, below: Any) -> Any:
    """A stream in windows of time, or None where nothing in it can be one."""
    on = some_time(random, below.schema)
    if on is None or below.schema.resolve("window_start") is not None:
        return None
    size, slide = random.choice(_SPANS)
    length = {} if slide is None else {"slide": extent(slide, on, below.schema)}
    return below.window(extent(size, on, below.schema), on=on, **length)


def some_time(random: Random, schema: Schema) -> str | None:
    """An attribute to measure windows on: mostly one that is declared a time."""
    types = {a.name: a.type for a in schema}
    known = [n for n, t in types.items() if pa.types.is_timestamp(t) or pa.types.is_date(t) or pa.types.is_integer(t)]
    likely = [n for n in schema.times if n in known] * 4
    return random.choice([*likely, *known]) if known else None


def extent(ticks: int, on: str, schema: Schema) -> int | str:
    """A length as one writes it for an attribute: timestamps are measured in seconds, dates in days."""
    return f"{ticks} s" if pa.types.is_timestamp(schema.type_of(on)) else ticks
