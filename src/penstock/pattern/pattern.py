"""Patterns: one restriction per attribute of a schema, matched all together.

Patterns are what punctuations, feedback and guards say: `[<= '2026-01-01 10:00:00', 4, *]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UserError, counted, shortly
from penstock.pattern.gap import Cut, encloses
from penstock.pattern.restriction import (
    ANY,
    NOTHING,
    Range,
    Restriction,
    at_least,
    at_most,
    between,
    equal,
    greater,
    less,
    normal,
    one_of,
    restriction_from_json,
)
from penstock.pattern.schema import Schema
from penstock.pattern.types import coerce_value

_COMPARISONS = {"<=": at_most, "≤": at_most, ">=": at_least, "≥": at_least, "<": less, ">": greater}
_COMPARISON = re.compile("<=|>=|≤|≥|<|>")
_QUOTED = re.compile(r"(x?)'((?:[^']|'')*)'", re.IGNORECASE)
_BARE = re.compile(r"[^,'(){}\[\]]*")
_NAMED = re.compile(r"(\w+)\s*[=:<>]")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class Pattern:
    """One restriction per attribute of a schema; an event matches if every attribute does.

    >>> sensor = Schema.parse("time timestamp, id int, temperature double", time="time")
    >>> p = Pattern.parse("[<= '2010-04-01 10:00:00', 4, *]", sensor)
    >>> p.matches_row({"time": "2010-04-01 9:00:00", "id": 4, "temperature": 79.0})
    True
    >>> print(p, p.restricted, p.describes(["time", "id"]))
    [<= '2010-04-01 10:00:00', 4, *] ('time', 'id') True
    """

    schema: Schema
    restrictions: tuple[Restriction, ...]

    def __post_init__(self) -> None:
        if len(self.restrictions) != len(self.schema):
            raise _arity(len(self.restrictions), self.schema)
        coerced = []
        for attribute, restriction in zip(self.schema, self.restrictions, strict=True):
            try:
                coerced.append(normal(restriction.coerced(attribute.type)))
            except UserError as error:
                raise UserError(f"pattern, attribute '{attribute.name}': {error.message}", hint=error.hint) from None
        object.__setattr__(self, "restrictions", tuple(coerced))

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Pattern:
        """Read a pattern: `*`, a value, a list `{1, 2}`, a range `(1, 5)` `[1, 5)` `[1,)`, or `< <= > >=`.

        >>> print(Pattern.parse("[(1,5], ≥ 3]", Schema.parse("a int, b double")))
        [(1, 5], >= 3.0]
        >>> Pattern.parse("[*, 3]", Schema.parse("a int"))
        Traceback (most recent call last):
        penstock.errors.UserError: pattern has 2 restrictions for 1 attribute. Hint: one for each of: a int
        """
        if not isinstance(text, str):
            raise UserError(
                f"pattern {shortly(text)} is not a text", hint=f"write one restriction for each of: {schema}"
            )
        return _PatternReader(text, schema).pattern()

    @classmethod
    def all(cls, schema: Schema) -> Pattern:
        """Every event: the end of the stream, as a punctuation.

        >>> print(Pattern.all(Schema.parse("a int, b int")))
        [*, *]
        """
        return cls(schema, (ANY,) * len(schema))

    @classmethod
    def where(cls, schema: Schema, **restrictions: Restriction | object) -> Pattern:
        """A pattern by attribute name; a plain value means equality, attributes left out are `*`.

        >>> print(Pattern.where(Schema.parse("ts int, key string"), ts=less(7)))
        [< 7, *]
        """
        return cls.by_name(schema, restrictions)

    @classmethod
    def by_name(cls, schema: Schema, restrictions: Mapping[str, Restriction | object]) -> Pattern:
        """Like `where`, for names that are no Python identifiers."""
        chosen: list[Restriction] = [ANY] * len(schema)
        for name, restriction in restrictions.items():
            chosen[schema.index(name)] = restriction if isinstance(restriction, Restriction) else equal(restriction)
        return cls(schema, tuple(chosen))

    def __getitem__(self, name: str) -> Restriction:
        return self.restrictions[self.schema.index(name)]

    @cached_property
    def restricted(self) -> tuple[str, ...]:
        """The attributes that are not `*`."""
        return tuple(a.name for a, r in zip(self.schema, self.restrictions, strict=True) if r is not ANY)

    @cached_property
    def is_empty(self) -> bool:
        """Whether no event can match."""
        pairs = zip(self.restrictions, self._extents, strict=True)
        return any(not extent if isinstance(r, Range) else r == NOTHING for r, extent in pairs)

    @cached_property
    def _extents(self) -> tuple[list[tuple[Cut, Cut]], ...]:
        """The extents of the ranges; kept, since sets compare patterns again and again."""
        pairs = zip(self.schema, self.restrictions, strict=True)
        return tuple(r.extent(a.type) if isinstance(r, Range) else [] for a, r in pairs)

    def describes(self, attributes: Iterable[str]) -> bool:
        """Whether all attributes outside the given ones are `*`, so that the pattern speaks of whole groups.

        >>> p = Pattern.parse("[3, *, < 7]", Schema.parse("a int, b int, c int"))
        >>> p.describes(["a", "c"]), p.describes(["a"])
        (True, False)
        """
        return set(self.restricted) <= set(attributes)

    def matches(self, table: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
        """Which rows match; columns the pattern does not restrict need not be there.

        One attribute after the other, as long as there is a row left: values before ranges, since few rows have them.
        """
        result: pa.BooleanArray | None = None
        for name in self._rarest_first:
            column, t = table.column(name), self.schema.type_of(name)
            mask = self[name].mask(column if column.type == t else column.cast(t))
            result = mask if result is None else pc.and_(result, mask)
            if not result.true_count:
                return result
        return pa.repeat(True, table.num_rows) if result is None else result

    @cached_property
    def _rarest_first(self) -> tuple[str, ...]:
        return tuple(sorted(self.restricted, key=lambda n: isinstance(self[n], Range)))

    def matches_row(self, row: Mapping[str, Any]) -> bool:
        """Whether one event matches."""
        return all(self[name].matches(_value(row[name], self.schema.type_of(name))) for name in self.restricted)

    def contains(self, other: Pattern) -> bool:
        """Whether every event that matches `other` matches this pattern.

        >>> s = Schema.parse("wid int")
        >>> Pattern.parse("[< 3]", s).contains(Pattern.parse("[<= 2]", s))
        True
        """
        self._same(other)
        if other.is_empty:
            return True
        for i, (mine, its) in enumerate(zip(self.restrictions, other.restrictions, strict=True)):
            if mine is its or mine is ANY:
                continue
            if type(mine) is Range and type(its) is Range:
                if not encloses(self._extents[i], other._extents[i]):
                    return False
            elif not mine.contains(its, self.schema.attributes[i].type):
                return False
        return True

    def intersect(self, other: Pattern) -> Pattern:
        """The events that match both."""
        self._same(other)
        pairs = zip(self.restrictions, other.restrictions, strict=True)
        return Pattern(self.schema, tuple(a.intersect(b) for a, b in pairs))

    def to_sql(self) -> str:
        """A DuckDB predicate over the attributes; never null.

        >>> Pattern.parse("[*, < 7]", Schema.parse("a int, b int")).to_sql()
        '("b" IS NOT NULL AND "b" < CAST(7 AS INTEGER))'
        """
        parts = [self[n].to_sql('"' + n.replace('"', '""') + '"', self.schema.type_of(n)) for n in self.restricted]
        return " AND ".join(parts) or "TRUE"

    def rename(self, mapping: Mapping[str, str]) -> Pattern:
        """The same restrictions on attributes under new names."""
        return Pattern(self.schema.rename(mapping), self.restrictions)

    def onto(self, schema: Schema, mapping: Mapping[str, str]) -> Pattern:
        """The restrictions moved to another schema, from name to name; `*` elsewhere.

        >>> p = Pattern.parse("[< 7, *]", Schema.parse("ts int, v int"))
        >>> print(p.onto(Schema.parse("key string, time bigint"), {"ts": "time"}))
        [*, < 7]
        """
        self._keeps(mapping)
        return Pattern.by_name(schema, {mapping[n]: self[n] for n in self.restricted})

    def over(self, schema: Schema) -> Pattern:
        """The same restrictions, attribute by attribute, over a schema that may name them, or its time, differently."""
        return self if schema is self.schema else Pattern(schema, self.restrictions)

    def _keeps(self, names: Iterable[str]) -> None:
        if lost := set(self.restricted) - set(names):
            raise ValueError(f"{self} also restricts {', '.join(sorted(lost))}: without it, it would match more")

    def _same(self, other: Pattern) -> None:
        if self.schema is not other.schema and self.schema.attributes != other.schema.attributes:
            raise ValueError(f"patterns over different schemas: ({self.schema}) and ({other.schema})")

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.restrictions))}]"

    def to_json(self) -> list[Any]:
        return list(self._json)

    @cached_property
    def _json(self) -> list[Any]:
        # Once: patterns are written down again with every version of what was said.
        return [r.to_json() for r in self.restrictions]

    @classmethod
    def from_json(cls, stored: list[Any], schema: Schema) -> Pattern:
        if len(stored) != len(schema):
            raise _arity(len(stored), schema)
        pairs = zip(stored, schema, strict=True)
        return cls(schema, tuple(restriction_from_json(r, a.type) for r, a in pairs))


def _arity(count: int, schema: Schema) -> UserError:
    return UserError(
        f"pattern has {counted(count, 'restriction')} for {counted(len(schema), 'attribute')}",
        hint=f"one for each of: {schema}",
    )


def _value(value: Any, t: pa.DataType) -> Any:
    # NaN and null are values an event may have though no restriction may name them.
    return None if value is None else coerce_value(value, t)


class _PatternReader:
    """Reads the text of one pattern, left to right."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema, self.position = text, schema, 0

    def pattern(self) -> Pattern:
        if not self.take("["):
            raise self.error("a pattern starts with [")
        restrictions: list[Restriction] = []
        while not restrictions or self.take(","):
            # Read on beyond the last attribute, so that the error can say how many there are.
            restrictions.append(self.restriction(min(len(restrictions), len(self.schema) - 1)))
        if not self.take("]"):
            raise self.error("expected , or ]")
        if self.position < len(self.text):
            raise self.error("text behind the pattern")
        if len(restrictions) != len(self.schema):
            raise _arity(len(restrictions), self.schema)
        return Pattern(self.schema, tuple(restrictions))

    def restriction(self, i: int) -> Restriction:
        if self.take("*"):
            return ANY
        if compared := self.scan(_COMPARISON):
            return _COMPARISONS[compared[0]](self.value(i))
        if self.take("{"):
            values: list[Any] = []
            while not self.take("}"):
                if values and not self.take(","):
                    raise self.error("expected , or }")
                values.append(self.value(i))
            return one_of(values)
        if self.peek() in ("[", "("):
            low_closed = self.take("[") or not self.take("(")
            low = None if self.peek() == "," else self.value(i)
            if not self.take(","):
                raise self.error("a range has two ends, such as [1, 5)")
            high = None if self.peek() in ("]", ")") else self.value(i)
            if (high_closed := self.take("]")) or self.take(")"):
                return between(low, high, low_closed, high_closed)
            raise self.error("expected ) or ]")
        return equal(self.value(i))

    def value(self, i: int) -> Any:
        attribute = self.schema.attributes[i]
        if quoted := self.scan(_QUOTED):
            raw: Any = quoted[2].replace("''", "'")
            if quoted[1]:
                try:
                    raw = bytes.fromhex(raw)
                except ValueError:
                    raise self.error("a binary value is written x'00ff'") from None
        else:
            bare = self.scan(_BARE)
            word = bare[0].strip() if bare else ""
            if not word:
                raise self.error(f"expected a value for attribute '{attribute.name}'")
            raw = _bare(word, attribute.type)
        try:
            return coerce_value(raw, attribute.type)
        except UserError as error:
            hint = error.hint
            if not quoted and (named := _NAMED.match(word)) and named[1] in self.schema.names:
                hint = f"restrictions go by place, without names, one for each of: {self.schema}"
            elif attribute.type == pa.string() and not quoted:
                hint = f"write texts in single quotes: '{word}'"
            raise UserError(
                f"pattern '{self.text}', attribute '{attribute.name}': {error.message}", hint=hint
            ) from None

    def scan(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.text, self.position)
        if found:
            self.position = found.end()
            self.skip()
        return found

    def skip(self) -> None:
        if self.text[self.position : self.position + 1].isspace():
            space = _SPACE.match(self.text, self.position)
            self.position = space.end() if space else self.position

    def peek(self) -> str:
        self.skip()
        return self.text[self.position : self.position + 1]

    def take(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self.position += 1
        self.skip()
        return True

    def error(self, what: str) -> UserError:
        return UserError(
            f"pattern '{self.text}', position {self.position + 1}: {what}",
            hint=f"write one restriction per attribute, such as [{', '.join(['*'] * len(self.schema))}]",
        )


def _bare(word: str, t: pa.DataType) -> object:
    """A value without quotes: as text for dates and timestamps, a number or truth value otherwise."""
    if pa.types.is_timestamp(t) or pa.types.is_date(t):
        return word
    if t == pa.bool_():
        return {"true": True, "false": False}.get(word.lower(), word)
    try:
        if pa.types.is_integer(t):
            return int(word)
        if pa.types.is_decimal(t):
            return Decimal(word)
        return float(word) if pa.types.is_floating(t) else _Unquoted(word)
    except (ValueError, ArithmeticError):
        return word


class _Unquoted:
    """A word where a quoted text belongs: no value of any type, but printed as it was written."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return self.word
