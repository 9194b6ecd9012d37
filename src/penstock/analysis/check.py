"""The check of a plan before it starts: operator by operator, is state bounded, do all results appear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.analysis.feedback_findings import guarding
from penstock.analysis.fix import fixes, fixes_at_the_end
from penstock.analysis.judge import weigh
from penstock.contract.flow import AttributeOrigin, Flow, Verdict, ordered
from penstock.contract.report import Finding, Report, State
from penstock.plan.plan import Node, Plan


def check(plan: Plan, *, bounded: bool = False) -> Report:
    """The verdict on a plan, with the smallest declarations that would make it safe if it is not.

    A `bounded` run reads what is there and stops. Operators whose sources all say when they are over (`ends()`) are
    then safe whatever else is promised: what they keep is released at the end. Feedback makes no plan unsafe, as little
    is kept of it; the findings say where it could live for ever.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> rides = StreamBuilder(Source((), Schema.parse("ts timestamp, trip int", "ts"), name="rides"))
    >>> report = check(rides.group_by("trip").agg(n="count(*)").plan)
    >>> report.safe, report.culprit.operator, report.culprit.needs, report.fixes[0].stream
    (False, 'aggregate-1', ('rides: trip: each value',), 'rides')
    >>> check(rides.disorder("5 s").window("1 min").group_by("trip").agg(n="count(*)").plan).safe
    True
    """
    verdicts = weigh(plan)
    told = guarding(plan, verdicts, bounded)
    found = (_finding(plan, node, verdicts, bounded) for node in plan.nodes)
    findings = tuple(replace(f, feedback=told.get(f.operator, ())) for f in found)
    unsafe = [f.operator for f in findings if not f.safe]
    offered = (fixes_at_the_end(plan, unsafe) if bounded else ()) + fixes(plan) if unsafe else ()
    return Report(findings, {i: v.behind.words for i, v in verdicts.items()}, offered)


def _finding(plan: Plan, node: Node, verdicts: Mapping[str, Verdict], bounded: bool) -> Finding:
    verdict = verdicts[node.id]
    detail = node.operator.detail
    why = verdict.why
    if bounded and (end := verdict.at_the_end) is not None:
        why = (*why, end)
        state: State = "bounded" if verdict.state == "unbounded" else verdict.state
        return Finding(node.id, detail, state, "at once" if verdict.output == "at once" else "complete", why)
    if not verdict.safe:
        why += _lost(plan, node, verdicts)
    return Finding(node.id, detail, verdict.state, verdict.output, why, verdict.needs, verdict.assumes)


def _lost(plan: Plan, node: Node, verdicts: Mapping[str, Verdict]) -> tuple[str, ...]:
    """Where a promise that a source makes, and that would help here, does not get through."""
    found = []
    for k, attribute in verdicts[node.id].useful:
        flow = verdicts[node.inputs[k]].behind
        for origin in flow.origins.get(attribute, ()):
            source = verdicts[f"source:{origin.stream}"].behind
            if _told(source, origin) and not _told(flow, origin):
                said = source.say(next(t for t in ordered(source.promised) if {n for n, _ in t} == {origin.attribute}))
                where = _where(plan, plan[node.inputs[k]], origin, verdicts)
                found.append(f"`{said}` of {origin.stream} does not get through {where.id}: {where.operator.detail}")
    return tuple(dict.fromkeys(found))


def _where(plan: Plan, node: Node, origin: AttributeOrigin, verdicts: Mapping[str, Verdict]) -> Node:
    """The operator, from here towards the source, in front of which the promise still is."""
    while not any(_told(verdicts[i].behind, origin) for i in node.inputs):
        carrying = [i for i in node.inputs if _names(verdicts[i].behind, origin)]
        if not carrying:
            break
        node = plan[carrying[0]]
    return node


def _told(flow: Flow, origin: AttributeOrigin) -> bool:
    """Whether a template speaks of what comes from there alone."""
    names = _names(flow, origin)
    return any({n for n, _ in tags} <= names for tags in flow.promised)


def _names(flow: Flow, origin: AttributeOrigin) -> set[str]:
    place = (origin.stream, origin.attribute)
    return {n for n, known in flow.origins.items() if any((o.stream, o.attribute) == place for o in known)}
