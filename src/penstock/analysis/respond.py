"""What each operator may do about an assumed feedback: drop results, drop what arrives, purge, pass it on.

`not p` says that nobody wants results that match p. An operator is right if it loses no others, alters none, and
invents none: with SR its results without the feedback and S those with it, `SR − matching ⊆ S ⊆ SR`. What it passes on
must leave that true whichever of the events that match it are withheld: all, some or none. So a pattern goes upstream
only if *every* result that an event takes part in matches p: a conjunct left out would widen it. Where an operator can
say p over its input, it drops before the work; otherwise behind it.

Joins and aggregates are in `respond_join` and `respond_aggregate`. All rules together, with their reasons, are in
docs/feedback-responses.md.
"""

from __future__ import annotations

from penstock.operators.aggregate.feedback import respond_aggregate
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.feedback import respond_impute
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.feedback import respond_join
from penstock.operators.join.operator import Join
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.feedback import respond_lookup
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.feedback import respond_map
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.feedback import respond_project
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.feedback import respond_union
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.plan.operator import Operator, unknown
from penstock.plan.response import Response
from penstock.plan.responses import before, behind_only, moved, unchanged
from penstock.plan.window import TimeWindow

#: A list of windows may lie in many pieces of time. So many are passed on; the others are dropped behind the window.
PIECES = 64


def respond(operator: Operator, pattern: Pattern) -> Response:
    """The most that an operator may do about `not pattern`, a pattern over its output.

    >>> from penstock.pattern.schema import Schema
    >>> from penstock.sql.expression import Expression
    >>> s = Schema.parse("ts int, v int")
    >>> out = Schema.parse("time int, twice int")
    >>> columns = (("time", Expression.parse("ts", s)), ("twice", Expression.parse("2 * v", s)))
    >>> project = Project((Source((), s),), out, columns=columns)
    >>> [str(p) for p in respond(project, Pattern.parse("[< 7, *]", out)).send[0]]
    ['[< 7, *]']
    >>> respond(project, Pattern.parse("[< 7, 8]", out)).why
    "'twice' is computed here"
    """
    if pattern.is_empty:
        return Response()
    found = _respond(operator, pattern)
    if not pattern.restricted and not all(found.send):
        # Nothing at all is wanted: then it does not matter what becomes of the results, as long as none comes out.
        everything = tuple(Pattern.all(i.schema) for i in operator.inputs)
        return Response(output=True, inputs=everything, send=tuple((p,) for p in everything), pinned=True)
    return found


def _respond(operator: Operator, pattern: Pattern) -> Response:
    match operator:
        case Source():
            return Response(output=True)
        case Select() | Sink() | Instrument():
            return unchanged(operator, pattern)
        case Project():
            return respond_project(operator, pattern)
        case Impute():
            return respond_impute(operator, pattern)
        case Map():
            return respond_map(operator, pattern)
        case TableJoin():
            return respond_lookup(operator, pattern)
        case Union():
            return respond_union(operator, pattern)
        case Pace():
            # Without the latest event others would not be too far behind, and come out though they never would have.
            why = f"its events tell how far `{operator.on}` has got, and so what is too far behind"
            return behind_only(operator, why)
        case Bucket():
            return _respond_bucket(operator, pattern)
        case Distinct():
            # Copies of an event match alike, so all go or none. Once its first copy is forgotten, a later one would
            # come out as new: the guard stays.
            mine = pattern.over(operator.inputs[0].schema)
            return Response(inputs=(mine,), send=((mine,),), purge=True, pinned=True)
        case OrderBy() if operator.slack is not None:
            return behind_only(operator, "each event pushes another one out of the buffer")
        case OrderBy():
            # Whatever the order of the others becomes, they all come out.
            mine = pattern.over(operator.inputs[0].schema)
            return Response(inputs=(mine,), send=((mine,),), purge=True)
        case Limit():
            # The first n are counted before anybody looks at them.
            return behind_only(operator, "what is dropped before it would let others in")
        case Top():
            if not pattern.describes(operator.per):
                return behind_only(operator, "a worse event would take the place of one that is dropped")
            # Whole groups go, and other groups do not depend on them. One that formed again would hold too little.
            mine = pattern.over(operator.inputs[0].schema)
            return Response(output=True, inputs=(mine,), send=((mine,),), purge=True, pinned=True)
        case Aggregate():
            return respond_aggregate(operator, pattern)
        case Join() | MultiJoin():
            return respond_join(operator, pattern)
        case _:
            raise unknown(operator, "what it may do about feedback")


def _respond_bucket(operator: Bucket, pattern: Pattern) -> Response:
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
