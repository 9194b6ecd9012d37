"""Schemas: what an event of a stream looks like.

A schema is an ordered list of named, typed attributes. Some of them may be *time attributes*: those along which a
stream makes progress, so that windows, disorder and punctuation can refer to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.errors import SchemaError, UserError, a, did_you_mean, encodable, shortly
from penstock.pattern.types import canonical_type, coerce_value, parse_type, type_text

#: When a change of a row that holds for a time begins to matter; the time attribute of streams of such rows.
SYNC = "_sync"

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z")
# A name, plain or in backticks as in Spark SQL, then its type: everything up to the next comma outside parentheses.
_DECLARATION = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`,()]+))\s*:?\s*([^,()]*(?:\([^()]*\))?)\s*\Z")


@dataclass(frozen=True)
class Attribute:
    """One named, typed attribute.

    >>> str(Attribute("speed", pa.float64()))
    'speed double'
    """

    name: str
    type: pa.DataType

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not encodable(self.name):
            raise UserError(f"attribute name {shortly(self.name)} cannot be written", hint="use a plain text")
        if not self.name or not self.name.strip() or "\0" in self.name:
            raise UserError(f"attribute name {self.name!r} is empty", hint="give every attribute a name")
        if self.name.startswith("__"):
            raise UserError(
                f"attribute name '{self.name}' is reserved", hint="names that start with '__' belong to Penstock"
            )
        object.__setattr__(self, "type", canonical_type(self.type))

    def __str__(self) -> str:
        name = self.name if _PLAIN.match(self.name) else "`" + self.name.replace("`", "``") + "`"
        return f"{name} {type_text(self.type)}"


@dataclass(frozen=True)
class Schema:
    """An ordered list of attributes, some of which may be time attributes.

    >>> s = Schema.parse("ts timestamp, segment int, speed double", time="ts")
    >>> print(s, s.times)
    ts timestamp, segment int, speed double ('ts',)
    >>> s.type_of("sped")
    Traceback (most recent call last):
    penstock.errors.UserError: no attribute 'sped'. Hint: did you mean 'speed'? There are: ts, segment, speed
    """

    attributes: tuple[Attribute, ...]
    times: tuple[str, ...] = ()
    #: The attributes with the first moment at which a row holds, and the first at which it no longer does (null: it has
    #: no end). Empty where rows have no lifetimes.
    lifetime: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "times", tuple(self.times))
        if not self.attributes:
            raise UserError("a schema needs at least one attribute", hint="write it like 'ts timestamp, speed double'")
        seen: dict[str, str] = {}
        for name in self.names:
            # Spark and DuckDB take `Speed` and `speed` for the same column, so a schema cannot have both.
            if (other := seen.get(name.casefold())) is not None:
                what = f"'{name}'" if other == name else f"'{other}' and '{name}'"
                raise UserError(f"duplicate attribute {what}", hint="names must differ by more than case")
            seen[name.casefold()] = name
        if len(set(self.times)) < len(self.times):
            raise UserError(f"time attributes {', '.join(self.times)}: one is named twice")
        for name in self.times:
            t = self.type_of(name)
            if not (pa.types.is_timestamp(t) or pa.types.is_date(t) or pa.types.is_integer(t)):
                raise UserError(
                    f"time attribute '{name}' is {a(type_text(t))}",
                    hint="a time attribute is a timestamp, a date or an integer",
                )

    @classmethod
    def parse(cls, text: str, time: str | Sequence[str] | None = None) -> Schema:
        """Read a declaration as in SQL: `name type, name type, …`.

        >>> Schema.parse("`wind speed` decimal(5,1), n int").names
        ('wind speed', 'n')
        """
        if not isinstance(text, str):
            raise UserError(f"schema {shortly(text)} is not a text", hint="write it like 'ts timestamp, speed double'")
        attributes = []
        for part in _split(text):
            found = _DECLARATION.match(part)
            if not found or not found[3].strip():
                raise UserError(
                    f"cannot read '{part.strip()}' in schema '{text.strip()}'", hint="write 'name type, name type'"
                )
            name = found[1].replace("``", "`") if found[1] else found[2].rstrip(":")
            attributes.append(Attribute(name, parse_type(found[3])))
        times = () if time is None else (time,) if isinstance(time, str) else tuple(time)
        return cls(tuple(attributes), times)

    @classmethod
    def of(cls, arrow: pa.Schema, times: Sequence[str] = ()) -> Schema:
        """The schema of Arrow data. Wider or exotic Arrow types become the attribute type that holds their values.

        >>> str(Schema.of(pa.schema([("n", pa.uint8()), ("s", pa.large_string())])))
        'n smallint, s string'
        """
        attributes = []
        for field in arrow:
            try:
                attributes.append(Attribute(field.name, canonical_type(field.type)))
            except UserError as error:
                raise UserError(f"attribute '{field.name}': {error.message}", hint=error.hint) from None
        return cls(tuple(attributes), tuple(times))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([(a.name, a.type) for a in self.attributes])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """The position of an attribute; an unknown name is an error with the nearest match."""
        if name not in self._positions:
            raise UserError(f"no attribute '{name}'", hint=did_you_mean(name, self.names))
        return self._positions[name]

    def type_of(self, name: str) -> pa.DataType:
        return self.attributes[self.index(name)].type

    def resolve(self, name: str) -> str | None:
        """The schema's own spelling of a name written in any case, or None.

        >>> Schema.parse("ts timestamp, Speed double").resolve("SPEED")
        'Speed'
        """
        if name in self._positions:
            return name
        return next((n for n in self.names if n.casefold() == name.casefold()), None)

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def extend(self, attributes: Iterable[Attribute]) -> Schema:
        """This schema with more attributes at its end."""
        return Schema((*self.attributes, *attributes), self.times, self.lifetime)

    def select(self, names: Iterable[str]) -> Schema:
        """The named attributes, in the order named; time attributes among them stay time attributes.

        A lifetime is there as a whole or not at all.
        """
        chosen = tuple(self.attributes[self.index(n)] for n in names)
        kept = {a.name for a in chosen}
        whole = {*self.lifetime, SYNC} <= kept
        return Schema(chosen, tuple(t for t in self.times if t in kept), self.lifetime if whole else ())

    def rename(self, mapping: Mapping[str, str]) -> Schema:
        """The same attributes, some under new names.

        >>> print(Schema.parse("ts timestamp, v int", "ts").rename({"ts": "time"}))
        time timestamp, v int
        """
        for name in mapping:
            self.index(name)
        attributes = tuple(Attribute(mapping.get(a.name, a.name), a.type) for a in self.attributes)
        times, lifetime = (tuple(mapping.get(n, n) for n in names) for names in (self.times, self.lifetime))
        return Schema(attributes, times, lifetime)

    def event(self, values: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
        """One event of this schema by attribute name, checked for arity and domains; None stands for null.

        >>> Schema.parse("ts timestamp, id int").event(("2010-04-01 10:00:00", 4))
        {'ts': datetime.datetime(2010, 4, 1, 10, 0), 'id': 4}
        """
        if isinstance(values, Mapping):
            if unknown := [n for n in values if n not in self]:
                raise SchemaError(f"event has no attribute '{unknown[0]}'", hint=did_you_mean(unknown[0], self.names))
            values = [values.get(n) for n in self.names]
        if len(values) != len(self):
            raise SchemaError(f"event of {len(values)} values for {len(self)} attributes", hint=f"schema: {self}")
        event = {}
        for attribute, value in zip(self.attributes, values, strict=True):
            try:
                event[attribute.name] = None if value is None else coerce_value(value, attribute.type)
            except UserError as error:
                raise SchemaError(f"attribute '{attribute.name}': {error.message}", hint=error.hint) from None
        return event

    def __str__(self) -> str:
        return ", ".join(map(str, self.attributes))

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": [{"name": a.name, "type": type_text(a.type)} for a in self.attributes],
            "times": list(self.times),
            **({"lifetime": list(self.lifetime)} if self.lifetime else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Schema:
        attributes = tuple(Attribute(a["name"], parse_type(a["type"])) for a in stored["attributes"])
        return cls(attributes, tuple(stored["times"]), tuple(stored.get("lifetime", ())))


def _split(text: str) -> Iterator[str]:
    """Cut at the commas outside parentheses and backticks."""
    if not text.strip():
        return
    depth, quoted, start = 0, False, 0
    for i, char in enumerate(text):
        if char == "`":
            quoted = not quoted
        elif not quoted:
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                yield text[start:i]
                start = i + 1
    yield text[start:]
