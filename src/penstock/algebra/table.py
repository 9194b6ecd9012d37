"""Tables: slowly changing data that a stream is looked up in.

A table is read again when it changes. Without versions an event sees the table as it was when the event's epoch was
planned. A *versioned* table says from when on each of its rows holds, so an event sees the row of its own time,
whenever it arrives and whenever the table was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from penstock.algebra.arguments import checked, worded
from penstock.algebra.duration import format_duration, parse_duration
from penstock.algebra.join import Taken
from penstock.algebra.operator import Operator
from penstock.algebra.pattern import Pattern
from penstock.algebra.schema import Attribute, Schema
from penstock.algebra.source import Files, Format
from penstock.algebra.types import type_text
from penstock.errors import UserError, a, did_you_mean

LookupKind = Literal["inner", "left"]
On = str | Sequence[str] | Mapping[str, str]
_OPTIONS = ("settle",)
_CSV_OPTIONS = ("header", "delimiter", "multiline", "null")


@dataclass(frozen=True, eq=False)
class Framed:
    """A Spark DataFrame (or a function that returns one), collected at the start and, if asked, every so often."""

    frame: Any = field(repr=False)
    every: int | None = None


@worded
@dataclass(frozen=True)
class Table:
    """A table by its name, attributes, key, and, if it is versioned, the attributes that say when a row holds.

    >>> prices = table("prices", "sku string, price double, since timestamp", key="sku", version="since")
    >>> print(prices.read_parquet("data/prices"))
    prices(sku string, price double, since timestamp) by sku from since, parquet data/prices
    """

    name: str
    schema: Schema
    key: tuple[str, ...]
    version: str | None = None
    until: str | None = None
    reader: Files | Framed | None = None

    def read_parquet(self, path: str, **options: Any) -> Table:
        """Read a Parquet file, or all files of a folder or glob together (option: settle)."""
        return self._read(path, "parquet", options)

    def read_csv(self, path: str, **options: Any) -> Table:
        """Read CSV files with a header line (options: header, delimiter, multiline, null, settle)."""
        return self._read(path, "csv", options)

    def read_json(self, path: str, **options: Any) -> Table:
        """Read files with one JSON object a line (option: settle)."""
        return self._read(path, "json", options)

    def _read(self, path: str, format: Format, options: Mapping[str, Any]) -> Table:
        known = (*_OPTIONS, *(_CSV_OPTIONS if format == "csv" else ()))
        for name in options:
            if name not in known:
                raise UserError(
                    f"table '{self.name}': read_{format} has no option '{name}'", hint=did_you_mean(name, known)
                )
        # By name, so that the same files give the same rows in the same order.
        return replace(self, reader=Files(str(path), format, order="name", options=tuple(sorted(options.items()))))

    def from_spark(self, frame: Any, *, every: str | timedelta | None = None) -> Table:
        """Take a DataFrame, or a function that returns one, as the table.

        Spark does not say when a DataFrame has changed: it is collected once a run, or again `every` so often.
        """
        if getattr(frame, "isStreaming", False):
            raise UserError(
                f"table '{self.name}': this DataFrame is a stream", hint="use ps.from_spark(frame) and join(…)"
            )
        if not callable(frame) and not callable(getattr(frame, "toArrow", None)):
            raise UserError(
                f"table '{self.name}': from_spark({type(frame).__name__}) is not a DataFrame",
                hint="give a DataFrame, or a function that returns one",
            )
        ticks = None if every is None else parse_duration(every, where=f"table '{self.name}': from_spark every")
        return replace(self, reader=Framed(frame, ticks))

    @property
    def without_reader(self) -> Table:
        """The same for tasks, which read snapshots: a Spark DataFrame stays with the driver."""
        return replace(self, reader=None)

    def __str__(self) -> str:
        holds = f" from {self.version}" if self.version else ""
        holds += f" until {self.until}" if self.until else ""
        where = ""
        if isinstance(self.reader, Files):
            where = f", {self.reader.format} {self.reader.path}"
        elif isinstance(self.reader, Framed):
            where = ", Spark" + (f" every {format_duration(self.reader.every)}" if self.reader.every else "")
        return f"{self.name}({self.schema}) by {', '.join(self.key)}{holds}{where}"


@checked
def table(
    name: str,
    schema: str | Schema,
    *,
    key: str | Sequence[str],
    version: str | None = None,
    until: str | None = None,
) -> Table:
    """Declare a table: `version` names the attribute from which on a row holds, `until` the one where it ends.

    >>> table("prices", "sku string, price double", key="skew")
    Traceback (most recent call last):
    penstock.errors.UserError: table 'prices': key 'skew' is not a column. Hint: did you mean 'sku'? ...
    """
    if not name or not name.replace("_", "").replace("-", "").isalnum():
        raise UserError(f"table name {name!r}", hint="use letters, digits, - and _")
    parsed = schema if isinstance(schema, Schema) else Schema.parse(schema)
    what = f"table '{name}'"
    keys = tuple(_column(parsed, k, f"{what}: key") for k in ((key,) if isinstance(key, str) else key))
    if not keys or len(set(keys)) < len(keys):
        raise UserError(f"{what}: key={key!r} is not possible", hint="one or more different columns")
    if until is not None and version is None:
        raise UserError(f"{what}: until='{until}' without version=", hint="name the column from which on a row holds")
    since = None if version is None else _moment(parsed, version, f"{what}: version")
    ending = None if until is None else _moment(parsed, until, f"{what}: until")
    for role, chosen in (("version", since), ("until", ending)):
        if chosen is not None and chosen in keys:
            raise UserError(
                f"{what}: '{chosen}' is both key and {role}", hint="the key is what events are looked up by"
            )
    if since is not None and ending is not None:
        if since == ending:
            raise UserError(f"{what}: '{since}' is both version and until", hint="name two columns")
        if not _comparable(parsed.type_of(since), parsed.type_of(ending)):
            raise UserError(
                f"{what}: '{since}' is {a(type_text(parsed.type_of(since)))}, "
                f"'{ending}' {a(type_text(parsed.type_of(ending)))}",
                hint="declare both with the same type",
            )
    return Table(name, Schema(parsed.attributes), keys, since, ending)


@dataclass(frozen=True, eq=False)
class TableJoin(Operator):
    """Events with what a table says about them. The one input is the stream; of `columns`, input 1 is the table.

    `keys` pairs attributes of the stream with the key of the table. `as_of` is the time at which an event looks into a
    versioned table: of the rows with its key that hold then, it gets the one with the greatest version.
    """

    table: Table = field(kw_only=True)
    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    columns: tuple[Taken, ...] = field(kw_only=True)
    how: LookupKind = "inner"
    as_of: str | None = None

    @property
    def kind(self) -> str:
        return "lookup"

    @property
    def detail(self) -> str:
        # No path: it may move, and a checkpoint is told from another by this text.
        on = " and ".join(a if a == b else f"{a} = {b}" for a, b in self.keys)
        held = f", {self.table.version} as of {self.as_of}" if self.as_of else ""
        held += f" and before {self.table.until}" if self.table.until else ""
        return f"{self.how} {self.table.name} on {on}{held}"

    @property
    def reads(self) -> frozenset[str]:
        """The attributes of the stream that are looked at or passed on."""
        passed = {name for column in self.columns for side, name in column.origins if side == 0}
        return frozenset(passed | {a for a, _ in self.keys} | ({self.as_of} if self.as_of else set()))


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
        Schema((*stream.schema.attributes, *added), stream.schema.times),
        table=table,
        keys=_keys(stream.schema, table, on, call),
        columns=taken,
        how="left" if how == "left" else "inner",
        as_of=_as_of(stream.schema, table, as_of, call),
    )


def through_table(operator: TableJoin, pattern: Pattern) -> Iterator[Pattern]:
    """What a punctuation of the stream becomes behind the join: itself, since every result carries its event.

    Nothing is ever promised about attributes of the table: it may change at any time.
    """
    yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})


def tables_of(operators: Sequence[Operator]) -> dict[str, Table]:
    """The tables of a plan by name; two different ones of one name are an error."""
    found: dict[str, Table] = {}
    for operator in operators:
        if isinstance(operator, TableJoin):
            other = found.setdefault(operator.table.name, operator.table)
            if other != operator.table:
                raise UserError(
                    f"two tables are named '{other.name}': {other}; {operator.table}",
                    hint="give each its own name, or use one table twice",
                )
    return found


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
        mine = _column(stream, left, f"{call}: stream attribute")
        its = _column(table.schema, right, f"{call}: table column")
        if not _comparable(stream.type_of(mine), table.schema.type_of(its)):
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
    found = _column(stream, as_of, f"{call}: as_of") if as_of is not None else stream.times[0]
    types = stream.type_of(found), table.schema.type_of(table.version)
    if not _comparable(*types):
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
        else [_column(table.schema, c, f"{call}: column") for c in columns]
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


def _column(schema: Schema, name: str, what: str) -> str:
    found = schema.resolve(name)
    if found is None:
        raise UserError(f"{what} '{name}' is not a column", hint=did_you_mean(name, schema.names))
    return found


def _moment(schema: Schema, name: str, what: str) -> str:
    found = _column(schema, name, what)
    t = schema.type_of(found)
    if not (pa.types.is_timestamp(t) or pa.types.is_date(t) or pa.types.is_integer(t)):
        raise UserError(f"{what} '{found}' is {a(type_text(t))}", hint="it is a timestamp, a date or an integer")
    return found


def _comparable(a: pa.DataType, b: pa.DataType) -> bool:
    return bool(a == b or (pa.types.is_integer(a) and pa.types.is_integer(b)))
