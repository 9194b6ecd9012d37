"""The part of the builder that looks events up in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import UserError, a
from penstock.operators.join.operator import Taken
from penstock.operators.lookup.operator import TableJoin
from penstock.pattern.schema import Attribute, Schema
from penstock.pattern.types import type_text
from penstock.plan.operator import Operator
from penstock.plan.table import Table, comparable, known_column

On = str | Sequence[str] | Mapping[str, str]


def lookup(
    stream: Operator,
    table: Table,
    on: On | None = None,
    how: str = "inner",
    *,
    as_of: str | None = None,
    columns: Sequence[str] | None = None,
    suffix: str | None = None,
) -> TableJoin:
    """The join of a stream with a table, checked.

    `on` pairs attributes of the stream with the table's key (left out: same names); `columns` are those wanted of the
    table (left out: all but its key); `suffix` goes on those whose name the stream has already (`_` and the table's
    name).
    """
    if not isinstance(table, Table):
        raise UserError(
            f"lookup: {type(table).__name__} is not a table",
            hint="declare one: ps.table('prices', 'sku string, …', key=…)",
        )
    call = f"lookup of table '{table.name}'"
    if how not in ("inner", "left"):
        raise UserError(
            f"{call}: how='{how}' is not possible",
            hint="'inner' drops events without a row, 'left' keeps them with nulls",
        )
    if table.reader is None:
        raise UserError(f"{call}: it has nothing to read from", hint="call .read_parquet(path) or another .read_…")
    names = _names(stream.schema, table, columns, suffix if suffix is not None else f"_{table.name}", call)
    taken = tuple(Taken(n, ((0, n),)) for n in stream.schema.names) + tuple(Taken(n, ((1, c),)) for c, n in names)
    added = tuple(Attribute(n, table.schema.type_of(c)) for c, n in names)
    return TableJoin(
        (stream,),
        stream.schema.extend(added),
        table=table,
        keys=_keys(stream.schema, table, on, call),
        columns=taken,
        how="left" if how == "left" else "inner",
        as_of=_as_of(stream.schema, table, as_of, call),
    )


def _keys(stream: Schema, table: Table, on: On | None, call: str) -> tuple[tuple[str, str], ...]:
    if on is None:
        on = table.key
    wanted = dict(
        [(on, on)] if isinstance(on, str) else on.items() if isinstance(on, Mapping) else [(n, n) for n in on]
    )
    if isinstance(on, str) and len(table.key) == 1 and table.schema.resolve(on) is None:
        wanted = {on: table.key[0]}  # One attribute for one key: there is nothing else it could mean.
    pairs = []
    for left, right in wanted.items():
        mine = known_column(stream, left, f"{call}: stream attribute")
        its = known_column(table.schema, right, f"{call}: table column")
        if not comparable(stream.type_of(mine), table.schema.type_of(its)):
            raise UserError(
                f"{call}: the keys differ in type: stream {stream.attributes[stream.index(mine)]}, "
                f"table {table.schema.attributes[table.schema.index(its)]}",
                hint="declare the table's column with the type of the stream's, or cast that: with_columns(…)",
            )
        pairs.append((mine, its))
    if sorted(b for _, b in pairs) != sorted(table.key):
        raise UserError(
            f"{call}: on={on!r} is not its key ({', '.join(table.key)})",
            hint="on={'stream attribute': 'key column'}, one for each key column",
        )
    return tuple(pairs)


def _as_of(stream: Schema, table: Table, as_of: str | None, call: str) -> str | None:
    if table.version is None:
        if as_of is not None:
            raise UserError(
                f"{call}: as_of='{as_of}', but the table has no versions",
                hint="name the column from which on a row holds: ps.table(…, version='valid_from')",
            )
        return None
    if as_of is None and len(stream.times) != 1:
        known = ", ".join(stream.times) or "none is declared"
        raise UserError(f"{call}: which time attribute? ({known})", hint="as_of='…'")
    found = known_column(stream, as_of, f"{call}: as_of") if as_of is not None else stream.times[0]
    types = stream.type_of(found), table.schema.type_of(table.version)
    if not comparable(*types):
        raise UserError(
            f"{call}: '{found}' is {a(type_text(types[0]))}, '{table.version}' {a(type_text(types[1]))}",
            hint=f"declare the table's column as {type_text(types[0])}",
        )
    return found


def _names(
    stream: Schema, table: Table, columns: Sequence[str] | None, suffix: str, call: str
) -> list[tuple[str, str]]:
    """The columns taken of the table, each with its name behind the join."""
    if isinstance(columns, str):
        raise UserError(f"{call}: columns='{columns}' is not possible", hint=f"a list: columns=['{columns}']")
    chosen = (
        [n for n in table.schema.names if n not in table.key]
        if columns is None
        else [known_column(table.schema, c, f"{call}: column") for c in columns]
    )
    taken = {n.casefold() for n in stream.names}
    pairs = []
    for column in chosen:
        name = column if column.casefold() not in taken else column + suffix
        if name.casefold() in taken:
            raise UserError(f"{call}: '{name}' would be there twice", hint="choose another suffix= or rename columns")
        taken.add(name.casefold())
        pairs.append((column, name))
    return pairs
