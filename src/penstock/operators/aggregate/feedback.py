"""What an aggregate may do about an assumed feedback.

On grouping attributes, whole groups go: their partial results are removed, none is formed again, and whatever of their
events is withheld upstream does not show. Removing without barring would let a truncated group come out, barring
without removing too: the guards stay (pinned). On values nothing can be told from one event, and little from a group
that is not complete: the results are dropped, and groups that are doomed already are looked for (`sweep`), see
`monotone`.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operators.aggregate.monotone import direction_of, stays_matched
from penstock.operators.aggregate.operator import Aggregate
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import behind_only


def respond_aggregate(operator: Aggregate, pattern: Pattern) -> Response:
    """The response of an aggregate, without windows or over windows of time.

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
    if values := values_in(operator, pattern):
        known = {a.name: a for a in operator.aggregations}
        sweep = all(
            stays_matched(pattern[n], operator.schema.type_of(n), direction_of(known[n], below)) for n in values
        )
        return when_complete(values, sweep)
    mine = pattern.onto(below.schema, {n: n for n in pattern.restricted})
    groups = Pattern(operator.schema, pattern.restrictions)
    return Response(output=True, inputs=(None,), send=((mine,),), purge=True, groups=groups, pinned=True)


def values_in(operator: Aggregate, pattern: Pattern) -> list[str]:
    """The attributes that a pattern restricts and that are computed of a group."""
    return [n for n in pattern.restricted if n not in operator.keys]


def when_complete(values: Sequence[str], sweep: bool = False) -> Response:
    """What is said of computed attributes: no event tells whether its group will match."""
    named = ", ".join(f"'{n}'" for n in values)
    return Response(
        output=True, inputs=(None,), send=((),), sweep=sweep, why=f"{named}: known when a group is complete"
    )


def respond_keeping(operator: Aggregate, pattern: Pattern, fixed: Sequence[str], why: str) -> Response:
    """The response of an aggregate whose windows take in what came before them, so that nothing stored may go.

    Groups that nobody wants stay until they are complete, and are dropped then. Of what is said of the `fixed`
    attributes nothing can be passed on, for the reason `why`.
    """
    if values := values_in(operator, pattern):
        return when_complete(values)
    if any(n in fixed for n in pattern.restricted):
        return behind_only(operator, why)
    mine = pattern.onto(operator.inputs[0].schema, {n: n for n in pattern.restricted})
    return Response(output=True, inputs=(mine,), send=((mine,),), pinned=True)
