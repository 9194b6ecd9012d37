"""Restrictions in their simplest form, and read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.pattern.restriction.base import ANY, Restriction
from penstock.pattern.restriction.canonical import CLASSES, PLAIN_IN_JSON
from penstock.pattern.restriction.interval import Range, between
from penstock.pattern.restriction.values import Equal, OneOf, one_of
from penstock.pattern.types import value_from_json


def normal(restriction: Restriction) -> Restriction:
    """The simplest form: a list of one value is that value, a range of one value too, a crossed range is nothing."""
    if type(restriction) is OneOf:
        return Equal(restriction.values[0]) if len(restriction.values) == 1 else restriction
    if type(restriction) is Range:
        return between(restriction.low, restriction.high, restriction.low_closed, restriction.high_closed)
    return restriction


def values_of(restriction: Restriction) -> tuple[Any, ...]:
    """The values that a value or a list names."""
    return restriction.named


def restriction_from_json(stored: Any, t: pa.DataType) -> Restriction:
    """The restriction that `to_json` stored.

    >>> from decimal import Decimal
    >>> from penstock.pattern.restriction import at_most
    >>> print(restriction_from_json(at_most(Decimal("1.50")).to_json(), pa.decimal128(5, 2)))
    <= 1.50
    """
    if stored == "*":
        return ANY
    if isinstance(stored, Mapping):
        if "equal" in stored:
            return Equal(value_from_json(stored["equal"], t))
        if "one_of" in stored:
            plain = CLASSES.get(t) in PLAIN_IN_JSON
            return one_of(stored["one_of"] if plain else (value_from_json(v, t) for v in stored["one_of"]))
        low, high = value_from_json(stored["low"], t), value_from_json(stored["high"], t)
        return between(low, high, *stored["closed"])
    raise ValueError(f"not a restriction: {stored!r}")
