"""Contracts of changes: all that is promised of events holds of what they change, but for their ends."""

from __future__ import annotations

from penstock.contract.flow import Flow, Verdict, behind
from penstock.operators.changes.operator import Changes


def judge_changes(operator: Changes, below: Flow) -> Verdict:
    """In = PS, Out: the templates that do not tag the end of lifetimes."""
    end = operator.lifetime.end
    passed = {tags: assumed for tags, assumed in below.promised.items() if end not in dict(tags)}
    origins = {n: origin for n, origin in below.origins.items() if n != end}
    return Verdict("none", "at once", behind(operator, below, passed, origins))
