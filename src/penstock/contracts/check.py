"""The check of a plan before it starts: operator by operator, is state bounded, do all results appear."""

from __future__ import annotations

from penstock.algebra.operator import Source
from penstock.algebra.plan import Node, Plan
from penstock.contracts.fix import fixes, fixes_at_the_end
from penstock.contracts.flow import Verdict
from penstock.contracts.offering import weigh
from penstock.contracts.report import Finding, Report


def check(plan: Plan, *, bounded: bool = False) -> Report:
    """The verdict on a plan, with the smallest declarations that would make it safe if it is not.

    A `bounded` run reads what is there and stops. Operators whose sources all say when they are over (`ends()`) are
    then safe whatever else is promised: what they keep is released at the end.

    >>> from penstock.algebra.builder import Stream
    >>> from penstock.algebra.schema import Schema
    >>> rides = Stream(Source((), Schema.parse("ts timestamp, trip int", "ts"), name="rides"))
    >>> report = check(rides.group_by("trip").agg(n="count(*)").plan)
    >>> report.safe, report.culprit.operator, report.culprit.needs, report.fixes[0].stream
    (False, 'aggregate-1', ('rides: trip: each value',), 'rides')
    >>> check(rides.disorder("5 s").window("1 min").group_by("trip").agg(n="count(*)").plan).safe
    True
    """
    verdicts = weigh(plan)
    findings = tuple(_finding(node, verdicts, bounded) for node in plan.nodes)
    unsafe = [f.operator for f in findings if not f.safe]
    offered = (fixes_at_the_end(plan, unsafe) if bounded else ()) + fixes(plan) if unsafe else ()
    return Report(findings, {i: v.behind.words for i, v in verdicts.items()}, offered)


def _finding(node: Node, verdicts: dict[str, Verdict], bounded: bool) -> Finding:
    verdict = verdicts[node.id]
    detail = node.operator.detail
    if bounded and not verdict.safe and verdict.behind.ends and not isinstance(node.operator, Source):
        why = (*verdict.why, f"all of it is released at the end of the run, which {verdict.behind.name} will tell")
        state = "bounded" if verdict.state == "unbounded" else verdict.state
        return Finding(node.id, detail, state, "at once" if verdict.output == "at once" else "complete", why)
    return Finding(node.id, detail, verdict.state, verdict.output, verdict.why, verdict.needs, verdict.assumes)
