"""What a window may do about an assumed feedback."""

from __future__ import annotations

from penstock.operators.window.operator import Bucket
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import before, moved
from penstock.plan.window import TimeWindow

#: A list of windows may lie in many pieces of time. So many are passed on; the others are dropped behind the window.
PIECES = 64


def respond_window(operator: Bucket, pattern: Pattern) -> Response:
    """An event may go if all its windows may. Attributes but the label are those of the event, in all its windows.

    Windows by count shift when an event goes. But only an aggregate can be behind them, and that passes on whole
    groups alone and guards them itself: there is nobody left whom the shift could hurt.
    """
    window, schema = operator.window, operator.inputs[0].schema
    kept = {n: n for n in schema.names}
    if window.label not in pattern.restricted:
        return before(operator, pattern, kept)
    others = Pattern.by_name(operator.schema, {n: pattern[n] for n in pattern.restricted if n != window.label})
    mine = moved(others, schema, kept)
    assert isinstance(mine, Pattern)
    pieces = []
    for times in window.confined_to(pattern[window.label])[:PIECES]:
        assert window.on is not None
        here = Pattern.by_name(schema, {window.on: fitted(times, schema.type_of(window.on))}).intersect(mine)
        if not here.is_empty:
            pieces.append(here)
    return Response(
        # Windows that only their aggregate can tell are guarded there.
        output=isinstance(window, TimeWindow),
        inputs=(pieces[0] if len(pieces) == 1 else None,),
        send=(tuple(pieces),),
        why="" if pieces else f"every event is in a window that is wanted too: {window!r}",
    )
