"""Values made up, where one example stands for all: what becomes of a feedback hardly depends on the values in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction
from penstock.pattern.schema import Schema


def example(t: pa.DataType) -> Any:
    """Some value of a type.

    >>> example(pa.int32()), example(pa.string())
    (0, 'm')
    """
    if pa.types.is_timestamp(t):
        return datetime(2026, 1, 1)
    if pa.types.is_date(t):
        return date(2026, 1, 1)
    if pa.types.is_boolean(t):
        return True
    if pa.types.is_decimal(t):
        return Decimal(0)
    if pa.types.is_string(t):
        return "m"
    return b"m" if pa.types.is_binary(t) else 0


def such(schema: Schema, restricted: Mapping[str, Callable[[Any], Restriction]]) -> Pattern:
    """A pattern that restricts these attributes in these ways.

    >>> from penstock.pattern.restriction import less
    >>> print(such(Schema.parse("a int, b int"), {"b": less}))
    [*, < 0]
    """
    return Pattern.by_name(schema, {n: how(example(schema.type_of(n))) for n, how in restricted.items()})


def unwanted(schema: Schema, restricted: Mapping[str, Callable[[Any], Restriction]]) -> Feedback:
    """The feedback that nobody wants such events."""
    return Feedback(Intent.ASSUMED, such(schema, restricted))
