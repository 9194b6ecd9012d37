"""Tables: slowly changing data that a stream is looked up in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.errors import UserError, a, did_you_mean
from penstock.pattern.arguments import checked, worded
from penstock.pattern.duration import format_duration, parse_duration
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text
from penstock.plan.promise import Files, Format

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
    keys = tuple(known_column(parsed, k, f"{what}: key") for k in ((key,) if isinstance(key, str) else key))
    if not keys or len(set(keys)) < len(keys):
        raise UserError(f"{what}: key={key!r} is not possible", hint="one or more different columns")
    if until is not None and version is None:
        raise UserError(f"{what}: until='{until}' without version=", hint="name the column from which on a row holds")
    since = None if version is None else moment(parsed, version, f"{what}: version")
    ending = None if until is None else moment(parsed, until, f"{what}: until")
    for role, chosen in (("version", since), ("until", ending)):
        if chosen is not None and chosen in keys:
            raise UserError(
                f"{what}: '{chosen}' is both key and {role}", hint="the key is what events are looked up by"
            )
    if since is not None and ending is not None:
        if since == ending:
            raise UserError(f"{what}: '{since}' is both version and until", hint="name two columns")
        if not comparable(parsed.type_of(since), parsed.type_of(ending)):
            raise UserError(
                f"{what}: '{since}' is {a(type_text(parsed.type_of(since)))}, "
                f"'{ending}' {a(type_text(parsed.type_of(ending)))}",
                hint="declare both with the same type",
            )
    return Table(name, Schema(parsed.attributes), keys, since, ending)


def known_column(schema: Schema, name: str, what: str) -> str:
    found = schema.resolve(name)
    if found is None:
        raise UserError(f"{what} '{name}' is not a column", hint=did_you_mean(name, schema.names))
    return found


def moment(schema: Schema, name: str, what: str) -> str:
    found = known_column(schema, name, what)
    t = schema.type_of(found)
    if not (pa.types.is_timestamp(t) or pa.types.is_date(t) or pa.types.is_integer(t)):
        raise UserError(f"{what} '{found}' is {a(type_text(t))}", hint="it is a timestamp, a date or an integer")
    return found


def comparable(a: pa.DataType, b: pa.DataType) -> bool:
    return bool(a == b or (pa.types.is_integer(a) and pa.types.is_integer(b)))
