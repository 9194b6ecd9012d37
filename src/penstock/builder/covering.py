"""Joins of lifetimes that ask where there is no partner: for which part of its lifetime a row has one.

A row and its pairs lie side by side in time. A snapshot over both, of each row by itself, says from when to when the
row holds and no pair does: what outer joins pad with nulls, and what `anti` is. The other part is what `semi` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.builder.combine import On, key_pairs, names_of_right, output_columns
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.pattern.schema import SYNC, Attribute, Schema
from penstock.pattern.types import type_text
from penstock.sql.aggregation import Aggregation

if TYPE_CHECKING:
    from penstock.builder.stream import StreamBuilder
    from penstock.operators.join.operator import JoinKind, Taken

#: How often the part of a row is told that is covered, and the part that is not.
_TIMES = "count(*) FILTER (WHERE {0} = 0) * (CASE WHEN count(*) FILTER (WHERE {0} = 1) {1} 0 THEN 1 ELSE 0 END)"


class _Beside:
    """Attributes beside those of the user: when a row began, by its side; whether it is a pair; how often it holds."""

    def __init__(self, *names: str) -> None:
        own = "_own"
        while any(n.casefold().startswith(own) for n in names):
            own += "_"
        self.since = (f"{own}since", f"{own}since_of_right")
        self.paired, self.copies = f"{own}paired", f"{own}copies"


def outer_join(
    left: StreamBuilder, right: StreamBuilder, on: On, how: JoinKind, where: str | None, suffix: str
) -> StreamBuilder:
    """The join of rows that hold for a time, with the parts of lifetimes without a partner, or one kind of parts."""
    beside = _Beside(*left.schema.names, *right.schema.names)
    sides = [_marked(stream, since) for stream, since in zip((left, right), beside.since, strict=True)]
    pairs = sides[0].join(sides[1], on, where=where, suffix=suffix)
    mine, theirs = (_plain(s.schema) for s in (left, right))
    keys = key_pairs(mine, theirs, on)
    names = names_of_right(left.schema, theirs, suffix)
    # What the rows of each side are called in pairs.
    own = ({n: n for n in mine.names}, {n: names[n] for n in theirs.names} | {b: a for a, b in keys})
    columns = output_columns(mine, theirs, keys, how, names)
    types = {c.name: _type(c, (mine, theirs)) for c in columns}
    start, end = left.schema.lifetime
    if how in ("semi", "anti"):
        return _part(sides[0], pairs, own[0], beside, 0, how == "semi").select(start, end, *mine.names)
    found = pairs.select(start, end, **{n: _cast(n, t) for n, t in types.items()})
    for side, kinds in enumerate((("left", "full"), ("right", "full"))):
        if how in kinds:
            alone = _part(sides[side], pairs, own[side], beside, side, False)
            said = {c.name: next((a for s, a in c.origins if s == side), None) for c in columns}
            times = dict(zip((start, end), alone.schema.lifetime, strict=True))
            found = found.union(alone.select(**times, **{n: _cast(said[n], t) for n, t in types.items()}))
    return found


def _part(
    rows: StreamBuilder, pairs: StreamBuilder, own: Mapping[str, str], beside: _Beside, side: int, covered: bool
) -> StreamBuilder:
    """The parts of the lifetimes of a side that pairs cover, or those that they do not."""
    since = beside.since[side]
    times = dict(zip(rows.schema.lifetime, pairs.schema.lifetime, strict=True))
    said = {n: _cast(name, rows.schema.type_of(n)) for n, name in {**own, since: since}.items()}
    alone = rows.with_columns(**{beside.paired: "0"})
    both = alone.union(pairs.select(**times, **said, **{beside.paired: "1"}))
    start, end = both.schema.lifetime
    keys = (*own, since)
    text = _TIMES.format(beside.paired, ">" if covered else "=")
    copies = Aggregation.parse(beside.copies, text, both.schema, start, where="join", keys=keys)
    told = (Attribute(n, both.schema.type_of(n)) for n in (start, end, *keys, SYNC))
    schema = Schema(tuple(told), (SYNC,), (start, end))
    made = SnapshotAggregate((both.operator,), schema, keys=keys, aggregations=(copies,), copies=beside.copies)
    return rows._with(made)


def _marked(stream: StreamBuilder, since: str) -> StreamBuilder:
    """Rows that also say when they began: a pair says it of its own."""
    start = _quoted(stream.schema.lifetime[0])
    return stream.with_columns(**{since: f"coalesce({start}, {start})"})


def _plain(schema: Schema) -> Schema:
    return schema.select([n for n in schema.names if n not in (*schema.lifetime, SYNC)])


def _type(column: Taken, schemas: tuple[Schema, Schema]) -> pa.DataType:
    """Of keys that are integers of two sizes, the wider."""
    types = [schemas[side].type_of(a) for side, a in column.origins]
    return max(types, key=lambda t: t.bit_width) if len(types) > 1 and pa.types.is_integer(types[0]) else types[0]


def _cast(name: str | None, t: pa.DataType) -> str:
    return f"CAST({'NULL' if name is None else _quoted(name)} AS {type_text(t)})"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
