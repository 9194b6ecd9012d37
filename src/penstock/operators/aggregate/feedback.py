"""What an aggregate may do about an assumed feedback.

On grouping attributes, whole groups go: their partial results are removed, none is formed again, and whatever of their
events is withheld upstream does not show. Removing without barring would let a truncated group come out, barring
without removing too: the guards stay (pinned). On values nothing can be told from one event, and little from a group
that is not complete: the results are dropped, and groups that are doomed already are looked for (`sweep`), see
`monotone`.
"""

from __future__ import annotations

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.window.operator import Bucket
from penstock.pattern.pattern import Pattern
from penstock.plan.monotone import direction_of, stays_matched
from penstock.plan.response import Response
from penstock.plan.window import CountWindow, LandmarkWindow


def respond_aggregate(operator: Aggregate, pattern: Pattern) -> Response:
    """The response of an aggregate, with or without windows.

    >>> from penstock.sql.aggregation import Aggregation
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> probes, out = Schema.parse("wid int, speed int"), Schema.parse("wid int, top int")
    >>> top = (Aggregation.parse("top", "max(speed)", probes),)
    >>> tops = Aggregate((Source((), probes),), out, keys=("wid",), aggregations=top)
    >>> r = respond_aggregate(tops, Pattern.parse("[< 20, *]", out))
    >>> print(r.groups, *r.send[0], r.pinned)
    [< 20, *] [< 20, *] True
    >>> r = respond_aggregate(tops, Pattern.parse("[*, >= 50]", out))
    >>> r.output, r.groups, r.send, r.sweep
    (True, None, ((),), True)
    """
    below = operator.inputs[0]
    window = below.window if isinstance(below, Bucket) else None
    special = isinstance(window, CountWindow | LandmarkWindow)
    values = [n for n in pattern.restricted if n not in operator.keys]
    if values:
        known = {a.name: a for a in operator.aggregations}
        sweep = not special and all(
            stays_matched(pattern[n], operator.schema.type_of(n), direction_of(known[n], below)) for n in values
        )
        named = ", ".join(f"'{n}'" for n in values)
        return Response(
            output=True, inputs=(None,), send=((),), sweep=sweep, why=f"{named}: known when a group is complete"
        )
    if isinstance(window, LandmarkWindow) and pattern.restricted:
        # At the end, every group has results up to the latest event of all: an event of another group, or one after
        # the windows in question, may be that one.
        return Response(output=True, inputs=(None,), send=((),), why="an event counts for all later landmark windows")
    if isinstance(window, CountWindow) and window.label in pattern.restricted:
        why = "an event less would shift all later windows of its group"
        return Response(output=True, inputs=(None,), send=((),), why=why)
    mine = pattern.onto(below.schema, {n: n for n in pattern.restricted})
    if special:
        # What is stored of such groups stays until they are complete, and is dropped then.
        return Response(output=True, inputs=(mine,), send=((mine,),), pinned=True)
    groups = Pattern(operator.schema, pattern.restrictions)
    return Response(output=True, inputs=(None,), send=((mine,),), purge=True, groups=groups, pinned=True)
