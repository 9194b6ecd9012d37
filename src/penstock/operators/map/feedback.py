"""What a user's function lets pass of feedback."""

from __future__ import annotations

from penstock.operators.map.operator import Map
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import before


def respond_map(operator: Map, pattern: Pattern) -> Response:
    """Of attributes that the function does not keep nobody knows what it makes of them."""
    return before(operator, pattern, {n: n for n in operator.keeps}, "not among those that the function keeps")
