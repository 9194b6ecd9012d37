"""A table, inverted: the keys of which every row matches a pattern.

An event with such a key gives results that all match, or none at all. Rows of other keys do not matter, and neither
does a key that is not in the table: without a row there is no result, or one with nulls, which no restriction of a
column of the table matches.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.kernels.duck import query
from penstock.operators.lookup.operator import TableJoin
from penstock.pattern.feedback import VALUES
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, one_of
from penstock.pattern.schema import Schema

#: Larger tables are not inverted.
LARGEST = 1_000_000
#: Patterns that are made of keys with several attributes: each lists values of one for one choice of the others.
PIECES = 16


def keys_that_match(operator: TableJoin, prepared: pa.Table, pattern: Pattern) -> list[Pattern]:
    """What a pattern over the output of a lookup says of its input while the table is as `prepared`.

    Every event that matches one of these gives results that all match `pattern`. Of more keys than a guard lists, the
    first are taken: whatever is left out is dropped behind the lookup.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.builder.lookup import lookup
    >>> from penstock.plan.table import table
    >>> zones = table("zones", "segment int, zone string", key="segment").read_csv("zones.csv")
    >>> looked_up = lookup(Source((), Schema.parse("segment int, speed int")), zones)
    >>> rows = pa.table({"segment": [3, 4, 7, 7], "zone": ["harbour", "city", "harbour", "city"]})
    >>> said = Pattern.parse("[*, > 50, 'harbour']", looked_up.schema)
    >>> print(*keys_that_match(looked_up, rows.cast(zones.schema.arrow), said))
    [3, > 50]
    """
    schema = operator.inputs[0].schema
    sides: tuple[dict[str, Restriction], dict[str, Restriction]] = ({}, {})
    for column in operator.columns:
        ((side, name),) = column.origins
        sides[side][name] = sides[side].get(name, ANY).intersect(pattern[column.name])
    of_stream, of_table = (Pattern.by_name(s, r) for s, r in zip((schema, operator.table.schema), sides, strict=True))
    if not of_table.restricted or prepared.num_rows > LARGEST:
        return []
    matching = of_table.matches(prepared)
    if not matching.true_count:
        return []
    names = [f"k{i}" for i in range(len(operator.keys))]
    rows = pa.table([*(prepared.column(b) for _, b in operator.keys), matching], names=[*names, "matching"])
    listed = ", ".join(names)
    found = query(
        f"SELECT {listed} FROM rows GROUP BY {listed} HAVING bool_and(matching) ORDER BY {listed} LIMIT {VALUES}",
        rows=rows,
    )
    try:
        keys = [tuple(row.values()) for row in found.to_pylist()]
    except (ValueError, OverflowError):
        return []  # A moment that Python's calendar has not: no pattern can name it.
    pieces = _listed(schema, [a for a, _ in operator.keys], keys)
    return [p for piece in pieces if not (p := piece.intersect(of_stream)).is_empty]


def _listed(schema: Schema, names: list[str], keys: list[tuple[object, ...]]) -> list[Pattern]:
    """Patterns that together name these keys, or the first of them: a list for the attribute with the most values."""
    if not keys:
        return []
    many = max(range(len(names)), key=lambda i: len({key[i] for key in keys}))
    groups: dict[tuple[object, ...], list[object]] = {}
    for key in keys:
        groups.setdefault((*key[:many], *key[many + 1 :]), []).append(key[many])
    others = [*names[:many], *names[many + 1 :]]
    largest = sorted(groups.items(), key=lambda pair: -len(pair[1]))[:PIECES]
    return [
        Pattern.by_name(
            schema,
            {
                n: fitted(one_of(values), schema.type_of(n))
                for n, values in ((names[many], listed), *((n, [v]) for n, v in zip(others, rest, strict=True)))
            },
        )
        for rest, listed in largest
    ]
