"""What operators do about assumed feedback."""

from __future__ import annotations

from penstock.algebra.operator import Operator
from penstock.algebra.pattern import Pattern
from penstock.algebra.response import Response


def respond(operator: Operator, pattern: Pattern) -> Response:
    """The response of one operator to `not pattern`."""
    return Response(output=True, why="it drops results only")
