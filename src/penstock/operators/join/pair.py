"""Pairs of events, as a residual predicate sees them."""

from __future__ import annotations

from penstock.operators.join.operator import Joined
from penstock.pattern.schema import Attribute, Schema


def pair_schema(join: Joined) -> Schema:
    """The attributes of a pair of events, under the names a residual predicate knows them by."""
    return Schema(tuple(Attribute(n, join.inputs[side].schema.type_of(a)) for side, a, n in join.pair))
