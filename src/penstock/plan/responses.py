"""Answers to feedback that several operators give alike."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction
from penstock.pattern.schema import Schema
from penstock.plan.operator import Operator
from penstock.plan.response import Response


def behind_only(operator: Operator, why: str) -> Response:
    """Drop matching results, and no more: right for every operator."""
    count = len(operator.inputs)
    return Response(output=True, inputs=(None,) * count, send=((),) * count, why=why)


def moved(pattern: Pattern, schema: Schema, names: Mapping[str, str]) -> Pattern | str:
    """The pattern over another schema, from name to name, or the first attribute that has no counterpart there.

    Restrictions of two attributes that are one there hold both.
    """
    found: dict[str, Restriction] = {}
    for name in pattern.restricted:
        if name not in names:
            return name
        there = names[name]
        mine, its = pattern.schema.type_of(name), schema.type_of(there)
        if mine != its and not (pa.types.is_integer(mine) and pa.types.is_integer(its)):
            return name
        found[there] = found.get(there, ANY).intersect(fitted(pattern[name], its))
    return Pattern.by_name(schema, found)


def before(operator: Operator, pattern: Pattern, names: Mapping[str, str], otherwise: str = "") -> Response:
    """Drop on arrival and pass on what can be said over the one input; otherwise drop results."""
    mine = moved(pattern, operator.inputs[0].schema, names)
    if isinstance(mine, str):
        return behind_only(operator, f"'{mine}' is {otherwise}")
    if mine.is_empty:
        return Response()  # One attribute under two names, restricted to values that exclude each other.
    return Response(inputs=(mine,), send=((mine,),))
