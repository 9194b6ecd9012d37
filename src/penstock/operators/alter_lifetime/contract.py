"""Contracts of altered lifetimes: what is promised of when changes matter, and of all but lifetimes."""

from __future__ import annotations

from penstock.contract.flow import Flow, Verdict, behind
from penstock.operators.alter_lifetime.operator import AlterLifetime
from penstock.pattern.schema import SYNC


def judge_altered(operator: AlterLifetime, below: Flow) -> Verdict:
    """In = PS, Out: the templates that tag neither start nor end, nor single moments of change."""
    lost = {*operator.schema.lifetime}
    passed = {
        tags: assumed
        for tags, assumed in below.promised.items()
        if not any(n in lost or (n == SYNC and c != "+") for n, c in tags)
    }
    origins = {n: origin for n, origin in below.origins.items() if n not in lost}
    return Verdict("none", "at once", behind(operator, below, passed, origins))
