"""Random joins on top of two streams, for tests of random plans."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import UserError
from penstock.operators.join.operator import KINDS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping


def drawn(random: random.Random, below: Any, other: Any, **more: Any) -> Any:
    """A join of any kind on an attribute that both streams have; None where they have none."""
    key = key_of(random, below, other)
    if key is None:
        return None
    numbers = [n for n in common(below, other) if n != key and pa.types.is_integer(below.schema.type_of(n))]
    seen = [n for n in numbers if f"{n}_right" not in (*below.schema.names, *other.schema.names)]
    where = f"{random.choice(seen)} <= {seen[-1]}_right + 5" if seen and random.random() < 0.3 else None
    # Of some windows, nothing but an aggregate can be on top.
    with suppress(UserError):
        return below.join(other, key, random.choice(KINDS), where=where, impatient=random.random() < 0.2, **more)
    return None


def banded(random: random.Random, below: Any, other: Any) -> Mapping[str, Any]:
    """Some band of time, or none."""
    times = times_of(below, other)
    if times is None or random.random() < 0.3:
        return {}
    far = extent(below.schema.type_of(times[0]))
    bands: tuple[dict[str, Any], ...] = (
        {"within": far(5)},
        {"within": (far(15), far(5))},
        {"between": (far(0), far(10))},
        {"between": (None, far(10))},
        {"between": (far(5), None)},
    )
    return {**random.choice(bands), "times": times}


def key_of(random: random.Random, below: Any, other: Any) -> str | None:
    """An attribute that both streams have, but rather not a time."""
    names = common(below, other)
    better = [n for n in names if n not in below.schema.times]
    return random.choice(better or names) if names else None


def common(below: Any, other: Any) -> list[str]:
    """The attributes that both streams have, of one type."""
    if other is None:
        return []
    mine, theirs = below.schema, other.schema
    return [n for n in mine.names if n in theirs and mine.type_of(n) == theirs.type_of(n)]


def times_of(*streams: Any) -> tuple[str, ...] | None:
    """The time of each stream, if all have one of the same type."""
    if any(s is None or not s.schema.times for s in streams):
        return None
    times = tuple(s.schema.times[0] for s in streams)
    types = [s.schema.type_of(t) for s, t in zip(streams, times, strict=True)]
    return times if all(t == types[0] for t in types) else None


def extent(t: pa.DataType) -> Callable[[int], int | timedelta]:
    """How so many ticks, days or seconds are written for a time of a type."""
    return (lambda n: timedelta(seconds=n)) if pa.types.is_timestamp(t) else (lambda n: n)
