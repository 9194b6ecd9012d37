"""The feedback part of the check: what operators of a plan will tell upstream, and what somebody outside may.

For each operator that would keep some of it, what becomes of that. A consumer may say anything; one example for each
attribute and direction stands for it. What restricts several attributes is narrower and mostly goes sooner; of one
such feedback `forgettable` gives the exact answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.analysis.feedback_check import Lasting, forgettable, outline, worst
from penstock.analysis.probe import issues, probes
from penstock.contract.flow import Verdict
from penstock.contract.report import OUTSIDE, Guarding
from penstock.pattern.feedback import Feedback, Intent
from penstock.plan.place import Place
from penstock.plan.plan import Plan

#: The directions that `probes` go in.
_SIGNS = ("<=", "=", ">=")
Found = dict[str, tuple[Guarding, ...]]


def guarding(plan: Plan, verdicts: Mapping[str, Verdict], bounded: bool = False) -> Found:
    """By operator, what it may keep of feedback.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.analysis.judge import weigh
    >>> cars = StreamBuilder(Source((), Schema.parse("ts timestamp, speed double", "ts"), name="cars")).disorder("5 s")
    >>> plan = cars.where("speed > 3").plan
    >>> for told in guarding(plan, weigh(plan))["source:cars"]:
    ...     print(told)
    not [ts <= …] of outside goes: `ts up to` will cover it
    not [ts = …] of outside goes: `ts up to` will cover it
    not [ts >= …] of outside could live for ever: punctuation says `ts up to`, never `ts >= …`
    not [speed …] of outside could live for ever: no punctuation on `speed` will ever say that
    """
    found: dict[str, list[Guarding]] = {}
    for issue in issues(plan, verdicts):
        below = plan[issue.node].inputs[issue.port]
        lasting = forgettable(
            plan, issue.feedback, below, edge=Place.at(issue.node, issue.port), verdicts=verdicts, bounded=bounded
        )
        for each in worst(lasting):
            if issue.widening and each.endless:
                each = replace(each, why=f"{each.why}; each contains the one before, so it is one at most")
            found.setdefault(each.operator, []).append(_told(issue.node, each, issue.feedback.intent))
    for out in plan.exits:
        for _, feedback in probes(plan, out.root):
            lasting = forgettable(plan, feedback, out.root, edge=out.edge, verdicts=verdicts, bounded=bounded)
            for each in worst(lasting):
                found.setdefault(each.operator, []).append(_told(OUTSIDE, each, feedback.intent))
    return {operator: tuple(_merged(told)) for operator, told in found.items()}


def _told(issuer: str, found: Lasting, intent: Intent) -> Guarding:
    why = found.why
    if found.assumes:
        why += f", if {' and '.join(sorted(found.assumes))}"
    return Guarding(issuer, outline(Feedback(intent, found.pattern)), found.fate, why, found.doomed)


def _merged(told: Iterable[Guarding]) -> list[Guarding]:
    """What is said of an attribute in every direction alike, once."""
    alike: dict[Guarding, list[Guarding]] = {}
    for each in dict.fromkeys(told):
        bare = each.feedback
        for sign in _SIGNS:
            bare = bare.replace(f" {sign} …", " …")
        alike.setdefault(replace(each, feedback=bare), []).append(each)
    return [g for bare, found in alike.items() for g in ([bare] if len(found) == len(_SIGNS) else found)]
