"""What each operator of the algebra offers: given what arrives, is its state bounded, do results appear, what flows on.

One small function per operator holds its general form, which no schema enters: which templates release what it keeps,
and which it gives behind it. The rules are those that the engine follows (`through`, `behave`, `meet`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.contract.contract import Contract
from penstock.contract.flow import (
    Flow,
    Origin,
    Tags,
    Verdict,
    behind,
    goes_on,
    least,
    promised_by,
)
from penstock.contract.limited import limited
from penstock.contract.passing import passing
from penstock.contract.template import Scheme
from penstock.operators.aggregate.contract import judge_aggregate
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.contract import judge_distinct
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.contract import judge_impute
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.contract import judge_join, judge_multijoin, judge_rows_join
from penstock.operators.join.operator import Join
from penstock.operators.limit.contract import judge_limit
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.contract import judge_map
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.contract import judge_order
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.contract import judge_pace
from penstock.operators.pace.operator import Pace
from penstock.operators.project.contract import judge_project
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.contract import judge_source
from penstock.operators.source.operator import Source
from penstock.operators.top.contract import judge_top
from penstock.operators.top.operator import Top
from penstock.operators.union.contract import judge_union
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.domain import domains
from penstock.plan.operator import Operator, unknown
from penstock.plan.plan import Plan
from penstock.plan.window import CountWindow, TimeWindow, Window

#: From so many windows for each event on, a check says how many there are.
_MANY = 100
#: Verdicts by operator, by what arrives there.
Memo = dict[tuple[object, ...], Verdict]


def weigh(plan: Plan, more: Mapping[str, Scheme] | None = None, memo: Memo | None = None) -> dict[str, Verdict]:
    """The verdict on every operator of a plan, in the direction of the stream.

    `more` adds templates to sources, by name: what if they promised that too? With a `memo`, an operator for which the
    same arrives as in an earlier call is not judged again.
    """
    found: dict[str, Verdict] = {}
    known = {} if memo is None else memo
    for node in plan.nodes:
        added = more.get(node.operator.name) if more and isinstance(node.operator, Source) else None
        below = [found[i].behind for i in node.inputs]
        key = (node.id, added, *(part for flow in below for part in (frozenset(flow.promised.items()), flow.open)))
        verdict = known.get(key)
        if verdict is None:
            verdict = judge(node.operator, below)
            if added is not None:
                flow = verdict.behind
                promised = least([*flow.promised.items(), *promised_by(added).items()])
                verdict = replace(verdict, behind=replace(flow, promised=promised))
            known[key] = verdict
        found[node.id] = verdict
    return found


def offering(operator: Operator, arriving: Sequence[Scheme]) -> tuple[Contract, ...]:
    """The contracts that an operator offers for what arrives, the strongest first: all it can promise, then its parts.

    Empty if its state has no bound under what arrives, or results would not appear.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.contract.template import Template
    >>> rides = Stream(Source((), Schema.parse("ts int, trip int"), name="rides"))
    >>> count = rides.group_by("trip").agg(n="count(*)").operator
    >>> for template in ("[[ts:-, trip:#]]", "[[ts:+, trip:-]]"):
    ...     print(*offering(count, [Scheme.of(Template.parse(template, rides.schema))]))
    {[[ts:-, trip:#]]} -> {[[trip:#, n:-]]}
    <BLANKLINE>
    """
    # Where an attribute comes from is told in terms of the inputs: so the lineage of the output can be read off.
    below = [
        Flow(
            i.schema,
            promised=promised_by(scheme),
            origins={n: (Origin(str(k), n),) for n in i.schema.names},
            finite=domains(i),
        )
        for k, (i, scheme) in enumerate(zip(operator.inputs, arriving, strict=True))
    ]
    verdict = judge(operator, below)
    if not verdict.safe:
        return ()
    strongest = verdict.behind.scheme
    parts = [Scheme.of(t) for t in strongest] if len(strongest) > 1 else []
    lineage = frozenset(
        (name, int(o.stream), o.attribute)
        for name, origins in (verdict.behind.origins if operator.inputs else {}).items()
        for o in origins
        if not o.label
    )
    return tuple(Contract(tuple(arriving), (scheme,), lineage=lineage) for scheme in (strongest, *parts))


def judge(operator: Operator, below: Sequence[Flow]) -> Verdict:
    """The verdict on one operator, given what is known of its inputs."""
    verdict = _judge(operator, below)
    return limited(verdict) if below and all(flow.limited for flow in below) else verdict


def _judge(operator: Operator, below: Sequence[Flow]) -> Verdict:
    match operator:
        case Source():
            return judge_source(operator)
        case Project():
            return judge_project(operator, below[0])
        case Impute():
            return judge_impute(operator, below[0])
        case Map():
            return judge_map(operator, below[0])
        case Union():
            return judge_union(operator, below)
        case Bucket():
            return _bucket(operator, below[0])
        case Aggregate():
            return judge_aggregate(operator, below[0])
        case Distinct():
            return judge_distinct(operator, below[0])
        case OrderBy():
            return judge_order(operator, below[0])
        case Pace():
            return judge_pace(operator, below)
        case Limit():
            return judge_limit(operator, below[0])
        case Top():
            return judge_top(operator, below[0])
        case Join() if operator.rows is not None:
            return judge_rows_join(operator, below)
        case Join():
            return judge_join(operator, below)
        case MultiJoin():
            return judge_multijoin(operator, below)
        case Select() | TableJoin() | Instrument() | Sink():
            return passing(operator, below[0])
        case _:
            raise unknown(operator, "whether its state is bounded and results appear")


def _bucket(operator: Bucket, below: Flow) -> Verdict:
    """In: {[[W:+, X]]}, Out: the same and {[[label:+, X]]}. Windows by count have labels that no template speaks of."""
    window = operator.window
    promised = list(below.promised.items())
    origins = dict(below.origins)
    if window.on is not None and not isinstance(window, CountWindow):
        for tags, assumed in below.promised.items():
            if (window.on, "+") in tags:
                labelled: Tags = tags - {(window.on, "+")} | {(window.label, "+")}
                promised.append((labelled, assumed | goes_on(below, window.on, tags)))
        origins[window.label] = tuple(replace(o, label=True) for o in below.origins.get(window.on, ()))
    return Verdict("none", "at once", behind(operator, below, least(promised), origins), _overlapping(window))


def _overlapping(window: Window) -> tuple[str, ...]:
    """How many windows an event is in, where that is so many that one should know: what is behind has to hold them."""
    if not isinstance(window, TimeWindow | CountWindow):
        return ()
    many = -(-window.size // window.slide)
    return (f"every event is in {many:,} windows, and counts in each",) if many >= _MANY else ()
