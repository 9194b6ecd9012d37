"""Random joins of several streams, for tests of random plans."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.errors import UserError
from penstock.operators.join.example import key_of, times_of
from penstock.operators.join.operator import Taken
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.schema import Attribute, Schema

if TYPE_CHECKING:
    import random


def drawn(random: random.Random, below: Any, other: Any) -> Any:
    """Both streams, and often a part of one of them, joined on an attribute that they have in common."""
    key = key_of(random, below, other)
    if key is None:
        return None
    streams = [below, other]
    if random.random() < 0.7:
        streams.append(other.where(f"{key} IS NOT NULL"))
    times = times_of(*streams)
    timed = times is not None and random.random() < 0.7
    # Of some windows, nothing but an aggregate can be on top.
    with suppress(UserError):
        return below._with(
            MultiJoin(
                tuple(s.operator for s in streams),
                _schema(streams, columns := _columns(streams, key)),
                keys=((key,),) * len(streams),
                columns=columns,
                times=times if times is not None and timed else (None,) * len(streams),
                windows=tuple(random.choice((5, 15, 10_000_000)) if timed else None for _ in streams),
            )
        )
    return None


def _columns(streams: list[Any], key: str) -> tuple[Taken, ...]:
    """The key, and what else each stream has, as far as its name is not taken."""
    columns = {key: Taken(key, ((0, key),))}
    for k, stream in enumerate(streams):
        for name in stream.schema.names:
            if name != key:
                called = f"{name}_{k + 1}" if k else name
                columns.setdefault(called.casefold(), Taken(called, ((k, name),)))
    return tuple(columns.values())


def _schema(streams: list[Any], columns: tuple[Taken, ...]) -> Schema:
    origins = [(c.name, streams[k].schema, name) for c in columns for k, name in c.origins]
    attributes = tuple(Attribute(n, schema.type_of(name)) for n, schema, name in origins)
    return Schema(attributes, tuple(n for n, schema, name in origins if name in schema.times))
