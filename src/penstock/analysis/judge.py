"""What each operator of a plan offers: given what arrives, is its state bounded, do results appear, what flows on.

Each operator answers for itself (`Spec.judge`); here the answers are put together, in the direction of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.contract.flow import Flow, Verdict, least, promised_by
from penstock.contract.template import Scheme
from penstock.contract.verdicts import limited
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of

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
        added = more.get(getattr(node.operator, "name", "")) if more and not node.inputs else None
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


def judge(operator: Operator, below: Sequence[Flow]) -> Verdict:
    """The verdict on one operator, given what is known of its inputs."""
    verdict: Verdict = spec_of(operator).judge(operator, below)
    return limited(verdict) if below and all(flow.limited for flow in below) else verdict
