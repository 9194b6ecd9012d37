"""What a union does about feedback."""

from __future__ import annotations

from penstock.operators.union.operator import Union
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import moved


def respond_union(operator: Union, pattern: Pattern) -> Response:
    """A result is an event of one of the inputs, so all of them are told. One guard behind does for all."""
    names = {n: n for n in operator.schema.names}
    there = [moved(pattern, i.schema, names) for i in operator.inputs]
    send = tuple((p,) if isinstance(p, Pattern) and not p.is_empty else () for p in there)
    return Response(output=True, inputs=(None,) * len(send), send=send)
