"""What `top` does about feedback, and what it tells upstream itself."""

from __future__ import annotations

from penstock.operators.top.operator import Top
from penstock.pattern.example import unwanted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import equal, greater, less
from penstock.plan.response import Response
from penstock.plan.responses import behind_only
from penstock.plan.spec import Told


def respond_top(operator: Top, pattern: Pattern) -> Response:
    """Whole groups may go: other groups do not depend on them. One that formed again would hold too little."""
    if not pattern.describes(operator.per):
        return behind_only(operator, "a worse event would take the place of one that is dropped")
    mine = pattern.over(operator.inputs[0].schema)
    return Response(output=True, inputs=(mine,), send=((mine,),), purge=True, pinned=True)


def issues_of(operator: Top) -> list[Told]:
    """Events worse than the last of a group that is full, by the first attribute of the order."""
    if not operator.order:
        return []
    first, down = operator.order[0]
    worse = {**dict.fromkeys(operator.per, equal), first: less if down else greater}
    return [Told(0, unwanted(operator.inputs[0].schema, worse), widening=not operator.per)]
