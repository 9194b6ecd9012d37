"""What `limit` offers."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.flow import Flow, Verdict
from penstock.operators.limit.operator import Limit
from penstock.plan.domain import domains_behind


def judge_limit(operator: Limit, below: Flow) -> Verdict:
    """In = PS, Out = PS: who drops events passes all templates. It counts, and says when it is over."""
    flow = replace(below, schema=operator.schema, finite=domains_behind(operator, [below.finite]), limited=True)
    return Verdict("constant", "at once", flow, ("remembers how many it has let through",))
