"""Punctuated streams for the tests: written out by hand, and random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from penstock.builder.stream import StreamBuilder
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, at_least, at_most, between, equal, less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.promise import Domain
from penstock.reference.interpret import Result, interpret
from penstock.reference.item import Event, Item, breaches, events


def stream(name: str, schema: str, time: str | None = None, **finite: tuple[Any, ...]) -> StreamBuilder:
    """A source without a reader; `finite` lists all values of some attributes."""
    promises = tuple(Domain(attribute, values) for attribute, values in finite.items())
    return StreamBuilder(Source((), Schema.parse(schema, time), name=name, promises=promises))


def arrivals(source: StreamBuilder, *items: Any) -> list[Any]:
    """Rows as tuples, punctuations as text."""
    return [Pattern.parse(i, source.schema) if isinstance(i, str) else source.schema.event(i) for i in items]


def shown(items: Sequence[Item]) -> list[Any]:
    return [tuple(i.row.values()) if isinstance(i, Event) else str(i.pattern) for i in items]


def run(query: StreamBuilder, inputs: Mapping[str, Sequence[Any]], **options: Any) -> Result:
    """Run a query and check that every stream in it keeps its word."""
    result = interpret(query.operator, inputs, **options)
    for node, items in result.streams.items():
        assert not breaches(items), f"{node} breaks its word: {breaches(items)}"
    return result


def bag(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(repr(tuple(r.values())) for r in rows)


def let_in(result: Result, name: str) -> list[dict[str, Any]]:
    """The events of a source that kept its promises."""
    return events(result.streams[f"source:{name}"])


SMALL = st.integers(0, 4)


def restrictions() -> st.SearchStrategy[Restriction]:
    return st.one_of(
        SMALL.map(equal),
        SMALL.map(at_most),
        SMALL.map(less),
        SMALL.map(at_least),
        st.lists(SMALL, min_size=1, max_size=3).map(one_of),
        st.tuples(SMALL, SMALL).map(lambda ends: between(min(ends), max(ends), True, True)),
    )


def scripts(declared: str, *, nulls: Sequence[str] = (), size: int = 10) -> st.SearchStrategy[list[Any]]:
    """Events over small integers, with few keys `k`, and punctuations of all shapes among them."""
    schema = Schema.parse(declared)
    values = {n: [0, 1, 1, 1, 2] if n == "k" else [0, 1, 2, 3, 4] for n in schema.names}
    rows = st.fixed_dictionaries({n: st.sampled_from([*v, None] if n in nulls else v) for n, v in values.items()})
    # Most punctuations speak of one attribute or two. None that ends everything: that comes by itself.
    names = schema.names
    shapes = st.sampled_from([*((n,) for n in names), *((n,) for n in names), *combinations(names, 2), names])
    patterns = shapes.flatmap(lambda shape: st.fixed_dictionaries(dict.fromkeys(shape, restrictions())))
    items = st.one_of(rows, rows, patterns.map(lambda chosen: Pattern.by_name(schema, chosen)))
    return st.lists(items, min_size=size // 2, max_size=size)
