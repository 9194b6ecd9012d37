"""Punctuations in band: records of a file that say what is over, in one of three forms.

Pattern text, `[<= 10, *]`; in JSON lines also an object by attribute name, `{"trip": 4711}`; or companion columns: a
mark that the record is a punctuation, whose own columns then say which values are over, null meaning `*`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.promises.counting import read_count
from penstock.engine.source.promises.points import ValuePoints, sort_points
from penstock.errors import UserError, did_you_mean
from penstock.kernels.ticks import Ticks
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, at_least, at_most, equal, greater, less, one_of
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.count import Count
from penstock.plan.promise import Counted, InBand, Promise

#: The column for punctuation, unless another is named.
PUNCTUATION = InBand().column
#: What a companion column of an attribute says of it, by the end of its name.
_SUFFIXES = {"_upto": at_most, "_below": less, "_from": at_least}
_COMPARISONS = {"<=": at_most, "≤": at_most, "<": less, ">=": at_least, "≥": at_least, ">": greater}
_FALSE = ("", "0", "false", "f", "no", "n")

_EVERYTHING = r"^\s*\[\s*\*\s*(,\s*\*\s*)*\]\s*$"

Point = tuple[int, Pattern]


@dataclass(frozen=True)
class BandColumns:
    """The columns of a file that make records punctuations; `beside` are companions, none of which must be there."""

    column: str
    companion: bool = False
    beside: tuple[Attribute, ...] = ()
    #: Whether records say how many events there are.
    counted: Counted | None = None

    @classmethod
    def of(cls, promises: Sequence[Promise], schema: Schema) -> BandColumns | None:
        promise = next((p for p in promises if isinstance(p, InBand)), None)
        if promise is None:
            return None
        named = [Attribute(a.name + end, a.type) for a in schema for end in _SUFFIXES if a.name + end not in schema]
        counted = next((p for p in promises if isinstance(p, Counted)), None)
        return cls(promise.column, promise.companion, tuple(named) if promise.companion else (), counted)


def marked(column: pa.ChunkedArray, band: BandColumns) -> Mask:
    """Which records are punctuations."""
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    no = pc.is_in(pc.utf8_lower(text), pa.array(_FALSE)) if band.companion else pc.equal(text, "")
    mask: Mask = pc.and_(pc.is_valid(text), pc.invert(pc.fill_null(no, True))).to_numpy()
    return mask


@dataclass(frozen=True)
class Punctuations:
    """What the marked records say, and why some say nothing: by the position of the record."""

    patterns: tuple[Point, ...] = ()
    values: tuple[ValuePoints, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    counts: tuple[tuple[int, Count], ...] = ()


def written(
    texts: Sequence[Any], at: Ticks, before: Ticks, schema: Schema, counted: Counted | None = None
) -> Punctuations:
    """Punctuations from text. `at` are the positions of the records, `before` those of the events they stand before."""
    column = pa.array([str(t) for t in texts], pa.string())
    plain, left = _plain_values(column, schema)
    points: list[Point] = []
    failed: dict[int, str] = {}
    counts: list[tuple[int, Count]] = []
    read: dict[str, Pattern] = {}
    for k in left.tolist():
        text, i = str(texts[k]), int(at[k])
        try:
            if counted is not None and (said := _counting(text)) is not None:
                counts.append((int(before[i]), read_count(said, counted, schema)))
                continue
            pattern = read.get(text) or read_text(text, schema)
            points.append((int(before[i]), pattern))
            read[text] = pattern
        except UserError as error:
            failed[i] = f"punctuation '{text}': {error}"
    patterns, values = sort_points(points, schema)
    found = {v.attributes: v for v in values}
    for name, (chosen, named) in plain.items():
        places = before[at[chosen]]
        if (other := found.get((name,))) is not None:
            places, named = np.concatenate([other.at, places]), pa.concat_tables([other.values, named])
        found[name,] = ValuePoints(schema, places, named)
    return Punctuations(patterns, tuple(found.values()), failed, tuple(counts))


def _counting(text: str) -> dict[str, Any] | None:
    """The object of a record that counts; None if it says something else."""
    if '"count"' not in text:
        return None
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said if isinstance(said, dict) and "count" in said else None


def _plain_values(texts: pa.Array, schema: Schema) -> tuple[dict[str, tuple[Ticks, pa.Table]], Ticks]:
    """Texts that name one whole number or one plain text, such as `[*, 4711, *]`, read by column; and the others.

    Reading a text as a pattern takes a fifth of a millisecond, and of this kind there may be a million.
    """
    found: dict[str, tuple[Ticks, pa.Table]] = {}
    left = np.arange(len(texts))
    for i, attribute in enumerate(schema):
        if pa.types.is_integer(attribute.type):
            # One digit less than the type has, so that it fits without a look.
            value = rf"-?\d{{1,{len(str(2 ** (attribute.type.bit_width - 1))) - 1}}}"
        elif pa.types.is_string(attribute.type):
            value = r"'[^']*'"
        else:
            continue
        parts = [r"\*"] * i + [f"({value})"] + [r"\*"] * (len(schema) - i - 1)
        shape = r"^\s*\[\s*" + r"\s*,\s*".join(parts) + r"\s*\]\s*$"
        rest = texts.take(pa.array(left))
        mask = pc.match_substring_regex(rest, shape).to_numpy(zero_copy_only=False).astype(bool)
        if not mask.any():
            continue
        named = pc.replace_substring_regex(rest.filter(pa.array(mask)), shape, r"\1")
        if pa.types.is_string(attribute.type):
            named = pc.utf8_trim(named, "'")
        found[attribute.name] = left[mask], pa.table({attribute.name: named.cast(attribute.type)})
        left = left[~mask]
    return found, left


def read_text(text: str, schema: Schema) -> Pattern:
    """A pattern from its text, or from a JSON object by attribute name.

    >>> s = Schema.parse("ts int, sensor int, v double")
    >>> print(read_text('{"ts": {"<=": 7}, "sensor": [3, 4]}', s), read_text("[*, 4, *]", s))
    [<= 7, {3, 4}, *] [*, 4, *]
    """
    if not text.lstrip().startswith("{"):
        return _telling(Pattern.parse(text, schema))
    try:
        found = json.loads(text)
    except ValueError:
        raise UserError("not a JSON object", hint='such as {"trip": 4711}') from None
    restrictions: dict[str, Restriction | object] = {}
    for name, said in found.items():
        if name not in schema:
            raise UserError(f"there is no attribute '{name}'", hint=did_you_mean(name, schema.names))
        restrictions[name] = _restriction(name, said)
    made = Pattern.by_name(schema, restrictions)
    if not made.restricted:
        raise _the_end(schema, f'name what is over, such as {{"{schema.names[0]}": …}}')
    return _telling(made)


def _telling(pattern: Pattern) -> Pattern:
    if pattern.is_empty:
        raise UserError("it matches no event", hint="an empty list or range is a slip: name what is over")
    return pattern


def _the_end(schema: Schema, hint: str) -> UserError:
    """A value left out or a name misspelt must not end a stream: whoever means its end writes so."""
    everything = ", ".join("*" for _ in schema)
    said = f"{hint}; for the end of the stream write [{everything}]"
    return UserError("it restricts nothing, as if the stream were over", hint=said)


def _restriction(name: str, said: Any) -> Restriction:
    if said is None or said == "*":
        return ANY
    if isinstance(said, list):
        return one_of(said)
    if not isinstance(said, dict):
        return equal(said)
    found = ANY
    for sign, value in said.items():
        if sign not in _COMPARISONS:
            raise UserError(f"'{name}': '{sign}' is not a comparison", hint="one of < <= > >=")
        found = found.intersect(_COMPARISONS[sign](value))
    return found


def beside(
    table: pa.Table,
    companions: Mapping[str, pa.ChunkedArray],
    marks: pa.ChunkedArray,
    at: Ticks,
    before: Ticks,
    schema: Schema,
) -> Punctuations:
    """Punctuations from companion columns; those that only name values are taken together, by attributes named."""
    rows = table.take(pa.array(at))
    told = {n: c.take(pa.array(at)) for n, c in companions.items() if c.null_count < len(c)}
    ranged = np.zeros(len(at), bool)
    for column in told.values():
        ranged |= column.is_valid().to_numpy()
    named = np.zeros((len(at), len(schema)), bool)
    failed: dict[int, str] = {}
    for i, attribute in enumerate(schema):
        named[:, i] = rows.column(attribute.name).is_valid().to_numpy()
        if pa.types.is_floating(attribute.type):
            for k in np.flatnonzero(pc.fill_null(pc.is_nan(rows.column(attribute.name)), False).to_numpy()).tolist():
                failed[int(at[k])] = f"punctuation: '{attribute.name}' is NaN, which no pattern can name"
    end = np.zeros(len(at), bool)
    if pa.types.is_string(marks.type) or pa.types.is_large_string(marks.type):
        end = pc.match_substring_regex(marks, _EVERYTHING).to_numpy()
        for k in np.flatnonzero(pc.match_substring_regex(marks, r"^\s*[\[{]").to_numpy() & ~end).tolist():
            failed[int(at[k])] = (
                f"punctuation '{marks[k]}': with companion=True this column is a mark, true or false, and the other "
                "columns say what is over. Hint: for pattern text and objects declare punctuated() without companion"
            )
    good = np.ones(len(at), bool)
    good[[k for k, i in enumerate(at.tolist()) if i in failed]] = False
    values = []
    plain = np.flatnonzero(~ranged & good & named.any(axis=1))
    if len(plain):
        kinds, which = np.unique(named[plain], axis=0, return_inverse=True)
        for k, kind in enumerate(kinds):
            chosen = plain[which.reshape(-1) == k]
            names = [n for n, there in zip(schema.names, kind) if there]
            values.append(ValuePoints(schema, before[at[chosen]], rows.select(names).take(pa.array(chosen))))
    points: list[Point] = []
    for k in np.flatnonzero((ranged | ~named.any(axis=1)) & good).tolist():
        try:
            pattern = _telling(_beside_pattern(rows, told, k, schema))
            if not pattern.restricted and not end[k]:
                ranges = " or ".join(schema.names[0] + suffix for suffix in _SUFFIXES)
                raise _the_end(schema, f"say what is over in {', '.join(schema.names)}, or in columns such as {ranges}")
            points.append((int(before[at[k]]), pattern))
        except UserError as error:
            failed[int(at[k])] = f"punctuation: {error}"
    return Punctuations(tuple(points), tuple(values), failed)


def _beside_pattern(rows: pa.Table, told: Mapping[str, pa.ChunkedArray], k: int, schema: Schema) -> Pattern:
    restrictions: dict[str, Restriction | object] = {}
    for name in schema.names:
        value = rows.column(name)[k].as_py()
        found = ANY if value is None else equal(value)
        for end, compare in _SUFFIXES.items():
            limit = told[name + end][k].as_py() if name + end in told else None
            if limit is not None:
                found = found.intersect(compare(limit))
        restrictions[name] = found
    return Pattern.by_name(schema, restrictions)
