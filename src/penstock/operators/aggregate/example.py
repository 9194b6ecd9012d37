"""Random groups and what to compute of them, for tests of random plans."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from penstock.pattern.schema import Schema


def some_groups(random: Random, below: Any, schema: Schema) -> Any:
    """A stream, or windows of it, grouped by up to two attributes of a schema: a count, and mostly something more."""
    names = [a.name for a in schema if not pa.types.is_nested(a.type) and not pa.types.is_floating(a.type)]
    numbers = [a.name for a in schema if pa.types.is_integer(a.type)]
    keys = random.sample(names, min(len(names), random.choice((0, 1, 1, 2))))
    computed = {_fresh("n", schema): "count(*)"}
    if numbers and random.random() < 0.7:
        function = random.choice(("max", "min", "sum", "count"))
        computed[_fresh("m", schema)] = f"{function}(`{random.choice(numbers)}`)"
    return below.group_by(*keys).agg(**computed)


def _fresh(name: str, schema: Schema) -> str:
    """A name that no attribute has: joins further on are easier to write so."""
    names = (f"{name}{k}" for k in range(1, len(schema) + 2))
    return next(n for n in names if schema.resolve(n) is None)
