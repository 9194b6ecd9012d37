"""What the declarations of a source say of its values, and which part of them decides results."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from penstock.operators.source.operator import Source
from penstock.pattern.restriction import Restriction, one_of
from penstock.plan.promise import CHANGE, Ahead, Bounds, Declared, Disorder, Domain, Expected, Files, Generated, Reader
from penstock.plan.spec import Fact


def facts_of(source: Source) -> dict[str, Fact]:
    """What is known of the values that it lets in.

    >>> from penstock.pattern.schema import Schema
    >>> promises = Domain("lane", (1, 2)), Bounds("cars", 0)
    >>> facts_of(Source((), Schema.parse("lane int, cars int, v int"), promises=promises))
    {'lane': Fact(values=..., never_negative=False, ...), 'cars': Fact(values=None, ..., never_negative=True, ...)}
    """
    listed = domains_of(source)
    found = {n: Fact(listed.get(n), never_negative=refuses_negative(source, n)) for n in source.schema.names}
    return {name: fact for name, fact in found.items() if fact != Fact()}


def domains_of(source: Source) -> dict[str, Restriction]:
    """The attributes of which all values are declared."""
    found: dict[str, Restriction] = {}
    for promise in source.promises:
        if isinstance(promise, Domain):
            values = one_of(promise.values).coerced(source.schema.type_of(promise.attribute))
            # Declared twice, both hold.
            found[promise.attribute] = found.get(promise.attribute, values).intersect(values)
    return found


def refuses_negative(source: Source, name: str) -> bool:
    """Whether it lets no event in that has a number below zero there."""
    bounds = [p.low for p in source.promises if isinstance(p, Bounds) and p.attribute == name]
    number = not (pa.types.is_timestamp(t := source.schema.type_of(name)) or pa.types.is_date(t))
    return number and any(low is not None and low >= 0 for low in bounds)


def definition_of(source: Source) -> str:
    """The part of a source that decides which events come; a path may move, so it is not part of it.

    What is only said for the check decides no result. How far ahead an event may be, or how late, has to be corrected
    where it turns out too little: no state depends on it.
    """
    told = [
        f"Disorder({p.attribute!r})" if isinstance(p, Disorder) else repr(p)
        for p in source.promises
        if not isinstance(p, Declared | Expected | Ahead)
    ]
    records = ", of records with two rows" if CHANGE in source.schema and source.changes == CHANGE else ""
    kinds = [f"changes by {source.changes}{records}"] if source.changes else []
    return "; ".join([_reading(source.reader), *kinds, *told])


def _reading(reader: Reader | None) -> str:
    """What of a reader decides which events come in what order. A generator may be asked for more rows, though."""
    if isinstance(reader, Generated):
        return repr(replace(reader, rows=None))
    parts = ", partitions by directory" if isinstance(reader, Files) and reader.partitions == "directory" else ""
    return f"{type(reader).__name__}{parts}"
